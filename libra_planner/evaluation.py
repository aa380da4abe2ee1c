"""What a bandwidth vector is worth: exact step time and cost, against equal bandwidth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from libra_planner.costs.prices import find_options, nearest_options
from libra_planner.errors import Fault, SpecError
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, fastest_alternative
from libra_planner.quantities import TAPER, quantity_in
from libra_planner.step.critical_path import Share, critical_path
from libra_planner.step.expression import Array
from libra_planner.step.training import BalancedStep
from libra_planner.units import BYTES_PER_S_PER_GBPS, gigabytes_per_s

_LEAST_BYTES_PER_S = 1e3
"""Largest bandwidth of a vector below which it must have been meant in GB/s."""


OBJECTIVES: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "performance": lambda step_time_s, _: step_time_s,
        "performance_per_cost": lambda step_time_s, cost_usd: step_time_s * cost_usd,
        "cost": lambda _, cost_usd: cost_usd,
    }
)
"""Objective value from step time and cost, or arrays of them, by name: s, s*USD or USD (C8, C9)."""


@dataclass(frozen=True)
class Violation:
    """A rule that a vector breaks, and by how much in the rule's own unit; a taper's value."""

    rule: str
    line: int | None
    by: float
    unit: str
    value: float | None = None

    @property
    def amount(self) -> str:
        """By how much the rule is broken, in its own unit; of a taper what it is.

        >>> Violation("taper(spine) >= 2", 16, 1.0, "", 1.0).amount
        'is 1:1'
        """
        if self.value is not None:
            return f"is {TAPER.text(float(f'{self.value:.4g}'))}"
        return f"by {quantity_in(self.unit).text(self.by)}"


@dataclass(frozen=True)
class EqualBandwidth:
    """The baseline that gives every dimension the same bandwidth (C9).

    ``bandwidth_bytes_per_s`` has shape (n_dims,); ``feasible`` says whether it meets
    the rules: the ratios against it are printed either way. ``cost_usd`` is NaN for a plan that
    is priced by its bill, in which nothing but its options has one (C22). ``possible`` says
    whether anybody could have it: a part of a plan has the bandwidth it has, and what breaks the
    rules for that is no baseline.
    """

    bandwidth_bytes_per_s: Array = field(repr=False)
    step_time_s: float
    cost_usd: float
    feasible: bool
    possible: bool = True


@dataclass(frozen=True)
class MemberFigures:
    """Exact figures of one workload of a group.

    Parameters
    ----------
    name, weight : which, and its share of the group.
    step_time_s, compute_s : T_i and its compute part.
    equal_step_time_s : T_i at equal bandwidth.
    own_optimum_s : T_i*, where an optimizer has found it.
    """

    name: str
    weight: float
    step_time_s: float
    compute_s: float
    equal_step_time_s: float
    own_optimum_s: float | None = None

    @property
    def communication_s(self) -> float:
        """Exposed communication: step time that is not compute."""
        return self.step_time_s - self.compute_s

    @property
    def speedup_vs_equal(self) -> float:
        """Step time of equal bandwidth over this one's."""
        return self.equal_step_time_s / self.step_time_s


