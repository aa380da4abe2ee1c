"""Text from files and other people, as it may be shown: nothing that a program would obey."""

from __future__ import annotations

import re

_INVISIBLE = (
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""What turns the direction of writing, breaks lines or takes no room."""
_CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]")

_FORMULA = ("=", "+", "-", "@")
"""What a spreadsheet takes for the start of a formula in visible text."""


def visible(text: str) -> str:
    r"""Text on one line, with what a terminal would obey shown by its number.

    >>> print(visible("a\x1b[2J\nb\u202e"))
    a\x1b[2J\x0ab\u202e
    """
    return _CONTROLS.sub(_number, text)


def short_text(text: str, most: int) -> str:
    """Text of at most ``most`` letters: of a longer one the beginning and the end.

    >>> short_text("got 'abcdefghijklmnopqrstuvwxyz'", 20), short_text("got 'a'", 20)
    ("got 'abcdefg...wxyz'", "got 'a'")
    """
    n_last = most // 4
    return text if len(text) <= most else f"{text[: most - n_last - 3]}...{text[-n_last:]}"


def visible_lines(text: str) -> str:
    r"""The same of every line of a text.

    >>> print(visible_lines("a\x1b[2J\nb"))
    a\x1b[2J
    b
    """
    return "\n".join(map(visible, text.split("\n")))


def without_controls(text: str) -> str:
    r"""Text without what a terminal would obey, which takes no room there.

    >>> without_controls("a\x1b[2Jb")
    'a[2Jb'
    """
    return _CONTROLS.sub("", text)


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def spreadsheet_text(text: str) -> str:
    r"""Visible text that no spreadsheet takes for a formula: those get an apostrophe in front.

    >>> print(spreadsheet_text("=1+1"), spreadsheet_text("a=1"), spreadsheet_text("=\x1b[2J"))
    '=1+1 a=1 '=\x1b[2J
    """
    shown = visible(text)
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown
