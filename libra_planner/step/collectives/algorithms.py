"""What a collective sends in each dimension (C3), by which messages, and its exact time (C4).

A collective visits its dimensions one after the other. A reduce-scatter goes outwards
(dim1 first) on a vector that shrinks by each group size, an all-gather comes back the
same way, an all-reduce does both, with the outermost dimension's two parts as one
visit, and an all-to-all goes outwards with all its data. A visit is a series of
messages; each takes its bytes over the dimension's bandwidth, and a latency per hop.

Every dimension serves one chunk at a time, in the order of arrival; every chunk makes
these visits; all chunks are there at time 0.
This is the behaviour of ASTRA-sim 2 with its analytical network and one active chunk per
dimension, which ``tests/oracles`` compares to the nanosecond.

All chunks are alike, so they never overtake one another and each visit is a queue of its
own. Visits to distinct dimensions (reduce-scatter, all-gather, all-to-all) then have a
closed form, and so has an all-reduce over two dimensions. Over more, a middle dimension
serves chunks on their way out and on their way back in the order they arrive: that is
followed chunk by chunk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError, refuse, unknown_name
from libra_planner.fabric.blocks import Algorithm, DirectBlock, Span
from libra_planner.fabric.topology import Dimension, Topology
from libra_planner.step.collectives.schedules import (
    Schedule,
    Schedules,
    direct_bytes,
    ring_bytes,
    tree_bytes,
)
from libra_planner.units import NS_PER_S
from libra_planner.workload.operations import Collective, CollectiveKind, Group


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
    collective: Collective, group: Group, topology: Topology, *, with_hops: bool = False
) -> NDArray[np.float64]:
    """How much longer each dimension takes when a partial group has only its own links.

    ``ideal`` grants a group of g in a dimension of n all of B_d (LIBRA). Real links
    do not (C6): in FC(n) the group has B (g-1)/(n-1); neighbours in a ring are an open
    line, where a ring algorithm runs on one of its two directions (B/2), or groups
    laid around the ring in strides share its links; a switch gives all of B. ``with_hops``
    counts what an all-to-all around a whole ring carries over the NPUs between (C4), too.

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
            block = dimension.block
            if with_hops and isinstance(block, DirectBlock):
                factors[i] = block.link_slowdown(collective.kind, span)
            else:
                factors[i] = block.part_slowdown(collective.kind, span)
    return factors


def own_link_factors(topology: Topology, group: Group) -> NDArray[np.float64]:
    """Time of sends over the model's where links lead from NPU to NPU, shape (n_dims,).

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> own_link_factors(parse_topology("RI(4)_FC(8)_SW(4)"), Group((4, 2, 4), (1, 4, 1)))
    array([2., 7., 1.])
    """
    factors = np.ones(topology.n_dims)
    for i, dimension in enumerate(topology.dimensions):
        if group.sizes[i] > 1:
            span = Span(group.sizes[i], group.strides[i], dimension.size)
            factors[i] = dimension.block.send_slowdown(span)
    return factors


