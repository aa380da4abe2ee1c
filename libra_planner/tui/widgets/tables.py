"""Filling tables: their lines, not their cells, are what Textual draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich.text import Text
from textual.widgets import DataTable

_GAP = "  "
"""Between columns."""


def fill(
    table: DataTable[Any],
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    justify: Literal["left", "right"],
) -> None:
    """Replace what a table shows; a row has a cell for every header.

    To Textual the table has one column: it draws every cell by itself whenever the table gets or
    loses the focus, and a table of a hundred rows has a thousand cells.
    """
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]

    def line(cells: Sequence[str]) -> Text:
        aligned = str.ljust if justify == "left" else str.rjust
        return Text(_GAP.join(map(aligned, cells, widths)), no_wrap=True)

    table.clear(columns=True)
    table.add_column(line(headers), width=len(line(headers)))
    for row in rows:
        table.add_row(line(row))
