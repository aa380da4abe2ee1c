"""``libra-planner optimize --routing``: the best design on its links that is found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from libra_planner.check.rerouted import routed_optimum
from libra_planner.cli.given import given
from libra_planner.cli.policies import policy_of
from libra_planner.cli.routing import seeds_of, traffic_of, wants_statistics
from libra_planner.cli.streams import print_json
from libra_planner.errors import SpecError
from libra_planner.evaluation import evaluated
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.studies.places import placed
from libra_planner.views.plan import as_checked
from libra_planner.views.routed import routed_blocks, routed_payload


def answer(options: argparse.Namespace, problem: Problem, console: Callable[[], Any]) -> None:
    """Print the best design that was checked; ``console`` makes the place for people's text."""
    policy = policy_of(options, flag="--routing", file=options.plan)
    traffic = traffic_of(options, problem)
    progress = _progress if sys.stderr.isatty() else None
    try:
        routed = routed_optimum(
            problem, policy, traffic=traffic, seeds=seeds_of(options), progress=progress
        )
    except SpecError as error:
        raise placed(error, options.plan, problem) from None
    chosen = as_checked(fastest_alternative(problem, routed.best.bandwidth_Bps))
    evaluation = evaluated(chosen, routed.best.bandwidth_Bps)
    if options.json:
        statistics = wants_statistics(options)
        found = routed_payload(chosen, routed, evaluation, traffic, statistics=statistics)
        print_json(given(options) | found)
        return
    from libra_planner.views.renderers.terminal import show

    show(console(), routed_blocks(chosen, evaluation, routed))


def _progress(n_checked: int) -> None:
    print(f"{n_checked} designs checked", file=sys.stderr, flush=True)
