"""A design whose network is worse than planned: something is broken, or others use it too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from libra_planner.allowed import counted_share
from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.check.report import Progress, n_routings
from libra_planner.check.stages import Selection
from libra_planner.check.traffic import placed_npus
from libra_planner.errors import Disconnected, Fault, SpecError, refuse
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Clos, Flows
from libra_planner.fabric.realization import RealizedDesign, realize
from libra_planner.fabric.topology import SwitchSettings, Topology, TrafficSettings
from libra_planner.problem import Problem, bought, fastest_alternative
from libra_planner.routing.policy import Policy


@dataclass(frozen=True)
class FailureCase:
    """A design with something broken.

    Parameters
    ----------
    name : what is: ``seed 3``, or such as ``dim4: leaf 0 - spine 5``.
    part : its kind where one part fails: ``dim4: leaf - spine cable``, ``dim4: spine``.
    whole_step_time_s : of the same routing with nothing broken.
    step_time_s : effective; infinite where hosts are cut off.
    fim_percent : of the most unbalanced dimension; nan where hosts are cut off.
    efficiency : share of its whole links that collectives get, by dimension; empty where hosts
        are cut off.
    disconnected : names hosts that no path joins any more; empty if all are joined.
    like : of single failures, the case that by symmetry has the same figures; empty for its own.
    """

    name: str
    part: str
    whole_step_time_s: float
    step_time_s: float
    fim_percent: float
    efficiency: tuple[float, ...] = ()
    disconnected: str = ""
    like: str = ""

    @property
    def slowdown(self) -> float:
        """Step time over that of the same routing with nothing broken."""
        return self.step_time_s / self.whole_step_time_s


@dataclass(frozen=True)
class CutOff:
    """A kind of part without which NICs have no path to any other.

    Parameters
    ----------
    part : such as ``dim4: leaf``.
    n_parts : of the design.
    n_ports : of NICs that each one's failure cuts off.
    """

    part: str
    n_parts: int
    n_ports: int


@dataclass(frozen=True)
class FailureStudy:
    """A design with nothing broken, and with each of several failures.

    Parameters
    ----------
    whole : with nothing broken, over the same seeds.
    cases : in the order of the draws, or worst first for single failures.
    cut_off : of a study of single failures: what cuts NICs off, whichever of its kind fails.
    """

    whole: CheckReport = field(repr=False)
    cases: tuple[FailureCase, ...] = field(repr=False)
    cut_off: tuple[CutOff, ...] = ()

    @property
    def whole_step_time_s(self) -> float:
        """Effective step time with nothing broken, mean over the seeds."""
        return float(self.whole.effective_step_time_s.mean())

    @property
    def most_whole_step_time_s(self) -> float:
        """The same of the slowest of these routings."""
        return float(self.whole.effective_step_time_s.max())

    @property
    def joined(self) -> tuple[FailureCase, ...]:
        """The cases in which all hosts are joined."""
        return tuple(case for case in self.cases if not case.disconnected)

    @property
    def by_part(self) -> dict[str, tuple[FailureCase, ...]]:
        """The cases of single failures by what fails, from the leaf up."""
        labels = sorted({case.part.partition(": ")[0] for case in self.cases})
        parts = [f"{label}: {part}" for label in labels for part in clos.SINGLE_PARTS]
        found = {part: tuple(x for x in self.cases if x.part == part) for part in parts}
        return {part: cases for part, cases in found.items() if cases}

    @property
    def step_time_s(self) -> Array:
        """Of the cases in which all hosts are joined, shape (n_joined,)."""
        return np.array([case.step_time_s for case in self.joined])

    @property
    def fim_percent(self) -> Array:
        """Of the cases in which all hosts are joined, shape (n_joined,)."""
        return np.array([case.fim_percent for case in self.joined])

    @property
    def n_disconnected(self) -> int:
        """Cases that cut hosts off."""
        return sum(bool(case.disconnected) for case in self.cases)


def drawn_failures(
    check: LinkCheck,
    policy: Policy,
    *,
    n_links: int | str = 0,
    n_spines: int = 0,
    seeds: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> FailureStudy:
    """Draw failures for every seed, in each dimension with several tiers of switches.

    Parameters
    ----------
    check : the design.
    n_links, n_spines : cables between switches and spines that fail in each such dimension; of
        cables also a share of that dimension's, such as ``5%``, rounded up.
    seeds : of the draws, and of the routing; by default 10 or fewer, by the number of flows.
    progress : called with finished and all seeds.

    Raises
    ------
    SpecError
        For a design without links between switches, or with fewer than are to fail.
    """
    listed = check.seeds(Policy(), seeds)
    dims = _layered(check.design)
    n_cables = {dim: len(clos.cable_failures(whole)) for dim, whole in dims.items()}
    lost = {
        dim: {"n_links": counted_share(n_links, n), "n_spines": n_spines}
        for dim, n in n_cables.items()
    }

    def fabrics(seed: int) -> dict[int, Clos]:
        return {dim: clos.fail(whole, seed=seed + dim, **lost[dim]) for dim, whole in dims.items()}

    cases = (("", f"seed {seed}", seed, fabrics(seed)) for seed in listed)
    return _study(check, policy, listed, cases, n_cases=len(listed), progress=progress)


def every_single_failure(
    check: LinkCheck, policy: Policy, *, seed: int = 0, progress: Progress | None = None
) -> FailureStudy:
    """The N-1 study: each cable between switches, each spine and core alone, worst first.

    Where packets are sprayed, cables of a leaf to equal spines are one case: it is worked out for
    one of them.

    Raises
    ------
    SpecError
        For a design without links between switches.
    """
    dims = _layered(check.design)
    design = check.design
    singles = [(dim, one) for dim, whole in dims.items() for one in clos.single_failures(whole)]
    is_sprayed = not policy.kind.keeps_flows_whole
    kinds = [
        _alike(_label(design, dim, one), dims[dim], one, is_sprayed=is_sprayed)
        for dim, one in singles
    ]
    first = dict(zip(reversed(kinds), reversed(singles), strict=True))
    cases = (
        (
            *_named(_label(design, dim, one), one),
            seed,
            {dim: clos.with_failed(dims[dim], one.links)},
        )
        for dim, one in first.values()
    )
    study = _study(check, policy, [seed], cases, n_cases=len(first), progress=progress)
    known = dict(zip(first, study.cases, strict=True))
    found = (
        _copied(known[kind], _named(_label(design, dim, one), one)[1])
        for kind, (dim, one) in zip(kinds, singles, strict=True)
    )
    study = replace(study, cases=tuple(found))
    leaves = ((design.dimensions[dim].label, whole) for dim, whole in dims.items())
    cut_off = tuple(one for label, whole in leaves for one in _cut_off(label, whole))
    worst_first = tuple(sorted(study.cases, key=lambda case: -case.step_time_s))
    return replace(study, cases=worst_first, cut_off=cut_off)


def _alike(label: str, whole: Clos, one: clos.SingleFailure, *, is_sprayed: bool) -> str:
    """What cases of the same figures have in common: where packets are sprayed over equal spines,
    a cable's leaf; else the name."""
    is_equal = is_sprayed and not whole.n_cores and not whole.failed.size
    if is_equal and one.part == clos.SINGLE_PARTS[0]:
        return f"{label}: {one.part} of {' '.join(one.name.split()[:2])}"
    return f"{label}: {one.name}"


