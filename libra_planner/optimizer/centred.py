"""A program in units close to its own optimum, where solvers are accurate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from libra_planner.optimizer.convex import ConvexModel, ConvexPoint, convex_model
from libra_planner.optimizer.program import Program, Weights, scaled_program
from libra_planner.optimizer.weighted import interior
from libra_planner.problem import Problem
from libra_planner.step.expression import Array

_CENTRINGS = 4
_FARTHEST = 1e-12
"""Least bandwidth in typical units that the program is centred at."""

_FAR_OFF = 3.0
"""Log of a bandwidth in typical units beyond which the program is centred anew."""

Weighting: TypeAlias = Callable[[Program], Weights]
"""What is minimised while centring; it may depend on the program's units."""


@dataclass(frozen=True)
class Centred:
    """A program, its compiled form, and its optimum under the weights it was centred with."""

    program: Program
    model: ConvexModel
    point: ConvexPoint
    weights: Weights


def centred(
    problem: Problem,
    typical: Array,
    upper: Array,
    weighting: Weighting,
    *,
    limit_s: float = np.inf,
) -> Centred:
    """The program in units of its optimum, within a factor e^3.

    A typical design may be far off where one group's traffic leaves most of a budget to
    another; the solvers are accurate where b and w are near 1.

    Parameters
    ----------
    typical, upper : bytes/s, shape (n_dims,).
    weighting : what is minimised.
    limit_s : upper bound on step time.
    """
    for attempt in range(_CENTRINGS):
        program = scaled_program(problem, typical, upper, limit_s=limit_s)
        model, weights = convex_model(program), weighting(program)
        point = interior(program, weights, model)
        # A dimension with a form of its own is never zero at the optimum.
        own = program.forms[(program.forms > 0).sum(axis=1) == 1].any(axis=0)
        moved = np.maximum(point.b, _FARTHEST)
        far = own & (np.abs(np.log(moved)) > _FAR_OFF)
        if not far.any() or attempt == _CENTRINGS - 1:
            break
        typical = typical * np.where(far, moved, 1.0)
    return Centred(program, model, point, weights)
