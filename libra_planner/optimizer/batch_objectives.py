"""The three objectives (C8) of a batch: as ``objectives``, over arrays of designs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from libra_planner.optimizer.batch_illposed import (
    attains_product,
    has_no_end,
    is_well_posed,
    with_caps,
)
from libra_planner.optimizer.batch_program import BatchProgram
from libra_planner.optimizer.batch_scaled import Index, ScaledBatch, lanes
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
from libra_planner.optimizer.design import SURE_GAP
from libra_planner.optimizer.objectives import FLAT
from libra_planner.problem import RULE_TOLERANCE
from libra_planner.step.expression import Array, Mask


@dataclass(frozen=True)
class BatchDesigns:
    """Designs of a batch, the designs on the last axis.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims, n).
    objective, lower_bound, step_time_s, cost_usd : shape (n,), exact at the vector (C9).
    unique : no other design ties.
    certified : no rule broken by more than 1e-9, and nothing in doubt: a gap of at most 5e-10,
        the choice among ties exact.
    infeasible : proven: no design meets all rules.
    ill_posed : proven: the optimum is not attained (C8).
    """

    bandwidth_bytes_per_s: Array
    objective: Array
    lower_bound: Array
    step_time_s: Array
    cost_usd: Array
    unique: Mask
    certified: Mask
    infeasible: Mask
    ill_posed: Mask


def solve_designs(program: BatchProgram) -> BatchDesigns:
    """All designs of a batch; those with nothing certified or proven need the reference."""
    if program.n == 1:  # See ``lanes``.
        pair = solve_designs(program.part(np.zeros(2, dtype=np.intp)))
        return BatchDesigns(*(getattr(pair, field.name)[..., :1] for field in fields(pair)))
    numbers = columns(program)
    hopeless = numbers.empty | (numbers.limit_s < numbers.compute_s)
    sound = is_well_posed(program, numbers)
    ready = lanes(~hopeless & sound)
    endless = lanes(~hopeless & ~sound & has_no_end(program, numbers))
    designs = _nothing(program.template.topology.n_dims, program.n)
    designs.infeasible[hopeless] = True
    if len(endless):
        designs.ill_posed[endless] = _meets_rules(*_part(program, numbers, endless))
    if len(ready):
        solve = _OBJECTIVES[program.template.objective]
        _put(designs, ready, solve(*_part(program, numbers, ready)))
    return designs


def no_figures(n: int) -> dict[str, Any]:
    """Figures of n designs of which nothing is known yet, by field."""
    names = ("objective", "lower_bound", "step_time_s", "cost_usd")
    return {name: np.full(n, np.nan) for name in names} | {"unique": np.zeros(n, dtype=bool)}


def _nothing(n_dims: int, n: int) -> BatchDesigns:
    return BatchDesigns(
        bandwidth_bytes_per_s=np.full((n_dims, n), np.nan),
        **no_figures(n),
        certified=np.zeros(n, dtype=bool),
        infeasible=np.zeros(n, dtype=bool),
        ill_posed=np.zeros(n, dtype=bool),
    )


def _put(designs: BatchDesigns, which: Index, other: BatchDesigns) -> None:
    for field in fields(designs):
        getattr(designs, field.name)[..., which] = getattr(other, field.name)


def _meets_rules(program: BatchProgram, numbers: Columns) -> Mask:
    """For which designs the least step time under some cap, hence a design, is known, (n,)."""
    capped = with_caps(program, numbers)
    return _performance(capped, columns(capped)).certified


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
    unsolved = lanes(~solved.good)
    if len(unsolved):
        late[unsolved] = _too_slow(*_part(program, numbers, unsolved))
    solve_again(build, typical, lanes(solved.open & ~late), solved)
    bound = numbers.fixed_cost_usd + solved.scale * solved.bound
    return replace(_exact(program, numbers, solved, bound), infeasible=late)


def _too_slow(program: BatchProgram, numbers: Columns) -> Mask:
    """Which step-time bounds are proven to be missed by every design, shape (n,)."""
    bounded = np.isfinite(numbers.upper[program.structure.dims_with_traffic]).all(axis=0)
    fastest = _performance(_as(program, "performance"), numbers)
    return np.asarray(bounded & fastest.infeasible)


def _per_cost(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    """The least T C; where that is too slow or not attained, the cheapest within the limit."""
    attains = attains_product(program, numbers)
    attained = lanes(attains)
    designs = _nothing(program.template.topology.n_dims, program.n)
    if len(attained):
        _put(designs, attained, _least_product(*_part(program, numbers, attained)))
    slow = designs.step_time_s > numbers.limit_s * (1 + RULE_TOLERANCE)
    slow[~attains] = True
    limited = lanes(slow)
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
    designs = _exact(program, free, found, solved.scale * solved.bound)
    # Beside this much compute and fixed cost the rest is lost to rounding.
    moved = designs.objective - numbers.compute_s * numbers.fixed_cost_usd
    return replace(designs, certified=designs.certified & (moved > FLAT * designs.objective))


def _at_the_limit(program: BatchProgram, numbers: Columns) -> BatchDesigns:
    """Where the least product is too slow, the cheapest design within the limit."""
    designs = _cost(_as(program, "cost"), numbers)
    product = designs.step_time_s * designs.cost_usd
    bound = np.minimum(numbers.limit_s * designs.lower_bound, product)
    certified = designs.certified & (product - bound <= SURE_GAP * bound)
    return replace(designs, objective=product, lower_bound=bound, certified=certified)


def _solved(build: Build, typical: Array) -> Solved:
    solved = solve_all(build, typical)
    solve_again(build, typical, lanes(solved.open), solved)
    return solved


def _as(program: BatchProgram, objective: str) -> BatchProgram:
    return replace(program, template=replace(program.template, objective=objective))


def _part(program: BatchProgram, numbers: Columns, which: Index) -> tuple[BatchProgram, Columns]:
    if np.array_equal(which, np.arange(program.n)):
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
        certified = solved.settled & (objective - bound <= SURE_GAP * bound) & (bound > 0)
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
        ill_posed=np.zeros(program.n, dtype=bool),
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
