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
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, UnitError, closest
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Rule, StepTimeLimit
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS, EXAMPLE_UNITS, UNITS, unit_kind

STEP_TIME = "step_time"
COST = "cost"
TOTAL = "total"

_UNIT_OF_KIND = {
    "bandwidth": ("GB/s", BYTES_PER_S_PER_GBPS),
    "money": ("$", 1.0),
    "time": ("s", 1.0),
}
_RANGES = {"bandwidth": (1e3, 1e18), "money": (1e-3, 1e18), "time": (1e-12, 1e12)}
_FACTORS = (1e-9, 1e9)
"""Sizes (SI) and factors that a rule may use; zero is fine, the rest is a slip of the keyboard."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MONEY_FIRST = re.compile(r"\$\s*\d")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<compare><=|>=|==|=<|=>|<|>|=|!=)
  | (?P<number>(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_]*\$|[A-Za-z_][A-Za-z_0-9]*(?:/s\b)?)
  | (?P<sign>[-+*])
  | (?P<other>\S))""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True)
class Names:
    """What a rule may speak of.

    Parameters
    ----------
    rows : name to its row over the bandwidths, shape (n_dims,) each.
    price_usd_per_Bps : row of ``cost``.
    fixed_cost_usd : constant of ``cost``: what no bandwidth changes (C8).
    ambiguous : tier names that occur more than once.
    """

    rows: Mapping[str, Array]
    price_usd_per_Bps: Array
    fixed_cost_usd: float = 0.0
    ambiguous: frozenset[str] = frozenset()


def rule_names(topology: Topology, price_usd_per_Bps: Array, fixed_cost_usd: float = 0.0) -> Names:
    """Names of a fabric: dimN, tiers that occur once, total, and its cost."""
    axes = np.eye(topology.n_dims)
    tiers = topology.tiers
    usable = [tier for tier in tiers if _NAME.fullmatch(tier) and tier not in (COST, STEP_TIME)]
    rows = {tier: axes[i] for i, tier in enumerate(tiers) if usable.count(tier) == 1}
    # The reserved names come last: a tier called dim1 or total never takes their meaning.
    rows |= dict(zip(topology.labels, axes, strict=True))
    rows[TOTAL] = np.ones(topology.n_dims)
    repeated = frozenset(tier for tier in usable if usable.count(tier) > 1)
    return Names(rows, price_usd_per_Bps, fixed_cost_usd, repeated)


class _Token(NamedTuple):
    kind: str
    text: str


@dataclass
class _Side:
    """One side of a comparison: a row over bandwidths, constants, step_time and cost, by kind."""

    row: Array
    constant: float = 0.0
    step_time: float = 0.0
    cost: float = 0.0
    kinds: dict[str, str] = field(default_factory=dict)


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
    parts = _split(_tokens(text), text)
    sides = [_parse_side(part, names, text) for part in parts[::2]]
    rules: list[Rule | StepTimeLimit] = []
    for i, compare in enumerate(parts[1::2]):
        rules.append(_comparison(text, sides[i], compare[0].text, sides[i + 1]))
    if place is None:
        return rules
    return [replace(rule, line=place.line, column=place.column) for rule in rules]


def _fault(text: str, got: str, expected: str = "", fix: str = "") -> SpecError:
    return SpecError(Fault(f"got {got} in {text!r}", expected, fix))


def _tokens(text: str) -> list[_Token]:
    if _MONEY_FIRST.search(text):
        raise _fault(text, "'$' before its number", "expected e.g. 20 M$", "write the unit after")
    tokens, at = [], 0
    while match := _TOKEN.match(text, at):
        kind = str(match.lastgroup)
        if kind == "other":
            raise _fault(
                text,
                repr(match.group("other")),
                "expected names, numbers with units, + - * <= >= ==",
            )
        tokens.append(_Token(kind, match.group(kind)))
        at = match.end()
    return tokens


def _split(tokens: Sequence[_Token], text: str) -> list[list[_Token]]:
    """Alternating sides and comparisons."""
    parts: list[list[_Token]] = [[]]
    for token in tokens:
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


def _parse_side(tokens: list[_Token], names: Names, text: str) -> _Side:
    side = _Side(np.zeros(len(names.price_usd_per_Bps)))
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


def _add_term(side: _Side, rest: list[_Token], sign: float, names: Names, text: str) -> None:
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
        fix = " or ".join(f"{token.text} {unit}" for unit in EXAMPLE_UNITS[_likely_kind(text)])
        fix = f"write {fix}"
        raise UnitError(Fault(f"got {token.text} without a unit in {text!r}", "expected one", fix))
    _add_quantity(side, sign * number, rest.pop(0).text, names, text)


def _likely_kind(text: str) -> str:
    """Kind of quantity that a rule is about, from the names in it."""
    kinds = {COST: "money", STEP_TIME: "time"}
    return next((kind for name, kind in kinds.items() if name in text), "bandwidth")


def _check_size(value: float, limits: tuple[float, float], what: str, text: str) -> None:
    if value and not limits[0] <= abs(value) <= limits[1]:
        expected = f"expected 0 or a size from {limits[0]:g} to {limits[1]:g} (SI units)"
        raise _fault(text, what, expected, "leave out a rule that limits nothing")


def _add_quantity(side: _Side, number: float, unit: str, names: Names, text: str) -> None:
    if unit in (*names.rows, COST, STEP_TIME):
        fix = f"write {abs(number):g} * {unit}"
        raise _fault(text, f"'{abs(number):g} {unit}'", "expected '*' between number and name", fix)
    try:
        kind, factor = unit_kind(unit)
    except UnitError as error:
        bits = unit == "Gb/s"  # Bits or bytes? That hint beats a similar unit's name.
        fix = error.faults[0].fix if bits else closest(unit, UNITS[_likely_kind(text)])
        raise _fault(text, f"the unit {unit!r}", "expected a known unit", fix) from None
    if kind not in _UNIT_OF_KIND:
        raise _fault(text, f"a {kind}", "expected a bandwidth, an amount of money or a time")
    _note_kind(side, kind, text)
    _check_size(number * factor, _RANGES[kind], f"'{abs(number):g} {unit}'", text)
    side.constant += number * factor


def _add_name(side: _Side, name: str, factor: float, names: Names, text: str) -> None:
    if name in names.rows:
        _note_kind(side, "bandwidth", text)
        side.row = side.row + factor * names.rows[name]
    elif name == COST:
        _note_kind(side, "money", text)
        side.row = side.row + factor * names.price_usd_per_Bps
        side.constant += factor * names.fixed_cost_usd
        side.cost += factor
    elif name == STEP_TIME:
        _note_kind(side, "time", text)
        side.step_time += factor
    elif name in names.ambiguous:
        fix = "use dim1, dim2, ... instead"
        raise _fault(text, f"the tier {name!r}, which several dimensions share", "", fix)
    else:
        known = [*names.rows, COST, STEP_TIME]
        numbered = name.startswith("dim") and name[3:].isdigit()
        fix = f"known: {', '.join(known)}" if numbered else closest(name, known)
        raise _fault(text, f"the name {name!r}", "expected one of this fabric", fix)


def _note_kind(side: _Side, kind: str, text: str) -> None:
    found = side.kinds.setdefault("kind", kind)
    if found != kind:
        raise _fault(text, f"a {found} and a {kind} in one sum", "expected one kind of quantity")


def _comparison(text: str, left: _Side, sense: str, right: _Side) -> Rule | StepTimeLimit:
    kind, other = left.kinds["kind"], right.kinds["kind"]
    if kind != other:
        raise _fault(
            text, f"a {kind} compared with a {other}", "expected the same kind on both sides"
        )
    bound = right.constant - left.constant
    row, cost = left.row - right.row, left.cost - right.cost
    if kind == "time":
        return _step_time_limit(text, left.step_time - right.step_time, sense, bound)
    if not row.any() and kind == "bandwidth":
        raise _fault(text, "no bandwidth or cost to bound", "expected a name whose sum is not zero")
    if bound < 0 or (bound == 0 and row.any() and row[row != 0][0] < 0):
        row, bound, sense = -row, -bound, {"<=": ">=", ">=": "<="}.get(sense, sense)
        cost = -cost
    unit, factor = _UNIT_OF_KIND[kind]
    coefficients = tuple(float(x) + 0.0 for x in row)
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
