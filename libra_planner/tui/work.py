"""Work beside the interface: threads whose late results are dropped, that can be cancelled."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from textual.app import App
from textual.message import Message

from libra_planner.errors import PlannerError


class Cancelled(Exception):  # noqa: N818
    """Raised inside work that was cancelled, at its next report of progress."""


@dataclass
class Ticket:
    """One piece of work, as the thread that does it sees it."""

    kind: str
    number: int
    label: str
    post: Callable[[Message], object] = field(repr=False)
    cancelled: bool = False

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
        self._current: dict[str, tuple[Ticket, Callable[[Any], None]]] = {}

    def start(
        self, kind: str, label: str, *, call: Callable[[Ticket], Any], done: Callable[[Any], None]
    ) -> None:
        """Begin; ``done`` gets the result on the interface's thread, unless it is stale by then."""
        self.cancel(kind)
        ticket = Ticket(kind, next(self._numbers), label, self._post)
        self._current[kind] = ticket, done
        threading.Thread(target=self._run, args=(ticket, call), name=kind, daemon=True).start()

    def cancel(self, kind: str) -> bool:
        """Make the current work of a kind stale; whether there was any."""
        ticket, _ = self._current.pop(kind, (None, None))
        if ticket is not None:
            ticket.cancelled = True
        return ticket is not None

    def running(self) -> list[Ticket]:
        """What is under way, in the order it began."""
        return [ticket for ticket, _ in self._current.values()]

    def finish(self, message: Finished) -> bool:
        """Hand the result over if it is still wanted; whether the work was current."""
        ticket, done = self._current.get(message.ticket.kind, (None, None))
        if ticket is not message.ticket or done is None:
            return False
        del self._current[message.ticket.kind]
        if message.error is None:
            done(message.result)
        return True

    def _run(self, ticket: Ticket, call: Callable[[Ticket], Any]) -> None:
        try:
            result, error = call(ticket), None
        except Cancelled:
            return
        except Exception as caught:  # Shown in a panel, whatever it is.
            result, error = None, caught
        self._post(Finished(ticket, result, error))

    def _post(self, message: Message) -> None:
        try:
            self._app.post_message(message)
        except RuntimeError:  # The cockpit was left meanwhile.
            return


def error_text(error: Exception) -> str:
    """An error for people: the message of a planner's error, else its kind too."""
    if isinstance(error, PlannerError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}"
