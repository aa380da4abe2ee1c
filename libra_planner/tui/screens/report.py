"""Report: choose pinned designs and formats, write, see the paths and what it decides."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Input, Label, Select

from libra_planner.routing.policy import POLICIES
from libra_planner.tui.files import typed_path
from libra_planner.tui.plans import Pin
from libra_planner.tui.screens import reports as reporting
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.widgets.contents import Card, Checklist

_HINT = "Space chooses designs and formats, w writes the report"
_NO_CHECK = "no"


class ReportPane(Pane):
    """The sixth screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("w", "write", "Write", show=True)]
    KEYED: ClassVar[tuple[type[Widget], ...]] = (Checklist,)
    FIRST = "#report-designs"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._written: tuple[list[str], dict[str, Any]] | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="report-choices"):
            designs = Checklist((), id="report-designs")
            designs.border_title = "Designs"
            yield designs
            usual = (i for i, name in enumerate(reporting.FORMATS) if name != "pdf")
            formats = Checklist(reporting.FORMATS, usual, id="report-formats")
            formats.border_title = "Formats"
            yield formats
        with Horizontal(id="report-bar"):
            yield Label("folder")
            yield Input("", compact=True, id="report-folder")
            yield Label("check links")
            quick = (x.name for x in POLICIES.values() if x.finds_paths and not x.is_search)
            names = (_NO_CHECK, *quick)
            options = [(name, name) for name in names]
            yield Select(
                options, value=_NO_CHECK, allow_blank=False, compact=True, id="report-check"
            )
        with VerticalScroll():
            yield Card(_HINT, id="report-result")

    def show_session(self) -> None:
        designs = self.query_one("#report-designs", Checklist)
        names = [pin.name for pin in self.session.pins]
        if designs.names != names:
            designs.show(names)
        designs.border_subtitle = "" if names else "nothing pinned: the design on screen"
        folder = self.query_one("#report-folder", Input)
        if not folder.value:
            folder.value = str(self.cockpit.folder / f"{self.session.path.stem}-report")

    def _chosen(self) -> list[Pin]:
        pins = self.session.pins
        if not pins:
            pinned = self.cockpit.action_pin()
            return [pinned] if pinned else []
        return [pins[i] for i in self.query_one("#report-designs", Checklist).chosen]

    def action_write(self) -> None:
        """Write the report."""
        pins = self._chosen()
        formats = [
            reporting.FORMATS[i] for i in self.query_one("#report-formats", Checklist).chosen
        ]
        if not pins or not formats:
            self.say("choose at least one design and one format (Space)")
            return
        typed = self.query_one("#report-folder", Input).value or "report"
        policy = str(self.query_one("#report-check", Select).value)

        def call(ticket: Any) -> dict[str, Any]:
            wanted = None if policy == _NO_CHECK else policy
            folder = typed_path(typed)
            return reporting.write_report(pins, folder, formats, policy=wanted, ticket=ticket)

        self.say("writing ...")
        done = partial(self._done, [pin.name for pin in pins])
        self.begin("report", "report", call=call, done=done)

    def say(self, text: str) -> None:
        self._written = None
        self.query_one("#report-result", Card).show(Text(text))

    def _done(self, pinned: list[str], payload: dict[str, Any]) -> None:
        self._written = pinned, payload
        self._draw()
        self.cockpit.say(f"report written to {Path(payload['files'][0]).parent}")
        if isinstance(self.app.focused, Checklist):  # Arrows scroll what there is to read now.
            self.query_one(VerticalScroll).focus()

    def _draw(self) -> None:
        if self._written:
            card = self.query_one("#report-result", Card)
            pinned, payload = self._written
            card.show(reporting.decision(payload, pinned, card.content_size.width))

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self._draw)
