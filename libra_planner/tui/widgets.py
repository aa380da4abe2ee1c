"""What is on more than one screen: rows around it, texts, tables, lists of choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click, Resize
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import OptionList, Static

from libra_planner.tui.actions import SCREENS


@dataclass(frozen=True)
class Drawn:
    """What is drawn for the width that there is."""

    picture: Callable[[int], Text]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.picture(options.max_width)


class Card(Static):
    """Shows tables and texts, rendered once for its width."""

    def __init__(self, text: str = "", **options: Any) -> None:
        super().__init__(text, **options)
        self._shown: RenderableType | Callable[[int], RenderableType] = text
        self._n_lines, self._drawn_width = 1, 0

    def show(self, content: RenderableType | Callable[[int], RenderableType]) -> None:
        """Show something else, or what a function makes of the width, whenever that changes."""
        self._shown = content
        self._draw()

    def on_resize(self, _event: Resize) -> None:
        if self.content_size.width != self._drawn_width:
            self._draw()

    def _draw(self) -> None:
        width = self.content_size.width or self._drawn_width  # Unseen: as it was seen last.
        if not width:
            return
        console = self.app.console
        options = console.options.update(width=width, height=None, no_wrap=False, markup=False)
        text = Text(no_wrap=True, overflow="crop")
        shown = self._shown(width) if callable(self._shown) else self._shown
        for segment in console.render(shown, options):
            text.append(segment.text, segment.style)
        text.rstrip()
        n_lines = text.plain.count("\n") + 1
        self.update(text, layout=n_lines != self._n_lines)
        self._n_lines, self._drawn_width = n_lines, width


class Notes(VerticalScroll):
    """What stands beside a table, in a share of its room: Tab and arrows show what is beyond.

    Parameters
    ----------
    title : on the line over it; without one there is no line.
    """

    def __init__(self, *children: Widget, title: str = "", **options: Any) -> None:
        super().__init__(*children, **options)
        self._title = title
        self.set_class(bool(title), "-titled")

    def allow_focus(self) -> bool:
        """Keys go there only where they show something."""
        return self.show_vertical_scrollbar

    def watch_show_vertical_scrollbar(self, is_cut: bool) -> None:
        """Say how the rest is seen."""
        if self._title:
            self.border_title = f"{self._title} (Tab, then ↓: the rest)" if is_cut else self._title


class Checklist(OptionList):
    """Entries that Space, Enter or a click chooses and drops.

    Parameters
    ----------
    title : on the border.
    names : the entries.
    chosen : indices of those that are chosen at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Choose", show=True, tooltip="Choose the entry or drop it.")
    ]

    def __init__(
        self, title: str, names: Iterable[str], chosen: Iterable[int] = (), **options: Any
    ) -> None:
        self.names, self._chosen = list(names), set(chosen)
        super().__init__(*map(self._prompt, range(len(self.names))), **options)
        self.border_title = title

    def on_mount(self) -> None:
        """The first Space has a row to choose."""
        self.action_first()

    def _prompt(self, index: int) -> Text:
        return Text(f"[{'x' if index in self._chosen else ' '}] {self.names[index]}")

    @property
    def chosen(self) -> list[int]:
        """Indices of the chosen entries, in order."""
        return sorted(self._chosen)

    def show(self, names: list[str]) -> None:
        """Other entries; new ones are chosen."""
        self._chosen = {i for i in range(len(names)) if i in self._chosen or i >= len(self.names)}
        self.names, row = names, self.highlighted or 0
        self.clear_options()
        self.add_options([self._prompt(i) for i in range(len(names))])
        self.highlighted = min(row, len(names) - 1) if names else None

    def action_select(self) -> None:
        """Choose the entry or drop it, before the next key asks what is chosen."""
        index = self.highlighted
        if index is not None:
            self._chosen ^= {index}
            self.replace_option_prompt_at_index(index, self._prompt(index))


_TICK_S = 0.25


