"""The language of training loops: a tree over what one layer computes and communicates (C5).

A loop speaks of nine quantities, a phase's compute, tensor-parallel (TP) and data-parallel
(DP) communication each, in sums, overlaps (the longest counts) and non-negative multiples. So
a step time made from one is convex and non-increasing in bandwidth by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from libra_planner.frozen import Frozen
from libra_planner.workload.operations import Phase


class Activity(StrEnum):
    """What a phase does: compute, or communicate in one of the parallel groups."""

    COMPUTE = "compute"
    TP = "tp"
    DP = "dp"


@dataclass(frozen=True)
class Quantity:
    """Compute or communication of one phase of a layer.

    >>> str(Quantity(Phase.FORWARD, Activity.TP))
    'forward.tp'
    """

    phase: Phase
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
    phases: dict[str, tuple[Phase, ...]] = {phase.value: (phase,) for phase in Phase}
    phases["backward"] = (Phase.INPUT_GRAD, Phase.WEIGHT_GRAD)
    names: dict[str, LoopTerm] = {}
    for name, members in phases.items():
        names[name] = Serial(tuple(Quantity(phase, part) for phase in members for part in Activity))
        for part in Activity:
            own = tuple(Quantity(phase, part) for phase in members)
            names[f"{name}.{part}"] = own[0] if len(own) == 1 else Serial(own)
    return names


NAMES: Mapping[str, LoopTerm] = MappingProxyType(_names())
"""What a loop can name: ``phase.part``, or a whole ``phase``; ``backward`` is both gradients."""

_TP_DP = (NAMES["backward.tp"], Serial((NAMES["weight_grad.compute"], NAMES["backward.dp"])))
_DP = (Serial((NAMES["backward.compute"], NAMES["backward.tp"])), NAMES["backward.dp"])
LOOPS: Mapping[str, LoopTerm] = MappingProxyType(
    {
        "no_overlap": Serial((NAMES["forward"], NAMES["backward"])),
        "tp_dp_overlap": Serial((NAMES["forward"], NAMES["input_grad.compute"], Overlap(_TP_DP))),
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

    >>> forward = Quantity(Phase.FORWARD, Activity.TP)
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
