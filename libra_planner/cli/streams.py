"""stdout, for data, and stderr, for messages and for what a command that failed says."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import select
import shlex
import shutil
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from libra_planner.errors import INTERRUPTED, Fault, Place, PlannerError, SolverFailed
from libra_planner.plain_text import visible, visible_lines

if TYPE_CHECKING:
    from libra_planner.api.clusters.cases import Cases
    from libra_planner.search.best import Progress, SearchResult
    from libra_planner.views.cells import Block

PROGRAM = "libra-planner"
BAD_INPUT = 2
OWN_FAULT = 1

_UNWRITTEN = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT, errno.EFBIG)
"""What the system says of a stream; of a file it would name the file."""

_FIXES = {
    errno.EACCES: "allow it with chmod, or give another path",
    errno.EPERM: "allow it with chmod, or give another path",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ELOOP: "remove the loop of symbolic links",
    errno.ENOSPC: "make room, or give another path",
    errno.EROFS: "give another path",
    errno.EMFILE: "allow more open files with ulimit -n",
}

_LONG_S = 60
"""From which on people are told how long something takes."""
_SELDOM_S = 10
"""Between lines of progress where stderr is no terminal."""

PIPE_WIDTH = 200
"""Columns when stdout is not a terminal and COLUMNS does not say: only the first lines wrap."""


def answer(
    options: argparse.Namespace,
    payload: Callable[[], dict[str, Any]],
    blocks: Iterable[Block],
    *,
    with_source: bool = False,
    then: str = "",
) -> None:
    """Print a result as JSON or for people.

    Parameters
    ----------
    options : of the command.
    payload : makes the JSON object.
    blocks : what a view says; none of it is made before it is printed.
    with_source : whether JSON tells the plan and its settings, to use the result again.
    then : what people do next, if anything.
    """
    if not options.json:
        show(blocks, with_head=True)
        hint(then)
    elif with_source:
        source = {"plan": str(Path(options.plan).resolve()), "set": options.settings}
        print_json(source | payload())
    else:
        print_json(payload())


def answer_cases(options: argparse.Namespace, cases: Cases, what: str = "time") -> None:
    """Print a file of cases with its answers as JSON or CSV, and how many lack ``what``."""
    if options.json:
        print_json(cases.to_dict())
        return
    print(cases.csv(), end="")
    if cases.n_without:
        said = f"rows have no {what}; the column message says why"
        print(f"{cases.n_without:,} of {len(cases):,} {said}", file=sys.stderr)


def hint(then: str, what: str = "next") -> None:
    """Say on a terminal what comes next; nothing for programs, which read no advice."""
    if then and sys.stderr.isatty():
        sys.stdout.flush()
        print(visible(f"{what}: {then}"), file=sys.stderr)


def command_on(name: str, plan: str, settings: Sequence[str], *more: str) -> str:
    """A command about a plan with its settings, as it is typed.

    >>> command_on("check", "my plan.yaml", ["parallelism={tp: 4}"])
    "libra-planner check 'my plan.yaml' --set 'parallelism={tp: 4}'"
    """
    from libra_planner.reading.bundled import name_of

    given = (part for one in settings for part in ("--set", one))
    return shlex.join([PROGRAM, name, name_of(plan), *given, *more])


def print_json(payload: dict[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Print one JSON object (RFC 8259: no NaN, no infinity)."""
    print(json.dumps(payload, indent=2, allow_nan=False, default=default))


def show(blocks: Iterable[Block], *, with_head: bool = False) -> None:
    """Print what a view says for people; with a head, lines before the first table are short."""
    from libra_planner.views.renderers import terminal

    wraps = has_width()
    console = terminal.PlainConsole(highlight=False, width=None if wraps else PIPE_WIDTH)
    terminal.show(console, blocks, is_wrapped=wraps, has_head=with_head)


