"""Lists of flows in Python, routed over a fabric: one seed or many, and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.allowed import Flag, Kind, counted_share
from libra_planner.api.given import OF_LINKS, path_given, policy_of, takes
from libra_planner.api.shown import Shown
from libra_planner.check import report as reporting
from libra_planner.errors import Disconnected, Place, SpecError, located
from libra_planner.fabric.clos import Clos, cable_failures, fail
from libra_planner.inputs.fabrics import load_fabric
from libra_planner.inputs.flow_tables import read_flows
from libra_planner.reading.bundled import FLOW_LISTS, given_file
from libra_planner.routing.policy import Policy
from libra_planner.views import flows as view
from libra_planner.views.cells import Block

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


OF_FLOWS: dict[str, Kind] = {
    **{name: OF_LINKS[name] for name in ("seeds", "seed", "fail_links", "fail_spines")},
    "with_rates": Flag(),
}
"""What arguments of flow lists take."""


@dataclass(frozen=True, repr=False)
class RoutedFlows(Shown, reporting.RoutedList):
    """A flow list on a fabric, and what came of it.

    Parameters
    ----------
    n_busiest : links that are listed.
    groups : whether all groups are listed.
    traced : position of a flow to follow.
    """

    n_busiest: int = 5
    groups: bool = False
    traced: int | None = None

    table = "layers"

    @property
    def _wanted(self) -> dict[str, Any]:
        return {"n_busiest": self.n_busiest, "groups": self.groups, "traced": self.traced}

    def headline(self) -> str:
        """It in one line."""
        report = self.report
        n = f"{self.n_routings} routing{'s' * (self.n_routings > 1)}"
        return f"{report.n_flows:,} flows by {report.policy.name}, {n}"

    def blocks(self) -> Iterator[Block]:
        """What ``flows`` prints."""
        yield from view.flows_blocks(self, **self._wanted)

    def to_dict(self) -> dict[str, Any]:
        """What ``flows --json`` prints."""
        return view.flows_payload(self, **self._wanted)


@takes(OF_FLOWS)
def flows(
    fabric: str | Path,
    flow_list: str | Path,
    policy: str | Policy | None = None,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    fail_links: int | str = 0,
    fail_spines: int = 0,
    with_rates: bool = True,
    watchers: Watchers | None = None,
) -> RoutedFlows:
    """Route a list of flows over a fabric: imbalance, max-min fair rates, completion times.

    Parameters
    ----------
    fabric : file, or name of a published setting or of a bundled file.
    flow_list : CSV file ``flow_id,src,dst,bytes[,via][,src_port][,collective]``, or the name of a
        bundled one.
    policy : how flows find their paths, a name or a ``Policy``; by default ECMP.
    seeds, seed : number of routings, and seed of the first. Without both as many routings as the
        number of flows says, with ``seed`` alone one.
    fail_links, fail_spines : cables between switches, and spines, that fail, drawn per seed; of
        cables a number, or a share of them such as ``"5%"``.
    with_rates : whether to follow the flows to their ends.
    watchers : who is told how far it is.

    Raises
    ------
    SpecError
        For a file that is wrong, or flows that no path joins.

    Examples
    --------
    >>> flows("flowtracer_fabric", "flowtracer_flows", seed=0)
    <RoutedFlows: 128 flows by ecmp, 1 routing>
    """
    path_given(fabric, "flows", "a fabric")
    path_given(flow_list, "flows", "a list of flows")
    chosen = policy_of("ecmp" if policy is None else policy)
    built = load_fabric(str(fabric))
    flow_file = given_file(flow_list, FLOW_LISTS)
    listed = read_flows(flow_file, built, pinned=not chosen.kind.finds_paths)
    failures, files = (fail_links, fail_spines), (str(fabric), flow_file)
    told = watchers or Watchers()
    runs = ListRuns(built, listed, chosen, failures, with_rates, files, told)
    return RoutedFlows.of(runs.routed(seeds, seed))


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
    listed: reporting.FlowList
    policy: Policy
    failures: tuple[int | str, int] = (0, 0)
    with_rates: bool = True
    files: tuple[str, str] = ("", "")
    watchers: Watchers = Watchers()

    def routed(self, n_seeds: int | None, seed: int | None) -> reporting.RoutedList:
        """The list routed with one seed or with many."""
        usual = range(reporting.n_routings(self.listed.flows.n_flows if self.is_drawn else 0))
        seeds = reporting.asked_seeds(n_seeds, seed) or usual
        statistics = n_seeds is not None
        if len(seeds) == 1:
            one = self._report(seeds[0], alone=True)
            fabric = self._fabric(one.seed)
            return reporting.RoutedList(fabric, self.listed, one, is_drawn=self.is_drawn)
        if any(self.failures):
            return self._with_failures(seeds, statistics)
        with self._named():
            found = reporting.seed_reports(
                self.whole,
                self.listed.flows,
                self.policy,
                seeds=seeds,
                with_rates=self.with_rates,
                progress=self.watchers.seeds,
            )
        kept = (self.whole, self.listed, found.first, found, statistics)
        return reporting.RoutedList(*kept, is_drawn=self.is_drawn)

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
            n_failed = counted_share(n_links, len(cable_failures(self.whole)))
            return fail(self.whole, n_links=n_failed, n_spines=n_spines, seed=seed)

    def _report(self, seed: int, *, alone: bool) -> reporting.FlowReport:
        """One routing."""
        with self._named("" if alone else f": seed {seed}"):
            return reporting.flow_report(
                self._fabric(seed),
                self.listed.flows,
                self.policy,
                seed=seed,
                with_rates=self.with_rates,
                progress=self.watchers.flows if alone else None,
            )

    @contextmanager
    def _named(self, drawn: str = "") -> Iterator[None]:
        """Give faults the file, and flows their line and flow_id."""
        try:
            yield
        except SpecError as error:
            file, faults = self.files[1], []
            for fault in error.faults:
                place, path = Place(f"{file}{drawn}"), fault.path
                for i in fault.subject:
                    path = f"flow {self.listed.ids[i]!r}{drawn}"
                    place = Place(file, self.listed.lines[i])
                faults.append(replace(fault, path=path, place=fault.place or place))
            raise type(error)(*faults) from None

    def _with_failures(self, seeds: range, statistics: bool) -> reporting.RoutedList:
        """All draws of failures but those that cut hosts off, which are named."""
        reports: list[reporting.FlowReport] = []
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
        return reporting.RoutedList(
            fabric=self._fabric(first.seed),
            flows=self.listed,
            report=first,
            seeds=reporting.reports_by_seed(reports),
            statistics=statistics,
            draws=tuple(reports),
            disconnected_seeds=tuple(cut_off),
        )


def _without_flows(report: reporting.FlowReport) -> reporting.FlowReport:
    """A report without what it says of single flows, which a thousand of could not be kept."""
    nothing = np.zeros(0)
    return replace(report, rate_Bps=nothing, finish_s=nothing, counts=nothing, links=None)
