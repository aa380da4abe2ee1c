"""Slow, obvious twin of the flow shop: a plain event simulation."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def simulated_makespan(dims: Sequence[int], times: Sequence[float], n_chunks: int) -> float:
    """When the last of ``n_chunks`` leaves, each visiting ``dims`` for ``times``.

    One chunk at a time per dimension, first come first served; of simultaneous arrivals the
    earlier visit goes first, then the lower chunk.
    """
    queues: dict[int, list[tuple[float, int, int]]] = {dim: [] for dim in dims}
    serving: set[int] = set()
    ends: list[tuple[float, int, int]] = []  # (time, visit, chunk)
    for chunk in range(n_chunks):
        heapq.heappush(queues[dims[0]], (0.0, 0, chunk))
    now = 0.0
    while True:
        for dim, queue in queues.items():
            if queue and dim not in serving:
                _, visit, chunk = heapq.heappop(queue)
                serving.add(dim)
                heapq.heappush(ends, (now + times[visit], visit, chunk))
        if not ends:
            return now
        now = ends[0][0]
        while ends and ends[0][0] == now:  # All that ends now is there before anyone starts.
            _, visit, chunk = heapq.heappop(ends)
            serving.discard(dims[visit])
            if visit + 1 < len(dims):
                heapq.heappush(queues[dims[visit + 1]], (now, visit + 1, chunk))
