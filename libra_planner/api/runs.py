"""Sweeps, reports, collectives and flow lists in Python: the commands of these names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.api.given import own_overrides_of, path_given, pythonic, source_of
from libra_planner.api.shown import Shown, new_axes
from libra_planner.check.report import RoutedList
from libra_planner.errors import Fault, SpecError
from libra_planner.frozen import Frozen
from libra_planner.problem import Problem
from libra_planner.routing.policy import Policy
from libra_planner.studies import collectives, flow_lists, reports, sweeps
from libra_planner.studies.collectives import SolvedCollective
from libra_planner.sweeps import results as sweeping
from libra_planner.sweeps.runner import Watch
from libra_planner.units import format_bytes, format_time
from libra_planner.views import flows as flow_view
from libra_planner.views.cells import Block, escape
from libra_planner.views.report.compose import decision_lines, report_payload
from libra_planner.views.sweeps import figures
from libra_planner.views.sweeps.answers import answer_table
from libra_planner.views.sweeps.page import write_page
from libra_planner.views.times import collective as collective_view

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 5
_OF_FLOWS: dict[str, Any] = {"n_busiest": 5, "groups": False, "traced": None}


@dataclass(frozen=True, repr=False)
class SweepResults(Shown, Frozen, sweeping.Results):
    """The designs of a sweep: :class:`~libra_planner.sweeps.results.Results` that show themselves.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     found = sweep("10_budgets", f"{there}/run")
    ...     print(repr(found))
    ...     found.to_frame("pareto").shape[0] > 10, found.to_frame().shape[0]
    <SweepResults: 74 designs over objective, budget>
    (True, 74)
    """

    def headline(self) -> str:
        """It in one line."""
        return f"{self.manifest['n_designs']:,} designs over {', '.join(self.axes)}"

    def blocks(self) -> Iterator[Block]:
        """The best designs of every objective."""
        found = self.top(_MOST_ROWS)
        yield f"{escape(self.headline())}; the best of each objective"
        yield answer_table(found, self.axes, len(found.rows))

    def to_dict(self) -> dict[str, Any]:
        """Its answers as rows: ``top``, ``pareto`` and ``everything``."""
        return {name: getattr(self, name)() for name in ("everything", "pareto")} | {
            "top": self.top(_MOST_ROWS)
        }

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """All designs as a pandas frame; ``key`` may be ``pareto`` or ``top``."""
        import pandas as pd

        answers = self.to_dict()
        if key is not None and key not in answers:
            raise SpecError(Fault(f"got {key!r}", f"expected {', '.join(answers)}", "", "to_frame"))
        found = answers[key or "everything"]
        return pd.DataFrame(list(found.rows), columns=list(found.columns))

    def plot(self, x: str | None = None, y: str | None = None, axes: Any = None) -> Any:
        """Time and cost of all designs, or what ``sweep show --plot`` draws over axes.

        Parameters
        ----------
        x, y : axes of the sweep, as the command has them.
        axes : matplotlib axes to draw on.
        """
        axes = new_axes(axes, figsize=(7, 4))
        figures.draw(self, axes, x, y)
        return axes

    def to_html(self, path: str | Path, answer: sweeping.Answer | None = None) -> Path:
        """Write what ``sweep show --html`` writes: one page that opens offline.

        Parameters
        ----------
        path : ends in ``.html``.
        answer : rows of the page, such as :meth:`pareto` gives; by default all designs.

        Raises
        ------
        SpecError
            For another ending, or a path that cannot be written.
        """
        write_page(self, str(path), answer)
        return Path(path)


@pythonic
def sweep(
    file: str | Path,
    directory: str | Path,
    *,
    n_workers: int = 0,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> SweepResults:
    """Solve all designs of a sweep, or what is missing of them.

    ``pandas.read_parquet(directory)`` reads the same rows.

    Parameters
    ----------
    file : the sweep (YAML), or the name of a bundled one.
    directory : run directory; one of the same sweep is finished.
    n_workers : processes on this machine; 0 works in this one.
    scheduler : address of a dask scheduler to use instead.
    watch : called with the progress.

    Raises
    ------
    PlannerError
        For a sweep that is not valid, or the directory of another one.
    TypeError
        For a plan in place of a path.
    """
    path_given(file, "sweep", "the sweep's file")
    found = sweeps.sweep(file, directory, n_workers=n_workers, scheduler=scheduler, watch=watch)
    return SweepResults.of(found)


@pythonic
def sweep_results(directory: str | Path, by: str = sweeping.BY[0]) -> SweepResults:
    """The results in a run directory, whether the sweep is finished or not.

    Parameters
    ----------
    directory : that ``sweep`` wrote.
    by : ``ideal`` or ``effective``: which step time ranks designs.

    Raises
    ------
    SpecError
        For a directory that is no sweep's, or without any results yet.
    """
    path_given(directory, "sweep_results", "a run directory")
    return SweepResults.of(sweeping.Results.at(directory, by))


@dataclass(frozen=True, repr=False)
class Report(Shown, reports.Report):
    """A report that was written, and what it says."""

    table = "designs"

    def headline(self) -> str:
        """It in one line."""
        first = self.files[0]
        n = len(self.files) - 1
        return f"{first}{f' and {n} other file' + 's' * (n > 1) if n else ''}"

    def blocks(self) -> Iterator[Block]:
        """What ``report`` prints: the decision, and the files."""
        yield from map(escape, decision_lines(self.comparison, self.files))

    def to_dict(self) -> dict[str, Any]:
        """What ``report --json`` prints."""
        return report_payload(self.comparison, self.files)


@pythonic
def report(designs: Sequence[str | Path | Problem], folder: str | Path, **asked: Any) -> Report:
    """Compare one to ten designs, and write the report of them into a folder.

    Parameters
    ----------
    designs : plans (their optima) by path, name or as ``load_plan`` gives them,
        ``PLAN@300,100`` in GB/s, ``RESULT.json`` as ``save`` writes it, ``DIR:ROW`` of a sweep.
    folder : to write to; it is made where it is not there.
    asked : ``formats``, ``settings``, ``baseline``, ``tokens``, ``check``, ``seeds``, ``parts``,
        ``allow_missing``, as :func:`libra_planner.studies.reports.report` has them.

    Raises
    ------
    PlannerError
        For a design that cannot be read, evaluated or built, or parts without a price.
    """
    if isinstance(designs, str | Path | Problem):
        raise TypeError("report: got one design, expected a list; write lp.report([...], folder)")
    return Report.of(reports.report([_text(one) for one in designs], folder, **asked))


def _text(design: object) -> str:
    """A design as a report's argument has it, so that the report can say how it was made."""
    if not isinstance(design, Problem):
        path_given(design, "report", "designs")
        return str(design)
    source, fix = source_of(design), "call .optimize().save('a.json') and give that path"
    if own_overrides_of(design) or not isinstance(source, str | Path):
        got = "got a plan with settings, or from a dict"
        raise SpecError(Fault(got, "expected one that is a file as it is", fix, "report"))
    return str(source)