@dataclass(frozen=True)
class Network:
    """A fabric as collectives meet it.

    Parameters
    ----------
    topology : the dimensions.
    latency_s : latency of one hop in each dimension, seconds, shape (n_dims,); a
        switch is two hops.
    algorithms : by dimension; ``None`` stands for the block's usual one.
    in_network : dimensions (from 0) whose switches reduce.
    schedules : who sends to whom in collectives over several dimensions (C13).
    """

    topology: Topology
    latency_s: tuple[float, ...]
    algorithms: tuple[Algorithm | None, ...]
    in_network: frozenset[int] = frozenset()
    schedules: Schedules = field(default_factory=Schedules)

    def schedule(self, kind: CollectiveKind) -> Schedule:
        """The schedule of a kind of collectives."""
        return self.schedules.of_kind(kind, has_stack=bool(self.topology.stacks))

    def own_bytes(self, collective: Collective, group: Group) -> NDArray[np.float64]:
        """What the groups of every dimension exchange themselves, per NPU (C3, C13).

        Returns
        -------
        Bytes, shape (n_dims,); ``topology.loads`` of it is what crosses the tiers of stacks.

        Examples
        --------
        >>> from libra_planner.fabric.topology import parse_topology
        >>> pods = plain_network(parse_topology("SW(2)_[SW(4)_SW(2)]"))
        >>> whole = Group((2, 4, 2), (1, 1, 1))
        >>> own = pods.own_bytes(Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp"), whole)
        >>> own, pods.topology.loads(own)
        (array([16., 12.,  2.]), array([16., 14.,  2.]))
        >>> pods.own_bytes(Collective(CollectiveKind.ALL_TO_ALL, 16.0, "dp"), whole)
        array([8., 6., 8.])
        """
        full, schedule = full_bytes(collective, group), self.schedule(collective.kind)
        reduces = collective.kind is CollectiveKind.ALL_REDUCE
        if schedule is Schedule.RING:
            return (1 + reduces) * ring_bytes(full, group.sizes)
        own = traffic_bytes(collective, group, self.in_network)
        if schedule is Schedule.DIRECT:
            inside = self.topology.stacks[0].start if self.has_pxn else 0
            return np.append(own[:inside], direct_bytes(full, group.sizes)[inside:])
        trees = [one for one in self.topology.stacks if reduces and one.start in self.in_network]
        for tiers in trees:
            own[tiers.start : tiers.stop] = tree_bytes(full, group.sizes, tiers)
        return own

    def is_flat(self, kind: CollectiveKind, dim: int) -> bool:
        """Whether a kind of collectives goes over all tiers of a stack at once (C13)."""
        tree = dim in self.in_network and kind is CollectiveKind.ALL_REDUCE
        return tree or self.schedule(kind) is not Schedule.HIERARCHICAL

    @property
    def has_pxn(self) -> bool:
        """Whether direct all-to-alls go through the scale-up domain to the receiver's rail."""
        stacks, asked = self.topology.stacks, self.schedules.pxn
        usual = bool(stacks) and stacks[0].start > 0
        direct = self.schedule(CollectiveKind.ALL_TO_ALL) is Schedule.DIRECT
        return direct and (usual if asked is None else asked)

    def loads(self, collective: Collective, group: Group) -> NDArray[np.float64]:
        """What crosses every tier, per NPU (C13): C3's bytes where nothing is stacked."""
        return self.topology.loads(self.own_bytes(collective, group))

    def for_kind(self, kind: CollectiveKind) -> Network:
        """The network of a kind: an all-to-all has no halving-doubling, and runs the usual one."""
        if kind is not CollectiveKind.ALL_TO_ALL:
            return self
        halving = Algorithm.HALVING_DOUBLING
        return replace(
            self, algorithms=tuple(None if one is halving else one for one in self.algorithms)
        )


def schedule_fault(network: Network) -> Fault | None:
    """Why a network cannot run its schedules; ``None`` if it can."""
    topology = network.topology
    if network.schedules.all_reduce is Schedule.RING and network.in_network:
        expected = "expected sums in switches or in NPUs"
        return Fault("got a ring with in-network reduction", expected, "remove one of them")
    if network.schedules.all_to_all is Schedule.DIRECT and not topology.stacks:
        got = f"got direct all-to-alls on {topology}"
        expected = "expected a stack: separate networks have no way from every NPU to every other"
        fix = "write hierarchical, or brackets around the tiers of one network"
        return Fault(got, expected, fix)
    if network.schedules.pxn and network.schedule(CollectiveKind.ALL_TO_ALL) is not Schedule.DIRECT:
        expected = "expected it with direct all-to-alls in a stack"
        return Fault("got pxn with hierarchical all-to-alls", expected, "remove it")
    return None


def plain_network(topology: Topology) -> Network:
    """No latency, the default algorithm everywhere."""
    return Network(topology, (0.0,) * topology.n_dims, (None,) * topology.n_dims)


