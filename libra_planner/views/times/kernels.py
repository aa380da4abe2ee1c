"""A single kernel: the JSON object of ``kernels --json``, and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from libra_planner.units import format_bytes, format_time
from libra_planner.views.cells import Block, escape
from libra_planner.workload.kernel_calls import ATTENTION, ERRORS, GEMM

if TYPE_CHECKING:
    from libra_planner.inputs.kernel_rows import KernelRow


def kernel_payload(row: KernelRow) -> dict[str, Any]:
    """What ``kernels --json`` prints; no band where nobody measured (C23)."""
    call, kernels, time_s = row.call, row.kernels, row.time_s
    band = ERRORS[call.kind] if row.is_measured else None
    peak = kernels.peak_flops.get(call.dtype) if call.flops else None
    return {
        "npu": row.npu,
        "op": row.op,
        "dtype": call.dtype,
        "time_s": time_s,
        "time_s_low": None if band is None else time_s * (1 - band),
        "time_s_high": None if band is None else time_s * (1 + band),
        "flops": call.flops,
        "n_bytes": call.n_bytes,
        "tflops": call.flops / time_s / 1e12,
        "peak_fraction": None if peak is None else call.flops / time_s / peak,
        "memory_fraction": call.n_bytes / time_s / kernels.memory_Bps,
        "bound_by": bound_by(row),
        "measured": row.is_measured,
    }


def bound_by(row: KernelRow) -> str:
    """What the data sheet's roofline says: compute or memory."""
    peak = row.kernels.peak_flops.get(row.call.dtype, float("inf"))
    is_memory = row.call.n_bytes / row.kernels.memory_Bps > row.call.flops / peak
    return "memory" if is_memory else "compute"


def kernel_blocks(row: KernelRow) -> Iterator[Block]:
    """Headline, the time with its band, and what it reaches of the data sheet."""
    found = kernel_payload(row)
    yield f"[bold]{escape(row.op)}[/]{_shape(row)}, {found['dtype']}, on {row.npu}"
    band = "no measured class"
    if found["time_s_low"] is not None:
        low, high = format_time(found["time_s_low"]), format_time(found["time_s_high"])
        band = f"{low} to {high}"
    yield f"Time [bold]{format_time(found['time_s'])}[/] ({band}), bound by {found['bound_by']}"
    moved = f"{format_bytes(found['n_bytes'])}: {found['memory_fraction']:.0%} of the bandwidth"
    if found["flops"]:
        of_peak = f"{found['peak_fraction']:.0%} of the peak"
        yield f"{found['tflops']:,.1f} TFLOP/s, {of_peak}; {moved}"
    else:
        yield moved
    if not row.is_measured:
        yield f"Note: {row.remark}"


def _shape(row: KernelRow) -> str:
    """The shape in words."""
    call = row.call
    if call.kind == GEMM:
        m, n, k, groups = (f"{value:,.0f}" for value in call.shape)
        return f" {m} x {n} x {k}" + (f", {groups} groups" if groups != "1" else "")
    if call.kind == ATTENTION:
        batch, heads, kv_heads, queries, keys, wide, wide_v = (f"{x:,.0f}" for x in call.shape)
        way = f"{'causal' if call.is_causal else 'full'}{', backward' * call.is_backward}"
        text = f" {batch} x {queries} queries of {heads} heads, {keys} keys of {kv_heads}"
        return f"{text}, width {wide} and {wide_v}, {way}"
    return ""
