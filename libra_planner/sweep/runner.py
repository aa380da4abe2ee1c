"""Runs a sweep: the chunks that are missing, in this process, in others, or on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from libra_planner.errors import SpecError
from libra_planner.sweep.chunks import Chunk, Job, chunk_between, chunk_of, job_of
from libra_planner.sweep.cluster import cluster_parts
from libra_planner.sweep.estimate import spread
from libra_planner.sweep.manifest import manifest_of
from libra_planner.sweep.models import DEFAULT_FIGURES, MEMORY_FIGURES
from libra_planner.sweep.pool import pool_parts
from libra_planner.sweep.solver import Solver, plan_of
from libra_planner.sweep.spec import Sweep
from libra_planner.sweep.store import RunDirectory
from libra_planner.sweep.work import Part, solved_part

_PROBES = 12
"""Designs that are looked at before work starts: if none of them is a plan, nothing is run."""


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
        left = self.n_designs - self.n_before - self.n_solved
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
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.spec import load_sweep
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
    probe(sweep, job)
    manifest = manifest_of(sweep)
    job = replace(job, sweep_hash=manifest["hash"])
    directory.check(manifest)
    with directory.locked():
        directory.claim(manifest)
        directory.remove_leftovers()
        done = directory.done(replace(sweep.layout, sweep_hash=manifest["hash"]))
        progress = _progress(sweep, done)
        if watch:
            watch(progress)
        missing = (i for i in range(sweep.n_parts) if i not in done)
        chunks = (chunk_of(sweep, i) for i in missing)
        try:
            with closing(_parts(job, chunks, directory, n_workers, scheduler)) as parts:
                for part in parts:
                    progress.add(part)
                    if watch:
                        watch(progress)
        finally:
            directory.remove_leftovers()  # Of workers that were stopped.
        directory.refuse_missing(sweep.n_parts)
    return progress


def _as_begun(sweep: Sweep, directory: RunDirectory) -> Sweep:
    """The sweep with the columns of its directory, if an earlier version began it with fewer."""
    if sweep.figures[: len(DEFAULT_FIGURES)] != DEFAULT_FIGURES or not directory.is_begun:
        return sweep
    fewer = tuple(name for name in sweep.figures if name not in MEMORY_FIGURES)
    begun = directory.manifest().get("spec", {}).get("columns")
    return replace(sweep, figures=fewer) if begun == list(fewer) else sweep


def _progress(sweep: Sweep, done: set[int]) -> Progress:
    n_before = sum(len(sweep.layout.rows(i)) for i in done)
    return Progress(sweep.space.n, n_before, sweep.n_parts, len(done))


def _parts(
    job: Job,
    chunks: Iterator[Chunk],
    directory: RunDirectory,
    n_workers: int,
    scheduler: str | None,
) -> Generator[Part, None, None]:
    if scheduler:
        return cluster_parts(job, chunks, directory, scheduler)
    if n_workers:
        return pool_parts(job, chunks, directory, n_workers)
    return _own_parts(job, chunks, directory)


def _own_parts(
    job: Job, chunks: Iterator[Chunk], directory: RunDirectory
) -> Generator[Part, None, None]:
    solver = Solver(job)
    for chunk in chunks:
        part = solved_part(solver, chunk)
        directory.write_part(part.index, part.data)
        yield part


def probe(sweep: Sweep, job: Job) -> None:
    """Refuse a sweep of which designs all over the space are no plans.

    Raises
    ------
    SpecError
        With the faults of the first of them.
    """
    n = sweep.space.n
    faults: SpecError | None = None
    for row in spread(n, _PROBES):
        try:
            plan_of(job, chunk_between(sweep, row, row + 1), 0)
        except SpecError as error:
            faults = faults or error
        else:
            return
    if faults is not None:
        raise faults
