"""Dimensionless programs of a batch solved, made feasible, certified and freed of ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from libra_planner.optimizer.batch_certificate import lower_bound, restored
from libra_planner.optimizer.batch_interior import BatchPoint, solve_interior
from libra_planner.optimizer.batch_scaled import ScaledBatch, communication, weighted_value
from libra_planner.optimizer.batch_ties import chosen_among_ties
from libra_planner.timing.expression import Array, Mask

_GOOD_GAP = 1e-8
"""Gap of a design that needs no second attempt; C9 asks for 1e-6."""

_GIVEN_AWAY = 1e-9
"""Share of the value that a choice among ties may give away."""

_TILT = 1e-7
"""Weight of cost that breaks ties where the set of optima is no polyhedron."""

_TILTED_AWAY = 1e-7
_SLACK = 1e-9
_TIME_TILTS = (1e-2, 1e-4, 1e-6)
"""Weights of time beside cost that find the fastest of the cheapest designs (``objectives``)."""

Build: TypeAlias = Callable[[Array, Array], ScaledBatch]
"""The programs of some designs, by index, near typical bandwidths, shape (n_dims, n)."""


@dataclass(frozen=True)
class Solved:
    """Designs of a batch, the designs on the last axis.

    Parameters
    ----------
    bandwidth : shape (n_dims, n), in the unit of the typical designs.
    bound : proven bound on what is minimised, in units of the program, shape (n,).
    scale : that unit, seconds or USD.
    unique : no other design ties.
    good : solved to 1e-8; the others are nothing to go by.
    """

    bandwidth: Array
    bound: Array
    scale: Array
    unique: Mask
    good: Mask


def solve_all(build: Build, typical: Array) -> Solved:
    """Solve every program from its typical design, in long steps."""
    return _attempt(build(np.arange(typical.shape[1]), typical), careful=False)


def solve_again(build: Build, typical: Array, which: Array, solved: Solved) -> None:
    """Solve some of the programs in careful steps, into ``solved``."""
    if not len(which):
        return
    second = _attempt(build(which, typical[:, which]), careful=True)
    for field in fields(solved):
        getattr(solved, field.name)[..., which] = getattr(second, field.name)


def _attempt(batch: ScaledBatch, *, careful: bool) -> Solved:
    with np.errstate(all="ignore"):
        point = solve_interior(batch, careful=careful)
        b = restored(batch, point.b)
        value, bound = weighted_value(batch, b), lower_bound(batch, point, b)
        good = np.asarray(np.abs(value - bound) <= _GOOD_GAP * value)
        unique = np.zeros(batch.n, dtype=bool)
        sound = np.flatnonzero(good)
        if len(sound):
            chosen = _chosen(batch.take(sound), point.take(sound), b[:, sound])
            b[:, sound], unique[sound] = chosen
    scale = np.where(batch.time_weight > 0, batch.time_unit_s, batch.cost_unit_usd)
    return Solved(b * batch.bandwidth_unit, bound, scale, unique, good)


def _chosen(batch: ScaledBatch, point: BatchPoint, b: Array) -> tuple[Array, Mask]:
    """The design to print among those as good as b, and whether it is the only one."""
    idle_limit = (batch.time_weight == 0) & (communication(batch, b) < batch.time_limit)
    for weight in _TIME_TILTS:
        slack = np.flatnonzero(idle_limit & (_lateness(batch, b) < -_SLACK))
        if not len(slack):
            break
        tilted, faster, cheap = _fastest_of_the_cheapest(batch.take(slack), b[:, slack], weight)
        done = slack[cheap]
        batch.time_weight[done] = weight
        idle_limit[done] = False
        point.put(done, tilted.take(cheap))
        b[:, done] = faster[:, cheap]
    choice = chosen_among_ties(batch, point, b)
    lost = weighted_value(batch, choice.b) - weighted_value(batch, b)
    rest = choice.undecided | ~(lost <= _GIVEN_AWAY * weighted_value(batch, b))
    open_ = np.flatnonzero(rest)
    if len(open_):
        choice.b[:, open_] = _tilted(batch.take(open_), b[:, open_])
    return choice.b, choice.unique & ~rest


def _lateness(batch: ScaledBatch, b: Array) -> Array:
    """Time beyond the limit over the limit, shape (n,); negative where the limit has room."""
    late: Array = communication(batch, b) / batch.time_limit - 1
    return late


def _fastest_of_the_cheapest(
    batch: ScaledBatch, b: Array, weight: float
) -> tuple[BatchPoint, Array, Mask]:
    """Optima with a little weight on time, and which of them are as cheap as b."""
    tilted = batch.weighted(weight, 1.0)
    point = solve_interior(tilted)
    faster = restored(tilted, point.b)
    value = weighted_value(tilted, faster)
    gap = value - lower_bound(tilted, point, faster)
    cost = (batch.price * faster).sum(axis=0)
    cheap = cost <= (batch.price * b).sum(axis=0) * (1 + _GIVEN_AWAY)
    return point, faster, (np.abs(gap) <= _GOOD_GAP * value) & cheap


def _tilted(batch: ScaledBatch, b: Array) -> Array:
    """Optima with a little weight on cost: the cheapest of the optima to about 1e-7."""
    tilted = replace(batch, cost_weight=batch.cost_weight + _TILT)
    cheaper = restored(tilted, solve_interior(tilted).b)
    lost = weighted_value(batch, cheaper) - weighted_value(batch, b)
    return np.where(lost <= _TILTED_AWAY * weighted_value(batch, b), cheaper, b)
