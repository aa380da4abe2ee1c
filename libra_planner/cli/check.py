"""``libra-planner check``: a design on its real links, under a routing policy."""

from __future__ import annotations

import argparse
from functools import partial

from libra_planner.api.checks import Check
from libra_planner.cli.arguments.making import flag_of, parts_words
from libra_planner.cli.policies import link_question, policy_of
from libra_planner.cli.streams import (
    answer,
    command_on,
    hint,
    judge_search,
    progress_of,
    search_progress,
)
from libra_planner.errors import Infeasible, SpecError
from libra_planner.processes import uncollected
from libra_planner.reading.bundled import name_of
from libra_planner.studies.checks import checked_design, checked_jobs
from libra_planner.views.times import jobs as jobs_view


def check(options: argparse.Namespace) -> None:
    """``libra-planner check``."""
    if options.bandwidth is None:
        with uncollected():
            import libra_planner.optimizer.optimize  # noqa: F401
    options.plan = options.plans[0]
    question = link_question(options, policy_of(options, file=options.plan))
    if len(options.plans) > 1:
        _refuse_for_jobs(options)
        jobs = (*checked_jobs(options.plans, question, search_progress()), options.plans)
        answer(
            options,
            partial(jobs_view.jobs_payload, *jobs, statistics=question.statistics),
            jobs_view.jobs_blocks(*jobs),
        )
        return
    chosen = question.design(options.plan, search_progress())
    found = checked_design(
        options.plan, chosen, question, progress_of, optimized=question.bandwidth is None
    )
    told = Check(chosen.problem, question, found, options.busiest, options.groups)
    answer(options, told.to_dict, told.blocks(brief=options.brief))
    if not (options.json or options.brief):
        hint("--brief leaves out the tables of collectives, layers, links and parts", "shorter")
    hint("" if options.json else _report(options))
    judge_search(found.found)
    drawn = found.failures.get("failures")
    if drawn is not None and not len(drawn.step_time_s):
        raise Infeasible(f"{options.plan}: every draw of these failures cuts hosts off: no step")


def _report(options: argparse.Namespace) -> str:
    """The command that makes the bill of what was checked."""
    design = name_of(options.plan) + (f"@{options.bandwidth}" if options.bandwidth else "")
    return command_on("report", design, options.settings, *parts_words(options), "-o", "report")


def _refuse_for_jobs(options: argparse.Namespace) -> None:
    """Refuse what is told of one plan only."""
    if options.algorithms == "compare":
        got = f"got --algorithms compare with {len(options.plans)} plans"
        fix = "leave it out, or check one plan at a time"
        raise SpecError.at(options.plan, got, "expected library or fastest", fix)
    for name in ("fail_links", "fail_spines", "single_failures", "trace", "groups", "brief"):
        if getattr(options, name):
            flag = "--n-1" if name == "single_failures" else flag_of(name)
            got, fix = f"got {flag} with {len(options.plans)} plans", "check one plan at a time"
            raise SpecError.at(options.plan, got, "expected one plan", f"leave it out, or {fix}")
