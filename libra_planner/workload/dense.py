"""The step of a dense transformer under tensor and data parallelism, as operations.

Facts this rests on: a matrix multiply of ``a x b`` weights over ``t`` tokens is
``a*b*t`` multiply-accumulates (MACs); Megatron-style tensor parallelism divides
weights and MACs by TP and all-reduces the activations (tokens * hidden * dtype) twice
per layer and direction (Narayanan et al., SC'21, section 2.3); data parallelism
all-reduces each weight's gradient. The ``libra`` conventions reproduce the tables
published with LIBRA (ISPASS'24): see ``docs/decisions/0004-libra-tables.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.units import NS_PER_S
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Covers,
    ModelStates,
    Operation,
    Phase,
    Workload,
)
from libra_planner.workload.transformer import Attention, Transformer


@dataclass(frozen=True)
class TrainingSettings:
    """How a transformer is trained.

    Parameters
    ----------
    sequences_per_replica : sequences per step of one data-parallel replica.
    tp, dp : degrees of tensor and data parallelism.
    macs_per_s : multiply-accumulates per second that one NPU sustains.
    dtype_bytes : bytes per activation and gradient element.
    libra_conventions : lay the table out as LIBRA's published files do.
    npu_memory_bytes : memory of an NPU, where it is known.
    """

    sequences_per_replica: int
    tp: int
    dp: int
    macs_per_s: float
    dtype_bytes: int = 2
    libra_conventions: bool = False
    npu_memory_bytes: float | None = None


@dataclass(frozen=True)
class _Operator:
    """One row of the table: MACs per phase, weights, and who communicates what.

    ``forward`` and ``backward`` all-reduce activations; ``gather`` gathers them on the way back.
    """

    name: str
    macs: float
    n_weights: float = 0.0
    forward: bool = False
    backward: bool = False
    gather: bool = False


def transformer_workload(
    name: str, transformer: Transformer, settings: TrainingSettings
) -> Workload:
    """Operations of one training step; of a part where embedding and logits are missing (C21).

    Raises
    ------
    SpecError
        When TP does not divide the widths, or the model has experts, latent attention or windows.

    Examples
    --------
    LIBRA's GPT-3 table, row ``Q1``:

    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> heads = Attention(96, 96, 128, 128)
    >>> gpt3 = Transformer("gpt3", 2, 12288, heads, FeedForward(49152), sequence_tokens=1024)
    >>> libra = TrainingSettings(32, 16, 256, 30 * 2**40, libra_conventions=True)
    >>> first = transformer_workload("gpt3-libra", gpt3, libra).operations[2]
    >>> round(first.compute_s * 1e9), int(first.collective.size_bytes)
    (9375000, 452984832)
    """
    _refuse_what_needs_a_strategy(name, transformer)
    refuse(list(_width_faults(transformer, settings.tp)))
    operators = _libra_rows if settings.libra_conventions else _megatron_rows
    operations = tuple(
        operation
        for row, count in operators(transformer, settings)
        for operation in _phases(row, count, transformer, settings)
    )
    n_sequences = settings.sequences_per_replica * settings.dp
    is_whole = transformer.has_logits and not settings.libra_conventions
    n_parameters, memory = transformer.n_parameters / settings.tp, settings.npu_memory_bytes
    states = ModelStates(n_parameters, settings.dtype_bytes, settings.dp, memory)
    return Workload(
        name,
        operations,
        n_sequences,
        tuple(_head_notes(transformer.attention, settings.tp)),
        covers=Covers.STEP if is_whole else Covers.PART,
        tokens_per_step=n_sequences * transformer.sequence_tokens,
        memory=states if is_whole else None,
    )


def _refuse_what_needs_a_strategy(name: str, transformer: Transformer) -> None:
    """What the nine operators of a layer do not hold is never counted as something else."""
    parts = {
        "experts": transformer.experts is not None,
        "latent attention": transformer.attention.is_latent,
        "attention windows": transformer.n_window_layers > 0,
        "modules that predict further tokens": transformer.n_mtp > 0,
    }
    found = " and ".join(part for part, has in parts.items() if has)
    if found:
        expected = "expected a dense transformer: tp and dp alone do not say how the rest is run"
        fix = "give the whole strategy, such as 'parallelism: {tp: 8, dp: 16, pp: 1, ep: 8}'"
        raise SpecError(Fault(f"got {name} with {found}", expected, fix, "workload"))


def _width_faults(transformer: Transformer, tp: int) -> Iterator[Fault]:
    widths = {"hidden width": transformer.hidden, "feed-forward width": transformer.ffn.width}
    for what, width in widths.items():
        if width % tp:
            expected = f"expected a divisor of the {what} {width}"
            yield Fault(f"got tp {tp}", expected, "change tp", "parallelism.tp")
            return


def _head_notes(attention: Attention, tp: int) -> Iterator[str]:
    heads = {"attention heads": attention.n_heads, "key/value heads": attention.n_kv_heads}
    for what, n_heads in heads.items():
        if n_heads % tp:
            yield (
                f"tp {tp} does not divide the {n_heads} {what}; times assume "
                "that the heads' work still splits evenly, which most frameworks do not offer"
            )
            return


def _layer_rows(transformer: Transformer, settings: TrainingSettings) -> list[_Operator]:
    """The nine operators of a layer: its matrices, all scores, and the norm.

    Behind one norm (``is_parallel``) attention and feed-forward part share their all-reduces.
    """
    hidden, tp, is_libra = transformer.hidden, settings.tp, settings.libra_conventions
    attention, ffn, twice = transformer.attention, transformer.ffn, not transformer.is_parallel
    n_tokens = settings.sequences_per_replica * transformer.sequence_tokens
    n_scores = n_tokens * transformer.sequence_tokens
    q, k, v, out, narrow = (
        hidden * width / tp
        for width in (
            attention.q_width,
            attention.k_width,
            attention.v_width,
            attention.out_width,
            ffn.width,
        )
    )
    wide = (ffn.n_matrices - 1) * narrow
    return [
        _Operator("Q", n_tokens * q, q, backward=True),
        _Operator("K", n_tokens * k, k),
        _Operator("V", n_tokens * v, v),
        _Operator("QK", n_scores * attention.q_width / tp),
        _Operator("softmax", n_scores * attention.out_width / tp),
        _Operator("concat", n_tokens * out, out, forward=twice, gather=is_libra),
        _Operator("XW1b", n_tokens * wide, wide, backward=twice),
        _Operator("XW2b", n_tokens * narrow, narrow, forward=True),
        _Operator("layerNorm", n_tokens * hidden),
    ]


def _megatron_rows(
    transformer: Transformer, settings: TrainingSettings
) -> Iterator[tuple[_Operator, int]]:
    """One layer, repeated ``n_layers`` times, between what embeds tokens and what predicts them.

    An embedding that is tied to the logits is one operator with them.
    """
    n_tokens = settings.sequences_per_replica * transformer.sequence_tokens
    weights = transformer.vocabulary * transformer.hidden / settings.tp
    is_apart = transformer.vocabulary > 0 and not transformer.is_tied
    if is_apart:
        yield _Operator("embedding", 0.0, weights, forward=True), 1
    if transformer.patch_values:
        patches = float(transformer.patch_values * transformer.hidden)
        yield _Operator("patches", n_tokens * patches, patches), 1
    for row in _layer_rows(transformer, settings):
        yield row, transformer.n_layers
    if transformer.vocabulary:
        name = "logits" if is_apart else "embedding"
        yield _Operator(name, n_tokens * weights, weights, forward=not is_apart, backward=True), 1
    if transformer.n_classes:
        classes = float(transformer.n_classes * transformer.hidden)
        yield _Operator("classes", settings.sequences_per_replica * classes, classes), 1


_LIBRA_NAMES = {"XW1b": "X{}W1b{}", "XW2b": "X{}W2b{}"}


def _libra_rows(
    transformer: Transformer, settings: TrainingSettings
) -> Iterator[tuple[_Operator, int]]:
    """LIBRA's layout: every layer written out, all weights charged to the first row."""
    rows = _layer_rows(transformer, settings)
    all_weights = transformer.n_layers * sum(row.n_weights for row in rows)
    for layer in range(1, transformer.n_layers + 1):
        for i, row in enumerate(rows):
            name = _LIBRA_NAMES.get(row.name, row.name + "{}").format(layer, layer)
            weights = all_weights if layer == 1 and i == 0 else 0.0
            yield replace(row, name=name, n_weights=weights), 1


def _phases(
    row: _Operator, count: int, transformer: Transformer, settings: TrainingSettings
) -> Iterator[Operation]:
    """Forward, input gradient and weight gradient of one operator, each ``macs`` long."""
    compute_s = row.macs / settings.macs_per_s
    if settings.libra_conventions:
        compute_s = math.floor(compute_s * NS_PER_S + 0.5) / NS_PER_S
    n_tokens = settings.sequences_per_replica * transformer.sequence_tokens
    activation = float(n_tokens * transformer.hidden * settings.dtype_bytes)
    reduce_activation = Collective(CollectiveKind.ALL_REDUCE, activation, "tp")
    gather = Collective(CollectiveKind.ALL_GATHER, activation / settings.tp, "tp", is_shard=True)
    input_grad = reduce_activation if row.backward else None
    gradient = Collective(CollectiveKind.ALL_REDUCE, row.n_weights * settings.dtype_bytes, "dp")
    by_phase = {
        Phase.FORWARD: reduce_activation if row.forward else None,
        Phase.INPUT_GRAD: gather if row.gather else input_grad,
        Phase.WEIGHT_GRAD: gradient if row.n_weights else None,
    }
    for phase, collective in by_phase.items():
        yield Operation(row.name, phase, compute_s, collective, count)
