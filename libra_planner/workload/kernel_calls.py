"""Kernels as benchmarks run them: what they compute, and what else is in their time (C18)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from libra_planner.workload.kernels import Kernels, Times, width

GEMM, ATTENTION, STREAM, NORM = "gemm", "attention", "stream", "norm"


@dataclass(frozen=True)
class BenchmarkConstants:
    """What serving frameworks time beside a kernel, the same for all NPUs.

    Parameters
    ----------
    cast_s : start of the kernel that turns activations into 8 bits.
    prefill_fraction : of training attention's rate that attention over a prompt reaches.
    prefill_s : start of the kernels that prepare it.
    prefill_passes : times that its queries, keys and values are moved, the cache included.
    """

    cast_s: float = 11.8e-6
    prefill_fraction: float = 0.780
    prefill_s: float = 15.6e-6
    prefill_passes: float = 1.92


BENCHMARK_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "cast_s": (1e-6, 30e-6),
        "prefill_fraction": (0.2, 1.0),
        "prefill_s": (1e-6, 50e-6),
        "prefill_passes": (0.5, 6.0),
    }
)
"""Least and most of each constant."""


@dataclass(frozen=True)
class KernelCall:
    """One kernel of a benchmark.

    Parameters
    ----------
    kind : ``gemm``, ``attention``, ``stream`` (element-wise) or ``norm`` (norms, softmax).
    dtype : of its operands.
    shape : of a gemm m, n, k and groups; of attention batch, heads, heads of keys, queries, keys,
        width of queries and of values; of the others bytes.
    out_bytes : as :meth:`~libra_planner.workload.kernels.Kernels.gemm_s` has it.
    is_causal, is_backward : of attention.
    is_burst : timed in a run too short for power to limit the clock.
    is_served : by a serving framework: activations become 8 bits, prompts enter the cache.
    """

    kind: str
    dtype: str
    shape: tuple[float, ...]
    out_bytes: float = 2.0
    is_causal: bool = False
    is_backward: bool = False
    is_burst: bool = False
    is_served: bool = False

    @property
    def n_bytes(self) -> float:
        """Bytes that have to be read and written."""
        if self.kind == GEMM:
            m, n, k, groups = self.shape
            return groups * ((m + n) * k * width(self.dtype) + m * n * self.out_bytes)
        if self.kind != ATTENTION:
            return self.shape[0]
        batch, heads, kv_heads, queries, keys, wide, wide_v = self.shape
        n_numbers = batch * (heads * queries + kv_heads * keys) * (wide + wide_v)
        return n_numbers * width(self.dtype) * (2 if self.is_backward else 1)

    @property
    def flops(self) -> float:
        """Operations; 0 of work that memory bounds."""
        if self.kind == GEMM:
            return 2 * float(np.prod(self.shape))
        if self.kind != ATTENTION:
            return 0.0
        batch, heads, _, queries, keys, wide, wide_v = self.shape
        share = (0.5 if self.is_causal else 1.0) * (2.5 if self.is_backward else 1.0)
        return 2 * batch * heads * queries * keys * (wide + wide_v) * share

    @cached_property
    def without_shape(self) -> KernelCall:
        """The same for all calls that differ by shape alone."""
        return replace(self, shape=())


ERRORS: Mapping[str, float] = MappingProxyType(
    {GEMM: 0.10, ATTENTION: 0.07, STREAM: 0.2, NORM: 0.4}
)
"""Mean absolute error of shapes that were left out of the fit (C23, docs/accuracy.md)."""


def call_times_s(
    calls: Sequence[KernelCall],
    kernels: Sequence[Kernels],
    benchmarks: BenchmarkConstants | None = None,
) -> Times:
    """Times of calls on their NPUs, s, shape (calls,); calls that differ by shape alone together.

    Examples
    --------
    >>> h100 = Kernels({"bf16": 989.4e12}, 3.35e12, n_cores=132)
    >>> call_times_s([KernelCall("gemm", "bf16", (4096, 8192, 8192, 1))], [h100]).round(5)
    array([0.00087])
    """
    alike: dict[tuple[int, KernelCall], list[int]] = defaultdict(list)
    for i, (call, one) in enumerate(zip(calls, kernels, strict=True)):
        alike[id(one), call.without_shape].append(i)
    times = np.empty(len(calls))
    for (_, kind), rows in alike.items():
        shapes = np.array([calls[i].shape for i in rows], dtype=np.float64).T
        found = benchmarks or BenchmarkConstants()
        times[rows] = _Alike(kind, shapes, kernels[rows[0]], found).times_s()
    return times


@dataclass(frozen=True)
class _Alike:
    """Calls of one kind on one NPU, by their shapes."""

    call: KernelCall
    shapes: Times = field(repr=False)
    kernels: Kernels
    found: BenchmarkConstants

    def times_s(self) -> Times:
        if self.call.kind == GEMM:
            return self._gemm_times()
        if self.call.kind == ATTENTION:
            return self._attention_times()
        return self.kernels.stream_s(self.shapes[0], is_norm=self.call.kind == NORM)

    def _gemm_times(self) -> Times:
        call, (m, n, k, groups) = self.call, self.shapes
        kernels = replace(self.kernels, burst_fraction=float(call.is_burst))
        times = kernels.gemm_s(m, n, k, dtype=call.dtype, n_groups=groups, out_bytes=call.out_bytes)
        if not (call.is_served and width(call.dtype) <= 1):
            return times
        n_bytes = m * k * (2 + width(call.dtype))
        return times + self.found.cast_s + kernels.stream_s(n_bytes, n_kernels=0)

    def _attention_times(self) -> Times:
        call, kernels = self.call, self.kernels
        if call.is_served:
            share = kernels.constants.attention_fraction * self.found.prefill_fraction
            kernels = replace(
                kernels, constants=replace(kernels.constants, attention_fraction=share)
            )
        batch, heads, kv_heads, queries, keys, wide, wide_v = self.shapes
        times = kernels.attention_s(
            batch=batch, n_heads=heads, n_kv_heads=kv_heads, seq_q=queries, seq_kv=keys,
            head_dim=wide, head_dim_v=wide_v, is_causal=call.is_causal, dtype=call.dtype,
            is_backward=call.is_backward,
        )  # fmt: skip
        if not call.is_served:
            return times
        numbers = batch * (heads * queries * wide + kv_heads * keys * (wide + wide_v))
        moved = self.found.prefill_passes * numbers * width(call.dtype)
        return times + self.found.prefill_s + kernels.stream_s(moved, n_kernels=0)
