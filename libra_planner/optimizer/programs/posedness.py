"""Does a problem have an optimum? Infeasible and ill-posed plans, explained (C8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np

from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.optimizer.programs.dimensionless import RuleRows
from libra_planner.optimizer.programs.plans import Plans, interval_bounds
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.quantities import names_in_rules
from libra_planner.step.expression import Array, Mask
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_time, format_usd, time_unit

AnyRule: TypeAlias = Rule | StepTimeLimit
_R = TypeVar("_R", Rule, StepTimeLimit, AnyRule)


def rule_key(rule: AnyRule) -> tuple[str, int | None]:
    """Text and line: the parts of a chain ``a <= x <= b`` share them."""
    return rule.text, rule.line


def irreducible(rules: Sequence[_R], meets: Callable[[Sequence[_R]], bool]) -> tuple[_R, ...]:
    """Conflicting rules of which none can be left out (deletion filter).

    The parts of a chain are one rule: they are kept or left out together.

    Examples
    --------
    >>> rules = [StepTimeLimit(text, 1.0) for text in ("a", "b", "c")]
    >>> found = irreducible(rules, lambda kept: len({"a", "c"} & {rule.text for rule in kept}) < 2)
    >>> [rule.text for rule in found]
    ['a', 'c']
    """
    kept = list(rules)
    for key in dict.fromkeys(map(rule_key, rules)):
        without = [rule for rule in kept if rule_key(rule) != key]
        if not meets(without):
            kept = without
    return tuple(kept)


def rule_names(rules: Sequence[AnyRule]) -> str:
    """Rules by text and line, a chain once."""
    keys = dict.fromkeys(map(rule_key, rules))
    return " and ".join(f"'{text}'" + (f" (line {line})" if line else "") for text, line in keys)


def rule_place(problem: Problem, rule: AnyRule) -> str:
    """How a message about a rule begins."""
    position = [str(n) for n in (rule.line, rule.column) if n is not None]
    return ":".join([problem.text.source, *position]) + ": constraints: "


_POSITIVE = 1e-11
"""Share of what rules let a dimension have above which it counts as usable."""

_ROUNDING = 1e-14
"""Upper bound, over the largest, that is what rounding leaves of none."""

_SMALL = 1e-3
"""Share of its unit below which a dimension's upper bound asks for a smaller unit."""

_NOTHING = 1e-12
"""Least network cost, over the cost at the rules' own sizes, that counts as nothing."""

_FAR = 100.0
"""Cap over the largest bandwidth that a rule speaks of: only to find a vector at all."""

_OPTIONS: tuple[dict[str, float | bool], ...] = (
    {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False},
    {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9, "presolve": False},
)
"""HiGHS settings, tried in turn: its presolve misjudges some sets that are very thin."""

_OPTIMAL, _INFEASIBLE = 0, 2
_PRODUCT = "performance_per_cost"

_OBJECTIONS = MappingProxyType(
    {
        "more_is_faster": (
            "got no rule that bounds the bandwidth of {dims}, expected one for each dimension "
            "with traffic (more is always faster); add e.g. 'total <= 500 GB/s' or "
            "'cost <= 20 M$'"
        ),
        "no_limit": (
            "got objective cost without a step-time bound, expected one (less bandwidth is always "
            "cheaper); add {limit}"
        ),
        "pays": (
            "got a fixed cost but no rule that bounds the bandwidth of {dims}, expected one for "
            "each dimension with traffic (beside a fixed cost ever more bandwidth can "
            "pay); add e.g. 'total <= 500 GB/s'"
        ),
        "scale_free": (
            "got neither compute nor a fixed cost: step time x cost is scale-free, designs of all "
            "sizes tie; fix the size, e.g. with 'total == 500 GB/s'"
        ),
        "vanishes": (
            "got performance_per_cost under rules that a network of no cost meets, with neither a "
            "fixed cost nor a step-time bound (step time x cost goes on falling as "
            "all bandwidths shrink); add {holds}fixed_cost"
        ),
        "gift": (
            "got bandwidth{of_dims} that costs nothing and that no rule bounds, expected a price "
            "or a bound for each dimension with traffic"
        ),
    }
)
"""Why an optimum is not attained, and what to add."""

