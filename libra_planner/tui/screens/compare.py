"""Compare: pinned designs side by side, with deltas to a baseline."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.timer import Timer
from textual.widgets import DataTable, Static

from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.pictures.stacked import BarGroup, inked_lines
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.session import MOST_LETTERS, Pin
from libra_planner.tui.starts import equals_note
from libra_planner.tui.widgets import Card, Drawn, Notes
from libra_planner.units import format_bandwidth, format_bytes, format_time, format_usd

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem

OTHER_WORK = "other work"
"""Step times of different work are not compared (C6)."""


@dataclass(frozen=True)
class ComparedRow:
    """One figure of every pinned design, and its delta to the baseline's (empty for that one).

    ``values`` order the designs; there are none where figures of other work stand beside them.
    """

    name: str
    texts: Sequence[str]
    deltas: Sequence[str]
    values: Sequence[float | None] = ()

    def has(self, words: str) -> bool:
        """Whether all words stand in it."""
        text = " ".join((self.name, *self.texts, *self.deltas)).casefold()
        return all(word in text for word in words.casefold().split())

    def order(self, *, falls: bool) -> list[int]:
        """Designs by their values; those that have none come last."""
        known = [i for i, value in enumerate(self.values) if value is not None]
        known.sort(key=lambda i: self.values[i] or 0.0, reverse=falls)
        return [*known, *(i for i in range(len(self.texts)) if i not in known)]


_LEAST_BAR = 16
"""Cells below which bars say too little."""


def bar_lines(pins: Sequence[Pin], n_cells: int) -> list[str]:
    """Bars of all figures under each other, ``n_cells`` wide; none where that is too narrow."""
    groups, names = bar_groups(pins), [pin.name for pin in pins]
    tail = max(len(text) for group in groups for text in group.texts)
    longest = n_cells - max(map(len, names)) - tail - 3
    if longest < _LEAST_BAR:
        return []
    return [line for group in groups for line in (*group.lines(names, longest), "")][:-1]


def bar_groups(pins: Sequence[Pin]) -> list[BarGroup]:
    """Step time on own links, or time per sequence of different work (C6), and network cost."""
    costs, same = [pin.evaluation.network_cost_usd for pin in pins], _is_same_work(pins)
    money = BarGroup("Network cost", [(cost,) for cost in costs], [*map(format_usd, costs)])
    sequences = [1 if same else pin.problem.step.n_sequences or 0 for pin in pins]
    if not all(sequences) or (_mixes_parts(pins) and not same):
        return [money]
    parts, texts = [], []
    for of, n in zip([pin.evaluation for pin in pins], sequences, strict=True):
        exposed_s = max(0.0, of.own_links_step_time_s - of.compute_s) / n
        parts.append((of.compute_s / n, exposed_s))
        total_s = sum(parts[-1])
        texts.append(f"{format_time(total_s)}, {exposed_s / (total_s or 1.0):.2%} exposed")
    own = any(pin.evaluation.real_link_step_time_s is not None for pin in pins)
    title = "Step time" if same else "Time per sequence"
    title += " on partial groups' own links" * own
    return [BarGroup(f"{title}: █ compute, ░ exposed communication", parts, texts), money]


def _is_same_work(pins: Sequence[Pin]) -> bool:
    return len({work_key(pin.problem) for pin in pins}) == 1


def _mixes_parts(pins: Sequence[Pin]) -> bool:
    """Whether parts of steps stand beside other workloads: no time per sequence tells anything."""
    several = len({pin.problem.workload_name for pin in pins}) > 1
    return several and any(pin.problem.step.covers == "part" for pin in pins)


def disagreement(pins: Sequence[Pin]) -> str:
    """The orders of the plan's model and of own links, where they differ; else nothing."""
    from libra_planner.evaluation import TimeModel, order_note

    known = any(pin.evaluation.real_link_step_time_s is not None for pin in pins)
    if not known or not _is_same_work(pins):
        return ""
    times = {
        TimeModel.PLAN: [pin.evaluation.step_time_s for pin in pins],
        TimeModel.OWN_LINKS: [pin.evaluation.own_links_step_time_s for pin in pins],
    }
    note = order_note("fastest first", [str(pin.number) for pin in pins], times)
    return f"The models disagree on the order: {note}" if note else ""


