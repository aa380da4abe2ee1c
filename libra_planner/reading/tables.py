"""CSV tables of up to millions of rows: columns by name, faults with the numbers of their lines.

Unlike :mod:`libra_planner.inputs.collectives` a table is checked column by column, and only
the first faults are spelt out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import (
    Fault,
    Place,
    SpecError,
    closest,
    got_several,
    more_faults,
    refuse,
    shown,
)
from libra_planner.files import MAX_BYTES, read_text
from libra_planner.reading.meant_numbers import with_point

MOST_BYTES = 1_000_000_000
"""Largest table read."""

MOST_FAULTS = 10
"""Faults of a table that are listed; the rest is counted."""

_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*", re.ASCII)
_NOT_IN_NUMBERS = re.compile(r"[^-+.0-9eE,]")


@dataclass
class TableFaults:
    """Faults found so far in a table: all are counted, the first are kept."""

    file: str
    n_faults: int = 0
    kept: list[tuple[int, Fault]] = field(default_factory=list)

    def add(self, lines: NDArray[np.int64], fault: Callable[[int], Fault]) -> None:
        """Note one fault for each of ``lines``, in order; ``fault(i)`` is that of the i-th."""
        self.n_faults += len(lines)
        for i, line in enumerate(lines[:MOST_FAULTS].tolist()):
            self.kept.append((line, fault(i).located(Place(self.file, line))))

    def check(self) -> None:
        """Raise :class:`SpecError` if there are any, in the order of the file."""
        if not self.n_faults:
            return
        self.kept.sort(key=lambda pair: pair[0])
        faults = [fault for _, fault in self.kept[:MOST_FAULTS]]
        if self.n_faults > len(faults):
            faults.append(more_faults(self.n_faults - len(faults), Place(self.file)))
        raise SpecError(*faults)


@dataclass(frozen=True)
class Table:
    """Rows of a CSV file, column by column.

    Parameters
    ----------
    cells : text of every row by the name of its column.
    lines : line of the file that each row begins on, shape (n_rows,).
    faults : of rows that were left out, to which those of the values are added.
    delimiter : between its cells; with semicolons a comma is that of a number.
    """

    cells: Mapping[str, Sequence[str]] = field(repr=False)
    lines: NDArray[np.int64] = field(repr=False)
    faults: TableFaults = field(repr=False)
    delimiter: str = ","

    @property
    def n_rows(self) -> int:
        """Rows with as many cells as there are columns."""
        return int(self.lines.size)

    def refuse(
        self, bad: NDArray[np.bool_], column: str, expected: str | Callable[[int], str]
    ) -> None:
        """Note the cells of a column where ``bad``, shape (n_rows,), as faults."""
        rows = np.flatnonzero(bad)

        def fault(i: int) -> Fault:
            row = int(rows[i])
            text = expected if isinstance(expected, str) else expected(row)
            cell = self.cells[column][row]
            return Fault(f"got {shown(cell) if cell else 'nothing'}", text, "", column)

        self.faults.add(self.lines[rows], fault)

    def check(self, what: str) -> None:
        """Raise the faults so far, or that there are no rows of ``what``."""
        self.faults.check()
        if not self.n_rows:
            place = Place(self.faults.file)
            raise SpecError(Fault(f"got no {what}", "expected one row or more", "", "", place))

    def refuse_repeated(self, column: str) -> None:
        """Note every cell of a column that an earlier row has too."""
        cells = self.cells[column]
        if len(set(cells)) == len(cells):
            return
        first: dict[str, int] = {}
        at = np.array([first.setdefault(cell, row) for row, cell in enumerate(cells)])
        self.refuse(
            at != np.arange(len(cells)),
            column,
            lambda row: f"expected it once (first on line {self.lines[at[row]]})",
        )

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Cells as plain decimal numbers, shape (n_rows,); NaN where one is not."""
        cells, match = self.cells[column], _NUMBER.fullmatch
        if not _NOT_IN_NUMBERS.search(",".join(cells)):
            with suppress(ValueError):  # A cell may have two points.
                return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        values = (float(cell) if match(cell) else np.nan for cell in cells)
        return np.fromiter(values, dtype=np.float64, count=len(cells))

    def with_points(self, columns: Sequence[str], *, plain: Sequence[str] = ()) -> Table:
        """The same with points in numbers where semicolons stand between the cells.

        Parameters
        ----------
        columns : of numbers.
        plain : those whose numbers are small: three digits behind a mark are no thousands.

        Raises
        ------
        SpecError
            For numbers that may be read in two ways, each with what to write.
        """
        cells, faults = dict(self.cells), list[Fault]()
        for name in columns if self.delimiter == ";" else ():
            if name not in cells:
                continue
            own = list(map(str.strip, cells[name]))
            for row, text in enumerate(own):
                try:
                    own[row] = text.replace(",", ".") if name in plain else with_point(text)
                except ValueError as error:
                    place = Place(self.faults.file, int(self.lines[row]))
                    expected = "expected a number that can be read in one way beside decimal commas"
                    faults.append(Fault(f"got {shown(text)}", expected, str(error), name, place))
            cells[name] = own
        refuse(faults)
        return replace(self, cells=cells)

    def blank(self, column: str) -> NDArray[np.bool_]:
        """Where a column has nothing, shape (n_rows,)."""
        cells = self.cells[column]
        return np.fromiter((not cell.strip() for cell in cells), np.bool_, count=len(cells))


