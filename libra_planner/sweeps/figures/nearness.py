"""Which designs a picture of a frontier has room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_NEAR = 1.25
"""Times the end of the frontier: so far designs are drawn."""
_FARTHEST = 2.0
"""Times the end: so far the nearest design of a value of an axis is drawn, if none is near."""
_MOST_VALUES = 12
"""Values of an axis up to which each has a design in the picture."""


def far_designs(figures: Any, front: Sequence[int], axes: Sequence[Sequence[Any]]) -> list[int]:
    """Designs that would squeeze the frontier into a corner of a picture.

    Drawn are those within a quarter beyond the largest time and the largest cost of the frontier,
    and of each value of an axis that has none there the nearest one, up to twice the end.
    A frontier of one design has no extent: beside it all are drawn up to twice its figures.

    Parameters
    ----------
    figures : times and costs, shape (n, 2).
    front : the designs of the frontier.
    axes : values of each axis, one for every design.

    Examples
    --------
    >>> times_and_costs = [(1, 9), (2, 5), (2.4, 6), (3, 6), (3.5, 6), (3.6, 6), (5, 5)]
    >>> far_designs(times_and_costs, [0, 1], [[8, 8, 8, 16, 16, 8, 64]])
    [4, 5, 6]
    """
    numbers = np.array(figures, dtype=np.float64).reshape(-1, 2)
    ends = numbers[list(front)].max(axis=0)
    beyond = np.divide(numbers, ends, out=np.zeros_like(numbers), where=ends > 0).max(axis=1)
    is_far = beyond > (_NEAR if len(front) > 1 else _FARTHEST)
    for values in axes:
        places: dict[Any, list[int]] = {}
        for i, value in enumerate(values):
            places.setdefault(value, []).append(i)
        for own in places.values() if len(places) <= _MOST_VALUES else ():
            nearest = min(own, key=lambda i: (beyond[i], i))
            is_far[nearest] &= beyond[nearest] > _FARTHEST
    return [int(i) for i in np.flatnonzero(is_far)]
