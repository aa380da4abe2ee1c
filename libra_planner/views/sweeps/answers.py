"""Answers of sweeps as tables: short headings, units, rounded figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import (
    AS_BILLED,
    COST,
    NONE,
    OBJECTIVE,
    OVER_RULE,
    PER_DOLLAR,
    ROW,
    Column,
    column_named,
    on_screen,
)
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.figures.equals import n_alike
from libra_planner.sweeps.figures.flaws import CENT_USD
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.results import Results
from libra_planner.units import format_usd
from libra_planner.views.cells import Block, Cell, escape, table
from libra_planner.views.sweeps.values import degree_words, token_words

_BEST, _LEAST, _OF_PER_DOLLAR = "best_", "least_", "per_dollar_"
_ROWS = ("fastest_row", "cheapest_row", "best_per_dollar_row")
"""Rows of groups, beside the one that ranks first."""
_BILL = "bill_usd"
_BANDWIDTH = "bandwidth_dim"
_TIMES = ("step_time_s", "effective_step_time_s", "billed_step_time_s")
_AVOIDABLE, _WHERE = "fim_avoidable_percent", "fim_avoidable_dimension"
"""How much of FIM is avoidable, and in which dimension: in one cell, as FIM may be of another."""
_OF_FIM = ("fim_floor_percent", "fim_percent", _AVOIDABLE)
"""What a narrow terminal loses last, in this order: the most is what routing could gain."""
_KEPT = (ROW, *_TIMES, "cost_usd", "bill_usd", *_OF_FIM)
"""What every terminal shows, with the axes."""
_PER_SEQUENCE = {
    name: name.replace("step_time_s", "seconds_per_sequence")
    for start in ("", _BEST, _OF_PER_DOLLAR)
    for name in (start + one for one in _TIMES)
}

Row = Mapping[str, Any]


def group_answers(answer: Answer) -> Iterator[tuple[str, Answer]]:
    """Groups as one table of their best rows, and one of their best per dollar, where others."""
    later = [name for name in answer.columns if name.startswith(_OF_PER_DOLLAR)]
    yield "", answer.without(later)
    rows = answer.dicts()
    best, per_dollar = f"{_BEST}{ROW}", _ROWS[-1]
    if later and any(row[best] != row[per_dollar] for row in rows):
        first = answer.columns[: answer.columns.index("n_designs")]
        kept = {*first, per_dollar, *later}
        found = answer.without([name for name in answer.columns if name not in kept])
        names = (best if name == per_dollar else name for name in found.columns)
        yield "The best per dollar of each", replace(found, columns=tuple(names))


def answer_blocks(
    answer: Answer,
    axes: Sequence[str],
    n_rows: int,
    units: Mapping[str, str],
    plan_cost: str,
    *,
    title: str = "",
    work: Sequence[str] = (),
    is_named: bool = False,
    is_whole: bool = False,
) -> Iterator[Block]:
    """The first rows of designs or of groups of them; above them what is the same in all.

    Parameters
    ----------
    answer : what ``top``, ``grouped`` or ``pareto`` gave.
    axes : of the sweep.
    n_rows : to show at most.
    units : of axes, as :func:`~libra_planner.views.sweeps.values.axis_units` has them.
    plan_cost : what ``cost_usd`` is, as ``Results.plan_cost`` has it.
    title : what they are; nothing where they are all.
    work : axes that change what is trained: times of steps compare where all steps of one work
        have the same number of sequences.
    is_named : whether the reader has named the columns: all are shown, as named.
    is_whole : whether all columns are shown at any width, as another program may read them.
    """
    yield from filter(None, [title])
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows[:n_rows]]
    shown = dict(_columns(answer.columns, axes, plan_cost))
    if is_named:
        names = [x for x in answer.columns if x != _WHERE or _AVOIDABLE not in shown]
        told = [_with_dimension(row) for row in rows] if len(names) < len(shown) else rows
        yield _named_table({name: shown[name] for name in names}, told, units)
        return
    same, n_sequences = _same(shown, rows), _sequences(shown, rows)
    words = [_named(shown[name], rows[0][name], units) for name in same]
    words += [f"{n_sequences:,.6g} sequences a step"] if n_sequences else []
    tokens = token_words(rows, axes)
    if words:
        yield escape(f"In all rows: {', '.join(words)}")
    if tokens:
        yield escape(f"{tokens[0].upper()}{tokens[1:]}")
    is_told = _AVOIDABLE in shown and _WHERE in shown and _WHERE not in same
    rows = [_with_dimension(row) for row in rows] if is_told else rows
    left_out = {
        *same,
        *([_WHERE] if is_told else ()),
        *(_PER_SEQUENCE.values() if n_sequences else ()),
        *_empty(shown, rows),
    }
    shown = {name: one for name, one in shown.items() if name not in left_out}
    headings = {name: _heading(one, units) for name, one in shown.items()}
    texts = _texts(shown, rows)
    varied = [name for name in reversed([*shown]) if name in axes and name != OBJECTIVE]
    dispensable = [] if is_whole else _dispensable([*shown], axes, rows, work)
    yield table(
        "",
        "",
        headings.values(),
        ([_cell(one, row[name]) for name, one in shown.items()] for row in rows),
        left=tuple(headings[name] for name in texts),
        dispensable=tuple(headings[name] for name in dispensable),
        keyed=tuple(headings[name] for name in texts if name in varied and not is_whole),
        last=tuple(headings[name] for name in varied if not is_whole),
        is_asked=is_whole,
    )


def _texts(shown: Mapping[str, Column], rows: Sequence[Row]) -> list[str]:
    """Columns of texts; figures with their dimension are none."""
    named = (name for name in shown if name != _AVOIDABLE)
    return [name for name in named if any(isinstance(row[name], str) for row in rows)]


def _with_dimension(row: Row) -> dict[str, Any]:
    """A row whose avoidable FIM says in which dimension that is.

    >>> _with_dimension({"fim_avoidable_percent": 63.128, "fim_avoidable_dimension": "dim3"})
    {'fim_avoidable_percent': '63.13 dim3', 'fim_avoidable_dimension': 'dim3'}
    """
    percent, where = row[_AVOIDABLE], row[_WHERE]
    told = column_named(_AVOIDABLE).cell(percent) if where else None
    return {**row, _AVOIDABLE: f"{told} {where}" if told else percent}


def _named_table(
    shown: Mapping[str, Column], rows: Sequence[Row], units: Mapping[str, str]
) -> Block:
    """Rows in columns that the reader has named."""
    headings = {name: _heading(one, units) for name, one in shown.items()}
    texts = tuple(headings[name] for name, one in shown.items() if one.is_text)
    cells = ([_cell(one.whole, row[name]) for name, one in shown.items()] for row in rows)
    return table("", "", headings.values(), cells, left=texts, keyed=texts, is_asked=True)


def answer_words(
    results: Results, *, n_best: int | None, by: Sequence[str], is_frontier: bool, has_fim: bool
) -> str:
    """What an answer is, in one line.

    Parameters
    ----------
    results : of the sweep.
    n_best : designs of each objective, where nothing else is asked; ``None`` for all.
    by : the axes of a question for groups.
    is_frontier, has_fim : whether it is the frontier, and whether FIM counts there.
    """
    name = visible(results.name)
    time = time_words(results.told_time)
    work = ", ".join(map(visible, results.work_axes))
    if by:
        keys = ", ".join(dict.fromkeys(map(visible, [*results.work_axes, *by])))
        what = f"the best of each {keys} and objective by {_rank_words(results)}"
    elif is_frontier:
        cost = results.cost_name
        fim = "FIM of the dimension with the most (fim_percent)"
        figures = f"{time}, {cost} and {fim}" if has_fim else f"{time} and {cost}"
        what = f"frontier of {figures}{f' of each {work}' if work else ''}, fastest first"
    else:
        among = f"{work} and objective" if work else "objective"
        by_rank = f"({_rank_words(results)}){_alike(results)}" if n_best else ""
        what = f"the best {n_best:,} of each {among} {by_rank}" if n_best else ""
    of = f" where {' and '.join(map(visible, results.where))}" if results.where else ""
    return f"{name}, {results.n_rows:,} designs{of}{': ' if what else ''}{what}"


def _alike(results: Results) -> str:
    """What one row of the best stands for; empty where it is itself alone."""
    axes = " and ".join(map(visible, results.idle_axes))
    n_more = n_alike(results) - 1
    return f", each with {n_more:,} equal row{'s' * (n_more > 1)} of other {axes}" if axes else ""


def time_words(time: str) -> str:
    """A column of times in words.

    >>> time_words("step_time_s"), time_words("effective_seconds_per_sequence")
    ('step time', 'effective time per sequence')
    """
    what = "step time" if time.endswith("step_time_s") else "time per sequence"
    time = time.removeprefix(_BEST)
    kind = next((one for one in ("effective", "billed") if time.startswith(one)), "")
    return f"{kind} {what}".strip()


def measure_words(results: Results, objective: str) -> str:
    """What ranks the designs of an objective."""
    time, cost = time_words(results.told_time), results.cost_name
    if results.cost_column not in results.columns:
        return time
    return {"cost": cost, "performance_per_cost": f"{time} x {cost}"}.get(objective, time)


def _rank_words(results: Results) -> str:
    """What ranks the designs of an answer, by their objective where they have several.

    Of one objective such as ``step time``, of several the time and which of them rank otherwise.
    """
    query = f"SELECT DISTINCT {OBJECTIVE} FROM designs WHERE {results.ranked} ORDER BY 1"
    objectives = [name for (name,) in results.sql(query).rows]
    time = time_words(results.told_time)
    told = {name: measure_words(results, name) for name in objectives}
    if len(told) == 1:
        return next(iter(told.values()))
    others = (f"{name}: {words}" for name, words in told.items() if words != time)
    return "; ".join([time, *others])


def check_words(results: Results) -> str:
    """How the sweep routed the links of its designs: ``ecmp, 3 seeds``."""
    check = results.manifest["spec"]["check"]
    n_seeds = check["seeds"]
    if n_seeds is None:
        return f"{check['name']}, 10 seeds or fewer"
    return f"{check['name']}, {n_seeds} seed{'' if n_seeds == 1 else 's'}"


def money_words(results: Results) -> str:
    """What two prices that stand side by side are; empty where there is one."""
    if results.cost_name != "bill" or COST not in results.columns:
        return ""
    more = " and its fixed cost" if results.plan_cost == "system cost" else " alone"
    return (
        f"Bill: all whole parts that are bought. {results.plan_cost.capitalize()}: bandwidths at "
        f"the plan's linear prices{more}; do not compare it with the bill"
    )


def _columns(
    names: Sequence[str], axes: Sequence[str], plan_cost: str
) -> Iterator[tuple[str, Column]]:
    """Columns by their names in the answer, in the order of the screen."""
    if any(name.startswith(_BEST) for name in names):  # Of groups: as they are.
        starts = tuple(f"{one}billed_" for one in (_BEST, _OF_PER_DOLLAR))
        is_billed = any(name.startswith(starts) for name in names)
        for name in names:
            yield name, _of_group(name, axes, plan_cost, is_billed=is_billed)
        return
    for one in on_screen(names, axes, plan_cost):
        yield one.name, one


def _of_group(name: str, axes: Sequence[str], plan_cost: str, *, is_billed: bool) -> Column:
    """A column of groups: money is that of the best row, and the least of all its rows."""
    if name in axes and name != OBJECTIVE:
        return replace(column_named(name), heading=name, text=as_in_file)
    starts = (_BEST, _LEAST, _OF_PER_DOLLAR)
    start = next((one for one in starts if name.startswith(one)), "")
    own = column_named(name.removeprefix(start))
    if own.name == COST:
        own = replace(own, heading=plan_cost)
    if own.name == PER_DOLLAR and is_billed:
        own = replace(own, heading=AS_BILLED)
    if name in _ROWS:
        return replace(own, heading=name.replace("_", " "), text=as_in_file)
    if start != _LEAST and own.name == OVER_RULE:
        return replace(own, heading="breaks its rule by", text=_broken)
    if start != _LEAST and own.name in axes:
        return replace(own, heading=f"its {own.name}", text=as_in_file)
    words = {_BEST: "its " if own.name in (COST, _BILL, PER_DOLLAR) else "best ", _LEAST: "least "}
    words |= {_OF_PER_DOLLAR: "its "}
    return replace(own, heading=words.get(start, "") + own.label)


def _broken(over_usd: float) -> str:
    """By how much a bill breaks a rule on cost.

    >>> _broken(7.18e6), _broken(-3e6)
    ('$7.18M', '-')
    """
    return format_usd(over_usd) if over_usd > CENT_USD else NONE


def _same(shown: Mapping[str, Column], rows: Sequence[Row]) -> list[str]:
    """Columns that have one value in all rows of designs; those that rank designs stay."""
    if len(rows) < 2 or any(name.startswith(_BEST) for name in shown):
        return []
    kept = {*_KEPT, *_PER_SEQUENCE.values()} - {*_OF_FIM}
    found = [name for name in shown if name not in kept]
    return [name for name in found if all(row[name] == rows[0][name] for row in rows)]


def _empty(shown: Mapping[str, Column], rows: Sequence[Row]) -> Iterator[str]:
    """Columns without a value in any row; the step time says that there is no optimum."""
    for name, one in shown.items():
        if name != _TIMES[0] and all(_cell(one, row[name]) == Cell(NONE) for row in rows):
            yield name


def _sequences(shown: Mapping[str, Column], rows: Sequence[Row]) -> float | None:
    """The sequences of a step, where times per sequence tell no more than times of steps do."""
    ratios = {
        f"{row[whole] / row[part]:.9g}" if row[whole] and row[part] else None
        for whole, part in _PER_SEQUENCE.items()
        if part in shown
        for row in rows
        if whole in shown and (row[whole], row[part]) != (None, None)
    }
    is_whole = all(whole in shown for whole, part in _PER_SEQUENCE.items() if part in shown)
    (only,) = ratios if len(ratios) == 1 else (None,)
    return float(only) if only and is_whole and len(rows) > 1 else None


def _unit(one: Column, units: Mapping[str, str]) -> str:
    return "GB/s" if one.name.startswith(_BANDWIDTH) else units.get(one.name, "")


def _heading(one: Column, units: Mapping[str, str]) -> str:
    unit = _unit(one, units)
    return f"{one.label}\n{unit}" if unit else one.label


def _named(one: Column, value: Any, units: Mapping[str, str]) -> str:
    """A value with its name, for a line of words."""
    text = value if one.name == OBJECTIVE else degree_words(one.cell(value))
    return f"{one.label} {text} {_unit(one, units)}".strip()


def _cell(one: Column, value: Any) -> Cell:
    if one.name == _AVOIDABLE and isinstance(value, str):
        return Cell(value)
    return Cell(NONE if value is None else degree_words(one.cell(value)))


def _dispensable(
    names: Sequence[str], axes: Sequence[str], rows: Sequence[Row], work: Sequence[str]
) -> Iterator[str]:
    """What a narrow terminal loses: first what others say too, last the bandwidths."""
    kept = {*_KEPT, *axes, OBJECTIVE, _BEST + OVER_RULE}
    if len({row.get(OBJECTIVE) for row in rows}) == 1:
        kept.discard(OBJECTIVE)
        yield from (name for name in names if name == OBJECTIVE)
    for whole, per_sequence in _PER_SEQUENCE.items():
        if per_sequence in names and not _has_one_ratio(whole, per_sequence, rows, work):
            kept = kept - {whole} | {per_sequence}  # Ranks designs of other batches.
    of_groups = [one for one in names if one.startswith((_BEST, _OF_PER_DOLLAR))]
    kept |= {one for one in of_groups if _ranks(one)}
    equal = [one for one in of_groups if len({row[one] for row in rows}) == 1]
    others = [name for name in reversed(names) if name not in kept and name != OBJECTIVE]
    others.sort(key=lambda name: (not name.startswith((_LEAST, "n_")), name not in equal))
    yield from (name for name in others if not name.startswith(_BANDWIDTH))
    if len(rows) > 1:
        fixed = {name for name in axes if len({row.get(name) for row in rows}) == 1}
        yield from (name for name in names if name in fixed and name != OBJECTIVE)
    if "bill_usd" in names:  # It ranks, with the time on its ports.
        yield from (name for name in names if name in ("step_time_s", "cost_usd"))
    yield from (name for name in others if name.startswith(_BANDWIDTH))
    yield from (name for name in _OF_FIM if name in names)


def _ranks(name: str) -> bool:
    """Whether a figure of the best row of a group is a time of steps, or what they cost."""
    own = name.removeprefix(_BEST).removeprefix(_OF_PER_DOLLAR)
    return own in (*_TIMES, COST, _BILL)


def _has_one_ratio(whole: str, part: str, rows: Sequence[Row], work: Sequence[str]) -> bool:
    """Whether all steps of each work have the same number of sequences."""
    known = [row for row in rows if row.get(whole) and row.get(part)]
    found = {(*map(row.get, work), f"{row[whole] / row[part]:.9g}") for row in known}
    return len(found) <= len({tuple(map(row.get, work)) for row in known})
