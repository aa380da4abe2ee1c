"""Long work in processes of its own: solvers that keep the interpreter free, and commands.

Each piece of work is forked from one process that has loaded the solver
(:mod:`~libra_planner.tui.forks`), which takes some milliseconds, and is killed when it is
cancelled. What goes in and comes out is pickled: plans and designs are data. Where processes cannot
be forked, each piece of work loads the solver anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from libra_planner.errors import INTERRUPTED, PlannerError
from libra_planner.processes import planner_command, same_imports, variables
from libra_planner.tui.work import Cancelled, Report, Ticket

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Result = TypeVar("_Result")

_starting = threading.Lock()


def get_ready() -> bool:
    """Have the process that work is forked from load the solver, if it has not begun to.

    Returns
    -------
    Whether there is such a process: no socket can be bound where TMPDIR's name is too long.
    """
    import multiprocessing

    from libra_planner.tui import forks

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return False
    from multiprocessing import forkserver

    with _like_this_one(**{forks.LOADS: "1"}):
        multiprocessing.set_forkserver_preload([forks.__name__])
        try:
            forkserver.ensure_running()
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _like_this_one(**more: str) -> Iterator[None]:
    """Have interpreters that are started meanwhile import from where this one does.

    ``multiprocessing`` asks ``sys.stderr`` for a descriptor, and Textual's says -1; without one
    they inherit this process's own.
    """
    values = {**same_imports(), **more}
    with _starting, variables(values), contextlib.redirect_stderr(io.StringIO()):
        yield


def run_apart(work: Callable[[Report], _Result], ticket: Ticket) -> _Result:
    """Do work in a process of its own, which ends when the ticket is cancelled.

    Parameters
    ----------
    work : takes what it reports progress to; what it holds and returns is pickled.
    ticket : of the work that this is a part of.

    Raises
    ------
    Cancelled
        When the ticket was.
    PlannerError
        As ``work`` does, or where the process cannot be started or is killed by somebody else.
    """
    import multiprocessing

    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver:
        with sender:
            process = _started(sender, pickle.dumps(work))
        try:
            with ticket.on_cancel(process.kill):
                found: _Result = _answer(receiver, process, ticket)
        finally:
            process.kill()
            process.join()
    return found


def _started(sender: Connection, work: bytes) -> BaseProcess:
    """A process at work; this waits until the solver is loaded."""
    try:
        if get_ready():
            with contextlib.suppress(OSError, EOFError):  # It died while it loaded.
                return _begun("forkserver", sender, work)
        with _like_this_one():
            return _begun("spawn", sender, work)
    except (OSError, EOFError) as error:
        hint = "look for a lack of memory, and whether the working directory is still there"
        raise PlannerError(f"the solver's process cannot be started ({error}): {hint}") from None


def _begun(method: str, sender: Connection, work: bytes) -> BaseProcess:
    import multiprocessing

    from libra_planner.tui import forks

    context: Any = multiprocessing.get_context(method)
    process: BaseProcess = context.Process(target=forks.run, args=(sender, work), daemon=True)
    process.start()
    return process


def _answer(receiver: Connection, process: BaseProcess, ticket: Ticket) -> Any:
    """What comes of the work, once it is there."""
    from libra_planner.tui.forks import ERROR, PROGRESS

    while True:
        try:
            kind, content = receiver.recv()
        except (EOFError, OSError):
            if ticket.cancelled:
                raise Cancelled from None
            process.join()
            raise PlannerError(_death(process.exitcode)) from None
        if kind == PROGRESS:
            ticket.progress(*content)
            continue
        found = pickle.loads(content)
        if kind == ERROR:
            raise found
        return found


def _death(code: int | None) -> str:
    """What is said of a process that gave no answer.

    >>> _death(-9)
    "the solver's process was killed by signal 9 before it had an answer: look for a lack of memory"
    """
    if code and code < 0:
        memory = ": look for a lack of memory" if code == -signal.SIGKILL else ""
        return f"the solver's process was killed by signal {-code} before it had an answer{memory}"
    return f"the solver's process ended with {code} before it had an answer"


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
