"""An optimised design, and what has to be true of it before anyone sees it (C9).

Among equally good designs the cheapest is chosen, then the lexicographically first. The set of
optima is a polyhedron (1/x is strictly convex): every form with a positive multiplier has one value
in it, and the others must keep up with the maxima they are in. It lies in b >= 0, so its
lexicographic minimum is a vertex, and with the one to three dimensions that are free in practice
all vertices can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import OBJECTIVES, max_violation
from libra_planner.optimizer.engines.batch import factored, solved
from libra_planner.optimizer.programs.dimensionless import (
    Index,
    Point,
    Program,
    form_values,
    lanes,
    least_w,
    size_of,
    some_of,
    taken,
    weighted_value,
)
from libra_planner.optimizer.programs.faces import first_points
from libra_planner.problem import RULE_TOLERANCE, Problem
from libra_planner.step.expression import Array, Mask
from libra_planner.units import format_time, format_usd, gigabytes_per_s

_ACTIVE = 1e-8
"""Slack, in units of the row, below which a rule is held exactly."""

_ZERO, _DUST = 1e-10, 1e-6
"""Bandwidth below which a dimension is unused, and the same for one without traffic."""

SURE_GAP, NO_DOUBT = 5e-10, 1e-11
"""Gap up to which a design of a batch is the optimum to 1e-9, and what a plan alone is held to."""

_MET = 1e-10
"""Violation, in units of the row, up to which a rule counts as met."""

_CORRECTIONS, _NOISE = 5, 1e-16

_SLOPE_NOISE = 1e-13
"""Slope that is rounding where nothing bounds a bandwidth."""


def restored(program: Program, b: Array) -> Array:
    """The nearest vectors, (n_dims, n), on which active rules hold to rounding.

    Violated or nearly tight rows become equalities and the
    smallest relative correction is taken; dust on idle dimensions is swept where it may be.
    """
    used = program.forms > 0
    alone = (used & (used.sum(axis=1, keepdims=True) == 1)).any(axis=0)
    least = np.where(used.any(axis=0), np.where(alone, 0.0, _ZERO), _DUST)
    swept = np.where(b < least, 0.0, b)
    result = _corrected(program, swept)
    over = (program.upper * result).sum(axis=1) - program.limit
    off = np.abs((program.equal * result).sum(axis=1) - program.target)
    worst = np.maximum(over.max(axis=0, initial=0.0), off.max(axis=0, initial=0.0))
    unmet = lanes(~(worst <= _MET))
    if len(unmet):
        result[:, unmet] = _corrected(program.take(unmet), np.maximum(taken(b, unmet), 0.0))
    return result


def _corrected(program: Program, b: Array) -> Array:
    point, n_equal = b.copy(), len(program.equal)
    rows = np.concatenate([program.equal, program.upper])
    bounds = np.concatenate([program.target, program.limit])
    diagonal = np.arange(len(rows))
    for _ in range(_CORRECTIONS):
        gap = bounds - (rows * point).sum(axis=1)
        active = gap < _ACTIVE
        active[:n_equal] = True
        gap = np.where(active & (np.abs(gap) > _NOISE), gap, 0.0)
        if not gap.any():
            break
        moved = rows * np.where(active[:, None], point, 0.0)
        gram = (moved[:, None] * moved[None]).sum(axis=2)
        gram[diagonal, diagonal] += ~active
        pull = solved(factored(gram), gap)
        point = np.maximum(point * (1 + (moved * pull[:, None]).sum(axis=0)), 0.0)
    return point


def lower_bound(program: Program, point: Point, b: Array) -> Array:
    """Proven: no design minimises further, in the program's units, shape (n,).

    Weak duality with any multipliers of 0 or more: with tangents ``2/p - x/p^2`` of the
    reciprocals 1/x at p = forms . b the Lagrangian is linear, and its minimum over the box
    of all designs as good as b is a bound, whatever the solver's accuracy (Neumaier and
    Shcherbina, Math. Program. 99, 2004).
    """
    n_rows, n_forms = len(program.rows), program.n_forms
    dual = np.maximum(point.dual, 0.0)
    row_dual, rule_dual = dual[:n_rows], dual[n_rows:]
    pull = program.time_weight * program.time + (program.rows * row_dual[:, None]).sum(axis=0)
    at = form_values(program, b)
    constant = (
        2 * (pull[:n_forms] / at).sum(axis=0)
        + (row_dual * program.offsets).sum(axis=0)
        - (rule_dual * program.limit).sum(axis=0)
        - (point.equal_dual * program.target).sum(axis=0)
    )
    slope = (
        program.cost_weight * program.price
        + (program.upper * rule_dual[:, None]).sum(axis=0)
        + (program.equal * point.equal_dual[:, None]).sum(axis=0)
        - (program.forms * (pull[:n_forms] / at**2)[:, None]).sum(axis=0)
    )
    b_upper, t_upper = _box(program, weighted_value(program, b))
    return np.asarray(constant + _least(slope, b_upper) + _least(pull[n_forms:], t_upper))


def balanced(program: Program, point: Point) -> Point:
    """The point with multipliers under which every maximum is worth what its rows cost.

    Then no maximum is left in the Lagrangian, whatever its sign: programs that touch roots have
    offsets that the roots themselves do not keep.
    """
    dual, weight = np.maximum(point.dual, 0.0), program.time_weight
    for k in reversed(range(program.n_forms, len(program.time))):
        column = program.rows[:, k]
        own = column[:, 0] < 0
        worth = weight * program.time[k]
        worth = worth + (column[~own] * dual[: len(column)][~own]).sum(axis=0)
        paid = -(column[own] * dual[: len(column)][own]).sum(axis=0)
        dual[np.flatnonzero(own)] *= np.where(paid > 0, worth / np.where(paid > 0, paid, 1.0), 1.0)
    return replace(point, dual=dual)


def _least(slope: Array, upper: Array) -> Array:
    """Least of slope . x over 0 <= x <= upper, shape (n,)."""
    down = slope < -_SLOPE_NOISE * np.isinf(upper)
    return np.asarray(np.where(down, slope * np.where(down, upper, 0.0), 0.0).sum(axis=0))


def _box(program: Program, incumbent: Array) -> tuple[Array, Array]:
    """Upper bounds of b and of the maxima over designs no worse than the incumbent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        priced = program.cost_weight * program.price
        affordable = np.where(priced > 0, incumbent / priced, np.inf)
        slowest = np.where(program.time_weight > 0, incumbent / program.time_weight, np.inf)
        slowest = np.minimum(slowest, program.time_limit)
        floors, hidden = program.floors[program.n_forms :], program.hidden[program.n_forms :]
        longest = np.where(floors > 0, (slowest + hidden) / floors, np.inf)
    wider = 1 + 1e-9
    return np.minimum(program.b_upper, affordable) * wider, longest * wider


