"""The expressions of filters and placeholders: Python's syntax, parsed and walked, never run.

Numbers, text, ``true`` and ``false``, names of axes, ``+ - * / // %``, comparisons (chains and
``in`` too), ``and``, ``or``, ``not``, ``a if condition else b``, and a few functions. One walk
serves a single design and an array over designs.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from libra_planner.errors import Fault, PlannerError, SpecError, closest
from libra_planner.fabric.topology import parse_topology

NUMBER, TEXT, TRUTH, OTHER = "number", "text", "truth value", "map or list"
"""Kinds of values."""

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


def value_of(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Value of a checked tree; names stand for single values or arrays."""
    name = axis_name(node)
    if name is not None:
        return values[name] if name in values else WORDS[name]
    return _EVALUATIONS[type(node)](node, values)


def _binary(node: ast.BinOp, values: Mapping[str, Any]) -> Any:
    return ARITHMETIC[type(node.op)](value_of(node.left, values), value_of(node.right, values))


def _unary(node: ast.UnaryOp, values: Mapping[str, Any]) -> Any:
    operand = value_of(node.operand, values)
    if isinstance(node.op, ast.Not):
        return np.logical_not(operand)
    return -operand if isinstance(node.op, ast.USub) else operand


def _logic(node: ast.BoolOp, values: Mapping[str, Any]) -> Any:
    combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
    return reduce(combine, (value_of(part, values) for part in node.values))


def _comparison(node: ast.Compare, values: Mapping[str, Any]) -> Any:
    return reduce(np.logical_and, _compared(node, values))


def _compared(node: ast.Compare, values: Mapping[str, Any]) -> Iterator[Any]:
    left = value_of(node.left, values)
    for compare, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(compare, ast.In | ast.NotIn):
            found = _is_in(left, right, values)
            yield np.logical_not(found) if isinstance(compare, ast.NotIn) else found
            continue
        other = value_of(right, values)
        yield COMPARISONS[type(compare)](left, other)
        left = other


