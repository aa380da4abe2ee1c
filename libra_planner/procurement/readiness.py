"""What has to be settled before the design to buy is signed for."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.procurement.bill import Bill
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison

_MOST_ASSUMED = 0.5
"""Share of a price above which it has to be quoted first."""


def blocked(one: Candidate) -> str:
    """Why nobody should sign for a design; empty where nothing is known against it."""
    if one.evaluation.violated:
        return f"{one.letter} breaks rules of its plan"
    if any(states.fits is False for states in one.proposal.problem.step.memories.values()):
        return f"the model of {one.letter} does not fit its NPUs"
    return "" if one.facility.n_servers_per_rack else f"no rack powers a server of {one.letter}"


def assumed_fraction(bill: Bill) -> float:
    """Share of the price of everything, before tax, whose prices are assumed."""
    return bill.fraction_of(bill.assumed_usd) or 0.0


def is_mostly_assumed(bill: Bill) -> bool:
    """Whether more than half of a price is assumed."""
    return assumed_fraction(bill) > _MOST_ASSUMED


def open_points(comparison: Comparison) -> Iterator[str]:
    """What has to be settled before anybody signs; nothing where the design is ready."""
    one = comparison.candidates[comparison.chosen]
    if reason := blocked(one):
        yield reason
    if comparison.missing:
        yield f"no price of {', '.join(part.name for part in comparison.missing)}"
    if is_mostly_assumed(one.bill):
        yield f"{assumed_fraction(one.bill):.0%} of the price of {one.letter} is assumed"
    if one.check is None:
        yield f"the step time of {one.letter} is not checked on its links"


def best_sprayed(comparison: Comparison) -> int | None:
    """The design to buy if packets were sprayed, from the same check; ``None`` without one."""
    checks = [one.check for one in comparison.candidates]
    worth = {
        i: value * check.spray_step_time_s / comparison.candidates[i].step_time_s
        for i, (value, check) in enumerate(zip(comparison.worth, checks, strict=True))
        if check is not None and i in comparison.eligible
    }
    if comparison.times_s is None or len(worth) < len(comparison.eligible):
        return None
    return min(worth, key=worth.__getitem__)
