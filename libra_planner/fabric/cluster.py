"""A cluster's network from what is asked for: hosts, NICs, ports, taper, wiring, planes (C13)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.parts import (
    HOST_LEAF,
    LEAF_SPINE,
    MANAGERS,
    SPINE_CORE,
    CableParts,
    Modules,
    cable_parts,
    dealt,
    links_per_host_cable,
)
from libra_planner.fabric.sizing import (
    Shape,
    TierOrder,
    hosts_that_fit,
    plane_settings,
    plane_shape,
    stack_shape,
)
from libra_planner.fabric.topology import RAIL, RAIL_OPTIMIZED, TOP_OF_RACK, SwitchSettings

RAIL_ONLY = "rail_only"
WIRINGS = (RAIL_OPTIMIZED, RAIL_ONLY, TOP_OF_RACK)
"""How hosts are cabled: a leaf serves one rail of all; a network for each rail; a leaf serves all
NICs of its hosts."""

WIRING_NAMES = (*WIRINGS, RAIL)
"""What users may write: a plan's name of ``rail_only``, too."""

TIERS = ("leaf", "spine", "core")

MOST_TAPER = 1000
"""Beyond it a taper is a slip of the keyboard."""


@dataclass(frozen=True)
class ClusterOrder:
    """What a network has to join.

    Parameters
    ----------
    n_hosts, n_nics_per_host : servers, and the NICs of each: its rails.
    nic_Bps : of one NIC, over all planes, one direction.
    switch_radix, port_Bps : ports of a switch and their speed; by default that of a NIC in a plane.
    uplink_Bps : of a link between switches; by default a port's.
    tapers : bandwidth of a leaf's links down over that of its links up, then of a spine's.
    wiring : one of :data:`WIRINGS`.
    n_planes : networks over which every NIC spreads its bandwidth.
    n_reserved_hosts : positions on the leaves that stay free of hosts, such as for management.
    n_management_links : links from leaves to managers of the fabric; they take such positions.
    most_hosts_per_leaf : where the room of a rack, not the ports of a leaf, is the limit.

    Raises
    ------
    SpecError
        For counts below 1, a taper below 1, or speeds that are no multiples of one another.
    """

    n_hosts: int
    n_nics_per_host: int = 8
    nic_Bps: float = 50e9
    switch_radix: int = 64
    port_Bps: float | None = None
    uplink_Bps: float | None = None
    tapers: tuple[float, ...] = (1.0,)
    wiring: str = RAIL_OPTIMIZED
    n_planes: int = 1
    n_reserved_hosts: int = 0
    n_management_links: int = 0
    most_hosts_per_leaf: int | None = None

    def __post_init__(self) -> None:
        counts = ("n_hosts", "n_nics_per_host", "switch_radix", "n_planes")
        faults = [
            Fault(f"got {getattr(self, name)}", "expected 1 or more", path=name)
            for name in counts
            if getattr(self, name) < 1
        ]
        if not 1 <= len(self.tapers) <= 2 or not all(1 <= x <= MOST_TAPER for x in self.tapers):
            got = f"got {', '.join(f'{taper:g}' for taper in self.tapers) or 'none'}"
            expected = f"expected one or two ratios of 1 to {MOST_TAPER:,}, from the leaf out"
            faults.append(Fault(got, expected, "write 1 for 1:1, or 1,7", "tapers"))
        if self.wiring not in WIRINGS:
            expected = f"expected {', '.join(WIRINGS)}"
            faults.append(Fault(f"got {self.wiring}", expected, path="wiring"))
        if faults:
            raise SpecError(*faults)
        _ = self.settings

    @property
    def speed_Bps(self) -> float:
        """Of a switch's ports: by default that of a NIC in a plane."""
        return self.nic_Bps / self.n_planes if self.port_Bps is None else self.port_Bps

    @property
    def settings(self) -> SwitchSettings:
        """How the switches of one plane are joined."""
        asked = SwitchSettings(
            switch_radix=self.switch_radix,
            oversubscription=self.tapers[0],
            core_oversubscription=self.tapers[1] if len(self.tapers) > 1 else 1.0,
            most_hosts_per_leaf=self.most_hosts_per_leaf,
            wiring=self.wiring,
            n_planes=self.n_planes,
            switch_port_Bps=self.port_Bps,
            uplink_Bps=self.uplink_Bps,
        )
        return plane_settings(asked, self.nic_Bps)

    @property
    def n_networks(self) -> int:
        """Networks that share no switch: planes, each one per rail with ``rail_only``."""
        return self.n_planes * (self.n_nics_per_host if self.wiring == RAIL_ONLY else 1)

    @property
    def n_links_per_host(self) -> int:
        """Links of a host in all planes."""
        return self.n_nics_per_host * self.n_planes * (self.settings.n_nics or 1)

    @property
    def n_positions(self) -> int:
        """Hosts that the leaves have room for: those asked for, and free ones for managers."""
        managers = -(-self.n_management_links // self.n_links_per_host)
        return self.n_hosts + max(self.n_reserved_hosts, managers)

    def grown(self, n_more: int) -> ClusterNetwork | SpecError:
        """The network of more hosts, or why there is none."""
        try:
            return cluster_network(replace(self, n_hosts=self.n_hosts + n_more))
        except SpecError as error:
            return error


@dataclass(frozen=True)
class ClusterNetwork:
    """The switches and cables that an order needs.

    Parameters
    ----------
    order : what is asked for.
    shape : of each of the order's networks.
    sizes : hosts of a leaf, leaves of a rail in a pod, and pods, where these are given.
    """

    order: ClusterOrder
    shape: Shape
    sizes: tuple[int, ...] = ()

    @cached_property
    def clos(self) -> Clos:
        """All networks as links, one host port for each link of a NIC."""
        counts = {name: n for name, n in vars(self.shape).items() if name != "n_rails"}
        settings = self.order.settings
        host_Bps = settings.port_speed_Bps or 0.0
        up_Bps = host_Bps * settings.uplink_ratio
        alike = Clos(**counts, host_Bps=host_Bps, uplink_Bps=up_Bps, core_Bps=up_Bps)
        return replace(alike, n_planes=self.order.n_networks)

    @property
    def links(self) -> dict[str, int]:
        """Links by what they join, from the hosts up; those of managers count as a host's."""
        clos = self.clos
        host = self.order.n_hosts * self.order.n_links_per_host + self.order.n_management_links
        up = clos.total_leaves * clos.n_uplinks
        core = clos.total_pods * clos.n_spines * clos.n_core_links
        return {HOST_LEAF: host, LEAF_SPINE: up, SPINE_CORE: core}

    @property
    def cables(self) -> dict[str, int]:
        """Cables: links of one NIC to two planes share one where a port of a switch serves both."""
        order = self.order
        shared = links_per_host_cable(order.settings)
        of_hosts = order.n_hosts * order.n_links_per_host // shared
        return self.links | {HOST_LEAF: of_hosts + order.n_management_links}

    @property
    def tapers(self) -> tuple[float, ...]:
        """Links down over links up in bandwidth, as built: of a full leaf, and of a spine."""
        clos = self.clos
        leaf = clos.hosts_per_leaf * clos.host_Bps, clos.n_uplinks * clos.uplink_Bps
        spine = clos.n_leaves * clos.n_parallel, clos.n_core_links
        return tuple(down / up for down, up in (leaf, spine) if up)

    def transceivers(self, n_per_fibre: int = 2) -> dict[str, int]:
        """Optical modules in switches, hosts and managers, where every cable is a fibre.

        Parameters
        ----------
        n_per_fibre : as :meth:`cable_parts` has it.
        """
        ends = [cable.modules for cable in self.cable_parts(n_per_fibre)]
        (hosts, _, *managers), total = ends[0], sum(end.n for layer in ends for end in layer)
        n_managers = sum(end.n for end in managers)
        in_switches = total - hosts.n - n_managers
        return {"switches": in_switches, "hosts": hosts.n, MANAGERS: n_managers}

    def cable_parts(self, n_per_fibre: int = 2) -> tuple[CableParts, ...]:
        """Cables by layer, from the hosts up, and the modules at their ends.

        Parameters
        ----------
        n_per_fibre : 2 for a module at either end of a cable, but one for a port that NICs share;
            1 for modules of two links (twin-port cages), of which every switch has what its links
            of a layer need, and every host.
        """
        order = self.order
        n_hosts = order.n_hosts * order.n_links_per_host
        layers = cable_parts(
            self.clos, order.settings, n_hosts, n_managers=order.n_management_links
        )
        return layers if n_per_fibre == 2 else (self._twin_hosts(layers[0]), *self._twins(layers))

    def _twin_hosts(self, cable: CableParts) -> CableParts:
        """Links of hosts on modules of two links; a port of several links keeps its own."""
        order, (hosts, leaves, *managers) = self.order, cable.modules
        in_hosts = Modules(order.n_hosts * -(-(hosts.n // order.n_hosts) // 2), 2)
        if leaves.n_links == 1:
            n_together = 2 * order.settings.n_hosts_per_port
            leaves = Modules(dealt(self.links[HOST_LEAF], self.clos.total_leaves, n_together), 2, 2)
        return _with_ends(cable, (in_hosts, leaves, *managers))

    def _twins(self, layers: Sequence[CableParts]) -> Iterator[CableParts]:
        """Links between switches on modules of two; a link of several ports fills its own."""
        n_switches = list(self.clos.n_switches.values())
        for cable, both in zip(layers[1:], pairwise(n_switches), strict=True):
            if self.order.settings.n_ports_per_uplink > 1:
                yield cable
                continue
            yield _with_ends(cable, tuple(Modules(dealt(cable.n_cables, n, 2), 2, 2) for n in both))

    @property
    def free_ports(self) -> dict[str, int]:
        """Ports without a cable, by tier."""
        found: dict[str, int] = {}
        for tier, (n, n_ports) in zip(("leaf", *TIERS), self._ports(), strict=True):
            if n:
                found[tier] = found.get(tier, 0) + n * (self.order.switch_radix - n_ports)
        return found

    @property
    def n_more_hosts(self) -> int:
        """Hosts for which the leaves have room, at the same tapers and with no cable moved."""
        n_sets = self._most_per_leaf // self._ports_per_position * self.shape.leaves_per_rail
        return max(0, n_sets - self.order.n_positions)

    @property
    def _most_per_leaf(self) -> int:
        return hosts_that_fit(self.order.settings, self.shape, self._ports_per_position)

    @property
    def _ports_per_position(self) -> int:
        """Host ports that a position takes on a leaf."""
        order = self.order
        is_shared = order.wiring == TOP_OF_RACK or not self.shape.n_spines
        rails = order.n_nics_per_host if is_shared and order.wiring != RAIL_ONLY else 1
        return (order.settings.n_nics or 1) * rails

    def moved_links(self, grown: ClusterNetwork) -> dict[str, int]:
        """Links that have to move to make a larger network of this one, by what they join.

        Switches stay what they are, and every link that the larger one has, too. With pods under
        cores it is the most that move: pods may be joined in other ways.
        """
        ours, its = self.clos, grown.clos

        def least(*names: str) -> int:
            both = ((getattr(ours, name), getattr(its, name)) for name in ("n_planes", *names))
            return math.prod(map(min, both))

        per_leaf = ours.hosts_per_leaf // (grown.shape.n_rails // self.shape.n_rails)
        kept = {
            HOST_LEAF: ours.total_leaves * min(per_leaf, grown._most_per_leaf),
            LEAF_SPINE: least("n_pods", "n_leaves", "n_spines", "n_parallel"),
            SPINE_CORE: least("n_pods", "n_spines", "n_cores", "core_parallel"),
        }
        return {joins: max(0, n - kept[joins]) for joins, n in self.links.items()}

    def _ports(self) -> Iterator[tuple[int, int]]:
        """Switches that use equally many ports, and these ports."""
        clos, settings = self.clos, self.order.settings
        least, n_more = divmod(self.links[HOST_LEAF], clos.total_leaves)
        for n, n_leaves in ((least, clos.total_leaves - n_more), (least + 1, n_more)):
            up = clos.n_uplinks * settings.n_ports_per_uplink
            yield n_leaves, -(-n // settings.n_hosts_per_port) + up
        of_spine = clos.n_leaves * clos.n_parallel + clos.n_core_links
        of_core = clos.n_pods * clos.core_parallel
        for tier, n_links in (("spine", of_spine), ("core", of_core)):
            yield clos.n_switches.get(tier, 0), n_links * settings.n_ports_per_uplink


def _with_ends(cable: CableParts, ends: tuple[Modules, ...]) -> CableParts:
    return replace(cable, ends=ends, n_optics=sum(end.n for end in ends))


def cluster_network(order: ClusterOrder) -> ClusterNetwork:
    """The fewest switches that join all hosts.

    Every leaf of a network has as many links to each spine, and every spine to each of its cores:
    95 hosts of 8 NICs need 16 spines of 64 ports, not 12.

    Raises
    ------
    SpecError
        Where three tiers do not reach, or a leaf cannot hold one host.

    Examples
    --------
    The compute fabric of a DGX H100 SuperPOD of 127 nodes (NVIDIA RA-11333-001, table 4).

    >>> pod = cluster_network(ClusterOrder(127, n_management_links=4))
    >>> pod.clos.n_switches, pod.cables
    ({'leaf': 32, 'spine': 16}, {'host-leaf': 1020, 'leaf-spine': 1024, 'spine-core': 0})
    >>> pod.transceivers(1)
    {'switches': 1536, 'hosts': 508, 'managers': 4}
    """
    settings = order.settings
    per_nic, rails = settings.n_nics or 1, order.n_nics_per_host
    ports = order.n_positions * per_nic
    if order.wiring == RAIL_OPTIMIZED:
        return ClusterNetwork(order, plane_shape(settings, ports, rails, per_nic))
    if order.wiring == TOP_OF_RACK:
        ports, per_nic = ports * rails, per_nic * rails
    return ClusterNetwork(order, plane_shape(settings, ports, 1, per_nic))


def grouped_network(network: ClusterNetwork) -> ClusterNetwork | None:
    """The same hosts in equal leaves and pods under cores, as a plan has them (C13).

    Of all such sizes those of the fewest switches; with a limit on the ports of a leaf, of the
    fullest leaves. ``None`` without cores, where a leaf serves all NICs of its hosts, where no
    such network can be built, and where it has the same switches.

    Examples
    --------
    512 hosts at 1:1 and 3:1: three pods of leaves of 29 are fewer switches than equal groups.

    >>> ours = cluster_network(ClusterOrder(512, tapers=(1.0, 3.0), most_hosts_per_leaf=32))
    >>> equal = grouped_network(ours)
    >>> ours.clos.n_switches, equal.sizes, equal.clos.n_switches
    ({'leaf': 144, 'spine': 87, 'core': 29}, (32, 8, 2), {'leaf': 128, 'spine': 128, 'core': 24})
    """
    order, per_nic = network.order, network.order.settings.n_nics or 1
    if network.shape.n_pods == 1 or order.wiring == TOP_OF_RACK:
        return None
    most = order.most_hosts_per_leaf or order.switch_radix * order.settings.n_hosts_per_port
    leaves = [n for n in _divisors(order.n_hosts) if n * per_nic <= most]
    found = []
    for leaf in leaves[-1:] if order.most_hosts_per_leaf else leaves:
        for n_pods in _divisors(order.n_hosts // leaf)[1:]:
            sizes = leaf, order.n_hosts // leaf // n_pods, n_pods
            with suppress(SpecError):
                found.append(_of_sizes(order, sizes))
    best = min(found, key=lambda one: sum(one.clos.n_switches.values()), default=None)
    return None if best is None or best.clos.n_switches == network.clos.n_switches else best


def _divisors(n: int) -> list[int]:
    return [size for size in range(1, n + 1) if n % size == 0]


def _of_sizes(order: ClusterOrder, sizes: tuple[int, int, int]) -> ClusterNetwork:
    """The network whose leaves and pods are of such sizes."""
    settings, (leaf, n_leaves, n_pods) = order.settings, sizes
    per_nic, n_rails = settings.n_nics or 1, order.n_nics_per_host
    n_rails = n_rails if order.wiring == RAIL_OPTIMIZED else 1
    of_leaf = leaf * per_nic / settings.oversubscription / settings.uplink_ratio
    of_pod = of_leaf * n_leaves * n_rails / settings.core_oversubscription
    n_free = -(-(order.n_positions - order.n_hosts) // (n_leaves * n_pods))
    asked = TierOrder(sizes, per_nic, (of_leaf, of_pod), n_rails, n_free)
    return ClusterNetwork(order, stack_shape(settings, asked), sizes)
