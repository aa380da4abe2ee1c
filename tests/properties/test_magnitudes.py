"""Compute up to 1e12 times as long as communication, limits far too loose, transfers that hide."""

from __future__ import annotations

import numpy as np
import pytest

from libra_planner.errors import SolverFailed
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import batch_optimize, optimize, solve
from libra_planner.optimizer.shadow import shadow_prices
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import (
    Constant,
    Node,
    TimeExpression,
    add,
    maximum,
    transfers,
)
from tests.exact import bounds, exact_optimum
from tests.problems import Collectives, changed, plan_of
from tests.random_plans import extreme_plan, random_plan

PRICE = np.array([1e-6, 2e-6])
TOTAL = 1e12
X, Y = transfers([1e9, 0.0]), transfers([0.0, 4e9])


def _problem(root: Node, objective: str, *rules: Rule, **changes: object) -> Problem:
    step, topology = TimeExpression(root, 2), parse_topology("SW(4)_SW(4)")
    rules = rules or (Rule("total", (1.0, 1.0), "<=", TOTAL),)
    problem = plan_of("p", "w", topology, step, PRICE, rules, objective=objective)
    return changed(problem, **changes)


def _agreed(problem: Problem) -> np.ndarray:
    """The vector of the optimum; the batch has the same status, objective and uniqueness."""
    design, batch = optimize(problem), batch_optimize([problem])
    assert batch.status.tolist() == ["optimal"]
    assert batch.objective[0] == pytest.approx(design.objective, rel=1e-9)
    assert bool(batch.unique[0]) == design.unique
    assert design.optimality_gap <= 1e-9
    return design.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("seed", "objective"),
    [
        (26, "cost"),  # These gave up: exit 4.
        (90, "cost"),
        (102, "performance_per_cost"),
        (67, "performance_per_cost"),  # A gap of 3e-8, and dimensions a hundred times too wide.
        (45, "performance_per_cost"),  # Not unique, said one; unique, the other.
    ],
)
def test_extreme_plans_are_solved_alike(seed: int, objective: str) -> None:
    _agreed(extreme_plan(seed, objective))


@pytest.mark.parametrize(
    ("seed", "objective"),
    [
        (36, "performance_per_cost"),  # Unique, but the batch could not tell.
        (5023, "performance_per_cost"),
        (5073, "performance_per_cost"),  # Spread over the free dimensions alone: none is used.
        (5069, "performance"),  # The choice among ties gave away 2.5e-9 of the time.
        (5104, "performance_per_cost"),  # The batch stopped at 2e-9.
    ],
)
def test_plans_on_which_batch_and_single_disagreed(seed: int, objective: str) -> None:
    _agreed(random_plan(seed, objective).problem)


@pytest.mark.parametrize("decades", [0, 4, 8, 12])
@pytest.mark.parametrize("objective", ["performance", "performance_per_cost", "cost"])
def test_any_magnitude_against_another_method(objective: str, decades: int) -> None:
    """Communication and cost to 1e-6 of themselves, however long the compute beside them is."""
    step = Collectives(10.0**decades, np.array([[4e9, 1e9, 0.0], [2e9, 0.0, 7e9]]))
    total = Rule("total", (1.0, 1.0, 1.0), "<=", 3e10)
    cap = Rule("cap", (0.0, 1.0, 0.0), "<=", 2e10)
    topology = parse_topology("SW(4)_SW(4)_SW(4)")
    price = np.array([1e-6, 3e-6, 2e-6])
    problem = plan_of("p", "w", topology, step.expression(), price, (total, cap))
    limit = StepTimeLimit("limit", step.compute_s + 10.0 ** min(decades, 6))
    limits = (limit,) if objective == "cost" else ()
    problem = changed(
        problem, objective=objective, step_time_limits=limits, fixed_cost_usd=1e4 * 10.0**decades
    )
    bandwidth = _agreed(problem)
    expected = exact_optimum(problem, step, bounds(problem), bandwidth.tolist())
    communication_s = Collectives(0.0, step.bytes_by_dim).seconds(bandwidth)
    assert communication_s == pytest.approx(float(expected.time_s), rel=1e-6)
    assert float(price @ bandwidth) == pytest.approx(float(expected.cost_usd), rel=1e-6)


@pytest.mark.parametrize("compute_s", [1e-6, 0.7, 3600.0])
@pytest.mark.parametrize("seconds", [1e-8, 1e-11])
def test_nanoseconds_beside_compute(compute_s: float, seconds: float) -> None:
    """T C = (c + 1/b)(F + b): b = sqrt(F/c), and a price for the rule that does not bind."""
    budget, price, fixed_usd = 1e12, 1e-6, 1e6
    n_bytes = seconds * budget
    step = Collectives(compute_s, np.array([[n_bytes]])).expression()
    rule = Rule("total", (1.0,), "<=", budget)
    problem = plan_of("p", "w", parse_topology("SW(4)"), step, np.array([price]), (rule,))
    problem = changed(problem, objective="performance_per_cost", fixed_cost_usd=fixed_usd)
    (bandwidth,) = _agreed(problem)
    assert bandwidth == pytest.approx((n_bytes * fixed_usd / (compute_s * price)) ** 0.5, rel=1e-6)
    prices = shadow_prices(problem, solve(problem))
    assert prices is not None


@pytest.mark.parametrize("hours", [5.0, 5e6, 5e12])
@pytest.mark.parametrize("objective", ["performance", "cost"])
def test_transfers_that_hide_get_what_they_need(objective: str, hours: float) -> None:
    """max(5, x, y): the fastest is not faster than 5; the least that hides is the cheapest."""
    limits = (StepTimeLimit("limit", hours),) if objective == "cost" else ()
    root = maximum([Constant(hours), X, Y])
    bandwidth = _agreed(_problem(root, objective, step_time_limits=limits))
    assert np.allclose(bandwidth, [1e9 / hours, 4e9 / hours], rtol=1e-8)


def test_what_hides_leaves_the_rest_to_what_does_not() -> None:
    bandwidth = _agreed(_problem(add([maximum([Constant(5.0), X]), Y]), "performance"))
    assert np.allclose(bandwidth, [2e8, TOTAL - 2e8], rtol=1e-9)


def test_a_transfer_behind_another_one() -> None:
    """max(5 + x, y): y may take as long as 5 + x does."""
    first, second = _agreed(_problem(maximum([add([Constant(5.0), X]), Y]), "performance"))
    assert first + second == pytest.approx(TOTAL, rel=1e-12)
    assert second == pytest.approx(4e9 / (5.0 + 1e9 / first), rel=1e-8)


def test_what_no_engine_proves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 4 is for plans on which every engine gives up."""
    problem = extreme_plan(13, "cost")
    monkeypatch.setattr("libra_planner.optimizer.optimize.certain_solution", lambda *_: None)
    with pytest.raises(SolverFailed):
        optimize(problem)
