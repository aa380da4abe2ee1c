"""Filling tables: columns as wide as their cells from the start, not from the next idle moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich.text import Text
from textual.widgets import DataTable


def fill(
    table: DataTable[Any],
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    justify: Literal["left", "right"],
) -> None:
    """Replace what a table shows; a row has a cell for every header."""
    table.clear(columns=True)
    for i, name in enumerate(headers):
        width = max(map(len, [name, *(row[i] for row in rows)]))
        table.add_column(Text(name, justify=justify), width=width)
    for row in rows:
        table.add_row(*(Text(cell, justify=justify) for cell in row))
