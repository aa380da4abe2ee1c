"""What is read and chosen on screens: texts, tables, lists of choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, OptionList, Static


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


_GAP = "  "
"""Between columns."""


def fill(
    table: DataTable[Any],
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: Callable[[str, int], str] = str.ljust,
) -> None:
    """Replace what a table shows; a row has a cell for every header.

    To Textual the table has one column: it draws every cell by itself whenever the table gets or
    loses the focus, and a table of a hundred rows has a thousand cells.
    """
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]

    def line(cells: Sequence[str]) -> Text:
        return Text(_GAP.join(map(align, cells, widths)), no_wrap=True)

    table.clear(columns=True)
    table.add_column(line(headers), width=len(line(headers)))
    for row in rows:
        table.add_row(line(row))


class Checklist(OptionList):
    """Entries that Space, Enter or a click chooses and drops.

    Parameters
    ----------
    title : on the border.
    names : the entries.
    chosen : indices of those that are chosen at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Choose", show=True, tooltip="Choose the entry or drop it.")
    ]

    def __init__(
        self, title: str, names: Iterable[str], chosen: Iterable[int] = (), **options: Any
    ) -> None:
        self.names, self._chosen = list(names), set(chosen)
        super().__init__(*map(self._prompt, range(len(self.names))), **options)
        self.border_title = title

    def on_mount(self) -> None:
        """The first Space has a row to choose."""
        self.action_first()

    def _prompt(self, index: int) -> Text:
        return Text(f"[{'x' if index in self._chosen else ' '}] {self.names[index]}")

    @property
    def chosen(self) -> list[int]:
        """Indices of the chosen entries, in order."""
        return sorted(self._chosen)

    def show(self, names: list[str]) -> None:
        """Other entries; new ones are chosen."""
        self._chosen = {i for i in range(len(names)) if i in self._chosen or i >= len(self.names)}
        self.names, row = names, self.highlighted or 0
        self.clear_options()
        self.add_options([self._prompt(i) for i in range(len(names))])
        self.highlighted = min(row, len(names) - 1) if names else None

    def action_select(self) -> None:
        """Choose the entry or drop it, before the next key asks what is chosen."""
        index = self.highlighted
        if index is not None:
            self._chosen ^= {index}
            self.replace_option_prompt_at_index(index, self._prompt(index))
