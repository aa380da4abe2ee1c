"""The best of what can be bought as whole parts, at the exact money of the bill (C22), proven.

A bill is not linear in bandwidth, nor a sum over dimensions: spares are rounded up, racks follow
from power. Every option has its exact bill before the search; step time, rules and objective of all
of them are a few NumPy operations, so the best one is its own lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from libra_planner.costs.bills import BillTable
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.combinations import Block, Combinations, best_combination, infeasible
from libra_planner.optimizer.design import Design, FrontierPoint
from libra_planner.problem import Problem, Rule
from libra_planner.step.expression import Array

_ROUNDING = 1e-12
"""Relative difference of figures that is rounding."""


@dataclass(frozen=True)
class BillDesign(Design):
    """The best option, and all that meet the rules.

    Parameters
    ----------
    row : its place in the table of bills.
    cost_usd : its bill.
    n_combinations : options, all of which were priced and compared.
    ranked : rows of the options that meet the rules, best first, shape (n,).
    objectives : of these, shape (n,).
    """

    row: int
    cost_usd: float
    n_combinations: int
    ranked: NDArray[np.int64]
    objectives: Array


@dataclass(frozen=True)
class _Options(Combinations):
    """The options of a table in the place of combinations of speeds: their cost is their bill."""

    @staticmethod
    def loosened(rule: Rule) -> str:
        """Whole links carry at least what is asked, so that a taper is at most what is asked."""
        return ">=" if rule.tier is None else "<="

    @property
    def table(self) -> BillTable:
        """Of the plan."""
        bills = self.problem.prices.bills
        if bills is None:
            got, expected = "got a plan that is priced by its bill", "expected the bills"
            fix = "read it by libra_planner.load_plan, which prices its options"
            place = self.problem.place("prices")
            raise SpecError(Fault(got, expected, fix, "prices", place))
        return bills

    @property
    def n_combinations(self) -> int:
        """All options."""
        return len(self.table.options)

    @property
    def is_whole(self) -> bool:
        """An option says all bandwidths."""
        return True

    def block(self, start: int, n: int | None = None) -> Block:
        """Options from a row on."""
        rows = slice(start, start + (n or self.n_block))
        return Block(self.table.bandwidth_Bps[rows], self.table.usd[rows])


def optimize_bills(problem: Problem) -> BillDesign:
    """The option with the least objective; of equal ones the cheapest, then the first (C9).

    Raises
    ------
    Infeasible
        When none meets the rules; names those that leave nothing.
    SpecError
        For a plan whose options have no bills yet.
    """
    space = _Options(problem)
    best = best_combination(space)
    if best is None:
        raise infeasible(space)
    values, ties = _scores(space)
    ranked = np.lexsort((ties, values))[: int(np.isfinite(values).sum())]
    row = int(space.table.rows(best.bandwidth_bytes_per_s))
    objective = float(values[row])
    return BillDesign(
        bandwidth_bytes_per_s=best.bandwidth_bytes_per_s,
        objective=objective,
        lower_bound=objective,
        unique=best.unique or _is_one(space.table, values, ties, row),
        max_violation=max_violation(problem, best.bandwidth_bytes_per_s),
        row=row,
        cost_usd=float(space.table.usd[row]),
        n_combinations=space.n_combinations,
        ranked=np.concatenate([[row], ranked[ranked != row]]),
        objectives=np.concatenate([[objective], values[ranked[ranked != row]]]),
    )


def _is_one(table: BillTable, values: Array, ties: Array, row: int) -> bool:
    """Whether all options as good as one are the same links: tapers that round alike."""
    same = (values <= values[row] * (1 + _ROUNDING)) & (ties <= ties[row] * (1 + _ROUNDING))
    options = [table.options[i] for i in np.flatnonzero(same)]
    return len({(x.n_nics, x.nic_Bps, x.switch_radix, x.bandwidth_Bps) for x in options}) == 1


def _scores(space: _Options) -> tuple[Array, Array]:
    """Objective and tie-breaker of every option, infinite where a rule is broken, (n,) each."""
    blocks = [space.scores(start) for start in space.starts]
    values, ties = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return values, ties


def frontier_of_bills(problem: Problem) -> tuple[FrontierPoint, ...]:
    """The options that meet the rules and that none is both cheaper and faster than.

    From the cheapest to the fastest; of equal ones the first.

    Raises
    ------
    Infeasible
        When none meets the rules.
    """
    design = optimize_bills(problem)
    table, found = _Options(problem).table, []
    step_time_s = problem.step_time.seconds(table.bandwidth_Bps)
    fastest_s = np.inf
    for row in sorted(design.ranked.tolist(), key=lambda i: (table.usd[i], step_time_s[i], i)):
        if step_time_s[row] < fastest_s:
            fastest_s = float(step_time_s[row])
            bandwidth, usd = table.bandwidth_Bps[row], float(table.usd[row])
            found.append(FrontierPoint(bandwidth, fastest_s, usd, 0.0))
    return tuple(found)
