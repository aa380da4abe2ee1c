"""Compare: pinned designs side by side, with deltas to a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, Static

from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.plans import MOST_LETTERS
from libra_planner.tui.screens.pane import Pane

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem
    from libra_planner.tui.plans import Pin

OTHER_WORK = "other work"
"""Step times of different work are not compared (C6)."""


@dataclass(frozen=True)
class ComparedRow:
    """One figure of every pinned design, and its delta to the baseline's (empty for that one)."""

    name: str
    texts: tuple[str, ...]
    deltas: tuple[str, ...]


@dataclass(frozen=True)
class BarGroup:
    """One figure of every pinned design as bars from zero.

    Parameters
    ----------
    title : what is drawn, and what the parts of a bar are drawn with.
    parts : of every design, stacked; the same unit for all.
    texts : beside the bars.
    """

    title: str
    parts: tuple[tuple[float, ...], ...]
    texts: tuple[str, ...]

    def lines(self, names: Sequence[str], longest: int) -> Iterator[str]:
        """Title and bars, the longest of which has ``longest`` cells."""
        tail, head = max(map(len, self.texts)), max(map(len, names))
        top = max(map(sum, self.parts)) or 1.0
        yield self.title
        for name, parts, text in zip(names, self.parts, self.texts, strict=True):
            drawn = stacked_bar(parts, top, longest)
            yield f" {name:<{head}} {drawn:<{longest}} {text:>{tail}}"


_LEAST_BAR = 16
"""Cells below which bars say too little."""

_INKS = "█░"


def stacked_bar(parts: Sequence[float], top: float, n_cells: int) -> str:
    """Parts one after the other, each in its own ink; ``top`` would fill all cells.

    >>> stacked_bar((3.0, 1.0), 8.0, 8), stacked_bar((8.0,), 8.0, 4)
    ('███░', '████')
    """
    ends = [round(sum(parts[: i + 1]) / top * n_cells) for i in range(len(parts))]
    starts = [0, *ends]
    return "".join(_INKS[i] * (end - starts[i]) for i, end in enumerate(ends))


def bar_lines(pins: Sequence[Pin], n_cells: int) -> list[str]:
    """Bars of all figures under each other, ``n_cells`` wide; none where that is too narrow."""
    groups, names = bar_groups(pins), [pin.name for pin in pins]
    tail = max(len(text) for group in groups for text in group.texts)
    longest = n_cells - max(map(len, names)) - tail - 3
    if longest < _LEAST_BAR:
        return []
    drawn = [list(group.lines(names, longest)) for group in groups]
    return [line for lines in drawn for line in (*lines, "")][:-1]


def bar_groups(pins: Sequence[Pin]) -> list[BarGroup]:
    """Step time on own links, or time per sequence of different work (C6), and network cost."""
    from libra_planner.units import format_usd

    costs = [pin.evaluation.network_cost_usd for pin in pins]
    texts = tuple(map(format_usd, costs))
    money = BarGroup("Network cost", tuple((cost,) for cost in costs), texts)
    times = _time_bars(pins)
    return [times, money] if times else [money]


def _time_bars(pins: Sequence[Pin]) -> BarGroup | None:
    from libra_planner.units import format_time

    same, mixed = _is_same_work(pins), _mixes_parts(pins)
    sequences = [1 if same else pin.problem.step.n_sequences or 0 for pin in pins]
    if not all(sequences) or (mixed and not same):
        return None
    parts = tuple(
        (pin.evaluation.compute_s / n, _exposed_s(pin) / n)
        for pin, n in zip(pins, sequences, strict=True)
    )
    texts = tuple(
        f"{format_time(sum(both))}, {both[1] / (sum(both) or 1.0):.2%} exposed" for both in parts
    )
    title = "Step time" if same else "Time per sequence"
    own = any(pin.evaluation.real_link_step_time_s is not None for pin in pins)
    title += " on partial groups' own links" if own else ""
    return BarGroup(f"{title}: █ compute, ░ exposed communication", parts, texts)


def _is_same_work(pins: Sequence[Pin]) -> bool:
    return len({work_key(pin.problem) for pin in pins}) == 1


def _mixes_parts(pins: Sequence[Pin]) -> bool:
    """Whether parts of steps stand beside other workloads: no time per sequence tells anything."""
    several = len({pin.problem.workload_name for pin in pins}) > 1
    return several and any(pin.problem.covers == "part" for pin in pins)


def _exposed_s(pin: Pin) -> float:
    return max(0.0, pin.evaluation.own_links_step_time_s - pin.evaluation.compute_s)


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


def compared_rows(pins: Sequence[Pin], baseline: int) -> list[ComparedRow]:
    """Rows from top to bottom.

    Parameters
    ----------
    pins : one or more.
    baseline : index of the one that the others are compared to.
    """
    return [*_figures(pins, baseline), *_dimensions(pins, baseline), *_settings(pins)]


