"""Sweeps as the cockpit runs them: the text of a sweep, its child process, pages of results."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, Place, PlannerError, SpecError
from libra_planner.files import read_text, write_files
from libra_planner.sweeps.columns import OBJECTIVE, ROW, Column, on_screen
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.store import MANIFEST, Layout, RunDirectory, faults_of_writing, index_of
from libra_planner.sweeps.template import design_plan
from libra_planner.tui.disk.files import real_path, typed_path
from libra_planner.tui.disk.readings import plan_values
from libra_planner.units import format_bytes, format_time

if TYPE_CHECKING:
    from libra_planner.sweeps.spec import Sweep
    from libra_planner.tui.session import Report
    from libra_planner.tui.work import Ticket


def in_words(
    row: Mapping[str, Any],
    axes: Sequence[str],
    units: Mapping[str, str],
    plan_cost: str = "network cost",
) -> str:
    """The best design of an objective in one line: what it reaches, and where it is.

    >>> row = {"row": 3, "budget": 500, "objective": "cost", "step_time_s": 0.5, "cost_usd": 2e6}
    >>> in_words(row, ["budget"], {"budget": "GB/s"})
    'cost: step time 500.000 ms, network cost $2.00M, budget 500 GB/s (row 3)'
    """
    texts = []
    for one in on_screen(list(row), axes, plan_cost):
        is_axis = one.name in axes and one.name != OBJECTIVE
        if (is_axis or one.in_words) and row[one.name] is not None:
            unit = units.get(one.name, "") if is_axis else ""
            texts.append((is_axis, f"{one.label} {one.cell(row[one.name])} {unit}".rstrip()))
    figures = ", ".join(text for _, text in sorted(texts, key=lambda pair: pair[0]))
    return f"{str(row[OBJECTIVE]).replace('_', ' ')}: {figures} (row {row['row']})"


N_PER_PAGE = 100
VIEWS = ("best", "frontier", "all")
"""What can be browsed: the best designs, those on the frontier, every row."""

_N_BEST = 20
_N_CLOUD = 500
_LOOK_S = 1.0
"""Pause between two looks at the best design so far."""


@dataclass(frozen=True)
class Page:
    """Rows of results on screen.

    Parameters
    ----------
    view, number, n_pages : which of :data:`VIEWS`, the page from 0 and how many there are.
    answer : the rows.
    axes : of the sweep; ``units`` of those whose rules name one.
    cloud : rows of the whole run, evenly spread, to be drawn behind those of the page.
    time, cost : the columns that designs are ranked by, as ``sweep show`` ranks them; no time
        where the run has none.
    plan_cost : what ``cost_usd`` is, in words.
    """

    view: str
    number: int
    n_pages: int
    answer: Answer
    axes: tuple[str, ...]
    units: Mapping[str, str]
    cloud: Answer
    time: str
    cost: str
    plan_cost: str

    @property
    def columns(self) -> list[Column]:
        """Columns of the rows in the order of the screen."""
        shown, units = on_screen(self.answer.columns, self.axes, self.plan_cost), self.units
        named = {name: f"{name}, {unit}" for name, unit in units.items()}
        return [replace(x, heading=named[x.name]) if x.name in named else x for x in shown]

    def of_one_text(self, cells: Sequence[Sequence[str]]) -> list[int]:
        """Columns that a narrow table loses first: they tell no row from another, and are no axis.

        ``cells`` are the texts of the rows.
        """
        texts = list(zip(*cells, strict=True)) if len(cells) > 1 else []
        named = (ROW, *self.axes)
        found = [i for i, column in enumerate(texts) if len(set(column)) == 1]
        return [i for i in found if self.columns[i].name not in named]

    @property
    def planes(self) -> list[Column]:
        """Those that are numbers: axes of a scatter."""
        rows = self.answer.dicts()
        return [one for one in self.columns if one.name != ROW and _is_number(one.name, rows)]

    def places(self, names: Sequence[str]) -> list[list[tuple[float, ...]]]:
        """Values of columns, of the rows and of the cloud; what is not known is not a number."""
        return [
            [tuple(_number(row[name]) for name in names) for row in rows]
            for rows in (self.answer.dicts(), self.cloud.dicts())
        ]


def _is_number(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    values = [row[name] for row in rows if row[name] is not None]
    return bool(values) and all(type(value) in (int, float) for value in values)


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else math.nan


_BOUND = re.compile(
    r"\s*(taper\([^)]+\)|[A-Za-z_]\w*)\s*([<>=]=)\s*([0-9.]+)\s*([^\s0-9+*/-][^+*-]*)?$"
)
"""One name, its bound and the bound's unit."""
_TAPERS = "[1, 2, 4, 8]"
_BILLED = "step_time_s, cost_usd, bandwidth, bill_usd, bill_fabric_usd, message"
"""Columns of a sweep of networks: by the plan's prices, and in whole parts."""


