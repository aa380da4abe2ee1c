"""A user's quotes on the lines of a bill (C22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from libra_planner.costs.prices import QUOTED
from libra_planner.costs.quotes import Quote, quoted_parts
from libra_planner.procurement.bill import Bill, Part, Price, to_cents


def quoted_bill(bill: Bill, quotes: Sequence[Quote]) -> Bill:
    """A bill with every part that is quoted at its quote: a price without a range.

    Parameters
    ----------
    bill : at the prices of the catalogues; what a server's price includes stays at $0.
    quotes : of parts and NPUs; those of tiers are in the price book.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line
    >>> bill = Bill((Line("network", "host", Part("nic-400g", "nic", "a NIC"), 2),))
    >>> quoted = quoted_bill(bill, [Quote("nic-400g", 1400.0, "Acme", "2026-11-02")])
    >>> quoted.total_usd, quoted.lines[0].part.price.confidence
    (Decimal('2800.00'), 'quoted')
    """
    by_item = quoted_parts(quotes)
    if not by_item:
        return bill
    lines = (
        replace(line, part=_quoted(line.part, by_item.get(line.part.name))) for line in bill.lines
    )
    return Bill(tuple(lines))


def _quoted(part: Part, quote: Quote | None) -> Part:
    if quote is None:
        return part
    return replace(part, price=Price(to_cents(quote.usd), QUOTED, quote.date, quote.source))


def unused_quotes(bill: Bill, quotes: Sequence[Quote], used: Sequence[str] = ()) -> list[str]:
    """Items of quotes that a bill has no line of.

    Parameters
    ----------
    bill, quotes : what is bought, and the quotes.
    used : items that are used elsewhere, such as parts of tiers.
    """
    names = {line.part.name for line in bill.lines} | {*used}
    return [quote.item for quote in quotes if quote.item not in names]
