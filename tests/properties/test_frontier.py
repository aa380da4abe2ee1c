"""Performance per cost and cost on random problems, against slow or independent twins."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libra_planner.errors import IllPosed
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.timing.expression import Constant, TimeExpression, add, maximum, transfers
from libra_planner.topology import parse_topology
from tests.problems import Collectives, problems, random_feasible


@st.composite
def priced_problems(draw: st.DrawFn) -> tuple[Problem, Collectives]:
    """Problems of :func:`problems` for time x cost, with or without a fixed cost."""
    problem, step = draw(problems())
    size = float(problem.price_usd_per_Bps.mean()) * (problem.total_bandwidth_bytes_per_s() or 0.0)
    fixed_cost_usd = size * draw(st.sampled_from([0.0, 0.01, 1.0, 100.0]))
    return replace(
        problem, objective="performance_per_cost", fixed_cost_usd=fixed_cost_usd
    ), step


@settings(max_examples=60)
@given(priced_problems(), st.integers(0, 2**32 - 1))
def test_no_feasible_vector_has_a_smaller_product(
    case: tuple[Problem, Collectives], seed: int
) -> None:
    problem, step = case
    try:
        design = optimize(problem)
    except IllPosed:
        without_fixed = not problem.fixed_cost_usd
        assert without_fixed
        return
    b = design.bandwidth_bytes_per_s
    assert design.optimality_gap <= 1e-6
    assert design.max_violation <= 1e-9
    cost_usd = problem.fixed_cost_usd + float(problem.price_usd_per_Bps @ b)
    assert step.seconds(b) * cost_usd == pytest.approx(design.objective, rel=1e-12)
    others = random_feasible(problem, np.random.default_rng(seed), 1000)
    if len(others):
        products = problem.step_time.seconds(others) * problem.cost_usd(others)
        assert products.min() >= design.lower_bound * (1 - 1e-12)


@settings(max_examples=40)
@given(priced_problems())
def test_moving_along_the_frontier_does_not_help(case: tuple[Problem, Collectives]) -> None:
    """The fastest designs under a cost a little below and above are no better."""
    problem, _ = case
    try:
        design = optimize(problem)
    except IllPosed:
        return
    cost_usd = float(problem.network_cost_usd(design.bandwidth_bytes_per_s))
    for factor in (0.9, 0.999, 1.001, 1.1):
        price = tuple(map(float, problem.price_usd_per_Bps))
        cap = Rule("cost", price, "<=", cost_usd * factor, "$", 1.0)
        capped = replace(problem, objective="performance", rules=(*problem.rules, cap))
        try:
            b = optimize(capped).bandwidth_bytes_per_s
        except Exception as error:
            assert factor < 1, error
            continue
        product = float(problem.step_time.seconds(b) * problem.cost_usd(b))
        assert product >= design.lower_bound * (1 - 1e-12)


@settings(max_examples=60)
@given(problems(), st.floats(1.001, 5.0))
def test_cost_and_performance_are_two_sides_of_one_frontier(
    case: tuple[Problem, Collectives], slower: float
) -> None:
    """The cheapest design within a time, then the fastest within its cost: the same point."""
    problem, _ = case
    fastest = optimize(problem)
    limit = StepTimeLimit("limit", fastest.objective * slower)
    cheap = optimize(replace(problem, objective="cost", step_time_limits=(limit,)))
    assert cheap.optimality_gap <= 1e-6
    b = cheap.bandwidth_bytes_per_s
    time_s = float(problem.step_time.seconds(b))
    assert time_s <= limit.limit_s * (1 + 1e-9)
    price = tuple(map(float, problem.price_usd_per_Bps))
    cap = Rule("cost", price, "<=", cheap.objective, "$", 1.0)
    again = optimize(replace(problem, rules=(*problem.rules, cap)))
    # Exposed communication is what bandwidth changes; compute may dwarf it.
    communication_s = time_s - problem.compute_s
    assert again.objective <= time_s + 1e-5 * communication_s
    assert again.lower_bound >= time_s - 1e-5 * communication_s - 1e-9 * time_s


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_geometric_programming_agrees(n_dims: int, seed: int) -> None:
    """Where rules are upper bounds and floors, T C is a posynomial: another solver's way."""
    rng = np.random.default_rng(seed)
    bytes_by_dim = rng.uniform(0.05, 1.0, (3, n_dims))
    price, fixed = rng.uniform(0.2, 5.0, n_dims), float(rng.uniform(0.1, 10.0))
    compute_s, budget = float(rng.uniform(0.01, 1.0)), float(rng.uniform(2.0, 20.0))
    floor = budget / n_dims * float(rng.uniform(0.01, 0.3))
    axis = tuple(map(float, np.eye(n_dims)[0]))
    problem = Problem(
        "plan",
        "random",
        parse_topology("_".join(["SW(4)"] * n_dims)),
        Collectives(compute_s, bytes_by_dim).expression(),
        price,
        (
            Rule("total", (1.0,) * n_dims, "<=", budget),
            Rule("floor", axis, ">=", floor),
        ),
        objective="performance_per_cost",
        fixed_cost_usd=fixed,
    )
    b = cp.Variable(n_dims, pos=True)
    step = compute_s + sum(
        cp.maximum(*[row[i] / b[i] for i in range(n_dims)]) for row in bytes_by_dim
    )
    product = step * (fixed + price @ b)
    gp = cp.Problem(cp.Minimize(product), [cp.sum(b) <= budget, b[0] >= floor])
    gp.solve(gp=True, solver=cp.CLARABEL)
    assert optimize(problem).objective == pytest.approx(float(gp.value), rel=1e-6)


