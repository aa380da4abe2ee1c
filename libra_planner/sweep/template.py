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
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from libra_planner.errors import Fault, SpecError
from libra_planner.spec.collector import FaultCollector
from libra_planner.spec.document import Document, Key
from libra_planner.sweep.axes import Axis
from libra_planner.sweep.expressions import Expression, parse_expression
from libra_planner.sweep.language import OTHER

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

    @property
    def names(self) -> frozenset[str]:
        """Axes that the plan depends on."""
        return frozenset[str]().union(*(slot.names for slot in self.slots.values()))

    @property
    def structural(self) -> frozenset[str]:
        """Axes that change more than the numbers of rules and the fixed cost."""
        deep = (slot.names for key, slot in self.slots.items() if not is_numeric(key, slot))
        return frozenset[str]().union(*deep)

    @property
    def light(self) -> frozenset[str]:
        """Structural axes that change the objective or the price book only."""
        deep = ((key, slot) for key, slot in self.slots.items() if not is_numeric(key, slot))
        heavy = (slot.names for key, slot in deep if key not in LIGHT_KEYS)
        return self.structural - frozenset[str]().union(*heavy)

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
                _replace(result.value, key, value)
        if faults.faults:
            raise SpecError(*faults.faults)
        return result


def is_numeric(key: Key, slot: Slot) -> bool:
    """Whether a slot changes numbers only: in a rule, or in the fixed cost."""
    rule = len(key) == 2 and key[0] == "constraints" and isinstance(slot, Text)
    return rule or key[0] == "fixed_cost"


def _replace(value: Any, key: Key, new: Any) -> None:
    for part in key[:-1]:
        value = value[part]
    value[key[-1]] = new


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
