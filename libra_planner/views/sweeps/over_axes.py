"""Figures of a sweep over its axes: the split of bandwidth, a map of the least time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import FIGURES, ROW, Column, column_named, on_screen
from libra_planner.sweeps.figures.tables import sql_name
from libra_planner.sweeps.results import Results
from libra_planner.units import time_unit
from libra_planner.views.sweeps.answers import time_words
from libra_planner.views.sweeps.best import unsold_sql, why_unranked
from libra_planner.views.sweeps.drawing import (
    COLOURS,
    LOG_STEPS,
    MARKERS,
    are_numbers,
    logarithmic,
    name_across,
    room_of,
    short,
    titled,
)
from libra_planner.views.sweeps.points import MANY_TIMES
from libra_planner.views.sweeps.values import axis_title, in_order, scaled, tier_names

_MOST_TICKS = 40
_STEPS = (1, 2, 5, 10)
"""Of round numbers on an axis."""
_MOST_EXACT = 20
"""Numbers up to which each is a tick by itself."""
_MOST_CELLS = 120
"""Cells of a map up to which each has its figure, if it has room there."""
_MAP_DIGITS, _MAP_SIZES = (4, 3), (8, 7, 6)
"""Digits of the figures of a map and their sizes of type, first choice first."""
_DIGIT, _APART = 0.64, 1.0
"""Width of a digit, and room between two figures, of their size of type."""
_NUMBERS = ("double", "int64")
"""Types of columns that a line shows."""
_STACK = re.compile(r"\[[A-Za-z]+\(")
"""Where brackets of a topology begin; in JSON those of a list have a quote behind them."""


Work = Mapping[str, Any]
"""Values of the axes that change what is trained and stand on no axis of a figure."""


def works(results: Results, *shown: str) -> Sequence[Work]:
    """What is trained, besides along the axes of a figure: each has a figure of its own."""
    names = [name for name in results.work_axes if name not in shown]
    if not names:
        return [{}]
    keys = ", ".join(map(sql_name, names))
    query = f"SELECT {keys} FROM designs GROUP BY {keys} ORDER BY min(row)"
    return results.sql(query).dicts()


def _is_of(row: Mapping[str, Any], work: Work) -> bool:
    return all(row[name] == value for name, value in work.items())


def of_words(work: Work) -> str:
    """What is trained, behind the name of a figure; empty where a figure has all."""
    return "".join(f" of {visible(str(value))}" for value in work.values())


def _left_out(results: Results, work: Work, column: Column | None = None) -> str:
    """How many designs have no place in a figure of the best, and why; empty where all have."""
    keys = ", ".join(map(sql_name, work))
    has = f" AND {sql_name(column.name)} IS NOT NULL" if column else ""
    is_placed, is_unsold = f"({results.ranked}{has}) IS TRUE", unsold_sql(results)
    query = (
        f"SELECT count(*) AS n_, count(*) FILTER (WHERE {is_placed}) AS placed_, count(*) FILTER "
        f"(WHERE {is_unsold} AND NOT ({results.ranked}) IS TRUE) AS unsold_"
    )
    more = f", {keys} FROM designs GROUP BY {keys}" if keys else " FROM designs"
    [found] = [row for row in results.sql(query + more).dicts() if _is_of(row, work)]
    n, n_left, n_unsold = found["n_"], found["n_"] - found["placed_"], found["unsold_"]
    lacks = f"no {time_words(results.told_time)}"
    lacks += f", or no {column.label}" if column else ""
    why = why_unranked(n_unsold, n_left - n_unsold, lacks)
    return f"Left out: {n_left:,} of {n:,} designs: {why}" if n_left else ""


def _fastest(
    results: Results, names: Sequence[str], wanted: Sequence[str], work: Work
) -> list[dict[str, Any]]:
    """Columns of the fastest design at each combination of the values of some axes."""
    _need_axes(results, names)
    found = results.fastest([*names, *work], wanted).dicts()
    return [row for row in found if _is_of(row, work)]


def _need_axes(results: Results, names: Sequence[str]) -> None:
    """Refuse what is no axis of the sweep."""
    for name in names:
        if name not in results.axes:
            expected, fix = "expected an axis of the sweep", closest(name, results.axes)
            raise SpecError(Fault(f"got {name!r}", expected, fix, "", Place("--x, --y")))


def split(results: Results, axes: Any, x: str, work: Work) -> None:
    """Draw the bandwidths of the fastest design at each value of an axis."""
    labels = [name for name in results.columns if name.startswith("bandwidth_dim")]
    results.need("bandwidth_dim1_GBps")
    stacks = [name for name in _axes_of_stacks(results) if name not in (x, *work)]
    rows = _fastest(results, [x], [*labels, *stacks], work)
    values = [row[x] for row in rows]
    every = [[row[label] or 0.0 for label in labels] for row in rows]
    heights = np.array(every, dtype=np.float64).reshape(-1, len(labels))
    names = _dimensions(results, [label.split("_")[1] for label in labels])
    # The fastest may be of smaller fabrics than others are.
    drawn = np.flatnonzero(heights.any(axis=0)).tolist()
    heights, names = heights[:, drawn], [names[i] for i in drawn]
    is_stack = _shares_ports(results, rows)
    if is_stack:
        _lines(values, heights, names, axes)
    elif are_numbers(values):
        axes.stackplot(values, heights.T, labels=names, colors=COLOURS)
    else:
        _bars(heights, names, axes)
    if not are_numbers(values):
        name_across(axes, *_ticks(values, x))
    axes.set(xlabel=axis_title(results, x), ylabel="bandwidth of the fastest design, GB/s per NPU")
    axes.margins(x=0.02 if is_stack else 0)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
    axes.legend(title="dimension", fontsize=8, title_fontsize=8, reverse=True, **place)
    heading = f"Bandwidth of the fastest design{of_words(work)} by {visible(x)}"
    heading += _over(results, x, *work)
    more = [_ONE_PORT] if is_stack else []
    titled(results, axes, heading, " ".join([*more, _left_out(results, work)]).strip())


def value_line(results: Results, axes: Any, x: str, y: str, work: Work) -> None:
    """Draw the best value of a column of numbers at each value of an axis.

    The largest or the least of all designs with a time; of a column of which neither is better,
    such as a bandwidth, that of the fastest design.
    """
    column = _numbers(results, y)
    rows = _best_values(results, x, column, work)
    if not rows:
        text = f"no design{of_words(work)} has the figure {column.label}"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
        axes.set_axis_off()
    values, figures = [row[x] for row in rows], [float(row[y]) for row in rows]
    scale, unit = scaled(column, max(map(abs, figures), default=0.0))
    label = column.label.removesuffix(" %").removesuffix(" GB/s")
    is_number = are_numbers(values)
    places = values if is_number else list(range(len(values)))
    heights = [value * scale for value in figures]
    axes.plot(places, heights, color=COLOURS[0], marker="o", linestyle="-" if is_number else "")
    if not is_number:
        name_across(axes, *_ticks(values, x))
    what = {"max": "largest ", "min": "least "}.get(column.best, "") + label
    what += "" if column.best else " of the fastest design"
    of_unit = "" if unit in ("", label, "times") else f", {unit}"
    axes.set(xlabel=axis_title(results, x), ylabel=f"{what}{of_unit}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.9g}")
    axes.grid(color="0.9", linewidth=0.5)
    if column.best and rows:
        _mark_best(rows, places, heights, column.best, axes)
    over = _over(results, x, *work)
    heading = f"{what[0].upper()}{what[1:]}{of_words(work)} by {visible(x)}{over}"
    titled(results, axes, heading, _left_out(results, work, column))


def _numbers(results: Results, name: str) -> Column:
    """A column of numbers of the results, with its heading."""
    kinds = results.manifest["schema"]
    known = [one for one in results.columns if kinds[one] in _NUMBERS]
    if name not in known:
        if name not in results.columns and column_named(name).key in FIGURES:
            results.need(name, "--y")  # It says how a sweep gets the column.
        expected = "expected an axis of the sweep, or a column of numbers"
        fix = closest(name, dict.fromkeys([*results.axes, *known]))
        raise SpecError(Fault(f"got {name!r}", expected, fix, "", Place("--y")))
    shown = on_screen(results.columns, [], results.plan_cost)
    return next(one for one in shown if one.name == name)


def _best_values(results: Results, x: str, column: Column, work: Work) -> list[dict[str, Any]]:
    """The value at each of an axis and the row that has it, without those that have none."""
    name = column.name
    if not column.best:
        return [row for row in _fastest(results, [x], [ROW, name], work) if row[name] is not None]
    _need_axes(results, [x])
    keys, own = ", ".join(map(sql_name, dict.fromkeys([x, *work]))), sql_name(name)
    order = f"{own} {'DESC' if column.best == 'max' else 'ASC'}, {ROW}"
    found = results.sql(
        f"SELECT {keys}, {own}, {ROW} FROM designs WHERE {results.ranked} AND {own} IS NOT NULL "
        f"AND isfinite({own}::DOUBLE) QUALIFY row_number() OVER (PARTITION BY {keys} "
        f"ORDER BY {order}) = 1 ORDER BY {sql_name(x)}"
    ).dicts()
    return [row for row in found if _is_of(row, work)]


def _mark_best(
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[Any],
    heights: Sequence[float],
    best: str,
    axes: Any,
) -> None:
    """Write its row and value at the best of all."""
    at = int((np.argmax if best == "max" else np.argmin)(heights))
    text = f"row {rows[at][ROW]}: {_significant(heights[at], 5)}"
    axes.margins(0.09, 0.12)
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "ha": "center"}
    axes.annotate(text, (places[at], heights[at]), xytext=(0, 7 if best == "max" else -14), **style)


def _dimensions(results: Results, names: Sequence[str]) -> list[str]:
    """Dimensions with the names of their tiers, where the base plan has them."""
    tiers = tier_names(results)
    if len(tiers) != len(names):
        return [*names]
    return [f"{name}, {tier}" for name, tier in zip(names, tiers, strict=True)]


_ONE_PORT = "Tiers in brackets share the NIC: their bandwidths do not add up."


def _axes_of_stacks(results: Results) -> list[str]:
    """Axes of which a value has tiers behind one port."""
    axes = results.manifest["spec"]["axes"]
    return [name for name, values, *_ in axes if _STACK.search(json.dumps(values))]


def _shares_ports(results: Results, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the topology of any of some designs has tiers behind one port."""
    fabric = results.manifest["spec"]["base"].get("fabric")
    own = [row[name] for row in rows for name in _axes_of_stacks(results)]
    return bool(_STACK.search(json.dumps([fabric, *own])))