def unbuilt_note(pins: Sequence[Pin]) -> str:
    """Which designs have no cost in whole parts since none make them; empty where all have it."""
    from libra_planner.views.bought.whole_ports import whole_ports

    found = ((x, whole_ports(x.problem, x.evaluation.bandwidth_bytes_per_s)) for x in pins)
    names = [pin.name for pin, whole in found if whole is not None and whole.fault]
    listed = ", ".join(names)
    return f"No cost in whole parts: no whole ports and switches make {listed}" if names else ""


def compared_rows(pins: Sequence[Pin], baseline: int) -> list[ComparedRow]:
    """Rows from top to bottom.

    Parameters
    ----------
    pins : one or more.
    baseline : index of the one that the others are compared to.
    """
    from libra_planner.views.design import rule_texts

    problems, none = [pin.problem for pin in pins], ("",) * len(pins)
    labels = max((problem.topology.labels for problem in problems), key=len)
    figures = [one for one in _FIGURES if one[0] != _PER_SEQUENCE or not _mixes_parts(pins)]
    named = enumerate(labels)
    bandwidths: list[_Figure] = [(name, _bandwidth(i), format_bandwidth) for i, name in named]
    tapers = enumerate(f"{label} taper" for label in labels)
    bandwidths += [(name, _taper(i), "{:.3g}:1".format) for i, name in tapers]
    broken = [len(pin.evaluation.violated) for pin in pins]
    rules = zip_longest(*map(rule_texts, problems), fillvalue="")
    settings = zip_longest(*(problem.settings for problem in problems), fillvalue="")
    said: list[tuple[str, Sequence[str]]] = [
        ("plan", [pin.path.name for pin in pins]),
        ("workload", [problem.workload_name for problem in problems]),
        ("topology", [str(problem.topology) for problem in problems]),
        *(("" if i else "settings", texts) for i, texts in enumerate(settings)),
        *((f"rule {i}", texts) for i, texts in enumerate(rules, 1)),
    ]
    return [
        *_figure_rows(pins, baseline, figures),
        ComparedRow("rules", [f"{n} BROKEN" if n else "met" for n in broken], none),
        *_figure_rows(pins, baseline, bandwidths),
        *(ComparedRow(name, texts, none) for name, texts in said),
    ]


def _figure_rows(
    pins: Sequence[Pin], baseline: int, figures: Sequence[_Figure]
) -> Iterator[ComparedRow]:
    """A row for each figure that any design has; step times of other work have no delta."""
    other = [work_key(pin.problem) != work_key(pins[baseline].problem) for pin in pins]
    for name, figure, shown in figures:
        values = [figure(pin.problem, pin.evaluation) for pin in pins]
        base = values[baseline]
        deltas = [
            ""
            if i == baseline or value is None or base is None
            else OTHER_WORK
            if name in _OF_A_STEP and other[i]
            else delta(value, base)
            for i, value in enumerate(values)
        ]
        if any(value is not None for value in values):
            texts = ["-" if value is None else shown(value) for value in values]
            ranked = () if name in _OF_A_STEP and any(other) else values
            yield ComparedRow(name, texts, deltas, ranked)


_Number: TypeAlias = "Callable[[Problem, Evaluation], float | None]"
_Figure: TypeAlias = "tuple[str, _Number, Callable[[float], str]]"
"""Name, number of a design, and how it is shown."""


def _per_sequence_s(problem: Problem, evaluation: Evaluation) -> float | None:
    """What designs with different work are ranked by (C6)."""
    n_sequences = problem.step.n_sequences
    return evaluation.own_links_step_time_s / n_sequences if n_sequences else None


def _memory_bytes(problem: Problem, _: Evaluation) -> float | None:
    """What weights, gradients and optimizer states need, the most of any workload (C19)."""
    return max((one.total_bytes for one in problem.step.memories.values()), default=None)


