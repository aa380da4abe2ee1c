"""``libra-planner check``: a design on its real links, under a routing policy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from libra_planner.cli.arguments import (
    BANDWIDTH,
    Commands,
    add_policy,
    add_settings,
    add_traffic,
    command,
    link_question,
    policy_of,
    whole,
)
from libra_planner.cli.streams import print_json, progress_of, show
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.processes import uncollected

if TYPE_CHECKING:
    from libra_planner.studies.checks import LinkQuestion


def add_check(commands: Commands) -> None:
    """Add ``check``."""
    text = "Step time of a design on real links, as a routing policy loads them."
    parser = command(commands, "check", check, text)
    what = "plan file (YAML); several are jobs that share the outermost dimension"
    parser.add_argument("plans", metavar="PLAN", nargs="+", help=what)
    add_settings(parser)
    what = f"{BANDWIDTH}; without it the plan's optimum"
    parser.add_argument("--bandwidth", metavar="B1,B2,...", help=what)
    add_policy(parser)
    add_traffic(parser)
    for flag, default, what in (
        ("--fail-links", 0, "cables between switches that fail, drawn for every seed"),
        ("--fail-spines", 0, "spines that fail, drawn for every seed"),
        ("--busiest", 5, "busiest links to show; default 5"),
    ):
        numbers = whole(0, 10**6)
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    what = "also every single cable and spine failed, worst first"
    parser.add_argument("--n-1", dest="single_failures", action="store_true", help=what)
    parser.add_argument("--trace", metavar="SRC-DST", help="show one flow hop by hop")
    parser.add_argument("--groups", action="store_true", help="FIM of every ECMP group too")


def check(options: argparse.Namespace) -> None:
    """``libra-planner check``."""
    with uncollected():
        from libra_planner.studies.checks import checked_plan
        from libra_planner.views import check as view
        from libra_planner.views.phases import hotspot_payload

        if options.bandwidth is None:
            import libra_planner.optimizer.optimize  # noqa: F401
    options.plan = options.plans[0]
    question = link_question(options, policy_of(options, file=options.plan))
    if len(options.plans) > 1:
        _print_jobs(options, question)
        return
    found = checked_plan(options.plan, question, progress_of)
    wanted = {"n_busiest": options.busiest, "groups": options.groups, "traced": found.traced}
    if options.json:
        hot = None if found.hot is None else hotspot_payload(found.hot, **wanted)
        studies = {name: view.study_payload(study) for name, study in found.failures.items()}
        print_json(view.check_payload(found.checked, hot) | studies)
        return
    show(view.check_blocks(found.checked, found.hot, **wanted))
    show(view.failures_blocks(found.failures, _failed(options), n_worst=options.busiest))


def _failed(options: argparse.Namespace) -> str:
    counts = {"cable": options.fail_links, "spine": options.fail_spines}
    parts = [f"{n:,} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    return " and ".join(parts)


def _print_jobs(options: argparse.Namespace, question: LinkQuestion) -> None:
    """Several plans: jobs that share a fabric."""
    from libra_planner.studies.checks import checked_jobs
    from libra_planner.views.jobs import jobs_blocks, jobs_payload

    _refuse_for_jobs(options)
    shared, jobs = checked_jobs(options.plans, question)
    if options.json:
        print_json(jobs_payload(shared, jobs, options.plans, statistics=question.statistics))
    else:
        show(jobs_blocks(shared, jobs, options.plans))


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
