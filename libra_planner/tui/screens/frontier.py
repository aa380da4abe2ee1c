"""Frontier: the fastest design at each cost, the design on screen, any point to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.widgets import DataTable, Static

from libra_planner.tui.pictures.plot import CHOSEN, DESIGN, POINT, PointPlot
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import Frontier
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card, Notes
from libra_planner.units import gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.views.cells import Table

_HINT = "up and down or a click choose a point, Enter loads it; columns in GB/s"
_STAR = "; * has the least step time x cost"
_GBPS = "\nGB/s"
"""End of the headings of bandwidths: on screen the line below the table says it once."""


def _columns(found: Frontier, shown: Table) -> tuple[Any, ...]:
    """Headings, rows and their keys of what ``pareto`` prints, and which columns go first."""
    texts = [[cell.shown for cell in row] for row in shown.rows]
    kept = [i for i in range(len(shown.headings)) if any(row[i] for row in texts)]
    headings = [shown.headings[i] for i in kept]
    speeds = [name for name in headings if name.endswith(_GBPS)]
    keys = []
    for i, one in enumerate(found.points):
        known = dict(zip(speeds, one.bandwidth_bytes_per_s.tolist(), strict=True)) | {
            "step time": one.step_time_s,
            "vs\nfastest": one.step_time_s,
            "step time\nx cost": one.step_time_s * one.cost_usd,
        }
        keys.append([known.get(name, i) for name in headings])  # By cost: their order.
    labels = dict(zip(speeds, found.problem.topology.labels, strict=True))
    names = [labels.get(name, name.replace("\n", " ")) for name in headings]
    tapers = [name for name in headings if name.endswith("\ntaper")]
    spare = [headings.index(x) for x in (*shown.dispensable, *tapers) if x in headings]
    return names, [[row[i] for i in kept] for row in texts], keys, str.rjust, spare


def title_of(*, is_log: bool, is_of_strategy: bool) -> Text:
    """What is drawn, in one line of 80 columns.

    >>> max(title_of(is_log=False, is_of_strategy=one).cell_len for one in (True, False)) <= 76
    True
    """
    axes = "log" if is_log else "linear"
    what = f"Step time over cost, {axes} axes"
    title = Text(f"Time over cost of this strategy, {axes}: " if is_of_strategy else f"{what}: ")
    title.append(POINT, "cyan").append(" frontier  ").append(CHOSEN, "bold")
    return title.append(" chosen  ").append(DESIGN, "bold yellow").append(" on screen")


class FrontierPane(Pane):
    """The third screen."""

    WAITS = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "toggle_log", "Log axes", show=True),
        Binding("r", "compute", "Again", show=True),
    ]
    _shown: Frontier | None = None
    _is_log = True
    _has_star = False
    _drawn: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        with Container(id="frontier-split"):
            with Vertical(id="frontier-left"):
                yield Static(id="frontier-title")
                yield PointPlot("frontier-plot", is_joined=True)
            with Vertical(id="frontier-list"):
                yield RowTable()
                with Notes():
                    yield Card(id="frontier-note")

    def show_session(self) -> None:
        session = self.session
        if session.has_frontier:
            self.show_frontier()
        elif session.current:
            self.action_compute()
        elif self._shown:
            self.say("the frontier of the plan before this edit; the plan has faults")
        else:
            self.say(self.session.without("frontier"))

    def action_compute(self) -> None:
        """Find the frontier of the plan as it stands."""
        if not self.session.current:
            self.say(self.session.without("frontier"))
            return
        self._shown = None
        self.say("finding the frontier ...")
        self.find_frontier()

    def show_frontier(self) -> None:
        found, evaluation = self.session.frontier, self.cockpit.evaluation
        if found is not None and found is not self._shown:
            self._shown = found
            from libra_planner.views.frontier import frontier_table

            listed, table = frontier_table(found.problem, found.points), self._table
            table.show(*_columns(found, listed))
            self._has_star = any(row[0].shown for row in listed.rows)
            if evaluation is not None:  # The point whose cost is nearest to that of the design.
                costs = [abs(point.cost_usd - evaluation.cost_usd) for point in found.points]
                table.choose(costs.index(min(costs)))
        self.say(f"{_HINT}{_STAR * self._has_star}")
        self._draw()

    def frontier_failed(self, text: str) -> None:
        self._shown, self._drawn = None, ()
        self._table.show((), ())
        self.say(text)

    def say(self, text: str) -> None:
        """In the place of the plot where there is none, else under the table."""
        is_drawn = self._shown is not None
        self.query_one("#frontier-note", Card).show(Text(text if is_drawn else "", "italic"))
        if not is_drawn:
            self._drawn = ()
            self.query_one("#frontier-title", Static).update("")
            self.query_one(PointPlot).say(text)

    @property
    def _table(self) -> RowTable:
        return self.query_one(RowTable)

    def _draw(self) -> None:
        if self._shown is None or not self.size:  # Unseen: the resize that shows it draws it.
            return
        if len(self._shown.points) == 1:
            self._say_one(self._shown)
            return
        evaluation = self.cockpit.evaluation
        design = (evaluation.cost_usd, evaluation.step_time_s) if evaluation else (0.0, 0.0)
        pairs = [(point.cost_usd, point.step_time_s) for point in self._shown.points]
        chosen = min(self._table.chosen, len(pairs) - 1)
        is_log = self._is_log and all(min(pair) > 0 for pair in pairs)
        drawn = (id(self._shown), chosen, design, is_log, self.size)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        title = title_of(is_log=is_log, is_of_strategy=self.session.searches_strategy)
        self.query_one("#frontier-title", Static).update(title)
        shown = design if min(design) > 0 else None
        self.query_one(PointPlot).show(pairs, max(chosen, 0), shown, is_log=is_log)

    def _say_one(self, found: Frontier) -> None:
        """Why there is one design, in the place of axes that it would be alone between."""
        self._drawn = ()
        self.query_one("#frontier-title", Static).update("")
        self.query_one(PointPlot).say(found.alone)

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Put the chosen point on screen as the design."""
        if not self.session.current:
            self.cockpit.say("nothing loaded: the plan was edited since")
        elif self._shown is not None and self._shown is self.session.frontier:
            chosen = self._table.chosen
            point = self._shown.points[chosen]
            vector = tuple(gigabytes_per_s(b) for b in point.bandwidth_bytes_per_s)
            self.cockpit.change_bandwidth(vector)
            self.session.came_from(f"frontier point {chosen + 1}")
            self.cockpit.say_of_edit("loaded the point as the design; 1 shows it, u takes it back")

    def on_point_plot_chosen(self, event: PointPlot.Chosen) -> None:
        self._table.choose(event.index)

    def action_toggle_log(self) -> None:
        """Logarithmic axes or linear ones."""
        self._is_log = not self._is_log
        self._draw()
