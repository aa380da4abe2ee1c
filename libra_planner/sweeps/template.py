"""A plan with placeholders: ``{name}`` or ``{expression}`` inside any of its texts.

A text that is one placeholder becomes the value itself; elsewhere the value is written into
the text.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any, TypeAlias

from libra_planner.errors import Fault, Place, SpecError, close_names, closest, refuse, shown
from libra_planner.plan.models import GroupPlanSpec, PlanSpec, is_auto
from libra_planner.reading import bundled
from libra_planner.reading.document import (
    Document,
    Key,
    dotted_key,
    leaves,
    put_at,
    read_document,
)
from libra_planner.reading.kinds import refuse_other_kind
from libra_planner.reading.models import FaultCollector
from libra_planner.reading.named_files import movable, plan_text
from libra_planner.sweeps.axes import Axis, SweepFile, cell, n_dims
from libra_planner.sweeps.columns import OBJECTIVE
from libra_planner.sweeps.expressions import NUMBER, OTHER, TRUTH, Expression, parse_expression
from libra_planner.sweeps.store import Layout, RunDirectory, table_of

OBJECTIVE_KEY: Key = ("objective",)
PARALLELISM_KEY: Key = ("parallelism",)
COST_MODEL_KEY: Key = ("cost_model",)
WORK_KEYS = ("workload", "group", "sequence_tokens")
"""Keys of a plan that say what is trained."""
PRICE_KEYS = ("cost_model", "fixed_cost", "prices")
"""Keys that say what the plan's own cost is."""
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
        found = (p if isinstance(p, str) else _plain(p.value(values)) for p in self.parts)
        return "".join(json.dumps(one) if isinstance(one, bool) else str(one) for one in found)


