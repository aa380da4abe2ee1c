"""The best strategy of a plan's model, with the best fabric that its rules allow or a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.problem import Problem
from libra_planner.search.best import Search
from libra_planner.search.fabrics import Fabrics, GivenFabric, PlannedFabrics
from libra_planner.search.figures import Figures
from libra_planner.search.pricing import Lines
from libra_planner.search.space import Choices, strategy_space
from libra_planner.step.expression import Array
from libra_planner.step.model_training import ModelTraining
from libra_planner.workload.memory.habits import MEGATRON_MEMORY
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import OverlapFractions, PipelineSchedule

LEAST_BYTES_PER_S = 1e-3
"""Stands for none: a strategy that uses such a dimension takes longer than any other."""


def plan_search(
    problem: Problem,
    global_batches: Sequence[int] = (),
    *,
    choices: Choices | None = None,
    overlap: OverlapFractions | None = None,
    most_bytes: float = np.inf,
    bandwidth_bytes_per_s: Array | None = None,
    n_best: int = 1,
) -> Search:
    """The search for the best ways to train a plan's model.

    Schedule and data type are those of the plan's own strategy.

    Parameters
    ----------
    problem : a plan of the step of a whole model; its own degrees do not matter.
    global_batches : sequences of a step; the plan's by default.
    choices : fewer strategies.
    overlap : of all strategies; that of the plan's own by default.
    most_bytes : memory that a rule allows, if less than an NPU has.
    bandwidth_bytes_per_s : shape (n_dims,), of the only fabric: the fastest strategy on it is the
        best, whatever rules and objective say.
    n_best : strategies that are proven.

    Raises
    ------
    SpecError
        For a plan without the step of a whole model, and for an order of axes of its own.
    """
    training = _whole_step(problem)
    fabrics: Fabrics = PlannedFabrics(problem)
    if bandwidth_bytes_per_s is not None:
        given = np.maximum(bandwidth_bytes_per_s, LEAST_BYTES_PER_S)
        fabrics = GivenFabric(problem.network, problem.step.model, given)
    own = training.trained.strategy
    batches = global_batches or (int(own.global_batch),)
    common = replace(own, interleave=1, overlap=overlap or own.overlap)
    if own.schedule is not PipelineSchedule.ONE_F_ONE_B:
        choices = replace(choices or Choices(), interleave=(1,))
    topology, model = problem.topology, training.trained.model
    lines, use = Lines(problem.network, problem.step.model), training.memory
    habits = MEGATRON_MEMORY if use is None else use.habits
    choices = (choices or Choices()).that_save(model, common, habits)
    space = strategy_space(model, topology, batches, common, choices)
    room = None if use is None else use.npu_memory_bytes
    figures = Figures(space, training.trained, lines, habits)
    most = most_bytes if room is None else min(room, most_bytes)
    return Search(space, figures, fabrics, most, n_best)


def _whole_step(problem: Problem) -> ModelTraining:
    """The plan's training."""
    trainings = problem.step.trainings
    if len(trainings) != 1 or not isinstance(trainings[0], ModelTraining):
        got, expected = "got a plan without it", "expected the step of a whole model"
        fix = "write npu: {name: h100-sxm} without efficiency_fraction"
        raise SpecError(Fault(got, expected, fix, "npu"))
    training = trainings[0]
    if training.loop is not None:
        got, expected = "got a training_loop", "expected none: a search hides what overlap says"
        raise SpecError(Fault(got, expected, "remove it, or write degrees", "training_loop"))
    one = training.trained.strategy
    degrees = {axis: int(getattr(one, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
    if placed_groups(problem.topology, degrees) != training.groups:
        expected = "expected tp, cp, dp, pp: a search places groups in this order"
        raise SpecError(Fault("got an order of its own", expected, path="parallelism.order"))
    return training
