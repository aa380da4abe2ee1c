"""Between Textual and a terminal: odd bytes that come, texts that go, a fault's last words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter

from libra_planner.plain_text import without_controls
from libra_planner.tui.files import state_folder


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
