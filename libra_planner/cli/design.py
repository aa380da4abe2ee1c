"""``libra-planner optimize``, ``evaluate`` and ``pareto``: the best designs, or a given one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from libra_planner.cli.arguments.making import first_given
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
from libra_planner.inputs.plans import SearchedPlan, open_plan
from libra_planner.processes import uncollected
from libra_planner.routing.policy import OPTIONS
from libra_planner.studies.designs import chosen_design
from libra_planner.views.cells import Block
from libra_planner.views.design import design_blocks, evaluate_payload, optimize_payload
from libra_planner.views.training.found import found_blocks, found_payload

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
    searched = _searched(options)
    problem = searched.problem
    if options.policy is not None:
        _print_routed(options, searched)
        return
    with uncollected():
        from libra_planner.optimizer.fixed_order import fixed_order_optimum
        from libra_planner.optimizer.optimize import solve
        from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices
        from libra_planner.studies.bills import bill_study
        from libra_planner.views.bought.purchase import purchase_blocks, purchase_payload
        from libra_planner.views.design import worth_payload

    solution = solve(problem)
    problem, design = solution.problem, solution.design
    bought = bill_study(options.plan, options.settings, problem, design)
    shadow, fixed_order = shadow_prices(problem, solution), fixed_order_optimum(problem, design)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)

    def payload() -> dict[str, Any]:
        found = optimize_payload(problem, design, evaluation, fixed_order)
        found |= found_payload(searched.found)
        found |= worth_payload(shadow, price_sensitivity(problem, solution))
        return found | purchase_payload(problem, bought)

    def blocks() -> Iterator[Block]:
        yield from design_blocks(problem, evaluation, design, shadow, fixed_order)
        yield from found_blocks(searched.found)
        yield from purchase_blocks(problem, bought)

    then = command_on("check", options.plan, options.settings)
    answer(options, payload, blocks(), with_source=True, then=then)
    judge_search(searched.found)


def _searched(options: argparse.Namespace) -> SearchedPlan:
    """The plan, with its best strategy where it leaves that open; the options then name it."""
    found = open_plan(options.plan, options.settings).searched(progress=search_progress())
    options.settings = list(found.settings)
    return found


def _print_routed(options: argparse.Namespace, searched: SearchedPlan) -> None:
    """Print the best design that was checked."""
    with uncollected():
        from libra_planner.studies.checks import routed_plan
        from libra_planner.views.routed import routed_blocks, routed_payload

    def tell(n_checked: int) -> None:
        print(f"{n_checked} designs checked", file=sys.stderr, flush=True)

    question = link_question(options, policy_of(options, flag="--routing", file=options.plan))
    progress = tell if sys.stderr.isatty() else None
    problem = searched.problem
    chosen, routed, evaluation = routed_plan(options.plan, problem, question, progress)
    found, traffic = (chosen, routed, evaluation), question.traffic(problem)

    def payload() -> dict[str, Any]:
        told = routed_payload(*found, traffic, statistics=question.statistics)
        return told | found_payload(searched.found)

    def blocks() -> Iterator[Block]:
        yield from routed_blocks(chosen, evaluation, routed)
        yield from found_blocks(searched.found)

    answer(options, payload, blocks(), with_source=True)
    judge_search(searched.found)


def evaluate(options: argparse.Namespace) -> None:
    """``libra-planner evaluate``."""
    place, opened = Place(f"{options.plan}: --bandwidth"), open_plan(options.plan, options.settings)
    chosen = chosen_design(opened, options.bandwidth, place, progress=search_progress())
    searched, problem = chosen.searched, chosen.problem
    options.settings = list(searched.settings)
    with located(place):
        found = problem, evaluated(problem, chosen.bandwidth_Bps)

    def blocks() -> Iterator[Block]:
        yield from design_blocks(*found)
        yield from found_blocks(searched.found)

    def payload() -> dict[str, Any]:
        return evaluate_payload(*found) | found_payload(searched.found)

    answer(options, payload, blocks(), with_source=True)
    judge_search(searched.found)


def pareto(options: argparse.Namespace) -> None:
    """``libra-planner pareto``."""
    with uncollected():
        from libra_planner.optimizer.optimize import pareto as frontier
    from libra_planner.views.frontier import frontier_blocks, frontier_csv, frontier_payload

    if options.csv and options.json:
        place = f"{options.plan}: --csv"
        raise SpecError.at(place, "got --json too", "expected one of them", "leave one out")
    opened = open_plan(options.plan, options.settings)
    if opened.is_open:
        from libra_planner.cli.times.search import print_frontier

        print_frontier(options)
        return
    problem = opened.problem
    progress = progress_of("points", n_unsaid=1)
    found = problem, frontier(problem, options.points, progress)
    if options.csv:
        sys.stdout.write(frontier_csv(*found))
    else:
        answer(options, partial(frontier_payload, *found), frontier_blocks(*found))
