"""Models of collectives as data: how long a collective takes, as a function of bandwidth (C4).

A reduce-scatter may visit the dimensions in any order: whichever comes first meets the
full vector, later ones what is left of it. In sum over its dimensions an NPU always sends
m (1 - 1/N) bytes, N being the NPUs of the group, since the terms telescope; the order only
decides where. Giving every order a share of the chunks balances the load (the idea of the
scheduler Themis); for given bandwidths the best shares are a small linear program.

A plan asks for :class:`Ideal`, :class:`Balanced` or :class:`Pipelined`; a check of links makes
each of them slower. What no expression in bandwidth can say has a model at one vector:
the exact flow shop is neither convex nor monotone in bandwidth, and the best split over orders
is a linear program, so their times enter a training loop as constants.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import permutations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SolverFailed, SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.frozen import Frozen
from libra_planner.step import expression as tree
from libra_planner.step.collectives import algorithms as messages
from libra_planner.step.collectives.algorithms import Network, traffic_bytes
from libra_planner.step.collectives.schedules import Schedule
from libra_planner.step.expression import Array, scale
from libra_planner.workload.operations import Collective, CollectiveKind, Group

MAX_DIMS = 6
"""Most dimensions of one group that orders are counted out for: 720 of them."""

_LEAST_SHARE = 1e-9
_TOLERANCE = 1e-6


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
    collective: Collective,
    group: Group,
    bandwidth_bytes_per_s: NDArray[np.float64],
    network: Network,
) -> BalancedSchedule:
    """The split over orders with the least time, under C4's ideal model.

    With x_o the share of order o, which sends a_od bytes in dimension d: minimise
    max_d sum_o x_o a_od / B_d over x >= 0, sum x = 1. In a stack a_od is all that crosses tier d
    (C13). An all-gather in the reverse order sends the same bytes as its reduce-scatter. Letting
    an all-reduce choose the two halves' orders apart would gain nothing: both choose from the same
    convex set of loads, and twice its best point is the best sum. An all-to-all sends the same in
    any order.

    Bound: the time is at least the mean of the busy times weighted by bandwidth, which
    is the bytes sent over the sum of bandwidths: m (N - 1)/N for a reduce-scatter or
    all-gather, twice that for an all-reduce, whatever the split. With in-network
    reduction or a stack the bytes depend on the order, and the order with the fewest counts.

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
    >>> reduce, group = Collective(CollectiveKind.REDUCE_SCATTER, 16.0, "dp"), Group((4, 4), (1, 1))
    >>> network = plain_network(parse_topology("SW(4)_SW(4)"))
    >>> best = balanced_schedule(reduce, group, np.array([1.0, 1.0]), network)
    >>> best.time_s, best.hierarchical_time_s, best.aggregate_bound_s
    (7.5, 12.0, 7.5)
    >>> [(share.order, share.fraction) for share in best.split]
    [((0, 1), 0.5), ((1, 0), 0.5)]
    """
    used = [i for i, size in enumerate(group.sizes) if size > 1]
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)[used]
    _check(used, bandwidth)
    if _has_tree(collective, network):
        got = "got in-network reduction in a stack with scheduler: balanced"
        expected = "expected tiers in an order: one tree of switches spans them all"
        raise SpecError(Fault(got, expected, "leave one of them out"))
    if not used:
        return BalancedSchedule(0.0, 0.0, 0.0, (), (0.0,) * len(group.sizes))
    orders = list(permutations(used))
    in_order = network.schedule(collective.kind) is Schedule.HIERARCHICAL
    if collective.kind is CollectiveKind.ALL_TO_ALL or not in_order:
        orders = orders[:1]
    loads = np.array([_order_bytes(collective, group, order, network) for order in orders])
    busy = loads[:, used] / bandwidth
    hierarchical_s = float(busy[0].max())
    shares = _best_shares(busy / hierarchical_s)
    time_s = float((shares @ busy).max())
    if time_s >= hierarchical_s:
        time_s, shares = hierarchical_s, np.eye(len(orders))[0]
    split = [OrderShare(o, float(x)) for o, x in zip(orders, shares, strict=True) if x > 0]
    return BalancedSchedule(
        time_s=time_s,
        hierarchical_time_s=hierarchical_s,
        aggregate_bound_s=float(loads.sum(axis=1).min() / bandwidth.sum()),
        traffic_bytes=tuple((shares @ loads).tolist()),
        split=tuple(sorted(split, key=lambda share: (-share.fraction, share.order))),
    )


def aggregate_bound_s(
    collective: Collective,
    group: Group,
    bandwidth_bytes_per_s: NDArray[np.float64],
    network: Network,
) -> float | None:
    """Bytes that must be sent over the bandwidth of all dimensions the group spans.

    No order of dimensions and no split over orders is faster (:func:`balanced_schedule`
    says why). ``None`` where in-network reduction or a stack makes the bytes depend on the
    order and there are too many orders to go through.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> reduce, network = (
    ...     Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"),
    ...     plain_network(parse_topology("SW(4)_SW(4)")),
    ... )
    >>> aggregate_bound_s(reduce, Group((4, 4), (1, 1)), np.array([1.0, 1.0]), network)
    15.0
    """
    used = [i for i, size in enumerate(group.sizes) if size > 1]
    reducing = collective.kind is CollectiveKind.ALL_REDUCE and network.in_network & set(used)
    ordered = network.schedule(collective.kind) is Schedule.HIERARCHICAL
    varies = bool(reducing or network.topology.stacks) and ordered
    if not used:
        return 0.0
    if (varies and len(used) > MAX_DIMS) or _has_tree(collective, network):
        return None
    orders = permutations(used) if varies else [tuple(used)]
    loads = [_order_bytes(collective, group, order, network).sum() for order in orders]
    return float(min(loads) / np.asarray(bandwidth_bytes_per_s)[used].sum())


def _check(used: list[int], bandwidth: NDArray[np.float64]) -> None:
    if len(used) > MAX_DIMS:
        got = f"got a group over {len(used)} dimensions"
        fix = "the number of orders grows with the factorial; use scheduler: hierarchical"
        raise SpecError(Fault(got, f"expected at most {MAX_DIMS}", fix))
    starved = [f"dim{i + 1}" for i, value in zip(used, bandwidth, strict=True) if not value > 0]
    if starved:
        expected = "expected bandwidth where the collective communicates"
        raise SpecError(Fault(f"got 0 GB/s for {', '.join(starved)}", expected))


def _has_tree(collective: Collective, network: Network) -> bool:
    """Whether the switches of a stack reduce: all its tiers at once, in no order."""
    reduces = collective.kind is CollectiveKind.ALL_REDUCE
    return reduces and any(one.start in network.in_network for one in network.topology.stacks)


def _order_bytes(
    collective: Collective, group: Group, order: tuple[int, ...], network: Network
) -> NDArray[np.float64]:
    """Bytes across each dimension when visited in this order, shape (n_dims,)."""
    if network.schedule(collective.kind) is not Schedule.HIERARCHICAL:
        return network.loads(collective, group)
    whole = Collective(collective.kind, messages.full_bytes(collective, group), collective.group)
    sizes = tuple(group.sizes[i] for i in order)
    inside = {position for position, i in enumerate(order) if i in network.in_network}
    own = np.zeros(len(group.sizes))
    own[list(order)] = traffic_bytes(whole, Group(sizes, (1,) * len(sizes)), inside)
    return network.topology.loads(own)


def _best_shares(busy: NDArray[np.float64]) -> NDArray[np.float64]:
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
    shares: NDArray[np.float64] = np.where(result.x[:-1] > _LEAST_SHARE, result.x[:-1], 0.0)
    shares /= shares.sum()
    time = (shares @ busy).max()
    least = result.fun * unit
    if not math.isclose(time, least, rel_tol=_TOLERANCE):
        raise SolverFailed(
            f"got {time:g} instead of {least:g} times the fixed order's time from the linear "
            f"program of orders; check for bandwidths many orders of magnitude apart"
        )
    return shares


class CollectiveModel(ABC):
    """What a training loop asks of a collective.

    Parameters
    ----------
    n_chunks : equal parts that a collective is cut into; ``None`` where they are not modelled.
    has_own_links : whether partial groups have only their own links (C6).
    is_slowed : whether a check of the links has found it slower than a plan's model says.
    """

    n_chunks: int | None
    has_own_links: ClassVar[bool] = False
    is_slowed: ClassVar[bool] = False

    @abstractmethod
    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """How long a collective takes in a group, as a time expression."""

    @abstractmethod
    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes that it occupies every dimension with, shape (n_dims,): what contention adds up."""


