"""Memory of an NPU in training: weights, gradients, optimizer, activations, by stage (C19).

Facts this rests on: Megatron's mixed precision keeps 2 + 4 + 12 bytes per parameter, which ZeRO
shards (arXiv 1910.02054) over dp cp ranks, of experts over edp; activations are counted tensor by
tensor (Korthikanti et al., arXiv 2205.05198, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.workload.memory import stages
from libra_planner.workload.memory.activations import (
    ACTIVATION_BYTES,
    Split,
    bytes_by_split,
    has_dropout,
    sequence_share,
    split_shares,
)
from libra_planner.workload.memory.habits import MEGATRON_MEMORY, MOST_SHARDED, MemoryHabits
from libra_planner.workload.strategy import Fraction, Recompute, Strategy
from libra_planner.workload.transformer import LayerParameters, Transformer

Numbers = NDArray[Any]

CONTEXT_BYTES = 2.5e9
"""CUDA context, kernels' workspaces and NCCL's buffers of an NPU, the same for all rows."""
FRAGMENTED_FRACTION = 0.08
"""Of activations: memory that an allocator holds between tensors and cannot use."""
RANGES = {"CONTEXT_BYTES": (0.5e9, 4e9), "FRAGMENTED_FRACTION": (0.0, 0.15)}
"""Physical ranges of the constants."""


@dataclass(frozen=True)
class Memory:
    """Memory of one NPU in the fullest stage; numbers, or arrays of shape (n,).

    Parameters
    ----------
    weights_bytes, gradients_bytes, optimizer_bytes : as ZeRO leaves them.
    activations_bytes : that wait for the backward pass, of all microbatches in flight.
    transient_bytes : beyond these at the peak: the largest of the loss with its logits, a layer
        that is computed again with its gradients, and the optimizer's step.
    communication_bytes : gathered weights, gradients and activations, and what is sent between
        stages.
    reserve_bytes : context, workspaces and fragmentation.
    stage : the fullest one, from 0.
    """

    weights_bytes: Fraction
    gradients_bytes: Fraction
    optimizer_bytes: Fraction
    activations_bytes: Fraction
    transient_bytes: Fraction
    communication_bytes: Fraction
    reserve_bytes: Fraction
    stage: Any = 0

    @property
    def states_bytes(self) -> Fraction:
        """Weights, gradients and optimizer states."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def total_bytes(self) -> Fraction:
        """All of it."""
        running = self.activations_bytes + self.transient_bytes + self.communication_bytes
        return self.states_bytes + running + self.reserve_bytes

    def fits(self, npu_memory_bytes: Fraction) -> Any:
        """Whether it fits an NPU's memory."""
        return self.total_bytes <= npu_memory_bytes


class _Stage(NamedTuple):
    """Stages of strategies: arrays of shape (stages, n)."""

    stage: Numbers
    is_last: Numbers
    dense_layers: Numbers
    expert_layers: Numbers


def memory(
    model: Transformer, strategy: Strategy, *, habits: MemoryHabits = MEGATRON_MEMORY
) -> Memory:
    """Memory of an NPU in the fullest stage of a pipeline.

    Parameters
    ----------
    model : its shape.
    strategy : one, or n of them.
    habits : of the training library: what is kept, in which precision.

    Examples
    --------
    Llama 3 8B on 8 NPUs, two of them for a sequence, against 70.8 GB that NVIDIA's log says:

    >>> from libra_planner.workload.memory.habits import NEMO_MEMORY
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> llama = Transformer("llama3-8b", 32, 4096, Attention(32, 8, 128, 128),
    ...                     FeedForward(14336, is_gated=True), 8192, vocabulary=128256)
    >>> found = memory(llama, Strategy(cp=2, dp=4, global_batch=128, zero=1), habits=NEMO_MEMORY)
    >>> round(found.states_bytes / 1e9, 1), round(found.activations_bytes / 1e9, 1)
    (44.2, 18.3)
    >>> round(found.total_bytes / 1e9, 1)
    71.0
    """
    held = _stages(model, strategy)
    found = _of_stages(model, strategy, habits, held)
    total = np.asarray(found.total_bytes)
    fullest = np.argmax(total, axis=0)[np.newaxis, ...]
    return Memory(
        **{
            part.name: _chosen(getattr(found, part.name), total.shape, fullest)
            for part in fields(Memory)
        }
    )


def _chosen(values: Any, shape: tuple[int, ...], fullest: Numbers) -> Any:
    """Values of the fullest stages; a number where there is one strategy."""
    chosen = np.take_along_axis(np.broadcast_to(values, shape), fullest, axis=0)[0]
    return chosen if chosen.ndim else chosen.item()


