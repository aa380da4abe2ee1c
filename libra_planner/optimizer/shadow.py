"""Shadow prices: what one unit more of a rule, a dimension or a price changes at the optimum.

Each is a one-sided derivative of the re-optimised optimum: the rule, dimension or price
is moved a little, the neighboring problem is solved by Newton steps from the known optimum
and proven again, and step time and cost are evaluated exactly there. At a kink, where
dimensions tie, the two sides differ and both are given, to second order; a side beyond
which there is no design, or only one that is far away, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import PlannerError, SolverFailed
from libra_planner.optimizer.cheapest import cheapest
from libra_planner.optimizer.convex import ConvexPoint
from libra_planner.optimizer.design import Design
from libra_planner.optimizer.feasibility import restored
from libra_planner.optimizer.neighbors import (
    Neighbor,
    given,
    moved_limit,
    moved_rule,
    repriced,
    spent,
)
from libra_planner.optimizer.optimize import optimize
from libra_planner.optimizer.per_cost import from_per_cost, per_cost_problem
from libra_planner.optimizer.program import scaled_program, weighted
from libra_planner.optimizer.solution import Basis, Solution
from libra_planner.optimizer.weighted import certified, polished, usable
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array, Constant, Sum, TimeExpression, add

_STEP = 2e-5
"""Move of a bound, bandwidth or price, relative to its size."""

_SAME_SIDES = 1e-3
"""Relative difference up to which left and right derivatives are one."""

_LOOSE = 1e-3
"""Relative room beyond which a rule is worth nothing: it does not bind."""

_NOISE = 2e-9
"""Relative change of time or cost per step that is rounding."""

_JUMP = 0.65
"""Share of a step's change that half the step makes where there is no derivative."""

_LINE_GAP = 1e-8


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
    line: int | None
    bound: str
    unit: str
    d_step_time_s: float
    d_cost_usd: float
    side: str


def shadow_prices(problem: Problem, solution: Solution) -> tuple[ShadowPrice, ...] | None:
    """Prices of every rule, dimension and, where cost counts for nothing, of a dollar.

    The price of a rule is per unit of its bound; of a dimension, per GB/s given free
    outside the rules. Rules with room to spare are worth nothing. ``None`` where the
    optimum has no neighbors of its kind: a catalogue's, a relative group's, no traffic's.
    """
    if solution.basis is None:
        return None
    walker = _Walker(problem, solution, solution.basis)
    found: list[ShadowPrice] = []
    for i, rule in enumerate(problem.rules):
        subject = ShadowPrice("rule", rule.text, rule.line, _bound(rule), rule.unit, 0.0, 0.0, "")
        size = max(abs(rule.bound), walker.terms(rule)) / rule.unit_factor
        found += walker.prices(subject, size, moved_rule(problem, i), slack=walker.slack(rule))
    for i, limit in enumerate(problem.step_time_limits):
        subject = ShadowPrice(
            "rule", limit.text, limit.line, f"<= {limit.limit_s:g} s", "s", 0.0, 0.0, ""
        )
        found += walker.prices(subject, limit.limit_s, moved_limit(problem, i))
    for i, label in enumerate(problem.topology.labels):
        subject = ShadowPrice("dimension", label, None, "", "GB/s", 0.0, 0.0, "")
        size = float(solution.design.bandwidth_GBps[i]) or max(solution.design.bandwidth_GBps)
        found += walker.prices(subject, size, given(problem, i))
    if problem.objective != "cost":
        cost_usd = problem.fixed_cost_usd + float(walker.base[1])
        subject = ShadowPrice("cost", "cost", None, f"<= {cost_usd:.6g} $", "$", 0.0, 0.0, "")
        found += walker.prices(subject, cost_usd, spent(problem, cost_usd))
    return tuple(found)


def price_sensitivity(problem: Problem, solution: Solution) -> tuple[ShadowPrice, ...] | None:
    """Change of the optimum per USD per GB/s of every price in the book that the fabric uses."""
    if solution.basis is None:
        return None
    if problem.objective == "performance" and not _rules_about_cost(problem):
        return _bought(problem, solution.design)
    walker = _Walker(problem, solution, solution.basis)
    found: list[ShadowPrice] = []
    for part in problem.price_parts:
        name = f"{part.tier} {part.part}"
        subject = ShadowPrice("price", name, None, "", "USD per GB/s", 0.0, 0.0, "")
        size = part.usd_per_GBps or max(p.usd_per_GBps for p in problem.price_parts)
        found += walker.prices(subject, size, repriced(problem, part))
    return tuple(found)


def _rules_about_cost(problem: Problem) -> bool:
    return any(rule.cost_factor for rule in problem.rules)


def _bought(problem: Problem, design: Design) -> tuple[ShadowPrice, ...]:
    """Where no price has a say in the design: the quantity that is bought at each."""
    return tuple(
        ShadowPrice(
            subject="price",
            name=f"{part.tier} {part.part}",
            line=None,
            bound="",
            unit="USD per GB/s",
            d_step_time_s=0.0,
            d_cost_usd=float(np.dot(part.usd_per_Bps_per_price, design.bandwidth_bytes_per_s)),
            side="both",
        )
        for part in problem.price_parts
    )


def _bound(rule: Rule) -> str:
    return f"{rule.sense} {rule.bound / rule.unit_factor:g} {rule.unit}"


