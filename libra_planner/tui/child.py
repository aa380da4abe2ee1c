"""Commands as child processes: long work that can be stopped for good."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from libra_planner.environment import planner_command, same_imports
from libra_planner.errors import INTERRUPTED, PlannerError
from libra_planner.tui.work import Cancelled, Ticket

_PATIENCE_S = 5.0
"""Time that a child has to end by itself after an interrupt."""


def run_command(
    arguments: Sequence[str], ticket: Ticket, line: Callable[[str], None] = lambda _: None
) -> str:
    """Run ``libra-planner`` with arguments; cancelling the ticket interrupts it.

    Parameters
    ----------
    arguments : without the program's name.
    ticket : of the work that this is a part of.
    line : called with every line of stdout as it comes, in this thread.

    Returns
    -------
    Everything on stdout.

    Raises
    ------
    PlannerError
        With what the command says on stderr, where it fails.
    """
    command, environment = planner_command(*arguments), os.environ | same_imports()
    pipe = subprocess.PIPE
    # A session of its own: an interrupt of the terminal is the cockpit's to handle.
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as child:
        errors: list[str] = []
        reader = threading.Thread(target=_drain, args=(child, errors), daemon=True)
        reader.start()
        lines = []
        try:
            with ticket.on_cancel(lambda: stop(child)):
                for text in child.stdout or ():
                    lines.append(text)
                    line(text)
        finally:  # Before stderr is closed under it.
            reader.join()
    if ticket.cancelled or child.returncode == INTERRUPTED:
        raise Cancelled
    if child.returncode:
        raise PlannerError("".join(errors).strip() or f"the command ended with {child.returncode}")
    return "".join(lines)


def _drain(child: subprocess.Popen[str], errors: list[str]) -> None:
    errors.extend(child.stderr or ())


def stop(child: subprocess.Popen[str]) -> None:
    """Interrupt a child, which keeps what it has done; end it if it does not follow."""
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
    timer = threading.Timer(_PATIENCE_S, child.kill)
    timer.daemon = True
    timer.start()


def event_of(line: str) -> dict[str, Any] | None:
    """A line of ``--json-progress``, if it is one."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
