"""Other degrees of parallelism for a strategy that the fabric or the model does not allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from itertools import combinations

from libra_planner.workload.placement import DEFAULT_ORDER


class Standing(IntEnum):
    """What becomes of a strategy; more is better."""

    REFUSED = 0
    OVER_MEMORY = 1
    RUNS = 2


Judge = Callable[[Mapping[str, int]], Standing]
"""What becomes of degrees."""

_MOST_TRIED = 2000
"""Pairs of degrees that are tried; the nearest come first."""


def change_that_stands(degrees: Mapping[str, int], n_npus: int, judge: Judge) -> str:
    """How to correct degrees, such that all checks pass: one of them, else two; empty for neither.

    What fits the memory goes before what does not, and then the nearest.

    Parameters
    ----------
    degrees : of tp, cp, dp and pp.
    n_npus : their product, once corrected.
    judge : tells what becomes of such degrees.

    Examples
    --------
    >>> def even_stages(one):
    ...     return Standing.RUNS if one["pp"] % 2 == 0 else Standing.REFUSED
    >>> change_that_stands({"tp": 8, "dp": 4, "pp": 1}, 64, even_stages)
    'write pp 2'
    >>> change_that_stands({"tp": 8, "dp": 8, "pp": 1}, 64, even_stages)
    'write dp 4 and pp 2'
    """
    alone = [(judge({**degrees, **one}), one) for one in _of_one(degrees, n_npus)]
    best = max((standing for standing, _ in alone), default=Standing.REFUSED)
    if best == Standing.RUNS:
        return f"write {' or '.join(_words(one) for standing, one in alone if standing == best)}"
    pair = _first(degrees, _of_two(degrees, n_npus), judge)
    return f"write {_words(pair)}" if pair else ""


def _of_one(degrees: Mapping[str, int], n_npus: int) -> Iterator[dict[str, int]]:
    """Changes of one degree that make the NPUs."""
    product = math.prod(degrees.values())
    for axis, degree in degrees.items():
        rest = product // degree
        if n_npus % rest == 0 and n_npus // rest != degree:
            yield {axis: n_npus // rest}


def _of_two(degrees: Mapping[str, int], n_npus: int) -> list[dict[str, int]]:
    """Changes of one or two degrees that make the NPUs, the nearest first; new axes last."""
    found = list(_of_one(degrees, n_npus))
    for first, second in combinations(degrees, 2):
        rest = math.prod(degrees.values()) // (degrees[first] * degrees[second])
        if n_npus % rest:
            continue
        both = n_npus // rest
        lower = [n for n in range(1, math.isqrt(both) + 1) if both % n == 0]
        found += [
            {first: n, second: both // n} for n in sorted({*lower, *(both // n for n in lower)})
        ]

    def distance(change: Mapping[str, int]) -> tuple[int, float, bool]:
        n_new = sum(degrees[axis] == 1 for axis in change)
        far = sum(abs(math.log(n / degrees[axis])) for axis, n in change.items())
        return n_new, round(far, 9), "dp" not in change

    changes = [one for one in found if all(degrees[axis] != n for axis, n in one.items())]
    return sorted(changes, key=distance)[:_MOST_TRIED]


def _first(
    degrees: Mapping[str, int], changes: list[dict[str, int]], judge: Judge
) -> dict[str, int]:
    """The first change that runs, else the first over the memory, else none."""
    second: dict[str, int] = {}
    for change in changes:
        standing = judge({**degrees, **change})
        if standing == Standing.RUNS:
            return change
        if standing == Standing.OVER_MEMORY:
            second = second or change
    return second


def _words(change: Mapping[str, int]) -> str:
    return " and ".join(f"{axis} {change[axis]}" for axis in DEFAULT_ORDER if axis in change)
