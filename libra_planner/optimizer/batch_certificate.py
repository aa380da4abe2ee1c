"""What has to be true of a batch of interior points: rules met, and a proven bound (C9)."""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.batch_factor import factored, solved
from libra_planner.optimizer.batch_newton import BatchPoint
from libra_planner.optimizer.batch_scaled import (
    ScaledBatch,
    form_values,
    lanes,
    taken,
    weighted_value,
)
from libra_planner.step.expression import Array, Mask

_ACTIVE = 1e-8
"""Slack, in units of the row, below which a rule is held exactly (``feasibility``)."""

_ZERO, _DUST = 1e-10, 1e-6
"""Bandwidth below which a dimension is unused, and the same for one without traffic."""

_MET = 1e-10
_CORRECTIONS, _NOISE = 3, 1e-16
_SLOPE_NOISE = 1e-13


def restored(batch: ScaledBatch, b: Array) -> Array:
    """The nearest vectors, (n_dims, n), on which active rules hold to rounding.

    As ``feasibility.restored``: violated or nearly tight rows become equalities and the
    smallest relative correction is taken; dust on idle dimensions is swept where it may be.
    """
    used = batch.forms > 0
    alone = (used & (used.sum(axis=1, keepdims=True) == 1)).any(axis=0)
    least = np.where(used.any(axis=0), np.where(alone, 0.0, _ZERO), _DUST)
    swept = np.where(b < least, 0.0, b)
    result = _corrected(batch, swept)
    unmet = lanes(~meets_rules(batch, result))
    if len(unmet):
        result[:, unmet] = _corrected(batch.take(unmet), np.maximum(taken(b, unmet), 0.0))
    return result


def meets_rules(batch: ScaledBatch, b: Array) -> Mask:
    """Which of the vectors meet the rules, in units of each row, shape (n,)."""
    over = (batch.upper * b).sum(axis=1) - batch.limit
    off = np.abs((batch.equal * b).sum(axis=1) - batch.target)
    worst = np.maximum(over.max(axis=0, initial=0.0), off.max(axis=0, initial=0.0))
    return np.asarray(worst <= _MET)


def _corrected(batch: ScaledBatch, b: Array) -> Array:
    point, n_equal = b.copy(), len(batch.equal)
    rows = np.concatenate([batch.equal, batch.upper])
    bounds = np.concatenate([batch.target, batch.limit])
    diagonal = np.arange(len(rows))
    for _ in range(_CORRECTIONS):
        gap = bounds - (rows * point).sum(axis=1)
        active = gap < _ACTIVE
        active[:n_equal] = True
        gap = np.where(active & (np.abs(gap) > _NOISE), gap, 0.0)
        if not gap.any():
            break
        moved = rows * np.where(active[:, None], point, 0.0)
        gram = (moved[:, None] * moved[None]).sum(axis=2)
        gram[diagonal, diagonal] += ~active
        pull = solved(factored(gram), gap)
        point = np.maximum(point * (1 + (moved * pull[:, None]).sum(axis=0)), 0.0)
    return point


def lower_bound(batch: ScaledBatch, point: BatchPoint, b: Array) -> Array:
    """Proven: no design minimises further, in the batch's units, shape (n,).

    Weak duality with any multipliers of 0 or more: with tangents ``2/p - x/p^2`` of the
    reciprocals 1/x at p = forms . b the Lagrangian is linear, and its minimum over the box
    of all designs as good as b is a bound, whatever the solver's accuracy (the linear
    program of ``linear.CutModel`` with one tangent per form).
    """
    n_rows, n_forms = len(batch.rows), batch.n_forms
    dual = np.maximum(point.dual, 0.0)
    row_dual, rule_dual = dual[:n_rows], dual[n_rows:]
    pull = batch.time_weight * batch.time + (batch.rows * row_dual[:, None]).sum(axis=0)
    at = form_values(batch, b)
    constant = (
        2 * (pull[:n_forms] / at).sum(axis=0)
        + (row_dual * batch.offsets).sum(axis=0)
        - (rule_dual * batch.limit).sum(axis=0)
        - (point.equal_dual * batch.target).sum(axis=0)
    )
    slope = (
        batch.cost_weight * batch.price
        + (batch.upper * rule_dual[:, None]).sum(axis=0)
        + (batch.equal * point.equal_dual[:, None]).sum(axis=0)
        - (batch.forms * (pull[:n_forms] / at**2)[:, None]).sum(axis=0)
    )
    b_upper, t_upper = _box(batch, weighted_value(batch, b))
    bound: Array = constant + _least(slope, b_upper) + _least(pull[n_forms:], t_upper)
    return bound


def _least(slope: Array, upper: Array) -> Array:
    """Least of slope . x over 0 <= x <= upper, shape (n,)."""
    down = slope < -_SLOPE_NOISE * np.isinf(upper)
    total: Array = np.where(down, slope * np.where(down, upper, 0.0), 0.0).sum(axis=0)
    return total


def _box(batch: ScaledBatch, incumbent: Array) -> tuple[Array, Array]:
    """Upper bounds of b and of the maxima over designs no worse than the incumbent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        priced = batch.cost_weight * batch.price
        affordable = np.where(priced > 0, incumbent / priced, np.inf)
        slowest = np.where(batch.time_weight > 0, incumbent / batch.time_weight, np.inf)
        slowest = np.minimum(slowest, batch.time_limit)
        floors, hidden = batch.floors[batch.n_forms :], batch.hidden[batch.n_forms :]
        longest = np.where(floors > 0, (slowest + hidden) / floors, np.inf)
    wider = 1 + 1e-9
    return np.minimum(batch.b_upper, affordable) * wider, longest * wider
