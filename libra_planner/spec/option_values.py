"""Speeds, port counts and prices of a purchasable link, as a plan writes them."""

from __future__ import annotations

import math
import re
from typing import Any

from libra_planner.errors import Fault, SpecError, UnitError, closest
from libra_planner.reading.document import shown
from libra_planner.units import UNITS, unit_kind

MAX_PORTS = 10_000
"""Most ports per NPU; beyond it a number is a slip of the keyboard."""

_SPEEDS = (1e3, 1e18)
_MAX_USD = 1e12
_QUANTITY = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*)", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,9})\s*\.\.\s*([0-9]{1,9})", re.ASCII)


def speed_bytes_per_s(value: Any) -> float:
    """A speed such as ``400 Gbit/s``.

    Raises
    ------
    SpecError
        For anything else: no unit, one that is no bandwidth, zero, negative, no number.

    Examples
    --------
    >>> speed_bytes_per_s("400 Gbit/s")
    50000000000.0
    """
    expected = "expected a speed with its unit"
    if _is_number(value) and math.isfinite(value):
        fix = f"write {value:g} GB/s or {value:g} Gbit/s"
        raise UnitError(Fault(f"got {value:g} without a unit", expected, fix))
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise SpecError(Fault(f"got {shown(value)}", expected, "write e.g. 400 Gbit/s"))
    number, unit = float(match[1]), match[2]
    if not unit:
        fix = f"write {number:g} GB/s or {number:g} Gbit/s"
        raise UnitError(Fault(f"got {value!r} without a unit", expected, fix))
    speed = number * _factor(unit)
    if not _SPEEDS[0] <= speed <= _SPEEDS[1]:
        sizes = f"from {_SPEEDS[0]:g} to {_SPEEDS[1]:g} bytes/s"
        raise SpecError(Fault(f"got {value!r}", f"expected a speed {sizes}"))
    return speed


def _factor(unit: str) -> float:
    try:
        kind, factor = unit_kind(unit)
    except UnitError as error:
        bits = unit == "Gb/s"  # Bits or bytes? That hint beats a similar unit's name.
        fix = error.faults[0].fix if bits else closest(unit, UNITS["bandwidth"])
        raise UnitError(Fault(f"got the unit {unit!r}", "expected GB/s or Gbit/s", fix)) from None
    if kind != "bandwidth":
        raise UnitError(Fault(f"got a {kind} in {unit}", "expected GB/s or Gbit/s"))
    return factor


def port_counts(value: Any) -> list[int]:
    """Port counts from a number, a list or a range.

    Raises
    ------
    SpecError
        For counts below 1, far too many, or a range that runs backwards.

    Examples
    --------
    >>> port_counts(2), port_counts([1, 2, 4]), port_counts("1..4")
    ([2], [1, 2, 4], [1, 2, 3, 4])
    """
    match = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        first, last = _port_count(int(match[1])), _port_count(int(match[2]))
        if first > last:
            fix = f"write {last}..{first}"
            raise SpecError(Fault(f"got {value!r}", "expected a range that goes up", fix))
        return list(range(first, last + 1))
    if isinstance(value, list):
        if not value:
            raise SpecError(Fault("got an empty list", "expected port counts", "write e.g. 1..4"))
        return [_port_count(one) for one in value]
    return [_port_count(value)]


def _port_count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_PORTS:
        expected = f"expected whole numbers of ports from 1 to {MAX_PORTS:,}"
        raise SpecError(Fault(f"got {shown(value)}", expected, "write e.g. 2, 1..4 or [1, 2, 4]"))
    return value


def usd_per_npu(value: Any, n_ports: list[int]) -> list[float]:
    """Volume prices, one for each port count.

    Raises
    ------
    SpecError
        For another number of prices, or one that is negative or no number.
    """
    prices = value if isinstance(value, list) else [value]
    if len(prices) != len(n_ports):
        expected = f"expected {len(n_ports)}, one for each port count"
        fix = f"write usd_per_npu: [..] for ports {', '.join(map(str, n_ports[:9]))}"
        raise SpecError(Fault(f"got {len(prices)} prices", expected, fix))
    for price in prices:
        if not _is_number(price) or not 0 <= price <= _MAX_USD:
            raise SpecError(Fault(f"got {shown(price)}", f"expected USD from 0 to {_MAX_USD:g}"))
    return [float(price) for price in prices]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
