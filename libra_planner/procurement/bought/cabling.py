"""Lines of cables: copper, or fibres with the modules at their ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from libra_planner.fabric.parts import HOST_LEAF, CableParts, Modules
from libra_planner.fabric.topology import SwitchSettings
from libra_planner.procurement.bill import (
    FIBRE,
    MEDIA,
    NETWORK,
    OPTIC,
    Choice,
    Line,
    Need,
    Part,
    Parts,
)
from libra_planner.procurement.bought.cages import Cages

_ROUNDING = 1e-9


class Seller(Protocol):
    """Who chooses the part for a need."""

    @property
    def parts(self) -> Parts:
        """The catalogue."""

    def choice(
        self,
        need: Need,
        settings: SwitchSettings | None = None,
        beside: Need | None = None,
        fibre: str = "",
    ) -> Choice:
        """The part that is bought for a need, beside another at the other end of a fibre."""


def bought_line(tier: str, found: Choice, n_units: int, note: str = "") -> Line:
    """The line of the part that is taken; its quote comes with the whole bill."""
    kept = found if found.others or found.is_named else None
    return Line(NETWORK, tier, found.taken.part, n_units, note, choice=kept)


def link_needs(cable: CableParts, length_m: float) -> tuple[Need, ...]:
    """What the ends of a cable need, the lower first; modules of several links are optics.

    >>> cable = CableParts(HOST_LEAF, 4, 50e9, 6, ends=(Modules(4), Modules(2, 2)))
    >>> [need.text for need in link_needs(cable, 50)]
    ['optic at 400 Gbit/s over 50 m', 'optic for 2 links at 400 Gbit/s over 50 m']
    """
    may_split = any(end.n_links > 1 for end in cable.modules)
    one = Need(MEDIA, cable.speed_Bps, reach_m=length_m, may_split=may_split)
    return tuple(
        one if end.n_links == 1 else replace(one, kinds=(OPTIC,), n_links=end.n_links)
        for end in cable.modules
    )


def cable_lines(
    shop: Seller,
    tier: str,
    cable: CableParts,
    length_m: float,
    settings: SwitchSettings | None = None,
    cages: Cages | None = None,
) -> Iterator[Line]:
    """Cables of one kind, with their optics where they are long.

    Parameters
    ----------
    shop : that chooses the parts.
    tier, cable, length_m : what they join, how many, and how long they are.
    settings : that name parts.
    cages : of the switches at their ends; ``None`` where each holds one port.
    """
    near, far, *_ = needs = link_needs(cable, length_m)
    found = shop.choice(near, settings, None if far == near else far)
    medium, note = found.taken.part, f"{length_m:g} m assumed"
    at_hosts = cable.joins == HOST_LEAF
    if medium.kind != OPTIC:
        own = bought_line(tier, found, cable.n_cables, note)
        n_ends = cable.n_cables * (1 if at_hosts else 2) if cable.modules[1].n_ports == 1 else 0
        own = replace(own, n_switch_ends=n_ends, n_per_port=cable.n_per_port)
        yield replace(own, speed_Bps=near.speed_Bps, length_m=length_m)
        return
    shared = _shared_modules(shop, near, medium, cages, settings)
    if cages is not None and shared is not None:
        in_cages = _in_cages(cable, cages, at_hosts=at_hosts)
        ends = [(end, found if end.n_links == 1 else shared) for end in in_cages]
    else:
        chosen = (_at_end(shop, need, needs, found, settings) for need in needs)
        ends = list(zip(cable.modules, chosen, strict=True))
    yield from _module_lines(tier, near, ends, note, at_hosts=at_hosts)
    fibre = shop.parts.named(medium.cable or f"fibre of {medium.name}", FIBRE)
    yield Line(NETWORK, tier, fibre, cable.n_cables, note, length_m=length_m)


def _at_end(
    shop: Seller, need: Need, needs: Sequence[Need], found: Choice, settings: SwitchSettings | None
) -> Choice:
    """The module of an end, on the fibre of the first."""
    near, far = needs[:2]
    if need == near:
        return found
    return shop.choice(need, settings, far if need != far else near, found.taken.part.cable)


def _in_cages(cable: CableParts, cages: Cages, *, at_hosts: bool) -> tuple[Modules, ...]:
    """Modules of one link at NICs and managers, and of whole cages at switches."""
    n_alone, n_shared = cages.modules(cable)
    others = cable.modules[2:]
    alone = Modules(n_alone - sum(end.n for end in others))
    shared = Modules(n_shared, cages.n_ports, cages.n_ports)
    return (*([alone] if at_hosts else []), shared, *others)


def _shared_modules(
    shop: Seller, need: Need, medium: Part, cages: Cages | None, settings: SwitchSettings | None
) -> Choice | None:
    """The module of as many links as a cage has ports; ``None`` where nobody sells one."""
    if cages is None or not cages.port_Bps * (1 - _ROUNDING) <= need.speed_Bps:
        return None
    if need.speed_Bps > cages.port_Bps * (1 + _ROUNDING):
        return None
    found = shop.choice(replace(need, kinds=(OPTIC,), n_links=cages.n_ports), settings)
    same = found.taken.part.cable == medium.cable and found.taken.part.links_per_module > 1
    return found if same else None


def _module_lines(
    tier: str, need: Need, ends: Sequence[tuple[Modules, Choice]], note: str, *, at_hosts: bool
) -> Iterator[Line]:
    """Modules of all ends: one line of each part at each place."""
    groups: dict[tuple[str, str], list[tuple[int, Modules, Choice]]] = {}
    for i, (end, found) in enumerate(ends):
        key = end.place or tier, found.taken.part.name
        groups.setdefault(key, []).append((i, end, found))
    for (place, _), same in groups.items():
        _, end, found = same[0]
        at_switches = [x for i, x, _ in same if not x.place and not (at_hosts and i == 0)]
        at_hosts_too = len(at_switches) < len(same)
        whose = ["host"] * at_hosts_too + ["switch"] * bool(at_switches)
        words = f"{_served([x for _, x, _ in same], ' or '.join(whose))}, "
        in_switches = sum(x.n for x in at_switches if x.n_ports == 1)
        own = bought_line(place, found, sum(x.n for _, x, _ in same), f"{words}{note}")
        speed_Bps = need.speed_Bps * end.n_links / found.taken.part.links_per_module
        if own.n_units:
            yield replace(own, speed_Bps=speed_Bps, n_switch_ends=in_switches)


def _served(ends: Sequence[Modules], whose: str) -> str:
    """How many cables the modules of a line serve, in words."""
    [n_links, *_], [place, *_] = ([x.n_links for x in ends], [x.place for x in ends])
    if n_links > 1:
        return f"one for {n_links} links of a {whose}"
    if len(ends) > 1:
        return "two per cable"
    return f"one per cable, at {place or 'NICs'}"
