"""The terminal: consoles, and texts in rich's markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from libra_planner.plain_text import visible, visible_lines


def escape(text: str) -> str:
    r"""Text that is shown as it is: no markup, no control characters, on one line.

    >>> print(escape("[red]a\x1b[2J"))
    \[red]a\x1b[2J
    """
    return markup.escape(visible(text))


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
