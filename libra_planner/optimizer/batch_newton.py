"""Newton's system of thousands of small programs at one point each, and the steps it gives.

The optimality conditions, with slacks s of the rows, multipliers l of rows, v of b >= 0 and
z of equalities, and products s l and v b that are driven to zero:

    gradient of the Lagrangian = 0,  rows + s = 0,  E b = e,  s l = mu,  v b = mu.

Slacks and multipliers are eliminated; what is left is symmetric, over (b, t, z).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from libra_planner.optimizer.batch_factor import factored, solved
from libra_planner.optimizer.batch_scaled import (
    Index,
    ScaledBatch,
    form_values,
    taken,
    weighted_sum,
)
from libra_planner.step.expression import Array

_PRODUCTS = 1e2
"""Products of slacks and multipliers are to be smaller than residuals by this."""

_LEAST = 1e-14
"""Products are not driven below this: rounding takes over there."""

_TO_BOUNDARY = 0.995
_FALL = 0.7
"""Share that a form may lose in a step: reciprocals are far from linear beyond."""

_CENTRING, _CAREFUL_SHARE, _HALVINGS = 0.15, 0.95, 12
"""Of careful steps: the products aimed at, the share of the way to the boundary, the damping."""


@dataclass
class BatchPoint:
    """Iterates of n designs, changed in place.

    Parameters
    ----------
    b, bound_dual : shape (n_dims, n), and the multipliers of b >= 0.
    t : the maxima, shape (n_maxima, n).
    slack, dual : of the epigraph rows, then of the rules, shape (n_rows, n).
    equal_dual : shape (n_equal, n).
    worst : largest residual or product, shape (n,).
    """

    b: Array
    t: Array
    slack: Array
    dual: Array
    equal_dual: Array
    bound_dual: Array
    worst: Array

    def take(self, which: Index) -> BatchPoint:
        """Some of the designs, copied."""
        return BatchPoint(*(taken(getattr(self, field.name), which) for field in fields(self)))

    def put(self, which: Index, other: BatchPoint) -> None:
        """Replace some of the designs."""
        for field in fields(self):
            getattr(self, field.name)[..., which] = getattr(other, field.name)


@dataclass(frozen=True)
class _Direction:
    """Changes of everything in a :class:`BatchPoint`; ``x`` is that of (b, t)."""

    x: Array
    equal_dual: Array
    slack: Array
    dual: Array
    bound_dual: Array


class NewtonSystem:
    """Residuals at a point, and the steps from it.

    Parameters
    ----------
    batch, point : the programs and where they are.
    """

    def __init__(self, batch: ScaledBatch, point: BatchPoint) -> None:
        self.batch, self.point = batch, point
        n_forms, n_rows = batch.n_forms, len(batch.rows)
        u = 1 / form_values(batch, point.b)
        pull = batch.time_weight * batch.time + weighted_sum(batch.rows, point.dual[:n_rows])
        slopes = (u * u)[:, None] * batch.forms
        cost = batch.cost_weight * batch.price - weighted_sum(slopes, pull[:n_forms])
        held = weighted_sum(batch.upper, point.dual[n_rows:])
        held += weighted_sum(batch.equal, point.equal_dual)
        length = (batch.rows * np.concatenate([u, point.t])).sum(axis=1) + batch.offsets
        over = (batch.upper * point.b).sum(axis=1) - batch.limit
        products = (point.slack * point.dual).sum(axis=0) + (point.b * point.bound_dual).sum(axis=0)
        self.reciprocals, self.curvature, self.slopes = u, 2 * pull[:n_forms] * u, slopes
        self.gradient = np.concatenate([cost + held - point.bound_dual, pull[n_forms:]])
        self.excess = point.slack + np.concatenate([length, over])
        self.off_target = (batch.equal * point.b).sum(axis=1) - batch.target
        self.n_products = len(point.slack) + batch.n_dims
        self.mean = products / self.n_products

    @property
    def worst(self) -> Array:
        """The largest residual, or product times ``_PRODUCTS``, shape (n,)."""
        worst = np.maximum(_PRODUCTS * self.mean, np.abs(self.gradient).max(axis=0))
        for residual in (self.excess, self.off_target):
            worst = np.maximum(worst, np.abs(residual).max(axis=0, initial=0.0))
        return np.where(np.isfinite(worst), worst, np.inf)

    def step(self) -> None:
        """Move the point by one predictor-corrector step (Mehrotra, 1992)."""
        point, solve = self.point, self._solver()
        slack_products, bound_products = point.slack * point.dual, point.b * point.bound_dual
        affine = solve(-slack_products, -bound_products)
        left = np.minimum(self._mean_after(affine) / self.mean, 1.0)
        aim = np.maximum(left * left * left * self.mean, _LEAST)
        d_b = affine.x[: self.batch.n_dims]
        direction = solve(
            aim - slack_products - affine.slack * affine.dual,
            aim - bound_products - d_b * affine.bound_dual,
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
            trial = point.take(np.arange(self.batch.n))
            _move(trial, direction, length)
            then = NewtonSystem(self.batch, trial)._distance(aim)
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
        distance: Array = np.sqrt((residuals**2).sum(axis=0))
        return distance

    def _solver(self) -> Callable[[Array, Array], _Direction]:
        """Directions for products that should change by given amounts."""
        batch, point, n_dims = self.batch, self.point, self.batch.n_dims
        jacobian = self._jacobian()
        pressure = point.dual / point.slack
        matrix, penalty = self._matrix(jacobian, pressure)
        factors, n_x = factored(matrix), jacobian.shape[1]

        def solve(aim: Array, bound_aim: Array) -> _Direction:
            push = aim / point.slack + pressure * self.excess
            right = -self.gradient - weighted_sum(jacobian, push)
            right[:n_dims] += bound_aim / point.b
            right[:n_dims] -= penalty * weighted_sum(batch.equal, self.off_target)
            x = solved(factors, np.concatenate([right, -self.off_target]))
            d_rows = (jacobian * x[:n_x]).sum(axis=1)
            return _Direction(
                x=x[:n_x],
                equal_dual=x[n_x:],
                slack=-self.excess - d_rows,
                dual=push + pressure * d_rows,
                bound_dual=(bound_aim - point.bound_dual * x[:n_dims]) / point.b,
            )

        return solve

    def _jacobian(self) -> Array:
        """Rows by variables (b, t), shape (n_rows + n_upper, n_dims + n_maxima, n)."""
        batch, n_rows = self.batch, len(self.batch.rows)
        n_dims, n_forms = batch.n_dims, batch.n_forms
        n_x = n_dims + len(self.point.t)
        jacobian = np.zeros((n_rows + len(batch.upper), n_x, batch.n))
        for f in range(n_forms):
            jacobian[:n_rows, :n_dims] -= batch.rows[:, f, None] * self.slopes[f]
        jacobian[:n_rows, n_dims:] = batch.rows[:, n_forms:]
        jacobian[n_rows:, :n_dims] = batch.upper
        return jacobian

    def _matrix(self, jacobian: Array, pressure: Array) -> tuple[Array, Array]:
        """The matrix over (b, t, z), and the weight of E^T E in it, shape (n,).

        Where only equalities hold b the rest is singular to rounding: E^T E changes nothing
        on E db = -off_target and keeps the pivots sound.
        """
        batch, point, n_dims = self.batch, self.point, self.batch.n_dims
        n_x, n_equal = jacobian.shape[1], len(batch.equal)
        matrix = np.zeros((n_x + n_equal, n_x + n_equal, batch.n))
        for row, weight in zip(jacobian, pressure, strict=True):
            matrix[:n_x, :n_x] += (weight * row)[:, None] * row[None]
        over_b = matrix[:n_dims, :n_dims]
        for form, slope, weight in zip(batch.forms, self.slopes, self.curvature, strict=True):
            over_b += (weight * slope)[:, None] * form[None]
        diagonal = np.arange(n_dims)
        matrix[diagonal, diagonal] += point.bound_dual / point.b
        penalty = np.sqrt(matrix[diagonal, diagonal].max(axis=0))
        for row in batch.equal:
            over_b += (penalty * row)[:, None] * row[None]
        matrix[n_x:, :n_dims] = batch.equal
        matrix[:n_dims, n_x:] = batch.equal.swapaxes(0, 1)
        return matrix, penalty

    def _length(self, direction: _Direction) -> Array:
        """Largest step, 1000 at most, that keeps what must be positive so, shape (n,)."""
        point, d_b = self.point, direction.x[: self.batch.n_dims]
        falling = -(self.batch.forms * d_b).sum(axis=1) * self.reciprocals
        shrink = np.maximum(falling.max(axis=0, initial=0.0) / _FALL, 1e-3)
        pairs = (
            (point.slack, direction.slack),
            (point.dual, direction.dual),
            (point.b, d_b),
            (point.bound_dual, direction.bound_dual),
        )
        for value, change in pairs:
            np.maximum(shrink, (-change / value).max(axis=0, initial=0.0), out=shrink)
        length: Array = 1 / shrink
        return length

    def _mean_after(self, direction: _Direction) -> Array:
        """Mean product after the longest step up to 1, shape (n,)."""
        point, length = self.point, np.minimum(self._length(direction), 1.0)
        d_b = direction.x[: self.batch.n_dims]
        rows = (point.slack + length * direction.slack) * (point.dual + length * direction.dual)
        bounds = (point.b + length * d_b) * (point.bound_dual + length * direction.bound_dual)
        mean: Array = (rows.sum(axis=0) + bounds.sum(axis=0)) / self.n_products
        return mean


def _move(point: BatchPoint, direction: _Direction, length: Array) -> None:
    n_dims = len(point.b)
    point.b += length * direction.x[:n_dims]
    point.t += length * direction.x[n_dims:]
    point.equal_dual += length * direction.equal_dual
    point.slack += length * direction.slack
    point.dual += length * direction.dual
    point.bound_dual += length * direction.bound_dual