def _is_in(left: Any, right: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(right, ast.Tuple | ast.List):
        equal = [left == value_of(member, values) for member in right.elts]
        return reduce(np.logical_or, equal, np.zeros(np.shape(left), dtype=bool))
    return np.char.find(value_of(right, values), left) >= 0


def _choice(node: ast.IfExp, values: Mapping[str, Any]) -> Any:
    test = value_of(node.test, values)
    if not isinstance(test, np.ndarray):
        return value_of(node.body if test else node.orelse, values)
    return np.where(test, value_of(node.body, values), value_of(node.orelse, values))


def _call(node: ast.Call, values: Mapping[str, Any]) -> Any:
    arguments = [value_of(argument, values) for argument in node.args]
    return FUNCTIONS[axis_name(node.func) or ""][2](*arguments)


_EVALUATIONS: dict[type[ast.expr], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Constant: lambda node, _: node.value,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logic,
    ast.Compare: _comparison,
    ast.IfExp: _choice,
    ast.Call: _call,
}


LONGEST = 500
"""Most characters of an expression."""

_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Parameters
    ----------
    text : as written.
    kind : of its value.
    names : axes in it.
    tree : its syntax tree.
    """

    text: str
    kind: str
    names: frozenset[str]
    tree: ast.expr

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
            return value_of(self.tree, values)
        except (ArithmeticError, ValueError) as error:
            got = f"got {error} in {self.text!r}"
            raise SpecError(Fault(got, "expected a finite number")) from None

    def divides_by_zero(self, values: Mapping[str, Any]) -> Any:
        """Whether any divisor in it is zero, even in a part that would not matter."""
        zero: Any = False
        for node in ast.walk(self.tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, _DIVISIONS):
                zero = zero | (value_of(node.right, values) == 0)
        return zero


def parse_expression(text: str, kinds: Mapping[str, str]) -> Expression:
    """Parse an expression over axes.

    Parameters
    ----------
    text : the expression.
    kinds : kind of every axis by name.

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
        kind = _Checker(text, kinds).kind(tree)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or "too deep"
        expected = "expected an expression such as tp * dp == 4096"
        raise SpecError(Fault(f"got {text!r} ({reason})", expected)) from None
    names = frozenset(filter(None, map(axis_name, ast.walk(tree)))) & frozenset(kinds)
    return Expression(text, kind, names, tree)


@dataclass(frozen=True)
class _Checker:
    """Kinds of a tree's nodes; raises for what the language does not have."""

    text: str
    kinds: Mapping[str, str]

    def fault(self, got: str, expected: str = "", fix: str = "") -> SpecError:
        return SpecError(Fault(f"got {got} in {self.text!r}", expected, fix))

    def kind(self, node: ast.expr) -> str:
        """The kind of a node's value."""
        name = axis_name(node)
        if name is not None:
            return self._named(name)
        check = _CHECKS.get(type(node))
        if check is None:
            expected = "expected numbers, axes, + - * / // %, comparisons, and, or, not"
            raise self.fault(f"{ast.unparse(node)!r}", expected)
        return check(self, node)

    def _named(self, name: str) -> str:
        if name in self.kinds:
            return self.kinds[name]
        if name in WORDS:
            return TRUTH
        raise self.fault(f"the name {name!r}", "expected an axis", closest(name, self.kinds))

    def need(self, node: ast.expr, *allowed: str) -> str:
        """The kind of a node that has to be one of some."""
        kind = self.kind(node)
        if kind not in allowed:
            expected = f"expected a {' or '.join(allowed)}"
            raise self.fault(f"{ast.unparse(node)!r}, a {kind}", expected)
        return kind

    def constant(self, node: ast.Constant) -> str:
        value = node.value
        if isinstance(value, bool):
            return TRUTH
        if isinstance(value, int | float) and math.isfinite(value):
            return NUMBER
        if isinstance(value, str):
            return TEXT
        raise self.fault(f"{ast.unparse(node)}", "expected a number or text")

    def arithmetic(self, node: ast.BinOp) -> str:
        if type(node.op) not in ARITHMETIC:
            raise self.fault(f"{ast.unparse(node)!r}", "expected one of + - * / // %")
        self.need(node.left, NUMBER)
        return self.need(node.right, NUMBER)

    def unary(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Invert):
            raise self.fault("'~'", "expected not")
        return self.need(node.operand, TRUTH if isinstance(node.op, ast.Not) else NUMBER)

    def logic(self, node: ast.BoolOp) -> str:
        for part in node.values:
            self.need(part, TRUTH)
        return TRUTH

    def comparison(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        for left, compare, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(compare, ast.In | ast.NotIn):
                kind = self.need(left, NUMBER, TEXT)
                members = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
                for member in members:
                    self.need(member, kind)
                if members == [right] and kind != TEXT:
                    raise self.fault(f"{ast.unparse(right)!r}", "expected a list after in")
            elif type(compare) in COMPARISONS:
                self.need(right, self.need(left, NUMBER, TEXT, TRUTH))
            else:
                raise self.fault(f"{ast.unparse(node)!r}", "expected one of < <= == != >= > in")
        return TRUTH

    def choice(self, node: ast.IfExp) -> str:
        self.need(node.test, TRUTH)
        return self.need(node.orelse, self.kind(node.body))

    def call(self, node: ast.Call) -> str:
        name = axis_name(node.func) or ""
        if name not in FUNCTIONS:
            raise self.fault(f"the function {name!r}", "", closest(name, FUNCTIONS))
        kind, n_expected, _ = FUNCTIONS[name]
        if node.keywords or not node.args or n_expected not in (None, len(node.args)):
            raise self.fault(f"{ast.unparse(node)!r}", f"expected {n_expected or 'some'} arguments")
        for argument in node.args:
            self.need(argument, kind)
        return NUMBER


_CHECKS: dict[type[ast.expr], Callable[[_Checker, Any], str]] = {
    ast.Constant: _Checker.constant,
    ast.BinOp: _Checker.arithmetic,
    ast.UnaryOp: _Checker.unary,
    ast.BoolOp: _Checker.logic,
    ast.Compare: _Checker.comparison,
    ast.IfExp: _Checker.choice,
    ast.Call: _Checker.call,
}
