"""Figures of a sweep by matplotlib: frontier, split of bandwidth, map of the least time."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.files import output
from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import column_named
from libra_planner.sweeps.results import Results
from libra_planner.units import time_unit
from libra_planner.views.sweeps.answers import cost_words, time_words
from libra_planner.views.sweeps.points import (
    MANY_TIMES,
    MOST_LABELS,
    MOST_RIMS,
    Points,
    in_order,
    swept_words,
)

_DATELESS: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
"""Formats, and what keeps the date out of them."""
_SETTINGS: Any = {
    "svg.hashsalt": "libra-planner",
    "svg.fonttype": "none",
    "text.parse_math": False,  # A $ in a name is a $.
    "text.usetex": False,
}
_PER_MILLION = 1e-6
_MOST_TICKS = 40
_MOST_LETTERS = 40
_MOST_COLOURS = 8
_MOST_CELLS = 120
"""Cells of a map up to which each has its figure."""

COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#b59f00",
)  # fmt: skip
"""Colours that people with any colour vision tell apart (Okabe and Ito), on light and dark."""
_MARKERS = "os^Dv<>P"
_SIZES = (14, 36, 70)
_MANY = 500
"""Designs from which on all points are small."""
_FILLS = ("full", "hollow")


def plot(results: Results, files: Sequence[str], *, x: str | None, y: str | None) -> None:
    """Write one figure to files.

    Parameters
    ----------
    results : what to show.
    files : paths that end in .svg, .png or .pdf.
    x, y : axes. Neither: time and cost of all designs and their frontier; x: bandwidths of
        the fastest design at each of its values; both: the least time at each pair of values.

    Raises
    ------
    SpecError
        For other file formats, unknown axes, or paths that cannot be written.
    """
    for file in files:
        if Path(file).suffix not in _DATELESS:
            expected = f"expected a name ending in {', '.join(_DATELESS)}"
            raise SpecError(Fault(f"got {file!r}", expected, "", "", Place("--plot")))
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(9, 5.4), layout="constrained")
        draw(results, figure.add_subplot(), x, y)
        for file in files:
            with output(Path(file)) as image:
                kind = Path(file).suffix
                # The same results give the same bytes: no date inside (C12).
                figure.savefig(image, format=kind[1:], metadata=_DATELESS[kind], dpi=150)


def draw(results: Results, axes: Any, x: str | None, y: str | None) -> None:
    """Draw what :func:`plot` writes on matplotlib axes."""
    if x and y:
        _heat_map(results, axes, x, y)
    elif x:
        _split(results, axes, x)
    else:
        _frontier(results, axes)


def _title(results: Results, axes: Any, what: str) -> None:
    name, words = swept_words(results)
    lines = textwrap.wrap(f"{name}: {words}", 118)
    if lines[2:]:
        lines = [lines[0], f"{lines[1][:114]} ..."]
    heading = textwrap.wrap(what, 84)
    axes.set_title(
        "\n".join(heading), loc="left", fontsize=11, fontweight="bold", pad=8 + 11 * len(lines)
    )
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate("\n".join(lines), (0, 1), xytext=(0, 5), fontsize=8, va="bottom", **place)


# The frontier -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """How one axis of the sweep is drawn.

    Parameters
    ----------
    axis : of the sweep.
    values : its values, in order.
    way : ``colour``, ``marker``, ``size`` or ``fill``.
    """

    axis: str
    values: tuple[Any, ...]
    way: str


def _looks(points: Points) -> tuple[list[_Look], list[str]]:
    """How axes are drawn, and those that find no place."""
    room = {"colour": math.inf, "marker": len(_MARKERS), "size": len(_SIZES), "fill": len(_FILLS)}
    found, left = [], []
    for axis in points.independent():
        values = in_order({row[axis] for row in points.rows})
        way = next((way for way, most in room.items() if len(values) <= most), None)
        if way is None:
            left.append(axis)
            continue
        del room[way]
        found.append(_Look(axis, tuple(values), way))
    return found, left


def _frontier(results: Results, axes: Any) -> None:
    points = Points.of(results)
    results.need(results.cost_column)
    looks, left = _looks(points)
    found = [[row[points.cost], row[points.time]] for row in points.rows]
    if not points.has_optimum:
        axes.set_axis_off()
        text = f"no design has the figure {time_words(points.time)}: {results.statuses}"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
        _title(results, axes, "Nothing to draw")
        return
    largest = max((row[points.time] or 0 for row in points.rows), default=0)
    unit_s, unit = time_unit(largest)
    at = np.array(found, dtype=np.float64).reshape(-1, 2) * [_PER_MILLION, 1 / unit_s]
    _scatter(points, at, looks, axes)
    for front in points.fronts.values():
        style: dict[str, Any] = {"color": "0.45", "linewidth": 1, "zorder": 1}
        axes.plot(*at[front].T, drawstyle="steps-pre", **style)
    what = time_words(points.time)
    ylabel = f"{what}, {unit} (down is faster)"
    axes.set(xlabel=f"{cost_words(points.cost)}, M$ (left is cheaper)", ylabel=ylabel)
    axes.grid(color="0.9", linewidth=0.5)
    axes.margins(0.08)
    _scale(at, axes)
    _title(results, axes, f"{what} against {cost_words(points.cost)}".capitalize())
    _legend(points, looks, left, axes)
    _labels(points, at, axes)


def _scale(at: Any, axes: Any) -> None:
    """Logarithms where figures differ by far."""
    for values, axis, name in zip(at.T, (axes.xaxis, axes.yaxis), "xy", strict=True):
        if 0 < np.nanmin(values) < np.nanmax(values) / MANY_TIMES:
            axes.set(**{f"{name}scale": "log"})
            axis.set_major_formatter("{x:g}")
        else:
            axes.ticklabel_format(axis=name, useOffset=False, style="plain")


def _scatter(points: Points, at: Any, looks: list[_Look], axes: Any) -> None:
    """A point for every design, with a dark rim on the frontier."""
    ways = {look.way: look for look in looks}
    rims = points.labels if len(points.labels) <= MOST_RIMS else {}
    colours, scale = _colours(points, ways.get("colour"))
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(points.rows):
        places = (
            ways[way].values.index(row[ways[way].axis]) if way in ways else 0
            for way in ("marker", "size", "fill")
        )
        groups.setdefault((*places, int(i in rims)), []).append(i)
    for (marker, size, fill, is_best), members in sorted(groups.items(), key=lambda one: one[0][3]):
        own = [colours[i] for i in members]
        style: dict[str, Any] = {"facecolors": "none" if fill else own, "marker": _MARKERS[marker]}
        style |= {"edgecolors": "0.1" if is_best and not fill else own, "zorder": 2 + is_best}
        style |= {"linewidths": 1.8 if is_best and fill else 1, "alpha": 1 if is_best else 0.75}
        area = _SIZES[size] if "size" in ways else 36 if len(points.rows) < _MANY else 9
        axes.scatter(*at[members].T, s=area, **style)
    if scale is not None:
        _colour_bar(ways["colour"], scale, axes)


def _colours(points: Points, look: _Look | None) -> tuple[list[Any], Any]:
    """A colour for each design, and the scale where they are too many to be told apart."""
    if look is None:
        return [COLOURS[0]] * len(points.rows), None
    places = [look.values.index(row[look.axis]) for row in points.rows]
    if len(look.values) <= _MOST_COLOURS:
        return [COLOURS[place] for place in places], None
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    numbers = look.values if _are_numbers(look) else range(len(look.values))
    scale = ScalarMappable(Normalize(numbers[0], numbers[-1]), mpl.colormaps["viridis"])
    return list(scale.to_rgba(np.array([numbers[place] for place in places]))), scale


def _are_numbers(look: _Look) -> bool:
    return all(isinstance(value, int | float) for value in look.values)


def _colour_bar(look: _Look, scale: Any, axes: Any) -> None:
    bar = axes.figure.colorbar(scale, ax=axes, location="right", aspect=30, pad=0.02)
    if not _are_numbers(look):
        places = range(0, len(look.values), -(-len(look.values) // 12))
        bar.set_ticks(list(places), labels=[_short(look.values[i], look.axis) for i in places])
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"{visible(look.axis)} (colour)", fontsize=9)


def _legend(points: Points, looks: list[_Look], left: list[str], axes: Any) -> None:
    """A line for every axis of the sweep that says how it is drawn."""
    from matplotlib.lines import Line2D

    def words(text: str) -> Any:
        return Line2D([], [], linestyle="", marker="", label=text)

    rim: dict[str, Any] = {"marker": "o", "markerfacecolor": "0.8", "markeredgecolor": "0.1"}
    first = [Line2D([], [], color="0.45", linewidth=1, label="frontier", **rim)]
    first += [words(f"labels: {points.labels_say}")] if points.labels else []
    first += [words(f"{visible(axis)}: not shown") for axis in left]
    lines = [first]
    for look in looks:
        if look.way != "colour" or len(look.values) <= _MOST_COLOURS:
            lines.append([words(f"{visible(look.axis)} ({look.way}):"), *_handles(look)])
    for i, line in enumerate(lines):
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, -0.12 - 0.055 * i)}
        style: dict[str, Any] = {"fontsize": 8, "frameon": False, "borderpad": 0}
        style |= {"columnspacing": 1.2, "handletextpad": 0.3, "handlelength": 1.4}
        legend = axes.legend(handles=line, ncols=len(line), **place, **style)
        axes.add_artist(legend)  # Or the next one takes its place.
        legend.set_clip_on(False)


def _handles(look: _Look) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    for i, value in enumerate(look.values):
        style: dict[str, Any] = {"marker": "o", "color": "0.4", "markersize": 6}
        if look.way == "colour":
            style["color"] = COLOURS[i]
        elif look.way == "marker":
            style["marker"] = _MARKERS[i]
        elif look.way == "size":
            style["markersize"] = math.sqrt(_SIZES[i])
        elif i:
            style["markerfacecolor"] = "none"
        yield Line2D([], [], linestyle="", label=_short(value, look.axis), **style)


def _labels(points: Points, at: Any, axes: Any) -> None:
    """Names of the designs on the frontier, none on top of another."""
    front, names = list(points.labels)[:MOST_LABELS], list(points.labels.values())[:MOST_LABELS]
    figure = axes.figure
    figure.draw_without_rendering()  # Places of points are known once the layout is.
    per_pixel = 72 / figure.dpi
    spots = (axes.transData.transform(at[front]) * per_pixel).tolist()
    box = axes.get_window_extent().extents * per_pixel
    for i, offset in free_places(spots, names, box.tolist()):
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "zorder": 4}
        style["bbox"] = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.2}
        axes.annotate(names[i], at[front[i]], xytext=offset, **style).set_in_layout(False)


_WIDTH_PT, _HEIGHT_PT = 4.6, 9.5
"""Of a letter of a label and of its line."""


def free_places(
    spots: Sequence[Sequence[float]], names: Sequence[str], box: Sequence[float]
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Where labels stand beside their points so that none covers another one or a point.

    Parameters
    ----------
    spots : of points, in points of print; those first that have the first choice.
    names : what is written beside each.
    box : left, bottom, right and top of where there is room.

    Yields
    ------
    Number of a point, and how far from it its label begins, right and up; a label that has no
    room has no place.

    Examples
    --------
    >>> list(free_places([(20, 20), (24, 20)], ["a", "b"], (0, 0, 50, 50)))
    [(0, (-2.3, 6)), (1, (6, 3))]
    """
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in spots]
    for i, ((x, y), name) in enumerate(zip(spots, names, strict=True)):
        width = _WIDTH_PT * len(name)
        for dx, dy in _offsets(width):
            own = (x + dx, y + dy, x + dx + width, y + dy + _HEIGHT_PT)
            inside = own[0] > box[0] and own[1] > box[1] and own[2] < box[2] and own[3] < box[3]
            if inside and not any(_overlap(own, other) for other in taken):
                taken.append(own)
                yield i, (dx, dy)
                break