def _figures(pins: Sequence[Pin], baseline: int) -> Iterator[ComparedRow]:
    from libra_planner.units import format_bytes, format_time, format_usd

    figures: list[tuple[str, Callable[[Pin], float | None] | None, Callable[[float], str]]] = [
        ("step time", _of(lambda e: e.step_time_s), format_time),
        ("  compute", _of(lambda e: e.compute_s), format_time),
        ("  exposed comm.", _of(lambda e: e.communication_s), format_time),
        ("on own links", _of(lambda e: e.real_link_step_time_s), format_time),
        ("time / sequence", None if _mixes_parts(pins) else _per_sequence_s, format_time),
        ("network cost", _of(lambda e: e.network_cost_usd), format_usd),
        ("system cost", _of(lambda e: e.cost_usd if e.fixed_cost_usd else None), format_usd),
        ("time x cost", _of(_time_x_cost), lambda x: f"{format_usd(x)} s"),
        ("memory / NPU", _memory_bytes, format_bytes),
        ("speedup vs equal", _of(lambda e: e.speedup_vs_equal), _ratio),
        ("perf/cost vs equal", _of(lambda e: e.perf_per_cost_vs_equal), _ratio),
    ]
    for name, figure, shown in figures:
        values = [figure(pin) if figure else None for pin in pins]
        if any(value is not None for value in values):
            texts = tuple("-" if value is None else shown(value) for value in values)
            timed = name in _OF_A_STEP
            yield ComparedRow(name, texts, _deltas(pins, values, baseline, same_work=timed))
    broken = tuple(_broken(pin) for pin in pins)
    yield ComparedRow("rules", broken, ("",) * len(pins))


_OF_A_STEP = ("step time", "  compute", "  exposed comm.", "on own links", "time x cost")
"""Figures that only steps of the same work share."""


def _time_x_cost(evaluation: Evaluation) -> float:
    return evaluation.own_links_step_time_s * evaluation.cost_usd


def _of(figure: Callable[[Evaluation], float | None]) -> Callable[[Pin], float | None]:
    return lambda pin: figure(pin.evaluation)


def _per_sequence_s(pin: Pin) -> float | None:
    """What designs with different work are ranked by (C6)."""
    n_sequences = pin.problem.step.n_sequences
    return pin.evaluation.own_links_step_time_s / n_sequences if n_sequences else None


def _memory_bytes(pin: Pin) -> float | None:
    """What weights, gradients and optimizer states need, the most of any workload (C19)."""
    return max((one.total_bytes for one in pin.problem.step.memories.values()), default=None)


def _ratio(value: float) -> str:
    return f"{value:.3f}x"


def _broken(pin: Pin) -> str:
    n = len(pin.evaluation.violated)
    return f"{n} BROKEN" if n else "met"


def _deltas(
    pins: Sequence[Pin], values: Sequence[float | None], baseline: int, *, same_work: bool
) -> tuple[str, ...]:
    base = values[baseline]
    return tuple(
        ""
        if i == baseline or value is None or base is None
        else OTHER_WORK
        if same_work and work_key(pins[i].problem) != work_key(pins[baseline].problem)
        else delta(value, base)
        for i, value in enumerate(values)
    )


def delta(value: float, base: float) -> str:
    """A change in percent, with its sign.

    >>> delta(1.1, 1.0), delta(0.5, 1.0), delta(2.0, 2.0), delta(1.0, 0.0)
    ('+10.00 %', '-50.00 %', 'same', 'new')
    """
    if value == base:
        return "same"
    return f"{100 * (value / base - 1):+.2f} %" if base else "new"


def work_key(problem: Problem) -> tuple[object, ...]:
    """What a step does: step times of different work do not compare (C6)."""
    names = tuple((member.name, member.weight) for member in problem.members)
    batch = tuple(text for text in problem.settings if "sequences" in text)
    return problem.workload_name, names, batch


def _dimensions(pins: Sequence[Pin], baseline: int) -> Iterator[ComparedRow]:
    from libra_planner.units import format_bandwidth

    n_dims = max(len(pin.bandwidth_GBps) for pin in pins)
    labels = max((pin.problem.topology.labels for pin in pins), key=len)
    for i in range(n_dims):
        values = [b[i] if i < len(b) else None for b in (pin.bandwidth_GBps for pin in pins)]
        exact = [pin.evaluation.bandwidth_bytes_per_s for pin in pins]
        texts = tuple(format_bandwidth(b[i]) if i < len(b) else "-" for b in exact)
        deltas = _deltas(pins, values, baseline, same_work=False)
        yield ComparedRow(f"{labels[i]}", texts, deltas)


def _settings(pins: Sequence[Pin]) -> Iterator[ComparedRow]:
    none = ("",) * len(pins)
    yield ComparedRow("plan", tuple(pin.path.name for pin in pins), none)
    yield ComparedRow("workload", tuple(pin.problem.workload_name for pin in pins), none)
    yield ComparedRow("topology", tuple(str(pin.problem.topology) for pin in pins), none)
    for i in range(max(len(pin.problem.settings) for pin in pins)):
        yield ComparedRow(
            "" if i else "settings", tuple(_nth(pin.problem.settings, i) for pin in pins), none
        )
    rules = [_rules(pin.problem) for pin in pins]
    for i in range(max(map(len, rules))):
        yield ComparedRow(f"rule {i + 1}", tuple(_nth(texts, i) for texts in rules), none)


def _nth(texts: Sequence[str], i: int) -> str:
    return texts[i] if i < len(texts) else ""


def _rules(problem: Problem) -> list[str]:
    texts = [rule.text for rule in problem.rules] + [one.text for one in problem.step_time_limits]
    return list(dict.fromkeys(texts))


_EMPTY = """Nothing is pinned yet.

p pins the design on screen, with the plan as it stands.
Change the plan or the bandwidths, pin again, and compare here."""


_HINT = "Enter loads a design and its plan; deltas are relative to the baseline"


class ComparePane(Pane):
    """The second screen."""

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
        for row in compared_rows(session.pins, session.baseline):
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
        chart.update(_inked_lines(lines))

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


def _inked_lines(lines: list[str]) -> Text:
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
