"""The terminal: consoles, and paragraphs, tables and histograms on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import rich.table
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from libra_planner.plain_text import line_breaks, visible, visible_lines
from libra_planner.plan.steps.notes import lead_of
from libra_planner.routing.loads import distribution
from libra_planner.views.cells import Block, Cell, Histogram, Table

_BAR_CELLS, _LEAST_CELLS = 24, 6
"""Longest bar of a table, and the shortest that still says something."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_HISTOGRAM_CELLS, _N_BINS = 40, 12
_LONG, _SHORT = 24, 4
"""Longest texts of a table that is too wide; the second where the first makes too little room."""


class PlainConsole(Console):
    """A console that leaves a closed pipe to the caller, and obeys no text."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Segments without control characters, wherever a text came from."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible_lines(segment.text)
            yield Segment(text, segment.style, segment.control)


def show(
    console: Console,
    blocks: Iterable[Block],
    *,
    is_wrapped: bool | None = None,
    has_head: bool = False,
) -> None:
    """Print blocks; paragraphs are wrapped on a terminal, and one line anywhere else.

    Parameters
    ----------
    console, blocks : where, and what.
    is_wrapped : whether paragraphs are wrapped; by default on a terminal.
    has_head : whether those in front of the first empty line or table are wrapped elsewhere, too,
        at 80 columns, as logs and mails have them.
    """
    wraps = console.is_terminal if is_wrapped is None else is_wrapped
    width = console.width if wraps else min(console.width, HEAD_WIDTH)
    is_head = has_head
    for block in blocks:
        if isinstance(block, Table):
            _print_table(console, block)
            is_head = False
            continue
        lines = [block] if isinstance(block, str) else _histogram_lines(console, block)
        for line in lines:
            is_head &= bool(line)
            for part in _wrapped(line, width if wraps or is_head else None):
                console.print(part, soft_wrap=not wraps)


HEAD_WIDTH = 80
"""Columns of the first lines where stdout is no terminal."""


def _wrapped(markup: str, width: int | None) -> Iterable[Text]:
    """A paragraph as lines of so many columns at most."""
    text = Text.from_markup(visible(markup))
    lines = text.divide(line_breaks(text.plain, width)) if width else [text]
    for line in lines:
        line.rstrip()
    return lines


def _print_table(console: Console, table: Table) -> None:
    """A table, what its letters stand for, and what has no room in it."""
    shown = _with_bars(table, console) if table.bar is not None else table
    shown, legend = _fitting(shown, console.width)
    room = console.width
    console.width = max(room, _width(shown)) if table.is_asked else room
    console.print(rich_table(shown), crop=False)
    console.width = room
    for line in legend:
        console.print(visible(line), markup=False, soft_wrap=not console.is_terminal)
    there = [name for name in (*table.dispensable, *table.last) if name in table.headings]
    lost = [_lost(table, name) for name in there if name not in shown.headings]
    if lost:
        console.print(f"No room for: {visible(', '.join(lost))}", markup=False)


def _lost(table: Table, name: str) -> str:
    """A heading that has no room, and what stands in every row under it, if it is one text."""
    place, words = table.headings.index(name), " ".join(name.split())
    texts = {row[place].shown for row in table.rows}
    return f"{words} ({texts.pop()} in all)" if len(table.rows) > 1 and len(texts) == 1 else words


def _fitting(table: Table, width: int) -> tuple[Table, list[str]]:
    """A table as wide as there is room, and lines that say what letters in it stand for.

    A narrow terminal loses what it can do without; long texts first become letters.
    """
    if _width(table) <= width:
        return table, []
    found, legend = _lettered(table, _LONG)
    found = _without(found, table.dispensable, width)
    if _width(found) > width and (table.keyed or table.last):
        found, legend = _lettered(table, _SHORT)
        found = _without(found, (*table.dispensable, *table.last), width)
    return found, [
        line for name, lines in legend.items() if name in found.headings for line in lines
    ]


_NOTHING = ("", "-")
"""What a cell without a value shows."""


def _lettered(table: Table, longest: int) -> tuple[Table, dict[str, list[str]]]:
    """The table with letters in place of long texts, and lines that tell them, by heading."""
    legend: dict[str, list[str]] = {}
    for name in table.keyed:
        i = table.headings.index(name)
        texts = dict.fromkeys(row[i].shown for row in table.rows if row[i].shown not in _NOTHING)
        if max(map(len, texts), default=0) <= longest:
            continue
        letters = {text: _letters(k) for k, text in enumerate(texts)}
        rows = (
            (*row[:i], Cell(letters.get(row[i].shown, "")), *row[i + 1 :]) for row in table.rows
        )
        table = replace(table, rows=tuple(rows))
        legend[name] = [f"{' '.join(name.split())} {key}: {x}" for x, key in letters.items()]
    return table, legend


def _letters(k: int) -> str:
    """The k-th name of a long text.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    first, last = divmod(k, 26)
    return f"{_letters(first - 1) if first else ''}{chr(ord('A') + last)}"


