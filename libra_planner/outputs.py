"""Files that are written: whole or not at all, behind links, and into devices and pipes."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

STDOUT = "-"
"""What stands for stdout where an option names a file to write."""

_OPEN_FILE = re.compile(r"/(?:proc/self|dev)/fd/(\d+)|/dev/(stdout|stderr)")
_STREAMS = {"stdout": 1, "stderr": 2}

_MOST_LINKS = 40
_LONGEST_NAME = 100
_MODE = 0o644


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
        os.chmod(name, _mode(target, like))
        os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    if durable:
        _sync_folder(folder)


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


def _mode(target: Path, like: Path | None) -> int:
    """Permissions of the file that is there, or of a similar one."""
    modes = (_existing_mode(path) for path in (target, like) if path is not None)
    return next((stat.S_IMODE(mode) for mode in modes if mode is not None), _MODE)


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


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
