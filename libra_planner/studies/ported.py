"""Strategies of designs that leave them open, on the whole ports that their bills buy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from libra_planner.check.phases import CheckMemo
from libra_planner.check.rerouted import JudgedDesign, judged_design
from libra_planner.inputs.plans import SearchedPlan
from libra_planner.inputs.routed import routed_strategies
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.procurement.bill import Parts
from libra_planner.procurement.candidate import (
    StrategyOnLinks,
    billed_bandwidth_Bps,
    bought_links,
)
from libra_planner.procurement.lines import purchase
from libra_planner.routing.policy import Policy
from libra_planner.step.expression import Array
from libra_planner.studies.designs import GivenDesign

if TYPE_CHECKING:
    from libra_planner.search.best import Progress


def ported_design(
    design: GivenDesign,
    parts: Parts,
    *,
    policy: Policy | None,
    seeds: tuple[int, ...] | None,
    n_best: int,
    progress: Progress | None = None,
) -> tuple[GivenDesign, StrategyOnLinks | None]:
    """A design with the strategy that is the best on the whole ports that its bill buys.

    By the model at their bandwidth, and of those that may be better on links, where a policy is
    asked for. A plan that says its strategy keeps it.

    Parameters
    ----------
    design, parts : it, and whose ports are sold.
    policy, seeds : how its links are checked; ``None`` for no check.
    n_best, progress : of a search.

    Raises
    ------
    PlannerError
        For a design that cannot be built, or routed.
    """
    opened = design.opened
    if opened is None or design.found is None:
        return design, None
    asked_Bps = design.bandwidth_Bps
    billed_Bps = billed_bandwidth_Bps(purchase(design.problem, asked_Bps, parts), asked_Bps)
    if billed_Bps is not asked_Bps:
        searched = opened.searched(
            bandwidth_bytes_per_s=billed_Bps, n_best=n_best, progress=progress
        )
        design = _with(design, searched)
    found = design.found
    if policy is None or found is None or not found.is_certified:
        return design, None
    check = partial(_checked, bandwidth_Bps=asked_Bps, parts=parts, policy=policy, seeds=seeds)
    first = SearchedPlan(design.problem, design.settings, found)
    told = progress and partial(progress, "strategies are checked on links")
    routed, _ = routed_strategies(opened, first, found, check, told)
    best, blind = routed.best, routed.best_in_model
    on_links = StrategyOnLinks(
        best.words,
        blind.words,
        blind.step_time_s,
        len(routed.ranked),
        routed.n_left,
    )
    return (design if best is blind else _with(design, best.searched)), on_links


def _checked(
    problem: Problem,
    memo: CheckMemo,
    *,
    bandwidth_Bps: Array,
    parts: Parts,
    policy: Policy,
    seeds: tuple[int, ...] | None,
) -> JudgedDesign:
    """A plan with its strategy on the links that are bought, by time: they cost all the same."""
    chosen = fastest_alternative(problem, bandwidth_Bps)
    bought = purchase(problem, bandwidth_Bps, parts)
    report = bought_links(chosen, bandwidth_Bps, bought, memo).report(policy, seeds=seeds)
    step_time_s = float(report.effective_step_time_s.mean())
    return replace(judged_design(chosen, bandwidth_Bps, report), objective=step_time_s)


def _with(design: GivenDesign, searched: SearchedPlan) -> GivenDesign:
    """The design with another strategy."""
    problem = fastest_alternative(searched.problem, design.bandwidth_Bps)
    return replace(design, problem=problem, settings=searched.settings, found=searched.found)
