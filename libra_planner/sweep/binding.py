"""The axes of a sweep bound to its base plan: values under ``set``, placeholders, keys."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.spec import bundled
from libra_planner.spec.collector import FaultCollector
from libra_planner.spec.document import Document, Key, read_document, shown
from libra_planner.spec.group_models import GroupPlanSpec
from libra_planner.spec.models import PlanSpec
from libra_planner.spec.settings import apply_setting, dotted_key
from libra_planner.sweep.axes import Axis
from libra_planner.sweep.models import SweepFile
from libra_planner.sweep.template import AxisValue, PlanTemplate, Slot, TiersOf, find_slots

OBJECTIVE = "objective"
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
    value = document.value
    for part in key:
        value = value[part]
    n = len(key)
    places = {k[n:]: place for k, place in document.places.items() if k[:n] == key}
    key_places = {k[n:]: place for k, place in document.key_places.items() if k[:n] == key}
    quoted = {k[n:] for k in document.quoted if k[:n] == key}
    return Document(document.file, copy.deepcopy(value), places, key_places, quoted)


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
