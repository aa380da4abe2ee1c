"""Max-min fair rates of flows, and the fluid model that follows them to their ends (C11).

Rates are max-min fair over directed links: no flow can have more without a flow of the same or
a lower rate having less. They are found by progressive filling: D. Bertsekas, R. Gallager,
*Data Networks*, 2nd ed., section 6.5.2. In the fluid model every flow begins at time 0 and
has its max-min rate among the flows that have not ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.routing.routes import Routes

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
    rate_Bps: NDArray[np.float64]
    rate_Bps = _first_state(routes, capacity_Bps, np.ones(routes.n_flows)).rate_Bps
    return rate_Bps


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
    return _followed(_first_state(routes, capacity_Bps, size_bytes), routes.n_flows, progress)


def rates_and_finish_times(
    routes: Routes,
    capacity_Bps: ArrayLike,
    size_bytes: ArrayLike,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """:func:`max_min_rates` and :func:`finish_times_s` of the same flows, for one filling.

    Examples
    --------
    >>> from libra_planner.routing.routes import single_paths
    >>> rates_and_finish_times(single_paths([[0], [0]]), [10.0], [10.0, 30.0])
    (array([5., 5.]), array([2., 4.]))
    """
    sizes = np.asarray(size_bytes, dtype=np.float64)
    if not np.all(sizes > 0):  # Flows without bytes have rates, and no part in the fluid model.
        finish_s = finish_times_s(routes, capacity_Bps, sizes, progress=progress)
        return max_min_rates(routes, capacity_Bps), finish_s
    state = _first_state(routes, capacity_Bps, sizes)
    rate_Bps: NDArray[np.float64] = state.rate_Bps.copy()
    return rate_Bps, _followed(state, routes.n_flows, progress)


def _followed(
    state: Any, n_flows: int, progress: Callable[[int, int], None] | None
) -> NDArray[np.float64]:
    """When flows end that have been filled once."""
    from libra_planner.routing.kernels.rates import follow

    is_more = True
    while is_more:
        is_more = follow(tuple(state), _MAX_WORK)
        if progress is not None:
            progress(int(np.sum(np.isfinite(state.finish_s))), n_flows)
    finish_s: NDArray[np.float64] = state.finish_s
    return finish_s


def _first_state(routes: Routes, capacity_Bps: ArrayLike, size_bytes: ArrayLike) -> Any:
    """The kernel's state after the first filling."""
    from libra_planner.routing.kernels.rates import empty_state, start

    sizes = np.array(size_bytes, dtype=np.float64)
    if sizes.shape != (routes.n_flows,):
        raise ValueError(f"got sizes of shape {sizes.shape}, expected ({routes.n_flows},)")
    capacities = np.array(capacity_Bps, dtype=np.float64)
    if capacities.ndim != 1:
        raise ValueError(f"got capacities of shape {capacities.shape}, expected (n_links,)")
    if len(routes.link) and routes.link.max() >= len(capacities):
        raise ValueError(f"got link {routes.link.max()}, expected less than {len(capacities)}")
    for name, values in (("sizes", sizes), ("capacities", capacities)):
        if not np.all(np.isfinite(values) & (values >= 0)):
            raise ValueError(f"{name} must be finite and not negative")
    state = empty_state(routes, capacities, sizes)
    start(tuple(state))
    return state
