"""Greedy routing, largest flow first, and simulated annealing of the paths of all flows."""

from __future__ import annotations

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Choice, Clos, Flows, Indices, hops
from libra_planner.routing.loads import (
    DEAD,
    by_tier,
    choice_of,
    ends_of,
    groups,
    no_load,
    no_picks,
    picks_of,
    rank,
    weighted_counts,
    weights_of,
)


def greedy(fabric: Clos, flows: Flows, *, per_collective: bool = False) -> Choice:
    """Flows by size descending, then in order, each to the path of the least loaded worst link.

    The load of a link is the number of flows that were given it; a path costs the largest load
    of its links between switches, max(up, down) on leaf-spine. Every spine offers the least
    loaded of parallel links, and the core with the least loaded worst link; the lowest index
    wins among equals, of links, cores, and then spines. Failed links are no candidates.

    Parameters
    ----------
    per_collective : whether loads start again at 0 for every collective, for collectives that
        are not active at the same time.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        For hosts that the fabric does not have or join, or a flow whose paths have all failed.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 0]), np.array([2, 3, 1]), np.array([1.0, 2.0, 9.0]))
    >>> greedy(fabric, flows).uplink
    array([ 1,  0, -1])
    """
    group = groups(flows, per_collective=per_collective)
    return choice_of(placed(fabric, flows, group, no_picks(flows)))


def greedy_by_bytes(fabric: Clos, flows: Flows) -> Choice:
    """As :func:`greedy`, but the load of a link is the time that its bytes take.

    Examples
    --------
    The two small flows share the link that the large one is not on:

    >>> fabric = Clos(hosts_per_leaf=3, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([9.0, 1.0, 2.0]))
    >>> greedy(fabric, flows).uplink, greedy_by_bytes(fabric, flows).uplink
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    group, weights = groups(flows, per_collective=False), weights_of(fabric, flows)
    return choice_of(placed(fabric, flows, group, no_picks(flows), weights))


def placed(
    fabric: Clos,
    flows: Flows,
    group: Indices,
    picks: Indices,
    weights: Indices | None = None,
) -> Indices:
    """Picks with a path for each flow that has none; those that have one keep it.

    Parameters
    ----------
    group : shape (n_flows,); loads start again at 0 for each group.
    picks : as :data:`~libra_planner.routing.loads.COLUMNS`, -1 where there is none; overwritten.
    weights : what a flow adds to the load of a link at leaves, and at cores, shape
        (n_flows, 2); 1 without them.
    """
    from libra_planner.routing.kernels.assignment import place

    where = hops(fabric, flows)
    order = np.lexsort((-flows.size_bytes, picks[:, 0] < 0, group))
    order = np.ascontiguousarray(order[where.leaves_leaf[order]])
    tiers = by_tier(fabric, no_load(fabric))
    if weights is None:
        weights = np.ones((flows.n_flows, 2), dtype=np.int64)
    lost = place(tuple(tiers), tuple(ends_of(where)), order, group, picks, weights)
    if lost >= 0:
        got = f"got no path for flow {lost} from host {flows.src[lost]} to host {flows.dst[lost]}"
        raise SpecError(Fault(got, "expected one over links that have not failed"))
    return picks


_FIRST, _LAST = 4.0, 0.2
"""Temperatures of the first and last sweep over the mean square of a flow's weight; with flows
that are alike a move changes the sum of squares by an even number."""


def annealing(fabric: Clos, flows: Flows, *, seed: int, n_sweeps: int = 100) -> Choice:
    """Greedy paths improved by random moves.

    The load of a link is its number of flows; where they are not alike in size, or links not in
    speed, the time that its bytes take, and the start is the better of counting and weighing.

    A sweep moves random flows to random paths, as many times as there are flows. A move that
    changes the sum over links of squared loads by D is kept with probability
    min(1, exp(-D / temperature)), unless it would raise the largest load or use a failed link;
    the temperature falls from sweep to sweep by a constant factor. The result is never worse
    than :func:`greedy` in the largest load, then the FIM of counts (C10).

    Parameters
    ----------
    seed : of the random numbers.
    n_sweeps : 1 or more; time is proportional to it.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        As :func:`greedy`.

    References
    ----------
    S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by simulated annealing,
    Science 220, 1983.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.array([1.0, 2.0]))
    >>> sorted(annealing(fabric, flows, seed=1).uplink.tolist())
    [0, 1]
    """
    starts = [greedy(fabric, flows), greedy_by_bytes(fabric, flows)]
    start = min(starts, key=lambda choice: rank(fabric, flows, choice))
    found = choice_of(_annealed(fabric, flows, start, np.random.default_rng(seed), n_sweeps))
    return min(start, found, key=lambda choice: rank(fabric, flows, choice))


def _annealed(
    fabric: Clos, flows: Flows, start: Choice, rng: np.random.Generator, n_sweeps: int
) -> Indices:
    """Picks after the sweep with the least largest load, then least sum of squares."""
    from libra_planner.routing.kernels.assignment import sweep

    where, weights = hops(fabric, flows), weights_of(fabric, flows)
    tiers = by_tier(fabric, no_load(fabric) + weighted_counts(fabric, flows, start, weights))
    fixed = (tuple(tiers), tuple(ends_of(where)))
    picks, movable = picks_of(start), np.flatnonzero(where.leaves_leaf)
    unit = float(np.mean(weights.astype(np.float64) ** 2)) if weights.size else 1.0
    best, least, change = picks.copy(), (int(weights.max(axis=1).sum()), 0.0), 0.0
    for temperature in unit * np.geomspace(_FIRST, _LAST, n_sweeps):
        change += sweep(*fixed, picks, weights, movable, temperature, rng)
        most = max(int(tier[tier < DEAD].max(initial=0)) for tier in tiers)
        if (most, change) < least:
            best, least = picks.copy(), (most, change)
    return best
