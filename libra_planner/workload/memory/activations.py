"""Activations that a layer keeps for its backward pass, tensor by tensor (C19)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.workload.memory.habits import MemoryHabits
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Experts, FeedForward, Transformer

ACTIVATION_BYTES = 2
"""Of one number: activations are bf16 or fp16."""
_FP32_BYTES = 4
_MASK_BYTES = 1
"""Of one number of a dropout's mask."""


class Split(IntEnum):
    """What divides a tensor among ranks."""

    SEQUENCE = 0
    """tp with sequence parallelism, nothing without."""
    TENSOR = 1
    """tp."""
    KEYS = 2
    """tp, but never below a whole head of keys and values."""
    GATHERED = 3
    """As SEQUENCE, times etp: tokens that all ranks of an expert have."""
    SCORES = 4
    """tp; for each token of the sequence."""
    INPUT = 5
    """As SEQUENCE, or nothing where a library keeps inputs as they were gathered."""


class Tensor(NamedTuple):
    """A tensor that waits for the backward pass.

    Parameters
    ----------
    name : what it is.
    bytes_per_token : before it is divided (of SCORES: per pair of tokens).
    split : what divides it.
    """

    name: str
    bytes_per_token: float
    split: Split


def has_dropout(model: Transformer) -> bool:
    """Whether a model is trained with dropout: those with biases everywhere, as GPT-2 and GPT-3."""
    return model.attention.has_bias and model.ffn.has_bias


def layer_tensors(
    model: Transformer, strategy: Strategy, habits: MemoryHabits, *, has_experts: bool
) -> tuple[Tensor, ...]:
    """All that a layer keeps when nothing is computed again, the layer's input first.

    GPT's are those of Korthikanti et al. (arXiv 2205.05198, section 4): 34 bytes per token and
    unit of width, and 5 per pair of tokens and head.

    Parameters
    ----------
    model : its shape.
    strategy : its dtype and kernel of attention.
    habits : what is kept in fp8.
    has_experts : a layer with experts, else a dense one.

    Examples
    --------
    >>> from libra_planner.workload.memory.habits import MEGATRON_MEMORY
    >>> from libra_planner.workload.transformer import Attention
    >>> gpt = Transformer("gpt", 1, 64, Attention(4, 4, 16, 16, has_bias=True),
    ...                   FeedForward(256, has_bias=True), 128)
    >>> tensors = layer_tensors(gpt, Strategy(), MEGATRON_MEMORY, has_experts=False)
    >>> sum(tensor.bytes_per_token for tensor in tensors) / 64
    34.0
    """
    is_fp8 = habits.keeps_fp8_inputs and "8" in strategy.dtype
    input_bytes = 1 if is_fp8 else ACTIVATION_BYTES
    attention = _attention(model, input_bytes, has_scores=not strategy.flash_attention)
    if has_experts and model.experts is not None:
        return *attention, *_experts(model, model.experts, input_bytes)
    return *attention, *_feed_forward(model, input_bytes)


def _attention(model: Transformer, input_bytes: int, *, has_scores: bool) -> Iterator[Tensor]:
    a, hidden = model.attention, model.hidden
    yield Tensor("norm input", ACTIVATION_BYTES * hidden, Split.SEQUENCE)
    yield Tensor("attention input", input_bytes * hidden, Split.INPUT)
    if a.is_latent:
        low = a.q_rank + a.kv_rank
        yield Tensor("compressed", ACTIVATION_BYTES * (low + a.rope_dim), Split.SEQUENCE)
        yield Tensor("compressed, normed", input_bytes * low, Split.SEQUENCE)
    yield Tensor("queries", ACTIVATION_BYTES * a.q_width, Split.TENSOR)
    keys = a.k_width + a.v_width
    yield Tensor("keys and values", ACTIVATION_BYTES * keys, Split.KEYS)
    if a.has_qk_norm:
        yield Tensor("queries before norm", ACTIVATION_BYTES * a.q_width, Split.TENSOR)
        yield Tensor("keys before norm", ACTIVATION_BYTES * a.k_width, Split.KEYS)
    dropout = has_dropout(model)
    if has_scores:
        yield Tensor("softmax", ACTIVATION_BYTES * a.n_heads, Split.SCORES)
        if dropout:
            mask = (_MASK_BYTES + ACTIVATION_BYTES) * a.n_heads
            yield Tensor("softmax dropout", mask, Split.SCORES)
    yield Tensor("projection input", input_bytes * a.out_width, Split.TENSOR)
    if dropout:
        yield Tensor("dropout mask", _MASK_BYTES * hidden, Split.SEQUENCE)


