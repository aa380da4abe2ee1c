"""Constants of measured collectives: fitted to runs, within what is physical, and held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.step.collectives.measured import (
    LARGE_BYTES,
    PUBLISHED,
    RANGES,
    Constants,
    Ranks,
    error_class,
    line_times_s,
    measured_time_s,
)

CONSTANTS = tuple(one.name for one in fields(Constants))
"""Names of all constants."""

MOST_UNSURE = 0.2
"""Standard error, as a share of a constant, up to which runs tell it."""
FEWEST_RUNS = 6
FEWEST_OF_A_CLASS = 8
"""Runs of a class of errors from which on their error is a band (C23)."""
_NOISE = 0.02
_FEWEST_CURVES = 4
_N_HALVES = 3
_DIGITS = 4
_STARTS = (0.8, 0.9, 1.1, 1.25)
_LEAST = 1e-9
"""Stands for 0 where logarithms are taken."""


@dataclass(frozen=True)
class MeasuredRun:
    """One measured collective.

    Parameters
    ----------
    kind, size_bytes, ranks : as :func:`~libra_planner.step.collectives.measured.measured_time_s`.
    time_s : measured.
    curve, publisher : whose sizes, and whose measurements, belong together.
    """

    kind: str
    size_bytes: float
    ranks: Ranks
    time_s: float
    curve: str = ""
    publisher: str = ""

    def error(self, constants: Constants) -> float:
        """Predicted over measured time, less 1."""
        return measured_time_s(self.kind, self.size_bytes, self.ranks, constants) / self.time_s - 1


Array: TypeAlias = NDArray[np.float64]
Errors: TypeAlias = list[tuple[MeasuredRun, float]]


def fitted(
    runs: Sequence[MeasuredRun], start: Constants = PUBLISHED, names: Sequence[str] = CONSTANTS
) -> Constants:
    """The constants that miss the logarithms of the times least; a few wild runs move them little.

    Parameters
    ----------
    runs : measured.
    start : where the search begins; constants that no run depends on stay there.
    names : of the constants that are free; the others stay, too.
    """
    return _solution(runs, start, names)[0]


def _solution(
    runs: Sequence[MeasuredRun], start: Constants, names: Sequence[str]
) -> tuple[Constants, Array, Array]:
    """Constants, misses of the logarithms, and these over the logarithms of the free constants."""
    from scipy.optimize import least_squares

    bounds = np.log([[max(limit, _LEAST) for limit in RANGES[name]] for name in names]).T
    first = np.log([max(getattr(start, name), _LEAST) for name in names])

    def constants(logarithms: Array) -> Constants:
        return replace(start, **dict(zip(names, np.exp(logarithms).tolist(), strict=True)))

    def misses(logarithms: Array) -> Array:
        law = constants(logarithms)
        return np.log1p([run.error(law) for run in runs])

    inside = np.clip(first, bounds[0] + 1e-9, bounds[1] - 1e-9)
    found = least_squares(misses, inside, bounds=bounds, loss="soft_l1", f_scale=0.1)
    return constants(found.x), misses(found.x), found.jac


def _first_guess(runs: Sequence[MeasuredRun], names: Sequence[str]) -> Constants:
    """Where a fit begins: the best of some searches.

    Below some share of line rate rings are faster than switches that reduce, and no run depends on
    the share any more: a search that steps there stays there.
    """
    shares = [name for name in names if name.endswith("_reduction_fraction")]
    starts = [PUBLISHED]
    for name, factor in product(shares, _STARTS):
        starts.append(replace(PUBLISHED, **{name: factor * getattr(PUBLISHED, name)}))
    found = [_solution(runs, start, names) for start in starts]
    return min(found, key=lambda one: float(np.abs(one[1]).sum()))[0]


@dataclass(frozen=True)
class Fit:
    """Constants of a user's cluster.

    Parameters
    ----------
    constants : all of them; those that the runs do not tell are the published ones.
    unsure : standard error of those that they tell, as a share of the constant.
    silent : those that no run depends on.
    """

    constants: Constants
    unsure: Mapping[str, float] = field(repr=False)
    silent: tuple[str, ...] = ()

    @property
    def at_limit(self) -> tuple[str, ...]:
        """Those that ended at a limit of their range: the law does not fit the cluster there."""
        return tuple(name for name in self.unsure if _is_limit(name, self.constants))


def _is_limit(name: str, constants: Constants) -> bool:
    (low, high), value = RANGES[name], getattr(constants, name)
    return bool(min(value - low, high - value) <= 1e-3 * (high - low))


def refit(runs: Sequence[MeasuredRun]) -> Fit:
    """The law's constants as the runs tell them, the others as published.

    The constant with the largest standard error is given up, one after the other, until all that
    are left are known to 20 %.

    Raises
    ------
    SpecError
        For fewer than six runs, and where they tell no constant.
    """
    if len(runs) < FEWEST_RUNS:
        got, expected = f"got {len(runs)} runs", f"expected {FEWEST_RUNS} or more"
        raise SpecError(Fault(got, expected, "measure more sizes, from 1 KiB to 8 GiB"))
    names = [name for name in CONSTANTS if _counts(name, runs)]
    silent = tuple(name for name in CONSTANTS if name not in names)
    start = _first_guess(runs, names)
    while names:
        constants, misses, slopes = _solution(runs, start, names)
        freedom = max(len(runs) - len(names), 0.1) / len(runs)
        spread = max(_NOISE, 1.4826 * float(np.median(np.abs(misses)))) / np.sqrt(freedom)
        information = slopes.T @ slopes / spread**2
        errors = np.sqrt(np.diag(np.linalg.pinv(information + 1e-9 * np.eye(len(names)))))
        values = np.array([getattr(constants, name) for name in names])
        least = np.array([getattr(PUBLISHED, name) for name in names])
        unsure = errors * values / np.maximum(values, least)
        worst = int(np.argmax(unsure))
        if unsure[worst] <= MOST_UNSURE:
            rounded = {x: float(f"{getattr(constants, x):.{_DIGITS}g}") for x in names}
            known = dict(zip(names, unsure.tolist(), strict=True))
            return Fit(replace(PUBLISHED, **rounded), MappingProxyType(known), silent)
        start = replace(constants, **{names[worst]: getattr(PUBLISHED, names[worst])})
        names.pop(worst)
    raise SpecError(Fault("got runs that tell no constant", "expected several sizes and kinds"))


def _counts(name: str, runs: Sequence[MeasuredRun]) -> bool:
    """Whether any run depends on a constant."""
    low, high = RANGES[name]
    ends = [replace(PUBLISHED, **{name: max(end, _LEAST)}) for end in (low, high)]
    return any(run.error(ends[0]) != run.error(ends[1]) for run in runs)


def held_out_errors(runs: Sequence[MeasuredRun], group: Callable[[MeasuredRun], str]) -> Errors:
    """Errors of runs whose group was left out of the fit, group by group."""
    found = []
    for name in sorted({group(run) for run in runs}):
        kept = fitted([run for run in runs if group(run) != name])
        found += [(run, run.error(kept)) for run in runs if group(run) == name]
    return found


def halves_errors(
    runs: Sequence[MeasuredRun],
    group: Callable[[MeasuredRun], str],
    seed: int,
    fit: Callable[[Sequence[MeasuredRun]], Constants] = fitted,
) -> Errors:
    """Errors of either half of the groups under constants of the other half."""
    known = np.random.default_rng(seed).permutation(sorted({group(run) for run in runs}))
    half = set(known[: len(known) // 2].tolist())
    parts = [[run for run in runs if (group(run) in half) == side] for side in (True, False)]
    found = []
    for kept, others in (parts, parts[::-1]):
        constants = fit(kept)
        found += [(run, run.error(constants)) for run in others]
    return found


def mean_absolute(errors: Iterable[float]) -> float:
    """Mean of the sizes of errors.

    >>> mean_absolute([-0.5, 0.25])
    0.375
    """
    return float(np.mean(np.abs(list(errors))))


@dataclass(frozen=True)
class ErrorRow:
    """Mean absolute errors of some runs.

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
class Calibration:
    """The law of measured collectives, refitted to a user's cluster.

    Parameters
    ----------
    runs : measured.
    fit : its constants.
    held_out : errors of runs that were held out; empty where they are too few.
    by_curve : whether whole curves were held out, not sizes of each.
    """

    runs: tuple[MeasuredRun, ...] = field(repr=False)
    fit: Fit
    held_out: Errors = field(repr=False)
    by_curve: bool

    @property
    def total(self) -> ErrorRow:
        """Errors of all runs."""
        return next(self._by(_all))

    @property
    def classes(self) -> Mapping[str, ErrorRow]:
        """Errors by class (C23), where enough runs were held out."""
        rows = {row.runs: row for row in self._by(_class) if row.n >= FEWEST_OF_A_CLASS}
        return {name: row for name, row in rows.items() if row.held_out is not None}

    def rows(self) -> Iterator[ErrorRow]:
        """Errors of all, by kind, by size and by nodes."""
        for label in (_all, _kind, _size, _nodes):
            yield from self._by(label)

    def _by(self, label: Callable[[MeasuredRun], str]) -> Iterator[ErrorRow]:
        """A row for each label that runs have."""
        for text in dict.fromkeys(map(label, self.runs)):
            runs = [run for run in self.runs if label(run) == text]
            before, after = (
                mean_absolute(run.error(constants) for run in runs)
                for constants in (PUBLISHED, self.fit.constants)
            )
            others = [error for run, error in self.held_out if label(run) == text]
            held_out = mean_absolute(others) if others else None
            yield ErrorRow(text, len(runs), before, after, held_out)


