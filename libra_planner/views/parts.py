"""How the links of a design are built: their parts, and what a reader should know of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import DesignParts, DimensionParts
from libra_planner.fabric.realization import (
    Direct,
    RealizedDesign,
    RealizedDimension,
    Sharing,
    sharing,
)
from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth, gigabytes_per_s
from libra_planner.views.cells import Block, Value, attributes, count, number, table_of
from libra_planner.views.layers import plural

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


def parts_blocks(parts: DesignParts) -> Iterator[Block]:
    """Every kind of switch and cable, and how many parts there are in all."""
    names = ("dim", "parts", "number", "ports used", "ports free", "GB/s each", "optics")
    rows = [row for dimension in parts.dimensions for row in _part_rows(dimension)]
    columns = {name: lambda row, i=i: row[i] for i, name in enumerate(names)}
    title, left = "Switches, cables and optics", ("dim", "parts")
    yield table_of(title, rows, columns, left=left, dispensable=("ports free",))
    total = {name: parts.total(f"n_{name}") for name in ("switches", "cables", "optics")}
    yield "In all " + ", ".join(f"{n:,} {name}" for name, n in total.items())


def _part_rows(dimension: DimensionParts) -> Iterator[tuple[Value, ...]]:
    label = dimension.label
    for switch in dimension.switches:
        numbers = map(count, (switch.n_switches, switch.n_ports_used, switch.n_ports_free))
        yield label, plural(switch.tier, switch.n_switches), *numbers, "", ""
    for cable in dimension.cables:
        speed, optics = number(gigabytes_per_s(cable.speed_Bps), 2), count(cable.n_optics)
        yield label, f"cables {cable.joins}", count(cable.n_cables), "", "", speed, optics
    if not dimension.switches and not dimension.cables:
        yield label, "none: no bandwidth", "0", "", "", "", ""


def link_notes(problem: Problem, design: RealizedDesign) -> Iterator[str]:
    """Scale-up switches (C14), and networks in which groups load one another."""
    networks = problem.links.networks
    for one in design.dimensions:
        if one.settings is not None and one.settings.one_switch and one.fabric is not None:
            yield _scale_up(one)
    if problem.realization is not None and any(problem.links.switches) and not any(networks):
        yield (
            "no switch of this fabric has a NIC price: what fabric.realization says of switches "
            "applies to none, unless it stands under a tier's name"
        )
    for one in design.dimensions:
        if one.is_network and one.settings and one.settings.port_speed_Bps is None:
            yield _open_speed(one)
        if (one.oversubscription or 0) > 1 and isinstance(one.fabric, Clos):
            yield _oversubscribed(one, one.fabric)
    for dim, one in enumerate(design.dimensions):
        found = sharing(design.topology, dim, one)
        if found is not None:
            yield _shared(one, str(design.topology.dimensions[dim]), found)


def built_notes(design: RealizedDesign) -> Iterator[str]:
    """How the links differ from the design, and where there is nothing to choose."""
    built = design.dimensions
    direct = [one.label for one in built if isinstance(one.fabric, Direct)]
    if direct:
        yield (
            f"{', '.join(direct)}: direct links offer no choice of path, so that FIM is not "
            f"defined; a group in only a part of the dimension has only its own links"
        )
    for one in built:
        if one.is_network and isinstance(one.fabric, Clos) and one.fabric.n_spines == 0:
            yield f"{one.label}: one switch per network offers no choice of path: no FIM"
            yield from _ignored(one)
        if one.bandwidth_Bps > one.asked_Bps * (1 + _ROUNDING):
            nics = "1 NIC" if one.n_nics == 1 else f"{one.n_nics} NICs"
            speed = format_bandwidth(one.bandwidth_Bps / one.n_nics)
            yield (
                f"{one.label}: {nics} of {speed} per NPU, "
                f"{format_bandwidth(one.asked_Bps)} is asked for; step times use all of it"
            )


def _ignored(built: RealizedDimension) -> Iterator[str]:
    """Counts of a plan that one switch has no use for."""
    if built.settings is not None:
        counts = {"spines": built.settings.n_spines, "parallel_links": built.settings.n_parallel}
        given = " and ".join(f"{key}: {n}" for key, n in counts.items() if n is not None)
        if given:
            yield f"{built.label}: one switch holds all endpoints of a network, {given} is not used"


def _scale_up(built: RealizedDimension) -> str:
    return (
        f"{built.label}: tier {built.tier} has no NIC price, so every group has one scale-up "
        f"switch at full bandwidth, without leaves, optics and ECMP"
    )


def _open_speed(built: RealizedDimension) -> str:
    speed = format_bandwidth(built.bandwidth_Bps / built.n_nics)
    return (
        f"the plan gives no port_speed for {built.label}, so its ports run at exactly {speed}; a "
        f"report buys the slowest ports that are sold and suffice"
    )


def _oversubscribed(built: RealizedDimension, fabric: Clos) -> str:
    hosts, uplinks = fabric.hosts_per_leaf, fabric.n_uplinks
    return (
        f"{built.label}: leaves are oversubscribed {built.oversubscription:.4g}:1 as built: a full "
        f"leaf has {hosts:,} host ports and {uplinks:,} uplink{'s' * (uplinks != 1)}"
    )


def _shared(built: RealizedDimension, block: str, found: Sharing) -> str:
    settings = built.settings
    wiring = settings.wiring if settings is not None else ""
    links = "uplinks" if found.where == "leaf" else "links to the cores"
    return (
        f"{built.label}: with wiring {wiring} groups load one another: a {found.where} holds NPUs "
        f"of {found.n_sharing:,} of the {found.n_groups:,} groups of {block}, which share its "
        f"{links}. wiring: rail gives every group a network of its own"
    )
