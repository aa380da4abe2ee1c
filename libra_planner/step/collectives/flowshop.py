"""The exact time of a collective: a re-entrant flow shop of chunks over dimensions (C4).

Every dimension serves one chunk at a time, in the order of arrival; every chunk makes
the visits of :mod:`libra_planner.step.collectives.algorithms`; all chunks are there at time 0.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.step.collectives.algorithms import Network, Visit, visits
from libra_planner.units import NS_PER_S
from libra_planner.workload.operations import Collective, CollectiveKind, Group

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
    _check_bandwidth(stops, network, bandwidth_bytes_per_s)
    returns = collective.kind is CollectiveKind.ALL_REDUCE
    runs = []
    for k in AUTO_CHUNKS if n_chunks is None else (n_chunks,):
        times_ns = visit_times_ns(
            stops, network, bandwidth_bytes_per_s, n_chunks=k, clock_ns=clock_ns
        )
        runs.append(_run(stops, times_ns, k, network.topology.n_dims, returns=returns))
    return min(runs, key=lambda run: run.time_s)


def _run(
    stops: tuple[Visit, ...], times_ns: list[float], n_chunks: int, n_dims: int, *, returns: bool
) -> FlowShop:
    makespan = there_and_back_makespan if returns else one_way_makespan
    busy = [0.0] * n_dims
    for stop, time_ns in zip(stops, times_ns, strict=True):
        busy[stop.dim] += n_chunks * time_ns / NS_PER_S
    return FlowShop(makespan(times_ns, n_chunks) / NS_PER_S, n_chunks, tuple(busy))


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


def _check_bandwidth(
    stops: tuple[Visit, ...], network: Network, bandwidth_bytes_per_s: Sequence[float]
) -> None:
    starved = sorted({stop.dim for stop in stops if not bandwidth_bytes_per_s[stop.dim] > 0})
    if starved:
        names = ", ".join(network.topology.labels[i] for i in starved)
        expected = "expected bandwidth where the collective communicates"
        raise SpecError(Fault(f"got 0 GB/s for {names}", expected))


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
