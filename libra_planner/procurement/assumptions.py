"""How a cluster is built, run and paid for: what no part says by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from libra_planner.procurement.parts import Part


@dataclass(frozen=True)
class SideNetwork:
    """A network beside the training fabric: to users (frontend), or to storage.

    Parameters
    ----------
    name : such as frontend.
    n_ports_per_server : NICs of a server on it.
    port_speed_Bps, switch_radix, oversubscription : as in a plan's realization.
    """

    name: str
    n_ports_per_server: int
    port_speed_Bps: float
    switch_radix: int
    oversubscription: float = 1.0


@dataclass(frozen=True)
class Electricity:
    """Price of energy.

    Parameters
    ----------
    usd_per_kwh : at the meter.
    confidence, source : as of a part's price.
    """

    usd_per_kwh: float
    confidence: str = "assumed"
    source: str = "unknown"


@dataclass(frozen=True)
class FailureRates:
    """Failures that stop a job, per unit and second.

    Parameters
    ----------
    npu_per_s, server_per_s, switch_per_s, optic_per_s : of one unit.
    source : where they are from.
    """

    npu_per_s: float = 0.0
    server_per_s: float = 0.0
    switch_per_s: float = 0.0
    optic_per_s: float = 0.0
    source: str = "unknown"


@dataclass(frozen=True)
class VolumeDiscount:
    """Discount on a part of which at least so many units are bought."""

    n_units: int
    discount_fraction: float


@dataclass(frozen=True)
class Assumptions:
    """All that a bill needs beside parts and links.

    Parameters
    ----------
    npu, server, rack : the parts; a server's NPUs are priced by ``npu``.
    usable_rack_fraction : of a rack's units.
    floor_m2_per_rack : with its share of the aisles.
    cable_lengths_m : by what a cable joins; ``top_of_rack`` for hosts whose leaf
        is in their rack.
    side_networks : beside the training fabric.
    electricity, pue : price of energy, and facility over IT power.
    amortisation_s : time over which runs pay for the hardware.
    failures : of parts.
    checkpoint_s, restart_s : how long a checkpoint stops the job, and a failure until it
        computes again.
    volume_discounts : by units of one part, fewest first.
    """

    npu: Part
    server: Part
    rack: Part
    usable_rack_fraction: float
    floor_m2_per_rack: float
    cable_lengths_m: Mapping[str, float] = field(repr=False)
    side_networks: tuple[SideNetwork, ...]
    electricity: Electricity
    pue: float
    amortisation_s: float
    failures: FailureRates
    checkpoint_s: float
    restart_s: float
    volume_discounts: tuple[VolumeDiscount, ...] = ()
