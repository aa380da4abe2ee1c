"""Square roots in time expressions: what touches them, and optima by a solver that has them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from libra_planner.optimizer.optimize import batch_optimize, optimize
from libra_planner.problem import Problem
from libra_planner.step import expression as tree
from tests.problems import changed
from tests.random_plans import rooted_plan


@pytest.mark.parametrize("seed", range(20))
def test_what_touches_a_tree_is_never_below_it(seed: int) -> None:
    plan = rooted_plan(seed, "performance")
    structure = plan.problem.step_time.structure
    assert structure.has_roots
    assert not structure.touching.has_roots
    numbers = np.array(plan.problem.step_time.numbers)[:, None]
    rng = np.random.default_rng(seed)
    at = plan.within[:, None] * 10.0 ** rng.uniform(-1, 1, (len(plan.within), 1))
    near = structure.touching_numbers(numbers, at)
    touched, exact = structure.touching.seconds(near, at), structure.seconds(numbers, at)
    np.testing.assert_allclose(touched, exact, rtol=1e-12)
    others = at * 10.0 ** rng.uniform(-3, 3, (len(plan.within), 500))
    above = structure.touching.seconds(near, others)
    assert (above >= structure.seconds(numbers, others) * (1 - 1e-12)).all()


@pytest.mark.parametrize("seed", range(25))
def test_a_solver_that_has_powers_finds_the_same_optimum(seed: int) -> None:
    """cvxpy's own power cone, with nothing of the planner's programs."""
    problem = rooted_plan(seed, "performance").problem
    unit = 1e9
    b = cp.Variable(problem.topology.n_dims, nonneg=True)
    rules = [_kept(np.array(rule.coefficients) @ b, rule, unit) for rule in problem.rules]
    # Bounds on step time judge the fastest design, and do not move it.
    least = cp.Problem(cp.Minimize(_time(problem.step_time.root, b, unit)), rules)
    least.solve(solver=cp.CLARABEL)
    found = optimize(problem).objective
    assert found <= least.value * (1 + 1e-7)
    assert found == pytest.approx(least.value, rel=5e-5)  # That solver's own accuracy.


def _kept(value: cp.Expression, rule, unit: float) -> cp.Constraint:
    bound = rule.bound / unit
    return {"<=": value <= bound, ">=": value >= bound, "==": value == bound}[rule.sense]


def _time(node: tree.Node, b: cp.Variable, unit: float) -> cp.Expression:
    if isinstance(node, tree.Constant):
        return cp.Constant(node.seconds)
    if isinstance(node, tree.Transfer):
        return node.n_bytes / unit * cp.inv_pos(np.array(node.coefficients) @ b)
    if isinstance(node, tree.Root):
        return node.size / np.sqrt(unit) * cp.power(np.array(node.coefficients) @ b, -0.5)
    if isinstance(node, tree.Scaled):
        return node.factor * _time(node.term, b, unit)
    parts = [_time(term, b, unit) for term in tree.terms_of(node)]
    return cp.maximum(*parts) if isinstance(node, tree.Maximum) else sum(parts)


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost", "cost"])
def test_a_batch_finds_what_plans_find_alone(objective: str) -> None:
    """Plans of one structure at several prices, in one batch."""
    first = rooted_plan(3, objective).problem
    problems = [first, *(_dearer(first, factor) for factor in (1.5, 4.0))]
    found = batch_optimize(problems)
    for i, problem in enumerate(problems):
        design = optimize(problem)
        assert found.status[i] == "optimal"
        assert found.objective[i] == pytest.approx(design.objective, rel=1e-9)
        assert found.lower_bound[i] <= design.objective * (1 + 1e-12)


def _dearer(problem: Problem, factor: float) -> Problem:
    prices = problem.price_usd_per_Bps * np.linspace(1, factor, problem.topology.n_dims)
    return changed(problem, price_usd_per_Bps=prices)
