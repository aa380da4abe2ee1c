"""Plans that were open lately, and the designs they were left with (XDG state folder)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import read_json
from libra_planner.outputs import output_file

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


MOST_RECENT = 20


@dataclass(frozen=True)
class RecentPlan:
    """A plan's absolute path and the design that was on screen, GB/s, if any."""

    path: str
    bandwidth_GBps: tuple[float, ...] | None = None


def state_folder() -> Path:
    """Where the cockpit keeps what it remembers."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "libra-planner"


def recent_plans() -> list[RecentPlan]:
    """Latest first; nothing where there is no list that can be read."""
    try:
        entries = read_json(state_folder() / "recent.json")
        return [
            RecentPlan(str(entry["path"]), _vector(entry.get("bandwidth_GBps")))
            for entry in entries
        ]
    except (SpecError, ValueError, TypeError, KeyError):
        return []


def _vector(value: object) -> tuple[float, ...] | None:
    return tuple(float(b) for b in value) if isinstance(value, list) and value else None


def remember(plan: RecentPlan) -> None:
    """Put a plan first; a folder that cannot be written to only costs the memory."""
    listed = [plan, *(one for one in recent_plans() if one.path != plan.path)][:MOST_RECENT]
    entries = [{"path": one.path, "bandwidth_GBps": one.bandwidth_GBps} for one in listed]
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with output_file(folder / "recent.json") as file:
            file.write(json.dumps(entries, indent=1).encode())
    except OSError:
        return


def left_with(path: Path) -> tuple[float, ...] | None:
    """The design that a plan was left with, GB/s."""
    known = {one.path: one.bandwidth_GBps for one in recent_plans()}
    return known.get(str(real_path(path)))