def _copied(case: FailureCase, name: str) -> FailureCase:
    """A case by the name of another that is like it."""
    return case if case.name == name else replace(case, name=name, like=case.name)


def _label(design: RealizedDesign, dim: int, one: clos.SingleFailure) -> str:
    """The dimension whose parts in a check have what fails: of a stack, that of its tier (C13)."""
    places = range(clos.SINGLE_PARTS.index(one.part) % 2 + 1, -1, -1)
    built = ((place, design.dimensions[dim + place : dim + place + 1]) for place in places)
    return next(found[0].label for place, found in built if found and found[0].place == place)


def _named(label: str, one: clos.SingleFailure) -> tuple[str, str]:
    """Kind and name of what fails in a dimension."""
    return f"{label}: {one.part}", f"{label}: {one.name}"


def _cut_off(label: str, fabric: Clos) -> Iterator[CutOff]:
    """Leaves, and cables of NICs: a NIC has no second way to another leaf."""
    yield CutOff(f"{label}: leaf", fabric.total_leaves, fabric.hosts_per_leaf)
    yield CutOff(f"{label}: NIC - leaf cable", fabric.n_hosts, 1)


def _study(
    check: LinkCheck,
    policy: Policy,
    seeds: Sequence[int],
    cases: Iterable[tuple[str, str, int, Mapping[int, Clos]]],
    *,
    n_cases: int,
    progress: Progress | None,
) -> FailureStudy:
    """The check by itself, and with fabrics of some dimensions in place of its own."""
    check = check.with_schedule(policy, seeds)
    whole = check.report(policy, seeds=seeds)
    whole_s = dict(zip(seeds, whole.effective_step_time_s.tolist(), strict=True))
    found = []
    for part, name, seed, fabrics in cases:
        design = _broken(check, fabrics)
        try:
            figures = replace(check, design=design, is_brief=True).figures(policy, seed)
        except Disconnected as error:
            cut = FailureCase(name, part, whole_s[seed], math.inf, math.nan)
            found.append(replace(cut, disconnected=str(error)))
        else:
            got = tuple(check.sent.efficiency(figures[2], i) for i in range(len(design.dimensions)))
            found.append(FailureCase(name, part, whole_s[seed], *figures[:2], got))
        if progress is not None:
            progress(len(found), n_cases)
    return FailureStudy(whole, tuple(found))


