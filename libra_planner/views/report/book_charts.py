"""The sheet of charts that a workbook draws from its own cells: they follow its prices."""

from __future__ import annotations

from libra_planner.procurement.advice import steps
from libra_planner.procurement.bill import GROUPS, ZERO
from libra_planner.procurement.ranking import Comparison
from libra_planner.views import cells
from libra_planner.views.cells import BookChart, Section, Series, Table, Value, number, usd
from libra_planner.views.report.against import named
from libra_planner.views.report.bills import group_cell
from libra_planner.views.report.charts import COLOURS
from libra_planner.views.report.recommendation import N_FIGURES, step_name

_DOLLARS = "$"


_WAY = (
    (3, "", ""),
    (4, COLOURS[2], "#000000"),
    (5, COLOURS[1], "#000000"),
    (6, COLOURS[0], "#ffffff"),
)
"""Columns of the way that are drawn, their colours, and those of the amounts on them."""


def chart_sheet(comparison: Comparison) -> Section:
    """The way from the baseline, prices by group, and price against time."""
    pairs = [_way(comparison), _groups(comparison), _times(comparison)]
    found = [pair for pair in pairs if pair is not None]
    tables, drawn = tuple(table for table, _ in found), tuple(chart for _, chart in found)
    return Section("charts", "Charts", "Charts", tables=tables, drawn=drawn)


def _way(comparison: Comparison) -> tuple[Table, BookChart] | None:
    """Columns that begin where the last one ended."""
    if comparison.reference is None:
        return None
    base, one = (comparison.candidates[i] for i in (comparison.reference, comparison.chosen))
    then, nothing = base.bill.total_usd, usd(None)
    start = usd(then, group_cell(base, "total"))
    rows: list[list[Value]] = [[base.letter, nothing, start, nothing, nothing, nothing, start]]
    for i, step in enumerate(steps(base, one)):
        before, change = then, step.change_usd
        then += change
        rows.append(
            [
                step_name(step),
                usd(change, f"[difference/{N_FIGURES + i}/3]"),
                usd(then, f"[way/{i}/2]+[c1]"),
                usd(min(before, then), f"MIN([way/{i}/2],[c2])"),
                usd(max(-change, ZERO), "IF([c1]<0,-[c1],0)"),
                usd(max(change, ZERO), "IF([c1]>0,[c1],0)"),
                nothing,
            ]
        )
    end = usd(one.bill.total_usd, group_cell(one, "total"))
    rows.append([one.letter, nothing, end, nothing, nothing, nothing, end])
    title = f"From {named(base)} to {named(one)}"
    headings = ["Step", "Change", "Then", "Below", "Less", "More", "Price"]
    series = tuple(
        Series(headings[column], "[way/r0]", f"[way/r{column}]", colour, label_colour)
        for column, colour, label_colour in _WAY
    )
    chart = BookChart("column", title, "", _DOLLARS, series, has_legend=False)
    return cells.table("way", title, headings, rows), chart


def _groups(comparison: Comparison) -> tuple[Table, BookChart]:
    """Bars of what each design is made of."""
    groups = [group for group in GROUPS if comparison.bill.of(group).lines]
    rows: list[list[Value]] = [
        [one.letter, *(usd(one.bill.of(x).total_usd, group_cell(one, x)) for x in groups)]
        for one in comparison.candidates
    ]
    series = tuple(
        Series(group, "[by-group/r0]", f"[by-group/r{i}]", colour)
        for i, (group, colour) in enumerate(zip(groups, COLOURS, strict=False), start=1)
    )
    title = "Price by group"
    chart = BookChart("bar", title, _DOLLARS, "", series)
    return cells.table("by-group", title, ["Design", *groups], rows), chart


def _times(comparison: Comparison) -> tuple[Table, BookChart] | None:
    """Price against step time, a point for each design."""
    if comparison.times_s is None or len(comparison.candidates) == 1:
        return None
    model = comparison.ranking.ranked_by
    rows: list[list[Value]] = [
        [
            one.letter,
            usd(one.bill.total_usd, group_cell(one, "total")),
            number(one.step_time_by(model) * 1000, 3),
        ]
        for one in comparison.candidates
    ]
    series = tuple(
        Series(letter, f"[points/{i}/1]", f"[points/{i}/2]", COLOURS[i % len(COLOURS)])
        for i, letter in enumerate(comparison.letters)
    )
    title = f"Price against step time {model}"
    chart = BookChart("scatter", title, _DOLLARS, "ms", series, has_legend=False)
    return cells.table("points", title, ["Design", "Price", "Step time, ms"], rows), chart
