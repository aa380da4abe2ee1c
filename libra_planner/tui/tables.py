"""Tables of many rows: one column to Textual, sorted and filtered by keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable

from libra_planner.errors import SpecError
from libra_planner.tui.dialogs import Prompt

if TYPE_CHECKING:
    from libra_planner.sweeps.figures.typed import TypedTable

_GAP = "  "
"""Between columns."""
_LEFT_OUT = "+{} w"
"""Said of columns that have no room, and of the key that shows them."""


def sorted_rows(
    keys: Sequence[Sequence[Any]],
    among: Sequence[int],
    column: int | None = None,
    *,
    falls: bool = False,
) -> list[int]:
    """Some rows by their index, in order of a column; unknown values come last.

    >>> keys = [["a", 9e-3], ["b", 1.0], ["ab", None]]
    >>> sorted_rows(keys, [0, 1, 2], 1, falls=True), sorted_rows(keys, [2, 0])
    ([1, 0, 2], [2, 0])
    """
    if column is None:
        return list(among)
    known = [i for i in among if keys[i][column] is not None]
    known.sort(key=lambda i: keys[i][column], reverse=falls)
    return [*known, *(i for i in among if keys[i][column] is None)]


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
        self._among: Sequence[int] = ()
        self._names: Sequence[str] = ()
        self._spare: Sequence[int] = ()
        self._has_all, self._filled_width = False, 0
        self._prompt: Prompt | None = None

    def show(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        keys: Sequence[Sequence[Any]] | None = None,
        align: Callable[[str, int], str] = str.ljust,
        spare: Sequence[int] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Replace what it shows.

        Parameters
        ----------
        headers, rows : texts; a row has a cell for every header.
        keys : values that the columns are sorted by; the texts where they are not given.
        align : of all cells.
        spare : columns that a narrow table loses, in this order, before others.
        names : other names of the columns, in filters.
        """
        if self._headers and list(headers) != self._headers:
            self._sorted, self._falls, self._words = None, False, ""
        self._headers, self._texts, self._justified = list(headers), rows, align
        self._keys, self._order, self._spare = rows if keys is None else keys, [], spare
        self._names, self._among = names, range(len(rows))
        if self._choose_rows(self._words):
            self._words = ""
        self._fill()
        if self._prompt is not None and self._prompt.is_attached:
            self._prompt.tell_again()

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
        self._order = sorted_rows(self._keys, self._among, self._sorted, falls=self._falls)
        mark = "▼" if self._falls else "▲"
        headers = [f"{name}{mark if i == self._sorted else ''}" for i, name in
                   enumerate(self._headers)]  # fmt: skip
        shown = [self._texts[i] for i in self._order]
        widths = [max(map(len, column)) for column in zip(headers, *shown, strict=True)]
        said = f"{_GAP}/{self._words}: {len(shown)} of {len(self._texts)}" if self._words else ""
        kept, self._filled_width = self._kept(widths, len(said)), self.size.width

        def line(cells: Sequence[str]) -> Text:
            parts = (self._justified(cells[i], widths[i]) for i in kept)
            return Text(_GAP.join(parts), no_wrap=True)

        heading = line(headers)
        if len(kept) < len(headers):
            heading.append(f"{_GAP}{_LEFT_OUT.format(len(headers) - len(kept))}", "italic")
        heading.append(said, "italic")
        self.clear(columns=True)
        self._make_room()
        if not headers:
            return
        self.add_column(heading, width=len(heading))
        for cells in shown:
            self.add_row(line(cells))
        self.choose(chosen)

    def on_mount(self) -> None:
        self._make_room()

    def _make_room(self) -> None:
        """Notes beside a table that has nothing to show may take its room."""
        if isinstance(self.parent, Widget):
            self.parent.set_class(not self._headers, "-bare")

    def _kept(self, widths: Sequence[int], n_said: int) -> list[int]:
        """Columns that are shown: all that fit, and where some do not, room to say so.

        What is said of a filter has room beside them, up to half of the width.
        """
        room = self.size.width - 2 * self.cell_padding - self.styles.scrollbar_size_vertical
        room -= min(n_said, room // 2)
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
        """Show the rows that an expression lets through or that have some words, as it is typed."""
        before = self._words

        def done(words: str | None) -> None:
            if words is None:
                self._filter(before)

        example = self._typed.example
        by = f"an expression such as {example}, or " if example else ""
        hint = f"{by}words that a row has; nothing shows all rows"
        if not self._headers:
            hint = "there are no rows yet: the filter is for those that come"
        self._prompt = Prompt("Filter", before, hint=hint, changed=self._filter)
        if 2 * self.region.y > self.app.size.height:  # At the bottom it would hide the rows.
            self._prompt.add_class("-high")
        self.app.push_screen(self._prompt, done)

    def _filter(self, words: str) -> str:
        """Show the rows that a filter lets through; what is wrong with it, which leaves them."""
        if words.strip() == self._words:
            return ""
        wrong = self._choose_rows(words.strip())
        if not wrong:
            self._words = words.strip()
            self._fill()
        return wrong

    def _choose_rows(self, words: str) -> str:
        """Which rows a filter lets through; all, or those before, where it is wrong."""
        if not self._headers:
            return ""  # It is for rows that come.
        try:
            self._among = self._typed.chosen(words)
        except SpecError as error:
            return str(error)
        return ""

    @property
    def _typed(self) -> TypedTable:
        """Itself, for filters."""
        from libra_planner.sweeps.figures.typed import TypedTable

        return TypedTable(self._headers, self._texts, self._names)

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
