"""Searches for the best strategy: of a model on a named fabric, or of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training.clusters import Nics, nics_of, run_fabric
from libra_planner.inputs.training.named_clusters import named_nics
from libra_planner.inputs.training.planned import PlannedRun, planned_run, tapered
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.problem import Problem
from libra_planner.search.best import Candidate, Progress, Search, SearchResult
from libra_planner.search.fabrics import GivenFabric, PlannedFabrics
from libra_planner.search.figures import Figures
from libra_planner.search.pricing import Lines
from libra_planner.search.space import Choices, strategy_space
from libra_planner.step.model_training import ModelTraining
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import PipelineSchedule

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


def best_strategy(
    problem: Problem,
    global_batches: Sequence[int] = (),
    *,
    choices: Choices | None = None,
    n_best: int = 1,
    progress: Progress | None = None,
) -> SearchResult:
    """The best ways to train a plan's model, each with the best fabric that its rules allow.

    Overlap, schedule and data type are those of the plan's own strategy.

    Parameters
    ----------
    problem : a plan of the step of a whole model; its own strategy does not matter.
    global_batches : sequences of a step; the plan's by default.
    choices : fewer strategies.
    n_best : strategies that are proven.
    progress : is told what is done.

    Raises
    ------
    SpecError
        For a plan without the step of a whole model, and for an order of axes of its own.
    """
    fabrics, training = PlannedFabrics(problem), _whole_step(problem)
    own = training.trained.strategy
    batches = global_batches or (int(own.global_batch),)
    common = replace(own, interleave=1)
    if own.schedule is not PipelineSchedule.ONE_F_ONE_B:
        choices = replace(choices or Choices(), interleave=(1,))
    topology, model = problem.topology, training.trained.model
    space = strategy_space(model, topology, batches, common, choices)
    lines, use = Lines(problem.network, problem.step.model), training.memory
    habits = {} if use is None else {"habits": use.habits}
    room = None if use is None else use.npu_memory_bytes
    figures = Figures(space, training.trained, lines, **habits)
    most = float("inf") if room is None else room
    return Search(space, figures, fabrics, most, n_best).run(progress)


def _whole_step(problem: Problem) -> ModelTraining:
    """The plan's training."""
    trainings = problem.step.trainings
    if len(trainings) != 1 or not isinstance(trainings[0], ModelTraining):
        got, expected = "got a plan without it", "expected the step of a whole model"
        fix = "write npu: {name: h100-sxm} without efficiency_fraction"
        raise SpecError(Fault(got, expected, fix, "npu"))
    training = trainings[0]
    one = training.trained.strategy
    degrees = {axis: int(getattr(one, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
    if placed_groups(problem.topology, degrees) != training.groups:
        expected = "expected tp, cp, dp, pp: a search places groups in this order"
        raise SpecError(Fault("got an order of its own", expected, path="parallelism.order"))
    return training
