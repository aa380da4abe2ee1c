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

MANAGERS = "managers"
"""Where modules of links to managers of the fabric are."""

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
class Modules:
    """Optical modules at one end of cables.

    Parameters
    ----------
    n : modules.
    n_links : cables that one of them serves: those of a port that is split (breakout), or of a
        cage of two ports.
    n_ports : ports of a switch that one of them takes.
    place : where they are, if that is not an end of all cables, such as ``managers``.
    """

    n: int
    n_links: int = 1
    n_ports: int = 1
    place: str = ""


@dataclass(frozen=True)
class CableParts:
    """Cables of one kind; a cable is two directed links.

    Parameters
    ----------
    joins : :data:`NPU_NPU`, :data:`HOST_LEAF`, :data:`LEAF_SPINE` or :data:`SPINE_CORE`.
    speed_Bps : one direction, byte/s.
    n_optics : transceivers: one at either end of an optical cable, but one for each port of a
        leaf that several cables share (breakout).
    in_rack : whether both ends are in one rack (``top_of_rack``).
    ends : modules of the lower end, the upper end and others, where cables are fibres; ``None``
        for one of each cable at either end.
    """

    joins: str
    n_cables: int
    speed_Bps: float
    n_optics: int
    in_rack: bool = False
    ends: tuple[Modules, ...] | None = None

    @property
    def modules(self) -> tuple[Modules, ...]:
        """Modules of the lower end, the upper end and others, where cables are fibres.

        >>> CableParts(HOST_LEAF, 3, 50e9, 5, ends=(Modules(3), Modules(2, 2))).modules
        (Modules(n=3, n_links=1, ...), Modules(n=2, n_links=2, ...))
        """
        return self.ends or (Modules(self.n_cables), Modules(self.n_cables))

    @property
    def n_per_port(self) -> int:
        """Cables that share a port of the switch above (breakout)."""
        return self.modules[1].n_links if self.modules[0].n_links == 1 else 1


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
    cabled = cable_parts(fabric, settings, n_ports, kinds)
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
    ports = [
        _leaf_ports(fabric, settings, n_hosts),
        *(n * settings.n_ports_per_uplink for n in _cables_between(fabric)),
    ]
    parts = []
    for i, (tier, n_switches) in enumerate(fabric.n_switches.items()):
        used = sum(ports[i : i + 2])
        parts.append(SwitchParts(tier, n_switches, used, n_switches * settings.switch_radix - used))
    return tuple(parts)


def cable_parts(
    fabric: Clos,
    settings: SwitchSettings,
    n_hosts: int,
    copper: Collection[str] = (),
    n_managers: int = 0,
) -> tuple[CableParts, ...]:
    """Cables by what they join, from the hosts up; ``n_hosts`` host ports have a link.

    Parameters
    ----------
    fabric, settings : links, and how many of them share a port or a cable.
    copper : what cables without optics join.
    n_managers : further links, of managers of the fabric, each with a cable of its own.

    Examples
    --------
    Three hosts of two NICs on a leaf, two NICs on every port:

    >>> [one] = cable_parts(Clos(6, host_Bps=50e9), SwitchSettings(4, n_hosts_per_port=2), 6)
    >>> one.n_cables, one.n_optics
    (6, 9)
    """
    n_shared = links_per_host_cable(settings)
    of_hosts, n_per_port = n_hosts // n_shared, settings.n_hosts_per_port // n_shared
    n_ports = _leaf_ports(fabric, settings, n_hosts + n_managers)
    counts = [of_hosts + n_managers, *_cables_between(fabric)]
    speeds = (fabric.host_Bps * n_shared, fabric.uplink_Bps, fabric.core_Bps)
    of_leaf = Modules(n_ports, n_per_port) if n_per_port > 1 else Modules(counts[0])
    managers = (Modules(n_managers, place=MANAGERS),) if n_managers else ()
    is_plain = n_per_port == 1 and not n_managers
    ends = None if is_plain else (Modules(of_hosts), of_leaf, *managers)
    layers = zip((HOST_LEAF, LEAF_SPINE, SPINE_CORE), counts, speeds, strict=False)
    up = settings.n_ports_per_uplink
    found = [
        CableParts(joins, n, Bps, 2 * n, ends=(Modules(n, n_ports=up),) * 2 if up > 1 else None)
        for joins, n, Bps in layers
    ]
    found[0] = replace(found[0], ends=ends)
    return tuple(
        replace(one, n_optics=0 if one.joins in copper else sum(x.n for x in one.modules))
        for one in found
    )


def dealt(n_links: int, n_switches: int, n_together: int) -> int:
    """Ports or modules of so many links each, where links are dealt evenly to switches.

    A link that is left over on a switch takes one of its own.

    >>> dealt(18, 4, 2)  # Switches of 5, 5, 4 and 4 links.
    10
    """
    least, n_more = divmod(n_links, n_switches)
    few, many = (-(-n // n_together) for n in (least, least + 1))
    return n_more * many + (n_switches - n_more) * few


def _leaf_ports(fabric: Clos, settings: SwitchSettings, n_links: int) -> int:
    """Ports of leaves that links of hosts take."""
    return dealt(n_links, fabric.total_leaves, settings.n_hosts_per_port)


def _cables_between(fabric: Clos) -> list[int]:
    """Cables between switches, by tier."""
    return [layer.n_links for layer in fabric.layers if layer.name in ("leaf_up", "spine_up")]
