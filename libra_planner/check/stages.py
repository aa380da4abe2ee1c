"""Which algorithms run on switches, where, and for how long they keep them busy (C4).

A plan names it, or what the library runs is taken: NCCL sends large vectors around rings, and
all-to-alls to all peers at once. The fastest can be asked for instead: those that can run are
routed on the real links, and the one with the least time, mean over the seeds, is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from libra_planner.check.traffic import MOST_MESSAGES, Way
from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Problem
from libra_planner.step.collectives.algorithms import (
    Network,
    algorithm_fault,
    algorithm_used,
    visits,
)
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.schedules import Schedule as Turns
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Communication,
    Group,
    Send,
    SendPattern,
)

IN_NETWORK = "in-network"
"""What stands for an algorithm where switches reduce."""

_SAME = 1e-9
"""Relative difference of times up to which two algorithms are equally fast."""

PhaseKey = tuple[int, Group, Way]
"""Dimension, communicator and algorithm: what decides about a phase's factor."""
User = Communication | Send
"""What a phase serves."""


class Selection(StrEnum):
    """What runs where the plan names no algorithm, and what else is routed.

    ``library``: what NCCL runs. ``fastest``: the faster of ring and halving-doubling. ``compare``:
    what NCCL runs; all others that can run are routed, too, and their times are told.
    """

    LIBRARY = "library"
    FASTEST = "fastest"
    COMPARE = "compare"


LIBRARY = "NCCL"
"""Whose algorithms run where nothing else is asked for."""


@dataclass(frozen=True)
class Stage:
    """Where an algorithm is decided: a communicator's part in one switch dimension.

    Parameters
    ----------
    dim, group : the dimension and the group's part in it.
    candidates : algorithms that are routed, the usual one first; ``None`` where switches reduce; of
        sends their pattern.
    reason : why that one runs: ``named`` by the plan, of the ``library``, the ``only`` one, or
        ``faster``, where times decide which of the candidates it is.
    """

    dim: int
    group: Group
    candidates: tuple[Way, ...]
    reason: str = "library"

    @property
    def decided(self) -> tuple[Way, ...]:
        """The candidates that may run: one, unless times decide."""
        return self.candidates if self.reason == "faster" else self.candidates[:1]

    @property
    def keys(self) -> tuple[PhaseKey, ...]:
        """A phase for each candidate."""
        return tuple((self.dim, self.group, one) for one in self.candidates)


Schedule = Mapping[Stage, Way]
"""What runs at each stage."""


def stage(
    collective: Collective,
    group: Group,
    network: Network,
    dim: int,
    selection: Selection = Selection.LIBRARY,
) -> Stage:
    """The stage of a collective in a switch dimension.

    Parameters
    ----------
    collective, group : what, and among whom.
    network : with the algorithms that the plan names.
    dim : the dimension, from 0.
    selection : what runs where the plan names nothing.

    Raises
    ------
    SpecError
        For a named algorithm that cannot run there.

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 1e9, "dp")
    >>> where = Group((8,), (1,)), plain_network(parse_topology("SW(8)")), 0
    >>> for selection in Selection:
    ...     print([str(one) for one in stage(reduce, *where, selection).candidates])
    ['ring']
    ['halving_doubling', 'ring']
    ['ring', 'direct', 'direct1', 'halving_doubling']
    """
    # Only the part of the group in this dimension matters for its flows.
    dims = stage_dims(collective.kind, group, network, dim)
    sizes = tuple(size if i in dims else 1 for i, size in enumerate(group.sizes))
    strides = tuple(stride if i in dims else 1 for i, stride in enumerate(group.strides))
    part = Group(sizes, strides)
    kind, named = collective.kind, network.for_kind(collective.kind).algorithms[dim]
    if dim in network.in_network and kind is CollectiveKind.ALL_REDUCE:
        return Stage(dims[0], part, (None,), "only")
    crossed = _rails_crossed(kind, group, network, dim)
    if len(dims) > 1 or crossed:
        sizes = (*group.sizes[:crossed], *sizes[crossed:])
        part = Group(sizes, (*group.strides[:crossed], *strides[crossed:]))
        return _flat_stage(kind, part, network, dims, selection)
    runs = _runnable(kind, network.topology, dim, sizes[dim])
    usual: tuple[Algorithm, ...] = (Algorithm.RING,)
    reason = "library"
    if named is not None:
        usual, reason = (algorithm_used(collective, group, network, dim),), "named"
    elif kind is CollectiveKind.ALL_TO_ALL:
        fits = Algorithm.DIRECT in runs
        usual = (Algorithm.DIRECT if fits else Algorithm.DIRECT1,)
        reason = "library" if fits else "only"
    elif selection is Selection.FASTEST:
        both = (Algorithm.HALVING_DOUBLING, Algorithm.RING)
        usual = tuple(one for one in both if one in runs)
        reason = "faster" if len(usual) > 1 else "only"
    others = runs if selection is Selection.COMPARE else ()
    return Stage(dim, part, tuple(dict.fromkeys((*usual, *others))), reason)