@dataclass(frozen=True)
class Ideal(CollectiveModel):
    """LIBRA's model: every dimension at full bandwidth, the slowest counts (C3, C4)."""

    n_chunks = None

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """The slowest dimension."""
        return tree.transfers(self.traffic(collective, group, network))

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """C3's bytes; of a stack, all that crosses a tier (C13)."""
        return network.topology.loads(self.own_bytes(collective, group, network))

    def own_bytes(self, collective: Collective, group: Group, network: Network) -> Array:
        """What the groups of every dimension exchange themselves, shape (n_dims,)."""
        return network.own_bytes(collective, group)


@dataclass(frozen=True)
class Balanced(Ideal):
    """:class:`Ideal`; the best split over orders of the dimensions is told beside it."""


@dataclass(frozen=True)
class OwnLinks(Ideal):
    """:class:`Ideal`, but with the real links of partial groups (C6)."""

    has_own_links = True

    def own_bytes(self, collective: Collective, group: Group, network: Network) -> Array:
        """C3's bytes, and as many more as the links that a group lacks would carry."""
        slowdown = messages.real_link_slowdown(collective, group, network.topology)
        return super().own_bytes(collective, group, network) * slowdown


@dataclass(frozen=True)
class Pipelined(CollectiveModel):
    """The convex model of chunks, latency and real links (C4).

    One chunk passes all its visits; every further chunk costs what the busiest dimension
    needs for one: with visit v of a_v bytes on dimension d_v in s_v steps,

        time = sum_v t_v + (k - 1) max_d sum_{v on d} t_v,
        t_v = a_v / (k B_{d_v}) + s_v * hops * latency.

    It is convex and non-increasing in bandwidth. For a reduce-scatter, all-gather or
    all-to-all it is the exact time; the exact all-reduce
    (:mod:`libra_planner.step.collectives.algorithms`) is neither convex nor monotone. Without
    latency its limit for many chunks is C4's ideal, all-to-alls on rings excepted, which
    carry hops.

    Parameters
    ----------
    n_chunks : chunks k, 1 or more.

    Examples
    --------
    An all-reduce of 16 bytes over RI(4): 24 bytes, however it is cut. An all-to-all: 6 steps
    of 4, hops and all.

    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> ring, group = plain_network(parse_topology("RI(4)")), Group((4,), (1,))
    >>> Pipelined(4).time(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), group, ring)
    Transfer(n_bytes=24.0, coefficients=(1.0,))
    >>> Pipelined(4).traffic(Collective(CollectiveKind.ALL_TO_ALL, 16.0, "dp"), group, ring)
    array([24.])
    """

    n_chunks: int
    has_own_links = True

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """All visits of one chunk, and the busiest dimension's for every other."""
        stops = self.visits(collective, group, network)
        by_dim: dict[int, list[messages.Visit]] = {}
        for stop in stops:
            by_dim.setdefault(stop.dim, []).append(stop)
        first = self._one_chunk(stops, network)
        if self.n_chunks == 1:
            return first
        busiest = tree.maximum(self._one_chunk(part, network) for part in by_dim.values())
        return tree.add([first, scale(float(self.n_chunks - 1), busiest)])

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes of the visits, at full B_d."""
        n_bytes = np.zeros(network.topology.n_dims)
        for stop in self.visits(collective, group, network):
            n_bytes[stop.dim] += stop.n_bytes
        return n_bytes

    def visits(
        self, collective: Collective, group: Group, network: Network
    ) -> Sequence[messages.Visit]:
        """What a collective does in each dimension."""
        return messages.visits(collective, group, network.for_kind(collective.kind))

    def _one_chunk(self, stops: Sequence[messages.Visit], network: Network) -> tree.Node:
        """Visits of one chunk one after the other."""
        terms: list[tree.Node] = []
        for stop in stops:
            one_hot = tuple(1.0 if i == stop.dim else 0.0 for i in range(network.topology.n_dims))
            terms.append(tree.Transfer(stop.n_bytes / self.n_chunks, one_hot))
            terms.append(tree.Constant(stop.n_steps * stop.n_hops * network.latency_s[stop.dim]))
        return tree.add(terms)


@dataclass(frozen=True)
class Slowdown(Frozen):
    """How much longer collectives take on their links than a model says.

    Parameters
    ----------
    communications : collectives and their groups.
    factors : on the time of each of them, by dimension; shape (n_communications, n_dims).
    algorithms : what each of them runs in every dimension; ``None`` for the usual one.
    """

    communications: tuple[tuple[Collective, Group], ...]
    factors: tuple[tuple[float, ...], ...]
    algorithms: tuple[tuple[Algorithm | None, ...], ...]

    @cached_property
    def _rows(self) -> dict[tuple[Collective, Group], int]:
        return {pair: i for i, pair in enumerate(self.communications)}

    def factors_of(self, collective: Collective, group: Group) -> Array:
        """The factors of a collective in a group, shape (n_dims,)."""
        return np.array(self.factors[self._rows[collective, group]])

    def algorithms_of(self, collective: Collective, group: Group) -> tuple[Algorithm | None, ...]:
        """What a collective in a group runs, by dimension."""
        return self.algorithms[self._rows[collective, group]]


@dataclass(frozen=True)
class SlowedIdeal(Ideal):
    """:class:`Ideal` with the links' real share of their bandwidth, as a check finds it.

    Parameters
    ----------
    slowdown : of every collective of the step.
    """

    slowdown: Slowdown = field(repr=False)
    has_own_links = is_slowed = True

    def own_bytes(self, collective: Collective, group: Group, network: Network) -> Array:
        """Factors times C3's bytes: of each dimension's own, before tiers beyond add theirs."""
        factors = self.slowdown.factors_of(collective, group)
        return super().own_bytes(collective, group, network) * factors


@dataclass(frozen=True)
class SlowedPipelined(Pipelined):
    """:class:`Pipelined` with the links' real share of their bandwidth, as a check finds it.

    Parameters
    ----------
    slowdown : of every collective of the step.
    """

    slowdown: Slowdown = field(repr=False)
    is_slowed = True

    def visits(
        self, collective: Collective, group: Group, network: Network
    ) -> Sequence[messages.Visit]:
        """The visits by the algorithms that are run, with factors times their bytes."""
        factors = self.slowdown.factors_of(collective, group).tolist()
        algorithms = self.slowdown.algorithms_of(collective, group)
        return [
            replace(stop, message_bytes=tuple(factors[stop.dim] * n for n in stop.message_bytes))
            for stop in messages.visits(collective, group, replace(network, algorithms=algorithms))
        ]


@dataclass(frozen=True)
class Simulated(Pipelined):
    """The exact flow shop at one vector.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> ring, group = plain_network(parse_topology("RI(4)")), Group((4,), (1,))
    >>> Simulated(2, (2.0,)).time(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), group, ring)
    Constant(seconds=12.0)
    """

    bandwidth_bytes_per_s: tuple[float, ...]

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Until the last chunk is done."""
        on, bandwidth = network.for_kind(collective.kind), self.bandwidth_bytes_per_s
        return tree.Constant(
            messages.flow_shop(collective, group, on, bandwidth, n_chunks=self.n_chunks).time_s
        )


