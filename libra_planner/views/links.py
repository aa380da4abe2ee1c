"""Links: their parts, layers, groups, the busiest of them, and the way of single flows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import numpy as np

from libra_planner.check.measured import MeasuredReport
from libra_planner.check.report import LayerReport, RoutedList
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.cluster import RAIL_ONLY
from libra_planner.fabric.parts import DesignParts, DimensionParts
from libra_planner.fabric.realization import Direct, RealizedDesign, RealizedDimension, sharing
from libra_planner.fabric.topology import RAIL, TOP_OF_RACK
from libra_planner.plan.steps.notes import Kind, Note, of_kind
from libra_planner.problem import Problem
from libra_planner.routing.entropy import HeaderEntropy, header_entropy
from libra_planner.routing.loads import fim_percent
from libra_planner.units import format_bandwidth, format_line_rate, format_time, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import Block, Table, attributes, escape
from libra_planner.views.spread import whole

MOST_NAMED = 10
"""Flows of a link that are named."""
_MOST_GROUPS = 20
_DISPENSABLE = ("idle links", "floor %", "max/mean")
"""Columns that a narrow terminal loses, in this order."""


def layer_row(layer: LayerReport) -> dict[str, Any]:
    """One layer of a report."""
    return {
        **attributes(layer, "name", "n_links", "n_flows"),
        **attributes(layer, "fim_percent", "fim_floor_percent", "max_over_mean"),
        "max_flows": whole(layer.max_flows),
        "idle_links": layer.n_idle,
    }


def layer_table(
    layers: Sequence[LayerReport],
    *,
    n_routings: int = 1,
    flows: Callable[[float], str] = "{:,.6g}".format,
) -> Table:
    """Imbalance of every layer; ``flows`` words the most flows of a link."""
    means = f", means of {n_routings:,} routings" if n_routings > 1 else ""
    names = ("layer", "links", "flows", "FIM %", "floor %", "max flows", "max/mean", "idle links")
    rows = [
        cells.figure_cells(name, n_links, n_flows, fim, floor, flows(most), ratio, n_idle)
        for name, n_links, n_flows, fim, floor, ratio, most, n_idle, _ in map(astuple, layers)
    ]
    return cells.table("", f"Layers{means}", names, rows, left=("layer",), dispensable=_DISPENSABLE)


def group_rows(routed: RoutedList) -> list[dict[str, Any]]:
    """FIM of each ECMP group: the links of a switch to the tier above, in each direction."""
    rows = []
    for layer in [layer for layer in routed.fabric.layers if not layer.is_host]:
        shape = (layer.n_links // layer.n_per_group, -1)
        tier = "leaf" if layer.name in ("leaf_up", "spine_down") else "spine"
        counts = routed.report.counts[layer.links].reshape(shape)
        capacity = routed.fabric.capacity_Bps[layer.links].reshape(shape)
        fims = fim_percent(counts, capacity).tolist()
        rows += [
            {
                "layer": layer.name,
                "group": f"{tier} {i}",
                "n_links": int((capacity[i] > 0).sum()),
                "n_flows": whole(round(float(counts[i].sum()), 9)),
                "fim_percent": cells.finite(fim),
                "max_flows": whole(counts[i].max()),
            }
            for i, fim in enumerate(fims)
        ]
    return rows


def groups_blocks(rows: list[dict[str, Any]]) -> Iterator[Block]:
    """The worst groups; all of them are in the JSON."""
    ranked = [row for row in rows if row["n_flows"]]
    ranked.sort(key=lambda row: -(row["fim_percent"] or 0.0))
    n_shown = min(len(ranked), _MOST_GROUPS)
    worst = f", the worst {n_shown} of {len(ranked)}" if n_shown < len(ranked) else ""
    headings = ("layer", "switch", "links", "flows", "FIM %", "max flows")
    shown = [
        cells.figure_cells(layer, switch, n_links, f"{n_flows:,.6g}", fim, f"{most:,.6g}")
        for layer, switch, n_links, n_flows, fim, most in map(dict.values, ranked[:n_shown])
    ]
    if shown:
        others = {"left": ("layer", "switch"), "dispensable": _DISPENSABLE}
        yield from ("", cells.table("", f"ECMP groups{worst}", headings, shown, **others))


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
        "n_flows": whole(report.counts[link]),
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


def entropy_of(routed: RoutedList) -> HeaderEntropy | None:
    """What ECMP had to hash, with the first seed."""
    report, flows = routed.report, routed.flows.flows
    return header_entropy(routed.fabric, flows, report.policy, seed=report.seed)


def entropy_payload(found: HeaderEntropy | None) -> dict[str, Any] | None:
    """Distinct headers, and the imbalance that they and the flows have on average."""
    names = ("n_flows", "n_headers", "n_address_pairs", "flows_per_uplink")
    fims = ("expected_fim_percent", "effective_fim_percent")
    return None if found is None else attributes(found, *names, *fims)


def entropy_text(found: HeaderEntropy) -> str:
    """The same in a sentence."""
    flows, pairs = counted(found.n_flows, "flow"), counted(found.n_address_pairs, "address pair")
    fim = f"hashed evenly, leaf_up has FIM {found.effective_fim_percent:.2f} % on average"
    if found.n_headers == found.n_flows:
        return (
            f"Entropy: {flows} between leaves ({pairs}), {found.flows_per_uplink:.3g} per uplink, "
            f"have a header each: {fim}"
        )
    return (
        f"Entropy: {flows} between leaves have {counted(found.n_headers, 'distinct header')} "
        f"({pairs}), and flows of a leaf with one header share their path: {fim}, "
        f"{found.expected_fim_percent:.2f} % if every flow had its own"
    )


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


def busiest_blocks(rows: list[dict[str, Any]], title: str) -> Iterator[Block]:
    """The busiest links or interfaces under a title, if there are any."""
    yield from ("", title) if rows else ()
    for row in rows:
        load = ", {load_GBps:.2f} of {capacity_GBps:.2f} GB/s" if "load_GBps" in row else ""
        more = "" if len(row["flows"]) >= row["n_flows"] else ", ..."
        named = f": {', '.join(row['flows'])}{more}" if row["flows"] else ""
        flows = f"{row['n_flows']:,.6g} {plural('flow', row['n_flows'])}"
        yield escape(f"  {row['link']}  {flows}{load.format_map(row)}{named}")
        if "collectives" in row:
            parts = ", ".join(f"{name or '(none)'} {n:,}" for name, n in row["collectives"].items())
            yield escape(f"    by collective: {parts}")


def hop_rows(routed: RoutedList, flow: int) -> list[dict[str, Any]]:
    """The links of one flow in order, and how many flows are on each; none when sprayed."""
    report, fabric = routed.report, routed.fabric
    if report.links is None:
        return []
    return [
        {"layer": layer.name, "link": fabric.link_name(link), "n_flows": whole(report.counts[link])}
        for layer, link in zip(fabric.layers, report.links[flow].tolist(), strict=True)
        if link >= 0
    ]


def hops_blocks(routed: RoutedList, flow: int) -> Iterator[Block]:
    """One flow, link by link."""
    report, flows = routed.report, routed.flows
    rate = ""
    if report.rate_Bps.size:
        finish = format_time(float(report.finish_s[flow]))
        rate = f", {format_bandwidth(float(report.rate_Bps[flow]))} at first, ends at {finish}"
    hosts = f"host {flows.flows.src[flow]} to host {flows.flows.dst[flow]}"
    yield from ("", escape(f"Flow {flows.ids[flow]}, {hosts}{rate}"))
    yield from ["  sprayed over all its paths"] if report.links is None else []
    for row in hop_rows(routed, flow):
        n = row["n_flows"]
        yield escape(f"  {row['link']}  {n:,.6g} {plural('flow', n)}")


def plural(tier: str, n: float) -> str:
    """A noun in the number that fits."""
    return tier if n == 1 else {"leaf": "leaves", "switch": "switches"}.get(tier, f"{tier}s")


def counted(n: int, name: str) -> str:
    """How many there are of something.

    >>> counted(1, "leaf"), counted(1200, "leaf")
    ('1 leaf', '1,200 leaves')
    """
    return f"{n:,} {plural(name, n)}"


_ROUNDING = 1e-9
"""Relative difference of bandwidths that is no more than rounding."""


def parts_payload(built: DimensionParts) -> dict[str, Any]:
    """Switches, ports, cables and optics of a dimension."""
    return {
        **attributes(built, "n_nics", "n_switches", "n_cables", "n_optics"),
        "switches": [
            attributes(part, "tier", "n_switches", "n_ports_used", "n_ports_free")
            for part in built.switches
        ],
        "cables": [
            {
                **attributes(part, "joins", "n_cables"),
                "speed_GBps": gigabytes_per_s(part.speed_Bps),
                "n_optics": part.n_optics,
            }
            for part in built.cables
        ],
    }


def parts_blocks(parts: DesignParts, included: Sequence[int] = ()) -> Iterator[Block]:
    """Every kind of switch and cable, and how many parts there are in all.

    Those of ``included`` dimensions are in the price of the servers: they are marked.
    """
    names = ("dim", "parts", "number", "ports used", "ports free", "GB/s each", "optics")
    rows = [
        row
        for dim, dimension in enumerate(parts.dimensions)
        for row in _part_rows(dimension, IN_THE_SERVER * (dim in included))
    ]
    title, left = "Switches, cables and optics", ("dim", "parts")
    yield cells.table("", title, names, rows, left=left, dispensable=("ports free",))
    total = {name: parts.total(f"n_{name}") for name in ("switches", "cables", "optics")}
    inside, n_cables = parts.n_scale_up_switches, parts.n_scale_up_cables
    network = (
        counted(total["switches"] - inside, "switch"),
        counted(total["cables"] - n_cables, "cable"),
        f"{total['optics']:,} optics",
    )
    yield f"In all, training network: {', '.join(network)}"
    if inside:
        scale_up = counted(inside, "switch"), counted(n_cables, "cable")
        bought = ", in the price of the servers: not to be bought" * bool(included)
        yield f"Scale-up, between NPUs of a node or rack: {', '.join(scale_up)}{bought}"
    if total["switches"] > inside:
        yield "A bill also counts switches of the frontend and of storage"


IN_THE_SERVER = ", in the server"
"""Behind parts that no one buys beside it."""


def _part_rows(dimension: DimensionParts, where: str = "") -> Iterator[tuple[cells.Value, ...]]:
    label = dimension.label
    for switch in dimension.switches:
        numbers = (switch.n_switches, switch.n_ports_used, switch.n_ports_free)
        name = f"{plural(switch.tier, switch.n_switches)}{where}"
        yield cells.figure_cells(label, name, *numbers, "", "")
    for cable in dimension.cables:
        speed = cells.number(gigabytes_per_s(cable.speed_Bps), 2)
        name, n_cables = f"cables {cable.joins}{where}", cable.n_cables
        yield cells.figure_cells(label, name, n_cables, "", "", speed, cable.n_optics)
    if not dimension.switches and not dimension.cables:
        yield label, "none: no bandwidth", "0", "", "", "", ""


def _scale_up_notes(problem: Problem, design: RealizedDesign) -> Iterator[str]:
    domain, topology = problem.scale_up, problem.topology
    own = domain.dims(topology) if domain else ()
    if domain is not None:
        labels, n = ", ".join(topology.labels[dim] for dim in own), domain.n_domains(topology)
        yield f"{labels}: {n:,} x {domain.name} at full bandwidth, without leaves, optics and ECMP"
    for one in design.dimensions[len(own) :]:
        if one.settings is not None and one.settings.one_switch and one.fabric is not None:
            yield (
                f"{one.label}: tier {one.tier} has no NIC price, so every group has one scale-up "
                f"switch at full bandwidth, without leaves, optics and ECMP"
            )


def link_notes(problem: Problem, design: RealizedDesign) -> Iterator[str]:
    """Scale-up switches (C14), and networks in which groups load one another."""
    yield from of_kind(Kind.BASIS, _scale_up_notes(problem, design))
    built = design.dimensions
    has_switches = any(problem.links.switches) and not any(problem.links.networks)
    if problem.realization is not None and has_switches:
        yield (
            "no switch of this fabric has a NIC price: what fabric.realization says of switches "
            "applies to none, unless it stands under a tier's name"
        )
    stacks = (_stack_note(design, tiers) for tiers in design.topology.stacks)
    yield from of_kind(Kind.BASIS, stacks)
    for one in design.networks:
        if one.is_network and one.settings and one.settings.port_speed_Bps is None:
            speed = format_bandwidth(one.nic_Bps)
            yield (
                f"the plan gives no port_speed for {one.label}, so its ports run at exactly "
                f"{speed}; a report buys the slowest ports that are sold and suffice"
            )
        is_stacked = one.label in {design.topology.labels[x.start] for x in design.topology.stacks}
        if (one.oversubscription or 0) > 1 and isinstance(one.fabric, Clos) and not is_stacked:
            hosts, uplinks = one.fabric.hosts_per_leaf, one.fabric.n_uplinks
            words = (
                f"{one.label}: leaves are oversubscribed {one.oversubscription:.4g}:1 as built: a "
                f"full leaf has {hosts:,} host ports and {uplinks:,} uplink{'s' * (uplinks != 1)}"
            )
            yield Note(words, Kind.DECISION)
    for dim, one in enumerate(built):
        found = sharing(design.topology, dim, one)
        if found is not None:
            wiring = one.settings.wiring if one.settings is not None else ""
            links = "uplinks" if found.where == "leaf" else "links to the cores"
            words = (
                f"{one.label}: with wiring {wiring} groups load one another: a {found.where} holds "
                f"NPUs of {found.n_sharing:,} of the {found.n_groups:,} groups of "
                f"{design.topology.dimensions[dim]}, which share its {links}. wiring: rail gives "
                f"every group a network of its own; with the tiers of this one in brackets, such "
                f"as {_brackets(design, dim)}, the plan's model counts the load, too"
            )
            yield Note(words, Kind.DECISION)


def _brackets(design: RealizedDesign, dim: int) -> str:
    """A stack for a dimension that is built as a network of several tiers: as built, if it is even.

    Sizes count positions of a leaf, leaves of a rail in a pod, and pods.
    """
    built, size = design.dimensions[dim], design.topology.sizes[dim]
    clos, settings = built.clos, built.settings
    n_inner = math.prod(design.topology.sizes[:dim])
    is_rack = settings is not None and settings.wiring == TOP_OF_RACK
    on_leaf = clos.hosts_per_leaf // (built.n_ports * (n_inner if is_rack else 1))
    tiers = [on_leaf, clos.n_leaves // (1 if is_rack else n_inner)] if clos.n_cores else [on_leaf]
    inside = math.prod(tiers)
    if min(tiers) < 2 or size % inside or size == inside:
        return "[SW(32)_SW(8)]"
    return "[" + "_".join(f"SW({n})" for n in (*tiers, size // inside)) + "]"


def _stack_note(design: RealizedDesign, tiers: range) -> str:
    """What the network of a stack is built of, and the tapers that whole links make (C13)."""
    first, *_ = own = [design.dimensions[dim] for dim in tiers]
    names = f"{own[0].label} to {own[-1].label}"
    if not isinstance(first.fabric, Clos):
        return f"{names}: one network behind one port, without bandwidth"
    clos, settings = first.fabric, first.settings
    switches = ", ".join(counted(n, tier) for tier, n in clos.n_switches.items())
    apart = f" in {clos.n_planes:,} networks that share nothing" * (clos.n_planes > 1)
    tapers = [one.oversubscription for one in own]
    asked = [a.asked_Bps / b.asked_Bps if b.asked_Bps else None for a, b in pairwise(own)]
    shown = " and ".join(_taper(a, b) for a, b in zip(tapers, asked, strict=False) if a)
    wiring = settings.wiring if settings is not None else ""
    wiring = RAIL_ONLY if wiring == RAIL else wiring  # Two names of one wiring: the plainer one.
    built = f", {shown} from the leaf out as built" if shown else ""
    deep = clos.n_cores and clos.n_pods > design.topology.sizes[tiers.stop - 1]
    rails = "; spines serve one rail of a pod each, rails meet at the cores" if deep else ""
    return (
        f"{names} are one network behind one port, wiring {wiring}: {switches}{apart}{built}{rails}"
    )


def _taper(built: float, asked: float | None) -> str:
    """A taper of whole links, and the one that was asked for where it is another."""
    found = f"{built:.4g}:1"
    same = asked is None or abs(built / asked - 1) <= _ROUNDING
    return found if same else f"{found} ({asked:.4g}:1 asked for)"


def built_notes(design: RealizedDesign) -> Iterator[str]:
    """How the links differ from the design, and where there is nothing to choose."""
    built = design.dimensions
    direct = [one.label for one in built if isinstance(one.fabric, Direct)]
    if direct:
        words = (
            f"{', '.join(direct)}: direct links offer no choice of path, so that FIM is not "
            f"defined; a group in only a part of the dimension has only its own links"
        )
        yield Note(words, Kind.BASIS)
    for one in built:
        if one.is_network and isinstance(one.fabric, Clos) and one.fabric.n_spines == 0:
            words = f"{one.label}: one switch per network offers no choice of path: no FIM"
            yield Note(words, Kind.BASIS)
            yield from _ignored(one)
    yield from whole_link_notes(design)


def planes_text(nic_Bps: float, n_planes: int) -> str:
    """What several planes ask of a NIC, which no catalogue says; ``nic_Bps`` over all planes."""
    port = format_line_rate(nic_Bps / n_planes)
    return f"a NIC of {format_line_rate(nic_Bps)} needs {n_planes} ports of {port}; ask its seller"


def whole_link_notes(design: RealizedDesign) -> Iterator[str]:
    """Where whole links are more than the design asks for."""
    for one in design.dimensions:
        n_planes = one.settings.n_planes if one.settings is not None and not one.place else 1
        if n_planes > 1:
            words = f"{one.label}: {n_planes} planes: {planes_text(one.nic_Bps, n_planes)}"
            yield Note(words, Kind.DECISION)
        if one.bandwidth_Bps > one.asked_Bps * (1 + _ROUNDING):
            nics = "1 NIC" if one.n_nics == 1 else f"{one.n_nics} NICs"
            has = f"{nics} of {format_bandwidth(one.nic_Bps)} per NPU"
            if one.place:
                has = f"whole links up are {format_bandwidth(one.bandwidth_Bps)} per NPU"
            asked = f"{format_bandwidth(one.asked_Bps)} is asked for"
            yield f"{one.label}: {has}, {asked}; step times use all of it"


def _ignored(built: RealizedDimension) -> Iterator[str]:
    """Counts of a plan that one switch has no use for."""
    if built.settings is not None:
        counts = {"spines": built.settings.n_spines, "parallel_links": built.settings.n_parallel}
        given = " and ".join(f"{key}: {n}" for key, n in counts.items() if n is not None)
        if given:
            yield f"{built.label}: one switch holds all endpoints of a network, {given} is not used"
