"""Training loops: a workload's step time from its layers and a loop (C5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.step.collectives.traffic import traffic_bytes
from libra_planner.step.expression import (
    ZERO,
    Array,
    Constant,
    Labelled,
    Node,
    TimeExpression,
    add,
    maximum,
    scale,
    transfers,
)
from libra_planner.step.loops import (
    LOOPS,
    NAMES,
    Activity,
    Duration,
    LoopTerm,
    Multiple,
    Overlap,
    Quantity,
    Serial,
    TrainingLoop,
    multiples,
)
from libra_planner.workload.operations import Collective, Operation, Phase, Workload
from libra_planner.workload.parallelism import Communicators, Group

_ROUNDING = 1e-12
"""Relative difference that adding up traffic in another order can make."""


@dataclass(frozen=True)
class Load:
    """What a layer does of one quantity in a step.

    Parameters
    ----------
    name : what reports call it, such as ``weight grad DP``.
    time : its time, all executions together.
    traffic_bytes : what an NPU sends for it, shape (n_dims,).
    """

    name: str
    time: Node
    traffic_bytes: Array = field(repr=False)

    def times(self, count: int) -> Load:
        """So many executions of it, one after the other."""
        if count == 1:
            return self
        return Load(self.name, scale(float(count), self.time), count * self.traffic_bytes)


@dataclass(frozen=True)
class LoopLayer:
    """One operator of a workload (C5), or a whole step.

    Parameters
    ----------
    loads : the quantities that take time.
    n_dims : dimensions of the fabric.
    n_executions : how often a duration in the loop counts.
    contention : whether overlapped communication competes for shared dimensions (C5).
    """

    loads: Mapping[Quantity, Load]
    n_dims: int
    n_executions: int = 1
    contention: bool = True

    def time(self, term: LoopTerm) -> Node:
        """The layer's time under a loop.

        Examples
        --------
        Two seconds of gradients, of which 1.5 on the first dimension, beside 1 s of compute:

        >>> from libra_planner.step.loops import NAMES
        >>> compute, gradient = NAMES["weight_grad.compute"], NAMES["weight_grad.dp"]
        >>> sent = np.array([150.0, 200.0])
        >>> none = np.zeros(2)
        >>> loads = {compute: Load("compute", Constant(1.0), none),
        ...          gradient: Load("weight grad DP", transfers(sent), sent)}
        >>> LoopLayer(loads, 2).time(Overlap((compute, gradient)))
        Maximum(terms=(Constant(seconds=1.0), Transfer(...), Transfer(...)))
        """
        if isinstance(term, Quantity):
            load = self.loads.get(term)
            return ZERO if load is None else load.time
        if isinstance(term, Duration):
            return Constant(term.seconds * self.n_executions)
        if isinstance(term, Multiple):
            return scale(term.factor, self.time(term.term))
        sides = [self.time(side) for side in term.terms]
        if isinstance(term, Serial):
            return add(sides)
        return maximum([*sides, self._shared(term)] if self.contention else sides)

    def _shared(self, overlap: Overlap) -> Node:
        """max over shared d of (traffic_d of all sides) / B_d (C5).

        A dimension is shared where all sides together send more than any one of them.
        """
        together = self._traffic(overlap)
        alone = np.max([self._traffic(side) for side in overlap.terms], axis=0)
        shared = together > alone * (1 + _ROUNDING)
        if not shared.any():
            return ZERO
        loads = [self.loads[key] for key in multiples(overlap) if key in self.loads]
        names = [load.name for load in loads if load.traffic_bytes[shared].any()]
        label = f"contention of {' and '.join(dict.fromkeys(names))}"
        return Labelled(label, transfers(np.where(shared, together, 0.0)))

    def _traffic(self, term: LoopTerm) -> Array:
        total = np.zeros(self.n_dims)
        for key, factor in multiples(term).items():
            if key in self.loads:
                total = total + factor * self.loads[key].traffic_bytes
        return total


CollectiveTime = Callable[[Collective, Group], Node]
"""How long a collective takes in a group, as a time expression (C4)."""

CollectiveTraffic = Callable[[Collective, Group], Array]
"""Bytes that it occupies every dimension with, shape (n_dims,): what contention adds up."""


def ideal_time(collective: Collective, group: Group) -> Node:
    """LIBRA's model: every dimension at full bandwidth, the slowest counts (C3, C4)."""
    return transfers(traffic_bytes(collective, group))


