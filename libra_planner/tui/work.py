"""Work beside the interface: threads whose late results are dropped, processes for solvers.

Each piece of work is forked from one process that has loaded the solver
(:mod:`~libra_planner.tui.forks`), which takes some milliseconds, and is killed when it is
cancelled. What goes in and comes out is pickled: plans and designs are data. Where processes cannot
be forked, each piece of work loads the solver anew.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from textual.app import App
from textual.message import Message

from libra_planner.errors import INTERRUPTED, PlannerError, SpecError
from libra_planner.processes import planner_command, same_imports, variables
from libra_planner.tui import forks
from libra_planner.tui.actions import SCREENS
from libra_planner.tui.session import Report


class Cancelled(Exception):
    """Raised inside work that was cancelled, at its next report of progress."""


@dataclass(eq=False)
class Ticket:
    """One piece of work, as the thread that does it sees it.

    Parameters
    ----------
    kind, label : at most one of a kind is wanted at a time; what people are told of it, if at all.
    post : takes how far it is, and its end.
    done : gets the result on the interface's thread, unless it is stale by then.
    failed : gets an error; without it a panel shows it.
    partly : gets what is known so far, on the interface's thread.
    """

    kind: str
    label: str
    post: Callable[[Message], object] = field(repr=False)
    done: Callable[[Any], None] = field(default=lambda _: None, repr=False)
    failed: Callable[[Exception], None] | None = field(default=None, repr=False)
    partly: Callable[[Any], None] = field(default=lambda _: None, repr=False)
    cancelled: bool = False
    _stops: list[Callable[[], None]] = field(default_factory=list, repr=False)

    @contextmanager
    def on_cancel(self, stop: Callable[[], None]) -> Iterator[None]:
        """Have something stopped when this is cancelled meanwhile; at once if it has been."""
        self._stops.append(stop)
        try:
            if self.cancelled:
                stop()
            yield
        finally:
            self._stops.remove(stop)

    def cancel(self) -> None:
        """Stop, and drop what comes of it."""
        self.cancelled = True
        for stop in tuple(self._stops):
            stop()

    def progress(self, done: int, n: int, words: str = "", part: Any = None) -> None:
        """Report progress, in words too, and what is known; stop here if it was cancelled."""
        if self.cancelled:
            raise Cancelled
        self.post(Progress(self, done, n, words, part))


class Progress(Message):
    """How far work is."""

    def __init__(
        self, ticket: Ticket, done: int, n: int, words: str = "", part: Any = None
    ) -> None:
        super().__init__()
        self.ticket, self.words, self.part = ticket, words or f"{done} of {n}", part


class Finished(Message):
    """Work ended, with a result or an error."""

    def __init__(self, ticket: Ticket, result: Any, error: Exception | None) -> None:
        super().__init__()
        self.ticket, self.result, self.error = ticket, result, error


class Workshop:
    """At most one current piece of work of each kind; a new one makes the old one stale.

    Threads are daemons: leaving the cockpit never waits for a solver.

    Parameters
    ----------
    app : gets :class:`Progress` and :class:`Finished`.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._current: dict[str, Ticket] = {}
        self._seen: set[str] = set()

    def start(
        self,
        kind: str,
        label: str,
        *,
        call: Callable[[Ticket], Any],
        done: Callable[[Any], None] = lambda _: None,
        failed: Callable[[Exception], None] | None = None,
        partly: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Begin a call; the rest is as :class:`Ticket` has it."""
        self.cancel(kind)
        self._current[kind] = ticket = Ticket(kind, label, self._post, done, failed, partly)
        threading.Thread(target=self._run, args=(ticket, call), name=kind, daemon=True).start()

    def cancel(self, kind: str) -> None:
        """Make the current work of a kind stale."""
        if ticket := self._current.pop(kind, None):
            ticket.cancel()

    def cancel_all(self) -> None:
        """Stop everything."""
        for kind in list(self._current):
            self.cancel(kind)

    def running(self) -> list[Ticket]:
        """What is under way, in the order it began."""
        return list(self._current.values())

    def labels(self) -> list[str]:
        """What people are told of it, the latest last."""
        return [ticket.label for ticket in self.running() if ticket.label]

    def finish(self, message: Finished) -> Exception | None:
        """Hand the result over if it is still wanted; returns an error that nobody handles."""
        ticket = message.ticket
        if self._current.get(ticket.kind) is not ticket:
            return None
        del self._current[ticket.kind]
        if message.error is None:
            ticket.done(message.result)
        elif ticket.failed is not None:
            ticket.failed(message.error)
        else:
            return message.error
        return None

    def _run(self, ticket: Ticket, call: Callable[[Ticket], Any]) -> None:
        try:
            result, error = call(ticket), None
        except Cancelled:
            return
        except Exception as caught:  # Shown in a panel, whatever it is.
            result, error = None, caught
        # What the first work of a kind leaves, modules above all, is no garbage. A full collection
        # of all of it would stop the interface for most of what a key may take.
        if ticket.kind not in self._seen:
            self._seen.add(ticket.kind)
            gc.freeze()
        self._post(Finished(ticket, result, error))

    def _post(self, message: Message) -> None:
        try:
            self._app.post_message(message)
        except RuntimeError:  # The cockpit was left meanwhile.
            return


def error_text(error: Exception) -> str:
    """An error for people: of the planner, of the system, else with its kind too."""
    if isinstance(error, PlannerError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return str(SpecError.at(str(error.filename), f"got {error.strerror!r}"))
    return f"unexpected {type(error).__name__}: {error}"


FIGURES = (
    "libra_planner.evaluation",
    "libra_planner.step.expression",
    "libra_planner.views.design",
    "libra_planner.tui.pictures.designs",
)
"""What showing a design's figures needs."""

OTHERS = (
    "libra_planner.optimizer.shadow",
    "libra_planner.tui.screens.links",
    *(f"libra_planner.tui.screens.{name}" for name in SCREENS),
)
"""The other screens, and what comes back to them from the solver."""


def load(names: tuple[str, ...], ticket: Ticket) -> None:
    """Import modules of ours, looking for no garbage meanwhile, until it is cancelled."""
    gc.disable()
    try:
        for name in names:
            if ticket.cancelled:
                return
            import_module(name)
    finally:
        gc.enable()


_Result = TypeVar("_Result")

_starting = threading.Lock()


def get_ready() -> bool:
    """Have the process that work is forked from load the solver, if it has not begun to.

    Returns
    -------
    Whether there is such a process: no socket can be bound where TMPDIR's name is too long.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return False
    from multiprocessing import forkserver  # Which is not there on every system.

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
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver:
        with sender:
            process = _started_process(sender, pickle.dumps(work))
        try:
            with ticket.on_cancel(process.kill):
                found: _Result = _answer(receiver, process, ticket)
        finally:
            process.kill()
            process.join()
    return found


def _started_process(sender: Connection, work: bytes) -> BaseProcess:
    """A process at work; this waits until the solver is loaded."""
    try:
        if get_ready():
            with contextlib.suppress(OSError, EOFError):  # It died while it loaded.
                return _process_of("forkserver", sender, work)
        with _like_this_one():
            return _process_of("spawn", sender, work)
    except (OSError, EOFError) as error:
        hint = "look for a lack of memory, and whether the working directory is still there"
        raise PlannerError(f"the solver's process cannot be started ({error}): {hint}") from None


def _process_of(method: str, sender: Connection, work: bytes) -> BaseProcess:
    context: Any = multiprocessing.get_context(method)
    process: BaseProcess = context.Process(target=forks.run, args=(sender, work), daemon=True)
    process.start()
    return process


def _answer(receiver: Connection, process: BaseProcess, ticket: Ticket) -> Any:
    """What comes of the work, once it is there."""
    while True:
        try:
            kind, content = receiver.recv()
        except (EOFError, OSError):
            if ticket.cancelled:
                raise Cancelled from None
            process.join()
            raise PlannerError(_death(process.exitcode)) from None
        if kind == forks.PROGRESS:
            ticket.progress(*content)
            continue
        found = pickle.loads(content)
        if kind == forks.ERROR:
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
        reader = threading.Thread(target=lambda: errors.extend(child.stderr or ()), daemon=True)
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
