"""The other wiring of a design's rails, where it has the same bandwidths for less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.cluster import RAIL_ONLY
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import RealizedDesign, realize
from libra_planner.fabric.sizing import switch_port_Bps
from libra_planner.fabric.topology import RAIL, RAIL_OPTIMIZED
from libra_planner.procurement.bill import SWITCH, Need, Parts
from libra_planner.procurement.cluster import stack_bill
from libra_planner.procurement.lines import FabricShop, Purchase
from libra_planner.units import format_usd

_OTHER = {RAIL: RAIL_OPTIMIZED, RAIL_OPTIMIZED: RAIL}
_MATERIAL = Decimal("0.01")
"""Share of a network's price from which the other wiring is worth a word."""
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Rewired:
    """Rails that are wired otherwise, at the same bandwidths.

    Parameters
    ----------
    what : how they are wired.
    edit : what makes it of a plan.
    usd, saved_usd : switches, cables and optics without NICs; how much less that is.
    design : its fabric.
    """

    what: str
    edit: str
    usd: Decimal
    saved_usd: Decimal
    design: RealizedDesign

    def short(self, letter: str = "") -> str:
        """What it saves, of a design of a report, without what makes it of a plan."""
        saved = format_usd(float(self.saved_usd))
        whose = f"bandwidths of {letter}" if letter else "same bandwidths"
        return f"{self.what} have the {whose} for {saved} less"

    @property
    def text(self) -> str:
        """What it saves, and what makes it of a plan."""
        usd, own = format_usd(float(self.usd)), format_usd(float(self.usd + self.saved_usd))
        return (
            f"{self.short()}, {usd} of switches, cables and optics in place of {own} ({self.edit})"
        )

    def is_that_of(self, other: RealizedDesign) -> bool:
        """Whether another design has its sizes, its tiers in brackets and its wiring."""
        own = self.design
        if own.topology.sizes != other.topology.sizes:
            return False
        return own.topology.stacks == other.topology.stacks and _wirings(own) == _wirings(other)


def _wirings(design: RealizedDesign) -> list[str]:
    """How the switches of every dimension are wired; empty without switches."""
    return [one.settings.wiring if one.settings else "" for one in design.dimensions]


def rewired(bought: Purchase, shop: FabricShop) -> Rewired | None:
    """The cheapest other wiring of the rails, where it is a hundredth cheaper.

    Rails whose leaves have spines of their own or share them, and rails of one switch, which need
    no spines: of more ports than the plan says where the catalogue has them. ``None`` also where a
    part has no price, and for designs without one stack.

    Parameters
    ----------
    bought : the design from whole ports.
    shop : whose prices count.
    """
    if len(bought.design.topology.stacks) != 1 or not any(bought.scale_out):
        return None
    own = stack_bill(bought, shop)
    found = []
    for what, edit, other in _others(bought, shop.parts):
        bill = stack_bill(other, shop)
        if not own.missing and not bill.missing:
            saved_usd = own.total_usd - bill.total_usd
            found.append(Rewired(what, edit, bill.total_usd, saved_usd, other.design))
    best = min(found, key=lambda one: one.usd, default=None)
    return best if best and best.saved_usd >= _MATERIAL * own.total_usd else None


def _others(bought: Purchase, parts: Parts) -> Iterator[tuple[str, str, Purchase]]:
    """Other wirings, what makes them of the plan, and what they buy."""
    design, tiers = bought.design, bought.design.topology.stacks[0]
    settings = design.dimensions[tiers.start].settings
    if settings is None or settings.wiring not in _OTHER:
        return
    wiring = _OTHER[settings.wiring]
    built = _rewired(design, wiring)
    if built is not None:
        words = {RAIL: "spines of their own for every rail", RAIL_OPTIMIZED: "spines of all rails"}
        name = RAIL_ONLY if wiring == RAIL else wiring
        yield words[wiring], f"--set fabric.realization.wiring={name}", _bought(bought, built)
    whole = _whole_rails(design, parts)
    if whole is not None:
        topology, radix = whole.topology, whole.realization.switches[tiers.start]
        edit = f'--set "fabric.topology={topology}"'
        if any(topology.tiers):
            edit += f' --set "fabric.tiers=[{", ".join(map(str, topology.tiers))}]"'
        if radix is not None and radix.switch_radix != settings.switch_radix:
            edit += f" --set fabric.realization.switch_radix={radix.switch_radix}"
        names = zip(design.topology.tiers, design.topology.labels, strict=True)
        gone = " and ".join([tier or label for tier, label in names][tiers.start + 1 :])
        yield (
            "rails of one switch each, without spines,",
            f"{edit}, and no rule on {gone}; rails share no switch then",
            replace(_bought(bought, whole), scale_out=bought.scale_out[: topology.n_dims]),
        )


def _bought(bought: Purchase, built: RealizedDesign) -> Purchase:
    return replace(bought, design=built, parts=design_parts(built).dimensions)


def _rewired(design: RealizedDesign, wiring: str) -> RealizedDesign | None:
    """The same dimensions with another wiring; ``None`` where it has less bandwidth."""
    links, tiers = design.realization, design.topology.stacks[0]
    switches = tuple(
        replace(one, wiring=wiring) if one and dim in tiers else one
        for dim, one in enumerate(links.switches)
    )
    try:
        asked_Bps = [one.asked_Bps for one in design.dimensions]
        built = realize(design.topology, asked_Bps, replace(links, switches=switches))
    except SpecError:
        return None
    is_less = built.bandwidth_Bps < design.bandwidth_Bps * (1 - _ROUNDING)
    return None if is_less.any() else built


def _whole_rails(design: RealizedDesign, parts: Parts) -> RealizedDesign | None:
    """One switch for every rail, where one has a port for every node; else ``None``."""
    topology, links = design.topology, design.realization
    first, last = topology.stacks[0].start, topology.stacks[0].stop
    settings = links.switches[first]
    n_nodes = topology.n_npus // math.prod(topology.sizes[:first])
    if settings is None or last != topology.n_dims:
        return None
    if n_nodes > settings.switch_radix:
        need = Need((SWITCH,), switch_port_Bps(settings, design.dimensions[first].nic_Bps), n_nodes)
        sold = () if settings.parts else parts.fitting(need)
        if not sold:
            return None
        settings = replace(settings, switch_radix=sold[0].n_ports)
    own = replace(topology.dimensions[first], size=n_nodes)
    merged = replace(topology, dimensions=(*topology.dimensions[:first], own))
    switches = (*links.switches[:first], replace(settings, wiring=RAIL))
    asked_Bps = [one.asked_Bps for one in design.dimensions[: first + 1]]
    try:
        built = realize(merged, asked_Bps, replace(links, switches=switches))
    except SpecError:
        return None
    fabric = built.networks[-1].fabric
    return built if isinstance(fabric, Clos) and [*fabric.n_switches] == ["leaf"] else None
