"""Search: the best strategies for the plan's model, each with its best fabric, any to take."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import DataTable, Static

from libra_planner.tui.disk.readings import search_words
from libra_planner.tui.disk.watch import refuse_changed
from libra_planner.tui.pictures.plot import PointPlot
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import Bandwidth, Report
from libra_planner.tui.tables import RowTable
from libra_planner.tui.widgets import Card, Notes
from libra_planner.tui.work import Ticket, run_apart
from libra_planner.units import BYTES_PER_GB, format_bytes, format_time, format_usd

if TYPE_CHECKING:
    from libra_planner.inputs.plans import OpenedPlan
    from libra_planner.problem import Problem
    from libra_planner.search.best import SearchResult

_FIRST, _MOST = 5, 50
"""Strategies that are proven first, as `search` does, and in the end."""
_PAUSE_S = 2.0
"""Between two looks at what is known so far."""
_SAME = 1e-9
"""Relative difference of costs that are one."""
_SHORT = {"GB/s by dimension": "GB/s"}
"""Headings that are wider than what stands below them."""
_SPARE = ("MFU", "batch", "GB", "tokens/s", "GB/s by dimension", "cost")
"""Columns that a narrow screen loses after those of one text: the purchase goes last."""
_HINT = (
    "g searches all ways to spread the plan's model over its NPUs (degrees, microbatch, ZeRO, "
    "recomputation), each with the best bandwidth that the rules allow, as 'search PLAN' does"
)
_OVER: Mapping[str, tuple[str, Callable[[float], str]]] = MappingProxyType(
    {"cost": ("cost", format_usd), "memory": ("memory per NPU: all cost the same", format_bytes)}
)
"""What the points are over, and its numbers for people."""
_KEYS = (
    "tp", "cp", "pp", "dp", "ep", "interleave", "global_batch", "microbatch", "zero", "recompute",
    "step_time_s", "tokens_per_s", "mfu", "cost_usd", "bandwidth_GBps", "memory_GB",
)  # fmt: skip
"""Of the columns behind the rank, in JSON."""
_TAKES = "Enter takes a strategy into the plan, with its bandwidth; u takes it back until a save"


@dataclass(frozen=True)
class Strategies:
    """What a search of strategies found, as ``search PLAN`` prints it.

    Parameters
    ----------
    headings, rows : of the table; ``keys`` are values to sort it by, ``spare`` the columns that a
        narrow screen loses, in this order.
    points : cost and step time of each; memory and step time where all cost the same.
    over : what the points are over, ``cost`` or ``memory``.
    degrees : of each, as ``parallelism`` of a plan; ``bandwidths_GBps`` its best design.
    verdict : what is proven.
    is_proven : whether these are the best.
    """

    headings: tuple[str, ...]
    rows: list[list[str]]
    keys: list[list[Any]]
    spare: list[int]
    points: list[tuple[float, float]]
    over: str
    degrees: list[dict[str, Any]]
    bandwidths_GBps: list[Bandwidth]
    verdict: str
    is_proven: bool


@dataclass(frozen=True)
class Searched:
    """The plan on screen, as a search takes it.

    Parameters
    ----------
    path, text : its file, and what this said when it was read.
    settings : edits since.
    files : that the plan names, with digests of what they said.
    """

    path: Path
    text: str | None
    settings: tuple[str, ...]
    files: Mapping[Path, bytes]


def found_strategies(searched: Searched, progress: Report) -> Strategies:
    """The best strategies of a plan's model, whatever degrees the plan says.

    ``progress`` gets what is known meanwhile: the best so far, then the best five with proof.
    """
    from libra_planner.inputs.plans import open_plan

    refuse_changed(searched.files, "the plan on screen")
    plan = open_plan(searched.path, searched.settings, text=searched.text)
    first = _searched(plan, _FIRST, progress, shows=True)
    if len(first.rows) < _FIRST:
        return first
    progress(_FIRST, _MOST, f"the best {_FIRST} are proven", first)
    return _searched(plan, _MOST, progress, shows=False)


def _searched(plan: OpenedPlan, n_best: int, progress: Report, *, shows: bool) -> Strategies:
    """So many strategies with proof; meanwhile the best so far now and then, if they are shown."""
    from libra_planner.search.best import SearchRun

    seen_s = time.monotonic()

    def tell(what: str, done: int, n: int) -> None:
        nonlocal seen_s
        part = None
        if shows and run.optima and time.monotonic() > seen_s + _PAUSE_S:
            part, seen_s = _strategies(plan.problem, run.result()), time.monotonic()
        progress(done, n, f"the best {n_best}: {search_words(what, done, n)}", part)

    run = SearchRun(plan.search(n_best=n_best), tell)
    found = run.complete()
    if not found.best:
        raise plan.nothing_found(found)
    return _strategies(plan.problem, found)


def _strategies(problem: Problem, found: SearchResult) -> Strategies:
    """Rows, and what is proven."""
    from libra_planner.views.cells import Table
    from libra_planner.views.times.search import dispensable, plan_blocks, plan_payload
    from libra_planner.views.training.found import FLATTERED

    blocks = list(plan_blocks(problem, found))
    tables = [one for one in blocks if isinstance(one, Table)]
    cells = [[cell.shown for cell in row] for table in tables for row in table.rows]
    lines = [one for one in blocks if isinstance(one, str) and one not in ("", FLATTERED)]
    said = [Text.from_markup(one).plain for one in lines]
    payload = plan_payload(problem, found)["best"]
    costs = [row["cost_usd"] for row in payload]
    over = "memory" if costs and max(costs) <= min(costs) * (1 + _SAME) else "cost"
    places = [row["memory_GB"] * BYTES_PER_GB for row in payload] if over == "memory" else costs
    keys = [[i, *map(row.__getitem__, _KEYS)] for i, row in enumerate(payload)]
    columns = _told_first(cells)
    headings = tables[0].headings if tables else ()
    lost = [name for one in tables for name in dispensable(one.headings, cells, _SPARE)]
    return Strategies(
        tuple(_SHORT.get(headings[i], headings[i]) for i in columns if headings),
        _in_order(cells, columns),
        _in_order(keys, columns),
        [columns.index(headings.index(name)) for name in lost if name in headings],
        [(x, row["step_time_s"]) for x, row in zip(places, payload, strict=True)],
        over,
        [dict(one.strategy.degrees) for one in found.best],
        [tuple(row["bandwidth_GBps"]) for row in payload],
        "\n".join(said[1:]),
        found.is_certified,
    )


def _told_first(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns from left to right: those in which rows differ before those of one text.

    >>> _told_first([["1", "8", "a"], ["2", "8", "b"]]), _told_first([["1", "8"]])
    ([0, 2, 1], [0, 1])
    """
    columns = list(zip(*rows, strict=True))
    return sorted(range(len(columns)), key=lambda i: len(rows) > 1 and len(set(columns[i])) == 1)


