"""Optima to 30 digits by a plain interior-point method in decimal arithmetic.

Slow and independent of the planner's solvers: one convex program in x, a linear objective,
linear rows and ``x_t >= n_bytes / x_i``, all numbers ``Decimal``. Ties are broken by weights
far below what the differences of neighbors are taken over, far above the last barrier. What is
returned meets the optimality conditions (slope, rows, signs, complementarity) to 1e-40, which
proves it whatever the way there: the program is convex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from libra_planner.problem import Problem
from tests.problems import Collectives

_DIGITS = 70
_LAST_BARRIER = Decimal("1e-48")
_LAST_RESIDUAL = Decimal("1e-40")
_ITERATIONS = 150
_TIES = tuple(Decimal(10) ** -k for k in (20, 24, 27, 30, 33, 36, 39))
"""Weight of the tie-breaker, then of every bandwidth in turn."""

ZERO, ONE = Decimal(0), Decimal(1)


class NotSolved(Exception):
    """The method ended without a solution: there may be none."""


def decimals(values: object) -> np.ndarray:
    """Exact decimals of floats, same shape."""
    array = np.asarray(values, dtype=object)
    return np.vectorize(Decimal, otypes=[object])(array) if array.size else array


@dataclass
class Exact:
    """min cost.x, ``rows x >= least``, ``equal x == target``, ``x_t >= n_bytes / x_i``, x >= 0."""

    cost: np.ndarray
    rows: list[tuple[np.ndarray, Decimal]] = field(default_factory=list)
    equal: list[tuple[np.ndarray, Decimal]] = field(default_factory=list)
    transfers: list[tuple[int, int, Decimal]] = field(default_factory=list)

    def solve(self, unit: np.ndarray) -> np.ndarray:
        """The optimum; ``unit`` is a typical x."""
        with localcontext() as context:
            context.prec = _DIGITS
            return _Barrier(self, unit).run() * unit


class _Barrier:
    """The primal-dual method on an :class:`Exact` in units near its solution."""

    def __init__(self, exact: Exact, unit: np.ndarray) -> None:
        n = len(unit)
        cost = exact.cost * unit
        self.cost = cost / max(abs(cost))
        rows = [_scaled(row * unit, least) for row, least in exact.rows]
        rows += [(axis, ZERO) for axis in _eye(n)]
        self.rows = np.array([row for row, _ in rows])
        self.least = np.array([least for _, least in rows])
        equal = [_scaled(row * unit, target) for row, target in exact.equal]
        self.equal = np.array([row for row, _ in equal]).reshape(-1, n)
        self.target = np.array([target for _, target in equal], dtype=object)
        self.t = [t for t, _, _ in exact.transfers]
        self.i = [i for _, i, _ in exact.transfers]
        self.size = np.array([m / unit[t] / unit[i] for t, i, m in exact.transfers], dtype=object)
        self.x = np.array([ONE + ONE / 8] * n, dtype=object)
        self.slack = np.array([max(g, ONE / 10) for g in self.values()], dtype=object)
        self.dual = ONE / 10 / self.slack
        self.multiplier = np.array([ZERO] * len(self.equal), dtype=object)

    def values(self) -> np.ndarray:
        late = self.x[self.t] - self.size / self.x[self.i]
        return np.concatenate([self.rows @ self.x - self.least, late])

    def run(self) -> np.ndarray:
        for _ in range(_ITERATIONS):
            complementarity = self.slack @ self.dual / len(self.slack)
            residual = self.residual()
            if complementarity <= _LAST_BARRIER and residual <= _LAST_RESIDUAL:
                return self.x
            barrier = min(complementarity / 5, complementarity * complementarity.sqrt())
            self.step(max(barrier, _LAST_BARRIER / 10))
        raise NotSolved(f"complementarity {complementarity:.1e}, residual {residual:.1e}")

    def jacobian(self) -> np.ndarray:
        late = np.full((len(self.t), len(self.x)), ZERO, dtype=object)
        k = range(len(self.t))
        late[k, self.t] = ONE
        late[k, self.i] = self.size / self.x[self.i] ** 2
        return np.vstack([self.rows, late])

    def residual(self) -> Decimal:
        slope = self.cost - self.jacobian().T @ self.dual - self.equal.T @ self.multiplier
        parts = [slope, self.values() - self.slack, self.equal @ self.x - self.target]
        return max(abs(value) for part in parts for value in part)

    def step(self, barrier: Decimal) -> None:
        jacobian, n = self.jacobian(), len(self.x)
        matrix = jacobian.T @ ((self.dual / self.slack)[:, None] * jacobian)
        late = self.dual[len(self.rows) :]
        for k, i in enumerate(self.i):
            matrix[i, i] += 2 * late[k] * self.size[k] / self.x[i] ** 3
        off = self.values() - self.slack
        centring = self.slack * self.dual - barrier
        right = jacobian.T @ self.dual + self.equal.T @ self.multiplier - self.cost
        right = right - jacobian.T @ ((centring + self.dual * off) / self.slack)
        n_equal = len(self.equal)
        zeros = np.full((n_equal, n_equal), ZERO, dtype=object)
        system = np.block([[matrix, -self.equal.T], [self.equal, zeros]])
        move = _solved(system, np.concatenate([right, self.target - self.equal @ self.x]))
        dx, dy = move[:n], move[n:]
        dw = jacobian @ dx + off
        dz = -(centring + self.dual * dw) / self.slack
        keep = max(Decimal("0.9"), ONE - barrier)
        primal, dual = _longest(self.slack, dw, keep), _longest(self.dual, dz, keep)
        self.x, self.slack = self.x + primal * dx, self.slack + primal * dw
        self.dual, self.multiplier = self.dual + dual * dz, self.multiplier + dual * dy


def _eye(n: int) -> np.ndarray:
    return decimals(np.eye(n))


def _scaled(row: np.ndarray, value: Decimal) -> tuple[np.ndarray, Decimal]:
    size = max(abs(row))
    return row / size, value / size


def _longest(value: np.ndarray, move: np.ndarray, keep: Decimal) -> Decimal:
    """Longest step, 1 at most, that keeps a share of the way to the boundary."""
    return min([ONE, *(-keep * v / d for v, d in zip(value, move, strict=True) if d < 0)])


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination with row pivoting."""
    table = np.column_stack([matrix, right])
    n = len(table)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda j: abs(table[k + j, k]))
        if not table[pivot, k]:
            raise NotSolved("the system is singular")
        table[[k, pivot]] = table[[pivot, k]]
        table[k, k:] = table[k, k:] / table[k, k]
        factors = table[:, k].copy()
        factors[k] = ZERO
        table[:, k:] = table[:, k:] - factors[:, None] * table[k, k:]
    return table[:, n]


