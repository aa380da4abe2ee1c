"""The optimum against a fine grid, and random search around the grid's best point."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem
from tests.random_plans import random_plan, rooted_plan

_CASES = [
    (objective, seed)
    for objective, n in (("performance", 60), ("performance_per_cost", 70), ("cost", 70))
    for seed in range(n)
]
_ROUNDING = 1e-14


@dataclass(frozen=True)
class _Designs:
    """The designs that meet a problem's equalities, by the bandwidths that these leave free."""

    problem: Problem

    @cached_property
    def _equal(self) -> tuple[np.ndarray, np.ndarray]:
        rules = [rule for rule in self.problem.rules if rule.sense == "=="]
        rows = np.array([rule.coefficients for rule in rules])
        shape = len(rules), self.problem.topology.n_dims
        return rows.reshape(shape), np.array([rule.bound for rule in rules])

    @cached_property
    def _bound_dims(self) -> list[int]:
        """Dimensions that the equalities are solved for."""
        rows, _ = self._equal
        n_dims = self.problem.topology.n_dims
        options = itertools.combinations(range(n_dims), len(rows))
        return list(max(options, key=lambda dims: abs(np.linalg.det(rows[:, dims]))))

    @cached_property
    def free_dims(self) -> list[int]:
        n_dims = self.problem.topology.n_dims
        return [i for i in range(n_dims) if i not in self._bound_dims]

    def feasible(self, free: np.ndarray) -> np.ndarray:
        """Designs with these free bandwidths, shape (n, n_free), that meet every linear rule."""
        rows, targets = self._equal
        designs = np.zeros((len(free), self.problem.topology.n_dims))
        designs[:, self.free_dims] = free
        if len(rows):
            rest = targets - free @ rows[:, self.free_dims].T
            designs[:, self._bound_dims] = np.linalg.solve(rows[:, self._bound_dims], rest.T).T
        meets = (designs >= 0).all(axis=1)
        for rule in self.problem.rules:
            row = np.array(rule.coefficients)
            over = (designs @ row - rule.bound) * {"<=": 1, ">=": -1, "==": 0}[rule.sense]
            meets &= over <= _ROUNDING * (np.abs(designs) @ np.abs(row))
        return designs[meets]

    def objective(self, designs: np.ndarray) -> np.ndarray:
        """Of designs under the rules; infinite beyond a step-time limit."""
        problem = self.problem
        seconds = problem.step_time.seconds(designs)
        cost_usd = problem.fixed_cost_usd + designs @ problem.price_usd_per_Bps
        late = ~np.isfinite(seconds)
        for limit in problem.step_time_limits:
            late |= seconds > limit.limit_s
        seconds = np.where(late, np.inf, seconds)
        if problem.objective == "performance":
            return seconds
        if problem.objective == "cost":
            return np.where(late, np.inf, cost_usd)
        return np.where(late, np.inf, np.where(late, 1.0, seconds) * cost_usd)


def _brute_force(problem: Problem, within: np.ndarray) -> float:
    """Least objective found, without any of the planner's optimizer."""
    designs = _Designs(problem)
    best, least = within, float(designs.objective(within[None])[0])
    free_dims = designs.free_dims
    if not free_dims:
        return least
    total = float(within.sum()) * 20
    # Fine in proportion, as optima may be small, and fine in size.
    n = {1: 400, 2: 60, 3: 14}[len(free_dims)]
    axis = np.concatenate([[0.0], np.geomspace(total * 1e-6, total, n), np.linspace(0, total, n)])
    grid = np.array(list(itertools.product(axis, repeat=len(free_dims))))
    rng = np.random.default_rng(0)
    for attempt in range(60):
        points = designs.feasible(grid)
        values = designs.objective(points)
        if len(values) and values.min() < least:
            best, least = points[values.argmin()], float(values.min())
        # Steps of all lengths, along single dimensions too.
        length = 10.0 ** rng.uniform(-7 * attempt / 60 - 1, 0.0, (1500, 1))
        size = np.where(rng.random((1500, 1)) < 0.5, best[free_dims], best.max())
        moved = rng.normal(size=(1500, len(free_dims))) * (rng.random((1500, len(free_dims))) < 0.7)
        grid = np.abs(best[free_dims] + moved * length * size)
    return least


@pytest.mark.parametrize(("objective", "seed"), _CASES)
def test_brute_force_finds_the_optimum_and_nothing_better(objective: str, seed: int) -> None:
    plan = random_plan(seed, objective)
    design = optimize(plan.problem)
    assert design.optimality_gap <= 1e-6
    assert _worst(plan.problem, design.bandwidth_bytes_per_s) <= 1e-9
    least = _brute_force(plan.problem, plan.within)
    assert design.objective <= least * (1 + 1e-6)
    assert design.lower_bound * (1 - 1e-12) <= least
    assert least <= design.objective * (1 + 1e-3)


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost", "cost"])
@pytest.mark.parametrize("seed", range(15))
def test_brute_force_finds_nothing_better_where_there_are_roots(objective, seed) -> None:
    """Times of calibrated collectives have c (bytes/b)^(1/2) beside bytes/b (C20)."""
    plan = rooted_plan(seed, objective)
    design = optimize(plan.problem)
    assert design.optimality_gap <= 1e-9
    assert _worst(plan.problem, design.bandwidth_bytes_per_s) <= 1e-9
    least = _brute_force(plan.problem, plan.within)
    assert design.lower_bound * (1 - 1e-12) <= least
    assert design.objective <= least * (1 + 1e-9)
    assert least <= design.objective * (1 + 1e-3)


def _worst(problem: Problem, bandwidth: np.ndarray) -> float:
    """Largest violation of a rule or limit, relative to its terms (C9)."""
    worst = max(0.0, float(-bandwidth.min() / bandwidth.max()))
    for rule in problem.rules:
        left = sum(c * b for c, b in zip(rule.coefficients, bandwidth, strict=True))
        size = sum(abs(c) * b for c, b in zip(rule.coefficients, bandwidth, strict=True))
        over = {"<=": left - rule.bound, ">=": rule.bound - left, "==": abs(left - rule.bound)}
        worst = max(worst, over[rule.sense] / max(size, abs(rule.bound)))
    for limit in problem.step_time_limits:
        worst = max(worst, float(problem.step_time.seconds(bandwidth)) / limit.limit_s - 1)
    return worst
