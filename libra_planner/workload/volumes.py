"""What one rank exchanges with whom: bytes and counts of every axis of parallelism (C16).

All functions take one :class:`~libra_planner.workload.strategy.Strategy` or arrays of n. With b
sequences of s tokens in a microbatch, a rank holds b s/cp tokens; M = b (s/cp) h e bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from libra_planner.fabric.blocks import CollectiveKind
from libra_planner.workload.strategy import Count, Fraction, Recompute, Strategy
from libra_planner.workload.transformer import Transformer

SEND_RECV = "send_recv"
"""Kind of what goes from one rank to the next one."""

DP_CP = "dp_cp"
"""Axis of the ranks that hold the same dense parameters: dp and cp together (C15)."""

NODE, EXPERT = "node", "expert"
"""What gets one copy of a token: a node that has experts of it, or each of its experts."""

_LOSS_BYTES = 4
"""Of a number of the loss, which is worked out in fp32."""
_LOSS_ALL_REDUCES = 3
"""Of the loss over a split vocabulary: largest logit, logit of the label, sum of exponentials."""

Number: TypeAlias = Count | Fraction
_Found: TypeAlias = Iterable["Exchange"]


@dataclass(frozen=True)
class Formats:
    """Bytes of one number, by what is exchanged.

    Parameters
    ----------
    activation_bytes : of activations and of their gradients, e.
    dispatch_bytes, combine_bytes : of tokens on their way to experts and back, and of gradients on
        theirs; DeepSeek-V3 sends 1 and 2 (arXiv 2412.19437).
    gradient_bytes, weight_bytes : of exchanged gradients e_g and weights e_w.
    """

    activation_bytes: float = 2
    dispatch_bytes: float = 2
    combine_bytes: float = 2
    gradient_bytes: float = 4
    weight_bytes: float = 2


@dataclass(frozen=True)
class Habits:
    """Which of several ways a library exchanges.

    Parameters
    ----------
    cp : ``ring``: keys and values go around, one rank to the next; ``all-gather``: every rank gets
        all of them; ``all-to-all``: a rank gets whole sequences of some heads (Ulysses).
    experts_on_at_most : nodes that a token's experts stand on (DeepSeek-V3: 4); one copy goes to
        each. ``None``: its experts stand anywhere.
    one_copy_per_node : whether a token goes once to a node that has several of its experts, whose
        links spread it (DeepEP); so it is, too, where ``experts_on_at_most`` is given.
    scatter_gather : whether tensor-parallel ranks send a part of M each to the next stage, where
        an all-gather puts it together (arXiv 2104.04473, section 4.1).
    reduces_once : whether gradients are kept whole until the last microbatch and reduced once
        per step, for ZeRO 2; for ZeRO 3 and FSDP that is "no sync".
    reshards : whether ZeRO 3 drops gathered weights after forward and gathers them again.
    recomputes_by_operator : whether selective recomputation keeps every second matrix multiply
        and attention, as torchtitan does; else all but attention.
    """

    cp: str = "ring"
    experts_on_at_most: int | None = None
    one_copy_per_node: bool = False
    scatter_gather: bool = False
    reduces_once: bool = False
    reshards: bool = True
    recomputes_by_operator: bool = False

    @property
    def sends_once_per_node(self) -> bool:
        """Whether a node gets one copy of a token, however many of its experts it has."""
        return self.one_copy_per_node or self.experts_on_at_most is not None

    def with_copies(self, to: str) -> Habits:
        """The same with a copy of a token for each :data:`NODE` or each :data:`EXPERT`.

        Experts have their copies wherever they stand, so that a limit of nodes goes, too.

        Examples
        --------
        >>> Habits(experts_on_at_most=4).with_copies(EXPERT).sends_once_per_node
        False
        """
        most = self.experts_on_at_most if to == NODE else None
        return replace(self, one_copy_per_node=to == NODE, experts_on_at_most=most)


DEFAULT_FORMATS, DEFAULT_HABITS = Formats(), Habits()


@dataclass(frozen=True)
class Exchange:
    """One kind of exchange that a rank takes part in.

    Parameters
    ----------
    axis : whose group: ``tp``, ``cp``, ``dp``, ``pp``, ``etp``, ``ep``, ``edp`` or ``dp_cp``.
    kind : the pattern; :data:`SEND_RECV` from a rank to the next one.
    size_bytes : the full vector m of C3; of a send what is sent.
    count : how often; 0 where the axis has one rank.
    what : such as ``tokens to experts``.
    far_bytes : the full vector where it leaves the scale-up domain, if another: of copies to as
        many nodes as a token's experts can stand on.
    n_copies : of a token in ``size_bytes``, where ``far_bytes`` is given.
    hides : whether it can hide behind compute that does not need it.
    """

    axis: str
    kind: CollectiveKind | str
    size_bytes: Any
    count: Any
    what: str = ""
    far_bytes: Any = None
    hides: bool = False
    n_copies: int = 1

    def far_vector_bytes(self, n_nodes: Number) -> Any:
        """The full vector between n nodes: copies to the distinct nodes of a token's experts.

        k experts on n nodes stand on n (1 - (1 - 1/n)^k) of them on average; no more than
        ``far_bytes`` says.

        Examples
        --------
        >>> one = Exchange("ep", CollectiveKind.ALL_TO_ALL, 8.0, 1, far_bytes=8.0, n_copies=8)
        >>> round(float(one.far_vector_bytes(2)), 2), round(float(one.far_vector_bytes(1e6)), 2)
        (1.99, 8.0)
        """
        n = np.asarray(n_nodes, dtype=float)
        distinct = n * (1.0 - (1.0 - 1.0 / n) ** self.n_copies)
        return np.minimum(self.far_bytes, self.size_bytes * distinct / self.n_copies)

    def sent_bytes(self, n_ranks: Number) -> Any:
        """What one rank of a group of n sends in all, each exchange direct or a ring (C3).

        Examples
        --------
        >>> float(Exchange("tp", CollectiveKind.ALL_REDUCE, 100.0, 2).sent_bytes(4))
        300.0
        """
        if self.kind == SEND_RECV:
            return self.count * self.size_bytes
        passes = 2 if self.kind is CollectiveKind.ALL_REDUCE else 1
        return passes * self.count * self.size_bytes * (n_ranks - 1) / n_ranks


@dataclass(frozen=True)
class Exchanges:
    """What a rank exchanges for one microbatch.

    Parameters
    ----------
    forward, backward : of the pass; what is computed again is part of backward.
    """

    forward: tuple[Exchange, ...] = ()
    backward: tuple[Exchange, ...] = ()


def activation_bytes(
    model: Transformer, strategy: Strategy, formats: Formats = DEFAULT_FORMATS
) -> Any:
    """M: activations of one microbatch on one rank between layers, not split over tp (C16).

    Examples
    --------
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> shape = Attention(96, 96, 128, 128), FeedForward(49152)
    >>> gpt3 = Transformer("GPT-3", 96, 12288, *shape, sequence_tokens=2048)
    >>> float(activation_bytes(gpt3, Strategy(tp=8))) == 2048 * 12288 * 2
    True
    """
    return _tokens(model, strategy) * model.hidden * formats.activation_bytes


def layer_exchanges(
    model: Transformer,
    strategy: Strategy,
    has_experts: bool = False,
    formats: Formats = DEFAULT_FORMATS,
    habits: Habits = DEFAULT_HABITS,
) -> Exchanges:
    """What a rank exchanges for one layer and one microbatch: tp, cp, ep and etp (C16).

    Parameters
    ----------
    has_experts : whether the layer has experts in place of a feed-forward part.

    Examples
    --------
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> shape = Attention(96, 96, 128, 128), FeedForward(49152)
    >>> gpt3 = Transformer("GPT-3", 96, 12288, *shape, sequence_tokens=2048)
    >>> [once] = layer_exchanges(gpt3, Strategy(tp=8)).forward
    >>> once.kind.value, float(once.size_bytes), int(once.count)
    ('all-reduce', 50331648.0, 2)
    """
    n_blocks = _n_tp_blocks(model, has_experts)
    size = activation_bytes(model, strategy, formats)
    again = np.asarray(strategy.recompute) == Recompute.FULL
    selective = np.asarray(strategy.recompute) == Recompute.SELECTIVE
    core_again = again | (selective & (not strategy.flash_attention))
    forward = [*_tp(strategy, size, n_blocks, "tp")]
    backward = [
        *_tp(strategy, size, n_blocks * (1 + again), "tp"),
        *_tp_inputs(strategy, size, n_blocks, "inputs"),
    ]
    forward += _cp_forward(model, strategy, formats, habits, 1)
    backward += _cp_backward(model, strategy, formats, habits)
    backward += _cp_forward(model, strategy, formats, habits, core_again)
    if has_experts:
        forward += _experts(model, strategy, formats, habits, 1)
        backward += _experts(model, strategy, formats, habits, 1 + again)
    return Exchanges(_kept(strategy, forward), _kept(strategy, backward))


def embedding_exchanges(
    model: Transformer, strategy: Strategy, formats: Formats = DEFAULT_FORMATS
) -> Exchanges:
    """What a rank of the first stage exchanges for one microbatch: the embedding's output.

    The vocabulary is split over tp, so that outputs add up. Without a vocabulary there is none.
    """
    size = activation_bytes(model, strategy, formats)
    count = float(model.vocabulary > 0)
    split = np.asarray(strategy.sequence_parallel)
    what = "embedding"
    forward = [
        Exchange("tp", CollectiveKind.ALL_REDUCE, size, count * ~split, what),
        Exchange("tp", CollectiveKind.REDUCE_SCATTER, size, count * split, what),
    ]
    backward = [Exchange("tp", CollectiveKind.ALL_GATHER, size, count * split, what)]
    return Exchanges(_kept(strategy, forward), _kept(strategy, backward))


def logits_exchanges(
    model: Transformer, strategy: Strategy, formats: Formats = DEFAULT_FORMATS
) -> Exchanges:
    """What a rank of the last stage exchanges for one microbatch: logits and loss.

    Inputs of the logits are gathered with sequence parallelism; their gradients add up over tp.
    The loss over a split vocabulary takes three small all-reduces.
    """
    size = activation_bytes(model, strategy, formats)
    count = float(model.vocabulary > 0)
    split = np.asarray(strategy.sequence_parallel)
    losses = _tokens(model, strategy) * _LOSS_BYTES
    reduce = CollectiveKind.ALL_REDUCE
    forward = [
        Exchange("tp", CollectiveKind.ALL_GATHER, size, count * split, "logits"),
        Exchange("tp", reduce, losses, _LOSS_ALL_REDUCES * count, "loss"),
    ]
    backward = [
        Exchange("tp", reduce, size, count * ~split, "logits"),
        Exchange("tp", CollectiveKind.REDUCE_SCATTER, size, count * split, "logits"),
        Exchange(
            "tp", CollectiveKind.ALL_GATHER, size, count * split, "inputs of logits", hides=True
        ),
    ]
    return Exchanges(_kept(strategy, forward), _kept(strategy, backward))


def pipeline_exchanges(
    model: Transformer,
    strategy: Strategy,
    stage: Count | None = None,
    formats: Formats = DEFAULT_FORMATS,
    habits: Habits = DEFAULT_HABITS,
) -> Exchanges:
    """What a rank sends to other stages for one microbatch, each chunk's output (C16).

    Parameters
    ----------
    stage : from 0; the last stage keeps the last chunk's output, the first one the gradient of
        the first chunk's input. ``None``: a stage that sends all.
    """
    size = activation_bytes(model, strategy, formats)
    tp = np.asarray(strategy.tp)
    parts = np.where(np.asarray(strategy.sequence_parallel) | habits.scatter_gather, tp, 1)
    gathers = habits.scatter_gather & ~np.asarray(strategy.sequence_parallel)
    is_last = False if stage is None else np.asarray(stage) == strategy.pp - 1
    is_first = False if stage is None else np.asarray(stage) == 0

    def sends(is_end: Any, is_start: Any, what: str) -> tuple[Exchange, ...]:
        n_sent, n_got = (
            strategy.interleave - np.asarray(end, dtype=int) for end in (is_end, is_start)
        )
        sent = Exchange("pp", SEND_RECV, size / parts, n_sent, what)
        n_gathered = gathers * n_got * (np.asarray(strategy.pp) > 1)
        gathered = Exchange("tp", CollectiveKind.ALL_GATHER, size, n_gathered, what)
        return _kept(strategy, (sent, gathered))

    return Exchanges(
        sends(is_last, is_first, "activations"),
        sends(is_first, is_last, "gradients of activations"),
    )


def gradient_exchanges(
    strategy: Strategy,
    n_dense_parameters: Number,
    n_expert_parameters: Number = 0,
    formats: Formats = DEFAULT_FORMATS,
    habits: Habits = DEFAULT_HABITS,
) -> tuple[Exchange, ...]:
    """What a rank exchanges for one step with those that hold the same parameters (C16).

    Dense gradients are exchanged over dp and cp, those of experts over edp.

    Parameters
    ----------
    n_dense_parameters, n_expert_parameters : of the rank.

    Examples
    --------
    ZeRO 3 with one microbatch sends 3/2 of what a plain all-reduce does (arXiv 1910.02054):

    >>> psi, formats = 1e9, Formats(gradient_bytes=2)
    >>> [
    ...     float(sum(x.sent_bytes(1e9) for x in gradient_exchanges(
    ...         Strategy(dp=10**9, global_batch=10**9, zero=zero), psi, formats=formats))) / 2e9
    ...     for zero in (0, 1, 2, 3)
    ... ]  # doctest: +ELLIPSIS
    [1.99..., 1.99..., 1.99..., 2.99...]
    """
    dense = _zero(strategy, DP_CP, n_dense_parameters, formats, habits)
    experts = _zero(strategy, "edp", n_expert_parameters, formats, habits)
    return _kept(strategy, [*dense, *experts])


def tied_gradient_exchange(
    model: Transformer, strategy: Strategy, formats: Formats = DEFAULT_FORMATS
) -> tuple[Exchange, ...]:
    """What a rank of the first and one of the last stage send each other for one step.

    Both hold the embedding where it is tied to the logits: an all-reduce between two ranks sends
    as much as the vector, in both directions.
    """
    if not (model.is_tied and model.vocabulary):
        return ()
    size = model.vocabulary * model.hidden / np.asarray(strategy.tp) * formats.gradient_bytes
    return _kept(strategy, [Exchange("pp", SEND_RECV, size, 1, "gradient of the tied embedding")])


def _tokens(model: Transformer, strategy: Strategy) -> Any:
    """Tokens of one microbatch that a rank holds, b s/cp."""
    return np.asarray(strategy.microbatch) * model.sequence_tokens / np.asarray(strategy.cp)


def _kept(strategy: Strategy, found: _Found) -> tuple[Exchange, ...]:
    """Exchanges of axes with more than one rank, those that never happen left out."""
    kept = []
    for one in found:
        count = np.asarray(one.count) * (_n_ranks(strategy, one.axis) > 1)
        if np.any(count):
            kept.append(_with_count(one, count))
    return tuple(kept)


def _with_count(one: Exchange, count: Any) -> Exchange:
    return replace(one, count=count)


def _n_ranks(strategy: Strategy, axis: str) -> Any:
    if axis == DP_CP:
        return np.asarray(strategy.dp) * strategy.cp
    return np.asarray(getattr(strategy, axis))


def _n_tp_blocks(model: Transformer, has_experts: bool) -> int:
    """Blocks of a layer that are split over tp, each with its own exchanges.

    Attention is one, the feed-forward part or experts of all tokens another, unless both stand side
    by side and add up before they are exchanged.
    """
    if has_experts and model.experts is not None:
        return 1 + (model.experts.shared_width > 0)
    return 1 if model.is_parallel else 2


def _tp(strategy: Strategy, size: Any, count: Any, what: str) -> _Found:
    """All-reduces, or what sequence parallelism makes of them."""
    split = np.asarray(strategy.sequence_parallel)
    yield Exchange("tp", CollectiveKind.ALL_REDUCE, size, count * ~split, what)
    yield Exchange("tp", CollectiveKind.ALL_GATHER, size, count * split, what)
    yield Exchange("tp", CollectiveKind.REDUCE_SCATTER, size, count * split, what)


def _tp_inputs(strategy: Strategy, size: Any, count: Any, what: str) -> _Found:
    """Inputs that sequence parallelism keeps split, gathered again for gradients of weights."""
    split = np.asarray(strategy.sequence_parallel)
    yield Exchange("tp", CollectiveKind.ALL_GATHER, size, count * split, what, hides=True)


def _heads(n_heads: int, strategy: Strategy) -> Any:
    """Heads of a rank; where there are fewer than ranks of tp, several hold the same one."""
    return np.maximum(n_heads / np.asarray(strategy.tp), 1)


def _cp_sizes(model: Transformer, strategy: Strategy, formats: Formats) -> tuple[Any, Any, Any]:
    """Bytes of a rank's queries, of its outputs, and of its keys and values."""
    attention = model.attention
    size = _tokens(model, strategy) * formats.activation_bytes
    heads, kv_heads = (_heads(n, strategy) for n in (attention.n_heads, attention.n_kv_heads))
    kv_width = attention.head_dim + attention.head_dim_v
    widths = heads * attention.head_dim, heads * attention.head_dim_v, kv_heads * kv_width
    return size * widths[0], size * widths[1], size * widths[2]


