"""The exception tree: what can go wrong, and the exit code each kind carries.

Every message that reaches a user has the form
``file:line:column: path: got X, expected Y; fix`` and all faults of a file are
reported together. Code below :mod:`libra_planner.reading` knows no files: it raises
a :class:`SpecError` with unlocated faults and the boundary adds the place.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from libra_planner.plain_text import short_text, visible

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

MOST_SHOWN = 20
"""Faults that a message lists; the rest is counted."""

_LONGEST_FOUND = 300
"""Letters of what a message says that was found."""
_LONGEST_PATH = 4096
"""Letters of a file's name: as many as the system takes."""

_LONGEST_SHOWN = 80
_AS_CLOSE = 0.04
"""Difference in similarity up to which two candidates are suggested together."""


@dataclass(frozen=True)
class Place:
    """A position in a user's file; ``line`` and ``column`` count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        file = short_text(self.file, _LONGEST_PATH) or "''"
        parts = [file, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input.

    >>> str(Fault("got 0", "expected at least 1", "write 1", "dp", Place("a.yaml", 3, 5)))
    'a.yaml:3:5: dp: got 0, expected at least 1; write 1'
    """

    got: str
    expected: str = ""
    fix: str = ""
    path: str = ""
    place: Place | None = None
    n: int = 1
    """Faults that it stands for, of which only their number is told."""
    subject: tuple[Any, ...] = ()
    """What it is about: the number of a flow, or of a dimension and its key that is wrong."""
    is_misspelt: bool = False
    """Whether no plan at all could mean it: a name, a key or a unit that nothing has."""
    is_whole: bool = False
    """Whether ``got`` is a message of its own, shown to its end: its fix stands there."""

    def __str__(self) -> str:
        where = beginning(self.place, short_text(self.path, _LONGEST_FOUND))
        got = self.got if self.is_whole else short_text(self.got, _LONGEST_FOUND)
        expected = f", {self.expected}" if self.expected else ""
        fix = f"; {self.fix}" if self.fix else ""
        return visible(f"{where}{got}{expected}{fix}")

    def located(self, place: Place, path: str = "") -> Fault:
        """The same fault with a place, where it has none yet."""
        return replace(self, place=self.place or place, path=self.path or path)


def beginning(place: Place | None, path: str) -> str:
    """How a message about a key at a place begins; a key that the place names stands once.

    >>> beginning(Place("a.yaml", 3), "dp"), beginning(Place("a.yaml: --set dp"), "dp")
    ('a.yaml:3: dp: ', 'a.yaml: --set dp: ')
    """
    parts = (str(place) if place else "", path)
    is_told = f" {parts[0]}".endswith(f" {path}")
    return "".join(f"{part}: " for part in parts[: 1 if is_told else 2] if part)


def more_faults(n: int, place: Place | None) -> Fault:
    """What stands for faults that are not listed.

    >>> str(more_faults(1200, Place("a.yaml")))
    'a.yaml: got 1,200 more faults like these'
    """
    return Fault(f"got {n:,} more faults like these", place=place, n=n)


