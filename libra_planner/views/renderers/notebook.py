"""A notebook: blocks as a piece of HTML that needs no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from io import StringIO

from rich.console import Console
from rich.text import Text

from libra_planner.plain_text import visible, visible_lines
from libra_planner.views.cells import Block, Histogram, Table
from libra_planner.views.renderers import terminal

_TABLE = "border-collapse:collapse;margin:0.3em 0 0.8em 0"
_CELL = "text-align:{};padding:0.15em 0.8em;vertical-align:top"
_NUMBER = f"{_CELL};white-space:nowrap"
_CAPTION = "text-align:left;font-weight:bold;white-space:nowrap"
_BAR = "display:inline-block;height:0.7em;background:#3b7dd8;width:{:.1f}em"
_BAR_EM = 8.0
_TEXT_WIDTH = 100


def html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; every text is escaped.

    Examples
    --------
    >>> html(["[bold]1 < 2[/]"])
    '<div><div><b>1 &lt; 2</b></div></div>'
    """
    return f"<div>{''.join(map(_block, blocks))}</div>"


def text(blocks: Iterable[Block], width: int = _TEXT_WIDTH) -> str:
    """Blocks as a terminal without colours shows them.

    Examples
    --------
    >>> text(["[bold]1 < 2[/]"])
    '1 < 2'
    """
    file = StringIO()
    console = terminal.PlainConsole(
        file=file, width=width, highlight=False, force_terminal=False, force_jupyter=False
    )
    terminal.show(console, blocks)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def plain(markup: str) -> str:
    """A paragraph without its markup."""
    return visible(Text.from_markup(markup).plain)


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Histogram):
        return f"<pre>{escape(text([block]))}</pre>"
    return f"<div>{''.join(_pieces(visible(block)))}</div>" if block else "<br>"


def _pieces(markup: str) -> Iterator[str]:
    console = Console(file=StringIO(), force_jupyter=False)
    for segment in Text.from_markup(markup, end="").render(console):
        piece, style = escape(segment.text), segment.style
        if style is not None and style.bold:
            piece = f"<b>{piece}</b>"
        if style is not None and style.color is not None:
            piece = f'<span style="color:{escape(style.color.name)}">{piece}</span>'
        yield piece


def _table(table: Table) -> str:
    aligned = ["left" if name in table.left else "right" for name in table.headings]
    head = "".join(
        f'<th style="{_CELL.format(how)}">{_lines(name)}</th>'
        for name, how in zip(table.headings, aligned, strict=True)
    )
    rows = "".join(f"<tr>{''.join(_cells(table, row, aligned))}</tr>" for row in table.all_rows)
    caption = escape(visible(table.caption))
    shown = f'<caption style="{_CAPTION}">{caption}</caption>' if caption else ""
    return f'<table style="{_TABLE}">{shown}<tr>{head}</tr>{rows}</table>'


def _lines(heading: str) -> str:
    """A heading, which may have several lines."""
    return escape(visible_lines(heading.strip())).replace("\n", "<br>")


def _cells(table: Table, row: Iterable[object], aligned: list[str]) -> Iterator[str]:
    for name, cell, how in zip(table.headings, row, aligned, strict=True):
        if name == table.bar:
            width = _BAR_EM * float(getattr(cell, "value", 0) or 0)
            inner = f'<span style="{_BAR.format(width)}"></span>'
        else:
            inner = escape(visible(str(getattr(cell, "shown", ""))))
        style = _NUMBER if how == "right" else _CELL
        yield f'<td style="{style.format(how)}">{inner}</td>'
