"""Arguments of ``libra-planner sweep``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from libra_planner.cli.arguments import add_json
from libra_planner.cli.numbers import whole


def add_sweep(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add ``sweep`` and its actions; ``command`` makes one of them."""
    text = "Optimise a plan under every combination of the values of its axes."
    parser = commands.add_parser("sweep", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_plan(command(actions, "plan", "sweep", "How many designs, how long, how big."))
    _add_run(command(actions, "run", "sweep", "Solve all designs, or what is missing of them."))
    _add_show(command(actions, "show", "sweep", "Best designs, frontier, SQL, CSV and figures."))
    _add_design(command(actions, "design", "sweep", "Write a row as a plan for optimize."))


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="SWEEP", help="sweep file (YAML)")
    add_json(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="SWEEP", help="sweep file (YAML)")
    what = "run directory; one of the same sweep is finished"
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help=what)
    where = parser.add_mutually_exclusive_group()
    what = "processes on this machine; 0 (default) works in this one"
    where.add_argument("--workers", type=whole(0, 1024), default=0, metavar="N", help=what)
    where.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="a dask scheduler to use")
    what = "print one JSON object per update"
    parser.add_argument("--json-progress", action="store_true", help=what)


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="run directory")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pareto", action="store_true", help="frontier of time and cost")
    which.add_argument(
        "--top", type=whole(1, 10**9), metavar="N", help="best N designs (default 10)"
    )
    which.add_argument("--sql", metavar="QUERY", help="DuckDB's SQL over the table designs")
    which.add_argument("--group-by", metavar="AXIS", help="best design for each value of an axis")
    what = "with --pareto: frontier of time, cost and FIM, of a sweep with check:"
    parser.add_argument("--fim", action="store_true", help=what)
    what = (
        "times to rank by: of the plan's model (default without --fim), or on the links (default "
        "with --fim), of a sweep with check:"
    )
    parser.add_argument("--by", choices=("ideal", "effective"), help=what)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--csv", metavar="OUT", help="write CSV (- for stdout); alone, all rows")
    add_json(where)
    what = "write a figure (.svg, .png, .pdf): the frontier; with --x bandwidths; with both a map"
    parser.add_argument("--plot", nargs="+", metavar="OUT", help=what)
    parser.add_argument("--x", metavar="AXIS", help="axis of the figure")
    parser.add_argument("--y", metavar="AXIS", help="second axis of the figure")


def _add_design(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="run directory")
    parser.add_argument("row", metavar="ROW", type=whole(0, 10**12), help="number of the row")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PLAN", help="plan to write (- for stdout)"
    )
