"""The three objectives: least step time, least cost, least product of both (C8).

Programs are solved, made feasible, certified and freed of ties, n plans of one structure at once;
one plan is a batch of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from libra_planner.evaluation import OBJECTIVES
from libra_planner.optimizer import design as proofs
from libra_planner.optimizer.design import lower_bound
from libra_planner.optimizer.engines.batch import solve_interior
from libra_planner.optimizer.programs import dimensionless as programs
from libra_planner.optimizer.programs.plans import (
    Plans,
    per_cost_plans,
    program_near,
    program_touching,
    typical_designs,
)
from libra_planner.optimizer.programs.posedness import (
    attains_product,
    has_no_end,
    is_well_posed,
    with_caps,
)
from libra_planner.problem import RULE_TOLERANCE
from libra_planner.step.expression import Array, Mask

_GOOD_GAP = 1e-8
"""Gap of a design that is something to go by; decimals solve the others."""

_GIVEN_AWAY = 1e-9
"""Share of the value that a choice among ties may give away."""

_TILT = 1e-7
"""Weight of cost that breaks ties where the set of optima is no polyhedron."""

_TILTED_AWAY = 1e-7
_TIME_TILTS = (1e-2, 1e-4, 1e-6)
"""Weights of time beside cost, tried in turn, that find the fastest of the cheapest designs."""

_FARTHEST, _FARTHEST_ALONE = 1e4, 1e12
"""Factor by which a further attempt may move a typical bandwidth, in a batch and alone."""

_ROUNDS, _STILL, _NEXT_TO_NONE = 24, 1e-10, 1e-12
"""With roots: rounds, the relative move of a bandwidth at which they end, and what stands for none
where a root is touched."""

_FLAT = 1e-6
"""Share of step time x cost that bandwidth has a say in, below which decimals decide."""


@dataclass(frozen=True)
class Designs:
    """Designs of n plans, on the last axis.

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


def solve_designs(plans: Plans) -> Designs:
    """All designs of a batch; those with nothing certified or proven need to be solved alone."""
    if plans.n == 1:  # See ``lanes``.
        return programs.some_of(
            solve_designs(plans.take(programs.lanes(np.ones(1, dtype=bool)))), np.arange(1)
        )
    hopeless = plans.empty | (plans.limit_s < plans.compute_s)
    sound = is_well_posed(plans)
    ready = programs.lanes(~hopeless & sound)
    endless = programs.lanes(~hopeless & ~sound & has_no_end(plans))
    designs = _nothing(plans)
    designs.infeasible[hopeless] = True
    if len(endless):
        capped = with_caps(plans.take(endless))
        designs.ill_posed[endless] = _performance(capped).certified  # Then a design is known.
    if len(ready):
        part = plans.take(ready)
        programs.put(designs, ready, best_designs(part, attains=attains_product(part)))
    return designs


def best_designs(plans: Plans, *, attains: Mask, engine: programs.Engine | None = None) -> Designs:
    """The designs of plans that are well-posed.

    Parameters
    ----------
    plans : two or more (see ``lanes``).
    attains : whether T C has a minimum without a step-time bound, shape (n,).
    engine : asked first where given, for optima that the batch engine refines.
    """
    if plans.objective == "performance_per_cost":
        return _per_cost(plans, attains, engine)
    return _cost(plans, engine) if plans.objective == "cost" else _performance(plans, engine)


def no_figures(n: int) -> dict[str, Any]:
    """Figures of n designs of which nothing is known yet, by field."""
    names = ("objective", "lower_bound", "step_time_s", "cost_usd")
    return {name: np.full(n, np.nan) for name in names} | {"unique": np.zeros(n, dtype=bool)}


def _nothing(plans: Plans) -> Designs:
    masks = {name: np.zeros(plans.n, bool) for name in ("certified", "infeasible", "ill_posed")}
    return Designs(np.full_like(plans.price_usd_per_Bps, np.nan), **no_figures(plans.n), **masks)


