"""Modules of several links in the cages of switches, and how many a network needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import HOST_LEAF, CableParts, dealt
from libra_planner.plain_text import joined
from libra_planner.procurement.bill import MEDIA, OPTIC, Bill, Part


@dataclass(frozen=True)
class Cages:
    """Cages of several ports, of all switches of a network.

    Parameters
    ----------
    n_ports : of a cage.
    port_Bps : speed of each.
    n_switches : by tier, such as leaf.
    """

    n_ports: int
    port_Bps: float
    n_switches: Mapping[str, int]

    def modules(self, cable: CableParts) -> tuple[int, int]:
        """Modules of one link at NICs, and those of a whole cage at switches.

        Links are dealt evenly to the switches of a tier, and a link that is left over on a switch
        takes a module of its own.

        Examples
        --------
        >>> cages = Cages(2, 50e9, {"leaf": 4, "spine": 2})
        >>> cages.modules(CableParts(HOST_LEAF, 18, 50e9, 36))  # Leaves of 5, 5, 4 and 4.
        (18, 10)
        >>> cages.modules(CableParts("leaf-spine", 12, 50e9, 24))  # 3 up from a leaf, 6 per spine.
        (0, 14)
        """
        n_alone = cable.n_cables if cable.joins == HOST_LEAF else 0
        tiers = [tier for tier in cable.joins.split("-") if tier in self.n_switches]
        dealt_to = (self.n_switches[tier] for tier in tiers)
        return n_alone, sum(dealt(cable.n_cables, n, self.n_ports) for n in dealt_to)


def cages_of(switch: Part, port_Bps: float, fabric: object) -> Cages | None:
    """The cages of a network of such switches; ``None`` where each holds one port."""
    if switch.ports_per_cage == 1 or not isinstance(fabric, Clos):
        return None
    return Cages(switch.ports_per_cage, port_Bps, {k: n for k, n in fabric.n_switches.items() if n})


def link_ends_in_cages(bill: Bill) -> dict[tuple[str, int, str], int]:
    """Link ends in cages of several ports: by the switch, ports of a cage, and what is in them.

    A bill counts one module, or one cable, for each, unless the catalogue has modules of as many
    links.
    """
    found: dict[tuple[str, int, str], int] = {}
    switches = {
        (x.group, x.tier.rpartition(", ")[0]): x.part
        for x in bill.lines
        if x.part.ports_per_cage > 1
    }
    for x in bill.lines:
        switch = switches.get((x.group, x.tier.rpartition(", ")[0]))
        if switch and x.n_switch_ends and x.part.kind in MEDIA:
            key = switch.name, switch.ports_per_cage, x.part.name
            found[key] = found.get(key, 0) + x.n_switch_ends
    return found


def splitter_texts(bill: Bill) -> Iterator[str]:
    """Cables of one link at ports of several, in words."""
    for x in bill.lines:
        if x.n_per_port > 1:
            yield (
                f"{x.n_units:,} {x.part.name} are counted, and {x.n_per_port} links share a port "
                f"of a leaf: a splitter cable joins {x.n_per_port} of them; ask for its price"
            )


def unlike_module_texts(bill: Bill) -> Iterator[str]:
    """Modules of different speed at the two ends of a link: no catalogue says their lanes."""
    ends: dict[tuple[str, str], dict[float, str]] = {}
    for x in bill.lines:
        if x.part.kind == OPTIC:
            ends.setdefault((x.group, x.tier), {}).setdefault(x.part.port_speed_Bps, x.part.name)
    unlike = [joined([*names.values()], "and") for names in ends.values() if len(names) > 1]
    for names in dict.fromkeys(unlike):
        yield (
            f"links have {names} at their two ends: ask the seller whether these speak to each "
            "other (lanes)"
        )


def open_module_texts(bill: Bill) -> Iterator[str]:
    """Modules and cables of which sellers have others, at another count and price, in words."""
    for (switch, n_ports, module), n_ends in link_ends_in_cages(bill).items():
        cages = f"cages of {n_ports} ports of {switch}"
        ask = "twin-port modules: half as many"
        if n_ports != 2:
            ask = f"modules of {n_ports} links: one for {n_ports} of these"
        yield f"{n_ends:,} {module} stand in {cages}; ask for {ask}, at another price"
    yield from splitter_texts(bill)