def has_width() -> bool:
    """Whether lines have a width to keep to: of a terminal, or that ``COLUMNS`` says."""
    asked = os.environ.get("COLUMNS", "")
    is_asked = asked.isascii() and asked.isdecimal() and int(asked) > 0
    return sys.stdout.isatty() or is_asked


def say(lines: Iterable[str], file: TextIO | None = None) -> None:
    """Print lines on stdout, or in a stream."""
    for line in lines:
        print(visible(line), file=file)


def tell(lines: Iterable[str], file: TextIO | None = None) -> None:
    """Print lines as :func:`say` does, on a terminal broken between words."""
    stream = file or sys.stdout
    if not stream.isatty():
        say(lines, file)
        return
    width = shutil.get_terminal_size().columns
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    for line in lines:
        say(wrapper.wrap(visible(line)), file)


def progress_of(
    what: str, *, least: int = 0, n_unsaid: int = 0
) -> Callable[[int, int], None] | None:
    """What writes progress to stderr; where that is no terminal, a line now and then.

    Parameters
    ----------
    what : is counted.
    least : number of all from which on it takes long enough to be shown.
    n_unsaid : how many of all are done without being told.
    """
    if not sys.stderr.isatty():
        return partial(_SeldomLines(), what)
    begun_s = time.monotonic()

    def write(done: int, n: int) -> None:
        if n >= least:
            end, left = "\n" if done >= n - n_unsaid else "", _left_words(begun_s, done, n)
            print(f"\r{done:,} of {n:,} {what}{left:<24}", end=end, file=sys.stderr, flush=True)

    return write


def _left_words(begun_s: float, done: int, n: int) -> str:
    """How long the rest takes, if as long as before for each and for more than a minute."""
    left_s = (time.monotonic() - begun_s) * (n - done) / done if done else 0.0
    return f", about {left_s / 60:,.0f} min left" if left_s >= _LONG_S else ""


class _SeldomLines:
    """Progress in a log: a line every few seconds, and none of what is done sooner.

    With the time that is left, unless what is counted takes ever less or more, as in a search.
    """

    def __init__(self, *, is_even: bool = True) -> None:
        self._begun_s = self._told_s = time.monotonic()
        self._is_even = is_even

    def __call__(self, what: str, done: int, n: int) -> None:
        if done < n and time.monotonic() - self._told_s >= _SELDOM_S:
            self._told_s = time.monotonic()
            left = _left_words(self._begun_s, done, n) if self._is_even else ""
            print(f"{done:,} of {n:,} {what}{left}", file=sys.stderr, flush=True)


def search_progress(counted: str = "") -> Progress:
    """What writes the progress of a search for a strategy to stderr.

    Parameters
    ----------
    counted : of all that a search counts; everything where it is not given.
    """
    lines = None if sys.stderr.isatty() else _SeldomLines(is_even=False)
    if not counted:
        return lines or _SearchLines()
    write = partial(lines, counted) if lines else progress_of(counted)

    def progress(what: str, done: int, total: int) -> None:
        if write and what == counted:
            write(done, total)

    return progress


def tell_search() -> None:
    """Say on a terminal that a search has begun, and how to have what it knows early."""
    if sys.stderr.isatty():
        text = "comparing strategies; Ctrl-C ends it with those that are known by then"
        print(text, file=sys.stderr, flush=True)


class _SearchLines:
    """A line for every stage of a search, each written over until the next one begins."""

    def __init__(self) -> None:
        self._stage, self._width = "", 0

    def __call__(self, what: str, done: int, total: int) -> None:
        stage = what.partition(",")[0]
        if self._stage not in ("", stage):
            print(file=sys.stderr)
        text = f"{done:,} of {total:,} {what}"
        is_last = done >= total
        print(f"\r{text:<{self._width}}", end="\n" * is_last, file=sys.stderr, flush=True)
        self._stage, self._width = "" if is_last else stage, len(text)


