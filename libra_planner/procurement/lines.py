"""Lines of a bill: the fabric from ports that are sold, what is around it, and LIBRA's cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache

from libra_planner.costs.prices import PricePart, tiers_without_nic
from libra_planner.costs.quotes import Quote, quoted_parts
from libra_planner.fabric.clos import Array
from libra_planner.fabric.parts import (
    CableParts,
    DimensionParts,
    design_parts,
)
from libra_planner.fabric.realization import RealizedDesign, RealizedDimension, realize
from libra_planner.fabric.scale_up import ScaleUpDomain
from libra_planner.fabric.sizing import switch_port_Bps
from libra_planner.fabric.topology import (
    TOP_OF_RACK,
    Realization,
    SwitchSettings,
    Topology,
    parse_topology,
)
from libra_planner.problem import Problem
from libra_planner.procurement import bill
from libra_planner.procurement.bill import (
    ZERO,
    Assumptions,
    Bill,
    Choice,
    Line,
    Need,
    Part,
    Parts,
    Price,
)
from libra_planner.procurement.bought.cabling import bought_line, cable_lines, link_needs
from libra_planner.procurement.bought.cages import Cages, cages_of
from libra_planner.procurement.bought.choices import (
    Naming,
    choice,
    named_parts,
    refuse_unfit,
    with_modules,
)
from libra_planner.procurement.bought.servers import Facility, domain_line, facility
from libra_planner.procurement.quotes import for_bills, lump_lines, quoted_bill
from libra_planner.units import format_bandwidth, gigabytes_per_s


@dataclass(frozen=True)
class Purchase:
    """A design from whole ports.

    Parameters
    ----------
    design : its links; ports that the plan gives no speed run at one that is sold.
    parts : what they are made of, by dimension.
    scale_out : the dimensions whose NICs, switches and cables are parts of a catalogue; the
        others, scale-up switches (C14) and direct links, are priced per GB/s by the price book.
    chosen_speeds : labels of the dimensions whose port speed the plan leaves open.
    scale_up : the part that the innermost dimensions are (C14), where the plan names one.
    """

    design: RealizedDesign
    parts: tuple[DimensionParts, ...]
    scale_out: tuple[bool, ...]
    chosen_speeds: tuple[str, ...] = ()
    scale_up: ScaleUpDomain | None = None

    @property
    def n_npus(self) -> int:
        """NPUs to buy: those of whole scale-up domains, used or not (C13)."""
        topology = self.design.topology
        return self.scale_up.n_npus_bought(topology) if self.scale_up else topology.n_npus

    @property
    def domain_dims(self) -> Collection[int]:
        """The dimensions that the scale-up domain is."""
        return self.scale_up.dims(self.design.topology) if self.scale_up else ()

    def in_racks_of(self, n_npus: Mapping[str, int]) -> Purchase:
        """The same with so many NPUs in one rack, by the label of a network."""
        own = tuple(
            replace(one, settings=replace(one.settings, npus_per_rack=n_npus[one.label]))
            if one.settings and one.label in n_npus
            else one
            for one in self.design.dimensions
        )
        design = replace(self.design, dimensions=own)
        return replace(self, design=design, parts=design_parts(design).dimensions)

    @property
    def dimensions(self) -> list[tuple[RealizedDimension, DimensionParts, bool]]:
        """Links, parts and whether they are scale-out, innermost first."""
        return list(zip(self.design.dimensions, self.parts, self.scale_out, strict=True))


def purchase(problem: Problem, bandwidth_Bps: Array, parts: Parts) -> Purchase:
    """What to buy for a design.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_Bps : per NPU, shape (n_dims,), byte/s.
    parts : whose port speeds are sold.

    Raises
    ------
    SpecError
        For a design that cannot be built.
    """
    topology, links = problem.topology, problem.links
    switches, chosen = list(links.switches), []
    for dim, settings in enumerate(links.switches):
        is_tier = topology.dimensions[dim].shares_port
        if settings is None or settings.one_switch or is_tier or settings.port_speed_Bps:
            continue
        speed_Bps = parts.port_speed_Bps(float(bandwidth_Bps[dim]) / (settings.n_nics or 1))
        switches[dim] = replace(settings, port_speed_Bps=speed_Bps)
        chosen.append(topology.labels[dim])
    design = realize(topology, bandwidth_Bps, replace(links, switches=tuple(switches)))
    parts_of = design_parts(design).dimensions
    return Purchase(design, parts_of, links.networks, tuple(chosen), problem.scale_up)


_ROUNDING = 1e-9


def included_domain(bought: Purchase) -> ScaleUpDomain | None:
    """The scale-up domain of a plan, where the price of a server holds it."""
    domain = bought.scale_up
    return domain if domain is not None and domain.server else None


def holds(bought: Purchase, dim: int, server: Part) -> bool:
    """Whether the price of a server holds the links and switches of a dimension.

    Its groups, with all that is inside them, must fill whole servers. A part that the plan names
    says so itself.
    """
    if dim in bought.domain_dims:
        return included_domain(bought) is not None
    is_scale_up = not bought.scale_out[dim] and server.includes.scale_up_Bps > 0
    n_inside = math.prod(bought.design.topology.sizes[: dim + 1])
    return is_scale_up and server.n_npus % n_inside == 0


def included(line: Line, server: Part) -> Line:
    """A line at no price of its own, as that of a server holds it; its spares are the servers'."""
    part, words = line.part, f"included in {server.name}"
    same = replace(
        part,
        name=f"{part.name}, {words}",
        description=f"{part.description}; {words}",
        price=replace(
            server.price or Price(ZERO),
            usd=ZERO,
            source=f"{words}: see there",
            low_usd=None,
            high_usd=None,
            support_usd=None,
        ),
        spare_fraction=0.0,
        priced_by="",
    )
    return replace(line, part=same, note="; ".join(filter(None, (line.note, words))))


