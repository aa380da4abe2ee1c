"""Max-min fair rates of flows, and the fluid model that follows them to their ends (C11).

Rates are max-min fair over directed links: no flow can have more without a flow of the same or
a lower rate having less. They are found by progressive filling: D. Bertsekas, R. Gallager,
*Data Networks*, 2nd ed., section 6.5.2. In the fluid model every flow begins at time 0 and
has its max-min rate among the flows that have not ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.routing.routes import Routes

if TYPE_CHECKING:
    from libra_planner.routing.kernels.rates import _State

_MAX_WORK = 3_000_000
"""Table entries read between two calls of ``progress``: about a tenth of a second."""


def max_min_rates(routes: Routes, capacity_Bps: ArrayLike) -> NDArray[np.float64]:
    """Max-min fair rates with all flows active (C11).

    A flow of rate x takes fraction * x of every link that it crosses. A link is full when these
    add up to its capacity; a flow stops rising at the first of its links that is full.

    Parameters
    ----------
    routes : links and fractions of every flow.
    capacity_Bps : capacity of every link, bytes/s, shape (n_links,); 0 for one that is down.

    Returns
    -------
    rate_Bps : bytes/s, shape (n_flows,): 0 over a link that is down, infinite without hops.

    Raises
    ------
    ValueError
        If shapes do not fit, a route uses a link that is not there, or a capacity is not
        finite or negative.

    Examples
    --------
    Flows 0 and 1 share link 0, flows 1 and 2 share link 1.

    >>> from libra_planner.routing.routes import single_paths
    >>> max_min_rates(single_paths([[0, -1], [0, 1], [1, -1]]), [10.0, 18.0])
    array([ 5.,  5., 13.])
    """
    return _filled(routes, capacity_Bps, np.ones(routes.n_flows)).rate_Bps


def finish_times_s(
    routes: Routes,
    capacity_Bps: ArrayLike,
    size_bytes: ArrayLike,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """When every flow ends if all begin at 0 and rates are max-min fair at any time (C11).

    Rates change whenever a flow ends. Ends within 1e-12 of the time are one event.

    Parameters
    ----------
    routes : links and fractions of every flow.
    capacity_Bps : capacity of every link, bytes/s, shape (n_links,); 0 for one that is down.
    size_bytes : bytes of every flow, shape (n_flows,).
    progress : called with the flows that have ended and all flows, several times a second.

    Returns
    -------
    finish_s : s, shape (n_flows,): 0 for a flow without bytes or hops, infinite for another one
        over a link that is down.

    Raises
    ------
    ValueError
        As :func:`max_min_rates`; if a size is not finite or negative.

    Examples
    --------
    Two flows share a link of 10 bytes/s until the smaller one ends.

    >>> from libra_planner.routing.routes import single_paths
    >>> finish_times_s(single_paths([[0], [0]]), [10.0], [10.0, 30.0])
    array([2., 4.])
    """
    from libra_planner.routing.kernels.rates import follow

    state = _filled(routes, capacity_Bps, _sizes(routes, size_bytes))
    is_more = True
    while is_more:
        is_more = follow(tuple(state), _MAX_WORK)
        if progress is not None:
            progress(int(np.sum(np.isfinite(state.finish_s))), routes.n_flows)
    return state.finish_s


def _sizes(routes: Routes, size_bytes: ArrayLike) -> NDArray[np.float64]:
    sizes = np.array(size_bytes, dtype=np.float64)
    if sizes.shape != (routes.n_flows,):
        raise ValueError(f"got sizes of shape {sizes.shape}, expected ({routes.n_flows},)")
    if not np.all(np.isfinite(sizes) & (sizes >= 0)):
        raise ValueError("sizes must be finite and not negative")
    return sizes


def _capacities(routes: Routes, capacity_Bps: ArrayLike) -> NDArray[np.float64]:
    capacities = np.array(capacity_Bps, dtype=np.float64)
    if capacities.ndim != 1:
        raise ValueError(f"got capacities of shape {capacities.shape}, expected (n_links,)")
    if len(routes.link) and routes.link.max() >= len(capacities):
        raise ValueError(f"got link {routes.link.max()}, expected less than {len(capacities)}")
    if not np.all(np.isfinite(capacities) & (capacities >= 0)):
        raise ValueError("capacities must be finite and not negative")
    return capacities


def _filled(routes: Routes, capacity_Bps: ArrayLike, sizes: NDArray[np.float64]) -> _State:
    """The state after the first filling."""
    from libra_planner.routing.kernels.rates import start

    state = _empty_state(routes, _capacities(routes, capacity_Bps), sizes)
    start(tuple(state))
    return state


def _empty_state(
    routes: Routes, capacities: NDArray[np.float64], sizes: NDArray[np.float64]
) -> _State:
    """Arrays for the kernel: flows that have bytes and hops take part, the others have ended.

    They begin with a rate of 1 byte/s and are due accordingly, which the first filling corrects.
    """
    from libra_planner.routing.kernels.rates import BLOCK, _State

    n_flows, n_links, n_hops = routes.n_flows, len(capacities), len(routes.link)
    n_blocks = -(-n_flows // BLOCK)
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
