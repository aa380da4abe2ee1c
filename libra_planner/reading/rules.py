"""The constraint language: text rules into linear rows and bounds; parsed, never run.

Grammar (DESIGN section 4)::

    rule    = side (COMPARE side)+            COMPARE = "<=" | ">=" | "=="
    side    = sum | "taper" "(" name ")" | number [":" "1"]
    sum     = ["-"|"+"] term (("+"|"-") term)*
    term    = ([number "*"] name | number unit) ("/" number)*
    name    = "dim1" ... "dimD" | a tier that occurs once | "total" | "cost" | "step_time"
    number  = digits ("/" digits)*

Beside a taper (C13) stand numbers only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

import numpy as np

from libra_planner import quantities
from libra_planner.errors import (
    Fault,
    Place,
    SpecError,
    UnitError,
    UnknownName,
    closest,
    closest_dimension,
)
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.reading.models import memory_bytes
from libra_planner.reading.tokens import OTHER, Token, token_pattern, tokens
from libra_planner.step.expression import Array
from libra_planner.units import unit_kind

_FACTORS = (1e-9, 1e9)
"""Factors that a rule may use beside 0; the rest is a slip of the keyboard."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MONEY_FIRST = re.compile(r"\$\s*\d")
_TOKEN = token_pattern(
    compare="<=|>=|==|=<|=>|<|>|=|!=",
    word=r"[A-Za-z_]*\$|[A-Za-z_][A-Za-z_0-9]*(?:/s\b)?",
    sign="[-+*/():]",
)


@dataclass(frozen=True)
class Term:
    """What a name stands for: a row over the bandwidths, shape (n_dims,), and a constant, SI."""

    quantity: quantities.Quantity
    row: Array
    constant: float = 0.0


@dataclass(frozen=True)
class Names:
    """What a rule may speak of.

    Parameters
    ----------
    terms : what each name stands for.
    ambiguous : tier names that occur more than once.
    dimensions : the dimension (from 0) of each name of one.
    topology : the fabric.
    """

    terms: Mapping[str, Term]
    topology: Topology
    dimensions: Mapping[str, int]
    ambiguous: frozenset[str] = frozenset()

    @property
    def known(self) -> list[str]:
        """All that rules are about: the names, memory, and the tapers of a stack's tiers."""
        numbers = {i: name for name, i in reversed([*self.dimensions.items()])}
        outer = (numbers[i] for tiers in self.topology.stacks for i in tiers[1:])
        return [*self.terms, _MEMORY, *(f"{quantities.TAPER.name}({name})" for name in outer)]

    def with_fixed_cost(self, usd: float) -> Names:
        """The same with another fixed cost (C8)."""
        cost = replace(self.terms[quantities.COST.name], constant=usd)
        return replace(self, terms={**self.terms, quantities.COST.name: cost})


def rule_names(topology: Topology, price_usd_per_Bps: Array, fixed_cost_usd: float = 0.0) -> Names:
    """Names of a fabric: dimN, tiers that occur once, and quantities such as its cost."""
    axes = [Term(quantities.TOTAL, row) for row in np.eye(topology.n_dims)]
    tiers = topology.tiers
    fabric = quantities.PricedFabric(topology, price_usd_per_Bps)
    rows = [(one, one.row(fabric)) for one in quantities.QUANTITIES.values()]
    sums = {one.name: Term(one, row) for one, row in rows if row is not None}
    reserved = {*sums, quantities.STEP_TIME.name} - {quantities.TOTAL.name}
    usable = [tier for tier in tiers if _NAME.fullmatch(tier) and tier not in reserved]
    dimensions = {tier: i for i, tier in enumerate(tiers) if usable.count(tier) == 1}
    # The reserved names come last: a tier called dim1 or total never takes their meaning.
    dimensions |= {label: i for i, label in enumerate(topology.labels)}
    terms = {name: axes[i] for name, i in dimensions.items()}
    terms |= sums | {
        quantities.STEP_TIME.name: Term(quantities.STEP_TIME, np.zeros(topology.n_dims))
    }
    repeated = frozenset(tier for tier in usable if usable.count(tier) > 1)
    return Names(terms, topology, dimensions, repeated).with_fixed_cost(fixed_cost_usd)


