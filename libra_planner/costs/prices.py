"""Network cost: linear in bandwidth by the price of every tier (C7), or that of options.

A dimension with options is bought as whole ports: its bandwidth B_d per NPU (C2) is one of
``n_ports x speed``, and its cost is the option's own, which need not be linear in B_d.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.costs.quotes import Quote
from libra_planner.errors import Fault, closest, refuse
from libra_planner.fabric.topology import Dimension, Topology
from libra_planner.units import BYTES_PER_S_PER_GBPS, gigabytes_per_s

ASSUMED, QUOTED = "assumed", "quoted"
"""How sure a price is that is an estimate; others are ``published`` or ``quoted`` (C22)."""


@dataclass(frozen=True)
class TierPrice:
    """Prices of one tier in USD per GB/s; ``None`` where the tier sells no such part.

    Parameters
    ----------
    confidence : ``published``, ``quoted`` or ``assumed`` (C22).
    nic_reason : why a switch needs no NIC, where the book says.
    """

    link_usd_per_GBps: float | None = None
    switch_usd_per_GBps: float | None = None
    nic_usd_per_GBps: float | None = None
    confidence: str = ASSUMED
    nic_reason: str = ""


@dataclass(frozen=True)
class PriceBook:
    """Prices by tier.

    Parameters
    ----------
    name : what reports call it.
    tiers : tier name to prices.
    as_of : date of the prices.
    quotes : of parts of tiers, whose prices ``tiers`` has already.
    """

    name: str
    tiers: Mapping[str, TierPrice]
    as_of: str = "unknown"
    quotes: Mapping[tuple[str, str], Quote] = field(default_factory=dict)

    def confidence(self, tiers: Iterable[str]) -> str:
        """How sure the prices of some tiers are, in words.

        Examples
        --------
        >>> sure, guess = TierPrice(4.0, confidence="published"), TierPrice(7.8)
        >>> book = PriceBook("b", {"node": sure, "pod": guess, "core": guess})
        >>> book.confidence(["node"]), book.confidence(["node", "pod", "core"])
        ('published', 'node published; pod, core assumed')
        """
        of: dict[str, list[str]] = {}
        for tier in dict.fromkeys(tiers):
            of.setdefault(self.tiers[tier].confidence, []).append(tier)
        if len(of) == 1:
            return next(iter(of))
        return "; ".join(f"{', '.join(names)} {confidence}" for confidence, names in of.items())


@dataclass(frozen=True)
class PricePart:
    """One price of the book that a fabric uses.

    Parameters
    ----------
    tier, part : such as ``pod`` and ``nic``.
    usd_per_GBps : the price.
    usd_per_Bps_per_price : network price per byte/s of each dimension that one USD per GB/s
        of it makes, shape (n_dims,).
    confidence : ``published``, ``quoted`` or ``assumed`` (C22).
    quote : that it is from, if any.
    """

    tier: str
    part: str
    usd_per_GBps: float
    usd_per_Bps_per_price: tuple[float, ...]
    confidence: str = ASSUMED
    quote: Quote | None = None


def price_parts(
    topology: Topology, book: PriceBook, included: Collection[int] = ()
) -> tuple[PricePart, ...]:
    """The prices that make up a fabric's network price (C7, C13), in the order of its dimensions.

    Parameters
    ----------
    topology, book : dimensions, and prices by tier.
    included : dimensions that other prices hold, such as those of servers (C22).

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"pod": TierPrice(7.8, 18.0, 31.6)})
    >>> [(p.part, p.usd_per_GBps) for p in price_parts(parse_topology("SW(32)", ["pod"]), book)]
    [('link', 7.8), ('switch', 18.0), ('nic', 31.6)]

    A second tier of a stack costs a link and two ports of switches:

    >>> stack = parse_topology("[SW(32)_SW(4)]", ["pod", "pod"])
    >>> [(p.part, p.usd_per_Bps_per_price[1] * 1e9) for p in price_parts(stack, book)]
    [('link', 128.0), ('switch', 256.0), ('nic', 0.0)]
    """
    rows: dict[tuple[str, str], list[float]] = {}
    prices: dict[tuple[str, str], float] = {}
    paid = (x for x in enumerate(topology.dimensions) if x[0] not in included)
    for i, dimension in paid:
        for part, n_parts in _part_counts(dimension).items():
            row = rows.setdefault((dimension.tier, part), [0.0] * topology.n_dims)
            row[i] = n_parts * topology.n_npus / BYTES_PER_S_PER_GBPS
            prices[dimension.tier, part] = _price(book.tiers[dimension.tier], part) or 0.0
    quotes = {key: book.quotes.get(key) for key in rows}
    sure = {key: QUOTED if quotes[key] else book.tiers[key[0]].confidence for key in rows}
    return tuple(
        PricePart(*key, prices[key], tuple(row), sure[key], quotes[key])
        for key, row in rows.items()
    )


def free_tier_notes(tiers: Iterable[str], book: PriceBook) -> tuple[str, ...]:
    """Which tiers of a fabric cost nothing, and why (C22).

    Examples
    --------
    >>> node = TierPrice(0, 0, 0, nic_reason="its switch is in the server's price")
    >>> book = PriceBook("b", {"node": node, "pod": TierPrice(7.8, 18.0, 31.6)})
    >>> free_tier_notes(["node", "pod"], book)
    ("tier node costs nothing in b: its switch is in the server's price",)
    """
    found = {name: book.tiers[name] for name in tiers}
    return tuple(
        f"tier {name} costs nothing in {book.name}: {tier.nic_reason}"
        for name, tier in found.items()
        if tier.nic_reason and not (tier.link_usd_per_GBps or tier.switch_usd_per_GBps)
    )


def direct_link_notes(
    topology: Topology, book: PriceBook, included: Collection[int] = ()
) -> tuple[str, ...]:
    """Rings and fully connected groups whose links cost nothing, as no price holds them.

    Parameters
    ----------
    topology, book : dimensions, and prices by tier.
    included : dimensions that other prices hold, such as those of a part that the plan names.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"node": TierPrice(0, 0, 0, nic_reason="of switches")})
    >>> direct_link_notes(parse_topology("RI(8)", ["node"]), book)
    ("direct links of dim1 RI(8) cost $0 in b at tier node: they are not priced, unless a ...
    >>> direct_link_notes(parse_topology("SW(8)", ["node"]), book)
    ()
    """
    found: dict[tuple[str, str], list[str]] = {}
    for i, (label, one) in enumerate(zip(topology.labels, topology.dimensions, strict=True)):
        is_direct = i not in included and not one.block.is_switched and one.size > 1
        if is_direct and not book.tiers[one.tier].link_usd_per_GBps:
            found.setdefault((one.tier, str(one)), []).append(label)
    return tuple(
        f"direct links of {', '.join(labels)} {text} cost $0 in {book.name} at tier {tier}: they "
        f"are not priced, unless a server's price holds them; a price book of your own can give "
        f"the tier a link price"
        for (tier, text), labels in found.items()
    )


def has_nic(topology: Topology, prices: Sequence[PricePart]) -> tuple[bool, ...]:
    """Whether each dimension is a switch that is reached through NICs that cost something (C14).

    A stack is what its innermost tier is (C13).

    A switch whose prices are not known counts as one with NICs.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"node": TierPrice(4, 13, 0), "pod": TierPrice(7.8, 18.0, 31.6)})
    >>> fabric = parse_topology("SW(8)_SW(32)", ["node", "pod"])
    >>> has_nic(fabric, price_parts(fabric, book))
    (False, True)
    """
    without = tiers_without_nic(prices)
    ports = [topology.dimensions[i] for i in topology.ports]
    return tuple("nic" in one.block.price_parts and one.tier not in without for one in ports)


def tiers_without_nic(prices: Sequence[PricePart]) -> set[str]:
    """Tiers whose switches NPUs reach from ports of their own (``nic: 0``)."""
    return {price.tier for price in prices if price.part == "nic" and not price.usd_per_GBps}


def _part_counts(dimension: Dimension) -> dict[str, int]:
    """How many of each part an NPU pays for: one, but two ports and no NIC behind a port (C13)."""
    if not dimension.shares_port:
        return dict.fromkeys(dimension.block.price_parts, 1)
    counts = {"link": 1, "switch": 2}
    return {part: counts[part] for part in dimension.block.price_parts if part in counts}


def _price(tier: TierPrice, part: str) -> float | None:
    price: float | None = getattr(tier, f"{part}_usd_per_GBps")
    return price


def network_price_usd_per_Bps(
    topology: Topology, book: PriceBook, included: Collection[int] = ()
) -> NDArray[np.float64]:
    """Network cost of the whole fabric per byte/s of each dimension (C7).

    Every NPU pays for what it injects: the link price for ring and fully connected
    dimensions, link + NIC + switch for a switch; nothing for ``included`` dimensions, which
    other prices hold (C22). Source: LIBRA (ISPASS'24), Table I. A further tier of a stack costs a
    link and two ports of switches (C13).

    Returns
    -------
    USD per byte/s, shape (n_dims,): cost is its product with the bandwidth vector.

    Raises
    ------
    SpecError
        For a tier the book does not know or a part it gives no price for; for a stack whose
        innermost tier has no NIC.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> book = PriceBook("b", {"node": TierPrice(4.0), "pod": TierPrice(7.8, 18.0, 31.6)})
    >>> fabric = parse_topology("RI(4)_SW(32)", ["node", "pod"])
    >>> network_price_usd_per_Bps(fabric, book) * 1e9
    array([ 512. , 7347.2])
    """
    faults, prices = [], []
    for i, dimension in enumerate(topology.dimensions):
        if i in included:
            prices.append(0.0)
            continue
        if dimension.tier not in book.tiers:
            expected = f"expected a tier of the price book {book.name}"
            fix = closest(dimension.tier, book.tiers)
            faults.append(Fault(f"got {dimension.tier!r}", expected, fix, f"fabric.tiers.{i}"))
            continue
        tier, counts = book.tiers[dimension.tier], _part_counts(dimension)
        prices.append(sum(n * (_price(tier, part) or 0.0) for part, n in counts.items()))
        if i in {tiers.start for tiers in topology.stacks} and tier.nic_usd_per_GBps == 0:
            got = f"got nic: 0 for tier {dimension.tier!r}, the innermost of a stack"
            expected = "expected the price of a NIC: a stack is what NICs share"
            fix = "give it the tier of the NICs, or take the brackets away"
            faults.append(Fault(got, expected, fix, f"fabric.tiers.{i}"))
        for part in (name for name in counts if _price(tier, name) is None):
            got = f"got no {part} price for tier {dimension.tier!r} in price book {book.name}"
            expected = f"expected one: dim{i + 1} is {dimension} there"
            fix = f"add '{part}: <USD per GB/s>' to the tier, 0 with a reason if it needs none"
            if part == "nic" and i > 1 and topology.with_one_network:
                what = f"for one network of dim2 to dim{topology.n_dims}"
                fix = f"write fabric.topology: {topology.with_one_network} {what}, or {fix}"
            faults.append(Fault(got, expected, fix, f"fabric.tiers.{i}"))
    refuse(faults)
    return topology.n_npus * np.array(prices) / BYTES_PER_S_PER_GBPS


SAME_SPEED = 1e-9
"""Relative difference up to which a bandwidth is an option's (C9)."""


@dataclass(frozen=True)
class LinkOption:
    """One purchasable way to build a dimension.

    Parameters
    ----------
    speed_bytes_per_s : of one port, one direction.
    n_ports : ports per NPU.
    cost_usd : of the whole fabric, all NPUs.
    name : what the supplier calls it.
    line : where the plan lists it.

    Examples
    --------
    >>> option = LinkOption(50e9, 4, 1.2e6, "NIC-400")
    >>> option.bandwidth_bytes_per_s, str(option)
    (200000000000.0, '4 x 50 GB/s NIC-400')
    """

    speed_bytes_per_s: float
    n_ports: int
    cost_usd: float
    name: str = ""
    line: int | None = None

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bandwidth B_d per NPU: ports times speed."""
        return self.n_ports * self.speed_bytes_per_s

    def __str__(self) -> str:
        ports = f"{self.n_ports} x {gigabytes_per_s(self.speed_bytes_per_s):.6g} GB/s"
        return f"{ports} {self.name}".strip()


Options: TypeAlias = tuple[LinkOption, ...]


def distinct_options(options: Sequence[LinkOption]) -> Options:
    """One option per bandwidth, slowest first: the cheapest, then the one of fewest ports.

    >>> one, two = LinkOption(1e9, 2, 30.0), LinkOption(2e9, 1, 20.0)
    >>> distinct_options([one, two, LinkOption(1e9, 1, 15.0)])[1] == two
    True
    """
    kept: list[LinkOption] = []
    for option in sorted(options, key=lambda o: (o.bandwidth_bytes_per_s, o.cost_usd, o.n_ports)):
        speed = option.bandwidth_bytes_per_s
        if not kept or speed - kept[-1].bandwidth_bytes_per_s > SAME_SPEED * speed:
            kept.append(option)
        elif (option.cost_usd, option.n_ports) < (kept[-1].cost_usd, kept[-1].n_ports):
            kept[-1] = option
    return tuple(kept)


def find_options(
    options: Sequence[LinkOption], bandwidth_bytes_per_s: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Index into distinct ``options`` of each bandwidth, -1 where none has it; same shape.

    >>> speeds = [LinkOption(25e9, 1, 1.0), LinkOption(50e9, 1, 2.0)]
    >>> find_options(speeds, np.array([50e9, 30e9, 25e9]))
    array([ 1, -1,  0])
    """
    speeds = np.array([option.bandwidth_bytes_per_s for option in options])
    below = np.searchsorted(speeds * (1 - SAME_SPEED), bandwidth_bytes_per_s, side="right") - 1
    reached = bandwidth_bytes_per_s <= speeds[below] * (1 + SAME_SPEED)
    return np.where((below >= 0) & reached, below, -1)


def nearest_options(options: Sequence[LinkOption], bandwidth_bytes_per_s: float) -> Options:
    """The next slower and the next faster of distinct ``options``, where there are any.

    >>> speeds = [LinkOption(25e9, 1, 1.0), LinkOption(50e9, 1, 2.0)]
    >>> [str(option) for option in nearest_options(speeds, 60e9)]
    ['1 x 50 GB/s']
    """
    slower = [o for o in options if o.bandwidth_bytes_per_s <= bandwidth_bytes_per_s]
    return (*slower[-1:], *options[len(slower) : len(slower) + 1])


def quoted_book(book: PriceBook, quotes: Sequence[Quote]) -> PriceBook:
    """A price book with the quotes of its tiers' parts."""
    tiers, found = dict(book.tiers), {}
    for quote in quotes:
        if quote.tier_part is not None and quote.tier_part[0] in tiers:
            tier, part = quote.tier_part
            price: dict[str, Any] = {f"{part}_usd_per_GBps": quote.usd}
            tiers[tier] = replace(tiers[tier], **price)
            found[quote.tier_part] = quote
    return replace(book, tiers=tiers, quotes=found) if found else book
