"""What a step takes if tokens go to experts the other way: once per node, or a copy each (C16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.step.pricing import in_domain
from libra_planner.units import format_time
from libra_planner.workload.volumes import EXPERT, NODE

LEAST_CHANGE = 0.05
"""Part of a step by which that has to change to be worth a note."""
_OTHERWISE = {
    EXPERT: "a token goes once to each node here (as DeepEP); if a copy goes to each expert",
    NODE: "a copy of a token goes to each expert here; if it goes once to each node (as DeepEP)",
}
"""What the plan does, and the other way."""


def copies_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """The step of the same strategy and bandwidth if tokens go the other way, where that matters.

    Of a whole model's step alone; ``bandwidth_bytes_per_s`` per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> degrees = "parallelism={tp: 1, pp: 16, ep: 64, dp: 128, recompute: full}"
    >>> given = ["workload=deepseek-v3", "global_batch=15360", degrees]
    >>> plan = lp.load_plan("0e_rails_2to1", given)
    >>> [note.partition(";")[0] for note in copies_notes(plan, [450e9, 50e9, 25e9])]
    ['a token goes once to each node here (as DeepEP)']
    """
    training = problem.step.whole_training
    group = None if training is None else training.groups["ep"]
    if training is None or group is None or training.trained.model.experts is None:
        return
    if in_domain(group).n_npus == group.n_npus:
        return
    habits, vector = training.trained.habits, np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    other = EXPERT if habits.sends_once_per_node else NODE
    trained = replace(training.trained, habits=habits.with_copies(other))
    time = replace(training, trained=trained).step_time(problem.step.model)
    step_s, other_s = float(problem.step_time.seconds(vector)), float(time.seconds(vector))
    if abs(change := other_s / step_s - 1) >= LEAST_CHANGE:
        yield (
            f"{_OTHERWISE[other]}, this strategy's step takes {format_time(other_s)} "
            f"({change:+.0%}): "
            f"exchanges: {{token_copies: {other}}}"
        )


def copies_assumption(problem: Problem) -> Iterator[str]:
    """How tokens go to experts, of a whole model's step that has any to send."""
    from libra_planner.plan.steps.strategies import copies_text  # It loads what reads plans.

    training = problem.step.whole_training
    if training is None or training.trained.model.experts is None:
        return
    if training.trained.strategy.ep > 1:
        yield copies_text(training.trained.habits)
