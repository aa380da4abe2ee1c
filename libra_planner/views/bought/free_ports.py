"""Whether switches of some radix stay half empty at a plan's groups, under ``prices: bill``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from libra_planner.costs.bills import BillTable, FabricOption
from libra_planner.evaluation import evaluated
from libra_planner.problem import Problem
from libra_planner.procurement.bought.refills import tiers_text
from libra_planner.step.expression import Array
from libra_planner.units import short_usd

if TYPE_CHECKING:
    from libra_planner.procurement.cluster import FreePorts


def free_port_notes(problem: Problem, bandwidth_bytes_per_s: Array) -> Iterator[str]:
    """Switches that a plan chooses among, and whose free ports decide against them.

    Of every radix the option of the best objective is held against the one that is bought, and the
    cheapest of its NICs and tapers.

    Examples
    --------
    >>> import libra_planner as lp
    >>> bought = ["nics=1 x 400 Gbps", "switch_radix=[64, 128]", "tapers={spine: 2}"]
    >>> plan = lp.load_plan("0b_bill", [f"fabric.bill_options.{one}" for one in bought])
    >>> best = plan.optimize().figures.bandwidth_bytes_per_s
    >>> [note.split(" at ")[0].split(", ", 2)[2] for note in free_port_notes(plan, best)]
    ['switches of 128 ports: 5,120 of 8,192 leaf ports stay free']
    """
    bills = problem.prices.bills
    row = -1 if bills is None else int(bills.rows(bandwidth_bytes_per_s))
    if bills is None or row < 0 or len({one.switch_radix for one in bills.options}) < 2:
        return
    values = _values(problem, bills)
    for other in dict.fromkeys((*_alike(bills, row), *_best(problem, bills, values))):
        found = _free_ports(problem, bills.options[other])
        left = 1 - float(found.less_usd) / bills.usd[other] if found else 1.0
        if found and (other == row or values[other] * left < values[row] <= values[other]):
            yield _text(problem, bills.options[other], found, is_best=other == row)


def _values(problem: Problem, bills: BillTable) -> Array:
    """What decides among options: money, or money times time, shape (n,)."""
    is_product = problem.objective == "performance_per_cost"
    return bills.usd * (problem.step_time.seconds(bills.bandwidth_Bps) if is_product else 1.0)


def _of_each_radix(bills: BillTable, order: Iterable[int]) -> list[int]:
    """The first option of every radix."""
    first: dict[int, int] = {}
    for i in order:
        first.setdefault(bills.options[i].switch_radix, i)
    return list(first.values())


def _alike(bills: BillTable, row: int) -> list[int]:
    """The cheapest option of every radix with the NICs and tapers of another one."""
    own = bills.options[row]
    asked = own.n_nics, own.nic_Bps, own.tapers
    order = (int(i) for i in np.argsort(bills.usd, kind="stable"))
    pairs = ((i, bills.options[i]) for i in order)
    return _of_each_radix(
        bills, (i for i, one in pairs if (one.n_nics, one.nic_Bps, one.tapers) == asked)
    )


def _best(problem: Problem, bills: BillTable, values: Array) -> list[int]:
    """The option of the best value that meets the rules, of every radix."""
    order = map(int, np.argsort(values, kind="stable"))
    kept = (i for i in order if not evaluated(problem, bills.bandwidth_Bps[i]).violated)
    return _of_each_radix(bills, kept)


def _free_ports(problem: Problem, option: FabricOption) -> FreePorts | None:
    """The free ports of an option at the prices of its bill."""
    from libra_planner.fabric.parts import design_parts
    from libra_planner.fabric.realization import realize
    from libra_planner.inputs.bills import Bills
    from libra_planner.procurement.cluster import free_ports
    from libra_planner.procurement.lines import Purchase

    links = option.realization
    design = realize(problem.topology, option.bandwidth_Bps, links)
    parts = design_parts(design).dimensions
    bought = Purchase(design, parts, links.networks, (), problem.scale_up)
    return free_ports(bought, Bills(problem.prices.catalogue).shop(problem), only_stacks=True)


def _text(problem: Problem, option: FabricOption, found: FreePorts, *, is_best: bool) -> str:
    """How many ports stay free, and what fills them."""
    free = f"{found.n_free_ports:,} of {found.n_ports:,} {found.tier} ports stay free"
    then = "" if is_best else ", and would then come before this option"
    longer = "; where leaves hold no equal groups a step may take longer: check tells"
    plan = f"; its plan is {found.setting}" if found.refill else longer
    return (
        f"{option.text(problem.topology.tiers)}: {free} at the groups of this plan, and a network "
        f"of fewer switches ({tiers_text(found.n_switches)}) costs "
        f"{short_usd(float(found.less_usd))} less{then}{plan}"
    )
