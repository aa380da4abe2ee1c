"""Tables of many rows: one column to Textual, sorted and filtered by keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from libra_planner.tui.dialogs import Prompt

_GAP = "  "
"""Between columns."""
_LEFT_OUT = "+{} w"
"""Said of columns that have no room, and of the key that shows them."""


def wanted_rows(
    rows: Sequence[Sequence[str]],
    keys: Sequence[Sequence[Any]],
    words: str = "",
    column: int | None = None,
    *,
    falls: bool = False,
) -> list[int]:
    """Indices of the rows that have all words, in order of a column; unknown values come last.

    >>> rows = [["a", "9 ms"], ["b", "1 s"], ["ab", "-"]]
    >>> keys = [["a", 9e-3], ["b", 1.0], ["ab", None]]
    >>> wanted_rows(rows, keys, column=1, falls=True), wanted_rows(rows, keys, "A")
    ([1, 0, 2], [0, 2])
    """
    texts = (" ".join(row).casefold() for row in rows)
    parts = words.casefold().split()
    found = [i for i, text in enumerate(texts) if all(part in text for part in parts)]
    if column is None:
        return found
    known = [i for i in found if keys[i][column] is not None]
    known.sort(key=lambda i: keys[i][column], reverse=falls)
    return [*known, *(i for i in found if keys[i][column] is None)]


def kept_columns(widths: Sequence[int], spare: Sequence[int], room: int) -> list[int]:
    """Columns that there is room for, with gaps between them: those to spare go whole, in order.

    Those of which nothing is said go after them, the last first; the first one stays.

    >>> kept_columns([4, 10, 6], [1], 12), kept_columns([4, 10, 6], [], 18)
    ([0, 2], [0, 1])
    """
    kept = list(range(len(widths)))
    for i in [*spare, *(i for i in reversed(kept[1:]) if i not in spare)]:
        if sum(widths[j] for j in kept) + len(_GAP) * (len(kept) - 1) <= room:
            break
        kept.remove(i)
    return kept


class RowTable(DataTable[Text]):
    """Rows that keys sort and filter; to whom it belongs a row keeps its index.

    To Textual it has one column: it draws every cell by itself whenever the table gets or loses
    the focus, and a table of a hundred rows has a thousand cells.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", show=True),
        Binding("greater_than_sign", "sort(1)", "Sort", key_display=">", show=True),
        Binding("less_than_sign", "sort(-1)", "Column before", key_display="<", show=False),
        Binding("exclamation_mark", "turn", "Turn round", key_display="!", show=False),
        Binding("w", "widen", "All columns", show=False),
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True, **options)
        self._headers: list[str] = []
        self._texts: Sequence[Sequence[str]] = ()
        self._keys: Sequence[Sequence[Any]] = ()
        self._justified: Callable[[str, int], str] = str.ljust
        self._sorted: int | None = None
        self._falls, self._words = False, ""
        self._order: list[int] = []
        self._spare: Sequence[int] = ()
        self._has_all, self._filled_width = False, 0

    def show(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        keys: Sequence[Sequence[Any]] | None = None,
        align: Callable[[str, int], str] = str.ljust,
        spare: Sequence[int] = (),
    ) -> None:
        """Replace what it shows.

        Parameters
        ----------
        headers, rows : texts; a row has a cell for every header.
        keys : values that the columns are sorted by; the texts where they are not given.
        align : of all cells.
        spare : columns that a narrow table loses, in this order, before others.
        """
        if list(headers) != self._headers:
            self._sorted, self._falls, self._words = None, False, ""
        self._headers, self._texts, self._justified = list(headers), rows, align
        self._keys, self._order, self._spare = rows if keys is None else keys, [], spare
        self._fill()

    @property
    def chosen(self) -> int:
        """Index of the row under the cursor, whatever the order; -1 without any."""
        return self._order[self.cursor_row] if 0 <= self.cursor_row < len(self._order) else -1

    def choose(self, index: int) -> None:
        """Put the cursor on a row, if it is shown."""
        if index in self._order:
            self.move_cursor(row=self._order.index(index))

    def _fill(self) -> None:
        chosen = self.chosen
        self._order = wanted_rows(
            self._texts, self._keys, self._words, self._sorted, falls=self._falls
        )
        mark = "▼" if self._falls else "▲"
        headers = [f"{name}{mark if i == self._sorted else ''}" for i, name in
                   enumerate(self._headers)]  # fmt: skip
        shown = [self._texts[i] for i in self._order]
        widths = [max(map(len, column)) for column in zip(headers, *shown, strict=True)]
        kept, self._filled_width = self._kept(widths), self.size.width

        def line(cells: Sequence[str]) -> Text:
            parts = (self._justified(cells[i], widths[i]) for i in kept)
            return Text(_GAP.join(parts), no_wrap=True)

        heading = line(headers)
        if len(kept) < len(headers):
            heading.append(f"{_GAP}{_LEFT_OUT.format(len(headers) - len(kept))}", "italic")
        if self._words:
            heading.append(f"{_GAP}/{self._words}: {len(shown)} of {len(self._texts)}", "italic")
        self.clear(columns=True)
        if not headers:
            return
        self.add_column(heading, width=len(heading))
        for cells in shown:
            self.add_row(line(cells))
        self.choose(chosen)

    def _kept(self, widths: Sequence[int]) -> list[int]:
        """Columns that are shown: all that fit, and where some do not, room to say so."""
        room = self.size.width - 2 * self.cell_padding - self.styles.scrollbar_size_vertical
        every = list(range(len(widths)))
        if self._has_all or room <= 0 or kept_columns(widths, self._spare, room) == every:
            return every
        return kept_columns(widths, self._spare, room - len(_GAP) - len(_LEFT_OUT))

    def on_resize(self) -> None:
        """Other columns fit."""
        if self.size.width != self._filled_width and self._headers:
            self._fill()

    def action_widen(self) -> None:
        """Show all columns, those beyond the edge by the arrow keys, or those that fit."""
        self._has_all = not self._has_all
        self._fill()

    def action_filter(self) -> None:
        """Show the rows that have some words; none shows all."""

        def done(words: str | None) -> None:
            if words is not None:
                self._words = words.strip()
                self._fill()

        hint = "words that a row has; nothing shows all rows"
        self.app.push_screen(Prompt("Filter", self._words, hint=hint), done)

    def action_sort(self, by: int) -> None:
        """Sort by the next column; ! turns the order round."""
        columns = [None, *range(len(self._headers))]
        i = (columns.index(self._sorted) + by) % len(columns)
        self._sorted, self._falls = columns[i], False
        self._fill()

    def action_turn(self) -> None:
        """Turn the order round."""
        self._falls = not self._falls
        self._fill()
