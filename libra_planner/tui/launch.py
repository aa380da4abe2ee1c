"""Start the cockpit in this terminal, or serve it to browsers on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from libra_planner.errors import Fault, Place, PlannerError, SpecError
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
        Without a terminal.
    """
    served = "TEXTUAL_DRIVER" in os.environ  # As textual-serve runs it: through pipes.
    if not served and not _in_terminal():
        got, fix = "got no terminal", "run it in one, or use optimize, evaluate and check"
        raise SpecError(Fault(got, "expected one", fix, "", Place(plan or "libra-planner tui")))
    from libra_planner.tui.app import Cockpit

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    code = Cockpit(plan_path(plan)).run()
    if code is None:
        raise PlannerError(f"{plan or 'libra-planner tui'}: the cockpit stopped early")


def _in_terminal() -> bool:
    """Whether keys come from a terminal and pictures go there: Textual draws on stderr."""
    streams = (sys.stdin, sys.stdout, sys.stderr)  # None where it is closed.
    return all(stream is not None and stream.isatty() for stream in streams)


def plan_path(plan: str | None) -> Path:
    """The plan to open: the first bundled example without one."""
    if plan is not None:
        return Path(plan)
    from libra_planner.reading.bundled import example

    return example("01_gpt3_4d")


def serve(plan: str | None, port: int, say: Callable[[str], object]) -> None:
    """Serve the cockpit on loopback until interrupted; ``say`` takes the address.

    Raises
    ------
    SpecError
        Without the extra ``[web]``, or where the port cannot be had.
    """
    place = Place("libra-planner tui: --web")
    try:
        from libra_planner.tui.web import Door
        from libra_planner.tui.web import serve as serve_browsers
    except ImportError:
        got, fix = "got no textual-serve", "pip install 'libra-planner[web]'"
        raise SpecError(Fault(got, "expected it installed", fix, "", place)) from None
    command = planner_command("tui", *([plan] if plan else []))
    try:
        with variables(same_imports()):
            serve_browsers(command, Door(LOOPBACK, port), say)
    except OSError as error:
        got = f"got port {port}, which cannot be had ({os.strerror(error.errno or 0)})"
        fault = Fault(got, "expected a free one", "give another --port", "", place)
        raise SpecError(fault) from None
