"""Whether a design of any bandwidths can be bought: what whole ports carry, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from libra_planner.errors import SpecError
from libra_planner.evaluation import violations_as_built
from libra_planner.problem import Problem
from libra_planner.procurement.bill import NETWORK, Bill
from libra_planner.step.expression import Array
from libra_planner.units import format_bandwidth, format_usd, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.inputs.bills import Bills
    from libra_planner.procurement.lines import Purchase

_MORE = 1.05
"""Bandwidth over what is asked for, up to which nothing is said."""


def port_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """What whole ports carry beyond a design, what they cost, and the rules that they break.

    Nothing of a design that is bought as it is, or that cannot be built, which ``check`` says.

    Parameters
    ----------
    problem : from a plan; one that does not say how it is built is left alone.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> list(port_notes(plan, [450e9, 50e9, 25e9]))
    []
    >>> [note.split(":")[0] for note in port_notes(plan, [450e9, 40e9, 20e9])]
    ['dim2 asks 40.00 GB/s of whole ports that have 50.00 GB/s']
    """
    is_built = problem.realization is not None or problem.topology.stacks
    if not is_built or problem.prices.bills is not None or problem.purchasable:
        return
    from libra_planner.inputs.bills import Bills
    from libra_planner.procurement.lines import purchase

    bills, asked_Bps = Bills(), np.asarray(bandwidth_bytes_per_s)
    try:
        bought = purchase(problem, asked_Bps, bills.catalogue.parts)
    except SpecError:
        return
    network = _network_bill(problem, bought, bills)
    if text := network.faster_text:
        yield f"{text}. Give a port_speed that is sold"
    built_Bps = bought.design.bandwidth_Bps
    if more := [int(dim) for dim in np.flatnonzero(built_Bps > asked_Bps * _MORE)]:
        yield _more_text(
            problem, asked_Bps, built_Bps, more, _price_text(problem, asked_Bps, network)
        )


def _more_text(
    problem: Problem, asked_Bps: Array, built_Bps: Array, more: Sequence[int], price: str
) -> str:
    """Which dimensions have more bandwidth than is asked for, and how to optimize that."""
    names = problem.topology.labels
    asked = " and ".join(
        f"{names[dim]} asks {format_bandwidth(asked_Bps[dim])} of whole ports that have "
        f"{format_bandwidth(built_Bps[dim])}"
        for dim in more
    )
    broken = dict.fromkeys(x.rule for x in violations_as_built(problem, asked_Bps, built_Bps))
    breaks = f", which break {' and '.join(broken)}" if broken else ""
    tier = problem.topology.tiers[more[0]] or names[more[0]]
    fix = f"{tier} == {gigabytes_per_s(built_Bps[more[0]]):.9g} GB/s"
    return (
        f"{asked}{breaks}{price}. To optimize what is bought write prices: bill, or the rule {fix}"
    )


def _network_bill(problem: Problem, bought: Purchase, bills: Bills) -> Bill:
    """The parts of the training fabric; none of a cluster whose other networks do not fit."""
    try:
        return bills.bill(problem, bought, None).of(NETWORK)
    except SpecError:
        return Bill(())


def _price_text(problem: Problem, asked_Bps: Array, network: Bill) -> str:
    linear_usd = float(problem.network_cost_usd(asked_Bps))
    if network.missing or not network.lines or not linear_usd:
        return ""
    bill, linear = format_usd(float(network.total_usd)), format_usd(linear_usd)
    return f": the network costs about {bill}, not {linear}"
