"""Models of collectives as data: how long a collective takes, as a function of bandwidth (C4).

A plan asks for :class:`Ideal`, :class:`Balanced` or :class:`Pipelined`; a check of links makes
each of them slower. What no expression in bandwidth can say has a model at one vector:
the exact flow shop is neither convex nor monotone in bandwidth, so its time enters a training
loop as a constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology
from libra_planner.frozen import Frozen
from libra_planner.step import expression as tree
from libra_planner.step.collectives import algorithms as messages
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.balanced import aggregate_bound_s, balanced_time
from libra_planner.step.expression import Array, scale
from libra_planner.workload.operations import Collective, Group


def send_bytes(n_bytes: float, group: Group, topology: Topology) -> Array:
    """Bytes of a send by the outermost dimension that it goes to in every network, (n_dims,)."""
    own = np.zeros(topology.n_dims)
    last = {topology.ports[i]: i for i, size in enumerate(group.sizes) if size > 1}
    own[list(last.values())] = n_bytes
    return own


class CollectiveModel(ABC):
    """What a training loop asks of a collective.

    Parameters
    ----------
    n_chunks : equal parts that a collective is cut into; ``None`` where they are not modelled.
    """

    n_chunks: int | None

    @property
    def has_own_links(self) -> bool:
        """Whether partial groups have only their own links (C6)."""
        return False

    @property
    def is_slowed(self) -> bool:
        """Whether a check of the links has found it slower than a plan's model says."""
        return False

    @abstractmethod
    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """How long a collective takes in a group, as a time expression."""

    @abstractmethod
    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes that its time counts by dimension, shape (n_dims,)."""

    def occupied(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes that others wait for by dimension, shape (n_dims,): what contention adds up."""
        return self.traffic(collective, group, network)

    def send_time(self, n_bytes: float, group: Group, network: Network) -> tree.Node:
        """What every rank of a group takes to send to the next one, all at once."""
        return tree.transfers(self.send_traffic(n_bytes, group, network))

    def send_traffic(self, n_bytes: float, group: Group, network: Network) -> Array:
        """Bytes of such a send by dimension, of the rank whose next one is farthest (C13).

        That is on the outermost dimension of every network that the group spans, and what lies
        inside it on the way.

        Examples
        --------
        >>> from libra_planner.step.collectives.algorithms import plain_network
        >>> from libra_planner.fabric.topology import parse_topology
        >>> pods = plain_network(parse_topology("SW(2)_[SW(4)_SW(2)]"))
        >>> Ideal().send_traffic(8.0, Group((1, 4, 2), (1, 1, 1)), pods)
        array([0., 8., 8.])
        """
        return network.topology.loads(send_bytes(n_bytes, group, network.topology))

    def send_occupied(self, n_bytes: float, group: Group, network: Network) -> Array:
        """Bytes of such a send that others wait for."""
        return self.send_traffic(n_bytes, group, network)

    @property
    def while_competing(self) -> CollectiveModel | None:
        """What holds beside others on the same dimensions; ``None`` for no other than always."""
        return None


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
class OwnLinks(Ideal):
    """:class:`Ideal`, but with the real links of partial groups (C6), and of sends."""

    has_own_links = True

    def own_bytes(self, collective: Collective, group: Group, network: Network) -> Array:
        """C3's bytes, and as many more as the links that a group lacks would carry."""
        slowdown = messages.real_link_slowdown(collective, group, network.topology)
        return super().own_bytes(collective, group, network) * slowdown

    def send_traffic(self, n_bytes: float, group: Group, network: Network) -> Array:
        """Bytes of a send, and as many more as the direct links beside its own would carry.

        Examples
        --------
        >>> from libra_planner.step.collectives.algorithms import plain_network
        >>> from libra_planner.fabric.topology import parse_topology
        >>> mesh = plain_network(parse_topology("FC(8)_SW(4)"))
        >>> OwnLinks().send_traffic(8.0, Group((2, 4), (4, 1)), mesh)
        array([56.,  8.])
        """
        sent = super().send_traffic(n_bytes, group, network)
        return sent * messages.own_link_factors(network.topology, group)


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
    >>> from libra_planner.workload.operations import CollectiveKind
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
    senders, send_factors : groups whose ranks send to neighbours, and their factors.
    """

    communications: tuple[tuple[Collective, Group], ...]
    factors: tuple[tuple[float, ...], ...]
    algorithms: tuple[tuple[Algorithm | None, ...], ...]
    senders: tuple[Group, ...] = ()
    send_factors: tuple[tuple[float, ...], ...] = ()

    @property
    def without_factors(self) -> Slowdown:
        """The same algorithms on links that slow nothing."""
        factors, sends = (
            tuple((1.0,) * len(one) for one in several)
            for several in (self.factors, self.send_factors)
        )
        return replace(self, factors=factors, send_factors=sends)

    @cached_property
    def _rows(self) -> dict[tuple[Collective, Group], int]:
        return {pair: i for i, pair in enumerate(self.communications)}

    def factors_of(self, collective: Collective, group: Group) -> Array:
        """The factors of a collective in a group, shape (n_dims,)."""
        return np.array(self.factors[self._rows[collective, group]])

    def algorithms_of(self, collective: Collective, group: Group) -> tuple[Algorithm | None, ...]:
        """What a collective in a group runs, by dimension."""
        return self.algorithms[self._rows[collective, group]]

    def send_factors_of(self, group: Group) -> Array:
        """The factors of sends in a group, shape (n_dims,)."""
        return np.array(self.send_factors[self.senders.index(group)])


@dataclass(frozen=True)
class Slowed(CollectiveModel):
    """What models have that count the links' real share of their bandwidth, as a check finds it.

    Parameters
    ----------
    slowdown : of every collective of the step.
    """

    slowdown: Slowdown = field(kw_only=True, repr=False)
    is_slowed = True

    def send_traffic(self, n_bytes: float, group: Group, network: Network) -> Array:
        """Factors times the bytes of a send."""
        sent = super().send_traffic(n_bytes, group, network)
        return sent * self.slowdown.send_factors_of(group)

    def occupied(self, collective: Collective, group: Group, network: Network) -> Array:
        """The traffic, but of what goes over all tiers of a stack at once (C13).

        Its flows wait at the farthest tier that they cross: links inside serve others meanwhile.
        """
        flat = [network.is_flat(collective.kind, i) for i in range(network.topology.n_dims)]
        passed = network.topology.passed(group.sizes) & flat
        stretched, whole = (
            one.traffic(collective, group, network) for one in (self, self._without_factors)
        )
        return np.where(passed, whole, stretched)

    def send_occupied(self, n_bytes: float, group: Group, network: Network) -> Array:
        """As of what goes over all tiers at once."""
        stretched, whole = (
            one.send_traffic(n_bytes, group, network) for one in (self, self._without_factors)
        )
        return np.where(network.topology.passed(group.sizes), whole, stretched)

    @cached_property
    def _without_factors(self) -> Self:
        return replace(self, slowdown=self.slowdown.without_factors)


@dataclass(frozen=True)
class SlowedIdeal(Slowed, Ideal):
    """:class:`Ideal` with the links' real share of their bandwidth."""

    has_own_links = True

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Factors times C3's bytes.

        In a hierarchy a tier that waits for its own links delays no tier inside it, whose links
        serve other chunks meanwhile; what goes over all tiers at once slows them alike (C13).
        """
        own, loads = network.own_bytes(collective, group), network.topology.loads
        slowed = own * self.slowdown.factors_of(collective, group)
        flat = [network.is_flat(collective.kind, i) for i in range(len(own))]
        return slowed + np.where(flat, loads(slowed) - slowed, loads(own) - own)


@dataclass(frozen=True)
class SlowedPipelined(Slowed, Pipelined):
    """:class:`Pipelined` with the links' real share of their bandwidth."""

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
    >>> from libra_planner.workload.operations import CollectiveKind
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
class Balanced(CollectiveModel):
    """The best split over orders of the dimensions, for every bandwidth vector (C4).

    Collectives that overlap others on a dimension that both use are left in the fixed order: one
    split would have to suit both, and the best of those is not convex in bandwidth.

    Parameters
    ----------
    of : what collectives send in the fixed order.

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> reduce, group = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), Group((4, 4), (1, 1))
    >>> times = [model.time(reduce, group, network) for model in (Ideal(), Balanced())]
    >>> [float(tree.TimeExpression(one, 2).seconds(np.array([1.0, 1.0]))) for one in times]
    [24.0, 15.0]
    """

    of: Ideal = Ideal()

    n_chunks = None

    @property
    def has_own_links(self) -> bool:
        """As in the fixed order."""
        return self.of.has_own_links

    @property
    def is_slowed(self) -> bool:
        """As in the fixed order."""
        return self.of.is_slowed

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Whatever set of dimensions takes longest to send what it must."""
        return balanced_time(collective, group, network, self.traffic(collective, group, network))

    def traffic(self, collective: Collective, group: Group, network: Network) -> Array:
        """Bytes of the fixed order, in which a collective competes."""
        return self.of.traffic(collective, group, network)

    def occupied(self, collective: Collective, group: Group, network: Network) -> Array:
        """As in the fixed order."""
        return self.of.occupied(collective, group, network)

    def send_traffic(self, n_bytes: float, group: Group, network: Network) -> Array:
        """As in the fixed order."""
        return self.of.send_traffic(n_bytes, group, network)

    def send_occupied(self, n_bytes: float, group: Group, network: Network) -> Array:
        """As in the fixed order."""
        return self.of.send_occupied(n_bytes, group, network)

    @property
    def while_competing(self) -> CollectiveModel:
        """The fixed order."""
        return self.of


@dataclass(frozen=True)
class AggregateBound(Ideal):
    """All bandwidth of a collective's dimensions at one vector: no split is faster.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    """

    bandwidth_bytes_per_s: tuple[float, ...]

    def time(self, collective: Collective, group: Group, network: Network) -> tree.Node:
        """Bytes over the sum of bandwidths."""
        bandwidth = np.array(self.bandwidth_bytes_per_s)
        return tree.Constant(aggregate_bound_s(collective, group, bandwidth, network))

    def traffic(self, _collective: Collective, _group: Group, network: Network) -> Array:
        """None: a bound has no contention."""
        return np.zeros(network.topology.n_dims)


@dataclass(frozen=True)
class IdealTimes:
    """What holds of one collective's bytes at one bandwidth vector, however it is cut.

    Parameters
    ----------
    time_s : C4's ideal: no latency, endlessly many chunks.
    aggregate_bound_s : bytes over the bandwidth of all dimensions; see
        :func:`~libra_planner.step.collectives.balanced.aggregate_bound_s`.
    own_bytes : what the groups of every dimension exchange themselves, shape (n_dims,).
    traffic_bytes : what crosses every tier (C13), shape (n_dims,).
    busy_s : that over the bandwidth, shape (n_dims,).
    """

    time_s: float
    aggregate_bound_s: float
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
        :func:`~libra_planner.step.collectives.balanced.aggregate_bound_s`.
    n_chunks : chunks used.
    traffic_bytes : C3's bytes, shape (n_dims,).
    busy_s : time that each dimension serves, shape (n_dims,).
    """

    time_s: float
    continuous_time_s: float
    model_time_s: float
    ideal_time_s: float
    aggregate_bound_s: float
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
