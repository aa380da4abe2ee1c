"""What is best of a sweep, in a few lines: one home of the rows that every view names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import EFFECTIVE, OBJECTIVE, OVER_SERVER, ROW, STATUS
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.results import BY, NEAR, SAME, Results
from libra_planner.units import format_time, format_usd
from libra_planner.views.sweeps.answers import time_words
from libra_planner.views.sweeps.linear import equals_words
from libra_planner.views.sweeps.points import Points
from libra_planner.views.sweeps.values import degree_words

_MOST_WORKS = 3
_WITHIN = (NEAR, 0.01)
"""Relative differences of times up to which the cheapest design is named."""
_LARGE = 1000.0
_OF_ONE = " a sequence"
_EFFECTIVE = BY[1]
BROKEN, UNSOLD = "its bill breaks its rule on cost", "no such server is priced"
NO_BILL = "it has no bill"
"""What is wrong with the bill of a row, in few words."""


def best_lines(results: Results, *, is_near: bool = True) -> Iterator[str]:
    """The fastest, the best per dollar and the cheapest design of each work, by their rows.

    Parameters
    ----------
    results : of a sweep.
    is_near : whether those of :func:`near_lines` come with them.
    """
    if not _has_figures(results):
        return
    found = _best(results)
    among = among_words(results)
    model = " in the plan's model" if _is_unchecked(results) else ""
    for work, (_, said) in found[:_MOST_WORKS]:
        yield f"Best{model}{_of(work)}{among}: {said}"
    if (left := len(found) - _MOST_WORKS) > 0:
        yield f"{left:,} more have a best of their own: --pareto"
    if found:
        yield from near_lines(results) if is_near else ()
        yield from _on_links(results, dict(found))


def wrong_words(results: Results, points: Points, i: int) -> list[str]:
    """What is wrong with the bill of a design."""
    return _wrong_words(results, points.breaks_rule(i), points.is_unsold(i), points.is_unbilled(i))


def _wrong_words(
    results: Results, is_broken: bool, is_unsold: bool, is_unbilled: bool
) -> list[str]:
    """The same of a row of which all that is known."""
    found = {BROKEN: is_broken, UNSOLD: "bill_usd" in results.columns and is_unsold}
    found[NO_BILL] = is_unbilled and results.n_billed > 0
    return [words for words, holds in found.items() if holds]


def near_lines(results: Results) -> Iterator[str]:
    """The cheapest designs that are about as fast as the fastest, where that saves money."""
    if _has_figures(results):
        yield from _cheapest(results, _per_sequence(results))


def _has_figures(results: Results) -> bool:
    """Whether designs have what ranks them."""
    return {results.cost_column, "step_time_s"} <= {*results.columns}


Work: TypeAlias = tuple[Any, ...]
"""Values of the axes that change what is trained."""
Roles: TypeAlias = dict[int, list[str]]
"""What rows are the best in."""


def _best(results: Results) -> list[tuple[Work, tuple[Roles, str]]]:
    """The best rows of each work, and they in words."""
    points, per_sequence = Points.of(results, results.best_of_frontier()), _per_sequence(results)
    found = []
    for work, front in points.fronts.items():
        roles = points.roles(front).items()
        said = (
            f"{_listed(names)} {_design(results, points, i, per_sequence)}" for i, names in roles
        )
        rows = {points.rows[i][ROW]: names for i, names in roles}
        found.append((work, (rows, "; ".join(said))))
    return found


def best_rows(results: Results) -> dict[int, list[str]]:
    """The rows that lines about the best name, and what each is the best in."""
    if not _has_figures(results):
        return {}
    points = Points.of(results, results.best_of_frontier())
    roles = (points.roles(front) for front in points.fronts.values())
    return {points.rows[i][ROW]: names for one in roles for i, names in one.items()}


def _of(work: Work) -> str:
    return f" of {', '.join(visible(str(value)) for value in work)}" if work else ""


def among_words(results: Results) -> str:
    """Which rows have a place, where some optimum has none."""
    if "bill_usd" in results.columns and not results.n_billed:
        linear = "linear " * (results.manifest["spec"]["base"].get("prices", "linear") == "linear")
        return f" ({linear}{results.plan_cost}; no row has a bill)"
    if results.by == _EFFECTIVE and results.n_unchecked:
        return f" among the {results.n_checked:,} rows with a time on their links"
    if results.cost_column != "bill_usd":
        return ""
    if results.n_unsold:
        return f" among the {results.n_billed:,} rows with a bill of servers that are sold"
    return f" among the {results.n_billed:,} rows with a bill" if results.unbilled else ""


def why_unranked(n_unsold: int, n_other: int, lacks: str) -> str:
    """Why designs have no rank.

    Parameters
    ----------
    n_unsold, n_other : those of servers that nobody prices, and others.
    lacks : what others have not.

    Examples
    --------
    >>> why_unranked(45, 0, "no bill"), why_unranked(0, 5, "no bill")
    ('no such server is priced', 'no bill')
    >>> why_unranked(40, 5, "no bill")
    'no such server is priced (40), no bill (5)'
    """
    if n_unsold and n_other:
        return f"{UNSOLD} ({n_unsold:,}), {lacks} ({n_other:,})"
    return UNSOLD if n_unsold else lacks


def unsold_sql(results: Results) -> str:
    """Which designs have no rank as nobody prices their servers, in SQL."""
    return f"({STATUS} = 'optimal' AND {OVER_SERVER} > 0)" if results.n_unsold else "false"


def unranked_groups(results: Results, axes: Sequence[str]) -> Iterator[str]:
    """Why groups of axes have no best row, where they have optima."""
    keys = ", ".join(dict.fromkeys([*_works(results), *map(sql_name, axes), OBJECTIVE]))
    ranked = f"bool_or(({results.ranked}) IS TRUE) OVER (PARTITION BY {keys})"
    query = (
        f"SELECT count(*) FILTER (WHERE {unsold_sql(results)}), count(*) FROM (SELECT *, {ranked} "
        f"AS has_rank_ FROM designs) WHERE NOT has_rank_ AND {STATUS} = 'optimal'"
    )
    ((n_unsold, n),) = results.sql(query).rows
    if n:
        why = why_unranked(n_unsold, n - n_unsold, f"no {time_words(results.told_time)}")
        designs = f"{n:,} optimal design{'' if n == 1 else 's'}"
        yield f"Groups without a best row hold {designs} without a rank: {why}"


def _is_unchecked(results: Results) -> bool:
    """Whether the rank knows less than the sweep, which has times on links."""
    return results.by != _EFFECTIVE and EFFECTIVE in results.columns


def _on_links(results: Results, told: Mapping[Work, tuple[Roles, str]]) -> Iterator[str]:
    """The best designs by the time on their links, of each work where they are other rows."""
    if not _is_unchecked(results):
        return
    for work, (roles, said) in _best(replace(results, by=_EFFECTIVE))[:_MOST_WORKS]:
        if work in told and roles != told[work][0]:
            yield f"Best on the links{_of(work)} (--by {_EFFECTIVE}): {said}"


def _per_sequence(results: Results) -> str:
    """The column of times per sequence, where steps of one work differ in their sequences."""
    told = results.told_time
    return "" if told == results.step_time_column else told


def _step_time(per_sequence: str) -> str:
    """The column of the times of whole steps beside one of times per sequence."""
    return per_sequence.replace("seconds_per_sequence", "step_time_s")


def _listed(names: Sequence[str]) -> str:
    """Words in a row.

    >>> _listed(["fastest", "best per dollar", "cheapest"])
    'fastest, best per dollar and cheapest'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _works(results: Results) -> list[str]:
    """Axes that change what is trained, in SQL."""
    return [*map(sql_name, results.work_axes)]


