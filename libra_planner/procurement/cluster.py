"""The bill of a cluster's network that is sized without a plan: NICs, switches, cables, optics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.errors import SpecError
from libra_planner.fabric.cluster import (
    RAIL_ONLY,
    WIRINGS,
    ClusterNetwork,
    ClusterOrder,
    cluster_network,
)
from libra_planner.fabric.parts import HOST_LEAF, design_parts, switch_parts
from libra_planner.fabric.realization import realize
from libra_planner.fabric.topology import RAIL, SwitchSettings, Topology
from libra_planner.procurement.bill import (
    NIC,
    SWITCH,
    Bill,
    Line,
    Need,
    Part,
    Parts,
    with_one_stock,
)
from libra_planner.procurement.bought.cabling import bought_line, link_needs
from libra_planner.procurement.bought.cages import cages_of
from libra_planner.procurement.bought.choices import Naming, refuse_unfit, with_modules
from libra_planner.procurement.bought.refills import LEAST_OF_BILL, Refill, best_refill
from libra_planner.procurement.lines import FabricShop, Purchase, system_bill
from libra_planner.procurement.quotes import quoted_bill

_WIRING_OF = {RAIL: RAIL_ONLY}
"""What orders of a cluster call the wiring of a stack: rails that share no switch."""
_MANY_FREE, _MATERIAL = Decimal("0.25"), Decimal("0.01")
"""Share of a tier's ports, and of a network's price, from which free ports are worth a word."""

_ROUNDING = 1e-6


PART = "--part"
"""Where a command names parts."""


def cluster_bill(
    network: ClusterNetwork,
    shop: FabricShop,
    n_per_fibre: int = 2,
    named: Mapping[str, Sequence[str]] | None = None,
) -> Bill:
    """NICs, switches by tier, cables and optics by layer.

    Parameters
    ----------
    network : what is built.
    shop : where it is bought.
    n_per_fibre : as :meth:`~libra_planner.fabric.cluster.ClusterNetwork.transceivers` has it.
    named : names of parts by kind, which stand in for all others of their kind.

    Raises
    ------
    SpecError
        For names of no part, or of parts that do not fit.
    """
    own = {kind: tuple(names) for kind, names in (named or {}).items()}
    if own:
        needs = [*with_modules(_needs(network, shop, n_per_fibre), own, shop.parts)]
        refuse_unfit([Naming(0, own, needs, flag=PART)], shop.parts)
    settings = SwitchSettings(parts=tuple(own.items()))
    lines = [line for line in _lines(network, shop, n_per_fibre, settings) if line.n_units]
    return quoted_bill(Bill(with_one_stock(lines)), shop.quotes, shop.assumptions.tax_fraction)


def _lines(
    network: ClusterNetwork,
    shop: FabricShop,
    n_per_fibre: int,
    named: SwitchSettings | None = None,
) -> Iterator[Line]:
    """Lines of a network; ``named`` has the parts that a plan names for it."""
    order, clos, radix = network.order, network.clos, network.order.switch_radix
    nic = shop.choice(Need((NIC,), order.nic_Bps), named)
    yield bought_line("host", nic, order.n_hosts * order.n_nics_per_host)
    switch = shop.choice(Need((SWITCH,), order.speed_Bps, n_ports=radix), named)
    for tier in switch_parts(clos, order.settings, network.links[HOST_LEAF]):
        yield bought_line(tier.tier, switch, tier.n_switches)
    cages = cages_of(switch.taken.part, order.speed_Bps, clos) if n_per_fibre == 2 else None
    for cable in network.cable_parts(n_per_fibre):
        yield from shop.cable_lines(cable.joins, cable, named, cages)


def _needs(network: ClusterNetwork, shop: FabricShop, n_per_fibre: int) -> Iterator[Need]:
    """What the parts of a network are for."""
    order, lengths_m = network.order, shop.assumptions.cable_lengths_m
    yield Need((NIC,), order.nic_Bps)
    yield Need((SWITCH,), order.speed_Bps, n_ports=order.switch_radix)
    for cable in network.cable_parts(n_per_fibre):
        if cable.n_cables:
            yield from link_needs(cable, lengths_m[cable.joins])


def other_switches(order: ClusterOrder, parts: Parts) -> Iterator[ClusterOrder]:
    """The same hosts, wiring and tapers on other switches of a catalogue that has their price.

    Their ports are as fast as a NIC in a plane, or twice as fast for two NICs (breakout).

    Examples
    --------
    >>> from libra_planner.procurement.bill import Part, Price
    >>> small = Part("s", SWITCH, "", port_speed_Bps=50e9, n_ports=64, price=Price(Decimal(1)))
    >>> fast = replace(small, name="f", port_speed_Bps=100e9)
    >>> unpriced = replace(fast, name="u", n_ports=128, price=None)
    >>> parts = Parts({"s": small, "f": fast, "u": unpriced})
    >>> [(one.port_Bps, one.switch_radix) for one in other_switches(ClusterOrder(256), parts)]
    [(100000000000.0, 64)]
    """
    for speed_Bps, n_ports in ports_on_sale(order.nic_Bps / order.n_planes, parts):
        if (speed_Bps, n_ports) != (order.speed_Bps, order.switch_radix):
            with suppress(SpecError):
                yield replace(order, port_Bps=speed_Bps, switch_radix=n_ports)


def ports_on_sale(link_Bps: float, parts: Parts) -> list[tuple[float, int]]:
    """Speeds and numbers of ports of switches with a price that serve links of NICs."""
    sold = {(x.port_speed_Bps, x.n_ports) for x in parts.of_kind(SWITCH) if x.price is not None}
    n_each = _LINKS_OF_A_PORT
    return sorted(x for x in sold if any(math.isclose(x[0], n * link_Bps) for n in n_each))


_LINKS_OF_A_PORT = (1, 2)
"""Links of NICs that share a port of another switch: of more, lanes of modules may not agree."""


@dataclass(frozen=True)
class FreePorts:
    """Ports of a design that no cable needs, where a network of fewer switches joins its hosts.

    Parameters
    ----------
    tier : of the switches with the most money in free ports, such as leaf.
    n_free_ports, n_ports : of that tier.
    usd : what these ports are of the price of the tier's switches, without spares.
    network : of the same hosts, NICs and taper, whose leaves need not hold equal groups.
    saved_usd : that it costs less, spares and support included.
    refill : the plan of fewer switches that saves most; ``None`` where no plan saves enough.
    parts : that the plan names for its network, by kind.
    """

    tier: str
    n_free_ports: int
    n_ports: int
    usd: Decimal
    network: ClusterNetwork
    saved_usd: Decimal
    refill: Refill | None = None
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def setting(self) -> str:
        """What makes the refill of a plan, for the command line; empty where there is none."""
        return self.refill.options if self.refill else ""

    @property
    def less_usd(self) -> Decimal:
        """What fewer switches save: the plan that has them, else the network without one."""
        return self.refill.saved_usd if self.refill else self.saved_usd

    @property
    def is_unequal(self) -> bool:
        """Whether its leaves hold no equal groups, so that a step may take longer."""
        return self.refill.is_unequal if self.refill else len(self.n_switches) > 1

    @property
    def caution(self) -> str:
        """What stands beside its money: nobody has checked its step."""
        return " (its step may take longer: not checked)" if self.is_unequal else ""

    @property
    def n_switches(self) -> Mapping[str, int]:
        """Switches by tier of what saves that."""
        found = self.network.clos.n_switches
        return self.refill.n_switches if self.refill else {k: n for k, n in found.items() if n}


def free_ports(
    bought: Purchase, shop: FabricShop, npu: Part | None = None, *, only_stacks: bool = False
) -> FreePorts | None:
    """The free ports of a stack's switches; ``None`` where they are few, or nothing is cheaper.

    Many are a quarter of a tier's, if the other network saves a hundredth of the price, too.
    Both are at the prices of the shop, without NICs, of which both have as many.

    Parameters
    ----------
    bought, shop : the design, and where it is bought.
    npu : the plan's NPU, whose power decides on racks; ``None`` for that of the assumptions.
    only_stacks : whether the plan must have its tiers in brackets (``prices: bill``).
    """
    order = same_order(bought)
    if order is None:
        return None
    own = stack_bill(bought, shop)
    wasted = max((x for x in own.lines if x.n_ports), key=lambda x: x.free_ports_usd, default=None)
    if wasted is None or wasted.n_free_ports < _MANY_FREE * wasted.n_ports:
        return None
    try:
        network = cluster_network(order)
    except SpecError:
        return None
    [tiers] = bought.design.topology.stacks
    first = bought.design.dimensions[tiers[0]].settings
    other = _priced(_lines(network, shop, 2, first), shop)
    saved_usd = own.total_usd - other.total_usd
    least_usd = _MATERIAL * own.total_usd
    if own.missing or other.missing or min(saved_usd, wasted.free_ports_usd) < least_usd:
        return None
    tier = wasted.tier.rpartition(", ")[2]
    counts = wasted.n_free_ports, wasted.n_ports
    taper = None if only_stacks or len(order.tapers) != 1 else order.tapers[0]
    refill = best_refill(bought, shop, npu, taper, least_usd)
    if refill is None and saved_usd < LEAST_OF_BILL * system_bill(bought, shop, npu)[0].total_usd:
        return None
    parts = first.parts if first else ()
    return FreePorts(tier, *counts, wasted.free_ports_usd, network, saved_usd, refill, parts)


def regrouped_usd(bought: Purchase, shop: FabricShop, topology: Topology) -> Decimal | None:
    """Switches, cables and optics of the only stack of a design with other sizes.

    ``None`` where they cannot be built, or a part has no price.

    Parameters
    ----------
    bought : the design, whose bandwidths and settings are kept.
    shop : whose prices count.
    topology : the same dimensions; sizes may differ.
    """
    asked_Bps = [one.asked_Bps for one in bought.design.dimensions]
    try:
        built = realize(topology, asked_Bps, bought.design.realization)
    except SpecError:
        return None
    other = replace(bought, design=built, parts=design_parts(built).dimensions)
    found = stack_bill(other, shop)
    return None if found.missing else found.total_usd


def stack_bill(bought: Purchase, shop: FabricShop) -> Bill:
    """The switches, cables and optics of the only stack of a design, else of its last dimension.

    Parameters
    ----------
    bought : the design.
    shop : whose prices count.
    """
    topology = bought.design.topology
    dims = topology.stacks[0] if topology.stacks else (topology.n_dims - 1,)
    labels = [topology.labels[dim] for dim in dims]
    return _priced((x for x in shop.lines(bought) if x.dimension in labels), shop)


def _priced(lines: Iterable[Line], shop: FabricShop) -> Bill:
    """Switches, cables and optics at the prices of a shop, quotes included."""
    found = tuple(line for line in lines if line.n_units and line.part.kind != NIC)
    return quoted_bill(Bill(with_one_stock(found)), shop.quotes)


def same_order(bought: Purchase) -> ClusterOrder | None:
    """What the only network of several tiers has to join; ``None`` for others, or a given shape."""
    design = bought.design
    topology, used = design.topology, [i for i, own in enumerate(bought.scale_out) if own]
    if len(topology.stacks) != 1 or used != [*topology.stacks[0]]:
        return None
    first, settings = design.dimensions[used[0]], design.dimensions[used[0]].settings
    tapers = [
        design.dimensions[i - 1].asked_Bps / one.asked_Bps
        for i, one in list(enumerate(design.dimensions))[used[1] :]
        if one.asked_Bps
    ]
    wiring = _WIRING_OF.get(settings.wiring, settings.wiring) if settings else ""
    if settings is None or wiring not in WIRINGS or len(tapers) not in (1, 2):
        return None
    if settings.n_leaves or settings.n_spines or settings.n_parallel or settings.n_reserved:
        return None
    n_per_host = math.prod(topology.sizes[: used[0]])
    try:
        return ClusterOrder(
            n_hosts=topology.n_npus // n_per_host,
            n_nics_per_host=n_per_host * first.n_nics,
            nic_Bps=first.nic_Bps,
            switch_radix=settings.switch_radix,
            port_Bps=settings.switch_port_Bps,
            uplink_Bps=settings.uplink_Bps,
            tapers=tuple(math.floor(1000 * taper + _ROUNDING) / 1000 for taper in tapers),
            wiring=wiring,
            n_planes=settings.n_planes,
            most_hosts_per_leaf=settings.most_hosts_per_leaf,
        )
    except SpecError:
        return None
