"""Which combinations of the axes' values are designs, in what order, and how many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.step.expression import Mask
from libra_planner.sweeps.axes import Axis, SampleSpec
from libra_planner.sweeps.expressions import Expression

Digits: TypeAlias = NDArray[np.int32]
"""Index of each axis's value, shape (n_axes, n_designs)."""

MOST_COMBINATIONS = 10**9
"""Most combinations that are enumerated."""

BLOCK = 1 << 17
"""Combinations that are filtered at a time: memory does not grow with the space."""

_ROUNDS = 200
"""Draws of a random sample after which too few designs pass the filters."""


@dataclass(frozen=True)
class Space:
    """The designs of a sweep; :meth:`digits` gives any range of them.

    Parameters
    ----------
    axes : those that change slowest first.
    filters : what a design has to meet.
    sampled : a drawn sample, shape (n_axes, n); ``None`` for every combination.
    """

    axes: tuple[Axis, ...]
    filters: tuple[Expression, ...] = ()
    sampled: Digits | None = None
    _last: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Designs: combinations that pass the filters, or a sample's."""
        if self.sampled is not None:
            return int(self.sampled.shape[1])
        return int(self._starts[-1]) * self._n_rest

    @property
    def n_combinations(self) -> int:
        """Combinations of the axes' values."""
        return math.prod(self._sizes)

    def digits(self, start: int, stop: int) -> Digits:
        """Designs ``start`` up to ``stop`` (excluded), shape (n_axes, stop - start).

        Examples
        --------
        >>> from libra_planner.sweeps.expressions import parse_expression
        >>> axes = (Axis("tp", (1, 2, 4)), Axis("dp", (1, 2, 4)))
        >>> where = parse_expression("tp * dp == 4", {"tp": "number", "dp": "number"})
        >>> space = Space(axes, (where,))
        >>> space.n, space.digits(0, 2).tolist()
        (3, [[0, 1], [2, 1]])
        """
        if self.sampled is not None:
            return self.sampled[:, start:stop]
        ranks = np.arange(start, stop, dtype=np.int64)
        firsts, rest = np.divmod(ranks, self._n_rest)
        blocks = np.searchsorted(self._starts, firsts, side="right") - 1
        found = np.empty_like(ranks)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            found[here] = self._passing(block)[firsts[here] - self._starts[block]]
        return _digits(found * self._n_rest + rest, self._sizes)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    @cached_property
    def _n_filtered(self) -> int:
        """Axes up to the last one that a filter speaks of."""
        used = {name for expression in self.filters for name in expression.names}
        return max((i + 1 for i, axis in enumerate(self.axes) if axis.name in used), default=0)

    @cached_property
    def _n_rest(self) -> int:
        """Combinations of the axes that no filter speaks of, at the fast end."""
        return math.prod(self._sizes[self._n_filtered :])

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Passing combinations of the filtered axes before each block, and in all of them."""
        n = math.prod(self._sizes[: self._n_filtered])
        counts = [len(self._passing(block)) for block in range(-(-n // BLOCK))]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _passing(self, block: int) -> NDArray[np.int64]:
        """Passing combinations of a block; the last block asked for is kept."""
        if block not in self._last:
            sizes = self._sizes[: self._n_filtered]
            last = min((block + 1) * BLOCK, math.prod(sizes))
            index = np.arange(block * BLOCK, last, dtype=np.int64)
            self._last.clear()
            self._last[block] = index[passing_mask(self.axes, self.filters, _digits(index, sizes))]
        return self._last[block]


def _digits(index: NDArray[np.int64], sizes: tuple[int, ...]) -> Digits:
    found = np.unravel_index(index, sizes) if sizes else np.zeros((0, len(index)))
    return np.array(found, dtype=np.int32)


def passing_mask(axes: Sequence[Axis], filters: Iterable[Expression], digits: Digits) -> Mask:
    """Which designs meet all filters, shape (n,); a division by zero meets none."""
    found = {axis.name: (axis, row) for axis, row in zip(axes, digits, strict=False)}
    mask = np.ones(digits.shape[1], dtype=bool)
    with np.errstate(all="ignore"):
        for expression in filters:
            used = [found[name] for name in expression.names]
            values = {axis.name: axis.array[row] for axis, row in used}
            mask &= expression.value(values)
            mask &= np.logical_not(expression.divides_by_zero(values))
    return mask


def build_space(
    axes: Iterable[Axis], filters: Iterable[Expression], sample: SampleSpec | None, seed: int
) -> Space:
    """All combinations that pass, or a sample of them.

    Raises
    ------
    SpecError
        For a space too big to enumerate, or without designs.
    """
    space = Space(tuple(axes), tuple(filters))
    n = space.n_combinations
    if sample is None:
        if n > MOST_COMBINATIONS:
            fix = "add e.g. 'sample: {method: lhs, n: 100000}', or take values out"
            expected = f"expected at most {MOST_COMBINATIONS:,} without a sample"
            raise SpecError(Fault(f"got {n:,} combinations", expected, fix))
    else:
        space = Space(space.axes, space.filters, sample_digits(space, sample, seed))
    if not space.n:
        got = f"got no design: none of {n:,} combinations meets all of where"
        raise SpecError(Fault(got, "expected one at least", "change where or the axes", "where"))
    return space


def sample_digits(space: Space, sample: SampleSpec, seed: int) -> Digits:
    """A sample in the order of the enumeration, without repetitions.

    A Latin hypercube is drawn once, then filtered: it may end up with fewer designs.
    A random sample is topped up until it has as many as asked for.
    """
    if sample.n > space.n_combinations:
        got = f"got n {sample.n:,} of {space.n_combinations:,} combinations"
        raise SpecError(Fault(got, "expected no more than there are", "leave sample out", "sample"))
    rng, n_axes, n_drawn = np.random.default_rng(seed), len(space.axes), max(sample.n, 1000)
    if sample.method == "lhs":
        from scipy.stats import qmc

        unit = qmc.LatinHypercube(d=n_axes, rng=rng).random(sample.n).T
        return _distinct(_passing_digits(space, unit))
    found = np.empty((n_axes, 0), dtype=np.int32)
    for _ in range(_ROUNDS):
        both = np.concatenate(
            [found, _passing_digits(space, rng.random((n_axes, n_drawn)))], axis=1
        )
        order, first = _sorted(both)  # Those of before are the first of their kind.
        found = both[:, np.sort(order[first])][:, : sample.n]
        if found.shape[1] == sample.n:
            return _distinct(found)
    got = f"got {found.shape[1]:,} designs that pass after {_ROUNDS} draws of {n_drawn:,}"
    fix = "enumerate (leave sample out), or ask for fewer"
    raise SpecError(Fault(got, f"expected {sample.n:,}", fix, "sample"))


def _passing_digits(space: Space, unit: NDArray[np.float64]) -> Digits:
    """Designs of points of the unit cube, shape (n_axes, n), that pass."""
    sizes = np.array([[len(axis.values)] for axis in space.axes])
    digits = np.minimum(unit * sizes, sizes - 1).astype(np.int32)
    kept: Digits = digits[:, passing_mask(space.axes, space.filters, digits)]
    return kept


def _distinct(digits: Digits) -> Digits:
    order, first = _sorted(digits)
    kept: Digits = digits[:, order[first]]
    return kept


def _sorted(digits: Digits) -> tuple[NDArray[np.intp], Mask]:
    """Order of designs (equal ones as given), and which are the first of their kind."""
    order = np.lexsort(digits[::-1])
    ordered = digits[:, order]
    first = np.ones(digits.shape[1], dtype=bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return order, first
