"""The parts of a sweep as one table of DuckDB's, which sees no other file."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from libra_planner.files import is_unicode
from libra_planner.sweep.parts import table_of


def connection_to(folder: Path) -> Any:
    """A connection with the table ``designs``; it can read nothing else and write nothing."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    if "\\" in str(folder) or not is_unicode(str(folder)):
        _hold(connection, folder)
    else:
        _view(connection, str(folder).replace("'", "''"))
    connection.execute("SET lock_configuration = true")
    return connection


def _view(connection: Any, folder: str) -> None:
    """Let queries read the parts where they are."""
    escaped = glob.escape(folder)  # No [, * or ? of its name is a pattern.
    connection.execute(f"SET allowed_directories = ['{folder}', '{escaped}']")
    connection.execute("SET enable_external_access = false")
    files = f"{escaped}/part-*.parquet"
    connection.execute(f"CREATE VIEW designs AS SELECT * FROM read_parquet('{files}')")


def _hold(connection: Any, folder: Path) -> None:
    """Hold all parts in memory: of a folder whose name DuckDB knows no way to write."""
    import pyarrow as pa

    parts = sorted(folder.glob("part-*.parquet"))
    connection.execute("SET enable_external_access = false")
    connection.register("designs", pa.concat_tables([table_of(path) for path in parts]))
