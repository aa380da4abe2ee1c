"""The best split of a collective over orders of its networks: in bandwidth, and at a vector (C4).

A reduce-scatter may visit its networks (a dimension, or all tiers of a stack) in any order:
whichever comes first meets the full vector, later ones what is left of it. Giving every order a
share of the chunks balances the load (the idea of the scheduler Themis, arXiv 2110.04478).

With sizes G_1..G_K of the group in its networks, N = G_1...G_K, a vector m and p passes (2 for an
all-reduce, else 1), networks S that are visited first send p m (1 - prod_S 1/G) together, in
whatever order. This is submodular in S, and the orders are the vertices of its base polytope
(Edmonds, 1970). So a split with at most c_e bytes in every network e exists exactly where

    p m/N (prod_S G - 1) <= sum over e in S of c_e      for every set S of networks:

the left side is what S sends even where it is always visited last. In t seconds dimension d of
network e carries t B_d, and r_d bytes per byte of the network in every order (1 for most; other
with in-network reduction, in tiers of a stack, with links that a group lacks). So the least time is

    max over S, and over one dimension d(e) of every network e in S, of
    p m/N (prod_S G - 1) / (sum over e in S of B_d(e) / r_d(e)).

These are transfers over non-negative linear forms: convex and non-increasing in bandwidth, with
no linear program inside. Which orders reach it at one vector, a linear program says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SolverFailed, SpecError
from libra_planner.fabric.topology import Topology
from libra_planner.step import expression as tree
from libra_planner.step.collectives.algorithms import Network, full_bytes
from libra_planner.step.collectives.schedules import Schedule
from libra_planner.step.expression import Array
from libra_planner.workload.operations import Collective, CollectiveKind, Group

MAX_DIMS = 6
"""Most dimensions of one group that orders are counted out for: 720 of them, and 63 sets."""

_LEAST_SHARE = 1e-9
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Visited:
    """A network that a collective visits as a whole.

    Parameters
    ----------
    dims : its dimensions (from 0) that carry bytes of the collective, the innermost first.
    size : NPUs of the group in it, G_e.
    bytes_ratio : bytes of each of ``dims`` over p m (1 - 1/G_e)/(product of the sizes visited
        before), which the innermost of a plain network sends.
    """

    dims: tuple[int, ...]
    size: int
    bytes_ratio: tuple[float, ...]


def passes_bytes(collective: Collective, group: Group) -> float:
    """The vector as often as it passes: twice in an all-reduce, p m."""
    passes = 2 if collective.kind is CollectiveKind.ALL_REDUCE else 1
    return passes * full_bytes(collective, group)


def visited_networks(
    collective: Collective, group: Group, topology: Topology, traffic_bytes: Array
) -> tuple[Visited, ...]:
    """The networks that a collective visits, from the innermost outwards.

    Parameters
    ----------
    traffic_bytes : what it sends in the fixed order, shape (n_dims,).
    """
    found, sent_bytes, n_inside = [], passes_bytes(collective, group), 1
    for port in dict.fromkeys(topology.ports):
        tiers = [i for i, own in enumerate(topology.ports) if own == port]
        size = math.prod(group.sizes[i] for i in tiers)
        if size > 1:
            n_inside *= size
            n_bytes = sent_bytes * (size - 1) / n_inside
            dims = tuple(i for i in tiers if traffic_bytes[i] > 0)
            ratios = tuple(float(traffic_bytes[i]) / n_bytes for i in dims)
            found.append(Visited(dims, size, ratios))
    return tuple(found)


def balanced_time(
    collective: Collective, group: Group, network: Network, traffic_bytes: Array
) -> tree.Node:
    """The least time of a collective over all splits over orders of its networks.

    An all-to-all sends the same in any order; a ring over all ranks, and a direct all-to-all, have
    no order.

    Parameters
    ----------
    traffic_bytes : what it sends in the fixed order, shape (n_dims,).

    Examples
    --------
    A reduce-scatter of 16 bytes over 4 x 4: either dimension sends at least 3 bytes, both
    together 15.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> reduce = Collective(CollectiveKind.REDUCE_SCATTER, 16.0, "dp")
    >>> square, group = plain_network(parse_topology("RI(4)_SW(4)")), Group((4, 4), (1, 1))
    >>> for leaf in balanced_time(reduce, group, square, np.array([12.0, 3.0])).terms:
    ...     print(leaf.n_bytes, leaf.coefficients)
    3.0 (0.0, 1.0)
    3.0 (1.0, 0.0)
    15.0 (1.0, 1.0)
    """
    if not has_orders(collective, network):
        return tree.transfers(traffic_bytes)
    networks = visited_networks(collective, group, network.topology, traffic_bytes)
    if len(networks) < 2:
        return tree.transfers(traffic_bytes)
    least_bytes = passes_bytes(collective, group) / math.prod(one.size for one in networks)
    return tree.maximum(_transfers(networks, least_bytes, len(traffic_bytes)))


def has_orders(collective: Collective, network: Network) -> bool:
    """Whether the order of its networks decides what a collective sends in them."""
    in_turns = network.schedule(collective.kind) is Schedule.HIERARCHICAL
    return in_turns and collective.kind is not CollectiveKind.ALL_TO_ALL


def _transfers(
    networks: tuple[Visited, ...], least_bytes: float, n_dims: int
) -> Iterator[tree.Transfer]:
    """What every set of networks sends at least, over one dimension of each of them."""
    choices = [(None, *zip(one.dims, one.bytes_ratio, strict=True)) for one in networks]
    for chosen in product(*choices):
        size, form = 1, np.zeros(n_dims)
        for network, choice in zip(networks, chosen, strict=True):
            if choice is not None:
                dim, ratio = choice
                size, form[dim] = size * network.size, 1 / ratio
        if size > 1:
            unit = form.max()  # So that a dimension alone is one form, whatever its ratio.
            coefficients = tuple((form / unit).tolist())
            yield tree.Transfer(least_bytes * (size - 1) / unit, coefficients)


@dataclass(frozen=True)
class OrderShare:
    """A share of the data that takes one order of dimensions.

    ``order`` lists the dimensions (from 0) as a reduce-scatter visits them; an all-gather
    takes it backwards, an all-reduce both ways.
    """

    order: tuple[int, ...]
    fraction: float


@dataclass(frozen=True)
class BalancedSchedule:
    """The best split of a collective over orders.

    Parameters
    ----------
    time_s : the longest busy time of a dimension under that split.
    hierarchical_time_s : the same when all data goes from dim1 outwards (C4's ideal).
    aggregate_bound_s : bytes that must be sent over the bandwidth of all dimensions
        that the group spans: no split is faster.
    split : shares that are not zero, largest first.
    traffic_bytes : what an NPU sends under that split, shape (n_dims,).
    """

    time_s: float
    hierarchical_time_s: float
    aggregate_bound_s: float
    split: tuple[OrderShare, ...]
    traffic_bytes: tuple[float, ...] = field(repr=False)

    @property
    def gain(self) -> float:
        """Time of the fixed order over the balanced time, 1 or more."""
        return self.hierarchical_time_s / self.time_s if self.time_s else 1.0


def balanced_schedule(
    collective: Collective, group: Group, bandwidth_bytes_per_s: Array, network: Network
) -> BalancedSchedule:
    """The split over orders with the least time at one vector, under C4's ideal model.

    With x_o the share of order o, which sends a_od bytes in dimension d: minimise
    max_d sum_o x_o a_od / B_d over x >= 0, sum x = 1. An all-gather in the reverse order
    sends the same bytes as its reduce-scatter. Letting an all-reduce choose the two
    halves' orders apart would gain nothing: both choose from the same convex set of
    loads, and twice its best point is the best sum. An all-to-all sends the same in any
    order. Its time is that of :func:`balanced_time`.

    Raises
    ------
    SpecError
        For more than :data:`MAX_DIMS` dimensions, or one in use without bandwidth.
    SolverFailed
        When the linear program's answer does not hold when evaluated.

    Examples
    --------
    12 of 16 bytes leave over dim1 and 3 over dim2 in the fixed order; at equal bandwidth
    7.5 each is best.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> reduce = Collective(CollectiveKind.REDUCE_SCATTER, 16.0, "dp")
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> best = balanced_schedule(reduce, Group((4, 4), (1, 1)), np.array([1.0, 1.0]), network)
    >>> best.time_s, best.hierarchical_time_s, best.aggregate_bound_s
    (7.5, 12.0, 7.5)
    >>> [(share.order, share.fraction) for share in best.split]
    [((0, 1), 0.5), ((1, 0), 0.5)]
    """
    sent = network.loads(collective, group)
    used = np.flatnonzero(sent > 0)
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    _check(used, bandwidth)
    if not len(used):
        return BalancedSchedule(0.0, 0.0, 0.0, (), (0.0,) * len(group.sizes))
    networks = visited_networks(collective, group, network.topology, sent)
    orders = list(permutations(networks))[: None if has_orders(collective, network) else 1]
    first_bytes = passes_bytes(collective, group)
    loads = np.array([_order_bytes(order, first_bytes, len(sent)) for order in orders])
    loads[0] = sent  # The fixed order: as it is without orders.
    busy = loads[:, used] / bandwidth[used]
    hierarchical_s = float(busy[0].max())
    shares = _best_shares(busy / hierarchical_s)
    time_s = float((shares @ busy).max())
    if time_s >= hierarchical_s:
        time_s, shares = hierarchical_s, np.eye(len(orders))[0]
    split = [
        OrderShare(tuple(i for one in order for i in one.dims if group.sizes[i] > 1), float(x))
        for order, x in zip(orders, shares, strict=True)
        if x > 0
    ]
    return BalancedSchedule(
        time_s=time_s,
        hierarchical_time_s=hierarchical_s,
        aggregate_bound_s=float(loads.sum(axis=1).min() / bandwidth[used].sum()),
        traffic_bytes=tuple((shares @ loads).tolist()),
        split=tuple(sorted(split, key=lambda share: (-share.fraction, share.order))),
    )


def aggregate_bound_s(
    collective: Collective, group: Group, bandwidth_bytes_per_s: Array, network: Network
) -> float:
    """Bytes that must be sent over the bandwidth of all dimensions the group uses.

    No split over orders is faster: the longest busy time is at least the mean weighted by
    bandwidth, which is the bytes sent over the sum of bandwidths. In plain dimensions these are
    p m (N - 1)/N in any order. Where they depend on the order (in-network reduction, stacks) the
    fewest count: networks with few bytes per byte of theirs first, since swapping neighbours
    of another order saves p m (1 - 1/G_a)(1 - 1/G_b)(r_a - r_b) over the sizes before them.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp")
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> aggregate_bound_s(reduce, Group((4, 4), (1, 1)), np.array([1.0, 1.0]), network)
    15.0
    """
    sent = network.loads(collective, group)
    bandwidth = float(np.asarray(bandwidth_bytes_per_s)[sent > 0].sum())
    if not sent.any():
        return 0.0
    networks = visited_networks(collective, group, network.topology, sent)
    order = sorted(networks, key=lambda one: math.fsum(one.bytes_ratio))
    if not has_orders(collective, network) or order == list(networks):
        return float(sent.sum() / bandwidth)
    first_bytes = passes_bytes(collective, group)
    return float(_order_bytes(order, first_bytes, len(sent)).sum() / bandwidth)


def _check(used: NDArray[np.intp], bandwidth: Array) -> None:
    if len(used) > MAX_DIMS:
        got = f"got a group over {len(used)} dimensions"
        fix = "the number of orders grows with the factorial; use scheduler: hierarchical"
        raise SpecError(Fault(got, f"expected at most {MAX_DIMS}", fix))
    starved = [f"dim{i + 1}" for i in used if not bandwidth[i] > 0]
    if starved:
        expected = "expected bandwidth where the collective communicates"
        raise SpecError(Fault(f"got 0 GB/s for {', '.join(starved)}", expected))


def _order_bytes(order: Sequence[Visited], first_bytes: float, n_dims: int) -> Array:
    """Bytes of every dimension in an order of the networks, shape (n_dims,)."""
    n_bytes, n_inside = np.zeros(n_dims), 1
    for one in order:
        n_inside *= one.size
        n_bytes[list(one.dims)] = np.array(one.bytes_ratio) * (
            first_bytes * (one.size - 1) / n_inside
        )
    return n_bytes


def _best_shares(busy: Array) -> Array:
    """Shares of the orders that minimise the longest busy time; ``busy`` (n_orders, n_dims)."""
    n_orders, n_dims = busy.shape
    if n_orders == 1:
        return np.ones(1)
    from scipy.optimize import linprog

    # Times in units of the best single order's; a row per dimension, all of one size.
    unit = busy.max(axis=1).min()
    scale = np.maximum(busy.max(axis=0), unit)
    rows = np.hstack([(busy / scale).T, -unit / scale[:, None]])
    result = linprog(
        np.eye(n_orders + 1)[-1],
        A_ub=rows,
        b_ub=np.zeros(n_dims),
        A_eq=np.append(np.ones(n_orders), 0.0)[None, :],
        b_eq=np.ones(1),
        method="highs",
    )
    if result.status != 0:
        raise SolverFailed(f"got {result.message!r} from the linear program of orders")
    shares: Array = np.where(result.x[:-1] > _LEAST_SHARE, result.x[:-1], 0.0)
    shares /= shares.sum()
    time = (shares @ busy).max()
    least = result.fun * unit
    if not math.isclose(time, least, rel_tol=_TOLERANCE):
        raise SolverFailed(
            f"got {time:g} instead of {least:g} times the fixed order's time from the linear "
            f"program of orders; check for bandwidths many orders of magnitude apart"
        )
    return shares
