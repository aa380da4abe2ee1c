"""A primal-dual interior-point method for thousands of small programs at once.

The reciprocals are eliminated, so the variables are b and the maxima t. The optimality
conditions, with slacks s of the rows, multipliers l of rows, v of b >= 0 and z of equalities,
and products s l and v b that are driven to zero, are

    gradient of the Lagrangian = 0,  rows + s = 0,  E b = e,  s l = mu,  v b = mu.

Slacks and multipliers are eliminated; what is left is symmetric, over (b, t, z). Every operation
runs over all designs, and designs that are done leave the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from libra_planner.optimizer.programs import dimensionless as programs
from libra_planner.step.expression import Array

_ITERATIONS, _CAREFUL_ITERATIONS = 30, 100
_DONE = 2e-12
"""Residuals below which a design is done."""

_NEARLY, _STALLED = 1e-8, 0.5
"""Residuals below which a step that leaves this share of them is the last one."""

_LONGER = 1.3
_LEAST_SLACK, _PRODUCT = 0.1, 0.3
"""At the start: maxima over their least length, least slacks, slacks times multipliers."""

_CROWD = 0.7
"""Share of designs still at work below which those that are done leave the arrays."""

_PRODUCTS = 1e2
"""Products of slacks and multipliers are to be smaller than residuals by this."""

_LEAST, _LEAST_OF_ALL = 1e-14, 1e-18
"""Products are not driven below this, or the last steps' below that: rounding takes over."""

_FURTHER_STEPS = 6

_TO_BOUNDARY = 0.995
_FALL = 0.7
"""Share that a form may lose in a step: reciprocals are far from linear beyond."""

_CENTRING, _CAREFUL_SHARE, _HALVINGS = 0.15, 0.95, 12
"""Of careful steps: the products aimed at, the share of the way to the boundary, the damping."""

_DEPENDENT = 1e-13
"""Pivot, over its own diagonal entry, below which a row depends on those before it."""


def solve_interior(
    program: programs.Program, *, careful: bool = False, thorough: bool = False
) -> programs.Point:
    """Interior-point solutions from b = 1.

    ``careful`` steps are damped until the residuals fall, and aim at the centre: more of
    them, for designs that long steps throw off. A ``thorough`` solution takes further steps as
    long as the residuals fall: step time is flat at its optimum, bandwidths gain by them.
    """
    point = _solved(program, careful=careful)
    if not thorough:
        return point
    with np.errstate(all="ignore"):
        point.worst = _NewtonSystem(program, point).worst
        for _ in range(_FURTHER_STEPS):
            trial = programs.some_of(point, np.arange(program.n))
            _NewtonSystem(program, trial).step(least=_LEAST_OF_ALL)
            trial.worst = _NewtonSystem(program, trial).worst
            better = np.flatnonzero(trial.worst < point.worst)
            if not len(better):
                break
            programs.put(point, better, programs.some_of(trial, better))
    return point


