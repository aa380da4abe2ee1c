"""What rules leave to continuous dimensions beside each combination of purchasable speeds.

Interval propagation, vectorised over combinations: for every rule ``a . x <= room`` the
terms of the others at their least leave each x_j at most (a_j > 0) or at least (a_j < 0)
what remains. The box that follows holds every design, so the time at its upper corner and
the cost at its lower one bound the objective from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.optimizer.combinations import Block, late, objectives
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array, Mask

_ENDLESS_BYTES_PER_S = 1e30
"""Stands for no upper bound: takes no time."""


@dataclass(frozen=True)
class Reach:
    """Boxes of designs, one per combination of the discrete dimensions.

    Parameters
    ----------
    lower, upper : bandwidth of every dimension, bytes/s, shape (n, n_dims).
    fits : whether the rules may be met, shape (n,).
    objective : lower bound of the objective, infinite where they cannot, shape (n,).
    """

    lower: Array
    upper: Array
    fits: Mask
    objective: Array


@dataclass(frozen=True)
class _Row:
    """``coefficients . x <= room`` over continuous dimensions, to ``slack``; (n,) each."""

    coefficients: Array
    room: Array
    slack: Array


def reach(problem: Problem, block: Block) -> Reach:
    """Bounds of the designs that each combination of a block allows."""
    n, continuous = len(block.network_usd), continuous_dims(problem)
    lower, upper = np.zeros((n, len(continuous))), np.full((n, len(continuous)), np.inf)
    rows = [row for rule in problem.rules for row in _rows(problem, rule, block)]
    fits = np.ones(n, dtype=np.bool_)
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(len(continuous) + 1):
            for row in rows:
                fits &= _tighten(row, lower, upper)
    fits &= (lower <= upper * (1 + RULE_TOLERANCE)).all(axis=1)
    low, high = (_whole(problem, block, bounds) for bounds in (lower, upper))
    objective = _bound(problem, block, low, high, fits)
    return Reach(low, high, np.isfinite(objective), objective)


def continuous_dims(problem: Problem) -> list[int]:
    """Dimensions without options."""
    return [i for i in range(problem.topology.n_dims) if i not in problem.purchasable]


def rest_of_rule(problem: Problem, rule: Rule, block: Block) -> tuple[Array, Array]:
    """A rule over the continuous dimensions: coefficients (n_dims,) and bounds (n,).

    What the purchased dimensions contribute is on the right side; in a rule over cost
    that is the price of their options.
    """
    discrete = list(problem.purchasable)
    coefficients = np.array(rule.coefficients)
    bought = block.bandwidth @ coefficients[discrete]
    if rule.cost_factor:
        bought = rule.cost_factor * block.network_usd
    coefficients[discrete] = 0.0
    return coefficients, rule.bound - bought


def _rows(problem: Problem, rule: Rule, block: Block) -> list[_Row]:
    coefficients, room = rest_of_rule(problem, rule, block)
    row = coefficients[continuous_dims(problem)]
    slack = RULE_TOLERANCE * np.maximum(abs(rule.bound), np.abs(room - rule.bound))
    upper, lower = _Row(row, room, slack), _Row(-row, -room, slack)
    return {"<=": [upper], ">=": [lower]}.get(rule.sense, [upper, lower])


def _tighten(row: _Row, lower: Array, upper: Array) -> Mask:
    """Shrink the boxes by one row, in place; returns where the row can be met."""
    a = row.coefficients
    least = np.where(a > 0, a * lower, np.where(a < 0, a * upper, 0.0))
    room = row.room + row.slack
    for j in np.flatnonzero(a):
        others = least[:, np.arange(len(a)) != j].sum(axis=1)
        edge = (room - others) / a[j]
        if a[j] > 0:
            upper[:, j] = np.minimum(upper[:, j], edge)
        else:
            lower[:, j] = np.maximum(lower[:, j], edge)
    return np.asarray(least.sum(axis=1) <= room)


def _whole(problem: Problem, block: Block, bounds: Array) -> Array:
    """Bandwidths of every dimension, (n, n_dims): the purchased ones and bounds of the rest."""
    vectors = np.empty((len(bounds), problem.topology.n_dims))
    vectors[:, list(problem.purchasable)] = block.bandwidth
    vectors[:, continuous_dims(problem)] = np.clip(bounds, 0.0, _ENDLESS_BYTES_PER_S)
    return vectors


def _bound(problem: Problem, block: Block, lower: Array, upper: Array, fits: Mask) -> Array:
    step_time_s = problem.step_time.seconds(upper)
    for limit in problem.step_time_limits:
        fits = fits & ~late(limit, step_time_s)
    continuous = continuous_dims(problem)
    rest_usd = lower[:, continuous] @ problem.price_usd_per_Bps[continuous]
    cost_usd = problem.fixed_cost_usd + block.network_usd + rest_usd
    return np.where(fits, objectives(problem, upper, step_time_s, cost_usd), np.inf)
