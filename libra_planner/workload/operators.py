"""What the operators of a transformer take on an NPU, per layer and microbatch (C18).

Shapes are those of one rank: matrix multiplies split over tp, tokens over cp, experts over ep and
etp. All is arithmetic on arrays, so that one strategy or many are the same call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from libra_planner.workload.kernels import Kernels, width
from libra_planner.workload.memory.activations import recomputes_up_projections
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, Transformer

Number: TypeAlias = Any
"""A number, or an array of shape (n,)."""

_ELEMENT_BYTES = 2
"""Of an activation."""
_LOSS_BYTES = (24, 12)
"""Read and written per logit by the loss in fp32, forward and backward: an assumption."""
_OPTIMIZER_BYTES = 34
"""Read and written per parameter by Adam: gradient 4 twice (its norm), fp32 weight and two moments
12 in and 12 out, weight 2 out."""
_ZERO_BYTES = 4
"""Written per parameter to clear its gradient."""
_CAST_BYTES = 4
"""Read and written per element that becomes fp8: 2 in, 1 out, and 1 out transposed; about that of
fewer bits."""


@dataclass(frozen=True)
class Work:
    """Compute time of one direction of a layer, seconds, shape () or (n,) each.

    Parameters
    ----------
    linear_s : matrix multiplies of dense weights.
    attention_s : attention itself, without projections.
    experts_s : matrix multiplies of routed experts.
    stream_s : all that moves activations: norms, activation functions, permutations, casts.
    """

    linear_s: Number = 0.0
    attention_s: Number = 0.0
    experts_s: Number = 0.0
    stream_s: Number = 0.0

    @property
    def total_s(self) -> Number:
        """All of it, one after the other."""
        return self.linear_s + self.attention_s + self.experts_s + self.stream_s

    def plus(self, other: Work) -> Work:
        """Both, one after the other."""
        return Work(*(mine + more for mine, more in zip(_parts(self), _parts(other), strict=True)))

    def without(self, other: Work) -> Work:
        """The rest of it."""
        return self.plus(other.times(-1.0))

    def times(self, factor: Number) -> Work:
        """So many of it."""
        return Work(*(factor * part for part in _parts(self)))


def _parts(work: Work) -> tuple[Number, Number, Number, Number]:
    return work.linear_s, work.attention_s, work.experts_s, work.stream_s


NO_WORK = Work()


@dataclass(frozen=True)
class LayerWork:
    """Compute of one layer for one microbatch.

    Parameters
    ----------
    forward : without recomputation.
    backward : input and weight gradients, and what is computed again.
    weight_grad : part of ``backward`` that only the optimizer waits for (W of C17).
    """

    forward: Work
    backward: Work
    weight_grad: Work = NO_WORK


@dataclass(frozen=True)
class _Linear:
    """A multiply by ``n_in x n_out`` weights of one rank, for each of ``n_tokens``."""

    n_tokens: Number
    n_in: Number
    n_out: Number
    n_groups: Number = 1


@dataclass(frozen=True)
class Operators:
    """The operators of a model under strategies, on an NPU.

    Parameters
    ----------
    model, strategy, kernels : as they say.
    gradient_bytes : of a weight's gradient, to which every microbatch adds.
    recomputes_by_operator : whether selective recomputation keeps every second matrix multiply and
        attention (torchtitan), else all but attention, or but the up-projections of MLA (Megatron).
    """

    model: Transformer
    strategy: Strategy
    kernels: Kernels
    gradient_bytes: float = 4
    recomputes_by_operator: bool = False

    @property
    def n_tokens(self) -> Number:
        """Tokens of a microbatch on one rank, b s/cp."""
        one = self.strategy
        return one.microbatch * self.model.sequence_tokens / np.asarray(one.cp)

    @property
    def n_split_tokens(self) -> Number:
        """Tokens of a norm on one rank: with sequence parallelism 1/tp of them."""
        one = self.strategy
        return self.n_tokens / np.where(one.sequence_parallel, one.tp, 1)

    def layer(self, *, has_experts: bool) -> LayerWork:
        """One layer, recomputation included."""
        experts = self.model.experts if has_experts else None
        linears = [*self._attention_linears(), *self._feed_forward_linears(experts)]
        grouped = [] if experts is None else self._expert_linears(experts)
        forward = Work(
            linear_s=sum(self._linear_s(one) for one in linears),
            attention_s=self._attention_s(is_backward=False),
            experts_s=sum(self._linear_s(one) for one in grouped),
            stream_s=self._stream_s(linears + grouped, experts, is_backward=False),
        )
        weights_s = (
            [self._weight_grad_s(one) for one in linears],
            [self._weight_grad_s(one) for one in grouped],
        )
        backward = Work(
            linear_s=sum(map(self._input_grad_s, linears)) + sum(weights_s[0]),
            attention_s=self._attention_s(is_backward=True),
            experts_s=sum(map(self._input_grad_s, grouped)) + sum(weights_s[1]),
            stream_s=self._stream_s(linears + grouped, experts, is_backward=True),
        )
        again = self._again(forward)
        weight_grad = Work(linear_s=sum(weights_s[0]), experts_s=sum(weights_s[1]))
        return LayerWork(forward, backward.plus(again), weight_grad)

    def embedding(self) -> LayerWork:
        """Look-up of the tokens, in the first stage."""
        n_bytes = self.n_tokens * self.model.hidden * _ELEMENT_BYTES
        stream = self.kernels.stream_s
        return LayerWork(Work(stream_s=stream(2 * n_bytes)), Work(stream_s=stream(4 * n_bytes)))

    def logits(self) -> LayerWork:
        """Last norm, logits and loss, in the last stage."""
        model, tp = self.model, np.asarray(self.strategy.tp)
        if not model.vocabulary:
            return LayerWork(Work(), Work())
        head = _Linear(self.n_tokens, model.hidden, self.n_vocabulary / tp)
        n_logits = self.n_tokens * self.n_vocabulary / tp
        loss = [self.kernels.stream_s(n_logits * n, n_kernels=6) for n in _LOSS_BYTES]
        forward = Work(linear_s=self._linear_s(head, self._dtype_16), stream_s=loss[0])
        weight_s = self._weight_grad_s(head, self._dtype_16)
        backward_s = self._input_grad_s(head, self._dtype_16) + weight_s
        return LayerWork(forward, Work(linear_s=backward_s, stream_s=loss[1]), Work(weight_s))

    @property
    def _dtype_16(self) -> str:
        """Of what is not multiplied in fewer bits: logits and attention."""
        named = self.strategy.dtype
        return named if width(named) > 1 else "bf16"

    @property
    def n_vocabulary(self) -> Number:
        """The vocabulary, rounded up to a multiple of 128 tp as Megatron does."""
        unit = 128 * np.asarray(self.strategy.tp)
        return np.ceil(self.model.vocabulary / unit) * unit

    def optimizer_s(self, n_parameters: Number, n_sharded: Number) -> Number:
        """One step of Adam.

        Parameters
        ----------
        n_parameters : of the rank, whose gradients are cleared.
        n_sharded : that it updates: ZeRO shares them out.
        """
        n_bytes = _OPTIMIZER_BYTES * n_sharded + _ZERO_BYTES * n_parameters
        return self.kernels.stream_s(n_bytes, n_kernels=10)

    def _attention_linears(self) -> list[_Linear]:
        """Projections of queries, keys and values, and of the output."""
        attention, hidden, tp = (
            self.model.attention,
            self.model.hidden,
            np.asarray(self.strategy.tp),
        )
        n_tokens, heads = self.n_tokens, attention.n_heads / tp
        out = _Linear(n_tokens, heads * attention.head_dim_v, hidden)
        if attention.is_latent:
            return [*self._latent_linears(attention), out]
        kv_heads = np.maximum(attention.n_kv_heads / tp, 1)
        width = heads * attention.head_dim
        width = width + kv_heads * (attention.head_dim + attention.head_dim_v)
        return [_Linear(n_tokens, hidden, width), out]

    def _latent_linears(self, attention: Attention) -> list[_Linear]:
        """MLA: down to the compressed widths on every tp rank, then up for the rank's heads."""
        hidden, split = self.model.hidden, self.n_split_tokens
        queries, keys = self._up_projections(attention)
        down = _Linear(split, hidden, attention.kv_rank + attention.rope_dim)
        if not attention.q_rank:
            return [queries, down, keys]
        return [_Linear(split, hidden, attention.q_rank), queries, down, keys]

    def _up_projections(self, attention: Attention) -> tuple[_Linear, _Linear]:
        """MLA's queries, from their compressed width or the whole, and keys with values."""
        n_tokens, heads = self.n_tokens, attention.n_heads / np.asarray(self.strategy.tp)
        width = attention.head_dim - attention.rope_dim + attention.head_dim_v
        n_in = attention.q_rank or self.model.hidden
        queries = _Linear(n_tokens, n_in, heads * attention.head_dim)
        return queries, _Linear(n_tokens, attention.kv_rank, heads * width)

    def _feed_forward_linears(self, experts: Experts | None) -> list[_Linear]:
        """The dense part: of a layer with experts the router and the shared experts."""
        model, tp, n_tokens = self.model, np.asarray(self.strategy.tp), self.n_tokens
        if experts is None:
            return self._up_down(n_tokens, model.ffn.width / tp, model.ffn.n_matrices - 1)
        router = _Linear(self.n_split_tokens, model.hidden, experts.n)
        if not experts.shared_width:
            return [router]
        n_up = 1 + experts.is_gated
        return [router, *self._up_down(n_tokens, experts.shared_width / tp, n_up)]

    def _expert_linears(self, experts: Experts) -> list[_Linear]:
        """Multiplies of the experts that a rank holds, tokens spread evenly over all experts."""
        one = self.strategy
        n_local = np.maximum(experts.n / np.asarray(one.ep), 1)
        n_received = self.n_split_tokens * experts.topk * one.etp
        n_up, width = 1 + experts.is_gated, experts.width / np.asarray(one.etp)
        return self._up_down(n_received / n_local, width, n_up, n_local)

    def _up_down(
        self, n_tokens: Number, width: Number, n_up: int, n_groups: Number = 1
    ) -> list[_Linear]:
        hidden = self.model.hidden
        up = _Linear(n_tokens, hidden, n_up * width, n_groups)
        return [up, _Linear(n_tokens, width, hidden, n_groups)]

    def _linear_s(self, one: _Linear, dtype: str | None = None) -> Number:
        return self._gemm_s(one.n_tokens, one.n_out, one.n_in, one.n_groups, dtype)

    def _input_grad_s(self, one: _Linear, dtype: str | None = None) -> Number:
        return self._gemm_s(one.n_tokens, one.n_in, one.n_out, one.n_groups, dtype)

    def _weight_grad_s(self, one: _Linear, dtype: str | None = None) -> Number:
        """Read, added to and written back."""
        shape, out_bytes = (one.n_out, one.n_in, one.n_tokens), 2 * self.gradient_bytes
        return self._gemm_s(*shape, one.n_groups, dtype, out_bytes)

    def _gemm_s(
        self,
        m: Number,
        n: Number,
        k: Number,
        n_groups: Number,
        dtype: str | None,
        out_bytes: float = _ELEMENT_BYTES,
    ) -> Number:
        named = dtype or self.strategy.dtype
        return self.kernels.gemm_s(m, n, k, dtype=named, n_groups=n_groups, out_bytes=out_bytes)

    def _attention_s(self, *, is_backward: bool) -> Number:
        """Attention itself: one fused kernel, or multiplies with a softmax between them.

        Where some layers have a sliding window, the mean over the layers.
        """
        model = self.model
        if not self.strategy.flash_attention:
            return self._unfused_attention_s(is_backward=is_backward)
        whole = self._fused_attention_s(
            model.sequence_tokens, is_causal=model.attention.is_causal, is_backward=is_backward
        )
        if not model.n_window_layers:
            return whole
        seen = model.attention.seen_tokens(model.sequence_tokens, "causal", has_window=True)
        near = self._fused_attention_s(seen, is_causal=False, is_backward=is_backward)
        share = model.n_window_layers / model.n_layers
        return share * near + (1 - share) * whole

    def _fused_attention_s(
        self, seen_tokens: float, *, is_causal: bool, is_backward: bool
    ) -> Number:
        """Every token's scores with so many others."""
        one, attention = self.strategy, self.model.attention
        return self.kernels.attention_s(
            batch=one.microbatch,
            n_heads=attention.n_heads / np.asarray(one.tp),
            n_kv_heads=np.maximum(attention.n_kv_heads / np.asarray(one.tp), 1),
            seq_q=self.model.sequence_tokens / np.asarray(one.cp),
            seq_kv=seen_tokens,
            head_dim=attention.head_dim,
            head_dim_v=attention.head_dim_v,
            is_causal=is_causal,
            dtype=self._dtype_16,
            is_backward=is_backward,
        )

    def _unfused_attention_s(self, *, is_backward: bool) -> Number:
        """Scores, softmax, dropout and values as kernels of their own, as before FlashAttention.

        Softmax and dropout read and write the scores: 4 + 5 bytes each forward, 6 + 5 backward.
        """
        one, attention = self.strategy, self.model.attention
        n_heads, seq = attention.n_heads / np.asarray(one.tp), self.model.sequence_tokens
        n_blocks = one.microbatch * n_heads
        rows = seq / np.asarray(one.cp)
        scores_s = self._gemm_s(rows, seq, attention.head_dim, n_blocks, self._dtype_16)
        values_s = self._gemm_s(rows, attention.head_dim_v, seq, n_blocks, self._dtype_16)
        n_bytes = n_blocks * rows * seq * (11 if is_backward else 9)
        stream_s = self.kernels.stream_s(n_bytes, n_kernels=2)
        return (1 + is_backward) * (scores_s + values_s) + stream_s

    def _stream_s(
        self, linears: list[_Linear], experts: Experts | None, *, is_backward: bool
    ) -> Number:
        """Norms, residuals, activation functions, positions; permutations of experts; casts.

        Elements per token and width, forward and backward: norms and residual sums 10 and 16 h,
        a gated activation 3 and 5, another 2 and 3, rotations of queries and keys 2.
        """
        model, one = self.model, self.strategy
        tp, attention = np.asarray(one.tp), model.attention
        elements = self.n_split_tokens * model.hidden * (16 if is_backward else 10)
        is_gated = model.ffn.is_gated if experts is None else experts.is_gated
        per_width = ((2, 3), (3, 5))[is_gated][is_backward]
        dense = model.ffn.width if experts is None else experts.shared_width
        elements = elements + per_width * self.n_tokens * dense / tp
        if not model.n_positions:
            rotated = attention.n_heads + attention.n_kv_heads
            elements = elements + 2 * self.n_tokens * rotated * attention.head_dim / tp
        if experts is not None:
            copies = self.n_split_tokens * experts.topk
            elements = elements + per_width * copies * experts.width + 8 * copies * model.hidden
        n_bytes = _ELEMENT_BYTES * elements
        if width(one.dtype) <= 1:
            widths = sum(
                line.n_tokens * line.n_groups * (line.n_out if is_backward else line.n_in)
                for line in linears
            )
            n_bytes = n_bytes + _CAST_BYTES * widths
        return self.kernels.stream_s(n_bytes, n_kernels=8 if experts is None else 16)

    def _again(self, forward: Work) -> Work:
        """What is computed again: everything, or attention without its projections.

        MLA with a fused kernel of attention repeats its up-projections instead, with the rotation
        of queries and keys and two norms.
        """
        recompute = np.asarray(self.strategy.recompute)
        full, core = recompute == Recompute.FULL, recompute == Recompute.SELECTIVE
        whole = forward.times(full.astype(float))
        if self.recomputes_by_operator:
            half = (forward.linear_s + forward.experts_s) / 2
            return whole.plus(Work(linear_s=core * half, stream_s=core * forward.stream_s))
        if not recomputes_up_projections(self.model, self.strategy):
            return whole.plus(Work(attention_s=core * forward.attention_s))
        up_s = sum(map(self._linear_s, self._up_projections(self.model.attention)))
        return whole.plus(Work(linear_s=core * up_s, stream_s=core * self._rotation_s()))

    def _rotation_s(self) -> Number:
        """Norms of the compressed widths, and rotations: 2 elements read and written each."""
        attention, tp = self.model.attention, np.asarray(self.strategy.tp)
        low = self.n_split_tokens * (attention.q_rank + attention.kv_rank)
        rotated = self.n_tokens * (attention.q_width + attention.k_width) / tp
        return self.kernels.stream_s(_ELEMENT_BYTES * 2 * (low + rotated), n_kernels=4)
