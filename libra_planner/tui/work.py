"""Work beside the interface: threads whose late results are dropped, that can be cancelled."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from textual.app import App
from textual.message import Message

from libra_planner.errors import Fault, Place, PlannerError
from libra_planner.tui.actions import SCREENS

Report = Callable[[int, int], None]
"""Takes how much is done, and of how much."""


class Cancelled(Exception):
    """Raised inside work that was cancelled, at its next report of progress."""


@dataclass
class Ticket:
    """One piece of work, as the thread that does it sees it."""

    kind: str
    number: int
    label: str
    post: Callable[[Message], object] = field(repr=False)
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

    def progress(self, done: int, n: int) -> None:
        """Report progress, or stop here if it was cancelled."""
        if self.cancelled:
            raise Cancelled
        self.post(Progress(self, done, n))


class Progress(Message):
    """How far work is."""

    def __init__(self, ticket: Ticket, done: int, n: int) -> None:
        super().__init__()
        self.ticket, self.done, self.n = ticket, done, n


class Finished(Message):
    """Work ended, with a result or an error."""

    def __init__(self, ticket: Ticket, result: Any, error: Exception | None) -> None:
        super().__init__()
        self.ticket, self.result, self.error = ticket, result, error


@dataclass(frozen=True)
class _Job:
    ticket: Ticket
    done: Callable[[Any], None]
    failed: Callable[[Exception], None] | None


class Workshop:
    """At most one current piece of work of each kind; a new one makes the old one stale.

    Threads are daemons: leaving the cockpit never waits for a solver.

    Parameters
    ----------
    app : gets :class:`Progress` and :class:`Finished`.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._numbers = itertools.count()
        self._current: dict[str, _Job] = {}

    def start(
        self,
        kind: str,
        label: str,
        *,
        call: Callable[[Ticket], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Begin; on the interface's thread ``done`` gets the result, unless it is stale by then.

        ``failed`` gets an error; without it a panel shows it.
        """
        self.cancel(kind)
        ticket = Ticket(kind, next(self._numbers), label, self._post)
        self._current[kind] = _Job(ticket, done, failed)
        threading.Thread(target=self._run, args=(ticket, call), name=kind, daemon=True).start()

    def cancel(self, kind: str) -> bool:
        """Make the current work of a kind stale; whether there was any."""
        job = self._current.pop(kind, None)
        if job is not None:
            job.ticket.cancel()
        return job is not None

    def cancel_all(self) -> None:
        """Stop everything."""
        for kind in list(self._current):
            self.cancel(kind)

    def running(self) -> list[Ticket]:
        """What is under way, in the order it began."""
        return [job.ticket for job in self._current.values()]

    def labels(self) -> list[str]:
        """What people are told of it, the latest last."""
        return [ticket.label for ticket in self.running() if ticket.label]

    def finish(self, message: Finished) -> Exception | None:
        """Hand the result over if it is still wanted; returns an error that nobody handles."""
        job = self._current.get(message.ticket.kind)
        if job is None or job.ticket is not message.ticket:
            return None
        del self._current[message.ticket.kind]
        if message.error is None:
            job.done(message.result)
        elif job.failed is not None:
            job.failed(message.error)
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
        _keep_loaded(ticket.kind)
        self._post(Finished(ticket, result, error))

    def _post(self, message: Message) -> None:
        try:
            self._app.post_message(message)
        except RuntimeError:  # The cockpit was left meanwhile.
            return


_loaded: set[str] = set()
"""Kinds of work whose modules this process has loaded."""


def _keep_loaded(kind: str) -> None:
    """What is there after the first work of a kind, modules above all, is no garbage: nobody looks.

    A full collection of all of it would stop the interface for most of what a key may take.
    """
    if kind not in _loaded:
        _loaded.add(kind)
        gc.freeze()


def error_text(error: Exception) -> str:
    """An error for people: of the planner, of the system, else with its kind too."""
    if isinstance(error, PlannerError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return str(Fault(f"got {error.strerror!r}", "", "", "", Place(str(error.filename))))
    return f"unexpected {type(error).__name__}: {error}"


FIGURES = (
    "libra_planner.evaluation",
    "libra_planner.step.explanation",
    "libra_planner.views.design",
)
"""What showing a design's figures needs."""

OTHERS = (
    "libra_planner.optimizer.shadow",
    "libra_planner.check.links",
    "libra_planner.check.hotspot",
    "libra_planner.views.check",
    "libra_planner.sweeps.results",
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
