"""One structure of a sweep: a problem without its rules, and the rules by the values in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from libra_planner.costs.prices import network_price_usd_per_Bps, price_parts
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer.batch_structure import numbers
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.spec import bundled
from libra_planner.spec.document import Document, Key
from libra_planner.spec.groups import plan_spec
from libra_planner.spec.plan import build_plan
from libra_planner.spec.prices import load_price_book
from libra_planner.spec.rules import COST, Names, parse_rule, rule_names
from libra_planner.spec.system import fixed_cost
from libra_planner.sweep.template import (
    COST_MODEL_KEY,
    OBJECTIVE_KEY,
    PlanTemplate,
    Slot,
    Text,
    is_numeric,
)
from libra_planner.timing.expression import Array

FIXED_COST = "fixed_cost"
_MOST_PARSED = 50_000
"""Parsed rules that a case keeps."""

Outcome: TypeAlias = "ParsedLine | SpecError"


@dataclass(frozen=True)
class ParsedLine:
    """The rules of one line of ``constraints``.

    Parameters
    ----------
    rules : linear rules.
    limits : bounds on step time.
    """

    rules: tuple[Rule, ...]
    limits: tuple[StepTimeLimit, ...]

    @cached_property
    def coefficients(self) -> Array:
        """Shape (n_rules, n_dims); needs a rule at least."""
        return np.array([rule.coefficients for rule in self.rules], dtype=np.float64)

    @cached_property
    def bounds(self) -> Array:
        """Shape (n_rules,)."""
        return np.array([rule.bound for rule in self.rules], dtype=np.float64)

    @cached_property
    def limit_s(self) -> float:
        """The tightest bound on step time, infinite without one."""
        return min((limit.limit_s for limit in self.limits), default=np.inf)

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """Equal for lines that one batch can hold."""
        return (tuple((rule.sense, rule.unit) for rule in self.rules), bool(self.limits))


@dataclass
class Case:
    """The designs of a sweep that have one structure.

    Parameters
    ----------
    template : the plan with placeholders.
    values : of the axes that change the structure.
    base : the problem; its rules are left out, and its fixed cost if axes change it.
    lines : its ``constraints``, with placeholders.
    """

    template: PlanTemplate
    values: Mapping[str, Any]
    base: Problem
    lines: tuple[str, ...] = ()
    _parsed_lines: dict[tuple[object, ...], Outcome] = field(default_factory=dict)

    @classmethod
    def of(cls, template: PlanTemplate, values: Mapping[str, Any]) -> Case:
        """The case of some values.

        Raises
        ------
        SpecError
            For a plan that is wrong, be its rules what they may.
        """
        document = template.filled(values, lambda key, slot: not is_numeric(key, slot))
        lines = _taken_lines(document)
        if any(key[0] == FIXED_COST for key in template.slots):
            document.value[FIXED_COST] = None
        return cls(template, values, build_plan(document, template.beside), lines)

    def variant(self, values: Mapping[str, Any]) -> Case:
        """The case of other values of the light axes (``PlanTemplate.light``).

        Raises
        ------
        SpecError
            For values that are no objective or no price book; without their place.
        """
        base, slots = self.base, self.template.slots
        if OBJECTIVE_KEY in slots:
            base = replace(base, objective=_objective(slots[OBJECTIVE_KEY].filled(values)))
        if COST_MODEL_KEY in slots:
            name = slots[COST_MODEL_KEY].filled(values)
            book = load_price_book(bundled.resolve("cost-models", name, self.template.beside))
            price = network_price_usd_per_Bps(base.topology, book)
            parts = price_parts(base.topology, book)
            base = replace(base, price_usd_per_Bps=price, price_parts=parts)
        return Case(self.template, values, base, self.lines)

    @cached_property
    def time_numbers(self) -> list[float]:
        """Numbers of the step time's tree (``BatchProgram.time_numbers``)."""
        return numbers(self.base.step_time.merged)

    @property
    def is_batched(self) -> bool:
        """Whether a batch can solve its designs."""
        base = self.base
        return not (base.options or base.alternatives or base.group_objective != "weighted")

    @cached_property
    def fixed_cost_axes(self) -> frozenset[str]:
        """Axes in the fixed cost."""
        slots = self.template.slots.items()
        names = (slot.names for key, slot in slots if key[0] == FIXED_COST)
        return frozenset[str]().union(*names)

    def line_axes(self, i: int) -> frozenset[str]:
        """Axes that line i depends on: those in it, and those of the cost it bounds."""
        slot = self.template.slots.get(("constraints", i))
        own = slot.names if slot is not None else frozenset[str]()
        return own | self.fixed_cost_axes if self._bounds_cost(i) else own

    def _bounds_cost(self, i: int) -> bool:
        return COST in self.lines[i]

    def fixed_cost_usd(self, values: Mapping[str, Any]) -> float | SpecError:
        """Fixed cost of a design, or what is wrong with it."""
        if not self.fixed_cost_axes:
            return self.base.fixed_cost_usd
        return self._fixed_cost_usd(values)

    def _fixed_cost_usd(self, values: Mapping[str, Any]) -> float | SpecError:
        try:
            document = self.template.filled({**self.values, **values}, _is_no_rule)
            _taken_lines(document)
            spec = plan_spec(document)
            usd = fixed_cost(spec.fixed_cost, self.base.topology.n_npus, self.template.beside).usd
        except SpecError as error:
            return error
        return usd

    def line(self, i: int, values: Mapping[str, Any], fixed_cost_usd: float) -> Outcome:
        """Line i for some values of its axes, or what is wrong with it."""
        key = (i, fixed_cost_usd if self._bounds_cost(i) else 0.0, *sorted(values.items()))
        found = self._parsed_lines.get(key)
        if found is None:
            if len(self._parsed_lines) >= _MOST_PARSED:
                self._parsed_lines.clear()
            found = self._parsed_lines[key] = self._parsed(i, values, fixed_cost_usd)
        return found

    def _parsed(self, i: int, values: Mapping[str, Any], fixed_cost_usd: float) -> Outcome:
        slot = self.template.slots.get(("constraints", i))
        place = self.template.document.place(("constraints", i))
        path = f"constraints.{i}"
        try:
            text = self.lines[i]
            if isinstance(slot, Text):
                text = slot.filled({**self.values, **values})
            if not isinstance(text, str):
                raise SpecError(Fault(f"got {text!r}", "expected a rule"))
            rules = parse_rule(text, self._names(fixed_cost_usd), place)
        except SpecError as error:
            return error.located(place, path)
        linear = tuple(rule for rule in rules if isinstance(rule, Rule))
        limits = tuple(rule for rule in rules if isinstance(rule, StepTimeLimit))
        return ParsedLine(linear, limits)

    def _names(self, fixed_cost_usd: float) -> Names:
        if fixed_cost_usd == self._plain_names.fixed_cost_usd:
            return self._plain_names
        return replace(self._plain_names, fixed_cost_usd=fixed_cost_usd)

    @cached_property
    def _plain_names(self) -> Names:
        base = self.base
        return rule_names(base.topology, base.price_usd_per_Bps, base.fixed_cost_usd)


def _objective(value: Any) -> str:
    if value not in OBJECTIVES:
        raise SpecError(Fault(f"got {value!r}", "expected an objective"))
    return str(value)


def _is_no_rule(key: Key, slot: Slot) -> bool:
    return key[0] == FIXED_COST or not is_numeric(key, slot)


def _taken_lines(document: Document) -> tuple[str, ...]:
    """Lines of ``constraints``, taken out of a plan; what is not text stays, to be refused."""
    value = document.value.get("constraints")
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        return ()
    document.value["constraints"] = []
    return tuple(value)
