"""What the optima of a sweep cost in whole parts: the bill of ``report``, to the cent (C22)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.evaluation import own_links_step_time_s
from libra_planner.inputs.bills import Bills
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, bought, fastest_alternative
from libra_planner.procurement import lines
from libra_planner.procurement.bill import Bill, Part
from libra_planner.procurement.bought.server_links import ServerLinks, server_links
from libra_planner.procurement.candidate import billed_bandwidth_Bps
from libra_planner.step.expression import Array
from libra_planner.sweeps.spec import Chunk
from libra_planner.sweeps.template import PlanTemplate

_OF_NPU = ("fixed_cost", "npu", "workloads")
"""Keys of a plan that say which NPU is bought."""


@dataclass(frozen=True)
class Billed:
    """What is bought for a design.

    Parameters
    ----------
    bill : of all parts.
    step_time_s : T on the whole ports that are bought, as a report says it.
    excess_percent : the most that the parts of a dimension have beyond what the design asks for.
    server_links : what it asks of the links that the price of a server holds.
    """

    bill: Bill
    step_time_s: float
    excess_percent: float
    server_links: ServerLinks

    @property
    def notes(self) -> list[str]:
        """What the bill buys otherwise than the design asks for, in words."""
        links = self.server_links
        return [x for x in (links.over_text, links.unused_text, self.bill.faster_text) if x]


@dataclass
class SweepBills:
    """Bills of designs of one sweep at the bundled parts catalogue, and what they share.

    Parameters
    ----------
    template : the sweep's plan with placeholders.
    shared : bills at the bundled catalogue.
    """

    template: PlanTemplate
    shared: Bills = field(default_factory=Bills)
    _npus: dict[str, Part | None] = field(default_factory=dict)

    def billed(self, chunk: Chunk, row: int, problem: Problem, bandwidth_Bps: Array) -> Billed:
        """The bill of a design, and what it buys, as a report has them.

        Parameters
        ----------
        chunk, row : which design of the sweep.
        problem : its plan; rules do not matter.
        bandwidth_Bps : per NPU, shape (n_dims,), byte/s.

        Raises
        ------
        SpecError
            For a design that cannot be built.
        """
        chosen = fastest_alternative(problem, bandwidth_Bps)
        npu = self._npu(chunk, row)
        bill, purchase = _purchased(self.shared, problem, bandwidth_Bps, npu)
        billed_Bps = billed_bandwidth_Bps(purchase, bandwidth_Bps)
        with np.errstate(divide="ignore", invalid="ignore"):
            sold_Bps = billed_Bps * _sold_over_run(bill, problem)
            excess = np.nan_to_num(sold_Bps / bandwidth_Bps - 1, posinf=0.0)
        step_time_s = own_links_step_time_s(chosen, billed_Bps)
        links = server_links(purchase, self.shared.shop(problem).assumptions.server)
        return Billed(bill, step_time_s, float(excess.max()) * 100, links)

    def _npu(self, chunk: Chunk, row: int) -> Part | None:
        """The NPU that a design's plan buys."""
        axes = self.template.axes_of(lambda key, _: key[0] in _OF_NPU)
        key = repr(chunk.values(row, axes))
        if key not in self._npus:
            plan = OpenedPlan(self.template.filled(chunk.values(row)), self.template.beside)
            self._npus[key] = self.shared.npu(plan.with_degrees, self.template.beside)
        return self._npus[key]


def _purchased(
    bills: Bills, problem: Problem, bandwidth_Bps: Array, npu: Part | None
) -> tuple[Bill, lines.Purchase]:
    """The bill of a design, and what it buys."""
    parts = bills.catalogue.parts
    purchase = lines.purchase(bought(problem, bandwidth_Bps), bandwidth_Bps, parts)
    return bills.bill(problem, purchase, npu), purchase


def plan_bill_usd(plan: OpenedPlan, bandwidth_Bps: Array | None = None) -> float | None:
    """The bill of a plan's optimum, as :meth:`SweepBills.billed` has that of a row.

    Parameters
    ----------
    plan : whose strategy is not left open, or there is no bill.
    bandwidth_Bps : of its optimum where that is known, shape (n_dims,).

    Returns
    -------
    bill_usd : ``None`` where there is no optimum, it cannot be built, or a part has no price.
    """
    if plan.is_open:
        return None
    try:
        problem = plan.problem
        if bandwidth_Bps is None:
            bandwidth_Bps = optimize(problem).bandwidth_bytes_per_s
        npu = plan.bills.npu(plan.document, plan.beside)
        bill, _ = _purchased(plan.bills, problem, bandwidth_Bps, npu)
    except PlannerError:
        return None
    return None if bill.missing else float(bill.total_usd)


def _sold_over_run(bill: Bill, problem: Problem) -> Array:
    """Speed of the parts over that at which links run, of every dimension, shape (n_dims,)."""
    faster = {one.dimension: one.sold_Bps / one.speed_Bps for one in bill.faster_parts}
    return np.array([faster.get(label, 1.0) for label in problem.topology.labels])
