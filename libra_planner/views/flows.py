"""Routings of flow lists as JSON-ready values, text and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from libra_planner.check.measured import MeasuredReport
from libra_planner.check.report import (
    LayerReport,
    RoutedList,
    SeedReports,
    reports_by_seed,
)
from libra_planner.fabric.clos import Clos, cable_failures
from libra_planner.plain_text import spreadsheet_text
from libra_planner.routing.fairness import is_fairer
from libra_planner.routing.loads import are_alike, distribution
from libra_planner.units import format_bandwidth, format_time, gigabytes_per_s
from libra_planner.views import links, spread
from libra_planner.views.cells import (
    Block,
    Histogram,
    attributes,
    csv_of,
    figure_cells,
    finite,
    number,
    table,
)


def flows_payload(
    routed: RoutedList, *, n_busiest: int, groups: bool, traced: int | None
) -> dict[str, Any]:
    """What ``flows --json`` prints."""
    report, policy = routed.report, routed.report.policy
    seeds, cut_off = routed.seeds or reports_by_seed([report]), routed.disconnected_seeds
    payload = {
        "policy": policy.name,
        "hash": policy.hash if policy.kind.reads_headers else None,
        **attributes(report, "seed", "n_flows"),
        "n_seeds": len(seeds.seeds),
        "n_routings": routed.n_routings,
        **_over_seeds(routed, seeds),
        **_collectives(routed, seeds),
        "entropy": links.entropy_payload(links.entropy_of(routed)),
        **({"disconnected_seeds": list(cut_off)} if cut_off else {}),
        **(attributes(report, "gap") if report.gap is not None else {}),
        "n_failed_links": int(np.unique(routed.fabric.failed).size),
        "busiest_links": links.busiest_links(routed, n_busiest),
        "worst_collectives": collective_rows(routed)[:n_busiest],
        **({"groups": links.group_rows(routed)} if groups else {}),
    }
    if traced is not None:
        hops = links.hop_rows(routed, traced)
        payload["trace"] = {"flow_id": routed.flows.ids[traced], "hops": hops}
    return payload


def _collectives(routed: RoutedList, seeds: SeedReports) -> dict[str, Any]:
    """Rates of the collectives, the worst first, and their times (C11); null when not asked for."""
    worst_GBps = [gigabytes_per_s(x) for x in seeds.worst_rate_Bps.tolist()]
    rates, times_s = seeds.rate_Bps.tolist(), seeds.time_s.tolist()
    is_known, names = routed.report.collectives is not None, routed.collective_names[: len(rates)]
    return {
        **spread.figures("worst_collective_rate_GBps", worst_GBps, statistics=routed.statistics),
        "sprayed_worst_collective_rate_GBps": finite(gigabytes_per_s(routed.worst_sprayed_Bps)),
        "two_level_GBps": [finite(gigabytes_per_s(x)) for x in rates] if is_known else None,
        "collective_times_s": dict(zip(names, map(finite, times_s), strict=True))
        if is_known
        else None,
    }


def collective_rows(routed: RoutedList) -> list[dict[str, Any]]:
    """Collectives of the first seed, the slowest first."""
    found, flows = routed.report.collectives, routed.flows.flows
    if found is None:
        return []
    n_flows = np.unique(flows.collective, return_counts=True)[1]
    names = routed.collective_names
    return [
        {
            "collective": names[i],
            "n_flows": int(n_flows[i]),
            "rate_GBps": finite(gigabytes_per_s(found.rate_Bps[i])),
            "sprayed_GBps": finite(gigabytes_per_s(found.sprayed_Bps[i])),
            "time_s": finite(found.time_s[i]),
        }
        for i in np.argsort(found.rate_Bps, kind="stable").tolist()
    ]


def compared_payload(found: Sequence[RoutedList]) -> dict[str, Any]:
    """What ``flows --compare --json`` prints: a row for each policy, and the fairest of them."""
    return {
        "n_flows": found[0].report.n_flows,
        "fairest": [routed.report.policy.name for routed in _fairest(found)],
        "policies": [_compared(routed) for routed in found],
    }


def _compared(routed: RoutedList) -> dict[str, Any]:
    """A policy's figures, means over its routings."""
    seeds = routed.seeds or reports_by_seed([routed.report])
    return {
        "policy": routed.report.policy.name,
        "n_routings": routed.n_routings,
        **spread.figures("fim_percent", seeds.fim_percent, statistics=False),
        **_collectives(replace(routed, statistics=False), seeds),
        **spread.figures("makespan_s", seeds.makespan_s, statistics=False),
        **spread.figures("slowdown", seeds.slowdown, statistics=False),
    }


