"""Rules that cannot be met together: an irreducible set of them, and how it is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from libra_planner.problem import Problem, Rule, StepTimeLimit

AnyRule: TypeAlias = Rule | StepTimeLimit
_R = TypeVar("_R", Rule, StepTimeLimit, AnyRule)


def rule_key(rule: AnyRule) -> tuple[str, int | None]:
    """Text and line: the parts of a chain ``a <= x <= b`` share them."""
    return rule.text, rule.line


def irreducible(rules: Sequence[_R], meets: Callable[[Sequence[_R]], bool]) -> tuple[_R, ...]:
    """Conflicting rules of which none can be left out (deletion filter).

    The parts of a chain are one rule: they are kept or left out together.

    Examples
    --------
    >>> rules = [StepTimeLimit(text, 1.0) for text in ("a", "b", "c")]
    >>> found = irreducible(rules, lambda kept: len({"a", "c"} & {rule.text for rule in kept}) < 2)
    >>> [rule.text for rule in found]
    ['a', 'c']
    """
    kept = list(rules)
    for key in dict.fromkeys(map(rule_key, rules)):
        without = [rule for rule in kept if rule_key(rule) != key]
        if not meets(without):
            kept = without
    return tuple(kept)


def rule_names(rules: Sequence[AnyRule]) -> str:
    """Rules by text and line, a chain once."""
    keys = dict.fromkeys(map(rule_key, rules))
    return " and ".join(f"'{text}'" + (f" (line {line})" if line else "") for text, line in keys)


def rule_place(problem: Problem, rule: AnyRule) -> str:
    """How a message about a rule begins."""
    position = [str(n) for n in (rule.line, rule.column) if n is not None]
    return ":".join([problem.source, *position]) + ": constraints: "
