"""The three objectives: least step time, least cost, least product of both (C8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.evaluation import OBJECTIVES, max_violation
from libra_planner.optimizer.centred import Centred, centred
from libra_planner.optimizer.cheapest import Choice, cheapest
from libra_planner.optimizer.design import Design, exact_design
from libra_planner.optimizer.feasibility import restored
from libra_planner.optimizer.illposed import (
    affordable,
    attains_product,
    check_bounded,
    check_product,
    check_time_limited,
)
from libra_planner.optimizer.linear import CutModel
from libra_planner.optimizer.per_cost import from_per_cost, per_cost_problem, to_per_cost
from libra_planner.optimizer.program import (
    CHEAPEST,
    FASTEST,
    Weights,
    communication,
    scaled_program,
    size_of,
    weighted,
)
from libra_planner.optimizer.solution import Solution
from libra_planner.optimizer.typical import typical_bandwidth
from libra_planner.optimizer.weighted import Optimum, certified, interior
from libra_planner.optimizer.wellposed import (
    bandwidth_bounds,
    step_time_infeasible,
)
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Array

_ENDLESS = 1e4
"""Bandwidth, over a typical one, that stands for no limit."""

_LEAST_TILT = 1e-8
_GIVEN_AWAY = 1e-7
"""Weight of cost that breaks a tie, and what that may cost of the objective (relative)."""

_DOUBTFUL = 1e-15, 1e-4
"""Shares of what is minimised between which a transfer is there, but not to many digits."""

FLAT = 1e-6
"""Share of step time x cost that bandwidth has a say in, below which decimals decide."""

_SLACK = 1e-9
_TILTS = (1e-2, 1e-4, 1e-6)
"""Weights of time beside cost, tried in turn, that find the fastest of the cheapest designs."""


def performance(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The least step time."""
    check_bounded(problem, upper)
    typical = typical_bandwidth(problem, lower, upper)
    if len(problem.step_time.forms):
        start = centred(problem, typical, upper, lambda _: FASTEST)
        best = certified(start.program, FASTEST, start.point.b)
        choice = _tie_broken(start, best)
        bound = start.program.constant_s + start.program.time_unit_s * best.bound
        design = exact_design(problem, start.program, choice.b, bound, unique=choice.unique)
        solution = Solution(design, problem, has_neighbors=True, settled=choice.settled)
    else:
        solution = _without_traffic(problem, typical, upper)
    for limit in problem.step_time_limits:
        if solution.design.objective > limit.limit_s * (1 + RULE_TOLERANCE):
            raise _too_slow(problem, limit, solution.design)
    return solution


