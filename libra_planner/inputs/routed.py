"""Strategies of a plan that leaves them open, on their links under a routing policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from libra_planner.check.phases import CheckMemo
from libra_planner.check.rerouted import JudgedDesign
from libra_planner.errors import PlannerError
from libra_planner.inputs.plans import OpenedPlan, SearchedPlan
from libra_planner.plan.steps.strategies import degrees_text
from libra_planner.problem import Problem
from libra_planner.search.best import SearchResult
from libra_planner.search.rivals import rivals
from libra_planner.step.expression import Array
from libra_planner.workload.strategy import Strategy

Progress = Callable[[int, int], None]
DesignCheck = Callable[[Problem, CheckMemo], JudgedDesign]

MOST_STRATEGIES = 8
"""Strategies that are checked at most, the best in the model among them."""

_LEAST_EFFICIENCY = 1e-3
_IS_BEST = "the best on its links of the strategies that were checked there"


@dataclass(frozen=True)
class RoutedStrategy:
    """A strategy with the plan's own optimum for it, on its links.

    Parameters
    ----------
    strategy : itself.
    searched : the plan with it.
    checked : its design.
    """

    strategy: Strategy
    searched: SearchedPlan = field(repr=False)
    checked: JudgedDesign

    @property
    def step_time_s(self) -> float:
        """Mean on its links."""
        return float(self.checked.check.effective_step_time_s.mean())

    @property
    def words(self) -> str:
        """Degrees and chunks, for people."""
        chunks = int(self.strategy.interleave)
        return degrees_text(self.strategy) + f", {chunks} chunks" * (chunks > 1)


@dataclass(frozen=True)
class RoutedStrategies:
    """Strategies on their links.

    Parameters
    ----------
    ranked : the best on links first.
    best_in_model : of all strategies.
    n_left : of other degrees or numbers of chunks that were not checked, and whose step in the
        model, at the bandwidth of the best there, is shorter than that of the best on its links.
    """

    ranked: tuple[RoutedStrategy, ...]
    best_in_model: RoutedStrategy
    n_left: int

    @property
    def best(self) -> RoutedStrategy:
        """On links."""
        return self.ranked[0]


class _Checks:
    """Strategies that are checked one by one; the best so far keeps what it routed."""

    def __init__(self, check: DesignCheck) -> None:
        self.check, self.memo = check, CheckMemo()
        self.checked: list[RoutedStrategy] = []

    def add(self, strategy: Strategy, searched: SearchedPlan) -> None:
        """Check one more on its links."""
        memo = CheckMemo()
        one = RoutedStrategy(strategy, searched, self.check(searched.problem, memo))
        self.checked.append(one)
        if self.best is one:
            self.memo = memo

    @property
    def ranked(self) -> tuple[RoutedStrategy, ...]:
        """The best on links first."""
        designs = ((not one.checked.meets_limits, one.checked.objective) for one in self.checked)
        order = sorted(zip(designs, range(len(self.checked)), strict=True))
        return tuple(self.checked[i] for _, i in order)

    @property
    def best(self) -> RoutedStrategy:
        """On links."""
        return self.ranked[0]

    @property
    def limit_s(self) -> float:
        """A step at the cost of the first design that is as good as the best."""
        first = self.checked[0]
        return first.step_time_s * self.best.checked.objective / first.checked.objective


def routed_strategies(
    opened: OpenedPlan,
    searched: SearchedPlan,
    found: SearchResult,
    check: DesignCheck,
    progress: Progress | None = None,
) -> tuple[RoutedStrategies, CheckMemo]:
    """The best strategy of a plan's model, and those that may be better on links, checked there.

    Parameters
    ----------
    opened, searched, found : a plan that leaves its strategy open, and its best one.
    check : the design of a plan with its strategy on its links; keeps what it routes in a memo.
    progress : called with strategies that are checked, and how many will be at most.

    Returns
    -------
    strategies, memo : and what further checks of the best one share.

    Raises
    ------
    PlannerError
        Where the best in the model has no links that can be built or routed.
    """
    checks, best, unchecked = _Checks(check), found.best[0], []
    checks.add(best.strategy, searched)
    first = checks.best
    others = rivals(opened.search(), best, _efficiency(first), first.step_time_s)
    for strategy, step_time_s in others:
        if step_time_s >= checks.limit_s:
            continue
        if len(checks.checked) == MOST_STRATEGIES:
            unchecked.append(step_time_s)
            continue
        if progress:
            progress(len(checks.checked), min(1 + len(others), MOST_STRATEGIES))
        try:
            checks.add(strategy, opened.with_strategy(found, strategy, _IS_BEST))
        except PlannerError:  # Say, of rules that it meets at no bandwidth.
            unchecked.append(step_time_s)
    if progress:
        progress(len(checks.checked), len(checks.checked))
    n_left = sum(step_time_s < checks.limit_s for step_time_s in unchecked)
    return RoutedStrategies(checks.ranked, first, n_left), checks.memo


def _efficiency(one: RoutedStrategy) -> Array:
    """Share of each dimension's bandwidth that collectives get on the links, shape (n_dims,)."""
    means = np.array([x.efficiency.mean() for x in one.checked.check.dimensions])
    return np.clip(np.where(np.isnan(means), 1.0, means), _LEAST_EFFICIENCY, 1.0)
