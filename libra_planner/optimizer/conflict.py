"""Why no combination of purchasable speeds meets the rules: an irreducible set of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Infeasible
from libra_planner.optimizer.combinations import Combinations, late, meets, meets_all
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.timing.expression import Mask
from libra_planner.units import format_time

Key: TypeAlias = tuple[str, int | None]
"""Text and line of a rule: the parts of a chain ``a <= x <= b`` share one."""


def key(rule: Rule | StepTimeLimit) -> Key:
    """What a rule is known by."""
    return rule.text, rule.line


def all_rules(problem: Problem) -> list[Rule | StepTimeLimit]:
    """Linear rules, then step-time limits."""
    return [*problem.rules, *problem.step_time_limits]


def conflict(space: Combinations) -> list[Key]:
    """Rules that no combination meets together, none of which can be left out.

    A deletion filter over the distinct sets of rules that combinations break: some rules
    can be met together when a combination breaks none of them.
    """
    problem = space.problem
    keys = list(dict.fromkeys(map(key, all_rules(problem))))
    patterns = _patterns(space, keys)
    kept = list(range(len(keys)))
    for i in range(len(keys)):
        without = [k for k in kept if k != i]
        if patterns[:, without].any(axis=1).all():
            kept = without
    return [keys[k] for k in kept]


def _patterns(space: Combinations, keys: list[Key]) -> Mask:
    """Distinct sets of broken rules, shape (n_patterns, n_keys)."""
    found = [_distinct(_packed(_broken(space, keys, start))) for start in space.starts]
    words = _distinct(np.concatenate(found))
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=len(keys))
    return bits.astype(np.bool_)


def _packed(broken: Mask) -> NDArray[np.uint64]:
    """Rows of flags as rows of 64-bit words."""
    flags = np.packbits(broken, axis=1)
    padding = -flags.shape[1] % 8
    return np.ascontiguousarray(np.pad(flags, ((0, 0), (0, padding)))).view(np.uint64)


def _distinct(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Distinct rows; those of one word sort ten times as fast as numbers."""
    if words.shape[1] == 1:
        return np.unique(words[:, 0])[:, None]
    return np.unique(words, axis=0)


def _broken(space: Combinations, keys: list[Key], start: int) -> Mask:
    problem, block = space.problem, space.block(start)
    broken = np.zeros((len(block.network_usd), len(keys)), dtype=np.bool_)
    for rule in problem.rules:
        broken[:, keys.index(key(rule))] |= ~meets(rule, block)
    step_time_s = problem.step_time.seconds(block.bandwidth)
    for limit in problem.step_time_limits:
        broken[:, keys.index(key(limit))] |= late(limit, step_time_s)
    return broken


def infeasible(space: Combinations) -> Infeasible:
    """The error for rules that no combination meets: names an irreducible set of them."""
    problem, keys = space.problem, conflict(space)
    rules = [rule for rule in all_rules(problem) if key(rule) in keys]
    fixes = [_equality_fix(rule) for rule in rules if isinstance(rule, Rule) and rule.sense == "=="]
    if any(isinstance(rule, StepTimeLimit) for rule in rules):
        least_s = _least_time_s(space, [rule for rule in rules if isinstance(rule, Rule)])
        fixes.append(f"allow at least {format_time(least_s, round_up=True)}")
    return refused(problem, rules, fixes)


def refused(
    problem: Problem, rules: Sequence[Rule | StepTimeLimit], fixes: Sequence[str]
) -> Infeasible:
    """The error that names ``rules`` and what to do about them."""
    keys = list(dict.fromkeys(map(key, rules)))
    several = len(keys) > 1
    names = " and ".join(f"'{text}'" + (f" (line {line})" if line else "") for text, line in keys)
    at = ":".join([problem.source, *(str(n) for n in (rules[0].line, rules[0].column) if n)])
    what = "rules" if several else "a rule"
    together = " together" if several else ""
    fix = ", or ".join([*fixes, f"loosen or remove {'one of them' if several else 'it'}"])
    message = (
        f"{at}: constraints: got {what} that no combination of purchasable speeds "
        f"(fabric.link_options) meets{together}: {names}; {fix}"
    )
    return Infeasible(message, tuple(text for text, _ in keys))


def _equality_fix(rule: Rule) -> str:
    loosened = rule.text.replace("==", "<=")
    return f"write '{loosened}', since sums of purchasable speeds rarely hit a value"


def _least_time_s(space: Combinations, rules: Sequence[Rule]) -> float:
    """Least step time of the combinations that meet some of the rules."""
    times = [np.inf]
    for start in space.starts:
        block = space.block(start)
        fits = meets_all(rules, block)
        if fits.any():
            times.append(float(space.problem.step_time.seconds(block.bandwidth[fits]).min()))
    return min(times)
