"""Start the cockpit in this terminal, or serve it to browsers on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from libra_planner.errors import PlannerError, SpecError
from libra_planner.processes import planner_command, same_imports, variables

LOOPBACK = "127.0.0.1"
"""The cockpit can write files: it is never offered to other machines."""

SWITCH_INTERVAL_S = 5e-4
"""Time after which a thread that reads or imports lets the interface have its turn; Python's own
is 5 ms."""


def run(plan: str | None) -> None:
    """Open a plan, or the first example, in this terminal.

    Raises
    ------
    SpecError
        Without a terminal, or a file to read there.
    """
    served = "TEXTUAL_DRIVER" in os.environ  # As textual-serve runs it: through pipes.
    # None where it is closed; Textual draws on stderr.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not served and not all(stream is not None and stream.isatty() for stream in streams):
        if plan is not None:
            from libra_planner.reading.document import read_document

            read_document(plan)  # What is wrong with the file is said first.
        fix = "run it in one, or use optimize, evaluate and check"
        raise SpecError.at(plan or "libra-planner tui", "got no terminal", "expected one", fix)
    from libra_planner.reading.bundled import example
    from libra_planner.tui.app import Cockpit

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    path = example("01_gpt3_4d") if plan is None else Path(plan)
    if Cockpit(path).run() is None:
        raise PlannerError(f"{plan or 'libra-planner tui'}: the cockpit stopped early")


def serve(plan: str | None, port: int, say: Callable[[str], object]) -> None:
    """Serve the cockpit on loopback until interrupted; ``say`` takes the address.

    Raises
    ------
    SpecError
        Without the extra ``[web]``, or where the port cannot be had.
    """
    place = "libra-planner tui: --web"
    try:
        from libra_planner.tui.web import Door
        from libra_planner.tui.web import serve as serve_browsers
    except ImportError:
        got, fix = "got no textual-serve", "pip install 'libra-planner[web]'"
        raise SpecError.at(place, got, "expected it installed", fix) from None
    command = planner_command("tui", *([plan] if plan else []))
    try:
        with variables(same_imports()):
            serve_browsers(command, Door(LOOPBACK, port), say)
    except OSError as error:
        got = f"got port {port}, which cannot be had ({os.strerror(error.errno or 0)})"
        raise SpecError.at(place, got, "expected a free one", "give another --port") from None
