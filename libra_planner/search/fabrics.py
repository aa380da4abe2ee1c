"""Fabrics that a search chooses from: one that is given, or all that a plan's rules allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from libra_planner.costs.bills import BillTable
from libra_planner.errors import Fault, IllPosed, Infeasible, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.frozen import Frozen
from libra_planner.optimizer.bills import optimize_bills
from libra_planner.optimizer.optimize import batch_optimize, optimize, reason
from libra_planner.optimizer.programs import posedness
from libra_planner.problem import RULE_TOLERANCE, Problem, Rule
from libra_planner.step.collectives.algorithms import Network
from libra_planner.step.collectives.models import CollectiveModel
from libra_planner.step.expression import Array, Constant, TimeExpression
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.training import Step, member, plain_step

PROVEN, INFEASIBLE, UNPROVEN = "proven", "infeasible", "unproven"
_STATUS: Mapping[str, str] = MappingProxyType({"optimal": PROVEN, "infeasible": INFEASIBLE})


class Cell(NamedTuple):
    """Some of the fabrics, none faster in any dimension than ``upper``, none cheaper than ``usd``.

    Parameters
    ----------
    lower, upper : bandwidth, byte/s, shape (n_dims,); infinite without an end.
    usd : cost.
    rows : options of a bill that it holds; empty where bandwidth is continuous.
    """

    lower: Array
    upper: Array
    usd: float
    rows: tuple[int, ...] = ()


class Optimum(NamedTuple):
    """The best fabric for one strategy.

    Parameters
    ----------
    bandwidth_bytes_per_s : shape (n_dims,).
    step_time_s, cost_usd : there.
    objective, lower_bound : of a step, and what no fabric beats.
    status : proven, infeasible or unproven.
    """

    bandwidth_bytes_per_s: Array
    step_time_s: float
    cost_usd: float
    objective: float
    lower_bound: float
    status: str = PROVEN


class Fabrics(Protocol):
    """What a search may build on."""

    @property
    def network(self) -> Network:
        """As collectives meet it."""

    @property
    def model(self) -> CollectiveModel:
        """Of collectives."""

    @property
    def objective(self) -> str:
        """Of :data:`~libra_planner.evaluation.OBJECTIVES`."""

    @property
    def limit_s(self) -> float:
        """Longest step time that is allowed."""

    @property
    def is_given(self) -> bool:
        """Whether there is one, so that bounds are exact."""

    @property
    def whole(self) -> Cell:
        """All of them."""

    def parts(self, cell: Cell, near: Array) -> tuple[Cell, ...]:
        """A cell in smaller ones, cut near a bandwidth; itself where it cannot be cut."""

    def optima(self, trainings: Sequence[ModelTraining]) -> list[Optimum]:
        """The best of them for each training."""


@dataclass(frozen=True)
class GivenFabric:
    """One fabric: strategies are compared at its bandwidth.

    Parameters
    ----------
    network, model : as collectives meet it, and how long they take.
    bandwidth_bytes_per_s : shape (n_dims,).
    cost_usd : of it; 0 where nobody asks.
    """

    network: Network
    model: CollectiveModel
    bandwidth_bytes_per_s: Array
    cost_usd: float = 0.0
    objective: str = "performance"
    limit_s: float = np.inf

    @property
    def is_given(self) -> bool:
        """It is."""
        return True

    @property
    def whole(self) -> Cell:
        """Itself."""
        return Cell(self.bandwidth_bytes_per_s, self.bandwidth_bytes_per_s, self.cost_usd)

    def parts(self, cell: Cell, near: Array) -> tuple[Cell, ...]:
        """Itself."""
        del near
        return (cell,)

    def optima(self, trainings: Sequence[ModelTraining]) -> list[Optimum]:
        """Each at the bandwidth, by the time expression."""
        found = []
        for training in trainings:
            time_s = float(training.step_time(self.model).seconds(self.bandwidth_bytes_per_s))
            value = float(OBJECTIVES[self.objective](time_s, self.cost_usd))
            status = PROVEN if time_s <= self.limit_s * (1 + RULE_TOLERANCE) else INFEASIBLE
            figures = time_s, self.cost_usd, value, value
            found.append(Optimum(self.bandwidth_bytes_per_s, *figures, status))
        return found


@dataclass(frozen=True)
class PlannedFabrics(Frozen):
    """All bandwidths and options that a plan allows; the optimizer proves the best of them.

    Parameters
    ----------
    problem : its rules, prices and objective; its step does not matter.

    Raises
    ------
    SpecError
        For an objective that a search does not have, and for a group of workloads.
    """

    problem: Problem = field(repr=False)

    def __post_init__(self) -> None:
        if self.problem.objective == "cost":
            expected = "expected performance or performance_per_cost in a search"
            fix = "search --pareto begins at the least cost"
            fault = Fault("got the objective cost", expected, fix, "objective")
            raise SpecError(fault)
        if self.problem.step.is_group:
            expected = "expected one workload in a search"
            raise SpecError(Fault("got a group of workloads", expected, path="workloads"))

    @property
    def network(self) -> Network:
        """Of the plan."""
        return self.problem.network

    @property
    def model(self) -> CollectiveModel:
        """Of the plan."""
        return self.problem.step.model

    @property
    def objective(self) -> str:
        """Of the plan."""
        return self.problem.objective

    @property
    def limit_s(self) -> float:
        """The tightest rule over step time."""
        return min((limit.limit_s for limit in self.problem.step_time_limits), default=np.inf)

    @property
    def is_given(self) -> bool:
        """There are many."""
        return False

    @cached_property
    def _idle(self) -> Problem:
        """The plan without a step: what is cheapest under its rules."""
        n_dims = self.problem.topology.n_dims
        step = plain_step(TimeExpression(Constant(1.0), n_dims))
        return replace(
            self.problem, step=step, objective="cost", step_time_limits=(), alternatives=()
        )

    @cached_property
    def whole(self) -> Cell:
        """Within the least and greatest bandwidth of each dimension, at the least cost."""
        bills = self.problem.prices.bills
        if bills is not None:
            rows = optimize_bills(self._idle).ranked
            return self._of_rows(tuple(sorted(map(int, rows))))
        lower, upper = posedness.bandwidth_bounds(self.problem)
        upper = upper * (1 + RULE_TOLERANCE)
        for i, options in self.problem.purchasable.items():
            upper[i] = min(upper[i], max(one.bandwidth_bytes_per_s for one in options))
        return Cell(lower, upper, self._least_usd)

    @property
    def bills(self) -> BillTable:
        """Of the plan, which is priced by them."""
        if self.problem.prices.bills is None:
            raise SpecError(Fault("got no bills", "expected a plan with prices: bill"))
        return self.problem.prices.bills

    @cached_property
    def _least_usd(self) -> float:
        """Cost of the cheapest fabric, a proven bound."""
        try:
            return optimize(self._idle).lower_bound * (1 - RULE_TOLERANCE)
        except IllPosed:  # A network that costs nothing meets the rules.
            return self.problem.fixed_cost_usd

    def _of_rows(self, rows: tuple[int, ...]) -> Cell:
        bills = self.bills
        speeds, usd = bills.bandwidth_Bps[list(rows)], bills.usd[list(rows)]
        return Cell(speeds.min(axis=0), speeds.max(axis=0), float(usd.min()), rows)

    def parts(self, cell: Cell, near: Array) -> tuple[Cell, ...]:
        """Halves along the dimension that is widest, each as tight as the rules make it."""
        if cell.rows:
            half = len(cell.rows) // 2
            return tuple(
                self._of_rows(rows) for rows in (cell.rows[:half], cell.rows[half:]) if rows
            )
        if self.problem.options:
            return (cell,)
        dim, at = _cut(cell, near)
        axis = tuple(float(i == dim) for i in range(len(near)))
        found = (self._part(cell, Rule("cell", axis, sense, at)) for sense in ("<=", ">="))
        return tuple(one for one in found if one is not None)

    def _part(self, cell: Cell, cut: Rule) -> Cell | None:
        rules = [*self.problem.rules, cut]
        for i, (least, most) in enumerate(zip(cell.lower, cell.upper, strict=True)):
            axis = tuple(float(i == j) for j in range(len(cell.lower)))
            rules.append(Rule("cell", axis, ">=", float(least) * (1 - RULE_TOLERANCE)))
            if np.isfinite(most):
                rules.append(Rule("cell", axis, "<=", float(most) * (1 + RULE_TOLERANCE)))
        try:
            lower, upper = posedness.bandwidth_bounds(replace(self.problem, rules=tuple(rules)))
        except Infeasible:
            return None
        network_usd = float(lower @ self.problem.price_usd_per_Bps) * (1 - RULE_TOLERANCE)
        usd = max(cell.usd, self.problem.fixed_cost_usd + network_usd)
        return Cell(lower, np.minimum(cell.upper, upper * (1 + RULE_TOLERANCE)), usd)

    def optima(self, trainings: Sequence[ModelTraining]) -> list[Optimum]:
        """Each with its bandwidth optimised, and proven (C9)."""
        problems = [self.with_training(one) for one in trainings]
        batch = batch_optimize(problems)
        found = []
        for i, problem in enumerate(problems):
            status = str(batch.status[i])
            if status == "ill_posed":
                raise IllPosed(batch.messages.get(i) or reason(problem))
            optimum = Optimum(
                batch.bandwidth_bytes_per_s[i],
                float(batch.step_time_s[i]),
                float(batch.cost_usd[i]),
                float(batch.objective[i]),
                float(batch.lower_bound[i]),
                _STATUS.get(status, UNPROVEN),
            )
            found.append(optimum)
        return found

    def with_training(self, training: ModelTraining) -> Problem:
        """The plan with a training in the place of its own."""
        model, name = self.model, training.workload.name
        step = Step((member(training, name, 1.0, model),), name, model=model)
        return replace(self.problem, step=step, alternatives=())


def _cut(cell: Cell, near: Array) -> tuple[int, float]:
    """The dimension whose bandwidth varies most in a cell, and where to cut it."""
    least = np.maximum(cell.lower, 1e-3 * near)
    most = np.where(np.isfinite(cell.upper), np.maximum(cell.upper, least), 1e3 * near)
    dim = int(np.argmax(most / np.maximum(least, 1e-300)))
    inside = 1.05 * least[dim] < near[dim] < most[dim] / 1.05
    return dim, float(near[dim] if inside else np.sqrt(least[dim] * most[dim]))
