"""Flow lists under all policies, traces of a live fabric, and jobs that share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libra_planner.api.flow_lists import OF_FLOWS, flows
from libra_planner.api.given import (
    OF_LINKS,
    Settings,
    path_given,
    policy_of,
    pythonic,
    refuse_unknown,
    setting_texts,
    takes,
)
from libra_planner.api.shown import Shown
from libra_planner.check.degraded import JobReport, SharedFabric
from libra_planner.check.measured import MeasuredReport, measured_report
from libra_planner.check.report import RoutedList
from libra_planner.errors import Fault, SpecError, located
from libra_planner.inputs.fabrics import load_fabric
from libra_planner.inputs.flow_tables import read_hops
from libra_planner.reading.bundled import given_file
from libra_planner.routing.policy import POLICIES, Policy
from libra_planner.studies.checks import LinkQuestion, checked_jobs
from libra_planner.views import flows as flow_view
from libra_planner.views.cells import Block
from libra_planner.views.times import jobs

_OF_FLOWS: dict[str, Any] = {"n_busiest": 5, "groups": False}
_OF_JOBS = (
    *("seeds", "seed", "placement", "queue_pairs", "npus_per_address", "source_ports"),
    "algorithms",
)


@dataclass(frozen=True, repr=False)
class ComparedFlows(Shown):
    """A list of flows under every policy that finds paths."""

    routed: tuple[RoutedList, ...]

    table = "policies"

    def headline(self) -> str:
        """It in one line."""
        found = self.to_dict()
        n = f"{found['n_flows']:,} flows, {len(self.routed)} policies"
        return f"{n}; best by two-level max-min: {', '.join(found['fairest'])}"

    def blocks(self) -> Iterator[Block]:
        """What ``flows --compare`` prints."""
        yield from flow_view.compared_blocks(self.routed)

    def to_dict(self) -> dict[str, Any]:
        """What ``flows --compare --json`` prints."""
        return flow_view.compared_payload(self.routed)


@takes(OF_FLOWS, flows)
def compared_flows(fabric: str | Path, flow_list: str | Path, **asked: Any) -> ComparedFlows:
    """Route a list of flows by every policy that finds paths, with their usual options.

    Parameters
    ----------
    fabric, flow_list : as :func:`libra_planner.flows` has them.
    asked : ``seeds``, ``seed``, ``fail_links``, ``fail_spines``.

    Raises
    ------
    SpecError
        For a file that is wrong, or flows that no path joins.
    """
    refuse_unknown("compared_flows", asked, tuple(OF_FLOWS))
    names = [kind.name for kind in POLICIES.values() if kind.finds_paths]
    return ComparedFlows(tuple(flows(fabric, flow_list, name, **asked) for name in names))


@dataclass(frozen=True, repr=False)
class MeasuredFlows(Shown):
    """What a tracer saw, as a report of routed flows has it."""

    report: MeasuredReport

    table = "layers"

    @property
    def fim_percent(self) -> float:
        """Over all links between switches (C10); nan where none is known."""
        return self.report.fim_percent

    def headline(self) -> str:
        """It in one line."""
        n = len(self.report.trace.flow_ids)
        return f"{n:,} flows as measured, FIM {self.fim_percent:.2f} % between switches"

    def blocks(self) -> Iterator[Block]:
        """What ``flows --hops`` prints."""
        yield from flow_view.measured_blocks(self.report, **_OF_FLOWS)

    def to_dict(self) -> dict[str, Any]:
        """What ``flows --hops --json`` prints."""
        return flow_view.measured_payload(self.report, **_OF_FLOWS)


@pythonic
def measured_flows(
    hops: str | Path, *, fabric: str | Path | None = None, interfaces: str | Path | None = None
) -> MeasuredFlows:
    """Flows along the hops that a tracer measured.

    Parameters
    ----------
    hops : CSV table ``flow,switch,egress[,layer]``, each flow's rows in order.
    fabric : file or name; then its idle links count.
    interfaces : CSV table ``switch,egress[,layer]`` of all links between switches.

    Raises
    ------
    SpecError
        For tables that are wrong, or do not fit the fabric.
    """
    path_given(hops, "measured_flows", "a table of hops")
    trace = read_hops(hops, interfaces)
    built = None if fabric is None else load_fabric(str(fabric))
    with located(str(hops)):
        return MeasuredFlows(measured_report(trace, built))


@dataclass(frozen=True, repr=False)
class Jobs(Shown):
    """Several plans as jobs that share the outermost network."""

    plans: tuple[str, ...]
    question: LinkQuestion
    shared: SharedFabric
    reports: tuple[JobReport, ...]

    table = "jobs"

    def headline(self) -> str:
        """It in one line."""
        worst = max(float(one.slowdown.mean()) for one in self.reports)
        n = f"{len(self.plans)} jobs by {self.question.policy.name}"
        return f"{n}; slowed down {worst:.3f}x at most"

    def blocks(self) -> Iterator[Block]:
        """What ``check`` prints of several plans."""
        yield from jobs.jobs_blocks(self.shared, self.reports, self.plans)

    def to_dict(self) -> dict[str, Any]:
        """What ``check --json`` prints of several plans."""
        found = self.shared, self.reports, self.plans
        return jobs.jobs_payload(*found, statistics=self.question.statistics)


@takes(OF_LINKS, LinkQuestion)
def check_jobs(
    plans: Sequence[str | Path],
    policy: str | Policy = "ecmp",
    *,
    settings: Settings = (),
    **asked: Any,
) -> Jobs:
    """Check several plans as jobs that share the outermost network.

    Parameters
    ----------
    plans : paths, or names of bundled plans; their optima.
    policy : how flows find their paths.
    settings : overrides of every plan, as ``load_plan`` takes them.
    asked : ``seeds``, ``seed``, ``placement``, ``queue_pairs``, ``npus_per_address``,
        ``source_ports``, ``algorithms``, as the command has them.

    Raises
    ------
    PlannerError
        For plans that are wrong or have no optimum, or do not agree on the fabric.
    """
    refuse_unknown("check_jobs", asked, _OF_JOBS)
    listed = isinstance(plans, Sequence) and not isinstance(plans, str)
    if listed and not plans:
        raise SpecError(Fault("got no plans", "expected a list of them", "", "check_jobs"))
    for plan in plans if listed else [None]:
        path_given(plan, "check_jobs", "a list of plans")
    overrides = setting_texts(settings)
    question = LinkQuestion(policy_of(policy), overrides, **asked)
    names = tuple(given_file(plan) for plan in plans)
    return Jobs(names, question, *checked_jobs(names, question))
