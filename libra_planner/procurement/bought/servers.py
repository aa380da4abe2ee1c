"""Servers of a design: the scale-up domains in them (C22), and the racks that they stand in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import HOST_LEAF, leaves_in_racks
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension
from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.sizing import ceil_ratio
from libra_planner.fabric.topology import TOP_OF_RACK, Topology
from libra_planner.procurement import bill
from libra_planner.procurement.bill import Assumptions, Bill, Line, Part, Parts
from libra_planner.units import format_bandwidth

_ROUNDING = 1e-9

POWER, SPACE = "power", "space"
"""What of a rack ends first."""


def server_with(domain: ScaleUpDomain | None, parts: Parts, assumed: Part) -> Part:
    """The server whose price holds a scale-up domain.

    Parameters
    ----------
    domain : of the plan; without one, and of one in no server, the server is the assumed one.
    parts : a catalogue. A server that it does not have is a part without a price.
    assumed : the catalogue's own server, which is taken where it holds such domains.

    Examples
    --------
    >>> rack = ScaleUpDomain("nvl72", "switch", 72, 900e9, "server-nvl72")
    >>> server = server_with(rack, Parts({}), Part("server", bill.SERVER, "", n_npus=8))
    >>> server.name, server.n_npus, server.price is None
    ('server-nvl72', 72, True)
    """
    if domain is None or not domain.server:
        return assumed
    n_npus = domain.n_npus_sold or domain.n_npus
    difference_Bps = abs(assumed.includes.scale_up_Bps - domain.npu_Bps)
    if assumed.n_npus == n_npus and difference_Bps <= _ROUNDING * domain.npu_Bps:
        return assumed
    found = parts.named(domain.server, bill.SERVER)
    return found if found.n_npus else bill.missing(bill.SERVER, domain.server, n_npus=n_npus)


def domain_line(domain: ScaleUpDomain, topology: Topology) -> Line:
    """All domains of a fabric, as one line of its innermost dimension."""
    speed, n = format_bandwidth(domain.npu_Bps), domain.n_domains(topology)
    size = f"{domain.n_npus_sold or domain.n_npus:,} NPUs"
    described = f"links between {size}, {speed} per NPU, one direction"
    part = Part(domain.name, bill.LINK, described, power_w=domain.power_w)
    last, first = domain.n_dims(topology) - 1, topology.labels[0]
    notes = [f"{first} to {topology.labels[last]}"] * (last > 0)
    n_idle = domain.n_npus_bought(topology) - topology.n_npus
    notes += [f"{n_idle:,} NPUs idle"] * (n_idle > 0)
    return Line(bill.NETWORK, f"{first} {topology.tiers[0]}", part, n, "; ".join(notes))


@dataclass(frozen=True)
class LeafRacks:
    """Racks that hold a leaf and all of its NPUs, so that cables to hosts stay inside (C14).

    Parameters
    ----------
    label : of the network's innermost dimension.
    tier : of the cables' lines in a bill.
    n_npus : that stand in one rack: as the plan says, or as many as it holds.
    n_held : of these, that a rack powers and has room for beside their leaves.
    is_said : whether the plan says how many.
    n_whole : as many as a rack holds and whose leaf stands in it, too; 0 where there are none.
    needed_w, needed_units : of the servers and leaves of one rack.
    rack : the part of the catalogue; ``None`` where servers come in their own.
    usable_rack_fraction : of the units of a rack.
    lengths_m : of a cable to a leaf in the same rack, and in another one.
    """

    label: str
    tier: str
    n_npus: int
    n_held: int
    is_said: bool
    n_whole: int
    needed_w: float
    needed_units: int
    rack: Part | None
    usable_rack_fraction: float
    lengths_m: tuple[float, float]

    @property
    def fault(self) -> str:
        """Why cables to hosts cannot be plugged, and what would help; empty where they can."""
        if self.n_whole or self.n_npus <= self.n_held:
            return ""
        short_m, long_m = self.lengths_m
        return (
            f"a rack holds {self.n_held or 'no'} NPUs beside a leaf, not the {self.n_npus} of "
            f"npus_per_rack ({self.label}), so cables of {short_m:g} m to hosts cannot be plugged: "
            f"{self._fewer} (cables of {long_m:g} m){self._more}"
        )

    @property
    def note(self) -> str:
        """The same, or how many NPUs a bill takes where the plan does not say."""
        return self.fault or (
            ""
            if self.is_said
            else f"{self.label}: a bill has {self.n_npus} NPUs and their leaf in one rack, as a "
            f"rack of the parts catalogue holds, on cables of {self.lengths_m[0]:g} m; "
            "npus_per_rack says otherwise"
        )

    def n_servers(self, n_npus: int, most: int) -> int:
        """Servers of so many NPUs that such a rack holds, and at most so many."""
        fits = self.n_whole or (self.n_npus if self.n_npus <= self.n_held else most * n_npus)
        return min(most, max(1, fits // n_npus)) if most else 0

    @property
    def _fewer(self) -> str:
        return f"write npus_per_rack: {self.n_held}" if self.n_held else "leave npus_per_rack out"

    @property
    def _more(self) -> str:
        """Which rack would hold them, by the keys of its part."""
        rack = self.rack
        if rack is None:
            return ""
        units = ceil_ratio(self.needed_units, self.usable_rack_fraction)
        keys = {
            f"power_limit_W: {math.ceil(self.needed_w)}": self.needed_w > rack.power_limit_w,
            f"rack_units: {units}": units > rack.n_rack_units,
        }
        wanted = " and ".join(key for key, is_wanted in keys.items() if is_wanted)
        return f", or have racks of {wanted} (part {rack.name} of the parts catalogue)"


@dataclass(frozen=True)
class Facility:
    """Rack power and space.

    Parameters
    ----------
    n_servers, server_w : NPU servers, and what one draws with its NPUs and NICs.
    n_servers_per_rack : what power and space of a rack allow; 0 if not even one.
    limited_by : ``power`` or ``space``, whichever is reached first, or ``npus_per_rack``
        where leaves in racks are the reason.
    n_server_racks, n_switch_racks : racks of each.
    it_w : all parts in use.
    n_own_racks : racks that servers come with, which are not bought again.
    leaf_racks : racks with leaves inside, by network.
    """

    n_servers: int
    server_w: float
    n_servers_per_rack: int
    limited_by: str
    n_server_racks: int
    n_switch_racks: int
    it_w: float
    n_own_racks: int = 0
    leaf_racks: tuple[LeafRacks, ...] = ()

    @property
    def n_racks(self) -> int:
        """All racks."""
        return self.n_server_racks + self.n_switch_racks

    @property
    def rests_on_power(self) -> bool:
        """Whether it would take other racks if one powered more or less."""
        return not self.n_own_racks and self.limited_by != SPACE

    @property
    def rests_on_space(self) -> bool:
        """Whether it would take other racks if one had more or less room."""
        return bool(self.n_own_racks) or self.limited_by != POWER

    @property
    def racked_tiers(self) -> tuple[str, ...]:
        """Where a bill has the cables to hosts that stay in their rack."""
        return tuple(one.tier for one in self.leaf_racks)

    @property
    def rack_faults(self) -> tuple[str, ...]:
        """Why cables to hosts cannot be plugged in these racks, and what would help."""
        return tuple(filter(None, (one.fault for one in self.leaf_racks)))


def facility(whole: Bill, assumed: Assumptions, n_servers: int, design: RealizedDesign) -> Facility:
    """Servers by what a rack powers and holds; switches and their optics by the same.

    Parameters
    ----------
    whole : the bill of a design, without racks.
    assumed : its server, and its racks.
    n_servers : that hold all NPUs.
    design : whose leaves may stand in the racks of their NPUs.
    """
    rack = assumed.rack
    n_units = int(rack.n_rack_units * assumed.usable_rack_fraction)
    # Every optic of a host sits in a NIC's port; all are counted with the switches instead.
    kinds = (bill.NPU, bill.SERVER, bill.NIC)
    servers_w = sum(x.power_w for x in whole.lines if x.part.kind in kinds)
    server_w = servers_w / n_servers
    by_power = int(rack.power_limit_w // server_w) if server_w else n_servers
    by_space = n_units // max(1, assumed.server.n_rack_units)
    n_own_racks = n_servers * assumed.server.includes.n_racks
    per_rack = 1 if n_own_racks else min(by_power, by_space)
    found = tuple(_leaf_racks(whole, assumed, server_w, per_rack, design))
    inside = _in_server_racks(whole, found)
    switches = (x for x in whole.lines if x.part.kind == bill.SWITCH and x not in inside)
    height = sum(x.n_units * x.part.n_rack_units for x in switches)
    switches_w = whole.power_w - servers_w - sum(x.power_w for x in inside)
    n_switch_racks = max(
        -(-height // n_units) if n_units else 0,
        int(-(-switches_w // rack.power_limit_w)) if rack.power_limit_w else 0,
    )
    with_leaf = min((x.n_servers(assumed.server.n_npus, per_rack) for x in found), default=per_rack)
    limits = {"npus_per_rack": with_leaf < per_rack, POWER: by_power <= by_space, SPACE: True}
    return Facility(
        n_servers=n_servers,
        server_w=server_w,
        n_servers_per_rack=with_leaf,
        limited_by=next(name for name, is_least in limits.items() if is_least),
        n_server_racks=n_own_racks or -(-n_servers // max(1, with_leaf)),
        n_switch_racks=n_switch_racks,
        it_w=whole.power_w,
        n_own_racks=n_own_racks,
        leaf_racks=found,
    )


def _leaf_racks(
    whole: Bill, assumed: Assumptions, server_w: float, most: int, design: RealizedDesign
) -> Iterator[LeafRacks]:
    """The racks of every network whose cables to hosts stay in them, or would by the plan."""
    for built in design.dimensions:
        settings = built.settings
        if built.place or settings is None or settings.wiring != TOP_OF_RACK:
            continue
        if isinstance(built.fabric, Clos) and (
            not settings.npus_per_rack or leaves_in_racks(built)
        ):
            load = _RackLoad(built, built.fabric, _leaf(whole, built), assumed, server_w)
            yield from load.racks(most)


def _in_server_racks(whole: Bill, racks: Iterable[LeafRacks]) -> tuple[Line, ...]:
    """The leaves that stand in the racks of their NPUs, which have room and power for them."""
    labels = {one.label for one in racks if one.n_whole}
    return tuple(
        x
        for x in whole.lines
        if x.part.kind == bill.SWITCH and x.dimension in labels and x.tier.endswith(_LEAF)
    )


_LEAF = "leaf"
"""What the place of a leaf in a bill ends with."""


def _leaf(whole: Bill, built: RealizedDimension) -> Part:
    """The switch that a network has as its leaves."""
    switches = (x for x in whole.lines if x.part.kind == bill.SWITCH)
    own = (x.part for x in switches if x.dimension == built.label and x.tier.endswith(_LEAF))
    return next(own, bill.missing(bill.SWITCH, _LEAF))


@dataclass(frozen=True)
class _RackLoad:
    """What a rack of a network has to power and hold.

    Parameters
    ----------
    built, fabric : the network.
    leaf : its switch.
    server_w : of a server with its NPUs and NICs.
    """

    built: RealizedDimension
    fabric: Clos
    leaf: Part
    assumed: Assumptions
    server_w: float

    def needs(self, n_servers: int) -> tuple[float, int]:
        """Power in W, and units, of some servers and the leaves of their NPUs."""
        server, n_all = self.assumed.server, len(self.built.port_of_npu)
        n_leaves = -(-n_servers * server.n_npus * self.fabric.total_leaves // n_all)
        power_w = n_servers * self.server_w + n_leaves * self.leaf.power_w
        return power_w, n_servers * server.n_rack_units + n_leaves * self.leaf.n_rack_units

    def is_held(self, n_servers: int) -> bool:
        """Whether a rack powers and holds them."""
        rack, (power_w, units) = self.assumed.rack, self.needs(n_servers)
        n_units = int(rack.n_rack_units * self.assumed.usable_rack_fraction)
        return power_w <= rack.power_limit_w and units <= n_units

    def is_whole(self, n_npus: int) -> bool:
        """Whether leaves would stand with all of their NPUs in racks of so many."""
        settings = self.built.settings and replace(self.built.settings, npus_per_rack=n_npus)
        return leaves_in_racks(replace(self.built, settings=settings))

    def racks(self, most: int) -> Iterator[LeafRacks]:
        """The racks, as the plan says or of as many NPUs as they hold; none without such leaves.

        Parameters
        ----------
        most : servers of a rack without a leaf.
        """
        server, assumed = self.assumed.server, self.assumed
        said = self.built.settings.npus_per_rack if self.built.settings else None
        has_own = server.includes.n_racks
        held = [n for n in range(1, most + 1) if has_own or self.is_held(n)]
        sizes = [n * server.n_npus // max(1, has_own) for n in held]
        whole = [n for n in sizes if n <= (said or n) and self.is_whole(n)]
        n_npus = said or max(whole, default=0)
        if not n_npus or (has_own and not said):
            return
        needed_w, units = self.needs(-(-n_npus // server.n_npus))
        lengths_m = assumed.cable_lengths_m
        yield LeafRacks(
            label=self.built.label,
            tier=f"{bill.place_of(self.built.label, self.built.tier)}, {HOST_LEAF}",
            n_npus=n_npus,
            n_held=max(sizes, default=0),
            is_said=said is not None,
            n_whole=max(whole, default=0),
            needed_w=needed_w,
            needed_units=units,
            rack=None if has_own else assumed.rack,
            usable_rack_fraction=assumed.usable_rack_fraction,
            lengths_m=(lengths_m[TOP_OF_RACK], lengths_m[HOST_LEAF]),
        )
