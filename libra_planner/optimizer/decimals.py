"""Convex programs to 30 digits: a primal-dual interior-point method in decimal arithmetic.

Derivatives of an optimum are differences of optima. In double precision the optimum of a
flat objective is known to 1e-8 at best, and a transfer of a microsecond beside an hour of
compute not at all. With 80 digits there is nothing to be careful about: the last barrier is
many orders of magnitude below the smallest weight that breaks a tie, and that one below the
moves of the bounds. Programs are small (a variable per dimension, transfer and maximum).

Method: Mehrotra, SIAM J. Optim. 2 (1992) without its corrector; from an infeasible start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Exact: TypeAlias = NDArray[np.object_]
"""Array of ``Decimal``."""

N_DIGITS = 80
"""Digits of the arithmetic; callers compute in such a context too."""

ZERO, ONE = Decimal(0), Decimal(1)

_ROOM = Decimal("1e-16")
"""Room given to every row, in units of the row: rules that contradict each other, or leave no
more than one design, only by the rounding of their numbers are met."""

_FIRST_BARRIER, _LAST_BARRIER = Decimal("0.1"), Decimal("1e-55")
_CLOSE = 10
"""Error, over the barrier, at which the next barrier is tried."""

_SHRINK = Decimal("0.7")
"""Share of a form's value that one step may take away: its reciprocal is far from linear."""

_MOST_STEPS, _MOST_STEPS_NEAR = 120, 8
_MOST_DUAL = Decimal("1e30")
"""Multiplier of a row that cannot be met."""

_NO_SLOPE = Decimal("1e-13")
"""Slope, over the largest cost, that is rounding where nothing limits x."""

_START, _LEAST_SLACK = ONE + ONE / 8, ONE / 10
_CENTRING = Decimal("1e-4")
_KEEP = Decimal("0.9")
"""Share of the way to the boundary that the first steps may go."""


@dataclass(frozen=True)
class ExactProgram:
    """min cost.x with ``rows x >= least`` and reciprocals.

    Parameters
    ----------
    cost : shape (n,).
    rows, least : shapes (n_rows, n) and (n_rows,).
    n_firm : how many of the rows, the last ones, are met without any room; they keep x in
        the forms from being negative.
    forms : non-negative linear forms of x, shape (n_forms, n).
    first : x[first + f] >= 1 / (forms[f] . x), for every form f.
    """

    cost: Exact
    rows: Exact
    least: Exact
    n_firm: int
    forms: Exact
    first: int


@dataclass(frozen=True)
class ExactPoint:
    """The optimum x, shape (n,), of a program, with slacks and multipliers, in typical units."""

    program: ExactProgram
    unit: Exact
    x: Exact
    scaled_x: Exact
    slack: Exact
    dual: Exact


def exact(values: object) -> Exact:
    """Exact decimals of floats, same shape.

    >>> exact([0.5, 1e9]).tolist()
    [Decimal('0.5'), Decimal('1000000000')]
    """
    array = np.asarray(values, dtype=np.float64)
    return filled([Decimal(float(value)) for value in array.flat]).reshape(array.shape)


def filled(values: Iterable[Decimal]) -> Exact:
    """An array of decimals, shape (n,)."""
    return np.array(list(values), dtype=object)


def zeros(*shape: int) -> Exact:
    """Decimal zeros."""
    return np.full(shape, ZERO, dtype=object)


def exact_optimum(
    program: ExactProgram, unit: Exact, near: ExactPoint | None = None
) -> ExactPoint | None:
    """The optimum; ``None`` where the method finds none: there may be none.

    ``unit`` is a typical x, all of it positive; ``near`` the optimum of a neighbor in the same
    unit, from where a few Newton steps suffice unless other rows bind. Compute in a context
    of ``N_DIGITS``.

    Examples
    --------
    >>> from decimal import localcontext
    >>> one = exact([1.0, 4.0])  # min x + 4 w with w >= 1 / x
    >>> positive = exact([[1.0, 0.0]])
    >>> program = ExactProgram(one, positive, zeros(1), 1, positive, 1)
    >>> with localcontext() as context:
    ...     context.prec = N_DIGITS
    ...     optimum = exact_optimum(program, exact([1.0, 1.0]))
    >>> [f"{x:.12f}" for x in optimum.x]
    ['2.000000000000', '0.500000000000']
    """
    barrier = _Barrier(program, unit)
    found = near is not None and barrier.optimum_near(near)
    if not found:
        barrier = _Barrier(program, unit)
        found = barrier.optimum()
    if not found:
        return None
    return ExactPoint(program, unit, barrier.x * unit, barrier.x, barrier.slack, barrier.dual)


def exact_bound(point: ExactPoint, cost: Exact, top: Exact) -> Decimal:
    """Proven: ``cost . x`` is no less for any x of 0 to ``top`` that meets the point's program.

    ``cost`` is what the program minimises but for its size and for what breaks ties. Weak duality
    with the multipliers of the point, reciprocals replaced by their tangents there
    (``linear.CutModel.lower_bound``). Where x has no end, a slope that is rounding counts as none.
    """
    program, unit = point.program, point.unit
    barrier, n_rows = _Barrier(program, unit), len(program.rows)
    size = max(abs(cost * unit)) or ONE
    dual = point.dual * (size * max(abs(program.cost * unit)))
    row_dual, form_dual = dual[:n_rows], dual[n_rows:]
    at = barrier.forms @ point.scaled_x
    pull = barrier.picks.T @ form_dual + barrier.forms.T @ (form_dual / at**2)
    slope = cost * unit - barrier.rows.T @ row_dual - pull
    bound = row_dual @ barrier.least + 2 * form_dual @ (1 / at)
    for x, most in zip(slope, top / unit, strict=True):
        if most.is_finite() or x < -_NO_SLOPE * size:
            bound += min(x, ZERO) * most
    return Decimal(bound)


