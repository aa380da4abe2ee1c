"""How many switches join the hosts of one network: the counts of a folded Clos in one plane."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.topology import MAX_RADIX, TOP_OF_RACK, SwitchSettings
from libra_planner.plain_text import joined
from libra_planner.units import format_line_rate

_ROUNDING = 1e-9
"""Relative excess that is rounding of a division, not a reason for one more link."""


_LARGER = (2, 4, 8, 16, 32)
"""Times the radix that may be proposed: switches on sale have twice the ports of one another."""


@dataclass(frozen=True)
class Shape:
    """Counts of one plane, as :class:`~libra_planner.fabric.clos.Clos` has them.

    Parameters
    ----------
    n_rails : sets of hosts that share no leaf; leaves alternate between them.
    """

    hosts_per_leaf: int
    n_leaves: int = 1
    n_spines: int = 0
    n_parallel: int = 1
    n_pods: int = 1
    n_cores: int = 0
    core_parallel: int = 1
    n_rails: int = 1

    @property
    def n_switches(self) -> int:
        """Switches of all tiers."""
        per_pod = self.n_leaves + self.n_spines
        return self.n_pods * per_pod + self.n_spines * self.n_cores

    @property
    def leaves_per_rail(self) -> int:
        """Leaves that hold hosts of one rail."""
        return self.n_pods * self.n_leaves // self.n_rails


def ceil_ratio(numerator: float, denominator: float) -> int:
    """The quotient rounded up, unless only rounding puts it above a whole number."""
    return max(1, math.ceil(numerator / denominator * (1 - _ROUNDING)))


@lru_cache(maxsize=1024)
def plane_shape(
    settings: SwitchSettings, hosts_per_rail: int, n_rails: int = 1, n_together: int = 1
) -> Shape:
    """The fewest switches that join all hosts of one plane.

    One switch if the ports suffice, else leaves and spines, else pods of them under cores.
    Of equally many switches those with the fullest leaves, all equally full. Every leaf is
    joined to every spine by the same number of links; a spine to every core.

    Parameters
    ----------
    settings : of the dimension.
    hosts_per_rail, n_rails : host ports; those of different rails share no leaf, unless one
        switch holds all.
    n_together : host ports that share a leaf, such as all of one server.

    Raises
    ------
    SpecError
        Where three tiers do not reach, or the given counts do not fit the radix.

    Examples
    --------
    >>> shape = plane_shape(SwitchSettings(switch_radix=8), 16)
    >>> shape.hosts_per_leaf, shape.n_leaves, shape.n_spines, shape.n_parallel
    (4, 4, 2, 2)
    """
    if settings.one_switch:
        return _one_switch(settings, hosts_per_rail * n_rails)
    if settings.n_leaves or settings.n_spines:
        return _given(settings, hosts_per_rail, n_rails)
    n_hosts, radix = hosts_per_rail * n_rails, settings.switch_radix
    if n_hosts <= min(radix * settings.n_hosts_per_port, settings.most_hosts_per_leaf or n_hosts):
        return Shape(n_hosts)
    n_sets = -(-hosts_per_rail // n_together)
    shape = _leaf_spine(settings, n_sets, n_rails, n_together)
    shape = shape or _three_tiers(settings, n_sets, n_rails, n_together)
    if shape is None:
        raise SpecError(_size_fault(settings, n_hosts, n_rails, n_together))
    return shape


def _size_fault(settings: SwitchSettings, n_hosts: int, n_rails: int, n_together: int) -> Fault:
    """Why no three tiers join so many hosts, and how many they do."""
    got = f"got {n_hosts:,} endpoints for switches of radix {settings.switch_radix}"
    ratio, most = settings.oversubscription, _most_hosts_per_leaf(settings)
    fix = "raise switch_radix or oversubscription, or split the dimension"
    if settings.n_link_ports < 2:
        taken = f"{settings.n_ports_per_uplink} of {settings.switch_radix} ports"
        got = f"got uplinks that take {taken}"
        return Fault(got, "expected two or more of them on a switch", fix, "switch_radix")
    if most < n_together:
        got = f"got {n_together} endpoints of one host for one leaf"
        expected = f"expected at most {most:,} at {ratio:g}:1 on {settings.switch_radix} ports"
        if most == settings.most_hosts_per_leaf:
            expected = f"expected at most the {most:,} host ports per leaf that are asked for"
        fix = "raise switch_radix or oversubscription, or give each rail its own leaves"
        return Fault(got, expected, f"{fix} (rail_optimized)", "switch_radix")
    n_leaves = _most_leaves(settings, n_rails)
    expected = f"expected what three tiers join, at most {{:,}} at {ratio:g}:1"
    if not n_leaves:
        expected = f"expected spines that join leaves of all {n_rails} rails, on {{}} links each"
    most = n_leaves * (most // n_together) * n_together or settings.n_link_ports
    return Fault(got, expected.format(most), fix, "switch_radix")


def _most_leaves(settings: SwitchSettings, n_rails: int) -> int:
    """Most leaves of two or three tiers, equally many of each rail."""
    n_links, bundle = settings.n_link_ports, settings.n_parallel or 1
    in_pod = _most_down(settings) // bundle
    found = np.arange(2, n_links + 1)[:, None] * np.arange(1, in_pod + 1)
    if n_rails <= in_pod:
        found = found[:, n_rails - 1 :: n_rails]
    two_tiers = n_links // bundle // n_rails * n_rails
    return int(np.max(found[found % n_rails == 0], initial=two_tiers))


def _one_switch(settings: SwitchSettings, n_hosts: int) -> Shape:
    """One scale-up switch for a group, if its ports suffice (C14)."""
    if n_hosts > settings.switch_radix:
        got = f"got a group of {n_hosts:,} ports on one scale-up switch: its tier has no NIC"
        fix = (
            "make the group smaller, or write the ports of a larger switch under the tier's name; "
            "for leaves and spines write its wiring there, or give the tier a NIC price"
        )
        expected = f"expected at most {settings.switch_radix:,} ports"
        raise SpecError(Fault(got, expected, fix, "switch_radix"))
    return Shape(n_hosts)


def _n_uplinks(settings: SwitchSettings, hosts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Uplinks that a leaf of so many hosts needs, in whole bundles of given parallel links."""
    bundle = settings.n_parallel or 1
    ratio = settings.oversubscription * settings.uplink_ratio
    needed = np.ceil(hosts / ratio * (1 - _ROUNDING))
    return np.ceil(np.maximum(needed, 1) / bundle) * bundle


