"""What the NPUs of one dimension send each other during a collective, round by round.

Every group of a communicator runs the collective at the same time, and all NPUs begin a
round together. Sizes are shares of what an NPU sends in the dimension: times of flows
are proportional to sizes, so that one answer serves collectives of every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from libra_planner.collectives.algorithms import Algorithm
from libra_planner.errors import Fault, SpecError
from libra_planner.flows.fabric import Indices
from libra_planner.topology import Topology
from libra_planner.workload.parallelism import Group

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

    @property
    def n_messages(self) -> int:
        """Number of messages."""
        return len(self.src)


@dataclass(frozen=True)
class Members:
    """The groups of a communicator along one dimension.

    Parameters
    ----------
    topology, dim, group : whose part in dimension ``dim`` (from 0) is meant.

    Examples
    --------
    Groups of two, a stride of two apart, on a switch of four NPUs:

    >>> from libra_planner.topology import parse_topology
    >>> members = Members(parse_topology("SW(4)"), 0, Group((2,), (2,)))
    >>> members.rank, members.peers(1 - members.rank), members.instance
    (array([0, 0, 1, 1]), array([2, 3, 0, 1]), array([0, 1, 0, 1]))
    """

    topology: Topology
    dim: int
    group: Group

    @property
    def size(self) -> int:
        """NPUs of a group in the dimension."""
        return self.group.sizes[self.dim]

    @property
    def _step(self) -> int:
        """Distance between the NPUs of neighbouring ranks."""
        inner = int(np.prod(self.topology.sizes[: self.dim], dtype=np.int64))
        return inner * self.group.strides[self.dim]

    @property
    def npus(self) -> Indices:
        """All NPUs of the fabric."""
        return np.arange(self.topology.n_npus)

    @property
    def rank(self) -> Indices:
        """Rank of every NPU in its group."""
        return self.npus // self._step % self.size

    @property
    def instance(self) -> Indices:
        """Group of every NPU, numbered from 0."""
        below = self.npus % self._step
        above = self.npus // (self._step * self.size)
        return above * self._step + below

    def peers(self, rank: Indices) -> Indices:
        """The NPU of each one's group that has a given rank there."""
        return self.npus + (rank - self.rank) * self._step


def rounds(members: Members, algorithm: Algorithm) -> Iterator[Round]:
    """The rounds of a collective in one dimension, by algorithm.

    ``ring``: all that an NPU sends goes to the next rank; its steps repeat one pattern
    and count as one round. ``direct``: to all others at once. ``direct1``: to one peer after
    another, r to r + k in round k. ``halving_doubling``: with rank r xor 2^j in round j,
    half the vector first and with the nearest (vector halving, distance doubling).

    Parameters
    ----------
    members : who.
    algorithm : as :class:`~libra_planner.collectives.algorithms.Algorithm` describes it.

    Raises
    ------
    SpecError
        For rounds of more than :data:`MOST_MESSAGES`.

    Examples
    --------
    >>> from libra_planner.topology import parse_topology
    >>> members = Members(parse_topology("SW(4)"), 0, Group((4,), (1,)))
    >>> for found in rounds(members, Algorithm.HALVING_DOUBLING):
    ...     print(found.name, found.dst, round(found.share, 3))
    step 1 of 2 [1 0 3 2] 0.667
    step 2 of 2 [2 3 0 1] 0.333
    """
    size, rank = members.size, members.rank
    if algorithm is Algorithm.RING:
        yield Round(members.npus, members.peers((rank + 1) % size), 1.0, "ring")
    elif algorithm is Algorithm.HALVING_DOUBLING:
        n_steps = size.bit_length() - 1
        for step in range(n_steps):
            share = 2.0 ** -(step + 1) * size / (size - 1)
            name = f"step {step + 1} of {n_steps}"
            yield Round(members.npus, members.peers(rank ^ (1 << step)), share, name)
    elif algorithm is Algorithm.DIRECT1:
        for step in range(1, size):
            name = f"step {step} of {size - 1}"
            peers = members.peers((rank + step) % size)
            yield Round(members.npus, peers, 1.0 / (size - 1), name)
    else:
        yield _all_pairs(members)


def _all_pairs(members: Members) -> Round:
    size, n_npus = members.size, members.topology.n_npus
    if n_npus * (size - 1) > MOST_MESSAGES:
        got = f"got {n_npus * (size - 1):,} messages at once: all pairs in groups of {size:,}"
        fix = "use algorithm direct1, one peer after another"
        raise SpecError(Fault(got, f"expected at most {MOST_MESSAGES:,}", fix))
    others = [members.peers((members.rank + step) % size) for step in range(1, size)]
    src = np.tile(members.npus, size - 1)
    return Round(src, np.concatenate(others), 1.0 / (size - 1), "all pairs")