def _performance(plans: Plans, engine: programs.Engine | None = None) -> Designs:
    solved = _solved(plans, typical_designs(plans), engine)
    designs = _exact(plans, solved, solved.constant_s + solved.scale * solved.bound)
    allowed = plans.limit_s * (1 + RULE_TOLERANCE)
    late = designs.certified & (designs.lower_bound > allowed)
    certified = designs.certified & (designs.step_time_s <= allowed)
    return replace(designs, certified=certified, infeasible=late)


def _cost(plans: Plans, engine: programs.Engine | None = None) -> Designs:
    typical = typical_designs(plans)
    if plans.structure.has_roots:  # What touches them elsewhere may miss the step-time limit.
        fast = _solved(with_caps(plans), typical, engine).bandwidth
        typical = np.where(np.isfinite(fast) & (fast > 0), fast, typical)
    solved = _solved(plans, typical, engine, limited=True)
    bound = plans.fixed_cost_usd + solved.scale * solved.bound
    return replace(_exact(plans, solved, bound), infeasible=solved.late)


def _per_cost(plans: Plans, attains: Mask, engine: programs.Engine | None) -> Designs:
    """The least T C; where that is too slow or not attained, the cheapest within the limit."""
    designs, attained = _nothing(plans), programs.lanes(attains)
    if len(attained):
        programs.put(designs, attained, _least_product(plans.take(attained), engine))
    slow = ~attains | (designs.step_time_s > plans.limit_s * (1 + RULE_TOLERANCE))
    limited = programs.lanes(slow)
    if len(limited):
        programs.put(designs, limited, _at_the_limit(plans.take(limited), engine))
    return designs


def _least_product(plans: Plans, engine: programs.Engine | None) -> Designs:
    """The least T C without a step-time bound: performance over (B/C, 1/C)."""
    typical = typical_designs(plans)
    point = np.concatenate([typical, np.ones((1, plans.n))]) / plans.cost_usd(typical)
    solved = _solved(per_cost_plans(plans), point, engine)
    with np.errstate(all="ignore"):
        found = replace(solved, bandwidth=solved.bandwidth[:-1] / solved.bandwidth[-1])
    designs = _exact(plans, found, solved.scale * solved.bound)
    # Beside this much compute and fixed cost the rest is lost to rounding.
    moved = designs.objective - plans.compute_s * plans.fixed_cost_usd
    return replace(designs, certified=designs.certified & (moved > _FLAT * designs.objective))


def _at_the_limit(plans: Plans, engine: programs.Engine | None) -> Designs:
    """Where the least product is too slow, the cheapest design within the limit.

    The product is quasi-convex (see ``per_cost``): the best design within the bound is on it.
    """
    designs = _cost(replace(plans, objective="cost"), engine)
    product = designs.step_time_s * designs.cost_usd
    bound = np.minimum(plans.limit_s * designs.lower_bound, product)
    certified = designs.certified & (product - bound <= proofs.SURE_GAP * bound)
    return replace(designs, objective=product, lower_bound=bound, certified=certified)


def _exact(plans: Plans, solved: _Solved, lower_bound: Array) -> Designs:
    """The designs evaluated in NumPy at their vectors, and judged (C9)."""
    bandwidth = solved.bandwidth
    with np.errstate(all="ignore"):
        step_time_s = plans.structure.seconds(plans.time_numbers, bandwidth)
        cost_usd = plans.cost_usd(bandwidth)
        objective = OBJECTIVES[plans.objective](step_time_s, cost_usd)
        bound = np.minimum(lower_bound, objective)
        certified = solved.settled & (objective - bound <= proofs.SURE_GAP * bound) & (bound > 0)
        certified &= _violation(plans, bandwidth) <= RULE_TOLERANCE
        if plans.objective == "cost":
            certified &= step_time_s <= plans.limit_s * (1 + RULE_TOLERANCE)
    return replace(
        _nothing(plans),
        bandwidth_bytes_per_s=bandwidth,
        objective=objective,
        lower_bound=bound,
        step_time_s=step_time_s,
        cost_usd=cost_usd,
        unique=solved.unique,
        certified=certified,
    )


