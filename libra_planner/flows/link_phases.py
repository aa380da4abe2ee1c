"""A problem's collectives on the links of one design: their phases, and what each runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from libra_planner.collectives import real_link_slowdown, traffic_bytes
from libra_planner.collectives.algorithms import Algorithm, Network
from libra_planner.errors import Fault, SpecError
from libra_planner.flows.check_memo import CheckMemo
from libra_planner.flows.fabric import Array, Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.messages import TrafficSettings
from libra_planner.flows.phases import Phase, PhaseReport
from libra_planner.flows.policy import Policy
from libra_planner.flows.realization import RealizedDesign
from libra_planner.flows.report import Progress
from libra_planner.flows.schedules import Choice, PhaseKey, Schedule, Stage, busy_s, fastest, stage
from libra_planner.flows.seeds import n_routings
from libra_planner.problem import Problem
from libra_planner.workload.communication import Communication
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.topology import Block, Topology
from libra_planner.workload.parallelism import Group

Run = Mapping[PhaseKey, PhaseReport]
"""The phases of one seed."""


@dataclass(frozen=True)
class LinkPhases:
    """A problem's collectives on the links of one design.

    Parameters
    ----------
    problem : from a plan, so that it knows its collectives.
    bandwidth_Bps : the design, shape (n_dims,), byte/s.
    design : its links; those of the problem's realization by default.
    traffic : placement, queue pairs, addresses; those of the plan by default.
    npu_at, background : where the outermost dimension runs the job on a fabric that it
        shares, and the others' flows there; see :class:`~libra_planner.flows.phases.Phase`.
    schedule : the algorithms of an earlier decision; by default each check decides.
    memo : what other checks have found out, and what they can use of this one.

    Raises
    ------
    SpecError
        For a design that cannot be built, or a problem that does not know its collectives.
    """

    problem: Problem
    bandwidth_Bps: Array
    design: RealizedDesign
    traffic: TrafficSettings
    npu_at: Indices | None = field(default=None, repr=False)
    background: Flows | None = field(default=None, repr=False)
    schedule: Schedule | None = field(default=None, repr=False)
    memo: CheckMemo = field(default_factory=CheckMemo, repr=False, compare=False)

    @property
    def network(self) -> Network:
        """The fabric as collectives meet it."""
        if self.problem.network is None:
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        return self.problem.network

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Where algorithms are decided on: the communicators' parts in switch dimensions."""
        found = {
            stage(one.collective, one.group, self.network, dim): None
            for one in self.problem.communications
            for dim in self.switched(one.group)
        }
        return tuple(found)

    @property
    def keys(self) -> tuple[PhaseKey, ...]:
        """The distinct phases on switches: those that run, or before a decision all that can."""
        if self.schedule is None:
            return tuple(key for one in self.stages for key in one.keys)
        return tuple((one.dim, one.group, self.schedule[one]) for one in self.stages)

    def key(self, collective: Collective, group: Group, dim: int) -> PhaseKey:
        """What decides how a collective fares in a switch dimension, algorithms being decided."""
        if self.schedule is None:
            raise ValueError("no algorithms are decided on: see scheduled()")
        at = stage(collective, group, self.network, dim)
        return at.dim, at.group, self.schedule[at]

    def switched(self, group: Group) -> list[int]:
        """Switch dimensions with bandwidth that a group spans."""
        return [
            dim
            for dim, built in enumerate(self.design.dimensions)
            if group.sizes[dim] > 1 and isinstance(built.fabric, Clos)
        ]

    def phase(self, key: PhaseKey) -> Phase:
        """A collective's part in one switch dimension."""
        dim, group, algorithm = key
        built, topology = self.design.dimensions[dim], self.problem.topology
        phase = Phase(topology, dim, group, algorithm, built, self.traffic)
        if dim < topology.n_dims - 1:
            return phase
        return replace(phase, npu_at=self.npu_at, background=self.background)

    def users(self, key: PhaseKey) -> tuple[Communication, ...]:
        """The collectives that a phase serves."""
        return next(self.users_of(one) for one in self.stages if key in one.keys)

    def users_of(self, at: Stage) -> tuple[Communication, ...]:
        return tuple(
            one
            for one in self.problem.communications
            if at.dim in self.switched(one.group)
            and stage(one.collective, one.group, self.network, at.dim) == at
        )

    def bytes_of(self, one: Communication) -> Array:
        """What an NPU sends for a collective by dimension (C3)."""
        return traffic_bytes(one.collective, one.group, self.network.in_network)

    def seeds(self, policy: Policy, asked: Iterable[int] | None = None) -> list[int]:
        """The seeds that are asked for, else as many as the number of flows says."""
        return list(range(n_routings(self.n_drawn_flows(policy))) if asked is None else asked)

    def n_drawn_flows(self, policy: Policy) -> int:
        """Flows of one routing that another seed would route in another way."""
        phases = [self.phase(key) for key in self.keys]
        return sum(phase.n_flows for phase in phases if phase.is_drawn(policy))

    def is_drawn(self, policy: Policy) -> bool:
        """Whether another seed routes, or places, in another way."""
        return any(self.phase(key).is_drawn(policy) for key in self.keys)

    def scheduled(self, policy: Policy, *, seeds: Iterable[int] | None = None) -> Self:
        """The check that keeps to the algorithms which are the fastest here, mean over the seeds.

        What other flows or failures make of the links then changes times, and no algorithm.
        """
        if self.schedule is not None:
            return self
        return self.decided(self.runs(policy, self.seeds(policy, seeds)))

    def choice(self, at: Stage, runs: Sequence[Run]) -> Choice:
        """What a stage runs, and the times of all that was routed there."""
        users, bandwidth_Bps = self.users_of(at), self.design.bandwidth_Bps[at.dim]
        times: dict[Algorithm | None, float] = {}
        for key in at.keys:
            if key in runs[0]:
                factor = float(np.mean([run[key].time_factor for run in runs]))
                times[key[2]] = busy_s(self.problem, users, key, bandwidth_Bps / factor)
        taken = fastest(times) if self.schedule is None else self.schedule[at]
        return Choice(at, users, times, taken)

    def decided(self, runs: Sequence[Run]) -> Self:
        if self.schedule is not None:
            return self
        return replace(self, schedule={one: self.choice(one, runs).taken for one in self.stages})

    def runs(
        self, policy: Policy, seeds: Iterable[int], progress: Progress | None = None
    ) -> list[Run]:
        """The phases' reports for each seed; one for all where nothing is drawn.

        Before algorithms are decided on, of all that can run.
        """
        listed = [int(seed) for seed in seeds]
        phases, memo = {key: self.phase(key) for key in self.keys}, self.memo.phases
        drawn = self.is_drawn(policy)
        runs: list[Run] = []
        for i, seed in enumerate(listed if drawn else listed[:1]):
            runs.append({key: one.report(policy, seed, memo) for key, one in phases.items()})
            if progress is not None:
                progress(i + 1, len(listed) if drawn else 1)
        return runs

    def placed(self, runs: list[Run]) -> list[Run]:
        """The runs that differ when every packet is sprayed: those of random placements."""
        placed = any(self.phase(key).is_placed_at_random for key in self.keys)
        return runs if placed else runs[:1]


def direct_factors(collective: Collective, group: Group, topology: Topology) -> Array:
    """What direct links make of C3's time: parts of a dimension (C6), and hops (C4).

    An all-to-all around a whole ring of n goes the shorter ways: its busiest link carries
    floor(n^2/4)/(n - 1) of what C3 counts.
    """
    factors = real_link_slowdown(collective, group, topology)
    if collective.kind is CollectiveKind.ALL_TO_ALL:
        for dim, dimension in enumerate(topology.dimensions):
            size = group.sizes[dim]
            if dimension.block is Block.RING and 1 < size == dimension.size:
                factors[dim] = size**2 // 4 / (size - 1)
    return factors
