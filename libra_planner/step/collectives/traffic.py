"""Bytes that one NPU sends in each dimension for a collective (C3)."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.blocks import Span
from libra_planner.fabric.topology import Topology
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group


def traffic_bytes(
    collective: Collective, group: Group, in_network: Collection[int] = ()
) -> NDArray[np.float64]:
    """Ideal traffic per NPU and dimension (C3).

    With group sizes g_1..g_D and the full vector m: an all-reduce sends
    2 m (g_i - 1) / (g_1 ... g_i) in dimension i, a reduce-scatter or all-gather half of
    it, an all-to-all m (g_i - 1) / g_i. Where a switch reduces in the network, an
    all-reduce sends m / (g_1 ... g_{i-1}) instead. Source: LIBRA (arXiv 2109.11762),
    section IV-C.

    Parameters
    ----------
    collective : pattern and size.
    group : the communicator.
    in_network : dimensions (from 0) whose switches reduce.

    Returns
    -------
    Bytes, shape (n_dims,).

    Examples
    --------
    >>> group = Group((4, 4, 1), (1, 1, 1))
    >>> traffic_bytes(Collective(CollectiveKind.ALL_REDUCE, 16.0, "tp"), group)
    array([24.,  6.,  0.])
    >>> traffic_bytes(Collective(CollectiveKind.ALL_GATHER, 1.0, "tp", is_shard=True), group)
    array([12.,  3.,  0.])
    >>> traffic_bytes(Collective(CollectiveKind.ALL_TO_ALL, 16.0, "tp"), group)
    array([12., 12.,  0.])
    >>> traffic_bytes(Collective(CollectiveKind.ALL_REDUCE, 16.0, "tp"), group, in_network={1})
    array([24.,  4.,  0.])
    """
    sizes = np.array(group.sizes, dtype=np.float64)
    full = full_bytes(collective, group)
    if collective.kind is CollectiveKind.ALL_TO_ALL:
        return full * (sizes - 1) / sizes
    passes = 2 if collective.kind is CollectiveKind.ALL_REDUCE else 1
    traffic: NDArray[np.float64] = passes * full * (sizes - 1) / np.cumprod(sizes)
    if collective.kind is CollectiveKind.ALL_REDUCE:
        for i in (i for i in in_network if group.sizes[i] > 1):
            traffic[i] = full / math.prod(group.sizes[:i])
    return traffic


def full_bytes(collective: Collective, group: Group) -> float:
    """The full vector m of C3, whichever way the collective gives its size."""
    return collective.size_bytes * (group.n_npus if collective.is_shard else 1)


def real_link_slowdown(
    collective: Collective, group: Group, topology: Topology
) -> NDArray[np.float64]:
    """How much longer each dimension takes when a partial group has only its own links.

    ``ideal`` grants a group of g in a dimension of n all of B_d (LIBRA). Real links
    do not (C6): in FC(n) the group has B (g-1)/(n-1); neighbours in a ring are an open
    line, where a ring algorithm runs on one of its two directions (B/2), or groups
    laid around the ring in strides share its links; a switch gives all of B.

    Returns
    -------
    Factors of at least 1 on the time of each dimension, shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("RI(4)_FC(8)_SW(32)")
    >>> part = Group((2, 4, 16), (1, 1, 1))
    >>> real_link_slowdown(Collective(CollectiveKind.ALL_REDUCE, 1.0, "tp"), part, fabric)
    array([2.        , 2.33333333, 1.        ])
    """
    factors = np.ones(topology.n_dims)
    for i, dimension in enumerate(topology.dimensions):
        if group.sizes[i] > 1:
            span = Span(group.sizes[i], group.strides[i], dimension.size)
            factors[i] = dimension.block.part_slowdown(collective.kind, span)
    return factors
