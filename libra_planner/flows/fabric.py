"""Fabrics as directed links: folded Clos networks of one, two or three tiers of switches.

Links are numbered layer by layer, ``host_up`` first and ``host_down`` last; within a
layer by lower switch, then upper switch, then parallel link. So a path is arithmetic
on indices, for any number of flows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_UP = ("host_up", "leaf_up", "spine_up")
_DOWN = ("core_down", "spine_down", "host_down")


@dataclass(frozen=True)
class Layer:
    """The links between two tiers in one direction.

    Parameters
    ----------
    name : such as ``leaf_up``: from the leaves up.
    start : index of its first link in the fabric.
    n_links : failed ones included.
    n_per_group : links of one ECMP group, the lower switch's (or NPU's) links to the tier above.
    is_host : whether it joins hosts; such links offer no choice of path (C10).
    """

    name: str
    start: int
    n_links: int
    n_per_group: int
    is_host: bool

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
        for name in counts:
            self._require(name, least=1)
        self._require("n_spines", least=0)
        self._require("n_cores", least=0)
        self._require_bandwidth("host_Bps", needed=True)
        self._require_bandwidth("uplink_Bps", needed=self.n_spines > 0)
        self._require_bandwidth("core_Bps", needed=self.n_cores > 0)
        if self.n_cores and not self.n_spines:
            raise SpecError(Fault("got cores without spines", "expected n_spines of 1 or more"))

    def _require(self, name: str, *, least: int) -> None:
        if getattr(self, name) < least:
            raise SpecError(
                Fault(f"got {getattr(self, name)}", f"expected {least} or more", path=name)
            )

    def _require_bandwidth(self, name: str, *, needed: bool) -> None:
        value = getattr(self, name)
        if needed and not (np.isfinite(value) and value > 0):
            raise SpecError(Fault(f"got {value:g}", "expected a bandwidth above 0", path=name))

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
        spines = self.n_spines * self.total_pods
        counts = {
            "leaf": self.total_leaves,
            "spine": spines,
            "core": self.n_planes * self.n_spines * self.n_cores,
        }
        return {tier: n for tier, n in counts.items() if n}

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Layers from ``host_up`` to ``host_down``; each direction of a tier is one."""
        sizes = [(self.n_hosts, 1)]
        if self.n_spines:
            sizes.append((self.total_leaves * self.n_uplinks, self.n_uplinks))
        if self.n_cores:
            n_spine_up = self.total_pods * self.n_spines * self.n_core_links
            sizes.append((n_spine_up, self.n_core_links))
        names = _UP[: len(sizes)] + _DOWN[-len(sizes) :]
        layers, start = [], 0
        for name, (n_links, n_per_group) in zip(names, sizes + sizes[::-1], strict=True):
            layers.append(Layer(name, start, n_links, n_per_group, name.startswith("host")))
            start += n_links
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
        of_tier = {"host": self.host_Bps, "leaf": self.uplink_Bps, "spine": self.core_Bps}
        tier_of = {"spine_down": "leaf", "core_down": "spine"}
        capacity = np.empty(self.n_links)
        for layer in self.layers:
            tier = tier_of.get(layer.name, layer.name.split("_")[0])
            capacity[layer.links] = of_tier[tier]
        capacity[self.failed] = 0.0
        return capacity

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
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
        if layer.name in ("leaf_up", "spine_down"):
            bundle, parallel = divmod(index, self.n_parallel)
            leaf, spine = divmod(bundle, self.n_spines)
            upper = leaf // self.n_leaves * self.n_spines + spine
            return f"leaf {leaf}{_port(parallel, self.n_parallel)}", f"spine {upper}"
        bundle, parallel = divmod(index, self.core_parallel)
        spine, core = divmod(bundle, self.n_cores)
        pod, position = divmod(spine, self.n_spines)
        upper = (pod // self.n_pods * self.n_spines + position) * self.n_cores + core
        return f"spine {spine}{_port(parallel, self.core_parallel)}", f"core {upper}"


def _port(parallel: int, n_parallel: int) -> str:
    return f" (link {parallel})" if n_parallel > 1 else ""
