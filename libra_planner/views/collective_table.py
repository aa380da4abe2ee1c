"""A single collective as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from libra_planner.units import NS_PER_S, format_bandwidth, format_bytes, format_time
from libra_planner.views.collective import dimension_rows

if TYPE_CHECKING:
    from libra_planner.inputs.collectives import CollectiveCase
    from libra_planner.step.collectives.models import CollectiveTimes
    from libra_planner.step.collectives.scheduling import BalancedSchedule

_NOTED_ROUNDING = 1e-3
"""Share of the time that rounding may take without a note."""

_DISPENSABLE = ("latency", "algorithm", "of the time", "steps")
"""Columns that a narrow terminal loses, in this order."""


def print_collective(
    console: Console,
    case: CollectiveCase,
    times: CollectiveTimes,
    balanced: BalancedSchedule | None = None,
) -> None:
    """Headline, how the time compares, and what each dimension does."""
    topology, size = case.network.topology, format_bytes(case.collective.size_bytes)
    what = f"[bold]{case.collective.kind.value}[/] of {size}"
    plural = "" if times.n_chunks == 1 else "s"
    where = f"{topology}, {topology.n_npus:,} NPUs, {times.n_chunks} chunk{plural}"
    _print_line(console, f"{what} on {where}")
    _print_line(
        console,
        f"Time [bold]{format_time(times.time_s)}[/] (exact flow shop); convex model "
        f"{format_time(times.model_time_s)} (exact is {times.model_gap:.3f}x of it), ideal "
        f"{format_time(times.ideal_time_s)} (no latency, endlessly many chunks)",
    )
    if times.aggregate_bound_s is not None:
        bound = format_time(times.aggregate_bound_s)
        _print_line(console, f"All dimensions together could send the bytes in {bound}")
    if balanced is not None:
        _print_balanced(console, case, balanced)
    console.print()
    console.print(_table(console, case, times))
    lost = 1 - times.time_s / times.continuous_time_s
    if lost > _NOTED_ROUNDING:
        console.print()
        _print_line(
            console,
            f"Note: messages are short here; rounding each down to the clock, as ASTRA-sim does, "
            f"takes {lost:.1%} off the time. --clock-ns 0 turns it off",
        )


def _print_balanced(console: Console, case: CollectiveCase, balanced: BalancedSchedule) -> None:
    labels = case.network.topology.labels
    shares = ", ".join(
        f"{share.fraction:.1%} {' > '.join(labels[i] for i in share.order)}"
        for share in balanced.split
    )
    _print_line(
        console,
        f"Balanced over orders of the dimensions: ideal time [bold]{format_time(balanced.time_s)}"
        f"[/], {balanced.gain:.3f}x as fast as the fixed order: {shares}",
    )


def _table(console: Console, case: CollectiveCase, times: CollectiveTimes) -> Table:
    """One row per dimension; narrow terminals lose the columns of the input first."""
    columns = _columns(case, times)
    for name in _DISPENSABLE:
        if (
            sum(max(map(len, [name, *cells])) + 2 for name, cells in columns.items())
            > console.width
        ):
            del columns[name]
    table = Table(title="Dimensions, innermost first", box=None)
    table.title_justify = "left"
    for name in columns:
        left = name in ("dimension", "block", "algorithm")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _columns(case: CollectiveCase, times: CollectiveTimes) -> dict[str, list[str]]:
    rows = dimension_rows(case, times)
    return {
        "dimension": [row["dimension"] for row in rows],
        "block": [row["block"] for row in rows],
        "algorithm": [row["algorithm"] for row in rows],
        "bandwidth": [format_bandwidth(value) for value in case.bandwidth_bytes_per_s],
        "latency": [f"{value * NS_PER_S:,g} ns" for value in case.network.latency_s],
        "bytes": [format_bytes(row["traffic_bytes"]) for row in rows],
        "steps": [f"{row['steps']:,}" for row in rows],
        "busy": [format_time(row["busy_s"]) for row in rows],
        "of the time": [f"{row['busy_fraction']:.1%}" for row in rows],
    }


def _print_line(console: Console, text: str) -> None:
    """One paragraph: wrapped on a terminal, one line anywhere else."""
    console.print(text, soft_wrap=not console.is_terminal)
