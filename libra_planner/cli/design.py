"""``libra-planner optimize``, ``evaluate`` and ``pareto``: the best designs, or a given one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from libra_planner.cli.arguments.making import first_given
from libra_planner.cli.policies import link_question, policy_of
from libra_planner.cli.streams import answer, progress_of
from libra_planner.errors import Place, SolverFailed, SpecError, located
from libra_planner.evaluation import evaluated
from libra_planner.inputs.bills import load_plan
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.processes import uncollected
from libra_planner.routing.policy import OPTIONS
from libra_planner.studies.designs import bandwidth_bytes_per_s
from libra_planner.views.cells import Block
from libra_planner.views.design import design_blocks, evaluate_payload, optimize_payload

if TYPE_CHECKING:
    from libra_planner.studies.automatic import AutomaticPlan

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
    problem = load_plan(options.plan, options.settings)
    if options.policy is not None:
        _print_routed(options, problem)
        return
    with uncollected():
        from libra_planner.optimizer.fixed_order import fixed_order_optimum
        from libra_planner.optimizer.optimize import solve
        from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices
        from libra_planner.studies.bills import bill_study
        from libra_planner.views.bought.purchase import purchase_blocks, purchase_payload
        from libra_planner.views.design import worth_payload
        from libra_planner.views.times.search import search_counts, verdict

    solution = solve(problem)
    problem, design = solution.problem, solution.design
    bought = bill_study(options.plan, options.settings, problem, design)
    shadow, fixed_order = shadow_prices(problem, solution), fixed_order_optimum(problem, design)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)

    def payload() -> dict[str, Any]:
        found = optimize_payload(problem, design, evaluation, fixed_order)
        found |= {"search": search_counts(searched.result)} if searched is not None else {}
        found |= worth_payload(shadow, price_sensitivity(problem, solution))
        return found | purchase_payload(problem, bought)

    def blocks() -> Iterator[Block]:
        yield from design_blocks(problem, evaluation, design, shadow, fixed_order)
        yield from () if searched is None else verdict(searched.result)
        yield from purchase_blocks(problem, bought)

    answer(options, payload, blocks(), with_source=True)
    if searched is not None and not searched.result.is_certified:
        raise SolverFailed(f"{searched.result.n_unproven:,} strategies are not proven")


def _searched(options: argparse.Namespace) -> AutomaticPlan | None:
    """The strategy of a plan that leaves its parallelism open; the options then name it."""
    from libra_planner.studies.automatic import automatic_plan

    found = automatic_plan(options.plan, options.settings)
    if found is not None:
        options.settings = list(found.settings)
    return found


def _print_routed(options: argparse.Namespace, problem: Problem) -> None:
    """Print the best design that was checked."""
    with uncollected():
        from libra_planner.studies.checks import routed_plan
        from libra_planner.views.routed import routed_blocks, routed_payload

    def tell(n_checked: int) -> None:
        print(f"{n_checked} designs checked", file=sys.stderr, flush=True)

    question = link_question(options, policy_of(options, flag="--routing", file=options.plan))
    progress = tell if sys.stderr.isatty() else None
    chosen, routed, evaluation = routed_plan(options.plan, problem, question, progress)
    found, traffic = (chosen, routed, evaluation), question.traffic(problem)
    payload = partial(routed_payload, *found, traffic, statistics=question.statistics)
    answer(options, payload, routed_blocks(chosen, evaluation, routed), with_source=True)


def evaluate(options: argparse.Namespace) -> None:
    """``libra-planner evaluate``."""
    problem = load_plan(options.plan, options.settings)
    place = Place(f"{options.plan}: --bandwidth")
    bandwidth = bandwidth_bytes_per_s(options.bandwidth, problem, place)
    with located(place):
        problem = fastest_alternative(problem, bandwidth)
        found = problem, evaluated(problem, bandwidth)
    answer(options, partial(evaluate_payload, *found), design_blocks(*found), with_source=True)


def pareto(options: argparse.Namespace) -> None:
    """``libra-planner pareto``."""
    with uncollected():
        from libra_planner.optimizer.optimize import pareto as frontier
    from libra_planner.views.frontier import frontier_blocks, frontier_csv, frontier_payload

    if options.csv and options.json:
        place = f"{options.plan}: --csv"
        raise SpecError.at(place, "got --json too", "expected one of them", "leave one out")
    problem = load_plan(options.plan, options.settings)
    progress = progress_of("points", n_unsaid=1)
    found = problem, frontier(problem, options.points, progress)
    if options.csv:
        sys.stdout.write(frontier_csv(*found))
    else:
        answer(options, partial(frontier_payload, *found), frontier_blocks(*found))