def _in_order(rows: Sequence[Sequence[Any]], columns: Sequence[int]) -> list[list[Any]]:
    return [[row[i] for i in columns] for row in rows]


def _spread(times_s: Sequence[float]) -> str:
    """How far times lie apart, as an axis that they fill does not show it.

    >>> _spread([2.0, 2.0002]), _spread([2.0, 2.5]), _spread([2.0, 2.0]), _spread([2.0])
    ('; all within 0.01 %', '; all within 25 %', '; all the same', '')
    """
    share = max(times_s) / min(times_s) - 1 if min(times_s) else 0.0
    if len(times_s) < 2:
        return ""
    return f"; all within {100 * share:.2g} %" if share > _SAME else "; all the same"


class SearchPane(Pane):
    """The seventh screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("g", "search", "Search", show=True)]
    _found: Strategies | None = None
    _of: Searched | None = None
    _called, _said = "", _HINT

    def compose(self) -> ComposeResult:
        with Container(id="search-split"):
            with Vertical(id="search-list"):
                with Notes(id="search-head"):
                    yield Card(_HINT, id="search-state")
                yield RowTable()
                with Notes(title="Notes", id="search-beside") as beside:
                    beside.display = False
                    yield Card(id="search-notes")
            with Vertical(id="search-picture"):
                yield Static(id="search-title")
                yield PointPlot("search-plot", "step time over cost of each: g searches")

    def say(self, text: str, notes: str = "") -> None:
        """Say something over the table, and what has to be known of it in the notes below."""
        self._said = text
        self.show_session()
        self.query_one("#search-notes", Card).show(Text(notes))
        self.query_one("#search-beside").display = bool(notes)

    def show_session(self) -> None:
        is_old = self._of is not None and self._of != self._searched
        self.query_one("#search-state", Card).show(Text(self._old if is_old else self._said))

    @property
    def _old(self) -> str:
        """What is said once the plan is another one."""
        if self._found is None:
            return "The plan was edited or read again: g searches it as it is now"
        return "Of the plan before it was edited or read again: g searches again"

    @property
    def _searched(self) -> Searched:
        """What a search would take now."""
        one = self.session
        return Searched(one.path, one.text, one.edits.settings, one.named_files)

    def action_search(self) -> None:
        """Search the best strategies of the plan."""
        if self.session.is_being_read:
            self.cockpit.when_read(self.action_search)
            return
        self._of, self._called = self._searched, self.session.called
        self._found = None
        self.query_one(RowTable).show((), [], [], str.rjust)
        self.say(f"Searching {self._called}: the best so far stand here as they are found")

        searched = self._of

        def stopped() -> None:
            self.app.call_later(self._stopped)

        def call(ticket: Ticket) -> Strategies:
            with ticket.on_cancel(stopped):
                return run_apart(partial(found_strategies, searched), ticket)

        label = "searching strategies"
        self.begin("search", label, call=call, done=self._show, partly=self._show_part)

    def _stopped(self) -> None:
        """Keep what is known."""
        found = self._found
        known = "what was known stands here" if found else "nothing is known yet"
        if not self.runs("search"):
            self.say(f"Stopped: {known}", found.verdict if found else "")

    def _show_part(self, found: Strategies) -> None:
        self._put(found)
        n = len(found.rows)
        known = f"The best {n} are proven; still searching the best {_MOST}"
        so_far = known if found.is_proven else "Still searching; so far"
        self.say(f"{self._called}. {so_far}:", found.verdict)

    def _show(self, found: Strategies) -> None:
        self._put(found)
        takes = f". {_TAKES}" if found.rows else ""
        self.say(f"Searched {self._called}{takes}", found.verdict)
        self.query_one(RowTable).focus()

    def _put(self, found: Strategies) -> None:
        self._found = found
        table = self.query_one(RowTable)
        table.show(found.headings, found.rows, found.keys, str.rjust, found.spare)
        self._draw()

    def _draw(self) -> None:
        plot = self.query_one(PointPlot)
        if self._found is not None and self._found.rows and plot.size:
            chosen = max(self.query_one(RowTable).chosen, 0)
            over, across = _OVER[self._found.over]
            spread = _spread([step_time_s for _, step_time_s in self._found.points])
            self.query_one("#search-title", Static).update(f"Step time over {over}{spread}")
            ticks = across, format_time
            plot.show(self._found.points, chosen, None, is_log=False, ticks=ticks)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw()

    def on_point_plot_chosen(self, event: PointPlot.Chosen) -> None:
        self.query_one(RowTable).choose(event.index)

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Take a strategy into the plan."""
        found = self._found
        if found is None or not found.rows:
            return
        chosen = self.query_one(RowTable).chosen
        self.cockpit.take_strategy(
            json.dumps(found.degrees[chosen]),
            found.bandwidths_GBps[chosen],
            f"strategy {chosen + 1}",
        )