def stage_dims(kind: CollectiveKind, group: Group, network: Network, dim: int) -> tuple[int, ...]:
    """The dimensions whose flows are routed together with those of a dimension.

    One ring, a direct exchange, or a tree of switches that reduce goes over all tiers of a stack
    at once (C13); a hierarchical collective takes them one after the other.

    Examples
    --------
    >>> from libra_planner.step.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> pods, whole = plain_network(parse_topology("[SW(4)_SW(2)]")), Group((4, 2), (1, 1))
    >>> [stage_dims(kind, whole, pods, 1) for kind in ("all-reduce", "all-to-all")]
    [(1,), (0, 1)]
    """
    kind = CollectiveKind(kind)
    flat = network.is_flat(kind, dim)
    stack = next((tiers for tiers in network.topology.stacks if dim in tiers), range(dim, dim + 1))
    return tuple(i for i in stack if i == dim or (flat and group.sizes[i] > 1))


def _rails_crossed(kind: CollectiveKind, group: Group, network: Network, dim: int) -> int:
    """How many dimensions inside a stack a direct exchange goes across by its links.

    With PXN it goes through the scale-up domain to the receiver's rail first.
    """
    direct = kind is CollectiveKind.ALL_TO_ALL and network.schedule(kind) is Turns.DIRECT
    stack = next((tiers for tiers in network.topology.stacks if dim in tiers), None)
    if stack is None or not direct or network.has_pxn:
        return 0
    return stack.start if math.prod(group.sizes[: stack.start]) > 1 else 0


def _flat_stage(
    kind: CollectiveKind,
    part: Group,
    network: Network,
    dims: tuple[int, ...],
    selection: Selection,
) -> Stage:
    """The stage of a ring, or of a direct exchange, over several tiers of a stack."""
    topology = network.topology
    usual, reason = Algorithm.RING, "named"
    runs: tuple[Algorithm, ...] = (Algorithm.RING,)
    if kind is CollectiveKind.ALL_TO_ALL:
        n_peers = math.prod(part.sizes) - math.prod(part.sizes[: dims[0]])
        fits = topology.n_npus * n_peers <= MOST_MESSAGES
        usual = Algorithm.DIRECT if fits else Algorithm.DIRECT1
        runs, reason = (Algorithm.DIRECT, Algorithm.DIRECT1)[not fits :], "library"
    for dim in dims:
        named = network.for_kind(kind).algorithms[dim]
        if named is not None and named not in runs:
            got = f"got {named} in {topology.labels[dim]} for a {kind} over all tiers of a stack"
            expected = f"expected {' or '.join(runs)}, as its schedule says"
            fix = "write default there, or all_to_all: hierarchical or all_reduce: hierarchical "
            raise SpecError(Fault(got, expected, fix + "in schedules", f"algorithms.{dim}"))
        usual = named or usual
    others = runs if selection is Selection.COMPARE else ()
    return Stage(dims[0], part, tuple(dict.fromkeys((usual, *others))), reason)


def tier_loads(topology: Topology, key: PhaseKey) -> dict[int, float]:
    """What crosses each tier of a phase's network, over what crosses its port (C13).

    Examples
    --------
    A ring over 4 leaves of 8 NPUs: one in 8 sends to another leaf.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> pods, whole = parse_topology("[SW(8)_SW(4)]"), Group((8, 4), (1, 1))
    >>> tier_loads(pods, (0, whole, Algorithm.RING))
    {0: 1.0, 1: 0.125}
    """
    dim, group, algorithm = key
    port, n = topology.ports[dim], math.prod(group.sizes)
    if isinstance(algorithm, SendPattern):
        tiers = [i for i, one in enumerate(topology.ports) if one == port]
        return dict.fromkeys(range(port, max(i for i in tiers if group.sizes[i] > 1) + 1), 1.0)
    last = max((i for i, size in enumerate(group.sizes) if size > 1), default=dim)
    inside = {i: math.prod(group.sizes[:i]) for i in range(port, last + 1)}
    if algorithm in (Algorithm.DIRECT, Algorithm.DIRECT1):
        return {i: (n - count) / (n - inside[port]) for i, count in inside.items()}
    return {i: inside[port] / count for i, count in inside.items()}


def _runnable(
    kind: CollectiveKind, topology: Topology, dim: int, size: int
) -> tuple[Algorithm, ...]:
    """What can run in a dimension, without those of too many messages."""
    if size == 2:  # All send the same.
        return (Algorithm.DIRECT if kind is CollectiveKind.ALL_TO_ALL else Algorithm.RING,)
    fits = topology.n_npus * (size - 1) <= MOST_MESSAGES
    found = [one for one in Algorithm if fits or one not in (Algorithm.DIRECT, Algorithm.DIRECT1)]
    where = topology.dimensions[dim]
    return tuple(one for one in found if algorithm_fault(kind, where, size, one) is None)


