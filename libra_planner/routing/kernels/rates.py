"""Compiled loops of the max-min rates and the fluid model (C11).

Progressive filling: a level rises from zero; every flow that is open has this rate. Link j is
full when room_l = weight_l * level, where room_l is its capacity less what the fixed flows on it
take, and weight_l the sum of the fractions of the open ones. The open flows of a full link are
fixed at the level. A link's full level only rises as flows are fixed below it, so a heap whose
keys may be too low serves: a link that comes to its top is computed again first.

When flows end and the slowest of them has rate r, every flow below r keeps its rate. Proof: let
two fillings run side by side, with and without the flows that end. Up to level r the flows that
end are open in the first, so none of their links is full below r; without them these links hold
less, so they are not full in the second either. All other links hold the same flows in both. So
below r the same links fill at the same levels and fix the same flows. Nor does anything change
for a flow that no chain of links and flows from r upwards joins to one that ended: the equations
of its part of the filling are untouched. So only the flows that such a chain reaches are opened.

Nothing is carried from event to event but rates and the times at which flows are due to end:
room and weight are summed anew from the flows on a link, so rounding does not pile up, and a
flow ends when it is due, so none is almost finished for ever.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.routing.kernels import kept, part
from libra_planner.routing.routes import Routes

_ENDED, _FIXED, _OPEN = 0, 1, 2
_BLOCK = 256
"""Flows that share one entry in the search for the next end."""
_SAME_TIME = 1e-12
"""Flows that are due within this part of the time end together."""
_SAME_LEVEL = 1e-9
"""Levels this close below r are filled again too: more work than needed, never less."""


# All arrays of a filling. Flows are f, links are j, hops and rows are pairs of them.
#
# Flow to links: ``start, link, fraction``. Link to flows: ``row_start, row_end, row_flow,
# row_fraction``; these lose their ended flows when they are read. By flow: ``status``,
# ``rate_Bps``, ``due_s`` (when it ends if rates stay; infinite once it has), ``finish_s``. By
# block of flows: ``block_due_s``, the least of it, unless ``block_stale``. By link:
# ``capacity_Bps, room_Bps, weight, n_open``, ``queued`` (the last event it was queued in).
# ``queue`` and ``heap`` hold links, ``key`` the levels of the heap. ``tally``: see below.
_State = namedtuple(
    "_State",
    "start link fraction row_start row_end row_flow row_fraction status rate_Bps due_s finish_s"
    " block_due_s block_stale capacity_Bps room_Bps weight n_open queued queue heap key tally",
)

_EVENTS, _N_ENDED, _WORK = 0, 1, 2


def empty_state(
    routes: Routes, capacities: NDArray[np.float64], sizes: NDArray[np.float64]
) -> _State:
    """Arrays for the kernel: flows that have bytes and hops take part, the others have ended.

    They begin with a rate of 1 byte/s and are due accordingly, which the first filling corrects.
    """
    n_flows, n_links, n_hops = routes.n_flows, len(capacities), len(routes.link)
    n_blocks = -(-n_flows // _BLOCK)
    has_hops = np.diff(routes.start) > 0
    takes_part = has_hops & (sizes > 0)
    return _State(
        start=routes.start.astype(np.int64),
        link=routes.link.astype(np.int32),
        fraction=routes.fraction.astype(np.float64),
        row_start=np.zeros(n_links + 1, dtype=np.int64),
        row_end=np.zeros(n_links, dtype=np.int64),
        row_flow=np.empty(n_hops, dtype=np.int32),
        row_fraction=np.empty(n_hops),
        status=takes_part.astype(np.int8),
        rate_Bps=np.where(has_hops, 1.0, np.inf),
        due_s=np.where(takes_part, sizes, np.inf),
        finish_s=np.where(takes_part, np.inf, 0.0),
        block_due_s=np.empty(n_blocks),
        block_stale=np.ones(n_blocks, dtype=np.bool_),
        capacity_Bps=capacities,
        room_Bps=np.empty(n_links),
        weight=np.empty(n_links),
        n_open=np.empty(n_links, dtype=np.int32),
        queued=np.empty(n_links, dtype=np.int64),
        queue=np.empty(n_links, dtype=np.int32),
        heap=np.empty(n_links, dtype=np.int32),
        key=np.empty(n_links + 1),
        tally=np.zeros(3, dtype=np.int64),
    )


@part
def _transpose(s: _State) -> None:
    """List the flows of every link."""
    for j in s.link:
        s.row_start[j + 1] += 1
    for j in range(len(s.row_end)):
        s.row_start[j + 1] += s.row_start[j]
        s.row_end[j] = s.row_start[j]
    for f in range(len(s.status)):
        if s.status[f] != _ENDED:
            for hop in range(s.start[f], s.start[f + 1]):
                j = s.link[hop]
                s.row_flow[s.row_end[j]] = f
                s.row_fraction[s.row_end[j]] = s.fraction[hop]
                s.row_end[j] += 1


@part
def _enqueue(s: _State, f: int, n_queue: int) -> int:
    """Queue the links of a flow, each once per event."""
    for hop in range(s.start[f], s.start[f + 1]):
        j = s.link[hop]
        if s.queued[j] != s.tally[_EVENTS]:
            s.queued[j] = s.tally[_EVENTS]
            s.queue[n_queue] = j
            n_queue += 1
    return n_queue


@part
def _open_flows(s: _State, n_queue: int, least_Bps: float) -> tuple[int, int]:
    """Open all flows of at least this rate that the queued links lead to; count flows, links."""
    n_flows = n_links = i = 0
    while i < n_queue:
        j = s.queue[i]
        i += 1
        room, weight, n_open = s.capacity_Bps[j], 0.0, 0
        first, last, end = s.row_start[j], s.row_end[j], s.row_start[j]
        for row in range(first, last):
            f, fraction = s.row_flow[row], s.row_fraction[row]
            if s.status[f] == _ENDED:
                continue
            s.row_flow[end], s.row_fraction[end] = f, fraction
            end += 1
            if s.status[f] == _FIXED and s.rate_Bps[f] >= least_Bps:
                s.status[f] = _OPEN
                n_flows += 1
                n_queue = _enqueue(s, f, n_queue)
            if s.status[f] == _OPEN:
                weight += fraction
                n_open += 1
            else:
                room -= fraction * s.rate_Bps[f]
        s.tally[_WORK] += last - first
        s.row_end[j], s.room_Bps[j], s.weight[j], s.n_open[j] = end, room, weight, n_open
        if n_open:
            s.heap[n_links], s.key[n_links] = j, room / weight
            n_links += 1
    return n_flows, n_links


@part
def _sift_down(s: _State, i: int, n_heap: int) -> None:
    """Move one entry of the heap down; an infinite key after the last one spares a test."""
    j, key = s.heap[i], s.key[i]
    s.key[n_heap] = np.inf
    child = 2 * i + 1
    while child < n_heap:
        child += s.key[child + 1] < s.key[child]
        if not s.key[child] < key:
            break
        s.heap[i], s.key[i] = s.heap[child], s.key[child]
        i = child
        child = 2 * i + 1
    s.heap[i], s.key[i] = j, key


@part
def _fix(s: _State, f: int, level_Bps: float, now_s: float) -> None:
    """Give an open flow its rate, and take it from the open ones of its links."""
    s.status[f] = _FIXED
    old_Bps = s.rate_Bps[f]
    if level_Bps != old_Bps:
        s.rate_Bps[f] = level_Bps
        s.due_s[f] = now_s + (s.due_s[f] - now_s) * (old_Bps / level_Bps)
        s.block_stale[f // _BLOCK] = True
    for hop in range(s.start[f], s.start[f + 1]):
        j = s.link[hop]
        s.room_Bps[j] -= s.fraction[hop] * level_Bps
        s.weight[j] -= s.fraction[hop]
        s.n_open[j] -= 1


@part
def _fill(s: _State, n_flows: int, n_heap: int, now_s: float) -> None:
    """Raise the level until every open flow is fixed."""
    for i in range(n_heap // 2 - 1, -1, -1):
        _sift_down(s, i, n_heap)
    while n_flows:
        j = s.heap[0]
        level = max(s.room_Bps[j] / s.weight[j], 0.0)  # Rounding may leave less than no room.
        if s.n_open[j] and level > s.key[0]:
            s.key[0] = level
        else:
            if s.n_open[j]:
                for row in range(s.row_start[j], s.row_end[j]):
                    if s.status[s.row_flow[row]] == _OPEN:
                        _fix(s, s.row_flow[row], level, now_s)
                        n_flows -= 1
            n_heap -= 1
            s.heap[0], s.key[0] = s.heap[n_heap], s.key[n_heap]
        _sift_down(s, 0, n_heap)


@part
def _next_end_s(s: _State) -> float:
    """When the next flow is due to end; infinite if none is."""
    soonest = np.inf
    for block in range(len(s.block_due_s)):
        if s.block_stale[block]:
            least = np.inf
            for f in range(block * _BLOCK, min((block + 1) * _BLOCK, len(s.due_s))):
                least = min(least, s.due_s[f])
            s.block_due_s[block] = least
            s.block_stale[block] = False
        soonest = min(soonest, s.block_due_s[block])
    return soonest


@part
def _end_flows(s: _State, now_s: float) -> tuple[int, float]:
    """End the flows that are due, queue their links; how many, and the least of their rates."""
    n_queue, slowest_Bps = 0, np.inf
    last_s = now_s * (1 + _SAME_TIME)
    for block in range(len(s.block_due_s)):
        if s.block_due_s[block] <= last_s:
            s.block_stale[block] = True
            for f in range(block * _BLOCK, min((block + 1) * _BLOCK, len(s.due_s))):
                if s.due_s[f] <= last_s:
                    s.status[f], s.due_s[f], s.finish_s[f] = _ENDED, np.inf, now_s
                    s.tally[_N_ENDED] += 1
                    slowest_Bps = min(slowest_Bps, s.rate_Bps[f])
                    n_queue = _enqueue(s, f, n_queue)
    return n_queue, slowest_Bps


@kept
def start(arrays: tuple[NDArray[Any], ...]) -> None:
    """Fill once, with every flow that takes part; ``arrays`` as in the state."""
    s = _State(*arrays)
    _transpose(s)
    for j in range(len(s.queue)):
        s.queue[j] = j
        s.queued[j] = s.tally[_EVENTS]
    n_flows, n_links = _open_flows(s, len(s.queue), 0.0)
    _fill(s, n_flows, n_links, 0.0)


@kept
def follow(arrays: tuple[NDArray[Any], ...], max_work: int) -> bool:
    """Follow the flows through some events; whether there may be more."""
    s = _State(*arrays)
    s.tally[_WORK] = 0
    while s.tally[_WORK] < max_work:
        now_s = _next_end_s(s)
        if now_s == np.inf:
            return False
        s.tally[_EVENTS] += 1
        n_queue, slowest_Bps = _end_flows(s, now_s)
        n_flows, n_links = _open_flows(s, n_queue, slowest_Bps * (1 - _SAME_LEVEL))
        _fill(s, n_flows, n_links, now_s)
        s.tally[_WORK] += len(s.block_due_s)
    return True
