"""Search: the best strategies for the plan's model, each with its best fabric, any to take."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import DataTable

from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import Strategies, found_strategies
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card
from libra_planner.tui.work import run_apart

_HINT = (
    "g searches all ways to spread the plan's model over its NPUs (degrees, microbatch, ZeRO, "
    "recomputation), each with the best bandwidth that the rules allow, as 'search PLAN' does"
)
_TAKES = "Enter takes a strategy into the plan, with its bandwidth; u takes it back"


class SearchPane(Pane):
    """The seventh screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("g", "search", "Search", show=True)]
    _found: Strategies | None = None
    _of: Any = None

    def compose(self) -> ComposeResult:
        with Container(id="search-split"):
            with Vertical(id="search-list"):
                yield Card(_HINT, id="search-state")
                yield RowTable()
            with Vertical(id="search-picture"):
                yield PointPlot("search-plot", "step time over cost of each: g searches")

    def say(self, text: str) -> None:
        self.query_one("#search-state", Card).show(Text(text))

    def show_session(self) -> None:
        if self._found is not None and self._of != (self.session.path, self._settings):
            self.say("Of the plan before it was edited: g searches again")

    @property
    def _settings(self) -> tuple[str, ...]:
        return self.session.edits.settings

    def action_search(self) -> None:
        """Search the best strategies of the plan."""
        path, settings = self.session.path, self._settings
        self._of = path, settings
        self.say("searching ...")
        call = partial(run_apart, partial(found_strategies, path, settings))
        self.begin("search", "searching strategies", call=call, done=self._show)

    def _show(self, found: Strategies) -> None:
        self._found = found
        table = self.query_one(RowTable)
        table.show(found.headings, found.rows, found.keys, str.rjust)
        self.say(f"{found.verdict}\n{_TAKES}" if found.rows else found.verdict)
        self._draw()
        table.focus()

    def _draw(self) -> None:
        plot = self.query_one(PointPlot)
        if self._found is not None and self._found.rows and plot.size:
            chosen = max(self.query_one(RowTable).chosen, 0)
            plot.show(self._found.points, chosen, None, is_log=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw()

    def on_point_plot_chosen(self, event: PointPlot.Chosen) -> None:
        self.query_one(RowTable).choose(event.index)

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Take a strategy into the plan."""
        found = self._found
        if found is None or not found.rows:
            return
        chosen = self.query_one(RowTable).chosen
        self.cockpit.take_strategy(
            json.dumps(found.degrees[chosen]),
            found.bandwidths_GBps[chosen],
            f"strategy {chosen + 1}",
        )
