"""The best design for each objective, with a proof (C8, C9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer.centred import Centred, Weighting, centred
from libra_planner.optimizer.cheapest import Choice, cheapest
from libra_planner.optimizer.design import Design, checked, exact_design
from libra_planner.optimizer.illposed import (
    affordable,
    check_bounded,
    check_product,
    check_time_limited,
)
from libra_planner.optimizer.linear import CutModel
from libra_planner.optimizer.product import least_product
from libra_planner.optimizer.program import (
    CHEAPEST,
    FASTEST,
    Program,
    Weights,
    communication,
    scaled_program,
    typical_bandwidth,
    weighted,
)
from libra_planner.optimizer.weighted import Optimum, certified, interior
from libra_planner.optimizer.wellposed import (
    bandwidth_bounds,
    check_compute_fits,
    step_time_infeasible,
)
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.timing.expression import Array

_ENDLESS = 1e4
"""Bandwidth, over a typical one, that stands for no limit."""

_LEAST_TILT = 1e-8
_GIVEN_AWAY = 1e-7
"""Weight of cost that breaks a tie, and what that may cost of the objective (relative)."""

_SLACK = 1e-9
_TILTS = (1e-2, 1e-4, 1e-6)
"""Weights of time beside cost, tried in turn, that find the fastest of the cheapest designs."""


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
    check_compute_fits(problem)
    lower, upper = bandwidth_bounds(problem)
    solve = {
        "performance": _performance,
        "performance_per_cost": _performance_per_cost,
        "cost": _cost,
    }[problem.objective]
    try:
        return checked(solve(problem, lower, upper))
    except (SolverFailed, IllPosed) as error:
        if str(error).startswith(problem.source):
            raise
        raise type(error)(f"{problem.source}: {error}") from error


def _performance(problem: Problem, lower: Array, upper: Array) -> Design:
    """The least step time."""
    check_bounded(problem, upper)
    typical = typical_bandwidth(problem, lower, upper)
    if not len(problem.step_time.forms):
        design = _without_traffic(problem, typical, upper)
    else:
        start = centred(problem, typical, upper, lambda _: FASTEST)
        best = certified(start.program, FASTEST, start.point.b)
        choice = _tie_broken(start, best)
        bound = start.program.constant_s + start.program.time_unit_s * best.bound
        design = exact_design(problem, start.program, choice.b, bound, unique=choice.unique)
    for limit in problem.step_time_limits:
        if design.objective > limit.limit_s * (1 + RULE_TOLERANCE):
            raise _too_slow(problem, limit, design)
    return design


def _cost(problem: Problem, lower: Array, upper: Array) -> Design:
    """The least cost within the step-time bounds; of the cheapest designs the fastest."""
    check_time_limited(problem)
    start = _frontier_program(problem, lower, upper, lambda _: CHEAPEST)
    if start is None:
        return _without_traffic(problem, typical_bandwidth(problem, lower, upper), upper)
    program = start.program
    best = certified(program, CHEAPEST, start.point.b)
    bound = problem.fixed_cost_usd + program.cost_unit_usd * best.bound
    if communication(program, best.b) < program.time_limit * (1 - _SLACK):
        best = _fastest_of_the_cheapest(start, best.value) or best
    choice = _tie_broken(start, best)
    return exact_design(problem, program, choice.b, bound, unique=choice.unique)


def _performance_per_cost(problem: Problem, lower: Array, upper: Array) -> Design:
    """The least product of step time and cost."""
    check_product(problem, upper)
    start = _frontier_program(problem, lower, upper, partial(_product_weights, problem))
    if start is None:
        return _without_traffic(problem, typical_bandwidth(problem, lower, upper), upper)
    program = start.program
    constant, fixed = _offsets(problem, program)
    frontier, sample, unique = least_product(start, constant, fixed)
    best = frontier.certify(sample.point, sample.weights)
    choice = _tie_broken(start, best)
    bound = frontier.worst()[0] * program.time_unit_s * program.cost_unit_usd
    return exact_design(problem, program, choice.b, bound, unique=unique and choice.unique)


def _offsets(problem: Problem, program: Program) -> tuple[float, float]:
    """Compute time and fixed cost in the program's units."""
    constant = program.constant_s / program.time_unit_s
    return constant, problem.fixed_cost_usd / program.cost_unit_usd


def _product_weights(problem: Problem, program: Program) -> Weights:
    """The slope of log(T C) at the program's typical design, where both parts are 1."""
    constant, fixed = _offsets(problem, program)
    time, cost = 1 / (constant + 1), 1 / (fixed + 1)
    return Weights(time / max(time, cost), cost / max(time, cost))


