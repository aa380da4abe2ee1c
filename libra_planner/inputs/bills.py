"""Plans at the money of the bill: every option of their fabric as whole parts (C22).

Each option is built from whole links, whose bandwidth is the option's, and bought: its bill is the
one that ``report`` prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from libra_planner.costs.bills import BillTable, FabricOption
from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import realize
from libra_planner.inputs.parts import BUNDLED_PARTS, Catalogue, load_parts, plan_npu
from libra_planner.plan import problem as plans
from libra_planner.plan.options import BILL, RULED_OUT
from libra_planner.plan.training import plan_spec
from libra_planner.problem import Problem, with_bills
from libra_planner.procurement import lines
from libra_planner.procurement.bill import ZERO, Bill, Line, Part
from libra_planner.procurement.bought.servers import Facility, server_with
from libra_planner.procurement.lines import Book, FabricShop, Purchase
from libra_planner.procurement.options import fabric_options, option_fault
from libra_planner.reading.document import Document


@dataclass
class Bills:
    """Bills of designs at one parts catalogue, and what they share.

    Parameters
    ----------
    parts : name of the catalogue, or its path; it is read when it is first needed.
    """

    parts: str = BUNDLED_PARTS
    _sides: dict[tuple[str, int], tuple[Line, ...]] = field(default_factory=dict)
    _shop: tuple[object, str, FabricShop] | None = None

    @cached_property
    def catalogue(self) -> Catalogue:
        """The parts, and what is assumed beside them."""
        return load_parts(self.parts)

    def bill(self, problem: Problem, bought: Purchase, npu: Part | None) -> Bill:
        """The bill of a design, as a report has it; :meth:`system` says the rest."""
        return self.system(problem, bought, npu)[0]

    def system(self, problem: Problem, bought: Purchase, npu: Part | None) -> tuple[Bill, Facility]:
        """The bill of a design, as a report has it, and its racks.

        Parameters
        ----------
        problem : its plan; rules do not matter.
        bought : the design from whole ports.
        npu : that the plan buys; ``None`` for the catalogue's.

        Raises
        ------
        SpecError
            For more servers than a network beside the training fabric joins.
        """
        shop = self.shop(problem)
        key = shop.assumptions.server.name, shop.n_servers(bought)
        if key not in self._sides:
            self._sides[key] = lines.side_lines(bought, shop)
        return lines.system_bill(bought, shop, npu, self._sides[key])

    def shop(self, problem: Problem) -> FabricShop:
        """Where a plan buys; the same one for all options of it, which knows its choices."""
        parts, assumed = self.catalogue.parts, self.catalogue.assumptions
        server = server_with(problem.scale_up, parts, assumed.server)
        found = self._shop
        if found is None or found[0] is not problem.prices or found[1] != server.name:
            book, quotes = Book(problem.prices.parts), problem.prices.quotes
            shop = FabricShop(parts, replace(assumed, server=server), book, quotes)
            if found is not None and found[2].quotes != quotes:
                self._sides.clear()  # Quotes decide between parts there, too.
            self._shop = found = problem.prices, server.name, shop
        return found[2]

    def npu(self, document: Document, beside: Path) -> Part | None:
        """The NPU that a plan buys, as a part."""
        spare_fraction = self.catalogue.assumptions.npu.spare_fraction
        return plan_npu(plan_spec(document), beside, spare_fraction)


def build_plan(
    document: Document, beside: Path, bills: Bills, *, holds_memory: bool = True
) -> Problem:
    """The problem of a plan; one that says ``prices: bill`` has the bill of each of its options.

    Parameters
    ----------
    document, beside : the plan, and the folder that its paths are relative to.
    bills : of the catalogue that is bought from; several plans may share it.
    holds_memory : as :func:`libra_planner.plan.problem.build_plan` has it.

    Raises
    ------
    SpecError
        With every fault found.
    """
    try:
        problem = plans.build_plan(document, beside, bills.parts, holds_memory=holds_memory)
    except SpecError as error:
        raise SpecError(*error.faults, *_further_faults(document, error, beside, bills)) from None
    if problem.prices.choice is None:
        return problem
    return billed(problem, bills, bills.npu(document, beside))


def _further_faults(
    document: Document, error: SpecError, beside: Path, bills: Bills
) -> tuple[Fault, ...]:
    """What else ``prices: bill`` asks of a plan whose only faults are what it rules out."""
    is_other = {fault.path for fault in error.faults} - set(RULED_OUT)
    if is_other or document.value.get("prices") != BILL:
        return ()
    kept = {key: value for key, value in document.value.items() if key not in RULED_OUT}
    without = replace(document, value=kept)
    try:
        fabric_options(plans.build_plan(without, beside, bills.parts, holds_memory=False))
    except SpecError as further:
        return further.faults
    return ()


def billed(problem: Problem, bills: Bills, npu: Part | None) -> Problem:
    """A plan with the bill of every option that it lists.

    Options that cannot be built, or whose parts have no price, are left out and named.

    Parameters
    ----------
    problem : of a plan with ``prices: bill``.
    bills, npu : where it is bought, and its NPU.

    Raises
    ------
    SpecError
        For bandwidths that nothing determines, too many options, or none that can be bought.
    """
    found: list[_Priced] = []
    left_out: list[tuple[FabricOption, str]] = []
    for option in fabric_options(problem):
        try:
            whole, bill = _bought(problem, option, bills, npu)
        except SpecError as error:
            refuse(x.located(problem.place(x.path)) for x in error.faults if x.is_misspelt)
            left_out.append((option, "; ".join(fault.got for fault in error.faults)))
            continue
        if bill.missing:
            names = ", ".join(part.name for part in bill.missing)
            left_out.append((option, f"got no price of {names}"))
        else:
            found.append(_priced(whole, bill, problem.topology.labels))
    if not found:
        option, why = left_out[0]
        named = option.text(problem.topology.tiers)
        got = f"got no option that can be bought, such as {named} ({why})"
        fix = "list other NICs, tapers or switches"
        raise SpecError(option_fault(problem, got, "expected one", fix))
    found.sort(key=lambda one: (one.option.bandwidth_Bps, one.usd))
    return with_bills(
        problem,
        BillTable(
            options=tuple(one.option for one in found),
            usd=np.array([one.usd for one in found]),
            low_usd=np.array([one.low_usd for one in found]),
            high_usd=np.array([one.high_usd for one in found]),
            usd_by_dim=np.array([one.usd_by_dim for one in found]),
            left_out=tuple(left_out),
        ),
    )


class _Priced(NamedTuple):
    """An option and the figures of its bill that a search needs."""

    option: FabricOption
    usd: float
    low_usd: float
    high_usd: float
    usd_by_dim: list[float]


def _priced(option: FabricOption, bill: Bill, labels: Sequence[str]) -> _Priced:
    by_dim = bill.usd_by(lambda line: line.dimension)
    low, high = bill.ends_usd
    usd_by_dim = [float(by_dim.get(label, ZERO)) for label in labels]
    return _Priced(option, float(bill.total_usd), float(low), float(high), usd_by_dim)


def option_bill(problem: Problem, option: FabricOption, bills: Bills, npu: Part | None) -> Bill:
    """The bill of an option with all its lines, as a report has it."""
    return _bought(problem, option, bills, npu)[1]


def _bought(
    problem: Problem, option: FabricOption, bills: Bills, npu: Part | None
) -> tuple[FabricOption, Bill]:
    """An option at the bandwidth of its whole links, and its bill."""
    links = option.realization
    design = realize(problem.topology, option.bandwidth_Bps, links)
    parts = design_parts(design).dimensions
    bill = bills.bill(problem, Purchase(design, parts, links.networks, (), problem.scale_up), npu)
    return replace(option, bandwidth_Bps=tuple(design.bandwidth_Bps.tolist())), bill
