"""Decoder-only transformers with tensor (TP) and data (DP) parallelism as operations.

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

from libra_planner.errors import Fault, SpecError
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


@dataclass(frozen=True)
class Architecture:
    """Shape of a transformer.

    Parameters
    ----------
    n_layers : transformer layers.
    hidden : model width h.
    n_heads : attention heads.
    sequence_tokens : tokens per sequence s.
    vocabulary : tokens known; 0 leaves embedding and logits out.
    ffn_multiple : width of the feed-forward part over ``hidden``.
    """

    n_layers: int
    hidden: int
    n_heads: int
    sequence_tokens: int
    vocabulary: int = 0
    ffn_multiple: int = 4

    @property
    def n_parameters(self) -> int:
        """Weights, biases, layer norms, token and position embeddings.

        Narayanan et al. (SC'21), equation 2: 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)).

        >>> Architecture(96, 12288, 96, 2048, 50257).n_parameters
        174604234752
        """
        per_layer = self.hidden**2 * (4 + 2 * self.ffn_multiple)
        small = self.hidden * (9 + self.ffn_multiple)
        embedding = (self.vocabulary + self.sequence_tokens) * self.hidden
        return self.n_layers * (per_layer + small) + (embedding if self.vocabulary else 0)


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
    name: str, architecture: Architecture, settings: TrainingSettings
) -> Workload:
    """Operations of one training step; of a part where embedding and logits are missing (C21).

    Raises
    ------
    SpecError
        When TP does not divide the width.

    Examples
    --------
    LIBRA's GPT-3 table, row ``Q1``:

    >>> gpt3 = Architecture(2, 12288, 96, 1024)
    >>> libra = TrainingSettings(32, 16, 256, 30 * 2**40, libra_conventions=True)
    >>> first = transformer_workload("gpt3-libra", gpt3, libra).operations[2]
    >>> round(first.compute_s * 1e9), int(first.collective.size_bytes)
    (9375000, 452984832)
    """
    if architecture.hidden % settings.tp:
        expected = f"expected a divisor of the hidden width {architecture.hidden}"
        raise SpecError(Fault(f"got tp {settings.tp}", expected, "change tp", "parallelism.tp"))
    notes: tuple[str, ...] = ()
    if architecture.n_heads % settings.tp:
        heads = f"tp {settings.tp} does not divide the {architecture.n_heads} attention heads"
        notes = (
            f"{heads}; times assume "
            "that the heads' work still splits evenly, which most frameworks do not offer",
        )
    operators = _libra_rows if settings.libra_conventions else _megatron_rows
    operations = tuple(
        operation
        for row, count in operators(architecture, settings)
        for operation in _phases(row, count, architecture, settings)
    )
    n_sequences = settings.sequences_per_replica * settings.dp
    is_whole = architecture.vocabulary > 0 and not settings.libra_conventions
    n_parameters, memory = architecture.n_parameters / settings.tp, settings.npu_memory_bytes
    states = ModelStates(n_parameters, settings.dtype_bytes, settings.dp, memory)
    return Workload(
        name,
        operations,
        n_sequences,
        notes,
        covers=Covers.STEP if is_whole else Covers.PART,
        tokens_per_step=n_sequences * architecture.sequence_tokens,
        memory=states if is_whole else None,
    )


def _layer_rows(architecture: Architecture, settings: TrainingSettings) -> list[_Operator]:
    """The nine operators of a layer: 12 h^2 + 2 s h MACs a token, and the norm."""
    hidden, tp, is_libra = architecture.hidden, settings.tp, settings.libra_conventions
    n_tokens = settings.sequences_per_replica * architecture.sequence_tokens
    projection = hidden**2 / tp
    feed_forward = architecture.ffn_multiple * projection
    score = n_tokens * architecture.sequence_tokens * hidden / tp
    return [
        _Operator("Q", n_tokens * projection, projection, backward=True),
        _Operator("K", n_tokens * projection, projection),
        _Operator("V", n_tokens * projection, projection),
        _Operator("QK", score),
        _Operator("softmax", score),
        _Operator("concat", n_tokens * projection, projection, forward=True, gather=is_libra),
        _Operator("XW1b", n_tokens * feed_forward, feed_forward, backward=True),
        _Operator("XW2b", n_tokens * feed_forward, feed_forward, forward=True),
        _Operator("layerNorm", n_tokens * hidden),
    ]


def _megatron_rows(
    architecture: Architecture, settings: TrainingSettings
) -> Iterator[tuple[_Operator, int]]:
    """One layer, repeated ``n_layers`` times, and the tied embedding with its logits."""
    for row in _layer_rows(architecture, settings):
        yield row, architecture.n_layers
    if architecture.vocabulary:
        n_tokens = settings.sequences_per_replica * architecture.sequence_tokens
        weights = architecture.vocabulary * architecture.hidden / settings.tp
        yield _Operator("embedding", n_tokens * weights, weights, forward=True, backward=True), 1


_LIBRA_NAMES = {"XW1b": "X{}W1b{}", "XW2b": "X{}W2b{}"}


def _libra_rows(
    architecture: Architecture, settings: TrainingSettings
) -> Iterator[tuple[_Operator, int]]:
    """LIBRA's layout: every layer written out, all weights charged to the first row."""
    rows = _layer_rows(architecture, settings)
    all_weights = architecture.n_layers * sum(row.n_weights for row in rows)
    for layer in range(1, architecture.n_layers + 1):
        for i, row in enumerate(rows):
            name = _LIBRA_NAMES.get(row.name, row.name + "{}").format(layer, layer)
            weights = all_weights if layer == 1 and i == 0 else 0.0
            yield replace(row, name=name, n_weights=weights), 1


def _phases(
    row: _Operator, count: int, architecture: Architecture, settings: TrainingSettings
) -> Iterator[Operation]:
    """Forward, input gradient and weight gradient of one operator, each ``macs`` long."""
    compute_s = row.macs / settings.macs_per_s
    if settings.libra_conventions:
        compute_s = math.floor(compute_s * NS_PER_S + 0.5) / NS_PER_S
    n_tokens = settings.sequences_per_replica * architecture.sequence_tokens
    activation = float(n_tokens * architecture.hidden * settings.dtype_bytes)
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
