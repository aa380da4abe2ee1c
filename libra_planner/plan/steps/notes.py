"""What a plan takes for granted, in notes beside its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from libra_planner.problem import Problem
from libra_planner.step.collectives.calibrated import Calibrated

IS_FIRST = re.compile(r"ECMP puts several flows on one uplink")
"""Words of a note that doubts the step time itself."""
DECIDES = re.compile(
    r"cannot be built|not certain|whole (?:parts|ports|links)|placement only|stay free|\$\S+ less"
    r"|is that meant|cannot be plugged|a rack holds|on their own links|load one another"
    r"|leaves are oversubscribed|compares each workload|paid for and idle|token_copies"
)
"""Words of notes that may change what is bought."""
TELLS_ORIGIN = re.compile(
    r"^(?:calibrated extrapolates|assumed |preset: |no shadow prices|quotes that )"
    r"|is in the price of|all groups of a collective run in step"
    r"|at full bandwidth, without leaves|are one network behind one port|offers? no choice of path"
)
"""Words of notes on where figures come from."""


def in_order(notes: Iterable[str]) -> list[str]:
    """Notes with those first that may change what is bought, and where figures come from last.

    Examples
    --------
    >>> in_order(["assumed NPU price: $27.50k", "LIBRA's table", "It cannot be built: no port"])
    ['It cannot be built: no port', "LIBRA's table", 'assumed NPU price: $27.50k']
    """

    def rank(note: str) -> tuple[bool, bool, bool]:
        is_origin = bool(TELLS_ORIGIN.search(note))
        return not IS_FIRST.search(note), not DECIDES.search(note), is_origin

    return sorted(notes, key=rank)


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
        yield extrapolated(f"{', '.join(dict.fromkeys(x))} of {what}" for what, x in found.items())


def extrapolated(beyond: Iterable[str]) -> str:
    """In one line what goes beyond the measured runs.

    >>> extrapolated(["all-reduce, dp of 4,096 ranks", "all-to-all, ep of 1e+11 bytes"])
    'calibrated extrapolates: all-reduce, dp of 4,096 ranks; all-to-all, ep of 1e+11 bytes'
    """
    return f"calibrated extrapolates: {'; '.join(beyond)}"
