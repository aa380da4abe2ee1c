"""Properties of the optimum on random problems, against slow or independent twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.engines.cvxpy import convex_model
from libra_planner.optimizer.optimize import optimize
from libra_planner.optimizer.programs.dimensionless import communication, form_values, least_w
from libra_planner.optimizer.programs.plans import plans_alone, program_near, typical_designs
from libra_planner.optimizer.programs.posedness import bandwidth_bounds
from libra_planner.problem import Problem, Rule
from tests.conftest import random_cases
from tests.problems import Collectives, changed, plan_of, problems, random_feasible


@random_cases(20)
@given(problems(), st.integers(0, 2**32 - 1))
def test_optimum_beats_random_feasible_vectors(
    case: tuple[Problem, Collectives], seed: int
) -> None:
    problem, step = case
    design = optimize(problem)
    assert design.optimality_gap <= 1e-6
    assert design.max_violation <= 1e-9
    assert step.seconds(design.bandwidth_bytes_per_s) == pytest.approx(design.objective, rel=1e-12)
    others = random_feasible(problem, np.random.default_rng(seed), 1000)
    if len(others):
        assert problem.step_time.seconds(others).min() >= design.lower_bound * (1 - 1e-12)


@random_cases(20)
@given(problems())
def test_cheapest_among_the_fastest(case: tuple[Problem, Collectives]) -> None:
    """Given the optimal time of each collective, the cheapest vector is a linear program."""
    problem, step = case
    design = optimize(problem)
    b = design.bandwidth_bytes_per_s
    needed = np.zeros(len(b))
    for row in step.bytes_by_dim:
        used = row > 0
        if used.any():
            longest = (row[used] / b[used]).max()
            needed[used] = np.maximum(needed[used], row[used] / longest)
    unit = problem.total_bandwidth_bytes_per_s()
    rows = np.array([r.coefficients for r in problem.rules if r.sense != "=="])
    signs = np.array([1.0 if r.sense == "<=" else -1.0 for r in problem.rules if r.sense != "=="])
    bounds = np.array([r.bound for r in problem.rules if r.sense != "=="])
    equal = [r for r in problem.rules if r.sense == "=="]
    result = linprog(
        problem.price_usd_per_Bps * unit,
        (rows * signs[:, None]) if len(rows) else None,
        bounds * signs / unit * (1 + 1e-9 * signs) if len(rows) else None,
        np.array([r.coefficients for r in equal]) if equal else None,
        np.array([r.bound for r in equal]) / unit if equal else None,
        bounds=[(value * (1 - 1e-9) / unit, None) for value in needed],
    )
    assert result.status == 0
    assert float(problem.cost_usd(b)) <= result.fun * (1 + 1e-6)


@random_cases(20)
@given(problems(), st.integers(-3, 3))
def test_scaling_bytes_and_bandwidth_together_changes_nothing(
    case: tuple[Problem, Collectives], power: int
) -> None:
    problem, step = case
    factor = 10.0**power
    scaled = changed(
        problem,
        step_time=Collectives(step.compute_s, step.bytes_by_dim * factor).expression(),
        rules=tuple(replace(rule, bound=rule.bound * factor) for rule in problem.rules),
    )
    first, second = optimize(problem), optimize(scaled)
    assert second.objective == pytest.approx(first.objective, rel=1e-8)
    assert np.allclose(
        second.bandwidth_bytes_per_s / factor,
        first.bandwidth_bytes_per_s,
        rtol=1e-3,
        atol=1e-6 * first.bandwidth_bytes_per_s.max(),
    )


@random_cases(20)
@given(problems(), st.integers(0, 2**32 - 1))
def test_cvxpy_value_equals_numpy_value_at_the_same_point(
    case: tuple[Problem, Collectives], seed: int
) -> None:
    problem, _ = case
    assume(len(problem.step_time.forms))
    lower, upper = bandwidth_bounds(problem)
    plans = plans_alone(problem, lower, upper)
    program = program_near(plans, typical_designs(plans))
    b = np.random.default_rng(seed).uniform(0.01, 3.0, problem.topology.n_dims)
    model = convex_model(program)
    column = b[:, None]
    w = least_w(1 / form_values(program, column), program.rows, program.offsets)
    model.b.value, model.w.value = b, w[:, 0]
    exact = float(problem.step_time.seconds(b * program.bandwidth_unit[:, 0]))
    value = program.constant_s[0] + program.time_unit_s[0] * float(model.problem.objective.value)
    assert value == pytest.approx(exact, rel=1e-9)
    assert np.max(model.reciprocal.violation(), initial=0.0) <= 1e-9
    assert communication(program, column) == pytest.approx(float(model.problem.objective.value))


@random_cases(20)
@given(problems())
def test_more_budget_is_never_slower(case: tuple[Problem, Collectives]) -> None:
    problem, _ = case
    floors = [rule for rule in problem.rules if rule.sense == ">="]
    budget = next(rule for rule in problem.rules if rule.is_total)
    first = replace(problem, rules=(*floors, replace(budget, sense="<=")))
    more = replace(budget, sense="<=", bound=budget.bound * 1.5)
    assert optimize(replace(problem, rules=(*floors, more))).objective <= (
        optimize(first).objective * (1 + 1e-9)
    )


@pytest.mark.parametrize("budget_GBps", [1, 100, 100_000])
@pytest.mark.parametrize("n_bytes", [1e3, 1e9, 1e15, 3.6e18])
def test_accurate_from_1_to_100000_GBps_and_from_microseconds_to_hours(
    budget_GBps: float, n_bytes: float
) -> None:
    """Two transfers after one another under a budget X: (sqrt a + sqrt b)^2 / X."""
    step = Collectives(0.0, np.array([[n_bytes, 0.0], [0.0, n_bytes / 900]]))
    budget = Rule("total == X", (1.0, 1.0), "==", budget_GBps * 1e9)
    topology = parse_topology("SW(4)_SW(4)")
    problem = plan_of("p", "w", topology, step.expression(), np.ones(2), (budget,))
    design = optimize(problem)
    exact = n_bytes * (1 + 1 / 30) ** 2 / (budget_GBps * 1e9)
    assert design.objective == pytest.approx(exact, rel=1e-12)
    assert design.bandwidth_bytes_per_s[0] / design.bandwidth_bytes_per_s[1] == pytest.approx(
        30, rel=1e-8
    )
