"""Newton steps on a solution: from an interior-point solver's 1e-6 to 1e-12 in bandwidth.

Step time is flat at its optimum, so a gap of 1e-10 in time leaves 1e-5 in the
bandwidths. Each step is the quadratic program of sequential quadratic programming,
in a trust region around the point and in its units, which the same interior-point
solver then solves to its relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from libra_planner.optimizer.convex import ConvexPoint
from libra_planner.optimizer.program import Program, Weights, w_values
from libra_planner.step.expression import Array

_TRUST = (1e-2, 1e-4, 1e-6, 1e-8)
"""Relative trust-region radii of the successive steps."""

_LEAST = 1e-12
_LEAST_SIZE = 1e-3
"""Bandwidth, in typical units, below which steps are no longer in proportion to it."""

_BINDING = 1e-7
"""Multiplier, over the largest, of a row that binds."""

_SMALL = 1e-5
"""Largest relative change of a bandwidth in the last step: it only adds digits."""

_FAR = 1e3
"""Slack, in trust radii, beyond which a row cannot bind: larger ones are cut to it."""


@dataclass(frozen=True)
class _Step:
    """The quadratic program of one step, over (d, delta) in b = b0 + radius size d.

    ``upper x <= limit`` holds rules, epigraph rows, the trust region and, last, tangents.
    """

    quadratic: Array
    linear: Array
    equal: Array
    target: Array
    upper: Array
    limit: Array


def polish(program: Program, weights: Weights, start: ConvexPoint) -> list[ConvexPoint]:
    """The successive points of the Newton steps, best last unless a step fails."""
    points: list[ConvexPoint] = []
    current, duals = start, np.empty(0)
    for radius in _TRUST:
        step = _step(program, weights, current, radius)
        solution = _solve_qp(step)
        if solution is None:
            break
        x, duals = solution
        b = np.maximum(current.b, _LEAST) + radius * _size(current.b) * x[: program.n_dims]
        current = ConvexPoint(b, np.maximum(duals[len(duals) - program.n_forms :], 0))
        points.append(current)
    last = _exact_step(program, weights, points[-1], duals) if points else None
    return [*points, last] if last else points


def _exact_step(
    program: Program, weights: Weights, at: ConvexPoint, duals: Array
) -> ConvexPoint | None:
    """One Newton step on the rows that bind, by linear algebra; ``None`` if it is not small.

    Where the objective is flat an interior point stops at about 1e-9 in bandwidth.
    """
    step = _step(program, weights, at, 1.0)
    binding = duals[len(step.equal) :] > _BINDING * duals.max(initial=0.0)
    first = len(step.upper) - program.n_forms - 2 * program.n_dims
    binding[first : first + 2 * program.n_dims] = False  # The trust region.
    rows = np.vstack([step.equal, step.upper[binding]])
    zeros = np.zeros((len(rows), len(rows)))
    matrix = np.block([[step.quadratic, rows.T], [rows, zeros]])
    right = np.concatenate([-step.linear, step.target, step.limit[binding]])
    x, *_ = np.linalg.lstsq(matrix, right, rcond=None)
    d = x[: program.n_dims]
    if not np.abs(d).max() <= _SMALL:
        return None
    return ConvexPoint(np.maximum(at.b, _LEAST) + _size(at.b) * d, at.form_weights)


def _step(program: Program, weights: Weights, at: ConvexPoint, radius: float) -> _Step:
    b0, size = np.maximum(at.b, _LEAST), _size(at.b)
    x0 = program.forms @ b0
    curvature = program.forms * size
    hessian = curvature.T @ ((2 * radius * at.form_weights / x0**3)[:, None] * curvature)
    n_w = len(program.time)
    quadratic = np.zeros((program.n_variables, program.n_variables))
    quadratic[: program.n_dims, : program.n_dims] = hessian
    linear = np.concatenate([weights.cost * program.price * size, weights.time * program.time])
    upper, limit = _step_rows(program, b0, size, radius)
    equal = np.hstack([program.rules.equal * size, np.zeros((len(program.rules.equal), n_w))])
    target = (program.rules.target - program.rules.equal @ b0) / radius
    return _Step(quadratic, linear, equal, target, upper, limit)


def _size(b: Array) -> Array:
    """What a step of 1 means for each bandwidth."""
    return np.maximum(b, _LEAST_SIZE)


def _step_rows(program: Program, b0: Array, size: Array, radius: float) -> tuple[Array, Array]:
    """Rules, epigraph rows, the trust region and (last) the tangents, over (d, delta)."""
    x0 = program.forms @ b0
    n_dims, n_w = program.n_dims, len(program.time)
    w_rows, w_offsets = program.w_rows
    identity = np.eye(n_dims, n_dims + n_w)
    rules = np.hstack([program.rules.upper * size, np.zeros((len(program.rules.upper), n_w))])
    epigraph = np.hstack([np.zeros((len(w_rows), n_dims)), w_rows])
    reciprocal = np.eye(program.n_forms, n_w)
    tangents = np.hstack([-(program.forms * size) / x0[:, None] ** 2, -reciprocal])
    rules_slack = (program.rules.limit - program.rules.upper @ b0) / radius
    epigraph_slack = -(w_rows @ w_values(program, b0) + w_offsets) / radius
    down = np.minimum(b0 / (radius * size), 1.0)
    ones = np.ones(n_dims)
    limit = np.concatenate([rules_slack, epigraph_slack, ones, down, np.zeros(program.n_forms)])
    rows = np.vstack([rules, epigraph, identity, -identity, tangents])
    return rows, np.minimum(limit, _FAR)


def _solve_qp(step: _Step) -> tuple[Array, Array] | None:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(len(step.target)), clarabel.NonnegativeConeT(len(step.limit))]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(step.quadratic)),
        step.linear,
        sparse.csc_matrix(np.vstack([step.equal, step.upper])),
        np.concatenate([step.target, step.limit]),
        cones,
        settings,
    )
    solution = solver.solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    return np.array(solution.x), np.array(solution.z)
