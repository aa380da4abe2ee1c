"""Charts: as SVG with stable bytes, in the colours of the page that holds them, and the sheet of
charts that a workbook draws from its own cells, which follow its prices.

Only letters of designs and names of prices are written into a chart, never as formulas.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from libra_planner.procurement.advice import steps
from libra_planner.procurement.bill import GROUPS, NETWORKS, ZERO
from libra_planner.procurement.ranking import Comparison, Swing
from libra_planner.views import cells
from libra_planner.views.cells import BookChart, Chart, Section, Series, Table, Value, number, usd
from libra_planner.views.report.against import N_FIGURES, named, step_name
from libra_planner.views.report.bills import group_cell

_TEXT_COLOUR, _GRID_COLOUR = "#010203", "#010204"
"""Colours that stand for the page's own and are replaced by them."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8c8c8c", "#56b4e9", "#d55e00")
"""Colours that people with any colour vision tell apart (Okabe and Ito), dark and light."""

_HATCHES = ("", "//", "..", "xx", "--", "++", "\\\\")
_MOST_BARS = 12
_WIDTH = 4.6
_M_USD = 1e6


def charts(comparison: Comparison) -> dict[str, Chart]:
    """The charts of a comparison, by key."""
    n, chosen = len(comparison.candidates), comparison.chosen
    found = []
    if way := waterfall(comparison):
        base, one = comparison.candidates[comparison.reference or 0], comparison.candidates[chosen]
        title = f"From {base.letter} to {one.letter}, M$ (the axis does not begin at 0)"
        found.append(_chart("waterfall", title, partial(_waterfall, way), 0.7 + 0.25 * len(way)))
    found += [_chart("cost", "Price by group, M$", partial(_cost, comparison), 1.5 + 0.34 * n)]
    if comparison.times_s is not None and n > 1:
        title = f"Price against step time {comparison.ranking.ranked_by}"
        found.append(_chart("frontier", title, partial(_frontier, comparison), 3.2))
    # The prices of the networks that move the chosen design most: NPUs would dwarf them.
    names = comparison.candidates[chosen].bill.of(*NETWORKS).usd_by_price()
    bars = [swing for swing in comparison.swings if swing.price_name in names]
    bars = sorted(bars, key=lambda swing: -swing.usd_by_design[chosen])[:_MOST_BARS]
    if bars:
        what = "What ±20% on a price of the networks makes of the price of design"
        title, draw = f"{what} {comparison.letters[chosen]}, M$", partial(_tornado, bars, chosen)
        found.append(_chart("tornado", title, draw, 1.2 + 0.26 * len(bars)))
    return {chart.key: chart for chart in found}


def _chart(key: str, title: str, draw: Callable[[Any], None], height: float) -> Chart:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.hashsalt": key,
        "svg.fonttype": "none",
        "font.family": "DejaVu Sans",  # Comes with matplotlib: the same measures everywhere.
        "font.size": 9,
        "text.usetex": False,  # Whatever a matplotlibrc in the working directory says.
        "hatch.linewidth": 0.4,
        "text.color": _TEXT_COLOUR,
        "axes.labelcolor": _TEXT_COLOUR,
        "axes.edgecolor": _GRID_COLOUR,
        "xtick.color": _TEXT_COLOUR,
        "ytick.color": _TEXT_COLOUR,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return Chart(key, title, _inline(buffer.getvalue(), key))