@dataclass(frozen=True)
class Bounds:
    """What may be moved: right sides of the rules and the step-time limit."""

    rules: tuple[Decimal, ...]
    limit_s: Decimal | None = None


class Optimum(NamedTuple):
    """Communication time and network cost, and the typical design they were found with."""

    time_s: Decimal
    cost_usd: Decimal
    near: Sequence[float]


def bounds(problem: Problem) -> Bounds:
    limits = [Decimal(limit.limit_s) for limit in problem.step_time_limits]
    return Bounds(tuple(Decimal(r.bound) for r in problem.rules), min(limits, default=None))


def exact_optimum(
    problem: Problem, step: Collectives, at: Bounds, near: Sequence[float]
) -> Optimum:
    """Step time without compute and network cost of the optimum, to about 30 digits.

    ``near`` is a typical design: nothing but the units of the method.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        solver = _per_cost if problem.objective == "performance_per_cost" else _plain
        b = solver(problem, step, at, near)
        time_s = sum(
            (
                max((Decimal(m) / b[i] for i, m in enumerate(row) if m > 0), default=ZERO)
                for row in _collectives(step)
            ),
            ZERO,
        )
        return Optimum(time_s, decimals(problem.price_usd_per_Bps) @ b, near)


def _collectives(step: Collectives) -> list[list[float]]:
    return [row for row in step.bytes_by_dim.tolist() if any(row)]


def _units(step: Collectives, near: Sequence[float]) -> tuple[list[Decimal], list[Decimal]]:
    """Typical bandwidths, none of them zero, and times of every collective."""
    least = max(near) * 1e-3
    b = [max(x, least) if x < 1e-9 * max(near) else x for x in near]
    times = [
        max((m / b[i] for i, m in enumerate(row) if m > 0), default=1.0)
        for row in _collectives(step)
    ]
    return [Decimal(x) for x in b], [Decimal(x) for x in times]


def _rows(problem: Problem, at: Bounds, n_more: int, *, over_scale: bool) -> Exact:
    """The rules over (b, [scale], times)."""
    n_dims = problem.topology.n_dims
    exact = Exact(np.array([ZERO] * (n_dims + n_more), dtype=object))
    for rule, value in zip(problem.rules, at.rules, strict=True):
        bound = value
        row = np.array([*map(Decimal, rule.coefficients), *[ZERO] * n_more], dtype=object)
        if over_scale:
            row[n_dims], bound = -value, ZERO
        if rule.sense == "==":
            exact.equal.append((row, bound))
        else:
            sign = -1 if rule.sense == "<=" else 1
            exact.rows.append((sign * row, sign * bound))
    return exact


def _plain(problem: Problem, step: Collectives, at: Bounds, near: Sequence[float]) -> np.ndarray:
    """The fastest or the cheapest design."""
    n_dims, n_times = problem.topology.n_dims, len(_collectives(step))
    exact = _rows(problem, at, n_times, over_scale=False)
    unit_b, unit_t = _units(step, near)
    unit = np.array([*unit_b, *unit_t], dtype=object)
    for k, row in enumerate(_collectives(step)):
        exact.transfers += [(n_dims + k, i, Decimal(m)) for i, m in enumerate(row) if m > 0]
    time = np.array([*[ZERO] * n_dims, *[ONE] * n_times], dtype=object)
    cost = np.array([*decimals(problem.price_usd_per_Bps), *[ZERO] * n_times], dtype=object)
    if at.limit_s is not None:
        exact.rows.append((-time, Decimal(step.compute_s) - at.limit_s))
    first, second = (cost, time) if problem.objective == "cost" else (time, cost)
    exact.cost = _tie_broken(first, second, unit, n_dims)
    return exact.solve(unit)[:n_dims]


def _per_cost(problem: Problem, step: Collectives, at: Bounds, near: Sequence[float]) -> np.ndarray:
    """The least T C over y = b / C, s = 1 / C and the times as multiples of C."""
    n_dims, n_times = problem.topology.n_dims, len(_collectives(step))
    exact = _rows(problem, at, n_times + 2, over_scale=True)
    unit_b, unit_t = _units(step, near)
    price, fixed = decimals(problem.price_usd_per_Bps), Decimal(problem.fixed_cost_usd)
    cost = price @ np.array(unit_b, dtype=object) + fixed
    compute = Decimal(step.compute_s)
    unit = np.array(
        [*[x / cost for x in unit_b], 1 / cost, *[t * cost for t in unit_t], (compute or 1) * cost],
        dtype=object,
    )
    zeros = [ZERO] * (n_times + 1)
    exact.equal.append((np.array([*price, fixed, *zeros], dtype=object), ONE))
    for k, row in enumerate(_collectives(step)):
        exact.transfers += [(n_dims + 1 + k, i, Decimal(m)) for i, m in enumerate(row) if m > 0]
    exact.transfers += [(n_dims + 1 + n_times, n_dims, compute)] if compute else []
    product = np.array([*[ZERO] * (n_dims + 1), *[ONE] * (n_times + 1)], dtype=object)
    scale = np.array([*[ZERO] * n_dims, -ONE, *zeros], dtype=object)
    exact.cost = _tie_broken(product, scale, unit, n_dims)
    solution = exact.solve(unit)
    return solution[:n_dims] / solution[n_dims]


def _tie_broken(first: np.ndarray, second: np.ndarray, unit: np.ndarray, n_dims: int) -> np.ndarray:
    """What is minimised: the second objective and every bandwidth by tiny weights."""
    size = max(abs(first * unit))
    cost = first / size + _TIES[0] * second / max(abs(second * unit))
    for i in range(n_dims):
        cost[i] += _TIES[i + 1] / unit[i]
    return cost
