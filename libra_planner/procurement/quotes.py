"""A user's quotes on the lines of a bill, and what is ordered from whom (C22)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from libra_planner.costs.prices import QUOTED
from libra_planner.costs.quotes import TAX, Quote, quoted_parts, quoted_tax
from libra_planner.procurement.bill import (
    SERVICE,
    SERVICES,
    SUPPORT,
    ZERO,
    Bill,
    Line,
    Part,
    Price,
    to_cents,
)


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
    by_item, tax = quoted_parts(used_quotes(bill, quotes)), quoted_tax(quotes)
    lines: Sequence[Line] = bill.lines
    if by_item:
        lines = [
            replace(line, part=quoted_part(line.part, by_item.get(line.part.name)))
            for line in lines
        ]
    return Bill((*lines, *_support(lines)), tax_fraction if tax is None else tax)


def _support(lines: Sequence[Line]) -> Iterator[Line]:
    """Support of every part whose price names it: of units in use, not of spares."""
    supported = [line for line in lines if line.part.price and line.part.price.support_usd]
    for part in {line.part.name: line.part for line in supported}.values():
        if (price := part.price) and price.support_usd:
            name, what = support_name(part), "for all years of use"
            own = replace(price, usd=price.support_usd, amount=price.support_amount)
            own = replace(own, low_usd=None, high_usd=None, support_usd=None, support_amount=None)
            own = replace(own, list_amount=None, discount_fraction=0.0, moq=None)
            n_units = sum(line.n_units for line in supported if line.part.name == part.name)
            yield Line(SUPPORT, "all", Part(name, SUPPORT, what, own), n_units)


def lump_lines(quotes: Sequence[Quote]) -> Iterator[Line]:
    """Money that a bill counts once, such as freight: a line for each item, without a price yet.

    >>> freight = Quote("freight", 9e5, "Cargo Co", "2026-11-02", is_lump=True)
    >>> bill = quoted_bill(Bill(tuple(lump_lines([freight]))), [freight])
    >>> bill.total_usd, bill.lines[0].group
    (Decimal('900000.00'), 'services')
    """
    for quote in quotes:
        if quote.is_lump:
            yield Line(SERVICES, "all", Part(quote.item, SERVICE, "lump sum, counted once"), 1)


def support_name(part: Part) -> str:
    """What the support of a part is called."""
    return f"support of {part.name}"


def quoted_part(part: Part, quote: Quote | None) -> Part:
    """A part at its quote; as it is without one."""
    if quote is None:
        return part
    price = Price(
        quoted_usd(quote),
        QUOTED,
        quote.date,
        quote.source,
        valid_until=quote.valid_until,
        support_usd=quoted_support_usd(quote) or None,
        seller=quote.seller,
        currency=quote.currency,
        rate=quote.rate,
        amount=Decimal(repr(quote.amount)) if quote.amount else None,
        support_amount=Decimal(repr(quote.support)) if quote.support else None,
        list_amount=Decimal(repr(quote.list_amount)) if quote.list_amount else None,
        discount_fraction=quote.discount_fraction,
        note=quote.note or "",
        moq=quote.moq,
        payment_terms=quote.payment_terms,
        incoterm=quote.incoterm,
    )
    number, n_days = quote.part_number or part.part_number, quote.n_lead_days
    days = part.n_lead_days if n_days is None else n_days
    return replace(part, price=price, part_number=number, n_lead_days=days)


def quoted_usd(quote: Quote) -> Decimal:
    """What one costs at a quote: to the cent, and of another currency exactly at its rate.

    >>> quoted_usd(Quote("n", 585.104, "A", "d", currency="EUR", amount=504.40, rate=1.16))
    Decimal('585.104')
    """
    return _usd(quote.usd, quote.currency)


def quoted_support_usd(quote: Quote) -> Decimal:
    """What support of one costs at a quote, as exactly."""
    return _usd(quote.support_usd, quote.currency)


def _usd(usd: float, currency: str) -> Decimal:
    return to_cents(usd) if currency == "USD" else Decimal(repr(float(usd)))


def used_quotes(bill: Bill, quotes: Sequence[Quote], used: Sequence[str] = ()) -> list[Quote]:
    """The quotes that a bill rests on, for the units that it has; tax is of every bill.

    Parameters
    ----------
    bill, quotes : what is bought, and the quotes.
    used : items that are used elsewhere, such as parts of tiers.
    """
    names = {line.part.name for line in bill.lines} | {*used, TAX}
    return [quote for quote in for_bills([bill], quotes) if quote.item in names]


def for_bills(bills: Iterable[Bill], quotes: Sequence[Quote]) -> tuple[Quote, ...]:
    """The quotes that count where every bill that has a part has as many as its seller sells.

    Parameters
    ----------
    bills : of designs that are compared, in which a part has one price.
    quotes : of all parts; those of what no bill has stay as they are.

    Examples
    --------
    >>> bills = [Bill((Line("network", "", Part("n", "nic", ""), x),)) for x in (90, 110)]
    >>> [for_bills(bills, [Quote("n", 9.0, "A", "d", moq=m)])[0].is_short for m in (90, 100)]
    [False, True]
    """
    if not any(one.moq for quote in quotes for one in (quote, *quote.others)):
        return tuple(quotes)
    needed: dict[str, list[int]] = {}
    for bill in bills:
        units = Counter[str]()
        for line in bill.lines:
            units[line.part.name] += line.n_bought
        for name in +units:
            needed.setdefault(name, []).append(units[name])
    return tuple(
        quote.for_units(min(ns), max(ns)) if (ns := needed.get(quote.item)) else quote
        for quote in quotes
    )


def moved_usd(bill: Bill, offer: Quote, counts: Quote) -> Decimal | None:
    """What a bill would have more at an offer; ``None`` for what it has none, or too few, of.

    Parameters
    ----------
    bill : at the quote that counts.
    offer, counts : an offer of another seller for the same item, and the one that counts.

    Examples
    --------
    >>> line = Line("network", "host", Part("nic-400g", "nic", "a NIC"), 2)
    >>> ours, other = (Quote("nic-400g", x, "Acme", "2026-11-02") for x in (1400.0, 1300.0))
    >>> moved_usd(quoted_bill(Bill((line,)), [ours]), other, ours)
    Decimal('-200.00')
    """
    lines = [line for line in bill.lines if line.part.name == offer.item]
    n_bought = sum(line.n_bought for line in lines)
    if offer is counts or not lines or offer.tier_part is not None or n_bought < (offer.moq or 0):
        return None
    pairs = (
        (quoted_usd, n_bought),
        (quoted_support_usd, sum(line.n_units for line in lines)),
    )
    return sum((n * (of(offer) - of(counts)) for of, n in pairs), ZERO)


@dataclass(frozen=True)
class OrderLine:
    """A part as it is ordered: the units of all lines of a bill together.

    Parameters
    ----------
    lines : of the bill.
    support : the bill's line of its support, where somebody sells one.
    """

    lines: tuple[Line, ...]
    support: Line | None = None

    @property
    def part(self) -> Part:
        """What is ordered."""
        return self.lines[0].part

    @property
    def n_bought(self) -> int:
        """Units in use and spares."""
        return sum(line.n_bought for line in self.lines)

    @property
    def n_below_moq(self) -> int:
        """Units that are missing to the fewest that its seller sells; 0 where they suffice.

        >>> part = Part("n", "nic", "", Price(ZERO, moq=100))
        >>> OrderLine((Line("network", "a", part, 90),)).n_below_moq
        10
        """
        price = self.part.price
        return max(0, (price.moq or 0) - self.n_bought) if price else 0

    @property
    def lengths(self) -> dict[float, int]:
        """Units by their length in metres, shortest first; empty of what has none.

        >>> fibre = Part("f", "fibre", "")
        >>> OrderLine((Line("network", "a", fibre, 8, length_m=50.0),)).lengths
        {50.0: 8}
        """
        found = dict.fromkeys(sorted(x.length_m for x in self.lines if x.length_m), 0)
        for line in self.lines:
            if line.length_m:
                found[line.length_m] += line.n_bought
        return found

    @property
    def bought(self) -> tuple[Line, ...]:
        """The lines of the bill, that of its support too."""
        return self.lines if self.support is None else (*self.lines, self.support)

    @property
    def total_usd(self) -> Decimal:
        """All units, and their support."""
        return Bill(self.bought).total_usd

    @property
    def amount(self) -> Decimal:
        """All units, in the currency of their quote."""
        return self.n_bought * amount_of(self.part)

    @property
    def support_amount(self) -> Decimal:
        """Their support, in the same."""
        support = self.support
        return support.n_bought * amount_of(support.part) if support else ZERO


@dataclass(frozen=True)
class Order:
    """What one seller gets an order for.

    Parameters
    ----------
    seller : empty where nobody has quoted.
    currency, rate : of the order, and what one unit of it is worth in USD.
    is_quoted : whether its prices are offers.
    lines : parts, in the order of the bill.
    """

    seller: str
    currency: str
    rate: float
    is_quoted: bool
    lines: tuple[OrderLine, ...] = field(repr=False)

    @property
    def total_usd(self) -> Decimal:
        """All of it."""
        return sum((line.total_usd for line in self.lines), ZERO)

    @property
    def amount(self) -> Decimal:
        """All of it in its currency."""
        return sum((line.amount + line.support_amount for line in self.lines), ZERO)

    @property
    def has_support(self) -> bool:
        """Whether support of any part is ordered, too."""
        return any(line.support for line in self.lines)

    @property
    def rate_day(self) -> str:
        """The day of the oldest quote whose rate it has, YYYY-MM-DD."""
        prices = (line.part.price for line in self.lines)
        return min((price.as_of for price in prices if price), default="")


def amount_of(part: Part) -> Decimal:
    """Price of one in the currency of its quote; 0 without a price."""
    price = part.price
    if price is None:
        return ZERO
    return price.usd if price.amount is None else price.amount


def orders(bill: Bill) -> tuple[Order, ...]:
    """What is ordered from whom, dearest first; what nobody has quoted comes last.

    Parts that the price of another one holds are in no order. The sums are those of the bill.

    Examples
    --------
    >>> bill = Bill((Line("network", "a", Part("n", "nic", ""), 2),))
    >>> [own] = orders(quoted_bill(bill, [Quote("n", 1100.0, "Acme", "2026-11-02")]))
    >>> own.seller, own.lines[0].n_bought, own.total_usd
    ('Acme', 2, Decimal('2200.00'))
    """
    parts: dict[tuple[str, Decimal | None], list[Line]] = {}
    for line in bill.lines:
        if line.part.kind != SUPPORT and line.n_bought and line.part.unit_usd != ZERO:
            parts.setdefault((line.part.name, line.part.unit_usd), []).append(line)
    supports = {line.part.name: line for line in bill.lines if line.part.kind == SUPPORT}
    found: dict[tuple[str, str, float, bool], list[OrderLine]] = {}
    for same in parts.values():
        own = OrderLine(tuple(same), supports.get(support_name(same[0].part)))
        price = own.part.price or Price(ZERO)
        key = (price.seller, price.currency, price.rate, price.is_quoted)
        found.setdefault(key, []).append(own)
    whole = (Order(*key, tuple(lines)) for key, lines in found.items())
    return tuple(
        sorted(whole, key=lambda x: (not x.seller, not x.is_quoted, -x.total_usd, x.seller))
    )
