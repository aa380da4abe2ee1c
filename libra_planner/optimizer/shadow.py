"""Shadow prices: what one unit more of a rule, a dimension or a price changes at the optimum.

Each is a one-sided derivative of the re-optimised optimum: the rule, dimension or price
is moved a little and the neighboring problem solved, to 30 digits (see ``neighborhood``), so
that the difference of two optima is their derivative and nothing else. At a kink, where
dimensions tie, the two sides differ and both are given; a side beyond which there is no
design, or only one that is far away, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import partial
from typing import TypeAlias

import numpy as np

from libra_planner.costs.prices import PricePart
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer import decimals
from libra_planner.optimizer.design import CERTIFIED_GAP, Design, Solution
from libra_planner.problem import Problem, Rule
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS, gigabytes_per_s

_STEP = Decimal("1e-8")
"""Move of a bound, bandwidth or price, relative to its size."""

_SAME_SIDES = 1e-5
"""Relative difference up to which left and right derivatives are one."""

_LOOSE = 1e-3
"""Relative room beyond which a rule is worth nothing: it does not bind."""

_NOISE = 1e-7
"""Relative change of time or cost, per relative move, that counts as none."""

_STEEP = 1e4
"""The same, beyond which it may be a jump."""

_JUMP = 0.75
"""Share of a step's change that half the step makes where there is no derivative."""


@dataclass(frozen=True)
class ShadowPrice:
    """A derivative of the optimum.

    Parameters
    ----------
    subject : ``rule``, ``dimension``, ``cost`` or ``price``.
    name : the rule's text, the dimension or the price.
    line : of the rule, if it has one.
    bound : what is moved, in the form it was normalised to, such as ``>= 25 GB/s``.
    unit : of what is moved by one.
    d_step_time_s, d_cost_usd : change of the re-optimised step time and cost per unit.
    side : ``left`` (less), ``right`` (more) or ``both``.
    """

    subject: str
    name: str
    unit: str
    line: int | None = None
    bound: str = ""
    d_step_time_s: float = 0.0
    d_cost_usd: float = 0.0
    side: str = "both"


_Neighbor: TypeAlias = Callable[[Decimal], decimals.Amounts | None]
"""The amounts with something moved by so much, in its unit; ``None`` if it cannot be."""


def shadow_prices(problem: Problem, solution: Solution) -> tuple[ShadowPrice, ...] | None:
    """Prices of every rule, dimension and, where cost counts for nothing, of a dollar.

    The price of a rule is per unit of its bound; of a dimension, per GB/s given free
    outside the rules. Rules with room to spare are worth nothing. ``None`` where the
    optimum has no neighbors of its kind (a catalogue's, a relative group's, no traffic's), or
    the exact one is not the certified one, so that no price could be trusted.
    """
    return _walked(problem, solution, _worth)


def no_prices_reason(problem: Problem, solution: Solution) -> str:
    """Why an optimum has no shadow prices, where :func:`shadow_prices` gives none."""
    if problem.prices.choice is not None:
        return "a bill is of whole parts, which have no slope"
    if problem.options:
        return "a catalogue sells whole options, which have no slope"
    if problem.step_time.structure.has_roots:
        return "calibrated collectives have none yet"
    if problem.group_objective != "weighted":
        return "what moves a rule moves every workload's own optimum, too"
    if not solution.has_neighbors:
        return "the step has no traffic"
    return "the exact optimum beside the certified one was not found"


def price_sensitivity(problem: Problem, solution: Solution) -> tuple[ShadowPrice, ...] | None:
    """Change of the optimum per USD per GB/s of every price in the book that the fabric uses."""
    about_cost = problem.objective != "performance" or any(r.cost_factor for r in problem.rules)
    if about_cost or not solution.has_neighbors:
        return _walked(problem, solution, _of_prices)
    # Where no price has a say in the design: the quantity that is bought at each.
    bandwidth = solution.design.bandwidth_bytes_per_s
    return tuple(
        replace(_entry(part), d_cost_usd=float(np.dot(part.usd_per_Bps_per_price, bandwidth)))
        for part in problem.prices.parts
    )


