"""Runs a sweep: the chunks that are missing, in this process, in others, or on a cluster."""

from __future__ import annotations

import io
import json
import math
import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from statistics import mean, median
from time import monotonic, process_time
from typing import Any, TypeAlias

from libra_planner import __version__
from libra_planner.reading.document import leaves
from libra_planner.reading.named_files import may_name_file, named_files, names_file
from libra_planner.sweeps.axes import cell
from libra_planner.sweeps.columns import DEFAULT, MESSAGE, ROW, STATUS, as_in_file, columns
from libra_planner.sweeps.figures.solved import schema_of
from libra_planner.sweeps.probe import (
    conflict_words,
    named_conflict,
    probe,
    spread_rows,
    unused_quotes_of,
)
from libra_planner.sweeps.solver import NO_BANDWIDTH, Solver, opened_plan
from libra_planner.sweeps.spec import Chunk, Job, Sweep, chunk_between, chunk_of, job_of
from libra_planner.sweeps.store import (
    FORMAT,
    Layout,
    RunDirectory,
    file_digest,
    manifest_hash,
    rows_of,
)
from libra_planner.sweeps.template import AxisValue, Slot, Text, slot_values
from libra_planner.sweeps.workers import Part, cluster_parts, pool_parts, solve_part

_TRIED = (20, 160, 1000)
"""Designs that are timed: more of them share what a part does once, so more while that is fast."""

_SEARCHED = 3
"""Designs that are timed where each searches its strategy."""
_SMALL, _SMALL_ROUTED = 32, 100
"""Designs up to which all are tried once, and where links are routed: timing some takes longer."""

_FAST_S = 0.7
_SHARED = 5
"""Designs of a structure from which on more of them are tried."""
_BUILT = 7
"""Structures that are timed."""


@dataclass(frozen=True)
class Estimate:
    """What a sweep amounts to.

    Parameters
    ----------
    n_designs, n_combinations : designs, and combinations of the axes' values.
    n_structures : most of them that have to be built one by one.
    n_parts : files of results.
    core_s : time on one core.
    size_bytes : of the results.
    statuses : how the designs that were tried came out.
    n_routed : designs whose links differ from all before them, where links are checked: about.
    reasons : by status, why the first of those that were tried has no optimum.
    notes : what figures of the rows are without.
    """

    n_designs: int
    n_combinations: int
    n_structures: int
    n_parts: int
    core_s: float
    size_bytes: float
    statuses: dict[str, int]
    n_routed: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def estimate(sweep: Sweep) -> Estimate:
    """The estimate, by solving up to a thousand designs from the middle of the sweep.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> found = estimate(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> found.n_designs, found.n_structures, found.n_parts
    (74, 1, 1)
    """
    job, n = job_of(sweep), sweep.space.n
    most = _SEARCHED if sweep.is_searched else _SMALL_ROUTED if sweep.check else _SMALL
    if n <= min(most, sweep.file.designs_per_part):
        solver = Solver(job)
        part = solve_part(solver, chunk_between(sweep, 0, n))
        return _estimate(sweep, part, part.seconds, solver.n_routed)
    solve_part(Solver(job), chunk_between(sweep, 0, 1))  # What is loaded once does not count.
    build_s = 0.0 if sweep.is_searched else _build_s(sweep, job)
    n_structures = _n_structures(sweep)
    *others, (part, n_alike, solver) = _tried(sweep, job)
    solve_s = n * part.seconds / part.n
    if others and others[-1][1] == n_alike < part.n:  # More designs of as many structures.
        less, n_visits = others[-1][0], n_structures + sweep.n_parts
        each_s = max(0.0, (part.seconds - less.seconds) / max(1, part.n - less.n))
        solve_s = n * each_s + n_visits * max(0.0, part.seconds - part.n * each_s) / n_alike
    n_built = solver.n_built - n_alike
    n_kept = n_structures * (1 - min(1.0, max(0, n_built) / n_alike))
    routed_per_structure = solver.n_routed / n_alike
    n_routed = min(n, round(n_structures * routed_per_structure))
    # What is searched is tried once, its routing included.
    route_s = _route_s(sweep, job) if n_routed and not sweep.is_searched else 0.0
    return _estimate(sweep, part, n_kept * build_s + n_routed * route_s + solve_s, n_routed)


def _n_structures(sweep: Sweep) -> int:
    sizes = (len(axis.values) for axis in sweep.axes if axis.name in sweep.template.heavy)
    return min(sweep.space.n, math.prod(sizes))


def _estimate(sweep: Sweep, tried: Part, core_s: float, n_routed: int) -> Estimate:
    """What a sweep amounts to, of which some designs were tried."""
    return Estimate(
        n_designs=sweep.space.n,
        n_combinations=sweep.space.n_combinations,
        n_structures=_n_structures(sweep),
        n_parts=sweep.n_parts,
        core_s=core_s,
        size_bytes=sweep.space.n * len(tried.data) / tried.n,
        statuses=tried.statuses,
        n_routed=n_routed,
        reasons=_reasons(sweep, tried),
        notes=[words] if (words := unused_quotes_of(sweep, job_of(sweep))) else [],
    )


