"""Quotes: what sellers ask, in place of the prices of a book or of a catalogue (C22)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from libra_planner.costs.currencies import rate_doubt
from libra_planner.errors import Place

TAX = "tax"
"""The item of what is added to the price of everything."""

FARTHEST, FARTHEST_OF_LARGEST = 5, 2
"""Factors from the ends of a listed price beyond which a quote is doubted; of NPUs and servers,
which are most of any bill, the narrower one."""

_FARTHEST_UNTOLD = 3
"""The same factor for a word alone: a slip of ten at a price amid its range is as far."""

_LEAST_FRACTION = 0.01
"""A tax or a discount below it is rather a fraction that was meant as percent."""

TIER_PARTS = ("link", "switch", "nic")
"""What a tier of a price book has prices of."""


class Listed(NamedTuple):
    """What a catalogue lists for an item.

    Parameters
    ----------
    low_usd, high_usd : ends of its price.
    farthest : factor from them beyond which a quote is doubted.
    of : what it is the price of, where a seller's may hold more; said of a quote far above it.
    """

    low_usd: float
    high_usd: float
    farthest: float = FARTHEST
    of: str = ""


def listed_part(part: Mapping[str, Any], low_usd: float, high_usd: float) -> Listed:
    """What a catalogue lists for a part; of a server it is the price without its NPUs.

    Parameters
    ----------
    part : as the catalogue's file has it.
    low_usd, high_usd : ends of its price.
    """
    if part.get("kind") != "server":
        return Listed(low_usd, high_usd)
    without = "its NPUs" if (part.get("includes") or {}).get("nics") else "its NPUs and NICs"
    of = f"a server without {without} (docs/howto/own-quotes.md)"
    return Listed(low_usd, high_usd, FARTHEST_OF_LARGEST, of)


@dataclass(frozen=True)
class Quote:
    """What a seller asks for an item.

    Parameters
    ----------
    item : a part of a catalogue, an NPU, or a part of a tier such as ``pod.nic``.
    usd : of one; of a tier's part per GB/s.
    seller, date, valid_until, note : as the file has them; dates are YYYY-MM-DD.
    part_number : of the seller.
    n_lead_days : from order to delivery.
    support_usd, support : of one, for all years of use, and the same in its currency.
    tax_fraction : of the item :data:`TAX`, over the price of everything; its ``usd`` is 0.
    currency, amount, rate : what it is in, the price of one there, and what that is worth in USD.
    list_amount : the price of one there before its discount; 0 where the file names none.
    discount_fraction : that its price has got already.
    moq : fewest units that its seller sells at this price; ``None`` where nobody says.
    n_needed, n_most : units that designs buy, at the least and at the most; ``None`` where no bill
        has said so yet.
    payment_terms, incoterm : as the file has them.
    is_chosen : whether the file chooses it, whatever others ask.
    is_lump : whether it is money that a bill counts once, such as freight.
    listed : the catalogue's own price; ``None`` where it has none.
    day : on which it has to hold, YYYY-MM-DD; empty where nobody says.
    unpriced : items of its file that nobody has priced yet.
    others : quotes of other sellers for the item, which do not count.
    file : that it is from, as the user gave it.
    place : where it stands.

    Examples
    --------
    >>> quote = Quote("pod.nic", 28.0, "Acme", "2026-11-02", "2026-12-31")
    >>> quote.tier_part, quote.source
    (('pod', 'nic'), 'quote of Acme, 2026-11-02, valid until 2026-12-31')
    >>> Quote("nic-400g", 140000.0, "Acme", "2026-11-02", listed=Listed(1400, 1600)).doubts
    ('nic-400g is quoted at $140,000, 88 times the highest listed price ($1,400 to $1,600)',)
    >>> cheapest([quote, Quote("pod.nic", 26.5, "Beta", "2026-11-03")]).source
    'quote of Beta, 2026-11-03; also quoted: $28.00 of Acme'
    """

    item: str
    usd: float
    seller: str
    date: str
    valid_until: str | None = None
    note: str | None = None
    part_number: str = ""
    n_lead_days: int | None = None
    support_usd: float = 0.0
    support: float = 0.0
    tax_fraction: float = 0.0
    currency: str = "USD"
    amount: float = 0.0
    rate: float = 1.0
    list_amount: float = 0.0
    discount_fraction: float = 0.0
    moq: int | None = None
    payment_terms: str = ""
    incoterm: str = ""
    is_chosen: bool = False
    is_lump: bool = False
    listed: Listed | None = field(default=None, compare=False)
    day: str = field(default="", compare=False)
    unpriced: tuple[str, ...] = field(default=(), compare=False)
    file: str = field(default="", compare=False)
    place: Place | None = field(default=None, compare=False)
    n_needed: int | None = field(default=None, compare=False)
    n_most: int | None = field(default=None, compare=False)
    others: tuple[Quote, ...] = field(default=(), repr=False)

    @property
    def tier_part(self) -> tuple[str, str] | None:
        """Tier and part of a price book; ``None`` for a part of a catalogue."""
        tier, _, part = self.item.rpartition(".")
        return (tier, part) if tier and part in TIER_PARTS else None

    @property
    def source(self) -> str:
        """From whom and when, for people, and what others ask."""
        ends = f", valid until {self.valid_until}" if self.valid_until else ""
        ends += f", from {self.moq:,} units on" if self.moq else ""
        note = f" ({self.terms})" if self.terms else ""
        note += ", chosen in the file" if self.is_chosen and self.others else ""
        also = f"; also quoted: {self.also}" if self.others else ""
        return f"quote of {self.seller}, {self.date}{ends}{note}{also}"

    @property
    def terms(self) -> str:
        """Its discount and rate, and its note.

        >>> own = {"currency": "EUR", "amount": 28.5, "list_amount": 30.0, "rate": 1.1}
        >>> Quote("n", 31.35, "A", "d", note="offer 7", discount_fraction=0.05, **own).terms
        '30 EUR less 5% at 1.1 USD; offer 7'
        """
        less = f" less {100 * self.discount_fraction:g}%" if self.discount_fraction else ""
        rate = f" at {self.rate:g} USD" if self.currency != "USD" else ""
        own = f"{self.list_amount or self.amount:.12g} {self.currency}{less}{rate}"
        own = own if less or rate else ""
        own = f"{100 * self.tax_fraction:.12g}% of everything" if self.item == TAX else own
        return "; ".join(filter(None, (own, self.note)))

    @property
    def also(self) -> str:
        """What other sellers ask for the item, cheapest first; empty for none."""
        return ", ".join(one.offer for one in sorted(self.others, key=lambda one: one.worth_usd))

    @property
    def offer(self) -> str:
        """Its price and seller, and why it cannot be ordered."""
        support = f" and {_usd(self.support_usd)} for support" if self.support_usd else ""
        why = f" ({self.why_not})" if self.why_not else ""
        return f"{_usd(self.usd)}{support} of {self.seller}{why}"

    @property
    def worth_usd(self) -> float:
        """Of one with its support: what several quotes for an item are compared by."""
        return self.usd + self.support_usd

    @property
    def next_offer(self) -> Quote | None:
        """The offer that counts once this one is dearer; ``None`` where none holds.

        None is next where the file chooses: what others ask does not count there.
        """
        if self.is_chosen or self.when:
            return None
        holding = (one for one in self.others if one.can_be_ordered)
        return min(holding, key=lambda one: one.worth_usd, default=None)

    @property
    def ceiling_usd(self) -> float:
        """The price up to which it stays the cheapest that holds, its support as it is.

        >>> ours = Quote("n", 28.0, "Acme", "2026-11-02", support_usd=2.0)
        >>> cheapest([ours, Quote("n", 33.0, "Beta", "2026-11-02")]).ceiling_usd
        31.0
        """
        following = self.next_offer
        return following.worth_usd - self.support_usd if following else math.inf

    def offer_before(self, usd: float) -> Quote | None:
        """The offer of another seller that counts before its own price has risen so far."""
        return self.next_offer if usd > self.ceiling_usd else None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against its figures; nothing for what is near what is listed."""
        of_money = self._price_doubt, self._support_doubt, self._discount_doubt
        return tuple(
            filter(None, (*of_money, self._tax_doubt, rate_doubt(self.currency, self.rate)))
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Its doubts, or that its price is far from what is listed and may still be right.

        >>> Quote("s", 8100.0, "A", "d", listed=Listed(35287.0, 89600.0)).doubts
        ()
        >>> Quote("s", 8100.0, "A", "d", listed=Listed(35287.0, 89600.0)).remarks
        ('s is quoted at $8,100, 1/4.4 of the lowest listed price ($35,287 to $89,600)',)
        """
        return self.doubts or tuple(filter(None, (self._far_text(_FARTHEST_UNTOLD),)))

    @property
    def _discount_doubt(self) -> str:
        if not 0 < self.discount_fraction < _LEAST_FRACTION:
            return ""
        share = f"{100 * self.discount_fraction:g}%"
        return f"discount of {self.item} is {share}: if that is a fraction, write the percent"

    @property
    def _price_doubt(self) -> str:
        return self._far_text(self.listed.farthest if self.listed else FARTHEST)

    def _far_text(self, farthest: float) -> str:
        """How far its price is from the listed ones; empty within a factor from their ends."""
        low_usd, high_usd, _, of = self.listed or Listed(self.usd, self.usd)
        ends = _usd(low_usd) if low_usd == high_usd else f"{_usd(low_usd)} to {_usd(high_usd)}"
        if low_usd / farthest <= self.usd <= high_usd * farthest:
            return ""
        how, more = f"{_times(self.usd / high_usd)} times the highest", of and f", which is of {of}"
        if self.usd < low_usd:
            how, more = f"1/{_times(low_usd / self.usd)} of the lowest", ""
        return f"{self.item} is quoted at {_usd(self.usd)}, {how} listed price ({ends}){more}"

    @property
    def _support_doubt(self) -> str:
        if self.support_usd <= self.usd or self._price_doubt:  # Beside such a price all is dear.
            return ""
        times = _times(self.support_usd / self.usd)
        return f"support of {self.item} is {_usd(self.support_usd)}, {times} times its price"

    @property
    def _tax_doubt(self) -> str:
        if self.item != TAX or self.tax_fraction >= _LEAST_FRACTION:
            return ""
        return f"tax is {100 * self.tax_fraction:g}%: if that is a fraction, write the percent"

    @property
    def is_over(self) -> bool:
        """Whether it no longer holds on :attr:`day`."""
        return bool(self.day and self.valid_until and self.valid_until < self.day)

    @property
    def _n_days_over(self) -> int:
        """Days from its last one to :attr:`day`; 0 where it has not ended."""
        if not self.is_over or self.valid_until is None:
            return 0
        day, last = map(datetime.date.fromisoformat, (self.day, self.valid_until))
        return (day - last).days

    @property
    def when(self) -> str:
        """Why it does not hold on :attr:`day`; empty where it does."""
        if self.is_over:
            return f"expired on {self.valid_until}"
        return f"dated {self.date}, in the future" if self.day and self.day < self.date else ""

    @property
    def is_short(self) -> bool:
        """Whether fewer units are needed than its seller sells."""
        return self.n_needed is not None and self.n_needed < (self.moq or 0)

    @property
    def why_not(self) -> str:
        """Why it cannot be ordered; empty where it can."""
        if self.when or not self.is_short:
            return self.when
        ends = dict.fromkeys(f"{n:,}" for n in (self.n_needed, self.n_most) if n is not None)
        return f"sells from {self.moq:,}; {' to '.join(ends)} are needed"

    @property
    def can_be_ordered(self) -> bool:
        """Whether it holds on its day, and is of no more units than are needed."""
        return not self.why_not

    def for_units(self, n_units: int, n_most: int | None = None) -> Quote:
        """The offer that counts where so many units are needed, or fewer as said before.

        One of more units than that counts only where no other one that holds can be ordered.

        Parameters
        ----------
        n_units, n_most : that designs need, at the least and at the most; of one design both.

        >>> bulk = Quote("n", 419.0, "Bulk", "2026-11-15", moq=5000)
        >>> found = cheapest([bulk, Quote("n", 545.0, "NetCo", "2026-11-02")])
        >>> found.seller, found.for_units(5000).seller, found.for_units(2110).seller
        ('Bulk', 'Bulk', 'NetCo')
        >>> found.for_units(2110).verdicts[1][1]
        'no: sells from 5,000; 2,110 are needed'
        >>> found.for_units(2110, 4200).verdicts[1][1]
        'no: sells from 5,000; 2,110 to 4,200 are needed'
        """
        offers, most = (self, *self.others), n_most or n_units
        if not any(one.moq for one in offers):
            return self
        if self.n_needed is None or n_units < self.n_needed:
            most = max(most, self.n_most or 0)
            return cheapest(
                [replace(one, n_needed=n_units, n_most=most, others=()) for one in offers]
            )
        if most <= (self.n_most or 0):
            return self
        others = tuple(replace(one, n_most=most) for one in self.others)
        return replace(self, n_most=most, others=others)

    @property
    def verdicts(self) -> tuple[tuple[Quote, str], ...]:
        """It and the others, each with why it counts or not.

        >>> quotes = [Quote("n", x, "Acme", "2026-11-02") for x in (28.0, 26.0)]
        >>> [text for _, text in cheapest(quotes).verdicts]
        ['counts: the cheapest that holds', 'no: dearer']
        """
        why = "the only one"
        if self.is_chosen:
            why = "chosen in the file"
        elif self.others:
            over = " of those that ended last" if self.is_over else ""
            why = f"the cheapest{over if self.when else ' that holds'}"
            is_dearer = any(one.worth_usd < self.worth_usd and not one.when for one in self.others)
            why += " and can be ordered" if is_dearer else ""
        why = "; ".join(filter(None, (why, self.why_not, self.unlike)))
        return ((self, f"counts: {why}"), *((one, f"no: {self._lost(one)}") for one in self.others))

    @property
    def unlike(self) -> str:
        """What it lacks that another quote for the item, which holds, has; empty for nothing.

        >>> bare = Quote("n", 28.0, "Acme", "2026-11-02")
        >>> cheapest([bare, Quote("n", 27.0, "Beta", "2026-11-02", support_usd=2.0)]).unlike
        'quotes no support, Beta does ($29.00 with it, $28.00 here): not like for like'
        """
        if self.support_usd:
            return ""
        found = [one for one in self.others if one.support_usd and one.can_be_ordered]
        if not found:
            return ""
        names, do = " and ".join(one.seller for one in found), "do" if found[1:] else "does"
        least = _usd(min(one.worth_usd for one in found))
        sums = f"({least} with it, {_usd(self.usd)} here)"
        return f"quotes no support, {names} {do} {sums}: not like for like"

    def _lost(self, one: Quote) -> str:
        """Why another quote does not count."""
        if one.why_not:
            return one.why_not
        if self.worth_usd < one.worth_usd:
            return "dearer" if self.usd < one.usd else "dearer with support"
        how = "as dear" if self.worth_usd == one.worth_usd else "cheaper"
        return (
            f"{how}, but the file chooses another"
            if self.is_chosen
            else f"{how}, and later in the file"
        )

    @property
    def where(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.place.line}" if self.place and self.place.line else self.file


def _usd(usd: float) -> str:
    is_whole = usd >= 100 and usd == round(usd)
    return f"${usd:,.0f}" if is_whole else f"${usd:,.2f}"


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= _MANY_TIMES else f"{factor:.2g}"


_MANY_TIMES = 10


def cheapest(quotes: Sequence[Quote]) -> Quote:
    """The quote that counts of several sellers' for one item, which knows the others.

    The one that the file chooses, else the least price of one with its support among those that
    hold on their day, and of those that can be ordered in the units that are needed; of equals the
    first. Where none holds, the least among those that ended
    last: an offer that is long over is no price of today.

    >>> day, ends = "2027-01-05", {33.0: "2026-10-31", 47.5: "2026-12-31", 45.6: "2026-12-31"}
    >>> cheapest([Quote("n", x, "A", "2026-08-01", end, day=day) for x, end in ends.items()]).usd
    45.6
    """

    def rank(one: Quote) -> tuple[float, ...]:
        return not one.is_chosen, bool(one.when), one._n_days_over, one.is_short, one.worth_usd

    best = min(quotes, key=rank)
    return replace(best, others=tuple(one for one in quotes if one is not best))


def rate_ends(quotes: Iterable[Quote], currency: str) -> tuple[float, float]:
    """Rates of a currency between which the same quotes count, all others as they are.

    Examples
    --------
    >>> ours = Quote("n", 110.0, "A", "d", currency="EUR", amount=100.0, rate=1.1)
    >>> rate_ends([cheapest([ours, Quote("n", 118.0, "B", "d")])], "EUR")
    (0.0, 1.18)
    """
    low, high = 0.0, math.inf
    for one in quotes:
        for other in one.others if one.next_offer else ():
            moves = [x.currency == currency for x in (one, other)]
            if not other.can_be_ordered or moves[0] == moves[1]:
                continue
            if moves[0]:
                high = min(high, other.worth_usd / (one.amount + one.support))
            else:
                low = max(low, one.worth_usd / (other.amount + other.support))
    return low, high


def quote_warnings(quotes: Iterable[Quote]) -> list[str]:
    """Quotes that do not hold or are unlike others, and figures of any offer in doubt, with lines.

    What is in doubt for several offers, such as a rate of exchange, is said once.
    """
    found, said = list[str](), set[str]()
    for one in quotes:
        if one.when:
            what = f"{one.item} of {one.seller}, {one.when}"
            found.append(f"{one.where}: {what}, does not hold on {one.day}")
        if one.unlike:
            found.append(f"{one.where}: {one.item}: {one.seller} {one.unlike}")
        for offer in (one, *one.others):
            whose = "" if offer is one else f" (of {offer.seller}, which does not count)"
            new = [text for text in offer.remarks if text not in said]
            found += [f"{offer.where}: {text}{whose}: check it" for text in new]
            said |= {*new}
    return found


def without_end(quotes: Sequence[Quote], file: Iterable[Quote]) -> str:
    """Which quotes have no last day, where others of their file have one; empty for none.

    >>> bare, other = Quote("n", 28.0, "Acme", "2026-11-02"), Quote("m", 1.0, "B", "d", "e")
    >>> without_end([bare], [bare, other])
    'n: the quote of Acme has no last day'
    """
    offers = [one for quote in file for one in (quote, *quote.others) if one.item != TAX]
    found = [one for one in quotes if one.item != TAX and not one.valid_until]
    if not found or not any(one.valid_until for one in offers):
        return ""
    if len(found) == 1:
        return f"{found[0].item}: the quote of {found[0].seller} has no last day"
    told = [f"{one.item} of {one.seller}" for one in found[:_MOST_TOLD]]
    told += [f"{len(found) - _MOST_TOLD} more"] * (len(found) > _MOST_TOLD)
    return f"{len(found)} quotes have no last day ({', '.join(told)})"


_MOST_TOLD = 3
"""Quotes without a last day that are named."""


def unpriced_note(quotes: Sequence[Quote]) -> str:
    """Which rows of a file have no price yet; empty where all have one."""
    names = quotes[0].unpriced if quotes else ()
    return (
        f"rows of {quotes[0].file} without a price count for nothing: {', '.join(names)}"
        if names
        else ""
    )


def quoted_parts(quotes: Iterable[Quote]) -> dict[str, Quote]:
    """The quotes of parts and NPUs, by their names."""
    parts = (quote for quote in quotes if quote.tier_part is None and quote.item != TAX)
    return {quote.item: quote for quote in parts}


def quoted_tax(quotes: Iterable[Quote]) -> float | None:
    """The tax over the price of everything; ``None`` where nobody quotes it.

    >>> quoted_tax([Quote("tax", 0.0, "State", "2026-11-02", tax_fraction=0.0825)])
    0.0825
    """
    return next((quote.tax_fraction for quote in quotes if quote.item == TAX), None)


def missing_part_fix(before: str, item: str) -> str:
    """How to add a part that the catalogue lacks, behind what a message says before."""
    start = " For" if before.endswith("?") else "; for"
    return (
        f"{start} another part, write {item} under parts: of a file with kind: parts and base: "
        "parts, as in docs/prices.md#parts-that-the-catalogue-lacks, and add --parts FILE"
    )


def unused_items(quotes: Sequence[Quote], used: Sequence[str]) -> tuple[str, ...]:
    """What has a quote that figures do not rest on."""
    return tuple(quote.item for quote in quotes if quote.item not in used)


def unused_note(items: Sequence[str]) -> str:
    """What has quotes that linear prices do not use, for people.

    >>> unused_note(["nic-400g", "h100-sxm"])
    'quotes that the linear prices do not use, but a bill of parts may: nic-400g, h100-sxm'
    """
    return f"quotes that the linear prices do not use, but a bill of parts may: {', '.join(items)}"
