"""The best strategies of a space, certified: bounds first, then proofs, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.evaluation import OBJECTIVES
from libra_planner.frozen import Frozen
from libra_planner.problem import RULE_TOLERANCE
from libra_planner.search.fabrics import INFEASIBLE, PROVEN, Cell, Fabrics, Optimum
from libra_planner.search.figures import N_BLOCK, Figures, TimesAt
from libra_planner.search.space import Index, Space
from libra_planner.step.expression import Array, Mask
from libra_planner.step.model_training import ModelTraining
from libra_planner.units import format_time
from libra_planner.workload.operations import Covers, Workload
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Strategy

Progress = Callable[[str, int, int], None]

OPTIMISED, BEST_SO_FAR = "fabrics optimised", ", best so far "
"""What progress counts last, and what follows it."""
_N_TOLD = 4
"""Fabrics that are optimised without a word."""
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
    objective_per_token : of the optimum.
    """

    index: int
    strategy: Strategy
    memory_bytes: float
    optimum: Optimum
    objective_per_token: float


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and how much of its space it has proven.

    Parameters
    ----------
    best : candidates, the best first; at most as many as were asked for, each the best of its
        degrees and global batch.
    n_candidates : strategies of the space; each is one of the four below.
    n_not_fitting : need more memory than an NPU has.
    n_cut : cannot be among the best: even their bound is not, or is not the best of their degrees.
    n_solved : fabric optimised, with proof.
    n_unproven : neither; 0 where the result is certified.
    was_stopped : whether the user stopped it.
    """

    best: tuple[Candidate, ...]
    n_candidates: int
    n_not_fitting: int
    n_cut: int
    n_solved: int
    n_unproven: int
    was_stopped: bool = False

    @property
    def is_certified(self) -> bool:
        """Whether nothing that is left out can be better."""
        return self.n_unproven == 0

    def completed(self) -> SearchResult:
        """Itself.

        Raises
        ------
        KeyboardInterrupt
            Where the user stopped it.
        """
        if self.was_stopped:
            raise KeyboardInterrupt
        return self


@dataclass(frozen=True)
class Search(Frozen):
    """A search for the best strategies.

    Parameters
    ----------
    space : of strategies.
    figures : their memory and step time.
    fabrics : to choose from.
    npu_memory_bytes : that an NPU has for training; infinite where nobody says.
    n_best : how many of the best are proven, each with other degrees or another global batch.
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
        return SearchRun(self, progress).complete()

    def fits_with_zero(self, most: int) -> bool:
        """Whether a strategy of a stage of ZeRO, or a lower one, fits an NPU's memory.

        It ends with the first that does, those that need least before others.
        """
        columns = self.space.columns
        rows = np.flatnonzero(columns["zero"] <= most)
        order = np.lexsort((-columns["recompute"][rows], columns["microbatch"][rows]))
        blocks = np.split(rows[order], range(N_BLOCK, len(rows), N_BLOCK))
        return any(
            bool(np.any(self.figures.memory_bytes(some) <= self.npu_memory_bytes))
            for some in blocks
        )

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


class Known(NamedTuple):
    """What a search may begin with, by another one whose fabrics hold all of its own.

    Parameters
    ----------
    bounds : of the objective per token, which has to be the same, (n,); infinite where a strategy
        does not fit.
    does_not_fit : of every strategy, (n,).
    likely : strategies that are likely to be good.
    """

    bounds: Array
    does_not_fit: Mask
    likely: Index


