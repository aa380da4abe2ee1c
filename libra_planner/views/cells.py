"""Values with how they are shown, and tables, texts and sections of them: no medium yet.

A cell may carry an expression for spreadsheets. It names other cells by where they are in a
table, in brackets: ``[c3]`` is column 3 of the same row, ``[r3]`` all rows of column 3,
``[t3]`` that column in the total row; ``[prices/r3]`` is of another table, ``[prices/2/3]``
row 2, column 3 there. Nothing from a user's file ever becomes part of an expression.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

from libra_planner.plain_text import visible
from libra_planner.units import USD_STEPS, short_usd

TEXT, NUMBER, PERCENT = "text", "number", "percent"
UNKNOWN = "n/a"
"""What is shown where there is no value."""

PART_OF_A_STEP = "not available: the workload is part of a step"
"""What is shown where a figure of a run has no meaning (C21)."""

MINUS = "\u2212"


@dataclass(frozen=True)
class Cell:
    """One value.

    Parameters
    ----------
    value : text or a number; ``None`` where there is none.
    expression : for spreadsheets.
    kind : how it is shown.
    digits : after the decimal point, of shares, differences of them and ``number``.
    is_input : a value that a reader of a spreadsheet may change.
    tag : one word that is shown as a mark, such as a confidence.
    """

    value: str | int | float | Decimal | None
    expression: str = ""
    kind: str = TEXT
    digits: int = 1
    is_input: bool = False
    tag: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is text, or nothing."""
        return self.value is None or isinstance(self.value, str)

    @property
    def shown(self) -> str:
        """The value for people, with a hyphen as minus.

        >>> usd(Decimal("1234.5")).shown, delta(-0.032).shown, count(None).shown
        ('$1,234.50', '-3.2%', 'n/a')
        >>> points(-1.44).shown, round_usd(42_919_249).shown, round_delta_usd(-999_600.0).shown
        ('-1.4 pp', '$42.9M', '-$1.00M')
        """
        value = self.value
        if value is None:
            return UNKNOWN
        if isinstance(value, str):
            return value
        if isinstance(value, float) and not math.isfinite(value):
            return "endless"
        return KINDS[self.kind].shown(value, self.digits)


def _money(value: int | float | Decimal, sign: str) -> str:
    text = f"{value:{sign},.2f}"
    return f"{text[0]}${text[1:]}" if text[0] in "+-" else f"${text}"


def to_decimals(value: int | float | Decimal) -> str:
    """An amount to the cent, with up to six decimals where a cent is not enough.

    >>> to_decimals(Decimal("585.104")), to_decimals(Decimal("1450.00"))
    ('585.104', '1450.00')
    """
    whole, decimals = f"{value:.6f}".split(".")
    return f"{whole}.{decimals.rstrip('0').ljust(_CENTS, '0')}"


_CENTS = 2
"""Decimals of a dollar."""


def _unit_money(value: int | float | Decimal) -> str:
    whole, decimals = to_decimals(value).split(".")
    return f"{_money(int(whole), '')[:-_CENTS]}{decimals}"


def _rounded(value: int | float | Decimal, sign: str) -> str:
    """An amount in three digits, from a thousand on: what is assumed is not known to the cent."""
    size = abs(float(value))
    if size < USD_STEPS[-2][0]:
        return _money(value, sign)
    return f"{'-' if value < 0 else sign}{short_usd(size)}"


def _change(value: float, digits: int) -> str:
    """A difference with its sign; one that rounds to 0 has none."""
    shown = f"{value:+,.{digits}f}"
    return shown if shown.strip("+-0.") else shown[1:]


def _signed(value: float | Decimal, digits: int) -> str:
    text = f"{float(value):+,.{digits}%}"
    zero = f"{0:+,.{digits}%}"
    return zero[1:] if text[1:] == zero[1:] else text


class Kind(NamedTuple):
    """What a kind of cell looks like.

    Parameters
    ----------
    shown : the value for people, from it and its digits.
    pattern : of spreadsheets; ``{}`` stands for the point and the digits behind it.
    """

    shown: Callable[[Any, int], str]
    pattern: str


