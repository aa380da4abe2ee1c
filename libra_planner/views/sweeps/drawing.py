"""What figures of sweeps have in common: colours, titles, scales, free places of labels."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from libra_planner.plain_text import visible
from libra_planner.sweeps.columns import column_named
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.results import Results
from libra_planner.views.sweeps.values import cut_apart, degree_words, swept_words

COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#b59f00",
)  # fmt: skip
"""Colours that people with any colour vision tell apart (Okabe and Ito), on light and dark."""
MARKERS = "os^Dv<>P"
LOG_STEPS = (1, 2, 5)
"""Of round numbers on an axis in logarithm."""
_MOST_LETTERS = 40
_LETTER, _MOST_TICK_LINES = 0.62, 3
"""Width of a letter below axes, of its size of type, and lines of a label there."""
_ASIDE = 2.0
"""Inches of a figure that axes leave to what stands beside them."""
_PER_INCH, _BOLD_PER_INCH = 14.2, 10.2
"""Letters of the lines above a figure, and of its title, that stand in an inch."""
_BESIDE = 0.7
"""Inches that short labels take beside a figure."""


def titled(
    results: Results, axes: Any, what: str, more: str = "", room: float | None = None
) -> None:
    """Write above a figure what it shows, of which sweep, and what it leaves out.

    Parameters
    ----------
    results : of the sweep.
    axes : of matplotlib, the title begins at their left.
    what, more : the title, and what stands below it with the name of the sweep.
    room : inches of a line, as :func:`room_of` tells; by default those of the figure without
        short labels at its left.
    """
    name, words = swept_words(results)
    wide = axes.figure.get_size_inches()[0] - _BESIDE if room is None else room
    lines = textwrap.wrap(f"{name}: {words}", int(_PER_INCH * wide))
    lines += textwrap.wrap(more, int(_PER_INCH * wide))
    heading = textwrap.wrap(what, int(_BOLD_PER_INCH * wide))
    axes.set_title(
        "\n".join(heading), loc="left", fontsize=11, fontweight="bold", pad=8 + 11 * len(lines)
    )
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate("\n".join(lines), (0, 1), xytext=(0, 5), fontsize=8, va="bottom", **place)


def room_of(axes: Any) -> tuple[float, float, float]:
    """Width and height of axes, and from their left to the end of the figure; in inches.

    What is drawn later beside the axes is not known yet.
    """
    figure = axes.figure
    figure.draw_without_rendering()  # Places are known once the layout is.
    box = axes.get_window_extent()
    width, height = box.width / figure.dpi, box.height / figure.dpi
    return width, height, figure.get_size_inches()[0] - box.x0 / figure.dpi


def name_across(
    axes: Any, places: Sequence[float], texts: Sequence[str], beside: Sequence[str] = ()
) -> None:
    """Name values that stand in a row below axes: upright only where they have no room to lie.

    Parameters
    ----------
    axes : of matplotlib.
    places, texts : of the values.
    beside : labels at the left of the axes, which take of their width.
    """
    from matplotlib import rcParams

    letter_pt = _LETTER * rcParams["font.size"]
    width_pt = 72 * (axes.figure.get_size_inches()[0] - _ASIDE)
    width_pt -= letter_pt * max(map(len, beside), default=0)
    room_pt = width_pt / max(1, len(texts))
    lying = [broken(text, int(room_pt / letter_pt) - 1) for text in texts]
    fits = all(lying)
    axes.set_xticks(places, lying if fits else texts, rotation=0 if fits else 90)


def broken(text: str, most: int) -> str:
    """A label in up to three lines of at most so many letters; empty where it does not fit.

    >>> broken("SW(8)_[SW(32)_SW(4)]", 14)
    'SW(8)_[SW(32)_\\nSW(4)]'
    >>> broken("taper(spine) == 2", 30), broken("SW(8)_[SW(32)_SW(4)]", 6)
    ('taper(spine) == 2', '')
    """
    lines = [""]
    for piece in re.findall(r"[^_ ]*[_ ]|[^_ ]+", text):
        if len((lines[-1] + piece).rstrip()) > most:
            lines.append("")
        lines[-1] += piece
    lines = [line.rstrip() for line in lines if line]
    fits = len(lines) <= _MOST_TICK_LINES and max(map(len, lines), default=0) <= most
    return "\n".join(lines) if fits else ""


def logarithmic(axes: Any, axis: Any, name: str) -> None:
    """Give an axis, ``x`` or ``y`` by its name, a scale in logarithm with round numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=LOG_STEPS))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all values of an axis are numbers."""
    return all(isinstance(value, int | float) for value in values)


def short(values: Sequence[Any], axis: str) -> list[str]:
    """Values of an axis in few letters each, which still differ."""
    one = column_named(axis)
    texts = (as_in_file(value) if isinstance(value, str) else value for value in values)
    return cut_apart([degree_words(visible(one.cell(text))) for text in texts], _MOST_LETTERS)


# Labels ---------------------------------------------------------------------------------------

LABEL_PT, _HEIGHT_PT = 8, 9.5
"""Size of type of a label, and the height of its line."""
_GAP = 4
"""Between two labels that stand side by side."""
_MARKER = 5
"""Of a marker from its middle, the largest."""
_EDGE = 8
"""Between a label and the frame around it: its ground would paint over that."""
_FAR = (0, 10, 24, 40)
"""How much farther than beside its point a label may stand, nearest first."""
_SURE = 3
"""Labels that a reader looks for: of the fastest, the cheapest and the best per dollar."""


def free_places(
    spots: Sequence[Sequence[float]],
    names: Sequence[str],
    box: Sequence[float],
    others: Any = None,
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Where labels stand beside their points so that none covers another one or a point.

    Parameters
    ----------
    spots : of points, in points of print; those first that have the first choice.
    names : what is written beside each.
    box : left, bottom, right and top of where there is room.
    others : more points, shape (n, 2); the first labels cover them where nothing else is left.

    Yields
    ------
    Number of a point, and how far from it its label begins, right and up; a label that has no
    room has no place.

    Examples
    --------
    >>> list(free_places([(20, 20), (24, 20)], ["a", "b"], (0, 0, 60, 60)))
    [(0, (-2.5, 6)), (1, (6, 3))]
    """
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in spots]
    more = np.empty((0, 2)) if others is None else others
    for i, ((x, y), name) in enumerate(zip(spots, names, strict=True)):
        width = _width(name)
        sides = ((dx, dy, x + dx, y + dy) for dx, dy in _offsets(width, is_sure=i < _SURE))
        boxes = ((dx, dy, (left, low, left + width, low + _HEIGHT_PT))
                 for dx, dy, left, low in sides)  # fmt: skip
        free = [
            (_n_inside(own, more), place, (dx, dy), own)
            for place, (dx, dy, own) in enumerate(boxes)
            if min(own[0] - box[0], own[1] - box[1], box[2] - own[2], box[3] - own[3]) > _EDGE
            if not any(_overlap(own, other) for other in taken)
        ]
        for n_covered, _, offset, own in sorted(free)[:1]:
            if n_covered == 0 or i < _SURE:
                taken.append((own[0] - _GAP, own[1], own[2] + _GAP, own[3]))
                yield i, offset


