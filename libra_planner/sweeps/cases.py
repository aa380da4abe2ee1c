"""One structure of a sweep: a problem without its rules, and the rules by the values in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.costs.prices import network_price_usd_per_Bps, price_parts, quoted_book
from libra_planner.errors import Fault, Infeasible, Place, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer.programs.plans import BatchProgram, structure_key
from libra_planner.plan.prices import fixed_cost, load_price_book
from libra_planner.plan.problem import build_plan
from libra_planner.plan.steps.whole import refuse_over
from libra_planner.plan.training import plan_spec
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.quantities import COST
from libra_planner.reading.document import Document, Key
from libra_planner.reading.rules import memory_limits, parse_rule, rule_names
from libra_planner.reading.value_faults import path_of
from libra_planner.step.expression import Array, Mask
from libra_planner.sweeps.expressions import TEXT
from libra_planner.sweeps.spec import Chunk, Rows, rows_by_code
from libra_planner.sweeps.template import LIGHT_KEYS, PlanTemplate, Text, is_numeric

FIXED_COST = "fixed_cost"
_MOST_PARSED = 50_000
"""Parsed rules that a case keeps."""


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
    base : the problem; of its rules only what its scale-up domain fixes (C14), and without its
        fixed cost if axes change it.
    lines : its ``constraints``, with placeholders.
    """

    template: PlanTemplate
    values: Mapping[str, Any]
    base: Problem
    lines: tuple[str, ...] = ()

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
        """The case of other objectives or price books.

        Raises
        ------
        SpecError
            For values that are no objective or no price book; without their place.
        """
        base, slots = self.base, self.template.slots
        objectives, books = (slots.get(key) for key in LIGHT_KEYS)
        if objectives:
            objective = objectives.filled(values)
            if objective not in OBJECTIVES:
                raise SpecError(Fault(f"got {objective!r}", "expected an objective"))
            base = replace(base, objective=objective)
        if books:
            name = books.filled(values)
            book = quoted_book(load_price_book(name, self.template.beside), base.prices.quotes)
            price = network_price_usd_per_Bps(base.topology, book, base.included_dims)
            parts = price_parts(base.topology, book, base.included_dims)
            prices = replace(base.prices, usd_per_Bps=tuple(price.tolist()), parts=parts)
            base = replace(base, prices=prices)
        return Case(self.template, values, base, self.lines)

    @cached_property
    def fixed_cost_axes(self) -> frozenset[str]:
        """Axes in the fixed cost."""
        return self.template.axes_of(lambda key, _: key[0] == FIXED_COST)

    def line_axes(self, i: int) -> frozenset[str]:
        """Axes that line i depends on: those in it, and those of the cost that it bounds."""
        own = self.template.axes_of(lambda key, _: key == ("constraints", i))
        return own | self.fixed_cost_axes if self._bounds_cost(i) else own

    def _bounds_cost(self, i: int) -> bool:
        """Whether line i is about cost, or can be where an axis gives words of it."""
        slot = self.template.slots.get(("constraints", i))
        parts = slot.parts if isinstance(slot, Text) else (self.lines[i],)
        return any(COST.name in p if isinstance(p, str) else p.kind == TEXT for p in parts)

    def fixed_cost_usd(self, values: Mapping[str, Any]) -> float | SpecError:
        """Fixed cost of a design, or what is wrong with it."""
        if not self.fixed_cost_axes:
            return self.base.fixed_cost_usd
        try:
            document = self.template.filled(
                {**self.values, **values},
                lambda key, slot: key[0] == FIXED_COST or not is_numeric(key, slot),
            )
            _pop_lines(document)
            spec = plan_spec(document)
            n_npus, beside = self.base.n_npus_bought, self.template.beside
            quotes = self.base.prices.quotes
            return fixed_cost(spec.fixed_cost, n_npus, beside, quotes).usd
        except SpecError as error:
            return error

    def line(
        self, i: int, values: Mapping[str, Any], fixed_cost_usd: float
    ) -> ParsedLine | SpecError | Infeasible:
        """Line i for some values of its axes, or what is wrong with it.

        A rule on memory is none of bandwidth: the model meets it, or the design is infeasible.
        """
        key: Key = ("constraints", i)
        slot, place = self.template.slots.get(key), self.template.document.place(key)
        usd = fixed_cost_usd if self._bounds_cost(i) else self.base.fixed_cost_usd
        try:
            text = self.lines[i]
            if isinstance(slot, Text):
                text = slot.filled({**self.values, **values})
            if not isinstance(text, str):
                raise SpecError(Fault(f"got {text!r}", "expected a rule"))
            limits = memory_limits(text)
            if limits is not None:
                refuse_over(self.base.step.trainings, limits, text, place)
            return self._parsed(text, usd, place)
        except SpecError as error:
            return error.located(place, path_of(key))
        except Infeasible as error:
            return error

    @cached_property
    def _parsed(self) -> Callable[[str, float, Place], ParsedLine]:
        """The rules of a text at a fixed cost; many of them are kept."""
        base = self.base
        names = rule_names(base.topology, base.price_usd_per_Bps)

        @lru_cache(_MOST_PARSED)
        def parsed(text: str, fixed_cost_usd: float, place: Place) -> ParsedLine:
            rules = parse_rule(text, names.with_fixed_cost(fixed_cost_usd), place)
            limits = tuple(rule for rule in rules if isinstance(rule, StepTimeLimit))
            return ParsedLine(tuple(rule for rule in rules if isinstance(rule, Rule)), limits)

        return parsed


