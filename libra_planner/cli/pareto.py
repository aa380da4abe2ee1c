"""``libra-planner pareto``: the time/cost frontier of a plan as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from libra_planner.cli.streams import print_json
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s
from libra_planner.views.plan import plan_notes

if TYPE_CHECKING:
    from libra_planner.optimizer.design import FrontierPoint
    from libra_planner.problem import Problem

_DISPENSABLE = ("product", "ratio")


def run(options: argparse.Namespace, console: Callable[[], Any]) -> None:
    """Print the frontier of ``options.plan``."""
    from libra_planner.optimizer.pareto import pareto
    from libra_planner.plan.problem import load_plan
    from libra_planner.views.plan import memory_payload

    if options.csv and options.json:
        place = Place(f"{options.plan}: --csv")
        raise SpecError(Fault("got --json too", "expected one of them", "leave one out", "", place))
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
            "memory": memory_payload(problem.step.memory),
            "points": rows,
        }
        print_json(payload)
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

    from libra_planner.views.cells import escape
    from libra_planner.views.plan import memory_lines

    def line(text: str) -> None:
        console.print(escape(text), soft_wrap=not console.is_terminal)

    line(f"{problem.workload_name} on {problem.topology}: the fastest design at each cost")
    line(", ".join(problem.settings))
    for one in memory_lines(problem):
        line(one.text)
    console.print()
    columns = _columns(problem, points)
    for name in _DISPENSABLE:  # A narrow terminal loses these first.
        if sum(max(map(len, cells)) + 2 for cells in columns.values()) > console.width:
            del columns[name]
    table = Table(box=None)
    for cells in columns.values():
        table.add_column(cells[0], justify="right", no_wrap=True)
    for row in zip(*(cells[1:] for cells in columns.values()), strict=True):
        table.add_row(*row)
    console.print(table)
    console.print()
    if _best(points) is not None:
        line("* least step time x cost of these; objective performance_per_cost finds the least")
    worst = max(point.optimality_gap for point in points)
    line(f"Each point is proven optimal, at its cost or step time, to {max(worst, 1e-9):.0e}")
    for note in plan_notes(problem):
        line(f"Note: {note}")


def _columns(problem: Problem, points: tuple[FrontierPoint, ...]) -> dict[str, list[str]]:
    """Header and cells of every column."""
    best = _best(points)
    what = "system cost" if problem.fixed_cost_usd else "cost"
    columns = {
        "mark": ["", *("*" if point is best else "" for point in points)],
        "cost": [what, *(format_usd(point.cost_usd) for point in points)],
        "time": ["step time", *(format_time(point.step_time_s) for point in points)],
        "ratio": [
            "vs fastest",
            *(f"{point.step_time_s / points[-1].step_time_s:.3f}x" for point in points),
        ],
    }
    for i, label in enumerate(problem.topology.labels):
        values = (format_bandwidth(point.bandwidth_bytes_per_s[i]) for point in points)
        columns[label] = [f"{label} GB/s", *(value.removesuffix(" GB/s") for value in values)]
    products = (f"{format_usd(point.step_time_s * point.cost_usd)} s" for point in points)
    columns["product"] = ["step time x cost", *products]
    return columns


def _best(points: tuple[FrontierPoint, ...]) -> FrontierPoint | None:
    """The best per dollar, unless it is where the range happens to end."""
    best = min(points, key=lambda point: point.step_time_s * point.cost_usd)
    return None if best is points[0] or best is points[-1] else best
