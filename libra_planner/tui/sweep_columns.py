"""Columns of a sweep's results as people read them: order, headings, units, widths."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "-"

_LONGEST = 48
"""Letters of a message before it is cut."""


@dataclass(frozen=True)
class ShownColumn:
    """A column on screen.

    Parameters
    ----------
    name : in the results, as SQL takes it.
    heading : on screen.
    text : a value that is there, for people.
    n_cells : the least width, so that columns stay where they are from page to page.
    is_text : whether it is aligned at the left.
    """

    name: str
    heading: str
    text: Callable[[Any], str]
    n_cells: int = 0
    is_text: bool = False

    def shown(self, value: Any) -> str:
        """A value, or nothing."""
        return NONE if value is None else self.text(value)

    def padded(self, text: str) -> str:
        """At least as wide as the column."""
        width = max(self.n_cells, len(self.heading))
        return text.ljust(width) if self.is_text else text.rjust(width)


def _time(value: float) -> str:
    from libra_planner.units import format_time

    return format_time(value)


def _usd(value: float) -> str:
    from libra_planner.units import format_usd

    return format_usd(value)


def _size(value: float) -> str:
    from libra_planner.units import format_bytes

    return format_bytes(value)


def _bandwidth(value: float) -> str:
    from libra_planner.units import BYTES_PER_S_PER_GBPS, format_bandwidth

    return format_bandwidth(value * BYTES_PER_S_PER_GBPS).removesuffix(" GB/s")


def _plain(value: Any) -> str:
    """What has no unit: six digits.

    >>> _plain(0.703430123), _plain(True), _plain(12)
    ('0.70343', 'yes', '12')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _given(value: Any) -> str:
    """A value of an axis, with all the digits that a file gives.

    >>> _given(1234567.5), _given("SW(8)"), _given(0.30000000000000004)
    ('1234567.5', 'SW(8)', '0.3')
    """
    return f"{value:.12g}" if isinstance(value, float) else _plain(value)


def _cut(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_OBJECTIVES = {"performance": "perf", "performance_per_cost": "perf/cost"}
"""Short names, as on the first screen."""


def _objective(value: str) -> str:
    return _OBJECTIVES.get(value, value)


KNOWN = (
    ShownColumn("objective", "objective", _objective, 9, is_text=True),
    ShownColumn("step_time_s", "step time", _time, 10),
    ShownColumn("effective_step_time_s", "effective", _time, 10),
    ShownColumn("cost_usd", "cost", _usd, 8),
    ShownColumn("speedup_vs_equal", "speedup", lambda value: f"{value:.3f}x", 7),
    ShownColumn("fim_percent", "FIM %", lambda value: f"{value:.2f}", 6),
    ShownColumn("fim_floor_percent", "floor %", lambda value: f"{value:.2f}", 7),
)
"""Columns after row and axes, the most important ones first; what follows is bandwidths."""

LAST = (
    ShownColumn("seconds_per_sequence", "time/seq.", _time, 10),
    ShownColumn("effective_seconds_per_sequence", "eff./seq.", _time, 10),
    ShownColumn("status", "status", str, 10, is_text=True),
    ShownColumn("memory_bytes", "memory", _size, 10),
    ShownColumn("sharded_memory_bytes", "sharded", _size, 10),
    ShownColumn("optimality_gap", "gap", lambda value: f"{value:.1e}", 7),
)
"""Columns after the bandwidths, in front of all others; texts of any length come last."""

_MESSAGES = ("message", "check_message")
_DIM = re.compile(r"bandwidth_(dim\d+)_GBps")


def columns_of(names: Sequence[str], axes: Sequence[str]) -> list[ShownColumn]:
    """Columns of results in the order of the screen: each of ``names`` once.

    Parameters
    ----------
    names : of the results.
    axes : those of them that the sweep varies, shown as they were given.

    Examples
    --------
    >>> found = columns_of(["row", "step_time_s", "bandwidth_dim1_GBps", "tp", "x_usd"], ["tp"])
    >>> [one.heading for one in found]
    ['row', 'tp', 'step time', 'dim1', 'x']
    """
    varied = [name for name in axes if name in names and name != "objective"]
    first = [_axis(name) for name in ("row", *varied) if name in names]
    known = [one for one in KNOWN if one.name in names and one.name not in varied]
    dims = [_other(name) for name in names if _DIM.fullmatch(name) and name not in varied]
    last = [one for one in LAST if one.name in names and one.name not in varied]
    found = [*first, *known, *dims, *last]
    placed = {one.name for one in found}
    rest = sorted((name for name in names if name not in placed), key=_MESSAGES.__contains__)
    return [*found, *map(_other, rest)]


def _axis(name: str) -> ShownColumn:
    return ShownColumn(name, name, _given, 4)


_UNITS: tuple[tuple[str, Callable[[Any], str], int], ...] = (
    ("_usd", _usd, 8),
    ("_s", _time, 10),
    ("_GBps", _bandwidth, 8),
)
"""What the end of a name says about a column that nobody told this screen of."""


def _other(name: str) -> ShownColumn:
    dim = _DIM.fullmatch(name)
    if dim:
        return ShownColumn(name, dim[1], _bandwidth, 7)
    if name in _MESSAGES:
        return ShownColumn(name, name.replace("_", " "), _cut, 0, is_text=True)
    for end, text, n_cells in _UNITS:
        if name.endswith(end):
            heading = name.removesuffix(end).replace("_", " ")
            unit = " GB/s" if end == "_GBps" else ""
            return ShownColumn(name, heading + unit, _or_plain(text), n_cells)
    return ShownColumn(name, name.replace("_", " "), _plain, 6)


def _or_plain(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Numbers with their unit, whatever else as it is."""
    return lambda value: text(value) if isinstance(value, float) else _plain(value)


def in_words(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    """The best design of an objective in one line: what it reaches, and where it is.

    >>> row = {"row": 3, "budget": 500, "objective": "cost", "step_time_s": 0.5, "cost_usd": 2e6}
    >>> in_words(row, ["budget"])
    'cost: step time 500.000 ms, cost $2.00M, budget 500 (row 3)'
    """
    texts = []
    for one in columns_of(list(row), axes):
        is_axis = one.name in axes and one.name != "objective"
        if (is_axis or one.name in _IN_WORDS) and row[one.name] is not None:
            texts.append((is_axis, f"{one.heading} {one.shown(row[one.name])}"))
    figures = ", ".join(text for _, text in sorted(texts, key=lambda pair: pair[0]))
    return f"{str(row['objective']).replace('_', ' ')}: {figures} (row {row['row']})"


_IN_WORDS = (
    "step_time_s",
    "effective_step_time_s",
    "cost_usd",
    "speedup_vs_equal",
    "fim_percent",
)
