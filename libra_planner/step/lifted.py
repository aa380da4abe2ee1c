"""The time expression as linear rows over reciprocals: the form solvers work on.

With u_f >= 1 / (form_f . B) and one variable t_k per maximum, every time expression
is ``constant + objective . w`` subject to ``rows . w + offsets <= 0``, w = (u, t).

The constant is all that no bandwidth changes: t_k is what a maximum takes beyond its length at
infinite bandwidth. So a transfer of a nanosecond beside an hour of compute, in a sum or in a
maximum, is not lost in it.

Expressions of one structure (a tree without its numbers) are lifted together: their numbers
(seconds of constants, bytes of transfers, factors of scalings) stand in one array in the order of
the tree, the designs on the last axis, so that every operation runs over contiguous designs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

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
    leaves,
)

Key: TypeAlias = tuple[object, ...]
_Form: TypeAlias = tuple[float, ...]
_Floors: TypeAlias = dict[int, tuple[Array, Array]]
"""By variable j what a time takes at least for its sake, ``floor w_j - hidden``."""

_Seconds = TypeVar("_Seconds", float, Array)


@dataclass(frozen=True)
class LiftedTimes(Generic[_Seconds]):
    """Linear form of the times of n designs, SI units; of a single one without the last axis.

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
    constant_s: _Seconds
    rows: Array
    offsets: Array
    floors: Array
    hidden_s: Array


Lifted: TypeAlias = LiftedTimes[float]
LiftedBatch: TypeAlias = LiftedTimes[Array]


def lift(step: TimeExpression) -> Lifted:
    """Lift a time expression.

    Examples
    --------
    >>> from libra_planner.step.expression import transfers
    >>> lifted = lift(TimeExpression(transfers([24.0, 6.0]), 2))
    >>> lifted.objective, lifted.rows.tolist()
    (array([0., 0., 1.]), [[24.0, 0.0, -1.0], [0.0, 6.0, -1.0]])
    """
    values = np.array(numbers(step.merged))[:, None]
    lifted = vars(Structure(step.merged, step.n_dims).lift(values))
    first = {name: array.take(0, axis=-1) for name, array in lifted.items() if name != "forms"}
    return LiftedTimes(forms=lifted["forms"], **first)


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

    @cached_property
    def _forms(self) -> tuple[_Form, ...]:
        """The distinct linear forms, in order of appearance."""
        return tuple(dict.fromkeys(leaf.coefficients for leaf in leaves(self.root)))

    @property
    def dims_with_traffic(self) -> Mask:
        """Whether any transfer uses a dimension, shape (n_dims,)."""
        forms = np.array(self._forms, dtype=np.float64).reshape(-1, self.n_dims)
        return np.asarray((forms > 0).any(axis=0))

    def seconds(self, values: Array, bandwidth_bytes_per_s: Array) -> Array:
        """Step time, (n,), of numbers (n_numbers, n) and bandwidths (n_dims, n)."""
        with np.errstate(divide="ignore"):
            reciprocals = {
                form: 1.0 / _form_value(form, bandwidth_bytes_per_s) for form in self._forms
            }
        return _seconds(self.root, iter(values), reciprocals)

    def least_s(self, values: Array) -> Array:
        """Step time at infinite bandwidth, shape (n,)."""
        return self.seconds(values, np.full((self.n_dims, values.shape[1]), np.inf))

    def lift(self, values: Array) -> LiftedBatch:
        """The linear form of every design, of numbers (n_numbers, n)."""
        return _Builder(self._forms, self.n_dims, values.shape[1]).lifted(self.root, values)

    def expression(self, values: Array) -> TimeExpression:
        """One design's expression, of its numbers, shape (n_numbers,)."""
        return TimeExpression(_rebuilt(self.root, iter(values)), self.n_dims)


def shape_key(node: Node) -> Key:
    """What two trees of one structure have in common.

    >>> shape_key(Constant(1.0)) == shape_key(Constant(2.0))
    True
    """
    form = (node.coefficients,) if isinstance(node, Transfer) else ()
    return (type(node), *form, *map(shape_key, _terms(node)))


def numbers(node: Node) -> list[float]:
    """Seconds, bytes and factors of a tree in its order."""
    return [number for _, number in _numbers(node)]


def is_transfer(node: Node) -> Mask:
    """For every number of a tree whether it is the bytes of a transfer."""
    return np.array([isinstance(owner, Transfer) for owner, _ in _numbers(node)], dtype=bool)


