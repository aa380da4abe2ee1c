"""Expressions whose maxima contain sums: what overlapping loops are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, Rule
from libra_planner.step.expression import (
    Constant,
    TimeExpression,
    Transfer,
    add,
    maximum,
    transfers,
)
from tests.conftest import random_cases
from tests.problems import plan_of

BUDGET = 500e9


@dataclass(frozen=True)
class Overlap:
    """compute + max(hidden compute + left + middle, right), each a collective."""

    compute_s: float
    hidden_s: float
    bytes_by_dim: np.ndarray  # (3, n_dims)

    def expression(self) -> TimeExpression:
        left, middle, right = map(transfers, self.bytes_by_dim)
        longer = maximum([add([Constant(self.hidden_s), left, middle]), right])
        return TimeExpression(add([Constant(self.compute_s), longer]), self.bytes_by_dim.shape[1])

    def seconds(self, bandwidth: np.ndarray) -> float:
        left, middle, right = (float((row / bandwidth).max()) for row in self.bytes_by_dim)
        return self.compute_s + max(self.hidden_s + left + middle, right)


@st.composite
def overlaps(draw: st.DrawFn) -> Overlap:
    n_dims = draw(st.integers(2, 4))
    size = st.floats(1e8, 1e10)
    rows = draw(st.lists(st.lists(size, min_size=n_dims, max_size=n_dims), min_size=3, max_size=3))
    hidden_s = draw(st.sampled_from([0.0, 0.01, 0.1]))
    return Overlap(draw(st.sampled_from([0.0, 0.5])), hidden_s, np.array(rows))


def _problem(expression: TimeExpression, rules: tuple[Rule, ...]) -> Problem:
    n_dims = expression.n_dims
    topology = parse_topology("_".join(["SW(4)"] * n_dims))
    price = np.arange(1.0, n_dims + 1) * 1e-6
    return plan_of("plan", "overlap", topology, expression, price, rules)


@random_cases(15)
@given(overlaps(), st.sampled_from(["==", "<="]), st.integers(0, 2**32 - 1))
def test_optimum_of_overlapping_terms(step: Overlap, sense: str, seed: int) -> None:
    n_dims = step.bytes_by_dim.shape[1]
    total = Rule("total", (1.0,) * n_dims, sense, BUDGET)
    problem = _problem(step.expression(), (total,))
    design = optimize(problem)
    assert design.optimality_gap <= 1e-6
    assert design.max_violation <= 1e-9
    exact = step.seconds(design.bandwidth_bytes_per_s)
    assert exact == pytest.approx(design.objective, rel=1e-12)
    others = np.random.default_rng(seed).dirichlet(np.ones(n_dims), size=1000) * BUDGET
    assert problem.step_time.seconds(others).min() >= design.lower_bound * (1 - 1e-12)
    cheaper = others[problem.step_time.seconds(others) <= design.objective]
    if len(cheaper):
        cost_usd = float(problem.cost_usd(design.bandwidth_bytes_per_s))
        assert float(problem.cost_usd(cheaper).min()) >= cost_usd * (1 - 1e-6)


def test_a_hidden_collective_gets_no_more_than_it_needs() -> None:
    """max(1 s + a/B1, b/B2): beyond b/B2 = 1 s + a/B1 more of B2 buys nothing."""
    tree = maximum([add([Constant(1.0), transfers([100e9, 0.0])]), transfers([0.0, 50e9])])
    caps = (
        Rule("dim1 <= 100 GB/s", (1.0, 0.0), "<=", 100e9),
        Rule("dim2 <= 400 GB/s", (0.0, 1.0), "<=", 400e9),
    )
    design = optimize(_problem(TimeExpression(tree, 2), caps))
    assert design.objective == pytest.approx(2.0, rel=1e-9)
    assert design.bandwidth_bytes_per_s == pytest.approx([100e9, 25e9], rel=1e-7)


def test_a_transfer_over_the_sum_of_two_dimensions() -> None:
    """200 GB over dim1 + dim2 beside 20 GB on dim1: (200/(B1 + B2) + 20/B1), B1 + B2 = 100."""
    tree = add([Transfer(200e9, (1.0, 1.0)), Transfer(20e9, (1.0, 0.0))])
    total = Rule("total == 100 GB/s", (1.0, 1.0), "==", 100e9)
    design = optimize(_problem(TimeExpression(tree, 2), (total,)))
    assert design.objective == pytest.approx(2.2, rel=1e-9)
    assert design.bandwidth_bytes_per_s == pytest.approx([100e9, 0.0], abs=1.0)
