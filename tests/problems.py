"""Random planning problems, and slow obvious twins of what the planner computes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.optimizer.programs.dimensionless import LiftedTimes, lift
from libra_planner.problem import PlanText, Prices, Problem, Rule, StepTimeLimit, plain_problem
from libra_planner.step.expression import Constant, TimeExpression, add, transfers
from libra_planner.step.training import plain_step


def plan_of(
    source: str,
    name: str,
    topology: Topology,
    step_time: TimeExpression,
    price_usd_per_Bps: np.ndarray,
    rules: tuple[Rule, ...] = (),
    step_time_limits: tuple[StepTimeLimit, ...] = (),
    **more: object,
) -> Problem:
    """A problem that no plan made: a step time, prices and rules."""
    prices = Prices(tuple(map(float, price_usd_per_Bps)))
    problem = replace(plain_problem(topology, step_time, prices, rules), text=PlanText(source))
    problem = replace(problem, step=plain_step(step_time, name), step_time_limits=step_time_limits)
    return changed(problem, **more)


def changed(problem: Problem, **changes: object) -> Problem:
    """The problem with other values, prices and step time among them."""
    named = {"fixed_cost_usd": "fixed_usd", "options": "options", "price_parts": "parts"}
    parts = {named[key]: changes.pop(key) for key in list(changes) if key in named}
    if "price_usd_per_Bps" in changes:
        parts["usd_per_Bps"] = tuple(map(float, changes.pop("price_usd_per_Bps")))
    if "step_time" in changes:
        changes["step"] = plain_step(changes.pop("step_time"), problem.workload_name)
    return replace(problem, prices=replace(problem.prices, **parts), **changes)


@dataclass(frozen=True)
class Collectives:
    """A step of one compute time and collectives with bytes per dimension."""

    compute_s: float
    bytes_by_dim: np.ndarray  # (n_collectives, n_dims)

    def expression(self) -> TimeExpression:
        terms = [Constant(self.compute_s), *map(transfers, self.bytes_by_dim)]
        return TimeExpression(add(terms), self.bytes_by_dim.shape[1])

    def seconds(self, bandwidth: np.ndarray) -> float:
        """Step time, one collective and one dimension after the other (C4, C5)."""
        total = self.compute_s
        for row in self.bytes_by_dim:
            longest = 0.0
            for n_bytes, b in zip(row, bandwidth, strict=True):
                if n_bytes > 0:
                    longest = max(longest, n_bytes / b)
            total += longest
        return total


@st.composite
def collectives(draw: st.DrawFn, max_dims: int = 5) -> Collectives:
    """Steps of one to four collectives, some dimensions unused."""
    n_dims = draw(st.integers(1, max_dims))
    unit = 10.0 ** draw(st.integers(3, 12))
    size = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
    rows = draw(st.lists(st.lists(size, min_size=n_dims, max_size=n_dims), min_size=1, max_size=4))
    compute_s = draw(st.sampled_from([0.0, 1e-6, 0.7, 3600.0]))
    return Collectives(compute_s, np.array(rows) * unit)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, Collectives]:
    """Feasible problems: a budget, and sometimes caps, floors and an order."""
    step = draw(collectives())
    n_dims = step.bytes_by_dim.shape[1]
    budget = 10.0 ** draw(st.floats(9, 14))
    price = np.array(draw(st.lists(st.floats(0.5, 60), min_size=n_dims, max_size=n_dims))) * 1e-6
    axes = np.eye(n_dims)
    rules = [_rule(np.ones(n_dims), draw(st.sampled_from(["==", "<="])), budget)]
    for i in range(n_dims):
        kind = draw(st.sampled_from(["none", "none", "cap", "floor"]))
        # Floors leave room for all, caps let an equality still be met by dimension 1.
        if kind == "floor":
            rules.append(_rule(axes[i], ">=", budget / n_dims * draw(st.floats(0.01, 0.5))))
        if kind == "cap" and i > 0:
            rules.append(_rule(axes[i], "<=", budget / n_dims * draw(st.floats(0.5, 2.0))))
    topology = parse_topology("_".join(["SW(4)"] * n_dims), [f"t{i}" for i in range(n_dims)])
    problem = plan_of("plan", "random", topology, step.expression(), price, tuple(rules))
    return problem, step


def _rule(row: np.ndarray, sense: str, bound: float) -> Rule:
    return Rule(f"rule {sense}", tuple(float(x) for x in row), sense, bound)


def random_feasible(problem: Problem, rng: np.random.Generator, n: int) -> np.ndarray:
    """Vectors under the rules of :func:`problems`, shape (n, n_dims), by rejection."""
    n_dims = problem.topology.n_dims
    budget = problem.total_bandwidth_bytes_per_s()
    assert budget is not None
    draws = rng.dirichlet(np.full(n_dims, 0.7), size=20 * n) * budget
    keep = np.ones(len(draws), dtype=bool)
    for rule in problem.rules:
        left = draws @ np.array(rule.coefficients)
        keep &= {
            "<=": left <= rule.bound * (1 + 1e-12),
            ">=": left >= rule.bound,
            "==": np.isclose(left, rule.bound, rtol=1e-12),
        }[rule.sense]
    return draws[keep][:n]


def lifted_alone(time: TimeExpression) -> LiftedTimes:
    """One expression's linear form, without the axis of designs."""
    several = lift(time.structure, np.array(time.numbers)[:, None])
    found = {name: array[..., 0] for name, array in vars(several).items() if name != "forms"}
    return replace(several, **found)
