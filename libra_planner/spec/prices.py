"""Price-book files into :class:`~libra_planner.costing.PriceBook`."""

from __future__ import annotations

from pathlib import Path

from libra_planner.costing import PriceBook, TierPrice
from libra_planner.spec.document import read_document
from libra_planner.spec.faults import validated
from libra_planner.spec.models import PriceBookSpec


def load_price_book(path: Path) -> PriceBook:
    """Read a price book.

    Raises
    ------
    SpecError
        With every fault found.
    """
    spec = validated(PriceBookSpec, read_document(path))
    tiers = {name: TierPrice(tier.link, tier.switch, tier.nic) for name, tier in spec.tiers.items()}
    return PriceBook(path.stem, tiers, spec.as_of)
