"""Questions about single collectives: from texts of flags or cells to numbers.

Every value arrives as text with its place, so that flags and cells share one reading and
all faults are reported together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from libra_planner import allowed
from libra_planner.errors import Fault, Place, SpecError, closest, located, refuse
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.reading.tables import csv_rows, repeated_columns
from libra_planner.step.collectives.algorithms import (
    MAX_CHUNKS,
    Network,
    algorithm_fault,
    algorithm_named,
    collective_kind,
    schedule_fault,
)
from libra_planner.step.collectives.schedules import Schedule, Schedules
from libra_planner.units import BYTES_PER_S_PER_GBPS, NS_PER_S, UNITS
from libra_planner.workload.operations import Collective, CollectiveKind, Group

Result = TypeVar("Result")

REQUIRED = ("kind", "size_bytes", "topology", "bandwidth_GBps")
COLUMNS = (*REQUIRED, "latency_ns", "chunks", "algorithms")
"""Columns of a file of collectives, and names of the same values given as flags."""

AUTO = "auto"
_SIZES = allowed.BYTES
_GBPS = (1e-12, 1e9)
_NS = allowed.LATENCY_NS
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
    def is_ideal_only(self) -> bool:
        """Whether its bytes are told, but not its messages: no exact time (C13)."""
        return bool(self.why_ideal_only)

    @property
    def why_ideal_only(self) -> str:
        """Why; nothing where messages are told."""
        if self.network.topology.stacks:
            return "chunks and latency are not modelled where tiers share a port"
        if self.network.schedule(self.collective.kind) is not Schedule.HIERARCHICAL:
            return "chunks and latency are modelled for one dimension after the other"
        return ""

    @property
    def group(self) -> Group:
        """All NPUs of the fabric."""
        topology = self.network.topology
        return Group(topology.sizes, (1,) * topology.n_dims)


def parse_case(
    given: Mapping[str, Given], *, in_network: bool = False, schedule: str | None = None
) -> CollectiveCase:
    """A case from its values by name (:data:`COLUMNS`).

    Parameters
    ----------
    given : texts with places; latency, chunks and algorithms may be left out (0 ns, 1,
        the usual one of each block).
    in_network : switches reduce.
    schedule : hierarchical, ring or direct (C13); ``None`` for the usual one.

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
    faults: list[Fault] = []

    def read(name: str, parse: Callable[[Given], Result]) -> Result | None:
        """What ``parse`` makes of a value; its faults noted at the value's place."""
        if name not in given:
            return None
        one = given[name]
        try:
            return parse(one)
        except SpecError as error:
            faults.extend(replace(f, path=one.path, place=one.place) for f in error.faults)
            return None

    kind = read("kind", lambda one: collective_kind(one.text))
    size_bytes = read("size_bytes", _size_bytes)
    topology = read("topology", lambda one: parse_topology(one.text))
    n_chunks = read("chunks", _chunks) if "chunks" in given else 1
    bandwidth = read("bandwidth_GBps", lambda one: _bandwidths(one, topology))
    latency = read("latency_ns", lambda one: _latencies(one, topology))
    named = read("algorithms", lambda one: _algorithms(one, topology, kind))
    reducing, fault = _reducing(kind, topology) if in_network else (frozenset(), None)
    if fault is not None:
        faults.append(fault.located(given["kind"].place))
    if faults or kind is None or size_bytes is None or topology is None or not bandwidth:
        raise SpecError(*faults)
    latency_s = latency or (0.0,) * topology.n_dims
    network = Network(topology, latency_s, tuple(named or [None] * topology.n_dims), reducing)
    if schedule is not None:
        network = replace(network, schedules=_schedules(kind, schedule, network))
    case = CollectiveCase(Collective(kind, size_bytes, "all"), network, bandwidth, n_chunks)
    if case.is_ideal_only:
        refuse(_unmodelled(case, given))
    return case


def _schedules(kind: CollectiveKind, name: str, network: Network) -> Schedules:
    """Schedules with that of a kind.

    Raises
    ------
    SpecError
        For one that the kind does not have, or that does not go with the topology.
    """
    place, is_exchange = Place("--schedule"), kind is CollectiveKind.ALL_TO_ALL
    other = Schedule.DIRECT if is_exchange else Schedule.RING
    if name not in (Schedule.HIERARCHICAL, other):
        expected = f"expected {Schedule.HIERARCHICAL} or {other}"
        raise SpecError(Fault(f"got {name} for an {kind}", expected, place=place))
    schedules = Schedules(all_to_all=Schedule(name)) if is_exchange else Schedules(Schedule(name))
    if fault := schedule_fault(replace(network, schedules=schedules)):
        raise SpecError(replace(fault, place=place))
    return schedules


def _unmodelled(case: CollectiveCase, given: Mapping[str, Given]) -> Iterator[Fault]:
    """What is asked of a case that is told without messages."""
    asked = {
        "latency_ns": any(case.network.latency_s),
        "chunks": case.n_chunks != 1,
        "algorithms": any(case.network.algorithms),
    }
    for name in (name for name in asked if asked[name]):
        got, fix = f"got {name} for {case.network.topology}", "leave it out"
        expected = f"expected none: {case.why_ideal_only}"
        yield Fault(got, expected, fix, given[name].path, given[name].place)