_OF_BILLS = (("no bill", "bill_message"), ("parts beyond the plan's ports", "bill_note"))


def _reasons(sweep: Sweep, part: Part) -> dict[str, str]:
    """The first message of each status and whose it is, where the sweep keeps messages."""
    found: dict[str, str] = {}
    axes = [axis.name for axis in sweep.axes]
    for row in rows_of(io.BytesIO(part.data)).to_pylist():
        design = ", ".join(f"{name} {as_in_file(cell(row[name]))}" for name in axes)
        for kind, column in ((row[STATUS], MESSAGE), *_OF_BILLS):
            if row.get(column) and kind not in found:
                text = _reason(sweep, row[ROW], row[column])
                found[kind] = f"{design}: {text}" if axes else text
    return found


def _reason(sweep: Sweep, row: int, message: str) -> str:
    """A message; of rules that conflict, which ones."""
    if message != NO_BANDWIDTH:
        return message
    conflict = named_conflict(opened_plan(job_of(sweep), chunk_between(sweep, row, row + 1), 0))
    return conflict_words(conflict) if conflict else message


def _tried(sweep: Sweep, job: Job) -> Iterator[tuple[Part, int, Solver]]:
    """Ever more designs from the middle, solved when they are built; how many structures they are.

    A structure costs time in each part, so that many designs of few ones are tried, too.
    """
    for most in (_SEARCHED,) if sweep.is_searched else _TRIED:
        n_tried = min(sweep.space.n, most, sweep.file.designs_per_part)
        first = (sweep.space.n - n_tried) // 2
        chunk, solver = chunk_between(sweep, first, first + n_tried), Solver(job)
        n_alike = len(chunk.alike(job.template.heavy))
        part = solve_part(solver, chunk)
        seconds = part.seconds
        if not sweep.is_searched:
            part = solve_part(solver, chunk)  # Its structures are built and its links routed.
        yield part, n_alike, solver
        shares = most == _TRIED[0] and _SHARED * n_alike <= n_tried
        if n_tried < most or (seconds >= _FAST_S and not shares):
            return


def _route_s(sweep: Sweep, job: Job) -> float:
    """Seconds that routing a design takes, of some all over the sweep: what knowing it saves."""
    times = []
    for row in spread_rows(sweep.space.n, _BUILT):
        solver, chunk = Solver(job), chunk_between(sweep, row, row + 1)
        solver.case(chunk, 0)
        first_s, again_s = (solve_part(solver, chunk).seconds for _ in range(2))
        if solver.n_routed:
            times.append(max(first_s - again_s, 0.0))
    return mean(times or [0.0])


def _build_s(sweep: Sweep, job: Job) -> float:
    """Seconds that one structure takes to build, of some all over the sweep.

    The first one pays for what is loaded and compiled once: it does not count.
    """
    times = []
    for row in spread_rows(sweep.space.n, _BUILT + 1):
        solver, chunk = Solver(job), chunk_between(sweep, row, row + 1)
        start = process_time()
        solver.case(chunk, 0)
        times.append(process_time() - start)
    return median(times[1:] or times)


