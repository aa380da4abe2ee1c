"""The expressions of filters and placeholders: Python's syntax, parsed and walked, never run.

Numbers, text, ``true`` and ``false``, names of axes, ``+ - * / // %``, comparisons (chains and
``in`` too), ``and``, ``or``, ``not``, ``a if condition else b``, and a few functions. One walk
serves a single design and an array over designs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.sweep.language import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    NUMBER,
    TEXT,
    TRUTH,
    WORDS,
    axis_name,
    value_of,
)

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
