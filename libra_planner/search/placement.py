"""Groups of many strategies at once: where the axes of each stand on the dimensions (C6, C15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.topology import Topology
from libra_planner.workload.operations import Group
from libra_planner.workload.strategy import Strategy
from libra_planner.workload.volumes import DP_CP

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """The groups of an axis of n strategies, each distinct one once.

    Parameters
    ----------
    groups : distinct ones.
    which : of each strategy, shape (n,).
    """

    groups: tuple[Group, ...]
    which: Counts


def spans(strategy: Strategy) -> Mapping[str, tuple[Counts, Counts]]:
    """Of every axis the distance of neighbours, and that distance times its ranks; (n,) each.

    Ranks are numbered with tp innermost, then cp, dp and pp; those of a stage again with etp, ep
    and edp.

    Examples
    --------
    >>> found = spans(Strategy(tp=4, dp=32, pp=8, ep=16))
    >>> [tuple(map(int, found[axis])) for axis in ("tp", "dp", "pp", "ep", "edp")]
    [(1, 4), (4, 128), (128, 1024), (1, 16), (16, 128)]
    """
    found: dict[str, tuple[Counts, Counts]] = {}
    for axes in (("tp", "cp", "dp", "pp"), ("etp", "ep", "edp")):
        start = np.ones((), np.int64)
        for axis in axes:
            end = start * np.asarray(getattr(strategy, axis), np.int64)
            found[axis], start = (start, end), end
    found[DP_CP] = found["cp"][0], found["dp"][1]
    return found


def is_placeable(topology: Topology, strategy: Strategy) -> NDArray[np.bool_]:
    """Whether the groups of each strategy stand on the dimensions at equal distances, (n,).

    They do where every axis ends at a whole number of some dimensions' NPUs, or within one, and
    axes of experts at whole groups of dense axes, or within one.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("SW(8)_SW(6)")
    >>> is_placeable(fabric, Strategy(tp=np.array([4, 6, 1]), dp=np.array([12, 8, 48]))).tolist()
    [True, False, True]
    """
    edges: list[Any] = list(accumulate(topology.sizes, mul))
    ends = {axis: end for axis, (_, end) in spans(strategy).items()}
    found = np.ones((), np.bool_)
    for axis in ("tp", "cp", "dp", "pp", "etp", "ep"):
        if axis == "etp":
            edges += [ends["tp"], ends["cp"]]
        for edge in edges:
            found = found & ((ends[axis] % edge == 0) | (edge % ends[axis] == 0))
    n_stage = np.asarray(strategy.tp) * strategy.cp * strategy.dp
    divides = n_stage % (np.asarray(strategy.etp) * strategy.ep) == 0
    return np.asarray(found & divides & (n_stage * strategy.pp == topology.n_npus))


def placed(topology: Topology, strategy: Strategy) -> Mapping[str, Placed]:
    """The groups of every axis, as :func:`~libra_planner.workload.placement.placed_groups` has
    them of one strategy.

    Parameters
    ----------
    topology : the fabric.
    strategy : n strategies that :func:`is_placeable` finds on it.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("SW(8)_[SW(16)_SW(8)]")
    >>> many = Strategy(tp=np.array([4, 8]), dp=np.array([32, 16]), pp=np.array([8, 8]))
    >>> found = placed(fabric, many)["dp"]
    >>> [group.sizes for group in found.groups], found.which.tolist()
    ([(2, 16, 1), (1, 16, 1)], [0, 1])
    """
    n_stage = spans(strategy)["dp"][1]
    return {
        axis: _distinct(topology, start, end, n_stage if axis in ("etp", "ep", "edp") else None)
        for axis, (start, end) in spans(strategy).items()
    }


def _distinct(topology: Topology, start: Counts, end: Counts, whole: Counts | None) -> Placed:
    limit = topology.n_npus
    stage = np.full((), limit, np.int64) if whole is None else whole
    start, end, stage = np.broadcast_arrays(start, end, stage)
    shift = limit + 1
    keys, which = np.unique((start * shift + end) * shift + stage, return_inverse=True)
    groups = []
    for key in keys.tolist():
        rest, n_stage = divmod(key, shift)
        first, last = divmod(rest, shift)
        groups.append(_group(topology, first, last, n_stage))
    return Placed(tuple(groups), np.asarray(which).reshape(start.shape))


def _group(topology: Topology, start: int, end: int, n_whole: int) -> Group:
    """What of every dimension lies between two distances, of ranks that fill ``n_whole`` NPUs."""
    sizes, strides = [], []
    inside = 1
    for size in topology.sizes:
        edge = min(inside * size, n_whole)
        first, last = (min(max(x, inside), max(edge, inside)) for x in (start, end))
        sizes.append(last // first)
        strides.append(first // inside)
        inside *= size
    return Group(tuple(sizes), tuple(strides))
