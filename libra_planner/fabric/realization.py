"""A design as links: the fabric of every dimension, and fabrics of published settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from libra_planner.errors import Fault, SpecError, refuse, unknown_name
from libra_planner.fabric.blocks import DirectBlock
from libra_planner.fabric.clos import Array, Clos, Indices, Layer
from libra_planner.fabric.networks import (
    Ports,
    check_size,
    group_of_npu,
    stack_fabric,
    switch_fabric,
)
from libra_planner.fabric.topology import (
    RAIL_OPTIMIZED,
    Realization,
    SwitchSettings,
    Topology,
    default_realization,
    parse_topology,
)


@dataclass(frozen=True)
class Direct:
    """All groups of a ring or fully connected dimension.

    Hosts are the NPUs of the cluster, innermost dimension fastest. A ring NPU has a link of
    B/2 to the next and one to the previous NPU of its group, in a ring of 2 both to the
    same; a fully connected one has n - 1 links of B/(n - 1). Link ``i`` of the layer
    ``ring_next`` leaves NPU i; of ``direct``, links i(n-1) .. i(n-1)+n-2 leave NPU i, to the
    NPUs 1, 2 .. positions on.

    Parameters
    ----------
    block : ring or fully connected.
    size : NPUs of a group, n.
    n_hosts : NPUs of the cluster.
    n_inner : NPUs of all inner dimensions together; neighbours lie so many numbers apart.
    bandwidth_Bps : B, what one NPU injects, byte/s.

    Raises
    ------
    SpecError
        For a switch, a bandwidth that is not positive, or sizes that do not divide.

    Examples
    --------
    >>> from libra_planner.fabric.blocks import RING
    >>> ring = Direct(RING, 4, n_hosts=8, n_inner=2, bandwidth_Bps=100e9)
    >>> [(layer.name, layer.n_links) for layer in ring.layers], ring.link_name(2)
    ([('ring_next', 8), ('ring_previous', 8)], 'NPU 2 -> NPU 4')
    """

    block: DirectBlock
    size: int
    n_hosts: int
    n_inner: int = 1
    bandwidth_Bps: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.block, DirectBlock):
            got = f"got a {self.block.about}"
            raise SpecError(Fault(got, "expected links from NPU to NPU"))
        if not (np.isfinite(self.bandwidth_Bps) and self.bandwidth_Bps > 0):
            got = f"got {self.bandwidth_Bps:g}"
            raise SpecError(Fault(got, "expected a bandwidth above 0", path="bandwidth_Bps"))
        least = min(self.size - 1, self.n_inner, self.n_hosts)
        if least < 1 or self.n_hosts % (self.size * self.n_inner):
            got = f"got {self.n_hosts} NPUs in groups of {self.size}, {self.n_inner} apart"
            raise SpecError(Fault(got, "expected whole groups of 2 or more"))

    @property
    def n_links_per_npu(self) -> int:
        """Links that leave an NPU (C2)."""
        return self.block.n_links_per_npu(self.size)

    @property
    def link_Bps(self) -> float:
        """Bandwidth of one link, one direction (C2)."""
        return self.bandwidth_Bps / self.n_links_per_npu

    @property
    def n_links(self) -> int:
        """Directed links of all groups."""
        return self.n_hosts * self.n_links_per_npu

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Those of the block, such as one per direction of a ring.

        They count as host links: they offer no choice of path (C10).
        """
        numbers = self.block.link_layers(self.size)
        starts = np.cumsum([0, *numbers.values()]).tolist()
        return tuple(
            Layer(name, start * self.n_hosts, n * self.n_hosts)
            for (name, n), start in zip(numbers.items(), starts, strict=False)
        )

    @property
    def capacity_Bps(self) -> Array:
        """Bandwidth of each link, shape (n_links,)."""
        return np.full(self.n_links, self.link_Bps)

    def link_name(self, link: int) -> str:
        """Name of a link, such as ``NPU 2 -> NPU 4``."""
        layer = next(x for x in self.layers if x.start <= link < x.start + x.n_links)
        source, way = divmod(link - layer.start, layer.n_links // self.n_hosts)
        position = source // self.n_inner % self.size
        peer = self.block.peer(self.size, position, layer.start // self.n_hosts + way)
        target = source + (peer - position) * self.n_inner
        return f"NPU {source} -> NPU {target}"


@dataclass(frozen=True)
class RealizedDimension:
    """One dimension built from whole links.

    Parameters
    ----------
    label, tier : such as dim2 and pod.
    asked_Bps, bandwidth_Bps : per NPU: of the design, and of the links that realise it,
        which is at least as much.
    fabric : its links; ``None`` for a dimension without bandwidth.
    ports : host ports of all NPUs; an NPU's number itself where the links are direct.
    settings : of a switch.
    ports_per_nic : host ports of each NIC, one in every plane.
    place : among the tiers of a stack, from 0; they have the same links and ports (C13).
    """

    label: str
    tier: str
    asked_Bps: float
    bandwidth_Bps: float
    fabric: Clos | Direct | None
    ports: Ports
    settings: SwitchSettings | None = None
    ports_per_nic: int = 1
    place: int = 0

    @property
    def port_of_npu(self) -> Indices:
        """Host ports of each NPU, shape (n_npus, n_ports)."""
        return self.ports.of_npu

    @property
    def n_ports(self) -> int:
        """Host ports per NPU."""
        return self.ports.n_per_npu

    @property
    def n_nics(self) -> int:
        """NICs per NPU."""
        return self.n_ports // self.ports_per_nic

    @property
    def nic_Bps(self) -> float:
        """Bandwidth of one NIC over all its ports; of a direct link's NPU all of it."""
        fabric = self.fabric
        port_Bps = fabric.host_Bps if isinstance(fabric, Clos) else self.bandwidth_Bps
        return port_Bps * self.ports_per_nic

    @property
    def is_network(self) -> bool:
        """Whether it is a network of switches that are reached through NICs (C14)."""
        switch = self.settings
        return switch is not None and not switch.one_switch and self.fabric is not None

    @property
    def clos(self) -> Clos:
        """The links of a switch dimension.

        Raises
        ------
        ValueError
            For direct links, or none.
        """
        if not isinstance(self.fabric, Clos):
            raise ValueError(f"{self.label} has no switches")
        return self.fabric

    @property
    def oversubscription(self) -> float | None:
        """Bandwidth down over that up: of a full leaf; of a spine in a stack's second tier.

        ``None`` where nothing is above. As built: leaves hold whole hosts, and failed links count.
        """
        fabric = self.fabric
        if not self.is_network or not isinstance(fabric, Clos):
            return None
        down_Bps = (fabric.hosts_per_leaf * fabric.host_Bps, fabric.n_leaves * fabric.n_parallel, 0)
        up_Bps = (fabric.n_uplinks * fabric.uplink_Bps, fabric.n_core_links, 0)
        return down_Bps[self.place] / up_Bps[self.place] if up_Bps[self.place] else None

    @property
    def npu_of_port(self) -> Indices:
        """NPU at each host port of a switch dimension, -1 at those left over, shape (n_hosts,)."""
        n_npus = self.ports.n_npus
        n_hosts = self.fabric.n_hosts if isinstance(self.fabric, Clos) else n_npus
        npu_of_port = np.full(n_hosts, -1)
        npu_of_port[self.port_of_npu] = np.arange(n_npus)[:, None]
        return npu_of_port


@dataclass(frozen=True)
class RealizedDesign:
    """A design built from whole links.

    Parameters
    ----------
    topology : what it realises.
    realization : the settings.
    dimensions : innermost first.
    """

    topology: Topology
    realization: Realization
    dimensions: tuple[RealizedDimension, ...]

    @property
    def networks(self) -> tuple[RealizedDimension, ...]:
        """Dimensions with links of their own: of a stack, the innermost stands for all tiers."""
        return tuple(one for one in self.dimensions if not one.place)

    @property
    def bandwidth_Bps(self) -> Array:
        """Bandwidth per NPU of the realised links, shape (n_dims,)."""
        return np.array([dimension.bandwidth_Bps for dimension in self.dimensions])


def realize(
    topology: Topology,
    bandwidth_Bps: Sequence[float] | Array,
    realization: Realization | None = None,
) -> RealizedDesign:
    """Links of a design.

    Parameters
    ----------
    topology : the dimensions.
    bandwidth_Bps : what one NPU injects into each (C2), byte/s, shape (n_dims,).
    realization : settings; by default those of a plan that has none.

    Raises
    ------
    SpecError
        With every dimension that cannot be built: too many endpoints for the radix, too
        few NICs, more failures than there are cables.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> design = realize(parse_topology("RI(4)_SW(32)"), [100e9, 50e9])
    >>> design.dimensions[1].fabric.n_switches, design.dimensions[1].port_of_npu.shape
    ({'leaf': 4}, (128, 1))
    """
    chosen = realization or default_realization(topology)
    asked_Bps = np.asarray(bandwidth_Bps, dtype=np.float64)
    stacks = {tiers.start: tiers for tiers in topology.stacks}
    built: list[RealizedDimension] = []
    faults: list[Fault] = []
    for dim in sorted(set(topology.ports)):
        try:
            _check_bandwidth(topology, asked_Bps, stacks.get(dim, range(dim, dim + 1)))
            if dim in stacks:
                built += _stack(topology, stacks[dim], asked_Bps, chosen.switches[dim])
            else:
                built.append(_dimension(topology, dim, float(asked_Bps[dim]), chosen.switches[dim]))
        except SpecError as error:
            faults += [_of_dimension(fault, topology, dim) for fault in error.faults]
    refuse(faults)
    return RealizedDesign(topology, chosen, tuple(built))


def _of_dimension(fault: Fault, topology: Topology, dim: int) -> Fault:
    path = f"fabric.realization ({topology.labels[dim]})" + f".{fault.path}" * bool(fault.path)
    return replace(fault, path=path, subject=(dim, fault.path))


def _check_bandwidth(topology: Topology, asked_Bps: Array, tiers: range) -> None:
    for dim in tiers:
        if not (math.isfinite(asked_Bps[dim]) and asked_Bps[dim] >= 0):
            got = f"got {asked_Bps[dim]:g} byte/s"
            raise SpecError(Fault(got, "expected a bandwidth of 0 or more"))
    used = [dim for dim in tiers if asked_Bps[dim] > 0]
    missing = [dim for dim in tiers if used and dim < used[-1] and not asked_Bps[dim]]
    if missing:
        names = topology.labels[missing[0]], topology.labels[used[-1]]
        got = f"got 0 GB/s in {names[0]} and more in {names[1]}, which is reached through it"
        raise SpecError(Fault(got, "expected bandwidth in every tier on the way"))


def _dimension(
    topology: Topology, dim: int, asked_Bps: float, settings: SwitchSettings | None
) -> RealizedDimension:
    label, tier = topology.labels[dim], topology.tiers[dim]
    n_npus = topology.n_npus
    check_size(n_npus * max(2, topology.dimensions[dim].n_links_per_npu))
    everyone = Ports(n_npus, 1)
    if asked_Bps == 0:
        return RealizedDimension(label, tier, 0.0, 0.0, None, everyone, settings)
    if settings is None:
        block, n_inner = topology.dimensions[dim].block, math.prod(topology.sizes[:dim])
        if not isinstance(block, DirectBlock):
            raise SpecError(Fault("got no settings", f"expected those of a {block.about}"))
        direct = Direct(block, topology.sizes[dim], n_npus, n_inner, asked_Bps)
        return RealizedDimension(label, tier, asked_Bps, asked_Bps, direct, everyone)
    found = switch_fabric(topology, dim, asked_Bps, settings)
    (realised_Bps,), links = found.bandwidth_Bps, (found.clos, found.ports)
    return RealizedDimension(
        label, tier, asked_Bps, realised_Bps, *links, settings, found.ports_per_nic
    )


def _stack(
    topology: Topology, tiers: range, asked_Bps: Array, settings: SwitchSettings | None
) -> Iterator[RealizedDimension]:
    """The tiers of one network, which share its links and ports (C13)."""
    check_size(2 * topology.n_npus)
    used = [dim for dim in tiers if asked_Bps[dim] > 0]
    found = None
    if used and settings is not None:
        joined = range(tiers.start, used[-1] + 1)
        own_Bps = asked_Bps[joined.start : joined.stop]
        found = stack_fabric(topology, joined, own_Bps, settings)
    for place, dim in enumerate(tiers):
        label, tier, own = topology.labels[dim], topology.tiers[dim], float(asked_Bps[dim])
        if found is None or not own:
            everyone = Ports(topology.n_npus, 1)
            yield RealizedDimension(label, tier, 0.0, 0.0, None, everyone, settings, place=place)
            continue
        realised_Bps, links = found.bandwidth_Bps[place], (found.clos, found.ports)
        yield RealizedDimension(
            label, tier, own, realised_Bps, *links, settings, found.ports_per_nic, place
        )


LEAF, POD = "leaf", "pod"


@dataclass(frozen=True)
class Sharing:
    """Groups of a dimension that share links between switches.

    Parameters
    ----------
    where : ``leaf``, whose uplinks they share, or ``pod``, whose links to the cores.
    n_sharing : most groups of one such place.
    n_groups : groups of the dimension.
    """

    where: str
    n_sharing: int
    n_groups: int


def sharing(topology: Topology, dim: int, built: RealizedDimension) -> Sharing | None:
    """Where groups of a dimension load one another; ``None`` where none does.

    Tiers of a stack are shared by what they are (C13): none is named there.

    Examples
    --------
    Two groups of 8 neighbours each, 4 of a leaf from either.

    >>> from libra_planner.fabric.realization import realize
    >>> from libra_planner.fabric.topology import Realization, SwitchSettings
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("FC(2)_SW(8)")
    >>> racks = SwitchSettings(switch_radix=16, n_leaves=2, wiring="top_of_rack")
    >>> design = realize(fabric, [1e9, 1e9], Realization((None, racks)))
    >>> sharing(fabric, 1, design.dimensions[1])
    Sharing(where='leaf', n_sharing=2, n_groups=2)
    """
    fabric, in_stack = built.fabric, any(dim in tiers for tiers in topology.stacks)
    if in_stack or not isinstance(fabric, Clos) or not fabric.n_spines:
        return None
    group = group_of_npu(topology, dim)
    n_groups = int(group.max()) + 1
    places = ((LEAF, fabric.leaf_of), (POD, fabric.pod_of))
    for where, place_of in places if fabric.n_cores else places[:1]:
        pairs = np.unique(place_of(built.port_of_npu) * n_groups + group[:, None])
        n_sharing = int(np.bincount(pairs // n_groups).max())
        if n_sharing > 1:
            return Sharing(where, n_sharing, n_groups)
    return None


_100G_BPS, _400G_BPS, _NVLINK_BPS = 12.5e9, 50e9, 450e9


@dataclass(frozen=True)
class Preset:
    """A fabric with a name.

    Parameters
    ----------
    note : what it stands for, with the source.
    assumed : what the source does not say.
    topology : of the preset as a fabric of its own; the outermost dimension is the switch.
    bandwidth_Bps : per NPU and dimension of that topology, byte/s.
    settings : what a plan that names the preset starts from.
    """

    note: str
    assumed: str
    topology: str
    bandwidth_Bps: tuple[float, ...]
    settings: SwitchSettings

    @property
    def notes(self) -> tuple[str, ...]:
        """Note and assumption, for reports."""
        return (self.note, f"assumed: {self.assumed}")


PRESETS: dict[str, Preset] = {
    "flowtracer-16x400G": Preset(
        note="16 nodes of 400 Gbit/s on a leaf-spine fabric, FlowTracer's setting "
        "(arXiv 2410.17078)",
        assumed="4 leaves of 4 nodes and 8 spines, one 400 Gbit/s link each, switches of 64 "
        "ports: the counts are not published; with 8 queue pairs per node 32 flows share "
        "the 8 uplinks of a leaf",
        topology="SW(16)",
        bandwidth_Bps=(_400G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS, n_leaves=4, n_spines=8),
    ),
    "rail-8x400G": Preset(
        note="nodes of 8 GPUs, one 400 Gbit/s NIC per GPU, rail-optimised 1:1 leaf-spine",
        assumed="switches of 64 ports; by itself 32 nodes with 450 GB/s per GPU inside the node",
        topology="FC(8)_SW(32)",
        bandwidth_Bps=(_NVLINK_BPS, _400G_BPS),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS, wiring=RAIL_OPTIMIZED),
    ),
    "routing-64x32": Preset(
        note="64 leaves x 32 spines, 32 hosts per leaf, after Routing for Large ML Models "
        "(arXiv 2503.05324)",
        assumed="100 Gbit/s ports, one link between a leaf and a spine, switches of 64 ports",
        topology="SW(2048)",
        bandwidth_Bps=(_100G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_100G_BPS, n_leaves=64, n_spines=32),
    ),
    "pod-16384": Preset(
        note="16,384 NPUs of 400 Gbit/s on three tiers of 64-port switches, 1:1",
        assumed="16 pods of 32 leaves and 32 spines, the fewest switches; 4 links from a spine "
        "to each of its 8 cores",
        topology="SW(16384)",
        bandwidth_Bps=(_400G_BPS,),
        settings=SwitchSettings(port_speed_Bps=_400G_BPS),
    ),
}
"""By name; a plan names one in ``fabric.realization.preset``."""


def preset(name: str) -> Preset:
    """The preset of a name.

    Raises
    ------
    UnknownName
        With a did-you-mean.

    Examples
    --------
    >>> preset("routing-64x32").settings.n_spines
    32
    """
    if name not in PRESETS:
        raise unknown_name("fabric preset", name, PRESETS)
    return PRESETS[name]


def preset_design(name: str) -> RealizedDesign:
    """A preset as a design of its own.

    Raises
    ------
    UnknownName
        For a name that is no preset.

    Examples
    --------
    >>> preset_design("rail-8x400G").topology.n_npus
    256
    """
    chosen = preset(name)
    topology = parse_topology(chosen.topology)
    design = Realization(
        tuple(chosen.settings if one.block.is_switched else None for one in topology.dimensions),
        notes=chosen.notes,
    )
    return realize(topology, chosen.bandwidth_Bps, design)


def preset_fabric(name: str) -> Clos:
    """The switches of a preset as a fabric for ``flows``.

    Raises
    ------
    UnknownName
        For a name that is no preset.

    Examples
    --------
    >>> preset_fabric("pod-16384").n_switches
    {'leaf': 512, 'spine': 512, 'core': 256}
    """
    return preset_design(name).dimensions[-1].clos


def bisection_Bps(design: RealizedDesign) -> float:
    """Bandwidth between two halves of the cluster, one direction, over the outermost dimension.

    A group of n is cut into floor(n/2) and the rest: 2 links of a ring of more than 2 (2 of
    its links join a ring of 2, too), floor(n/2) * ceil(n/2) links of a fully connected group;
    under switches floor(n/2) NPUs send all they inject, over the oversubscription of the leaves;
    what NPUs inject into the last tier of a stack is their share of its links up.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> bisection_Bps(realize(parse_topology("RI(8)"), [100e9])) / 1e9
    100.0
    >>> bisection_Bps(realize(parse_topology("FC(2)_SW(32)"), [1e9, 50e9])) / 1e9
    1600.0
    """
    last, dimension = design.dimensions[-1], design.topology.dimensions[-1]
    n_groups = design.topology.n_npus // dimension.size
    link_Bps = dimension.link_bandwidth_bytes_per_s(last.bandwidth_Bps)
    several = isinstance(last.fabric, Clos) and last.fabric.n_spines > 0 and not last.place
    ratio = last.settings.oversubscription if last.settings is not None and several else 1.0
    return n_groups * dimension.block.n_cut_links(dimension.size) * link_Bps / max(1.0, ratio)
