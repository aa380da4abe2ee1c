"""Optima and frontiers in Python, with all that the commands say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner import allowed
from libra_planner import evaluation as evaluating
from libra_planner.allowed import Whole
from libra_planner.api.designs import OneDesign
from libra_planner.api.given import (
    overrides_of,
    plan_given,
    pythonic,
    searched_of,
    source_of,
    takes,
)
from libra_planner.api.shown import Progress, Shown, draw_frontier, frontier_words
from libra_planner.evaluation import Evaluation
from libra_planner.inputs.bills import option_bill
from libra_planner.inputs.plans import open_plan
from libra_planner.optimizer import optimize as optimizing
from libra_planner.optimizer.bills import BillDesign
from libra_planner.optimizer.design import Design, FrontierPoint, Solution
from libra_planner.optimizer.fixed_order import FixedOrderOptimum, fixed_order_optimum
from libra_planner.optimizer.shadow import (
    ShadowPrice,
    no_prices_reason,
    price_sensitivity,
    shadow_prices,
)
from libra_planner.problem import Problem
from libra_planner.procurement.ranges import BillStudy, rivals
from libra_planner.reading.document import Source
from libra_planner.views import design as view
from libra_planner.views.bought.purchase import purchase_blocks, purchase_payload
from libra_planner.views.cells import Block
from libra_planner.views.frontier import frontier_blocks, frontier_payload
from libra_planner.views.training.found import found_payload, optimum_blocks

if TYPE_CHECKING:
    from libra_planner.api.searches import StrategyFrontier

MOST_COMPARED = 1000
"""Options whose ranges are compared, best first: about a second."""

_TIED = 1e-12


@dataclass(frozen=True, repr=False)
class Optimum(OneDesign, Design):
    """The best design of a plan: a :class:`~libra_planner.optimizer.design.Design` with figures.

    What costs time beyond the optimum itself, such as shadow prices, is worked out when it is
    first asked for.

    Parameters
    ----------
    plan : that was optimised.
    solution : the design as the optimizer has it, and the plan with its chunks chosen.
    """

    is_optimum = True
    plan: Problem = field(kw_only=True)
    solution: Solution = field(kw_only=True)

    @classmethod
    def of_design(cls, plan: Problem, solution: Solution) -> Optimum:
        """The optimum of a plan."""
        own = {one: getattr(solution.design, one) for one in Design.__dataclass_fields__}
        return cls(**own, plan=plan, solution=solution)

    @cached_property
    def figures(self) -> Evaluation:
        """Every figure of the design."""
        return evaluating.evaluated(self.solved_plan, self.bandwidth_bytes_per_s)

    @property
    def solved_plan(self) -> Problem:
        """The plan with its chunks chosen."""
        return self.solution.problem

    @property
    def step_time_s(self) -> float:
        """Of the design, exact."""
        return self.figures.step_time_s

    @property
    def compute_s(self) -> float:
        """Of the step."""
        return self.figures.compute_s

    @property
    def communication_s(self) -> float:
        """Exposed communication of the step."""
        return self.figures.communication_s

    @property
    def cost_usd(self) -> float:
        """Of the network, with the fixed cost of a plan that gives one."""
        return self.figures.cost_usd

    @property
    def network_cost_usd(self) -> float:
        """Of the network alone."""
        return self.figures.network_cost_usd

    @property
    def speedup_vs_equal(self) -> float | None:
        """Step time of equal bandwidth over this one's (C9); ``None`` if nobody can have it."""
        return self.figures.speedup_vs_equal

    @property
    def perf_per_cost_vs_equal(self) -> float | None:
        """Performance per dollar over that of equal bandwidth (C9)."""
        return self.figures.perf_per_cost_vs_equal

    @property
    def _verdict(self) -> str:
        return "proven optimal" if self.unique else "proven optimal, others tie"

    @cached_property
    def shadow_prices(self) -> ShadowPrices:
        """What one more GB/s, dollar or unit of a rule is worth; empty, with the reason, for none.

        Examples
        --------
        >>> import libra_planner as lp
        >>> best = lp.load_plan("01_gpt3_4d").optimize()
        >>> best.shadow_prices
        <ShadowPrices: of 1 rule, 4 dimensions, cost>
        >>> [one.unit for one in best.shadow_prices if one.subject == "rule"]
        ['GB/s']
        >>> lp.load_plan("06_catalogue").optimize().shadow_prices
        <ShadowPrices: none: a catalogue sells whole options, which have no slope>
        """
        found = shadow_prices(self.solved_plan, self.solution)
        if found is not None:
            return ShadowPrices(found)
        none = ShadowPrices()
        none.reason = no_prices_reason(self.solved_plan, self.solution)
        return none

    @cached_property
    def price_sensitivity(self) -> tuple[ShadowPrice, ...] | None:
        """What one more dollar on a price does to the optimum."""
        return price_sensitivity(self.solved_plan, self.solution)

    @cached_property
    def fixed_order(self) -> FixedOrderOptimum | None:
        """The best design without balanced schedules, where the plan has them."""
        return fixed_order_optimum(self.solved_plan, self.solution.design)

    @cached_property
    def _bought(self) -> Any:
        source, overrides = source_of(self.plan), overrides_of(self.plan)
        return bill_study(source, overrides, self.solved_plan, self.solution.design)

    def blocks(self, of_strategies: Iterable[str] = ()) -> Iterator[Block]:
        """What ``optimize`` prints.

        Parameters
        ----------
        of_strategies : lines on other strategies, which stand below the step time.
        """
        found, bought = (self.solved_plan, self.figures, self.solution.design), self._bought
        worth = self.shadow_prices
        yield from view.design_blocks(*found, worth, self.fixed_order, worth.reason, of_strategies)
        yield from optimum_blocks(searched_of(self.plan).found)
        yield from purchase_blocks(self.solved_plan, bought)

    def to_dict(self) -> dict[str, Any]:
        """What ``optimize --json`` prints.

        The first call works out :attr:`shadow_prices` and :attr:`price_sensitivity`, which may take
        several times as long as ``optimize``; later ones have them.
        """
        problem, design = self.solved_plan, self.solution.design
        found = view.optimize_payload(problem, design, self.figures, self.fixed_order)
        found |= found_payload(searched_of(self.plan).found)
        prices = None if self.shadow_prices.reason else self.shadow_prices
        found |= view.worth_payload(prices, self.price_sensitivity)
        return found | purchase_payload(problem, self._bought)


