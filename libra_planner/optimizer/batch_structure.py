"""The shape that the time expressions of a batch share, and their numbers as arrays.

A structure is a time expression without its numbers: its nodes, and the linear forms of
its transfers. The numbers (seconds of constants, bytes of transfers, factors of scalings)
stand in one array in the order of the tree. Arrays have the designs on the last axis, so
that every operation runs over contiguous designs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from libra_planner.step.expression import (
    Array,
    Constant,
    Labelled,
    Mask,
    Maximum,
    Node,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
)

Key: TypeAlias = tuple[object, ...]
_Floors: TypeAlias = dict[int, tuple[Array, Array]]


@dataclass(frozen=True)
class LiftedBatch:
    """Linear form of every design's time, see ``timing.lifted``; SI units.

    Parameters
    ----------
    forms : linear forms of the bandwidths, shape (n_forms, n_dims), of all designs.
    objective, floors, hidden_s : shape (n_forms + n_maxima, n).
    constant_s : shape (n,).
    rows : shape (n_rows, n_forms + n_maxima, n).
    offsets : shape (n_rows, n).
    """

    forms: Array
    objective: Array
    constant_s: Array
    rows: Array
    offsets: Array
    floors: Array
    hidden_s: Array


@dataclass(frozen=True)
class Structure:
    """A time expression without its numbers.

    Parameters
    ----------
    root : any expression of the structure; its numbers do not matter.
    n_dims : dimensions of the fabric.

    Examples
    --------
    >>> from libra_planner.step.expression import add, transfers
    >>> step = TimeExpression(add([Constant(1.0), transfers([24.0, 6.0])]), 2)
    >>> shape = Structure(step.merged, 2)
    >>> numbers(step.merged)
    [1.0, 24.0, 6.0]
    >>> shape.seconds(np.array([[1.0], [48.0], [6.0]]), np.array([[6.0], [2.0]]))
    array([9.])
    """

    root: Node
    n_dims: int

    def seconds(self, values: Array, bandwidth_bytes_per_s: Array) -> Array:
        """Step time, (n,), of numbers (n_numbers, n) and bandwidths (n_dims, n)."""
        forms = _forms(self.root)
        with np.errstate(divide="ignore"):
            reciprocals = {form: 1.0 / _value(form, bandwidth_bytes_per_s) for form in forms}
        return _seconds(self.root, iter(values), reciprocals)

    def least_s(self, values: Array) -> Array:
        """Step time at infinite bandwidth, shape (n,)."""
        return self.seconds(values, np.full((self.n_dims, values.shape[1]), np.inf))

    def lift(self, values: Array) -> LiftedBatch:
        """The linear form of every design, of numbers (n_numbers, n)."""
        return _Lift(_forms(self.root), values.shape[1]).run(self.root, values)

    def lift_per_cost(self, values: Array) -> LiftedBatch:
        """The same over (B/C, 1/C), where constants are transfers over 1/C (``per_cost``)."""
        over_scale = (0.0,) * self.n_dims + (1.0,)
        forms = {(*form, 0.0): i for form, i in _forms(self.root).items()}
        forms[over_scale] = len(forms)
        return _Lift(forms, values.shape[1], over_scale).run(self.root, values)

    def expression(self, values: Array) -> TimeExpression:
        """One design's expression, of its numbers, shape (n_numbers,)."""
        return TimeExpression(_rebuilt(self.root, iter(values)), self.n_dims)

    @property
    def dims_with_traffic(self) -> Mask:
        """Whether any transfer uses a dimension, shape (n_dims,)."""
        forms = np.array(list(_forms(self.root)), dtype=np.float64).reshape(-1, self.n_dims)
        return np.asarray((forms > 0).any(axis=0))


def shape_key(node: Node) -> Key:
    """What two trees of one structure have in common.

    >>> shape_key(Constant(1.0)) == shape_key(Constant(2.0))
    True
    """
    if isinstance(node, Constant):
        return (Constant,)
    if isinstance(node, Transfer):
        return (Transfer, node.coefficients)
    if isinstance(node, Scaled | Labelled):
        return (type(node), shape_key(node.term))
    return (type(node), *map(shape_key, node.terms))


def numbers(node: Node) -> list[float]:
    """Seconds, bytes and factors of a tree in its order."""
    return list(_numbers(node))


def _numbers(node: Node) -> Iterator[float]:
    if isinstance(node, Constant):
        yield node.seconds
    elif isinstance(node, Transfer):
        yield node.n_bytes
    elif isinstance(node, Scaled):
        yield node.factor
        yield from _numbers(node.term)
    else:
        for term in (node.term,) if isinstance(node, Labelled) else node.terms:
            yield from _numbers(term)


def is_transfer(node: Node) -> Iterator[bool]:
    """For every number of a tree whether it is the bytes of a transfer."""
    if isinstance(node, Constant | Transfer):
        yield isinstance(node, Transfer)
    elif isinstance(node, Scaled):
        yield False
        yield from is_transfer(node.term)
    else:
        for term in (node.term,) if isinstance(node, Labelled) else node.terms:
            yield from is_transfer(term)


def _rebuilt(node: Node, values: Iterator[float]) -> Node:
    if isinstance(node, Constant):
        return Constant(float(next(values)))
    if isinstance(node, Transfer):
        return Transfer(float(next(values)), node.coefficients)
    if isinstance(node, Scaled):
        return Scaled(float(next(values)), _rebuilt(node.term, values))
    if isinstance(node, Labelled):
        return Labelled(node.label, _rebuilt(node.term, values))
    kind = Sum if isinstance(node, Sum) else Maximum
    return kind(tuple(_rebuilt(term, values) for term in node.terms))