_TURNED = {"<=": ">=", ">=": "<="}


def _has_taper(side: list[Token]) -> bool:
    """Whether a side speaks of a taper: a tier may have that name, too."""
    texts = [token.text for token in side]
    return (quantities.TAPER.name, "(") in pairwise(texts)


def _is_number(rest: list[Token]) -> bool:
    return bool(rest) and rest[0].kind == "number"


@dataclass
class _Side:
    """One side of a comparison: a row over bandwidths, a constant, and the sum of the factors of
    its names, all of one quantity."""

    row: Array
    constant: float = 0.0
    factor: float = 0.0
    quantity: quantities.Quantity | None = None


_FIXES = {quantities.TAPER.name: "write taper(TIER)", "memory": "write memory <= 76 GB by itself"}
"""How to write names that stand in no sum."""
_COMPARE = re.compile(r"(<=|>=|==|=<|=>|<|>|=)")
_MEMORY = "memory"


@dataclass(frozen=True)
class MemoryLimits:
    """What a rule lets an NPU's memory be, bytes."""

    least_bytes: float = 0.0
    most_bytes: float = math.inf


def memory_limits(text: str) -> MemoryLimits | None:
    """The limits of a rule on the memory of an NPU; ``None`` for another rule.

    No bandwidth changes memory, so that it is held against the plan, not the design (C19).

    Raises
    ------
    SpecError
        For a rule without an upper limit, or a size without its unit.

    Examples
    --------
    >>> memory_limits("76 GB >= memory").most_bytes, memory_limits("total <= 76 GB/s")
    (76000000000.0, None)
    >>> memory_limits("4 GB <= memory <= 8 GB")
    MemoryLimits(least_bytes=4000000000.0, most_bytes=8000000000.0)
    """
    parts = [part.strip() for part in _COMPARE.split(text)]
    if len(parts) < 3 or _MEMORY not in parts[::2]:
        return None
    limits: dict[str, float] = {}
    for left, sense, right in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        if sense not in _TURNED or (left == _MEMORY) == (right == _MEMORY):
            expected = "expected memory <= 76 GB, or 4 GB <= memory <= 76 GB"
            raise SpecError(Fault(f"got '{left} {sense} {right}'", expected))
        size, way = (right, sense) if left == _MEMORY else (left, _TURNED[sense])
        limits["most_bytes" if way == "<=" else "least_bytes"] = memory_bytes(size)
    if "most_bytes" not in limits:
        fix = f"write memory <= {parts[2] if parts[0] == _MEMORY else parts[0]}"
        raise SpecError(Fault(f"got {text.strip()!r}", "expected an upper limit", fix))
    return MemoryLimits(**limits)


def parse_rule(text: str, names: Names, place: Place | None = None) -> list[Rule | StepTimeLimit]:
    """Linear rules and step-time bounds of one line of ``constraints``.

    Parameters
    ----------
    text : the rule; a chain ``a <= x <= b`` gives two.
    names : what it may speak of.
    place : where it stands, for errors and reports.

    Raises
    ------
    SpecError
        For text outside the grammar, unknown names, mixed kinds, missing units.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> names = rule_names(parse_topology("RI(4)_SW(8)", ["node", "pod"]), np.ones(2))
    >>> first, second = parse_rule("25 GB/s <= pod <= 2 * dim1 + 100 GB/s", names)
    >>> first.coefficients, first.sense, first.bound
    ((0.0, 1.0), '>=', 25000000000.0)
    >>> second.coefficients, second.sense, second.bound
    ((-2.0, 1.0), '<=', 100000000000.0)
    >>> tapered = rule_names(parse_topology("[SW(32)_SW(8)]", ["leaf", "spine"]), np.ones(2))
    >>> parse_rule("taper(spine) <= 7:1", tapered)[0].coefficients
    (1.0, -7.0)
    """
    if memory_limits(text) is not None:
        return []
    rules = list(_RuleParser(text, names).rules())
    if place is None:
        return rules
    return [replace(rule, line=place.line, column=place.column) for rule in rules]


