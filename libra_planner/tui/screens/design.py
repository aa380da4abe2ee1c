"""Design: the plan as a form, bandwidths as bars, figures that follow every change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Click
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from libra_planner.errors import Place, PlannerError
from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.screens.plan_form import OPTIONAL, FormField, PlanForm
from libra_planner.tui.session import Bandwidth, Reading
from libra_planner.tui.widgets import Card
from libra_planner.units import (
    BYTES_PER_S_PER_GBPS,
    format_bandwidth,
    format_bytes,
    format_time,
    format_usd,
    gigabytes_per_s,
)

_BUTTONS = " [-][+]"
_LEAST_BAR = 4
_WIDE = 64
_NOTE_CELLS = 12


@dataclass(frozen=True)
class DimensionRow:
    """What a bar says beside its length: texts for people."""

    label: str
    tier: str
    cost_share: str
    note: str
    taper: str = ""


def step_GBps(bandwidth_GBps: Bandwidth) -> float:
    """A round step of about a hundredth of the total.

    >>> step_GBps((125.0,) * 4), step_GBps((0.5, 0.2))
    (5.0, 0.005)
    """
    total = sum(bandwidth_GBps)
    if total <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(total / 100) + 1e-9)
    leading = total / 100 / power
    return float(f"{power * (5 if leading >= 5 else 2 if leading >= 2 else 1):.1g}")


def changed_bandwidth(bandwidth_GBps: Bandwidth, dim: int, by: float) -> Bandwidth:
    """A design with one dimension a number of round steps up or down.

    >>> changed_bandwidth((125.0, 125.0), 1, -3)
    (125.0, 119.0)
    """
    values = list(bandwidth_GBps)
    values[dim] = round(max(0.0, values[dim] + by * step_GBps(bandwidth_GBps)), 9)
    return tuple(values)


class Bandwidths(Widget, can_focus=True):
    """The bars.

    Parameters
    ----------
    stepped : called with a dimension and by how many round steps its bandwidth should change. At
        once and not by a message: the next key may come before that is read.
    typed : called with the dimension whose value a person wants to type.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Dimension before", show=False),
        Binding("down,j", "choose(1)", "Next dimension", show=False),
        Binding("plus,equals_sign,right", "change(1)", "More", key_display="+", show=True),
        Binding("minus,underscore,left", "change(-1)", "Less", key_display="-", show=True),
        Binding("greater_than_sign,full_stop", "resize_step(1)", "Larger step", show=False),
        Binding("less_than_sign,comma", "resize_step(-1)", "Smaller step", show=False),
        Binding("enter", "type", "Type", show=True),
    ]

    def __init__(self, stepped: Callable[[int, float], None], typed: Callable[[int], None]) -> None:
        super().__init__(id="bandwidths")
        self._stepped, self._typed = stepped, typed
        self.border_title = "Bandwidth per NPU"
        self._rows: tuple[DimensionRow, ...] = ()
        self._values: Bandwidth = ()
        self._dim, self._factor = 0, 1.0

    def update(self, rows: tuple[DimensionRow, ...], bandwidth_GBps: Bandwidth) -> None:
        """Show a design."""
        taller = len(rows) != len(self._rows)
        self._rows, self._values = rows, bandwidth_GBps
        self._dim = min(self._dim, max(len(rows) - 1, 0))
        self.border_subtitle = f"step {self.step:g} GB/s"
        self.refresh(layout=taller)

    @property
    def step(self) -> float:
        """What + and - change, GB/s."""
        return step_GBps(self._values) * self._factor

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """A row each: asked for while lines have the width before, at which they would wrap."""
        return len(self._rows) + 1

    def render(self) -> Text:
        if not self._rows:
            return Text("no valid plan yet", "italic")
        from libra_planner.views.renderers.terminal import bar

        wide, width = self.size.width >= _WIDE, self.size.width
        names = [f"{row.label} {row.tier} {row.taper}".rstrip() for row in self._rows]
        speeds = (format_bandwidth(value * BYTES_PER_S_PER_GBPS) for value in self._values)
        numbers = [speed.removesuffix(" GB/s") for speed in speeds]
        cells = max(map(len, names)), max(map(len, numbers))
        fixed = 2 + cells[0] + 1 + 1 + cells[1] + 6 + len(_BUTTONS) + (_NOTE_CELLS if wide else 0)
        n_cells = max(_LEAST_BAR, width - fixed)
        heading = Text(no_wrap=True, overflow="crop", style="dim")
        heading.append(f"{'':{3 + cells[0] + n_cells}} {'GB/s':>{cells[1]}}  cost")
        heading.append(f" {'step waits':<{_NOTE_CELLS - 1}}" if wide else "")
        top = max(self._values, default=0.0) or 1.0
        lines = [heading]
        for i, name in enumerate(names):
            drawn = bar(self._values[i] / top, n_cells)
            lines.append(self._line(i, name.ljust(cells[0]), drawn, numbers[i].rjust(cells[1])))
        return Text("\n").join(lines)

    def _line(self, i: int, name: str, drawn: str, number: str) -> Text:
        row, chosen = self._rows[i], i == self._dim
        line = Text(no_wrap=True, overflow="crop")
        line.append(f"{'▶' if chosen else ' '} {name} ", "bold" if chosen else "")
        line.append(drawn, "cyan" if i % 2 == 0 else "dark_cyan")  # Rows stay apart.
        line.append(f" {number}", "bold" if chosen else "")
        line.append(f" {row.cost_share:>5}")
        if self.size.width >= _WIDE:
            line.append(f" {row.note:<{_NOTE_CELLS - 1}.{_NOTE_CELLS - 1}}", "yellow")
        line.append(_BUTTONS, "reverse" if chosen and self.has_focus else "")
        return line

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= len(self._rows):
            return
        self._dim = offset.y - 1
        line = self.render().split("\n")[1].cell_len
        if line - 3 <= offset.x < line:
            self.action_change(1)
        elif line - 6 <= offset.x < line - 3:
            self.action_change(-1)
        elif event.chain == 2:
            self.action_type()
        self.refresh()

    def action_choose(self, by: int) -> None:
        """Choose another dimension."""
        if self._rows:
            self._dim = (self._dim + by) % len(self._rows)
            self.refresh()

    def action_change(self, sign: int) -> None:
        """Change the bandwidth of the chosen dimension by a step."""
        if self._values:
            self._stepped(self._dim, sign * self._factor)

    def action_resize_step(self, by: int) -> None:
        """Change the step tenfold."""
        self._factor = min(max(self._factor * 10.0**by, 1e-3), 1e2)
        self.border_subtitle = f"step {self.step:g} GB/s"

    def action_type(self) -> None:
        """Type a value, or all of them separated by commas."""
        if self._values:
            self._typed(self._dim)


