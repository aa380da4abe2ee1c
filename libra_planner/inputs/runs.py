"""Collectives on systems that are named: ``--system`` and files with ``gpu_type`` (C20)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.errors import Fault, SpecError
from libra_planner.reading.tables import csv_rows, read_carried_table
from libra_planner.step.collectives.algorithms import collective_kind
from libra_planner.step.collectives.measured import (
    ETHERNET,
    INFINIBAND,
    PUBLISHED,
    PUBLISHED_BANDS,
    Bands,
    Constants,
    Ranks,
    measured_time_s,
    scale_up,
)
from libra_planner.units import GBIT_PER_S_BPS
from libra_planner.workload.volumes import SEND_RECV

COLUMNS = ("gpu_type", "nodes", "gpus_per_node", "collective", "message_bytes")
"""Columns that a file needs; ``nics_per_node``, ``nic_gbps`` and ``interconnect`` are read, too."""

RESERVED = ("message", "predicted_time_s")
"""Columns that an answer adds."""

_SENDS = re.compile(r"send.?recv|sendrecv|p2p", re.I)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_ETHERNET = re.compile(r"ethernet|roce|efa|tcpx|ether", re.I)


def kind_named(text: str) -> str:
    """The kind of a collective, or a send from one NPU to another.

    >>> kind_named("alltoall"), kind_named("sendrecv")
    ('all-to-all', 'send_recv')
    """
    return SEND_RECV if _SENDS.fullmatch(text.strip()) else collective_kind(text).value


def network_named(text: str) -> str:
    """The network of a description; InfiniBand where it names none.

    >>> network_named("NVLink4+NVSwitch; RoCE"), network_named("")
    ('ethernet', 'infiniband')
    """
    return ETHERNET if _ETHERNET.search(text) else INFINIBAND


@dataclass(frozen=True)
class Run:
    """One collective on a named system, by the published law or that of a user's cluster."""

    kind: str
    size_bytes: float
    ranks: Ranks
    constants: Constants = PUBLISHED
    bands: Bands = PUBLISHED_BANDS

    @property
    def time_s(self) -> float:
        """Its time by the law of measured collectives."""
        return measured_time_s(self.kind, self.size_bytes, self.ranks, self.constants)

    @property
    def error_fraction(self) -> float:
        """What to expect of its error."""
        return self.bands.error_fraction(self.kind, self.size_bytes, self.ranks)


@dataclass(frozen=True)
class RunFile:
    """A CSV file of collectives on named systems.

    Parameters
    ----------
    columns, rows : its texts.
    lines : of the file that the rows end on.
    runs : what each row asks, or why it cannot be answered.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    lines: tuple[int, ...] = field(repr=False)
    runs: tuple[Run | SpecError, ...] = field(repr=False)

    def answers(self) -> Iterator[tuple[str, str]]:
        """Time and message of every row; one of them is empty."""
        for run in self.runs:
            yield ("", str(run)) if isinstance(run, SpecError) else (repr(run.time_s), "")


def is_run_file(path: str | Path) -> bool:
    """Whether the header of a file of collectives names systems, not topologies."""
    columns = {cell.strip() for cell in next(csv_rows(path))[1]}
    mixed = columns & {"topology", "bandwidth_GBps"}
    if not columns & {"gpu_type", "message_bytes"}:
        return False
    if mixed:
        got = f"got the columns gpu_type or message_bytes and {', '.join(sorted(mixed))}"
        fix = "make a file of each kind"
        raise SpecError.at(str(path), got, "expected systems or topologies", fix)
    return True


def read_run_file(path: str | Path, node_nic_Bps: float = 0.0) -> RunFile:
    """Read a file of collectives on named systems; other columns are carried along.

    Parameters
    ----------
    path : of the file.
    node_nic_Bps : of all NICs of a node, for rows that do not say.

    Raises
    ------
    SpecError
        For columns that are missing or repeated, and rows of another length. What the law cannot
        answer is a message of its row.
    """
    table = read_carried_table(path, required=COLUMNS, reserved=RESERVED)
    runs = tuple(_run(cells, node_nic_Bps) for cells in table.cells())
    return RunFile(table.columns, table.rows, table.ends, runs)


def _run(cells: Mapping[str, str], node_nic_Bps: float) -> Run | SpecError:
    try:
        nics = cell_number(cells, "nics_per_node", 0) * cell_number(cells, "nic_gbps", 0)
        ranks = Ranks(
            scale_up(cells["gpu_type"]),
            int(cell_number(cells, "nodes", whole=10**6)),
            int(cell_number(cells, "gpus_per_node", whole=1024)),
            nics * GBIT_PER_S_BPS or node_nic_Bps,
            network_named(cells.get("interconnect", "")),
        )
        return Run(kind_named(cells["collective"]), cell_number(cells, "message_bytes"), ranks)
    except SpecError as error:
        return error


def cell_number(
    cells: Mapping[str, str], name: str, default: float | None = None, whole: int = 0
) -> float:
    """A number above 0 in a row; ``whole`` is the most of a whole one.

    Raises
    ------
    SpecError
        For anything else; without a default for a blank cell, too.
    """
    text = cells.get(name, "").strip()
    if not text and default is not None:
        return default
    value = float(text) if _NUMBER.fullmatch(text) else -1.0
    fits = 1 <= value <= whole and value == int(value) if whole else 0 < value < 1e18
    if not fits and not (default is not None and value == 0):
        expected = f"a whole number from 1 to {whole:,}" if whole else "a plain number above 0"
        raise SpecError(Fault(f"got {text!r}", f"expected {expected}", path=name))
    return value
