"""What a step computes and communicates, in which groups (C6), and what a model needs (C19)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.fabric.blocks import CollectiveKind
from libra_planner.fabric.topology import Topology
from libra_planner.frozen import Frozen
from libra_planner.workload.memory.habits import (
    GRADIENT_BYTES,
    MASTER_BYTES,
    MOMENTS_BYTES,
    MOST_SHARDED,
)


@dataclass(frozen=True)
class ModelStates:
    """Weights, gradients and optimizer states of one NPU, as Megatron keeps them.

    Bytes per parameter in mixed precision: weights 2, gradients 4, optimizer 12 (a copy of the
    weight in fp32, two moments of Adam); weights in fp32 are their own copy, so 4, 4 and 8
    (Megatron Core User Guide, "Distributed Optimizer": 18 and 16 in all). A parameter is counted on
    one rank of its tensor-parallel group: the token embedding is split by vocabulary; norms, biases
    of row-parallel layers and position embeddings, which every rank keeps whole, are counted as if
    they were split.

    Parameters
    ----------
    n_parameters : parameters of one NPU, all parameters over TP.
    weight_bytes : bytes of one stored weight.
    dp : data-parallel ranks, each of which holds all of this unless ZeRO shards it.
    npu_memory_bytes : memory of the NPU; ``None`` where nobody says.

    Examples
    --------
    GPT-3 at TP 8 on 80 GiB: ZeRO 2 is the first that fits.

    >>> states = ModelStates(174604234752 / 8, 2, dp=128, npu_memory_bytes=80 * 2**30)
    >>> round(states.weights_bytes / 1e9, 1), round(states.total_bytes / 1e9, 1)
    (43.7, 392.9)
    >>> states.fits, states.zero_stage, round(states.sharded_bytes / 1e9, 2)
    (False, 2, 3.07)
    """

    n_parameters: float
    weight_bytes: int
    dp: int
    npu_memory_bytes: float | None = None

    @property
    def weights_bytes(self) -> float:
        """Weights."""
        return self.n_parameters * self.weight_bytes

    @property
    def gradients_bytes(self) -> float:
        """Gradients."""
        return self.n_parameters * GRADIENT_BYTES

    @property
    def optimizer_bytes(self) -> float:
        """Optimizer states."""
        master = MASTER_BYTES if self.weight_bytes < MASTER_BYTES else 0
        return self.n_parameters * (MOMENTS_BYTES + master)

    @property
    def total_bytes(self) -> float:
        """All of it, nothing sharded over the data-parallel ranks."""
        return self.zero_bytes(0)

    @property
    def states_bytes(self) -> float:
        """The same: what of a step is counted here."""
        return self.total_bytes

    @property
    def sharded_bytes(self) -> float:
        """All of it sharded over the data-parallel ranks: the least that ZeRO can need."""
        return self.zero_bytes(MOST_SHARDED)

    def zero_bytes(self, stage: int) -> float:
        """What a ZeRO stage needs (Rajbhandari et al., arXiv 1910.02054).

        Parameters
        ----------
        stage : 0 shards nothing, 1 optimizer states, 2 gradients too, 3 weights too.
        """
        parts = (self.optimizer_bytes, self.gradients_bytes, self.weights_bytes)
        return sum(parts[:stage]) / self.dp + sum(parts[stage:])

    @property
    def fits(self) -> bool | None:
        """Whether it fits the NPU with nothing sharded; ``None`` where its memory is not known."""
        memory = self.npu_memory_bytes
        return None if memory is None else self.total_bytes <= memory

    @property
    def fits_sharded(self) -> bool | None:
        """Whether it fits with everything sharded; ``None`` where memory is not known."""
        memory = self.npu_memory_bytes
        return None if memory is None else self.sharded_bytes <= memory

    @property
    def zero_stage(self) -> int | None:
        """The first ZeRO stage that fits; ``None`` where none does, or memory is not known."""
        memory = self.npu_memory_bytes
        if memory is None:
            return None
        stages = range(MOST_SHARDED + 1)
        return next((stage for stage in stages if self.zero_bytes(stage) <= memory), None)


__all__ = ["Collective", "CollectiveKind", "Covers", "Operation", "Phase", "Workload"]


class Phase(StrEnum):
    """Part of a training step that an operation belongs to (LIBRA, section IV)."""

    FORWARD = "forward"
    INPUT_GRAD = "input_grad"
    WEIGHT_GRAD = "weight_grad"


class Covers(StrEnum):
    """How much of a training step the operations of a workload are (C21)."""

    STEP = "step"
    PART = "part"


DEFAULT_GROUP = {Phase.FORWARD: "tp", Phase.INPUT_GRAD: "tp", Phase.WEIGHT_GRAD: "dp"}
"""Group of a collective that names none: LIBRA's and C5's reading of the phases."""


@dataclass(frozen=True)
class Collective:
    """One collective of a parallel group.

    Parameters
    ----------
    kind : the pattern.
    size_bytes : the full vector m of C3; with ``is_shard`` the part one NPU holds.
    group : parallel group that takes part: ``tp``, ``dp``.
    is_shard : ``size_bytes`` is one NPU's shard (an all-gather in LIBRA's files).
    """

    kind: CollectiveKind
    size_bytes: float
    group: str
    is_shard: bool = False


@dataclass(frozen=True)
class Operation:
    """One phase of one layer (C5: a layer is one workload operator).

    Parameters
    ----------
    layer : name of the operator, such as ``Q1``.
    phase : forward, input gradient or weight gradient.
    compute_s : compute time of one execution, seconds.
    collective : what the phase communicates, if anything.
    count : executions per training step, one after the other.
    """

    layer: str
    phase: Phase
    compute_s: float
    collective: Collective | None = None
    count: int = 1

    @property
    def work(self) -> tuple[object, ...]:
        """All but the layer: equal for operations that take the same time."""
        return self.phase, self.compute_s, self.collective, self.count


@dataclass(frozen=True)
class Workload(Frozen):
    """One training step, or a part of one: its operations, in order.

    Parameters
    ----------
    name : what reports call it.
    operations : in the order of the file or generator.
    n_sequences : sequences per step over the whole cluster, if the workload knows.
    notes : facts worth printing beside a result (settings, assumptions).
    covers : whether the operations are a whole step; only then is a run so many steps (C21).
    tokens_per_step : over the whole cluster, if the workload knows.
    step_fix : what to write to have a whole step instead of a part.
    memory : what the model needs on an NPU (C19); ``None`` where the workload does not know it.
    """

    name: str
    operations: tuple[Operation, ...]
    n_sequences: int | None = None
    notes: tuple[str, ...] = field(default=())
    covers: Covers = Covers.PART
    tokens_per_step: int | None = None
    step_fix: str = ""
    memory: ModelStates | None = None

    @property
    def compute_s(self) -> float:
        """Compute time of one step, seconds, nothing overlapped."""
        return sum(op.compute_s * op.count for op in self.operations)

    @cached_property
    def operators(self) -> tuple[tuple[Operation, ...], ...]:
        """Operations layer by layer (C5): those of one name that follow one another.

        A forward operation after a gradient begins the next layer of the same name.
        """
        found: list[list[Operation]] = []
        last: Operation | None = None
        for operation in self.operations:
            begins = last is None or operation.layer != last.layer
            again = operation.phase is Phase.FORWARD and last and last.phase is not Phase.FORWARD
            if begins or again:
                found.append([])
            found[-1].append(operation)
            last = operation
        return tuple(map(tuple, found))

    @cached_property
    def collectives(self) -> tuple[tuple[Phase, Collective, int], ...]:
        """Each distinct collective of a phase, in order, and how often it runs in a step."""
        counts: dict[tuple[Phase, Collective], int] = {}
        for operation in self.operations:
            if operation.collective is not None:
                key = operation.phase, operation.collective
                counts[key] = counts.get(key, 0) + operation.count
        return tuple((*key, count) for key, count in counts.items())

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.operations))

    def __hash__(self) -> int:
        """That of thousands of operations, once."""
        return self._hash

    @cached_property
    def alike(self) -> tuple[int, ...]:
        """For each of :attr:`operators`, the first that differs from it in name at most."""
        first: dict[object, int] = {}
        works = (tuple(operation.work for operation in layer) for layer in self.operators)
        return tuple(first.setdefault(work, i) for i, work in enumerate(works))


@dataclass(frozen=True)
class Group:
    """The part of every dimension that one communicator spans.

    Parameters
    ----------
    sizes : NPUs of the group in each dimension, shape (n_dims,); 1 where unused.
    strides : distance between neighbours of the group in each dimension, in NPUs of
        that dimension, shape (n_dims,); above 1 where an inner group took a part.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def n_npus(self) -> int:
        """NPUs in one communicator."""
        return math.prod(self.sizes)


