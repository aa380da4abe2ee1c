"""``libra-planner sweep``: plan, run and show sweeps, and turn their rows into plans."""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.cli.arguments import Commands, add_json, command, whole
from libra_planner.cli.streams import print_json, tell_kept
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import STDOUT, output, write_text
from libra_planner.plain_text import spreadsheet_text, visible
from libra_planner.processes import uncollected
from libra_planner.units import format_bytes, format_time

if TYPE_CHECKING:
    from libra_planner.sweeps.results import Answer, Results
    from libra_planner.sweeps.runner import Progress, Watch

_MOST_SHOWN = 200
"""Rows that a table shows of an answer."""


def add_sweep(commands: Commands) -> None:
    """Add ``sweep`` and its actions."""
    text = "Optimise a plan under every combination of the values of its axes."
    parser = commands.add_parser("sweep", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_plan(command(actions, "plan", plan, "How many designs, how long, how big."))
    _add_run(command(actions, "run", run, "Solve all designs, or what is missing of them."))
    _add_show(command(actions, "show", show, "Best designs, frontier, SQL, CSV and figures."))
    _add_design(command(actions, "design", design, "Write a row as a plan for optimize."))


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="SWEEP", help="sweep file (YAML)")
    add_json(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="SWEEP", help="sweep file (YAML)")
    what = "run directory; one of the same sweep is finished"
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help=what)
    where = parser.add_mutually_exclusive_group()
    what = "processes on this machine; 0 (default) works in this one"
    where.add_argument("--workers", type=whole(0, 1024), default=0, metavar="N", help=what)
    where.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="a dask scheduler to use")
    what = "print one JSON object per update"
    parser.add_argument("--json-progress", action="store_true", help=what)


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="run directory")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pareto", action="store_true", help="frontier of time and cost")
    which.add_argument(
        "--top", type=whole(1, 10**9), metavar="N", help="best N designs (default 10)"
    )
    which.add_argument("--sql", metavar="QUERY", help="DuckDB's SQL over the table designs")
    which.add_argument("--group-by", metavar="AXIS", help="best design for each value of an axis")
    what = "with --pareto: frontier of time, cost and FIM, of a sweep with check:"
    parser.add_argument("--fim", action="store_true", help=what)
    what = (
        "times to rank by: of the plan's model (default without --fim), or on the links (default "
        "with --fim), of a sweep with check:"
    )
    parser.add_argument("--by", choices=("ideal", "effective"), help=what)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--csv", metavar="OUT", help="write CSV (- for stdout); alone, all rows")
    add_json(where)
    what = "write a figure (.svg, .png, .pdf): the frontier; with --x bandwidths; with both a map"
    parser.add_argument("--plot", nargs="+", metavar="OUT", help=what)
    parser.add_argument("--x", metavar="AXIS", help="axis of the figure")
    parser.add_argument("--y", metavar="AXIS", help="second axis of the figure")


def _add_design(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="run directory")
    parser.add_argument("row", metavar="ROW", type=whole(0, 10**12), help="number of the row")
    parser.add_argument(
        "-o", "--output", required=True, metavar="PLAN", help="plan to write (- for stdout)"
    )


def plan(options: argparse.Namespace) -> None:
    """``sweep plan``: count and estimate."""
    with uncollected():
        from libra_planner.sweeps.runner import estimate, probe
        from libra_planner.sweeps.spec import job_of, load_sweep

    sweep = load_sweep(options.plan)
    probe(sweep, job_of(sweep))
    found = estimate(sweep)
    if options.json:
        print_json(vars(found) | {"seed": sweep.seed})
        return
    print(f"{found.n_designs:,} designs of {found.n_combinations:,} combinations")
    for axis in sweep.axes:
        values = axis.values
        shown = f"{values[0]} to {values[-1]}" if len(values) > 1 else f"{values[0]}"
        print(visible(f"  {axis.name}: {len(values):,} values, {shown}"))
    if sweep.sample:
        print(f"Sample: {sweep.sample.method} of {sweep.sample.n:,}, seed {sweep.seed}")
    print(f"Structures that are built one by one: up to {found.n_structures:,}")
    if sweep.check:
        n_seeds = "10 or fewer" if sweep.check.seeds is None else f"{len(sweep.check.seeds):,}"
        seeds = f"{n_seeds} seed{'' if n_seeds == '1' else 's'}"
        routed = f"{sweep.check.policy.name}, {seeds}; about {found.n_routed:,} different designs"
        print(f"Links that are routed: {routed}")
    tried = ", ".join(f"{n} {status}" for status, n in found.statuses.items())
    print(f"Tried: {tried}")
    print(f"About {format_time(found.core_s)} on one core, over the number of workers")
    print("and some seconds for workers to start, which a small sweep does not earn back")
    print(f"About {format_bytes(found.size_bytes)} in {found.n_parts:,} files")


