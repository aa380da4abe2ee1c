"""A single collective: the JSON object of ``collective --json``, and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from libra_planner import units
from libra_planner.step.collectives.algorithms import algorithm_used, visits
from libra_planner.step.collectives.measured import sent_bytes
from libra_planner.units import (
    NS_PER_S,
    format_bandwidth,
    format_bytes,
    format_time,
    gigabytes_per_s,
)
from libra_planner.views.cells import Block, Table, Value, attributes, count, escape, table_of
from libra_planner.views.plan import note_lines, taper_payload, taper_texts

if TYPE_CHECKING:
    from libra_planner.fabric.topology import Topology
    from libra_planner.inputs.collectives import CollectiveCase
    from libra_planner.inputs.runs import Run
    from libra_planner.step.collectives.balanced import BalancedSchedule
    from libra_planner.step.collectives.models import CollectiveTimes, IdealTimes


def collective_payload(
    case: CollectiveCase, times: CollectiveTimes, balanced: BalancedSchedule | None = None
) -> dict[str, Any]:
    """What ``collective --json`` prints."""
    topology = case.network.topology
    dimensions = dimension_rows(case, times)
    payload = {
        **attributes(case, kind="collective.kind.value", size_bytes="collective.size_bytes"),
        "topology": str(topology),
        "n_npus": topology.n_npus,
        "bandwidth_GBps": [gigabytes_per_s(value) for value in case.bandwidth_bytes_per_s],
        "latency_ns": [value * NS_PER_S for value in case.network.latency_s],
        "chunks": times.n_chunks,
        "algorithms": [row["algorithm"] for row in dimensions],
        "in_network": [topology.labels[i] for i in sorted(case.network.in_network)],
        **attributes(times, "time_s", "ideal_time_s", "continuous_time_s"),
        **attributes(times, "model_time_s", "model_gap", "aggregate_bound_s"),
        "bottleneck": max(dimensions, key=lambda row: row["busy_s"])["dimension"],
        "dimensions": dimensions,
    }
    return payload | _balanced_payload(topology, balanced)


def _balanced_payload(topology: Topology, balanced: BalancedSchedule | None) -> dict[str, Any]:
    """Keys of the best split over orders; none where it was not asked for."""
    if balanced is None:
        return {}
    orders = [
        {"dimensions": [topology.labels[i] for i in share.order], "fraction": share.fraction}
        for share in balanced.split
    ]
    figures = attributes(balanced, balanced_time_s="time_s", balanced_gain="gain")
    return figures | {"orders": orders}


def _balanced_line(topology: Topology, balanced: BalancedSchedule) -> str:
    shares = ", ".join(
        f"{share.fraction:.1%} {' > '.join(topology.labels[i] for i in share.order)}"
        for share in balanced.split
    )
    return (
        f"Balanced over orders of the dimensions: ideal time [bold]"
        f"{format_time(balanced.time_s)}[/], {balanced.gain:.3f}x as fast as the fixed order: "
        f"{shares}"
    )


def ideal_payload(
    case: CollectiveCase, ideal: IdealTimes, balanced: BalancedSchedule | None = None
) -> dict[str, Any]:
    """What ``collective --json`` prints where only bytes are told: null stands for the rest."""
    topology, network = case.network.topology, case.network
    untold = ("time_s", "continuous_time_s", "model_time_s", "model_gap", "chunks", "latency_ns")
    rows = ideal_rows(case, ideal)
    payload = {
        **attributes(case, kind="collective.kind.value", size_bytes="collective.size_bytes"),
        "topology": str(topology),
        "n_npus": topology.n_npus,
        "schedule": network.schedule(case.collective.kind).value,
        "bandwidth_GBps": [gigabytes_per_s(value) for value in case.bandwidth_bytes_per_s],
        **taper_payload(topology, case.bandwidth_bytes_per_s),
        "in_network": [topology.labels[i] for i in sorted(network.in_network)],
        **dict.fromkeys(untold),
        **attributes(ideal, "aggregate_bound_s", ideal_time_s="time_s"),
        "bottleneck": max(rows, key=lambda row: row["busy_s"])["dimension"],
        "dimensions": rows,
        "notes": [f"only the ideal time is told: {case.why_ideal_only}"],
    }
    return payload | _balanced_payload(topology, balanced)


def ideal_rows(case: CollectiveCase, ideal: IdealTimes) -> list[dict[str, Any]]:
    """Bytes of each dimension's own groups and all that cross it, and how long they take."""
    topology = case.network.topology
    tapers = topology.tapers(case.bandwidth_bytes_per_s)
    return [
        {
            "dimension": topology.labels[i],
            "block": str(dimension),
            "own_bytes": ideal.own_bytes[i],
            "traffic_bytes": ideal.traffic_bytes[i],
            "busy_s": ideal.busy_s[i],
            "busy_fraction": ideal.busy_s[i] / ideal.time_s,
        }
        | ({} if tapers[i] is None else {"taper": tapers[i]})
        for i, dimension in enumerate(topology.dimensions)
    ]


