"""A plan's cost beside its bill, line by line, and the steps from linear prices to whole parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from libra_planner.problem import Problem
from libra_planner.procurement.bill import (
    CABLING,
    COMPUTE,
    FACILITY,
    FRONTEND,
    NETWORK,
    NETWORKS,
    NIC,
    NPU,
    OPTIC,
    SERVICES,
    STORAGE,
    SUPPORT,
    SWITCH,
    ZERO,
    Bill,
    Line,
)
from libra_planner.procurement.bought.bridges import Bridge
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.lines import NOT_PRICED
from libra_planner.procurement.plan_cost import CostLine, cost_lines
from libra_planner.procurement.ranking import Comparison
from libra_planner.units import format_usd, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import (
    Section,
    Table,
    Value,
    delta_usd,
    number,
    percent,
    round_delta_usd,
    round_usd,
    usd,
)
from libra_planner.views.report.bills import (
    FREE_PORTS,
    LEFT_OUT,
    SPARES,
    TAX_CELL,
    group_cell,
    lines_sum,
    tax_formula,
    words_of_kind,
)


def with_cost(section: Section, one: Candidate) -> Section:
    """The section of a bill with the plan's cost below it, folded."""
    return replace(section, tables=(*section.tables, cost_table(one), linear_table(one)))


def money_by_group(comparison: Comparison) -> Table | None:
    """What an only design's price is made of; several designs stand beside one another instead."""
    if len(comparison.candidates) > 1:
        return None
    [one] = comparison.candidates
    whole, share = one.bill.total_usd, one.bill.tax_fraction
    rows: list[list[Value]] = []
    for name, meant in _GROUPS:
        lines = tuple(filter(meant, one.bill.lines))
        if lines:
            amount = Bill(lines).total_usd
            part = percent(one.bill.fraction_of(amount), 1, f"[c1]/{group_cell(one, 'total')}")
            rows.append([name, round_usd(amount, lines_sum(one, meant)), part])
    total = round_usd(whole, group_cell(one, "total"))
    last: list[Value] = ["Price of everything", total, percent(1.0 if whole else None)]
    if share:
        formula = tax_formula(group_cell(one, "total"))
        tax = percent(float(share), 1, TAX_CELL)
        rows += [
            ["Price before tax", total, last[2]],
            [f"Tax, as printed {100 * share:.6g}%", round_usd(one.bill.tax_usd, formula), tax],
        ]
        with_tax = f"{group_cell(one, 'total')}+[money-by-group/{len(rows) - 1}/1]"
        last = ["Price with tax", round_usd(one.bill.with_tax_usd, with_tax), ""]
    caption = "What the price is made of"
    return cells.table(
        "money-by-group", caption, ["Group", "$", "Share"], rows, total=last, note=_SPARES_NOTE
    )


def money_side_by_side(comparison: Comparison) -> Table | None:
    """The same of a few designs, the one to buy first; none of one, or of more than paper holds."""
    designs = comparison.ordered
    if not 1 < len(designs) <= _MOST_SIDE_BY_SIDE:
        return None
    rows: list[list[Value]] = [
        [
            name,
            *(round_usd(_lines_of(one, meant).total_usd, lines_sum(one, meant)) for one in designs),
        ]
        for name, meant in _split_groups()
        if any(_lines_of(one, meant).total_usd for one in designs)
    ]
    last = [round_usd(one.bill.total_usd, group_cell(one, "total")) for one in designs]
    before = " before tax" if designs[0].bill.tax_fraction else ""
    headings = ["Group, $", *(one.letter for one in designs)]
    caption = "What the prices are made of"
    total: list[Value] = [f"Price of everything{before}", *last]
    return cells.table("money-by-group", caption, headings, rows, total=total, note=_KINDS_NOTE)


def _lines_of(one: Candidate, meant: Callable[[Line], bool]) -> Bill:
    return Bill(tuple(filter(meant, one.bill.lines)))


def _split_groups() -> Iterator[tuple[str, Callable[[Line], bool]]]:
    """Groups of an only design, but for networks: kinds of parts, as differences have them."""
    for name, meant in _GROUPS:
        if name == _TRAINING:
            for kind, kinds in _KINDS.items():
                yield kind, partial(_is_of_networks, kinds)
            told = tuple(x for kinds in _KINDS.values() for x in kinds)
            yield "Other links", partial(_is_of_networks, told, is_in=False)
        elif name != _SIDES:
            yield name, meant


def _is_of_networks(kinds: Collection[str], line: Line, *, is_in: bool = True) -> bool:
    return line.group in NETWORKS and (line.part.kind in kinds) == is_in


