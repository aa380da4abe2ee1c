"""Reading users' files with clear faults; writing files whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from libra_planner.errors import DataNotFound, Fault, Place, SpecError, close_names

STDOUT = "-"
"""What stands for stdout where an option names a file to write."""

_OPEN_FILE = re.compile(r"/(?:proc/self|dev)/fd/(\d+)|/dev/(stdout|stderr)")
_STREAMS = {"stdout": 1, "stderr": 2}

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How files of spreadsheets begin, new and old ones."""

_MOST_LINKS = 40
_LONGEST_NAME = 100
_MODE = 0o644


def near_path(path: str) -> str:
    """An absolute path as it is written from here, where it is in or near this folder.

    >>> near_path(str(Path.cwd() / "q.csv")), near_path("/nowhere/else/q.csv"), near_path("a/b")
    ('q.csv', '/nowhere/else/q.csv', 'a/b')
    """
    if not os.path.isabs(path):
        return path
    with suppress(ValueError):  # On another drive.
        near = os.path.relpath(path)
        return near if len(near) < len(path) and not near.startswith("../..") else path
    return path


def near_files(path: Path) -> list[str]:
    """Files beside a path to nothing that have a name like its own.

    >>> near_files(Path("README.mdx"))
    ['README.md']
    """
    try:
        names = sorted(one.name for one in os.scandir(path.parent) if one.is_file())
    except OSError:
        return []
    near = [name for name in close_names(path.name, names) if _is_alike(Path(name), path)]
    return [str(path.parent / name) for name in near[:_MOST_NEAR]]


def _is_alike(other: Path, path: Path) -> bool:
    """Whether names are alike without their endings, too."""
    return bool(close_names(path.stem, [other.stem]))


_MOST_NEAR = 3


@contextmanager
def output_file(
    path: Path, *, prefix: str | None = None, durable: bool = False, like: Path | None = None
) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes the place of ``path`` when all of them are there.

    Where ``path`` is a link, the file behind it is replaced. What is no regular file, such as a
    device, a pipe or ``/dev/stdout``, is written into as it is.

    Parameters
    ----------
    path : of the file.
    prefix : of the name that the file has meanwhile.
    durable : whether to wait until the disk has it.
    like : file whose permissions a new file gets.

    Raises
    ------
    OSError
        When the path cannot be written to; what was there stays.
    """
    target = regular_file(path)
    if target is None:
        with _opened(path) as file:
            yield file
        return
    folder = target.parent
    prefix = prefix or f".{target.name[:_LONGEST_NAME]}."
    handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        modes = (_existing_mode(path) for path in (target, like) if path is not None)
        os.chmod(name, next((stat.S_IMODE(mode) for mode in modes if mode is not None), _MODE))
        os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    if durable:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def regular_file(path: Path) -> Path | None:
    """The file behind links, which may not be there yet; ``None`` for what is no regular file.

    Raises
    ------
    OSError
        For a folder, and for links that lead to themselves.
    """
    if _descriptor(path) is not None:
        return None
    real = Path(os.path.realpath(path))
    mode = _existing_mode(real)
    if mode is None or stat.S_ISREG(mode):
        return real
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ELOOP
    if stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
        raise OSError(number, os.strerror(number))
    return None


def _existing_mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """Number of the open file that a path such as ``/dev/stdout`` means, behind links too.

    >>> _descriptor(Path("/dev/stdout")), _descriptor(Path("/dev/fd/7")), _descriptor(Path("a"))
    (1, 7, None)
    """
    name = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        if found := _OPEN_FILE.fullmatch(name):
            return _STREAMS[found[2]] if found[2] else int(found[1])
        if not os.path.islink(name):
            break
        name = os.path.normpath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


def _opened(path: Path) -> BinaryIO:
    """A device or pipe to write into; a pipe without a reader is not waited for."""
    number = _descriptor(path)
    if number is not None:
        for stream in (sys.stdout, sys.stderr):  # What was printed before comes before.
            if stream is not None:
                stream.flush()
        return os.fdopen(os.dup(number), "wb")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OSError(errno.ENXIO, "a pipe or device that nobody reads") from None
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


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
    here, fix = Place(str(path)), "check the path"
    try:
        if not str(path).startswith(("/dev/", "/proc/")) and Path(path).is_fifo():
            # It would be waited for without end; a shell's own pipes are read.
            got, fix = "got a named pipe", "save it to a file"
            raise DataNotFound(Fault(got, "expected a file", fix, "", here))
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
        if near := near_files(Path(path)):
            fix = f"did you mean {' or '.join(near)}?"
    except IsADirectoryError:
        got, expected = "got a directory", "expected a file"
    except UnicodeDecodeError:
        got, expected = "got bytes that are not UTF-8", "expected a text file"
        fix = "save it as UTF-8 (a spreadsheet: as CSV UTF-8)"
        if data.startswith(_WORKBOOKS):
            got, fix = "got an Excel workbook", "save it as text; a table as CSV UTF-8"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        got, expected = f"got {reason!r}", "expected a readable file"
    raise DataNotFound(Fault(got, expected, fix, "", here))


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
            file = regular_file(path)
            before = file.read_bytes() if file is not None and file.exists() else None
            if before is not None and before != _encoded(text):
                copies.append(path.with_name(f"{path.name}.bak"))
                _fill(files.enter_context(output(copies[-1], like=path)), before)
    return copies


def refuse_existing(name: str, *, is_forced: bool) -> None:
    """Refuse to write over a file that nobody allows to be lost.

    Raises
    ------
    SpecError
        For a file that is there, without ``--force``.
    """
    if name != STDOUT and not is_forced and Path(name).is_file():
        fix = "add --force to replace it, or give another name"
        raise SpecError.at(name, "got a file that is there already", "", fix)


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
    """A file to write bytes to, as :func:`~libra_planner.files.output_file` has it.

    Raises
    ------
    DataNotFound
        When the path cannot be written to; what was there stays.
    """
    try:
        with output_file(path, like=like) as file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # Its reader has enough.
            raise
        got, expected = f"got {error.strerror or str(error)!r}", "expected a writable path"
        if isinstance(error, IsADirectoryError):
            got, expected = "got a directory", "expected a file to write"
        raise DataNotFound(Fault(got, expected, "", "", Place(str(path)))) from None


def _fill(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()  # A full disk says so before any file is replaced.


def _encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
