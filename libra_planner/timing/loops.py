"""Training loops: how the operations of a step follow or overlap one another (C5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from libra_planner.collectives import traffic_bytes
from libra_planner.timing.expression import (
    Constant,
    Labelled,
    Node,
    TimeExpression,
    add,
    scale,
    transfers,
)
from libra_planner.workload.operations import Collective, Operation, Workload
from libra_planner.workload.parallelism import Communicators, Group

CollectiveTime: TypeAlias = Callable[[Collective, Group], Node]
"""How long a collective takes in a group, as a time expression (C4)."""


def ideal_time(collective: Collective, group: Group) -> Node:
    """LIBRA's model: every dimension at full bandwidth, the slowest counts (C3, C4)."""
    return transfers(traffic_bytes(collective, group))


def communication(
    operation: Operation, communicators: Communicators, time: CollectiveTime = ideal_time
) -> Node:
    """Time of one operation's collective, labelled with its class."""
    collective = operation.collective
    if collective is None:
        return Constant(0.0)
    group = communicators.group(operation.phase, collective.group)
    phase = operation.phase.value.replace("_", " ")
    name = "" if communicators.explicit else f" {collective.group.upper()}"
    label = f"{phase}{name} {collective.kind.value}"
    term = time(collective, group)
    return term if isinstance(term, Constant) else Labelled(label, term)


def no_overlap(
    workload: Workload, communicators: Communicators, time: CollectiveTime = ideal_time
) -> Node:
    """Everything one after the other: compute and communication add up (C5).

    Collectives of one class are summed before they are labelled, so that 54
    collectives become 2 or 3 terms.
    """
    compute = Constant(workload.compute_s)
    classes: dict[str, list[Node]] = {}
    for operation in workload.operations:
        term = communication(operation, communicators, time)
        if isinstance(term, Labelled):
            classes.setdefault(term.label, []).append(scale(operation.count, term.term))
    labelled = (Labelled(label, add(terms)) for label, terms in classes.items())
    return add([compute, *labelled])


Loop: TypeAlias = Callable[[Workload, Communicators, CollectiveTime], Node]
LOOPS: Mapping[str, Loop] = MappingProxyType({"no_overlap": no_overlap})
"""Training loops by the name a plan uses."""


def step_time(
    workload: Workload,
    communicators: Communicators,
    n_dims: int,
    *,
    loop: str = "no_overlap",
    time: CollectiveTime = ideal_time,
) -> TimeExpression:
    """The time expression of one training step.

    Parameters
    ----------
    workload, communicators : what is computed and who communicates.
    n_dims : dimensions of the fabric.
    loop : a name in :data:`LOOPS`.
    time : how long a collective takes; C4's ideal by default.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.workload.operations import CollectiveKind, Phase
    >>> gradient = Collective(CollectiveKind.ALL_REDUCE, 100.0, "dp")
    >>> layer = Operation("fc", Phase.WEIGHT_GRAD, 1.0, gradient)
    >>> pair = Communicators({(Phase.WEIGHT_GRAD, "dp"): Group((2,), (1,))})
    >>> float(step_time(Workload("w", (layer,)), pair, 1).seconds(np.array([50.0])))
    3.0
    """
    return TimeExpression(LOOPS[loop](workload, communicators, time), n_dims)
