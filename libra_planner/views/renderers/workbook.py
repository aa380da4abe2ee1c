"""A document as a workbook: values, and the formulas behind them."""

from __future__ import annotations

import datetime
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count
from typing import Any

from libra_planner.views.cells import (
    KINDS,
    BookChart,
    Cell,
    Report,
    Section,
    Table,
    numeric_columns,
)
from libra_planner.views.renderers.widths import (
    LONGEST_WORD,
    PRINTED_WIDTH,
    TEXT_WIDTH,
    first_of,
    least_room,
    n_needed,
    narrowed,
    text_room,
    total,
)

_REFERENCE = re.compile(
    r"\[(?:(?P<table>[\w-]+)/)?(?:(?P<what>[crt])(?P<column>\d+)|(?P<row>\d+)/(?P<at>\d+))\]"
)
_CREATED = datetime.datetime(2020, 1, 1)
"""Date of every workbook: the same input gives the same bytes."""

_CHART_PIXELS = (760, 380)
_CHART_PERCENT = 100
"""Size of a chart on paper, landscape, over that on a screen."""
_CHART_ROWS, _CHART_COLUMNS = 20, 12
"""Rows and columns of the usual size that a chart covers."""
_USUAL_WIDTH = 8.43
_MILLIONS = '$#,##0.0,,"M"'
"""A pattern of axes of money."""
_LABELS = '[=0]"";[<100000]"{0}"$#,##0.0,"k";"{0}"$#,##0.00,,"M"'
"""The same with a sign, small amounts in thousands; nothing stands at what is not there."""

_NARROWEST = 9
_PRINTED_PERCENT = 64
"""Letters of 7 points over those of 11."""
_SMALL_PERCENT = 72
"""Letters of sheets that would fit the paper larger: 8 points are enough."""
_BREAK = 25
"""Characters that a page loses where no column fits whole."""
_PROSE_WIDTH, _LINE_POINTS, _FONT_POINTS = 110, 15, 11
_CARD_COLUMNS, _CARD_WIDTH = 5, 30
"""Columns that answers with their reasons fill."""
_LONGEST_FORMULA = 8_000
"""Excel's limit is 8,192 characters."""
_STALE = " - PRICES CHANGED: sentences, and figures without a formula, show the prices before"
_PRICES = {
    "validate": "decimal",
    "criteria": ">=",
    "value": 0,
    "ignore_blank": False,
    "error_title": "A price, a rate or a tax",
    "error_message": "This is a number from 0 on. Without it, totals are #N/A.",
}
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
    strings = dict.fromkeys(("formulas", "urls", "numbers"), False)
    options = {"in_memory": True, **{f"strings_to_{name}": x for name, x in strings.items()}}
    book = xlsxwriter.Workbook(buffer, options)
    book.set_properties({"title": report.title, "created": _CREATED})
    book.set_calc_mode("auto")
    report = _headed(report)
    places, named = _places(report), _named(report)
    style = cache(lambda **properties: book.add_format(properties))
    for section in _sheets(report):
        sheet = book.add_worksheet(section.sheet)
        writer = _Writer(sheet, section, places, named, report.prices_moved, style)
        writer.write()
        for place, chart in enumerate(section.drawn):
            writer.draw(book, chart, place)
    book.close()
    return buffer.getvalue()


def _headed(report: Report) -> Report:
    """The document with what stands below its title as a line of the first sheet."""
    first, *others = report.sections
    lead = (*first.lead[:1], report.subtitle, *first.lead[1:])
    return replace(report, sections=(replace(first, lead=lead), *others))


def _sheets(report: Report) -> tuple[Section, ...]:
    """The sections, those of a workbook alone behind the first."""
    return (*report.sections[:1], *report.sheets, *report.sections[1:])


def _places(report: Report) -> dict[str, _Placed]:
    """Where every table will stand, by key."""
    found = {}
    for section in _sheets(report):
        texts = (*section.said, *section.warnings, *section.paragraphs)
        above = len((*texts, *section.cards, *section.live))
        row = 1 if _text_below(section) else 2 + above  # Title and an empty line.
        for table in section.tables:
            found[table.key] = _Placed(section.sheet, row + 1, table)
            row += 1 + 1 + len(table.all_rows) + bool(table.note) + 1
    return found


def _named(report: Report) -> frozenset[str]:
    """Tables whose rows formulas name one by one: to sort them would move the rows away."""
    tables = (table for section in _sheets(report) for table in section.tables)
    rows = (row for table in tables for row in table.all_rows)
    texts = (cell.expression for row in rows for cell in row)
    found = (match for text in texts for match in _REFERENCE.finditer(text) if match["row"])
    return frozenset(match["table"] for match in found if match["table"])


def _text_below(section: Section) -> bool:
    """Whether its text stands below: a sheet of tables keeps their headings in view."""
    return bool(section.tables) and not section.cards


