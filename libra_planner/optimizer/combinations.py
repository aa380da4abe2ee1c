"""Every combination of purchasable speeds, in blocks: the exhaustive search behind the catalogue.

Rules, cost and step time of a block of designs are a few NumPy operations each, so that
no Python runs per design. Combinations are numbered in lexicographic order of their
bandwidth vectors (dim1 counts first, slower before faster). Where none of them meets the
rules, the sets of rules that they break tell which ones conflict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, Infeasible, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer.programs.posedness import (
    AnyRule,
    irreducible,
    rule_key,
    rule_names,
    rule_place,
)
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Array, Mask
from libra_planner.units import format_time

_N_BLOCK = 1 << 16
"""Combinations at a time: their arrays stay small, and no Python runs per combination."""

_ROUNDING = 1e-12
"""Relative difference of objective or cost up to which two designs tie."""


class Best(NamedTuple):
    """The best design, shape (n_dims,), whether no other ties, and a proven bound if not itself."""

    bandwidth_bytes_per_s: Array
    unique: bool
    lower_bound: float = np.inf


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

    @staticmethod
    def loosened(_: Rule) -> str:
        """What an equality that no combination meets may say instead."""
        return "<="

    @property
    def is_whole(self) -> bool:
        """Whether every dimension is bought."""
        return len(self.problem.purchasable) == self.problem.topology.n_dims

    @property
    def shape(self) -> tuple[int, ...]:
        """Distinct speeds of each dimension."""
        return tuple(len(options) for options in self.problem.purchasable.values())

    @property
    def starts(self) -> Sequence[int]:
        """First combination of each block."""
        return range(0, self.n_combinations, self.n_block)

    @cached_property
    def _columns(self) -> tuple[list[Array], list[Array]]:
        """Speeds and prices of each dimension."""
        listed = self.problem.purchasable.values()
        speeds = [np.array([o.bandwidth_bytes_per_s for o in options]) for options in listed]
        return speeds, [np.array([o.cost_usd for o in options]) for options in listed]

    def block(self, start: int, n: int | None = None) -> Block:
        """Combinations from number ``start`` on: ``n`` of them or a block, or what is left."""
        numbers = np.arange(start, min(start + (n or self.n_block), self.n_combinations))
        indices = np.unravel_index(numbers, self.shape)
        speeds, prices = (
            [listed[i] for listed, i in zip(column, indices, strict=True)]
            for column in self._columns
        )
        return Block(np.stack(speeds, axis=1), sum(prices, np.zeros(len(numbers))))

    def scores(self, start: int) -> tuple[Array, Array]:
        """Objective and tie-breaker of a block's designs, every dimension of which is bought.

        Both are infinite where a rule is broken; shapes (n,).
        """
        problem, block = self.problem, self.block(start)
        fits = np.flatnonzero(meets(problem, problem.rules, block))
        cost_usd = problem.fixed_cost_usd + block.network_usd[fits]
        step_time_s = problem.step_time.seconds(block.bandwidth[fits])
        values = np.full((2, len(block.network_usd)), np.inf)
        values[0, fits] = objectives(problem, block.bandwidth[fits], step_time_s, cost_usd)
        values[1, fits] = tie_breaker(problem, step_time_s, cost_usd)
        for limit in problem.step_time_limits:
            values[:, fits[late(limit, step_time_s)]] = np.inf
        return values[0], values[1]


def objectives(problem: Problem, bandwidth: Array, step_time_s: Array, cost_usd: Array) -> Array:
    """The plan's objective of many designs (C8), shape (n,).

    ``step_time_s`` is their step time, which a group's relative objective does not take.
    """
    time = problem.objective_time
    if time is None:
        got, expected = "got a relative objective", "expected the members' own optima as well"
        raise SpecError(Fault(got, expected, "set own_optima_s"))
    seconds = step_time_s if time is problem.step_time else time.seconds(bandwidth)
    return np.asarray(OBJECTIVES[problem.objective](seconds, cost_usd))


def tie_breaker(problem: Problem, step_time_s: Array, cost_usd: Array) -> Array:
    """What decides between equal objectives: cost, or time where the objective is cost (C9)."""
    return step_time_s if problem.objective == "cost" else cost_usd


def _tied(values: Array, best: float) -> Mask:
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
    blocks = [start for start, value in least.items() if _tied(np.array(value), best)]
    least = _least(space, blocks, lambda objective, second: second[_tied(objective, best)])
    cheapest = min(least.values())
    hits: list[int] = []
    for start in (start for start, value in least.items() if _tied(np.array(value), cheapest)):
        objective, second = space.scores(start)
        found = np.flatnonzero(_tied(objective, best) & _tied(second, cheapest))
        hits += (start + found[:2]).tolist()
        if len(hits) > 1:
            break
    return Best(space.block(hits[0], 1).bandwidth[0], unique=len(hits) == 1)


def _least(
    space: Combinations, starts: Sequence[int], values: Callable[[Array, Array], Array]
) -> dict[int, float]:
    """Least value of each block, by its first combination."""
    return {start: float(values(*space.scores(start)).min()) for start in starts}


def rest_of_rule(rule: Rule, discrete: list[int], block: Block) -> tuple[Array, Array, Array]:
    """A rule over the other dimensions: coefficients (n_dims,), bounds and slack, (n,).

    What the ``discrete`` dimensions of the block contribute is on the right side; in a rule over
    cost that is the price of their options. The slack is 1e-9 of the rule's size (C9).
    """
    coefficients = np.array(rule.coefficients)
    if rule.cost_factor:
        bought = rule.cost_factor * block.network_usd
        size = np.abs(bought)
    else:
        bought = block.bandwidth @ coefficients[discrete]
        size = block.bandwidth @ np.abs(coefficients[discrete])
    coefficients[discrete] = 0.0
    slack = RULE_TOLERANCE * np.maximum(size, abs(rule.bound))
    return coefficients, rule.bound - bought, slack


def meets(problem: Problem, rules: Sequence[Rule], block: Block) -> Mask:
    """Which combinations meet linear rules over bought dimensions, to 1e-9 (C9), shape (n,)."""
    fits = np.ones(len(block.network_usd), dtype=np.bool_)
    for rule in rules:
        _, room, slack = rest_of_rule(rule, list(range(problem.topology.n_dims)), block)
        excess = {"<=": -room, ">=": room}.get(rule.sense, np.abs(room))
        fits &= excess <= slack
    return fits


def late(limit: StepTimeLimit, step_time_s: Array) -> Mask:
    """Which step times are longer than a limit, to 1e-9 relative (C9)."""
    return np.asarray(step_time_s > limit.limit_s * (1 + RULE_TOLERANCE))


def infeasible(space: Combinations) -> Infeasible:
    """The error for rules that no combination meets: names an irreducible set of them.

    A deletion filter over the distinct sets of rules that combinations break: some rules
    can be met together when a combination breaks none of them.
    """
    problem = space.problem
    rules: list[AnyRule] = [*problem.rules, *problem.step_time_limits]
    words = _distinct(np.concatenate([_distinct(_broken(space, rules, n)) for n in space.starts]))
    patterns = np.unpackbits(words.view(np.uint8), axis=1, count=len(rules)).astype(np.bool_)

    def met(kept: Sequence[AnyRule]) -> bool:
        columns = [rules.index(rule) for rule in kept]
        return not np.all(patterns[:, columns].any(axis=1))

    kept = irreducible(rules, met)
    linear = [rule for rule in kept if isinstance(rule, Rule)]
    what = "whole links" if problem.prices.bills is not None else "sums of purchasable speeds"
    fixes = [
        f"write '{rule.text.replace('==', space.loosened(rule))}', since {what} rarely hit a value"
        for rule in linear
        if rule.sense == "=="
    ]
    if len(linear) < len(kept):
        least_s = _least_time_s(space, linear)
        fixes.append(f"allow at least {format_time(least_s, round_up=True)}")
    elif problem.prices.bills is not None and any(rule.cost_factor for rule in linear):
        others = [rule for rule in linear if not rule.cost_factor]
        blocks = map(space.block, space.starts)
        bills = [x.network_usd[meets(problem, others, x)].min(initial=np.inf) for x in blocks]
        fixes.append(f"allow at least ${math.ceil(min(bills)):,}, the least bill")
    return refused(problem, kept, fixes)


def refused(problem: Problem, rules: Sequence[AnyRule], fixes: Sequence[str] = ()) -> Infeasible:
    """The error that names conflicting ``rules`` and what to do about them."""
    texts = [text for text, _ in dict.fromkeys(map(rule_key, rules))]
    what, one, together = "a rule", "it", ""
    bought = "combination of purchasable speeds (fabric.link_options)"
    if problem.prices.bills is not None:
        bought = "option of fabric.bill_options, as built from whole links,"
    if len(texts) > 1:
        what, one, together = "rules", "one of them", " together"
    fix = ", or ".join([*fixes, f"loosen or remove {one}"])
    message = (
        f"{rule_place(problem, rules[0])}got {what} that no {bought} meets{together}: "
        f"{rule_names(rules)}; {fix}"
    )
    return Infeasible(message, tuple(texts))


def _distinct(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Distinct rows; those of one word sort ten times as fast as numbers."""
    if words.shape[1] == 1:
        return np.unique(words[:, 0])[:, None]
    return np.unique(words, axis=0)


def _broken(space: Combinations, rules: Sequence[AnyRule], start: int) -> NDArray[np.uint64]:
    """Which rules each combination of a block breaks, a bit each in 64-bit words."""
    problem, block = space.problem, space.block(start)
    step_time_s = problem.step_time.seconds(block.bandwidth)
    broken = [
        ~meets(problem, [rule], block) if isinstance(rule, Rule) else late(rule, step_time_s)
        for rule in rules
    ]
    flags = np.packbits(np.stack(broken, axis=1), axis=1)
    padding = -flags.shape[1] % 8
    return np.ascontiguousarray(np.pad(flags, ((0, 0), (0, padding)))).view(np.uint64)


def _least_time_s(space: Combinations, rules: Sequence[Rule]) -> float:
    """Least step time of the combinations that meet some of the rules."""
    times = [np.inf]
    for start in space.starts:
        block = space.block(start)
        fits = meets(space.problem, rules, block)
        if fits.any():
            times.append(float(space.problem.step_time.seconds(block.bandwidth[fits]).min()))
    return min(times)
