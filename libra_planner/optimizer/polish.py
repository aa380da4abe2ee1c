"""Newton steps on a solution: from an interior-point solver's 1e-6 to 1e-12 in bandwidth.

Step time is flat at its optimum, so a gap of 1e-10 in time leaves 1e-5 in the
bandwidths. Each step is the quadratic program of sequential quadratic programming,
in a trust region around the point and in its units, which the same interior-point
solver then solves to its relative accuracy.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from libra_planner.optimizer.convex import ConvexPoint
from libra_planner.optimizer.program import Program, Weights, w_values
from libra_planner.timing.expression import Array

_TRUST = (1e-2, 1e-4, 1e-6, 1e-8)
"""Relative trust-region radii of the successive steps."""

_FAR = 1e3
"""Slack, in trust radii, beyond which a row cannot bind: larger ones are cut to it."""


def polish(program: Program, weights: Weights, start: ConvexPoint) -> list[ConvexPoint]:
    """The successive points of the Newton steps, best last unless a step fails."""
    points = []
    current = start
    for radius in _TRUST:
        step = _newton_step(program, weights, current, radius)
        if step is None:
            break
        points.append(step)
        current = step
    return points


def _newton_step(
    program: Program, weights: Weights, at: ConvexPoint, radius: float
) -> ConvexPoint | None:
    """Solve for d, delta in b = b0 (1 + radius d), w = w0 + radius delta."""
    b0 = np.maximum(at.b, 1e-12)
    x0 = program.forms @ b0
    curvature = program.forms * b0
    hessian = curvature.T @ ((2 * radius * at.form_weights / x0**3)[:, None] * curvature)
    n_w = len(program.time)
    quadratic = np.zeros((program.n_variables, program.n_variables))
    quadratic[: program.n_dims, : program.n_dims] = hessian
    linear = np.concatenate([weights.cost * program.price * b0, weights.time * program.time])
    upper, limit = _step_rows(program, b0, x0, radius)
    equal = np.hstack([program.rules.equal * b0, np.zeros((len(program.rules.equal), n_w))])
    target = (program.rules.target - program.rules.equal @ b0) / radius
    solution = _solve_qp(quadratic, linear, equal, target, upper, limit)
    if solution is None:
        return None
    x, duals = solution
    first_tangent = len(equal) + len(upper) - program.n_forms
    return ConvexPoint(
        b0 * (1 + radius * x[: program.n_dims]), np.maximum(duals[first_tangent:], 0)
    )


def _step_rows(program: Program, b0: Array, x0: Array, radius: float) -> tuple[Array, Array]:
    """Rules, epigraph rows, the trust region and (last) the tangents, over (d, delta)."""
    n_dims, n_w = program.n_dims, len(program.time)
    w_rows, w_offsets = program.w_rows
    identity = np.eye(n_dims, n_dims + n_w)
    rules = np.hstack([program.rules.upper * b0, np.zeros((len(program.rules.upper), n_w))])
    epigraph = np.hstack([np.zeros((len(w_rows), n_dims)), w_rows])
    reciprocal = np.eye(program.n_forms, n_w)
    tangents = np.hstack([-(program.forms * b0) / x0[:, None] ** 2, -reciprocal])
    rules_slack = (program.rules.limit - program.rules.upper @ b0) / radius
    epigraph_slack = -(w_rows @ w_values(program, b0) + w_offsets) / radius
    ones = np.ones(n_dims)
    limit = np.concatenate([rules_slack, epigraph_slack, ones, ones, np.zeros(program.n_forms)])
    rows = np.vstack([rules, epigraph, identity, -identity, tangents])
    return rows, np.minimum(limit, _FAR)


def _solve_qp(
    quadratic: Array, linear: Array, equal: Array, target: Array, upper: Array, limit: Array
) -> tuple[Array, Array] | None:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(len(target)), clarabel.NonnegativeConeT(len(limit))]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic)),
        linear,
        sparse.csc_matrix(np.vstack([equal, upper])),
        np.concatenate([target, limit]),
        cones,
        settings,
    )
    solution = solver.solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    return np.array(solution.x), np.array(solution.z)
