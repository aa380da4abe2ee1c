"""The frontier over strategies and fabrics: JSON of ``search --pareto``, text and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.problem import Problem
from libra_planner.search.best import Candidate
from libra_planner.search.frontier import StrategyFrontier
from libra_planner.units import bare_bandwidth, format_time, format_usd
from libra_planner.views import cells, plan
from libra_planner.views.cells import Block, Table, escape
from libra_planner.views.times.search import candidate_payload, mfu_fraction, result_notes
from libra_planner.views.training.found import search_counts
from libra_planner.views.training.step import COUNTED
from libra_planner.workload.strategy import Recompute, Strategy

_SHORT = {"tp": "tp", "cp": "cp", "pp": "pp", "dp": "dp", "ep": "ep", "interleave": "chunks"}


def frontier_payload(problem: Problem, found: StrategyFrontier) -> dict[str, Any]:
    """What ``search PLAN --pareto --json`` prints."""
    best = _best_point(problem, found)
    return {
        "workload": problem.workload_name,
        "topology": str(problem.topology),
        "fixed_cost_usd": problem.fixed_cost_usd,
        "n_strategies": found.n_strategies,
        "n_searches": len(found.results),
        **search_counts(found.total),
        "points": [
            candidate_payload(problem, one) | {"is_best_per_cost": one is best}
            for one in found.points
        ],
        "notes": list(_notes(problem, found)),
    }


def _notes(problem: Problem, found: StrategyFrontier) -> Iterator[str]:
    """What the point to look at first costs to buy, and what its fabric rules out."""
    best = _best_point(problem, found)
    return result_notes(problem, found.points[-1:] if best is None else [best])


def frontier_csv(problem: Problem, found: StrategyFrontier) -> str:
    """Text of ``search PLAN --pareto --csv``."""
    speeds = [f"{label}_GBps" for label in problem.topology.labels]
    rows: list[list[Any]] = []
    for one in frontier_payload(problem, found)["points"]:
        bandwidth = dict(zip(speeds, one.pop("bandwidth_GBps"), strict=True))
        rows.append(list((one | bandwidth).values()))
        headings = list(one | bandwidth)
    return cells.csv_of([headings, *rows]) if rows else ""


def frontier_blocks(problem: Problem, found: StrategyFrontier) -> Iterator[Block]:
    """Every point with its cost, time and strategy, and what is proven of them."""
    topology = escape(f"{problem.workload_name} on {problem.topology}")
    yield f"{topology}: the fastest strategy and network at each cost; MFU with {COUNTED}"
    if found.points:
        yield from ("", _frontier_table(problem, found), "")
    if _best_point(problem, found) is not None:
        yield "* least cost x seconds per token of these"
    yield from _counts(found)
    yield from plan.note_lines(_notes(problem, found))


def _counts(found: StrategyFrontier) -> Iterator[str]:
    total = found.total
    yield (
        f"{found.n_strategies:,} strategies in {len(found.results)} searches, together "
        f"{total.n_candidates:,}: {total.n_not_fitting:,} do not fit an NPU's memory, "
        f"{total.n_cut:,} cannot be the best, {total.n_solved:,} were worked out in full"
    )
    if found.was_stopped:
        yield "[bold]Stopped[/]: the points above are proven, others are missing."
    elif not total.is_certified:
        yield f"[bold]Not proven[/]: {total.n_unproven:,} may be better; their points are left out."
    elif found.points:
        yield "[bold]Proven[/]: no strategy on any network is faster for the cost of a point."


def _frontier_table(problem: Problem, found: StrategyFrontier) -> Table:
    best = _best_point(problem, found)
    batches = {int(one.strategy.global_batch) for one in found.points}
    columns = {
        "": lambda one: "*" if one is best else "",
        "bill" if problem.prices.bills is not None else "cost": lambda one: format_usd(
            one.optimum.cost_usd
        ),
        "network": lambda one: format_usd(
            float(problem.network_cost_usd(one.optimum.bandwidth_bytes_per_s))
        ),
        "step": lambda one: format_time(one.optimum.step_time_s),
        "tokens/s": lambda one: f"{1 / one.objective_per_token:,.0f}",
        "MFU": lambda one: cells.percent(mfu_fraction(problem, one)),
        "strategy": lambda one: _strategy_text(one.strategy),
        "micro": lambda one: str(int(one.strategy.microbatch)),
        "batch": lambda one: f"{int(one.strategy.global_batch):,}",
        "ZeRO": lambda one: str(int(one.strategy.zero)),
        "recompute": lambda one: Recompute(int(one.strategy.recompute)).name.lower(),
        "GB/s by dimension": lambda one: " ".join(
            map(bare_bandwidth, one.optimum.bandwidth_bytes_per_s)
        ),
        "bought": lambda one: plan.option_text(problem, one.optimum.bandwidth_bytes_per_s),
    }
    if len(batches) == 1:
        del columns["batch"]
    if not problem.fixed_cost_usd and problem.prices.bills is None:
        del columns["network"]
    if problem.prices.bills is None:
        del columns["bought"]
    dispensable = ("bought", "recompute", "network", "ZeRO", "micro", "MFU", "batch", "tokens/s")
    left = ("strategy", "recompute", "bought")
    kept = tuple(name for name in dispensable if name in columns)
    return cells.table_of("", found.points, columns, left=left, dispensable=kept)


def _strategy_text(one: Strategy) -> str:
    """Degrees above 1, such as ``tp4 pp2 dp128 chunks10``."""
    degrees = {short: int(getattr(one, name)) for name, short in _SHORT.items()}
    return " ".join(f"{name}{n}" for name, n in degrees.items() if n > 1) or "dp1"


def _best_point(problem: Problem, found: StrategyFrontier) -> Candidate | None:
    """The best per dollar, unless it is where the range of budgets happens to end."""
    points = found.points
    if not points:
        return None
    best = min(points, key=lambda one: one.objective_per_token * one.optimum.cost_usd)
    is_end = best is points[0] or best is points[-1]
    return None if is_end and problem.prices.bills is None else best
