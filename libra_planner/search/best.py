"""The best strategies of a space, certified: bounds first, then proofs, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import OBJECTIVES
from libra_planner.frozen import Frozen
from libra_planner.problem import RULE_TOLERANCE
from libra_planner.search.fabrics import INFEASIBLE, PROVEN, Cell, Fabrics, Optimum
from libra_planner.search.figures import N_BLOCK, Figures, TimesAt
from libra_planner.search.space import Index, Space
from libra_planner.step.expression import Array
from libra_planner.step.model_training import ModelTraining
from libra_planner.workload.operations import Covers, Workload
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Strategy

Progress = Callable[[str, int, int], None]

_N_PROBES = 4
"""Times that the strategy which is best at the best bandwidth so far is optimised."""
_N_FEW = 32
"""Strategies that are optimised without tighter bounds, and at a time."""
_N_CELLS = 128
"""Cells of fabrics that bounds are taken over, at most."""
_ROUNDING = 1e-12
_SAME = 1e-9
"""Relative difference of a bound from what it bounds that is rounding."""


@dataclass(frozen=True)
class Candidate:
    """A strategy with the best fabric for it.

    Parameters
    ----------
    index : in the space.
    strategy : itself.
    memory_bytes : of an NPU of the fullest stage.
    optimum : the fabric and its figures.
    objective_per_token, lower_bound_per_token : of the optimum.
    """

    index: int
    strategy: Strategy
    memory_bytes: float
    optimum: Optimum
    objective_per_token: float
    lower_bound_per_token: float


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and how much of its space it has proven.

    Parameters
    ----------
    best : candidates, the best first; at most as many as were asked for.
    n_candidates : strategies of the space; each is one of the four below.
    n_not_fitting : need more memory than an NPU has.
    n_cut : cannot be among the best: even their bound is not.
    n_solved : fabric optimised, with proof.
    n_unproven : neither; 0 where the result is certified.
    was_stopped : whether the user stopped it.
    least_bound_per_token : of those that are not proven; infinite without any.
    """

    best: tuple[Candidate, ...]
    n_candidates: int
    n_not_fitting: int
    n_cut: int
    n_solved: int
    n_unproven: int
    was_stopped: bool = False
    least_bound_per_token: float = np.inf

    @property
    def is_certified(self) -> bool:
        """Whether nothing that is left out can be better."""
        return self.n_unproven == 0