@dataclass(frozen=True)
class Evaluation:
    """Exact figures of one bandwidth vector.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    step_time_s, compute_s : T and its compute part; the rest is exposed communication.
    cost_usd : network cost, and the fixed cost of a plan that gives one; the bill of a plan that
        is priced by it (C22).
    network_cost_usd, fixed_cost_usd : the two parts of it; of a bill the lines of the training
        network, and all others.
    cost_usd_by_dim : network cost, shape (n_dims,).
    objective : value of the plan's objective; ``None`` for a group whose objective
        needs each workload's own optimum while these are not known.
    equal : the equal-bandwidth baseline.
    violated : rules the vector breaks.
    shares : critical path by operation class and dimension, longest first.
    real_link_step_time_s : T when partial groups have only their own links (C6).
    members : figures of each workload of a group.
    exact_step_time_s : T by the exact flow shop, where the model has chunks.
    balanced : T with balanced schedules, where the plan asks for it.
    band_s : T at the ends of the error bands of its collectives, where these were measured (C23).
    """

    bandwidth_bytes_per_s: Array = field(repr=False)
    step_time_s: float
    compute_s: float
    cost_usd: float
    network_cost_usd: float
    fixed_cost_usd: float
    cost_usd_by_dim: Array = field(repr=False)
    objective: float | None
    equal: EqualBandwidth
    violated: tuple[Violation, ...]
    shares: tuple[Share, ...]
    real_link_step_time_s: float | None = None
    members: tuple[MemberFigures, ...] = ()
    exact_step_time_s: float | None = None
    balanced: BalancedStep | None = None
    band_s: tuple[float, float] | None = None

    @property
    def own_links_step_time_s(self) -> float:
        """T on partial groups' own links; the model's where no group is partial (C6)."""
        real_s = self.real_link_step_time_s
        return self.step_time_s if real_s is None else real_s

    @property
    def model_gap(self) -> float | None:
        """Exact step time over the model's (C9)."""
        exact_s = self.exact_step_time_s
        return None if exact_s is None else exact_s / self.step_time_s

    @property
    def communication_s(self) -> float:
        """Exposed communication: step time that is not compute."""
        return self.step_time_s - self.compute_s

    @property
    def feasible(self) -> bool:
        """Whether every rule is met (to 1e-9 relative, C9)."""
        return not self.violated

    @property
    def speedup_vs_equal(self) -> float | None:
        """Step time of equal bandwidth over this one's; ``None`` where nobody can have that."""
        return self.equal.step_time_s / self.step_time_s if self.equal.possible else None

    @property
    def perf_per_cost_vs_equal(self) -> float | None:
        """(T C) of equal bandwidth over this one's; ``None`` where a cost is zero or not known.

        Also where nobody can have equal bandwidth.
        """
        product, equal = self.step_time_s * self.cost_usd, self.equal
        has_cost = product and np.isfinite(equal.cost_usd) and equal.possible
        return equal.step_time_s * equal.cost_usd / product if has_cost else None


def evaluate(problem: Problem, bandwidth_bytes_per_s: Array) -> Evaluation:
    """Evaluate one bandwidth vector exactly; one that breaks rules is evaluated too.

    Vectors below 1 kB/s are refused: they will have been meant in GB/s.

    Parameters
    ----------
    problem : the plan in numbers.
    bandwidth_bytes_per_s : shape (n_dims,).

    Raises
    ------
    SpecError
        For a wrong number of dimensions, a negative or non-finite bandwidth, or
        0 GB/s on a dimension that carries traffic.
    """
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    refuse_GBps(bandwidth, ", or write bandwidth_GBps=")
    return evaluated(fastest_alternative(problem, bandwidth), bandwidth)


def refuse_GBps(bandwidth_bytes_per_s: Array, otherwise: str = "") -> None:
    """Refuse a vector below 1 kB/s: it will have been meant in GB/s.

    Raises
    ------
    SpecError
        With the fix, ``otherwise`` behind it.
    """
    most = bandwidth_bytes_per_s.max(initial=0.0)
    if 0 < most < _LEAST_BYTES_PER_S:
        fix = f"multiply GB/s by 1e9{otherwise}"
        raise SpecError(Fault(f"got at most {most:g} bytes/s", "expected bytes/s", fix))


