"""Bills of materials, LIBRA's linear model beside them, prices, and what a workbook computes.

Expressions name cells as :mod:`~libra_planner.views.cells` says; of texts they hold
this program's own words and the designs' letters only.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from libra_planner.procurement.bill import GROUPS, ZERO, Bill, Line
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.lines import Bridge
from libra_planner.procurement.parts import Part
from libra_planner.units import format_usd, gigabytes_per_s
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    count,
    delta_usd,
    mark,
    number,
    percent,
    table,
    usd,
)
from libra_planner.views.report.comparison import Comparison

_HALF_A_CENT = 0.005

PRICE_COLUMN = 3
"""Of the unit price in the table of prices."""
QUANTITY_COLUMN, SPARE_COLUMN, UNIT_COLUMN, SOURCE_COLUMN, EXTENDED_COLUMN = 4, 5, 6, 7, 8
"""Of units in use, spares, the unit price, what it rests on, and the line's price, in a bill."""


def priced_parts(comparison: Comparison) -> list[Part]:
    """Every part of every bill once, in the order they appear: the rows of the prices."""
    lines = (line for one in comparison.candidates for line in one.bill.lines)
    return list({line.part.name: line.part for line in lines}.values())


def group_cell(one: Candidate, group: str) -> str:
    """Where a spreadsheet finds the sum of a group of lines, or the ``total``."""
    letter = one.letter.lower()
    if group == "total":
        return f"[bill-{letter}/t{EXTENDED_COLUMN}]"
    return f"[groups-{letter}/{GROUPS.index(group)}/1]"


def line_cell(one: Candidate, row: int, column: int = EXTENDED_COLUMN) -> str:
    """Where a spreadsheet finds something of a line of the bill.

    Lines are named one by one: names of parts are a user's, and stay out of expressions.
    """
    return f"[bill-{one.letter.lower()}/{row}/{column}]"


def lines_sum(one: Candidate, rows: Iterable[int]) -> str:
    """What some lines of a bill cost, by their rows; empty for none."""
    cells = ",".join(line_cell(one, i) for i in rows)
    return f"SUM({cells})" if cells else ""


def price_cell(comparison: Comparison, name: str) -> str:
    """Where the unit price of a part stands; empty for prices that several parts share."""
    names = [part.name for part in priced_parts(comparison)]
    return f"[prices/{names.index(name)}/{PRICE_COLUMN}]" if name in names else ""


def price_sum(one: Candidate, price_name: str) -> str:
    """What the lines of one price come to in a design; empty for a design without them."""
    lines = enumerate(one.bill.lines)
    return lines_sum(one, (i for i, line in lines if line.part.price_name == price_name))


def prices_moved(comparison: Comparison) -> str:
    """Whether any unit price is not the one that the report was made with."""
    terms = []
    for i, part in enumerate(priced_parts(comparison)):
        usd = part.price.usd if part.price else Decimal(0)
        terms.append(f"ABS(N([prices/{i}/{PRICE_COLUMN}])-{float(usd)!r})")
    # Added with +: a function of Excel takes 255 arguments.
    return f"{'+'.join(terms)}>={_HALF_A_CENT}"


def verdict(comparison: Comparison) -> Cell:
    """Cheapest and best per dollar at the prices of the workbook.

    Of equals the first, as in :class:`~libra_planner.procurement.ranking.Ranking`.
    """
    letters, ranking = comparison.letters, comparison.ranking
    totals = [group_cell(one, "total") for one in comparison.candidates]
    text = f"At the prices of this workbook: cheapest {letters[ranking.cheapest]}"
    formula = f'"At the prices of this workbook: cheapest "&{_least(totals, letters)}'
    times_s = comparison.times_s
    if ranking.best_per_usd is not None and times_s is not None:
        products = [f"{total}*{time!r}" for total, time in zip(totals, times_s, strict=True)]
        text += f", best per dollar {letters[ranking.best_per_usd]}"
        formula += f'&", best per dollar "&{_least(products, letters)}'
    return Cell(text, expression=formula)


def _least(values: list[str], letters: list[str]) -> str:
    """The letter of the first of the smallest values."""
    least = f"MIN({','.join(values)})"
    found = f'"{letters[-1]}"'
    for value, letter in reversed(list(zip(values[:-1], letters[:-1], strict=True))):
        found = f'IF({value}={least},"{letter}",{found})'
    return found


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


_KW = 1000.0
_BILL = [
    "Part",
    "Group",
    "Tier",
    "Description",
    "Quantity",
    "Spare",
    "Unit price",
    "Source",
    "Extended",
    "W each",
    "kW",
    "Share",
    "Note",
]


def bill_section(comparison: Comparison, index: int) -> Section:
    """The bill of one design."""
    one = comparison.candidates[index]
    tables = [_bill_table(comparison, one), _group_table(one)]
    if comparison.baseline is not None and comparison.baseline != index:
        tables.append(_changes(comparison.candidates[comparison.baseline], one))
    tables.append(linear_table(one))
    return Section(
        key=f"design-{one.letter.lower()}",
        title=f"Design {one.letter}: bill of materials",
        sheet=f"Design {one.letter}",
        paragraphs=(_head(one), why(one)),
        warnings=_missing(one.bill),
        tables=tuple(tables),
        is_static=True,
    )


def _head(one: Candidate) -> str:
    proposal = one.proposal
    speeds = one.bought.chosen_speeds
    open_speed = (
        f" The plan gives no port speed for {' and '.join(speeds)}: the slowest NIC that "
        "suffices is taken."
        if speeds
        else ""
    )
    npu = proposal.npu or proposal.shop.assumptions.npu
    from_whom = "the plan's" if proposal.npu else "assumed, the plan names none"
    return (
        f"{proposal.name}: {proposal.problem.topology}, {one.n_npus:,} NPUs ({npu.name}, "
        f"{from_whom}).{open_speed}"
    )


