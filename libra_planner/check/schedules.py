"""Which algorithm collectives run on the switches: the one place that decides (C4).

A plan names it, or the faster one runs: all that can run are routed on the real links, and the
one with the least time, mean over the seeds, is taken. All-to-alls send to all peers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from libra_planner.check.traffic import MOST_MESSAGES
from libra_planner.collectives import traffic_bytes
from libra_planner.collectives.algorithms import Algorithm, Network, algorithm_used, visits
from libra_planner.problem import Problem
from libra_planner.workload.communication import Communication
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group

IN_NETWORK = "in-network"
"""What stands for an algorithm where switches reduce."""

_SAME = 1e-9
"""Relative difference of times up to which two algorithms are equally fast."""

PhaseKey = tuple[int, Group, Algorithm | None]
"""Dimension, communicator and algorithm: what decides about a phase's factor."""


@dataclass(frozen=True)
class Stage:
    """Where an algorithm is decided: a communicator's part in one switch dimension.

    Parameters
    ----------
    dim, group : the dimension and the group's part in it.
    candidates : algorithms that can run, the usual one first; ``None`` where switches reduce.
    is_named : whether the plan names it.
    """

    dim: int
    group: Group
    candidates: tuple[Algorithm | None, ...]
    is_named: bool = False

    @property
    def keys(self) -> tuple[PhaseKey, ...]:
        """A phase for each candidate."""
        return tuple((self.dim, self.group, one) for one in self.candidates)


Schedule = Mapping[Stage, Algorithm | None]
"""What runs at each stage."""


def stage(collective: Collective, group: Group, network: Network, dim: int) -> Stage:
    """The stage of a collective in a switch dimension.

    Parameters
    ----------
    collective, group : what, and among whom.
    network : with the algorithms that the plan names.
    dim : the dimension, from 0.

    Raises
    ------
    SpecError
        For a named algorithm that cannot run there.

    Examples
    --------
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 1e9, "dp")
    >>> found = stage(reduce, Group((8,), (1,)), plain_network(parse_topology("SW(8)")), 0)
    >>> [str(one) for one in found.candidates]
    ['halving_doubling', 'ring']
    """
    # Only the part of the group in this dimension matters for its flows.
    sizes = tuple(size if i == dim else 1 for i, size in enumerate(group.sizes))
    strides = tuple(stride if i == dim else 1 for i, stride in enumerate(group.strides))
    part = Group(sizes, strides)
    if dim in network.in_network and collective.kind is CollectiveKind.ALL_REDUCE:
        return Stage(dim, part, (None,))
    exchanges = collective.kind is CollectiveKind.ALL_TO_ALL
    named = network.algorithms[dim]
    if named is None or (exchanges and named is Algorithm.HALVING_DOUBLING):
        return Stage(dim, part, _usual(exchanges, sizes[dim], network.topology.n_npus))
    return Stage(dim, part, (algorithm_used(collective, group, network, dim),), is_named=True)


def _usual(exchanges: bool, size: int, n_npus: int) -> tuple[Algorithm, ...]:
    """What can run where no algorithm is named."""
    if exchanges:
        fits = n_npus * (size - 1) <= MOST_MESSAGES
        return (Algorithm.DIRECT if fits else Algorithm.DIRECT1,)
    if size & (size - 1):
        return (Algorithm.RING,)
    # Of two NPUs both algorithms send the same.
    return (Algorithm.HALVING_DOUBLING, Algorithm.RING)[: 1 if size == 2 else 2]


@dataclass(frozen=True)
class Choice:
    """What runs at a stage, and what else could.

    Parameters
    ----------
    stage, users : where, and for which collectives.
    times : for how long each algorithm keeps the dimension busy in a step, s, mean over the
        seeds; of those that were routed.
    taken : what runs.
    """

    stage: Stage
    users: tuple[Communication, ...] = field(repr=False)
    times: Mapping[Algorithm | None, float]
    taken: Algorithm | None

    @property
    def algorithm(self) -> str:
        """What runs."""
        return algorithm_name(self.taken)

    @property
    def time_s(self) -> float:
        """The time of what runs."""
        return self.times[self.taken]

    @property
    def others(self) -> dict[str, float]:
        """What else could run, and its time, s."""
        return {algorithm_name(one): s for one, s in self.times.items() if one != self.taken}


def algorithm_name(algorithm: Algorithm | None) -> str:
    """An algorithm for people."""
    return IN_NETWORK if algorithm is None else algorithm.value


def fastest(times: Mapping[Algorithm | None, float]) -> Algorithm | None:
    """The algorithm of the least time; of equal ones the first.

    >>> str(fastest({Algorithm.HALVING_DOUBLING: 1.0, Algorithm.RING: 1.0 - 1e-12}))
    'halving_doubling'
    """
    least = min(times.values())
    return next(one for one, time_s in times.items() if time_s <= least * (1 + _SAME))


def busy_s(
    problem: Problem, users: Sequence[Communication], key: PhaseKey, bandwidth_Bps: float
) -> float:
    """For how long collectives keep a dimension busy in a step (C4).

    Parameters
    ----------
    problem : the plan.
    users : the collectives.
    key : the dimension, and the algorithm.
    bandwidth_Bps : what they get of its links.
    """
    return sum(
        one.count * (n_bytes / bandwidth_Bps + latency_s)
        for one in users
        for n_bytes, latency_s in [_load(problem, one, key)]
    )


def _load(problem: Problem, one: Communication, key: PhaseKey) -> tuple[float, float]:
    """Bytes and latency of a collective in a dimension."""
    dim, _, algorithm = key
    network, chunks = problem.network, problem.n_chunks
    if network is None:
        raise ValueError("the problem does not know its collectives")
    if chunks is None:
        sent = traffic_bytes(one.collective, one.group, network.in_network)[dim]
        return float(sent) * ring_hops(one.collective, key, problem), 0.0
    named = tuple(algorithm if i == dim else None for i in range(problem.topology.n_dims))
    stops = visits(one.collective, one.group, replace(network, algorithms=named))
    here = [stop for stop in stops if stop.dim == dim]
    n_hops = sum(stop.n_steps * stop.n_hops for stop in here)
    return sum(stop.n_bytes for stop in here), chunks * n_hops * network.latency_s[dim]


def ring_hops(collective: Collective, key: PhaseKey, problem: Problem) -> float:
    """Messages of a ring all-to-all pass through the NPUs between, which C3 leaves out."""
    passes = collective.kind is CollectiveKind.ALL_TO_ALL and key[2] is Algorithm.RING
    return key[1].sizes[key[0]] / 2 if passes and problem.n_chunks is None else 1.0
