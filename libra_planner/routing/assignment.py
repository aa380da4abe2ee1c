"""Paths given with all flows in view: greedy, annealing, edge colouring.

A colour is a link to choose; a flow is an edge between its source and its destination. The
spine is coloured first, then the core of each spine, then parallel links are dealt in turn:
a share of floor or ceil of a share of floor or ceil is one of the whole.
"""

from __future__ import annotations

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Choice, Clos, Flows, Hops, Indices
from libra_planner.routing import loads


def greedy(
    fabric: Clos,
    flows: Flows,
    *,
    per_collective: bool = False,
    count_flows: bool = False,
    where: Hops | None = None,
) -> Choice:
    """Flows by size descending, then in order, each to the path of the least loaded worst link.

    The load of a link is the number of flows that were given it; a path costs the largest load
    of its links between switches, max(up, down) on leaf-spine. Every spine offers the least
    loaded of parallel links, and the core with the least loaded worst link; the lowest index
    wins among equals, of links, cores, and then spines. Failed links are no candidates.

    Where flows differ in size, or links between switches in speed, loads are also tried as the
    time that the bytes take, with the flow itself counted in; of the two results the one whose
    busiest link takes less time is returned, and the one by numbers if they are equal.

    Parameters
    ----------
    per_collective : whether loads start again at 0 for every collective, for collectives that
        are not active at the same time.
    count_flows : whether loads are numbers of flows, whatever their sizes.
    where : :func:`~libra_planner.fabric.clos.hops` of the flows, if they are known already.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        For hosts that the fabric does not have or join, or a flow whose paths have all failed.

    Examples
    --------
    The two small flows share the link that the large one is not on; by numbers they do not:

    >>> fabric = Clos(hosts_per_leaf=3, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([9.0, 1.0, 2.0]))
    >>> greedy(fabric, flows).uplink, greedy(fabric, flows, count_flows=True).uplink
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    group = loads.groups(flows, per_collective=per_collective)
    if count_flows or loads.are_alike(fabric, flows):
        return _greedy_choice(fabric, flows, group, where=where)
    return _least_loaded(fabric, flows, group, _both_greedy(fabric, flows, group, where=where))


def _both_greedy(
    fabric: Clos, flows: Flows, group: Indices, *, where: Hops | None = None
) -> list[Choice]:
    """The greedy choice by numbers of flows, and by the time of their bytes."""
    weights = [None, loads.weights_of(fabric, flows)]
    return [_greedy_choice(fabric, flows, group, where=where, weights=one) for one in weights]


def _least_loaded(fabric: Clos, flows: Flows, group: Indices, choices: list[Choice]) -> Choice:
    """The choice whose busiest link takes the least time for one group, the first of equals."""
    return min(choices, key=lambda one: _largest_load(fabric, flows, group, one))


def _largest_load(
    fabric: Clos, flows: Flows, group: Indices, choice: Choice, *, count_flows: bool = False
) -> float:
    """Seconds of the bytes of one group on a link between switches, or flows, at most."""
    links = clos.links_between(fabric, choice, clos.hops(fabric, flows))
    used = links >= 0
    key, place = links[used], np.broadcast_to(np.arange(flows.n_flows)[:, None], links.shape)[used]
    if group.any():
        key = np.unique(group[place] * fabric.n_links + key, return_inverse=True)[1]
    load = np.ones(key.size)
    if not count_flows:
        load = flows.size_bytes[place] / fabric.capacity_Bps[links[used]]
    return float(np.bincount(key, load).max(initial=0.0))


def _shape(fabric: Clos) -> tuple[int, int, int, int]:
    return fabric.n_spines, fabric.n_parallel, fabric.n_cores, fabric.core_parallel


def _greedy_choice(
    fabric: Clos,
    flows: Flows,
    group: Indices,
    *,
    where: Hops | None = None,
    links: Indices | None = None,
    weights: Indices | None = None,
) -> Choice:
    """A path for each flow that has none; those that have one keep it.

    Parameters
    ----------
    group : shape (n_flows,); loads start again at 0 for each group.
    links : :func:`~libra_planner.fabric.clos.links_between` of the flows, -1 for those without.
    weights : what a flow adds to the load of each of these links; 1 without them.
    """
    from libra_planner.routing.kernels.assignment import place

    where = where or clos.hops(fabric, flows)
    links = np.full_like(where.first, -1) if links is None else links.copy()
    order = np.lexsort((-flows.size_bytes, links[:, 0] < 0, group))
    order = np.ascontiguousarray(order[where.leaves_leaf[order]])
    weights = np.ones_like(links) if weights is None else weights
    lost = place(loads.no_load(fabric), _shape(fabric), where.first, order, group, links, weights)
    if lost >= 0:
        got = f"got no path for flow {lost} from host {flows.src[lost]} to host {flows.dst[lost]}"
        raise SpecError(Fault(got, "expected one over links that have not failed"))
    return clos.choice_of(fabric, links, where)


_FIRST, _LAST = 4.0, 0.2
"""Temperatures of the first and last sweep over the mean square of a flow's weight; with flows
that are alike a move changes the sum of squares by an even number."""


def annealing(fabric: Clos, flows: Flows, *, seed: int, n_sweeps: int = 100) -> Choice:
    """Greedy paths, or coloured ones, improved by random moves.

    The load of a link is its number of flows; where they are not alike in size, or links not in
    speed, the time that its bytes take, and the start is the better of greedy and edge colouring.

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
    from libra_planner.routing.kernels.assignment import sweep

    starts = [greedy(fabric, flows)]
    starts += [] if loads.are_alike(fabric, flows) else [edge_coloring(fabric, flows)]
    start = min(starts, key=lambda choice: loads.rank(fabric, flows, choice))
    where, weights = clos.hops(fabric, flows), loads.weights_of(fabric, flows)
    links, movable = clos.links_between(fabric, start, where), np.flatnonzero(where.leaves_leaf)
    load, used = loads.no_load(fabric), links >= 0
    np.add.at(load, links[used], weights[used])
    unit = float(np.mean(weights[:, :2].astype(np.float64) ** 2)) if weights.size else 1.0
    best, least, change = links.copy(), (int(weights.max(axis=1).sum()), 0.0), 0.0
    rng = np.random.default_rng(seed)
    for temperature in unit * np.geomspace(_FIRST, _LAST, n_sweeps):
        arrays = (load, _shape(fabric), where.first, links, weights, np.zeros(2, dtype=np.int64))
        change += sweep(arrays, movable, temperature, rng)
        most = int(load[load < loads.DEAD].max(initial=0))
        if (most, change) < least:  # The largest load, then the sum of squares.
            best, least = links.copy(), (most, change)
    found = clos.choice_of(fabric, best, where)
    return min(start, found, key=lambda choice: loads.rank(fabric, flows, choice))


