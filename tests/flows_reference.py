"""Slow, obvious twins of the max-min rates and of the fluid model; what must hold for rates.

They work with any kind of number: exactly with ``Fraction``, plainly with ``float``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.routing.routes import Routes

Path: TypeAlias = Sequence[tuple[int, Any]]
"""(link, fraction) of every hop of a flow."""


def paths_of(routes: Routes, number: type = float) -> list[Path]:
    """The hops of every flow as pairs."""
    rows = [slice(*routes.start[f : f + 2]) for f in range(routes.n_flows)]
    return [
        [(int(j), number(x)) for j, x in zip(routes.link[r], routes.fraction[r], strict=True)]
        for r in rows
    ]


def plain_max_min(paths: Sequence[Path], capacity: Sequence[Any]) -> list[Any]:
    """Raise all rates together; whenever links fill up, stop the flows on them."""
    rates = [math.inf for _ in paths]
    rising = {f for f, path in enumerate(paths) if path}
    room = list(capacity)
    while rising:
        weight: dict[int, Any] = {}
        for f in rising:
            for j, fraction in paths[f]:
                weight[j] = weight.get(j, 0) + fraction
        level = min(room[j] / weight[j] for j in weight)
        full = {j for j in weight if room[j] / weight[j] == level}
        for f in sorted(rising):
            if any(j in full for j, _ in paths[f]):
                rates[f] = level
                rising.remove(f)
                for j, fraction in paths[f]:
                    room[j] -= fraction * level
    return rates


def plain_finish_times(
    paths: Sequence[Path], capacity: Sequence[Any], sizes: Sequence[Any]
) -> list[Any]:
    """Follow all flows from one end to the next; new rates for those that are left each time."""
    finish = [math.inf if path and size else 0 for path, size in zip(paths, sizes, strict=True)]
    left = {f: sizes[f] for f, time in enumerate(finish) if time}
    now: Any = 0
    while left:
        active = sorted(left)
        rates = dict(zip(active, plain_max_min([paths[f] for f in active], capacity), strict=True))
        waits = {f: left[f] / rates[f] for f in active if rates[f]}
        if not waits:
            break
        wait = min(waits.values())
        now += wait
        for f in active:
            left[f] -= rates[f] * wait
            if waits.get(f) == wait:
                finish[f] = now
                del left[f]
    return finish


def worst_violation(routes: Routes, capacity: NDArray[np.float64], rates: Any) -> float:
    """How far rates are from max-min fair, relative: 0 is exact.

    No link carries more than its capacity, and every flow has a bottleneck: a link that is full
    and on which no flow has a higher rate.
    """
    flow = np.repeat(np.arange(routes.n_flows), np.diff(routes.start))
    hop_rates = np.asarray(rates)[flow]
    load = np.bincount(routes.link, routes.fraction * hop_rates, minlength=len(capacity))
    highest = np.zeros(len(capacity))
    np.maximum.at(highest, routes.link, hop_rates)
    scale = np.where(capacity > 0, capacity, 1.0)
    slack = np.abs(load - capacity)[routes.link] / scale[routes.link]
    behind = 1 - hop_rates / np.where(highest > 0, highest, 1.0)[routes.link]
    behind[highest[routes.link] == 0] = 0
    bottleneck = np.full(routes.n_flows, np.inf)
    np.minimum.at(bottleneck, flow, np.maximum(slack, behind))
    bottleneck[np.diff(routes.start) == 0] = 0
    return float(max(np.max((load - capacity) / scale, initial=0), bottleneck.max(initial=0)))
