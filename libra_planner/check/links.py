"""A design on its real links: what the routing makes of the step time (C10, C11).

Switch dimensions are expanded into whole links, and every collective's flows are routed
over them, all groups at once; direct links follow from C2 and C6. Each collective then
takes longer in a dimension by a factor, and the step time is that of the same training
loop with these factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from libra_planner.check.delivered import DimensionReport, SentBytes
from libra_planner.check.phases import CheckMemo, LinkPhase, PhaseReport, known_mean
from libra_planner.check.report import Progress, n_routings
from libra_planner.check.stages import (
    Decision,
    PhaseKey,
    Schedule,
    Selection,
    Stage,
    User,
    busy_s,
    fastest,
    is_carried,
    ring_hops,
    send_stage,
    stage,
    stage_dims,
    tier_loads,
)
from libra_planner.check.traffic import Way
from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.clos import Array, Clos, Flows, Indices
from libra_planner.fabric.realization import RealizedDesign, realize
from libra_planner.fabric.topology import RAIL, TrafficSettings
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.routing.policy import Policy
from libra_planner.step.collectives.algorithms import (
    Network,
    own_link_factors,
    real_link_slowdown,
)
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.models import Slowdown, send_bytes
from libra_planner.step.expression import TimeExpression
from libra_planner.workload.operations import Collective, Group, Send, SendPattern


@dataclass(frozen=True)
class CheckReport:
    """A design under a routing policy.

    Parameters
    ----------
    policy, seeds : what routed.
    is_drawn : whether another seed gives other figures; else one routing stands for all seeds.
    design : the links.
    ideal_step_time_s : by the plan's model, in which dimensions deliver all their bandwidth.
    spray_step_time_s : on the whole links, with every packet sprayed; mean over random
        placements.
    effective_step_time_s : on the whole links under the policy, shape (n_seeds,).
    dimensions : innermost first.
    keys, phases : of the first seed: the distinct phases on switches, with the collectives that
        they serve.
    spreads : their efficiency, slowdown, FIM (percent) and the rate of the slowest group by name,
        of shape (n_seeds,) each.
    choices : the algorithm of each phase, and what else could have run.
    band_s : mean effective step time at the ends of its error band, where its class was measured
        (C23).
    routed : what the policy slows collectives by, of each routing.
    """

    policy: Policy
    seeds: Indices
    is_drawn: bool
    design: RealizedDesign = field(repr=False)
    ideal_step_time_s: float
    spray_step_time_s: float
    effective_step_time_s: Array
    dimensions: tuple[DimensionReport, ...]
    keys: tuple[PhaseKey, ...] = field(repr=False)
    phases: tuple[tuple[PhaseReport, tuple[User, ...]], ...] = field(repr=False)
    spreads: tuple[Mapping[str, Array], ...] = field(repr=False)
    choices: tuple[Decision, ...] = field(repr=False)
    band_s: tuple[float, float] | None = None
    routed: tuple[Slowdown, ...] = field(default=(), repr=False)

    @property
    def n_routings(self) -> int:
        """Routings that were made: one for all seeds where nothing is drawn."""
        return len(self.seeds) if self.is_drawn else 1

    @property
    def slowdown(self) -> Array:
        """Effective over ideal step time, shape (n_seeds,)."""
        return self.effective_step_time_s / self.ideal_step_time_s

    @property
    def fim_percent(self) -> Array:
        """Of the most unbalanced dimension, shape (n_seeds,); nan where no flow has a choice."""
        worst: Array = np.fmax.reduce([one.fim_percent for one in self.dimensions])
        return worst

    @property
    def fim_floor_percent(self) -> float:
        """The least that any routing of whole flows can reach; nan as for a dimension."""
        return float(np.fmax.reduce([one.fim_floor_percent for one in self.dimensions]))


Run = Mapping[PhaseKey, PhaseReport]
"""The phases of one seed."""


@dataclass(frozen=True)
class LinkCheck:
    """A problem's collectives on the links of one design, and the step time that follows.

    Parameters
    ----------
    problem : from a plan, so that it knows its collectives.
    bandwidth_Bps : the design, shape (n_dims,), byte/s.
    design : its links; those of the problem's realization by default.
    traffic : placement, queue pairs, addresses; those of the plan by default.
    npu_at, background : where the outermost dimension runs the job on a fabric that it
        shares, and the others' flows there; see :class:`~libra_planner.check.phases.LinkPhase`.
    selection : what runs where the plan names no algorithm.
    schedule : the algorithms of an earlier decision; by default each check decides.
    memo : what other checks have found out, and what they can use of this one.
    is_brief : whether only :meth:`figures` are asked for.

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
    selection: Selection = Selection.LIBRARY
    schedule: Schedule | None = field(default=None, repr=False)
    memo: CheckMemo = field(default_factory=CheckMemo, repr=False, compare=False)
    is_brief: bool = False

    @property
    def network(self) -> Network:
        """The fabric as collectives meet it."""
        if not self.problem.step.trainings:
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        return self.problem.network

    @cached_property
    def stages(self) -> Mapping[Stage, tuple[User, ...]]:
        """Where algorithms are decided on, and for which collectives.

        These are the communicators' parts in switch dimensions.
        """
        found: dict[Stage, tuple[User, ...]] = {}
        for one in self._users:
            stages = (self._stage_of(one, dim) for dim in self.switched(one.group))
            for at in dict.fromkeys(stages):
                found[at] = (*found.get(at, ()), one)
        return found

    @property
    def _users(self) -> tuple[User, ...]:
        """Collectives and sends of a step."""
        return (*self.problem.step.communications, *self.problem.step.sends)

    def _stage_of(self, one: User, dim: int) -> Stage:
        if isinstance(one, Send):
            return send_stage(self.problem.topology, one, dim)
        return self._stage(one.collective, one.group, dim)

    @property
    def keys(self) -> tuple[PhaseKey, ...]:
        """The distinct phases on switches: those that run, or before a decision all routed ones."""
        if self.schedule is None:
            return tuple(key for one in self.stages for key in one.keys)
        return tuple((one.dim, one.group, self.schedule[one]) for one in self.stages)

    @property
    def _deciding(self) -> tuple[PhaseKey, ...]:
        """The phases that may run: those that are only compared are left out."""
        if self.schedule is not None:
            return self.keys
        return tuple((at.dim, at.group, one) for at in self.stages for one in at.decided)

    def _key_at(self, at: Stage) -> PhaseKey:
        if self.schedule is None:
            raise ValueError("no algorithms are decided on: see with_schedule()")
        return at.dim, at.group, self.schedule[at]

    def _stage(self, collective: Collective, group: Group, dim: int) -> Stage:
        found = stage(collective, group, self.network, dim, self.selection)
        model = self.problem.step.model
        if not isinstance(model, Calibrated):
            return found
        if model.is_summed(collective, group, dim):
            return replace(found, candidates=(None,), reason="library")
        # Its schedules are the law's, not the plan's.
        return replace(found, reason="library") if found.reason == "named" else found

    def switched(self, group: Group) -> list[int]:
        """Switch dimensions with bandwidth that a group spans."""
        return [
            dim
            for dim, built in enumerate(self.design.dimensions)
            if group.sizes[dim] > 1 and isinstance(built.fabric, Clos)
        ]

    def phase(self, key: PhaseKey) -> LinkPhase:
        """A collective's part in one switch dimension, or in all tiers of a stack."""
        built, topology = self.design.dimensions[key[0]], self.problem.topology
        port, loads = topology.ports[key[0]], tier_loads(topology, key)
        bandwidth_Bps = self.design.bandwidth_Bps
        least_Bps = min(bandwidth_Bps[i] / load for i, load in loads.items() if load)
        share = float(least_Bps / bandwidth_Bps[port])
        phase = LinkPhase(topology, *key, built, self.traffic, share, is_brief=self.is_brief)
        if phase.n_rails > 1 and built.settings is not None and built.settings.wiring == RAIL:
            got = f"got direct all-to-alls across rails in {built.label}, wiring rail"
            fix = "remove pxn: false, or write another wiring"
            raise SpecError(Fault(got, "expected a network that joins the rails", fix))
        if port != topology.ports[-1]:
            return phase
        return replace(phase, npu_at=self.npu_at, background=self.background)

    def users(self, key: PhaseKey) -> tuple[User, ...]:
        """The collectives, or sends, that a phase serves."""
        runs = {
            at: at.decided if self.schedule is None else (self.schedule[at],) for at in self.stages
        }
        dim, group, algorithm = key
        return next(
            users
            for at, users in self.stages.items()
            if (at.dim, at.group) == (dim, group) and algorithm in runs[at]
        )

    def bytes_of(self, one: User) -> Array:
        """What an NPU sends for a collective by dimension, to groups there (C3, C13)."""
        if isinstance(one, Send):
            return send_bytes(one.size_bytes, one.group, self.problem.topology)
        sent = self.network.own_bytes(one.collective, one.group)
        return sent * [is_carried(one, dim) for dim in range(len(sent))]

    def phase_bytes(self, key: PhaseKey, one: User) -> float:
        """What an NPU sends for a collective in a phase."""
        if isinstance(one, Send):
            return one.size_bytes
        dims = stage_dims(one.collective.kind, one.group, self.network, key[0])
        return float(self.bytes_of(one)[list(dims)].sum())

    def seeds(self, policy: Policy, asked: Iterable[int] | None = None) -> list[int]:
        """The seeds that are asked for, else as many as the number of flows says."""
        return list(range(n_routings(self.n_drawn_flows(policy))) if asked is None else asked)

    def n_drawn_flows(self, policy: Policy) -> int:
        """Flows of one routing that another seed would route in another way.

        Of algorithms that are only compared none count, so that a comparison changes no figure.
        """
        return sum(x.n_flows for x in map(self.phase, self._deciding) if x.is_drawn(policy))

    def is_drawn(self, policy: Policy) -> bool:
        """Whether another seed routes, or places, in another way."""
        return any(self.phase(key).is_drawn(policy) for key in self.keys)

    def with_schedule(self, policy: Policy, seeds: Iterable[int] | None = None) -> Self:
        """The check that keeps to its algorithms: those that run here, mean over the seeds.

        What other flows or failures make of the links then changes times, and no algorithm.
        """
        if self.schedule is not None or all(len(at.decided) == 1 for at in self.stages):
            return self._scheduled(())
        return self._scheduled(self.runs(policy, self.seeds(policy, seeds)))

    def _scheduled(self, runs: Sequence[Run]) -> Self:
        """The check with its algorithms decided on, by their times where times decide."""
        if self.schedule is not None:
            return self
        return replace(self, schedule={at: self._taken(at, runs) for at in self.stages})

    def _taken(self, at: Stage, runs: Sequence[Run]) -> Way:
        if len(at.decided) == 1:
            return at.decided[0]
        return fastest(self._times(at, runs))

    def choice(self, at: Stage, runs: Sequence[Run]) -> Decision:
        """What a stage runs, and the times of all that was routed there."""
        times = self._times(at, runs)
        taken = self._taken(at, runs) if self.schedule is None else self.schedule[at]
        return Decision(at, self.stages[at], times, taken)

    def _times(self, at: Stage, runs: Sequence[Run]) -> dict[Way, float]:
        """For how long each algorithm that was routed keeps a stage's dimension busy, s."""
        users = self.stages[at]
        times: dict[Way, float] = {}
        for key in at.keys:
            if key in runs[0]:
                factor = float(np.mean([run[key].time_factor for run in runs if key in run]))
                got_Bps = runs[0][key].bandwidth_Bps / factor
                times[key[2]] = busy_s(self.problem, users, key, got_Bps)
        return times

    def runs(
        self, policy: Policy, seeds: Iterable[int], progress: Progress | None = None
    ) -> list[Run]:
        """The phases' reports for each seed; one for all where nothing is drawn.

        Before algorithms are decided on, of all candidates: those that are only compared have as
        many seeds as the number of their own flows says, at most.
        """
        listed = [int(seed) for seed in seeds]
        phases, memo = {key: self.phase(key) for key in self.keys}, self.memo
        compared = set(self.keys) - set(self._deciding)
        listed = listed if self.is_drawn(policy) else listed[:1]
        runs: list[Run] = []
        for seed in listed:
            now = [
                key
                for key, one in phases.items()
                if key not in compared or len(runs) < n_routings(one.n_flows)
            ]
            runs.append({key: phases[key].report(policy, seed, memo) for key in now})
            if progress is not None:
                progress(len(runs), len(listed))
        return runs

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
        return self._scheduled(runs)._report(policy, listed, runs)

    def figures(self, policy: Policy, seed: int) -> tuple[float, float, Slowdown]:
        """Effective step time, s, FIM in percent and factors of one routing, and nothing else.

        Algorithms have to be decided on: see :meth:`with_schedule`.
        """
        (run,) = self.runs(policy, [seed])
        fims = [self._imbalance(run, dim, "fim_percent") for dim in range(len(self.bandwidth_Bps))]
        slowdown = self._slowdown(run, "time_factor")
        return self.step_time_s(slowdown), float(np.fmax.reduce(fims)), slowdown

    def _report(self, policy: Policy, listed: Indices, runs: list[Run]) -> CheckReport:
        n_same = len(listed) // len(runs)
        every = runs * n_same
        routed = [self._slowdown(run, "time_factor") for run in runs]
        # Where every packet is sprayed, only random placements differ.
        is_random = any(self.phase(key).is_placed_at_random for key in self.keys)
        ideal = [self._slowdown(run, "ideal_factor") for run in (runs if is_random else runs[:1])]
        return CheckReport(
            policy=policy,
            seeds=listed,
            is_drawn=self.is_drawn(policy),
            design=self.design,
            ideal_step_time_s=float(self.problem.step_time.seconds(self.bandwidth_Bps)),
            spray_step_time_s=float(np.mean([self.step_time_s(one) for one in ideal])),
            effective_step_time_s=np.array([self.step_time_s(one) for one in routed] * n_same),
            dimensions=tuple(
                self._dimension(dim, every, routed * n_same, ideal)
                for dim in range(len(self.bandwidth_Bps))
            ),
            keys=self.keys,
            phases=tuple((runs[0][key], self.users(key)) for key in self.keys),
            spreads=tuple(
                {
                    name: np.array([getattr(run[key], name) for run in every])
                    for name in ("efficiency", "slowdown", "fim_percent", "worst_rate_Bps")
                }
                for key in self.keys
            ),
            choices=tuple(self.choice(one, runs) for one in self.stages),
            band_s=self._band(routed),
            routed=tuple(routed),
        )

    def _band(self, routed: Sequence[Slowdown]) -> tuple[float, float] | None:
        """Mean step time at the ends of its error band (C23): as of the plan's own time."""
        step = self.problem.step
        if not isinstance(step.model, Calibrated):
            return None
        if step.has_kernels:
            return step.band_around_s(float(np.mean([self.step_time_s(one) for one in routed])))
        steps = [step.under(replace(step.model, side=side)) for side in (-1, 1)]
        ends = [replace(self, problem=replace(self.problem, step=one)) for one in steps]
        low_s, high_s = (float(np.mean([end.step_time_s(one) for one in routed])) for end in ends)
        return low_s, high_s

    def mean_slowdown(self, policy: Policy, *, seeds: Iterable[int] | None = None) -> Slowdown:
        """Factors that derate whole links by their mean efficiency over the seeds.

        Relative to the bandwidth of the whole links, so that a design is not rewarded for what
        rounding up to whole ports gives it.
        """
        runs = self.runs(policy, self.seeds(policy, seeds))
        links = self._scheduled(runs)
        slowdowns = [links._slowdown(run, "time_factor") for run in runs]
        mean, sends = (
            tuple(map(tuple, np.mean(several, axis=0).tolist()))
            for several in zip(*((x.factors, x.send_factors) for x in slowdowns), strict=True)
        )
        return replace(slowdowns[0], factors=mean, send_factors=sends)

    def _slowdown(self, run: Run, name: str) -> Slowdown:
        """Factors on the time of each collective at the whole links' bandwidth, by dimension."""
        pairs = tuple((one.collective, one.group) for one in self.problem.step.communications)
        ways = [self._run_as(run, name, *pair) for pair in pairs]
        sends: dict[Group, tuple[float, ...]] = {}
        for one in self.problem.step.sends:  # Of several patterns of a group the slowest.
            found = self._send_factors(run, name, one)
            sends[one.group] = tuple(map(max, sends.get(one.group, found), found))
        factors, algorithms = tuple(one for one, _ in ways), tuple(one for _, one in ways)
        return Slowdown(pairs, factors, algorithms, tuple(sends), tuple(sends.values()))

    def _send_factors(self, run: Run, name: str, one: Send) -> tuple[float, ...]:
        """Factors on the time of a send by dimension, alike over all tiers of a network."""
        topology = self.problem.topology
        factors = own_link_factors(topology, one.group)
        for dim in self.switched(one.group):
            key = self._key_at(self._stage_of(one, dim))
            tiers = [i for i, port in enumerate(topology.ports) if port == topology.ports[dim]]
            factors[tiers] = getattr(run[key], name)
        return tuple(factors.tolist())

    def _run_as(
        self, run: Run, name: str, collective: Collective, group: Group
    ) -> tuple[tuple[float, ...], tuple[Algorithm | None, ...]]:
        """A collective's factors, and algorithms, ``None`` for the usual one, by dimension."""
        factors = np.ones(self.problem.topology.n_dims)
        if self.problem.step.model.n_chunks is None:  # The pipelined model has real links already.
            factors = real_link_slowdown(collective, group, self.problem.topology, with_hops=True)
        named = list(self.network.for_kind(collective.kind).algorithms)
        for dim in self.switched(group):
            key = self._key_at(self._stage(collective, group, dim))
            factor = getattr(run[key], name) * ring_hops(collective, key, self.problem)
            # In a hierarchy of this tier, which need not be the narrowest on the way.
            if not self.network.is_flat(collective.kind, dim):
                factor *= self.design.bandwidth_Bps[dim] / run[key].bandwidth_Bps
            factors[dim] = factor
            named[dim] = None if isinstance(key[2], SendPattern) else key[2]
        return tuple(factors.tolist()), tuple(named)

    def step_time_s(self, slowdown: Slowdown) -> float:
        """Step time of the whole links with collectives slowed down."""
        return float(self.slowed(slowdown).seconds(self.design.bandwidth_Bps))

    def step_time_of(self, run: Run) -> float:
        """Step time of the whole links with the phases as they are given."""
        return self.step_time_s(self._slowdown(run, "time_factor"))

    def slowed(self, slowdown: Slowdown) -> TimeExpression:
        """The expression of the step time with collectives slowed down."""
        step = self.problem.step
        shares = tuple((one.training, one.weight) for one in step.members)
        key = shares, step.model, slowdown
        return self.memo.steps.of(key, lambda: step.slowed(slowdown).time)

    @cached_property
    def sent(self) -> SentBytes:
        """What an NPU sends in a step."""
        return SentBytes.of_users(self._users, self.bytes_of)

    def _dimension(
        self, dim: int, runs: list[Run], routed: list[Slowdown], ideal: list[Slowdown]
    ) -> DimensionReport:
        built = self.design.dimensions[dim]
        return DimensionReport(
            label=built.label,
            tier=built.tier,
            asked_Bps=built.asked_Bps,
            bandwidth_Bps=built.bandwidth_Bps,
            ideal_efficiency=float(np.mean([self.sent.efficiency(one, dim) for one in ideal])),
            efficiency=np.array([self.sent.efficiency(one, dim) for one in routed]),
            fim_percent=np.array([self._imbalance(run, dim, "fim_percent") for run in runs]),
            fim_floor_percent=self._imbalance(runs[0], dim, "fim_floor_percent"),
        )

    def _imbalance(self, run: Run, dim: int, name: str) -> float:
        """Mean of a phase's figure by bytes; nan where no flow crosses switches."""
        uses = [one for one in self._users if dim in self.switched(one.group)]
        sent = (float(self.bytes_of(one)[dim] * one.count) for one in uses)
        found = (float(getattr(run[self._key_at(self._stage_of(one, dim))], name)) for one in uses)
        return known_mean(zip(sent, found, strict=True))


def link_check(
    problem: Problem,
    bandwidth_Bps: Array,
    *,
    traffic: TrafficSettings | None = None,
    selection: Selection = Selection.LIBRARY,
    memo: CheckMemo | None = None,
) -> LinkCheck:
    """The check of a design on the links that its plan asks for.

    Parameters
    ----------
    problem : from a plan.
    bandwidth_Bps : shape (n_dims,), byte/s.
    traffic : placement, queue pairs, addresses; those of the plan by default.
    selection : what runs where the plan names no algorithm.
    memo : of checks of other designs; by default one of its own.

    Raises
    ------
    SpecError
        For a design that cannot be built.
    """
    asked = np.asarray(bandwidth_Bps, dtype=np.float64)
    chosen = fastest_alternative(problem, asked)
    design = realize(problem.topology, asked, chosen.links)
    settings = traffic or design.realization.traffic
    return LinkCheck(chosen, asked, design, settings, selection=selection, memo=memo or CheckMemo())
