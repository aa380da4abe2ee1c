"""What a report rests on: risks, assumptions, prices, checks, and how to make it again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from libra_planner.costs.prices import ASSUMED
from libra_planner.costs.quotes import Quote, rate_ends
from libra_planner.plan.steps.notes import plan_notes
from libra_planner.procurement.bill import (
    CABLING,
    NIC,
    NPU,
    OPTIC,
    SERVER,
    SUPPORT,
    SWITCH,
    Part,
    SideNetwork,
)
from libra_planner.procurement.bought.split_rails import split_notes
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import quoted_support_usd, quoted_usd
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import (
    NO_NPU,
    QUANTITIES,
    RACK_POWER,
    RACKED,
    SPARES,
    AssumedPrice,
    assumed_fraction,
    assumed_prices,
    assumed_text,
    cage_texts,
    memory_texts,
    resting_usd,
    used_in,
)
from libra_planner.units import gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    mark,
    number,
    percent,
    table,
    unit_usd,
    usd,
)
from libra_planner.views.links import whole_link_notes
from libra_planner.views.plan import as_checked
from libra_planner.views.report.bills import (
    EXTENDED,
    HALF_A_CENT,
    OFFERS,
    PRICE_COLUMNS,
    USD,
    confidence_mark,
    group_cell,
    lines_sum,
    price_cell,
    priced_parts,
    rate_cell,
    rates,
)
from libra_planner.views.report.bills import SPARES as SPARES_USD
from libra_planner.views.report.routed.placing import placement_values
from libra_planner.views.report.strategies import technology_notes
from libra_planner.views.training.copies import copies_assumption, copies_notes

_BITS = 8


def risk_section(comparison: Comparison) -> Section:
    """What could make the figures wrong."""
    risks = tuple(dict.fromkeys(_risks(comparison)))
    tables = (_assumption_table(comparison), *_price_table(comparison))
    title = "Risks and assumptions"
    return Section("risks", title, "Assumptions", risks, tables=tables, is_static=True)


def _risks(comparison: Comparison) -> Iterator[str]:
    parts = comparison.shop.parts
    yield f"Parts catalogue of {parts.as_of}: {parts.source}."
    drawing = (x.part for x in comparison.bill.lines if x.part.kind in _DRAWING_POWER)
    names = ", ".join(dict.fromkeys(part.name for part in drawing if not part.power_w))
    if names:
        yield f"No power is known for {names}: totals of power are without it."
    yield from _without_spares(comparison)
    letters: dict[str, list[str]] = {}
    for one in comparison.candidates:
        for note in _notes(one):
            letters.setdefault(note, []).append(one.letter)
    for note, whose in letters.items():
        yield f"{', '.join(dict.fromkeys(whose))}: {note}."
    if all(one.check is None for one in comparison.candidates):
        yield (
            "Step times are not checked: links deliver all they have. Routing by hash takes "
            "longer; --check ecmp measures it."
        )


def _without_spares(comparison: Comparison) -> Iterator[str]:
    """Parts that nobody buys spares of."""
    parts = (line.part for one in comparison.candidates for line in one.bill.lines)
    sold = (x for x in parts if x.kind in (*_DRAWING_POWER, *CABLING) and x.unit_usd)
    found = dict.fromkeys(x.name for x in sold if not x.spare_fraction)
    if found:
        yield (
            f"No spares of {', '.join(found)} are bought: spare_fraction is 0 or missing in the "
            "parts catalogue."
        )


def _notes(one: Candidate) -> Iterator[str]:
    """What could make the figures of one design wrong."""
    yield f"{assumed_text(one.bill)} of its price is assumed"
    yield from memory_texts(one)
    yield from technology_notes(one)
    yield from split_notes(one)
    yield from cage_texts(one)
    problem = one.proposal.problem
    yield from copies_assumption(problem)
    yield from copies_notes(problem, one.billed.bandwidth_bytes_per_s)
    yield from plan_notes(problem if one.check is None else as_checked(problem))
    yield from whole_link_notes(one.bought.design)
    for note in one.bought.design.realization.notes:
        yield f"preset, where the plan says nothing else: {note}"


_DRAWING_POWER = (NPU, SERVER, NIC, SWITCH, OPTIC)


def _assumption_table(comparison: Comparison) -> Table:
    assumed, power = comparison.shop.assumptions, "Electricity, $ per kWh"
    shops = (one.proposal.shop for one in comparison.candidates)
    servers = dict.fromkeys(
        (x.server.name, x.server.n_npus) for x in (s.assumptions for s in shops)
    )
    lengths = ", ".join(f"{name} {length:g} m" for name, length in assumed.cable_lengths_m.items())
    values: dict[str, Value] = {
        **({NO_NPU: assumed.npu.name} if _needs_npu(comparison.candidates) else {}),
        "Server": "; ".join(f"{name}, {n} NPUs" for name, n in servers),
        "Cable lengths": lengths,
        **{f"{side.name} network": _side(side) for side in assumed.side_networks},
        RACK_POWER: f"{assumed.rack.power_limit_w / 1000:g} kW",
        "Usable height of a rack": percent(assumed.usable_rack_fraction, 0),
        "Floor per rack, m²": number(assumed.floor_m2_per_rack),
        power: number(assumed.electricity.usd_per_kwh, 4),
        "Power usage effectiveness": number(assumed.pue, 2),
    }
    if comparison.has_run:
        values["Checkpoint, s"] = f"{assumed.checkpoint_s:g}"
        values["Restart, s"] = f"{assumed.restart_s:g}"
    values["Spares"] = "a share of units by part, rounded up: parts catalogue"
    values |= placement_values(comparison)
    if racked := _racked(comparison):
        values[RACKED] = racked
    one, known = comparison.candidates[comparison.chosen], {power: assumed.electricity.confidence}
    rows = [
        [name, value, mark(known.get(name, ASSUMED)), _resting(one, name)]
        for name, value in values.items()
    ]
    rows.sort(key=lambda row: -_amount(row[-1]))
    headings = ["What", "Value", "Confidence", f"$ that rest on it, {one.letter}"]
    note = (
        "What the lines cost that would change with it, before tax. A line may rest on several, so "
        "that these do not add up. What has no dollars counts in step times or in the cost of runs."
    )
    return table("assumptions", "Assumptions, dearest first", headings, rows, note=note)


def _needs_npu(candidates: Iterable[Candidate]) -> bool:
    """Whether a plan names no NPU, so that the one of the assumptions is bought."""
    return any(one.proposal.npu is None for one in candidates)


def _racked(comparison: Comparison) -> str:
    """How many NPUs stand in one rack with their leaf, by design; empty where none do."""
    found = [(one.letter, x) for one in comparison.candidates for x in one.facility.leaf_racks]
    return "; ".join(
        f"{letter} {x.n_npus} (npus_per_rack), a rack holds {x.n_held}"
        if x.is_said
        else f"{letter} {x.n_npus}, what a rack holds"
        for letter, x in found
    )


def _resting(one: Candidate, name: str) -> Value:
    """What the bill has on an assumed quantity; empty for what no bill has."""
    if name not in QUANTITIES or not (amount := resting_usd(one, name)):
        return usd("")
    term = SPARES_USD if name == SPARES else EXTENDED
    return usd(amount, lines_sum(one, lambda line: QUANTITIES[name](one, line), term))


def _amount(value: Value) -> float:
    return float(value.value or 0) if isinstance(value, Cell) else 0.0


def _price_table(comparison: Comparison) -> Iterator[Table]:
    """The assumed prices of the design to buy; none where it has none."""
    one = comparison.candidates[comparison.chosen]
    found, bill, whole = assumed_prices(one), one.bill, group_cell(one, "total")
    if not found:
        return
    columns: dict[str, Callable[[AssumedPrice], Value]] = {
        "Part": lambda x: x.part.name,
        "Description": lambda x: x.part.description,
        "Units, with spares": lambda x: cells.count(x.n_bought),
        "Unit price": lambda x: unit_usd(x.part.unit_usd, price_cell(comparison, x.part.name)),
        "Low": lambda x: usd(x.part.price.low_usd if x.part.price else None),
        "High": lambda x: usd(x.part.price.high_usd if x.part.price else None),
        "Total, $": lambda x: usd(
            x.usd, lines_sum(one, lambda line: line.part.name == x.part.name)
        ),
        "Share of the price": lambda x: percent(bill.fraction_of(x.usd), 2, f"[c6]/{whole}"),
    }
    last: list[Value] = ["Total", *[""] * 5, usd(bill.assumed_usd, "SUM([r6])")]
    last += [percent(assumed_fraction(bill), 2, f"[t6]/{whole}")]
    caption = f"Assumed prices of design {one.letter}, dearest first"
    yield cells.table_of(caption, found, columns, key="assumed-prices", total=last)


def assumed_payload(one: Candidate) -> dict[str, Any]:
    """What of a design rests on assumptions, for JSON."""
    rests = {RACKED: bool(one.facility.leaf_racks), NO_NPU: _needs_npu([one])}
    known = (name for name in QUANTITIES if rests.get(name, True))
    sums = {name: float(resting_usd(one, name)) for name in known}
    prices = [
        {
            "item": x.part.name,
            "n_bought": x.n_bought,
            "unit_usd": float(x.part.unit_usd or 0),
            "usd": float(x.usd),
            "fraction": one.bill.fraction_of(x.usd),
        }
        for x in assumed_prices(one)
    ]
    ranked = sorted(sums.items(), key=lambda item: -item[1])
    quantities = [{"what": name, "usd": amount} for name, amount in ranked]
    return {"assumed_quantities": quantities, "assumed_prices": prices}


def _side(side: SideNetwork) -> str:
    speed = _BITS * gigabytes_per_s(side.port_speed_Bps)
    return (
        f"{side.n_ports_per_server} x {speed:g} Gbit/s per server, {side.switch_radix}-port "
        f"switches, {side.oversubscription:g}:1{_reserved(side)}"
    )


def _reserved(side: SideNetwork) -> str:
    return f", {side.n_reserved:,} positions left free" if side.n_reserved else ""


def origin_section(comparison: Comparison) -> Section:
    """How to make the same report again."""
    origin = comparison.origin
    rows: list[list[Value]] = [["command", origin.command, ""]]
    rows += [["version", name, version] for name, version in origin.versions]
    rows += [[role, name, sha256] for role, name, sha256 in origin.files]
    text = (
        "The same files, versions and command give the same bytes on the same day, from the same "
        "folder. Where -o writes to makes no difference."
    )
    headings = ["What", "Name", "Version or SHA-256"]
    one = table("origin", "Inputs and versions", headings, rows)
    title = "How to make this report again"
    return Section("origin", title, "Origin", (text,), tables=(one,), is_folded=True)


def _rate_table(comparison: Comparison) -> list[Table]:
    """Tax and rates, for a reader's own; none where there are none."""
    share = comparison.candidates[0].bill.tax_fraction
    tax = Cell(share, kind=cells.PERCENT, digits=3, is_input=True)
    rows: list[list[Value]] = [["Tax, share of everything", tax, "", "", ""]] if share else []
    for currency, rate in rates(comparison).items():
        own = Cell(rate, kind=cells.NUMBER, digits=6, is_input=True)
        rows.append([f"1 {currency} in USD", own, *_sellers(comparison, currency)])
    caption = "Tax and exchange rates, which totals follow in the workbook"
    headings = ["What", "Value", "Same sellers from", "to", "At this value"]
    note = (
        "Sellers are chosen at the rates of the quotes. At a rate beyond these ends another seller "
        "is cheaper, which no formula here follows: make a new report with that rate."
    )
    if not rows or not rates(comparison):
        rows, headings, note = [row[:2] for row in rows], headings[:2], ""
    return [cells.table("rates", caption, headings, rows, note=note)] if rows else []


