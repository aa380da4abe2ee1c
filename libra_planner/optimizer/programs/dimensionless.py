"""Dimensionless convex programs of one structure: what every solver works on.

With u_f >= 1 / (form_f . B) and one variable t_k per maximum, every time expression
is ``constant + objective . w`` subject to ``rows . w + offsets <= 0``, w = (u, t).

The constant is all that no bandwidth changes: t_k is what a maximum takes beyond its length at
infinite bandwidth. So a transfer of a nanosecond beside an hour of compute, in a sum or in a
maximum, is not lost in it.

Expressions of one structure (a tree without its numbers) are lifted together: their numbers
(seconds of constants, bytes of transfers, factors of scalings) stand in one array in the order of
the tree, the designs on the last axis, so that every operation runs over contiguous designs.

Bandwidths, reciprocals and times are divided by typical values, so that the same tolerances
hold from 1 to 100,000 GB/s and from microseconds to hours. Every array has the designs on its
last axis; one plan is a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from libra_planner.step import expression as tree
from libra_planner.step.expression import Array, Mask

_Floors: TypeAlias = dict[int, tuple[Array, Array]]
"""By variable j what a time takes at least for its sake, ``floor w_j - hidden``."""


@dataclass(frozen=True)
class LiftedTimes:
    """Linear form of the times of n designs, SI units.

    Parameters
    ----------
    forms : linear forms of the bandwidths, shape (n_forms, n_dims), of all designs.
    objective : seconds per unit of w = (u, t), shape (n_forms + n_maxima, n).
    constant_s : step time at infinite bandwidth, shape (n,).
    rows, offsets : epigraph rows, shapes (n_rows, n_forms + n_maxima, n) and (n_rows, n); no
        offset is above zero, and each maximum has a row whose offset is zero.
    floors, hidden_s : T(B) - constant >= floors_j * w_j - hidden_j for every variable, same
        shape as objective; what takes less than something beside it hides behind that.
    """

    forms: Array
    objective: Array
    constant_s: Array
    rows: Array
    offsets: Array
    floors: Array
    hidden_s: Array


def lift(structure: tree.Structure, values: Array) -> LiftedTimes:
    """The linear form of every design, of numbers (n_numbers, n).

    Examples
    --------
    >>> from libra_planner.step.expression import TimeExpression, transfers
    >>> step = TimeExpression(transfers([24.0, 6.0]), 2)
    >>> lifted = lift(step.structure, np.array(step.numbers)[:, None])
    >>> lifted.objective[:, 0], lifted.rows[..., 0].tolist()
    (array([0., 0., 1.]), [[24.0, 0.0, -1.0], [0.0, 6.0, -1.0]])
    """
    builder = _Builder(structure, values.shape[1], len(structure.forms))
    whole = builder.affine(structure.root, iter(values))
    rows = np.array([builder.dense(part) for part, _ in builder.epigraph])
    offsets = np.array([offset for _, offset in builder.epigraph])
    return LiftedTimes(
        forms=structure.rows,
        objective=builder.dense(whole.row),
        constant_s=whole.offset * np.ones(builder.n),
        rows=rows.reshape(len(rows), builder.n_variables, builder.n),
        offsets=offsets.reshape(len(rows), builder.n),
        floors=builder.dense({j: floor for j, (floor, _) in whole.floors.items()}),
        hidden_s=builder.dense({j: hidden for j, (_, hidden) in whole.floors.items()}),
    )


@dataclass(frozen=True)
class _Affine:
    """A node's times as ``row . w + offset``, row and floors sparse."""

    row: dict[int, Array]
    offset: Array
    floors: _Floors

    def scaled(self, factor: Array) -> _Affine:
        """The node ``factor`` times."""
        row = {j: factor * x for j, x in self.row.items()}
        floors = {j: (factor * low, factor * hidden) for j, (low, hidden) in self.floors.items()}
        return _Affine(row, factor * self.offset, floors)


