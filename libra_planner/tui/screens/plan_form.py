"""The plan as a form: a row per value, its line in the file, what is wrong under it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantBlur
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input, Select, Static

from libra_planner.errors import Fault
from libra_planner.reading.document import dotted_key, value_at

if TYPE_CHECKING:
    from libra_planner.reading.document import Document

_FIELDS = {
    "workload": ("workload", "always"),
    "workloads": ("workloads", ""),
    "group_objective": ("group aim", ""),
    "fabric.topology": ("topology", "always"),
    "fabric.tiers": ("tiers", "always"),
    "parallelism": ("parallel", ""),
    "parallelism.tp": ("tp", "always"),
    "parallelism.dp": ("dp", "always"),
    "global_batch": ("batch", "always, optional"),
    "npu": ("npu", "optional"),
    "cost_model": ("prices", "always"),
    "prices": ("priced by", ""),
    "fixed_cost": ("fixed cost", "optional"),
    "training_loop": ("loop", "always"),
    "contention": ("contention", ""),
    "fidelity": ("fidelity", ""),
    "fabric.latency_ns": ("latency ns", "optional"),
    "fabric.link_options": ("catalogue", "optional"),
    "fabric.bill_options": ("to buy", "optional"),
    "fabric.realization": ("links", "optional"),
    "objective": ("objective", "always"),
}
"""Keys in the order of the form, other keys of a plan follow: the label, whether it is shown even
where the plan does not say it, and whether an empty field takes the value away."""

OPTIONAL = frozenset(key for key, (_, marks) in _FIELDS.items() if "optional" in marks)
"""Values that an empty field takes away."""


@dataclass(frozen=True)
class FormField:
    """One editable value.

    Parameters
    ----------
    key : dotted path, as ``--set`` takes it.
    label : for people.
    text : the value as one types it; empty where the plan says nothing.
    line : in the file; ``None`` for a value that was edited or is not there.
    choices : known names; empty for free text.
    edited : whether it differs from the file.
    is_list : whether it is names, typed with commas between them.
    words : texts that may be meant by what is typed.
    """

    key: str
    label: str
    text: str
    line: int | None
    choices: tuple[str, ...] = ()
    edited: bool = False
    is_list: bool = False
    words: tuple[str, ...] = ()

    def setting(self, typed: str) -> str:
        """What ``--set`` takes of a text: of a list, names without brackets.

        >>> FormField("k", "k", "", None, is_list=True).setting("node, pod")
        '["node", "pod"]'
        """
        is_names = self.is_list and typed.strip() and not typed.lstrip().startswith("[")
        return json.dumps([one.strip() for one in typed.split(",")]) if is_names else typed


def form_fields(document: Document, settings: tuple[str, ...]) -> list[FormField]:
    """Fields of a plan from top to bottom; its rules last, one each."""
    value = document.value if isinstance(document.value, dict) else {}
    edited = {setting.partition("=")[0].strip() for setting in settings}
    found = []
    for key, label in _labels(value):
        found_value = _at(value, key)
        place, text = document.places.get(dotted_key(key)), value_text(found_value)
        line = place.line if place else None
        touched = any(key == one or key.startswith(f"{one}.") for one in edited)
        is_list = key == _TIERS_KEY or _is_names(found_value)
        choices, words = _choices(key, text), _words(key, value)
        found.append(FormField(key, label, text, line, choices, touched, is_list, words))
    return found


def _labels(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys and labels in the order of the form."""
    hidden, rules = _hidden_keys(value), value.get("constraints")
    for key, (label, marks) in _FIELDS.items():
        if key not in hidden and ("always" in marks or _at(value, key) is not None):
            yield key, label
    known = {key.partition(".")[0] for key in _FIELDS} | {"constraints"}
    yield from ((key, key.replace("_", " ")) for key in value if key not in known)
    if isinstance(rules, list):
        yield from ((f"constraints.{i}", f"rule {i + 1}") for i in range(len(rules)))
    elif rules is not None:
        yield "constraints", "rules"


def _hidden_keys(value: dict[str, Any]) -> set[str]:
    """Fields of another form of plan: of a group, of group sizes per phase, of degrees."""
    degrees, is_group = value.get("parallelism"), "workloads" in value
    hidden = {"workload", "global_batch"} if is_group else set()
    by_degree = isinstance(degrees, dict) and not set(degrees) - {"tp", "dp"}
    if by_degree or (degrees is None and not is_group):
        return hidden | {"parallelism"}
    return hidden | {"parallelism.tp", "parallelism.dp"}