@dataclass(frozen=True, repr=False)
class Collective(Shown, SolvedCollective):
    """One collective and its times."""

    table = "dimensions"

    @property
    def time_s(self) -> float | None:
        """Exact; ``None`` where only bytes are told (C13)."""
        return None if self.times is None else self.times.time_s

    @property
    def ideal_time_s(self) -> float:
        """Without latency, with endlessly many chunks."""
        return self.ideal.time_s if self.times is None else self.times.ideal_time_s

    def headline(self) -> str:
        """It in one line."""
        case = self.case
        what = f"{case.collective.kind.value} of {format_bytes(case.collective.size_bytes)}"
        exact = "" if self.time_s is None else f"{format_time(self.time_s)}, "
        topology = case.network.topology
        return f"{what} on {topology}; {exact}ideal {format_time(self.ideal_time_s)}"

    def blocks(self) -> Iterator[Block]:
        """What ``collective`` prints."""
        if self.times is None:
            yield from collective_view.ideal_blocks(self.case, self.ideal, self.schedule)
        else:
            yield from collective_view.collective_blocks(self.case, self.times, self.schedule)

    def to_dict(self) -> dict[str, Any]:
        """What ``collective --json`` prints."""
        if self.times is None:
            return collective_view.ideal_payload(self.case, self.ideal, self.schedule)
        return collective_view.collective_payload(self.case, self.times, self.schedule)


@pythonic
def collective(
    topology: str,
    kind: str,
    size_bytes: float,
    bandwidth_bytes_per_s: Sequence[float],
    **asked: Any,
) -> Collective:
    """One collective, exactly.

    Parameters
    ----------
    topology : notation, such as ``RI(4)_SW(8)``.
    kind : such as ``all-reduce``.
    size_bytes : the full vector; of an all-gather the gathered result.
    bandwidth_bytes_per_s : per NPU of every dimension, innermost first.
    asked : ``latency_s``, ``n_chunks``, ``algorithms``, ``in_network``, ``clock_ns``,
        ``balanced``, ``schedule``, as :func:`libra_planner.studies.collectives.collective` has
        them.

    Raises
    ------
    SpecError
        With every fault of what is asked.

    Examples
    --------
    >>> collective("RI(4)_SW(8)", "all-reduce", 2**26, [100e9, 50e9], n_chunks=16)
    <Collective: all-reduce of 67.109 MB on RI(4)_SW(8); 1.007 ms, ideal 1.007 ms>
    """
    found = collectives.collective(topology, kind, size_bytes, bandwidth_bytes_per_s, **asked)
    return Collective.of(found)


@dataclass(frozen=True, repr=False)
class RoutedFlows(Shown, RoutedList):
    """A flow list on a fabric, and what came of it."""

    table = "layers"

    def headline(self) -> str:
        """It in one line."""
        report = self.report
        n = f"{self.n_routings} routing{'s' * (self.n_routings > 1)}"
        return f"{report.n_flows:,} flows by {report.policy.name}, {n}"

    def blocks(self) -> Iterator[Block]:
        """What ``flows`` prints."""
        yield from flow_view.flows_blocks(self, **_OF_FLOWS)

    def to_dict(self) -> dict[str, Any]:
        """What ``flows --json`` prints."""
        return flow_view.flows_payload(self, **_OF_FLOWS)


@pythonic
def flows(
    fabric: str | Path, flow_list: str | Path, policy: str | Policy | None = None, **asked: Any
) -> RoutedFlows:
    """Route a list of flows over a fabric: imbalance, max-min fair rates, completion times.

    Parameters
    ----------
    fabric : file, or name of a published setting.
    flow_list : CSV file ``flow_id,src,dst,bytes[,via][,src_port][,collective]``, or a bundled name.
    policy : how flows find their paths, a name or a ``Policy``; by default ECMP.
    asked : ``seeds``, ``seed``, ``fail_links``, ``fail_spines``, ``with_rates``, ``watchers``, as
        :func:`libra_planner.studies.flow_lists.flows` has them.

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
    chosen = Policy(policy) if isinstance(policy, str) else policy
    return RoutedFlows.of(flow_lists.flows(fabric, flow_list, chosen, **asked))
