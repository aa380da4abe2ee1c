"""A slow, obvious twin of ``libra_planner.workload.memory.npu``: loops over tensors, layers and events.

It shares nothing with the core but the library's bytes and the two constants of the reserve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from libra_planner.workload.memory.habits import MemoryHabits
from libra_planner.workload.memory.npu import CONTEXT_BYTES, FRAGMENTED_FRACTION
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Experts, Transformer


def fullest(model: Transformer, strategy: Strategy, habits: MemoryHabits) -> tuple[float, int]:
    """Bytes of the fullest stage, and which it is; the first of equally full ones."""
    totals = [stage_bytes(model, strategy, habits, i) for i in range(strategy.pp)]
    return max(totals), totals.index(max(totals))


def stage_bytes(model: Transformer, s: Strategy, habits: MemoryHabits, stage: int) -> float:
    """Bytes of one stage."""
    layers = [layer for chunk in _chunks(model, s)[stage :: s.pp] for layer in chunk]
    n_layers = max(len(layers), 1)
    if stage == s.pp - 1:
        layers += [model.experts is not None] * model.n_mtp
    dense = sum(_dense_parameters(model, s, layer) for layer in layers)
    if stage == s.pp - 1:
        dense += model.n_mtp * 2 * model.hidden**2 / s.tp
    experts = sum(_routed_parameters(model, s) for layer in layers if layer)
    ends = _end_parameters(model, s, stage)
    states = 0.0
    for bytes_each, first_zero in (
        (habits.weights_bytes, 3),
        (habits.gradients_bytes, 2),
        (habits.optimizer_bytes, 1),
    ):
        states += bytes_each * _kept_parameters(s, dense + ends, experts, s.zero >= first_zero)
    if "fp8" in s.dtype:
        states += habits.fp8_copies_bytes * (dense + experts)
    kept = _peak_of_stage(model, s, habits, stage)
    step = habits.step_bytes * _kept_parameters(s, dense + ends, experts, s.zero >= 1)
    work = _work(model, s, habits, stage, layers)
    sent = _sent(model, s)
    if s.zero == 3:
        sent += _gathered(model, s, habits, (dense, experts, ends), n_layers)
    running = kept + max(work, step - kept)
    return states + running + sent + CONTEXT_BYTES + FRAGMENTED_FRACTION * running


def _kept_parameters(s: Strategy, dense: float, experts: float, cut: bool) -> float:
    if not cut:
        return dense + experts
    return dense / (s.dp * s.cp) + experts / (s.tp * s.cp * s.dp // (s.etp * s.ep))


def _tokens(model: Transformer, s: Strategy) -> float:
    return s.microbatch * model.sequence_tokens / s.cp


def _end_parameters(model: Transformer, s: Strategy, stage: int) -> float:
    table, found = model.vocabulary * model.hidden / s.tp, 0.0
    if stage == 0:
        found += table + model.n_positions * model.hidden
    if stage == s.pp - 1 and not (stage == 0 and model.is_tied):
        found += table
    return found


def _peak_of_stage(model: Transformer, s: Strategy, habits: MemoryHabits, stage: int) -> float:
    """The most that waits for the backward pass."""
    tokens, sequence = _tokens(model, s), (s.tp if s.sequence_parallel else 1)
    of_chunks = [
        sum(tokens * _kept(model, s, habits, layer, s.recompute) for layer in chunk)
        for chunk in _chunks(model, s)[stage :: s.pp]
    ]
    if stage == 0 and model.vocabulary and _has_dropout(model):
        of_chunks[0] += tokens * model.hidden / sequence
    found = _peak(s, stage, of_chunks)
    if stage == s.pp - 1:
        mtp = _kept(model, s, habits, model.experts is not None, s.recompute)
        found += model.n_mtp * tokens * mtp
        if model.vocabulary:
            gathered = 1 if habits.keeps_gathered_inputs else sequence
            found += tokens * model.hidden * (2 / sequence + 2 / gathered)
    return found


def _work(
    model: Transformer, s: Strategy, habits: MemoryHabits, stage: int, layers: list[bool]
) -> float:
    """The larger of the loss and of a layer in its backward pass."""
    tokens, most = _tokens(model, s), 0.0
    if stage == s.pp - 1:
        logits = tokens * model.vocabulary / s.tp * (1 + model.n_mtp)
        most = logits * habits.logits_bytes
    for layer in layers:
        again = _kept(model, s, habits, layer, Recompute.NONE)
        again -= _kept(model, s, habits, layer, s.recompute)
        most = max(most, tokens * (max(again, 0.0) + _gradients(model, s, layer)))
    return most


def _sent(model: Transformer, s: Strategy) -> float:
    """Gathered tokens; a microbatch that comes and one that goes."""
    tokens, found = _tokens(model, s), 0.0
    if s.sequence_parallel and s.tp > 1:
        found += 2 * tokens * model.hidden
    if s.pp > 1:
        found += 2 * 2 * tokens * model.hidden / (s.tp if s.sequence_parallel else 1)
    return found


def _gathered(
    model: Transformer,
    s: Strategy,
    habits: MemoryHabits,
    parameters: tuple[float, float, float],
    n_layers: int,
) -> float:
    dense, experts, ends = parameters
    if s.dp * s.cp == 1:
        dense = ends = 0.0
    if s.tp * s.cp * s.dp <= s.etp * s.ep:
        experts = 0.0
    both = habits.gathered_bytes + habits.gathered_gradients_bytes
    if s.pp > 1 and habits.keeps_gathered_in_pipelines:
        return both * (dense + experts + ends)
    unit = max((dense + experts) / n_layers, min(model.vocabulary * model.hidden / s.tp, ends))
    return (both + habits.gathered_bytes) * unit


def _chunks(model: Transformer, s: Strategy) -> list[list[bool]]:
    """Layers of every chunk, in the model's order: whether they have experts.

    The model has as many more layers as make all stages full.
    """
    n_chunks = s.pp * s.interleave
    a_chunk = math.ceil(model.n_layers / n_chunks)
    has_experts = [
        model.experts is not None and layer >= model.n_dense_layers
        for layer in range(a_chunk * n_chunks)
    ]
    return [has_experts[chunk * a_chunk :][:a_chunk] for chunk in range(n_chunks)]


def _peak(s: Strategy, stage: int, chunk_bytes: list[float]) -> float:
    """Run the stage's forward and backward passes, one by one, and note the most that is kept."""
    kept, most = 0.0, 0.0
    for is_forward, chunk in _events(s, stage):
        if is_forward:
            kept += chunk_bytes[chunk]
            most = max(most, kept)
        else:
            kept -= chunk_bytes[chunk]
    return most


