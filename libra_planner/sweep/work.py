"""One chunk of work, the same in this process, in a pool's, and on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from libra_planner import __version__
from libra_planner.errors import Fault, SpecError
from libra_planner.sweep.chunks import Chunk, Job
from libra_planner.sweep.columns import table_of
from libra_planner.sweep.parts import parquet_bytes
from libra_planner.sweep.solver import Solver


@dataclass(frozen=True)
class Part:
    """The results of a chunk.

    Parameters
    ----------
    index : number of the chunk.
    n : its designs.
    n_resolved : how many the reference solved.
    statuses : how many designs have each status.
    seconds : time that solving it took.
    data : the parquet file; empty once it is written.
    """

    index: int
    n: int
    n_resolved: int
    statuses: dict[str, int]
    seconds: float
    data: bytes = b""


def solved_part(solver: Solver, chunk: Chunk) -> Part:
    """A chunk solved, as a parquet file in memory."""
    start = perf_counter()
    solved = solver.solved(chunk)
    data = parquet_bytes(table_of(solved, solver.job))
    names = solved.status.tolist()
    return Part(
        index=chunk.index,
        n=chunk.n,
        n_resolved=int(solved.resolved.sum()),
        statuses={name: names.count(name) for name in dict.fromkeys(names)},
        seconds=perf_counter() - start,
        data=data,
    )


def remote_part(job: Job, chunk: Chunk) -> Part:
    """:func:`solved_part` on another machine: the caller writes the file.

    Raises
    ------
    SpecError
        When that machine runs another version.
    """
    if job.version != __version__:
        got = f"got a worker with libra-planner {__version__}"
        fix = "install the same version on all machines"
        raise SpecError(Fault(got, f"expected {job.version}", fix))
    return solved_part(Solver(job), chunk)
