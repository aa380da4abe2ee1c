"""Points of two figures as a plot: axes in units, a click chooses the nearest point."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.widgets import Static
from textual_plot import AxisFormatter, HiResMode, PlotWidget

from libra_planner.units import format_time, format_usd

_MARGIN = 0.06
_HALF_LABEL = 3
"""Cells of an amount beyond the middle of it."""
POINT, CHOSEN, DESIGN = "o", "#", "X"
"""Marks of a point, of the one that is chosen, and of the design on screen."""
_OTHER = "·"
_IDLE_ZEROS = re.compile(r"(\.\d*?)0+(?=[^\d.]*$)")

Ticks = tuple[Callable[[float], str], Callable[[float], str]]
"""Numbers of the two axes for people."""


@dataclass(frozen=True)
class UnitFormatter(AxisFormatter):
    """Round ticks of a quantity, on an axis of the quantity or of its decimal logarithm.

    Parameters
    ----------
    shown : a tick in words.
    most_ticks : that there is room for.
    room : fraction of the axis that has no ticks at its end, where their labels would be cut.
    """

    shown: Callable[[float], str]
    most_ticks: int
    is_log: bool
    room: float = 0.0

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        max_ -= self.room * (max_ - min_)
        max_ticks = min(max(max_ticks, 12), self.most_ticks)
        if not self.is_log:
            return _round_ticks(min_, max_, max_ticks)
        low, high = 10.0**min_, 10.0**max_
        powers = range(math.floor(min_), math.ceil(max_) + 1)
        for leads in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
            found = [lead * 10.0**p for p in powers for lead in leads]
            inside = [x for x in found if low <= x <= high]
            if len(inside) <= max_ticks:
                break
        if len(inside) < 2:  # Less than an octave: as round as a linear axis.
            inside = [x for x in _round_ticks(low, high, max_ticks) if x > 0]
        return [math.log10(x) for x in inside]

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        return [short(self.shown(10.0**tick if self.is_log else tick)) for tick in ticks]


def _round_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten.

    >>> _round_ticks(0.72, 1.9, 5)
    [1.0, 1.5]
    """
    span = high - low
    if not span > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / max(most, 1)))
    step = next(power * lead for lead in (1, 2, 5, 10) if span / (power * lead) <= most)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def short(text: str) -> str:
    """A number without the zeros that a tick has no use for.

    >>> short("$10.00M"), short("1.500 s"), short("100"), short("1.0e-10")
    ('$10M', '1.5 s', '100', '1.0e-10')
    """
    return _IDLE_ZEROS.sub(lambda found: found[1] if len(found[1]) > 1 else "", text, count=1)


class PointPlot(PlotWidget):
    """The plot; arrows belong to the table beside it, a click chooses the nearest point.

    Parameters
    ----------
    name : of the widget.
    hint : said in its place while there are no points.
    is_joined : whether a line goes through the points.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    can_focus = False

    @dataclass
    class Chosen(Message):
        """A point was clicked."""

        index: int

    def __init__(self, name: str, hint: str = "", *, is_joined: bool = False) -> None:
        super().__init__(id=name, allow_pan_and_zoom=False, classes="-empty")
        self._is_joined, self._hint = is_joined, hint
        self._xy = np.zeros((0, 2))

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(Text(self._hint, "italic"), id="plot-empty")

    def say(self, text: str) -> None:
        """Say why there are no points, and draw no axes of nothing."""
        self._xy = np.zeros((0, 2))
        self.clear()
        self.add_class("-empty")
        self.query_one("#plot-empty", Static).update(Text(text, "italic"))

    def _show_axes(self) -> None:
        self.set_class(not len(self._xy), "-empty")

    def on_mount(self) -> None:
        self.margin_top, self.margin_bottom = 1, 2

    def show(
        self,
        points: Sequence[tuple[float, float]],
        chosen: int,
        design: tuple[float, float] | None,
        *,
        is_log: bool,
        ticks: Ticks = (format_usd, format_time),
        others: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Draw points, of cost in USD and step time in s where nothing else is said.

        Parameters
        ----------
        points : a point that has no place is not finite.
        chosen : index of one; -1 for none.
        design : where the design on screen is, if anywhere.
        is_log : whether the axes are logarithmic; then all numbers are above 0.
        ticks : numbers of the axes for people.
        others : points that cannot be chosen, drawn faintly.
        """
        transform = np.log10 if is_log else np.asarray
        found = [design] if design is not None else []
        arrays = [np.array(one, dtype=float).reshape(-1, 2) for one in (points, found, others)]
        self._xy, place, rest = (transform(one) for one in arrays)
        self.clear()
        drawn = np.vstack([self._xy, place, rest])
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        if not len(drawn):
            self.say("no point has both figures")
            return
        self.call_after_refresh(self._show_axes)  # Until then axes of nothing are under the words.
        self._set_axes(drawn, ticks, is_log=is_log)
        x, y = self._xy.T
        self.scatter(rest[:, 0], rest[:, 1], marker=_OTHER, marker_style="dim")
        if self._is_joined:
            self.plot(x, y, line_style="cyan", hires_mode=HiResMode.BRAILLE)
        self.scatter(x, y, marker=POINT, marker_style="cyan")
        if 0 <= chosen < len(self._xy):
            self.scatter(x[[chosen]], y[[chosen]], marker=CHOSEN, marker_style="bold")
        self.scatter(place[:, 0], place[:, 1], marker=DESIGN, marker_style="bold yellow")

    def _set_axes(self, drawn: np.ndarray, ticks: Ticks, *, is_log: bool) -> None:
        """Limits around all points, and ticks that there is room for."""
        across, down = max(self.size.width // 14, 2), max(self.size.height // 3, 2)
        room = min(_HALF_LABEL / max(self.size.width - self.margin_left - 2, 1), 0.5)
        self.set_x_formatter(UnitFormatter(ticks[0], across, is_log, room))
        self.set_y_formatter(UnitFormatter(ticks[1], down, is_log))
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        margin = np.maximum((high - low) * _MARGIN, 1e-6 + 1e-3 * np.abs(high))
        (left, bottom), (right, top) = (low - margin).tolist(), (high + margin).tolist()
        self.set_xlimits(left, right)
        self.set_ylimits(bottom, top)

    def on_click(self, event: Click) -> None:
        known = np.flatnonzero(np.isfinite(self._xy).all(axis=1))
        if not len(known):
            return
        canvas = self.query_one("#plot")
        offset = event.screen_offset - canvas.region.offset
        x, y = self.get_coordinate_from_pixel(offset.x, offset.y)
        size = np.maximum(np.ptp(self._xy[known], axis=0), 1e-12)
        distance = np.linalg.norm((self._xy[known] - [x, y]) / size, axis=1)
        self.post_message(self.Chosen(int(known[distance.argmin()])))
