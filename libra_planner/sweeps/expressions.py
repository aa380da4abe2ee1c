"""The expressions of filters and placeholders: Python's syntax, parsed, never run by Python.

Numbers, text, ``true`` and ``false``, names of axes, ``+ - * / // %``, comparisons (chains and
``in`` too), ``and``, ``or``, ``not``, ``a if condition else b``, and a few functions. One walk
checks the kinds and makes functions, which serve a single design and an array over designs.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from libra_planner.errors import Fault, PlannerError, SpecError, closest
from libra_planner.fabric.topology import parse_topology
from libra_planner.plain_text import with_article
from libra_planner.step.expression import Mask

NUMBER, TEXT, TRUTH = "number", "text", "truth value"
OTHER = "mix of numbers and text, map or list"
"""Kinds of values."""

Value: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of a part of an expression; names stand for single values or arrays."""

WORDS = MappingProxyType({"true": True, "false": False})


def _divide(left: Any, right: Any) -> Any:
    """A quotient; of whole numbers a whole one where it is one, so that 4096 / tp is a degree."""
    whole = isinstance(left, int) and isinstance(right, int) and right != 0
    return left // right if whole and left % right == 0 else left / right


def _extreme(of_arrays: np.ufunc, of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """A minimum or maximum of numbers and arrays."""

    def call(*values: Any) -> Any:
        any_array = any(isinstance(value, np.ndarray) for value in values)
        return reduce(of_arrays, values) if any_array else of_numbers(values)

    return call


def _of_text(function: Callable[[str], float]) -> Callable[[Any], Any]:
    """A function of text, for arrays once per distinct text."""

    def call(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return function(value)
        texts, places = np.unique(value, return_inverse=True)
        return np.array([function(str(text)) for text in texts], dtype=np.float64)[places]

    return call


def _n_npus(notation: str) -> float:
    try:
        return parse_topology(notation).n_npus
    except PlannerError:
        return math.nan


ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.Not: (TRUTH, np.logical_not),
    ast.USub: (NUMBER, operator.neg),
    ast.UAdd: (NUMBER, operator.pos),
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[str, tuple[str, int | None, Callable[..., Any]]] = {
    "min": (NUMBER, None, _extreme(np.minimum, min)),
    "max": (NUMBER, None, _extreme(np.maximum, max)),
    "n_dims": (TEXT, 1, _of_text(lambda notation: notation.count("_") + 1)),
    "n_npus": (TEXT, 1, _of_text(_n_npus)),
}
"""Name to the kind of its arguments, how many it takes (None: one or more), and itself."""


def axis_name(node: ast.AST) -> str | None:
    """The (dotted) name that a node is."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = axis_name(node.value)
        return f"{before}.{node.attr}" if before else None
    return None


LONGEST = 500
"""Most characters of an expression."""

_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression.

    Parameters
    ----------
    text : as written.
    kind : of its value.
    kinds : of the axes in it, by name.
    computed : its value.
    divisors : values of whatever is divided by in it.
    """

    text: str
    kind: str
    kinds: Mapping[str, str]
    computed: Value
    divisors: tuple[Value, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Functions do not go to other processes: it is parsed again there."""
        return parse_expression, (self.text, self.kinds)

    @property
    def names(self) -> frozenset[str]:
        """Axes in it."""
        return frozenset(self.kinds)

    def value(self, values: Mapping[str, Any]) -> Any:
        """Its value; names stand for numbers, text, truth values, or arrays of them.

        Raises
        ------
        SpecError
            For a division by zero of single numbers.

        Examples
        --------
        >>> parse_expression("4096 / tp", {"tp": NUMBER}).value({"tp": 16})
        256
        """
        try:
            return self.computed(values)
        except (ArithmeticError, ValueError) as error:
            got = f"got {error} in {self.text!r}"
            raise SpecError(Fault(got, "expected a finite number")) from None

    def divides_by_zero(self, values: Mapping[str, Any]) -> Any:
        """Whether any divisor in it is zero, even in a part that would not matter."""
        zeros = (divisor(values) == 0 for divisor in self.divisors)
        return reduce(operator.or_, zeros, False)


def passing(filters: Iterable[Expression], values: Mapping[str, Any], n: int) -> Mask:
    """Which of n designs meet all filters, shape (n,); a division by zero meets none.

    ``values`` has an array, shape (n,), of every name in them.
    """
    mask = np.ones(n, dtype=bool)
    with np.errstate(all="ignore"):
        for one in filters:
            mask &= one.value(values)
            mask &= np.logical_not(one.divides_by_zero(values))
    return mask


def parse_filter(text: str, kinds: Mapping[str, str], noun: str = "axis") -> Expression:
    """Parse what designs have to meet, such as ``where`` of a sweep file; as an expression.

    Raises
    ------
    SpecError
        For what is no comparison, or has no name of ``kinds`` in it.
    """
    expression = parse_expression(text, kinds, noun)
    if expression.kind != TRUTH:
        got = f"got {text!r}, {with_article(expression.kind)}"
        raise SpecError(Fault(got, "expected a comparison", "write e.g. tp * dp == 4096"))
    if not expression.names:
        plural = {"axis": "axes"}.get(noun, f"{noun}s")
        fix = f"{plural}: {', '.join(kinds)}"
        raise SpecError(Fault(f"got {text!r}", f"expected {with_article(noun)} in it", fix))
    return expression


_NAME_WITH_DASHES = re.compile(r"([\w.]+)\s*([=!]=)\s*([A-Za-z][\w.]*(?:-[\w.]+)+)")
"""Text that nobody quoted, such as the name of a model."""
_WITH_UNIT = re.compile(
    r"([<>=]=?\s*[\d.]+)\s*(?:[kMGT]?(?:B/s|bps|bit/s|\$|USD|B)|[mu]?s|%)(?=\s*(?:$|\)|and\b|or\b))"
)
_NUMBER_ALONE = r"\1"


def _hint(text: str) -> str:
    """What to write in place of text without quotes, or of a number with its unit.

    >>> _hint("model == qwen3-32b"), _hint("nic >= 50 GB/s and tp > 1"), _hint("a b")
    ("quote text: model == 'qwen3-32b'", 'leave the unit out: nic >= 50 and tp > 1', '')
    """
    plain = _QUOTED.sub("", text)
    if found := _NAME_WITH_DASHES.search(plain):
        return f"quote text: {found[1]} {found[2]} '{found[3]}'"
    bare = _WITH_UNIT.sub(_NUMBER_ALONE, text)
    return f"leave the unit out: {bare}" if _WITH_UNIT.search(plain) else ""


def whole_text_fix(texts: Iterable[str], axes: Iterable[Sequence[Any]]) -> str:
    """What to write where a filter has a rule without quotes that is a value of an axis.

    Parameters
    ----------
    texts : filters that are wrong.
    axes : name and values of each axis.

    Examples
    --------
    >>> whole_text_fix(["tp > 1 and taper(spine)==2"], [("rule", ["taper(spine) == 2"])])
    "write rule == 'taper(spine) == 2'"
    """
    bare = ["".join(_QUOTED.sub("", text).split()) for text in texts]
    for name, values, *_ in axes:
        rules = (one for one in values if isinstance(one, str) and re.search("[<>=]", one))
        for rule in rules:
            if any("".join(rule.split()) in text for text in bare):
                return f"write {name} == {rule!r}"
    return ""


_EQUALS = re.compile(r"(?<![=!<>:])=(?!=)")
"""What takes a value in other languages, and SQL for ``==``."""
_QUOTED = re.compile("\"[^\"]*(\"|$)|'[^']*('|$)")


def parse_expression(text: str, kinds: Mapping[str, str], noun: str = "axis") -> Expression:
    """Parse an expression over axes.

    Parameters
    ----------
    text : the expression.
    kinds : kind of every axis by name.
    noun : what names are of, for messages.

    Raises
    ------
    SpecError
        For text outside the language, unknown names, or kinds that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> rule = parse_expression("tp * dp == 64 and tp % 2 == 0", {"tp": NUMBER, "dp": NUMBER})
    >>> rule.value({"tp": np.array([1.0, 2.0, 8.0]), "dp": np.array([64.0, 32.0, 9.0])})
    array([False,  True, False])
    """
    if len(text) > LONGEST:
        raise SpecError(Fault(f"got {len(text)} characters", f"expected at most {LONGEST}"))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        parser = _Parser(text, kinds, noun)
        kind, computed = parser.parsed(tree)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or "too deep"
        expected = "expected an expression such as tp * dp == 4096"
        if _EQUALS.search(_QUOTED.sub("", text)):
            raise SpecError(Fault(f"got {text!r}, with one =", expected, "use ==")) from None
        raise SpecError(Fault(f"got {text!r} ({reason})", expected, _hint(text))) from None
    own = {name: kinds[name] for name in parser.names}
    return Expression(text, kind, own, computed, tuple(parser.divisors))


WHOLE_TEXTS = (
    "what only some designs have may be an axis of whole texts, such as rule: "
    "['taper(spine) == 2', 'leaf >= 0 GB/s'], with a where that says which goes with which"
)
"""How designs differ in more than a number."""


@dataclass(frozen=True)
class _Parser:
    """Kinds and values of a tree's nodes; raises for what the language does not have."""

    text: str
    kinds: Mapping[str, str]
    noun: str = "axis"
    names: set[str] = field(default_factory=set)
    divisors: list[Value] = field(default_factory=list)

    def fault(self, got: str, expected: str = "", fix: str = "") -> SpecError:
        return SpecError(Fault(f"got {got} in {self.text!r}", expected, fix))

    def parsed(self, node: ast.expr) -> tuple[str, Value]:
        """The kind of a node's value, and the value."""
        name = axis_name(node)
        if name is not None:
            return self.named(name)
        parse = _PARSERS.get(type(node))
        if parse is None:
            expected = "expected numbers, axes, + - * / // %, comparisons, and, or, not"
            raise self.fault(f"{ast.unparse(node)!r}", expected)
        return parse(self, node)

    def named(self, name: str) -> tuple[str, Value]:
        if name in self.kinds:
            self.names.add(name)
            return self.kinds[name], operator.itemgetter(name)
        if name in WORDS:
            return TRUTH, lambda _: WORDS[name]
        fix = closest(name, self.kinds)
        raise self.fault(f"the name {name!r}", f"expected {with_article(self.noun)}", fix)

    def need(self, node: ast.expr, *allowed: str) -> tuple[str, Value]:
        """The same of a node whose kind has to be one of some."""
        kind, value = self.parsed(node)
        if kind not in allowed:
            expected = f"expected a {' or '.join(allowed)}"
            raise self.fault(f"{ast.unparse(node)!r}, a {kind}", expected)
        return kind, value

    def values(self, nodes: Sequence[ast.expr], kind: str) -> list[Value]:
        """Values of nodes of one kind."""
        return [self.need(node, kind)[1] for node in nodes]

    def constant(self, node: ast.Constant) -> tuple[str, Value]:
        value = node.value
        if isinstance(value, bool | str):
            return TRUTH if isinstance(value, bool) else TEXT, lambda _: value
        if isinstance(value, int | float) and math.isfinite(value):
            return NUMBER, lambda _: value
        raise self.fault(f"{ast.unparse(node)}", "expected a number or text")

    def binary(self, node: ast.BinOp) -> tuple[str, Value]:
        if type(node.op) not in ARITHMETIC:
            raise self.fault(f"{ast.unparse(node)!r}", "expected one of + - * / // %")
        sides = self.values([node.left, node.right], NUMBER)
        if isinstance(node.op, _DIVISIONS):
            self.divisors.append(sides[1])
        return NUMBER, _applied(ARITHMETIC[type(node.op)], *sides)

    def unary(self, node: ast.UnaryOp) -> tuple[str, Value]:
        if isinstance(node.op, ast.Invert):
            raise self.fault("'~'", "expected not")
        kind, operate = UNARY[type(node.op)]
        return kind, _applied(operate, *self.values([node.operand], kind))

    def logic(self, node: ast.BoolOp) -> tuple[str, Value]:
        combine = _both if isinstance(node.op, ast.And) else _either
        return TRUTH, _applied(combine, *self.values(node.values, TRUTH))

    def comparison(self, node: ast.Compare) -> tuple[str, Value]:
        sides = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        parts = []
        for left, compare, right in sides:
            if isinstance(compare, ast.In | ast.NotIn):
                parts.append(self.membership(left, right, isinstance(compare, ast.NotIn)))
            elif type(compare) in COMPARISONS:
                kind, one = self.need(left, NUMBER, TEXT, TRUTH)
                parts.append(_applied(COMPARISONS[type(compare)], one, *self.values([right], kind)))
            else:
                raise self.fault(f"{ast.unparse(node)!r}", "expected one of < <= == != >= > in")
        return TRUTH, _applied(_both, *parts)

    def membership(self, left: ast.expr, right: ast.expr, is_negated: bool) -> Value:
        kind, one = self.need(left, NUMBER, TEXT)
        if isinstance(right, ast.Tuple | ast.List):
            find, members = _is_among, self.values(right.elts, kind)
        else:
            find, members = _is_part, self.values([right], kind)
            if kind != TEXT:
                raise self.fault(f"{ast.unparse(right)!r}", "expected a list after in")
        found = _applied(find, one, *members)
        return _applied(np.logical_not, found) if is_negated else found

    def choice(self, node: ast.IfExp) -> tuple[str, Value]:
        _, test = self.need(node.test, TRUTH)
        kind, body = self.parsed(node.body)
        other_kind, orelse = self.parsed(node.orelse)
        if other_kind != kind:
            fix = f"both values of an if are of one kind, here a {kind}"
            got = f"{ast.unparse(node.orelse)!r}, a {other_kind}"
            raise self.fault(got, f"expected a {kind}", f"{fix}; {WHOLE_TEXTS}")

        def chosen(values: Mapping[str, Any]) -> Any:
            which = test(values)
            if isinstance(which, np.ndarray):
                return np.where(which, body(values), orelse(values))
            return body(values) if which else orelse(values)

        return kind, chosen

    def call(self, node: ast.Call) -> tuple[str, Value]:
        name = axis_name(node.func) or ""
        if name not in FUNCTIONS:
            raise self.fault(f"the function {name!r}", "", closest(name, FUNCTIONS))
        kind, n_expected, function = FUNCTIONS[name]
        if node.keywords or not node.args or n_expected not in (None, len(node.args)):
            raise self.fault(f"{ast.unparse(node)!r}", f"expected {n_expected or 'some'} arguments")
        return NUMBER, _applied(function, *self.values(node.args, kind))


def _applied(function: Callable[..., Any], *arguments: Value) -> Value:
    return lambda values: function(*(one(values) for one in arguments))


def _both(*values: Any) -> Any:
    return reduce(np.logical_and, values)


def _either(*values: Any) -> Any:
    return reduce(np.logical_or, values)


def _is_among(value: Any, *members: Any) -> Any:
    return _either(np.zeros(np.shape(value), dtype=bool), *(value == one for one in members))


def _is_part(value: Any, text: Any) -> Any:
    return np.char.find(text, value) >= 0


_PARSERS: dict[type[ast.expr], Callable[[_Parser, Any], tuple[str, Value]]] = {
    ast.Constant: _Parser.constant,
    ast.BinOp: _Parser.binary,
    ast.UnaryOp: _Parser.unary,
    ast.BoolOp: _Parser.logic,
    ast.Compare: _Parser.comparison,
    ast.IfExp: _Parser.choice,
    ast.Call: _Parser.call,
}
