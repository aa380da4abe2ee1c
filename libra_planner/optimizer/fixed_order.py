"""What balanced schedules are worth: the optimum of the fixed order under the same rules (C4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from libra_planner.errors import Infeasible
from libra_planner.optimizer.design import Design
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import Problem


@dataclass(frozen=True)
class FixedOrderOptimum:
    """The best design if all collectives visit the dimensions from dim1 outwards.

    Parameters
    ----------
    design : that design; ``None`` where no design of the fixed order meets the rules.
    step_time_s, cost_usd : T of the fixed order there and C; ``None`` without a design.
    gain : its objective over that of balanced schedules, 1 or more; ``None`` without a design.
    """

    design: Design | None = None
    step_time_s: float | None = None
    cost_usd: float | None = None
    gain: float | None = None


def fixed_order_optimum(problem: Problem, design: Design) -> FixedOrderOptimum | None:
    """The optimum without balanced schedules; ``None`` for a plan that has none anyway.

    Parameters
    ----------
    problem : the plan as it was solved, with own optima of a group.
    design : its optimum.

    Raises
    ------
    IllPosed, SolverFailed
        As for the plan itself.

    Examples
    --------
    Chiplets that are slow: the fixed order sends most bytes over them.

    >>> import libra_planner as lp
    >>> rules = 'constraints=["total == 500 GB/s", "dim1 <= 100 GB/s"]'
    >>> plan = lp.load_plan(lp.example("01_gpt3_4d"), ["scheduler=balanced", rules])
    >>> found = fixed_order_optimum(plan, lp.optimize(plan))
    >>> round(found.gain, 4)
    1.1011
    """
    step = problem.step.in_fixed_order
    if step is None:
        return None
    fixed = replace(problem, step=step)
    try:
        best = solve(fixed).design
    except Infeasible:
        return FixedOrderOptimum()
    bandwidth = best.bandwidth_bytes_per_s
    return FixedOrderOptimum(
        design=best,
        step_time_s=float(fixed.step_time.seconds(bandwidth)),
        cost_usd=float(fixed.cost_usd(bandwidth)),
        gain=best.objective / design.objective,
    )
