"""Another wiring of a design's rails, or other switches, of the same bandwidths for less."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.cluster import RAIL_ONLY
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import RealizedDesign, realize
from libra_planner.fabric.sizing import switch_port_Bps
from libra_planner.fabric.topology import RAIL, RAIL_OPTIMIZED, SwitchSettings, Topology
from libra_planner.procurement.bill import NIC, SWITCH, Bill, Need, Parts
from libra_planner.procurement.bought.cages import unlike_module_texts
from libra_planner.procurement.cluster import ports_on_sale, stack_bill
from libra_planner.procurement.lines import FabricShop, Purchase
from libra_planner.units import format_line_rate, short_usd

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
    settings : what makes it of a plan, each as ``--set`` takes it.
    end : what comes with that, in words.
    usd, saved_usd : switches, cables and optics without NICs; how much less that is.
    bought : it, from whole ports.
    asked : what has to be asked of its modules, in words; empty for nothing.
    keeps_wiring : whether its rails are wired as before, of other switches.
    """

    what: str
    settings: tuple[str, ...]
    end: str
    usd: Decimal
    saved_usd: Decimal
    bought: Purchase
    asked: str = ""
    keeps_wiring: bool = False

    @property
    def design(self) -> RealizedDesign:
        """Its fabric."""
        return self.bought.design

    @property
    def edit(self) -> str:
        """What makes it of a plan, for a command line, and what comes with it."""
        return f"{' '.join(map(_option, self.settings))}{self.end}"

    def short(self, letter: str = "") -> str:
        """What it saves, of a design of a report, without what makes it of a plan."""
        whose = f"bandwidths of {letter}" if letter else "same bandwidths"
        asked = f" ({self.asked})" if self.asked else ""
        return f"{self.what} have the {whose} for {self.saved_text}{asked}"

    @property
    def saved_text(self) -> str:
        """What it saves, such as ``$4.12M less``."""
        return f"{short_usd(float(self.saved_usd))} less"

    @property
    def text(self) -> str:
        """What it saves, and what makes it of a plan."""
        usd, own = (short_usd(float(x)) for x in (self.usd, self.usd + self.saved_usd))
        return (
            f"{self.short()}, {usd} of switches, cables and optics in place of {own} ({self.edit})"
        )

    def is_that_of(self, other: RealizedDesign) -> bool:
        """Whether another design has its sizes, its tiers in brackets and its wiring."""
        own = self.design
        if own.topology.sizes != other.topology.sizes:
            return False
        return own.topology.stacks == other.topology.stacks and _wirings(own) == _wirings(other)


def _wirings(design: RealizedDesign) -> list[tuple[str, int]]:
    """How the switches of every dimension are wired, and in how many planes; 0 without switches."""
    found = (one.settings for one in design.dimensions)
    return [(one.wiring, one.n_planes) if one else ("", 0) for one in found]


def rewired(bought: Purchase, shop: FabricShop, rules: Sequence[str] = ()) -> Rewired | None:
    """The cheapest other wiring of the rails, where it is a hundredth cheaper.

    Rails whose leaves have spines of their own or share them, and rails of one switch, which need
    no spines: of more ports than the plan says where the catalogue has them. Of several NICs an NPU
    also every port in a network of its own: planes of one switch for every rail. ``None`` also
    where a part has no price, and for designs of several stacks.

    Parameters
    ----------
    bought : the design from whole ports.
    shop : whose prices count.
    rules : of the plan, as it says them.
    """
    if len(bought.design.topology.stacks) > 1 or not any(bought.scale_out):
        return None
    own = stack_bill(bought, shop)
    found = []
    for what, settings, end, other in _others(bought, shop.parts, rules):
        bill = stack_bill(other, shop)
        if not own.missing and not bill.missing:
            saved_usd = own.total_usd - bill.total_usd
            usd, asked = bill.total_usd, _unlike(bill, own)
            found.append(Rewired(what, tuple(settings), end, usd, saved_usd, other, asked))
    best = min(found, key=lambda one: one.usd, default=None)
    return best if best and best.saved_usd >= _MATERIAL * own.total_usd else None


def _unlike(bill: Bill, own: Bill) -> str:
    """What has to be asked of the modules at two ends of a link that the own bill has not."""
    known = {*unlike_module_texts(own)}
    return "; ".join(text for text in unlike_module_texts(bill) if text not in known)


