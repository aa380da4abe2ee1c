"""Constants of measured collectives: fitted to runs, within what is physical, and held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from typing import TypeAlias

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fits import (
    FEWEST,
    Array,
    ErrorRow,
    Misses,
    Refit,
    Told,
    Values,
    least_misses,
    mean_absolute,
    told_constants,
)
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

FEWEST_OF_A_CLASS = 8
"""Runs of a class of errors from which on their error is a band (C23)."""
_FEWEST_CURVES = 4
_N_HALVES = 3
_STARTS = (0.8, 0.9, 1.1, 1.25)


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


Errors: TypeAlias = list[tuple[MeasuredRun, float]]


def fitted(runs: Sequence[MeasuredRun], start: Constants = PUBLISHED) -> Constants:
    """The constants that miss the logarithms of the times least; a few wild runs move them little.

    Parameters
    ----------
    runs : measured.
    start : where the search begins; constants that no run depends on stay there.
    """
    return Constants(**least_misses(_misses(runs), asdict(start), CONSTANTS, RANGES)[0])


def _misses(runs: Sequence[MeasuredRun]) -> Misses:
    def misses(values: Values) -> Array:
        law = Constants(**values)
        return np.log1p([run.error(law) for run in runs])

    return misses


def refit(runs: Sequence[MeasuredRun]) -> Told:
    """The law's constants as the runs tell them, the others as published.

    Below some share of line rate rings are faster than switches that reduce, and no run depends on
    the share any more. A search that steps there stays there, so there are several.

    Raises
    ------
    SpecError
        For fewer than six runs, and where they tell no constant.
    """
    usual = asdict(PUBLISHED)
    shares = [name for name in CONSTANTS if name.endswith("_reduction_fraction")]
    starts = [{**usual, name: x * usual[name]} for name, x in product(shares, _STARTS)]
    return told_constants(_misses(runs), usual, RANGES, starts)


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
    fit: Told
    held_out: Errors = field(repr=False)
    by_curve: bool

    @property
    def constants(self) -> Constants:
        """Fitted, or as published where the runs do not tell."""
        return Constants(**self.fit.values)

    @property
    def refit(self) -> Refit:
        """Constants and errors, as any law has them."""
        return Refit(self.fit, asdict(PUBLISHED), RANGES, tuple(self.rows()))

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
                mean_absolute([run.error(constants) for run in runs])
                for constants in (PUBLISHED, self.constants)
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
    enough = len(runs) >= 2 * max(FEWEST, len(fit.unsure) + 1)
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
        return Constants(**refit(runs).values)
    except SpecError:
        return PUBLISHED


def _curve(run: MeasuredRun) -> str:
    return run.curve


def _curve_and_size(run: MeasuredRun) -> str:
    return f"{run.curve} {run.size_bytes:g}"
