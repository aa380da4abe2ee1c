"""Training loops: their language, and a workload's step time from its layers and a loop (C5).

A loop speaks of quantities, a phase's compute and its communication by axis of parallelism, in
sums, overlaps (the longest counts) and non-negative multiples. So
a step time made from one is convex and non-increasing in bandwidth by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property, lru_cache, partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.frozen import Frozen
from libra_planner.step import expression as tree
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import CollectiveModel
from libra_planner.step.expression import Array, Mask
from libra_planner.workload import operations as work


class Activity(StrEnum):
    """What a phase does: compute, or communicate in one of the parallel groups.

    Compute of a whole model has four parts: a loop names them, or all of it.
    """

    COMPUTE = "compute"
    TP = "tp"
    CP = "cp"
    EP = "ep"
    DP = "dp"
    LINEAR = "linear"
    ATTENTION = "attention"
    EXPERTS = "experts"
    OTHER = "other"


COMPUTE_PARTS = (Activity.LINEAR, Activity.ATTENTION, Activity.EXPERTS, Activity.OTHER)
"""Multiplies of dense weights, attention itself, multiplies of experts, and all that moves data."""
_WHOLE = tuple(part for part in Activity if part not in COMPUTE_PARTS)


@dataclass(frozen=True)
class Quantity:
    """Compute or communication of one phase of a layer.

    >>> str(Quantity(work.Phase.FORWARD, Activity.TP))
    'forward.tp'
    """

    phase: work.Phase
    activity: Activity

    def __str__(self) -> str:
        return f"{self.phase}.{self.activity}"


@dataclass(frozen=True)
class Duration:
    """A time that neither workload nor bandwidth changes, once per execution; seconds."""

    seconds: float


@dataclass(frozen=True)
class Serial:
    """Terms one after the other."""

    terms: tuple[LoopTerm, ...]


@dataclass(frozen=True)
class Overlap:
    """Terms at the same time: the longest counts."""

    terms: tuple[LoopTerm, ...]


@dataclass(frozen=True)
class Multiple:
    """``factor`` (0 or more) times a term."""

    factor: float
    term: LoopTerm


LoopTerm: TypeAlias = Quantity | Duration | Serial | Overlap | Multiple


def _names() -> dict[str, LoopTerm]:
    phases: dict[str, tuple[work.Phase, ...]] = {phase.value: (phase,) for phase in work.Phase}
    phases["backward"] = (work.Phase.INPUT_GRAD, work.Phase.WEIGHT_GRAD)
    names: dict[str, LoopTerm] = {}
    for name, members in phases.items():
        names[name] = Serial(tuple(Quantity(phase, part) for phase in members for part in _WHOLE))
        for part in Activity:
            own = tuple(Quantity(phase, part) for phase in members)
            names[f"{name}.{part}"] = own[0] if len(own) == 1 else Serial(own)
    return names


NAMES: Mapping[str, LoopTerm] = MappingProxyType(_names())
"""What a loop can name: ``phase.part``, or a whole ``phase``; ``backward`` is both gradients."""

_TP_DP = (NAMES["backward.tp"], Serial((NAMES["weight_grad.compute"], NAMES["backward.dp"])))
_EXPOSED = (NAMES["input_grad.compute"], NAMES["backward.cp"], NAMES["backward.ep"])
_BEFORE_DP = tuple(NAMES[f"backward.{part}"] for part in ("compute", "tp", "cp", "ep"))
_DP = (Serial(_BEFORE_DP), NAMES["backward.dp"])
LOOPS: Mapping[str, LoopTerm] = MappingProxyType(
    {
        "no_overlap": Serial((NAMES["forward"], NAMES["backward"])),
        "tp_dp_overlap": Serial((NAMES["forward"], *_EXPOSED, Overlap(_TP_DP))),
        "async_dp": Serial((NAMES["forward"], Overlap(_DP))),
    }
)
"""Training loops by the name a plan uses (C5)."""


@dataclass(frozen=True)
class TrainingLoop(Frozen):
    """How the operations of a step follow or overlap one another.

    Parameters
    ----------
    term : the time of one layer, or of the whole step.
    per_layer : whether ``term`` is of each layer (and layers add up), or of the step's totals.
    contention : whether overlapped communication competes for shared dimensions (C5).
    bubble_fraction : idle time of a pipeline over the time of the step's work: a hook for
        pipeline parallelism, (p - 1)/m for p stages and m micro-batches (Narayanan et al.,
        arXiv 2104.04473, section 2.2.1).
    """

    term: LoopTerm
    per_layer: bool = True
    contention: bool = True
    bubble_fraction: float = 0.0

    @cached_property
    def quantities(self) -> frozenset[Quantity]:
        """The quantities it speaks of, with factor 0 too."""
        return frozenset(one for one in subterms(self.term) if isinstance(one, Quantity))

    @cached_property
    def overlapped(self) -> frozenset[Quantity]:
        """The quantities that stand inside an overlap."""
        overlaps = [one for one in subterms(self.term) if isinstance(one, Overlap)]
        inside = (inner for overlap in overlaps for inner in subterms(overlap))
        return frozenset(one for one in inside if isinstance(one, Quantity))

    @cached_property
    def has_durations(self) -> bool:
        """Whether it has times that neither workload nor bandwidth changes."""
        return any(isinstance(term, Duration) for term in subterms(self.term))


def subterms(term: LoopTerm) -> Iterable[LoopTerm]:
    """A term and everything in it."""
    yield term
    if isinstance(term, Serial | Overlap):
        for inner in term.terms:
            yield from subterms(inner)
    elif isinstance(term, Multiple):
        yield from subterms(term.term)


def multiples(term: LoopTerm) -> dict[Quantity, float]:
    """How many times a term carries out each quantity.

    A quantity on several sides of an overlap is one and the same work: it counts once, with
    its largest factor.

    >>> forward = Quantity(work.Phase.FORWARD, Activity.TP)
    >>> multiples(Multiple(3.0, Overlap((forward, Serial((forward, forward))))))[forward]
    6.0
    """
    if isinstance(term, Quantity):
        return {term: 1.0}
    if isinstance(term, Multiple):
        return {key: term.factor * n for key, n in multiples(term.term).items()}
    found: dict[Quantity, float] = {}
    for part in map(multiples, term.terms if isinstance(term, Serial | Overlap) else ()):
        for key, n in part.items():
            so_far = found.get(key, 0.0)
            found[key] = max(so_far, n) if isinstance(term, Overlap) else so_far + n
    return found


CONTENTION = "contention"
"""What labels of dimensions that several communications share begin with."""

_ROUNDING = 1e-12
"""Relative difference that adding up traffic in another order can make."""


@dataclass(frozen=True)
class Load:
    """What a layer does of one quantity in a step.

    Parameters
    ----------
    name : what reports call it, such as ``weight grad DP``.
    time : its time, all executions together.
    traffic_bytes : what an NPU sends for it, shape (n_dims,); while it competes, if that differs.
    competing : its time beside others on its dimensions; ``None`` for no other than always.
    """

    name: str
    time: tree.Node
    traffic_bytes: tuple[float, ...] = field(repr=False)
    competing: tree.Node | None = None

    @property
    def balances(self) -> bool:
        """Whether it has another time while it competes, which is that of its traffic."""
        if self.competing is None:
            return False
        sides = (tree.unlabelled(self.competing), tree.transfers(self.traffic_bytes))
        sent, own = ({x.coefficients: x.n_bytes for x in tree.transfers_of(side)} for side in sides)
        close = partial(math.isclose, rel_tol=_ROUNDING)
        return sent.keys() == own.keys() and all(close(sent[form], own[form]) for form in own)

    def uses(self, dims: Mask) -> bool:
        """Whether it sends anything over some dimensions, shape (n_dims,)."""
        return bool(np.array(self.traffic_bytes)[dims].any())

    @property
    def while_competing(self) -> Load:
        """The load where it competes with others."""
        return replace(self, time=self.competing or self.time, competing=None)

    def times(self, count: int) -> Load:
        """So many executions of it, one after the other."""
        if count == 1:
            return self
        n_bytes = tuple(count * one for one in self.traffic_bytes)
        beside = self.competing and tree.scale(float(count), self.competing)
        return Load(self.name, tree.scale(float(count), self.time), n_bytes, beside)


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

    def time(self, term: LoopTerm) -> tree.Node:
        """The layer's time under a loop.

        Examples
        --------
        Two seconds of gradients, of which 1.5 on the first dimension, beside 1 s of compute:

        >>> from libra_planner.step.layers import NAMES
        >>> compute, gradient = NAMES["weight_grad.compute"], NAMES["weight_grad.dp"]
        >>> sent = (150.0, 200.0)
        >>> loads = {compute: Load("compute", tree.Constant(1.0), (0.0, 0.0)),
        ...          gradient: Load("weight grad DP", tree.transfers(sent), sent)}
        >>> LoopLayer(loads, 2).time(Overlap((compute, gradient)))
        Maximum(terms=(Constant(seconds=1.0), Transfer(...), Transfer(...)))
        """
        if isinstance(term, Quantity):
            load = self.loads.get(term)
            return tree.ZERO if load is None else load.time
        if isinstance(term, Duration):
            return tree.Constant(term.seconds * self.n_executions)
        if isinstance(term, Multiple):
            return tree.scale(term.factor, self.time(term.term))
        if isinstance(term, Serial):
            return tree.add(self.time(part) for part in term.terms)
        shared = self._shared_dims(term)
        if not shared.any():
            return tree.maximum(self.time(side) for side in term.terms)
        return self._competing(term, shared)

    def _shared_dims(self, overlap: Overlap) -> Mask:
        """Dimensions that compete: where all sides together send more than any one of them."""
        if not self.contention:
            return np.zeros(self.n_dims, dtype=bool)
        alone = np.max([self._traffic(side) for side in overlap.terms], axis=0)
        return np.asarray(self._traffic(overlap) > alone * (1 + _ROUNDING))

    def _competing(self, overlap: Overlap, shared: Mask) -> tree.Node:
        """The sides of an overlap, and max over shared d of (traffic_d of all) / B_d (C5).

        Schedules that are free to balance keep the fixed order here, but for one side that does
        nothing else: it balances around what the others send.
        """
        names = {key: load for key, load in self.loads.items() if load.uses(shared)}
        fixed = {key: load.while_competing for key, load in names.items()}
        layer = replace(self, loads={**self.loads, **fixed})
        sides = [layer.time(side) for side in overlap.terms]
        together = self._traffic(overlap)
        free = next((i for i in range(len(sides)) if self._is_free(overlap, i)), None)
        around: list[tree.Node] = []
        if free is not None:
            sides[free] = self.time(overlap.terms[free])
            others = self._traffic(Overlap(overlap.terms[:free] + overlap.terms[free + 1 :]))
            around = _around(tree.unlabelled(sides[free]), others)
            shared = shared & (self._traffic(overlap.terms[free]) == 0)
        contention = tree.maximum([tree.transfers(np.where(shared, together, 0.0)), *around])
        inside = dict.fromkeys(names[key].name for key in multiples(overlap) if key in names)
        label = f"{CONTENTION} of {' and '.join(inside)}"
        return tree.maximum([*sides, tree.Labelled(label, contention)])

    def _is_free(self, overlap: Overlap, i: int) -> bool:
        """Whether a side is one schedule that may balance, and nothing else.

        Its traffic has to be what its time is of.
        """
        side, *others = overlap.terms[i], *overlap.terms[:i], *overlap.terms[i + 1 :]
        inside = [key for key in multiples(side) if key in self.loads]
        if len(inside) != 1 or any(inside[0] in multiples(other) for other in others):
            return False
        load = self.loads[inside[0]]
        return load.balances and _is_one_schedule(tree.unlabelled(self.time(side)))

    def _traffic(self, term: LoopTerm) -> Array:
        total = np.zeros(self.n_dims)
        for key, factor in multiples(term).items():
            if key in self.loads:
                total = total + factor * np.array(self.loads[key].traffic_bytes)
        return total


def _is_one_schedule(node: tree.Node) -> bool:
    """Whether a time is the longest of transfers, as that of collectives that split alike."""
    parts = node.terms if isinstance(node, tree.Maximum) else (node,)
    return all(isinstance(part, tree.Transfer) for part in parts)


def _around(node: tree.Node, others_bytes: Array) -> list[tree.Node]:
    """What the dimensions of a schedule carry together with what others send over them.

    It has x_d <= T B_d - others_d left of every dimension, in T seconds.
    """
    found: list[tree.Node] = []
    for leaf in tree.transfers_of(node):
        beside = float(others_bytes @ np.array(leaf.coefficients))
        if beside:
            found.append(tree.Transfer(leaf.n_bytes + beside, leaf.coefficients))
    return found


@dataclass(frozen=True)
class Training(Frozen):
    """One workload on a fabric.

    Parameters
    ----------
    workload : its operations.
    communicators : who communicates.
    network : the fabric as its collectives meet it.
    loop : how compute and communication follow one another.
    """

    workload: work.Workload = field(repr=False)
    communicators: work.Communicators
    network: Network
    loop: TrainingLoop

    @cached_property
    def communications(self) -> tuple[work.Communication, ...]:
        """The distinct collectives of a step."""
        return work.communications(self.workload, self.communicators)

    @cached_property
    def _hash(self) -> int:
        return hash((self.workload, self.communications, self.network, self.loop))

    def __hash__(self) -> int:
        """By what it holds, found once."""
        return self._hash

    def step_time(self, model: CollectiveModel) -> tree.TimeExpression:
        """T(B) under a model of collectives, seconds: (1 + bubble) * sum over layers (C5).

        Raises
        ------
        SpecError
            When the loop leaves out something that the workload does, or cannot be read on one
            of its layers; for an algorithm that cannot run.

        Examples
        --------
        >>> from libra_planner.fabric.topology import parse_topology
        >>> from libra_planner.step.collectives.algorithms import plain_network
        >>> from libra_planner.step.collectives.models import Ideal
        >>> from libra_planner.workload.operations import CollectiveKind
        >>> gradient = work.Collective(CollectiveKind.ALL_REDUCE, 100.0, "dp")
        >>> layer = work.Operation("fc", work.Phase.WEIGHT_GRAD, 1.0, gradient)
        >>> pair = work.Communicators({(work.Phase.WEIGHT_GRAD, "dp"): work.Group((2,), (1,))})
        >>> what = work.Workload("w", (layer,)), pair, plain_network(parse_topology("SW(2)"))
        >>> serial, hidden = TrainingLoop(LOOPS["no_overlap"]), TrainingLoop(LOOPS["async_dp"])
        >>> float(Training(*what, serial).step_time(Ideal()).seconds(np.array([50.0])))
        3.0
        >>> float(Training(*what, hidden).step_time(Ideal()).seconds(np.array([50.0])))
        2.0
        """
        time = cache(partial(model.time, network=self.network))
        beside = model.while_competing
        competing = cache(partial(beside.time, network=self.network)) if beside else None
        traffic = cache(partial(self._traffic, model))
        found = []
        for one in self.communications:
            key = Quantity(one.phase, _part(one, explicit=self.communicators.explicit))
            name, pair = one.phase.value.replace("_", " "), (one.collective, one.group)
            if not self.communicators.explicit:
                name = f"{name} {one.collective.group.upper()}"
            label, sent = f"{name} {one.collective.kind.value}", tuple(traffic(*pair).tolist())
            load = Load(name, _labelled(label, time(*pair)), sent)
            if competing is not None:
                load = replace(load, competing=_labelled(label, competing(*pair)))
            found.append((key, load))
        return _step_time(self.workload, tuple(found), self.network.topology.n_dims, self.loop)

    def _traffic(
        self, model: CollectiveModel, collective: work.Collective, group: work.Group
    ) -> Array:
        """What a collective occupies the dimensions with when it competes with another."""
        sent = model.occupied(collective, group, self.network)
        if not model.has_own_links or self.communicators.explicit:
            return sent
        # TP and DP of given degrees have links of their own in a fully connected dimension.
        dimensions = self.network.topology.dimensions
        own = np.array([one.block.groups_have_own_links for one in dimensions])
        return np.where(own, self.network.own_bytes(collective, group), sent)


def _labelled(label: str, term: tree.Node) -> tree.Node:
    return term if term == tree.ZERO else tree.Labelled(label, term)


def _part(one: work.Communication, *, explicit: bool) -> Activity:
    """TP or DP: by the group's name, or with group sizes per phase by the phase (C5)."""
    group = one.collective.group
    if explicit:
        return Activity.DP if one.phase is work.Phase.WEIGHT_GRAD else Activity.TP
    if group not in (Activity.TP, Activity.DP):
        got = f"got a collective of the parallel group {group!r}"
        raise SpecError(Fault(got, "expected tp or dp: training loops know only these"))
    return Activity(group)


