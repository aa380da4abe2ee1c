"""The section of docs/accuracy.md on memory: predicted beside published peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from libra_planner.units import BYTES_PER_GB
from libra_planner.workload.memory import npu
from tests.oracles.test_measured_memory import N_ROWS, NOT_SCORED, PEAKS, MeasuredPeak, mean_error

HEAD = """
## Memory

The fullest NPU of a run ([C19](conventions.md#c19-memory), [memory](memory.md)) beside the peak that its source prints: {n} of {n_rows} published rows
(`tests/oracles/measured_memory.csv`). torch and nvidia-smi print GiB; GB here is 1e9 bytes. What a source leaves open is filled in by one rule for all
rows: the sequence of the bundled model, microbatch 1, the library's own recomputation. Two constants are the same for all rows:

| constant | value | physical range |
|---|---|---|
"""
ERRORS = """
The constants hardly matter: anywhere in their ranges the mean error is 6.5 to 9 %. What decides are the habits of the libraries. They were read from their
code with these rows in view, and one was inferred from them: that InternEvo's optimizer needs 12 bytes more per parameter during its step. Rows that are
kept aside are the test. Mean absolute error, mean signed error and range:

| publisher | rows | mean | bias | range |
|---|---|---|---|---|
"""
WORST = """
The largest errors:

| run | GPUs | measured GB | predicted GB | error | why |
|---|---|---|---|---|---|
"""
REASONS = {
    (
        "Llama-3.1-8B",
        "H200",
    ): "torchtitan compiles the loss since 2025: at 4 bytes a logit, not 12, the error would be +9 %",
    ("Llama-3.1-70B", "H100"): "not explained; a microbatch of 16 sequences",
    (
        "Llama-3.1-405B",
        "H100",
    ): "10 GB more than the interleaved run beside it; both are told the same",
    ("InternLM-7B", "A800-80GB"): "not explained; the hybrid ZeRO optimizer, not FSDP",
}
LEFT_OUT = """
Not scored: {left_out}. A run that ran is never said to need more than its NPU has by more than 5 %.
"""


def section() -> Iterator[str]:
    """Lines of the section."""
    yield from HEAD.format(n=len(PEAKS), n_rows=N_ROWS).rstrip().split("\n")
    context, fragmented = npu.RANGES["CONTEXT_BYTES"], npu.RANGES["FRAGMENTED_FRACTION"]
    low, high = (bound / BYTES_PER_GB for bound in context)
    yield f"| context | {npu.CONTEXT_BYTES / BYTES_PER_GB:g} GB | {low:g} to {high:g} GB |"
    low, high = fragmented
    yield f"| fragmented | {npu.FRAGMENTED_FRACTION:.0%} | {low:.0%} to {high:.0%} |"
    yield from ERRORS.rstrip().split("\n")
    for publisher in sorted({peak.publisher for peak in PEAKS}):
        yield _errors(publisher, [peak for peak in PEAKS if peak.publisher == publisher])
    yield _errors("all", PEAKS)
    yield from WORST.rstrip().split("\n")
    for peak in sorted(PEAKS, key=lambda one: -abs(one.error))[:6]:
        yield _peak(peak)
    left_out = "; ".join(f"{name} ({why})" for name, why in NOT_SCORED.items())
    yield from LEFT_OUT.format(left_out=left_out).rstrip().split("\n")


def _errors(name: str, peaks: Sequence[MeasuredPeak]) -> str:
    signed = np.array([peak.error for peak in peaks])
    figures = f"{mean_error(peaks):.1%} | {signed.mean():+.1%}"
    return f"| {name} | {len(peaks)} | {figures} | {signed.min():+.0%} to {signed.max():+.0%} |"


def _peak(peak: MeasuredPeak) -> str:
    row = peak.row
    predicted = peak.predicted.memory.total_bytes / BYTES_PER_GB
    npu_name = row["gpu_type"].split(" ")[0]
    why = REASONS.get((row["model"], npu_name), "")
    figures = f"{float(row['peak_memory_GB']):.1f} | {predicted:.1f} | {peak.error:+.0%}"
    return f"| {row['model']}, {row['parallel_style']} | {row['gpus']} | {figures} | {why} |"
