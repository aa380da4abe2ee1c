"""Differences of two recordings: in words and figures, and in the last digits of numbers."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
SAME = 1e-9
"""Relative difference up to which numbers differ in their last digits only.

Of numbers that are smaller than this themselves, such as the gap that a solver leaves, all digits
are last ones.
"""

_MOST_LINES = 12
"""Lines of a file's difference that are printed."""


def compare(old: Path, new: Path, *, only: str = "*") -> int:
    """Print every difference; 1 where it is more than last digits of numbers.

    Parameters
    ----------
    old, new : folders of recordings.
    only : pattern of the files to look at.
    """
    n_real = n_digits = 0
    for name in sorted(_files(old) | _files(new)):
        if not fnmatch.fnmatch(name, only):
            continue
        before, after = (_text(folder / name) for folder in (old, new))
        if before == after:
            continue
        worst = None if None in (before, after) else largest_difference(before or "", after or "")
        if worst is not None and worst <= SAME:
            n_digits += 1
            print(f"last digits  {name}: to {worst:.1e}")
            continue
        n_real += 1
        print(f"DIFFERENT    {name}" + (f": numbers alone, to {worst:.1e}" if worst else ""))
        for line in _lines(before, after):
            print(f"    {line}")
    print(f"{n_real} files differ, {n_digits} more in last digits only")
    return int(n_real > 0)


def largest_difference(before: str, after: str) -> float | None:
    """The largest relative difference of two texts' numbers; ``None`` where words differ too.

    >>> largest_difference("took 1.5 s", "took 3 s")
    0.5
    >>> largest_difference("took 1.5 s", "took 1.5 h") is None
    True
    """
    if NUMBER.split(before) != NUMBER.split(after):
        return None
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return max((_difference(one, other) for one, other in pairs if one != other), default=0.0)


def _difference(one: str, other: str) -> float:
    a, b = (float(text.replace(",", "")) for text in (one, other))
    largest = max(abs(a), abs(b))
    return abs(a - b) / largest if largest > SAME else abs(a - b)


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _lines(before: str | None, after: str | None) -> Iterator[str]:
    """The first lines that differ."""
    if before is None or after is None:
        yield "only in the old one" if after is None else "only in the new one"
        return
    changed = [
        line[:200]
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    yield from changed[:_MOST_LINES]
    if len(changed) > _MOST_LINES:
        yield f"... {len(changed) - _MOST_LINES} more lines"
