"""What is trained, as data: a workload on a fabric, whose step time follows from a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from libra_planner.collectives.algorithms import Network
from libra_planner.collectives.traffic import real_link_slowdown, traffic_bytes
from libra_planner.frozen import Frozen
from libra_planner.timing.expression import Array, TimeExpression
from libra_planner.timing.loop_terms import TrainingLoop
from libra_planner.timing.loops import step_time
from libra_planner.timing.models import CollectiveModel
from libra_planner.workload.communication import Communication, communications
from libra_planner.workload.operations import Collective, Workload
from libra_planner.workload.parallelism import Communicators, Group


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

    workload: Workload = field(repr=False)
    communicators: Communicators
    network: Network
    loop: TrainingLoop

    @cached_property
    def communications(self) -> tuple[Communication, ...]:
        """The distinct collectives of a step."""
        return communications(self.workload, self.communicators)

    @cached_property
    def _hash(self) -> int:
        return hash((self.workload, self.communications, self.network, self.loop))

    def __hash__(self) -> int:
        """By what it holds, found once."""
        return self._hash

    @property
    def has_partial_groups(self) -> bool:
        """Whether real links slow down any of its collectives (C6)."""
        topology = self.network.topology
        return any(
            (real_link_slowdown(one.collective, one.group, topology) > 1).any()
            for one in self.communications
        )

    def step_time(self, model: CollectiveModel) -> TimeExpression:
        """T(B) under a model of collectives, seconds.

        Raises
        ------
        SpecError
            For a loop that the workload does not fit, or an algorithm that cannot run.
        """
        return step_time(
            self.workload,
            self.communicators,
            self.network.topology.n_dims,
            loop=self.loop,
            time=partial(model.time, network=self.network),
            traffic=partial(self._traffic, model),
        )

    def _traffic(self, model: CollectiveModel, collective: Collective, group: Group) -> Array:
        """What a collective occupies the dimensions with when it competes with another."""
        sent = model.traffic(collective, group, self.network)
        if not model.has_own_links or self.communicators.explicit:
            return sent
        # TP and DP of given degrees have links of their own in a fully connected dimension.
        dimensions = self.network.topology.dimensions
        own = np.array([one.block.groups_have_own_links for one in dimensions])
        return np.where(own, traffic_bytes(collective, group), sent)
