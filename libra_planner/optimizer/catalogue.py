"""The best combination of purchasable speeds, proven, and what it loses to any bandwidth.

When every dimension is bought from a catalogue, all combinations are evaluated
(:mod:`libra_planner.optimizer.combinations`): the best one is its own lower bound. When
some dimensions are continuous, or there are too many combinations for that, branch and
bound calls a continuous optimizer (:mod:`libra_planner.optimizer.branching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from libra_planner.costs.options import LinkOption, find_options
from libra_planner.errors import PlannerError, SolverFailed
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.branching import Solve, best_branch, can_be_met
from libra_planner.optimizer.combinations import (
    Best,
    Combinations,
    best_combination,
    infeasible,
    objectives,
    refused,
)
from libra_planner.optimizer.conflict import AnyRule, irreducible
from libra_planner.optimizer.design import Design
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Array

MAX_COMBINATIONS = 200_000_000
"""Combinations that are evaluated one by one: about a minute on one core."""


@dataclass(frozen=True)
class CatalogueDesign(Design):
    """The best combination of purchasable speeds and the proof that it is the best.

    Its ``lower_bound`` is the objective itself where all combinations were evaluated.

    Parameters
    ----------
    options : what each dimension buys; ``None`` for a continuous one.
    cost_usd : cost of the options, of the continuous dimensions and the fixed cost.
    n_combinations : of purchasable speeds, all of which are accounted for.
    continuous : the optimum under the same rules, at the price book's linear prices, when every
        bandwidth could be bought.
    no_continuous : why there is none to compare with, else empty.
    """

    options: tuple[LinkOption | None, ...]
    cost_usd: float
    n_combinations: int
    continuous: Design | None = None
    no_continuous: str = ""

    @property
    def loss_vs_continuous(self) -> float | None:
        """Objective over the continuous optimum's, minus 1.

        Negative where the options are cheaper than the price book.
        """
        if self.continuous is None or not self.continuous.objective:
            return None
        return self.objective / self.continuous.objective - 1


def optimize_catalogue(problem: Problem, solve: Solve) -> CatalogueDesign:
    """The best purchasable design, and how much better a continuous one would be.

    Parameters
    ----------
    problem : with options for at least one dimension, and with the members' own optima
        where a group's objective needs them.
    solve : the continuous optimizer.

    Raises
    ------
    Infeasible
        When no combination meets the rules; names those that conflict.
    IllPosed
        When no rule bounds a continuous dimension with traffic.
    SolverFailed
        When there are too many combinations to account for all of them.
    """
    whole = len(problem.purchasable) == problem.topology.n_dims
    few = whole and Combinations(problem).n_combinations <= MAX_COMBINATIONS
    design = best_purchasable(problem) if few else _branched(problem, solve)
    try:
        return replace(
            design, continuous=solve(replace(problem, prices=replace(problem.prices, options=())))
        )
    except PlannerError as error:
        return replace(design, no_continuous=str(error))


def best_purchasable(problem: Problem) -> CatalogueDesign:
    """The best combination when every dimension has options; needs no solver.

    Raises
    ------
    Infeasible, SolverFailed
        As :func:`optimize_catalogue`.

    Examples
    --------
    >>> from libra_planner.problem import Prices, Rule, plain_problem
    >>> from libra_planner.step.expression import TimeExpression, transfers
    >>> from libra_planner.fabric.topology import parse_topology
    >>> speeds = tuple(LinkOption(25e9, n, 1e6 * n) for n in (1, 2, 4))
    >>> total = Rule("total <= 130 GB/s", (1.0, 1.0), "<=", 130e9)
    >>> time, fabric = TimeExpression(transfers([9e9, 2e9]), 2), parse_topology("RI(4)_SW(8)")
    >>> prices = Prices((1.0, 1.0), options=(speeds, speeds))
    >>> problem = plain_problem(fabric, time, prices, (total,))
    >>> best_purchasable(problem).bandwidth_GBps
    [100.0, 25.0]
    """
    space = Combinations(problem)
    if space.n_combinations > MAX_COMBINATIONS:
        raise SolverFailed(
            f"{problem.at('fabric.link_options')}got {space.n_combinations:,} combinations, "
            f"expected at most {MAX_COMBINATIONS:,} to evaluate one by one; list fewer options"
        )
    best = best_combination(space)
    if best is None:
        raise infeasible(space)
    return _design(space, best)


def _branched(problem: Problem, solve: Solve) -> CatalogueDesign:
    best = best_branch(problem, solve)
    if best is not None:
        return _design(Combinations(problem), best)

    def met(kept: Sequence[AnyRule]) -> bool:
        rules = tuple(rule for rule in kept if isinstance(rule, Rule))
        limits = tuple(rule for rule in kept if isinstance(rule, StepTimeLimit))
        return can_be_met(replace(problem, rules=rules, step_time_limits=limits), solve)

    # None of them can be left out as far as could be told.
    raise refused(problem, irreducible([*problem.rules, *problem.step_time_limits], met))


def _design(space: Combinations, best: Best) -> CatalogueDesign:
    """The design with everything evaluated exactly at its vector (C9)."""
    problem, bandwidth = space.problem, best.bandwidth_bytes_per_s
    cost_usd = problem.cost_usd(bandwidth)
    step_time_s = problem.step_time.seconds(bandwidth)
    objective = float(objectives(problem, bandwidth, step_time_s, cost_usd))
    return CatalogueDesign(
        bandwidth_bytes_per_s=bandwidth,
        options=_bought(problem, bandwidth),
        objective=objective,
        cost_usd=float(cost_usd),
        n_combinations=space.n_combinations,
        lower_bound=min(best.lower_bound, objective),
        unique=best.unique,
        max_violation=max_violation(problem, bandwidth),
    )


def _bought(problem: Problem, bandwidth: Array) -> tuple[LinkOption | None, ...]:
    listed = [problem.purchasable.get(i) for i in range(len(bandwidth))]
    return tuple(
        options[int(find_options(options, value))] if options else None
        for options, value in zip(listed, bandwidth, strict=True)
    )