def template(plan: Path) -> str:
    """A sweep of a plan to begin with: over its budget, or the speed and taper of its network.

    All rules of the plan stay; what an axis replaces in them stands in braces. Networks that are
    built of parts get their bill, too.
    """
    value = plan_values(plan)
    said = value.get("constraints")
    rules = [str(rule) for rule in said] if isinstance(said, list) else []
    fabric = value.get("fabric")
    links = fabric.get("realization") if isinstance(fabric, dict) else None
    port = links.get("port_speed") if isinstance(links, dict) else None
    axes, keys = _axes(rules, str(port or ""))
    if not axes and value.get("prices") == "bill":
        batch = value.get("global_batch") or 1024
        axes, keys = (
            {"batch": f"[{batch // 2}, {batch}, {batch * 2}]  # sequences"},
            {"global_batch": "{batch}"},
        )
    elif not axes:
        axes = {"budget": f"{_steps(1000.0)}  # GB/s"}
        keys = {"constraints": [*rules, "total == {budget} GB/s"]}
    # By linear prices NICs of other speeds come in another order than by whole parts.
    is_of_parts = bool(links) and value.get("prices") != "bill" and "budget" not in axes
    columns = f"columns: [{_BILLED}]\n" if is_of_parts else ""
    lines = (f"  {key}: {json.dumps(one, ensure_ascii=False)}\n" for key, one in keys.items())
    return (
        "# Axes replace {names} below; any key of the plan can be one.\n"
        f"base: {real_path(plan)}\n"
        f"axes:\n{''.join(f'  {name}: {one}{chr(10)}' for name, one in axes.items())}"
        f"set:\n{''.join(lines)}"
        f"objective: [{value.get('objective', 'performance')}]\n{columns}"
    )


def _steps(amount: float) -> str:
    """From a fifth of an amount to twice as much."""
    return f"{{from: {amount / 5:g}, to: {amount * 2:g}, step: {amount / 20:g}}}"


def _axes(rules: Sequence[str], port: str = "") -> tuple[dict[str, str], dict[str, object]]:
    """Axes that a plan's rules are fit for, and the keys that have their names in braces.

    Speeds are those of whole ports where a plan says how fast a port is; where a rule has the speed
    of one, the ports follow the axis.

    >>> _axes(["leaf <= 50 GB/s", "taper(spine) == 2", "dim1 >= dim2"])[1]["constraints"]
    ['leaf <= {speed} GB/s', 'taper(spine) == {taper}', 'dim1 >= dim2']
    >>> _axes(["leaf <= 50 GB/s"], "400 Gbps")
    ({'speed': '[25, 50, 100]  # GB/s'}, {'constraints': ['leaf <= {speed} GB/s'], \
'fabric.realization.port_speed': '{speed} GB/s'})
    >>> _axes(["dim1 <= 300 GB/s", "total == 500 GB/s"])[0]
    {'budget': '{from: 100, to: 1000, step: 25}  # GB/s'}
    >>> _axes(["leaf <= 100 GB/s"], "400 Gbps")[0]
    {'speed': '[50, 100, 200]  # GB/s'}
    """
    found = [_BOUND.match(rule) for rule in rules]
    axes: dict[str, str] = {}
    keys: dict[str, object] = {}
    is_budget = any(one and one[1] in ("total", "cost") for one in found)
    named = []
    for rule, bound in zip(rules, found, strict=True):
        name = bound[1] if bound else ""
        axis = (
            "budget" if name in ("total", "cost") else "taper" if name[:6] == "taper(" else "speed"
        )
        if bound is None or axis in axes or (axis != "budget") == is_budget or name in _TIMES:
            named.append(rule)
            continue
        amount = float(bound[3])
        unit = (bound[4] or "").strip()
        values = {"budget": _steps(amount), "taper": _TAPERS}.get(axis)
        if values is None:
            values, is_port = _speeds(amount, port, unit)
            keys = {"fabric.realization.port_speed": f"{{speed}} {unit}"} if is_port else {}
        axes[axis] = f"{values}  # {unit}" if unit else values
        named.append(f"{name} {bound[2]} {{{axis}}} {bound[4] or ''}".rstrip())
    return axes, {"constraints": named, **keys}


