"""Bills of materials, prices, and what a workbook computes.

Expressions name cells as :mod:`~libra_planner.views.cells` says; of texts they hold
this program's own words and the designs' letters only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from libra_planner.procurement.bill import (
    GROUPS,
    NETWORK,
    SERVICES,
    SUPPORT,
    ZERO,
    Bill,
    Fit,
    Line,
    Part,
    to_cents,
)
from libra_planner.procurement.bought.choices import choice_text, open_choices
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison, in_order
from libra_planner.views import cells, plan
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    number,
    percent,
    unit_usd,
    usd,
)

HALF_A_CENT = 0.005
_TAX_WEIGHT = 1000000
"""Dollars whose tax is looked at: a share that moves by rounding alone has not changed."""

PRICE_COLUMNS, PRICE_COLUMN, END_COLUMNS = 10, 3, (5, 6)
"""Those of any table of prices; of the unit price in it, and of the ends that sources say."""
QUANTITY_COLUMN, SPARE_COLUMN, UNIT_COLUMN, SOURCE_COLUMN, EXTENDED_COLUMN = 4, 5, 6, 7, 8
"""Of units in use, spares, the unit price, what it rests on, and the line's price, in a bill."""


PLURAL = {
    "npu": "NPUs",
    "nic": "NICs",
    "switch": "switches",
    "copper": "copper cables",
    "active_optical": "active optical cables",
    "fibre": "fibres",
    "link": "links per GB/s",
    "support": "support contracts",
}
"""Kinds of parts whose plural is not the word with an s."""


LEFT_OUT = (
    *("building", "cooling", "staff", "storage systems", "head nodes", "out-of-band network"),
    "software",
)
"""What no bill holds, and a plan's fixed cost may."""


def words_of_kind(kind: str) -> str:
    """Parts of a kind in words.

    >>> words_of_kind("switch"), words_of_kind("optic")
    ('switches', 'optics')
    """
    return PLURAL.get(kind, f"{kind}s")


def priced_parts(comparison: Comparison) -> list[Part]:
    """Every part of every bill once, in the order they appear: the rows of the prices."""
    return list({line.part.name: line.part for line in comparison.bill.lines}.values())


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


EXTENDED = f"{{at}}{EXTENDED_COLUMN}]"
SPARES = f"{{at}}{SPARE_COLUMN}]*N({{at}}{UNIT_COLUMN}])"
UNITS = f"{{at}}{QUANTITY_COLUMN}],{{at}}{SPARE_COLUMN}]"
FREE_PORTS = (
    f"ROUND({{at}}{QUANTITY_COLUMN}]*N({{at}}{UNIT_COLUMN}])"
    "*{line.n_free_ports}/{line.n_ports},2)"
)
"""What a line costs, its spares, its units with them, its ports without a cable, to the cent."""


def lines_sum(
    one: Candidate, meant: Callable[[Line], object], term: str = EXTENDED, total: str = "SUM({})"
) -> str:
    """What some lines of a bill cost, or a term of theirs; empty for none."""
    bill = f"bill-{one.letter.lower()}"
    lines = [(i, line) for i, line in enumerate(one.bill.lines) if meant(line)]
    terms = (term.format(at=f"[{bill}/{i}/", line=line) for i, line in lines)
    return total.format(",".join(terms)) if lines else ""


USD = "USD"
"""The currency of every sum."""

TAX_CELL = "[rates/0/1]"
"""Where the share of tax stands, where anybody names one."""


def rates(comparison: Comparison) -> dict[str, float]:
    """What one unit of every currency of a price is worth in USD."""
    prices = (part.price for part in priced_parts(comparison) if part.price)
    return {price.currency: price.rate for price in prices if price.currency != USD}


def rate_cell(comparison: Comparison, currency: str) -> str:
    """Where the rate of a currency stands."""
    has_tax = comparison.candidates[0].bill.tax_fraction > 0
    return f"[rates/{[*rates(comparison)].index(currency) + has_tax}/1]"


def tax_formula(total: str) -> str:
    """Tax over what stands in a cell, to the cent."""
    return f"IF(ISNUMBER({TAX_CELL}),ROUND({total}*{TAX_CELL},2),NA())"


def price_cell(comparison: Comparison, name: str) -> str:
    """Where the unit price of a part stands; empty for prices that several parts share."""
    names = [part.name for part in priced_parts(comparison)]
    return f"[prices/{names.index(name)}/{PRICE_COLUMN}]" if name in names else ""


