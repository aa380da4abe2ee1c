"""Text from files and other people, as it may be shown: nothing that a program would obey."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INVISIBLE = (
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""What turns the direction of writing, breaks lines or takes no room."""
_CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]")

_FORMULA = ("=", "+", "-", "@")
"""What a spreadsheet takes for the start of a formula in visible text."""


def joined(words: Sequence[str], last: str) -> str:
    """Words in one line, with another one before the last.

    >>> joined(["A", "B", "C"], "or"), joined(["A"], "and")
    ('A, B or C', 'A')
    """
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


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


_GLUED = re.compile(
    r"(?<=[\d%)]) (?=[A-Za-z(])"  # 3.734 s, 4 x, 9.4% (
    r"|(?<=[A-Z\d]) (?=\d)"  # TP 4, ZeRO 1
    r"|(?<=[<>=+]) (?=[\d$])"  # >= 2, + 4.584 GB
    r"|(?<= x) (?=[A-Z\d])"  # x CP 2
    r"|(?<=[\dkMB]) (?=linear)|(?<=GB/s) (?=per NPU)"
    r"|(?<=part) (?=in)|(?<= in) (?=\d)|(?<= to) (?=\d)|(?<=ZeRO) |(?<=about) |(?<= line) "
)
"""Spaces inside of a figure, where no line ends."""
_LEAST_FILLED = 0.5
"""Share of a line that is full enough to end it behind a comma or a sign."""


def line_breaks(text: str, width: int) -> list[int]:
    """Where lines begin that hold a text, of ``width`` letters at most: never inside of a figure.

    A line ends behind a comma, semicolon or colon, or before a sign, where that leaves it full
    enough.

    >>> text = "Step time 3.734 s (3.524 s compute), network cost $11.94M linear"
    >>> line_breaks(text, 30), line_breaks(text, 14), line_breaks(text, 99)
    ([27, 50], [10, 18, 27, 37, 50], [])
    """
    glued = {found.start() for found in _GLUED.finditer(text)}
    spaces = [i for i, letter in enumerate(text) if letter == " " and i not in glued]
    starts, start = [], 0
    while len(text) - start > width:
        room = [i for i in spaces if start < i <= start + width]
        full = [i for i in room if i - start >= _LEAST_FILLED * width]
        ends = [i for i in full if text[i - 1] in ",;:" or text[i + 1 : i + 2] in {"+", "="}]
        end = next(iter(ends[-1:] or room[-1:]), None) or next(
            (i for i in spaces if i > start + width), None
        )
        if end is None:
            break
        start = end + 1
        starts.append(start)
    return starts


def with_article(noun: str) -> str:
    """A noun with its article, by its first letter.

    >>> with_article("effective step time"), with_article("column")
    ('an effective step time', 'a column')
    """
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
