"""Plans checked on their links, one by one or as jobs that share a fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from libra_planner.check import degraded
from libra_planner.check.hotspots import Hotspot, TracedFlow, hotspot, traced_flow
from libra_planner.check.links import link_check
from libra_planner.check.report import asked_seeds
from libra_planner.check.stages import Selection
from libra_planner.errors import Fault, Place, SolverFailed, SpecError, located, unknown_name
from libra_planner.evaluation import evaluated
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.inputs.plans import open_plan
from libra_planner.plan.realization import KEY
from libra_planner.problem import Problem
from libra_planner.reading.document import Document, Key, Source, read_document
from libra_planner.routing.policy import Policy
from libra_planner.studies.designs import ChosenDesign, chosen_design
from libra_planner.views.check import CheckedPlan

if TYPE_CHECKING:
    from libra_planner.search.best import Progress as SearchProgress
    from libra_planner.search.best import SearchResult

Progress = Callable[[int, int], None]

_OF_TRAFFIC = {
    "placement": "placement",
    "queue_pairs": "n_queue_pairs",
    "npus_per_address": "npus_per_address",
    "source_ports": "source_ports",
}
"""Settings of traffic by the options, and the keys of a plan, that have them."""


@dataclass(frozen=True)
class LinkQuestion:
    """How links are asked about; the options of the commands have the same names.

    Parameters
    ----------
    policy : how flows find their paths.
    settings : of every plan, ``key=value``.
    bandwidth : GB/s of every dimension, with commas; ``None`` for the plan's optimum.
    seeds, seed : number of routings, and seed of the first.
    placement, queue_pairs, npus_per_address, source_ports : how NPUs use their NICs; ``None``: as
        the plan says.
    fail_links, fail_spines : that fail, drawn for every seed; of links also a share: ``5%``.
    algorithms : what runs where a plan names nothing, by the name of a
        :class:`~libra_planner.check.stages.Selection`.
    single_failures : whether every cable, spine and core also fails alone.
    trace : a flow to follow.
    parts : parts catalogue whose parts quotes may name.
    """

    policy: Policy
    settings: tuple[str, ...] = ()
    bandwidth: str | None = None
    seeds: int | None = None
    seed: int | None = None
    placement: str | None = None
    queue_pairs: int | None = None
    npus_per_address: int | None = None
    source_ports: str | None = None
    fail_links: int | str = 0
    fail_spines: int = 0
    algorithms: str = "library"
    single_failures: bool = False
    trace: str | None = None
    parts: str = "parts"

    @property
    def asked_seeds(self) -> range | None:
        """The seeds that are asked for; ``None`` without any."""
        return asked_seeds(self.seeds, self.seed)

    @property
    def statistics(self) -> bool:
        """Whether a number of routings is asked for, whose statistics stand in place of a mean."""
        return (self.seeds or 1) > 1

    def traffic(self, problem: Problem) -> TrafficSettings:
        """How NPUs use their NICs: as is asked for, else as the plan says, else the defaults."""
        asked = {name: getattr(self, option) for option, name in _OF_TRAFFIC.items()}
        given = {name: value for name, value in asked.items() if value is not None}
        return replace(problem.links.traffic, **given)

    @property
    def selection(self) -> Selection:
        """What runs where a plan names no algorithm.

        Raises
        ------
        UnknownName
            For a name that is none.
        """
        if self.algorithms not in list(Selection):
            raise unknown_name("algorithms", self.algorithms, list(Selection))
        return Selection(self.algorithms)

    def design(self, plan: str, progress: SearchProgress | None = None) -> ChosenDesign:
        """The design of a plan: as given, or the plan's optimum."""
        opened, place = (
            open_plan(plan, self.settings, parts=self.parts),
            Place(f"{plan}: --bandwidth"),
        )
        return chosen_design(opened, self.bandwidth, place, progress=progress)


@dataclass(frozen=True)
class LinkAnswer:
    """What the links of a plan's design answer.

    Parameters
    ----------
    checked : the design and its routings.
    found : by the search for the plan's strategy, where that is left open.
    hot : the round that loses most; ``None`` where nothing is lost.
    failures : studies of failures by their key.
    traced : the flow that was to be followed.
    """

    checked: CheckedPlan
    found: SearchResult | None
    hot: Hotspot | None = field(repr=False)
    failures: dict[str, degraded.FailureStudy] = field(repr=False)
    traced: TracedFlow | None = field(repr=False)


@contextmanager
def placed(plan: Source, problem: Problem, *, vector: str | None = None) -> Iterator[None]:
    """Give faults of a design on its links a place: the plan, and the line of what is not built.

    Faults of the design itself are those of ``vector``, where it has another place than the plan.
    """
    try:
        yield
    except SpecError as error:
        document = read_document(plan)
        faults = (_placed(fault, document, problem) for fault in error.faults)
        raise SpecError(*faults).located(vector or document.file) from None


