"""The optimum in decimals: where floating point leaves doubt, 80 digits leave none.

Compute that is twelve orders of magnitude longer than communication, or a step-time bound that is
a million times too loose, puts what is to be decided below the rounding of a double. The
interior-point method in decimals (``exact``) decides it, and its multipliers prove it.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np

from libra_planner.optimizer.design import Design, exact_design
from libra_planner.optimizer.exact import N_DIGITS
from libra_planner.optimizer.neighborhood import ExactOptimum, Neighborhood
from libra_planner.optimizer.per_cost import per_cost_problem
from libra_planner.optimizer.program import scaled_program
from libra_planner.optimizer.solution import Solution
from libra_planner.optimizer.typical import typical_bandwidth
from libra_planner.optimizer.wellposed import bandwidth_bounds
from libra_planner.problem import Problem
from libra_planner.timing.expression import Array

_DUST = 1e-14
"""Bandwidth, over a typical one, that is none unless a transfer needs it."""

_TIED = 1e-6
"""Difference of a bandwidth, over the largest, above which another design ties."""


def certain_solution(problem: Problem, lower: Array, upper: Array) -> Solution | None:
    """The optimum to 30 digits, rounded, with its proof; ``None`` where no method finds one.

    Parameters
    ----------
    problem : with one step time and linear prices.
    lower, upper : bounds of every bandwidth under the linear rules, bytes/s, shape (n_dims,).
    """
    typical = typical_bandwidth(problem, lower, upper)
    with localcontext() as context:
        context.prec = N_DIGITS
        nearby = Neighborhood(problem, typical)
        found = nearby.optimum(nearby.amounts)
        if found is None:
            return None
        bound = _bound(problem, nearby, found, upper)
        unique = _same(found, nearby.optimum(nearby.amounts, last=True))
    design = _design(problem, found.bandwidth.astype(np.float64), typical, upper)
    design = replace(design, lower_bound=min(float(bound), design.objective), unique=unique)
    return Solution(design, problem, has_neighbors=bool(len(problem.step_time.forms)))


def _bound(problem: Problem, nearby: Neighborhood, found: ExactOptimum, upper: Array) -> Decimal:
    """Proven bound on the objective, in its unit."""
    if found.per_cost:
        return nearby.bound(found, bandwidth_bounds(per_cost_problem(problem))[1])
    bound = nearby.bound(found, upper)
    if problem.objective == "performance":
        return Decimal(nearby.constant_s) + bound
    cost_usd = nearby.amounts.fixed_usd + bound
    if problem.objective == "cost":
        return cost_usd
    # Too slow without the step-time limit: the least product is on it (``objectives``).
    return (Decimal(nearby.constant_s) + (nearby.amounts.limit_s or 0)) * cost_usd


def _design(problem: Problem, bandwidth: Array, typical: Array, upper: Array) -> Design:
    """The design at a vector, dust swept, rules met to rounding."""
    used = problem.step_time.forms > 0
    alone = used[used.sum(axis=1) == 1].any(axis=0)
    kept = (bandwidth > 0) & (alone | (bandwidth > _DUST * typical))
    program = scaled_program(problem, np.where(kept, bandwidth, typical), upper)
    return exact_design(problem, program, np.where(kept, 1.0, 0.0), np.inf, unique=False)


def _same(first: ExactOptimum, last: ExactOptimum | None) -> bool:
    """Whether the ends of the set of optima are one design."""
    if last is None:
        return False
    apart = max(abs(first.bandwidth - last.bandwidth))
    return bool(apart <= Decimal(_TIED) * max(first.bandwidth))