@dataclass(frozen=True)
class _Writer:
    """Writes one section on its sheet; ``style`` makes formats, each once."""

    sheet: Any
    section: Section
    places: dict[str, _Placed]
    named: frozenset[str]
    prices_moved: str
    style: Callable[..., Any]

    def write(self) -> None:
        """All of it."""
        self.sheet.set_landscape()
        self.sheet.set_paper(9)
        self.sheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        self._paper()
        self.sheet.set_footer("&L&A&RPage &P of &N")
        self.sheet.hide_gridlines(2)
        self._title()
        if not _text_below(self.section):
            self._text(1)
        row = 0
        for table in self.section.tables:
            row = self._table(self.places[table.key])
        if _text_below(self.section):
            row = self._text(row + 1)
        aside = (self.places[x.key].head - 2 for x in self.section.tables if not x.is_printed)
        last = next(aside, row)
        if self.n_printed < len(self.widths) or last < row:
            self.sheet.print_area(0, 0, last, self.n_printed - 1)
        for column, width in self.widths.items():
            self.sheet.set_column(column, column, width)

    def _paper(self) -> None:
        """One page wide, in letters that can be read; a page of its own for every chart."""
        widths = [self.widths[column] for column in range(self.n_printed)]
        if self.section.drawn:  # Manual breaks count only where nothing is fitted to the paper.
            self.sheet.set_print_scale(_CHART_PERCENT)
            ends = range(1, len(self.section.drawn))
            self.sheet.set_h_pagebreaks([1 + place * _CHART_ROWS for place in ends])
        elif total(widths) <= PRINTED_WIDTH * _PRINTED_PERCENT / _SMALL_PERCENT:
            self.sheet.set_print_scale(_SMALL_PERCENT)
        elif total(widths) <= PRINTED_WIDTH and self.section.cards and self.section.tables:
            # Tables below a text begin a page: else the title of one may end the page before.
            self.sheet.set_print_scale(int(_PRINTED_PERCENT * PRINTED_WIDTH / total(widths)))
            self.sheet.set_h_pagebreaks([self.places[self.section.tables[0].key].head - 1])
        elif total(widths) <= PRINTED_WIDTH:
            self.sheet.fit_to_pages(1, 0)
        else:  # Two pages side by side, each with the names of the rows.
            self.sheet.set_print_scale(_PRINTED_PERCENT)
            self.sheet.repeat_columns(0)
            self.sheet.print_across()

    def draw(self, book: Any, chart: BookChart, place: int) -> None:
        """A chart of the book's own, beside the tables, one below the other."""
        kind = {"type": chart.kind} | ({} if chart.kind == "scatter" else {"subtype": "stacked"})
        drawn = book.add_chart(kind)
        for one in chart.series:
            look: dict[str, Any] = {"fill": {"color": one.colour}} if one.colour else {}
            look = look or {"fill": {"none": True}, "border": {"none": True}}
            if chart.kind == "scatter":
                named = {"value": False, "series_name": True, "position": "right"}
                look = {"marker": {"type": "circle", "size": 9, **look}, "data_labels": named}
            if chart.kind == "column" and one.colour:
                shown = {"value": True, "num_format": _LABELS.format(one.sign)}
                shown |= {"fill": {"color": "#ffffff"}} if one.sign else {}
                look["data_labels"] = {"font": {"color": one.label_colour}, **shown}
            cells = {"categories": self._cells(one.x), "values": self._cells(one.y)}
            drawn.add_series({"name": one.name, "gap": 50, **cells, **look})
        x: dict[str, Any] = {"name": chart.x_title}
        y: dict[str, Any] = {"name": chart.y_title}
        for axis in (x, y):
            if axis["name"] == "$":
                axis |= {"num_format": _MILLIONS, "major_gridlines": {"visible": True}}
        if chart.kind == "bar":  # Bars begin at the top, and amounts stand below them.
            x |= {"label_position": "high", "min": 0}
            y["reverse"] = True
        drawn.set_x_axis(x)
        drawn.set_y_axis(y)
        drawn.set_title({"name": chart.title, "overlay": False, "name_font": {"size": 12}})
        drawn.set_legend({"position": "bottom"} if chart.has_legend else {"none": True})
        drawn.set_size({"width": _CHART_PIXELS[0], "height": _CHART_PIXELS[1]})
        drawn.show_blanks_as("gap")
        column = max(self.widths) + 2
        self.sheet.insert_chart(1 + place * _CHART_ROWS, column, drawn)
        # Paper has the charts alone: their cells stand on other sheets, too.
        last = column + _CHART_COLUMNS - 1
        self.sheet.set_column(column, last, _USUAL_WIDTH)
        self.sheet.print_area(1, column, (place + 1) * _CHART_ROWS, last)

    def _cells(self, expression: str) -> str:
        """Cells for a chart, which names their sheet."""
        return f"='{self.section.sheet}'!{self._resolved(expression)}"

    @cached_property
    def widths(self) -> dict[int, int]:
        """Characters of every column: as wide as what it holds, within reason.

        Texts take more lines where all columns would else be too wide for paper.
        """
        wanted, least = self._columns(text_room), self._columns(least_room)
        if self.section.cards:
            wanted |= dict.fromkeys(range(1, _CARD_COLUMNS), _CARD_WIDTH)
            least |= dict.fromkeys(range(1, _CARD_COLUMNS), LONGEST_WORD)
        n = self.n_printed
        if n < len(wanted) or total(least.values()) <= PRINTED_WIDTH:
            return wanted | narrowed(first_of(wanted, n), first_of(least, n), PRINTED_WIDTH)
        return narrowed(wanted, least, 2 * PRINTED_WIDTH - wanted[0] - _BREAK)

    @cached_property
    def n_printed(self) -> int:
        """Columns that paper has: those that its tables need, where all take more than a page.

        All of them where even these are too many: they take two pages side by side.
        """
        least = self._columns(least_room)
        needed = max((n_needed(x) for x in self.section.tables if x.is_printed), default=1)
        fits = (total(first_of(least, n).values()) <= PRINTED_WIDTH for n in (len(least), needed))
        return needed if [*fits] == [False, True] else len(least)

    def _columns(self, room: Callable[[Cell, int, bool], int]) -> dict[int, int]:
        """Characters of every column, where a cell of a column takes so much."""
        widths: dict[int, int] = {0: 24}
        for table in self.section.tables:
            numeric = numeric_columns(table)
            heads = (max(map(len, heading.split()), default=0) for heading in table.headings)
            found = [(column, n + 2) for column, n in enumerate(heads)]
            for column, cell in (pair for row in table.all_rows for pair in enumerate(row)):
                found.append((column, room(cell, column, numeric[column]) + 2))
            for column, width in found:
                widths[column] = max(widths.get(column, _NARROWEST), width)
        return widths

    def _n_lines(self, column: int, text: str) -> int:
        """Lines that a text takes in a column, which breaks between words."""
        n_characters = max(1, int(self.widths[column] / TEXT_WIDTH))
        return max(1, len(textwrap.wrap(text, n_characters)))

    def _height(self, row: int, texts: Iterable[tuple[int, str]]) -> dict[str, Any]:
        """Make a row as high as its longest text: not every program does so by itself.

        Where its cells stand in it.
        """
        n_lines = max((self._n_lines(column, text) for column, text in texts), default=1)
        self.sheet.set_row(row, _LINE_POINTS * n_lines)
        return {"valign": "top" if n_lines > 1 else "vcenter"}

    def _string(self, row: int, column: int, text: str, **properties: Any) -> None:
        self.sheet.write_string(row, column, text[:_MOST_CHARACTERS], self.style(**properties))

    def _formula(self, row: int, column: int, formula: str, cell: Cell, style: Any) -> None:
        self.sheet.write_formula(row, column, f"={formula}", style, _cached(cell))

    def _title(self) -> None:
        """The title; it says so itself when a reader's prices leave parts of a sheet behind."""
        style, title = {"bold": True, "font_size": 14}, self.section.title
        moved = self._resolved(self.prices_moved)
        if self.section.is_static and moved and len(moved) < _LONGEST_FORMULA:
            # A price or a rate that is taken away is no number: that is a change, too.
            formula = f'IF(IFERROR({moved},1),"{title}"&"{_STALE}","{title}")'
            self._formula(0, 0, formula, Cell(title), self.style(**style))
        else:
            self._string(0, 0, title, **style)

    def _text(self, first: int) -> int:
        """Its texts and answers; the row behind them."""
        rows = count(first)
        for i, text in enumerate(self.section.said):
            printed = "" if i else "As printed: "
            self._prose(next(rows), f"{printed}{text}", bold=i == 0, font_size=11 if i else 14)
        for text in self.section.warnings:
            self._prose(next(rows), f"Warning: {text}", bold=True, font_color="#8a3b00")
        for card, at in zip(self.section.cards, rows, strict=False):
            wrapped = {"text_wrap": True, "valign": "top"}
            self._string(at, 0, card.title, bold=True, valign="top")
            for column, text in enumerate((card.answer, card.figure), start=1):
                self._string(at, column, text, **wrapped)
            self.sheet.merge_range(at, 3, at, _CARD_COLUMNS - 1, "", self.style(**wrapped))
            self._string(at, 3, card.reason, **wrapped)
            longest = max(len(card.answer), len(card.figure), len(card.reason) / 2)
            self.sheet.set_row(at, _LINE_POINTS * math.ceil(1.1 * longest / self.widths[1]))
        for cell in self.section.live:
            formula = self._resolved(cell.expression)
            self._formula(next(rows), 0, formula, cell, self.style(bold=True))
        for text in self.section.paragraphs:
            self._prose(next(rows), text, font_color="#444444")
        return next(rows)

    def _prose(self, row: int, text: str, **properties: Any) -> None:
        """A text over several columns, in as many lines as it takes."""
        last, room, widths = 0, self.widths[0], self.widths
        while last + 1 in widths and room < _PROSE_WIDTH:
            last += 1
            room += widths[last]
        style = {"text_wrap": True, "valign": "top", **properties}
        if last:
            self.sheet.merge_range(row, 0, row, last, "", self.style(**style))
        self._string(row, 0, text, **style)
        scale = properties.get("font_size", _FONT_POINTS) / _FONT_POINTS
        n_lines = math.ceil(scale * len(text) / room)
        self.sheet.set_row(row, _LINE_POINTS * scale * n_lines)

    def _table(self, place: _Placed) -> int:
        table = place.table
        self._string(place.head - 1, 0, table.caption, bold=True)
        head = {
            "bold": True,
            "text_wrap": True,
            "bottom": 1,
            "bg_color": "#e8edf2",
            "valign": "bottom",
        }
        sides = [
            _side(column, is_number) for column, is_number in enumerate(numeric_columns(table))
        ]
        for column, side in enumerate(sides):
            self._string(place.head, column, table.headings[column], **head, **side)
        # Bold letters are wider: as if every word had one more.
        self._height(place.head, enumerate(x.replace(" ", "  ") for x in table.headings))
        for row, cells in enumerate(table.all_rows, start=place.first):
            height = self._height(row, ((i, x.shown) for i, x in enumerate(cells) if x.is_text))
            for column, cell in enumerate(cells):
                style = _properties(cell, is_total=row > place.last) | sides[column] | height
                if cell.is_text and self._n_lines(column, cell.shown) > 1:
                    style["text_wrap"] = True
                self._cell(place, row, column, cell, self.style(**style))
        row_after = place.first + len(table.all_rows)
        if table.note:
            self._prose(row_after, table.note, italic=True)
            row_after += 1
        if place.head == 2:  # The first table of a sheet.
            self.sheet.freeze_panes(place.first, 1)
            if table.is_sortable and table.rows and table.key not in self.named:
                self.sheet.autofilter(place.head, 0, place.last, len(table.headings) - 1)
        return row_after + 1

    def _cell(self, place: _Placed, row: int, column: int, cell: Cell, style: Any) -> None:
        value = cell.value
        if cell.expression:
            formula = self._resolved(cell.expression, place.table.key, row)
            self._formula(row, column, formula, cell, style)
        elif isinstance(value, str):
            self.sheet.write_string(row, column, value[:_MOST_CHARACTERS], style)
        elif value is None or not math.isfinite(value):
            self.sheet.write_blank(row, column, None, style)
        else:
            self.sheet.write_number(row, column, float(value), style)
        if cell.is_input:
            self.sheet.data_validation(row, column, row, column, _PRICES)

    def _resolved(self, expression: str, own: str = "", row: int = 0) -> str:
        """The expression with the addresses of the cells that it names."""
        from xlsxwriter.utility import xl_range_abs, xl_rowcol_to_cell

        def address(match: re.Match[str]) -> str:
            place = self.places[match["table"] or own]
            sheet = "" if place.sheet == self.section.sheet else f"'{place.sheet}'!"
            column = int(match["column"] or match["at"])
            if match["what"] == "r":
                return sheet + str(xl_range_abs(place.first, column, place.last, column))
            if match["what"] == "c":
                return str(xl_rowcol_to_cell(row, column))
            at = place.last + 1 if match["what"] == "t" else place.first + int(match["row"])
            return sheet + str(xl_rowcol_to_cell(at, column, row_abs=True, col_abs=True))

        return _REFERENCE.sub(address, expression)


def _cached(cell: Cell) -> str | float:
    """The value of a formula that is stored beside it."""
    value = "" if cell.value is None else cell.value
    return value if isinstance(value, str) else float(value)


def _properties(cell: Cell, *, is_total: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pattern = KINDS[cell.kind].pattern.format(f".{'0' * cell.digits}" if cell.digits else "")
    if pattern:
        found["num_format"] = pattern
    if is_total:
        found |= {"bold": True, "top": 1}
    if cell.is_input:
        found |= {"bg_color": "#fff8d6", "font_color": "#0000c0", "border": 4}
    return found


def _side(column: int, is_number: bool) -> dict[str, Any]:
    """Where a column is written: numbers on the right, texts on the left with room before them."""
    if is_number:
        return {"align": "right"}
    return {"align": "left", "indent": int(column > 0)}
