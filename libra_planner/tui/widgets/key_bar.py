"""The last row: keys that do something here. One widget: a change of focus costs nothing."""

from __future__ import annotations

from rich.text import Text
from textual.events import Click
from textual.screen import Screen
from textual.widget import Widget

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
