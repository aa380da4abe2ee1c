"""LIBRA's linear model beside the bill, as a table and in words."""

from __future__ import annotations

from decimal import Decimal

from libra_planner.procurement.bill import ZERO
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.lines import Bridge
from libra_planner.report.documents.cells import Table, Value, number, table, usd
from libra_planner.report.documents.live import (
    QUANTITY_COLUMN,
    SPARE_COLUMN,
    UNIT_COLUMN,
    line_cell,
    lines_sum,
)
from libra_planner.units import format_usd, gigabytes_per_s


def linear_table(one: Candidate) -> Table:
    """From the linear model's cost of each dimension to that of its parts, in steps."""
    headings = [
        "Dimension",
        "Asked, GB/s",
        "Built, GB/s",
        "Linear model",
        "Whole ports",
        "In the servers",
        "Own prices",
        "Free ports",
        "Spares",
        "Bill",
    ]
    rows = [_bridge_row(one, bridge) for bridge in one.bridges]
    sums: list[Value] = [usd(_sum(one, name), f"SUM([r{i}])") for i, name in _MONEY]
    note = (
        "Linear model: every NPU pays for what it injects, in $ per GB/s (C7). Whole ports: what "
        "the ports carry beyond the bandwidth asked for, at the same prices. In the servers: links "
        "and switches that the price of a server includes. Own prices: switches as far as they are "
        "used, NICs ($0 where servers include them), optics and cables instead of $ per GB/s, "
        "whatever the oversubscription leaves out. Free ports: switch ports without a cable. "
        "Spares: on the shelf."
    )
    key = f"linear-{one.letter.lower()}"
    caption = f"Design {one.letter}: from LIBRA's linear model to the bill, training fabric"
    return table(key, caption, headings, rows, total=["Total", "", "", *sums], note=note)


_MONEY = (
    (3, "linear_usd"),
    (4, "rounding_usd"),
    (5, "included_usd"),
    (6, "parts_usd"),
    (7, "free_ports_usd"),
    (8, "spares_usd"),
    (9, "bill_usd"),
)


def _sum(one: Candidate, name: str) -> Decimal:
    return sum((getattr(bridge, name) for bridge in one.bridges), ZERO)


def _bridge_row(one: Candidate, bridge: Bridge) -> list[Value]:
    own = "ROUND([c9]-[c8]-[c7]-[c5]-[c4]-[c3],2)" if bridge.rows else ""
    return [
        f"{bridge.label} {bridge.tier}",
        number(gigabytes_per_s(bridge.asked_Bps), 2),
        number(gigabytes_per_s(bridge.bandwidth_Bps), 2),
        usd(bridge.linear_usd),
        usd(bridge.rounding_usd),
        usd(bridge.included_usd),
        usd(bridge.parts_usd, own),
        usd(bridge.free_ports_usd, _free(one, bridge)),
        usd(bridge.spares_usd, _spares(one, bridge)),
        usd(bridge.bill_usd, lines_sum(one, bridge.rows)),
    ]


def _free(one: Candidate, bridge: Bridge) -> str:
    """The share of every switch line that ports without a cable are, to the cent."""
    terms = [
        f"ROUND({line_cell(one, i, QUANTITY_COLUMN)}*N({line_cell(one, i, UNIT_COLUMN)})"
        f"*{n_free}/{n_all},2)"
        for i, n_free, n_all in bridge.free_by_row
    ]
    return f"SUM({','.join(terms)})" if terms else ""


def _spares(one: Candidate, bridge: Bridge) -> str:
    terms = [
        f"{line_cell(one, i, SPARE_COLUMN)}*N({line_cell(one, i, UNIT_COLUMN)})"
        for i in bridge.rows
        if one.bill.lines[i].n_spares
    ]
    return f"ROUND(SUM({','.join(terms)}),2)" if terms else ""


def why(one: Candidate) -> str:
    """Why the bill is not the linear model's cost, in figures."""
    linear, bill = _sum(one, "linear_usd"), _sum(one, "bill_usd")
    if one.bill.missing:
        return (
            "The fabric's bill lacks prices, so it is not compared with the linear model in words."
        )
    reasons = [_reason(bridge) for bridge in one.bridges if bridge.bill_usd != bridge.linear_usd]
    text = "; ".join(reason for reason in reasons if reason)
    more = f" {text}." if text else ""
    return (
        f"The fabric's parts cost {format_usd(float(bill))}, LIBRA's linear model says "
        f"{format_usd(float(linear))}.{more}"
    )


def _reason(bridge: Bridge) -> str:
    """The steps that matter, largest first."""
    ports = f"as {bridge.n_free_ports:,} of {bridge.n_ports:,} switch ports are free"
    built = (
        f"as ports carry {gigabytes_per_s(bridge.bandwidth_Bps):.4g} GB/s where "
        f"{gigabytes_per_s(bridge.asked_Bps):.4g} is asked for"
    )
    thin = bridge.oversubscription > 1
    kept = f" at {bridge.oversubscription:g}:1 oversubscription" if thin else ""
    steps = [
        (bridge.rounding_usd, built),
        (bridge.included_usd, "as the price of the servers includes its links"),
        (bridge.parts_usd, f"for parts at their own prices{kept}"),
        (bridge.free_ports_usd, ports),
        (bridge.spares_usd, "for spares"),
    ]
    largest = sorted(steps, key=lambda step: -abs(step[0]))
    worth = [step for step in largest if abs(step[0]) >= max(Decimal(1), bridge.linear_usd / 200)]
    text = ", ".join(f"{_signed(amount)} {why}" for amount, why in worth)
    return f"{bridge.label} {bridge.tier}: {text}" if text else ""


def _signed(amount: Decimal) -> str:
    sign = "-" if amount < 0 else "+"
    return f"{sign}{format_usd(abs(float(amount)))}"