def end_move(comparison: Comparison, one: Candidate, row: int, side: int) -> str:
    """What a line costs more at the low (0) or high (1) end of its price; empty without a range."""
    price, now = (
        one.bill.lines[row].part.price,
        price_cell(comparison, one.bill.lines[row].part.name),
    )
    if not now or price is None or (price.low_usd, price.high_usd)[side] is None:
        return ""
    end, least = now.replace(f"/{PRICE_COLUMN}]", f"/{END_COLUMNS[side]}]"), ("MIN", "MAX")[side]
    units = "+".join(line_cell(one, row, at) for at in (QUANTITY_COLUMN, SPARE_COLUMN))
    return f"ROUND(({units})*({least}({end},{now})-{now}),6)"


def price_sum(one: Candidate, price_name: str) -> str:
    """What the lines of one price come to in a design; empty for a design without them."""
    return lines_sum(one, lambda line: line.part.price_name == price_name)


def prices_moved(comparison: Comparison) -> str:
    """Whether any unit price is not the one that the report was made with."""
    terms = (
        f"ABS(N([prices/{i}/{PRICE_COLUMN}])-{float(part.unit_usd or 0)!r})"
        for i, part in enumerate(priced_parts(comparison))
    )
    share = comparison.candidates[0].bill.tax_fraction
    tax = [f"{_TAX_WEIGHT}*ABS(N({TAX_CELL})-{float(share)!r})"] if share else []
    # Added with +: a function of Excel takes 255 arguments.
    return f"{'+'.join([*terms, *tax])}>={HALF_A_CENT}"


def verdict(comparison: Comparison) -> Cell:
    """Cheapest and best per dollar at the prices of the workbook.

    Of equals the first of :func:`~libra_planner.procurement.ranking.in_order`.
    """
    designs, ranking = comparison.candidates, comparison.ranking
    ranked = in_order(designs, [float(one.bill.total_usd) for one in designs])
    letters = [comparison.letters[i] for i in ranked]
    totals = [group_cell(designs[i], "total") for i in ranked]
    text = f"At the prices of this workbook: cheapest {comparison.letters[ranking.cheapest]}"
    formula = f'"At the prices of this workbook: cheapest "&{_least(totals, letters)}'
    times_s = comparison.times_s
    if ranking.best_per_usd is not None and times_s is not None:
        products = [f"{at}*{times_s[i]!r}" for at, i in zip(totals, ranked, strict=True)]
        text += f", best per dollar {comparison.letters[ranking.best_per_usd]}"
        formula += f'&", best per dollar "&{_least(products, letters)}'
    missing = "A price is missing on the sheet Prices: totals are #N/A"
    return Cell(text, expression=f'IFERROR({formula},"{missing}")')


def _least(values: list[str], letters: list[str]) -> str:
    """The letter of the first of the smallest values."""
    least = f"MIN({','.join(values)})"
    found = f'"{letters[-1]}"'
    for value, letter in reversed(list(zip(values[:-1], letters[:-1], strict=True))):
        found = f'IF({value}={least},"{letter}",{found})'
    return found


_KW = 1000.0


def bill_section(comparison: Comparison, one: Candidate) -> Section:
    """The bill of one design."""
    tables = [_bill_table(comparison, one), *_tax_table(one), _group_table(one)]
    base = comparison.baseline
    if base is not None and comparison.letters[base] != one.letter:
        tables.append(_changes(comparison.candidates[base], one))
    names, sheet = ", ".join(part.name for part in one.bill.missing), f"Design {one.letter}"
    missing = f"No price is known for: {names}. The total is without them."
    said = (_head(one), *map(choice_text, open_choices(one.bill)))
    texts = (said, (missing,) if names else ())
    key, title = f"design-{one.letter.lower()}", f"{sheet}: bill of materials"
    return Section(
        key,
        title,
        sheet,
        *texts,
        tables=tuple(tables),
        is_static=True,
        is_folded=one is not comparison.candidates[comparison.chosen],
        is_printed=len(comparison.candidates) <= _MOST_PRINTED,
    )


def choices_payload(one: Candidate) -> list[dict[str, Any]]:
    """Which parts were taken where others fit, for JSON: once for each line of the bill."""
    return [
        {
            "place": line.tier,
            **_fit(line.choice.taken),
            "is_named": line.choice.is_named,
            "others": [_fit(fit) for fit in line.choice.others],
        }
        for line in one.bill.lines
        if line.choice is not None
    ]


def _fit(fit: Fit) -> dict[str, Any]:
    """A part, and what one need costs with it: of optics a link with its fibre."""
    return {"part": fit.part.name, "usd": None if fit.usd is None else float(fit.usd)}


_MOST_PRINTED = 3
"""Designs whose bills ten pages of paper have room for."""


