"""What volume discounts make of a bill."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from libra_planner.procurement.assumptions import VolumeDiscount
from libra_planner.procurement.bill import ZERO, Bill
from libra_planner.procurement.parts import LINK, to_cents


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
