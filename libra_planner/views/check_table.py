"""Checks of designs on their links as terminal text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from libra_planner.check.failures import FailureStudy
from libra_planner.check.hotspot import Hotspot, TracedFlow
from libra_planner.check.links import CheckReport
from libra_planner.fabric.clos import Array
from libra_planner.fabric.parts import DesignParts, DimensionParts, design_parts
from libra_planner.routing.imbalance import distribution
from libra_planner.units import format_bandwidth, format_time, gigabytes_per_s
from libra_planner.views.cells import escape
from libra_planner.views.check import CheckedPlan, check_notes
from libra_planner.views.failures import draw_lines, single_failure_lines
from libra_planner.views.flows import group_rows
from libra_planner.views.flows_table import (
    figure_text,
    layer_table,
    plain_table,
    plural,
    print_groups,
    print_histogram,
    print_hops,
    print_line,
    spread_table,
    timed,
)
from libra_planner.views.hotspot import link_rows
from libra_planner.views.phases import algorithm_lines, labels
from libra_planner.views.plan import memory_markup
from libra_planner.views.spread import NOTHING_DRAWN, mean_text

_LEAST_FOR_HISTOGRAM = 10
"""Seeds below which a histogram says no more than the percentiles."""


def print_check(
    console: Console,
    checked: CheckedPlan,
    hot: Hotspot | None,
    *,
    n_busiest: int,
    groups: bool,
    traced: TracedFlow | None,
) -> None:
    """Headline, step times, dimensions, parts, phases, what loses most, notes."""
    report = checked.report
    for line in _headline(checked):
        print_line(console, line)
    console.print()
    console.print(_step_time_table(console, checked))
    print_line(console, _costs(report))
    if checked.has_statistics:
        _print_seeds(console, report)
    console.print()
    console.print(_dimension_table(console, checked))
    console.print()
    _print_parts(console, design_parts(report.design))
    if report.phases:
        console.print()
        console.print(_phase_table(console, checked))
        for line in algorithm_lines(report):
            print_line(console, escape(line))
    if hot is not None:
        _print_hotspot(console, checked, hot, n_busiest)
        if hot.routed is not None and groups:
            print_groups(console, group_rows(hot.routed))
        if traced is not None:
            print_hops(console, traced.routed, traced.number)
            print_line(console, f"  in {escape(traced.round_name)} on {traced.label}")
    _print_notes(console, checked)


def _headline(checked: CheckedPlan) -> Iterator[str]:
    report, problem, traffic = checked.report, checked.links.problem, checked.links.traffic
    topology = problem.topology
    name = escape(problem.workload_name)
    yield f"[bold]{name}[/] on {topology}, {topology.n_npus:,} NPUs"
    if problem.settings:
        yield f"[dim]{escape(', '.join(problem.settings))}[/]"
    vector = ", ".join(format_bandwidth(value) for value in checked.links.bandwidth_Bps)
    origin = "the plan's own optimum, found first" if checked.optimized else "as given"
    yield f"Design {vector} per NPU: {origin}"
    pairs = f"{traffic.n_queue_pairs} queue {plural('pair', traffic.n_queue_pairs)} per connection"
    shared = f", {traffic.npus_per_address} NPUs per address" * (traffic.npus_per_address > 1)
    yield f"Routed by {routed_by(report)}; placement {traffic.placement}, {pairs}{shared}"
    yield from memory_markup(problem)
    for broken in checked.violated:
        line = f" (line {broken.line})" if broken.line else ""
        yield f"[red]Breaks a rule:[/] {escape(broken.rule)}{line}"
    for limit, late_s in checked.late:
        line = f" (line {limit.line})" if limit.line else ""
        text = f"{escape(limit.text)}{line}, by {format_time(late_s)}"
        yield f"[red]Breaks a rule on its links:[/] {text}"


def routed_by(report: CheckReport) -> str:
    """Policy and seeds in words."""
    policy = report.policy
    hashed = ""
    if policy.kind.reads_headers:
        extras = ", one seed for all switches" * policy.shared_seed
        extras += ", queue pair hashed too" * policy.enhanced
        hashed = f" ({policy.hash} hash{extras})"
    elif policy.per_collective:
        hashed = " (each collective by itself)"
    if not report.is_drawn:
        return f"[bold]{policy.name}[/]{hashed}{NOTHING_DRAWN}"
    seeds = f"seed {report.seeds[0]}"
    if report.n_routings > 1:
        seeds = f"{report.n_routings:,} seeds from {report.seeds[0]}"
    return f"[bold]{policy.name}[/]{hashed}, {seeds}"


def _step_time_table(console: Console, checked: CheckedPlan) -> Table:
    """The three step times, each with its ratio to the first."""
    report = checked.report
    ideal_s, routed_s = report.ideal_step_time_s, report.effective_step_time_s
    rows = [
        ("ideal: all bandwidth, the plan's model", ideal_s),
        ("whole links, every packet sprayed", report.spray_step_time_s),
    ]
    found = distribution(routed_s)
    if not checked.has_statistics:
        rows.append((f"whole links, {report.policy.name}", found.mean))
    else:
        rows.append((f"whole links, {report.policy.name}, mean", found.mean))
        rows.append((f"whole links, {report.policy.name}, p95", found.p95))
    columns = {
        "step time": [name for name, _ in rows],
        "time": [format_time(seconds) for _, seconds in rows],
        "vs ideal": [f"{seconds / ideal_s:.3f}x" for _, seconds in rows],
    }
    return plain_table(console, columns, "Step time", left=("step time",), dispensable=())


def _costs(report: CheckReport) -> str:
    """What the links' shape and the routing add to the step time."""
    links = report.spray_step_time_s / report.ideal_step_time_s - 1
    routing = report.effective_step_time_s / report.spray_step_time_s - 1
    cost = f"{report.policy.name} {_signed(distribution(routing).mean)}"
    means = mean_text(routing[: report.n_routings], _signed)
    return f"The links cost {_signed(links)} step time, {cost}" + f" ({means})" * bool(means)