def step_time(
    workload: Workload,
    communicators: Communicators,
    n_dims: int,
    *,
    loop: str | TrainingLoop = "no_overlap",
    time: CollectiveTime = ideal_time,
    traffic: CollectiveTraffic = traffic_bytes,
) -> TimeExpression:
    """The time expression of one training step: (1 + bubble) * sum over layers (C5).

    Parameters
    ----------
    workload, communicators : what is computed and who communicates.
    n_dims : dimensions of the fabric.
    loop : a name in :data:`LOOPS` (with contention, no bubble), or a loop of one's own.
    time : how long a collective takes; C4's ideal by default.
    traffic : what it occupies the dimensions with when it competes with another.

    Raises
    ------
    SpecError
        When the loop leaves out something that the workload does, or cannot be read
        on one of its layers.

    Examples
    --------
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> gradient = Collective(CollectiveKind.ALL_REDUCE, 100.0, "dp")
    >>> layer = Operation("fc", Phase.WEIGHT_GRAD, 1.0, gradient)
    >>> pair = Communicators({(Phase.WEIGHT_GRAD, "dp"): Group((2,), (1,))})
    >>> float(step_time(Workload("w", (layer,)), pair, 1).seconds(np.array([50.0])))
    3.0
    >>> hidden = step_time(Workload("w", (layer,)), pair, 1, loop="async_dp")
    >>> float(hidden.seconds(np.array([50.0])))
    2.0
    """
    chosen = TrainingLoop(LOOPS[loop]) if isinstance(loop, str) else loop
    models = cache(time), cache(traffic)
    pairs = ((phase, collective) for phase, collective, _ in workload.collectives)
    sent = tuple(_sent(phase, what, communicators, *models) for phase, what in pairs)
    return _step_time(workload, sent, n_dims, chosen)


@dataclass(frozen=True)
class _Sent:
    """A collective of one phase; ``traffic_bytes`` has shape (n_dims,)."""

    key: Quantity
    name: str
    time: Node
    traffic_bytes: tuple[float, ...]


def _sent(
    phase: Phase,
    collective: Collective,
    communicators: Communicators,
    time: CollectiveTime,
    traffic: CollectiveTraffic,
) -> _Sent:
    group = communicators.group(phase, collective.group)
    key = Quantity(phase, _part(phase, collective.group, communicators))
    name = phase.value.replace("_", " ")
    if not communicators.explicit:
        name = f"{name} {collective.group.upper()}"
    term = time(collective, group)
    if term != ZERO:
        term = Labelled(f"{name} {collective.kind.value}", term)
    return _Sent(key, name, term, tuple(traffic(collective, group).tolist()))


def _part(phase: Phase, group: str, communicators: Communicators) -> Activity:
    """TP or DP: by the group's name, or with group sizes per phase by the phase (C5)."""
    if communicators.explicit:
        return Activity.DP if phase is Phase.WEIGHT_GRAD else Activity.TP
    if group not in (Activity.TP, Activity.DP):
        got = f"got a collective of the parallel group {group!r}"
        raise SpecError(Fault(got, "expected tp or dp: training loops know only these"))
    return Activity(group)


@lru_cache(maxsize=128)
def _step_time(
    workload: Workload, sent: tuple[_Sent, ...], n_dims: int, loop: TrainingLoop
) -> TimeExpression:
    """The expression, of what each of ``workload.collectives`` sends.

    The last ones are kept: plans that differ in rules, prices or blocks often share theirs.
    """
    found = zip(workload.collectives, sent, strict=True)
    loads = {
        (phase, collective): (one.key, Load(one.name, one.time, np.array(one.traffic_bytes)))
        for (phase, collective, _), one in found
    }
    builder = _LayerBuilder(loads, n_dims, loop)
    operators = workload.operators if loop.per_layer else (workload.operations,)
    alike = workload.alike if loop.per_layer else (0,)
    layers = {i: builder.layer(operators[i]) for i in dict.fromkeys(alike)}
    _check_complete(loop, layers.values(), workload.name)
    if loop.per_layer:
        _check_together(loop, operators)
    stretch = 1.0 + loop.bubble_fraction
    times = {i: scale(stretch, layer.time(loop.term)) for i, layer in layers.items()}
    return TimeExpression(add(times[i] for i in alike), n_dims)


