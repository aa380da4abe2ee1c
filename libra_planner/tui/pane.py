"""What all screens have in common, and what they need of the application."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from textual.containers import Container
from textual.widget import Widget

from libra_planner.tui.plans import Bandwidth, Pin
from libra_planner.tui.session import Edits, Session
from libra_planner.tui.typed_paths import working_directory
from libra_planner.tui.work import Workshop

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation


class Host(Protocol):
    """The application, as its screens see it."""

    session: Session
    workshop: Workshop
    evaluation: Evaluation | None
    no_figures: str

    def apply_edit(self, key: str, text: str) -> None:
        """Give a value of the plan."""

    def reread(self) -> None:
        """Read the plan again after its settings changed."""

    def change_bandwidth(self, bandwidth_GBps: Bandwidth, subject: str | None = None) -> None:
        """Put another design on screen."""

    def ask_value(self, key: str, label: str, text: str) -> None:
        """Type a value that is none of the known names."""

    def ask_bandwidth(self, dim: int) -> None:
        """Type the bandwidth of a dimension."""

    def action_pin(self) -> Pin | None:
        """Keep the design on screen."""

    def load_pin(self, pin: Pin) -> None:
        """Go back to a pinned design."""

    def open_plan(self, path: Path, edits: Edits | None = None, origin: str = "") -> None:
        """Open another plan; ``origin`` says how the design of ``edits`` came to be."""

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples."""

    def say(self, text: str) -> None:
        """Put a message on the status line."""


class Pane(Container):
    """One screen; it shows the session when it is told to."""

    KEYED: ClassVar[tuple[type[Widget], ...]] = ()
    """Widgets on it that have keys of their own, for the help and the palette."""

    @property
    def cockpit(self) -> Host:
        """The application."""
        return cast(Host, self.app)

    @property
    def session(self) -> Session:
        """The open plan."""
        return self.cockpit.session

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written: beside it, but not among the examples."""
        return working_directory() if self.cockpit.is_bundled() else self.session.path.parent

    def show_session(self) -> None:
        """Bring everything up to date; called when the screen is seen or the plan changes."""

    def take_focus(self) -> None:
        """Focus what keys should go to; called when the screen is entered."""
