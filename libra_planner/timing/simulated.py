"""Collective times at one given bandwidth vector: what no expression in bandwidth can say.

The exact flow shop is neither convex nor monotone in bandwidth, and the balanced
schedule is a linear program, so both are evaluated at a vector and enter a training
loop as constants.
"""

from __future__ import annotations

from functools import cache

from libra_planner.collectives.algorithms import Network
from libra_planner.collectives.flowshop import flow_shop
from libra_planner.collectives.scheduling import BalancedSchedule, balanced_schedule
from libra_planner.collectives.traffic import full_bytes
from libra_planner.timing.expression import Array, Constant, Node
from libra_planner.timing.loops import CollectiveTime
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group


def exact_time(network: Network, n_chunks: int, bandwidth_bytes_per_s: Array) -> CollectiveTime:
    """Time of a collective by the exact flow shop at one vector, for a training loop.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.topology import parse_topology
    >>> time = exact_time(plain_network(parse_topology("RI(4)")), 2, np.array([2.0]))
    >>> time(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4,), (1,)))
    Constant(seconds=12.0)
    """
    bandwidth = bandwidth_bytes_per_s.tolist()

    @cache
    def time(collective: Collective, group: Group) -> Node:
        return Constant(flow_shop(collective, group, network, bandwidth, n_chunks=n_chunks).time_s)

    return time


def balanced_times(
    network: Network, bandwidth_bytes_per_s: Array
) -> tuple[CollectiveTime, CollectiveTime]:
    """Ideal time with the best split over orders, and its aggregate bound, at one vector.

    Both are proportional to the size, so that one linear program per kind and group is
    enough.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.topology import parse_topology
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> time, bound = balanced_times(network, np.array([1.0, 0.01]))
    >>> reduce, group = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4, 4), (1, 1))
    >>> round(time(reduce, group).seconds, 6), round(bound(reduce, group).seconds, 6)
    (600.0, 29.70297)
    """

    @cache
    def unit(kind: CollectiveKind, sizes: tuple[int, ...]) -> BalancedSchedule:
        whole = Group(sizes, (1,) * len(sizes))
        byte = Collective(kind, 1.0, "")
        return balanced_schedule(byte, whole, bandwidth_bytes_per_s, network.in_network)

    def time(collective: Collective, group: Group) -> Node:
        m = full_bytes(collective, group)
        return Constant(m * unit(collective.kind, group.sizes).time_s)

    def bound(collective: Collective, group: Group) -> Node:
        m = full_bytes(collective, group)
        return Constant(m * unit(collective.kind, group.sizes).aggregate_bound_s)

    return time, bound
