"""Frontier: the fastest design at each cost, the design on screen, any point to load."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.widgets import DataTable, Static

from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import frontier
from libra_planner.tui.widgets.contents import Card, fill
from libra_planner.tui.widgets.frontier_plot import FrontierPlot
from libra_planner.tui.work import run_apart
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s

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
                yield DataTable(cursor_type="row", zebra_stripes=True)
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
        self.begin("frontier", "frontier", call=call, done=self._found)

    def _found(self, points: tuple[FrontierPoint, ...]) -> None:
        self._points, evaluation = points, self.cockpit.evaluation
        labels = self._of.topology.labels if self._of else ()
        table: DataTable[Text] = self.query_one(DataTable)
        rows = []
        for point in points:
            speeds = (format_bandwidth(b) for b in point.bandwidth_bytes_per_s)
            cells = (format_usd(point.cost_usd), format_time(point.step_time_s), *speeds)
            rows.append([cell.removesuffix(" GB/s") for cell in cells])
        fill(table, ("cost", "step time", *labels), rows, str.rjust)
        if evaluation is not None:  # The point whose cost is nearest to that of the design.
            costs = [abs(point.cost_usd - evaluation.cost_usd) for point in points]
            table.move_cursor(row=costs.index(min(costs)))
        self.say("up and down or a click choose a point, Enter loads it; columns in GB/s")
        self._draw()

    def fail(self, error: Exception) -> None:
        self.query_one(DataTable).clear(columns=True)
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
        chosen = min(self.query_one(DataTable).cursor_row, len(pairs) - 1)
        is_log = self._is_log and all(min(pair) > 0 for pair in pairs)
        drawn = (id(self._points), chosen, design, is_log, self.size)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        axes = "log" if is_log else "linear"
        title = Text(f"Step time over cost, {axes} axes: ", no_wrap=True)
        title.append("o", "cyan").append(" frontier  ").append("#", "bold").append(" chosen  ")
        title.append("X", "bold yellow").append(" on screen")
        self.query_one("#frontier-title", Static).update(title, layout=False)
        shown = design if min(design) > 0 else None
        self.query_one(FrontierPlot).show(pairs, max(chosen, 0), shown, is_log=is_log)

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Put the chosen point on screen as the design."""
        if not self.session.current:
            self.cockpit.say("nothing loaded: the plan was edited since")
        elif self._points and self._of is self.session.problem:
            point = self._points[event.cursor_row]
            vector = tuple(gigabytes_per_s(b) for b in point.bandwidth_bytes_per_s)
            self.cockpit.change_bandwidth(vector)
            self.session.came_from(f"frontier point {event.cursor_row + 1}")
            self.cockpit.say("loaded the point as the design; 1 shows it, u takes it back")

    def on_frontier_plot_chosen(self, event: FrontierPlot.Chosen) -> None:
        self.query_one(DataTable).move_cursor(row=event.index)

    def action_toggle_log(self) -> None:
        """Logarithmic axes or linear ones."""
        self._is_log = not self._is_log
        self._draw()
