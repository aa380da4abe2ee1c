"""CSV files of questions about collectives: the faults of all rows at once."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libra_planner.errors import Fault, Place, SpecError
from libra_planner.files import read_text
from libra_planner.spec.collective_cases import (
    COLUMNS,
    REQUIRED,
    CollectiveCase,
    Given,
    parse_case,
)

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
