"""How numbers of columns are shown by their unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from libra_planner import units
from libra_planner.sweeps.figures.texts import plain


def _gigabytes_per_s(value: float) -> str:
    return units.format_bandwidth(value * units.BYTES_PER_S_PER_GBPS).removesuffix(" GB/s")


@dataclass(frozen=True)
class Unit:
    """How numbers of a unit are shown.

    Parameters
    ----------
    ending : of names of columns that have the unit.
    text : a number for people.
    n_cells : the least width, so that columns stay where they are from page to page.
    in_heading : the unit, where ``text`` leaves it out.
    """

    ending: str
    text: Callable[[Any], str]
    n_cells: int
    in_heading: str = ""


UNITS: Final = {
    "USD": Unit("_usd", units.format_usd, 8),
    "tokens/s": Unit("tokens_per_s", "{:,.0f}".format, 9),
    "s": Unit("_s", units.format_time, 10),
    "GB/s": Unit("_GBps", _gigabytes_per_s, 8, " GB/s"),
    "bytes": Unit("_bytes", units.format_bytes, 10),
    "%": Unit("_percent", "{:.2f}".format, 7),
    "times": Unit("_vs_equal", "{:.3f}x".format, 7),
    "": Unit("", plain, 6),
}
"""Units of columns: without one of its own, a column has what the end of its name says."""


def unit_of(name: str) -> Unit:
    """The unit that the end of a column's name says; of ``..._per_usd`` or ``..._per_s`` none.

    >>> [unit_of(x).ending for x in ("network_usd", "tokens_per_s_per_usd", "joules_per_s", "x_s")]
    ['_usd', '', '', '_s']
    """
    endings = (
        unit
        for unit in UNITS.values()
        if name.endswith(unit.ending) and not (unit.ending and name.endswith(f"_per{unit.ending}"))
    )
    return next(endings)