KINDS = {
    TEXT: Kind(lambda value, _: str(value), ""),
    "count": Kind(lambda value, _: f"{value:,d}", "#,##0"),
    "usd": Kind(lambda value, _: _money(value, ""), "$#,##0.00;-$#,##0.00"),
    "unit_usd": Kind(lambda value, _: _unit_money(value), "$#,##0.00####;-$#,##0.00####"),
    "round_usd": Kind(lambda value, _: _rounded(value, ""), "[>=1000]$#,##0;$#,##0.00"),
    NUMBER: Kind(lambda value, digits: f"{value:,.{digits}f}", "#,##0{}"),
    PERCENT: Kind(lambda value, digits: f"{100 * value:,.{digits}f}%", "0{}%"),
    "change": Kind(_change, "+#,##0{0};-#,##0{0};#,##0{0}"),
    "delta": Kind(_signed, "+0{0}%;-0{0}%;0{0}%"),
    "delta_usd": Kind(
        lambda value, _: _money(value, "+") if value else "$0.00", "+$#,##0.00;-$#,##0.00;$0.00"
    ),
    "round_delta_usd": Kind(
        lambda value, _: _rounded(value, "+") if value else "$0", "+$#,##0;-$#,##0;$0"
    ),
    "points": Kind(
        lambda value, digits: f"{_signed(value / 100, digits)[:-1]} pp",
        '+0{0}" pp";-0{0}" pp";0{0}" pp"',
    ),
}
"""Kinds of cells, by name."""


usd = partial(Cell, kind="usd")
"""An amount of money, to the cent."""
unit_usd = partial(Cell, kind="unit_usd")
"""A price of one: to the cent, exact where a rate of exchange makes more decimals."""
delta_usd = partial(Cell, kind="delta_usd")
"""A difference of money."""
round_usd = partial(Cell, kind="round_usd")
"""An amount that people see in three digits; spreadsheets hold it to the cent, and show dollars."""
round_delta_usd = partial(Cell, kind="round_delta_usd")
"""A difference of such amounts."""
count = partial(Cell, kind="count")
"""A whole number."""
delta = partial(Cell, kind="delta")
"""A relative difference, with its sign."""
change = partial(Cell, kind="change")
"""A difference of numbers, with its sign."""
points = partial(Cell, kind="points")
"""A difference of shares in percentage points."""


def number(value: float | None, digits: int = 1, expression: str = "") -> Cell:
    """A number with so many digits after the point; its unit stands in the heading."""
    return Cell(value, expression, NUMBER, digits)


def percent(value: float | None, digits: int = 1, expression: str = "") -> Cell:
    """A share."""
    return Cell(value, expression, PERCENT, digits)


def mark(text: str) -> Cell:
    """One word that is shown as a mark."""
    return Cell(text, tag=True)


Value: TypeAlias = Cell | str


def printable(text: str) -> str:
    """Text without control characters and broken Unicode: spaces stand for them.

    >>> printable("a\\x07b\\tc")
    'a b c'
    """
    return "".join(char if char.isprintable() else " " for char in text)


def cell(value: Value) -> Cell:
    """Text as a cell of a document, without control characters."""
    return Cell(printable(value)) if isinstance(value, str) else value


