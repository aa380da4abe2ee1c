"""Bars from zero, one under the other, each of one or more parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

_INKS = "█░"


def stacked_bar(parts: Sequence[float], top: float, n_cells: int) -> str:
    """Parts one after the other, each in its own ink; ``top`` would fill all cells.

    >>> stacked_bar((3.0, 1.0), 8.0, 8), stacked_bar((8.0,), 8.0, 4)
    ('███░', '████')
    """
    ends = [round(sum(parts[:i]) / top * n_cells) for i in range(len(parts) + 1)]
    pairs = zip(_INKS, pairwise(ends), strict=False)
    return "".join(ink * (end - begin) for ink, (begin, end) in pairs)


@dataclass(frozen=True)
class BarGroup:
    """One figure of every pinned design as bars from zero.

    Parameters
    ----------
    title : what is drawn, and what the parts of a bar are drawn with.
    parts : of every design, stacked; the same unit for all.
    texts : beside the bars.
    """

    title: str
    parts: Sequence[Sequence[float]]
    texts: Sequence[str]

    def lines(self, names: Sequence[str], longest: int) -> Iterator[str]:
        """Title and bars, the longest of which has ``longest`` cells."""
        tail, head = max(map(len, self.texts)), max(map(len, names))
        top = max(map(sum, self.parts)) or 1.0
        yield self.title
        for name, parts, text in zip(names, self.parts, self.texts, strict=True):
            drawn = stacked_bar(parts, top, longest)
            yield f" {name:<{head}} {drawn:<{longest}} {text:>{tail}}"


def inked_lines(lines: list[str]) -> Text:
    """Bars in colours that keep neighbours apart, as on the first screen."""
    text = Text(no_wrap=True, overflow="crop")
    nth = 0
    for line in lines:
        nth = nth + 1 if line.startswith(" ") else 0
        shown = Text(f"{line}\n", "" if nth else "bold")
        if nth:
            shown.highlight_regex(r"[█░]+", "cyan" if nth % 2 else "dark_cyan")
        text.append_text(shown)
    text.rstrip()
    return text