@dataclass(frozen=True)
class Visit:
    """One stay of a collective in one dimension: messages one after the other.

    Parameters
    ----------
    dim : the dimension (from 0).
    message_bytes : sizes of its messages, at full B_d, links a group lacks counted in.
    repeats : how often each occurs.
    n_hops : latency hops of each message.
    """

    dim: int
    message_bytes: tuple[float, ...]
    repeats: tuple[int, ...]
    n_hops: int

    @property
    def n_bytes(self) -> float:
        """Bytes of the whole visit, at full B_d."""
        pairs = zip(self.message_bytes, self.repeats, strict=True)
        return sum(size * count for size, count in pairs)

    @property
    def n_steps(self) -> int:
        """Messages that follow one another."""
        return sum(self.repeats)


def algorithm_fault(
    kind: CollectiveKind, dimension: Dimension, size: int, algorithm: Algorithm
) -> Fault | None:
    """Why an algorithm cannot run on a dimension in groups of ``size``; ``None`` if it can.

    >>> from libra_planner.fabric.blocks import RING
    >>> fault = algorithm_fault(
    ...     CollectiveKind.ALL_REDUCE, Dimension(RING, 4), 4, Algorithm.DIRECT
    ... )
    >>> str(fault)
    'got direct on RI(4), expected ring; other algorithms skip neighbours, whose links they share'
    """
    block = dimension.block
    if algorithm not in block.algorithms:
        expected = f"expected {' or '.join(block.algorithms)}"
        return Fault(f"got {algorithm} on {dimension}", expected, block.algorithm_fix)
    if algorithm is not Algorithm.HALVING_DOUBLING:
        return None
    if kind is CollectiveKind.ALL_TO_ALL:
        got = f"got {algorithm} for an all-to-all on {dimension}"
        return Fault(got, "expected direct, direct1 or ring", "it halves a vector that is reduced")
    if size & (size - 1):
        got = f"got {algorithm} for a group of {size} on {dimension}"
        return Fault(got, "expected a power of two", "use ring, direct or direct1")
    return None


def algorithm_used(collective: Collective, group: Group, network: Network, dim: int) -> Algorithm:
    """The algorithm of one dimension.

    Raises
    ------
    SpecError
        When the one that was asked for cannot run there; the fault's path is
        ``algorithms.<dim>``.
    """
    dimension, size = network.topology.dimensions[dim], group.sizes[dim]
    asked = network.algorithms[dim]
    if asked is None:
        return dimension.block.default_algorithm(collective.kind, size)
    fault = algorithm_fault(collective.kind, dimension, size, asked)
    if fault is not None:
        raise SpecError(Fault(fault.got, fault.expected, fault.fix, f"algorithms.{dim}"))
    return asked


def visits(collective: Collective, group: Group, network: Network) -> tuple[Visit, ...]:
    """The visits of the whole vector, in order; dimensions that the group spans only.

    Groups that span part of a dimension have their own links only (C6,
    :func:`~libra_planner.step.collectives.algorithms.real_link_slowdown`).

    Raises
    ------
    SpecError
        For algorithms that cannot run; one fault each.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> network = plain_network(parse_topology("RI(4)_SW(2)"))
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 64.0, "dp")
    >>> for visit in visits(reduce, Group((4, 2), (1, 1)), network):
    ...     print(visit.dim, visit.n_steps, visit.n_bytes, visit.n_hops)
    0 3 48.0 1
    1 2 16.0 2
    0 3 48.0 1
    """
    used = [i for i, size in enumerate(group.sizes) if size > 1]
    algorithms = _algorithms(collective, group, network, used)
    outward: list[Visit] = []
    vector_bytes = full_bytes(collective, group)
    for i in used:
        dimension = network.topology.dimensions[i]
        span = Span(group.sizes[i], group.strides[i], dimension.size)
        factor = dimension.block.visit_factor(collective.kind, algorithms[i], span)
        series = list(_messages(collective, group, network, i, vector_bytes, algorithms[i]))
        sizes = tuple(factor * size for size, _ in series)
        hops = dimension.block.n_hops(span.stride)
        outward.append(Visit(i, sizes, tuple(count for _, count in series), hops))
        if collective.kind is not CollectiveKind.ALL_TO_ALL:
            vector_bytes /= group.sizes[i]
    if collective.kind is CollectiveKind.ALL_GATHER:
        return tuple(reversed(outward))
    if collective.kind is CollectiveKind.ALL_REDUCE and outward:
        *inner, last = outward
        return (*inner, _there_and_back(last, network), *reversed(inner))
    return tuple(outward)


