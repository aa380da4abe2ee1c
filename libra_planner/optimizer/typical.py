"""A design of the right order of magnitude: the units that solvers work in."""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.linear import OPTIMAL, solve_lp
from libra_planner.optimizer.program import rule_rows
from libra_planner.optimizer.wellposed import bandwidth_units
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.step.lifted import lift
from libra_planner.units import BYTES_PER_S_PER_GBPS

_IDLE_SHARE = 1e-4
"""Traffic, over the largest, that a dimension without any is scaled for."""


_FREE_SHARE = 1e-3
"""Price, over the largest, that something free is scaled for."""


def typical_bandwidth(problem: Problem, lower: Array, upper: Array) -> Array:
    """A design of the right order of magnitude, bytes/s, shape (n_dims,).

    For objective cost, or where nothing bounds a dimension with traffic, the cheapest
    that meets the step-time limit; else the fastest under one budget.
    """
    lifted = lift(problem.step_time)
    traffic = lifted.floors[: len(lifted.forms)] @ (lifted.forms > 0)
    if traffic.any() and (problem.objective == "cost" or np.isinf(upper[traffic > 0]).any()):
        return _cheap(problem, traffic, upper)
    return _fast(problem, traffic, lower, upper)


def _fast(problem: Problem, traffic: Array, lower: Array, upper: Array) -> Array:
    """Under one budget and one transfer per dimension the optimum splits as sqrt(traffic)."""
    share = np.sqrt(np.where(traffic > 0, traffic, traffic.max(initial=0.0) * _IDLE_SHARE))
    sizes = [
        abs(r.bound) / np.abs(r.coefficients).max() for r in problem.rules if any(r.coefficients)
    ]
    fallback = max([BYTES_PER_S_PER_GBPS, float(lower.max()), *sizes])
    reach = np.where(np.isfinite(upper), upper, fallback)
    split = reach * share / share.sum() if share.any() else reach
    return _positive(np.clip(split, lower, reach))


def _cheap(problem: Problem, traffic: Array, upper: Array) -> Array:
    """The cheapest design under the rules with what the step-time limit asks of every dimension.

    Least cost of sum traffic_i / B_i = seconds has B_i ~ sqrt(traffic_i / price_i).
    """
    limits = [limit.limit_s for limit in problem.step_time_limits]
    seconds = min(limits) - problem.compute_s if limits else problem.compute_s
    price = problem.price_usd_per_Bps
    price = np.maximum(price, _FREE_SHARE * price.max()) if price.any() else np.ones(len(price))
    needed = np.sqrt(traffic / price) * np.sqrt(traffic * price).sum() / (seconds or 1.0)
    needed = np.minimum(needed, upper)
    unit = bandwidth_units(problem.rules, len(price))
    rows = rule_rows(problem.rules, unit)
    system = (rows.upper, rows.limit - rows.upper @ (needed / unit), rows.equal)
    cost = price * unit / (price * unit).max()
    more = solve_lp(cost, *system, rows.target - rows.equal @ (needed / unit))
    return _positive(needed + (more.point * unit if more.status == OPTIMAL else 0.0))


def _positive(guess: Array) -> Array:
    return np.where(guess > 0, guess, max(float(guess.max()), 1.0))