def _terms(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Constant | Transfer):
        return ()
    return (node.term,) if isinstance(node, Scaled | Labelled) else node.terms


def _numbers(node: Node) -> Iterator[tuple[Node, float]]:
    """Every number of a tree with the node it belongs to."""
    if isinstance(node, Constant):
        yield node, node.seconds
    elif isinstance(node, Transfer):
        yield node, node.n_bytes
    elif isinstance(node, Scaled):
        yield node, node.factor
    for term in _terms(node):
        yield from _numbers(term)


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


def _form_value(form: _Form, bandwidth: Array) -> Array:
    used = [factor * row for factor, row in zip(form, bandwidth, strict=True) if factor]
    total: Array = used[0]
    for row in used[1:]:
        total = total + row
    return total


def _seconds(node: Node, values: Iterator[Array], reciprocals: dict[_Form, Array]) -> Array:
    if isinstance(node, Constant):
        return next(values)
    if isinstance(node, Transfer):
        row: Array = next(values) * reciprocals[node.coefficients]
        return row
    if isinstance(node, Scaled):
        factor = next(values)
        scaled: Array = factor * _seconds(node.term, values, reciprocals)
        return scaled
    combine = np.maximum if isinstance(node, Maximum) else np.add
    total, *rest = (_seconds(term, values, reciprocals) for term in _terms(node))
    for part in rest:
        total = combine(total, part)
    return total


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

    def floors_behind(self, seconds: Array) -> _Floors:
        """The floors where something beside the node takes ``seconds`` longer."""
        return {j: (low, hidden + seconds) for j, (low, hidden) in self.floors.items()}


@dataclass
class _Builder:
    """Rows of a tree over given linear forms."""

    forms: tuple[_Form, ...]
    n_dims: int
    n: int
    n_variables: int = 0
    epigraph: list[tuple[dict[int, Array], Array]] = field(default_factory=list)

    def lifted(self, root: Node, values: Array) -> LiftedBatch:
        """All rows of all designs."""
        self.n_variables = len(self.forms)
        whole = self._affine(root, iter(values))
        rows = np.array([self._dense(part) for part, _ in self.epigraph])
        offsets = np.array([offset for _, offset in self.epigraph])
        return LiftedTimes(
            forms=np.array(self.forms, dtype=np.float64).reshape(-1, self.n_dims),
            objective=self._dense(whole.row),
            constant_s=whole.offset * np.ones(self.n),
            rows=rows.reshape(len(rows), self.n_variables, self.n),
            offsets=offsets.reshape(len(rows), self.n),
            floors=self._dense({j: floor for j, (floor, _) in whole.floors.items()}),
            hidden_s=self._dense({j: hidden for j, (_, hidden) in whole.floors.items()}),
        )

    def _dense(self, row: dict[int, Array]) -> Array:
        dense = np.zeros((self.n_variables, self.n))
        for j, value in row.items():
            dense[j] = value
        return dense

    def _affine(self, node: Node, values: Iterator[Array]) -> _Affine:
        """The time of a node; maxima get a variable and rows of their own."""
        if isinstance(node, Constant):
            return _Affine({}, next(values), {})
        if isinstance(node, Transfer):
            j, size, zero = self.forms.index(node.coefficients), next(values), np.zeros(self.n)
            return _Affine({j: size}, zero, {j: (size, zero)})
        if isinstance(node, Labelled):
            return self._affine(node.term, values)
        if isinstance(node, Scaled):
            factor = next(values)
            return self._affine(node.term, values).scaled(factor)
        parts = [self._affine(term, values) for term in node.terms]
        return self._total(parts) if isinstance(node, Sum) else self._maximum(parts)

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
        floors = [part.floors_behind(longest - part.offset) for part in parts]
        return _Affine({j: ones}, longest, _tightest([*floors, {j: (ones, 0.0 * ones)}]))


def _tightest(parts: list[_Floors]) -> _Floors:
    """Of each variable and design the floor that hides least, then the largest."""
    found: _Floors = {}
    for j, (floor, hidden) in (item for part in parts for item in part.items()):
        least, shown = found.get(j, (floor, hidden))
        better = (hidden < shown) | ((hidden == shown) & (floor > least))
        found[j] = np.where(better, floor, least), np.where(better, hidden, shown)
    return found
