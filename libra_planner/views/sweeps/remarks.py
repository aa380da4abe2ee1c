"""What readers of a sweep have to know of its rows: why some fail, and what their bills buy."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from operator import getitem

from libra_planner.errors import Infeasible, PlannerError
from libra_planner.plain_text import visible
from libra_planner.problem import fastest_alternative
from libra_planner.reading.bundled import folder
from libra_planner.step.bands import STRATEGY_TIE_FRACTION
from libra_planner.sweeps.columns import COST, MESSAGE, OBJECTIVE, STATUS
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.probe import (
    PROBES,
    QUOTES_KEY,
    conflict_words,
    missing_tier_words,
    named_conflict,
    spread_rows,
    unused_quotes_words,
)
from libra_planner.sweeps.results import NEAR, SAME, Results
from libra_planner.sweeps.solver import NO_BANDWIDTH
from libra_planner.views.sweeps.answers import measure_words, time_words
from libra_planner.views.sweeps.best import best_rows
from libra_planner.views.sweeps.linear import has_linear_costs, linear_remarks, unsold_remarks
from libra_planner.views.sweeps.noted import (
    Remark,
    bandwidth_Bps,
    note_remarks,
    plans_of,
    with_strategy,
)
from libra_planner.views.sweeps.paid import (
    bill_remarks,
    idle_price_remarks,
    over_rule_remarks,
)
from libra_planner.views.sweeps.unswept import cheaper_remarks, placement_remarks
from libra_planner.views.training.found import TIES_UNKNOWN
from libra_planner.views.training.step import busy_words

_PORTS = ("fabric", "realization", "port_speed")
_LONGEST = 300
_MOST_LINES = 3
_MOST_BEST = 9
"""Best rows whose plans are read."""
_MOST_REASONS = 8
"""Reasons of each kind of failed rows."""
_MOST_CONFLICTS = 5
"""Rows of which it is said which rules conflict."""
_SAME_BAND = 1e-6
_FAILED = f"{STATUS} <> 'optimal'"


def remarks(results: Results) -> Iterator[str]:
    """Lines about rows without an optimum or a bill, and bills beyond what designs ask for."""
    return (one.text for one in _remarks(results))


def folded(results: Results, where: str = "--remarks says why, and what to do") -> Iterator[str]:
    """The same in one line, which says where all of it is."""
    found = [*_remarks(results)]
    own = [one for one in found if not one.is_shared]
    if len(own) < 2:
        yield from (one.text for one in own)
    left = found if len(own) > 1 else [one for one in found if one.is_shared]
    if said := "; ".join(one.short for one in left if one.short):
        yield f"Remarks: {said}. {where}"


def _remarks(results: Results) -> Iterator[Remark]:
    if MESSAGE in results.columns:
        yield from _reasons(results, MESSAGE, STATUS, _FAILED)
    elif n_failed := results.sql(f"SELECT count(*) FROM designs WHERE {_FAILED}").rows[0][0]:
        what = f"{n_failed:,} rows have no optimum"
        how = "add message to columns and run the sweep into a new directory, and it says why"
        yield Remark(f"{what}: {how}", what)
    if "bill_message" in results.columns:
        yield from _reasons(results, "bill_message", "'no bill'", f"NOT ({_FAILED})")
    elif n := len(results.unbilled):
        what = f"{n:,} of {results.n_rows:,} rows have an optimum and no bill"
        yield Remark(f"{what}: run the sweep into a new directory, and it says why", what)
    yield from _busy_links(results)
    yield from placement_remarks(results)
    yield from cheaper_remarks(results)
    yield from bill_remarks(results)
    yield from unsold_remarks(results, best_rows(results))
    if "step_time_s" in results.columns:
        yield from _near_best(results)
    if "parallelism_found" in results.columns:
        yield from _strategy_ties(results)
    yield from over_rule_remarks(results)
    yield from _unused_quotes(results)
    yield from idle_price_remarks(results)
    yield from linear_remarks(results)
    yield from _idle_axes(results)
    yield from _same_designs(results)
    yield from _band(results)
    if "optimal" in results.statuses:
        yield from note_remarks(results)


def _idle_axes(results: Results) -> Iterator[Remark]:
    """Axes that change neither the time nor the cost of any row."""
    if "step_time_s" not in results.columns or COST not in results.columns:
        return
    if axes := [visible(axis) for axis in results.idle_axes]:
        cost = "linear cost" if has_linear_costs(results) else results.cost_name
        time = time_words(results.told_time)
        what = f"{' and '.join(axes)} {'changes' if len(axes) == 1 else 'change'} "
        what += f"neither the {time} nor the {cost}"
        yield Remark(f"Axis {what}", f"axis {what}")


def _same_designs(results: Results) -> Iterator[Remark]:
    """Whether two objectives find the same designs, as where rules fix every bandwidth."""
    bandwidths = [name for name in results.columns if name.startswith("bandwidth_dim")]
    if OBJECTIVE not in results.axes or not bandwidths:
        return
    keys = ", ".join(sql_name(one) for one in results.axes if one != OBJECTIVE) or "1"
    # A search may find another strategy under another objective.
    figures = [*bandwidths, *(one for one in ("step_time_s", COST) if one in results.columns)]
    spread = " AND ".join(f"max({one}) - min({one}) <= {SAME} * max({one})" for one in figures)
    groups = (
        f"SELECT count(*) AS n_, {spread} AS same_ FROM designs WHERE {STATUS} = 'optimal' "
        f"GROUP BY {keys} HAVING n_ > 1"
    )
    query = f"SELECT coalesce(sum(n_) FILTER (WHERE same_), 0) FROM ({groups})"
    ((n_same,),) = results.sql(query).rows
    if n_same:
        what = f"{int(n_same):,} rows of different objectives are the same designs"
        yield Remark(f"{what}: where rules fix every bandwidth, one objective is enough", what)


def _reasons(results: Results, message: str, kind: str, which: str) -> Iterator[Remark]:
    """For each kind of failed rows how many they are, and every reason with its rows.

    Reasons that differ in their numbers, or in what would help, are one here.
    """
    alike = f"regexp_replace(split_part({message}, '; ', 1), '[0-9][0-9.e+]*', '', 'g')"
    query = (
        f"SELECT {kind} AS kind_, sum(count(*)) OVER (PARTITION BY {kind}) AS total_, count(*) "
        f"AS n_, count(DISTINCT {message}), min(row) AS first_, min_by({message}, row) "
        f"FROM designs WHERE {which} AND {message} IS NOT NULL "
        f"GROUP BY {alike}, kind_ ORDER BY kind_, n_ DESC, first_"
    )
    told: Counter[str] = Counter()
    rows = results.sql(query).rows
    for name, total, n, _, first, text in rows:
        told[name] += 1
        if told[name] <= _MOST_REASONS:
            yield _reason(results, name, (int(total), n, first), text, is_first=told[name] == 1)
    left = sum(max(0, n - _MOST_REASONS) for n in told.values())
    if left or sum(row[3] for row in rows) > len(rows):
        query = f"SELECT {message}, count(*) FROM designs GROUP BY ALL"
        more = f"{left:,} more; " if left else ""
        yield Remark(
            f'All reasons: {more}libra-planner sweep show {results.directory.path} --sql "{query}"'
        )


def _reason(
    results: Results, name: str, counts: tuple[int, int, int], text: str, *, is_first: bool
) -> Remark:
    """A reason of some rows of a kind; the first one says how many the kind has in all."""
    total, n, first = counts
    own = text.replace(f"{folder('examples')}/", "")  # Of no use to a reader.
    short = textwrap.shorten(own, _LONGEST, placeholder=" ...")
    more = _conflict(results) if text == NO_BANDWIDTH else _filter(results, text)
    rows_of = f"{total:,} of {results.n_rows:,} rows"
    if is_first:
        often = "" if n == total else f", most often ({n:,})"
        return Remark(f"{name}: {rows_of}{often}: {short}{more}", f"{name} in {rows_of}")
    which = f"row {first}" if n == 1 else f"{n:,} rows, such as {first}"
    return Remark(f"{name}, {which}: {short}{more}")


def _conflict(results: Results) -> str:
    """Which rules conflict in some of the rows without a bandwidth, and which in each of them."""
    query = f"SELECT row FROM designs WHERE {MESSAGE} = '{NO_BANDWIDTH}' ORDER BY row"
    rows = [row for (row,) in results.sql(query).rows]
    picked = [rows[i] for i in spread_rows(len(rows), _MOST_CONFLICTS)]
    found = {row: one for row in picked if (one := _infeasible(results, row))}
    if not found:
        return ""
    row, first = next(iter(found.items()))
    common = set(first.conflict).intersection(*(one.conflict for one in found.values()))
    named = [repr(text) for text in first.conflict if text in common]
    is_told = len(found) > 1 and named and len(common) < len(set(first.conflict))
    each = f". In each of {len(found)} such rows that were looked at: {', '.join(named)}"
    return f". Row {row}: {conflict_words(first)}{each if is_told else ''}"


def _infeasible(results: Results, row: int) -> Infeasible | None:
    """Why a row has no bandwidth; nothing where its plan has changed or cannot be read."""
    return next((named_conflict(plan) for plan in plans_of(results, row)), None)


def _filter(results: Results, reason: str) -> str:
    """The filter that leaves designs out of a kind; empty for others.

    Those whose degree is no whole number, and those whose fabric lacks a tier of a rule.
    """
    if words := missing_tier_words(reason):
        return words
    key = re.search(r"([\w.]+): got \d+\.\d+, expected a whole number", reason)
    slots = {".".join(map(str, one)): one for one, *_ in results.manifest["spec"]["slots"]}
    if key is None or key[1] not in slots:
        return ""
    text = str(reduce(getitem, slots[key[1]], results.manifest["spec"]["base"]))
    ratio = re.fullmatch(r"\{([\w.]+) / ([\w.]+|\([^()]*\))\}", text)
    return f". To leave such rows out: where: {ratio[1]} % {ratio[2]} == 0" if ratio else ""


def _near_best(results: Results) -> Iterator[Remark]:
    """How many designs are as good as the best, for all that anybody can tell."""
    found = [row for row in results.near_best().rows if row[-2] > 1]
    for *names, n, rows in found[:_MOST_LINES]:
        numbers = ", ".join(map(str, rows)) + (", ..." if n > len(rows) else "")
        said = f"{n:,} rows are within {NEAR:.1%} of the best {_of_best(results, names)}"
        yield Remark(f"{said}: rows {numbers}", said)
    if more := [_of_best(results, names) for *names, _, _ in found[_MOST_LINES:]]:
        left = len(more) - _MOST_LINES
        named = [*more[:_MOST_LINES], *([f"{left:,} more"] if left > 0 else [])]
        yield Remark(f"Several rows are within {NEAR:.1%} also of the best {', '.join(named)}")


def _of_best(results: Results, names: Sequence[str]) -> str:
    """What an objective and its work are the best in."""
    return " of ".join([measure_words(results, names[0]), *(visible(str(x)) for x in names[1:])])


def _strategy_ties(results: Results) -> Iterator[Remark]:
    """That rows of different strategies come in no sure order, where any two are a tie (C23)."""
    time = results.need(results.time_column)
    query = f"SELECT parallelism_found, min({time}) FROM designs WHERE {time} > 0 GROUP BY 1"
    times = sorted(seconds for text, seconds in results.sql(query).rows if text)
    if len(times) > 1 and not any(_band(results)):
        yield Remark(TIES_UNKNOWN, f"{TIES_UNKNOWN[0].lower()}{TIES_UNKNOWN[1:]}")
    elif len(times) > 1 and times[1] <= times[0] * (1 + STRATEGY_TIE_FRACTION):
        what = f"strategies within {STRATEGY_TIE_FRACTION:.0%} of each other are a tie"
        text = f"{what.capitalize()}: published runs tell no order; search PLAN ranks them"
        yield Remark(text, what)


def _band(results: Results) -> Iterator[Remark]:
    """How far off step times may be (C23); parts tell it where no column does."""
    if not {"step_time_s", "step_time_low_s", "step_time_high_s"} <= {*results.columns}:
        if errors := results.directory.error_fractions():
            least, most = errors
            is_same = most - least < _SAME_BAND
            yield _band_text(1 - 1 / (1 + most), 1 / (1 - most) - 1, is_same=is_same)
        return
    shorter, longer = "1 - step_time_low_s / step_time_s", "step_time_high_s / step_time_s - 1"
    ends = ", ".join(f"{end}({one})" for one in (shorter, longer) for end in ("min", "max"))
    ((n, *found),) = results.sql(f"SELECT count(step_time_low_s), {ends} FROM designs").rows
    if n:
        low, most_low, high, most_high = found
        is_same = max(most_low - low, most_high - high) < _SAME_BAND
        ends = "; step_time_low_s and step_time_high_s are the ends"
        yield _band_text(most_low, most_high, is_same=is_same, ends=ends)


def _band_text(shorter: float, longer: float, *, is_same: bool, ends: str = "") -> Remark:
    band = f"{'' if is_same else 'up to '}{100 * shorter:.0f} % shorter to {100 * longer:.0f} %"
    return Remark(
        f"Step times may be {band} longer where runs of their kind were published{ends}. Much of "
        "it is common to all rows",
        f"step times may be {band} longer",
    )


def _unused_quotes(results: Results) -> Iterator[Remark]:
    """Which quotes the plans' own cost is without, in designs all over the sweep."""
    if QUOTES_KEY not in results.manifest["spec"]["base"] or "cost_usd" not in results.columns:
        return
    picked = spread_rows(results.manifest["n_designs"], PROBES)
    if words := unused_quotes_words(plan for row in picked for plan in plans_of(results, row)):
        short = "linear prices do not use some of the quotes"
        yield Remark(f"Q{words.removeprefix('q')}", short)


def _busy_links(results: Results) -> Iterator[Remark]:
    """That the best rows may be much slower on links, in a sweep that does not check them."""
    if results.manifest["spec"].get("check") or "optimal" not in results.statuses:
        return
    found = {
        row: words
        for row in islice(best_rows(results), _MOST_BEST)
        if (words := _busy(results, row))
    }
    if not found:
        return
    row, words = next(iter(found.items()))
    others = ", ".join(str(one) for one in sorted(found) if one != row)
    also = f", and much like it in row {others}" if others else ""
    yield Remark(
        f"Links of the best: in row {row}{also}, {words}; write check: {{policy: ecmp}} in the "
        "sweep, and run it into a new directory: rows then rank by the time on their links",
        "links of the best rows are busy, and ECMP may stretch their steps",
    )


def _busy(results: Results, row: int) -> str:
    """What is busy in a row; nothing where its plan has changed, or its bandwidth is not known."""
    bandwidth = bandwidth_Bps(results, row)
    if bandwidth is None:
        return ""
    with suppress(PlannerError):
        for plan in plans_of(results, row):
            problem = with_strategy(results, row, plan).problem
            return busy_words(fastest_alternative(problem, bandwidth), bandwidth)
    return ""
