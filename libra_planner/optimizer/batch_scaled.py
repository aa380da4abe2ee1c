"""Dimensionless convex programs of one structure, the designs on the last axis.

The array form of ``program.Program``: the same variables and rows, n of each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from libra_planner.optimizer.batch_structure import LiftedBatch
from libra_planner.step.expression import Array, Mask

_Scalar = TypeVar("_Scalar", bound=np.generic)
Index: TypeAlias = NDArray[np.intp]


def lanes(mask: Mask) -> Index:
    """Where a mask holds; one design twice, since NumPy adds up a single column in another order.

    So a design's digits do not depend on what else is in its batch (C12).

    >>> lanes(np.array([False, True])).tolist()
    [1, 1]
    """
    index = np.flatnonzero(mask)
    return np.repeat(index, 2) if len(index) == 1 else index


def taken(array: NDArray[_Scalar], which: Index) -> NDArray[_Scalar]:
    """Some designs of an array; an index in brackets would leave the designs on the first axis."""
    return np.take(array, which, axis=-1)


@dataclass(frozen=True)
class BatchRules:
    """``upper b <= limit`` and ``equal b == target``; shapes (n_rows, n_dims, n), (n_rows, n)."""

    upper: Array
    limit: Array
    equal: Array
    target: Array


@dataclass(frozen=True)
class ScaledBatch:
    """n programs over (b, w), see ``program.Program``; every array has n as its last axis.

    Parameters
    ----------
    bandwidth_unit : bytes/s of b = 1, shape (n_dims, n).
    time_unit_s, constant_s, cost_unit_usd : shape (n,).
    upper, limit, equal, target : rules over b, rows scaled to a largest coefficient of 1.
    forms : shape (n_forms, n_dims, n).
    time, floors, hidden : shape (n_w, n).
    rows, offsets : epigraph rows, shapes (n_rows, n_w, n) and (n_rows, n); the time limit is
        the last of them where there is one.
    price : shape (n_dims, n).
    b_upper : proven upper bounds of b, shape (n_dims, n), infinite where there is none.
    time_limit : shape (n,), infinite without a limit.
    time_weight, cost_weight : what is minimised, shape (n,).
    """

    bandwidth_unit: Array
    time_unit_s: Array
    constant_s: Array
    cost_unit_usd: Array
    upper: Array
    limit: Array
    equal: Array
    target: Array
    forms: Array
    time: Array
    floors: Array
    hidden: Array
    rows: Array
    offsets: Array
    price: Array
    b_upper: Array
    time_limit: Array
    time_weight: Array
    cost_weight: Array

    @property
    def n_dims(self) -> int:
        """Dimensions of the fabric."""
        return len(self.bandwidth_unit)

    @property
    def n_forms(self) -> int:
        """Reciprocals among the variables w."""
        return len(self.forms)

    @property
    def n(self) -> int:
        """Designs."""
        return int(self.bandwidth_unit.shape[1])

    def take(self, which: Index) -> ScaledBatch:
        """Some of the programs."""
        return ScaledBatch(*(taken(getattr(self, field.name), which) for field in fields(self)))

    def weighted(self, time: float, cost: float) -> ScaledBatch:
        """The programs with other weights."""
        ones = np.ones(self.n)
        return replace(self, time_weight=time * ones, cost_weight=cost * ones)


def scaled_batch(
    lifted: LiftedBatch,
    rules: BatchRules,
    price_usd_per_Bps: Array,
    typical: Array,
    upper: Array,
    limit_s: Array,
) -> ScaledBatch:
    """Programs in units of typical designs, bytes/s, shape (n_dims, n).

    Parameters
    ----------
    lifted : the linear forms of the times, SI.
    rules : in bytes/s.
    price_usd_per_Bps : shape (n_dims, n).
    upper : proven upper bounds, bytes/s, shape (n_dims, n).
    limit_s : bounds on step time, shape (n,); infinite where there is none.
    """
    form_values = (lifted.forms[:, :, None] * typical).sum(axis=1)
    w_unit = _w_unit(1 / form_values, lifted.rows, lifted.offsets)
    time_unit_s = _or_one((lifted.objective * w_unit).sum(axis=0))
    price = price_usd_per_Bps * typical
    cost_unit_usd = _or_one(np.abs(price).sum(axis=0))
    upper_rows, limit = _scaled_rows(rules.upper * typical, rules.limit)
    equal_rows, target = _scaled_rows(rules.equal * typical, rules.target)
    time = lifted.objective * w_unit / time_unit_s
    rows, offsets = _scaled_epigraph(lifted, w_unit)
    time_limit = (limit_s - lifted.constant_s) / time_unit_s
    if np.isfinite(time_limit).any():
        rows = np.concatenate([rows, time[None]])
        offsets = np.concatenate([offsets, -time_limit[None]])
    n = typical.shape[1]
    return ScaledBatch(
        bandwidth_unit=typical,
        time_unit_s=time_unit_s,
        constant_s=lifted.constant_s * np.ones(n),
        cost_unit_usd=cost_unit_usd,
        upper=upper_rows,
        limit=limit,
        equal=equal_rows,
        target=target,
        forms=lifted.forms[:, :, None] * typical / form_values[:, None],
        time=time,
        floors=lifted.floors * w_unit / time_unit_s,
        hidden=lifted.hidden_s / time_unit_s,
        rows=rows,
        offsets=offsets,
        price=price / cost_unit_usd,
        b_upper=upper / typical,
        time_limit=time_limit,
        time_weight=np.ones(n),
        cost_weight=np.zeros(n),
    )


def _or_one(values: Array) -> Array:
    return np.where(values == 0, 1.0, values)


def _scaled_rows(rows: Array, bounds: Array) -> tuple[Array, Array]:
    size = _or_one(np.abs(rows).max(axis=1, initial=0.0))
    return rows / size[:, None], bounds / size


def _scaled_epigraph(lifted: LiftedBatch, w_unit: Array) -> tuple[Array, Array]:
    """Epigraph rows, each in units of its own maximum or of its offset."""
    own = [int(np.flatnonzero(row[:, 0] < 0)[0]) for row in lifted.rows]
    row_unit = np.maximum(w_unit[own], -lifted.offsets)
    return lifted.rows * w_unit / row_unit[:, None], lifted.offsets / row_unit


def _w_unit(reciprocals: Array, rows: Array, offsets: Array) -> Array:
    """Typical w, (n_w, n): maxima as long as what in them is not hidden (``program``)."""
    n_forms, n_w = len(reciprocals), rows.shape[1]
    unit = np.zeros((n_w, reciprocals.shape[1]))
    unit[:n_forms] = reciprocals
    for k in range(n_forms, n_w):
        own = rows[:, k, 0] < 0
        lengths = (rows[own] * unit).sum(axis=1)
        seen = np.where(offsets[own] == 0, lengths, 0.0).max(axis=0)
        beyond = (lengths + offsets[own]).max(axis=0)
        unit[k] = np.where(seen > 0, np.maximum(seen, beyond), lengths.max(axis=0))
    return unit


def least_w(reciprocals: Array, rows: Array, offsets: Array) -> Array:
    """Smallest w, (n_w, n), of reciprocals (n_forms, n): maxima in the order they nest.

    Rows without a maximum of their own (the time limit) are passed over.
    """
    n_forms, n_w = len(reciprocals), rows.shape[1]
    w = np.zeros((n_w, reciprocals.shape[1]))
    w[:n_forms] = reciprocals
    for k in range(n_forms, n_w):
        for row, offset in zip(rows, offsets, strict=True):
            if row[k, 0] < 0:
                length = ((row[:k] * w[:k]).sum(axis=0) + offset) / -row[k]
                np.maximum(w[k], length, out=w[k])
    return w


def form_values(batch: ScaledBatch, b: Array) -> Array:
    """forms . b, shape (n_forms, n)."""
    values: Array = (batch.forms * b).sum(axis=1)
    return values


def communication(batch: ScaledBatch, b: Array) -> Array:
    """Communication time at b, in time units, shape (n,)."""
    w = least_w(1 / form_values(batch, b), batch.rows, batch.offsets)
    total: Array = (batch.time * w).sum(axis=0)
    return total


def weighted_value(batch: ScaledBatch, b: Array) -> Array:
    """What is minimised, at b, shape (n,)."""
    cost = batch.cost_weight * (batch.price * b).sum(axis=0)
    total: Array = cost + batch.time_weight * communication(batch, b)
    return total


def size_of(value: Array) -> Array:
    """What differences of weighted values are relative to: where all time is hidden, the unit."""
    return np.where(value > 0, value, 1.0)


def weighted_sum(rows: Array, weights: Array) -> Array:
    """sum_j weights_j rows_j of shapes (m, k, n) and (m, n)."""
    total: Array = (rows * weights[:, None]).sum(axis=0)
    return total
