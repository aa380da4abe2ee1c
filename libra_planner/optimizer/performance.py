"""Objective ``performance``: the least step time under the rules, with a proof (C8, C9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.cheapest import Choice, cheapest
from libra_planner.optimizer.convex import ConvexPoint, solve_convex
from libra_planner.optimizer.feasibility import meets_rules, restored
from libra_planner.optimizer.linear import CutModel
from libra_planner.optimizer.polish import polish
from libra_planner.optimizer.program import (
    Program,
    communication,
    scaled_program,
    typical_bandwidth,
)
from libra_planner.optimizer.wellposed import (
    bandwidth_bounds,
    check_compute_fits,
    step_time_infeasible,
)
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array
from libra_planner.units import gigabytes_per_s

CERTIFIED_GAP = 1e-6
"""Largest optimality gap that counts as certified (C9)."""

_GOOD_GAP = 1e-9
_ROUNDS = 40
_ENDLESS = 1e4
"""Bandwidth, over the fastest design's largest, that stands for no limit."""
_CENTRINGS = 4
_FAR_OFF = 3.0
"""Log of a bandwidth in typical units beyond which the program is centred anew."""

_CUT_SPREAD = (0.0, 1e-4, 1e-2, 0.3)


@dataclass(frozen=True)
class Design:
    """An optimised bandwidth vector and the proof that it is optimal.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    objective : exact value of the objective there (C9).
    lower_bound : proven: no design under the rules has a smaller objective.
    unique : no other design ties in objective and cost.
    max_violation : largest relative violation of a rule.
    """

    bandwidth_bytes_per_s: Array
    objective: float
    lower_bound: float
    unique: bool
    max_violation: float

    @property
    def optimality_gap(self) -> float:
        """(objective - lower_bound) / lower_bound (C9)."""
        excess = self.objective - self.lower_bound
        return excess / self.lower_bound if self.lower_bound > 0 else float(excess > 0)

    @property
    def bandwidth_GBps(self) -> list[float]:
        """The vector in GB/s."""
        return [gigabytes_per_s(value) for value in self.bandwidth_bytes_per_s]


def optimize(problem: Problem) -> Design:
    """The bandwidth vector with the least step time, certified.

    Raises
    ------
    Infeasible
        When no vector meets the rules; names those that conflict.
    IllPosed
        When no rule bounds a dimension that carries traffic.
    SolverFailed
        When the gap cannot be brought to 1e-6.
    """
    check_compute_fits(problem)
    lower, upper = bandwidth_bounds(problem)
    typical = typical_bandwidth(problem, lower, upper)
    try:
        program, start = _centred(problem, typical, upper)
        design = _design(problem, program, *_solve(program, start))
        _check_time(problem, design)
        _check(design)
    except SolverFailed as error:
        raise SolverFailed(f"{problem.source}: {error}") from error
    return design


def _check_time(problem: Problem, design: Design) -> None:
    for limit in problem.step_time_limits:
        if design.objective > limit.limit_s * (1 + RULE_TOLERANCE):
            cap = _ENDLESS * float(design.bandwidth_bytes_per_s.max())
            least = partial(_least_time_s, problem, cap)
            raise step_time_infeasible(problem, limit, design.objective, least)


def _least_time_s(problem: Problem, cap_bytes_per_s: float, rules: Sequence[Rule]) -> float:
    """Least step time under some of the rules and a cap, so large that it takes no time."""
    axes = np.eye(problem.topology.n_dims)
    endless = [Rule("", tuple(map(float, axis)), "<=", cap_bytes_per_s) for axis in axes]
    loosened = replace(problem, rules=(*rules, *endless), step_time_limits=())
    return optimize(loosened).objective


