"""The constraint language: text rules into linear rows and bounds; parsed, never run.

Grammar (DESIGN section 4)::

    rule    = sum (COMPARE sum)+              COMPARE = "<=" | ">=" | "=="
    sum     = ["-"|"+"] term (("+"|"-") term)*
    term    = [number "*"] name | number unit
    name    = "dim1" ... "dimD" | a tier that occurs once | "total" | "cost" | "step_time"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, UnitError, closest
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.quantities import (
    COST,
    QUANTITIES,
    STEP_TIME,
    TOTAL,
    PricedFabric,
    Quantity,
    find_quantity,
)
from libra_planner.reading.tokens import END, OTHER, Token, token_pattern, tokens
from libra_planner.step.expression import Array
from libra_planner.units import unit_kind

_FACTORS = (1e-9, 1e9)
"""Factors that a rule may use beside 0; the rest is a slip of the keyboard."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MONEY_FIRST = re.compile(r"\$\s*\d")
_TOKEN = token_pattern(
    compare="<=|>=|==|=<|=>|<|>|=|!=",
    word=r"[A-Za-z_]*\$|[A-Za-z_][A-Za-z_0-9]*(?:/s\b)?",
    sign="[-+*]",
)


@dataclass(frozen=True)
class Term:
    """What a name stands for: a row over the bandwidths, shape (n_dims,), and a constant, SI."""

    quantity: Quantity
    row: Array
    constant: float = 0.0


@dataclass(frozen=True)
class Names:
    """What a rule may speak of.

    Parameters
    ----------
    terms : what each name stands for.
    ambiguous : tier names that occur more than once.
    """

    terms: Mapping[str, Term]
    ambiguous: frozenset[str] = frozenset()

    def with_fixed_cost(self, usd: float) -> Names:
        """The same with another fixed cost (C8)."""
        cost = replace(self.terms[COST.name], constant=usd)
        return replace(self, terms={**self.terms, COST.name: cost})


def rule_names(topology: Topology, price_usd_per_Bps: Array, fixed_cost_usd: float = 0.0) -> Names:
    """Names of a fabric: dimN, tiers that occur once, and quantities such as its cost."""
    axes = [Term(TOTAL, row) for row in np.eye(topology.n_dims)]
    tiers = topology.tiers
    fabric = PricedFabric(topology, price_usd_per_Bps)
    linear = [one for one in QUANTITIES.values() if one.is_linear]
    quantities = {one.name: Term(one, one.row(fabric)) for one in linear}
    reserved = {*quantities, STEP_TIME.name} - {TOTAL.name}
    usable = [tier for tier in tiers if _NAME.fullmatch(tier) and tier not in reserved]
    terms = {tier: axes[i] for i, tier in enumerate(tiers) if usable.count(tier) == 1}
    # The reserved names come last: a tier called dim1 or total never takes their meaning.
    terms |= dict(zip(topology.labels, axes, strict=True))
    terms |= quantities | {STEP_TIME.name: Term(STEP_TIME, np.zeros(topology.n_dims))}
    repeated = frozenset(tier for tier in usable if usable.count(tier) > 1)
    return Names(terms, repeated).with_fixed_cost(fixed_cost_usd)


