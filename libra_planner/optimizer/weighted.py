"""The least weighted sum of time and cost over a program's designs, with a proven bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.optimizer.convex import ConvexModel, ConvexPoint, solve_convex
from libra_planner.optimizer.feasibility import meets_rules, restored
from libra_planner.optimizer.linear import CutModel
from libra_planner.optimizer.polish import polish
from libra_planner.optimizer.program import Program, Weights, communication, size_of, weighted
from libra_planner.step.expression import Array

_GOOD_GAP = 1e-9
_ROUNDS = 40
_CUT_SPREAD = (0.0, 1e-4, 1e-2, 0.3)
_TIED = 1e-12
"""Relative difference of values that is rounding: the later Newton step is the better one."""

_LATE = 5e-10
"""Share of the step time by which a point may miss the time limit: half of C9's tolerance."""


@dataclass(frozen=True)
class Optimum:
    """The best design of one weighting.

    Parameters
    ----------
    b : shape (n_dims,), in the program's units.
    value : the weighted sum there.
    bound : proven: no design has less.
    form_weights : multipliers of the reciprocals in an optimal dual, shape (n_forms,).
    model : the tangent model that proves the bound.
    """

    b: Array
    value: float
    bound: float
    form_weights: Array
    model: CutModel


def interior(
    program: Program, weights: Weights, model: ConvexModel, *, polished: bool = True
) -> ConvexPoint:
    """The interior-point solution, feasible; after Newton steps unless told otherwise."""
    point = solve_convex(model, weights)
    steps = polish(program, weights, point) if polished else []
    return _best_of(program, weights, [point, *steps])


def polished(program: Program, weights: Weights, start: ConvexPoint) -> ConvexPoint:
    """The point after Newton steps, feasible."""
    return _best_of(program, weights, [start, *polish(program, weights, start)])


def certified(
    program: Program, weights: Weights, start: Array, *, good_gap: float = _GOOD_GAP
) -> Optimum:
    """Best b from a good start, and a proven bound on the weighted sum.

    Tangents are added, and Newton steps taken from the vertices of the linear program,
    until the gap is small.
    """
    best = start
    model = CutModel(program, weights, weighted(program, weights, best))
    if not program.n_forms and not weights.cost:
        return Optimum(best, 0.0, 0.0, np.empty(0), model)
    # Time and, at prices of 0 or more, cost are never negative.
    bound, form_weights = 0.0 if (weights.cost * program.price >= 0).all() else -np.inf, np.empty(0)
    for _ in range(_ROUNDS):
        for spread in _CUT_SPREAD:
            model.add_cuts(program.forms @ best * (1 - spread))
            model.add_cuts(program.forms @ best * (1 + spread))
        value, vertex = model.lower_bound()
        bound = max(bound, value)
        form_weights = model.form_weights(vertex.upper_dual)
        if model.incumbent - bound <= good_gap * size_of(model.incumbent):
            break
        candidate = restored(program, vertex.point[: program.n_dims])
        moved = ConvexPoint(candidate, form_weights)
        points = [ConvexPoint(best, form_weights), *polish(program, weights, moved)]
        best = _best_of(program, weights, points).b
        model.incumbent = weighted(program, weights, best)
        model.add_cuts(np.maximum(program.forms @ candidate, 1e-9))
    return Optimum(best, model.incumbent, bound, form_weights, model)


def usable(program: Program, b: Array) -> bool:
    """Whether b meets rules and time limit, with bandwidth wherever there is traffic."""
    if not meets_rules(program, b) or not (program.forms @ b > 0).all():
        return False
    if np.isinf(program.time_limit):
        return True
    constant = program.constant_s / program.time_unit_s
    late = communication(program, b) - program.time_limit
    return late <= _LATE * (constant + program.time_limit)


def _best_of(program: Program, weights: Weights, points: list[ConvexPoint]) -> ConvexPoint:
    """The best of the points that are usable, made feasible; the last of those that tie."""
    feasible = [ConvexPoint(restored(program, p.b), p.form_weights) for p in points]
    candidates = [p for p in feasible if usable(program, p.b)] or feasible
    values = [weighted(program, weights, p.b) for p in candidates]
    least = min(values)
    return [p for p, v in zip(candidates, values, strict=True) if v <= least * (1 + _TIED)][-1]
