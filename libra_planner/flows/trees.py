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
    _require_whole(fabric)
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
    return _up_and_down(fabric, pairs[0], pairs[1], np.ones(pairs.shape[1]))


def sprayed_trees(fabric: Clos, host: Indices, group: Indices) -> Trees:
    """Trees of which every root carries the same part of the vector: the ideal of the others.

    Parameters
    ----------
    fabric, host, group : as :func:`reduction_trees` has them.

    Raises
    ------
    SpecError
        For a fabric with failed links.

    Examples
    --------
    Two hosts under different leaves, two spines with half of the tree each:

    >>> fabric = Clos(hosts_per_leaf=1, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> sprayed_trees(fabric, np.array([0, 1]), np.array([0, 0])).counts
    array([1. , 1. , 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1. , 1. ])
    """
    _require_whole(fabric)
    tiers = [("host_up", host, 1)]
    if fabric.n_spines:
        tiers.append(("leaf_up", fabric.leaf_of(host), fabric.n_uplinks))
    if fabric.n_cores:
        tiers.append(("spine_up", fabric.pod_of(host), fabric.n_spines * fabric.n_core_links))
    owners, links, fractions = [], [], []
    for layer, place, n_links in tiers:
        mask = np.ones(len(host), dtype=np.bool_) if layer == "host_up" else _spans(group, place)
        owner, bundle = np.unique(np.stack([group, place])[:, mask], axis=1)
        link = fabric.layer(layer).start + bundle[:, None] * n_links + np.arange(n_links)
        owners.append(np.repeat(owner, n_links))
        links.append(link.ravel())
        fractions.append(np.full(link.size, 1 / n_links))
    return _up_and_down(fabric, *map(np.concatenate, (owners, links, fractions)))


def _require_whole(fabric: Clos) -> None:
    if fabric.failed.size:
        fix, path = "use another algorithm, or repair them", "in_network_reduction"
        got = "got in-network reduction on failed links"
        raise SpecError(Fault(got, "expected none", fix, path))


def _up_and_down(fabric: Clos, group: Indices, link: Indices, fraction: Array) -> Trees:
    """The trees of links up, and of the same cables down."""
    owner = np.concatenate([group, group])
    both = np.concatenate([link, fabric.reverse(link)])
    order = np.lexsort((both, owner))
    start = np.searchsorted(owner[order], np.arange(int(group.max(initial=-1)) + 2))
    routes = Routes(start, both[order], np.concatenate([fraction, fraction])[order])
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
