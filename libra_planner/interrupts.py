"""Ctrl-C, also where a library swallows it or makes another exception of it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
