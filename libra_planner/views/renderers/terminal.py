"""The terminal: consoles, and paragraphs, tables and histograms on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import rich.table
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from libra_planner.plain_text import visible, visible_lines
from libra_planner.routing.loads import distribution
from libra_planner.views.cells import Block, Cell, Histogram, Table, escape

_BAR_CELLS, _LEAST_CELLS = 24, 6
"""Longest bar of a table, and the shortest that still says something."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_HISTOGRAM_CELLS, _N_BINS = 40, 12


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


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks; paragraphs are wrapped on a terminal, and one line anywhere else."""
    for block in blocks:
        if isinstance(block, Table):
            console.print(terminal_table(console, block))
            continue
        lines = [block] if isinstance(block, str) else _histogram_lines(console, block)
        for line in lines:
            console.print(visible(line), soft_wrap=not console.is_terminal)


def terminal_table(console: Console, table: Table) -> rich.table.Table:
    """A table as wide as there is room; a narrow terminal loses what it can do without."""
    table = _with_bars(console, table) if table.bar is not None else table
    for name in table.dispensable:
        if sum(_widths(table)) > console.width:
            table = _without(table, name)
    return rich_table(table)


def rich_table(table: Table) -> rich.table.Table:
    """A table without lines."""
    shown = rich.table.Table(title=table.caption or None, box=None)
    shown.title_justify = "left"
    for name in table.headings:
        is_left = name in table.left
        shown.add_column(
            name.strip(),
            justify="left" if is_left else "right",
            style="cyan" if name == table.bar else "",
            no_wrap=not (is_left and table.is_wrapped),
        )
    for row in table.rows:
        shown.add_row(*(escape(cell.shown) for cell in row))
    return shown


def _widths(table: Table) -> list[int]:
    columns = zip(table.headings, *([one.shown for one in row] for row in table.rows), strict=True)
    return [max(map(len, column)) + 2 for column in columns]


def _without(table: Table, name: str) -> Table:
    """The table without a column, if it has one."""
    kept = [i for i, heading in enumerate(table.headings) if heading != name]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, headings=tuple(table.headings[i] for i in kept), rows=rows)


def _with_bars(console: Console, table: Table) -> Table:
    """The table with bars in place of fractions, or without them where there is no room."""
    i = table.headings.index(str(table.bar))
    room = console.width - sum(_widths(_without(table, str(table.bar))))
    n_cells = min(_BAR_CELLS, room - 2)
    if n_cells < _LEAST_CELLS:
        return _without(table, str(table.bar))
    plain = console.options.ascii_only
    bars = (_bar(float(row[i].value or 0), n_cells, ascii_only=plain) for row in table.rows)
    pairs = zip(table.rows, bars, strict=True)
    return replace(table, rows=tuple((*row[:i], Cell(bar), *row[i + 1 :]) for row, bar in pairs))


def _bar(fraction: float, n_cells: int, *, ascii_only: bool = False) -> str:
    """A bar of eighths of a cell, or of whole cells where there is no Unicode.

    >>> _bar(0.5, 8), _bar(0.5, 8, ascii_only=True)
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