@dataclass(frozen=True)
class Search(Frozen):
    """A search for the best strategies.

    Parameters
    ----------
    space : of strategies.
    figures : their memory and step time.
    fabrics : to choose from.
    npu_memory_bytes : that an NPU has for training; infinite where nobody says.
    n_best : how many of the best are proven.
    n_most : strategies that are optimised at most.
    """

    space: Space
    figures: Figures
    fabrics: Fabrics = field(repr=False)
    npu_memory_bytes: float = np.inf
    n_best: int = 1
    n_most: int = 5000

    def run(self, progress: Progress | None = None) -> SearchResult:
        """The result; the user may stop it (Ctrl-C) and has what is proven by then."""
        run = _Run(self, progress)
        try:
            run.bound()
            run.probe()
            run.tighten()
            run.solve()
        except KeyboardInterrupt:
            return run.result(was_stopped=True)
        return run.result()

    @cached_property
    def tokens(self) -> Array:
        """Of a step of every strategy, (n,)."""
        batch = self.space.columns["global_batch"]
        return np.asarray(batch, float) * self.space.model.sequence_tokens

    def training(self, strategy: Strategy) -> ModelTraining:
        """A strategy on the fabric."""
        network, model = self.fabrics.network, self.space.model
        degrees = {
            axis: int(getattr(strategy, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")
        }
        batch = int(strategy.global_batch)
        tokens = batch * model.sequence_tokens
        workload = Workload(model.name, (), batch, covers=Covers.STEP, tokens_per_step=tokens)
        trained = self.figures.trained_of(strategy)
        return ModelTraining(workload, trained, placed_groups(network.topology, degrees), network)


class _Run:
    """One run of a search: bounds of all strategies, and optima of some."""

    def __init__(self, search: Search, progress: Progress | None) -> None:
        self.search, self.progress = search, progress
        n = search.space.n
        self.bounds = np.zeros(n)
        """Per token: what no fabric beats; infinite where a strategy does not fit."""
        self.does_not_fit = np.zeros(n, dtype=bool)
        self.reached = np.full(n, np.inf)
        """Per token: what a fabric that is allowed reaches."""
        self.optima: dict[int, Optimum] = {}

    def bound(self) -> None:
        """Memory, and the bound over all fabrics, of every strategy."""
        search, values = self.search, self._values_in(self.search.fabrics.whole)
        for start in range(0, search.space.n, 4 * N_BLOCK):
            rows = np.arange(start, min(start + 4 * N_BLOCK, search.space.n))
            fits = search.figures.memory_bytes(rows) <= search.npu_memory_bytes
            self.does_not_fit[rows[~fits]] = True
            self.bounds[rows[~fits]] = np.inf
            self.bounds[rows[fits]] = values(rows[fits])
            self._tell("strategies have a bound", int(rows[-1]) + 1, search.space.n)

    def probe(self, n: int = _N_PROBES) -> None:
        """Good strategies early: the best at a fabric that was the best for another one."""
        for _ in range(n):
            left = self._left()
            if not len(left):
                return
            reached = self.reached[left]
            guesses = reached if np.isfinite(reached).any() else self.bounds[left]
            chosen = int(left[np.argmin(guesses)])
            self._optimise(np.array([chosen]))
            optimum = self.optima[chosen]
            if optimum.status == PROVEN and not self.search.fabrics.is_given:
                at = optimum.bandwidth_bytes_per_s
                values = self._values_in(Cell(at, at, optimum.cost_usd))(left)
                values = values * (1 + 2 * _ROUNDING)
                self.reached[left] = np.minimum(self.reached[left], values)

    def tighten(self) -> None:
        """Bounds over ever smaller cells of fabrics, of the strategies that may still win."""
        left = self._left()
        cells = [(self.search.fabrics.whole, left)]
        while len(left) > _N_FEW and len(cells) < _N_CELLS and np.isfinite(self.threshold):
            parts = self._parts(cells)
            if len(parts) <= len(cells):
                return
            least = np.full(self.search.space.n, np.inf)
            cells = []
            for cell, rows in parts:
                values = self._values_in(cell)(rows)
                least[rows] = np.minimum(least[rows], values)
                cells.append((cell, rows[values < self.threshold]))
            self.bounds[left] = np.maximum(self.bounds[left], least[left])
            cells = [(cell, rows) for cell, rows in cells if len(rows)]
            if len(self.optima) < _N_FEW // 2:
                self.probe(1)
            left = self._left()
            self._tell("strategies that may still win", len(left), self.search.space.n)

    def _parts(self, cells: Sequence[tuple[Cell, Index]]) -> list[tuple[Cell, Index]]:
        """Smaller cells, each with the strategies that may win there."""
        near, left = self._best_bandwidth, np.zeros(self.search.space.n, dtype=bool)
        left[self._left()] = True
        parts = self.search.fabrics.parts
        return [(part, rows[left[rows]]) for cell, rows in cells for part in parts(cell, near)]

    def solve(self) -> None:
        """Optima, best bound first, until no bound is below the best that were found."""
        while len(left := self._left()) and len(self.optima) < self.search.n_most:
            order = np.argsort(self.bounds[left], kind="stable")[:_N_FEW]
            self._optimise(left[order])
            self._tell("fabrics optimised", len(self.optima), len(self.optima) + len(left))

    @property
    def threshold(self) -> float:
        """Objective per token that as many strategies reach as are asked for."""
        n = self.search.n_best
        if n > self.search.space.n:
            return np.inf
        return float(np.partition(self.reached, n - 1)[n - 1])

    def result(self, *, was_stopped: bool = False) -> SearchResult:
        """What is known by now."""
        left, n_failed = self._left(), 0
        known = [i for i in self.optima if np.isfinite(self._objective(i))]
        n_failed = sum(self.optima[i].status not in (PROVEN, INFEASIBLE) for i in self.optima)
        n_fit_not = int(self.does_not_fit.sum())
        n_solved = len(self.optima) - n_failed
        n_unproven = len(left) + n_failed
        n_cut = self.search.space.n - n_fit_not - n_solved - n_unproven
        ranked = sorted(known, key=lambda i: (self._objective(i), i))[: self.search.n_best]
        least = float(self.bounds[left].min(initial=np.inf))
        best = tuple(map(self._candidate, ranked))
        counts = self.search.space.n, n_fit_not, n_cut, n_solved, n_unproven
        return SearchResult(best, *counts, was_stopped, least)

    def _candidate(self, i: int) -> Candidate:
        optimum, tokens = self.optima[i], float(self.search.tokens[i])
        memory_bytes = float(self.search.figures.memory_bytes(np.array([i]))[0])
        values = optimum.objective / tokens, optimum.lower_bound / tokens
        return Candidate(i, self.search.space.strategy(i), memory_bytes, optimum, *values)

    def _objective(self, i: int) -> float:
        one = self.optima[i]
        return one.objective / self.search.tokens[i] if one.status == PROVEN else np.inf

    @property
    def _best_bandwidth(self) -> Array:
        best = min(self.optima, key=self._objective)
        return self.optima[best].bandwidth_bytes_per_s

    def _left(self) -> Index:
        """Strategies that may still be among the best."""
        threshold = self.threshold
        may_win = self.bounds < threshold * (1 - _ROUNDING)
        if np.isfinite(threshold):
            may_win |= self.reached <= threshold
        may_win[list(self.optima)] = False
        return np.flatnonzero(may_win)

    def _values_in(self, cell: Cell) -> Callable[[Index], Array]:
        """Objective per token that no fabric of a cell beats; infinite where it is too late."""
        return partial(self._values, self.search.figures.at(cell.upper), cell.usd)

    def _values(self, times: TimesAt, usd: float, rows: Index) -> Array:
        fabrics, time_s = self.search.fabrics, times.step_time_s(rows)
        value: Any = OBJECTIVES[fabrics.objective](time_s, usd)
        late = time_s > fabrics.limit_s * (1 + RULE_TOLERANCE)
        return np.where(late, np.inf, value / self.search.tokens[rows]) * (1 - _ROUNDING)

    def _optimise(self, rows: Index) -> None:
        search = self.search
        trainings = [search.training(search.space.strategy(int(i))) for i in rows]
        for i, optimum in zip(rows.tolist(), search.fabrics.optima(trainings), strict=True):
            self.optima[i] = optimum
            self.reached[i] = self._objective(i)
            if self.reached[i] < self.bounds[i] * (1 - _SAME):
                got = f"a strategy of {optimum.step_time_s:.9g} s beats its bound"
                raise SolverFailed(f"search: {got}: a fault of libra-planner")

    def _tell(self, what: str, done: int, total: int) -> None:
        if self.progress:
            self.progress(what, done, total)
