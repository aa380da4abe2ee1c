"""Memory that the step of a model needs, and what would make it fit (C19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from libra_planner.frozen import Frozen
from libra_planner.step.bands import MEMORY_ERROR_FRACTION
from libra_planner.units import format_bytes
from libra_planner.workload.memory.activations import saving_recomputations
from libra_planner.workload.memory.fitting import Suggestion, what_would_fit
from libra_planner.workload.memory.habits import MEGATRON_MEMORY, MemoryHabits
from libra_planner.workload.memory.npu import Memory, memory
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Transformer


def is_certain(needed_bytes: float, room_bytes: float) -> bool:
    """Whether memory that is needed is further from that of an NPU than such figures are off.

    >>> is_certain(92e9, 100e9), is_certain(94e9, 100e9)
    (True, False)
    """
    return abs(room_bytes - needed_bytes) >= MEMORY_ERROR_FRACTION * needed_bytes


def certain_bytes(room_bytes: float) -> float:
    """The most that a step may need and certainly fit an NPU.

    >>> f"{certain_bytes(85.5e9):.4g}", is_certain(certain_bytes(85.5e9) - 1, 85.5e9)
    ('7.991e+10', True)
    """
    return room_bytes / (1 + MEMORY_ERROR_FRACTION)


def fit_text(use: MemoryUse, of: str = "") -> str:
    """What a step that fits its NPU leaves free, and whether that is certain, in words.

    Parameters
    ----------
    use : of a step that fits.
    of : whose, such as " of gpt3".
    """
    room = use.npu_memory_bytes or 0.0
    error = f"less than the {MEMORY_ERROR_FRACTION:.0%} that such figures are off"
    doubt = "" if use.is_certain else f", {error}: not certain"
    room_text, left_text = format_bytes(room), format_bytes(room - use.total_bytes)
    return f"the model{of} fits the {room_text} of the NPU; {left_text} are left{doubt}"


@dataclass(frozen=True)
class MemoryUse(Frozen):
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

    @cached_property
    def parts(self) -> Memory:
        """Bytes by what they hold."""
        return memory(self.model, self.strategy, habits=self.habits)

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return float(self.parts.total_bytes)

    @property
    def states_bytes(self) -> float:
        """Weights, gradients and optimizer states."""
        return float(self.parts.states_bytes)

    @property
    def fits(self) -> bool | None:
        """Whether it fits the NPU; ``None`` where its memory is not known."""
        room = self.npu_memory_bytes
        return None if room is None else self.total_bytes <= room

    @property
    def is_certain(self) -> bool | None:
        """Whether it fits, or does not, beyond doubt; ``None`` where its memory is not known."""
        room = self.npu_memory_bytes
        return None if room is None else is_certain(self.total_bytes, room)

    @property
    def over_bytes(self) -> float:
        """What it needs beyond the NPU's memory; 0 where it fits."""
        return max(0.0, self.total_bytes - (self.npu_memory_bytes or float("inf")))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of it."""
        one = Recompute(int(self.strategy.recompute))
        if one in saving_recomputations(self.model, self.strategy, self.habits):
            return ()
        return (
            f"{one.name.lower()} recomputation runs attention again and frees no memory, as its "
            "fused kernel keeps no scores: none is faster, full frees more",
        )

    def fixes(self, stands: Callable[[Strategy], bool] | None = None) -> tuple[Suggestion, ...]:
        """What would make it fit and stands on a fabric; none where it does, or nothing does."""
        room = self.npu_memory_bytes or 0.0
        return what_would_fit(self.model, self.strategy, room, habits=self.habits, stands=stands)