_KINDS = {
    "NICs": (NIC,),
    "Switches": (SWITCH,),
    "Optics": (OPTIC,),
    "Cables": tuple(x for x in CABLING if x != OPTIC),
}
"""Rows of all networks, each with kinds of parts."""
_MOST_SIDE_BY_SIDE = 4
_TRAINING, _SIDES = "Training network", "Frontend and storage networks"
_SPARES_NOTE = "Spares are in the group of their parts. Every line stands in the bill."
_KINDS_NOTE = (
    "Parts with their spares, of the training, frontend and storage networks together. Every line "
    "stands in the bill."
)
_GROUPS: tuple[tuple[str, Callable[[Line], bool]], ...] = (
    ("NPUs", lambda line: line.group == COMPUTE and line.part.kind == NPU),
    ("Servers", lambda line: line.group == COMPUTE and line.part.kind != NPU),
    (_TRAINING, lambda line: line.group == NETWORK),
    (_SIDES, lambda line: line.group in (FRONTEND, STORAGE)),
    ("Racks", lambda line: line.group == FACILITY),
    ("Support", lambda line: line.group == SUPPORT),
    ("Lump sums, such as freight", lambda line: line.group == SERVICES),
)
"""Rows of an only design's money, each with the lines that it counts."""


_ASIDE: dict[str, Any] = {"is_folded": True, "is_printed": False}
"""How tables are shown that nobody orders by."""


def cost_table(one: Candidate) -> Table:
    """What the plan's cost and the bill hold, line by line."""
    columns: dict[str, Callable[[CostLine], Value]] = {
        "What": _name,
        "Plan's cost": lambda x: usd(x.plan_usd),
        "What it counts": lambda x: _of_plan(x, one),
        "What the bill counts": lambda x: _of_bill(x, one),
        "Bill": lambda x: usd(x.bill_usd, lines_sum(one, x.holds)),
        "Difference": lambda x: delta_usd(x.difference_usd, "[c4]-[c1]"),
    }
    lines = cost_lines(one)
    plan_usd = _plan_usd(lines)
    moved = delta_usd(one.bill.total_usd - plan_usd, "SUM([r5])")
    sums = usd(plan_usd, "SUM([r1])"), usd(one.bill.total_usd, "SUM([r4])")
    total: list[Value] = ["Total", sums[0], "", "", sums[1], moved]
    caption = f"Design {one.letter}: the cost that optimize prints, beside the bill"
    note = f"{cost_text(one)} " + (
        "The plan's cost is what the optimizer weighs time against: linear in bandwidth, plus "
        "fixed_cost. The bill is what is bought: whole parts, with spares. Steps from one to the "
        "other by dimension stand in the table of the linear model."
    )
    key = f"cost-{one.letter.lower()}"
    return cells.table_of(caption, lines, columns, key=key, total=total, note=note, **_ASIDE)


def _name(line: CostLine) -> str:
    if line.bridge is not None:
        return f"Network, {line.bridge.place}"
    if line.has_npus:
        return "NPUs and all else but the network" if line.has_rest else "NPUs"
    return "All else but the network"


def _of_plan(line: CostLine, one: Candidate) -> str:
    """What the plan counts."""
    problem = one.proposal.problem
    if problem.prices.bills is not None:
        return "the bill (prices: bill)"
    if line.bridge is None:
        return _of_fixed_cost(line, problem)
    asked = gigabytes_per_s(line.bridge.built.asked_Bps)
    if not line.plan_usd:
        return _free(line, one) if asked else "nothing"
    each = float(line.plan_usd) / asked / one.n_npus
    return f"{asked:.4g} GB/s per NPU, ${each:,.2f} per GB/s"


def _free(line: CostLine, one: Candidate) -> str:
    """Why a dimension costs nothing: servers hold it, or nobody prices its direct links."""
    is_unpriced = any(x.note == NOT_PRICED for x in one.bill.lines if line.holds(x))
    return f"nothing: {NOT_PRICED}" if is_unpriced else "nothing: in the servers' price"


def _of_fixed_cost(line: CostLine, problem: Problem) -> str:
    """What of the plan's fixed cost a line is."""
    if not problem.prices.fixed_usd:
        return "nothing: no fixed_cost"
    if line.has_npus:
        npus = f": {problem.n_npus_bought:,} NPUs in use"
        return "fixed_cost" + ("" if line.has_rest else npus)
    return "fixed_cost: per_npu and rest" if line.plan_usd else "nothing: fixed_cost is of NPUs"


def _of_bill(line: CostLine, one: Candidate) -> str:
    """What the bill counts, largest first."""
    amounts = _amounts(filter(line.holds, one.bill.lines))
    ranked = [*amounts]
    if line.bridge is not None:
        built = f"{gigabytes_per_s(line.bridge.built.bandwidth_Bps):.4g} GB/s per NPU"
        return f"{built}: {', '.join(ranked)}" if ranked else _free(line, one)
    if line.has_npus and not line.has_rest:
        npus = [x for x in one.bill.lines if line.holds(x)]
        units, spares = sum(x.n_bought for x in npus), sum(x.n_spares for x in npus)
        return f"{units:,} NPUs" + (f", {spares:,} of them spare" if spares else "")
    return _amounts_text(amounts)


