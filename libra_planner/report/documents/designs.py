"""Rows of figures with a column per design, and its difference from the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from libra_planner.procurement.candidate import Candidate
from libra_planner.report.documents.cells import (
    PART_OF_A_STEP,
    PERCENT,
    TEXT,
    Cell,
    Table,
    Value,
    cell,
    delta,
    points,
    table,
)
from libra_planner.report.documents.inputs import Comparison

Figure = Callable[[Candidate], Value]


def design_columns(comparison: Comparison) -> list[str]:
    """Headings: every design, and its difference from the baseline."""
    headings, base = [], comparison.baseline
    for i, letter in enumerate(comparison.letters):
        headings.append(letter)
        if base is not None and i != base:
            headings.append(f"{letter} vs {comparison.letters[base]}")
    return headings


def design_row(comparison: Comparison, title: str, values: Sequence[Value]) -> list[Value]:
    """A row of a value per design; differences stand beside those that are not the baseline.

    Examples
    --------
    The difference of a number is relative, of shares in percentage points, and a formula in
    spreadsheets.
    """
    row: list[Value] = [title]
    cells, base = [cell(value) for value in values], comparison.baseline
    columns = _columns(comparison)
    for i, one in enumerate(cells):
        row.append(one)
        if base is not None and i != base:
            row.append(_difference(one, cells[base], columns[i], columns[base]))
    return row


def _columns(comparison: Comparison) -> list[int]:
    """Column of each design."""
    base = comparison.baseline
    columns, at = [], 1
    for i in range(len(comparison.candidates)):
        columns.append(at)
        at += 1 if base is None or i == base else 2
    return columns


def _difference(one: Cell, base: Cell, column: int, base_column: int) -> Cell:
    if PART_OF_A_STEP in (one.value, base.value):
        return Cell(None)
    if TEXT in (one.kind, base.kind):
        same = one.value == base.value
        return Cell("same" if same else "differs")
    if one.value == base.value and not (one.expression and base.value):
        return delta(0.0) if one.kind != PERCENT else points(0.0)
    if one.kind == PERCENT and isinstance(one.value, float) and isinstance(base.value, float):
        return points(100 * (one.value - base.value), f"100*([c{column}]-[c{base_column}])")
    if not isinstance(one.value, int | float | Decimal) or not base.value or base.is_text:
        return Cell(None)
    # Of the values as they stand in the table, so that a spreadsheet finds the same.
    ratio = float(one.value) / float(base.value) - 1
    return delta(ratio, f"[c{column}]/[c{base_column}]-1")


def figures(
    comparison: Comparison,
    key: str,
    caption: str,
    rows: Sequence[tuple[str, Figure]],
    note: str = "",
) -> Table:
    """A table of figures by design; rows that say nothing of any design are left out."""
    listed = []
    for title, figure in rows:
        values = [cell(figure(one)) for one in comparison.candidates]
        if any(value.value is not None for value in values):
            listed.append(design_row(comparison, title, values))
    return table(key, caption, ["", *design_columns(comparison)], listed, note=note)
