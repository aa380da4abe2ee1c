"""Offers of sellers: which count, which do not and why, and what is ordered from whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from libra_planner.costs.quotes import TAX, Quote
from libra_planner.procurement.bill import FRONTEND, NETWORK, NETWORKS, ZERO, Bill
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import used_in
from libra_planner.views import cells
from libra_planner.views.cells import Section, Value, number, round_usd, usd

_Offer: TypeAlias = tuple[Quote, str]
"""An offer, and why it counts or not."""

LIST_PRICES = "list prices"
"""Who sells what nobody has quoted."""


def day_text(comparison: Comparison) -> str:
    """The day of the report, and the one on which its quotes have to hold."""
    quotes, day = comparison.shop.quotes, comparison.origin.day
    held = f", quotes held as of {quotes[0].day}" if quotes else ""
    return f"Made on {day}{held}"


def before_tax(one: Candidate) -> str:
    """What to say behind money that is without a tax which somebody names."""
    return " before tax" if one.bill.tax_fraction else ""


def order_text(one: Candidate) -> str:
    """What is ordered from whom; empty where nobody has quoted anything."""
    sums: dict[str, list[str]] = {}
    by_seller = one.bill.usd_by_seller()
    for seller in dict.fromkeys(seller for seller, _ in by_seller):
        found = {money: x for (who, money), x in by_seller.items() if who == seller}
        foreign = [f"{round_usd(x).shown} in {name}" for name, x in found.items() if name != "USD"]
        some = f" ({', '.join(foreign)})" if foreign else ""
        total = round_usd(sum(found.values(), ZERO)).shown
        sums.setdefault(f"{seller or LIST_PRICES} {total}{some}", [])
    if not any(seller for seller, _ in by_seller):
        return ""
    return f"Orders{before_tax(one)}: {', '.join(sums)}."


def network_text(one: Candidate) -> str:
    """What the networks cost, as a share of the price of everything."""
    bill = one.bill
    of = {group: bill.of(group).total_usd for group in NETWORKS}
    total = sum(of.values(), ZERO)
    share = f" ({bill.fraction_of(total) or 0.0:.1%} of it)"
    fabric, sides = round_usd(of[NETWORK]).shown, round_usd(total - of[NETWORK]).shown
    whole = f"Networks are {round_usd(total).shown}{share}{before_tax(one)}"
    return f"{whole}: training {fabric}, {FRONTEND} and storage {sides}."


def _offers(comparison: Comparison) -> Iterator[_Offer]:
    """All offers of what any design rests on; a bill of parts has no prices per GB/s."""
    billed = {line.part.price.source for line in comparison.bill.lines if line.part.price}
    for quote in used_in(comparison):
        first, *others = quote.verdicts
        is_linear = quote.tier_part is not None and quote.source not in billed
        yield (quote, "counts in the plan's linear cost alone") if is_linear else first
        yield from others


def offer_section(comparison: Comparison) -> Section | None:
    """All offers of what is bought; ``None`` without quotes."""
    found = [*_offers(comparison)]
    if not found:
        return None
    columns: dict[str, Callable[[_Offer], Value]] = {
        "Part": lambda x: x[0].item,
        "Seller": lambda x: x[0].seller,
        "Price": lambda x: _amount(x[0]),
        "Currency": lambda x: "percent" if x[0].item == TAX else x[0].currency,
        "Price, $": lambda x: "" if x[0].item == TAX else usd(x[0].usd),
        "Support, $": lambda x: usd(x[0].support_usd) if x[0].support_usd else "",
        "Lead time, days": lambda x: (
            "" if x[0].n_lead_days is None else cells.count(x[0].n_lead_days)
        ),
        "Date": lambda x: x[0].date,
        "Valid until": lambda x: x[0].valid_until or "",
        "Counts": lambda x: x[1],
    }
    note = (
        "Of several sellers the one that the file chooses counts, else the least price of one with "
        "its support among those that hold. Parts of tiers are per GB/s. Prices here are values: "
        "to try another one, change the sheet Prices."
    )
    caption = f"Offers of {comparison.shop.quotes[0].file}"
    one = cells.table_of(caption, found, columns, key="offers", note=note, is_sortable=True)
    return Section("offers", "Offers", "Offers", tables=(one,))


def _amount(one: Quote) -> Value:
    return number(100 * one.tax_fraction, 4) if one.item == TAX else number(one.amount, 2)


def offers_payload(comparison: Comparison) -> list[dict[str, Any]]:
    """The offers for JSON."""
    names = ("item", "seller", "amount", "currency", "rate", "usd", "support_usd", "tax_fraction")
    more = ("n_lead_days", "date", "valid_until", "part_number")
    return [
        {**cells.attributes(one, *names, *more), "counts": why.startswith("counts"), "why": why}
        for one, why in _offers(comparison)
    ]


def orders_payload(bill: Bill) -> list[dict[str, Any]]:
    """What is ordered from whom, for JSON; a seller that is null stands for list prices."""
    return [
        {"seller": seller or None, "currency": currency, "usd": float(x)}
        for (seller, currency), x in bill.usd_by_seller().items()
    ]
