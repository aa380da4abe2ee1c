"""Ctrl-C, also where a library swallows it or makes another exception of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
        yield
    except Exception:
        if not came:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
