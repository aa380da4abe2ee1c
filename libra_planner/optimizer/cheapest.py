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

_KEEP = 1e-9
"""Relative communication time, or cost, that one step of the choice may give away."""

_PRICED = 1e-7
"""Share of the time above which a form's multiplier counts as positive."""

_TIED = 1e-6
"""Relative spread of a bandwidth above which another design ties."""

_ROUNDS = 40

_BETWEEN = (0.0, 0.25, 0.5, 0.75)
"""Where new tangents go between a point that is too slow and the known optimum (log scale)."""


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
    if all(face.is_fixed(i) for i in range(program.n_dims)):
        return Choice(b, unique=True)
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
    # b is the more accurate of the two wherever there was nothing to choose.
    return Choice(b if np.allclose(chosen, b, rtol=_TIED, atol=_TIED) else chosen, unique)


class _Face:
    """The set of optimal designs, cut down by one linear objective after the other."""

    def __init__(self, program: Program, model: CutModel, b: Array, form_weights: Array) -> None:
        self.program, self.model, self.b = program, model, b
        self.time = self._time(b)
        x = program.forms @ b
        self.priced = form_weights / x > _PRICED * self.time
        self.allowed_time = self.time * (1 + _KEEP)
        self.costs = np.empty((0, program.n_dims))
        self.allowed_costs = np.empty(0)

    def is_fixed(self, i: int) -> bool:
        """Whether a form of dimension i alone has one value over all optima."""
        alone = (self.program.forms != 0).sum(axis=1) == 1
        return bool((self.priced & alone & (self.program.forms[:, i] != 0)).any())

    def keep(self, cost: Array, b: Array) -> None:
        """Restrict the set to designs no worse than b in ``cost``."""
        value = float(cost @ b)
        self.costs = np.vstack([self.costs, cost])
        self.allowed_costs = np.append(self.allowed_costs, value + _KEEP * max(abs(value), 1e-3))
        self.allowed_time = max(self.allowed_time, self._time(b)) + _KEEP * self.time

    def best(self, cost: Array) -> Array:
        """A minimiser of cost.b over the set, tangents added until its time is exact."""
        n_forms, n_dims = self.program.n_forms, self.program.n_dims
        least = 1 / self.model.w_upper[:n_forms]
        known = self.program.forms @ self.b
        for _ in range(_ROUNDS):
            solution = self.model.minimize(self._wide(cost[None])[0], *self._rows(), *self._fixed())
            if solution.status != OPTIMAL:
                raise SolverFailed(f"the tie-break program ended with status {solution.status}")
            b = np.maximum(solution.point[:n_dims], 0.0)
            x = self.program.forms @ b
            if (x >= least * 0.5).all() and self._time(b) <= self.allowed_time + _KEEP * self.time:
                return b
            for t in _BETWEEN:
                self.model.add_cuts(np.maximum(x, least) ** (1 - t) * known**t)
        raise SolverFailed("the tie-break did not settle")

    def _rows(self) -> tuple[Array, Array]:
        same_time = np.concatenate([np.zeros(self.program.n_dims), self.program.objective])
        rows = np.vstack([same_time, self._wide(self.costs)])
        return rows, np.concatenate([[self.allowed_time], self.allowed_costs])

    def _fixed(self) -> tuple[Array, Array]:
        forms = self.program.forms[self.priced]
        return self._wide(forms), forms @ self.b

    def _wide(self, rows: Array) -> Array:
        """Rows over b as rows over (b, w)."""
        return np.hstack([rows, np.zeros((len(rows), len(self.program.objective)))])

    def _time(self, b: Array) -> float:
        with np.errstate(divide="ignore"):
            return communication(self.program, b)