def _cp_forward(
    model: Transformer, strategy: Strategy, formats: Formats, habits: Habits, count: Any
) -> _Found:
    keys, n_ranks = _cp_sizes(model, strategy, formats)[2], np.asarray(strategy.cp)
    what = "keys and values"
    if habits.cp == "ring":
        yield Exchange("cp", SEND_RECV, keys, count * (n_ranks - 1), what, hides=True)
    elif habits.cp == "all-gather":
        yield Exchange("cp", CollectiveKind.ALL_GATHER, keys * n_ranks, count, what)
    else:
        yield from _cp_heads(model, strategy, formats, count)


def _cp_backward(
    model: Transformer, strategy: Strategy, formats: Formats, habits: Habits
) -> _Found:
    keys, n_ranks = _cp_sizes(model, strategy, formats)[2], np.asarray(strategy.cp)
    what = "gradients of keys and values"
    if habits.cp == "ring":
        both = "keys, values and their gradients"
        yield Exchange("cp", SEND_RECV, 2 * keys, n_ranks - 1, both, hides=True)
    elif habits.cp == "all-gather":
        yield Exchange("cp", CollectiveKind.ALL_GATHER, keys * n_ranks, 1, "keys and values")
        yield Exchange("cp", CollectiveKind.REDUCE_SCATTER, keys * n_ranks, 1, what)
    else:
        yield from _cp_heads(model, strategy, formats, 1)


