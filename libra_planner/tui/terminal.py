"""A terminal whose keys may be any bytes."""

from __future__ import annotations

import sys
from contextlib import suppress

from textual.driver import Driver


def of_any_bytes(driver: type[Driver]) -> type[Driver]:
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