def merged_faults(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Each fault once: the first of several that say the same names the lines of the others."""
    found: dict[tuple[str, ...], list[Fault]] = {}
    for one in faults:
        found.setdefault((one.got, one.expected, one.fix, one.path), []).append(one)
    for first, *others in found.values():
        lines = [str(one.place.line) for one in others if one.place and one.place.line]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"{len(lines) - _MOST_LINES} more"]
        where = f" (also line{'s' * (len(lines) > 1)} {', '.join(lines)})" if lines else ""
        yield replace(first, got=f"{first.got}{where}")


_MOST_LINES = 20
"""Lines that a message names."""


class PlannerError(Exception):
    """Base of all errors this package raises on purpose."""

    exit_code = 2


class SpecError(PlannerError):
    """An input is wrong; ``faults`` lists everything found, its text the first of them."""

    def __init__(self, *faults: Fault) -> None:
        shown, others = faults[:MOST_SHOWN], faults[MOST_SHOWN:]
        if others:
            place = others[0].place
            file = Place(place.file) if place else None
            shown = (*shown, more_faults(sum(fault.n for fault in others), file))
        super().__init__("\n".join(str(fault) for fault in shown))
        self.faults = faults

    @classmethod
    def at(cls, place: Place | str, got: str, expected: str = "", fix: str = "") -> Self:
        """The error of one fault at a place, or about a file or option."""
        return cls(Fault(got, expected, fix)).located(place)

    def __reduce__(self) -> tuple[type[SpecError], tuple[Fault, ...]]:
        """Faults, not their text, are what it is made of in another process."""
        return type(self), self.faults

    def located(self, place: Place | str, path: str = "") -> Self:
        """The same error with a place on every fault that has none."""
        found = Place(place) if isinstance(place, str) else place
        return type(self)(*(fault.located(found, path) for fault in self.faults))


def refuse(faults: Iterable[Fault]) -> None:
    """Raise the error of faults, if there are any."""
    if found := tuple(faults):
        raise SpecError(*found)


@contextmanager
def located(place: Place | str) -> Iterator[None]:
    """Give a place to what is found wrong meanwhile and has none."""
    try:
        yield
    except SpecError as error:
        raise error.located(place) from None


class Disconnected(SpecError):
    """Failures leave hosts that no path joins."""


class Misspelt(SpecError):
    """What no plan could mean, whatever else it says."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*(replace(fault, is_misspelt=True) for fault in faults))


class UnknownName(Misspelt):
    """A name that is not in the list of known ones."""


class UnitError(Misspelt):
    """A quantity without a unit, or with one of the wrong kind."""


class DataNotFound(Misspelt):
    """A file or bundled data set that does not exist or cannot be read."""


class Infeasible(PlannerError):
    """No bandwidth vector meets the rules; ``conflict`` names those that clash."""

    exit_code = 3

    def __init__(self, message: str, conflict: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.conflict = conflict


class IllPosed(PlannerError):
    """The optimum is not attained by any finite bandwidth vector (C8)."""

    exit_code = 3


class SolverFailed(PlannerError):
    """The solver could not certify its answer to the promised gap (C9)."""

    exit_code = 4


def shown(value: Any) -> str:
    """A value in an error message: short, on one line, in YAML's words.

    >>> shown(None), shown(True), shown([1]), shown("text")
    ('nothing', 'true', 'a list', "'text'")
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return f"a {'map' if isinstance(value, dict) else 'list'}"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def got_several(n: int, name: str) -> str:
    """How many were found.

    >>> got_several(1, "cell"), got_several(1200, "value")
    ('got 1 cell', 'got 1,200 values')
    """
    return f"got {n:,} {name}{'s' * (n != 1)}"


def closest(name: str, known: Iterable[str]) -> str:
    """A did-you-mean clause, naming the close match or else all known names.

    >>> closest("gtp3", ["gpt3", "msft-1t"])
    'did you mean gpt3?'
    >>> closest("x", ["ring", "switch"])
    'known: ring, switch'
    """
    names = list(known)
    close = close_names(name, names)
    return f"did you mean {_alternatives(close)}?" if close else f"known: {', '.join(names)}"


def _alternatives(names: Sequence[str]) -> str:
    """One of them.

    >>> _alternatives(["a", "b", "c"]), _alternatives(["a"])
    ('a, b or c', 'a')
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that a wrong one may have meant; all that are as close.

    >>> close_names("gtp3", ["gpt3", "msft-1t"]), close_names("x", ["ring"])
    (['gpt3'], [])

    A name without its unit may have any:

    >>> close_names("compute", ["compute_us", "count", "compute_s"])
    ['compute_us', 'compute_s']
    """
    folded = {candidate.casefold(): candidate for candidate in known}
    key = f"{name}".casefold()
    matches = difflib.get_close_matches(key, folded, n=4)
    score = {match: difflib.SequenceMatcher(None, match, key).ratio() for match in matches}
    if not matches:  # Such as radix, for switch_radix.
        return [one for fold, one in folded.items() if key in fold.split("_")]
    longer = [one for fold, one in folded.items() if fold.startswith(f"{key}_")]
    if folded[matches[0]] in longer:
        return longer
    return [folded[match] for match in matches if score[match] > score[matches[0]] - _AS_CLOSE]


def wrong_word(value: Any, words: Iterable[str], path: str = "") -> Fault:
    """What is wrong with a value that is none of a few words.

    >>> str(wrong_word("contigous", ("contiguous", "rail", "random"), "placement"))
    "placement: got 'contigous', expected contiguous, rail or random; did you mean contiguous?"
    """
    known = list(words)
    near = close_names(value, known) if isinstance(value, str) else []
    fix = f"did you mean {_alternatives(near)}?" if near else ""
    expected = f"expected {' or '.join(filter(None, (', '.join(known[:-1]), known[-1])))}"
    return Fault(f"got {value!r}", expected, fix, path, is_misspelt=True)


def nearest_divisors(name: str, wrong: int, of: int) -> str:
    """How to correct a number that should divide another: the nearest that do.

    >>> nearest_divisors("pp", 3, 1024), nearest_divisors("tp", 96, 64)
    ('write pp 2 or 4', 'write tp 64')
    """
    below = next((n for n in range(min(wrong, of), 0, -1) if of % n == 0), 1)
    above = next((n for n in range(wrong + 1, of + 1) if of % n == 0), below)
    return f"write {name} " + " or ".join(map(str, dict.fromkeys((below, above))))


def nearest_multiples(wrong: int, of: int) -> str:
    """The nearest positive multiples of a number, below and above another.

    >>> nearest_multiples(1000, 64), nearest_multiples(1, 64)
    ('960 or 1024', '64')
    """
    below = wrong // of * of
    return f"{below} or {below + of}" if below else f"{of}"


def closest_dimension(name: str, known: Iterable[str]) -> str:
    """How to correct a name that no dimension has: all of them for a number, else the nearest."""
    return f"known: {', '.join(known)}" if is_numbered(name) else closest(name, known)


def is_numbered(name: str) -> bool:
    """Whether a name is that of a dimension by its number, such as dim7."""
    return name.startswith("dim") and name[3:].isdigit()


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name outside ``known``, with a did-you-mean."""
    return UnknownName(Fault(f"got {name!r}", f"expected a known {kind}", closest(name, known)))
