"""Memory that the step of a model needs, and what would make it fit (C19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from libra_planner.workload.memory.habits import MEGATRON_MEMORY, MemoryHabits
from libra_planner.workload.memory.npu import Memory, memory
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Transformer


@dataclass(frozen=True)
class MemoryUse:
    """Memory of one NPU of the fullest stage.

    Parameters
    ----------
    model, strategy, habits : whose memory, and what the library keeps.
    npu_memory_bytes : of the NPU; ``None`` where nobody says.
    """

    model: Transformer
    strategy: Strategy
    habits: MemoryHabits = MEGATRON_MEMORY
    npu_memory_bytes: float | None = None

    @property
    def parts(self) -> Memory:
        """Bytes by what they hold."""
        return memory(self.model, self.strategy, habits=self.habits)

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return float(self.parts.total_bytes)

    @property
    def fits(self) -> bool | None:
        """Whether it fits the NPU; ``None`` where its memory is not known."""
        room = self.npu_memory_bytes
        return None if room is None else self.total_bytes <= room

    @property
    def over_bytes(self) -> float:
        """What it needs beyond the NPU's memory; 0 where it fits."""
        return max(0.0, self.total_bytes - (self.npu_memory_bytes or float("inf")))

    def fixes(self) -> Iterator[tuple[str, float]]:
        """What alone would make it fit, and the bytes that it then needs, the cheapest first.

        More recomputation, then ZeRO, then half of the microbatch, then both first ones.
        """
        for words, changed in _changes(self.strategy):
            n_bytes = replace(self, strategy=changed).total_bytes
            if self.npu_memory_bytes is not None and n_bytes <= self.npu_memory_bytes:
                yield words, n_bytes


def _changes(one: Strategy) -> Iterator[tuple[str, Strategy]]:
    """Strategies that need less, with what to write for them."""
    recomputes = [x for x in Recompute if x > one.recompute]
    stages = range(int(one.zero) + 1, 4) if one.dp * one.cp > 1 else ()
    for recompute in recomputes:
        yield f"recompute: {recompute.name.lower()}", replace(one, recompute=recompute)
    for stage in stages:
        yield f"zero: {stage}", replace(one, zero=stage)
    half = int(one.microbatch) // 2
    while half:
        yield f"microbatch: {half}", replace(one, microbatch=half)
        half //= 2
    if recomputes and stages:
        both = replace(one, recompute=Recompute.FULL, zero=stages[-1])
        yield f"recompute: full and zero: {stages[-1]}", both
