"""NICs of a first plan: the speeds that are sold."""

from __future__ import annotations

import math

from libra_planner.errors import Fault, SpecError
from libra_planner.units import BYTES_PER_S_PER_GBPS, GBIT_PER_S_BPS

SOLD_GBPS = (100, 200, 400, 800)
"""Speeds of NICs in the bundled catalogue."""


def sold_Bps(text: str, speed_Bps: float) -> float:
    """A speed that a NIC of the catalogue has, or a slower one; of bits that were meant, a hint.

    Raises
    ------
    SpecError
        For a speed above all that are sold.

    Examples
    --------
    >>> sold_Bps("800Gbps", 100e9) / 1e9
    100.0
    """
    most, speed = SOLD_GBPS[-1], speed_Bps / GBIT_PER_S_BPS
    if speed <= most * (1 + 1e-9):
        return speed_Bps
    meant = speed_Bps / BYTES_PER_S_PER_GBPS
    is_meant = "B" in text and meant <= most
    fix = f"{meant:g} GB/s are {speed:,.12g} Gbps; write {meant:g}Gbps?" if is_meant else ""
    expected = f"expected at most {most} Gbps, the fastest NIC of the price book"
    raise SpecError(Fault(f"got {text}", expected, fix or f"write e.g. {most}Gbps"))


def unsold_words(nic_Bps: float) -> str:
    """That nobody sells a NIC, which ones are sold, and what follows; else empty.

    >>> unsold_words(50e9), unsold_words(62.5e9)[:40]
    ('', 'No price book sells a NIC of 500 Gbit/s,')
    """
    speed = nic_Bps / GBIT_PER_S_BPS
    if any(math.isclose(speed, one) for one in SOLD_GBPS):
        return ""
    sold = ", ".join(map(str, SOLD_GBPS[:-1])) + f" and {SOLD_GBPS[-1]}"
    next_up = next((one for one in SOLD_GBPS if one > speed), SOLD_GBPS[-1])
    follows = f"a bill pays for {next_up} Gbit/s, which then run at {speed:.12g}"
    return f"No price book sells a NIC of {speed:.12g} Gbit/s, but {sold}: {follows}."
