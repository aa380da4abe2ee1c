"""Fabrics as directed links: folded Clos networks of one, two or three tiers of switches.

Links are numbered layer by layer, ``host_up`` first and ``host_down`` last; within a
layer by lower switch, then upper switch, then parallel link. So a path is arithmetic
on indices, for any number of flows at once.

Switches withdraw what leads nowhere: a leaf hashes over the uplinks from which some path
to the other leaf remains, and so on upwards. Masks are ``None`` where nothing failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Disconnected, Fault, SpecError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

_UP = ("host_up", "leaf_up", "spine_up")
_DOWN = ("core_down", "spine_down", "host_down")
BETWEEN = (*_UP[1:], *_DOWN[:-1])
"""Layers between switches."""


@dataclass(frozen=True)
class Layer:
    """The links between two tiers in one direction.

    Parameters
    ----------
    name : such as ``leaf_up``: from the leaves up.
    start : index of its first link in the fabric.
    n_links : failed ones included.
    n_per_group : links of one ECMP group, the lower switch's (or NPU's) links to the tier above.
    tier : of its lower ends: 0 for hosts, 1 for leaves, 2 for spines.
    n_owners : hosts, leaves or pods that share it evenly: what one carries no path can change.
    """

    name: str
    start: int
    n_links: int
    n_per_group: int = 1
    tier: int = 0
    n_owners: int = 1

    @property
    def is_host(self) -> bool:
        """Whether it joins hosts; such links offer no choice of path (C10)."""
        return self.tier == 0

    @property
    def links(self) -> slice:
        """Where its links are in an array over the fabric's links."""
        return slice(self.start, self.start + self.n_links)