def _violation(plans: Plans, bandwidth: Array) -> Array:
    """Largest relative violation of a linear rule (``Rule.relative_excess``), shape (n,)."""
    rules = plans.rules
    rows = np.concatenate([rules.upper, rules.equal])
    bounds = np.concatenate([rules.limit, rules.target])
    excess = (rows * bandwidth).sum(axis=1) - bounds
    n_upper = len(rules.upper)
    excess = np.concatenate([np.maximum(excess[:n_upper], 0), np.abs(excess[n_upper:])])
    size = np.maximum(np.abs(bounds), (np.abs(rows) * bandwidth).sum(axis=1))
    return np.asarray((excess / np.where(size > 0, size, 1.0)).max(axis=0, initial=0.0))


@dataclass(frozen=True)
class _Solved:
    """Designs of n programs, on the last axis.

    Parameters
    ----------
    bandwidth : shape (n_dims, n), in the unit of the typical designs.
    bound : proven bound on what is minimised, in units of the program, shape (n,).
    scale : that unit, seconds or USD.
    constant_s : step time at infinite bandwidth of the program, which the bound leaves out.
    gap : relative, shape (n,).
    unique : no other design ties.
    settled : the choice among designs that tie is exact.
    late : proven: the step-time bound is missed by every design.
    """

    bandwidth: Array
    bound: Array
    scale: Array
    constant_s: Array
    gap: Array
    unique: Mask
    settled: Mask
    late: Mask


def _solved(
    plans: Plans, typical: Array, engine: programs.Engine | None, *, limited: bool = False
) -> _Solved:
    """Every program solved from typical designs, bytes/s, shape (n_dims, n).

    What is left is solved in units of where it ended: in long steps first, then in careful
    ones. With another ``engine`` that is everything, to more digits.
    """
    alone = engine is not None
    farthest, sure = (_FARTHEST_ALONE, proofs.NO_DOUBT) if alone else (_FARTHEST, proofs.SURE_GAP)
    near = _Near(plans, typical, limited)
    solved = _attempt(near, engine or solve_interior, chosen=not alone)
    unsolved = programs.lanes(~(solved.gap <= _GOOD_GAP) & limited)
    if len(unsolved):  # Is the step-time bound proven to be missed by every design?
        left = replace(plans.take(unsolved), objective="performance")
        bounded = np.isfinite(left.upper[left.used]).all(axis=0)
        solved.late[unsolved] = bounded & _performance(left).infeasible
    has_roots, ends = plans.structure.has_roots, solved.bandwidth.copy()
    which = programs.lanes(~solved.late & (alone | has_roots | ~(solved.gap <= sure)))
    for careful in (*[False] * (_ROUNDS if has_roots else 1), True):
        if not len(which):
            break
        start = programs.taken(typical, which)
        moved = np.clip(programs.taken(ends, which) / start, 1 / farthest, farthest)
        moved = np.where(np.isfinite(moved), moved, 1.0)
        near = _Near(plans.take(which), start * moved, limited)
        again = _attempt(near, partial(solve_interior, careful=careful, thorough=alone))
        still = np.abs(again.bandwidth / near.typical - 1).max(axis=0) <= _STILL
        better = ~(programs.taken(solved.gap, which) <= again.gap) | (again.gap <= sure)
        programs.put(solved, which[better], programs.some_of(again, np.flatnonzero(better)))
        ends[:, which] = again.bandwidth if has_roots else programs.taken(solved.bandwidth, which)
        sound = (programs.taken(solved.gap, which) <= sure) & (still | (not has_roots))
        which = which[programs.lanes(~sound)]
    return solved