def _speeds(amount: float, port: str, unit: str) -> tuple[str, bool]:
    """Half a speed to four times as much, and whether it is that of a port.

    A port's: those that are sold beside it, half and twice as fast. Of a speed of several ports: 1,
    2 and 4 of them.
    """
    factors: tuple[float, ...] = (0.5, 1, 2, 4)
    base, is_port = amount, False
    from libra_planner.plan.options import speed_bytes_per_s

    with contextlib.suppress(PlannerError):
        of_port = speed_bytes_per_s(port) / speed_bytes_per_s(f"1 {unit}")
        is_port = math.isclose(amount, of_port)
        if is_port:
            factors = (0.5, 1, 2)
        elif amount > of_port:
            factors, base = (1, 2, 4), of_port
    return f"[{', '.join(f'{base * factor:g}' for factor in factors)}]", is_port


_TIMES = ("step_time", "memory")
"""Bounds of rules that are no budget and no speed."""


def count(text: str, file: Path, _progress: Report) -> str:
    """How many designs, and about how long: as ``sweep plan`` says it were the text in the file."""
    from libra_planner.sweeps.effort.estimate import estimate
    from libra_planner.sweeps.probe import probe
    from libra_planner.sweeps.spec import load_sweep

    sweep = load_sweep(file, text)
    probe(sweep)
    found = estimate(sweep)
    axes = ", ".join(f"{axis.name} {len(axis.values):,}" for axis in sweep.axes)
    time_text, size = format_time(found.core_s), format_bytes(found.size_bytes)
    return f"{found.n_designs:,} designs ({axes}); about {time_text} on one core, {size}"


def _probed_sweep(file: Path, text: str) -> Sweep:
    """The sweep of a text, the first of whose designs have been read."""
    from libra_planner.sweeps.probe import probe
    from libra_planner.sweeps.spec import load_sweep

    sweep = load_sweep(file, text)
    probe(sweep)
    return sweep


State = Callable[[Mapping[str, Any], tuple[str, ...]], object]
"""Takes the state of a sweep, as ``--json-progress`` gives it, and the best of each objective."""


def run(file: Path, folder: Path, ticket: Ticket, report: State) -> dict[str, Any]:
    """Solve what is missing; ``report`` gets the state and the best designs as they change."""
    from libra_planner.tui.work import event_of, run_apart, run_command

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
    from libra_planner.views.sweeps.values import axis_units

    try:
        results = Results.at(folder, None)  # Ranked as the commands rank it.
        words = axis_units(results), results.plan_cost
        return tuple(in_words(row, results.axes, *words) for row in results.top(1).dicts())
    except PlannerError:
        return ()


