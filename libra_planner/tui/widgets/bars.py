"""The rows around a screen: which one is seen, how things stand, keys that do something here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from libra_planner.tui.actions import SCREENS

_TICK_S = 0.25


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


_PALETTE = "^p palette"


class StatusLine(Static):
    """One row of words: what is running, else what was said last, as long as it holds.

    Parameters
    ----------
    running : gives the labels of what is running, the latest last.
    """

    DEFAULT_CSS = "StatusLine { height: 1; background: $panel; padding: 0 1; }"

    def __init__(self, running: Callable[[], Sequence[str]]) -> None:
        super().__init__(id="status")
        self._running_labels = running
        self._said = self._progress = self._seen = ""
        self._holds: Callable[[], bool] = lambda: True

    def on_mount(self) -> None:
        self.set_interval(_TICK_S, self.show)

    def say(self, text: str, holds: Callable[[], bool]) -> None:
        """Say something that stands there as long as it holds."""
        self._said, self._holds = text, holds
        self.show()

    def progress(self, done: int, n: int) -> None:
        """How far the latest work is, for the next tick."""
        self._progress = f" {done} of {n}"

    def show(self) -> None:
        """Bring the words up to date."""
        running = self._running_labels()
        if running:
            text = f"{running[-1]} ...{self._progress}  (x cancels)"
        else:
            text, self._progress = self._said if self._holds() else "", ""
        if text != self._seen:
            self._seen = text
            self.update(Text(text, no_wrap=True), layout=False)


class KeyBar(Widget):
    """Keys of what has the focus, then of the application; a click does what the key does."""

    DEFAULT_CSS = "KeyBar { height: 1; background: $panel; }"

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._ends: list[tuple[int, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _screen: Screen[object]) -> None:
        self.refresh()

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        self._ends = []
        room = self.size.width - len(_PALETTE) - 2
        for key, label, action in self._shown():
            if text.cell_len + len(key) + len(label) + 2 > room:
                break
            text.append(f" {key}", "bold").append(f" {label}", "dim")
            self._ends.append((text.cell_len, action))
        text.append(" " * max(room - text.cell_len, 0))
        self._ends.append((max(room, 0), ""))
        self._ends.append((self.size.width, "app.command_palette"))
        return text.append(" ^p", "bold").append(" palette", "dim")

    def _shown(self) -> list[tuple[str, str, str]]:
        """Key, label and action of each binding that is to be shown, those nearest first."""
        found: dict[tuple[str, str], tuple[str, str, str]] = {}
        focused = self.screen.focused
        typing = focused is not None and focused.check_consume_key("a", "a")
        for node, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and (binding.show or (typing and binding.key == "escape")):
                key = self.app.get_key_display(binding)
                name = "app" if node is self.app else "focused"
                found.setdefault((binding.action, name), (key, binding.description, binding.key))
        own = [one for (_, name), one in found.items() if name != "app"]
        return own + [one for (_, name), one in found.items() if name == "app"]

    async def on_click(self, event: Click) -> None:
        for end, key in self._ends:
            if event.x < end:
                if key == "app.command_palette":
                    await self.app.run_action("command_palette")
                elif key:
                    self.app.simulate_key(key)
                return
