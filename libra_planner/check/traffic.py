"""What NPUs send each other, round by round (C4).

Every group of a communicator runs the collective at the same time, and all NPUs begin a
round together. Sizes are shares of what an NPU sends in the dimension: times of flows
are proportional to sizes, so that one answer serves collectives of every size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.clos import Clos, Flows, Indices
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.fabric.topology import Topology, TrafficSettings
from libra_planner.routing.ecmp import FIRST_PORT
from libra_planner.routing.loads import ranks
from libra_planner.workload.operations import (
    Group,
    SendPattern,
)

Way = Algorithm | SendPattern | None
"""How NPUs exchange in a dimension; ``None`` where switches reduce."""
MOST_MESSAGES = 4_000_000
"""Messages of a round beyond which it is refused: they would take minutes and gigabytes."""


@dataclass(frozen=True)
class Round:
    """Messages that are sent at the same time.

    Parameters
    ----------
    src, dst : NPUs, shape (n_messages,), numbered with the innermost dimension fastest.
    share : of what an NPU sends in the dimension, that each message carries.
    name : such as ``step 2 of 5``.
    """

    src: Indices
    dst: Indices
    share: float
    name: str


@dataclass(frozen=True)
class Members:
    """The groups of a communicator along one dimension.

    Parameters
    ----------
    topology, dim, group : whose part in dimension ``dim`` (from 0) is meant; a flat schedule's part
        spans further tiers of the same stack.

    Examples
    --------
    Groups of two, a stride of two apart, on a switch of four NPUs:

    >>> from libra_planner.fabric.topology import parse_topology
    >>> members = Members(parse_topology("SW(4)"), 0, Group((2,), (2,)))
    >>> members.rank, members.peers(1 - members.rank), members.instance
    (array([0, 0, 1, 1]), array([2, 3, 0, 1]), array([0, 1, 0, 1]))
    """

    topology: Topology
    dim: int
    group: Group

    @property
    def size(self) -> int:
        """NPUs of a group in the dimension, or in all tiers of a stack that its part spans."""
        return math.prod(size for _, size in self._tiers)

    @cached_property
    def _tiers(self) -> tuple[tuple[int, int], ...]:
        """Distance between NPUs of neighbouring ranks, and how many, by tier from the innermost."""
        ports, sizes = self.topology.ports, self.group.sizes
        return tuple(
            (math.prod(self.topology.sizes[:i]) * self.group.strides[i], sizes[i])
            for i in range(self.dim, len(sizes))
            if i == self.dim or (ports[i] == ports[self.dim] and sizes[i] > 1)
        )

    @property
    def n_rails(self) -> int:
        """Rails that the group's NPUs exchange across, where its part spans the stack's inside."""
        stack = next((tiers for tiers in self.topology.stacks if self.dim in tiers), range(0))
        return math.prod(self.group.sizes[: stack.start])

    def on_rail(self, npu: Indices, step: int) -> Indices:
        """The NPU beside each one's, so many rails on."""
        found, left = npu, np.full(len(npu), step)
        for i, size in enumerate(self.group.sizes[: self.dim] if self.n_rails > 1 else ()):
            distance = math.prod(self.topology.sizes[:i]) * self.group.strides[i]
            own = npu // distance % size
            found, left = found + ((own + left) % size - own) * distance, left // size
        return found

    @property
    def npus(self) -> Indices:
        """All NPUs of the fabric."""
        return np.arange(self.topology.n_npus)

    @cached_property
    def rank(self) -> Indices:
        """Rank of every NPU in its group."""
        rank, inside = np.zeros_like(self.npus), 1
        for step, size in self._tiers:
            rank += self.npus // step % size * inside
            inside *= size
        return rank

    @property
    def instance(self) -> Indices:
        """Group of every NPU, numbered from 0."""
        first = self.peers(np.zeros_like(self.npus))
        return np.unique(first, return_inverse=True)[1]

    def peers(self, rank: Indices) -> Indices:
        """The NPU of each one's group that has a given rank there."""
        found, own = self.npus, self.rank
        for step, size in self._tiers:
            found = found + (rank % size - own % size) * step
            rank, own = rank // size, own // size
        return found


