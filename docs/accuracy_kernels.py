"""The part of docs/accuracy.md about kernels, which ``python docs/accuracy.py`` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from libra_planner.plan.npus import catalogue
from libra_planner.studies.kernel_fits import OWN, KernelLaw, MeasuredKernel
from libra_planner.workload.kernel_calls import BENCHMARK_RANGES, BenchmarkConstants
from libra_planner.workload.kernels import RANGES
from tests.oracles.test_measured_kernels import FLOPS, KINDS, ROWS

Errors = NDArray[np.float64]
HalvesErrors = Callable[..., Errors]
HeldOutErrors = Callable[..., Errors]

N_HALVES = 3

HEAD = """
## Kernels

`kernels` ([C18](conventions.md#c18-flops-and-mfu), [how](kernels.md)) has one law for all NPUs: launch + max(compute, memory). Constants that are the same for all NPUs, and those of
benchmarks of serving frameworks:

| constant | value | physical range |
|---|---|---|
"""
FAMILIES = """
Constants of a family; NPUs that nobody measured (GB200, B300, GB300, MI300X, MI355X, TPU, multiplies of V100) have the geometric means, and results say so:

| constant | {names} | typical | physical range |
|---|{rule}---|---|
"""
SOURCE = """
{n} of 604 published kernels are scored (`tests/oracles/measured_kernels.csv`, each with its source). Left out are eager RMS norms, which are many
kernels, and rotary embedding. {n_fitted} are fitted, to the logarithms of their times; the others are the best of many shapes, backward attention in a fixed order,
kernels of a data type that nobody says, and norms and activations that plain torch launches one by one (its host takes 16 to 53 µs).
Halves are of shapes and of source files, {halves} ways each. Mean absolute error, and the median with the interval of the middle 80 % of signed errors:

| rows | n | constants from | mean | median | 10 % to 90 % |
|---|---|---|---|---|---|
"""
CLOCK = """
What a table's `software` tells counts: frameworks that serve models time runs too short for power to limit the clock. Without that knowledge, at the
sustained clock, the mean error of multiplies is {one:.1%}; it is {b200:.0%} on B200 and {others:.1%} elsewhere. An independent fit with three constants for each GPU and
data type, {n_independent} for these rows, had 10.8 % on held-out multiplies, and 9.3 % above 1e11 FLOP; here multiplies have 15, of which 11 belong to families.

Multiplies by publisher, under the bundled constants:

| publisher | n | mean | median | why |
|---|---|---|---|---|
"""
REASONS = {
    "PrincetonUniversity": "large multiplies reach 89 to 94 % of the peak of A100, where four others measure 70 to 83 %; small ones wait for the host",
    "stas00": "the best of a search over shapes",
    "ai-dynamo": "A100 in some shapes waits for a whole last wave (112 tiles on 108 cores), in others not",
    "MooreThreads": "B200: below 2e11 FLOP a third faster than above",
    "Azure": "1024 cubed in 8 bits takes twice the law's time",
    "deepseek-ai": "few tokens, kernels made for them",
}
CLASSES: Mapping[str, NDArray[np.bool_]] = {
    "multiplies": KINDS == "gemm",
    "multiplies from 1e11 FLOP": (KINDS == "gemm") & (FLOPS >= 1e11),
    "grouped multiplies": KINDS == "grouped",
    "attention forward": (KINDS == "attention") & np.array([not x.call.is_backward for x in ROWS]),
    "attention backward": (KINDS == "attention") & np.array([x.call.is_backward for x in ROWS]),
    "activations, residuals": KINDS == "stream",
    "norms, softmax": KINDS == "norm",
}


def kernel_lines(halves: HalvesErrors, held_out: HeldOutErrors) -> Iterator[str]:
    """Lines of the section; the two fits are those of ``studies.kernel_fits``."""
    used = KernelLaw.of(catalogue())
    yield HEAD.rstrip("\n")
    yield from _shared_rows(used)
    names = " | ".join(used.families)
    yield FAMILIES.format(names=names, rule="---|" * len(used.families)).rstrip("\n")
    yield from _family_rows(used)
    n_fitted = sum(row.is_fitted for row in ROWS)
    yield SOURCE.format(n=len(ROWS), n_fitted=n_fitted, halves=N_HALVES).rstrip("\n")
    yield from _error_rows(used, halves, held_out)
    yield _clock(used).rstrip("\n")
    yield from _publisher_rows(used)


def _shared_rows(used: KernelLaw) -> Iterator[str]:
    for name, value in asdict(used.typical).items():
        if name not in OWN:
            yield _row(name, value, RANGES[name])
    for name, value in asdict(BenchmarkConstants()).items():
        yield _row(name, value, BENCHMARK_RANGES[name])


def _row(name: str, value: float, limits: tuple[float, float]) -> str:
    if name.endswith("_s"):
        low, high = (1e6 * limit for limit in limits)
        return f"| {name} | {1e6 * value:.3g} µs | {low:g} to {high:g} µs |"
    return f"| {name} | {value:.3g} | {limits[0]:g} to {limits[1]:g} |"


def _family_rows(used: KernelLaw) -> Iterator[str]:
    for name in OWN:
        values = [getattr(one, name) for one in (*used.families.values(), used.typical)]
        low, high = RANGES[name]
        yield f"| {name} | {' | '.join(f'{x:.3g}' for x in values)} | {low:g} to {high:g} |"


def _error_rows(used: KernelLaw, halves: HalvesErrors, held_out: HeldOutErrors) -> Iterator[str]:
    start = KernelLaw.neutral(list(used.families))
    seeds = range(N_HALVES)
    found = {
        "all rows": [used.errors(ROWS)],
        "the other half of the shapes": [halves(ROWS, start, _shape, seed) for seed in seeds],
        "the other half of the files": [halves(ROWS, start, _source, seed) for seed in seeds],
        "other publishers": [held_out(ROWS, start, _publisher)],
        "other NPUs": [held_out(ROWS, start, _npu)],
    }
    for kind, inside in CLASSES.items():
        for constants, errors in found.items():
            kept = np.concatenate([one[inside] for one in errors])
            low, middle, high = np.quantile(kept, [0.1, 0.5, 0.9])
            figures = f"{np.mean(np.abs(kept)):.1%} | {middle:+.1%} | {low:+.0%} to {high:+.0%}"
            yield f"| {kind} | {inside.sum()} | {constants} | {figures} |"


def _shape(row: MeasuredKernel) -> str:
    return str(row.call.shape)


def _source(row: MeasuredKernel) -> str:
    return row.source


def _publisher(row: MeasuredKernel) -> str:
    return row.publisher


def _npu(row: MeasuredKernel) -> str:
    return row.npu


def _clock(used: KernelLaw) -> str:
    cool = [replace(row, call=replace(row.call, is_burst=False)) for row in ROWS]
    errors = np.abs(used.errors(cool))
    inside = CLASSES["multiplies"]
    is_b200 = np.array([row.npu == "b200-sxm" for row in ROWS])
    kinds = {(row.npu, row.call.dtype == "fp8") for row in np.array(ROWS, dtype=object)[inside]}
    return CLOCK.format(
        one=errors[inside].mean(),
        b200=errors[inside & is_b200].mean(),
        others=errors[inside & ~is_b200].mean(),
        n_independent=3 * len(kinds),
    )


def _publisher_rows(used: KernelLaw) -> Iterator[str]:
    errors, inside = used.errors(ROWS), CLASSES["multiplies"]
    for name in _by_error(ROWS, errors, inside):
        kept = errors[inside & np.array([row.publisher == name for row in ROWS])]
        figures = f"{np.mean(np.abs(kept)):.1%} | {np.median(kept):+.1%}"
        yield f"| {name} | {len(kept)} | {figures} | {REASONS.get(name, '')} |"


def _by_error(
    rows: Sequence[MeasuredKernel], errors: Errors, inside: NDArray[np.bool_]
) -> list[str]:
    """Publishers, the largest mean error first."""
    names = np.array([row.publisher for row in rows])
    found = {name: np.mean(np.abs(errors[inside & (names == name)])) for name in names[inside]}
    return sorted(found, key=lambda name: -found[name])
