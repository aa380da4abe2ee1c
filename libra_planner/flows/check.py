"""A design on its real links: what the routing makes of the step time (C10, C11).

Switch dimensions are expanded into whole links, and every collective's flows are routed
over them, all groups at once; direct links follow from C2 and C6. Each collective then
takes longer in a dimension by a factor, and the step time is that of the same training
loop with these factors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from libra_planner.collectives import real_link_slowdown, traffic_bytes
from libra_planner.collectives.algorithms import Algorithm, Network, algorithm_used
from libra_planner.errors import Fault, SpecError
from libra_planner.flows.check_report import CheckReport, DimensionReport
from libra_planner.flows.fabric import Array, Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.memo import Memo
from libra_planner.flows.messages import TrafficSettings, traffic_settings
from libra_planner.flows.phases import Phase, PhaseReport, RoundReport
from libra_planner.flows.policy import Policy
from libra_planner.flows.realization import RealizedDesign, realize
from libra_planner.flows.report import Progress
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.timing.expression import TimeExpression
from libra_planner.timing.loops import Slowdown
from libra_planner.topology import Block
from libra_planner.workload.communication import Communication
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group

PhaseKey = tuple[int, Group, Algorithm | None]
"""Dimension, communicator and algorithm: what decides about a phase's factor."""


@dataclass(frozen=True)
class CheckMemo:
    """What checks of designs share where the links differ in nothing but their speed.

    Parameters
    ----------
    rounds : of a phase, by all that decides about them.
    steps : step times with collectives slowed down by factors, as expressions in bandwidth.
    """

    rounds: Memo[tuple[RoundReport, ...]] = field(default_factory=lambda: Memo(4096))
    steps: Memo[TimeExpression] = field(default_factory=lambda: Memo(256))


