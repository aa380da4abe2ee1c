"""Offers of sellers: which count, which do not and why, and what is ordered from whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from libra_planner.costs.quotes import TAX, Quote
from libra_planner.procurement.bill import FRONTEND, NETWORK, NETWORKS, ZERO, Bill, Part, to_cents
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.quotes import (
    Order,
    OrderLine,
    amount_of,
    moved_usd,
    orders,
    support_name,
)
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.readiness import used_in
from libra_planner.procurement.terms.least_orders import least_order
from libra_planner.views import cells
from libra_planner.views.cells import (
    NUMBER,
    PERCENT,
    Cell,
    Section,
    Table,
    Value,
    number,
    percent,
    round_usd,
    unit_usd,
    usd,
)
from libra_planner.views.report.bills import UNITS, USD, known, lines_sum, price_cell, rate_cell

_Offer: TypeAlias = tuple[Quote, str, Quote]
"""An offer, why it counts or not, and the one that counts."""


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
    found = orders(one.bill)
    if not any(order.seller for order in found):
        return ""
    return f"Orders{before_tax(one)}: {', '.join(map(_sum_text, found))}."


def _sum_text(order: Order) -> str:
    """A seller and the sum of an order, in its own currency first."""
    total = exact_usd(order.total_usd)
    if order.currency == USD:
        return f"{seller_name(order)} {total}"
    amount = exact_usd(order.amount).removeprefix("$")
    rate = f"at {order.rate:g} (rate of {order.rate_day})"
    return f"{seller_name(order)} {order.currency} {amount} {rate} = {total}"


def exact_usd(usd: Decimal) -> str:
    """An amount to the cent, without cents where there are none: what others add up to.

    >>> exact_usd(Decimal("3039131.20")), exact_usd(Decimal("640000.00"))
    ('$3,039,131.20', '$640,000')
    """
    return f"${usd:,.2f}".removesuffix(".00")


def exact_text(one: Candidate) -> str:
    """The price to the cent, as it is ordered; empty where neither orders nor prices are that.

    Where a price is assumed or has a range it is named beside orders alone, and as what it is.
    """
    bill, (low_usd, high_usd) = one.bill, one.bill.ends_usd
    lead = "To the cent"
    if bill.assumed_usd or low_usd != high_usd:
        if not order_text(one):
            return ""
        lead = f"At the prices as listed{' and assumed' if bill.assumed_usd else ''}"
    tax = f" before tax, ${bill.with_tax_usd:,.2f} with it" if bill.tax_fraction else ""
    missing = ", ".join(part.name for part in bill.missing)
    return f"{lead}: ${bill.total_usd:,.2f}{tax}{f', without {missing}' if missing else ''}."


def seller_name(order: Order) -> str:
    """Who gets an order, or that nobody has quoted."""
    return order.seller or ("quoted, no seller named" if order.is_quoted else "not quoted")


def network_text(one: Candidate) -> str:
    """What the networks cost, as a share of the price of everything, and their support."""
    bill = one.bill
    of = {group: bill.of(group).total_usd for group in NETWORKS}
    total = sum(of.values(), ZERO)
    share = f" ({bill.fraction_of(total) or 0.0:.1%} of it)"
    fabric, sides = round_usd(of[NETWORK]).shown, round_usd(total - of[NETWORK]).shown
    whole = f"Networks are {round_usd(total).shown}{share}{before_tax(one)}"
    names = {support_name(line.part) for line in bill.lines if line.group in NETWORKS}
    support = Bill(tuple(line for line in bill.lines if line.part.name in names)).total_usd
    more = f"; support of their parts is {round_usd(support).shown} more" if support else ""
    return f"{whole}: training {fabric}, {FRONTEND} and storage {sides}{more}."


def _offers(comparison: Comparison) -> Iterator[_Offer]:
    """All offers of what any design rests on; a bill of parts has no prices per GB/s."""
    billed = {line.part.price.source for line in comparison.bill.lines if line.part.price}
    for quote in used_in(comparison):
        is_linear = quote.tier_part is not None and quote.source not in billed
        for one, why in quote.verdicts:
            is_alone = is_linear and one is quote
            yield one, "counts in the plan's linear cost alone" if is_alone else why, quote


_OFFERS_ON_PAPER = {"is_sortable": True, "dispensable": ("Price", "Currency", "Date")}
"""Price in dollars and Note say these on paper."""


def offer_section(comparison: Comparison) -> Section | None:
    """All offers of what is bought; ``None`` without quotes."""
    found = [*_offers(comparison)]
    if not found:
        return None
    best = comparison.candidates[comparison.chosen]
    more: dict[str, Callable[[Quote], Value]] = {
        "Part number": lambda x: x.part_number,
        "Least order": lambda x: "" if x.moq is None else cells.count(x.moq),
        "Payment": lambda x: x.payment_terms,
        "Incoterm": lambda x: x.incoterm,
        "Note": lambda x: x.terms,
    }
    shown = {name: of for name, of in more.items() if any(of(x) for x, *_ in found)}
    columns: dict[str, Callable[[_Offer], Value]] = {
        "Part": lambda x: x[0].item,
        **{name: partial(_of_offer, of) for name, of in shown.items() if name == "Part number"},
        "Seller": lambda x: x[0].seller,
        "Price": lambda x: _amount(x[0]),
        "Currency": lambda x: "percent" if x[0].item == TAX else x[0].currency,
        "Price, $": lambda x: "" if x[0].item == TAX else unit_usd(x[0].usd),
        "Support, $": lambda x: unit_usd(x[0].support_usd or ""),
        "Lead time, days": lambda x: _days(x[0].n_lead_days),
        "Date": lambda x: x[0].date,
        "Valid until": lambda x: x[0].valid_until or "",
        "Counts": lambda x: x[1],
        f"In its place, {best.letter}": lambda x: _change_text(best, x),
        **{name: partial(_of_offer, of) for name, of in shown.items() if name != "Part number"},
    }
    note = (
        "Of several sellers the one that the file chooses counts, else the least price of one with "
        "its support among those that hold and whose least order is met. In its place: what an "
        "offer, or its whole least order, would change in the price of that design before tax, and "
        "days of lead time. Parts "
        "of tiers are per GB/s. Prices here are values: to try another one, change the sheet "
        "Prices."
    )
    caption = f"Offers of {comparison.shop.quotes[0].file}"
    paper: dict[str, Any] = {"print_to": f"In its place, {best.letter}", **_OFFERS_ON_PAPER}
    one = cells.table_of(caption, found, columns, key="offers", note=note, **paper)
    return Section("offers", "Offers", "Offers", tables=(one,))


def _of_offer(of: Callable[[Quote], Value], offer: _Offer) -> Value:
    return of(offer[0])


def _change_usd(one: Candidate, offer: _Offer) -> Decimal | None:
    """What the bill of a design would have more at an offer; ``None`` where it has none of it."""
    return moved_usd(one.bill, offer[0], offer[2])


def _change_text(one: Candidate, offer: _Offer) -> str:
    """The same in words, and the lead time beside that of the offer that counts."""
    change_usd, (quote, _, counts) = _change_usd(one, offer), offer
    whole = least_order(one.bill, quote, counts)
    if whole is None and change_usd is None:
        return ""
    days = [x.n_lead_days for x in (quote, counts)]
    moved = ZERO if change_usd is None else change_usd
    text = f"{round_usd(abs(moved)).shown} {'more' if moved >= 0 else 'less'}"
    text = whole.text if whole else text
    known = [f"{n} days" if n is not None else "an unknown time" for n in days]
    return text if days[0] == days[1] else f"{text}, {known[0]} instead of {known[1]}"


def _amount(one: Quote) -> Value:
    if one.item == TAX:
        return number(100 * one.tax_fraction, 4)
    amount = one.amount if one.tier_part else to_cents(one.amount)
    return Cell(amount, kind=NUMBER, digits=2)


def offers_payload(comparison: Comparison) -> list[dict[str, Any]]:
    """The offers for JSON."""
    names = ("item", "seller", "amount", "currency", "rate", "usd", "support_usd", "tax_fraction")
    more = ("discount_fraction", "n_lead_days", "date", "valid_until", "part_number", "moq")
    best, found = comparison.candidates[comparison.chosen], []
    for offer in _offers(comparison):
        change_usd, (one, why, _) = _change_usd(best, offer), offer
        own = {"counts": why.startswith("counts"), "why": why}
        own |= {name: getattr(one, name) or None for name in ("payment_terms", "incoterm")}
        own |= {"change_usd": None if change_usd is None else float(change_usd)}
        whole = least_order(best.bill, *offer[::2])
        own |= {"least_order_change_usd": float(whole.change_usd) if whole else None}
        found.append({**cells.attributes(one, *names, *more), "note": one.terms or None, **own})
    return found


def orders_payload(one: Candidate) -> list[dict[str, Any]]:
    """What is ordered from whom, for JSON; a seller is null where nobody is named."""
    return [
        {
            "seller": order.seller or None,
            **cells.attributes(order, "is_quoted", "currency", "rate", "rate_day"),
            "amount": float(order.amount),
            "usd": float(order.total_usd),
            "parts": [_order_line(line) for line in order.lines],
        }
        for order in orders(one.bill)
    ]


def _order_line(line: OrderLine) -> dict[str, Any]:
    """A part of an order, for JSON; its unit price is in the currency of the order."""
    part, price, support = line.part, line.part.price, line.support
    return {
        "item": part.name,
        "part_number": part.part_number or None,
        "description": part.description,
        "n_bought": line.n_bought,
        "lengths": [{"length_m": length_m, "n": n} for length_m, n in line.lengths.items()],
        "unit_price": float(amount_of(part)) if price else None,
        "list_price": float(price.list_amount) if price and price.list_amount else None,
        "discount_fraction": price.discount_fraction if price else 0.0,
        "usd": float(line.total_usd) if price else None,
        "support_usd": float(support.extended_usd or ZERO) if support else 0.0,
        "n_lead_days": part.n_lead_days,
        "date": price.as_of if price and price.is_quoted else None,
        "valid_until": price.valid_until if price else None,
        "moq": price.moq if price else None,
        "payment_terms": (price and price.payment_terms) or None,
        "incoterm": (price and price.incoterm) or None,
        "note": (price and price.note) or None,
    }


def order_section(comparison: Comparison) -> Section | None:
    """What is ordered from whom, by design, that to buy first; ``None`` without quotes."""
    designs, chosen = comparison.candidates, comparison.chosen
    ranked = sorted(range(len(designs)), key=lambda i: (i != chosen, i))
    if not any(order.seller for i in ranked for order in orders(designs[i].bill)):
        return None
    tables = [
        replace(table, is_folded=i != chosen, is_printed=i == chosen)
        for i in ranked
        for table in _order_tables(comparison, designs[i])
    ]
    text = (
        "One table for each seller and currency. Quantities are those of all lines of the bill, "
        "with spares; support is of the units in use. Prices of one are rounded "
        "to the cent of their own currency, and exact in dollars."
    )
    if any(line.length_m for line in designs[chosen].bill.lines):
        text += (
            " Lengths of cables are assumed (cable_lengths_m of --parts), and one price counts for "
            "all of them: measure before you order."
        )
    return Section("orders", "Orders", "Orders", (text,), tables=tuple(tables))


def _order_tables(comparison: Comparison, one: Candidate) -> Iterator[Table]:
    """The sums of all orders of a design, and every order."""
    found, letter = orders(one.bill), one.letter.lower()
    columns: dict[str, Callable[[Order], Value]] = {
        "Seller": seller_name,
        "Parts": lambda x: cells.count(len(x.lines)),
        "Amount": lambda x: _money(x, x.amount, f"[{_key(one, found, x)}/t{_amount_column(x)}]"),
        "Currency": lambda x: x.currency,
        "Rate, $": lambda x: (
            "" if x.currency == USD else number(x.rate, 6, rate_cell(comparison, x.currency))
        ),
        "Rate of": lambda x: "" if x.currency == USD else x.rate_day,
        "Total, $": lambda x: usd(x.total_usd, f"[{_key(one, found, x)}/t{_usd_column(x)}]"),
    }
    whole = usd(one.bill.total_usd, "SUM([r6])")
    total: list[Value] = [f"Bill of materials of {one.letter}{before_tax(one)}", *[""] * 5, whole]
    caption = f"Orders of design {one.letter}"
    yield cells.table_of(caption, found, columns, key=f"orders-{letter}", total=total)
    for order in found:
        is_one_of_several = bool(order.seller) and sum(x.seller == order.seller for x in found) > 1
        what = f" in {order.currency}" if is_one_of_several else ""
        yield _order_table(comparison, one, order, (_key(one, found, order), what))


def _amount_column(order: Order) -> int:
    """Column of the totals of an order in its currency; those in dollars stand there or behind."""
    return 7 if order.has_support else 5


def _usd_column(order: Order) -> int:
    return _amount_column(order) + (order.currency != USD)


def _money(order: Order, amount: Decimal | None, expression: str = "") -> Cell:
    """An amount in the currency of an order."""
    if order.currency == USD:
        return usd(amount, expression)
    return Cell(None if amount is None else to_cents(amount), expression, NUMBER, 2)


def _order_table(
    comparison: Comparison, one: Candidate, order: Order, named: tuple[str, str]
) -> Table:
    """One order: every part once, in the currency of its quotes.

    Parameters
    ----------
    named : the table's key, and what its caption has behind the seller, such as " in EUR".
    """
    (key, behind), own, at = named, order.currency, _amount_column(order)
    total_usd = usd(order.total_usd, f"SUM([r{at + 1}])")
    in_usd: dict[str, Callable[[OrderLine], Value]] = {
        "Total, $": lambda x: usd(x.total_usd, lines_sum(one, lambda line: line in x.bought))
    }
    columns: dict[str, Callable[[OrderLine], Value]] = {
        "Part": lambda x: x.part.name,
        "Part number": lambda x: x.part.part_number,
        "Description": lambda x: x.part.description,
        "Quantity": lambda x: cells.count(
            x.n_bought, lines_sum(one, lambda line: line in x.lines, UNITS)
        ),
        **_amounts(comparison, one, order),
        **({} if own == USD else in_usd),
        **_terms(order),
    }
    sums = [_money(order, order.amount, f"SUM([r{at}])"), *([total_usd] * (own != USD))]
    total: list[Value] = ["Total", *[""] * (at - 1), *sums]
    total += [""] * (len(columns) - len(total))
    what = f"order of {order.seller}{behind}" if order.seller else seller_name(order)
    caption = f"Design {one.letter}: {what}"
    wide: dict[str, Any] = {
        "dispensable": ("Description",),
        "off_page": (f"Line total, {own}",),
        "print_to": "Valid until",
    }
    return cells.table_of(caption, order.lines, columns, key=key, total=total, **wide)


def _amounts(
    comparison: Comparison, one: Candidate, order: Order
) -> dict[str, Callable[[OrderLine], Value]]:
    """Columns of what an order costs in its currency; with support, where any part has it."""

    def money(x: OrderLine, amount: Decimal, expression: str) -> Cell:
        shown = None if x.part.price is None else amount
        return _money(order, shown, known(x.part, _price_cell(comparison, x.part), expression))

    def support(x: OrderLine) -> Value:
        if x.support is None:
            return usd("")
        n_units = lines_sum(one, lambda line: line is x.support, UNITS)
        price = _unit_price(comparison, x.support.part)
        return _money(order, x.support_amount, f"{n_units}*{price}")

    own, units = order.currency, "[c3]*[c4]"
    unit: dict[str, Callable[[OrderLine], Value]] = {
        f"Unit price, {own}": lambda x: money(x, amount_of(x.part), _unit_price(comparison, x.part))
    }
    if not order.has_support:
        return {**unit, f"Total, {own}": lambda x: money(x, x.amount, units)}
    return {
        **unit,
        f"Line total, {own}": lambda x: money(x, x.amount, units),
        f"Support, {own}": support,
        f"Total, {own}": lambda x: money(x, x.amount + x.support_amount, "[c5]+N([c6])"),
    }


def _terms(order: Order) -> dict[str, Callable[[OrderLine], Value]]:
    """Columns of what an offer says beside its price; those that some order lacks, where filled."""
    always: dict[str, Callable[[OrderLine], Value]] = {
        "Lead time, days": lambda x: _days(x.part.n_lead_days),
        "Valid until": lambda x: (x.part.price and x.part.price.valid_until) or "",
    }
    some: dict[str, Callable[[OrderLine], Value]] = {
        "Offer": lambda x: x.part.price.note if x.part.price else "",
        "Quoted on": lambda x: x.part.price.as_of if x.part.price and order.is_quoted else "",
        f"List price, {order.currency}": partial(_list_price, order),
        "Discount": lambda x: (
            percent(x.part.price.discount_fraction, 2)
            if x.part.price and x.part.price.discount_fraction
            else Cell("", kind=PERCENT)
        ),
        "Least order": _least_order,
        "Payment": lambda x: x.part.price.payment_terms if x.part.price else "",
        "Incoterm": lambda x: x.part.price.incoterm if x.part.price else "",
        "Lengths": lambda x: ", ".join(f"{n:,} of {at:g} m" for at, n in x.lengths.items()),
    }
    filled = {
        name: of for name, of in some.items() if any(cells.cell(of(x)).value for x in order.lines)
    }
    return {**always, **filled}


def _least_order(line: OrderLine) -> Value:
    """The fewest units that the seller sells."""
    price = line.part.price
    return cells.count(price.moq) if price and price.moq else Cell("", kind="count")


def _list_price(order: Order, line: OrderLine) -> Value:
    """The price of one before its discount."""
    price = line.part.price
    amount = price.list_amount if price else None
    return _money(order, amount) if amount else Cell("", kind=NUMBER)


def _price_cell(comparison: Comparison, part: Part) -> str:
    return price_cell(comparison, part.name)


def _unit_price(comparison: Comparison, part: Part) -> str:
    """What one costs in the currency of its quote, for spreadsheets; a price taken away is none."""
    where, price = _price_cell(comparison, part), part.price
    if price is None:
        return where
    own = where
    if price.amount is not None and price.currency != USD:
        own = f"{where}/{rate_cell(comparison, price.currency)}"
        own = f"IF({where}={float(price.usd)!r},{float(price.amount)!r},{own})"
    return f"IF(ISNUMBER({where}),{own},NA())"


def _days(n_days: int | None) -> Value:
    return "" if n_days is None else cells.count(n_days)


def _key(one: Candidate, found: Sequence[Order], order: Order) -> str:
    """The table of an order: no key holds a seller's name."""
    return f"order-{one.letter.lower()}-{found.index(order) + 1}"
