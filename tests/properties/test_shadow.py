"""Shadow prices against differences of plans solved from scratch, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings

from libra_planner.costing import PricePart
from libra_planner.errors import IllPosed, Infeasible
from libra_planner.optimizer.optimize import optimize, solve
from libra_planner.optimizer.shadow import ShadowPrice, price_sensitivity, shadow_prices
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.topology import parse_topology
from tests.problems import Collectives, problems

_MOVE = 1e-4


def _figures(problem: Problem) -> np.ndarray | None:
    """Step time and cost of the optimum from scratch; ``None`` without one."""
    try:
        b = optimize(problem).bandwidth_bytes_per_s
    except (Infeasible, IllPosed):
        return None
    return np.array([float(problem.step_time.seconds(b)), float(problem.cost_usd(b))])


def _slope(problem: Problem, i: int, side: float) -> np.ndarray | None:
    """One-sided derivative by the bound of rule i, to second order."""
    h = side * _MOVE * abs(problem.rules[i].bound)
    found = []
    for k in (0, 1, 2):
        rules = list(problem.rules)
        rules[i] = replace(rules[i], bound=rules[i].bound + k * h)
        found.append(_figures(replace(problem, rules=tuple(rules))))
    if any(figures is None for figures in found):
        return None
    return (-3 * found[0] + 4 * found[1] - found[2]) / (2 * h) * problem.rules[i].unit_factor


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(problems())
def test_prices_of_rules_are_differences_of_plans_solved_again(
    case: tuple[Problem, Collectives],
) -> None:
    problem, _ = case
    assume(len(problem.step_time.forms))
    problem = replace(
        problem,
        rules=tuple(replace(rule, text=f"rule {i}") for i, rule in enumerate(problem.rules)),
    )
    solution = solve(problem)
    scale = _scale(problem, solution.design.bandwidth_bytes_per_s)
    # Beside hours of compute the differences of step times, not the prices, are rounding.
    assume(scale[0] > 1e-3 * problem.compute_s)
    found = shadow_prices(problem, solution)
    assert found is not None
    for i, rule in enumerate(problem.rules):
        entries = [price for price in found if price.name == f"rule {i}"]
        for side, sign in (("left", -1.0), ("right", 1.0)):
            expected = _slope(problem, i, sign)
            (entry,) = [price for price in entries if price.side in (side, "both")] or [None]
            if expected is None or entry is None:
                continue
            per_unit = scale / (abs(rule.bound) / rule.unit_factor)
            error = np.abs(np.array([entry.d_step_time_s, entry.d_cost_usd]) - expected)
            assert (error <= 2e-3 * np.abs(expected) + 1e-4 * per_unit).all(), (entry, expected)


def _scale(problem: Problem, bandwidth: np.ndarray) -> np.ndarray:
    """Size of what bandwidth changes: communication and network cost."""
    communication_s = float(problem.step_time.seconds(bandwidth)) - problem.compute_s
    return np.array([communication_s, float(problem.network_cost_usd(bandwidth))])


def _serial(objective: str = "performance", *rules: Rule, **changes: object) -> Problem:
    """Transfers of 1 and 9 s at 1 byte/s one after the other; 1 and 2 USD per byte/s."""
    problem = Problem(
        "p",
        "w",
        parse_topology("SW(4)_SW(4)"),
        Collectives(0.0, np.array([[1.0, 0.0], [0.0, 9.0]])).expression(),
        np.array([1.0, 2.0]),
        rules,
        objective=objective,
        price_parts=(
            PricePart("a", "link", 1.0, (1.0, 0.0)),
            PricePart("b", "link", 2.0, (0.0, 1.0)),
        ),
    )
    return replace(problem, **changes)


def _by_name(found: tuple[ShadowPrice, ...] | None) -> dict[tuple[str, str], ShadowPrice]:
    assert found is not None
    return {(price.name, price.side): price for price in found}


def test_a_budget_by_hand() -> None:
    """T = (1 + 3)^2 / X with b = X (1, 3) / 4: dT/dX = -16/X^2, dC/dX = 7/4."""
    budget = Rule("total", (1.0, 1.0), "==", 8.0, "B/s", 1.0)
    problem = _serial("performance", budget)
    found = _by_name(shadow_prices(problem, solve(problem)))
    total = found["total", "both"]
    assert total.d_step_time_s == pytest.approx(-16 / 64, rel=1e-6)
    assert total.d_cost_usd == pytest.approx(7 / 4, rel=1e-6)
    # A gift to dim2 frees budget: the same step time, but what was given is not paid.
    gift = found["dim2", "both"]
    assert gift.d_step_time_s == pytest.approx(-16 / 64 * 1e9, rel=1e-6)
    assert gift.d_cost_usd == pytest.approx((7 / 4 - 2) * 1e9, rel=1e-6)


def test_a_step_time_bound_by_hand() -> None:
    """Least cost of 1/b1 + 9/b2 = X is (1 + 3 sqrt 2)^2 / X."""
    limit = StepTimeLimit("time", 4.0)
    problem = _serial("cost", Rule("t", (1.0, 1.0), "<=", 1e3), step_time_limits=(limit,))
    found = _by_name(shadow_prices(problem, solve(problem)))
    assert found["time", "both"].d_step_time_s == pytest.approx(1.0, rel=1e-6)
    least = (1 + 3 * 2**0.5) ** 2
    assert found["time", "both"].d_cost_usd == pytest.approx(-least / 16, rel=1e-6)
    assert found["t", "both"].d_cost_usd == 0.0  # It does not bind.
    # dC/dprice_1 is the quantity bought at it: b1 = (1 + 3 sqrt 2) / 4.
    prices = _by_name(price_sensitivity(problem, solve(problem)))
    assert prices["a link", "both"].d_cost_usd == pytest.approx((1 + 3 * 2**0.5) / 4, rel=1e-5)


def test_performance_per_cost_by_hand() -> None:
    """(4 + 9/b)(X + 2 b), dim1 idle at 1 USD: b = sqrt(9 X / 8), so dT/dX = -9/(2 b X)."""
    step = Collectives(4.0, np.array([[0.0, 9.0]])).expression()
    budget = Rule("total", (1.0, 1.0), "==", 10.0, "B/s", 1.0)
    prices = np.array([1.0, 3.0])
    problem = _serial("performance_per_cost", budget, step_time=step, price_usd_per_Bps=prices)
    solution = solve(problem)
    b = (90 / 8) ** 0.5
    assert np.allclose(solution.design.bandwidth_bytes_per_s, [10 - b, b], rtol=1e-8)
    total = _by_name(shadow_prices(problem, solution))["total", "both"]
    assert total.d_step_time_s == pytest.approx(-9 / (2 * b * 10), rel=1e-4)
    assert total.d_cost_usd == pytest.approx(1 + b / 10, rel=1e-4)


def test_a_kink_has_two_sides() -> None:
    """max(4/b1, 4/b2) under b1 <= 2, b2 <= 2: more of one alone is worth nothing, less is."""
    step = Collectives(0.0, np.array([[4.0, 4.0]])).expression()
    caps = tuple(
        Rule(f"cap {i}", tuple(float(i == k) for k in range(2)), "<=", 2.0, "B/s", 1.0)
        for i in range(2)
    )
    problem = replace(_serial("performance", *caps), step_time=step)
    found = _by_name(shadow_prices(problem, solve(problem)))
    assert found["cap 0", "right"].d_step_time_s == 0.0
    assert found["cap 0", "left"].d_step_time_s == pytest.approx(-1.0, rel=1e-3)
    # With less of one, less of the other is bought too: cost falls by both.
    assert found["cap 0", "left"].d_cost_usd == pytest.approx(3.0, rel=1e-3)


def test_rules_that_have_room_are_worth_nothing() -> None:
    budget = Rule("total", (1.0, 1.0), "<=", 8.0, "B/s", 1.0)
    loose = Rule("loose", (1.0, 0.0), "<=", 100.0, "B/s", 1.0)
    problem = _serial("performance", budget, loose)
    entry = _by_name(shadow_prices(problem, solve(problem)))["loose", "both"]
    assert (entry.d_step_time_s, entry.d_cost_usd) == (0.0, 0.0)