CERTIFIED_GAP = 1e-6
"""Largest optimality gap that counts as certified (C9)."""


@dataclass(frozen=True)
class Design:
    """An optimised bandwidth vector and the proof that it is optimal.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    objective : exact value of the objective there (C9).
    lower_bound : proven: no design under the rules has a smaller objective.
    unique : no other design ties in objective and cost.
    max_violation : largest relative violation of a rule.
    """

    bandwidth_bytes_per_s: Array
    objective: float
    lower_bound: float
    unique: bool
    max_violation: float

    @property
    def optimality_gap(self) -> float:
        """(objective - lower_bound) / lower_bound (C9)."""
        excess = self.objective - self.lower_bound
        return excess / self.lower_bound if self.lower_bound > 0 else float(excess > 0)

    @property
    def bandwidth_GBps(self) -> list[float]:
        """The vector in GB/s."""
        return [gigabytes_per_s(value) for value in self.bandwidth_bytes_per_s]


@dataclass(frozen=True)
class Solution:
    """A certified design and the problem it answers.

    Parameters
    ----------
    design : the optimum.
    problem : with a group's own optima and the number of chunks that were found on the way.
    has_neighbors : whether problems nearby have optima of the same kind; not so for a step
        without traffic, a catalogue or a relative group.
    """

    design: Design
    problem: Problem
    has_neighbors: bool = False


