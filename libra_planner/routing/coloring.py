"""Balanced edge colouring: every link of a switch gets the same number of flows, or one more.

A colour is a link to choose; a flow is an edge between its source and its destination. The
spine is coloured first, then the core of each spine, then parallel links are dealt in turn:
a share of floor or ceil of a share of floor or ceil is one of the whole.
"""

from __future__ import annotations

import numpy as np

from libra_planner.fabric.clos import Choice, Clos, Flows, Hops, Indices, hops, links_of
from libra_planner.routing.greedy import placed
from libra_planner.routing.loads import by_tier, choice_of, groups, no_picks, ranks


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
    where, group = hops(fabric, flows), groups(flows, per_collective=per_collective)
    picks = no_picks(flows)
    crossing = np.flatnonzero(where.leaves_leaf)
    crossing = crossing[np.argsort(-flows.size_bytes[crossing], kind="stable")]
    if crossing.size:
        spine = _live_spines(fabric, where, group, crossing)
        picks[crossing, 0], picks[crossing, 3] = _leaf_links(fabric, where, group, crossing, spine)
        inter = where.leaves_pod[crossing]
        if inter.any():
            picks[crossing[inter], 1:3] = _cores(
                fabric, where, group, crossing[inter], spine[inter]
            )
    return choice_of(_mended(fabric, flows, group, picks))


def _mended(fabric: Clos, flows: Flows, group: Indices, picks: Indices) -> Indices:
    """The picks with flows over failed links, or all flows, placed anew."""
    links = links_of(fabric, flows, choice_of(picks))[:, 1:-1]
    is_lost = np.any((links >= 0) & ~fabric.alive[links], axis=1)
    is_proven = not (fabric.failed.size and fabric.n_cores)
    if is_proven and not is_lost.any():
        return picks
    picks[is_lost] = -1
    both = [placed(fabric, flows, group, one) for one in (picks, no_picks(flows))]
    return min(both, key=lambda one: _largest_count(fabric, flows, group, one))


def _largest_count(fabric: Clos, flows: Flows, group: Indices, picks: Indices) -> int:
    """Most flows of one group on a link between switches."""
    links = links_of(fabric, flows, choice_of(picks))[:, 1:-1]
    keys = group[:, None] * fabric.n_links + links
    return int(np.unique(keys[links >= 0], return_counts=True)[1].max(initial=0))


def _live_spines(fabric: Clos, where: Hops, group: Indices, crossing: Indices) -> Indices:
    """Spine of each flow: on two tiers one that works, wherever the flow's plane has any."""
    if not fabric.failed.size or fabric.n_cores:
        return _spines(fabric, where, group, crossing, fabric.n_spines)
    alive = by_tier(fabric, fabric.alive.astype(np.int64))
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


def _cores(fabric: Clos, where: Hops, group: Indices, crossing: Indices, spine: Indices) -> Indices:
    """Core link and link down of each flow between pods, shape (n, 2)."""
    levels, of_spine = [], []
    for pod in (where.src_pod, where.dst_pod):
        one = (group[crossing] * fabric.total_pods + pod[crossing]) * fabric.n_spines + spine
        of_spine.append(one)
        levels.append([one, group[crossing] * fabric.n_spines + spine])
    core = _colors(levels, fabric.n_cores, n_exact=2)
    up, down = (ranks(one * fabric.n_cores + core) % fabric.core_parallel for one in of_spine)
    return np.stack([core * fabric.core_parallel + up, down], axis=1)


def _leaf_links(
    fabric: Clos, where: Hops, group: Indices, crossing: Indices, spine: Indices
) -> tuple[Indices, Indices]:
    """Uplink and link down of each flow, given its spine."""
    links = []
    for leaf in (where.src_leaf, where.dst_leaf):
        of_leaf = group[crossing] * fabric.total_leaves + leaf[crossing]
        links.append(ranks(of_leaf * fabric.n_spines + spine) % fabric.n_parallel)
    return spine * fabric.n_parallel + links[0], links[1]


def _colors(levels: list[list[Indices]], n_colors: int, *, n_exact: int) -> Indices:
    """Colours that divide every set evenly; ``levels`` by side, then from small sets to large."""
    from libra_planner.routing.kernels.coloring import color_evenly

    sets = np.stack([np.stack([_numbered(keys) for keys in side]) for side in levels])
    waiting = np.full(int(sets.max()) + 1, -1, dtype=np.int64)
    return color_evenly(sets, waiting, np.arange(sets.shape[2]), n_colors, n_exact)


def _numbered(keys: Indices) -> Indices:
    """Keys as numbers from 0 without gaps."""
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
