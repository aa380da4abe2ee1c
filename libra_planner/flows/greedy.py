"""Greedy routing: the largest flow first, each to the path with the least loaded worst link."""

from __future__ import annotations

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.loads import (
    by_tier,
    choice_of,
    ends_of,
    groups,
    no_load,
    no_picks,
    weights_of,
)
from libra_planner.flows.paths import Choice, hops


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
    picks : as :data:`~libra_planner.flows.loads.COLUMNS`, -1 where there is none; overwritten.
    weights : what a flow adds to the load of a link at leaves, and at cores, shape
        (n_flows, 2); 1 without them.
    """
    from libra_planner.flows._assignment_kernel import place

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