def _reducing(
    kind: CollectiveKind | None, topology: Topology | None
) -> tuple[frozenset[int], Fault | None]:
    """The switches, where an all-reduce asks them to reduce."""
    dimensions = topology.dimensions if topology else ()
    switches = frozenset(i for i, d in enumerate(dimensions) if d.block.is_switched)
    if kind is not None and kind is not CollectiveKind.ALL_REDUCE:
        expected = "expected all-reduce with in-network reduction"
        return switches, Fault(f"got {kind}", expected, "leave it out")
    if topology is not None and not switches:
        expected = "expected a switch for in-network reduction"
        return switches, Fault(f"got {topology}", expected, "leave it out")
    return switches, None


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


def size_of(one: Given) -> float:
    """A size in bytes.

    Raises
    ------
    SpecError
        For anything else, at the value's place.
    """
    with located(one.place):
        return _size_bytes(one)


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
    n = "1 value" if len(parts) == 1 else f"{len(parts)} values"
    raise SpecError(Fault(f"got {n} ({one.text!r})", expected, fix))


def _bandwidths(one: Given, topology: Topology | None) -> tuple[float, ...]:
    what = "a number of GB/s per NPU"
    parts = _per_dimension(one, topology, single=False)
    return tuple(_number(part, *_GBPS, what) * BYTES_PER_S_PER_GBPS for part in parts)


def _latencies(one: Given, topology: Topology | None) -> tuple[float, ...]:
    parts = _per_dimension(one, topology, single=True)
    return tuple(_number(part, *_NS, "a number of ns") / NS_PER_S for part in parts)


def _algorithms(
    one: Given, topology: Topology | None, kind: CollectiveKind | None
) -> list[Algorithm | None]:
    """The algorithms, each of which can run on its dimension."""
    parts = _per_dimension(one, topology, single=False)
    named = [None if part.casefold() == "default" else algorithm_named(part) for part in parts]
    if kind is None or topology is None:
        return named
    pairs = zip(topology.dimensions, named, strict=True)
    found = [algorithm_fault(kind, d, d.size, name) for d, name in pairs if name is not None]
    if faults := [fault for fault in found if fault is not None]:
        raise SpecError(*faults)
    return named


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
    schedule: str | None = None,
    reserved: tuple[str, ...] = (),
) -> CaseFile:
    """Read a CSV file of collectives.

    Parameters
    ----------
    path : the file; its first line names the columns, of which those in :data:`COLUMNS`
        count and others are carried along.
    defaults : values for blank cells and missing columns.
    in_network : switches reduce, in every row.
    schedule : of every row, as :func:`parse_case` has it.
    reserved : columns that the caller adds.

    Raises
    ------
    SpecError
        With the faults of all rows, each with file and line.
    """
    (line, header), *lines = csv_rows(path, ends=True)
    columns = tuple(cell.strip() for cell in header)
    _check_columns(columns, Place(str(path), line), defaults, reserved)
    faults: list[Fault] = []
    cases = []
    for line, cells in lines:
        try:
            given = _row(columns, cells, Place(str(path), line), defaults)
            cases.append(parse_case(given, in_network=in_network, schedule=schedule))
        except SpecError as error:
            faults += error.faults
    refuse(faults)
    return CaseFile(columns, tuple(tuple(cells) for _, cells in lines), tuple(cases))


def _check_columns(
    columns: tuple[str, ...],
    place: Place,
    defaults: Mapping[str, Given],
    reserved: tuple[str, ...],
) -> None:
    faults = repeated_columns(columns)
    absent = [known for known in COLUMNS if known not in columns]
    for name in columns:
        near = difflib.get_close_matches(name, absent, 1, _NEAR) if name not in COLUMNS else []
        if name in reserved:
            got = f"got the column {name!r}, which this command adds"
            faults.append(Fault(got, "expected input columns", "rename it"))
        elif near:
            got, fix = f"got the column {name!r}", f"did you mean {near[0]}?"
            faults.append(Fault(got, f"expected {', '.join(COLUMNS)}", fix))
    missing = [name for name in REQUIRED if name not in columns and name not in defaults]
    if missing:
        fix = "add it, or give the flag as a default for all rows"
        faults.append(Fault(f"got no column {', '.join(missing)}", "", fix))
    if faults:
        raise SpecError(*(fault.located(place) for fault in faults))


def _row(
    columns: Sequence[str], cells: Sequence[str], place: Place, defaults: Mapping[str, Given]
) -> dict[str, Given]:
    """Values of one row: its cells where they are not blank, else the defaults."""
    if len(cells) != len(columns):
        expected = f"expected {len(columns)}, as the first line has"
        raise SpecError(Fault(f"got {len(cells)} cells", expected, "", "", place))
    cells_by_name = zip(columns, map(str.strip, cells), strict=True)
    own = {n: Given(cell, place, n) for n, cell in cells_by_name if n in COLUMNS and cell}
    given = {**defaults, **own}
    missing = [name for name in REQUIRED if name not in given]
    if missing:
        fix = "fill it, or give the flag as a default"
        raise SpecError(Fault(f"got no {', '.join(missing)}", "", fix, "", place))
    return given