def _signed(fraction: float) -> str:
    return f"{round(fraction, 4) + 0.0:+.2%}"


def _print_seeds(console: Console, report: CheckReport) -> None:
    rows: list[tuple[str, Array]] = [
        timed("step time", report.effective_step_time_s),
        ("slowdown", report.slowdown),
        ("FIM %", report.fim_percent),
    ]
    console.print()
    console.print(spread_table(console, rows, f"Over {len(report.seeds):,} seeds"))
    if len(report.seeds) >= _LEAST_FOR_HISTOGRAM and np.ptp(report.effective_step_time_s) > 0:
        title, samples = timed("Seeds by step time,", report.effective_step_time_s)
        print_histogram(console, samples, title)


def _dimension_table(console: Console, checked: CheckedPlan) -> Table:
    dimensions = checked.report.dimensions
    columns = {
        "dim": [one.label for one in dimensions],
        "tier": [one.tier for one in dimensions],
        "block": checked.blocks,
        "asked": [_gbps(one.asked_Bps) for one in dimensions],
        "realised": [_gbps(one.bandwidth_Bps) for one in dimensions],
        "sprayed %": [_percent(one.ideal_efficiency) for one in dimensions],
        "efficiency %": [_percent(_mean(one.efficiency)) for one in dimensions],
        "FIM %": [figure_text(_mean(one.fim_percent)) for one in dimensions],
        "floor %": [figure_text(one.fim_floor_percent) for one in dimensions],
    }
    title = "Dimensions: GB/s per NPU, and the share of it that collectives get"
    left, dispensable = ("dim", "tier", "block"), ("sprayed %", "tier", "floor %")
    return plain_table(console, columns, title, left=left, dispensable=dispensable)


def _gbps(bandwidth_Bps: float) -> str:
    return f"{gigabytes_per_s(bandwidth_Bps):,.2f}"


def _percent(fraction: float) -> str:
    return figure_text(100 * fraction)


def _mean(samples: Array) -> float:
    return float(samples.mean())


def _print_parts(console: Console, parts: DesignParts) -> None:
    rows = [row for dimension in parts.dimensions for row in _part_rows(dimension)]
    names = ("dim", "parts", "number", "ports used", "ports free", "GB/s each", "optics")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    title = "Switches, cables and optics"
    console.print(
        plain_table(console, columns, title, left=("dim", "parts"), dispensable=("ports free",))
    )
    total = {name: parts.total(f"n_{name}") for name in ("switches", "cables", "optics")}
    print_line(console, "In all " + ", ".join(f"{n:,} {name}" for name, n in total.items()))