def _frontier_program(
    problem: Problem, lower: Array, upper: Array, weighting: Weighting
) -> Centred | None:
    """The program with its step-time limit; ``None`` without any traffic.

    Where rules leave a bandwidth without a bound, the cost of a design that is known
    gives one: dearer designs cannot be better.
    """
    if not len(problem.step_time.forms):
        return None
    limit = min(problem.step_time_limits, key=lambda limit: limit.limit_s, default=None)
    limit_s = limit.limit_s if limit else np.inf
    if limit:
        fast = typical_bandwidth(replace(problem, objective="performance"), lower, upper)
        _check_reachable(problem, fast, upper, limit)
    typical = typical_bandwidth(problem, lower, upper)
    start = centred(problem, typical, upper, weighting, limit_s=limit_s)
    used = problem.step_time.dims_with_traffic
    if np.isfinite(upper[used]).all():
        return start
    bandwidth = start.point.b * start.program.bandwidth_unit
    capped, upper = affordable(problem, _cost_cap_usd(problem, bandwidth))
    return centred(capped, bandwidth, upper, weighting, limit_s=limit_s)


def _cost_cap_usd(problem: Problem, bandwidth: Array) -> float:
    """Cost above which no design is better than the one given."""
    cost_usd = float(problem.cost_usd(bandwidth))
    if problem.objective == "cost":
        return cost_usd
    return cost_usd * float(problem.step_time.seconds(bandwidth)) / problem.compute_s


def _check_reachable(problem: Problem, typical: Array, upper: Array, limit: StepTimeLimit) -> None:
    """Refuse a step-time bound that the fastest design misses."""
    start = centred(problem, typical, upper, lambda _: FASTEST)
    bandwidth = start.point.b * start.program.bandwidth_unit
    if float(problem.step_time.seconds(bandwidth)) <= limit.limit_s:
        return
    cap = _ENDLESS * float(bandwidth.max())
    best_s = _least_time_s(problem, cap, problem.rules)
    if best_s > limit.limit_s * (1 + RULE_TOLERANCE):
        raise step_time_infeasible(problem, limit, best_s, partial(_least_time_s, problem, cap))


def _least_time_s(problem: Problem, cap_bytes_per_s: float, rules: Sequence[Rule]) -> float:
    """Least step time under some of the rules and a cap, so large that it takes no time."""
    axes = np.eye(problem.topology.n_dims)
    endless = [Rule("", tuple(map(float, axis)), "<=", cap_bytes_per_s) for axis in axes]
    loosened = replace(
        problem, rules=(*rules, *endless), step_time_limits=(), objective="performance"
    )
    return optimize(loosened).objective


def _too_slow(problem: Problem, limit: StepTimeLimit, design: Design) -> Infeasible:
    cap = _ENDLESS * float(design.bandwidth_bytes_per_s.max())
    least = partial(_least_time_s, problem, cap)
    return step_time_infeasible(problem, limit, design.objective, least)


def _fastest_of_the_cheapest(start: Centred, cheapest_cost: float) -> Optimum | None:
    """The optimum with a little weight on time, so little that its cost is the least."""
    for tilt in _TILTS:
        weights = Weights(tilt, 1.0)
        point = interior(start.program, weights, start.model)
        if float(start.program.price @ point.b) <= cheapest_cost * (1 + _SLACK):
            return certified(start.program, weights, point.b)
    return None


def _tie_broken(start: Centred, best: Optimum) -> Choice:
    """The cheapest, then lexicographically first, of the optima (C9).

    Where times inside a maximum dwarf every transfer the set of optima cannot be walked
    exactly; then a very small weight on cost finds the cheapest within rounding.
    """
    program, weights = start.program, best.model.weights
    try:
        choice = cheapest(program, best.model, best.b, best.form_weights)
    except SolverFailed:
        tilted = Weights(weights.time, weights.cost + _LEAST_TILT)
        choice = Choice(interior(program, tilted, start.model).b, unique=False)
    worse = weighted(program, weights, choice.b) - best.value
    return choice if worse <= _GIVEN_AWAY * best.value else Choice(best.b, choice.unique)


def _without_traffic(problem: Problem, typical: Array, upper: Array) -> Design:
    """The cheapest design of a step that only computes."""
    program = scaled_program(problem, typical, upper)
    choice = cheapest(program, CutModel(program, FASTEST, 0.0), np.ones(len(typical)), np.empty(0))
    model = CutModel(program, CHEAPEST, float(program.price @ choice.b))
    least_usd = problem.fixed_cost_usd + program.cost_unit_usd * model.lower_bound()[0]
    bound = OBJECTIVES[problem.objective](program.constant_s, least_usd)
    return exact_design(problem, program, choice.b, bound, unique=choice.unique)