if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem
    from libra_planner.tui.session import Optimum

MOST_SHARES = 8
_SHOWN_GAP = 1e-9
"""Digits of smaller gaps are rounding."""


def dimension_rows(
    problem: Problem, evaluation: Evaluation | None, bandwidth_GBps: Bandwidth
) -> Iterator[DimensionRow]:
    """Beside the bar of every dimension: its taper; with figures its cost and what waits for it."""
    from libra_planner.views.plan import taper_texts

    tapers = taper_texts(problem.topology, bandwidth_GBps)
    for i, dimension in enumerate(problem.topology.dimensions):
        cost_share = waits = ""
        if evaluation is not None:
            waits_s = sum(share.seconds for share in evaluation.shares if i in share.dims)
            cost_usd = evaluation.cost_usd_by_dim[i]
            cost_share = f"{cost_usd / (evaluation.network_cost_usd or 1.0):.0%}"
            waits = format_time(waits_s) if waits_s else ""
        label = problem.topology.labels[i]
        yield DimensionRow(label, dimension.tier, cost_share, waits, tapers[i])


def headline(problem: Problem, evaluation: Evaluation) -> Table:
    """Step time, cost, the comparison with equal bandwidth, the verdict of the rules."""
    from libra_planner.views.training.memory import brief_verdict
    from libra_planner.views.training.step import work_payload

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, figure, text in _headline(problem, evaluation):
        table.add_row(Text(name, "dim"), Text(figure, "bold").append(text, "not bold"))
    if found := work_payload(problem, evaluation):
        tokens = f"{found['tokens_per_s']:,.0f} tokens/s"
        table.add_row(
            Text("Work", "dim"),
            Text(tokens, "bold").append(f", MFU {found['mfu']:.1%}", "not bold"),
        )
    for states in problem.step.memories.values():
        needed = Text(format_bytes(states.total_bytes), "bold")
        style = "bold red" if states.fits is False else "not bold"
        table.add_row(Text("Memory", "dim"), needed.append(brief_verdict(states), style))
    table.add_row(Text("Rules", "dim"), verdict(problem, evaluation))
    return table


