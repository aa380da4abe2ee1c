"""Report: choose pinned designs and formats, write, see the paths and what it decides."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Label, Select, Static

from libra_planner.tui import reporting
from libra_planner.tui.pane import Pane
from libra_planner.tui.plans import Pin
from libra_planner.tui.widgets.checklist import Checklist

_HINT = "Space chooses designs and formats, w writes the report"
_NO_CHECK = "no"


class ReportPane(Pane):
    """The sixth screen."""

    DEFAULT_CSS = """
    ReportPane #report-choices { height: auto; max-height: 12; }
    ReportPane #report-designs { width: 2fr; }
    ReportPane #report-formats { width: 1fr; }
    ReportPane Checklist { height: 7; border: round $foreground 40%; }
    ReportPane Checklist:focus { border: round $accent; }
    ReportPane #report-bar { height: 1; }
    ReportPane #report-bar Label { margin: 0 1; color: $text-muted; }
    ReportPane #report-folder { width: 1fr; }
    ReportPane #report-check { width: 22; }
    ReportPane #report-result { height: 1fr; padding: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("w", "write", "Write", show=True)]

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
            names = (_NO_CHECK, "ecmp", "spray", "greedy", "edge_coloring")
            options = [(name, name) for name in names]
            yield Select(
                options, value=_NO_CHECK, allow_blank=False, compact=True, id="report-check"
            )
        with VerticalScroll(can_focus=False):
            yield Static(_HINT, id="report-result")

    def take_focus(self) -> None:
        self.query_one("#report-designs").focus()

    def show_session(self) -> None:
        designs = self.query_one("#report-designs", Checklist)
        names = [pin.name for pin in self.session.pins]
        if designs.names != names:
            designs.show(names)
        designs.border_subtitle = "" if names else "nothing pinned: the design on screen"
        folder = self.query_one("#report-folder", Input)
        if not folder.value:
            beside = Path.cwd() if self.cockpit.is_bundled() else self.session.path.parent
            folder.value = str(beside / f"{self.session.path.stem}-report")

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
            self._say("choose at least one design and one format (Space)")
            return
        folder = Path(self.query_one("#report-folder", Input).value or "report").expanduser()
        policy = str(self.query_one("#report-check", Select).value)

        def call(ticket: Any) -> dict[str, Any]:
            wanted = None if policy == _NO_CHECK else policy
            return reporting.write_report(pins, folder, formats, policy=wanted, ticket=ticket)

        self._say("writing ...")
        start = self.cockpit.workshop.start
        done = partial(self._done, [pin.name for pin in pins])
        start("report", "report", call=call, done=done, failed=self._failed)

    def _say(self, text: str) -> None:
        self.query_one("#report-result", Static).update(Text(text))

    def _failed(self, error: Exception) -> None:
        from libra_planner.tui.work import error_text

        self._say(error_text(error))

    def _done(self, pinned: list[str], payload: dict[str, Any]) -> None:
        text = Text()
        letters = [one["design"] for one in payload["designs"]]
        names = dict(zip(letters, pinned, strict=True))
        for key, words in (
            ("cheapest", "Cheapest"),
            ("fastest", "Fastest"),
            ("best_per_usd", "Best per dollar"),
        ):
            letter = payload.get(key)
            text.append(f"{words}: ", "bold")
            text.append(f"{letter}, {names[letter]}\n" if letter else "not known\n")
        if payload["missing_prices"]:
            missing = ", ".join(payload["missing_prices"])
            text.append(f"Totals lack the prices of: {missing}\n")
        text.append("Written\n", "bold")
        for file in payload["files"]:
            text.append(f"  {file}\n")
        self.query_one("#report-result", Static).update(text)
        self.cockpit.say(f"report written to {Path(payload['files'][0]).parent}")
