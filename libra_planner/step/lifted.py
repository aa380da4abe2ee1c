"""The time expression as linear rows over reciprocals: the form solvers work on.

With u_f >= 1 / (form_f . B) and one variable t_k per maximum, every time expression
is ``constant + objective . w`` subject to ``rows . w + offsets <= 0``, w = (u, t).

The constant is all that no bandwidth changes: t_k is what a maximum takes beyond its length at
infinite bandwidth. So a transfer of a nanosecond beside an hour of compute, in a sum or in a
maximum, is not lost in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from libra_planner.step.expression import (
    Array,
    Constant,
    Labelled,
    Node,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
)

_Floors: TypeAlias = dict[int, tuple[float, float]]
"""By variable j what a time takes at least for its sake, ``floor w_j - hidden``."""


@dataclass(frozen=True)
class Lifted:
    """Linear form of a time expression, SI units.

    Parameters
    ----------
    forms : linear forms of the bandwidths, shape (n_forms, n_dims).
    objective : seconds per unit of w = (u, t), shape (n_forms + n_maxima,).
    constant_s : step time at infinite bandwidth.
    rows, offsets : epigraph rows, shapes (n_rows, n_forms + n_maxima) and (n_rows,); no offset
        is above zero, and each maximum has a row whose offset is zero.
    floors, hidden_s : T(B) - constant >= floors_j * w_j - hidden_j for every variable, same
        shape as objective; what takes less than something beside it hides behind that.
    """

    forms: Array
    objective: Array
    constant_s: float
    rows: Array
    offsets: Array
    floors: Array
    hidden_s: Array


@dataclass(frozen=True)
class _Affine:
    """A node's time as ``row . w + offset``, row and floors sparse."""

    row: dict[int, float]
    offset: float
    floors: _Floors


@dataclass
class _Builder:
    step: TimeExpression
    n_variables: int
    epigraph: list[tuple[dict[int, float], float]] = field(default_factory=list)

    def affine(self, node: Node) -> _Affine:
        """The time of a node; maxima get a variable and rows of their own."""
        if isinstance(node, Constant):
            return _Affine({}, node.seconds, {})
        if isinstance(node, Transfer):
            j = self.step.form_index[node.coefficients]
            return _Affine({j: node.n_bytes}, 0.0, {j: (node.n_bytes, 0.0)})
        if isinstance(node, Labelled):
            return self.affine(node.term)
        if isinstance(node, Scaled):
            return _scaled(node.factor, self.affine(node.term))
        parts = [self.affine(term) for term in node.terms]
        return _total(parts) if isinstance(node, Sum) else self._maximum(parts)

    def _maximum(self, parts: list[_Affine]) -> _Affine:
        """A new variable t: what the longest part takes beyond the longest offset."""
        j, longest = self.n_variables, max(part.offset for part in parts)
        self.n_variables += 1
        self.epigraph += [(part.row | {j: -1.0}, part.offset - longest) for part in parts]
        floors = [_hidden(part.floors, longest - part.offset) for part in parts]
        return _Affine({j: 1.0}, longest, _tightest([*floors, {j: (1.0, 0.0)}]))


def _scaled(factor: float, part: _Affine) -> _Affine:
    row = {j: factor * x for j, x in part.row.items()}
    floors = {j: (factor * floor, factor * hidden) for j, (floor, hidden) in part.floors.items()}
    return _Affine(row, factor * part.offset, floors)


def _total(parts: list[_Affine]) -> _Affine:
    row: dict[int, float] = {}
    for part in parts:
        for j, x in part.row.items():
            row[j] = row.get(j, 0.0) + x
    offset = sum(part.offset for part in parts)
    return _Affine(row, offset, _tightest([part.floors for part in parts]))


def _hidden(floors: _Floors, seconds: float) -> _Floors:
    return {j: (floor, hidden + seconds) for j, (floor, hidden) in floors.items()}


def _tightest(parts: list[_Floors]) -> _Floors:
    """Of each variable the floor that hides least, then the largest."""
    found: _Floors = {}
    for j, floor in (item for part in parts for item in part.items()):
        found[j] = min(found.get(j, floor), floor, key=lambda pair: (pair[1], -pair[0]))
    return found


def lift(step: TimeExpression) -> Lifted:
    """Lift a time expression.

    Examples
    --------
    >>> from libra_planner.step.expression import transfers
    >>> lifted = lift(TimeExpression(transfers([24.0, 6.0]), 2))
    >>> lifted.objective, lifted.rows.tolist()
    (array([0., 0., 1.]), [[24.0, 0.0, -1.0], [0.0, 6.0, -1.0]])
    """
    builder = _Builder(step, n_variables=len(step.forms))
    root = builder.affine(step.merged)
    n = builder.n_variables
    rows = np.zeros((len(builder.epigraph), n))
    for i, (part, _) in enumerate(builder.epigraph):
        rows[i] = _dense(part, n)
    return Lifted(
        forms=step.forms,
        objective=_dense(root.row, n),
        constant_s=root.offset,
        rows=rows,
        offsets=np.array([offset for _, offset in builder.epigraph], dtype=np.float64),
        floors=_dense({j: floor for j, (floor, _) in root.floors.items()}, n),
        hidden_s=_dense({j: hidden for j, (_, hidden) in root.floors.items()}, n),
    )


def _dense(row: dict[int, float], n: int) -> Array:
    dense = np.zeros(n)
    for j, value in row.items():
        dense[j] = value
    return dense