@dataclass(frozen=True)
class BestSplit(Ideal):
    """The best split over orders of the dimensions at one vector, each collective alone.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> reduce, group = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4, 4), (1, 1))
    >>> best = BestSplit((1.0, 0.01))
    >>> round(best.time(reduce, group, network).seconds, 6), best.traffic(reduce, group, network)
    (600.0, array([24.,  6.]))
    """

    bandwidth_bytes_per_s: tuple[float, ...]

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Ideal time under the best split."""
        split = self.of_one_byte(collective, group, network)
        return tree.Constant(messages.full_bytes(collective, group) * split.time_s)

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """What the best split sends."""
        split = self.of_one_byte(collective, group, network)
        return messages.full_bytes(collective, group) * np.array(split.traffic_bytes)

    def of_one_byte(
        self, collective: Collective, group: Group, network: Network
    ) -> BalancedSchedule:
        """The split, which is the same for every size."""
        return _split(collective.kind, group.sizes, self.bandwidth_bytes_per_s, network)


@dataclass(frozen=True)
class AggregateBound(BestSplit):
    """All bandwidth of a collective's dimensions at one vector: no split is faster."""

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Bytes over the sum of bandwidths."""
        split = self.of_one_byte(collective, group, network)
        return tree.Constant(messages.full_bytes(collective, group) * split.aggregate_bound_s)

    def traffic(self, _collective: Collective, _group: Group, network: Network) -> Array:
        """None: a bound has no contention."""
        return np.zeros(network.topology.n_dims)


@lru_cache(maxsize=64)
def _split(
    kind: CollectiveKind,
    sizes: tuple[int, ...],
    bandwidth_bytes_per_s: tuple[float, ...],
    network: Network,
) -> BalancedSchedule:
    """The best split of one byte; one linear program serves every size."""
    whole, byte = Group(sizes, (1,) * len(sizes)), Collective(kind, 1.0, "")
    return balanced_schedule(byte, whole, np.array(bandwidth_bytes_per_s), network)


@dataclass(frozen=True)
class IdealTimes:
    """What holds of one collective's bytes at one bandwidth vector, however it is cut.

    Parameters
    ----------
    time_s : C4's ideal: no latency, endlessly many chunks.
    aggregate_bound_s : bytes over the bandwidth of all dimensions; see
        :func:`~libra_planner.step.collectives.models.aggregate_bound_s`.
    own_bytes : what the groups of every dimension exchange themselves, shape (n_dims,).
    traffic_bytes : what crosses every tier (C13), shape (n_dims,).
    busy_s : that over the bandwidth, shape (n_dims,).
    """

    time_s: float
    aggregate_bound_s: float | None
    own_bytes: tuple[float, ...] = field(repr=False)
    traffic_bytes: tuple[float, ...] = field(repr=False)
    busy_s: tuple[float, ...] = field(repr=False)


def ideal_times(
    collective: Collective, group: Group, network: Network, bandwidth_bytes_per_s: Array
) -> IdealTimes:
    """C4's ideal of a collective; bandwidth where it sends, shape (n_dims,)."""
    own = network.own_bytes(collective, group)
    loads = network.topology.loads(own)
    busy = np.divide(loads, bandwidth_bytes_per_s, out=np.zeros_like(loads), where=loads > 0)
    bound = aggregate_bound_s(collective, group, bandwidth_bytes_per_s, network)
    rows = (tuple(values.tolist()) for values in (own, loads, busy))
    return IdealTimes(float(busy.max(initial=0.0)), bound, *rows)


