"""What rules leave to continuous dimensions beside each combination of purchasable speeds.

Interval propagation, vectorised over combinations: for every rule ``a . x <= room`` the
terms of the others at their least leave each x_j at most (a_j > 0) or at least (a_j < 0)
what remains. The box that follows holds every design, so the time at its upper corner and
the cost at its lower one bound the objective from below.

Boxes of combinations are bounded by the continuous optimizer on their relaxation
(:mod:`libra_planner.optimizer.relaxation`), the most promising first, and split where the
relaxed bandwidth lies between two speeds. A box in which every dimension is purchasable
and few combinations are left is searched exhaustively.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from libra_planner.costs.options import Options, nearest_options
from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.combinations import (
    Block,
    Combinations,
    best_combination,
    late,
    objectives,
    tie_breaker,
)
from libra_planner.optimizer.relaxation import Box, relaxation, restricted, whole_box
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.timing.expression import Array, Mask

_ENDLESS_BYTES_PER_S = 1e30
"""Stands for no upper bound: takes no time."""


@dataclass(frozen=True)
class Reach:
    """Boxes of designs, one per combination of the discrete dimensions.

    Parameters
    ----------
    lower, upper : bandwidth of every dimension, bytes/s, shape (n, n_dims).
    fits : whether the rules may be met, shape (n,).
    objective : lower bound of the objective, infinite where they cannot, shape (n,).
    """

    lower: Array
    upper: Array
    fits: Mask
    objective: Array


@dataclass(frozen=True)
class _Row:
    """``coefficients . x <= room`` over continuous dimensions, to ``slack``; (n,) each."""

    coefficients: Array
    room: Array
    slack: Array


def reach(problem: Problem, block: Block) -> Reach:
    """Bounds of the designs that each combination of a block allows."""
    n, continuous = len(block.network_usd), continuous_dims(problem)
    lower, upper = np.zeros((n, len(continuous))), np.full((n, len(continuous)), np.inf)
    rows = [row for rule in problem.rules for row in _rows(problem, rule, block)]
    fits = np.ones(n, dtype=np.bool_)
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(len(continuous) + 1):
            for row in rows:
                fits &= _tighten(row, lower, upper)
    fits &= (lower <= upper * (1 + RULE_TOLERANCE)).all(axis=1)
    low, high = (_whole(problem, block, bounds) for bounds in (lower, upper))
    objective = _bound(problem, block, low, high, fits)
    return Reach(low, high, np.isfinite(objective), objective)


def continuous_dims(problem: Problem) -> list[int]:
    """Dimensions without options."""
    return [i for i in range(problem.topology.n_dims) if i not in problem.purchasable]


def rest_of_rule(problem: Problem, rule: Rule, block: Block) -> tuple[Array, Array]:
    """A rule over the continuous dimensions: coefficients (n_dims,) and bounds (n,).

    What the purchased dimensions contribute is on the right side; in a rule over cost
    that is the price of their options.
    """
    discrete = list(problem.purchasable)
    coefficients = np.array(rule.coefficients)
    bought = block.bandwidth @ coefficients[discrete]
    if rule.cost_factor:
        bought = rule.cost_factor * block.network_usd
    coefficients[discrete] = 0.0
    return coefficients, rule.bound - bought


def _rows(problem: Problem, rule: Rule, block: Block) -> list[_Row]:
    coefficients, room = rest_of_rule(problem, rule, block)
    row = coefficients[continuous_dims(problem)]
    slack = RULE_TOLERANCE * np.maximum(abs(rule.bound), np.abs(room - rule.bound))
    upper, lower = _Row(row, room, slack), _Row(-row, -room, slack)
    return {"<=": [upper], ">=": [lower]}.get(rule.sense, [upper, lower])


def _tighten(row: _Row, lower: Array, upper: Array) -> Mask:
    """Shrink the boxes by one row, in place; returns where the row can be met."""
    a = row.coefficients
    least = np.where(a > 0, a * lower, np.where(a < 0, a * upper, 0.0))
    room = row.room + row.slack
    for j in np.flatnonzero(a):
        others = least[:, np.arange(len(a)) != j].sum(axis=1)
        edge = (room - others) / a[j]
        if a[j] > 0:
            upper[:, j] = np.minimum(upper[:, j], edge)
        else:
            lower[:, j] = np.maximum(lower[:, j], edge)
    return np.asarray(least.sum(axis=1) <= room)


def _whole(problem: Problem, block: Block, bounds: Array) -> Array:
    """Bandwidths of every dimension, (n, n_dims): the purchased ones and bounds of the rest."""
    vectors = np.empty((len(bounds), problem.topology.n_dims))
    vectors[:, list(problem.purchasable)] = block.bandwidth
    vectors[:, continuous_dims(problem)] = np.clip(bounds, 0.0, _ENDLESS_BYTES_PER_S)
    return vectors


def _bound(problem: Problem, block: Block, lower: Array, upper: Array, fits: Mask) -> Array:
    step_time_s = problem.step_time.seconds(upper)
    for limit in problem.step_time_limits:
        fits = fits & ~late(limit, step_time_s)
    continuous = continuous_dims(problem)
    rest_usd = lower[:, continuous] @ problem.price_usd_per_Bps[continuous]
    cost_usd = problem.fixed_cost_usd + block.network_usd + rest_usd
    return np.where(fits, objectives(problem, upper, step_time_s, cost_usd), np.inf)


MAX_SOLVED = 500
"""Continuous problems that are solved for one plan."""

_MAX_BOUNDED = 500_000
"""Combinations of the purchasable dimensions that get bounds of their own."""

_N_EXHAUSTED = 1_000_000
"""Combinations of a box that are evaluated one by one."""

_SAME = 1e-9
"""Relative difference up to which two certified figures tie."""


class Solution(Protocol):
    """What a continuous optimizer returns (:class:`~.design.Design` does)."""

    @property
    def bandwidth_bytes_per_s(self) -> Array:
        """Shape (n_dims,)."""
        ...

    @property
    def objective(self) -> float:
        """Exact value there."""
        ...

    @property
    def lower_bound(self) -> float:
        """Proven."""
        ...

    @property
    def unique(self) -> bool:
        """Whether no other vector ties."""
        ...


Solve: TypeAlias = Callable[[Problem], Solution]


class Found(NamedTuple):
    """The best design, a proven bound, and whether no other ties."""

    bandwidth_bytes_per_s: Array
    lower_bound: float
    unique: bool


class _Candidate(NamedTuple):
    """A design that meets the rules; ``second`` decides between equal objectives."""

    objective: float
    second: float
    bandwidth: tuple[float, ...]
    unique: bool


@dataclass
class _Search:
    """One run: boxes that may hold the best design, most promising first.

    ``best`` is the least objective found and the tie-breaker there; ``bound`` the least
    proven bound of what was not split any further; ``n_exhausted`` the size of a box
    whose combinations are evaluated one by one.
    """

    problem: Problem
    solve: Solve
    n_most: int = MAX_SOLVED
    n_solved: int = 0
    best: tuple[float, float] = (np.inf, np.inf)
    bound: float = np.inf
    n_exhausted: int = _N_EXHAUSTED
    found: list[_Candidate] = field(default_factory=list)
    _boxes: list[tuple[float, int, Box]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)

    def run(self, *, until_first: bool = False) -> None:
        """Fill ``found`` with every design that may be the best, or just one."""
        self._push(whole_box(self.problem), -np.inf)
        while self._boxes and not (until_first and self.found):
            bound, _, box = heapq.heappop(self._boxes)
            if bound > self.best[0] * (1 + _SAME):
                break  # Nor can any other: the boxes come in the order of their bounds.
            if self.n_solved == self.n_most:
                raise self._too_many()
            self.n_solved += 1
            self._visit(box, bound)

    @cached_property
    def _bounds(self) -> Array | None:
        """Bound of every combination, shape (n_options of each dimension), if not too many."""
        space = Combinations(self.problem)
        if self._all_purchasable or space.n_combinations > _MAX_BOUNDED:
            return None
        return reach(self.problem, space.everything()).objective.reshape(space.shape)

    @property
    def _all_purchasable(self) -> bool:
        return len(self.problem.purchasable) == self.problem.topology.n_dims

    def _push(self, box: Box, bound: float) -> None:
        if self._bounds is not None:
            bound = max(bound, float(self._bounds[box.slices].min()))
        if bound < np.inf:
            heapq.heappush(self._boxes, (bound, next(self._number), box))

    def _visit(self, box: Box, bound: float) -> None:
        """Bound a box; note what is found in it and queue its parts."""
        part = restricted(self.problem, box)
        if self._all_purchasable and box.n_combinations <= self.n_exhausted:
            self._exhaust(part)
            return
        free = relaxation(part)
        if free is None:
            return
        try:
            design = self.solve(free)
        except Infeasible:
            return
        except SolverFailed:
            if box.n_combinations == 1:
                raise
            self._push_all(halves(box), bound)
            return
        self._note_rounded(part, design)
        bound = max(bound, design.lower_bound)
        if box.n_combinations == 1 or self._is_beaten(free, design):
            self.bound = min(self.bound, bound)
        else:
            self._push_all(parts(part, box, design.bandwidth_bytes_per_s), bound)

    def _push_all(self, boxes: Iterable[Box], bound: float) -> None:
        for box in boxes:
            self._push(box, bound)

    def _exhaust(self, part: Problem) -> None:
        best = best_combination(Combinations(part))
        if best is not None:
            self._note(best.bandwidth_bytes_per_s, unique=best.unique)

    def _note_rounded(self, part: Problem, design: Solution) -> None:
        """Purchasable designs next to a relaxed one; in a box of one combination, that one."""
        tried = set()
        for toward in (0.0, 0.5, 1.0):
            bandwidth = design.bandwidth_bytes_per_s.copy()
            for dim, options in part.purchasable.items():
                bandwidth[dim] = _rounded(options, float(bandwidth[dim]), toward)
            if tuple(bandwidth) not in tried:
                tried.add(tuple(bandwidth))
                self._note(bandwidth, unique=design.unique)

    def _note(self, bandwidth: Array, *, unique: bool) -> None:
        """Keep a design that meets the rules."""
        if max_violation(self.problem, bandwidth) > RULE_TOLERANCE:
            return
        objective, second = _worth(self.problem, bandwidth)
        self.found.append(_Candidate(objective, second, tuple(map(float, bandwidth)), unique))
        least, cheapest = self.best
        if objective < least * (1 - _SAME):
            self.best = objective, second
        elif objective <= least * (1 + _SAME):
            self.best = min(objective, least), min(second, cheapest)

    def _is_beaten(self, free: Problem, design: Solution) -> bool:
        """Whether a box holds nothing better: slower, or as fast but dearer (C9)."""
        least, cheapest = self.best
        if design.lower_bound > least * (1 + _SAME):
            return True
        objective, second = _worth(free, design.bandwidth_bytes_per_s)
        return objective >= least * (1 - _SAME) and second > cheapest * (1 + _SAME)

    def _too_many(self) -> SolverFailed:
        return SolverFailed(
            f"{self.problem.at('fabric.link_options')}got purchasable speeds that "
            f"{self.n_most} continuous problems do not suffice to rank, expected fewer; list "
            f"fewer options, or give rules with '<=' some room"
        )


def best_branch(problem: Problem, solve: Solve, *, n_exhausted: int = _N_EXHAUSTED) -> Found | None:
    """The best design over all combinations; ``None`` when none meets the rules.

    ``n_exhausted`` combinations are few enough to evaluate one by one.

    Raises
    ------
    SolverFailed
        When more than ``MAX_SOLVED`` continuous problems would be needed.
    """
    search = _Search(problem, solve, n_exhausted=n_exhausted)
    search.run()
    if not search.found:
        return None
    best = min(one.objective for one in search.found)
    tied = [one for one in search.found if one.objective <= best * (1 + _SAME)]
    cheapest = min(one.second for one in tied)
    tied = [one for one in tied if one.second <= cheapest * (1 + _SAME)]
    first = min(tied, key=lambda one: one.bandwidth)
    bought = {tuple(one.bandwidth[dim] for dim in problem.purchasable) for one in tied}
    bound = min(first.objective, search.bound)
    return Found(np.array(first.bandwidth), bound, first.unique and len(bought) == 1)


def _worth(problem: Problem, bandwidth: Array) -> tuple[float, float]:
    """Objective and tie-breaker of one design."""
    step_time_s, cost_usd = problem.step_time.seconds(bandwidth), problem.cost_usd(bandwidth)
    return (
        float(objectives(problem, bandwidth, step_time_s, cost_usd)),
        float(tie_breaker(problem, step_time_s, cost_usd)),
    )


def can_be_met(problem: Problem, solve: Solve) -> bool:
    """Whether a purchasable design meets the rules; yes where it cannot be told."""
    search = _Search(problem, solve, n_most=MAX_SOLVED // 5)
    try:
        search.run(until_first=True)
    except (IllPosed, SolverFailed):
        return True
    return bool(search.found)


def halves(box: Box) -> list[Box]:
    """A box split in the middle of its dimension of most options."""
    sizes = [last - first for first, last in zip(box.first, box.last, strict=True)]
    d = int(np.argmax(sizes))
    middle = (box.first[d] + box.last[d]) // 2
    return [box.part(d, box.first[d], middle), box.part(d, middle + 1, box.last[d])]


def parts(part: Problem, box: Box, bandwidth_bytes_per_s: Array) -> list[Box]:
    """A box split where its relaxed design is farthest from what can be bought.

    Where the design can be bought it becomes a box of its own, and the rest of the box
    is cut around it.
    """
    gaps, below = [], []
    for dim, options in part.purchasable.items():
        value = float(bandwidth_bytes_per_s[dim])
        speeds = np.array([option.bandwidth_bytes_per_s for option in options])
        below.append(max(0, int(np.searchsorted(speeds, value * (1 + _SAME), side="right")) - 1))
        gap = float(np.abs(speeds - value).min())
        gaps.append(gap / value if gap > _SAME * value else 0.0)
    at = [first + k for first, k in zip(box.first, below, strict=True)]
    d = int(np.argmax(gaps))
    if gaps[d] and at[d] < box.last[d]:
        return [box.part(d, box.first[d], at[d]), box.part(d, at[d] + 1, box.last[d])]
    return list(_around(box, at))


def _around(box: Box, at: Sequence[int]) -> Iterator[Box]:
    """One combination of a box, and boxes that hold all others once."""
    for d, k in enumerate(at):
        if box.first[d] < k:
            yield box.part(d, box.first[d], k - 1)
        if k < box.last[d]:
            yield box.part(d, k + 1, box.last[d])
        box = box.part(d, k, k)
    yield box


def _rounded(options: Options, bandwidth: float, toward: float) -> float:
    """The speed below (0), nearest to (0.5) or above (1) a bandwidth."""
    near = nearest_options(options, bandwidth * (1 + _SAME))
    speeds = [option.bandwidth_bytes_per_s for option in near]
    if toward == 0.5:
        return min(speeds, key=lambda speed: abs(speed - bandwidth))
    return speeds[-1] if toward and not _same(speeds[0], bandwidth) else speeds[0]


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= _SAME * max(first, second)
