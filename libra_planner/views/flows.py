"""Routings of flow lists as JSON-ready values and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from libra_planner.check.flow_lists import RoutedList
from libra_planner.check.measured import MeasuredReport
from libra_planner.check.report import FlowReport, LayerReport, SeedReports, gathered
from libra_planner.plain_text import spreadsheet_text
from libra_planner.routing.imbalance import distribution, fim_percent
from libra_planner.units import gigabytes_per_s
from libra_planner.views.spread import count, figures, number, spread, whole_figures

MOST_NAMED = 10
"""Flows of a link that are named."""


def flows_payload(
    routed: RoutedList, *, n_busiest: int, groups: bool, traced: int | None
) -> dict[str, Any]:
    """What ``flows --json`` prints."""
    report, policy = routed.report, routed.report.policy
    payload: dict[str, Any] = {
        "policy": policy.name,
        "hash": policy.hash if policy.kind.reads_headers else None,
        "seed": report.seed,
        "n_flows": report.n_flows,
    }
    seeds = routed.seeds or gathered([report])
    payload |= {"n_seeds": len(seeds.seeds), "n_routings": routed.n_routings}
    payload |= _over_seeds(seeds, routed.draws, statistics=routed.statistics)
    if routed.disconnected_seeds:
        payload["disconnected_seeds"] = list(routed.disconnected_seeds)
    if report.gap is not None:
        payload["gap"] = number(report.gap)
    payload["n_failed_links"] = int(np.unique(routed.fabric.failed).size)
    payload["busiest_links"] = busiest_links(routed, n_busiest)
    if groups:
        payload["groups"] = group_rows(routed)
    if traced is not None:
        payload["trace"] = {"flow_id": routed.flows.ids[traced], "hops": hop_rows(routed, traced)}
    return payload


def measured_payload(measured: MeasuredReport, *, n_busiest: int, groups: bool) -> dict[str, Any]:
    """What ``flows --hops --json`` prints: the same keys, and what a trace cannot tell as null."""
    payload = {
        "policy": "measured",
        "n_flows": len(measured.trace.flow_ids),
        "layers": [layer_row(layer) for layer in measured.layers],
        "fim_percent": number(measured.fim_percent),
        "fim_floor_percent": number(measured.fim_floor_percent),
        "makespan_s": None,
        "ideal_makespan_s": None,
        "slowdown": None,
        "idle_links_known": measured.counts_idle,
        "busiest_links": busiest_interfaces(measured, n_busiest),
    }
    if groups:
        payload["groups"] = [
            {
                "layer": group.layer,
                "group": group.switch,
                "n_links": group.n_links,
                "n_flows": group.n_flows,
                "fim_percent": number(group.fim_percent),
                "max_flows": group.max_flows,
            }
            for group in measured.groups
        ]
    return payload


def layer_row(layer: LayerReport) -> dict[str, Any]:
    """One layer of a report."""
    return {
        "name": layer.name,
        "n_links": layer.n_links,
        "n_flows": layer.n_flows,
        "fim_percent": number(layer.fim_percent),
        "fim_floor_percent": number(layer.fim_floor_percent),
        "max_over_mean": number(layer.max_over_mean),
        "max_flows": count(layer.max_flows),
        "idle_links": layer.n_idle,
    }


def _over_seeds(
    seeds: SeedReports, draws: Sequence[FlowReport], *, statistics: bool
) -> dict[str, Any]:
    """The figures of a report over seeds: means or statistics, with their spread beside.

    Floors and ideals depend on the seed only where it draws failures.
    """
    reports = draws or [seeds.first]
    found = {
        "layers": [
            _layer_over_seeds(seeds, reports, i, statistics=statistics)
            for i in range(len(seeds.first.layers))
        ],
        **figures("fim_percent", seeds.fim_percent, statistics=statistics),
        "fim_floor_percent": _summary([x.fim_floor_percent for x in reports], statistics),
        **figures("makespan_s", seeds.makespan_s, statistics=statistics),
        "ideal_makespan_s": _summary([x.ideal_makespan_s for x in reports], statistics),
        **figures("slowdown", seeds.slowdown, statistics=statistics),
    }
    if statistics:
        overall = distribution(seeds.fim_percent)
        counts, edges = overall.counts.tolist(), overall.edges.tolist()
        found["fim_histogram"] = {"counts": counts, "edges": edges}
    return found


def _summary(samples: Sequence[float], statistics: bool) -> dict[str, float | None] | float | None:
    return spread(samples) if statistics else number(distribution(samples).mean)


def _layer_over_seeds(
    seeds: SeedReports, reports: Sequence[FlowReport], i: int, *, statistics: bool
) -> dict[str, Any]:
    """A layer's figures over seeds, with their spread beside."""
    floors = [report.layers[i].fim_floor_percent for report in reports]
    row = layer_row(seeds.first.layers[i])
    return {
        **{name: row[name] for name in ("name", "n_links", "n_flows")},
        **figures("fim_percent", seeds.layer_fim_percent[i], statistics=statistics),
        "fim_floor_percent": _summary(floors, statistics),
        **figures("max_over_mean", seeds.layer_max_over_mean[i], statistics=statistics),
        **whole_figures("max_flows", seeds.layer_max_flows[i], statistics=statistics),
        **whole_figures("idle_links", seeds.layer_n_idle[i], statistics=statistics),
    }


