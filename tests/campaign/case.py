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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.cli.main import main

MOST_S = 10.0
"""A command that computes longer hangs; so does one that waits ten times as long."""


@dataclass(frozen=True)
class Case:
    """A command line, and the files that it is given in an empty working directory."""

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    also: Callable[[Outcome, Path], Iterable[str]] = lambda _outcome, _folder: ()
    """What is wrong beside what always is, from the outcome and the folder."""

    @property
    def command(self) -> str:
        return shlex.join(["libra-planner", *self.arguments])

    def write(self, folder: Path) -> None:
        """The files, and the command in ``command.txt``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _write(folder / name, content)
        (folder / "command.txt").write_text(self.command + "\n", errors="backslashreplace")


def _write(path: Path, content: bytes) -> None:
    """A file; what the names of two kinds say is a pipe, or a link to itself."""
    if path.suffix == ".pipe":
        os.mkfifo(path)
    elif path.suffix == ".loop":
        path.symlink_to(path)
    else:
        path.write_bytes(content)


@dataclass(frozen=True)
class Outcome:
    """What a command printed, how it ended, and how long it computed."""

    code: int
    out: str
    err: str
    taken_s: float


class Hang(BaseException):
    """Nothing in the program catches it."""


def outcome(case: Case, folder: Path, *, most_s: float = MOST_S) -> Outcome:
    """Run a case whose files are in the folder, in this process, with warnings as errors."""
    out, err = _stream(), _stream()
    started_s = time.process_time()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        code = _code(case, most_s)
    return Outcome(code, _text(out), _text(err), time.process_time() - started_s)


def _code(case: Case, most_s: float) -> int:
    try:
        with _limited(most_s):
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
def _limited(most_s: float) -> Iterator[None]:
    """Raise :class:`Hang` after the limit; end the process where that has no effect."""

    def stop(_number: int, _frame: object) -> None:
        raise Hang(f"more than {most_s:g} s")

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, most_s),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * most_s),
    )
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, limit_s in timers:
        signal.setitimer(timer, limit_s)
    faulthandler.dump_traceback_later(20 * most_s, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode("utf-8", "surrogateescape")