def _two_optima(fixed_cost_usd: float) -> Problem:
    """A step whose product has two local optima: beside a hidden 0.92 s, dim2 must be 23 dim3."""
    inner, outer = transfers([38.0, 0.0, 215.0]), transfers([76.0, 278.0, 0.0])
    root = add([inner, maximum([add([Constant(0.92), inner]), outer])])
    rules = (
        Rule("total <= 1000", (1.0, 1.0, 1.0), "<=", 1000.0),
        Rule("dim2 >= 23 dim3", (0.0, 1.0, -23.0), ">=", 0.0),
        Rule("dim3 >= 7.77", (0.0, 0.0, 1.0), ">=", 7.77),
    )
    return Problem(
        "plan",
        "two optima",
        parse_topology("SW(4)_SW(4)_SW(4)"),
        TimeExpression(root, 3),
        np.array([8.4, 0.06, 2.0]),
        rules,
        objective="performance_per_cost",
        fixed_cost_usd=fixed_cost_usd,
    )


@pytest.mark.parametrize(("fixed_cost_usd", "cheaper_wins"), [(0.0, True), (1.0, False)])
def test_the_better_of_two_local_optima_is_found(
    fixed_cost_usd: float, cheaper_wins: bool
) -> None:
    problem = _two_optima(fixed_cost_usd)
    costs = np.geomspace(48.6, 1500.0, 40)
    products = []
    for cost in costs:
        cap = Rule("cost", tuple(map(float, problem.price_usd_per_Bps)), "<=", float(cost))
        capped = replace(problem, objective="performance", rules=(*problem.rules, cap))
        b = optimize(capped).bandwidth_bytes_per_s
        products.append(float(problem.step_time.seconds(b) * problem.cost_usd(b)))
    middle = int(np.argmax(products[: len(costs) // 2]))
    valleys = min(products[: middle + 1]), min(products[middle:])
    assert 0 < middle < len(costs) // 2  # Two valleys with a hill in between.
    assert abs(valleys[0] / valleys[1] - 1) < 0.02
    assert (valleys[0] < valleys[1]) == cheaper_wins
    design = optimize(problem)
    assert design.objective <= min(products) * (1 + 1e-9)
    assert design.objective == pytest.approx(min(products), rel=1e-3)
    assert design.optimality_gap <= 1e-6
