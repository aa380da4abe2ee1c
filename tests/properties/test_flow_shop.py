"""The flow shop against a plain event simulation, and what must hold for any collective."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import (
    AUTO_CHUNKS,
    Network,
    flow_shop,
    one_way_makespan,
    there_and_back_makespan,
    visit_times_ns,
    visits,
)
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.flow_shops import simulated_makespan

# Whole numbers: sums are exact, and small ones make many simultaneous arrivals.
TIMES = st.one_of(st.integers(1, 4), st.integers(1, 50), st.integers(1, 10**6)).map(float)
CHUNKS = st.one_of(st.integers(1, 6), st.integers(1, 80))


@given(st.lists(TIMES, min_size=1, max_size=6), CHUNKS)
def test_one_way(times: list[float], n_chunks: int) -> None:
    dims = range(len(times))
    assert one_way_makespan(times, n_chunks) == simulated_makespan(dims, times, n_chunks)


@st.composite
def _there_and_back(draw: st.DrawFn) -> list[float]:
    n_dims = draw(st.integers(1, 6))
    return draw(st.lists(TIMES, min_size=2 * n_dims - 1, max_size=2 * n_dims - 1))


@given(_there_and_back(), CHUNKS)
def test_there_and_back(times: list[float], n_chunks: int) -> None:
    n_dims = (len(times) + 1) // 2
    dims = [*range(n_dims), *reversed(range(n_dims - 1))]
    assert there_and_back_makespan(times, n_chunks) == simulated_makespan(dims, times, n_chunks)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Collective, Group, Network, list[float]]:
    n_dims = draw(st.integers(1, 5))
    blocks = draw(st.lists(st.sampled_from(["RI", "FC", "SW"]), min_size=n_dims, max_size=n_dims))
    sizes = draw(st.lists(st.integers(2, 9), min_size=n_dims, max_size=n_dims))
    topology = parse_topology("_".join(f"{b}({n})" for b, n in zip(blocks, sizes, strict=True)))
    used = tuple(draw(st.sampled_from([1, size])) for size in sizes)
    latency_s = tuple(draw(st.sampled_from([0.0, 5e-7])) for _ in sizes)
    network = Network(topology, latency_s, (None,) * n_dims)
    collective = Collective(draw(st.sampled_from(CollectiveKind)), draw(st.floats(1e3, 1e10)), "dp")
    bandwidth = draw(st.lists(st.floats(1e9, 1e12), min_size=n_dims, max_size=n_dims))
    return collective, Group(used, (1,) * n_dims), network, bandwidth


@given(_cases(), CHUNKS)
def test_collectives_of_every_kind(case: tuple, n_chunks: int) -> None:
    """Real collectives against the simulation; no dimension is busy longer than the whole."""
    collective, group, network, bandwidth = case
    run = flow_shop(collective, group, network, bandwidth, n_chunks=n_chunks)
    stops = visits(collective, group, network)
    times_ns = visit_times_ns(stops, network, bandwidth, n_chunks=n_chunks)
    # Whole units of 2**-20 ns: the simulation then breaks no tie by a rounding error.
    units = [float(round(time * 2**20)) for time in times_ns]
    exact = simulated_makespan([stop.dim for stop in stops], units, n_chunks) if stops else 0.0
    makespan = (
        there_and_back_makespan
        if collective.kind is CollectiveKind.ALL_REDUCE
        else one_way_makespan
    )
    assert makespan(units, n_chunks) == exact
    assert max(run.busy_s) <= run.time_s * (1 + 1e-12)
    assert run.time_s >= sum(times_ns) * 1e-9 * (1 - 1e-12)


@given(_cases())
def test_auto_takes_the_fastest_number_of_chunks(case: tuple) -> None:
    best = flow_shop(*case, n_chunks=None)
    times = {k: flow_shop(*case, n_chunks=k).time_s for k in AUTO_CHUNKS}
    assert best.time_s == min(times.values())
    assert best.n_chunks == min(k for k, time_s in times.items() if time_s == best.time_s)


@given(_cases(), CHUNKS)
def test_a_clock_takes_less_than_a_tick_per_message(case: tuple, n_chunks: int) -> None:
    collective, group, network, bandwidth = case
    stops = visits(collective, group, network)
    exact = visit_times_ns(stops, network, bandwidth, n_chunks=n_chunks)
    floored = visit_times_ns(stops, network, bandwidth, n_chunks=n_chunks, clock_ns=1.0)
    for stop, whole, time in zip(stops, floored, exact, strict=True):
        assert time - stop.n_steps <= whole * (1 + 1e-9)
        assert 0 < whole <= time * (1 + 1e-9)


def test_bandwidth_of_zero_is_refused_where_it_is_needed_only() -> None:
    network = Network(parse_topology("RI(4)_SW(4)"), (0.0, 0.0), (None, None))
    reduce = Collective(CollectiveKind.ALL_REDUCE, 1e6, "dp")
    assert flow_shop(reduce, Group((4, 1), (1, 1)), network, [1e9, 0.0]).time_s > 0
    with pytest.raises(Exception, match="got 0 GB/s for dim2"):
        flow_shop(reduce, Group((4, 4), (1, 1)), network, [1e9, 0.0])
    assert math.isfinite(flow_shop(reduce, Group((1, 1), (1, 1)), network, [0.0, 0.0]).time_s)