def _algorithms(
    collective: Collective, group: Group, network: Network, used: list[int]
) -> dict[int, Algorithm]:
    chosen: dict[int, Algorithm] = {}
    faults: list[Fault] = []
    for i in used:
        try:
            chosen[i] = algorithm_used(collective, group, network, i)
        except SpecError as error:
            faults += error.faults
    refuse(faults)
    return chosen


def _there_and_back(visit: Visit, network: Network) -> Visit:
    """Reduce-scatter and all-gather of the outermost dimension as one visit.

    With in-network reduction both halves are one message up and down.
    """
    if visit.dim in network.in_network:
        return Visit(visit.dim, (2 * visit.message_bytes[0],), (1,), visit.n_hops)
    return Visit(
        visit.dim, visit.message_bytes, tuple(2 * count for count in visit.repeats), visit.n_hops
    )


def _messages(
    collective: Collective,
    group: Group,
    network: Network,
    dim: int,
    vector_bytes: float,
    algorithm: Algorithm,
) -> Iterator[tuple[float, int]]:
    """Sizes and counts of the messages of one visit."""
    size, part = group.sizes[dim], vector_bytes / group.sizes[dim]
    if dim in network.in_network and collective.kind is CollectiveKind.ALL_REDUCE:
        yield vector_bytes / 2, 1  # Two visits share the m / (g_1 ... g_{i-1}) of C3.
    elif algorithm is Algorithm.HALVING_DOUBLING:
        for step in range(1, size.bit_length()):
            yield vector_bytes / 2**step, 1
    elif algorithm is Algorithm.DIRECT:
        yield part * (size - 1), 1
    elif algorithm is Algorithm.RING and collective.kind is CollectiveKind.ALL_TO_ALL:
        yield part, size * (size - 1) // 2
    elif algorithm in (Algorithm.RING, Algorithm.DIRECT1):
        yield part, size - 1
    else:
        raise ValueError(f"the messages of {algorithm} are not known")


_Name = TypeVar("_Name", bound=StrEnum)
_SHORT_KINDS = MappingProxyType(
    {"ar": "all-reduce", "rs": "reduce-scatter", "ag": "all-gather", "a2a": "all-to-all"}
)


def collective_kind(text: str) -> CollectiveKind:
    """A kind by its name, however it is written: all-reduce, AllReduce, all_reduce, AR.

    Raises
    ------
    UnknownName
        For anything else.
    """
    return _member(CollectiveKind, "collective", text, _SHORT_KINDS)


def algorithm_named(text: str) -> Algorithm:
    """An algorithm by its name, however it is written: halving_doubling, halvingDoubling.

    Raises
    ------
    UnknownName
        For anything else.
    """
    return _member(Algorithm, "algorithm", text, {})


def _member(names: type[_Name], what: str, text: str, short: Mapping[str, str]) -> _Name:
    found = {_folded(one.value): one for one in names}
    found |= {name: names(value) for name, value in short.items()}
    if _folded(text) not in found:
        raise unknown_name(what, text, [one.value for one in names])
    return found[_folded(text)]


def _folded(text: str) -> str:
    return re.sub(r"[-_ ]", "", text.strip()).casefold()


MAX_CHUNKS = 65_536
"""Most chunks of one collective."""
MAX_AUTO_CHUNKS = 1_024
"""Most chunks that ``auto`` tries: the powers of two up to here."""
AUTO_CHUNKS = tuple(2**i for i in range(MAX_AUTO_CHUNKS.bit_length()))
"""What ``auto`` tries."""

