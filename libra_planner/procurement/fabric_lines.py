"""Lines of a bill for the links of a design: parts where they are sold as such (C7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from libra_planner.costing import PricePart
from libra_planner.fabric.construction import TOP_OF_RACK
from libra_planner.fabric.parts import CableParts, DimensionParts, SwitchParts
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.procurement.assumptions import Assumptions
from libra_planner.procurement.bill import NETWORK, Line
from libra_planner.procurement.included import holds, included, with_included_nics
from libra_planner.procurement.parts import (
    FIBRE,
    LINK,
    NIC,
    OPTIC,
    SWITCH,
    Part,
    Parts,
    Price,
    to_cents,
)
from libra_planner.procurement.purchase import Purchase
from libra_planner.units import format_bandwidth, gigabytes_per_s


@dataclass(frozen=True)
class Book:
    """The plan's price book: what a GB/s costs where no parts are sold.

    Parameters
    ----------
    prices : those that the fabric uses.
    as_of, source : of the file; a book does not say how sure it is, so it counts as assumed.
    """

    prices: tuple[PricePart, ...]
    as_of: str = "unknown"
    source: str = "the plan's price book"

    def usd_per_GBps(self, tier: str, part: str) -> float:
        """A price of the book; 0 where the tier has no such part."""
        found = (p.usd_per_GBps for p in self.prices if (p.tier, p.part) == (tier, part))
        return next(found, 0.0)

    def is_without_nic(self, tier: str) -> bool:
        """Whether NPUs reach the tier's switches from ports of their own (``nic: 0``)."""
        nics = [p.usd_per_GBps for p in self.prices if (p.tier, p.part) == (tier, NIC)]
        return bool(nics) and not any(nics)


@dataclass(frozen=True)
class FabricShop:
    """Where the links of a design are bought."""

    parts: Parts
    assumptions: Assumptions
    book: Book

    def lines(self, bought: Purchase, group: str = NETWORK) -> tuple[Line, ...]:
        """Lines of all dimensions, innermost first."""
        found: list[Line] = []
        server = self.assumptions.server
        for dim, (built, parts, scale_out) in enumerate(bought.dimensions):
            if built.fabric is not None:
                lines = self.scale_out_lines if scale_out else self._priced_lines
                made = lines(built, parts, group)
                found += (included(x, server) for x in made) if holds(bought, dim, server) else made
        n_servers = -(-bought.design.topology.n_npus // max(1, server.n_npus))
        counted = with_included_nics(found, server, n_servers, self.parts)
        return tuple(line for line in counted if line.n_units)

    def _priced_lines(
        self, built: RealizedDimension, parts: DimensionParts, group: str
    ) -> Iterator[Line]:
        """Links, and scale-up switch ports, at the price book's prices per GB/s."""
        tier = _tier(built.label, built.tier)
        if built.settings is None:
            for cable in parts.cables:  # Both ends of a link inject.
                link = self._priced(built.tier, "link", cable.speed_Bps, n_ends=2)
                yield Line(group, tier, link, cable.n_cables)
            return
        speed_Bps = built.bandwidth_Bps / built.n_nics
        one = "a switch" if parts.n_switches == 1 else f"{parts.n_switches:,} switches"
        note = f"{one}, one for each group"
        for part in ("link", "switch"):
            priced = self._priced(built.tier, part, speed_Bps)
            yield Line(group, tier, priced, parts.n_ports_used, note)

    def _priced(self, tier: str, part: str, speed_Bps: float, *, n_ends: int = 1) -> Part:
        per_GBps = self.book.usd_per_GBps(tier, part)
        usd = to_cents(n_ends * gigabytes_per_s(speed_Bps) * per_GBps)
        what = f"{tier} {'link' if part == 'link' else 'switch port'}"
        description = (
            f"{what}, {format_bandwidth(speed_Bps)} each way, at ${per_GBps:g} per GB/s"
            f"{' and end' if n_ends > 1 else ''}"
        )
        price = Price(usd, "assumed", self.book.as_of, self.book.source)
        name = f"{what} {gigabytes_per_s(speed_Bps):.4g} GB/s"
        return Part(
            name, LINK, description, price, port_speed_Bps=speed_Bps, priced_by=f"{what} per GB/s"
        )

    def scale_out_lines(
        self, built: RealizedDimension, parts: DimensionParts, group: str
    ) -> Iterator[Line]:
        """NICs, switches, cables and optics of a switch dimension."""
        settings = built.settings
        if settings is None:
            return
        tier, speed_Bps = _tier(built.label, built.tier), built.bandwidth_Bps / built.n_nics
        if not self.book.is_without_nic(built.tier):
            yield Line(group, f"{tier}, host", self.parts.port(NIC, speed_Bps), parts.n_nics)
        switch = self.parts.port(SWITCH, speed_Bps, n_ports=settings.switch_radix)
        for one in parts.switches:
            note = _ports_note(one, switch)
            yield Line(group, f"{tier}, {one.tier}", switch, one.n_switches, note)
        for cable in parts.cables:
            yield from self._cables(f"{tier}, {cable.joins}", cable, group)

    def _cables(self, tier: str, cable: CableParts, group: str) -> Iterator[Line]:
        lengths_m = self.assumptions.cable_lengths_m
        length_m = lengths_m[TOP_OF_RACK if cable.in_rack else cable.joins]
        medium = self.parts.medium(cable.speed_Bps, length_m)
        note = f"{length_m:g} m assumed"
        if medium.kind != OPTIC:
            yield Line(group, tier, medium, cable.n_cables, note)
            return
        yield Line(group, tier, medium, 2 * cable.n_cables, f"two per cable, {note}")
        fibre = self.parts.named(medium.cable or f"fibre of {medium.name}", FIBRE)
        yield Line(group, tier, fibre, cable.n_cables, note)


def _tier(label: str, tier: str) -> str:
    return label if tier in ("", label) else f"{label} {tier}"


def n_free_ports(switches: SwitchParts, part: Part) -> int:
    """Ports without a cable of all switches; a part may have more than the design counts on."""
    radix = (switches.n_ports_used + switches.n_ports_free) // max(1, switches.n_switches)
    return switches.n_switches * max(part.n_ports, radix) - switches.n_ports_used


def _ports_note(switches: SwitchParts, part: Part) -> str:
    free = n_free_ports(switches, part)
    return f"{switches.n_ports_used:,} ports used, {free:,} free"