@dataclass(frozen=True)
class Clos:
    """Equal, separate planes of a folded Clos fabric.

    A pod is ``n_leaves`` leaves, each joined to each of its ``n_spines`` spines by
    ``n_parallel`` links; spine s of every pod of a plane is joined to the same
    ``n_cores`` cores by ``core_parallel`` links each. Without spines a leaf is a switch by
    itself, without cores a pod is.

    Parameters
    ----------
    hosts_per_leaf, n_leaves, n_spines, n_pods, n_cores : leaves and spines per pod, pods
        per plane, cores per spine.
    host_Bps, uplink_Bps, core_Bps : one direction of one link, byte/s.
    n_parallel, core_parallel : links between the same two switches.
    n_planes : copies that share nothing, such as one per rail.
    failed : links that are down, indices as in :attr:`layers`; a cable is two of them.

    Raises
    ------
    SpecError
        For counts below 1 (spines and cores may be 0), or bandwidths that are not positive.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=4, n_leaves=4, n_spines=8, host_Bps=50e9, uplink_Bps=50e9)
    >>> [(layer.name, layer.n_links) for layer in fabric.layers]
    [('host_up', 16), ('leaf_up', 32), ('spine_down', 32), ('host_down', 16)]
    >>> fabric.n_hosts, fabric.n_switches
    (16, {'leaf': 4, 'spine': 8})
    """

    hosts_per_leaf: int
    n_leaves: int = 1
    n_spines: int = 0
    host_Bps: float = 0.0
    uplink_Bps: float = 0.0
    n_parallel: int = 1
    n_pods: int = 1
    n_cores: int = 0
    core_Bps: float = 0.0
    core_parallel: int = 1
    n_planes: int = 1
    failed: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64), compare=False)

    def __post_init__(self) -> None:
        counts = ("hosts_per_leaf", "n_leaves", "n_parallel", "n_pods", "core_parallel", "n_planes")
        for name, least in (*zip(counts, [1] * 6, strict=True), ("n_spines", 0), ("n_cores", 0)):
            if getattr(self, name) < least:
                got = f"got {getattr(self, name)}"
                raise SpecError(Fault(got, f"expected {least} or more", path=name))
        speeds = {"host_Bps": 1, "uplink_Bps": self.n_spines, "core_Bps": self.n_cores}
        for name in filter(speeds.get, speeds):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                got = f"got {getattr(self, name):g}"
                raise SpecError(Fault(got, "expected a bandwidth above 0", path=name))
        if self.n_cores and not self.n_spines:
            raise SpecError(Fault("got cores without spines", "expected n_spines of 1 or more"))

    @property
    def total_pods(self) -> int:
        """Pods of all planes."""
        return self.n_pods * self.n_planes

    @property
    def total_leaves(self) -> int:
        """Leaves of all pods."""
        return self.n_leaves * self.total_pods

    @property
    def n_hosts(self) -> int:
        """Host ports, which are numbered leaf by leaf."""
        return self.hosts_per_leaf * self.total_leaves

    @property
    def n_uplinks(self) -> int:
        """Links from a leaf up."""
        return self.n_spines * self.n_parallel

    @property
    def n_core_links(self) -> int:
        """Links from a spine up."""
        return self.n_cores * self.core_parallel

    @property
    def n_switches(self) -> dict[str, int]:
        """Switches by tier."""
        n_cores = self.n_planes * self.n_spines * self.n_cores
        counts = ("leaf", self.total_leaves), ("spine", self.n_spines * self.total_pods)
        return {tier: n for tier, n in (*counts, ("core", n_cores)) if n}

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Layers from ``host_up`` to ``host_down``; each direction of a tier is one."""
        tiers = [(self.n_hosts, 1, 1)]
        if self.n_spines:
            tiers.append((self.total_leaves, self.n_uplinks, self.n_uplinks))
        if self.n_cores:
            n_per_pod = self.n_spines * self.n_core_links
            tiers.append((self.total_pods, n_per_pod, self.n_core_links))
        up = list(enumerate(tiers))
        layers, start = [], 0
        names = _UP[: len(up)] + _DOWN[-len(up) :]
        for name, (tier, (n_owners, n, n_per_group)) in zip(names, up + up[::-1], strict=True):
            layers.append(Layer(name, start, n_owners * n, n_per_group, tier, n_owners))
            start += n_owners * n
        return tuple(layers)

    def layer(self, name: str) -> Layer:
        """The layer of a name."""
        return next(layer for layer in self.layers if layer.name == name)

    @property
    def n_links(self) -> int:
        """Directed links of all layers."""
        return self.layers[-1].start + self.layers[-1].n_links

    @cached_property
    def capacity_Bps(self) -> Array:
        """Bandwidth of each link, shape (n_links,); 0 for failed ones."""
        speeds_Bps = (self.host_Bps, self.uplink_Bps, self.core_Bps)
        capacity = np.empty(self.n_links)
        for layer in self.layers:
            capacity[layer.links] = speeds_Bps[layer.tier]
        capacity[self.failed] = 0.0
        return capacity

    @cached_property
    def alive(self) -> Mask:
        """Which links work, shape (n_links,)."""
        alive = np.ones(self.n_links, dtype=np.bool_)
        alive[self.failed] = False
        return alive

    def leaf_of(self, host: Indices) -> Indices:
        """Leaf of each host, over all pods."""
        return host // self.hosts_per_leaf

    def pod_of(self, host: Indices) -> Indices:
        """Pod of each host, over all planes."""
        return host // (self.hosts_per_leaf * self.n_leaves)

    def plane_of(self, host: Indices) -> Indices:
        """Plane of each host."""
        return self.pod_of(host) // self.n_pods

    def reverse(self, links: Indices) -> Indices:
        """The other direction of each link's cable."""
        links = np.asarray(links)
        found = np.empty_like(links)
        for up, down in zip(self.layers, self.layers[::-1], strict=True):
            inside = (links >= up.start) & (links < up.start + up.n_links)
            found[inside] = links[inside] - up.start + down.start
        return found

    def link_name(self, link: int) -> str:
        """Name of a link, such as ``leaf 3 -> spine 5`` or ``host 7 -> leaf 1``."""
        layer = next(x for x in self.layers if x.start <= link < x.start + x.n_links)
        ends = self._ends(layer, link - layer.start)
        return " -> ".join(ends if layer.name.endswith("_up") else ends[::-1])

    def _ends(self, layer: Layer, index: int) -> tuple[str, str]:
        """Lower and upper end of a link of a layer, each with its number."""
        if layer.is_host:
            return f"host {index}", f"leaf {index // self.hosts_per_leaf}"
        if layer.tier == 1:
            bundle, parallel = divmod(index, self.n_parallel)
            leaf, spine = divmod(bundle, self.n_spines)
            upper = leaf // self.n_leaves * self.n_spines + spine
            port = f" (link {parallel})" * (self.n_parallel > 1)
            return f"leaf {leaf}{port}", f"spine {upper}"
        bundle, parallel = divmod(index, self.core_parallel)
        spine, core = divmod(bundle, self.n_cores)
        pod, position = divmod(spine, self.n_spines)
        upper = (pod // self.n_pods * self.n_spines + position) * self.n_cores + core
        port = f" (link {parallel})" * (self.core_parallel > 1)
        return f"spine {spine}{port}", f"core {upper}"


@dataclass(frozen=True)
class Flows:
    """Flows that are active together, one entry each; hosts are host ports of the fabric.

    Parameters
    ----------
    src, dst : host ports, int64, shape (n_flows,).
    size_bytes : shape (n_flows,).
    src_port : UDP source port where it is given, -1 where each draw makes one.
    pair : index of a flow's queue pair at its sender, from which the source port follows
        by the Linux rule once a draw numbers the queue pairs; -1 for ports drawn freely.
    src_address, dst_address : numbers that become IP addresses; the host port's own unless
        several ports share the address of their host.
    collective : number of the collective (or job) a flow belongs to.
    via : spine that a pinned flow takes, -1 for none.

    Examples
    --------
    >>> flows = Flows(np.array([0, 1]), np.array([4, 5]), np.array([1e9, 1e9]))
    >>> flows.n_flows, flows.collective
    (2, array([0, 0]))
    """

    src: Indices
    dst: Indices
    size_bytes: Array
    src_port: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pair: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    src_address: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    dst_address: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    collective: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    via: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        none = np.full(self.n_flows, -1, dtype=np.int64)
        ends = {"src_address": self.src, "dst_address": self.dst, "collective": none + 1}
        defaults = dict.fromkeys(("src_port", "pair", "via"), none) | ends
        for name, default in defaults.items():
            if self.n_flows and not getattr(self, name).size:
                object.__setattr__(self, name, default)

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(self.src.size)


def all_flows(*parts: Flows) -> Flows:
    """Several lists of flows as one, in order.

    >>> one = Flows(np.array([0]), np.array([1]), np.array([8.0]))
    >>> all_flows(one, one).size_bytes
    array([8., 8.])
    """
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Flows.__annotations__
    }
    return Flows(**columns)


