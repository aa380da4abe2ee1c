"""One case of the campaign: files, a command line, and what came of it."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import shlex
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.cli.main import main

MOST_S = 10.0
"""A command that takes longer hangs."""


@dataclass(frozen=True)
class Case:
    """A command line, and the files that it is given in an empty working directory."""

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def command(self) -> str:
        return shlex.join(["libra-planner", *self.arguments])

    def write(self, folder: Path) -> None:
        """The files, and the command in ``command.txt``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        (folder / "command.txt").write_text(self.command + "\n", errors="backslashreplace")


@dataclass(frozen=True)
class Outcome:
    """What a command printed, how it ended, and how long it took."""

    code: int
    out: str
    err: str
    taken_s: float
    n_warnings: int = 0


class Hang(BaseException):
    """Nothing in the program catches it."""


def outcome(case: Case, folder: Path) -> Outcome:
    """Run a case whose files are in the folder, in this process, with warnings as errors."""
    out, err = _stream(), _stream()
    started_s = time.perf_counter()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        code = _code(case)
    return Outcome(code, _text(out), _text(err), time.perf_counter() - started_s)


def _code(case: Case) -> int:
    try:
        with _limited():
            return main(case.arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Hang:
        traceback.print_exc()
        return 1
    except Exception:
        traceback.print_exc()
        return 1


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise :class:`Hang` after the limit; end the process where that has no effect."""

    def stop(_number: int, _frame: object) -> None:
        raise Hang(f"more than {MOST_S:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MOST_S)
    faulthandler.dump_traceback_later(6 * MOST_S, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode("utf-8", "surrogateescape")


def size_bytes() -> int:
    """Memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
