"""What all screens have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.containers import Container

if TYPE_CHECKING:
    from libra_planner.tui.app import Cockpit
    from libra_planner.tui.session import Session


class Pane(Container):
    """One screen; it shows the session when it is told to."""

    @property
    def cockpit(self) -> Cockpit:
        """The application."""
        return cast("Cockpit", self.app)

    @property
    def session(self) -> Session:
        """The open plan."""
        return self.cockpit.session

    def show_session(self) -> None:
        """Bring everything up to date; called when the screen is seen or the plan changes."""

    def take_focus(self) -> None:
        """Focus what keys should go to; called when the screen is entered."""