def rounds(members: Members, algorithm: Algorithm | SendPattern) -> Iterator[Round]:
    """The rounds of a collective in one dimension, by algorithm.

    ``ring``: all that an NPU sends goes to the next rank; its steps repeat one pattern
    and count as one round. ``direct``: to all others at once. ``direct1``: to one peer after
    another, r to r + k in round k. ``halving_doubling``: with rank r xor 2^j in round j,
    half the vector first and with the nearest (vector halving, distance doubling). A pattern of
    sends has a round for each direction.

    Parameters
    ----------
    members : who.
    algorithm : as :class:`~libra_planner.step.collectives.algorithms.Algorithm` describes it.

    Raises
    ------
    SpecError
        For rounds of more than :data:`MOST_MESSAGES`.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> members = Members(parse_topology("SW(4)"), 0, Group((4,), (1,)))
    >>> for found in rounds(members, Algorithm.HALVING_DOUBLING):
    ...     print(found.name, found.dst, round(found.share, 3))
    step 1 of 2 [1 0 3 2] 0.667
    step 2 of 2 [2 3 0 1] 0.333
    """
    size, rank = members.size, members.rank
    n_peers = (size - 1) * members.n_rails
    if isinstance(algorithm, SendPattern):
        ways = directions(algorithm)
        for name, step, around in ways:
            where = members.topology, members.dim, members.group
            src, dst = neighbours(*where, step, around=around)
            yield Round(src, dst, 1.0 / len(ways), name)
    elif algorithm is Algorithm.RING:
        yield Round(members.npus, members.peers((rank + 1) % size), 1.0, "ring")
    elif algorithm is Algorithm.HALVING_DOUBLING:
        n_steps = size.bit_length() - 1
        for step in range(n_steps):
            share = 2.0 ** -(step + 1) * size / (size - 1)
            name = f"step {step + 1} of {n_steps}"
            yield Round(members.npus, members.peers(rank ^ (1 << step)), share, name)
    elif algorithm is Algorithm.DIRECT1:
        for i, peers in enumerate(_everyone(members), start=1):
            yield Round(members.npus, peers, 1.0 / n_peers, f"step {i} of {n_peers}")
    elif (n_messages := members.topology.n_npus * n_peers) > MOST_MESSAGES:
        got = f"got {n_messages:,} messages at once: all pairs in groups of {size:,}"
        fix = "use algorithm direct1, one peer after another"
        raise SpecError(Fault(got, f"expected at most {MOST_MESSAGES:,}", fix))
    else:
        peers = np.concatenate(list(_everyone(members)))
        yield Round(np.tile(members.npus, n_peers), peers, 1.0 / n_peers, "all pairs")


def _everyone(members: Members) -> Iterator[Indices]:
    """The peers of every NPU, one after the other; on other rails, too, where the part has them."""
    for step in range(1, members.size):
        peers = members.peers((members.rank + step) % members.size)
        for rail in range(members.n_rails):
            yield members.on_rail(peers, rail)


def placed_npus(
    topology: Topology, dim: int, built: RealizedDimension, placement: str, seed: int
) -> Indices:
    """The NPU of the fabric that runs each NPU of the job, shape (n_npus,).

    Whole positions of the dimension move, with all that is inside them; in a stack those of its
    innermost tier, over all of its network.

    Examples
    --------
    Four nodes on two leaves: neighbours go to different leaves.

    >>> from libra_planner.fabric.realization import realize
    >>> from libra_planner.fabric.topology import Realization, SwitchSettings
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("SW(4)")
    >>> small = Realization((SwitchSettings(switch_radix=4, n_leaves=2, n_spines=2),))
    >>> [built] = realize(fabric, [1e9], small).dimensions
    >>> placed_npus(fabric, 0, built, "rail", seed=0)
    array([0, 2, 1, 3])
    """
    port = topology.ports[dim]
    tiers = [i for i, one in enumerate(topology.ports) if one == port]
    n_inner, size = (math.prod(topology.sizes[i] for i in part) for part in (range(port), tiers))
    position = np.arange(size)
    if placement == "random":
        position = np.random.default_rng([seed, 0x504C4143]).permutation(size)
    elif placement == "rail" and isinstance(built.fabric, Clos):
        # One of each leaf, then the next of each leaf, and so on.
        leaf = built.fabric.leaf_of(built.port_of_npu[position * n_inner, 0])
        position = np.lexsort((leaf, ranks(leaf)))
    npu = np.arange(topology.n_npus)
    old = npu // n_inner % size
    return npu + (position[old] - old) * n_inner


