"""A plan with placeholders: ``{name}`` or ``{expression}`` inside any of its texts.

A text that is one placeholder becomes the value itself; elsewhere the value is written into
the text.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.plan.models import GroupPlanSpec, PlanSpec
from libra_planner.reading import bundled
from libra_planner.reading.document import (
    Document,
    Key,
    apply_setting,
    dotted_key,
    read_document,
    shown,
    value_at,
)
from libra_planner.reading.models import FaultCollector
from libra_planner.sweeps.axes import Axis, SweepFile, cell
from libra_planner.sweeps.columns import OBJECTIVE
from libra_planner.sweeps.expressions import NUMBER, OTHER, TRUTH, Expression, parse_expression
from libra_planner.sweeps.store import Layout, RunDirectory, table_of

FILE_KEYS = ("workload", "cost_model", "catalogue")
"""Keys of a plan that may name a file."""

OBJECTIVE_KEY: Key = ("objective",)
COST_MODEL_KEY: Key = ("cost_model",)
LIGHT_KEYS = (OBJECTIVE_KEY, COST_MODEL_KEY)
"""Keys that leave the step time of a plan as it is."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Text:
    """Text with placeholders; ``parts`` alternate text and expressions."""

    parts: tuple[str | Expression, ...]

    @property
    def names(self) -> frozenset[str]:
        """Axes in it."""
        expressions = (part for part in self.parts if isinstance(part, Expression))
        return frozenset[str]().union(*(part.names for part in expressions))

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The text, or the value of its only part, for some values of the axes."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            return _plain(self.parts[0].value(values))
        texts = (p if isinstance(p, str) else _written(p.value(values)) for p in self.parts)
        return "".join(texts)


@dataclass(frozen=True)
class AxisValue:
    """The value of an axis as it is, be it a map or a list."""

    axis: str

    @property
    def names(self) -> frozenset[str]:
        """Axes in it."""
        return frozenset([self.axis])

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The value."""
        return copy.deepcopy(values[self.axis])


@dataclass(frozen=True)
class TiersOf:
    """The price tiers that belong to the topology of an axis, by number of dimensions."""

    axis: str
    by_n_dims: Mapping[int, list[str]]

    @property
    def names(self) -> frozenset[str]:
        """Axes in it."""
        return frozenset([self.axis])

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The tiers."""
        return list(self.by_n_dims[values[self.axis].count("_") + 1])


Slot: TypeAlias = Text | AxisValue | TiersOf


@dataclass(frozen=True)
class PlanTemplate:
    """A plan with slots for the values of axes.

    Parameters
    ----------
    document : the plan as written.
    beside : folder that paths in it are relative to.
    slots : what fills each place of it that depends on axes.
    """

    document: Document
    beside: Path
    slots: Mapping[Key, Slot] = field(default_factory=dict)

    def axes_of(self, which: Callable[[Key, Slot], bool]) -> frozenset[str]:
        """Axes in some of the slots."""
        some = (slot.names for key, slot in self.slots.items() if which(key, slot))
        return frozenset[str]().union(*some)

    @cached_property
    def structural(self) -> frozenset[str]:
        """Axes that change more than the numbers of rules and the fixed cost."""
        return self.axes_of(lambda key, slot: not is_numeric(key, slot))

    @cached_property
    def heavy(self) -> frozenset[str]:
        """Of these, axes that change more than the objective and the price book."""
        return self.axes_of(lambda key, slot: not (key in LIGHT_KEYS or is_numeric(key, slot)))

    def filled(
        self, values: Mapping[str, Any], which: Callable[[Key, Slot], bool] | None = None
    ) -> Document:
        """The plan of one design, or with some of its slots filled.

        Raises
        ------
        SpecError
            For placeholders without a value, such as a division by zero.
        """
        document = self.document
        quoted = document.quoted - self.slots.keys()  # Values, though their text had quotes.
        result = replace(document, value=copy.deepcopy(document.value), quoted=quoted)
        faults = FaultCollector(document)
        for key, slot in self.slots.items():
            if which is None or which(key, slot):
                value = faults.attempt(key, partial(slot.filled, values))
                value_at(result.value, key[:-1])[key[-1]] = value
        if faults.faults:
            raise SpecError(*faults.faults)
        return result


