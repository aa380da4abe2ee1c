"""The rows around a screen: which one is seen, how things stand, keys that do something here."""

from __future__ import annotations

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.screen import Screen
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


_PALETTE = "^p palette"


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