def _cp_heads(model: Transformer, strategy: Strategy, formats: Formats, count: Any) -> _Found:
    """From parts of the sequence to parts of the heads, and back."""
    queries, outputs, keys = _cp_sizes(model, strategy, formats)
    kind = CollectiveKind.ALL_TO_ALL
    yield Exchange("cp", kind, queries + keys, count, "queries, keys and values")
    yield Exchange("cp", kind, outputs, count, "outputs of attention")


def _experts(
    model: Transformer, strategy: Strategy, formats: Formats, habits: Habits, count: Any
) -> _Found:
    """Dispatch and combine; each expert's tokens are gathered over etp, its outputs reduced."""
    if model.experts is None:
        return
    shares = np.where(np.asarray(strategy.sequence_parallel), strategy.tp, 1)
    tokens = _tokens(model, strategy) * model.hidden / shares
    topk, etp = model.experts.topk, np.asarray(strategy.etp)
    limit = habits.experts_on_at_most
    far = tokens * min(topk, limit or topk) if habits.sends_once_per_node else None
    steps = (
        (formats.dispatch_bytes, CollectiveKind.ALL_GATHER, "tokens to experts"),
        (formats.combine_bytes, CollectiveKind.REDUCE_SCATTER, "tokens from experts"),
    )
    for number_bytes, kind, what in steps:
        size = tokens * topk * number_bytes
        far_bytes = None if far is None else far * number_bytes
        kind_of_ep = CollectiveKind.ALL_TO_ALL
        yield Exchange("ep", kind_of_ep, size, count, what, far_bytes, n_copies=topk)
        yield Exchange("etp", kind, size * etp, count, what)


def _zero(
    strategy: Strategy, axis: str, n_parameters: Number, formats: Formats, habits: Habits
) -> _Found:
    """Gradients and weights of one kind of parameters, for one step."""
    zero, m = np.asarray(strategy.zero), np.asarray(strategy.n_microbatches)
    gradients = np.asarray(n_parameters) * formats.gradient_bytes
    weights = np.asarray(n_parameters) * formats.weight_bytes
    n_reduced = np.where((zero >= 2) & (not habits.reduces_once), m, 1)
    n_gathered = np.where(zero == 3, m * (2 if habits.reshards else 1), 1)
    some = np.asarray(n_parameters) > 0
    yield Exchange(axis, CollectiveKind.ALL_REDUCE, gradients, some * (zero == 0), "gradients")
    yield Exchange(
        axis, CollectiveKind.REDUCE_SCATTER, gradients, some * (zero > 0) * n_reduced, "gradients"
    )
    yield Exchange(
        axis, CollectiveKind.ALL_GATHER, weights, some * (zero > 0) * n_gathered, "weights"
    )
