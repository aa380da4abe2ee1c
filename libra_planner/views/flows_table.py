"""Routings of flow lists as terminal text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from libra_planner.check.flow_lists import RoutedList
from libra_planner.check.measured import MeasuredReport
from libra_planner.check.report import LayerReport, SeedReports, gathered
from libra_planner.fabric.clos import Array, Clos
from libra_planner.fabric.failures import cable_failures
from libra_planner.plain_text import visible
from libra_planner.routing.imbalance import distribution
from libra_planner.routing.loads import are_alike
from libra_planner.units import format_bandwidth, format_time, time_unit
from libra_planner.views.cells import escape
from libra_planner.views.flows import (
    busiest_interfaces,
    busiest_links,
    group_rows,
    hop_rows,
    mean_layers,
    proven,
)
from libra_planner.views.spread import NOTHING_DRAWN, mean_text

_BAR_CELLS = 40
_N_BINS = 12
_MOST_GROUPS = 20
_DISPENSABLE = ("idle links", "floor %", "max/mean")
"""Columns that a narrow terminal loses, in this order."""


def print_flows(
    console: Console, routed: RoutedList, *, n_busiest: int, groups: bool, traced: int | None
) -> None:
    """Headline, layers, what it costs, busiest links; with many seeds their spread."""
    print_line(console, _headline(routed))
    console.print()
    if not routed.statistics or routed.n_routings == 1:
        several = routed.n_routings > 1 and routed.seeds
        seeds = several or gathered([routed.report])
        console.print(layer_table(console, mean_layers(seeds), n_routings=len(seeds.seeds)))
        console.print()
        _print_totals(console, routed, seeds)
    else:
        _print_seeds(console, routed.seeds or gathered([routed.report]), routed.floor_percent)
    if routed.disconnected_seeds:
        shown = ", ".join(map(str, routed.disconnected_seeds[:10]))
        n = len(routed.disconnected_seeds)
        more = ", ..." if n > 10 else ""
        print_line(console, f"Left out: {plural('seed', n)} {shown}{more}, which cut hosts off")
    if groups:
        print_groups(console, group_rows(routed))
    title = "Busiest links" + (f" of seed {routed.report.seed}" if routed.n_routings > 1 else "")
    _print_busiest(console, busiest_links(routed, n_busiest), title)
    if traced is not None:
        print_hops(console, routed, traced)


def print_measured(
    console: Console, measured: MeasuredReport, *, n_busiest: int, groups: bool
) -> None:
    """The same from a trace, which has no rates."""
    trace = measured.trace
    n_flows, n_hops = len(trace.flow_ids), len(trace.flow)
    print_line(
        console,
        f"[bold]Measured[/]: {_counted(n_flows, 'flow')} over {_counted(n_hops, 'hop')}",
    )
    console.print()
    console.print(layer_table(console, measured.layers))
    console.print()
    print_line(console, _overall(measured.fim_percent, measured.fim_floor_percent))
    if not measured.counts_idle:
        print_line(
            console,
            "Note: a trace does not show idle links, so they are not counted; list all "
            "interfaces between switches with --interfaces, or give the fabric",
        )
    if groups:
        rows = [vars(group) | {"group": group.switch} for group in measured.groups]
        print_groups(console, rows)
    _print_busiest(console, busiest_interfaces(measured, n_busiest), "Busiest interfaces")


def _headline(routed: RoutedList) -> str:
    report, fabric = routed.report, routed.fabric
    policy = report.policy
    tiers = ", ".join(_counted(n, tier) for tier, n in fabric.n_switches.items())
    hashed = f" ({policy.hash} hash)" if policy.kind.reads_headers else ""
    seeds = f", seed {report.seed}"
    if not routed.is_drawn:
        seeds = NOTHING_DRAWN
    elif routed.seeds is not None:
        seeds = f", {_seeds_text(routed)}"
    return (
        f"[bold]{policy.name}[/]{hashed}{seeds}: {_counted(report.n_flows, 'flow')} between "
        f"{_counted(fabric.n_hosts, 'host')}, {tiers}{_failed_text(fabric)}"
    )


def _seeds_text(routed: RoutedList) -> str:
    """How many seeds, and how many of them failures left without a figure."""
    found = [] if routed.seeds is None else routed.seeds.seeds.tolist()
    cut = routed.disconnected_seeds
    seeds = f"{len(found) + len(cut):,} seeds from {min([*found, *cut])}"
    cuts = "cuts" if len(cut) == 1 else "cut"
    return f"{len(found):,} of {seeds} ({len(cut):,} {cuts} hosts off)" if cut else seeds


def _failed_text(fabric: Clos) -> str:
    """Cables that are down, if there are any."""
    hosts = np.arange(fabric.n_hosts)
    kinds = {
        "cables between switches": cable_failures(fabric),
        "cables to hosts": np.stack([hosts, fabric.reverse(hosts)], axis=1),
    }
    down = {name: int((~fabric.alive[cables]).any(axis=1).sum()) for name, cables in kinds.items()}
    parts = [f"{n:,} of {len(kinds[name]):,} {name} failed" for name, n in down.items() if n]
    return "".join(f", {part}" for part in parts)


def plural(tier: str, n: int) -> str:
    """A noun in the number that fits."""
    return tier if n == 1 else {"leaf": "leaves", "switch": "switches"}.get(tier, f"{tier}s")


def _counted(n: int, name: str) -> str:
    return f"{n:,} {plural(name, n)}"


def _overall(fim: float, floor: float, what: str = "FIM", means: str = "") -> str:
    if np.isnan(fim):
        return "No flows between switches: FIM is not defined"
    best = "" if np.isnan(floor) else f" (no routing of whole flows goes below {floor:.2f} %)"
    return f"{what} between switches [bold]{fim:.2f} %[/]{means and f', {means}'}{best}"


def _print_totals(console: Console, routed: RoutedList, seeds: SeedReports) -> None:
    report, fim = routed.report, distribution(seeds.fim_percent)
    means = mean_text(seeds.fim_percent, "{:.2f} %".format)
    print_line(console, _overall(fim.mean, routed.floor_percent, means=means))
    # Where links have failed another division of the packets may be faster than an even one.
    even = "sprayed evenly" if routed.fabric.failed.size else "ideal (sprayed)"
    makespan_s, slowdown = (distribution(x).mean for x in (seeds.makespan_s, seeds.slowdown))
    slower = "-" if np.isnan(slowdown) else f"{slowdown:.3f}x"
    if not np.isnan(makespan_s):
        means = mean_text(seeds.slowdown, "{:.3f}x".format)
        print_line(
            console,
            f"Makespan [bold]{format_time(makespan_s)}[/], {even} "
            f"{format_time(routed.ideal_makespan_s)}: slowdown [bold]{slower}[/]"
            f"{means and f', {means}'}",
        )
    if report.gap is not None:
        alike = are_alike(routed.fabric, routed.flows.flows)
        print_line(console, proven(report.gap, alike=alike))


def layer_table(console: Console, layers: Sequence[LayerReport], *, n_routings: int = 1) -> Table:
    """Imbalance of every layer."""
    columns = {
        "layer": [layer.name for layer in layers],
        "links": [f"{layer.n_links:,}" for layer in layers],
        "flows": [f"{layer.n_flows:,}" for layer in layers],
        "FIM %": [figure_text(layer.fim_percent) for layer in layers],
        "floor %": [figure_text(layer.fim_floor_percent) for layer in layers],
        "max flows": [f"{layer.max_flows:,.6g}" for layer in layers],
        "max/mean": [figure_text(layer.max_over_mean) for layer in layers],
        "idle links": [f"{layer.n_idle:,}" for layer in layers],
    }
    means = f", means of {n_routings:,} routings" if n_routings > 1 else ""
    return plain_table(console, columns, f"Layers{means}", left=("layer",))


def figure_text(value: float) -> str:
    """Two digits, or - for what is not defined."""
    return "-" if np.isnan(value) else f"{value:.2f}"


def plain_table(
    console: Console,
    columns: dict[str, list[str]],
    title: str,
    *,
    left: Sequence[str],
    dispensable: Sequence[str] = _DISPENSABLE,
) -> Table:
    """A table without lines; a narrow terminal loses what it can do without."""
    for name in dispensable:
        widths = [max(map(len, [header, *cells])) + 2 for header, cells in columns.items()]
        if sum(widths) > console.width:
            columns.pop(name, None)
    table = Table(title=title, box=None)
    table.title_justify = "left"
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(escape, cells))
    return table


def _print_seeds(console: Console, seeds: SeedReports, floor: float) -> None:
    rows: list[tuple[str, Array]] = [
        (f"FIM {layer.name} %", seeds.layer_fim_percent[i])
        for i, layer in enumerate(seeds.first.layers)
        if not layer.is_host
    ]
    rows += [
        ("FIM between switches %", seeds.fim_percent),
        timed("makespan", seeds.makespan_s),
        ("slowdown", seeds.slowdown),
    ]
    console.print(spread_table(console, rows, "Over the seeds"))
    console.print()
    if np.isnan(seeds.fim_percent).all():
        print_line(console, _overall(np.nan, np.nan))
        return
    print_line(console, _overall(float(seeds.fim_percent.mean()), floor, "Mean FIM"))
    print_histogram(console, seeds.fim_percent, "Seeds by FIM between switches, %")


def spread_table(console: Console, rows: list[tuple[str, Array]], title: str) -> Table:
    """Statistics over seeds of figures with a name; those that are all nan are left out."""
    found = [(name, distribution(samples)) for name, samples in rows]
    found = [(name, one) for name, one in found if not np.isnan(one.mean)]
    columns = {"figure": [name for name, _ in found]}
    for key in ("mean", "sd", "p5", "p50", "p95"):
        columns[key] = [f"{getattr(one, key):,.3f}" for _, one in found]
    return plain_table(console, columns, title, left=("figure",), dispensable=())


def timed(name: str, seconds: Array) -> tuple[str, Array]:
    """Times in a unit that fits their mean, which the name then ends with."""
    unit_s, unit = time_unit(float(seconds.mean()))
    return f"{name} {unit}", seconds / unit_s


def print_histogram(console: Console, samples: Array, title: str) -> None:
    """Seeds by a figure."""
    console.print()
    if np.ptp(samples) == 0:
        print_line(console, f"{title}: all {len(samples):,} at {samples[0]:.2f}")
        return
    found = distribution(samples, n_bins=_N_BINS)
    print_line(console, title)
    most = int(found.counts.max())
    cells = min(_BAR_CELLS, max(console.width - 30, 5))
    for i, n in enumerate(found.counts.tolist()):
        bar = "#" * max(round(cells * n / most), int(n > 0))
        low, high = found.edges[i], found.edges[i + 1]
        print_line(console, f"{low:8.2f} - {high:8.2f}  {n:>6,}  {bar}".rstrip())


def print_groups(console: Console, rows: list[dict[str, Any]]) -> None:
    """The worst groups; all of them are in the JSON."""
    ranked = [row for row in rows if row["n_flows"]]
    ranked.sort(key=lambda row: -(row["fim_percent"] or 0.0))
    shown = ranked[:_MOST_GROUPS]
    if not shown:
        return
    columns = {
        "layer": [row["layer"] for row in shown],
        "switch": [row["group"] for row in shown],
        "links": [f"{row['n_links']:,}" for row in shown],
        "flows": [f"{row['n_flows']:,.6g}" for row in shown],
        "FIM %": [figure_text(row["fim_percent"]) for row in shown],
        "max flows": [f"{row['max_flows']:,.6g}" for row in shown],
    }
    worst = f", the worst {len(shown)} of {len(ranked)}" if len(shown) < len(ranked) else ""
    console.print()
    title = f"ECMP groups{worst}"
    console.print(plain_table(console, columns, title, left=("layer", "switch")))


def _print_busiest(console: Console, rows: list[dict[str, Any]], title: str) -> None:
    if not rows:
        return
    console.print()
    print_line(console, title)
    for row in rows:
        load = ""
        if "load_GBps" in row:
            load = f", {row['load_GBps']:.2f} of {row['capacity_GBps']:.2f} GB/s"
        names = ", ".join(row["flows"])
        more = "" if len(row["flows"]) >= row["n_flows"] else ", ..."
        named = f": {names}{more}" if names else ""
        flows = f"{row['n_flows']:,.6g} {plural('flow', row['n_flows'])}"
        print_line(console, escape(f"  {row['link']}  {flows}{load}{named}"))
        if "collectives" in row:
            parts = ", ".join(f"{name or '(none)'} {n:,}" for name, n in row["collectives"].items())
            print_line(console, escape(f"    by collective: {parts}"))


def print_hops(console: Console, routed: RoutedList, flow: int) -> None:
    """One flow, link by link."""
    report, flows = routed.report, routed.flows
    console.print()
    rate = ""
    if report.rate_Bps.size:
        finish = format_time(float(report.finish_s[flow]))
        rate = f", {format_bandwidth(float(report.rate_Bps[flow]))} at first, ends at {finish}"
    hosts = f"host {flows.flows.src[flow]} to host {flows.flows.dst[flow]}"
    print_line(console, escape(f"Flow {flows.ids[flow]}, {hosts}{rate}"))
    if report.links is None:
        print_line(console, "  sprayed over all its paths")
    for row in hop_rows(routed, flow):
        n = row["n_flows"]
        print_line(console, escape(f"  {row['link']}  {n:,.6g} {plural('flow', n)}"))


def print_line(console: Console, text: str) -> None:
    """One paragraph: wrapped on a terminal, one line anywhere else."""
    console.print(visible(text), soft_wrap=not console.is_terminal)
