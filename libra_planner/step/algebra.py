"""What times are put together from: sums, the longest, multiples; of numbers or of expressions.

Formulas that are written against :class:`Algebra` hold for arrays of candidates, as a search has
them, and for nodes of the time expression, which the optimizer proves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from libra_planner.step import expression as tree

Factor: TypeAlias = float | NDArray[Any]
Time = TypeVar("Time")


class Algebra(Protocol[Time]):
    """Times of one kind."""

    def total(self, terms: Iterable[Time]) -> Time:
        """Terms one after the other; of none, zero."""

    def longest(self, terms: Iterable[Time]) -> Time:
        """Terms at the same time; of none, zero."""

    def times(self, factor: Factor, term: Time) -> Time:
        """``factor`` (0 or more) times a term."""


class Numbers:
    """Times as numbers or arrays of one shape, in seconds.

    Examples
    --------
    >>> Numbers().longest([np.array([1.0, 5.0]), 3.0]).tolist()
    [3.0, 5.0]
    """

    def total(self, terms: Iterable[Any]) -> Any:
        """Sum."""
        return sum(terms, start=0.0)

    def longest(self, terms: Iterable[Any]) -> Any:
        """Maximum."""
        longest: Any = 0.0
        for term in terms:
            longest = np.maximum(longest, term)
        return longest

    def times(self, factor: Factor, term: Any) -> Any:
        """Product."""
        return factor * term


class Nodes:
    """Times as nodes of the time expression; factors are single numbers.

    Examples
    --------
    >>> Nodes().times(2, tree.Constant(3.0))
    Constant(seconds=6.0)
    """

    def total(self, terms: Iterable[tree.Node]) -> tree.Node:
        """Sum."""
        return tree.add(terms)

    def longest(self, terms: Iterable[tree.Node]) -> tree.Node:
        """Maximum."""
        return tree.maximum(terms)

    def times(self, factor: Factor, term: tree.Node) -> tree.Node:
        """Multiple."""
        return tree.scale(float(factor), term)


def overlapped(
    algebra: Algebra[Time], compute: Time, communication: Time, fraction: Factor
) -> Time:
    """Compute w beside communication c, a fraction f of which may hide: max(w + (1 - f) c, c).

    What hides takes at most as long as the compute it hides behind (C17).

    Examples
    --------
    >>> [float(overlapped(Numbers(), 10.0, c, 0.5)) for c in (4.0, 40.0)]
    [12.0, 40.0]
    """
    exposed = algebra.times(1.0 - fraction, communication)
    return algebra.longest([algebra.total([compute, exposed]), communication])
