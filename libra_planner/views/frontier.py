"""The frontier of cost and step time: JSON of ``pareto``, text and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.plan.steps.notes import Kind, Note
from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth, format_time, format_usd
from libra_planner.views import cells, plan
from libra_planner.views.bought.whole_ports import whole_ports
from libra_planner.views.cells import Block, Table, Value, attributes, escape
from libra_planner.views.design import bandwidths_GBps
from libra_planner.views.training import memory

if TYPE_CHECKING:
    from libra_planner.optimizer.design import FrontierPoint


def frontier_payload(problem: Problem, points: Sequence[FrontierPoint]) -> dict[str, Any]:
    """What ``pareto --json`` prints."""

    def taper_of(point: FrontierPoint) -> dict[str, Any]:
        return plan.taper_payload(problem.topology, point.bandwidth_bytes_per_s)

    def option_of(point: FrontierPoint) -> dict[str, Any]:
        text = plan.option_text(problem, point.bandwidth_bytes_per_s)
        return {"option": text} if text else {}

    return {
        "workload": problem.workload_name,
        "topology": str(problem.topology),
        "fixed_cost_usd": problem.fixed_cost_usd,
        "memory": memory.memory_payload(problem.step.memory),
        "points": [_point_row(point) | taper_of(point) | option_of(point) for point in points],
        "notes": list(_notes(problem, points)),
    }


def _notes(problem: Problem, points: Sequence[FrontierPoint]) -> Iterator[str]:
    """Where the range begins, notes of the best design, and how many others cannot be built."""
    from libra_planner.optimizer.optimize import SLOWEST

    slowest_s = SLOWEST * points[-1].step_time_s
    if not problem.step_time_limits and points[0].step_time_s > slowest_s * (1 - 1e-6):
        limit = f"a rule such as 'step_time <= {format_time(5 * slowest_s)}' keeps more"
        yield f"cheaper designs, more than {SLOWEST:g} times as slow, are left out; {limit}"
    if len(points) == 1:
        yield one_design_text(problem, points[0])
    shown = _best_point(points) or points[-1]
    yield from plan.built_notes(problem, shown.bandwidth_bytes_per_s)
    built = [whole_ports(problem, point.bandwidth_bytes_per_s) for point in points]
    n = sum(1 for one in built if one is not None and one.fault)
    if n and len(points) > 1:
        words = f"{n} of these {len(points)} designs cannot be built; check says why"
        yield Note(words, Kind.DECISION)


def one_design_text(problem: Problem, point: FrontierPoint) -> str:
    """Why a frontier is a single design."""
    bandwidth = point.bandwidth_bytes_per_s
    rules = [one.coefficients for one in problem.rules_at(bandwidth) if one.sense == "=="]
    n_held, prices = _rank(rules), tuple(problem.price_usd_per_Bps.tolist())
    if n_held == len(bandwidth):
        return f"one design: the rules fix the bandwidth of every dimension; {_LOOSER}"
    if problem.prices.bills is not None or problem.options or problem.alternatives:
        return "one design: nothing that the rules allow costs less and is up to twice as slow"
    if any(prices) and n_held and _rank([*rules, prices]) == n_held:
        return f"one design: the rules fix the cost, and this is the fastest at it; {_LOOSER}"
    return "one design: the cheapest that the rules allow is the fastest too"


def _rank(rows: Sequence[Sequence[float]]) -> int:
    """How many of the rows say something of their own."""
    known = [np.array(row) / np.linalg.norm(row) for row in rows if any(row)]
    return int(np.linalg.matrix_rank(np.array(known))) if known else 0


_LOOSER = "<= or >= in place of == leaves a choice"


def _point_row(point: FrontierPoint) -> dict[str, Any]:
    return {
        **attributes(point, "cost_usd", "step_time_s"),
        "step_time_x_cost": point.step_time_s * point.cost_usd,
        "bandwidth_GBps": bandwidths_GBps(point.bandwidth_bytes_per_s),
        **attributes(point, "optimality_gap"),
    }


def frontier_csv(problem: Problem, points: Sequence[FrontierPoint]) -> str:
    """Text of ``pareto --csv``."""
    columns = [f"{label}_GBps" for label in problem.topology.labels]
    rows = [["cost_usd", "step_time_s", "step_time_x_cost", *columns, "optimality_gap"]]
    for row in map(_point_row, points):
        bandwidth = row.pop("bandwidth_GBps")
        *first, gap = row.values()
        rows.append(list(map(repr, [*first, *bandwidth, gap])))
    return cells.csv_of(rows)


def frontier_blocks(problem: Problem, points: Sequence[FrontierPoint]) -> Iterator[Block]:
    """Every design with its cost and step time, and what is proven of them."""
    topology = escape(f"{problem.workload_name} on {problem.topology}")
    yield f"{topology}: the fastest design at each cost"
    yield from map(escape, plan.setting_lines(problem))
    yield from map(escape, memory.memory_lines(problem))
    yield from ("", frontier_table(problem, points), "")
    if _best_point(points) is not None:
        yield "* least step time x cost of these; objective performance_per_cost finds the least"
    worst = max(point.optimality_gap for point in points)
    yield f"Each point is proven optimal, at its cost or step time, to {max(worst, 1e-9):.0e}"
    yield from plan.note_lines(_notes(problem, points))


def frontier_table(problem: Problem, points: Sequence[FrontierPoint]) -> Table:
    """A row for every design."""
    best, fastest_s = _best_point(points), points[-1].step_time_s
    columns: dict[str, Callable[[FrontierPoint], Value]] = {
        "": lambda point: "*" if point is best else "",
        _cost_heading(problem): lambda one: format_usd(one.cost_usd),
        "step time": lambda point: format_time(point.step_time_s),
        "vs\nfastest": lambda point: f"{point.step_time_s / fastest_s:.3f}x",
    }
    for i, label in enumerate(problem.topology.labels):
        tier = f" {problem.topology.tiers[i]}" if problem.topology.stacks else ""
        columns[f"{label}{tier}\nGB/s"] = lambda point, i=i: format_bandwidth(  # type: ignore[misc]
            point.bandwidth_bytes_per_s[i]
        ).removesuffix(" GB/s")
        if problem.topology.dimensions[i].shares_port:
            columns[f"{label}\ntaper"] = lambda point, i=i: plan.taper_texts(  # type: ignore[misc]
                problem.topology, point.bandwidth_bytes_per_s
            )[i]
    if problem.prices.bills is not None:
        columns["bought"] = lambda one: plan.option_text(problem, one.bandwidth_bytes_per_s)
    columns["step time\nx cost"] = lambda one: f"{format_usd(one.step_time_s * one.cost_usd)} s"
    dispensable = ("step time\nx cost", "vs\nfastest")
    looks: dict[str, Any] = {"left": ("bought",), "is_wrapped": True, "dispensable": dispensable}
    return cells.table_of("", points, columns, **looks)


def _cost_heading(problem: Problem) -> str:
    if problem.prices.bills is not None:
        return "bill"
    return "system cost" if problem.fixed_cost_usd else "cost"


def _best_point(points: Sequence[FrontierPoint]) -> FrontierPoint | None:
    """The best per dollar, unless it is where the range happens to end."""
    best = min(points, key=lambda point: point.step_time_s * point.cost_usd)
    return None if best is points[0] or best is points[-1] else best
