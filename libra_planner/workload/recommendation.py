"""Deep learning recommendation models (DLRM): parameters, FLOPs, and the step as operations.

Naumov et al. (arXiv 1906.00091): numbers go through the bottom network, categories through
embedding tables; all pairs of their vectors are multiplied; the top network takes the products and
the bottom network's vector. The networks are replicated, the tables split over all ranks: every
rank looks up its tables for all samples and sends each rank the vectors of its samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from libra_planner.units import BYTES_PER_GB
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Covers,
    Operation,
    Phase,
    Workload,
)

_TABLE_BYTES = 4
"""Of one element of an embedding table: they are kept in fp32."""
_PASSES_BACK = 2
"""Gradients of looked-up rows: each row is read and written."""


@dataclass(frozen=True)
class Dlrm:
    """Shape of a DLRM.

    Parameters
    ----------
    n_dense : numbers of a sample.
    bottom, top : widths of the layers of the two networks, without their inputs; the last of
        ``bottom`` is as wide as a vector of the tables.
    table_rows : rows of every table, one for each kind of category.
    n_lookups : rows of every table that are added up for a sample.

    Examples
    --------
    MLPerf's model takes 479 values into its top network: a vector of 128 and 27 x 26 / 2 products.

    >>> mlperf = Dlrm(13, (512, 256, 128), (1024, 1024, 512, 256, 1), (10,) * 26)
    >>> mlperf.n_top_inputs, mlperf.n_mlp_weights
    (479, 2365184)
    """

    n_dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    table_rows: tuple[int, ...]
    n_lookups: int = 1

    @property
    def vector_width(self) -> int:
        """Width of a row of the tables."""
        return self.bottom[-1]

    @property
    def n_pairs(self) -> int:
        """Products of two different vectors, the bottom network's among them."""
        return len(self.table_rows) * (len(self.table_rows) + 1) // 2

    @property
    def n_top_inputs(self) -> int:
        """Inputs of the top network."""
        return self.vector_width + self.n_pairs

    @property
    def layers(self) -> tuple[tuple[str, int, int], ...]:
        """Name, inputs and outputs of the fully connected layers."""
        bottom = enumerate(pairwise((self.n_dense, *self.bottom)), 1)
        top = enumerate(pairwise((self.n_top_inputs, *self.top)), 1)
        named = [(f"bottom{i}", *widths) for i, widths in bottom]
        return (*named, *((f"top{i}", *widths) for i, widths in top))

    @property
    def n_mlp_weights(self) -> int:
        """Parameters of the matrices of the two networks."""
        return sum(n_inputs * n_outputs for _, n_inputs, n_outputs in self.layers)

    @property
    def n_table_parameters(self) -> int:
        """Parameters of all tables."""
        return sum(self.table_rows) * self.vector_width

    @property
    def n_parameters(self) -> int:
        """Parameters: matrices, biases and tables."""
        biases = sum(n_outputs for _, _, n_outputs in self.layers)
        return self.n_mlp_weights + biases + self.n_table_parameters

    @property
    def macs_per_sample(self) -> int:
        """Multiply-accumulates forward: the networks and the products of pairs."""
        return self.n_mlp_weights + self.n_pairs * self.vector_width


@dataclass(frozen=True)
class DlrmTraining:
    """How a DLRM is trained: networks replicated, tables split over all ranks.

    Parameters
    ----------
    samples_per_replica : samples per step of one rank.
    dp : ranks.
    macs_per_s : multiply-accumulates per second that one NPU sustains.
    memory_bytes_per_s : memory bandwidth at which one NPU reads and writes rows of tables.
    dtype_bytes : bytes of an exchanged vector's or gradient's element.
    """

    samples_per_replica: int
    dp: int
    macs_per_s: float
    memory_bytes_per_s: float
    dtype_bytes: int = 2


def dlrm_workload(name: str, dlrm: Dlrm, training: DlrmTraining) -> Workload:
    """A step: all-to-alls of vectors forward and of their gradients back, all-reduces of networks.

    Work on tables is split evenly over the ranks, which with more ranks than tables means that
    tables are split themselves. A sequence and a token of the workload are a sample.
    """
    n_samples = training.samples_per_replica * training.dp
    tables_GB = dlrm.n_table_parameters * _TABLE_BYTES / BYTES_PER_GB
    notes = (
        "sequences and tokens of this workload are samples",
        f"embedding tables take {tables_GB:,.1f} GB in fp32, split evenly over all NPUs",
    )
    return Workload(
        name,
        tuple(_operations(dlrm, training)),
        n_samples,
        notes,
        covers=Covers.STEP,
        tokens_per_step=n_samples,
    )


def _operations(dlrm: Dlrm, training: DlrmTraining) -> Iterator[Operation]:
    layers, n_bottom = dlrm.layers, len(dlrm.bottom)
    for layer in layers[:n_bottom]:
        yield from _layer(*layer, training)
    yield from _tables(dlrm, training)
    pair_s = training.samples_per_replica * dlrm.n_pairs * dlrm.vector_width / training.macs_per_s
    yield Operation("pairs", Phase.FORWARD, pair_s)
    yield Operation("pairs", Phase.INPUT_GRAD, 2 * pair_s)  # a gradient for each factor
    for layer in layers[n_bottom:]:
        yield from _layer(*layer, training)


def _layer(name: str, n_inputs: int, n_outputs: int, training: DlrmTraining) -> Iterator[Operation]:
    compute_s = training.samples_per_replica * n_inputs * n_outputs / training.macs_per_s
    size_bytes = float((n_inputs + 1) * n_outputs * training.dtype_bytes)
    gradients = Collective(CollectiveKind.ALL_REDUCE, size_bytes, "dp")
    for phase in Phase:
        yield Operation(name, phase, compute_s, gradients if phase is Phase.WEIGHT_GRAD else None)


def _tables(dlrm: Dlrm, training: DlrmTraining) -> Iterator[Operation]:
    n_vectors = training.samples_per_replica * len(dlrm.table_rows)
    row_bytes = n_vectors * dlrm.n_lookups * dlrm.vector_width * _TABLE_BYTES
    lookup_s = row_bytes / training.memory_bytes_per_s
    size_bytes = float(n_vectors * dlrm.vector_width * training.dtype_bytes)
    vectors = Collective(CollectiveKind.ALL_TO_ALL, size_bytes, "dp")
    yield Operation("tables", Phase.FORWARD, lookup_s, vectors)
    yield Operation("tables", Phase.INPUT_GRAD, _PASSES_BACK * lookup_s, vectors)