def _lines(values: Sequence[Any], heights: Any, names: Sequence[str], axes: Any) -> None:
    places = values if are_numbers(values) else range(len(values))
    for i, (height, name) in enumerate(zip(heights.T, names, strict=True)):
        style: dict[str, Any] = {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
        }
        width = 1.5 + 1.5 * (len(names) - 1 - i)  # Tiers of the same bandwidth are all seen.
        style |= {"linewidth": width, "markersize": width + 3}
        axes.plot(places, np.where(height > 0, height, np.nan), label=name, **style)
    bought = heights[heights > 0]
    if bought.size and bought.max() > MANY_TIMES * bought.min():
        logarithmic(axes, axes.yaxis, "y")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(color="0.9", linewidth=0.5)


def _bars(heights: Any, names: Sequence[str], axes: Any) -> None:
    below = np.zeros(len(heights))
    for i, (height, name) in enumerate(zip(heights.T, names, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.bar(range(len(height)), height, 0.8, below, label=name, color=colour)
        below = below + height


def _over(results: Results, *shown: str) -> str:
    """Axes over which a figure takes the best."""
    spec = results.manifest["spec"]["axes"]
    others = [visible(name) for name, values, *_ in spec if name not in shown and len(values) > 1]
    return f", best over {', '.join(others)}" if others else ""


def heat_map(results: Results, axes: Any, x: str, y: str, work: Work) -> None:
    """Draw the least time at each pair of values of two axes; pairs without one are empty."""
    time = results.told_time
    rows = _fastest(results, [x, y], [time], work)
    across, up = (_values(results, name) for name in (x, y))
    grid = np.full((len(up), len(across)), np.nan)
    for row in rows:
        grid[up.index(row[y]), across.index(row[x])] = row[time]
    unit_s, unit = time_unit(np.nanmax(grid, initial=0))
    grid /= unit_s
    image = axes.imshow(grid, origin="lower", aspect="auto")
    places, texts = _ticks(up, y)
    name_across(axes, *_ticks(across, x), texts)
    axes.set_yticks(places, texts)
    axes.set(xlabel=axis_title(results, x), ylabel=axis_title(results, y))
    what = f"least {time_words(time)}{of_words(work)}"
    axes.figure.colorbar(image, label=f"{what}, {unit}")
    over = f"by {visible(x)} and {visible(y)}{_over(results, x, y, *work)}"
    width, height, room = room_of(axes)
    heading = f"{what[0].upper()}{what[1:]}, {unit}, {over}"
    titled(results, axes, heading, _left_out(results, work), room)
    if grid.size <= _MOST_CELLS:
        _figures_of(grid, axes, 72 * width / len(across), 72 * height / len(up))


def _values(results: Results, axis: str) -> list[Any]:
    """All values of an axis that designs have, also those without an optimum."""
    name = sql_name(axis)
    return in_order({row[0] for row in results.sql(f"SELECT DISTINCT {name} FROM designs").rows})


def _figures_of(grid: Any, axes: Any, width: float, height: float) -> None:
    """The figure of each cell of a map, in a colour that is read on it; none without room.

    Parameters
    ----------
    grid : figures, not finite where there is none, shape (n_up, n_across).
    axes : of matplotlib.
    width, height : of a cell, in points.
    """
    known = grid[np.isfinite(grid)]
    low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
    n_digits, size = _fitting(known.tolist(), width, height)
    if not size:
        return
    for (j, i), value in np.ndenumerate(grid):
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
        if not np.isfinite(value):
            axes.text(i, j, "none", color="0.4", **style)
        else:
            is_bright = high > low and (value - low) / (high - low) > 0.6
            text = _significant(value, n_digits)
            axes.text(i, j, text, color="black" if is_bright else "white", **style)


def _fitting(values: Sequence[float], width: float, height: float) -> tuple[int, float]:
    """Digits and size of type of figures that have room in cells, in points; size 0 if none.

    >>> _fitting([4.2, 16.0], 40, 20), _fitting([4.2, 16.0], 28, 20), _fitting([4.2, 16.0], 9, 20)
    ((4, 8), (4, 7), (3, 0))
    """
    for n_digits in _MAP_DIGITS:
        texts = [_significant(value, n_digits) for value in values]
        longest = max((len(text) - 0.5 * ("." in text) for text in texts), default=4)
        for size in _MAP_SIZES:
            if (_DIGIT * longest + _APART) * size <= width and 1.4 * size <= height:
                return n_digits, size
    return _MAP_DIGITS[-1], 0


def _significant(value: float, n_digits: int) -> str:
    """A number with so many digits, also those that are 0, and all before its point.

    >>> [_significant(value, 4) for value in (4.2, 330.0, 15.8612, 12345.0, 0.0)]
    ['4.200', '330.0', '15.86', '12,345', '0.000']
    """
    size = math.floor(math.log10(abs(float(f"{value:.{n_digits - 1}e}")))) if value else 0
    return f"{value:,.{max(0, n_digits - 1 - size)}f}"


def _ticks(values: Sequence[Any], axis: str) -> tuple[list[float], list[str]]:
    """Places and labels of values that stand in a row: of very many, only some.

    Of many numbers they are round ones, between the values that are next to them.

    >>> _ticks([10, 20, 30], "budget")
    ([0, 1, 2], ['10', '20', '30'])
    >>> places, texts = _ticks([1 + i / 40 for i in range(41)], "taper")
    >>> texts, [round(place, 6) for place in places]
    (['1', '1.2', '1.4', '1.6', '1.8', '2'], [0.0, 8.0, 16.0, 24.0, 32.0, 40.0])
    """
    if len(values) > _MOST_EXACT and are_numbers(values):
        from matplotlib.ticker import LogLocator, MaxNLocator

        low, high = values[0], values[-1]
        is_log = 0 < low < high / MANY_TIMES
        locator = LogLocator(subs=LOG_STEPS) if is_log else MaxNLocator(8, steps=_STEPS)
        found = [float(x) for x in locator.tick_values(low, high) if low <= x <= high]
        return np.interp(found, values, range(len(values))).tolist(), [f"{x:g}" for x in found]
    places: list[float] = list(range(0, len(values), -(-len(values) // _MOST_TICKS)))
    return places, short([values[int(place)] for place in places], axis)
