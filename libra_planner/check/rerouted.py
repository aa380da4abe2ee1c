"""The optimum under a routing policy: derate by what the links deliver, and optimise again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from libra_planner.check.links import CheckReport, link_check
from libra_planner.check.phases import CheckMemo
from libra_planner.errors import Fault, PlannerError, SpecError
from libra_planner.fabric.clos import Array
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.optimizer.design import Solution
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import RULE_TOLERANCE, Problem, slowed
from libra_planner.routing.policy import Policy

MAX_ROUNDS = 12
"""Optimisations after which the best design so far is kept."""

_SAME = 1e-9
"""Relative difference of bandwidths up to which two designs are one."""


@dataclass(frozen=True)
class JudgedDesign:
    """A design, and what a plan says to it on its links.

    Parameters
    ----------
    bandwidth_Bps : shape (n_dims,), byte/s.
    check : its links under the policy.
    cost_usd : of the design (C7).
    objective : mean over the seeds of the effective step time, or that times cost, or cost.
    meets_limits : whether the mean effective step time meets every bound of the plan.
    """

    bandwidth_Bps: Array
    check: CheckReport = field(repr=False)
    cost_usd: float
    objective: float
    meets_limits: bool


@dataclass(frozen=True)
class CheckedDesign(JudgedDesign):
    """A design that an optimisation found, and what its links make of it.

    Parameters
    ----------
    solution : the optimum of the plan derated by the design before it.
    """

    solution: Solution = field(repr=False)


@dataclass(frozen=True)
class RoutedOptimum:
    """The best checked design of a few rounds; no optimality is claimed.

    Parameters
    ----------
    best : of all that were checked.
    blind : the plan's own optimum, in which links deliver all they have.
    rounds : all checked designs in order; the first is ``blind``.
    converged : whether derating by the last design gave that design again.
    stopped : why a derated plan had no design to check; empty where that did not end the rounds.
    """

    best: CheckedDesign
    blind: CheckedDesign
    rounds: tuple[CheckedDesign, ...] = field(repr=False)
    converged: bool
    stopped: str = ""


def routed_optimum(
    problem: Problem,
    policy: Policy,
    *,
    traffic: TrafficSettings | None = None,
    seeds: Iterable[int] | None = None,
    progress: Callable[[int], None] | None = None,
    memo: CheckMemo | None = None,
) -> RoutedOptimum:
    """Optimise, check, derate each dimension by its measured efficiency, and again.

    Whole links make efficiency jump, so rounds end when a design comes back.

    Parameters
    ----------
    problem : from a plan.
    policy, traffic : how flows are routed.
    seeds : draws that the efficiency is the mean of; by default those that a check of the
        plan's own optimum takes, the same for all designs.
    progress : called with the designs checked so far.
    memo : of an earlier check of the plan's designs.

    Raises
    ------
    PlannerError
        Where the plan has no optimum, or its optimum cannot be built.
    """
    if problem.group_objective != "weighted":
        got = f"got group_objective {problem.group_objective} with a routing policy"
        fix = "write group_objective: weighted, or check the design without --routing"
        raise SpecError(Fault(got, "expected weighted: effective times are means", fix))
    listed = None if seeds is None else tuple(seeds)
    memo = CheckMemo() if memo is None else memo  # Its designs share what they route.
    checked = partial(checked_optimum, problem, policy, traffic=traffic, memo=memo)
    found = [checked(seeds=listed)]
    drawn = found[0].check.seeds  # One where its links leave nothing to draw.
    listed = tuple(drawn.tolist()) if len(drawn) > 1 else listed
    converged, stopped = False, ""
    while not converged and len(found) < MAX_ROUNDS:
        if progress is not None:
            progress(len(found))
        check = link_check(problem, found[-1].bandwidth_Bps, traffic=traffic, memo=memo)
        derated = slowed(problem, check.mean_slowdown(policy, seeds=found[-1].check.seeds))
        try:
            following = checked(seeds=listed, derated=derated)
        except PlannerError as error:  # Say, a bound that the derated plan cannot meet.
            stopped = str(error)
            break
        converged = _is_same(following, found[-1])
        if any(_is_same(following, one) for one in found):
            break
        found.append(following)
    best = min(found, key=lambda one: (not one.meets_limits, one.objective))
    return RoutedOptimum(best, found[0], tuple(found), converged, stopped)


def checked_optimum(
    problem: Problem,
    policy: Policy,
    *,
    traffic: TrafficSettings | None = None,
    seeds: Iterable[int] | None = None,
    memo: CheckMemo | None = None,
    derated: Problem | None = None,
) -> CheckedDesign:
    """The optimum of a plan, or of what it is derated to, on its links.

    Arguments and errors are those of :func:`routed_optimum`.
    """
    solution = solve(problem if derated is None else derated)
    bandwidth_Bps = np.asarray(solution.design.bandwidth_bytes_per_s)
    links = link_check(problem, bandwidth_Bps, traffic=traffic, memo=memo)
    judged = judged_design(problem, bandwidth_Bps, links.report(policy, seeds=seeds))
    return CheckedDesign(**vars(judged), solution=solution)


def judged_design(problem: Problem, bandwidth_Bps: Array, check: CheckReport) -> JudgedDesign:
    """A design on its links, by its plan's own objective and bounds.

    Parameters
    ----------
    problem, bandwidth_Bps : the plan, and the design, byte/s, shape (n_dims,).
    check : its links under a policy.
    """
    cost_usd, time_s = float(problem.cost_usd(bandwidth_Bps)), check.effective_step_time_s.mean()
    figures = {"performance": time_s, "cost": cost_usd}
    objective = float(figures.get(problem.objective, time_s * cost_usd))
    limits = problem.step_time_limits
    meets = all(bool(time_s <= limit.limit_s * (1 + RULE_TOLERANCE)) for limit in limits)
    return JudgedDesign(bandwidth_Bps, check, cost_usd, objective, meets)


def _is_same(one: CheckedDesign, other: CheckedDesign) -> bool:
    scale = np.maximum(one.bandwidth_Bps, other.bandwidth_Bps).max()
    return bool(np.abs(one.bandwidth_Bps - other.bandwidth_Bps).max() <= _SAME * scale)