def said_once(said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Letters of designs and texts, each text once with all its letters.

    >>> said_once([("A", "x"), ("B", "y"), ("C", "x")])
    [('A, C', 'x'), ('B', 'y')]
    """
    letters: dict[str, list[str]] = {}
    for letter, text in said:
        letters.setdefault(text, []).append(letter)
    return [(", ".join(dict.fromkeys(whose)), text) for text, whose in letters.items()]


def two_digits(value: float) -> str:
    """Two digits, or - for what is not defined.

    >>> two_digits(36.537), two_digits(float("nan"))
    ('36.54', '-')
    """
    return "-" if math.isnan(value) else f"{value:.2f}"


def figure_cells(*values: Value | float) -> tuple[Value, ...]:
    """Cells of a row: of two digits, whole numbers, and what is text or a cell as it is."""

    def shown(value: Value | float) -> Value:
        if isinstance(value, float):
            return two_digits(value)
        return value if isinstance(value, str | Cell) else count(value)

    return tuple(map(shown, values))


@dataclass(frozen=True)
class Table:
    """A table.

    Parameters
    ----------
    key : unique in a document, of lower-case letters, digits and hyphens.
    caption : what it shows.
    headings : of the columns; the first column names the rows.
    rows, total : cells, as many as headings.
    note : below it.
    is_sortable : whether the order of the rows means nothing.
    left : headings of the columns that a terminal writes from the left.
    dispensable : headings that a narrow terminal loses, in this order.
    keyed : headings of texts that a narrow terminal writes below the table, where they are long.
    last : headings that it loses where all of this makes too little room.
    is_wrapped : whether a terminal wraps what is too long on the left.
    bar : heading of a column of fractions that a terminal draws as bars, if it has room.
    is_folded : whether a page shows it only to those who open it.
    off_page : headings of columns that a page leaves to workbook, CSV and Markdown.
    print_to : heading of the last column that a workbook prints, where more have no room on a page.
    is_printed : whether a workbook prints it, and what stands below it on its sheet.
    is_asked : whether the reader named the columns: a narrow terminal has all of them.
    is_behind : whether it stands behind the signature of a page's first section.
    """

    key: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None = None
    note: str = ""
    is_sortable: bool = False
    left: tuple[str, ...] = ()
    dispensable: tuple[str, ...] = ()
    keyed: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    is_wrapped: bool = False
    bar: str | None = None
    is_folded: bool = False
    off_page: tuple[str, ...] = ()
    print_to: str = ""
    is_printed: bool = True
    is_asked: bool = False
    is_behind: bool = False

    @property
    def all_rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows and the total."""
        return (*self.rows, *([] if self.total is None else [self.total]))


def table(
    key: str,
    caption: str,
    headings: Iterable[str],
    rows: Iterable[Iterable[Value]],
    *,
    total: Sequence[Value] | None = None,
    **others: Any,
) -> Table:
    """A table of texts and cells, as :func:`table_of`."""

    def cells(values: Iterable[Value]) -> tuple[Cell, ...]:
        # A terminal shows control characters by their numbers; a document has none.
        return tuple(cell(x) if key or isinstance(x, Cell) else Cell(x) for x in values)

    last = None if total is None else cells(total)
    return Table(key, caption, tuple(headings), tuple(map(cells, rows)), last, **others)


_Item = TypeVar("_Item")


def table_of(
    caption: str,
    items: Iterable[_Item],
    columns: Mapping[str, Callable[[_Item], Value]],
    *,
    key: str = "",
    **others: Any,
) -> Table:
    """A table with a row for every item, and a function of it for every column.

    Parameters
    ----------
    caption : what it shows.
    items : one for every row.
    columns : functions by heading.
    key : of a table of a document, whose texts have no control characters.
    others : the last row, ``total``, and what else :class:`Table` has.

    Examples
    --------
    >>> table_of("Squares", [2, 3], {"n": str, "square": lambda n: count(n * n)}).rows[1][1].shown
    '9'
    """
    rows = ([figure(item) for figure in columns.values()] for item in items)
    return table(key, caption, columns, rows, **others)


@dataclass(frozen=True)
class Histogram:
    """How many samples have which size.

    Parameters
    ----------
    title : what the samples are.
    samples : shape (n,).
    """

    title: str
    samples: Any = field(repr=False)


Block: TypeAlias = str | Table | Histogram
"""A part of what a terminal shows: a paragraph in rich's markup, empty for a line of its own."""


def escape(text: str) -> str:
    r"""Text in a paragraph that is shown as it is: no markup, no control characters, on one line.

    >>> print(escape("[red]a\x1b[2J"))
    \[red]a\x1b[2J
    """
    from rich import markup

    return markup.escape(visible(text))


def csv_of(rows: Iterable[Iterable[Any]], end: str = "\n") -> str:
    r"""CSV of rows, each with an end.

    >>> csv_of([["a", "b"], [1, "c,d"]])
    'a,b\n1,"c,d"\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue()


def finite(value: float | None) -> float | None:
    """A figure for JSON: null for what is not defined.

    >>> finite(1.5), finite(math.inf), finite(None)
    (1.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def attributes(item: object, *names: str, **others: str) -> dict[str, Any]:
    """Attributes of an object that JSON has under the same names or, behind them, others.

    >>> attributes(complex(3, math.nan), "real", other="imag", twice="real.real")
    {'real': 3.0, 'other': None, 'twice': 3.0}
    """
    keys = {name: name for name in names} | others
    values = {key: attrgetter(name)(item) for key, name in keys.items()}
    return {key: finite(x) if isinstance(x, float) else x for key, x in values.items()}


def numeric_columns(one: Table) -> list[bool]:
    """Which columns hold numbers, for the most part."""
    columns = zip(*one.rows, strict=True) if one.rows else [()] * len(one.headings)
    return [2 * sum(cell.kind != TEXT for cell in column) > len(column) for column in columns]


@dataclass(frozen=True)
class Card:
    """One answer of the first screen."""

    title: str
    answer: str
    figure: str
    reason: str


@dataclass(frozen=True)
class Chart:
    """A picture.

    Parameters
    ----------
    key : of the chart.
    title : what it shows, read aloud in its place.
    svg : the picture; its text is in the colour of the page's text.
    """

    key: str
    title: str
    svg: str = field(repr=False)


@dataclass(frozen=True)
class Series:
    """Cells that a workbook's own chart draws.

    Parameters
    ----------
    name : in the legend.
    x, y : cells, as expressions name them: ``[key/r1]`` is column 1 of a table.
    colour : such as ``#0072b2``; empty for what holds up other bars and is not seen.
    label_colour : of the amounts that stand on its columns.
    sign : of these, where columns are changes, whose amounts stand on white: they may be thin.
    """

    name: str
    x: str
    y: str
    colour: str = ""
    label_colour: str = "#000000"
    sign: str = ""


@dataclass(frozen=True)
class BookChart:
    """A chart that a workbook draws from its cells.

    Parameters
    ----------
    kind : ``column``, ``bar`` or ``scatter``; bars and columns are stacked.
    title, x_title, y_title : of it and its axes.
    series : what it draws.
    has_legend : whether it names them.
    """

    kind: str
    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    has_legend: bool = True


@dataclass(frozen=True)
class Section:
    """A part of a document.

    Parameters
    ----------
    key, title : its anchor and heading.
    sheet : of the workbook.
    lead : what somebody who reads nothing else has to read.
    points_title, points : a list behind its first sentence, and what introduces it.
    short_points : the same in few words, for pages that have all of it further down.
    n_grave : how many of the points, the first ones, matter most.
    tabled : what of the lead its tables say, too: a page leaves it out.
    brief : the lead behind its first sentence in few words, for pages that have all of it further
        down.
    behind : short points, texts of the brief and warnings that a page has behind its signature.
    pointer : what paper says of these, and of tables that stand there.
    sign_by : what stands right above the signature on paper.
    paragraphs : in front of the charts and tables; behind them where the section has a lead.
    warnings : paragraphs that must not be missed.
    cards, charts, tables : in this order.
    live : texts that a workbook computes anew; other formats do not show them.
    is_static : whether it has figures or words that no formula keeps in step with prices.
    is_folded : whether a page shows it only to those who open it.
    is_printed : whether paper shows the tables of it that are not folded themselves, all the same.
    drawn : charts that a workbook draws itself.
    """

    key: str
    title: str
    sheet: str
    paragraphs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    live: tuple[Cell, ...] = ()
    is_static: bool = False
    lead: tuple[str, ...] = ()
    is_folded: bool = False
    is_printed: bool = False
    drawn: tuple[BookChart, ...] = ()
    points_title: str = ""
    points: tuple[str, ...] = ()
    short_points: tuple[str, ...] = ()
    n_grave: int = 0
    tabled: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    pointer: str = ""
    sign_by: str = ""

    @property
    def said(self) -> tuple[str, ...]:
        """The lead line by line, its points behind the first.

        >>> Section("a", "A", "A", lead=("Stop.", "Why."), points=("One.", "Two.")).said
        ('Stop.', '- One.', '- Two.', 'Why.')
        """
        title = (self.points_title,) if self.points_title else ()
        return (*self.lead[:1], *title, *(f"- {text}" for text in self.points), *self.lead[1:])

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Sentences behind the lead's first line that neither brief nor tables of a page say.

        >>> own = {"lead": ("Buy A.", "It costs $1.5. It waits."), "brief": ("It costs $1.5.",)}
        >>> Section("a", "A", "A", **own).unsaid
        ('It waits.',)
        """
        if not self.brief:
            return ()
        said = {one for text in (*self.brief, *self.tabled) for one in _SENTENCE.split(text)}
        lines = (text for text in self.lead[1:] if text not in self.tabled)
        left = (" ".join(x for x in _SENTENCE.split(text) if x not in said) for text in lines)
        return tuple(filter(None, left))


_SENTENCE = re.compile(r"(?<=[.!?])\s+")
"""What stands between two sentences."""


@dataclass(frozen=True)
class Report:
    """A document.

    Parameters
    ----------
    title, subtitle : its head.
    sections : in order.
    prices_moved : whether a reader of the workbook has changed a price.
    sheets : sections that only a workbook has, behind the others.
    is_signed : whether paper has a line for a name, a signature and a date.
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    prices_moved: str = ""
    sheets: tuple[Section, ...] = ()
    is_signed: bool = False

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of all sections."""
        return tuple(one for section in self.sections for one in section.tables)