class ShadowPrices(Shown, tuple[ShadowPrice, ...]):
    """What one more of everything is worth: a tuple of shadow prices.

    Parameters
    ----------
    reason : why there are none; empty where there are.
    """

    reason = ""
    table = "shadow_prices"

    def headline(self) -> str:
        """It in one line."""
        if self.reason:
            return f"none: {self.reason}"
        n = Counter(subject for subject, _ in {(one.subject, one.name) for one in self})
        words = [f"{n[x]} {x}{'s' * (n[x] > 1)}" for x in ("rule", "dimension") if n[x]]
        return f"of {', '.join([*words, *(['cost'] if n['cost'] else [])])}"

    def blocks(self) -> Iterator[Block]:
        """Those that are worth anything."""
        none = f"No shadow prices: {self.reason}." if self.reason else ""
        yield view.worth_table(self) or none or "Nothing more is worth anything."

    def to_dict(self) -> dict[str, Any]:
        """The fields of each."""
        return {"shadow_prices": [asdict(one) for one in self]}


class Frontier(Shown, tuple[FrontierPoint, ...]):
    """Designs that none is both cheaper and faster than, cheapest first.

    A tuple of points, each with ``cost_usd``, ``step_time_s`` and ``bandwidth_bytes_per_s``.
    """

    plan: Problem
    table = "points"

    @classmethod
    def among(cls, plan: Problem, points: Sequence[FrontierPoint]) -> Frontier:
        """The points of a plan's frontier."""
        found = cls(points)
        found.plan = plan
        return found

    def headline(self) -> str:
        """It in one line."""
        return frontier_words(self)

    def blocks(self) -> Iterator[Block]:
        """What ``pareto`` prints."""
        yield from frontier_blocks(self.plan, self)

    def to_dict(self) -> dict[str, Any]:
        """What ``pareto --json`` prints."""
        return frontier_payload(self.plan, self)

    def plot(self, axes: Any = None) -> Any:
        """Step time over cost; the matplotlib axes."""
        return draw_frontier(self, self.plan, axes)