def _stages(model: Transformer, strategy: Strategy) -> _Stage:
    """Stages that can be the fullest: the first, those where experts begin, the last.

    Stages keep fewer microbatches the later they are; what can make a later one fuller are layers
    with experts behind dense ones, and the logits of the last one.
    """
    shapes = (np.shape(getattr(strategy, part.name)) for part in fields(Strategy))
    last = np.broadcast_to(np.asarray(strategy.pp) - 1, np.broadcast_shapes(*shapes))
    index = [np.zeros_like(last), last]
    if model.experts is not None and model.n_dense_layers:
        chunk = stages.most_layers(model.n_layers, strategy.pp * strategy.interleave)
        begin = model.n_dense_layers // chunk
        index += [np.minimum(begin, last), np.minimum(begin + 1, last)]
    stage = np.stack(index)
    dense = stages.first_dense_layers(model, strategy, stage)
    layers = stages.most_layers(model.n_layers, strategy.pp)
    return _Stage(stage, stage == last, dense, layers - dense)


def _of_stages(
    model: Transformer, strategy: Strategy, habits: MemoryHabits, held: _Stage
) -> Memory:
    """Memory of stages, parts of shapes (stages, n)."""
    parameters = _parameters(model, strategy, held)
    shards = _shards(strategy)
    ends = _end_activations(model, strategy, habits, held)
    kept, mtp, work = _layer_activations(model, strategy, habits, held)
    activations = kept * stages.microbatches_in_flight(strategy, held.stage) + mtp + ends
    logits = _logits(model, strategy, held) * habits.logits_bytes
    step = habits.step_bytes * _sharded(parameters, shards, np.asarray(strategy.zero) >= 1)
    transient = np.maximum(np.maximum(logits, work), step - activations)
    fp8_copies = habits.fp8_copies_bytes * ("8" in strategy.dtype)
    weights = habits.weights_bytes * _sharded(
        parameters, shards, np.asarray(strategy.zero) >= MOST_SHARDED
    )
    return Memory(
        weights_bytes=weights + fp8_copies * (parameters.layers + parameters.experts),
        gradients_bytes=habits.gradients_bytes
        * _sharded(parameters, shards, np.asarray(strategy.zero) >= 2),
        optimizer_bytes=habits.optimizer_bytes
        * _sharded(parameters, shards, np.asarray(strategy.zero) >= 1),
        activations_bytes=activations,
        transient_bytes=transient,
        communication_bytes=_communication(model, strategy, habits, parameters, held),
        reserve_bytes=CONTEXT_BYTES + FRAGMENTED_FRACTION * (activations + transient),
        stage=held.stage,
    )


class _Parameters(NamedTuple):
    """Parameters of an NPU: layers without routed experts, these, embedding and logits."""

    layers: Numbers
    experts: Numbers
    ends: Numbers


def _parameters(model: Transformer, strategy: Strategy, held: _Stage) -> _Parameters:
    dense, experts = model.dense_layer_parameters, model.expert_layer_parameters
    tp, n_mtp = np.asarray(strategy.tp), model.n_mtp * held.is_last
    n_expert_layers = held.expert_layers + n_mtp * (model.experts is not None)
    n_dense_layers = held.dense_layers + n_mtp * (model.experts is None)
    joined = 2 * model.hidden**2 * n_mtp / tp
    layers = n_dense_layers * _of_rank(model, dense, tp) + joined
    return _Parameters(
        layers + n_expert_layers * _of_rank(model, experts, tp),
        n_expert_layers * experts.n_routed / (strategy.ep * np.asarray(strategy.etp)),
        _end_parameters(model, tp, held),
    )


def _of_rank(model: Transformer, layer: LayerParameters, tp: Numbers) -> Numbers:
    """Parameters of a layer but routed experts: norms and router whole, keys by whole heads."""
    whole = layer.n_norms + layer.n_router
    found = whole + (layer.n_dense - whole) / tp
    a = model.attention
    if a.is_latent:
        return found
    keys = model.hidden * (a.k_width + a.v_width)
    return found + keys * (1 / np.minimum(tp, a.n_kv_heads) - 1 / tp)


def _end_parameters(model: Transformer, tp: Numbers, held: _Stage) -> Any:
    """Embedding on the first stage, positions whole; logits on the last, tied ones once a stage."""
    table = model.vocabulary * model.hidden
    logits = table + model.n_classes * model.hidden
    is_first = held.stage == 0
    is_copied = held.is_last & ~(is_first & model.is_tied)
    split = (is_first * table + is_copied * logits) / tp
    return split + is_first * (model.n_embedding_parameters - table * model.has_logits)


def _shards(strategy: Strategy) -> tuple[Numbers, Numbers]:
    """Ranks that ZeRO shards over: of all but routed experts, and of these."""
    # Expert parallelism wider than a stage is refused elsewhere; among many it is no error here.
    return np.asarray(strategy.dp * strategy.cp), np.maximum(strategy.edp, 1)


def _sharded(parameters: _Parameters, shards: tuple[Numbers, Numbers], is_sharded: Numbers) -> Any:
    """Parameters of an NPU whose states it keeps."""
    dense = (parameters.layers + parameters.ends) / np.where(is_sharded, shards[0], 1)
    return dense + parameters.experts / np.where(is_sharded, shards[1], 1)


