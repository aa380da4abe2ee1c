"""``libra-planner pareto``: the time/cost frontier of a plan as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from libra_planner.cli.streams import print_json
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.views.frontier import frontier_blocks, frontier_csv, frontier_payload


def run(options: argparse.Namespace, console: Callable[[], Any]) -> None:
    """Print the frontier of ``options.plan``."""
    from libra_planner.optimizer.pareto import pareto
    from libra_planner.plan.problem import load_plan

    if options.csv and options.json:
        place = Place(f"{options.plan}: --csv")
        raise SpecError(Fault("got --json too", "expected one of them", "leave one out", "", place))
    problem = load_plan(options.plan, options.settings)
    points = pareto(problem, options.points, _progress if sys.stderr.isatty() else None)
    if options.csv:
        sys.stdout.write(frontier_csv(problem, points))
    elif options.json:
        print_json(frontier_payload(problem, points))
    else:
        from libra_planner.views.renderers.terminal import show

        show(console(), frontier_blocks(problem, points))


def _progress(done: int, n_points: int) -> None:
    end = "\n" if done >= n_points - 1 else ""
    print(f"\r{done} of {n_points} points", end=end, file=sys.stderr, flush=True)