@dataclass(frozen=True)
class _RuleParser:
    text: str
    names: Names

    def rules(self) -> Iterator[Rule | StepTimeLimit]:
        """A rule for every comparison."""
        parts = self._parts()
        if any(map(_has_taper, parts)):
            for one, (compare,), other in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
                yield self._taper_rule(one, compare.text, other)
            return
        sides = [self._side(part) for part in parts[::2]]
        for left, (compare,), right in zip(sides, parts[1::2], sides[1:], strict=False):
            yield self._comparison(left, compare.text, right)

    def _taper_rule(self, left: list[Token], sense: str, right: list[Token]) -> Rule:
        """A bound r on a taper: the row B_(d-1) - r B_d (C13)."""
        if not _has_taper(left):
            left, right, sense = right, left, _TURNED.get(sense, sense)
        if _has_taper(right):
            raise self.fault("a taper compared with a taper", "expected a number beside it")
        tier, row = self._tier(left), np.zeros(self.names.topology.n_dims)
        row[tier - 1], row[tier] = 1.0, -self._ratio(right)
        return Rule(self.text, tuple(row.tolist()), sense, 0.0, tier=tier)

    def _tier(self, side: list[Token]) -> int:
        """The dimension (from 0) of a taper, which stands alone on its side."""
        texts = [token.text for token in side]
        if [*texts[:2], *texts[3:]] != [quantities.TAPER.name, "(", ")"]:
            got = f"'{' '.join(texts)}'"
            raise self.fault(got, "expected taper(TIER) alone on its side", "write taper(dim3)")
        name, dimensions = texts[2], self.names.dimensions
        if name in self.names.ambiguous and name not in dimensions:
            raise self._shared(name)
        if name not in dimensions:
            fix = closest_dimension(name, dimensions)
            raise self.fault(f"the taper of {name!r}", "expected a tier of this fabric", fix)
        self._check_tier(name, dimensions[name])
        return dimensions[name]

    def _check_tier(self, name: str, tier: int) -> None:
        topology, got = self.names.topology, f"the taper of {name!r}"
        stack = next((one for one in topology.stacks if tier in one), None)
        if stack is None:
            other = topology.with_one_network
            fix = f"write fabric.topology: {other}" if other else "remove the rule"
            raise self.fault(f"{got}, which is in no stack of {topology}", "expected a tier", fix)
        if tier == stack.start:
            others = " or ".join(f"taper({topology.labels[i]})" for i in stack[1:])
            got = f"{got}, the innermost tier of {topology}"
            raise self.fault(got, "expected a tier with another one inside", f"write {others}")

    def _ratio(self, side: list[Token]) -> float:
        """The number on the other side of a taper."""
        rest = list(side)
        value = self._divided(rest, float(rest.pop(0).text)) if _is_number(rest) else 0.0
        if [token.text for token in rest] == [":", "1"]:
            rest = []
        if rest or not value:
            got = f"'{' '.join(token.text for token in side)}' beside a taper"
            raise self.fault(got, "expected a number above 0", "write e.g. 7 for 7:1")
        self._check_size(value, *_FACTORS, f"the taper {value:g}")
        return value

    def fault(self, got: str, expected: str = "", fix: str = "") -> SpecError:
        """What is wrong."""
        return SpecError(Fault(f"got {got} in {self.text!r}", expected, fix))

    def _parts(self) -> list[list[Token]]:
        """Alternating sides and comparisons."""
        if _MONEY_FIRST.search(self.text):
            expected, fix = "expected e.g. 20 M$", "write the unit after"
            raise self.fault("'$' before its number", expected, fix)
        found = list(tokens(self.text, _TOKEN))[:-1]
        is_taper = _has_taper(found)
        for token in found:
            if token.kind == OTHER or (token.text == ":" and not is_taper):
                expected = "expected names, numbers with units, + - * / <= >= =="
                raise self.fault(repr(token.text), expected)
        parts: list[list[Token]] = [[]]
        for token in found:
            if token.kind != "compare":
                parts[-1].append(token)
                continue
            if token.text not in ("<=", ">=", "=="):
                suggested = {"=": "==", "<": "<=", ">": ">=", "=<": "<=", "=>": ">="}
                fix = f"write {suggested[token.text]}" if token.text in suggested else ""
                raise self.fault(repr(token.text), "expected <=, >= or ==", fix)
            parts += [[token], []]
        if len(parts) < 3:
            raise self.fault("no comparison", "expected e.g. 'total <= 500 GB/s'", "add one")
        return parts

    def _side(self, rest: list[Token]) -> _Side:
        side = _Side(np.zeros_like(self.names.terms[quantities.TOTAL.name].row))
        first = True
        while rest or first:
            sign = 1.0
            if not first and rest[0].text not in "+-":
                raise self.fault(repr(rest[0].text), "expected + or - between terms")
            while rest and rest[0].text in ("+", "-"):
                sign *= -1.0 if rest.pop(0).text == "-" else 1.0
            if not rest:
                expected = "expected a name or a number with a unit"
                raise self.fault("an empty side or term", expected)
            self._add_term(side, rest, sign)
            first = False
        return side

    def _add_term(self, side: _Side, rest: list[Token], sign: float) -> None:
        """Take one term off ``rest`` and add it to the side."""
        token = rest.pop(0)
        if token.kind == "word":
            self._add_name(side, token.text, self._factor(rest, sign, token))
            return
        if token.kind != "number":
            raise self.fault(repr(token.text), "expected a name or a number with a unit")
        number = self._divided(rest, float(token.text))
        if rest and rest[0].text == "*":
            rest.pop(0)
            if not rest or rest[0].kind == "number":
                raise self.fault(f"no name after '{token.text} *'", "expected e.g. 2 * dim1")
            if rest[0].kind == "sign":
                raise self.fault(repr(rest[0].text), "expected a name after '*'")
            name = rest.pop(0)
            self._add_name(side, name.text, self._factor(rest, sign * number, token))
        elif rest and rest[0].kind == "word":
            unit = rest.pop(0).text
            self._refuse_second_unit(unit, rest)
            self._add_quantity(side, self._divided(rest, sign * number), unit)
        else:
            ways = " or ".join(f"{token.text} {unit}" for unit in self._likely().suggested)
            got = f"got {token.text} without a unit in {self.text!r}"
            raise UnitError(Fault(got, "expected one", f"write {ways}"))

    def _refuse_second_unit(self, unit: str, rest: list[Token]) -> None:
        second = rest[0].text if rest else ""
        if quantities.find_quantity(second) is not None:
            got = f"two units, {unit} and {second},"
            raise UnitError(*self.fault(got, "expected one", f"remove {second}").faults)

    def _factor(self, rest: list[Token], factor: float, token: Token) -> float:
        """The factor of a name, divided by the numbers that follow it."""
        found = self._divided(rest, factor)
        shown = token.text if token.kind == "number" and found == factor else f"{abs(found):g}"
        self._check_size(found, *_FACTORS, f"the factor {shown}")
        return found

    def _divided(self, rest: list[Token], value: float) -> float:
        """A value over the numbers that follow it after "/", which are taken off ``rest``."""
        while rest and rest[0].text == "/":
            rest.pop(0)
            if not _is_number(rest):
                got = f"a division by {rest[0].text!r}" if rest else "nothing after '/'"
                fix = "write e.g. dim2 / 7, or taper(dim3) for dim2 over dim3"
                raise self.fault(got, "expected a number after '/'", fix)
            divisor = float(rest.pop(0).text)
            if not divisor or math.isinf(divisor):
                raise self.fault(f"a division by {divisor:g}", "expected another number")
            value /= divisor
        return value

    def _likely(self) -> quantities.Quantity:
        """The quantity that the rule is about, from the names in it."""
        others = (one for one in quantities.QUANTITIES.values() if one is not quantities.TOTAL)
        return next((one for one in others if one.name in self.text), quantities.TOTAL)

    def _check_size(self, value: float, least: float, most: float, what: str) -> None:
        if value and not least <= abs(value) <= most:
            expected = f"expected 0 or a size from {least:g} to {most:g} (SI units)"
            raise self.fault(what, expected, "leave out a rule that limits nothing")

    def _add_quantity(self, side: _Side, number: float, unit: str) -> None:
        what = f"'{abs(number):g} {unit}'"
        if unit in self.names.terms:
            expected = "expected '*' between number and name"
            raise self.fault(what, expected, f"write {abs(number):g} * {unit}")
        quantity = quantities.find_quantity(unit) or self._no_quantity(unit)
        self._note_quantity(side, quantity)
        amount = number * quantity.units[unit]
        self._check_size(amount, quantity.least, quantity.most, what)
        side.constant += amount

    def _no_quantity(self, unit: str) -> NoReturn:
        try:
            kind, _ = unit_kind(unit)
        except UnitError as error:
            bits = unit == "Gb/s"  # Bits or bytes? That hint beats a similar unit's name.
            fix = error.faults[0].fix if bits else closest(unit, self._likely().units)
            wrong = self.fault(f"the unit {unit!r}", "expected a known unit", fix)
            raise UnitError(*wrong.faults) from None
        *others, last = [one.about for one in quantities.QUANTITIES.values() if one.suggested]
        rate = f"{unit}/s"
        fix = f"did you mean {rate}?" if quantities.find_quantity(rate) else ""
        raise self.fault(f"a {kind}", f"expected {', '.join(others)} or {last}", fix)

    def _add_name(self, side: _Side, name: str, factor: float) -> None:
        terms = self.names.terms
        if name in self.names.ambiguous and name not in terms:
            raise self._shared(name)
        if name not in terms:
            fix = _FIXES.get(name) or closest_dimension(name, self.names.known)
            wrong = self.fault(f"the name {name!r}", "expected one of this fabric", fix)
            raise UnknownName(*wrong.faults)
        self._note_quantity(side, terms[name].quantity)
        side.row = side.row + factor * terms[name].row
        side.constant += factor * terms[name].constant
        side.factor += factor

    def _shared(self, name: str) -> SpecError:
        fix = "use dim1, dim2, ... instead"
        return self.fault(f"the tier {name!r}, which several dimensions share", "", fix)

    def _note_quantity(self, side: _Side, quantity: quantities.Quantity) -> None:
        side.quantity = side.quantity or quantity
        if side.quantity is not quantity:
            got = f"a {side.quantity.kind} and a {quantity.kind} in one sum"
            raise self.fault(got, "expected one kind of quantity")

    def _comparison(self, left: _Side, sense: str, right: _Side) -> Rule | StepTimeLimit:
        quantity, other = left.quantity or quantities.TOTAL, right.quantity or quantities.TOTAL
        if quantity is not other:
            got = f"a {quantity.kind} compared with a {other.kind}"
            raise self.fault(got, "expected the same kind on both sides")
        row, bound = left.row - right.row, right.constant - left.constant
        factor = left.factor - right.factor
        if quantity is quantities.STEP_TIME:
            return self._step_time_limit(factor, sense, bound)
        if not row.any() and quantity is not quantities.COST:
            expected = "expected a name whose sum is not zero"
            raise self.fault("no bandwidth or cost to bound", expected)
        cost = factor if quantity is quantities.COST else 0.0
        if bound < 0 or (bound == 0 and row.any() and row[row != 0][0] < 0):
            row, bound, sense = -row, -bound, _TURNED.get(sense, sense)
            cost = -cost
        coefficients = tuple(float(x) + 0.0 for x in row)
        unit, scale = quantity.unit, quantity.unit_factor
        return Rule(
            self.text, coefficients, sense, bound + 0.0, unit, scale, cost_factor=cost + 0.0
        )

    def _step_time_limit(self, factor: float, sense: str, bound: float) -> StepTimeLimit:
        if factor == 0:
            raise self.fault("no step_time to bound", "expected e.g. step_time <= 900 ms")
        if sense != ("<=" if factor > 0 else ">="):
            expected = "expected an upper bound (others do not leave a convex set of designs)"
            raise self.fault("a step_time rule that is not an upper bound", expected, "use <=")
        if bound / factor <= 0:
            raise self.fault("a step_time bound of 0 or less", "expected a positive time")
        return StepTimeLimit(self.text, bound / factor)
