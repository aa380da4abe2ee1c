"""Lines under the time/cost frontier, and the corners of the region above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_PARALLEL = 1e-8
"""Angle below which two lines are one: where they would cross is noise. Dropping one is safe."""


@dataclass(frozen=True)
class Line:
    """``time t + cost c >= bound`` for every design, in the program's units."""

    time: float
    cost: float
    bound: float

    @property
    def slope(self) -> float:
        """Fall of t per c; infinite for a bound on cost alone."""
        return self.cost / self.time if self.time else np.inf


@dataclass(frozen=True)
class Corner:
    """Where two neighbouring lines meet."""

    cost: float
    time: float
    left: Line
    right: Line


def corners(lines: Sequence[Line]) -> list[Corner]:
    """Corners of the region above all lines, from the cheapest to the fastest.

    >>> found = corners([Line(1.0, 0.0, 1.0), Line(0.0, 1.0, 2.0), Line(1.0, 1.0, 5.0)])
    >>> [(corner.cost, corner.time) for corner in found]
    [(2.0, 3.0), (4.0, 1.0)]
    """
    hull: list[Line] = []
    for line in sorted(lines, key=lambda line: (-line.slope, -line.bound)):
        if hull and _parallel(hull[-1], line):
            continue
        while len(hull) > 1 and _hides(hull[-2], hull[-1], line):
            hull.pop()
        hull.append(line)
    return [Corner(*_crossing(left, right), left, right) for left, right in pairwise(hull)]


def curve_span(
    corner: Corner, curve: float, left_end: float, right_end: float
) -> tuple[float, float]:
    """Costs between which ``time * cost == curve`` lies above both lines of a corner.

    Each line is looked at up to where the neighboring corner ends it.
    """
    left = [cost for cost in _on_curve(corner.left, curve) if left_end <= cost <= corner.cost]
    right = [cost for cost in _on_curve(corner.right, curve) if corner.cost <= cost <= right_end]
    return max(left, default=left_end), min(right, default=right_end)


def _on_curve(line: Line, curve: float) -> list[float]:
    """Costs at which a line meets ``time * cost == curve``."""
    if not line.cost:
        return [line.time * curve / line.bound] if line.bound > 0 else []
    middle = line.bound / (2 * line.cost)
    square = middle**2 - line.time * curve / line.cost
    return [middle - np.sqrt(square), middle + np.sqrt(square)] if square >= 0 else []


def _crossing(left: Line, right: Line) -> tuple[float, float]:
    """(cost, time) where two lines meet."""
    determinant = left.cost * right.time - right.cost * left.time
    cost = (left.bound * right.time - right.bound * left.time) / determinant
    time = (left.cost * right.bound - right.cost * left.bound) / determinant
    return cost, time


def _parallel(first: Line, second: Line) -> bool:
    across = first.cost * second.time - second.cost * first.time
    return abs(across) <= _PARALLEL * (first.cost + first.time) * (second.cost + second.time)


def _hides(left: Line, middle: Line, right: Line) -> bool:
    """Whether ``middle`` lies below the crossing of its neighbours."""
    cost, time = _crossing(left, right)
    return middle.time * time + middle.cost * cost >= middle.bound