def _offsets(width: float) -> Iterator[tuple[float, float]]:
    """Places of a label around its point, best first."""
    for far in (0, 10):
        up, down = 6 + far, -6 - _HEIGHT_PT - far
        yield from ((-width / 2, up), (6 + far, up - 3), (6 + far, -_HEIGHT_PT / 2))
        yield from ((-width / 2, down), (6 + far, down + 3), (-width - 6 - far, up - 3))
        yield from ((-width - 6 - far, -_HEIGHT_PT / 2), (-width - 6 - far, down + 3))


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# Over axes --------------------------------------------------------------------------------------


def _fastest(results: Results, names: Sequence[str], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Columns of the fastest design at each combination of the values of some axes."""
    for name in names:
        if name not in results.axes:
            expected, fix = "expected an axis of the sweep", closest(name, results.axes)
            raise SpecError(Fault(f"got {name!r}", expected, fix, "", Place("--x, --y")))
    return results.fastest(names, wanted).dicts()


def _split(results: Results, axes: Any, x: str) -> None:
    labels = [name for name in results.columns if name.startswith("bandwidth_dim")]
    results.need("bandwidth_dim1_GBps")
    rows = _fastest(results, [x], labels)
    values = [row[x] for row in rows]
    heights = np.array([[row[label] or 0.0 for label in labels] for row in rows], dtype=np.float64)
    names = [label.split("_")[1] for label in labels]
    if all(isinstance(value, int | float) for value in values):
        axes.stackplot(values, heights.T, labels=names, colors=COLOURS)
    else:
        _bars(heights, names, axes)
        axes.set_xticks(*_ticks(values, x), rotation=90)
    axes.set(xlabel=visible(x), ylabel="bandwidth of the fastest design, GB/s per NPU")
    axes.margins(x=0)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
    axes.legend(title="dimension", fontsize=8, title_fontsize=8, reverse=True, **place)
    _title(results, axes, f"Bandwidth of the fastest design by {visible(x)}{_over(results, x)}")


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


def _heat_map(results: Results, axes: Any, x: str, y: str) -> None:
    time = results.time_column
    rows = _fastest(results, [x, y], [time])
    across, up = (in_order({row[name] for row in rows}) for name in (x, y))
    grid = np.full((len(up), len(across)), np.nan)
    for row in rows:
        grid[up.index(row[y]), across.index(row[x])] = row[time]
    unit_s, unit = time_unit(np.nanmax(grid, initial=0))
    grid /= unit_s
    image = axes.imshow(grid, origin="lower", aspect="auto")
    axes.set_xticks(*_ticks(across, x), rotation=0 if len(across) <= 12 and _few(across, x) else 90)
    axes.set_yticks(*_ticks(up, y))
    axes.set(xlabel=visible(x), ylabel=visible(y))
    what = f"least {time_words(time)}"
    axes.figure.colorbar(image, label=f"{what}, {unit}")
    over = f"by {visible(x)} and {visible(y)}{_over(results, x, y)}"
    _title(results, axes, f"{what.capitalize()}, {unit}, {over}")
    if grid.size <= _MOST_CELLS:
        _figures_of(grid, axes)


def _figures_of(grid: Any, axes: Any) -> None:
    """The figure of each cell of a map, in a colour that is read on it."""
    low, high = np.nanmin(grid), np.nanmax(grid)
    for (j, i), value in np.ndenumerate(grid):
        if np.isfinite(value):
            is_bright = high > low and (value - low) / (high - low) > 0.6
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
            axes.text(i, j, f"{value:.4g}", color="black" if is_bright else "white", **style)


def _few(values: Sequence[Any], axis: str) -> bool:
    """Whether labels stand side by side."""
    return sum(len(_short(value, axis)) + 1 for value in values) < 80


def _ticks(values: Sequence[Any], axis: str) -> tuple[list[int], list[str]]:
    """Places and labels of values that stand in a row: of very many, only some.

    >>> _ticks([10, 20, 30], "budget")
    ([0, 1, 2], ['10', '20', '30'])
    """
    places = list(range(0, len(values), -(-len(values) // _MOST_TICKS)))
    return places, [_short(values[place], axis) for place in places]


def _short(value: Any, axis: str) -> str:
    text = visible(column_named(axis).cell(value)) if value is not None else "-"
    return f"{text[: _MOST_LETTERS - 3]}..." if text[_MOST_LETTERS:] else text
