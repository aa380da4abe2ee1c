"""Performance per cost and cost on random problems, against slow or independent twins."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from libra_planner.errors import IllPosed, Infeasible
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize
from libra_planner.optimizer.programs.plans import BatchProgram, Plans, per_cost_plans
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Constant, TimeExpression, add, maximum, transfers
from tests.conftest import random_cases
from tests.problems import Collectives, changed, plan_of, problems, random_feasible


@st.composite
def priced_problems(draw: st.DrawFn) -> tuple[Problem, Collectives]:
    """Problems of :func:`problems` for time x cost, with or without a fixed cost."""
    problem, step = draw(problems())
    size = float(problem.price_usd_per_Bps.mean()) * (problem.total_bandwidth_bytes_per_s() or 0.0)
    fixed_cost_usd = size * draw(st.sampled_from([0.0, 0.01, 1.0, 100.0]))
    return changed(problem, objective="performance_per_cost", fixed_cost_usd=fixed_cost_usd), step


@random_cases(15)
@given(priced_problems(), st.integers(0, 2**32 - 1))
def test_no_feasible_vector_has_a_smaller_product(
    case: tuple[Problem, Collectives], seed: int
) -> None:
    problem, step = case
    assume(problem.compute_s or len(problem.step_time.forms))  # Plans always take time.
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


@random_cases(15)
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
        except Infeasible:  # There is nothing cheaper under the rules.
            continue
        product = float(problem.step_time.seconds(b) * problem.cost_usd(b))
        assert product >= design.lower_bound * (1 - 1e-12)


@random_cases(15)
@given(problems(), st.floats(1.001, 100.0))
def test_cost_and_performance_are_two_sides_of_one_frontier(
    case: tuple[Problem, Collectives], slower: float
) -> None:
    """The cheapest design within a time, then the fastest within its cost: the same point."""
    problem, _ = case
    assume(len(problem.step_time.forms))
    fastest = optimize(problem)
    communication_s = fastest.objective - problem.compute_s
    assume(communication_s > 1e-6 * problem.compute_s)
    limit = StepTimeLimit("limit", problem.compute_s + communication_s * slower)
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


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-13, 1e-11, 4e-10, -1e-12])
def test_a_cap_at_the_only_possible_cost(off: float) -> None:
    """A total that is given fixes the cost; a cap beside it, apart by rounding, changes nothing."""
    bytes_by_dim = np.array([[0, 0, 67605440.99, 60717154.37], [0, 0, 82709042.66, 42429595.15]])
    step = Collectives(1e-6, bytes_by_dim).expression()
    topology, price = parse_topology("_".join(["SW(4)"] * 4)), (5e-7,) * 4
    total = Rule("total", (1.0,) * 4, "==", 1e9, "GB/s", 1e9)
    problem = plan_of("plan", "random", topology, step, np.array(price), (total,))
    cap = Rule("cost", price, "<=", 500.0 * (1 - off), "$", 1.0)
    capped = optimize(replace(problem, rules=(total, cap)))
    assert capped.objective == pytest.approx(optimize(problem).objective, rel=1e-9)
    assert capped.optimality_gap <= 1e-6
    assert capped.max_violation <= 1e-9


@random_cases(15)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_geometric_programming_agrees(n_dims: int, seed: int) -> None:
    """Where rules are upper bounds and floors, T C is a posynomial: another solver's way."""
    rng = np.random.default_rng(seed)
    bytes_by_dim = rng.uniform(0.05, 1.0, (3, n_dims))
    price, fixed = rng.uniform(0.2, 5.0, n_dims), float(rng.uniform(0.1, 10.0))
    compute_s, budget = float(rng.uniform(0.01, 1.0)), float(rng.uniform(2.0, 20.0))
    floor = budget / n_dims * float(rng.uniform(0.01, 0.3))
    axis = tuple(map(float, np.eye(n_dims)[0]))
    problem = plan_of(
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gp.solve(gp=True, solver=cp.CLARABEL)
    assume(gp.status == cp.OPTIMAL)  # Now and then its own solver calls its answer inaccurate.
    assert optimize(problem).objective == pytest.approx(float(gp.value), rel=1e-6)


@random_cases(25)
@given(st.integers(1, 4), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_the_product_has_no_local_optima(n_dims: int, between: float, seed: int) -> None:
    """Quasi-convex: between two designs T C is never above both ends, nested maxima included.

    1/T is concave (sums of times are harmonic sums of concave functions) and C linear, so
    {T C <= P} = {C <= P / T} is convex for every P.
    """
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 3, (3, n_dims))
    overlapped = maximum(
        [add([Constant(rng.uniform(0, 5)), transfers(size[0])]), transfers(size[1])]
    )
    root = add([Constant(rng.choice([0.0, 1.0])), overlapped, transfers(size[2])])
    price, fixed = 10.0 ** rng.uniform(-3, 3, n_dims), float(rng.choice([0.0, 1.0, 100.0]))
    step = TimeExpression(root, n_dims)
    ends = 10.0 ** rng.uniform(-4, 4, (2, n_dims))
    point = between * ends[0] + (1 - between) * ends[1]
    products = step.seconds(ends) * (fixed + ends @ price)
    product = float(step.seconds(point) * (fixed + point @ price))
    assert product <= products.max() * (1 + 1e-12)


@pytest.mark.parametrize(
    ("fixed_cost_usd", "compute_s"), [(0.0, 0.0002), (0.3, 0.02), (1.0, 0.1), (0.2, 0.2)]
)
def test_a_product_that_looks_as_if_it_had_two_optima(
    fixed_cost_usd: float, compute_s: float
) -> None:
    """From a floor to a plateau T C varies by 1 % while cost grows fivefold."""
    inner, outer = transfers([38.0, 139.0, 0.0, 215.0]), transfers([76.0, 430.0, 278.0, 0.0])
    root = add([Constant(compute_s), inner, maximum([add([Constant(0.92), inner]), outer])])
    price = (8.4, 0.0176, 0.0617, 2.07)
    rules = (
        Rule("total <= 1000", (1.0, 1.0, 1.0, 1.0), "<=", 1000.0),
        Rule("dim3 >= 23 dim4", (0.0, 0.0, 1.0, -23.0), ">=", 0.0),
        Rule("dim4 >= 7.77", (0.0, 0.0, 0.0, 1.0), ">=", 7.77),
    )
    problem = plan_of(
        "plan",
        "plateau",
        parse_topology("_".join(["SW(4)"] * 4)),
        TimeExpression(root, 4),
        np.array(price),
        rules,
        objective="performance_per_cost",
        fixed_cost_usd=fixed_cost_usd,
    )
    design = optimize(problem)
    products = []
    for cost in np.geomspace(48.0, 240.0, 12):
        capped = replace(
            problem, objective="performance", rules=(*rules, Rule("cost", price, "<=", float(cost)))
        )
        b = optimize(capped).bandwidth_bytes_per_s
        products.append(float(problem.step_time.seconds(b) * problem.cost_usd(b)))
    assert design.optimality_gap <= 1e-6
    assert min(products) >= design.lower_bound * (1 - 1e-12)
    assert design.objective == pytest.approx(min(products), rel=1e-2)


@random_cases(15)
@given(priced_problems())
def test_the_product_is_the_step_time_over_other_variables(
    case: tuple[Problem, Collectives],
) -> None:
    problem, _ = case
    b = np.random.default_rng(0).uniform(0.1, 2.0, problem.topology.n_dims) * 1e11
    plans, cost_usd = Plans.of(BatchProgram.of([problem])), float(problem.cost_usd(b))
    other, point = per_cost_plans(plans), np.append(b, 1.0) / cost_usd
    product = float(problem.step_time.seconds(b)) * cost_usd
    (found,) = other.structure.seconds(other.time_numbers, point[:, None])
    assert found == pytest.approx(product, rel=1e-12)
    first, second = plans.rules, other.rules
    pairs = [
        (first.upper, first.limit, second.upper, second.limit),
        (first.equal, first.target, second.equal[:-1], second.target[:-1]),
    ]
    for rows, bounds, scaled, zero in pairs:
        left = rows[..., 0] @ b - bounds[:, 0]
        assert len(rows) == len(scaled)
        assert not zero.any()
        assert (abs(scaled[..., 0] @ point * cost_usd - left) <= 1e-9 * abs(bounds[:, 0])).all()
    assert second.equal[-1, :, 0] @ point == pytest.approx(second.target[-1, 0], rel=1e-12)


@random_cases(12)
@given(priced_problems(), st.floats(1.01, 3.0))
def test_a_step_time_bound_on_the_product(case: tuple[Problem, Collectives], slower: float) -> None:
    """Against the fastest designs at many costs, of those within the bound."""
    problem, _ = case
    assume(len(problem.step_time.forms))
    fastest = optimize(replace(problem, objective="performance"))
    communication_s = fastest.objective - problem.compute_s
    assume(communication_s > 1e-6 * problem.compute_s)
    limit = StepTimeLimit("limit", problem.compute_s + communication_s * slower)
    design = optimize(replace(problem, step_time_limits=(limit,)))
    assert design.optimality_gap <= 1e-6
    assert design.max_violation <= 1e-9
    most_usd = float(problem.network_cost_usd(fastest.bandwidth_bytes_per_s))
    price = tuple(map(float, problem.price_usd_per_Bps))
    for share in (0.3, 0.6, 0.9, 1.0):
        cap = Rule("cost", price, "<=", most_usd * share, "$", 1.0)
        try:
            capped = optimize(
                replace(problem, objective="performance", rules=(*problem.rules, cap))
            )
        except Infeasible:
            continue
        if capped.objective <= limit.limit_s:
            cost_usd = float(problem.cost_usd(capped.bandwidth_bytes_per_s))
            assert capped.objective * cost_usd >= design.lower_bound * (1 - 1e-12)
