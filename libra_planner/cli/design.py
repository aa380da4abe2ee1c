"""``libra-planner optimize``, ``evaluate`` and ``pareto``: the best designs, or a given one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from libra_planner.api.designs import Evaluated
from libra_planner.api.plans import Plan
from libra_planner.cli.arguments.making import first_given, parts_words
from libra_planner.cli.policies import link_question, policy_of
from libra_planner.cli.streams import (
    answer,
    command_on,
    judge_search,
    progress_of,
    search_progress,
)
from libra_planner.errors import Place, SpecError, located
from libra_planner.evaluation import evaluated
from libra_planner.inputs.plans import OpenedPlan, SearchedPlan, open_plan
from libra_planner.processes import uncollected
from libra_planner.routing.policy import OPTIONS
from libra_planner.studies.designs import chosen_design

if TYPE_CHECKING:
    from libra_planner.api.optima import Optimum

_OF_ROUTING = (
    *OPTIONS,
    "seeds",
    "seed",
    "queue_pairs",
    "npus_per_address",
    "source_ports",
    "placement",
)


def optimize(options: argparse.Namespace) -> None:
    """``libra-planner optimize``."""
    given = first_given(options, _OF_ROUTING)
    if options.policy is None and given:
        got = f"got {given} without --routing"
        raise SpecError.at(options.plan, got, "expected a policy", "add --routing ecmp")
    opened = open_plan(options.plan, options.settings, parts=options.parts)
    searched = opened.searched(progress=search_progress())
    if options.policy is not None:
        _print_routed(options, opened, searched)
        return
    given, options.settings = options.settings, list(searched.settings)
    with uncollected():
        from libra_planner.api.optima import Optimum
        from libra_planner.optimizer.optimize import solve

    plan = Plan.of_searched(options.plan, searched)
    found = Optimum.of_design(plan, solve(searched.problem))
    others = opened.certain_words(searched.found), opened.zero_1_words(searched.found)
    blocks = found.blocks(filter(None, others))
    then = _then(options, given, found)
    answer(options, found.to_dict, blocks, with_source=True, then=then)
    judge_search(searched.found)


def _then(options: argparse.Namespace, settings: Sequence[str], found: Optimum) -> str:
    """What comes after an optimum: its check, or another optimum where its links are busy."""
    from libra_planner.views.training.step import ON_LINKS, busy_notes

    plan, parts = options.plan, parts_words(options)
    if any(busy_notes(found.solved_plan, found.bandwidth_bytes_per_s)):
        return command_on("optimize", plan, settings, *parts, *ON_LINKS.split())
    return command_on("check", plan, settings, *parts)


def _print_routed(options: argparse.Namespace, opened: OpenedPlan, searched: SearchedPlan) -> None:
    """Print the best design that was checked."""
    with uncollected():
        from libra_planner.api.checks import Routed

    def tell(n_checked: int) -> None:
        print(f"{n_checked} designs checked", file=sys.stderr, flush=True)

    question = link_question(options, policy_of(options, flag="--routing", file=options.plan))
    told = tell if sys.stderr.isatty() else None
    of_strategies = progress_of("strategies checked on their links")
    found = Routed.of_plan(options.plan, searched, question, opened, told, of_strategies)
    options.settings = list(found.settings)
    answer(options, found.to_dict, found.blocks(), with_source=True)
    judge_search(searched.found)


def evaluate(options: argparse.Namespace) -> None:
    """``libra-planner evaluate``."""
    if options.bandwidth is None:
        fix = "write --bandwidth B1,B2,..., GB/s of every dimension; 'optimize' finds the best"
        raise SpecError.at(options.plan, "got no --bandwidth", "expected a vector", fix)
    place = Place(f"{options.plan}: --bandwidth")
    opened = open_plan(options.plan, options.settings, parts=options.parts)
    chosen = chosen_design(opened, options.bandwidth, place, progress=search_progress())
    searched = chosen.searched
    options.settings = list(searched.settings)
    plan = Plan.of_searched(options.plan, searched)
    with located(place):
        found = Evaluated.of(evaluated(chosen.problem, chosen.bandwidth_Bps), plan=plan)
    answer(options, found.to_dict, found.blocks(), with_source=True)
    judge_search(searched.found)


def pareto(options: argparse.Namespace) -> None:
    """``libra-planner pareto``."""
    if options.csv and options.json:
        place = f"{options.plan}: --csv"
        raise SpecError.at(place, "got --json too", "expected one of them", "leave one out")
    opened = open_plan(options.plan, options.settings, parts=options.parts)
    if opened.is_open:
        from libra_planner.cli.times.search import print_frontier

        print_frontier(options)
        return
    with uncollected():
        from libra_planner.api.optima import Frontier
        from libra_planner.optimizer.optimize import pareto as frontier

    problem, progress = opened.problem, progress_of("points", n_unsaid=1)
    found = Frontier.among(problem, frontier(problem, options.points, progress))
    if options.csv:
        from libra_planner.views.frontier import frontier_csv

        sys.stdout.write(frontier_csv(problem, found))
    else:
        answer(options, found.to_dict, found.blocks())
