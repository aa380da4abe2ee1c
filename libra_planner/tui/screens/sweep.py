"""Sweep: axes as text, count, run as a child process, pages of results, any row to open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import DataTable, Input, Label, Static, TextArea

from libra_planner.errors import PlannerError
from libra_planner.files import read_text, write_files
from libra_planner.tui.disk.files import real_path
from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.pictures.shapes import pairs_text
from libra_planner.tui.screens import sweeps
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import Edits
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card, Notes
from libra_planner.tui.work import Cancelled, Ticket, run_apart
from libra_planner.views.links import counted

_CALM_S = 0.1
"""Pause between two rows in which the scatter is drawn."""
_FLICKER_S = 0.1
"""Time that a page may take before it is said that it is being read."""

_HINT = "c counts, g runs or goes on, x stops, v changes the view, Enter opens a row as a plan"


class SweepPane(Pane):
    """The fifth screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "run", "Run", show=True),
        Binding("c", "count", "Count", show=True),
        Binding("v", "view", "View", show=True),
        Binding("i", "text", "Edit", show=True),
        Binding("m", "scatter", "Scatter", show=True),
        Binding("X", "axis(0)", "Across", show=False),
        Binding("Y", "axis(1)", "Up", show=False),
        Binding("left_square_bracket", "turn(-1)", "Page before", key_display="[", show=False),
        Binding("right_square_bracket", "turn(1)", "Next page", key_display="]", show=False),
    ]

    _page: sweeps.Page | None = None
    _shown: Path | None = None  # Whose results the table shows.
    _page_text = ""
    _remarks = ""  # On the results that are shown.
    _view, _number = sweeps.VIEWS[0], 0
    _plan: Path | None = None  # That the sweep was begun for.
    _own: str | None = None  # What the editor was given; another text is a person's.
    _known: str | None = None  # What the sweep's file was when it was read or written.
    _event: Mapping[str, Any] | None = None
    _drawing: Timer | None = None
    _plane = ("", "")  # Columns across and up; those that a run has not are replaced.
    _folder = Path("sweep")

    def compose(self) -> ComposeResult:
        with Container(id="sweep-split"):
            with Vertical(id="sweep-left"):
                area = TextArea("", language=None, id="sweep-text", tab_behavior="focus")
                area.border_title = "Sweep (i edits, Escape leaves)"
                yield area
                with Horizontal(id="sweep-bar"):
                    yield Label("results in")
                    yield Input("", compact=True, id="sweep-folder")
            with Vertical(id="sweep-picture"):
                yield Static(id="sweep-title")
                yield PointPlot("sweep-plot", "a point for each design: g runs the sweep")
                yield Card(id="sweep-row")
            with Vertical(id="sweep-right"):
                with Notes(id="sweep-head"):
                    yield Static(_HINT, id="sweep-state")
                    yield Static(id="sweep-best")
                yield RowTable()
                with Notes(id="sweep-foot"):
                    yield Static(id="sweep-page")

    def say(self, text: str) -> None:
        self.query_one("#sweep-state", Static).update(Text(text))

    def fail(self, error: Exception) -> None:
        if not self.runs("page"):
            self._page_line(self._page_text)
        super().fail(error)

    def _say_best(self, best: tuple[str, ...], words: str = "Best so far for") -> None:
        """What leads, in lines that stay while the state goes on."""
        text = "\n".join(f"{words} {one}" for one in best)
        self.query_one("#sweep-best", Static).update(Text(text))

    def _page_line(self, text: str) -> None:
        lines = [text, self._remarks] if self._remarks else [text]
        self.query_one("#sweep-page", Static).update(Text("\n".join(lines)))

    def show_session(self) -> None:
        said = []
        if self._plan is None or self._is_left(self.session.path):
            said.append(self._begin(self.session.path))
        path, problem = self.session.path, self.session.problem
        is_new = self._known is None and self._plan == path and self._is_unedited
        if is_new and problem is not None:
            self._own = sweeps.template(path)
            self.query_one(TextArea).text = self._own  # To begin with.
        said += filter(None, [self._file_words])
        if said:
            self.say("\n".join(said))
        if not self.runs("page"):
            self._page_line(self._page_text)

    @property
    def _file_words(self) -> str:
        """How the plan's file, which the sweep reads, is not what is on screen; empty if it is."""
        session = self.session
        if session.disk.changed:
            names = ", ".join(path.name for path in session.disk.changed)
            return f"The sweep reads {names} as on disk, not as on screen: R reads it here, too."
        if session.dirty:
            return "The plan has unsaved edits, which the sweep does not see: s saves."
        return ""

    def _is_left(self, plan: Path) -> bool:
        """Whether another plan is open, neither a row of this sweep nor one to edit it for."""
        folder = self._folder
        is_row = plan.parent == folder.parent and plan.stem.startswith(f"{folder.name}-row")
        return plan != self._plan and not is_row and self._is_unedited and not self.runs("sweep")

    @property
    def _is_unedited(self) -> bool:
        return self.query_one(TextArea).text in ("", self._own)

    def _begin(self, plan: Path) -> str:
        """Turn to a plan's sweep; returns what to say of it."""
        self._plan, self._own, self._known = plan, None, None
        self.query_one(TextArea).text = ""
        folder = self.cockpit.folder / f"{plan.stem}-sweep"
        self.query_one("#sweep-folder", Input).value = str(folder)
        return self._wrong_folder() or self._read()

    def _read(self) -> str:
        """Show the sweep's file and its results where they are; returns what to say of them."""
        folder, area = self._folder, self.query_one(TextArea)
        file, is_run = sweeps.file_of(folder), sweeps.is_run(folder)
        self._clear_page()
        self._say_best(())
        if is_run:
            self._load_page()
            self._load_remarks()
        if not file.exists() or not self._is_unedited:
            return f"{folder.name} has results: v shows them" if is_run else _HINT
        try:
            area.text = self._known = read_text(file)
        except PlannerError as error:
            return str(error)
        self._own = area.text
        results = ", whose results are there: g goes on with it" if is_run else ": g runs it"
        return f"This is {file.name}{results}"

    def _wrong_folder(self) -> str:
        """Turn to the folder that is typed; says and returns what is wrong with it."""
        try:
            text = self.query_one("#sweep-folder", Input).value
            self._folder = sweeps.typed_folder(text or "sweep")
        except PlannerError as error:
            self.say(str(error))
            return str(error)
        return ""

    def action_text(self) -> None:
        """Edit the axes."""
        self.remove_class("-scatter")
        self.query_one(TextArea).focus()

    def _has_text(self, then: Callable[[], None]) -> bool:
        """Whether there is a sweep; where it begins with the plan, that is read before."""
        if self.query_one(TextArea).text.strip():
            return True
        if not self.session.is_being_read:
            faults = " (the plan has faults)" * bool(self.session.faults)
            self.say(f"There is no sweep yet{faults}: i types one")
            return False

        def begun() -> None:
            self.show_session()  # It writes the sweep to begin with, whatever screen is seen.
            then()

        self.say("The sweep begins with the plan, which is being read: then this goes on")
        self.cockpit.when_read(begun)
        return False

    def action_count(self) -> None:
        """How many designs, and how long."""
        if self._wrong_folder() or not self._has_text(self.action_count):
            return
        text, file = self.query_one(TextArea).text, sweeps.file_of(self._folder)
        self.say("counting ...")

        def call(ticket: Ticket) -> str:
            with ticket.on_cancel(lambda: self._end("not counted: stopped")):
                return run_apart(partial(sweeps.count, text, file), ticket)

        def done(found: str) -> None:
            self.say("\n".join(filter(None, [found, self._file_words])))

        self.begin("sweep", "counting the sweep", call=call, done=done)

    def action_run(self) -> None:
        """Run what is missing, in a process of its own."""
        if self._wrong_folder() or not self._has_text(self.action_run):
            return
        folder, text = self._folder, self.query_one(TextArea).text
        is_plan = real_path(sweeps.file_of(folder)) == real_path(self.session.path)
        known = None if is_plan else self._known
        self.say("starting ...")
        self._event = None

        def call(ticket: Ticket) -> tuple[str, tuple[str, ...]]:
            with ticket.on_cancel(self._end_early):
                run_apart(partial(sweeps.check, text, known, folder), ticket)
                file, is_new = sweeps.write(text, folder), not sweeps.is_run(folder)
                self.app.call_later(self._take_text, folder, text, is_new)
                try:
                    report = partial(self.app.call_later, self._show_state)
                    event = sweeps.run(file, folder, ticket, report)
                except Cancelled:
                    self._end_early(sweeps.n_there(folder))
                    raise
                best = run_apart(partial(sweeps.best_so_far, folder), ticket)
            return sweeps.state_text(event), best

        def done(found: tuple[str, tuple[str, ...]]) -> None:
            self.say("\n".join(filter(None, [f"done: {found[0]}", self._file_words])))
            self._say_best(found[1], "Best for")
            if self._folder == folder:
                self._load_page()
                self._load_remarks()

        self.begin("sweep", "sweep", call=call, done=done)

    def _take_text(self, folder: Path, text: str, is_new: bool) -> None:
        """A run was not refused: its text is in the file, and rows of others are not its rows."""
        self._own = self._known = text
        self._say_best(())
        if is_new or self._shown != folder:
            self._clear_page(f"rows of {folder.name} come at the end; v shows what is there")

    def _show_state(self, event: Mapping[str, Any], best: tuple[str, ...]) -> None:
        """Show how far a sweep is."""
        self._event = event
        if self.runs("sweep"):
            self.say(sweeps.state_text(event))
            self._say_best(best)

    def _end_early(self, there: tuple[int, int] | None = None) -> None:
        """Say what a run leaves; called when it is stopped, and once it has ended."""
        event = self._event
        if there is None and event is not None:
            there = event["n_done"], event["n_designs"]
        kept = f": {there[0]:,} of {there[1]:,} designs are there, g goes on" if there else ""
        self._end(f"stopped{kept or ' before anything was solved'}")

    def _end(self, text: str) -> None:
        """Say how work ended, unless other work has begun; called by any thread."""
        self.app.call_later(lambda: None if self.runs("sweep") else self.say(text))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self._wrong_folder():
            self.say(self._read())
            self.take_focus()

    def action_view(self) -> None:
        """The best designs, the frontier, all rows."""
        if self._wrong_folder():
            return
        views = sweeps.VIEWS
        self._view = views[(views.index(self._view) + 1) % len(views)]
        self._number = 0
        self._load_page()

    def action_turn(self, by: int) -> None:
        """Another page."""
        self._number = max(self._number + by, 0)
        self._load_page()

    def _load_page(self) -> None:
        folder, view, number = self._folder, self._view, self._number
        if not sweeps.is_run(folder):
            self.say(f"No results in {folder} yet: g runs the sweep")
            return

        def say() -> None:
            if self.runs("page"):
                self._page_line(f"reading {view}, page {number + 1} ...")

        self.set_timer(_FLICKER_S, say)
        call = partial(run_apart, partial(sweeps.page, folder, view, number))
        self.begin("page", "", call=call, done=partial(self._show_page, folder))

    def _load_remarks(self) -> None:
        """Have it said under the rows what has to be known of them."""
        folder = self._folder

        def show(text: str) -> None:
            if self._folder == folder:
                self._remarks = text
                if not self.runs("page"):
                    self._page_line(self._page_text)

        call = partial(run_apart, partial(sweeps.remarks, folder))
        self.begin("remarks", "", call=call, done=show)

    def _clear_page(self, text: str = "") -> None:
        """Show no rows, and that text under them."""
        self.cockpit.workshop.cancel("page")
        self.cockpit.workshop.cancel("remarks")
        self._page, self._shown, self._number, self._page_text = None, None, 0, text
        self._remarks = ""
        self.query_one(RowTable).show((), ())
        self._page_line(text)
        self._draw()

    def _show_page(self, folder: Path, page: sweeps.Page) -> None:
        self._page, self._number, self._shown = page, page.number, folder
        rows, table, columns = page.answer.dicts(), self.query_one(RowTable), page.columns
        headings = [one.padded(one.label) for one in columns]
        cells = [[one.padded(one.cell(row[one.name])) for one in columns] for row in rows]
        keys = [[row[one.name] for one in columns] for row in rows]
        names = [one.name for one in columns]
        table.show(headings, cells, keys, spare=page.of_one_text(cells), names=names)
        many = page.n_pages > 1
        turn = f", page {page.number + 1} of {page.n_pages} ([ and ] turn)" if many else ""
        self._page_text = f"{page.view}: {counted(len(rows), 'design')}{turn}; dims in GB/s per NPU"
        self._page_line(self._page_text)
        self._draw_soon()

    def action_scatter(self) -> None:
        """The rows as points, in the place of the sweep's text where both have no room."""
        self.toggle_class("-scatter")
        self.query_one(RowTable).focus()
        self._draw_soon()

    def action_axis(self, which: int) -> None:
        """Another column on an axis of the scatter."""
        names = [one.name for one in self._page.planes] if self._page else []
        if names:
            plane = list(self._known_plane(names))
            plane[which] = names[(names.index(plane[which]) + 1) % len(names)]
            self._plane = (plane[0], plane[1])
            self._draw()

    def _known_plane(self, names: Sequence[str]) -> tuple[str, str]:
        """The columns of the axes, or what stands for those that a run has not."""
        x, y = self._plane
        across, up = (self._page.cost, self._page.time) if self._page else ("", "")
        firsts = ((x, across), (y, up))
        found = [next(name for name in (*first, *names) if name in names) for first in firsts]
        return found[0], found[1]

    def on_resize(self) -> None:
        self._draw_soon()

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw_soon()

    def _draw_soon(self) -> None:
        """Once keys have paused: a plot takes longer than a key may."""
        if self._drawing is not None:
            self._drawing.stop()
        self._drawing = self.set_timer(_CALM_S, self._draw)

    def _draw(self) -> None:
        """The page's rows as points over two of their columns, and all of the chosen row."""
        page, plot, title = self._page, self.query_one(PointPlot), Text("no rows", "italic")
        columns = {one.name: one for one in page.planes} if page is not None else {}
        chosen = self.query_one(RowTable).chosen
        details = Text("")
        if page is not None and 0 <= chosen < len(page.answer.rows):
            row = page.answer.dicts()[chosen]
            said = [(one.label, one.cell(row[one.name])) for one in page.columns]
            details = pairs_text(said, self.query_one("#sweep-row").size.width)
        if page is None or not columns or not plot.size:
            plot.say("a point for each design: g runs the sweep")
        else:
            plane = self._known_plane(list(columns))
            across, up = (columns[name] for name in plane)
            title = Text.assemble(f"{up.label} over {across.label}: ", ("o", "cyan"), " rows  ")
            title.append("#", "bold").append(" chosen  ").append("·", "dim").append(" other rows")
            points, others = page.places(plane)
            ticks = (across.cell, up.cell)
            plot.show(points, chosen, None, is_log=False, ticks=ticks, others=others)  # type: ignore[arg-type]
        self.query_one("#sweep-title", Static).update(title.append("  (X and Y change the axes)"))
        self.query_one("#sweep-row", Card).show(details)

    def on_point_plot_chosen(self, event: PointPlot.Chosen) -> None:
        """The row of a point that was clicked."""
        self.query_one(RowTable).choose(event.index)

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        folder = self._shown
        if self._page is None or folder is None:
            return
        row = self._page.answer.dicts()[self.query_one(RowTable).chosen]

        def open_row(path: Path, text: str, bandwidth: Any) -> None:
            try:
                write_files({path: text})
            except PlannerError as error:
                self.fail(error)
                return
            self.cockpit.open_plan(path, Edits((), bandwidth), f"sweep row {row['row']}")
            self.cockpit.say(f"opened row {row['row']} as {path}; 1 shows it")

        self.cockpit.workshop.start(
            "row",
            "opening the row",
            call=partial(run_apart, partial(sweeps.plan_of_row, folder, row)),
            done=lambda found: self.cockpit.guard(partial(open_row, *found)),
        )