def run(options: argparse.Namespace) -> None:
    """``sweep run``: solve what is missing."""
    with uncollected():
        from libra_planner.sweeps.runner import run_sweep
        from libra_planner.sweeps.spec import load_sweep

    sweep = load_sweep(options.plan)
    try:
        with _watched(options) as watch:
            progress = run_sweep(
                sweep,
                options.output,
                n_workers=options.workers,
                scheduler=options.scheduler,
                watch=watch,
            )
    except KeyboardInterrupt:
        kept = f"What is done is kept in {options.output}; run the same command again to go on."
        print(visible(kept), file=sys.stderr)
        raise
    if options.json_progress:
        _print_line({"event": "done", "seed": sweep.seed, **_figures(progress)})
        return
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(progress.statuses.items()))
    before = f" ({progress.n_before:,} were there)" if progress.n_before else ""
    print(visible(f"{progress.n_designs:,} designs in {options.output}{before}"))
    if progress.n_solved:
        print(f"{counts}; {progress.n_resolved:,} solved by the reference, one by one")
        rate = f"{progress.designs_per_s:,.0f} designs/s"
        print(f"{progress.n_solved:,} in {format_time(progress.elapsed_s)}, {rate}")


@contextmanager
def _watched(options: argparse.Namespace) -> Iterator[Watch | None]:
    """Progress as JSON lines on stdout, or for people where stderr is a terminal."""
    if options.json_progress:
        yield lambda progress: _print_line({"event": "progress", **_figures(progress)})
    elif sys.stderr.isatty():
        with _bar() as watch:
            yield watch
    else:
        yield None


def _print_line(payload: dict[str, Any]) -> None:
    print(json.dumps(payload, allow_nan=False), flush=True)


def _figures(progress: Progress) -> dict[str, Any]:
    return {
        "n_designs": progress.n_designs,
        "n_done": progress.n_before + progress.n_solved,
        "n_parts": progress.n_parts,
        "n_parts_done": progress.n_parts_done,
        "n_resolved": progress.n_resolved,
        "statuses": dict(progress.statuses),
        "elapsed_s": progress.elapsed_s,
        "designs_per_s": progress.designs_per_s,
        "left_s": progress.left_s,
    }


@contextmanager
def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    rate = TextColumn("{task.fields[rate]:,.0f} designs/s")
    columns = (BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, rate=0.0)

        def watch(progress: Progress) -> None:
            done = progress.n_before + progress.n_solved
            rate = progress.designs_per_s
            bar.update(task, total=progress.n_designs, completed=done, rate=rate)

        yield watch


def show(options: argparse.Namespace) -> None:
    """``sweep show``: answers as a table, CSV, JSON or a figure."""
    from libra_planner.sweeps.results import Results

    _refuse_unused(options)
    _refuse_axes(options)
    results = Results.at(options.directory, _ranked_by(options))
    left = results.manifest["n_parts"] - results.n_parts_done
    if left > 0:
        print(f"{left:,} of {results.manifest['n_parts']:,} parts are missing", file=sys.stderr)
    if options.plot:
        from libra_planner.sweeps.plots import plot

        plot(results, options.plot, x=options.x, y=options.y)
        for file in options.plot:
            print(file)
    if options.csv:
        _write_csv(_answer(results, options), options.csv)
    elif options.json:
        rows = _without_inf(_answer(results, options).dicts())
        counts = {"n_unchecked": results.n_unchecked} if _needs_check(options) else {}
        print(json.dumps({"rows": rows} | counts, indent=2, allow_nan=False, default=str))
    elif not options.plot:
        _print_table(_answer(results, options))
    if _needs_check(options) and results.n_unchecked:
        what = "designs could not be checked and have no place here; check_message says why"
        print(f"{results.n_unchecked:,} optimal {what}", file=sys.stderr)