def _at(value: Any, key: str) -> Any:
    """The value of a key; nothing where there is none."""
    try:
        return value_at(value, dotted_key(key))
    except (LookupError, TypeError):
        return None


def value_text(value: Any) -> str:
    """A value as one types it: names plain, with commas between them, maps in one line.

    >>> value_text("RI(4)"), value_text(8192), value_text(["node", "pod"]), value_text(None)
    ('RI(4)', '8192', 'node, pod', '')
    """
    if value is None:
        return ""
    if _is_names(value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_names(value: Any) -> bool:
    """Whether it is a list of names that commas can stand between.

    >>> _is_names(["node", "pod"]), _is_names(["a, b"]), _is_names([]), _is_names([1])
    (True, False, False, False)
    """
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(x, str) and x.strip() == x != "" and not set(x) & {",", "["} for x in value
    )


def _words(key: str, plan: dict[str, Any]) -> tuple[str, ...]:
    """What may be meant by what is typed into a field: of rules those of the plan's tiers too."""
    if not key.startswith("constraints."):
        return {"fabric.topology": _TOPOLOGIES, _TIERS_KEY: _TIERS}.get(key, ())
    tiers = _at(plan, _TIERS_KEY)
    names = tiers if _is_names(tiers) else []
    tapers = (
        [f"taper({one}) <= 4" for one in names] if "[" in str(_at(plan, "fabric.topology")) else []
    )
    return (*_RULES, *tapers, *(f"{one} <= 100 GB/s" for one in names))


def completion(text: str, words: tuple[str, ...], blocks: tuple[str, ...] = ()) -> str | None:
    """The first of the words that begins as the text does, or the block that its end begins.

    >>> completion("taper(l", ("taper(leaf) <= 4",)), completion("SW(8)_[s", (), ("RI(4)", "SW(8)"))
    ('taper(leaf) <= 4', 'SW(8)_[SW(8)')
    """
    whole = [word for word in words if text and word.casefold().startswith(text.casefold())]
    if whole:
        return whole[0]
    part = text.rpartition("_")[2].removeprefix("[")
    meant = [one for one in blocks if part and one.casefold().startswith(part.casefold())]
    return text.removesuffix(part) + meant[0] if meant else None


def _choices(key: str, text: str) -> tuple[str, ...]:
    """Known names of a key, and what the plan says if it is another one."""
    from libra_planner.reading import bundled

    kinds = {"workload": "workloads", "cost_model": "cost-models"}
    known = tuple(bundled.names(kinds[key])) if key in kinds else _literals(key)
    return known if not known or text in known or not text else (*known, text)


def _literals(key: str) -> tuple[str, ...]:
    """What the plan's format lets a key be; nothing for free text."""
    from libra_planner.plan.models import GroupPlanSpec, PlanSpec

    known = GroupPlanSpec.model_fields | PlanSpec.model_fields
    kind: Any = known[key].annotation if key in known else None
    if kind is bool:
        return ("true", "false")
    while get_args(kind) and get_origin(kind) is not Literal:  # The first, or what is annotated.
        kind = get_args(kind)[0]
    return get_args(kind)


def faults_by_key(faults: tuple[Fault, ...], keys: list[str]) -> dict[str, list[Fault]]:
    """Faults under the field they are about; those of no field under the empty key."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        # Its own path in the plan, or that of the edit it comes from.
        path = fault.path or (fault.place.file if fault.place else "").partition(": --set ")[2]
        owners = [k for k in keys if path == k or path.startswith((f"{k}.", f"{k} "))]
        inside = [k for k in keys if path and k.startswith(f"{path}.")]
        key = max(owners, key=len, default=(*inside, "")[0])
        found.setdefault(key, []).append(fault)
    return found


def fault_text(fault: Fault) -> str:
    """A fault under its field: without the path that the field already says."""
    text = ", ".join(part for part in (fault.got, fault.expected) if part)
    text = f"{text}; {fault.fix}" if fault.fix else text
    line = fault.place.line if fault.place else None
    return f"line {line}: {text}" if line else text


DEBOUNCE_S = 0.15
"""Pause in typing after which a value is taken."""

OTHER = "\0other"
"""The choice that asks for a value of one's own."""

