"""What a reader should know of how the links of a design are built."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension, Sharing, sharing
from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth


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