_ROUNDING = 1 + 1e-12
"""A message of 41943.04 * 2 ns is not to lose a tick to the last bit of a division."""

_Stream: TypeAlias = list[float]


@dataclass(frozen=True)
class FlowShop:
    """The exact run of one collective.

    Parameters
    ----------
    time_s : from the first message to the end of the last.
    n_chunks : chunks used.
    busy_s : how long each dimension serves, shape (n_dims,).
    """

    time_s: float
    n_chunks: int
    busy_s: tuple[float, ...] = field(repr=False)


def flow_shop(
    collective: Collective,
    group: Group,
    network: Network,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    n_chunks: int | None = 1,
    clock_ns: float = 0.0,
) -> FlowShop:
    """Exact time of a collective.

    Parameters
    ----------
    collective, group : what is communicated, by whom.
    network : topology, latency, algorithms.
    bandwidth_bytes_per_s : shape (n_dims,).
    n_chunks : equal parts of the vector; ``None`` takes the fastest of :data:`AUTO_CHUNKS`,
        of equally fast ones the fewest.
    clock_ns : a message takes a whole number of these, rounded down (ASTRA-sim: 1); a
        message of less than one keeps its time. 0 for none.

    Raises
    ------
    SpecError
        For algorithms that cannot run, or a dimension in use without bandwidth.

    Examples
    --------
    One ring of 4 at 2 bytes/s: 2 * 3 steps of 16/4 bytes.

    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> network = plain_network(parse_topology("RI(4)"))
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 16.0, "dp")
    >>> flow_shop(reduce, Group((4,), (1,)), network, [2.0]).time_s
    12.0
    """
    stops = visits(collective, group, network)
    starved = sorted({stop.dim for stop in stops if not bandwidth_bytes_per_s[stop.dim] > 0})
    if starved:
        names = ", ".join(network.topology.labels[i] for i in starved)
        expected = "expected bandwidth where the collective communicates"
        raise SpecError(Fault(f"got 0 GB/s for {names}", expected))
    returns = collective.kind is CollectiveKind.ALL_REDUCE
    makespan = there_and_back_makespan if returns else one_way_makespan
    times_ns = partial(visit_times_ns, stops, network, bandwidth_bytes_per_s, clock_ns=clock_ns)
    runs = []
    for k in AUTO_CHUNKS if n_chunks is None else (n_chunks,):
        times, busy = times_ns(n_chunks=k), [0.0] * network.topology.n_dims
        for stop, time_ns in zip(stops, times, strict=True):
            busy[stop.dim] += k * time_ns / NS_PER_S
        runs.append(FlowShop(makespan(times, k) / NS_PER_S, k, tuple(busy)))
    return min(runs, key=lambda run: run.time_s)


def visit_times_ns(
    stops: Sequence[Visit],
    network: Network,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    n_chunks: int,
    clock_ns: float = 0.0,
) -> list[float]:
    """Time of every visit of one chunk, nanoseconds: steps * (message / B + hops * latency).

    In nanoseconds, since whole ones add up without rounding.
    """
    times = []
    for stop in stops:
        ns_per_byte = NS_PER_S / (float(bandwidth_bytes_per_s[stop.dim]) * n_chunks)
        hop_ns = stop.n_hops * network.latency_s[stop.dim] * NS_PER_S
        pairs = zip(stop.message_bytes, stop.repeats, strict=True)
        times.append(sum(n * (_ticks(size * ns_per_byte, clock_ns) + hop_ns) for size, n in pairs))
    return times


def _ticks(time_ns: float, clock_ns: float) -> float:
    if not clock_ns or time_ns < clock_ns:
        return time_ns
    return math.floor(time_ns / clock_ns * _ROUNDING) * clock_ns