@dataclass
class _Builder:
    """Rows of the trees of a structure."""

    structure: tree.Structure
    n: int
    n_variables: int
    epigraph: list[tuple[dict[int, Array], Array]] = field(default_factory=list)

    def dense(self, row: dict[int, Array]) -> Array:
        dense = np.zeros((self.n_variables, self.n))
        for j, value in row.items():
            dense[j] = value
        return dense

    def affine(self, node: tree.Node, values: Iterator[Array]) -> _Affine:
        """The time of a node; maxima get a variable and rows of their own."""
        if isinstance(node, tree.Constant):
            return _Affine({}, next(values), {})
        if isinstance(node, tree.Transfer):
            j = self.structure.forms.index(node.coefficients)
            size, zero = next(values), np.zeros(self.n)
            return _Affine({j: size}, zero, {j: (size, zero)})
        if isinstance(node, tree.Scaled):
            factor = next(values)
            return self.affine(node.term, values).scaled(factor)
        parts = [self.affine(term, values) for term in tree.terms_of(node)]
        return self._maximum(parts) if isinstance(node, tree.Maximum) else self._total(parts)

    def _total(self, parts: list[_Affine]) -> _Affine:
        row: dict[int, Array] = {}
        total = np.zeros(self.n)
        for part in parts:
            total = total + part.offset
            for j, x in part.row.items():
                row[j] = row[j] + x if j in row else x
        return _Affine(row, total, _tightest([part.floors for part in parts]))

    def _maximum(self, parts: list[_Affine]) -> _Affine:
        """A new variable t: what the longest part takes beyond the longest offset."""
        j, ones = self.n_variables, np.ones(self.n)
        self.n_variables += 1
        longest = np.max([part.offset * ones for part in parts], axis=0)
        self.epigraph += [(part.row | {j: -ones}, part.offset - longest) for part in parts]
        # What is shorter than the longest hides behind it.
        floors = [
            {i: (low, hidden + (longest - part.offset)) for i, (low, hidden) in part.floors.items()}
            for part in parts
        ]
        return _Affine({j: ones}, longest, _tightest([*floors, {j: (ones, 0.0 * ones)}]))


def _tightest(parts: list[_Floors]) -> _Floors:
    """Of each variable and design the floor that hides least, then the largest."""
    found: _Floors = {}
    for j, (floor, hidden) in (item for part in parts for item in part.items()):
        least, shown = found.get(j, (floor, hidden))
        better = (hidden < shown) | ((hidden == shown) & (floor > least))
        found[j] = np.where(better, floor, least), np.where(better, hidden, shown)
    return found


_Scalar = TypeVar("_Scalar", bound=np.generic)
_Arrays = TypeVar("_Arrays", bound=Any)
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


def some_of(arrays: _Arrays, which: Index) -> _Arrays:
    """Some designs of a dataclass of arrays, copied."""
    found = dict(vars(arrays))
    for name, x in found.items():
        if isinstance(x, np.ndarray):
            found[name] = taken(x, which)
        elif isinstance(x, RuleRows):
            found[name] = some_of(x, which)
    cls: Callable[..., _Arrays] = type(arrays)
    return cls(**found)


def put(arrays: object, which: Index, others: object) -> None:
    """Replace some designs of a dataclass of arrays, in place."""
    for name, values in vars(arrays).items():
        values[..., which] = getattr(others, name)


@dataclass(frozen=True)
class RuleRows:
    """``upper b <= limit`` and ``equal b == target``; shapes (n_rows, n_dims, n), (n_rows, n)."""

    upper: Array
    limit: Array
    equal: Array
    target: Array

    @classmethod
    def of(cls, senses: Sequence[str], coefficients: Array, bounds: Array) -> RuleRows:
        """Rules ``coefficients b (sense) bound``, shapes (n_rules, n_dims, n), (n_rules, n).

        Examples
        --------
        >>> rows = RuleRows.of([">="], np.array([[[1.0], [-2.0]]]), np.zeros((1, 1)))
        >>> rows.upper[..., 0], rows.limit[..., 0], rows.equal.shape
        (array([[-1.,  2.]]), array([-0.]), (0, 2, 1))
        """
        equal = np.array([sense == "==" for sense in senses], dtype=bool)
        sign = np.array([-1.0 if sense == ">=" else 1.0 for sense in senses])[~equal]
        upper, limit = coefficients[~equal] * sign[:, None, None], bounds[~equal] * sign[:, None]
        return cls(upper, limit, coefficients[equal], bounds[equal])

    def scaled(self, unit: Array) -> RuleRows:
        """The rows over b / ``unit``, shape (n_dims, n), each with a largest coefficient of 1."""
        upper, limit = _scaled_rows(self.upper * unit, self.limit)
        return RuleRows(upper, limit, *_scaled_rows(self.equal * unit, self.target))