class _Barrier:
    """A program in units of a typical x, a point and its multipliers on the way to the optimum."""

    def __init__(self, program: ExactProgram, unit: Exact) -> None:
        n, n_forms, n_room = len(unit), len(program.forms), len(program.rows) - program.n_firm
        cost = program.cost * unit
        self.cost = cost / (max(abs(cost)) or ONE)
        rows = program.rows * unit
        size = filled(max(abs(row)) or ONE for row in rows)
        self.rows: Exact = rows / size[:, None]
        room = filled([_ROOM] * n_room + [ZERO] * program.n_firm)
        self.least: Exact = program.least / size - room
        self.own = slice(program.first, program.first + n_forms)
        self.forms: Exact = program.forms * unit * unit[self.own][:, None]
        self.picks: Exact = exact(np.eye(n))[self.own]
        self.x = filled([_START] * n)
        self.slack = filled(max(value, _LEAST_SLACK) for value in self._values())
        self.dual = _LEAST_SLACK / self.slack

    def optimum(self) -> bool:
        """Follow the barrier down to the last; whether it is reached."""
        barrier = _FIRST_BARRIER
        for _ in range(_MOST_STEPS):
            jacobian = self._jacobian()
            error = self._error(jacobian, barrier)
            while error <= _CLOSE * barrier:
                if barrier == _LAST_BARRIER:
                    return True
                barrier = max(barrier * _CENTRING, _LAST_BARRIER)
                error = self._error(jacobian, barrier)
            if not self._step(jacobian, barrier) or max(self.dual) > _MOST_DUAL:
                break
        return False

    def optimum_near(self, near: ExactPoint) -> bool:
        """Newton steps from the optimum of a neighbor; whether they lead to this one."""
        if len(near.slack) != len(self.slack):
            return False
        self.x, self.slack, self.dual = near.scaled_x, near.slack, near.dual
        for _ in range(_MOST_STEPS_NEAR):
            jacobian = self._jacobian()
            if self._error(jacobian, _LAST_BARRIER) <= _CLOSE * _LAST_BARRIER:
                return True
            if self._step(jacobian, _LAST_BARRIER) < ONE:
                break
        return False

    def _values(self) -> Exact:
        """Left sides of all constraints, 0 or more where they are met."""
        kept = self.x[self.own] - 1 / (self.forms @ self.x)
        return np.concatenate([self.rows @ self.x - self.least, kept])

    def _jacobian(self) -> Exact:
        x = self.forms @ self.x
        return np.vstack([self.rows, self.picks + self.forms / (x**2)[:, None]])

    def _error(self, jacobian: Exact, barrier: Decimal) -> Decimal:
        """How far the point is from the one of a barrier."""
        slope = abs(self.cost - jacobian.T @ self.dual)
        off = abs(self._values() - self.slack)
        return Decimal(max(*slope, *off, *abs(self.slack * self.dual - barrier)))

    def _step(self, jacobian: Exact, barrier: Decimal) -> Decimal:
        """One Newton step towards ``slack * dual == barrier``; its length, 0 if there is none."""
        off = self._values() - self.slack
        weights = self.dual / self.slack
        x = self.forms @ self.x
        curvature = 2 * self.dual[len(self.rows) :] / x**3
        matrix = jacobian.T @ (weights[:, None] * jacobian)
        matrix = matrix + self.forms.T @ (curvature[:, None] * self.forms)
        centring = self.dual - barrier / self.slack
        right = jacobian.T @ (self.dual - centring - weights * off) - self.cost
        move = _solved(matrix, right)
        if move is None:
            return ZERO
        slack_move = jacobian @ move + off
        dual_move = -centring - weights * slack_move
        keep = max(_KEEP, ONE - barrier)
        step = min(
            _longest(self.slack, slack_move, keep),
            _longest(self.dual, dual_move, keep),
            _longest(x, self.forms @ move, _SHRINK),
        )
        self.x, self.slack = self.x + step * move, self.slack + step * slack_move
        self.dual = self.dual + step * dual_move
        return step


def _longest(value: Exact, move: Exact, keep: Decimal) -> Decimal:
    """Longest step, 1 at most, that goes no more than ``keep`` of the way to zero."""
    ends = (-keep * v / m for v, m in zip(value, move, strict=True) if m < 0)
    return min(ONE, min(ends, default=ONE))


def _solved(matrix: Exact, right: Exact) -> Exact | None:
    """Solution of a positive definite system by elimination; ``None`` if it is not that."""
    table: Exact = np.column_stack([matrix, right])
    n = len(table)
    for k in range(n):
        if not table[k, k] > 0:
            return None
        table[k, k + 1 :] = table[k, k + 1 :] / table[k, k]
        factors = table[k + 1 :, k].copy()
        table[k + 1 :, k + 1 :] -= factors[:, None] * table[k, k + 1 :]
    x = table[:, n].copy()
    for k in range(n - 2, -1, -1):
        x[k] -= table[k, k + 1 : n] @ x[k + 1 :]
    return x
