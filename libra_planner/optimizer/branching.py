"""Branch and bound over purchasable speeds, for continuous dimensions and huge catalogues.

A box lets each purchasable dimension choose among neighbouring speeds. Boxes are bounded by the
continuous optimizer on their relaxation (:mod:`libra_planner.optimizer.relaxation`), the most
promising first, and split where the relaxed bandwidth lies between two speeds. A box in which
every dimension is purchasable and few combinations are left is searched exhaustively.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from libra_planner.costs.options import Options, nearest_options
from libra_planner.errors import IllPosed, Infeasible, SolverFailed
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.combinations import (
    Best,
    Combinations,
    best_combination,
    objectives,
    tie_breaker,
)
from libra_planner.optimizer.design import Design
from libra_planner.optimizer.relaxation import least_objectives, relaxation
from libra_planner.problem import RULE_TOLERANCE, Problem
from libra_planner.timing.expression import Array

MAX_SOLVED = 500
"""Continuous problems that are solved for one plan."""

_MAX_BOUNDED = 500_000
"""Combinations of the purchasable dimensions that get bounds of their own."""

_N_EXHAUSTED = 1_000_000
"""Combinations of a box that are evaluated one by one."""

_SAME = 1e-9
"""Relative difference up to which two certified figures tie."""

Solve: TypeAlias = Callable[[Problem], Design]

_Box: TypeAlias = tuple[range, ...]
"""Options, by index, of each purchasable dimension in their order."""


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
    _boxes: list[tuple[float, int, _Box]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)

    def run(self, *, until_first: bool = False) -> None:
        """Fill ``found`` with every design that may be the best, or just one."""
        whole = tuple(range(len(options)) for options in self.problem.purchasable.values())
        self._push([whole], -np.inf)
        while self._boxes and not (until_first and self.found):
            bound, _, box = heapq.heappop(self._boxes)
            if bound > self.best[0] * (1 + _SAME):
                break  # Nor can any other: the boxes come in the order of their bounds.
            if self.n_solved == self.n_most:
                raise SolverFailed(
                    f"{self.problem.at('fabric.link_options')}got purchasable speeds that "
                    f"{self.n_most} continuous problems do not suffice to rank, expected fewer; "
                    f"list fewer options, or give rules with '<=' some room"
                )
            self.n_solved += 1
            self._visit(box, bound)

    @cached_property
    def _bounds(self) -> Array | None:
        """Bound of every combination, shape (n_options of each dimension), if not too many."""
        space = Combinations(self.problem)
        if self._all_purchasable or space.n_combinations > _MAX_BOUNDED:
            return None
        everything = space.block(0, space.n_combinations)
        return least_objectives(self.problem, everything).reshape(space.shape)

    @property
    def _all_purchasable(self) -> bool:
        return len(self.problem.purchasable) == self.problem.topology.n_dims

    def _push(self, boxes: Iterable[_Box], bound: float) -> None:
        for box in boxes:
            least = bound
            if self._bounds is not None:
                least = max(bound, float(self._bounds[np.ix_(*box)].min()))
            if least < np.inf:
                heapq.heappush(self._boxes, (least, next(self._number), box))

    def _visit(self, box: _Box, bound: float) -> None:
        """Bound a box; note what is found in it and queue its parts."""
        part, n_combinations = _restricted(self.problem, box), math.prod(map(len, box))
        if self._all_purchasable and n_combinations <= self.n_exhausted:
            best = best_combination(Combinations(part))
            if best is not None:
                self._note(best.bandwidth_bytes_per_s, unique=best.unique)
            return
        free = relaxation(part)
        if free is None:
            return
        try:
            design = self.solve(free)
        except Infeasible:
            return
        except SolverFailed:
            if n_combinations == 1:
                raise
            d = int(np.argmax([len(options) for options in box]))
            self._push(_split(box, d, (len(box[d]) + 1) // 2), bound)
            return
        self._note_rounded(part, design)
        bound = max(bound, design.lower_bound)
        if n_combinations == 1 or self._is_beaten(free, design):
            self.bound = min(self.bound, bound)
        else:
            self._push(_parts(part, box, design.bandwidth_bytes_per_s), bound)

    def _note_rounded(self, part: Problem, design: Design) -> None:
        """Purchasable designs next to a relaxed one; in a box of one combination, that one."""
        rounded = np.tile(design.bandwidth_bytes_per_s, (3, 1))
        for dim, options in part.purchasable.items():
            rounded[:, dim] = _rounded(options, float(rounded[0, dim]))
        for bandwidth in dict.fromkeys(map(tuple, rounded)):
            self._note(np.array(bandwidth), unique=design.unique)

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

    def _is_beaten(self, free: Problem, design: Design) -> bool:
        """Whether a box holds nothing better: slower, or as fast but dearer (C9)."""
        least, cheapest = self.best
        if design.lower_bound > least * (1 + _SAME):
            return True
        objective, second = _worth(free, design.bandwidth_bytes_per_s)
        return objective >= least * (1 - _SAME) and second > cheapest * (1 + _SAME)


def best_branch(problem: Problem, solve: Solve, *, n_exhausted: int = _N_EXHAUSTED) -> Best | None:
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
    return Best(np.array(first.bandwidth), first.unique and len(bought) == 1, bound)


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


def _restricted(problem: Problem, box: _Box) -> Problem:
    """The problem with only the options in a box."""
    options = list(problem.options)
    for (dim, listed), part in zip(problem.purchasable.items(), box, strict=True):
        options[dim] = listed[part.start : part.stop]
    return replace(problem, options=tuple(options))


def _split(box: _Box, d: int, *at: int) -> Iterator[_Box]:
    """Parts of a box: its dimension d cut before some of its options; empty ones left out."""
    for first, last in itertools.pairwise((0, *at, len(box[d]))):
        if first < last:
            yield (*box[:d], box[d][first:last], *box[d + 1 :])


def _parts(part: Problem, box: _Box, bandwidth: Array) -> Iterator[_Box]:
    """A box split where its relaxed design is farthest from what can be bought.

    Where the design can be bought it becomes a box of its own, and the rest of the box
    is cut around it.
    """
    gaps, below = [], []
    for dim, options in part.purchasable.items():
        value = float(bandwidth[dim])
        speeds = np.array([option.bandwidth_bytes_per_s for option in options])
        below.append(max(0, int(np.searchsorted(speeds, value * (1 + _SAME), side="right")) - 1))
        gap = float(np.abs(speeds - value).min())
        gaps.append(gap / value if gap > _SAME * value else 0.0)
    d = int(np.argmax(gaps))
    if gaps[d] and below[d] + 1 < len(box[d]):
        return _split(box, d, below[d] + 1)
    return _around(box, below)


def _around(box: _Box, at: Sequence[int]) -> Iterator[_Box]:
    """One combination of a box, and boxes that hold all others once."""
    for d, k in enumerate(at):
        alone = box[d][k : k + 1]
        yield from (part for part in _split(box, d, k, k + 1) if part[d] != alone)
        box = (*box[:d], alone, *box[d + 1 :])
    yield box


def _rounded(options: Options, bandwidth: float) -> list[float]:
    """The speeds below, nearest to and above a bandwidth."""
    near = nearest_options(options, bandwidth * (1 + _SAME))
    speeds = [option.bandwidth_bytes_per_s for option in near]
    nearest = min(speeds, key=lambda speed: abs(speed - bandwidth))
    exact = abs(speeds[0] - bandwidth) <= _SAME * max(speeds[0], bandwidth)
    return [speeds[0], nearest, speeds[0] if exact else speeds[-1]]
