"""The time expression as linear rows over reciprocals: the form solvers work on.

With u_f >= 1 / (form_f . B) and one variable t_k per maximum, every time expression
is ``constant + objective . w`` subject to ``rows . w + offsets <= 0``, w = (u, t).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from libra_planner.timing.expression import (
    Array,
    Constant,
    Labelled,
    Node,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
)


@dataclass(frozen=True)
class Lifted:
    """Linear form of a time expression, SI units.

    Parameters
    ----------
    forms : linear forms of the bandwidths, shape (n_forms, n_dims).
    objective : seconds per unit of w = (u, t), shape (n_forms + n_maxima,).
    constant_s : seconds that no bandwidth changes.
    rows, offsets : epigraph rows, shapes (n_rows, n_forms + n_maxima) and (n_rows,).
    floors : T(B) - constant >= floors_j * w_j for every variable, same shape as objective.
    """

    forms: Array
    objective: Array
    constant_s: float
    rows: Array
    offsets: Array
    floors: Array


@dataclass
class _Builder:
    step: TimeExpression
    n_forms: int
    n_variables: int = 0
    epigraph: list[tuple[dict[int, float], float]] = field(default_factory=list)
    floors: dict[int, float] = field(default_factory=dict)

    def affine(self, node: Node, factor: float) -> tuple[dict[int, float], float]:
        """Node as sparse row and offset; ``factor`` scales it on the way to the root."""
        if isinstance(node, Constant):
            return {}, node.seconds
        if isinstance(node, Transfer):
            return self._leaf(node, factor)
        if isinstance(node, Labelled):
            return self.affine(node.term, factor)
        if isinstance(node, Scaled):
            row, offset = self.affine(node.term, factor * node.factor)
            return {j: node.factor * x for j, x in row.items()}, node.factor * offset
        parts = [self.affine(term, factor) for term in node.terms]
        return self._total(parts) if isinstance(node, Sum) else self._epigraph(factor, parts)

    def _leaf(self, node: Transfer, factor: float) -> tuple[dict[int, float], float]:
        j = self.step.form_index[node.coefficients]
        self.floors[j] = max(self.floors.get(j, 0.0), factor * node.n_bytes)
        return {j: node.n_bytes}, 0.0

    @staticmethod
    def _total(parts: list[tuple[dict[int, float], float]]) -> tuple[dict[int, float], float]:
        row: dict[int, float] = {}
        for part, _ in parts:
            for j, x in part.items():
                row[j] = row.get(j, 0.0) + x
        return row, sum(offset for _, offset in parts)

    def _epigraph(
        self, factor: float, parts: list[tuple[dict[int, float], float]]
    ) -> tuple[dict[int, float], float]:
        """A new variable t with t >= every part; nested constants may not be negative."""
        j = self.n_variables
        self.n_variables += 1
        self.floors[j] = factor
        self.epigraph += [(part | {j: -1.0}, offset) for part, offset in parts]
        return {j: 1.0}, 0.0


def lift(step: TimeExpression) -> Lifted:
    """Lift a time expression.

    Examples
    --------
    >>> from libra_planner.timing.expression import transfers
    >>> lifted = lift(TimeExpression(transfers([24.0, 6.0]), 2))
    >>> lifted.objective, lifted.rows.tolist()
    (array([0., 0., 1.]), [[24.0, 0.0, -1.0], [0.0, 6.0, -1.0]])
    """
    n_forms = len(step.forms)
    builder = _Builder(step, n_forms, n_variables=n_forms)
    row, constant_s = builder.affine(step.merged, 1.0)
    n = builder.n_variables
    rows = np.zeros((len(builder.epigraph), n))
    for i, (part, _) in enumerate(builder.epigraph):
        rows[i] = _dense(part, n)
    offsets = np.array([offset for _, offset in builder.epigraph], dtype=np.float64)
    return Lifted(step.forms, _dense(row, n), constant_s, rows, offsets, _dense(builder.floors, n))


def _dense(row: dict[int, float], n: int) -> Array:
    dense = np.zeros(n)
    for j, value in row.items():
        dense[j] = value
    return dense
