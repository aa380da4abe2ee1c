"""The cost that a plan is optimised at, beside its bill: what each holds, by line (C8, C22)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.procurement.bill import NETWORK, NPU, ZERO, Line, to_cents
from libra_planner.procurement.bought.bridges import Bridge
from libra_planner.procurement.candidate import Candidate


@dataclass(frozen=True)
class CostLine:
    """What the plan's cost and the bill have for the same things; they share no line.

    Parameters
    ----------
    plan_usd, bill_usd : of the cost that ``optimize`` prints, and of the bill's lines.
    bridge : of a dimension of the training network; ``None`` for what is no network.
    has_npus, has_rest : whether it holds NPUs, and all else that is no network.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Part
    >>> rest = CostLine(Decimal(30), Decimal(20), has_rest=True)
    >>> rest.difference_usd, rest.holds(Line("network", "dim1", Part("n", "nic", ""), 1))
    (Decimal('-10'), False)
    """

    plan_usd: Decimal
    bill_usd: Decimal
    bridge: Bridge | None = None
    has_npus: bool = False
    has_rest: bool = False

    @property
    def difference_usd(self) -> Decimal:
        """What the bill has more."""
        return self.bill_usd - self.plan_usd

    def holds(self, line: Line) -> bool:
        """Whether a line of the bill is one of its own."""
        if self.bridge is not None:
            return line.dimension == self.bridge.built.label
        is_npu = line.part.kind == NPU
        return line.group != NETWORK and (self.has_npus if is_npu else self.has_rest)


def cost_lines(one: Candidate) -> tuple[CostLine, ...]:
    """NPUs, all else that is no network, and the dimensions of the training network.

    NPUs and all else are one line where the plan gives one amount for both. The sums are the
    plan's cost and the total of the bill; a plan that is priced by its bill has that on both sides.
    """
    prices = one.proposal.problem.prices
    fixed, npus = to_cents(prices.fixed_usd), to_cents(prices.fixed_npus_usd)
    found = [CostLine(npus, ZERO, has_npus=True), CostLine(fixed - npus, ZERO, has_rest=True)]
    if fixed and not npus:
        found = [CostLine(fixed, ZERO, has_npus=True, has_rest=True)]
    found += [CostLine(bridge.linear_usd, ZERO, bridge) for bridge in one.bridges]
    return tuple(_billed(line, one) for line in found)


def _billed(line: CostLine, one: Candidate) -> CostLine:
    """The line with its share of the bill."""
    usd = sum((x.extended_usd or ZERO for x in one.bill.lines if line.holds(x)), ZERO)
    is_bill = one.proposal.problem.prices.bills is not None
    return replace(line, bill_usd=usd, plan_usd=usd if is_bill else line.plan_usd)
