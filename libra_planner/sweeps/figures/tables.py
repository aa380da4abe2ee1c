"""The parts of a run directory as the table ``designs``, whole or filtered."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from libra_planner.errors import located
from libra_planner.files import is_unicode
from libra_planner.sweeps.expressions import NUMBER, TEXT, TRUTH, parse_filter, passing
from libra_planner.sweeps.store import table_of

_EVERY = "every_design_"
_KEPT = "kept_rows_"
_ROW = "row"
_KINDS = {"string": TEXT, "bool": TRUTH}
"""Kinds of columns in filters, by their types; others are numbers."""


def connection_to(folder: Path, rows: Sequence[int] | None = None, name: str = "designs") -> Any:
    """A connection with the table of designs; it can read nothing else and write nothing.

    Parameters
    ----------
    folder : of the parts.
    rows : numbers of the designs that it has; ``None`` for all.
    name : of the table.
    """
    import duckdb

    connection = duckdb.connect()
    # A kernel without ipywidgets has no progress bar, and DuckDB refuses even to turn it off there.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0]:
        connection.execute("SET enable_progress_bar = false")
    if "\\" in str(folder) or not is_unicode(str(folder)):  # DuckDB knows no way to write it.
        import pyarrow as pa

        parts = [table_of(path) for path in sorted(folder.glob("part-*.parquet"))]
        connection.execute("SET enable_external_access = false")
        connection.register("parts", pa.concat_tables(parts))
        source = "parts"
    else:
        quoted = str(folder).replace("'", "''")
        escaped = glob.escape(quoted)  # No [, * or ? of its name is a pattern.
        connection.execute(f"SET allowed_directories = ['{quoted}', '{escaped}']")
        connection.execute("SET enable_external_access = false")
        source = f"read_parquet('{escaped}/part-*.parquet')"
    which = "true" if rows is None else f"{_ROW} IN ({', '.join(map(str, rows)) or -1})"
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source} WHERE {which}")
    connection.execute("SET lock_configuration = true")
    return connection


def filtered_connection(
    folder: Path,
    where: Sequence[str],
    types: Mapping[str, str],
    rows: Sequence[int] | None = None,
) -> Any:
    """The same of the designs that meet all filters, in the language of ``where`` of sweep files.

    A design without a value of a column in a filter does not meet it.

    Parameters
    ----------
    folder : of the parts.
    where : the filters.
    types : of the columns, as a manifest has them.
    rows : numbers of the designs to filter; ``None`` for all.

    Raises
    ------
    SpecError
        For a filter that is wrong.
    """
    import pyarrow as pa

    kinds = {name: _KINDS.get(dtype, NUMBER) for name, dtype in types.items()}
    with located("--where"):
        filters = [parse_filter(text, kinds, "column") for text in where]
    names = sorted({name for one in filters for name in one.names})
    connection = connection_to(folder, rows, _EVERY)
    wanted = ", ".join([_ROW, *(f"{sql_name(x)} AS used_{i}" for i, x in enumerate(names))])
    found = connection.execute(f"SELECT {wanted} FROM {_EVERY}").fetchnumpy()
    found_rows, arrays = found[_ROW], [found[f"used_{i}"] for i in range(len(names))]
    values = {x: _array(kinds[x], array) for x, array in zip(names, arrays, strict=True)}
    mask = passing(filters, values, len(found_rows))
    for array in arrays:
        mask &= ~np.ma.getmaskarray(array)
    connection.register(_KEPT, pa.table({_ROW: np.asarray(found_rows)[mask]}))
    kept = f"SELECT {_ROW} FROM {_KEPT}"
    connection.execute(f"CREATE VIEW designs AS SELECT * FROM {_EVERY} WHERE {_ROW} IN ({kept})")
    return connection


def _array(kind: str, array: Any) -> Any:
    """Values of a column of a kind; whatever where there is none."""
    if kind == TEXT:
        return np.ma.filled(array, "").astype(str)
    return np.ma.filled(array, False) if kind == TRUTH else np.ma.filled(array, 0)


def sql_name(name: str) -> str:
    """A column's name in SQL.

    >>> sql_name('parallelism.tp')
    '"parallelism.tp"'
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