def ideal_blocks(
    case: CollectiveCase, ideal: IdealTimes, balanced: BalancedSchedule | None = None
) -> Iterator[Block]:
    """Headline, the ideal time, what crosses each dimension, and what is not told."""
    topology, schedule = case.network.topology, case.network.schedule(case.collective.kind)
    where = escape(f"{topology}, {topology.n_npus:,} NPUs, {schedule} schedule")
    size = format_bytes(case.collective.size_bytes)
    yield f"[bold]{case.collective.kind.value}[/] of {size} on {where}"
    yield f"Ideal time [bold]{format_time(ideal.time_s)}[/] (no latency, endlessly many chunks)"
    bound_s = ideal.aggregate_bound_s
    yield f"All dimensions together could send the bytes in {format_time(bound_s)}"
    if balanced is not None:
        yield _balanced_line(topology, balanced)
    tapers = taper_texts(topology, case.bandwidth_bytes_per_s)
    columns: dict[str, Callable[[Any], Value]] = {
        "dimension": lambda row: row[0]["dimension"],
        "block": lambda row: row[0]["block"],
        "bandwidth": lambda row: format_bandwidth(row[1]),
        "taper": lambda row: row[2],
        "own bytes": lambda row: format_bytes(row[0]["own_bytes"]),
        "cross it": lambda row: format_bytes(row[0]["traffic_bytes"]),
        "busy": lambda row: format_time(row[0]["busy_s"]),
        "of the time": lambda row: f"{row[0]['busy_fraction']:.1%}",
    }
    rows = zip(ideal_rows(case, ideal), case.bandwidth_bytes_per_s, tapers, strict=True)
    left = ("dimension", "block")
    yield from ("", table_of("Dimensions, innermost first", rows, columns, left=left), "")
    yield f"Note: only the ideal time is told: {case.why_ideal_only}"


def dimension_rows(case: CollectiveCase, times: CollectiveTimes) -> list[dict[str, Any]]:
    """What happens in each dimension: algorithm, steps and bytes of one pass, busy time."""
    network = case.network
    steps = [0] * network.topology.n_dims
    for stop in visits(case.collective, case.group, network):
        steps[stop.dim] += stop.n_steps
    return [
        {
            "dimension": network.topology.labels[i],
            "block": str(dimension),
            "algorithm": "in_network"
            if i in network.in_network
            else algorithm_used(case.collective, case.group, network, i).value,
            "steps": steps[i],
            "traffic_bytes": times.traffic_bytes[i],
            "busy_s": times.busy_s[i],
            "busy_fraction": times.busy_s[i] / times.time_s,
        }
        for i, dimension in enumerate(network.topology.dimensions)
    ]


_NOTED_ROUNDING = 1e-3
"""Share of the time that rounding may take without a note."""


