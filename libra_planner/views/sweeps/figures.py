"""Figures of a sweep by matplotlib: files of them, and the frontier."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import output
from libra_planner.plain_text import visible
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.results import Results
from libra_planner.units import time_unit
from libra_planner.views.sweeps.answers import time_words
from libra_planner.views.sweeps.drawing import (
    COLOURS,
    LABEL_PT,
    MARKERS,
    are_numbers,
    free_places,
    logarithmic,
    short,
    titled,
)
from libra_planner.views.sweeps.over_axes import Work, heat_map, of_words, split, value_line, works
from libra_planner.views.sweeps.points import MANY_TIMES, MOST_LABELS, MOST_RIMS, Points
from libra_planner.views.sweeps.values import in_order

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
_MOST_COLOURS = 8
_HEIGHT, _WORDS = 5.4, 1.2
"""Inches of a picture, and of a sentence in its place."""
_BETWEEN = 0.12
"""Inches above and below each of several pictures."""
_MOST_WORKS = 8
"""Models of which each has a figure of its own."""
_SIZES = (20, 48, 90)
_MANY = 500
"""Designs from which on all points are small."""
_FILLS = ("full", "hollow")
_LETTERS_PER_INCH, _HANDLE = 15, 6
"""Letters of a legend that stand in an inch, and those for which a handle and a gap have room."""


def plot(
    results: Results,
    files: Sequence[str],
    *,
    x: str | None,
    y: str | None,
    answer: Answer | None = None,
    is_whole: bool = False,
) -> None:
    """Write one figure to files.

    Parameters
    ----------
    results : what to show.
    files : paths that end in .svg, .png or .pdf.
    x, y : axes. Neither: time and cost of the designs and their frontier, of each model by
        itself where they are few; x: bandwidths of
        the fastest design at each of its values; both: the least time at each pair of values. As y
        a column of numbers: its best value at each value of x.
    answer : whose designs are drawn, without x and y; by default all of them.
    is_whole : whether those far from the frontier are drawn, too.

    Raises
    ------
    SpecError
        For other file formats, unknown axes, paths that cannot be written, or an answer without
        a time or a cost.
    """
    for file in files:
        if Path(file).suffix not in _DATELESS:
            expected = f"expected a name ending in {', '.join(_DATELESS)}"
            raise SpecError(Fault(f"got {file!r}", expected, "", "", Place("--plot")))
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = panels(results, Figure, x, y, answer, is_whole)[0].figure
        for file in files:
            with output(Path(file)) as image:
                kind = Path(file).suffix
                # The same results give the same bytes: no date inside (C12).
                figure.savefig(image, format=kind[1:], metadata=_DATELESS[kind], dpi=150)


def panels(
    results: Results,
    new_figure: Callable[..., Any],
    x: str | None,
    y: str | None,
    answer: Answer | None = None,
    is_whole: bool = False,
) -> list[Any]:
    """Draw what :func:`plot` writes on a new matplotlib figure; its axes, one for each model."""
    each = _few(works(results, x, y or "") if x else _apart(results, answer))
    heights = [_HEIGHT] * len(each) if x else _heights(Points.of(results, answer), each)
    figure = new_figure(figsize=(9, sum(heights)), layout="constrained")
    if len(each) > 1:  # The legend of one does not read as the next one's title.
        figure.get_layout_engine().set(h_pad=_BETWEEN)
    ratios = {"height_ratios": heights}
    axes = list(figure.subplots(len(each), squeeze=False, gridspec_kw=ratios).flat)
    if not x:
        _frontiers(results, dict(zip(axes, each, strict=True)), answer, is_whole=is_whole)
        return axes
    for one, work in zip(axes, each, strict=True):
        draw(results, one, x, y, answer, work, is_whole)
    return axes


def _heights(points: Points, each: Sequence[Work]) -> list[float]:
    """Inches for each model; few for one without anything to draw beside others."""
    are_drawn = [points.of_work(work).has_optimum for work in each]
    return [_HEIGHT if is_drawn or not any(are_drawn) else _WORDS for is_drawn in are_drawn]


def draw(
    results: Results,
    axes: Any,
    x: str | None,
    y: str | None,
    answer: Answer | None = None,
    work: Work | None = None,
    is_whole: bool = False,
) -> None:
    """Draw what :func:`plot` writes on matplotlib axes; of several models one, ``work``."""
    if not x:
        _frontiers(results, {axes: work or {}}, answer, is_whole=is_whole)
        return
    if work is None:
        [work] = _few(works(results, x, y or ""), 1)
    if y and y not in results.axes:
        value_line(results, axes, x, y, work)
    elif y:
        heat_map(results, axes, x, y, work)
    else:
        split(results, axes, x, work)


def _few(each: Sequence[Work], most: int = _MOST_WORKS) -> Sequence[Work]:
    """What is trained, if there is a figure for each: times of different work do not compare."""
    if len(each) <= most:
        return each
    axes = ", ".join(map(visible, each[0]))
    got, expected = f"got {len(each)} values of {axes}", f"expected {most} at most, a figure each"
    fix = f"write {axes} as an axis of the figure, or give sweep show --plot"
    raise SpecError(Fault(got, expected, fix, "", Place("--x, --y")))


def _apart(results: Results, answer: Answer | None) -> Sequence[Work]:
    """What is trained, for a frontier of each; nothing where there are too many for that."""
    found = Points.of(results, answer).works
    return found if 1 < len(found) <= _MOST_WORKS else [{}]


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


def _looks(points: Points, each: Sequence[Points]) -> tuple[list[_Look], list[str]]:
    """How axes are drawn, and those that find no place: the same in all pictures of a file.

    Parameters
    ----------
    points : all designs.
    each : those of each picture, without the axes that tell pictures apart.
    """
    room = {"colour": math.inf, "marker": len(MARKERS), "size": len(_SIZES), "fill": len(_FILLS)}
    ways, left = points.ways(room, without=[x for x in points.axes if x not in each[0].axes])
    drawn = [one.rows[i] for one in each for i in one.near]
    values = {axis: in_order({row[axis] for row in drawn}) for axis in ways}
    return [_Look(axis, tuple(values[axis]), way) for axis, way in ways.items()], left


def _frontiers(
    results: Results, pictures: Mapping[Any, Work], answer: Answer | None, *, is_whole: bool
) -> None:
    """Draw the frontier of each work on the axes that it has."""
    points = replace(Points.of(results, answer), is_whole=is_whole)
    _need_figures(results, points, answer)
    each = [points.of_work(work) for work in pictures.values()]
    looks = _looks(points, each)
    drawn = [
        (own, axes, _frontier(results, own, axes, work, *looks))
        for own, (axes, work) in zip(each, pictures.items(), strict=True)
    ]
    # Places of points are known once the layout of all pictures is.
    next(iter(pictures)).figure.draw_without_rendering()
    for own, axes, at in drawn:
        if own.has_optimum:
            _labels(own, at, axes)


def _frontier(
    results: Results, points: Points, axes: Any, work: Work, looks: list[_Look], left: list[str]
) -> Any:
    """Draw one frontier; the places of all designs, shape (n, 2)."""
    if not points.has_optimum:
        axes.set_axis_off()
        text = f"no design{of_words(work)} has the figure {time_words(points.time)}"
        text += "" if work else f": {results.statuses}"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
        titled(results, axes, "Nothing to draw")
        return None
    found = [[row[points.cost], row[points.time]] for row in points.rows]
    at = np.array(found, dtype=np.float64).reshape(-1, 2)
    unit_s, unit = time_unit(np.nanmax(at[points.near, 1]))
    at *= [_PER_MILLION, 1 / unit_s]
    _scatter(points, at, looks, axes)
    if unsold := [i for i in points.near if i in points.unsold]:
        axes.scatter(*at[unsold].T, marker="x", s=60, color="#b00020", linewidths=1.5, zorder=2.2)
    for front in points.fronts.values():
        axes.plot(*at[front].T, drawstyle="steps-pre", **_line_style(len(points.near)))
    what = time_words(points.time)
    ylabel = f"{what}, {unit} (down is faster)"
    axes.set(xlabel=f"{points.cost_name}, M$ (left is cheaper)", ylabel=ylabel)
    axes.grid(color="0.9", linewidth=0.5)
    axes.margins(0.08, 0.12)
    _scale(at[points.near], axes)
    heading = f"{what} against {points.cost_name}".capitalize() + of_words(work)
    titled(results, axes, heading, points.far_words)
    _legend(points, looks, left, axes)
    return at


def _line_style(n: int) -> dict[str, Any]:
    """How a frontier is drawn: under few designs; of many over those that are not on it."""
    if n < _MANY:
        return {"color": "0.45", "linewidth": 1, "zorder": 1}
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3, foreground="white")]
    return {"color": "0.1", "linewidth": 1.2, "zorder": 2.5, "path_effects": halo}


def _titled_axis(points: Points, axis: str) -> str:
    """An axis of the sweep with its unit."""
    unit = points.units.get(axis)
    return f"{visible(axis)}, {unit}" if unit else visible(axis)


def _need_figures(results: Results, points: Points, answer: Answer | None) -> None:
    """Refuse an answer that has no time or no cost to draw."""
    results.need(results.cost_column)
    if not (points.time and points.cost) and answer is not None:
        got = f"got the columns {', '.join(map(visible, answer.columns))}"
        expected = f"expected {results.time_column} and {results.cost_column} among them"
        raise SpecError(Fault(got, expected, "", "", Place("--plot")))


def _scale(at: Any, axes: Any) -> None:
    """Logarithms where figures differ by far."""
    for values, axis, name in zip(at.T, (axes.xaxis, axes.yaxis), "xy", strict=True):
        if 0 < np.nanmin(values) < np.nanmax(values) / MANY_TIMES:
            logarithmic(axes, axis, name)
        else:
            axes.ticklabel_format(axis=name, useOffset=False, style="plain")


def _scatter(points: Points, at: Any, looks: list[_Look], axes: Any) -> None:
    """A point for every design: small ones over large ones, those of the frontier over others.

    A dark rim marks the frontier, if it is of few designs; a light one keeps others apart.
    """
    ways = {look.way: look for look in looks}
    has_rims = len(points.labels) <= MOST_RIMS
    colours, scale = _colours(points, ways.get("colour"))
    groups: dict[tuple[int, ...], list[int]] = {}
    for i in points.near:
        places = (
            ways[way].values.index(points.rows[i][ways[way].axis]) if way in ways else 0
            for way in ("marker", "size", "fill")
        )
        groups.setdefault((*places, int(i in points.labels)), []).append(i)
    is_many = len(points.near) >= _MANY
    for (marker, size, fill, is_best), members in sorted(groups.items(), key=_drawn_first):
        own = [colours[i] for i in members]
        style: dict[str, Any] = {"facecolors": "none" if fill else own, "marker": MARKERS[marker]}
        has_rim = is_best and has_rims
        rim: Any = "0.1" if has_rim else own if is_many else "white"
        style |= {"edgecolors": own if fill else rim, "zorder": 2 + (is_best and is_many)}
        width = 1.8 if has_rim and fill else 1 if has_rim or fill else 0.6
        style |= {"linewidths": width, "alpha": 0.75 if is_many and not is_best else 1}
        area = _SIZES[size] if "size" in ways else 9 if is_many else 36
        axes.scatter(*at[members].T, s=area, **style)
    if scale is not None:
        _colour_bar(points, ways["colour"], scale, axes)


def _drawn_first(group: tuple[tuple[int, ...], Any]) -> tuple[int, int]:
    """Order of drawing by marker, size, fill and place: none lies under a larger one."""
    (_, size, _, is_best), _ = group
    return -size, is_best


def _colours(points: Points, look: _Look | None) -> tuple[dict[int, Any], Any]:
    """A colour for each design, and the scale where they are too many to be told apart."""
    if look is None:
        return dict.fromkeys(points.near, COLOURS[0]), None
    places = {i: look.values.index(points.rows[i][look.axis]) for i in points.near}
    if len(look.values) <= _MOST_COLOURS:
        return {i: COLOURS[place] for i, place in places.items()}, None
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    numbers = look.values if are_numbers(look.values) else range(len(look.values))
    scale = ScalarMappable(Normalize(numbers[0], numbers[-1]), mpl.colormaps["viridis"])
    shades = scale.to_rgba(np.array([numbers[place] for place in places.values()]))
    return dict(zip(places, shades, strict=True)), scale


def _colour_bar(points: Points, look: _Look, scale: Any, axes: Any) -> None:
    bar = axes.figure.colorbar(scale, ax=axes, location="right", aspect=30, pad=0.02)
    if not are_numbers(look.values):
        places = range(0, len(look.values), -(-len(look.values) // 12))
        bar.set_ticks(list(places), labels=short([look.values[i] for i in places], look.axis))
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"{_titled_axis(points, look.axis)} (colour)", fontsize=9)


def _legend(points: Points, looks: list[_Look], left: list[str], axes: Any) -> None:
    """A line for every axis of the sweep that says how it is drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    def words(text: str) -> Any:
        return Line2D([], [], linestyle="", marker="", label=text)

    rim: dict[str, Any] = {"marker": "o", "markerfacecolor": "0.8", "markeredgecolor": "0.1"}
    first = [Line2D([], [], color="0.45", linewidth=1, label="frontier", **rim)]
    most = int(_LETTERS_PER_INCH * axes.figure.get_size_inches()[0])
    first += map(words, textwrap.wrap(points.labels_say, most - _HANDLE))
    first += [words(f"{visible(axis)}: not shown") for axis in left]
    if points.unsold:
        first.append(words("x: no such server is priced, no rank"))
    lines = [first]
    for look in looks:
        if look.way != "colour" or len(look.values) <= _MOST_COLOURS:
            lines.append(
                [words(f"{_titled_axis(points, look.axis)} ({look.way}):"), *_handles(look)]
            )
    for i, line in enumerate(part for one in lines for part in _lines_of(one, most)):
        below = ScaledTranslation(0, -(38 + 16 * i) / 72, axes.figure.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0)}
        place["bbox_transform"] = axes.transAxes + below
        style: dict[str, Any] = {"fontsize": 8, "frameon": False, "borderpad": 0}
        style |= {"columnspacing": 1.2, "handletextpad": 0.3, "handlelength": 1.4}
        legend = axes.legend(handles=line, ncols=len(line), **place, **style)
        axes.add_artist(legend)  # Or the next one takes its place.
        legend.set_clip_on(False)


