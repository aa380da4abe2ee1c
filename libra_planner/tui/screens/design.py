"""Design: the plan as a tree, bandwidths as bars, figures that follow every change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from libra_planner.errors import Infeasible, Place, PlannerError
from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.disk.readings import Reading
from libra_planner.tui.screens.bars import (
    Bandwidths,
    changed_bandwidth,
    dimension_rows,
    step_GBps,
    traded_bandwidth,
)
from libra_planner.tui.screens.pane import VERY_WIDE, Pane
from libra_planner.tui.screens.plan_fields import FormField
from libra_planner.tui.screens.plan_form import Choice, PlanForm
from libra_planner.tui.session import Bandwidth
from libra_planner.tui.widgets import Card, Drawn
from libra_planner.units import (
    format_bandwidth,
    format_bytes,
    format_time,
    format_usd,
    gigabytes_per_s,
)

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem
    from libra_planner.tui.session import Optimum

MOST_SHARES = 8
_SHOWN_GAP = 1e-9
"""Digits of smaller gaps are rounding."""


def headline(problem: Problem, evaluation: Evaluation, *, searched: bool = False) -> Table:
    """Strategy, step time, cost, the comparison with equal bandwidth, the verdict of the rules."""
    from libra_planner.views.training.memory import brief_verdict
    from libra_planner.views.training.step import COUNTED, work_payload

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, figure, text in _headline(problem, evaluation, searched=searched):
        table.add_row(Text(name, "dim"), Text(figure, "bold").append(text, "not bold"))
    if found := work_payload(problem, evaluation.step_time_s):
        tokens = f"{found['tokens_per_s']:,.0f} tokens/s"
        table.add_row(
            Text("Work", "dim"),
            Text(tokens, "bold").append(f", MFU {found['mfu']:.1%} ({COUNTED})", "not bold"),
        )
    for states in problem.step.memories.values():
        needed = Text(format_bytes(states.total_bytes), "bold")
        style = "bold red" if states.fits is False else "not bold"
        table.add_row(Text("Memory", "dim"), needed.append(brief_verdict(states), style))
    table.add_row(Text("Rules", "dim"), verdict(problem, evaluation))
    return table


def _strategy(problem: Problem, *, searched: bool) -> Iterator[tuple[str, str, str]]:
    """How the model is spread over its NPUs, where it is one whole model."""
    from libra_planner.plan.steps.strategies import degrees_text
    from libra_planner.step.model_training import ModelTraining

    for training in problem.step.trainings:
        if isinstance(training, ModelTraining) and not problem.members:
            one = training.trained.strategy
            chunks = f", {one.interleave} chunks a stage" * (one.interleave > 1)
            yield "Strategy", degrees_text(one), chunks + ", searched" * searched


def _headline(
    problem: Problem, evaluation: Evaluation, *, searched: bool
) -> Iterator[tuple[str, str, str]]:
    """Names, figures and what is said of them."""
    from libra_planner.views.design import compute_words

    mean, equal = " (mean)" if evaluation.members else "", evaluation.equal
    per_cost, compute = evaluation.perf_per_cost_vs_equal, format_time(evaluation.compute_s)
    words = compute_words(problem)
    yield "NPUs", f"{problem.topology.n_npus:,}", f" {problem.topology}"
    yield from _strategy(problem, searched=searched)
    yield "Step time", format_time(evaluation.step_time_s), f"{mean}, {compute} {words}"
    yield "", "", f"and {format_time(evaluation.communication_s)} exposed comm."
    if evaluation.band_s is not None:
        yield "", " to ".join(map(format_time, evaluation.band_s)), " error band"
    yield from _cost(problem, evaluation)
    each = format_bandwidth(equal.bandwidth_bytes_per_s[0])
    if (speedup := evaluation.speedup_vs_equal) is not None:
        yield "Speedup", f"{speedup:.3f}x", f" vs equal: {each} each"
    if per_cost:
        yield "Perf/cost", f"{per_cost:.3f}x", " vs equal bandwidth"
    breaks = "" if equal.feasible else ", breaks the rules"
    if equal.possible:
        figures = f"{format_time(equal.step_time_s)}, {format_usd(equal.cost_usd)}"
        yield "", "", f"equal: {figures}{breaks}"
    if evaluation.exact_step_time_s is not None:
        text = f" ({evaluation.model_gap:.3f}x of the model)"
        yield "Exact", format_time(evaluation.exact_step_time_s), text


def _cost(problem: Problem, evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """The network's cost, and that of its whole parts where it is far from it, as ``optimize``."""
    from libra_planner.views.bought.whole_ports import far_bill_usd, whole_ports
    from libra_planner.views.plan import option_text

    bandwidth = evaluation.bandwidth_bytes_per_s
    network = format_usd(evaluation.network_cost_usd)
    if problem.prices.bills is not None:
        yield "Cost", format_usd(evaluation.cost_usd), f" bill, {network} of it network"
        yield "Buy", "", option_text(problem, bandwidth)
        return
    bill_usd, whole = far_bill_usd(problem, evaluation), whole_ports(problem, bandwidth)
    linear = "" if bill_usd is None else ", linear"
    system = f", {format_usd(evaluation.cost_usd)} system" if evaluation.fixed_cost_usd else ""
    yield "Cost", network, f" network{system}{linear}"
    if bill_usd is not None:
        yield "", f"about {format_usd(bill_usd)}", " in whole parts"
    if whole is not None and whole.fault:
        yield "", "cannot be built", " of whole ports: Fabric (4) says why"