def _feed_forward(model: Transformer, input_bytes: int) -> Iterator[Tensor]:
    hidden, ffn = model.hidden, model.ffn
    if not model.is_parallel:
        yield Tensor("second norm input", ACTIVATION_BYTES * hidden, Split.SEQUENCE)
        yield Tensor("feed-forward input", input_bytes * hidden, Split.INPUT)
    yield from _inner(ffn, ffn.width, input_bytes, Split.TENSOR)
    if has_dropout(model):
        yield Tensor("second dropout mask", _MASK_BYTES * hidden, Split.SEQUENCE)


def _inner(
    ffn: FeedForward | Experts, width: int, input_bytes: int, split: Split, label: str = ""
) -> Iterator[Tensor]:
    """Between the matrices: the input of the activation function, and its output."""
    n_inputs = 2 if ffn.is_gated else 1
    yield Tensor(label + "activation input", ACTIVATION_BYTES * n_inputs * width, split)
    yield Tensor(label + "activation output", input_bytes * width, split)


def _experts(model: Transformer, experts: Experts, input_bytes: int) -> Iterator[Tensor]:
    """Router, top-k copies of the tokens at experts (balanced), shared experts."""
    hidden, topk = model.hidden, experts.topk
    yield Tensor("second norm input", ACTIVATION_BYTES * hidden, Split.SEQUENCE)
    yield Tensor("router input", ACTIVATION_BYTES * hidden, Split.SEQUENCE)
    yield Tensor("router scores", 2 * _FP32_BYTES * experts.n, Split.SEQUENCE)
    yield Tensor("expert input", input_bytes * topk * hidden, Split.GATHERED)
    yield from _inner(experts, topk * experts.width, input_bytes, Split.SEQUENCE, "expert ")
    yield Tensor("expert output", ACTIVATION_BYTES * topk * hidden, Split.SEQUENCE)
    if experts.shared_width:
        yield from _inner(experts, experts.shared_width, input_bytes, Split.TENSOR, "shared ")


def matmul_tensors(model: Transformer, *, has_experts: bool) -> Iterator[Tensor]:
    """What recomputation by operator keeps: input, attention, every second matrix multiply.

    torchtitan's order is queries, keys, values, projection, gate, up, down: kept are queries,
    values, gate and down.
    """
    a, e, hidden = model.attention, ACTIVATION_BYTES, model.hidden
    yield Tensor("norm input", e * hidden, Split.SEQUENCE)
    yield Tensor("queries", e * a.q_width, Split.TENSOR)
    yield Tensor("values", e * a.v_width, Split.KEYS)
    yield Tensor("attention output", e * a.out_width, Split.TENSOR)
    if has_experts and model.experts is not None:
        yield Tensor("expert input", e * model.experts.topk * hidden, Split.GATHERED)
        width = model.experts.topk * (model.experts.width + hidden)
        yield Tensor("expert gate and down", e * width, Split.SEQUENCE)
        yield Tensor("shared gate", e * model.experts.shared_width, Split.TENSOR)
        return
    yield Tensor("gate", e * model.ffn.width, Split.TENSOR)
    yield Tensor("down", e * hidden, Split.SEQUENCE)


def kept_tensors(
    model: Transformer,
    strategy: Strategy,
    habits: MemoryHabits,
    recompute: Recompute,
    *,
    has_experts: bool,
) -> tuple[Tensor, ...]:
    """What of a layer's tensors is kept: all, those that selective recomputation keeps, the input.

    Parameters
    ----------
    model, strategy, habits, has_experts : as :func:`layer_tensors`.
    recompute : what is computed again.
    """
    everything = layer_tensors(model, strategy, habits, has_experts=has_experts)
    if recompute is Recompute.NONE:
        return everything
    if recompute is Recompute.FULL:
        return everything[:1]
    if habits.keeps_matmuls:
        return tuple(matmul_tensors(model, has_experts=has_experts))
    expanded = _EXPANDED if recomputes_up_projections(model, strategy) else ()
    return tuple(
        tensor
        for tensor in everything
        if tensor.split is not Split.SCORES and tensor.name not in expanded
    )


_EXPANDED = ("compressed, normed", "queries", "keys and values")
"""What up-projections of MLA make, and the norms before them (Megatron's ``mla_up_proj``)."""


def recomputes_up_projections(model: Transformer, strategy: Strategy) -> bool:
    """Whether selective recomputation repeats the up-projections of MLA: the fused kernel of
    attention has no scores that it could drop."""
    return model.attention.is_latent and bool(np.all(strategy.flash_attention))


def saving_recomputations(
    model: Transformer, strategy: Strategy, habits: MemoryHabits
) -> tuple[Recompute, ...]:
    """Recomputations of which each keeps less than those before it, none included.

    Examples
    --------
    With flash attention, selective recomputation of a model without MLA frees nothing:

    >>> from libra_planner.workload.memory.habits import MEGATRON_MEMORY
    >>> from libra_planner.workload.transformer import Attention
    >>> llama = Transformer("llama", 1, 64, Attention(4, 4, 16, 16), FeedForward(256), 128)
    >>> [one.name for one in saving_recomputations(llama, Strategy(), MEGATRON_MEMORY)]
    ['NONE', 'FULL']
    """
    kinds = (False, True) if model.experts else (False,)
    sums = [bytes_by_split(model, strategy, habits, has_experts=kind) for kind in kinds]
    kept = np.sum(sums, axis=(0, 1))
    return tuple(one for one in Recompute if not one or kept[one] < kept[one - 1])


def bytes_by_split(
    model: Transformer, strategy: Strategy, habits: MemoryHabits, *, has_experts: bool
) -> NDArray[np.float64]:
    """Bytes per token of a layer, shape (splits, recomputations): sums of its tensors."""
    sums = np.zeros((len(Split), len(Recompute)))
    for recompute in Recompute:
        kept = kept_tensors(model, strategy, habits, recompute, has_experts=has_experts)
        for tensor in kept:
            sums[tensor.split, recompute] += tensor.bytes_per_token
    return sums


def sequence_share(strategy: Strategy) -> Any:
    """Share of the tokens of a rank's sequence outside the tensor-parallel parts."""
    return np.where(strategy.sequence_parallel, 1 / np.asarray(strategy.tp, float), 1.0)


def split_shares(
    model: Transformer, strategy: Strategy, habits: MemoryHabits
) -> NDArray[np.float64]:
    """Share of a tensor that a rank holds, shape (splits, n) or (splits,) of one strategy."""
    tp, sequence = np.asarray(strategy.tp, float), sequence_share(strategy)
    shares = {
        Split.SEQUENCE: sequence,
        Split.TENSOR: 1 / tp,
        Split.KEYS: 1 / np.minimum(tp, model.attention.n_kv_heads),
        Split.GATHERED: sequence * strategy.etp,
        Split.SCORES: model.sequence_tokens / tp,
        Split.INPUT: 1.0 if habits.keeps_gathered_inputs else sequence,
    }
    return np.stack(np.broadcast_arrays(*(shares[split] for split in Split)))
