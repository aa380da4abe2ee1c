"""Constants of a law, fitted to measured times within physical ranges: those that these tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError

Array: TypeAlias = NDArray[np.float64]
Values: TypeAlias = Mapping[str, float]
Misses: TypeAlias = Callable[[Values], Array]
"""Logarithms of predicted over measured times, under constants by name."""

MOST_UNSURE = 0.2
"""Standard error, as a share of a constant, up to which measurements tell it."""
FEWEST = 6
_NOISE = 0.02
_DIGITS = 4
_LEAST = 1e-9
_LEAST_SHARE = 1e-3
"""Stand for 0 where logarithms are taken; the second is of the published constant."""


@dataclass(frozen=True)
class Told:
    """Constants as measurements tell them.

    Parameters
    ----------
    values : of all constants; those that are not told are the published ones.
    unsure : standard error of those that are told, as a share of the constant.
    silent : those that no measurement depends on.
    at_limit : told ones that ended at a limit of their range: the law misses something.
    """

    values: Values = field(repr=False)
    unsure: Values = field(repr=False)
    silent: tuple[str, ...]
    at_limit: tuple[str, ...]


@dataclass(frozen=True)
class ErrorRow:
    """Mean absolute errors of some measurements.

    Parameters
    ----------
    runs : which.
    n : how many.
    before, after : under the published constants and the fitted ones.
    held_out : of halves under constants of the other half; ``None`` where runs are too few.
    """

    runs: str
    n: int
    before: float
    after: float
    held_out: float | None


@dataclass(frozen=True)
class Refit:
    """A law's constants, refitted to a user's measurements.

    Parameters
    ----------
    told : which constants, and what they are.
    published, ranges : of all constants.
    rows : errors, those of all measurements first.
    bands : what nine of ten errors that were held out stay below, by kind; empty where nobody asks.
    """

    told: Told
    published: Values = field(repr=False)
    ranges: Mapping[str, tuple[float, float]] = field(repr=False)
    rows: tuple[ErrorRow, ...]
    bands: Mapping[str, float] = field(default_factory=dict)


def least_misses(
    misses: Misses, start: Values, names: Sequence[str], ranges: Mapping[str, tuple[float, float]]
) -> tuple[Values, Array, Array]:
    """Constants that miss least; a few wild measurements move them little.

    Parameters
    ----------
    misses : of the measurements.
    start : of all constants, where the search begins.
    names : of those that are free.
    ranges : least and most of each.

    Returns
    -------
    All constants, the misses, and the slopes of the misses over the logarithms of the free ones,
    shape (measurements, names).
    """
    from scipy.optimize import least_squares

    bounds = np.log([[max(limit, _LEAST) for limit in ranges[name]] for name in names]).T
    first = np.log([max(start[name], _LEAST) for name in names])

    def values(logarithms: Array) -> Values:
        return {**start, **dict(zip(names, np.exp(logarithms).tolist(), strict=True))}

    found = least_squares(
        lambda logarithms: misses(values(logarithms)),
        np.clip(first, bounds[0] + 1e-9, bounds[1] - 1e-9),
        bounds=bounds,
        loss="soft_l1",
        f_scale=0.1,
    )
    return values(found.x), misses(values(found.x)), found.jac


def told_constants(
    misses: Misses,
    published: Values,
    ranges: Mapping[str, tuple[float, float]],
    starts: Sequence[Values] = (),
) -> Told:
    """The constants that measurements tell, the others as published.

    The constant with the largest standard error is given up, one after the other, until all that
    are left are known to 20 %.

    Parameters
    ----------
    misses : of the measurements.
    published, ranges : of all constants.
    starts : where else than at the published constants to search.

    Raises
    ------
    SpecError
        For fewer than six measurements, and where they tell no constant.
    """
    n = len(misses(published))
    if n < FEWEST:
        got, expected = f"got {n} measurements", f"expected {FEWEST} or more"
        raise SpecError(Fault(got, expected, "measure more sizes, from small to large"))
    names = [name for name in published if _counts(name, misses, published, ranges[name])]
    silent = tuple(name for name in published if name not in names)
    others = [one for one in starts if any(one[name] != published[name] for name in names)]
    above = {x: (max(low, _LEAST_SHARE * published[x]), high) for x, (low, high) in ranges.items()}
    tried = [least_misses(misses, one, names, above) for one in (published, *others) if names]
    start = min(tried, key=lambda one: float(np.abs(one[1]).sum()))[0] if tried else published
    while names:
        values, found, slopes = least_misses(misses, start, names, above)
        unsure = _standard_errors(found, slopes)
        for i, name in enumerate(names):
            unsure[i] *= values[name] / max(values[name], published[name])
        worst = int(np.argmax(unsure))
        if unsure[worst] <= MOST_UNSURE:
            told = {name: float(f"{values[name]:.{_DIGITS}g}") for name in names}
            limits = tuple(name for name in names if _is_limit(told[name], ranges[name]))
            known = dict(zip(names, unsure.tolist(), strict=True))
            return Told(MappingProxyType({**published, **told}), known, silent, limits)
        start = {**values, names[worst]: published[names[worst]]}
        names.pop(worst)
    raise SpecError(
        Fault("got measurements that tell no constant", "expected more sizes and kinds")
    )


def _standard_errors(misses: Array, slopes: Array) -> Array:
    """Of the logarithms of the constants, by what the middle one of the misses is."""
    n, n_names = slopes.shape
    freedom = max(n - n_names, 0.1) / n
    spread = max(_NOISE, 1.4826 * float(np.median(np.abs(misses)))) / np.sqrt(freedom)
    information = slopes.T @ slopes / spread**2 + 1e-9 * np.eye(n_names)
    return np.asarray(np.sqrt(np.diag(np.linalg.pinv(information))))


def _counts(name: str, misses: Misses, published: Values, ends: tuple[float, float]) -> bool:
    """Whether any measurement depends on a constant."""
    low, high = (misses({**published, name: max(end, _LEAST)}) for end in ends)
    return not np.array_equal(low, high)


def _is_limit(value: float, ends: tuple[float, float]) -> bool:
    low, high = ends
    return bool(min(value - low, high - value) <= 1e-3 * (high - low))


def mean_absolute(errors: Sequence[float] | Array) -> float:
    """Mean of the sizes of errors.

    >>> mean_absolute([-0.5, 0.25])
    0.375
    """
    return float(np.mean(np.abs(errors)))


def error_row(
    text: str, where: NDArray[np.bool_], before: Array, after: Array, halves: Sequence[Array]
) -> ErrorRow:
    """Mean errors of some measurements.

    Parameters
    ----------
    text, where : which, shape (measurements,).
    before, after : errors under published and fitted constants, shape (measurements,) each.
    halves : errors of those held out, once for each split; none where measurements are too few.
    """
    held_out = mean_absolute([mean_absolute(one[where]) for one in halves]) if halves else None
    usual, fitted = (mean_absolute(one[where]) for one in (before, after))
    return ErrorRow(text, int(where.sum()), usual, fitted, held_out)