class SearchRun:
    """One run of a search: bounds of all strategies, and optima of some."""

    def __init__(
        self, search: Search, progress: Progress | None = None, known: Known | None = None
    ) -> None:
        self.search, self.progress, self._before = search, progress, known
        n = search.space.n
        self.bounds = np.zeros(n) if known is None else known.bounds.copy()
        """Per token: what no fabric beats; infinite where a strategy does not fit."""
        self.does_not_fit = np.zeros(n, dtype=bool) if known is None else known.does_not_fit
        self.reached = np.full(n, np.inf)
        """Per token: what a fabric that is allowed reaches."""
        self.optima: dict[int, Optimum] = {}

    def complete(self) -> SearchResult:
        """All steps; Ctrl-C ends them early."""
        try:
            if self._before is not None:
                self._optimise(self._before.likely)
            self.bound()
            self.probe()
            self.tighten()
            self.solve()
        except KeyboardInterrupt:
            return self.result(was_stopped=True)
        return self.result()

    def bound(self) -> None:
        """Memory, and the bound over all fabrics, of every strategy that may win."""
        search, values = self.search, self._values_in(self.search.fabrics.whole)
        left = np.arange(search.space.n) if self._before is None else self._left()
        for start in range(0, len(left), 4 * N_BLOCK):
            rows = left[start : start + 4 * N_BLOCK]
            if self._before is None:
                fits = search.figures.memory_bytes(rows) <= search.npu_memory_bytes
                self.does_not_fit[rows[~fits]] = True
                self.bounds[rows[~fits]] = np.inf
                rows = rows[fits]
            self.bounds[rows] = np.maximum(self.bounds[rows], values(rows))
            done = min(start + 4 * N_BLOCK, len(left))
            self._tell("strategies have a bound", done, len(left))

    @property
    def known(self) -> Known:
        """Of all strategies by now, and the best."""
        bounds = self.bounds.copy()
        for i, one in self.optima.items():
            proven = one.lower_bound / self.search.tokens[i] if one.status == PROVEN else 0.0
            bounds[i] = max(bounds[i], np.inf if one.status == INFEASIBLE else proven)
        likely = min(self.optima, key=self._objective, default=None)
        return Known(bounds, self.does_not_fit, np.array([] if likely is None else [likely], int))

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
        while _is_worth_cutting(len(left), len(cells)) and np.isfinite(self.threshold):
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
        left = self._left()
        while len(left) and len(self.optima) < self.search.n_most:
            rows = left[np.argsort(self.bounds[left], kind="stable")[:_N_FEW]]
            for start in range(0, len(rows), _N_TOLD):
                n_others = len(left) - min(start + _N_TOLD, len(rows))
                self._optimise(rows[start : start + _N_TOLD])
                if n_others:
                    self._tell_optimised(n_others)
            left = self._left()
            self._tell_optimised(len(left))

    def _tell_optimised(self, n_left: int) -> None:
        """How many are optimised, and the best of them."""
        best = min(self.optima, key=self._objective)
        one, n = self.search.space.strategy(best), len(self.optima)
        found = ""
        if np.isfinite(self._objective(best)):
            degrees = " ".join(f"{axis} {getattr(one, axis)}" for axis in ("tp", "cp", "pp", "dp"))
            time = format_time(self.optima[best].step_time_s)
            found = f"{BEST_SO_FAR}{time} with {degrees}"
        self._tell(f"{OPTIMISED}{found}", n, n + n_left)

    @property
    def threshold(self) -> float:
        """Objective per token that as many strategies reach as are asked for."""
        return self._threshold(self._reached_by_kind)

    @property
    def _reached_by_kind(self) -> Array:
        """The least of the strategies with the same degrees and global batch."""
        return np.asarray(np.minimum.reduceat(self.reached, self.search.space.kind_starts))

    def _threshold(self, reached: Array) -> float:
        n = self.search.n_best
        return float(np.partition(reached, n - 1)[n - 1]) if n <= len(reached) else np.inf

    def result(self, *, was_stopped: bool = False) -> SearchResult:
        """What is known by now."""
        left, n_failed = self._left(), 0
        known = [i for i in self.optima if np.isfinite(self._objective(i))]
        n_failed = sum(self.optima[i].status not in (PROVEN, INFEASIBLE) for i in self.optima)
        n_fit_not = int(self.does_not_fit.sum())
        n_solved = len(self.optima) - n_failed
        n_unproven = len(left) + n_failed
        n_cut = self.search.space.n - n_fit_not - n_solved - n_unproven
        ranked = self._distinct(sorted(known, key=lambda i: (self._objective(i), i)))
        best = tuple(map(self._candidate, ranked))
        counts = self.search.space.n, n_fit_not, n_cut, n_solved, n_unproven
        return SearchResult(best, *counts, was_stopped)

    def _distinct(self, ranked: Sequence[int]) -> list[int]:
        """The best of each kind, as many as are asked for."""
        kinds = self.search.space.kind_of(np.array(ranked, np.int64)).tolist()
        first = dict(zip(reversed(kinds), reversed(ranked), strict=True))
        return [i for i, kind in zip(ranked, kinds, strict=True) if first[kind] == i][
            : self.search.n_best
        ]

    def _candidate(self, i: int) -> Candidate:
        optimum, tokens = self.optima[i], float(self.search.tokens[i])
        memory_bytes = float(self.search.figures.memory_bytes(np.array([i]))[0])
        strategy, per_token = self.search.space.strategy(i), optimum.objective / tokens
        return Candidate(i, strategy, memory_bytes, optimum, per_token)

    def _objective(self, i: int) -> float:
        one = self.optima[i]
        return one.objective / self.search.tokens[i] if one.status == PROVEN else np.inf

    @property
    def _best_bandwidth(self) -> Array:
        best = min(self.optima, key=self._objective)
        return self.optima[best].bandwidth_bytes_per_s

    def _left(self) -> Index:
        """Strategies that may still be among the best, and the best of their kind."""
        reached, sizes = self._reached_by_kind, self.search.space.kind_sizes
        limit = np.repeat(np.minimum(reached, self._threshold(reached)), sizes)
        may_win = self.bounds < limit * (1 - _ROUNDING)
        may_win |= (self.reached <= limit) & np.isfinite(limit)
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


def _is_worth_cutting(n_left: int, n_cells: int) -> bool:
    """Whether to cut cells takes less than to optimise the strategies that are left."""
    return n_left > max(_N_FEW, 2 * n_cells) and n_cells < _N_CELLS
