"""An optimised design, and what has to be true of it before anyone sees it (C9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import OBJECTIVES, max_violation
from libra_planner.optimizer.engines.batch import factored, solved
from libra_planner.optimizer.programs.dimensionless import (
    Point,
    Program,
    form_values,
    lanes,
    taken,
    weighted_value,
)
from libra_planner.problem import RULE_TOLERANCE, Problem
from libra_planner.step.expression import Array, Mask
from libra_planner.units import gigabytes_per_s

_ACTIVE = 1e-8
"""Slack, in units of the row, below which a rule is held exactly."""

_ZERO, _DUST = 1e-10, 1e-6
"""Bandwidth below which a dimension is unused, and the same for one without traffic."""

SURE_GAP, NO_DOUBT = 5e-10, 1e-11
"""Gap up to which a design of a batch is the optimum to 1e-9, and what a plan alone is held to."""

_MET = 1e-10
"""Violation, in units of the row, up to which a rule counts as met."""

_CORRECTIONS, _NOISE = 5, 1e-16

_SLOPE_NOISE = 1e-13
"""Slope that is rounding where nothing bounds a bandwidth."""


def restored(program: Program, b: Array) -> Array:
    """The nearest vectors, (n_dims, n), on which active rules hold to rounding.

    Violated or nearly tight rows become equalities and the
    smallest relative correction is taken; dust on idle dimensions is swept where it may be.
    """
    used = program.forms > 0
    alone = (used & (used.sum(axis=1, keepdims=True) == 1)).any(axis=0)
    least = np.where(used.any(axis=0), np.where(alone, 0.0, _ZERO), _DUST)
    swept = np.where(b < least, 0.0, b)
    result = _corrected(program, swept)
    unmet = lanes(~meets_rules(program, result))
    if len(unmet):
        result[:, unmet] = _corrected(program.take(unmet), np.maximum(taken(b, unmet), 0.0))
    return result


def meets_rules(program: Program, b: Array) -> Mask:
    """Which of the vectors meet the rules, in units of each row, shape (n,)."""
    over = (program.upper * b).sum(axis=1) - program.limit
    off = np.abs((program.equal * b).sum(axis=1) - program.target)
    worst = np.maximum(over.max(axis=0, initial=0.0), off.max(axis=0, initial=0.0))
    return np.asarray(worst <= _MET)


def _corrected(program: Program, b: Array) -> Array:
    point, n_equal = b.copy(), len(program.equal)
    rows = np.concatenate([program.equal, program.upper])
    bounds = np.concatenate([program.target, program.limit])
    diagonal = np.arange(len(rows))
    for _ in range(_CORRECTIONS):
        gap = bounds - (rows * point).sum(axis=1)
        active = gap < _ACTIVE
        active[:n_equal] = True
        gap = np.where(active & (np.abs(gap) > _NOISE), gap, 0.0)
        if not gap.any():
            break
        moved = rows * np.where(active[:, None], point, 0.0)
        gram = (moved[:, None] * moved[None]).sum(axis=2)
        gram[diagonal, diagonal] += ~active
        pull = solved(factored(gram), gap)
        point = np.maximum(point * (1 + (moved * pull[:, None]).sum(axis=0)), 0.0)
    return point


def lower_bound(program: Program, point: Point, b: Array) -> Array:
    """Proven: no design minimises further, in the program's units, shape (n,).

    Weak duality with any multipliers of 0 or more: with tangents ``2/p - x/p^2`` of the
    reciprocals 1/x at p = forms . b the Lagrangian is linear, and its minimum over the box
    of all designs as good as b is a bound, whatever the solver's accuracy (Neumaier and
    Shcherbina, Math. Program. 99, 2004).
    """
    n_rows, n_forms = len(program.rows), program.n_forms
    dual = np.maximum(point.dual, 0.0)
    row_dual, rule_dual = dual[:n_rows], dual[n_rows:]
    pull = program.time_weight * program.time + (program.rows * row_dual[:, None]).sum(axis=0)
    at = form_values(program, b)
    constant = (
        2 * (pull[:n_forms] / at).sum(axis=0)
        + (row_dual * program.offsets).sum(axis=0)
        - (rule_dual * program.limit).sum(axis=0)
        - (point.equal_dual * program.target).sum(axis=0)
    )
    slope = (
        program.cost_weight * program.price
        + (program.upper * rule_dual[:, None]).sum(axis=0)
        + (program.equal * point.equal_dual[:, None]).sum(axis=0)
        - (program.forms * (pull[:n_forms] / at**2)[:, None]).sum(axis=0)
    )
    b_upper, t_upper = _box(program, weighted_value(program, b))
    bound: Array = constant + _least(slope, b_upper) + _least(pull[n_forms:], t_upper)
    return bound


def _least(slope: Array, upper: Array) -> Array:
    """Least of slope . x over 0 <= x <= upper, shape (n,)."""
    down = slope < -_SLOPE_NOISE * np.isinf(upper)
    total: Array = np.where(down, slope * np.where(down, upper, 0.0), 0.0).sum(axis=0)
    return total


def _box(program: Program, incumbent: Array) -> tuple[Array, Array]:
    """Upper bounds of b and of the maxima over designs no worse than the incumbent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        priced = program.cost_weight * program.price
        affordable = np.where(priced > 0, incumbent / priced, np.inf)
        slowest = np.where(program.time_weight > 0, incumbent / program.time_weight, np.inf)
        slowest = np.minimum(slowest, program.time_limit)
        floors, hidden = program.floors[program.n_forms :], program.hidden[program.n_forms :]
        longest = np.where(floors > 0, (slowest + hidden) / floors, np.inf)
    wider = 1 + 1e-9
    return np.minimum(program.b_upper, affordable) * wider, longest * wider


