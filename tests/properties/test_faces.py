"""The first point of a polyhedron by linear programs, against a list of all its vertices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.optimizer.design import _lexicographic, _vertices
from libra_planner.optimizer.programs.faces import first_points


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_first_points_are_the_first_of_all_vertices(seed: int, k: int, ties: bool) -> None:
    """A simplex of one total, with sums of coordinates at least so much; prices may be alike."""
    rng = np.random.default_rng(seed)
    within = rng.dirichlet(np.ones(k))
    sums = (rng.random((4, k)) < 0.6).astype(float)
    rows = np.vstack([np.ones((1, k)), -sums[sums.any(axis=1)], -np.eye(k)])
    least = rows @ within
    bounds = np.where(np.arange(len(rows)) == 0, 1.0, least * rng.uniform(0.2, 1.0, len(rows)))
    bounds[-k:] = 0.0
    price = np.round(rng.uniform(1, 3, k)) if ties else rng.uniform(1, 3, k)
    args = (price[:, None], np.repeat(rows[..., None], 2, 2), np.repeat(bounds[:, None], 2, 1))
    price_of_both = np.repeat(args[0], 2, 1)
    spread = np.full((k, 2), 1e-6)
    points, unique, found = first_points(price_of_both, *args[1:], 1, spread)
    x, feasible = _vertices(*args[1:], 1, k)
    pick, alone = _lexicographic(price_of_both, x, feasible, np.ones((k, 2)))
    assert found.all()
    assert points[:, 0] == pytest.approx(x[pick[0], :, 0], abs=1e-9)
    assert float(price @ points[:, 0]) == pytest.approx(float(price @ x[pick[0], :, 0]), rel=1e-9)
    assert unique.tolist() == alone.tolist()


def test_an_empty_polyhedron_has_no_point() -> None:
    rows, bounds = np.array([[1.0], [-1.0]])[..., None], np.array([[1.0], [-2.0]])
    found = first_points(np.ones((1, 1)), rows, bounds, 0, np.full((1, 1), 1e-6))[2]
    assert not found.any()


def test_what_has_no_end_is_not_the_only_one() -> None:
    """x + y >= 1 where neither costs anything: (0, 1) comes first."""
    rows = np.array([[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]])[..., None]
    bounds = np.array([[-1.0], [0.0], [0.0]])
    free = first_points(np.zeros((2, 1)), rows, bounds, 0, np.full((2, 1), 1e-6))
    assert free[0].T.tolist() == [[0.0, 1.0]]
    assert (free[1].tolist(), free[2].tolist()) == ([False], [True])