def rules_of_ports(one: Candidate) -> Iterator[str]:
    """Rules of the plan that the ports of the bill break, as ports come whole."""
    for broken in one.built_beyond:
        by = f"{broken.rule}{plan.line_text(broken.line)}, {plan.amount_text(broken)}"
        yield f"Whole ports of {one.letter} break a rule of its plan that it meets itself: {by}."


def _head(one: Candidate) -> str:
    proposal, speeds = one.proposal, " and ".join(one.bought.chosen_speeds)
    open_speed = (
        f" The plan gives no port speed for {speeds}: the slowest NIC that suffices is taken."
    )
    npu = proposal.npu or proposal.shop.assumptions.npu
    from_whom = "the plan's" if proposal.npu else "assumed, the plan names none"
    return (
        f"{proposal.name}: {proposal.problem.topology}, {one.n_npus:,} NPUs ({npu.name}, "
        f"{from_whom}).{open_speed if speeds else ''}"
    )


def _bill_table(comparison: Comparison, one: Candidate) -> Table:
    total, share = one.bill.total_usd, one.bill.fraction_of
    columns: dict[str, Callable[[Line], Value]] = {
        "Part": lambda line: line.part.name,
        "Group": lambda line: line.group,
        "Tier": lambda line: line.tier,
        "Description": lambda line: line.part.description,
        "Quantity": lambda line: cells.count(line.n_units),
        "Spare": lambda line: cells.count(line.n_spares),
        "Unit price": lambda line: _unit_price(line, price_cell(comparison, line.part.name)),
        "Source": lambda line: confidence_mark(line.part),
        "Extended": lambda line: usd(line.extended_usd, known(line.part, "[c6]", _BOUGHT)),
        "W each": lambda line: number(line.part.power_w, 1),
        "kW": lambda line: number(line.power_w / _KW, 3, "[c4]*[c9]/1000"),
        "Share": lambda x: percent(share(x.extended_usd), 2, known(x.part, "[c8]", "[c8]/[t8]")),
        **_offer_columns(comparison),
        "Note": lambda line: line.note,
    }
    label = "Total" if not one.bill.missing else "Total of the lines with a price"
    kw = number(one.bill.power_w / _KW, 3, "SUM([r10])")
    last = [label, *[""] * 7, usd(total, "SUM([r8])"), "", kw, percent(1.0 if total else None)]
    last += [""] * (len(columns) - len(last))
    ordered = [name for name in _ordered(one) if name in columns]
    return cells.table_of(
        f"Bill of materials of design {one.letter}",
        one.bill.lines,
        columns,
        key=f"bill-{one.letter.lower()}",
        total=last,
        note=_bill_note(one, ordered),
        is_sortable=True,
        dispensable=("Group", "W each", "kW", "Share", "Note"),
        off_page=("W each", "kW", "Share", *ordered),
        print_to="Extended",
    )


def _bill_note(one: Candidate, ordered: Sequence[str]) -> str:
    """What paper has no column for: where the rest stands, and the ports of switches."""
    text = (
        "Spares of a part are one stock for all its lines, and stand on that of most units. What "
        "each price rests on, in full: section Prices. Power and share of every line: workbook "
        "and CSV."
    )
    text += f" {', '.join(ordered)}: section Orders." if ordered else ""
    shown = (to_cents(line.extended_usd or ZERO) for line in one.bill.lines)
    text += _ROUNDED if sum(shown, ZERO) != to_cents(one.bill.total_usd) else ""
    told = [f"{line.tier}: {line.note}" for line in one.bill.of(NETWORK).lines if line.n_ports]
    return f"{text} Switches of {'; '.join(told)}." if told else text


_ROUNDED = (
    " Prices in another currency are exact in dollars, and so is the total; lines are shown to the "
    "cent, and their cents may add up to another one."
)


def _ordered(one: Candidate) -> Iterator[str]:
    """What orders say, too, where there are any: a page has room for notes in their place."""
    if any(line.part.price and line.part.price.seller for line in one.bill.lines):
        yield from (name for name in OFFERS if name != "Seller")


OFFERS: Mapping[str, Callable[[Part], Value]] = {
    "Seller": lambda part: part.price.seller if part.price else "",
    "Part number": lambda part: part.part_number,
    "Lead time, days": lambda part: cells.count(part.n_lead_days) if part.n_lead_days else "",
    "Valid until": lambda part: (part.price and part.price.valid_until) or "",
}
"""What offers say of parts."""


def _offer_columns(comparison: Comparison) -> dict[str, Callable[[Line], Value]]:
    """Columns of what an offer says of any part."""
    parts = priced_parts(comparison)
    shown = {name: of for name, of in OFFERS.items() if any(map(of, parts))}
    return {name: partial(_of_part, of) for name, of in shown.items()}


