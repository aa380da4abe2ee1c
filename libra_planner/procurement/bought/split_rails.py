"""Rails of a design that share no switch: what it cannot do, and how many more nodes fit it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.cluster import cluster_network
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.fabric.topology import RAIL
from libra_planner.plain_text import joined
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.cluster import same_order
from libra_planner.procurement.ranking import Comparison


@dataclass(frozen=True)
class SplitRails:
    """A network whose rails share no switch.

    Parameters
    ----------
    n_planes : networks of every rail.
    is_one_switch : whether each of them is one switch; else it has spines of its own.
    n_more_nodes : that fit its free ports, with no cable moved; ``None`` where that is not known.
    """

    n_planes: int
    is_one_switch: bool
    n_more_nodes: int | None

    def text(self, elsewhere: str = "") -> str:
        """What one gives up with it, in words.

        Parameters
        ----------
        elsewhere : in which designs rails meet, in words.

        Examples
        --------
        >>> print(SplitRails(1, True, 0).text())
        one switch for every rail: no path joins two rails but inside a server; not one node more \
fits its ports
        """
        what = "one switch" if self.is_one_switch else "spines of its own"
        planes = f" in each of {self.n_planes} planes" if self.n_planes > 1 else ""
        return (
            f"{what} for every rail{planes}: no path joins two rails but inside a server"
            f"{elsewhere}{self.room_text}"
        )

    @property
    def room_text(self) -> str:
        """How many more nodes fit, as the end of a sentence; empty where that is not known."""
        n = self.n_more_nodes
        if n is None:
            return ""
        if not n:
            return "; not one node more fits its ports"
        fit = "node fits" if n == 1 else "nodes fit"
        return f"; {n:,} more {fit} its free ports"


def split_rails(one: Candidate) -> SplitRails | None:
    """What a design gives up; ``None`` where its rails meet, or it has several networks."""
    network = _network(one)
    if network is None or network.settings is None or network.settings.wiring != RAIL:
        return None
    fabric = network.clos
    is_one_switch = fabric.n_leaves * fabric.n_pods == 1
    n_more = _of_ports(one, network) if is_one_switch else _of_order(one, fabric)
    return SplitRails(network.settings.n_planes, is_one_switch, n_more)


def _network(one: Candidate) -> RealizedDimension | None:
    """The only network of switches of a design of nodes with several NPUs; else ``None``."""
    found = [x for x in one.bought.design.networks if x.is_network]
    return found[0] if len(found) == 1 and _n_per_node(one, found[0]) > 1 else None


def _n_per_node(one: Candidate, network: RealizedDimension) -> int:
    design = one.bought.design
    return math.prod(design.topology.sizes[: design.dimensions.index(network)])


def _of_ports(one: Candidate, network: RealizedDimension) -> int | None:
    """Nodes that fit the free ports of switches that every node is joined to."""
    n_nodes = one.n_npus // _n_per_node(one, network)
    lines = [x for x in one.bill.lines if x.dimension == network.label and x.n_ports]
    n_free = sum(x.n_free_ports for x in lines)
    n_used = sum(x.n_ports for x in lines) - n_free
    return n_free * n_nodes // n_used if n_used else None


def _of_order(one: Candidate, fabric: Clos) -> int | None:
    """Nodes that fit the leaves, where the same order would have the same switches."""
    order = same_order(one.bought)
    if order is None:
        return None
    try:
        found = cluster_network(order)
    except SpecError:
        return None
    return found.n_more_hosts if found.clos.n_switches == fabric.n_switches else None


def split_text(comparison: Comparison) -> str:
    """What the design to buy cannot do, and another compared one can; empty for nothing."""
    designs, chosen = comparison.candidates, comparison.chosen
    own = split_rails(designs[chosen])
    if own is None:
        return ""
    others = [one for i, one in enumerate(designs) if i != chosen]
    meet = [x.letter for x in others if _network(x) and split_rails(x) is None]
    wider = [
        x.letter
        for x in others
        if (rails := split_rails(x)) and (rails.n_more_nodes or 0) > (own.n_more_nodes or 0)
    ]
    if not meet and not wider:
        return ""
    join = f" (in {joined(meet, 'and')} switches join them)" if meet else ""
    room = f"; more fit {joined(wider, 'and')}" if wider and own.room_text else ""
    return f"{designs[chosen].letter} has {own.text(join)}{room}"


def split_notes(one: Candidate) -> Iterator[str]:
    """The same of one design by itself, for notes."""
    if found := split_rails(one):
        yield found.text()
