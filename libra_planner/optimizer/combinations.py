"""Every combination of purchasable speeds, in blocks, and why none of them meets the rules.

Rules, cost and step time of a block of designs are a few NumPy operations each, so that
no Python runs per design. Combinations are numbered in lexicographic order of their
bandwidth vectors (dim1 counts first, slower before faster).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, Infeasible, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.timing.expression import Array, Mask
from libra_planner.units import format_time

_N_BLOCK = 1 << 16
"""Combinations at a time: their arrays stay small, and no Python runs per combination."""

_ROUNDING = 1e-12
"""Relative difference of objective or cost up to which two designs tie."""


class Best(NamedTuple):
    """The best combination, shape (n_dims,), and whether no other ties with it."""

    bandwidth_bytes_per_s: Array
    unique: bool


class Block(NamedTuple):
    """Some combinations: their bandwidths, bytes/s, shape (n, n_purchasable), and cost, (n,)."""

    bandwidth: Array
    network_usd: Array


@dataclass(frozen=True)
class Combinations:
    """All combinations of the options of a problem's purchasable dimensions.

    ``n_block`` of them are looked at together.
    """

    problem: Problem
    n_block: int = _N_BLOCK

    @property
    def n_combinations(self) -> int:
        """Product of the numbers of distinct speeds."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Distinct speeds of each dimension."""
        return tuple(len(options) for options in self.problem.purchasable.values())

    @cached_property
    def _speeds(self) -> list[Array]:
        listed = self.problem.purchasable.values()
        return [np.array([o.bandwidth_bytes_per_s for o in options]) for options in listed]

    @cached_property
    def _prices(self) -> list[Array]:
        listed = self.problem.purchasable.values()
        return [np.array([o.cost_usd for o in options]) for options in listed]

    def block(self, start: int, n: int | None = None) -> Block:
        """Combinations from number ``start`` on: ``n`` of them or a block, or what is left."""
        numbers = np.arange(start, min(start + (n or self.n_block), self.n_combinations))
        indices = np.unravel_index(numbers, self.shape)
        speeds = [speed[i] for speed, i in zip(self._speeds, indices, strict=True)]
        prices = [price[i] for price, i in zip(self._prices, indices, strict=True)]
        return Block(np.stack(speeds, axis=1), sum(prices, np.zeros(len(numbers))))

    def everything(self) -> Block:
        """All combinations, for those who know that they are few."""
        return self.block(0, self.n_combinations)

    def scores(self, start: int) -> tuple[Array, Array]:
        """Objective and tie-breaker of a block's designs, every dimension of which is bought.

        Both are infinite where a rule is broken; shapes (n,).
        """
        problem, block = self.problem, self.block(start)
        fits = np.flatnonzero(meets_all(problem.rules, block))
        cost_usd = problem.fixed_cost_usd + block.network_usd[fits]
        step_time_s = problem.step_time.seconds(block.bandwidth[fits])
        values = np.full((2, len(block.network_usd)), np.inf)
        values[0, fits] = objectives(problem, block.bandwidth[fits], step_time_s, cost_usd)
        values[1, fits] = tie_breaker(problem, step_time_s, cost_usd)
        for limit in problem.step_time_limits:
            values[:, fits[late(limit, step_time_s)]] = np.inf
        return values[0], values[1]

    @property
    def starts(self) -> Sequence[int]:
        """First combination of each block."""
        return range(0, self.n_combinations, self.n_block)


def objectives(problem: Problem, bandwidth: Array, step_time_s: Array, cost_usd: Array) -> Array:
    """The plan's objective of many designs (C8), shape (n,).

    ``step_time_s`` is their step time, which a group's relative objective does not take.
    """
    formula: Any = OBJECTIVES[problem.objective]  # Arithmetic only: as good for arrays.
    time = problem.objective_time
    if time is None:
        got, expected = "got a relative objective", "expected the members' own optima as well"
        raise SpecError(Fault(got, expected, "set own_optima_s"))
    seconds = step_time_s if time is problem.step_time else time.seconds(bandwidth)
    values: Array = formula(seconds, cost_usd)
    return values


def tie_breaker(problem: Problem, step_time_s: Array, cost_usd: Array) -> Array:
    """What decides between equal objectives: cost, or time where the objective is cost (C9)."""
    return step_time_s if problem.objective == "cost" else cost_usd


def tied(values: Array, best: float) -> Mask:
    """Which values equal the best but for rounding."""
    return np.asarray(values <= best + _ROUNDING * abs(best))


def best_combination(space: Combinations) -> Best | None:
    """The least objective, then the cheapest, then the lexicographically first (C9).

    ``None`` when no combination meets the rules. Each stage goes through the blocks that
    the stage before it left over; with few ties that is one.
    """
    least = _least(space, space.starts, lambda objective, _: objective)
    best = min(least.values())
    if best == np.inf:
        return None
    blocks = [start for start, value in least.items() if tied(np.array(value), best)]
    least = _least(space, blocks, lambda objective, second: second[tied(objective, best)])
    cheapest = min(least.values())
    first, n_tied = None, 0
    for start in (start for start, value in least.items() if tied(np.array(value), cheapest)):
        objective, second = space.scores(start)
        hits = np.flatnonzero(tied(objective, best) & tied(second, cheapest))
        first = start + int(hits[0]) if first is None else first
        n_tied += len(hits)
        if n_tied > 1:
            break
    return Best(space.block(first or 0, 1).bandwidth[0], unique=n_tied == 1)


def _least(space: Combinations, starts: Sequence[int], values: Any) -> dict[int, float]:
    """Least value of each block, by its first combination."""
    return {start: float(values(*space.scores(start)).min()) for start in starts}


def meets(rule: Rule, block: Block) -> Mask:
    """Which combinations meet a linear rule, to 1e-9 relative (C9), shape (n,)."""
    if rule.cost_factor:
        left = rule.cost_factor * block.network_usd
        terms = np.abs(left)
    else:
        left = block.bandwidth @ np.array(rule.coefficients)
        terms = block.bandwidth @ np.abs(rule.coefficients)
    excess = {"<=": left - rule.bound, ">=": rule.bound - left}.get(
        rule.sense, np.abs(left - rule.bound)
    )
    return np.asarray(excess <= RULE_TOLERANCE * np.maximum(terms, abs(rule.bound)))


def meets_all(rules: Sequence[Rule], block: Block) -> Mask:
    """Which combinations meet all of some linear rules, shape (n,)."""
    fits = np.ones(len(block.network_usd), dtype=np.bool_)
    for rule in rules:
        fits &= meets(rule, block)
    return fits


def late(limit: StepTimeLimit, step_time_s: Array) -> Mask:
    """Which step times are longer than a limit, to 1e-9 relative (C9)."""
    return np.asarray(step_time_s > limit.limit_s * (1 + RULE_TOLERANCE))


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
