"""Quotes: what sellers ask, in place of the prices of a book or of a catalogue (C22)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from libra_planner.errors import Place

TAX = "tax"
"""The item of what is added to the price of everything."""

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
    file : that it is from, as the user gave it.
    place : where it stands.

    Examples
    --------
    >>> quote = Quote("pod.nic", 28.0, "Acme", "2026-11-02", "2026-12-31")
    >>> quote.tier_part, quote.source
    (('pod', 'nic'), 'quote of Acme, 2026-11-02, valid until 2026-12-31')
    >>> Quote("nic-400g", 1400.0, "Acme", "2026-11-02").tier_part is None
    True
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
