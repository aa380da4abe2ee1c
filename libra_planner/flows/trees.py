"""In-network reduction: every group's all-reduce as one tree of links up and down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.flows.fabric import Array, Clos, Indices
from libra_planner.flows.routes import Routes


@dataclass(frozen=True)
class Trees:
    """Trees of one fabric.

    Parameters
    ----------
    routes : links of each tree, one row per group; all of a tree run at one rate.
    counts : trees on each link, shape (n_links,).
    """

    routes: Routes
    counts: Array


def reduction_trees(fabric: Clos, host: Indices, group: Indices, root: Indices) -> Trees:
    """Trees that join the hosts of each group, up to a root and down again.

    Parameters
    ----------
    fabric : without failures.
    host : host ports, shape (n_hosts,).
    group : group of each, from 0 without gaps.
    root : number of the root of each group's tree, shape (n_groups,); which spine and core of
        those that can be it, in turn.

    Raises
    ------
    SpecError
        For a fabric with failed links.

    Examples
    --------
    Two hosts under different leaves, one spine: two links up, two down.

    >>> fabric = Clos(hosts_per_leaf=1, n_leaves=2, n_spines=1, host_Bps=1.0, uplink_Bps=1.0)
    >>> trees = reduction_trees(fabric, np.array([0, 1]), np.array([0, 0]), np.array([0]))
    >>> trees.routes.of(0)
    array([0, 1, 2, 3, 4, 5, 6, 7])
    """
    if fabric.failed.size:
        fix = "use another algorithm, or repair them"
        raise SpecError(Fault("got in-network reduction on failed links", "expected none", fix))
    leaf, pod = fabric.leaf_of(host), fabric.pod_of(host)
    parts = [(group, fabric.layer("host_up").start + host)]
    if fabric.n_spines:
        up = root[group] % fabric.n_uplinks
        mask = _spans(group, leaf)
        link = fabric.layer("leaf_up").start + leaf * fabric.n_uplinks + up
        parts.append((group[mask], link[mask]))
    if fabric.n_cores:
        spine = up // fabric.n_parallel
        core = root[group] // fabric.n_uplinks % fabric.n_core_links
        mask = _spans(group, pod)
        link = (pod * fabric.n_spines + spine) * fabric.n_core_links + core
        parts.append((group[mask], fabric.layer("spine_up").start + link[mask]))
    pairs = np.unique(np.concatenate([np.stack(part) for part in parts], axis=1), axis=1)
    both = np.concatenate([pairs, np.stack([pairs[0], fabric.reverse(pairs[1])])], axis=1)
    owner, link = both[:, np.lexsort((both[1], both[0]))]
    start = np.searchsorted(owner, np.arange(len(root) + 1))
    routes = Routes(start, link, np.ones(len(link)))
    return Trees(routes, routes.counts(fabric.n_links))


def _spans(group: Indices, place: Indices) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which hosts belong to a group that has hosts in several places."""
    n_groups = int(group.max(initial=-1)) + 1
    low = np.full(n_groups, np.iinfo(np.int64).max)
    high = np.full(n_groups, -1)
    np.minimum.at(low, group, place)
    np.maximum.at(high, group, place)
    spread: np.ndarray[tuple[int], np.dtype[np.bool_]] = (low < high)[group]
    return spread
