"""Optima to 30 digits, in decimal arithmetic: of a problem, and of those next to it.

Derivatives of an optimum are differences of optima. In double precision the optimum of a
flat objective is known to 1e-8 at best, and a transfer of a microsecond beside an hour of
compute, or a move of 1e-8 beside a large fixed cost, not at all. With 80 digits there is nothing
to be careful about: the last barrier is many orders of magnitude below the smallest weight that
breaks a tie, and that one below the moves of the bounds. Programs are small (a variable per
dimension, transfer and maximum), and their multipliers prove the optimum.

Method: Mehrotra, SIAM J. Optim. 2 (1992) without its corrector; from an infeasible start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.optimizer.design import Solution, design_at, restored
from libra_planner.optimizer.programs import plans as batch
from libra_planner.optimizer.programs.dimensionless import least_w
from libra_planner.optimizer.programs.posedness import row_bounds
from libra_planner.problem import Problem
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS

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


_TIE, _FIRST_TIE, _NEXT_TIE = Decimal("1e-22"), Decimal("1e-6"), Decimal("1e-3")
"""Weight of what decides between equal objectives; over that, of the first bandwidth; of each
bandwidth over the one before."""

_UNUSED = 1e-4
"""Share of the largest bandwidth that stands for none as a unit."""

_DUST = 1e-14
"""Bandwidth, over a typical one, that is none unless a transfer needs it."""

_TIED = Decimal("1e-6")
"""Difference of a bandwidth, over the largest, above which another design ties."""


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


class ExactPoint:
    """A program in units of a typical x, and a point and its multipliers: at last its optimum."""

    def __init__(self, program: ExactProgram, unit: Exact) -> None:
        n, n_forms, n_room = len(unit), len(program.forms), len(program.rows) - program.n_firm
        self.unit, cost = unit, program.cost * unit
        self.cost_unit = max(abs(cost)) or ONE
        self.cost = cost / self.cost_unit
        rows = program.rows * unit
        size = filled(max(abs(row)) or ONE for row in rows)
        self.rows: Exact = rows / size[:, None]
        room = filled([_ROOM] * n_room + [ZERO] * program.n_firm)
        self.least: Exact = program.least / size - room
        self.own = slice(program.first, program.first + n_forms)
        self.forms: Exact = program.forms * unit * unit[self.own][:, None]
        self.picks: Exact = exact(np.eye(n))[self.own]
        self.scaled_x = filled([_START] * n)
        self.slack = filled(max(value, _LEAST_SLACK) for value in self._values())
        self.dual = _LEAST_SLACK / self.slack

    @property
    def x(self) -> Exact:
        """The point, shape (n,)."""
        return np.asarray(self.scaled_x * self.unit)

    def bound(self, cost: Exact, top: Exact) -> Decimal:
        """Proven: ``cost . x`` is no less for any x of 0 to ``top`` that meets the program.

        ``cost`` is what the program minimises but for its size and for what breaks ties. Weak
        duality with the multipliers of the point, reciprocals replaced by their tangents there
        (``design.lower_bound``). Where x has no end, a slope that is rounding counts as
        none.
        """
        n_rows, cost = len(self.rows), cost * self.unit
        size = max(abs(cost)) or ONE
        dual = self.dual * (size * self.cost_unit)
        row_dual, form_dual, at = dual[:n_rows], dual[n_rows:], self.forms @ self.scaled_x
        pull = self.picks.T @ form_dual + self.forms.T @ (form_dual / at**2)
        slope = cost - self.rows.T @ row_dual - pull
        bound = row_dual @ self.least + 2 * form_dual @ (1 / at)
        for x, most in zip(slope, top / self.unit, strict=True):
            if most.is_finite() or x < -_NO_SLOPE * size:
                bound += min(x, ZERO) * most
        return Decimal(bound)

    def follow(self, barrier: Decimal, n_most: int, *, least_step: Decimal) -> bool:
        """Follow a barrier down to the last; whether it is reached in so many steps."""
        for _ in range(n_most):
            jacobian = self._jacobian()
            error = self._error(jacobian, barrier)
            while error <= _CLOSE * barrier:
                if barrier == _LAST_BARRIER:
                    return True
                barrier = max(barrier * _CENTRING, _LAST_BARRIER)
                error = self._error(jacobian, barrier)
            step = self._step(jacobian, barrier)
            if not step or step < least_step or max(self.dual) > _MOST_DUAL:
                break
        return False

    def _values(self) -> Exact:
        """Left sides of all constraints, 0 or more where they are met."""
        kept = self.scaled_x[self.own] - 1 / (self.forms @ self.scaled_x)
        return np.concatenate([self.rows @ self.scaled_x - self.least, kept])

    def _jacobian(self) -> Exact:
        x = self.forms @ self.scaled_x
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
        x = self.forms @ self.scaled_x
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
        self.scaled_x, self.slack = self.scaled_x + step * move, self.slack + step * slack_move
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


def exact_optimum(
    program: ExactProgram, unit: Exact, near: ExactPoint | None = None
) -> ExactPoint | None:
    """The optimum; ``None`` where the method finds none: there may be none.

    ``unit`` is a typical x, all of it positive; ``near`` the optimum of a neighbor in the same
    unit, from where a few Newton steps suffice unless other rows bind. Compute in a context
    of ``N_DIGITS``.

    Examples
    --------
    >>> one = exact([1.0, 4.0])  # min x + 4 w with w >= 1 / x
    >>> positive = exact([[1.0, 0.0]])
    >>> program = ExactProgram(one, positive, zeros(1), 1, positive, 1)
    >>> with localcontext() as context:
    ...     context.prec = N_DIGITS
    ...     optimum = exact_optimum(program, exact([1.0, 1.0]))
    >>> [f"{x:.12f}" for x in optimum.x]
    ['2.000000000000', '0.500000000000']
    """
    point = ExactPoint(program, unit)
    if near is not None and len(near.slack) == len(point.slack):
        point.scaled_x, point.slack, point.dual = near.scaled_x, near.slack, near.dual
        if point.follow(_LAST_BARRIER, _MOST_STEPS_NEAR, least_step=ONE):
            return point
        point = ExactPoint(program, unit)
    return point if point.follow(_FIRST_BARRIER, _MOST_STEPS, least_step=ZERO) else None


@dataclass(frozen=True)
class Amounts:
    """What of a problem moves, SI.

    Parameters
    ----------
    rows, least : rules as ``rows . B >= least``, shapes (n_rules, n_dims) and (n_rules,).
    equal : of each rule, whether its row is an equality.
    floors, floor : what B is never below, ``floors . B >= floor``, one row per dimension.
    price : USD per byte/s, shape (n_dims,).
    fixed_usd : fixed cost.
    limit_s : tightest step-time limit less what no bandwidth changes, if there is one.
    """

    rows: Exact
    least: Exact
    equal: tuple[bool, ...]
    floors: Exact
    floor: Exact
    price: Exact
    fixed_usd: Decimal
    limit_s: Decimal | None

    def with_row(self, row: Exact, least: Decimal, *, equal: bool = False) -> Amounts:
        """With one more rule."""
        rows, bounds = np.vstack([self.rows, row]), filled([*self.least, least])
        return replace(self, rows=rows, least=bounds, equal=(*self.equal, equal))

    @property
    def per_cost(self) -> Amounts:
        """The same over (B/C, 1/C), where the largest 1/C is the cheapest (see ``per_cost``)."""
        n = len(self.price)
        floors = exact(np.eye(n + 1))
        floors[:n, n] = -self.floor
        over_cost = replace(
            self,
            rows=np.column_stack([self.rows, -self.least]),
            least=zeros(len(self.least)),
            floors=floors,
            floor=zeros(n + 1),
            price=filled([*zeros(n), -ONE]),
            fixed_usd=ZERO,
            limit_s=None,
        )
        return over_cost.with_row(filled([*self.price, self.fixed_usd]), ONE, equal=True)


def amounts(problem: Problem, constant_s: float) -> Amounts:
    """The numbers of a problem, in a context of ``N_DIGITS``."""
    n_dims = problem.topology.n_dims
    signs = filled(-ONE if rule.sense == "<=" else ONE for rule in problem.rules)
    rows = exact([rule.coefficients for rule in problem.rules]).reshape(-1, n_dims)
    limits = [Decimal(limit.limit_s) for limit in problem.step_time_limits]
    return Amounts(
        rows=rows * signs[:, None],
        least=exact([rule.bound for rule in problem.rules]) * signs,
        equal=tuple(rule.sense == "==" for rule in problem.rules),
        floors=exact(np.eye(n_dims)),
        floor=zeros(n_dims),
        price=exact(problem.price_usd_per_Bps),
        fixed_usd=Decimal(problem.fixed_cost_usd),
        limit_s=min(limits) - Decimal(constant_s) if limits else None,
    )


@dataclass(frozen=True)
class ExactOptimum:
    """An optimum, exact.

    Parameters
    ----------
    bandwidth : shape (n_dims,), bytes/s.
    communication_s : step time without its constant, ``Neighborhood.constant_s``.
    cost_usd : network and fixed cost.
    point : where neighbors are solved from.
    per_cost : the point is over (B/C, 1/C), see ``per_cost``.
    """

    bandwidth: Exact
    communication_s: Decimal
    cost_usd: Decimal
    point: ExactPoint
    per_cost: bool


class Neighborhood:
    """Solver of problems next to one problem.

    Parameters
    ----------
    problem : with one step time and linear prices.
    typical : its optimum, shape (n_dims,), bytes/s: the units of the solver; 1 GB/s where no
        bandwidth at all is best.
    """

    def __init__(self, problem: Problem, typical: Array) -> None:
        self.problem, self._plans = problem, batch.Plans.of(batch.BatchProgram.of([problem]))
        self._unit = exact(np.maximum(typical, _UNUSED * typical.max() or BYTES_PER_S_PER_GBPS))
        self._plain = _System(self._plans, self._unit)
        self.constant_s = self._plain.constant_s
        self.amounts = amounts(problem, self.constant_s)

    @cached_property
    def _product(self) -> _System:
        """The step time of the problem over (B/C, 1/C)."""
        cost_usd = self.amounts.price @ self._unit + self.amounts.fixed_usd
        return _System(batch.per_cost_plans(self._plans), filled([*self._unit, ONE]) / cost_usd)

    def optimum(
        self, at: Amounts, near: ExactOptimum | None = None, *, last: bool = False
    ) -> ExactOptimum | None:
        """The optimum, ties broken as in C9; ``None`` without one.

        Time x cost is quasi-convex: where its optimum is too slow, the best design is the
        cheapest that is not. A neighbor's optimum is a good start. Of optima of one time and
        cost the ``last`` is at the other end.
        """
        if self.problem.objective == "performance_per_cost":
            found = self._optimum(at, near, last=last, per_cost=True)
            if found is None or at.limit_s is None or found.communication_s <= at.limit_s:
                return found
        return self._optimum(at, near, last=last, per_cost=False)

    def _optimum(
        self, at: Amounts, near: ExactOptimum | None, *, last: bool, per_cost: bool
    ) -> ExactOptimum | None:
        start = near.point if near and near.per_cost == per_cost else None
        system, moved = (self._product, at.per_cost) if per_cost else (self._plain, at)
        fastest = per_cost or self.problem.objective == "performance"
        point = system.optimum(moved, start, fastest=fastest, last=last)
        if point is None:
            return None
        n_dims = len(at.price)
        b = point.x[:n_dims] / (point.x[n_dims] if per_cost else ONE)
        time_s = self._plain.time_s(b)
        return ExactOptimum(b, time_s, at.fixed_usd + at.price @ b, point, per_cost)

    def bound(self, found: ExactOptimum, upper: Array) -> Decimal:
        """Proven bound on the objective of the problem itself, in its unit.

        Parameters
        ----------
        found : its optimum, without anything moved.
        upper : bounds of B, bytes/s, shape (n_dims,).
        """
        objective, at = self.problem.objective, self.amounts
        if found.per_cost:
            system = self._product
            return system.bound(found.point, system.time, row_bounds(system.rules)[1])
        system = self._plain
        if objective == "performance":
            return Decimal(self.constant_s) + system.bound(found.point, system.time, upper)
        cost_usd = at.fixed_usd + system.bound(found.point, system.over_b(at.price), upper)
        # Too slow without the step-time limit: the least product is on it (``objectives``).
        time_s = Decimal(self.constant_s) + (at.limit_s or 0)
        return cost_usd if objective == "cost" else time_s * cost_usd


class _System:
    """The lifted step time of a problem over x = (b, w), with its unit."""

    def __init__(self, plans: batch.Plans, unit_b: Exact) -> None:
        lifted = plans.lifted
        self.rules, self.constant_s = plans.rules, float(lifted.constant_s[0])
        self.n_b, self.n_w = len(unit_b), len(lifted.objective)
        self.forms, self.rows = exact(lifted.forms), exact(lifted.rows[..., 0])
        self.offsets = exact(lifted.offsets[..., 0])
        self.time = np.concatenate([zeros(self.n_b), exact(lifted.objective[:, 0])])
        self.unit = np.concatenate([unit_b, filled(x or ONE for x in self._least_w(unit_b))])

    def over_b(self, rows: Exact) -> Exact:
        """Rows over b, or one of them, as rows over (b, w)."""
        return np.concatenate([rows, zeros(*rows.shape[:-1], self.n_w)], axis=-1)

    def time_s(self, b: Exact) -> Decimal:
        """Communication time."""
        return Decimal(self.time[self.n_b :] @ self._least_w(b))

    def optimum(
        self, at: Amounts, near: ExactPoint | None, *, fastest: bool, last: bool
    ) -> ExactPoint | None:
        """The fastest or the cheapest design within the step-time limit."""
        price, equal = self.over_b(at.price), list(at.equal)
        first, second = (self.time, price) if fastest else (price, self.time)
        limits = [] if at.limit_s is None else [at.limit_s]
        epigraph = np.hstack([zeros(len(self.rows), self.n_b), -self.rows])
        rules = self.over_b(np.vstack([at.rows, -at.rows[equal]]))
        program = ExactProgram(
            cost=self._ranked(first, second, last=last),
            rows=np.vstack(
                [epigraph, rules, *[-self.time for _ in limits], self.over_b(at.floors)]
            ),
            least=filled(
                [*self.offsets, *at.least, *-at.least[equal], *[-s for s in limits], *at.floor]
            ),
            n_firm=len(at.floor),
            forms=self.over_b(self.forms),
            first=self.n_b,
        )
        return exact_optimum(program, self.unit, near)

    def bound(self, point: ExactPoint, cost: Exact, upper_b: Array) -> Decimal:
        """Proven: the least ``cost . x`` of what the point is the optimum of."""
        endless = filled([Decimal("Infinity")] * self.n_w)
        return point.bound(cost, np.concatenate([exact(upper_b), endless]))

    def _ranked(self, first: Exact, second: Exact, *, last: bool) -> Exact:
        """One objective before the other, then every bandwidth in turn, by tiny weights.

        Bandwidths are to be small, or large for the ``last`` of the optima.
        """
        total: Exact = _sized(first, self.unit) + _TIE * _sized(second, self.unit)
        tie = -_TIE * _FIRST_TIE if last else _TIE * _FIRST_TIE
        for i in range(self.n_b):
            total[i] += tie * _NEXT_TIE**i / self.unit[i]
        return total

    def _least_w(self, b: Exact) -> Exact:
        """Reciprocals, then each maximum from its rows."""
        reciprocals = filled(ONE / x if x else ZERO for x in self.forms @ b)
        w: Exact = least_w(reciprocals[:, None], self.rows[:, :, None], self.offsets[:, None])
        return w[:, 0]


def _sized(row: Exact, unit: Exact) -> Exact:
    """A row whose largest term is 1 at the unit."""
    return np.asarray(row / (max(abs(row * unit)) or ONE))


def certain_solution(problem: Problem, lower: Array, upper: Array) -> Solution | None:
    """The optimum to 30 digits, rounded, with its proof; ``None`` where no method finds one.

    Roots are beyond the method.

    Parameters
    ----------
    problem : with one step time and linear prices.
    lower, upper : bounds of every bandwidth under the linear rules, bytes/s, shape (n_dims,).
    """
    plans = batch.plans_alone(problem, lower, upper)
    if plans.structure.has_roots:
        return None
    typical = batch.typical_designs(plans)[:, 0]
    with localcontext() as context:
        context.prec = N_DIGITS
        nearby = Neighborhood(problem, typical)
        found = nearby.optimum(nearby.amounts)
        if found is None:
            return None
        bound = nearby.bound(found, upper)
        other = nearby.optimum(nearby.amounts, last=True)
        apart = max(abs(found.bandwidth - other.bandwidth)) if other else Decimal("Infinity")
        unique = bool(apart <= _TIED * max(found.bandwidth))
    bandwidth = found.bandwidth.astype(np.float64)
    used = plans.structure.rows > 0
    alone = used[used.sum(axis=1) == 1].any(axis=0)
    kept = (bandwidth > 0) & (alone | (bandwidth > _DUST * typical))  # Dust is swept.
    program = batch.program_near(plans, np.where(kept, bandwidth, typical)[:, None])
    b = restored(program, np.where(kept, 1.0, 0.0)[:, None]) * program.bandwidth_unit
    design = design_at(problem, b[:, 0], float(bound), unique=unique)
    return Solution(design, problem, has_neighbors=bool(len(used)))
