"""Training loops against a plain walk over the layers, and what every loop must be."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libra_planner.step.critical_path import COMPUTE, critical_path
from libra_planner.step.expression import (
    Constant,
    Labelled,
    Maximum,
    Node,
    Scaled,
    Sum,
    Transfer,
    terms_of,
)
from libra_planner.step.layers import LOOPS, TrainingLoop
from libra_planner.workload.operations import Workload
from tests.problems import lifted_alone
from tests.workloads import Step, steps

names = st.sampled_from(sorted(LOOPS))
seeds = st.integers(0, 2**32 - 1)


def _vectors(step: Step, seed: int, n: int) -> np.ndarray:
    return 10.0 ** np.random.default_rng(seed).uniform(8, 12, (n, step.n_dims))


@given(steps(), names, st.booleans(), seeds)
def test_loops_equal_the_plain_walk(step: Step, name: str, contention: bool, seed: int) -> None:
    vectors = _vectors(step, seed, 10)
    expression = step.expression(name, contention=contention)
    plain = [step.seconds(name, vector, contention=contention) for vector in vectors]
    assert np.allclose(expression.seconds(vectors), plain, rtol=1e-12, atol=0)


@given(steps(), names, st.booleans(), seeds)
def test_loops_are_non_increasing_and_convex(
    step: Step, name: str, contention: bool, seed: int
) -> None:
    a, b, extra = _vectors(step, seed, 3)
    expression = step.expression(name, contention=contention)
    assert expression.seconds(a + extra) <= expression.seconds(a) * (1 + 1e-12)
    share = np.linspace(0, 1, 7)[:, None]
    chord = share[:, 0] * expression.seconds(b) + (1 - share[:, 0]) * expression.seconds(a)
    assert (expression.seconds(share * b + (1 - share) * a) <= chord * (1 + 1e-12)).all()


@given(steps(), st.sampled_from(["tp_dp_overlap", "async_dp"]), seeds)
def test_overlap_saves_time_and_contention_takes_some_of_it_back(
    step: Step, name: str, seed: int
) -> None:
    vectors = _vectors(step, seed, 10)
    free = step.expression(name, contention=False).seconds(vectors)
    competing = step.expression(name).seconds(vectors)
    serial = step.expression("no_overlap").seconds(vectors)
    assert (free <= competing).all()
    assert (competing <= serial * (1 + 1e-12)).all()


@given(steps(), names, st.booleans(), st.sampled_from([0.0, 0.25]), seeds)
def test_shares_add_up_and_compute_is_what_infinite_bandwidth_leaves(
    step: Step, name: str, contention: bool, bubble: float, seed: int
) -> None:
    (vector,) = _vectors(step, seed, 1)
    expression = step.expression(name, contention=contention, bubble=bubble)
    shares = critical_path(expression, vector)
    seconds = (1 + bubble) * step.seconds(name, vector, contention=contention)
    endless = (1 + bubble) * step.seconds(name, vector * 1e200, contention=contention)
    assert sum(share.seconds for share in shares) == pytest.approx(seconds, rel=1e-9)
    compute = sum(share.seconds for share in shares if share.label == COMPUTE)
    assert compute == pytest.approx(endless, rel=1e-9)
    assert compute == expression.least_s
    assert all(share.seconds > 0 for share in shares)


@settings(max_examples=15)
@given(steps(), names, seeds)
def test_cvxpy_sees_the_same_step_time(step: Step, name: str, seed: int) -> None:
    """Least constant + objective . w over the lifted rows, at a fixed vector."""
    (vector,) = _vectors(step, seed, 1)
    expression = step.expression(name)
    lifted = lifted_alone(expression)
    n_forms = len(lifted.forms)
    if not n_forms:
        return
    unit_s = float(expression.seconds(vector))  # Solvers want numbers near 1.
    scales = np.ones(len(lifted.objective)) * unit_s
    scales[:n_forms] = 1 / (lifted.forms @ vector)
    w = cp.Variable(len(lifted.objective))
    rows = [(lifted.rows * scales) @ w / unit_s + lifted.offsets / unit_s <= 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = cp.Problem(
            cp.Minimize((lifted.objective * scales / unit_s) @ w),
            [w[:n_forms] >= 1, *(rows if len(lifted.rows) else [])],
        )
        problem.solve(solver=cp.CLARABEL)
    assert problem.value + lifted.constant_s / unit_s == pytest.approx(1, rel=1e-6)


@given(steps(), names, st.booleans(), st.integers(2, 5))
def test_equal_and_proportional_layers_merge(
    step: Step, name: str, contention: bool, copies: int
) -> None:
    operations = [
        replace(op, layer=f"{op.layer} of {k}", count=op.count * (k + 1))
        for k in range(copies)
        for op in step.workload.operations
    ]
    repeated = replace(step, workload=Workload("repeated", tuple(operations)))
    once = step.expression(name, contention=contention)
    many = repeated.expression(name, contention=contention)
    assert _n_maxima(many.merged) == _n_maxima(once.merged)
    vector = np.full(step.n_dims, 3e9)
    factor = copies * (copies + 1) / 2
    assert many.seconds(vector) == pytest.approx(factor * float(once.seconds(vector)), rel=1e-11)


def _n_maxima(node: Node) -> int:
    if isinstance(node, Scaled | Labelled):
        return _n_maxima(node.term)
    inner = sum(map(_n_maxima, node.terms)) if isinstance(node, Sum | Maximum) else 0
    return inner + isinstance(node, Maximum)


@given(steps(), names, st.booleans(), seeds)
def test_a_loop_of_the_whole_step_overlaps_the_totals(
    step: Step, name: str, contention: bool, seed: int
) -> None:
    (vector,) = _vectors(step, seed, 1)
    totals = [
        replace(
            op,
            layer="all",
            count=1,
            compute_s=op.count * op.compute_s,
            collective=op.collective
            and replace(op.collective, size_bytes=op.count * op.collective.size_bytes),
        )
        for op in step.workload.operations
    ]
    plain = replace(step, workload=Workload("one", tuple(totals)))
    loop = TrainingLoop(LOOPS[name], per_layer=False, contention=contention)
    expected = plain.seconds(name, vector, contention=contention)
    assert float(step.under(loop).seconds(vector)) == pytest.approx(expected, rel=1e-11)


@settings(max_examples=15)
@given(steps(), names, seeds)
def test_shares_are_what_the_step_gains_while_communication_grows(
    step: Step, name: str, seed: int
) -> None:
    """A slow twin: from nothing to all of it in small parts, each operation class by itself."""
    (vector,) = _vectors(step, seed, 1)
    expression, n = step.expression(name), 200
    shares = [one for one in critical_path(expression, vector) if one.label != COMPUTE]
    found: dict[str, float] = dict.fromkeys((one.label for one in shares), 0.0)
    for one in shares:
        found[one.label] += one.seconds
    for label, exposed_s in found.items():
        gained = 0.0
        for i in range(n):
            middle, h = (i + 0.5) / n, 1e-6
            before, after = (
                _grown(expression.root, vector, label, middle, middle + x) for x in (-h, h)
            )
            gained += (after - before) / (2 * h) / n
        assert gained == pytest.approx(exposed_s, abs=8 / n * float(expression.seconds(vector)))


def _grown(
    node: Node, vector: np.ndarray, label: str, others: float, mine: float, now: float = 0.0
) -> float:
    """A tree's time with one label grown to ``mine``, all others to ``others``."""
    if isinstance(node, Labelled):
        share = mine if node.label == label else others
        return _grown(node.term, vector, label, others, mine, share)
    if isinstance(node, Constant):
        return (now or 1.0) * node.seconds
    if isinstance(node, Transfer):
        return now * node.n_bytes / float(np.dot(node.coefficients, vector))
    if isinstance(node, Scaled):
        return node.factor * _grown(node.term, vector, label, others, mine, now)
    terms = [_grown(term, vector, label, others, mine, now) for term in terms_of(node)]
    return max(terms) if isinstance(node, Maximum) else sum(terms)
