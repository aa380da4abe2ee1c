"""One row at the top: the screens with their keys, and the open plan."""

from __future__ import annotations

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from libra_planner.tui.actions import SCREENS


class TabBar(Widget):
    """The screens with their keys; a click goes there."""

    DEFAULT_CSS = "TabBar { height: 1; background: $panel; }"

    class Chosen(Message):
        """A screen was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.screen_name = name

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._active, self._plan = SCREENS[0], ""

    def update(self, active: str, plan: str) -> None:
        """Show which screen is seen, and the plan's name."""
        self._active, self._plan = active, plan
        self.refresh()

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        for i, name in enumerate(SCREENS, 1):
            label = f"{i} {name.title()}"
            active = name == self._active
            text.append(f"[{label}]" if active else f" {label} ", "bold" if active else "")
        room = self.size.width - text.cell_len - 1
        if room > 8:
            plan = self._plan if len(self._plan) <= room else f"…{self._plan[-room + 1 :]}"
            text.append(plan.rjust(room), "italic")
        return text

    def on_click(self, event: Click) -> None:
        end = 0
        for i, name in enumerate(SCREENS, 1):
            end += len(f" {i} {name} ")
            if event.x < end:
                self.post_message(self.Chosen(name))
                return