@dataclass(frozen=True)
class Decision:
    """What runs at a stage, and what else could.

    Parameters
    ----------
    stage, users : where, and for which collectives.
    times : for how long each algorithm keeps the dimension busy in a step, s, mean over the
        seeds; of those that were routed.
    taken : what runs.
    """

    stage: Stage
    users: tuple[User, ...] = field(repr=False)
    times: Mapping[Way, float]
    taken: Way

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


def algorithm_name(algorithm: Way) -> str:
    """An algorithm for people."""
    return IN_NETWORK if algorithm is None else algorithm.value


def fastest(times: Mapping[Way, float]) -> Way:
    """The algorithm of the least time; of equal ones the first.

    >>> str(fastest({Algorithm.HALVING_DOUBLING: 1.0, Algorithm.RING: 1.0 - 1e-12}))
    'halving_doubling'
    """
    least = min(times.values())
    return next(one for one, time_s in times.items() if time_s <= least * (1 + _SAME))


def is_carried(one: User, dim: int) -> bool:
    """Whether a dimension carries the bytes of a collective itself.

    The innermost one carries those of an exchange of experts between nodes as part of the exchange
    inside a node, which is a collective of its own at the same time (C16).
    """
    return isinstance(one, Send) or dim > 0 or not one.spreads_elsewhere


def busy_s(problem: Problem, users: Sequence[User], key: PhaseKey, bandwidth_Bps: float) -> float:
    """For how long collectives keep a dimension busy in a step (C4).

    Each counts only where it is carried itself (:func:`is_carried`).

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
        if is_carried(one, key[0])
        for n_bytes, latency_s in [_load(problem, one, key)]
    )


def _load(problem: Problem, one: User, key: PhaseKey) -> tuple[float, float]:
    """Bytes and latency of a collective in a dimension."""
    dim, _, algorithm = key
    network, chunks = problem.network, problem.step.model.n_chunks
    if isinstance(one, Send) or isinstance(algorithm, SendPattern):
        return _sent_bytes(problem, one, dim), 0.0
    if isinstance(problem.step.model, Calibrated):
        return float(problem.step.model.traffic(one.collective, one.group, network)[dim]), 0.0
    if chunks is None:
        dims = stage_dims(one.collective.kind, one.group, network, dim)
        sent = network.own_bytes(one.collective, one.group)[list(dims)].sum()
        return float(sent) * ring_hops(one.collective, key, problem), 0.0
    named = tuple(algorithm if i == dim else None for i in range(problem.topology.n_dims))
    stops = visits(one.collective, one.group, replace(network, algorithms=named))
    here = [stop for stop in stops if stop.dim == dim]
    n_hops = sum(stop.n_steps * stop.n_hops for stop in here)
    return sum(stop.n_bytes for stop in here), chunks * n_hops * network.latency_s[dim]


def _sent_bytes(problem: Problem, one: User, dim: int) -> float:
    """Of a send, with what its library cannot use of the links counted as bytes (C20)."""
    model = problem.step.model
    if not isinstance(one, Send):
        return 0.0
    if isinstance(model, Calibrated):
        return float(model.send_line_bytes(one.size_bytes, one.group, problem.network)[dim])
    return one.size_bytes


def send_stage(topology: Topology, one: Send, dim: int) -> Stage:
    """Where a send's pattern is routed: the innermost dimension of a network that it spans."""
    port = topology.ports[dim]
    first = next(i for i, at in enumerate(topology.ports) if at == port and one.group.sizes[i] > 1)
    return Stage(first, one.group, (one.pattern,), "only")


def tiers_label(topology: Topology, dim: int, group: Group) -> str:
    """The tiers of a dimension's network that a phase's group spans, in words.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> pods = parse_topology("[SW(4)_SW(2)_SW(2)]")
    >>> tiers_label(pods, 1, Group((1, 2, 2), (4, 1, 1))), tiers_label(pods, 0, Group((4,), (1,)))
    ('dim2 and dim3', 'dim1')
    """
    port = topology.ports[dim]
    spanned = zip(topology.labels, topology.ports, group.sizes, strict=False)
    labels = [label for label, one, size in spanned if one == port and size > 1]
    return " and ".join(labels) or topology.labels[dim]


def ring_hops(collective: Collective, key: PhaseKey, problem: Problem) -> float:
    """Messages of a ring all-to-all pass through the NPUs between, which C3 leaves out."""
    passes = collective.kind is CollectiveKind.ALL_TO_ALL and key[2] is Algorithm.RING
    return key[1].sizes[key[0]] / 2 if passes and problem.step.model.n_chunks is None else 1.0
