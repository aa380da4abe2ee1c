"""The frontier of cost and seconds per token over all strategies and fabrics, proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from libra_planner.errors import Infeasible
from libra_planner.optimizer.optimize import SLOWEST, optimize, pareto, refuse_options
from libra_planner.problem import Problem, Rule, StepTimeLimit
from libra_planner.search.best import Candidate, Known, Progress, Search, SearchResult, SearchRun
from libra_planner.search.excluded import Excluded
from libra_planner.search.fabrics import Fabrics, GivenFabric, PlannedFabrics
from libra_planner.search.space import Index
from libra_planner.step.expression import Array

POINTS = "points of the frontier"
"""What progress is told of."""

_CHEAPER = 1e-6
"""Share of a network's cost below which there is no other: the promise of an optimum (C9)."""
_ROOM = 1e-8
"""The same that the cheapest point may spend more, so that rounding leaves it possible."""
_LEAST_SHARE = 1e-6
"""Of the fastest network's cost: a network that costs nothing has no logarithm."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class StrategyFrontier:
    """The fastest strategy and fabric at each cost.

    Parameters
    ----------
    points : from the cheapest to the fastest; their objective is the step time.
    n_strategies : of the space, of which each search looks at all.
    n_points : budgets that were asked for, or options of a bill.
    results : of the searches.
    was_stopped : whether the user stopped it; the points that stand are proven.
    """

    points: tuple[Candidate, ...]
    n_strategies: int
    n_points: int
    results: tuple[SearchResult, ...] = field(repr=False)
    was_stopped: bool = False

    @property
    def total(self) -> SearchResult:
        """What became of all strategies, at all budgets together."""
        names = ("n_candidates", "n_not_fitting", "n_cut", "n_solved", "n_unproven")
        counts = {name: sum(getattr(one, name) for one in self.results) for name in names}
        return SearchResult(self.points, **counts, was_stopped=self.was_stopped)


def strategy_frontier(
    search: Search, problem: Problem, n_points: int = 25, progress: Progress | None = None
) -> StrategyFrontier:
    """Points evenly spaced in log cost, or all options of a bill that none beats (C22).

    It begins at the cheapest network on which any strategy meets the plan's step-time rules, else
    takes :data:`~libra_planner.optimizer.optimize.SLOWEST` times the fastest step. It ends at the
    fastest; where bandwidth has no bound, at the cost that is nearly as fast for the strategy that
    is fastest without waiting for any link.

    Every point is a search under a budget. From the largest budget to the smallest, bounds of one
    are bounds of the next: what costs less is among what costs more.

    Parameters
    ----------
    search : of the strategies; its fabrics do not matter.
    problem : the plan; its objective does not matter.
    n_points : 2 or more; fewer come back where the frontier is a point.
    progress : is told of points.

    Raises
    ------
    SpecError
        For a plan that buys from a catalogue.
    Infeasible
        Where no strategy meets the plan's rules.
    """
    refuse_options(problem)
    frontier = _Frontier(search, replace(problem, objective="performance"), n_points, progress)
    has_bills = problem.prices.bills is not None
    try:
        for point in frontier.of_bills() if has_bills else frontier.of_budgets():
            frontier.points.append(point)
    except KeyboardInterrupt:
        return frontier.result(was_stopped=True)
    return frontier.result()


class _Frontier:
    """A frontier while it is found."""

    def __init__(
        self, search: Search, problem: Problem, n_points: int, progress: Progress | None
    ) -> None:
        self.search, self.problem, self.progress = replace(search, n_best=1), problem, progress
        self.n_points, self.fabrics = n_points, PlannedFabrics(problem)
        self.points: list[Candidate] = []
        self.results: list[SearchResult] = []

    def result(self, *, was_stopped: bool = False) -> StrategyFrontier:
        """The points that no other beats."""
        found, fastest = [], np.inf
        for one in sorted(self.points, key=lambda x: (x.optimum.cost_usd, x.objective_per_token)):
            if one.objective_per_token < fastest * (1 - _ROUNDING):
                found.append(one)
                fastest = one.objective_per_token
        n, results = self.search.space.n, tuple(self.results)
        return StrategyFrontier(tuple(found), n, self.n_points, results, was_stopped)

    def of_bills(self) -> Iterator[Candidate]:
        """The best strategy of each option, the cheapest first."""
        corner, options = self._corner(), list(self._options())
        self.n_points, likely = len(options), corner.likely
        for i, fabric in enumerate(options, 1):
            known = corner._replace(likely=likely)
            found, after = self._best(fabric, known)
            likely = after.likely
            self._tell(i, len(options))
            if found is not None:
                yield found

    def _corner(self) -> Known:
        """Bounds at the greatest bandwidth that there is."""
        upper, fabrics = self.fabrics.whole.upper, self.fabrics
        given = GivenFabric(fabrics.network, fabrics.model, upper)
        run = SearchRun(replace(self.search, fabrics=given), self.progress)
        run.bound()
        best = np.flatnonzero(np.isfinite(run.bounds) & (run.bounds == run.bounds.min()))
        return run.known._replace(likely=best[:1])

    def _options(self) -> Iterator[GivenFabric]:
        """What can be bought, the cheapest first; none that a cheaper one outdoes everywhere."""
        fabrics, bills = self.fabrics, self.fabrics.bills
        seen: list[Array] = []
        for row in sorted(fabrics.whole.rows, key=lambda i: (bills.usd[i], -i)):
            bandwidth, usd = bills.bandwidth_Bps[row], float(bills.usd[row])
            if not any(np.all(bandwidth <= one) for one in seen):
                seen.append(bandwidth)
                limits = "performance", fabrics.limit_s
                yield GivenFabric(fabrics.network, fabrics.model, bandwidth, usd, *limits)

    def of_budgets(self) -> Iterator[Candidate]:
        """Points at budgets, from the largest to the smallest."""
        fastest, known = self._fastest()
        self._tell(1, self.n_points)
        yield fastest
        limit_s = self.fabrics.limit_s
        if np.isinf(limit_s):
            limit_s = SLOWEST * fastest.optimum.step_time_s
        least_usd, likely = self._least(fastest, known, limit_s)
        high_usd = fastest.optimum.cost_usd - self.problem.fixed_cost_usd
        least_usd = max(least_usd, _LEAST_SHARE * high_usd)
        if least_usd >= high_usd * (1 - _CHEAPER):
            return
        budgets = np.geomspace(least_usd, high_usd, self.n_points)[:-1]
        budgets[0] *= 1 + _ROOM
        for i, usd in enumerate(reversed(budgets.tolist()), 2):
            if i == self.n_points:
                known = known._replace(likely=np.append(known.likely, likely))
            found, known = self._best(self._under(usd), known)
            self._tell(i, self.n_points)
            if found is not None:
                yield found

    def _fastest(self) -> tuple[Candidate, Known]:
        """The fast end, and bounds on all that costs no more."""
        fabrics: PlannedFabrics = self.fabrics
        if np.isinf(fabrics.whole.upper).any():
            run = SearchRun(replace(self.search, fabrics=fabrics), self.progress)
            run.bound()
            training = self.search.training(self.search.space.strategy(int(run.bounds.argmin())))
            end = pareto(fabrics.with_training(training), 2)[-1]
            fabrics = self._under(end.cost_usd - self.problem.fixed_cost_usd)
        found, known = self._best(fabrics, None)
        if found is None:
            raise self._none_fits()
        return found, known

    def _none_fits(self) -> Infeasible:
        why = Excluded.of(self.search)
        fix = "" if why.fits else "take more NPUs, or larger ones"
        return Infeasible(f"{self.problem.text.source}: {why.words(fix)}")

    def _least(self, best: Candidate, known: Known, limit_s: float) -> tuple[float, Index]:
        """Least cost of the network for a step time, and who reaches it.

        What a strategy costs at least is a budget; where none is in time with less, it is the
        least of all.
        """
        limits = (StepTimeLimit("the slowest step", limit_s),) if np.isfinite(limit_s) else ()
        base = replace(self.problem, step_time_limits=limits)
        while True:
            training = self.search.training(best.strategy)
            one = replace(PlannedFabrics(base).with_training(training), objective="cost")
            usd = float(one.network_cost_usd(optimize(one).bandwidth_bytes_per_s))
            under = self._under(usd * (1 - _CHEAPER), base)
            found, known = self._best(under, known)
            if found is None:
                return usd, np.array([best.index])
            best = found

    def _under(self, network_usd: float, problem: Problem | None = None) -> PlannedFabrics:
        """Fabrics that cost no more."""
        base = problem or self.problem
        price = tuple(map(float, base.price_usd_per_Bps))
        cap = Rule("budget", price, "<=", network_usd, "$", 1.0, cost_factor=1.0)
        return PlannedFabrics(replace(base, rules=(*base.rules, cap)))

    def _best(self, fabrics: Fabrics, known: Known | None) -> tuple[Candidate | None, Known]:
        """The best strategy on some fabrics, if it is proven, and bounds for fewer fabrics."""
        progress = self.progress if known is None else None
        run = SearchRun(replace(self.search, fabrics=fabrics), progress, known)
        try:
            found = run.complete()
        except Infeasible:
            if known is None:
                raise
            return None, known
        self.results.append(found)
        if found.was_stopped:
            raise KeyboardInterrupt
        best = found.best[0] if found.best and found.is_certified else None
        return best, run.known

    def _tell(self, done: int, n: int) -> None:
        if self.progress:
            self.progress(POINTS, done, n)
