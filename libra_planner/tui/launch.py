"""Start the cockpit in this terminal, or serve it to browsers on this machine."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from libra_planner.errors import Fault, Place, PlannerError, SpecError

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
    from libra_planner.spec.bundled import example

    return example("01_gpt3_4d")


def serve(plan: str | None, port: int) -> None:
    """Serve the cockpit on loopback until interrupted.

    Raises
    ------
    SpecError
        Without the extra ``[web]``.
    """
    try:
        from textual_serve.server import Server
    except ImportError:
        place = Place("libra-planner tui: --web")
        got, fix = "got no textual-serve", "pip install 'libra-planner[web]'"
        raise SpecError(Fault(got, "expected it installed", fix, "", place)) from None
    command = [sys.executable, "-m", "libra_planner", "tui", *([plan] if plan else [])]
    Server(shlex.join(command), host=LOOPBACK, port=port, title="libra-planner").serve()