def evaluated(problem: Problem, bandwidth_bytes_per_s: Array) -> Evaluation:
    """:func:`evaluate` of a vector whose unit is beyond doubt, such as an optimum."""
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    step_time_s = _checked_step_time_s(problem, bandwidth)
    cost_by_dim = problem.cost_usd_by_dim(bandwidth)
    cost_usd, network_usd = float(problem.cost_usd(bandwidth)), _network_usd(problem, bandwidth)
    has_bills = problem.prices.bills is not None
    fixed_usd = round(cost_usd - network_usd, 2) if has_bills else problem.fixed_cost_usd
    equal = equal_bandwidth(problem, bandwidth)
    real = problem.step.real_link_time
    optima = problem.own_optima_s or (None,) * len(problem.members)
    members = tuple(
        MemberFigures(
            name=member.name,
            weight=member.weight,
            step_time_s=float(member.step_time.seconds(bandwidth)),
            compute_s=member.step_time.compute_s,
            equal_step_time_s=float(member.step_time.seconds(equal.bandwidth_bytes_per_s)),
            own_optimum_s=optimum_s,
        )
        for member, optimum_s in zip(problem.members, optima, strict=True)
    )
    return Evaluation(
        bandwidth_bytes_per_s=bandwidth,
        step_time_s=step_time_s,
        compute_s=problem.step_time.compute_s,
        cost_usd=cost_usd,
        network_cost_usd=network_usd,
        fixed_cost_usd=fixed_usd,
        cost_usd_by_dim=cost_by_dim,
        objective=objective_value(problem, bandwidth),
        equal=equal,
        violated=violations(problem, bandwidth),
        shares=critical_path(problem.step_time, bandwidth),
        real_link_step_time_s=float(real.seconds(bandwidth)) if real else None,
        exact_step_time_s=problem.step.exact_step_time_s(bandwidth),
        balanced=problem.step.balanced(bandwidth),
        band_s=problem.step.band_s(bandwidth),
        members=members,
    )


def own_links_step_time_s(problem: Problem, bandwidth_bytes_per_s: Array) -> float:
    """T on partial groups' own links (C6), as :attr:`Evaluation.own_links_step_time_s`, alone.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan(lp.example("01_gpt3_4d"))
    >>> round(own_links_step_time_s(plan, np.full(4, 125e9)), 6)
    0.796788
    """
    time = problem.step.real_link_time or problem.step_time
    return float(time.seconds(np.asarray(bandwidth_bytes_per_s, dtype=np.float64)))


def _network_usd(problem: Problem, bandwidth: Array) -> float:
    """Cost of the network; of a bill to the cent."""
    usd = float(problem.network_cost_usd(bandwidth))
    return usd if problem.prices.bills is None else round(usd, 2)


def objective_value(problem: Problem, bandwidth_bytes_per_s: Array) -> float | None:
    """Value of the plan's objective (C8, C9); ``None`` while own optima are missing."""
    time = problem.objective_time
    if time is None:
        return None
    seconds = float(time.seconds(bandwidth_bytes_per_s))
    cost_usd = float(problem.cost_usd(bandwidth_bytes_per_s))
    return float(OBJECTIVES[problem.objective](seconds, cost_usd))


def violations(problem: Problem, bandwidth_bytes_per_s: Array) -> tuple[Violation, ...]:
    """Rules broken by more than 1e-9 relative (C9), in plan order."""
    broken = _broken_rules(problem, bandwidth_bytes_per_s)
    step_time_s = float(problem.step_time.seconds(bandwidth_bytes_per_s))
    late = [
        Violation(limit.text, limit.line, step_time_s - limit.limit_s, "s")
        for limit in problem.step_time_limits
        if step_time_s > limit.limit_s * (1 + RULE_TOLERANCE)
    ]
    return tuple(broken + late) + unpurchasable(problem, bandwidth_bytes_per_s)


def violations_as_built(
    problem: Problem, asked_Bps: Array, built_Bps: Array
) -> tuple[Violation, ...]:
    """Rules that whole ports break, and the bandwidth that was asked for does not.

    Ports come whole, so that a design has more than it asks for: within the rules it may ask for
    40 GB/s, and get ports of 50.
    """
    own = {one.rule for one in _broken_rules(problem, asked_Bps)}
    return tuple(one for one in _broken_rules(problem, built_Bps) if one.rule not in own)