def mean_layers(seeds: SeedReports) -> list[LayerReport]:
    """The layers with means over the seeds; the number of idle links is rounded."""
    return [
        replace(
            layer,
            fim_percent=distribution(seeds.layer_fim_percent[i]).mean,
            max_over_mean=distribution(seeds.layer_max_over_mean[i]).mean,
            max_flows=distribution(seeds.layer_max_flows[i]).mean,
            n_idle=whole_figures("n", seeds.layer_n_idle[i], statistics=False)["n"],
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


def busiest_links(routed: RoutedList, n: int) -> list[dict[str, Any]]:
    """The links with the most flows for their capacity, and the first flows on them."""
    report, fabric = routed.report, routed.fabric
    capacity = fabric.capacity_Bps
    load = np.divide(report.counts, capacity, out=np.zeros_like(capacity), where=capacity > 0)
    is_host = np.concatenate([np.full(layer.n_links, layer.is_host) for layer in fabric.layers])
    order = np.lexsort((is_host, -load))[:n]  # Of equal links those that routing can change.
    return [_link_row(routed, int(link)) for link in order if report.counts[link] > 0]


def _link_row(routed: RoutedList, link: int) -> dict[str, Any]:
    report, fabric, flows = routed.report, routed.fabric, routed.flows
    layer = next(x for x in fabric.layers if x.start <= link < x.start + x.n_links)
    row: dict[str, Any] = {
        "link": fabric.link_name(link),
        "layer": layer.name,
        "n_flows": count(report.counts[link]),
        "capacity_GBps": gigabytes_per_s(fabric.capacity_Bps[link]),
    }
    if report.links is None:  # Sprayed: every flow of the group is on every link of it.
        return row | {"flows": []}
    on_link = np.flatnonzero((report.links == link).any(axis=1))
    if report.rate_Bps.size:
        row["load_GBps"] = gigabytes_per_s(report.rate_Bps[on_link].sum())
    row["flows"] = [flows.ids[i] for i in on_link[:MOST_NAMED]]
    if flows.collectives:
        numbers, per = np.unique(flows.flows.collective[on_link], return_counts=True)
        pairs = zip(numbers.tolist(), per.tolist(), strict=True)
        row["collectives"] = {flows.collectives[i]: n for i, n in pairs}
    return row


def busiest_interfaces(measured: MeasuredReport, n: int) -> list[dict[str, Any]]:
    """The interfaces of a trace with the most flows, and the first flows on them."""
    trace, counts = measured.trace, measured.trace.counts
    return [
        {
            "link": trace.interface_names[i],
            "layer": trace.layers[trace.layer[i]],
            "n_flows": int(counts[i]),
            "flows": [trace.flow_ids[f] for f in trace.flow[trace.interface == i][:MOST_NAMED]],
        }
        for i in np.argsort(-counts, kind="stable")[:n].tolist()
        if counts[i]
    ]


def group_rows(routed: RoutedList) -> list[dict[str, Any]]:
    """FIM of each ECMP group: the links of a switch to the tier above, in each direction."""
    rows = []
    for layer in routed.fabric.layers:
        if layer.is_host:
            continue
        n_groups = layer.n_links // layer.n_per_group
        tier = "leaf" if layer.name in ("leaf_up", "spine_down") else "spine"
        counts = routed.report.counts[layer.links].reshape(n_groups, -1)
        capacity = routed.fabric.capacity_Bps[layer.links].reshape(n_groups, -1)
        fims = fim_percent(counts, capacity)
        rows += [
            {
                "layer": layer.name,
                "group": f"{tier} {i}",
                "n_links": int((capacity[i] > 0).sum()),
                "n_flows": count(round(float(counts[i].sum()), 9)),
                "fim_percent": number(float(fims[i])),
                "max_flows": count(counts[i].max()),
            }
            for i in range(n_groups)
        ]
    return rows


def hop_rows(routed: RoutedList, flow: int) -> list[dict[str, Any]]:
    """The links of one flow in order, and how many flows are on each; none when sprayed."""
    report, fabric = routed.report, routed.fabric
    if report.links is None:
        return []
    return [
        {"layer": layer.name, "link": fabric.link_name(link), "n_flows": count(report.counts[link])}
        for layer, link in zip(fabric.layers, report.links[flow].tolist(), strict=True)
        if link >= 0
    ]


def rates_csv(ids: Sequence[str], report: FlowReport) -> str:
    """Text of ``--rates``: ``flow_id,rate_GBps,finish_s`` in the order of the input."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["flow_id", "rate_GBps", "finish_s"])
    rates = (repr(gigabytes_per_s(rate)) for rate in report.rate_Bps.tolist())
    finishes = map(repr, report.finish_s.tolist())
    writer.writerows(zip(map(spreadsheet_text, ids), rates, finishes, strict=True))
    return text.getvalue()
