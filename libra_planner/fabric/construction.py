"""How dimensions are built from switches and links: settings only, no fabric yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from libra_planner.fabric.topology import Block, Topology

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
            (network if nic else SCALE_UP) if dimension.block is Block.SWITCH else None
            for dimension, nic in zip(
                topology.dimensions, has_nic or [True] * topology.n_dims, strict=True
            )
        )
    )