def cheaper_networks(
    bought: Purchase, shop: FabricShop, rules: Sequence[str] = ()
) -> tuple[Rewired, ...]:
    """Networks of the same bandwidths that are a hundredth cheaper.

    The other wiring of the rails, then the other switches, unless that wiring costs no more.

    Parameters
    ----------
    bought, shop, rules : as :func:`rewired` has them.
    """
    wired, switched = rewired(bought, shop, rules), on_other_switches(bought, shop)
    if wired and switched and wired.usd <= switched.usd:
        switched = None
    return tuple(one for one in (wired, switched) if one)


def on_other_switches(bought: Purchase, shop: FabricShop) -> Rewired | None:
    """The cheapest other switches of the catalogue, where they are a hundredth cheaper.

    Their ports serve a NIC each, or two (breakout), and their leaves at least as many nodes.
    ``None`` as for other wirings, and where the plan names switches or says the speed of uplinks.

    Parameters
    ----------
    bought : the design from whole ports.
    shop : whose prices count.
    """
    design, first = bought.design, _first(bought.design)
    settings, topology = design.dimensions[first].settings, design.topology
    dims = topology.stacks[0] if topology.stacks else (first,)
    used = [dim for dim, own in enumerate(bought.scale_out) if own]
    if settings is None or len(topology.stacks) > 1 or used != [*dims]:
        return None
    own = stack_bill(bought, shop)
    if SWITCH in dict(settings.parts) or settings.uplink_Bps is not None or own.missing:
        return None
    found = []
    for built, changed in _on_switches(design, settings, dims, shop.parts):
        other = _bought(bought, built)
        bill = stack_bill(other, shop)
        if not bill.missing:
            saved_usd, power = own.total_usd - bill.total_usd, power_text(own, bill)
            what, end = (
                _switch_text(design, built, first, own),
                f"; they draw {power}" * bool(power),
            )
            asked = _unlike(bill, own)
            found.append(Rewired(what, changed, end, bill.total_usd, saved_usd, other, asked, True))
    best = min(found, key=lambda one: one.usd, default=None)
    return best if best and best.saved_usd >= _MATERIAL * own.total_usd else None


def _on_switches(
    design: RealizedDesign, own: SwitchSettings, dims: Sequence[int], parts: Parts
) -> Iterator[tuple[RealizedDesign, tuple[str, ...]]]:
    """The design on switches of the catalogue, and what makes it of the plan.

    Also on its own switches, with more nodes on a leaf.
    """
    link_Bps = design.dimensions[dims[0]].nic_Bps / own.n_planes
    before = switch_port_Bps(own, design.dimensions[dims[0]].nic_Bps), own.switch_radix
    asked_Bps = [one.asked_Bps for one in design.dimensions]
    for speed_Bps, n_ports in ports_on_sale(link_Bps, parts):
        is_other = speed_Bps != before[0]
        port_Bps = speed_Bps if is_other else own.switch_port_Bps
        switches = tuple(
            replace(one, switch_radix=n_ports, switch_port_Bps=port_Bps)
            if one and dim in dims
            else one
            for dim, one in enumerate(design.realization.switches)
        )
        for topology in _on_larger_leaves(design.topology, dims):
            settings = [] if topology == design.topology else [f"fabric.topology={topology}"]
            settings += [f"fabric.realization.port={format_line_rate(speed_Bps)}"] * is_other
            if n_ports != before[1]:
                settings.append(f"fabric.realization.switch_radix={n_ports}")
            built = _no_slower(design, topology, asked_Bps, switches) if settings else None
            if built is not None:
                yield built, tuple(settings)


