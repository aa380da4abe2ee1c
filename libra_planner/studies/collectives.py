"""Single collectives: their exact time, the model's, and the best split over orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from libra_planner.errors import Place
from libra_planner.inputs.collectives import CollectiveCase, Given, parse_case
from libra_planner.step.collectives.balanced import BalancedSchedule, balanced_schedule
from libra_planner.step.collectives.models import (
    CollectiveTimes,
    IdealTimes,
    collective_times,
    ideal_times,
)
from libra_planner.units import BYTES_PER_S_PER_GBPS, NS_PER_S


@dataclass(frozen=True)
class SolvedCollective:
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

    @property
    def ideal(self) -> IdealTimes:
        """What holds of its bytes."""
        case = self.case
        bandwidth = np.array(case.bandwidth_bytes_per_s)
        return ideal_times(case.collective, case.group, case.network, bandwidth)


def collective(
    topology: str,
    kind: str,
    size_bytes: float,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    latency_s: float = 0.0,
    n_chunks: int | None = 1,
    algorithms: Sequence[str] = (),
    in_network: bool = False,
    clock_ns: float = 1.0,
    balanced: bool = False,
    schedule: str | None = None,
) -> SolvedCollective:
    """Times of one collective over a whole fabric.

    Parameters
    ----------
    topology, kind : such as ``RI(4)_SW(8)`` and ``all-reduce``.
    size_bytes : the full vector; of an all-gather the gathered result.
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
    >>> round(solved.times.time_s, 9), solved.times.n_chunks
    (0.00100656, 16)

    Of a stack bytes are told, not messages:

    >>> stacked = collective("SW(8)_[SW(4)_SW(2)]", "all-reduce", 2**26, [450e9, 50e9, 25e9])
    >>> stacked.times, stacked.ideal.traffic_bytes[1] == 2 * 2**26 * (1 / 8 - 1 / 64)
    (None, True)
    """
    texts = {
        "topology": topology,
        "kind": kind,
        "size_bytes": repr(float(size_bytes)),
        "bandwidth_GBps": " ".join(
            repr(float(each) / BYTES_PER_S_PER_GBPS) for each in bandwidth_bytes_per_s
        ),
        "latency_ns": repr(float(latency_s) * NS_PER_S),
        "chunks": "auto" if n_chunks is None else str(n_chunks),
        "algorithms": " ".join(algorithms),
    }
    given = {name: Given(text, Place(name)) for name, text in texts.items() if text}
    case = parse_case(given, in_network=in_network, schedule=schedule)
    return solved_collective(case, clock_ns=clock_ns, balanced=balanced)


def solved_collective(case: CollectiveCase, *, clock_ns: float, balanced: bool) -> SolvedCollective:
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
        return SolvedCollective(case, times)
    bandwidth = np.array(case.bandwidth_bytes_per_s)
    schedule = balanced_schedule(case.collective, case.group, bandwidth, case.network)
    return SolvedCollective(case, times, schedule)