@dataclass
class _Walker:
    """Neighbors of one optimum."""

    problem: Problem
    solution: Solution
    basis: Basis

    def __post_init__(self) -> None:
        # Polished as its neighbors are: what both have of rounding cancels.
        self.variable_time = _without_compute(self.problem.step_time)
        figures = self._at(self.problem)
        if figures is None:
            figures = self._figures(self.problem, self.solution.design.bandwidth_bytes_per_s)
        self.base = figures

    def terms(self, rule: Rule) -> float:
        """Size of a rule's left side at the optimum."""
        bandwidth = self.solution.design.bandwidth_bytes_per_s
        return float(np.abs(rule.coefficients) @ bandwidth)

    def slack(self, rule: Rule) -> float:
        """Room a rule leaves at the optimum, relative to its size."""
        left = float(np.dot(rule.coefficients, self.solution.design.bandwidth_bytes_per_s))
        return abs(left - rule.bound) / (max(abs(rule.bound), self.terms(rule)) or 1.0)

    def prices(
        self, subject: ShadowPrice, size: float, neighbor: Neighbor, *, slack: float = 0.0
    ) -> list[ShadowPrice]:
        """The derivative, as one entry where both sides agree and as two where not."""
        if not size:
            return []
        if slack > _LOOSE:
            return [replace(subject, side="both")]
        step = _STEP * size
        noise = _NOISE * self.base / step
        sides = self._slopes(neighbor, step)
        if not _same(sides, noise):
            sides = self._extrapolated(neighbor, step, sides, noise)
        if _same(sides, noise):
            sides = {"both": (sides["left"] + sides["right"]) / 2}
        sides = {side: np.where(np.abs(s) <= noise, 0.0, s) for side, s in sides.items()}
        return [
            replace(subject, d_step_time_s=float(slope[0]), d_cost_usd=float(slope[1]), side=side)
            for side, slope in sides.items()
        ]

    def _slopes(self, neighbor: Neighbor, step: float) -> dict[str, Array]:
        """Difference quotients of step time and cost by side, of those that exist."""
        sides = {}
        for side, move in (("left", -step), ("right", step)):
            figures = self._at(neighbor(move))
            if figures is not None:
                sides[side] = (figures - self.base) / move
        return sides

    def _extrapolated(
        self, neighbor: Neighbor, step: float, whole: dict[str, Array], noise: Array
    ) -> dict[str, Array]:
        """Quotients without their first-order error, where there is a derivative."""
        halves = self._slopes(neighbor, step / 2)
        return {
            side: 2 * halves[side] - slope
            for side, slope in whole.items()
            if side in halves
            and (np.abs(halves[side]) <= 2 * _JUMP * np.abs(slope) + 4 * noise).all()
        }

    def _at(self, problem: Problem | None) -> Array | None:
        """Step time and cost of a neighbor's optimum; ``None`` where it has none."""
        if problem is None:
            return None
        try:
            bandwidth = self._near_optimum(problem)
        except SolverFailed:
            bandwidth = None
        try:
            if bandwidth is None or _late(problem, bandwidth):
                bandwidth = optimize(problem).bandwidth_bytes_per_s
        except PlannerError:
            return None
        return self._figures(problem, bandwidth)

    def _figures(self, problem: Problem, bandwidth: Array) -> Array:
        """Step time without compute, and cost without this plan's fixed cost."""
        more_fixed = problem.fixed_cost_usd - self.problem.fixed_cost_usd
        cost_usd = float(problem.network_cost_usd(bandwidth)) + more_fixed
        return np.array([float(self.variable_time.seconds(bandwidth)), cost_usd])

    def _near_optimum(self, problem: Problem) -> Array | None:
        """The optimum by Newton steps; ``None`` where they do not lead there."""
        program, optimum = self.basis.program, self.basis.optimum
        weights = optimum.model.weights
        base = per_cost_problem(problem) if self.basis.per_cost else problem
        limited = np.isfinite(program.time_limit)
        limit_s = min((limit.limit_s for limit in problem.step_time_limits), default=np.inf)
        near = scaled_program(
            base,
            program.bandwidth_unit,
            program.b_upper * program.bandwidth_unit * 2,
            limit_s=limit_s if limited else np.inf,
        )
        start = polished(near, weights, ConvexPoint(optimum.b, optimum.form_weights))
        if not usable(near, start.b):
            return None
        best = certified(near, weights, start.b)
        if best.value - best.bound > _LINE_GAP * abs(weighted(near, weights, best.b)):
            return None
        b = restored(near, cheapest(near, best.model, best.b, best.form_weights).b)
        point = b * near.bandwidth_unit
        return from_per_cost(point) if self.basis.per_cost else point


def _without_compute(step: TimeExpression) -> TimeExpression:
    """Step time but for its constant, in whose digits a small change would drown."""
    root = step.merged
    terms = root.terms if isinstance(root, Sum) else (root,)
    return TimeExpression(add(t for t in terms if not isinstance(t, Constant)), step.n_dims)


def _late(problem: Problem, bandwidth: Array) -> bool:
    """Whether a design misses a step-time bound."""
    step_time_s = float(problem.step_time.seconds(bandwidth))
    return any(step_time_s > x.limit_s * (1 + RULE_TOLERANCE) for x in problem.step_time_limits)


def _same(sides: dict[str, Array], noise: Array) -> bool:
    """Whether there are two sides and they are one."""
    if len(sides) < 2:
        return False
    left, right = sides["left"], sides["right"]
    size = np.maximum(np.abs(left), np.abs(right))
    return bool((np.abs(left - right) <= _SAME_SIDES * size + 2 * noise).all())