def judge_search(found: SearchResult | None) -> None:
    """Exit with 4 after a search that leaves strategies unproven.

    Raises
    ------
    SolverFailed
        With how many.
    """
    if found is not None and not found.is_certified:
        raise SolverFailed(f"{found.n_unproven:,} strategies are not proven")


def tell_kept(paths: Sequence[Path]) -> None:
    """Say where files are now that stood where others were written; of many how they are named."""
    if len(paths) > _MOST_KEPT:
        folders = ", ".join(sorted({str(path.parent) for path in paths}))
        say([f"Kept what {len(paths)} files were as *.bak beside them, in {folders}."], sys.stderr)
        return
    say((f"Kept what was there as {path}." for path in paths), sys.stderr)


_MOST_KEPT = 3


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
            _to_nowhere(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            _to_nowhere(self._stream)


def _to_nowhere(stream: TextIO) -> None:
    """Send what is left in the stream, and all that follows, to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def exit_code_of(error: BaseException, arguments: Sequence[str], subject: str | None) -> int:
    """Say what ended a command; the exit code.

    Parameters
    ----------
    error : what was raised.
    arguments : of the command line.
    subject : the file that the command is about, if it has one.
    """
    if isinstance(error, KeyboardInterrupt):
        return _said("interrupted", INTERRUPTED)
    if isinstance(error, BrokenPipeError) and _has_no_reader():
        _to_nowhere(sys.stdout)
        return 0
    if isinstance(error, PlannerError):
        has_place = all(fault.place for fault in getattr(error, "faults", ()))
        before = "" if has_place else f"{subject or PROGRAM}: "
        return _said(visible_lines(_as_named(f"{before}{error}", arguments)), error.exit_code)
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITTEN:
        _to_nowhere(sys.stdout)
        return _said(f"{PROGRAM}: cannot write the result: {error.strerror}", BAD_INPUT)
    if fault := _fault(error, arguments, subject or PROGRAM):
        return _said(str(fault), BAD_INPUT)
    traceback.print_exception(error)
    message = (
        f"{PROGRAM}: this is a fault of {PROGRAM}, not of your input; please report it with the "
        "command, the plan and the lines above"
    )
    return _said(message, OWN_FAULT)


def _as_named(message: str, arguments: Sequence[str]) -> str:
    from libra_planner.reading.bundled import as_named

    return as_named(message, arguments)


def _has_no_reader() -> bool:
    """Whether stdout goes to a process that is gone."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except OSError:  # What stands in for stdout where the command line is called from Python.
        return False
    return bool(poll.poll(0))


def _said(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _fault(error: BaseException, arguments: Sequence[str], subject: str) -> Fault | None:
    """What the surroundings did, as a fault; ``None`` where the program itself is wrong."""
    if isinstance(error, OSError):
        return _system_fault(error, subject)
    if isinstance(error, UnicodeError):
        from libra_planner.files import is_unicode

        named = next((one for one in arguments if not is_unicode(one)), subject)
        fix = "give the file a name in UTF-8"
        return Fault("got bytes that are not UTF-8", "expected text", fix, "", Place(named))
    if isinstance(error, MemoryError):
        fix = "make the plan smaller, or take a machine with more of it"
        return Fault("got too little memory", "", fix, "", Place(subject))
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop from "):
        named = str(error).removeprefix("Symlink loop from ").strip("'")
        return Fault("got a loop of symbolic links", "", "remove it", "", Place(named))
    return None


def _system_fault(error: OSError, subject: str) -> Fault:
    if error.filename is None:
        try:
            os.getcwd()
        except OSError:
            got, expected = "got a working directory that was removed", "expected one that is there"
            return Fault(got, expected, "change to another one with cd", "", Place(PROGRAM))
    named = subject if error.filename is None else os.fsdecode(error.filename)
    reason = error.strerror or str(error) or type(error).__name__
    fix = _FIXES.get(error.errno or 0, "check the path")
    return Fault(f"got {reason!r}", "", fix, "", Place(named))
