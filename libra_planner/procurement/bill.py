"""A bill of materials: lines of whole parts, totals to the cent, and what has no price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from libra_planner.procurement.parts import LINK, Part, VolumeDiscount, to_cents

COMPUTE, NETWORK, FRONTEND, STORAGE, FACILITY = (
    "compute",
    "network",
    "frontend",
    "storage",
    "facility",
)
GROUPS = (COMPUTE, NETWORK, FRONTEND, STORAGE, FACILITY)
"""What lines are summed by; the network is that of the design."""
NETWORKS = (NETWORK, FRONTEND, STORAGE)

ZERO = Decimal("0.00")


@dataclass(frozen=True)
class Line:
    """One line of a bill.

    Parameters
    ----------
    group : one of :data:`GROUPS`.
    tier : where it is used, such as ``dim4 pod, leaf``.
    part : what is bought.
    n_units : in use.
    note : what a reader should know of it.

    Examples
    --------
    >>> from libra_planner.procurement.parts import Price
    >>> nic = Part("n", "nic", "a NIC", Price(Decimal("10.25")), spare_fraction=0.02)
    >>> line = Line("network", "dim1", nic, 101)
    >>> line.n_spares, line.extended_usd
    (3, Decimal('1066.00'))
    """

    group: str
    tier: str
    part: Part
    n_units: int
    note: str = ""

    @property
    def n_spares(self) -> int:
        """Spares, rounded up."""
        # The fraction as it is written: 0.07 of 100 units is 7, not 8 by binary rounding.
        exact = Fraction(repr(float(self.part.spare_fraction))) * self.n_units
        return -(-exact.numerator // exact.denominator)

    @property
    def n_bought(self) -> int:
        """Units in use and spares."""
        return self.n_units + self.n_spares

    @property
    def extended_usd(self) -> Decimal | None:
        """What all units cost; ``None`` without a price."""
        return None if self.part.price is None else self.n_bought * self.part.price.usd

    @property
    def power_w(self) -> float:
        """Of the units in use."""
        return self.n_units * self.part.power_w


@dataclass(frozen=True)
class Bill:
    """All that a design needs.

    Parameters
    ----------
    lines : in the order they are printed.
    """

    lines: tuple[Line, ...]

    def of(self, *groups: str) -> Bill:
        """The lines of some groups."""
        return Bill(tuple(line for line in self.lines if line.group in groups))

    @property
    def total_usd(self) -> Decimal:
        """Sum of the lines that have a price; see ``missing``."""
        return sum((line.extended_usd or ZERO for line in self.lines), ZERO)

    @property
    def missing(self) -> tuple[Part, ...]:
        """Parts in use without a price, each once."""
        found = {line.part.name: line.part for line in self.lines if line.n_bought}
        return tuple(part for part in found.values() if part.price is None)

    @property
    def assumed_usd(self) -> Decimal:
        """The part of the total whose prices are assumed."""
        priced = ((line, line.part.price) for line in self.lines)
        assumed = (x.extended_usd for x, price in priced if price and price.confidence == "assumed")
        return sum((usd or ZERO for usd in assumed), ZERO)

    @property
    def power_w(self) -> float:
        """Of all units in use."""
        return sum(line.power_w for line in self.lines)

    def n_units(self, *kinds: str) -> int:
        """Units in use of some kinds."""
        return sum(line.n_units for line in self.lines if line.part.kind in kinds)

    def usd_by_price(self) -> dict[str, Decimal]:
        """What all lines of each price cost, dearest first; free ones are left out."""
        totals: dict[str, Decimal] = {}
        for line in self.lines:
            if line.extended_usd:
                name = line.part.price_name
                totals[name] = totals.get(name, ZERO) + line.extended_usd
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))

    def usd_by_kind(self) -> dict[str, Decimal]:
        """What all lines of each kind of part cost."""
        totals: dict[str, Decimal] = {}
        for line in self.lines:
            totals[line.part.kind] = totals.get(line.part.kind, ZERO) + (line.extended_usd or ZERO)
        return totals

    def n_bought_by_part(self) -> dict[str, int]:
        """Units of each part over all lines, spares included."""
        counts: dict[str, int] = {}
        for line in self.lines:
            counts[line.part.name] = counts.get(line.part.name, 0) + line.n_bought
        return counts


def missing_of(bills: Iterable[Bill]) -> tuple[Part, ...]:
    """Parts without a price over several bills, each once."""
    found = {part.name: part for bill in bills for part in bill.missing}
    return tuple(found.values())


def discounted_usd(bill: Bill, discounts: Sequence[VolumeDiscount]) -> Decimal:
    """Total of a bill where each part gets the largest discount that its units reach.

    Links at the price book's prices per GB/s get none.

    Parameters
    ----------
    bill : units of one part count together over all its lines.
    discounts : tiers, any order.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line
    >>> from libra_planner.procurement.parts import Part, Price
    >>> nic = Part("n", "nic", "a NIC", Price(Decimal("10.00")))
    >>> bill = Bill((Line("network", "dim1", nic, 100),))
    >>> discounted_usd(bill, [VolumeDiscount(100, 0.07), VolumeDiscount(10, 0.03)])
    Decimal('930.00')
    """
    shares = discounts_of_lines(bill, discounts)
    return sum(
        (
            to_cents((line.extended_usd or ZERO) * (1 - share))
            for line, share in zip(bill.lines, shares, strict=True)
        ),
        ZERO,
    )


def discounts_of_lines(bill: Bill, discounts: Sequence[VolumeDiscount]) -> list[Decimal]:
    """The discount that each line gets, as a fraction: a matter of units, not of prices."""
    counts, found = bill.n_bought_by_part(), []
    for line in bill.lines:
        n_units = counts[line.part.name] if line.part.kind != LINK else 0
        reached = [one.discount_fraction for one in discounts if n_units >= one.n_units]
        found.append(Decimal(repr(float(max(reached, default=0.0)))))
    return found