def cost(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The least cost within the step-time bounds; of the cheapest designs the fastest."""
    check_time_limited(problem)
    start = _limited_program(problem, lower, upper)
    if start is None:
        return _without_traffic(problem, typical_bandwidth(problem, lower, upper), upper)
    program = start.program
    best = certified(program, CHEAPEST, start.point.b)
    bound = problem.fixed_cost_usd + program.cost_unit_usd * best.bound
    if communication(program, best.b) < program.time_limit * (1 - _SLACK):
        best = _fastest_of_the_cheapest(start, best.value) or best
    choice = _tie_broken(start, best)
    design = exact_design(problem, program, choice.b, bound, unique=choice.unique)
    return Solution(design, problem, has_neighbors=True, settled=choice.settled)


def performance_per_cost(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The least product of step time and cost.

    It is quasi-convex (see ``per_cost``): where its optimum is slower than a step-time
    bound, the best design within the bound is on it, hence the cheapest one there.
    """
    check_product(problem, upper)
    limit = _tightest(problem)
    if limit is None:
        return _least_product(problem, lower, upper)
    within = cost(replace(problem, objective="cost"), lower, upper)
    free = replace(problem, step_time_limits=())
    if attains_product(free, upper):
        solution = _least_product(free, lower, upper)
        bandwidth = solution.design.bandwidth_bytes_per_s
        if float(problem.step_time.seconds(bandwidth)) <= limit.limit_s * (1 + RULE_TOLERANCE):
            violation = max_violation(problem, bandwidth)
            design = replace(solution.design, max_violation=violation)
            return replace(solution, design=design, problem=problem)
    return _at_the_limit(problem, limit, within)


def _at_the_limit(problem: Problem, limit: StepTimeLimit, within: Solution) -> Solution:
    """The cheapest design within a step-time bound as the one with the least product."""
    design = within.design
    step_time_s = float(problem.step_time.seconds(design.bandwidth_bytes_per_s))
    product = step_time_s * design.objective
    bound = min(limit.limit_s * design.lower_bound, product)
    design = replace(design, objective=product, lower_bound=bound)
    return replace(within, design=design, problem=problem)


def _least_product(problem: Problem, lower: Array, upper: Array) -> Solution:
    """The least T C without a step-time bound: a problem of performance over (B/C, 1/C)."""
    other = per_cost_problem(problem)
    _, other_upper = bandwidth_bounds(other)
    if np.isinf(other_upper[other.step_time.dims_with_traffic]).any():
        raise IllPosed(
            f"{problem.at('constraints')}got bandwidth that costs nothing and "
            "that no rule bounds, expected a price or a bound for each dimension with traffic (C8)"
        )
    typical = to_per_cost(problem, typical_bandwidth(problem, lower, upper))
    start = centred(other, typical, other_upper, lambda _: FASTEST)
    best = certified(start.program, FASTEST, start.point.b)
    choice = _tie_broken(start, best)
    b = from_per_cost(restored(start.program, choice.b) * start.program.bandwidth_unit)
    program = scaled_program(problem, np.where(b > 0, b, b.max() or 1.0), upper)
    bound = start.program.constant_s + start.program.time_unit_s * best.bound
    design = exact_design(problem, program, b / program.bandwidth_unit, bound, unique=choice.unique)
    # Beside so much compute and fixed cost the rest is lost to rounding.
    moved = design.objective - problem.compute_s * problem.fixed_cost_usd
    settled = choice.settled and moved > FLAT * design.objective
    return Solution(design, problem, has_neighbors=True, settled=settled)


def _tightest(problem: Problem) -> StepTimeLimit | None:
    return min(problem.step_time_limits, key=lambda limit: limit.limit_s, default=None)


def _limited_program(problem: Problem, lower: Array, upper: Array) -> Centred | None:
    """The program with its step-time limit, centred at low cost; ``None`` without any traffic.

    Where rules leave a bandwidth without a bound, the cost of a design that is known
    gives one: dearer designs cannot be better.
    """
    if not len(problem.step_time.forms):
        return None
    limit = min(problem.step_time_limits, key=lambda limit: limit.limit_s)
    fast = typical_bandwidth(replace(problem, objective="performance"), lower, upper)
    _check_reachable(problem, fast, upper, limit)
    typical = typical_bandwidth(problem, lower, upper)
    start = centred(problem, typical, upper, lambda _: CHEAPEST, limit_s=limit.limit_s)
    used = problem.step_time.dims_with_traffic
    if np.isfinite(upper[used]).all():
        return start
    bandwidth = start.point.b * start.program.bandwidth_unit
    capped, upper = affordable(problem, float(problem.cost_usd(bandwidth)))
    typical = np.where(bandwidth > 0, bandwidth, start.program.bandwidth_unit)
    return centred(capped, typical, upper, lambda _: CHEAPEST, limit_s=limit.limit_s)


def _check_reachable(problem: Problem, typical: Array, upper: Array, limit: StepTimeLimit) -> None:
    """Refuse a step-time bound that the fastest design misses."""
    cap = _ENDLESS * float(typical.max())
    if np.isfinite(upper[problem.step_time.dims_with_traffic]).all():
        start = centred(problem, typical, upper, lambda _: FASTEST)
        bandwidth = start.point.b * start.program.bandwidth_unit
        if float(problem.step_time.seconds(bandwidth)) <= limit.limit_s:
            return
        cap = _ENDLESS * float(bandwidth.max())
    best_s = _least_time_s(problem, cap, problem.rules)
    if best_s > limit.limit_s * (1 + RULE_TOLERANCE):
        raise step_time_infeasible(problem, limit, best_s, partial(_least_time_s, problem, cap))


def endless_time_s(problem: Problem) -> float:
    """Least step time when bandwidth that no rule bounds is practically endless, seconds."""
    lower, upper = bandwidth_bounds(problem)
    cap = _ENDLESS * float(typical_bandwidth(problem, lower, upper).max())
    return _least_time_s(problem, cap, problem.rules)


def _least_time_s(problem: Problem, cap_bytes_per_s: float, rules: Sequence[Rule]) -> float:
    """Least step time under some of the rules and a cap, so large that it takes no time."""
    axes = np.eye(problem.topology.n_dims)
    endless = [Rule("", tuple(map(float, axis)), "<=", cap_bytes_per_s) for axis in axes]
    loosened = replace(
        problem, rules=(*rules, *endless), step_time_limits=(), objective="performance"
    )
    return performance(loosened, *bandwidth_bounds(loosened)).design.objective


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
        choice = Choice(interior(program, tilted, start.model).b, unique=False, settled=False)
    worse, size = weighted(program, weights, choice.b) - best.value, size_of(best.value)
    if not worse <= _GIVEN_AWAY * size:
        return Choice(best.b, choice.unique, settled=False)
    share = best.form_weights / (program.forms @ best.b) / size
    doubtful = ((share > _DOUBTFUL[0]) & (share < _DOUBTFUL[1])).any()
    return replace(choice, settled=choice.settled and not doubtful)


def _without_traffic(problem: Problem, typical: Array, upper: Array) -> Solution:
    """The cheapest design of a step that only computes."""
    program = scaled_program(problem, typical, upper)
    choice = cheapest(program, CutModel(program, FASTEST, 0.0), np.ones(len(typical)), np.empty(0))
    model = CutModel(program, CHEAPEST, float(program.price @ choice.b))
    least_usd = problem.fixed_cost_usd + program.cost_unit_usd * model.lower_bound()[0]
    bound = OBJECTIVES[problem.objective](program.constant_s, least_usd)
    design = exact_design(problem, program, choice.b, bound, unique=choice.unique)
    return Solution(design, problem)
