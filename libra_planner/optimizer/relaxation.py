"""What bounds the best design among purchasable speeds: relaxed problems, and intervals.

The relaxation of a problem lets each dimension with options have any bandwidth between the
slowest and the fastest, at a price that is nowhere above that of an option: an affine function
of the bandwidth, exact where one speed is left. Cheaper and coarser, for all combinations at once,
is what rules leave to the continuous dimensions beside each: the box that follows holds every
design, so the time at its upper corner and the cost at its lower one bound the objective.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.costs.options import Options
from libra_planner.optimizer.batch_scaled import BatchRules
from libra_planner.optimizer.batch_setup import interval_bounds
from libra_planner.optimizer.combinations import Block, late, objectives, rest_of_rule
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array

_NOISE_USD = 1e-6
"""Rounding of a cost."""

_ENDLESS_BYTES_PER_S = 1e30
"""Stands for no upper bound: takes no time."""


def least_objectives(problem: Problem, block: Block) -> Array:
    """Bound of the objective beside each combination of a block, infinite where rules break, (n,).

    Of designs whose other dimensions are continuous.
    """
    n, n_dims = len(block.network_usd), problem.topology.n_dims
    continuous = [i for i in range(n_dims) if i not in problem.purchasable]
    rows, limits = [np.zeros(n_dims)], [np.zeros(n)]  # A row for problems without any rule.
    for rule in problem.rules:
        row, room, slack = rest_of_rule(rule, list(problem.purchasable), block)
        for sign in {"<=": [1.0], ">=": [-1.0]}.get(rule.sense, [1.0, -1.0]):
            rows.append(sign * row)
            limits.append(sign * room + slack)
    table, room = np.array(rows)[:, continuous, None], np.array(limits)
    broken = ((table == 0).all(axis=1) & (room < 0)).any(axis=0)
    none = np.empty((0, len(continuous), n))
    rules = BatchRules(np.broadcast_to(table, (*table.shape[:2], n)), room, none, none[:, 0])
    lower, upper = interval_bounds(rules, len(continuous))
    broken |= (lower > upper * (1 + RULE_TOLERANCE)).any(axis=0)
    fastest = np.empty((n, n_dims))
    fastest[:, list(problem.purchasable)] = block.bandwidth
    fastest[:, continuous] = np.clip(upper, 0.0, _ENDLESS_BYTES_PER_S).T
    step_time_s = problem.step_time.seconds(fastest)
    for limit in problem.step_time_limits:
        broken |= late(limit, step_time_s)
    rest_usd = np.clip(lower, 0.0, _ENDLESS_BYTES_PER_S).T @ problem.price_usd_per_Bps[continuous]
    cost_usd = problem.fixed_cost_usd + block.network_usd + rest_usd
    return np.where(broken, np.inf, objectives(problem, fastest, step_time_s, cost_usd))


def relaxation(problem: Problem) -> Problem | None:
    """The continuous problem whose optimum is no worse than that of any purchasable design.

    Equal to the problem where every dimension with options has one. ``None`` where a
    rule that is left to bought dimensions alone is broken.

    Examples
    --------
    >>> from libra_planner.costs.options import LinkOption
    >>> from libra_planner.timing.expression import TimeExpression, transfers
    >>> from libra_planner.fabric.topology import parse_topology
    >>> speeds = (LinkOption(1e9, 1, 10.0), LinkOption(2e9, 1, 50.0))
    >>> time = TimeExpression(transfers([9e9, 2e9]), 2)
    >>> fabric, price = parse_topology("RI(4)_SW(8)"), np.array([1e-8, 2e-8])
    >>> free = relaxation(Problem("p", "w", fabric, time, price, options=(speeds, None)))
    >>> [rule.text for rule in free.rules], free.price_usd_per_Bps * 1e9, free.fixed_cost_usd
    (['dim1 as bought', 'dim1 as bought'], array([10., 20.]), 0.0)
    """
    price, base_usd = problem.price_usd_per_Bps.copy(), 0.0
    for dim, options in problem.purchasable.items():
        price[dim], constant = _minorant(options)
        base_usd += constant
    rules: list[Rule] = []
    for rule in problem.rules:
        relaxed, slack = _relaxed_rule(problem, rule, price, base_usd)
        if relaxed is not None and any(relaxed.coefficients):
            rules.append(relaxed)
        elif relaxed is not None and relaxed.excess(np.zeros(len(price))) > slack:
            return None
    return replace(
        problem,
        options=(),
        rules=(*rules, *_ranges(problem)),
        price_usd_per_Bps=price,
        fixed_cost_usd=problem.fixed_cost_usd + base_usd,
    )


def _minorant(options: Options) -> tuple[float, float]:
    """Slope and constant, neither negative, of a line that is below every option's cost.

    Of three such lines the highest in the middle: through the origin, flat, and along the
    first and the last option.
    """
    speeds = np.array([option.bandwidth_bytes_per_s for option in options])
    costs = np.array([option.cost_usd for option in options])
    middle = (speeds[0] + speeds[-1]) / 2
    chord = max(0.0, float((costs[-1] - costs[0]) / ((speeds[-1] - speeds[0]) or 1.0)))
    slopes = (float((costs / speeds).min()), 0.0, chord)
    lines = [(slope, float((costs - slope * speeds).min())) for slope in slopes]
    usable = [(slope, max(0.0, constant)) for slope, constant in lines if constant > -_NOISE_USD]
    return max(usable, key=lambda line: line[0] * middle + line[1])


def _relaxed_rule(
    problem: Problem, rule: Rule, price: Array, base_usd: float
) -> tuple[Rule | None, float]:
    """A rule with the bought bandwidths on the right side, and what rounding may break it by.

    ``None`` where it must be let go: a cost that is too low may be that of an option that is not.
    """
    if rule.cost_factor:
        exact = all(len(options) == 1 for options in problem.purchasable.values())
        sense = rule.sense if exact else ("<=" if rule.cost_factor > 0 else ">=")
        if rule.sense not in (sense, "=="):
            return None, 0.0
        row, moved = rule.cost_factor * price, rule.cost_factor * base_usd
        relaxed = replace(rule, coefficients=_row(row), sense=sense, bound=rule.bound - moved)
        return relaxed, RULE_TOLERANCE * max(abs(rule.bound), abs(moved))
    single = {dim: o[0] for dim, o in problem.purchasable.items() if len(o) == 1}
    speeds = np.array([[option.bandwidth_bytes_per_s for option in single.values()]])
    row, [bound], [slack] = rest_of_rule(rule, list(single), Block(speeds, np.zeros(1)))
    return replace(rule, coefficients=_row(row), bound=float(bound)), float(slack)


def _row(coefficients: Array) -> tuple[float, ...]:
    return tuple(map(float, coefficients))


def _ranges(problem: Problem) -> list[Rule]:
    """What is purchasable, as rules."""
    rules = []
    for dim, options in problem.purchasable.items():
        text = f"{problem.topology.labels[dim]} as bought"
        axis = _row(np.eye(problem.topology.n_dims)[dim])
        slowest, fastest = options[0].bandwidth_bytes_per_s, options[-1].bandwidth_bytes_per_s
        if len(options) == 1:
            rules.append(Rule(text, axis, "==", slowest))
        else:
            rules += [Rule(text, axis, ">=", slowest), Rule(text, axis, "<=", fastest)]
    return rules
