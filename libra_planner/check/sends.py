"""Sends between neighbouring ranks, such as stages of a pipeline, on one network (C16)."""

from __future__ import annotations

import numpy as np

from libra_planner.fabric.clos import Array, Indices
from libra_planner.fabric.topology import Topology
from libra_planner.step.collectives.models import Slowdown
from libra_planner.workload.operations import Communication, Group, Send, SendPattern


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


def factors_of(slowdown: Slowdown, one: Communication | Send) -> Array:
    """What a slowdown says of a collective or a send, shape (n_dims,)."""
    if isinstance(one, Send):
        return slowdown.send_factors_of(one.group)
    return slowdown.factors_of(one.collective, one.group)


def directions(pattern: SendPattern) -> tuple[tuple[str, int, bool], ...]:
    """Name, step and whether it goes around, of each round of a pattern."""
    if pattern is SendPattern.RING:
        return (("to the next rank", 1, True),)
    around = pattern is SendPattern.PIPELINE_AROUND
    return (("to the next stage", 1, around), ("to the stage before", -1, around))