@dataclass(frozen=True, repr=False)
class FrontierPoint:
    """A design that none is both cheaper and faster than.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    step_time_s, cost_usd : exact figures.
    optimality_gap : of the step time at that cost, or of the cost at that step time (C9).
    """

    bandwidth_bytes_per_s: Array
    step_time_s: float
    cost_usd: float
    optimality_gap: float

    @property
    def bandwidth_GBps(self) -> list[float]:
        """The vector in GB/s.

        >>> FrontierPoint(np.array([450e9, 50e9]), 1.0, 1e6, 0.0).bandwidth_GBps
        [450.0, 50.0]
        """
        return [gigabytes_per_s(value) for value in self.bandwidth_bytes_per_s]

    def __repr__(self) -> str:
        """It in one line.

        >>> FrontierPoint(np.array([450e9, 50e9]), 1.0, 1e6, 0.0)
        <FrontierPoint: step time 1.000 s, cost $1.00M; 450.00, 50.00 GB/s>
        """
        time, cost = format_time(self.step_time_s), format_usd(self.cost_usd)
        speeds = ", ".join(f"{value:.2f}" for value in self.bandwidth_GBps)
        return f"<{type(self).__name__}: step time {time}, cost {cost}; {speeds} GB/s>"


def design_at(problem: Problem, bandwidth: Array, lower_bound: float, *, unique: bool) -> Design:
    """The design at a vector in bytes/s, shape (n_dims,), evaluated in NumPy (C9)."""
    step_time_s = float(problem.step_time.seconds(bandwidth))
    objective = OBJECTIVES[problem.objective](step_time_s, float(problem.cost_usd(bandwidth)))
    return Design(
        bandwidth_bytes_per_s=bandwidth,
        objective=objective,
        lower_bound=min(lower_bound, objective),
        unique=unique,
        max_violation=max_violation(problem, bandwidth),
    )


def checked(problem: Problem, design: Design) -> Design:
    """The design, if it is proven to 1e-6 and meets the rules to 1e-9 (C9).

    Raises
    ------
    SolverFailed
        When it is not, or does not.
    """
    source, gap, broken_by = problem.text.source, design.optimality_gap, design.max_violation
    if not gap <= CERTIFIED_GAP:
        raise SolverFailed(
            f"{source}: got an optimality gap of {gap:.2g}, expected at most {CERTIFIED_GAP:g}; "
            "this plan cannot be certified: check for rules that leave almost no room, or bounds "
            "many orders of magnitude apart"
        )
    if not broken_by <= RULE_TOLERANCE:
        raise SolverFailed(
            f"{source}: got a design that breaks a rule by {broken_by:.2g}, expected at most "
            f"{RULE_TOLERANCE:g} relative; the rules leave almost no room"
        )
    return design


_PRICED = 1e-8
"""Share of the value above which a multiplier counts as positive."""

_DOUBTFUL = 1e-10, 1e-8
"""Shares between which a multiplier is neither surely positive nor surely rounding."""

_TIED = 1e-6
"""Relative spread of a bandwidth above which another design ties."""

_ON_VERTEX = 1e-8
"""Violation, in units of the row, up to which a vertex belongs to the polyhedron."""

_KEEP = 1e-10
"""Relative cost, or bandwidth, that a step of the choice may give away."""

_PARALLEL = 1e-7
_MOST_VERTICES = 400
_SAME = 1e-9


@dataclass(frozen=True)
class TieChoice:
    """Chosen vectors (n_dims, n), whether each is unique, and which remain undecided.

    Where a multiplier is ``doubtful`` another choice could have been the right one.
    """

    b: Array
    unique: Mask
    undecided: Mask
    doubtful: Mask


def chosen_among_ties(program: Program, point: Point, b: Array) -> TieChoice:
    """The cheapest, then lexicographically first, of designs as good as b, shape (n_dims, n)."""
    pull = multipliers(program, point)
    share = pull[: program.n_forms] / form_values(program, b) / size_of(weighted_value(program, b))
    priced, doubtful = share > _PRICED, (share > _DOUBTFUL[0]) & (share < _DOUBTFUL[1])
    alone = (program.forms > 0).sum(axis=1) == 1
    fixed = ((priced & alone)[:, None] & (program.forms > 0)).any(axis=0)
    free = ~fixed.all(axis=0)
    choice = TieChoice(
        b.copy(), ~free, np.zeros(program.n, dtype=bool), np.asarray(doubtful.any(axis=0))
    )
    codes = (fixed.T @ (1 << np.arange(program.n_dims))) * free
    for code in np.unique(codes[free]):
        which = lanes(free & (codes == code))
        part, multiplied = program.take(which), some_of(point, which)
        chosen = _first_vertex(part, multiplied, taken(b, which), taken(fixed, which))
        choice.b[:, which], choice.unique[which], choice.undecided[which] = chosen
    return choice