def _ranked_by(options: argparse.Namespace) -> str:
    """The times that rank designs: beside FIM, which is of the links, those on the links."""
    return str(options.by or ("effective" if options.fim else "ideal"))


def _needs_check(options: argparse.Namespace) -> bool:
    """Whether the answer leaves out optima whose links could not be checked."""
    return bool(options.fim or options.by == "effective")


def _refuse_unused(options: argparse.Namespace) -> None:
    """Refuse what the question would not read."""
    if options.fim and not options.pareto:
        got, fix = "got --fim without --pareto", "add --pareto, or leave it out"
        raise SpecError(Fault(got, "expected both", fix, "", Place("--fim")))
    if options.by == "effective" and options.sql is not None:
        got, fix = "got --by with --sql", "write ORDER BY effective_step_time_s in the query"
        raise SpecError(Fault(got, "expected one of them", fix, "", Place("--by")))


def _refuse_axes(options: argparse.Namespace) -> None:
    """Refuse axes of a figure that nobody asked for."""
    if (options.x or options.y) and not options.plot:
        got, fix = "got an axis without --plot", "add --plot FILE"
    elif options.y and not options.x:
        got, fix = "got --y without --x", "add --x, or write --x instead"
    else:
        return
    expected = "expected a figure along --x, or over --x and --y"
    raise SpecError(Fault(got, expected, fix, "", Place("--x, --y")))


def _without_inf(value: Any) -> Any:
    """An answer for JSON, which knows no infinity and no NaN: they become null."""
    if isinstance(value, dict):
        return {str(key): _without_inf(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_inf(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _answer(results: Results, options: argparse.Namespace) -> Answer:
    if options.sql is not None:
        return results.sql(options.sql)
    if options.group_by:
        return results.grouped(options.group_by)
    if options.pareto:
        return results.pareto_with_fim() if options.fim else results.pareto()
    if options.csv and options.top is None:
        return results.everything()
    return results.top(options.top or 10)


def _write_csv(answer: Answer, file: str) -> None:
    if file == STDOUT:
        _write_rows(answer, sys.stdout)
        return
    with output(Path(file)) as binary:
        out = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        _write_rows(answer, out)
        out.detach()  # Writes what it still holds, and leaves the file open.
    print(file)


def _write_rows(answer: Answer, out: Any) -> None:
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(spreadsheet_text, answer.columns))
    for row in answer.rows:
        writer.writerow(spreadsheet_text(v) if isinstance(v, str) else v for v in row)


def _print_table(answer: Answer) -> None:
    """Columns lined up, numbers to six digits; never wrapped."""
    if not answer.rows:
        print("no designs", file=sys.stderr)
        return
    rows = (answer.columns, *answer.rows[:_MOST_SHOWN])
    cells = [tuple(map(_cell, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if len(answer.rows) > _MOST_SHOWN:
        print(f"{len(answer.rows):,} rows; --csv writes all of them", file=sys.stderr)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else visible(str(value))


def design(options: argparse.Namespace) -> None:
    """``sweep design``: a row as a plan."""
    from libra_planner.sweeps.store import RunDirectory
    from libra_planner.sweeps.template import design_plan

    text = design_plan(RunDirectory(Path(options.directory)), options.row)
    file = Path(options.output)
    is_stdout = options.output == STDOUT
    if not is_stdout and file.suffix not in (".yaml", ".yml"):
        place = Place("-o")
        raise SpecError(Fault(f"got {options.output!r}", "expected a .yaml file", "", "", place))
    tell_kept(write_text(options.output, text))
    if not is_stdout:
        print(file)
