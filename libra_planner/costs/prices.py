"""Network cost: linear in bandwidth, by the price of every tier (C7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError, closest
from libra_planner.fabric.topology import Dimension, Topology
from libra_planner.units import BYTES_PER_S_PER_GBPS


@dataclass(frozen=True)
class TierPrice:
    """Prices of one tier in USD per GB/s; ``None`` where the tier sells no such part."""

    link_usd_per_GBps: float | None = None
    switch_usd_per_GBps: float | None = None
    nic_usd_per_GBps: float | None = None


@dataclass(frozen=True)
class PriceBook:
    """Prices by tier.

    Parameters
    ----------
    name : what reports call it.
    tiers : tier name to prices.
    as_of : date of the prices.
    """

    name: str
    tiers: Mapping[str, TierPrice]
    as_of: str = "unknown"


@dataclass(frozen=True)
class PricePart:
    """One price of the book that a fabric uses.

    Parameters
    ----------
    tier, part : such as ``pod`` and ``nic``.
    usd_per_GBps : the price.
    usd_per_Bps_per_price : network price per byte/s of each dimension that one USD per GB/s
        of it makes, shape (n_dims,).
    """

    tier: str
    part: str
    usd_per_GBps: float
    usd_per_Bps_per_price: tuple[float, ...]


def price_parts(topology: Topology, book: PriceBook) -> tuple[PricePart, ...]:
    """The prices that make up a fabric's network price (C7), in the order of its dimensions.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"pod": TierPrice(7.8, 18.0, 31.6)})
    >>> [(p.part, p.usd_per_GBps) for p in price_parts(parse_topology("SW(32)", ["pod"]), book)]
    [('link', 7.8), ('switch', 18.0), ('nic', 31.6)]
    """
    rows: dict[tuple[str, str], list[float]] = {}
    prices: dict[tuple[str, str], float] = {}
    for i, dimension in enumerate(topology.dimensions):
        for part, price in _parts(dimension, book.tiers[dimension.tier]).items():
            row = rows.setdefault((dimension.tier, part), [0.0] * topology.n_dims)
            row[i] = topology.n_npus / BYTES_PER_S_PER_GBPS
            prices[dimension.tier, part] = price or 0.0
    return tuple(PricePart(*key, prices[key], tuple(row)) for key, row in rows.items())


def has_nic(topology: Topology, prices: Sequence[PricePart]) -> tuple[bool, ...]:
    """Whether each dimension is a switch that is reached through NICs that cost something (C14).

    A switch whose prices are not known counts as one with NICs.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"node": TierPrice(4, 13, 0), "pod": TierPrice(7.8, 18.0, 31.6)})
    >>> fabric = parse_topology("SW(8)_SW(32)", ["node", "pod"])
    >>> has_nic(fabric, price_parts(fabric, book))
    (False, True)
    """
    without = {price.tier for price in prices if price.part == "nic" and not price.usd_per_GBps}
    return tuple(
        "nic" in dimension.block.price_parts and dimension.tier not in without
        for dimension in topology.dimensions
    )


def _parts(dimension: Dimension, tier: TierPrice) -> dict[str, float | None]:
    """Prices that a dimension pays for, by part."""
    return {part: getattr(tier, f"{part}_usd_per_GBps") for part in dimension.block.price_parts}


def network_price_usd_per_Bps(topology: Topology, book: PriceBook) -> NDArray[np.float64]:
    """Network cost of the whole fabric per byte/s of each dimension (C7).

    Every NPU pays for what it injects: the link price for ring and fully connected
    dimensions, link + NIC + switch for a switch. Source: LIBRA (ISPASS'24), Table I.

    Returns
    -------
    USD per byte/s, shape (n_dims,): cost is its product with the bandwidth vector.

    Raises
    ------
    SpecError
        For a tier the book does not know or a part it gives no price for.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"node": TierPrice(4.0), "pod": TierPrice(7.8, 18.0, 31.6)})
    >>> fabric = parse_topology("RI(4)_SW(32)", ["node", "pod"])
    >>> network_price_usd_per_Bps(fabric, book) * 1e9
    array([ 512. , 7347.2])
    """
    faults: list[Fault] = []
    prices = [
        _price_usd_per_GBps(i, dimension, book, faults)
        for i, dimension in enumerate(topology.dimensions)
    ]
    if faults:
        raise SpecError(*faults)
    return topology.n_npus * np.array(prices) / BYTES_PER_S_PER_GBPS


def _price_usd_per_GBps(
    i: int, dimension: Dimension, book: PriceBook, faults: list[Fault]
) -> float:
    if dimension.tier not in book.tiers:
        expected = f"expected a tier of the price book {book.name}"
        fix = closest(dimension.tier, book.tiers)
        faults.append(Fault(f"got {dimension.tier!r}", expected, fix, f"fabric.tiers.{i}"))
        return 0.0
    parts = _parts(dimension, book.tiers[dimension.tier])
    for part, price in parts.items():
        if price is None:
            got = f"got no {part} price for tier {dimension.tier!r} in price book {book.name}"
            expected = f"expected one: dim{i + 1} is {dimension} there (C7)"
            fix = f"add '{part}: <USD per GB/s>' to the tier, 0 with a reason if it needs none"
            faults.append(Fault(got, expected, fix, f"fabric.tiers.{i}"))
    return sum(price for price in parts.values() if price is not None)
