"""Searches in Python: the command ``search``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from libra_planner import allowed
from libra_planner.allowed import Each, Kind, Whole, is_whole
from libra_planner.api.given import (
    opened_again,
    own_overrides_of,
    plan_given,
    refuse_changed,
    refuse_unknown,
    source_of,
    takes,
)
from libra_planner.api.shown import (
    Shown,
    draw_frontier,
    frontier_words,
    label_times,
    new_axes,
    title,
)
from libra_planner.api.training import OF_RUNS, argument_fault
from libra_planner.errors import Fault, SpecError
from libra_planner.frozen import Rows
from libra_planner.inputs.plans import certain_words, open_plan
from libra_planner.inputs.training.clusters import FEWEST_NPUS, Nics, nics_of, run_fabric
from libra_planner.inputs.training.named_clusters import named_nics
from libra_planner.inputs.training.planned import PlannedRun, planned_run, tapered
from libra_planner.inputs.training.rows import TrainingRun, asked_run
from libra_planner.problem import Problem
from libra_planner.search import frontier as frontiers
from libra_planner.search.best import Candidate, Progress, Search, SearchResult
from libra_planner.search.fabrics import GivenFabric
from libra_planner.search.figures import Figures
from libra_planner.search.pricing import Lines
from libra_planner.search.space import Choices, strategy_space
from libra_planner.units import format_time
from libra_planner.views.cells import Block
from libra_planner.views.times.frontier import frontier_blocks, frontier_payload
from libra_planner.views.times.search import (
    plan_blocks,
    plan_payload,
    search_blocks,
    search_payload,
)

OF_SEARCH = (
    *("model", "npu", "gpus", "seq", "dtype"),
    *("library", "fabric", "taper", "nodes_per_leaf"),
)


OF_SEARCHES: dict[str, Kind] = {
    **{name: OF_RUNS[name] for name in OF_SEARCH if name in OF_RUNS},
    "global_batch": Each(Whole(*allowed.RUN_COUNT)),
    "n_best": Whole(*allowed.STRATEGIES),
    "n_points": Whole(*allowed.POINTS),
}
"""What arguments of searches take."""


@dataclass(frozen=True, repr=False)
class Found(Rows[dict[str, Any]], Shown):
    """The best strategies of a search, the best first: a list of :attr:`best`.

    Parameters
    ----------
    result : of the search, with how much of it is proven.
    base : the plan; of a search without one what all strategies have in common.
    runs : of a search without a plan, the run with each strategy.
    certain : the best strategy that certainly fits the memory, where the first may not; in words.

    Examples
    --------
    >>> found = search(model="llama3-8b", npu="h100-sxm", gpus=16, global_batch=64, n_best=2)
    >>> len(found), found[0]["dp"], [one["cp"] for one in found]
    (2, 8, [2, 1])
    """

    result: SearchResult
    base: Problem | PlannedRun
    runs: tuple[PlannedRun, ...] = ()
    certain: str = ""

    table = "best"

    @property
    def is_certified(self) -> bool:
        """Whether no other strategy of the space is better."""
        return self.result.is_certified

    @cached_property
    def best(self) -> list[dict[str, Any]]:
        """Degrees and figures of every strategy, by the keys of ``search --json``."""
        found: list[dict[str, Any]] = self.to_dict()["best"]
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The same: what loops, ``len`` and indices are of."""
        return self.best

    @property
    def parallelism(self) -> dict[str, Any]:
        """The best strategy as a plan's key ``parallelism`` has it."""
        if not self.result.best:
            raise SpecError(Fault("got no strategy that fits", "expected one", "take more NPUs"))
        return dict(self.result.best[0].strategy.degrees)

    def headline(self) -> str:
        """It in one line."""
        found = self.result
        if not found.best:
            return f"none of {found.n_candidates:,} strategies fits"
        first = self.best[0]
        degrees = " ".join(
            f"{x} {first[x]}" for x in ("tp", "cp", "pp", "dp", "ep") if first[x] > 1
        )
        degrees += f" ZeRO {first['zero']}" if first["zero"] else ""
        proven = "proven best" if found.is_certified else "not proven"
        step = format_time(first["step_time_s"])
        return f"{degrees or 'one NPU'}, step {step}; {proven} of {found.n_candidates:,} strategies"

    def blocks(self) -> Iterator[Block]:
        """What ``search`` prints."""
        if isinstance(self.base, Problem):
            yield from plan_blocks(self.base, self.result, self.certain)
        else:
            yield from search_blocks(self.base, self.result, list(self.runs), self.certain)

    def to_dict(self) -> dict[str, Any]:
        """What ``search --json`` prints."""
        if isinstance(self.base, Problem):
            return plan_payload(self.base, self.result)
        return search_payload(self.base, self.result, list(self.runs))

    def plot(self, axes: Any = None) -> Any:
        """Step time of every strategy; the matplotlib axes."""
        axes = new_axes(axes, figsize=(6, 3.2))
        names = [
            "\n".join(f"{x} {one[x]}" for x in ("tp", "cp", "pp", "dp", "ep") if one[x] > 1)
            for one in self.best
        ]
        times = [one["step_time_s"] for one in self.best]
        label_times(axes, axes.bar(range(len(names)), times), times)
        axes.set_xticks(range(len(names)), names)
        axes.set(ylabel="step time, s", title=title(self.headline()))
        return axes


