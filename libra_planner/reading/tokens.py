"""Texts of small languages as tokens: numbers, and what a language adds to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NUMBER = r"(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
OTHER, END = "other", "end"
"""Kinds of what no pattern fits, and of what stands behind all of them."""


class Token(NamedTuple):
    """A token, and the character that it begins at, from 1."""

    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end"


def token_pattern(**kinds: str) -> re.Pattern[str]:
    """What finds the next token of a language: numbers, and kinds by their patterns."""
    named = ({"number": _NUMBER} | kinds | {OTHER: r"\S"}).items()
    return re.compile(
        rf"\s*(?:{'|'.join(f'(?P<{k}>{pattern})' for k, pattern in named)})", re.ASCII
    )


def tokens(text: str, pattern: re.Pattern[str]) -> Iterator[Token]:
    """The tokens of a text, the last one of kind :data:`END`.

    >>> [one.text for one in tokens("2 * dim1", token_pattern(word="[a-z0-9]+", sign="[*]"))]
    ['2', '*', 'dim1', '']
    """
    at = 0
    while match := pattern.match(text, at):
        kind = str(match.lastgroup)
        yield Token(kind, match.group(kind), match.start(kind) + 1)
        at = match.end()
    yield Token(END, "", len(text) + 1)
