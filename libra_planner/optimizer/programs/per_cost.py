"""Step time * cost as the step time of another problem: no search, no local optima.

With s = 1/C and y = B/C a transfer ``bytes / (form . B)`` times C is ``bytes / (form . y)``
and a constant times C is ``constant / s``, so T C is again a time expression, over (y, s).
A rule ``a . B <= h`` is ``a . y <= h s``, and the definition of C is ``price . y + F s = 1``.
Minimising T C under linear rules is therefore the convex problem that performance is, with
one dimension more (the transformation of Charnes and Cooper for fractional programs).

It also shows that T C is quasi-convex: a local optimum is the global one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.fabric.blocks import SWITCH
from libra_planner.fabric.topology import Dimension, Topology
from libra_planner.optimizer.programs.dimensionless import RuleRows
from libra_planner.optimizer.programs.plans import Plans, interval_bounds
from libra_planner.problem import Fabric, Prices, Problem, Rule
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.expression import (
    Array,
    Constant,
    Labelled,
    Maximum,
    Node,
    Scaled,
    Sum,
    TimeExpression,
    Transfer,
)
from libra_planner.step.lifted import Structure
from libra_planner.step.training import plain_step

_SCALE = Dimension(SWITCH, 2, "scale")
"""Stands for s among the dimensions."""


def per_cost_problem(problem: Problem) -> Problem:
    """The problem over (B/C, 1/C) whose step time is T C; its cheapest design has the largest s.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> step = TimeExpression(Sum((Constant(3.0), Transfer(8.0, (1.0,)))), 1)
    >>> budget = Rule("total <= 4", (1.0,), "<=", 4.0)
    >>> from libra_planner.problem import plain_problem
    >>> one = plain_problem(parse_topology("SW(2)"), step, Prices((2.0,)), (budget,))
    >>> b, cost = 4.0, 8.0
    >>> other = per_cost_problem(one)
    >>> float(other.step_time.seconds(np.array([b / cost, 1 / cost]))), (3.0 + 8.0 / b) * cost
    (40.0, 40.0)
    """
    price = problem.prices.usd_per_Bps
    unit_cost = Rule("cost == 1", (*price, problem.fixed_cost_usd), "==", 1.0)
    scaled = (
        replace(rule, coefficients=(*rule.coefficients, -rule.bound), bound=0.0)
        for rule in problem.rules
    )
    n_dims = problem.topology.n_dims + 1
    time = TimeExpression(_per_cost(problem.step_time.merged, n_dims), n_dims)
    return replace(
        problem,
        fabric=Fabric(plain_network(Topology((*problem.topology.dimensions, _SCALE)))),
        step=plain_step(time, problem.workload_name),
        prices=Prices((0.0,) * len(price) + (-1.0,)),
        rules=(*scaled, unit_cost),
        step_time_limits=(),
        objective="performance",
    )


def per_cost_plans(plans: Plans) -> Plans:
    """:func:`per_cost_problem` of n plans at once."""
    rules, price, n_dims = plans.rules, plans.price_usd_per_Bps, plans.structure.n_dims + 1
    cost = np.concatenate([price, plans.fixed_cost_usd[None]])
    equal = np.concatenate([rules.equal, -rules.target[:, None]], axis=1)
    unit = np.ones((1, plans.n))
    rows = RuleRows(
        upper=np.concatenate([rules.upper, -rules.limit[:, None]], axis=1),
        limit=np.zeros_like(rules.limit),
        equal=np.concatenate([equal, cost[None]]),
        target=np.concatenate([np.zeros_like(rules.target), unit]),
    )
    lower, upper = interval_bounds(rows, n_dims)
    return replace(
        plans,
        structure=Structure(_per_cost(plans.structure.root, n_dims), n_dims),
        objective="performance",
        rules=rows,
        price_usd_per_Bps=np.concatenate([np.zeros_like(price), -unit]),
        fixed_cost_usd=np.zeros(plans.n),
        limit_s=np.full(plans.n, np.inf),
        compute_s=np.zeros(plans.n),
        lower=lower,
        upper=upper,
    )


def to_per_cost(problem: Problem, bandwidth_bytes_per_s: Array) -> Array:
    """(y, s) of a bandwidth vector."""
    cost_usd = float(problem.cost_usd(bandwidth_bytes_per_s))
    return np.append(bandwidth_bytes_per_s, 1.0) / cost_usd


def from_per_cost(point: Array) -> Array:
    """The bandwidths, shape (n_dims, ...), of (y, s)."""
    bandwidth: Array = point[:-1] / point[-1]
    return bandwidth


def _per_cost(node: Node, n_dims: int) -> Node:
    """The tree, number by number, with constants over s and every linear form widened by s."""
    if isinstance(node, Constant):
        return Transfer(node.seconds, (*(0.0,) * (n_dims - 1), 1.0))
    if isinstance(node, Transfer):
        return Transfer(node.n_bytes, (*node.coefficients, 0.0))
    if isinstance(node, Scaled):
        return Scaled(node.factor, _per_cost(node.term, n_dims))
    if isinstance(node, Labelled):
        return _per_cost(node.term, n_dims)
    kind = Sum if isinstance(node, Sum) else Maximum
    return kind(tuple(_per_cost(term, n_dims) for term in node.terms))
