"""Memory and step time of the strategies of a space, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.frozen import Frozen
from libra_planner.search.placement import Placed
from libra_planner.search.placement import placed as groups_of
from libra_planner.search.pricing import ArrayPricing, Lines
from libra_planner.search.space import Index, Space
from libra_planner.step.expression import Array
from libra_planner.step.model_step import LayerPasses, TrainedModel, layer_passes, step_time
from libra_planner.workload.memory.habits import MEGATRON_MEMORY, MemoryHabits
from libra_planner.workload.memory.npu import memory
from libra_planner.workload.strategy import Recompute, Strategy

N_BLOCK = 16384
"""Strategies at a time: their arrays stay in the cache."""

_OF_LAYERS = ("tp", "cp", "ep", "etp")
"""Degrees that layers depend on."""


@dataclass(frozen=True)
class Figures(Frozen):
    """Memory and time of a space's strategies.

    Parameters
    ----------
    space : the strategies.
    trained : model, kernels, formats and habits; its strategy does not matter.
    lines : what exchanges take on the fabric.
    habits : of the library, what it keeps in memory.
    """

    space: Space
    trained: TrainedModel
    lines: Lines
    habits: MemoryHabits = MEGATRON_MEMORY

    def memory_bytes(self, which: Index) -> Array:
        """Of an NPU of the fullest stage, (n,)."""
        found = np.empty(len(which))
        for part in _blocks(len(which)):
            chosen = self.space.strategies(which[part])
            found[part] = memory(self.trained.model, chosen, habits=self.habits).total_bytes
        return found

    def step_time_s(self, which: Index, bandwidth_bytes_per_s: Array) -> Array:
        """At one bandwidth vector, (n,): see :meth:`TimesAt.step_time_s`."""
        return self.at(bandwidth_bytes_per_s).step_time_s(which)

    def at(self, bandwidth_bytes_per_s: Array) -> TimesAt:
        """Step times at one bandwidth vector, shape (n_dims,); infinite counts as no time."""
        return TimesAt(self, ArrayPricing(self.lines, self.placed, bandwidth_bytes_per_s))

    def trained_of(self, strategy: Strategy) -> TrainedModel:
        """The model under other strategies."""
        return replace(self.trained, strategy=strategy)

    @cached_property
    def placed(self) -> Mapping[str, Placed]:
        """Groups of the shapes."""
        return groups_of(self.lines.network.topology, self.space.shapes)

    @cached_property
    def classes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Shapes whose layers differ: one of each class, and the class of every shape."""
        columns = np.stack([getattr(self.space.shapes, name) for name in _OF_LAYERS])
        _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        return first, which.ravel()

    @cached_property
    def sizes(self) -> tuple[NDArray[np.integer[Any]], NDArray[np.int64]]:
        """Distinct microbatches, and the position of each size among them."""
        sizes = np.unique(self.space.columns["microbatch"])
        position = np.zeros(int(sizes.max(initial=0)) + 1, np.int64)
        position[sizes] = np.arange(len(sizes))
        return sizes, position

    def cells(self, which: Index) -> NDArray[np.int64]:
        """Where the layers of each strategy stand in :meth:`layers`."""
        columns, (sizes, position) = self.space.columns, self.sizes
        kind = self.classes[1][self.space.shape[which]] * len(sizes)
        size = position[columns["microbatch"][which]]
        return (kind + size) * len(Recompute) + columns["recompute"][which]

    @cached_property
    def layers(self) -> tuple[NDArray[np.int64], Strategy]:
        """Strategies whose layers differ, and the shape of each."""
        axes = self.classes[0], self.sizes[0], np.array(Recompute)
        shape, size, recompute = (x.ravel() for x in np.meshgrid(*axes, indexing="ij"))
        shapes = self.space.shapes
        chosen = {name: getattr(shapes, name)[shape] for name in (*_OF_LAYERS, "dp", "pp")}
        split = (chosen["tp"] > 1) & self.space.splits_sequence
        rest = {"microbatch": size, "recompute": recompute, "sequence_parallel": split}
        return shape, replace(self.space.common, **chosen, **rest)


@dataclass(frozen=True)
class TimesAt(Frozen):
    """Step times at one bandwidth vector.

    Parameters
    ----------
    figures : of the strategies.
    pricing : of exchanges at the vector.
    """

    figures: Figures
    pricing: ArrayPricing

    def step_time_s(self, which: Index) -> Array:
        """Of some strategies, (n,); in any order."""
        found = np.empty(len(which))
        chunked = self.figures.space.columns["interleave"][which] > 1
        for rows in map(np.flatnonzero, (~chunked, chunked)):
            for part in _blocks(len(rows)):
                found[rows[part]] = self._block_s(which[rows[part]])
        return found

    def _block_s(self, which: Index) -> Any:
        """All of one block interleave, or none."""
        figures = self.figures
        trained = figures.trained_of(figures.space.strategies(which))
        pricing = self.pricing.taken(figures.space.shape[which])
        if len(which) < len(figures.layers[0]) and "passes" not in self.__dict__:
            return step_time(trained, pricing)
        cells, table = figures.cells(which), self.passes
        kinds = (table.dense, table.experts, table.embedding, table.logits)
        taken = [(f[cells], b[cells], w[cells]) for f, b, w in kinds]
        return step_time(trained, pricing, LayerPasses(*taken))

    @cached_property
    def passes(self) -> LayerPasses[Any]:
        """Of every layer that differs, (n_cells,) each."""
        shape, strategy = self.figures.layers
        found = layer_passes(self.figures.trained_of(strategy), self.pricing.taken(shape))
        kinds = (found.dense, found.experts, found.embedding, found.logits)
        whole = [[np.broadcast_to(part, len(shape)) for part in kind] for kind in kinds]
        return LayerPasses(*((f, b, w) for f, b, w in whole))


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + N_BLOCK) for start in range(0, n, N_BLOCK))
