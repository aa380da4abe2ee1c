"""The time/cost frontier of a plan: the fastest design at each of a range of costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from libra_planner.errors import Fault, Infeasible, SpecError
from libra_planner.optimizer.design import Design, FrontierPoint
from libra_planner.optimizer.objectives import endless_time_s
from libra_planner.optimizer.optimize import optimize
from libra_planner.optimizer.wellposed import bandwidth_bounds
from libra_planner.problem import Problem, Rule, StepTimeLimit, fastest_alternative
from libra_planner.timing.expression import Array

SLOWEST = 10.0
"""Step time, over the fastest, at which the frontier begins unless a rule says otherwise."""

NEARLY_FASTEST = 1.01
"""The same for its end where bandwidth has no bound: the fastest design would cost infinity."""

_SAME_COST = 1e-9


def pareto(
    problem: Problem, n_points: int = 25, progress: Callable[[int, int], None] | None = None
) -> tuple[FrontierPoint, ...]:
    """Points of the frontier from the cheapest to the fastest, evenly spaced in log cost.

    It begins at the cheapest design whose step time is at most :data:`SLOWEST` times the
    fastest (or meets the plan's step-time rules) and ends at the fastest one.

    Parameters
    ----------
    problem : its objective does not matter; of a group the weighted mean counts.
    n_points : 2 or more; fewer come back where the frontier is a point.
    progress : called with the points done and all after each.

    Raises
    ------
    SpecError
        For fewer than two points, or a plan that buys from a catalogue.
    Infeasible, IllPosed, SolverFailed
        As for the objectives ``performance`` and ``cost``.
    """
    _check(problem, n_points)
    base = replace(problem, objective="performance", group_objective="weighted")
    fastest = _fastest(base)
    limits = base.step_time_limits or (_limit(SLOWEST * fastest.step_time_s),)
    cheapest = _point(base, _least_cost(base, limits))
    if cheapest.cost_usd >= fastest.cost_usd * (1 - _SAME_COST):
        return (fastest,)
    found = [cheapest]
    costs = _spaced(base, cheapest.cost_usd, fastest.cost_usd, n_points)
    for i, cost_usd in enumerate(costs):
        try:
            found.append(_point(base, _fastest_within(base, cost_usd)))
        except Infeasible:  # The first cost can lie below the cheapest design by rounding.
            continue
        if progress:
            progress(i + 2, n_points)
    return (*found, fastest)


def _spaced(problem: Problem, low: float, high: float, n_points: int) -> Array:
    """Costs between the ends, evenly spaced in the logarithm of network cost."""
    fixed = problem.fixed_cost_usd
    floor = max(low - fixed, 1e-6 * (high - fixed))
    return fixed + np.geomspace(floor, high - fixed, n_points)[1:-1]


def _point(problem: Problem, design: Design) -> FrontierPoint:
    bandwidth = design.bandwidth_bytes_per_s
    return FrontierPoint(
        bandwidth,
        float(fastest_alternative(problem, bandwidth).step_time.seconds(bandwidth)),
        float(problem.cost_usd(bandwidth)),
        design.optimality_gap,
    )


def _limit(limit_s: float) -> StepTimeLimit:
    return StepTimeLimit("frontier", limit_s)


def _least_cost(problem: Problem, limits: tuple[StepTimeLimit, ...]) -> Design:
    return optimize(replace(problem, objective="cost", step_time_limits=limits))


def _fastest_within(problem: Problem, cost_usd: float) -> Design:
    price = tuple(map(float, problem.price_usd_per_Bps))
    spare = cost_usd - problem.fixed_cost_usd
    cap = Rule("frontier", price, "<=", spare, "$", 1.0, cost_factor=1.0)
    return optimize(replace(problem, rules=(*problem.rules, cap)))


def _fastest(problem: Problem) -> FrontierPoint:
    """The fast end; where a bandwidth has no bound, the cheapest that is nearly as fast."""
    _, upper = bandwidth_bounds(problem)
    endless = np.isinf(upper) & problem.step_time.dims_with_traffic
    if not endless.any() or not problem.compute_s:
        return _point(problem, optimize(problem))
    limit = _limit(NEARLY_FASTEST * endless_time_s(problem))
    return _point(problem, _least_cost(problem, (limit,)))


def _check(problem: Problem, n_points: int) -> None:
    if n_points < 2:
        raise SpecError(Fault(f"got {n_points} points", "expected 2 or more"))
    if problem.options:
        got, expected = "got link_options", "expected any bandwidth: the frontier is continuous"
        fix = "leave them out, e.g. with --set fabric.link_options=null"
        key = "fabric.link_options"
        raise SpecError(Fault(got, expected, fix, key, problem.place(key)))