class Hops(NamedTuple):
    """Which switches decide about each flow, shape (n_flows,) each.

    Parameters
    ----------
    src_leaf, dst_leaf, src_pod, dst_pod : indices over all pods.
    leaves_leaf : whether a flow goes up to a spine.
    leaves_pod : whether it goes on up to a core.
    first : where the links of the leaf or pod begin that a flow crosses in each layer between
        switches, in the order of a path, shape (n_flows, 4); -1 where it turns earlier.
    """

    src_leaf: Indices
    dst_leaf: Indices
    src_pod: Indices
    dst_pod: Indices
    leaves_leaf: Mask
    leaves_pod: Mask
    first: Indices


class Tiers(NamedTuple):
    """One number per link between switches; views, so writing to them writes to the links.

    Parameters
    ----------
    leaf_up, spine_down : shape (leaves, spines of a pod, parallel links).
    spine_up, core_down : shape (pods, spines of a pod, cores of a spine, parallel links).
    """

    leaf_up: NDArray[Any]
    spine_up: NDArray[Any]
    core_down: NDArray[Any]
    spine_down: NDArray[Any]


def by_tier(fabric: Clos, per_link: NDArray[Any]) -> Tiers:
    """Numbers of all links, shape (n_links,), as one array per tier and direction."""
    leaf = (fabric.total_leaves, fabric.n_spines, fabric.n_parallel)
    pod = (fabric.total_pods, fabric.n_spines, fabric.n_cores, fabric.core_parallel)
    shapes = {"leaf_up": leaf, "spine_up": pod, "core_down": pod, "spine_down": leaf}
    slices = {layer.name: layer.links for layer in fabric.layers}
    none = slice(0, 0)
    return Tiers(*(per_link[slices.get(x, none)].reshape(shapes[x]) for x in Tiers._fields))


