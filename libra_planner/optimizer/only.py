"""The only design of a plan whose rules fix the bandwidth of every dimension."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from libra_planner.evaluation import max_violation
from libra_planner.problem import RULE_TOLERANCE, Problem
from libra_planner.step.expression import Array

if TYPE_CHECKING:
    from libra_planner.optimizer.design import FrontierPoint


def only_design(problem: Problem) -> FrontierPoint | None:
    """The frontier of a plan whose equalities fix it; ``None`` where something is left to find.

    ``None`` also for plans that choose among options or numbers of chunks, whose network costs
    nothing, or whose other rules this design breaks: what optimises them says why.

    Parameters
    ----------
    problem : from a plan; of a group the weighted mean counts.

    Examples
    --------
    >>> import libra_planner as lp
    >>> fixed = {"constraints": [f"dim{i} == {100 * i} GB/s" for i in (1, 2, 3, 4)]}
    >>> point = only_design(lp.load_plan("01_gpt3_4d", fixed))
    >>> (point.bandwidth_bytes_per_s / 1e9).round(6).tolist(), round(point.step_time_s, 6)
    ([100.0, 200.0, 300.0, 400.0], 0.79543)
    >>> only_design(lp.load_plan("01_gpt3_4d"))
    """
    from libra_planner.optimizer.design import FrontierPoint

    is_chosen = problem.prices.choice or problem.options or problem.alternatives
    if is_chosen or not problem.price_usd_per_Bps.any():
        return None
    bandwidth_Bps = _fixed(problem)
    if bandwidth_Bps is None:
        return None
    base = replace(problem, objective="performance", group_objective="weighted")
    step_time_s = float(base.step_time.seconds(bandwidth_Bps))
    is_late = any(step_time_s > one.limit_s * (1 + RULE_TOLERANCE) for one in base.step_time_limits)
    if is_late or max_violation(base, bandwidth_Bps) > RULE_TOLERANCE:
        return None
    return FrontierPoint(bandwidth_Bps, step_time_s, float(base.cost_usd(bandwidth_Bps)), 0.0)


def _fixed(problem: Problem) -> Array | None:
    """What the equalities leave, byte/s, shape (n_dims,); ``None`` where that is not one vector."""
    held = [one for one in problem.rules if one.sense == "==" and any(one.coefficients)]
    if len(held) < problem.topology.n_dims:
        return None
    rows = np.array([one.coefficients for one in held])
    sizes = np.linalg.norm(rows, axis=1)
    bounds = np.array([one.bound for one in held]) / sizes
    found, _, rank, _ = np.linalg.lstsq(rows / sizes[:, None], bounds, rcond=None)
    is_one = rank == problem.topology.n_dims and np.isfinite(found).all() and (found >= 0).all()
    return np.asarray(found, dtype=np.float64) if is_one else None