def _inline(svg: str, key: str) -> str:
    """The picture as a part of a page: its colours, no prologue, scaled to its width."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%"', svg, count=1)
    svg = svg.replace(_TEXT_COLOUR, "currentColor").replace(_GRID_COLOUR, "var(--line)")
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r"url\(#", f"url(#{key}-", svg)
    svg = re.sub(r'href="#', f'href="#{key}-', svg)
    return svg.replace("font: 9px 'DejaVu Sans'", "font: 9px 'DejaVu Sans', sans-serif").strip()


def waterfall(comparison: Comparison) -> list[tuple[str, float, float]]:
    """Bars on the way from the baseline's price to that of the design to buy: name, from, to, M$.

    The first and the last are prices; empty where nothing differs.
    """
    if comparison.reference is None:
        return []
    base, one = (comparison.candidates[i] for i in (comparison.reference, comparison.chosen))
    at = float(base.bill.total_usd) / _M_USD
    found = [(base.letter, 0.0, at)]
    for step in steps(base, one):
        found.append((step_name(step, 2), at, at + float(step.change_usd) / _M_USD))
        at = found[-1][2]
    return [*found, (one.letter, 0.0, float(one.bill.total_usd) / _M_USD)] if found[1:] else []


def _waterfall(way: list[tuple[str, float, float]], axes: Any) -> None:
    levels = [to for _, _, to in way]
    spread = max(levels) - min(levels)
    left = max(0.0, min(levels) - 0.5 * spread)
    for y, (_, start, end) in enumerate(way):
        is_price, change = y in (0, len(way) - 1), end - start
        colour = COLOURS[0] if is_price else COLOURS[2] if change < 0 else COLOURS[1]
        low, high = (left, end) if is_price else (min(start, end), max(start, end))
        hatch = "//" if change > 0 and not is_price else ""
        axes.barh(y, high - low, left=low, color=colour, hatch=hatch, height=0.7)
        _label(axes, high, y, f"{end:,.2f}" if is_price else change_text(change))
    axes.set_yticks(range(len(way)), [name for name, _, _ in way], parse_math=False)
    axes.set_xlim(left, max(levels) + 0.35 * spread)
    axes.invert_yaxis()
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    axes.set_xlabel("M$")


def change_text(change: float) -> str:
    """A change in M$ with its sign: of a small one as many digits as show it.

    >>> change_text(-2.198), change_text(-0.005), change_text(0.0004)
    ('-2.20', '-0.005', '+0.0004')
    """
    first = -math.floor(math.log10(abs(change))) if change else 0
    return f"{change:+,.{max(2, first)}f}"


def _label(axes: Any, x: float, y: float, text: str) -> None:
    """Text behind the end of a bar: a picture loses spaces before it."""
    place: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (x, y), parse_math=False, **place)


def _cost(comparison: Comparison, axes: Any) -> None:
    positions = range(len(comparison.candidates))
    left = np.zeros(len(positions))
    for group, colour, hatch in zip(GROUPS, COLOURS, _HATCHES, strict=True):
        if not comparison.bill.of(group).lines:
            continue
        widths = [float(one.bill.of(group).total_usd) / _M_USD for one in comparison.candidates]
        look = {"color": colour, "hatch": hatch, "edgecolor": _TEXT_COLOUR, "linewidth": 0.3}
        axes.barh(positions, widths, left=left, label=group, **look)
        left = left + widths
    for y, total in zip(positions, left, strict=True):
        _label(axes, total, y, f"{total:,.1f}")
    axes.set_yticks(positions, comparison.letters)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("M$")
    box = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
    axes.legend(ncols=5, columnspacing=1.0, handlelength=1.6, **box)


def _frontier(comparison: Comparison, axes: Any) -> None:
    place = {"xytext": (7, 5), "textcoords": "offset points"}
    for i, ((x, y), letters) in enumerate(_points(comparison).items()):
        axes.plot([x], [y], "o", color=COLOURS[i % 4], markersize=8)
        label = ", ".join(letters)
        axes.annotate(label, (x, y), fontweight="bold", parse_math=False, **place)
    axes.margins(0.15)
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.set_xlabel("price of everything, M$ (left is cheaper)")
    axes.set_ylabel("step time, ms (down is faster)")
    axes.grid(color=_GRID_COLOUR, linewidth=0.5)


def _points(comparison: Comparison) -> dict[tuple[float, float], list[str]]:
    """Letters of the designs by price, M$, and step time, ms; equal designs share a point."""
    found: dict[tuple[float, float], list[str]] = {}
    for one in comparison.candidates:
        time_s = one.step_time_by(comparison.ranking.ranked_by)
        point = round(float(one.bill.total_usd) / _M_USD, 6), round(time_s * 1000, 6)
        found.setdefault(point, []).append(one.letter)
    return found


def _tornado(bars: list[Swing], chosen: int, axes: Any) -> None:
    widths = [float(swing.change_usd(chosen)) / _M_USD for swing in bars]
    positions = range(len(bars))
    axes.barh(positions, [-width for width in widths], color=COLOURS[2], label="price -20%")
    axes.barh(positions, widths, color=COLOURS[1], hatch="//", label="price +20%")
    for y, width in zip(positions, widths, strict=True):
        _label(axes, width, y, f"±{width:,.2f}")
    # Names from a user's catalogue in letters that every font has.
    names = [re.sub("[^ -~]", "?", swing.price_name)[:40] for swing in bars]
    axes.set_yticks(positions, names, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color=_TEXT_COLOUR, linewidth=0.8)
    axes.margins(x=0.14)
    axes.set_xlabel("M$")
    axes.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)


_DOLLARS = "$"


_WAY = (
    (3, "", "", ""),
    (4, COLOURS[2], "#000000", " -"),
    (5, COLOURS[1], "#000000", " +"),
    (6, COLOURS[0], "#ffffff", ""),
)
"""Columns of the way, their colours, those of the amounts on them, and the signs of these."""


def chart_sheet(comparison: Comparison) -> Section:
    """The way from the baseline, prices by group, and price against time."""
    pairs = [_way_sheet(comparison), _groups_sheet(comparison), _times_sheet(comparison)]
    found = [pair for pair in pairs if pair is not None]
    tables, drawn = tuple(table for table, _ in found), tuple(chart for _, chart in found)
    return Section("charts", "Charts", "Charts", tables=tables, drawn=drawn)


def _way_sheet(comparison: Comparison) -> tuple[Table, BookChart] | None:
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
        Series(headings[column], "[way/r0]", f"[way/r{column}]", *look) for column, *look in _WAY
    )
    chart = BookChart("column", title, "", _DOLLARS, series, has_legend=False)
    return cells.table("way", title, headings, rows), chart


def _groups_sheet(comparison: Comparison) -> tuple[Table, BookChart]:
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


def _times_sheet(comparison: Comparison) -> tuple[Table, BookChart] | None:
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
