"""A user's quotes on the lines of a bill (C22)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from libra_planner.costs.prices import QUOTED
from libra_planner.costs.quotes import TAX, Quote, quoted_parts, quoted_tax
from libra_planner.procurement.bill import SUPPORT, Bill, Line, Part, Price, to_cents


def quoted_bill(bill: Bill, quotes: Sequence[Quote], tax_fraction: float = 0.0) -> Bill:
    """A bill with every part that is quoted at its quote: a price without a range.

    Support that a price names is a line of its own, and tax a share of everything.

    Parameters
    ----------
    bill : at the prices of the catalogues; what a server's price includes stays at $0.
    quotes : of parts, NPUs and tax; those of tiers are in the price book.
    tax_fraction : where no quote says.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line
    >>> bill = Bill((Line("network", "host", Part("nic-400g", "nic", "a NIC"), 2),))
    >>> quoted = quoted_bill(bill, [Quote("nic-400g", 1400.0, "Acme", "2026-11-02")])
    >>> quoted.total_usd, quoted.lines[0].part.price.confidence
    (Decimal('2800.00'), 'quoted')
    """
    by_item, tax = quoted_parts(quotes), quoted_tax(quotes)
    lines: Sequence[Line] = bill.lines
    if by_item:
        lines = [
            replace(line, part=_quoted(line.part, by_item.get(line.part.name))) for line in lines
        ]
    return Bill((*lines, *_support(lines)), tax_fraction if tax is None else tax)


def _support(lines: Sequence[Line]) -> Iterator[Line]:
    """Support of every part whose price names it: of units in use, not of spares."""
    supported = [line for line in lines if line.part.price and line.part.price.support_usd]
    for part in {line.part.name: line.part for line in supported}.values():
        if (price := part.price) and price.support_usd:
            name, what = f"support of {part.name}", "for all years of use"
            own = replace(price, usd=price.support_usd, support_usd=None)
            own = replace(own, low_usd=None, high_usd=None)
            n_units = sum(line.n_units for line in supported if line.part.name == part.name)
            yield Line(SUPPORT, "all", Part(name, SUPPORT, what, own), n_units)


def _quoted(part: Part, quote: Quote | None) -> Part:
    if quote is None:
        return part
    support_usd = to_cents(quote.support_usd) if quote.support_usd else None
    price = Price(
        to_cents(quote.usd),
        QUOTED,
        quote.date,
        quote.source,
        valid_until=quote.valid_until,
        support_usd=support_usd,
        seller=quote.seller,
        currency=quote.currency,
    )
    number, n_days = quote.part_number or part.part_number, quote.n_lead_days
    days = part.n_lead_days if n_days is None else n_days
    return replace(part, price=price, part_number=number, n_lead_days=days)


def used_quotes(bill: Bill, quotes: Sequence[Quote], used: Sequence[str] = ()) -> list[Quote]:
    """The quotes that a bill rests on; tax is of every bill.

    Parameters
    ----------
    bill, quotes : what is bought, and the quotes.
    used : items that are used elsewhere, such as parts of tiers.
    """
    names = {line.part.name for line in bill.lines} | {*used, TAX}
    return [quote for quote in quotes if quote.item in names]