def _lines_of(handles: Sequence[Any], most: int) -> Iterator[list[Any]]:
    """Handles of a legend in lines of at most so many letters, of which each takes some more."""
    line: list[Any] = []
    n = 0
    for handle in handles:
        n_own = len(handle.get_label()) + _HANDLE
        if line and n + n_own > most:
            yield line
            line, n = [], 0
        line.append(handle)
        n += n_own
    yield line


def _handles(look: _Look) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    for i, label in enumerate(short(look.values, look.axis)):
        style: dict[str, Any] = {"marker": "o", "color": "0.4", "markersize": 6}
        if look.way == "colour":
            style["color"] = COLOURS[i]
        elif look.way == "marker":
            style["marker"] = MARKERS[i]
        elif look.way == "size":
            style["markersize"] = math.sqrt(_SIZES[i])
        elif i:
            style["markerfacecolor"] = "none"
        yield Line2D([], [], linestyle="", label=label, **style)


def _labels(points: Points, at: Any, axes: Any) -> None:
    """Names of the designs on the frontier, none on top of another."""
    front, names = list(points.labels)[:MOST_LABELS], list(points.labels.values())[:MOST_LABELS]
    per_pixel = 72 / axes.figure.dpi
    spots = (axes.transData.transform(at[front]) * per_pixel).tolist()
    others = axes.transData.transform(at[points.near]) * per_pixel
    box = axes.get_window_extent().extents * per_pixel
    for i, offset in free_places(spots, names, box.tolist(), others[np.isfinite(others).all(1)]):
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": LABEL_PT, "zorder": 5}
        style |= {"va": "bottom"}
        style["bbox"] = {"facecolor": "white", "alpha": 0.95, "edgecolor": "none", "pad": 0.8}
        style["arrowprops"] = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6}
        axes.annotate(names[i], at[front[i]], xytext=offset, **style).set_in_layout(False)