NOT_PRICED = "direct links are not priced"


def _said_free(line: Line, built: RealizedDimension) -> Line:
    """A line that says so where direct links have no price, and no server holds them."""
    is_free = built.settings is None and line.part.price is not None and not line.part.price.usd
    return replace(line, note=NOT_PRICED) if is_free else line


@lru_cache(maxsize=64)
def _included_line(domain: ScaleUpDomain, topology: Topology, server: Part) -> Line:
    """The line of a scale-up domain that servers include, alike for all options of a network."""
    return included(domain_line(domain, topology), server)


def with_included_nics(
    lines: Iterable[Line], server: Part, n_servers: int, parts: Parts
) -> Iterator[Line]:
    """The lines with those NICs at no price that the servers bring, as far as they go.

    A NIC of a server serves every port that is not faster than its own.
    """
    left = {name: n_servers * n for name, n in server.includes.nics}
    for line in lines:
        brought = (nic for nic in parts.of_kind(bill.NIC) if left.get(nic.name))
        fast = (nic for nic in brought if nic.carries(line.part.port_speed_Bps))
        found = next(fast, None) if line.part.kind == bill.NIC else None
        if found is None:
            yield line
            continue
        n_free = min(left[found.name], line.n_units)
        left[found.name] -= n_free
        yield included(replace(line, part=found, n_units=n_free), server)
        if line.n_units > n_free:
            yield replace(line, n_units=line.n_units - n_free)


@dataclass(frozen=True)
class Book:
    """The plan's price book: what a GB/s costs where no parts are sold.

    Parameters
    ----------
    prices : those that the fabric uses.
    as_of, source : of the file.
    """

    prices: tuple[PricePart, ...]
    as_of: str = "unknown"
    source: str = "the plan's price book"

    def price(self, tier: str, part: str) -> PricePart:
        """A price of the book; of $0 where the tier has no such part."""
        found = (p for p in self.prices if (p.tier, p.part) == (tier, part))
        return next(found, PricePart(tier, part, 0.0, ()))