def _part_rows(dimension: DimensionParts) -> Iterator[tuple[str, ...]]:
    label = dimension.label
    for switch in dimension.switches:
        ports = f"{switch.n_ports_used:,}", f"{switch.n_ports_free:,}"
        name = plural(switch.tier, switch.n_switches)
        yield label, name, f"{switch.n_switches:,}", *ports, "", ""
    for cable in dimension.cables:
        speed, optics = _gbps(cable.speed_Bps), f"{cable.n_optics:,}"
        yield label, f"cables {cable.joins}", f"{cable.n_cables:,}", "", "", speed, optics
    if not dimension.switches and not dimension.cables:
        yield label, "none: no bandwidth", "0", "", "", "", ""


def _phase_table(console: Console, checked: CheckedPlan) -> Table:
    report = checked.report
    rows = [
        (phase, spread, name)
        for (phase, users), spread in zip(report.phases, report.spreads, strict=True)
        for name in labels(users)
    ]
    phases, spreads = [phase for phase, _, _ in rows], [spread for _, spread, _ in rows]
    columns = {
        "dim": [phase.label for phase in phases],
        "collective": [name for _, _, name in rows],
        "size": [f"{phase.group_size:,}" for phase in phases],
        "algorithm": [phase.algorithm for phase in phases],
        "rounds": [f"{len(phase.rounds):,}" for phase in phases],
        "flows": [f"{sum(one.n_flows for one in phase.rounds):,}" for phase in phases],
        "FIM %": [figure_text(distribution(one.fim_percent).mean) for one in spreads],
        "floor %": [figure_text(phase.fim_floor_percent) for phase in phases],
        "slowdown": [f"{distribution(one.slowdown).mean:.3f}x" for one in spreads],
    }
    n_seeds = checked.report.n_routings
    which = f"means of {n_seeds:,} routings" if n_seeds > 1 else "all groups at once"
    title = f"Collectives on switches, {which}; slowdown against sprayed packets"
    dispensable = ("floor %", "algorithm", "rounds", "flows")
    return plain_table(
        console, columns, title, left=("dim", "collective", "algorithm"), dispensable=dispensable
    )


def _print_hotspot(console: Console, checked: CheckedPlan, hot: Hotspot, n_busiest: int) -> None:
    worst, n_rounds = hot.worst, len(hot.phase.rounds)
    names = labels(hot.users)
    users = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    which = f", {worst.name} ({worst.share:.1%} of its bytes)" if n_rounds > 1 else ""
    console.print()
    slower = worst.time_s / worst.ideal_s
    first = f" with seed {checked.report.seeds[0]}" if checked.report.n_routings > 1 else ""
    print_line(
        console,
        f"Loses most{first}: [bold]{escape(users)}[/] on {hot.phase.label}{which}: "
        f"[bold]{slower:.3f}x[/] the time of sprayed packets",
    )
    console.print()
    console.print(layer_table(console, worst.layers))
    rows = link_rows(hot, n_busiest)
    if rows:
        console.print()
        print_line(console, f"Busiest links there, seed {checked.report.seeds[0]}")
    for row in rows:
        print_line(console, escape(f"  {_link_text(row)}"))


def _link_text(row: dict[str, object]) -> str:
    flows, n_flows, n_groups = row["flows"], row["n_flows"], row["n_groups"]
    if not (isinstance(flows, Sequence) and isinstance(n_flows, int | float)):
        raise TypeError("not a row of a link")
    n_shown = 4
    more = ", ..." if n_flows > n_shown else ""
    groups = f" of {n_groups} groups" if isinstance(n_groups, int) and n_groups > 1 else ""
    named = f": NPUs {', '.join(flows[:n_shown])}{more}" if flows else ""
    return f"{row['link']}  {n_flows:,.6g} {plural('flow', int(n_flows))}{groups}{named}"


def _print_notes(console: Console, checked: CheckedPlan) -> None:
    notes = list(check_notes(checked))
    if notes:
        console.print()
    for note in notes:
        print_line(console, escape(f"Note: {note}"))


def print_failures(
    console: Console, studies: dict[str, FailureStudy], failed: str, *, n_worst: int
) -> None:
    """Studies of failures, after :func:`print_check`; ``failed`` says what in each draw."""
    for name, study in studies.items():
        console.print()
        lines = draw_lines(study, failed)
        if name == "single_failures":
            lines = single_failure_lines(study, n_worst)
        for line in lines:
            print_line(console, escape(line))
        if name == "failures" and len(study.step_time_s) >= _LEAST_FOR_HISTOGRAM:
            title, samples = timed("Draws by step time,", study.step_time_s)
            print_histogram(console, samples, title)
