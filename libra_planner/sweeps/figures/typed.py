"""Filters as people type them over a table on screen: the language of ``where``, or plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.frozen import Frozen
from libra_planner.sweeps.expressions import NUMBER, TEXT, parse_filter, passing

_SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SCALES |= {"B": 1e-9, "kB": 1e-6, "MB": 1e-3, "TB": 1e3, "k": 1e3, "M": 1e6}
"""Units of seconds, GB and $ that figures are shown in; others are taken as they are."""
_FIGURE = re.compile(
    r"=?\s*\$?(?P<number>[-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)\s*(?P<unit>[A-Za-z%]*)(?:/s|:1)?\s*[?!]?"
)
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "=")
_COMPARED = frozenset({*_OPERATORS, "in"})
_WORDS = frozenset({"and", "or", "not", "in", "if", "else", "true", "false", "min", "max"})
_TOKENS = (
    r"'[^']*'|\"[^\"]*\"|(?P<name>{names})|==|!=|<=|>=|[<>=]"
    r"|(?P<figure>\$?\d+(?:,\d{{3}})*\.?\d*(?:[eE][-+]?\d+)?(?:\s?(?:ns|us|ms|s|kB|MB|GB|TB|%|x|k|M)\b|%)?)"
    r"|(?P<word>[A-Za-z_][\w.-]*)|\S"
)


def figure(text: str) -> float | None:
    """The number that a cell shows, times in s, sizes in GB, money in $; ``None`` for other text.

    >>> figure("=3"), figure("969.5 ms"), figure("$23.88M"), figure("85.2 ?"), figure("none")
    (3.0, 0.9695, 23880000.0, 85.2, None)
    """
    found = _FIGURE.fullmatch(text.strip())
    if found is None:
        return None
    return float(found["number"].replace(",", "")) * _SCALES.get(found["unit"], 1.0)


@dataclass(frozen=True)
class TypedTable(Frozen):
    """A table on screen, whose rows a filter is to choose from.

    Parameters
    ----------
    headings, rows : texts; a row has a cell for every heading.
    names : other names of the columns, such as those of ``sweep show --where``.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: Sequence[str] = ()

    def chosen(self, typed: str) -> list[int]:
        """Indices of the rows that a filter lets through: an expression, or words that a row has.

        Raises
        ------
        SpecError
            For an expression that is wrong, or the beginning of one.

        Examples
        --------
        >>> table = TypedTable(["tp", "step"], [["8", "1.2 s"], ["16", "900 ms"]])
        >>> table.chosen("tp 8"), table.chosen("step < 1 and tp >= 8"), table.chosen("MS")
        ([0], [1], [1])
        """
        written = self._written(typed)
        if written:
            return self._passing(written)
        words, texts = typed.casefold().split(), (" ".join(row).casefold() for row in self.rows)
        found = [i for i, text in enumerate(texts) if all(word in text for word in words)]
        if not found and self._begins_a_name(typed):
            expected = "expected words of a row, or a comparison"
            fix = f"write e.g. {self.example}" if self.example else ""
            raise SpecError(Fault(f"got {typed.strip()!r}", expected, fix))
        return found

    @cached_property
    def _columns(self) -> Mapping[str, int]:
        """Columns by all of their names in small letters."""
        found: dict[str, int] = {}
        for texts in (self.headings, self.names):
            for i, text in enumerate(texts):
                name = " ".join(text.casefold().split())
                found.setdefault(name, i)
                found.setdefault(name.partition(" (")[0], i)
        return {name: i for name, i in found.items() if name and name not in _WORDS}

    @cached_property
    def _token(self) -> re.Pattern[str]:
        longest = sorted(self._columns, key=len, reverse=True)
        names = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in longest)
        return re.compile(_TOKENS.format(names=names or r"(?!)"), re.IGNORECASE)

    @cached_property
    def _kinds(self) -> Mapping[str, str]:
        """Kind of every column, by the name that it has in an expression."""
        return {
            _column(i): NUMBER if self._figures(i) is not None else TEXT
            for i in range(len(self.headings))
        }

    @property
    def example(self) -> str:
        """An expression of a column of numbers; empty without one."""
        for name, i in self._columns.items():
            if name.isidentifier() and name != _ROW and self._kinds[_column(i)] == NUMBER:
                return f"{name} <= {self.rows[0][i].strip(' =?!')}"
        return ""

    def _begins_a_name(self, typed: str) -> bool:
        start = " ".join(typed.casefold().split())
        return any(name.startswith(start) for name in self._columns)

    def _figures(self, column: int) -> list[float | None] | None:
        """Numbers of a column; ``None`` where a cell has other text."""
        texts = [row[column].strip() for row in self.rows]
        numbers = [figure(text) for text in texts]
        is_text = any(
            one is None and text not in ("", "-") for one, text in zip(numbers, texts, strict=True)
        )
        return None if is_text or not any(x is not None for x in numbers) else numbers

    def _written(self, typed: str) -> str:
        """An expression in full, with every column by a name of its own; empty for plain words.

        ``tp 8`` and ``tp=8`` are ``tp == 8``, and ``tp 8 pp 4`` has ``and`` between them.
        """
        tokens = [self._said(found) for found in self._token.finditer(typed)]
        parts: list[str] = []
        for kind, text in tokens:
            before = parts[-1] if parts else ""
            is_text = kind == "word" and self._kinds.get(before) == TEXT
            if is_text or (kind == "value" and before in self._kinds):
                parts.append("==")
            if kind == "name" and parts[-2:-1] == ["=="] and before not in _WORDS:
                parts.append("and")
            parts.append(self._as_text(text, parts) if kind == "word" else text)
        return " ".join(parts) if _COMPARED & set(parts) else ""

    def _said(self, found: re.Match[str]) -> tuple[str, str]:
        """What a piece of text is, and how an expression has it."""
        text = found[0]
        if found["name"]:
            return "name", _column(self._columns[" ".join(text.casefold().split())])
        if found["figure"]:
            return "value", f"{figure(text):.12g}"
        if text == "=":
            return "", "=="
        is_word = found["word"] and text.casefold() not in _WORDS
        return ("word", text) if is_word else ("", text.casefold() if found["word"] else text)

    def _as_text(self, word: str, parts: Sequence[str]) -> str:
        """A word that nobody quoted, behind a column of text."""
        is_compared = parts[-1:] in (["=="], ["!="]) and self._kinds.get(parts[-2]) == TEXT
        return repr(word) if is_compared and len(parts) > 1 else word

    def _passing(self, written: str) -> list[int]:
        """Rows that an expression lets through; those without a value of it are not."""
        try:
            rule = parse_filter(written, self._kinds, "column")
        except SpecError as error:
            raise SpecError(*map(self._in_own_words, error.faults)) from None
        n, known = len(self.rows), np.ones(len(self.rows), dtype=bool)
        values = {}
        for name in rule.names:
            column = int(name.removeprefix(_PREFIX))
            if self._kinds[name] == TEXT:
                values[name] = np.array([row[column].strip() for row in self.rows])
                continue
            numbers = self._figures(column) or [None] * n
            values[name] = np.array([np.nan if x is None else x for x in numbers])
            known &= ~np.isnan(values[name])
        return np.flatnonzero(passing([rule], values, n) & known).tolist()

    def _in_own_words(self, fault: Fault) -> Fault:
        """A fault with the headings in place of the names that columns have in expressions."""

        def heading(found: re.Match[str]) -> str:
            return " ".join(self.headings[int(found[1])].split())

        plain = re.compile(rf"\b{_PREFIX}(\d+)\b")
        got, expected, fix = (plain.sub(heading, x) for x in (fault.got, fault.expected, fault.fix))
        return Fault(got, expected, fix)


_PREFIX, _ROW = "column_", "row"


def _column(i: int) -> str:
    return f"{_PREFIX}{i}"
