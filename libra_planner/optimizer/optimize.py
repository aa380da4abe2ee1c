"""The best design for each objective, with a proof (C8, C9)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.optimizer.catalogue import optimize_catalogue
from libra_planner.optimizer.decimals import certain_solution
from libra_planner.optimizer.design import SURE_GAP, Design, checked
from libra_planner.optimizer.objectives import cost, performance, performance_per_cost
from libra_planner.optimizer.solution import Solution
from libra_planner.optimizer.wellposed import (
    bandwidth_bounds,
    check_compute_fits,
)
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.step.training import plain_step

_OBJECTIVES = MappingProxyType(
    {"performance": performance, "performance_per_cost": performance_per_cost, "cost": cost}
)


def optimize(problem: Problem) -> Design:
    """The bandwidth vector that is best for the problem's objective, certified.

    Raises
    ------
    Infeasible
        When no vector meets the rules; names those that conflict.
    IllPosed
        When the optimum is not attained (C8); says why and what to add.
    SolverFailed
        When the gap cannot be brought to 1e-6.
    """
    return solve(problem).design


def solve(problem: Problem) -> Solution:
    """:func:`optimize`, with what is needed to solve neighboring problems."""
    problem = with_own_optima(problem)
    if problem.alternatives:
        return _best_alternative(problem)
    if problem.options:
        design = optimize_catalogue(problem, optimize)
        _refuse_free(problem, design)
        return Solution(design, problem)
    if problem.group_objective != "weighted":
        return _solve_relative(problem)
    check_compute_fits(problem)
    lower, upper = bandwidth_bounds(problem)
    try:
        solution = _surest_solution(problem, lower, upper)
        _refuse_free(problem, checked(solution.design))
    except (SolverFailed, IllPosed) as error:
        if str(error).startswith(problem.source):
            raise
        raise type(error)(f"{problem.source}: {error}") from error
    return solution


def _surest_solution(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The optimum in floating point or, where that gives up or leaves doubt, in decimals.

    The certificate judges both.
    """
    try:
        first = _OBJECTIVES[problem.objective](problem, lower, upper)
        checked(first.design)
    except SolverFailed:
        solution = certain_solution(problem, lower, upper)
        if solution is None:
            raise
        return solution
    if first.settled and first.design.optimality_gap <= SURE_GAP:
        return first
    second = certain_solution(problem, lower, upper) or first
    return min(first, second, key=lambda solution: solution.design.optimality_gap)


def _refuse_free(problem: Problem, design: Design) -> None:
    """Refuse an objective of zero: it does not tell designs apart (C8)."""
    if design.objective <= 0 and problem.objective != "performance":
        raise IllPosed(
            f"{problem.at('objective')}got a network that costs nothing and meets every rule: "
            f"{problem.objective} is zero (C8); use objective performance, or add prices or "
            f"fixed_cost"
        )


def _best_alternative(problem: Problem) -> Solution:
    """The best of problems that differ in a choice outside the expression, such as chunks."""
    solutions, errors = [], []
    for one in problem.alternatives:
        alone = replace(one, alternatives=(), own_optima_s=problem.own_optima_s)
        try:
            solutions.append(solve(alone))
        except Infeasible as error:  # Another choice may still meet a step-time rule.
            errors.append(error)
    if not solutions:
        raise errors[0]
    best = min(solutions, key=lambda solution: solution.design.objective)
    bound = min(solution.design.lower_bound for solution in solutions)
    return replace(best, design=replace(best.design, lower_bound=bound))


def with_own_optima(problem: Problem) -> Problem:
    """A group's problem with each workload's least step time alone, T_i* (C8)."""
    if problem.group_objective == "weighted" or problem.own_optima_s:
        return problem
    choices = problem.alternatives or (problem,)
    optima = [_own_optima(choice) for choice in choices]
    least = tuple(map(min, zip(*optima, strict=True)))
    return replace(problem, own_optima_s=least)


def _own_optima(problem: Problem) -> list[float]:
    """Least step time of each member alone."""
    alone = replace(
        problem,
        alternatives=(),
        group_objective="weighted",
        objective="performance",
    )
    steps = [plain_step(member.step_time, member.name) for member in problem.members]
    return [optimize(replace(alone, step=step)).objective for step in steps]


def _solve_relative(problem: Problem) -> Solution:
    """A group's relative time in the place of the step time; neighbors would move T_i* too."""
    relative = replace(
        problem,
        step=plain_step(problem.objective_time or problem.step_time, problem.workload_name),
        group_objective="weighted",
    )
    return Solution(solve(relative).design, problem)
