"""Which designs of a batch surely have an optimum (C8), and which surely have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.optimizer.batch_program import BatchProgram
from libra_planner.optimizer.batch_setup import Columns
from libra_planner.problem import Rule
from libra_planner.step.expression import Mask
from libra_planner.units import BYTES_PER_S_PER_GBPS

_FAR = 100.0
"""Cap over the largest bandwidth that a rule speaks of: only to find a vector at all."""


def is_well_posed(program: BatchProgram, numbers: Columns) -> Mask:
    """Which designs surely have an optimum (C8); the reference judges the others."""
    used = program.structure.dims_with_traffic
    bounded = np.isfinite(numbers.upper[used]).all(axis=0) & bool(used.any())
    if program.template.objective == "performance":
        return np.asarray(bounded)
    priced = (numbers.price_usd_per_Bps[used] > 0).all(axis=0) & bool(used.any())
    limited = np.isfinite(numbers.limit_s) & (bounded | priced)
    if program.template.objective == "cost":
        return np.asarray(limited)
    return attains_product(program, numbers) | (limited & _vanishes(numbers))


def attains_product(program: BatchProgram, numbers: Columns) -> Mask:
    """Which designs surely have a least T C without a step-time bound, shape (n,)."""
    used = program.structure.dims_with_traffic
    bounded = np.isfinite(numbers.upper[used]).all(axis=0)
    priced = (numbers.price_usd_per_Bps[used] > 0).all(axis=0) & (numbers.compute_s > 0)
    fixed = numbers.fixed_cost_usd > 0
    sized = _costs_something(numbers) & (bounded | priced)
    return np.asarray(np.where(fixed, bounded, sized) & bool(used.any()))


def has_no_end(program: BatchProgram, numbers: Columns) -> Mask:
    """Which designs have no optimum if any vector meets their rules (``illposed``), shape (n,).

    Upward where no rule can ever stop a dimension with traffic, downward where nothing
    holds the bandwidths up.
    """
    rules, objective = numbers.rules, program.template.objective
    open_ = (rules.upper <= 0).all(axis=0) & (rules.equal == 0).all(axis=0)
    used = program.structure.dims_with_traffic
    if not used.any():
        return np.zeros(program.n, dtype=bool)
    endless = open_[used].any(axis=0)
    limited, fixed = np.isfinite(numbers.limit_s), numbers.fixed_cost_usd > 0
    if objective == "performance":
        return np.asarray(endless)
    if objective == "cost":
        return np.asarray(~limited)
    return np.asarray(np.where(fixed, endless, ~limited & _vanishes(numbers)))


def with_caps(program: BatchProgram, numbers: Columns) -> BatchProgram:
    """The designs for performance, without a bound on step time, every bandwidth capped."""
    n_dims = program.template.topology.n_dims
    rules = numbers.rules
    sizes = np.abs(np.concatenate([rules.limit, rules.target])).max(axis=0, initial=0.0)
    largest = np.abs(np.concatenate([rules.upper, rules.equal])).max(axis=(0, 1), initial=0.0)
    size = np.maximum(sizes / np.where(largest > 0, largest, 1.0), BYTES_PER_S_PER_GBPS)
    cap = _FAR * np.maximum(size, numbers.lower.max(axis=0))
    axes = np.broadcast_to(np.eye(n_dims), (program.n, n_dims, n_dims))
    caps = [Rule("cap", tuple(map(float, axis)), "<=", 1.0) for axis in np.eye(n_dims)]
    template = replace(
        program.template, objective="performance", rules=(*program.template.rules, *caps)
    )
    return replace(
        program,
        template=template,
        coefficients=np.concatenate([program.coefficients, axes], axis=1),
        bounds=np.concatenate([program.bounds, np.repeat(cap[:, None], n_dims, axis=1)], axis=1),
        limit_s=np.full(program.n, np.inf),
    )


def _vanishes(numbers: Columns) -> Mask:
    """Which designs may shrink to nothing but for the step-time bound, shape (n,)."""
    rules = numbers.rules
    met = (rules.limit >= 0).all(axis=0) & (rules.target == 0).all(axis=0)
    return np.asarray(met & (numbers.fixed_cost_usd == 0))


def _costs_something(numbers: Columns) -> Mask:
    """Some rule asks for bandwidth, and for bandwidth that costs something only, shape (n,)."""
    rules, price = numbers.rules, numbers.price_usd_per_Bps
    rows = np.concatenate([-rules.upper, rules.equal, -rules.equal])
    asked = np.concatenate([-rules.limit, rules.target, -rules.target])
    free = ((rows > 0) & ~(price > 0)).any(axis=1)
    return np.asarray(((asked > 0) & ~free).any(axis=0))
