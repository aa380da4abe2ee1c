"""The set of optimal designs when maxima contain sums or other maxima (see ``face``)."""

from __future__ import annotations

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.optimizer.linear import OPTIMAL, UNBOUNDED, CutModel
from libra_planner.optimizer.program import Program, communication, size_of
from libra_planner.step.expression import Array, Mask

_KEEP = 1e-9
"""Relative communication time, or cost, that one step of the choice may give away."""

_ROUNDS = 40

_BETWEEN = (0.0, 0.25, 0.5, 0.75)
"""Where new tangents go between a point that is too slow and the known optimum (log scale)."""


class NestedFace:
    """Designs as fast as b: the same communication time, kept by tangent cuts."""

    def __init__(self, program: Program, model: CutModel, b: Array, priced: Mask) -> None:
        self.program, self.model, self.b = program, model, b
        self.time = self._time(b)
        self.priced = priced
        self.kept = _KEEP * size_of(self.time)
        self.allowed_time = self.time + self.kept
        self.costs = np.empty((0, program.n_dims))
        self.allowed_costs = np.empty(0)

    def keep(self, cost: Array, b: Array) -> None:
        """Restrict the set to designs no worse than b in ``cost``."""
        value = float(cost @ b)
        self.costs = np.vstack([self.costs, cost])
        self.allowed_costs = np.append(self.allowed_costs, value + _KEEP * max(abs(value), 1e-3))
        self.allowed_time = max(self.allowed_time, self._time(b)) + self.kept

    def best(self, cost: Array) -> Array:
        """A minimiser of cost.b over the set, tangents added until its time is exact."""
        n_forms, n_dims = self.program.n_forms, self.program.n_dims
        least = 1 / self.model.w_upper[:n_forms]
        known = self.program.forms @ self.b
        for _ in range(_ROUNDS):
            solution = self.model.minimize(self._wide(cost[None])[0], *self._rows(), *self._fixed())
            if solution.status == UNBOUNDED:
                return np.where(cost < 0, np.inf, self.b)
            if solution.status != OPTIMAL:
                raise SolverFailed(f"the tie-break program ended with status {solution.status}")
            b = np.maximum(solution.point[:n_dims], 0.0)
            x = self.program.forms @ b
            if (x >= least * 0.5).all() and self._time(b) <= self.allowed_time + self.kept:
                return b
            for t in _BETWEEN:
                self.model.add_cuts(np.maximum(x, least) ** (1 - t) * known**t)
        raise SolverFailed("the tie-break did not settle")

    def _rows(self) -> tuple[Array, Array]:
        same_time = np.concatenate([np.zeros(self.program.n_dims), self.program.time])
        rows = np.vstack([same_time, self._wide(self.costs)])
        return rows, np.concatenate([[self.allowed_time], self.allowed_costs])

    def _fixed(self) -> tuple[Array, Array]:
        forms = self.program.forms[self.priced]
        return self._wide(forms), forms @ self.b

    def _wide(self, rows: Array) -> Array:
        """Rows over b as rows over (b, w)."""
        return np.hstack([rows, np.zeros((len(rows), len(self.program.time)))])

    def _time(self, b: Array) -> float:
        return communication(self.program, b)