@dataclass
class _Side:
    """One side of a comparison: a row over bandwidths, a constant, and how often what is not linear
    or not only linear is in it."""

    row: Array
    constant: float = 0.0
    step_time: float = 0.0
    cost: float = 0.0
    quantity: Quantity | None = None


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
    """
    parts = _split(_checked_tokens(text), text)
    sides = [_parse_side(part, names, text) for part in parts[::2]]
    rules: list[Rule | StepTimeLimit] = []
    for i, compare in enumerate(parts[1::2]):
        rules.append(_comparison(text, sides[i], compare[0].text, sides[i + 1]))
    if place is None:
        return rules
    return [replace(rule, line=place.line, column=place.column) for rule in rules]


def _fault(text: str, got: str, expected: str = "", fix: str = "") -> SpecError:
    return SpecError(Fault(f"got {got} in {text!r}", expected, fix))


def _checked_tokens(text: str) -> list[Token]:
    if _MONEY_FIRST.search(text):
        raise _fault(text, "'$' before its number", "expected e.g. 20 M$", "write the unit after")
    found = [token for token in tokens(text, _TOKEN) if token.kind != END]
    for token in found:
        if token.kind == OTHER:
            expected = "expected names, numbers with units, + - * <= >= =="
            raise _fault(text, repr(token.text), expected)
    return found


def _split(found: Sequence[Token], text: str) -> list[list[Token]]:
    """Alternating sides and comparisons."""
    parts: list[list[Token]] = [[]]
    for token in found:
        if token.kind != "compare":
            parts[-1].append(token)
            continue
        if token.text not in ("<=", ">=", "=="):
            suggested = {"=": "==", "<": "<=", ">": ">=", "=<": "<=", "=>": ">="}.get(token.text)
            fix = f"write {suggested}" if suggested else ""
            raise _fault(text, repr(token.text), "expected <=, >= or ==", fix)
        parts += [[token], []]
    if len(parts) < 3:
        raise _fault(text, "no comparison", "expected e.g. 'total <= 500 GB/s'", "add one")
    return parts


def _parse_side(tokens: list[Token], names: Names, text: str) -> _Side:
    side = _Side(np.zeros_like(names.terms[TOTAL.name].row))
    rest = list(tokens)
    first = True
    while rest or first:
        sign = 1.0
        if not first and rest[0].text not in "+-":
            raise _fault(text, repr(rest[0].text), "expected + or - between terms")
        while rest and rest[0].text in ("+", "-"):
            sign *= -1.0 if rest.pop(0).text == "-" else 1.0
        if not rest:
            raise _fault(text, "an empty side or term", "expected a name or a number with a unit")
        _add_term(side, rest, sign, names, text)
        first = False
    return side


def _add_term(side: _Side, rest: list[Token], sign: float, names: Names, text: str) -> None:
    """Take one term off ``rest`` and add it to the side."""
    token = rest.pop(0)
    if token.kind == "word":
        _add_name(side, token.text, sign, names, text)
        return
    if token.kind != "number":
        raise _fault(text, repr(token.text), "expected a name or a number with a unit")
    number = float(token.text)
    if rest and rest[0].text == "*":
        rest.pop(0)
        if not rest or rest[0].kind == "number":
            raise _fault(text, f"no name after '{token.text} *'", "expected e.g. 2 * dim1")
        if rest[0].text in ("+", "-", "*"):
            raise _fault(text, repr(rest[0].text), "expected a name after '*'")
        _check_size(number, _FACTORS, f"the factor {token.text}", text)
        _add_name(side, rest.pop(0).text, sign * number, names, text)
        return
    if not rest or rest[0].kind != "word":
        fix = " or ".join(f"{token.text} {unit}" for unit in _likely(text).suggested)
        fix = f"write {fix}"
        raise UnitError(Fault(f"got {token.text} without a unit in {text!r}", "expected one", fix))
    _add_quantity(side, sign * number, rest.pop(0).text, names, text)


def _likely(text: str) -> Quantity:
    """The quantity that a rule is about, from the names in it."""
    others = (one for one in QUANTITIES.values() if one is not TOTAL)
    return next((one for one in others if one.name in text), TOTAL)


def _check_size(value: float, limits: tuple[float, float], what: str, text: str) -> None:
    if value and not limits[0] <= abs(value) <= limits[1]:
        expected = f"expected 0 or a size from {limits[0]:g} to {limits[1]:g} (SI units)"
        raise _fault(text, what, expected, "leave out a rule that limits nothing")


def _add_quantity(side: _Side, number: float, unit: str, names: Names, text: str) -> None:
    if unit in names.terms:
        fix = f"write {abs(number):g} * {unit}"
        raise _fault(text, f"'{abs(number):g} {unit}'", "expected '*' between number and name", fix)
    quantity = _quantity_of(unit, text)
    _note_quantity(side, quantity, text)
    amount, limits = number * quantity.units[unit], (quantity.least, quantity.most)
    _check_size(amount, limits, f"'{abs(number):g} {unit}'", text)
    side.constant += amount


def _quantity_of(unit: str, text: str) -> Quantity:
    quantity = find_quantity(unit)
    if quantity is not None:
        return quantity
    try:
        kind, _ = unit_kind(unit)
    except UnitError as error:
        bits = unit == "Gb/s"  # Bits or bytes? That hint beats a similar unit's name.
        fix = error.faults[0].fix if bits else closest(unit, _likely(text).units)
        raise _fault(text, f"the unit {unit!r}", "expected a known unit", fix) from None
    *others, last = [one.about for one in QUANTITIES.values()]
    raise _fault(text, f"a {kind}", f"expected {', '.join(others)} or {last}")


def _add_name(side: _Side, name: str, factor: float, names: Names, text: str) -> None:
    term = names.terms.get(name)
    if term is not None:
        _note_quantity(side, term.quantity, text)
        side.row = side.row + factor * term.row
        side.constant += factor * term.constant
        side.cost += factor * (term.quantity is COST)
        side.step_time += factor * (term.quantity is STEP_TIME)
    elif name in names.ambiguous:
        fix = "use dim1, dim2, ... instead"
        raise _fault(text, f"the tier {name!r}, which several dimensions share", "", fix)
    else:
        numbered = name.startswith("dim") and name[3:].isdigit()
        fix = f"known: {', '.join(names.terms)}" if numbered else closest(name, names.terms)
        raise _fault(text, f"the name {name!r}", "expected one of this fabric", fix)


def _note_quantity(side: _Side, quantity: Quantity, text: str) -> None:
    side.quantity = side.quantity or quantity
    if side.quantity is not quantity:
        got = f"a {side.quantity.kind} and a {quantity.kind} in one sum"
        raise _fault(text, got, "expected one kind of quantity")


def _comparison(text: str, left: _Side, sense: str, right: _Side) -> Rule | StepTimeLimit:
    quantity, other = left.quantity or TOTAL, right.quantity or TOTAL
    if quantity is not other:
        got = f"a {quantity.kind} compared with a {other.kind}"
        raise _fault(text, got, "expected the same kind on both sides")
    bound = right.constant - left.constant
    row, cost = left.row - right.row, left.cost - right.cost
    if quantity is STEP_TIME:
        return _step_time_limit(text, left.step_time - right.step_time, sense, bound)
    if not row.any() and quantity is not COST:
        raise _fault(text, "no bandwidth or cost to bound", "expected a name whose sum is not zero")
    if bound < 0 or (bound == 0 and row.any() and row[row != 0][0] < 0):
        row, bound, sense = -row, -bound, {"<=": ">=", ">=": "<="}.get(sense, sense)
        cost = -cost
    coefficients = tuple(float(x) + 0.0 for x in row)
    unit, factor = quantity.unit, quantity.unit_factor
    return Rule(text, coefficients, sense, bound + 0.0, unit, factor, cost_factor=cost + 0.0)


def _step_time_limit(text: str, factor: float, sense: str, bound: float) -> StepTimeLimit:
    if factor == 0:
        raise _fault(text, "no step_time to bound", "expected e.g. step_time <= 900 ms")
    upper = (factor > 0 and sense == "<=") or (factor < 0 and sense == ">=")
    if not upper:
        expected = "expected an upper bound (others do not leave a convex set of designs)"
        raise _fault(text, "a step_time rule that is not an upper bound", expected, "use <=")
    if bound / factor <= 0:
        raise _fault(text, "a step_time bound of 0 or less", "expected a positive time")
    return StepTimeLimit(text, bound / factor)
