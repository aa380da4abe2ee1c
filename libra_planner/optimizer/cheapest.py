"""Among equally fast designs the cheapest, then the lexicographically first (C9).

An interior-point solver ends in the middle of the set of optima and so buys bandwidth
that nobody uses. That set is known exactly: 1/x is strictly convex, so every form with
a positive multiplier has one value over all optima, and every maximum one length; the
rest is linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.optimizer.face import FlatFace, is_flat
from libra_planner.optimizer.linear import CutModel
from libra_planner.optimizer.nested_face import NestedFace
from libra_planner.optimizer.program import Program, size_of, weighted
from libra_planner.step.expression import Array, Mask

_PRICED = 1e-7
"""Share of the time above which a form's multiplier counts as positive."""

_TIED = 1e-6
"""Relative spread of a bandwidth above which another design ties."""

_TIGHT, _PARALLEL = 1e-8, 1e-7
"""Slack of a row that is held exactly, and angle below which two rows are one."""

_SAME = 1e-9
"""Relative difference up to which two vectors are one."""


@dataclass(frozen=True)
class Choice:
    """The chosen vector, whether no other ties in time and cost, and whether both is sure."""

    b: Array
    unique: bool
    settled: bool = True


def cheapest(program: Program, model: CutModel, b: Array, form_weights: Array) -> Choice:
    """The cheapest, then lexicographically first, design as fast as b.

    Parameters
    ----------
    program, model : the program and its tangent model (cuts are added).
    b : an optimal design.
    form_weights : multipliers of the reciprocals in an optimal dual.

    Raises
    ------
    SolverFailed
        When the linear programs end without a solution.
    """
    size = size_of(weighted(program, model.weights, b))
    priced = form_weights / (program.forms @ b) > _PRICED * size
    face = (
        FlatFace(program, b, priced) if is_flat(program) else NestedFace(program, model, b, priced)
    )
    fixed = _fixed_dims(program, priced)
    if fixed.all():
        return Choice(b, unique=True)
    chosen = face.best(program.price)
    face.keep(program.price, chosen)
    spread = np.zeros(program.n_dims)
    for i in np.flatnonzero(~fixed):
        axis = np.eye(program.n_dims)[i]
        highest = face.best(-axis)
        chosen = face.best(axis)
        spread[i] = highest[i] - chosen[i]
        face.keep(axis, chosen)
    if np.allclose(chosen, b, rtol=_SAME, atol=0.0):
        chosen = b  # There was nothing to choose, and b is the more accurate of the two.
    chosen = _with_exact(program, chosen, b, fixed)
    return Choice(chosen, bool((spread <= _TIED * _sizes(program, chosen)).all()))


def _sizes(program: Program, b: Array) -> Array:
    """What spreads are relative to: the largest bandwidth, or 1/C itself (``batch_ties``)."""
    bandwidth = np.where(program.price < 0, 0.0, b * program.bandwidth_unit)
    return np.where(program.price < 0, b, bandwidth.max() / program.bandwidth_unit)


def _with_exact(program: Program, chosen: Array, b: Array, fixed: Mask) -> Array:
    """The choice with b's own digits where all optima agree, the rest moved onto tight rules.

    A linear program's vertex is exact to about 1e-10 only.
    """
    point, rules = np.where(fixed, b, chosen), program.rules
    tight = rules.upper @ point - rules.limit > -_TIGHT
    rows = np.vstack([rules.equal, rules.upper[tight]])
    gap = np.concatenate([rules.target, rules.limit[tight]]) - rows @ point
    if len(rows):
        moved, *_ = np.linalg.lstsq(rows[:, ~fixed] * point[~fixed], gap, rcond=_PARALLEL)
        point[~fixed] *= 1 + moved
    return np.maximum(point, 0.0)


def _fixed_dims(program: Program, priced: Mask) -> Mask:
    """Dimensions of which a priced form consists: the same bandwidth in all optima."""
    alone = (program.forms != 0).sum(axis=1) == 1
    return np.asarray((program.forms[priced & alone] != 0).any(axis=0))
