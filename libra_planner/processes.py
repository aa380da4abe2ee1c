"""Processes: the environment of those that are started, and Ctrl-C that no library swallows."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from libra_planner.errors import INTERRUPTED


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Let processes that are started meanwhile have some variables.

    >>> with variables({"LIBRA_EXAMPLE": "1"}):
    ...     os.environ["LIBRA_EXAMPLE"]
    '1'
    >>> "LIBRA_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def same_imports() -> dict[str, str]:
    """Variables of an interpreter that is to import from where this one does.

    With ``-m`` and ``-c`` it looks into the working directory first: a file there of the name of
    any module would be run in its place.
    """
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def planner_command(*arguments: str) -> list[str]:
    """Words that start ``libra-planner``; the working directory has no modules of it.

    >>> planner_command("list", "examples")[1:]
    ['-P', '-m', 'libra_planner', 'list', 'examples']
    """
    return [sys.executable, "-P", "-m", "libra_planner", *arguments]


AGAIN_S = 0.02
"""Time after which an interrupt that was swallowed comes again."""


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """Let an interrupt that comes meanwhile always end in ``KeyboardInterrupt``.

    Python loses what a signal raises inside a callback or a finalizer, and compilers make
    errors of their own of it.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        with _sent_again():
            yield
    except Exception:
        if not came:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _sent_again() -> Iterator[None]:
    """Let an interrupt that a callback swallowed come again soon, without a word of it."""
    before: Callable[[Any], object] = sys.unraisablehook
    timers: list[threading.Timer] = []
    to = [threading.get_ident(), signal.SIGINT]

    def look(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        timers.append(threading.Timer(AGAIN_S, signal.pthread_kill, to))
        timers[-1].start()

    sys.unraisablehook = look
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


@contextmanager
def uncollected() -> Iterator[None]:
    """Import without garbage collection, and leave what was imported out of later ones.

    Modules make many objects and no garbage; one full collection over cvxpy's takes as
    long as four solves. An interrupt ends the process at once: raised inside a half
    imported library it would come out as something else.
    """
    before = signal.signal(signal.SIGINT, _leave)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGINT, before)


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
