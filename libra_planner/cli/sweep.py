"""``libra-planner sweep``: plan, run and show sweeps, and turn their rows into plans."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from libra_planner.cli import streams
from libra_planner.cli.streams import print_json, say, tell, tell_kept
from libra_planner.errors import IllPosed, Infeasible, PlannerError, SolverFailed, SpecError
from libra_planner.files import STDOUT, output, refuse_existing, write_text
from libra_planner.plain_text import spreadsheet_text, visible
from libra_planner.processes import uncollected
from libra_planner.sweeps.axes import Axis, cell
from libra_planner.sweeps.columns import COST, MESSAGE, ROW
from libra_planner.sweeps.expressions import NUMBER
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.figures.texts import as_in_file
from libra_planner.sweeps.results import Results
from libra_planner.units import format_bytes, format_time, plain_digits
from libra_planner.views.cells import attributes

if TYPE_CHECKING:
    from libra_planner.sweeps.runner import Progress, Watch

_MOST_SHOWN = 200
"""Rows that a table shows of an answer."""
_SAID_EVERY_S = 60.0
"""Time between lines of progress where there is no terminal."""
_MOST_VALUES = 8
"""Values of an axis that ``sweep plan`` names."""
_AVOIDABLE_IN = "fim_avoidable_dimension"
_USUAL = 10
"""Best designs of each objective that are shown where nothing is asked."""


def plan(options: argparse.Namespace) -> None:
    """``sweep plan``: count and estimate."""
    with uncollected():
        from libra_planner.sweeps.effort.estimate import estimate
        from libra_planner.sweeps.probe import common_conflict, probe, read_sweep, unreadable_words

    sweep = read_sweep(options.plan)
    if sys.stderr.isatty():
        what = f"Solving some of {sweep.space.n:,} designs: seconds, longer with check or a search"
        print(what, file=sys.stderr, flush=True)
    probe(sweep)
    found = estimate(sweep)
    if "optimal" not in found.statuses and (conflict := common_conflict(sweep)):
        raise Infeasible(f"{options.plan}: no design can have an optimum: {conflict}")
    say([visible(text) for text in [unreadable_words(sweep)] if text], sys.stderr)
    if options.json:
        print_json(vars(found) | {"seed": sweep.file.seed})
        return
    print(f"{found.n_designs:,} designs of {found.n_combinations:,} combinations")
    for axis in sweep.axes:
        say([f"  {axis.name}: {len(axis.values):,} values, {_values(axis)}"])
    if sample := sweep.file.sample:
        print(f"Sample: {sample.method} of {sample.n:,}, seed {sweep.file.seed}")
    if sweep.is_searched:
        print("Strategies that are left open are searched: once for every design")
    else:
        print(f"Structures that are built one by one: up to {found.n_structures:,}")
    if sweep.check:
        n_seeds = "10 or fewer" if sweep.check.seeds is None else f"{len(sweep.check.seeds):,}"
        seeds = f"{n_seeds} seed{'' if n_seeds == '1' else 's'}"
        routed = f"{sweep.check.policy.name}, {seeds}; about {found.n_routed:,} different designs"
        print(f"Links that are routed: {routed}")
    print(f"Tried: {', '.join(f'{n} {status}' for status, n in found.statuses.items())}")
    sys.stdout.flush()
    tell((f"{status}, such as: {text}" for status, text in found.reasons.items()), sys.stderr)
    tell((f"Note: {text}" for text in found.notes), sys.stderr)
    if "optimal" not in found.statuses:
        print("None of the designs that were tried has an optimum", file=sys.stderr)
    print(f"About {format_time(found.core_s)} on one core, over the number of workers")
    print("and some seconds for workers to start, which a small sweep does not earn back")
    print(f"About {format_bytes(found.size_bytes)} in {found.n_parts:,} files")


def _values(axis: Axis) -> str:
    """Values of an axis: of numbers their ends, else the first ones."""
    texts = [as_in_file(cell(value)) for value in axis.values]
    if axis.kind == NUMBER:
        return " to ".join((texts[0], texts[-1])[: len(texts)])
    return _first(texts)


def _first(texts: Sequence[str]) -> str:
    """The first of some values."""
    return ", ".join([*texts[:_MOST_VALUES], *(["..."] if len(texts) > _MOST_VALUES else [])])


def run(options: argparse.Namespace) -> None:
    """``sweep run``: solve what is missing."""
    with uncollected():
        from libra_planner.sweeps.probe import read_sweep
        from libra_planner.sweeps.runner import kept_words, run_sweep

    sweep, to = read_sweep(options.plan), options.output
    pool = {"n_workers": options.workers, "scheduler": options.scheduler}
    try:
        with _watched(options) as watch:
            progress = run_sweep(sweep, to, **pool, watch=watch)
    except KeyboardInterrupt:
        tell([kept_words(sweep, to, "run the same command again")], sys.stderr)
        raise
    if options.json_progress:
        _print_event("done", progress, seed=sweep.file.seed)
        _refuse_without_optimum(Results.at(to, None), options)
        return
    before = f" ({progress.n_before:,} were there)" if progress.n_before else ""
    tell([f"{progress.n_designs:,} designs in {to}{before}"])
    results = Results.at(to, None)
    if progress.n_solved:
        new = f" of {progress.n_solved:,} new ones" if progress.n_before else ""
        by_reference = f"{progress.n_resolved:,}{new} solved by the reference, one by one"
        print(f"{results.statuses}; {by_reference}")
        rate = f"{progress.designs_per_s:,.0f} designs/s"
        print(f"{progress.n_solved:,} in {format_time(progress.elapsed_s)}, {rate}")
    else:
        print(results.statuses)
    from libra_planner.views.sweeps.best import best_lines

    tell(best_lines(results))
    _tell_remarks(results, is_all=True)
    _refuse_without_optimum(results, options)


_FAILURES = (("infeasible", Infeasible), ("ill_posed", IllPosed), ("uncertified", SolverFailed))


def _refuse_without_optimum(results: Results, options: argparse.Namespace) -> None:
    """End a run in which no design has an optimum as ``optimize`` ends for such a plan."""
    if "optimal" in results.statuses:
        return
    counts, to = results.statuses, options.output
    why = ", and why" if MESSAGE in results.columns else ""  # A remark says how to learn it.
    said = f"{options.plan}: no design has an optimum: {counts}; {to} has all rows{why}"
    kinds = (kind for status, kind in _FAILURES if status in results.statuses)
    raise next(kinds, PlannerError)(said)


@contextmanager
def _watched(options: argparse.Namespace) -> Iterator[Watch | None]:
    """Progress as JSON lines on stdout, or for people: elsewhere than in terminals now and then."""
    if options.json_progress or not sys.stderr.isatty():
        yield partial(_print_event, "progress") if options.json_progress else _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    rate = TextColumn("{task.fields[rate]}")
    columns = (BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, rate="")

        def watch(progress: Progress) -> None:
            n = progress.n_designs
            rate = f"{progress.designs_per_s:,.0f} designs/s" if progress.n_solved else ""
            bar.update(task, total=n, completed=progress.n_done, rate=rate)

        yield watch


@dataclass
class _Lines:
    """Progress as a line per minute."""

    said_s: float = field(default_factory=monotonic)

    def __call__(self, progress: Progress) -> None:
        if monotonic() - self.said_s < _SAID_EVERY_S:
            return
        self.said_s = monotonic()
        left = "" if progress.left_s is None else f", about {format_time(progress.left_s)} left"
        said = f"{progress.n_done:,} of {progress.n_designs:,} designs{left}"
        print(said, file=sys.stderr, flush=True)


def _print_event(event: str, progress: Progress, **more: Any) -> None:
    figures = ("n_designs", "n_done", "n_parts", "n_parts_done", "n_resolved", "statuses")
    payload = attributes(progress, *figures, "elapsed_s", "designs_per_s", "left_s")
    print(json.dumps({"event": event} | more | payload, allow_nan=False), flush=True)


def show(options: argparse.Namespace) -> None:
    """``sweep show``: answers as a table, CSV, JSON, a figure or a page."""
    _refuse_misuse(options)
    # Beside FIM, which is of the links, times on the links rank designs.
    by = options.by or ("effective" if options.fim else None)
    results = Results.at(options.directory, by, options.where)
    left = results.manifest["n_parts"] - results.n_parts_done
    if left > 0:
        print(f"{left:,} of {results.manifest['n_parts']:,} parts are missing", file=sys.stderr)
    _write_pictures(results, options)
    needs_check = options.fim or results.by == "effective"
    if options.csv:
        _write_csv(_answer(results, options), options.csv)
    elif options.json:
        rows = _without_inf(_answer(results, options).dicts())
        counts = {"n_unchecked": results.n_unchecked} if needs_check else {}
        print_json({"rows": rows} | counts, default=str)
    elif not (options.plot or options.html):
        _print_answer(results, options)
        asked = results.among(_answer(results, options)) if options.sql is not None else results
        _tell_remarks(asked, is_all=options.remarks)
    if needs_check and results.n_unchecked:
        what = "designs could not be checked and have no place here; check_message says why"
        print(f"{results.n_unchecked:,} optimal {what}", file=sys.stderr)


def _tell_remarks(results: Results, *, is_all: bool) -> None:
    """What readers of the rows have to know, on stderr; in one line where it was said before."""
    from libra_planner.views.sweeps.remarks import folded, remarks

    sys.stdout.flush()
    if not results.n_rows:
        return
    tell((remarks if is_all else folded)(results), sys.stderr)


def _write_pictures(results: Results, options: argparse.Namespace) -> None:
    """Figures and the page; their names stay out of what is data on stdout."""
    asked = (options.plot and not options.x) or options.html
    is_some = _question(options) or options.sort or options.columns
    # By its row a picture knows of a design what no column there says, as that nobody sells it.
    names = _names(options.columns)
    columns = [*([ROW] if names and ROW not in names else []), *names]
    answer = _answer(results, options, columns) if asked and is_some else None
    if options.plot:
        from libra_planner.views.sweeps.figures import plot

        to, is_whole = options.plot, options.plot_all
        plot(results, to, x=options.x, y=options.y, answer=answer, is_whole=is_whole)
    if options.html:
        from libra_planner.views.sweeps.page import write_page

        write_page(results, options.html, answer)
    is_data = options.json or options.csv == STDOUT
    for file in (*(options.plot or ()), *([options.html] if options.html else ())):
        print(file, file=sys.stderr if is_data else sys.stdout)


def _question(options: argparse.Namespace) -> str:
    """The option that asks for some of the designs; empty without one."""
    asked = {
        "--sql": options.sql is not None,
        "--group-by": options.group_by,
        "--pareto": options.pareto,
        "--top": options.top,
    }
    return next((name for name, is_asked in asked.items() if is_asked), "")


def _refuse_misuse(options: argparse.Namespace) -> None:
    """Refuse what the question would not read, and axes of a figure that nobody asked for."""
    if options.fim and not options.pareto:
        got, fix = "got --fim without --pareto", "add --pareto, or leave it out"
        raise SpecError.at("--fim", got, "expected both", fix)
    if options.by in ("effective", "bill") and options.sql is not None:
        time = {"bill": "billed_step_time_s"}.get(options.by, "effective_step_time_s")
        got, fix = "got --by with --sql", f"write ORDER BY {time} in the query"
        raise SpecError.at("--by", got, "expected one of them", fix)
    given = next((x for x in ("--sort", "--columns") if getattr(options, x[2:])), "")
    if given and (options.sql is not None or options.group_by):
        got, fix = f"got {given} with {_question(options)}", "leave one of them out"
        raise SpecError.at(given, got, "expected one of them", fix)
    if options.plot_all and (options.x or not options.plot):
        got = f"got --plot-all {'with --x' if options.plot else 'without --plot'}"
        raise SpecError.at("--plot-all", got, "expected the figure of the frontier", "leave it out")
    expected = "expected a figure along --x, or over --x and --y"
    if (options.x or options.y) and not options.plot:
        got, fix = "got an axis without --plot", "add --plot FILE"
    elif options.y and not options.x:
        got, fix = "got --y without --x", "add --x, or write --x instead"
    elif options.x and (question := _question(options)):
        got, fix = f"got an axis with {question}", f"leave {question} out: these figures take all"
        expected = "expected one of them"
    else:
        return
    raise SpecError.at("--x, --y", got, expected, fix)


def _without_inf(value: Any) -> Any:
    """An answer for JSON, which knows no infinity and no NaN: they become null."""
    if isinstance(value, dict):
        return {str(key): _without_inf(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_inf(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _answer(results: Results, options: argparse.Namespace, columns: Sequence[str] = ()) -> Answer:
    """What is asked for; of designs these columns, by default those of the options."""
    if options.sql is not None:
        return results.sql(options.sql)
    if options.group_by:
        return results.grouped(_names(options.group_by))
    ranked = _ranked(results, options)
    if not (options.sort or options.columns):
        return ranked or (results.everything() if options.csv else results.listed())
    return results.listed(columns or _names(options.columns), _names(options.sort), among=ranked)


def _ranked(results: Results, options: argparse.Namespace) -> Answer | None:
    """The best designs; nothing where all are asked for."""
    if options.pareto:
        return results.pareto_with_fim() if options.fim else results.pareto()
    if options.top is None and (options.csv or _is_list(options)):
        return None
    of_all = options.json or options.csv
    return (results.top if of_all else results.distinct_top)(options.top or _USUAL)


def _is_list(options: argparse.Namespace) -> bool:
    """Whether designs are asked for by their values, not by their rank."""
    return bool(options.where or options.sort or options.columns) and not _question(options)


def _names(text: str | None) -> list[str]:
    """Names with commas between them."""
    return [one.strip() for one in (text or "").split(",") if one.strip()]


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
    writer = csv.writer(out, lineterminator="\n")
    for row in (answer.columns, *answer.rows):
        writer.writerow(spreadsheet_text(v) if isinstance(v, str) else v for v in row)


def _print_answer(results: Results, options: argparse.Namespace) -> None:
    """Designs as people read them; what a user's query gives as it is."""
    answer = _answer(results, options, _on_screen(_names(options.columns)))
    if not answer.rows:
        say([f"no designs{_there(results)}"], sys.stderr)
    elif options.sql is not None:
        _print_table(answer)
    else:
        from libra_planner.views.cells import escape
        from libra_planner.views.sweeps.answers import (
            answer_blocks,
            answer_words,
            group_answers,
            money_words,
        )
        from libra_planner.views.sweeps.best import best_lines, unranked_groups
        from libra_planner.views.sweeps.values import axis_units

        by = _names(options.group_by)
        asked = {"by": by, "is_frontier": options.pareto, "has_fim": options.fim}
        n_best = None if _is_list(options) else options.top or _USUAL
        words = answer_words(results, n_best=n_best, **asked)
        named = {"is_named": bool(options.columns), "is_whole": not streams.has_width()}
        units, cost = axis_units(results), results.plan_cost
        work = results.work_axes
        rows = chain.from_iterable(
            answer_blocks(
                part, results.axes, _MOST_SHOWN, units, cost, title=title, work=work, **named
            )
            for title, part in group_answers(answer)
        )
        money = [money_words(results)] if COST in answer.columns else []
        idle = unranked_groups(results, by) if by else ()
        more = (escape(text) for text in (*idle, *money, *best_lines(results)) if text)
        streams.show([escape(words), *rows, *more])
    if len(answer.rows) > _MOST_SHOWN:
        print(f"{len(answer.rows):,} rows; --csv writes all of them", file=sys.stderr)


