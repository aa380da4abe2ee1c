"""Sweep: axes as text, count, run as a child process, pages of results, any row to open."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.widgets import DataTable, Input, Label, Static, TextArea

from libra_planner.tui import sweeping
from libra_planner.tui.apart import apart, run_apart
from libra_planner.tui.pane import Pane
from libra_planner.tui.session import Edits
from libra_planner.tui.sweep_columns import columns_of
from libra_planner.tui.widgets.tables import fill
from libra_planner.tui.work import Ticket

_HINT = "c counts, g runs or goes on, x stops, v changes the view, Enter opens a row as a plan"


class SweepPane(Pane):
    """The fifth screen."""

    DEFAULT_CSS = """
    SweepPane #sweep-left { height: 25%; min-height: 9; max-height: 16; }
    SweepPane #sweep-text { height: 1fr; border: round $foreground 40%; padding: 0; }
    SweepPane #sweep-text:focus { border: round $accent; }
    SweepPane #sweep-bar { height: 1; }
    SweepPane #sweep-bar Label { margin: 0 1; color: $text-muted; }
    SweepPane #sweep-right { height: 1fr; }
    SweepPane #sweep-state { height: auto; max-height: 6; padding: 0 1; }
    SweepPane #sweep-best { height: auto; max-height: 4; padding: 0 1; text-style: bold; }
    SweepPane DataTable { height: 1fr; }
    SweepPane #sweep-page { height: 1; padding: 0 1; text-style: italic; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "run", "Run", show=True),
        Binding("c", "count", "Count", show=True),
        Binding("v", "view", "View", show=True),
        Binding("i", "text", "Edit", show=True),
        Binding("left_square_bracket", "turn(-1)", "Page before", key_display="[", show=False),
        Binding("right_square_bracket", "turn(1)", "Next page", key_display="]", show=False),
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._page: sweeping.Page | None = None
        self._view, self._number = sweeping.VIEWS[0], 0
        self._own: str | None = None

    def compose(self) -> ComposeResult:
        with Container(id="sweep-split"):
            with Vertical(id="sweep-left"):
                area = TextArea("", language=None, id="sweep-text", tab_behavior="focus")
                area.border_title = "Sweep (i edits, Escape leaves)"
                yield area
                with Horizontal(id="sweep-bar"):
                    yield Label("results in")
                    yield Input("", compact=True, id="sweep-folder")
            with Vertical(id="sweep-right"):
                yield Static(_HINT, id="sweep-state")
                yield Static(id="sweep-best")
                yield DataTable(cursor_type="row", zebra_stripes=True)
                yield Static(id="sweep-page")

    def take_focus(self) -> None:
        self.query_one(DataTable).focus()

    def show_session(self) -> None:
        from libra_planner.units import gigabytes_per_s

        area, problem = self.query_one(TextArea), self.session.problem
        if area.text in ("", self._own) and problem is not None:
            total = problem.total_bandwidth_bytes_per_s()
            budget = None if total is None else gigabytes_per_s(total)
            self._own = sweeping.template(self.session.path, budget)
            area.text = self._own
        folder = self.query_one("#sweep-folder", Input)
        if not folder.value:
            beside = Path.cwd() if self.cockpit.is_bundled() else self.session.path.parent
            folder.value = str(beside / f"{self.session.path.stem}-sweep")
        if self.session.dirty:
            self._say("The plan has unsaved edits, which the sweep does not see: s saves.")

    @property
    def _folder(self) -> Path:
        return Path(self.query_one("#sweep-folder", Input).value or "sweep").expanduser()

    def _say(self, text: str) -> None:
        self.query_one("#sweep-state", Static).update(Text(text))

    def _say_best(self, best: tuple[str, ...], words: str = "Best so far for") -> None:
        """What leads, in lines that stay while the state goes on."""
        text = "\n".join(f"{words} {one}" for one in best)
        self.query_one("#sweep-best", Static).update(Text(text))

    def _failed(self, error: Exception) -> None:
        from libra_planner.tui.work import error_text

        self._say(error_text(error))

    def _written(self) -> Path:
        """The sweep's file, beside its results."""
        from libra_planner.files import write_files

        folder = self._folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_name(f"{folder.name}.yaml")
        write_files({file: self.query_one(TextArea).text})
        return file

    def action_text(self) -> None:
        """Edit the axes."""
        self.query_one(TextArea).focus()

    def action_count(self) -> None:
        """How many designs, and how long."""
        self._say("counting ...")

        def call(ticket: Ticket) -> str:
            return run_apart(partial(sweeping.count, self._written()), ticket)

        start = self.cockpit.workshop.start
        start("sweep", "counting the sweep", call=call, done=self._say, failed=self._failed)

    def action_run(self) -> None:
        """Run what is missing, in a process of its own."""
        folder = self._folder
        self._say("starting ...")
        self._say_best(())

        def report(text: str, best: tuple[str, ...]) -> None:
            self.app.call_later(self._say, text)
            self.app.call_later(self._say_best, best)

        def call(ticket: Any) -> tuple[str, tuple[str, ...]]:
            event = sweeping.run(self._written(), folder, ticket, report)
            best = run_apart(partial(sweeping.best_so_far, folder), ticket)
            return sweeping.state_text(event), best

        def done(found: tuple[str, tuple[str, ...]]) -> None:
            text, best = found
            self._say(f"done: {text}")
            self._say_best(best, "Best for")
            self._load_page()

        start = self.cockpit.workshop.start
        start("sweep", "sweep", call=call, done=done, failed=self._failed)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._load_page()
        self.take_focus()

    def action_view(self) -> None:
        """The best designs, the frontier, all rows."""
        views = sweeping.VIEWS
        self._view = views[(views.index(self._view) + 1) % len(views)]
        self._number = 0
        self._load_page()

    def action_turn(self, by: int) -> None:
        """Another page."""
        self._number = max(self._number + by, 0)
        self._load_page()

    def _load_page(self) -> None:
        folder, view, number = self._folder, self._view, self._number
        call = apart(partial(sweeping.page, folder, view, number))
        start = self.cockpit.workshop.start
        start("page", "", call=call, done=self._show_page, failed=self._failed)

    def _show_page(self, page: sweeping.Page) -> None:
        self._page, self._number = page, page.number
        rows, table = page.answer.dicts(), self.query_one(DataTable)
        columns = columns_of(page.answer.columns, page.axes)
        headings = [one.padded(one.heading) for one in columns]
        cells = [[one.padded(one.shown(row[one.name])) for one in columns] for row in rows]
        fill(table, headings, cells, justify="left")
        many = page.n_pages > 1
        turn = f", page {page.number + 1} of {page.n_pages} ([ and ] turn)" if many else ""
        text = f"{page.view}: {len(rows)} designs{turn}; dims in GB/s per NPU"
        self.query_one("#sweep-page", Static).update(Text(text))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if self._page is None:
            return
        row = self._page.answer.dicts()[event.cursor_row]
        folder = self._folder

        def done(found: Any) -> None:
            path, bandwidth = found
            edits, origin = Edits((), bandwidth), f"sweep row {row['row']}"
            self.cockpit.guard(lambda: self.cockpit.open_plan(path, edits, origin))
            self.cockpit.say(f"opened row {row['row']} as {path}; 1 shows it")

        call = apart(partial(sweeping.plan_of_row, folder, row))
        self.cockpit.workshop.start("row", "opening the row", call=call, done=done)
