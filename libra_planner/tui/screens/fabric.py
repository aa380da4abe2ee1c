"""Fabric: the design as whole links, loaded by a step's collectives under a routing policy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Resize
from textual.timer import Timer
from textual.widgets import DataTable, Input, Label, Select

from libra_planner.fabric.topology import WIRINGS
from libra_planner.routing.policy import POLICIES, Policy
from libra_planner.tui.dialogs import Panel
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card, Notes
from libra_planner.tui.work import Ticket, run_apart

if TYPE_CHECKING:
    from libra_planner.tui.screens.links import CheckedLinks


def policies() -> list[str]:
    """Policies that find paths by themselves, those that take as long as they may last."""
    found = [kind for kind in POLICIES.values() if kind.finds_paths]
    return [kind.name for kind in sorted(found, key=lambda kind: "time_limit" in kind.options)]


_TWO_COLUMNS = 150

_BLANK_S = 0.2
"""A check that takes no longer replaces the links before it without an empty screen between."""


class FabricPane(Pane):
    """The fourth screen."""

    WAITS = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "next_policy", "Policy", show=True),
        Binding("n", "next_seed(1)", "Next seed", show=True),
        Binding("N", "next_seed(-1)", "Seed before", show=False),
        Binding("h", "heat", "Heat map", show=True),
    ]

    _found: CheckedLinks | None = None
    _wanted: tuple[Any, ...] = ()
    _rows: Sequence[dict[str, Any]] = ()
    _blanking: Timer | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="fabric-bar"):
            yield Label("policy")
            value: Any = Policy().name
            yield Select.from_values(
                policies(), value=value, allow_blank=False, compact=True, id="policy"
            )
            yield Label("seed")
            yield Input("", placeholder="mean", type="integer", compact=True, id="seed")
            yield Label("wiring")
            yield Select.from_values(WIRINGS, compact=True, prompt="of the plan", id="wiring")
        # In one column this scrolls, by the keys that the heat map has no use for.
        with VerticalScroll(id="fabric-split", can_focus=False):
            with VerticalScroll(id="fabric-left", can_focus=False):
                with Notes(id="fabric-figures"):
                    yield Card(id="fabric-times")
                    yield Card(id="fabric-dimensions")
                    yield Card(id="fabric-layers")
                yield RowTable()
                yield Card(id="fabric-notes")
            with VerticalScroll(id="fabric-right"):
                yield Card(id="fabric-heat")

    def show_session(self) -> None:
        session, problem = self.session, self.session.problem
        if problem is None or not session.current:
            self._wanted = ()
            self.say(session.without("links"))
            return
        bandwidth, asked = session.bandwidth_bytes_per_s, (self._policy, self._seed)
        wanted = (id(problem), session.edits.bandwidth_GBps, *asked)
        if wanted == self._wanted:
            return
        self._wanted, self._found = wanted, None
        self._blank_soon()

        def call(ticket: Ticket) -> CheckedLinks:
            from libra_planner.tui.screens.links import check_links

            return run_apart(partial(check_links, problem, bandwidth, *asked), ticket)

        self.begin("check", "checking the links", call=call, done=self._show)

    @property
    def _policy(self) -> str:
        return str(self.query_one("#policy", Select).value)

    @property
    def _seed(self) -> int | None:
        """The seed of one routing; ``None`` for the mean of several."""
        text = self.query_one("#seed", Input).value
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def _blank_soon(self) -> None:
        """What is on screen goes away, unless the new links are there before anybody reads it."""
        self._stay()
        self._blanking = self.set_timer(_BLANK_S, partial(self.say, "routing the flows ..."))

    def _stay(self) -> None:
        if self._blanking is not None:
            self._blanking.stop()

    def say(self, text: str) -> None:
        self._stay()
        self._found, self._rows = None, ()
        for name in ("times", "dimensions", "layers", "notes", "heat"):
            shown = Text(text if name == "times" else "", "italic")
            self.query_one(f"#fabric-{name}", Card).show(shown)
        self.query_one(RowTable).show((), ())

    def _show(self, found: CheckedLinks) -> None:
        self._stay()
        self._found, self._rows = found, found.busiest_links
        for name, content in found.cards.items():
            self.query_one(f"#fabric-{name}", Card).show(content)
        rows = [
            (row["link"], row["layer"], f"{row['n_flows']:g}", str(row["n_groups"]))
            for row in self._rows
        ]
        headers = ("busiest links (Enter: their flows)", "layer", "flows", "groups")
        keys = [(x["link"], x["layer"], x["n_flows"], x["n_groups"]) for x in self._rows]
        self.query_one(RowTable).show(headers if rows else (), rows, keys)
        self._show_heat()
        heat = self.query_one("#fabric-right")
        if heat.has_focus:  # Who looks at it looks at that of the next draw.
            self.call_after_refresh(partial(heat.scroll_visible, top=True))

    def _show_heat(self) -> None:
        if self._found is not None:
            wide = self.app.size.width >= _TWO_COLUMNS
            width = self.app.size.width // (2 if wide else 1) - 5
            self.query_one("#fabric-heat", Card).show(self._found.heat_maps(width))

    def on_resize(self, _event: Resize) -> None:
        self._show_heat()

    def on_select_changed(self, event: Select.Changed) -> None:
        event.stop()
        if event.select.id == "policy":
            self.show_session()
        elif event.value is not Select.NULL:
            self.cockpit.apply_edit("fabric.realization.wiring", str(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.show_session()
        self.take_focus()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """The flows of the chosen link, hop by hop."""
        if self._found is not None and self._rows:
            row = self._rows[self.query_one(RowTable).chosen]
            self.app.push_screen(Panel(row["link"], self._found.link_text(row), wide=True))

    def action_heat(self) -> None:
        """To the heat map, or back to the busiest links."""
        heat = self.query_one("#fabric-right")
        if heat.has_focus:
            self.take_focus()
        else:
            heat.focus()
            heat.scroll_visible(top=True)

    def action_next_policy(self) -> None:
        """The next routing policy."""
        names = policies()
        following = names[(names.index(self._policy) + 1) % len(names)]
        self.query_one("#policy", Select).value = following

    def action_next_seed(self, by: int) -> None:
        """Another draw alone; before the first the mean of several."""
        seed = self._seed
        following = (-1 if seed is None else seed) + by
        self.query_one("#seed", Input).value = str(following) if following >= 0 else ""
        self.show_session()
