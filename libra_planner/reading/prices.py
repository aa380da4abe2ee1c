"""Price-book files into :class:`~libra_planner.costs.prices.PriceBook`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from libra_planner.costs.prices import PriceBook, TierPrice
from libra_planner.files import read_text
from libra_planner.reading.document import parse_document
from libra_planner.reading.faults import validated
from libra_planner.reading.fields import Model, Price, Text


class TierSpec(Model):
    """Prices of one tier, USD per GB/s.

    Parameters
    ----------
    nic_reason : Why a switch needs no NIC price.
    """

    link: Price | None = None
    switch: Price | None = None
    nic: Price | None = None
    nic_reason: Text | None = None

    @model_validator(mode="after")
    def _free_nic_says_why(self) -> TierSpec:
        if self.switch is not None and self.nic == 0 and self.nic_reason is None:
            raise ValueError("got nic: 0 without nic_reason, expected the reason why it is free")
        return self


class PriceBookSpec(Model):
    """A price book: USD per GB/s by tier, with source and date."""

    kind: Literal["price_book"]
    source: Text
    as_of: Text
    unit: Literal["USD per GB/s"]
    tiers: Annotated[dict[str, TierSpec], Field(min_length=1)]


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
