"""Between Textual and a terminal: odd bytes and bursts that come, texts that go, last words."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.driver import Driver
from textual.events import Event, Key, Paste
from textual.filter import LineFilter
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from libra_planner.plain_text import without_controls
from libra_planner.tui.disk.files import state_folder


def any_bytes_driver(driver: type[Driver]) -> type[Driver]:
    """Textual's driver, which bytes that are not UTF-8 do not end: they are no keys."""
    if sys.platform == "win32":
        return driver
    from textual.drivers.linux_driver import LinuxDriver

    class AnyBytesDriver(LinuxDriver):
        """Begins to read again after bytes that are no text."""

        def run_input_thread(self) -> None:
            while not self.exit_event.is_set():
                with suppress(UnicodeDecodeError):
                    super().run_input_thread()

    return AnyBytesDriver if driver is LinuxDriver else driver


class Passed(Message):
    """Goes the way of a key, behind it: where it arrives the key has done what it is bound to."""

    def __init__(self, turn: int) -> None:
        super().__init__()
        self.turn = turn


_REPEATED = frozenset(
    [
        "up",
        "down",
        "left",
        "right",
        "pageup",
        "pagedown",
        "plus",
        "equals_sign",
        "minus",
        "underscore",
        "j",
        "k",
        "u",
        "U",
    ]
)
"""Keys that are held down: they open nothing, and do not wait for one another."""
_ROUNDS = 2
"""Of what follows a key: behind the key, and behind the messages that it led to."""
_MOST_WAIT_S = 0.1
"""For a key before; its way may have been closed, with all that was on it."""
_MOST_PAINTING_S = 1.0
"""For a field that is about to be seen."""


class KeysInTurn(App[int]):
    """An application whose keys wait until the ones before have done what they are bound to.

    Textual gives every key to what has the focus at once, and a binding runs when the key has come
    up from there: of a burst, text would come before Ctrl+K, and be lost behind a key that opens a
    panel for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: deque[Key | Paste] = deque()
        self._turn = self._rounds_left = 0
        self._only_repeated = False
        self._most_wait: Timer | None = None

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._held or self._waits(event):
            self._held.append(event)
            if self._most_wait is None:
                self._wait_at_most(_MOST_WAIT_S)
        else:
            await self._take(event)

    def hold_keys(self, widget: Widget, then: Callable[[], None]) -> None:
        """Keep keys until a widget is painted, and something that gives them a field is done."""

        def painted() -> None:
            then()
            self.call_later(self._follow)  # Behind what it asked of the application.

        self._turn, self._rounds_left, self._only_repeated = self._turn + 1, _ROUNDS, False
        self._wait_at_most(_MOST_PAINTING_S)
        # The first time its styles may be those of before.
        widget.call_after_refresh(widget.call_after_refresh, painted)

    def _waits(self, event: Key | Paste) -> bool:
        """Whether keys that are on their way come before one."""
        is_repeated = isinstance(event, Key) and event.key in _REPEATED
        return bool(self._rounds_left) and not (is_repeated and self._only_repeated)

    async def _take(self, event: Key | Paste) -> None:
        """Hand a key on, and let what follows it begin; text stays in order by itself."""
        focused = self.focused if self.screen_stack else None
        if isinstance(event, Paste):
            is_quick = True
        elif focused is not None and focused.check_consume_key("a", "a"):
            is_text = focused.check_consume_key(event.key, event.character)
            is_quick = is_text and not getattr(focused, "OPENS_AT_A_LETTER", False)
        else:
            is_quick = event.key in _REPEATED
        await super().on_event(event)
        if not is_quick:
            self._turn, self._rounds_left = self._turn + 1, _ROUNDS
            self._only_repeated = isinstance(event, Key) and event.key in _REPEATED
            await self._follow()

    async def _follow(self) -> None:
        target = (self.focused or self.screen) if self.screen_stack else None
        if target is None or not target.post_message(Passed(self._turn)):
            await self._take_next()

    async def on_passed(self, event: Passed) -> None:
        """A round is done."""
        event.stop()
        if event.turn != self._turn or not self._rounds_left:
            return  # It came too late.
        self._rounds_left -= 1
        await (self._follow() if self._rounds_left else self._take_next())

    def _wait_at_most(self, wait_s: float) -> None:
        """Let keys wait for the turn that it is so long, and no longer."""
        turn = self._turn

        async def end() -> None:
            if turn == self._turn:  # Else this was on its way when another wait began.
                await self._take_next()

        if self._most_wait is not None:
            self._most_wait.stop()
        self._most_wait = self.set_timer(wait_s, end)

    async def _take_next(self) -> None:
        """Take the keys that waited, up to the next one that others wait for."""
        self._rounds_left = 0
        if self._most_wait is not None:
            self._most_wait.stop()
            self._most_wait = None
        while self._held and not self._waits(self._held[0]):
            await self._take(self._held.popleft())
        if self._held:
            self._wait_at_most(_MOST_WAIT_S)


class Unheard(LineFilter):
    """Leaves out what a terminal would obey, wherever a text came from."""

    def apply(self, segments: list[Segment], _: Color) -> list[Segment]:
        """Segments of the same widths."""
        return [Segment(without_controls(one.text), one.style, one.control) for one in segments]


class LastWords(Console):
    """Where Textual prints a fault of the cockpit's own: in a file, and here only that it is.

    Parameters
    ----------
    settings : gives the edits that were not saved, as ``--set`` takes them.
    """

    def __init__(self, settings: Callable[[], Iterable[str]]) -> None:
        super().__init__(markup=False, highlight=False, stderr=True)
        self._edits = settings

    def print(self, *objects: Any, **_options: Any) -> None:
        edits = "".join(f"\n  --set {setting!r}" for setting in self._edits())
        kept = f"\nEdits that were not saved, for the command line:{edits}" if edits else ""
        fault = "libra-planner tui: stopped by a fault of its own"
        super().print(Text(f"{fault}. {_log_words(objects)}{kept}"))


def _log_words(objects: Iterable[Any]) -> str:
    """Where what Textual says of a fault is written."""
    log = state_folder() / "crash.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            Console(file=file, color_system=None).print(*objects)
    except OSError:
        return "Details could not be written down."
    return f"Details are in {log}."