def _pop_lines(document: Document) -> tuple[str, ...]:
    """Lines of ``constraints``, taken out of a plan; what is not text stays, to be refused."""
    value = document.value.get("constraints")
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        return ()
    document.value["constraints"] = []
    return tuple(value)


_ARRAYS = tuple(field.name for field in fields(BatchProgram))[1:]


@dataclass(frozen=True)
class Piece:
    """Designs of one case whose rules have one shape.

    Parameters
    ----------
    case : their case.
    rows : which designs of the chunk, shape (n,).
    program : them as a batch.
    lines : distinct readings of each line of constraints, and which one each design has, (n,).
    """

    case: Case
    rows: Rows
    program: BatchProgram
    lines: Sequence[tuple[list[ParsedLine], Rows]]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for pieces that one batch can hold."""
        template = self.program.template
        units = tuple(rule.unit for rule in template.rules)
        return (*structure_key(template), units)

    def worded(self, problem: Problem, i: int) -> Problem:
        """The problem of the piece's design i with the rules as its own plan has them."""
        own = _joined([line[codes[i]] for line, codes in self.lines])
        return replace(problem, rules=own.rules, step_time_limits=own.limits[:1])


def _joined(lines: Sequence[ParsedLine]) -> ParsedLine:
    """Rules of all lines, and their bounds on step time, the tightest first."""
    limits = sorted((one for line in lines for one in line.limits), key=lambda one: one.limit_s)
    return ParsedLine(tuple(rule for line in lines for rule in line.rules), tuple(limits))


def pieces(
    case: Case, chunk: Chunk, rows: Rows, wrong: NDArray[np.object_], too_large: Mask
) -> Iterator[Piece]:
    """The designs ``rows`` of a chunk as batches.

    What is wrong with others goes into ``wrong``, shape (n,); ``too_large`` says of which that is
    nothing but a rule on memory.
    """
    fixed_usd = np.full(chunk.n, case.base.fixed_cost_usd)
    for same in chunk.alike(case.fixed_cost_axes, rows):
        usd = case.fixed_cost_usd(chunk.values(same[0], case.fixed_cost_axes))
        if isinstance(usd, SpecError):
            wrong[same] = str(usd)
        else:
            fixed_usd[same] = usd
    lines: list[list[ParsedLine]] = []
    codes, shapes = np.zeros((2, len(case.lines), chunk.n), dtype=np.intp)
    numbered: dict[object, int] = {}
    for i in range(len(case.lines)):
        lines.append([])
        for same in chunk.alike(names := case.line_axes(i), rows):
            line = case.line(i, chunk.values(same[0], names), float(fixed_usd[same[0]]))
            if not isinstance(line, ParsedLine):
                is_rule = isinstance(line, Infeasible)
                too_large[same] = is_rule & (too_large[same] | (wrong[same] == ""))
                for row in same:
                    wrong[row] = "\n".join(filter(None, [wrong[row], str(line)]))
                continue
            codes[i, same] = len(lines[i])
            shapes[i, same] = numbered.setdefault(line.shape, len(numbered))
            lines[i].append(line)
    fine = rows[wrong[rows] == ""]
    for same in rows_by_code(shapes[:, fine]) if len(fine) else ():
        own = fine[same]
        fixed = [([ParsedLine(case.base.rules, ())], np.zeros(len(own), dtype=np.intp))]
        used = list(map(_used, lines, codes[:, own]))
        yield _piece(case, own, fixed_usd[own], fixed * bool(case.base.rules) + used)


