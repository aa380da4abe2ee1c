"""The program as it is published, in cvxpy's terms, solved by Clarabel.

minimise    time_weight * time . w + cost_weight * price . b
such that   upper b <= limit,  equal b == target,
            rows w + offsets <= 0,  w_f >= 1 / (forms_f b),  b, w >= 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from libra_planner.optimizer.programs.dimensionless import Index, Point, Program
from libra_planner.step.expression import Array

_TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}

_FAR = 1e4
"""Bound on bandwidths that nothing bounds and no traffic uses, in typical units."""

_ROOM = 1e-6
"""Room, relative, that the bounds of b leave in a row that cannot bind."""


@dataclass(frozen=True)
class ConvexModel:
    """One design's program in cvxpy's terms.

    ``reciprocal`` are the rows w_f >= 1 / (forms_f b), ``linear`` the others by name, those
    without a row left out.
    """

    problem: cp.Problem
    b: cp.Variable
    w: cp.Variable
    reciprocal: cp.Constraint
    linear: Mapping[str, cp.Constraint]


def convex_model(program: Program, i: int = 0) -> ConvexModel:
    """Design i's program for cvxpy."""
    b = cp.Variable(program.n_dims, nonneg=True)
    w = cp.Variable(len(program.time), nonneg=True)
    reciprocal = w[: program.n_forms] >= cp.inv_pos(program.forms[..., i] @ b)
    kept, endless = _binding_rules(program, i), np.flatnonzero(np.isinf(program.b_upper[:, i]))
    linear: dict[str, cp.Constraint] = {}
    if len(kept):
        linear["rules"] = program.upper[kept, :, i] @ b <= program.limit[kept, i]
    if len(program.equal):
        linear["equal"] = program.equal[..., i] @ b == program.target[:, i]
    if len(program.rows):
        linear["epigraph"] = program.rows[..., i] @ w + program.offsets[:, i] <= 0
    if len(endless):  # Without a bound there would be no analytic centre.
        linear["far"] = b[endless] <= _FAR
    time, cost = program.time[:, i] @ w, program.price[:, i] @ b
    objective = program.time_weight[i] * time + program.cost_weight[i] * cost
    problem = cp.Problem(cp.Minimize(objective), [reciprocal, *linear.values()])
    return ConvexModel(problem, b, w, reciprocal, linear)


def solve_convex(program: Program) -> Point:
    """Solutions to the solver's own accuracy, about 1e-6 in bandwidth; NaN where it finds none."""
    points = [_solution(program, i) for i in range(program.n)]
    return Point(
        *(
            np.stack([getattr(point, name) for point in points], axis=-1)
            for name in ("b", "dual", "equal_dual")
        )
    )


def _solution(program: Program, i: int) -> Point:
    model = convex_model(program, i)
    with warnings.catch_warnings():
        # An "inaccurate" end is judged by the certificate, not by the warning.
        warnings.simplefilter("ignore", UserWarning)
        try:
            model.problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
        except cp.SolverError:
            return _nothing(program)
    if model.problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return _nothing(program)
    rules = np.zeros(len(program.upper))
    rules[_binding_rules(program, i)] = _dual(model, "rules")
    return Point(
        b=np.maximum(np.asarray(model.b.value, dtype=np.float64), 0.0),
        dual=np.concatenate([_dual(model, "epigraph"), rules]),
        equal_dual=_dual(model, "equal"),
    )


def _nothing(program: Program) -> Point:
    n_rows = len(program.rows) + len(program.upper)
    return Point(*(np.full(n, np.nan) for n in (program.n_dims, n_rows, len(program.equal))))


def _binding_rules(program: Program, i: int) -> Index:
    """Rules that the bounds of b do not imply with room to spare.

    A bound of 1e9 GB/s beside one of 1 GB/s unsettles solvers.
    """
    positive = np.maximum(program.upper[..., i], 0.0)
    reach = np.where(positive > 0, positive * np.where(positive > 0, program.b_upper[:, i], 0), 0)
    return np.flatnonzero(~(reach.sum(axis=1) < program.limit[:, i] * (1 - _ROOM)))


def _dual(model: ConvexModel, name: str) -> Array:
    found = model.linear[name].dual_value if name in model.linear else ()
    return np.asarray(found, dtype=np.float64).reshape(-1)