def collective_blocks(
    case: CollectiveCase, times: CollectiveTimes, balanced: BalancedSchedule | None = None
) -> Iterator[Block]:
    """Headline, how the time compares, and what each dimension does."""
    topology, size = case.network.topology, format_bytes(case.collective.size_bytes)
    chunks = f"{times.n_chunks} chunk{'s' * (times.n_chunks != 1)}"
    where = f"{topology}, {topology.n_npus:,} NPUs, {chunks}"
    yield f"[bold]{case.collective.kind.value}[/] of {size} on {where}"
    yield (
        f"Time [bold]{format_time(times.time_s)}[/] (exact flow shop); convex model "
        f"{format_time(times.model_time_s)} (exact is {times.model_gap:.3f}x of it), ideal "
        f"{format_time(times.ideal_time_s)} (no latency, endlessly many chunks)"
    )
    bound_s = times.aggregate_bound_s
    yield f"All dimensions together could send the bytes in {format_time(bound_s)}"
    if balanced is not None:
        yield _balanced_line(topology, balanced)
    yield from ("", _table(case, times))
    lost = 1 - times.time_s / times.continuous_time_s
    if lost > _NOTED_ROUNDING:
        yield from (
            "",
            f"Note: messages are short here; rounding each down to the clock, as ASTRA-sim does, "
            f"takes {lost:.1%} off the time. --clock-ns 0 turns it off",
        )


def _table(case: CollectiveCase, times: CollectiveTimes) -> Table:
    """One row per dimension; narrow terminals lose the columns of the input first."""
    inputs = case.bandwidth_bytes_per_s, case.network.latency_s
    return table_of(
        "Dimensions, innermost first",
        zip(dimension_rows(case, times), *inputs, strict=True),
        {
            "dimension": lambda row: row[0]["dimension"],
            "block": lambda row: row[0]["block"],
            "algorithm": lambda row: row[0]["algorithm"],
            "bandwidth": lambda row: units.format_bandwidth(row[1]),
            "latency": lambda row: f"{row[2] * NS_PER_S:,g} ns",
            "bytes": lambda row: format_bytes(row[0]["traffic_bytes"]),
            "steps": lambda row: count(row[0]["steps"]),
            "busy": lambda row: format_time(row[0]["busy_s"]),
            "of the time": lambda row: f"{row[0]['busy_fraction']:.1%}",
        },
        left=("dimension", "block", "algorithm"),
        dispensable=("latency", "algorithm", "of the time", "steps"),
    )


def run_payload(run: Run, notes: Sequence[str] = ()) -> dict[str, Any]:
    """What ``collective --system --json`` prints."""
    ranks, margin = run.ranks, 1 + run.error_fraction
    return {
        "kind": run.kind,
        "size_bytes": run.size_bytes,
        "fidelity": "calibrated",
        "n_npus": ranks.n,
        "nodes": ranks.n_nodes,
        "domains": ranks.n_domains,
        "time_s": run.time_s,
        "time_s_low": run.time_s / margin,
        "time_s_high": run.time_s * margin,
        "algorithm_bandwidth_GBps": gigabytes_per_s(run.size_bytes / run.time_s),
        "bus_bandwidth_GBps": gigabytes_per_s(_bus_Bps(run)),
        "notes": list(notes),
    }


def _bus_Bps(run: Run) -> float:
    return sent_bytes(run.kind, run.size_bytes, run.ranks.n) / run.time_s


def run_blocks(run: Run, notes: Sequence[str] = ()) -> Iterator[Block]:
    """Time with its band, and bandwidths as nccl-tests has them."""
    ranks, margin = run.ranks, 1 + run.error_fraction
    nodes = f"{ranks.n_nodes:,} node{'s' if ranks.n_nodes > 1 else ''}"
    yield (
        f"[bold]{run.kind}[/] of {format_bytes(run.size_bytes)} among {ranks.n:,} NPUs on {nodes}, "
        "as NCCL runs it"
    )
    low, high = format_time(run.time_s / margin), format_time(run.time_s * margin)
    yield (
        f"Time [bold]{format_time(run.time_s)}[/]; measured times of its kind are "
        f"{run.error_fraction:.0%} off on average: {low} to {high}. Single ones may be off by more "
        f"({run.bands.source})"
    )
    algorithm, bus = map(format_bandwidth, (run.size_bytes / run.time_s, _bus_Bps(run)))
    yield f"Algorithm bandwidth {algorithm}, bus bandwidth {bus}"
    yield from note_lines(notes)
