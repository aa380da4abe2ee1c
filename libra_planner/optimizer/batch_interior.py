"""A primal-dual interior-point method for thousands of small programs at once.

The reciprocals are eliminated, so the variables are b and the maxima t. Mehrotra's predictor
and corrector on the perturbed optimality conditions; every operation runs over all designs,
and designs that are done leave the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from libra_planner.optimizer.batch_factor import factored, solved
from libra_planner.optimizer.batch_scaled import ScaledBatch, form_values, least_w
from libra_planner.timing.expression import Array, Mask

_ITERATIONS, _CAREFUL_ITERATIONS = 30, 100
_DONE = 2e-12
"""Residuals below which a design is done."""

_NEARLY, _STALLED = 1e-8, 0.5
"""Residuals below which a step that leaves this share of them is the last one."""

_PRODUCTS = 1e2
"""Products of slacks and multipliers are to be smaller than residuals by this."""

_LEAST = 1e-14
"""Products are not driven below this: rounding takes over there."""

_TO_BOUNDARY = 0.995
_CENTRING, _CAREFUL_SHARE, _HALVINGS = 0.15, 0.95, 12
"""Of careful steps: the products aimed at, the share of the way to the boundary, the damping."""

_FALL = 0.7
"""Share that a form may lose in a step: reciprocals are far from linear beyond."""

_START = 0.3
"""Products of slacks and multipliers at the start."""

_CROWD = 0.7
"""Share of designs still at work below which those that are done leave the arrays."""


@dataclass
class BatchPoint:
    """Iterates: b (n_dims, n), t (n_maxima, n), slacks and multipliers of rows, one row each.

    ``rows_dual`` belongs to the epigraph rows, ``upper_dual`` to the rules, ``equal_dual`` to
    equalities, ``bound_dual`` to b >= 0. ``worst`` is the largest residual or product.
    """

    b: Array
    t: Array
    slack: Array
    dual: Array
    equal_dual: Array
    bound_dual: Array
    worst: Array

    def take(self, which: Mask | Array) -> BatchPoint:
        """Some of the designs."""
        return BatchPoint(*(getattr(self, field.name)[..., which] for field in fields(self)))

    def put(self, which: Array, other: BatchPoint) -> None:
        """Replace some of the designs."""
        for field in fields(self):
            getattr(self, field.name)[..., which] = getattr(other, field.name)


def solve_interior(batch: ScaledBatch, *, careful: bool = False) -> BatchPoint:
    """Interior-point solutions from b = 1; ``worst`` tells how good each one is.

    ``careful`` steps are damped until the residuals fall, and aim at the centre: more of
    them, for designs that long steps throw off.
    """
    point, at_work = _start(batch), np.arange(batch.n)
    result = point.take(at_work)
    with np.errstate(all="ignore"):
        for _ in range(_CAREFUL_ITERATIONS if careful else _ITERATIONS):
            system = _System(batch, point)
            before, point.worst = point.worst, system.worst()
            stalled = (point.worst < _NEARLY) & (point.worst > _STALLED * before)
            done = (point.worst < _DONE) | stalled | np.isinf(point.worst)
            if done.mean() > 1 - _CROWD:
                result.put(at_work, point)
                if done.all():
                    return result
                at_work, batch, point = at_work[~done], batch.take(~done), point.take(~done)
                system = _System(batch, point)
            if careful:
                system.careful_step()
            else:
                system.step()
    result.put(at_work, point)
    return result


def _start(batch: ScaledBatch) -> BatchPoint:
    b = np.ones((batch.n_dims, batch.n))
    w = least_w(1 / form_values(batch, b), batch.rows, batch.offsets)
    t = 1.3 * w[batch.n_forms :]
    gap = -np.concatenate(
        [
            (batch.rows * np.concatenate([w[: batch.n_forms], t])).sum(axis=1) + batch.offsets,
            (batch.upper * b).sum(axis=1) - batch.limit,
        ]
    )
    slack = np.maximum(gap, 0.1)
    return BatchPoint(
        b, t, slack, _START / slack, np.zeros_like(batch.target), _START / b, np.full(batch.n, np.inf)
    )


class _System:
    """Residuals at a point, and the Newton system over (b, t, multipliers of equalities)."""

    def __init__(self, batch: ScaledBatch, point: BatchPoint) -> None:
        self.batch, self.point = batch, point
        n_forms, n_dims, self.n_rows = batch.n_forms, batch.n_dims, len(batch.rows)
        u = self.reciprocals = 1 / form_values(batch, point.b)
        w = np.concatenate([u, point.t])
        row_dual = point.dual[: self.n_rows]
        pull = batch.time_weight * batch.time + _dot(batch.rows, row_dual)
        slopes = (u * u)[:, None] * batch.forms
        self.curvature = 2 * pull[:n_forms] * u, slopes
        self.jacobian = self._jacobian(slopes)
        rule_pull = _dot(batch.upper, point.dual[self.n_rows :])
        self.gradient = np.concatenate(
            [
                batch.cost_weight * batch.price
                - _dot(slopes, pull[:n_forms])
                + rule_pull
                + _dot(batch.equal, point.equal_dual)
                - point.bound_dual,
                pull[n_forms:],
            ]
        )
        self.excess = point.slack + np.concatenate(
            [
                (batch.rows * w).sum(axis=1) + batch.offsets,
                (batch.upper * point.b).sum(axis=1) - batch.limit,
            ]
        )
        self.off_target = (batch.equal * point.b).sum(axis=1) - batch.target
        self.n_products = len(point.slack) + n_dims
        products = (point.slack * point.dual).sum(axis=0)
        self.mean = (products + (point.b * point.bound_dual).sum(axis=0)) / self.n_products

    def _jacobian(self, slopes: Array) -> Array:
        """Rows by variables (b, t), shape (n_rows + n_upper, n_dims + n_maxima, n)."""
        batch, n_rows = self.batch, self.n_rows
        n_dims, n_forms = batch.n_dims, batch.n_forms
        n_t = len(self.point.t)
        jacobian = np.zeros((n_rows + len(batch.upper), n_dims + n_t, batch.n))
        for f in range(n_forms):
            jacobian[:n_rows, :n_dims] -= batch.rows[:, f, None] * slopes[f]
        jacobian[:n_rows, n_dims:] = batch.rows[:, n_forms:]
        jacobian[n_rows:, :n_dims] = batch.upper
        return jacobian

    def worst(self) -> Array:
        """The larger of residuals and products, the latter ``_PRODUCTS`` times, shape (n,)."""
        worst = np.maximum(_PRODUCTS * self.mean, np.abs(self.gradient).max(axis=0))
        for residual in (self.excess, self.off_target):
            worst = np.maximum(worst, np.abs(residual).max(axis=0, initial=0.0))
        return np.where(np.isfinite(worst), worst, np.inf)

    def step(self) -> None:
        """Move the point by one predictor-corrector step."""
        point = self.point
        factors = factored(self._matrix())
        affine = self._direction(factors, -point.slack * point.dual, -point.b * point.bound_dual)
        length = self._length(affine)
        mean = self._mean_after(affine, length)
        aim = np.maximum(np.minimum((mean / self.mean) ** 3, 1.0) * self.mean, _LEAST)
        _, _, d_slack, d_dual, d_bound_dual, d_b, _ = affine
        direction = self._direction(
            factors,
            aim - point.slack * point.dual - d_slack * d_dual,
            aim - point.b * point.bound_dual - d_b * d_bound_dual,
        )
        share = np.maximum(_TO_BOUNDARY, 1 - self.mean)
        self._move(direction, np.minimum(share * self._length(direction), 1.0))

    def careful_step(self) -> None:
        """Move the point towards the central path, only as far as the residuals fall."""
        point, aim = self.point, _CENTRING * self.mean
        direction = self._direction(
            factored(self._matrix()),
            aim - point.slack * point.dual,
            aim - point.b * point.bound_dual,
        )
        length = np.minimum(_CAREFUL_SHARE * self._length(direction), 1.0)
        now = self._distance(aim)
        for _ in range(_HALVINGS):
            trial = _System(self.batch, point.take(np.arange(self.batch.n)))
            trial._move(direction, length)
            far = ~(_System(self.batch, trial.point)._distance(aim) <= (1 - 0.01 * length) * now)
            if not far.any():
                break
            length = np.where(far, length / 2, length)
        self._move(direction, length)

    def _distance(self, aim: Array) -> Array:
        """Size of all residuals of the conditions with products ``aim``, shape (n,)."""
        point = self.point
        off = (point.slack * point.dual - aim, point.b * point.bound_dual - aim)
        residuals = (self.gradient, self.excess, self.off_target, *off)
        distance: Array = np.sqrt(sum((one**2).sum(axis=0) for one in residuals))
        return distance

    def _matrix(self) -> Array:
        batch, point = self.batch, self.point
        n_dims = batch.n_dims
        n_x, n_equal = self.jacobian.shape[1], len(batch.equal)
        matrix = np.zeros((n_x + n_equal, n_x + n_equal, batch.n))
        weighted = self.jacobian * (point.dual / point.slack)[:, None]
        for row, other in zip(weighted, self.jacobian, strict=True):
            matrix[:n_x, :n_x] += row[:, None] * other[None]
        weights, slopes = self.curvature
        for f, slope in enumerate(slopes):
            bent = weights[f] * slope
            matrix[:n_dims, :n_dims] += bent[:, None] * batch.forms[f][None]
        diagonal = np.arange(n_dims)
        matrix[diagonal, diagonal] += point.bound_dual / point.b
        # Rows that bind may leave M singular where only equalities hold b: E^T E changes
        # nothing on E dx = -off_target and keeps the pivots sound.
        self.penalty = np.sqrt(matrix[diagonal, diagonal].max(axis=0))
        for row in batch.equal:
            matrix[:n_dims, :n_dims] += (self.penalty * row)[:, None] * row[None]
        matrix[n_x:, :n_dims] = batch.equal
        matrix[:n_dims, n_x:] = batch.equal.swapaxes(0, 1)
        return matrix

    def _direction(self, factors: Array, aim: Array, bound_aim: Array) -> tuple[Array, ...]:
        """Changes for products of slack and multiplier that should change by ``aim``."""
        batch, point = self.batch, self.point
        n_x, n_dims = self.jacobian.shape[1], batch.n_dims
        pressure = point.dual / point.slack
        push = aim / point.slack + pressure * self.excess
        right = -self.gradient - _dot(self.jacobian, push)
        right[:n_dims] += bound_aim / point.b
        right[:n_dims] -= self.penalty * _dot(batch.equal, self.off_target)
        x = solved(factors, np.concatenate([right, -self.off_target]))
        d_rows = (self.jacobian * x[:n_x]).sum(axis=1)
        d_b = x[:n_dims]
        d_bound_dual = (bound_aim - point.bound_dual * d_b) / point.b
        d_slack = -self.excess - d_rows
        return (
            x[:n_x],
            x[n_x:],
            d_slack,
            push + pressure * d_rows,
            d_bound_dual,
            d_b,
            d_rows,
        )

    def _length(self, direction: tuple[Array, ...]) -> Array:
        """Largest step that keeps slacks, bandwidths and multipliers from going below 0."""
        point = self.point
        _, _, d_slack, d_dual, d_bound_dual, d_b, _ = direction
        shrink = np.zeros(self.batch.n)
        pairs = (
            (point.slack, d_slack),
            (point.dual, d_dual),
            (point.b, d_b),
            (point.bound_dual, d_bound_dual),
        )
        for value, change in pairs:
            np.maximum(shrink, (-change / value).max(axis=0, initial=0.0), out=shrink)
        falling = -(self.batch.forms * d_b).sum(axis=1) * self.reciprocals
        np.maximum(shrink, falling.max(axis=0, initial=0.0) / _FALL, out=shrink)
        return 1 / np.maximum(shrink, 1e-3)

    def _mean_after(self, direction: tuple[Array, ...], length: Array) -> Array:
        """Mean product after a step, at most of length 1."""
        point, length = self.point, np.minimum(length, 1.0)
        _, _, d_slack, d_dual, d_bound_dual, d_b, _ = direction
        products = (point.slack + length * d_slack) * (point.dual + length * d_dual)
        bounds = (point.b + length * d_b) * (point.bound_dual + length * d_bound_dual)
        mean: Array = (products.sum(axis=0) + bounds.sum(axis=0)) / self.n_products
        return mean

    def _move(self, direction: tuple[Array, ...], length: Array) -> None:
        point, n_dims = self.point, self.batch.n_dims
        d_x, d_equal, d_slack, d_dual, d_bound_dual, _, _ = direction
        point.b += length * d_x[:n_dims]
        point.t += length * d_x[n_dims:]
        point.equal_dual += length * d_equal
        point.slack += length * d_slack
        point.dual += length * d_dual
        point.bound_dual += length * d_bound_dual


def _dot(rows: Array, weights: Array) -> Array:
    """sum_j weights_j rows_j, shapes (m, k, n) and (m, n)."""
    total: Array = (rows * weights[:, None]).sum(axis=0)
    return total
