"""Seeded random plans of 2 or 3 dimensions for all objectives, feasible by construction.

Every third has a stack (C13): what crosses a tier crosses those inside, and rules bound its taper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import (
    Constant,
    Maximum,
    Node,
    Root,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
    add,
    maximum,
    scale,
    transfers,
    with_terms,
)
from tests.problems import changed, plan_of

GB = 1e9


@dataclass(frozen=True)
class RandomPlan:
    """A problem and a vector (bytes/s) that meets all of its rules."""

    problem: Problem
    within: np.ndarray


def random_plan(seed: int, objective: str) -> RandomPlan:
    """Rules are drawn around a vector that meets them; some of them bind there."""
    rng = np.random.default_rng([seed, len(objective)])
    n_dims = int(rng.integers(2, 4))
    size = 10.0 ** rng.uniform(1, 3.5) * GB
    within = rng.dirichlet(np.full(n_dims, 1.5)) * size
    fabric = _fabric(seed, n_dims)
    tree = _overlapping(rng, fabric) if rng.random() < 0.4 else _sum(rng, fabric)
    step = TimeExpression(tree, n_dims)
    price = 10.0 ** rng.uniform(-6.5, -4.5, n_dims) * (rng.random(n_dims) < 0.95)
    price[0] = price[0] or 1e-6
    fixed_cost_usd = float(price @ within) * float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    limits = _limits(rng, objective, float(step.seconds(within)))
    rules = [*_rules(rng, within), *_taper_rules(seed, fabric, within)]
    if objective == "performance_per_cost" and not fixed_cost_usd:
        # Downward there may be no optimum, or none of a size (C8).
        rules.append(_rule("dim1 floor", np.eye(n_dims)[0], ">=", within[0] * rng.uniform(0.1, 1)))
    problem = plan_of(
        "plan",
        f"seed {seed}",
        fabric,
        step,
        price,
        tuple(rules),
        limits,
        objective=objective,
        fixed_cost_usd=fixed_cost_usd,
    )
    return RandomPlan(problem, within)


def extreme_plan(seed: int, objective: str) -> Problem:
    """A random plan with compute up to 1e12 times as long, limits up to 1e8 times as loose."""
    plan = random_plan(seed, objective)
    rng, problem = np.random.default_rng([seed, 99]), plan.problem
    longer, looser = 10.0 ** rng.uniform(0, 12), 10.0 ** rng.uniform(0, 8)
    root = add([Constant(float(rng.choice([0.0, 0.7]))), problem.step_time.merged])
    step = TimeExpression(_longer(root, longer), problem.topology.n_dims)
    communication_s = float(step.seconds(plan.within)) - step.compute_s
    limit = StepTimeLimit("step_time", step.compute_s + communication_s * looser)
    dearer = 1.0 if objective == "cost" else 10.0 ** rng.uniform(-3, 6)
    return changed(
        problem,
        step_time=step,
        step_time_limits=(limit,) * len(problem.step_time_limits),
        fixed_cost_usd=problem.fixed_cost_usd * dearer,
    )


def rooted_plan(seed: int, objective: str) -> RandomPlan:
    """A random plan whose transfers have a square root beside them, as calibrated ones do."""
    plan, rng = random_plan(seed, objective), np.random.default_rng([seed, 98])
    problem, within = plan.problem, plan.within
    before = problem.step_time
    step = TimeExpression(_rooted(rng, before.root, within), before.n_dims)
    slower = float(step.seconds(within)) / float(before.seconds(within))
    limits = tuple(
        replace(limit, limit_s=limit.limit_s * slower) for limit in problem.step_time_limits
    )
    return RandomPlan(changed(problem, step_time=step, step_time_limits=limits), within)


def _rooted(rng: np.random.Generator, node: Node, within: np.ndarray) -> Node:
    """The tree with a root, 1 % to 3 times as long, beside every transfer."""
    if isinstance(node, Transfer):
        share = 10.0 ** rng.uniform(-2, 0.5)
        size = share * node.n_bytes / np.sqrt(np.array(node.coefficients) @ within)
        return Sum((node, Root(float(size), node.coefficients)))
    return with_terms(node, lambda term: _rooted(rng, term, within))


def _longer(node: Node, factor: float) -> Node:
    """The tree with constants longer by a factor; transfers as they are."""
    if isinstance(node, Constant):
        return Constant(node.seconds * factor)
    if isinstance(node, Sum | Maximum):
        terms = [_longer(term, factor) for term in node.terms]
        return add(terms) if isinstance(node, Sum) else maximum(terms)
    return scale(node.factor, _longer(node.term, factor)) if isinstance(node, Scaled) else node


def _fabric(seed: int, n_dims: int) -> Topology:
    """Dimensions of their own; in every third plan the outer two or all are tiers of a stack."""
    parts = ["SW(4)"] * n_dims
    if seed % 3 == 2:
        parts[n_dims - 2 if seed % 2 else 0] = "[SW(4)"
        parts[-1] = "SW(4)]"
    return parse_topology("_".join(parts))


def _taper_rules(seed: int, fabric: Topology, within: np.ndarray) -> list[Rule]:
    """Bounds on the tapers of a stack that hold at a vector, with room to spare."""
    rng, rules = np.random.default_rng([seed, 13]), []
    for i, taper in enumerate(fabric.tapers(within)):
        if taper is not None and rng.random() < 0.7:
            sense = str(rng.choice(["<=", ">="]))
            spare = float(rng.choice([1.2, 2.0, 10.0])) ** (1 if sense == "<=" else -1)
            row = np.zeros(fabric.n_dims)
            row[i - 1], row[i] = 1.0, -taper * spare
            rules.append(Rule(f"taper(dim{i + 1})", tuple(row.tolist()), sense, 0.0, tier=i))
    return rules


def _limits(rng: np.random.Generator, objective: str, within_s: float) -> tuple[StepTimeLimit, ...]:
    """One for every cost, for a third of the others; not always with room to spare."""
    if objective != "cost" and rng.random() > 1 / 3:
        return ()
    return (StepTimeLimit("step_time", within_s * float(rng.choice([1.0, 1.01, 1.5, 5.0]))),)


def _sizes(rng: np.random.Generator, fabric: Topology) -> np.ndarray:
    """Bytes of a collective across each dimension, some of them unused, shape (n_dims,)."""
    n_dims = fabric.n_dims
    sizes = 10.0 ** rng.uniform(8, 11, n_dims) * (rng.random(n_dims) < 0.75)
    sizes[rng.integers(n_dims)] += 1e9
    return fabric.loads(sizes)


def _sum(rng: np.random.Generator, fabric: Topology) -> Node:
    """Compute and one to four collectives after one another."""
    parts = [transfers(_sizes(rng, fabric)) for _ in range(rng.integers(1, 5))]
    return add([Constant(float(rng.choice([0.0, 0.01, 1.0, 10.0]))), *parts])


def _overlapping(rng: np.random.Generator, fabric: Topology) -> Node:
    """Compute, a collective, and two branches at the same time that may share a dimension."""
    first, second = _sizes(rng, fabric), _sizes(rng, fabric)
    branches = [
        add([Constant(float(rng.choice([0.0, 0.1, 3.0]))), transfers(first)]),
        add([Constant(float(rng.choice([0.0, 1.0]))), transfers(second)]),
    ]
    if rng.random() < 0.5:
        branches.append(transfers(first + second))
    if rng.random() < 0.3:
        branches.append(Transfer(float(second.sum()), (1.0,) * fabric.n_dims))
    compute = Constant(float(rng.choice([0.0, 0.5])))
    return add([compute, transfers(_sizes(rng, fabric)), maximum(branches)])


def _rules(rng: np.random.Generator, within: np.ndarray) -> list[Rule]:
    """A total, then floors, caps, an order and a second equality."""
    n_dims, total = len(within), float(within.sum())
    axes = np.eye(n_dims)
    spare = float(rng.choice([1.0, 1.3, 20.0]))
    equal = rng.random() < 0.5
    rules = [
        _rule("total", np.ones(n_dims), "==", total)
        if equal
        else _rule("total", np.ones(n_dims), "<=", total * spare)
    ]
    for i in range(n_dims):
        kind = rng.choice(["none", "floor", "cap"], p=[0.6, 0.2, 0.2])
        if kind == "floor":
            rules.append(_rule("floor", axes[i], ">=", within[i] * rng.uniform(0.05, 0.9)))
        if kind == "cap":
            rules.append(_rule("cap", axes[i], "<=", within[i] * rng.uniform(1.1, 4.0)))
    if rng.random() < 0.3:
        i, j = rng.permutation(n_dims)[:2]
        ratio = within[i] / within[j] * rng.choice([1.0, rng.uniform(0.2, 1.0)])
        rules.append(_rule("order", axes[i] - ratio * axes[j], ">=", 0.0))
    if n_dims == 3 and rng.random() < 0.2:
        i, j = rng.permutation(n_dims)[:2]
        rules.append(_rule("pair", axes[i] + 2 * axes[j], "==", within[i] + 2 * within[j]))
    return rules


def _rule(text: str, row: np.ndarray, sense: str, bound: float) -> Rule:
    return Rule(text, tuple(map(float, row)), sense, float(bound))
