"""Networks that are sized without a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from libra_planner import allowed
from libra_planner.allowed import Each, Kind, Number, OneOf, Text, Whole
from libra_planner.api.given import refuse_unknown, takes
from libra_planner.api.shown import Shown
from libra_planner.costs.quotes import Quote
from libra_planner.errors import Fault, Place, SpecError, closest, shown
from libra_planner.fabric.cluster import (
    RAIL_ONLY,
    WIRING_NAMES,
    WIRINGS,
    ClusterNetwork,
    ClusterOrder,
    cluster_network,
    grouped_network,
)
from libra_planner.fabric.topology import RAIL, RAIL_OPTIMIZED, TOP_OF_RACK
from libra_planner.inputs.parts import BUNDLED_PARTS, load_parts
from libra_planner.plan.options import nic_bytes_per_s, port_bytes_per_s
from libra_planner.plan.quotes import cluster_quotes
from libra_planner.procurement.bill import MEDIA, NIC, SWITCH, Bill
from libra_planner.procurement.cluster import PART, cluster_bill, other_switches
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.views.cells import Block
from libra_planner.views.cluster import cluster_blocks, cluster_payload, known_cost_words

PART_KINDS = (NIC, SWITCH, *MEDIA)
"""Kinds of which parts can be named."""
_SPEED = Text("a speed such as 400Gbps")
OF_NETWORKS: dict[str, Kind] = {
    "hosts": Whole(*allowed.HOSTS),
    "npus": Whole(*allowed.NPUS),
    "nic": _SPEED,
    "port": _SPEED,
    "port_up": _SPEED,
    "npus_per_host": Whole(*allowed.NPUS_PER_HOST),
    "nics_per_host": Whole(*allowed.NICS_PER_HOST),
    "radix": Whole(*allowed.RADIX),
    "taper": Each(Number(*allowed.TAPER)),
    "wiring": OneOf(WIRING_NAMES),
    "planes": Whole(*allowed.PLANES),
    "reserve": Whole(*allowed.RESERVE),
    "management_links": Whole(*allowed.MANAGEMENT_LINKS),
    "host_ports_per_leaf": Whole(*allowed.HOST_PORTS_PER_LEAF),
    "transceivers_per_fibre": Whole(*allowed.TRANSCEIVERS_PER_FIBRE),
    "part": Each(Text("a text such as 'switch=switch-64x400g'")),
}
"""What arguments of networks take."""


@dataclass(frozen=True, repr=False)
class Network(Shown):
    """The switches and cables of a cluster, and what they cost.

    Parameters
    ----------
    network : as it is built.
    bill : of its parts.
    n_per_fibre : transceivers of a cable.
    grown : the network of one more host, or why there is none.
    quotes : a user's.
    rails_usd : cost with ``--wiring rail_only``; ``None`` where that is another question.
    groups : the network of equal groups of hosts on leaves and in pods, as in a plan, its cost;
        ``None`` where it is the same, or there is none.
    racks : the network whose leaves serve all NICs of their hosts, and its cost, of one whose rails
        have leaves of their own.
    nic : speed of a NIC as it was asked.
    switches : the network of the cheapest other switches of the catalogue, and its bill; ``None``
        where none costs less, or a switch was named.
    """

    network: ClusterNetwork
    bill: Bill
    n_per_fibre: int
    grown: ClusterNetwork | SpecError
    quotes: tuple[Quote, ...] = ()
    rails_usd: float | None = None
    groups: tuple[ClusterNetwork, float] | None = None
    racks: tuple[ClusterNetwork, float] | None = None
    nic: str = ""
    switches: tuple[ClusterNetwork, Bill] | None = None

    @property
    def cost_usd(self) -> float:
        """With spares, at the prices of the catalogue and the quotes."""
        return float(self.bill.total_usd)

    def headline(self) -> str:
        """It in one line."""
        found, cables = self.network.clos.n_switches, sum(self.network.cables.values())
        n = f"{sum(found.values()):,} switches, {cables:,} cables"
        hosts = self.network.order.n_hosts
        return f"{hosts:,} hosts, {n}; {known_cost_words(self.bill)}"

    def blocks(self) -> Iterator[Block]:
        """What ``fabric`` prints."""
        found = self.network, self.bill, self.n_per_fibre, self.grown, self.quotes
        others = self.rails_usd, self.groups, self.racks
        yield from cluster_blocks(*found, *others, self.nic, self.switches)

    def to_dict(self) -> dict[str, Any]:
        """What ``fabric --json`` prints."""
        found = self.network, self.bill, self.n_per_fibre, self.grown, self.quotes
        return cluster_payload(*found)


def sized_network(
    *,
    nic: str,
    hosts: int | None = None,
    npus: int | None = None,
    npus_per_host: int = 8,
    nics_per_host: int | None = None,
    radix: int = 64,
    port: str | None = None,
    port_up: str | None = None,
    taper: Sequence[float] = (1.0,),
    wiring: str = WIRINGS[0],
    planes: int = 1,
    reserve: int = 0,
    management_links: int = 0,
    host_ports_per_leaf: int | None = None,
    transceivers_per_fibre: int = 2,
    part: Sequence[str] = (),
    parts: str = BUNDLED_PARTS,
    prices: str | None = None,
    as_of: str | None = None,
) -> Network:
    """What ``fabric`` answers; :func:`network` says the rest."""
    order = ClusterOrder(
        n_hosts=_n_hosts(hosts, npus, npus_per_host),
        n_nics_per_host=nics_per_host or npus_per_host,
        nic_Bps=_speed(nic, "--nic", nic_bytes_per_s) or 0.0,
        switch_radix=radix,
        port_Bps=_speed(port, "--port"),
        uplink_Bps=_speed(port_up, "--port-up"),
        tapers=tuple(taper),
        wiring=RAIL_ONLY if wiring == RAIL else wiring,
        n_planes=planes,
        n_reserved_hosts=reserve,
        n_management_links=management_links,
        most_hosts_per_leaf=host_ports_per_leaf,
    )
    found = _sized(order)
    catalogue, quotes = load_parts(parts), cluster_quotes(prices, as_of, parts)
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(()), quotes)
    named = _named(part)
    bill = cluster_bill(found, shop, transceivers_per_fibre, named)
    billed = partial(_billed, shop=shop, n_per_fibre=transceivers_per_fibre, named=named)
    priced = partial(_priced, billed)
    rails, groups = priced(_on_rails(order)), priced(grouped_network(found) or _in_groups(found))
    rails_usd, racks = rails[1] if rails else None, priced(_on_racks(order))
    orders = () if SWITCH in named or bill.missing else other_switches(order, catalogue.parts)
    cheaper = (x for x in map(billed, orders) if x and x[1].total_usd < bill.total_usd)
    switches = min(cheaper, key=lambda one: one[1].total_usd, default=None)
    more = order.grown(1), quotes, rails_usd, groups, racks, nic, switches
    return Network(found, bill, transceivers_per_fibre, *more)


def _sized(order: ClusterOrder) -> ClusterNetwork:
    """The network of an order, or what of it has to change: nothing is proposed untried."""
    try:
        return cluster_network(order)
    except SpecError as error:
        faults = (x if x.path != "switch_radix" else _repaired(x, order) for x in error.faults)
        raise SpecError(*faults) from None


def _repaired(fault: Fault, order: ClusterOrder) -> Fault:
    """A fault of a network that is too small, with options that are each enough."""
    words = [found for several in _options(order) if (found := _first_that_joins(several))]
    most = f"{allowed.RADIX[1]:,}"
    fix = f"no --radix up to {most} joins them: size a smaller cluster"
    if words:
        *others, last = words
        fix = f"write {', '.join(others)} or {last}: each is enough" if others else f"write {last}"
    return replace(fault, fix=fix)


def _first_that_joins(several: Iterable[tuple[str, ClusterOrder]]) -> str | None:
    """The first option with which all hosts are joined."""
    for words, order in several:
        with suppress(SpecError):
            cluster_network(order)
            return words
    return None


def _options(order: ClusterOrder) -> Iterator[Iterable[tuple[str, ClusterOrder]]]:
    """Other orders of the same hosts by their options, of each option the least change first."""
    limit, first, radix = order.most_hosts_per_leaf, order.tapers[0], order.switch_radix
    if limit is not None:
        of_host = order.n_links_per_host // order.n_planes
        limits = (n for n in (*_doubled(limit, radix), of_host) if n > limit)
        tried = ((n, replace(order, most_hosts_per_leaf=n)) for n in sorted(limits))
        yield ((f"--host-ports-per-leaf {n} or more", one) for n, one in tried)
    more = ((n, replace(order, switch_radix=int(n))) for n in _doubled(radix, allowed.RADIX[1]))
    yield ((f"--radix {n}", one) for n, one in more)
    tapers = ((x, *order.tapers[1:]) for x in _doubled(first, _MOST_PROPOSED_TAPER))
    yield ((f"--taper {','.join(f'{x:g}' for x in y)}", replace(order, tapers=y)) for y in tapers)
    for wiring in (RAIL_OPTIMIZED, RAIL_ONLY):
        if order.n_nics_per_host > 1 and order.wiring not in (wiring, RAIL_ONLY):
            yield ((f"--wiring {wiring}", replace(order, wiring=wiring)),)


def _doubled(first: float, most: float) -> Iterator[Any]:
    """Twice a number, four times, and so on.

    >>> list(_doubled(64, 512))
    [128, 256, 512]
    """
    while (first := 2 * first) <= most:
        yield first


_MOST_PROPOSED_TAPER = 8
"""A taper beyond it is another network: nobody builds it to join more hosts."""


def _n_hosts(hosts: int | None, npus: int | None, npus_per_host: int) -> int:
    """Servers, as they are given, or of so many NPUs.

    >>> _n_hosts(None, 4096, 8)
    512
    """
    if npus is None and hosts is not None:
        return hosts
    if npus is None or hosts is not None:
        got = "got neither --hosts nor --npus" if npus is None else "got both --hosts and --npus"
        raise SpecError.at("--hosts", got, "expected one of them", "write --hosts 512, for example")
    n_hosts, rest = divmod(npus, npus_per_host)
    if rest:
        full = f"--npus {(n_hosts + 1) * npus_per_host}"
        got = f"got {npus:,} NPUs on hosts of {npus_per_host}"
        fix = f"write {full}, or what a host has as --npus-per-host"
        raise SpecError.at("--npus", got, "expected full hosts", fix)
    return n_hosts


def _named(words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Names of parts by kind.

    >>> _named(["optic=optic-400g-sr4", "optic=optic-400g-fr4"])
    {'optic': ['optic-400g-sr4', 'optic-400g-fr4']}
    """
    found: dict[str, list[str]] = {}
    for text in words:
        kind, _, name = text.partition("=")
        if kind not in PART_KINDS or not name:
            expected = f"expected KIND=NAME of one of {', '.join(PART_KINDS)}"
            fix = closest(kind, PART_KINDS) if name else "write e.g. switch=switch-64x400g"
            raise SpecError.at(PART, f"got {shown(text)}", expected, fix)
        found.setdefault(kind, []).append(name)
    return found


