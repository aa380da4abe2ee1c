"""A training step: the JSON of ``train --json``, text, and cells of a table of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from libra_planner.errors import SpecError
from libra_planner.inputs.training.bands import own_band_fraction, step_band_s, step_class
from libra_planner.inputs.training.memory import RunMemory
from libra_planner.inputs.training.planned import PlannedRun
from libra_planner.plan.steps.strategies import hidden_text
from libra_planner.units import (
    BYTES_PER_GB,
    FLOPS_PER_TFLOPS,
    format_bandwidth,
    format_time,
    gigabytes_per_s,
)
from libra_planner.views.cells import Block, Cell, Table, escape, number, percent, table
from libra_planner.views.plan import band_keys, taper_texts
from libra_planner.views.training.step import PARTS
from libra_planner.workload.memory.npu import Memory
from libra_planner.workload.strategy import Recompute
from libra_planner.workload.transformer import AttentionFlops

NO_CLASS = "no measured class"

_DEGREES = ("tp", "cp", "dp", "pp", "ep", "etp")


def training_payload(run: PlannedRun, attention: AttentionFlops = "full") -> dict[str, Any]:
    """What ``train --json`` prints."""
    one = run.strategy
    degrees = (*_DEGREES, "global_batch", "microbatch", "n_microbatches", "interleave", "zero")
    return {
        "model": _model(run),
        "npu": run.npu_name,
        "n_npus": int(one.n_npus),
        "library": run.library.name,
        "system": run.system.label if run.system else None,
        "parallelism": {name: int(getattr(one, name)) for name in degrees}
        | {
            "recompute": Recompute(int(one.recompute)).name.lower(),
            "sequence_parallel": bool(one.sequence_parallel),
            "schedule": one.schedule.value,
            "dtype": one.dtype,
            "overlap": {x.name: getattr(one.overlap, x.name) for x in fields(one.overlap)},
        },
        "topology": str(run.fabric.network.topology),
        "bandwidth_GBps": [gigabytes_per_s(x) for x in run.fabric.bandwidth_bytes_per_s],
        "step_time_s": run.step_time_s,
        **band_keys(step_band_s(run)),
        "band": step_class(run) if step_band_s(run) else NO_CLASS,
        "tokens_per_step": run.tokens_per_step,
        "tokens_per_s": run.tokens_per_s_per_gpu * int(one.n_npus),
        "tokens_per_s_per_gpu": run.tokens_per_s_per_gpu,
        "attention_flops": attention,
        "model_tflops_per_gpu": run.model_flops_per_gpu(attention) / FLOPS_PER_TFLOPS,
        "hardware_tflops_per_gpu": run.hardware_flops_per_gpu(attention) / FLOPS_PER_TFLOPS,
        "peak_tflops": run.npu.peak_TFLOPps[one.dtype],
        "mfu": run.mfu_fraction(attention),
        "memory_GB": float(run.memory.total_bytes) / BYTES_PER_GB,
        "npu_memory_GB": run.npu_memory_bytes / BYTES_PER_GB,
        "fits": run.fits,
        "would_fit": [list(one.changes) for one in run.would_fit],
        "memory_parts_GB": {name: n / BYTES_PER_GB for name, n in memory_parts(run.memory)},
        "split_s": dict(run.split_s),
        "notes": [*run.notes],
    }


def _model(run: PlannedRun) -> dict[str, Any]:
    model, experts = run.model, run.model.experts
    return {
        "name": model.name,
        "layers": model.n_layers,
        "hidden": model.hidden,
        "heads": model.attention.n_heads,
        "kv_heads": model.attention.n_kv_heads,
        "ffn": model.ffn.width,
        "experts": experts.n if experts else None,
        "topk": experts.topk if experts else None,
        "moe_ffn": experts.width if experts else None,
        "vocab": model.vocabulary,
        "seq": model.sequence_tokens,
        "parameters": model.n_parameters,
        "active_parameters": model.n_active_parameters,
    }


def memory_parts(found: Memory) -> Iterator[tuple[str, float]]:
    """Bytes by what they hold."""
    for one in fields(Memory):
        if one.name.endswith("_bytes"):
            yield one.name.removesuffix("_bytes"), float(getattr(found, one.name))


def training_blocks(run: PlannedRun, attention: AttentionFlops = "full") -> Iterator[Block]:
    """What it takes, of what its time consists, what it holds, and what was assumed."""
    one, model = run.strategy, run.model
    yield (
        f"[bold]{escape(model.name)}[/] ({_parameters(run)}) on {int(one.n_npus):,} "
        f"{run.npu_name}, {one.dtype}, as {run.library.name} runs it"
    )
    yield _strategy_line(run)
    yield f"{run.fabric.network.topology}: {_network(run)}"
    yield _overlap_line(run)
    if run.system is not None:
        yield f"Constants of {escape(run.system.label)}: {run.system.holds}"
    yield ""
    yield f"Step [bold]{format_time(run.step_time_s)}[/] ({_band(run)})"
    if not run.fits:
        yield "[red]WARNING: the model does not fit the memory of its NPUs: see below[/]"
    yield (
        f"[bold]{run.tokens_per_s_per_gpu:,.0f}[/] tokens/s per NPU, "
        f"{run.tokens_per_s_per_gpu * int(one.n_npus):,.0f} in all"
    )
    yield (
        f"{run.model_flops_per_gpu(attention) / FLOPS_PER_TFLOPS:,.0f} TFLOP/s of the model per "
        f"NPU{_again(run, attention)}, [bold]MFU {run.mfu_fraction(attention):.1%}[/] of "
        f"{run.npu.peak_TFLOPps[one.dtype]:,.0f}; {attention} attention is counted"
    )
    yield ""
    yield _split_table(run.split_s, run.step_time_s)
    yield ""
    yield _memory_table(run)
    yield _verdict(run)
    if run.notes:
        yield f"Assumed: {escape('; '.join(run.notes))}"


def _again(run: PlannedRun, attention: AttentionFlops) -> str:
    """FLOP/s with what is computed twice, where anything is."""
    if not int(run.strategy.recompute):
        return ""
    flops = run.hardware_flops_per_gpu(attention) / FLOPS_PER_TFLOPS
    return f" ({flops:,.0f} with what is computed again)"


def _band(run: PlannedRun) -> str:
    band_s = step_band_s(run)
    if band_s is None:
        return f"no range: too few runs of {step_class(run)} are published"
    low, high = map(format_time, band_s)
    whose = "published " if own_band_fraction(run) is None else ""
    return f"{low} to {high}, as {whose}runs of {step_class(run)} are off"


def _parameters(run: PlannedRun) -> str:
    total = f"{run.model.n_parameters / 1e9:,.4g}B parameters"
    active = f", {run.model.n_active_parameters / 1e9:,.4g}B of them active"
    return total + (active if run.model.experts else "")


def _strategy_line(run: PlannedRun) -> str:
    one = run.strategy
    degrees = [f"{name} {int(getattr(one, name))}" for name in _DEGREES if getattr(one, name) > 1]
    named = {0: "no recomputation", 1: "selective recomputation", 2: "full recomputation"}
    pipeline = f", {one.interleave} chunks per stage" if one.interleave > 1 else ""
    schedule = f", {one.schedule.value}{pipeline}" if one.pp > 1 else ""
    return (
        f"{', '.join(degrees) or 'one NPU'}{schedule}; {int(one.global_batch):,} sequences of "
        f"{run.model.sequence_tokens:,} in {int(one.n_microbatches):,} "
        f"microbatch{'es' * (int(one.n_microbatches) > 1)} of "
        f"{int(one.microbatch)}; ZeRO {one.zero}, {named[int(one.recompute)]}"
        f"{', sequence parallel' if one.sequence_parallel else ''}"
    )


def _overlap_line(run: PlannedRun) -> str:
    """What of communication hides behind compute where there is enough of it."""
    one = run.strategy
    used = [name for name in ("tp", "cp", "ep", "dp") if getattr(one, name) > 1]
    shares = [hidden_text(one, name) for name in used]
    sends = [f"sends {'100%' if one.overlap.p2p else '0%'}"] if one.pp > 1 else []
    return f"Hides behind compute, as far as there is enough: {', '.join(shares + sends) or 'none'}"


def _network(run: PlannedRun) -> str:
    speeds = map(format_bandwidth, run.fabric.bandwidth_bytes_per_s)
    texts = taper_texts(run.fabric.network.topology, run.fabric.bandwidth_bytes_per_s)
    taper = next((f"taper {text}" for text in texts if text), "no taper")
    return f"{', '.join(speeds)} per NPU, one direction, {taper}; collectives as NCCL runs them"


def _split_table(split_s: Mapping[str, float], step_time_s: float) -> Table:
    least = 5e-4 * step_time_s
    rows = [
        (PARTS[name], format_time(seconds), percent(seconds / step_time_s), share)
        for name, seconds in split_s.items()
        if abs(seconds) > least
        for share in [Cell(max(0.0, seconds / step_time_s))]
    ]
    headings = ("step", "time", "share", " ")
    return table("", "", headings, rows, left=("step", " "), bar=" ")


def _memory_table(run: PlannedRun) -> Table:
    total = float(run.memory.total_bytes)
    rows = [
        (name, number(n / BYTES_PER_GB), percent(n / total), Cell(n / total))
        for name, n in memory_parts(run.memory)
        if n > 1e-3 * total
    ]
    headings = ("memory", "GB", "share", " ")
    return table("", "", headings, rows, left=("memory", " "), bar=" ")


def _verdict(run: PlannedRun) -> str:
    needed, room = float(run.memory.total_bytes), run.npu_memory_bytes
    stage = f" on stage {int(run.memory.stage)}" if run.strategy.pp > 1 else ""
    of = f"the {room / BYTES_PER_GB:,.1f} GB of an NPU"
    if run.fits:
        return f"{needed / BYTES_PER_GB:,.1f} GB{stage} fits {of}"
    fixes = [" and ".join(one.changes) for one in run.would_fit]
    would = ", or with ".join(fixes) or "NPUs with more memory, or more NPUs"
    over = (needed - room) / BYTES_PER_GB
    return (
        f"{needed / BYTES_PER_GB:,.1f} GB{stage} [bold]does not fit[/] {of}: {over:,.1f} GB too "
        f"much. It would fit with {would}"
    )


def run_cells(
    run: PlannedRun | SpecError, memory: RunMemory | None = None
) -> tuple[str, str, str, str]:
    """What a table of runs gains: time, tokens/s, memory, and what was assumed or is missing.

    Parameters
    ----------
    run : with its time, or why it has none.
    memory : of a run without a time, where that is known.
    """
    if isinstance(run, SpecError):
        missing = "; ".join(str(replace(one, path="")) for one in run.faults)
        if memory is None:
            return "", "", "", missing
        size_GB = f"{float(memory.memory.total_bytes) / BYTES_PER_GB:.6g}"
        return "", "", size_GB, f"{missing}; for the memory assumed: {'; '.join(memory.notes)}"
    figures = (
        run.step_time_s,
        run.tokens_per_s_per_gpu,
        float(run.memory.total_bytes) / BYTES_PER_GB,
    )
    time_s, rate, size_GB = (f"{x:.6g}" for x in figures)
    room_GB = run.npu_memory_bytes / BYTES_PER_GB
    over = "" if run.fits else f"does not fit the {room_GB:.6g} GB of an NPU"
    assumed = f"assumed: {'; '.join(run.notes)}" if run.notes else ""
    return time_s, rate, size_GB, "; ".join(filter(None, (over, assumed)))
