"""What a first page says right above its signature: by when to sign, and how long parts take."""

from __future__ import annotations

from libra_planner.procurement.quotes import orders
from libra_planner.procurement.ranking import Comparison
from libra_planner.procurement.terms.lead_times import lead_time


def today_of(comparison: Comparison) -> str:
    """The day on which quotes have to hold."""
    quotes = comparison.shop.quotes
    return quotes[0].day if quotes else comparison.origin.day


def sign_by(comparison: Comparison) -> str:
    """The last day of the offer that ends first among those that the design to buy rests on.

    Empty where no offer ends. The longest lead time stands behind it, where anybody says one.
    """
    one = comparison.candidates[comparison.chosen]
    found = sorted(
        (price.valid_until, order.seller or "", line.part.name)
        for order in orders(one.bill)
        for line in order.lines
        if (price := line.part.price) is not None and price.valid_until
    )
    if not found:
        return ""
    day = found[0][0]
    names = dict.fromkeys(", ".join(filter(None, names)) for end, *names in found if end == day)
    what, *more = names
    what = f"{what}; {len(more)} more" if more else what
    today, longest = today_of(comparison), lead_time(one)
    if today and day < today:
        return f"Ask for new quotes before you sign: the first one ({what}) ended on {day}."
    days = f"; longest lead time {longest.n_lead_days} days ({longest.part})"
    return (
        f"Sign by {day}: the first quote ({what}) ends then"
        f"{'' if longest.n_lead_days is None else days}."
    )