def is_numeric(key: Key, slot: Slot) -> bool:
    """Whether a slot changes numbers only: in a rule, or in the fixed cost."""
    rule = len(key) == 2 and key[0] == "constraints" and isinstance(slot, Text)
    return rule or key[0] == "fixed_cost"


def _plain(value: Any) -> Any:
    """A result of NumPy's logic as Python's own truth value."""
    return value.item() if hasattr(value, "item") else value


def _written(value: Any) -> str:
    value = _plain(value)
    return json.dumps(value) if isinstance(value, bool) else str(value)


def find_slots(
    document: Document, axes: Mapping[str, Axis], faults: FaultCollector
) -> dict[Key, Slot]:
    """All placeholders of a plan, by their place in it."""
    kinds = {name: axis.kind for name, axis in axes.items()}
    slots: dict[Key, Slot] = {}
    for key, text in _texts(document.value, ()):
        if "{" in text or "}" in text:
            slot = faults.attempt(key, partial(parse_text, text, kinds))
            if slot is not None:
                slots[key] = slot
    return slots


def _texts(value: Any, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for part, inner in items:
            yield from _texts(inner, (*key, part))


def parse_text(text: str, kinds: Mapping[str, str]) -> Slot:
    """Text with placeholders.

    Raises
    ------
    SpecError
        For braces that do not match, or expressions outside the language.

    Examples
    --------
    >>> rule = parse_text("total == {b} GB/s", {"b": "number"})
    >>> rule.filled({"b": 500}), parse_text("{b / 2}", {"b": "number"}).filled({"b": 500})
    ('total == 500 GB/s', 250)
    """
    split = _PLACEHOLDER.split(text)
    if any("{" in part or "}" in part for part in split[::2]):
        expected = "expected braces around the name of an axis, such as {tp}"
        raise SpecError(Fault(f"got {text!r}", expected))
    if len(split) == 3 and not split[0] and not split[2] and kinds.get(split[1]) == OTHER:
        return AxisValue(split[1])
    parts = [
        parse_expression(part, kinds) if i % 2 else part
        for i, part in enumerate(split)
        if part or i % 2
    ]
    whole = [part.text for part in parts if isinstance(part, Expression) and part.kind == OTHER]
    if whole:
        expected = "expected a number or text inside a text or expression"
        raise SpecError(Fault(f"got the axis {whole[0]!r} of maps or lists", expected))
    return Text(tuple(parts))


def named_files(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    """Places of a plan that may name a file, with what is there."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for part, inner in items:
            if part in FILE_KEYS and not isinstance(inner, dict | list):
                yield (*key, part), inner
            yield from named_files(inner, (*key, part))


TOPOLOGY: Key = ("fabric", "topology")
TIERS: Key = ("fabric", "tiers")

_PLAN_KEYS = tuple(dict.fromkeys([*PlanSpec.model_fields, *GroupPlanSpec.model_fields]))


def base_plan(document: Document, spec: SweepFile, beside: Path) -> tuple[Document, Path]:
    """The plan as a document of its own, and the folder of its paths."""
    if isinstance(spec.base, dict):
        return _part(document, ("base",)), beside
    if not isinstance(spec.base, str) or not spec.base:
        expected = "expected a plan, a path to one, or a bundled example's name"
        raise SpecError(Fault(f"got {shown(spec.base)}", expected))
    path = bundled.resolve("examples", spec.base, beside)
    return read_document(path), path.parent


def _part(document: Document, key: Key) -> Document:
    """A part of a document as a document, with its places."""
    n = len(key)
    places = {k[n:]: place for k, place in document.places.items() if k[:n] == key}
    key_places = {k[n:]: place for k, place in document.key_places.items() if k[:n] == key}
    quoted = {k[n:] for k in document.quoted if k[:n] == key}
    return Document(document.file, copy.deepcopy(document.at(key)), places, key_places, quoted)


def apply_set(document: Document, plan: Document, spec: SweepFile, faults: FaultCollector) -> None:
    """Put the values under ``set`` into the plan, with their places."""
    for dotted, value in spec.set_.items():
        key = faults.attempt(("set", dotted), partial(_opened, plan, dotted))
        if key is None:
            continue
        _assign(plan, key, copy.deepcopy(value))
        part = _part(document, ("set", dotted))
        plan.places |= {key + inner: place for inner, place in part.places.items()}
        plan.key_places |= {key + inner: place for inner, place in part.key_places.items()}
        plan.key_places[key] = document.key_place(("set", dotted))


def _opened(plan: Document, dotted: str) -> Key:
    """The key of a dotted path, with a value there to replace."""
    _check_plan_key(dotted)
    try:
        apply_setting(plan, f"{dotted}=null")
    except SpecError as error:
        raise SpecError(*(replace(fault, place=None) for fault in error.faults)) from None
    return dotted_key(dotted)


def _check_plan_key(dotted: str) -> None:
    first = dotted.split(".", maxsplit=1)[0]
    if first not in _PLAN_KEYS:
        raise SpecError(
            Fault(f"got {dotted!r}", "expected a key of a plan", closest(first, _PLAN_KEYS))
        )


def _assign(plan: Document, key: Key, value: Any) -> None:
    inner = plan.value
    for part in key[:-1]:
        inner = inner[part if isinstance(inner, list) else str(part)]
    inner[key[-1] if isinstance(inner, list) else str(key[-1])] = value


def plan_template(
    document: Document,
    plan: Document,
    beside: Path,
    axes: Mapping[str, Axis],
    faults: FaultCollector,
) -> PlanTemplate:
    """The plan with its slots: placeholders, and axes named like a key of it."""
    if not isinstance(plan.value, dict):
        raise SpecError(
            Fault(f"got {shown(plan.value)}", "expected a plan", "", "base", plan.place(()))
        )
    own = FaultCollector(plan, faults=faults.faults)
    used = find_slots(plan, axes, own)
    direct = dict(_direct_slots(document, plan, axes, used, faults))
    slots = {key: slot for key, slot in used.items() if not _below(key, direct)} | direct
    return PlanTemplate(plan, beside, slots)


def _below(key: Key, others: Mapping[Key, Slot]) -> bool:
    return any(key[: len(other)] == other for other in others)


def _direct_slots(
    document: Document,
    plan: Document,
    axes: Mapping[str, Axis],
    used: Mapping[Key, Slot],
    faults: FaultCollector,
) -> Iterator[tuple[Key, Slot]]:
    """Slots of the axes that are a key of the plan, and of topologies' tiers."""
    for name, axis in axes.items():
        at = _place_of(document, name)
        holders = [key for key, slot in used.items() if name in slot.names]
        dotted = _own_key(axis, holders)
        if dotted is not None:
            key = faults.attempt(at, partial(_axis_key, plan, dotted, name))
            if key is None:
                continue
            plan.places[key] = plan.key_places[key] = document.key_place(at)
            yield key, AxisValue(name)
        if axis.tiers:
            _opened(plan, ".".join(map(str, TIERS)))
            plan.places[TIERS] = document.place(at)
            yield TIERS, TiersOf(name, {d: list(tiers) for d, tiers in axis.tiers.items()})


def _own_key(axis: Axis, holders: list[Key]) -> str | None:
    """Dotted key that an axis sets; ``None`` where placeholders there, or only they, use it."""
    named = axis.name.split(".", maxsplit=1)[0] in _PLAN_KEYS
    if not named and not axis.is_topology:
        return None if holders else axis.name
    dotted = axis.name if named else ".".join(map(str, TOPOLOGY))
    key = dotted_key(dotted)
    return None if any(holder[: len(key)] == key for holder in holders) else dotted


def _place_of(document: Document, name: str) -> Key:
    """Where an axis is given: under ``axes``, or as the list of objectives."""
    own: Key = ("axes", name)
    listed: Key = (OBJECTIVE,)
    return own if own in document.places else listed


def _axis_key(plan: Document, dotted: str, name: str) -> Key:
    if dotted.split(".", maxsplit=1)[0] not in _PLAN_KEYS:
        expected = "expected a key of the plan, or a placeholder in it"
        fix = f"write '{{{name}}}' where it belongs, or name the axis like a key (parallelism.tp)"
        raise SpecError(Fault(f"got the axis {name!r}, which the plan does not use", expected, fix))
    return _opened(plan, dotted)


def design_plan(directory: RunDirectory, row: int) -> str:
    """The plan of a row as YAML text, with absolute paths, ready for ``optimize``.

    Raises
    ------
    SpecError
        For a row that the sweep does not have, or whose part is not there yet.
    """
    manifest = directory.manifest()
    axes = {
        name: Axis(name, tuple(values), {int(d): list(names) for d, names in tiers.items()})
        for name, values, tiers in manifest["spec"]["axes"]
    }
    values = _axis_values(directory, manifest, axes, row)
    plan = _template(manifest, axes).filled(values).value
    _make_absolute(plan, Path(manifest["beside"]))
    text = yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=1000)
    named = "".join(char if char.isprintable() else "?" for char in str(directory.path))
    return f"# Row {row} of the sweep in {named}\n{text}"


def _axis_values(
    directory: RunDirectory, manifest: Mapping[str, Any], axes: Mapping[str, Axis], row: int
) -> dict[str, Any]:
    """Values of the axes in a row, as the sweep file gave them."""
    n, size = manifest["n_designs"], manifest["spec"]["designs_per_part"]
    place = Place(f"{directory.path}: row {row}")
    if not 0 <= row < n:
        raise SpecError(Fault(f"got {row}", f"expected 0 to {n - 1}", "", "", place))
    path = directory.part_path(row // size)
    if not path.exists():
        got, fix = "got a row that is not there yet", "finish the sweep: run it again"
        raise SpecError(Fault(got, "", fix, "", place))
    fault = Layout.of(manifest).fault(path)
    if fault is not None:
        raise SpecError(fault)
    table = table_of(path, list(axes))
    (stored,) = table.slice(row % size, 1).to_pylist()
    try:
        return {name: _values_by_cell(axis)[stored[name]] for name, axis in axes.items()}
    except KeyError as error:
        got = f"got the value {error.args[0]!r}"
        expected = "expected one that the sweep's manifest has"
        raise SpecError(Fault(got, expected, "run the sweep again", "", place)) from None


def _values_by_cell(axis: Axis) -> dict[Any, Any]:
    """What a column holds to the value that the sweep file gave."""
    plain = axis.kind in (NUMBER, TRUTH)
    return {value if plain else cell(value): value for value in axis.values}


def _template(manifest: Mapping[str, Any], axes: Mapping[str, Axis]) -> PlanTemplate:
    document = Document(manifest["source"], manifest["spec"]["base"])
    slots = dict(_slots(document, manifest["spec"]["slots"], axes))
    return PlanTemplate(document, Path(manifest["beside"]), slots)


def _slots(
    document: Document, recorded: list[Any], axes: Mapping[str, Axis]
) -> Iterator[tuple[Key, Slot]]:
    kinds = {name: axis.kind for name, axis in axes.items()}
    for key, kind, axis in recorded:
        if kind == "axis":
            yield tuple(key), AxisValue(axis)
        elif kind == "tiers":
            tiers = {n_dims: list(names) for n_dims, names in axes[axis].tiers.items()}
            yield tuple(key), TiersOf(axis, tiers)
        else:
            yield tuple(key), parse_text(document.at(key), kinds)


def _make_absolute(plan: Any, beside: Path) -> None:
    """Let paths hold wherever the plan is put."""
    for key, name in list(named_files(plan, ())):
        if isinstance(name, str) and bundled.is_path(name):
            value_at(plan, key[:-1])[key[-1]] = str((beside / name).resolve())
