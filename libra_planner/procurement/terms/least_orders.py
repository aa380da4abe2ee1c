"""Least orders above the need: what the whole of one costs against what is bought."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from libra_planner.costs.quotes import Quote
from libra_planner.procurement.bill import ZERO, Bill
from libra_planner.procurement.quotes import moved_usd, quoted_support_usd, quoted_usd
from libra_planner.procurement.ranking import LEAST_SAVED, Comparison, in_order
from libra_planner.units import short_usd, unit_price_text


@dataclass(frozen=True)
class LeastOrder:
    """The whole least order of an offer, where fewer units are bought.

    Parameters
    ----------
    offer, counts : of a seller, and the one that counts for the same item.
    n_bought : units that are bought, spares included: fewer than the least order.
    usd : what the whole least order costs, with support of the units in use.
    change_usd : that beyond what the units that are bought cost now.
    """

    offer: Quote
    counts: Quote
    n_bought: int
    usd: Decimal
    change_usd: Decimal

    @property
    def text(self) -> str:
        """What the whole of it costs, against what is bought."""
        cost = f"the least order of {self.offer.moq:,} costs {short_usd(float(self.usd))}"
        moved = short_usd(float(abs(self.change_usd)))
        how = "less" if self.change_usd < 0 else "more"
        now = unit_price_text(self.counts.usd)
        return f"{cost}, {moved} {how} than the {self.n_bought:,} that are bought at {now}"


def least_order(bill: Bill, offer: Quote, counts: Quote) -> LeastOrder | None:
    """What the whole least order of an offer costs; ``None`` where as many are bought, or none.

    Parameters
    ----------
    bill : at the quote that counts.
    offer, counts : an offer for an item, and the one that counts; they may be the same.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line, Part
    >>> bill = Bill((Line("network", "a", Part("n", "nic", ""), 200),))
    >>> ours = Quote("n", 500.0, "Acme", "2026-11-02")
    >>> bulk = Quote("n", 150.0, "Bulk", "2026-11-02", moq=300)
    >>> least_order(bill, bulk, ours).text
    'the least order of 300 costs $45.0k, $55.0k less than the 200 that are bought at $500'
    """
    lines = [line for line in bill.lines if line.part.name == offer.item]
    n_bought, n_units = sum(x.n_bought for x in lines), sum(x.n_units for x in lines)
    if offer.tier_part is not None or not 0 < n_bought < (offer.moq or 0):
        return None
    usd = _usd(offer, offer.moq or 0, n_units)
    return LeastOrder(offer, counts, n_bought, usd, usd - _usd(counts, n_bought, n_units))


def _usd(quote: Quote, n_bought: int, n_units: int) -> Decimal:
    """What units cost at a quote, with support of those in use."""
    return n_bought * quoted_usd(quote) + n_units * quoted_support_usd(quote)


def least_order_texts(
    comparison: Comparison, quotes: Iterable[Quote], told: Collection[Quote] = ()
) -> Iterator[str]:
    """Whole least orders that cost the design to buy less, or put another one first, in words.

    Those of offers that hold, and from 0.2 % of its price on.

    Parameters
    ----------
    quotes : those that count for what any design buys.
    told : offers of which another text tells whom they put first.
    """
    one = comparison.candidates[comparison.chosen]
    for counts in quotes:
        for offer in () if counts.is_chosen else counts.others:
            found = None if offer.when else least_order(one.bill, offer, counts)
            if found is None:
                continue
            best = _best_at(comparison, offer, counts)
            best = comparison.chosen if offer in told else best
            is_less = -found.change_usd > LEAST_SAVED * one.bill.total_usd
            if is_less or best != comparison.chosen:
                first = comparison.letters[best]
                then = f"; with this offer, {first} would be {comparison.criterion}"
                said = f"{offer.item} of {offer.seller}: {found.text}"
                yield said + (then if best != comparison.chosen else "")


def _best_at(comparison: Comparison, offer: Quote, counts: Quote) -> int:
    """The design to buy where every one may take an offer."""
    moved = (change_usd_at(one.bill, offer, counts) for one in comparison.candidates)
    return best_moved(comparison, moved)


def change_usd_at(bill: Bill, offer: Quote, counts: Quote) -> Decimal:
    """What a bill has more where an offer can be taken, its whole least order too.

    Nobody takes an offer with a least order that costs more than what is bought now: 0 then.

    Parameters
    ----------
    bill : at the quote that counts.
    offer, counts : an offer for an item, and the one that counts.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line, Part
    >>> bill = Bill((Line("network", "a", Part("n", "nic", ""), 200),))
    >>> ours = Quote("n", 500.0, "Acme", "2026-11-02")
    >>> for least in (200, 300, 700):
    ...     bulk = Quote("n", 150.0, "Bulk", "2026-11-02", moq=least)
    ...     print(change_usd_at(bill, bulk, ours))
    -70000.00
    -55000.00
    0.00
    """
    if not offer.moq:
        return moved_usd(bill, offer, counts) or ZERO
    whole = least_order(bill, offer, counts)
    moved = whole.change_usd if whole else moved_usd(bill, offer, counts)
    return min(moved or ZERO, ZERO)


def best_moved(comparison: Comparison, moved_usd: Iterable[Decimal]) -> int:
    """The design to buy where the bill of each has so much more, ranked as they are now.

    Parameters
    ----------
    moved_usd : of every design.
    """
    designs, times = comparison.candidates, comparison.times_s or [1.0] * len(comparison.candidates)
    worth = [
        float(one.bill.total_usd + change_usd) * time_s
        for one, change_usd, time_s in zip(designs, moved_usd, times, strict=True)
    ]
    return next(i for i in in_order(designs, worth) if i in comparison.eligible)