def _broken(check: LinkCheck, fabrics: Mapping[int, Clos]) -> RealizedDesign:
    """The design with other fabrics in some dimensions."""
    ports = check.problem.topology.ports
    built = (
        replace(one, fabric=fabrics.get(port, one.fabric)) if one.fabric else one
        for port, one in zip(ports, check.design.dimensions, strict=True)
    )
    return replace(check.design, dimensions=tuple(built))


def _layered(design: RealizedDesign) -> dict[int, Clos]:
    """Dimensions with links between switches; of a stack, the innermost stands for its network."""
    dims = {
        dim: built.fabric
        for dim, built in enumerate(design.dimensions)
        if isinstance(built.fabric, Clos)
        and not built.place
        and len(clos.cable_failures(built.fabric))
    }
    if not dims:
        got = f"got failures for {design.topology}, which has no links between switches"
        fix = "a dimension of one switch has none: see fabric.realization"
        raise SpecError(Fault(got, "expected a leaf-spine dimension", fix))
    return dims


_ENDLESS = 1e6
"""Size of other jobs' flows over a job's own: they last as long as it needs."""

_NUMBERS_PER_JOB = 2**32


@dataclass(frozen=True)
class JobReport:
    """One of several jobs.

    Parameters
    ----------
    name : of its plan's workload.
    n_npus : that it runs on.
    alone, shared : with the fabric to itself at the same place, and beside the others.
    """

    name: str
    n_npus: int
    alone: CheckReport = field(repr=False)
    shared: CheckReport = field(repr=False)

    @property
    def slowdown(self) -> Array:
        """Step time beside the others over that alone, shape (n_seeds,)."""
        return self.shared.effective_step_time_s / self.alone.effective_step_time_s


@dataclass(frozen=True)
class SharedFabric:
    """Jobs and the fabric of the outermost dimension that they share.

    Parameters
    ----------
    design : the links of all jobs together.
    checks : of each job alone, placed.
    """

    design: RealizedDesign
    checks: tuple[LinkCheck, ...]

    def reports(
        self, policy: Policy, *, seeds: Sequence[int] | None = None
    ) -> tuple[JobReport, ...]:
        """Each job alone and beside the others.

        Steps are not in time with one another, so each job is given the worst: while it
        communicates over the shared dimension, every other job is in its heaviest round there.
        """
        if seeds is None:
            seeds = range(n_routings(sum(check.n_drawn_flows(policy) for check in self.checks)))
        # Jobs do not choose their algorithms anew when others come.
        checks = [check.with_schedule(policy, seeds) for check in self.checks]
        heaviest = [_heaviest_round(check, i, seeds[0]) for i, check in enumerate(checks)]
        found = []
        for i, check in enumerate(checks):
            others = [flows for j, flows in enumerate(heaviest) if j != i and flows is not None]
            beside = replace(check, background=clos.all_flows(*others) if others else None)
            alone, shared = (one.report(policy, seeds=seeds) for one in (check, beside))
            problem = check.problem
            found.append(JobReport(problem.workload_name, problem.topology.n_npus, alone, shared))
        return tuple(found)


def shared_fabric(
    problems: Sequence[Problem],
    bandwidths_Bps: Sequence[Array],
    *,
    traffic: TrafficSettings,
    selection: Selection = Selection.LIBRARY,
    seed: int = 0,
) -> SharedFabric:
    """One network in the outermost dimension, or stack, for several jobs.

    Parameters
    ----------
    problems : one per job, whose topologies differ in the outermost size at most.
    bandwidths_Bps : of each, shape (n_dims,), byte/s; the outermost must be the same.
    traffic : ``placement`` says which positions of the fabric the jobs get: one job after
        the other, in turn over the leaves, or at random.
    selection : what runs where the plans name no algorithm.
    seed : of a random placement.

    Raises
    ------
    SpecError
        For jobs that cannot share a fabric, in-network reduction on what they share, or a
        fabric that cannot be built; for plans that say different things of it.
    """
    refuse(_unlike(problems, bandwidths_Bps))
    sizes = [problem.topology.sizes[-1] for problem in problems]
    first = problems[0].topology
    outer = replace(first.dimensions[-1], size=sum(sizes))
    topology = Topology((*first.dimensions[:-1], outer))
    design = realize(topology, bandwidths_Bps[0], bought(problems[0], bandwidths_Bps[0]).links)
    port, built = topology.ports[-1], design.dimensions[-1]
    order = placed_npus(topology, topology.n_dims - 1, built, traffic.placement, seed)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    n_inner = math.prod(topology.sizes[:-1])
    checks = []
    for problem, bandwidth, start in zip(problems, bandwidths_Bps, starts[:-1], strict=True):
        # The shared network is that of all jobs; a job's NPUs by themselves may not build one.
        inner = np.where(np.arange(topology.n_dims) < port, bandwidth, 0.0)
        chosen = fastest_alternative(problem, bandwidth)
        own = realize(problem.topology, inner, chosen.links)
        placed = replace(own, dimensions=(*own.dimensions[:port], *design.dimensions[port:]))
        npu_at = order[start * n_inner + np.arange(problem.topology.n_npus)]
        check = LinkCheck(chosen, bandwidth, placed, traffic, npu_at=npu_at, selection=selection)
        checks.append(check)
    for check in checks:  # Trees of in-network reduction are not flows that others could meet.
        if any(key[0] >= port and key[2] is None for key in check.keys):
            got = f"got in-network reduction in {topology.labels[port]}"
            fix = "leave it out of in_network_reduction, or check the jobs one by one"
            expected = "expected collectives made of flows in the dimension that jobs share"
            raise SpecError(Fault(got, expected, fix))
    return SharedFabric(design, tuple(checks))


