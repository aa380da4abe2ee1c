"""Names of pinned designs: how they came to be, and what tells them from others like them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libra_planner.tui.plans import Pin

MOST_LETTERS = 40
"""Longest name of a design."""


def told_apart(pin: Pin, origin: str, others: Sequence[Pin]) -> str:
    """The origin of a design, with its first figure that no other design of that origin has.

    The same design of the same plan keeps the name that it has.
    """
    base = origin.replace("performance per cost", "perf/cost")
    kin = [one for one in others if one.called == base or one.called.startswith(f"{base}, ")]
    twins = [one for one in kin if _is_same(one, pin)]
    if twins or not kin:
        return twins[0].called if twins else base
    for mine, *theirs in zip(_figures(pin), *map(_figures, kin), strict=True):
        name = f"{base}, {mine}"
        if mine not in theirs and len(name) <= MOST_LETTERS:
            return name
    return base


def _is_same(one: Pin, other: Pin) -> bool:
    return (one.path, one.value, one.bandwidth_GBps) == (
        other.path,
        other.value,
        other.bandwidth_GBps,
    )


def _figures(pin: Pin) -> Iterator[str]:
    """Budget of bandwidth, cost, step time."""
    from libra_planner.units import format_time, format_usd

    yield f"{sum(pin.bandwidth_GBps):,.6g} GB/s"
    yield format_usd(pin.evaluation.network_cost_usd)
    yield format_time(pin.evaluation.step_time_s)
