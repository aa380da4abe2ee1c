"""Step time over cost: the frontier, the chosen point, the design on screen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual_plot import AxisFormatter, HiResMode, PlotWidget

from libra_planner.units import format_time, format_usd

_MARGIN = 0.06
_HALF_LABEL = 3
"""Cells of an amount beyond the middle of it."""
_POINT, _CHOSEN, _DESIGN = "o", "#", "X"
_IDLE_ZEROS = re.compile(r"\.?0+(?=\D*$)")


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
        return [self.shown(10.0**tick if self.is_log else tick) for tick in ticks]


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


class FrontierPlot(PlotWidget):
    """The plot; arrows belong to the table beside it, a click chooses the nearest point."""

    BINDINGS: ClassVar[list[BindingType]] = []
    can_focus = False

    class Chosen(Message):
        """A point was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__(id="frontier-plot", allow_pan_and_zoom=False)
        self._xy = np.zeros((0, 2))

    def on_mount(self) -> None:
        self.margin_top, self.margin_bottom = 1, 2

    def show(
        self,
        points: Sequence[tuple[float, float]],
        chosen: int,
        design: tuple[float, float] | None,
        *,
        is_log: bool,
    ) -> None:
        """Draw points of (cost in USD, step time in s)."""
        transform = np.log10 if is_log else np.asarray
        self._xy = transform(np.array(points, dtype=float).reshape(-1, 2))
        self.clear()
        across, down = max(self.size.width // 14, 2), max(self.size.height // 3, 2)
        room = min(_HALF_LABEL / max(self.size.width - self.margin_left - 2, 1), 0.5)
        self.set_x_formatter(UnitFormatter(_short_usd, across, is_log, room))
        self.set_y_formatter(UnitFormatter(_short_time, down, is_log))
        drawn = self._xy
        if design is not None:
            drawn = np.vstack([drawn, transform(np.array(design))])
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        margin = np.maximum((high - low) * _MARGIN, 1e-6 + 1e-3 * np.abs(high))
        (left, bottom), (right, top) = (low - margin).tolist(), (high + margin).tolist()
        self.set_xlimits(left, right)
        self.set_ylimits(bottom, top)
        x, y = self._xy.T
        self.plot(x, y, line_style="cyan", hires_mode=HiResMode.BRAILLE)
        self.scatter(x, y, marker=_POINT, marker_style="cyan")
        if len(points):
            self.scatter(x[[chosen]], y[[chosen]], marker=_CHOSEN, marker_style="bold")
        if design is not None:
            self.scatter(drawn[-1:, 0], drawn[-1:, 1], marker=_DESIGN, marker_style="bold yellow")

    def on_click(self, event: Click) -> None:
        if not len(self._xy):
            return
        canvas = self.query_one("#plot")
        offset = event.screen_offset - canvas.region.offset
        x, y = self.get_coordinate_from_pixel(offset.x, offset.y)
        size = np.maximum(np.ptp(self._xy, axis=0), 1e-12)
        distance = np.linalg.norm((self._xy - [x, y]) / size, axis=1)
        self.post_message(self.Chosen(int(distance.argmin())))


def _short_usd(usd: float) -> str:
    """An amount without the zeros that a tick has no use for.

    >>> _short_usd(10e6), _short_usd(1.5e6), _short_usd(100), _short_usd(0)
    ('$10M', '$1.5M', '$100', '$0')
    """
    return _IDLE_ZEROS.sub("", format_usd(usd), count=1)


def _short_time(seconds: float) -> str:
    """A time without the zeros that a tick has no use for.

    >>> _short_time(1.5), _short_time(0.1), _short_time(20)
    ('1.5 s', '100 ms', '20 s')
    """
    return _IDLE_ZEROS.sub("", format_time(seconds), count=1)
