"""What a training run trains and how, where its source leaves something open."""

from __future__ import annotations

import re
from dataclasses import replace

from libra_planner.errors import Fault, SpecError
from libra_planner.inputs.training_runs import TrainingRun
from libra_planner.plan.architectures.names import bundled_model
from libra_planner.workload.defaults import LibraryDefaults
from libra_planner.workload.strategy import PipelineSchedule, Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer

_NEEDED = ("layers", "hidden", "heads")


def run_model(run: TrainingRun) -> Transformer:
    """The bundled model of that name with the row's own figures, else the shape in the row.

    Raises
    ------
    SpecError
        For a model that nobody knows, or that is not modelled, and without a sequence length.
    """
    if re.search("lora", run.model, re.I):
        raise SpecError(Fault("got LoRA", "expected all weights in training: not modelled"))
    published = bundled_model(run.model)
    base = published.transformer
    if base is None and "not modelled" in published.reason:
        raise SpecError(Fault(f"got {run.model}", published.reason, path="model"))
    missing = [name for name in _NEEDED if getattr(run, name) is None]
    if base is None and missing:
        got = f"got {run.model} without {', '.join(missing)}"
        raise SpecError(
            Fault(got, "expected the shape of the model, or a bundled one", path="model")
        )
    if base is None or any(
        getattr(run, name) not in (None, value)
        for name, value in (("hidden", base.hidden), ("heads", base.attention.n_heads))
    ):
        base = _shape(run)
    if run.layers and run.layers != base.n_layers:
        base = base.with_layers(run.layers)
    seq = run.seq or 0
    if not seq:
        raise SpecError(Fault("got no sequence length", "expected seq", path="seq"))
    positions = seq if base.n_positions else 0
    base = replace(base, sequence_tokens=seq, n_positions=positions)
    return replace(base, vocabulary=run.vocab) if run.vocab else base


def _shape(run: TrainingRun) -> Transformer:
    """A GPT where the row says no more than its width, else as Llama."""
    n_layers, hidden, heads = (getattr(run, name) or 1 for name in _NEEDED)
    width, ffn = hidden // heads, run.ffn or 4 * hidden
    is_gpt = run.kv_heads is None and ffn == 4 * hidden
    experts = Experts(run.experts, run.topk or 1, run.moe_ffn or ffn) if run.experts else None
    return Transformer(
        run.model,
        n_layers,
        hidden,
        Attention(heads, run.kv_heads or heads, width, width, has_bias=is_gpt),
        FeedForward(ffn, is_gated=ffn != 4 * hidden, has_bias=is_gpt),
        run.seq or 0,
        vocabulary=run.vocab or 0,
        experts=experts,
        is_tied=is_gpt,
        n_positions=(run.seq or 0) * is_gpt,
        has_norm_bias=is_gpt,
    )


_PRECISIONS = ((r"fp4", "fp4"), (r"fp8", "fp8"), (r"fp16", "fp16"), (r"bf16|^$", "bf16"))


def run_strategy(run: TrainingRun, library: LibraryDefaults) -> tuple[Strategy, tuple[str, ...]]:
    """Degrees, batch, and what a library does where the source says nothing; and what was assumed.

    Raises
    ------
    SpecError
        For degrees that do not make the NPUs, and batches that do not divide.
    """
    tp, cp, dp, pp = _degrees(run)
    batch, microbatch, notes = _batch(run, dp)
    interleave = 1 if pp == 1 else run.vp_interleave or 1
    strategy = Strategy(
        tp=tp,
        cp=cp,
        dp=dp,
        pp=pp,
        ep=run.ep or 1,
        etp=run.etp or 1,
        global_batch=batch,
        microbatch=microbatch,
        interleave=interleave,
        zero=_zero(run, library),
        recompute=_recompute(run, library),
        sequence_parallel=_is_split(run, library) and tp > 1,
        flash_attention=library.flash_attention,
        schedule=PipelineSchedule.ONE_F_ONE_B,
        overlap=replace(library.overlap, p2p=library.overlap.p2p and interleave > 1),
        dtype=_dtype(run.precision),
    )
    return strategy, notes


def _degrees(run: TrainingRun) -> tuple[int, int, int, int]:
    tp, pp, cp = run.tp or 1, run.pp or 1, run.cp or 1
    dp = run.dp or max(1, (run.gpus or tp * pp * cp) // (tp * pp * cp))
    n_npus = tp * cp * dp * pp
    if run.gpus is not None and n_npus != run.gpus:
        got = f"got tp {tp} x cp {cp} x dp {dp} x pp {pp} = {n_npus} on {run.gpus} NPUs"
        raise SpecError(Fault(got, "expected degrees that multiply to them", path="dp"))
    return tp, cp, dp, pp


def _batch(run: TrainingRun, dp: int) -> tuple[int, int, tuple[str, ...]]:
    """Sequences of a step and of a microbatch, and what was assumed."""
    if not run.global_batch:
        fault = Fault("got no global batch", "expected sequences per step", path="global_batch")
        raise SpecError(fault)
    batch, size = run.global_batch, run.microbatch
    notes: tuple[str, ...] = ()
    if not size and run.grad_accum and batch % (dp * run.grad_accum) == 0:
        size = batch // (dp * run.grad_accum)
    if not size:
        size, notes = 1, ("microbatch 1",)
    if batch % (dp * size):
        got = f"got a global batch of {batch}"
        expected = f"expected a multiple of dp {dp} x microbatch {size}"
        raise SpecError(Fault(got, expected, path="global_batch"))
    return batch, size, notes


def _dtype(precision: str) -> str:
    text = precision.casefold()
    return next((name for pattern, name in _PRECISIONS if re.search(pattern, text)), "bf16")


def _is_split(run: TrainingRun, library: LibraryDefaults) -> bool:
    if run.sequence_parallel:
        return run.sequence_parallel.casefold() not in ("no", "false", "0", "off")
    return library.sequence_parallel or "sp" in run.recompute.casefold().split("+")


def _zero(run: TrainingRun, library: LibraryDefaults) -> int:
    text = run.zero.casefold()
    if "fsdp" in text or (run.fsdp_shard or 0) > 1:
        return 3
    stage = re.search(r"zero\W?(\d)", text)
    return int(stage[1]) if stage else library.zero


def _recompute(run: TrainingRun, library: LibraryDefaults) -> Recompute:
    text = run.recompute.casefold()
    if not text:
        return library.recompute
    if text.startswith("none"):
        return Recompute.NONE
    return Recompute.SELECTIVE if text.startswith("selective") else Recompute.FULL
