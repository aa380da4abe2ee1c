"""Does the problem have an optimum? Infeasible and ill-posed plans, explained (C8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from libra_planner.errors import Infeasible, SolverFailed
from libra_planner.optimizer.linear import INFEASIBLE, OPTIMAL, solve_lp
from libra_planner.optimizer.program import RuleRows, rule_rows
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS, format_time, format_usd

_POSITIVE = 1e-11
"""Share of what rules let a dimension have above which it counts as usable."""

_SMALL = 1e-3
"""Share of its unit below which a dimension's upper bound asks for a smaller unit."""


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
    unit = bandwidth_units(problem.rules, problem.topology.n_dims)
    lower, upper = _extremes(problem.rules, unit)
    if (upper[upper > 0] < _SMALL).any():
        # Some rules bound a dimension far more tightly than each by itself does.
        unit = unit * np.where(np.isfinite(upper) & (upper > 0), upper, 1.0)
        lower, upper = _extremes(problem.rules, unit)
    return np.maximum(lower, 0.0) * unit, upper * unit


def bandwidth_units(rules: Sequence[Rule], n_dims: int) -> Array:
    """Bandwidth of the right size for each dimension, bytes/s, shape (n_dims,).

    The least upper bound that single rules give, by interval propagation; where none
    does, the largest that the others have, or 1 GB/s.

    Examples
    --------
    >>> total = Rule("total == 500 GB/s", (1.0, 1.0), "==", 5e11)
    >>> bandwidth_units([total, Rule("dim2 <= 1 kB/s", (0.0, 1.0), "<=", 1e3)], 2)
    array([5.e+11, 1.e+03])
    """
    upper = np.full(n_dims, np.inf)
    for _ in range(n_dims):
        before = upper.copy()
        for rule in rules:
            row = np.array(rule.coefficients)
            if rule.sense != ">=":
                upper = np.minimum(upper, _implied(row, rule.bound, upper))
            if rule.sense != "<=":
                upper = np.minimum(upper, _implied(-row, -rule.bound, upper))
        if (upper == before).all():
            break
    usable = np.isfinite(upper) & (upper > 0)
    return np.where(usable, upper, upper[usable].max() if usable.any() else BYTES_PER_S_PER_GBPS)


def _implied(row: Array, bound: float, upper: Array) -> Array:
    """Upper bounds that ``row . b <= bound`` gives each dimension under ``b <= upper``."""
    gives = row < 0
    if np.isinf(upper[gives]).any():
        return np.full(len(row), np.inf)
    room = max(0.0, bound - float(row[gives] @ upper[gives]))
    return np.where(row > 0, room / np.where(row > 0, row, 1.0), np.inf)


def irreducible(rules: Sequence[Rule], meets: Callable[[Sequence[Rule]], bool]) -> tuple[Rule, ...]:
    """Conflicting rules of which none can be left out (deletion filter).

    The parts of a chain ``a <= x <= b`` are one rule: they are kept or left out together.
    """
    kept = list(rules)
    for key in dict.fromkeys(map(_key, rules)):
        without = [rule for rule in kept if _key(rule) != key]
        if not meets(without):
            kept = without
    return tuple(kept)


def _key(rule: Rule) -> tuple[str, int | None]:
    return rule.text, rule.line


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
                f"{_place(problem, limit)}constraints: got '{limit.text}', but compute alone "
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
        f"{_place(problem, limit)}constraints: got '{limit.text}', but {_named(conflict)} alone "
        f"allows no less than {format_time(alone_s, round_up=True)}; {allow}, or loosen the rules"
    )
    return Infeasible(message, (limit.text, *(rule.text for rule in conflict)))


def _meets(problem: Problem, rules: Sequence[Rule]) -> bool:
    """Whether some vector meets ``rules`` with bandwidth wherever there is traffic.

    max t subject to the rules and form_f . b >= t, t <= 1: met when t > 0.
    """
    n_dims = problem.topology.n_dims
    unit = bandwidth_units(rules, n_dims)
    rows = rule_rows(rules, unit)
    forms = problem.step_time.forms * unit
    forms = forms / forms.sum(axis=1, keepdims=True)
    upper = np.vstack([_with_column(rows.upper, 0.0), _with_column(-forms, 1.0)])
    limit = np.concatenate([rows.limit, np.zeros(len(forms))])
    cost = np.concatenate([np.zeros(n_dims), [-1.0]])
    top = np.concatenate([np.full(n_dims, np.inf), [1.0]])
    equal = _with_column(rows.equal, 0.0)
    solution = solve_lp(cost, upper, limit, equal, rows.target, upper_bounds=top)
    return solution.status == OPTIMAL and -solution.value > _POSITIVE


def _with_column(rows: Array, value: float) -> Array:
    return np.hstack([rows, np.full((len(rows), 1), value)])


def _extremes(rules: Sequence[Rule], unit: Array) -> tuple[Array, Array]:
    """Least and greatest bandwidth of each dimension in ``unit``, shapes (n_dims,)."""
    rows = rule_rows(rules, unit)
    identity = np.eye(len(unit))
    lower = np.array([_least(rows, row) for row in identity])
    upper = np.array([-_least(rows, -row) for row in identity])
    return lower, upper


def _least(rows: RuleRows, cost: Array) -> float:
    solution = solve_lp(cost, rows.upper, rows.limit, rows.equal, rows.target)
    # The rules are known to be feasible here, so "infeasible" is HiGHS's dual verdict.
    return solution.value if solution.status == OPTIMAL else -np.inf


def _infeasible(problem: Problem, conflict: tuple[Rule, ...]) -> Infeasible:
    met = _meets_without_traffic(problem, conflict)
    starved = " while every dimension with traffic has bandwidth" if met else ""
    several = len(set(map(_key, conflict))) > 1
    about_cost = problem.fixed_cost_usd and any(rule.cost_factor for rule in conflict)
    fixed = f" (fixed cost {format_usd(problem.fixed_cost_usd)})" if about_cost else ""
    got = "rules that no bandwidth vector meets together" if several else "a rule none can meet"
    message = (
        f"{_place(problem, conflict[0])}constraints: got {got}{starved}: {_named(conflict)}"
        f"{fixed}; loosen or remove {'one of them' if several else 'it'}"
    )
    return Infeasible(message, tuple(rule.text for rule in conflict))


def _named(rules: Sequence[Rule]) -> str:
    """Rules by text and line, a chain once."""
    lines = dict.fromkeys(map(_key, rules))
    names = [f"'{text}'" + (f" (line {line})" if line else "") for text, line in lines]
    return " and ".join(names)


def _meets_without_traffic(problem: Problem, rules: Sequence[Rule]) -> bool:
    rows = rule_rows(rules, bandwidth_units(rules, problem.topology.n_dims))
    cost = np.zeros(problem.topology.n_dims)
    return solve_lp(cost, rows.upper, rows.limit, rows.equal, rows.target).status != INFEASIBLE


def _place(problem: Problem, rule: Rule | StepTimeLimit) -> str:
    position = [str(n) for n in (rule.line, rule.column) if n is not None]
    return ":".join([problem.source, *position]) + ": "
