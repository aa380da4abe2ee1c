"""What the actions do: a part of the application of its own, so that both stay readable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from libra_planner.errors import Place, PlannerError
from libra_planner.tui import recent
from libra_planner.tui.dialogs import OpenDialog, Panel, Prompt, Question, help_text
from libra_planner.tui.session import Bandwidth, Optimum, Pin, best_design, equal_split_GBps

if TYPE_CHECKING:
    from libra_planner.tui.app import Cockpit


class Commands:
    """Actions of the cockpit."""

    @property
    def _app(self) -> Cockpit:
        return cast("Cockpit", self)

    # Design

    def action_optimize(self) -> None:
        """Find the certified best design."""
        app, problem = self._app, self._current_problem()
        if problem is None:
            return

        def call(_ticket: Any) -> Optimum:
            return best_design(problem)

        app.workshop.start("optimize", "optimising", call=call, done=self._optimized)
        app.say("")

    def _optimized(self, optimum: Optimum) -> None:
        app = self._app
        app.session.optimum = optimum
        app.change_bandwidth(tuple(optimum.design.bandwidth_GBps))
        app.say("optimised: proven best for these rules")

    def _current_problem(self) -> Any:
        """The plan in numbers, or ``None`` with a word why not."""
        app = self._app
        app.design.flush()
        if app.session.problem is None or app.session.faults:
            app.say("the plan has faults: correct them first (f goes to the first)")
            return None
        if not app.session.current:
            app.say("the plan is being read: try again")
            return None
        return app.session.problem

    def action_equal(self) -> None:
        """Spread the total evenly."""
        app = self._app
        if app.session.problem is not None:
            app.change_bandwidth(equal_split_GBps(app.session.problem))

    async def action_bars(self) -> None:
        """Go to the bars."""
        await self._app.action_show("design")
        self._app.design.query_one("#bandwidths").focus()

    async def action_form(self) -> None:
        """Go to the form."""
        await self._app.action_show("design")
        self._app.design.query_one("#form").focus_first()  # type: ignore[attr-defined]

    def action_unfocus(self) -> None:
        """Leave a text field."""
        self._app.pane.take_focus()

    def ask_value(self, key: str, label: str, text: str) -> None:
        """Type a value that is none of the known names."""

        def done(answer: str | None) -> None:
            if answer is not None:
                self._app.apply_edit(key, answer)

        hint = "a name, a path that ends in .yaml, or YAML"
        self._app.push_screen(Prompt(label, text, hint=hint), done)

    def ask_bandwidth(self, dim: int) -> None:
        """Type the bandwidth of a dimension, or of all."""
        app = self._app
        problem, values = app.session.problem, app.session.edits.bandwidth_GBps
        if problem is None or values is None:
            return

        def done(answer: str | None) -> None:
            if answer is not None:
                app.change_bandwidth(self._typed(answer, dim))

        label = problem.topology.labels[dim]
        hint = "GB/s per NPU, one direction; all dimensions separated by commas"
        value = f"{values[dim]:.10g}"
        app.push_screen(Prompt(label, value, hint=hint, check=self._bandwidth_check(dim)), done)

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

        session = self._app.session
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
                self._app.session.add_rule(answer.strip())
                self._app.reread()

        hint = "such as: total == 500 GB/s, dim1 >= dim2, cost <= 20 M$, step_time <= 900 ms"
        self._app.push_screen(Prompt("New rule", hint=hint), done)

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""
        app = self._app
        if app.evaluation is None or not app.session.current:
            app.say("nothing to pin: the plan has faults")
            return None
        pinned = app.session.pin(app.evaluation)
        app.say(f"pinned as {pinned.name}; 2 compares")
        app.pane.show_session()
        return pinned

    # Edits

    def action_undo(self) -> None:
        """Take back the latest edit."""
        self._walk(self._app.session.undo, "nothing to undo")

    def action_redo(self) -> None:
        """Make it again."""
        self._walk(self._app.session.redo, "nothing to redo")

    def _walk(self, step: Callable[[], bool], nothing: str) -> None:
        app = self._app
        app.design.flush()
        before = app.session.edits.settings
        if not step():
            app.say(nothing)
        elif app.session.edits.settings != before:
            app.reread()
        else:
            app.changed()

    def action_cancel(self) -> None:
        """Stop what is running."""
        app = self._app
        running = [ticket for ticket in app.workshop.running() if ticket.label]
        if not running:
            app.say("nothing is running")
            return
        app.workshop.cancel(running[-1].kind)
        app.say(f"cancelled: {running[-1].label}")

    # Files

    def action_save(self) -> None:
        """Write the edits into the plan."""
        self.save(lambda: None)

    def save(self, then: Callable[[], None]) -> None:
        """Save where the plan is, or ask where if it is one of the bundled examples."""
        app = self._app
        app.design.flush()
        if self.is_bundled():
            self._ask_path(then)
        else:
            self._write(app.session.path, then)

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples, which are not to be changed."""
        from libra_planner.spec import bundled

        return self._app.session.path.resolve().parent == bundled.folder("examples").resolve()

    def action_save_as(self) -> None:
        """Write the plan to another file."""
        self._app.design.flush()
        self._ask_path(lambda: None)

    def _ask_path(self, then: Callable[[], None]) -> None:
        app = self._app

        def done(answer: str | None) -> None:
            if answer and answer.strip():
                self._write(Path(answer.strip()).expanduser(), then)

        name = app.session.path.name
        hint = "a bundled example is not changed: give the copy a place" if self.is_bundled() else ""
        app.push_screen(Prompt("Save as", name, hint=hint), done)

    def _write(self, target: Path, then: Callable[[], None]) -> None:
        app, session = self._app, self._app.session

        def call(_ticket: Any) -> list[Path]:
            from libra_planner.tui.saving import save_plan

            return save_plan(session.path, session.edits.settings, target)

        def done(kept: list[Path]) -> None:
            copies = f"; the file before is {kept[0].name}" if kept else ""
            session.file_written(target)
            app.say(f"saved {target}{copies}")
            self.remember()
            app.read()
            then()

        app.workshop.start("save", "saving", call=call, done=done)

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
                self.remember()
                self._app.open_plan(Path(answer).expanduser())

        self._app.push_screen(OpenDialog(listed), done)

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""
        app = self._app
        app.design.flush()
        if not app.session.dirty:
            then()
            return

        def done(answer: str | None) -> None:
            if answer == "s":
                self.save(then)
            elif answer == "d":
                then()

        n = len(app.session.edits.settings)
        text = f"{app.session.path.name} has {n} unsaved edit{'s' if n > 1 else ''}."
        app.push_screen(Question("Unsaved edits", text, {"s": "save", "d": "drop them"}), done)

    def action_leave(self) -> None:
        """Leave the cockpit."""
        self.guard(self._leave)

    async def action_quit(self) -> None:
        """Textual's own way out, guarded."""
        self.action_leave()

    def _leave(self) -> None:
        self.remember()
        self._app.workshop.cancel_all()
        self._app.exit(0)

    def remember(self) -> None:
        """Put the plan and its design on the list of recent ones."""
        session = self._app.session
        if session.reading is not None and session.reading.document is not None:
            path = str(session.path.resolve())
            recent.remember(recent.RecentPlan(path, session.edits.bandwidth_GBps))

    # The rest

    def action_help(self) -> None:
        """All keys."""
        self._app.push_screen(Panel("Keys", help_text(), wide=True))

    def action_theme(self) -> None:
        """Dark or light."""
        app = self._app
        app.theme = "textual-light" if app.current_theme.dark else "textual-dark"
