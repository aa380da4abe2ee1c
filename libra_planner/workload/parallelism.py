"""Parallelism: which NPUs form a group (C6), and what a training step communicates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.topology import Topology
from libra_planner.workload.operations import Collective, Phase, Workload


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
    if faults:
        raise SpecError(*faults)
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
    """

    phase: Phase
    collective: Collective
    group: Group
    count: int

    @property
    def label(self) -> str:
        """Such as ``weight grad all-reduce, dp``."""
        phase = self.phase.value.replace("_", " ")
        return f"{phase} {self.collective.kind.value}, {self.collective.group}"


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
