"""Sweeps in Python: the commands of this name."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner import allowed
from libra_planner.allowed import Each, Flag, Number, Text, Whole
from libra_planner.api.given import path_given, plan_value, pythonic, takes, yaml_path
from libra_planner.api.optima import Optimum, optimize
from libra_planner.api.plans import Plan, load_plan
from libra_planner.api.shown import Shown, axes_given
from libra_planner.errors import Fault, SpecError, UnknownName, closest
from libra_planner.files import refuse_existing, write_text
from libra_planner.frozen import Frozen
from libra_planner.problem import Problem
from libra_planner.reading.bundled import SWEEPS, given_file
from libra_planner.reading.document import Source
from libra_planner.sweeps import results as sweeping
from libra_planner.sweeps.effort.estimate import Estimate, estimate
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.probe import probe, read_sweep
from libra_planner.sweeps.runner import Watch, kept_words, run_sweep
from libra_planner.sweeps.spec import Sweep
from libra_planner.sweeps.template import design_plan, design_value
from libra_planner.units import format_bytes, format_time
from libra_planner.views.cells import Block, escape
from libra_planner.views.sweeps import figures
from libra_planner.views.sweeps.answers import answer_blocks
from libra_planner.views.sweeps.best import best_lines, best_rows
from libra_planner.views.sweeps.page import write_page
from libra_planner.views.sweeps.remarks import remarks
from libra_planner.views.sweeps.values import axis_units

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 5
_AXIS = Text("an axis of the sweep")
_FRAMES = ("everything", "best", "pareto", "top")
"""What :meth:`SweepResults.to_frame` gives."""


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
    <SweepResults: 74 designs over objective, budget: 74 optimal>
    (True, 74)
    """

    def headline(self) -> str:
        """It in one line."""
        of = f" where {' and '.join(self.where)}" if self.where else ""
        n = self.n_rows if self.where else self.manifest["n_designs"]
        missing = f"{n - self.n_rows:,} missing" if n > self.n_rows else ""
        said = ", ".join(filter(None, (self.statuses, missing)))
        what = f"{n:,} design{'' if n == 1 else 's'} over {', '.join(self.axes)}{of}"
        return f"{what}{f': {said}' if said else ''}"

    def blocks(self) -> Iterator[Block]:
        """The best designs of every objective."""
        found = self.distinct_top(_MOST_ROWS)
        yield f"{escape(self.headline())}; the best of each objective"
        told = axis_units(self), self.plan_cost
        work = self.work_axes
        yield from answer_blocks(found, self.axes, len(found.rows), *told, work=work)
        yield from map(escape, [*best_lines(self), *remarks(self)])

    def __len__(self) -> int:
        """Designs."""
        return self.n_rows

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, row: int) -> dict[str, Any]:
        """All columns of a design, by its row.

        Raises
        ------
        IndexError
            For a row that is not there.
        """
        found = self.sql(f"SELECT * FROM designs WHERE row = {operator.index(row)}").dicts()
        if not found:
            raise IndexError(f"row: got {row}, expected one of the {self.n_rows:,} designs")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """Its answers as rows: ``top``, ``pareto`` and ``everything``."""
        return {name: getattr(self, name)() for name in ("everything", "pareto")} | {
            "top": self.top(_MOST_ROWS)
        }

    @takes({"n": Whole(*allowed.BEST)})
    def to_frame(
        self, key: str | None = None, *, where: str | Sequence[str] = (), n: int | None = None
    ) -> pd.DataFrame:
        """Designs as a pandas frame, with all columns.

        Parameters
        ----------
        key : ``everything`` (default); ``best`` for the fastest, the best per dollar and the
            cheapest of each work, and what each is the best in (``best_in``); ``pareto`` for the
            frontier; ``top`` for the best of each objective, first the best.
        where : what designs have to meet, such as ``"nic >= 50"``, in the language of ``where`` of
            sweep files; the best and the frontier are of those.
        n : how many ``top`` gives of each objective and model; five where it is not given.

        Raises
        ------
        SpecError
            For another key, ``n`` without ``top``, a name that the results do not have, or what is
            no comparison.
        """
        if key not in (None, *_FRAMES):
            expected, fix = f"expected {', '.join(_FRAMES)}", closest(str(key), _FRAMES)
            raise SpecError(Fault(f"got {key!r}", expected, fix, "to_frame"))
        if n is not None and key != "top":
            got = f"got n with {key!r}" if key else "got n without a key"
            raise SpecError.at("n", got, "expected it with 'top'", f"write to_frame('top', n={n})")
        of = self._among(where)
        if key == "best":
            return _best_frame(of)
        among = of.pareto() if key == "pareto" else None
        among = of.top(n or _MOST_ROWS) if key == "top" else among
        return of.listed(of.columns, among=among).to_frame()

    def _among(self, where: str | Sequence[str]) -> SweepResults:
        """Those of its designs that meet more filters."""
        more = (where,) if isinstance(where, str) else tuple(where)
        return replace(self, where=(*self.where, *more))

    @pythonic
    def grouped(self, axis: str | Sequence[str], *, where: str | Sequence[str] = ()) -> Answer:
        """The best designs of each value of an axis, work and objective.

        Parameters
        ----------
        axis : a column, or several, whose every combination of values is a group.
        where : what designs have to meet, as :meth:`to_frame` has it.
        """
        return sweeping.Results.grouped(self._among(where), axis)

    @takes({"x": _AXIS, "y": _AXIS, "is_whole": Flag()})
    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        axes: Any = None,
        *,
        is_whole: bool = False,
    ) -> Any:
        """Time and cost of all designs, or what ``sweep show --plot`` draws over axes.

        Parameters
        ----------
        x, y : axes of the sweep, as the command has them; ``y`` may be a column of numbers.
        axes : matplotlib axes to draw on, all models on the same.
        is_whole : whether designs far from the frontier are drawn, too, as by ``--plot-all``.

        Returns
        -------
        axes : those that were given; of a new figure its axes, a list of them where several
            models have a picture each.

        Raises
        ------
        SpecError
            For ``y`` without ``x``, what is no axis of the sweep, or ``is_whole`` with ``x``.
        """
        self._refuse_other_axes(x, y, is_whole=is_whole)
        if axes is not None:
            figures.draw(self, axes_given(axes), x, y, is_whole=is_whole)
            return axes
        import matplotlib.pyplot as plt

        each = figures.panels(self, plt.figure, x, y, is_whole=is_whole)
        return each[0] if len(each) == 1 else each

    def _refuse_other_axes(self, x: str | None, y: str | None, *, is_whole: bool) -> None:
        """Refuse names that no figure has together, as the command does."""
        for one in (x, y):
            if one and Path(one).suffix and one not in self.axes:
                axes_given(Path(one))
        if y and not x:
            expected, fix = (
                "expected a figure along x, or over x and y",
                "add x, or write x instead",
            )
            raise SpecError.at("x, y", "got y without x", expected, fix)
        if x and is_whole:
            got, expected = "got is_whole with x", "expected the figure of the frontier"
            raise SpecError.at("is_whole", got, expected, "leave it out")

    @pythonic
    def to_html(self, path: str | Path, answer: Answer | None = None) -> Path:
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
        if answer is not None and not isinstance(answer, Answer):
            got = f"got answer={answer!r}, expected rows of these results"
            raise TypeError(f"to_html: {got}; write e.g. answer=results.pareto()")
        write_page(self, str(path), answer)
        return Path(path)

    @takes({"row": Whole(*allowed.ROW)})
    def plan(self, row: int) -> Plan:
        """The plan of a row, as ``lp.load_plan`` gives it of what ``sweep design`` writes.

        Parameters
        ----------
        row : number of the design.

        Raises
        ------
        SpecError
            For a row that the sweep does not have, or that is no plan.
        """
        return load_plan(design_value(self.directory, row))

    @takes({"row": Whole(*allowed.ROW)})
    def design(self, row: int) -> Optimum:
        """The whole optimum of a row: its plan solved by itself.

        Parameters
        ----------
        row : number of the design.

        Raises
        ------
        SpecError
            As :meth:`plan`.
        Infeasible, IllPosed, SolverFailed
            Where the row has no optimum, with the reason.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     found = sweep("13_tapers", f"{there}/run")
        ...     found.design(2), found.plan(2)
        (<Optimum: step time 3.780 s, ...>, <Plan: llama3-70b on SW(8)_[SW(32)_SW(8)], 2,048 NPUs; ...>)
        """  # noqa: E501 - a line is what Python prints.
        return optimize(self.plan(row))

    @takes({"row": Whole(*allowed.ROW), "overwrite": Flag()})
    def save_plan(self, row: int, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a row as a plan, as ``sweep design`` does, for ``lp.load_plan``.

        Parameters
        ----------
        row : number of the design.
        path : ending in .yaml.
        overwrite : whether to replace a file that is there, which is kept as ``.bak``.

        Raises
        ------
        SpecError
            For a row that the sweep does not have, another ending, or a file that is there.
        """
        to = yaml_path(path)
        refuse_existing(str(to), is_forced=overwrite)
        write_text(str(to), design_plan(self.directory, row))
        return to

    top = takes({"n": Whole(*allowed.BEST)})(sweeping.Results.top)
    cheapest_within = takes({"fraction": Number(0.0, 1e3)})(sweeping.Results.cheapest_within)
    listed = pythonic(sweeping.Results.listed)
    fastest = pythonic(sweeping.Results.fastest)
    pareto_with_fim = pythonic(sweeping.Results.pareto_with_fim)
    designs = takes({"most": Whole(*allowed.BEST)})(sweeping.Results.designs)
    sql = takes({"query": Text("SQL")})(sweeping.Results.sql)


def _best_frame(results: SweepResults) -> pd.DataFrame:
    """The rows that are the best, and in what."""
    import pandas as pd

    best = best_rows(results)
    among = Answer(("row",), tuple((row,) for row in best))
    frame = results.listed(results.columns, among=among).to_frame()
    words = [", ".join(best[row]) for row in frame["row"]]
    return frame.assign(best_in=pd.Series(words, dtype=object))


@dataclass(frozen=True, repr=False)
class SweepPlan(Shown, Estimate):
    """How much work a sweep is."""

    table = "statuses"

    def headline(self) -> str:
        """It in one line."""
        n = f"{self.n_designs:,} designs of {self.n_combinations:,} combinations"
        return f"{n}; about {format_time(self.core_s)} on one core"

    def blocks(self) -> Iterator[Block]:
        """It in words."""
        yield self.headline()
        yield f"About {format_bytes(self.size_bytes)} in {self.n_parts:,} files"
        yield from (f"Note: {escape(text)}" for text in self.notes)

    def to_dict(self) -> dict[str, Any]:
        """What ``sweep plan --json`` prints, but for the seed."""
        return asdict(self)


@pythonic
def sweep_plan(file: Source) -> SweepPlan:
    """How many designs a sweep has, how long it takes and how big its results are.

    Parameters
    ----------
    file : the sweep (YAML), the name of a bundled one, or what a sweep file says as a dict.

    Raises
    ------
    PlannerError
        For a sweep that is not valid.

    Examples
    --------
    >>> sweep_plan("13_tapers")
    <SweepPlan: 12 designs of 12 combinations; about ... on one core>
    """
    found = _loaded(file, "sweep_plan")
    probe(found)
    return SweepPlan.of(estimate(found))


@takes({"n_workers": Whole(*allowed.WORKERS)})
def sweep(
    file: Source,
    directory: str | Path | None = None,
    *,
    n_workers: int = 0,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> SweepResults:
    """Solve all designs of a sweep, or what is missing of them.

    ``pandas.read_parquet(directory)`` reads the same rows.

    Parameters
    ----------
    file : the sweep (YAML), the name of a bundled one, or what a sweep file says as a dict, whose
        ``base`` may be a plan; paths in a dict are relative to the working directory.
    directory : run directory, which has to be given; one of the same sweep is finished.
    n_workers : processes on this machine; 0 works in this one.
    scheduler : address of a dask scheduler to use instead.
    watch : called with the progress.

    Raises
    ------
    PlannerError
        For a sweep that is not valid, or the directory of another one.
    TypeError
        For a plan in place of a path, or without a directory.
    KeyboardInterrupt
        Of the user's Ctrl-C, with how many parts are kept.
    """
    planned = _loaded(file, "sweep")
    if directory is None:
        named = "{...}" if isinstance(file, Mapping) else repr(str(file))
        got = "sweep: got no directory, expected one to write the results to"
        raise TypeError(f"{got}; write lp.sweep({named}, 'run1')")
    try:
        run_sweep(planned, directory, n_workers=n_workers, scheduler=scheduler, watch=watch)
    except KeyboardInterrupt:
        again = "call lp.sweep with the same arguments"
        raise KeyboardInterrupt(kept_words(planned, directory, again)) from None
    return SweepResults.of(sweeping.Results.at(directory, None))


def _loaded(file: Source, function: str) -> Sweep:
    """The sweep of a file, a bundled name or a dict."""
    if isinstance(file, Mapping):
        base = file.get("base")
        own = {"base": plan_value(base, function)} if isinstance(base, Problem) else {}
        return read_sweep({**file, **own})
    path_given(file, function, "a sweep", "a path, a bundled name or a dict")
    return read_sweep(given_file(file, SWEEPS))


@takes({"where": Each(Text("a comparison such as 'nic >= 50'"))})
def sweep_results(
    directory: str | Path, by: str | None = None, *, where: str | Sequence[str] = ()
) -> SweepResults:
    """The results in a run directory, whether the sweep is finished or not.

    Parameters
    ----------
    directory : that ``sweep`` wrote.
    by : ``ideal``, ``effective`` or ``bill``: what ranks designs; by default ``effective`` where
        the sweep has a check, else the bill where it has ``bill_usd``, else ``ideal``.
    where : what designs have to meet, such as ``"nic >= 50"``; the results are of those alone.

    Raises
    ------
    SpecError
        For a directory that is no sweep's, or without any results yet, or a filter that is wrong.
    """
    path_given(directory, "sweep_results", "a run directory")
    if by is not None and by not in sweeping.BY:
        fix = closest(by, sweeping.BY)
        raise UnknownName.at("by", f"got {by!r}", f"expected {', '.join(sweeping.BY)}", fix)
    filters = (where,) if isinstance(where, str) else tuple(where)
    found = SweepResults.of(sweeping.Results.at(directory, by, filters))
    # A filter, or a figure, that the results do not have is refused here and not where it is used.
    _ = filters and found.n_rows, by and found.ranked
    return found