def read_table(
    path: str | Path,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
    spellings: Mapping[str, str] | None = None,
    semicolons: bool = False,
) -> Table:
    """Read a CSV file whose first line names the columns, in any order.

    Parameters
    ----------
    path : the file. A byte-order mark, any line ends, quotes and blank lines are fine.
    required, optional : columns by name; others are refused.
    spellings : other names of these.
    semicolons : whether a first line that has them may say that they stand between the cells.

    Raises
    ------
    SpecError
        For malformed CSV, no header, or wrong columns. Rows of the wrong length are noted in
        the table's faults: its user adds to them and calls ``faults.check()``.
    """
    file = str(path)
    rows = csv_rows(path, most_bytes=MOST_BYTES)
    line, header = next(rows)
    delimiter = ","
    if semicolons and sum(name.count(";") for name in header) >= len(header):
        delimiter = ";"
        rows = csv_rows(path, most_bytes=MOST_BYTES, delimiter=delimiter)
        line, header = next(rows)
    columns = [(spellings or {}).get(name.strip(), name.strip()) for name in header]
    _check_columns(columns, required, [*required, *optional], Place(file, line))
    flat: list[str] = []
    lines, ragged, lengths = [], [], []
    for line, cells in rows:  # A list of rows would keep the garbage collector busy for seconds.
        if len(cells) == len(columns):
            lines.append(line)
            flat += cells
        else:
            ragged.append(line)
            lengths.append(len(cells))
    faults, expected = TableFaults(file), f"expected {len(columns)}, as the first line has"
    faults.add(np.array(ragged), lambda i: Fault(got_several(lengths[i], "cell"), expected))
    by_name = {name: flat[i :: len(columns)] for i, name in enumerate(columns)}
    return Table(by_name, np.array(lines, dtype=np.int64), faults, delimiter)


def is_csv(path: Path, names: Sequence[str]) -> bool:
    """Whether a file is CSV: by its ending, else by a first line with some names of columns."""
    suffix = path.suffix.lower()
    if suffix in (*_CSV, *_YAML):
        return suffix in _CSV
    first = read_text(path).lstrip("\ufeff").split("\n", 1)[0]
    return {*names} <= {name.strip().strip('"') for name in re.split("[,;]", first)}


_CSV, _YAML = (".csv", ".txt"), (".yaml", ".yml", ".json")