@dataclass(frozen=True)
class FabricShop:
    """Where the links of a design are bought.

    Parameters
    ----------
    quotes : of parts, NPUs and tiers, instead of the prices of the catalogues.
    """

    parts: Parts
    assumptions: Assumptions
    book: Book
    quotes: tuple[Quote, ...] = ()

    def lines(self, bought: Purchase) -> tuple[Line, ...]:
        """Lines of all dimensions, innermost first.

        Raises
        ------
        SpecError
            For names of no part, or of parts that do not fit.
        """
        refuse_unfit([*self._namings(bought)], self.parts)
        found: list[Line] = []
        server, own = self.assumptions.server, included_domain(bought)
        if own is not None:
            found.append(_included_line(own, bought.design.topology, server))
        for dim, (built, parts, scale_out) in enumerate(bought.dimensions):
            if built.fabric is None or (own is not None and dim in bought.domain_dims):
                continue
            lines = self.scale_out_lines if scale_out else self._priced_lines
            made = lines(built, parts)
            is_held = holds(bought, dim, server)
            found += (included(x, server) if is_held else _said_free(x, built) for x in made)
        counted = with_included_nics(found, server, self.n_servers(bought), self.parts)
        return tuple(line for line in counted if line.n_units)

    def n_servers(self, bought: Purchase) -> int:
        """Servers that hold all NPUs."""
        return -(-bought.n_npus // max(1, self.assumptions.server.n_npus))

    def _priced_lines(self, built: RealizedDimension, parts: DimensionParts) -> Iterator[Line]:
        """Links, and scale-up switch ports, at the price book's prices per GB/s."""
        tier = bill.place_of(built.label, built.tier)
        if built.settings is None:
            for cable in parts.cables:  # Both ends of a link inject.
                link = self._priced(built.tier, "link", cable.speed_Bps, n_ends=2)
                yield Line(bill.NETWORK, tier, link, cable.n_cables)
            return
        speed_Bps = built.bandwidth_Bps / built.n_nics
        one = "a switch" if parts.n_switches == 1 else f"{parts.n_switches:,} switches"
        note = f"{one}, one for each group"
        for part in ("link", "switch"):
            priced = self._priced(built.tier, part, speed_Bps)
            yield Line(bill.NETWORK, tier, priced, parts.n_ports_used, note)

    def _priced(self, tier: str, part: str, speed_Bps: float, *, n_ends: int = 1) -> Part:
        found = self.book.price(tier, part)
        per_GBps = found.usd_per_GBps
        exact_usd = Decimal(repr(float(n_ends * gigabytes_per_s(speed_Bps) * per_GBps)))
        what = f"{tier} {'link' if part == 'link' else 'switch port'}"
        description = (
            f"{what}, {format_bandwidth(speed_Bps)} each way, at ${per_GBps:g} per GB/s"
            f"{' and end' if n_ends > 1 else ''}"
        )
        price = Price(bill.to_cents(exact_usd), found.confidence, self.book.as_of, self.book.source)
        if found.quote is not None:
            own = found.quote
            price = replace(price, as_of=own.date, source=own.source, valid_until=own.valid_until)
            price = replace(price, seller=own.seller, currency=own.currency, rate=own.rate)
            rate = Decimal(repr(float(own.rate)))
            amount = bill.to_cents(exact_usd / rate)
            price = replace(price, amount=amount, usd=amount * rate)
        name, per = f"{what} {gigabytes_per_s(speed_Bps):.4g} GB/s", f"{what} per GB/s"
        return Part(name, bill.LINK, description, price, port_speed_Bps=speed_Bps, priced_by=per)

    def choice(
        self,
        need: Need,
        settings: SwitchSettings | None = None,
        beside: Need | None = None,
        fibre: str = "",
    ) -> Choice:
        """The part that is bought for a need, as the plan names it or a price decides.

        Parameters
        ----------
        need, settings : what it is for, and what a plan names.
        beside, fibre : another need at the other end of a fibre, and the fibre of an optic.
        """
        key = need, settings.parts if settings is not None else (), beside, fibre
        if key not in self._choices:
            named = named_parts(settings)
            self._choices[key] = choice(need, self.parts, self._quotes, named, beside, fibre)
        return self._choices[key]

    @cached_property
    def _choices(self) -> dict[tuple[object, ...], Choice]:
        return {}

    @cached_property
    def _quotes(self) -> dict[str, Quote]:
        return quoted_parts(self.quotes)

    def _namings(self, bought: Purchase) -> Iterator[Naming]:
        """What the plan names for each network of parts."""
        for dim, (built, parts, scale_out) in enumerate(bought.dimensions):
            named, settings = named_parts(built.settings), built.settings
            if named and scale_out and built.fabric is not None and settings is not None:
                needs = [self._nic_need(built), self._switch_need(built, settings)]
                for cable in parts.cables:
                    needs += link_needs(cable, self._length_m(cable))
                yield Naming(dim, named, [*with_modules(needs, named, self.parts)])

    def _length_m(self, cable: CableParts) -> float:
        return self.assumptions.cable_lengths_m[TOP_OF_RACK if cable.in_rack else cable.joins]

    def _nic_need(self, built: RealizedDimension) -> Need:
        return Need((bill.NIC,), built.nic_Bps)

    def _switch_need(self, built: RealizedDimension, settings: SwitchSettings) -> Need:
        port_Bps = switch_port_Bps(settings, built.nic_Bps)
        return Need((bill.SWITCH,), port_Bps, n_ports=settings.switch_radix)

    def scale_out_lines(self, built: RealizedDimension, parts: DimensionParts) -> Iterator[Line]:
        """NICs, switches, cables and optics of a switch dimension."""
        settings = built.settings
        if settings is None:
            return
        tier, nic_Bps = bill.place_of(built.label, built.tier), built.nic_Bps
        if parts.n_nics and built.tier not in tiers_without_nic(self.book.prices):
            nic = self.choice(self._nic_need(built), settings)
            own = bought_line(f"{tier}, host", nic, parts.n_nics)
            yield replace(own, speed_Bps=nic_Bps)
        need = self._switch_need(built, settings)
        found = self.choice(need, settings)
        switch = found.taken.part
        for one in parts.switches:
            # A part may have more ports than the design counts on.
            n_used = one.n_ports_used
            radix = (n_used + one.n_ports_free) // max(1, one.n_switches)
            n_ports = one.n_switches * max(switch.n_ports, radix)
            note = f"{n_used:,} ports used, {n_ports - n_used:,} free"
            own = bought_line(f"{tier}, {one.tier}", found, one.n_switches, note)
            own = replace(own, n_ports=n_ports, n_free_ports=n_ports - n_used)
            yield replace(own, speed_Bps=need.speed_Bps)
        cages = cages_of(switch, need.speed_Bps, built.fabric)
        for cable in parts.cables:
            yield from self.cable_lines(f"{tier}, {cable.joins}", cable, settings, cages)

    def cable_lines(
        self,
        tier: str,
        cable: CableParts,
        settings: SwitchSettings | None = None,
        cages: Cages | None = None,
    ) -> Iterator[Line]:
        """Cables of one kind, with their optics where they are long.

        Parameters
        ----------
        tier, cable : what they join, and how many.
        settings : that name parts.
        cages : of the switches at their ends; ``None`` where each holds one port.
        """
        yield from cable_lines(self, tier, cable, self._length_m(cable), settings, cages)


def side_lines(bought: Purchase, shop: FabricShop) -> tuple[Line, ...]:
    """Lines of the networks beside the training fabric: equal for equal servers.

    Raises
    ------
    SpecError
        For more servers than three tiers of such a network join.
    """
    n_hosts = shop.n_servers(bought) * shop.assumptions.server.n_hosts
    networks = shop.assumptions.side_networks
    return tuple(line for network in networks for line in _side_lines(network, n_hosts, shop))


def system_bill(
    bought: Purchase,
    shop: FabricShop,
    npu: Part | None = None,
    sides: Sequence[Line] | None = None,
) -> tuple[Bill, Facility]:
    """The whole bill of a design, and the racks that it needs.

    Where a plan does not say how many NPUs stand in a rack, it is as many as a rack holds.

    Parameters
    ----------
    bought : its links and their parts.
    shop : where everything is bought.
    npu : the plan's NPU; by default that of the assumptions.
    sides : :func:`side_lines`, where they are known already.

    Raises
    ------
    SpecError
        For more servers than three tiers of a frontend or storage network join.
    """
    sides = side_lines(bought, shop) if sides is None else sides
    whole = _without_racks(bought, shop, npu, sides)
    room = facility(whole, shop.assumptions, shop.n_servers(bought), bought.design)
    if found := {one.label: one.n_npus for one in room.leaf_racks if not one.is_said}:
        whole = _without_racks(bought.in_racks_of(found), shop, npu, sides)
        own = facility(whole, shop.assumptions, shop.n_servers(bought), bought.design)
        room = replace(own, leaf_racks=room.leaf_racks)
    racks = Line(bill.FACILITY, "all", shop.assumptions.rack, room.n_racks - room.n_own_racks)
    bought_racks = [racks] if racks.n_units else []
    all_of_it = Bill(bill.with_one_stock([*whole.lines, *bought_racks, *lump_lines(shop.quotes)]))
    quotes = for_bills([all_of_it], shop.quotes)
    if [x.seller for x in quotes] != [x.seller for x in shop.quotes]:
        # What cannot be ordered in these units decides between no parts.
        return system_bill(bought, replace(shop, quotes=quotes), npu)
    return quoted_bill(all_of_it, quotes, shop.assumptions.tax_fraction), room


def _without_racks(
    bought: Purchase, shop: FabricShop, npu: Part | None, sides: Sequence[Line]
) -> Bill:
    """What stands in the racks of a design, at the prices of the catalogue."""
    lines = [
        Line(bill.COMPUTE, "all", npu or shop.assumptions.npu, bought.n_npus),
        Line(bill.COMPUTE, "all", shop.assumptions.server, shop.n_servers(bought)),
    ]
    return Bill((*lines, *shop.lines(bought), *sides))


def _side_lines(network: bill.SideNetwork, n_hosts: int, shop: FabricShop) -> Iterator[Line]:
    """NICs, switches and cables of a network that joins all servers; none for a single one."""
    if n_hosts < 2 or not network.n_ports_per_server:
        return
    settings = SwitchSettings(
        switch_radix=network.switch_radix,
        port_speed_Bps=network.port_speed_Bps,
        oversubscription=network.oversubscription,
        n_reserved=network.n_reserved,
    )
    topology = parse_topology(f"SW({n_hosts})", [network.name])
    speed_Bps = network.n_ports_per_server * network.port_speed_Bps
    design = realize(topology, [speed_Bps], Realization((settings,)))
    [built], [parts] = design.dimensions, design_parts(design).dimensions
    for line in shop.scale_out_lines(replace(built, label=network.name), parts):
        yield replace(line, group=network.name)