def _broken_rules(problem: Problem, bandwidth_bytes_per_s: Array) -> list[Violation]:
    rules = (
        rule.in_units(bandwidth_bytes_per_s) for rule in problem.rules_at(bandwidth_bytes_per_s)
    )
    return [
        Violation(
            rule.text,
            rule.line,
            rule.excess(bandwidth_bytes_per_s) / rule.unit_factor,
            rule.unit,
            _taper(rule, bandwidth_bytes_per_s),
        )
        for rule in rules
        if rule.relative_excess(bandwidth_bytes_per_s) > RULE_TOLERANCE
    ]


def _taper(rule: Rule, bandwidth_bytes_per_s: Array) -> float | None:
    """What the taper is that a rule bounds; ``None`` of another rule, or over no bandwidth."""
    if rule.tier is None or not bandwidth_bytes_per_s[rule.tier]:
        return None
    return float(bandwidth_bytes_per_s[rule.tier - 1] / bandwidth_bytes_per_s[rule.tier])


def unpurchasable(problem: Problem, bandwidth_bytes_per_s: Array) -> tuple[Violation, ...]:
    """Dimensions whose bandwidth none of their options has, with the nearest ones."""
    found = []
    for i, options in problem.purchasable.items():
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)[i]
        if find_options(options, bandwidth) < 0:
            near = nearest_options(options, float(bandwidth))
            speeds = (f"{gigabytes_per_s(o.bandwidth_bytes_per_s):.6g} GB/s ({o})" for o in near)
            label = problem.topology.labels[i]
            text = f"{label}: not a purchasable speed, nearest {' and '.join(speeds)}"
            by = min(abs(o.bandwidth_bytes_per_s - float(bandwidth)) for o in near)
            found.append(Violation(text, near[0].line, by / BYTES_PER_S_PER_GBPS, "GB/s"))
    return tuple(found)


def max_violation(problem: Problem, bandwidth_bytes_per_s: Array) -> float:
    """Largest relative violation over all rules, time bounds included (C9)."""
    rules = problem.rules_at(bandwidth_bytes_per_s)
    linear = [rule.relative_excess(bandwidth_bytes_per_s) for rule in rules]
    step_time_s = float(problem.step_time.seconds(bandwidth_bytes_per_s))
    late = [max(0.0, step_time_s / limit.limit_s - 1) for limit in problem.step_time_limits]
    off = [one.by for one in unpurchasable(problem, bandwidth_bytes_per_s)]
    fastest = float(np.max(bandwidth_bytes_per_s)) / BYTES_PER_S_PER_GBPS
    unbought = [by / (by + fastest) for by in off]
    return max([0.0, *linear, *late, *unbought])


def _checked_step_time_s(problem: Problem, bandwidth: Array) -> float:
    if bandwidth.shape != (problem.topology.n_dims,) or not np.isfinite(bandwidth).all():
        expected = f"expected {problem.topology.n_dims} finite numbers, one per dimension"
        raise SpecError(Fault(f"got {bandwidth.tolist()}", expected))
    step_time_s = float(problem.step_time.seconds(bandwidth))
    if not np.isfinite(step_time_s):
        starved = problem.step_time.dims_with_traffic & (bandwidth == 0)
        names = ", ".join(np.array(problem.topology.labels)[starved])
        got = f"got 0 GB/s for {names}"
        raise SpecError(Fault(got, "expected bandwidth where the workload has traffic"))
    _check_bought(problem, bandwidth)
    return step_time_s


