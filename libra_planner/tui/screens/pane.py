"""What all screens have in common, and what they need of the application."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, cast

from textual.containers import Container
from textual.screen import ModalScreen
from textual.widget import Widget

from libra_planner.tui.session import Bandwidth, Edits, Frontier, Pin, Session, frontier
from libra_planner.tui.work import Ticket, Workshop, error_text, run_apart

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.design import FrontierPoint

N_POINTS = 25
"""Of a frontier, as `pareto` finds it."""
VERY_WIDE = 150
"""Cells from which there is room for pictures beside plan and figures."""

_Result = TypeVar("_Result")


class Host(Protocol):
    """The application, as its screens see it."""

    session: Session
    workshop: Workshop
    evaluation: Evaluation | None
    no_figures: str

    @property
    def pane(self) -> Pane:
        """The screen that is seen."""

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written."""

    def apply_edit(self, key: str, text: str) -> None:
        """Give a value of the plan."""

    def reread(self) -> None:
        """Read the plan again after its settings changed."""

    def when_read(self, then: Callable[[], object]) -> None:
        """Do something once the plan is read, which is under way."""

    def change_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen."""

    def take_strategy(self, degrees: str, bandwidth_GBps: Bandwidth, origin: str) -> None:
        """Make degrees and a design those of the plan."""

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""

    def load_pin(self, pin: Pin) -> None:
        """Go back to a pinned design and its plan."""

    def open_plan(self, path: Path, edits: Edits | None = None, origin: str = "") -> None:
        """Open another plan; ``origin`` says how the design of ``edits`` came to be."""

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""

    def read(self) -> None:
        """Read the plan as it stands."""

    def ask(
        self,
        dialog: ModalScreen[str | None],
        then: Callable[[str], None],
        otherwise: Callable[[], None] = lambda: None,
    ) -> None:
        """Show a panel and hand its answer on, if there is one."""

    def show_error(self, title: str, error: Exception) -> None:
        """A readable panel."""

    def say(self, text: str, holds: Callable[[], bool] | None = None) -> None:
        """Put a message on the status line, as long as it holds, else until the screen changes."""

    def say_of_edit(self, text: str) -> None:
        """Say something of the latest edit, as long as it is that and the screen stays."""


class Pane(Container):
    """One screen; it shows the session when it is told to."""

    KEYED: ClassVar[tuple[type[Widget], ...]] = ()
    """Widgets on it that have keys of their own, for the help and the palette."""

    FIRST: ClassVar[str] = "DataTable"
    """The widget that keys should go to when the screen is entered."""

    WAITS: ClassVar[bool] = False
    """Whether it is empty until the plan is read, and says how far that is."""

    @property
    def cockpit(self) -> Host:
        """The application."""
        return cast(Host, self.app)

    @property
    def session(self) -> Session:
        """The open plan."""
        return self.cockpit.session

    def show_session(self) -> None:
        """Bring everything up to date; called when the screen is seen or the plan changes."""

    def follow(self, kind: str, words: str) -> None:
        """Show how far the search of a strategy is, while there is nothing else to show."""
        if kind != "read":
            return
        self.session.read_so_far = words
        if self.WAITS and self.session.problem is None:
            self.cockpit.no_figures = self.session.without("figures")
            self.show_waiting()

    def show_waiting(self) -> None:
        """Show what the screen waits for."""
        self.show_session()

    def take_focus(self) -> None:
        """Focus what keys should go to; called when the screen is entered."""
        self.query_one(self.FIRST).focus()

    def say(self, text: str) -> None:
        """Say something on this screen."""

    def fail(self, error: Exception) -> None:
        """Say why work of this screen has no result."""
        self.say(error_text(error))

    def begin(
        self,
        kind: str,
        label: str,
        *,
        call: Callable[[Ticket], _Result],
        done: Callable[[_Result], None],
        partly: Callable[[_Result], None] = lambda _: None,
    ) -> None:
        """Have work done beside the interface; its error is said on this screen."""
        start = self.cockpit.workshop.start
        start(kind, label, call=call, done=done, failed=self.fail, partly=partly)

    def runs(self, kind: str) -> bool:
        """Whether there is work of a kind under way."""
        return any(ticket.kind == kind for ticket in self.cockpit.workshop.running())

    def find_frontier(self) -> None:
        """Have the frontier of the plan as it stands found, unless that is under way."""
        session, host = self.session, self.cockpit
        problem, fingerprint = session.problem, session.fingerprint
        if problem is None or fingerprint is None or self.runs("frontier"):
            return

        from libra_planner.optimizer.only import only_design

        def stopped() -> None:
            self.app.call_later(lambda: host.pane.frontier_failed("no frontier: stopped"))

        def call(ticket: Ticket) -> tuple[FrontierPoint, ...]:
            only = only_design(problem)  # Milliseconds, where there is nothing to choose.
            if only is not None:
                return (only,)
            with ticket.on_cancel(stopped):
                return run_apart(partial(frontier, problem, N_POINTS), ticket)

        def done(points: tuple[FrontierPoint, ...]) -> None:
            session.frontier = Frontier(fingerprint, problem, points)
            host.pane.show_frontier()

        def failed(error: Exception) -> None:
            host.pane.frontier_failed(error_text(error))

        host.workshop.start("frontier", "frontier", call=call, done=done, failed=failed)

    def show_frontier(self) -> None:
        """Show the frontier that was found; called when it is and the screen is seen."""

    def frontier_failed(self, text: str) -> None:
        """Say why there is no frontier."""
