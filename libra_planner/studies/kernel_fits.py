"""Constants of kernels: fitted to measurements, within what is physical, and held out (C18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from libra_planner.inputs.kernel_rows import KernelFile, KernelRow
from libra_planner.plan.npus import NpuCatalogueSpec, catalogue
from libra_planner.workload.kernel_calls import (
    BENCHMARK_RANGES,
    BenchmarkConstants,
    KernelCall,
    call_times_s,
)
from libra_planner.workload.kernels import RANGES, KernelConstants, Kernels

OWN = (
    *("gemm_fraction", "gemm_8bit_fraction", "burst_gain", "attention_fraction"),
    "prologue_depth",
)
"""Constants that every family has for itself; the others are the same for all."""

_SHARED = tuple(one.name for one in fields(KernelConstants) if one.name not in OWN)
_BENCHMARK = tuple(one.name for one in fields(BenchmarkConstants))
_PULL = 1e-3
"""Weight of the start: where no row tells a constant, it stays."""


@dataclass(frozen=True)
class MeasuredKernel:
    """One measured kernel.

    Parameters
    ----------
    call, kernels : what ran on what; the constants of ``kernels`` are not used.
    family : whose own constants hold.
    time_s : measured.
    source, publisher, npu : of the measurement.
    is_fitted : not the best of many shapes, nor bound by the host that launches it.
    """

    call: KernelCall
    kernels: Kernels
    family: str
    time_s: float
    source: str = ""
    publisher: str = ""
    npu: str = ""
    is_fitted: bool = True


def measured_kernels(file: KernelFile) -> list[MeasuredKernel]:
    """Rows of a table that are modelled, with their measured time (column ``time_s``)."""
    families = {name: npu.kernels or "" for name, npu in catalogue().npus.items()}
    found = []
    for row, texts in zip(file.kernels, file.rows, strict=True):
        cells = dict(zip(file.columns, texts, strict=True))
        if isinstance(row, KernelRow):
            source, time_s = cells.get("source", ""), float(cells["time_s"])
            known = (families[row.npu], time_s, source, source.split("/")[0], row.npu)
            is_fitted = row.is_dtype_told and _is_fitted(cells)
            found.append(MeasuredKernel(row.call, row.kernels, *known, is_fitted))
    return found


def _is_fitted(cells: Mapping[str, str]) -> bool:
    """Whether a row tells what training gets.

    Left out are the best of many shapes, backward attention in a fixed order, and element-wise work
    and norms that plain torch launches one by one: its host takes longer.
    """
    is_plain = cells.get("software", "") == "torch" and cells["op"] != "gemm"
    is_best = "envelope" in cells.get("derived", "")
    return not (is_plain or is_best or "deterministic" in cells.get("note", ""))


@dataclass(frozen=True)
class KernelLaw:
    """Constants of all families, and what benchmarks add."""

    families: Mapping[str, KernelConstants]
    benchmarks: BenchmarkConstants = field(default_factory=BenchmarkConstants)

    def errors(self, rows: Sequence[MeasuredKernel]) -> NDArray[np.float64]:
        """Predicted over measured time, less 1, shape (rows,)."""
        kernels = self._kernels(rows)
        times = call_times_s([row.call for row in rows], kernels, self.benchmarks)
        return np.asarray(times / np.array([row.time_s for row in rows]) - 1)

    def _kernels(self, rows: Sequence[MeasuredKernel]) -> list[Kernels]:
        """Those of every row with the constants of its family; typical ones without a family."""
        made: dict[tuple[int, str], Kernels] = {}
        for row in rows:
            key = (id(row.kernels), row.family)
            if key not in made:
                constants = self.families.get(row.family, self.typical)
                made[key] = replace(row.kernels, constants=constants)
        return [made[id(row.kernels), row.family] for row in rows]

    @classmethod
    def of(cls, found: NpuCatalogueSpec) -> KernelLaw:
        """The law of a catalogue."""
        families = found.kernels.items()
        return cls({name: KernelConstants(**one.constants) for name, one in families})

    @classmethod
    def neutral(cls, families: Sequence[str]) -> KernelLaw:
        """Where fits begin that are to know nothing of the rows left out."""
        return cls({name: KernelConstants() for name in families})

    @property
    def typical(self) -> KernelConstants:
        """Geometric means over the families at a sustained clock, for NPUs nobody measured."""
        found = list(self.families.values())
        means = {
            name: float(np.exp(np.mean([np.log(getattr(one, name)) for one in found])))
            for name in OWN
        }
        return replace(found[0], **means | {"burst_gain": 1.0})


def fit_kernels(rows: Sequence[MeasuredKernel], start: KernelLaw) -> KernelLaw:
    """The constants that miss the logarithms of the times least; a few wild rows move them little.

    Parameters
    ----------
    rows : measured.
    start : where the search begins; constants that no row depends on stay there.
    """
    from scipy.optimize import least_squares

    kept = [row for row in rows if row.is_fitted]
    families = [name for name in start.families if any(row.family == name for row in kept)]
    names = _names(families)
    low, high = (np.log([max(_range(name)[i], 1e-9) for name in names]) for i in (0, 1))
    first = np.clip(np.log(_values(start, families)), low + 1e-6, high - 1e-6)

    def misses(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        law = _law(start, families, np.exp(logarithms).tolist())
        return np.append(np.log1p(law.errors(kept)), _PULL * (logarithms - first))

    found = least_squares(misses, first, bounds=(low, high), loss="soft_l1", f_scale=0.1)
    return _law(start, families, np.exp(found.x).tolist())


def held_out_errors(
    rows: Sequence[MeasuredKernel], start: KernelLaw, group: Callable[[MeasuredKernel], str]
) -> NDArray[np.float64]:
    """Errors of rows whose group was left out of the fit, group by group, shape (rows,)."""
    errors = np.empty(len(rows))
    for name in sorted({group(row) for row in rows}):
        inside = np.array([group(row) == name for row in rows])
        errors[inside] = _errors_outside(rows, start, inside)
    return errors


def halves_errors(
    rows: Sequence[MeasuredKernel],
    start: KernelLaw,
    group: Callable[[MeasuredKernel], str],
    seed: int,
) -> NDArray[np.float64]:
    """Errors of either half of the groups under constants of the other half, shape (rows,)."""
    names = np.random.default_rng(seed).permutation(sorted({group(row) for row in rows}))
    half = set(names[: len(names) // 2].tolist())
    side = np.array([group(row) in half for row in rows])
    errors = np.empty(len(rows))
    errors[side] = _errors_outside(rows, start, side)
    errors[~side] = _errors_outside(rows, start, ~side)
    return errors


def _errors_outside(
    rows: Sequence[MeasuredKernel], start: KernelLaw, inside: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Errors of rows under constants of the others; families with no other row are typical."""
    others = [row for row, is_inside in zip(rows, inside, strict=True) if not is_inside]
    found = fit_kernels(others, start)
    known = {row.family for row in others}
    kept = {name: one for name, one in found.families.items() if name in known}
    left = [row for row, is_inside in zip(rows, inside, strict=True) if is_inside]
    return replace(found, families=kept).errors(left)


def _names(families: Sequence[str]) -> list[str]:
    return [*_SHARED, *_BENCHMARK, *(name for _ in families for name in OWN)]


def _range(name: str) -> tuple[float, float]:
    return RANGES[name] if name in RANGES else BENCHMARK_RANGES[name]


def _values(law: KernelLaw, families: Sequence[str]) -> list[float]:
    shared = asdict(law.families[families[0]] if families else law.typical)
    own = [asdict(law.families[family])[name] for family in families for name in OWN]
    return [shared[name] for name in _SHARED] + list(asdict(law.benchmarks).values()) + own


def _law(start: KernelLaw, families: Sequence[str], values: Sequence[float]) -> KernelLaw:
    """All constants from one list, as :func:`_values` makes it."""
    n_shared, n = len(_SHARED), len(_SHARED) + len(_BENCHMARK)
    shared = dict(zip(_SHARED, values[:n_shared], strict=True))
    made = {name: replace(one, **shared) for name, one in start.families.items()}
    for i, family in enumerate(families):
        own = values[n + i * len(OWN) : n + (i + 1) * len(OWN)]
        made[family] = replace(made[family], **dict(zip(OWN, own, strict=True)))
    return KernelLaw(made, BenchmarkConstants(*values[n_shared:n]))