def hops(fabric: Clos, flows: Flows) -> Hops:
    """Where the flows turn around.

    Raises
    ------
    SpecError
        For hosts that the fabric does not have, or that it does not join.
    """
    for name, host in (("src", flows.src), ("dst", flows.dst)):
        wrong = np.flatnonzero((host < 0) | (host >= fabric.n_hosts))
        if wrong.size:
            got = f"got {name} {host[wrong[0]]} of flow {wrong[0]}"
            raise SpecError(Fault(got, f"expected a host of 0 .. {fabric.n_hosts - 1}"))
    where = hops_between(fabric, fabric.leaf_of(flows.src), fabric.leaf_of(flows.dst))
    apart = where.leaves_leaf & (fabric.n_spines == 0) | where.leaves_pod & (fabric.n_cores == 0)
    apart |= fabric.plane_of(flows.src) != fabric.plane_of(flows.dst)
    if apart.any():
        i = int(np.argmax(apart))
        got = f"flow {i} goes from host {flows.src[i]} to host {flows.dst[i]}"
        raise SpecError(Fault(got, "expected hosts that the fabric joins"))
    return where


def hops_between(fabric: Clos, src_leaf: Indices, dst_leaf: Indices) -> Hops:
    """Where flows between leaves turn around, if they are joined."""
    src_pod, dst_pod = src_leaf // fabric.n_leaves, dst_leaf // fabric.n_leaves
    leaves_leaf, leaves_pod = src_leaf != dst_leaf, src_pod != dst_pod
    owners = (src_leaf, src_pod, dst_pod, dst_leaf)
    first = np.full((len(src_leaf), 4), -1)
    for layer in fabric.layers[1:-1]:
        i, used = BETWEEN.index(layer.name), leaves_leaf if layer.tier == 1 else leaves_pod
        begin = layer.start + owners[i] * (layer.n_links // layer.n_owners)
        first[:, i] = np.where(used, begin, -1)
    return Hops(src_leaf, dst_leaf, src_pod, dst_pod, leaves_leaf, leaves_pod, first)


class Choice(NamedTuple):
    """What the switches of each flow's path choose, shape (n_flows,) each; -1 for no choice.

    Parameters
    ----------
    uplink : at the leaf, of its ``n_uplinks``: spine * n_parallel + parallel link.
    core_link : at the spine, of its ``n_core_links``: core * core_parallel + parallel link.
    core_down : at the core, of the ``core_parallel`` links to the other pod's spine.
    spine_down : at the last spine, of the ``n_parallel`` links to the leaf.
    """

    uplink: Indices
    core_link: Indices
    core_down: Indices
    spine_down: Indices


def links_of(fabric: Clos, flows: Flows, choice: Choice, where: Hops | None = None) -> Indices:
    """Links that each flow crosses, in order, shape (n_flows, n_layers); -1 where it turns earlier.

    Parameters
    ----------
    choice : for flows that leave their leaf (their pod), within range.
    where : :func:`hops` of the flows, if they are known already.
    """
    where = hops(fabric, flows) if where is None else where
    return with_host_links(fabric, flows, links_between(fabric, choice, where))


def with_host_links(fabric: Clos, flows: Flows, between: Indices) -> Indices:
    """Links between switches, as in :data:`BETWEEN`, and those to hosts, layer by layer."""
    existing = [BETWEEN.index(layer.name) for layer in fabric.layers[1:-1]]
    down = fabric.layers[-1].start + flows.dst
    return np.column_stack([flows.src, between[:, existing], down])


def links_between(fabric: Clos, choice: Choice, where: Hops) -> Indices:
    """Links between switches that each flow crosses, shape (n_flows, 4) as in :data:`BETWEEN`."""
    spine, links = choice.uplink // fabric.n_parallel, where.first.copy()
    links[:, 0] += choice.uplink
    links[:, 3] += spine * fabric.n_parallel + choice.spine_down
    if fabric.n_cores:
        core = spine * fabric.n_cores + choice.core_link // fabric.core_parallel
        links[:, 1] += spine * fabric.n_core_links + choice.core_link
        links[:, 2] += core * fabric.core_parallel + choice.core_down
    links[where.first < 0] = -1
    return links


def choice_of(fabric: Clos, links: Indices, where: Hops) -> Choice:
    """The choice whose :func:`links_between` these are."""
    numbers = (fabric.n_uplinks, fabric.n_core_links, fabric.core_parallel, fabric.n_parallel)
    picks = np.where(links < 0, -1, (links - where.first) % np.maximum(numbers, 1))
    return Choice(*np.ascontiguousarray(picks.T))


@dataclass(frozen=True)
class LiveLinks:
    """What works of a fabric.

    Parameters
    ----------
    fabric : the fabric, its failed links marked.
    """

    fabric: Clos

    @cached_property
    def tiers(self) -> Tiers:
        """Which links work, by tier and direction."""
        return by_tier(self.fabric, self.fabric.alive)

    def uplinks(self, where: Hops) -> Mask:
        """Uplinks of its leaf that lead to each flow's other leaf, shape (n_flows, n_uplinks)."""
        reaches = np.any(self.tiers.spine_down, axis=2)[where.dst_leaf]
        if where.leaves_pod.any():
            reaches = reaches & (self._pods_joined(where) | ~where.leaves_pod[:, None])
        live: Mask = self.tiers.leaf_up[where.src_leaf] & reaches[:, :, None]
        return live.reshape(len(live), self.fabric.n_uplinks)

    def _pods_joined(self, where: Hops) -> Mask:
        """Spine positions that some core joins to each flow's other pod, (n_flows, n_spines)."""
        if not self.fabric.n_cores:
            return np.zeros((len(where.src_pod), self.fabric.n_spines), dtype=np.bool_)
        n_pods = self.fabric.total_pods
        pairs, which = np.unique(where.src_pod * n_pods + where.dst_pod, return_inverse=True)
        up, down = np.any(self.tiers.spine_up, axis=3), np.any(self.tiers.core_down, axis=3)
        joined: Mask = np.any(up[pairs // n_pods] & down[pairs % n_pods], axis=2)
        return joined[which]

    def core_links(self, where: Hops, spine: Indices) -> Mask:
        """Core links of each flow's spine that lead to the other pod, (n_flows, n_core_links)."""
        down = np.any(self.tiers.core_down, axis=3)[where.dst_pod, spine]
        live: Mask = self.tiers.spine_up[where.src_pod, spine] & down[:, :, None]
        return live.reshape(len(live), self.fabric.n_core_links)


_SHOWN = 5


def cable_failures(fabric: Clos) -> Indices:
    """Both links of every cable between switches, shape (n_cables, 2).

    >>> cable_failures(Clos(1, 2, 1, host_Bps=1.0, uplink_Bps=1.0)).tolist()
    [[2, 4], [3, 5]]
    """
    up = [layer for layer in fabric.layers if layer.name in _UP[1:]]
    links = [np.arange(layer.start, layer.start + layer.n_links) for layer in up]
    cables = np.concatenate([*links, np.zeros(0, dtype=np.int64)])
    return np.stack([cables, fabric.reverse(cables)], axis=1)


def spine_failures(fabric: Clos) -> Indices:
    """All links of every spine, shape (n_spines of all pods, links of a spine)."""
    n_spines = fabric.total_pods * fabric.n_spines
    if not n_spines:
        return np.zeros((0, 0), dtype=np.int64)
    shape = (fabric.total_pods, fabric.n_leaves, fabric.n_spines, fabric.n_parallel)
    leaf_up = fabric.layer("leaf_up").start + np.arange(np.prod(shape)).reshape(shape)
    up = leaf_up.transpose(0, 2, 1, 3).reshape(n_spines, -1)
    if fabric.n_cores:
        n_up = n_spines * fabric.n_core_links
        cores = fabric.layer("spine_up").start + np.arange(n_up).reshape(n_spines, -1)
        up = np.concatenate([up, cores], axis=1)
    return np.concatenate([up, fabric.reverse(up)], axis=1)


def core_failures(fabric: Clos) -> Indices:
    """All links of every core, shape (n_cores of all planes, links of a core)."""
    n_cores = fabric.n_switches.get("core", 0)
    if not n_cores:
        return np.zeros((0, 0), dtype=np.int64)
    positions = (fabric.n_spines, fabric.n_cores, fabric.core_parallel)
    shape = (fabric.n_planes, fabric.n_pods, *positions)
    links = fabric.layer("spine_up").start + np.arange(np.prod(shape)).reshape(shape)
    up = links.transpose(0, 2, 3, 1, 4).reshape(n_cores, -1)
    return np.concatenate([up, fabric.reverse(up)], axis=1)


SINGLE_PARTS = ("leaf - spine cable", "spine - core cable", "spine", "core")
"""Kinds of parts that fail alone, in the order of a path up."""


class SingleFailure(NamedTuple):
    """One part that fails alone.

    Parameters
    ----------
    part : its kind, such as ``leaf - spine cable``, or ``spine``.
    name : such as ``leaf 0 - spine 5``.
    links : that are down then.
    """

    part: str
    name: str
    links: Indices


def single_failures(fabric: Clos) -> Iterator[SingleFailure]:
    """Every N-1 case: first cables, then spines and cores.

    Equal switches are not merged: which of them fails matters as soon as flows have paths.

    >>> found = [(one.part, one.name) for one in single_failures(Clos(1, 2, 1, 1.0, 1.0))]
    >>> found[0], found[-1]
    (('leaf - spine cable', 'leaf 0 - spine 0'), ('spine', 'spine 0'))
    """
    first_core = next((x.start for x in fabric.layers if x.name == "spine_up"), fabric.n_links)
    for links in cable_failures(fabric):
        part = SINGLE_PARTS[int(links[0] >= first_core)]
        yield SingleFailure(part, fabric.link_name(int(links[0])).replace(" -> ", " - "), links)
    for tier, lost in zip(
        SINGLE_PARTS[2:], (spine_failures(fabric), core_failures(fabric)), strict=True
    ):
        yield from (SingleFailure(tier, f"{tier} {i}", links) for i, links in enumerate(lost))


def with_failed(fabric: Clos, links: Indices) -> Clos:
    """The fabric with these links down too."""
    failed = np.union1d(fabric.failed, np.asarray(links, dtype=np.int64).ravel())
    return replace(fabric, failed=failed)


def fail(fabric: Clos, *, n_links: int = 0, n_spines: int = 0, seed: int = 0) -> Clos:
    """The fabric with cables and spines down, drawn without replacement.

    With one seed the failures of smaller counts are among those of larger ones.

    Parameters
    ----------
    n_links : cables between switches, both directions each, none of them at a failed spine.
    n_spines : spines, with all their links.
    seed : of the draw (C12).

    Raises
    ------
    SpecError
        For more failures than there are cables or spines.

    Examples
    --------
    >>> fabric = Clos(4, 4, 8, host_Bps=50e9, uplink_Bps=50e9)
    >>> fail(fabric, n_links=2, n_spines=1, seed=1).failed.size
    12
    """
    spines_seed, cables_seed = np.random.SeedSequence(seed).spawn(2)
    spines, cables = spine_failures(fabric), cable_failures(fabric)
    _check_count("spines", n_spines, len(spines))
    order = np.random.default_rng(spines_seed).permutation(len(spines))
    down = with_failed(fabric, spines[order[:n_spines]])
    order = np.random.default_rng(cables_seed).permutation(len(cables))
    order = order[down.alive[cables[order, 0]]]
    _check_count("links", n_links, len(order))
    return with_failed(down, cables[order[:n_links]])


def _check_count(what: str, wanted: int, there_are: int) -> None:
    if not 0 <= wanted <= there_are:
        cables = "cables between switches" if what == "links" else what
        expected = f"expected 0 to {there_are}, the {cables} that work"
        fix = "" if there_are else "a dimension of one switch has none: give it by dimension"
        if what == "spines" and there_are > 1:
            fix = f"write {there_are - 1} or fewer: with all of them failed no leaves are joined"
        raise SpecError(Fault(f"got {wanted} failed {what}", expected, fix, "failed_links"))


def disconnected(fabric: Clos, src: Indices, dst: Indices) -> Mask:
    """Which pairs of hosts no working path joins, shape (n_pairs,).

    A path goes up to the lowest tier that joins its ends, and down again.
    """
    src, dst = np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64)
    alive = fabric.alive
    up, down = fabric.layer("host_up"), fabric.layer("host_down")
    joined = alive[up.start + src] & alive[down.start + dst]
    joined &= fabric.plane_of(src) == fabric.plane_of(dst)
    leaves = np.stack([fabric.leaf_of(src), fabric.leaf_of(dst)], axis=1)
    apart = joined & (leaves[:, 0] != leaves[:, 1])
    pairs, which = np.unique(leaves[apart], axis=0, return_inverse=True)
    if fabric.n_spines and len(pairs):
        uplinks = LiveLinks(fabric).uplinks(hops_between(fabric, *pairs.T))
        joined[apart] = np.asarray(uplinks.any(axis=1))[which.ravel()]
    else:
        joined[apart] = False
    return ~joined


def require_connected(
    fabric: Clos,
    src: Indices,
    dst: Indices,
    *,
    name: str = "host",
    number_of: Indices | None = None,
) -> None:
    """Name the pairs of hosts that no working path joins.

    Parameters
    ----------
    fabric, src, dst : links, and hosts at the ends of each pair, shape (n_pairs,).
    name, number_of : what is at the hosts, such as NPU, and its number by host; the hosts
        themselves by default.

    Raises
    ------
    SpecError
        With the number of such pairs and the first of them.
    """
    cut = np.flatnonzero(disconnected(fabric, src, dst))
    if not cut.size:
        return
    ends = np.stack([np.asarray(src)[cut], np.asarray(dst)[cut]], axis=1)
    pairs = np.unique(ends if number_of is None else number_of[ends], axis=0)
    shown = ", ".join(f"{name} {a} -> {name} {b}" for a, b in pairs[:_SHOWN])
    more = ", ..." if len(pairs) > _SHOWN else ""
    n_pairs = "1 pair" if len(pairs) == 1 else f"{len(pairs):,} pairs"
    got = f"got {n_pairs} of {name}s that no path joins: {shown}{more}"
    raise Disconnected(Fault(got, "expected a fabric that joins them", "repair links or spines"))