def message_flows(
    built: RealizedDimension,
    members: Members,
    sent: Round,
    *,
    npu_at: Indices,
    settings: TrafficSettings,
    size_bytes: float,
) -> Flows:
    """The flows of a round, each message split evenly over its queue pairs.

    There are as many queue pairs as NICs at least, and queue pairs use the NICs in turn, so
    that a message uses all of its NPU's bandwidth.

    Parameters
    ----------
    built, members, sent : the links, the groups, and what they send.
    npu_at : the NPU of the fabric that runs each NPU of the job, shape (n_npus,).
    settings : queue pairs and addresses.
    size_bytes : what an NPU sends in the dimension, which the round's share is of.

    Examples
    --------
    >>> from libra_planner.fabric.realization import realize
    >>> from libra_planner.check.traffic import rounds
    >>> from libra_planner.fabric.blocks import Algorithm
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import Group
    >>> fabric = parse_topology("SW(2)")
    >>> [built] = realize(fabric, [1e9]).dimensions
    >>> members = Members(fabric, 0, Group((2,), (1,)))
    >>> [ring] = rounds(members, Algorithm.RING)
    >>> two = TrafficSettings(n_queue_pairs=2)
    >>> flows = message_flows(
    ...     built, members, ring, npu_at=np.arange(2), settings=two, size_bytes=8.0)
    >>> flows.src, flows.dst, flows.size_bytes
    (array([0, 0, 1, 1]), array([1, 1, 0, 0]), array([4., 4., 4., 4.]))
    """
    n_pairs = -(-settings.n_queue_pairs // built.n_ports) * built.n_ports
    pair = np.tile(np.arange(n_pairs), len(sent.src))
    src, dst = npu_at[np.repeat(sent.src, n_pairs)], npu_at[np.repeat(sent.dst, n_pairs)]
    nic = pair % built.n_ports
    per_address = settings.npus_per_address
    # Which of the NPUs behind the two addresses talk: each connection has its own queue pairs.
    connection = src % per_address * per_address + dst % per_address
    return Flows(
        src=built.port_of_npu[src, nic],
        dst=built.port_of_npu[dst, nic],
        size_bytes=np.full(len(src), size_bytes * sent.share / n_pairs),
        src_address=src // per_address * built.n_ports + nic,
        dst_address=dst // per_address * built.n_ports + nic,
        collective=np.repeat(_senders(members, sent), n_pairs),
        pair=pair + n_pairs * connection,
        src_port=np.full(len(src), FIRST_PORT if settings.source_ports == "shared" else -1),
    )


def _senders(members: Members, sent: Round) -> Indices:
    """Group of every message, without gaps where some groups send nothing here."""
    groups = members.instance[sent.src]
    if len(sent.src) >= members.topology.n_npus:
        return groups
    return np.unique(groups, return_inverse=True)[1]


def neighbours(
    topology: Topology, dim: int, group: Group, step: int, *, around: bool
) -> tuple[Indices, Indices]:
    """Who sends to whom over the network of a dimension, all groups at once.

    A rank's next one differs in inner dimensions first. What a send needs of this network goes
    between NPUs at the same place in all others.

    Parameters
    ----------
    dim : of the network (from 0).
    step : 1 to the next rank, -1 to the one before.
    around : whether the last rank and the first one are neighbours.

    Returns
    -------
    NPUs that send and those that receive, shape (n_sends,) each.

    Examples
    --------
    Four stages on two leaves of two: stage 1 sends to the other leaf.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> pods, stages = parse_topology("[SW(2)_SW(2)]"), Group((2, 2), (1, 1))
    >>> neighbours(pods, 0, stages, 1, around=False)
    (array([0, 1, 2]), array([1, 2, 3]))
    """
    npu, n_ranks = np.arange(topology.n_npus), group.n_npus
    digits, distances, rank, inside = [], [], np.zeros_like(npu), 1
    for i, size in enumerate(group.sizes):
        distances.append(int(np.prod(topology.sizes[:i], dtype=int)) * group.strides[i])
        digits.append(npu // distances[i] % size)
        rank, inside = rank + digits[i] * inside, inside * size
    there, following = npu.copy(), (rank + step) % n_ranks
    for i, size in enumerate(group.sizes):
        if topology.ports[i] == topology.ports[dim]:
            there += (following % size - digits[i]) * distances[i]
        following = following // size
    sends = there != npu
    if not around:
        sends &= (rank + step >= 0) & (rank + step < n_ranks)
    return npu[sends], there[sends]


def directions(pattern: SendPattern) -> tuple[tuple[str, int, bool], ...]:
    """Name, step and whether it goes around, of each round of a pattern."""
    if pattern is SendPattern.RING:
        return (("to the next rank", 1, True),)
    around = pattern is SendPattern.PIPELINE_AROUND
    return (("to the next stage", 1, around), ("to the stage before", -1, around))
