"""Report: choose pinned designs and formats, write, see the paths and what it decides."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Label, Select

from libra_planner.files import write_files
from libra_planner.routing.policy import POLICIES
from libra_planner.tui.disk.files import edited_text, typed_path
from libra_planner.tui.disk.readings import plan_values
from libra_planner.tui.disk.watch import refuse_changed
from libra_planner.tui.pictures.stacked import inked_lines
from libra_planner.tui.screens.compare import bar_lines, compared_rows
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import Pin, Report
from libra_planner.tui.widgets import Card, Checklist, Drawn
from libra_planner.tui.work import Ticket, run_apart

FORMATS = ("html", "xlsx", "csv", "md", "pdf")


def write_report(
    pins: Sequence[Pin], folder: Path, formats: Sequence[str], *, policy: str | None, ticket: Ticket
) -> dict[str, Any]:
    """Write the designs' plans and the report of them into a folder.

    Returns
    -------
    What ``report --json`` prints, with the ``files``.

    Raises
    ------
    PlannerError
        As the command does; each report is written in a process of its own.
    """
    for pin in pins:
        refuse_changed(pin.files, f"design {pin.name}")
    folder.mkdir(parents=True, exist_ok=True)
    plans = {folder / f"{_file_name(pin.name)}.yaml": pin for pin in pins}
    write_files({path: plan_text(pin) for path, pin in plans.items()})
    designs = [f"{path}@{','.join(map(repr, pin.bandwidth_GBps))}" for path, pin in plans.items()]
    return run_apart(partial(_report_payload, designs, folder, ",".join(formats), policy), ticket)


def _report_payload(
    designs: Sequence[str], folder: Path, formats: str, policy: str | None, _progress: Report
) -> dict[str, Any]:
    from libra_planner.api.reports import written_report
    from libra_planner.studies.reports import Question

    question = Question(tuple(designs), check=policy, allow_missing=True)
    return written_report(question, folder, formats).to_dict()


def decision(payload: Mapping[str, Any], pins: Sequence[str], n_cells: int) -> RenderableType:
    """The answers of a report with figures and reasons, what is wrong with them, and the files.

    Parameters
    ----------
    payload : what ``report --json`` prints.
    pins : names of the designs, in its order.
    n_cells : width that there is; cards stand side by side where it suffices.
    """
    said, names = payload["decision"], {one["design"]: one["name"] for one in payload["designs"]}
    pinned = dict(zip(names, pins, strict=True))
    answers = {f"{letter}: {names[letter]}": f"{letter}: {pin}" for letter, pin in pinned.items()}
    warnings = [
        Text("Warning: ", "bold reverse").append(text, "bold not reverse")
        for text in said["warnings"]
    ]
    sentences = "\n".join(said["recommendation"]["sentences"])
    for letter, pin in pinned.items():
        sentences = sentences.replace(f"{letter} ({names[letter]})", f"{letter} ({pin})")
    letters = "; ".join(f"{letter} = {pin}" for letter, pin in pinned.items())
    after = Text("\n".join([*said["text"], f"Designs: {letters}\n\n"]))
    cards = _card_grid(said["cards"], answers, n_cells)
    return Group(
        Text(f"{sentences}\n", "bold"),
        *warnings,
        cards,
        after.append_text(_files(payload["files"])),
    )


def _card_grid(
    cards: Sequence[Mapping[str, str]], answers: Mapping[str, str], n_cells: int
) -> RenderableType:
    """Boxes side by side, or paragraphs where there is no room for them."""
    shown: list[RenderableType] = []
    narrow = n_cells < _LEAST_CARD * len(cards)
    for card in cards:
        answer = f"{answers.get(card['answer'], card['answer'])}\n"
        text = Text(f"{card['title']}: {answer}" if narrow else answer, "bold")
        text.append(card["figure"], "bold cyan")
        text.append(f"{'. ' if narrow else chr(10)}{card['reason']}", "not bold")
        title = Text(card["title"], "bold")
        box = Panel(text, title=title, title_align="left", padding=(0, 1))
        shown.append(text if narrow else box)
    if narrow:
        return Group(*shown)
    grid = Table.grid(*(Column(ratio=1) for _ in cards), expand=True)
    grid.add_row(*shown)
    return grid


def figures_table(pins: Sequence[Pin], n_cells: int) -> Table:
    """Designs that can be reported: as many of the figures of Compare as there is room for."""
    found = {row.name: row for row in compared_rows(pins, 0) if row.name not in _SAID}
    rows = [found.pop(name) for name in _FIRST if name in found] + [*found.values()]
    table, taken = Table(box=None, padding=(0, 2, 0, 0)), 0
    columns = []
    for name, texts in [("design", [pin.name for pin in pins]), *((x.name, x.texts) for x in rows)]:
        taken += max(map(len, (name.strip(), *texts))) + 2
        if taken > n_cells:
            break
        columns.append(texts)
        table.add_column(Text(name.strip(), "dim"), no_wrap=True)
    for cells in zip(*columns, strict=True):
        table.add_row(*map(Text, cells))
    return table


_FIRST = (
    "step time",
    "network cost",
    "system cost",
    "  in whole parts",
    "rules",
    "perf/cost vs equal",
)
_SAID = ("plan", "settings", "")
"""Rows of Compare: those that decide, and those that the report says anyway."""

_LEAST_CARD = 36
"""Cells that a card needs beside others."""


def _files(files: Sequence[str]) -> Text:
    """Folder and documents line by line; tables, of which there are many, in one."""
    tables = [file for file in files if file.endswith(".csv")]
    text = Text("Written to ", "bold").append(f"{Path(files[0]).parent}\n")
    text.append("".join(f"  {file}\n" for file in files if file not in tables), "not bold")
    if tables:
        text.append(f"  {len(tables)} tables as CSV: report-*.csv", "not bold")
    return text


def _file_name(name: str) -> str:
    """A pinned design's name as a file's.

    >>> _file_name("2 my plan@home")
    '2_my_plan_home'
    """
    return re.sub(r"[^\w.-]+", "_", name)


def plan_text(pin: Pin) -> str:
    """A pinned design's plan with its edits and comments, paths made absolute."""
    from libra_planner.reading.named_files import absolute_files

    paths = (
        f"{'.'.join(map(str, key))}={json.dumps(path)}"
        for key, path in absolute_files(pin.value, pin.path.resolve().parent)
    )
    settings = pin.settings_over(plan_values(pin.path, (), pin.text))
    return edited_text(pin.text, (*settings, *paths), str(pin.path))