def _sellers(comparison: Comparison, currency: str) -> list[Value]:
    """Between which rates the sellers stay the same, and whether they do at that of a workbook."""
    low, high = rate_ends(used_in(comparison), currency)
    found = [number(low, 4) if low else "", number(high, 4) if math.isfinite(high) else ""]
    ends = [f"[c1]>={low!r}"] * (low > 0) + [f"[c1]<={high!r}"] * math.isfinite(high)
    same, other = "the same sellers", "ANOTHER SELLER IS CHEAPER: make a new report"
    formula = f'"{same}"'
    for end in ends:
        formula = f'IF({end},{formula},"{other}")'
    return [*found, Cell(same, formula if ends else "")]


def _input_price(comparison: Comparison, part: Part) -> Cell:
    """What a reader may change; a price in another currency follows its rate until then."""
    price = part.price
    if price is None or price.currency == USD:
        return unit_usd(part.unit_usd, is_input=True)
    at = rate_cell(comparison, price.currency)
    amount = f"{price.usd}/{price.rate!r}" if price.amount is None else f"{price.amount:f}"
    return unit_usd(price.usd, f"IF(ISNUMBER({at}),{amount}*{at},NA())", is_input=True)


def price_section(comparison: Comparison) -> Section:
    """All prices with their sources, every part once: what a workbook computes from."""
    text = (
        "Published: a price list or paper anyone can read. Quoted: a vendor's offer. Assumed: an "
        "estimate, to be replaced by a quote before anything is signed. Low and high: the ends of "
        "what sources say. In the workbook, change a unit price, a rate or the tax here, and every "
        "total moves."
    )
    caption, parts = "Prices and their sources", priced_parts(comparison)
    columns: dict[str, Callable[[Part], Value]] = {
        "Part": lambda part: part.name,
        "Kind": lambda part: part.kind,
        "Description": lambda part: part.description,
        "Unit price": partial(_input_price, comparison),
        "Confidence": confidence_mark,
        "Low": lambda part: unit_usd(part.price.low_usd if part.price else None),
        "High": lambda part: unit_usd(part.price.high_usd if part.price else None),
        "As of": lambda part: part.price.as_of if part.price else "",
        "Source of the price": lambda part: part.price.source if part.price else "",
        "Source of the rest": lambda part: part.source,
        **{name: of for name, of in OFFERS.items() if any(map(of, parts))},
        **_next_columns(comparison),
    }
    twice = ("Kind", "Seller", "Valid until", *_NEXT)  # Part, source and offers say it.
    where = {"off_page": twice, "print_to": "Source of the price"}
    table = cells.table_of(caption, parts, columns, key="prices", is_sortable=True, **where)
    tables = (table, *_rate_table(comparison))
    return Section("prices", "Prices", "Prices", (text,), tables=tables, is_folded=True)