def _used(line: list[ParsedLine], codes: Rows) -> tuple[list[ParsedLine], Rows]:
    """The readings of a line that some designs have, and which one each has."""
    used, own = np.unique(codes, return_inverse=True)
    return [line[code] for code in used], own


def _piece(
    case: Case, rows: Rows, fixed_usd: Array, lines: Sequence[tuple[list[ParsedLine], Rows]]
) -> Piece:
    first = _joined([line[codes[0]] for line, codes in lines])
    template = replace(case.base, rules=first.rules, step_time_limits=first.limits)
    n, n_dims, time_numbers = len(rows), template.topology.n_dims, template.step_time.numbers

    def stacked(name: str, *shape: int) -> Array:
        """An array of all lines' rules, the designs first."""
        parts = [np.empty((n, 0, *shape))]
        for line, codes in lines:
            values = [[getattr(rule, name) for rule in reading.rules] for reading in line]
            parts.append(np.array(values).reshape(len(line), -1, *shape)[codes])
        return np.concatenate(parts, axis=1)

    limits_s = [np.array([reading.limit_s for reading in line])[codes] for line, codes in lines]
    program = BatchProgram(
        template=template,
        time_numbers=np.broadcast_to(time_numbers, (n, len(time_numbers))),
        coefficients=stacked("coefficients", n_dims),
        bounds=stacked("bound"),
        price_usd_per_Bps=np.broadcast_to(template.price_usd_per_Bps, (n, n_dims)),
        fixed_cost_usd=fixed_usd,
        limit_s=np.min([np.full(n, np.inf), *limits_s], axis=0),
    )
    return Piece(case, rows, program, lines)


def joint_program(parts: Sequence[Piece]) -> BatchProgram:
    """Pieces of one key as one batch."""
    if len(parts) == 1:
        return parts[0].program
    programs = [part.program for part in parts]
    arrays = (np.concatenate([getattr(one, name) for one in programs]) for name in _ARRAYS)
    return BatchProgram(programs[0].template, *arrays)


def cost_limits_usd(
    rules: Sequence[Rule], factors: Array, bounds: Array, fixed_cost_usd: Array
) -> Array:
    """The most that rules let cost be, shape (n,); infinite where none bounds it from above.

    Parameters
    ----------
    rules : their senses.
    factors, bounds : multiples of the network cost on their left sides, 0 of other rules, and
        their right sides without the fixed cost; shape (n, n_rules).
    fixed_cost_usd : shape (n,).
    """
    senses = np.array([rule.sense for rule in rules])
    is_upper = np.where(factors > 0, senses != ">=", senses != "<=") & (factors != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(is_upper, bounds / factors, np.inf)
    return np.asarray(fixed_cost_usd + limits.min(axis=1, initial=np.inf))


def program_cost_limits_usd(program: BatchProgram) -> Array:
    """The same of the designs of a batch."""
    rules = program.template.rules
    is_of_cost = np.array([rule.cost_factor != 0 for rule in rules], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = program.coefficients.sum(axis=2) / program.price_usd_per_Bps.sum(axis=1)[:, None]
    factors = np.where(is_of_cost & np.isfinite(sums), sums, 0.0)
    return cost_limits_usd(rules, factors, program.bounds, program.fixed_cost_usd)


def problem_cost_limit_usd(problem: Problem) -> float:
    """The same of one plan.

    >>> import libra_planner as lp
    >>> problem_cost_limit_usd(lp.load_plan("0e_rails_2to1", "constraints=[cost <= 12 M$]"))
    12000000.0
    """
    factors = np.array([[rule.cost_factor for rule in problem.rules]])
    bounds = np.array([[rule.bound for rule in problem.rules]])
    fixed = np.array([problem.fixed_cost_usd])
    return float(cost_limits_usd(problem.rules, factors, bounds, fixed)[0])