def pictures(pins: Sequence[Pin], n_cells: int) -> RenderableType:
    """Bars of step time and cost, then fabric and step of as many designs as there is room for."""
    from libra_planner.tui.pictures.designs import PICTURES

    shown = pins[: max(n_cells // _LEAST_PICTURE, 1)]
    grid = Table.grid(*(Column(ratio=1) for _ in shown), expand=True)
    for title, picture in PICTURES.values():
        drawn = [Drawn(partial(picture, pin.problem, pin.evaluation)) for pin in shown]
        named = zip(shown, drawn, strict=True)
        grid.add_row(
            *(
                Panel(one, title=Text(f"{pin.name}. {title}"), title_align="left")
                for pin, one in named
            )
        )
    return Group(inked_lines(bar_lines(pins, n_cells - 2)), Text(), grid)


_LEAST_PICTURE = 60
"""Cells of a design's pictures."""

_CALM_S = 0.1
_HINT = "Space chooses designs and formats, w writes the report"
_NO_CHECK = "no"


class ReportPane(Pane):
    """The sixth screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("w", "write", "Write", show=True)]
    KEYED: ClassVar[tuple[type[Widget], ...]] = (Checklist,)
    FIRST = "#report-designs"

    _written: tuple[list[str], dict[str, Any]] | None = None
    _said = _HINT

    def compose(self) -> ComposeResult:
        with Container(id="report-split"):
            with Vertical(id="report-left"):
                with Container(id="report-choices"):
                    usual = (i for i, name in enumerate(FORMATS) if name != "pdf")
                    yield Checklist("Designs", (), id="report-designs")
                    yield Checklist("Formats", FORMATS, usual, id="report-formats")
                with Container(id="report-bar"):
                    yield Label("folder")
                    yield Input("", compact=True, id="report-folder")
                    yield Label("check links")
                    quick = [x.name for x in POLICIES.values() if x.finds_paths and not x.is_search]
                    names = [_NO_CHECK, *quick]
                    yield Select.from_values(
                        names, allow_blank=False, compact=True, id="report-check"
                    )
            with VerticalScroll(id="report-right"):
                yield Card(_HINT, id="report-result")
                yield Card(id="report-pictures")

    def show_session(self) -> None:
        designs = self.query_one("#report-designs", Checklist)
        names = [pin.name for pin in self.session.pins]
        if designs.names != names:
            designs.show(names)
            self._draw()
        designs.border_subtitle = "" if names else "nothing pinned: the design on screen"
        folder = self.query_one("#report-folder", Input)
        if not folder.value:
            folder.value = str(self.cockpit.folder / f"{self.session.path.stem}-report")

    def action_write(self) -> None:
        """Write the report."""
        listed, formats = self.session.pins, self.query_one("#report-formats", Checklist)
        pins = [listed[i] for i in self.query_one("#report-designs", Checklist).chosen]
        if not listed and not self.session.current and not self.session.faults:
            self.cockpit.when_read(self.action_write)
            return
        if not listed:
            pinned = self.cockpit.action_pin()
            pins = [pinned] if pinned else []
        if not pins or not formats.chosen:
            self.say("choose at least one design and one format (Space)")
            return
        typed = self.query_one("#report-folder", Input).value or "report"
        policy = str(self.query_one("#report-check", Select).value)
        chosen = [FORMATS[i] for i in formats.chosen]

        def call(ticket: Ticket) -> dict[str, Any]:
            wanted = None if policy == _NO_CHECK else policy
            return write_report(pins, typed_path(typed), chosen, policy=wanted, ticket=ticket)

        self.say("writing ...")
        done = partial(self._show_written, [pin.name for pin in pins])
        self.begin("report", "report", call=call, done=done)

    def say(self, text: str) -> None:
        self._written, self._said = None, text
        self._draw()

    def _show_written(self, pinned: list[str], payload: dict[str, Any]) -> None:
        self._written = pinned, payload
        self._draw()
        folder = Path(payload["files"][0]).parent
        self.cockpit.say(f"report written to {folder}")
        if isinstance(self.app.focused, Checklist):  # Arrows scroll what there is to read now.
            self.query_one(VerticalScroll).focus()

    def _draw(self) -> None:
        card, said = self.query_one("#report-result", Card), self._said
        pins = tuple(self.session.pins)
        if self._written:
            pinned, payload = self._written
            card.show(partial(decision, payload, pinned))
        elif pins:
            card.show(lambda n_cells: Group(Text(f"{said}\n"), figures_table(pins, n_cells)))
        else:
            card.show(Text(said))
        self.set_timer(_CALM_S, self._draw_pictures)

    def _draw_pictures(self) -> None:
        """Under what there is to read, once keys have paused."""
        card, pins = self.query_one("#report-pictures", Card), tuple(self.session.pins)
        card.show(partial(pictures, pins) if pins else Text())
