"""Whether files of the open plan say something else by now than what is on screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.errors import PlannerError
from libra_planner.tui.disk.readings import changed_keys, digest_of, file_text, plan_values

_Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    """What changes with a file's content; ``None`` where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass
class Watch:
    """Files that the plan on screen was read from.

    Parameters
    ----------
    files : digests of what was read; the first is the plan's own.
    changed : those that say something else now, as of the latest look.
    """

    files: dict[Path, bytes] = field(default_factory=dict)
    changed: tuple[Path, ...] = ()
    _stamps: dict[Path, _Stamp] = field(default_factory=dict)

    def begin(self, files: Mapping[Path, bytes]) -> tuple[Path, ...]:
        """Take what was read; returns files that said something else the time before."""
        kept = {path: one for path, one in files.items() if path.is_file() or not path.exists()}
        others = tuple(path for path, one in kept.items() if self.files.get(path, one) != one)
        self.files, self._stamps = kept, {}  # A pipe is read once: nobody looks again.
        self.look()
        return others

    def look(self) -> bool:
        """Look at all files whose stamps changed; whether anything is otherwise than before."""
        before, changed = self.changed, []
        for path, known in self.files.items():
            stamp, seen = _stamp(path), path in self._stamps
            is_same = seen and stamp == self._stamps[path]
            is_changed = path in before if is_same else digest_of(path) != known
            self._stamps[path] = stamp
            changed += [path] if is_changed else []
        self.changed = tuple(changed)
        return self.changed != before


def changed_files(files: Mapping[Path, bytes]) -> list[str]:
    """Names of files that no longer say what they said."""
    return [path.name for path, known in files.items() if digest_of(path) != known]


def refuse_changed(files: Mapping[Path, bytes], whose: str) -> None:
    """Refuse to work with figures of files that say something else by now.

    Raises
    ------
    PlannerError
        With their names.
    """
    if names := changed_files(files):
        verb = "is" if len(names) == 1 else "are"
        text = f"{', '.join(names)} {verb} not what {whose} was read with"
        raise PlannerError(f"{text}: R reads the files again")


def change_words(path: Path, text: str | None, changed: Sequence[Path]) -> str:
    """What changed on disk and what a person can do, for the status line; empty for nothing.

    Parameters
    ----------
    path, text : the plan's file, and what it said.
    changed : files that say something else now.
    """
    if not changed:
        return ""
    if path in changed and not path.exists():
        return f"{path.name} is gone from disk: s writes it again, as on screen"
    names = ", ".join(one.name for one in changed)
    keys = changed_words(path, text) if path in changed else ""
    return f"{names} changed on disk: R reads it, else the screens keep theirs{keys}"


def changed_words(path: Path, text: str | None) -> str:
    """Keys that a plan's file has otherwise than a text, in brackets; empty for none."""
    now = file_text(path)
    if now is None:
        return " (it cannot be read)"
    before, found = plan_values(path, (), text or ""), plan_values(path, (), now)
    return f" ({', '.join(changed_keys(before, found)) or 'remarks or spacing only'})"
