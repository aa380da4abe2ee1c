"""A slow twin of the loads of stacks: every message of every NPU, counted where it passes (C13).

Knows nothing of the formulas: it lists who sends what to whom and adds up, for every port of an
NPU and every bundle of uplinks, the bytes that leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from libra_planner.fabric.topology import Topology
from libra_planner.step.collectives.schedules import Schedule
from libra_planner.workload.operations import Collective, CollectiveKind, Group

Npu = tuple[int, ...]
"""An NPU by its position in every dimension."""

Message = tuple[Npu, Npu, float]


def loads_by_counting(
    topology: Topology, collective: Collective, group: Group, schedule: Schedule
) -> np.ndarray:
    """Bytes that leave over every tier, mean per NPU, when all groups of the fabric run at once."""
    total = np.zeros(topology.n_dims)
    for sent in bytes_by_port(topology, collective, group, schedule):
        total[sent.dim] += sum(sent.n_bytes.values()) / topology.n_npus
    return total


class Sent:
    """What left over the ports or uplinks of one tier, by who owns them."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.n_bytes: Counter[Npu] = Counter()


def bytes_by_port(
    topology: Topology, collective: Collective, group: Group, schedule: Schedule
) -> list[Sent]:
    """Bytes by tier and owner: an NPU for its own port, all NPUs below for uplinks."""
    sent = [Sent(dim) for dim in range(topology.n_dims)]
    for members in _groups(topology, group):
        for a, b, n_bytes in _messages(members, group, collective, schedule):
            # The network that joins the two is that of the outermost dimension they differ in.
            last = max(d for d in range(topology.n_dims) if a[d] != b[d])
            port = topology.ports[last]
            for dim in range(port, last + 1):
                owner = a if dim == port else a[dim:]
                if dim == port or owner != b[dim:]:
                    sent[dim].n_bytes[owner] += n_bytes
    return sent


def _groups(topology: Topology, group: Group) -> Iterator[dict[Npu, Npu]]:
    """Every group that the fabric holds: its NPUs by their rank in every dimension."""
    starts = []
    for whole, size, stride in zip(topology.sizes, group.sizes, group.strides, strict=True):
        span = size * stride
        starts.append([high * span + low for high in range(whole // span) for low in range(stride)])
    for start in product(*starts):
        yield {
            rank: tuple(
                s + r * stride for s, r, stride in zip(start, rank, group.strides, strict=True)
            )
            for rank in product(*map(range, group.sizes))
        }


def _messages(
    members: dict[Npu, Npu], group: Group, collective: Collective, schedule: Schedule
) -> Iterator[Message]:
    n = prod(group.sizes)
    full = collective.size_bytes * (n if collective.is_shard else 1)
    passes = 2 if collective.kind is CollectiveKind.ALL_REDUCE else 1
    if schedule is Schedule.DIRECT:
        for a, b in product(members.values(), repeat=2):
            if a != b:
                yield a, b, full / n
    elif schedule is Schedule.RING:
        ring = [members[rank] for rank in sorted(members, key=lambda rank: rank[::-1])]
        for a, b in zip(ring, [*ring[1:], *ring[:1]], strict=True):
            if a != b:
                yield a, b, passes * full * (n - 1) / n
    else:
        yield from _in_turns(members, group, collective.kind, full, passes)


def _in_turns(
    members: dict[Npu, Npu], group: Group, kind: CollectiveKind, full: float, passes: int
) -> Iterator[Message]:
    """Dimension by dimension, each rank to all that differ from it there alone."""
    for dim, size in enumerate(group.sizes):
        part = full / size
        for rank, npu in members.items():
            for other in range(size):
                if other != rank[dim]:
                    peer = (*rank[:dim], other, *rank[dim + 1 :])
                    yield npu, members[peer], passes * part
        if kind is not CollectiveKind.ALL_TO_ALL:
            full /= size


def tree_loads_by_counting(
    topology: Topology, full: float, group: Group, tiers: range
) -> np.ndarray:
    """What switches that reduce send up in a stack, per NPU: one vector for all that is below.

    Every NPU sends the part of the vector that it has; each unit of a tier that the group leaves
    sends the sum of its NPUs' same parts up once.
    """
    own = full / prod(group.sizes[: tiers.start])
    up = Counter[int]()
    for members in _groups(topology, group):
        outermost = [d for d in tiers if group.sizes[d] > 1]
        for dim in range(tiers.start, max(outermost, default=-1) + 1):
            parts = {(npu[: tiers.start], npu[dim:], npu[tiers.stop :]) for npu in members.values()}
            up[dim] += len(parts)
    return np.array([own * up[dim] / topology.n_npus for dim in tiers])