def one_way_makespan(times: Sequence[float], n_chunks: int) -> float:
    """Visits to distinct dimensions: sum of one chunk's, and the longest for every other.

    Parameters
    ----------
    times : of one chunk's visits, in order, any unit.
    n_chunks : chunks k.

    Examples
    --------
    >>> one_way_makespan([2.0, 3.0, 1.0], 4)
    15.0
    """
    return sum(times) + (n_chunks - 1) * max(times, default=0.0)


def there_and_back_makespan(times: Sequence[float], n_chunks: int) -> float:
    """Visits to dims 1..D-1, D, D-1..1, first in first out; of simultaneous arrivals at a
    dimension the one on its way out goes first.

    Parameters
    ----------
    times : 2 D - 1 visit times, above 0, any unit.
    n_chunks : chunks k.

    Examples
    --------
    Two chunks over two dimensions. Dim1 is busy 0-4 with both on their way out, dim2
    2-5 and 5-8, and dim1 again 5-7 and 8-10.

    >>> there_and_back_makespan([2.0, 3.0, 2.0], 2)
    10.0
    """
    if len(times) < 3:
        return one_way_makespan(times, n_chunks)
    first, final = times[0], times[-1]
    if len(times) == 3:  # Arrivals back at dim1 are evenly spaced: the extremes decide.
        pace = max(first, times[1])
        earliest = first + times[1]
        latest = earliest + (n_chunks - 1) * pace
        return max(n_chunks * (first + final), earliest + n_chunks * final, latest + final)
    back = np.array(_middle(times, n_chunks))
    waits = back + np.arange(n_chunks, 0, -1) * final
    return float(max(n_chunks * (first + final), waits.max()))


def _middle(times: Sequence[float], n_chunks: int) -> _Stream:
    """When each chunk comes back to dim1, with two or more dimensions beyond it but one."""
    n_dims = (len(times) + 1) // 2
    outbound: list[_Stream] = [[] for _ in range(n_dims)]
    inbound: list[_Stream] = [[] for _ in range(n_dims)]
    outbound[1] = [times[0] * (i + 1) for i in range(n_chunks)]
    beyond: _Advance | None = None
    for i in reversed(range(1, n_dims - 1)):
        beyond = _middle_dimension(
            _Service(times[i], times[len(times) - 1 - i], times[n_dims - 1]),
            outbound[i : i + 2],
            inbound[i - 1 : i + 1],
            beyond,
        )
    if beyond is not None:
        beyond(math.inf)
    return inbound[0]


@dataclass(frozen=True)
class _Service:
    """Visit times on the way out, on the way back, and of the outermost dimension."""

    out: float
    back: float
    outermost: float


_Advance: TypeAlias = Callable[[float], None]
"""Serves every chunk that arrives before a time."""


def _middle_dimension(
    service: _Service, outbound: list[_Stream], inbound: list[_Stream], beyond: _Advance | None
) -> _Advance:
    """One dimension between the first and the outermost.

    ``outbound`` are the arrivals on the way out here and at the next dimension, ``inbound``
    those on the way back at the dimension before and here; all grow in time order. Before
    it serves a chunk on its way out it lets the dimensions ``beyond`` deliver all that
    comes back earlier; theirs depends on nothing later, so a single pass is exact. The
    outermost dimension has one queue and is served on the way.
    """
    arrivals, onward = outbound
    done, returning = inbound
    state = (0, 0, 0.0, 0.0)

    def advance(until: float) -> None:
        nonlocal state
        i, j, free, outermost = state
        while True:
            arrival = arrivals[i] if i < len(arrivals) else math.inf
            limit = arrival if arrival < until else until
            if beyond is not None:
                beyond(limit)
            while j < len(returning) and returning[j] < limit:
                back = returning[j]
                free = (back if back > free else free) + service.back
                done.append(free)
                j += 1
            if arrival >= until:
                break
            free = (arrival if arrival > free else free) + service.out
            i += 1
            if beyond is None:
                outermost = (free if free > outermost else outermost) + service.outermost
                returning.append(outermost)
            else:
                onward.append(free)
        state = (i, j, free, outermost)

    return advance
