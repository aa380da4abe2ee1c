"""Shadow prices against differences of plans solved to 30 digits, and by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import Phase, assume, given
from hypothesis import strategies as st

from libra_planner.costs.prices import PricePart
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize, solve
from libra_planner.optimizer.shadow import ShadowPrice, price_sensitivity, shadow_prices
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Constant, TimeExpression, add, maximum, transfers
from tests.conftest import random_cases
from tests.exact import NotSolved, Optimum, bounds, exact_optimum
from tests.problems import Collectives, changed, plan_of, problems

_MOVE = Decimal("1e-10")
"""Move of a bound, relative to it: far below the planner's own."""


@st.composite
def _plans(draw: st.DrawFn, objective: str) -> tuple[Problem, Collectives]:
    """Random plans of an objective, with fixed costs and step-time limits small and large."""
    problem, step = draw(problems())
    assume(len(problem.step_time.forms))
    rules = tuple(replace(rule, text=f"rule {i}") for i, rule in enumerate(problem.rules))
    problem = replace(problem, rules=rules)
    if objective == "performance_per_cost":
        size_usd = float(problem.price_usd_per_Bps.sum()) * rules[0].bound
        fixed_cost_usd = size_usd * draw(st.sampled_from([0.01, 1.0, 100.0]))
        problem = changed(problem, fixed_cost_usd=fixed_cost_usd)
    if objective == "cost":
        communication_s = optimize(problem).objective - problem.compute_s
        limit_s = problem.compute_s + communication_s * draw(st.floats(1.001, 10.0))
        problem = replace(problem, step_time_limits=(StepTimeLimit("limit", limit_s),))
    return replace(problem, objective=objective), step


def _slope(
    base: Optimum, case: tuple[Problem, Collectives], name: str, side: int, share: float = _MOVE
) -> tuple[np.ndarray, np.ndarray] | None:
    """One-sided derivative by a bound in its unit, and what counts as none of it."""
    problem, step = case
    at = bounds(problem)
    if name == "limit":
        size, unit = base.time_s, 1.0
        moved = replace(at, limit_s=at.limit_s + side * share * size)
    else:
        i = int(name.removeprefix("rule "))
        size, unit = at.rules[i], problem.rules[i].unit_factor
        rules = [*at.rules[:i], size * (1 + side * share), *at.rules[i + 1 :]]
        moved = replace(at, rules=tuple(rules))
    try:
        other = exact_optimum(problem, step, moved, base.near)
    except NotSolved:
        return None
    move = side * share * size
    slope = [(other.time_s - base.time_s) / move, (other.cost_usd - base.cost_usd) / move]
    scale = [base.time_s / size, base.cost_usd / size]
    return np.array(slope, dtype=float) * unit, 1e-6 * np.array(scale, dtype=float) * unit


def _near(slope: np.ndarray, none: np.ndarray) -> np.ndarray:
    """How far from a slope a price may be."""
    return 1e-3 * np.abs(slope) + none


def _check(case: tuple[Problem, Collectives]) -> None:
    """Every entry of a rule or limit is the derivative, and none is missing."""
    problem, step = case
    solution = solve(problem)
    found = shadow_prices(problem, solution)
    assert found is not None
    near = solution.design.bandwidth_bytes_per_s.tolist()
    base = exact_optimum(problem, step, bounds(problem), near)
    names = [rule.text for rule in problem.rules] + [x.text for x in problem.step_time_limits]
    for name in names:
        entries = [price for price in found if price.name == name]
        for side, sign in (("left", -1), ("right", 1)):
            expected = _slope(base, case, name, sign)
            entry = next((x for x in entries if x.side in (side, "both")), None)
            if expected is None:
                continue
            assert entry is not None, (name, side, expected)
            slope, none = expected
            price, allowed = np.array([entry.d_step_time_s, entry.d_cost_usd]), _near(slope, none)
            if (np.abs(price - slope) <= allowed).all():
                continue
            # Another bound is nearer than the move: the price lies between none and the steepest.
            nearer = _slope(base, case, name, sign, _MOVE / 100)
            assert nearer is not None, (entry, slope)
            steepest, allowed = nearer[0], _near(nearer[0], none)
            assert (np.abs(steepest - slope) > _near(slope, none)).any(), (entry, slope)
            assert (price <= np.maximum(steepest, 0) + allowed).all(), (entry, steepest)
            assert (price >= np.minimum(steepest, 0) - allowed).all(), (entry, steepest)


