"""Processes on this machine and clusters of others, and the chunks of work that they are given."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any, cast

from libra_planner import __version__
from libra_planner.errors import Fault, Place, PlannerError, SpecError
from libra_planner.processes import same_imports, variables
from libra_planner.sweeps.figures.solved import table_of
from libra_planner.sweeps.solver import Solver
from libra_planner.sweeps.spec import Chunk, Job
from libra_planner.sweeps.store import RunDirectory, parquet_bytes


@dataclass(frozen=True)
class Part:
    """The results of a chunk.

    Parameters
    ----------
    index : number of the chunk.
    n : its designs.
    n_resolved : how many the reference solved.
    statuses : how many designs have each status.
    seconds : time of one core that solving it took.
    data : the parquet file; empty once it is written.
    """

    index: int
    n: int
    n_resolved: int
    statuses: dict[str, int]
    seconds: float
    data: bytes = b""


def solve_part(solver: Solver, chunk: Chunk) -> Part:
    """A chunk solved, as a parquet file in memory."""
    start = process_time()
    solved = solver.solved(chunk)
    data = parquet_bytes(table_of(solved, solver.job))
    statuses, n_resolved = dict(Counter(solved.status.tolist())), int(solved.resolved.sum())
    return Part(chunk.index, chunk.n, n_resolved, statuses, process_time() - start, data)


def remote_part(job: Job, chunk: Chunk) -> Part:
    """:func:`solve_part` on another machine: the caller writes the file.

    Raises
    ------
    SpecError
        When that machine runs another version.
    """
    if job.version != __version__:
        got = f"got a worker with libra-planner {__version__}"
        fix = "install the same version on all machines"
        raise SpecError(Fault(got, f"expected {job.version}", fix))
    return solve_part(Solver(job), chunk)


MOST_TRIES = 3
"""Workers that may die over one chunk."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_IN_FLIGHT = 2
"""Chunks that a worker has: one to solve and the next."""


@dataclass
class _Worker:
    """A process and the chunks it has been given, oldest first."""

    process: BaseProcess
    connection: Connection
    chunks: list[Chunk] = field(default_factory=list)

    def answer(self) -> Part | None:
        """What it has solved, ``None`` from a dead one; raises what it raised."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            return None
        if isinstance(answer, Exception):
            raise answer
        return cast(Part, answer)

    def end(self) -> None:
        """Wait until the process is gone."""
        self.connection.close()
        self.process.join()


def pool_parts(
    job: Job, chunks: Iterator[Chunk], directory: RunDirectory, n_workers: int
) -> Generator[Part, None, None]:
    """Solve and write chunks in worker processes; yields what was written, as it is.

    Raises
    ------
    PlannerError
        What a worker raised, or after workers died over the same chunk three times.
    """
    tries: Counter[int] = Counter()
    with _workers(job, directory, n_workers) as workers:
        while True:
            for worker in workers:
                for chunk in islice(chunks, _IN_FLIGHT - len(worker.chunks)):
                    worker.chunks.append(chunk)
                    with suppress(OSError):  # A dead worker is found when its answer is read.
                        worker.connection.send(chunk)
            busy = {worker.connection: worker for worker in workers if worker.chunks}
            if not busy:
                return
            for worker in [busy[ready] for ready in wait(list(busy)) if ready in busy]:
                answer = worker.answer()
                if answer is not None:
                    worker.chunks.pop(0)
                    yield answer
                    continue
                _count(worker.chunks[0].index, tries, directory)
                chunks = chain(worker.chunks, chunks)
                workers[workers.index(worker)] = _new_worker(job, directory)


def _count(index: int, tries: Counter[int], directory: RunDirectory) -> None:
    """Count a death against the chunk that was being solved."""
    tries[index] += 1
    if tries[index] >= MOST_TRIES:
        got = f"got {MOST_TRIES} workers killed over part {index}"
        fix = "look for a lack of memory, or run with --workers 0"
        raise SpecError(Fault(got, "", fix, "", directory.place))


@contextmanager
def _workers(job: Job, directory: RunDirectory, n_workers: int) -> Iterator[list[_Worker]]:
    workers: list[_Worker] = []
    try:
        for _ in range(n_workers):
            workers.append(_new_worker(job, directory))
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()


def _new_worker(job: Job, directory: RunDirectory) -> _Worker:
    """A new process; its libraries use one thread each."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (theirs, job, str(directory.path))
    process = context.Process(target=_serve, args=arguments, daemon=True)
    with variables(_ONE_THREAD | same_imports()), _interrupts_held(), _without_main():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the caller's script again: workers need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach; this one has it afterwards.

    A process inherits which signals are blocked, so it is safe while it imports. Another thread
    here may take the signal all the same: its handler waits until the process has been started,
    as one that gets half of what it is sent fails with a traceback.
    """
    resource_tracker.ensure_running()  # Starting it unblocks the signal.
    held: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    holds = in_main and callable(handler)
    if holds:
        signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if holds:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _serve(connection: Connection, job: Job, path: str) -> None:
    """A worker's life: solve and write chunks until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle.
    directory, solver = RunDirectory(Path(path)), Solver(job)
    chunks: queue.Queue[Chunk] = queue.Queue()
    threading.Thread(target=_receive, args=(connection, chunks), daemon=True).start()
    while True:
        connection.send(_done(solver, directory, chunks.get()))


