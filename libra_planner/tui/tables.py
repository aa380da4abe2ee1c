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

    def show(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        keys: Sequence[Sequence[Any]] | None = None,
        align: Callable[[str, int], str] = str.ljust,
    ) -> None:
        """Replace what it shows.

        Parameters
        ----------
        headers, rows : texts; a row has a cell for every header.
        keys : values that the columns are sorted by; the texts where they are not given.
        align : of all cells.
        """
        if list(headers) != self._headers:
            self._sorted, self._falls, self._words = None, False, ""
        self._headers, self._texts, self._justified = list(headers), rows, align
        self._keys, self._order = rows if keys is None else keys, []
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

        def line(cells: Sequence[str]) -> Text:
            return Text(_GAP.join(map(self._justified, cells, widths)), no_wrap=True)

        heading = line(headers)
        if self._words:
            heading.append(f"{_GAP}/{self._words}: {len(shown)} of {len(self._texts)}", "italic")
        self.clear(columns=True)
        if not headers:
            return
        self.add_column(heading, width=len(heading))
        for cells in shown:
            self.add_row(line(cells))
        self.choose(chosen)

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
