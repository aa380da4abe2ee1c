"""Cages of several ports: how many modules of several links the switches of a network take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import HOST_LEAF, CableParts
from libra_planner.procurement.bill import Part


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
        return n_alone, sum(self._of_tier(cable.n_cables, self.n_switches[x]) for x in tiers)

    def _of_tier(self, n_links: int, n_switches: int) -> int:
        """Modules of a tier's switches."""
        least, n_more = divmod(n_links, n_switches)
        few, many = (-(-n // self.n_ports) for n in (least, least + 1))
        return n_more * many + (n_switches - n_more) * few


def cages_of(switch: Part, port_Bps: float, fabric: object) -> Cages | None:
    """The cages of a network of such switches; ``None`` where each holds one port."""
    if switch.ports_per_cage == 1 or not isinstance(fabric, Clos):
        return None
    return Cages(switch.ports_per_cage, port_Bps, {k: n for k, n in fabric.n_switches.items() if n})
