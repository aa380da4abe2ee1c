"""The application: what every action does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from libra_planner.errors import Place, PlannerError
from libra_planner.tui.core import FRAME_S
from libra_planner.tui.dialogs import Panel, Prompt, help_text
from libra_planner.tui.plan_files import CockpitFiles
from libra_planner.tui.plans import Bandwidth, Optimum, Pin, best_design, equal_split_GBps
from libra_planner.tui.processes import apart
from libra_planner.tui.session import Edits


class Cockpit(CockpitFiles):
    """The cockpit of one plan at a time, with its actions."""

    # Design

    def action_optimize(self) -> None:
        """Find the certified best design."""
        problem = self._current_problem()
        if problem is None:
            return

        call = apart(partial(best_design, problem))
        done = partial(self._optimized, self.session.fingerprint)
        self.workshop.start("optimize", "optimising", call=call, done=done)
        self.say("")

    def _optimized(self, fingerprint: bytes | None, optimum: Optimum) -> None:
        self.design.flush()
        self.session.keep_optimum(fingerprint, optimum)
        if self.session.optimum is not optimum:
            self.say("the plan was edited meanwhile: o finds the best design of what it is now")
            return
        self.change_bandwidth(optimum.bandwidth_GBps)
        self.session.came_from(f"optimum of {optimum.problem.objective.replace('_', ' ')}")
        words = "optimised: proven best for these rules"
        self.say(words, lambda: self.session.is_proven(self.evaluation))

    def _current_problem(self) -> Any:
        """The plan in numbers, or ``None`` with a word why not."""
        self.design.flush()
        if self.session.reading and (self.session.problem is None or self.session.faults):
            self.say("the plan has faults: correct them first (f goes to the first)")
            return None
        if not self.session.current:
            self.say("the plan was being read: try again")
            return None
        return self.session.problem

    def action_equal(self) -> None:
        """Spread the total evenly."""
        problem = self._current_problem()
        if problem is not None:
            self.change_bandwidth(equal_split_GBps(problem))

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
        from libra_planner.studies.designs import bandwidth_bytes_per_s
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

    # Leaving, and the rest

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

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Panel("Keys", partial(help_text, self.pane.id or ""), wide=True))

    async def action_theme(self) -> None:
        """Dark or light."""
        name = "light" if self.current_theme.dark else "dark"
        self.say(f"{name} colours")
        await asyncio.sleep(FRAME_S)  # The words answer the key: everything gets other colours.
        self.theme = f"textual-{name}"