@dataclass(frozen=True)
class Communicators:
    """The group of every (phase, parallel group) pair.

    Parameters
    ----------
    by_key : ``(phase, group name)`` to its :class:`Group`.
    explicit : given per phase as LIBRA's communicator files do, not by degrees.
    """

    by_key: Mapping[tuple[Phase, str], Group]
    explicit: bool = False

    def group(self, phase: Phase, name: str) -> Group:
        """The group that a collective of ``phase`` in ``name`` runs in.

        Raises
        ------
        SpecError
            When the plan's parallelism has no such group.
        """
        key = (phase, phase.value if self.explicit else name)
        if key not in self.by_key:
            known = sorted({group for _, group in self.by_key})
            fix = f"give its degree; the plan's parallelism has {', '.join(known)}"
            raise SpecError(
                Fault(f"got a collective of the parallel group {name!r}", "", fix, "parallelism")
            )
        return self.by_key[key]

    @property
    def groups(self) -> tuple[Group, ...]:
        """All distinct groups."""
        return tuple(dict.fromkeys(self.by_key.values()))


def communicators_from_degrees(topology: Topology, degrees: Mapping[str, int]) -> Communicators:
    """Communicators that fill the dimensions from the innermost (C6).

    Parameters
    ----------
    topology : the fabric.
    degrees : group name to degree, innermost first (``{"tp": 16, "dp": 256}``).

    Raises
    ------
    SpecError
        When the degrees do not multiply to the NPU count, or one does not divide
        what the inner ones left of a dimension.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> fabric = parse_topology("RI(4)_FC(8)_RI(4)_SW(32)")
    >>> both = communicators_from_degrees(fabric, {"tp": 16, "dp": 256})
    >>> both.group(Phase.FORWARD, "tp").sizes, both.group(Phase.WEIGHT_GRAD, "dp").sizes
    ((4, 4, 1, 1), (1, 2, 4, 32))
    """
    product = math.prod(degrees.values())
    if product != topology.n_npus:
        shown = " x ".join(f"{name} {degree}" for name, degree in degrees.items())
        got = f"got {shown} = {product} NPUs"
        expected = f"expected the {topology.n_npus} NPUs of {topology}"
        raise SpecError(Fault(got, expected, "change a degree or the topology", "parallelism"))
    left = list(topology.sizes)
    groups = {name: _take(topology, left, name, degree) for name, degree in degrees.items()}
    return Communicators({(phase, name): groups[name] for phase in Phase for name in groups})


