"""How long a sweep will take and how big its results will be, from a few of its designs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

from libra_planner.sweep.chunks import Chunk, chunk_between, job_of
from libra_planner.sweep.solver import Solver
from libra_planner.sweep.spec import Sweep
from libra_planner.sweep.work import Part, solved_part

_FIRST, _MORE = 20, 1000
"""Designs that are timed; the second number if the first ones were fast."""

_FAST_S = 0.5


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
    """

    n_designs: int
    n_combinations: int
    n_structures: int
    n_parts: int
    core_s: float
    size_bytes: float
    statuses: dict[str, int]


def estimated(sweep: Sweep) -> Estimate:
    """The estimate, by solving up to a thousand designs from the middle of the sweep.

    Examples
    --------
    >>> from libra_planner.spec.bundled import folder
    >>> from libra_planner.sweep.spec import load_sweep
    >>> found = estimated(load_sweep(folder("examples") / "sweeps" / "01_budgets.yaml"))
    >>> found.n_designs, found.n_structures, found.n_parts
    (74, 2, 1)
    """
    job, n = job_of(sweep), sweep.space.n
    structural = [len(axis.values) for axis in sweep.axes if axis.name in job.structural]
    n_structures = min(n, math.prod(structural))
    solver = Solver(job)
    cold_s, warm_s, part, n_built = _timed(solver, _middle(sweep, _FIRST))
    if cold_s < _FAST_S:
        cold_s, warm_s, part, n_built = _timed(Solver(job), _middle(sweep, _MORE))
    build_s = max(0.0, cold_s - warm_s) / n_built
    return Estimate(
        n_designs=n,
        n_combinations=sweep.space.n_combinations,
        n_structures=n_structures,
        n_parts=sweep.n_parts,
        core_s=n_structures * build_s + n * warm_s / part.n,
        size_bytes=n * len(part.data) / part.n,
        statuses=part.statuses,
    )


def _middle(sweep: Sweep, n: int) -> Chunk:
    n = min(n, sweep.space.n)
    first = (sweep.space.n - n) // 2
    return chunk_between(sweep, first, first + n)


def _timed(solver: Solver, chunk: Chunk) -> tuple[float, float, Part, int]:
    """Seconds with and without building the structures, the part, and how many there are."""
    start = perf_counter()
    solved_part(solver, chunk)
    cold_s = perf_counter() - start
    part = solved_part(solver, chunk)
    return cold_s, part.seconds, part, len(solver.by_structure(chunk))
