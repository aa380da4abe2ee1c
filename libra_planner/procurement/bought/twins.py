"""Compared designs that are equal, so that no price and no time decides between them."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison

_EQUAL = 5e-4
"""Relative difference of prices and times below which two designs are equal: 0.0 % in a table."""


def equals(comparison: Comparison, best: int) -> list[int]:
    """Other designs of the price and the step time of one, to 0.05 % of each.

    Empty where designs do not do the same work.

    Parameters
    ----------
    best : its index.
    """
    times_s = comparison.times_s
    if times_s is None:
        return []
    prices = [float(one.bill.total_usd) for one in comparison.candidates]
    return [
        i
        for i in range(len(prices))
        if i != best and all(_near(x[i], x[best]) for x in (prices, times_s))
    ]


def _near(one: float, other: float) -> bool:
    return abs(one - other) < _EQUAL * other


def unequal(comparison: Comparison) -> list[int]:
    """The designs that keep the rules of their plan, but for those equal to the one to buy."""
    same = equals(comparison, comparison.chosen)
    return [i for i in comparison.eligible if i not in same]


def equal_texts(comparison: Comparison) -> Iterator[str]:
    """Which designs are equal to one before them, or to the one to buy, each once."""
    designs, chosen = comparison.candidates, comparison.chosen
    for i, one in enumerate(designs):
        found = [j for j in equals(comparison, i) if j == chosen or j < i]
        if i == chosen or not found:
            continue
        other = designs[chosen if chosen in found else found[0]]
        if _orders(one) == _orders(other):
            yield f"{one.letter} is the same as {other.letter}: same bill, same step time."
        else:
            yield f"{one.letter} has the price and the step time of {other.letter}, to 0.05%."


def _orders(one: Candidate) -> list[tuple[str, str, str, int]]:
    """What a design buys, and where."""
    return [(x.group, x.tier, x.part.name, x.n_bought) for x in one.bill.lines]
