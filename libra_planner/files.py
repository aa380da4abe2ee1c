"""Reading users' files with clear faults, writing files whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from libra_planner.errors import DataNotFound, Fault, Place, SpecError
from libra_planner.outputs import STDOUT, output_file, regular_file

MAX_BYTES = 1_000_000
"""Largest file read; plans and workload tables are kilobytes."""

MAX_JSON_DEPTH = 100
"""Deepest nesting of JSON that is read: results have less than ten levels."""

_LONGEST_NUMBER = 300


def read_text(path: str | Path, *, most_bytes: int = MAX_BYTES) -> str:
    """The text of a user's file of at most ``most_bytes``.

    Raises
    ------
    DataNotFound
        For a path that cannot be read as text.
    SpecError
        For a file that is too big.
    """
    here = Place(str(path))
    try:
        _refuse_waiting(Path(path), here)
        with Path(path).open("rb") as file:
            data = file.read(most_bytes + 1)
            if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                got, fix = "got nothing from a pipe", "a pipe is read once: save it to a file"
                raise DataNotFound(Fault(got, "expected a file", fix, "", here))
        if len(data) > most_bytes:
            expected = f"expected at most {most_bytes:,} bytes"
            raise SpecError(Fault("got a larger file", expected, "split it", "", here))
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        got, expected = "got no such file", "expected one"
    except IsADirectoryError:
        got, expected = "got a directory", "expected a file"
    except UnicodeDecodeError:
        got, expected = "got bytes that are not UTF-8", "expected a text file"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        got, expected = f"got {reason!r}", "expected a readable file"
    raise DataNotFound(Fault(got, expected, "check the path", "", here))


def _refuse_waiting(path: Path, here: Place) -> None:
    """Refuse a named pipe, which would be waited for without end; a shell's own pipes are read."""
    is_shells = str(path).startswith(("/dev/", "/proc/"))
    if not is_shells and path.is_fifo():
        got, fix = "got a named pipe", "save it to a file"
        raise DataNotFound(Fault(got, "expected a file", fix, "", here))


def read_json(path: str | Path, *, most_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON file of at most ``most_bytes``.

    Raises
    ------
    DataNotFound
        For a path that cannot be read as text.
    SpecError
        For what is no JSON, values nested too deep, numbers too long, or a file that is too big.
    """
    here = Place(str(path))
    try:
        value = json.loads(read_text(path, most_bytes=most_bytes), parse_int=_whole)
        if not isinstance(value, dict | list) or _depth(value) <= MAX_JSON_DEPTH:
            return value
        got = f"got values nested deeper than {MAX_JSON_DEPTH}"
    except json.JSONDecodeError as error:
        got, here = f"got no JSON ({error.msg})", Place(str(path), error.lineno, error.colno)
    except RecursionError:
        got = f"got values nested deeper than {MAX_JSON_DEPTH}"
    except ValueError:
        got = f"got a number of more than {_LONGEST_NUMBER} digits"
    raise SpecError(Fault(got, "expected a file that this program wrote", "", "", here)) from None


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError
    return int(digits)


def _depth(value: Any) -> int:
    """How deep lists and maps are nested."""
    depth, level = 0, [value]
    while level:
        inner = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for some in inner for one in some if isinstance(one, dict | list)]
        depth += 1
    return depth


def is_unicode(text: str) -> bool:
    """Whether text, such as a path, can be written in UTF-8: not all that the system has can.

    >>> is_unicode("a"), is_unicode(os.fsdecode(b"\\xff"))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_files(contents: Mapping[Path, str | bytes]) -> list[Path]:
    """Write texts (as UTF-8) or bytes to paths; each appears complete, or none at all.

    A file that had other content is kept beside the new one with ``.bak`` at its end. Links are
    followed; devices and pipes are written into.

    Returns
    -------
    Paths of the copies that were kept.

    Raises
    ------
    DataNotFound
        When a folder is missing or cannot be written to.
    """
    copies: list[Path] = []
    with ExitStack() as files:  # The last to enter is the first to be replaced: copies.
        for path, text in contents.items():
            _fill(files.enter_context(output(path)), _encoded(text))
        for path, text in contents.items():
            before = _other_content(path, text)
            if before is not None:
                copies.append(path.with_name(f"{path.name}.bak"))
                _fill(files.enter_context(output(copies[-1], like=path)), before)
    return copies


def write_text(name: str, text: str) -> list[Path]:
    """Write a text to what an option names: a file, as :func:`write_files` does, or stdout.

    Returns
    -------
    Path of the copy that was kept, if any.

    Raises
    ------
    DataNotFound
        When the file cannot be written.
    """
    if name == STDOUT:
        sys.stdout.write(text)
        return []
    return write_files({Path(name): text})


@contextmanager
def output(path: Path, *, like: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write bytes to, as :func:`~libra_planner.outputs.output_file` has it.

    Raises
    ------
    DataNotFound
        When the path cannot be written to; what was there stays.
    """
    try:
        with output_file(path, like=like) as file:
            yield file
    except BrokenPipeError:  # Its reader has enough.
        raise
    except IsADirectoryError:
        fault = Fault("got a directory", "expected a file to write", "", "", Place(str(path)))
        raise DataNotFound(fault) from None
    except OSError as error:
        got = f"got {error.strerror or str(error)!r}"
        fault = Fault(got, "expected a writable path", "", "", Place(str(path)))
        raise DataNotFound(fault) from None


def _fill(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()  # A full disk says so before any file is replaced.


def _encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _other_content(path: Path, text: str | bytes) -> bytes | None:
    """What a file has that is about to change."""
    file = regular_file(path)
    before = file.read_bytes() if file is not None and file.exists() else None
    return None if before == _encoded(text) else before