def _receive(connection: Connection, chunks: queue.Queue[Chunk]) -> None:
    """Take chunks from the parent; when it is gone, end the process at once."""
    while True:
        try:
            chunks.put(connection.recv())
        except (EOFError, OSError):
            os._exit(1)


def _done(solver: Solver, directory: RunDirectory, chunk: Chunk) -> Part | Exception:
    """A chunk solved and written, or what went wrong."""
    try:
        part = solve_part(solver, chunk)
        directory.write_part(chunk.index, part.data)
        return replace(part, data=b"")
    except SpecError as error:
        return error
    except PlannerError as error:
        return SpecError(Fault(str(error), place=directory.place))
    except Exception as error:
        what = f"{type(error).__name__}: {error} (part {chunk.index})"
        return RuntimeError(f"a worker failed: {what}")


CONNECT_S = 15
"""Time to wait for a scheduler."""

WORKERS_S = 5
"""Time to wait for a worker before it is said that there is none."""

_ADDRESS = re.compile(r"(tcp|tls)://([^\s/:\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")

_PER_THREAD = 3
"""Chunks in flight per thread of the cluster."""

_LEAST_WINDOW = 8


def cluster_parts(
    job: Job, chunks: Iterator[Chunk], directory: RunDirectory, address: str
) -> Generator[Part, None, None]:
    """Solve chunks on a cluster and write them here; yields what was written, as it is.

    Chunks of a worker that dies go to another one: the scheduler sees to it.

    Raises
    ------
    SpecError
        When dask is not installed, the scheduler does not answer, or a worker fails.
    """
    client = _client(address)
    with _quiet_loggers():
        try:
            yield from _parts(client, job, chunks, directory, address)
        except (OSError, CancelledError) as error:  # Its CommClosedError is an OSError.
            got = f"got no more answers from the scheduler ({_first_line(error)})"
            fix = "start a scheduler and run the same command again: what is done is kept"
            raise SpecError(Fault(got, "", fix, "", Place(address))) from None
        finally:
            with suppress(OSError, CancelledError):
                client.close()


@contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Keep the tracebacks that distributed logs, of a lost connection, from the terminal."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _parts(
    client: Any, job: Job, chunks: Iterator[Chunk], directory: RunDirectory, address: str
) -> Generator[Part, None, None]:
    from distributed import as_completed

    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:  # The work waits for the first one to join.
        sys.stderr.write(f"{address}: no workers yet; the sweep begins when one joins\n")
    flight = as_completed(loop=client.loop)
    while True:  # Enough for the threads there are, and for more to join.
        window = max(_LEAST_WINDOW, _PER_THREAD * sum(client.nthreads().values()))
        for chunk in islice(chunks, max(0, window - flight.count())):
            key = f"libra-sweep-{id(job)}-{chunk.index}"
            flight.add(client.submit(remote_part, job, chunk, key=key, pure=False))
        if flight.is_empty():
            return
        future = next(flight)
        part = _result(future, address)
        directory.write_part(part.index, part.data)
        future.release()
        yield replace(part, data=b"")


def _client(address: str) -> Any:
    """A connection to the scheduler; what is no address is refused at once."""
    expected = "expected the address of a dask scheduler, such as tcp://host:8786"
    got, fix = f"got {address!r}", ""
    if _ADDRESS.fullmatch(address):
        try:
            from distributed import Client

            return Client(address, timeout=CONNECT_S, set_as_default=False)
        except ImportError:
            fix = "pip install 'libra-planner[dask]'"
            got, expected = "got no dask.distributed", "expected it"
        except (OSError, ValueError, TimeoutError) as error:
            got = f"got {address!r} ({_first_line(error)})"
    raise SpecError(Fault(got, expected, fix, "", Place("--scheduler")))


def _result(future: Any, address: str) -> Part:
    try:
        return cast(Part, future.result())
    except PlannerError as error:
        raise SpecError(Fault(str(error), place=Place(address))) from None
    except (OSError, CancelledError):
        raise
    except Exception as error:
        got = f"got {type(error).__name__} from the cluster ({_first_line(error)})"
        fix = "look at the workers' logs, then run the same command again"
        raise SpecError(Fault(got, "", fix, "", Place(address))) from None
