"""What stands under the figures of a design, wherever people read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from libra_planner.report.groups import objective_notes
from libra_planner.units import format_time

_ALGORITHMS = "algorithms"
"""The key of a plan that its collectives run by on real links, whatever its fidelity."""

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem


def plan_notes(problem: Problem) -> Iterator[str]:
    """What a plan takes for granted, and its keys that the figures do not use."""
    yield from problem.notes
    if problem.unused_keys:
        yield f"fidelity ideal does not use {', '.join(problem.unused_keys)}"


def as_checked(problem: Problem) -> Problem:
    """The plan where its links are checked: its collectives run by the algorithms it names."""
    unused = tuple(key for key in problem.unused_keys if key != _ALGORITHMS)
    return replace(problem, unused_keys=unused)


def result_notes(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """What the figures take for granted, and what partial groups would cost on their own links."""
    yield from objective_notes(problem, evaluation)
    yield from plan_notes(problem)
    real_s = evaluation.real_link_step_time_s
    if real_s is not None:
        slower = real_s / evaluation.step_time_s - 1
        yield (
            f"some parallel groups span only part of a dimension. The model grants them all "
            f"of its bandwidth, as LIBRA does; on their own links the step would take "
            f"{format_time(real_s)} ({slower:+.1%})"
        )
