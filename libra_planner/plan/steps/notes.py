"""What a plan takes for granted, in notes beside its figures."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.problem import Problem
from libra_planner.step.collectives.calibrated import Calibrated


def plan_notes(problem: Problem) -> Iterator[str]:
    """What a plan takes for granted, and its keys that the figures do not use."""
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
    for what, labels in found.items():
        yield f"calibrated extrapolates: {', '.join(dict.fromkeys(labels))} of {what}"
