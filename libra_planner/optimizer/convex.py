"""The main solve: cvxpy with Clarabel on the dimensionless program."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.optimizer.program import Program, Weights
from libra_planner.step.expression import Array

_TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}

_FAR = 1e4
"""Bound on bandwidths that nothing bounds and no traffic uses, in typical units."""


_STUCK = (
    "the interior-point solver (Clarabel) found no usable point; check for rules, step-time "
    "bounds or traffic many orders of magnitude apart"
)


@dataclass(frozen=True)
class ConvexPoint:
    """An interior-point solution: b, shape (n_dims,), and the multiplier of each reciprocal."""

    b: Array
    form_weights: Array


@dataclass(frozen=True)
class ConvexModel:
    """The program in cvxpy's terms, compiled once and solved for any weights.

    ``reciprocal`` are the rows w_f >= 1 / (form_f . b); ``weights`` the parameter
    (time, cost) of the objective.
    """

    problem: cp.Problem
    b: cp.Variable
    w: cp.Variable
    reciprocal: cp.Constraint
    weights: cp.Parameter


def convex_model(program: Program) -> ConvexModel:
    """Compile the program for cvxpy."""
    b = cp.Variable(program.n_dims, nonneg=True)
    w = cp.Variable(len(program.time), nonneg=True)
    weights = cp.Parameter(2, nonneg=True, value=np.array([1.0, 0.0]))
    reciprocal = w[: program.n_forms] >= cp.inv_pos(program.forms @ b)
    constraints = [reciprocal, *_linear(program, b, w)]
    endless = np.flatnonzero(np.isinf(program.b_upper))
    if len(endless):  # Without a bound there would be no analytic centre.
        constraints.append(b[endless] <= _FAR)
    objective = weights[0] * (program.time @ w) + weights[1] * (program.price @ b)
    return ConvexModel(cp.Problem(cp.Minimize(objective), constraints), b, w, reciprocal, weights)


def solve_convex(model: ConvexModel, weights: Weights) -> ConvexPoint:
    """Solve the program to the solver's own accuracy; callers certify the result.

    Raises
    ------
    SolverFailed
        When the solver ends without a usable point.
    """
    model.weights.value = np.array([weights.time, weights.cost])
    with warnings.catch_warnings():
        # An "inaccurate" end is judged by the certificate, not by the warning.
        warnings.simplefilter("ignore", UserWarning)
        try:
            model.problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
        except cp.SolverError as error:
            raise SolverFailed(_STUCK) from error
    if model.problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverFailed(f"{_STUCK} (status {model.problem.status})")
    form_weights = np.maximum(np.asarray(model.reciprocal.dual_value, dtype=np.float64), 0.0)
    return ConvexPoint(np.asarray(model.b.value, dtype=np.float64), form_weights)


def _linear(program: Program, b: cp.Variable, w: cp.Variable) -> list[cp.Constraint]:
    rules, (rows, offsets) = program.rules, program.w_rows
    constraints: list[cp.Constraint] = []
    if len(rules.upper):
        constraints.append(rules.upper @ b <= rules.limit)
    if len(rules.equal):
        constraints.append(rules.equal @ b == rules.target)
    if len(rows):
        constraints.append(rows @ w + offsets <= 0)
    return constraints
