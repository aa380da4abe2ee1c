"""Price-book files into :class:`~libra_planner.costs.prices.PriceBook`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from libra_planner.costs.prices import PriceBook, TierPrice
from libra_planner.files import read_text
from libra_planner.spec.document import parse_document
from libra_planner.spec.faults import validated
from libra_planner.spec.models import PriceBookSpec


def load_price_book(path: Path) -> PriceBook:
    """Read a price book.

    Raises
    ------
    SpecError
        With every fault found.
    """
    return _price_book(path, read_text(path))


@lru_cache(maxsize=16)
def _price_book(path: Path, text: str) -> PriceBook:
    """The price book that a file holds: kept by its text, so a changed file is read anew."""
    spec = validated(PriceBookSpec, parse_document(text, str(path)))
    tiers = {name: TierPrice(tier.link, tier.switch, tier.nic) for name, tier in spec.tiers.items()}
    return PriceBook(path.stem, MappingProxyType(tiers), spec.as_of)
