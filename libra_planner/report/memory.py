"""What weights, gradients and optimizer states need on an NPU, in words and as JSON (C19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from libra_planner.problem import Problem
from libra_planner.units import format_bytes
from libra_planner.workload.memory import MOST_SHARDED, ModelStates

_HOW_TO_SAY = (
    "the NPU's memory is not known; name an NPU of the catalogue or write npu.memory, e.g. 80 GB"
)

WARNING = "WARNING: "
"""What a line begins with that warns."""


@dataclass(frozen=True)
class MemoryLine:
    """A sentence on the memory of an NPU.

    Parameters
    ----------
    text : without markup.
    warns : whether the model does not fit as the plan has it.
    """

    text: str
    warns: bool = False


def memory_lines(problem: Problem) -> Iterator[MemoryLine]:
    """What the models need on an NPU, and whether they fit; none where no workload knows it."""
    for name, states in problem.memories.items():
        of = f" of {name}" if problem.members else ""
        yield MemoryLine(f"Memory per NPU{of}: {needs(states)}")
        warns = states.fits is False
        said = verdict(states, of)
        yield MemoryLine(WARNING + said if warns else said[0].upper() + said[1:], warns)


def memory_markup(problem: Problem) -> Iterator[str]:
    """The lines for a terminal."""
    from libra_planner.report.markup import escape

    for line in memory_lines(problem):
        yield f"[red]{escape(line.text)}[/]" if line.warns else escape(line.text)


def memory_payload(states: ModelStates | None) -> dict[str, Any] | None:
    """Key ``memory`` of JSON results; null where the workload does not know it."""
    if states is None:
        return None
    return {
        "weights_bytes": states.weights_bytes,
        "gradients_bytes": states.gradients_bytes,
        "optimizer_bytes": states.optimizer_bytes,
        "total_bytes": states.total_bytes,
        "sharded_bytes": states.sharded_bytes,
        "npu_memory_bytes": states.npu_memory_bytes,
        "fits": states.fits,
        "fits_sharded": states.fits_sharded,
        "zero_stage": states.zero_stage,
        "verdict": verdict(states),
    }


def needs(states: ModelStates) -> str:
    """Bytes by kind, and the least that ZeRO leaves of them."""
    kinds = (
        f"{format_bytes(states.weights_bytes)} weights",
        f"{format_bytes(states.gradients_bytes)} gradients",
        f"{format_bytes(states.optimizer_bytes)} optimizer states",
    )
    sharded = f"{format_bytes(states.sharded_bytes)} if all is sharded over DP {states.dp}"
    total = format_bytes(states.total_bytes)
    return f"{' + '.join(kinds)} = {total}; {sharded}; activations are not counted"


def brief_verdict(states: ModelStates) -> str:
    """:func:`verdict` for a narrow column, after the bytes that are needed.

    >>> brief_verdict(ModelStates(1e9, 2, dp=8, npu_memory_bytes=16e9))
    ' of 16.000 GB per NPU: needs ZeRO 1'
    """
    memory = states.npu_memory_bytes
    if memory is None:
        return " per NPU, of unknown memory"
    needed = {0: "fits", None: "does not fit"}.get(states.zero_stage)
    return f" of {format_bytes(memory)} per NPU: {needed or f'needs ZeRO {states.zero_stage}'}"


def verdict(states: ModelStates, of: str = "") -> str:
    """Whether the states fit the NPU: as they are, with ZeRO, not at all, or not known.

    Parameters
    ----------
    states : of one NPU.
    of : whose, such as " of gpt3".

    Examples
    --------
    >>> verdict(ModelStates(1e9, 2, dp=8, npu_memory_bytes=20e9), " of a")
    'the model of a fits the 20.000 GB of the NPU without ZeRO; activations have 2.000 GB'
    """
    memory = states.npu_memory_bytes
    if memory is None:
        return f"whether the model{of} fits cannot be told: {_HOW_TO_SAY}"
    room, stage = format_bytes(memory), states.zero_stage
    if stage == 0:
        left = format_bytes(memory - states.total_bytes)
        return f"the model{of} fits the {room} of the NPU without ZeRO; activations have {left}"
    least = format_bytes(states.zero_bytes(MOST_SHARDED if stage is None else stage))
    if stage is None:
        sharded = f" even if all is sharded over DP {states.dp} (ZeRO 3)" if states.dp > 1 else ""
        over = f"{least} exceed the {room} of the NPU{sharded}"
        return f"the model{of} does not fit: {over}; use more NPUs, or ones with more"
    over = f"{format_bytes(states.total_bytes)} exceed the {room} of the NPU"
    with_zero = f"with ZeRO {stage} over DP {states.dp} it needs {least}"
    return f"the model{of} needs ZeRO: {over}; {with_zero}. The step time is without ZeRO"