def _take(topology: Topology, left: list[int], name: str, degree: int) -> Group:
    """Take ``degree`` NPUs out of ``left`` (NPUs not yet grouped, by dimension; updated)."""
    strides = tuple(size // rest for size, rest in zip(topology.sizes, left, strict=True))
    sizes = [1] * topology.n_dims
    for i, rest in enumerate(left):
        if degree % rest and rest % degree:
            got = f"got {name} with {degree} NPUs still to place on the {rest} left of dim{i + 1}"
            expected = "expected one to divide the other (C6: the innermost dimension first)"
            fix = "choose a degree that fits the dimensions, or give group sizes per phase"
            raise SpecError(Fault(got, expected, fix, f"parallelism.{name}"))
        sizes[i] = min(rest, degree)
        degree //= sizes[i]
        left[i] = rest // sizes[i]
    return Group(tuple(sizes), strides)


def communicators_from_sizes(
    topology: Topology, sizes: Mapping[Phase, tuple[int, ...]]
) -> Communicators:
    """Communicators given outright per phase, any subset of the fabric.

    A phase's group is taken to be made of neighbours; where two phases share a
    dimension, the weight-gradient group is laid around the others (stride above 1).

    Raises
    ------
    SpecError
        For a wrong number of sizes, or a group bigger than its dimension or one
        that does not divide it.
    """
    faults = [fault for phase in sizes for fault in _size_faults(topology, phase, sizes[phase])]
    refuse(faults)
    inner = sizes.get(Phase.FORWARD, (1,) * topology.n_dims)
    groups = {}
    for phase, chosen in sizes.items():
        fits = zip(topology.sizes, inner, chosen, strict=True)
        strides = tuple(
            used if phase is Phase.WEIGHT_GRAD and used * own <= size else 1
            for size, used, own in fits
        )
        groups[(phase, phase.value)] = Group(tuple(chosen), strides)
    return Communicators(groups, explicit=True)


def _size_faults(topology: Topology, phase: Phase, sizes: tuple[int, ...]) -> list[Fault]:
    path = f"parallelism.{phase.value}"
    if len(sizes) != topology.n_dims:
        got = f"got {len(sizes)} group sizes"
        expected = f"expected {topology.n_dims}, one for each dimension of {topology}"
        return [Fault(got, expected, "write 1 for a dimension that is not used", path)]
    faults = []
    for i, (own, size) in enumerate(zip(sizes, topology.sizes, strict=True)):
        if own > size or size % own:
            expected = f"expected a divisor of the {size} NPUs of dim{i + 1}"
            fix = f"write at most {size}"
            faults.append(Fault(f"got a group of {own}", expected, fix, f"{path}.{i}"))
    return faults


@dataclass(frozen=True)
class Communication:
    """A collective of a training step.

    Parameters
    ----------
    phase : part of the step.
    collective : pattern, size and parallel group.
    group : the communicator.
    count : how often it runs in a step.
    spreads_elsewhere : whether another collective that runs at the same time is what the innermost
        dimension carries of it: of copies of tokens between nodes, which their links spread (C16).
    """

    phase: Phase
    collective: Collective
    group: Group
    count: int
    spreads_elsewhere: bool = False

    @property
    def label(self) -> str:
        """Such as ``weight grad all-reduce, dp``."""
        phase = self.phase.value.replace("_", " ")
        return f"{phase} {self.collective.kind.value}, {self.collective.group}"


class SendPattern(StrEnum):
    """Which ranks of a group send to which others.

    ``pipeline``: to the next one, and at another time to the one before, as stages of a pipeline;
    ``pipeline-around``: the last and the first one do so, too, as with interleaving; ``send-ring``:
    to the next one, the last to the first, as rings of context parallelism.
    """

    PIPELINE = "pipeline"
    PIPELINE_AROUND = "pipeline-around"
    RING = "send-ring"


@dataclass(frozen=True)
class Send:
    """A send of a training step from every rank of a group to a neighbour.

    Parameters
    ----------
    phase, axis : part of the step, and parallelism.
    pattern : who sends to whom.
    group : the ranks.
    size_bytes : what one rank sends at once.
    count : how often in a step.
    """

    phase: Phase
    axis: str
    pattern: SendPattern
    group: Group
    size_bytes: float
    count: int

    @property
    def label(self) -> str:
        """Such as ``forward send, pp``."""
        return f"{self.phase.value.replace('_', ' ')} send, {self.axis}"


def communications(workload: Workload, communicators: Communicators) -> tuple[Communication, ...]:
    """The collectives of a step; those that are alike in all but their layer are one.

    Examples
    --------
    >>> from libra_planner.workload.operations import CollectiveKind, Operation
    >>> gradient = Collective(CollectiveKind.ALL_REDUCE, 100.0, "dp")
    >>> layers = [Operation(name, Phase.WEIGHT_GRAD, 1.0, gradient, 3) for name in ("a", "b")]
    >>> pair = Communicators({(Phase.WEIGHT_GRAD, "dp"): Group((2,), (1,))})
    >>> [found] = communications(Workload("w", tuple(layers)), pair)
    >>> found.label, found.count
    ('weight grad all-reduce, dp', 6)
    """
    return tuple(
        Communication(phase, collective, communicators.group(phase, collective.group), count)
        for phase, collective, count in workload.collectives
    )
