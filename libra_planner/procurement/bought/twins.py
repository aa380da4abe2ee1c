"""Compared designs that nothing tells apart: equal ones, and those within errors of steps."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.evaluation import reversed_pairs
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison, known_models, times_s

EQUAL = 5e-4
"""Relative difference of prices and times below which two designs are equal: 0.0 % in a table."""


def equals(comparison: Comparison, best: int) -> list[int]:
    """Other designs of the price and the step time of one, to 0.05 % of each.

    Empty where designs do not do the same work.

    Parameters
    ----------
    best : its index.
    """
    known_s = comparison.times_s
    if known_s is None:
        return []
    prices = [float(one.bill.total_usd) for one in comparison.candidates]
    return [
        i
        for i in range(len(prices))
        if i != best and all(_near(x[i], x[best]) for x in (prices, known_s))
    ]


def _near(one: float, other: float) -> bool:
    return abs(one - other) < EQUAL * other


def unequal(comparison: Comparison) -> list[int]:
    """The designs that keep the rules of their plan, but for those equal to the one to buy."""
    same = equals(comparison, comparison.chosen)
    return [i for i in comparison.eligible if i not in same]


def tied(comparison: Comparison, best: int, *, with_prices: bool) -> list[int]:
    """Designs that measured errors of step times do not tell from the best one (C23).

    Parameters
    ----------
    best : its index.
    with_prices : whether price times time ranks, of designs that keep the rules of their plan;
        else the time.
    """
    designs, weights = comparison.candidates, weights_of(comparison, with_prices=with_prices)
    kept = comparison.eligible if with_prices else range(len(designs))
    return [
        i
        for i, one in enumerate(designs)
        if weights
        and i != best
        and i in kept
        and designs[best].is_tied_with(one, weights=(weights[best], weights[i]))
    ]


def untwinned_ties(comparison: Comparison, best: int, *, with_prices: bool) -> list[int]:
    """Designs tied with the best one, but for those that are equal to it."""
    same = equals(comparison, best)
    return [i for i in tied(comparison, best, with_prices=with_prices) if i not in same]


def weights_of(comparison: Comparison, *, with_prices: bool) -> list[float]:
    """What step times are multiplied with to be compared; empty without times of the same work."""
    designs, known_s = comparison.candidates, comparison.times_s
    if known_s is None or not all(one.step_time_s for one in designs):
        return []
    # Times are of the same work: a token's, or steps that are alike.
    per_step = [time_s / one.step_time_s for time_s, one in zip(known_s, designs, strict=True)]
    return [
        share * (float(one.bill.total_usd) if with_prices else 1.0)
        for share, one in zip(per_step, designs, strict=True)
    ]


def is_order_within_error(comparison: Comparison) -> bool:
    """Whether all designs that models put in unlike orders are within errors of each other (C23).

    False where models agree, or no times of the same work are known.
    """
    designs, found = comparison.candidates, []
    for with_prices in (False, True):
        by_model = [times_s(designs, model)[0] for model in known_models(designs)]
        usd = [float(one.bill.total_usd) if with_prices else 1.0 for one in designs]
        values = [[x * y for x, y in zip(usd, times or [], strict=False)] for times in by_model]
        found += [
            j in tied(comparison, i, with_prices=with_prices) for i, j in reversed_pairs(values)
        ]
    return bool(found) and all(found)


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
