"""What a training step communicates: each distinct collective once, with its count."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.workload.operations import Collective, Phase, Workload
from libra_planner.workload.parallelism import Communicators, Group


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