def edge_coloring(
    fabric: Clos, flows: Flows, *, per_collective: bool = False, count_flows: bool = False
) -> Choice:
    """Paths that load the links of every leaf equally, up and down at once.

    A leaf with d flows up (down) has floor(d / n_uplinks) or ceil(d / n_uplinks) of them on
    each link up (down): the least possible maximum, and the least FIM (C10). So have the links
    of a pod's spines up to (down from) the cores, unless some leaf has flows both inside and
    out of its pod: then they are nearly even, without a proof. Flows count one each; among
    assignments with these counts, larger flows are spread first.

    Where flows differ in size, or links between switches in speed, flows are then taken off the
    link whose bytes take longest, each to the path that takes least, for as long as this helps.
    If :func:`greedy` still has a less busy link, its choice is returned. Numbers are then even
    no longer; ``count_flows`` keeps them so.

    On two tiers spines without a link that works are no colours, so all this holds where spines
    fail as a whole. The flows on other failed links are placed anew by the greedy rule, or
    all flows if that makes the largest load smaller; nothing is proven then.

    Parameters
    ----------
    per_collective : whether every collective is coloured by itself.
    count_flows : whether flows count one each, whatever their sizes.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        For hosts that the fabric does not have or join, or a flow whose paths have all failed.

    References
    ----------
    D. de Werra, Equitable colorations of graphs, RIRO 5 (R-3), 1971: a bipartite multigraph
    has an equitable edge colouring for any number of colours.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 2]), np.array([2, 3, 1]), np.array([1.0, 2.0, 9.0]))
    >>> edge_coloring(fabric, flows).uplink
    array([1, 0, 0])
    """
    where, group = clos.hops(fabric, flows), loads.groups(flows, per_collective=per_collective)
    choice = Choice(*np.full((4, flows.n_flows), -1))
    crossing = np.flatnonzero(where.leaves_leaf)
    crossing = crossing[np.argsort(-flows.size_bytes[crossing], kind="stable")]
    if crossing.size:
        spine = _live_spines(fabric, where, group, crossing)
        links = [
            loads.ranks((group * fabric.total_leaves + leaf)[crossing] * fabric.n_spines + spine)
            for leaf in (where.src_leaf, where.dst_leaf)
        ]
        up, down = (one % fabric.n_parallel for one in links)
        choice.uplink[crossing], choice.spine_down[crossing] = spine * fabric.n_parallel + up, down
        inter, far = where.leaves_pod[crossing], crossing[where.leaves_pod[crossing]]
        if far.size:
            cores = _cores(fabric, where, group, far, spine[inter])
            choice.core_link[far], choice.core_down[far] = cores
    counts = count_flows or loads.are_alike(fabric, flows)
    return _working_choice(fabric, flows, group, choice, counts=counts)


