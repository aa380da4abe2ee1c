"""What a workbook computes from the prices that stand in it, beside the tables' own sums.

Expressions name cells as :mod:`~libra_planner.report.documents.cells` says; of texts they hold
this program's own words and the designs' letters only.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from libra_planner.procurement.bill import GROUPS
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.parts import Part
from libra_planner.report.documents.cells import Cell
from libra_planner.report.documents.inputs import Comparison

_HALF_A_CENT = 0.005

PRICE_COLUMN = 3
"""Of the unit price in the table of prices."""
QUANTITY_COLUMN, SPARE_COLUMN, UNIT_COLUMN, SOURCE_COLUMN, EXTENDED_COLUMN = 4, 5, 6, 7, 8
"""Of units in use, spares, the unit price, what it rests on, and the line's price, in a bill."""


def priced_parts(comparison: Comparison) -> list[Part]:
    """Every part of every bill once, in the order they appear: the rows of the prices."""
    lines = (line for one in comparison.candidates for line in one.bill.lines)
    return list({line.part.name: line.part for line in lines}.values())


def group_cell(one: Candidate, group: str) -> str:
    """Where a spreadsheet finds the sum of a group of lines, or the ``total``."""
    letter = one.letter.lower()
    if group == "total":
        return f"[bill-{letter}/t{EXTENDED_COLUMN}]"
    return f"[groups-{letter}/{GROUPS.index(group)}/1]"


def line_cell(one: Candidate, row: int, column: int = EXTENDED_COLUMN) -> str:
    """Where a spreadsheet finds something of a line of the bill.

    Lines are named one by one: names of parts are a user's, and stay out of expressions.
    """
    return f"[bill-{one.letter.lower()}/{row}/{column}]"


def lines_sum(one: Candidate, rows: Iterable[int]) -> str:
    """What some lines of a bill cost, by their rows; empty for none."""
    cells = ",".join(line_cell(one, i) for i in rows)
    return f"SUM({cells})" if cells else ""


def price_cell(comparison: Comparison, name: str) -> str:
    """Where the unit price of a part stands; empty for prices that several parts share."""
    names = [part.name for part in priced_parts(comparison)]
    return f"[prices/{names.index(name)}/{PRICE_COLUMN}]" if name in names else ""


def price_sum(one: Candidate, price_name: str) -> str:
    """What the lines of one price come to in a design; empty for a design without them."""
    lines = enumerate(one.bill.lines)
    return lines_sum(one, (i for i, line in lines if line.part.price_name == price_name))


def prices_moved(comparison: Comparison) -> str:
    """Whether any unit price is not the one that the report was made with."""
    terms = []
    for i, part in enumerate(priced_parts(comparison)):
        usd = part.price.usd if part.price else Decimal(0)
        terms.append(f"ABS(N([prices/{i}/{PRICE_COLUMN}])-{float(usd)!r})")
    # Added with +: a function of Excel takes 255 arguments.
    return f"{'+'.join(terms)}>={_HALF_A_CENT}"


def verdict(comparison: Comparison) -> Cell:
    """Cheapest and best per dollar at the prices of the workbook.

    Of equals the first, as in :class:`~libra_planner.procurement.ranking.Ranking`.
    """
    letters, ranking = comparison.letters, comparison.ranking
    totals = [group_cell(one, "total") for one in comparison.candidates]
    text = f"At the prices of this workbook: cheapest {letters[ranking.cheapest]}"
    formula = f'"At the prices of this workbook: cheapest "&{_least(totals, letters)}'
    times_s = comparison.times_s
    if ranking.best_per_usd is not None and times_s is not None:
        products = [f"{total}*{time!r}" for total, time in zip(totals, times_s, strict=True)]
        text += f", best per dollar {letters[ranking.best_per_usd]}"
        formula += f'&", best per dollar "&{_least(products, letters)}'
    return Cell(text, expression=formula)


def _least(values: list[str], letters: list[str]) -> str:
    """The letter of the first of the smallest values."""
    least = f"MIN({','.join(values)})"
    found = f'"{letters[-1]}"'
    for value, letter in reversed(list(zip(values[:-1], letters[:-1], strict=True))):
        found = f'IF({value}={least},"{letter}",{found})'
    return found
