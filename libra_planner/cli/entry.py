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

        code = main()
    except KeyboardInterrupt:  # While Python was still importing.
        code = 130
    if code == 130:
        _leave(code)
    raise SystemExit(code)


def _leave(code: int) -> NoReturn:
    """End at once: a Python that once saw an interrupt in generated code ends itself by its signal,
    whatever the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # Closed, or without a reader.
            stream.flush()
    os._exit(code)
