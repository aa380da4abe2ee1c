"""The time expression against a plain loop over collectives and dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.step.critical_path import critical_path
from libra_planner.step.expression import (
    Constant,
    Labelled,
    Sum,
    TimeExpression,
    add,
    maximum,
    scale,
    transfers,
)
from tests.problems import Collectives, collectives, lifted_alone

seeds = st.integers(0, 2**32 - 1)


def _vectors(step: Collectives, seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 10.0 ** rng.uniform(8, 14, (n, step.bytes_by_dim.shape[1]))


@given(collectives(), seeds)
def test_vectorised_equals_the_plain_loop(step: Collectives, seed: int) -> None:
    vectors = _vectors(step, seed, 20)
    plain = [step.seconds(vector) for vector in vectors]
    assert np.allclose(step.expression().seconds(vectors), plain, rtol=1e-12)


@given(collectives(), seeds)
def test_more_bandwidth_is_never_slower(step: Collectives, seed: int) -> None:
    before, extra = _vectors(step, seed, 2)
    expression = step.expression()
    assert expression.seconds(before + extra) <= expression.seconds(before) * (1 + 1e-15)


@given(collectives(), seeds)
def test_step_time_is_convex(step: Collectives, seed: int) -> None:
    a, b = _vectors(step, seed, 2)
    expression = step.expression()
    middle = expression.seconds((a + b) / 2)
    assert middle <= (expression.seconds(a) + expression.seconds(b)) / 2 * (1 + 1e-12)


@given(collectives(), seeds)
def test_shares_add_up_to_the_step_time(step: Collectives, seed: int) -> None:
    (vector,) = _vectors(step, seed, 1)
    labelled = [Labelled(f"c{i}", transfers(row)) for i, row in enumerate(step.bytes_by_dim)]
    expression = TimeExpression(add([Constant(step.compute_s), *labelled]), len(vector))
    total = sum(share.seconds for share in critical_path(expression, vector))
    assert total == pytest.approx(step.seconds(vector), rel=1e-12)


@given(collectives(), seeds)
def test_lifted_rows_hold_with_equality_at_the_least_w(step: Collectives, seed: int) -> None:
    (vector,) = _vectors(step, seed, 1)
    expression = step.expression()
    lifted = lifted_alone(expression)
    n_forms = len(lifted.forms)
    w = np.zeros(len(lifted.objective))
    w[:n_forms] = 1 / (lifted.forms @ vector)
    for k in range(n_forms, len(w)):
        own = lifted.rows[:, k] < 0
        w[k] = (lifted.rows[own][:, :k] @ w[:k] + lifted.offsets[own]).max()
    seconds = lifted.constant_s + lifted.objective @ w
    assert seconds == pytest.approx(step.seconds(vector), rel=1e-12, abs=1e-300)
    assert ((lifted.floors * w) <= seconds - lifted.constant_s + 1e-12 * seconds).all()


@given(collectives(), st.integers(1, 5))
def test_identical_and_proportional_terms_merge(step: Collectives, copies: int) -> None:
    nodes = [scale(k, transfers(row)) for row in step.bytes_by_dim for k in range(1, copies + 1)]
    merged = TimeExpression(add(nodes), step.bytes_by_dim.shape[1])
    if isinstance(merged.merged, Sum):
        assert len(merged.merged.terms) <= len(step.bytes_by_dim)
    vector = np.full(step.bytes_by_dim.shape[1], 1e9)
    plain = Collectives(0.0, step.bytes_by_dim).seconds(vector) * copies * (copies + 1) / 2
    assert float(merged.seconds(vector)) == pytest.approx(plain, rel=1e-11)


def test_a_dimension_without_traffic_costs_nothing_even_at_zero() -> None:
    expression = TimeExpression(transfers([100.0, 0.0]), 2)
    assert float(expression.seconds(np.array([50.0, 0.0]))) == 2.0
    assert np.isinf(expression.seconds(np.array([0.0, 50.0])))


def test_a_maximum_of_sums_waits_for_the_longer_side() -> None:
    left = add([Constant(1.0), transfers([100.0, 0.0])])
    right = transfers([0.0, 300.0])
    expression = TimeExpression(maximum([left, right]), 2)
    assert expression.seconds(np.array([[100.0, 100.0], [100.0, 300.0]])).tolist() == [3.0, 2.0]
