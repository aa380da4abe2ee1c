"""stdout, for data, and stderr, for messages."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def print_json(payload: dict[str, Any]) -> None:
    """Print one JSON object (RFC 8259: no NaN, no infinity)."""
    print(json.dumps(payload, indent=2, allow_nan=False))


@contextlib.contextmanager
def safe_stderr() -> Iterator[None]:
    """Lose messages that stderr cannot take, but neither the result nor the exit code."""
    if sys.stderr is None:  # Closed: print would take None for stdout, the place of data.
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            yield
        return
    safe = _SafeStream(sys.stderr)
    try:
        with contextlib.redirect_stderr(safe):
            yield
    finally:
        safe.flush()


class _SafeStream:
    """A stream that goes on to nowhere from the first write on that fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            to_nowhere(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            to_nowhere(self._stream)


def to_nowhere(stream: TextIO) -> None:
    """Send what is left in the stream, and all that follows, to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