def _walked(
    problem: Problem,
    solution: Solution,
    entries: Callable[[Problem, Design, _Walker], Iterator[ShadowPrice]],
) -> tuple[ShadowPrice, ...] | None:
    if not solution.has_neighbors:
        return None
    with localcontext() as context:
        context.prec = decimals.N_DIGITS
        design, nearby = (
            solution.design,
            decimals.Neighborhood(problem, solution.design.bandwidth_bytes_per_s),
        )
        base = nearby.optimum(nearby.amounts)
        if base is None:
            return None
        step_time_s = nearby.constant_s + float(base.communication_s)
        objective = OBJECTIVES[problem.objective](step_time_s, float(base.cost_usd))
        if not abs(objective - design.objective) <= CERTIFIED_GAP * design.objective:
            return None  # The exact optimum is not the one that was proven.
        return tuple(entries(problem, design, _Walker(nearby, base)))


def _worth(problem: Problem, design: Design, walker: _Walker) -> Iterator[ShadowPrice]:
    """Entries of rules, dimensions and a dollar."""
    base, bandwidth = walker.nearby.amounts, design.bandwidth_bytes_per_s
    for i, one in enumerate(problem.rules):
        rule = one.in_units(bandwidth)
        subject = ShadowPrice("rule", rule.text, rule.unit, rule.line, rule.bound_text)
        if _room(rule, bandwidth) > _LOOSE:
            yield subject
        else:
            size = _size(rule, bandwidth) / rule.unit_factor
            yield from walker.prices(subject, size, partial(_moved_rule, rule, base, i))
    limits = [Decimal(limit.limit_s) for limit in problem.step_time_limits]
    for i, limit in enumerate(problem.step_time_limits):
        subject = ShadowPrice("rule", limit.text, "s", limit.line, f"<= {limit.limit_s:g} s")
        size = min(float(walker.base.communication_s) or limit.limit_s, limit.limit_s)
        yield from walker.prices(subject, size, partial(_moved_limit, limits, base, i))
    for i, label in enumerate(problem.topology.labels):
        size = gigabytes_per_s(float(bandwidth[i]) or float(bandwidth.max()))
        gift = partial(_given_to, i, base, float(bandwidth[i]))
        yield from walker.prices(ShadowPrice("dimension", label, "GB/s"), size, gift)
    if problem.objective != "cost":
        cost_usd = walker.base.cost_usd
        subject = ShadowPrice("cost", "cost", "$", bound=f"<= {cost_usd:.6g} $")
        network_usd = float(problem.price_usd_per_Bps @ bandwidth)
        yield from walker.prices(subject, network_usd, partial(_spent, base, cost_usd))


def _of_prices(problem: Problem, _: Design, walker: _Walker) -> Iterator[ShadowPrice]:
    """Entries of the prices of the book."""
    for part in problem.prices.parts:
        size = part.usd_per_GBps or max(p.usd_per_GBps for p in problem.prices.parts)
        moved = partial(_repriced, problem, walker.nearby.amounts, part)
        yield from walker.prices(_entry(part), size, moved)


def _entry(part: PricePart) -> ShadowPrice:
    return ShadowPrice("price", f"{part.tier} {part.part}", "USD per GB/s")


def _moved_rule(rule: Rule, base: decimals.Amounts, i: int, units: Decimal) -> decimals.Amounts:
    """Rule i with its bound moved, in its own unit."""
    least = base.least.copy()
    least[i] += units * Decimal(rule.unit_factor) * (-1 if rule.sense == "<=" else 1)
    return replace(base, least=least)


def _moved_limit(
    limits: list[Decimal], base: decimals.Amounts, i: int, seconds: Decimal
) -> decimals.Amounts:
    """Step-time limit i moved."""
    moved = [limit + seconds * (k == i) for k, limit in enumerate(limits)]
    return replace(base, limit_s=(base.limit_s or decimals.ZERO) + min(moved) - min(limits))


