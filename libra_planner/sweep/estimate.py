"""How long a sweep will take and how big its results will be, from a few of its designs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter

import numpy as np

from libra_planner.sweep.batches import grouped
from libra_planner.sweep.chunks import Chunk, Job, chunk_between, job_of
from libra_planner.sweep.solver import Solver
from libra_planner.sweep.spec import Sweep
from libra_planner.sweep.work import Part, solved_part

_FIRST, _MORE = 20, 1000
"""Designs that are timed; the second number if the first ones were fast."""

_FAST_S = 0.2
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
    """

    n_designs: int
    n_combinations: int
    n_structures: int
    n_parts: int
    core_s: float
    size_bytes: float
    statuses: dict[str, int]
    n_routed: int = 0


def estimated(sweep: Sweep) -> Estimate:
    """The estimate, by solving up to a thousand designs from the middle of the sweep.

    Examples
    --------
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.spec import load_sweep
    >>> found = estimated(load_sweep(folder("examples") / "10_budgets.yaml"))
    >>> found.n_designs, found.n_structures, found.n_parts
    (74, 1, 1)
    """
    job, n = job_of(sweep), sweep.space.n
    sizes = (len(axis.values) for axis in sweep.axes if axis.name in job.structural - job.light)
    n_structures = min(n, math.prod(sizes))
    build_s = _build_s(sweep, job)
    chunk = _middle(sweep, _FIRST)
    solver, part = _solved(job, chunk)
    if part.seconds < _FAST_S:
        chunk = _middle(sweep, _MORE)
        solver, part = _solved(job, chunk)
    n_routed = min(n, round(n_structures * _routed_per_structure(job, chunk, solver)))
    route_s = _route_s(sweep, job) if n_routed else 0.0
    return Estimate(
        n_designs=n,
        n_combinations=sweep.space.n_combinations,
        n_structures=n_structures,
        n_parts=sweep.n_parts,
        core_s=n_structures * build_s + n_routed * route_s + n * part.seconds / part.n,
        size_bytes=n * len(part.data) / part.n,
        statuses=part.statuses,
        n_routed=n_routed,
    )


def _routed_per_structure(job: Job, chunk: Chunk, solver: Solver) -> float:
    """Designs of a structure that had to be routed, on average of a chunk."""
    codes = [c.codes for c in chunk.columns if c.name in job.structural - job.light]
    return solver.checker.n_routed / len(grouped(np.array(codes).reshape(-1, chunk.n)))


def _route_s(sweep: Sweep, job: Job) -> float:
    """Seconds that routing a design takes, of some all over the sweep: what knowing it saves."""
    times = []
    for row in spread(sweep.space.n, _BUILT):
        solver, chunk = Solver(job), chunk_between(sweep, row, row + 1)
        solver.case(chunk, 0)
        first_s, again_s = (solved_part(solver, chunk).seconds for _ in range(2))
        if solver.checker.n_routed:
            times.append(max(first_s - again_s, 0.0))
    return mean(times or [0.0])


def _build_s(sweep: Sweep, job: Job) -> float:
    """Seconds that one structure takes to build, of some all over the sweep.

    The first one pays for what is loaded and compiled once: it does not count.
    """
    n = sweep.space.n
    chunks = [chunk_between(sweep, row, row + 1) for row in spread(n, _BUILT + 1)]
    times = []
    for chunk in chunks:
        solver = Solver(job)
        start = perf_counter()
        solver.case(chunk, 0)
        times.append(perf_counter() - start)
    return median(times[1:] or times)


def spread(n: int, n_picked: int) -> list[int]:
    """Up to so many different rows of n, evenly spread.

    >>> spread(100, 3), spread(1, 3)
    ([0, 49, 99], [0])
    """
    return list(dict.fromkeys(i * (n - 1) // (n_picked - 1) for i in range(n_picked)))


def _middle(sweep: Sweep, n: int) -> Chunk:
    n = min(n, sweep.space.n)
    first = (sweep.space.n - n) // 2
    return chunk_between(sweep, first, first + n)


def _solved(job: Job, chunk: Chunk) -> tuple[Solver, Part]:
    """A chunk's results, timed once its structures are built and its links routed."""
    solver = Solver(job)
    solved_part(solver, chunk)
    return solver, solved_part(solver, chunk)
