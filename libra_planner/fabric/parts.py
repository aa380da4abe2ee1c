"""What a realised design is made of: switches, ports, cables and optics by tier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.realization import Direct, RealizedDesign, RealizedDimension
from libra_planner.fabric.topology import TOP_OF_RACK

NPU_NPU, HOST_LEAF, LEAF_SPINE, SPINE_CORE = "npu-npu", "host-leaf", "leaf-spine", "spine-core"
NPU_SWITCH = "npu-switch"
"""What a cable joins; the last an NPU and its scale-up switch."""


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
    n_nics : host ports of all NPUs; 0 for direct links and scale-up switches.
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


def design_parts(design: RealizedDesign, copper: Collection[str] = ()) -> DesignParts:
    """Switches, ports, cables and optics of a design.

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
    return DesignParts(tuple(_dimension_parts(one, copper) for one in design.dimensions))


def _dimension_parts(built: RealizedDimension, copper: Collection[str]) -> DimensionParts:
    fabric = built.fabric
    if isinstance(fabric, Direct):
        cables = CableParts(NPU_NPU, fabric.n_links // 2, fabric.link_Bps, 0)
        return DimensionParts(built.label, built.tier, cables=(cables,))
    if fabric is None or built.settings is None:
        return DimensionParts(built.label, built.tier)
    n_nics = int(built.port_of_npu.size)
    if built.settings.one_switch:
        # One switch for each group, reached from the NPUs' own ports without optics (C14).
        switch = SwitchParts("switch", fabric.total_leaves, n_nics, 0)
        cables = CableParts(NPU_SWITCH, n_nics, fabric.host_Bps, 0)
        return DimensionParts(built.label, built.tier, 0, (switch,), (cables,))
    no_optics = {built.label, built.tier} & set(copper)
    kinds = (HOST_LEAF, LEAF_SPINE, SPINE_CORE) if no_optics else copper
    cabled = cable_parts(fabric, n_nics, kinds)
    if leaves_in_racks(built):
        cabled = (replace(cabled[0], n_optics=0, in_rack=True), *cabled[1:])
    switches = switch_parts(fabric, built.settings.switch_radix, n_nics)
    return DimensionParts(built.label, built.tier, n_nics, switches, cabled)


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


def switch_parts(fabric: Clos, switch_radix: int, n_hosts: int) -> tuple[SwitchParts, ...]:
    """Switches and their ports, from the leaves up; ``n_hosts`` host ports have a cable.

    >>> switch_parts(Clos(4, 4, 2, 1e9, 1e9, n_parallel=2), 8, 15)[0]
    SwitchParts(tier='leaf', n_switches=4, n_ports_used=31, n_ports_free=1)
    """
    cables = [n_hosts, *_cables_between(fabric)]
    parts = []
    for i, (tier, n_switches) in enumerate(fabric.n_switches.items()):
        used = sum(cables[i : i + 2])
        parts.append(SwitchParts(tier, n_switches, used, n_switches * switch_radix - used))
    return tuple(parts)


def cable_parts(fabric: Clos, n_hosts: int, copper: Collection[str] = ()) -> tuple[CableParts, ...]:
    """Cables by what they join, from the hosts up; ``n_hosts`` host ports have a cable."""
    counts = [n_hosts, *_cables_between(fabric)]
    speeds = (fabric.host_Bps, fabric.uplink_Bps, fabric.core_Bps)
    return tuple(
        CableParts(joins, n_cables, speed_Bps, 0 if joins in copper else 2 * n_cables)
        for joins, n_cables, speed_Bps in zip(
            (HOST_LEAF, LEAF_SPINE, SPINE_CORE), counts, speeds, strict=False
        )
    )


def _cables_between(fabric: Clos) -> list[int]:
    """Cables between switches, by tier."""
    return [layer.n_links for layer in fabric.layers if layer.name in ("leaf_up", "spine_up")]