def _band(end: int) -> _Number:
    """The least (0) or the most (1) of the error band of a step time (C23)."""
    return lambda _, of: None if of.band_s is None else of.band_s[end]


def _whole_parts_usd(problem: Problem, evaluation: Evaluation) -> float | None:
    """What the network costs as it is bought; nothing where that is the network cost itself."""
    from libra_planner.views.bought.whole_ports import network_bill_usd

    bill_usd = network_bill_usd(problem, evaluation)
    return None if problem.prices.bills is not None else bill_usd


def _bandwidth(dim: int) -> _Number:
    return lambda _, of: (
        of.bandwidth_bytes_per_s[dim] if dim < len(of.bandwidth_bytes_per_s) else None
    )


def _taper(dim: int) -> _Number:
    def of(problem: Problem, evaluation: Evaluation) -> float | None:
        tapers = problem.topology.tapers(evaluation.bandwidth_bytes_per_s)
        return tapers[dim] if dim < len(tapers) else None

    return of


_PER_SEQUENCE = "time / sequence"

_FIGURES: tuple[_Figure, ...] = (
    ("step time", lambda _, of: of.step_time_s, format_time),
    ("  band, least", _band(0), format_time),
    ("  band, most", _band(1), format_time),
    ("  compute", lambda _, of: of.compute_s, format_time),
    ("  exposed comm.", lambda _, of: of.communication_s, format_time),
    ("on own links", lambda _, of: of.real_link_step_time_s, format_time),
    (_PER_SEQUENCE, _per_sequence_s, format_time),
    ("network cost", lambda _, of: of.network_cost_usd, format_usd),
    ("  in whole parts", _whole_parts_usd, format_usd),
    ("system cost", lambda _, of: of.cost_usd if of.fixed_cost_usd else None, format_usd),
    (
        "time x cost",
        lambda _, of: of.own_links_step_time_s * of.cost_usd,
        lambda usd_s: f"{format_usd(usd_s)} s",
    ),
    ("memory / NPU", _memory_bytes, format_bytes),
    ("speedup vs equal", lambda _, of: of.speedup_vs_equal, "{:.3f}x".format),
    ("perf/cost vs equal", lambda _, of: of.perf_per_cost_vs_equal, "{:.3f}x".format),
)

_OF_A_STEP = (
    *("step time", "  band, least", "  band, most", "  compute", "  exposed comm."),
    *("on own links", "time x cost"),
)
"""Figures that only steps of the same work share."""


def delta(value: float, base: float) -> str:
    """A change in percent, with its sign.

    >>> delta(1.1, 1.0), delta(0.5, 1.0), delta(2.0, 2.0), delta(1.0, 0.0), delta(1 + 1e-9, 1.0)
    ('+10.00 %', '-50.00 %', 'same', 'new', 'same')
    """
    text = f"{100 * (value / base - 1):+.2f} %" if base else "new" if value else "+0.00 %"
    return "same" if text[1:] == "0.00 %" else text


def work_key(problem: Problem) -> tuple[object, ...]:
    """What a step does: step times of different work do not compare (C6)."""
    names = tuple((member.name, member.weight) for member in problem.members)
    batch = tuple(text for text in problem.settings if "sequences" in text)
    return problem.workload_name, names, batch


_EMPTY = """Nothing is pinned yet.

p pins the design on screen, with the plan as it stands.
Change the plan or the bandwidths, pin again, and compare here."""


_LEAST_SIDE, _MOST_SIDE = 44, 90
"""Cells of the pictures beside the table: fewer say too little, more add nothing."""
_LEAST_TEXT = 24
"""Cells of a text before its column is cut; figures and their deltas take no more."""
_CALM_S = 0.1
_HINT = "Enter loads a design and its plan; deltas are relative to the baseline"


