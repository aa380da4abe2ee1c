"""Paths given with all flows in view: greedy, annealing, edge colouring, two-level max-min.

A colour is a link to choose; a flow is an edge between its source and its destination. The
spine is coloured first, then the core of each spine, then parallel links are dealt in turn:
a share of floor or ceil of a share of floor or ceil is one of the whole.

The goal is that of "Routing for Large ML Models" (arXiv 2503.05324). The exact measure and the
search below are this project's own; ``docs/routing.md`` defines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices
from libra_planner.routing import loads
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import single_paths


def greedy(
    fabric: Clos, flows: Flows, *, per_collective: bool = False, where: Hops | None = None
) -> Choice:
    """Flows by size descending, then in order, each to the path of the least loaded worst link.

    The load of a link is the number of flows that were given it; a path costs the largest load
    of its links between switches, max(up, down) on leaf-spine. Every spine offers the least
    loaded of parallel links, and the core with the least loaded worst link; the lowest index
    wins among equals, of links, cores, and then spines. Failed links are no candidates.

    Parameters
    ----------
    per_collective : whether loads start again at 0 for every collective, for collectives that
        are not active at the same time.
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
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 0]), np.array([2, 3, 1]), np.array([1.0, 2.0, 9.0]))
    >>> greedy(fabric, flows).uplink
    array([ 1,  0, -1])
    """
    group = loads.groups(flows, per_collective=per_collective)
    return _greedy_choice(fabric, flows, group, where=where)


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
    group, weights = loads.groups(flows, per_collective=False), loads.weights_of(fabric, flows)
    return _greedy_choice(fabric, flows, group, weights=weights)


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
    from libra_planner.routing.kernels.assignment import sweep

    starts = [greedy(fabric, flows), greedy_by_bytes(fabric, flows)]
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


def edge_coloring(fabric: Clos, flows: Flows, *, per_collective: bool = False) -> Choice:
    """Paths that load the links of every leaf equally, up and down at once.

    A leaf with d flows up (down) has floor(d / n_uplinks) or ceil(d / n_uplinks) of them on
    each link up (down): the least possible maximum, and the least FIM (C10). So have the links
    of a pod's spines up to (down from) the cores, unless some leaf has flows both inside and
    out of its pod: then they are nearly even, without a proof. Flows count one each; among
    assignments with these counts, larger flows are spread first.

    On two tiers spines without a link that works are no colours, so all this holds where spines
    fail as a whole. The flows on other failed links are placed anew by the greedy rule, or
    all flows if that makes the largest count smaller; nothing is proven then.

    Parameters
    ----------
    per_collective : whether every collective is coloured by itself.

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
    return _working_choice(fabric, flows, group, choice)


def _working_choice(fabric: Clos, flows: Flows, group: Indices, choice: Choice) -> Choice:
    """The choice with flows over failed links, or all flows, placed anew."""
    links = clos.links_between(fabric, choice, clos.hops(fabric, flows))
    is_lost = np.any((links >= 0) & ~fabric.alive[links], axis=1)
    is_proven = not (fabric.failed.size and fabric.n_cores)
    if is_proven and not is_lost.any():
        return choice
    links[is_lost] = -1
    both = [_greedy_choice(fabric, flows, group, links=links), _greedy_choice(fabric, flows, group)]
    return min(both, key=lambda one: _largest_count(fabric, flows, group, one))


def _largest_count(fabric: Clos, flows: Flows, group: Indices, choice: Choice) -> int:
    """Most flows of one group on a link between switches."""
    links = clos.links_between(fabric, choice, clos.hops(fabric, flows))
    keys = group[:, None] * fabric.n_links + links
    return int(np.unique(keys[links >= 0], return_counts=True)[1].max(initial=0))


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


_SAME = 1e-9
"""Rates this close, relative to each other, are equal."""


def collective_speeds(fabric: Clos, flows: Flows, choice: Choice) -> Array:
    """Speed of every collective over its speed alone in a fabric that never blocks.

    The time of a collective is the largest bytes / rate of its flows, at the max-min rates of
    all flows (C11); alone, it is the same with its own flows and host links only. The
    ratio of the two is in order of the collectives' numbers; 1 for one that sends nothing or
    has a failed host link, which no routing helps. It can be above 1: others may hold back a flow
    that alone would compete with the slowest one.

    Returns
    -------
    Array, shape (n_collectives,).

    Examples
    --------
    Two collectives share the only uplink:

    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=1, host_Bps=1e9, uplink_Bps=1e9)
    >>> collective = np.array([0, 1])
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=collective)
    >>> collective_speeds(fabric, flows, greedy(fabric, flows))
    array([0.5, 0.5])
    """
    return _state(fabric, flows, choice, _alone_s(fabric, flows)).speed


