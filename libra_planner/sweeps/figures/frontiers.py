"""Designs that no other one beats, in figures that are to be small."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from libra_planner.step.expression import Array, Mask

SAME = 1e-9
"""Relative difference of a figure up to which a design is not worth its place."""


def ties(values: Array) -> NDArray[np.intp]:
    """Ranks of figures, shape (n,), in which those that rounding alone tells apart are equal.

    Optima of different designs often have the same time, computed in another order. In ascending
    order a rank ends where the next figure is more than :data:`SAME` above the one before it.

    Parameters
    ----------
    values : 0 or more, shape (n,).

    Examples
    --------
    >>> ties(np.array([2.0, 1.0 + 1e-15, 1.0, 3.0]))
    array([1, 0, 0, 2])
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    steps = ordered[1:] > ordered[:-1] * (1 + SAME)
    ranks = np.zeros(len(values), dtype=np.intp)
    ranks[order[1:]] = np.cumsum(steps)
    return ranks


BREAKS_RULE, NOT_BOUGHT = 1, 2
"""Flaws of a design, which add up: its bill breaks a rule on cost; nobody can buy it."""


def preference(flaw: NDArray[np.intp], usd: Array, row: NDArray[np.int64]) -> NDArray[np.intp]:
    """Which of designs that are equal in all that ranks them is named: their order, shape (n,).

    Those come first that can be bought and break no rule on cost, then those that break one, last
    those that nobody can buy; then the least bill up to :func:`ties`, then the lowest row.

    Parameters
    ----------
    flaw : 0, or what is wrong with a design: :data:`BREAKS_RULE` plus :data:`NOT_BOUGHT`, shape
        (n,).
    usd : bills, large where nobody knows them, shape (n,).
    row : numbers of rows, shape (n,).

    Examples
    --------
    >>> bills = np.array([5.0, 5 - 1e-14, 4.0])
    >>> preference(np.zeros(3, dtype=np.intp), bills, np.array([0, 1, 2]))
    array([1, 2, 0])
    """
    places = np.empty(len(usd), dtype=np.intp)
    places[np.lexsort((row, ties(usd), flaw))] = np.arange(len(usd))
    return places


def unbeaten_in_two(
    time: Array, cost: Array, then: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Designs on the frontier of two figures that are to be small, fastest first.

    A design is beaten by one before it, in the order of time and cost up to :func:`ties`, and
    ``then``, that is no dearer, up to :data:`SAME`. So none that is kept is beaten by more than
    rounding.

    Parameters
    ----------
    time, cost : of each design, 0 or more, shape (n,).
    then : a figure that is to be small among designs of equal time and cost, shape (n,); without
        it the first of them is kept.

    Returns
    -------
    Indices of designs.

    Examples
    --------
    The first is as fast as the second, but for rounding, and dearer.

    >>> unbeaten_in_two(np.array([1.0, 1 + 1e-15, 2, 3]), np.array([9.0, 5, 4, 4]))
    array([1, 2])

    Of two that rounding tells apart in both, ``then`` decides.

    >>> same = np.array([1.0, 1 + 1e-15])
    >>> unbeaten_in_two(same, 5 * same, np.array([8, 7]))
    array([1])
    """
    last = np.arange(len(cost)) if then is None else then
    order = np.lexsort((last, ties(cost), ties(time)))
    least = np.minimum.accumulate(np.concatenate([[np.inf], cost[order]]))[:-1]
    return order[cost[order] < least * (1 - SAME)]


def thinned(time: Array, cost: Array, fraction: float) -> NDArray[np.intp]:
    """Designs of a frontier that stand for all of it: its ends, the least product, and others.

    A design between them is left out where it differs from the one that is kept before it by no
    more than a fraction, in time and in cost.

    Parameters
    ----------
    time, cost : of a frontier of two figures, fastest first, shape (n,).
    fraction : of a figure.

    Returns
    -------
    Indices of designs, fastest first.

    Examples
    --------
    >>> thinned(np.array([1.0, 1.0001, 1.0002, 1.1]), np.array([9.0, 8.9999, 8.9, 5.0]), 1e-3)
    array([0, 2, 3])
    """
    kept = {0, len(time) - 1, int(np.argmin(time * cost))} if len(time) else set()
    last = 0
    for i, (seconds, usd) in enumerate(zip(time.tolist(), cost.tolist(), strict=True)):
        is_near = seconds <= time[last] * (1 + fraction) and usd >= cost[last] * (1 - fraction)
        if i in kept or not is_near:
            kept.add(i)
            last = i
    return np.array(sorted(kept), dtype=np.intp)


def beaten_by(front_time: Array, front_cost: Array, time: Array, cost: Array) -> Mask:
    """Which designs one of a frontier beats in time and cost, or is equal to, shape (n,).

    Parameters
    ----------
    front_time, front_cost : of a frontier, fastest first, shape (m,).
    time, cost : of each design, shape (n,).

    Examples
    --------
    >>> time, cost = np.array([2.0, 2, 4]), np.array([9.0, 8, 6])
    >>> beaten_by(np.array([1.0, 3]), np.array([9.0, 5]), time, cost)
    array([ True, False,  True])
    """
    place = np.searchsorted(front_time, time * (1 + SAME), side="right")
    least = np.concatenate([[np.inf], front_cost])[place]
    return np.asarray(cost >= least * (1 - SAME))


def unbeaten(
    time: Array, cost: Array, fim: Array, then: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Designs on the frontier of three figures that are to be small, fastest first.

    A design is beaten by one before it, in the order of time, cost and FIM up to :func:`ties`, and
    ``then``, that is no worse in cost and FIM, up to :data:`SAME` of each. So none that is kept is
    beaten by more than rounding. A design without FIM has nothing out of balance: it beats
    as one of FIM 0 does, and is beaten by what is no worse in time and cost alone. The designs so
    far that no other one beats in cost and FIM are a staircase, so that each costs a bisection:
    O(n log n) in all (H. T. Kung, F. Luccio, F. P. Preparata, On finding the maxima of a set of
    vectors, JACM 22, 1975).

    Parameters
    ----------
    time, cost, fim : of each design, 0 or more, shape (n,); ``fim`` nan where a design has none.
    then : as :func:`unbeaten_in_two` has it.

    Returns
    -------
    Indices of designs.

    Examples
    --------
    The third is slower than the second and no better; the fourth is dear and slow, but balanced.

    >>> unbeaten(np.array([1.0, 2, 3, 3]), np.array([9.0, 5, 5, 9]), np.array([50.0, 60, 60, 0]))
    array([0, 1, 3])
    """
    balance = np.nan_to_num(fim)
    last = np.arange(len(cost)) if then is None else then
    order = np.lexsort((last, ties(balance), ties(cost), ties(time)))
    costs: list[float] = []
    fims: list[float] = []  # Falls as costs rise.
    kept = []
    figures = zip(order.tolist(), cost[order].tolist(), fim[order].tolist(), strict=True)
    for i, usd, percent in figures:
        near = bisect_right(costs, usd / (1 - SAME))
        if not near or percent < fims[near - 1] * (1 - SAME):  # Never without FIM.
            kept.append(i)
        _put(costs, fims, usd, balance[i])
    return np.array(kept, dtype=np.intp)


def _put(costs: list[float], fims: list[float], cost: float, fim: float) -> None:
    """Add a step to a staircase, and take away those that it is below."""
    below = bisect_right(costs, cost)
    if below and fims[below - 1] <= fim:
        return
    first = last = bisect_left(costs, cost)
    while last < len(fims) and fims[last] >= fim:
        last += 1
    costs[first:last] = [cost]
    fims[first:last] = [fim]