def _events(s: Strategy, stage: int) -> Iterator[tuple[bool, int]]:
    """Forward passes and backward passes of a stage, as Megatron orders them."""
    v, p = s.interleave, s.pp
    n = v * max(s.global_batch // (s.dp * s.microbatch), 1)
    forward = [(k // p) % v for k in range(n)]
    backward = [v - 1 - chunk for chunk in forward]
    warm_up = (p - stage - 1) if v == 1 else 2 * (p - stage - 1) + (v - 1) * p
    warm_up = min(warm_up, n)
    for k in range(warm_up):
        yield True, forward[k]
    for k in range(n - warm_up):
        yield True, forward[warm_up + k]
        yield False, backward[k]
    for k in range(n - warm_up, n):
        yield False, backward[k]


def _has_dropout(model: Transformer) -> bool:
    return model.attention.has_bias and model.ffn.has_bias


def _dense_parameters(model: Transformer, s: Strategy, layer: bool) -> float:
    """All matrices, biases and norms of a layer but its routed experts, one by one."""
    a, h, t = model.attention, model.hidden, s.tp
    keys_t = min(t, a.n_kv_heads)
    found = 0.0
    if a.kv_rank:
        if a.q_rank:
            found += h * a.q_rank / t + a.q_rank * a.n_heads * a.head_dim / t
        else:
            found += h * a.n_heads * a.head_dim / t
        found += h * (a.kv_rank + a.rope_dim) / t
        found += a.kv_rank * a.n_heads * (a.head_dim - a.rope_dim + a.head_dim_v) / t
        found += (a.q_rank + a.kv_rank) / t
    else:
        found += h * a.n_heads * a.head_dim / t
        found += h * a.n_kv_heads * a.head_dim / keys_t + h * a.n_kv_heads * a.head_dim_v / keys_t
    found += a.n_heads * a.head_dim_v * h / t
    if a.has_bias:
        found += (a.n_heads * a.head_dim + a.n_kv_heads * (a.head_dim + a.head_dim_v) + h) / t
    if a.has_qk_norm:
        found += 2 * a.head_dim / t
    found += (1 if model.is_parallel else 2) * h * (2 if model.has_norm_bias else 1)
    if layer and model.experts is not None:
        x = model.experts
        found += h * x.n + x.n * x.has_bias
        found += (3 if x.is_gated else 2) * h * x.shared_width / t
        if x.has_bias and x.shared_width:
            found += ((2 if x.is_gated else 1) * x.shared_width + h) / t
        return found
    f = model.ffn
    found += (3 if f.is_gated else 2) * h * f.width / t
    if f.has_bias:
        found += ((2 if f.is_gated else 1) * f.width + h) / t
    return found


def _routed_parameters(model: Transformer, s: Strategy) -> float:
    x = model.experts
    assert x is not None
    one = (3 if x.is_gated else 2) * model.hidden * x.width
    if x.has_bias:
        one += (2 if x.is_gated else 1) * x.width + model.hidden
    return x.n * one / (s.ep * s.etp)


def _kept(
    model: Transformer, s: Strategy, habits: MemoryHabits, layer: bool, recompute: int
) -> float:
    """Bytes per token of a rank that a layer keeps, tensor by tensor."""
    if recompute == Recompute.FULL:
        return 2 * model.hidden / (s.tp if s.sequence_parallel else 1)
    if recompute == Recompute.SELECTIVE and habits.keeps_matmuls:
        return sum(_kept_multiplies(model, s, layer))
    g = 1 if habits.keeps_fp8_inputs and "fp8" in s.dtype else 2
    found = sum(_kept_attention(model, s, habits, g))
    if not s.flash_attention and recompute == Recompute.NONE:
        scores = model.attention.n_heads * model.sequence_tokens / s.tp
        found += 2 * scores
        if _has_dropout(model):
            found += scores + 2 * scores
    a = model.attention
    if s.flash_attention and recompute == Recompute.SELECTIVE and a.is_latent:
        found -= 2 * a.n_heads * a.head_dim / s.tp
        found -= 2 * a.n_kv_heads * (a.head_dim + a.head_dim_v) / min(s.tp, a.n_kv_heads)
        found -= g * (a.q_rank + a.kv_rank) / (s.tp if s.sequence_parallel else 1)
    if layer and model.experts is not None:
        return found + sum(_kept_experts(model, s, model.experts, g))
    return found + sum(_kept_feed_forward(model, s, habits, g))


def _kept_multiplies(model: Transformer, s: Strategy, layer: bool) -> Iterator[float]:
    a, h, t = model.attention, model.hidden, s.tp
    sequence = t if s.sequence_parallel else 1
    yield 2 * h / sequence
    yield 2 * a.n_heads * a.head_dim / t
    yield 2 * a.n_kv_heads * a.head_dim_v / min(t, a.n_kv_heads)
    yield 2 * a.n_heads * a.head_dim_v / t
    x = model.experts if layer else None
    if x is None:
        yield 2 * model.ffn.width / t
        yield 2 * h / sequence
        return
    yield 2 * x.topk * h * s.etp / sequence
    yield 2 * x.topk * (x.width + h) / sequence
    yield 2 * x.shared_width / t


def _kept_attention(
    model: Transformer, s: Strategy, habits: MemoryHabits, g: int
) -> Iterator[float]:
    a, h, t = model.attention, model.hidden, s.tp
    sequence = t if s.sequence_parallel else 1
    keys_t = min(t, a.n_kv_heads)
    yield 2 * h / sequence
    yield g * h / (1 if habits.keeps_gathered_inputs else sequence)
    if a.kv_rank:
        yield 2 * a.q_rank / sequence
        yield 2 * (a.kv_rank + a.rope_dim) / sequence
        yield g * a.q_rank / sequence
        yield g * a.kv_rank / sequence
    yield 2 * a.n_heads * a.head_dim / t
    yield 2 * a.n_kv_heads * a.head_dim / keys_t
    yield 2 * a.n_kv_heads * a.head_dim_v / keys_t
    if a.has_qk_norm:
        yield 2 * a.n_heads * a.head_dim / t
        yield 2 * a.n_kv_heads * a.head_dim / keys_t
    yield g * a.n_heads * a.head_dim_v / t
    if _has_dropout(model):
        yield h / sequence


def _kept_experts(model: Transformer, s: Strategy, x: Experts, g: int) -> Iterator[float]:
    h, t = model.hidden, s.tp
    sequence = t if s.sequence_parallel else 1
    yield from (2 * h / sequence, 2 * h / sequence, 4 * x.n / sequence, 4 * x.n / sequence)
    yield g * x.topk * h * s.etp / sequence
    yield 2 * (2 if x.is_gated else 1) * x.topk * x.width / sequence
    yield g * x.topk * x.width / sequence
    yield 2 * x.topk * h / sequence
    yield 2 * (2 if x.is_gated else 1) * x.shared_width / t
    yield g * x.shared_width / t


def _kept_feed_forward(
    model: Transformer, s: Strategy, habits: MemoryHabits, g: int
) -> Iterator[float]:
    h, f = model.hidden, model.ffn
    sequence = s.tp if s.sequence_parallel else 1
    if not model.is_parallel:
        yield 2 * h / sequence
        yield g * h / (1 if habits.keeps_gathered_inputs else sequence)
    yield 2 * (2 if f.is_gated else 1) * f.width / s.tp
    yield g * f.width / s.tp
    if _has_dropout(model):
        yield h / sequence


def _gradients(model: Transformer, s: Strategy, layer: bool) -> float:
    """Bytes per token of gradients that are at work: output, activation output and input."""
    sequence = s.tp if s.sequence_parallel else 1
    x = model.experts if layer else None
    if x is not None:
        return 2 * x.topk * (model.hidden + (3 if x.is_gated else 2) * x.width) / sequence
    inner = 2 * (3 if model.ffn.is_gated else 2) * model.ffn.width / s.tp
    return 2 * model.hidden / sequence + inner
