"""Lists of flows routed over a fabric, with one seed or with many, and with failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from libra_planner.check.report import (
    FlowList,
    FlowReport,
    RoutedList,
    asked_seeds,
    flow_report,
    n_routings,
    reports_by_seed,
    seed_reports,
)
from libra_planner.errors import Disconnected, Place, SpecError, located
from libra_planner.fabric.clos import Clos, fail
from libra_planner.inputs.fabrics import load_fabric
from libra_planner.inputs.flow_tables import read_flows
from libra_planner.routing.policy import Policy

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Watchers:
    """Who is told how far the routing of a list is.

    Parameters
    ----------
    seeds : called with the seeds done and all.
    flows : called with the flows that have ended and all, where there is one seed.
    cut_off : called with what is wrong with a seed whose failures cut hosts off.
    """

    seeds: Progress | None = None
    flows: Progress | None = None
    cut_off: Callable[[Disconnected], None] | None = None


def flows(
    fabric: str | Path,
    flow_list: str | Path,
    policy: Policy | None = None,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    fail_links: int = 0,
    fail_spines: int = 0,
    with_rates: bool = True,
    watchers: Watchers | None = None,
) -> RoutedList:
    """Route a list of flows over a fabric: imbalance, max-min fair rates, completion times.

    Parameters
    ----------
    fabric : file, or name of a published setting.
    flow_list : CSV file ``flow_id,src,dst,bytes[,via][,src_port][,collective]``.
    policy : how flows find their paths; by default ECMP.
    seeds, seed : number of routings, and seed of the first. Without both as many routings as the
        number of flows says, with ``seed`` alone one.
    fail_links, fail_spines : cables between switches, and spines, that fail, drawn per seed.
    with_rates : whether to follow the flows to their ends.
    watchers : who is told how far it is.

    Raises
    ------
    SpecError
        For a file that is wrong, or flows that no path joins.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> files = folder("examples") / "flows"
    >>> routed = flows(files / "flowtracer_fabric.yaml", files / "flowtracer_flows.csv", seed=0)
    >>> routed.report.n_flows, routed.report.policy.name
    (128, 'ecmp')
    """
    chosen = policy or Policy("ecmp")
    built = load_fabric(str(fabric))
    listed = read_flows(flow_list, built, pinned=not chosen.kind.finds_paths)
    runs = ListRuns(built, listed, chosen, (fail_links, fail_spines), with_rates)
    runs = replace(runs, files=(str(fabric), str(flow_list)), watchers=watchers or Watchers())
    return runs.routed(seeds, seed)


@dataclass(frozen=True)
class ListRuns:
    """Routings of a flow list; failures are drawn anew for every seed.

    Parameters
    ----------
    whole, listed, policy : what is routed and how.
    failures : cables and spines that fail.
    with_rates : whether to follow the flows to their ends.
    files : names of the fabric and the list, for faults.
    watchers : who is told how far it is.
    """

    whole: Clos
    listed: FlowList
    policy: Policy
    failures: tuple[int, int] = (0, 0)
    with_rates: bool = True
    files: tuple[str, str] = ("", "")
    watchers: Watchers = Watchers()

    def routed(self, n_seeds: int | None, seed: int | None) -> RoutedList:
        """The list routed with one seed or with many."""
        usual = range(n_routings(self.listed.flows.n_flows if self.is_drawn else 0))
        seeds = asked_seeds(n_seeds, seed) or usual
        statistics = n_seeds is not None
        if len(seeds) == 1:
            report = self._report(seeds[0], alone=True)
            return RoutedList(
                self._fabric(report.seed), self.listed, report, is_drawn=self.is_drawn
            )
        if any(self.failures):
            return self._with_failures(seeds, statistics)
        try:
            found = seed_reports(
                self.whole,
                self.listed.flows,
                self.policy,
                seeds=seeds,
                with_rates=self.with_rates,
                progress=self.watchers.seeds,
            )
        except SpecError as error:
            raise self._named(error) from None
        first = found.first
        return RoutedList(self.whole, self.listed, first, found, statistics, is_drawn=self.is_drawn)

    @property
    def is_drawn(self) -> bool:
        """Whether another seed routes in another way, or lets other links fail."""
        return any(self.failures) or (self.policy.kind.is_drawn and self.whole.n_spines > 0)

    def _fabric(self, seed: int) -> Clos:
        """The fabric with the failures of a seed."""
        if not any(self.failures):
            return self.whole
        n_links, n_spines = self.failures
        with located(f"{self.files[0]}: --fail-links, --fail-spines"):
            return fail(self.whole, n_links=n_links, n_spines=n_spines, seed=seed)

    def _report(self, seed: int, *, alone: bool) -> FlowReport:
        """One routing."""
        try:
            return flow_report(
                self._fabric(seed),
                self.listed.flows,
                self.policy,
                seed=seed,
                with_rates=self.with_rates,
                progress=self.watchers.flows if alone else None,
            )
        except SpecError as error:
            raise self._named(error, "" if alone else f": seed {seed}") from None

    def _named(self, error: SpecError, drawn: str = "") -> SpecError:
        """The error with the file, and flows by their line and flow_id."""
        file, faults = self.files[1], []
        for fault in error.faults:
            place, path = Place(f"{file}{drawn}"), fault.path
            if fault.subject:
                (i,) = fault.subject
                path = f"flow {self.listed.ids[i]!r}{drawn}"
                place = Place(file, self.listed.lines[i])
            faults.append(replace(fault, path=path, place=fault.place or place))
        return type(error)(*faults)

    def _with_failures(self, seeds: range, statistics: bool) -> RoutedList:
        """All draws of failures but those that cut hosts off, which are named."""
        reports: list[FlowReport] = []
        cut_off: list[int] = []
        for seed in seeds:
            try:
                report = self._report(seed, alone=False)
                reports.append(_without_flows(report) if reports else report)
            except Disconnected as error:
                cut_off.append(seed)
                if len(cut_off) == len(seeds):
                    raise
                if self.watchers.cut_off is not None:
                    self.watchers.cut_off(error)
            if self.watchers.seeds is not None:
                self.watchers.seeds(seed - seeds[0] + 1, len(seeds))
        first = reports[0]
        return RoutedList(
            fabric=self._fabric(first.seed),
            flows=self.listed,
            report=first,
            seeds=reports_by_seed(reports),
            statistics=statistics,
            draws=tuple(reports),
            disconnected_seeds=tuple(cut_off),
        )


def _without_flows(report: FlowReport) -> FlowReport:
    """A report without what it says of single flows, which a thousand of could not be kept."""
    nothing = np.zeros(0)
    return replace(report, rate_Bps=nothing, finish_s=nothing, counts=nothing, links=None)
