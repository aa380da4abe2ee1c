"""A design on its real links: what the routing makes of the step time (C10, C11).

Switch dimensions are expanded into whole links, and every collective's flows are routed
over them, all groups at once; direct links follow from C2 and C6. Each collective then
takes longer in a dimension by a factor, and the step time is that of the same training
loop with these factors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from libra_planner.collectives.algorithms import Algorithm
from libra_planner.errors import Fault, SpecError
from libra_planner.flows.check_memo import CheckMemo
from libra_planner.flows.check_report import (
    CheckReport,
    DimensionReport,
    dimension_report,
    phase_spread,
)
from libra_planner.flows.link_phases import direct_factors
from libra_planner.flows.fabric import Array, Indices
from libra_planner.flows.link_phases import LinkPhases, Run
from libra_planner.flows.messages import TrafficSettings, traffic_settings
from libra_planner.flows.phases import known_mean
from libra_planner.flows.policy import Policy
from libra_planner.flows.realization import realize
from libra_planner.flows.report import Progress
from libra_planner.flows.schedules import (
    ring_hops,
)
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.timing.loops import Slowdown
from libra_planner.workload.communication import Communication
from libra_planner.workload.operations import Collective, CollectiveKind
from libra_planner.workload.parallelism import Group


@dataclass(frozen=True)
class LinkCheck(LinkPhases):
    """A problem's collectives on the links of one design, and the step time that follows.

    Parameters and errors are those of :class:`~libra_planner.flows.link_phases.LinkPhases`.
    """

    def report(
        self,
        policy: Policy,
        *,
        seeds: Iterable[int] | None = None,
        progress: Progress | None = None,
    ) -> CheckReport:
        """Route the step's collectives once per seed and measure.

        Parameters
        ----------
        policy : how flows find their paths.
        seeds : one or more, by default 10, or fewer of very many flows; policies and placements
            that draw nothing run once.
        progress : called with finished and all seeds.
        """
        listed = np.array(self.seeds(policy, seeds), np.int64)
        runs = self.runs(policy, listed, progress)
        return self.decided(runs)._report(policy, listed, runs, is_drawn=self.is_drawn(policy))

    def _report(
        self, policy: Policy, listed: Indices, runs: list[Run], *, is_drawn: bool
    ) -> CheckReport:
        n_same = len(listed) // len(runs)
        every = runs * n_same
        times = [self.step_time_s(self._slowdown(run, "time_factor")) for run in runs]
        sprayed = [
            self.step_time_s(self._slowdown(run, "ideal_factor")) for run in self.placed(runs)
        ]
        return CheckReport(
            policy=policy,
            seeds=listed,
            is_drawn=is_drawn,
            design=self.design,
            ideal_step_time_s=float(self.problem.step_time.seconds(self.bandwidth_Bps)),
            spray_step_time_s=float(np.mean(sprayed)),
            effective_step_time_s=np.array(times * n_same),
            dimensions=tuple(self._dimension(dim, every) for dim in range(len(self.bandwidth_Bps))),
            keys=self.keys,
            phases=tuple((runs[0][key], self.users(key)) for key in self.keys),
            spreads=tuple(phase_spread([run[key] for run in every]) for key in self.keys),
            choices=tuple(self.choice(one, runs) for one in self.stages),
        )

    def mean_slowdown(self, policy: Policy, *, seeds: Iterable[int] | None = None) -> Slowdown:
        """Factors that derate whole links by their mean efficiency over the seeds.

        Relative to the bandwidth of the whole links, so that a design is not rewarded for what
        rounding up to whole ports gives it.
        """
        runs = self.runs(policy, self.seeds(policy, seeds))
        links = self.decided(runs)
        slowdowns = [links._slowdown(run, "time_factor") for run in runs]

        def mean(collective: Collective, group: Group) -> Array:
            factors = [slowdown(collective, group) for slowdown in slowdowns]
            return np.asarray(np.mean(factors, axis=0))

        return Slowdown(mean, slowdowns[0].algorithms)

    def _slowdown(self, run: Run, name: str) -> Slowdown:
        """Factors on the time of each collective at the whole links' bandwidth, by dimension."""

        def slowdown(collective: Collective, group: Group) -> Array:
            factors = np.ones(self.problem.topology.n_dims)
            if self.problem.n_chunks is None:  # The pipelined model has real links already.
                factors = direct_factors(collective, group, self.problem.topology)
            for dim in self.switched(group):
                key = self.key(collective, group, dim)
                factors[dim] = getattr(run[key], name) * ring_hops(collective, key, self.problem)
            return factors

        return Slowdown(slowdown, self._algorithms)

    def _algorithms(self, collective: Collective, group: Group) -> tuple[Algorithm | None, ...]:
        """What a collective runs in each dimension; ``None`` for the usual one."""
        named = list(self.network.algorithms)
        for dim in range(len(named)):
            if dim in self.switched(group):
                named[dim] = self.key(collective, group, dim)[2]
            elif collective.kind is CollectiveKind.ALL_TO_ALL:
                named[dim] = None if named[dim] is Algorithm.HALVING_DOUBLING else named[dim]
        return tuple(named)

    def step_time_s(self, slowdown: Slowdown) -> float:
        """Step time of the whole links with collectives slowed down."""
        if self.problem.at_slowdown is None:
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        at_slowdown = self.problem.at_slowdown
        pairs = [(one.collective, one.group) for one in self.problem.communications]
        factors = b"".join(slowdown(*pair).tobytes() for pair in pairs)
        named = tuple(self._algorithms(*pair) for pair in pairs)
        decisive = (at_slowdown, factors, named)
        slowed = self.memo.steps.of(decisive, lambda: at_slowdown(slowdown).step_time)
        return float(slowed.seconds(self.design.bandwidth_Bps))

    def _dimension(self, dim: int, runs: list[Run]) -> DimensionReport:
        uses = [one for one in self.problem.communications if one.group.sizes[dim] > 1]
        sent = np.array([self.bytes_of(one)[dim] * one.count for one in uses])
        return dimension_report(
            self.design.dimensions[dim],
            sent,
            routed=[self._shares(run, uses, dim, "time_factor") for run in runs],
            sprayed=[self._shares(run, uses, dim, "ideal_factor") for run in self.placed(runs)],
            fim_percent=[self._imbalance(run, uses, sent, dim, "fim_percent") for run in runs],
            floor_percent=self._imbalance(runs[0], uses, sent, dim, "fim_floor_percent"),
        )

    def _shares(self, run: Run, uses: list[Communication], dim: int, name: str) -> Array:
        slowdown = self._slowdown(run, name)
        return np.array([slowdown(one.collective, one.group)[dim] for one in uses])

    def _imbalance(
        self, run: Run, uses: list[Communication], sent: Array, dim: int, name: str
    ) -> float:
        """Mean of a phase's figure by bytes; nan where no flow crosses switches."""
        return known_mean(
            (n_bytes, float(getattr(run[self.key(one.collective, one.group, dim)], name)))
            for one, n_bytes in zip(uses, sent, strict=True)
            if dim in self.switched(one.group)
        )


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