_NEXT = ("Next seller", "Next offer with support, $", "At this price")
"""Columns of what counts once a price is above it."""

_SAME, _OTHER = "the same seller", "ANOTHER SELLER IS CHEAPER"


def _next_offers(comparison: Comparison) -> dict[str, Quote]:
    """The offer of another seller that counts next, by part."""
    quotes = {quote.item: quote.next_offer for quote in used_in(comparison)}
    names = [part.name for part in priced_parts(comparison)]
    return {name: found for name in names if (found := quotes.get(name))}


def _next_columns(comparison: Comparison) -> dict[str, Callable[[Part], Value]]:
    """Columns of the next offer, and whether a reader's price is above it; none without any."""
    following = _next_offers(comparison)

    def stays(part: Part) -> Value:
        if part.name not in following:
            return ""
        verdict = f'IF({_is_above(comparison, part.name)},"{_OTHER}","{_SAME}")'
        own = price_cell(comparison, part.name)
        return Cell(_SAME, f"IF(ISNUMBER({own}),{verdict},NA())" if own else verdict)

    columns: tuple[Callable[[Part], Value], ...] = (
        lambda part: following[part.name].seller if part.name in following else "",
        lambda part: _next_usd(comparison, following.get(part.name)),
        stays,
    )
    return dict(zip(_NEXT, columns, strict=True)) if following else {}