def _on_larger_leaves(topology: Topology, dims: Sequence[int]) -> Iterator[Topology]:
    """The same stack, then, of leaves and spines, with several groups in place of one on a leaf."""
    yield topology
    if len(dims) != 2:
        return
    leaf, n_leaves = (topology.sizes[dim] for dim in dims)
    for n in (n for n in range(2, n_leaves // 2 + 1) if n_leaves % n == 0):
        sizes = dict(zip(dims, (n * leaf, n_leaves // n), strict=True))
        merged = (
            replace(one, size=sizes.get(dim, one.size))
            for dim, one in enumerate(topology.dimensions)
        )
        yield replace(topology, dimensions=tuple(merged))


def _no_slower(
    design: RealizedDesign,
    topology: Topology,
    asked_Bps: Sequence[float],
    switches: tuple[SwitchSettings | None, ...],
) -> RealizedDesign | None:
    """A design of other switches; ``None`` where it cannot be built, or has less bandwidth."""
    try:
        built = realize(topology, asked_Bps, replace(design.realization, switches=switches))
    except SpecError:
        return None
    is_less = built.bandwidth_Bps < design.bandwidth_Bps * (1 - _ROUNDING)
    return None if is_less.any() else built


def _switch_text(before: RealizedDesign, built: RealizedDesign, first: int, own: Bill) -> str:
    """What switches these are, and how many nodes their leaves have."""
    settings, was = built.dimensions[first].settings, before.dimensions[first].settings
    n, n_was = (one.topology.sizes[first] for one in (built, before))
    if settings is None or was is None:
        return ""
    nic_Bps = built.dimensions[first].nic_Bps
    speeds_Bps = [switch_port_Bps(one, nic_Bps) for one in (settings, was)]
    nodes = f"{n} nodes to a leaf in place of {n_was}"
    if (settings.switch_radix, speeds_Bps[0]) == (was.switch_radix, speeds_Bps[1]):
        lines = [line for line in own.lines if line.n_ports and line.tier.endswith("leaf")]
        n_free, n_ports = sum(x.n_free_ports for x in lines), sum(x.n_ports for x in lines)
        return f"{nodes}, as {n_free:,} of {n_ports:,} ports of leaves are free,"
    link_Bps = nic_Bps / settings.n_planes
    is_split = speeds_Bps[0] > link_Bps * (1 + _ROUNDING)
    split = f", each for two links of {format_line_rate(link_Bps)} (breakout)" if is_split else ""
    switches = f"switches of {settings.switch_radix} ports of {format_line_rate(speeds_Bps[0])}"
    return f"{switches}{split}{f', {nodes},' if n > n_was else ',' if split else ''}"


def power_text(own: Bill, other: Bill) -> str:
    """How much less, or more, the parts of another bill draw; empty for as much."""
    kw = (own.power_w - other.power_w) / 1e3
    return f"{abs(kw):,.1f} kW {'less' if kw > 0 else 'more'}" if kw else ""


_Other: TypeAlias = tuple[str, Iterable[str], str, Purchase]


def _others(bought: Purchase, parts: Parts, rules: Sequence[str]) -> Iterator[_Other]:
    """Other wirings, what makes them of the plan, what comes with that, and what they buy."""
    first = _first(bought.design)
    settings = bought.design.dimensions[first].settings
    if settings is None or settings.wiring not in _OTHER or not bought.scale_out[first]:
        return
    if bought.design.topology.stacks:
        yield from _of_a_stack(bought, settings, parts, rules)
    if planes := _planes(bought.design, settings, parts):
        whole = _whole_rails(bought.design, planes, parts)
        n, nic_Bps = planes.n_planes, planes.port_speed_Bps or 0.0
        if whole is not None:
            keys = [f"port_speed={format_line_rate(nic_Bps)}", f"planes={n}"]
            keys += ["nics=auto"] * (settings.n_nics is not None)
            links = [f"fabric.realization.{key}" for key in keys]
            yield (
                f"{n} networks of one switch each for every rail, without spines,",
                [*_settings(bought.design, whole), *links, *_kept(bought.design, rules)],
                f"; {_nics_text(planes, parts)}",
                _merged(bought, whole),
            )


def _of_a_stack(
    bought: Purchase, settings: SwitchSettings, parts: Parts, rules: Sequence[str]
) -> Iterator[_Other]:
    """Other spines of a stack's rails, and none."""
    design = bought.design
    wiring = _OTHER[settings.wiring]
    built = _rewired(design, wiring)
    if built is not None:
        words = {RAIL: "spines of their own for every rail", RAIL_OPTIMIZED: "spines of all rails"}
        name = RAIL_ONLY if wiring == RAIL else wiring
        yield words[wiring], [f"fabric.realization.wiring={name}"], "", _bought(bought, built)
    whole = _whole_rails(design, settings, parts)
    if whole is not None:
        yield (
            "rails of one switch each, without spines,",
            [*_settings(design, whole), *_kept(design, rules)],
            "; rails share no switch then",
            _merged(bought, whole),
        )


def _settings(design: RealizedDesign, whole: RealizedDesign) -> Iterator[str]:
    """What makes a plan's topology and switches those of rails of one switch each."""
    topology, first = whole.topology, _first(design)
    if topology != design.topology:
        yield f"fabric.topology={topology}"
        if any(topology.tiers):
            yield f"fabric.tiers=[{', '.join(map(str, topology.tiers))}]"
    before, after = (x.realization.switches[first] for x in (design, whole))
    if before and after and before.switch_radix != after.switch_radix:
        yield f"fabric.realization.switch_radix={after.switch_radix}"


def _option(setting: str) -> str:
    """A setting for a command line, in quotes where a shell needs them.

    >>> _option("fabric.realization.planes=2"), _option("fabric.topology=SW(8)_SW(4)")
    ('--set fabric.realization.planes=2', '--set "fabric.topology=SW(8)_SW(4)"')
    """
    if '"' in setting:
        return f"--set {shlex.quote(setting)}"
    return f'--set "{setting}"' if set(setting) & {*" ()[]"} else f"--set {setting}"


def _kept(design: RealizedDesign, rules: Sequence[str]) -> Iterator[str]:
    """What leaves a plan the rules which speak of no tier that is gone then."""
    names = [*zip(design.topology.tiers, design.topology.labels, strict=True)]
    gone = {name for pair in names[_first(design) + 1 :] for name in pair}
    kept = [rule for rule in rules if gone.isdisjoint(_WORD.findall(rule))]
    if len(kept) < len(rules):
        yield f"constraints={json.dumps(kept, ensure_ascii=False)}"


_WORD = re.compile(r"[A-Za-z_]\w*")


def _planes(design: RealizedDesign, own: SwitchSettings, parts: Parts) -> SwitchSettings | None:
    """Every port of an NPU in a plane of its own; ``None`` for one NIC, or where none is sold.

    Planes share the bandwidth of every NIC: one NIC of several ports, as fast as all of them.
    """
    built = design.dimensions[_first(design)]
    n, nic_Bps = built.n_nics, built.n_nics * built.nic_Bps
    is_plain = own.n_planes == 1 and own.switch_port_Bps is own.uplink_Bps is None
    is_alike = design.topology.stacks or own.wiring == RAIL
    if n < 2 or not is_plain or not is_alike or own.parts:
        return None
    if not parts.fitting(Need((NIC,), nic_Bps)):
        return None
    return replace(own, n_planes=n, port_speed_Bps=nic_Bps, n_nics=None)


def _nics_text(planes: SwitchSettings, parts: Parts) -> str:
    """What NICs a bill then has."""
    n, nic_Bps = planes.n_planes, planes.port_speed_Bps or 0.0
    [one, *_], [before, *_] = (
        parts.fitting(Need((NIC,), speed_Bps)) for speed_Bps in (nic_Bps, nic_Bps / n)
    )
    return (
        f"the bill then has {one.name} in place of {n} {before.name} an NPU: ask whether it is "
        f"sold with {n} ports of {format_line_rate(nic_Bps / n)}"
    )


def _first(design: RealizedDesign) -> int:
    """The innermost dimension of the only stack, else the last dimension."""
    topology = design.topology
    return topology.stacks[0].start if topology.stacks else topology.n_dims - 1


def _merged(bought: Purchase, whole: RealizedDesign) -> Purchase:
    return replace(_bought(bought, whole), scale_out=bought.scale_out[: whole.topology.n_dims])


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


def _whole_rails(
    design: RealizedDesign, settings: SwitchSettings, parts: Parts
) -> RealizedDesign | None:
    """One switch for every rail, in every plane, where one has a port for every node."""
    topology, links, first = design.topology, design.realization, _first(design)
    n_nodes = topology.n_npus // math.prod(topology.sizes[:first])
    if topology.stacks and topology.stacks[0].stop != topology.n_dims:
        return None
    if n_nodes > settings.switch_radix:
        nic_Bps = settings.port_speed_Bps or design.dimensions[first].nic_Bps
        need = Need((SWITCH,), switch_port_Bps(settings, nic_Bps), n_nodes)
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
