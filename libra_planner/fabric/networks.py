"""Networks of switches with all their host ports: which port of which leaf is whose."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Clos, Indices, fail
from libra_planner.fabric.sizing import (
    Shape,
    TierOrder,
    ceil_ratio,
    plane_settings,
    plane_shape,
    stack_shape,
)
from libra_planner.fabric.topology import (
    MOST_TIERS,
    RAIL,
    RAIL_OPTIMIZED,
    TOP_OF_RACK,
    SwitchSettings,
    Topology,
)
from libra_planner.frozen import Frozen
from libra_planner.units import gigabytes_per_s

MAX_LINKS = 100_000_000
"""Most directed links of a dimension that are listed one by one."""


def check_size(n_links: int) -> None:
    """Refuse more links than are listed one by one."""
    if n_links > MAX_LINKS:
        fix = "check a smaller cluster"
        raise SpecError(Fault(f"got {n_links:,} links", f"expected at most {MAX_LINKS:,}", fix))


def nics(bandwidth_Bps: float, settings: SwitchSettings) -> tuple[int, float]:
    """NICs of an NPU and the speed of each, which realise at least the bandwidth.

    Raises
    ------
    SpecError
        For fewer NICs than the bandwidth needs.

    Examples
    --------
    >>> nics(120e9, SwitchSettings(port_speed_Bps=50e9)), nics(120e9, SwitchSettings(n_nics=2))
    ((3, 50000000000.0), (2, 60000000000.0))
    """
    speed_Bps = settings.port_speed_Bps
    if speed_Bps is None:
        n_nics = settings.n_nics or 1
        return n_nics, bandwidth_Bps / n_nics
    needed = ceil_ratio(bandwidth_Bps, speed_Bps)
    if settings.n_nics is not None and settings.n_nics < needed:
        got = f"got {settings.n_nics} NICs of {gigabytes_per_s(speed_Bps):g} GB/s"
        expected = f"expected {needed} for {gigabytes_per_s(bandwidth_Bps):.6g} GB/s per NPU"
        fix = f"write nics: auto, or bound the dimension to {settings.n_nics} NICs in constraints"
        raise SpecError(Fault(got, expected, fix, "nics"))
    return settings.n_nics or needed, speed_Bps


@dataclass(frozen=True)
class Ports(Frozen):
    """Host ports of all NPUs: how many, and which; here an NPU's number is its only port.

    Which they are is worked out when it is first asked: a bill never asks.

    Parameters
    ----------
    n_npus, n_per_npu : NPUs of the cluster, ports of each.

    Examples
    --------
    >>> Ports(3, 1).of_npu.ravel().tolist()
    [0, 1, 2]
    """

    n_npus: int
    n_per_npu: int

    @cached_property
    def of_npu(self) -> Indices:
        """Ports of each NPU, shape (n_npus, n_per_npu), those of a NIC side by side."""
        return np.arange(self.n_npus)[:, None]


@dataclass(frozen=True)
class _PlanePorts(Ports, ABC):
    """Ports in every plane of every network; a subclass knows one plane.

    Parameters
    ----------
    n_planes : of each network.
    shape : of one plane.
    """

    n_planes: int
    shape: Shape

    @property
    @abstractmethod
    def in_plane(self) -> tuple[Indices, Indices]:
        """Network of each NPU, (n_npus,), and its ports in one plane of it, (n_npus, n)."""

    @cached_property
    def of_npu(self) -> Indices:
        network, port = self.in_plane
        per_plane = self.shape.hosts_per_leaf * self.shape.n_leaves * self.shape.n_pods
        plane = network[:, None, None] * self.n_planes + np.arange(self.n_planes)
        return (plane * per_plane + port[:, :, None]).reshape(len(port), -1)


@dataclass(frozen=True)
class BuiltNetwork:
    """The links of one dimension, or of all tiers of a stack.

    Parameters
    ----------
    clos : the links.
    ports : host ports of the NPUs.
    ports_per_nic : host ports of a NIC: one in every plane, or more where ports are slower.
    bandwidth_Bps : per NPU and tier: of its NICs, then its share of the links up.
    """

    clos: Clos
    ports: Ports
    ports_per_nic: int
    bandwidth_Bps: tuple[float, ...]


def switch_fabric(
    topology: Topology, dim: int, bandwidth_Bps: float, settings: SwitchSettings
) -> BuiltNetwork:
    """The network of a switch dimension, with the fewest switches.

    Where the NPUs do not fill all leaves, every leaf has as many as any other, or one
    fewer; the ports left over are links of the fabric that nothing is plugged into.

    Raises
    ------
    SpecError
        As :func:`~libra_planner.fabric.realization.realize`.
    """
    n_nics, nic_Bps = nics(bandwidth_Bps, settings)
    plane_of = plane_settings(settings, nic_Bps)
    n_ports = n_nics * (plane_of.n_nics or 1)
    n_inner, n_npus = math.prod(topology.sizes[:dim]), topology.n_npus
    check_size(2 * n_npus * n_ports * settings.n_planes)
    n_networks = n_npus // topology.sizes[dim] if settings.wiring == RAIL else 1
    n_rails = n_inner if settings.wiring == RAIL_OPTIMIZED else 1
    hosts_per_rail = n_npus * n_ports // (n_networks * n_rails)
    shape = plane_shape(plane_of, hosts_per_rail + settings.n_reserved * n_ports, n_rails)
    n_planes = plane_of.n_planes
    ports = _SwitchPorts(
        n_npus, n_ports * n_planes, n_planes, shape, topology, dim, plane_of.wiring
    )
    return _network(plane_of, shape, n_networks, ports, dim)


@dataclass(frozen=True)
class _SwitchPorts(_PlanePorts):
    """Ports on the networks of one dimension."""

    topology: Topology
    dim: int
    wiring: str

    @property
    def in_plane(self) -> tuple[Indices, Indices]:
        topology, shape, n_ports = self.topology, self.shape, self.n_per_npu // self.n_planes
        n_inner, npu = math.prod(topology.sizes[: self.dim]), np.arange(self.n_npus)
        rail, place, network = np.zeros_like(npu), npu, np.zeros_like(npu)
        n_hosts = self.n_npus * n_ports  # Of a rail, or of a network without rails.
        if self.wiring == RAIL:
            n_places = topology.sizes[self.dim]
            network, place = group_of_npu(topology, self.dim), npu // n_inner % n_places
            n_hosts = n_places * n_ports
        elif self.wiring == RAIL_OPTIMIZED:
            place, rail = npu // n_inner, npu % n_inner
            if shape.n_rails == 1:  # One switch holds all rails.
                place, rail = rail * (self.n_npus // n_inner) + place, np.zeros_like(rail)
            else:
                n_hosts //= n_inner
        host = place[:, None] * n_ports + np.arange(n_ports)
        return network, _port(shape, n_hosts, rail[:, None], host)


def stack_fabric(
    topology: Topology, tiers: range, asked_Bps: Array, settings: SwitchSettings
) -> BuiltNetwork:
    """The network of a stack: its sizes fix leaves and pods, its bandwidths the links up (C13).

    Parameters
    ----------
    topology : whose dimensions they are.
    tiers : dimensions of the stack that have bandwidth, innermost first.
    asked_Bps : per NPU, of these dimensions, byte/s.
    settings : of the network.

    Raises
    ------
    SpecError
        For more tiers than leaves, spines and cores, or switches with more ports than the radix.
    """
    if len(tiers) > MOST_TIERS:
        got, fix = f"got a stack of {len(tiers)} tiers", "join two of them"
        raise SpecError(Fault(got, f"expected at most three: {', '.join(_TIERS)}", fix))
    n_nics, nic_Bps = nics(float(asked_Bps[0]), settings)
    plane_of = plane_settings(settings, nic_Bps)
    n_ports = n_nics * (plane_of.n_nics or 1)
    check_size(2 * topology.n_npus * n_ports * settings.n_planes)
    places = _Places(topology, tiers, settings.wiring)
    uplink_Bps = (plane_of.port_speed_Bps or 0.0) * plane_of.uplink_ratio * settings.n_planes
    needed = zip((places.n_leaf_npus, places.n_pod_npus), asked_Bps[1:], strict=False)
    order = TierOrder(
        places.sizes,
        n_ports * places.n_at_place,
        tuple(n * float(share_Bps) / uplink_Bps for n, share_Bps in needed),
        places.n_rails,
        -(-settings.n_reserved // math.prod(places.sizes[1:])),
        _n_joined(n_nics, settings),
        places.n_at_place,
    )
    shape = stack_shape(plane_of, order)
    n_planes = plane_of.n_planes
    ports = _StackPorts(topology.n_npus, n_ports * n_planes, n_planes, shape, places, order)
    built = _network(plane_of, shape, places.n_networks, ports, tiers.start)
    n_split = shape.n_pods // (*places.sizes, 1, 1)[2]
    of_leaf = shape.n_spines * shape.n_parallel * uplink_Bps / places.n_leaf_npus
    of_pod = shape.n_spines * shape.n_cores * shape.core_parallel * uplink_Bps / places.n_pod_npus
    realised = (*built.bandwidth_Bps, of_leaf, of_pod * n_split)
    return replace(built, bandwidth_Bps=realised[: len(tiers)])


def _n_joined(n_nics: int, settings: SwitchSettings) -> int:
    """NICs of an NPU that a faster one could replace: speeds on sale double from one to the next.

    >>> [_n_joined(n, SwitchSettings(port_speed_Bps=50e9)) for n in (1, 2, 3)]
    [1, 2, 1]
    """
    own = (settings.n_nics, settings.switch_port_Bps, settings.uplink_Bps)
    is_power = n_nics & (n_nics - 1) == 0
    return n_nics if is_power and all(one is None for one in own) else 1


_TIERS = ("leaves", "spines", "cores")


@dataclass(frozen=True)
class _Places:
    """Where the NPUs of a stack are in its networks."""

    topology: Topology
    tiers: range
    wiring: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """Places of a leaf, leaves of a rail in a pod, pods."""
        return self.topology.sizes[self.tiers.start : self.tiers.stop]

    @property
    def n_inner(self) -> int:
        """NPUs of one position of the dimensions inside the stack."""
        return math.prod(self.topology.sizes[: self.tiers.start])

    @property
    def n_at_place(self) -> int:
        """NPUs at one place of a leaf."""
        return self.n_inner if self.wiring == TOP_OF_RACK else 1

    @property
    def n_rails(self) -> int:
        """Rails that one network joins; leaves that nothing joins have one each."""
        return self.n_inner if self.wiring == RAIL_OPTIMIZED and len(self.tiers) > 1 else 1

    @property
    def n_leaf_npus(self) -> int:
        """NPUs of a leaf."""
        return self.sizes[0] * self.n_at_place

    @property
    def n_pod_npus(self) -> int:
        """NPUs of a pod, all rails of its network."""
        return math.prod(self.sizes[:2]) * self.n_at_place * self.n_rails

    @property
    def n_networks(self) -> int:
        """Networks that share no switch."""
        return self.topology.n_npus // (math.prod(self.sizes) * self.n_at_place * self.n_rails)

    @property
    def network(self) -> Indices:
        """The network of each NPU."""
        npu, n_apart = np.arange(self.topology.n_npus), self.n_inner // self.n_at_place
        n_apart //= self.n_rails
        outer = npu // (self.n_inner * math.prod(self.sizes))
        return outer * n_apart + npu % n_apart

    def ports(self, order: TierOrder, shape: Shape) -> Indices:
        """Host ports of each NPU in one plane of its network, shape (n_npus, ports)."""
        in_leaf, in_pod, n_pods = (*self.sizes, 1, 1)[:3]
        npu = np.arange(self.topology.n_npus)
        inner, place = npu % self.n_inner, npu // self.n_inner
        leaf, pod = place // in_leaf % in_pod, place // (in_leaf * in_pod) % n_pods
        rail = inner % self.n_rails
        if shape.n_pods == n_pods:  # Leaves alternate between the rails of a pod.
            leaf = (pod * in_pod + leaf) * self.n_rails + rail
        else:  # Every rail of a pod has spines of its own.
            leaf += (pod * self.n_rails + rail) * in_pod
        n_ports = order.ports_per_position // self.n_at_place
        first = leaf * order.hosts_per_leaf + place % in_leaf * order.ports_per_position
        port: Indices = first + inner % self.n_at_place * n_ports
        return port[:, None] + np.arange(n_ports)


@dataclass(frozen=True)
class _StackPorts(_PlanePorts):
    """Ports on the networks of a stack."""

    places: _Places
    order: TierOrder

    @property
    def in_plane(self) -> tuple[Indices, Indices]:
        return self.places.network, self.places.ports(self.order, self.shape)


def _network(
    settings: SwitchSettings, shape: Shape, n_networks: int, ports: Ports, dim: int
) -> BuiltNetwork:
    """All planes of all networks as links, with the failures that the settings ask for."""
    n_planes, host_Bps = settings.n_planes, settings.port_speed_Bps or 0.0
    up_Bps = host_Bps * settings.uplink_ratio
    counts = {name: n for name, n in vars(shape).items() if name != "n_rails"}
    one = Clos(**counts, host_Bps=host_Bps, uplink_Bps=up_Bps, core_Bps=up_Bps)
    clos = replace(one, n_planes=n_networks * n_planes)
    check_size(clos.n_links)
    n_links, n_spines = settings.n_failed_links, settings.n_failed_spines
    if n_links or n_spines:
        clos = fail(clos, n_links=n_links, n_spines=n_spines, seed=settings.failure_seed + dim)
    n_together = n_planes * (settings.n_nics or 1)
    return BuiltNetwork(clos, ports, n_together, (ports.n_per_npu * host_Bps,))


def group_of_npu(topology: Topology, dim: int) -> Indices:
    """Which group of a dimension each NPU is in, shape (n_npus,).

    >>> from libra_planner.fabric.topology import parse_topology
    >>> group_of_npu(parse_topology("RI(2)_SW(3)"), 1)
    array([0, 1, 0, 1, 0, 1])
    """
    npu = np.arange(topology.n_npus)
    n_inner, size = math.prod(topology.sizes[:dim]), topology.sizes[dim]
    return npu // (n_inner * size) * n_inner + npu % n_inner


def _port(shape: Shape, hosts_per_rail: int, rail: Indices, host: Indices) -> Indices:
    """Host port in its plane of each rail's hosts, spread evenly over the rail's leaves.

    Leaves alternate between the rails, so that a pod holds leaves of all of them.
    """
    n_leaves = shape.leaves_per_rail
    leaf = host * n_leaves // hosts_per_rail
    first = -(-leaf * hosts_per_rail // n_leaves)
    return (leaf * shape.n_rails + rail) * shape.hosts_per_leaf + host - first
