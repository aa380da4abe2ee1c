"""Design: the plan as a form, bandwidths as bars, figures that follow every change."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from libra_planner.errors import Place, PlannerError
from libra_planner.tui import figures
from libra_planner.tui.dialogs import Prompt
from libra_planner.tui.fields import OPTIONAL, FormField, fault_text, faults_by_key, form_fields
from libra_planner.tui.plans import Bandwidth, Reading
from libra_planner.tui.screens.pane import Pane
from libra_planner.tui.widgets.bandwidths import Bandwidths, changed
from libra_planner.tui.widgets.contents import Card
from libra_planner.tui.widgets.plan_form import PlanForm

_CARDS = ("headline", "worth", "waits", "notes")


class DesignPane(Pane):
    """The first screen."""

    DEFAULT_CSS = """
    DesignPane { layout: horizontal; }
    DesignPane #form { width: 2fr; min-width: 35; max-width: 64; }
    DesignPane #right { width: 3fr; }
    DesignPane #faults { color: $error; border: round $error; padding: 0 1; display: none;
                         height: auto; max-height: 12; }
    DesignPane #faults.some { display: block; }
    DesignPane .card { height: auto; padding: 0 1; margin-bottom: 1; }
    """
    KEYED: ClassVar[tuple[type[Widget], ...]] = (Bandwidths, PlanForm)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._form_of: Reading | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield PlanForm(self._edited, self._settled, self._asked, self._emptied)
            with VerticalScroll(id="right", can_focus=False):
                with VerticalScroll(id="faults"):
                    yield Static(id="faults-text")
                yield Bandwidths(self._stepped, self._ask_bandwidth)
                yield Card("reading the plan ...", id="headline", classes="card")
                yield Card(id="worth", classes="card")
                yield Card(id="waits", classes="card")
                yield Card(id="notes", classes="card")

    def take_focus(self) -> None:
        if self.session.faults:
            self.query_one("#faults").focus()
        else:
            self.query_one(Bandwidths).focus()

    def focus_form(self) -> None:
        """Go to the first field that is wrong, else to the first."""
        self.query_one(PlanForm).focus_first()

    def flush(self) -> None:
        """Take what is being typed into the form."""
        self.query_one(PlanForm).flush()

    def show_session(self) -> None:
        if self._form_of is not self.session.reading:
            self._form_of = self.session.reading
            self._show_form()
            self._show_faults()
        self.show_figures()

    def _show_form(self) -> None:
        reading = self.session.reading
        if reading is None or reading.document is None:
            return
        fields = form_fields(reading.document, reading.settings)
        by_key = faults_by_key(reading.faults, [field.key for field in fields])
        texts = {key: [fault_text(fault) for fault in found] for key, found in by_key.items()}
        self.query_one(PlanForm).show(fields, texts)

    def _show_faults(self) -> None:
        panel, faults = self.query_one("#faults"), self.session.faults
        panel.set_class(bool(faults), "some")
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        panel.border_title = f"{count} (f: first field, O: open another)"
        text = "\n".join(str(fault) for fault in faults)
        self.query_one("#faults-text", Static).update(Text(text))

    def show_figures(self) -> None:
        """Figures of the design on screen."""
        problem, evaluation = self.session.problem, self.cockpit.evaluation
        values = self.session.edits.bandwidth_GBps or ()
        cards = [self.query_one(f"#{name}", Card) for name in _CARDS]
        if problem is not None and len(values) == problem.topology.n_dims:
            self.query_one(Bandwidths).update(figures.dimension_rows(problem, evaluation), values)
        if problem is None or evaluation is None:
            for card, text in zip(cards, (self.cockpit.no_figures, "", "", ""), strict=True):
                card.show(Text(text))
            return
        stale = [] if self.session.current else [Text("Of the last valid plan:", "italic red")]
        cards[0].show(Group(*stale, figures.headline(problem, evaluation)))
        self.show_proof()
        group = figures.members(evaluation)
        cards[2].show(Group(*([group] if group else []), figures.waits(problem, evaluation)))
        cards[3].show(figures.notes(problem, evaluation))

    def show_proof(self) -> None:
        """What is known of the best design for the plan as it stands: nothing once it is edited."""
        optimum, evaluation = self.session.optimum, self.cockpit.evaluation
        shown = Text("o finds the best design for these rules", "italic")
        if optimum is not None:
            shown = figures.proof(optimum, is_shown=self.session.is_proven(evaluation))
        worth = figures.worth(optimum) if optimum else None
        if evaluation is not None:
            self.query_one("#worth", Card).show(Group(shown, *([worth] if worth else [])))

    def _edited(self, key: str, text: str) -> None:
        nothing = "null" if key in OPTIONAL else ""
        self.cockpit.apply_edit(key, text if text.strip() else nothing)

    def _emptied(self, field: FormField) -> None:
        kind, _, index = field.key.partition(".")
        if kind != "constraints" or not index.isdigit():
            return
        if self.session.remove_empty_rule(int(index)):
            self.cockpit.reread()

    def _settled(self) -> None:
        self.session.settle()

    def _asked(self, field: FormField) -> None:
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
                self._typed(text, dim)
            except PlannerError as error:
                return str(error)
            return ""

        label, value = problem.topology.labels[dim], f"{values[dim]:.10g}"
        hint = "GB/s per NPU, one direction; all dimensions separated by commas"
        self.cockpit.ask(
            Prompt(label, value, hint=hint, check=wrong),
            lambda answer: self.cockpit.change_bandwidth(self._typed(answer, dim)),
        )

    def _typed(self, text: str, dim: int) -> Bandwidth:
        """A whole vector, or one number in the place of the dimension's."""
        from libra_planner.studies.designs import bandwidth_bytes_per_s
        from libra_planner.units import gigabytes_per_s

        session = self.session
        if session.problem is None:
            return ()
        values = [repr(value) for value in session.edits.bandwidth_GBps or ()]
        if "," not in text:
            values[dim] = text
            text = ",".join(values)
        found = bandwidth_bytes_per_s(text, session.problem, Place("bandwidth"))
        return tuple(gigabytes_per_s(b) for b in found)

    def _stepped(self, dim: int, by: float) -> None:
        """Change the design as it stands, whatever of it has been painted."""
        values = self.session.edits.bandwidth_GBps or ()
        if dim < len(values):
            self.cockpit.change_bandwidth(changed(values, dim, by), f"dim{dim}")
