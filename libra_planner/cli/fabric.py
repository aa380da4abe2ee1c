"""``libra-planner fabric``: the switches, cables and price of a cluster's network."""

from __future__ import annotations

import argparse
from dataclasses import replace

from libra_planner.cli.streams import answer
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.fabric.cluster import ClusterNetwork, ClusterOrder, cluster_network
from libra_planner.inputs.parts import load_parts
from libra_planner.plan.options import speed_bytes_per_s
from libra_planner.plan.quotes import cluster_quotes
from libra_planner.procurement.cluster import cluster_bill
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.quotes import unused_quotes
from libra_planner.views.cluster import cluster_blocks, cluster_payload

_FLAGS = {
    "tapers": ("--taper", ""),
    "nic": ("--nic", ""),
    "port": ("--port", ""),
    "port_up": ("--port-up", ""),
    "switch_radix": (
        "libra-planner fabric",
        "raise --radix or --taper, or make several networks with --wiring rail_only or --planes",
    ),
}
"""Where what a fault is about was said, and what to do where the network knows no better."""


def fabric(options: argparse.Namespace) -> None:
    """``libra-planner fabric``."""
    try:
        _fabric(options)
    except SpecError as error:
        raise SpecError(*map(_at_its_flag, error.faults)) from None


def _at_its_flag(fault: Fault) -> Fault:
    if fault.path not in _FLAGS:
        return fault
    flag, fix = _FLAGS[fault.path]
    return replace(fault, path="", place=Place(flag), fix=fix or fault.fix)


def _fabric(options: argparse.Namespace) -> None:
    order = ClusterOrder(
        n_hosts=options.hosts,
        n_nics_per_host=options.nics_per_host or options.npus_per_host,
        nic_Bps=_speed(options.nic, "--nic") or 0.0,
        switch_radix=options.radix,
        port_Bps=_speed(options.port, "--port"),
        uplink_Bps=_speed(options.port_up, "--port-up"),
        tapers=_tapers(options.taper),
        wiring=options.wiring,
        n_planes=options.planes,
        n_reserved_hosts=options.reserve,
        n_management_links=options.management_links,
        most_hosts_per_leaf=options.host_ports_per_leaf,
    )
    network = cluster_network(order)
    catalogue = load_parts(options.parts)
    quotes = cluster_quotes(options.prices, options.as_of, options.parts)
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(()), quotes)
    n_per_fibre = options.transceivers_per_fibre
    bill = cluster_bill(network, shop, n_per_fibre)
    found = network, bill, n_per_fibre, _grown(order)
    unused = unused_quotes(bill, quotes)
    answer(options, lambda: cluster_payload(*found, unused), cluster_blocks(*found, unused))


def _speed(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        return speed_bytes_per_s(text)
    except SpecError as error:
        raise SpecError(*(replace(fault, place=Place(flag)) for fault in error.faults)) from None


def _tapers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        fix = "write 1 for 1:1, or 1,7 for 7:1 beyond the leaves"
        raise SpecError.at("--taper", f"got {text!r}", "expected numbers", fix) from None


def _grown(order: ClusterOrder) -> ClusterNetwork | SpecError:
    """The network of one more host, or why there is none."""
    try:
        return cluster_network(replace(order, n_hosts=order.n_hosts + 1))
    except SpecError as error:
        return error
