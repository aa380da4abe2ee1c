"""The set of optimal designs when no maximum contains a sum or another maximum.

All of ``no_overlap`` is of this kind. Every maximum has one length over all optima: some
transfer in it has a positive multiplier, hence a fixed time, or else its constant does.
So a design is optimal exactly when every form keeps up with the maxima it is in.
"""

from __future__ import annotations

import numpy as np

from libra_planner.errors import SolverFailed
from libra_planner.optimizer.linear import OPTIMAL, UNBOUNDED, solve_lp
from libra_planner.optimizer.program import Program, w_values
from libra_planner.step.expression import Array, Mask

_KEEP = 1e-11
"""Relative cost, or bandwidth, that one step of the choice may give away."""

_SLACKS = (0.0, 1e-10, 1e-9)
"""Relative slack of the rows, tried in turn: the set of optima can be thinner than rounding."""


def is_flat(program: Program) -> bool:
    """Whether every epigraph row has at most one reciprocal and no other maximum."""
    in_forms = (program.rows[:, : program.n_forms] != 0).sum(axis=1)
    in_maxima = (program.rows[:, program.n_forms :] != 0).sum(axis=1)
    return bool((in_forms <= 1).all() and (in_maxima == 1).all())


def required_forms(program: Program, b: Array) -> Array:
    """Least value of each form that keeps every maximum as long as it is at b, shape (n_forms,).

    A transfer may take what it takes at b and the room its row has left: that is exact also
    where a constant beside it is so long that the transfer is lost in their sum.
    """
    w = w_values(program, b)
    n_forms = program.n_forms
    required = np.zeros(n_forms)
    for row, offset in zip(program.rows, program.offsets, strict=True):
        length = w[n_forms:] @ -row[n_forms:]
        for f in np.flatnonzero(row[:n_forms]):
            own = row[f] * w[f]
            required[f] = max(required[f], row[f] / (own + max(length - (own + offset), 0.0)))
    direct = program.time[:n_forms] > 0
    return np.where(direct, program.forms @ b, np.minimum(required, program.forms @ b))


class FlatFace:
    """Designs as fast as b, cut down by one linear objective after the other.

    Works in units of the least bandwidth that each dimension needs, which may be many
    orders of magnitude below what the rules allow.
    """

    def __init__(self, program: Program, b: Array, priced: Mask) -> None:
        required = required_forms(program, b)
        self.unit = _units(program, required)
        self.top = program.b_upper * (1 + 1e-9) / self.unit
        rules = program.rules
        forms = program.forms * self.unit
        needed, fixed = (required > 0) & ~priced, program.forms[priced] @ b
        upper = np.vstack([rules.upper * self.unit, -forms[needed]])
        limit = np.concatenate([rules.limit, -required[needed]])
        equal = np.vstack([rules.equal * self.unit, forms[priced]])
        target = np.concatenate([rules.target, fixed])
        self.upper, self.limit = _row_scaled(upper, limit)
        self.equal, self.target = _row_scaled(equal, target)

    def keep(self, cost: Array, b: Array) -> None:
        """Restrict the set to designs no worse than b in ``cost``."""
        value = float(cost @ b)
        row = (cost * self.unit)[None, :]
        scaled, limit = _row_scaled(row, np.array([value + _KEEP * abs(value)]))
        self.upper = np.vstack([self.upper, scaled])
        self.limit = np.concatenate([self.limit, limit])

    def best(self, cost: Array) -> Array:
        """A minimiser of cost.b over the set; infinite in directions without an end.

        Raises
        ------
        SolverFailed
            When the linear program ends without a solution.
        """
        row = cost * self.unit
        scaled = row / (np.abs(row).max() or 1.0)
        for slack in _SLACKS:
            limit = self.limit + slack * np.abs(self.limit)
            system = (self.upper, limit, self.equal, self.target)
            solution = solve_lp(scaled, *system, upper_bounds=self.top)
            if solution.status in (OPTIMAL, UNBOUNDED):
                break
        if solution.status == UNBOUNDED:
            return np.where(cost < 0, np.inf, self.unit)
        if solution.status != OPTIMAL:
            raise SolverFailed(
                "got a set of fastest designs too thin to find the cheapest in; expected traffic "
                "and bounds within about 14 orders of magnitude of each other"
            )
        return np.maximum(solution.point, 0.0) * self.unit


def _units(program: Program, required: Array) -> Array:
    """Bandwidth each dimension needs by itself; the typical one where it needs none."""
    alone = (program.forms != 0).sum(axis=1) == 1
    unit = np.zeros(program.n_dims)
    for form, least in zip(program.forms[alone], required[alone], strict=True):
        i = int(np.argmax(form))
        unit[i] = max(unit[i], least / form[i])
    return np.where(unit > 0, unit, 1.0)


def _row_scaled(rows: Array, values: Array) -> tuple[Array, Array]:
    size = np.abs(rows).max(axis=1, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    return rows / size[:, None], values / size
