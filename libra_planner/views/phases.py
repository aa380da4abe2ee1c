"""Which algorithms a check has run, as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from libra_planner.check.links import CheckReport
from libra_planner.check.traffic import MOST_MESSAGES, Choice
from libra_planner.step.collectives.algorithms import Algorithm
from libra_planner.units import format_time
from libra_planner.workload.parallelism import Communication


def labels(users: Sequence[Communication]) -> list[str]:
    """Names of collectives; those that differ in size only have one."""
    return list(dict.fromkeys(user.label for user in users))


def algorithms_payload(report: CheckReport) -> list[dict[str, Any]]:
    """What every communicator runs in each switch dimension."""
    return [
        {
            "dimension": report.design.dimensions[choice.stage.dim].label,
            "collectives": labels(choice.users),
            "algorithm": choice.algorithm,
            **choice_payload(choice),
        }
        for choice in report.choices
    ]


def choice_payload(choice: Choice) -> dict[str, Any]:
    """Why an algorithm runs, the time that it takes in a step, and that of what else could."""
    return {
        "chosen": _reason(choice),
        "time_s": choice.time_s,
        "others": [{"algorithm": name, "time_s": s} for name, s in choice.others.items()],
    }


def _reason(choice: Choice) -> str:
    if choice.stage.is_named:
        return "named"
    return "faster" if choice.others else "only"


def algorithm_lines(report: CheckReport) -> Iterator[str]:
    """What every communicator runs in each switch dimension, for people."""
    for choice in report.choices:
        built = report.design.dimensions[choice.stage.dim]
        users = "; ".join(labels(choice.users))
        time = format_time(choice.time_s)
        yield f"{built.label}: {choice.algorithm} takes {time} a step for {users}{_else(choice)}"


def _else(choice: Choice) -> str:
    if choice.stage.is_named:
        return " (the plan names it)"
    if choice.taken is Algorithm.DIRECT1:
        return f" (direct would send more than {MOST_MESSAGES:,} messages at once)"
    others = [f"{name} would take {format_time(s)}" for name, s in choice.others.items()]
    return f" ({', '.join(others)})" if others else ""