def _most_hosts_per_leaf(settings: SwitchSettings) -> int:
    """Hosts of a leaf whose remaining ports suffice for its uplinks; 0 if none do."""
    hosts = np.arange(1, settings.switch_radix * settings.n_hosts_per_port)
    uplinks = _n_uplinks(settings, hosts) * settings.n_ports_per_uplink
    ports = -(-hosts // settings.n_hosts_per_port) + uplinks
    fitting = int(np.count_nonzero(ports <= settings.switch_radix))
    return min(fitting, settings.most_hosts_per_leaf or fitting)


def hosts_that_fit(settings: SwitchSettings, shape: Shape, n_together: int = 1) -> int:
    """Most host ports of a leaf of a network that is built, at the same tapers.

    Parameters
    ----------
    settings, shape : of one plane.
    n_together : host ports that share a leaf.

    Examples
    --------
    100 host ports on 4 leaves of 25 have uplinks for 32:

    >>> settings = SwitchSettings()
    >>> shape = plane_shape(settings, 100)
    >>> shape.hosts_per_leaf, shape.n_spines * shape.n_parallel, hosts_that_fit(settings, shape)
    (25, 26, 26)
    """
    n_up, most = shape.n_spines * shape.n_parallel, settings.most_hosts_per_leaf
    ports = (settings.switch_radix - n_up * settings.n_ports_per_uplink) * settings.n_hosts_per_port
    hosts = np.arange(n_together, min(ports, most or ports) + 1, n_together)
    fitting = hosts if not n_up else hosts[_n_uplinks(settings, hosts) <= n_up]
    return max(shape.hosts_per_leaf, int(np.max(fitting, initial=0)))


def _most_down(settings: SwitchSettings) -> int:
    """Links to leaves of a spine whose remaining ports suffice for its links to the cores."""
    down = np.arange(1, settings.n_link_ports)
    up = np.ceil(down / settings.core_oversubscription * (1 - _ROUNDING))
    return int(np.count_nonzero(down + up <= settings.n_link_ports))


def spread(
    n_lower: int, n_up: int, *, n_free: int, n_ports: int, n_parallel: int | None = None
) -> tuple[int, int] | None:
    """Fewest upper switches that take equally many links from each lower switch.

    Parameters
    ----------
    n_lower : switches below, all joined to all above.
    n_up : links that each needs at least.
    n_free : ports that each has for them.
    n_ports : ports of an upper switch that face down.
    n_parallel : links between two switches, where given.

    Returns
    -------
    Upper switches and links between two switches; ``None`` if the ports do not suffice.

    Examples
    --------
    >>> spread(4, 4, n_free=4, n_ports=8), spread(9, 4, n_free=4, n_ports=8)
    ((2, 2), None)
    """
    most_parallel = n_ports // n_lower
    if most_parallel < (n_parallel or 1):
        return None
    for n_upper in range(-(-n_up // (n_parallel or most_parallel)), n_up + 1):
        parallel = n_parallel or -(-n_up // n_upper)
        if n_upper * parallel <= n_free:
            return n_upper, parallel
    return None


def _leaf_counts(settings: SwitchSettings, n_sets: int, n_together: int) -> list[int]:
    """Leaves per rail worth trying, fewest first: one for every number of sets of hosts."""
    most = _most_hosts_per_leaf(settings) // n_together
    return sorted({-(-n_sets // n) for n in range(1, most + 1)})


def _leaf_spine(
    settings: SwitchSettings, n_sets: int, n_rails: int, n_together: int
) -> Shape | None:
    """The fewest switches in two tiers, and of equally many the fewest leaves."""
    best: Shape | None = None
    for leaves_per_rail in _leaf_counts(settings, n_sets, n_together):
        n_leaves = leaves_per_rail * n_rails
        if n_leaves > settings.n_link_ports or (best and n_leaves >= best.n_switches):
            break
        hosts = -(-n_sets // leaves_per_rail) * n_together
        best = _better(best, _pods(settings, hosts, n_rails, (1, n_leaves)))
    return best


def _better(best: Shape | None, other: Shape | None) -> Shape | None:
    """That of fewer switches; of equally many that with the fewest leaves, then pods."""
    if best is None or other is None:
        return best or other
    return min(best, other, key=lambda one: (one.n_switches, one.n_pods * one.n_leaves, one.n_pods))


def _three_tiers(
    settings: SwitchSettings, n_sets: int, n_rails: int, n_together: int
) -> Shape | None:
    """The fewest switches in three tiers, and of equally many the fewest leaves, then pods."""
    most, best = _most_down(settings), None
    # Fewer than these, over the leaves, cannot take what all hosts send up.
    n_up = n_sets * n_together * n_rails / (settings.oversubscription * settings.uplink_ratio)
    n_above = n_up / max(1, most) + n_up / settings.core_oversubscription / settings.n_link_ports
    for leaves_per_rail in _leaf_counts(settings, n_sets, n_together):
        least = leaves_per_rail * n_rails
        if best and least + n_above * (1 - _ROUNDING) > best.n_switches:
            break
        for n_pods in range(max(2, -(-least // max(1, most))), settings.n_link_ports + 1):
            n_leaves = _leaves_of_pod(least, n_pods, n_rails, most)
            n_each = n_pods * n_leaves // n_rails
            n_switches = n_each * n_rails + n_above * (1 - _ROUNDING)
            if n_leaves > most or n_each > n_sets or (best and n_switches > best.n_switches):
                continue
            hosts = -(-n_sets // n_each) * n_together
            best = _better(best, _pods(settings, hosts, n_rails, (n_pods, n_leaves)))
    return best


def _leaves_of_pod(n_leaves: int, n_pods: int, n_rails: int, most: int) -> int:
    """Leaves of each of equal pods: of all rails, where a pod has room for them, else of some.

    All pods together have equally many of each rail.
    """
    step = n_rails if n_rails <= most else n_rails // math.gcd(n_rails, n_pods)
    return -(-n_leaves // (n_pods * step)) * step


def _pods(
    settings: SwitchSettings,
    hosts: int,
    n_rails: int,
    pods: tuple[int, int],
    links: tuple[float, float] | None = None,
) -> Shape | None:
    """The fewest switches with so many pods of so many leaves, if the ports suffice.

    ``links`` are those that a leaf and a pod need up; by default as the tapers say.
    """
    (n_pods, n_leaves), given = pods, settings.n_parallel
    of_leaf = links[0] if links else float(_n_uplinks(settings, np.array(hosts)))
    n_up = -(-ceil_ratio(of_leaf, 1) // (given or 1)) * (given or 1)
    n_free = _n_free(settings, hosts)
    best: Shape | None = None
    # Fewer parallel links are more spines, each with fewer links up to cores.
    for most in [given] if given else range(min(n_up, settings.n_link_ports // n_leaves), 0, -1):
        n_spines = -(-n_up // most)
        if best and n_pods * (n_leaves + n_spines) >= best.n_switches:
            break
        parallel = given or -(-n_up // n_spines)
        if n_spines * parallel > n_free or n_leaves * parallel > settings.n_link_ports:
            continue
        shape = Shape(hosts, n_leaves, n_spines, parallel, n_rails=n_rails)
        if n_pods == 1:
            return shape
        down = n_leaves * parallel
        of_spine = links[1] / n_spines if links else down / settings.core_oversubscription
        free = settings.n_link_ports - down
        cores = spread(n_pods, ceil_ratio(of_spine, 1), n_free=free, n_ports=settings.n_link_ports)
        if cores:
            shape = replace(shape, n_pods=n_pods, n_cores=cores[0], core_parallel=cores[1])
            best = min(filter(None, (best, shape)), key=lambda one: one.n_switches)
    return best


def _n_free(settings: SwitchSettings, hosts: int) -> int:
    """Links up for which a leaf of so many hosts has ports."""
    free = settings.switch_radix - -(-hosts // settings.n_hosts_per_port)
    return max(0, free // settings.n_ports_per_uplink)


def _given(settings: SwitchSettings, hosts_per_rail: int, n_rails: int) -> Shape:
    """The shape with the leaves, spines and parallel links that the settings name."""
    radix = settings.switch_radix
    leaves = settings.n_leaves or _leaves_under(settings, hosts_per_rail, n_rails)
    if leaves % n_rails:
        got = f"got {leaves} leaves for {n_rails} rails"
        raise SpecError(Fault(got, "expected a multiple of the rails", "", "leaves"))
    hosts = -(-hosts_per_rail // (leaves // n_rails))
    if leaves == 1:  # Spines would join nothing.
        _check_ports(settings, f"a switch with {hosts:,} endpoints", hosts)
        return Shape(hosts)
    n_up, parallel = int(_n_uplinks(settings, np.array(hosts))), settings.n_parallel
    n_spines = settings.n_spines
    if n_spines is None:
        free, found = radix - hosts, None
        if free > 0:
            found = spread(leaves, n_up, n_free=free, n_ports=radix, n_parallel=parallel)
        n_spines, parallel = found or (-(-n_up // (parallel or 1)), parallel or 1)
    parallel = parallel or -(-n_up // n_spines)
    up = f"{n_spines} spines x {parallel} links"
    _check_ports(settings, f"a leaf with {hosts:,} endpoints and {up}", hosts + n_spines * parallel)
    _check_ports(settings, f"a spine with {leaves} leaves x {parallel} links", leaves * parallel)
    return Shape(hosts, leaves, n_spines, parallel, n_rails=n_rails)


def _leaves_under(settings: SwitchSettings, hosts_per_rail: int, n_rails: int) -> int:
    """Fewest leaves whose ports suffice for the given number of spines."""
    n_spines, radix = settings.n_spines or 1, settings.switch_radix
    hosts = np.arange(1, radix)
    parallel = np.ceil(hosts / settings.oversubscription * (1 - _ROUNDING) / n_spines)
    n_up = n_spines * (settings.n_parallel or parallel)
    most = max(1, int(np.count_nonzero(hosts + n_up <= radix)))
    return n_rails * -(-hosts_per_rail // most)


def _check_ports(settings: SwitchSettings, what: str, n_ports: int) -> None:
    if n_ports > settings.switch_radix:
        got = f"got {what}, {n_ports:,} ports"
        expected = f"expected at most the radix, {settings.switch_radix}"
        raise SpecError(Fault(got, expected, "change leaves, spines or parallel_links"))


@lru_cache(maxsize=256)
def plane_settings(settings: SwitchSettings, nic_Bps: float) -> SwitchSettings:
    """How one plane is built for NICs of a speed.

    ``port_speed_Bps`` is then the speed of a host port, ``n_nics`` the host ports that a NIC has
    in a plane; several host ports may share a port of a switch (breakout), and a link between
    switches may take several.

    Raises
    ------
    SpecError
        For speeds that are no multiples of one another.

    Examples
    --------
    A NIC of 800 Gbit/s on two planes, two of its kind on every port of 800 Gbit/s:

    >>> halves = SwitchSettings(n_planes=2, switch_port_Bps=100e9)
    >>> found = plane_settings(halves, 100e9)
    >>> found.port_speed_Bps, found.n_hosts_per_port, found.n_nics
    (50000000000.0, 2, 1)
    """
    port_Bps = switch_port_Bps(settings, nic_Bps)
    nic_Bps /= settings.n_planes
    up_Bps = port_Bps if settings.uplink_Bps is None else settings.uplink_Bps
    return replace(
        settings,
        port_speed_Bps=min(nic_Bps, port_Bps),
        n_nics=max(1, _whole(nic_Bps, port_Bps, "nic", "port") if nic_Bps > port_Bps else 1),
        n_hosts_per_port=_whole(port_Bps, nic_Bps, "port", "NIC") if nic_Bps < port_Bps else 1,
        n_ports_per_uplink=_whole(up_Bps, port_Bps, "port_up", "port"),
    )


def switch_port_Bps(settings: SwitchSettings, nic_Bps: float) -> float:
    """Speed of a switch's ports: by default that of a NIC in one plane.

    >>> switch_port_Bps(SwitchSettings(n_planes=2), 100e9)
    50000000000.0
    """
    own_Bps = settings.switch_port_Bps
    return nic_Bps / settings.n_planes if own_Bps is None else own_Bps


def _whole(speed_Bps: float, unit_Bps: float, name: str, unit_name: str) -> int:
    """How many of a unit make a speed."""
    n = round(speed_Bps / unit_Bps)
    if n < 1 or abs(n * unit_Bps - speed_Bps) > _ROUNDING * speed_Bps:
        got = f"got {format_line_rate(speed_Bps)}"
        expected = f"expected a multiple of the {unit_name}'s {format_line_rate(unit_Bps)}"
        raise SpecError(Fault(got, expected, path=name))
    return n


@dataclass(frozen=True)
class TierOrder:
    """What a network has to join where its tiers are given (C13).

    Parameters
    ----------
    sizes : positions of a leaf, leaves of one rail in a pod, and pods: as many as tiers.
    ports_per_position : host ports of a position on a leaf, such as of one NPU.
    links : that a leaf, and a pod with all its rails, need up at least; not rounded.
    n_rails : sets of leaves that every spine joins where its ports suffice.
    n_free : positions of a leaf that stay free, beside those of ``sizes``.
    n_joined : NICs of an NPU that one of their speed together could replace.
    n_at_place : NPUs of a position.
    """

    sizes: tuple[int, ...]
    ports_per_position: int
    links: tuple[float, ...]
    n_rails: int = 1
    n_free: int = 0
    n_joined: int = 1
    n_at_place: int = 1

    @property
    def faster_ports(self) -> TierOrder:
        """The same with one NIC in place of those that it could replace."""
        n = self.n_joined
        links = tuple(one / n for one in self.links)
        return replace(self, ports_per_position=self.ports_per_position // n, links=links)

    def in_rails(self, *, are_joined: bool) -> TierOrder:
        """The same with leaves of one rail each, whose rails share spines or have their own."""
        n, n_rails = self.n_at_place, self.n_at_place * self.n_rails
        found = self._with_links(1 / n, 1 if are_joined else 1 / n_rails)
        n_ports = self.ports_per_position // n
        n_joined = n_rails if are_joined else 1
        return replace(found, ports_per_position=n_ports, n_rails=n_joined, n_at_place=1)

    def with_leaves_of(self, n_positions: int) -> TierOrder:
        """The same with other leaves of as many positions in all."""
        n, n_leaves, *outer = self.sizes
        sizes = (n_positions, n * n_leaves // n_positions, *outer)
        return replace(self._with_links(n_positions / n, 1), sizes=sizes)

    def _with_links(self, of_leaf: float, of_pod: float) -> TierOrder:
        """The same with so many times the links."""
        links = tuple(x * n for x, n in zip(self.links, (of_leaf, of_pod), strict=False))
        return replace(self, links=links)

    @property
    def hosts_per_leaf(self) -> int:
        """Host ports of a leaf."""
        return (self.sizes[0] + self.n_free) * self.ports_per_position


def stack_shape(settings: SwitchSettings, order: TierOrder) -> Shape:
    """The fewest switches of one network whose leaves, pods and links up are given.

    Every leaf has as many links to each of its spines, every spine to each of its cores, so more
    may be built than is needed. Under cores the spines of a pod serve one rail each where their
    ports do not suffice for all of them; rails then meet at the cores.

    Parameters
    ----------
    settings : as :func:`plane_settings` has them.
    order : one to three tiers; leaves of a single one are joined by nothing.

    Raises
    ------
    SpecError
        For leaves or spines with more ports than the radix, with what fits.

    Examples
    --------
    32 NPUs at 2:1 on every leaf, 8 leaves of each of 8 rails.

    >>> found = stack_shape(SwitchSettings(), TierOrder((32, 8), 1, (16.0,), n_rails=8))
    >>> found.n_leaves, found.n_spines, found.n_parallel
    (64, 16, 1)
    """
    if _n_ports_of_leaf(settings, order, order.sizes[0]) > settings.switch_radix:
        raise SpecError(_leaf_fault(settings, order))
    shape = _shape_of(settings, order)
    if shape is None:
        raise SpecError(_spine_fault(settings, order))
    return shape


def _shape_of(settings: SwitchSettings, order: TierOrder) -> Shape | None:
    """The fewest switches, if their ports suffice above the leaves."""
    if not order.links:
        return Shape(order.hosts_per_leaf)
    _, n_leaves, n_pods = (*order.sizes, 1)[:3]
    hosts, n_rails, (of_leaf, of_pod) = order.hosts_per_leaf, order.n_rails, (*order.links, 0.0)[:2]
    shape = _pods(settings, hosts, n_rails, (n_pods, n_leaves * n_rails), (of_leaf, of_pod))
    if shape is None and n_pods > 1:
        pods, links = (n_pods * n_rails, n_leaves), (of_leaf, of_pod / n_rails)
        shape = _pods(settings, hosts, n_rails, pods, links)
    return shape


def _n_ports_of_leaf(settings: SwitchSettings, order: TierOrder, n_positions: int) -> int:
    """Ports of a leaf that so many positions, and their share of the links up, take."""
    n_hosts = (n_positions + order.n_free) * order.ports_per_position
    of_leaf = order.links[0] * n_positions / order.sizes[0] if order.links else 0.0
    n_up = ceil_ratio(of_leaf, 1) if of_leaf else 0
    bundle = settings.n_parallel or 1
    n_ports = -(-n_up // bundle) * bundle * settings.n_ports_per_uplink
    return n_ports - (-n_hosts // settings.n_hosts_per_port)


def _leaf_fault(settings: SwitchSettings, order: TierOrder) -> Fault:
    """Too many ports for a leaf, and the sizes that fit."""
    n, radix = order.sizes[0], settings.switch_radix
    n_hosts, n_up = order.hosts_per_leaf, ceil_ratio(order.links[0], 1) if order.links else 0
    got = (
        f"got a leaf of {n:,} positions with {n_hosts:,} links to NPUs and {n_up:,} up, "
        f"{_n_ports_of_leaf(settings, order, n):,} ports"
    )
    fits = [k for k in range(1, n) if _n_ports_of_leaf(settings, order, k) <= radix]
    room = f"{max(fits):,} positions fit" if fits else "one position is too many"
    ways = list(_ways_of_a_leaf(settings, order, fits)) or ["lower the bandwidths of the stack"]
    fix = joined(ways, "or")
    return Fault(got, f"expected at most the radix, {radix}: {room}", fix)


def _ways_of_a_leaf(
    settings: SwitchSettings, order: TierOrder, fits: Sequence[int]
) -> Iterator[str]:
    """What could be changed for leaves with fewer ports: each makes a network by itself."""
    n_joined, radix = order.n_joined, settings.switch_radix
    speed_Bps = (settings.port_speed_Bps or 0.0) * (settings.n_nics or 1) * settings.n_planes
    if n_joined > 1 and _is_built(settings, order.faster_ports):
        yield f"write fabric.realization.port_speed: {format_line_rate(n_joined * speed_Bps)}"
    pairs, apart = math.prod(order.sizes[:2]), order.in_rails(are_joined=False)
    sizes = [k for k in sorted(fits, reverse=True) if pairs % k == 0 and len(order.sizes) > 1]
    for one, more in ((order, ""), (apart, " with wiring: rail_only")):
        best = next((k for k in sizes if _is_built(settings, one.with_leaves_of(k))), None)
        if best is not None:
            yield f"write SW({best})_SW({pairs // best}) there{more}"
            break
    yield from _larger_radix(settings, order)
    n_up = radix - -(-order.hosts_per_leaf // settings.n_hosts_per_port)
    fewer = (float(max(n_up, 0)), *order.links[1:])
    if n_up > 0 and order.links and _is_built(settings, replace(order, links=fewer)):
        yield "raise the taper"
    if settings.wiring == TOP_OF_RACK and _is_built(settings, order.in_rails(are_joined=True)):
        yield "give each rail its own leaves: wiring: rail_optimized"


def _larger_radix(settings: SwitchSettings, order: TierOrder) -> Iterator[str]:
    """The radix that suffices, of those that double, if one does."""
    for n_times in _LARGER:
        radix = n_times * settings.switch_radix
        if radix <= MAX_RADIX and _is_built(replace(settings, switch_radix=radix), order):
            yield f"raise switch_radix to {radix}"
            return


def _is_built(settings: SwitchSettings, order: TierOrder) -> bool:
    """Whether switches of this radix make the network."""
    fits = _n_ports_of_leaf(settings, order, order.sizes[0]) <= settings.switch_radix
    return fits and _shape_of(settings, order) is not None


def _spine_fault(settings: SwitchSettings, order: TierOrder) -> Fault:
    """Too many leaves, or pods, for the ports of a switch above them."""
    n_leaves, n_rails = order.sizes[1], order.n_rails
    is_deep = len(order.sizes) > 2
    rails = f" of {n_rails} rails" * (n_rails > 1)
    pods = f" in each of {order.sizes[2]:,} pods" if is_deep else ""
    got = f"got {n_leaves * n_rails:,} leaves{rails}{pods}"
    joins = f"each with links to {settings.n_link_ports} leaves" + " and to cores" * is_deep
    expected = f"expected leaves that spines can join, {joins}"
    fixes = ["make this tier smaller and the next larger" if is_deep else "add a tier beyond it"]
    if n_rails > 1 and _is_built(settings, order.in_rails(are_joined=False)):
        fixes.append("give each rail a network of its own: wiring: rail_only")
    fixes += _larger_radix(settings, order)
    return Fault(got, expected, ", or ".join(fixes), "switch_radix")
