"""What a step takes at one vector, where no expression in bandwidth can say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from libra_planner.timing.expression import Array


@dataclass(frozen=True)
class BalancedStep:
    """A step whose collectives split their data over orders of the dimensions.

    Parameters
    ----------
    step_time_s : T with the best splits at one vector.
    aggregate_bound_s : T if every collective could use all bandwidth of its dimensions:
        no schedule of the collectives is faster.
    """

    step_time_s: float
    aggregate_bound_s: float


@dataclass(frozen=True)
class StepEvaluators:
    """What a step takes at one vector, where no expression in bandwidth can say it.

    Parameters
    ----------
    exact_step_time_s : T by the exact flow shop, of a vector of shape (n_dims,);
        ``None`` where the model has no chunks to simulate.
    balanced : T with balanced schedules; ``None`` where the plan does not ask for it.
    """

    exact_step_time_s: Callable[[Array], float] | None = None
    balanced: Callable[[Array], BalancedStep] | None = None