def _fairest(found: Sequence[RoutedList]) -> list[RoutedList]:
    """Policies that no other beats in the sorted rates of collectives, means over the routings."""
    every = [(one.seeds or reports_by_seed([one.report])).rate_Bps for one in found]
    pairs = zip(found, every, strict=True)
    return [one for one, rates in pairs if not any(is_fairer(other, rates) for other in every)]


def compared_blocks(found: Sequence[RoutedList]) -> Iterator[Block]:
    """A table of all policies."""
    fabric, n_flows = found[0].fabric, found[0].report.n_flows
    hosts = links.counted(fabric.n_hosts, "host")
    yield f"{links.counted(n_flows, 'flow')} between {hosts}{_failed_text(fabric)}"
    rows = [
        figure_cells(
            row["policy"],
            row["n_routings"],
            *(_unknown(row[key]) for key in ("fim_percent", "worst_collective_rate_GBps")),
            _unknown((row["two_level_GBps"] + [None, None])[1]),
            "-" if row["makespan_s"] is None else format_time(row["makespan_s"]),
            "-" if row["slowdown"] is None else f"{row['slowdown']:.3f}x",
        )
        for row in map(_compared, found)
    ]
    names = ("policy", "routings", "FIM %", "worst GB/s", "next GB/s", "makespan", "slowdown")
    title = "Policies, means of their routings: the slowest collective and the next"
    yield from ("", table("", title, names, rows, left=("policy",), dispensable=("routings",)))
    fairest = ", ".join(one.report.policy.name for one in _fairest(found))
    yield f"Best by two-level max-min (the slowest collective first): [bold]{fairest}[/]"


def _unknown(figure: float | None) -> float:
    return np.nan if figure is None else figure


def measured_payload(measured: MeasuredReport, *, n_busiest: int, groups: bool) -> dict[str, Any]:
    """What ``flows --hops --json`` prints: the same keys, and what a trace cannot tell as null."""
    payload = {
        "policy": "measured",
        "n_flows": len(measured.trace.flow_ids),
        "layers": [links.layer_row(layer) for layer in measured.layers],
        **attributes(measured, "fim_percent", "fim_floor_percent"),
        **dict.fromkeys(("makespan_s", "ideal_makespan_s", "slowdown")),
        "idle_links_known": measured.counts_idle,
        "busiest_links": links.busiest_interfaces(measured, n_busiest),
    }
    return payload | ({"groups": _measured_groups(measured)} if groups else {})


def _measured_groups(measured: MeasuredReport) -> list[dict[str, Any]]:
    return [attributes(group, *vars(group)) for group in measured.groups]


def _over_seeds(routed: RoutedList, seeds: SeedReports) -> dict[str, Any]:
    """The figures of a report over seeds: means or statistics, with their spread beside.

    Floors and ideals depend on the seed only where it draws failures.
    """
    reports, statistics = routed.draws or (seeds.first,), routed.statistics
    figures = partial(spread.figures, statistics=statistics)
    whole_figures = partial(spread.whole_figures, statistics=statistics)

    def summary(samples: Sequence[float]) -> dict[str, float | None] | float | None:
        return spread.spread(samples) if statistics else finite(distribution(samples).mean)

    layers = [
        {
            **attributes(layer, "name", "n_links", "n_flows"),
            **figures("fim_percent", seeds.layer_fim_percent[i]),
            "fim_floor_percent": summary([x.layers[i].fim_floor_percent for x in reports]),
            **figures("max_over_mean", seeds.layer_max_over_mean[i]),
            **whole_figures("max_flows", seeds.layer_max_flows[i]),
            **whole_figures("idle_links", seeds.layer_n_idle[i]),
        }
        for i, layer in enumerate(seeds.first.layers)
    ]
    histogram = {"fim_histogram": spread.histogram_payload(seeds.fim_percent)} if statistics else {}
    return {
        "layers": layers,
        **figures("fim_percent", seeds.fim_percent),
        "fim_floor_percent": summary([x.fim_floor_percent for x in reports]),
        **figures("makespan_s", seeds.makespan_s),
        "ideal_makespan_s": summary([x.ideal_makespan_s for x in reports]),
        **figures("slowdown", seeds.slowdown),
        **histogram,
    }


def mean_layers(seeds: SeedReports) -> list[LayerReport]:
    """The layers with means over the seeds; the number of idle links is rounded."""
    return [
        replace(
            layer,
            fim_percent=distribution(seeds.layer_fim_percent[i]).mean,
            max_over_mean=distribution(seeds.layer_max_over_mean[i]).mean,
            max_flows=distribution(seeds.layer_max_flows[i]).mean,
            n_idle=spread.whole_figures("n", seeds.layer_n_idle[i], statistics=False)["n"],
        )
        for i, layer in enumerate(seeds.first.layers)
    ]