def verdict(problem: Problem, evaluation: Evaluation) -> Text:
    """Whether the rules are met, which are broken and by how much, and which bind."""
    from libra_planner.views.design import binding_rules, rule_texts
    from libra_planner.views.plan import amount_text, line_text

    lines = [
        Text(f"BROKEN: {one.rule}{line_text(one.line)} {amount_text(one)}", "bold red")
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


_CALM_S = 0.1
"""Pause between two changes in which the pictures are drawn."""
_PLOT_SHARE, _LEAST_PLOT = 0.25, 9
"""Lines of the small frontier: a share of the screen's, and the least."""
_CARDS = ("headline", "proof", "worth", "waits", "notes")


class DesignPane(Pane):
    """The first screen."""

    WAITS = True

    KEYED: ClassVar[tuple[type[Widget], ...]] = (Bandwidths, PlanForm, Choice)

    _form_of: Reading | None = None
    _drawing: Timer | None = None

    def compose(self) -> ComposeResult:
        self.add_class("-blank")
        with Horizontal():
            yield PlanForm(
                self._edit, self._settle, self._ask_value, self._drop_empty_rule, self._add_rule
            )
            with VerticalScroll(id="right", can_focus=False):
                with Vertical(id="design-bars"):
                    with VerticalScroll(id="faults"):
                        yield Static(id="faults-text")
                    yield Bandwidths(self._step, self._ask_bandwidth)
                with Vertical(id="design-top"):
                    yield Card("reading the plan ...", id="headline", classes="card")
                    yield Card(id="proof", classes="card")
                with Vertical(id="design-pictures"):
                    with Vertical(id="design-frontier"):
                        yield Card(id="small-frontier")
                        yield Card(id="standing")
                    yield Card(id="fabric-picture", classes="card")
                    yield Card(id="step-picture", classes="card")
                with Vertical(id="design-rest"):
                    yield Card(id="worth", classes="card")
                    yield Card(id="waits", classes="card")
                    yield Card(id="notes", classes="card")

    def take_focus(self) -> None:
        self.remove_class("-form")
        self.query_one("#faults" if self.session.faults else "#bandwidths").focus()

    def focus_form(self, key: str = "") -> None:
        """Go to a field that is seen; without one to the first that is wrong, else to none yet."""
        form = self.query_one(PlanForm)
        if key:
            form.focus_key(key)
        else:
            form.enter()

    def flush(self) -> None:
        """Take what is being typed into the form."""
        self.query_one(PlanForm).flush()

    def show_session(self) -> None:
        if self._form_of is not self.session.reading:
            self._form_of = self.session.reading
            self._show_plan()
        self._want_frontier()
        self.show_figures()

    def on_resize(self) -> None:
        self._want_frontier()

    def _want_frontier(self) -> None:
        """Have the frontier found where there is room for it."""
        is_wanted = not self.session.faults and not self.session.has_frontier
        if is_wanted and self.app.size.width >= VERY_WIDE:
            self.find_frontier()

    def show_frontier(self) -> None:
        self._say_standing()
        self.draw()

    def frontier_failed(self, text: str) -> None:
        self._say_standing(text)

    def _say_standing(self, text: str = "") -> None:
        """What the frontier says of the design on screen: points of it that are better."""
        session, evaluation = self.session, self.cockpit.evaluation
        area = self.query_one("#design-frontier")
        of = " of this strategy" if session.searches_strategy else ""
        area.border_title = f"Frontier{of}: step time over cost"
        said = Text(text or "finding the frontier ...", "italic")
        if session.frontier is not None and not session.has_frontier:
            area.border_title = "Frontier of the plan before its edit"
        elif session.frontier is not None and evaluation is not None:
            from libra_planner.tui.pictures.designs import standing

            said = standing(session.frontier, evaluation)
        self.query_one("#standing", Card).show(said)

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

    def show_waiting(self) -> None:
        self.show_figures()

    def show_figures(self) -> None:
        """Figures of the design on screen."""
        problem, evaluation = self.session.problem, self.cockpit.evaluation
        values = self.session.edits.bandwidth_GBps or ()
        cards = [self.query_one(f"#{name}", Card) for name in _CARDS]
        if problem is not None and len(values) == problem.topology.n_dims:
            rows = tuple(dimension_rows(problem, evaluation, values))
            self.query_one(Bandwidths).update(rows, values)
        elif problem is None:
            self.query_one(Bandwidths).show_none(self.session.without("bandwidths"))
        self.set_class(problem is None or evaluation is None, "-blank")
        if problem is None or evaluation is None:
            for card, text in zip(cards, (self.cockpit.no_figures, "", "", "", ""), strict=True):
                card.show(Text(text))
            return
        from libra_planner.views.design import time_table, workload_table
        from libra_planner.views.plan import band_lines, result_notes
        from libra_planner.views.renderers.terminal import note_lines, panel_table
        from libra_planner.views.training.memory import memory_lines

        stale = [] if self.session.current else [Text("Of the last valid plan:", "italic red")]
        figures = headline(problem, evaluation, searched=self.session.searches_strategy)
        cards[0].show(Group(*stale, figures))
        self.show_proof()
        tables = [panel_table(time_table(problem, evaluation, most=MOST_SHARES, tied=""))]
        if evaluation.members:
            compared = ("vs equal",) * evaluation.equal.possible
            names = ("workload", "weight", "step time", *compared)
            group = panel_table(workload_table(evaluation), {name: name for name in names})
            tables.insert(0, group)
        cards[3].show(Group(*tables))
        band = band_lines(problem, evaluation.band_s)
        notes = [*band, *memory_lines(problem), *result_notes(problem, evaluation)]
        cards[4].show(note_lines(notes))
        if self._drawing is not None:
            self._drawing.stop()
        self._drawing = self.set_timer(_CALM_S, self.draw)

    def draw(self) -> None:
        """The pictures, once keys have paused: a step of many stages takes some 30 ms."""
        problem, evaluation = self.session.problem, self.cockpit.evaluation
        if problem is None or evaluation is None:
            return
        self._draw_frontier(evaluation)
        from libra_planner.tui.pictures.designs import PICTURES

        for name, (title, picture) in PICTURES.items():
            card = self.query_one(f"#{name}-picture", Card)
            card.border_title = title
            card.show(Drawn(partial(picture, problem, evaluation)))

    def _draw_frontier(self, evaluation: Evaluation) -> None:
        """Points of the frontier and the design on screen; stale ones stay as they are."""
        found = self.session.frontier
        if found is None or not self.session.has_frontier or self.app.size.width < VERY_WIDE:
            return
        if found.alone:
            self.query_one("#small-frontier", Card).show(Text(found.alone, "italic"))
            return
        from libra_planner.tui.pictures.designs import frontier_picture

        n_lines = max(round(_PLOT_SHARE * self.app.size.height), _LEAST_PLOT)
        picture = partial(frontier_picture, found.points, evaluation, n_lines)
        self.query_one("#small-frontier", Card).show(Drawn(picture))

    def show_proof(self) -> None:
        """What is known of the best design for the plan as it stands: nothing once it is edited."""
        optimum, evaluation = self.session.optimum, self.cockpit.evaluation
        shown = Text("o finds the best design for these rules", "italic")
        if refusal := self.session.refusal:
            shown = Text(f"No design: {refusal}", "bold red")
        table: RenderableType | None = None
        if optimum is not None:
            from libra_planner.tui.pictures.designs import Worth
            from libra_planner.views.design import worth_table

            worth = worth_table(optimum.shadow or ())
            shown = proof(optimum, is_shown=self.session.is_proven(evaluation))
            table = Worth(worth) if worth else None
        self._say_standing()
        if evaluation is not None:
            self.query_one("#proof", Card).show(shown)
            card = self.query_one("#worth", Card)
            card.display = table is not None  # Else it would be empty lines.
            card.show(Text("") if table is None else table)

    def not_optimized(self, fingerprint: bytes | None, error: Exception) -> None:
        """Say why in a panel; that a plan has no design stays on screen."""
        self.cockpit.show_error("optimising", error)
        if isinstance(error, Infeasible):
            self.session.keep_refusal(fingerprint, str(error))
            self.show_proof()

    def _edit(self, key: str, text: str) -> None:
        self.cockpit.apply_edit(key, text)

    def _add_rule(self, text: str) -> None:
        self.session.add_rule(text)
        self.cockpit.reread()
        self.take_focus()  # Letters are commands again, such as u, and figures show what it does.
        self.cockpit.say_of_edit(f"added the rule {text}; u takes it back, a adds another")

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
        prompt = Prompt(label, value, hint=hint, check=wrong)
        change = self.cockpit.change_bandwidth
        self.cockpit.ask(prompt, lambda answer: change(self._vector_of(answer, dim)))

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

    def _step(self, dim: int, by: float, held: str, other: int) -> None:
        """Change the design as it stands, whatever of it has been painted."""
        values, problem = self.session.edits.bandwidth_GBps or (), self.session.problem
        if problem is None or max(dim, other) >= len(values):
            return
        found: Bandwidth | None = changed_bandwidth(values, dim, by)
        if held:
            is_cost = held == "cost"
            prices = problem.price_usd_per_Bps.tolist() if is_cost else [1.0] * len(values)
            by_GBps = by * step_GBps(values)
            found = traded_bandwidth(values, (dim, other), by_GBps, prices)
            found = found and tuple(round(value, 9) for value in found)
        if found is None:
            self.cockpit.say("no trade: a dimension without a price has nothing to give")
        else:
            self.cockpit.change_bandwidth(found, f"dim{dim}")
