"""Times of kernels: a roofline whose efficiency follows the shape (C18).

The constants are those of an NPU family, fitted once to published measurements of kernels; the NPU
catalogue holds them and ``docs/accuracy.md`` has their errors. NPUs and data types that nobody
measured have those of the families that were, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Fault, SpecError

Times: TypeAlias = NDArray[np.float64]

TILE = (128, 256)
"""Rows and columns of the output that one core works on at a time, or columns and rows."""

QUERIES = 128
"""Queries of one head that one core works on at a time."""

BYTES: Mapping[str, float] = MappingProxyType(
    {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp6": 0.75}
    | {"fp4": 0.5}
)
"""Of one number, by data type."""


@dataclass(frozen=True)
class KernelConstants:
    """What is fitted, each with the range that is physical (:data:`RANGES`).

    Parameters
    ----------
    launch_s : from the start of a kernel to the end of the smallest one.
    group_s : the same for each further group of a grouped multiply.
    memory_fraction : of the memory's bandwidth that multiplies and attention reach.
    stream_fraction, norm_fraction : the same of element-wise work, and of norms and softmax.
    gemm_fraction, gemm_8bit_fraction : of the peak that a large multiply keeps up for long, with
        numbers of 16 bits and more, and of 8 bits and fewer.
    burst_gain : how many times as fast those of 16 bits are while power does not limit the clock.
    idle_fraction : of the last wave's idle cores' time that is lost; splitting k fills the rest.
    prologue_depth : what filling and emptying a tile takes, in columns of k.
    attention_fraction : of the peak that forward attention keeps up over long sequences.
    attention_8bit_fraction : of that share, what is left of the peak of 8 bits.
    attention_backward_fraction, attention_backward_8bit_fraction : of the forward rate that
        backward attention reaches.
    attention_block_s : what each block of queries takes before and after its keys.
    """

    launch_s: float = 2.44e-6
    group_s: float = 3.48e-6
    memory_fraction: float = 0.764
    stream_fraction: float = 0.918
    norm_fraction: float = 0.493
    gemm_fraction: float = 0.647
    gemm_8bit_fraction: float = 0.591
    burst_gain: float = 1.0
    idle_fraction: float = 0.0657
    prologue_depth: float = 85.0
    attention_fraction: float = 0.659
    attention_8bit_fraction: float = 0.783
    attention_backward_fraction: float = 0.801
    attention_backward_8bit_fraction: float = 0.562
    attention_block_s: float = 5.36e-6


RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "launch_s": (0.5e-6, 20e-6),
        "group_s": (0.0, 20e-6),
        "memory_fraction": (0.3, 1.0),
        "stream_fraction": (0.3, 1.0),
        "norm_fraction": (0.1, 1.0),
        "gemm_fraction": (0.2, 1.0),
        "gemm_8bit_fraction": (0.2, 1.0),
        "burst_gain": (1.0, 2.0),
        "idle_fraction": (0.0, 1.0),
        "prologue_depth": (0.0, 1024.0),
        "attention_fraction": (0.1, 1.0),
        "attention_8bit_fraction": (0.1, 1.0),
        "attention_backward_fraction": (0.1, 1.0),
        "attention_backward_8bit_fraction": (0.1, 1.0),
        "attention_block_s": (0.0, 50e-6),
    }
)
"""Least and most of each constant: a launch takes microseconds, no share exceeds the whole."""


@dataclass(frozen=True)
class Kernels:
    """Times of the kernels of one NPU.

    Parameters
    ----------
    peak_flops : dense floating-point operations per second, by data type.
    memory_Bps : of its memory.
    n_cores : that work on tiles side by side (streaming multiprocessors).
    constants : fitted.
    measured : data types whose kernels were measured on this kind of NPU.
    burst_fraction : how far the clock is from sustained (0) to that of a short run (1).

    Examples
    --------
    A projection of Llama 3 70B on an H100, 4,096 tokens:

    >>> found = KernelConstants(gemm_fraction=0.743)
    >>> h100 = Kernels({"bf16": 989.4e12}, 3.35e12, n_cores=132, constants=found)
    >>> time_s = h100.gemm_s(4096, 8192, 8192)
    >>> round(1e6 * float(time_s)), round(2 * 4096 * 8192**2 / float(time_s) / 1e12)
    (760, 724)

    Arrays of shapes broadcast:

    >>> h100.gemm_s(np.array([1024, 4096]), 8192, np.array([[8192], [4096]])).shape
    (2, 2)
    """

    peak_flops: Mapping[str, float]
    memory_Bps: float
    n_cores: int = 128
    constants: KernelConstants = field(default_factory=KernelConstants)
    measured: frozenset[str] = frozenset()
    burst_fraction: float = 0.0

    def gemm_s(
        self,
        m: ArrayLike,
        n: ArrayLike,
        k: ArrayLike,
        *,
        dtype: str = "bf16",
        n_groups: ArrayLike = 1,
        out_bytes: float = 2.0,
    ) -> Times:
        """Time of n_groups multiplies of m x k by k x n: 2 m n k n_groups FLOP.

        max(compute, memory) + launch. Compute counts waves of tiles: w = tiles / cores,
        ((w + idle (ceil(w) - w)) k + ceil(w) prologue) FLOPs of a column of a tile / core's rate.

        Parameters
        ----------
        m, n, k : rows, columns and depth, shape (...).
        dtype : of both factors.
        n_groups : equal multiplies of one call, such as those of experts.
        out_bytes : moved for each number of the result; 8 where it is added to 32 bits.

        Returns
        -------
        Times, s, shape (...).
        """
        m, n, k, groups = (_numbers(x) for x in (m, n, k, n_groups))
        found, (small, large) = self.constants, TILE
        tiles = np.minimum(
            np.ceil(m / small) * np.ceil(n / large), np.ceil(m / large) * np.ceil(n / small)
        )
        waves, whole = self._waves(tiles * groups)
        columns = waves * k + whole * found.prologue_depth
        compute_s = columns * (2 * small * large / self._core_rate(dtype))
        n_bytes = groups * ((m + n) * k * width(dtype) + m * n * out_bytes)
        launch_s = found.launch_s + found.group_s * (groups - 1)
        return np.asarray(np.maximum(compute_s, self._memory_time(n_bytes)) + launch_s)

    def attention_s(
        self,
        *,
        batch: ArrayLike,
        n_heads: ArrayLike,
        n_kv_heads: ArrayLike,
        seq_q: ArrayLike,
        seq_kv: ArrayLike,
        head_dim: ArrayLike,
        head_dim_v: ArrayLike,
        is_causal: ArrayLike,
        dtype: str = "bf16",
        is_backward: bool = False,
    ) -> Times:
        """Time of one fused attention: 2 batch heads seq_q seq_kv (head_dim + head_dim_v) FLOP.

        Causal attention does half of that, backward 2.5 times (arXiv 2205.14135). Blocks of
        queries are spread over the cores like tiles; the depth is the keys that a block sees.

        Parameters
        ----------
        batch, n_heads, n_kv_heads : sequences, heads of queries, and of keys and values, (...).
        seq_q, seq_kv : queries and keys of a sequence.
        head_dim, head_dim_v : widths of a head's queries and keys, and of its values.
        is_causal : whether a token sees only those before it.

        Returns
        -------
        Times, s, shape (...).
        """
        wide = _numbers(head_dim) + _numbers(head_dim_v)
        queries, keys = _numbers(seq_q), _numbers(seq_kv)
        heads, kv_heads = (_numbers(batch) * _numbers(x) for x in (n_heads, n_kv_heads))
        seen = np.where(is_causal, 0.5, 1.0) * keys
        waves, whole = self._waves(heads * np.ceil(queries / QUERIES))
        n_passes = 2.5 if is_backward else 1.0
        flops = waves * seen * (2 * QUERIES * n_passes) * wide
        rate = self._attention_rate(dtype, is_backward) / self.n_cores
        compute_s = flops / rate + whole * (n_passes * self.constants.attention_block_s)
        n_numbers = (heads * queries + kv_heads * keys) * wide
        n_bytes = n_numbers * width(dtype) * (2 if is_backward else 1)
        return np.asarray(
            np.maximum(compute_s, self._memory_time(n_bytes)) + self.constants.launch_s
        )

    def stream_s(
        self, n_bytes: ArrayLike, *, n_kernels: ArrayLike = 1, is_norm: bool = False
    ) -> Times:
        """Time of work that memory bounds: activations, optimizer, norms.

        Parameters
        ----------
        n_bytes : read and written, shape (...).
        n_kernels : launches that share them.
        is_norm : whether rows are summed first, as norms and softmax do.
        """
        found = self.constants
        rate = self.memory_Bps * (found.norm_fraction if is_norm else found.stream_fraction)
        return np.asarray(_numbers(n_bytes) / rate + found.launch_s * _numbers(n_kernels))

    def is_measured(self, dtype: str) -> bool:
        """Whether kernels of a data type were measured on this kind of NPU."""
        return dtype in self.measured

    def gemm_flops(self, dtype: str) -> float:
        """FLOP/s that a large multiply reaches."""
        found = self.constants
        if width(dtype) <= 1:
            return self._peak(dtype) * found.gemm_8bit_fraction
        gain = float(found.burst_gain**self.burst_fraction)
        return self._peak(dtype) * min(1.0, found.gemm_fraction * gain)

    def _waves(self, tiles: Times) -> tuple[Times, Times]:
        """Tiles whose depth the busiest core works through, and those that it begins."""
        waves = tiles / self.n_cores
        whole = np.ceil(waves)
        idle = self.constants.idle_fraction
        return (1 - idle) * waves + idle * whole, whole

    def _core_rate(self, dtype: str) -> float:
        return self.gemm_flops(dtype) / self.n_cores

    def _attention_rate(self, dtype: str, is_backward: bool) -> float:
        """FLOP/s that long attention reaches; numbers of fewer than 8 bits run as 8."""
        found, is_narrow = self.constants, width(dtype) <= 1
        share = found.attention_fraction * (found.attention_8bit_fraction if is_narrow else 1.0)
        if is_backward:
            backward = found.attention_backward_fraction
            share *= found.attention_backward_8bit_fraction if is_narrow else backward
        return self._peak("fp8" if is_narrow else dtype) * share

    def _memory_time(self, n_bytes: ArrayLike) -> Times:
        return _numbers(n_bytes) / (self.memory_Bps * self.constants.memory_fraction)

    def _peak(self, dtype: str) -> float:
        if dtype not in self.peak_flops:
            known = ", ".join(self.peak_flops)
            raise SpecError(Fault(f"got {dtype}", f"expected one of its types: {known}"))
        return self.peak_flops[dtype]


def _numbers(values: ArrayLike) -> Times:
    return np.asarray(values, dtype=np.float64)


def width(dtype: str) -> float:
    """Bytes of a number of a data type.

    >>> width("bf16"), width("fp8")
    (2, 1)
    """
    if dtype not in BYTES:
        raise SpecError(Fault(f"got the data type {dtype}", f"expected one of {', '.join(BYTES)}"))
    return BYTES[dtype]