def proven(gap: float, *, alike: bool) -> str:
    """What an integer program proved of the busiest link between switches.

    >>> proven(0.0, alike=True)
    'Proven: no routing of whole flows loads the busiest link less'
    >>> proven(0.0312, alike=True)
    "Not proven: up to 3.1% of the busiest link's load might be saved"
    """
    measure = "" if alike else " (load: bytes over speed, whereas FIM counts flows)"
    if gap == 0:
        return f"Proven: no routing of whole flows loads the busiest link less{measure}"
    return f"Not proven: up to {gap:.1%} of the busiest link's load might be saved{measure}"


def flows_blocks(
    routed: RoutedList, *, n_busiest: int, groups: bool, traced: int | None
) -> Iterator[Block]:
    """Headline, layers, what it costs, busiest links; with many seeds their spread."""
    yield from (_headline(routed), "")
    seeds = (routed.n_routings > 1 and routed.seeds) or reports_by_seed([routed.report])
    if routed.statistics and routed.n_routings > 1:
        yield from _seeds(seeds, routed.floor_percent)
    else:
        yield from (links.layer_table(mean_layers(seeds), n_routings=len(seeds.seeds)), "")
        yield from _totals(routed, seeds)
    if cut := routed.disconnected_seeds:
        shown = ", ".join(map(str, cut[:10])) + ", ..." * (len(cut) > 10)
        yield f"Left out: {links.plural('seed', len(cut))} {shown}, which cut hosts off"
    found = links.entropy_of(routed)
    yield from [] if found is None else [links.entropy_text(found)]
    yield from _collective_blocks(routed, n_busiest)
    if groups:
        yield from links.groups_blocks(links.group_rows(routed))
    title = "Busiest links" + (f" of seed {routed.report.seed}" if routed.n_routings > 1 else "")
    yield from links.busiest_blocks(links.busiest_links(routed, n_busiest), title)
    if traced is not None:
        yield from links.hops_blocks(routed, traced)


def measured_blocks(measured: MeasuredReport, *, n_busiest: int, groups: bool) -> Iterator[Block]:
    """The same from a trace, which has no rates."""
    trace = measured.trace
    n_flows, n_hops = len(trace.flow_ids), len(trace.flow)
    yield f"[bold]Measured[/]: {links.counted(n_flows, 'flow')} over {links.counted(n_hops, 'hop')}"
    yield from ("", links.layer_table(measured.layers), "")
    yield _overall(measured.fim_percent, measured.fim_floor_percent)
    if not measured.counts_idle:
        yield (
            "Note: a trace does not show idle links, so they are not counted; list all "
            "interfaces between switches with --interfaces, or give the fabric"
        )
    if groups:
        yield from links.groups_blocks(_measured_groups(measured))
    busiest = links.busiest_interfaces(measured, n_busiest)
    yield from links.busiest_blocks(busiest, "Busiest interfaces")


def _headline(routed: RoutedList) -> str:
    report, fabric, policy = routed.report, routed.fabric, routed.report.policy
    tiers = ", ".join(links.counted(n, tier) for tier, n in fabric.n_switches.items())
    hashed = f" ({policy.hash} hash)" if policy.kind.reads_headers else ""
    seeds, cut = f", seed {report.seed}", routed.disconnected_seeds
    if not routed.is_drawn:
        seeds = spread.NOTHING_DRAWN
    elif routed.seeds is not None:
        found = routed.seeds.seeds.tolist()
        listed = f"{len(found) + len(cut):,} seeds from {min([*found, *cut])}"
        cuts = f"{len(cut):,} {'cuts' if len(cut) == 1 else 'cut'} hosts off"
        seeds = f", {len(found):,} of {listed} ({cuts})" if cut else f", {listed}"
    return (
        f"[bold]{policy.name}[/]{hashed}{seeds}: {links.counted(report.n_flows, 'flow')} between "
        f"{links.counted(fabric.n_hosts, 'host')}, {tiers}{_failed_text(fabric)}"
    )


def _failed_text(fabric: Clos) -> str:
    """Cables that are down, if there are any."""
    hosts = np.arange(fabric.n_hosts)
    kinds = {
        "cables between switches": cable_failures(fabric),
        "cables to hosts": np.stack([hosts, fabric.reverse(hosts)], axis=1),
    }
    down = {name: (~fabric.alive[cables]).any(axis=1).sum() for name, cables in kinds.items()}
    return "".join(
        f", {n:,} of {len(kinds[name]):,} {name} failed" for name, n in down.items() if n
    )


