"""Bills of materials as tables, prices, and what changes between designs."""

from __future__ import annotations

from decimal import Decimal

from libra_planner.procurement.bill import GROUPS, ZERO, Bill, Line
from libra_planner.procurement.candidate import Candidate
from libra_planner.report.documents.cells import (
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
from libra_planner.report.documents.inputs import Comparison
from libra_planner.report.documents.linear_table import linear_table, why
from libra_planner.report.documents.live import PRICE_COLUMN, lines_sum, priced_parts

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
