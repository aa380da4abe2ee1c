"""The plan as a tree: a line per value, its line in the file, what may be meant, what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantBlur, DescendantFocus, Key
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Select, Static

from libra_planner.errors import Fault, closest
from libra_planner.tui.screens.plan_fields import (
    BRANCH,
    CHOICE,
    NEW_KEY,
    NEW_RULE,
    FormField,
    Words,
    about,
    candidates,
    completion,
    fault_text,
    faults_by_key,
    form_fields,
    is_open,
    shapes,
    words,
)

if TYPE_CHECKING:
    from libra_planner.reading.document import Document
    from libra_planner.tui.screens.pane import Host
    from libra_planner.tui.terminal import KeysInTurn

DEBOUNCE_S = 0.15
"""Pause in typing after which a value is taken."""

OTHER = "\0other"
"""The choice that asks for a value of one's own."""

_ENTERED = "Enter or ↓ goes to the first field; until then letters are commands"

_MOST_OFFERED = 6
"""Candidates under a field."""
_NEW = (NEW_RULE, NEW_KEY)


class Choice(Select[str], inherit_bindings=False):
    """One of known names; arrows go to the next field, a first letter opens the list there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "show_overlay", "Choose", show=True, tooltip="Show known names.")
    ]

    OPENS_AT_A_LETTER = True

    def check_consume_key(self, key: str, character: str | None) -> bool:  # noqa: ARG002
        """Letters are typed here, as in every field; digits go to other screens."""
        return bool(character and character.isalpha())

    def on_key(self, event: Key) -> None:
        """Open the list, and look for the letter there, before the next key comes."""
        letter = event.character
        if not self.check_consume_key(event.key, letter):
            return
        event.stop()
        event.prevent_default()
        app, names = cast("KeysInTurn", self.app), self.query_one(OptionList)
        begins = [str(prompt).lower()[:1] for prompt, _ in self._options]
        if str(letter).lower() not in begins:
            cast("Host", self.app).say(
                f"no name here begins with {letter}: Enter lists them, Escape leaves the field"
            )
            return
        self.action_show_overlay()
        key = Key(event.key, letter)

        def look() -> None:
            names.post_message(key)

        app.hold_keys(names, look)


class Completion(Suggester):
    """What the right arrow completes."""

    def __init__(self, meant: Callable[[], Words]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._meant = meant

    async def get_suggestion(self, value: str) -> str | None:
        return completion(value, self._meant())


class FieldRow(Vertical):
    """One line of the tree: label, line, editor, faults.

    Parameters
    ----------
    field : what it shows.
    meant : gives what may be meant there.
    """

    def __init__(self, field: FormField, meant: Callable[[str], Words]) -> None:
        super().__init__()
        self.field = field
        self.is_emptied = False  # By a person, so that another value may take its place.
        self._faults: list[str] = []
        self.editor: Input | Select[str] | Static
        if field.kind == BRANCH:
            self.editor = Static()
        elif field.kind == CHOICE:
            self.editor = Choice(
                self._options(), value=self._value, compact=True, prompt=field.default or "-"
            )
        else:
            suggester = Completion(partial(meant, field.key))
            self.editor = Input(
                field.text, field.default, compact=True, select_on_focus=False, suggester=suggester
            )

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(self._label(), classes="label")
            yield self.editor
        yield Static(classes="faults")

    @property
    def _value(self) -> Any:
        """What is chosen."""
        return self.field.text or Select.NULL

    def _options(self) -> list[tuple[Text, str]]:
        options = [(Text(choice), choice) for choice in self.field.choices]
        return [*options, (Text("other ..."), OTHER)] if is_open(self.field.key) else options

    def _label(self) -> Text:
        where = "*" if self.field.edited else str(self.field.line or "")
        text = Text(f"{where:>3} ", "dim", no_wrap=True, overflow="ellipsis")
        return text.append(" " * self.field.depth).append(self.field.label, "not dim")

    def show(self, field: FormField, faults: list[str]) -> None:
        """Bring the row up to date; what is being typed stays."""
        before, self.field = self.field, field
        if before != field:
            self.query_one(".label", Static).update(self._label(), layout=False)
        self.say(faults)
        editor = self.editor
        with self.prevent(Input.Changed, Select.Changed):
            if isinstance(editor, Select):
                editor.prompt = field.default or "-"
                if before.choices != field.choices:
                    editor.set_options(self._options())
                if editor.value != self._value:
                    editor.value = self._value
            elif isinstance(editor, Input):
                editor.placeholder = field.default
            if isinstance(editor, Input) and (self.is_emptied or not editor.has_focus):
                if field.key not in _NEW:
                    editor.value = field.text
                self.is_emptied = False

    def say(self, faults: list[str]) -> None:
        """Say what is wrong under the value."""
        if faults != self._faults:
            self._faults = faults
            self.set_class(bool(faults), "wrong")
            text = "\n".join(f"! {fault}" for fault in faults)
            self.query_one(".faults", Static).update(Text(text))


class PlanForm(VerticalScroll):
    """All values of the plan; while none of them has the focus, letters are commands.

    Parameters
    ----------
    edited : called with a key and its new text.
    settled : called when a field is left, so that the next edit is a step of its own.
    asked : called with a field whose value is to be typed instead of chosen.
    emptied : called with a field that was left empty by Enter.
    ruled : called with the text of a new design rule.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Field before", show=False),
        Binding("down", "move(1)", "Next field", show=False),
        Binding("enter", "move(1)", "Edit", show=False),
        Binding("ctrl+space,ctrl+@", "offer", "List", key_display="^space", show=True),
        Binding("ctrl+l", "remove", "Remove", show=True),
    ]

    def __init__(
        self,
        edited: Callable[[str, str], None],
        settled: Callable[[], None],
        asked: Callable[[FormField], None],
        emptied: Callable[[FormField], None],
        ruled: Callable[[str], None],
    ) -> None:
        super().__init__(id="form")
        self.border_title = "Plan"
        self._edited, self._settled, self._asked, self._emptied = edited, settled, asked, emptied
        self._ruled = ruled
        self._pending: dict[str, str] = {}
        self._timer: Timer | None = None
        self._rows: list[FieldRow] = []
        self._shown: tuple[Document, tuple[str, ...], tuple[Fault, ...]] | None = None
        self._wanted: list[str] = []
        self._file = ""

    def compose(self) -> ComposeResult:
        yield OptionList(id="form-words", compact=True)
        yield Static(id="form-about")

    def on_mount(self) -> None:
        self._offered.can_focus = False

    def watch_virtual_size(self) -> None:
        """Lines come and go, such as faults: the field that is typed into stays in sight."""
        self.call_after_refresh(self._show_focused)

    def _show_focused(self) -> None:
        row = self._row_of(self.screen.focused) if self.is_attached else None
        if row is not None:
            row.scroll_visible(animate=False)

    @property
    def _offered(self) -> OptionList:
        return self.query_one("#form-words", OptionList)

    def show(
        self, document: Document, settings: tuple[str, ...], faults: tuple[Fault, ...]
    ) -> None:
        """Show the plan's values, and what is wrong under each."""
        self._shown = document, settings, faults
        if document.file != self._file:
            self._file, self._wanted = document.file, []
        fields = form_fields(document, settings, self._wanted)
        by_key = faults_by_key(faults, [field.key for field in fields])
        self._make_rows(fields)
        for row, field in zip(self._rows, fields, strict=True):
            if field.key in _NEW:
                continue  # What stands there is not the plan's yet.
            texts = [fault_text(fault) for fault in by_key.get(field.key, ())]
            show = partial(self._show_row, row, field, texts)
            if row.is_mounted:
                show()
            else:
                self.call_after_refresh(show)

    def _make_rows(self, fields: list[FormField]) -> None:
        """A row per field: those that are there stay, with what is being typed."""
        known = {(row.field.key, row.field.kind): row for row in self._rows}
        wanted = [(field.key, field.kind) for field in fields]
        if [one for one in known if one in wanted] != [one for one in wanted if one in known]:
            known = {}  # Another order.
        rows = [
            known.get((field.key, field.kind)) or FieldRow(field, self._meant) for field in fields
        ]
        gone, there = set(self._rows) - set(rows), set(self._rows) & set(rows)
        if there:
            for above, row in pairwise([None, *rows]):
                if row not in there and row is not None:
                    self.mount(row, **({"after": above} if above else {"before": 0}))
        else:
            self.mount(*rows, before=0)
        self.remove_children([row for row in self._rows if row in gone])
        self._rows = rows

    def _show_row(self, row: FieldRow, field: FormField, faults: list[str]) -> None:
        if row.is_attached and row.query(".label"):
            row.show(field, faults)

    def _meant(self, key: str) -> Words:
        """What may be meant in a field of the plan as it is shown."""
        return words(key, self._shown[0]) if self._shown else Words()

    def enter(self) -> None:
        """Focus the first field that is wrong; else no field, until one is chosen."""
        if any(row.has_class("wrong") for row in self._rows):
            self.focus_first()
        else:
            self.focus()
            self.query_one("#form-about", Static).update(Text(_ENTERED))

    def focus_first(self) -> None:
        """Focus the first field that is wrong, else the first."""
        wrong = [i for i, row in enumerate(self._rows) if row.has_class("wrong")]
        rows = [*self._rows[min(wrong, default=0) :], *self._rows]
        for row in [row for row in rows if row.field.kind != BRANCH][:1]:
            row.editor.focus()

    def focus_key(self, key: str) -> None:
        """Focus the field of a key."""
        for row in self._rows:
            if row.field.key == key:
                row.editor.focus()

    def flush(self) -> None:
        """Take what was typed and not taken yet."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        pending, self._pending = self._pending, {}
        for key, text in pending.items():
            self._edited(key, text)

    def _add(self, row: FieldRow, editor: Input) -> None:
        """Take a new rule, or show a new key."""
        text = editor.value.strip()
        if not text or self._shown is None:
            return
        key, _, value = text.replace("=", ":", 1).partition(":")
        if row.field.key == NEW_KEY and not shapes(key.strip()):
            known = self._meant(NEW_KEY).whole
            fix = closest(key.strip(), [one.rpartition(".")[2] for one in known])
            row.say([f"got {key.strip()!r}, expected a key of a plan; {fix}"])
            return
        row.say([])
        with self.prevent(Input.Changed):
            editor.value = ""
        if row.field.key == NEW_RULE:
            self._ruled(text)
        elif value.strip():
            self._edited(key.strip(), value.strip())
        else:
            self._wanted.append(key.strip())
            self.show(*self._shown)
            self.call_after_refresh(self.focus_key, key.strip())  # Once it is there.

    # What is offered

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = self._row_of(event.widget)
        if row is not None:
            self.query_one("#form-about", Static).update(Text(about(row.field.key)))
            self.call_after_refresh(self._show_focused)  # That text may have become longer.

    def action_offer(self) -> None:
        """List what may stand in the field; ↓ and Enter take one."""
        row = self._row_of(self.screen.focused)
        if row is not None and isinstance(row.editor, Input):
            meant = self._meant(row.field.key)
            self._offer(row, candidates(row.editor.value, meant) or list(meant.whole))

    def _offer(self, row: FieldRow | None, found: list[str]) -> None:
        """Show candidates under a field; none where there are none."""
        offered = self._offered
        if not found and not offered.display:
            return  # As it is: a list that is cleared is laid out anew.
        offered.display = bool(found)
        offered.clear_options()
        if row is not None and found:
            self.move_child(offered, after=row)
            offered.add_options([Text(one, no_wrap=True) for one in found[:_MOST_OFFERED]])
            offered.highlighted = None

    def _take_offered(self, row: FieldRow) -> bool:
        """Put the chosen candidate into the field; whether there was one."""
        offered, editor = self._offered, row.editor
        chosen = offered.highlighted
        if not offered.display or chosen is None or not isinstance(editor, Input):
            return False
        text = str(offered.get_option_at_index(chosen).prompt)
        with self.prevent(Input.Changed):
            editor.value = text
        editor.action_end()
        self._offer(None, [])
        self._type(row.field, text)
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self._row_of(self.screen.focused)
        if row is not None:
            self._take_offered(row)

    # What is typed and chosen

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        row = self._row_of(event.input)
        if row is None:
            return
        field, text = row.field, event.value
        is_typed = event.input.has_focus and bool(text)
        self._offer(row, candidates(text, self._meant(field.key)) if is_typed else [])
        self._type(field, text)

    def _type(self, field: FormField, text: str) -> None:
        """Take a text once keys have paused; what adds something waits for Enter."""
        if field.key in _NEW or (text == field.text and field.key not in self._pending):
            return
        self._pending[field.key] = field.setting(text)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(DEBOUNCE_S, self.flush)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        row = self._row_of(event.input)
        if row is None or self._take_offered(row):
            return
        self.flush()
        self._offer(None, [])
        if row.field.key in _NEW:
            self._add(row, event.input)
        elif not event.value.strip():
            row.is_emptied = True
            self._emptied(row.field)
        self._settled()

    def on_select_changed(self, event: Select.Changed) -> None:
        event.stop()
        row = self._row_of(event.select)
        if row is None or event.value in (Select.NULL, row.field.text):
            return
        if event.value == OTHER:
            value: Any = row.field.text or Select.NULL
            with self.prevent(Select.Changed):
                event.select.value = value
            self._asked(row.field)
        else:
            self._edited(row.field.key, str(event.value))
            self._settled()

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        self._offer(None, [])
        row = self._row_of(event.widget)
        if row is not None and row.field.key in _NEW and isinstance(row.editor, Input):
            row.say(["not in the plan yet: Enter adds it"] if row.editor.value.strip() else [])
        self.flush()
        self._settled()

    def action_move(self, by: int) -> None:
        """Go to another field, or to another of the candidates under it."""
        offered = self._offered
        if offered.display and not (by < 0 and offered.highlighted is None):
            (offered.action_cursor_down if by > 0 else offered.action_cursor_up)()
            return
        rows = [row for row in self._rows if row.field.kind != BRANCH]
        focused = [i for i, row in enumerate(rows) if row.editor.has_focus]
        if focused:
            rows[(focused[0] + by) % len(rows)].editor.focus()
        else:
            self.focus_first()

    def action_remove(self) -> None:
        """Take the value away: a rule goes, another key has its default."""
        row = self._row_of(self.screen.focused)
        if row is not None and isinstance(row.editor, Input):
            row.editor.value = ""
            row.editor.post_message(Input.Submitted(row.editor, ""))

    def _row_of(self, editor: Widget | None) -> FieldRow | None:
        return next((row for row in self._rows if row.editor is editor), None)
