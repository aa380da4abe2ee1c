"""Quotes: what sellers ask, in place of the prices of a book or of a catalogue (C22)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from libra_planner.errors import Place

TAX = "tax"
"""The item of what is added to the price of everything."""

FARTHEST = 5
"""Factor from the ends of a listed price beyond which a quote is doubted."""

TIER_PARTS = ("link", "switch", "nic")
"""What a tier of a price book has prices of."""


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
    support_usd : of one, for all years of use.
    tax_fraction : of the item :data:`TAX`, over the price of everything; its ``usd`` is 0.
    listed_usd : ends of the catalogue's own price; ``None`` where it has none.
    day : on which it has to hold, YYYY-MM-DD; empty where nobody says.
    unpriced : items of its file that nobody has priced yet.
    file : that it is from, as the user gave it.
    place : where it stands.

    Examples
    --------
    >>> quote = Quote("pod.nic", 28.0, "Acme", "2026-11-02", "2026-12-31")
    >>> quote.tier_part, quote.source
    (('pod', 'nic'), 'quote of Acme, 2026-11-02, valid until 2026-12-31')
    >>> Quote("nic-400g", 140000.0, "Acme", "2026-11-02", listed_usd=(1400, 1600)).doubt
    'nic-400g is quoted at $140,000, 88 times the highest listed price ($1,400 to $1,600)'
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
    tax_fraction: float = 0.0
    listed_usd: tuple[float, float] | None = field(default=None, compare=False)
    day: str = field(default="", compare=False)
    unpriced: tuple[str, ...] = field(default=(), compare=False)
    file: str = field(default="", compare=False)
    place: Place | None = field(default=None, compare=False)

    @property
    def tier_part(self) -> tuple[str, str] | None:
        """Tier and part of a price book; ``None`` for a part of a catalogue."""
        tier, _, part = self.item.rpartition(".")
        return (tier, part) if tier and part in TIER_PARTS else None

    @property
    def source(self) -> str:
        """From whom and when, for people."""
        ends = f", valid until {self.valid_until}" if self.valid_until else ""
        note = f" ({self.note})" if self.note else ""
        return f"quote of {self.seller}, {self.date}{ends}{note}"

    @property
    def doubt(self) -> str:
        """What speaks against its price; empty for one near what is listed, or not listed."""
        low_usd, high_usd = self.listed_usd or (self.usd, self.usd)
        listed = f"listed price ({_usd(low_usd)} to {_usd(high_usd)})"
        if low_usd / FARTHEST <= self.usd <= high_usd * FARTHEST:
            return ""
        how = f"{self.usd / high_usd:,.0f} times the highest"
        if self.usd < low_usd:
            how = f"1/{low_usd / self.usd:,.0f} of the lowest"
        return f"{self.item} is quoted at {_usd(self.usd)}, {how} {listed}"

    @property
    def when(self) -> str:
        """Why it does not hold on :attr:`day`; empty where it does."""
        if self.day and self.valid_until and self.valid_until < self.day:
            return f"expired on {self.valid_until}"
        return f"dated {self.date}, in the future" if self.day and self.day < self.date else ""

    @property
    def where(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.place.line}" if self.place and self.place.line else self.file


def _usd(usd: float) -> str:
    return f"${usd:,.0f}" if usd >= 100 else f"${usd:,.2f}"


def quote_warnings(quotes: Iterable[Quote]) -> list[str]:
    """Quotes that do not hold on their day, and prices far from what is listed, with lines."""
    found = []
    for one in quotes:
        if one.when:
            what = f"{one.item} of {one.seller}, {one.when}"
            found.append(f"{one.where}: {what}, does not hold on {one.day}")
        if one.doubt:
            found.append(f"{one.where}: {one.doubt}: check the price and its unit")
    return found


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
