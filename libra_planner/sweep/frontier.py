"""Which of many designs no other one beats in three figures at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from libra_planner.timing.expression import Array

SAME = 1e-9
"""Relative difference of a figure up to which a design is not worth its place."""


def unbeaten(time: Array, cost: Array, fim: Array) -> NDArray[np.intp]:
    """Designs on the frontier of three figures that are to be small, fastest first.

    A design is beaten by one before it, in the order of time, cost, FIM and place, that is no
    worse in cost and FIM, up to :data:`SAME` of each. The designs so far that no other one beats in
    cost and FIM are a staircase, so that each costs a bisection: O(n log n) in all (H. T. Kung,
    F. Luccio, F. P. Preparata, On finding the maxima of a set of vectors, Journal of the ACM 22,
    1975).

    Parameters
    ----------
    time, cost, fim : of each design, 0 or more, shape (n,).

    Returns
    -------
    Indices of designs.

    Examples
    --------
    The third is slower than the second and no better; the fourth is dear and slow, but balanced.

    >>> unbeaten(np.array([1.0, 2, 3, 3]), np.array([9.0, 5, 5, 9]), np.array([50.0, 60, 60, 0]))
    array([0, 1, 3])
    """
    order = np.lexsort((fim, cost, time))
    costs: list[float] = []
    fims: list[float] = []  # Falls as costs rise.
    kept = []
    figures = zip(order.tolist(), cost[order].tolist(), fim[order].tolist(), strict=True)
    for i, usd, percent in figures:
        near = bisect_right(costs, usd / (1 - SAME))
        if not near or percent < fims[near - 1] * (1 - SAME):
            kept.append(i)
        _put(costs, fims, usd, percent)
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
