"""Compare: pinned designs side by side, with deltas to a baseline."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, Static

from libra_planner.tui.comparison import bar_lines, compared, disagreement
from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.plans import MOST_LETTERS
from libra_planner.tui.screens.pane import Pane

_EMPTY = """Nothing is pinned yet.

p pins the design on screen, with the plan as it stands.
Change the plan or the bandwidths, pin again, and compare here."""


_HINT = "Enter loads a design and its plan; deltas are relative to the baseline"


class ComparePane(Pane):
    """The second screen."""

    DEFAULT_CSS = """
    ComparePane #compare-empty { padding: 1 2; }
    ComparePane DataTable { height: 1fr; }
    ComparePane.-charts DataTable { height: auto; }
    ComparePane #compare-chart { display: none; padding: 1; }
    ComparePane.-charts #compare-chart { display: block; }
    ComparePane #compare-hint { padding: 0 1; text-style: italic; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "baseline", "Baseline", show=True),
        Binding("n", "rename", "Name", show=True),
        Binding("d,delete", "unpin", "Unpin", key_display="d", show=True),
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._of: tuple[tuple[str, ...], int] | None = None

    def compose(self) -> ComposeResult:
        yield Static(_EMPTY, id="compare-empty")
        table: DataTable[Text] = DataTable(cursor_type="column", zebra_stripes=True)
        table.fixed_columns = 1
        yield table
        yield Static(id="compare-chart")
        yield Static(_HINT, id="compare-hint")

    def show_session(self) -> None:
        session, table = self.session, self.query_one(DataTable)
        shown = (tuple(pin.name for pin in session.pins), session.baseline)
        if shown == self._of:
            return
        self._of, chosen = shown, self._chosen()
        self.query_one("#compare-empty").display = not session.pins
        hint = self.query_one("#compare-hint", Static)
        table.display = hint.display = bool(session.pins)
        note = disagreement(session.pins)
        hint.update(Text(f"{note}\n{_HINT}" if note else _HINT))
        table.clear(columns=True)
        self._draw()
        if not session.pins:
            return
        table.add_column("")
        for i, pin in enumerate(session.pins):
            base = i == session.baseline
            table.add_column(Text(f"{pin.name}{' (baseline)' if base else ''}", "bold"))
        for row in compared(session.pins, session.baseline):
            cells = [_cell(text, d) for text, d in zip(row.texts, row.deltas, strict=True)]
            table.add_row(Text(row.name, "bold"), *cells)
        table.move_cursor(column=min(chosen, len(session.pins) - 1) + 1)
        self._draw()

    def on_resize(self, _event: Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        """Bars under the table, where all of both can be seen."""
        pins, chart = self.session.pins, self.query_one("#compare-chart", Static)
        lines = bar_lines(pins, self.size.width - 2) if pins else []
        # Beside rows and bars: the heading, a scrollbar, the hint and a gap before and after.
        said = bool(disagreement(pins))
        taken = self.query_one(DataTable).row_count + len(lines) + 5 + said
        self.set_class(bool(lines) and taken <= self.size.height, "-charts")
        chart.update(_inked(lines))

    def _chosen(self) -> int:
        """Index of the pinned design under the cursor."""
        return max(self.query_one(DataTable).cursor_column - 1, 0)

    def on_data_table_column_selected(self, _event: DataTable.ColumnSelected) -> None:
        self.action_load()

    def action_load(self) -> None:
        """Go back to a pinned design and its plan."""
        if self.session.pins:
            self.cockpit.load_pin(self.session.pins[self._chosen()])

    def action_baseline(self) -> None:
        """Compare the others to this one."""
        if self.session.pins:
            self.session.baseline = self._chosen()
            self.show_session()

    def action_rename(self) -> None:
        """Call a pinned design something else."""
        if not self.session.pins:
            return
        chosen = self._chosen()

        def done(answer: str) -> None:
            self.session.rename(chosen, answer.strip())
            self.show_session()

        pin = self.session.pins[chosen]
        self.cockpit.ask(Prompt(f"Name of design {pin.number}", pin.called, check=_fault), done)

    def action_unpin(self) -> None:
        """Drop a pinned design."""
        if self.session.pins:
            self.session.unpin(self._chosen())
            self.show_session()


def _inked(lines: list[str]) -> Text:
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


def _fault(name: str) -> str:
    """What is wrong with a name of a design, or nothing."""
    if not name.strip() or not name.isprintable() or len(name.strip()) > MOST_LETTERS:
        return f"got {len(name.strip())} letters, expected 1 to {MOST_LETTERS} that can be printed"
    return ""


def _cell(text: str, delta: str) -> Text:
    cell = Text(text)
    return cell.append(f"  {delta}", "italic") if delta else cell
