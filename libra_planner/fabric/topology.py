"""Multi-dimensional topologies: dimensions, their notation and how they are built (C2)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.blocks import BLOCKS, Block

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
    """

    dimensions: tuple[Dimension, ...]

    @property
    def n_dims(self) -> int:
        """Number of dimensions D."""
        return len(self.dimensions)

    @property
    def n_npus(self) -> int:
        """NPUs of the whole fabric, the product of the sizes."""
        return math.prod(self.sizes)

    @property
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

    def __str__(self) -> str:
        return "_".join(str(dimension) for dimension in self.dimensions)


def parse_topology(notation: str, tiers: list[str] | tuple[str, ...] = ()) -> Topology:
    """Topology from its notation, short or long names, any number of dimensions.

    Parameters
    ----------
    notation : such as ``RI(16)_FC(8)_SW(32)`` or ``Ring(16)_Switch(8)``.
    tiers : one price tier per dimension; empty for a topology without prices.

    Raises
    ------
    UnknownName
        For a block that does not exist.
    SpecError
        For a size that is not a whole number of at least 2, text that is not the
        notation, a wrong number of tiers, or more than a billion NPUs.
    """
    dimensions = tuple(_parse_dimension(part) for part in notation.split("_"))
    if math.prod(size for _, size in dimensions) > MAX_NPUS:
        raise SpecError(Fault(f"got {notation!r}", f"expected at most {MAX_NPUS:,} NPUs"))
    if tiers and len(tiers) != len(dimensions):
        got = f"got {len(tiers)} tiers for {len(dimensions)} dimensions"
        fix = f"name the price tier of each dimension of {notation}, innermost first"
        raise SpecError(Fault(got, f"expected {len(dimensions)}", fix, path="fabric.tiers"))
    names = tiers or ("",) * len(dimensions)
    pairs = zip(dimensions, names, strict=True)
    return Topology(tuple(Dimension(block, size, tier) for (block, size), tier in pairs))


def _parse_dimension(text: str) -> tuple[Block, int]:
    match = _DIMENSION.fullmatch(text.strip())
    name, size = match.groups() if match else ("", "")
    if not (name.isascii() and name.isalpha()) and name not in BLOCKS:
        fix = "write dimensions as NAME(SIZE) joined by _, innermost first"
        raise SpecError(Fault(f"got {text!r}", "expected a dimension such as RI(4)", fix))
    kind = BLOCKS[name]
    try:
        return kind.of_text(size)
    except SpecError as error:
        faults = (replace(fault, got=f"got {text!r}") for fault in error.faults)
        raise SpecError(*faults) from None


RAIL, RAIL_OPTIMIZED, TOP_OF_RACK = "rail", "rail_optimized", "top_of_rack"
WIRINGS = (RAIL, RAIL_OPTIMIZED, TOP_OF_RACK)
"""Who shares a network: see :class:`SwitchSettings`."""

PLACEMENTS = ("contiguous", "rail", "random")
"""How a job's NPUs are laid out over the cluster's."""

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
        Tiers above the leaves are not oversubscribed.
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


SCALE_UP = SwitchSettings(switch_radix=LARGEST_SCALE_UP, one_switch=True)
"""A switch dimension without a NIC, of which a plan says nothing (C14)."""


@dataclass(frozen=True)
class Realization:
    """How a plan's dimensions are built.

    Parameters
    ----------
    switches : by dimension; ``None`` for rings and fully connected groups, whose links
        follow from C2.
    placement : one of :data:`PLACEMENTS`.
    n_queue_pairs : per connection; messages are split over them.
    npus_per_address : NPUs that share an IP address; 1 if each has its own.
    notes : assumptions of the presets it starts from.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> usual = default_realization(parse_topology("RI(4)_SW(32)"))
    >>> [None if switch is None else switch.switch_radix for switch in usual.switches]
    [None, 64]
    """

    switches: tuple[SwitchSettings | None, ...]
    placement: str = PLACEMENTS[0]
    n_queue_pairs: int = 1
    npus_per_address: int = 1
    notes: tuple[str, ...] = field(default=())

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
        network; one without is a scale-up switch (C14). By default all are networks.
    """
    network = SwitchSettings()
    return Realization(
        tuple(
            (network if nic else SCALE_UP) if dimension.block.is_switched else None
            for dimension, nic in zip(
                topology.dimensions, has_nic or [True] * topology.n_dims, strict=True
            )
        )
    )