def _missing(bill: Bill) -> tuple[str, ...]:
    names = ", ".join(part.name for part in bill.missing)
    return (f"No price is known for: {names}. The total is without them.",) if names else ()


def _bill_table(comparison: Comparison, one: Candidate) -> Table:
    rows_of = {part.name: i for i, part in enumerate(priced_parts(comparison))}
    total = one.bill.total_usd
    rows = [_bill_row(line, rows_of[line.part.name], total) for line in one.bill.lines]
    label = "Total" if not one.bill.missing else "Total of the lines with a price"
    last: list[Value] = [label, *[""] * 7]
    last += [usd(total, "SUM([r8])"), ""]
    last += [number(one.bill.power_w / _KW, 3, "SUM([r10])"), percent(1.0 if total else None), ""]
    caption = f"Bill of materials of design {one.letter}"
    key = f"bill-{one.letter.lower()}"
    note = "What each price rests on, in full: section Prices."
    return table(key, caption, _BILL, rows, total=last, note=note, is_sortable=True)


def _bill_row(line: Line, price_row: int, total: Decimal) -> list[Value]:
    part, price = line.part, line.part.price
    where = f"[prices/{price_row}/{PRICE_COLUMN}]"
    extended = line.extended_usd
    share = float(extended / total) if extended is not None and total else None
    unknown = price is None  # Its cell fills when somebody writes the price.
    bought = "ROUND(([c4]+[c5])*[c6],2)"
    return [
        part.name,
        line.group,
        line.tier,
        part.description,
        count(line.n_units),
        count(line.n_spares),
        usd(price.usd if price else None, f'IF({where}="","",{where})' if unknown else where),
        mark(price.confidence) if price else mark("no price"),
        usd(extended, f'IF([c6]="","",{bought})' if unknown else bought),
        number(part.power_w, 1),
        number(line.power_w / _KW, 3, "[c4]*[c9]/1000"),
        percent(share, 2, 'IF([c8]="","",[c8]/[t8])' if unknown else "[c8]/[t8]"),
        line.note,
    ]


def _group_table(one: Candidate) -> Table:
    letter, total = one.letter.lower(), one.bill.total_usd
    rows: list[list[Value]] = []
    for group in GROUPS:
        part = one.bill.of(group)
        at = f"SUMIF([bill-{letter}/r1],[c0],[bill-{letter}/"
        share = float(part.total_usd / total) if total else None
        rows.append(
            [
                group,
                usd(part.total_usd, f"{at}r8])"),
                percent(share, 1, "[c1]/[t1]" if share is not None else ""),
                number(part.power_w / _KW, 3, f"{at}r10])"),
            ]
        )
    last: list[Value] = [
        "Total",
        usd(total, "SUM([r1])"),
        percent(1.0 if total else None),
        number(one.bill.power_w / _KW, 3, "SUM([r3])"),
    ]
    headings = ["Group", "Extended", "Share", "kW"]
    return table(f"groups-{letter}", f"Design {one.letter} by group", headings, rows, total=last)


def _changes(base: Candidate, one: Candidate) -> Table:
    """Lines that differ from the baseline's; their differences add up to that of the totals."""
    ours, theirs = _by_place(one.bill), _by_place(base.bill)
    rows: list[list[Value]] = []
    for place in dict.fromkeys([*theirs, *ours]):
        then, now = theirs.get(place, (0, ZERO)), ours.get(place, (0, ZERO))
        if then != now:
            amounts: list[Value] = [count(then[0]), count(now[0])]
            amounts += [usd(then[1], _place_sum(base, place)), usd(now[1], _place_sum(one, place))]
            rows.append([place[1], place[0], *amounts, delta_usd(now[1] - then[1], "[c5]-[c4]")])
    headings = ["Part", "Tier", f"Units in {base.letter}", f"Units in {one.letter}"]
    headings += [base.letter, one.letter, "Difference"]
    difference = one.bill.total_usd - base.bill.total_usd
    last: list[Value] = ["Difference of the totals", *[""] * 5]
    # A range of no rows would hold the total itself.
    last.append(delta_usd(difference, "SUM([r6])" if rows else ""))
    caption = f"What changes from {base.letter} to {one.letter}, spares included"
    key = f"changes-{one.letter.lower()}"
    note = "" if rows else f"Nothing changes: the bill is that of {base.letter}."
    return table(key, caption, headings, rows, total=last, note=note, is_sortable=True)


def _place_sum(one: Candidate, place: tuple[str, str]) -> str:
    lines = enumerate(one.bill.lines)
    return lines_sum(one, (i for i, line in lines if (line.tier, line.part.name) == place))


def _by_place(bill: Bill) -> dict[tuple[str, str], tuple[int, Decimal]]:
    found: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for line in bill.lines:
        place = (line.tier, line.part.name)
        n_units, amount = found.get(place, (0, ZERO))
        found[place] = (n_units + line.n_bought, amount + (line.extended_usd or ZERO))
    return found


def price_table(comparison: Comparison) -> Table:
    """Every part once, with its price and where that is from: what a workbook computes from."""
    rows: list[list[Value]] = []
    for part in priced_parts(comparison):
        price = part.price
        rows.append(
            [
                part.name,
                part.kind,
                part.description,
                usd(price.usd if price else None, is_input=True),
                mark(price.confidence if price else "no price"),
                price.as_of if price else "",
                price.source if price else "",
                part.source,
            ]
        )
    headings = ["Part", "Kind", "Description", "Unit price", "Confidence", "As of"]
    headings += ["Source of the price", "Source of the rest"]
    return table("prices", "Prices and their sources", headings, rows, is_sortable=True)
