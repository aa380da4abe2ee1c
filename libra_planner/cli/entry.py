"""The process of the command line: from its first import to its exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn


def run() -> NoReturn:
    """Run the command of this process and end it."""
    try:
        from libra_planner.cli.main import main

        raise SystemExit(main(at_interrupt=_leave))
    except KeyboardInterrupt:  # While Python was still importing.
        _leave(130)


def _leave(code: int) -> NoReturn:
    """End at once.

    A Python that saw an interrupt in generated code ends itself by its signal, whatever the exit
    code; and a compiler's objects that were interrupted may not survive being cleared up.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # Closed, or without a reader.
            stream.flush()
    os._exit(code)