def _headline(problem: Problem, evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Names, figures and what is said of them."""
    from libra_planner.views.plan import option_text

    mean, equal = " (mean)" if evaluation.members else "", evaluation.equal
    system = f", {format_usd(evaluation.cost_usd)} system" if evaluation.fixed_cost_usd else ""
    per_cost, compute = evaluation.perf_per_cost_vs_equal, format_time(evaluation.compute_s)
    yield "NPUs", f"{problem.topology.n_npus:,}", f" {problem.topology}"
    yield "Step time", format_time(evaluation.step_time_s), f"{mean}, {compute} compute"
    yield "", "", f"and {format_time(evaluation.communication_s)} exposed comm."
    if problem.prices.bills is None:
        yield "Cost", format_usd(evaluation.network_cost_usd), f" network{system}"
    else:
        network = f" bill, {format_usd(evaluation.network_cost_usd)} of it network"
        yield "Cost", format_usd(evaluation.cost_usd), network
        yield "Buy", "", option_text(problem, evaluation.bandwidth_bytes_per_s)
    yield "Speedup", f"{evaluation.speedup_vs_equal:.3f}x", " vs equal bandwidth"
    if per_cost:
        yield "Perf/cost", f"{per_cost:.3f}x", " vs equal bandwidth"
    breaks = "" if equal.feasible else ", breaks the rules"
    if problem.prices.bills is None:
        yield (
            "",
            "",
            f"equal: {format_time(equal.step_time_s)}, {format_usd(equal.cost_usd)}{breaks}",
        )
    if evaluation.exact_step_time_s is not None:
        text = f" ({evaluation.model_gap:.3f}x of the model)"
        yield "Exact", format_time(evaluation.exact_step_time_s), text


def verdict(problem: Problem, evaluation: Evaluation) -> Text:
    """Whether the rules are met, which are broken and by how much, and which bind."""
    from libra_planner.views.design import binding_rules, rule_texts
    from libra_planner.views.plan import amount_text, line_text

    lines = [
        Text(f"BROKEN: {one.rule}{line_text(one.line)} by {amount_text(one)}", "bold red")
        for one in evaluation.violated
    ]
    if not lines:
        n_rules = len(rule_texts(problem))
        met = {0: "none", 1: "its only rule met"}.get(n_rules, f"all {n_rules} met")
        lines.append(Text(met, "bold"))
    broken = {violation.rule for violation in evaluation.violated}
    for rule in binding_rules(problem, evaluation.bandwidth_bytes_per_s):
        if rule["rule"] not in broken:
            lines.append(Text(f"binds: {rule['rule']}{line_text(rule['line'])}"))
    return Text("\n").join(lines)


def proof(optimum: Optimum, *, is_shown: bool) -> Text:
    """What optimising proved, seen from the design on screen: the optimum or another one."""
    design, best = optimum.design, optimum.evaluation
    found = design.optimality_gap
    gap = "gap below 1e-9" if found < _SHOWN_GAP else f"gap {found:.0e}"
    if is_shown:
        ties = "" if design.unique else "; others tie, this is the first of the cheapest"
        return Text(f"Proven optimal for {optimum.problem.objective} ({gap}){ties}", "bold green")
    figures = f"{format_time(best.step_time_s)}, {format_usd(best.cost_usd)}"
    return Text(f"The optimum ({gap}) has {figures}; o goes back to it", "italic")


_CARDS = ("headline", "worth", "waits", "notes")


class DesignPane(Pane):
    """The first screen."""

    KEYED: ClassVar[tuple[type[Widget], ...]] = (Bandwidths, PlanForm)

    _form_of: Reading | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield PlanForm(self._edit, self._settle, self._ask_value, self._drop_empty_rule)
            with VerticalScroll(id="right", can_focus=False):
                with VerticalScroll(id="faults"):
                    yield Static(id="faults-text")
                yield Bandwidths(self._step, self._ask_bandwidth)
                yield Card("reading the plan ...", id="headline", classes="card")
                yield Card(id="worth", classes="card")
                yield Card(id="waits", classes="card")
                yield Card(id="notes", classes="card")

    def take_focus(self) -> None:
        self.query_one("#faults" if self.session.faults else "#bandwidths").focus()

    def focus_form(self) -> None:
        """Go to the first field that is wrong, else to the first."""
        self.query_one(PlanForm).focus_first()

    def flush(self) -> None:
        """Take what is being typed into the form."""
        self.query_one(PlanForm).flush()

    def show_session(self) -> None:
        if self._form_of is not self.session.reading:
            self._form_of = self.session.reading
            self._show_plan()
        self.show_figures()

    def _show_plan(self) -> None:
        """The form, and all that is wrong with the plan."""
        reading, faults = self.session.reading, self.session.faults
        if reading is not None and reading.document is not None:
            self.query_one(PlanForm).show(reading.document, reading.settings, faults)
        panel = self.query_one("#faults")
        panel.set_class(bool(faults), "some")
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        panel.border_title = f"{count} (f: first field, O: open another)"
        self.query_one("#faults-text", Static).update(Text("\n".join(map(str, faults))))

    def show_figures(self) -> None:
        """Figures of the design on screen."""
        problem, evaluation = self.session.problem, self.cockpit.evaluation
        values = self.session.edits.bandwidth_GBps or ()
        cards = [self.query_one(f"#{name}", Card) for name in _CARDS]
        if problem is not None and len(values) == problem.topology.n_dims:
            rows = tuple(dimension_rows(problem, evaluation, values))
            self.query_one(Bandwidths).update(rows, values)
        if problem is None or evaluation is None:
            for card, text in zip(cards, (self.cockpit.no_figures, "", "", ""), strict=True):
                card.show(Text(text))
            return
        from libra_planner.views.design import time_table, workload_table
        from libra_planner.views.plan import result_notes
        from libra_planner.views.renderers.terminal import note_lines, panel_table
        from libra_planner.views.training.memory import memory_lines

        stale = [] if self.session.current else [Text("Of the last valid plan:", "italic red")]
        cards[0].show(Group(*stale, headline(problem, evaluation)))
        self.show_proof()
        tables = [panel_table(time_table(problem, evaluation, most=MOST_SHARES, tied=""))]
        if evaluation.members:
            names = ("workload", "weight", "step time", "vs equal")
            group = panel_table(workload_table(evaluation), {name: name for name in names})
            tables.insert(0, group)
        cards[2].show(Group(*tables))
        notes = [*memory_lines(problem), *result_notes(problem, evaluation)]
        cards[3].show(note_lines(notes))

    def show_proof(self) -> None:
        """What is known of the best design for the plan as it stands: nothing once it is edited."""
        optimum, evaluation = self.session.optimum, self.cockpit.evaluation
        shown: list[RenderableType] = [Text("o finds the best design for these rules", "italic")]
        if optimum is not None:
            from libra_planner.views.design import worth_table
            from libra_planner.views.renderers.terminal import rich_table

            worth = worth_table(optimum.shadow or ())
            shown = [proof(optimum, is_shown=self.session.is_proven(evaluation))]
            shown += [rich_table(worth)] if worth else []
        if evaluation is not None:
            self.query_one("#worth", Card).show(Group(*shown))

    def _edit(self, key: str, text: str) -> None:
        nothing = "null" if key in OPTIONAL else ""
        self.cockpit.apply_edit(key, text if text.strip() else nothing)

    def _drop_empty_rule(self, field: FormField) -> None:
        kind, _, index = field.key.partition(".")
        is_rule = kind == "constraints" and index.isdigit()
        if is_rule and self.session.remove_empty_rule(int(index)):
            self.cockpit.reread()

    def _settle(self) -> None:
        self.session.settle()

    def _ask_value(self, field: FormField) -> None:
        """Type a value that is none of the known names."""
        hint = "a name, a path that ends in .yaml, or YAML"
        prompt = Prompt(field.label, field.text, hint=hint)
        self.cockpit.ask(prompt, partial(self.cockpit.apply_edit, field.key))

    def _ask_bandwidth(self, dim: int) -> None:
        """Type the bandwidth of a dimension, or of all."""
        problem, values = self.session.problem, self.session.edits.bandwidth_GBps
        if problem is None or values is None:
            return

        def wrong(text: str) -> str:
            try:
                self._vector_of(text, dim)
            except PlannerError as error:
                return str(error)
            return ""

        label, value = problem.topology.labels[dim], f"{values[dim]:.10g}"
        hint = "GB/s per NPU, one direction; all dimensions separated by commas"
        self.cockpit.ask(
            Prompt(label, value, hint=hint, check=wrong),
            lambda answer: self.cockpit.change_bandwidth(self._vector_of(answer, dim)),
        )

    def _vector_of(self, text: str, dim: int) -> Bandwidth:
        """A whole vector, or one number in the place of the dimension's."""
        from libra_planner.studies.designs import bandwidth_bytes_per_s

        session = self.session
        if session.problem is None:
            return ()
        values = [repr(value) for value in session.edits.bandwidth_GBps or ()]
        if "," not in text:
            values[dim] = text
            text = ",".join(values)
        found = bandwidth_bytes_per_s(text, session.problem, Place("bandwidth"))
        return tuple(gigabytes_per_s(b) for b in found)

    def _step(self, dim: int, by: float) -> None:
        """Change the design as it stands, whatever of it has been painted."""
        values = self.session.edits.bandwidth_GBps or ()
        if dim < len(values):
            self.cockpit.change_bandwidth(changed_bandwidth(values, dim, by), f"dim{dim}")