@dataclass(frozen=True)
class _LayerBuilder:
    sent: Mapping[tuple[Phase, Collective], tuple[Quantity, Load]]
    n_dims: int
    loop: TrainingLoop

    def layer(self, operations: Sequence[Operation]) -> LoopLayer:
        """The loads of a layer; a quantity's operations follow one another."""
        found = [(operation, dict(self._loads(operation))) for operation in operations]
        parts: dict[Quantity, list[Load]] = {}
        for operation, loads in found:
            for key, load in loads.items():
                parts.setdefault(key, []).append(load.times(operation.count))
        whole = {key: _one_after_the_other(loads) for key, loads in parts.items()}
        return LoopLayer(whole, self.n_dims, self._n_executions(found), self.loop.contention)

    def _loads(self, operation: Operation) -> Iterator[tuple[Quantity, Load]]:
        """Compute and communication of one execution, where they take time."""
        if operation.compute_s:
            key = Quantity(operation.phase, Activity.COMPUTE)
            yield key, Load("compute", Constant(operation.compute_s), np.zeros(self.n_dims))
        if operation.collective is not None:
            key, load = self.sent[operation.phase, operation.collective]
            if load.time != ZERO:
                yield key, load

    def _n_executions(self, found: Sequence[tuple[Operation, Mapping[Quantity, Load]]]) -> int:
        """How often a layer runs, if the loop depends on it; 1 for a whole step.

        max(a, b) of n executions is n max(a, b) only where both sides run n times.
        """
        if not self.loop.per_layer:
            return 1
        every, inside = self.loop.has_durations, self.loop.overlapped
        counts = {
            operation.count for operation, loads in found if every or not inside.isdisjoint(loads)
        }
        if len(counts) > 1:
            shown = " and ".join(str(count) for count in sorted(counts))
            got = f"got counts {shown} in the layer {found[0][0].layer!r}"
            expected = "expected one count: how would the executions overlap?"
            fix = "write what runs a different number of times as a layer of its own"
            raise SpecError(Fault(got, expected, fix, "workload"))
        return counts.pop() if counts else 1


def _one_after_the_other(loads: Sequence[Load]) -> Load:
    if len(loads) == 1:
        return loads[0]
    n_bytes = np.sum([load.traffic_bytes for load in loads], axis=0)
    return Load(loads[0].name, add(load.time for load in loads), n_bytes)


def _check_complete(loop: TrainingLoop, layers: Iterable[LoopLayer], name: str) -> None:
    """Refuse a loop that forgets something: a silent wrong answer otherwise."""
    forgotten = {key for layer in layers for key in layer.loads} - loop.quantities
    if forgotten:
        shown = [str(key) for key in NAMES.values() if key in forgotten]
        got = f"got a loop without {', '.join(shown)}, which {name} has"
        expected = "expected all that the workload does"
        fix = f"add it, or '+ 0 * {shown[0]}' to leave it out on purpose"
        path = f"training_loop.{'layer' if loop.per_layer else 'step'}"
        raise SpecError(Fault(got, expected, fix, path))


def _check_together(loop: TrainingLoop, operators: Sequence[Sequence[Operation]]) -> None:
    """Refuse a layer whose overlapping phases stand apart: they would not overlap."""
    inside = {key.phase for key in loop.overlapped}
    known: dict[str, set[Phase]] = {}
    for operator in operators:
        phases = {operation.phase for operation in operator} & inside
        name = operator[0].layer
        if phases and known.setdefault(name, phases) != phases:
            shown = [" and ".join(sorted(found)) for found in (known[name], phases)]
            got = f"got the layer {name!r} once with {shown[0]}, once with {shown[1]}"
            expected = "expected what overlaps side by side"
            fix = "list a layer's operations one after the other; name different layers apart"
            raise SpecError(Fault(got, expected, fix, "workload"))
