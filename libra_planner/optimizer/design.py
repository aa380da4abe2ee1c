"""An optimised design, and what has to be true of it before anyone sees it (C9)."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import OBJECTIVES, max_violation
from libra_planner.optimizer.certificate import restored
from libra_planner.optimizer.program import Program
from libra_planner.problem import RULE_TOLERANCE, Problem
from libra_planner.step.expression import Array
from libra_planner.units import gigabytes_per_s

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
