"""A text that costs little to change: the screen is laid out anew only if its height is new."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text
from textual.events import Resize
from textual.widgets import Static


class Card(Static):
    """Shows tables and texts, rendered once for its width."""

    DEFAULT_CSS = "Card { height: auto; min-height: 1; }"

    def __init__(self, text: str = "", **options: Any) -> None:
        super().__init__(text, **options)
        self._shown: RenderableType = text
        self._n_lines, self._drawn_width = 1, 0

    def show(self, content: RenderableType) -> None:
        """Show something else."""
        self._shown = content
        self._draw()

    def on_resize(self, _event: Resize) -> None:
        if self.content_size.width != self._drawn_width:
            self._draw()

    def _draw(self) -> None:
        width = self.content_size.width or self._drawn_width  # Unseen: as it was seen last.
        if not width:
            return
        console = self.app.console
        options = console.options.update(width=width, height=None, no_wrap=False, markup=False)
        text = Text(no_wrap=True, overflow="crop")
        for segment in console.render(self._shown, options):
            text.append(segment.text, segment.style)
        text.rstrip()
        n_lines = text.plain.count("\n") + 1
        self.update(text, layout=n_lines != self._n_lines)
        self._n_lines, self._drawn_width = n_lines, width