@dataclass(frozen=True)
class Program(RuleRows):
    """n designs (b, w): rules over b, ``rows w + offsets <= 0``, w_f >= 1/(forms_f b).

    Parameters
    ----------
    bandwidth_unit : bytes/s of b = 1, shape (n_dims, n).
    time_unit_s : seconds of communication 1, shape (n,).
    constant_s : step time at infinite bandwidth, not in ``time``, shape (n,).
    cost_unit_usd : network cost at b = 1 (1 where everything is free), shape (n,).
    upper, limit, equal, target : rules over b, every row scaled to a largest coefficient of 1.
    forms : shape (n_forms, n_dims, n).
    time, floors, hidden : shape (n_w, n); communication = time . w >= floors_j w_j - hidden_j.
    rows, offsets : epigraph rows, shapes (n_rows, n_w, n) and (n_rows, n); the time limit is
        the last of them where there is one.
    price : cost per unit of b over the cost at b = 1, shape (n_dims, n).
    b_upper : proven upper bounds of b, shape (n_dims, n), infinite where there is none.
    time_limit : most communication that is allowed, shape (n,), infinite without a limit.
    time_weight, cost_weight : what is minimised is ``time_weight`` * communication +
        ``cost_weight`` * network cost, shape (n,): (1, 0) is performance, (0, 1) is cost.
    """

    bandwidth_unit: Array
    time_unit_s: Array
    constant_s: Array
    cost_unit_usd: Array
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

    def take(self, which: Index) -> Program:
        """Some of the programs."""
        return some_of(self, which)

    def weighted(self, time: float, cost: float) -> Program:
        """The programs with other weights."""
        ones = np.ones(self.n)
        return replace(self, time_weight=time * ones, cost_weight=cost * ones)


def dimensionless_program(
    lifted: LiftedTimes,
    rules: RuleRows,
    price_usd_per_Bps: Array,
    typical: Array,
    upper: Array,
    limit_s: Array,
) -> Program:
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
    time = lifted.objective * w_unit / time_unit_s
    own = [int(np.flatnonzero(row[:, 0] < 0)[0]) for row in lifted.rows]
    row_unit = np.maximum(w_unit[own], -lifted.offsets)  # Its own maximum, or its offset.
    rows, offsets = lifted.rows * w_unit / row_unit[:, None], lifted.offsets / row_unit
    time_limit = (limit_s - lifted.constant_s) / time_unit_s
    if np.isfinite(time_limit).any():
        rows = np.concatenate([rows, time[None]])
        offsets = np.concatenate([offsets, -time_limit[None]])
    n = typical.shape[1]
    return Program(
        bandwidth_unit=typical,
        time_unit_s=time_unit_s,
        constant_s=lifted.constant_s,
        cost_unit_usd=cost_unit_usd,
        **vars(rules.scaled(typical)),
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


def _w_unit(reciprocals: Array, rows: Array, offsets: Array) -> Array:
    """Typical w, (n_w, n): maxima as long as what in them is not hidden ."""
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


def least_w(reciprocals: NDArray[Any], rows: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    """Smallest w, (n_w, n), of reciprocals (n_forms, n): maxima in the order they nest.

    Rows without a maximum of their own (the time limit) are passed over. Decimals do as well.
    """
    n_forms, n_w = len(reciprocals), rows.shape[1]
    w = np.zeros((n_w, reciprocals.shape[1]), dtype=reciprocals.dtype)
    w[:n_forms] = reciprocals
    for k in range(n_forms, n_w):
        for row, offset in zip(rows, offsets, strict=True):
            if row[k, 0] < 0:
                length = ((row[:k] * w[:k]).sum(axis=0) + offset) / -row[k]
                np.maximum(w[k], length, out=w[k])
    return w


def form_values(batch: Program, b: Array) -> Array:
    """forms . b, shape (n_forms, n)."""
    return np.asarray((batch.forms * b).sum(axis=1))


def communication(batch: Program, b: Array) -> Array:
    """Communication time at b, in time units, shape (n,)."""
    w = least_w(1 / form_values(batch, b), batch.rows, batch.offsets)
    return np.asarray((batch.time * w).sum(axis=0))


def weighted_value(batch: Program, b: Array) -> Array:
    """What is minimised, at b, shape (n,)."""
    cost = batch.cost_weight * (batch.price * b).sum(axis=0)
    return np.asarray(cost + batch.time_weight * communication(batch, b))


def size_of(value: Array) -> Array:
    """What differences of weighted values are relative to: where all time is hidden, the unit."""
    return np.where(value > 0, value, 1.0)


def weighted_sum(rows: Array, weights: Array) -> Array:
    """sum_j weights_j rows_j of shapes (m, k, n) and (m, n)."""
    return np.asarray((rows * weights[:, None]).sum(axis=0))


@dataclass
class Point:
    """What an engine finds for n programs; whether it is good the certificate tells.

    Parameters
    ----------
    b : shape (n_dims, n).
    dual : multipliers of the epigraph rows, then of the rules, shape (n_rows, n).
    equal_dual : of the equalities, shape (n_equal, n).
    """

    b: Array
    dual: Array
    equal_dual: Array


Engine: TypeAlias = Callable[[Program], Point]
"""Solves programs."""
