"""The constants of whole steps, refitted to training runs that a user measured (C18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from types import MappingProxyType

import numpy as np

from libra_planner.errors import SpecError
from libra_planner.fits import (
    FEWEST,
    Array,
    Misses,
    Refit,
    Values,
    error_row,
    told_constants,
)
from libra_planner.inputs.training.rows import TrainingFile, TrainingRun, read_training_file
from libra_planner.plan.npus import catalogue, npu_named
from libra_planner.plan.systems import System
from libra_planner.reading.tables import csv_rows
from libra_planner.step.bands import FLOOR_FRACTION, LEAST_ROWS
from libra_planner.studies.step_fits import MeasuredStep, log_times, measured_step
from libra_planner.workload.clock import RANGES, STEP_CONSTANTS, StepConstants

TIMES = ("seconds_per_iteration", "tokens_per_s_per_gpu")
_MOST_REASONS = 3
_N_HALVES = 3
_MOST_OF_TEN = 0.9
_EVERY = "all"


def runs_npu(path: str, npu: str | None) -> tuple[str, TrainingFile]:
    """The NPU whose runs count, and the table.

    Parameters
    ----------
    path : a CSV file with the columns of ``train --csv`` and a measured time.
    npu : by its name in the catalogue; ``None`` for the only one in the file.

    Raises
    ------
    SpecError
        For a table without measured times, without runs of the NPU, or of several.
    """
    file = read_training_file(path)
    if not set(TIMES) & set(file.columns):
        got = f"got no column {' or '.join(TIMES)}"
        raise SpecError.at(path, got, "expected measured times")
    npus = list(dict.fromkeys(_npu(run) for run in file.runs if isinstance(run, TrainingRun)))
    if (npu is None and len(npus) != 1) or (npu is not None and npu not in npus):
        got, fix = f"got {', '.join(npus) or 'no run'}", "write e.g. --npu h100-sxm"
        raise SpecError.at(path, got, f"expected runs of {npu or 'one NPU'}", fix)
    return npu or npus[0], file


def _npu(run: TrainingRun) -> str:
    return npu_named(run.gpu_type, catalogue().npus) or run.gpu_type


def read_measured_steps(
    path: str, file: TrainingFile, npu: str, system: System | None
) -> tuple[list[MeasuredStep], tuple[str, ...]]:
    """The measured steps of an NPU, and what was left out.

    Parameters
    ----------
    path, file, npu : as :func:`runs_npu` found them.
    system : constants of collectives and kernels; ``None`` for the published ones.

    Raises
    ------
    SpecError
        Where nothing is kept, with why the first rows are not.
    """
    lines = [at for at, _ in csv_rows(path, ends=True)][1:]
    kept, missed, n_other = list[MeasuredStep](), list[str](), 0
    for at, run in zip(lines, file.runs, strict=True):
        if isinstance(run, TrainingRun) and _npu(run) != npu:
            n_other += 1
            continue
        try:
            kept.append(measured_step(run, system=system))
        except SpecError as error:
            missed.append(f"line {at}: {error}")
    if not kept:
        got = f"got no row{f' of {npu}' if npu else ''} whose step and time are known"
        raise SpecError.at(path, got, "expected six or more", "; ".join(missed[:_MOST_REASONS]))
    return kept, tuple(_left_out(path, n_other, missed))


def _left_out(path: str, n_other: int, missed: Sequence[str]) -> Iterator[str]:
    if n_other:
        yield f"left out: {n_other:,} rows of other NPUs in {path}"
    if missed:
        what = "rows whose step or time is not known"
        yield f"left out: {len(missed):,} {what} in {path}, such as {missed[0]}"


def step_refit(steps: Sequence[MeasuredStep]) -> Refit:
    """The constants of steps as measurements tell them, with their errors.

    Fits, and errors of halves that are held out, take times between three values of each constant
    as linear in their logarithms; errors before and after are exact.

    Raises
    ------
    SpecError
        For fewer than six runs, and such that tell no constant.
    """
    usual = asdict(STEP_CONSTANTS)
    told = told_constants(_misses(steps), usual, RANGES)
    before, after = (
        np.array([one.error(StepConstants(**values)) for one in steps])
        for values in (usual, told.values)
    )
    enough = len(steps) >= 2 * max(FEWEST, len(told.unsure) + 1)
    halves = [_halves(steps, usual, seed) for seed in range(_N_HALVES)] if enough else []
    kinds = [one.kind for one in steps]
    labels = dict.fromkeys([_EVERY, *kinds])
    where = {text: np.array([text in (_EVERY, kind) for kind in kinds]) for text in labels}
    rows = tuple(error_row(text, is_in, before, after, halves) for text, is_in in where.items())
    counts = Counter(kinds)
    bands = {
        text: _band_fraction(np.concatenate([one[is_in] for one in halves]))
        for text, is_in in where.items()
        if halves and counts[text] >= LEAST_ROWS
    }
    return Refit(told, usual, RANGES, rows, MappingProxyType(bands))


def _misses(steps: Sequence[MeasuredStep]) -> Misses:
    curves, measured = np.array([one.curve for one in steps]), np.log([x.time_s for x in steps])

    def misses(values: Values) -> Array:
        return log_times(steps, curves, StepConstants(**values)) - measured

    return misses


def _halves(steps: Sequence[MeasuredStep], usual: Values, seed: int) -> Array:
    """Errors of either half of the runs under constants of the other half."""
    side = np.random.default_rng(seed).permutation(len(steps)) < len(steps) // 2
    errors = np.empty(len(steps))
    for inside in (side, ~side):
        kept = [one for one, is_inside in zip(steps, inside, strict=True) if not is_inside]
        others = [one for one, is_inside in zip(steps, inside, strict=True) if is_inside]
        try:
            values = told_constants(_misses(kept), usual, RANGES).values
        except SpecError:  # What a user of this half alone has.
            values = usual
        errors[inside] = np.expm1(_misses(others)(values))
    return errors


def _band_fraction(errors: Array) -> float:
    """What nine of ten errors stay below; never less than releases of a library differ by."""
    return max(FLOOR_FRACTION, float(np.quantile(np.abs(errors), _MOST_OF_TEN)))
