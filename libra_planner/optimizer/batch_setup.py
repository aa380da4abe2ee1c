"""From a batch of problems to dimensionless programs: rules, proven bounds, typical designs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.optimizer.batch_program import BatchProgram
from libra_planner.optimizer.batch_scaled import BatchRules, ScaledBatch, scaled_batch
from libra_planner.optimizer.batch_structure import LiftedBatch
from libra_planner.step.expression import Array, Mask

_ROUNDS = 3
"""Rounds of interval propagation; bounds are proven after each of them."""

_IDLE_SHARE = 1e-4
"""Traffic, over the largest, that a dimension without any is scaled for (``typical``)."""

_FREE_SHARE = 1e-3
"""Price, over the largest, that something free is scaled for (``typical``)."""

_BYTES_PER_S = 1e9


@dataclass(frozen=True)
class Columns:
    """The numbers of a batch with the designs on the last axis.

    Parameters
    ----------
    time_numbers : shape (n_numbers, n).
    rules : over bandwidths in bytes/s.
    price_usd_per_Bps : shape (n_dims, n).
    fixed_cost_usd, limit_s, compute_s : shape (n,).
    lower, upper : proven bounds of bandwidth under the linear rules, bytes/s, (n_dims, n).
    empty : proven: no bandwidth vector meets the rules, shape (n,).
    """

    time_numbers: Array
    rules: BatchRules
    price_usd_per_Bps: Array
    fixed_cost_usd: Array
    limit_s: Array
    compute_s: Array
    lower: Array
    upper: Array
    empty: Mask


def columns(program: BatchProgram) -> Columns:
    """The numbers of a batch, and what interval propagation proves about its rules."""
    rules = _rules(program)
    lower, upper = interval_bounds(rules, program.template.topology.n_dims)
    used = program.structure.dims_with_traffic[:, None]
    room = np.where(np.isfinite(upper), upper, np.abs(lower) + 1.0)
    none = (lower > upper + 1e-6 * room) | (used & (upper <= 0))
    time_numbers = np.ascontiguousarray(program.time_numbers.T)
    return Columns(
        time_numbers=time_numbers,
        rules=rules,
        price_usd_per_Bps=np.ascontiguousarray(program.price_usd_per_Bps.T),
        fixed_cost_usd=np.ascontiguousarray(program.fixed_cost_usd),
        limit_s=np.ascontiguousarray(program.limit_s),
        compute_s=program.structure.least_s(time_numbers) * np.ones(program.n),
        lower=lower,
        upper=upper,
        empty=np.asarray(none.any(axis=0)),
    )


def _rules(program: BatchProgram) -> BatchRules:
    senses = np.array(program.senses)
    rows = np.ascontiguousarray(program.coefficients.transpose(1, 2, 0))
    bounds = np.ascontiguousarray(program.bounds.T)
    equal = senses == "=="
    sign = np.where(senses == ">=", -1.0, 1.0)[~equal]
    upper, limit = rows[~equal] * sign[:, None, None], bounds[~equal] * sign[:, None]
    return BatchRules(upper, limit, rows[equal], bounds[equal])


def interval_bounds(rules: BatchRules, n_dims: int) -> tuple[Array, Array]:
    """Bounds that the rules imply for each bandwidth, shapes (n_dims, n), in turn.

    Every row bounds each bandwidth by the others' bounds; what comes out is proven (to
    rounding) but not always tight.

    Examples
    --------
    >>> rows = np.array([[[1.0], [1.0]], [[-1.0], [1.0]]])  # b1 + b2 <= 6, b2 <= b1
    >>> none = np.empty((0, 2, 1))
    >>> interval_bounds(BatchRules(rows, np.array([[6.0], [0.0]]), none, none[:, 0]), 2)[1]
    array([[6.],
           [6.]])
    """
    rows = np.concatenate([rules.upper, rules.equal, -rules.equal])
    limits = np.concatenate([rules.limit, rules.target, -rules.target])
    lower = np.zeros((n_dims, rows.shape[2]))
    upper = np.full((n_dims, rows.shape[2]), np.inf)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for _ in range(_ROUNDS if len(rows) > 1 else 1):
            for row, limit in zip(rows, limits, strict=True):
                _tighten(row, limit, lower, upper)
    return lower, upper


def _tighten(row: Array, limit: Array, lower: Array, upper: Array) -> None:
    """Bounds, in place, after ``row . b <= limit``."""
    least = np.where(row == 0, 0.0, np.where(row > 0, row * lower, row * upper))
    endless = np.isinf(least)
    finite = np.where(endless, 0.0, least)
    others_endless = endless.sum(axis=0) - endless
    rest = np.where(others_endless > 0, -np.inf, finite.sum(axis=0) - finite)
    size = np.abs(limit) + np.abs(finite).sum(axis=0)
    reach = (limit - rest + 1e-15 * size) / row
    np.minimum(upper, np.where(row > 0, reach, np.inf), out=upper)
    np.maximum(lower, np.where(row < 0, reach, 0.0), out=lower)


def time_program(
    program: BatchProgram, numbers: Columns, typical: Array, *, limited: bool
) -> ScaledBatch:
    """Least time, or with ``limited`` least cost within the step-time limit, near ``typical``."""
    n = typical.shape[1]
    limit_s = numbers.limit_s if limited else np.full(n, np.inf)
    lifted = program.structure.lift(numbers.time_numbers)
    price, upper = numbers.price_usd_per_Bps, numbers.upper
    batch = scaled_batch(lifted, numbers.rules, price, typical, upper, limit_s)
    return batch.weighted(0.0, 1.0) if limited else batch


def per_cost_rules(numbers: Columns) -> BatchRules:
    """The rules over (B/C, 1/C), and that C is the cost (``per_cost.per_cost_problem``)."""
    rules, price = numbers.rules, numbers.price_usd_per_Bps
    upper = np.concatenate([rules.upper, -rules.limit[:, None]], axis=1)
    equal = np.concatenate([rules.equal, -rules.target[:, None]], axis=1)
    cost = np.concatenate([price, numbers.fixed_cost_usd[None]])
    equal = np.concatenate([equal, cost[None]])
    target = np.concatenate([np.zeros_like(rules.target), np.ones((1, price.shape[1]))])
    return BatchRules(upper, np.zeros_like(rules.limit), equal, target)


def per_cost_program(program: BatchProgram, numbers: Columns, typical: Array) -> ScaledBatch:
    """Least step time times cost, over (B/C, 1/C), near typical ones, shape (n_dims + 1, n)."""
    rules = per_cost_rules(numbers)
    n_dims, n = typical.shape
    _, upper = interval_bounds(rules, n_dims)
    lifted = program.structure.lift_per_cost(numbers.time_numbers)
    price = np.zeros((n_dims, n))
    price[-1] = -1.0
    return scaled_batch(lifted, rules, price, typical, upper, np.full(n, np.inf))


def to_per_cost(numbers: Columns, bandwidth: Array) -> Array:
    """(B/C, 1/C) of bandwidths, shapes (n_dims + 1, n) and (n_dims, n)."""
    cost_usd = numbers.fixed_cost_usd + (numbers.price_usd_per_Bps * bandwidth).sum(axis=0)
    point: Array = np.concatenate([bandwidth, np.ones((1, bandwidth.shape[1]))]) / cost_usd
    return point


def fast_typical(program: BatchProgram, numbers: Columns) -> Array:
    """Designs of the right order of magnitude that split a budget as sqrt(traffic), (n_dims, n)."""
    traffic = _traffic(program.structure.lift(numbers.time_numbers))
    most = traffic.max(axis=0, initial=0.0) * _IDLE_SHARE
    share = np.sqrt(np.where(traffic > 0, traffic, most))
    rules = numbers.rules
    rows = np.concatenate([rules.upper, rules.equal])
    bounds = np.abs(np.concatenate([rules.limit, rules.target]))
    largest = np.abs(rows).max(axis=1, initial=0.0)
    sizes = np.where(largest > 0, bounds / np.where(largest > 0, largest, 1.0), 0.0)
    fallback = np.maximum(sizes.max(axis=0, initial=_BYTES_PER_S), numbers.lower.max(axis=0))
    reach = np.where(np.isfinite(numbers.upper), numbers.upper, fallback)
    split = reach * share / share.sum(axis=0)
    return _positive(np.clip(split, numbers.lower, np.maximum(reach, numbers.lower)))


def cheap_typical(program: BatchProgram, numbers: Columns) -> Array:
    """Designs that about meet the step-time limit at the least cost, shape (n_dims, n)."""
    traffic = _traffic(program.structure.lift(numbers.time_numbers))
    seconds = numbers.limit_s - numbers.compute_s
    price = numbers.price_usd_per_Bps
    price = np.maximum(price, _FREE_SHARE * price.max(axis=0))
    price = np.where(price > 0, price, 1.0)
    most = traffic.max(axis=0, initial=0.0) * _IDLE_SHARE
    traffic = np.where(traffic > 0, traffic, most)
    spread = np.sqrt(traffic * price).sum(axis=0)
    needed = np.sqrt(traffic / price) * spread / np.where(seconds > 0, seconds, 1.0)
    return _positive(np.clip(needed, numbers.lower, np.maximum(numbers.upper, numbers.lower)))


def _traffic(lifted: LiftedBatch) -> Array:
    """Bytes that each dimension carries alone, shape (n_dims, n)."""
    n_forms = len(lifted.forms)
    carried = (lifted.forms > 0)[:, :, None] * lifted.floors[:n_forms, None]
    traffic: Array = carried.sum(axis=0)
    return traffic


def _positive(guess: Array) -> Array:
    return np.where(guess > 0, guess, np.maximum(guess.max(axis=0), 1.0))