_no_shrinking = random_cases(8, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@_no_shrinking
@given(_plans("performance"))
def test_prices_of_the_fastest_are_derivatives(case: tuple[Problem, Collectives]) -> None:
    _check(case)


@_no_shrinking
@given(_plans("performance_per_cost"))
def test_prices_of_the_least_product_are_derivatives(case: tuple[Problem, Collectives]) -> None:
    _check(case)


@_no_shrinking
@given(_plans("cost"))
def test_prices_of_the_cheapest_are_derivatives(case: tuple[Problem, Collectives]) -> None:
    _check(case)


def test_a_transfer_of_nanoseconds_beside_an_hour() -> None:
    """A plan whose optimum in double precision is 1e-4 off, and its derivatives wrong."""
    step = Collectives(3600.0, np.array([[860.6, 860.6, 860.6, 0.0]]))
    budget, axes = 4.9e12, np.eye(4)
    rules = (
        Rule("rule 0", (1.0,) * 4, "<=", budget),
        Rule("rule 1", tuple(map(float, axes[2])), ">=", 4.7e11),
        Rule("rule 2", tuple(map(float, axes[3])), "<=", 8.1e11),
    )
    price = np.array([5.8e-5, 1.0e-5, 5.0e-5, 2.5e-5])
    topology = parse_topology("SW(4)_SW(4)_SW(4)_SW(4)")
    problem = plan_of("p", "w", topology, step.expression(), price, rules)
    problem = changed(problem, objective="performance_per_cost", fixed_cost_usd=7.0e6)
    _check((problem, step))


def _serial(objective: str = "performance", *rules: Rule, **changes: object) -> Problem:
    """Transfers of 1 and 9 s at 1 byte/s one after the other; 1 and 2 USD per byte/s."""
    problem = plan_of(
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
    return changed(problem, **changes)


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


def test_a_constant_inside_a_maximum_by_hand() -> None:
    """5 + max(1 + 4/b1, 9/b2) under b1 <= 2, b2 == 9/3: both end after 3; b1 alone costs."""
    root = add(
        [
            Constant(5.0),
            maximum([add([Constant(1.0), transfers([4.0, 0.0])]), transfers([0.0, 9.0])]),
        ]
    )
    rules = (
        Rule("cap", (1.0, 0.0), "<=", 2.0, "B/s", 1.0),
        Rule("given", (0.0, 1.0), "==", 3.0, "B/s", 1.0),
    )
    problem = _serial("performance", *rules, step_time=TimeExpression(root, 2))
    found = _by_name(shadow_prices(problem, solve(problem)))
    assert found["cap", "left"].d_step_time_s == pytest.approx(-1.0, rel=1e-6)
    assert found["cap", "right"].d_step_time_s == 0.0
    assert found["given", "left"].d_step_time_s == pytest.approx(-1.0, rel=1e-6)
    assert found["given", "right"].d_step_time_s == 0.0


def test_a_kink_has_two_sides() -> None:
    """max(4/b1, 4/b2) under b1 <= 2, b2 <= 2: more of one alone is worth nothing, less is."""
    step = Collectives(0.0, np.array([[4.0, 4.0]])).expression()
    caps = tuple(
        Rule(f"cap {i}", tuple(float(i == k) for k in range(2)), "<=", 2.0, "B/s", 1.0)
        for i in range(2)
    )
    problem = changed(_serial("performance", *caps), step_time=step)
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
