"""Which links every flow crosses, and in-network reduction as trees of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Clos, Indices


@dataclass(frozen=True)
class Routes:
    """Which links each flow crosses, in compressed rows.

    Parameters
    ----------
    start : shape (n_flows + 1,); the hops of flow f are ``start[f]`` to ``start[f + 1]``. A flow
        without hops stays on its node.
    link : shape (n_hops,), the directed link of every hop, in the order of the path.
    fraction : shape (n_hops,), the share of the flow on that link, over 0 and up to 1: 1 for a
        single path, 1/k where packets are sprayed over k links.

    Raises
    ------
    ValueError
        Where shapes do not fit, a link is negative, or a fraction is not in (0, 1].

    Examples
    --------
    Flow 0 crosses links 0 and 2, flow 1 is sprayed over links 1 and 2.

    >>> routes = Routes(np.array([0, 2, 4]), np.array([0, 2, 1, 2]), np.array([1, 1, 0.5, 0.5]))
    >>> routes.counts(3)
    array([1. , 0.5, 1.5])
    """

    start: NDArray[np.integer]
    link: NDArray[np.integer]
    fraction: NDArray[np.float64]

    def __post_init__(self) -> None:
        n_hops = len(self.link)
        if self.start.ndim != 1 or not len(self.start) or self.start[0] != 0:
            raise ValueError("start must be one row that begins with 0")
        if np.any(np.diff(self.start) < 0) or self.start[-1] != n_hops:
            raise ValueError(f"start must rise to the number of hops, {n_hops}")
        if self.link.shape != (n_hops,) or self.fraction.shape != (n_hops,):
            raise ValueError(f"link and fraction must have shape ({n_hops},)")
        if n_hops and self.link.min() < 0:
            raise ValueError(f"got link {self.link.min()}, expected 0 or more")
        if not np.all((self.fraction > 0) & (self.fraction <= 1)):
            raise ValueError("fractions must be over 0 and up to 1")

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return len(self.start) - 1

    def counts(self, n_links: int) -> NDArray[np.float64]:
        """Flows on every link: sums of fractions, whole numbers for single paths.

        Parameters
        ----------
        n_links : links of the fabric; higher than any in ``link``.

        Returns
        -------
        counts : shape (n_links,).
        """
        counts = np.bincount(self.link, weights=self.fraction, minlength=n_links)
        if len(counts) > n_links:
            raise ValueError(f"got link {len(counts) - 1}, expected less than {n_links}")
        return counts.astype(np.float64, copy=False)  # Without hops bincount counts in integers.

    def of(self, flow: int) -> NDArray[np.integer]:
        """Links of one flow, in the order of its path."""
        return self.link[self.start[flow] : self.start[flow + 1]]


def single_paths(links: ArrayLike) -> Routes:
    """Routes of flows that take one path each.

    Parameters
    ----------
    links : integers, shape (n_flows, max_hops), the links of every flow in the order of its path,
        -1 where there is no hop.

    Examples
    --------
    >>> routes = single_paths([[3, 0, 5], [3, 5, -1], [-1, -1, -1]])
    >>> routes.start, routes.of(1), routes.of(2)
    (array([0, 3, 5, 5]), array([3, 5], dtype=int32), array([], dtype=int32))
    """
    table = np.asarray(links)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(f"got {table.dtype}{table.shape}, expected integers (n_flows, max_hops)")
    is_hop = table != -1
    start = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(is_hop.sum(axis=1), out=start[1:])
    link = table[is_hop].astype(np.int32)
    return Routes(start, link, np.ones(len(link)))


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
