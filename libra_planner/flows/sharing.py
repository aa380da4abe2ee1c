"""Which switches several groups of a dimension share, so that they load one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.realization import RealizedDimension, group_of_npu
from libra_planner.topology import Topology

LEAF, POD = "leaf", "pod"


@dataclass(frozen=True)
class Sharing:
    """Groups of a dimension that share links between switches.

    Parameters
    ----------
    where : ``leaf``, whose uplinks they share, or ``pod``, whose links to the cores.
    n_sharing : most groups of one such place.
    n_groups : groups of the dimension.
    """

    where: str
    n_sharing: int
    n_groups: int


def sharing(topology: Topology, dim: int, built: RealizedDimension) -> Sharing | None:
    """Where groups of a dimension load one another; ``None`` where none does.

    Examples
    --------
    Two groups of 8 neighbours each, 4 of a leaf from either.

    >>> from libra_planner.flows.realization import realize
    >>> from libra_planner.realization import Realization, SwitchSettings
    >>> from libra_planner.topology import parse_topology
    >>> fabric = parse_topology("FC(2)_SW(8)")
    >>> racks = SwitchSettings(switch_radix=16, n_leaves=2, wiring="top_of_rack")
    >>> design = realize(fabric, [1e9, 1e9], Realization((None, racks)))
    >>> sharing(fabric, 1, design.dimensions[1])
    Sharing(where='leaf', n_sharing=2, n_groups=2)
    """
    fabric = built.fabric
    if not isinstance(fabric, Clos) or not fabric.n_spines:
        return None
    group = group_of_npu(topology, dim)
    n_groups = int(group.max()) + 1
    places = {LEAF: fabric.leaf_of(built.port_of_npu)}
    if fabric.n_cores:
        places[POD] = fabric.pod_of(built.port_of_npu)
    for where, place in places.items():
        n_sharing = _most_groups(place, group, n_groups)
        if n_sharing > 1:
            return Sharing(where, n_sharing, n_groups)
    return None


def _most_groups(place: Indices, group: Indices, n_groups: int) -> int:
    """Most groups at one place; ``place`` of each NPU's ports, shape (n_npus, n_nics)."""
    pairs = np.unique(place * n_groups + group[:, None])
    return int(np.bincount(pairs // n_groups).max())