@pythonic
def optimize(plan: Problem) -> Optimum:
    """The design of least objective, certified; :meth:`libra_planner.api.plans.Plan.optimize`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.

    Raises
    ------
    TypeError
        For a path in place of a plan.
    Infeasible, IllPosed, SolverFailed
        Where no design meets the rules, none is best, or none can be certified.

    Examples
    --------
    >>> import libra_planner as lp
    >>> round(optimize(lp.load_plan("01_gpt3_4d")).objective, 6)
    0.722412
    """
    plan_given(plan, "optimize")
    solution = optimizing.solve(plan)
    return Optimum.of_design(plan, solution)


@takes({"n_points": Whole(*allowed.POINTS)})
def pareto(
    plan: Problem, n_points: int = 25, progress: Progress | None = None
) -> Frontier | StrategyFrontier:
    """Points of the frontier between time and cost.

    :func:`libra_planner.optimizer.optimize.pareto` says how they are found.

    Of a plan that says ``parallelism: auto`` the frontier is over all strategies, as
    :meth:`libra_planner.api.plans.Plan.search_pareto` has it.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it; its objective does not matter.
    n_points : 2 or more, evenly spaced in log cost.
    progress : called with the points done and all after each.

    Examples
    --------
    >>> import libra_planner as lp
    >>> points = pareto(lp.load_plan("01_gpt3_4d"), 3)
    >>> [round(point.step_time_s, 3) for point in points][-1], points.to_frame().shape
    (0.722, (3, 8))
    """
    plan_given(plan, "pareto")
    if searched_of(plan).found is not None:
        from libra_planner.api.searches import search_pareto

        return search_pareto(plan, n_points)
    return Frontier.among(plan, optimizing.pareto(plan, n_points, progress))


def bill_study(
    plan: Source, settings: Sequence[str], problem: Problem, design: Design
) -> BillStudy | Design:
    """The best option of a plan beside the others; a design of no bills as it is.

    All pay the same price for the same part, wherever in its range it is. Under ``performance``
    money decides only between options that are equally fast.

    Parameters
    ----------
    plan, settings : the file or map, and ``key=value`` settings of it.
    problem, design : as they were solved.
    """
    table = problem.prices.bills
    if not isinstance(design, BillDesign) or table is None:
        return design
    ranked = design.ranked
    opened = open_plan(plan, settings, parts=problem.prices.catalogue)
    npu = opened.bills.npu(opened.document, opened.beside)
    if problem.objective == "performance":
        same = design.objectives <= design.objectives[0] * (1 + _TIED)
        n, weights = int(same.sum()), None
    else:
        weights = (design.objectives / table.usd[ranked]).tolist()
        n, weights = len(ranked), weights if problem.objective != "cost" else None
    n = min(n, MOST_COMPARED)
    compared = [option_bill(problem, table.options[row], opened.bills, npu) for row in ranked[:n]]
    found = rivals(compared, 0, problem.objective, weights and weights[:n])
    seconds = np.asarray(problem.step_time.seconds(table.bandwidth_Bps[ranked]))
    return BillStudy(design, compared[0], tuple(seconds.tolist()), n, found)
