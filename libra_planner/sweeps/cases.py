"""One structure of a sweep: a problem without its rules, and the rules by the values in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.costs.prices import network_price_usd_per_Bps, price_parts
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer.programs.plans import BatchProgram, structure_key
from libra_planner.plan.prices import fixed_cost, load_price_book
from libra_planner.plan.problem import build_plan
from libra_planner.plan.training import plan_spec
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.quantities import COST
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key
from libra_planner.reading.rules import Names, parse_rule, rule_names
from libra_planner.step.expression import Array
from libra_planner.sweeps.spec import Chunk
from libra_planner.sweeps.template import (
    COST_MODEL_KEY,
    OBJECTIVE_KEY,
    PlanTemplate,
    Slot,
    Text,
    is_numeric,
)

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
        lines = _pop_lines(document)
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
            prices = replace(base.prices, usd_per_Bps=tuple(price.tolist()), parts=parts)
            base = replace(base, prices=prices)
        return Case(self.template, values, base, self.lines)

    @cached_property
    def time_numbers(self) -> list[float]:
        """Numbers of the step time's tree (``BatchProgram.time_numbers``)."""
        return self.base.step_time.numbers

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
        return COST.name in self.lines[i]

    def fixed_cost_usd(self, values: Mapping[str, Any]) -> float | SpecError:
        """Fixed cost of a design, or what is wrong with it."""
        if not self.fixed_cost_axes:
            return self.base.fixed_cost_usd
        return self._fixed_cost_usd(values)

    def _fixed_cost_usd(self, values: Mapping[str, Any]) -> float | SpecError:
        try:
            document = self.template.filled({**self.values, **values}, _is_no_rule)
            _pop_lines(document)
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
        same = fixed_cost_usd == self.base.fixed_cost_usd
        return self._plain_names if same else self._plain_names.with_fixed_cost(fixed_cost_usd)

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


def _pop_lines(document: Document) -> tuple[str, ...]:
    """Lines of ``constraints``, taken out of a plan; what is not text stays, to be refused."""
    value = document.value.get("constraints")
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        return ()
    document.value["constraints"] = []
    return tuple(value)


Rows = NDArray[np.intp]

_ARRAYS = tuple(field.name for field in fields(BatchProgram))[1:]


@dataclass(frozen=True)
class Piece:
    """Designs of one case whose rules have one shape.

    Parameters
    ----------
    case : their case.
    rows : which designs of the chunk, shape (n,).
    program : them as a batch.
    lines : parsed lines of constraints; line i of design j is ``lines[i][line_codes[i, j]]``.
    line_codes : shape (n_lines, n).
    """

    case: Case
    rows: Rows
    program: BatchProgram
    lines: tuple[tuple[ParsedLine, ...], ...]
    line_codes: Rows

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for pieces that one batch can hold."""
        template = self.program.template
        units = tuple(rule.unit for rule in template.rules)
        return (*structure_key(template), units)

    def rule_texts(self, i: int) -> list[str]:
        """The rules of the piece's design i as text, in the order of its program's."""
        found = (line[code] for line, code in zip(self.lines, self.line_codes[:, i], strict=True))
        return [rule.text for line in found for rule in (*line.rules, *line.limits)]


def rows_by_code(codes: NDArray[np.intp]) -> list[Rows]:
    """Designs by their column of codes, shape (n_codes, n_designs), in order.

    >>> [rows.tolist() for rows in rows_by_code(np.array([[0, 1, 0], [2, 2, 2]]))]
    [[0, 2], [1]]
    """
    if not len(codes) or (codes == codes[:, :1]).all():
        return [np.arange(codes.shape[1])]
    _, inverse = np.unique(codes, axis=1, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


def pieces(case: Case, chunk: Chunk, rows: Rows, wrong: NDArray[np.object_]) -> Iterator[Piece]:
    """The designs ``rows`` of a chunk as batches; what is wrong goes into ``wrong``, shape (n,)."""
    fixed_usd = np.full(chunk.n, case.base.fixed_cost_usd)
    for same in _by_values(chunk, rows, case.fixed_cost_axes):
        usd = case.fixed_cost_usd(_values(chunk, case.fixed_cost_axes, same[0]))
        if isinstance(usd, SpecError):
            wrong[same] = str(usd)
        else:
            fixed_usd[same] = usd
    lines: list[list[ParsedLine]] = []
    codes = np.zeros((len(case.lines), chunk.n), dtype=np.intp)
    for i in range(len(case.lines)):
        lines.append(_line(case, chunk, rows, i, fixed_usd, codes[i], wrong))
    fine = rows[wrong[rows] == ""]
    shapes = [_shape_codes(line, codes[i, fine]) for i, line in enumerate(lines)]
    for same in rows_by_code(np.array(shapes).reshape(len(lines), len(fine))) if len(fine) else ():
        yield _piece(case, fine[same], fixed_usd, lines, codes)


def _by_values(chunk: Chunk, rows: Rows, names: frozenset[str]) -> list[Rows]:
    """Designs with equal values of some axes."""
    columns = [column.codes[rows] for column in chunk.columns if column.name in names]
    return [rows[same] for same in rows_by_code(np.array(columns).reshape(-1, len(rows)))]


def _values(chunk: Chunk, names: frozenset[str], row: int) -> dict[str, object]:
    columns = (column for column in chunk.columns if column.name in names)
    return {column.name: column.values[column.codes[row]] for column in columns}


def _line(
    case: Case,
    chunk: Chunk,
    rows: Rows,
    i: int,
    fixed_usd: Array,
    codes: Rows,
    wrong: NDArray[np.object_],
) -> list[ParsedLine]:
    """Line i for all designs: its distinct readings, and in ``codes`` which one each has."""
    found: list[ParsedLine] = []
    names = case.line_axes(i)
    for same in _by_values(chunk, rows, names):
        values = _values(chunk, names, same[0])
        line = case.line(i, values, float(fixed_usd[same[0]]))
        if isinstance(line, SpecError):
            for row in same:
                wrong[row] = "\n".join(filter(None, [wrong[row], str(line)]))
        else:
            codes[same] = len(found)
            found.append(line)
    return found


def _shape_codes(lines: Sequence[ParsedLine], codes: Rows) -> Rows:
    """Which shape each design's reading of a line has, as a number."""
    numbered: dict[object, int] = {}
    of_line = [numbered.setdefault(line.shape, len(numbered)) for line in lines]
    return np.array(of_line, dtype=np.intp)[codes]