def _tokens(model: Transformer, strategy: Strategy) -> Any:
    """Tokens of a microbatch on a rank."""
    return strategy.microbatch * model.sequence_tokens / np.asarray(strategy.cp)


def _layer_activations(
    model: Transformer, strategy: Strategy, habits: MemoryHabits, held: _Stage
) -> tuple[Any, Any, Any]:
    """Bytes of one microbatch: kept by a stage's layers and its MTP, and at work in one layer."""
    shares, tokens = split_shares(model, strategy, habits), _tokens(model, strategy)
    recompute = np.asarray(strategy.recompute)
    kept, work, alone = 0.0 * held.stage, 0.0 * held.stage, 0.0 * held.stage
    for has_experts in _kinds_of_layers(model):
        n_layers = held.expert_layers if has_experts else held.dense_layers
        extra = model.n_mtp * held.is_last * (has_experts == (model.experts is not None))
        sums = bytes_by_split(model, strategy, habits, has_experts=has_experts)
        one = tokens * _total(sums[:, recompute], shares)
        whole = tokens * _total(sums[:, Recompute.NONE], shares)
        gradients = tokens * _total(_gradients(model, has_experts=has_experts), shares)
        kept, alone = kept + n_layers * one, alone + extra * one
        busy = np.maximum(whole - one, 0) + gradients
        work = np.maximum(work, busy * (n_layers + extra > 0))
    return kept, alone, work


def _kinds_of_layers(model: Transformer) -> tuple[bool, ...]:
    """Whether there are layers without, and with experts."""
    if model.experts is None:
        return (False,)
    return (False, True) if model.n_dense_layers else (True,)


def _total(bytes_per_token: Numbers, shares: Numbers) -> Any:
    """Sum over splits of bytes times shares; both of shape (splits,) or (splits, n)."""
    if bytes_per_token.ndim < shares.ndim:
        bytes_per_token = bytes_per_token[:, np.newaxis]
    elif shares.ndim < bytes_per_token.ndim:
        shares = shares[:, np.newaxis]
    return np.sum(bytes_per_token * shares, axis=0)


def _gradients(model: Transformer, *, has_experts: bool) -> Numbers:
    """Bytes per token, shape (splits,), of the gradients of a layer's feed-forward part at work."""
    found = np.zeros(len(Split))
    if has_experts and model.experts is not None:
        one, topk = model.experts, model.experts.topk
        n_inner = 3 if one.is_gated else 2
        found[Split.SEQUENCE] = topk * (model.hidden + n_inner * one.width)
    else:
        found[Split.SEQUENCE] = model.hidden
        found[Split.TENSOR] = model.ffn.n_matrices * model.ffn.width
    return ACTIVATION_BYTES * found


def _end_activations(
    model: Transformer, strategy: Strategy, habits: MemoryHabits, held: _Stage
) -> Any:
    """Masks of the embedding's dropout; the last norm's input and that of the logits."""
    if not model.vocabulary:
        return 0.0 * held.stage
    shares = split_shares(model, strategy, habits)
    sequence, gathered = shares[Split.SEQUENCE], shares[Split.INPUT]
    masks = stages.first_chunk_in_flight(strategy) * (held.stage == 0)
    at_end = ACTIVATION_BYTES * (sequence + gathered) * held.is_last
    tokens = _tokens(model, strategy) * model.hidden
    return tokens * (masks * sequence * has_dropout(model) + at_end)


def _logits(model: Transformer, strategy: Strategy, held: _Stage) -> Any:
    """Logits of a microbatch on a rank of the last stage, of all modules that predict a token."""
    tokens = _tokens(model, strategy) * (1 + model.n_mtp)
    return tokens * model.vocabulary / np.asarray(strategy.tp) * held.is_last


def _communication(
    model: Transformer,
    strategy: Strategy,
    habits: MemoryHabits,
    parameters: _Parameters,
    held: _Stage,
) -> Any:
    """Gathered tokens, messages between stages, and what ZeRO 3 has gathered from other ranks."""
    tokens = _tokens(model, strategy) * model.hidden * ACTIVATION_BYTES
    share = sequence_share(strategy)
    gathered = np.where(share < 1, tokens, 0.0)
    sent = np.where(np.asarray(strategy.pp) > 1, 2 * tokens * share, 0.0)
    dense, routed = (n > 1 for n in _shards(strategy))
    own, ends = parameters.layers * dense + parameters.experts * routed, parameters.ends * dense
    layer = own / np.maximum(held.dense_layers + held.expert_layers, 1)
    table = model.vocabulary * model.hidden / np.asarray(strategy.tp)
    unit = np.maximum(layer, np.minimum(table, ends))
    both = habits.gathered_bytes + habits.gathered_gradients_bytes
    whole = both * (own + ends)
    in_turn = both * unit + habits.gathered_bytes * unit
    keeps = (np.asarray(strategy.pp) > 1) & habits.keeps_gathered_in_pipelines
    is_sharded = np.asarray(strategy.zero) >= MOST_SHARDED
    return gathered + sent + np.where(is_sharded, np.where(keeps, whole, in_turn), 0.0)
