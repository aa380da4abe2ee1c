"""Other degrees of parallelism for a strategy that the fabric or the model does not allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import IntEnum
from itertools import combinations

from libra_planner.plain_text import joined
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


def change_that_stands(
    degrees: Mapping[str, int], n_npus: int, judge: Judge, *, untold: str = ""
) -> str:
    """How to correct degrees, such that all checks pass: one of them, else two; empty for neither.

    What fits the memory goes before what does not, then that of one degree, then the nearest: dp
    first, and tp last, which is as wide as a node. Where one degree makes the NPUs and not the
    memory, two are sought from there, and that one is told beside them.

    Parameters
    ----------
    degrees : of tp, cp, dp and pp.
    n_npus : their product, once corrected.
    judge : tells what becomes of such degrees.
    untold : a degree that follows from the others, and is not written.

    Examples
    --------
    >>> def even_stages(one):
    ...     return Standing.RUNS if one["pp"] % 2 == 0 else Standing.REFUSED
    >>> change_that_stands({"tp": 8, "dp": 4, "pp": 1}, 64, even_stages)
    'write pp 2'
    >>> change_that_stands({"tp": 8, "dp": 8, "pp": 1}, 64, even_stages)
    'write dp 4 and pp 2'
    >>> def long_sequences(one):
    ...     return Standing.RUNS if one["cp"] > 1 else Standing.OVER_MEMORY
    >>> change_that_stands({"tp": 8, "cp": 1, "dp": 7, "pp": 1}, 64, long_sequences)
    'write cp 2 and dp 4; dp 8 alone does not fit the memory'
    >>> change_that_stands({"tp": 7, "dp": 9}, 64, lambda one: Standing.RUNS, untold="dp")
    'write tp 8'
    """

    def words(change: Mapping[str, int]) -> str:
        told = [axis for axis in DEFAULT_ORDER if axis in change and axis != untold]
        return joined([f"{axis} {change[axis]}" for axis in told], "and")

    alone = [(judge({**degrees, **one}), one) for one in _of_one(degrees, n_npus)]
    if running := [one for standing, one in alone if standing == Standing.RUNS]:
        return f"write {joined([*map(words, running)], 'or')}"
    over = next((one for standing, one in alone if standing == Standing.OVER_MEMORY), {})
    corrected = {**degrees, **over}
    standing, pair = _best(corrected, _of_two(corrected, n_npus), judge)
    if over and standing != Standing.RUNS:
        return f"write {words(over)}"
    beside = f"; {words(over)} alone does not fit the memory" if over else ""
    return f"write {words({**over, **pair})}{beside}" if pair else ""


def _of_one(degrees: Mapping[str, int], n_npus: int) -> list[dict[str, int]]:
    """Changes of one degree that make the NPUs, the preferred first."""
    product = math.prod(degrees.values())
    rests = {axis: product // degree for axis, degree in degrees.items()}
    found = [{axis: n_npus // rest} for axis, rest in rests.items() if n_npus % rest == 0]
    return _preferred_first(degrees, found)


def _of_two(degrees: Mapping[str, int], n_npus: int) -> list[dict[str, int]]:
    """Changes of two degrees that make the NPUs, the preferred first."""
    found = []
    for first, second in combinations(degrees, 2):
        rest = math.prod(degrees.values()) // (degrees[first] * degrees[second])
        if n_npus % rest:
            continue
        both = n_npus // rest
        lower = [n for n in range(1, math.isqrt(both) + 1) if both % n == 0]
        found += [
            {first: n, second: both // n} for n in sorted({*lower, *(both // n for n in lower)})
        ]
    return _preferred_first(degrees, found)[:_MOST_TRIED]


def _preferred_first(
    degrees: Mapping[str, int], changes: list[dict[str, int]]
) -> list[dict[str, int]]:
    """Changes of every degree they name: those that leave tp, then those with dp, then the nearest.

    An axis of degree 1 counts as twice as far: it is new to the strategy.
    """

    def distance(change: Mapping[str, int]) -> tuple[bool, bool, float]:
        ways = {axis: abs(math.log(n / degrees[axis])) for axis, n in change.items()}
        far = sum(way * (2 if degrees[axis] == 1 else 1) for axis, way in ways.items())
        return "tp" in change, "dp" not in change, round(far, 9)

    real = [one for one in changes if all(degrees[axis] != n for axis, n in one.items())]
    return sorted(real, key=distance)


def _best(
    degrees: Mapping[str, int], changes: list[dict[str, int]], judge: Judge
) -> tuple[Standing, dict[str, int]]:
    """The first change that runs, else the first over the memory, else none."""
    second: tuple[Standing, dict[str, int]] = (Standing.REFUSED, {})
    for change in changes:
        standing = judge({**degrees, **change})
        if standing == Standing.RUNS:
            return standing, change
        if standing > second[0]:
            second = standing, change
    return second
