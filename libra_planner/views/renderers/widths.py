"""Widths of the columns of a sheet: what it holds, within what paper has room for."""

from __future__ import annotations

import math
from collections.abc import Collection

from libra_planner.views.cells import Cell, Table

_WIDEST, _WIDEST_FIRST = 40, 44
_WIDEST_AMONG_NUMBERS = 24
"""Characters of a line of text in a column of numbers."""
PRINTED_WIDTH = 175
"""Characters of a line on A4, landscape, in letters of 7 points."""
_SIDES = 0.72
"""Characters beside the text of a column."""
LONGEST_WORD, _LONGEST_AMONG_NUMBERS = 16, 12
"""Characters of a word that a column has room for, such as the name of a part."""
_WHOLE_DOLLARS = 1000
"""Dollars from which rounded amounts have no cents."""
_MONEY = "usd"
"""Kinds of cells of money end so."""
TEXT_WIDTH = 0.9
"""Width of a letter of text over that of a digit, in which columns are measured."""


def total(widths: Collection[int]) -> float:
    """Characters of a line over all columns."""
    return sum(widths) + _SIDES * len(widths)


def first_of(widths: dict[int, int], n: int) -> dict[int, int]:
    """Those of the first columns."""
    return {column: width for column, width in widths.items() if column < n}


def n_needed(table: Table) -> int:
    """Columns of a table that paper cannot be without."""
    headings = table.headings
    return headings.index(table.print_to) + 1 if table.print_to in headings else len(headings)


def narrowed(wanted: dict[int, int], least: dict[int, int], room: int) -> dict[int, int]:
    """Widths that take so much together, or the least where that is too little.

    >>> narrowed({0: 10, 1: 40, 2: 30}, {0: 8, 1: 12, 2: 12}, 50)
    {0: 10, 1: 18, 2: 18}
    """
    most, found = max(wanted.values()), wanted
    while total(found.values()) > room and most > min(least.values()):
        most -= 1
        found = {i: max(least[i], min(n, most)) for i, n in wanted.items()}
    return found


def text_room(cell: Cell, column: int, is_number: bool) -> int:
    """Characters of a cell in a column, its whole text where that is not long."""
    most = _WIDEST if column else _WIDEST_FIRST
    most = _WIDEST_AMONG_NUMBERS if is_number and cell.is_text else most
    return min(most, _n_characters(cell) + 2) - 2


def least_room(cell: Cell, column: int, is_number: bool) -> int:
    """The same where a text takes as many lines as it has words."""
    if not cell.is_text:
        return text_room(cell, column, is_number) - 1
    most = _LONGEST_AMONG_NUMBERS if is_number else LONGEST_WORD
    return min(most, max(map(len, cell.shown.split()), default=0))


def _n_characters(cell: Cell) -> int:
    """Characters that a spreadsheet shows of a cell; of money it rounds to dollars at most."""
    is_money = cell.kind.endswith(_MONEY) and cell.kind != "unit_usd"
    if not cell.is_text and is_money and cell.value is not None:
        usd, n_digits = float(cell.value), 0 if _is_rounded(cell) else 2
        sign = "+" if "delta" in cell.kind else "-" * (usd < 0)
        return len(f"{sign}${abs(usd):,.{n_digits}f}")
    return math.ceil(TEXT_WIDTH * len(cell.shown)) if cell.is_text else len(cell.shown)


def _is_rounded(cell: Cell) -> bool:
    """Whether a spreadsheet shows whole dollars of an amount."""
    return cell.kind.startswith("round_") and abs(float(cell.value or 0)) >= _WHOLE_DOLLARS