def _centred(problem: Problem, typical: Array, upper: Array) -> tuple[Program, Array]:
    """The program in units close to its own optimum, and that optimum in them.

    A typical design may be far off where one group's traffic leaves most of a budget to
    another; the solvers are accurate where b and w are near 1.
    """
    program, best = scaled_program(problem, typical, upper), np.ones(len(typical))
    for _ in range(_CENTRINGS if program.n_forms else 0):
        best = _start(program)
        # A dimension with a form of its own is never zero at the optimum.
        own = program.forms[(program.forms > 0).sum(axis=1) == 1].any(axis=0)
        far = own & (np.abs(np.log(np.where(own, best, 1.0))) > _FAR_OFF)
        if not far.any():
            break
        typical = typical * np.where(far, best, 1.0)
        program, best = scaled_program(problem, typical, upper), np.where(far, 1.0, best)
    return program, best


def _solve(program: Program, start: Array) -> tuple[Choice, float]:
    """Best b and a proven bound on communication, in time units."""
    best = start
    if not program.n_forms:
        return cheapest(program, CutModel(program, 0.0), best, np.empty(0)), 0.0
    model = CutModel(program, communication(program, best))
    bound = -np.inf
    for _ in range(_ROUNDS):
        for spread in _CUT_SPREAD:
            model.add_cuts(program.forms @ best * (1 - spread))
            model.add_cuts(program.forms @ best * (1 + spread))
        value, vertex = model.lower_bound()
        bound = max(bound, value)
        weights = model.form_weights(vertex.upper_dual)
        if model.incumbent - bound <= _GOOD_GAP * model.incumbent:
            break
        candidate = restored(program, vertex.point[: program.n_dims])
        refined = _best_of(program, [best, *_refined(program, ConvexPoint(candidate, weights))])
        best, model.incumbent = refined, communication(program, refined)
        model.add_cuts(np.maximum(program.forms @ candidate, 1e-9))
    return cheapest(program, model, best, weights), bound


def _start(program: Program) -> Array:
    """The interior-point solution after Newton steps, feasible."""
    point = solve_convex(program)
    return _best_of(program, [restored(program, point.b), *_refined(program, point)])


def _refined(program: Program, start: ConvexPoint) -> list[Array]:
    return [restored(program, point.b) for point in polish(program, start)]


def _best_of(program: Program, points: list[Array]) -> Array:
    """The fastest of the points that meet the rules; the last of those that tie."""
    usable = [b for b in points if _usable(program, b)] or points
    times = [communication(program, b) for b in usable]
    least = min(times)
    return [b for b, t in zip(usable, times, strict=True) if t <= least * (1 + 1e-14)][-1]


def _usable(program: Program, b: Array) -> bool:
    return meets_rules(program, b) and bool((program.forms @ b > 0).all())


def _design(problem: Problem, program: Program, choice: Choice, bound: float) -> Design:
    bandwidth = restored(program, choice.b) * program.bandwidth_unit
    step_time_s = float(problem.step_time.seconds(bandwidth))
    lower_bound_s = program.constant_s + program.time_unit_s * bound
    return Design(
        bandwidth_bytes_per_s=bandwidth,
        objective=step_time_s,
        lower_bound=min(lower_bound_s, step_time_s),
        unique=choice.unique,
        max_violation=max_violation(problem, bandwidth),
    )


def _check(design: Design) -> None:
    """Refuse to return what is not proven to 1e-6 or breaks a rule by more than 1e-9."""
    if not design.optimality_gap <= CERTIFIED_GAP:
        raise SolverFailed(
            f"got an optimality gap of {design.optimality_gap:.2g}, expected at most "
            f"{CERTIFIED_GAP:g}; this plan cannot be certified: check for rules that leave "
            f"almost no room, or bounds many orders of magnitude apart"
        )
    if not design.max_violation <= RULE_TOLERANCE:
        raise SolverFailed(
            f"got a design that breaks a rule by {design.max_violation:.2g}, expected at most "
            f"{RULE_TOLERANCE:g} relative; the rules leave almost no room"
        )
