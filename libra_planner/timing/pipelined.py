"""The convex pipelined model of a collective: chunks, latency, real links (C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from libra_planner.collectives.algorithms import Network, Visit, visits
from libra_planner.timing.expression import Array, Constant, Node, Transfer, add, maximum, scale
from libra_planner.timing.loops import CollectiveTime, CollectiveTraffic, Slowdown
from libra_planner.workload.operations import Collective
from libra_planner.workload.parallelism import Group


def pipelined_time(
    network: Network, n_chunks: int, slowdown: Slowdown | None = None
) -> CollectiveTime:
    """Time of a collective in ``n_chunks`` chunks, as a function for the training loops.

    One chunk passes all its visits; every further chunk costs what the busiest dimension
    needs for one: with visit v of a_v bytes on dimension d_v in s_v steps,

        time = sum_v t_v + (k - 1) max_d sum_{v on d} t_v,
        t_v = a_v / (k B_{d_v}) + s_v * hops * latency.

    It is convex and non-increasing in bandwidth. For a reduce-scatter, all-gather or
    all-to-all it is the exact time; the exact all-reduce
    (:mod:`libra_planner.collectives.flowshop`) is neither convex nor monotone. Without
    latency its limit for many chunks is C4's ideal, all-to-alls on rings excepted, which
    carry hops.

    Parameters
    ----------
    network : topology, latency, algorithms.
    n_chunks : chunks k, 1 or more.
    slowdown : factors on the bytes of each dimension, as a check of its links finds them.

    Examples
    --------
    An all-reduce of 16 bytes over RI(4): 24 bytes, however it is cut.

    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> time = pipelined_time(plain_network(parse_topology("RI(4)")), 4)
    >>> time(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4,), (1,)))
    Transfer(n_bytes=24.0, coefficients=(1.0,))
    """

    def time(collective: Collective, group: Group) -> Node:
        stops = _slowed_visits(collective, group, network, slowdown)
        by_dim: dict[int, list[Visit]] = {}
        for stop in stops:
            by_dim.setdefault(stop.dim, []).append(stop)
        first = _one_chunk(stops, network, n_chunks)
        if n_chunks == 1:
            return first
        busiest = maximum(_one_chunk(part, network, n_chunks) for part in by_dim.values())
        return add([first, scale(float(n_chunks - 1), busiest)])

    return time


def pipelined_traffic(network: Network, slowdown: Slowdown | None = None) -> CollectiveTraffic:
    """Bytes of a collective's visits by dimension, at full B_d: what contention adds up (C5).

    Examples
    --------
    An all-to-all of 16 bytes on RI(4): 6 steps of 4, hops and all.

    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> traffic = pipelined_traffic(plain_network(parse_topology("RI(4)")))
    >>> traffic(Collective(CollectiveKind.ALL_TO_ALL, 16.0, "dp"), Group((4,), (1,)))
    array([24.])
    """

    def traffic(collective: Collective, group: Group) -> Array:
        n_bytes = np.zeros(network.topology.n_dims)
        for stop in _slowed_visits(collective, group, network, slowdown):
            n_bytes[stop.dim] += stop.n_bytes
        return n_bytes

    return traffic


def _slowed_visits(
    collective: Collective, group: Group, network: Network, slowdown: Slowdown | None
) -> Sequence[Visit]:
    if slowdown is None:
        return visits(collective, group, network)
    if slowdown.algorithms is not None:
        network = replace(network, algorithms=slowdown.algorithms(collective, group))
    stops = visits(collective, group, network)
    factors = slowdown(collective, group)
    return [
        replace(stop, message_bytes=tuple(factors[stop.dim] * size for size in stop.message_bytes))
        for stop in stops
    ]


def _one_chunk(stops: Sequence[Visit], network: Network, n_chunks: int) -> Node:
    """Visits of one chunk one after the other."""
    terms: list[Node] = []
    for stop in stops:
        one_hot = tuple(1.0 if i == stop.dim else 0.0 for i in range(network.topology.n_dims))
        terms.append(Transfer(stop.n_bytes / n_chunks, one_hot))
        terms.append(Constant(stop.n_steps * stop.n_hops * network.latency_s[stop.dim]))
    return add(terms)
