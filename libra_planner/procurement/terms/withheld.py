"""Offers that some designs buy enough for and others do not: what they would make of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from libra_planner.costs.quotes import Quote
from libra_planner.plain_text import joined
from libra_planner.procurement.quotes import moved_usd
from libra_planner.procurement.ranking import LEAST_SAVED, Comparison
from libra_planner.procurement.terms.least_orders import best_moved, change_usd_at
from libra_planner.units import short_usd, unit_price_text


@dataclass(frozen=True)
class Withheld:
    """A cheaper offer that holds, of whose least order some designs buy enough and others do not.

    A part has one price in a report, so it counts for none of them.

    Parameters
    ----------
    offer : the one that does not count.
    enough : designs, by index, that buy enough and pay less at it, over 0.2 % of their price.
    changes_usd : of every design, what its bill has more where each may take the offer, the whole
        least order too.
    best : the design to buy then.
    """

    offer: Quote
    enough: tuple[int, ...]
    changes_usd: tuple[Decimal, ...]
    best: int


def withheld(comparison: Comparison, quotes: Iterable[Quote]) -> list[Withheld]:
    """Offers that not every design buys enough for, without those told as offers in hand.

    Those that the design to buy alone saves enough with are offers in hand.

    Parameters
    ----------
    quotes : those that count for what any design buys.
    """
    return [
        found
        for counts in quotes
        if not counts.is_chosen
        for offer in counts.others
        if offer.is_short
        and not offer.when
        and (found := _withheld(comparison, offer, counts)).enough
        and comparison.chosen not in found.enough
    ]


def _withheld(comparison: Comparison, offer: Quote, counts: Quote) -> Withheld:
    """Which designs buy enough for an offer, and what to buy where each may take it."""
    bills = [one.bill for one in comparison.candidates]
    own = [moved_usd(bill, offer, counts) or 0 for bill in bills]
    pairs = enumerate(zip(own, bills, strict=True))
    enough = tuple(i for i, (usd, bill) in pairs if -usd > LEAST_SAVED * bill.total_usd)
    changes = tuple(change_usd_at(bill, offer, counts) for bill in bills)
    return Withheld(offer, enough, changes, best_moved(comparison, changes))


def withheld_texts(comparison: Comparison, found: Iterable[Withheld]) -> Iterator[str]:
    """What those offers make of bills and of the choice, in words.

    Parameters
    ----------
    found : as :func:`withheld` has it.
    """
    for one in found:
        letters = [comparison.letters[i] for i in one.enough]
        saved = [short_usd(-float(one.changes_usd[i])) for i in one.enough]
        whose = "its bill is" if len(letters) == 1 else "their bills are"
        offer, buy = one.offer, "buys" if len(letters) == 1 else "buy"
        yield (
            f"{joined(letters, 'and')} alone {buy} enough of {offer.item} for "
            f"{unit_price_text(offer.usd)} of {offer.seller} ({offer.moq:,} or more), and a part "
            f"has one price here: {whose} then {joined(saved, 'and')} less, and "
            f"{_then_text(comparison, one)}"
        )


def _then_text(comparison: Comparison, found: Withheld) -> str:
    """What to buy then, and what it costs against the other one of the pair that matters."""
    chosen, best, letters = comparison.chosen, found.best, comparison.letters
    prices = _moved(comparison, found.changes_usd)
    worth = [
        usd * time_s
        for usd, time_s in zip(prices, comparison.times_s or [1.0] * len(prices), strict=True)
    ]
    among = [i for i in found.enough if i in comparison.eligible] or found.enough
    first, second = best, chosen
    if best == chosen:
        second = min(among, key=worth.__getitem__)
    stays = "stays" if best == chosen else "would be"
    whole = found.changes_usd[chosen] < 0
    how = f" ({letters[chosen]} takes the whole least order)" if whole else ""
    more = prices[first] - prices[second]
    money = f"{short_usd(abs(more))} {'less' if more < 0 else 'more'} than {letters[second]}"
    text = f"{letters[first]} {stays} {comparison.criterion}{how}: it costs {money}"
    if comparison.times_s is None:
        return text
    return f"{text} and does {worth[second] / worth[first] - 1:.1%} more work per dollar"


def _moved(comparison: Comparison, changes_usd: Sequence[Decimal]) -> list[float]:
    """The price of every design with its change."""
    pairs = zip(comparison.candidates, changes_usd, strict=True)
    return [float(one.bill.total_usd + usd) for one, usd in pairs]
