"""The first vertex of a polyhedron that has too many to list, by linear programs, design by design.

The cheapest point first; where its multipliers leave it open whether others are as cheap, the
least of each coordinate in turn, and how far that could be from the largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.step.expression import Array, Mask

_OPTIMAL = 0
_PULL = 1e-9
"""Multiplier, over the largest price, above which a row holds the cheapest point."""

_PARALLEL = 1e-7
_FEASIBLE = 1e-10
"""Violation of a row that HiGHS allows: what is as cheap but for rounding."""


@dataclass(frozen=True)
class Face:
    """``rows x <= bounds`` of one design, the first ``n_equal`` of them equalities.

    Parameters
    ----------
    rows, bounds : shapes (n_rows, k) and (n_rows,), rows with a largest coefficient of 1.
    """

    rows: Array
    bounds: Array
    n_equal: int

    def least(self, cost: Array) -> tuple[Array, Array] | None:
        """Where cost.x is least, shape (k,), and the multipliers of the rows; or nothing."""
        from scipy.optimize import linprog

        n = self.n_equal
        result = linprog(
            cost,
            self.rows[n:],
            self.bounds[n:],
            self.rows[:n],
            self.bounds[:n],
            bounds=(None, None),
            method="highs",
            options={"primal_feasibility_tolerance": _FEASIBLE},
        )
        if result.status != _OPTIMAL:
            return None
        pull = np.concatenate([result.eqlin.marginals, result.ineqlin.marginals])
        return np.asarray(result.x), np.abs(pull)

    def below(self, cost: Array, most: float) -> Face:
        """The part where cost.x is at most so much."""
        size = np.abs(cost).max() or 1.0
        rows = np.concatenate([self.rows, cost[None] / size])
        return Face(rows, np.append(self.bounds, most / size), self.n_equal)


def first_points(
    price: Array, rows: Array, bounds: Array, n_equal: int, spread: Array
) -> tuple[Array, Mask, Mask]:
    """The cheapest, then lexicographically first, points of polyhedra; the last axis is designs.

    Parameters
    ----------
    price : shape (k, n).
    rows, bounds : shapes (n_rows, k, n), (n_rows, n), as in :class:`Face`.
    spread : how far apart coordinates of equal points may be, shape (k, n).

    Returns
    -------
    Points of 0 or more, shape (k, n); whether each is the only one, and whether there is any,
    shape (n,).

    Examples
    --------
    x + y = 3 with x, y >= 1, where x costs 2 and y 1, and where they cost the same:

    >>> rows = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[..., None].repeat(2, axis=2)
    >>> bounds, price = np.array([[3.0] * 2, [-1.0] * 2, [-1.0] * 2]), np.array([[2.0, 1], [1, 1]])
    >>> points, unique, found = first_points(price, rows, bounds, 1, np.full((2, 2), 1e-6))
    >>> points.T.round(6).tolist(), unique.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [True, False])
    """
    k, n = price.shape
    points, unique, found = np.zeros((k, n)), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for i in range(n):
        if i and all(np.array_equal(x[..., i], x[..., i - 1]) for x in (rows, bounds, price)):
            points[:, i], unique[i], found[i] = points[:, i - 1], unique[i - 1], found[i - 1]
            continue
        face = Face(rows[..., i], bounds[:, i], n_equal)
        first = _first_point(face, price[:, i], spread[:, i])
        if first is not None:
            points[:, i], unique[i], found[i] = *first, True
    return np.maximum(points, 0.0), unique, found


def _first_point(face: Face, price: Array, spread: Array) -> tuple[Array, bool] | None:
    cheapest = face.least(price)
    if cheapest is None:
        return None
    point, pull = cheapest
    if _holds(face, pull > _PULL * np.abs(price).max()):
        return point, True
    unique, cost = True, price
    for i, axis in enumerate(np.eye(len(price))):
        face = face.below(cost, float(cost @ point))
        least, most = face.least(axis), face.least(-axis)
        if least is None:
            return None
        unique &= most is not None and bool(most[0][i] - least[0][i] <= spread[i])
        point, cost = least[0], axis
    return point, unique


def _holds(face: Face, pulled: Mask) -> bool:
    """Whether the rows with a multiplier leave one point."""
    rows = np.concatenate([face.rows[: face.n_equal], face.rows[pulled & _further(face)]])
    if len(rows) < rows.shape[1]:
        return False
    return bool(np.linalg.svd(rows, compute_uv=False)[-1] > _PARALLEL)


def _further(face: Face) -> Mask:
    return np.arange(len(face.rows)) >= face.n_equal
