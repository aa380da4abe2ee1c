"""Numbers of nodes near that of a first plan, whose leaves equal groups fill at less cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.fabric.topology import Topology
from libra_planner.inputs.training.clusters import nodes_per_leaf
from libra_planner.procurement.cluster import regrouped_usd
from libra_planner.procurement.lines import FabricShop, Purchase
from libra_planner.units import format_usd

_NEAR = 0.02
"""How far from a number of nodes another one is near."""
_LESS = Decimal("0.05")
"""Share of the price per node that a near number has to save to be named."""


@dataclass(frozen=True)
class NearCount:
    """A number of nodes close by whose leaves equal groups fill better.

    Parameters
    ----------
    n_nodes, n_per_group : nodes in all, and those of a group.
    usd, saved_usd : switches, cables and optics between nodes; how much less that is.
    """

    n_nodes: int
    n_per_group: int
    usd: Decimal
    saved_usd: Decimal

    def words(self, n_nodes: int, n_per_node: int) -> str:
        """What an odd number of nodes costs, and what the near one would."""
        own, near = format_usd(float(self.usd + self.saved_usd)), format_usd(float(self.usd))
        return (
            f"{n_nodes:,} nodes in equal groups leave ports of leaves free: their switches, cables "
            f"and optics cost {own} at list prices; {self.n_nodes:,} nodes "
            f"({self.n_nodes * n_per_node:,} NPUs), {self.n_per_group} in a group, would "
            f"cost {near}"
        )


def near_count(bought: Purchase, shop: FabricShop) -> NearCount | None:
    """The number of nodes close by that costs least per node; ``None`` where none is worth a word.

    Parameters
    ----------
    bought : a plan's network of leaves and spines.
    shop : whose prices count.
    """
    topology = bought.design.topology
    own_usd = regrouped_usd(bought, shop, topology)
    if own_usd is None:
        return None
    leaf, spine = topology.sizes[-2:]
    n_nodes = leaf * spine
    least_usd, best = own_usd / n_nodes * (1 - _LESS), None
    for n in _near(n_nodes):
        group = nodes_per_leaf(n)
        usd = regrouped_usd(bought, shop, _grouped(topology, group, n // group))
        if usd is not None and usd < own_usd and usd / n < least_usd:
            least_usd, best = usd / n, NearCount(n, group, usd, own_usd - usd)
    return best


def _near(n_nodes: int) -> Iterator[int]:
    """Other numbers of nodes, the nearest first."""
    for distance in range(1, math.ceil(n_nodes * _NEAR) + 1):
        yield from (n_nodes - distance, n_nodes + distance)


def _grouped(topology: Topology, n_leaf: int, n_groups: int) -> Topology:
    *inside, leaf, spine = topology.dimensions
    own = (replace(leaf, size=n_leaf), replace(spine, size=n_groups))
    return replace(topology, dimensions=(*inside, *own))
