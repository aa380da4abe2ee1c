"""The plan as a form: a row per value, its line in the file, what is wrong under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantBlur
from textual.timer import Timer
from textual.widgets import Input, Select, Static

from libra_planner.tui.fields import FormField

DEBOUNCE_S = 0.15
"""Pause in typing after which a value is taken."""

OTHER = "\0other"
"""The choice that asks for a value of one's own."""

_ASKED = ("workload", "cost_model", "training_loop")
"""Choices beside which a path or an expression may stand."""


class FieldRow(Vertical):
    """One value: label, line, input, faults."""

    DEFAULT_CSS = """
    FieldRow { height: auto; }
    FieldRow Horizontal { height: 1; }
    FieldRow .label { width: 14; color: $text-muted; }
    FieldRow .faults { color: $error; padding-left: 4; display: none; }
    FieldRow.wrong .faults { display: block; }
    FieldRow.wrong .label { color: $error; text-style: bold; }
    FieldRow Input { width: 1fr; }
    FieldRow Select { width: 1fr; }
    """

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self._faults: list[str] = []

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(self._label(), classes="label")
            yield self._editor()
        yield Static(classes="faults")

    def _editor(self) -> Input | Select[str]:
        if not self.field.choices:
            return Input(self.field.text, compact=True, select_on_focus=False)
        value: Any = self.field.text or Select.NULL
        return Select(
            self._options(), value=value, compact=True, allow_blank=True, prompt="default"
        )

    def _options(self) -> list[tuple[Text, str]]:
        options = [(Text(choice), choice) for choice in self.field.choices]
        return [*options, (Text("other ..."), OTHER)] if self.field.key in _ASKED else options

    def _label(self) -> Text:
        where = "*" if self.field.edited else str(self.field.line or "")
        text = Text(f"{where:>3} ", "dim", no_wrap=True, overflow="ellipsis")
        text.append(self.field.label, "")
        return text

    def show(self, field: FormField, faults: list[str]) -> None:
        """Bring the row up to date; what is being typed stays."""
        before, self.field = self.field, field
        if before != field:
            self.query_one(".label", Static).update(self._label(), layout=False)
        if faults != self._faults:
            self._faults = faults
            self.set_class(bool(faults), "wrong")
            text = "\n".join(f"! {fault}" for fault in faults)
            self.query_one(".faults", Static).update(Text(text))
        if field.choices:
            self._show_choice(before, field)
        else:
            editor = self.query_one(Input)
            if editor.value != field.text and not editor.has_focus:
                with self.prevent(Input.Changed):
                    editor.value = field.text

    def _show_choice(self, before: FormField, field: FormField) -> None:
        editor = self.query_one(Select)
        value: Any = field.text or Select.NULL
        with self.prevent(Select.Changed):
            if before.choices != field.choices:
                editor.set_options(self._options())
            if editor.value != value:
                editor.value = value


class PlanForm(VerticalScroll, can_focus=False):
    """All values of the plan.

    Parameters
    ----------
    edited : called with a key and its new text.
    settled : called when a field is left, so that the next edit is a step of its own.
    asked : called with a field whose value is to be typed instead of chosen.
    emptied : called with a field that was left empty by Enter.
    """

    DEFAULT_CSS = """
    PlanForm { border: round $foreground 40%; padding: 0 1 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Field before", show=False),
        Binding("down", "move(1)", "Next field", show=False),
    ]

    def __init__(
        self,
        edited: Callable[[str, str], None],
        settled: Callable[[], None],
        asked: Callable[[FormField], None],
        emptied: Callable[[FormField], None],
    ) -> None:
        super().__init__(id="form")
        self.border_title = "Plan"
        self._edited, self._settled, self._asked = edited, settled, asked
        self._emptied = emptied
        self._pending: dict[str, str] = {}
        self._timer: Timer | None = None
        self._rows: list[FieldRow] = []

    def show(self, fields: list[FormField], faults: dict[str, list[str]]) -> None:
        """Show the plan's values, and what is wrong under each."""
        if [(f.key, bool(f.choices)) for f in fields] != [
            (row.field.key, bool(row.field.choices)) for row in self._rows
        ]:
            self.query(FieldRow).remove()
            self._rows = [FieldRow(field) for field in fields]
            self.mount(*self._rows)
        for row, field in zip(self._rows, fields, strict=True):
            if row.is_mounted:
                row.show(field, faults.get(field.key, []))
            else:
                self.call_after_refresh(self._show_row, row, field, faults.get(field.key, []))

    def _show_row(self, row: FieldRow, field: FormField, faults: list[str]) -> None:
        if row.is_attached and row.query(".label"):
            row.show(field, faults)

    def focus_first(self) -> None:
        """Focus the first field that is wrong, else the first."""
        wrong = [row for row in self._rows if row.has_class("wrong")]
        for row in [*wrong, *self._rows][:1]:
            self._focus(row)

    def _focus(self, row: FieldRow) -> None:
        for editor in row.query("Input, Select"):  # None before the row is composed.
            editor.focus()

    def focus_key(self, key: str) -> None:
        """Focus the field of a key."""
        for row in self._rows:
            if row.field.key == key:
                self._focus(row)

    def flush(self) -> None:
        """Take what was typed and not taken yet."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        pending, self._pending = self._pending, {}
        for key, text in pending.items():
            self._edited(key, text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        field = self._field_of(event.input)
        if field is None or (event.value == field.text and field.key not in self._pending):
            return
        self._pending[field.key] = event.value
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(DEBOUNCE_S, self.flush)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.flush()
        field = self._field_of(event.input)
        if field is not None and not event.value.strip():
            self._emptied(field)
        self._settled()

    def on_select_changed(self, event: Select.Changed) -> None:
        event.stop()
        field = self._field_of(event.select)
        if field is None or event.value in (Select.NULL, field.text):
            return
        if event.value == OTHER:
            with self.prevent(Select.Changed):
                value: Any = field.text or Select.NULL
                event.select.value = value
            self._asked(field)
            return
        self._edited(field.key, str(event.value))
        self._settled()

    def on_descendant_blur(self, _event: DescendantBlur) -> None:
        self.flush()
        self._settled()

    def action_move(self, by: int) -> None:
        """Go to another field."""
        editors = [editor for row in self._rows for editor in row.query("Input, Select")]
        focused = [i for i, editor in enumerate(editors) if editor.has_focus]
        if focused:
            editors[(focused[0] + by) % len(editors)].focus()
        else:
            self.focus_first()

    def _field_of(self, editor: Any) -> FormField | None:
        rows = [row for row in self._rows if editor in row.query("Input, Select")]
        return rows[0].field if rows else None