def _on_rails(order: ClusterOrder) -> ClusterOrder | None:
    """The same hosts on separate rails, where rails share spines and can be parted."""
    if order.wiring != RAIL_OPTIMIZED or order.n_nics_per_host < 2:
        return None
    return replace(order, wiring=RAIL_ONLY)


def _on_racks(order: ClusterOrder) -> ClusterOrder | None:
    """The same hosts on leaves that serve all of their NICs, where rails have their own."""
    return replace(order, wiring=TOP_OF_RACK) if order.wiring == RAIL_OPTIMIZED else None


def _in_groups(network: ClusterNetwork) -> ClusterOrder | None:
    """The same hosts in the equal groups that ``init`` puts on leaves, where these have others."""
    from libra_planner.inputs.training.clusters import nodes_per_leaf

    order, n_leaves = network.order, network.shape.leaves_per_rail
    is_plain = order.wiring != TOP_OF_RACK and network.shape.n_pods == 1
    if not is_plain or order.most_hosts_per_leaf is not None or order.n_hosts % n_leaves == 0:
        return None
    size = nodes_per_leaf(order.n_hosts)
    # Far smaller groups come from a number without divisors: init writes more nodes then.
    is_near = 2 * size >= order.n_hosts // n_leaves
    return replace(order, most_hosts_per_leaf=size) if is_near else None


