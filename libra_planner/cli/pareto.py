"""``libra-planner pareto``: the time/cost frontier of a plan as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.optimizer.pareto import FrontierPoint
    from libra_planner.problem import Problem


def run(options: argparse.Namespace, console: Callable[[], Any]) -> None:
    """Print the frontier of ``options.plan``."""
    from libra_planner.optimizer.pareto import pareto
    from libra_planner.spec.plan import load_plan

    problem = load_plan(options.plan, options.settings)
    points = pareto(problem, options.points, _progress if sys.stderr.isatty() else None)
    rows = [_row(point) for point in points]
    if options.csv:
        _print_csv(problem, rows)
    elif options.json:
        payload = {
            "workload": problem.workload_name,
            "topology": str(problem.topology),
            "fixed_cost_usd": problem.fixed_cost_usd,
            "points": rows,
        }
        print(json.dumps(payload, indent=2, allow_nan=False))
    else:
        _print_table(console(), problem, points)


def _progress(done: int, n_points: int) -> None:
    end = "\n" if done >= n_points - 1 else ""
    print(f"\r{done} of {n_points} points", end=end, file=sys.stderr, flush=True)


def _row(point: FrontierPoint) -> dict[str, Any]:
    return {
        "cost_usd": point.cost_usd,
        "step_time_s": point.step_time_s,
        "step_time_x_cost": point.step_time_s * point.cost_usd,
        "bandwidth_GBps": [gigabytes_per_s(b) for b in point.bandwidth_bytes_per_s],
        "optimality_gap": point.optimality_gap,
    }


def _print_csv(problem: Problem, rows: list[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = [f"{label}_GBps" for label in problem.topology.labels]
    writer.writerow(["cost_usd", "step_time_s", "step_time_x_cost", *columns, "optimality_gap"])
    for row in rows:
        values = [repr(value) for value in row["bandwidth_GBps"]]
        first = [repr(row[key]) for key in ("cost_usd", "step_time_s", "step_time_x_cost")]
        writer.writerow([*first, *values, repr(row["optimality_gap"])])


def _print_table(console: Any, problem: Problem, points: tuple[FrontierPoint, ...]) -> None:
    from rich.table import Table

    best = min(points, key=lambda point: point.step_time_s * point.cost_usd)
    title = f"{problem.workload_name} on {problem.topology}: the fastest design at each cost"
    table = Table(title=title, box=None)
    table.title_justify = "left"
    for name in ("cost", "step time", "vs fastest", *problem.topology.labels, "step time x cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for point in points:
        table.add_row(
            format_usd(point.cost_usd),
            format_time(point.step_time_s),
            f"{point.step_time_s / points[-1].step_time_s:.3f}x",
            *map(format_bandwidth, point.bandwidth_bytes_per_s),
            f"{format_usd(point.step_time_s * point.cost_usd)} s",
            "best per dollar of these" if point is best else "",
        )
    console.print(table)
