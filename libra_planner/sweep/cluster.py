"""The same chunks on a dask.distributed cluster, a bounded window of them in flight."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from libra_planner.errors import Fault, Place, PlannerError, SpecError
from libra_planner.sweep.chunks import Chunk, Job
from libra_planner.sweep.store import RunDirectory
from libra_planner.sweep.workers import Part, remote_part

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
    with _quiet(), _connected(client, address):
        yield from _parts(client, job, chunks, directory, address)


@contextmanager
def _connected(client: Any, address: str) -> Iterator[None]:
    """Close the connection at the end; say it where the cluster goes away before."""
    try:
        yield
    except (OSError, CancelledError) as error:  # Of distributed, CommClosedError is an OSError.
        got = f"got no more answers from the scheduler ({_first_line(error)})"
        fix = "start a scheduler and run the same command again: what is done is kept"
        raise SpecError(Fault(got, "", fix, "", Place(address))) from None
    finally:
        with suppress(OSError, CancelledError):
            client.close()


@contextmanager
def _quiet() -> Iterator[None]:
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

    _await_workers(client, address)
    flight = as_completed(loop=client.loop)
    _fill(client, flight, job, chunks)
    for future in flight:
        part = _result(future, address)
        directory.write_part(part.index, part.data)
        future.release()
        _fill(client, flight, job, chunks)
        yield replace(part, data=b"")


def _await_workers(client: Any, address: str) -> None:
    """Say so where a scheduler has no workers; the work waits for the first one to join."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        sys.stderr.write(f"{address}: no workers yet; the sweep begins when one joins\n")


def _client(address: str) -> Any:
    """A connection to the scheduler; what is no address is refused at once."""
    expected = "expected the address of a dask scheduler, such as tcp://host:8786"
    if not _ADDRESS.fullmatch(address):
        raise SpecError(Fault(f"got {address!r}", expected, "", "", Place("--scheduler")))
    try:
        from distributed import Client
    except ImportError:
        fix = "pip install 'libra-planner[dask]'"
        place = Place("--scheduler")
        raise SpecError(Fault("got no dask.distributed", "expected it", fix, "", place)) from None
    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        fault = Fault(
            f"got {address!r} ({_first_line(error)})", expected, "", "", Place("--scheduler")
        )
        raise SpecError(fault) from None


def _fill(client: Any, flight: Any, job: Job, chunks: Iterator[Chunk]) -> None:
    """Submit chunks up to the window: enough for the threads there are, and for more to join."""
    window = max(_LEAST_WINDOW, _PER_THREAD * sum(client.nthreads().values()))
    for chunk in islice(chunks, max(0, window - flight.count())):
        key = f"libra-sweep-{id(job)}-{chunk.index}"
        flight.add(client.submit(remote_part, job, chunk, key=key, pure=False))


def _result(future: Any, address: str) -> Part:
    try:
        part: Part = future.result()
    except PlannerError as error:
        raise SpecError(Fault(str(error), place=Place(address))) from None
    except (OSError, CancelledError):
        raise
    except Exception as error:
        got = f"got {type(error).__name__} from the cluster ({_first_line(error)})"
        fix = "look at the workers' logs, then run the same command again"
        raise SpecError(Fault(got, "", fix, "", Place(address))) from None
    return part
