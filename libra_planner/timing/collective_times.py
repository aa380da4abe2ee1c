"""Every time that a single collective has: exact, by the convex model, ideal, and its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from libra_planner.collectives.algorithms import Network
from libra_planner.collectives.flowshop import flow_shop
from libra_planner.collectives.scheduling import aggregate_bound_s
from libra_planner.collectives.traffic import traffic_bytes
from libra_planner.timing.expression import TimeExpression
from libra_planner.timing.models import Pipelined
from libra_planner.workload.operations import Collective
from libra_planner.workload.parallelism import Group


@dataclass(frozen=True)
class CollectiveTimes:
    """Times of one collective at one bandwidth vector.

    Parameters
    ----------
    time_s : exact, by the flow shop.
    continuous_time_s : the same without rounding to a clock.
    model_time_s : by the convex model that the optimizer uses, with the same chunks.
    ideal_time_s : C4's ideal: no latency, endlessly many chunks.
    aggregate_bound_s : bytes over the bandwidth of all dimensions; see
        :func:`~libra_planner.collectives.scheduling.aggregate_bound_s`.
    n_chunks : chunks used.
    traffic_bytes : C3's bytes, shape (n_dims,).
    busy_s : time that each dimension serves, shape (n_dims,).
    """

    time_s: float
    continuous_time_s: float
    model_time_s: float
    ideal_time_s: float
    aggregate_bound_s: float | None
    n_chunks: int
    traffic_bytes: tuple[float, ...] = field(repr=False)
    busy_s: tuple[float, ...] = field(repr=False)

    @property
    def model_gap(self) -> float:
        """Exact time over the model's (C9)."""
        return self.time_s / self.model_time_s


def collective_times(
    collective: Collective,
    group: Group,
    network: Network,
    bandwidth_bytes_per_s: Sequence[float],
    *,
    n_chunks: int | None = 1,
    clock_ns: float = 0.0,
) -> CollectiveTimes:
    """All times of a collective; parameters as in
    :func:`~libra_planner.collectives.flowshop.flow_shop`.

    Examples
    --------
    >>> from libra_planner.collectives.algorithms import plain_network
    >>> from libra_planner.fabric.topology import parse_topology
    >>> from libra_planner.workload.operations import CollectiveKind
    >>> network = plain_network(parse_topology("RI(4)_SW(4)"))
    >>> reduce = Collective(CollectiveKind.ALL_REDUCE, 64.0, "dp")
    >>> times = collective_times(reduce, Group((4, 4), (1, 1)), network, [1.0, 1.0], n_chunks=2)
    >>> times.time_s, times.model_time_s, times.ideal_time_s, times.aggregate_bound_s
    (96.0, 108.0, 96.0, 60.0)
    """
    bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
    run = flow_shop(
        collective, group, network, bandwidth.tolist(), n_chunks=n_chunks, clock_ns=clock_ns
    )
    continuous = run
    if clock_ns:
        continuous = flow_shop(
            collective, group, network, bandwidth.tolist(), n_chunks=run.n_chunks
        )
    model = Pipelined(run.n_chunks).time(collective, group, network)
    traffic = traffic_bytes(collective, group, network.in_network)
    used = traffic > 0
    return CollectiveTimes(
        time_s=run.time_s,
        continuous_time_s=continuous.time_s,
        model_time_s=float(TimeExpression(model, len(bandwidth)).seconds(bandwidth)),
        ideal_time_s=float((traffic[used] / bandwidth[used]).max(initial=0.0)),
        aggregate_bound_s=aggregate_bound_s(collective, group, bandwidth, network.in_network),
        n_chunks=run.n_chunks,
        traffic_bytes=tuple(traffic.tolist()),
        busy_s=run.busy_s,
    )
