"""Single collectives in Python: their exact time, the model's, and the best split over orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from libra_planner import allowed
from libra_planner.allowed import Flag, Kind, Number, OneOf, Text, Whole
from libra_planner.api.given import takes
from libra_planner.api.shown import Shown
from libra_planner.errors import Fault, Place, SpecError
from libra_planner.evaluation import refuse_GBps
from libra_planner.inputs.collectives import CollectiveCase, Given, parse_case
from libra_planner.step.collectives.balanced import BalancedSchedule, balanced_schedule
from libra_planner.step.collectives.models import (
    CollectiveTimes,
    IdealTimes,
    collective_times,
    ideal_times,
)
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS, NS_PER_S, format_bytes, format_time
from libra_planner.views.cells import Block
from libra_planner.views.times import collective as view


@dataclass(frozen=True, repr=False)
class Collective(Shown):
    """One collective and its times.

    Parameters
    ----------
    case : what was asked.
    times : all its times; ``None`` where only its bytes are told (C13).
    schedule : the best split of the data over orders of the dimensions, where it was asked for.
    """

    case: CollectiveCase
    times: CollectiveTimes | None
    schedule: BalancedSchedule | None = None

    table = "dimensions"

    @property
    def ideal(self) -> IdealTimes:
        """What holds of its bytes."""
        case = self.case
        bandwidth = np.array(case.bandwidth_bytes_per_s)
        return ideal_times(case.collective, case.group, case.network, bandwidth)

    @property
    def time_s(self) -> float | None:
        """Exact; ``None`` where only bytes are told (C13)."""
        return None if self.times is None else self.times.time_s

    @property
    def ideal_time_s(self) -> float:
        """Without latency, with endlessly many chunks."""
        return self.ideal.time_s if self.times is None else self.times.ideal_time_s

    def headline(self) -> str:
        """It in one line."""
        case = self.case
        what = f"{case.collective.kind.value} of {format_bytes(case.collective.size_bytes)}"
        exact = "" if self.time_s is None else f"{format_time(self.time_s)}, "
        topology = case.network.topology
        return f"{what} on {topology}; {exact}ideal {format_time(self.ideal_time_s)}"

    def blocks(self) -> Iterator[Block]:
        """What ``collective`` prints."""
        if self.times is None:
            yield from view.ideal_blocks(self.case, self.ideal, self.schedule)
        else:
            yield from view.collective_blocks(self.case, self.times, self.schedule)

    def to_dict(self) -> dict[str, Any]:
        """What ``collective --json`` prints."""
        if self.times is None:
            return view.ideal_payload(self.case, self.ideal, self.schedule)
        return view.collective_payload(self.case, self.times, self.schedule)


OF_COLLECTIVES: dict[str, Kind] = {
    "topology": Text("a fabric such as 'RI(4)_SW(8)'"),
    "kind": Text("a collective such as 'all-reduce'"),
    "size_bytes": Number(*allowed.BYTES, reads_text=True),
    "latency_s": Number(0.0, allowed.LATENCY_NS[1] / NS_PER_S),
    "n_chunks": Whole(*allowed.CHUNKS),
    "in_network": Flag(),
    "clock_ns": Number(*allowed.CLOCK_NS),
    "balanced": Flag(),
    "schedule": OneOf(allowed.COLLECTIVE_SCHEDULES),
}
"""What arguments of collectives take."""


@takes(OF_COLLECTIVES)
def collective(
    topology: str,
    kind: str,
    size_bytes: float | str,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    latency_s: float = 0.0,
    n_chunks: int | None = 1,
    algorithms: Sequence[str] = (),
    in_network: bool = False,
    clock_ns: float = 1.0,
    balanced: bool = False,
    schedule: str | None = None,
) -> Collective:
    """Times of one collective over a whole fabric.

    Parameters
    ----------
    topology, kind : such as ``RI(4)_SW(8)`` and ``all-reduce``.
    size_bytes : the full vector, a number or a text such as ``64MiB``; of an all-gather the
        gathered result.
    bandwidth_bytes_per_s : per NPU of every dimension, innermost first.
    latency_s : of a hop.
    n_chunks : equal parts of the vector; ``None`` for the fastest number.
    algorithms : one for each dimension; without them each block's usual one.
    in_network : switches reduce.
    clock_ns : messages take whole multiples of it, rounded down; 0 for none.
    balanced : also the best split of the data over orders of the dimensions.
    schedule : hierarchical, ring or direct (C13); without it the usual one.

    Raises
    ------
    SpecError
        With every fault of what is asked.

    Examples
    --------
    >>> solved = collective("RI(4)_SW(8)", "all-reduce", 2**26, [100e9, 50e9], n_chunks=16)
    >>> solved
    <Collective: all-reduce of 67.109 MB on RI(4)_SW(8); 1.007 ms, ideal 1.007 ms>
    >>> round(solved.times.time_s, 9), solved.times.n_chunks
    (0.00100656, 16)

    Of a stack bytes are told, not messages:

    >>> stacked = collective("SW(8)_[SW(4)_SW(2)]", "all-reduce", 2**26, [450e9, 50e9, 25e9])
    >>> stacked.times, stacked.ideal.traffic_bytes[1] == 2 * 2**26 * (1 / 8 - 1 / 64)
    (None, True)
    """
    is_text = isinstance(size_bytes, str)
    bandwidth = _numbers(bandwidth_bytes_per_s, "bandwidth_bytes_per_s", "[100e9, 50e9]")
    refuse_GBps(bandwidth)
    texts = {
        "topology": topology,
        "kind": kind,
        "size_bytes": str(size_bytes)
        if is_text
        else repr(float(_numbers(size_bytes, "size_bytes", "64e6 or '64MiB'")[0])),
        "bandwidth_GBps": " ".join(
            repr(each) for each in (bandwidth / BYTES_PER_S_PER_GBPS).tolist()
        ),
        "latency_ns": repr(float(latency_s) * NS_PER_S),
        "chunks": "auto" if n_chunks is None else str(n_chunks),
        "algorithms": " ".join(algorithms),
    }
    given = {name: Given(text, Place(name)) for name, text in texts.items() if text}
    given["size_bytes"] = replace(given["size_bytes"], in_file=not is_text)
    case = parse_case(given, in_network=in_network, schedule=schedule)
    return solved_collective(case, clock_ns=clock_ns, balanced=balanced)


def _numbers(given: Any, name: str, such: str) -> Array:
    """What a caller gave as numbers, shape (n,)."""
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not found.size:
        fix = f"write e.g. {such}"
        raise SpecError(Fault(f"got {given!r}", "expected numbers", fix, "", Place(name)))
    return found


def solved_collective(case: CollectiveCase, *, clock_ns: float, balanced: bool) -> Collective:
    """All times of a collective; parameters as :func:`collective` has them."""
    times = None
    if not case.is_ideal_only:
        times = collective_times(
            case.collective,
            case.group,
            case.network,
            case.bandwidth_bytes_per_s,
            n_chunks=case.n_chunks,
            clock_ns=clock_ns,
        )
    if not balanced:
        return Collective(case, times)
    bandwidth = np.array(case.bandwidth_bytes_per_s)
    schedule = balanced_schedule(case.collective, case.group, bandwidth, case.network)
    return Collective(case, times, schedule)
