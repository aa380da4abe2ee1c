"""Linear programs over (b, w) with the reciprocals replaced by tangent cuts.

1/x is convex, so each tangent ``2/p - x/p^2`` at a point p bounds it from below: the
linear program bounds the convex one, and the more cuts the closer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from libra_planner.errors import SolverFailed
from libra_planner.optimizer.program import Program, Weights
from libra_planner.step.expression import Array

_OPTIONS: tuple[dict[str, float | bool], ...] = (
    {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False},
    {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9, "presolve": False},
)
"""HiGHS settings, tried in turn: its presolve misjudges some sets that are very thin."""
OPTIMAL, INFEASIBLE, UNBOUNDED = 0, 2, 3


@dataclass(frozen=True)
class Solution:
    """Vertex of a linear program and its multipliers.

    ``upper_dual`` (0 or more) and ``equal_dual`` belong to rows ``A x <= h``, ``E x == e``.
    """

    status: int
    point: Array
    value: float
    upper_dual: Array
    equal_dual: Array


def solve_lp(
    cost: Array,
    upper: Array,
    limit: Array,
    equal: Array,
    target: Array,
    *,
    lower_bounds: float = 0.0,
    upper_bounds: Array | None = None,
) -> Solution:
    """min cost.x subject to ``upper x <= limit``, ``equal x == target`` and bounds, by HiGHS."""
    top = np.full(len(cost), np.inf) if upper_bounds is None else upper_bounds
    bounds = np.column_stack([np.full(len(cost), lower_bounds), top])
    for options in _OPTIONS:
        result = linprog(cost, upper, limit, equal, target, bounds, "highs", options=options)
        if result.status == OPTIMAL:
            break
    if result.status != OPTIMAL:
        nothing = np.empty(0)
        return Solution(int(result.status), nothing, np.nan, nothing, nothing)
    return Solution(
        OPTIMAL,
        result.x,
        float(result.fun),
        np.maximum(-result.ineqlin.marginals, 0.0),
        -result.eqlin.marginals,
    )


@dataclass
class CutModel:
    """A program's linear outer approximation; cuts are added as points are visited.

    Parameters
    ----------
    program : the convex program.
    weights : what is minimised.
    incumbent : that, at a known design: the boxes of b and w hold every design that
        is at least as good.
    """

    program: Program
    weights: Weights
    incumbent: float
    _forms: list[int] = field(default_factory=list)
    _points: list[float] = field(default_factory=list)

    def add_cuts(self, x: Array) -> None:
        """Tangents at form values x, shape (n_forms,)."""
        self._forms += range(len(x))
        self._points += [float(point) for point in x]

    @property
    def w_upper(self) -> Array:
        """Upper bounds of w over designs no worse than the incumbent."""
        worst = self.incumbent / self.weights.time if self.weights.time else np.inf
        slowest = min(worst, self.program.time_limit) * (1 + 1e-9)
        return (slowest + self.program.hidden) / self.program.floors

    @property
    def b_upper(self) -> Array:
        """Upper bounds of b over designs no worse than the incumbent."""
        priced = self.weights.cost * self.program.price
        affordable = self.incumbent / np.where(priced > 0, priced, 1.0) * (1 + 1e-9)
        return np.fmin(self.program.b_upper, np.where(priced > 0, affordable, np.inf))

    @property
    def cost(self) -> Array:
        """What is minimised, as a row over (b, w)."""
        priced = self.weights.cost * self.program.price
        return np.concatenate([priced, self.weights.time * self.program.time])

    def rows(self) -> tuple[Array, Array]:
        """Inequality rows over (b, w): rules, epigraph, cuts (in this order)."""
        program = self.program
        n_w = len(program.time)
        w_rows, w_offsets = program.w_rows
        rules = np.hstack([program.rules.upper, np.zeros((len(program.rules.upper), n_w))])
        epigraph = np.hstack([np.zeros((len(w_rows), program.n_dims)), w_rows])
        points = np.array(self._points)
        cuts = np.zeros((len(points), program.n_variables))
        # Scaled by the point: -(x/p) - p u <= -2, so that rows near 0 stay well sized.
        cuts[:, : program.n_dims] = -program.forms[self._forms] / points[:, None]
        cuts[np.arange(len(points)), program.n_dims + np.array(self._forms, dtype=int)] = -points
        limits = [program.rules.limit, -w_offsets, np.full(len(points), -2.0)]
        return np.vstack([rules, epigraph, cuts]), np.concatenate(limits)

    def form_weights(self, upper_dual: Array) -> Array:
        """Sensitivity of the objective to each reciprocal, from the cuts' multipliers."""
        duals = upper_dual[len(upper_dual) - len(self._points) :] * np.array(self._points)
        weights = np.bincount(self._forms, duals, minlength=self.program.n_forms)
        return weights.astype(np.float64)

    def equal_rows(self) -> tuple[Array, Array]:
        """Equality rows over (b, w)."""
        rules = self.program.rules
        n_w = len(self.program.time)
        return np.hstack([rules.equal, np.zeros((len(rules.equal), n_w))]), rules.target

    def minimize(
        self,
        cost: Array,
        extra: Array | None = None,
        extra_limit: Array | None = None,
        fixed: Array | None = None,
        fixed_value: Array | None = None,
    ) -> Solution:
        """min cost.(b, w) over the model with extra inequality and equality rows."""
        upper, limits = _stacked(self.rows(), extra, extra_limit)
        equal, targets = _stacked(self.equal_rows(), fixed, fixed_value)
        top = np.concatenate([self.b_upper * (1 + 1e-9), self.w_upper])
        return solve_lp(cost, upper, limits, equal, targets, upper_bounds=top)

    def lower_bound(self) -> tuple[float, Solution]:
        """Proven bound on what is minimised, with the vertex that goes with it.

        Weak duality in floating point: for any multipliers y >= 0 and z the Lagrangian's
        minimum over the box of (b, w) is a bound, whatever the solver's accuracy
        (Neumaier and Shcherbina, Math. Program. 99, 2004).
        """
        cost = self.cost
        solution = self.minimize(cost)
        if solution.status != OPTIMAL:
            raise SolverFailed(f"the bounding linear program ended with status {solution.status}")
        upper, limits = self.rows()
        equal, targets = self.equal_rows()
        y, z = solution.upper_dual, solution.equal_dual
        reduced = cost + upper.T @ y + equal.T @ z
        top = np.concatenate([self.b_upper, self.w_upper])
        noise = np.abs(upper).T @ y + np.abs(equal).T @ np.abs(z)
        unlimited = np.isinf(top) & (np.abs(reduced) <= 1e-13 * (1 + noise))
        reduced[unlimited] = 0.0
        slack = np.where(reduced < 0, reduced * np.where(reduced < 0, top, 0.0), 0.0)
        return float(-y @ limits - z @ targets + slack.sum()), solution


def _stacked(
    system: tuple[Array, Array], rows: Array | None, values: Array | None
) -> tuple[Array, Array]:
    if rows is None or values is None:
        return system
    return np.vstack([rows, system[0]]), np.concatenate([values, system[1]])
