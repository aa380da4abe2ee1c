"""The law of kernels, refitted to kernels that a user measured (C18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import numpy as np

from libra_planner.errors import Fault, Place, SpecError, refuse
from libra_planner.fits import (
    FEWEST,
    Array,
    Refit,
    Values,
    error_row,
    told_constants,
)
from libra_planner.inputs.kernel_rows import KernelFile, read_kernel_file
from libra_planner.inputs.runs import cell_number
from libra_planner.plan.npus import catalogue
from libra_planner.reading.tables import csv_rows
from libra_planner.studies.kernel_fits import KernelLaw, MeasuredKernel, measured_kernels
from libra_planner.workload.kernels import RANGES, KernelConstants

TIME = "time_s"
LARGE_FLOPS = 1e11
_N_HALVES = 3


def read_measured_kernels(
    path: str, npu: str | None
) -> tuple[str, list[MeasuredKernel], tuple[str, ...]]:
    """The NPU, its measured kernels, and what was left out.

    Parameters
    ----------
    path : a CSV file with ``gpu_type``, ``op``, ``dtype``, the shape and ``time_s``.
    npu : by its name in the catalogue; ``None`` for the only one in the file.

    Raises
    ------
    SpecError
        For times that are none, several NPUs, and files without a kernel that is modelled.
    """
    file = read_kernel_file(path)
    if TIME not in file.columns:
        raise SpecError.at(path, f"got no column {TIME}", "expected the measured times in s")
    refuse(_time_faults(path, file))
    rows = measured_kernels(file)
    kept = [row for row in rows if row.is_fitted and npu in (None, row.npu)]
    npus = list(dict.fromkeys(row.npu for row in kept))
    if len(npus) != 1:
        got, fix = f"got {', '.join(npus) or 'no kernel that counts'}", "write e.g. --npu h100-sxm"
        raise SpecError.at(path, got, f"expected kernels of {npu or 'one NPU'}", fix)
    said = {
        "rows of other NPUs": sum(npu not in (None, row.npu) for row in rows),
        "rows that are not modelled": len(file.rows) - len(rows),
        "rows that do not tell what training gets": sum(not row.is_fitted for row in rows),
    }
    return (
        npus[0],
        kept,
        tuple(f"left out: {n:,} {what} in {path}" for what, n in said.items() if n),
    )


def _time_faults(path: str, file: KernelFile) -> Iterator[Fault]:
    lines = [at for at, _ in csv_rows(path, ends=True)][1:]
    for at, row in zip(lines, file.rows, strict=True):
        try:
            cell_number(dict(zip(file.columns, row, strict=True)), TIME)
        except SpecError as error:
            yield from error.located(Place(path, at)).faults


def kernel_refit(rows: Sequence[MeasuredKernel]) -> Refit:
    """The constants of kernels as measurements tell them, with their errors.

    Raises
    ------
    SpecError
        For fewer than six kernels, and such that tell no constant.
    """
    law = KernelLaw.of(catalogue())
    usual = asdict(law.families.get(rows[0].family, law.typical))
    told = told_constants(_misses(rows, law), usual, RANGES)
    before, after = (np.expm1(_misses(rows, law)(values)) for values in (usual, told.values))
    enough = len(rows) >= 2 * max(FEWEST, len(told.unsure) + 1)
    halves = [_halves(rows, law, usual, seed) for seed in range(_N_HALVES)] if enough else []
    labels = [[label(row) for row in rows] for label in (_all, _kind, _size)]
    found = tuple(
        error_row(text, np.array([one == text for one in texts]), before, after, halves)
        for texts in labels
        for text in dict.fromkeys(texts)
    )
    return Refit(told, usual, RANGES, found)


def _misses(rows: Sequence[MeasuredKernel], law: KernelLaw) -> Callable[[Values], Array]:
    family = rows[0].family

    def misses(values: Values) -> Array:
        own = KernelLaw({family: KernelConstants(**values)}, law.benchmarks)
        return np.log1p(own.errors(rows))

    return misses


def _halves(rows: Sequence[MeasuredKernel], law: KernelLaw, usual: Values, seed: int) -> Array:
    """Errors of either half of the kernels under constants of the other half."""
    side = np.random.default_rng(seed).permutation(len(rows)) < len(rows) // 2
    errors = np.empty(len(rows))
    for inside in (side, ~side):
        kept = [row for row, is_inside in zip(rows, inside, strict=True) if not is_inside]
        others = [row for row, is_inside in zip(rows, inside, strict=True) if is_inside]
        try:
            values = told_constants(_misses(kept, law), usual, RANGES).values
        except SpecError:  # What a user of this half alone has.
            values = usual
        errors[inside] = np.expm1(_misses(others, law)(values))
    return errors


def _all(_: MeasuredKernel) -> str:
    return "all"


def _kind(row: MeasuredKernel) -> str:
    return row.call.kind


def _size(row: MeasuredKernel) -> str:
    return "1e11 FLOP and more" if row.call.flops >= LARGE_FLOPS else "below 1e11 FLOP"
