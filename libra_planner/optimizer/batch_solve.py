"""Dimensionless programs of a batch solved, made feasible, certified and freed of ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from libra_planner.optimizer.batch_certificate import lower_bound, restored
from libra_planner.optimizer.batch_interior import solve_interior
from libra_planner.optimizer.batch_newton import BatchPoint
from libra_planner.optimizer.batch_scaled import (
    Index,
    ScaledBatch,
    communication,
    lanes,
    size_of,
    taken,
    weighted_value,
)
from libra_planner.optimizer.batch_ties import chosen_among_ties
from libra_planner.optimizer.design import SURE_GAP
from libra_planner.step.expression import Array, Mask

_GOOD_GAP = 1e-8
"""Gap of a design that is something to go by; the reference solves the others."""

_GIVEN_AWAY = 1e-9
"""Share of the value that a choice among ties may give away."""

_TILT = 1e-7
"""Weight of cost that breaks ties where the set of optima is no polyhedron."""

_TILTED_AWAY = 1e-7
_TIME_TILTS = (1e-2, 1e-4, 1e-6)
"""Weights of time beside cost that find the fastest of the cheapest designs (``objectives``)."""

_FARTHEST = 1e4
"""Factor by which a further attempt may move a typical bandwidth."""

Build: TypeAlias = Callable[[Index, Array], ScaledBatch]
"""The programs of some designs, by index, near typical bandwidths, shape (n_dims, n)."""


@dataclass(frozen=True)
class Solved:
    """Designs of a batch, the designs on the last axis.

    Parameters
    ----------
    bandwidth : shape (n_dims, n), in the unit of the typical designs.
    bound : proven bound on what is minimised, in units of the program, shape (n,).
    scale : that unit, seconds or USD.
    gap : relative, shape (n,).
    unique : no other design ties.
    settled : the choice among designs that tie is exact.
    good : solved to 1e-8; the others are nothing to go by.
    """

    bandwidth: Array
    bound: Array
    scale: Array
    gap: Array
    unique: Mask
    settled: Mask
    good: Mask

    @property
    def open(self) -> Mask:
        """Designs that another attempt may improve, shape (n,)."""
        return np.asarray(~(self.gap <= SURE_GAP))


def solve_all(build: Build, typical: Array) -> Solved:
    """Solve every program from its typical design, in long steps."""
    return _attempt(build(np.arange(typical.shape[1]), typical), careful=False)


def solve_again(build: Build, typical: Array, which: Index, solved: Solved) -> None:
    """Solve some programs in units of where they ended, into ``solved`` where that is better.

    In long steps first, what is left in careful ones.
    """
    for careful in (False, True):
        if not len(which):
            return
        start = taken(typical, which)
        moved = np.clip(taken(solved.bandwidth, which) / start, 1 / _FARTHEST, _FARTHEST)
        moved = np.where(np.isfinite(moved), moved, 1.0)
        again = _attempt(build(which, start * moved), careful=careful)
        better = np.flatnonzero(~(taken(solved.gap, which) <= again.gap))
        for field in fields(solved):
            part = getattr(again, field.name)[..., better]
            getattr(solved, field.name)[..., which[better]] = part
        which = which[lanes(taken(solved.open, which))]


def _attempt(batch: ScaledBatch, *, careful: bool) -> Solved:
    with np.errstate(all="ignore"):
        point = solve_interior(batch, careful=careful)
        b = restored(batch, point.b)
        value, bound = weighted_value(batch, b), lower_bound(batch, point, b)
        gap = np.abs(value - bound) / size_of(value)
        unique, settled = np.zeros((2, batch.n), dtype=bool)
        sound = lanes(gap <= _GOOD_GAP)
        if len(sound):
            chosen = _chosen(batch.take(sound), point.take(sound), taken(b, sound))
            b[:, sound], unique[sound], settled[sound] = chosen
    scale = np.where(batch.time_weight > 0, batch.time_unit_s, batch.cost_unit_usd)
    good = np.asarray(gap <= _GOOD_GAP)
    return Solved(b * batch.bandwidth_unit, bound, scale, gap, unique, settled, good)


def _chosen(batch: ScaledBatch, point: BatchPoint, b: Array) -> tuple[Array, Mask, Mask]:
    """The design to print among those as good as b, whether it is the only one, and sure."""
    if not batch.time_weight.any():
        batch, point, b = _fastest_of_the_cheapest(batch, point, b)
    choice, value = chosen_among_ties(batch, point, b), weighted_value(batch, b)
    lost = weighted_value(batch, choice.b) - value
    open_ = choice.undecided | ~(lost <= _GIVEN_AWAY * size_of(value))
    rest = lanes(open_)
    if len(rest):
        choice.b[:, rest] = _tilted(batch.take(rest), taken(b, rest))
    return choice.b, choice.unique & ~open_, ~open_


def _fastest_of_the_cheapest(
    batch: ScaledBatch, point: BatchPoint, b: Array
) -> tuple[ScaledBatch, BatchPoint, Array]:
    """Where the step-time limit has room, optima with a little weight on time.

    The largest weight that leaves the cost as it is; their weights, points and vectors.
    """
    weights, b = batch.time_weight.copy(), b.copy()
    open_ = communication(batch, b) < batch.time_limit * (1 - _GIVEN_AWAY)
    for weight in _TIME_TILTS:
        which = lanes(open_)
        if not len(which):
            break
        tilted = batch.take(which).weighted(weight, 1.0)
        found = solve_interior(tilted)
        faster, cost = restored(tilted, found.b), (batch.price * b).sum(axis=0)[which]
        value, bound = weighted_value(tilted, faster), lower_bound(tilted, found, faster)
        cheap = (tilted.price * faster).sum(axis=0) <= cost * (1 + _GIVEN_AWAY)
        fine = cheap & (np.abs(value - bound) <= _GOOD_GAP * value)
        done = which[fine]
        point.put(done, found.take(np.flatnonzero(fine)))
        b[:, done], weights[done], open_[done] = faster[:, fine], weight, False
    return replace(batch, time_weight=weights), point, b


def _tilted(batch: ScaledBatch, b: Array) -> Array:
    """Optima with a little weight on cost: the cheapest of the optima to about 1e-7."""
    tilted = replace(batch, cost_weight=batch.cost_weight + _TILT)
    cheaper = restored(tilted, solve_interior(tilted).b)
    lost = weighted_value(batch, cheaper) - weighted_value(batch, b)
    return np.where(lost <= _TILTED_AWAY * size_of(weighted_value(batch, b)), cheaper, b)
