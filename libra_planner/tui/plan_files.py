"""The open plan's file: saved, saved elsewhere, another one opened, unsaved edits asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from libra_planner.errors import PlannerError
from libra_planner.files import read_text
from libra_planner.tui.dialogs import OpenDialog, Prompt, Question
from libra_planner.tui.files import (
    RecentPlan,
    real_path,
    recent_plans,
    remember,
    typed_path,
    working_directory,
)
from libra_planner.tui.screens.pane import Host


class PlanFiles:
    """What is done with files of plans.

    Parameters
    ----------
    cockpit : whose plan it is.
    """

    def __init__(self, cockpit: Host) -> None:
        self._cockpit = cockpit

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples, which are not to be changed."""
        from libra_planner.reading import bundled

        path = self._cockpit.session.path
        return real_path(path).parent == real_path(bundled.folder("examples"))

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written: beside it, but not among the examples."""
        return working_directory() if self.is_bundled() else self._cockpit.session.path.parent

    def save(self, then: Callable[[], None] = lambda: None) -> None:
        """Save where the plan is, or ask where if it is one of the bundled examples."""
        if self.is_bundled():
            self.save_as(then)
        else:
            self._write(self._cockpit.session.path, then)

    def save_as(self, then: Callable[[], None] = lambda: None) -> None:
        """Ask for another file, and write the plan there."""

        def done(answer: str) -> None:
            self._try("saving", lambda: self._ask_replace(typed_path(answer), then))

        why = "a bundled example is not changed: give the copy a place"
        hint = why if self.is_bundled() else ""
        name = self._cockpit.session.path.name
        self._cockpit.ask(Prompt("Save as", name, hint=hint, needed=True), done)

    def _try(self, title: str, call: Callable[[], None]) -> None:
        """Do something with a path that was typed; a panel says what is wrong with it."""
        try:
            call()
        except (PlannerError, OSError) as error:
            self._cockpit.show_error(title, error)

    def _ask_replace(self, target: Path, then: Callable[[], None]) -> None:
        """Write the plan there; ask before a file that is not the open plan's is replaced."""
        from libra_planner.tui.files import replacement_warning

        text = replacement_warning(self._cockpit.session.path, target)
        if not text:
            self._write(target, then)
            return
        self._cockpit.ask(
            Question("Replace a file", text, {"r": "replace it"}),
            lambda _: self._write(target, then),
            lambda: self._cockpit.say(f"nothing saved: {target} is as it was"),
        )

    def _write(self, target: Path, then: Callable[[], None]) -> None:
        cockpit, session = self._cockpit, self._cockpit.session

        def call(_ticket: Any) -> list[Path]:
            from libra_planner.tui.files import save_plan

            return save_plan(session.path, session.edits.settings, target)

        def done(kept: list[Path]) -> None:
            copies = f"; the file before is {kept[0].name}" if kept else ""
            session.file_written(target)
            cockpit.say(f"saved {target}{copies}")
            self.remember()
            cockpit.read()
            then()

        cockpit.workshop.start("save", "saving", call=call, done=done)

    def ask_open(self) -> None:
        """Ask for another plan, and open it."""
        from libra_planner.reading import bundled

        plans = [(one.path, one.path) for one in recent_plans()]
        examples = [(name, str(bundled.example(name))) for name in bundled.names("examples")]
        listed = plans + [(f"example {name}", path) for name, path in examples]

        def done(answer: str) -> None:
            self._try("opening a plan", lambda: self.open(typed_path(answer)))

        self._cockpit.ask(OpenDialog(listed), done)

    def open(self, path: Path, *design: Any, said: str = "") -> None:
        """Open a plan if its file can be read; else say why not, and the one that is open stays."""
        try:
            read_text(path)
        except PlannerError as error:
            self._cockpit.show_error("opening a plan", error)
        else:
            self.remember()
            self._cockpit.open_plan(path, *design)
            self._cockpit.say(said)

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""
        session = self._cockpit.session
        if not session.dirty:
            then()
            return
        n = len(session.edits.settings)
        text = f"{session.path.name} has {n} unsaved edit{'s' if n > 1 else ''}."
        self._cockpit.ask(
            Question("Unsaved edits", text, {"s": "save", "d": "drop them"}),
            lambda answer: self.save(then) if answer == "s" else then(),
        )

    def remember(self) -> None:
        """Put the plan and its design on the list of recent ones."""
        session = self._cockpit.session
        if session.reading is not None and session.reading.document is not None:
            path = str(real_path(session.path))
            remember(RecentPlan(path, session.edits.bandwidth_GBps))
