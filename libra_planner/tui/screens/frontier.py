"""Frontier: the fastest design at each cost, the design on screen, any point to load."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Click, Resize
from textual.message import Message
from textual.widgets import DataTable, Static
from textual_plot import AxisFormatter, HiResMode, PlotWidget

from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import frontier
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card
from libra_planner.tui.work import run_apart
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s

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
    """The plot; arrows belong to the table beside it, a click chooses the nearest point.

    Parameters
    ----------
    name : of the widget.
    is_joined : whether a line goes through the points.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    can_focus = False

    @dataclass
    class Chosen(Message):
        """A point was clicked."""

        index: int

    def __init__(self, name: str = "frontier-plot", *, is_joined: bool = True) -> None:
        super().__init__(id=name, allow_pan_and_zoom=False)
        self._is_joined = is_joined
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
        if self._is_joined:
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


if TYPE_CHECKING:
    from libra_planner.optimizer.design import FrontierPoint
    from libra_planner.problem import Problem

N_POINTS = 25


class FrontierPane(Pane):
    """The third screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "toggle_log", "Log axes", show=True),
        Binding("r", "compute", "Again", show=True),
    ]
    _points: tuple[FrontierPoint, ...] = ()
    _of: Problem | None = None
    _is_log = True
    _drawn: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        with Container(id="frontier-split"):
            with Vertical(id="frontier-left"):
                yield Static(id="frontier-title")
                yield FrontierPlot()
            with Vertical(id="frontier-list"):
                yield RowTable()
                yield Card(id="frontier-note")

    def show_session(self) -> None:
        stale = self._of is not self.session.problem
        if stale and self.session.current:
            self.action_compute()
        elif not stale:
            self._draw()
        if not self.session.current and self._points:
            self.say("the frontier of the plan before this edit; the plan has faults")

    def action_compute(self) -> None:
        """Find the frontier of the plan as it stands."""
        problem = self.session.problem
        if problem is None or not self.session.current:
            self.say("no frontier: the plan has faults")
            return
        self._of, self._points, self._drawn = problem, (), ()
        self.say("finding the frontier ...")
        call = partial(run_apart, partial(frontier, problem, N_POINTS))
        self.begin("frontier", "frontier", call=call, done=self._show_points)

    def _show_points(self, points: tuple[FrontierPoint, ...]) -> None:
        self._points, evaluation = points, self.cockpit.evaluation
        labels = self._of.topology.labels if self._of else ()
        table = self.query_one(RowTable)
        rows = []
        for point in points:
            speeds = (format_bandwidth(b) for b in point.bandwidth_bytes_per_s)
            cells = (format_usd(point.cost_usd), format_time(point.step_time_s), *speeds)
            rows.append([cell.removesuffix(" GB/s") for cell in cells])
        keys = [(x.cost_usd, x.step_time_s, *x.bandwidth_bytes_per_s) for x in points]
        table.show(("cost", "step time", *labels), rows, keys, str.rjust)
        if evaluation is not None:  # The point whose cost is nearest to that of the design.
            costs = [abs(point.cost_usd - evaluation.cost_usd) for point in points]
            table.choose(costs.index(min(costs)))
        self.say("up and down or a click choose a point, Enter loads it; columns in GB/s")
        self._draw()

    def fail(self, error: Exception) -> None:
        self.query_one(RowTable).show((), ())
        self.query_one(FrontierPlot).clear()
        super().fail(error)

    def say(self, text: str) -> None:
        self.query_one("#frontier-note", Card).show(Text(text, "italic"))

    def _draw(self) -> None:
        if not self._points or not self.size:  # Unseen: the resize that shows it draws it.
            return
        evaluation = self.cockpit.evaluation
        design = (evaluation.cost_usd, evaluation.step_time_s) if evaluation else (0.0, 0.0)
        pairs = [(point.cost_usd, point.step_time_s) for point in self._points]
        chosen = min(self.query_one(RowTable).chosen, len(pairs) - 1)
        is_log = self._is_log and all(min(pair) > 0 for pair in pairs)
        drawn = (id(self._points), chosen, design, is_log, self.size)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        axes = "log axes" if is_log else "linear axes"
        title = Text(f"Step time over cost, {axes}: ")
        title.append("o", "cyan").append(" frontier  ").append("#", "bold").append(" chosen  ")
        title.append("X", "bold yellow").append(" on screen")
        self.query_one("#frontier-title", Static).update(title)
        shown = design if min(design) > 0 else None
        self.query_one(FrontierPlot).show(pairs, max(chosen, 0), shown, is_log=is_log)

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Put the chosen point on screen as the design."""
        if not self.session.current:
            self.cockpit.say("nothing loaded: the plan was edited since")
        elif self._points and self._of is self.session.problem:
            chosen = self.query_one(RowTable).chosen
            point = self._points[chosen]
            vector = tuple(gigabytes_per_s(b) for b in point.bandwidth_bytes_per_s)
            self.cockpit.change_bandwidth(vector)
            self.session.came_from(f"frontier point {chosen + 1}")
            self.cockpit.say("loaded the point as the design; 1 shows it, u takes it back")

    def on_frontier_plot_chosen(self, event: FrontierPlot.Chosen) -> None:
        self.query_one(RowTable).choose(event.index)

    def action_toggle_log(self) -> None:
        """Logarithmic axes or linear ones."""
        self._is_log = not self._is_log
        self._draw()
