"""Figures of a plan's model of collectives: exact times and balanced schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from libra_planner.problem import Problem
from libra_planner.units import format_time

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation


def fidelity_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """Keys of ``--json``; null where a plan's fidelity has no such figure."""
    balanced = evaluation.balanced
    return {
        "chunks": problem.n_chunks,
        "exact_step_time_s": evaluation.exact_step_time_s,
        "model_gap": evaluation.model_gap,
        "balanced": balanced
        and {
            "step_time_s": balanced.step_time_s,
            "gain": evaluation.balanced_gain,
            "aggregate_bound_s": balanced.aggregate_bound_s,
        },
    }


def fidelity_lines(evaluation: Evaluation) -> Iterator[str]:
    """The same for people."""
    exact_s, balanced = evaluation.exact_step_time_s, evaluation.balanced
    if exact_s is not None:
        yield (
            f"By the exact flow shop of its chunks the step takes [bold]{format_time(exact_s)}[/], "
            f"{evaluation.model_gap:.4f}x the model's time"
        )
    if balanced is not None:
        yield (
            f"Balanced over orders of the dimensions the step would take "
            f"[bold]{format_time(balanced.step_time_s)}[/] ({evaluation.balanced_gain:.4f}x as "
            f"fast); no order of its collectives' dimensions takes less than "
            f"{format_time(balanced.aggregate_bound_s)}. The rest is of the fixed order"
        )
