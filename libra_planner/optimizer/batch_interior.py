"""A primal-dual interior-point method for thousands of small programs at once.

The reciprocals are eliminated, so the variables are b and the maxima t (``batch_newton``).
Every operation runs over all designs, and designs that are done leave the arrays.
"""

from __future__ import annotations

import numpy as np

from libra_planner.optimizer.batch_newton import BatchPoint, NewtonSystem
from libra_planner.optimizer.batch_scaled import ScaledBatch, form_values, least_w

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


def solve_interior(batch: ScaledBatch, *, careful: bool = False) -> BatchPoint:
    """Interior-point solutions from b = 1; ``worst`` tells how good each one is.

    ``careful`` steps are damped until the residuals fall, and aim at the centre: more of
    them, for designs that long steps throw off.
    """
    point, at_work = _start(batch), np.arange(batch.n)
    result, left = point.take(at_work), np.zeros(batch.n, dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(_CAREFUL_ITERATIONS if careful else _ITERATIONS):
            system = NewtonSystem(batch, point)
            before, point.worst = point.worst, system.worst
            stalled = (point.worst < _NEARLY) & (point.worst > _STALLED * before)
            done = (point.worst < _DONE) | stalled | np.isinf(point.worst)
            # A design that is done is kept as it is, whatever its companions still do.
            leaving = np.flatnonzero(done & ~left)
            result.put(at_work[leaving], point.take(leaving))
            left |= done
            staying = np.flatnonzero(~left)
            if not len(staying):
                return result
            if 1 < len(staying) < _CROWD * batch.n:
                at_work, batch, point = at_work[staying], batch.take(staying), point.take(staying)
                system, left = NewtonSystem(batch, point), np.zeros(batch.n, dtype=bool)
            system.careful_step() if careful else system.step()
    staying = np.flatnonzero(~left)
    result.put(at_work[staying], point.take(staying))
    return result


def _start(batch: ScaledBatch) -> BatchPoint:
    b = np.ones((batch.n_dims, batch.n))
    w = least_w(1 / form_values(batch, b), batch.rows, batch.offsets)
    w[batch.n_forms :] *= _LONGER
    length = (batch.rows * w).sum(axis=1) + batch.offsets
    over = (batch.upper * b).sum(axis=1) - batch.limit
    slack = np.maximum(-np.concatenate([length, over]), _LEAST_SLACK)
    return BatchPoint(
        b=b,
        t=w[batch.n_forms :],
        slack=slack,
        dual=_PRODUCT / slack,
        equal_dual=np.zeros_like(batch.target),
        bound_dual=_PRODUCT / b,
        worst=np.full(batch.n, np.inf),
    )
