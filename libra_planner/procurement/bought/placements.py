"""Designs checked once more with the servers of a job placed otherwise: what that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from libra_planner.allowed import PLACEMENTS
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.realization import RealizedDesign
from libra_planner.plain_text import joined
from libra_planner.problem import fastest_alternative
from libra_planner.procurement.bought.twins import untwinned_ties
from libra_planner.procurement.candidate import Candidate, PlacedCheck, bought_links
from libra_planner.procurement.ranking import Comparison, ranking

CONTIGUOUS, _, RANDOM = PLACEMENTS


def placement_of(one: Candidate) -> str:
    """Where the plan of a design has the servers of a job."""
    return one.bought.design.realization.traffic.placement


def other_placement(candidates: Sequence[Candidate]) -> str:
    """What designs are checked with once more: random, or contiguous where all are random."""
    return CONTIGUOUS if {*map(placement_of, candidates)} == {RANDOM} else RANDOM


def is_placeable(one: Candidate) -> bool:
    """Whether any of its networks joins leaves: below one leaf all places are alike."""
    return _joins_leaves(one.bought.design)


def _joins_leaves(design: RealizedDesign) -> bool:
    fabrics = (built.fabric for built in design.dimensions)
    return any(isinstance(x, Clos) and x.n_leaves * x.n_pods > 1 for x in fabrics)


def cure_text(one: Candidate) -> str:
    """The cheaper wiring of a design where no placement changes a step with it; or empty."""
    found = one.rewired if is_placeable(one) else None
    if found is None or _joins_leaves(found.design):
        return ""
    what = f"{found.what[:1].upper()}{found.what[1:]}"
    return f"{what} do not depend on placement: one switch joins any two servers."


def placed_otherwise(one: Candidate, placement: str) -> PlacedCheck | None:
    """The check of a design with another placement, by the same policy and seeds.

    Its strategy stays. A design whose network is one leaf, or that has this placement already,
    keeps the check that it has.

    Parameters
    ----------
    one : a design; ``None`` comes of one that was not checked.
    placement : one of :data:`~libra_planner.allowed.PLACEMENTS`.
    """
    found = one.check
    if found is None:
        return None
    if is_placeable(one) and placement_of(one) != placement:
        own = one.proposal
        chosen = fastest_alternative(own.problem, own.bandwidth_Bps)
        links = bought_links(chosen, own.bandwidth_Bps, one.bought)
        links = replace(links, traffic=replace(links.traffic, placement=placement))
        found = links.report(found.policy, seeds=found.seeds.tolist())
    return PlacedCheck(placement, found)


def checked_otherwise(
    candidates: Sequence[Candidate], tell: Callable[[int, int], None] | None = None
) -> tuple[Candidate, ...]:
    """The designs, each with its check at the other placement.

    As they are where one was not checked, or where none has a network of several leaves.

    Parameters
    ----------
    candidates : of one comparison.
    tell : is told how many of all are done.
    """
    if any(one.check is None for one in candidates) or not any(map(is_placeable, candidates)):
        return tuple(candidates)
    placement, made = other_placement(candidates), []
    for n, one in enumerate(candidates, 1):
        made.append(replace(one, placed_otherwise=placed_otherwise(one, placement)))
        if tell is not None:
            tell(n, len(candidates))
    return tuple(made)


def at_other_placement(comparison: Comparison) -> Comparison | None:
    """The same designs at the step times of the other placement; ``None`` where nobody has them."""
    moved = [
        replace(one, check=one.placed_otherwise.check)
        for one in comparison.candidates
        if one.placed_otherwise is not None
    ]
    if len(moved) < len(comparison.candidates):
        return None
    return replace(comparison, candidates=tuple(moved), ranking=ranking(moved))


def placements(comparison: Comparison) -> tuple[str, ...]:
    """The placements of the plans, each once."""
    return tuple(dict.fromkeys(map(placement_of, comparison.candidates)))


def then_text(comparison: Comparison, then: Comparison) -> str:
    """What to buy at other step times of the same designs, in words.

    Examples
    --------
    "C is best per dollar, in a tie with A and B within the model's error", or "B stays best per
    dollar".
    """
    best = then.chosen
    stays = "stays" if best == comparison.chosen else "is"
    ties = [then.letters[i] for i in untwinned_ties(then, best, with_prices=True)]
    tie = f", in a tie with {joined(ties, 'and')} within the model's error" if ties else ""
    return f"{then.letters[best]} {stays} {comparison.criterion}{tie}"


def kept_text(comparison: Comparison) -> str:
    """Which strategies the other placement is checked with, where some were searched; or empty."""
    is_open = any(one.proposal.found is not None for one in comparison.candidates)
    own = joined(placements(comparison), "and")
    return f" and the strategies found for {own}" if is_open else ""


def anew_text(comparison: Comparison, *, is_brief: bool = False) -> str:
    """That other strategies may suit the other placement better, and how to search; or empty.

    Parameters
    ----------
    is_brief : without the option that searches them.
    """
    if not kept_text(comparison):
        return ""
    setting = f"fabric.realization.placement={other_placement(comparison.candidates)}"
    how = "" if is_brief else f": add --set {setting} to search for them"
    order = ", and change the order" * (len(comparison.candidates) > 1)
    return f"; other strategies may take less{order}{how}"


def placement_points(comparison: Comparison, *, is_brief: bool = False) -> Iterator[str]:
    """That another placement decides for another design, in words.

    Parameters
    ----------
    is_brief : without the option that searches strategies anew.
    """
    then, kept = at_other_placement(comparison), kept_text(comparison)
    if then is not None and then.chosen != comparison.chosen:
        placement = other_placement(comparison.candidates)
        yield (
            f"with placement {placement} of a job's servers{kept} {then_text(comparison, then)}"
            f"{anew_text(comparison, is_brief=is_brief)}{'; ' if kept else ': '}"
            "ask how the cluster's scheduler places jobs"
        )