def _next_usd(comparison: Comparison, offer: Quote | None) -> Value:
    """What the next offer asks for one with its support; in another currency by its rate."""
    if offer is None:
        return ""
    worth = quoted_usd(offer) + quoted_support_usd(offer)
    if offer.currency not in rates(comparison):
        return unit_usd(worth)
    at, amount = rate_cell(comparison, offer.currency), offer.amount + offer.support
    return unit_usd(worth, f"IF(ISNUMBER({at}),{amount!r}*{at},NA())")


def _is_above(comparison: Comparison, name: str) -> str:
    """Whether a price of the workbook with its support is above the next offer."""
    parts = priced_parts(comparison)
    names = [part.name for part in parts]
    own = price_cell(comparison, name), price_cell(comparison, f"{SUPPORT} of {name}")
    worth = "+".join(f"N({at})" for at in own if at)
    n_before = PRICE_COLUMNS + sum(any(map(of, parts)) for of in OFFERS.values())
    return f"{worth}>[prices/{names.index(name)}/{n_before + 1}]+{HALF_A_CENT}"


def _has_prices(comparison: Comparison) -> str:
    """Whether every price stands in the workbook that stood there when it was made."""
    names = [part.name for part in priced_parts(comparison) if part.price is not None]
    found = filter(None, (price_cell(comparison, name) for name in names))
    return f"AND({','.join(f'ISNUMBER({at})' for at in found)})"


def seller_verdict(comparison: Comparison) -> list[Cell]:
    """Whether a price of the workbook is above another seller's offer; none without such offers.

    Where a price or a rate was taken away, nobody knows.
    """
    terms = [f"IF({_is_above(comparison, name)},1,0)" for name in _next_offers(comparison)]
    same = "At the prices of this workbook no other seller is cheaper"
    other = (
        "ANOTHER SELLER IS CHEAPER than a price of this workbook, which no total follows: see the "
        f"column {_NEXT[-1]} of the sheet Prices, and write that offer there, or make a new report"
    )
    missing = "A price or a rate is missing: which sellers are cheapest is not known"
    verdict = f'IF({"+".join(terms)}>0,"{other}","{same}")'
    known = f"IF({_has_prices(comparison)},{verdict},NA())"
    expression = f'IFERROR({known},"{missing}")'
    return [Cell(same, expression)] if terms else []
