"""Searches for the best strategy of a model on a named fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training.clusters import Nics, nics_of, run_fabric
from libra_planner.inputs.training.named_clusters import named_nics
from libra_planner.inputs.training.planned import PlannedRun, planned_run, tapered
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.search.best import Candidate, Progress, Search, SearchResult
from libra_planner.search.fabrics import GivenFabric
from libra_planner.search.figures import Figures
from libra_planner.search.plans import best_strategy
from libra_planner.search.pricing import Lines
from libra_planner.search.space import Choices, strategy_space

__all__ = ["RunSearch", "best_strategy", "run_notes", "searched_run"]

_FEWEST = 2
"""NPUs that exchange anything."""


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
    if run.gpus < _FEWEST:
        raise SpecError(Fault(f"got {run.gpus} NPU", "expected two or more", path="gpus"))
    small = replace(run, gpus=_FEWEST, dp=_FEWEST, global_batch=_FEWEST, microbatch=1)
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
