"""What a plan takes for granted, in notes beside its figures, and what kind each note is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from libra_planner.problem import Problem
from libra_planner.step.collectives.calibrated import Calibrated


class Kind(IntEnum):
    """What a note is about; those of less come first."""

    STEP = 0
    """It doubts the step time itself."""
    DECISION = 1
    """Money, or a risk: it may change what is bought."""
    PLAIN = 2
    """Everything else."""
    BASIS = 3
    """Where figures come from."""


class Note(str):
    """A sentence beside figures that knows its kind; every other text is plain.

    Parameters
    ----------
    text : for people.
    kind : what it is about.
    """

    kind: Kind

    def __new__(cls, text: str, kind: Kind = Kind.PLAIN) -> Note:
        found = super().__new__(cls, text)
        found.kind = kind
        return found


def kind_of(note: str) -> Kind:
    """The kind that a note was given where it was made."""
    return note.kind if isinstance(note, Note) else Kind.PLAIN


def lead_of(note: str) -> str:
    """The word before a note where it is printed: one that may change what is bought stands out.

    >>> lead_of(Note("$1M less", Kind.DECISION)), lead_of("a table")
    ('Consider', 'Note')
    """
    return "Consider" if kind_of(note) <= Kind.DECISION else "Note"


def of_kind(kind: Kind, notes: Iterable[str]) -> Iterator[Note]:
    """Notes of one kind.

    >>> [note.kind.name for note in of_kind(Kind.BASIS, ["assumed NPU price: $27.50k"])]
    ['BASIS']
    """
    yield from (Note(note, kind) for note in notes)


def in_order(notes: Iterable[str]) -> list[str]:
    """Notes with those first that may change what is bought, and where figures come from last.

    Examples
    --------
    >>> in_order([Note("assumed price", Kind.BASIS), "a table", Note("no port", Kind.DECISION)])
    ['no port', 'a table', 'assumed price']
    """
    return sorted(notes, key=kind_of)


def plan_notes(problem: Problem) -> Iterator[str]:
    """What a plan takes for granted, and its keys that the figures do not use."""
    yield from in_order(_plan_notes(problem))


def _plan_notes(problem: Problem) -> Iterator[str]:
    yield from problem.text.notes
    if problem.text.unused_keys:
        name = "calibrated" if isinstance(problem.step.model, Calibrated) else "ideal"
        yield f"fidelity {name} does not use {', '.join(problem.text.unused_keys)}"
    yield from _calibrated_notes(problem)


def _calibrated_notes(problem: Problem) -> Iterator[str]:
    """Collectives beyond those that were measured, of a plan that runs them as measured (C20)."""
    model = problem.step.model
    if not isinstance(model, Calibrated):
        return
    found: dict[str, list[str]] = {}
    for one in problem.step.communications:
        for what in model.extrapolations(one.collective, one.group):
            found.setdefault(what, []).append(one.label)
    if found:
        beyond = (f"{', '.join(dict.fromkeys(x))} of {what}" for what, x in found.items())
        yield Note(extrapolated(beyond), Kind.BASIS)


def extrapolated(beyond: Iterable[str]) -> str:
    """In one line what goes beyond the measured runs.

    >>> extrapolated(["all-reduce, dp of 4,096 ranks", "all-to-all, ep of 1e+11 bytes"])
    'calibrated extrapolates: all-reduce, dp of 4,096 ranks; all-to-all, ep of 1e+11 bytes'
    """
    return f"calibrated extrapolates: {'; '.join(beyond)}"
