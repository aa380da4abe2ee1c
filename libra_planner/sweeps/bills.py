"""What the optima of a sweep cost in whole parts: the bill of ``report``, to the cent (C22)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from libra_planner.errors import PlannerError
from libra_planner.evaluation import own_links_step_time_s
from libra_planner.fabric.topology import Topology
from libra_planner.inputs.bills import Bills
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Problem, bought, fastest_alternative
from libra_planner.procurement import lines
from libra_planner.procurement.bill import Bill, Part
from libra_planner.procurement.bought.refills import tiers_text
from libra_planner.procurement.bought.server_links import ServerLinks, server_links
from libra_planner.procurement.candidate import billed_bandwidth_Bps
from libra_planner.procurement.cluster import free_ports
from libra_planner.procurement.rails import rewired
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


@dataclass(frozen=True)
class CheaperNetwork:
    """A network of the same bandwidths as that of a design, for less money.

    Parameters
    ----------
    what : how it differs, in words.
    settings : what makes it of the plan, each as ``--set`` takes it.
    usd, own_usd : its whole bill, and that of the design.
    gone : tiers and dimensions of which a plan may have no rules then.
    """

    what: str
    settings: tuple[str, ...]
    usd: float
    own_usd: float
    gone: tuple[str, ...]


def cheaper_network(plan: OpenedPlan, bandwidth_Bps: Array) -> CheaperNetwork | None:
    """What a report would say is open for a design: its rails wired otherwise, or fewer switches.

    ``None`` where nothing of equal groups is cheaper, or the design cannot be bought.

    Parameters
    ----------
    plan : whose strategy is not left open.
    bandwidth_Bps : of its design, shape (n_dims,).
    """
    try:
        problem = plan.problem
        if problem.prices.choice is not None:
            return None
        npu, shop = plan.bills.npu(plan.document, plan.beside), plan.bills.shop(problem)
        own, purchase = _purchased(plan.bills, problem, bandwidth_Bps, npu)
        if own.missing:
            return None
        found = [*_cheaper(purchase, shop, npu)]
    except PlannerError:
        return None
    best = min(found, key=lambda one: one[2], default=None)
    if best is None or best[2] >= own.total_usd:
        return None
    what, settings, usd, topology = best
    kept, before = {*topology.tiers, *topology.labels}, problem.topology
    gone = tuple(name for name in (*before.tiers, *before.labels) if name and name not in kept)
    return CheaperNetwork(what, settings, float(usd), float(own.total_usd), gone)


def _cheaper(
    purchase: lines.Purchase, shop: lines.FabricShop, npu: Part | None
) -> Iterator[tuple[str, tuple[str, ...], Decimal, Topology]]:
    """Those networks, with the bill of all parts and their topology."""
    if other := rewired(purchase, shop):
        bill = lines.system_bill(other.bought, shop, npu)[0]
        if not bill.missing:
            yield other.what.rstrip(","), other.settings, bill.total_usd, other.design.topology
    free = free_ports(purchase, shop, npu)
    if free is not None and free.refill is not None and not free.is_unequal:
        refill = free.refill
        own = lines.system_bill(purchase, shop, npu)[0].total_usd
        settings = tuple(one for one in refill.settings if not one.startswith("constraints="))
        yield tiers_text(refill.n_switches), settings, own - refill.saved_usd, refill.topology
