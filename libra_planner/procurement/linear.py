"""LIBRA's linear network cost beside the bill: from one to the other in steps (C7)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from libra_planner.fabric.clos import Array
from libra_planner.problem import Problem
from libra_planner.procurement.bill import NETWORK, ZERO, Bill, Line
from libra_planner.procurement.fabric_lines import n_free_ports
from libra_planner.procurement.included import holds
from libra_planner.procurement.parts import SWITCH, Part, to_cents
from libra_planner.procurement.purchase import Purchase


@dataclass(frozen=True)
class Bridge:
    """From the linear model's cost of a dimension to that of its parts.

    Parameters
    ----------
    label, tier : of the dimension.
    linear_usd : C7 at the design's bandwidth.
    rounding_usd : what whole ports carry beyond that, at the linear prices.
    included_usd : what the price of a server holds already, taken off.
    parts_usd : parts at their own prices instead: switches as used, cables, optics.
    free_ports_usd : the share of the switches that no cable is plugged into.
    spares_usd : parts on the shelf.
    bill_usd : all of it: the bill's lines of the dimension.
    asked_Bps, bandwidth_Bps : per NPU: of the design, and of whole ports.
    n_ports, n_free_ports : of switches that are parts.
    oversubscription : host over uplink bandwidth; 1 where there is no switch.
    rows : of the bill: the lines of the dimension.
    free_by_row : of rows with switches: ports without a cable, and all ports.
    """

    label: str
    tier: str
    linear_usd: Decimal
    rounding_usd: Decimal
    included_usd: Decimal
    parts_usd: Decimal
    free_ports_usd: Decimal
    spares_usd: Decimal
    bill_usd: Decimal
    asked_Bps: float
    bandwidth_Bps: float
    n_ports: int
    n_free_ports: int
    oversubscription: float
    rows: tuple[int, ...]
    free_by_row: tuple[tuple[int, int, int], ...]


def bridges(
    problem: Problem, bandwidth_Bps: Array, bought: Purchase, bill: Bill, *, server: Part
) -> tuple[Bridge, ...]:
    """One bridge per dimension, innermost first; its steps add up to the cent.

    Parameters
    ----------
    problem, bandwidth_Bps : the design; its linear cost is that of the problem, options
        of a catalogue included.
    bought, bill : its parts.
    server : whose price holds some of them.
    """
    linear = problem.cost_usd_by_dim(bandwidth_Bps)
    return tuple(
        _bridge(bought, dim, to_cents(float(usd)), bill, holds(bought, dim, server))
        for dim, usd in enumerate(linear)
    )


def _bridge(
    bought: Purchase, dim: int, linear_usd: Decimal, bill: Bill, is_included: bool
) -> Bridge:
    built, parts, _ = bought.dimensions[dim]
    rows = tuple(i for i, line in enumerate(bill.lines) if _is_of(line, built.label))
    own = [bill.lines[i] for i in rows]
    total = sum((line.extended_usd or ZERO for line in own), ZERO)
    spares = sum((line.n_spares * line.part.price.usd for line in own if line.part.price), ZERO)
    free_by_row, free_usd = [], ZERO
    switch_rows = [i for i in rows if bill.lines[i].part.kind == SWITCH]
    for switches, i in zip(parts.switches, switch_rows, strict=False):
        line = bill.lines[i]
        n_free = n_free_ports(switches, line.part)
        n_all = n_free + switches.n_ports_used
        free_by_row.append((i, n_free, n_all))
        if line.part.price is not None:
            free_usd += to_cents(line.n_units * line.part.price.usd * n_free / n_all)
    whole = built.bandwidth_Bps / built.asked_Bps if built.asked_Bps else 1.0
    rounding = to_cents(float(linear_usd) * (whole - 1))
    off = -(linear_usd + rounding) if is_included else ZERO
    return Bridge(
        label=built.label,
        tier=built.tier,
        linear_usd=linear_usd,
        rounding_usd=rounding,
        included_usd=off,
        parts_usd=total - spares - free_usd - off - rounding - linear_usd,
        free_ports_usd=free_usd,
        spares_usd=spares,
        bill_usd=total,
        asked_Bps=built.asked_Bps,
        bandwidth_Bps=built.bandwidth_Bps,
        n_ports=sum(n_all for _, _, n_all in free_by_row),
        n_free_ports=sum(n_free for _, n_free, _ in free_by_row),
        oversubscription=built.settings.oversubscription if built.settings else 1.0,
        rows=rows,
        free_by_row=tuple(free_by_row),
    )


def _is_of(line: Line, label: str) -> bool:
    """Whether a line is of the dimension of that label."""
    return line.group == NETWORK and line.tier.split(",")[0].split(" ")[0] == label