CERTIFIED_GAP = 1e-6
"""Largest optimality gap that counts as certified (C9)."""


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


@dataclass(frozen=True)
class Solution:
    """A certified design and the problem it answers.

    Parameters
    ----------
    design : the optimum.
    problem : with a group's own optima and the number of chunks that were found on the way.
    has_neighbors : whether problems nearby have optima of the same kind; not so for a step
        without traffic, a catalogue or a relative group.
    """

    design: Design
    problem: Problem
    has_neighbors: bool = False


@dataclass(frozen=True)
class FrontierPoint:
    """A design that none is both cheaper and faster than.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    step_time_s, cost_usd : exact figures.
    optimality_gap : of the step time at that cost, or of the cost at that step time (C9).
    """

    bandwidth_bytes_per_s: Array
    step_time_s: float
    cost_usd: float
    optimality_gap: float


def exact_design(
    problem: Problem, program: Program, b: Array, lower_bound: float, *, unique: bool
) -> Design:
    """The design at b, evaluated in NumPy, not by a solver (C9).

    ``b`` has shape (n_dims,) in the program's units, ``lower_bound`` the objective's unit.
    """
    bandwidth = (restored(program, b[:, None]) * program.bandwidth_unit)[:, 0]
    return design_at(problem, bandwidth, lower_bound, unique=unique)


def design_at(problem: Problem, bandwidth: Array, lower_bound: float, *, unique: bool) -> Design:
    """The design at a vector in bytes/s, shape (n_dims,), evaluated in NumPy (C9)."""
    step_time_s = float(problem.step_time.seconds(bandwidth))
    objective = OBJECTIVES[problem.objective](step_time_s, float(problem.cost_usd(bandwidth)))
    return Design(
        bandwidth_bytes_per_s=bandwidth,
        objective=objective,
        lower_bound=min(lower_bound, objective),
        unique=unique,
        max_violation=max_violation(problem, bandwidth),
    )


def checked(design: Design) -> Design:
    """The design, if it is proven to 1e-6 and meets the rules to 1e-9 (C9).

    Raises
    ------
    SolverFailed
        When it is not, or does not.
    """
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
    return design
