"""The application's files: save, save as, open, and what to do with edits that are not saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from libra_planner.errors import PlannerError
from libra_planner.files import read_text
from libra_planner.tui import files as recent
from libra_planner.tui.core import CockpitCore
from libra_planner.tui.dialogs import OpenDialog, Prompt, Question
from libra_planner.tui.files import real_path, typed_path


class CockpitFiles(CockpitCore):
    """The cockpit with its plan's file."""

    def action_save(self) -> None:
        """Write the edits into the plan."""
        self.save(lambda: None)

    def save(self, then: Callable[[], None]) -> None:
        """Save where the plan is, or ask where if it is one of the bundled examples."""
        self.design.flush()
        if self.is_bundled():
            self._ask_path(then)
        else:
            self._write(self.session.path, then)

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples, which are not to be changed."""
        from libra_planner.reading import bundled

        return real_path(self.session.path).parent == real_path(bundled.folder("examples"))

    def action_save_as(self) -> None:
        """Write the plan to another file."""
        self.design.flush()
        self._ask_path(lambda: None)

    def _ask_path(self, then: Callable[[], None]) -> None:

        def done(answer: str | None) -> None:
            if answer and answer.strip():
                self._try("saving", lambda: self._ask_replace(typed_path(answer), then))

        name = self.session.path.name
        why = "a bundled example is not changed: give the copy a place"
        hint = why if self.is_bundled() else ""
        self.push_screen(Prompt("Save as", name, hint=hint), done)

    def _try(self, title: str, call: Callable[[], None]) -> None:
        """Do something with a path that was typed; a panel says what is wrong with it."""
        try:
            call()
        except (PlannerError, OSError) as error:
            self.show_error(title, error)

    def _ask_replace(self, target: Path, then: Callable[[], None]) -> None:
        """Write the plan there; ask before a file that is not the open plan's is replaced."""
        from libra_planner.tui.fields import replaced

        def done(answer: str | None) -> None:
            if answer == "r":
                self._write(target, then)
            else:
                self.say(f"nothing saved: {target} is as it was")

        text = replaced(self.session.path, target)
        if not text:
            self._write(target, then)
            return
        self.push_screen(Question("Replace a file", text, {"r": "replace it"}), done)

    def _write(self, target: Path, then: Callable[[], None]) -> None:
        session = self.session

        def call(_ticket: Any) -> list[Path]:
            from libra_planner.tui.fields import save_plan

            return save_plan(session.path, session.edits.settings, target)

        def done(kept: list[Path]) -> None:
            copies = f"; the file before is {kept[0].name}" if kept else ""
            session.file_written(target)
            self.say(f"saved {target}{copies}")
            self.remember()
            self.read()
            then()

        self.workshop.start("save", "saving", call=call, done=done)

    def action_open(self) -> None:
        """Open another plan."""
        self.guard(self._ask_open)

    def _ask_open(self) -> None:
        from libra_planner.reading import bundled

        plans = [(one.path, one.path) for one in recent.recent_plans()]
        examples = [(name, str(bundled.example(name))) for name in bundled.names("examples")]
        listed = plans + [(f"example {name}", path) for name, path in examples]

        def done(answer: str | None) -> None:
            if answer:
                self._try("opening a plan", lambda: self._open(typed_path(answer)))

        self.push_screen(OpenDialog(listed), done)

    def _open(self, path: Path, *design: Any, said: str = "") -> None:
        """Open a plan if its file can be read; else say why not, and the one that is open stays."""
        try:
            read_text(path)
        except PlannerError as error:
            self.show_error("opening a plan", error)
        else:
            self.remember()
            self.open_plan(path, *design)
            self.say(said)

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""
        self.design.flush()
        if not self.session.dirty:
            then()
            return

        def done(answer: str | None) -> None:
            if answer == "s":
                self.save(then)
            elif answer == "d":
                then()

        n = len(self.session.edits.settings)
        text = f"{self.session.path.name} has {n} unsaved edit{'s' if n > 1 else ''}."
        self.push_screen(Question("Unsaved edits", text, {"s": "save", "d": "drop them"}), done)

    def remember(self) -> None:
        """Put the plan and its design on the list of recent ones."""
        session = self.session
        if session.reading is not None and session.reading.document is not None:
            path = str(real_path(session.path))
            recent.remember(recent.RecentPlan(path, session.edits.bandwidth_GBps))
