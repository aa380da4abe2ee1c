"""Questions about single collectives: from texts of flags or cells to numbers.

Every value arrives as text with its place, so that flags and cells share one reading and
all faults are reported together.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.files import read_text
from libra_planner.step.collectives.algorithms import (
    Network,
    algorithm_fault,
    algorithm_named,
    collective_kind,
)
from libra_planner.step.collectives.flowshop import MAX_CHUNKS
from libra_planner.units import BYTES_PER_S_PER_GBPS, NS_PER_S, UNITS
from libra_planner.workload.operations import Collective, CollectiveKind, Group

Result = TypeVar("Result")

REQUIRED = ("kind", "size_bytes", "topology", "bandwidth_GBps")
COLUMNS = (*REQUIRED, "latency_ns", "chunks", "algorithms")
"""Columns of a file of collectives, and names of the same values given as flags."""

AUTO = "auto"
_SIZES = (1e-3, 1e18)
_GBPS = (1e-12, 1e9)
_NS = (0.0, 1e12)
"""Ranges beyond which a number is a slip of the keyboard."""

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_QUANTITY = re.compile(rf"({_NUMBER.pattern})\s*([A-Za-z/]*)", re.ASCII)


@dataclass(frozen=True)
class Given:
    """One value as the user gave it.

    Parameters
    ----------
    text, place, path : what stands where, under which name.
    in_file : a cell: lists separated by spaces, a size in bytes; else a flag: lists
        separated by commas, a size with its unit.
    """

    text: str
    place: Place
    path: str = ""
    in_file: bool = True

    @property
    def parts(self) -> list[str]:
        """The entries of a list."""
        return [part.strip() for part in self.text.split(None if self.in_file else ",")]


@dataclass(frozen=True)
class CollectiveCase:
    """One collective over a whole fabric.

    Parameters
    ----------
    collective : kind and full vector.
    network : topology, latency, algorithms.
    bandwidth_bytes_per_s : shape (n_dims,).
    n_chunks : chunks; ``None`` for the best number.
    """

    collective: Collective
    network: Network
    bandwidth_bytes_per_s: tuple[float, ...]
    n_chunks: int | None = 1

    @property
    def group(self) -> Group:
        """All NPUs of the fabric."""
        topology = self.network.topology
        return Group(topology.sizes, (1,) * topology.n_dims)


def parse_case(given: Mapping[str, Given], *, in_network: bool = False) -> CollectiveCase:
    """A case from its values by name (:data:`COLUMNS`).

    Parameters
    ----------
    given : texts with places; latency, chunks and algorithms may be left out (0 ns, 1,
        the usual one of each block).
    in_network : switches reduce.

    Raises
    ------
    SpecError
        With every fault, each at its place.

    Examples
    --------
    >>> texts = {"kind": "AllReduce", "size_bytes": "64", "topology": "RI(4)"}
    >>> texts |= {"bandwidth_GBps": "2"}
    >>> case = parse_case({name: Given(text, Place("cell")) for name, text in texts.items()})
    >>> case.collective.kind.value, case.bandwidth_bytes_per_s, case.n_chunks
    ('all-reduce', (2000000000.0,), 1)
    """
    reader = _CaseReader(given)
    kind = reader.read("kind", lambda one: collective_kind(one.text))
    size_bytes = reader.read("size_bytes", _size_bytes)
    topology = reader.read("topology", lambda one: parse_topology(one.text))
    n_chunks = reader.read("chunks", _chunks) if "chunks" in given else 1
    bandwidth = reader.read("bandwidth_GBps", lambda one: _bandwidths(one, topology))
    latency = reader.read("latency_ns", lambda one: _latencies(one, topology))
    named = reader.read("algorithms", lambda one: _algorithms(one, topology))
    if kind is not None and topology is not None:
        reader.check_algorithms(kind, topology, named)
    reducing = reader.reducing(kind, topology) if in_network else frozenset()
    if reader.faults or kind is None or size_bytes is None or topology is None or not bandwidth:
        raise SpecError(*reader.faults)
    latency_s = latency or (0.0,) * topology.n_dims
    network = Network(topology, latency_s, tuple(named or [None] * topology.n_dims), reducing)
    return CollectiveCase(Collective(kind, size_bytes, "all"), network, bandwidth, n_chunks)


@dataclass
class _CaseReader:
    given: Mapping[str, Given]
    faults: list[Fault] = field(default_factory=list)

    def read(self, name: str, parse: Callable[[Given], Result]) -> Result | None:
        """What ``parse`` makes of a value; its faults noted at the value's place."""
        if name not in self.given:
            return None
        one = self.given[name]
        try:
            return parse(one)
        except SpecError as error:
            self.faults += [replace(f, path=one.path, place=one.place) for f in error.faults]
            return None

    def check_algorithms(
        self, kind: CollectiveKind, topology: Topology, named: list[Algorithm | None] | None
    ) -> None:
        """Note the algorithms that cannot run on their dimension."""
        for dimension, algorithm in zip(topology.dimensions, named or [], strict=False):
            if algorithm is not None:
                fault = algorithm_fault(kind, dimension, dimension.size, algorithm)
                if fault is not None:
                    one = self.given["algorithms"]
                    self.faults.append(fault.located(one.place, one.path))

    def reducing(self, kind: CollectiveKind | None, topology: Topology | None) -> frozenset[int]:
        """The switches, where an all-reduce asks them to reduce."""
        dimensions = topology.dimensions if topology else ()
        switches = frozenset(i for i, d in enumerate(dimensions) if d.block.is_switched)
        place = self.given["kind"].place
        if kind is not None and kind is not CollectiveKind.ALL_REDUCE:
            expected = "expected all-reduce with in-network reduction"
            self.faults.append(Fault(f"got {kind}", expected, "leave it out", "", place))
        elif topology is not None and not switches:
            expected = "expected a switch for in-network reduction"
            self.faults.append(Fault(f"got {topology}", expected, "leave it out", "", place))
        return switches


