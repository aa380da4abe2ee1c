"""The designs at another budget: bandwidth and cost bounds moved, optimised again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import Problem, Rule
from libra_planner.procurement.candidate import Candidate, candidate
from libra_planner.procurement.ranking import SWING_FRACTION, Ranking, ranking


def is_budget(rule: Rule) -> bool:
    """Whether a rule bounds the total bandwidth, or the cost, from above."""
    if rule.sense == ">=":
        return False
    return rule.cost_factor > 0 or (rule.is_total and rule.unit == "GB/s")


def at_budget(problem: Problem, factor: float) -> Problem:
    """The problem with every budget times a factor.

    Parameters
    ----------
    problem : a fixed cost counts as part of a budget for cost, and stays.
    factor : above 0.
    """
    return replace(
        problem,
        rules=tuple(_scaled(rule, problem, factor) for rule in problem.rules),
        alternatives=tuple(at_budget(one, factor) for one in problem.alternatives),
    )


def _scaled(rule: Rule, problem: Problem, factor: float) -> Rule:
    if not is_budget(rule):
        return rule
    fixed = rule.cost_factor * problem.fixed_cost_usd
    return replace(rule, bound=factor * (rule.bound + fixed) - fixed)


@dataclass(frozen=True)
class BudgetSwing:
    """All designs at one factor on their budgets.

    Parameters
    ----------
    factor : such as 0.8.
    candidates : by design; as it was where the plan has no budget or the design was given;
        ``None`` where nothing meets the rules any more.
    ranking : of all, ``None`` if one is missing.
    before : the ranking at the budgets as they are, without checks.
    """

    factor: float
    candidates: tuple[Candidate | None, ...]
    ranking: Ranking | None
    before: Ranking

    @property
    def changes(self) -> bool:
        """Whether another design comes first anywhere."""
        return self.ranking is not None and self.ranking != self.before


def budget_swings(candidates: Sequence[Candidate], n_tokens: int) -> tuple[BudgetSwing, ...]:
    """The designs at budgets moved down and up; empty where no plan has a budget.

    Moved designs are not checked on their links, so that those before do not count as checked.
    """
    if not any(_can_move(one) for one in candidates):
        return ()
    before, found = ranking([replace(one, check=None) for one in candidates]), []
    for factor in (1 - SWING_FRACTION, 1 + SWING_FRACTION):
        moved = tuple(_moved(one, factor, n_tokens) for one in candidates)
        known = [one for one in moved if one is not None]
        ranks = ranking(known) if len(known) == len(moved) else None
        found.append(BudgetSwing(factor, moved, ranks, before))
    return tuple(found)


def _can_move(one: Candidate) -> bool:
    proposal = one.proposal
    return proposal.optimized and any(is_budget(rule) for rule in proposal.problem.rules)


def _moved(one: Candidate, factor: float, n_tokens: int) -> Candidate | None:
    proposal = one.proposal
    if not _can_move(one):
        return one if one.check is None else candidate(proposal, n_tokens=n_tokens)
    try:
        solution = solve(at_budget(proposal.problem, factor))
        bandwidth_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
        moved = replace(proposal, problem=solution.problem, bandwidth_Bps=bandwidth_Bps)
        return candidate(moved, n_tokens=n_tokens)
    except PlannerError:
        return None  # A reader is told that no design meets the moved budget.