@dataclass
class Progress:
    """How far a run is.

    Parameters
    ----------
    n_designs, n_before : of the sweep, and those that earlier runs have solved.
    n_parts : files of the sweep.
    n_parts_done : of them there.
    n_solved : designs solved by this run.
    n_resolved : of them by the reference, one by one.
    statuses : how many of them have each status.
    started_s : when the run began, by the monotonic clock.
    """

    n_designs: int
    n_before: int
    n_parts: int
    n_parts_done: int
    n_solved: int = 0
    n_resolved: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    started_s: float = field(default_factory=monotonic)

    @property
    def n_done(self) -> int:
        """Designs that are solved."""
        return self.n_before + self.n_solved

    @property
    def elapsed_s(self) -> float:
        """Time since the run began."""
        return monotonic() - self.started_s

    @property
    def designs_per_s(self) -> float:
        """Rate of this run."""
        return self.n_solved / max(self.elapsed_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Time left at this rate; ``None`` while nothing is known."""
        left = self.n_designs - self.n_done
        return left / self.designs_per_s if self.n_solved else None

    def add(self, part: Part) -> None:
        """Count a part."""
        self.n_parts_done += 1
        self.n_solved += part.n
        self.n_resolved += part.n_resolved
        self.statuses.update(part.statuses)


Watch: TypeAlias = Callable[[Progress], None]


def run_sweep(
    sweep: Sweep,
    path: str | Path,
    *,
    n_workers: int = 0,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Progress:
    """Solve what is missing of a sweep into a run directory.

    Parameters
    ----------
    sweep : what to solve.
    path : the run directory; a new one, or one of this very sweep, which is finished.
    n_workers : processes on this machine; 0 for this process.
    scheduler : address of a dask scheduler to use instead.
    watch : called at the start and after every part.

    Raises
    ------
    SpecError
        For the directory of another sweep, one in use, one that cannot be written to, or a
        sweep whose designs are no plans.

    Examples
    --------
    >>> import tempfile
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> sweep = load_sweep(folder("examples") / "10_budgets.yaml")
    >>> with tempfile.TemporaryDirectory() as there:
    ...     first = run_sweep(sweep, there)
    ...     again = run_sweep(sweep, there)
    >>> first.n_solved, dict(first.statuses), again.n_solved, again.n_before
    (74, {'optimal': 74}, 0, 74)
    """
    directory = RunDirectory(Path(path))
    sweep = _as_begun(sweep, directory)
    job = job_of(sweep)
    probe(sweep)
    manifest = manifest_of(sweep)
    job = replace(job, sweep_hash=manifest["hash"])
    directory.check(manifest)
    with directory.locked():
        directory.claim(manifest)
        directory.remove_leftovers()
        layout = Layout.of(manifest)
        done = directory.done(layout)
        n_before = sum(len(layout.rows(i)) for i in done)
        progress = Progress(sweep.space.n, n_before, layout.n_parts, len(done))
        if watch:
            watch(progress)
        missing = (i for i in range(layout.n_parts) if i not in done)
        chunks = (chunk_of(sweep, i) for i in missing)
        try:
            with closing(_parts(job, chunks, directory, n_workers, scheduler)) as parts:
                for part in parts:
                    progress.add(part)
                    if watch:
                        watch(progress)
        finally:
            directory.remove_leftovers()  # Of workers that were stopped.
        directory.refuse_missing(layout.n_parts)
    return progress


def _as_begun(sweep: Sweep, directory: RunDirectory) -> Sweep:
    """The sweep with the columns of its directory, if an earlier version began it with fewer."""
    default = columns(DEFAULT)
    if sweep.columns[: len(default)] != default or not directory.is_begun:
        return sweep
    begun = directory.manifest().get("spec", {}).get("columns", ())
    fewer = tuple(one for one in sweep.columns if one.key in begun or not one.is_late)
    return replace(sweep, columns=fewer) if begun == [one.key for one in fewer] else sweep


def _parts(
    job: Job,
    chunks: Iterator[Chunk],
    directory: RunDirectory,
    n_workers: int,
    scheduler: str | None,
) -> Generator[Part, None, None]:
    if scheduler:
        yield from cluster_parts(job, chunks, directory, scheduler)
    elif n_workers:
        yield from pool_parts(job, chunks, directory, n_workers)
    else:
        solver = Solver(job)
        for chunk in chunks:
            part = solve_part(solver, chunk)
            directory.write_part(part.index, part.data)
            yield part


_MOST_FILES = 10_000


def manifest_of(sweep: Sweep) -> dict[str, Any]:
    """The manifest of a sweep.

    Examples
    --------
    >>> from libra_planner.reading.bundled import folder
    >>> from libra_planner.sweeps.spec import load_sweep
    >>> manifest = manifest_of(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> manifest["n_designs"], manifest["spec"]["where"]
    (74, [])
    """
    template = sweep.template
    spec = {
        "base": template.document.value,
        "slots": [[list(key), *_recorded(slot)] for key, slot in template.slots.items()],
        "axes": [[axis.name, axis.values, axis.tiers] for axis in sweep.axes],
        "where": sweep.file.where,
        "sample": sweep.file.sample.model_dump() if sweep.file.sample else None,
        "seed": sweep.file.seed,
        "columns": [one.key for one in sweep.columns],
        "designs_per_part": sweep.file.designs_per_part,
        "files": dict(_files(sweep)),
    }
    if sweep.check:
        spec["check"] = sweep.check.recorded()
    spec = json.loads(json.dumps(spec))
    schema = schema_of(job_of(sweep))
    return {
        "format": FORMAT,
        "hash": manifest_hash(spec),
        "version": __version__,
        "versions": {name: version(name) for name in ("numpy", "scipy", "cvxpy", "pyarrow")}
        | {"python": platform.python_version()},
        "source": sweep.source,
        "beside": str(template.beside.resolve()),
        "n_designs": sweep.space.n,
        "n_parts": sweep.n_parts,
        "schema": {field.name: str(field.type) for field in schema},
        "spec": spec,
    }


def _recorded(slot: Slot) -> tuple[str, str | None]:
    """What fills a slot: text as written, an axis's value, or its topology's tiers."""
    if isinstance(slot, Text):
        return "text", None
    return "axis" if slot.tiers is None else "tiers", slot.axis


def _files(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Users' own files that plans of the sweep name, with a hash of their content."""
    for name in sorted(set(islice(_named(sweep), _MOST_FILES))):
        if digest := file_digest(sweep.template.beside / name):
            yield name, digest  # A design of another name is invalid, and says so in its row.


def _named(sweep: Sweep) -> Iterator[str]:
    """The users' files that plans of the sweep name."""
    slots = sweep.template.slots
    for key, value in leaves(sweep.template.document.value):
        if may_name_file(key):
            values = slot_values(slots[key], sweep.axes) if key in slots else (value,)
            yield from (name for name in values if names_file(key, name))
    for slot in slots.values():
        if isinstance(slot, AxisValue):  # Maps and lists, such as the workloads of a group.
            whole = slot_values(replace(slot, tiers=None), sweep.axes)
            yield from (name for value in whole for _, name in named_files(value))
