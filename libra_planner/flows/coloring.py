"""Balanced edge colouring: every link of a switch gets the same number of flows, or one more.

A colour is a link to choose; a flow is an edge between its source and its destination. The
spine is coloured first, then the core of each spine, then parallel links are dealt in turn:
a share of floor or ceil of a share of floor or ceil is one of the whole.
"""

from __future__ import annotations

import numpy as np

from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.greedy import placed
from libra_planner.flows.loads import choice_of, groups, no_picks, ranks
from libra_planner.flows.paths import Choice, Hops, hops, links_of


def edge_coloring(fabric: Clos, flows: Flows, *, per_collective: bool = False) -> Choice:
    """Paths that load the links of every leaf equally, up and down at once.

    A leaf with d flows up (down) has floor(d / n_uplinks) or ceil(d / n_uplinks) of them on
    each link up (down): the least possible maximum, and the least FIM (C10). So have the links
    of a pod's spines up to (down from) the cores, unless some leaf has flows both inside and
    out of its pod: then they are nearly even, without a proof. Flows count one each; among
    assignments with these counts, larger flows are spread first.

    If links have failed, the flows on them are placed anew by the greedy rule; nothing is
    proven then.

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
        spine = _spines(fabric, where, group, crossing)
        picks[crossing, 0], picks[crossing, 3] = _leaf_links(fabric, where, group, crossing, spine)
        inter = where.leaves_pod[crossing]
        if inter.any():
            picks[crossing[inter], 1:3] = _cores(
                fabric, where, group, crossing[inter], spine[inter]
            )
    return choice_of(_mended(fabric, flows, group, picks))


def _mended(fabric: Clos, flows: Flows, group: Indices, picks: Indices) -> Indices:
    """The picks with flows over failed links placed anew."""
    if not fabric.failed.size:
        return picks
    links = links_of(fabric, flows, choice_of(picks))[:, 1:-1]
    picks[np.any((links >= 0) & ~fabric.alive[links], axis=1)] = -1
    return placed(fabric, flows, group, picks)


def _spines(fabric: Clos, where: Hops, group: Indices, crossing: Indices) -> Indices:
    """Spine of each flow; levels: kinds of a leaf, leaves, kinds of a pod."""
    inter = where.leaves_pod[crossing].astype(np.int64)
    levels, mixed = [], False
    for leaf, pod in ((where.src_leaf, where.src_pod), (where.dst_leaf, where.dst_pod)):
        of_leaf = group[crossing] * fabric.total_leaves + leaf[crossing]
        of_pod = group[crossing] * fabric.total_pods + pod[crossing]
        levels.append([2 * of_leaf + inter, of_leaf, 2 * of_pod + inter])
        kinds = np.unique(levels[-1][0])
        mixed |= bool(np.any(np.diff(kinds // 2) == 0))
    return _colors(levels, fabric.n_spines, n_exact=2 if mixed else 3)


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
    from libra_planner.flows._coloring_kernel import color_evenly

    sets = np.stack([np.stack([_numbered(keys) for keys in side]) for side in levels])
    waiting = np.full(int(sets.max()) + 1, -1, dtype=np.int64)
    return color_evenly(sets, waiting, np.arange(sets.shape[2]), n_colors, n_exact)


def _numbered(keys: Indices) -> Indices:
    """Keys as numbers from 0 without gaps."""
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
