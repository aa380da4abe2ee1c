"""Memory of an NPU: bytes by what they hold, and whether the model fits (C19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.problem import Problem
from libra_planner.step.memory_use import MemoryUse, fit_text
from libra_planner.units import BYTES_PER_GB, format_bytes
from libra_planner.views.cells import attributes, escape
from libra_planner.workload.memory.habits import MOST_SHARDED
from libra_planner.workload.operations import ModelStates

_HOW_TO_SAY = (
    "the NPU's memory is not known; name an NPU of the catalogue or write npu.memory, e.g. 80 GB"
)

WARNING = "WARNING: "
"""What a line begins with that warns."""


def memory_lines(problem: Problem) -> Iterator[str]:
    """What the models need on an NPU, and whether they fit; none where no workload knows it.

    A line begins with :data:`WARNING` where the model does not fit as the plan has it.
    """
    for name, states in problem.step.memories.items():
        of = f" of {name}" if problem.members else ""
        yield f"Memory per NPU{of}: {needs(states)}"
        said = verdict(states, of)
        yield WARNING + said if states.fits is False else said[0].upper() + said[1:]


def memory_markup(problem: Problem) -> Iterator[str]:
    """The lines for a terminal."""
    for line in map(escape, memory_lines(problem)):
        yield f"[red]{line}[/]" if line.startswith(WARNING) else line


_PARTS = ("weights", "gradients", "optimizer", "activations", "transient", "communication")
_ALL_PARTS = (*_PARTS, "reserve")
_WORDS = {
    "optimizer": "optimizer states",
    "transient": "at the peak",
    "communication": "buffers",
    "reserve": "reserve",
}


def memory_payload(states: ModelStates | MemoryUse | None) -> dict[str, Any] | None:
    """Key ``memory`` of JSON results; null where the workload does not know it."""
    if states is None:
        return None
    if isinstance(states, MemoryUse):
        parts = {f"{x}_bytes": float(getattr(states.parts, f"{x}_bytes")) for x in _ALL_PARTS}
        figures = attributes(states, "total_bytes", "npu_memory_bytes", "fits")
        return {**parts, **figures, "stage": int(states.parts.stage), "verdict": verdict(states)}
    return {
        **attributes(states, "weights_bytes", "gradients_bytes", "optimizer_bytes"),
        **attributes(states, "total_bytes", "sharded_bytes", "npu_memory_bytes"),
        **attributes(states, "fits", "fits_sharded", "zero_stage"),
        "verdict": verdict(states),
    }


def memory_figures(problem: Problem) -> dict[str, Any]:
    """Keys ``memory_GB``, ``fits`` and ``memory`` of JSON results (C19)."""
    states, found = problem.step.memory, dict[str, Any]()
    if isinstance(states, MemoryUse):
        found = {"memory_GB": states.total_bytes / BYTES_PER_GB, "fits": states.fits}
        found |= {"memory_is_certain": states.is_certain}
    return {**found, "memory": memory_payload(states)}


def needs(states: ModelStates | MemoryUse) -> str:
    """Bytes by kind, and the least that ZeRO leaves of them."""
    if isinstance(states, MemoryUse):
        found = ((x, float(getattr(states.parts, f"{x}_bytes"))) for x in _ALL_PARTS)
        parts = (f"{format_bytes(n)} {_WORDS.get(x, x)}" for x, n in found if n)
        stage = f" on stage {int(states.parts.stage)}" if states.strategy.pp > 1 else ""
        return f"{' + '.join(parts)} = {format_bytes(states.total_bytes)}{stage}"
    kinds = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer states"}
    parts = (f"{format_bytes(getattr(states, f'{k}_bytes'))} {x}" for k, x in kinds.items())
    sharded = f"{format_bytes(states.sharded_bytes)} if all is sharded over DP {states.dp}"
    total = format_bytes(states.total_bytes)
    return f"{' + '.join(parts)} = {total}; {sharded}; activations are not counted"


def brief_verdict(states: ModelStates | MemoryUse) -> str:
    """:func:`verdict` for a narrow column, after the bytes that are needed.

    >>> brief_verdict(ModelStates(1e9, 2, dp=8, npu_memory_bytes=16e9))
    ' of 16.000 GB per NPU: needs ZeRO 1'
    """
    memory = states.npu_memory_bytes
    if memory is None:
        return " per NPU, of unknown memory"
    if isinstance(states, MemoryUse):
        fits = "fits" if states.is_certain else "fits, not certain"
        return f" of {format_bytes(memory)} per NPU: {fits if states.fits else 'does not fit'}"
    needed = {0: "fits", None: "does not fit"}.get(states.zero_stage)
    return f" of {format_bytes(memory)} per NPU: {needed or f'needs ZeRO {states.zero_stage}'}"


def verdict(states: ModelStates | MemoryUse, of: str = "") -> str:
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
    if isinstance(states, MemoryUse):
        return _whole_verdict(states, of)
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


def _whole_verdict(use: MemoryUse, of: str) -> str:
    """The same of the step of a whole model, activations counted."""
    if use.fits:
        return fit_text(use, of)
    room = use.npu_memory_bytes or 0.0
    found = [" and ".join(one.changes) for one in use.fixes()]
    fixes = found or ["NPUs with more memory"]
    over = f"{format_bytes(use.over_bytes)} more than the {format_bytes(room)} of the NPU"
    return f"the model{of} does not fit: it needs {over}; it would fit with {'; '.join(fixes)}"
