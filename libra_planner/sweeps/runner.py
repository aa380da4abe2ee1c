"""Runs a sweep: the chunks that are missing, in this process, in others, or on a cluster."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from libra_planner import __version__
from libra_planner.processes import kept_interrupts
from libra_planner.reading.document import leaves
from libra_planner.reading.named_files import may_name_file, named_files, names_file
from libra_planner.sweeps.columns import DEFAULT, columns
from libra_planner.sweeps.figures.solved import schema_of
from libra_planner.sweeps.probe import probe
from libra_planner.sweeps.solver import Solver
from libra_planner.sweeps.spec import Chunk, Job, Sweep, chunk_of, job_of
from libra_planner.sweeps.store import (
    FORMAT,
    Layout,
    RunDirectory,
    file_digest,
    manifest_hash,
)
from libra_planner.sweeps.template import AxisValue, Slot, Text, slot_values
from libra_planner.sweeps.workers import Part, cluster_parts, pool_parts, solve_part


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
            with kept_interrupts():  # A row of a search that was stopped would say what is not so.
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


def kept_words(sweep: Sweep, directory: str | Path, again: str) -> str:
    """What an interrupt of a sweep leaves, and how to go on.

    Parameters
    ----------
    sweep : that was stopped.
    directory : of its results.
    again : how to start it again, in words.
    """
    n = RunDirectory(Path(directory)).n_parts_done
    if n:
        return f"{n:,} of {sweep.n_parts:,} parts are kept in {directory}; {again} to go on."
    size = sweep.file.designs_per_part
    fewer = f"designs_per_part: {max(1, size // 10)} in the sweep keeps results more often"
    return f"No part of {size:,} designs was done yet: {again} to begin anew; {fewer}."