def _number(text: str, low: float, high: float, what: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else None
    if value is None or not low <= value <= high:
        raise SpecError(Fault(f"got {text!r}", f"expected {what} from {low:g} to {high:g}"))
    return value


def parse_number(one: Given, low: float, high: float) -> float:
    """A plain number from ``low`` to ``high``.

    Raises
    ------
    SpecError
        For anything else, at the value's place.
    """
    try:
        return _number(one.text.strip(), low, high, "a number")
    except SpecError as error:
        raise error.located(one.place, one.path) from None


def _size_bytes(one: Given) -> float:
    """Plain bytes in a column, whose name carries the unit; a quantity in a flag."""
    if one.in_file:
        return _number(one.text.strip(), *_SIZES, "a number of bytes")
    match = _QUANTITY.fullmatch(one.text.strip())
    unit = match[4] if match else ""
    if match is None or unit not in UNITS["size"]:
        number = match[1] if match and not unit else "64"
        fix = f"write e.g. {number}B or {number}MiB" if not unit else closest(unit, UNITS["size"])
        raise SpecError(Fault(f"got {one.text!r}", "expected a size with its unit", fix))
    value = float(match[1]) * UNITS["size"][unit]
    if not _SIZES[0] <= value <= _SIZES[1]:
        expected = f"expected {_SIZES[0]:g} to {_SIZES[1]:g} bytes"
        raise SpecError(Fault(f"got {one.text!r}", expected))
    return value


def _chunks(one: Given) -> int | None:
    text = one.text.strip()
    if text.casefold() == AUTO:
        return None
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not 1 <= int(text) <= MAX_CHUNKS:
        expected = f"expected a whole number from 1 to {MAX_CHUNKS:,}, or auto"
        raise SpecError(Fault(f"got {one.text!r}", expected))
    return int(text)


def _per_dimension(one: Given, topology: Topology | None, *, single: bool) -> list[str]:
    """The entries of a list of one per dimension; ``single``: or one for all."""
    parts = one.parts
    if topology is None or len(parts) == topology.n_dims:
        return parts
    if single and len(parts) == 1:
        return parts * topology.n_dims
    expected = f"expected {topology.n_dims}, one for each dimension of {topology}"
    how = "spaces" if one.in_file else "commas"
    fix = f"separate them by {how}, innermost first"
    raise SpecError(Fault(f"got {len(parts)} values ({one.text!r})", expected, fix))


def _bandwidths(one: Given, topology: Topology | None) -> tuple[float, ...]:
    what = "a number of GB/s per NPU"
    parts = _per_dimension(one, topology, single=False)
    return tuple(_number(part, *_GBPS, what) * BYTES_PER_S_PER_GBPS for part in parts)


def _latencies(one: Given, topology: Topology | None) -> tuple[float, ...]:
    parts = _per_dimension(one, topology, single=True)
    return tuple(_number(part, *_NS, "a number of ns") / NS_PER_S for part in parts)


def _algorithms(one: Given, topology: Topology | None) -> list[Algorithm | None]:
    parts = _per_dimension(one, topology, single=False)
    return [None if part.casefold() == "default" else algorithm_named(part) for part in parts]


_NEAR = 0.8
"""Similarity from which an unknown column is taken for a slip of the keyboard."""


@dataclass(frozen=True)
class CaseFile:
    """A CSV file of collectives: its columns and rows as text, and what they mean."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    cases: tuple[CollectiveCase, ...] = field(repr=False)


def read_case_file(
    path: str | Path,
    defaults: Mapping[str, Given],
    *,
    in_network: bool = False,
    reserved: tuple[str, ...] = (),
) -> CaseFile:
    """Read a CSV file of collectives.

    Parameters
    ----------
    path : the file; its first line names the columns, of which those in :data:`COLUMNS`
        count and others are carried along.
    defaults : values for blank cells and missing columns.
    in_network : switches reduce, in every row.
    reserved : columns that the caller adds.

    Raises
    ------
    SpecError
        With the faults of all rows, each with file and line.
    """
    file = str(path)
    # A cell may hold line breaks: only the reader knows where a row ends.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        lines = [(reader.line_num, tuple(cells)) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        place = Place(file, reader.line_num)
        raise SpecError(Fault(f"got malformed CSV ({error})", "", "", "", place)) from None
    if not lines:
        raise SpecError(Fault("got an empty file", "expected column names", "", "", Place(file)))
    columns = tuple(cell.strip() for cell in lines[0][1])
    _check_columns(columns, Place(file, lines[0][0]), defaults, reserved)
    faults: list[Fault] = []
    cases = []
    for number, cells in lines[1:]:
        try:
            given = _row(columns, cells, Place(file, number), defaults)
            cases.append(parse_case(given, in_network=in_network))
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(*faults)
    return CaseFile(columns, tuple(cells for _, cells in lines[1:]), tuple(cases))


def _check_columns(
    columns: tuple[str, ...],
    place: Place,
    defaults: Mapping[str, Given],
    reserved: tuple[str, ...],
) -> None:
    faults = [
        Fault(f"got the column {name!r} twice", "expected it once", "", "", place)
        for name in dict.fromkeys(columns)
        if columns.count(name) > 1
    ]
    absent = [known for known in COLUMNS if known not in columns]
    for name in columns:
        near = difflib.get_close_matches(name, absent, 1, _NEAR) if name not in COLUMNS else []
        if name in reserved:
            got = f"got the column {name!r}, which this command adds"
            faults.append(Fault(got, "expected input columns", "rename it", "", place))
        elif near:
            got, fix = f"got the column {name!r}", f"did you mean {near[0]}?"
            faults.append(Fault(got, f"expected {', '.join(COLUMNS)}", fix, "", place))
    missing = [name for name in REQUIRED if name not in columns and name not in defaults]
    if missing:
        fix = "add it, or give the flag as a default for all rows"
        faults.append(Fault(f"got no column {', '.join(missing)}", "", fix, "", place))
    if faults:
        raise SpecError(*faults)


def _row(
    columns: tuple[str, ...], cells: tuple[str, ...], place: Place, defaults: Mapping[str, Given]
) -> dict[str, Given]:
    """Values of one row: its cells where they are not blank, else the defaults."""
    if len(cells) != len(columns):
        got = f"got {len(cells)} cells"
        raise SpecError(
            Fault(got, f"expected {len(columns)}, as the first line has", "", "", place)
        )
    given = dict(defaults)
    for name, cell in zip(columns, cells, strict=True):
        if name in COLUMNS and cell.strip():
            given[name] = Given(cell.strip(), place, name)
    missing = [name for name in REQUIRED if name not in given]
    if missing:
        fix = "fill it, or give the flag as a default"
        raise SpecError(Fault(f"got no {', '.join(missing)}", "", fix, "", place))
    return given