def _all(_: MeasuredRun) -> str:
    return "all"


def _class(run: MeasuredRun) -> str:
    return error_class(run.size_bytes, run.ranks)


def _kind(run: MeasuredRun) -> str:
    return run.kind


def _size(run: MeasuredRun) -> str:
    return "64 MiB and more" if run.size_bytes >= LARGE_BYTES else "below 64 MiB"


def _nodes(run: MeasuredRun) -> str:
    n = run.ranks.n_nodes
    return f"{n:,} node{'s' if n > 1 else ''}"


def calibration(runs: Sequence[MeasuredRun]) -> Calibration:
    """Fit the law to a user's runs, and say what it misses.

    Half of the curves are held out where there are four or more of them, else half of the sizes.

    Raises
    ------
    SpecError
        For runs that are too few, tell nothing, or are mostly faster than their line rates allow.
    """
    n_fast, n_large = n_too_fast(runs), sum(run.size_bytes >= LARGE_BYTES for run in runs)
    if 2 * n_fast > n_large:
        got = f"got {n_fast} runs that are faster than their line rates allow"
        raise SpecError(Fault(got, "expected none", "correct --nics, or the NPU"))
    fit = refit(runs)
    by_curve = len({run.curve for run in runs}) >= _FEWEST_CURVES
    group = _curve if by_curve else _curve_and_size
    enough = len(runs) >= 2 * max(FEWEST_RUNS, len(fit.unsure) + 1)
    seeds = range(_N_HALVES) if enough else ()
    held_out = [x for seed in seeds for x in halves_errors(runs, group, seed, _refitted)]
    return Calibration(tuple(runs), fit, held_out, by_curve)


def n_too_fast(runs: Sequence[MeasuredRun]) -> int:
    """Large runs that take less than their bytes take over whole line rates."""
    shares = {name: RANGES[name][1] for name in CONSTANTS if name.endswith("_fraction")}
    fastest = replace(PUBLISHED, **shares | {"own_fraction": 0.0})
    return sum(
        max(line_times_s(run.kind, run.size_bytes, run.ranks, fastest)) > 1.05 * run.time_s
        for run in runs
        if run.size_bytes >= LARGE_BYTES
    )


def _refitted(runs: Sequence[MeasuredRun]) -> Constants:
    """What a user of these runs alone has."""
    try:
        return refit(runs).constants
    except SpecError:
        return PUBLISHED


def _curve(run: MeasuredRun) -> str:
    return run.curve


def _curve_and_size(run: MeasuredRun) -> str:
    return f"{run.curve} {run.size_bytes:g}"