_Billed: TypeAlias = tuple[ClusterNetwork, Bill] | None


def _priced(
    billed: Callable[[ClusterOrder | ClusterNetwork | None], _Billed],
    asked: ClusterOrder | ClusterNetwork | None,
) -> tuple[ClusterNetwork, float] | None:
    """Another network and its cost, if it can be built and has a price."""
    found = billed(asked)
    return found and (found[0], float(found[1].total_usd))


def _billed(
    asked: ClusterOrder | ClusterNetwork | None,
    shop: FabricShop,
    n_per_fibre: int,
    named: Mapping[str, Sequence[str]],
) -> _Billed:
    """Another network and its bill, if it can be built and has a price."""
    if asked is None:
        return None
    try:
        network = cluster_network(asked) if isinstance(asked, ClusterOrder) else asked
        bill = cluster_bill(network, shop, n_per_fibre, named)
    except SpecError:
        return None
    return None if bill.missing else (network, bill)


def _speed(
    text: str | None, flag: str, read: Callable[[str], float] = port_bytes_per_s
) -> float | None:
    if text is None:
        return None
    try:
        return read(text)
    except SpecError as error:
        raise SpecError(*(replace(fault, place=Place(flag)) for fault in error.faults)) from None


@takes(OF_NETWORKS, sized_network)
def network(
    *, nic: str, hosts: int | None = None, taper: float | Sequence[float] = 1.0, **asked: Any
) -> Network:
    """Size the network of a cluster: switches, cables, transceivers, power and price.

    Parameters
    ----------
    nic : speed of one NIC over all planes, such as ``400Gbps``.
    hosts : servers to join; or ``npus``, all of whose hosts are full.
    taper : links down over links up of a leaf; a second number is that of a spine.
    asked : ``npus``, ``npus_per_host``, ``nics_per_host``, ``radix``, ``port``, ``port_up``,
        ``wiring``, ``planes``, ``reserve``, ``management_links``, ``host_ports_per_leaf``,
        ``transceivers_per_fibre``, ``part`` (a list of ``KIND=NAME``), ``parts``, ``prices``,
        ``as_of``, as ``fabric`` has them.

    Raises
    ------
    SpecError
        For what cannot be built, with the sizes that can.

    Examples
    --------
    >>> network(hosts=256, nic="400Gbps", taper=2)
    <Network: 256 hosts, 75 switches, 3,112 cables; $13.10M>
    """
    refuse_unknown("network", asked, tuple(inspect.signature(sized_network).parameters))
    asked |= {"part": (part,)} if isinstance(part := asked.get("part"), str) else {}
    tapers = tuple(taper) if isinstance(taper, Iterable) else (taper,)
    return sized_network(hosts=hosts, nic=nic, taper=tuple(map(float, tapers)), **asked)
