"""The best combination of purchasable speeds, proven, and what it loses to any bandwidth.

When every dimension is bought from a catalogue, all combinations are evaluated
(:mod:`libra_planner.optimizer.combinations`): the best one is its own lower bound. When some
dimensions are continuous, or there are too many combinations for that, branch and bound calls a
continuous optimizer.

A box lets each purchasable dimension choose among neighbouring speeds. Its relaxation lets it have
any bandwidth between the slowest and the fastest, at a price that is nowhere above that of an
option: an affine function of the bandwidth, exact where one speed is left. The continuous
optimizer bounds boxes by their relaxation, the most promising first; they are split where the
relaxed bandwidth lies between two speeds. A box in which every dimension is purchasable and few
combinations are left is searched exhaustively.

Cheaper and coarser, for all combinations at once, is what rules leave to the continuous
dimensions beside each: these intervals hold every design, so the time at the upper ends and the
cost at the lower ones bound the objective.
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

from libra_planner.costs.prices import LinkOption, Options, find_options, nearest_options
from libra_planner.errors import IllPosed, Infeasible, PlannerError, SolverFailed
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.combinations import (
    Best,
    Block,
    Combinations,
    best_combination,
    infeasible,
    late,
    objectives,
    refused,
    rest_of_rule,
    tie_breaker,
)
from libra_planner.optimizer.design import Design
from libra_planner.optimizer.programs.dimensionless import RuleRows
from libra_planner.optimizer.programs.plans import interval_bounds
from libra_planner.optimizer.programs.posedness import AnyRule, irreducible
from libra_planner.problem import RULE_TOLERANCE, Prices, Problem, Rule, StepTimeLimit
from libra_planner.step.expression import Array

_NOISE_USD = 1e-6
"""Rounding of a cost."""

_ENDLESS_BYTES_PER_S = 1e30
"""Stands for no upper bound: takes no time."""


def least_objectives(problem: Problem, block: Block) -> Array:
    """Bound of the objective beside each combination of a block, infinite where rules break, (n,).

    Of designs whose other dimensions are continuous.
    """
    n, n_dims = len(block.network_usd), problem.topology.n_dims
    continuous = [i for i in range(n_dims) if i not in problem.purchasable]
    rows, limits = [np.zeros(n_dims)], [np.zeros(n)]  # A row for problems without any rule.
    for rule in problem.rules:
        row, room, slack = rest_of_rule(rule, list(problem.purchasable), block)
        for sign in {"<=": [1.0], ">=": [-1.0]}.get(rule.sense, [1.0, -1.0]):
            rows.append(sign * row)
            limits.append(sign * room + slack)
    table, room = np.array(rows)[:, continuous, None], np.array(limits)
    broken = ((table == 0).all(axis=1) & (room < 0)).any(axis=0)
    none = np.empty((0, len(continuous), n))
    rules = RuleRows(np.broadcast_to(table, (*table.shape[:2], n)), room, none, none[:, 0])
    lower, upper = interval_bounds(rules)
    broken |= (lower > upper * (1 + RULE_TOLERANCE)).any(axis=0)
    fastest = np.empty((n, n_dims))
    fastest[:, list(problem.purchasable)] = block.bandwidth
    fastest[:, continuous] = np.clip(upper, 0.0, _ENDLESS_BYTES_PER_S).T
    step_time_s = problem.step_time.seconds(fastest)
    for limit in problem.step_time_limits:
        broken |= late(limit, step_time_s)
    rest_usd = np.clip(lower, 0.0, _ENDLESS_BYTES_PER_S).T @ problem.price_usd_per_Bps[continuous]
    cost_usd = problem.fixed_cost_usd + block.network_usd + rest_usd
    return np.where(broken, np.inf, objectives(problem, fastest, step_time_s, cost_usd))


def relaxation(problem: Problem) -> Problem | None:
    """The continuous problem whose optimum is no worse than that of any purchasable design.

    Equal to the problem where every dimension with options has one. ``None`` where a
    rule that is left to bought dimensions alone is broken.

    Examples
    --------
    >>> from libra_planner.costs.prices import LinkOption
    >>> from libra_planner.problem import plain_problem
    >>> from libra_planner.step.expression import TimeExpression, transfers
    >>> from libra_planner.fabric.topology import parse_topology
    >>> speeds = (LinkOption(1e9, 1, 10.0), LinkOption(2e9, 1, 50.0))
    >>> time = TimeExpression(transfers([9e9, 2e9]), 2)
    >>> prices = Prices((1e-8, 2e-8), options=(speeds, None))
    >>> free = relaxation(plain_problem(parse_topology("RI(4)_SW(8)"), time, prices))
    >>> [rule.text for rule in free.rules], free.price_usd_per_Bps * 1e9, free.fixed_cost_usd
    (['dim1 as bought', 'dim1 as bought'], array([10., 20.]), 0.0)
    """
    price, base_usd = problem.price_usd_per_Bps.copy(), 0.0
    for dim, options in problem.purchasable.items():
        price[dim], constant = _minorant(options)
        base_usd += constant
    rules: list[Rule] = []
    for rule in problem.rules:
        relaxed, slack = _relaxed_rule(problem, rule, price, base_usd)
        if relaxed is not None and any(relaxed.coefficients):
            rules.append(relaxed)
        elif relaxed is not None and relaxed.excess(np.zeros(len(price))) > slack:
            return None
    fixed_usd = problem.fixed_cost_usd + base_usd
    prices = Prices(tuple(price.tolist()), fixed_usd, problem.prices.parts)
    return replace(problem, rules=(*rules, *_ranges(problem)), prices=prices)


def _minorant(options: Options) -> tuple[float, float]:
    """Slope and constant, neither negative, of a line that is below every option's cost.

    Of three such lines the highest in the middle: through the origin, flat, and along the
    first and the last option.
    """
    speeds = np.array([option.bandwidth_bytes_per_s for option in options])
    costs = np.array([option.cost_usd for option in options])
    middle = (speeds[0] + speeds[-1]) / 2
    chord = max(0.0, float((costs[-1] - costs[0]) / ((speeds[-1] - speeds[0]) or 1.0)))
    slopes = (float((costs / speeds).min()), 0.0, chord)
    lines = [(slope, float((costs - slope * speeds).min())) for slope in slopes]
    usable = [(slope, max(0.0, constant)) for slope, constant in lines if constant > -_NOISE_USD]
    return max(usable, key=lambda line: line[0] * middle + line[1])


def _relaxed_rule(
    problem: Problem, rule: Rule, price: Array, base_usd: float
) -> tuple[Rule | None, float]:
    """A rule with the bought bandwidths on the right side, and what rounding may break it by.

    ``None`` where it must be let go: a cost that is too low may be that of an option that is not.
    """
    if rule.cost_factor:
        exact = all(len(options) == 1 for options in problem.purchasable.values())
        sense = rule.sense if exact else ("<=" if rule.cost_factor > 0 else ">=")
        if rule.sense not in (sense, "=="):
            return None, 0.0
        row, moved = rule.cost_factor * price, rule.cost_factor * base_usd
        relaxed = replace(rule, coefficients=_row(row), sense=sense, bound=rule.bound - moved)
        return relaxed, RULE_TOLERANCE * max(abs(rule.bound), abs(moved))
    single = {dim: o[0] for dim, o in problem.purchasable.items() if len(o) == 1}
    speeds = np.array([[option.bandwidth_bytes_per_s for option in single.values()]])
    row, [bound], [slack] = rest_of_rule(rule, list(single), Block(speeds, np.zeros(1)))
    return replace(rule, coefficients=_row(row), bound=float(bound)), float(slack)


def _row(coefficients: Array) -> tuple[float, ...]:
    return tuple(map(float, coefficients))


def _ranges(problem: Problem) -> list[Rule]:
    """What is purchasable, as rules."""
    rules = []
    for dim, options in problem.purchasable.items():
        text = f"{problem.topology.labels[dim]} as bought"
        axis = _row(np.eye(problem.topology.n_dims)[dim])
        ends = {">=": options[0], "<=": options[-1]} if len(options) > 1 else {"==": options[0]}
        rules += [Rule(text, axis, sense, at.bandwidth_bytes_per_s) for sense, at in ends.items()]
    return rules


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
    n_most: int = MAX_SOLVED
    n_solved: int = 0
    best: tuple[float, float] = (np.inf, np.inf)
    bound: float = np.inf
    n_exhausted: int = _N_EXHAUSTED
    found: list[_Candidate] = field(default_factory=list)
    _boxes: list[tuple[float, int, _Box]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)

    def run(self, solve: Solve, *, until_first: bool = False) -> None:
        """Fill ``found`` with every design that may be the best, or just one.

        ``solve`` is the continuous optimizer.
        """
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
            self._visit(box, bound, solve)

    @cached_property
    def _bounds(self) -> Array | None:
        """Bound of every combination, shape (n_options of each dimension), if not too many."""
        space = Combinations(self.problem)
        if space.is_whole or space.n_combinations > _MAX_BOUNDED:
            return None
        everything = space.block(0, space.n_combinations)
        return least_objectives(self.problem, everything).reshape(space.shape)

    def _push(self, boxes: Iterable[_Box], bound: float) -> None:
        for box in boxes:
            least = bound
            if self._bounds is not None:
                least = max(bound, float(self._bounds[np.ix_(*box)].min()))
            if least < np.inf:
                heapq.heappush(self._boxes, (least, next(self._number), box))

    def _visit(self, box: _Box, bound: float, solve: Solve) -> None:
        """Bound a box; note what is found in it and queue its parts."""
        part, n_combinations = _restricted(self.problem, box), math.prod(map(len, box))
        space = Combinations(part)
        if space.is_whole and n_combinations <= self.n_exhausted:
            best = best_combination(space)
            if best is not None:
                self._note(best.bandwidth_bytes_per_s, unique=best.unique)
            return
        free = relaxation(part)
        if free is None:
            return
        try:
            design = solve(free)
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
    search = _Search(problem, n_exhausted=n_exhausted)
    search.run(solve)
    if not search.found:
        return None
    best = min(one.objective for one in search.found)
    tied = [one for one in search.found if one.objective <= best * (1 + _SAME)]
    cheapest = min(one.second for one in tied)
    tied = [one for one in tied if one.second <= cheapest * (1 + _SAME)]
    first = min(tied, key=lambda one: one.bandwidth)
    bought = {tuple(one.bandwidth[dim] for dim in problem.purchasable) for one in tied}
    unique = first.unique and len(bought) == 1
    return Best(np.array(first.bandwidth), unique, min(first.objective, search.bound))


def _worth(problem: Problem, bandwidth: Array) -> tuple[float, float]:
    """Objective and tie-breaker of one design."""
    times = problem.step_time.seconds(bandwidth), problem.cost_usd(bandwidth)
    return float(objectives(problem, bandwidth, *times)), float(tie_breaker(problem, *times))


def _restricted(problem: Problem, box: _Box) -> Problem:
    """The problem with only the options in a box."""
    options = list(problem.options)
    for (dim, listed), part in zip(problem.purchasable.items(), box, strict=True):
        options[dim] = listed[part.start : part.stop]
    return replace(problem, prices=replace(problem.prices, options=tuple(options)))


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


MAX_COMBINATIONS = 200_000_000
"""Combinations that are evaluated one by one: about a minute on one core."""


@dataclass(frozen=True)
class CatalogueDesign(Design):
    """The best combination of purchasable speeds and the proof that it is the best.

    Its ``lower_bound`` is the objective itself where all combinations were evaluated.

    Parameters
    ----------
    options : what each dimension buys; ``None`` for a continuous one.
    cost_usd : cost of the options, of the continuous dimensions and the fixed cost.
    n_combinations : of purchasable speeds, all of which are accounted for.
    continuous : the optimum under the same rules, at the price book's linear prices, when every
        bandwidth could be bought.
    no_continuous : why there is none to compare with, else empty.
    """

    options: tuple[LinkOption | None, ...]
    cost_usd: float
    n_combinations: int
    continuous: Design | None = None
    no_continuous: str = ""

    @property
    def loss_vs_continuous(self) -> float | None:
        """Objective over the continuous optimum's, minus 1.

        Negative where the options are cheaper than the price book.
        """
        if self.continuous is None or not self.continuous.objective:
            return None
        return self.objective / self.continuous.objective - 1


def optimize_catalogue(problem: Problem, solve: Solve) -> CatalogueDesign:
    """The best purchasable design, and how much better a continuous one would be.

    Parameters
    ----------
    problem : with options for at least one dimension, and with the members' own optima
        where a group's objective needs them.
    solve : the continuous optimizer.

    Raises
    ------
    Infeasible
        When no combination meets the rules; names those that conflict.
    IllPosed
        When no rule bounds a continuous dimension with traffic.
    SolverFailed
        When there are too many combinations to account for all of them.
    """
    space = Combinations(problem)
    few = space.is_whole and space.n_combinations <= MAX_COMBINATIONS
    design = best_purchasable(problem) if few else _branched(problem, solve)
    try:
        return replace(
            design, continuous=solve(replace(problem, prices=replace(problem.prices, options=())))
        )
    except PlannerError as error:
        return replace(design, no_continuous=str(error))


def best_purchasable(problem: Problem) -> CatalogueDesign:
    """The best combination when every dimension has options; needs no solver.

    Raises
    ------
    Infeasible, SolverFailed
        As :func:`optimize_catalogue`.

    Examples
    --------
    >>> from libra_planner.problem import Prices, Rule, plain_problem
    >>> from libra_planner.step.expression import TimeExpression, transfers
    >>> from libra_planner.fabric.topology import parse_topology
    >>> speeds = tuple(LinkOption(25e9, n, 1e6 * n) for n in (1, 2, 4))
    >>> total = Rule("total <= 130 GB/s", (1.0, 1.0), "<=", 130e9)
    >>> time, fabric = TimeExpression(transfers([9e9, 2e9]), 2), parse_topology("RI(4)_SW(8)")
    >>> prices = Prices((1.0, 1.0), options=(speeds, speeds))
    >>> problem = plain_problem(fabric, time, prices, (total,))
    >>> best_purchasable(problem).bandwidth_GBps
    [100.0, 25.0]
    """
    space = Combinations(problem)
    if space.n_combinations > MAX_COMBINATIONS:
        raise SolverFailed(
            f"{problem.at('fabric.link_options')}got {space.n_combinations:,} combinations, "
            f"expected at most {MAX_COMBINATIONS:,} to evaluate one by one; list fewer options"
        )
    best = best_combination(space)
    if best is None:
        raise infeasible(space)
    return _design(space, best)


def _branched(problem: Problem, solve: Solve) -> CatalogueDesign:
    best = best_branch(problem, solve)
    if best is not None:
        return _design(Combinations(problem), best)

    def met(kept: Sequence[AnyRule]) -> bool:
        """Whether a purchasable design meets some rules; yes where it cannot be told."""
        rules = tuple(rule for rule in kept if isinstance(rule, Rule))
        limits = tuple(rule for rule in kept if isinstance(rule, StepTimeLimit))
        loosened = replace(problem, rules=rules, step_time_limits=limits)
        search = _Search(loosened, n_most=MAX_SOLVED // 5)
        try:
            search.run(solve, until_first=True)
        except (IllPosed, SolverFailed):
            return True
        return bool(search.found)

    # None of them can be left out as far as could be told.
    raise refused(problem, irreducible([*problem.rules, *problem.step_time_limits], met))


def _design(space: Combinations, best: Best) -> CatalogueDesign:
    """The design with everything evaluated exactly at its vector (C9)."""
    problem, bandwidth = space.problem, best.bandwidth_bytes_per_s
    cost_usd = problem.cost_usd(bandwidth)
    step_time_s = problem.step_time.seconds(bandwidth)
    objective = float(objectives(problem, bandwidth, step_time_s, cost_usd))
    listed = ((problem.purchasable.get(i), value) for i, value in enumerate(bandwidth))
    bought = [options[int(find_options(options, b))] if options else None for options, b in listed]
    return CatalogueDesign(
        bandwidth_bytes_per_s=bandwidth,
        options=tuple(bought),
        objective=objective,
        cost_usd=float(cost_usd),
        n_combinations=space.n_combinations,
        lower_bound=min(best.lower_bound, objective),
        unique=best.unique,
        max_violation=max_violation(problem, bandwidth),
    )
