"""Purchasable links: the discrete speeds of a dimension and what each costs.

A dimension with options is bought as whole ports: its bandwidth B_d per NPU (C2) is one of
``n_ports x speed``, and its cost is the option's own, which need not be linear in B_d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from libra_planner.units import gigabytes_per_s

SAME_SPEED = 1e-9
"""Relative difference up to which a bandwidth is an option's (C9)."""


@dataclass(frozen=True)
class LinkOption:
    """One purchasable way to build a dimension.

    Parameters
    ----------
    speed_bytes_per_s : of one port, one direction.
    n_ports : ports per NPU.
    cost_usd : of the whole fabric, all NPUs.
    name : what the supplier calls it.
    line : where the plan lists it.

    Examples
    --------
    >>> option = LinkOption(50e9, 4, 1.2e6, "NIC-400")
    >>> option.bandwidth_bytes_per_s, str(option)
    (200000000000.0, '4 x 50 GB/s NIC-400')
    """

    speed_bytes_per_s: float
    n_ports: int
    cost_usd: float
    name: str = ""
    line: int | None = None

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bandwidth B_d per NPU: ports times speed."""
        return self.n_ports * self.speed_bytes_per_s

    def __str__(self) -> str:
        ports = f"{self.n_ports} x {gigabytes_per_s(self.speed_bytes_per_s):.6g} GB/s"
        return f"{ports} {self.name}".strip()


Options: TypeAlias = tuple[LinkOption, ...]


def distinct_options(options: Sequence[LinkOption]) -> Options:
    """One option per bandwidth, slowest first: the cheapest, then the one of fewest ports.

    >>> one, two = LinkOption(1e9, 2, 30.0), LinkOption(2e9, 1, 20.0)
    >>> distinct_options([one, two, LinkOption(1e9, 1, 15.0)])[1] == two
    True
    """
    kept: list[LinkOption] = []
    for option in sorted(options, key=lambda o: (o.bandwidth_bytes_per_s, o.cost_usd, o.n_ports)):
        if not kept or not _same(kept[-1].bandwidth_bytes_per_s, option.bandwidth_bytes_per_s):
            kept.append(option)
        elif (option.cost_usd, option.n_ports) < (kept[-1].cost_usd, kept[-1].n_ports):
            kept[-1] = option
    return tuple(kept)


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= SAME_SPEED * max(first, second)


def find_options(
    options: Sequence[LinkOption], bandwidth_bytes_per_s: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Index into distinct ``options`` of each bandwidth, -1 where none has it; same shape.

    >>> speeds = [LinkOption(25e9, 1, 1.0), LinkOption(50e9, 1, 2.0)]
    >>> find_options(speeds, np.array([50e9, 30e9, 25e9]))
    array([ 1, -1,  0])
    """
    speeds = np.array([option.bandwidth_bytes_per_s for option in options])
    below = np.searchsorted(speeds * (1 - SAME_SPEED), bandwidth_bytes_per_s, side="right") - 1
    reached = bandwidth_bytes_per_s <= speeds[below] * (1 + SAME_SPEED)
    return np.where((below >= 0) & reached, below, -1)


def nearest_options(options: Sequence[LinkOption], bandwidth_bytes_per_s: float) -> Options:
    """The next slower and the next faster of distinct ``options``, where there are any.

    >>> speeds = [LinkOption(25e9, 1, 1.0), LinkOption(50e9, 1, 2.0)]
    >>> [str(option) for option in nearest_options(speeds, 60e9)]
    ['1 x 50 GB/s']
    """
    slower = [o for o in options if o.bandwidth_bytes_per_s <= bandwidth_bytes_per_s]
    return (*slower[-1:], *options[len(slower) : len(slower) + 1])