_ASKED = ("workload", "cost_model", "training_loop")
"""Choices beside which a path or an expression may stand."""


_RULES = (
    "total == 500 GB/s", "dim1 >= dim2", "cost <= 20 M$", "step_time <= 900 ms",
    "memory <= 76 GB",
)  # fmt: skip
_TOPOLOGIES = ("RI(4)_FC(8)_RI(4)_SW(32)", "SW(8)_[SW(32)_SW(8)]", "SW(72)_SW(16)", "FC(8)_SW(32)")
_BLOCKS = ("RI(4)", "FC(8)", "SW(8)")
_TIERS = ("chiplet, package, node, pod", "node, leaf, spine", "node, leaf")
_TIERS_KEY = "fabric.tiers"


class Completion(Suggester):
    """What the right arrow completes while a topology, tiers or a rule is typed."""

    def __init__(self, field: FormField) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._words = field.words
        self._blocks = _BLOCKS if field.key == "fabric.topology" else ()

    async def get_suggestion(self, value: str) -> str | None:
        return completion(value, self._words, self._blocks)


class FieldRow(Vertical):
    """One value: label, line, input, faults."""

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self._faults: list[str] = []
        self.editor: Input | Select[str] = (
            Select(self._options(), value=self._value, compact=True, prompt="default")
            if field.choices
            else Input(field.text, compact=True, select_on_focus=False, suggester=Completion(field))
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
        editor = self.editor
        with self.prevent(Input.Changed, Select.Changed):
            if isinstance(editor, Select):
                if before.choices != field.choices:
                    editor.set_options(self._options())
                if editor.value != self._value:
                    editor.value = self._value
            elif editor.value != field.text and not editor.has_focus:
                editor.value = field.text


class PlanForm(VerticalScroll, can_focus=False):
    """All values of the plan.

    Parameters
    ----------
    edited : called with a key and its new text.
    settled : called when a field is left, so that the next edit is a step of its own.
    asked : called with a field whose value is to be typed instead of chosen.
    emptied : called with a field that was left empty by Enter.
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
        self._edited, self._settled, self._asked, self._emptied = edited, settled, asked, emptied
        self._pending: dict[str, str] = {}
        self._timer: Timer | None = None
        self._rows: list[FieldRow] = []

    def show(
        self, document: Document, settings: tuple[str, ...], faults: tuple[Fault, ...]
    ) -> None:
        """Show the plan's values, and what is wrong under each."""
        fields = form_fields(document, settings)
        by_key = faults_by_key(faults, [field.key for field in fields])
        before = [(row.field.key, bool(row.field.choices)) for row in self._rows]
        if before != [(field.key, bool(field.choices)) for field in fields]:
            self.query(FieldRow).remove()
            self._rows = [FieldRow(field) for field in fields]
            self.mount(*self._rows)
        for row, field in zip(self._rows, fields, strict=True):
            texts = [fault_text(fault) for fault in by_key.get(field.key, ())]
            show = partial(self._show_row, row, field, texts)
            if row.is_mounted:
                show()
            else:
                self.call_after_refresh(show)

    def _show_row(self, row: FieldRow, field: FormField, faults: list[str]) -> None:
        if row.is_attached and row.query(".label"):
            row.show(field, faults)

    def focus_first(self) -> None:
        """Focus the first field that is wrong, else the first."""
        wrong = [row for row in self._rows if row.has_class("wrong")]
        for row in [*wrong, *self._rows][:1]:
            row.editor.focus()

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
        self._pending[field.key] = field.setting(event.value)
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
            value: Any = field.text or Select.NULL
            with self.prevent(Select.Changed):
                event.select.value = value
            self._asked(field)
        else:
            self._edited(field.key, str(event.value))
            self._settled()

    def on_descendant_blur(self, _event: DescendantBlur) -> None:
        self.flush()
        self._settled()

    def action_move(self, by: int) -> None:
        """Go to another field."""
        editors = [row.editor for row in self._rows]
        focused = [i for i, editor in enumerate(editors) if editor.has_focus]
        if focused:
            editors[(focused[0] + by) % len(editors)].focus()
        else:
            self.focus_first()

    def _field_of(self, editor: Any) -> FormField | None:
        return next((row.field for row in self._rows if row.editor is editor), None)
