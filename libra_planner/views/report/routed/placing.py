"""Which placement of a job's servers step times hold for, and what another one decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.procurement.bought.placements import (
    anew_text,
    at_other_placement,
    cure_text,
    is_placeable,
    kept_text,
    other_placement,
    placement_of,
    placements,
    then_text,
)
from libra_planner.procurement.bought.twins import EQUAL, untwinned_ties
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.units import format_time
from libra_planner.views.cells import Value

PLACEMENT = "Placement of a job's servers"

_WORDS = {
    "contiguous": "servers of a job next to each other",
    "rail": "servers of a job on one leaf after the other",
    "random": "servers of a job anywhere",
}


def placement_text(comparison: Comparison) -> str:
    """Which placement checked step times hold for, and what the other one makes of the step."""
    one, found = comparison.candidates[comparison.chosen], placements(comparison)
    if one.check is None:
        return ""
    if not any(map(is_placeable, comparison.candidates)):
        return "No placement of a job's servers changes step times: no network has several leaves."
    if len(found) > 1:
        own = (f"{x.letter} placement {placement_of(x)}" for x in comparison.candidates)
        text = f"Step times hold for unlike places of a job's servers: {', '.join(own)}"
    else:
        text = f"Step times hold for {_WORDS[found[0]]} (placement {found[0]})"
    then = at_other_placement(comparison)
    if then is None:
        return f"{text}."
    moved = then.candidates[comparison.chosen]
    change = moved.step_time_s / one.step_time_s - 1
    where = other_placement(comparison.candidates)
    kept, anew = kept_text(comparison), anew_text(comparison)
    text += f". With placement {where}{kept} a step of {one.letter} takes{' at most' * bool(kept)} "
    text += f"{format_time(moved.step_time_s)} ({change:+.1%})"
    is_told = len(comparison.candidates) > 1 and then.chosen == comparison.chosen
    text += f", and {then_text(comparison, then)}" if is_told else ""
    text += f"{anew}."
    cure = cure_text(one) if abs(change) >= EQUAL else ""
    return f"{text} {cure}".rstrip()


def placement_times_text(comparison: Comparison) -> str:
    """Step times of all designs at the other placement; empty where nobody has them."""
    then = at_other_placement(comparison)
    if then is None or len(then.candidates) == 1:
        return ""
    times = (f"{one.letter} {format_time(one.step_time_s)}" for one in then.candidates)
    where = f"{other_placement(comparison.candidates)}{kept_text(comparison)}"
    most = " at most" if kept_text(comparison) else ""
    return f"Step times with placement {where}:{most} {', '.join(times)}."


def placement_row(comparison: Comparison) -> Iterator[list[Value]]:
    """What the other placement decides, as a row of what would change the decision."""
    then = at_other_placement(comparison)
    if then is not None:
        own, where = placements(comparison), other_placement(comparison.candidates)
        where += kept_text(comparison)
        text = f"{then_text(comparison, then)}{anew_text(comparison)}"
        yield [PLACEMENT.lower(), " and ".join(own), where, text]


def placement_values(comparison: Comparison) -> dict[str, Value]:
    """What the assumptions say of it: by design where plans differ; nothing without a check."""
    designs, found = comparison.candidates, placements(comparison)
    if all(one.check is None for one in designs):
        return {}
    own = ", ".join(f"{one.letter} {placement_of(one)}" for one in designs)
    return {PLACEMENT: own if len(found) > 1 else f"{found[0]}: {_WORDS[found[0]]}"}


def placement_payload(comparison: Comparison) -> dict[str, Any] | None:
    """The placement of the figures, and what to buy at the other one; ``None`` without a check."""
    if all(one.check is None for one in comparison.candidates):
        return None
    then = at_other_placement(comparison)
    found = None
    if then is not None:
        ties = untwinned_ties(then, then.chosen, with_prices=True)
        found = {
            "placement": other_placement(comparison.candidates),
            "design": then.letters[then.chosen],
            "ties": [then.letters[i] for i in ties],
        }
    return {"placement": list(placements(comparison)), "otherwise": found}


def design_placement(one: Candidate) -> dict[str, Any]:
    """The placement of a design's check, and its mean step time at the other one, s."""
    other = one.placed_otherwise
    return {
        "placement": None if one.check is None else placement_of(one),
        "other_placement": None if other is None else other.placement,
        "other_placement_step_time_s": (
            None if other is None else float(other.check.effective_step_time_s.mean())
        ),
    }
