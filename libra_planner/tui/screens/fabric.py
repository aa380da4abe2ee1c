"""Fabric: the design as whole links, loaded by a step's collectives under a routing policy."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from rich.console import Group
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
from libra_planner.tui.screens import links
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.widgets.contents import Card, fill


def policies() -> list[str]:
    """Policies that find paths by themselves, those that take as long as they may last."""
    found = [kind for kind in POLICIES.values() if kind.finds_paths]
    return [kind.name for kind in sorted(found, key=lambda kind: "time_limit" in kind.options)]


_TWO_COLUMNS = 150

_BLANK_S = 0.2
"""A check that takes no longer replaces the links before it without an empty screen between."""


class FabricPane(Pane):
    """The fourth screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "next_policy", "Policy", show=True),
        Binding("n", "next_seed(1)", "Next seed", show=True),
        Binding("N", "next_seed(-1)", "Seed before", show=False),
        Binding("h", "heat", "Heat map", show=True),
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._found: links.CheckedLinks | None = None
        self._wanted: tuple[Any, ...] = ()
        self._rows: list[dict[str, Any]] = []
        self._blanking: Timer | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="fabric-bar"):
            yield Label("policy")
            options = [(name, name) for name in policies()]
            yield Select(options, value=Policy().name, allow_blank=False, compact=True, id="policy")
            yield Label("seed")
            yield Input("", placeholder="mean", type="integer", compact=True, id="seed")
            yield Label("wiring")
            wirings = [(name, name) for name in WIRINGS]
            yield Select(wirings, compact=True, prompt="of the plan", id="wiring")
        # In one column this scrolls, by the keys that the heat map has no use for.
        with VerticalScroll(id="fabric-split", can_focus=False):
            with VerticalScroll(id="fabric-left", can_focus=False):
                yield Card(id="fabric-times")
                yield Card(id="fabric-dimensions")
                yield Card(id="fabric-layers")
                yield DataTable(cursor_type="row", zebra_stripes=True)
                yield Card(id="fabric-notes")
            with VerticalScroll(id="fabric-right"):
                yield Card(id="fabric-heat")

    def show_session(self) -> None:
        session = self.session
        if session.problem is None or not session.current:
            self._wanted = ()
            self.say("no links: the plan has faults")
            return
        policy, seed = str(self.query_one("#policy", Select).value), self._seed()
        wanted = (id(session.problem), session.edits.bandwidth_GBps, policy, seed)
        if wanted != self._wanted:
            self._wanted = wanted
            self._check(policy, seed)

    def _seed(self) -> int | None:
        """The seed of one routing; ``None`` for the mean of several."""
        text = self.query_one("#seed", Input).value
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def _check(self, policy: str, seed: int | None) -> None:
        problem, bandwidth = self.session.problem, self.session.bandwidth_bytes_per_s
        if problem is None:
            return
        self._found = None
        self._blank_soon()
        work = partial(links.check_links, problem, bandwidth, policy, seed)
        self.solve("check", "checking the links", work=work, done=self._done)

    def _blank_soon(self) -> None:
        """What is on screen goes away, unless the new links are there before anybody reads it."""
        self._stay()
        self._blanking = self.set_timer(_BLANK_S, partial(self.say, "routing the flows ..."))

    def _stay(self) -> None:
        if self._blanking is not None:
            self._blanking.stop()

    def _done(self, found: links.CheckedLinks) -> None:
        self._stay()
        self._found = found
        self._show()

    def say(self, text: str) -> None:
        self._stay()
        self._found, self._rows = None, []
        self.query_one("#fabric-times", Card).show(Text(text, "italic"))
        for name in ("dimensions", "layers", "notes", "heat"):
            self.query_one(f"#fabric-{name}", Card).show("")
        self.query_one(DataTable).clear(columns=True)

    def _show(self) -> None:
        found = self._found
        if found is None:
            return
        self.query_one("#fabric-times", Card).show(links.step_times(found))
        self.query_one("#fabric-dimensions", Card).show(
            Group(links.dimensions(found), links.parts_text(found))
        )
        title = Text(links.phase_name(found), "bold")
        table = links.layers(found)
        self.query_one("#fabric-layers", Card).show(Group(title, *([table] if table else [])))
        self._show_busiest(found)
        self.query_one("#fabric-notes", Card).show(links.notes(found))
        self._show_heat()

    def _show_busiest(self, found: links.CheckedLinks) -> None:
        table: DataTable[Text] = self.query_one(DataTable)
        self._rows = links.busiest_links(found)
        rows = [
            (row["link"], row["layer"], f"{row['n_flows']:g}", str(row["n_groups"]))
            for row in self._rows
        ]
        headers = ("busiest links (Enter: their flows)", "layer", "flows", "groups")
        fill(table, headers if rows else (), rows, justify="left")

    def _show_heat(self) -> None:
        if self._found is not None:
            wide = self.app.size.width >= _TWO_COLUMNS
            width = self.app.size.width // (2 if wide else 1) - 5
            text = links.heat_maps(self._found, width)
            self.query_one("#fabric-heat", Card).show(text)

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
        self.action_follow()

    def action_follow(self) -> None:
        """The flows of the chosen link, hop by hop."""
        if self._found is not None and self._rows:
            row = self._rows[min(self.query_one(DataTable).cursor_row, len(self._rows) - 1)]
            self.app.push_screen(Panel(row["link"], links.link_text(self._found, row), wide=True))

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
        select = self.query_one("#policy", Select)
        names = policies()
        select.value = names[(names.index(str(select.value)) + 1) % len(names)]

    def action_next_seed(self, by: int) -> None:
        """Another draw alone; before the first the mean of several."""
        seed = self._seed()
        following = (-1 if seed is None else seed) + by
        self.query_one("#seed", Input).value = str(following) if following >= 0 else ""
        self.show_session()