def two_level_max_min(fabric: Clos, flows: Flows, *, n_tries: int = 200) -> Choice:
    """Paths that raise the speed of the slowest collective, then of the next, and so on.

    The better of :func:`greedy` and :func:`edge_coloring` in the sorted
    :func:`collective_speeds`, compared from the lowest up, is improved by moves off the
    link that limits the slowest collective it can, until none helps. A local optimum: no bound
    is proven. Nothing is drawn, so the result is always the same.

    Parameters
    ----------
    n_tries : moves tried at most; each computes the rates of all flows.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        As :func:`greedy`.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> collective = np.array([0, 1])
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=collective)
    >>> collective_speeds(fabric, flows, two_level_max_min(fabric, flows))
    array([1., 1.])
    """
    alone_s = _alone_s(fabric, flows)
    starts = (greedy(fabric, flows), edge_coloring(fabric, flows))
    best, other = (_state(fabric, flows, choice, alone_s) for choice in starts)
    if _is_better(other.speed, best.speed):
        best = other
    better: _State | None = best
    while better is not None and n_tries > 0:
        best, better = better, None
        for choice in _moves(fabric, flows, best):
            n_tries -= 1
            tried = _state(fabric, flows, choice, alone_s)
            if _is_better(tried.speed, best.speed):
                better = tried
            if better is not None or n_tries <= 0:
                break
    return (better or best).choice


@dataclass(frozen=True)
class _State:
    """A choice, the links and rate of every flow, and the speed of every collective."""

    choice: Choice
    links: Indices
    rate_Bps: Array
    speed: Array


def _state(fabric: Clos, flows: Flows, choice: Choice, alone_s: Array) -> _State:
    links = clos.links_of(fabric, flows, choice)
    rate_Bps = max_min_rates(single_paths(links), fabric.capacity_Bps)
    return _State(choice, links, rate_Bps, _speeds(flows, rate_Bps, alone_s))


def _is_better(speed: Array, than: Array) -> bool:
    """Whether the sorted speeds are larger at the first place where they differ."""
    mine, other = np.sort(speed), np.sort(than)
    differs = np.flatnonzero(np.abs(mine - other) > _SAME * other)
    return bool(differs.size and mine[differs[0]] > other[differs[0]])


def _alone_s(fabric: Clos, flows: Flows) -> Array:
    """Time of every collective alone, its host links the only limit."""
    group = loads.groups(flows, per_collective=True)
    ends = np.stack([flows.src, fabric.layers[-1].start + flows.dst], axis=1)
    own, link = np.unique(group[:, None] * fabric.n_links + ends, return_inverse=True)
    capacity_Bps = fabric.capacity_Bps[own % fabric.n_links]
    return _slowest_s(flows, max_min_rates(single_paths(link.reshape(ends.shape)), capacity_Bps))


def _flow_s(flows: Flows, rate_Bps: Array) -> Array:
    """Time of each flow at its rate; 0 without bytes."""
    time_s = np.where(flows.size_bytes > 0, np.inf, 0.0)
    return np.divide(flows.size_bytes, rate_Bps, out=time_s, where=rate_Bps > 0)


def _slowest_s(flows: Flows, rate_Bps: Array) -> Array:
    """Time of the slowest flow of every collective."""
    group = loads.groups(flows, per_collective=True)
    slowest_s = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(slowest_s, group, _flow_s(flows, rate_Bps))
    return slowest_s


def _speeds(flows: Flows, rate_Bps: Array, alone_s: Array) -> Array:
    time_s = _slowest_s(flows, rate_Bps)
    counts = (time_s > 0) & np.isfinite(alone_s)
    return np.divide(alone_s, time_s, out=np.ones_like(time_s), where=counts)


def _moves(fabric: Clos, flows: Flows, state: _State) -> Iterator[Choice]:
    """Choices with one flow moved off a limiting link, the slowest collective's first."""
    time_s, group = _flow_s(flows, state.rate_Bps), loads.groups(flows, per_collective=True)
    slowest_first = np.lexsort((-time_s, group))
    worst_flow = slowest_first[np.unique(group[slowest_first], return_index=True)[1]]
    for collective in np.argsort(state.speed, kind="stable"):
        f = worst_flow[collective]
        for link in _limits(fabric, state, f):
            on_link = np.flatnonzero(np.any(state.links == link, axis=1))
            for g in on_link[np.argsort(on_link != f, kind="stable")]:
                yield from _moved(fabric, flows, state, int(g), int(link))


def _limits(fabric: Clos, state: _State, f: int) -> Indices:
    """Links between switches that are full and give flow f as much as any other flow."""
    used = state.links >= 0
    of_hop = np.broadcast_to(state.rate_Bps[:, None], used.shape)
    load_Bps = np.bincount(state.links[used], of_hop[used], minlength=fabric.n_links)
    most_Bps = np.zeros(fabric.n_links)
    np.maximum.at(most_Bps, state.links[used], of_hop[used])
    path: Indices = state.links[f, 1:-1]
    links = path[path >= 0]
    is_full = load_Bps[links] >= fabric.capacity_Bps[links] * (1 - _SAME)
    limits: Indices = links[is_full & (state.rate_Bps[f] >= most_Bps[links] * (1 - _SAME))]
    return limits


def _moved(fabric: Clos, flows: Flows, state: _State, f: int, link: int) -> Iterator[Choice]:
    """The choice with flow f on the greedy path without a link, if there is one."""
    from libra_planner.routing.kernels.assignment import place

    where, counts = clos.hops(fabric, flows), loads.link_counts(fabric, flows, state.choice)
    load = loads.no_load(fabric) + counts
    load[state.links[f][state.links[f] >= 0]] -= 1
    load[link] = loads.DEAD
    links = clos.links_between(fabric, state.choice, where)
    links[f] = -1
    fixed = (_shape(fabric), where.first, np.array([f]), where.src_leaf)
    if place(load, *fixed, links, np.zeros_like(links)) < 0:
        yield clos.choice_of(fabric, links, where)
