"""What results say about each workload of a group (C8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from libra_planner.problem import Problem
from libra_planner.report.memory import memory_payload

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation

NEEDS_OPTIMA = (
    "the objective {} compares each workload with its own optimum, which only optimize finds: "
    "it has no value here"
)


def group_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """Keys of a group in JSON results; none for a plan with one workload."""
    if not problem.members:
        return {}
    memories = problem.memories
    workloads = [
        {
            "name": member.name,
            "weight": member.weight,
            "step_time_s": member.step_time_s,
            "compute_time_s": member.compute_s,
            "communication_time_s": member.communication_s,
            "speedup_vs_equal": _finite(member.speedup_vs_equal),
            "own_optimum_s": member.own_optimum_s,
            "memory": memory_payload(memories.get(member.name)),
        }
        for member in evaluation.members
    ]
    return {"group_objective": problem.group_objective, "workloads": workloads}


def objective_notes(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """Why the objective has no value, if it has none."""
    if evaluation.objective is None:
        yield NEEDS_OPTIMA.format(problem.group_objective)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