class ComparePane(Pane):
    """The second screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "baseline", "Baseline", show=True),
        Binding("n", "rename", "Name", show=True),
        Binding("d,delete", "unpin", "Unpin", key_display="d", show=True),
        Binding("slash", "filter", "Filter", key_display="/", show=True),
        Binding("greater_than_sign", "sort(1)", "Sort", key_display=">", show=True),
        Binding("less_than_sign", "sort(-1)", "Row before", key_display="<", show=False),
        Binding("exclamation_mark", "turn", "Turn round", key_display="!", show=False),
    ]

    _of: tuple[Any, ...] = ()
    _rows: Sequence[ComparedRow] = ()
    _order: Sequence[int] = ()
    _words, _sorted, _falls = "", "", False
    _drawing: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static(_EMPTY, id="compare-empty")
        with Horizontal(id="compare-split"):
            with Vertical(id="compare-left"):
                table: DataTable[Text] = DataTable(cursor_type="column", zebra_stripes=True)
                table.fixed_columns = 1
                yield table
                yield Static(id="compare-chart")
                with Notes():
                    yield Static(_HINT, id="compare-hint")
            with VerticalScroll(id="compare-side", can_focus=False):
                yield Card(id="compare-fabric", classes="picture")
                yield Card(id="compare-step", classes="picture")
                yield Card(id="compare-notes")

    def show_session(self) -> None:
        pins, baseline = self.session.pins, self.session.baseline
        names = tuple(pin.name for pin in pins)
        shown = (names, baseline, self._words, self._sorted, self._falls, self.size.width)
        if shown == self._of:
            return
        chosen = self._chosen
        self._of, self._rows = shown, compared_rows(pins, baseline) if pins else ()
        self.query_one("#compare-empty").display = not pins
        self.query_one("#compare-split").display = bool(pins)
        equals = equals_note([pin.evaluation for pin in pins])
        notes = (disagreement(pins), unbuilt_note(pins), equals, _HINT)
        self.query_one("#compare-hint", Static).update(Text("\n".join(filter(None, notes))))
        by = [row for row in self._rows if row.name == self._sorted and row.values]
        self._order = by[0].order(falls=self._falls) if by else range(len(pins))
        self._fill(min(chosen, len(pins) - 1))
        self._draw()

    def _fill(self, chosen: int) -> None:
        """The rows that have the words, the designs in their order."""
        table, pins = self.query_one(DataTable), self.session.pins
        table.clear(columns=True)
        if not pins:
            return
        rows = [row for row in self._rows if row.has(self._words)]
        head = max(len(row.name) for row in self._rows) + 2
        each = max((self.size.width - head - 2) // len(pins) - 2, _LEAST_TEXT)
        found = f"/{self._words}: {len(rows)} of {len(self._rows)}" if self._words else ""
        table.add_column(Text(found, "italic"))
        for i in self._order:
            is_baseline = " (baseline)" * (i == self.session.baseline)
            table.add_column(Text(f"{pins[i].name}{is_baseline}", "bold"))
        for row in rows:
            is_sorted = bool(row.values) and row.name == self._sorted
            mark = ("▼" if self._falls else "▲") * is_sorted
            cells = [_cell(row.texts[i], row.deltas[i], each) for i in self._order]
            height = max(cell.plain.count("\n") for cell in cells) + 1
            table.add_row(Text(f"{row.name}{mark}", "bold"), *cells, height=height)
        table.move_cursor(column=list(self._order).index(chosen) + 1)

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self.show_session)
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        """Pictures of the chosen design beside the table, and bars under it, where all is seen."""
        pins, chart = self.session.pins, self.query_one("#compare-chart", Static)
        free = self.size.width - self._n_cells
        self.set_class(bool(pins) and free >= _LEAST_SIDE, "-side")
        width = self.size.width - (min(free, _MOST_SIDE) if self.has_class("-side") else 0)
        self.query_one("#compare-side").styles.width = min(max(free, 1), _MOST_SIDE)
        lines = bar_lines(pins, width - 2) if pins else []
        # Beside rows and bars: the heading, a scrollbar, the hint and a gap before and after.
        said = bool(disagreement(pins))
        table = self.query_one(DataTable)
        n_rows = sum(row.height for row in table.ordered_rows)
        taken = n_rows + len(lines) + 5 + said
        self.set_class(bool(lines) and taken <= self.size.height, "-charts")
        chart.update(inked_lines(lines))
        self._draw_soon()

    @property
    def _n_cells(self) -> int:
        """Of the table, as wide as its cells are."""
        columns = [[row.name for row in self._rows]]
        for i, pin in enumerate(self.session.pins):
            cells = (_cell(row.texts[i], row.deltas[i]).plain for row in self._rows)
            columns.append([*cells, f"{pin.name} (baseline)"])
        return sum(max(map(len, cells), default=0) + 2 for cells in columns) + 2

    def on_data_table_column_highlighted(self, _event: DataTable.ColumnHighlighted) -> None:
        self._draw_soon()

    def _draw_soon(self) -> None:
        """Once keys have paused."""
        if self._drawing is not None:
            self._drawing.stop()
        self._drawing = self.set_timer(_CALM_S, self._draw_side)

    def _draw_side(self) -> None:
        """Fabric and step of the chosen design, and the notes that the commands print of it."""
        pins = self.session.pins
        if not pins or not self.has_class("-side"):
            return
        from libra_planner.tui.pictures.designs import PICTURES
        from libra_planner.views.plan import result_notes
        from libra_planner.views.renderers.terminal import note_lines

        pin = pins[self._chosen]
        for name, (title, picture) in PICTURES.items():
            card = self.query_one(f"#compare-{name}", Card)
            card.border_title = Text(f"{pin.name}. {title}")
            card.show(Drawn(partial(picture, pin.problem, pin.evaluation)))
        notes = note_lines([*result_notes(pin.problem, pin.evaluation)])
        self.query_one("#compare-notes", Card).show(notes)

    @property
    def _chosen(self) -> int:
        """Index of the pinned design under the cursor."""
        column = self.query_one(DataTable).cursor_column - 1
        return self._order[min(max(column, 0), len(self._order) - 1)] if self._order else 0

    def action_filter(self) -> None:
        """Show the rows that have some words; none shows all."""

        def done(words: str | None) -> None:
            if words is not None:
                self._words = words.strip()
                self.show_session()

        hint = "words that a row has; nothing shows all rows"
        self.app.push_screen(Prompt("Filter", self._words, hint=hint), done)

    def action_sort(self, by: int) -> None:
        """Order the designs by the next row of figures; ! turns the order round."""
        names = ["", *(row.name for row in self._rows if row.values and row.has(self._words))]
        at = names.index(self._sorted) if self._sorted in names else 0
        self._sorted, self._falls = names[(at + by) % len(names)], False
        self.show_session()

    def action_turn(self) -> None:
        """Turn the order round."""
        self._falls = not self._falls
        self.show_session()

    def on_data_table_column_selected(self, _event: DataTable.ColumnSelected) -> None:
        """Go back to a pinned design and its plan."""
        if self.session.pins:
            self.cockpit.load_pin(self.session.pins[self._chosen])

    def action_baseline(self) -> None:
        """Compare the others to this one."""
        if self.session.pins:
            self.session.baseline = self._chosen
            self.show_session()

    def action_rename(self) -> None:
        """Call a pinned design something else."""
        if not self.session.pins:
            return
        chosen = self._chosen

        def done(answer: str) -> None:
            self.session.rename(chosen, answer.strip())
            self.show_session()

        pin = self.session.pins[chosen]
        self.cockpit.ask(Prompt(f"Name of design {pin.number}", pin.called, check=_fault), done)

    def action_unpin(self) -> None:
        """Drop a pinned design."""
        if self.session.pins:
            self.session.unpin(self._chosen)
            self.show_session()


def _fault(name: str) -> str:
    """What is wrong with a name of a design, or nothing."""
    if not name.strip() or not name.isprintable() or len(name.strip()) > MOST_LETTERS:
        return f"got {len(name.strip())} letters, expected 1 to {MOST_LETTERS} that can be printed"
    return ""


def _cell(text: str, delta: str, n_cells: int = 1000) -> Text:
    """A figure with its delta, or a text in lines that are no longer than there is room for."""
    cell = Text("\n".join(textwrap.wrap(text, n_cells)))
    return cell.append(f"  {delta}", "italic") if delta else cell
