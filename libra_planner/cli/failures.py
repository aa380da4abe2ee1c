"""What a command that failed says on stderr, and its exit code: the only place for both."""

from __future__ import annotations

import errno
import os
import select
import sys
import traceback
from collections.abc import Sequence

from libra_planner.cli.streams import to_nowhere
from libra_planner.errors import INTERRUPTED, Fault, Place, PlannerError
from libra_planner.files import is_unicode
from libra_planner.plain_text import visible_lines

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
        to_nowhere(sys.stdout)
        return 0
    if isinstance(error, PlannerError):
        return _said(visible_lines(_with_place(error, subject)), error.exit_code)
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITTEN:
        to_nowhere(sys.stdout)
        return _said(f"{PROGRAM}: cannot write the result: {error.strerror}", BAD_INPUT)
    fault = _fault(error, arguments, subject or PROGRAM)
    return _own_fault(error) if fault is None else _said(str(fault), BAD_INPUT)


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


def _with_place(error: PlannerError, subject: str | None) -> str:
    faults = getattr(error, "faults", None)
    has_place = faults is None or all(fault.place for fault in faults)
    return str(error) if has_place else f"{subject or PROGRAM}: {error}"


def _fault(error: BaseException, arguments: Sequence[str], subject: str) -> Fault | None:
    """What the surroundings did, as a fault; ``None`` where the program itself is wrong."""
    if isinstance(error, OSError):
        return _system_fault(error, subject)
    if isinstance(error, UnicodeError):
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
    if error.filename is None and not _has_folder():
        got, expected = "got a working directory that was removed", "expected one that is there"
        return Fault(got, expected, "change to another one with cd", "", Place(PROGRAM))
    named = subject if error.filename is None else os.fsdecode(error.filename)
    reason = error.strerror or str(error) or type(error).__name__
    fix = _FIXES.get(error.errno or 0, "check the path")
    return Fault(f"got {reason!r}", "", fix, "", Place(named))


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _own_fault(error: BaseException) -> int:
    traceback.print_exception(error)
    message = (
        f"{PROGRAM}: this is a fault of {PROGRAM}, not of your input; please report it with the "
        "command, the plan and the lines above"
    )
    return _said(message, OWN_FAULT)
