"""``libra-planner check``: a design on its real links, under a routing policy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from libra_planner.check.failures import (
    FailureStudy,
    drawn_failures,
    every_single_failure,
)
from libra_planner.check.hotspot import Hotspot, TracedFlow, hotspot, traced_flow
from libra_planner.check.jobs import JobReport, SharedFabric, shared_fabric
from libra_planner.check.links import LinkCheck, link_check
from libra_planner.check.traffic import TrafficSettings
from libra_planner.cli.policies import policy_of
from libra_planner.cli.routing import progress_of, seeds_of, traffic_of, wants_statistics
from libra_planner.cli.streams import print_json
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.evaluation import evaluated
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.routing.policy import Policy
from libra_planner.step.expression import Array
from libra_planner.studies.designs import bandwidth_bytes_per_s
from libra_planner.studies.places import placed
from libra_planner.views.check import (
    CheckedPlan,
    check_blocks,
    check_payload,
    failures_blocks,
    study_payload,
)
from libra_planner.views.jobs import jobs_blocks, jobs_payload
from libra_planner.views.phases import hotspot_payload


def answer(options: argparse.Namespace, console: Callable[[], Any]) -> None:
    """Print what the options ask for; ``console`` makes the place for people's text."""
    options.plan = options.plans[0]
    policy = policy_of(options, file=options.plan)
    if len(options.plans) > 1:
        _answer_jobs(options, policy, console)
        return
    problem, bandwidth_Bps = _design(options, options.plan)
    try:
        checked = _checked(options, problem, policy, bandwidth_Bps)
        hot = hotspot(checked.links, checked.report)
    except SpecError as error:
        raise placed(error, options.plan, problem) from None
    studies = _studies(options, checked.links, policy)
    traced = _traced(options, checked, hot)
    wanted = {"n_busiest": options.busiest, "groups": options.groups, "traced": traced}
    if options.json:
        found = None if hot is None else hotspot_payload(hot, **wanted)
        payload = check_payload(checked, found)
        print_json(payload | {name: study_payload(study) for name, study in studies.items()})
        return
    from libra_planner.views.renderers.terminal import show

    show(console(), check_blocks(checked, hot, **wanted))
    show(console(), failures_blocks(studies, _failed(options), n_worst=options.busiest))


def _design(options: argparse.Namespace, plan: str) -> tuple[Problem, Array]:
    """A plan with its chunks chosen, and the design: as given, or the plan's optimum."""
    problem = load_plan(plan, options.settings)
    if options.bandwidth is None:
        from libra_planner.optimizer.optimize import solve

        solution = solve(problem)
        return solution.problem, np.asarray(solution.design.bandwidth_bytes_per_s)
    place = Place(f"{plan}: --bandwidth")
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
    statistics = wants_statistics(options)
    return CheckedPlan(links, report, options.bandwidth is None, violated, statistics)


def _studies(
    options: argparse.Namespace, links: LinkCheck, policy: Policy
) -> dict[str, FailureStudy]:
    """Studies of failures that the options ask for, by their key."""
    studies = {}
    try:
        if options.fail_links or options.fail_spines:
            studies["failures"] = drawn_failures(
                links,
                policy,
                n_links=options.fail_links,
                n_spines=options.fail_spines,
                seeds=seeds_of(options),
                progress=progress_of("draws of failures"),
            )
        if options.single_failures:
            progress = progress_of("single failures")
            studies["single_failures"] = every_single_failure(
                links, policy, seed=options.seed or 0, progress=progress
            )
    except SpecError as error:
        raise error.located(Place(f"{options.plan}: --fail-links, --fail-spines, --n-1")) from None
    return studies


def _failed(options: argparse.Namespace) -> str:
    counts = {"cable": options.fail_links, "spine": options.fail_spines}
    parts = [f"{n:,} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    return " and ".join(parts)


def _traced(
    options: argparse.Namespace, checked: CheckedPlan, hot: Hotspot | None
) -> TracedFlow | None:
    """The flow that ``--trace`` names, in the round that loses most or in another one."""
    if options.trace is None:
        return None
    place = Place(f"{options.plan}: --trace")
    if hot is None or hot.routed is None:
        got = "got no collective that loses time to its routing"
        raise SpecError(Fault(got, "expected one, whose flows can be followed", "", "", place))
    found = traced_flow(checked.links, checked.report, options.trace)
    if found is None:
        name, label, first = hot.worst.name, hot.phase.label, hot.routed.flows.ids[0]
        expected = f"expected a flow of {name} on {label}, such as {first}, or of another round"
        raise SpecError(Fault(f"got {options.trace!r}", expected, "", "", place))
    return found


def _answer_jobs(options: argparse.Namespace, policy: Policy, console: Callable[[], Any]) -> None:
    """Several plans: jobs that share a fabric."""
    _refuse_for_jobs(options)
    pairs = [_design(options, plan) for plan in options.plans]
    problems, bandwidths_Bps = zip(*pairs, strict=True)
    try:
        shared, jobs = _jobs(options, policy, list(problems), list(bandwidths_Bps))
    except SpecError as error:
        raise placed(error, options.plan, problems[0]) from None
    if options.json:
        statistics = wants_statistics(options)
        print_json(jobs_payload(shared, jobs, options.plans, statistics=statistics))
        return
    from libra_planner.views.renderers.terminal import show

    show(console(), jobs_blocks(shared, jobs, options.plans))


def _jobs(
    options: argparse.Namespace, policy: Policy, problems: list[Problem], bandwidths: list[Array]
) -> tuple[SharedFabric, tuple[JobReport, ...]]:
    traffic = _one_traffic(options, problems)
    shared = shared_fabric(problems, bandwidths, traffic=traffic, seed=options.seed or 0)
    return shared, shared.reports(policy, seeds=seeds_of(options))


def _one_traffic(options: argparse.Namespace, problems: list[Problem]) -> TrafficSettings:
    """How the NPUs of all jobs use their NICs, on which the plans have to agree."""
    first = traffic_of(options, problems[0])
    for plan, problem in zip(options.plans[1:], problems[1:], strict=True):
        other = traffic_of(options, problem)
        for key, name in (
            ("placement", "placement"),
            ("queue_pairs", "n_queue_pairs"),
            ("npus_per_address", "npus_per_address"),
        ):
            mine, others = getattr(first, name), getattr(other, name)
            if mine != others:
                got = f"got {mine}, and {others} in {plan}"
                fix = f"write the same in all plans, or give --{key.replace('_', '-')}"
                path = f"fabric.realization.{key}"
                raise SpecError(Fault(got, "expected one for all jobs", fix, path))
    return first


def _refuse_for_jobs(options: argparse.Namespace) -> None:
    """Refuse what is told of one plan only."""
    given = {
        "--fail-links": options.fail_links,
        "--fail-spines": options.fail_spines,
        "--n-1": options.single_failures,
        "--trace": options.trace,
        "--groups": options.groups,
    }
    for flag, value in given.items():
        if value:
            got = f"got {flag} with {len(options.plans)} plans"
            fix = "leave it out, or check one plan at a time"
            raise SpecError(Fault(got, "expected one plan", fix, "", Place(options.plan)))
