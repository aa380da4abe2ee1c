"""``libra-planner pareto``: the time/cost frontier of a plan as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import sys

from libra_planner.cli.arguments import Commands, add_plan, command, whole
from libra_planner.cli.streams import print_json, progress_of, show
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.processes import uncollected


def add_pareto(commands: Commands) -> None:
    """Add ``pareto``."""
    text = "The time/cost frontier of a plan: the fastest design at each of a range of costs."
    parser = command(commands, "pareto", pareto, text)
    add_plan(parser)
    parser.add_argument("--csv", action="store_true", help="print CSV (instead of --json)")
    what, points = "2 to 1000 points; default 25", whole(2, 1000)
    parser.add_argument("--points", type=points, default=25, metavar="N", help=what)


def pareto(options: argparse.Namespace) -> None:
    """``libra-planner pareto``."""
    with uncollected():
        from libra_planner.optimizer.optimize import pareto as frontier
    from libra_planner.plan.problem import load_plan
    from libra_planner.views.frontier import frontier_blocks, frontier_csv, frontier_payload

    if options.csv and options.json:
        place = Place(f"{options.plan}: --csv")
        raise SpecError(Fault("got --json too", "expected one of them", "leave one out", "", place))
    problem = load_plan(options.plan, options.settings)
    points = frontier(problem, options.points, progress_of("points", n_unsaid=1))
    if options.csv:
        sys.stdout.write(frontier_csv(problem, points))
    elif options.json:
        print_json(frontier_payload(problem, points))
    else:
        show(frontier_blocks(problem, points))
