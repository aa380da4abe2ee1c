"""The bill of a cluster's network that is sized without a plan: NICs, switches, cables, optics."""

from __future__ import annotations

from collections.abc import Iterator

from libra_planner.fabric.cluster import ClusterNetwork
from libra_planner.fabric.parts import HOST_LEAF, CableParts, switch_parts
from libra_planner.procurement.bill import FIBRE, NETWORK, NIC, SWITCH, Bill, Line
from libra_planner.procurement.lines import FabricShop
from libra_planner.procurement.quotes import quoted_bill


def cluster_bill(network: ClusterNetwork, shop: FabricShop, n_per_fibre: int = 2) -> Bill:
    """NICs, switches by tier, cables and optics by layer.

    Parameters
    ----------
    network : what is built.
    shop : where it is bought.
    n_per_fibre : as :meth:`~libra_planner.fabric.cluster.ClusterNetwork.transceivers` has it.
    """
    lines = (line for line in _lines(network, shop, n_per_fibre) if line.n_units)
    return quoted_bill(Bill(tuple(lines)), shop.quotes, shop.assumptions.tax_fraction)


def _lines(network: ClusterNetwork, shop: FabricShop, n_per_fibre: int) -> Iterator[Line]:
    order, clos, radix = network.order, network.clos, network.order.switch_radix
    nic = shop.parts.port(NIC, order.nic_Bps)
    yield Line(NETWORK, "host", nic, order.n_hosts * order.n_nics_per_host)
    switch = shop.parts.port(SWITCH, order.speed_Bps, n_ports=radix)
    for tier in switch_parts(clos, order.settings, network.links[HOST_LEAF]):
        yield Line(NETWORK, tier.tier, switch, tier.n_switches)
    speeds = (clos.host_Bps, clos.uplink_Bps, clos.core_Bps)
    n_managers = order.n_management_links
    cables = network.cables | {HOST_LEAF: network.cables[HOST_LEAF] - n_managers}
    links = network.links | {HOST_LEAF: network.links[HOST_LEAF] - n_managers}
    if n_per_fibre == 2:
        for (joins, n_cables), speed_Bps in zip(cables.items(), speeds, strict=True):
            whole_Bps = speed_Bps * max(1, links[joins] // max(1, n_cables))
            yield from shop.cable_lines(joins, CableParts(joins, n_cables, whole_Bps, 2 * n_cables))
        own = CableParts(HOST_LEAF, n_managers, clos.host_Bps, 2 * n_managers)
        yield from shop.cable_lines("managers", own)
        return
    longest_m = max(shop.assumptions.cable_lengths_m[joins] for joins in network.cables)
    twin = shop.parts.medium(2 * max(speeds), longest_m)
    for place, n in network.transceivers(1).items():
        yield Line(NETWORK, place, twin, n, "modules of two links")
    for joins, n_cables in network.cables.items():
        yield Line(NETWORK, joins, shop.parts.named(twin.cable, FIBRE), n_cables)