@lru_cache(maxsize=128)
def _step_time(
    workload: work.Workload,
    sent: tuple[tuple[Quantity, Load], ...],
    n_dims: int,
    loop: TrainingLoop,
) -> tree.TimeExpression:
    """The expression, of what each of ``workload.collectives`` sends.

    The last ones are kept: plans that differ in rules, prices or blocks often share theirs.
    """
    found = zip(workload.collectives, sent, strict=True)
    builder = _LayerBuilder({(phase, what): one for (phase, what, _), one in found}, n_dims, loop)
    operators = workload.operators if loop.per_layer else (workload.operations,)
    alike = workload.alike if loop.per_layer else (0,)
    layers = {i: builder.layer(operators[i]) for i in dict.fromkeys(alike)}
    refuse_incomplete(loop, layers.values(), workload.name)
    if loop.per_layer:
        _check_together(loop, operators)
    stretch = 1.0 + loop.bubble_fraction
    times = {i: tree.scale(stretch, layer.time(loop.term)) for i, layer in layers.items()}
    return tree.TimeExpression(tree.add(times[i] for i in alike), n_dims)


@dataclass(frozen=True)
class _LayerBuilder:
    sent: Mapping[tuple[work.Phase, work.Collective], tuple[Quantity, Load]]
    n_dims: int
    loop: TrainingLoop

    def layer(self, operations: Sequence[work.Operation]) -> LoopLayer:
        """The loads of a layer; a quantity's operations follow one another."""
        found = [(operation, dict(self._loads(operation))) for operation in operations]
        parts: dict[Quantity, list[Load]] = {}
        for operation, loads in found:
            for key, load in loads.items():
                parts.setdefault(key, []).append(load.times(operation.count))
        whole = {key: _one_after_the_other(loads) for key, loads in parts.items()}
        return LoopLayer(whole, self.n_dims, self._n_executions(found), self.loop.contention)

    def _loads(self, operation: work.Operation) -> Iterator[tuple[Quantity, Load]]:
        """Compute and communication of one execution, where they take time."""
        if operation.compute_s:
            key = Quantity(operation.phase, Activity.COMPUTE)
            yield key, Load("compute", tree.Constant(operation.compute_s), (0.0,) * self.n_dims)
        if operation.collective is not None:
            key, load = self.sent[operation.phase, operation.collective]
            if load.time != tree.ZERO:
                yield key, load

    def _n_executions(self, found: Sequence[tuple[work.Operation, Mapping[Quantity, Load]]]) -> int:
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
    n_bytes = map(sum, zip(*(load.traffic_bytes for load in loads), strict=True))
    whole = Load(loads[0].name, tree.add(load.time for load in loads), tuple(n_bytes))
    if all(load.competing is None for load in loads):
        return whole
    return replace(whole, competing=tree.add(load.while_competing.time for load in loads))