def multipliers(program: Program, point: Point) -> Array:
    """What a unit of each w costs, shape (n_w, n); for a maximum what its own rows are worth."""
    n_forms, row_dual = program.n_forms, np.maximum(point.dual[: len(program.rows)], 0.0)
    pull: Array = program.time_weight * program.time
    for row, dual in zip(program.rows, row_dual, strict=True):
        own = row[n_forms:] < 0
        share = np.concatenate([row[:n_forms], np.where(own, 0.0, row[n_forms:])])
        pull = pull + share * dual
    return pull


def _face(program: Program, point: Point, b: Array, fixed: Mask) -> tuple[Array, Array, int, Mask]:
    """The optima as ``rows b <= bounds``, how many rows are equalities, and what is undecided."""
    values, n_forms = form_values(program, b), program.n_forms
    w = least_w(1 / values, program.rows, program.offsets)
    priced = multipliers(program, point) * w > _PRICED * size_of(weighted_value(program, b))
    settled = ~((program.forms > 0) & ~fixed).any(axis=1)
    known = np.concatenate([priced[:n_forms] | settled, priced[n_forms:]])
    required, undecided = _required(program, w, known)
    kept, loose = priced[:n_forms] & ~settled, ~known[:n_forms]
    least = np.where(loose, -np.minimum(required, values), 0.0)
    axes = np.repeat(np.eye(program.n_dims)[:, :, None], program.n, axis=2)
    equal = [program.equal, program.forms * kept[:, None]]
    target = [program.target, np.where(kept, values, 0.0)]
    rows = np.concatenate([*equal, program.upper, -program.forms * loose[:, None], -axes])
    bounds = np.concatenate([*target, program.limit, least, np.zeros_like(b)])
    return rows, bounds, len(program.equal) + n_forms, undecided


def _required(program: Program, w: Array, known: Mask) -> tuple[Array, Mask]:
    """Least values of the forms that keep every known maximum; where that is no simple bound.

    From the outermost maximum inwards: a row with one unknown bounds it, one with several
    trades them off, which no vertex of a polyhedron can express.
    """
    n_forms = program.n_forms
    most = np.where(known, w, np.inf)
    undecided = np.zeros(program.n, dtype=bool)
    for row, offset in sorted(
        zip(program.rows, program.offsets, strict=True), key=lambda pair: -_own(pair[0], n_forms)
    ):
        own = _own(row, n_forms)
        unknown = (row > 0) & ~known
        spent = np.where((row > 0) & known, row * w, 0.0).sum(axis=0) + offset
        room = (most[own] * -row[own] if own < len(w) else 0.0) - spent
        several = unknown.sum(axis=0) > 1
        undecided |= several & np.isfinite(room)
        allowed = np.where(unknown, np.maximum(room, 0.0) / np.where(unknown, row, 1.0), np.inf)
        most = np.minimum(most, allowed)
    with np.errstate(divide="ignore"):
        return 1 / most[:n_forms], undecided


def _own(row: Array, n_forms: int) -> int:
    """The maximum that a row belongs to; past the end for the time limit."""
    negative = np.flatnonzero(row[n_forms:, 0] < 0)
    return n_forms + int(negative[0]) if len(negative) else len(row)


