"""Volume discounts on a bill: a view of a report, and of no bill."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from libra_planner.procurement.bill import LINK, SUPPORT, ZERO, Bill, VolumeDiscount, to_cents


def discounted_usd(bill: Bill, discounts: Sequence[VolumeDiscount]) -> Decimal:
    """Total of a bill where each part gets the largest discount that its units reach.

    Links at the price book's prices per GB/s get none, nor do quotes: these are for the order.

    Parameters
    ----------
    bill : units of one part count together over all its lines.
    discounts : tiers, any order.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line, Part, Price
    >>> nic = Part("n", "nic", "a NIC", Price(Decimal("10.00")))
    >>> bill = Bill((Line("network", "dim1", nic, 100),))
    >>> discounts = [VolumeDiscount(100, 0.07), VolumeDiscount(10, 0.03)]
    >>> discounted_usd(bill, discounts)
    Decimal('930.00')
    >>> quoted = Part("n", "nic", "a NIC", Price(Decimal("10.00"), "quoted"))
    >>> discounted_usd(Bill((Line("network", "dim1", quoted, 100),)), discounts)
    Decimal('1000.00')
    """
    pairs = zip(bill.lines, discounts_of_lines(bill, discounts), strict=True)
    return sum((_discounted(line.extended_usd or ZERO, share) for line, share in pairs), ZERO)


def _discounted(usd: Decimal, share: Decimal) -> Decimal:
    return to_cents(usd * (1 - share)) if share else usd


def discounts_of_lines(bill: Bill, discounts: Sequence[VolumeDiscount]) -> list[Decimal]:
    """The discount that each line gets, as a fraction: a matter of units, not of prices."""
    counts, found = bill.n_bought_by_part(), []
    for line in bill.lines:
        is_fixed = line.part.kind in (LINK, SUPPORT) or (
            line.part.price is not None and line.part.price.is_quoted
        )
        n_units = 0 if is_fixed else counts[line.part.name]
        reached = [one.discount_fraction for one in discounts if n_units >= one.n_units]
        found.append(Decimal(repr(float(max(reached, default=0.0)))))
    return found
