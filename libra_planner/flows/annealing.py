"""Simulated annealing of the paths of all flows."""

from __future__ import annotations

import numpy as np

from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.greedy import greedy, greedy_by_bytes
from libra_planner.flows.loads import (
    DEAD,
    by_tier,
    choice_of,
    ends_of,
    no_load,
    picks_of,
    rank,
    weighted_counts,
    weights_of,
)
from libra_planner.flows.paths import Choice, hops

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
    from libra_planner.flows._assignment_kernel import sweep

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