@dataclass(frozen=True)
class LinkCheck:
    """A problem's collectives on the links of one design.

    Parameters
    ----------
    problem : from a plan, so that it knows its collectives.
    bandwidth_Bps : the design, shape (n_dims,), byte/s.
    design : its links; those of the problem's realization by default.
    traffic : placement, queue pairs, addresses; those of the plan by default.
    npu_at, background : where the outermost dimension runs the job on a fabric that it
        shares, and the others' flows there; see :class:`~libra_planner.flows.phases.Phase`.
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
    memo: CheckMemo = field(default_factory=CheckMemo, repr=False, compare=False)

    @property
    def network(self) -> Network:
        """The fabric as collectives meet it."""
        if self.problem.network is None:
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        return self.problem.network

    def report(
        self, policy: Policy, *, seeds: Iterable[int] = (0,), progress: Progress | None = None
    ) -> CheckReport:
        """Route the step's collectives once per seed and measure.

        Parameters
        ----------
        policy : how flows find their paths.
        seeds : one or more; policies and placements that draw nothing run once.
        progress : called with finished and all seeds.
        """
        listed = np.array(list(seeds), dtype=np.int64)
        runs = self.runs(policy, listed, progress)
        n_same = len(listed) // len(runs)
        every = runs * n_same
        times = [self.step_time_s(self._factors(run, "time_factor")) for run in runs]
        sprayed = [
            self.step_time_s(self._factors(run, "ideal_factor")) for run in self._placed(runs)
        ]
        return CheckReport(
            policy=policy,
            seeds=listed,
            design=self.design,
            ideal_step_time_s=float(self.problem.step_time.seconds(self.bandwidth_Bps)),
            spray_step_time_s=float(np.mean(sprayed)),
            effective_step_time_s=np.array(times * n_same),
            dimensions=tuple(self._dimension(dim, every) for dim in range(len(self.bandwidth_Bps))),
            phases=tuple((runs[0][key], self.users(key)) for key in self.keys),
        )

    def runs(
        self, policy: Policy, seeds: Iterable[int], progress: Progress | None = None
    ) -> list[dict[PhaseKey, PhaseReport]]:
        """The phases' reports for each seed; one for all where nothing is drawn."""
        listed = [int(seed) for seed in seeds]
        drawn = policy.is_drawn or self.traffic.placement == "random"
        runs = []
        for i, seed in enumerate(listed if drawn else listed[:1]):
            found = ((key, self.phase(key)) for key in self.keys)
            rounds = self.memo.rounds
            runs.append({key: phase.report(policy, seed, rounds) for key, phase in found})
            if progress is not None:
                progress(i + 1, len(listed) if drawn else 1)
        return runs

    def _placed(self, runs: list[dict[PhaseKey, PhaseReport]]) -> list[dict[PhaseKey, PhaseReport]]:
        """The runs that differ when every packet is sprayed: those of random placements."""
        return runs if self.traffic.placement == "random" else runs[:1]

    def mean_slowdown(self, policy: Policy, *, seeds: Iterable[int] = (0,)) -> Slowdown:
        """Factors that derate whole links by their mean efficiency over the seeds.

        Relative to the bandwidth of the whole links, so that a design is not rewarded for what
        rounding up to whole ports gives it.
        """
        slowdowns = [self._factors(run, "time_factor") for run in self.runs(policy, seeds)]

        def mean(collective: Collective, group: Group) -> Array:
            factors = [slowdown(collective, group) for slowdown in slowdowns]
            return np.asarray(np.mean(factors, axis=0))

        return mean

    @property
    def keys(self) -> tuple[PhaseKey, ...]:
        """The distinct phases on switches."""
        found = {
            self.key(one.collective, one.group, dim): None
            for one in self.problem.communications
            for dim in self._switched(one.group)
        }
        return tuple(found)

    def key(self, collective: Collective, group: Group, dim: int) -> PhaseKey:
        """What decides how a collective fares in a switch dimension."""
        # Only the part of the group in this dimension matters for its flows.
        sizes = tuple(size if i == dim else 1 for i, size in enumerate(group.sizes))
        strides = tuple(stride if i == dim else 1 for i, stride in enumerate(group.strides))
        part = Group(sizes, strides)
        if dim in self.network.in_network and collective.kind is CollectiveKind.ALL_REDUCE:
            return dim, part, None
        return dim, part, self._algorithm(collective, group, dim)

    def _algorithm(self, collective: Collective, group: Group, dim: int) -> Algorithm:
        network = self.network
        if collective.kind is CollectiveKind.ALL_TO_ALL:
            others = (None if x is Algorithm.HALVING_DOUBLING else x for x in network.algorithms)
            network = replace(network, algorithms=tuple(others))
        return algorithm_used(collective, group, network, dim)

    def _switched(self, group: Group) -> list[int]:
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
        dim = key[0]
        return tuple(
            one
            for one in self.problem.communications
            if dim in self._switched(one.group) and self.key(one.collective, one.group, dim) == key
        )

    def _factors(self, run: dict[PhaseKey, PhaseReport], name: str) -> Slowdown:
        """Factors on the time of each collective at the whole links' bandwidth, by dimension."""

        def slowdown(collective: Collective, group: Group) -> Array:
            factors = np.ones(self.problem.topology.n_dims)
            if self.problem.n_chunks is None:  # The pipelined model has real links already.
                factors = self._direct_factors(collective, group)
            for dim in self._switched(group):
                key = self.key(collective, group, dim)
                factors[dim] = getattr(run[key], name) * self._hops(collective, group, key)
            return factors

        return slowdown

    def _direct_factors(self, collective: Collective, group: Group) -> Array:
        """What direct links make of C3's time: parts of a dimension (C6), and hops (C4).

        An all-to-all around a whole ring of n goes the shorter ways: its busiest link carries
        floor(n^2/4)/(n - 1) of what C3 counts.
        """
        topology = self.problem.topology
        factors = real_link_slowdown(collective, group, topology)
        if collective.kind is CollectiveKind.ALL_TO_ALL:
            for dim, dimension in enumerate(topology.dimensions):
                size = group.sizes[dim]
                if dimension.block is Block.RING and 1 < size == dimension.size:
                    factors[dim] = size**2 // 4 / (size - 1)
        return factors

    def _hops(self, collective: Collective, group: Group, key: PhaseKey) -> float:
        """Messages of a ring all-to-all pass through the NPUs between, which C3 leaves out."""
        passes = collective.kind is CollectiveKind.ALL_TO_ALL and key[2] is Algorithm.RING
        return group.sizes[key[0]] / 2 if passes and self.problem.n_chunks is None else 1.0

    def step_time_s(self, slowdown: Slowdown) -> float:
        """Step time of the whole links with collectives slowed down."""
        if self.problem.at_slowdown is None:
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        at_slowdown = self.problem.at_slowdown
        pairs = [(one.collective, one.group) for one in self.problem.communications]
        factors = b"".join(slowdown(*pair).tobytes() for pair in pairs)
        slowed = self.memo.steps.of((at_slowdown, factors), lambda: at_slowdown(slowdown).step_time)
        return float(slowed.seconds(self.design.bandwidth_Bps))

    def _dimension(self, dim: int, runs: list[dict[PhaseKey, PhaseReport]]) -> DimensionReport:
        built = self.design.dimensions[dim]
        uses = [one for one in self.problem.communications if one.group.sizes[dim] > 1]
        sent = np.array([self.bytes_of(one)[dim] * one.count for one in uses])
        policy = [self._shares(run, uses, dim, "time_factor") for run in runs]
        spray = [self._shares(run, uses, dim, "ideal_factor") for run in self._placed(runs)]
        fim = [self._imbalance(run, uses, sent, dim, "fim_percent") for run in runs]
        floor = self._imbalance(runs[0], uses, sent, dim, "fim_floor_percent")

        def efficiency(factors: Array) -> float:
            return float(sent.sum() / (sent @ factors)) if sent.sum() else float("nan")

        return DimensionReport(
            label=built.label,
            tier=built.tier,
            asked_Bps=built.asked_Bps,
            bandwidth_Bps=built.bandwidth_Bps,
            ideal_efficiency=float(np.mean([efficiency(factors) for factors in spray])),
            efficiency=np.array([efficiency(factors) for factors in policy]),
            fim_percent=np.array(fim),
            fim_floor_percent=floor,
        )

    def bytes_of(self, one: Communication) -> Array:
        """What an NPU sends for a collective by dimension (C3)."""
        return traffic_bytes(one.collective, one.group, self.network.in_network)

    def _shares(
        self, run: dict[PhaseKey, PhaseReport], uses: list[Communication], dim: int, name: str
    ) -> Array:
        slowdown = self._factors(run, name)
        return np.array([slowdown(one.collective, one.group)[dim] for one in uses])

    def _imbalance(
        self,
        run: dict[PhaseKey, PhaseReport],
        uses: list[Communication],
        sent: Array,
        dim: int,
        name: str,
    ) -> float:
        """Mean of a phase's figure by bytes; nan where no flow crosses switches."""
        pairs = [
            (n_bytes, float(getattr(run[self.key(one.collective, one.group, dim)], name)))
            for one, n_bytes in zip(uses, sent, strict=True)
            if dim in self._switched(one.group)
        ]
        known = [(n_bytes, figure) for n_bytes, figure in pairs if not np.isnan(figure)]
        total = sum(n_bytes for n_bytes, _ in known)
        return sum(n * figure for n, figure in known) / total if total else float("nan")


def link_check(
    problem: Problem,
    bandwidth_Bps: Array,
    *,
    traffic: TrafficSettings | None = None,
    memo: CheckMemo | None = None,
) -> LinkCheck:
    """The check of a design on the links that its plan asks for.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_Bps : shape (n_dims,), byte/s.
    traffic : placement, queue pairs, addresses; those of the plan by default.
    memo : of checks of other designs; by default one of its own.

    Raises
    ------
    SpecError
        For a design that cannot be built.
    """
    bandwidth = np.asarray(bandwidth_Bps, dtype=np.float64)
    chosen = fastest_alternative(problem, bandwidth)
    design = realize(problem.topology, bandwidth, problem.links)
    settings = traffic or traffic_settings(design.realization)
    return LinkCheck(chosen, bandwidth, design, settings, memo=memo or CheckMemo())