def csv_rows(
    path: str | Path, *, most_bytes: int = MAX_BYTES, ends: bool = False, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line it begins on; a cell may hold line breaks.

    Parameters
    ----------
    path, most_bytes : the file, and its largest size.
    ends : whether to give the line that a row ends on instead.
    delimiter : between the cells of a row.

    Raises
    ------
    SpecError
        For malformed CSV, or a file without rows.
    """
    file, line, n_rows = str(path), 1, 0
    text = read_text(path, most_bytes=most_bytes)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cells) and any(map(str.strip, cells)):
                n_rows += 1
                yield reader.line_num if ends else line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        place = Place(file, reader.line_num if ends else line)
        raise SpecError(Fault(f"got malformed CSV ({error})", "", "", "", place)) from None
    if not n_rows:
        raise SpecError(Fault("got an empty file", "expected column names", "", "", Place(file)))


@dataclass(frozen=True)
class CarriedTable:
    """A CSV file of which some columns are read, and all are carried along.

    Parameters
    ----------
    columns, rows : its texts.
    ends : line that each row ends on.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    ends: tuple[int, ...] = field(repr=False)

    def cells(self) -> Iterator[dict[str, str]]:
        """Every row by the names of its columns."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def read_carried_table(
    path: str | Path, *, required: Sequence[str], reserved: Sequence[str]
) -> CarriedTable:
    """Read a table to which an answer adds columns.

    Parameters
    ----------
    path : the file; its first line names the columns.
    required : columns that it needs.
    reserved : columns that the answer adds.

    Raises
    ------
    SpecError
        For columns that are missing, repeated or reserved, and rows of another length.
    """
    (line, header), *lines = csv_rows(path, ends=True)
    columns, place = tuple(cell.strip() for cell in header), Place(str(path), line)
    faults = repeated_columns(columns)
    if missing := [name for name in required if name not in columns]:
        fix = (closest(missing[0], columns) if len(missing) == 1 else "") or "add it"
        expected = f"expected {', '.join(required)}"
        faults.append(Fault(f"got no column {', '.join(missing)}", expected, fix))
    faults += [
        Fault(f"got the column {name!r}, which this command adds", "", "rename it")
        for name in reserved
        if name in columns
    ]
    faults = [fault.located(place) for fault in faults]
    for at, cells in lines:
        if len(cells) != len(columns):
            expected = f"expected {len(columns)}, as the first line has"
            faults.append(
                Fault(got_several(len(cells), "cell"), expected, place=Place(str(path), at))
            )
    if faults:
        raise SpecError(*faults)
    rows = tuple(tuple(cells) for _, cells in lines)
    return CarriedTable(columns, rows, tuple(at for at, _ in lines))


def repeated_columns(columns: Sequence[str]) -> list[Fault]:
    """A fault for every name that several columns have."""
    repeated = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    return [Fault(f"got the column {name!r} twice", "expected it once") for name in repeated]


def _check_columns(
    columns: Sequence[str], required: Sequence[str], known: Sequence[str], place: Place
) -> None:
    for mark, name in ((";", "';'"), ("\t", "tabs")):
        if len(columns) == 1 and mark in columns[0]:
            got, fix = f"got columns separated by {name}", "save it as CSV with commas"
            raise SpecError(Fault(got, "expected ','", fix, "", place))
    faults = repeated_columns(columns)
    missing = [name for name in required if name not in columns]
    if missing:
        expected = f"expected the columns {', '.join(required)}"
        faults.append(Fault(f"got no column {', '.join(missing)}", expected))
    absent = [name for name in known if name not in columns]
    for name in dict.fromkeys(columns):
        if name not in known:
            lacks = missing if len(missing) < len(required) else []
            near = closest(name, lacks or absent or known)
            other = f"is it {' or '.join(lacks)}?" if lacks else f"known: {', '.join(known)}"
            fix = near if near.startswith("did") else other
            fix = fix if name else "name it"
            faults.append(Fault(f"got the column {name!r}", "expected a known column", fix))
    if faults:
        raise SpecError(*(fault.located(place) for fault in faults))