@dataclass(frozen=True)
class AxisValue:
    """The value of an axis as it is, be it a map or a list, or the price tiers that belong to it.

    Parameters
    ----------
    axis : its name.
    tiers : of an axis of topologies, by number of dimensions; ``None`` for the value.
    """

    axis: str
    tiers: Mapping[int, Sequence[str]] | None = None

    @property
    def names(self) -> frozenset[str]:
        """Axes in it."""
        return frozenset([self.axis])

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The value, or the tiers."""
        value = values[self.axis]
        return copy.deepcopy(value) if self.tiers is None else list(self.tiers[n_dims(value)])


Slot: TypeAlias = Text | AxisValue


def slot_values(slot: Slot, axes: Iterable[Axis]) -> Iterator[Any]:
    """What a slot becomes, at every combination of the values of its axes."""
    own = sorted((axis for axis in axes if axis.name in slot.names), key=lambda axis: axis.name)
    for values in product(*(axis.values for axis in own)):
        yield slot.filled({axis.name: one for axis, one in zip(own, values, strict=True)})


def most_dims(template: PlanTemplate, axes: Iterable[Axis]) -> int:
    """Most dimensions that a topology has in any design."""
    above = [at for at in template.slots if TOPOLOGY[: len(at)] == at]
    if not above:
        return _n_dims(template.document.value.get("fabric"))
    (at,) = above
    values = slot_values(template.slots[at], axes)
    return max(_n_dims({"topology": one} if at == TOPOLOGY else one) for one in values)


def names_at(spec: Mapping[str, Any], keys: Sequence[str]) -> set[str]:
    """Names of axes that values at some keys of a plan are written with.

    Parameters
    ----------
    spec : of a manifest, with ``base`` and ``slots``.
    keys : the first ones, such as :data:`WORK_KEYS`.

    Examples
    --------
    >>> spec = {"base": {"workload": "{model}-8b"}, "slots": [[["workload"], "text", None]]}
    >>> names_at(spec, WORK_KEYS), names_at(spec, PRICE_KEYS)
    ({'model'}, set())
    """
    found: set[str] = set()
    for key, _, axis in spec["slots"]:
        if key and key[0] in keys:
            text = "" if axis else str(reduce(getitem, key, spec["base"]))
            inner = " ".join(re.findall(r"\{[^}]*\}", text))
            found |= {axis} if axis else set(re.findall(r"[A-Za-z_][\w.]*", inner))
    return found


def _n_dims(fabric: Any) -> int:
    notation = fabric.get("topology") if isinstance(fabric, dict) else None
    return n_dims(notation) if isinstance(notation, str) else 1


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

    def may_be_open(self, axes: Iterable[Axis]) -> bool:
        """Whether any design may leave its parallelism open, to be searched."""
        slot = self.slots.get(PARALLELISM_KEY)
        if slot is None:
            return is_auto(self.document.value.get("parallelism"))
        return any(map(is_auto, slot_values(slot, axes)))

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
                value = faults.attempt(key, slot.filled, values)
                result.at(key[:-1])[key[-1]] = value
        refuse(faults.faults)
        return result


def is_numeric(key: Key, slot: Slot) -> bool:
    """Whether a slot changes numbers only: in a rule, or in the fixed cost."""
    rule = len(key) == 2 and key[0] == "constraints" and isinstance(slot, Text)
    return rule or key[0] == "fixed_cost"


def _plain(value: Any) -> Any:
    """A result of NumPy's logic as Python's own truth value."""
    return value.item() if hasattr(value, "item") else value


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
    pieces = [(i % 2, piece) for i, piece in enumerate(split) if piece or i % 2]
    parts = [parse_expression(piece, kinds) if inside else piece for inside, piece in pieces]
    whole = [part.text for part in parts if isinstance(part, Expression) and part.kind == OTHER]
    if whole:
        got = f"got the axis {whole[0]!r} inside a text or expression"
        expected = "expected one whose values are all numbers, or all text"
        unit = "write its values without units: a unit stands once, behind the braces"
        raise SpecError(Fault(got, expected, f"{unit}, such as {{{whole[0]}}} GB/s"))
    return Text(tuple(parts))


TOPOLOGY: Key = ("fabric", "topology")
MAP = "sweep"
"""How messages call a sweep that is a map: its source, as no file says it."""

TIERS: Key = ("fabric", "tiers")

_PLAN_KEYS = tuple(dict.fromkeys([*PlanSpec.model_fields, *GroupPlanSpec.model_fields]))


def base_plan(document: Document, spec: SweepFile, beside: Path) -> tuple[Document, Path]:
    """The plan as a document of its own, and the folder of its paths.

    A bundled plan has none: those that a sweep puts into it are beside the sweep.
    """
    if isinstance(spec.base, dict):
        return _part(document, ("base",)), beside
    if not isinstance(spec.base, str) or not spec.base:
        expected = "expected a plan, a path to one, or a bundled example's name"
        raise SpecError(Fault(f"got {shown(spec.base)}", expected))
    path = bundled.resolve("examples", spec.base, beside)
    document = read_document(path)
    refuse_other_kind(PlanSpec, document)
    return document, path.parent if bundled.is_path(spec.base) else beside


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
        at: Key = ("set", dotted)
        key = faults.attempt(at, _opened, plan, dotted, document.place(at), copy.deepcopy(value))
        if key is None:
            continue
        part = _part(document, at)
        plan.places[key] = document.place(at)
        plan.places |= {key + inner: place for inner, place in part.places.items()}
        plan.key_places |= {key + inner: place for inner, place in part.key_places.items()}
        plan.key_places[key] = document.key_place(at)


def _opened(plan: Document, dotted: str, place: Place, value: Any = None) -> Key:
    """The key of a dotted path of the plan, where a value stands now."""
    first, key = _first(dotted), dotted_key(dotted)
    if first not in _PLAN_KEYS:
        fix = closest(first, _PLAN_KEYS)
        raise SpecError(Fault(f"got {dotted!r}", "expected a key of a plan", fix))
    try:
        put_at(plan, key, value, place)
    except SpecError as error:
        raise SpecError(*(replace(fault, place=None) for fault in error.faults)) from None
    return key


def _first(dotted: str) -> str:
    return dotted.split(".", maxsplit=1)[0]


def plan_template(
    document: Document,
    plan: Document,
    beside: Path,
    axes: Mapping[str, Axis],
    faults: FaultCollector,
) -> PlanTemplate:
    """The plan with its slots: placeholders, and axes named like a key of it."""
    if not isinstance(plan.value, dict):
        got = f"got {shown(plan.value)}"
        raise SpecError(Fault(got, "expected a plan", "", "base", plan.place(())))
    own = FaultCollector(plan, faults=faults.faults)
    kinds = {name: axis.kind for name, axis in axes.items()}
    used: dict[Key, Slot] = {}
    wrong = ""
    for key, text in leaves(plan.value):
        if isinstance(text, str) and ("{" in text or "}" in text):
            slot = own.attempt(key, parse_text, text, kinds)
            used |= {key: slot} if slot is not None else {}
            wrong += "" if slot is not None else text
    words = re.findall(r"[\w.]+", wrong)
    told = {name: axis for name, axis in axes.items() if name not in words}
    told = {name: axis for name, axis in told.items() if not close_names(name, words)}
    direct = dict(_direct_slots(document, plan, told, used, faults))
    below = {key for key in used for other in direct if key[: len(other)] == other}
    slots = {key: slot for key, slot in used.items() if key not in below}
    return PlanTemplate(plan, beside, slots | direct)


def _direct_slots(
    document: Document,
    plan: Document,
    axes: Mapping[str, Axis],
    used: Mapping[Key, Slot],
    faults: FaultCollector,
) -> Iterator[tuple[Key, Slot]]:
    """Slots of the axes that are a key of the plan, and of topologies' tiers."""
    for name, axis in axes.items():
        at: Key = ("axes", name) if name in document.value["axes"] else (OBJECTIVE,)
        dotted = _own_key(axis, [key for key, slot in used.items() if name in slot.names])
        if dotted is not None and _first(dotted) not in _PLAN_KEYS:
            got = f"got the axis {name!r}, which the plan does not use"
            expected = "expected a key of the plan, or a placeholder in it"
            fix = f"write '{{{name}}}' where it belongs, or name the axis like a key"
            faults.note(Fault(got, expected, f"{fix} (parallelism.tp)"), at)
        elif dotted is not None:
            key = faults.attempt(at, _opened, plan, dotted, document.key_place(at))
            if key is None:
                continue
            plan.places[key] = plan.key_places[key] = document.key_place(at)
            yield key, AxisValue(name)
        if axis.tiers:
            place = document.place(at)
            plan.places[_opened(plan, ".".join(map(str, TIERS)), place)] = place
            yield TIERS, AxisValue(name, axis.tiers)