_DOWNWARD = ("no_limit", "vanishes")
"""Where a bound on the step time may be what is missing."""

_ROOM = 1.1
"""A limit on the step time that is proposed, over the least step time."""

_UPWARD = ("more_is_faster", "pays", "gift")
"""Where an upper bound is what is missing."""


@dataclass(frozen=True)
class Openness:
    """What the rules of n plans leave open; each has shape (n,).

    Parameters
    ----------
    endless : some dimension with traffic has no upper bound.
    free : a network of no cost meets the linear rules.
    gift : some bandwidth with traffic costs nothing and has no upper bound.
    """

    endless: Mask
    free: Mask
    gift: Mask


def objections(plans: Plans, left: Openness) -> dict[str, Mask]:
    """Which plans have no optimum for which reason (C8), shape (n,) each."""
    limited, fixed = np.isfinite(plans.limit_s), plans.fixed_cost_usd > 0
    if plans.objective == "performance":
        return {"more_is_faster": left.endless}
    if plans.objective == "cost":
        return {"no_limit": ~limited, "gift": left.gift}
    loose, computes = ~fixed & ~limited, plans.compute_s > 0
    return {
        "pays": fixed & left.endless,
        "scale_free": loose & ~computes & (left.endless | left.free),
        "vanishes": loose & left.free,
        "gift": left.gift,
    }


def is_well_posed(plans: Plans) -> Mask:
    """Which plans surely have an optimum, and for T C surely within or at a limit, (n,)."""
    fine = ~_any(objections(plans, _perhaps_open(plans))) & bool(plans.used.any())
    if plans.objective == _PRODUCT:
        fine &= attains_product(plans) | has_no_end(_unlimited(plans))
    return np.asarray(fine)


def attains_product(plans: Plans, left: Openness | None = None) -> Mask:
    """Which plans (surely, unless told what is open) have a least T C without a limit, (n,)."""
    free = replace(_unlimited(plans), objective=_PRODUCT)
    return ~_any(objections(free, left or _perhaps_open(plans)))


def has_no_end(plans: Plans) -> Mask:
    """Which plans surely have no optimum if any vector meets their rules, shape (n,).

    Upward where no rule can ever stop a dimension with traffic, downward where nothing
    holds the bandwidths up.
    """
    return _any(objections(plans, _surely_open(plans))) & bool(plans.used.any())


def with_caps(plans: Plans) -> Plans:
    """The plans for performance, without a bound on step time, every bandwidth capped."""
    n_dims, rules = plans.structure.n_dims, plans.rules
    sizes = np.abs(np.concatenate([rules.limit, rules.target])).max(axis=0, initial=0.0)
    largest = np.abs(np.concatenate([rules.upper, rules.equal])).max(axis=(0, 1), initial=0.0)
    size = np.maximum(sizes / np.where(largest > 0, largest, 1.0), BYTES_PER_S_PER_GBPS)
    cap = np.broadcast_to(_FAR * np.maximum(size, plans.lower.max(axis=0)), (n_dims, plans.n))
    axes = np.broadcast_to(np.eye(n_dims)[:, :, None], (n_dims, n_dims, plans.n))
    capped = replace(
        rules,
        upper=np.concatenate([rules.upper, axes]),
        limit=np.concatenate([rules.limit, cap]),
    )
    upper = np.minimum(plans.upper, cap)
    return replace(_unlimited(plans), objective="performance", rules=capped, upper=upper)


def _any(found: dict[str, Mask]) -> Mask:
    return np.asarray(reduce(np.logical_or, found.values()))


def _unlimited(plans: Plans) -> Plans:
    return replace(plans, limit_s=np.full(plans.n, np.inf))