def _of_part(of: Callable[[Part], Value], line: Line) -> Value:
    return of(line.part)


def _tax_table(one: Candidate) -> list[Table]:
    """The total before and after tax; none where nobody names one."""
    bill = one.bill
    if not bill.tax_fraction:
        return []
    share, total = bill.tax_fraction, group_cell(one, "total")
    rows: list[list[Value]] = [
        ["Total before tax", usd(bill.total_usd, total)],
        [f"Tax, as printed {100 * share:.6g}%", usd(bill.tax_usd, tax_formula(total))],
    ]
    last: list[Value] = ["Total with tax", usd(bill.with_tax_usd, "SUM([r1])")]
    caption, key = f"Design {one.letter} with tax", f"tax-{one.letter.lower()}"
    return [cells.table(key, caption, ["", "$"], rows, total=last)]


_BOUGHT = "([c4]+[c5])*[c6]"


def confidence_mark(part: Part) -> Cell:
    """What the price of a part rests on, as a mark."""
    return cells.mark(part.price.confidence if part.price else "no price")


def _unit_price(line: Line, where: str) -> Cell:
    """What one costs; a price that somebody takes away is no $0."""
    shown = f"IF(ISNUMBER({where}),{where},NA())" if line.part.price and where else where
    return unit_usd(line.part.unit_usd, known(line.part, where, shown))


def known(part: Part, where: str, expression: str) -> str:
    """An expression that stays empty until somebody writes a price that is not known."""
    return expression if part.price else f'IF({where}="","",{expression})'


def _group_table(one: Candidate) -> Table:
    letter, total = one.letter.lower(), one.bill.total_usd
    at, share = f"SUMIF([bill-{letter}/r1],[c0],[bill-{letter}/", "[c1]/[t1]" if total else ""
    bills = {group: one.bill.of(group) for group in GROUPS}
    quoted = (SUPPORT, SERVICES)
    groups = [group for group in GROUPS if group not in quoted or bills[group].lines]
    columns: dict[str, Callable[[str], Value]] = {
        "Group": str,
        "Extended": lambda group: usd(bills[group].total_usd, f"{at}r8])"),
        "Share": lambda group: percent(one.bill.fraction_of(bills[group].total_usd), 1, share),
        "kW": lambda group: number(bills[group].power_w / _KW, 3, f"{at}r10])"),
    }
    whole = percent(1.0 if total else None)
    kw = number(one.bill.power_w / _KW, 3, "SUM([r3])")
    last: list[Value] = ["Total", usd(total, "SUM([r1])"), whole, kw]
    caption = f"Design {one.letter} by group"
    return cells.table_of(
        caption, groups, columns, key=f"groups-{letter}", total=last, is_folded=True
    )


def _changes(base: Candidate, one: Candidate) -> Table:
    """Lines that differ from the baseline's; their differences add up to that of the totals."""
    rows: list[list[Value]] = []
    lines = (*base.bill.lines, *one.bill.lines)
    for place in dict.fromkeys((line.tier, line.part.name) for line in lines):
        units, amounts, sums = zip(*(_bought(x, place) for x in (base, one)), strict=True)
        if len({*units}) > 1 or len({*amounts}) > 1:
            change = cells.delta_usd(amounts[1] - amounts[0], "[c5]-[c4]")
            rows.append([*place[::-1], *map(cells.count, units), *map(usd, amounts, sums), change])
    # A range of no rows would hold the total itself.
    moved = cells.delta_usd(one.bill.total_usd - base.bill.total_usd, "SUM([r6])" if rows else "")
    letters, key = (base.letter, one.letter), f"changes-{one.letter.lower()}"
    counted = (f"Units in {letter}" for letter in letters)
    headings = ["Part", "Tier", *counted, *letters, "Difference"]
    caption = f"What changes from {base.letter} to {one.letter}, spares included"
    last: list[Value] = ["Difference of the totals", *[""] * 5, moved]
    note = "" if rows else f"Nothing changes: the bill is that of {base.letter}."
    return cells.table(
        key, caption, headings, rows, total=last, note=note, is_sortable=True, is_folded=True
    )


def _bought(one: Candidate, place: tuple[str, str]) -> tuple[int, Decimal, str]:
    """Units of a part in a tier, spares included, their price, and where it stands."""
    lines = tuple(line for line in one.bill.lines if (line.tier, line.part.name) == place)
    formula = lines_sum(one, lambda line: line in lines)
    return sum(line.n_bought for line in lines), Bill(lines).total_usd, formula
