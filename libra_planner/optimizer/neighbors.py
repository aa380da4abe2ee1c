"""Numbers of a problem next to a problem: a bound, a gift, a cost or a price moved a little.

A move of 1e-8 beside hours of compute, or beside a large fixed cost, is lost in a double:
numbers and moves are decimals here (see ``exact``), as are the optima (see ``neighborhood``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from libra_planner.costing import PricePart
from libra_planner.optimizer.exact import (
    ONE,
    ZERO,
    Exact,
    exact,
    filled,
    zeros,
)
from libra_planner.problem import Problem
from libra_planner.timing.lifted import lift
from libra_planner.units import BYTES_PER_S_PER_GBPS


@dataclass(frozen=True)
class Amounts:
    """What of a problem moves, SI.

    Parameters
    ----------
    rows, least : rules as ``rows . B >= least``, shapes (n_rules, n_dims) and (n_rules,).
    equal : of each rule, whether its row is an equality.
    floor : least bandwidths, shape (n_dims,).
    price : USD per byte/s, shape (n_dims,).
    fixed_usd : fixed cost.
    limit_s : tightest step-time limit less what no bandwidth changes, if there is one.
    """

    rows: Exact
    least: Exact
    equal: tuple[bool, ...]
    floor: Exact
    price: Exact
    fixed_usd: Decimal
    limit_s: Decimal | None

    def with_row(self, row: Exact, least: Decimal) -> Amounts:
        """With one more rule."""
        rows: Exact = np.vstack([self.rows, row])
        return replace(
            self, rows=rows, least=filled([*self.least, least]), equal=(*self.equal, False)
        )


Neighbor: TypeAlias = Callable[[Decimal], Amounts | None]
"""The amounts with something moved by so much, in its unit; ``None`` if it cannot be."""


def amounts(problem: Problem) -> Amounts:
    """The numbers of a problem, in a context of ``N_DIGITS``."""
    signs = [-ONE if rule.sense == "<=" else ONE for rule in problem.rules]
    rows = exact([rule.coefficients for rule in problem.rules])
    limits = [Decimal(limit.limit_s) for limit in problem.step_time_limits]
    constant_s = Decimal(lift(problem.step_time).constant_s)
    return Amounts(
        rows=rows.reshape(-1, problem.topology.n_dims) * filled(signs)[:, None],
        least=exact([rule.bound for rule in problem.rules]) * filled(signs),
        equal=tuple(rule.sense == "==" for rule in problem.rules),
        floor=zeros(problem.topology.n_dims),
        price=exact(problem.price_usd_per_Bps),
        fixed_usd=Decimal(problem.fixed_cost_usd),
        limit_s=min(limits) - constant_s if limits else None,
    )


def moved_rule(problem: Problem, base: Amounts, i: int) -> Neighbor:
    """Rule i with its bound moved, in its own unit."""
    rule = problem.rules[i]
    unit = Decimal(rule.unit_factor) * (-1 if rule.sense == "<=" else 1)

    def neighbor(units: Decimal) -> Amounts:
        least = base.least.copy()
        least[i] += units * unit
        return replace(base, least=least)

    return neighbor


def moved_limit(problem: Problem, base: Amounts, i: int) -> Neighbor:
    """Step-time limit i moved, in seconds."""
    limits = [Decimal(limit.limit_s) for limit in problem.step_time_limits]

    def neighbor(seconds: Decimal) -> Amounts:
        moved = [limit + seconds * (k == i) for k, limit in enumerate(limits)]
        return replace(base, limit_s=(base.limit_s or ZERO) + min(moved) - min(limits))

    return neighbor


def given(base: Amounts, i: int, bandwidth_bytes_per_s: float) -> Neighbor:
    """GB/s given to dimension i: rules and cost see B, the step time B with the gift.

    The amounts are put over the sum of both, so rules and cost are moved instead. Nothing is
    taken away from a dimension without bandwidth.
    """

    def neighbor(units: Decimal) -> Amounts | None:
        if units < 0 and not bandwidth_bytes_per_s:
            return None
        gift = units * Decimal(BYTES_PER_S_PER_GBPS)
        paid = base.fixed_usd - base.price[i] * gift
        floor = base.floor.copy()
        floor[i] = max(gift, ZERO)  # It cannot be sold.
        least = base.least + base.rows[:, i] * gift
        return replace(base, least=least, floor=floor, fixed_usd=paid)

    return neighbor


def spent(base: Amounts, network_usd: Decimal) -> Neighbor:
    """Network cost held below the optimum's, moved."""

    def neighbor(usd: Decimal) -> Amounts:
        # What may be spent need not be.
        return base if usd > 0 else base.with_row(-base.price, -network_usd - usd)

    return neighbor


def repriced(problem: Problem, base: Amounts, part: PricePart) -> Neighbor:
    """One price of the book moved; rules about cost follow it."""
    quantity = exact(part.usd_per_Bps_per_price)
    factor = exact([r.cost_factor * (-1 if r.sense == "<=" else 1) for r in problem.rules])

    def neighbor(usd_per_GBps: Decimal) -> Amounts | None:
        if Decimal(part.usd_per_GBps) + usd_per_GBps < 0:
            return None
        more = usd_per_GBps * quantity
        rows = base.rows + factor[:, None] * more
        return replace(base, rows=rows, price=base.price + more)

    return neighbor
