"""What the ranges of prices do to a ranking of designs (C22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from libra_planner.optimizer.bills import BillDesign
from libra_planner.procurement.bill import ZERO, Bill


@dataclass(frozen=True)
class Rival:
    """A design that can come before the best of a ranking, at prices within their ranges.

    Parameters
    ----------
    ranking : such as ``cheapest``.
    best, other : indices of the best at the prices as they are, and of the design.
    lead_fraction : how much better than the best it then is, at most.
    """

    ranking: str
    best: int
    other: int
    lead_fraction: float


def rivals(
    bills: Sequence[Bill], best: int, ranking: str, times_s: Sequence[float] | None = None
) -> tuple[Rival, ...]:
    """The designs that can come before the best of a ranking.

    A price is the same for all designs, wherever in its range it is: what two designs both buy
    moves them together. With n_p units of part p bought, times w (the time where price times time
    ranks, else 1), design o has a lead over b at some prices where

        min over prices of sum_p (w_o n_op - w_b n_bp) price_p < 0,

    which is reached with every price at one of its ends.

    Parameters
    ----------
    bills : of the designs.
    best : index of the best.
    ranking : its name.
    times_s : of the same work, for a ranking of price times time.

    Examples
    --------
    >>> from libra_planner.procurement.bill import Line, Part, Price
    >>> nic = Part("n", "nic", "", Price(Decimal(10), low_usd=Decimal(5), high_usd=Decimal(20)))
    >>> switch = Part("s", "switch", "", Price(Decimal(100)))
    >>> many, few = (Line("network", "", nic, n) for n in (20, 10))
    >>> bills = [Bill((many,)), Bill((few, Line("network", "", switch, 1)))]
    >>> rivals(bills, 1, "cheapest")
    (Rival(ranking='cheapest', best=1, other=0, lead_fraction=0.3333333333333333),)
    """
    weights = [1.0] * len(bills) if times_s is None else list(times_s)
    found = []
    for other, its in enumerate(bills):
        lead, of = _most_lead(its, bills[best], Decimal(weights[other]), Decimal(weights[best]))
        if other != best and lead > 0 and of > 0:
            found.append(Rival(ranking, best, other, float(lead / of)))
    return tuple(found)


def _most_lead(its: Bill, best: Bill, w: Decimal, w_best: Decimal) -> tuple[Decimal, Decimal]:
    """By how much one bill times its weight is below the best's at most, and of what."""
    parts = {line.part.name: line.part for bill in (its, best) for line in bill.lines}
    ours, theirs = its.n_bought_by_part(), best.n_bought_by_part()
    lead = of = ZERO
    for name, part in parts.items():
        if part.price is not None:
            more = w_best * theirs.get(name, 0) - w * ours.get(name, 0)
            low_usd, high_usd = part.price.ends_usd
            at_usd = high_usd if more > 0 else low_usd
            lead += more * at_usd
            of += w_best * theirs.get(name, 0) * at_usd
    return lead, of


@dataclass(frozen=True)
class BillStudy:
    """The best option with its whole bill, and what ranges of prices do to the others.

    Parameters
    ----------
    design : the optimum.
    bill : of it.
    step_times_s : of the options that meet the rules, best first, shape (n,).
    n_compared : options whose ranges were compared with the best's, best first, itself included.
    rivals : of these, those that can come before it; ``other`` counts in that order.
    """

    design: BillDesign
    bill: Bill = field(repr=False)
    step_times_s: Sequence[float] = field(repr=False)
    n_compared: int
    rivals: tuple[Rival, ...]

    def lead(self, place: int) -> float | None:
        """By what fraction an option can come before the best; ``None`` where it cannot."""
        found = (one.lead_fraction for one in self.rivals if one.other == place)
        return next(found, None)