def page(folder: Path, view: str, number: int, _progress: Report) -> Page:
    """A page of results; DuckDB reads only what is shown.

    Raises
    ------
    SpecError
        For a folder without results.
    """
    from libra_planner.views.sweeps.values import axis_units

    results, best = Results.at(folder, None), None
    if view != "all":
        best = results.distinct_top(_N_BEST) if view == "best" else results.pareto()
    ((n_designs,),) = results.sql("SELECT count(*) FROM designs")
    total = n_designs if best is None else len(best)
    n_pages = max(-(-int(total) // N_PER_PAGE), 1)
    number = min(max(number, 0), n_pages - 1)
    first = number * N_PER_PAGE
    if best is not None:
        answer = Answer(best.columns, best.rows[first : first + N_PER_PAGE])
    else:
        query = f"SELECT * FROM designs ORDER BY row LIMIT {N_PER_PAGE} OFFSET {first}"
        answer = results.sql(query)
    every = max(-(-int(n_designs) // _N_CLOUD), 1)
    cloud = results.sql(f"SELECT * FROM designs WHERE row % {every} = 0 ORDER BY row")
    try:
        ranking = results.time_column, results.cost_column
    except SpecError:
        ranking = "", results.cost_column
    axes = tuple(results.axes), axis_units(results)
    return Page(view, number, n_pages, answer, *axes, cloud, *ranking, results.plan_cost)


def remarks(folder: Path, _progress: Report) -> str:
    """What ``sweep show`` remarks on results, in a line; empty where nothing can be read."""
    from libra_planner.views.sweeps.remarks import folded

    with contextlib.suppress(PlannerError):
        if found := [line.rstrip(". ") for line in folded(Results.at(folder, None), "")]:
            return f"sweep show {folder} --remarks tells all. {'. '.join(found)}."
    return ""


def plan_of_row(
    folder: Path, row: Mapping[str, Any], _progress: Report
) -> tuple[Path, str, tuple[float, ...] | None]:
    """A row's plan: where it belongs, beside the run directory, its text, and the design."""
    path = folder.with_name(f"{folder.name}-row{row['row']}.yaml")
    text = design_plan(RunDirectory(folder), int(row["row"]))
    names = [name for name in row if name.startswith("bandwidth_dim") and row[name] is not None]
    values = [float(row[name]) for name in sorted(names, key=lambda name: (len(name), name))]
    return path, text, tuple(values) or None


WAY_OUT = "give another name in 'results in' (Tab gets there)"
"""What the cockpit has instead of ``-o``."""


def file_of(folder: Path) -> Path:
    """The sweep's file, beside its results."""
    return folder.with_name(f"{folder.name}.yaml")


def typed_folder(text: str) -> Path:
    """The folder of results that was typed: it can have some, and a sweep's file beside it.

    Raises
    ------
    SpecError
        For what no folder can be called, or what the system does not let look into.
    """
    folder = typed_path(text)
    if not folder.name:
        got, expected = "got a folder without a name", "expected one such as my-sweep"
        raise SpecError(Fault(got, expected, WAY_OUT, "", Place(str(folder))))
    for path in (file_of(folder), folder / MANIFEST):
        typed_path(str(path))
    return folder


def is_run(folder: Path) -> bool:
    """Whether a folder has results, or the beginning of some."""
    return RunDirectory(folder).manifest_path.is_file()


def write(text: str, folder: Path) -> Path:
    """Write the sweep's file and the folders that it needs; one that was there is kept as .bak."""
    file = file_of(folder)
    with faults_of_writing(Place(str(file.parent))):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_files({file: text})
    return file


def check(text: str, known: str | None, folder: Path, _progress: Report) -> None:
    """Refuse a run that the command would refuse, or whose file would replace another one.

    Parameters
    ----------
    text : of the sweep.
    known : of the sweep's file when it was last read or written here, if it was.
    folder : where the results shall be.

    Raises
    ------
    SpecError
        With what is wrong; nothing was written.
    """
    from libra_planner.sweeps.runner import manifest_of

    file, fix = file_of(folder), f"{WAY_OUT}; nothing was changed"
    there = read_text(file).splitlines() if file.exists() else text.splitlines()
    if there not in (text.splitlines(), (known or "").splitlines()):
        got, expected = "got a file that this screen has not read", "expected the sweep's or none"
        raise SpecError(Fault(got, expected, fix, "", Place(str(file))))
    sweep = _probed_sweep(file, text)
    if folder.exists():
        try:
            RunDirectory(folder).check(manifest_of(sweep))
        except SpecError as error:  # What the command advises is -o.
            raise SpecError(*(replace(one, fix=fix) for one in error.faults)) from None


def n_there(folder: Path) -> tuple[int, int]:
    """Designs of a run directory that are solved, and those of the whole sweep.

    Raises
    ------
    SpecError
        For a folder without results.
    """
    manifest = RunDirectory(folder).manifest()
    layout = Layout.of(manifest)
    parts = (index_of(path) for path in folder.glob("part-*.parquet"))
    return sum(len(layout.rows(i)) for i in parts), manifest["n_designs"]
