"""What the expressions of sweeps can compute, of single values and of arrays over designs."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.fabric.topology import parse_topology

NUMBER, TEXT, TRUTH, OTHER = "number", "text", "truth value", "map or list"
"""Kinds of values."""

WORDS = MappingProxyType({"true": True, "false": False})


def _divide(left: Any, right: Any) -> Any:
    """A quotient; of whole numbers a whole one where it is one, so that 4096 / tp is a degree."""
    whole = isinstance(left, int) and isinstance(right, int) and right != 0
    return left // right if whole and left % right == 0 else left / right


def _least(*values: Any) -> Any:
    return reduce(np.minimum, values) if _any_array(values) else min(values)


def _most(*values: Any) -> Any:
    return reduce(np.maximum, values) if _any_array(values) else max(values)


def _any_array(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, np.ndarray) for value in values)


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
    "min": (NUMBER, None, _least),
    "max": (NUMBER, None, _most),
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
