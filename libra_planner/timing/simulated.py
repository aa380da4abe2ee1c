"""Collective times at one given bandwidth vector: what no expression in bandwidth can say.

The exact flow shop is neither convex nor monotone in bandwidth, and the balanced
schedule is a linear program, so both are evaluated at a vector and enter a training
loop as constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from libra_planner.collectives.algorithms import Network
from libra_planner.collectives.flowshop import flow_shop
from libra_planner.collectives.scheduling import BalancedSchedule, balanced_schedule
from libra_planner.collectives.traffic import full_bytes
from libra_planner.timing.expression import Array, Constant, Node
from libra_planner.timing.loops import CollectiveTime, CollectiveTraffic
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group


def exact_time(network: Network, n_chunks: int, bandwidth_bytes_per_s: Array) -> CollectiveTime:
    """Time of a collective by the exact flow shop at one vector, for a training loop.

    Examples
    --------
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> time = exact_time(plain_network(parse_topology("RI(4)")), 2, np.array([2.0]))
    >>> time(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4,), (1,)))
    Constant(seconds=12.0)
    """
    bandwidth = bandwidth_bytes_per_s.tolist()

    @cache
    def time(collective: Collective, group: Group) -> Node:
        return Constant(flow_shop(collective, group, network, bandwidth, n_chunks=n_chunks).time_s)

    return time


@dataclass(frozen=True)
class BalancedTimes:
    """Times of collectives with the best split over orders at one vector, for a training loop.

    Parameters
    ----------
    time : ideal time with the best split.
    traffic : what it sends by dimension, shape (n_dims,).
    bound : the aggregate bound, that no split is faster than.
    """

    time: CollectiveTime
    traffic: CollectiveTraffic
    bound: CollectiveTime


def balanced_times(network: Network, bandwidth_bytes_per_s: Array) -> BalancedTimes:
    """Balanced schedules at one vector.

    All are proportional to the size, so that one linear program per kind and group is
    enough.

    Examples
    --------
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> times = balanced_times(network, np.array([1.0, 0.01]))
    >>> reduce, group = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4, 4), (1, 1))
    >>> round(times.time(reduce, group).seconds, 6), times.traffic(reduce, group)
    (600.0, array([24.,  6.]))
    """

    @cache
    def unit(kind: CollectiveKind, sizes: tuple[int, ...]) -> BalancedSchedule:
        whole = Group(sizes, (1,) * len(sizes))
        byte = Collective(kind, 1.0, "")
        return balanced_schedule(byte, whole, bandwidth_bytes_per_s, network.in_network)

    def time(collective: Collective, group: Group) -> Node:
        m = full_bytes(collective, group)
        return Constant(m * unit(collective.kind, group.sizes).time_s)

    def traffic(collective: Collective, group: Group) -> Array:
        m = full_bytes(collective, group)
        return m * np.array(unit(collective.kind, group.sizes).traffic_bytes)

    def bound(collective: Collective, group: Group) -> Node:
        m = full_bytes(collective, group)
        return Constant(m * unit(collective.kind, group.sizes).aggregate_bound_s)

    return BalancedTimes(time, traffic, bound)