def _without(table: Table, names: Iterable[str], width: int) -> Table:
    """The table without so many of some columns that the rest has room."""
    for name in names:
        if _width(table) <= width:
            break
        if name in table.headings:
            i = table.headings.index(name)
            headings = (*table.headings[:i], *table.headings[i + 1 :])
            rows = tuple((*row[:i], *row[i + 1 :]) for row in table.rows)
            table = replace(table, headings=headings, rows=rows)
    return table


def _width(table: Table) -> int:
    return sum(_natural_widths(table).values())


def _natural_widths(table: Table) -> dict[str, int]:
    """Cells of every column with its margins, by heading; a heading may have several lines."""
    columns = zip(
        table.headings, *([cell.shown for cell in row] for row in table.rows), strict=True
    )
    return {
        column[0]: max(len(line) for text in column for line in text.split("\n")) + 2
        for column in columns
    }


def rich_table(table: Table) -> rich.table.Table:
    """A table without lines, none of whose figures is ever cut."""
    shown = {name: name.strip() for name in table.headings}
    style: dict[str, Any] = {"title": table.caption or None, "title_justify": "left"}
    found = _columns(table, shown, **style)
    widths = _natural_widths(table)
    for name, column in zip(shown, found.columns, strict=True):
        column.min_width = None if name in table.left or name == table.bar else widths[name] - 2
    return found


def panel_table(table: Table, names: Mapping[str, str] | None = None) -> rich.table.Table:
    """A table that stands in a panel of the cockpit, which has a title of its own.

    Parameters
    ----------
    table : with ``is_wrapped`` what stands on the left may be wrapped.
    names : short headings by those of the columns that are shown, in their order; all of them
        as they are where it is not given.
    """
    names = {name: name for name in table.headings} if names is None else names
    return _columns(table, names, padding=(0, 1, 0, 0), header_style="dim")


def note_lines(notes: Iterable[str]) -> Text:
    """Notes as the commands print them, a paragraph each."""
    return Text("\n".join(f"{lead_of(note)}: {note}" for note in notes), "dim")


def _columns(table: Table, names: Mapping[str, str], **style: Any) -> rich.table.Table:
    shown = rich.table.Table(box=None, **style)
    for name, heading in names.items():
        is_left = name in table.left
        shown.add_column(
            heading,
            justify="left" if is_left else "right",
            style="cyan" if name == table.bar else "",
            no_wrap=not (is_left and table.is_wrapped),
        )
    places = [table.headings.index(name) for name in names]
    for row in table.rows:
        shown.add_row(*(Text(visible(row[i].shown)) for i in places))
    return shown


def _with_bars(table: Table, console: Console) -> Table:
    """The table with bars in place of fractions, or without them where they have no room."""
    name = str(table.bar)
    i, others = table.headings.index(name), _without(table, [name], 0)
    n_cells = min(_BAR_CELLS, console.width - _width(others) - 2)
    if n_cells < _LEAST_CELLS:
        return others
    ascii_only = console.options.ascii_only
    bars = (bar(float(row[i].value or 0), n_cells, ascii_only=ascii_only) for row in table.rows)
    pairs = zip(table.rows, bars, strict=True)
    return replace(table, rows=tuple((*row[:i], Cell(bar), *row[i + 1 :]) for row, bar in pairs))


def bar(fraction: float, n_cells: int, *, ascii_only: bool = False) -> str:
    """A bar of eighths of a cell, or of whole cells where there is no Unicode.

    >>> bar(0.5, 8), bar(0.5, 8, ascii_only=True)
    ('████    ', '####    ')
    """
    if ascii_only:
        return ("#" * round(fraction * n_cells)).ljust(n_cells)
    eighths = round(fraction * n_cells * 8)
    text = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return text.ljust(n_cells)


def _histogram_lines(console: Console, histogram: Histogram) -> Iterator[str]:
    title, samples = histogram.title, histogram.samples
    yield ""
    if np.ptp(samples) == 0:
        yield f"{title}: all {len(samples):,} at {samples[0]:.2f}"
        return
    found = distribution(samples, n_bins=_N_BINS)
    yield title
    most = int(found.counts.max())
    cells = min(_HISTOGRAM_CELLS, max(console.width - 30, 5))
    for i, n in enumerate(found.counts.tolist()):
        bar = "#" * max(round(cells * n / most), int(n > 0))
        low, high = found.edges[i], found.edges[i + 1]
        yield f"{low:8.2f} - {high:8.2f}  {n:>6,}  {bar}".rstrip()