def refuse_incomplete(loop: TrainingLoop, layers: Iterable[LoopLayer], name: str) -> None:
    """Refuse a loop that forgets something: a silent wrong answer otherwise.

    Raises
    ------
    SpecError
        With what it forgets.
    """
    forgotten = {key for layer in layers for key in layer.loads} - loop.quantities
    if forgotten:
        shown = [str(key) for key in NAMES.values() if key in forgotten]
        got = f"got a loop without {', '.join(shown)}, which {name} has"
        expected = "expected all that the workload does"
        fix = f"add it, or '+ 0 * {shown[0]}' to leave it out on purpose"
        path = f"training_loop.{'layer' if loop.per_layer else 'step'}"
        raise SpecError(Fault(got, expected, fix, path))


def _check_together(loop: TrainingLoop, operators: Sequence[Sequence[work.Operation]]) -> None:
    """Refuse a layer whose overlapping phases stand apart: they would not overlap."""
    inside = {key.phase for key in loop.overlapped}
    known: dict[str, set[work.Phase]] = {}
    for operator in operators:
        phases = {operation.phase for operation in operator} & inside
        name = operator[0].layer
        if phases and known.setdefault(name, phases) != phases:
            shown = [" and ".join(sorted(found)) for found in (known[name], phases)]
            got = f"got the layer {name!r} once with {shown[0]}, once with {shown[1]}"
            expected = "expected what overlaps side by side"
            fix = "list a layer's operations one after the other; name different layers apart"
            raise SpecError(Fault(got, expected, fix, "workload"))