def _perhaps_open(plans: Plans) -> Openness:
    """What may be left open, for all that interval propagation proves."""
    rules, price = plans.rules, plans.price_usd_per_Bps
    endless = np.asarray(np.isinf(plans.upper) & plans.used[:, None])
    rows = np.concatenate([-rules.upper, rules.equal, -rules.equal])
    asked = np.concatenate([-rules.limit, rules.target, -rules.target])
    unpriced = ((rows > 0) & ~(price > 0)).any(axis=1)
    # A rule that asks for bandwidth, and for bandwidth that costs something only.
    costs = ((asked > 0) & ~unpriced).any(axis=0)
    gifts = endless & ~(price > 0)
    return Openness(*map(np.asarray, (endless.any(axis=0), ~costs, gifts.any(axis=0))))


def _surely_open(plans: Plans) -> Openness:
    rules = plans.rules
    endless = (rules.upper <= 0).all(axis=0) & (rules.equal == 0).all(axis=0)
    free = (rules.limit >= 0).all(axis=0) & (rules.target == 0).all(axis=0)
    none = np.zeros(plans.n, dtype=bool)
    return Openness(*map(np.asarray, (endless[plans.used].any(axis=0), free, none)))


def openness(problem: Problem, upper: Array) -> Openness:
    """What one problem's rules leave open, by linear programs; ``upper`` are bounds, bytes/s."""
    endless = _endless(problem, upper).any()
    product = problem.objective == _PRODUCT
    facts = endless, product and _may_be_free(problem), endless and _gifts(problem).any()
    return Openness(*(np.array([fact], dtype=bool) for fact in facts))


def check_posed(
    problem: Problem,
    plans: Plans,
    left: Openness,
    upper: Array,
    least_time_s: Callable[[], float],
) -> None:
    """Refuse a problem without an optimum, but for bandwidth that costs nothing.

    ``least_time_s`` gives the least step time under the rules, where a bound on it is missing.

    Raises
    ------
    IllPosed
        Upward, downward or scale-free.
    """
    for name, found in objections(plans, left).items():
        if found.any() and name != "gift":
            limit = _roomy_limit(least_time_s) if name in _DOWNWARD else ""
            raise _ill_posed(problem, name, _endless(problem, upper), limit)


def check_affordable(problem: Problem, left: Openness) -> None:
    """Refuse a problem with bandwidth that costs nothing and has no limit.

    Raises
    ------
    IllPosed
        For the objectives about cost.
    """
    if left.gift.any() and problem.objective != "performance":
        raise _ill_posed(problem, "gift", _gifts(problem))


def _ill_posed(problem: Problem, name: str, dims: Mask, limit: str = "") -> IllPosed:
    names = ", ".join(np.array(names_in_rules(problem.topology))[dims])
    of_dims = f" of {names}" if problem.step_time_limits else ""
    # The objective of a group, in the place of its time, is not what rules on step_time bound.
    holds = f"{limit}, or " if problem.step.trainings else ""
    text = _OBJECTIONS[name].format(dims=names, of_dims=of_dims, limit=limit, holds=holds)
    bounds = _taper_fix(problem, dims) if name in _UPWARD else ""
    return IllPosed(f"{problem.at('constraints')}{text}{bounds}")


def _roomy_limit(least_time_s: Callable[[], float]) -> str:
    """A rule on the step time that designs meet, as an example; without a time where none is."""
    try:
        return f"e.g. 'step_time <= {_roomy_time(least_time_s())}'"
    except (Infeasible, SolverFailed):
        return "a rule on step_time"


def _roomy_time(least_s: float) -> str:
    """A limit that designs meet with room to spare, in two digits.

    >>> _roomy_time(0.68448), _roomy_time(7.914)
    ('760 ms', '8.8 s')
    """
    unit_s, unit = time_unit(least_s)
    value = _ROOM * least_s / unit_s
    digit = 10.0 ** (math.floor(math.log10(value)) - 1) if value else 1.0
    return f"{math.ceil(value / digit) * digit:g} {unit}"


