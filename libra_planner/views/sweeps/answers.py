"""Answers of sweeps as tables: short headings, units, rounded figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import NONE, OBJECTIVE, ROW, Column, column_named, on_screen
from libra_planner.sweeps.results import Answer, Results
from libra_planner.views.cells import Cell, Table, table

_BEST = "best_"
_BANDWIDTH = "bandwidth_dim"
_TIMES = ("step_time_s", "effective_step_time_s", "billed_step_time_s")
_KEPT = (ROW, *_TIMES, "cost_usd", "bill_usd", "fim_percent")
"""What every terminal shows, with the axes."""
_PER_SEQUENCE = {name: name.replace("step_time_s", "seconds_per_sequence") for name in _TIMES}

Row = Mapping[str, Any]


def answer_table(answer: Answer, axes: Sequence[str], n_rows: int) -> Table:
    """The first rows of designs or of groups of them.

    Parameters
    ----------
    answer : what ``top``, ``grouped`` or ``pareto`` gave.
    axes : of the sweep.
    n_rows : to show at most.
    """
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows[:n_rows]]
    shown = dict(_columns(answer.columns, axes))
    headings = {name: _heading(one) for name, one in shown.items()}
    texts = (name for name in shown if any(isinstance(row[name], str) for row in rows))
    return table(
        "",
        "",
        headings.values(),
        ([_cell(one, row[name]) for name, one in shown.items()] for row in rows),
        left=tuple(headings[name] for name in texts),
        dispensable=tuple(headings[name] for name in _dispensable([*shown], axes, rows)),
    )


def answer_words(
    results: Results, *, n_best: int, by: str | None, is_frontier: bool, has_fim: bool
) -> str:
    """What an answer is, in one line.

    Parameters
    ----------
    results : of the sweep.
    n_best : designs of each objective, where nothing else is asked.
    by : the axis of a question for groups.
    is_frontier, has_fim : whether it is the frontier, and whether FIM counts there.
    """
    name = visible(Path(results.manifest["source"]).stem)
    time = time_words(results.time_column)
    if by:
        what = f"the best of each {visible(by)} and objective by {time}"
    elif is_frontier:
        cost = cost_words(results.cost_column)
        figures = f"{time}, {cost} and FIM" if has_fim else f"{time} and {cost}"
        what = f"frontier of {figures}, fastest first"
    else:
        what = f"the best {n_best:,} of each objective ({time})"
    return f"{name}, {results.n_rows:,} designs: {what}"


def time_words(time: str) -> str:
    """A column of times in words.

    >>> time_words("step_time_s"), time_words("effective_seconds_per_sequence")
    ('step time', 'effective time per sequence')
    """
    what = "step time" if time.endswith("step_time_s") else "time per sequence"
    kind = next((one for one in ("effective", "billed") if time.startswith(one)), "")
    return f"{kind} {what}".strip()


def cost_words(cost: str) -> str:
    """A column of costs in words.

    >>> cost_words("cost_usd"), cost_words("best_bill_usd")
    ('cost', 'bill')
    """
    return "bill" if cost.removeprefix(_BEST).startswith("bill") else "cost"


def _columns(names: Sequence[str], axes: Sequence[str]) -> Iterator[tuple[str, Column]]:
    """Columns by their names in the answer, in the order of the screen."""
    if any(name.startswith(_BEST) for name in names):  # Of groups: as they are.
        for name in names:
            own = column_named(name.removeprefix(_BEST))
            best = "best " if name.startswith(_BEST) else ""
            is_axis = name in axes and name != OBJECTIVE
            yield name, replace(own, heading=name if is_axis else best + own.label)
        return
    for one in on_screen(names, axes):
        yield one.name, one


def _heading(one: Column) -> str:
    return f"{one.label}\nGB/s" if one.name.startswith(_BANDWIDTH) else one.label


def _cell(one: Column, value: Any) -> Cell:
    return Cell(NONE if value is None else one.cell(value))


def _dispensable(names: Sequence[str], axes: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """What a narrow terminal loses: first what others say too, last the bandwidths."""
    kept = {*_KEPT, *axes, OBJECTIVE}
    if len({row.get(OBJECTIVE) for row in rows}) == 1:
        kept.discard(OBJECTIVE)
        yield from (name for name in names if name == OBJECTIVE)
    for whole, per_sequence in _PER_SEQUENCE.items():
        if per_sequence in names and not _has_one_ratio(whole, per_sequence, rows):
            kept = kept - {whole} | {per_sequence}  # Ranks designs of other batches.
    others = [name for name in reversed(names) if name not in kept and name != OBJECTIVE]
    yield from (name for name in others if not name.startswith(_BANDWIDTH))
    if len(rows) > 1:
        fixed = {name for name in axes if len({row.get(name) for row in rows}) == 1}
        yield from (name for name in names if name in fixed and name != OBJECTIVE)
    if "bill_usd" in names:  # It ranks, with the time on its ports.
        yield from (name for name in names if name in ("step_time_s", "cost_usd"))
    yield from (name for name in others if name.startswith(_BANDWIDTH))


def _has_one_ratio(whole: str, part: str, rows: Sequence[Row]) -> bool:
    known = (row for row in rows if row.get(whole) and row.get(part))
    return len({f"{row[whole] / row[part]:.9g}" for row in known}) <= 1