def _on_screen(names: Sequence[str]) -> list[str]:
    """Columns that were asked for, with the dimension in which FIM is avoidable."""
    named = "fim_avoidable_percent"
    is_alone = named in names and _AVOIDABLE_IN not in names
    return [*names, *([_AVOIDABLE_IN] if is_alone else [])]


def _there(results: Results) -> str:
    """Which values there are of the axes of texts that filters name."""
    asked = " ".join(results.where)
    said = (
        f"; {name} is one of: {_first([*map(visible, values)])}"
        for name, values, *_ in results.manifest["spec"]["axes"]
        if all(isinstance(one, str) for one in values) and re.search(rf"\b{name}\b", asked)
    )
    return "".join(said)


def _print_table(answer: Answer) -> None:
    """Columns lined up, numbers to six digits and all before the point; never wrapped."""
    cells = [[*map(_cell, row)] for row in (answer.columns, *answer.rows[:_MOST_SHOWN])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(map(str.rjust, row, widths)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return plain_digits(value)
    return "-" if value is None else visible(str(value))


def design(options: argparse.Namespace) -> None:
    """``sweep design``: a row as a plan."""
    from libra_planner.sweeps.store import RunDirectory
    from libra_planner.sweeps.template import design_plan

    to = options.output
    text = design_plan(RunDirectory(Path(options.directory)), options.row)
    if to != STDOUT and Path(to).suffix not in (".yaml", ".yml"):
        raise SpecError.at("-o", f"got {to!r}", "expected a .yaml file")
    refuse_existing(to, is_forced=options.force)
    tell_kept(write_text(to, text))
    if to != STDOUT:
        print(Path(to))