def _placed(fault: Fault, document: Document, problem: Problem) -> Fault:
    places = document.key_places
    if fault.place is not None:
        return fault
    if not fault.subject:  # Of a key of the plan, or of the design.
        return replace(fault, place=places.get(tuple(fault.path.split("."))))
    dim, key = fault.subject
    names = [problem.topology.labels[dim], problem.topology.tiers[dim]]
    common: list[Key] = [(*KEY, key), KEY] if problem.links.networks[dim] else []
    keys: list[Key] = [(*KEY, name, key) for name in names] + common[:1]
    keys += [(*KEY, name) for name in names] + common[1:] + [("fabric", "topology")]
    found = (places[key] for key in keys if key in places)
    return replace(fault, place=next(found, Place(document.file)))


def checked_design(
    plan: Source,
    chosen: ChosenDesign,
    question: LinkQuestion,
    progress: Callable[[str], Progress | None],
    *,
    optimized: bool,
) -> LinkAnswer:
    """Route a design over its links.

    Parameters
    ----------
    plan : the file, or the map.
    chosen : its design.
    question : what is asked.
    progress : makes what is told how many of something, such as seeds, are done.
    optimized : whether the design is the plan's own optimum.

    Raises
    ------
    PlannerError
        For a plan that is wrong or has no optimum, or links that cannot be built or routed.
    """
    problem, bandwidth_Bps = chosen.problem, chosen.bandwidth_Bps
    policy, seeds, source = question.policy, question.asked_seeds, problem.text.source
    with placed(plan, problem):
        with located(f"{source}: --bandwidth"):
            violated = evaluated(problem, bandwidth_Bps).violated
        traffic, selection = question.traffic(problem), question.selection
        links = link_check(problem, bandwidth_Bps, traffic=traffic, selection=selection)
        report = links.report(policy, seeds=seeds, progress=progress("seeds"))
        hot = hotspot(links, report)
    failures = {}
    with located(f"{source}: --fail-links, --fail-spines, --n-1"):
        if question.fail_links or question.fail_spines:
            failures["failures"] = degraded.drawn_failures(
                links,
                policy,
                n_links=question.fail_links,
                n_spines=question.fail_spines,
                seeds=seeds,
                progress=progress("draws of failures"),
            )
        if question.single_failures:
            told = progress("single failures")
            failures["single_failures"] = degraded.every_single_failure(
                links, policy, seed=question.seed or 0, progress=told
            )
    checked = CheckedPlan(links, report, optimized, violated, question.statistics)
    with located(f"{source}: --trace"):
        traced = _traced(question.trace, checked)
        return LinkAnswer(checked, chosen.searched.found, hot, failures, traced)


def _traced(asked: str | None, checked: CheckedPlan) -> TracedFlow | None:
    """The flow that is to be followed: in the round that loses most, or where nothing is lost too.

    A name that no round has is refused with one that there is.
    """
    if asked is None:
        return None
    found = traced_flow(checked.links, checked.report, asked)
    if found is None:
        hot = hotspot(checked.links, checked.report, always=True)
        if hot is None or hot.routed is None:
            got = f"got {asked!r}, and no collective that switches route"
            raise SpecError(Fault(got, "expected one, whose flows can be followed"))
        name, label, first = hot.worst.name, hot.phase.label, hot.routed.flows.ids[0]
        expected = f"expected a flow of {name} on {label}, such as {first}, or of another round"
        raise SpecError(Fault(f"got {asked!r}", expected))
    return found


def checked_jobs(
    plans: Sequence[str], question: LinkQuestion, search_progress: SearchProgress | None = None
) -> tuple[degraded.SharedFabric, tuple[degraded.JobReport, ...]]:
    """Several plans as jobs that share a fabric.

    Raises
    ------
    PlannerError
        For plans that are wrong or have no optimum, or do not agree on the fabric.
    """
    designs = [question.design(plan, search_progress) for plan in plans]
    for plan, one in zip(plans, designs, strict=True):
        if one.searched.found is not None and not one.searched.found.is_certified:
            raise SolverFailed(f"{plan}: the strategy is not proven")
    problems, bandwidths_Bps = [x.problem for x in designs], [x.bandwidth_Bps for x in designs]
    with placed(plans[0], problems[0]):
        shared = degraded.shared_fabric(
            problems,
            bandwidths_Bps,
            traffic=_one_traffic(plans, problems, question),
            selection=question.selection,
            seed=question.seed or 0,
        )
        return shared, shared.reports(question.policy, seeds=question.asked_seeds)


def _one_traffic(
    plans: Sequence[str], problems: Sequence[Problem], question: LinkQuestion
) -> TrafficSettings:
    """How the NPUs of all jobs use their NICs, on which the plans have to agree."""
    first = question.traffic(problems[0])
    for plan, problem in zip(plans[1:], problems[1:], strict=True):
        other = question.traffic(problem)
        for key, name in _OF_TRAFFIC.items():
            mine, others = getattr(first, name), getattr(other, name)
            if mine != others:
                got = f"got {mine}, and {others} in {plan}"
                fix = f"write the same in all plans, or give --{key.replace('_', '-')}"
                path = f"fabric.realization.{key}"
                raise SpecError(Fault(got, "expected one for all jobs", fix, path))
    return first