class TabBar(Widget):
    """The screens with their keys; a click goes there."""

    @dataclass
    class Chosen(Message):
        """A screen was clicked."""

        screen_name: str

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


_ALWAYS = (("q", "Quit", "leave"), ("^p", "palette", "command_palette"))
"""Keys at the right end: with them every other one is found, and the way out."""


ON_DISK = "changed on disk"
"""What is said as long as it is so."""


class StatusLine(Static):
    """One row of words: what is running, else what was said last, as long as it holds.

    Parameters
    ----------
    running : gives the labels of what is running, the latest last.
    is_stale : whether files say something else by now than what is on screen.
    """

    def __init__(
        self, running: Callable[[], Sequence[str]], is_stale: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(id="status")
        self._is_stale = is_stale
        self._running_labels = running
        self._said = self._seen = ""
        self._progress: dict[str, str] = {}
        self._holds: Callable[[], bool] = lambda: True

    def on_mount(self) -> None:
        self.set_interval(_TICK_S, self.show)

    def say(self, text: str, holds: Callable[[], bool]) -> None:
        """Say something that stands there as long as it holds."""
        self._said, self._holds = text, holds
        self.show()

    def progress(self, label: str, words: str) -> None:
        """How far the work of a label is, for the next tick."""
        self._progress[label] = f" {words}"

    def show(self) -> None:
        """Bring the words up to date."""
        running = self._running_labels()
        if running:
            text = f"{running[-1]} (x cancels) ...{self._progress.get(running[-1], '')}"
        else:
            text = self._said if self._holds() else ""
            if self._is_stale() and ON_DISK not in text:
                text = f"[R: the file {ON_DISK}] {text}"
        self._progress = {name: far for name, far in self._progress.items() if name in running}
        if text != self._seen:
            self._seen = text
            self.update(Text(text, no_wrap=True, overflow="ellipsis"), layout=False)


class KeyBar(Widget):
    """Keys of what has the focus, then of the application; a click does what the key does."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._ends: list[tuple[int, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._follow)

    def _follow(self, _screen: Screen[object]) -> None:
        self.refresh()

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        self._ends = []
        room = self.size.width - sum(len(key) + len(label) + 2 for key, label, _ in _ALWAYS)
        for key, label, action in self._keys():
            if text.cell_len + len(key) + len(label) + 2 > room:
                break
            text.append(f" {key}", "bold").append(f" {label}", "dim")
            self._ends.append((text.cell_len, action))
        text.append(" " * max(room - text.cell_len, 0))
        self._ends.append((max(room, 0), ""))
        for key, label, action in _ALWAYS:
            text.append(f" {key}", "bold").append(f" {label}", "dim")
            self._ends.append((text.cell_len, f"app.{action}"))
        return text

    def _keys(self) -> list[tuple[str, str, str]]:
        """Key, label and action of each binding that is to be shown, those nearest first."""
        found: dict[tuple[str, str], tuple[str, str, str]] = {}
        focused = self.screen.focused
        typing = focused is not None and focused.check_consume_key("a", "a")
        for node, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and (binding.show or (typing and binding.key == "escape")):
                key = self.app.get_key_display(binding)
                name = "app" if node is self.app else "focused"
                found.setdefault((binding.action, name), (key, binding.description, binding.key))
        return [one for _, one in sorted(found.items(), key=lambda item: item[0][1] == "app")]

    async def on_click(self, event: Click) -> None:
        for end, key in self._ends:
            if event.x < end:
                if key.startswith("app."):
                    await self.app.run_action(key.removeprefix("app."))
                elif key:
                    self.app.simulate_key(key)
                return


class Backdrop(Screen[None]):
    """The screen behind all panels: a change of focus paints what it concerns, not everything.

    Panels have no breakpoints: theirs would lay them out, and paint what is behind them, once more.
    """

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it for instances.
        (0, "-narrow"),
        (110, "-wide"),
        (150, "-very-wide"),
    ]
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
