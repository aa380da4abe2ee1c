"""A document as Markdown, and its tables as CSV: text that cannot become anything else."""

from __future__ import annotations

import re
from decimal import Decimal

from libra_planner.plain_text import spreadsheet_text
from libra_planner.views.cells import (
    Cell,
    Report,
    Section,
    Table,
    csv_of,
    numeric_columns,
    to_decimals,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
_LINE_START = re.compile(r"([-+](?=\s|$)|[-=]+$|\d+[.)](?=\s|$))")
"""What begins a list, or makes a heading of the line before."""


def markdown(report: Report) -> str:
    """The document as Markdown with tables, without pictures."""
    parts = [f"# {escaped(report.title)}", escaped(report.subtitle)]
    parts += [part for section in report.sections for part in _section(section)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: Section) -> list[str]:
    parts = [f"## {escaped(section.title)}"]
    parts += [f"**{escaped(text)}**" for text in section.lead[:1]]
    parts += [escaped(section.points_title)]
    parts += ["\n".join(f"- {escaped(text)}" for text in section.points)]
    parts += map(escaped, section.lead[1:])
    parts += [f"**Warning:** {escaped(text)}" for text in section.warnings]
    for card in section.cards:
        head = f"**{escaped(card.title)}: {escaped(card.answer)}** ({escaped(card.figure)})"
        parts.append(f"{head}. {escaped(card.reason)}")
    texts = [escaped(text) for text in section.paragraphs]
    is_list = section.key == "risks" or section.lead
    prose = ["\n".join(f"- {text}" for text in texts)] if is_list else texts
    parts += [] if section.lead else prose
    for table in section.tables:
        parts += [f"**{escaped(table.caption)}**", _table(table), escaped(table.note)]
    return [*parts, *prose] if section.lead else parts


def _table(table: Table) -> str:
    rows = [[escaped(heading) or " " for heading in table.headings]]
    rows.append(["---:" if is_number else "---" for is_number in numeric_columns(table)])
    rows += [[escaped(cell.shown) for cell in row] for row in table.rows]
    total = (escaped(cell.shown) for cell in table.total or ())
    rows += [found] if (found := [f"**{text}**" if text else "" for text in total]) else []
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no link, on one line.

    >>> escaped("<b> a|b"), escaped("- x"), escaped("1. x"), escaped("-1.5%")
    ('\\\\<b\\\\> a\\\\|b', '\\\\- x', '1\\\\. x', '-1.5%')
    """
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    found = _LINE_START.match(line)
    if found is None:
        return line
    start = found[1]
    safe = f"{start[:-1]}\\{start[-1]}"
    return safe + line[found.end() :]


def csv_text(table: Table) -> str:
    """A table as CSV (RFC 4180): headings, rows, total; numbers bare, money that adds up exact."""
    rows = (tuple(map(Cell, table.headings)), *table.all_rows)
    return csv_of(([_field(cell) for cell in row] for row in rows), end="\r\n")


_EXACT = ("usd", "unit_usd", "delta_usd")
"""Kinds of money that adds up: rates of exchange may make decimals of a cent."""


def _field(cell: Cell) -> str:
    if cell.value is None:
        return ""
    if isinstance(cell.value, str):
        return spreadsheet_text(cell.value)
    if cell.kind in _EXACT and isinstance(cell.value, Decimal):
        return to_decimals(cell.value)
    if cell.kind.endswith("usd"):
        return f"{cell.value:.2f}"
    if cell.kind == "points":
        return repr(float(cell.value) / 100)
    # A float of numpy is one, too, but its repr is not a number.
    return repr(float(cell.value)) if isinstance(cell.value, float) else str(cell.value)
