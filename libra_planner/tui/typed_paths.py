"""Paths as people type them, which may be any text."""

from __future__ import annotations

import os
from pathlib import Path

from libra_planner.errors import Fault, Place, SpecError

_MOST_SHOWN = 60
"""Letters of a path in a message about it: the system refuses those of thousands."""


def typed_path(text: str) -> Path:
    """The path that was typed, which need not be there; ``~`` is the home of a person.

    Raises
    ------
    SpecError
        For what no file can be called, or what the system does not let look for.
    """
    try:
        path = Path(os.path.expanduser(text.strip()))  # A home that nobody has stays as it is.
        path.lstat()
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
        place, fix = Place(shown.replace("\0", "?")), "give another path"
        raise SpecError(Fault(f"got {reason!r}", "", fix, "", place)) from None
    return path


def real_path(path: Path) -> Path:
    """The absolute path behind links; the path as it is where the system does not tell."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # A working directory that is gone.
        return path


def working_directory() -> Path:
    """Where relative paths begin."""
    try:
        return Path.cwd()
    except OSError:  # It is gone.
        return Path()