def _taper_fix(problem: Problem, dims: Mask) -> str:
    """How to bound the outer tiers of stacks: what crosses them has crossed the tier inside."""
    dimensions, names = problem.topology.dimensions, names_in_rules(problem.topology)
    outer = [i for i in map(int, np.flatnonzero(dims)) if dimensions[i].shares_port]
    held = {one.tier: one for one in problem.rules if one.tier in outer and one.sense != "<="}
    rules = " and ".join(f"'taper({names[i]}) >= 1'" for i in outer if i not in held)
    found = f"; for the uplinks of a stack {rules}" if rules else ""
    for i, rule in held.items():
        root = next(names[j] for j in range(i - 1, -1, -1) if j not in held)
        found += f" ({rule.text!r} bounds {names[i]} by {names[i - 1]}, so "
        found += f"'{root} <= 300 GB/s' bounds it, too)"
    for one in problem.rules:
        if one.tier in outer and one.tier not in held and one.sense == "<=":
            found += f" ({one.text!r} bounds it from below: a smaller taper is more bandwidth)"
    return found


def _endless(problem: Problem, upper: Array) -> Mask:
    return np.isinf(upper) & problem.step_time.dims_with_traffic


def _may_be_free(problem: Problem) -> bool:
    """Whether some vector under the linear rules costs nothing."""
    rows = _rule_rows(problem.rules, problem.topology.n_dims)
    unit = bandwidth_units(rows)
    price = problem.price_usd_per_Bps * unit
    status, value = _least(rows.scaled(unit[:, None]), price / (price.sum() or 1.0))
    return status == _OPTIMAL and value <= _NOTHING


def _gifts(problem: Problem) -> Mask:
    """Dimensions with traffic that can be widened without end at no cost."""
    rows = _rule_rows(problem.rules, problem.topology.n_dims)
    price = Rule("cost", tuple(map(float, problem.price_usd_per_Bps)), "<=", 0.0)
    directions = [replace(rule, bound=0.0) for rule in (*problem.rules, price)]
    free = _rule_rows(directions, problem.topology.n_dims)
    return _endless(problem, _extremes(free, bandwidth_units(rows))[1])


def bandwidth_bounds(problem: Problem) -> tuple[Array, Array]:
    """Least and greatest bandwidth of each dimension under the linear rules, bytes/s.

    Returns
    -------
    Two arrays of shape (n_dims,); the upper one is infinite where no rule bounds it.

    Raises
    ------
    Infeasible
        When no vector meets the rules and gives every used dimension bandwidth;
        names an irreducible set of conflicting rules.
    """
    if not _meets(problem, problem.rules):
        conflict = irreducible(problem.rules, lambda rules: _meets(problem, rules))
        raise _infeasible(problem, conflict)
    return row_bounds(_rule_rows(problem.rules, problem.topology.n_dims))


