"""Links that flows cross: single paths, sprayed packets, trees of in-network reduction.

See ``docs/routing.md`` for what each policy optimises and what is proven of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from libra_planner.errors import Disconnected, Fault, SpecError
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices, LiveLinks
from libra_planner.routing.loads import ranks
from libra_planner.routing.policy import Policy


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
            raise ValueError(f"start must rise to the number of clos.hops, {n_hops}")
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
class Routing:
    """Where flows go.

    Parameters
    ----------
    routes : of each flow, or of each tree, over channels: links, or for sprayed packets bundles
        of equal links that all packets of a flow use alike.
    capacity_Bps : of each channel.
    counts : flows on each link of the fabric, shape (n_links,); shares of sprayed ones.
    links : shape (n_flows, n_layers), -1 where a flow turns earlier; ``None`` when sprayed.
    gap : of ``ilp``: how far the largest load may be from the least possible, relative.
    """

    routes: Routes
    capacity_Bps: Array
    counts: Array
    links: Indices | None = None
    gap: float | None = None


def reduction_trees(
    fabric: Clos, host: Indices, group: Indices, root: Indices | None = None
) -> Routing:
    """Trees that join the hosts of each group, up to a root and down again.

    Parameters
    ----------
    fabric : without failures.
    host : host ports, shape (n_hosts,).
    group : group of each, from 0 without gaps.
    root : number of the root of each group's tree, shape (n_groups,); which spine and core of
        those that can be it, in turn. Without it every root carries the same part of the
        vector: the ideal of the others.

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

    Two spines with half of the tree each:

    >>> fabric = Clos(hosts_per_leaf=1, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> reduction_trees(fabric, np.array([0, 1]), np.array([0, 0])).counts
    array([1. , 1. , 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1. , 1. ])
    """
    if fabric.failed.size:
        fix, path = "use another algorithm, or repair them", "in_network_reduction"
        got = "got in-network reduction on failed links"
        raise SpecError(Fault(got, "expected none", fix, path))
    roots = np.zeros(1, dtype=np.int64) if root is None else root
    up = roots % max(fabric.n_uplinks, 1)
    core = roots // max(fabric.n_uplinks, 1) % max(fabric.n_core_links, 1)
    taken = (np.zeros_like(roots), up, core + up // fabric.n_parallel * fabric.n_core_links)
    places = (host, fabric.leaf_of(host), fabric.pod_of(host))
    owners, links, fractions = [], [], []
    for layer in fabric.layers[: len(fabric.layers) // 2]:
        place, n_links = places[layer.tier], layer.n_links // layer.n_owners
        mask = _spans(group, place) | layer.is_host
        owner, bundle = np.unique(np.stack([group, place])[:, mask], axis=1)
        ways = np.arange(n_links) if root is None else taken[layer.tier][owner][:, None]
        link = layer.start + bundle[:, None] * n_links + ways
        owners.append(np.repeat(owner, link.shape[1]))
        links.append(link.ravel())
        fractions.append(np.full(link.size, 1 / link.shape[1]))
    # The trees of links up, and of the same cables down.
    up_links = np.concatenate(links)
    owner, both = np.concatenate(2 * owners), np.concatenate([up_links, fabric.reverse(up_links)])
    order = np.lexsort((both, owner))
    start = np.searchsorted(owner[order], np.arange(int(group.max(initial=-1)) + 2))
    routes = Routes(start, both[order], np.concatenate(2 * fractions)[order])
    return Routing(routes, fabric.capacity_Bps, routes.counts(fabric.n_links))


def _spans(group: Indices, place: Indices) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which hosts belong to a group that has hosts in several places."""
    n_groups = int(group.max(initial=-1)) + 1
    low = np.full(n_groups, np.iinfo(np.int64).max)
    high = np.full(n_groups, -1)
    np.minimum.at(low, group, place)
    np.maximum.at(high, group, place)
    spread: np.ndarray[tuple[int], np.dtype[np.bool_]] = (low < high)[group]
    return spread


_MOST_HOPS = 100_000_000
"""Flow and link pairs held at once: about 2 GB."""


def spray(fabric: Clos, flows: Flows, where: Hops) -> Routing:
    """Flows spread evenly over the paths that are left.

    Without failures all uplinks of a leaf carry the same, so that they are one channel of
    their summed bandwidth, and so are all links between a pod's spines and the cores.

    Raises
    ------
    SpecError
        For a fabric with failures and so many flows that their paths do not fit in memory.
    """
    if fabric.failed.size:
        return _over_live_links(fabric, flows, where)
    # Channels are layer by layer; one per host, per leaf or per pod.
    n_owners = [layer.n_owners for layer in fabric.layers]
    n_links = np.repeat([layer.n_links // layer.n_owners for layer in fabric.layers], n_owners)
    channel = np.repeat(np.arange(n_links.size), n_links)
    links = clos.with_host_links(fabric, flows, where.first)
    routes = single_paths(np.where(links < 0, -1, channel[links]))
    capacity = [
        fabric.capacity_Bps[layer.links].reshape(layer.n_owners, -1).sum(axis=1)
        for layer in fabric.layers
    ]
    counts = np.repeat(routes.counts(n_links.size) / n_links, n_links)
    return Routing(routes, np.concatenate(capacity), counts)


def _over_live_links(fabric: Clos, flows: Flows, where: Hops) -> Routing:
    """Every link that is left, in the shares that even splitting at each switch gives."""
    width = 2 + 2 * fabric.n_uplinks + 2 * fabric.n_spines * fabric.n_core_links
    if flows.n_flows * width > _MOST_HOPS:
        got = f"got {flows.n_flows:,} flows over {width} links each with failed links"
        fix = "use fewer flows, or another policy"
        raise SpecError(Fault(got, f"expected at most {_MOST_HOPS:,} pairs to spray", fix))
    down, every = fabric.layers[-1].start + flows.dst, np.ones((flows.n_flows, 1))
    parts = [_part(every, flows.src), _part(every, down)]
    if fabric.n_spines:
        parts += _between_switches(fabric, where)
    flow, link, fraction = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(flow, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(flow, minlength=flows.n_flows))))
    routes = Routes(start.astype(np.int64), link[order], fraction[order])
    return Routing(routes, fabric.capacity_Bps, routes.counts(fabric.n_links))


_Part = tuple[Indices, Indices, Array]


def _between_switches(fabric: Clos, where: Hops) -> list[_Part]:
    """Shares of the links of each switch layer."""
    live = LiveLinks(fabric)
    uplinks = live.uplinks(where) & where.leaves_leaf[:, None]
    by_spine = uplinks.reshape(-1, fabric.n_spines, fabric.n_parallel)
    share = _split(uplinks, 1)
    # Whole numbers are added, not shares: n times 1/n can be over 1.
    at_spine = _split(by_spine.sum(axis=2), 1)
    down_share = at_spine[:, :, None] * _split(live.tiers.spine_down[where.dst_leaf], 2)
    parts = [_part(share, where.first[:, 0]), _part(down_share, where.first[:, 3])]
    if not fabric.n_cores:
        return parts
    to_core = at_spine * where.leaves_pod[:, None]
    up, back = live.tiers.spine_up[where.src_pod], live.tiers.core_down[where.dst_pod]
    up = up & back.any(axis=3, keepdims=True)
    up_share = to_core[:, :, None, None] * _split(up, 2, 3)
    at_core = to_core[:, :, None] * _split(up.sum(axis=3), 2)
    back_share = at_core[:, :, :, None] * _split(back, 3)
    return [*parts, _part(up_share, where.first[:, 1]), _part(back_share, where.first[:, 2])]


def _split(links: NDArray[np.generic], *axes: int) -> Array:
    """Parts of a whole along some axes, as the numbers of links are; 0 where there is none."""
    numbers = links.astype(np.float64)
    whole = np.maximum(numbers.sum(axis=axes, keepdims=True), 1)
    return np.asarray(numbers / whole)


def _part(share: Array, first_link: Indices) -> _Part:
    """The pairs of flow and link with a share, from shares by flow and link of its group."""
    flat = share.reshape(len(share), math.prod(share.shape[1:]))
    flow, offset = np.nonzero(flat)
    return flow, first_link[flow] + offset, flat[flow, offset]


@dataclass(frozen=True)
class Router:
    """Routes flows over a fabric, again and again for other seeds.

    Parameters
    ----------
    fabric, flows, policy : what is routed and how.

    Raises
    ------
    SpecError
        For hosts that do not exist or that nothing joins.

    Examples
    --------
    Two flows that leave their leaf over two spines, coloured so that they do not meet:

    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.array([8.0, 8.0]))
    >>> routing = Router(fabric, flows, Policy("greedy")).routing(seed=0)
    >>> routing.counts[fabric.layer("leaf_up").links]
    array([1., 1., 0., 0.])
    """

    fabric: Clos
    flows: Flows
    policy: Policy

    def __post_init__(self) -> None:
        object.__setattr__(self, "_where", clos.hops(self.fabric, self.flows))
        if self.fabric.failed.size:
            clos.require_connected(self.fabric, self.flows.src, self.flows.dst)

    @property
    def where(self) -> Hops:
        """Where the flows turn around."""
        found: Hops = self.__dict__["_where"]
        return found

    def routing(self, seed: int) -> Routing:
        """The flows' paths for one seed."""
        found, gap = self._found(seed)
        if isinstance(found, Routing):
            return found
        links = clos.links_of(self.fabric, self.flows, found, self.where)
        return replace(paths_over(self.fabric, links), gap=gap)

    def counts(self, seed: int) -> Array:
        """Flows on each link for one seed, without more than that."""
        found, _ = self._found(seed)
        if isinstance(found, Routing):
            return found.counts
        return _counts(clos.links_of(self.fabric, self.flows, found, self.where), self.fabric)

    def ideal_routing(self) -> Routing:
        """The ideal: the same flows, every packet sprayed."""
        return Router(self.fabric, self.flows, Policy("spray")).routing(seed=0)

    def _found(self, seed: int) -> tuple[Choice | Routing, float | None]:
        """Paths, or packets over all of them, and the gap that the policy proves."""
        kind = self.policy.kind
        if kind.keeps_flows_whole and not self.where.leaves_leaf.any():
            none = np.full(self.flows.n_flows, -1, dtype=np.int64)
            return Choice(none, none, none, none), None
        known = vars(self.policy) | {"policy": self.policy, "where": self.where, "seed": seed}
        found = kind.found(self.fabric, self.flows, known)
        chosen, bound = (found, None) if isinstance(found, Choice | Routing) else found
        return chosen, bound and bound.gap_fraction


def paths_over(fabric: Clos, links: Indices) -> Routing:
    """Flows that take one path each.

    Parameters
    ----------
    fabric : that the links are of.
    links : of each flow, shape (n_flows, n_layers), -1 where it turns earlier.
    """
    return Routing(single_paths(links), fabric.capacity_Bps, _counts(links, fabric), links)


def _counts(links: Indices, fabric: Clos) -> Array:
    """Flows on each link of a fabric, from the links of each flow."""
    return np.bincount(links[links >= 0], minlength=fabric.n_links).astype(np.float64)


def pinned(fabric: Clos, flows: Flows, where: Hops) -> Choice:
    """Each flow over the spine it names, or the core where it leaves its pod.

    ``via`` is a spine of the pod, 0 .. n_spines - 1, or between pods the core among those of
    the plane, spine * n_cores + core. Parallel links are taken in turn by the flows of a
    pair of switches.

    Raises
    ------
    SpecError
        For a flow between leaves without ``via``, with one that is out of range, or over a
        link that failed.
    """
    n_vias = np.where(where.leaves_pod, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    wrong = where.leaves_leaf & ((flows.via < 0) | (flows.via >= n_vias))
    if wrong.any():
        i = int(np.argmax(wrong))
        got = (
            f"got via {flows.via[i]} for flow {i}"
            if flows.via[i] >= 0
            else f"got no via (flow {i})"
        )
        raise SpecError(Fault(got, f"expected 0 .. {n_vias[i] - 1} for a flow between leaves"))
    n_cores = max(fabric.n_cores, 1)
    spine = np.where(where.leaves_pod, flows.via // n_cores, flows.via)
    core = flows.via % n_cores
    inside, between = where.leaves_leaf, where.leaves_pod
    bundles = (
        (where.src_leaf * fabric.n_spines + spine, inside, fabric.n_parallel),
        ((where.src_pod * fabric.n_spines + spine) * n_cores + core, between, fabric.core_parallel),
        ((where.dst_pod * fabric.n_spines + spine) * n_cores + core, between, fabric.core_parallel),
        (where.dst_leaf * fabric.n_spines + spine, inside, fabric.n_parallel),
    )
    up, core_up, core_down, down = (_turns(key, used) % n for key, used, n in bundles)
    links = (spine * fabric.n_parallel + up, core * fabric.core_parallel + core_up, core_down, down)
    used = (inside, between, between, inside)
    chosen = Choice(*(np.where(mask, one, -1) for mask, one in zip(used, links, strict=True)))
    if fabric.failed.size:
        crossed = clos.links_of(fabric, flows, chosen, where)
        dead = (crossed >= 0) & ~fabric.alive[crossed]
        if dead.any():
            i, layer = (int(x[0]) for x in np.nonzero(dead))
            got = f"got a path pinned to {fabric.link_name(int(crossed[i, layer]))}, which failed"
            fix = "pin it elsewhere"
            fault = Fault(got, "expected links that work", fix, f"flow {i}", subject=(i,))
            raise Disconnected(fault)
    return chosen


def with_vias(fabric: Clos, flows: Flows) -> Flows:
    """The flows with ``via`` dealt in order by every leaf to its spines (to the cores).

    FlowTracer's static comparison: paths are fixed beforehand, without a look at the load.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=4, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> with_vias(fabric, Flows(np.arange(4), np.array([4, 1, 5, 6]), np.ones(4))).via
    array([ 0, -1,  1,  0])
    """
    where = clos.hops(fabric, flows)
    n_vias = np.where(where.leaves_pod, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    # One after the other over the spines first, so that both layers of links are used alike.
    turn = _turns(where.src_leaf, where.leaves_leaf)
    spine, core = turn % max(fabric.n_spines, 1), turn // max(fabric.n_spines, 1)
    n_cores = max(fabric.n_cores, 1)
    far = (spine * n_cores + (core + where.src_leaf) % n_cores) % np.maximum(n_vias, 1)
    via = np.where(where.leaves_pod, far, spine)
    return replace(flows, via=np.where(where.leaves_leaf, via, -1))


def _turns(bundle: Indices, used: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Indices:
    """How many flows before each one use the same bundle."""
    return ranks(np.where(used, bundle, -1))
