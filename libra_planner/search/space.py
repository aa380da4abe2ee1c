"""All ways to train a model on a number of NPUs, as arrays (C15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.topology import Topology
from libra_planner.search.placement import is_placeable
from libra_planner.step.limits import N_ENDS
from libra_planner.workload.memory.activations import saving_recomputations
from libra_planner.workload.memory.habits import MemoryHabits
from libra_planner.workload.memory.stages import has_equal_chunks
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Transformer

Index: TypeAlias = NDArray[np.int64]
_Small: TypeAlias = NDArray[np.int32]

_SHAPE = ("tp", "cp", "dp", "pp", "ep", "etp")
_CHOICE = ("global_batch", "microbatch", "interleave", "recompute", "zero")


@dataclass(frozen=True)
class Choices:
    """What a search may choose from; empty for all that divides.

    Parameters
    ----------
    tp, cp, dp, pp, ep, interleave, microbatch : degrees and counts.
    etp : tensor parallelism of experts.
    recompute, zero : memory savings.
    splits_sequence : whether tensor parallelism splits norms, too, wherever tp is above 1.
    hides_sends : whether sends hide without chunks, too, where the common overlap says p2p.
    """

    tp: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    dp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    interleave: tuple[int, ...] = ()
    microbatch: tuple[int, ...] = ()
    etp: tuple[int, ...] = (1,)
    recompute: tuple[int, ...] = tuple(Recompute)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    splits_sequence: bool = True
    hides_sends: bool = False

    def that_save(self, model: Transformer, common: Strategy, habits: MemoryHabits) -> Choices:
        """Without recomputation that costs time and frees no memory (C19), if others are left."""
        saving = saving_recomputations(model, common, habits)
        left = tuple(one for one in self.recompute if one in saving)
        return replace(self, recompute=left or self.recompute)


@dataclass(frozen=True)
class Space:
    """Every strategy of a model on a fabric that divides; dp fills the NPUs.

    Parameters
    ----------
    model : its shape.
    common : what all strategies share: overlap, attention, schedule, data type.
    shapes : degrees of every placement, shape (n_shapes,) each.
    shape : index of each strategy's placement, (n,).
    columns : global batch, microbatch, interleave, recomputation and ZeRO of each strategy, (n,).
    splits_sequence, hides_sends : as :class:`Choices` has them.
    """

    model: Transformer
    common: Strategy
    shapes: Strategy
    shape: _Small
    columns: dict[str, _Small] = field(repr=False)
    splits_sequence: bool = True
    hides_sends: bool = False

    @property
    def n(self) -> int:
        """Strategies."""
        return len(self.shape)

    def strategies(self, which: Index | slice) -> Strategy:
        """Some of them, as arrays."""
        shape = self.shape[which]
        chosen = {name: getattr(self.shapes, name)[shape] for name in _SHAPE}
        chosen |= {name: self.columns[name][which].astype(np.int64) for name in _CHOICE}
        split = (chosen["tp"] > 1) & self.splits_sequence
        overlap = self.common.overlap
        if overlap.p2p and not self.hides_sends:
            overlap = replace(overlap, p2p=bool(np.all(chosen["interleave"] > 1)))
        return replace(self.common, **chosen, sequence_parallel=split, overlap=overlap)

    def strategy(self, i: int) -> Strategy:
        """One of them."""
        many = self.strategies(np.array([i]))
        one: dict[str, Any] = {name: int(getattr(many, name)[0]) for name in (*_SHAPE, *_CHOICE)}
        return replace(many, **one, sequence_parallel=bool(np.asarray(many.sequence_parallel)[0]))

    @cached_property
    def kind_starts(self) -> Index:
        """Where strategies with other degrees or another global batch begin."""
        batch = self.columns["global_batch"]
        changes = (np.diff(self.shape) != 0) | (np.diff(batch) != 0)
        return np.concatenate([[0], np.flatnonzero(changes) + 1])[: self.n]

    @property
    def kind_sizes(self) -> Index:
        """Strategies of each kind."""
        return np.diff(self.kind_starts, append=self.n)

    def kind_of(self, which: Index) -> Index:
        """Strategies of one kind have the same degrees and global batch."""
        return np.asarray(np.searchsorted(self.kind_starts, which, side="right") - 1)


def strategy_space(
    model: Transformer,
    topology: Topology,
    global_batches: Sequence[int],
    common: Strategy | None = None,
    choices: Choices | None = None,
) -> Space:
    """All that divide.

    tp divides the heads and the feed-forward width, 2 cp the sequence (each rank has an early and
    a late part of it), ep the experts; pp is at most the layers. dp microbatch divides the global
    batch. The chunks of a stage divide the layers of its fullest, microbatches a multiple of pp.
    ZeRO counts once where there is nothing to shard over.

    Parameters
    ----------
    topology : the fabric, on which groups stand at equal distances.
    global_batches : sequences of a step; each is a space of its own.
    common : what all strategies share.
    choices : fewer of them.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> model = Transformer("m", 4, 256, Attention(2, 2, 128, 128), FeedForward(1024), 512)
    >>> space = strategy_space(model, parse_topology("SW(2)"), [2])
    >>> space.n, space.strategy(0).tp, space.strategy(0).dp
    (51, 1, 2)
    """
    common, choices = common or Strategy(), choices or Choices()
    shapes = _shapes(model, topology, common, choices)
    shape, columns = _microbatched(shapes, global_batches, choices)
    shape, columns = _chunked(model, shapes, shape, columns, choices)
    shape, columns = _saving(model, shapes, shape, columns, choices)
    habits = choices.splits_sequence, choices.hides_sends
    return Space(model, common, shapes, shape, columns, *habits)


def possible_degrees(
    model: Transformer, topology: Topology, choices: Choices, axis: str
) -> tuple[int, ...]:
    """Degrees of an axis that divide the model and the NPUs, with the other choices as they are.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> model = Transformer("m", 4, 256, Attention(8, 8, 32, 32), FeedForward(1024), 512)
    >>> possible_degrees(model, parse_topology("SW(6)_SW(2)"), Choices(tp=(8,)), "tp")
    (1, 2)
    """
    free: dict[str, Any] = {axis: ()}
    shapes = _shapes(model, topology, Strategy(), replace(choices, **free))
    return tuple(np.unique(np.asarray(getattr(shapes, axis))).tolist())


def values_that_divide(
    space: Space, topology: Topology, batches: Sequence[int], choices: Choices, key: str
) -> tuple[int, ...]:
    """Values of a choice in the space of a model with other choices, whose batch counts, too.

    Parameters
    ----------
    space : whose model and common habits these are.
    topology, batches, choices : as :func:`strategy_space` takes them.
    key : of :class:`Choices`, such as ``dp`` or ``microbatch``.
    """
    found = strategy_space(space.model, topology, batches, space.common, choices)
    if not found.n:
        return ()
    return tuple(np.unique(np.asarray(getattr(found.strategies(slice(None)), key))).tolist())


def divisors(n: int) -> NDArray[np.int64]:
    """Of a number of 1 or more, in order.

    >>> divisors(12).tolist()
    [1, 2, 3, 4, 6, 12]
    """
    small = np.arange(1, int(n**0.5) + 1)
    small = small[n % small == 0]
    return np.unique(np.append(small, n // small))


def _shapes(model: Transformer, topology: Topology, common: Strategy, choices: Choices) -> Strategy:
    """Degrees that divide the model and the NPUs."""
    n_npus, one = topology.n_npus, np.ones(1, np.int64)
    degrees = divisors(n_npus)
    experts = divisors(model.experts.n) if model.experts else one
    etp = np.array(choices.etp) if model.experts else one
    axes = [
        _chosen(choices.tp, degrees),
        _chosen(choices.cp, degrees),
        _chosen(choices.pp, degrees),
        _chosen(choices.ep, experts),
        etp,
    ]
    tp, cp, pp, ep, etp = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    width = model.ffn.width if not model.experts else model.experts.shared_width or model.ffn.width
    fits = (n_npus % (tp * cp * pp) == 0) & (model.attention.n_heads % tp == 0) & (width % tp == 0)
    fits &= (cp == 1) | (model.sequence_tokens % (2 * cp) == 0)
    fits &= pp <= model.n_layers
    if choices.dp:
        fits &= np.isin(n_npus // (tp * cp * pp), choices.dp)
    fits &= (tp == 1) | (model.experts is None) | choices.splits_sequence
    tp, cp, pp, ep, etp = (column[fits] for column in (tp, cp, pp, ep, etp))
    found = replace(common, tp=tp, cp=cp, dp=n_npus // (tp * cp * pp), pp=pp, ep=ep, etp=etp)
    stands = is_placeable(topology, found)
    return replace(found, **{name: getattr(found, name)[stands] for name in _SHAPE})


def _chosen(wanted: Sequence[int], possible: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.intersect1d(np.array(wanted, np.int64), possible) if wanted else possible


def _microbatched(
    shapes: Strategy, global_batches: Sequence[int], choices: Choices
) -> tuple[_Small, dict[str, _Small]]:
    """Shapes times batches and microbatches that divide what a rank has of them."""
    found = []
    for batch in dict.fromkeys(global_batches):
        sizes = _chosen(choices.microbatch, divisors(batch))
        shape, size = np.nonzero(batch % (np.asarray(shapes.dp)[:, None] * sizes) == 0)
        found.append((shape, np.full(len(shape), batch), sizes[size]))
    columns = [np.concatenate(part).astype(np.int32) for part in zip(*found, strict=True)]
    return columns[0], {"global_batch": columns[1], "microbatch": columns[2]}


def _chunked(
    model: Transformer,
    shapes: Strategy,
    shape: _Small,
    columns: dict[str, _Small],
    choices: Choices,
) -> tuple[_Small, dict[str, _Small]]:
    """Times chunks of a stage."""
    pp, dp = np.asarray(shapes.pp)[shape], np.asarray(shapes.dp)[shape]
    n_microbatches = columns["global_batch"] // (dp * columns["microbatch"])
    can = (pp > 1) & (n_microbatches % pp == 0)
    chunks = _chosen(choices.interleave, np.arange(1, model.n_layers + 1))
    kept = has_equal_chunks(model.n_layers, pp[:, None], chunks)
    kept &= (chunks == 1) | can[:, None]
    kept &= (chunks == 1) | (pp[:, None] * chunks <= model.n_layers + N_ENDS)
    row, chunk = np.nonzero(kept)
    taken = {name: column[row] for name, column in columns.items()}
    return shape[row], taken | {"interleave": chunks[chunk].astype(np.int32)}


def _saving(
    model: Transformer,
    shapes: Strategy,
    shape: _Small,
    columns: dict[str, _Small],
    choices: Choices,
) -> tuple[_Small, dict[str, _Small]]:
    """Times recomputation, and ZeRO where ranks hold the same weights, of experts too."""
    recompute, zero = (
        grid.ravel().astype(np.int32)
        for grid in np.meshgrid(choices.recompute, sorted(choices.zero), indexing="ij")
    )
    n_sharing = np.asarray(shapes.dp * shapes.cp)[shape]
    if model.experts:
        n_sharing = np.maximum(n_sharing, np.asarray(shapes.edp)[shape])
    kept = (n_sharing[:, None] > 1) | (zero == zero.min())
    row, saving = np.nonzero(kept)
    taken = {name: column[row] for name, column in columns.items()}
    return shape[row], taken | {"recompute": recompute[saving], "zero": zero[saving]}
