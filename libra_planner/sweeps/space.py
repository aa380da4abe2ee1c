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
        first, rest = np.divmod(ranks, self._n_rest)
        return self._decoded(self._passing(first) * self._n_rest + rest)

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
        counts = [int(self._mask(i).sum()) for i in range(-(-n // BLOCK))]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _mask(self, block: int) -> Mask:
        """Which of a block's combinations of the filtered axes pass."""
        n = math.prod(self._sizes[: self._n_filtered])
        index = np.arange(block * BLOCK, min((block + 1) * BLOCK, n), dtype=np.int64)
        sizes = self._sizes[: self._n_filtered]
        digits = np.array(np.unravel_index(index, sizes)) if sizes else np.zeros((0, len(index)))
        return passing_mask(self.axes, self.filters, digits.astype(np.int32))

    def _passing(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Combinations of the filtered axes by their rank among those that pass."""
        blocks = np.searchsorted(self._starts, ranks, side="right") - 1
        found = np.empty_like(ranks)
        for block in np.unique(blocks):
            here = blocks == block
            found[here] = self._passing_of(int(block))[ranks[here] - self._starts[block]]
        return found

    def _passing_of(self, block: int) -> NDArray[np.int64]:
        """Passing combinations of a block; the last block asked for is kept."""
        if block not in self._last:
            self._last.clear()
            self._last[block] = np.flatnonzero(self._mask(block)) + block * BLOCK
        return self._last[block]

    def _decoded(self, index: NDArray[np.int64]) -> Digits:
        if not self._sizes:
            return np.zeros((0, len(index)), dtype=np.int32)
        return np.array(np.unravel_index(index, self._sizes), dtype=np.int32)


def passing_mask(axes: Sequence[Axis], filters: Iterable[Expression], digits: Digits) -> Mask:
    """Which designs meet all filters, shape (n,); a division by zero meets none."""
    rows = dict(zip((axis.name for axis in axes), range(len(digits)), strict=False))
    tables = {axis.name: axis for axis in axes}
    mask = np.ones(digits.shape[1], dtype=bool)
    with np.errstate(all="ignore"):
        for expression in filters:
            values = {name: tables[name].array[digits[rows[name]]] for name in expression.names}
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
    rng = np.random.default_rng(seed)
    if sample.method == "lhs":
        return _latin_hypercube(space, sample.n, rng)
    return _random(space, sample.n, rng)


def _latin_hypercube(space: Space, n: int, rng: np.random.Generator) -> Digits:
    from scipy.stats import qmc

    unit = qmc.LatinHypercube(d=len(space.axes), rng=rng).random(n).T
    return _distinct(_passing_digits(space, unit))


def _passing_digits(space: Space, unit: NDArray[np.float64]) -> Digits:
    """Designs of points of the unit cube, shape (n_axes, n), that pass."""
    sizes = np.array([[len(axis.values)] for axis in space.axes])
    digits = np.minimum(unit * sizes, sizes - 1).astype(np.int32)
    kept: Digits = digits[:, passing_mask(space.axes, space.filters, digits)]
    return kept


def _random(space: Space, n: int, rng: np.random.Generator) -> Digits:
    found = np.empty((len(space.axes), 0), dtype=np.int32)
    for _ in range(_ROUNDS):
        new = _passing_digits(space, rng.random((len(space.axes), max(n, 1000))))
        fresh = _new(found, new)
        found = np.concatenate([found, fresh[:, : n - found.shape[1]]], axis=1)
        if found.shape[1] == n:
            return _distinct(found)
    got = f"got {found.shape[1]:,} designs that pass after {_ROUNDS} draws of {max(n, 1000):,}"
    fix = "enumerate (leave sample out), or ask for fewer"
    raise SpecError(Fault(got, f"expected {n:,}", fix, "sample"))


def _new(found: Digits, more: Digits) -> Digits:
    """Those of ``more`` that are not in ``found`` and the first of their kind, in order."""
    both = np.concatenate([found, more], axis=1)
    order, first = _sorted(both)
    keep = np.zeros(both.shape[1], dtype=bool)
    keep[order[first]] = True
    return both[:, keep][:, found.shape[1] :]


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
