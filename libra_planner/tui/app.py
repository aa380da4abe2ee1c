"""The application: what every action does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from libra_planner.errors import Place, PlannerError
from libra_planner.files import read_text
from libra_planner.tui import recent
from libra_planner.tui.apart import apart
from libra_planner.tui.core import FRAME_S, CockpitCore
from libra_planner.tui.dialogs import OpenDialog, Panel, Prompt, Question, help_text
from libra_planner.tui.plans import Bandwidth, Optimum, Pin, best_design, equal_split_GBps
from libra_planner.tui.session import Edits


class Cockpit(CockpitCore):
    """The cockpit of one plan at a time, with its actions."""

    # Design

    def action_optimize(self) -> None:
        """Find the certified best design."""
        problem = self._current_problem()
        if problem is None:
            return

        call = apart(partial(best_design, problem))
        self.workshop.start("optimize", "optimising", call=call, done=self._optimized)
        self.say("")

    def _optimized(self, optimum: Optimum) -> None:
        self.session.optimum = optimum
        self.change_bandwidth(tuple(optimum.design.bandwidth_GBps))
        self.session.came_from(f"optimum of {optimum.problem.objective.replace('_', ' ')}")
        self.say("optimised: proven best for these rules")

    def _current_problem(self) -> Any:
        """The plan in numbers, or ``None`` with a word why not."""
        self.design.flush()
        if self.session.reading and (self.session.problem is None or self.session.faults):
            self.say("the plan has faults: correct them first (f goes to the first)")
            return None
        if not self.session.current:
            self.say("the plan is being read: try again")
            return None
        return self.session.problem

    def action_equal(self) -> None:
        """Spread the total evenly."""
        if self.session.problem is not None:
            self.change_bandwidth(equal_split_GBps(self.session.problem))

    async def action_bars(self) -> None:
        """Go to the bars."""
        await self.action_show("design")
        self.design.query_one("#bandwidths").focus()

    async def action_form(self) -> None:
        """Go to the form."""
        await self.action_show("design")
        self.design.query_one("#form").focus_first()  # type: ignore[attr-defined]

    def action_unfocus(self) -> None:
        """Leave a text field."""
        self.pane.take_focus()

    def ask_value(self, key: str, label: str, text: str) -> None:
        """Type a value that is none of the known names."""

        def done(answer: str | None) -> None:
            if answer is not None:
                self.apply_edit(key, answer)

        hint = "a name, a path that ends in .yaml, or YAML"
        self.push_screen(Prompt(label, text, hint=hint), done)

    def ask_bandwidth(self, dim: int) -> None:
        """Type the bandwidth of a dimension, or of all."""
        problem, values = self.session.problem, self.session.edits.bandwidth_GBps
        if problem is None or values is None:
            return

        def done(answer: str | None) -> None:
            if answer is not None:
                self.change_bandwidth(self._typed(answer, dim))

        label = problem.topology.labels[dim]
        hint = "GB/s per NPU, one direction; all dimensions separated by commas"
        value = f"{values[dim]:.10g}"
        self.push_screen(Prompt(label, value, hint=hint, check=self._bandwidth_check(dim)), done)

    def _bandwidth_check(self, dim: int) -> Callable[[str], str]:
        def check(text: str) -> str:
            try:
                self._typed(text, dim)
            except PlannerError as error:
                return str(error)
            return ""

        return check

    def _typed(self, text: str, dim: int) -> Bandwidth:
        """A whole vector, or one number in the place of the dimension's."""
        from libra_planner.cli.bandwidths import bandwidth_bytes_per_s
        from libra_planner.units import gigabytes_per_s

        session = self.session
        if session.problem is None:
            return ()
        values = [repr(value) for value in session.edits.bandwidth_GBps or ()]
        if "," not in text:
            values[dim] = text
            text = ",".join(values)
        found = bandwidth_bytes_per_s(text, session.problem, Place("bandwidth"))
        return tuple(gigabytes_per_s(b) for b in found)

    def action_add_rule(self) -> None:
        """Type a new design rule."""

        def done(answer: str | None) -> None:
            if answer and answer.strip():
                self.session.add_rule(answer.strip())
                self.reread()

        hint = "such as: total == 500 GB/s, dim1 >= dim2, cost <= 20 M$, step_time <= 900 ms"
        self.push_screen(Prompt("New rule", hint=hint), done)

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""
        if self.evaluation is None or not self.session.current:
            self.say("nothing to pin: the plan has faults")
            return None
        pinned = self.session.pin(self.evaluation)
        self.say(f"pinned as {pinned.name}; 2 compares")
        self.pane.show_session()
        return pinned

    # Edits

    def action_undo(self) -> None:
        """Take back the latest edit."""
        self._walk(self.session.undo, "nothing to undo")

    def action_redo(self) -> None:
        """Make it again."""
        self._walk(self.session.redo, "nothing to redo")

    def _walk(self, step: Callable[[], bool], nothing: str) -> None:
        self.design.flush()
        before = self.session.edits.settings
        if not step():
            self.say(nothing)
        elif self.session.edits.settings != before:
            self.reread()
        else:
            self.changed()

    def action_cancel(self) -> None:
        """Stop what is running."""
        running = [ticket for ticket in self.workshop.running() if ticket.label]
        if not running:
            self.say("nothing is running")
            return
        self.workshop.cancel(running[-1].kind)
        self.say(f"cancelled: {running[-1].label}")

    # Files

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
        from libra_planner.spec import bundled

        return self.session.path.resolve().parent == bundled.folder("examples").resolve()

    def action_save_as(self) -> None:
        """Write the plan to another file."""
        self.design.flush()
        self._ask_path(lambda: None)

    def _ask_path(self, then: Callable[[], None]) -> None:

        def done(answer: str | None) -> None:
            if answer and answer.strip():
                target = Path(answer.strip()).expanduser()
                self._ask_replace(target, lambda: self._write(target, then))

        name = self.session.path.name
        why = "a bundled example is not changed: give the copy a place"
        hint = why if self.is_bundled() else ""
        self.push_screen(Prompt("Save as", name, hint=hint), done)

    def _ask_replace(self, target: Path, then: Callable[[], None]) -> None:
        """Ask before a file that is not the open plan's is replaced."""
        from libra_planner.tui.saving import replaced

        def done(answer: str | None) -> None:
            if answer == "r":
                then()
            else:
                self.say(f"nothing saved: {target} is as it was")

        text = replaced(self.session.path, target)
        if not text:
            then()
            return
        self.push_screen(Question("Replace a file", text, {"r": "replace it"}), done)

    def _write(self, target: Path, then: Callable[[], None]) -> None:
        session = self.session

        def call(_ticket: Any) -> list[Path]:
            from libra_planner.tui.saving import save_plan

            return save_plan(session.path, session.edits.settings, target)

        def done(kept: list[Path]) -> None:
            copies = f"; the file before is {kept[0].name}" if kept else ""
            session.file_written(target)
            self.say(f"saved {target}{copies}")
            self.remember()
            self.read()
            then()

        self.workshop.start("save", "saving", call=call, done=done)

    def load_pin(self, pin: Pin) -> None:
        """Go back to a pinned design and its plan."""
        edits, said = Edits(pin.settings_now(), pin.bandwidth_GBps), f"loaded {pin.name}"
        if pin.path == self.session.path:
            self.session.restore(edits)
            self.session.came_from(pin.called)
            self.reread()
            self.say(said)
        else:
            self.guard(lambda: self._open(pin.path, edits, pin.called, said=said))

    def action_open(self) -> None:
        """Open another plan."""
        self.guard(self._ask_open)

    def _ask_open(self) -> None:
        from libra_planner.spec import bundled

        plans = [(one.path, one.path) for one in recent.recent_plans()]
        examples = [(name, str(bundled.example(name))) for name in bundled.names("examples")]
        listed = plans + [(f"example {name}", path) for name, path in examples]

        def done(answer: str | None) -> None:
            if answer:
                self._open(Path(answer).expanduser())

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

    def action_leave(self) -> None:
        """Leave the cockpit."""
        self.guard(self._leave)

    async def action_quit(self) -> None:
        """Textual's own way out, guarded."""
        self.action_leave()

    def _leave(self) -> None:
        self.remember()
        self.workshop.cancel_all()
        self.exit(0)

    def remember(self) -> None:
        """Put the plan and its design on the list of recent ones."""
        session = self.session
        if session.reading is not None and session.reading.document is not None:
            path = str(session.path.resolve())
            recent.remember(recent.RecentPlan(path, session.edits.bandwidth_GBps))

    # The rest

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Panel("Keys", partial(help_text, self.pane.id or ""), wide=True))

    async def action_theme(self) -> None:
        """Dark or light."""
        name = "light" if self.current_theme.dark else "dark"
        self.say(f"{name} colours")
        await asyncio.sleep(FRAME_S)  # The words answer the key: everything gets other colours.
        self.theme = f"textual-{name}"
