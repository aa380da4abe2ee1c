"""Tables of measured kernels (C18): rows into calls, or why a row is not modelled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from libra_planner.errors import Fault, SpecError
from libra_planner.plan.npus import catalogue, npu_kernels, npu_named, unknown_npu
from libra_planner.reading.tables import read_carried_table
from libra_planner.workload.kernel_calls import (
    ATTENTION,
    GEMM,
    NORM,
    STREAM,
    KernelCall,
    call_times_s,
)
from libra_planner.workload.kernels import BYTES, Kernels, width

COLUMNS = ("gpu_type", "op", "dtype")
"""Columns that a file needs; the shape's, ``pass``, ``software`` and ``note`` are read, too."""

RESERVED = ("message", "predicted_time_s")
"""Columns that an answer adds."""

PASSED: Mapping[str, tuple[int, int, str]] = {
    **dict.fromkeys(
        ("relu", "gelu", "silu", "tanh", "pow", "addu", "mulu", "divu"), (2, 3, STREAM)
    ),
    **dict.fromkeys(("residual_add", "add"), (3, 2, STREAM)),
    **dict.fromkeys(("mul", "div"), (3, 5, STREAM)),
    **dict.fromkeys(("swiglu", "geglu"), (3, 5, STREAM)),
    "silu_and_mul": (5, 8, STREAM),  # Two kernels, as in eager frameworks.
    **dict.fromkeys(("layer_norm", "rms_norm", "softmax", "cross_entropy"), (2, 3, NORM)),
}
"""By operator: numbers moved for each of its results, forward and backward, and its kind."""

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32"}
_DTYPES |= dict.fromkeys(("float8", "fp8_e4m3", "float8_e4m3fn", "e4m3", "mxfp8"), "fp8")
_DTYPES |= dict.fromkeys(("nvfp4", "mxfp4", "e2m1"), "fp4")
_UNTOLD = ("", "unspecified")
_SERVING = re.compile(r"tensorrt-?llm|sglang|vllm", re.I)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_MOST = 1e15


@dataclass(frozen=True)
class KernelRow:
    """One kernel on one NPU.

    Parameters
    ----------
    npu, op : names, of the catalogue and of the table.
    call, kernels : what runs on what.
    is_dtype_told : whether its row says the data type; counted as fp32 otherwise.
    """

    npu: str
    op: str
    call: KernelCall
    kernels: Kernels
    is_dtype_told: bool = True

    @property
    def time_s(self) -> float:
        """Its predicted time."""
        return float(call_times_s([self.call], [self.kernels])[0])

    @property
    def is_measured(self) -> bool:
        """Whether kernels of its data type were measured on this kind of NPU."""
        return self.kernels.is_measured(self.call.dtype)

    @property
    def remark(self) -> str:
        """What its time rests on where nobody measured such kernels, or says the data type."""
        if not self.is_dtype_told:
            return "data type not told: counted as fp32"
        if self.is_measured:
            return ""
        return f"no {self.call.dtype} kernels of {self.npu} were measured: typical efficiencies"


