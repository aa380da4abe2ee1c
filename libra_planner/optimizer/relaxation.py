"""Boxes of purchasable speeds, and the continuous problem that bounds the best design in one.

A box lets each purchasable dimension choose among neighbouring speeds. Its relaxation
lets it have any bandwidth between the slowest and the fastest, at a price that is nowhere
above that of an option: an affine function of the bandwidth, exact where one speed is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.costs.options import Options
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array

_NOISE_USD = 1e-6
"""Rounding of a cost."""


@dataclass(frozen=True)
class Box:
    """First and last option, by index, of each purchasable dimension in their order."""

    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def n_combinations(self) -> int:
        """Designs in the box, continuous dimensions aside."""
        sizes = (last - first + 1 for first, last in zip(self.first, self.last, strict=True))
        return math.prod(sizes)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as an index into an array over all combinations."""
        pairs = zip(self.first, self.last, strict=True)
        return tuple(slice(first, last + 1) for first, last in pairs)

    def part(self, d: int, first: int, last: int) -> Box:
        """The box with one dimension's range replaced."""
        lower = (*self.first[:d], first, *self.first[d + 1 :])
        return Box(lower, (*self.last[:d], last, *self.last[d + 1 :]))


def whole_box(problem: Problem) -> Box:
    """All combinations."""
    sizes = [len(options) for options in problem.purchasable.values()]
    return Box((0,) * len(sizes), tuple(size - 1 for size in sizes))


def restricted(problem: Problem, box: Box) -> Problem:
    """The problem with only the options in a box."""
    options = list(problem.options)
    for (dim, listed), part in zip(problem.purchasable.items(), box.slices, strict=True):
        options[dim] = listed[part]
    return replace(problem, options=tuple(options))


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
    price, base_usd = _affine_cost(problem)
    rules: list[Rule] = []
    for rule in problem.rules:
        relaxed = _relaxed_rule(problem, rule, price, base_usd)
        if relaxed is not None and not any(relaxed.coefficients):
            if relaxed.excess(np.zeros(len(price))) > RULE_TOLERANCE * _size(problem, rule):
                return None
        elif relaxed is not None:
            rules.append(relaxed)
    return replace(
        problem,
        options=(),
        rules=(*rules, *_ranges(problem)),
        price_usd_per_Bps=price,
        fixed_cost_usd=problem.fixed_cost_usd + base_usd,
    )


def _affine_cost(problem: Problem) -> tuple[Array, float]:
    """Price per byte/s, (n_dims,), and a constant: together never above the options' cost."""
    price, base_usd = problem.price_usd_per_Bps.copy(), 0.0
    for dim, options in problem.purchasable.items():
        slope, constant = _minorant(options)
        price[dim] = slope
        base_usd += constant
    return price, base_usd


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


def _relaxed_rule(problem: Problem, rule: Rule, price: Array, base_usd: float) -> Rule | None:
    """A rule with the bought bandwidths on the right side; ``None`` where it must be let go."""
    if rule.cost_factor:
        exact = all(len(options) == 1 for options in problem.purchasable.values())
        sense = rule.sense if exact else ("<=" if rule.cost_factor > 0 else ">=")
        if rule.sense not in (sense, "=="):
            return None  # A cost that is too low may be that of an option that is not.
        coefficients, bound = rule.cost_factor * price, rule.bound - rule.cost_factor * base_usd
        return replace(rule, coefficients=_row(coefficients), sense=sense, bound=bound)
    coefficients, bound = np.array(rule.coefficients), rule.bound
    for dim, options in problem.purchasable.items():
        if len(options) == 1:
            bound -= coefficients[dim] * options[0].bandwidth_bytes_per_s
            coefficients[dim] = 0.0
    return replace(rule, coefficients=_row(coefficients), bound=float(bound))


def _row(coefficients: Array) -> tuple[float, ...]:
    return tuple(map(float, coefficients))


def _size(problem: Problem, rule: Rule) -> float:
    """What a violation of a rule over bought dimensions alone is relative to (C9)."""
    options = problem.purchasable
    if rule.cost_factor:
        left = sum(abs(rule.cost_factor) * listed[0].cost_usd for listed in options.values())
    else:
        terms = (abs(rule.coefficients[i]) * o[0].bandwidth_bytes_per_s for i, o in options.items())
        left = sum(terms)
    return max(abs(rule.bound), left)


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