def _working_choice(
    fabric: Clos, flows: Flows, group: Indices, choice: Choice, *, counts: bool
) -> Choice:
    """The choice with flows over failed links, or all flows, placed anew; by bytes relieved."""
    links = clos.links_between(fabric, choice, clos.hops(fabric, flows))
    is_lost = np.any((links >= 0) & ~fabric.alive[links], axis=1)
    links[is_lost] = -1
    if not counts:
        relieved = _relieved(fabric, flows, group, links)
        return _least_loaded(fabric, flows, group, [relieved, *_both_greedy(fabric, flows, group)])
    is_proven = not (fabric.failed.size and fabric.n_cores)
    if is_proven and not is_lost.any():
        return choice
    both = [_greedy_choice(fabric, flows, group, links=links), _greedy_choice(fabric, flows, group)]
    return min(both, key=lambda one: _largest_load(fabric, flows, group, one, count_flows=True))


_MOST_READ = 200_000_000
"""Flows that are looked at to find those on the busiest link: about a second."""


def _relieved(fabric: Clos, flows: Flows, group: Indices, links: Indices) -> Choice:
    """The choice of links with the flows that have none placed, and the busiest link relieved."""
    from libra_planner.routing.kernels.assignment import relieve

    weights, where = loads.weights_of(fabric, flows), clos.hops(fabric, flows)
    choice = _greedy_choice(fabric, flows, group, where=where, links=links, weights=weights)
    links = clos.links_between(fabric, choice, where)
    n_steps = _MOST_READ // max(flows.n_flows, 1)
    for one in np.unique(group):  # Loads of a group are of its own flows.
        mine, load = np.flatnonzero(group == one), loads.no_load(fabric)
        used = links[mine] >= 0
        np.add.at(load, links[mine][used], weights[mine][used])
        relieve(load, _shape(fabric), where.first, mine, links, weights, n_steps)
    return clos.choice_of(fabric, links, where)


def _live_spines(fabric: Clos, where: Hops, group: Indices, crossing: Indices) -> Indices:
    """Spine of each flow: on two tiers one that works, wherever the flow's plane has any."""
    if not fabric.failed.size or fabric.n_cores:
        return _spines(fabric, where, group, crossing, fabric.n_spines)
    alive = clos.by_tier(fabric, fabric.alive.astype(np.int64))
    shape = (fabric.total_pods, fabric.n_leaves, fabric.n_spines, fabric.n_parallel)
    up, down = (x.reshape(shape).sum(axis=(1, 3)) > 0 for x in (alive.leaf_up, alive.spine_down))
    lives = up & down
    lives[~lives.any(axis=1)] = True
    spine = np.empty_like(crossing)
    kinds, kind = np.unique(lives, axis=0, return_inverse=True)
    for i, live in enumerate(kinds):  # Planes with the same spines at once.
        mine = kind.ravel()[where.src_pod[crossing]] == i
        if mine.any():
            colors = _spines(fabric, where, group, crossing[mine], int(live.sum()))
            spine[mine] = np.flatnonzero(live)[colors]
    return spine


def _spines(fabric: Clos, where: Hops, group: Indices, crossing: Indices, n_spines: int) -> Indices:
    """Spine of each flow; levels: kinds of a leaf, leaves, kinds of a pod."""
    inter = where.leaves_pod[crossing].astype(np.int64)
    levels, mixed = [], False
    for leaf, pod in ((where.src_leaf, where.src_pod), (where.dst_leaf, where.dst_pod)):
        of_leaf = group[crossing] * fabric.total_leaves + leaf[crossing]
        of_pod = group[crossing] * fabric.total_pods + pod[crossing]
        levels.append([2 * of_leaf + inter, of_leaf, 2 * of_pod + inter])
        kinds = np.unique(levels[-1][0])
        mixed |= bool(np.any(np.diff(kinds // 2) == 0))
    return _colors(levels, n_spines, n_exact=2 if mixed else 3)


def _cores(
    fabric: Clos, where: Hops, group: Indices, crossing: Indices, spine: Indices
) -> tuple[Indices, Indices]:
    """Core link and link down of each flow between pods."""
    levels, of_spine = [], []
    for pod in (where.src_pod, where.dst_pod):
        one = (group[crossing] * fabric.total_pods + pod[crossing]) * fabric.n_spines + spine
        of_spine.append(one)
        levels.append([one, group[crossing] * fabric.n_spines + spine])
    core = _colors(levels, fabric.n_cores, n_exact=2)
    up, down = (loads.ranks(one * fabric.n_cores + core) % fabric.core_parallel for one in of_spine)
    return core * fabric.core_parallel + up, down


def _colors(levels: list[list[Indices]], n_colors: int, *, n_exact: int) -> Indices:
    """Colours that divide every set evenly; ``levels`` by side, then from small sets to large."""
    from libra_planner.routing.kernels.assignment import color_evenly

    sets = [[np.unique(keys, return_inverse=True)[1] for keys in side] for side in levels]
    return color_evenly(np.array(sets, dtype=np.int64), n_colors, n_exact)
