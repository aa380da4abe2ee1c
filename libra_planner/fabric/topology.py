"""Topologies: dimensions, their notation, and how they are built (C2)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from libra_planner.allowed import (
    MANY,
    PLACEMENTS,
    SOURCE_PORTS,
    Kind,
    OneOf,
    Whole,
    refuse_wrong,
)
from libra_planner.errors import Fault, SpecError, UnknownName
from libra_planner.fabric.blocks import BLOCKS, Block

Array = NDArray[np.float64]

MOST_TIERS = 3
"""Tiers of one network that can be built: leaves, spines and cores."""

MAX_NPUS = 10**9
"""Largest fabric accepted; beyond it a size is taken to be a slip of the keyboard."""


_DIMENSION = re.compile(r"(\w+)\(([^()]*)\)")


@dataclass(frozen=True)
class Dimension:
    """One dimension of a fabric.

    Parameters
    ----------
    block : how its NPUs are joined.
    size : NPUs per group of this dimension, 2 or more.
    tier : name of the price tier (chiplet, package, node, pod or the user's own).
    shares_port : whether it is a further tier of the network of the dimension inside it, behind
        the same port of an NPU (C13).

    Examples
    --------
    >>> from libra_planner.fabric.blocks import RING
    >>> ring = Dimension(RING, 16, "package")
    >>> ring.n_links_per_npu, ring.link_bandwidth_bytes_per_s(100e9)
    (2, 50000000000.0)
    """

    block: Block
    size: int
    tier: str = ""
    shares_port: bool = False

    @property
    def n_links_per_npu(self) -> int:
        """Links an NPU sends into (C2)."""
        return self.block.n_links_per_npu(self.size)

    def link_bandwidth_bytes_per_s(self, bandwidth_bytes_per_s: float) -> float:
        """Bandwidth of one link when the NPU injects ``bandwidth_bytes_per_s`` (C2)."""
        return bandwidth_bytes_per_s / self.n_links_per_npu

    def __str__(self) -> str:
        return f"{self.block.notation}({self.block.text(self.size)})"


@dataclass(frozen=True)
class Topology:
    """Dimensions from the innermost (dim1) outwards.

    Examples
    --------
    >>> fabric = parse_topology("RI(4)_FC(8)_Switch(32)", ["package", "node", "pod"])
    >>> str(fabric), fabric.n_npus, fabric.sizes
    ('RI(4)_FC(8)_SW(32)', 1024, (4, 8, 32))

    A scale-up switch of 8, then a network of two tiers behind one port (C13):

    >>> cluster = parse_topology("SW(8)_[SW(32)_SW(8)]")
    >>> str(cluster), cluster.ports, cluster.stacks
    ('SW(8)_[SW(32)_SW(8)]', (0, 1, 1), (range(1, 3),))
    """

    dimensions: tuple[Dimension, ...]

    @property
    def n_dims(self) -> int:
        """Number of dimensions D."""
        return len(self.dimensions)

    @cached_property
    def n_npus(self) -> int:
        """NPUs of the whole fabric, the product of the sizes."""
        return math.prod(self.sizes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """NPUs per group, by dimension."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def tiers(self) -> tuple[str, ...]:
        """Price tier, by dimension."""
        return tuple(dimension.tier for dimension in self.dimensions)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """``dim1`` ... ``dimD``, the names rules and reports use."""
        return tuple(f"dim{i}" for i in range(1, self.n_dims + 1))

    @cached_property
    def ports(self) -> tuple[int, ...]:
        """The dimension whose port each dimension is reached by: the innermost of its stack."""
        ports: list[int] = []
        for i, dimension in enumerate(self.dimensions):
            ports.append(ports[-1] if dimension.shares_port else i)
        return tuple(ports)

    @cached_property
    def stacks(self) -> tuple[range, ...]:
        """The dimensions of every network of several tiers (C13), innermost first."""
        counts = Counter(self.ports)
        return tuple(range(i, i + n) for i, n in counts.items() if n > 1)

    def passed(self, sizes: Sequence[int]) -> NDArray[np.bool_]:
        """The tiers that a group crosses on its way to a farther one of their stack.

        Parameters
        ----------
        sizes : of the group by dimension.

        Returns
        -------
        NDArray
            Shape (n_dims,).

        Examples
        --------
        >>> parse_topology("SW(8)_[SW(32)_SW(8)]").passed((8, 1, 2)).tolist()
        [False, True, False]
        """
        spans = np.array(sizes) > 1
        passed = np.zeros(self.n_dims, dtype=bool)
        for tiers in self.stacks:
            farther = np.cumsum(spans[tiers.start : tiers.stop][::-1])[::-1]
            passed[tiers.start : tiers.stop - 1] = farther[1:] > 0
        return passed

    def loads(self, own: Array) -> Array:
        """What crosses every tier: a tier's own, and all that goes on to tiers beyond it (C13).

        Parameters
        ----------
        own : what each dimension's groups exchange, any unit, shape (..., n_dims).

        Examples
        --------
        >>> parse_topology("SW(8)_[SW(32)_SW(8)]").loads(np.array([7.0, 4.0, 1.0]))
        array([7., 5., 1.])
        """
        if not self.stacks:
            return own
        crossing = np.array(own, dtype=np.float64)
        for tiers in self.stacks:
            part = crossing[..., tiers.start : tiers.stop]
            part[...] = np.cumsum(part[..., ::-1], axis=-1)[..., ::-1]
        return crossing

    def tapers(self, bandwidth_bytes_per_s: Sequence[float] | Array) -> tuple[float | None, ...]:
        """B_(d-1)/B_d of every tier with another one inside (C13), shape (n_dims,).

        ``None`` for all other dimensions, and where a tier has no bandwidth.

        Examples
        --------
        >>> parse_topology("SW(8)_[SW(32)_SW(8)]").tapers([450e9, 50e9, 25e9])
        (None, None, 2.0)
        """
        found: list[float | None] = [None] * self.n_dims
        for stack in self.stacks:
            for i in stack[1:]:
                inside, own = float(bandwidth_bytes_per_s[i - 1]), float(bandwidth_bytes_per_s[i])
                found[i] = inside / own if own else None
        return tuple(found)

    @property
    def with_one_network(self) -> str:
        """The notation with all switches beyond dim1 as tiers of one network.

        Empty where they are one network, or none of leaves, spines and cores.

        Examples
        --------
        >>> parse_topology("SW(8)_SW(32)_SW(8)").with_one_network
        'SW(8)_[SW(32)_SW(8)]'
        >>> parse_topology("RI(4)_FC(8)_SW(32)").with_one_network
        ''
        """
        first, *outer = self.dimensions
        is_network = 1 < len(outer) <= MOST_TIERS and all(one.block.is_switched for one in outer)
        if not is_network or len(set(self.ports[1:])) == 1:
            return ""
        return f"{first}_[{'_'.join(map(str, outer))}]"

    def __str__(self) -> str:
        stacks = {tiers.start: tiers.stop - 1 for tiers in self.stacks}
        opens, closes = set(stacks), set(stacks.values())
        return "_".join(
            "[" * (i in opens) + str(dimension) + "]" * (i in closes)
            for i, dimension in enumerate(self.dimensions)
        )


def parse_topology(notation: str, tiers: list[str] | tuple[str, ...] = ()) -> Topology:
    """Topology from its notation, short or long names, any number of dimensions.

    Parameters
    ----------
    notation : such as ``RI(16)_FC(8)_SW(32)`` or ``Ring(16)_Switch(8)``; switches in square
        brackets are tiers of one network behind one port (C13).
    tiers : one price tier per dimension; empty for a topology without prices.

    Raises
    ------
    UnknownName
        For a block that does not exist.
    SpecError
        For a size that is not a whole number of at least 2, text that is not the
        notation, a wrong number of tiers, or more than a billion NPUs; for brackets that
        do not close, or that hold anything but switches.
    """
    parts, shared = _without_brackets(notation)
    dimensions = tuple(_parse_dimension(part) for part in parts)
    if math.prod(size for _, size in dimensions) > MAX_NPUS:
        raise SpecError(Fault(f"got {notation!r}", f"expected at most {MAX_NPUS:,} NPUs"))
    if tiers and len(tiers) != len(dimensions):
        got = f"got {len(tiers)} tiers for {len(dimensions)} dimensions"
        fix = f"name the price tier of each dimension of {notation}, innermost first"
        raise SpecError(Fault(got, f"expected {len(dimensions)}", fix, path="fabric.tiers"))
    names = tiers or ("",) * len(dimensions)
    _check_stacks(notation, dimensions, shared)
    rows = zip(dimensions, names, shared, strict=True)
    return Topology(
        tuple(Dimension(block, size, tier, bool(inner)) for (block, size), tier, inner in rows)
    )


def _without_brackets(notation: str) -> tuple[list[str], list[int]]:
    """The text of every dimension, and how many tiers of its brackets stand before it."""
    parts, places, place = [], [], -1
    for text in notation.split("_"):
        part = text.strip()
        opens, closes = part.startswith("["), part.endswith("]")
        inside = place >= 0
        if (opens and inside) or (closes and not (opens or inside)):
            expected, fix = "expected brackets that open and close", "write [SW(32)_SW(16)]"
            raise SpecError(Fault(f"got {notation!r}", expected, fix))
        place = 0 if opens else place + inside
        parts.append(part.removeprefix("[").removesuffix("]"))
        places.append(max(place, 0))
        place = -1 if closes else place
    if place >= 0:
        raise SpecError(Fault(f"got {notation!r}", "expected ] after the last tier", "add it"))
    return parts, places


def _check_stacks(
    notation: str, dimensions: Sequence[tuple[Block, int]], shared: Sequence[int]
) -> None:
    """Refuse stacks of anything but switches: only switches have links up to others."""
    for i, place in enumerate(shared):
        for block, _ in dimensions[i - place : i + 1] if place else ():
            if not block.is_switched:
                got = f"got a {block.about} in the brackets of {notation!r}"
                fix = "brackets hold the tiers of one network; write it before them"
                raise SpecError(Fault(got, "expected switches", fix))


def _parse_dimension(text: str) -> tuple[Block, int]:
    match = _DIMENSION.fullmatch(text.strip())
    name, size = match.groups() if match else ("", "")
    if not (name.isascii() and name.isalpha()) and name not in BLOCKS:
        fix = "write dimensions as NAME(SIZE) joined by _, innermost first"
        raise SpecError(Fault(f"got {text!r}", "expected a dimension such as RI(4)", fix))
    if name.casefold() in _TORI and name not in BLOCKS:
        rings = "_".join(f"RI({n})" for n in re.findall(r"\d+", size) or ("8", "8", "8"))
        fix = f"a torus is a ring along every axis: write {rings}"
        raise UnknownName(Fault(f"got {text.strip()!r}", "expected a known block", fix))
    kind = BLOCKS[name]
    try:
        return kind.of_text(size)
    except SpecError as error:
        faults = (replace(fault, got=f"got {text!r}") for fault in error.faults)
        raise SpecError(*faults) from None


_TORI = ("t", "torus", "torus2d", "torus3d")

RAIL, RAIL_OPTIMIZED, TOP_OF_RACK = "rail", "rail_optimized", "top_of_rack"
WIRINGS = (RAIL, RAIL_OPTIMIZED, TOP_OF_RACK)
"""Who shares a network: see :class:`SwitchSettings`."""

MAX_RADIX = 1024
"""Largest switch accepted; beyond it a radix is a slip of the keyboard."""

LARGEST_SCALE_UP = 72
"""NPUs that one scale-up switch joins where a plan does not say: those of the largest NVLink
domain that is sold as one part (GB200 NVL72)."""


@dataclass(frozen=True)
class SwitchSettings:
    """How one switch dimension is built.

    Parameters
    ----------
    switch_radix : ports of a switch, all of one speed.
    port_speed_Bps : speed of every port, one direction, byte/s; ``None`` for ports of
        exactly B / NICs, the design's own speed.
    n_nics : NICs per NPU, each one host port; ``None`` for as many as B needs.
    oversubscription : host bandwidth of a leaf over its uplink bandwidth; 2 means 2:1.
    wiring : ``rail``: a network of its own for every group of the dimension;
        ``rail_optimized``: one network for all NPUs, a leaf holds NPUs of one rail (the
        same index in the inner dimensions); ``top_of_rack``: one network for all NPUs, a
        leaf holds neighbours.
    npus_per_rack : NPUs that stand in one rack; ``None`` where nobody says. A leaf whose NPUs
        stand in one rack stands there, too, under ``top_of_rack``.
    n_parallel : links between a leaf and a spine; ``None`` for the fewest spines.
    n_leaves, n_spines : of each separate network, instead of the automatic shape.
    n_failed_links, n_failed_spines, failure_seed : cables between switches and spines
        that are down, drawn at random.
    one_switch : whether it is a scale-up switch (C14): one part for every group, of at most
        ``switch_radix`` ports, without leaves, spines and optics.
    core_oversubscription : bandwidth of a spine's links down over that of its links up.
    n_hosts_per_port : host ports that share one port of a leaf (breakout).
    n_ports_per_uplink : ports that one link between switches takes at either end.
    most_hosts_per_leaf : host ports of a leaf, where the room of a rack is the limit.
    n_planes : networks over which every NIC spreads its bandwidth.
    switch_port_Bps : speed of a switch's ports; ``None`` for that of a NIC in one plane.
    uplink_Bps : of a link between switches; ``None`` for that of a switch's ports.
    n_reserved : positions on the leaves that stay free of NPUs, such as for management.
    parts : names of the parts that it is bought as, by their kind; of other kinds a bill chooses.
    """

    switch_radix: int = 64
    port_speed_Bps: float | None = None
    n_nics: int | None = None
    oversubscription: float = 1.0
    wiring: str = RAIL
    npus_per_rack: int | None = None
    n_parallel: int | None = None
    n_leaves: int | None = None
    n_spines: int | None = None
    n_failed_links: int = 0
    n_failed_spines: int = 0
    failure_seed: int = 0
    one_switch: bool = False
    core_oversubscription: float = 1.0
    n_hosts_per_port: int = 1
    n_ports_per_uplink: int = 1
    most_hosts_per_leaf: int | None = None
    n_planes: int = 1
    switch_port_Bps: float | None = None
    uplink_Bps: float | None = None
    n_reserved: int = 0
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def uplink_ratio(self) -> int:
        """Bandwidth of a link between switches over that of a host port."""
        return self.n_hosts_per_port * self.n_ports_per_uplink

    @property
    def n_link_ports(self) -> int:
        """Links between switches that fit on one switch."""
        return self.switch_radix // self.n_ports_per_uplink


SCALE_UP = SwitchSettings(switch_radix=LARGEST_SCALE_UP, one_switch=True)
"""A switch dimension without a NIC, of which a plan says nothing (C14)."""


STACKED = SwitchSettings(wiring=RAIL_OPTIMIZED)
"""The network of a stack, of which a plan says nothing (C13)."""


_OF_TRAFFIC: dict[str, Kind] = {
    "placement": OneOf(PLACEMENTS),
    "n_queue_pairs": Whole(1, MANY),
    "npus_per_address": Whole(1, MANY),
    "source_ports": OneOf(SOURCE_PORTS),
}


@dataclass(frozen=True)
class TrafficSettings:
    """How NPUs use their NICs.

    Parameters
    ----------
    placement : ``contiguous``: neighbours of a group sit next to each other; ``rail``: they
        go to the leaves in turn; ``random``: anywhere (seeded).
    n_queue_pairs : per connection; a message is split over them (NCCL opens 1 by default).
    npus_per_address : NPUs that share an IP address; 1 if each has its own.
    source_ports : ``own``: every queue pair has a UDP source port of its own; ``shared``: all have
        the same one, so that only addresses tell flows apart.
    """

    placement: str = PLACEMENTS[0]
    n_queue_pairs: int = 1
    npus_per_address: int = 1
    source_ports: str = SOURCE_PORTS[0]

    def __post_init__(self) -> None:
        refuse_wrong(_OF_TRAFFIC, vars(self))


@dataclass(frozen=True)
class Realization:
    """How a plan's dimensions are built.

    Parameters
    ----------
    switches : by dimension; ``None`` for rings and fully connected groups, whose links
        follow from C2.
    traffic : how NPUs use their NICs.
    notes : assumptions of the presets it starts from.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> usual = default_realization(parse_topology("RI(4)_SW(32)"))
    >>> [None if switch is None else switch.switch_radix for switch in usual.switches]
    [None, 64]
    """

    switches: tuple[SwitchSettings | None, ...]
    traffic: TrafficSettings = TrafficSettings()
    notes: tuple[str, ...] = ()

    @property
    def networks(self) -> tuple[bool, ...]:
        """Whether each dimension is a network of switches: no direct links, no scale-up switch."""
        return tuple(switch is not None and not switch.one_switch for switch in self.switches)


def default_realization(topology: Topology, has_nic: Sequence[bool] | None = None) -> Realization:
    """What holds for a plan that says nothing.

    Parameters
    ----------
    topology : the dimensions.
    has_nic : of each dimension, whether its switch is reached through NICs, so that it is a
        network; one without is a scale-up switch (C14). By default all are networks, and tiers
        of a stack always are (C13).
    """
    nics = has_nic or [True] * topology.n_dims
    switches = [
        (SwitchSettings() if nic else SCALE_UP) if one.block.is_switched else None
        for one, nic in zip(topology.dimensions, nics, strict=True)
    ]
    for dim in (dim for tiers in topology.stacks for dim in tiers):
        switches[dim] = STACKED
    return Realization(tuple(switches))
