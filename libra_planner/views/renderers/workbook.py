"""A document as a workbook: values, and the formulas behind them."""

from __future__ import annotations

import datetime
import io
import math
import re
from dataclasses import dataclass
from typing import Any

from libra_planner.views.cells import (
    COUNT,
    DELTA,
    DELTA_USD,
    NUMBER,
    PERCENT,
    POINTS,
    TEXT,
    USD,
    Cell,
    Report,
    Section,
    Table,
    numeric_columns,
)

_REFERENCE = re.compile(
    r"\[(?:(?P<table>[\w-]+)/)?(?:(?P<what>[crt])(?P<column>\d+)|(?P<row>\d+)/(?P<at>\d+))\]"
)
_CREATED = datetime.datetime(2020, 1, 1)
"""Date of every workbook: the same input gives the same bytes."""

_WIDEST, _WIDEST_FIRST, _NARROWEST = 60, 44, 9
_PROSE_WIDTH, _LINE_POINTS = 110, 15
_LONGEST_FORMULA = 8_000
"""Excel's limit is 8,192 characters."""
_STALE = " - PRICES CHANGED: what is no formula here, words too, is of the prices before"
_MOST_CHARACTERS = 32_000
"""A cell of a workbook holds 32,767."""


@dataclass(frozen=True)
class _Placed:
    """Where a table stands: sheet, row of its headings, counted from 0."""

    sheet: str
    head: int
    table: Table

    @property
    def first(self) -> int:
        """Its first row."""
        return self.head + 1

    @property
    def last(self) -> int:
        """Its last row before the total."""
        return self.head + len(self.table.rows)


def workbook(report: Report) -> bytes:
    """The document as the bytes of an .xlsx file: one sheet per section."""
    import xlsxwriter

    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(buffer, {**options, "strings_to_numbers": False})
    book.set_properties({"title": report.title, "created": _CREATED})
    book.set_calc_mode("auto")
    _Writer(book, _places(report), _named(report), report.prices_moved).write(report)
    book.close()
    return buffer.getvalue()


def _places(report: Report) -> dict[str, _Placed]:
    """Where every table will stand, by key."""
    found = {}
    for section in report.sections:
        row = _n_lines(section)
        for table in section.tables:
            found[table.key] = _Placed(section.sheet, row + 1, table)
            row += 1 + 1 + len(table.rows) + (table.total is not None) + bool(table.note) + 1
    return found


def _named(report: Report) -> frozenset[str]:
    """Tables whose rows formulas name one by one: to sort them would move the rows away."""
    rows = (row for table in report.tables for row in (*table.rows, table.total or ()))
    texts = [cell.expression for row in rows for cell in row]
    found = (match for text in texts for match in _REFERENCE.finditer(text) if match["row"])
    return frozenset(match["table"] for match in found if match["table"])


def _n_lines(section: Section) -> int:
    """Lines above the first table: title, warnings, cards, paragraphs, an empty one."""
    above = 2 + len((*section.warnings, *section.paragraphs, *section.cards, *section.live))
    # A sheet of one table keeps its headings in view: its text stands below.
    return 1 if _text_below(section) else above


def _text_below(section: Section) -> bool:
    return bool(section.tables) and not section.cards


