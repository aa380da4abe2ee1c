"""What a realised design is made of: switches, ports, cables and optics by tier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.realization import Direct, RealizedDesign, RealizedDimension
from libra_planner.fabric.sizing import plane_settings
from libra_planner.fabric.topology import TOP_OF_RACK, SwitchSettings

NPU_NPU, HOST_LEAF, LEAF_SPINE, SPINE_CORE = "npu-npu", "host-leaf", "leaf-spine", "spine-core"
NPU_SWITCH = "npu-switch"
"""What a cable joins; the last an NPU and its scale-up switch."""

SCALE_UP = "switch"
"""The tier of scale-up switches."""


@dataclass(frozen=True)
class SwitchParts:
    """Switches of one tier: leaf, spine or core, or scale-up switches (``switch``).

    Parameters
    ----------
    n_ports_used : ports with a cable, of all switches; ``n_ports_free`` the others, which are
        not counted of a scale-up switch: nobody plugs anything else into it.
    """

    tier: str
    n_switches: int
    n_ports_used: int
    n_ports_free: int


@dataclass(frozen=True)
class CableParts:
    """Cables of one kind; a cable is two directed links.

    Parameters
    ----------
    joins : :data:`NPU_NPU`, :data:`HOST_LEAF`, :data:`LEAF_SPINE` or :data:`SPINE_CORE`.
    speed_Bps : one direction, byte/s.
    n_optics : transceivers, two per optical cable.
    in_rack : whether both ends are in one rack (``top_of_rack``).
    """

    joins: str
    n_cables: int
    speed_Bps: float
    n_optics: int
    in_rack: bool = False


@dataclass(frozen=True)
class DimensionParts:
    """Parts of one dimension, failed ones included.

    Parameters
    ----------
    label, tier : such as dim2 and pod.
    n_nics : of all NPUs; 0 for direct links, scale-up switches, and further tiers of a stack.
    switches, cables : from the NPUs up.
    """

    label: str
    tier: str
    n_nics: int = 0
    switches: tuple[SwitchParts, ...] = ()
    cables: tuple[CableParts, ...] = ()

    @property
    def n_switches(self) -> int:
        """Switches of all tiers."""
        return sum(part.n_switches for part in self.switches)

    @property
    def n_ports_used(self) -> int:
        """Switch ports with a cable."""
        return sum(part.n_ports_used for part in self.switches)

    @property
    def n_ports_free(self) -> int:
        """Switch ports without a cable."""
        return sum(part.n_ports_free for part in self.switches)

    @property
    def n_cables(self) -> int:
        """Cables of all kinds."""
        return sum(part.n_cables for part in self.cables)

    @property
    def n_links(self) -> int:
        """Directed links, two per cable."""
        return 2 * self.n_cables

    @property
    def n_optics(self) -> int:
        """Transceivers of all cables."""
        return sum(part.n_optics for part in self.cables)


@dataclass(frozen=True)
class DesignParts:
    """Parts of a design, by dimension from the innermost."""

    dimensions: tuple[DimensionParts, ...]

    def total(self, count: str) -> int:
        """Sum over the dimensions of a count such as ``n_switches`` or ``n_optics``."""
        return sum(int(getattr(dimension, count)) for dimension in self.dimensions)

    @property
    def n_scale_up_switches(self) -> int:
        """Switches between NPUs, which are no part of a network of NICs (C14)."""
        parts = (part for dimension in self.dimensions for part in dimension.switches)
        return sum(part.n_switches for part in parts if part.tier == SCALE_UP)

    @property
    def n_scale_up_cables(self) -> int:
        """Cables of the same."""
        parts = (part for dimension in self.dimensions for part in dimension.cables)
        return sum(part.n_cables for part in parts if part.joins == NPU_SWITCH)


def design_parts(design: RealizedDesign, copper: Collection[str] = ()) -> DesignParts:
    """Switches, ports, cables and optics of a design.

    A stack is one network (C13): its innermost tier has the NICs, leaves and cables to them, every
    further tier its switches and the cables below.

    Parameters
    ----------
    design : realised, so that every count is whole.
    copper : cables without optics: what they join (:data:`HOST_LEAF`, ...), or the label
        or tier of a dimension. Cables between NPUs never have optics here, nor those to a
        leaf in the same rack (:func:`leaves_in_racks`) or to a scale-up switch.

    Examples
    --------
    >>> from libra_planner.fabric.realization import realize
    >>> from libra_planner.fabric.topology import parse_topology
    >>> parts = design_parts(realize(parse_topology("RI(4)_SW(16)"), [100e9, 50e9]), ["dim2"])
    >>> parts.total("n_switches"), parts.total("n_cables"), parts.total("n_optics")
    (4, 128, 0)
    """
    own = [_dimension_parts(one, copper) for one in design.dimensions]
    for dim in (dim for tiers in design.topology.stacks for dim in tiers):
        own[dim] = _tier_parts(own[dim], design.dimensions[dim].place)
    return DesignParts(tuple(own))


def network_parts(design: RealizedDesign, dim: int) -> DimensionParts:
    """Parts of the network that a dimension belongs to: of a stack, those of all tiers."""
    dimensions, ports = design_parts(design).dimensions, design.topology.ports
    tiers = [one for one, port in zip(dimensions, ports, strict=True) if port == ports[dim]]
    return replace(
        tiers[0],
        switches=tuple(part for one in tiers for part in one.switches),
        cables=tuple(part for one in tiers for part in one.cables),
    )


def _tier_parts(parts: DimensionParts, place: int) -> DimensionParts:
    """What a tier adds to the network of a stack: its switches, and the cables below them."""
    n_nics = 0 if place else parts.n_nics
    tier = slice(place, place + 1)
    return replace(parts, n_nics=n_nics, switches=parts.switches[tier], cables=parts.cables[tier])


def _dimension_parts(built: RealizedDimension, copper: Collection[str]) -> DimensionParts:
    fabric = built.fabric
    if isinstance(fabric, Direct):
        cables = CableParts(NPU_NPU, fabric.n_links // 2, fabric.link_Bps, 0)
        return DimensionParts(built.label, built.tier, cables=(cables,))
    if fabric is None or built.settings is None:
        return DimensionParts(built.label, built.tier)
    n_ports = built.ports.n_npus * built.n_ports
    if built.settings.one_switch:
        # One switch for each group, reached from the NPUs' own ports without optics (C14).
        switch = SwitchParts(SCALE_UP, fabric.total_leaves, n_ports, 0)
        cables = CableParts(NPU_SWITCH, n_ports, fabric.host_Bps, 0)
        return DimensionParts(built.label, built.tier, 0, (switch,), (cables,))
    no_optics = {built.label, built.tier} & set(copper)
    kinds = (HOST_LEAF, LEAF_SPINE, SPINE_CORE) if no_optics else copper
    settings = plane_settings(built.settings, built.nic_Bps)
    cabled = cable_parts(fabric, n_ports, kinds, n_shared=links_per_host_cable(settings))
    if leaves_in_racks(built):
        cabled = (replace(cabled[0], n_optics=0, in_rack=True), *cabled[1:])
    n_nics, switches = n_ports // built.ports_per_nic, switch_parts(fabric, settings, n_ports)
    return DimensionParts(built.label, built.tier, n_nics, switches, cabled)


def links_per_host_cable(settings: SwitchSettings) -> int:
    """Links of a NIC to several planes that share a cable: a port of a switch serves as many.

    >>> links_per_host_cable(SwitchSettings(n_planes=2, n_hosts_per_port=2))
    2
    """
    return gcd(settings.n_planes, settings.n_hosts_per_port)


def leaves_in_racks(built: RealizedDimension) -> bool:
    """Whether every leaf stands in one rack with all of its NPUs, as the plan says of its racks.

    Racks hold NPUs in order. Only a plan knows how many fit: power and space decide.

    Examples
    --------
    >>> from libra_planner.fabric.realization import realize
    >>> from libra_planner.fabric.topology import Realization, SwitchSettings
    >>> from libra_planner.fabric.topology import parse_topology
    >>> def built(npus_per_rack):
    ...     racks = SwitchSettings(8, wiring=TOP_OF_RACK, npus_per_rack=npus_per_rack)
    ...     return realize(parse_topology("SW(16)"), [1e9], Realization((racks,))).dimensions[0]
    >>> [leaves_in_racks(built(n)) for n in (None, 2, 4, 6, 8)]
    [False, False, True, False, True]
    """
    settings, fabric = built.settings, built.fabric
    n_per_rack = settings and settings.wiring == TOP_OF_RACK and settings.npus_per_rack
    if not n_per_rack or not isinstance(fabric, Clos):
        return False
    leaf = fabric.leaf_of(built.port_of_npu)
    rack = np.arange(len(leaf)) // n_per_rack
    pairs = np.unique(leaf * (int(rack[-1]) + 1) + rack[:, None])
    return pairs.size == np.unique(leaf).size


def switch_parts(fabric: Clos, settings: SwitchSettings, n_hosts: int) -> tuple[SwitchParts, ...]:
    """Switches and their ports, from the leaves up; ``n_hosts`` host ports have a cable.

    >>> switch_parts(Clos(4, 4, 2, 1e9, 1e9, n_parallel=2), SwitchSettings(8), 15)[0]
    SwitchParts(tier='leaf', n_switches=4, n_ports_used=31, n_ports_free=1)
    """
    n_leaves, per_port = fabric.total_leaves, settings.n_hosts_per_port
    least, n_more = divmod(n_hosts, n_leaves)
    down = n_more * -(-(least + 1) // per_port) + (n_leaves - n_more) * -(-least // per_port)
    ports = [down, *(n * settings.n_ports_per_uplink for n in _cables_between(fabric))]
    parts = []
    for i, (tier, n_switches) in enumerate(fabric.n_switches.items()):
        used = sum(ports[i : i + 2])
        parts.append(SwitchParts(tier, n_switches, used, n_switches * settings.switch_radix - used))
    return tuple(parts)


def cable_parts(
    fabric: Clos, n_hosts: int, copper: Collection[str] = (), *, n_shared: int = 1
) -> tuple[CableParts, ...]:
    """Cables by what they join, from the hosts up; ``n_hosts`` host ports have a link.

    ``n_shared`` links to hosts share a cable.
    """
    counts = [n_hosts // n_shared, *_cables_between(fabric)]
    speeds = (fabric.host_Bps * n_shared, fabric.uplink_Bps, fabric.core_Bps)
    return tuple(
        CableParts(joins, n_cables, speed_Bps, 0 if joins in copper else 2 * n_cables)
        for joins, n_cables, speed_Bps in zip(
            (HOST_LEAF, LEAF_SPINE, SPINE_CORE), counts, speeds, strict=False
        )
    )


def _cables_between(fabric: Clos) -> list[int]:
    """Cables between switches, by tier."""
    return [layer.n_links for layer in fabric.layers if layer.name in ("leaf_up", "spine_up")]
