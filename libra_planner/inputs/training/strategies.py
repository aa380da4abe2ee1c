"""What a training run trains and how, where its source leaves something open."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from libra_planner.errors import Fault, SpecError, closest, nearest_divisors, refuse
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.plan.architectures.names import bundled_model
from libra_planner.plan.workloads import load_transformer
from libra_planner.reading import bundled
from libra_planner.step.pipeline import batch_fault
from libra_planner.workload.defaults import LibraryDefaults
from libra_planner.workload.placement import one_other_degree
from libra_planner.workload.strategy import PipelineSchedule, Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer

_NEEDED = ("layers", "hidden", "heads")
_ALL_LAYERS = 3
"""ZeRO stage that gathers weights."""

_USUAL_CHUNKS = 2
"""Of a stage, where a schedule is interleaved and nobody says into how many."""

Notes = tuple[str, ...]
"""What was assumed, for people."""


def run_model(run: TrainingRun, *, is_row: bool = True) -> tuple[Transformer, Notes]:
    """The bundled model of that name with the run's own figures, else the shape in the run.

    Parameters
    ----------
    is_row : of a table: its model is no path, its sequence length is never a model's own, and
        notes tell where its figures are not those of the model. Else these are refused.

    Raises
    ------
    SpecError
        For a model that nobody knows, or that is not modelled, without a sequence length, and for
        a shape that is impossible or not that of the model.
    """
    base, reason = _named_model(run.model, may_be_path=not is_row)
    if "not modelled" in reason:
        raise SpecError(Fault(f"got {run.model}", f"expected another model: {reason}"))
    missing = [name for name in _NEEDED if getattr(run, name) is None]
    if base is None and missing:
        got = f"got {run.model or 'no model'} without {', '.join(missing)}"
        expected = "expected a bundled transformer, or its shape"
        known = [one for one in bundled.names("workloads") if not one.endswith("-libra")]
        fix = closest(run.model, known) if run.model else ""
        fix = fix or "'libra-planner list workloads' has those that are there"
        raise SpecError(Fault(got, expected, fix, path="model"))
    others = () if base is None else tuple(_other_widths(run, base))
    shape = _shape(run, base) if base is None or others else _with_figures(base, run)
    wrong = (*others, *_unused(run, shape), *_impossible(shape))
    if not is_row:
        refuse(wrong)
    model, notes = _with_sequence(shape, run, is_row=is_row)
    own = (f"a plain shape of the row's own, not the bundled {model.name}",) * bool(others)
    both = {"ffn"} if run.moe_ffn else set[str]()  # As files of models of experts have it.
    told = (str(replace(one, fix="")) for one in wrong if one.path not in both)
    return model, (*own, *told, *notes)


def _other_widths(run: TrainingRun, base: Transformer) -> Iterator[Fault]:
    """Widths of a run that are not those of the model that it names."""
    fix = "leave --model out for a shape of your own, or write a workload file: init --workload"
    for name, value in (("hidden", base.hidden), ("heads", base.attention.n_heads)):
        given = getattr(run, name)
        if given not in (None, value):
            what = f"{run.model} has {value:,}{' heads' * (name == 'heads')}"
            yield Fault(f"got {given:,}", what, fix, name)


def _unused(run: TrainingRun, model: Transformer) -> Iterator[Fault]:
    """Figures of a run for which its model has no place."""
    reasons, experts = {}, model.experts
    if experts is None:
        reasons = dict.fromkeys(("experts", "topk", "moe_ffn"), "has no experts")
    elif not model.ffn.width and run.ffn != experts.width:
        reasons["ffn"] = "has experts in every layer, whose width is moe_ffn"
    if model.attention.is_latent and run.kv_heads != model.attention.n_heads:
        reasons["kv_heads"] = "has latent attention, which compresses keys and values of all heads"
    for name, reason in reasons.items():
        if getattr(run, name):
            fix = "leave it out"
            yield Fault(f"got {getattr(run, name):,}", f"{run.model} {reason}", fix, name)


def _impossible(model: Transformer) -> Iterator[Fault]:
    attention, experts = model.attention, model.experts
    if attention.n_heads % attention.n_kv_heads:
        expected = f"expected a divisor of the {attention.n_heads} heads"
        yield Fault(f"got {attention.n_kv_heads}", expected, path="kv_heads")
    if experts is not None and experts.topk > experts.n:
        expected = f"expected at most the {experts.n} experts"
        yield Fault(f"got {experts.topk}", expected, path="topk")


def _named_model(name: str, *, may_be_path: bool) -> tuple[Transformer | None, str]:
    """The model of a name, or why there is none."""
    if may_be_path and bundled.is_path(name):
        return load_transformer(Path(name)), ""
    published = bundled_model(name)
    return published.transformer, published.reason


def _with_sequence(
    base: Transformer, run: TrainingRun, *, is_row: bool
) -> tuple[Transformer, Notes]:
    if run.layers and run.layers != base.n_layers:
        base = base.with_layers(run.layers)
    seq = run.seq or (0 if is_row else base.sequence_tokens)
    if not seq:
        raise SpecError(Fault("got no sequence length", "expected seq", path="seq"))
    notes = () if run.seq else (f"sequences of {seq:,} tokens, the model's own",)
    positions = seq if base.n_positions else 0
    base = replace(base, sequence_tokens=seq, n_positions=positions)
    return (replace(base, vocabulary=run.vocab) if run.vocab else base), notes


def _with_figures(base: Transformer, run: TrainingRun) -> Transformer:
    """A bundled model with the widths and experts that the run says."""
    attention = base.attention
    if run.kv_heads and run.kv_heads != attention.n_kv_heads:
        attention = replace(attention, n_kv_heads=run.kv_heads)
    ffn, experts = base.ffn, base.experts
    if run.ffn and ffn.width and run.ffn != ffn.width:
        ffn = replace(ffn, width=run.ffn)
    if experts is not None:
        own = (run.experts or experts.n, run.topk or experts.topk, run.moe_ffn or experts.width)
        experts = replace(experts, n=own[0], topk=own[1], width=own[2])
    return replace(base, attention=attention, ffn=ffn, experts=experts)


def _shape(run: TrainingRun, named: Transformer | None) -> Transformer:
    """A GPT where the run says no more than its width, else as Llama."""
    hidden = run.hidden or (named.hidden if named else 1)
    heads = run.heads or (named.attention.n_heads if named else 1)
    layers = run.layers or (named.n_layers if named else 1)
    if hidden % heads:
        fault = Fault(f"got {heads} heads of hidden {hidden}", "expected a divisor", path="heads")
        raise SpecError(fault)
    width, ffn = hidden // heads, run.ffn or 4 * hidden
    is_gpt = run.kv_heads is None and ffn == 4 * hidden
    experts = Experts(run.experts, run.topk or 1, run.moe_ffn or ffn) if run.experts else None
    return Transformer(
        run.model or "own shape",
        layers,
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
_KNOWN_PRECISION = r"fp4|fp8|fp16|bf16"
_KNOWN_SCHEDULE = r"1f1b|^zb|zero.?bubble|^v-|^interleaved"
_ZERO_BUBBLE = re.compile(r"^zb|zero.?bubble|^v-", re.I)
_CHUNKS = re.compile(r"vpp\W?(\d+)", re.I)


def run_strategy(
    run: TrainingRun, library: LibraryDefaults, n_heads: int | None = None
) -> tuple[Strategy, Notes]:
    """Degrees, batch, and what a library does where the source says nothing; and what was assumed.

    Raises
    ------
    SpecError
        For degrees that do not make the NPUs.
    """
    tp, cp, dp, pp, of_degrees = _degrees(run, n_heads)
    zero = _zero(run, library)
    schedule, chunks, of_schedule = _schedule(run, pp)
    n_parts = pp if zero == _ALL_LAYERS else 1
    batch, microbatch, of_batch = _batch(run, dp, n_parts)
    strategy = Strategy(
        tp=tp,
        cp=cp,
        dp=dp,
        pp=pp,
        ep=run.ep or 1,
        etp=run.etp or (tp if library.splits_experts and run.ep else 1),
        global_batch=batch,
        microbatch=microbatch,
        interleave=chunks,
        zero=zero,
        recompute=_recompute(run, library),
        sequence_parallel=_is_split(run, library) and tp > 1,
        flash_attention=library.flash_attention,
        schedule=schedule,
        overlap=replace(library.overlap, p2p=library.overlap.p2p and chunks > 1),
        dtype=_dtype(run.precision),
    )
    return strategy, (*of_degrees, *_defaulted(run, strategy), *of_schedule, *of_batch)


def refuse_undivided_batch(strategy: Strategy) -> None:
    """Refuse sequences of a step that replicas and microbatches of one strategy do not divide.

    Raises
    ------
    SpecError
        With numbers that the whole schedule divides.
    """
    one = strategy
    n_stages = int(one.pp) if one.interleave > 1 else 1
    if fault := batch_fault(int(one.global_batch), int(one.dp), int(one.microbatch), n_stages):
        raise SpecError(fault)


def _degrees(run: TrainingRun, n_heads: int | None) -> tuple[int, int, int, int, Notes]:
    tp, pp, cp = run.tp or 1, run.pp or 1, run.cp or 1
    dp = run.dp or max(1, (run.gpus or tp * pp * cp) // (tp * pp * cp))
    notes: Notes = ()
    if cp > 1 and dp % cp == 0 and tp * dp * pp == run.gpus:
        dp, notes = dp // cp, (f"dp {dp} counts cp {cp}",)
    n_npus, degrees = tp * cp * dp * pp, (("tp", tp), ("cp", cp), ("pp", pp))
    if run.gpus is not None and n_npus != run.gpus:
        if not run.dp:
            refuse(_undivided(run.gpus, dict(degrees), n_heads))
        got = f"got tp {tp} x cp {cp} x dp {dp} x pp {pp} = {n_npus} on {run.gpus} NPUs"
        path = "dp" if run.dp else "gpus"
        fix = one_other_degree({"tp": tp, "cp": cp, "dp": dp, "pp": pp}, run.gpus)
        raise SpecError(Fault(got, "expected degrees that multiply to them", fix, path=path))
    return tp, cp, dp, pp, notes


def _undivided(n_npus: int, degrees: Mapping[str, int], n_heads: int | None) -> Iterator[Fault]:
    """Degrees that do not divide the NPUs, each with the nearest that do beside the others.

    Of TP those that divide the heads, too, where they are known.
    """
    left = n_npus
    for degree in degrees.values():
        left //= degree if left % degree == 0 else 1
    for name, degree in degrees.items():
        if n_npus % degree:
            of = math.gcd(left, n_heads) if name == "tp" and n_heads else left
            fix = nearest_divisors(name, degree, of)
            if fix != nearest_divisors(name, degree, left):  # The heads leave out the nearest.
                others = math.prod(degrees.values())
                fix += f", or gpus {max(1, round(n_npus / others)) * others}"
            yield Fault(
                f"got {name} {degree}", f"expected a divisor of the {n_npus:,} NPUs", fix, name
            )


def _schedule(run: TrainingRun, pp: int) -> tuple[PipelineSchedule, int, Notes]:
    """Order of microbatches and chunks of a stage, and what was assumed."""
    text = run.schedule.casefold()
    chunks = _CHUNKS.search(text)
    usual = _USUAL_CHUNKS if "interleaved" in text else 1
    interleave = run.vp_interleave or (int(chunks[1]) if chunks else usual)
    interleave = 1 if pp == 1 else interleave
    if text in list(PipelineSchedule):
        return PipelineSchedule(text), interleave, ()
    if _ZERO_BUBBLE.search(text):
        note = f"schedule {run.schedule!r} is read as zb-h1"
        return PipelineSchedule.ZERO_BUBBLE_H1, 1, (note,)
    return PipelineSchedule.ONE_F_ONE_B, interleave, ()


def _batch(run: TrainingRun, dp: int, n_parts: int) -> tuple[int, int, Notes]:
    """Sequences of a step and of a microbatch, and what was assumed.

    Parameters
    ----------
    n_parts : that a batch of a rank is split into: PyTorch's with FSDP into as many as stages.
    """
    batch, size = run.global_batch, run.microbatch
    notes: Notes = ()
    if not batch and size and run.grad_accum:
        batch = dp * size * run.grad_accum
    if not batch:
        fault = Fault("got no global batch", "expected sequences per step", path="global_batch")
        raise SpecError(fault)
    if not size and run.grad_accum and batch % (dp * run.grad_accum) == 0:
        size = batch // (dp * run.grad_accum)
    if not size:
        size, notes = 1, ("microbatches of 1",)
    if n_parts > 1 and size > 1:
        size = max(1, size // n_parts)
        notes = (f"microbatches of {size}, of a rank's batch split over {n_parts} stages",)
    return batch, size, notes


_RECOMPUTED = ("no", "selective", "full")


def _defaulted(run: TrainingRun, strategy: Strategy) -> Notes:
    """What a run leaves open, and what is taken for it."""
    notes = []
    if not run.recompute:
        notes.append(f"{_RECOMPUTED[int(strategy.recompute)]} recomputation")
    if not run.zero and strategy.dp > 1:
        notes.append(f"ZeRO {strategy.zero}")
    if not run.vp_interleave and strategy.pp > 1:
        notes.append(f"chunks of layers per stage: {strategy.interleave}")
    if not run.etp and strategy.ep > 1:
        notes.append(f"etp {strategy.etp}")
    if not re.search(_KNOWN_PRECISION, run.precision, re.I):
        said = f", as {run.precision!r} is not known" if run.precision else ""
        notes.append(f"{strategy.dtype}{said}")
    if run.schedule and not re.search(_KNOWN_SCHEDULE, run.schedule, re.I):
        notes.append(f"1f1b, as the schedule {run.schedule!r} is not known")
    return tuple(notes)


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
        return _ALL_LAYERS
    stage = re.search(r"(?:zero)?\W?(\d)", text)
    return int(stage[1]) if stage else library.zero


def _recompute(run: TrainingRun, library: LibraryDefaults) -> Recompute:
    text = run.recompute.casefold()
    if not text:
        return library.recompute
    if re.match(r"no|false|off|0", text):
        return Recompute.NONE
    whole = re.match(r"full|yes|true|on\b|1|uniform|block|all", text)
    return Recompute.FULL if whole else Recompute.SELECTIVE