def _solved(program: programs.Program, *, careful: bool) -> _Iterate:
    point, at_work = _start(program), np.arange(program.n)
    result, left = programs.some_of(point, at_work), np.zeros(program.n, dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(_CAREFUL_ITERATIONS if careful else _ITERATIONS):
            system = _NewtonSystem(program, point)
            before, point.worst = point.worst, system.worst
            stalled = (point.worst < _NEARLY) & (point.worst > _STALLED * before)
            done = (point.worst < _DONE) | stalled | np.isinf(point.worst)
            # A design that is done is kept as it is, whatever its companions still do.
            leaving = np.flatnonzero(done & ~left)
            programs.put(result, at_work[leaving], programs.some_of(point, leaving))
            left |= done
            staying = np.flatnonzero(~left)
            if not len(staying):
                return result
            if 1 < len(staying) < _CROWD * program.n:
                at_work, program = at_work[staying], program.take(staying)
                point = programs.some_of(point, staying)
                system, left = _NewtonSystem(program, point), np.zeros(program.n, dtype=bool)
            system.careful_step() if careful else system.step()
    staying = np.flatnonzero(~left)
    programs.put(result, at_work[staying], programs.some_of(point, staying))
    return result


def _start(program: programs.Program) -> _Iterate:
    b = np.ones((program.n_dims, program.n))
    w = programs.least_w(1 / programs.form_values(program, b), program.rows, program.offsets)
    w[program.n_forms :] *= _LONGER
    length = (program.rows * w).sum(axis=1) + program.offsets
    over = (program.upper * b).sum(axis=1) - program.limit
    slack = np.maximum(-np.concatenate([length, over]), _LEAST_SLACK)
    return _Iterate(
        b=b,
        t=w[program.n_forms :],
        slack=slack,
        dual=_PRODUCT / slack,
        equal_dual=np.zeros_like(program.target),
        bound_dual=_PRODUCT / b,
        worst=np.full(program.n, np.inf),
    )


@dataclass
class _Iterate(programs.Point):
    """Where n designs are, changed in place, or how all of that changes in a step.

    Parameters
    ----------
    t : the maxima, shape (n_maxima, n).
    slack : of the epigraph rows, then of the rules, shape (n_rows, n).
    bound_dual : multipliers of b >= 0, shape (n_dims, n).
    worst : largest residual or product, shape (n,).
    """

    t: Array
    slack: Array
    bound_dual: Array
    worst: Array


class _NewtonSystem:
    """Residuals at a point, and the steps from it.

    Parameters
    ----------
    program, point : the programs and where they are.
    """

    def __init__(self, program: programs.Program, point: _Iterate) -> None:
        self.program, self.point = program, point
        n_forms, n_rows = program.n_forms, len(program.rows)
        u = 1 / programs.form_values(program, point.b)
        pull = program.time_weight * program.time + programs.weighted_sum(
            program.rows, point.dual[:n_rows]
        )
        slopes = (u * u)[:, None] * program.forms
        cost = program.cost_weight * program.price - programs.weighted_sum(slopes, pull[:n_forms])
        held = programs.weighted_sum(program.upper, point.dual[n_rows:])
        held += programs.weighted_sum(program.equal, point.equal_dual)
        length = (program.rows * np.concatenate([u, point.t])).sum(axis=1) + program.offsets
        over = (program.upper * point.b).sum(axis=1) - program.limit
        products = (point.slack * point.dual).sum(axis=0) + (point.b * point.bound_dual).sum(axis=0)
        self.reciprocals, self.curvature, self.slopes = u, 2 * pull[:n_forms] * u, slopes
        self.gradient = np.concatenate([cost + held - point.bound_dual, pull[n_forms:]])
        self.excess = point.slack + np.concatenate([length, over])
        self.off_target = (program.equal * point.b).sum(axis=1) - program.target
        self.n_products = len(point.slack) + program.n_dims
        self.mean = products / self.n_products

    @property
    def worst(self) -> Array:
        """The largest residual, or product times ``_PRODUCTS``, shape (n,)."""
        worst = np.maximum(_PRODUCTS * self.mean, np.abs(self.gradient).max(axis=0))
        for residual in (self.excess, self.off_target):
            worst = np.maximum(worst, np.abs(residual).max(axis=0, initial=0.0))
        return np.where(np.isfinite(worst), worst, np.inf)

    def step(self, *, least: float = _LEAST) -> None:
        """Move the point by one predictor-corrector step (Mehrotra, 1992)."""
        point, solve = self.point, self._solver()
        slack_products, bound_products = point.slack * point.dual, point.b * point.bound_dual
        affine = solve(-slack_products, -bound_products)
        length = np.minimum(self._length(affine), 1.0)  # The longest step up to 1.
        rows = (point.slack + length * affine.slack) * (point.dual + length * affine.dual)
        bounds = (point.b + length * affine.b) * (point.bound_dual + length * affine.bound_dual)
        mean_after = (rows.sum(axis=0) + bounds.sum(axis=0)) / self.n_products
        left = np.minimum(mean_after / self.mean, 1.0)
        aim = np.maximum(left * left * left * self.mean, least)
        direction = solve(
            aim - slack_products - affine.slack * affine.dual,
            aim - bound_products - affine.b * affine.bound_dual,
        )
        share = np.maximum(_TO_BOUNDARY, 1 - self.mean)
        _move(point, direction, np.minimum(share * self._length(direction), 1.0))

    def careful_step(self) -> None:
        """Move the point towards the central path, only as far as the residuals fall."""
        point, aim = self.point, _CENTRING * self.mean
        products = point.slack * point.dual, point.b * point.bound_dual
        direction = self._solver()(aim - products[0], aim - products[1])
        length = np.minimum(_CAREFUL_SHARE * self._length(direction), 1.0)
        now = self._distance(aim)
        for _ in range(_HALVINGS):
            trial = programs.some_of(point, np.arange(self.program.n))
            _move(trial, direction, length)
            then = _NewtonSystem(self.program, trial)._distance(aim)
            far = ~(then <= (1 - 0.01 * length) * now)
            if not far.any():
                break
            length = np.where(far, length / 2, length)
        _move(point, direction, length)

    def _distance(self, aim: Array) -> Array:
        """Size of all residuals of the conditions with products ``aim``, shape (n,)."""
        point = self.point
        off = (point.slack * point.dual - aim, point.b * point.bound_dual - aim)
        residuals = np.concatenate([self.gradient, self.excess, self.off_target, *off])
        return np.asarray(np.sqrt((residuals**2).sum(axis=0)))

    def _solver(self) -> Callable[[Array, Array], _Iterate]:
        """Directions for products that should change by given amounts."""
        program, point, n_dims = self.program, self.point, self.program.n_dims
        jacobian = self._jacobian()
        pressure = point.dual / point.slack
        matrix, penalty = self._matrix(jacobian, pressure)
        factors, n_x = factored(matrix), jacobian.shape[1]

        def solve(aim: Array, bound_aim: Array) -> _Iterate:
            push = aim / point.slack + pressure * self.excess
            right = -self.gradient - programs.weighted_sum(jacobian, push)
            right[:n_dims] += bound_aim / point.b
            right[:n_dims] -= penalty * programs.weighted_sum(program.equal, self.off_target)
            x = solved(factors, np.concatenate([right, -self.off_target]))
            d_rows = (jacobian * x[:n_x]).sum(axis=1)
            return _Iterate(
                b=x[:n_dims],
                t=x[n_dims:n_x],
                equal_dual=x[n_x:],
                slack=-self.excess - d_rows,
                dual=push + pressure * d_rows,
                bound_dual=(bound_aim - point.bound_dual * x[:n_dims]) / point.b,
                worst=np.zeros(program.n),
            )

        return solve

    def _jacobian(self) -> Array:
        """Rows by variables (b, t), shape (n_rows + n_upper, n_dims + n_maxima, n)."""
        program, n_rows = self.program, len(self.program.rows)
        n_dims, n_forms = program.n_dims, program.n_forms
        n_x = n_dims + len(self.point.t)
        jacobian = np.zeros((n_rows + len(program.upper), n_x, program.n))
        for f in range(n_forms):
            jacobian[:n_rows, :n_dims] -= program.rows[:, f, None] * self.slopes[f]
        jacobian[:n_rows, n_dims:] = program.rows[:, n_forms:]
        jacobian[n_rows:, :n_dims] = program.upper
        return jacobian

    def _matrix(self, jacobian: Array, pressure: Array) -> tuple[Array, Array]:
        """The matrix over (b, t, z), and the weight of E^T E in it, shape (n,).

        Where only equalities hold b the rest is singular to rounding: E^T E changes nothing
        on E db = -off_target and keeps the pivots sound.
        """
        program, point, n_dims = self.program, self.point, self.program.n_dims
        n_x, n_equal = jacobian.shape[1], len(program.equal)
        matrix = np.zeros((n_x + n_equal, n_x + n_equal, program.n))
        for row, weight in zip(jacobian, pressure, strict=True):
            here = np.flatnonzero(row.any(axis=1))  # A row has few of the variables.
            own = row[here]
            matrix[np.ix_(here, here)] += (weight * own)[:, None] * own[None]
        over_b = matrix[:n_dims, :n_dims]
        for form, slope, weight in zip(program.forms, self.slopes, self.curvature, strict=True):
            over_b += (weight * slope)[:, None] * form[None]
        diagonal = np.arange(n_dims)
        matrix[diagonal, diagonal] += point.bound_dual / point.b
        penalty = np.sqrt(matrix[diagonal, diagonal].max(axis=0))
        for row in program.equal:
            over_b += (penalty * row)[:, None] * row[None]
        matrix[n_x:, :n_dims] = program.equal
        matrix[:n_dims, n_x:] = program.equal.swapaxes(0, 1)
        return matrix, penalty

    def _length(self, direction: _Iterate) -> Array:
        """Largest step, 1000 at most, that keeps what must be positive so, shape (n,)."""
        falling = -(self.program.forms * direction.b).sum(axis=1) * self.reciprocals
        shrink = np.maximum(falling.max(axis=0, initial=0.0) / _FALL, 1e-3)
        for name in ("slack", "dual", "b", "bound_dual"):
            share = -getattr(direction, name) / getattr(self.point, name)
            np.maximum(shrink, share.max(axis=0, initial=0.0), out=shrink)
        return np.asarray(1 / shrink)


def _move(point: _Iterate, direction: _Iterate, length: Array) -> None:
    for name, change in vars(direction).items():
        values = getattr(point, name)
        values += length * change


def factored(matrix: Array) -> Array:
    """L and D of ``matrix = L D L^T`` in one array, shape (k, k, n), in the place of ``matrix``.

    Without pivoting: for positive definite matrices and for ``[[M, E^T], [E, 0]]`` with
    M positive definite, where every order of pivots exists. The variable of a row that
    depends on rows before it becomes 0.

    Examples
    --------
    >>> solved(factored(np.array([[2.0, 1.0], [1.0, 3.0]])[:, :, None]), np.array([[3.0], [4.0]]))
    array([[1.],
           [1.]])
    """
    k = len(matrix)
    size = np.abs(matrix[np.arange(k), np.arange(k)])
    for i in range(k):
        pivot = matrix[i, i]
        dependent = np.abs(pivot) <= _DEPENDENT * size[i]
        if dependent.any():
            pivot[dependent] = np.inf
        if i + 1 < k:
            column = matrix[i + 1 :, i] / pivot
            matrix[i + 1 :, i + 1 :] -= column[:, None] * matrix[i + 1 :, i][None]
            matrix[i + 1 :, i] = column
    return matrix


def solved(factors: Array, right: Array) -> Array:
    """Solutions of the factored systems for right sides of shape (k, n)."""
    x = right.copy()
    k = len(x)
    for i in range(k - 1):
        x[i + 1 :] -= factors[i + 1 :, i] * x[i]
    x /= factors[np.arange(k), np.arange(k)]
    for i in range(k - 1, 0, -1):
        x[:i] -= factors[i, :i] * x[i]
    return x