@dataclass(frozen=True)
class CollectiveTimes:
    """Times of one collective at one bandwidth vector.

    Parameters
    ----------
    time_s : exact, by the flow shop.
    continuous_time_s : the same without rounding to a clock.
    model_time_s : by the convex model that the optimizer uses, with the same chunks.
    ideal_time_s : C4's ideal: no latency, endlessly many chunks.
    aggregate_bound_s : bytes over the bandwidth of all dimensions; see
        :func:`~libra_planner.step.collectives.models.aggregate_bound_s`.
    n_chunks : chunks used.
    traffic_bytes : C3's bytes, shape (n_dims,).
    busy_s : time that each dimension serves, shape (n_dims,).
    """

    time_s: float
    continuous_time_s: float
    model_time_s: float
    ideal_time_s: float
    aggregate_bound_s: float | None
    n_chunks: int
    traffic_bytes: tuple[float, ...] = field(repr=False)
    busy_s: tuple[float, ...] = field(repr=False)

    @property
    def model_gap(self) -> float:
        """Exact time over the model's (C9)."""
        return self.time_s / self.model_time_s


def collective_times(
    collective: Collective,
    group: Group,
    network: Network,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    n_chunks: int | None = 1,
    clock_ns: float = 0.0,
) -> CollectiveTimes:
    """All times of a collective; parameters as in
    :func:`~libra_planner.step.collectives.algorithms.flow_shop`.

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 64.0, "dp")
    >>> times = collective_times(reduce, Group((4, 4), (1, 1)), network, [1.0, 1.0], n_chunks=2)
    >>> times.time_s, times.model_time_s, times.ideal_time_s, times.aggregate_bound_s
    (96.0, 108.0, 96.0, 60.0)
    """
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    exact = partial(messages.flow_shop, collective, group, network, bandwidth.tolist())
    run = exact(n_chunks=n_chunks, clock_ns=clock_ns)
    continuous = exact(n_chunks=run.n_chunks) if clock_ns else run
    model = Pipelined(run.n_chunks).time(collective, group, network)
    traffic = network.loads(collective, group)
    used = traffic > 0
    return CollectiveTimes(
        time_s=run.time_s,
        continuous_time_s=continuous.time_s,
        model_time_s=float(tree.TimeExpression(model, len(bandwidth)).seconds(bandwidth)),
        ideal_time_s=float((traffic[used] / bandwidth[used]).max(initial=0.0)),
        aggregate_bound_s=aggregate_bound_s(collective, group, bandwidth, network),
        n_chunks=run.n_chunks,
        traffic_bytes=tuple(traffic.tolist()),
        busy_s=run.busy_s,
    )