def _own_key(axis: Axis, holders: list[Key]) -> str | None:
    """Dotted key that an axis sets; ``None`` where placeholders there, or only they, use it."""
    is_named = _first(axis.name) in _PLAN_KEYS
    if not is_named and not axis.is_topology:
        return None if holders else axis.name
    dotted = axis.name if is_named else ".".join(map(str, TOPOLOGY))
    key = dotted_key(dotted)
    return None if any(holder[: len(key)] == key for holder in holders) else dotted


def design_plan(directory: RunDirectory, row: int) -> str:
    """The plan of a row as YAML text, with absolute paths, ready for ``optimize``.

    Raises
    ------
    SpecError
        For a row that the sweep does not have, or whose part is not there yet.
    """
    document, beside = design_document(directory, row)
    document, said = _with_strategy(document, directory, row)
    text = plan_text(document.value, beside)  # Holds wherever the plan is put.
    named = "".join(char if char.isprintable() else "?" for char in str(directory.path))
    return f"# Row {row} of the sweep in {named}{said}\n{text}"


def design_value(directory: RunDirectory, row: int) -> Any:
    """The same plan as a map; errors as :func:`design_plan`."""
    document, beside = design_document(directory, row)
    return movable(_with_strategy(document, directory, row)[0].value, beside)


def _with_strategy(document: Document, directory: RunDirectory, row: int) -> tuple[Document, str]:
    """A row's plan with the strategy that was found on its links, and words that say so."""
    manifest, names = directory.manifest(), ["n_on_links", "parallelism_found"]
    if not set(names) <= set(manifest["schema"]):
        return document, ""
    n_per_part = manifest["spec"]["designs_per_part"]
    table = table_of(directory.part_path(row // n_per_part), names)
    (stored,) = table.slice(row % n_per_part, 1).to_pylist()
    if stored["n_on_links"] is None:
        return document, ""
    own = document.value | {"parallelism": json.loads(stored["parallelism_found"])}
    said = f"\n# parallelism: the best on its links of {stored['n_on_links']} strategies"
    return replace(document, value=own), said


def design_document(directory: RunDirectory, row: int) -> tuple[Document, Path]:
    """The plan of a row, and the folder of its paths; errors as :func:`design_plan`."""
    manifest = directory.manifest()
    directory.refuse_changed_files(manifest)
    axes = {
        name: Axis(name, tuple(values), {int(d): list(names) for d, names in tiers.items()})
        for name, values, tiers in manifest["spec"]["axes"]
    }
    beside = Path(manifest["beside"])
    template = PlanTemplate(Document(manifest["source"], manifest["spec"]["base"]), beside)
    kinds = {name: axis.kind for name, axis in axes.items()}
    slots: dict[Key, Slot] = {}
    for key, kind, axis in manifest["spec"]["slots"]:
        if kind == "text":
            slots[tuple(key)] = parse_text(template.document.at(key), kinds)
        else:
            slots[tuple(key)] = AxisValue(axis, axes[axis].tiers if kind == "tiers" else None)
    values = _axis_values(directory, manifest, axes, row)
    return replace(template, slots=slots).filled(values), beside


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
    found = {}
    for name, axis in axes.items():
        plain = axis.kind in (NUMBER, TRUTH)
        by_cell = {value if plain else cell(value): value for value in axis.values}
        if stored[name] not in by_cell:
            got = f"got the value {stored[name]!r}"
            expected = "expected one that the sweep's manifest has"
            raise SpecError(Fault(got, expected, "run the sweep again", "", place))
        found[name] = by_cell[stored[name]]
    return found
