"""What each assumption about a run makes of its cost and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from libra_planner.procurement.assumptions import Assumptions
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION
from libra_planner.procurement.run import Run, training_run


def _electricity(assumed: Assumptions, factor: float) -> Assumptions:
    price = assumed.electricity
    dearer = replace(price, usd_per_kwh=factor * price.usd_per_kwh)
    return replace(assumed, electricity=dearer)


def _failures(assumed: Assumptions, factor: float) -> Assumptions:
    rates = assumed.failures
    more = replace(
        rates,
        npu_per_s=factor * rates.npu_per_s,
        server_per_s=factor * rates.server_per_s,
        switch_per_s=factor * rates.switch_per_s,
        optic_per_s=factor * rates.optic_per_s,
    )
    return replace(assumed, failures=more)


def _checkpoint(assumed: Assumptions, factor: float) -> Assumptions:
    return replace(assumed, checkpoint_s=factor * assumed.checkpoint_s)


def _restart(assumed: Assumptions, factor: float) -> Assumptions:
    return replace(assumed, restart_s=factor * assumed.restart_s)


def _years(assumed: Assumptions, factor: float) -> Assumptions:
    return replace(assumed, amortisation_s=factor * assumed.amortisation_s)


_MOVED: dict[str, Callable[[Assumptions, float], Assumptions]] = {
    "years of use": _years,
    "electricity price": _electricity,
    "failure rates": _failures,
    "checkpoint time": _checkpoint,
    "restart time": _restart,
}


@dataclass(frozen=True)
class RunSwing:
    """One assumption moved down and up.

    Parameters
    ----------
    name : of the assumption.
    low, high : the run at less and at more of it.
    """

    name: str
    low: Run
    high: Run


def run_swings(one: Candidate) -> tuple[RunSwing, ...]:
    """The run of a design as each assumption moves by 20 %; empty for a design without a run."""
    if one.run is None:
        return ()
    return tuple(
        RunSwing(name, _run(one, move, 1 - SWING_FRACTION), _run(one, move, 1 + SWING_FRACTION))
        for name, move in _MOVED.items()
    )


def _run(one: Candidate, move: Callable[[Assumptions, float], Assumptions], factor: float) -> Run:
    proposal, run = one.proposal, one.run
    if not proposal.tokens_per_step or run is None:
        raise ValueError("the design has no run")
    return training_run(
        one.bill,
        move(proposal.shop.assumptions, factor),
        step_time_s=one.step_time_s,
        tokens_per_step=proposal.tokens_per_step,
        n_tokens=run.n_tokens,
    )
