"""The time/cost frontier of a plan: the fastest design at each of a range of costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from libra_planner.errors import Fault, Infeasible, SpecError
from libra_planner.optimizer.design import FrontierPoint
from libra_planner.optimizer.optimize import endless_time_s, optimize
from libra_planner.optimizer.programs.posedness import bandwidth_bounds
from libra_planner.problem import Problem, Rule, StepTimeLimit, fastest_alternative

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
    cheapest = _cheapest(base, SLOWEST * fastest.step_time_s)
    if cheapest.cost_usd >= fastest.cost_usd * (1 - _SAME_COST):
        return (fastest,)
    found, fixed = [cheapest], base.fixed_cost_usd
    low, high = cheapest.cost_usd - fixed, fastest.cost_usd - fixed
    for i, network_usd in enumerate(np.geomspace(max(low, 1e-6 * high), high, n_points)[1:-1]):
        try:
            found.append(_fastest_within(base, fixed + network_usd))
        except Infeasible:  # The first cost can lie below the cheapest design by rounding.
            continue
        if progress:
            progress(i + 2, n_points)
    return (*found, fastest)


def _point(problem: Problem) -> FrontierPoint:
    design = optimize(problem)
    bandwidth = design.bandwidth_bytes_per_s
    return FrontierPoint(
        bandwidth,
        float(fastest_alternative(problem, bandwidth).step_time.seconds(bandwidth)),
        float(problem.cost_usd(bandwidth)),
        design.optimality_gap,
    )


def _cheapest(problem: Problem, limit_s: float) -> FrontierPoint:
    """The cheapest design under the plan's step-time rules, else under a limit."""
    limits = problem.step_time_limits or (StepTimeLimit("frontier", limit_s),)
    return _point(replace(problem, objective="cost", step_time_limits=limits))


def _fastest_within(problem: Problem, cost_usd: float) -> FrontierPoint:
    price = tuple(map(float, problem.price_usd_per_Bps))
    spare = cost_usd - problem.fixed_cost_usd
    cap = Rule("frontier", price, "<=", spare, "$", 1.0, cost_factor=1.0)
    return _point(replace(problem, rules=(*problem.rules, cap)))


def _fastest(problem: Problem) -> FrontierPoint:
    """The fast end; where a bandwidth has no bound, the cheapest that is nearly as fast."""
    _, upper = bandwidth_bounds(problem)
    endless = np.isinf(upper) & problem.step_time.dims_with_traffic
    if not endless.any() or not problem.compute_s:
        return _point(problem)
    limit_s = NEARLY_FASTEST * endless_time_s(problem)
    return _cheapest(replace(problem, step_time_limits=()), limit_s)


def _check(problem: Problem, n_points: int) -> None:
    if n_points < 2:
        raise SpecError(Fault(f"got {n_points} points", "expected 2 or more"))
    if problem.options:
        got, expected = "got link_options", "expected any bandwidth: the frontier is continuous"
        fix = "leave them out, e.g. with --set fabric.link_options=null"
        key = "fabric.link_options"
        raise SpecError(Fault(got, expected, fix, key, problem.place(key)))