def _check_bought(problem: Problem, bandwidth: Array) -> None:
    """Refuse a vector that none of the priced options has: nobody knows its bill (C22)."""
    bills = problem.prices.bills
    if bills is None or bills.rows(bandwidth) >= 0:
        return
    near = bills.nearest(bandwidth)
    vector = ",".join(f"{gigabytes_per_s(one):.17g}" for one in near.bandwidth_Bps)
    got = f"got {','.join(f'{gigabytes_per_s(one):g}' for one in bandwidth)} GB/s"
    expected = f"expected one of the {len(bills.options)} options that prices: bill has priced"
    fix = f"write {vector} for the nearest, {near.text(problem.topology.tiers)}"
    raise SpecError(Fault(got, expected, fix))


def equal_bandwidth(problem: Problem, bandwidth: Array) -> EqualBandwidth:
    """The baseline of a vector: its plan's total, or its own, split evenly."""
    total = problem.total_bandwidth_bytes_per_s() or float(bandwidth.sum())
    n_dims = problem.topology.n_dims
    equal = np.full(n_dims, total / n_dims)
    cost_usd = float(problem.cost_usd(equal))
    feasible = bool(np.isfinite(cost_usd)) and not violations(problem, equal)
    is_open = problem.scale_up is None and problem.prices.bills is None
    return EqualBandwidth(
        bandwidth_bytes_per_s=equal,
        step_time_s=float(problem.step_time.seconds(equal)),
        cost_usd=cost_usd,
        feasible=feasible,
        possible=feasible or is_open,
    )


_TIE = 1e-9
"""Relative difference below which two times are equal."""


class TimeModel(StrEnum):
    """What a step time is of, from the least to the most that is known of the links."""

    PLAN = "by the plan's model"
    OWN_LINKS = "on partial groups' own links"
    BILLED = "on the whole ports of the bill"
    CHECKED = "on the links as checked"


def order(names: Sequence[str], values: Sequence[float]) -> str:
    """The names from the least value to the largest; equal ones are joined.

    >>> order("ABC", [2.0, 3.0, 1.0]), order("ABC", [2.0, 1.0, 2.0])
    ('C, A, B', 'B, A = C')
    """
    ranked = sorted(zip(values, names, strict=True), key=lambda pair: pair[0])
    text, before = "", 0.0
    for value, name in ranked:
        joint = " = " if value - before <= _TIE * value else ", "
        text += f"{joint if text else ''}{name}"
        before = value
    return text


def reversed_pairs(values: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Designs by index that come one way by some values, and the other way by others.

    >>> reversed_pairs([[1.0, 2.0, 3.0], [1.0, 4.0, 3.0]])
    [(1, 2)]
    """
    found = []
    for i, j in itertools.combinations(range(len(values[0]) if values else 0), 2):
        pairs = [(one[i], one[j]) for one in values]
        ways = {x < y for x, y in pairs if abs(x - y) > _TIE * max(x, y)}
        if len(ways) > 1:
            found.append((i, j))
    return found


def order_note(what: str, names: Sequence[str], values: Mapping[TimeModel, Sequence[float]]) -> str:
    """The orders of models that disagree, in words; empty where no two designs change places.

    Models agree where one alone tells two designs apart.

    Parameters
    ----------
    what : whose order, such as ``fastest first``.
    names : of the designs.
    values : of every design by each model that is known; the least is the best.

    Examples
    --------
    >>> times = {TimeModel.PLAN: [1.0, 2.0], TimeModel.OWN_LINKS: [4.0, 3.0]}
    >>> order_note("fastest first", "AB", times)
    "fastest first A, B by the plan's model, but B, A on partial groups' own links"
    >>> times[TimeModel.PLAN] = [2.0, 2.0]
    >>> order_note("fastest first", "AB", times)
    ''
    """
    if not reversed_pairs([*values.values()]):
        return ""
    by_order: dict[str, list[TimeModel]] = {}
    for model, figures in values.items():
        by_order.setdefault(order(names, figures), []).append(model)
    clauses = (f"{text} {' and '.join(models)}" for text, models in by_order.items())
    return f"{what} {', but '.join(clauses)}"