def lines_text(lines: Iterable[Line]) -> str:
    """What lines of a bill are of and cost, largest first, such as ``racks $1.34M``.

    Parameters
    ----------
    lines : of one bill.
    """
    return _amounts_text(_amounts(lines))


def _amounts(lines: Iterable[Line]) -> dict[str, Decimal]:
    """USD by what they are of, largest first; what costs nothing is left out."""
    amounts: dict[str, Decimal] = {}
    for x in lines:
        amounts[_words(x)] = amounts.get(_words(x), ZERO) + (x.extended_usd or ZERO)
    ranked = sorted((x for x in amounts if amounts[x]), key=lambda name: -amounts[name])
    return {name: amounts[name] for name in ranked}


def _amounts_text(amounts: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{name} {round_usd(own).shown}" for name, own in amounts.items())


def _words(line: Line) -> str:
    """A kind of part, or the network beside the training fabric that it is of."""
    own = (COMPUTE, FACILITY, NETWORK)
    return words_of_kind(line.part.kind) if line.group in own else line.group


def cost_text(one: Candidate) -> str:
    """The plan's cost, the bill, and what makes the difference."""
    problem, total, lines = one.proposal.problem, one.bill.total_usd, cost_lines(one)
    if problem.prices.bills is not None:
        return f"The cost that optimize prints for {one.letter} is this bill (prices: bill)."
    if one.bill.missing:
        return f"The bill of {one.letter} lacks prices, so no cost stands beside it."
    has_fixed, plan_usd = problem.prices.fixed_usd > 0, _plan_usd(lines)
    moved = total - plan_usd
    what = "linear in bandwidth, plus fixed_cost" if has_fixed else "of the network alone, linear"
    more = f"{round_usd(abs(moved)).shown} {'more' if moved > 0 else 'less'}"
    ranked = sorted(lines, key=lambda x: -abs(x.difference_usd))
    told = [_told(x) for x in ranked if abs(x.difference_usd) >= total / _LEAST_TOLD]
    why = f", mostly {'; '.join(told)}" if told else ""
    text = (
        f"The cost that optimize prints for {one.letter} ({what}) is {round_usd(plan_usd).shown}, "
        f"its bill {round_usd(total).shown}, {more}{why}."
    )
    text += "".join(_rest_text(x, one) for x in lines if _told(x) in told)
    if problem.objective == "performance_per_cost":
        fixed = float(total - one.bill.of(NETWORK).total_usd) / 1e6
        text += f" With fixed_cost: {fixed:,.4g} M$ both are the same but for the network."
    return text


_LEAST_TOLD = 100
"""A difference below this part of the bill is not told in words."""


def _plan_usd(lines: Sequence[CostLine]) -> Decimal:
    return sum((x.plan_usd for x in lines), ZERO)


def _told(line: CostLine) -> str:
    """A line in words, such as NPUs."""
    name = _name(line)
    name = name if name.startswith("NPU") else name[:1].lower() + name[1:]
    amounts = line.plan_usd, line.bill_usd
    there, billed = (f"{round_usd(x).shown} " if x else "not " for x in amounts)
    change = round_delta_usd(line.difference_usd).shown
    return f"{name} {there}there, {billed}in the bill ({change})"


def _rest_text(line: CostLine, one: Candidate) -> str:
    """Per NPU, what a plan counts that no line of a bill has; empty where it counts less."""
    if line.has_npus or not line.has_rest or line.difference_usd >= 0:
        return ""
    there, billed = (f"${float(x) / one.n_npus:,.0f}" for x in (line.plan_usd, line.bill_usd))
    return (
        f" Per NPU that is {there} against {billed}: fixed_cost is the plan's own estimate, and "
        f"may hold what no bill has ({', '.join(LEFT_OUT)})."
    )


def cost_payload(one: Candidate) -> dict[str, Any]:
    """The same for JSON."""
    lines = cost_lines(one)
    plan_usd = _plan_usd(lines)
    rows = ((x, _name(x), _of_plan(x, one), _of_bill(x, one)) for x in lines)
    return {
        "cost_usd": float(plan_usd),
        "bill_usd": float(one.bill.total_usd),
        "difference_usd": float(one.bill.total_usd - plan_usd),
        "text": cost_text(one),
        "lines": [
            {
                "what": name,
                "cost_usd": float(x.plan_usd),
                "cost_holds": of_plan,
                "bill_usd": float(x.bill_usd),
                "bill_holds": of_bill,
                "difference_usd": float(x.difference_usd),
            }
            for x, name, of_plan, of_bill in rows
        ],
    }


def linear_table(one: Candidate) -> Table:
    """From the linear model's cost of each dimension to that of its parts, in steps."""
    own = "[c9]-[c8]-[c7]-[c5]-[c4]-[c3]"

    def total_of(bridge: Bridge, counted: str = "n_units", *terms: str) -> str:
        label = bridge.built.label
        return lines_sum(one, lambda x: x.dimension == label and getattr(x, counted), *terms)

    columns: dict[str, Callable[[Bridge], Value]] = {
        "Dimension": lambda x: x.place,
        "Asked, GB/s": lambda x: number(gigabytes_per_s(x.built.asked_Bps), 2),
        "Built, GB/s": lambda x: number(gigabytes_per_s(x.built.bandwidth_Bps), 2),
        "Linear model": lambda x: usd(x.linear_usd),
        "Whole ports": lambda x: usd(x.rounding_usd),
        "In the servers": lambda x: usd(x.included_usd),
        "Own prices": lambda x: usd(x.parts_usd, total_of(x) and own),
        "Free ports": lambda x: usd(x.free_ports_usd, total_of(x, "n_ports", FREE_PORTS)),
        "Spares": lambda x: usd(x.spares_usd, total_of(x, "n_spares", SPARES, "SUM({})")),
        "Bill": lambda x: usd(x.bill_usd, total_of(x)),
    }
    note = f"{why(one)} " + (
        "Linear model: every NPU pays for what it injects, in $ per GB/s. Whole ports: what "
        "the ports carry beyond the bandwidth asked for, at the same prices. In the servers: links "
        "and switches that the price of a server includes. Own prices: switches as far as they are "
        "used, NICs ($0 where servers include them), optics and cables instead of $ per GB/s, "
        "whatever the oversubscription leaves out. Free ports: switch ports without a cable. "
        "Spares: on the shelf."
    )
    sums = (usd(_sum(one, name), f"SUM([r{i}])") for i, name in enumerate(_STEPS, start=3))
    caption = f"Design {one.letter}: from LIBRA's linear model to the bill, training fabric"
    total: list[Value] = ["Total", "", "", *sums]
    key = f"linear-{one.letter.lower()}"
    return cells.table_of(caption, one.bridges, columns, key=key, total=total, note=note, **_ASIDE)


_STEPS = (
    *("linear_usd", "rounding_usd", "included_usd", "parts_usd"),
    *("free_ports_usd", "spares_usd", "bill_usd"),
)


def _sum(one: Candidate, name: str) -> Decimal:
    return sum((getattr(bridge, name) for bridge in one.bridges), ZERO)


def why(one: Candidate) -> str:
    """Why the bill is not the linear model's cost, in figures."""
    if one.bill.missing:
        return (
            "The fabric's bill lacks prices, so it is not compared with the linear model in words."
        )
    linear, bill = (format_usd(float(_sum(one, name))) for name in ("linear_usd", "bill_usd"))
    reasons = [_reason(bridge) for bridge in one.bridges if bridge.bill_usd != bridge.linear_usd]
    text = "; ".join(filter(None, reasons))
    more = f" {text}." if text else ""
    shared_usd = one.bill.of(NETWORK).shared_spares_usd
    if shared_usd > 0:
        more += (
            f" {format_usd(float(shared_usd))} of these spares are for frontend and storage, too."
        )
    return f"The fabric's parts cost {bill}, LIBRA's linear model says {linear}.{more}"


def _reason(bridge: Bridge) -> str:
    """The steps that matter, largest first."""
    carried, asked = (
        f"{gigabytes_per_s(speed_Bps):.4g}"
        for speed_Bps in (bridge.built.bandwidth_Bps, bridge.built.asked_Bps)
    )
    thin = bridge.oversubscription > 1
    kept = f" at {bridge.oversubscription:g}:1 oversubscription" if thin else ""
    free = f"{bridge.n_free_ports:,} of {bridge.n_ports:,}"
    steps = [
        (bridge.rounding_usd, f"as ports carry {carried} GB/s where {asked} is asked for"),
        (bridge.included_usd, "as the price of the servers includes its links"),
        (bridge.parts_usd, f"for parts at their own prices{kept}"),
        (bridge.free_ports_usd, f"as {free} switch ports are free"),
        (bridge.spares_usd, "for spares"),
    ]
    text = ", ".join(
        f"{'-' if amount < 0 else '+'}{format_usd(abs(float(amount)))} {reason}"
        for amount, reason in sorted(steps, key=lambda step: -abs(step[0]))
        if abs(amount) >= max(Decimal(1), bridge.linear_usd / 200)
    )
    return f"{bridge.place}: {text}" if text else ""
