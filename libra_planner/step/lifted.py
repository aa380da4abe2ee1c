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
from typing import TypeAlias

import numpy as np

from libra_planner.step.expression import (
    Array,
    Constant,
    Maximum,
    Node,
    Scaled,
    Structure,
    Transfer,
    terms_of,
)

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


def lift(structure: Structure, values: Array) -> LiftedTimes:
    """The linear form of every design, of numbers (n_numbers, n).

    Examples
    --------
    >>> from libra_planner.step.expression import TimeExpression, transfers
    >>> step = TimeExpression(transfers([24.0, 6.0]), 2)
    >>> lifted = lift(step.structure, np.array(step.numbers)[:, None])
    >>> lifted.objective[:, 0], lifted.rows[..., 0].tolist()
    (array([0., 0., 1.]), [[24.0, 0.0, -1.0], [0.0, 6.0, -1.0]])
    """
    return _Builder(structure, values.shape[1]).lifted(values)


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
    """Rows of the trees of a structure."""

    structure: Structure
    n: int
    n_variables: int = 0
    epigraph: list[tuple[dict[int, Array], Array]] = field(default_factory=list)

    def lifted(self, values: Array) -> LiftedTimes:
        """All rows of all designs."""
        self.n_variables = len(self.structure.forms)
        whole = self._affine(self.structure.root, iter(values))
        rows = np.array([self._dense(part) for part, _ in self.epigraph])
        offsets = np.array([offset for _, offset in self.epigraph])
        return LiftedTimes(
            forms=self.structure.rows,
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
            j = self.structure.forms.index(node.coefficients)
            size, zero = next(values), np.zeros(self.n)
            return _Affine({j: size}, zero, {j: (size, zero)})
        if isinstance(node, Scaled):
            factor = next(values)
            return self._affine(node.term, values).scaled(factor)
        parts = [self._affine(term, values) for term in terms_of(node)]
        return self._maximum(parts) if isinstance(node, Maximum) else self._total(parts)

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