def without_echoes(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules but for bounds that an equality of the same direction meets to the tolerance.

    ``x == 5`` and ``x <= 5 (1 - 1e-12)`` hold together only as far as rules are judged (1e-9,
    C9). No solver has room between them, and the multipliers of both grow without end. What
    meets the equality meets the bound; and fewer rules only make the proven bound weaker.

    Examples
    --------
    >>> both = Rule("a", (2.0, 4.0), "==", 6.0), Rule("b", (1.0, 2.0), "<=", 3.0 * (1 - 1e-12))
    >>> [rule.text for rule in without_echoes(both)]
    ['a']
    >>> [rule.text for rule in without_echoes((both[0], Rule("c", (1.0, 2.0), "<=", 2.9)))]
    ['a', 'c']
    """
    equal = [rule for rule in rules if rule.sense == "=="]
    return tuple(
        rule
        for rule in rules
        if rule.sense == "==" or not any(_echoes(rule, other) for other in equal)
    )


def _echoes(rule: Rule, equality: Rule) -> bool:
    """Whether a bound is an equality's own value, as far as rules are judged."""
    row, other = np.array(rule.coefficients), np.array(equality.coefficients)
    factor = float(row @ other) / (float(other @ other) or 1.0)
    parallel = (abs(row - factor * other) <= _ROUNDING * abs(row)).all()
    off = abs(factor * equality.bound - rule.bound)
    return bool(parallel and off <= RULE_TOLERANCE / 2 * abs(rule.bound))


def row_bounds(rows: RuleRows) -> tuple[Array, Array]:
    """Least and greatest bandwidth of each dimension under one problem's rules, bytes/s."""
    unit = bandwidth_units(rows)
    lower, upper = _extremes(rows, unit)
    if (upper[upper > 0] < _SMALL).any():
        # Some rules bound a dimension far more tightly than each by itself does.
        unit = unit * np.where(np.isfinite(upper) & (upper > 0), upper, 1.0)
        lower, upper = _extremes(rows, unit)
    return np.maximum(lower, 0.0) * unit, upper * unit


def bandwidth_units(rows: RuleRows) -> Array:
    """Bandwidth of the right size for each dimension, bytes/s, shape (n_dims,).

    The least upper bound that single rules give, by interval propagation; where none
    does, or it leaves nothing, the largest that the others have, or 1 GB/s.

    Examples
    --------
    >>> both = np.array([[1.0, 1.0], [0.0, 1.0]])[..., None]  # total == 500 GB/s, dim2 <= 1 kB/s
    >>> bandwidth_units(RuleRows.of(["==", "<="], both, np.array([[5e11], [1e3]])))
    array([5.e+11, 1.e+03])
    >>> bandwidth_units(RuleRows.of(["==", "=="], both, np.array([[5e11], [5e11]])))
    array([5.e+11, 5.e+11])
    """
    upper = interval_bounds(rows)[1][:, 0]
    finite = np.isfinite(upper)
    usable = finite & (upper > _ROUNDING * upper[finite].max(initial=0.0))
    return np.where(usable, upper, upper[usable].max() if usable.any() else BYTES_PER_S_PER_GBPS)


def _rule_rows(rules: Sequence[Rule], n_dims: int) -> RuleRows:
    """Rules of one problem, in bytes/s."""
    coefficients = np.array([rule.coefficients for rule in rules], dtype=np.float64)
    bounds = np.array([rule.bound for rule in rules], dtype=np.float64)
    senses = [rule.sense for rule in rules]
    return RuleRows.of(senses, coefficients.reshape(-1, n_dims, 1), bounds[:, None])


def check_compute_fits(problem: Problem) -> None:
    """Refuse a step-time rule that is shorter than the compute of a step.

    Raises
    ------
    Infeasible
        No bandwidth can help there.
    """
    for limit in problem.step_time_limits:
        if limit.limit_s < problem.compute_s:
            compute = format_time(problem.compute_s, round_up=True)
            message = (
                f"{rule_place(problem, limit)}got '{limit.text}', but compute alone "
                f"takes {compute} a step; allow more, or change the workload, its parallelism "
                f"or the NPU"
            )
            raise Infeasible(message, (limit.text,))


def step_time_infeasible(
    problem: Problem,
    limit: StepTimeLimit,
    best_s: float,
    least_time_s: Callable[[Sequence[Rule]], float],
) -> Infeasible:
    """The error for a step-time rule that even the fastest design misses.

    ``least_time_s`` gives the least step time under some of the rules: with it the
    conflict is reduced to rules of which none can be left out.
    """
    try:
        conflict = irreducible(problem.rules, lambda kept: least_time_s(kept) <= limit.limit_s)
        alone_s = least_time_s(conflict)
    except SolverFailed:  # Some subset of the rules is too hard: then all of them are named.
        conflict, alone_s = problem.rules, best_s
    allow = f"allow at least {format_time(best_s, round_up=True)}"
    if alone_s < best_s * (1 - RULE_TOLERANCE):
        allow += " (the least under all the rules)"
    message = (
        f"{rule_place(problem, limit)}got '{limit.text}', but {rule_names(conflict)} alone "
        f"allows no less than {format_time(alone_s, round_up=True)}; {allow}, or loosen the rules"
    )
    return Infeasible(message, (limit.text, *(rule.text for rule in conflict)))


def _meets(problem: Problem, rules: Sequence[Rule]) -> bool:
    """Whether some vector meets ``rules`` with bandwidth wherever there is traffic.

    max t subject to the rules and form_f . b >= t, t <= 1: met when t > 0.
    """
    plain = _rule_rows(rules, problem.topology.n_dims)
    unit = bandwidth_units(plain)
    rows = plain.scaled(unit[:, None])
    forms = problem.step_time.forms * unit
    forms = -forms / forms.sum(axis=1, keepdims=True)
    starved, wider = np.pad(forms, ((0, 0), (0, 1)), constant_values=1.0), ((0, 0), (0, 1), (0, 0))
    widened = RuleRows(
        upper=np.concatenate([np.pad(rows.upper, wider), starved[..., None]]),
        limit=np.concatenate([rows.limit, np.zeros((len(forms), 1))]),
        equal=np.pad(rows.equal, wider),
        target=rows.target,
    )
    status, value = _least(widened, np.append(np.zeros(len(unit)), -1.0), last_upper=1.0)
    return status == _OPTIMAL and -value > _POSITIVE


def _extremes(rows: RuleRows, unit: Array) -> tuple[Array, Array]:
    """Least and greatest bandwidth of each dimension in ``unit``, shapes (n_dims,)."""
    scaled, identity = rows.scaled(unit[:, None]), np.eye(len(unit))
    found = [_least(scaled, cost) for cost in (*identity, *-identity)]
    # The rules are known to be feasible here, so "infeasible" is HiGHS's dual verdict.
    least = [value if status == _OPTIMAL else -np.inf for status, value in found]
    return np.array(least[: len(unit)]), -np.array(least[len(unit) :])


def _least(rows: RuleRows, cost: Array, *, last_upper: float | None = None) -> tuple[int, float]:
    """Status and least cost.x over x of 0 or more under the rows, by HiGHS."""
    from scipy.optimize import linprog  # The cockpit holds shadow prices, and no solver.

    system = tuple(x[..., 0] for x in (rows.upper, rows.limit, rows.equal, rows.target))
    bounds = [(0.0, None)] * (len(cost) - 1) + [(0.0, last_upper)]
    for options in _OPTIONS:
        result = linprog(cost, *system, bounds, "highs", options=options)
        if result.status == _OPTIMAL:
            return _OPTIMAL, float(result.fun)
    return int(result.status), np.nan


def _infeasible(problem: Problem, conflict: tuple[Rule, ...]) -> Infeasible:
    rows = _rule_rows(conflict, problem.topology.n_dims)
    unit = bandwidth_units(rows)
    status, _ = _least(rows.scaled(unit[:, None]), np.zeros(len(unit)))
    met = status != _INFEASIBLE  # Without bandwidth for all traffic.
    starved = " while every dimension with traffic has bandwidth" if met else ""
    several = len(set(map(rule_key, conflict))) > 1
    about_cost = problem.fixed_cost_usd and any(rule.cost_factor for rule in conflict)
    fixed = f" (fixed cost {format_usd(problem.fixed_cost_usd)})" if about_cost else ""
    got = "rules that no bandwidth vector meets together" if several else "a rule none can meet"
    message = (
        f"{rule_place(problem, conflict[0])}got {got}{starved}: {rule_names(conflict)}"
        f"{fixed}; loosen or remove {'one of them' if several else 'it'}"
    )
    return Infeasible(message, tuple(rule.text for rule in conflict))
