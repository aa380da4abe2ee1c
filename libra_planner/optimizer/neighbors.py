"""Problems next to a problem: a bound, a gift of bandwidth, a cost or a price moved a little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from libra_planner.costing import PricePart
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.timing.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS

Neighbor: TypeAlias = Callable[[float], Problem | None]
"""The problem with something moved by so much, in its unit; ``None`` if it cannot be."""


def moved_rule(problem: Problem, i: int) -> Neighbor:
    """Rule i with its bound moved, in its own unit."""

    def neighbor(units: float) -> Problem:
        rules = list(problem.rules)
        rules[i] = replace(rules[i], bound=rules[i].bound + units * rules[i].unit_factor)
        return replace(problem, rules=tuple(rules))

    return neighbor


def moved_limit(problem: Problem, i: int) -> Neighbor:
    """Step-time limit i moved, in seconds."""

    def neighbor(seconds: float) -> Problem:
        limits: list[StepTimeLimit] = list(problem.step_time_limits)
        limits[i] = replace(limits[i], limit_s=limits[i].limit_s + seconds)
        return replace(problem, step_time_limits=tuple(limits))

    return neighbor


def given(problem: Problem, i: int) -> Neighbor:
    """GB/s given to dimension i: rules and cost see B, the step time B with the gift.

    The problem is put over the sum of both, so rules and cost are moved instead.
    """

    def neighbor(units: float) -> Problem:
        gift = units * BYTES_PER_S_PER_GBPS
        axis = tuple(float(i == k) for k in range(problem.topology.n_dims))
        rules = (
            *(replace(r, bound=r.bound + r.coefficients[i] * gift) for r in problem.rules),
            *([Rule("gift", axis, ">=", gift)] if gift > 0 else []),  # It cannot be sold.
        )
        paid = problem.fixed_cost_usd - float(problem.price_usd_per_Bps[i]) * gift
        return replace(problem, rules=rules, fixed_cost_usd=paid)

    return neighbor


def spent(problem: Problem, cost_usd: float) -> Neighbor:
    """Network cost held below the optimum's, moved."""
    price = tuple(map(float, problem.price_usd_per_Bps))

    def neighbor(usd: float) -> Problem:
        if usd > 0:
            return problem  # What may be spent need not be.
        spare = cost_usd + usd - problem.fixed_cost_usd
        cap = Rule("cost", price, "<=", spare, "$", 1.0, cost_factor=1.0)
        return replace(problem, rules=(*problem.rules, cap))

    return neighbor


def repriced(problem: Problem, part: PricePart) -> Neighbor:
    """One price of the book moved; rules about cost follow it."""
    old = problem.price_usd_per_Bps

    def neighbor(usd_per_GBps: float) -> Problem | None:
        if part.usd_per_GBps + usd_per_GBps < 0:
            return None
        more = usd_per_GBps * np.array(part.usd_per_Bps_per_price)
        rules = tuple(_dearer(rule, more) for rule in problem.rules)
        return replace(problem, rules=rules, price_usd_per_Bps=old + more)

    return neighbor


def _dearer(rule: Rule, more: Array) -> Rule:
    """A rule about cost at higher prices; others as they are."""
    row = np.array(rule.coefficients) + rule.cost_factor * more
    return replace(rule, coefficients=tuple(map(float, row)))
