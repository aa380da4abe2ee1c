"""The lines around a sweep's table: how far it is, what leads, which page."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from libra_planner.tui.pane import Pane


class SweepLines(Pane):
    """A screen with these lines."""

    def _say(self, text: str) -> None:
        self.query_one("#sweep-state", Static).update(Text(text))

    def _say_best(self, best: tuple[str, ...], words: str = "Best so far for") -> None:
        """What leads, in lines that stay while the state goes on."""
        text = "\n".join(f"{words} {one}" for one in best)
        self.query_one("#sweep-best", Static).update(Text(text))

    def _failed(self, error: Exception) -> None:
        from libra_planner.tui.work import error_text

        self._say(error_text(error))

    def _page_line(self, text: str) -> None:
        self.query_one("#sweep-page", Static).update(Text(text))

    def _runs(self, kind: str) -> bool:
        return any(ticket.kind == kind for ticket in self.cockpit.workshop.running())
