"""``libra-planner optimize`` and ``evaluate``: the best design of a plan, or a given one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from libra_planner.cli.arguments import (
    BANDWIDTH,
    Commands,
    add_plan,
    add_policy,
    add_traffic,
    command,
    link_question,
    policy_of,
    source,
)
from libra_planner.cli.streams import print_json, show
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.processes import uncollected
from libra_planner.routing.policy import OPTIONS

if TYPE_CHECKING:
    from libra_planner.problem import Problem


def add_optimize(commands: Commands) -> None:
    """Add ``optimize``."""
    text = "Find the bandwidth of every dimension that is best for the plan's objective."
    parser = command(commands, "optimize", optimize, text)
    add_plan(parser)
    add_policy(parser, "--routing", "of the designs' links: iterate with what they deliver; ")
    add_traffic(parser)


def add_evaluate(commands: Commands) -> None:
    """Add ``evaluate``."""
    text = "Step time and cost of a given bandwidth vector."
    parser = command(commands, "evaluate", evaluate, text)
    add_plan(parser)
    parser.add_argument("--bandwidth", required=True, metavar="B1,B2,...", help=BANDWIDTH)


def optimize(options: argparse.Namespace) -> None:
    """``libra-planner optimize``."""
    with uncollected():
        from libra_planner.evaluation import evaluated
        from libra_planner.plan.problem import load_plan

    _refuse_without_routing(options)
    problem = load_plan(options.plan, options.settings)
    if options.policy is not None:
        _print_routed(options, problem)
        return
    with uncollected():
        from libra_planner.optimizer.catalogue import CatalogueDesign
        from libra_planner.optimizer.optimize import solve
        from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices

    solution = solve(problem)
    problem, design = solution.problem, solution.design
    shadow = shadow_prices(problem, solution)
    evaluation = evaluated(problem, design.bandwidth_bytes_per_s)
    if options.json:
        from libra_planner.views.design import optimize_payload
        from libra_planner.views.worth import catalogue_payload, worth_payload

        payload = source(options) | optimize_payload(problem, design, evaluation)
        payload |= worth_payload(shadow, price_sensitivity(problem, solution))
        if isinstance(design, CatalogueDesign):
            payload |= catalogue_payload(problem, design)
        print_json(payload)
    else:
        from libra_planner.views.cells import escape
        from libra_planner.views.design import design_blocks
        from libra_planner.views.worth import catalogue_lines

        show(design_blocks(problem, evaluation, design, shadow))
        if isinstance(design, CatalogueDesign):
            show(["", *map(escape, catalogue_lines(problem, design))])


def _refuse_without_routing(options: argparse.Namespace) -> None:
    """Refuse settings of a routing policy without one."""
    drawn = ("seeds", "seed", "queue_pairs", "npus_per_address", "placement")
    values = {name: getattr(options, name) for name in (*OPTIONS, *drawn)}
    given = [name for name, value in values.items() if not (value is None or value is False)]
    if options.policy is None and given:
        got = f"got --{given[0].replace('_', '-')} without --routing"
        place = Place(options.plan)
        raise SpecError(Fault(got, "expected a policy", "add --routing ecmp", "", place))


def _print_routed(options: argparse.Namespace, problem: Problem) -> None:
    """Print the best design that was checked."""
    with uncollected():
        from libra_planner.studies.checks import routed_plan
        from libra_planner.views.routed import routed_blocks, routed_payload

    question = link_question(options, policy_of(options, flag="--routing", file=options.plan))
    progress = _tell_checked if sys.stderr.isatty() else None
    chosen, routed, evaluation = routed_plan(options.plan, problem, question, progress)
    if options.json:
        traffic, statistics = question.traffic(problem), question.statistics
        found = routed_payload(chosen, routed, evaluation, traffic, statistics=statistics)
        print_json(source(options) | found)
    else:
        show(routed_blocks(chosen, evaluation, routed))


def _tell_checked(n_checked: int) -> None:
    print(f"{n_checked} designs checked", file=sys.stderr, flush=True)


def evaluate(options: argparse.Namespace) -> None:
    """``libra-planner evaluate``."""
    with uncollected():
        from libra_planner.evaluation import evaluated
        from libra_planner.plan.problem import load_plan
        from libra_planner.problem import fastest_alternative
        from libra_planner.studies.designs import bandwidth_bytes_per_s

    problem = load_plan(options.plan, options.settings)
    place = Place(f"{options.plan}: --bandwidth")
    bandwidth = bandwidth_bytes_per_s(options.bandwidth, problem, place)
    try:
        problem = fastest_alternative(problem, bandwidth)
        evaluation = evaluated(problem, bandwidth)
    except SpecError as error:
        raise error.located(place) from None
    if options.json:
        from libra_planner.views.design import evaluate_payload

        print_json(source(options) | evaluate_payload(problem, evaluation))
    else:
        from libra_planner.views.design import design_blocks

        show(design_blocks(problem, evaluation))