def _piece(
    case: Case, rows: Rows, fixed_usd: Array, lines: list[list[ParsedLine]], codes: Rows
) -> Piece:
    own = codes[:, rows]
    firsts = [line[own[i, 0]] for i, line in enumerate(lines)]
    template = replace(
        case.base,
        rules=tuple(rule for line in firsts for rule in line.rules),
        step_time_limits=tuple(limit for line in firsts for limit in line.limits),
    )
    n, n_dims = len(rows), template.topology.n_dims
    limits = [_values_of([line.limit_s for line in lines[i]], own[i]) for i in range(len(lines))]
    with_rules = [i for i, line in enumerate(firsts) if line.rules]
    program = BatchProgram(
        template=template,
        time_numbers=_repeat_row(np.array(case.time_numbers), n),
        coefficients=_joint_array(lines, own, with_rules, "coefficients", (n, 0, n_dims)),
        bounds=_joint_array(lines, own, with_rules, "bounds", (n, 0)),
        price_usd_per_Bps=_repeat_row(np.asarray(template.price_usd_per_Bps), n),
        fixed_cost_usd=fixed_usd[rows],
        limit_s=np.min([np.full(n, np.inf), *limits], axis=0),
    )
    return Piece(case, rows, program, tuple(map(tuple, lines)), own)


def _repeat_row(row: Array, n: int) -> Array:
    return np.broadcast_to(row, (n, len(row)))


def _values_of(values: Sequence[float], codes: Rows) -> Array:
    return np.array(values, dtype=np.float64)[codes]


def _joint_array(
    lines: list[list[ParsedLine]],
    codes: Rows,
    which: Sequence[int],
    name: str,
    empty: tuple[int, ...],
) -> Array:
    """An array of all lines' rules, the designs first."""
    parts = [_stack(lines[i], codes[i], name) for i in which]
    return np.concatenate([np.empty(empty), *parts], axis=1)


def _stack(line: list[ParsedLine], codes: Rows, name: str) -> Array:
    """Readings of one line by design; readings of another shape are not asked for."""
    shape = line[codes[0]].shape
    place = np.cumsum([reading.shape == shape for reading in line]) - 1
    same = [getattr(reading, name) for reading in line if reading.shape == shape]
    stacked: Array = np.array(same)[place[codes]]
    return stacked


def joint_program(parts: Sequence[Piece]) -> BatchProgram:
    """Pieces of one key as one batch."""
    if len(parts) == 1:
        return parts[0].program

    def joined(name: str) -> Array:
        return np.concatenate([getattr(part.program, name) for part in parts])

    return BatchProgram(parts[0].program.template, *map(joined, _ARRAYS))