@dataclass(frozen=True, repr=False)
class StrategyFrontier(Rows[dict[str, Any]], Shown):
    """The fastest strategy and network at each cost, cheapest first: a list of :attr:`rows`.

    Parameters
    ----------
    plan : that was searched.
    found : the points, each a strategy with its best network, and how much of it is proven.
    """

    plan: Problem
    found: frontiers.StrategyFrontier

    table = "points"

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Degrees and figures of every point, by the keys of ``search --pareto --json``."""
        found: list[dict[str, Any]] = self.to_dict()["points"]
        return found

    def headline(self) -> str:
        """It in one line."""
        optima = [one.optimum for one in self.found.points]
        if not optima:
            return "no strategy fits"
        return frontier_words(optima)

    def blocks(self) -> Iterator[Block]:
        """What ``search --pareto`` prints."""
        yield from frontier_blocks(self.plan, self.found)

    def to_dict(self) -> dict[str, Any]:
        """What ``search --pareto --json`` prints."""
        return frontier_payload(self.plan, self.found)

    def plot(self, axes: Any = None) -> Any:
        """Step time over cost; the matplotlib axes."""
        return draw_frontier([one.optimum for one in self.found.points], self.plan, axes)


@takes(OF_SEARCHES)
def search_pareto(
    plan: Problem, n_points: int = 25, global_batch: int | Sequence[int] = ()
) -> StrategyFrontier:
    """The frontier over strategies; :meth:`libra_planner.api.plans.Plan.search_pareto`."""
    plan_given(plan, "search_pareto")
    settings = (*own_overrides_of(plan), "objective=performance")
    opened = open_plan(source_of(plan), settings, parts=plan.prices.catalogue)
    batches = _batches(global_batch)
    base = opened.base
    refuse_changed(plan, replace(base, objective=plan.objective), "search")
    found = frontiers.strategy_frontier(opened.search(batches), base, n_points)
    if found.was_stopped:
        raise KeyboardInterrupt
    return StrategyFrontier(base, found)


def _batches(asked: int | Sequence[int]) -> tuple[int, ...]:
    """Sequences of a step, each of which may be best."""
    return (int(asked),) if is_whole(asked) else tuple(map(int, asked))  # type: ignore[arg-type]


@takes(OF_SEARCHES)
def search(
    plan: Problem | None = None,
    *,
    global_batch: int | Sequence[int] = (),
    n_best: int = 5,
    **model: Any,
) -> Found:
    """The best parallelism of a plan's model, or of a model on NPUs.

    Parameters
    ----------
    plan : each strategy then has the best bandwidth for it.
    global_batch : sequences of a step, one number or several; of a plan its own by default.
    n_best : strategies that are ranked and proven.
    model : without a plan: ``model``, ``npu``, ``gpus``, and ``seq``, ``dtype``, ``library``,
        ``fabric``, ``taper``, ``nodes_per_leaf``.

    Raises
    ------
    SpecError
        For what is missing or cannot be searched.
    KeyboardInterrupt
        Where the user stops it: a part of a search is no answer.

    Examples
    --------
    >>> search(model="llama3-8b", npu="h100-sxm", gpus=16, global_batch=64, n_best=2)
    <Found: ... proven best of ... strategies>
    """
    batches = _batches(global_batch)
    if plan is not None:
        plan_given(plan, "search")
        if model:
            raise TypeError(f"search: got a plan and {', '.join(model)}, expected one of them")
        opened = opened_again(plan, "search")
        result = opened.search(batches, n_best=n_best).run(None).completed()
        return Found(result, opened.base, certain=opened.certain_words(result, batches))
    refuse_unknown("search", model, OF_SEARCH)
    missing = [name for name in ("model", "npu", "gpus") if model.get(name) is None]
    missing += [] if batches else ["global_batch"]
    if missing:
        fix = 'write e.g. lp.search(model="llama3-70b", npu="h100-sxm", gpus=64, global_batch=256)'
        raise SpecError(Fault(f"got no {', '.join(missing)}", "", fix, "search"))
    try:
        found = searched_run(asked_run(model), batches, n_best=n_best)
    except SpecError as error:
        raise type(error)(*map(argument_fault, error.faults)) from None
    found.result.completed()
    return found.told


@dataclass(frozen=True)
class RunSearch:
    """A search for the best ways to train a model on given NPUs and NICs.

    Parameters
    ----------
    base : the run, whose strategy does not matter.
    search : what was searched.
    result : what was found.
    """

    base: PlannedRun
    search: Search
    result: SearchResult

    @property
    def told(self) -> Found:
        """What is told of it."""
        best = self.result.best
        room = self.base.npu_memory_bytes
        certain = certain_words(self.search, best[0], room) if best else ""
        return Found(self.result, self.base, tuple(map(self.planned, best)), certain)

    def planned(self, found: Candidate) -> PlannedRun:
        """The run with a strategy that was found."""
        trained = self.search.figures.trained_of(found.strategy)
        return replace(self.base, trained=trained)


def searched_run(
    run: TrainingRun,
    global_batches: Sequence[int],
    *,
    n_best: int = 5,
    progress: Progress | None = None,
) -> RunSearch:
    """The best strategies of a run: all degrees, batches and memory savings that fit.

    Parameters
    ----------
    run : model, NPUs, data type, library and fabric; degrees do not count.
    global_batches : sequences of a step, each of which may be best.
    n_best : strategies that are ranked.
    progress : is told what is done.

    Raises
    ------
    SpecError
        For what is missing or not known.
    """
    if not run.gpus:
        raise SpecError(Fault("got no number of NPUs", "expected how many", path="gpus"))
    small = replace(run, gpus=FEWEST_NPUS, dp=FEWEST_NPUS, global_batch=FEWEST_NPUS, microbatch=1)
    small = replace(small, taper=None, nodes_per_leaf=None)
    alone = planned_run(small, is_row=False)
    nics = tapered(_nics(run, alone.npu_name), run)
    fabric = run_fabric(alone.npu_name, alone.npu, run.gpus, nics)
    base = replace(alone, fabric=fabric, notes=(*run_notes(alone), *fabric.notes))
    common = replace(alone.strategy, overlap=alone.library.overlap)
    choices = Choices(splits_sequence=alone.library.sequence_parallel)
    choices = choices.that_save(alone.model, common, alone.library.memory)
    topology = fabric.network.topology
    space = strategy_space(alone.model, topology, global_batches, common, choices)
    lines = Lines(fabric.network, fabric.model)
    figures = Figures(space, alone.trained, lines, alone.library.memory)
    given = GivenFabric(fabric.network, fabric.model, fabric.bandwidth_bytes_per_s)
    search = Search(space, figures, given, base.npu_memory_bytes, n_best)
    return RunSearch(base, search, search.run(progress))


def run_notes(run: PlannedRun) -> tuple[str, ...]:
    """What was assumed of a run that its strategy does not decide."""
    return tuple(note for note in run.notes if note.startswith("sequences of"))


def _nics(run: TrainingRun, npu_name: str) -> Nics:
    return named_nics(run.fabric) if run.fabric else nics_of(npu_name)