def _design(results: Results, points: Points, i: int, per_sequence: str) -> str:
    """A row with what it reaches; its time per sequence where times of steps do not compare."""
    step_time = _step_time(per_sequence) or points.time
    names = dict.fromkeys((step_time, per_sequence, points.cost))
    figures = (
        f"{points.shown(i, name)}{_OF_ONE if name == per_sequence else ''}"
        for name in names
        if name
    )
    broken = "".join(f", {words}" for words in wrong_words(results, points, i))
    row = points.rows[i][ROW]
    equals = f"; {words}" if (words := equals_words(results, row)) else ""
    return f"row {row} ({', '.join(figures)}{broken}{equals})"


def _cheapest(results: Results, per_sequence: str) -> Iterator[str]:
    """The cheapest designs that are about as fast as the fastest, where that saves money."""
    n_keys, axes = len(results.work_axes), [x for x in results.axes if x != OBJECTIVE]
    names = [visible(name) for name in axes if name not in results.work_axes]
    usd = n_keys + 2
    found = [results.cheapest_within(within).rows for within in (SAME, *_WITHIN)]
    for fastest, *others in [*zip(*found, strict=True)][:_MOST_WORKS]:
        said, least_usd = [], fastest[usd]
        for within, one in zip(_WITHIN, others, strict=True):
            if one[usd] < least_usd * (1 - SAME):
                least_usd, (row, time_s, cost_usd) = one[usd], one[n_keys : usd + 1]
                *values, ranked_s = one[usd + 1 :]
                pairs = zip(names, values, strict=True)
                design = ", ".join(f"{name} {_few_digits(value)}" for name, value in pairs)
                each = f", {format_time(ranked_s)}{_OF_ONE}" if per_sequence else ""
                known = (results.over_rule, results.over_server, results.unbilled)
                wrong = _wrong_words(results, *(row in rows for rows in known))
                broken = "".join(f", {words}" for words in wrong)
                figures = f"{format_time(time_s)}{each}, {format_usd(cost_usd)}{broken}"
                said.append(f"within {100 * within:g} % row {row} ({design}; {figures})")
        if said:
            work = "".join(f" of {visible(str(value))}" for value in fastest[:n_keys])
            yield f"Cheapest near the fastest{work}: {'; '.join(said)}"


def _few_digits(value: object) -> str:
    """A value of an axis, numbers to four digits.

    >>> _few_digits(3.93548387), _few_digits(12500.0), _few_digits("rail")
    ('3.935', '12500', 'rail')
    """
    if not isinstance(value, float):
        return degree_words(visible(as_in_file(value)))
    return f"{value:.4g}" if abs(value) < _LARGE else f"{value:.6g}"