def _width(name: str) -> float:
    """Points of print that a label takes, to the next tenth.

    >>> _width("row 10373"), _width("SW(8)_[SW(32)_SW(2)], 100")
    (42.6, 112.7)
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    style = FontProperties(size=LABEL_PT)
    width = text_to_path.get_text_width_height_descent(name, style, ismath=False)[0]
    return math.ceil(10 * width) / 10


def _n_inside(box: Sequence[float], spots: Any) -> int:
    """Points that a box covers, or nearly."""
    x, y = spots.T
    left, low, right, high = box[0] - _MARKER, box[1] - _MARKER, box[2] + _MARKER, box[3] + _MARKER
    is_inside = (x > left) & (x < right) & (y > low) & (y < high)
    return int(np.count_nonzero(is_inside))


def _offsets(width: float, *, is_sure: bool) -> Iterator[tuple[float, float]]:
    """Places of a label around its point, best first; far ones for labels that must be there."""
    for far in _FAR if is_sure else _FAR[:2]:
        up, down = 6 + far, -6 - _HEIGHT_PT - far
        yield from ((-width / 2, up), (6 + far, up - 3), (6 + far, -_HEIGHT_PT / 2))
        yield from ((-width / 2, down), (6 + far, down + 3), (-width - 6 - far, up - 3))
        yield from ((-width - 6 - far, -_HEIGHT_PT / 2), (-width - 6 - far, down + 3))


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
