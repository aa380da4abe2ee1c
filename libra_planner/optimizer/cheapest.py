"""Among equally fast designs the cheapest, then the lexicographically first (C9).

An interior-point solver ends in the middle of the set of optima and so buys bandwidth
that nobody uses. That set is simple: 1/x is strictly convex, so every form with a
positive multiplier has one value over all optima; what is left is to keep the
communication time, and that is a linear program once enough tangents are in place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.optimizer.linear import OPTIMAL, CutModel
from libra_planner.optimizer.program import Program, communication
from libra_planner.timing.expression import Array

_KEEP = 1e-10
"""Relative communication time that the choice may cost."""

_PRICED = 1e-7
"""Share of the time above which a form's multiplier counts as positive."""

_TIED = 1e-6
"""Relative spread of a bandwidth above which another design ties."""

_ROUNDS = 60


@dataclass(frozen=True)
class Choice:
    """The chosen vector, and whether no other ties with it in time and cost."""

    b: Array
    unique: bool


def cheapest(program: Program, model: CutModel, b: Array, form_weights: Array) -> Choice:
    """The cheapest, then lexicographically first, design as fast as b.

    Parameters
    ----------
    program, model : the program and its tangent model (cuts are added).
    b : an optimal design.
    form_weights : multipliers of the reciprocals in an optimal dual.

    Raises
    ------
    SolverFailed
        When the linear programs end without a solution.
    """
    face = _Face(program, model, b, form_weights)
    chosen = face.best(program.price)
    face.keep(program.price, chosen)
    spread = np.zeros(program.n_dims)
    for i, axis in enumerate(np.eye(program.n_dims)):
        if not face.is_fixed(i):
            highest = face.best(-axis)
            chosen = face.best(axis)
            spread[i] = highest[i] - chosen[i]
            face.keep(axis, chosen)
    unique = bool((spread <= _TIED * np.maximum(1.0, chosen)).all())
    return Choice(chosen, unique)


class _Face:
    """The set of optimal designs, cut down by one linear objective after the other."""

    def __init__(self, program: Program, model: CutModel, b: Array, form_weights: Array) -> None:
        self.program, self.model = program, model
        self.time = communication(program, b)
        n_w = len(program.objective)
        x = program.forms @ b
        self.priced = form_weights / x > _PRICED * max(self.time, 1e-300)
        fixed = np.hstack([program.forms[self.priced], np.zeros((int(self.priced.sum()), n_w))])
        same_time = np.concatenate([np.zeros(program.n_dims), program.objective])[None, :]
        value = x[self.priced]
        self.rows = np.vstack([same_time, fixed, -fixed])
        self.limits = np.concatenate([[self.time], value, -value])
        self.slack = np.concatenate([[self.time], value, value]) * _KEEP

    def is_fixed(self, i: int) -> bool:
        """Whether a form of dimension i alone has one value over all optima."""
        alone = (self.program.forms != 0).sum(axis=1) == 1
        return bool((self.priced & alone & (self.program.forms[:, i] != 0)).any())

    def keep(self, cost: Array, b: Array) -> None:
        """Restrict the set to designs no worse than b in ``cost``."""
        row = np.concatenate([cost, np.zeros(len(self.program.objective))])
        value = float(cost @ b)
        self.rows = np.vstack([self.rows, row])
        self.limits = np.append(self.limits, value)
        self.slack = np.append(self.slack, 1e-11 * max(abs(value), 1e-3))

    def best(self, cost: Array) -> Array:
        """A minimiser of cost.b over the set, tangents added until its time is exact."""
        full_cost = np.concatenate([cost, np.zeros(len(self.program.objective))])
        for _ in range(_ROUNDS):
            solution = self.model.minimize(full_cost, self.rows, self.limits + self.slack)
            if solution.status != OPTIMAL:
                raise SolverFailed(f"the tie-break program ended with status {solution.status}")
            b = np.maximum(solution.point[: self.program.n_dims], 0.0)
            x = self.program.forms @ b
            least = 1 / self.model.w_upper[: self.program.n_forms]
            if (x >= least * 0.5).all() and self._time(b) <= self.time * (1 + 3 * _KEEP):
                return b
            self.model.add_cuts(np.maximum(x, least))
        raise SolverFailed("the tie-break did not settle")

    def _time(self, b: Array) -> float:
        return communication(self.program, b) if self.program.n_forms else 0.0
