"""Equal bandwidth, which speedups are over (C9), in words that every view has."""

from __future__ import annotations

from libra_planner.evaluation import Evaluation
from libra_planner.units import format_bandwidth, format_time, format_usd


def equal_bandwidth_text(evaluation: Evaluation) -> str:
    """Its bandwidth, step time and cost, and whether it breaks the rules of the plan."""
    equal = evaluation.equal
    what = " system cost" if evaluation.fixed_cost_usd else ""
    breaks = "" if equal.feasible else ", breaks the rules"
    return (
        f"{format_bandwidth(equal.bandwidth_bytes_per_s[0])} each: "
        f"{format_time(equal.step_time_s)}, {format_usd(equal.cost_usd)}{what}{breaks}"
    )
