"""The three objectives (C8) of a batch: as ``objectives``, over arrays of designs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from libra_planner.optimizer.batch_program import BatchProgram
from libra_planner.optimizer.batch_scaled import Index, ScaledBatch
from libra_planner.optimizer.batch_setup import (
    Columns,
    cheap_typical,
    columns,
    fast_typical,
    per_cost_program,
    time_program,
    to_per_cost,
)
from libra_planner.optimizer.batch_solve import Build, Solved, solve_again, solve_all
from libra_planner.optimizer.design import CERTIFIED_GAP
from libra_planner.problem import RULE_TOLERANCE
from libra_planner.timing.expression import Array, Mask


@dataclass(frozen=True)
class BatchDesigns:
    """Designs of a batch, the designs on the last axis.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims, n).
    objective, lower_bound, step_time_s, cost_usd : shape (n,), exact at the vector (C9).
    unique : no other design ties.
    certified : gap of at most 1e-6, and no rule broken by more than 1e-9.
    infeasible : proven: no design meets all rules.
    """

    bandwidth_bytes_per_s: Array
    objective: Array
    lower_bound: Array
    step_time_s: Array
    cost_usd: Array
    unique: Mask
    certified: Mask
    infeasible: Mask


def solve_designs(program: BatchProgram) -> BatchDesigns:
    """All designs of a batch; those neither certified nor infeasible need the reference."""
    numbers = columns(program)
    late = numbers.limit_s < numbers.compute_s
    hopeless = numbers.empty | late
    ready = np.flatnonzero(~hopeless & _is_well_posed(program, numbers))
    designs = _nothing(program.template.topology.n_dims, program.n)
    designs.infeasible[hopeless] = True
    if len(ready):
        part = program if len(ready) == program.n else program.part(ready)
        numbers = numbers if len(ready) == program.n else columns(part)
        _put(designs, ready, _OBJECTIVES[program.template.objective](part, numbers))
    return designs


def _nothing(n_dims: int, n: int) -> BatchDesigns:
    return BatchDesigns(
        bandwidth_bytes_per_s=np.full((n_dims, n), np.nan),
        objective=np.full(n, np.nan),
        lower_bound=np.full(n, np.nan),
        step_time_s=np.full(n, np.nan),
        cost_usd=np.full(n, np.nan),
        unique=np.zeros(n, dtype=bool),
        certified=np.zeros(n, dtype=bool),
        infeasible=np.zeros(n, dtype=bool),
    )


def _put(designs: BatchDesigns, which: Index, other: BatchDesigns) -> None:
    for field in fields(designs):
        getattr(designs, field.name)[..., which] = getattr(other, field.name)


def _is_well_posed(program: BatchProgram, numbers: Columns) -> Mask:
    """Which designs surely have an optimum (C8); the reference judges the others."""
    used = program.structure.dims_with_traffic
    bounded = np.isfinite(numbers.upper[used]).all(axis=0) & bool(used.any())
    if program.template.objective == "performance":
        return np.asarray(bounded)
    priced = (numbers.price_usd_per_Bps[used] > 0).all(axis=0) & bool(used.any())
    limited = np.isfinite(numbers.limit_s) & (bounded | priced)
    if program.template.objective == "cost":
        return np.asarray(limited)
    return _attains_product(program, numbers) | (limited & _vanishes(numbers))


def _attains_product(program: BatchProgram, numbers: Columns) -> Mask:
    """Which designs surely have a least T C without a step-time bound, shape (n,)."""
    used = program.structure.dims_with_traffic
    bounded = np.isfinite(numbers.upper[used]).all(axis=0)
    priced = (numbers.price_usd_per_Bps[used] > 0).all(axis=0) & (numbers.compute_s > 0)
    fixed = numbers.fixed_cost_usd > 0
    sized = _costs_something(numbers) & (bounded | priced)
    return np.asarray(np.where(fixed, bounded, sized) & bool(used.any()))


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


def _performance(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    def build(which: Index, typical: Array) -> ScaledBatch:
        part, chosen = _part(program, numbers, which)
        return time_program(part, chosen, typical, limited=False)

    solved = _solved(build, fast_typical(program, numbers))
    constant_s = program.structure.lift(numbers.time_numbers).constant_s
    designs = _exact(program, numbers, solved, constant_s + solved.scale * solved.bound)
    allowed = numbers.limit_s * (1 + RULE_TOLERANCE)
    late = designs.certified & (designs.lower_bound > allowed)
    unsure = designs.certified & ~late & (designs.step_time_s > allowed)
    return replace(designs, certified=designs.certified & ~late & ~unsure, infeasible=late)


def _cost(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    def build(which: Index, typical: Array) -> ScaledBatch:
        part, chosen = _part(program, numbers, which)
        return time_program(part, chosen, typical, limited=True)

    typical = cheap_typical(program, numbers)
    solved = solve_all(build, typical)
    late = np.zeros(program.n, dtype=bool)
    unsolved = np.flatnonzero(~solved.good)
    if len(unsolved):
        late[unsolved] = _too_slow(*_part(program, numbers, unsolved))
        solve_again(build, typical, unsolved[~late[unsolved]], solved)
    bound = numbers.fixed_cost_usd + solved.scale * solved.bound
    return replace(_exact(program, numbers, solved, bound), infeasible=late)


def _too_slow(program: BatchProgram, numbers: Columns) -> Mask:
    """Which step-time bounds are proven to be missed by every design, shape (n,)."""
    bounded = np.isfinite(numbers.upper[program.structure.dims_with_traffic]).all(axis=0)
    fastest = _performance(_as(program, "performance"), numbers)
    return np.asarray(bounded & fastest.infeasible)


def _per_cost(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    """The least T C; where that is too slow or not attained, the cheapest within the limit."""
    attained = np.flatnonzero(_attains_product(program, numbers))
    designs = _nothing(program.template.topology.n_dims, program.n)
    if len(attained):
        _put(designs, attained, _least_product(*_part(program, numbers, attained)))
    slow = designs.step_time_s > numbers.limit_s * (1 + RULE_TOLERANCE)
    slow[np.setdiff1d(np.arange(program.n), attained)] = True
    limited = np.flatnonzero(slow)
    if len(limited):
        _put(designs, limited, _at_the_limit(*_part(program, numbers, limited)))
    return designs


def _least_product(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    """The least T C without a step-time bound."""

    def build(which: Index, typical: Array) -> ScaledBatch:
        part, chosen = _part(program, numbers, which)
        return per_cost_program(part, chosen, typical)

    solved = _solved(build, to_per_cost(numbers, fast_typical(program, numbers)))
    with np.errstate(all="ignore"):
        bandwidth = solved.bandwidth[:-1] / solved.bandwidth[-1]
    found = replace(solved, bandwidth=bandwidth)
    free = replace(numbers, limit_s=np.full(program.n, np.inf))
    return _exact(program, free, found, solved.scale * solved.bound)


def _at_the_limit(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    """Where the least product is too slow, the cheapest design within the limit."""
    designs = _cost(_as(program, "cost"), numbers)
    product = designs.step_time_s * designs.cost_usd
    bound = np.minimum(numbers.limit_s * designs.lower_bound, product)
    certified = designs.certified & (product - bound <= CERTIFIED_GAP * bound)
    return replace(designs, objective=product, lower_bound=bound, certified=certified)


def _solved(build: Build, typical: Array) -> Solved:
    solved = solve_all(build, typical)
    solve_again(build, typical, np.flatnonzero(~solved.good), solved)
    return solved


def _as(program: BatchProgram, objective: str) -> BatchProgram:
    return replace(program, template=replace(program.template, objective=objective))


def _part(program: BatchProgram, numbers: Columns, which: Index) -> tuple[BatchProgram, Columns]:
    if len(which) == program.n:
        return program, numbers
    part = program.part(which)
    return part, columns(part)


def _exact(
    program: BatchProgram, numbers: Columns, solved: Solved, lower_bound: Array
) -> BatchDesigns:
    """The designs evaluated in NumPy at their vectors, and judged (C9)."""
    bandwidth = solved.bandwidth
    with np.errstate(all="ignore"):
        step_time_s = program.structure.seconds(numbers.time_numbers, bandwidth)
        network_usd = (numbers.price_usd_per_Bps * bandwidth).sum(axis=0)
        cost_usd = numbers.fixed_cost_usd + network_usd
        objective = {
            "performance": step_time_s,
            "cost": cost_usd,
            "performance_per_cost": step_time_s * cost_usd,
        }[program.template.objective]
        bound = np.minimum(lower_bound, objective)
        certified = solved.good & (objective - bound <= CERTIFIED_GAP * bound) & (bound > 0)
        certified &= _violation(numbers, bandwidth) <= RULE_TOLERANCE
        if program.template.objective == "cost":
            certified &= step_time_s <= numbers.limit_s * (1 + RULE_TOLERANCE)
    return BatchDesigns(
        bandwidth_bytes_per_s=bandwidth,
        objective=objective,
        lower_bound=bound,
        step_time_s=step_time_s,
        cost_usd=cost_usd,
        unique=solved.unique,
        certified=certified,
        infeasible=np.zeros(program.n, dtype=bool),
    )


def _violation(numbers: Columns, bandwidth: Array) -> Array:
    """Largest relative violation of a linear rule (``Rule.relative_excess``), shape (n,)."""
    rules = numbers.rules
    rows = np.concatenate([rules.upper, rules.equal])
    bounds = np.concatenate([rules.limit, rules.target])
    difference = (rows * bandwidth).sum(axis=1) - bounds
    n_upper = len(rules.upper)
    excess = np.concatenate([np.maximum(difference[:n_upper], 0), np.abs(difference[n_upper:])])
    terms = (np.abs(rows) * bandwidth).sum(axis=1)
    size = np.maximum(np.abs(bounds), terms)
    worst: Array = (excess / np.where(size > 0, size, 1.0)).max(axis=0, initial=0.0)
    return worst


_OBJECTIVES = {"performance": _performance, "cost": _cost, "performance_per_cost": _per_cost}
