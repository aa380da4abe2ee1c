"""``libra-planner check``: a design on its real links, under a routing policy."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from libra_planner.cli.bandwidths import bandwidth_bytes_per_s
from libra_planner.cli.routing import placed, policy_of, progress_of, seeds_of, traffic_of
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.evaluation import evaluated
from libra_planner.flows.check import link_check
from libra_planner.flows.policy import Policy
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.report.check import CheckedPlan, check_payload
from libra_planner.report.hotspot import FlowNames, Hotspot, hotspot, hotspot_payload
from libra_planner.spec.plan import load_plan
from libra_planner.timing.expression import Array


def answer(options: argparse.Namespace, console: Callable[[], Any]) -> None:
    """Print what the options ask for; ``console`` makes the place for people's text."""
    policy = policy_of(options, Place(f"{options.plan}: --policy"))
    problem = load_plan(options.plan, options.settings)
    problem, bandwidth_Bps = _design(options, problem)
    try:
        checked = _checked(options, problem, policy, bandwidth_Bps)
        hot = hotspot(checked.links, checked.report)
    except SpecError as error:
        raise placed(error, options.plan, problem) from None
    traced = None if options.trace is None else _flow_number(options, hot)
    wanted = {"n_busiest": options.busiest, "groups": options.groups, "traced": traced}
    if options.json:
        found = None if hot is None else hotspot_payload(hot, **wanted)
        payload = check_payload(checked, found)
        print(json.dumps(payload, indent=2, allow_nan=False))
        return
    from libra_planner.report.check_table import print_check

    print_check(console(), checked, hot, **wanted)


def _design(options: argparse.Namespace, problem: Problem) -> tuple[Problem, Array]:
    """The plan with its chunks chosen, and the design: as given, or its optimum."""
    if options.bandwidth is None:
        from libra_planner.optimizer.optimize import solve

        solution = solve(problem)
        return solution.problem, np.asarray(solution.design.bandwidth_bytes_per_s)
    place = Place(f"{options.plan}: --bandwidth")
    bandwidth_Bps = bandwidth_bytes_per_s(options.bandwidth, problem, place)
    return fastest_alternative(problem, bandwidth_Bps), bandwidth_Bps


def _checked(
    options: argparse.Namespace, problem: Problem, policy: Policy, bandwidth_Bps: Array
) -> CheckedPlan:
    try:
        violated = evaluated(problem, bandwidth_Bps).violated
    except SpecError as error:
        raise error.located(Place(f"{options.plan}: --bandwidth")) from None
    links = link_check(problem, bandwidth_Bps, traffic=traffic_of(options, problem))
    report = links.report(policy, seeds=seeds_of(options), progress=progress_of("seeds"))
    return CheckedPlan(links, report, options.bandwidth is None, violated)


def _flow_number(options: argparse.Namespace, hot: Hotspot | None) -> int:
    """The flow that ``--trace`` names, among those of the round that loses most."""
    place = Place(f"{options.plan}: --trace")
    if hot is None or hot.routed is None:
        got = "got no collective that loses time to its routing"
        raise SpecError(Fault(got, "expected one, whose flows can be followed", "", "", place))
    names = hot.routed.flows.ids
    found = names.number_of(options.trace) if isinstance(names, FlowNames) else None
    if found is None:
        expected = f"expected a flow of {hot.worst.name} on {hot.phase.label}, such as {names[0]}"
        raise SpecError(Fault(f"got {options.trace!r}", expected, "", "", place))
    return found
