"""The exact flow shop over a plain event simulation of the same chunks (in pairs)."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import (
    flow_shop,
    one_way_makespan,
    plain_network,
    there_and_back_makespan,
    visit_times_ns,
    visits,
)
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.flow_shops import simulated_makespan

N_RUNS = 11
CASES = [
    ("all-reduce", "RI(16)_SW(8)", 64),
    ("all-reduce", "RI(4)_FC(8)_RI(4)_SW(32)", 64),
    ("all-reduce", "RI(4)_FC(8)_RI(4)_SW(32)", 1024),
    ("all-to-all", "RI(4)_FC(8)_RI(4)_SW(32)", 64),
]


def seconds(call: Callable[[], object], least_s: float = 0.02) -> float:
    """Time of one call, averaged over enough of them."""
    n_calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < least_s:
        call()
        n_calls += 1
    return elapsed / n_calls


def measured(kind: str, fabric: str, n_chunks: int) -> tuple[list[float], list[float]]:
    """Ratios of the two schedules of the same visit times, and microseconds of a whole call."""
    topology = parse_topology(fabric)
    bandwidth = [400e9, 100e9, 50e9, 25e9][: topology.n_dims]
    network, group = plain_network(topology), Group(topology.sizes, (1,) * topology.n_dims)
    collective = Collective(CollectiveKind(kind), 2.0**26, "dp")
    stops = visits(collective, group, network)
    dims = [stop.dim for stop in stops]
    times = visit_times_ns(stops, network, bandwidth, n_chunks=n_chunks)
    makespan = there_and_back_makespan if kind == "all-reduce" else one_way_makespan
    ratios, whole = [], []
    for _ in range(N_RUNS):
        plain = seconds(lambda: simulated_makespan(dims, times, n_chunks))
        ratios.append(plain / seconds(lambda: makespan(times, n_chunks)))
        call = partial(flow_shop, collective, group, network, bandwidth, n_chunks=n_chunks)
        whole.append(seconds(call) * 1e6)
    return ratios, whole


def main() -> None:
    """Print two table rows per case."""
    for kind, fabric, n_chunks in CASES:
        ratios, whole = measured(kind, fabric, n_chunks)
        name = f"{kind} on {fabric}, {n_chunks} chunks"
        for what, values in (("simulation over flow shop", ratios), ("whole call, us", whole)):
            row = f"{min(values):.1f} | {median(values):.1f} | {max(values):.1f}"
            print(f"| {name}: {what} | {row} |")


if __name__ == "__main__":
    main()