def _first_vertex(
    program: Program, point: Point, b: Array, fixed: Mask
) -> tuple[Array, Mask, Mask]:
    """The lexicographically first vertex by cost, then bandwidth in order; as in TieChoice."""
    rows, bounds, n_equal, open_ = _face(program, point, b, fixed)
    free = np.flatnonzero(~fixed[:, 0])
    bounds = bounds - (rows * np.where(fixed, b, 0.0)[None]).sum(axis=1)
    rows = rows[:, free]
    size = np.abs(rows).max(axis=1)
    useful = np.flatnonzero((size > 0).any(axis=1))
    n_equal = int((useful < n_equal).sum())
    size = np.where(size > 0, size, 1.0)
    rows, bounds = (rows / size[:, None])[useful], (bounds / size)[useful]
    sizes, price = _sizes(program, b)[free], program.price[free]
    settled = _determined(rows, n_equal, len(free))
    if comb(len(rows), len(free)) > _MOST_VERTICES:
        best, unique, feasible = first_points(price, rows, bounds, n_equal, _TIED * sizes)
    else:
        x, met = _vertices(rows, bounds, n_equal, len(free))
        pick, unique = _lexicographic(price, x, met, sizes)
        best = np.take_along_axis(x, pick[None, None], axis=0)[0]
        feasible = np.asarray(met.any(axis=0))
    chosen = b.copy()
    chosen[free] = best
    same = np.isclose(chosen, b, rtol=_SAME, atol=0.0).all(axis=0)
    chosen[:, same] = b[:, same]
    undecided = ~settled & (open_ | ~feasible)
    endless = (np.isinf(program.b_upper[free]) & (program.price[free] <= 0)).any(axis=0)
    alone = settled | (unique & ~endless)
    return np.where(settled | undecided, b, chosen), alone, undecided


def _determined(rows: Array, n_equal: int, k: int) -> Mask:
    """Where equalities alone leave one vector: that is b, which meets them, shape (n,)."""
    if n_equal < k:
        return np.zeros(rows.shape[2], dtype=bool)
    singular = np.linalg.svd(np.moveaxis(rows[:n_equal], 2, 0), compute_uv=False)
    return np.asarray(singular[:, k - 1] > _PARALLEL)


def _vertices(rows: Array, bounds: Array, n_equal: int, k: int) -> tuple[Array, Mask]:
    """All solutions of k rows, (n_vertices, k, n), and whether they meet the others too."""
    subsets = np.array(list(combinations(range(len(rows)), k)))
    matrices = np.moveaxis(rows[subsets], 3, 1)  # (n_vertices, n, k, k)
    right = np.moveaxis(bounds[subsets], 2, 1)[..., None]
    regular = np.abs(np.linalg.det(matrices)) > _PARALLEL
    matrices = np.where(regular[..., None, None], matrices, np.eye(k))
    x = np.moveaxis(np.linalg.solve(matrices, right)[..., 0], 2, 1)
    over = (rows * x[:, None]).sum(axis=2) - bounds
    over[:, :n_equal] = np.abs(over[:, :n_equal])
    scale = 1 + np.abs(bounds)
    return np.maximum(x, 0.0), regular & (over <= _ON_VERTEX * scale).all(axis=1)


def _sizes(program: Program, b: Array) -> Array:
    """What spreads are relative to, in each dimension's unit: the largest bandwidth, (n_dims, n).

    1/C of a problem over (B/C, 1/C), which has a negative price, is relative to itself.
    """
    bandwidth = np.where(program.price < 0, 0.0, b * program.bandwidth_unit)
    return np.where(program.price < 0, b, bandwidth.max(axis=0) / program.bandwidth_unit)


def _lexicographic(price: Array, x: Array, feasible: Mask, sizes: Array) -> tuple[Index, Mask]:
    """Index of the first vertex of each design, and whether no other is as cheap."""
    kept = _among_least((price * x).sum(axis=1), feasible, np.abs(price).max(axis=0))
    unique = np.ones(x.shape[2], dtype=bool)
    for i in range(x.shape[1]):
        unique &= _spread(x[:, i], kept) <= _TIED * sizes[i]
        kept = _among_least(x[:, i], kept, np.ones(x.shape[2]))
    return kept.argmax(axis=0), unique


def _among_least(values: Array, among: Mask, size: Array) -> Mask:
    """Which of the values, (n_vertices, n), are the least of those among."""
    least = np.where(among, values, np.inf).min(axis=0)
    allowed = least + _KEEP * np.maximum(np.abs(least), size)
    return np.asarray(among & (values <= allowed))


def _spread(values: Array, among: Mask) -> Array:
    highest = np.where(among, values, -np.inf).max(axis=0)
    spread: Array = highest - np.where(among, values, np.inf).min(axis=0)
    return np.where(among.any(axis=0), spread, 0.0)