@dataclass(frozen=True)
class KernelFile:
    """A CSV file of kernels.

    Parameters
    ----------
    columns, rows : its texts.
    kernels : what each row asks, or why it is not modelled.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    kernels: tuple[KernelRow | SpecError, ...] = field(repr=False)

    def answers(self) -> Iterator[tuple[str, str]]:
        """Time and message of every row; a time without measurements behind it says so."""
        rows = [one for one in self.kernels if isinstance(one, KernelRow)]
        times = iter(call_times_s([row.call for row in rows], [row.kernels for row in rows]))
        for one in self.kernels:
            if isinstance(one, SpecError):
                yield "", str(one)
            else:
                yield repr(float(next(times))), one.remark


def read_kernel_file(path: str | Path, catalogue_name: str | None = None) -> KernelFile:
    """Read a file of kernels; columns that are not known are carried along.

    Parameters
    ----------
    catalogue_name : of NPUs; the bundled one without it.

    Raises
    ------
    SpecError
        For columns that are missing or repeated, and rows of another length. A row that is not
        modelled has a message.
    """
    table = read_carried_table(path, required=COLUMNS, reserved=RESERVED)
    named = ({name: text.strip() for name, text in cells.items()} for cells in table.cells())
    kernels = tuple(_row(cells, catalogue_name) for cells in named)
    return KernelFile(table.columns, table.rows, kernels)


def _row(cells: Mapping[str, str], catalogue_name: str | None) -> KernelRow | SpecError:
    try:
        return kernel_row(cells, catalogue_name)
    except SpecError as error:
        return error


def kernel_row(cells: Mapping[str, str], catalogue_name: str | None = None) -> KernelRow:
    """The kernel of a row of a table, by its columns.

    Raises
    ------
    SpecError
        For an operator that is not modelled, an NPU that is not known, and a shape that is not
        whole.

    Examples
    --------
    >>> shape = {"m": "4096", "n": "8192", "k": "8192"}
    >>> row = kernel_row({"gpu_type": "H100", "op": "gemm", "dtype": "bfloat16", **shape})
    >>> row.npu, row.call.shape, row.is_measured
    ('h100-sxm', (4096.0, 8192.0, 8192.0, 1), True)
    """
    npu, kernels = _npu(cells.get("gpu_variant", ""), cells["gpu_type"], catalogue_name)
    call = kernel_call(cells)
    if call.flops and call.dtype not in kernels.peak_flops:
        known = f"expected a type of {npu}: {', '.join(kernels.peak_flops)}"
        raise SpecError(Fault(f"got {call.dtype}", known, path="dtype"))
    return KernelRow(npu, cells["op"], call, kernels, cells["dtype"] not in _UNTOLD)


@lru_cache(maxsize=256)
def _npu(variant: str, kind: str, catalogue_name: str | None) -> tuple[str, Kernels]:
    """An NPU by its variant, or else by its type, and its kernels; alike rows share them."""
    npus = catalogue(catalogue_name).npus
    npu = npu_named(variant, npus) or npu_named(kind, npus)
    if npu is None:
        fault = unknown_npu("NPU of the catalogue", kind, npus)
        raise SpecError(replace(fault, path="gpu_type"))
    return npu, npu_kernels(npu, catalogue_name)


def kernel_call(cells: Mapping[str, str]) -> KernelCall:
    """What a row computes; parameters and errors as :func:`kernel_row`."""
    op, way = cells["op"], cells.get("pass", "") or "fwd"
    told = cells["dtype"].casefold()
    is_stream = op in PASSED and told in _UNTOLD
    dtype = "fp32" if is_stream else _DTYPES.get(told, told)
    if dtype not in BYTES:
        known = f"expected one of {', '.join([*BYTES, *_DTYPES])}"
        raise SpecError(Fault(f"got {cells['dtype']!r}", known, path="dtype"))
    if op in ("gemm", "grouped_gemm"):
        return _gemm(cells, way, dtype)
    if op == ATTENTION:
        return _attention(cells, way, dtype)
    if op in PASSED:
        return _stream(cells, op, way, dtype)
    known = f"expected gemm, grouped_gemm, attention, {', '.join(PASSED)}"
    raise SpecError(Fault(f"got {op!r}, which is not modelled", known, path="op"))


def _gemm(cells: Mapping[str, str], way: str, dtype: str) -> KernelCall:
    m, n, k = (_count(cells, name) for name in "mnk")
    groups = _count(cells, "groups", 1) * _count(cells, "batch", 1)
    note = cells.get("note", "")
    out_bytes = 2.0 * (2 if "out=fp32" in note else 1) * (2 if "accumulate=True" in note else 1)
    if cells["op"] == "grouped_gemm" and way == "bwd_grad_w":
        m, n, k, out_bytes = n, k, m, 8.0  # Gradients are added to 32 bits.
    elif cells["op"] == "grouped_gemm" and way == "bwd_grad_act":
        n, k = k, n
    served = "activation quantisation" in note
    return KernelCall(
        GEMM, dtype, (m, n, k, groups), out_bytes, is_burst=_is_burst(cells), is_served=served
    )


def _attention(cells: Mapping[str, str], way: str, dtype: str) -> KernelCall:
    heads = _count(cells, "heads_q")
    queries, wide = _count(cells, "seq_q"), _count(cells, "head_dim_qk")
    shape = (
        _count(cells, "batch", 1),
        heads,
        _count(cells, "heads_kv", heads),
        queries,
        _count(cells, "seq_kv", queries),
        wide,
        _count(cells, "head_dim_v", wide),
    )
    if way not in ("fwd", "bwd"):
        raise SpecError(Fault(f"got {way!r}", "expected fwd or bwd", path="pass"))
    causal = cells.get("causal", "").casefold() in ("1", "1.0", "true", "yes")
    served = "prefill" in cells.get("note", "")
    return KernelCall(
        ATTENTION, dtype, shape, is_causal=causal, is_backward=way == "bwd", is_served=served
    )


def _stream(cells: Mapping[str, str], op: str, way: str, dtype: str) -> KernelCall:
    forward, backward, kind = PASSED[op]
    if op == "rms_norm" and "eager" in cells.get("software", ""):
        got = "got an eager rms_norm, which is many kernels"
        raise SpecError(Fault(got, "expected a fused one", path="software"))
    passed = {"fwd": forward, "bwd": backward, "fwd+bwd": forward + backward}
    if way not in passed:
        raise SpecError(Fault(f"got {way!r}", f"expected {', '.join(passed)}", path="pass"))
    numbers = passed[way] * _count(cells, "rows") * _count(cells, "cols")
    return KernelCall(kind, dtype, (numbers * width(dtype),))


def _is_burst(cells: Mapping[str, str]) -> bool:
    """Whether a serving framework timed it: in runs too short for power to limit the clock."""
    return bool(_SERVING.search(cells.get("software", "")))


def _count(cells: Mapping[str, str], name: str, default: float | None = None) -> float:
    """A whole number of a cell."""
    text = cells.get(name, "")
    if not text and default is not None:
        return default
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 1 <= value <= _MOST or value != int(value):
        got = f"got {text!r}" if text else "got nothing"
        raise SpecError(Fault(got, "expected a whole number from 1", path=name))
    return value
