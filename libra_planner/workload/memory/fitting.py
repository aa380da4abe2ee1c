"""What would make a strategy fit an NPU's memory: one change, or as many as it takes (C19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from libra_planner.workload.memory.habits import MEGATRON_MEMORY, MOST_SHARDED, MemoryHabits
from libra_planner.workload.memory.npu import Memory, memory
from libra_planner.workload.memory.stages import has_equal_chunks
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Transformer

_MOST_TP = 8
"""Tensor parallelism stays inside a server."""
_MOST_CP = 8
"""Context parallelism that is still suggested."""


@dataclass(frozen=True)
class Suggestion:
    """A way to fit.

    Parameters
    ----------
    changes : what to write, such as ``zero: 1``.
    strategy : with these changes.
    memory : that it then needs.
    """

    changes: tuple[str, ...]
    strategy: Strategy
    memory: Memory


_Steps: TypeAlias = Iterator[tuple[str, Strategy]]
"""What to write and the strategy that it makes, each going further than the one before."""
_Direction: TypeAlias = Callable[[Transformer, Strategy], _Steps]


def what_would_fit(
    model: Transformer,
    strategy: Strategy,
    npu_memory_bytes: float,
    *,
    habits: MemoryHabits = MEGATRON_MEMORY,
    stands: Callable[[Strategy], bool] | None = None,
) -> tuple[Suggestion, ...]:
    """Changes that make one strategy fit.

    Directions, in order: sequence parallelism, recomputation, ZeRO, a smaller microbatch, expert
    parallelism, then tensor, pipeline and context parallelism in place of data parallelism. Every
    suggestion goes as far in one direction as it must. Where no direction is enough, expert
    parallelism goes with one other, since it saves most of a model with experts; else the only
    suggestion goes in all of them in turn until it fits. None where that does not help either, and
    for a strategy that fits.

    Parameters
    ----------
    model, strategy, habits : as :func:`~libra_planner.workload.memory.npu.memory`; one strategy.
    npu_memory_bytes : of the NPU.
    stands : whether the groups of a strategy stand on a fabric; ``None`` where none is known.

    Examples
    --------
    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> llama = Transformer("llama3-8b", 32, 4096, Attention(32, 8, 128, 128),
    ...                     FeedForward(14336, is_gated=True), 8192, vocabulary=128256)
    >>> for one in what_would_fit(llama, Strategy(dp=8, global_batch=64, zero=1), 80 * 2**30):
    ...     print(*one.changes, round(one.memory.total_bytes / 1e9, 1))
    recompute: full 74.3
    zero: 2 83.3
    tp: 2, dp: 4, sequence_parallel: true 63.0
    pp: 2, dp: 4 79.0
    cp: 4, dp: 2 74.9
    """
    if memory(model, strategy, habits=habits).fits(npu_memory_bytes):
        return ()

    def gone(start: Strategy, direction: _Direction) -> Suggestion | None:
        def standing(model: Transformer, one: Strategy) -> _Steps:
            return (step for step in direction(model, one) if stands is None or stands(step[1]))

        return _gone(model, start, standing, npu_memory_bytes, habits)

    def in_turn(*directions: _Direction) -> Suggestion | None:
        """As far in each as it takes, one after the other; ``None`` where that does not fit."""
        start, changes = strategy, tuple[str, ...]()
        for direction in directions:
            one = gone(start, direction)
            if one is not None:
                start, changes = one.strategy, (*changes, *one.changes)
                if one.memory.fits(npu_memory_bytes):
                    return replace(one, changes=changes)
        return None

    alone = [(direction,) for direction in _DIRECTIONS]
    with_experts = [(one, _experts) for one in _DIRECTIONS if one is not _experts]
    for ways in (alone, with_experts, [_DIRECTIONS]):
        if found := [one for way in ways if (one := in_turn(*way))]:
            return tuple(found)
    return ()


def _gone(
    model: Transformer,
    strategy: Strategy,
    direction: _Direction,
    npu_memory_bytes: float,
    habits: MemoryHabits,
) -> Suggestion | None:
    """As far in a direction as it takes to fit, else to its end; ``None`` where it is closed."""
    found = None
    for change, changed in direction(model, strategy):
        found = Suggestion((change,), changed, memory(model, changed, habits=habits))
        if found.memory.fits(npu_memory_bytes):
            break
    return found


def _sequence(_: Transformer, one: Strategy) -> _Steps:
    if one.tp > 1 and not one.sequence_parallel:
        yield "sequence_parallel: true", replace(one, sequence_parallel=True)


def _recompute(_: Transformer, one: Strategy) -> _Steps:
    for recompute in Recompute:
        if recompute > one.recompute:
            yield f"recompute: {recompute.name.lower()}", replace(one, recompute=recompute)


def _zero(_: Transformer, one: Strategy) -> _Steps:
    if one.dp * one.cp > 1:
        for stage in range(int(one.zero) + 1, MOST_SHARDED + 1):
            yield f"zero: {stage}", replace(one, zero=stage)


def _microbatch(_: Transformer, one: Strategy) -> _Steps:
    for size in reversed(range(1, int(one.microbatch))):
        if one.microbatch % size == 0:
            yield f"microbatch: {size}", replace(one, microbatch=size)


def _experts(model: Transformer, one: Strategy) -> _Steps:
    n_experts = model.experts.n if model.experts else 1
    n_stage = one.tp * one.cp * one.dp
    for ep in range(int(one.ep) + 1, n_experts + 1):
        if n_experts % ep == 0 and n_stage % (ep * one.etp) == 0:
            yield f"ep: {ep}", replace(one, ep=ep)


def _tensor(model: Transformer, one: Strategy) -> _Steps:
    while one.dp % 2 == 0 and one.tp < _MOST_TP and model.attention.n_heads % (2 * one.tp) == 0:
        one = replace(one, tp=2 * one.tp, dp=one.dp // 2, sequence_parallel=True)
        yield f"tp: {one.tp}, dp: {one.dp}, sequence_parallel: true", one


def _pipeline(model: Transformer, one: Strategy) -> _Steps:
    n_of_experts = 2 * one.ep * one.etp
    while (
        one.dp % 2 == 0
        and 2 * one.pp * one.interleave <= model.n_layers
        and has_equal_chunks(model.n_layers, 2 * one.pp, one.interleave)
        and one.tp * one.cp * one.dp % n_of_experts == 0
    ):
        one = replace(one, pp=2 * one.pp, dp=one.dp // 2)
        yield f"pp: {one.pp}, dp: {one.dp}", one


def _context(_: Transformer, one: Strategy) -> _Steps:
    while one.dp % 2 == 0 and one.cp < _MOST_CP:
        one = replace(one, cp=2 * one.cp, dp=one.dp // 2)
        yield f"cp: {one.cp}, dp: {one.dp}", one


_DIRECTIONS: tuple[_Direction, ...] = (
    _sequence,
    _recompute,
    _zero,
    _microbatch,
    _experts,
    _tensor,
    _pipeline,
    _context,
)
