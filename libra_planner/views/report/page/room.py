"""The room of a first page on paper: its signature stands there, and what has no room behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from libra_planner.views.cells import Section, Table

PAGE = 950
"""Pixels of a page of US letter between its margins, with a line to spare; A4 is higher."""

MONEY = "money-by-group"
"""Key of the table of which a page has room last."""

_FIRST_TEXTS = 3
"""Texts that stand above the signature before the tables behind the first one do."""


def fitted(section: Section, page: float = PAGE) -> Section:
    """The section with what has no room above its signature put behind it, and a pointer there.

    The first sentence and the signature always stand on the page, and the first table where these
    leave it room. Warnings and points come next, then a few texts, the other tables and texts.

    Parameters
    ----------
    section : a section with a lead.
    page : pixels of a page.
    """
    tables = [one for one in section.tables if not one.is_behind]
    room, kept = page - _FRAME - _lead_height(section), set[str]()
    for name, height in _wanted(section, tables):
        if height <= room:
            room -= height
            kept.add(name)
    behind = tuple(text for text in page_texts(section) if text not in kept)
    late = [one.key for one in tables if one.key not in kept]
    told = [replace(one, is_behind=one.is_behind or one.key in late) for one in section.tables]
    captions = [one.caption for one in told if one.key in late]
    pointer = _pointer(section, behind, captions)
    return replace(section, tables=tuple(told), behind=behind, pointer=pointer)


def above(section: Section) -> Section:
    """The section as it stands above its signature, with nothing that stands behind."""
    return replace(
        section,
        lead=section.lead[:1],
        short_points=_kept(section, section.short_points),
        n_grave=len(_kept(section, section.short_points[: section.n_grave])),
        warnings=_kept(section, section.warnings),
        brief=_kept(section, section.brief),
        tables=tuple(one for one in section.tables if not one.is_behind),
    )


def height(section: Section) -> float:
    """About how high all of a section's page is, in pixels, its signature included."""
    tables = [one for one in section.tables if not one.is_behind]
    texts = sum(_text_height(text, section) for text in page_texts(section))
    return _FRAME + _lead_height(section) + texts + sum(map(_table_height, tables))


def page_texts(section: Section) -> tuple[str, ...]:
    """What a page says beside its first sentence and its tables, the gravest first."""
    texts = (*section.warnings, *section.short_points, *section.brief)
    return tuple(dict.fromkeys(text for text in texts if text not in section.tabled))


def _kept(section: Section, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(x for x in texts if x not in section.behind and x not in section.tabled)


def _wanted(section: Section, tables: Sequence[Table]) -> Iterator[tuple[str, float]]:
    """What shall stand above the signature, by text or key, with its height; the gravest first."""
    texts = page_texts(section)
    n_first = sum(text not in section.brief for text in texts) + _FIRST_TEXTS
    money = [one for one in tables[1:] if one.key == MONEY]
    others = [one for one in tables[1:] if one.key != MONEY]
    yield from ((one.key, _table_height(one)) for one in tables[:1])
    yield from ((text, _text_height(text, section)) for text in texts[:n_first])
    yield from ((one.key, _table_height(one)) for one in others)
    yield from ((text, _text_height(text, section)) for text in texts[n_first:])
    yield from ((one.key, _table_height(one)) for one in money)


def _pointer(section: Section, behind: Sequence[str], captions: Sequence[str]) -> str:
    """What stands on page two and not on the first, in words; empty for nothing."""
    kinds = {"warning": section.warnings, "open point": section.short_points}
    told = []
    for kind, texts in kinds.items():
        if n := sum(text in texts for text in behind):
            told.append(f"{n} {kind}{'s' * (n > 1)}")
    n = len(behind) - sum(any(x in texts for texts in kinds.values()) for x in behind)
    told += [f"{n} remark{'s' * (n > 1)}"] * bool(n)
    told += [f'"{caption}"' for caption in captions]
    return f"More on page 2: {', '.join(told)}." if told else ""


def _lead_height(section: Section) -> float:
    """Of what always stands: the first sentence, what introduces points, by when to sign."""
    lead = sum(_LEAD * _n_lines(text, _LEAD_LETTERS) for text in section.lead[:1])
    by = _TEXT * _n_lines(section.sign_by, _BOLD_LETTERS) + _BETWEEN if section.sign_by else 0.0
    return lead + (_TEXT + _BETWEEN) * bool(section.points_title) + by


def _text_height(text: str, section: Section) -> float:
    """Of a paragraph; what is grave has broader letters, and points stand close together."""
    if text in section.short_points[: section.n_grave]:
        return _TEXT * _n_lines(text, _BOLD_LETTERS)
    if text in section.short_points:
        return _TEXT * _n_lines(text, _POINT_LETTERS)
    if text in section.warnings:
        return _TEXT * _n_lines(text, _BOLD_LETTERS) + _BETWEEN + _FRAMED
    return _TEXT * _n_lines(text, _LETTERS) + _BETWEEN


def _table_height(one: Table) -> float:
    """Of a table: caption, heads, rows, total and note, with what takes several lines."""
    room = _CELLS.get(one.key, _CELL)
    named = _NAME if one.key == "considered" else room
    rows = (
        max(_n_lines(row[0].shown, named), *(_n_lines(cell.shown, room) for cell in row[1:]))
        for row in one.rows
    )
    wrapped = _WRAPPED * (sum(n - 1 for n in rows) + _n_heads(one))
    note = _NOTE * _n_lines(one.note, _NOTE_LETTERS) + _BETWEEN if one.note else 0.0
    rows_and_all = _ROW * (2 + len(one.rows) + bool(one.total)) + wrapped + note + _BESIDE
    return max(rows_and_all, _PICTURE.get(one.key, 0))


def _n_heads(one: Table) -> int:
    """Lines of heads beyond the first; names in front of many columns leave these less room."""
    if one.key != "considered":
        return 0
    return 5 if max(len(row[0].shown) for row in one.rows) > _LONG_NAME else 2


def _n_lines(text: str, n_letters: int) -> int:
    return -(-len(text) // n_letters)


_LETTERS, _POINT_LETTERS, _BOLD_LETTERS, _LEAD_LETTERS, _NOTE_LETTERS = 125, 120, 108, 76, 135
"""Letters of a line of text, of a point, a bold one, the first sentence and a note, on paper."""
_CELL, _CELLS = 55, {"difference": 33, "considered": 40, "would-change": 44}
"""Letters of a line of a cell, by table where they are fewer."""
_NAME = 25
"""Letters of a line of a name of a design."""
_LONG_NAME = 16
"""Letters of a name of a design, beyond which columns beside it are narrow."""
_PICTURE = {"difference": 226}
"""Pixels of the picture beside a table."""
_TEXT, _LEAD, _NOTE, _ROW, _WRAPPED = 14, 18.4, 13, 14.7, 12
"""Pixels of a line of text, of the first sentence and of a note, of a row, and of what wraps."""
_BETWEEN, _FRAMED, _BESIDE, _FRAME = 2.4, 5, 9, 104
"""Pixels between paragraphs, around a warning, beside a table, and of title, heading, pointer and
signature."""
