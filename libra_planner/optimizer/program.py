"""The dimensionless convex program that every solver works on.

Bandwidths, reciprocals and times are divided by typical values, so that the same
tolerances hold from 1 to 100,000 GB/s and from microseconds to hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from libra_planner.problem import Problem, Rule
from libra_planner.step.expression import Array
from libra_planner.step.lifted import Lifted, lift


@dataclass(frozen=True)
class RuleRows:
    """Linear rules over dimensionless bandwidths b: ``upper b <= limit``, ``equal b == target``.

    Every row is scaled so that its largest coefficient is 1.
    """

    upper: Array
    limit: Array
    equal: Array
    target: Array


def rule_rows(rules: Sequence[Rule], bandwidth_unit: Array) -> RuleRows:
    """Rows of ``rules`` over bandwidths divided by ``bandwidth_unit``, shape (n_dims,).

    Examples
    --------
    >>> rows = rule_rows([Rule("dim1 >= 2 dim2", (1.0, -2.0), ">=", 0.0)], np.ones(2))
    >>> rows.upper, rows.limit, rows.equal.shape
    (array([[-0.5,  1. ]]), array([-0.]), (0, 2))
    """
    upper: list[Array] = []
    equal: list[Array] = []
    for rule in rules:
        row = np.array([*(rule.coefficients * bandwidth_unit), rule.bound])
        row /= np.abs(row[:-1]).max() or 1.0
        (equal if rule.sense == "==" else upper).append(-row if rule.sense == ">=" else row)
    n = len(bandwidth_unit) + 1
    upper_rows = np.array(upper).reshape(-1, n)
    equal_rows = np.array(equal).reshape(-1, n)
    return RuleRows(upper_rows[:, :-1], upper_rows[:, -1], equal_rows[:, :-1], equal_rows[:, -1])


@dataclass(frozen=True)
class Weights:
    """What is minimised: ``time`` * communication + ``cost`` * network cost, in a program's units.

    (1, 0) is performance, (0, 1) is cost; in between are the supporting lines of the
    time/cost frontier.
    """

    time: float
    cost: float


FASTEST = Weights(1.0, 0.0)
CHEAPEST = Weights(0.0, 1.0)


@dataclass(frozen=True)
class Program:
    """Designs (b, w): rules over b, ``rows w + offsets <= 0``, w_f >= 1/(forms_f b).

    Parameters
    ----------
    bandwidth_unit : bytes/s of b = 1, shape (n_dims,).
    time_unit_s : seconds of communication 1.
    constant_s : step time at infinite bandwidth, not in ``time``.
    cost_unit_usd : network cost at b = 1 (1 where everything is free).
    rules : linear rules over b.
    forms : shape (n_forms, n_dims).
    time, floors, hidden : shape (n_w,); communication = time . w >= floors_j w_j - hidden_j.
    rows, offsets : epigraph rows.
    price : cost per unit of b over the cost at b = 1, shape (n_dims,).
    b_upper : proven upper bounds of b, infinite where there is none.
    time_limit : most communication that is allowed, infinite without a limit.
    """

    bandwidth_unit: Array
    time_unit_s: float
    constant_s: float
    cost_unit_usd: float
    rules: RuleRows
    forms: Array
    time: Array
    floors: Array
    hidden: Array
    rows: Array
    offsets: Array
    price: Array
    b_upper: Array
    time_limit: float = np.inf

    @property
    def n_dims(self) -> int:
        """Dimensions of the fabric."""
        return len(self.bandwidth_unit)

    @property
    def n_forms(self) -> int:
        """Reciprocals among the variables w."""
        return len(self.forms)

    @cached_property
    def n_variables(self) -> int:
        """Length of (b, w)."""
        return self.n_dims + len(self.time)

    @cached_property
    def w_rows(self) -> tuple[Array, Array]:
        """All rows over w, ``rows w + offsets <= 0``: epigraph and, last, the time limit."""
        if np.isinf(self.time_limit):
            return self.rows, self.offsets
        return np.vstack([self.rows, self.time]), np.append(self.offsets, -self.time_limit)


def scaled_program(
    problem: Problem, typical: Array, upper: Array, *, limit_s: float = np.inf
) -> Program:
    """The problem in units of a typical design, shapes (n_dims,), bytes/s.

    ``limit_s`` bounds the step time of the designs.
    """
    lifted = lift(problem.step_time)
    form_unit = lifted.forms @ typical
    w_unit = _w_unit(1 / form_unit, lifted.rows, lifted.offsets)
    time_unit_s = float(lifted.objective @ w_unit) or 1.0
    price = problem.price_usd_per_Bps * typical
    cost_unit_usd = float(np.abs(price).sum()) or 1.0
    return Program(
        bandwidth_unit=typical,
        time_unit_s=time_unit_s,
        constant_s=lifted.constant_s,
        cost_unit_usd=cost_unit_usd,
        rules=_without_redundant(rule_rows(problem.rules, typical), upper / typical),
        forms=lifted.forms * typical / form_unit[:, None],
        price=price / cost_unit_usd,
        b_upper=upper / typical,
        time_limit=(limit_s - lifted.constant_s) / time_unit_s,
        **_scaled_time(lifted, w_unit, time_unit_s),
    )


def _without_redundant(rules: RuleRows, b_upper: Array) -> RuleRows:
    """Leave out rows that the upper bounds of b imply with room to spare.

    They cannot bind, and a bound of 1e9 GB/s beside one of 1 GB/s unsettles solvers.
    """
    positive = rules.upper > 0
    reach = np.where(positive, rules.upper, 0.0) * np.where(positive, b_upper, 0.0)
    needed = ~(reach.sum(axis=1) < rules.limit * (1 - 1e-6))
    return replace(rules, upper=rules.upper[needed], limit=rules.limit[needed])


def _w_unit(reciprocals: Array, rows: Array, offsets: Array) -> Array:
    """Typical w: maxima as long as what in them is not hidden or, where all is, as the rest."""
    unit = np.concatenate([reciprocals, np.zeros(rows.shape[1] - len(reciprocals))])
    for k in range(len(reciprocals), len(unit)):
        own = rows[:, k] < 0
        lengths = rows[own] @ unit
        seen = lengths[offsets[own] == 0].max()
        unit[k] = max(seen, float((lengths + offsets[own]).max())) if seen else lengths.max()
    return unit


def _scaled_time(lifted: Lifted, w_unit: Array, time_unit_s: float) -> dict[str, Array]:
    """Everything over w in units of w; each epigraph row in units of its maximum or offset."""
    own = [int(np.flatnonzero(row < 0)[0]) for row in lifted.rows]
    row_unit = np.maximum(w_unit[own], -lifted.offsets)
    return {
        "time": lifted.objective * w_unit / time_unit_s,
        "floors": lifted.floors * w_unit / time_unit_s,
        "hidden": lifted.hidden_s / time_unit_s,
        "rows": lifted.rows * w_unit / row_unit[:, None],
        "offsets": lifted.offsets / row_unit,
    }


def w_values(program: Program, b: Array) -> Array:
    """Smallest w that goes with b: reciprocals, then maxima in the order they nest."""
    return _least_w(1 / (program.forms @ b), program.rows, program.offsets)


def _least_w(reciprocals: Array, rows: Array, offsets: Array) -> Array:
    """Reciprocals, then each maximum from its rows (own coefficient negative, others before it)."""
    n_forms, n_w = len(reciprocals), rows.shape[1]
    w = np.concatenate([reciprocals, np.zeros(n_w - n_forms)])
    for k in range(n_forms, n_w):
        own = rows[:, k] < 0
        w[k] = np.max((rows[own] @ w + offsets[own]) / -rows[own, k])
    return w


def communication(program: Program, b: Array) -> float:
    """Communication time at b, in time units; infinite where a form is zero."""
    if not (program.forms @ b > 0).all():
        return np.inf
    return float(program.time @ w_values(program, b))


def size_of(value: float) -> float:
    """What differences of a weighted sum are relative to: where all time is hidden, the unit."""
    return value if value > 0 else 1.0


def weighted(program: Program, weights: Weights, b: Array) -> float:
    """What is minimised, at b; time counts only where it has a weight."""
    cost = weights.cost * float(program.price @ b)
    return cost + (weights.time * communication(program, b) if weights.time else 0.0)