def _unlike(problems: Sequence[Problem], bandwidths_Bps: Sequence[Array]) -> Iterator[Fault]:
    """What keeps jobs from sharing a network."""
    first = problems[0].topology
    outer = first.dimensions[-1]
    if not outer.block.is_switched:
        got = f"got {outer} as the outermost dimension"
        yield Fault(got, "expected a switch, which jobs can share")
    for problem, bandwidth in zip(problems[1:], bandwidths_Bps[1:], strict=True):
        topology = problem.topology
        same = topology.dimensions[:-1] == first.dimensions[:-1]
        if not same or topology.dimensions[-1].block != outer.block:
            got = f"got {topology} beside {first}"
            yield Fault(got, "expected topologies that differ in the outermost size only")
            continue
        unlike = [
            dim
            for dim in range(topology.ports[-1], topology.n_dims)
            if not math.isclose(bandwidth[dim], bandwidths_Bps[0][dim], rel_tol=1e-9)
        ]
        for dim in unlike:
            got = f"got {bandwidths_Bps[0][dim] / 1e9:.6g} and {bandwidth[dim] / 1e9:.6g} GB/s"
            fix = "give --bandwidth, or bound the dimension in the plans"
            yield Fault(got, f"expected one bandwidth in the shared {topology.labels[dim]}", fix)
        if not unlike:
            yield from _differences(problems[0], problem)


_KEYS = {
    "n_failed_links": "failed_links",
    "n_failed_spines": "failed_links",
    "failure_seed": "failed_links",
    "port_speed_Bps": "port_speed",
    "n_parallel": "parallel_links",
    "switch_port_Bps": "port",
    "uplink_Bps": "port_up",
    "n_reserved": "reserve",
}
"""Keys of a plan for settings of other names; others lose ``n_``."""


def _differences(first: Problem, other: Problem) -> Iterator[Fault]:
    """What two plans say differently of the network that their jobs share."""
    mine, others = (one.links.switches[-1] for one in (first, other))
    label = first.topology.labels[-1]
    if mine is None or others is None:
        return
    for name in (one.name for one in fields(SwitchSettings)):
        a, b = getattr(mine, name), getattr(others, name)
        if a != b and name == "one_switch":
            got = f"got a NIC price for {label} in one plan, and none in another"
            fix = "write the same cost_model in all plans"
            yield Fault(got, "expected one network for all jobs", fix)
        elif a != b:
            key = _KEYS.get(name, name.removeprefix("n_"))
            got = f"got {_shown(a)}, and {_shown(b)} in another plan"
            expected = f"expected one network for all jobs in {label}"
            path, subject = f"fabric.realization ({label}).{key}", (first.topology.n_dims - 1, key)
            yield Fault(got, expected, "write the same in all plans", path, subject=subject)


def _shown(value: object) -> str:
    return "auto" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _heaviest_round(check: LinkCheck, job: int, seed: int) -> Flows | None:
    """The round in which a job sends most over the shared dimension, as endless flows."""
    port = check.problem.topology.ports[-1]
    rounds = (
        (share * sum(check.phase_bytes(key, one) for one in check.users(key)), flows)
        for key in check.keys
        if key[0] >= port
        for _, share, flows in check.phase(key).flows(seed)
    )
    found = max(rounds, key=lambda one: one[0], default=None)
    if found is None:
        return None
    flows = found[1]
    # Groups of different jobs are different collectives.
    collective = flows.collective + (job + 1) * _NUMBERS_PER_JOB
    return replace(flows, size_bytes=flows.size_bytes * _ENDLESS, collective=collective)