@dataclass(frozen=True)
class _Near:
    """Programs in units of typical designs, bytes/s, shape (n_dims, n).

    Where plans have roots the programs touch them at the typical designs: solved again from
    where they end, they close in on the optimum (the further term of C20 falls to a quarter a
    round at worst).
    """

    plans: Plans
    typical: Array
    limited: bool

    @property
    def program(self) -> programs.Program:
        """To be solved."""
        return program_near(self.plans, self.typical, limited=self.limited)

    def judging(self, program: programs.Program, b: Array) -> programs.Program:
        """What designs b are judged by: with roots, the program that touches them there."""
        if not self.plans.structure.has_roots:
            return program
        at = np.where(b > 0, b, _NEXT_TO_NONE) * self.typical
        return program_touching(self.plans, self.typical, at, limited=self.limited)


def _attempt(near: _Near, engine: programs.Engine, *, chosen: bool = True) -> _Solved:
    with np.errstate(all="ignore"):
        program = near.program
        point = engine(program)
        b = proofs.restored(program, point.b)
        program = near.judging(program, b)
        if near.plans.structure.has_roots:
            point = proofs.balanced(program, point)
        value, bound = programs.weighted_value(program, b), lower_bound(program, point, b)
        gap = np.abs(value - bound) / programs.size_of(value)
        unique, settled, late = np.zeros((3, program.n), dtype=bool)
        sound = programs.lanes((gap <= _GOOD_GAP) & chosen)
        if len(sound):
            choice = _choice(
                program.take(sound), programs.some_of(point, sound), programs.taken(b, sound)
            )
            b[:, sound], unique[sound], settled[sound] = choice
    scale = np.where(program.time_weight > 0, program.time_unit_s, program.cost_unit_usd)
    bandwidth, constant_s = b * program.bandwidth_unit, program.constant_s
    return _Solved(bandwidth, bound, scale, constant_s, gap, unique, settled, late)


def _choice(program: programs.Program, point: programs.Point, b: Array) -> tuple[Array, Mask, Mask]:
    """The design to print among those as good as b, whether it is the only one, and sure."""
    if not program.time_weight.any():
        program, point, b = _fastest_of_the_cheapest(program, point, b)
    choice, value = proofs.chosen_among_ties(program, point, b), programs.weighted_value(program, b)
    lost = programs.weighted_value(program, choice.b) - value
    open_ = choice.undecided | ~(lost <= _GIVEN_AWAY * programs.size_of(value))
    rest = programs.lanes(open_)
    if len(rest):  # The cheapest of the optima to about 1e-7, by a little weight on cost.
        part, before = program.take(rest), programs.taken(value, rest)
        tilted = replace(part, cost_weight=part.cost_weight + _TILT)
        cheaper = proofs.restored(tilted, solve_interior(tilted).b)
        near = programs.weighted_value(part, cheaper) - before <= _TILTED_AWAY * programs.size_of(
            before
        )
        choice.b[:, rest] = np.where(near, cheaper, programs.taken(b, rest))
    return choice.b, choice.unique & ~open_, ~(open_ | choice.doubtful)


def _fastest_of_the_cheapest(
    program: programs.Program, point: programs.Point, b: Array
) -> tuple[programs.Program, programs.Point, Array]:
    """Where the step-time limit has room, optima with a little weight on time.

    The largest weight that leaves the cost as it is; their weights, points and vectors.
    """
    weights, b = program.time_weight.copy(), b.copy()
    open_ = programs.communication(program, b) < program.time_limit * (1 - _GIVEN_AWAY)
    for weight in _TIME_TILTS:
        which = programs.lanes(open_)
        if not len(which):
            break
        tilted = program.take(which).weighted(weight, 1.0)
        found = solve_interior(tilted)
        faster, cost = proofs.restored(tilted, found.b), (program.price * b).sum(axis=0)[which]
        value, bound = programs.weighted_value(tilted, faster), lower_bound(tilted, found, faster)
        cheap = (tilted.price * faster).sum(axis=0) <= cost * (1 + _GIVEN_AWAY)
        fine = cheap & (np.abs(value - bound) <= _GOOD_GAP * value)
        done = which[fine]
        programs.put(point, done, programs.some_of(found, np.flatnonzero(fine)))
        b[:, done], weights[done], open_[done] = faster[:, fine], weight, False
    return replace(program, time_weight=weights), point, b