def _given_to(
    i: int, base: decimals.Amounts, bandwidth: float, units: Decimal
) -> decimals.Amounts | None:
    """GB/s given to dimension i: rules and cost see B, the step time B with the gift.

    The amounts are put over the sum of both, so rules and cost are moved instead. Nothing is
    taken away from a dimension without bandwidth.
    """
    if units < 0 and not bandwidth:
        return None
    gift = units * Decimal(BYTES_PER_S_PER_GBPS)
    floor = base.floor.copy()
    floor[i] = max(gift, decimals.ZERO)  # It cannot be sold.
    paid = base.fixed_usd - base.price[i] * gift
    return replace(base, least=base.least + base.rows[:, i] * gift, floor=floor, fixed_usd=paid)


def _spent(base: decimals.Amounts, cost_usd: Decimal, usd: Decimal) -> decimals.Amounts:
    """Cost held below the optimum's, moved; what may be spent need not be."""
    return base if usd > 0 else base.with_row(-base.price, base.fixed_usd - cost_usd - usd)


def _repriced(
    problem: Problem, base: decimals.Amounts, part: PricePart, usd_per_GBps: Decimal
) -> decimals.Amounts | None:
    """One price of the book moved; rules about cost follow it."""
    if Decimal(part.usd_per_GBps) + usd_per_GBps < 0:
        return None
    factor = decimals.exact([r.cost_factor * (-1 if r.sense == "<=" else 1) for r in problem.rules])
    more = usd_per_GBps * decimals.exact(part.usd_per_Bps_per_price)
    return replace(base, rows=base.rows + factor[:, None] * more, price=base.price + more)


def _size(rule: Rule, bandwidth: Array) -> float:
    """Size of a rule at a design: of its bound or of its terms."""
    return max(abs(rule.bound), float(np.abs(rule.coefficients) @ bandwidth))


def _room(rule: Rule, bandwidth: Array) -> float:
    """Room a rule leaves, relative to its size."""
    left = float(np.dot(rule.coefficients, bandwidth))
    return abs(left - rule.bound) / (_size(rule, bandwidth) or 1.0)


@dataclass(frozen=True)
class _Walker:
    """Neighbors of one optimum.

    Parameters
    ----------
    nearby : solves them.
    base : the optimum.
    """

    nearby: decimals.Neighborhood
    base: decimals.ExactOptimum

    def prices(self, subject: ShadowPrice, size: float, neighbor: _Neighbor) -> list[ShadowPrice]:
        """The derivative, as one entry where both sides agree and as two where not."""
        if not size:
            return []
        network_usd = self.base.cost_usd - self.nearby.amounts.fixed_usd
        noise = np.array([float(self.base.communication_s), float(network_usd)]) * _NOISE / size
        step = _STEP * Decimal(size)
        slopes = self._slopes(neighbor, step)
        if (np.abs(slopes) > noise * (_STEEP / _NOISE)).any():
            # Where there is a derivative half the step makes half the change.
            halves = self._slopes(neighbor, step / 2)
            slopes[~(np.abs(halves) <= 2 * _JUMP * np.abs(slopes)).all(axis=1)] = np.nan
        apart, largest = np.abs(slopes[1] - slopes[0]), np.abs(slopes).max(axis=0)
        same = (apart <= _SAME_SIDES * largest + 2 * noise).all()
        sides = {"both": slopes.mean(axis=0)} if same else {"left": slopes[0], "right": slopes[1]}
        rounded = {side: np.where(np.abs(s) <= noise, 0.0, s) for side, s in sides.items()}
        return [
            replace(subject, d_step_time_s=float(slope[0]), d_cost_usd=float(slope[1]), side=side)
            for side, slope in rounded.items()
            if np.isfinite(slope).all()
        ]

    def _slopes(self, neighbor: _Neighbor, step: Decimal) -> Array:
        """Difference quotients of time and cost, left and right, shape (2, 2); NaN for none."""
        slopes, base = np.full((2, 2), np.nan), self.base
        for i, move in enumerate((-step, step)):
            moved = neighbor(move)
            found = None if moved is None else self.nearby.optimum(moved, base)
            if found is not None:
                slopes[i, 0] = (found.communication_s - base.communication_s) / move
                slopes[i, 1] = (found.cost_usd - base.cost_usd) / move
        return slopes
