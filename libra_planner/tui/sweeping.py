"""Sweeps as the cockpit runs them: the text of a sweep, its child process, pages of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.tui.sweep_columns import in_words
from libra_planner.tui.typed_paths import real_path

if TYPE_CHECKING:
    from libra_planner.sweep.results import Answer
    from libra_planner.tui.work import Report, Ticket

N_PER_PAGE = 100
VIEWS = ("best", "frontier", "all")
"""What can be browsed: the best designs, those on the frontier, every row."""

_N_BEST = 20
_LOOK_S = 1.0
"""Pause between two looks at the best design so far."""


@dataclass(frozen=True)
class Page:
    """Rows of results on screen.

    Parameters
    ----------
    view, number, n_pages : which of :data:`VIEWS`, the page from 0 and how many there are.
    answer : the rows.
    axes : of the sweep.
    """

    view: str
    number: int
    n_pages: int
    answer: Answer
    axes: tuple[str, ...]


def template(plan: Path, total_GBps: float | None) -> str:
    """A sweep of the plan's budget to begin with."""
    high = total_GBps or 1000.0
    low, step = high / 5, high / 20
    return (
        "# Axes replace {names} below; any key of the plan can be one.\n"
        f"base: {real_path(plan)}\n"
        "axes:\n"
        f"  budget: {{from: {low:g}, to: {high * 2:g}, step: {step:g}}}\n"
        "set:\n"
        '  constraints: ["total == {budget} GB/s"]\n'
        "objective: [performance]\n"
    )


def count(text: str, file: Path, _progress: Report) -> str:
    """How many designs, and about how long: as ``sweep plan`` says it were the text in the file."""
    from libra_planner.sweep.chunks import job_of
    from libra_planner.sweep.estimate import estimated
    from libra_planner.sweep.runner import probe
    from libra_planner.sweep.spec import load_sweep
    from libra_planner.units import format_bytes, format_time

    sweep = load_sweep(file, text)
    probe(sweep, job_of(sweep))
    found = estimated(sweep)
    axes = ", ".join(f"{axis.name} {len(axis.values):,}" for axis in sweep.axes)
    time_text, size = format_time(found.core_s), format_bytes(found.size_bytes)
    return f"{found.n_designs:,} designs ({axes}); about {time_text} on one core, {size}"


State = Callable[[Mapping[str, Any], tuple[str, ...]], None]
"""Takes the state of a sweep, as ``--json-progress`` gives it, and the best of each objective."""


def run(file: Path, folder: Path, ticket: Ticket, report: State) -> dict[str, Any]:
    """Solve what is missing; ``report`` gets the state and the best designs as they change."""
    from libra_planner.tui.apart import run_apart
    from libra_planner.tui.child import event_of, run_command

    last: dict[str, Any] = {}
    looked_s = 0.0
    best: tuple[str, ...] = ()

    def line(text: str) -> None:
        nonlocal looked_s, best
        event = event_of(text)
        if event is None:
            return
        last.update(event)
        ticket.progress(event["n_done"], event["n_designs"])
        if time.monotonic() - looked_s > _LOOK_S and event.get("n_parts_done"):
            looked_s, best = time.monotonic(), run_apart(partial(best_so_far, folder), ticket)
        report(event, best)

    arguments = ["sweep", "run", str(file), "-o", str(folder), "--json-progress"]
    run_command(arguments, ticket, line)
    return last


def state_text(event: Mapping[str, Any]) -> str:
    """Progress in words; statuses are those of this run only, and it says so.

    >>> event = {"n_done": 10, "n_designs": 20, "designs_per_s": 5, "left_s": None}
    >>> state_text(event | {"statuses": {"optimal": 9, "invalid": 1}})
    '10 of 20 designs, 5 per second (9 optimal, 1 invalid)'
    >>> state_text(event | {"statuses": {"optimal": 4}})
    '10 of 20 designs, 5 per second (4 solved now: 4 optimal)'
    """
    from libra_planner.units import format_time

    statuses = ", ".join(f"{n:,} {status}" for status, n in event["statuses"].items())
    n_now = sum(event["statuses"].values())
    if statuses and n_now < event["n_done"]:
        statuses = f"{n_now:,} solved now: {statuses}"
    left = event.get("left_s")
    ahead = f", about {format_time(left)} left" if left else ""
    done = f"{event['n_done']:,} of {event['n_designs']:,} designs"
    rate = f", {event['designs_per_s']:,.0f} per second" if event["designs_per_s"] else ""
    return f"{done}{rate}{ahead}{f' ({statuses})' if statuses else ''}"


def best_so_far(folder: Path, _progress: Report) -> tuple[str, ...]:
    """The best design of each objective of what is there, in words; empty if nothing is yet."""
    from libra_planner.errors import PlannerError
    from libra_planner.sweep.results import Results

    try:
        results = Results.at(folder)
        return tuple(in_words(row, results.axes) for row in results.top(1).dicts())
    except PlannerError:
        return ()


def page(folder: Path, view: str, number: int, _progress: Report) -> Page:
    """A page of results; DuckDB reads only what is shown.

    Raises
    ------
    SpecError
        For a folder without results.
    """
    from libra_planner.sweep.results import Answer, Results

    results = Results.at(folder)
    axes = tuple(results.axes)
    if view == "all":
        total = int(results.sql("SELECT count(*) FROM designs").rows[0][0])
        query = "SELECT * FROM designs ORDER BY row"
        n_pages = max(-(-total // N_PER_PAGE), 1)
        number = min(max(number, 0), n_pages - 1)
        answer = results.sql(f"{query} LIMIT {N_PER_PAGE} OFFSET {number * N_PER_PAGE}")
        return Page(view, number, n_pages, answer, axes)
    whole = results.top(_N_BEST) if view == "best" else results.pareto()
    n_pages = max(-(-len(whole.rows) // N_PER_PAGE), 1)
    number = min(max(number, 0), n_pages - 1)
    rows = whole.rows[number * N_PER_PAGE : (number + 1) * N_PER_PAGE]
    return Page(view, number, n_pages, Answer(whole.columns, rows), axes)


def plan_of_row(
    folder: Path, row: Mapping[str, Any], _progress: Report
) -> tuple[Path, str, tuple[float, ...] | None]:
    """A row's plan: where it belongs, beside the run directory, its text, and the design."""
    from libra_planner.sweep.designs import design_plan
    from libra_planner.sweep.store import RunDirectory

    path = folder.with_name(f"{folder.name}-row{row['row']}.yaml")
    text = design_plan(RunDirectory(folder), int(row["row"]))
    names = sorted(
        (name for name in row if name.startswith("bandwidth_dim")),
        key=lambda name: int("".join(c for c in name if c.isdigit()) or 0),
    )
    values = [row[name] for name in names if row[name] is not None]
    return path, text, tuple(map(float, values)) if values else None
