"""``libra-planner fabric``: the switches, cables and price of a cluster's network."""

from __future__ import annotations

import argparse
from dataclasses import replace

from libra_planner.api.clusters.networks import sized_network
from libra_planner.cli.streams import answer
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.quantities import taper_digits

_ASKED = (
    *("hosts", "npus", "npus_per_host", "nics_per_host", "nic", "radix", "port", "port_up"),
    *("wiring", "planes", "reserve", "management_links", "host_ports_per_leaf"),
    *("transceivers_per_fibre", "part", "parts", "prices", "as_of"),
)
"""Options that are the arguments of the same names."""
_FLAGS = {
    "tapers": ("--taper", ""),
    "nic": ("--nic", ""),
    "port": ("--port", ""),
    "port_up": ("--port-up", ""),
    "switch_radix": ("libra-planner fabric", ""),
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
    asked = {name: getattr(options, name) for name in _ASKED}
    found = sized_network(**asked, taper=_tapers(options.taper))
    answer(options, found.to_dict, found.blocks())


def _tapers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(taper_digits(one)) for one in text.split(","))
    except ValueError:
        fix = "write 2 or 2:1, or 1:1,7:1 for 7:1 beyond the leaves"
        raise SpecError.at("--taper", f"got {text!r}", "expected numbers", fix) from None