class _Writer:
    """Writes one document into one workbook."""

    def __init__(
        self, book: Any, places: dict[str, _Placed], named: frozenset[str], prices_moved: str
    ) -> None:
        self.book = book
        self.places = places
        self.named = named
        self.prices_moved = prices_moved
        self.formats: dict[tuple[Any, ...], Any] = {}

    def format(self, **properties: Any) -> Any:
        """A cell format, made once."""
        key = tuple(sorted(properties.items()))
        if key not in self.formats:
            self.formats[key] = self.book.add_format(properties)
        return self.formats[key]

    def write(self, report: Report) -> None:
        """All sections."""
        for section in report.sections:
            sheet = self.book.add_worksheet(section.sheet)
            self._page(sheet)
            self._title(sheet, section)
            row = 1
            if not _text_below(section):
                row = self._text(sheet, section, row)
            for table in section.tables:
                row = self._table(sheet, section, self.places[table.key])
            if _text_below(section):
                self._text(sheet, section, row + 1)
            for column, width in _widths(section).items():
                sheet.set_column(column, column, width)

    def _title(self, sheet: Any, section: Section) -> None:
        """The title; it says so itself when a reader's prices leave parts of a sheet behind."""
        style = self.format(bold=True, font_size=14)
        moved = self._resolved(self.prices_moved, section.sheet)
        if section.is_static and moved and len(moved) < _LONGEST_FORMULA:
            text = f'"{section.title}"'
            formula = f'=IF({moved},{text}&"{_STALE}",{text})'
            sheet.write_formula(0, 0, formula, style, section.title)
        else:
            sheet.write_string(0, 0, _cut(section.title), style)

    def _page(self, sheet: Any) -> None:
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.hide_gridlines(2)

    def _text(self, sheet: Any, section: Section, row: int) -> int:
        for text in section.warnings:
            warning = f"Warning: {text}"
            self._prose(sheet, section, row, warning, bold=True, font_color="#8a3b00")
            row += 1
        for card in section.cards:
            sheet.write_string(row, 0, _cut(card.title), self.format(bold=True))
            wrapped = self.format(text_wrap=True, valign="top")
            for column, text in enumerate((card.answer, card.figure, card.reason), start=1):
                sheet.write_string(row, column, _cut(text), wrapped)
            row += 1
        for cell in section.live:
            formula = "=" + self._resolved(cell.expression, section.sheet)
            sheet.write_formula(row, 0, formula, self.format(bold=True), _cached(cell))
            row += 1
        for text in section.paragraphs:
            self._prose(sheet, section, row, text, font_color="#444444")
            row += 1
        return row

    def _prose(self, sheet: Any, section: Section, row: int, text: str, **properties: Any) -> None:
        """A text over several columns, in as many lines as it takes."""
        widths = _widths(section)
        last, room = 0, widths[0]
        while last + 1 in widths and room < _PROSE_WIDTH:
            last += 1
            room += widths[last]
        style = self.format(text_wrap=True, valign="top", **properties)
        if last:
            sheet.merge_range(row, 0, row, last, "", style)
        sheet.write_string(row, 0, _cut(text), style)
        sheet.set_row(row, _LINE_POINTS * math.ceil(1.1 * len(text) / room))

    def _table(self, sheet: Any, section: Section, place: _Placed) -> int:
        table = place.table
        sheet.write_string(place.head - 1, 0, _cut(table.caption), self.format(bold=True))
        head = {"bold": True, "text_wrap": True, "bottom": 1, "bg_color": "#e8edf2"}
        for column, is_number in enumerate(numeric_columns(table)):
            side = self.format(**head, valign="bottom", align="right" if is_number else "left")
            sheet.write_string(place.head, column, _cut(table.headings[column]), side)
        for i, row in enumerate(table.rows):
            for column, cell in enumerate(row):
                self._cell(sheet, place, place.first + i, column, cell)
        row_after = place.last + 1
        if table.total is not None:
            for column, cell in enumerate(table.total):
                self._cell(sheet, place, row_after, column, cell, is_total=True)
            row_after += 1
        if table.note:
            self._prose(sheet, section, row_after, table.note, italic=True)
            row_after += 1
        if place.head == 2:  # The first table of a sheet.
            sheet.freeze_panes(place.first, 1)
            if table.is_sortable and table.rows and table.key not in self.named:
                sheet.autofilter(place.head, 0, place.last, len(table.headings) - 1)
        return row_after + 1

    def _cell(
        self, sheet: Any, place: _Placed, row: int, column: int, cell: Cell, is_total: bool = False
    ) -> None:
        style = self.format(**_properties(cell, is_total=is_total))
        value = cell.value
        if cell.expression:
            formula = "=" + self._resolved(cell.expression, place.sheet, place.table.key, row)
            sheet.write_formula(row, column, formula, style, _cached(cell))
        elif isinstance(value, str):
            sheet.write_string(row, column, _cut(value), style)
        elif value is None or not math.isfinite(value):
            sheet.write_blank(row, column, None, style)
        else:
            sheet.write_number(row, column, float(value), style)

    def _resolved(self, expression: str, here: str, own: str = "", row: int = 0) -> str:
        """The expression with the addresses of the cells that it names, on the sheet ``here``."""
        from xlsxwriter.utility import xl_range_abs, xl_rowcol_to_cell

        def address(match: re.Match[str]) -> str:
            place = self.places[match["table"] or own]
            sheet = "" if place.sheet == here else f"'{place.sheet}'!"
            column = int(match["column"] or match["at"])
            if match["what"] == "r":
                return sheet + str(xl_range_abs(place.first, column, place.last, column))
            if match["what"] == "c":
                return str(xl_rowcol_to_cell(row, column))
            at = place.last + 1 if match["what"] == "t" else place.first + int(match["row"])
            return sheet + str(xl_rowcol_to_cell(at, column, row_abs=True, col_abs=True))

        return _REFERENCE.sub(address, expression)


def _widths(section: Section) -> dict[int, int]:
    """Characters of every column: as wide as what it holds, within reason."""
    widths: dict[int, int] = {0: 24}
    for table in section.tables:
        for row in (*table.rows, *([table.total] if table.total else [])):
            for column, cell in enumerate(row):
                widths[column] = max(widths.get(column, _NARROWEST), len(cell.shown) + 2)
    if section.cards:
        widths |= {1: 34, 2: 40, 3: 90}
    return {c: min(_WIDEST if c else _WIDEST_FIRST, width) for c, width in widths.items()}


def _cut(text: str) -> str:
    return text[:_MOST_CHARACTERS]


def _cached(cell: Cell) -> Any:
    """The value of a formula that is stored beside it."""
    value = cell.value
    if value is None:
        return ""
    return value if isinstance(value, str) else float(value)


def _properties(cell: Cell, *, is_total: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"valign": "top"}
    pattern = _number_format(cell)
    if pattern:
        found["num_format"] = pattern
    if is_total:
        found |= {"bold": True, "top": 1}
    if cell.is_input:
        found |= {"bg_color": "#fff8d6", "font_color": "#0000c0", "border": 4}
    if cell.kind == TEXT and len(cell.shown) > _WIDEST:
        found["text_wrap"] = True
    return found


def _number_format(cell: Cell) -> str:
    point = "." + "0" * cell.digits if cell.digits else ""
    return {
        TEXT: "",
        COUNT: "#,##0",
        USD: "$#,##0.00;-$#,##0.00",
        NUMBER: f"#,##0{point}",
        PERCENT: f"0{point}%",
        DELTA: f"+0{point}%;-0{point}%;0{point}%",
        POINTS: f'+0{point}" pp";-0{point}" pp";0{point}" pp"',
        DELTA_USD: "+$#,##0.00;-$#,##0.00;$0.00",
    }[cell.kind]
