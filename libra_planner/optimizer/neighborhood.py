"""Optima to 30 digits: of a problem, and of those next to it.

A move of 1e-8 beside hours of compute, or beside a large fixed cost, is lost in a double:
numbers and moves are decimals here (see ``exact``), as are the optima (see ``neighborhood``).

Compute that is twelve orders of magnitude longer than communication, or a step-time bound that is
a million times too loose, puts what is to be decided below the rounding of a double. The
interior-point method in decimals (``exact``) decides it, and its multipliers prove it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import TypeAlias

import numpy as np

from libra_planner.costs.prices import PricePart
from libra_planner.optimizer.decimals import (
    N_DIGITS,
    ONE,
    ZERO,
    Exact,
    ExactPoint,
    ExactProgram,
    exact,
    exact_bound,
    exact_optimum,
    filled,
    zeros,
)
from libra_planner.optimizer.design import Design, exact_design
from libra_planner.optimizer.per_cost import per_cost_problem
from libra_planner.optimizer.program import scaled_program
from libra_planner.optimizer.solution import Solution
from libra_planner.optimizer.typical import typical_bandwidth
from libra_planner.optimizer.wellposed import bandwidth_bounds
from libra_planner.problem import Problem
from libra_planner.timing.expression import Array
from libra_planner.timing.lifted import Lifted, lift
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


_TIE, _FIRST_TIE, _NEXT_TIE = Decimal("1e-22"), Decimal("1e-6"), Decimal("1e-3")
"""Weight of what decides between equal objectives; over that, of the first bandwidth; of each
bandwidth over the one before."""

_UNUSED = 1e-4
"""Share of the largest bandwidth that stands for none as a unit."""


@dataclass(frozen=True)
class ExactOptimum:
    """An optimum, exact.

    Parameters
    ----------
    bandwidth : shape (n_dims,), bytes/s.
    communication_s : step time without its constant, ``Neighborhood.constant_s``.
    cost_usd : network and fixed cost.
    point : where neighbors are solved from.
    per_cost : the point is over (B/C, 1/C), see ``per_cost``.
    """

    bandwidth: Exact
    communication_s: Decimal
    cost_usd: Decimal
    point: ExactPoint
    per_cost: bool


class Neighborhood:
    """Solver of problems next to one problem.

    Parameters
    ----------
    problem : with one step time and linear prices.
    typical : its optimum, shape (n_dims,), bytes/s: the units of the solver; 1 GB/s where no
        bandwidth at all is best.
    """

    def __init__(self, problem: Problem, typical: Array) -> None:
        self.problem, self.amounts = problem, amounts(problem)
        self._unit = exact(np.maximum(typical, _UNUSED * typical.max() or BYTES_PER_S_PER_GBPS))
        self._plain = _System(lift(problem.step_time), self._unit)
        self.constant_s = self._plain.lifted.constant_s

    def optimum(
        self, at: Amounts, near: ExactOptimum | None = None, *, last: bool = False
    ) -> ExactOptimum | None:
        """The optimum, ties broken as in C9; ``None`` without one.

        Time x cost is quasi-convex: where its optimum is too slow, the best design is the
        cheapest that is not. A neighbor's optimum is a good start. Of optima of one time and
        cost the ``last`` is at the other end.
        """
        if self.problem.objective == "performance_per_cost":
            start = near.point if near and near.per_cost else None
            point = self._least_product(at, start, last=last)
            found = self._optimum(at, point, per_cost=True)
            if found is None or at.limit_s is None or found.communication_s <= at.limit_s:
                return found
        start = near.point if near and not near.per_cost else None
        return self._optimum(at, self._least(at, start, last=last), per_cost=False)

    def bound(self, found: ExactOptimum, upper: Array) -> Decimal:
        """Proven: the least of what was minimised for an optimum of the problem itself.

        That is step time without its constant, cost without the fixed one or, where the
        optimum is ``per_cost``, their product.

        Parameters
        ----------
        found : without anything moved.
        upper : bounds of what it was found over, B in bytes/s or (B/C, 1/C).
        """
        system = self._product if found.per_cost else self._plain
        fastest = found.per_cost or self.problem.objective == "performance"
        cost = system.time if fastest else system.over_b(self.amounts.price)
        endless = filled([Decimal("Infinity")] * system.n_w)
        return exact_bound(found.point, cost, np.concatenate([exact(upper), endless]))

    def _optimum(
        self, at: Amounts, point: ExactPoint | None, *, per_cost: bool
    ) -> ExactOptimum | None:
        if point is None:
            return None
        n_dims = len(at.price)
        b = point.x[:n_dims] / (point.x[n_dims] if per_cost else ONE)
        time_s = self._plain.time_s(b)
        return ExactOptimum(b, time_s, at.fixed_usd + at.price @ b, point, per_cost)

    @cached_property
    def _product(self) -> _System:
        """The step time of the problem over (B/C, 1/C)."""
        cost_usd = self.amounts.price @ self._unit + self.amounts.fixed_usd
        unit = filled([*self._unit, ONE]) / cost_usd
        return _System(lift(per_cost_problem(self.problem).step_time), unit)

    def _least(self, at: Amounts, near: ExactPoint | None, *, last: bool) -> ExactPoint | None:
        """The fastest or the cheapest design within the step-time limit."""
        system, rows = self._plain, at.rows[list(at.equal)]
        time, price = system.time, system.over_b(at.price)
        first, second = (time, price) if self.problem.objective == "performance" else (price, time)
        limits = [] if at.limit_s is None else [at.limit_s]
        return system.optimum(
            system.ranked(first, second, len(at.price), last=last),
            np.vstack([system.over_b(np.vstack([at.rows, -rows])), *[-time for _ in limits]]),
            filled([*at.least, *-at.least[list(at.equal)], *[-limit for limit in limits]]),
            floors=(exact(np.eye(len(at.floor))), at.floor),
            near=near,
        )

    def _least_product(
        self, at: Amounts, near: ExactPoint | None, *, last: bool
    ) -> ExactPoint | None:
        """The least T C, over (B/C, 1/C): see ``per_cost``."""
        system, n_dims = self._product, len(at.price)
        smallest_cost = system.over_b(filled([*[ZERO] * n_dims, -ONE]))
        rules = np.column_stack([at.rows, -at.least])
        unit_cost = filled([*at.price, at.fixed_usd])
        rows = np.vstack([rules, -rules[list(at.equal)], unit_cost, -unit_cost])
        axes = exact(np.eye(n_dims + 1))
        axes[:n_dims, n_dims] = -at.floor
        return system.optimum(
            system.ranked(system.time, smallest_cost, n_dims, last=last),
            system.over_b(rows),
            filled([*[ZERO] * (len(rows) - 2), ONE, -ONE]),
            floors=(axes, zeros(n_dims + 1)),
            near=near,
        )


class _System:
    """A lifted step time over x = (b, w), with its unit."""

    def __init__(self, lifted: Lifted, unit_b: Exact) -> None:
        self.lifted, self.n_b, self.n_w = lifted, len(unit_b), len(lifted.objective)
        self.forms, self.w_rows = exact(lifted.forms), exact(lifted.rows)
        self.w_least = exact(lifted.offsets)
        self.time = np.concatenate([zeros(self.n_b), exact(lifted.objective)])
        self.unit = np.concatenate([unit_b, filled(x or ONE for x in self._least_w(unit_b))])

    def over_b(self, rows: Exact) -> Exact:
        """Rows over b, or one of them, as rows over (b, w)."""
        return np.concatenate([rows, zeros(*rows.shape[:-1], self.n_w)], axis=-1)

    def time_s(self, b: Exact) -> Decimal:
        """Communication time."""
        return Decimal(self.time[self.n_b :] @ self._least_w(b))

    def ranked(self, first: Exact, second: Exact, n_dims: int, *, last: bool) -> Exact:
        """One objective before the other, then every bandwidth in turn, by tiny weights.

        Bandwidths are to be small, or large for the ``last`` of the optima.
        """
        total: Exact = _sized(first, self.unit) + _TIE * _sized(second, self.unit)
        tie = -_TIE * _FIRST_TIE if last else _TIE * _FIRST_TIE
        for i in range(n_dims):
            total[i] += tie * _NEXT_TIE**i / self.unit[i]
        return total

    def optimum(
        self,
        cost: Exact,
        rows: Exact,
        least: Exact,
        *,
        floors: tuple[Exact, Exact],
        near: ExactPoint | None,
    ) -> ExactPoint | None:
        """The optimum under the rules, given as rows over x, and floors, as rows over b."""
        epigraph = np.hstack([zeros(len(self.w_rows), self.n_b), -self.w_rows])
        program = ExactProgram(
            cost=cost,
            rows=np.vstack([epigraph, rows, self.over_b(floors[0])]),
            least=np.concatenate([self.w_least, least, floors[1]]),
            n_firm=len(floors[0]),
            forms=self.over_b(self.forms),
            first=self.n_b,
        )
        return exact_optimum(program, self.unit, near)

    def _least_w(self, b: Exact) -> Exact:
        """Reciprocals, then each maximum from its rows."""
        reciprocals = [ONE / x if x else ZERO for x in self.forms @ b]
        w = filled([*reciprocals, *[ZERO] * (self.n_w - len(reciprocals))])
        for k in range(len(reciprocals), len(w)):
            own = np.flatnonzero(self.lifted.rows[:, k] < 0)
            rows = self.w_rows[own]
            w[k] = max((rows @ w + self.w_least[own]) / -rows[:, k])
        return w


def _sized(row: Exact, unit: Exact) -> Exact:
    """A row whose largest term is 1 at the unit."""
    sized: Exact = row / (max(abs(row * unit)) or ONE)
    return sized


_DUST = 1e-14
"""Bandwidth, over a typical one, that is none unless a transfer needs it."""

_TIED = 1e-6
"""Difference of a bandwidth, over the largest, above which another design ties."""


def certain_solution(problem: Problem, lower: Array, upper: Array) -> Solution | None:
    """The optimum to 30 digits, rounded, with its proof; ``None`` where no method finds one.

    Parameters
    ----------
    problem : with one step time and linear prices.
    lower, upper : bounds of every bandwidth under the linear rules, bytes/s, shape (n_dims,).
    """
    typical = typical_bandwidth(problem, lower, upper)
    with localcontext() as context:
        context.prec = N_DIGITS
        nearby = Neighborhood(problem, typical)
        found = nearby.optimum(nearby.amounts)
        if found is None:
            return None
        bound = _bound(problem, nearby, found, upper)
        unique = _same(found, nearby.optimum(nearby.amounts, last=True))
    design = _design(problem, found.bandwidth.astype(np.float64), typical, upper)
    design = replace(design, lower_bound=min(float(bound), design.objective), unique=unique)
    return Solution(design, problem, has_neighbors=bool(len(problem.step_time.forms)))


def _bound(problem: Problem, nearby: Neighborhood, found: ExactOptimum, upper: Array) -> Decimal:
    """Proven bound on the objective, in its unit."""
    if found.per_cost:
        return nearby.bound(found, bandwidth_bounds(per_cost_problem(problem))[1])
    bound = nearby.bound(found, upper)
    if problem.objective == "performance":
        return Decimal(nearby.constant_s) + bound
    cost_usd = nearby.amounts.fixed_usd + bound
    if problem.objective == "cost":
        return cost_usd
    # Too slow without the step-time limit: the least product is on it (``objectives``).
    return (Decimal(nearby.constant_s) + (nearby.amounts.limit_s or 0)) * cost_usd


def _design(problem: Problem, bandwidth: Array, typical: Array, upper: Array) -> Design:
    """The design at a vector, dust swept, rules met to rounding."""
    used = problem.step_time.forms > 0
    alone = used[used.sum(axis=1) == 1].any(axis=0)
    kept = (bandwidth > 0) & (alone | (bandwidth > _DUST * typical))
    program = scaled_program(problem, np.where(kept, bandwidth, typical), upper)
    return exact_design(problem, program, np.where(kept, 1.0, 0.0), np.inf, unique=False)


def _same(first: ExactOptimum, last: ExactOptimum | None) -> bool:
    """Whether the ends of the set of optima are one design."""
    if last is None:
        return False
    apart = max(abs(first.bandwidth - last.bandwidth))
    return bool(apart <= Decimal(_TIED) * max(first.bandwidth))
