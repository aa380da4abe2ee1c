"""Units: the only module that knows 1e9, 2**30 and bits per byte (C1).

The core computes in SI (bytes, bytes/s, seconds, USD). Text that a user writes
is turned into SI here, and numbers that a user reads are turned back here.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from libra_planner.errors import Fault, UnitError, closest

BYTES_PER_S_PER_GBPS: Final = 1e9
"""1 GB/s in bytes/s (C1)."""
BYTES_PER_GB: Final = 1e9
"""1 GB in bytes (C1)."""
NS_PER_S: Final = 1e9
"""Nanoseconds in a second."""
GBIT_PER_S_BPS: Final = 1e9 / 8
"""1 Gbit/s in bytes/s (C1)."""
FLOP_PER_MAC: Final = 2.0
"""A multiply-accumulate is two floating-point operations."""
FLOPS_PER_TFLOPS: Final = 1e12
"""1 TFLOP/s in FLOP/s."""

_BITS_PER_BYTE: Final = 8.0
_DECIMAL: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


_SIZES: Final = {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()}
_PREFIXES: Final = {prefix: factor for prefix, factor in _DECIMAL.items() if prefix}


UNITS: Final[dict[str, dict[str, float]]] = {
    "bandwidth": {f"{unit}/s": factor for unit, factor in _SIZES.items()}
    | {f"{prefix}Bps": factor for prefix, factor in _PREFIXES.items()}
    | {
        f"{prefix}{bit}": factor / _BITS_PER_BYTE
        for prefix, factor in _PREFIXES.items()
        for bit in ("bit/s", "bps")
    },
    "size": _SIZES,
    "time": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    "money": {"$": 1.0, "k$": 1e3, "M$": 1e6, "B$": 1e9, "USD": 1.0},
}
"""Unit -> SI factor, by kind of quantity."""


_SMALLEST_PLAIN: Final = 1e-4
_LARGEST_PLAIN: Final = 1e18


def unit_kind(unit: str) -> tuple[str, float]:
    """Kind and SI factor of a unit.

    Raises
    ------
    UnitError
        For a unit that is not known.

    Examples
    --------
    >>> unit_kind("GB/s"), unit_kind("Gbps"), unit_kind("M$")
    (('bandwidth', 1000000000.0), ('bandwidth', 125000000.0), ('money', 1000000.0))
    """
    for kind, table in UNITS.items():
        if unit in table:
            return kind, table[unit]
    known = [name for table in UNITS.values() for name in table]
    fix = "write GB/s for bytes or Gbit/s for bits" if unit == "Gb/s" else closest(unit, known)
    raise UnitError(Fault(f"got the unit {unit!r}", "expected a known unit", fix))


def gigabytes_per_s(bandwidth_bytes_per_s: float) -> float:
    """Bytes/s as the GB/s of every interface (C1)."""
    return float(bandwidth_bytes_per_s) / BYTES_PER_S_PER_GBPS


def _scaled(value: float, steps: list[tuple[float, str]], digits: int) -> str:
    # 999,999.6 is a thousand of the next unit once it is rounded to what is shown.
    shown = 1 - 0.5 * 10**-digits / 1000
    factor, unit = next((step for step in steps if abs(value) >= step[0] * shown), steps[-1])
    return f"{value / factor:,.{digits}f} {unit}".strip()


_TIME_STEPS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
BYTE_STEPS: Final = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]
USD_STEPS: Final = [(1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")]
"""Sizes and amounts, largest first, and what they are called."""


def format_time(seconds: float, *, round_up: bool = False) -> str:
    """A time for people; rounded up where it is the least that is allowed.

    >>> format_time(0.7224117809), format_time(4.2e-5), format_time(0.7224111, round_up=True)
    ('722.412 ms', '42.000 us', '722.412 ms')
    """
    if math.isinf(seconds):
        return "endless time"
    if round_up:
        unit_s = time_unit(seconds)[0]
        seconds = math.ceil(seconds / unit_s * 1000 * (1 - 1e-12)) / 1000 * unit_s
    return _scaled(seconds, _TIME_STEPS, 3)


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of which a time is one or more, in seconds, and its name.

    >>> time_unit(0.25), time_unit(3.0), time_unit(0.0)
    ((0.001, 'ms'), (1.0, 's'), (1e-09, 'ns'))
    """
    return next((step for step in _TIME_STEPS if seconds >= step[0]), _TIME_STEPS[-1])


def format_bytes(n_bytes: float) -> str:
    """A size for people, in decimal units.

    >>> format_bytes(67108864), format_bytes(3)
    ('67.109 MB', '3.000 B')
    """
    return _scaled(n_bytes, BYTE_STEPS, 3)


def format_usd(usd: float) -> str:
    """An amount for people.

    >>> format_usd(13_429_871.0), format_usd(42)
    ('$13.43M', '$42.00')
    """
    return "$" + _scaled(usd, USD_STEPS, 2).replace(" ", "")


def short_usd(usd: float) -> str:
    """An amount of at least $0 in sentences: three digits from a thousand on, else to the cent.

    >>> short_usd(282_100.0), short_usd(999_600.0), short_usd(13_429_871.0), short_usd(42)
    ('$282k', '$1.00M', '$13.4M', '$42.00')
    """
    if usd < USD_STEPS[-2][0]:
        return f"${usd:,.2f}"
    amount = float(f"{usd:.2e}")
    unit, name = next(step for step in USD_STEPS if amount >= step[0])
    digits = 2 - int(math.log10(amount / unit))
    return f"${amount / unit:.{max(0, digits)}f}{name}"


def unit_price_text(usd: float) -> str:
    """Price of one: dollars, and cents of what costs little.

    >>> unit_price_text(1250.4), unit_price_text(38.5)
    ('$1,250', '$38.50')
    """
    return f"${usd:,.0f}" if usd >= _MANY_USD else f"${usd:,.2f}"


_MANY_USD = 100


def plain_digits(value: float) -> str:
    """Six digits, and all of those before the point: what other programs read as a number.

    >>> plain_digits(87_743_212.7), plain_digits(1e6), plain_digits(3.7184321), plain_digits(2e-9)
    ('87743213', '1000000', '3.71843', '2e-09')
    """
    if not _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN:
        return f"{value:.6g}"
    text = f"{value:.0f}"
    return text if len(text.lstrip("-")) > 6 else f"{Decimal(f'{value:.6g}'):f}"


def format_bandwidth(bandwidth_bytes_per_s: float) -> str:
    """A bandwidth for people, in GB/s.

    >>> format_bandwidth(338_449_675_082.2)
    '338.45 GB/s'
    """
    return f"{bare_bandwidth(bandwidth_bytes_per_s)} GB/s"


def bare_bandwidth(bandwidth_bytes_per_s: float) -> str:
    """The same without its unit.

    >>> bare_bandwidth(338_449_675_082.2)
    '338.45'
    """
    value = gigabytes_per_s(bandwidth_bytes_per_s)
    digits = 2 if value == 0 or abs(value) >= 1 else 4
    return f"{value:,.{digits}f}"


def format_line_rate(bandwidth_bytes_per_s: float) -> str:
    """A bandwidth as those who build networks say it.

    >>> format_line_rate(50e9), format_line_rate(12.5e9)
    ('400 Gbit/s', '100 Gbit/s')
    """
    return f"{gigabytes_per_s(bandwidth_bytes_per_s) * _BITS_PER_BYTE:,.6g} Gbit/s"