def _forms(node: Node) -> dict[tuple[float, ...], int]:
    """Row of each distinct linear form, in order of appearance."""
    found: dict[tuple[float, ...], int] = {}
    for form in _leaf_forms(node):
        found.setdefault(form, len(found))
    return found


def _leaf_forms(node: Node) -> Iterable[tuple[float, ...]]:
    if isinstance(node, Transfer):
        yield node.coefficients
    elif isinstance(node, Scaled | Labelled):
        yield from _leaf_forms(node.term)
    elif isinstance(node, Sum | Maximum):
        for term in node.terms:
            yield from _leaf_forms(term)


def _value(form: tuple[float, ...], bandwidth: Array) -> Array:
    used = [factor * row for factor, row in zip(form, bandwidth, strict=True) if factor]
    total: Array = used[0]
    for row in used[1:]:
        total = total + row
    return total


def _seconds(
    node: Node, values: Iterator[Array], reciprocals: dict[tuple[float, ...], Array]
) -> Array:
    if isinstance(node, Constant):
        return next(values)
    if isinstance(node, Transfer):
        row: Array = next(values) * reciprocals[node.coefficients]
        return row
    if isinstance(node, Scaled):
        factor = next(values)
        scaled: Array = factor * _seconds(node.term, values, reciprocals)
        return scaled
    if isinstance(node, Labelled):
        return _seconds(node.term, values, reciprocals)
    combine = np.add if isinstance(node, Sum) else np.maximum
    total, *rest = (_seconds(term, values, reciprocals) for term in node.terms)
    for part in rest:
        total = combine(total, part)
    return total


@dataclass(frozen=True)
class _Affine:
    """A node's times as ``row . w + offset``, and its floors (``timing.lifted``)."""

    row: dict[int, Array]
    offset: Array
    floors: _Floors


@dataclass
class _Lift:
    """``timing.lifted`` with an array over the designs in the place of every number."""

    forms: dict[tuple[float, ...], int]
    n: int
    over_scale: tuple[float, ...] | None = None
    n_variables: int = 0
    epigraph: list[tuple[dict[int, Array], Array]] = field(default_factory=list)

    def run(self, root: Node, values: Array) -> LiftedBatch:
        """All rows of all designs."""
        self.n_variables = len(self.forms)
        whole = self._affine(root, iter(values))
        n_w = self.n_variables
        rows = np.array([self._dense(part, n_w) for part, _ in self.epigraph])
        offsets = np.array([offset for _, offset in self.epigraph])
        return LiftedBatch(
            np.array(list(self.forms), dtype=np.float64),
            self._dense(whole.row, n_w),
            whole.offset,
            rows.reshape(len(rows), n_w, self.n),
            offsets.reshape(len(rows), self.n),
            self._dense({j: floor for j, (floor, _) in whole.floors.items()}, n_w),
            self._dense({j: hidden for j, (_, hidden) in whole.floors.items()}, n_w),
        )

    def _dense(self, row: dict[int, Array], n_w: int) -> Array:
        dense = np.zeros((n_w, self.n))
        for j, value in row.items():
            dense[j] = value
        return dense

    def _affine(self, node: Node, values: Iterator[Array]) -> _Affine:
        if isinstance(node, Constant):
            if self.over_scale is None:
                return _Affine({}, next(values), {})
            return self._leaf(self.over_scale, next(values))
        if isinstance(node, Transfer):
            form = node.coefficients if self.over_scale is None else (*node.coefficients, 0.0)
            return self._leaf(form, next(values))
        if isinstance(node, Labelled):
            return self._affine(node.term, values)
        if isinstance(node, Scaled):
            factor = next(values)
            return _scaled(factor, self._affine(node.term, values))
        parts = [self._affine(term, values) for term in node.terms]
        return self._total(parts) if isinstance(node, Sum) else self._maximum(parts)

    def _leaf(self, form: tuple[float, ...], size: Array) -> _Affine:
        j, zero = self.forms[form], np.zeros(self.n)
        return _Affine({j: size}, zero, {j: (size, zero)})

    def _total(self, parts: list[_Affine]) -> _Affine:
        row: dict[int, Array] = {}
        total = np.zeros(self.n)
        for part in parts:
            total = total + part.offset
            for j, x in part.row.items():
                row[j] = row[j] + x if j in row else x
        return _Affine(row, total, _tightest([part.floors for part in parts]))

    def _maximum(self, parts: list[_Affine]) -> _Affine:
        j, ones = self.n_variables, np.ones(self.n)
        self.n_variables += 1
        longest = np.max([part.offset * ones for part in parts], axis=0)
        self.epigraph += [(part.row | {j: -ones}, part.offset - longest) for part in parts]
        floors = [_hidden(part.floors, longest - part.offset) for part in parts]
        return _Affine({j: ones}, longest, _tightest([*floors, {j: (ones, 0.0 * ones)}]))


def _scaled(factor: Array, part: _Affine) -> _Affine:
    row = {j: factor * x for j, x in part.row.items()}
    floors = {j: (factor * floor, factor * hidden) for j, (floor, hidden) in part.floors.items()}
    return _Affine(row, factor * part.offset, floors)


def _hidden(floors: _Floors, seconds: Array) -> _Floors:
    return {j: (floor, hidden + seconds) for j, (floor, hidden) in floors.items()}


def _tightest(parts: list[_Floors]) -> _Floors:
    """Of each variable and design the floor that hides least, then the largest."""
    found: _Floors = {}
    for j, (floor, hidden) in (item for part in parts for item in part.items()):
        least, shown = found.get(j, (floor, hidden))
        better = (hidden < shown) | ((hidden == shown) & (floor > least))
        found[j] = np.where(better, floor, least), np.where(better, hidden, shown)
    return found