def _overall(fim: float, floor: float, what: str = "FIM", means: str = "") -> str:
    if np.isnan(fim):
        return "No flows between switches: FIM is not defined"
    best = "" if np.isnan(floor) else f" (no routing of whole flows goes below {floor:.2f} %)"
    return f"{what} between switches [bold]{fim:.2f} %[/]{means and f', {means}'}{best}"


def _totals(routed: RoutedList, seeds: SeedReports) -> Iterator[Block]:
    report, fim = routed.report, distribution(seeds.fim_percent)
    means = spread.mean_text(seeds.fim_percent, "{:.2f} %".format)
    yield _overall(fim.mean, routed.floor_percent, means=means)
    # Where links have failed another division of the packets may be faster than an even one.
    even = "sprayed evenly" if routed.fabric.failed.size else "ideal (sprayed)"
    makespan_s, slowdown = (distribution(x).mean for x in (seeds.makespan_s, seeds.slowdown))
    slower = "-" if np.isnan(slowdown) else f"{slowdown:.3f}x"
    if not np.isnan(makespan_s):
        means = spread.mean_text(seeds.slowdown, "{:.3f}x".format)
        yield (
            f"Makespan [bold]{format_time(makespan_s)}[/], {even} "
            f"{format_time(routed.ideal_makespan_s)}: slowdown [bold]{slower}[/]"
            f"{means and f', {means}'}"
        )
    yield from _worst(routed, seeds)
    if report.gap is not None:
        yield proven(report.gap, alike=are_alike(routed.fabric, routed.flows.flows))


def _worst(routed: RoutedList, seeds: SeedReports) -> Iterator[str]:
    """The rate of the slowest collective, beside that with every packet sprayed."""
    worst_Bps = distribution(seeds.worst_rate_Bps).mean
    if np.isnan(worst_Bps):
        return
    means = spread.mean_text(seeds.worst_rate_Bps, format_bandwidth)
    n, even = len(seeds.rate_Bps), "sprayed evenly" if routed.fabric.failed.size else "sprayed"
    what = f"Slowest of {n:,} collectives" if n > 1 else "Slowest flow"
    sprayed = format_bandwidth(routed.worst_sprayed_Bps)
    yield f"{what} [bold]{format_bandwidth(worst_Bps)}[/]{means and f', {means}'}; {even} {sprayed}"


def _collective_blocks(routed: RoutedList, n_most: int) -> Iterator[Block]:
    """The slowest collectives, where there are several."""
    rows = [row for row in collective_rows(routed) if row["rate_GBps"] is not None]
    if len(rows) < 2 or not n_most:
        return
    shown = [
        (
            row["collective"],
            number(row["n_flows"], 0),
            *(number(row[key], 2) for key in ("rate_GBps", "sprayed_GBps")),
            format_time(row["time_s"]),
        )
        for row in rows[:n_most]
    ]
    seed = f" of seed {routed.report.seed}" if routed.n_routings > 1 else ""
    title = f"Slowest collectives{seed}: of the slowest flow"
    names = ("collective", "flows", "GB/s", "sprayed GB/s", "ends")
    yield from ("", table("", title, names, shown, left=("collective",)))


def _seeds(seeds: SeedReports, floor: float) -> Iterator[Block]:
    fims = zip(seeds.first.layers, seeds.layer_fim_percent, strict=True)
    rows = [
        *((f"FIM {one.name} %", fim) for one, fim in fims if not one.is_host),
        ("FIM between switches %", seeds.fim_percent),
        spread.timed("makespan", seeds.makespan_s),
        ("slowdown", seeds.slowdown),
        ("slowest collective GB/s", seeds.worst_rate_Bps * gigabytes_per_s(1.0)),
    ]
    yield from (spread.spread_table(rows, "Over the seeds"), "")
    if np.isnan(seeds.fim_percent).all():
        yield _overall(np.nan, np.nan)
        return
    yield _overall(float(seeds.fim_percent.mean()), floor, "Mean FIM")
    yield Histogram("Seeds by FIM between switches, %", seeds.fim_percent)


def rates_csv(routed: RoutedList) -> str:
    """Text of ``--rates``: ``flow_id,rate_GBps,finish_s`` in the order of the input."""
    ids, report = map(spreadsheet_text, routed.flows.ids), routed.report
    rates = (repr(gigabytes_per_s(rate)) for rate in report.rate_Bps.tolist())
    rows = zip(ids, rates, map(repr, report.finish_s.tolist()), strict=True)
    return csv_of([("flow_id", "rate_GBps", "finish_s"), *rows])
