"""The split over orders: by hand, against fine grids, and against a closed form for any D."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.errors import SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import Network, plain_network, traffic_bytes
from libra_planner.step.collectives.balanced import MAX_DIMS, balanced_schedule
from libra_planner.workload.operations import Collective, CollectiveKind, Group

KINDS = st.sampled_from(CollectiveKind)
REDUCE = CollectiveKind.ALL_REDUCE


def _schedule(kind: CollectiveKind, sizes: list[int], bandwidth: list[float], inside: tuple = ()):
    group = Group(tuple(sizes), (1,) * len(sizes))
    network = replace(_network(sizes), in_network=frozenset(inside))
    return balanced_schedule(Collective(kind, 1e6, "dp"), group, np.array(bandwidth), network)


def _network(sizes: list[int]) -> Network:
    return plain_network(parse_topology("_".join(f"SW({max(size, 2)})" for size in sizes)))


def _fewest_bytes_last(kind: CollectiveKind, sizes: list[int], bandwidth: list[float]) -> float:
    """Closed form: dimensions S, visited last, still send m/N (prod of their g - 1) in sum.

    The loads of all splits are the base polytope of m (1 - prod_S 1/g), which is submodular,
    so these bounds over all subsets S are tight.
    """
    passes = 2 if kind is REDUCE else 1
    dims = range(len(sizes))
    return max(
        passes * 1e6 / prod(sizes) * (prod(sizes[i] for i in part) - 1)
        / sum(bandwidth[i] for i in part)
        for n in range(1, len(sizes) + 1)
        for part in combinations(dims, n)
    )  # fmt: skip


@st.composite
def _cases(draw: st.DrawFn, max_dims: int = 5) -> tuple[list[int], list[float]]:
    sizes = draw(st.lists(st.integers(2, 64), min_size=1, max_size=max_dims))
    n = len(sizes)
    exponents = draw(st.lists(st.floats(-3, 3), min_size=n, max_size=n))
    return sizes, [10.0**value for value in exponents]


@given(KINDS, _cases())
def test_against_the_closed_form_of_any_number_of_dimensions(kind, case) -> None:
    sizes, bandwidth = case
    best = _schedule(kind, sizes, bandwidth)
    assert sum(share.fraction for share in best.split) == pytest.approx(1, abs=1e-12)
    assert len(best.split) <= len(sizes) + 1
    assert best.gain >= 1
    assert best.time_s >= best.aggregate_bound_s * (1 - 1e-12)
    if kind is not CollectiveKind.ALL_TO_ALL:
        exact = _fewest_bytes_last(kind, sizes, bandwidth)
        assert best.time_s == pytest.approx(exact, rel=1e-7)
    else:
        assert best.time_s == best.hierarchical_time_s


@given(KINDS, _cases(), st.randoms(use_true_random=False))
def test_no_random_split_beats_it_or_the_aggregate_bound(kind, case, random) -> None:
    """Loads counted NPU by NPU: what an order sends is what is left of the vector, in turn."""
    sizes, bandwidth = case
    best = _schedule(kind, sizes, bandwidth)
    load = np.zeros(len(sizes))
    weights = [random.random() + 1e-3 for _ in range(4)]
    for weight in weights:
        order = random.sample(range(len(sizes)), len(sizes))
        left = 1e6
        for i in order:
            sent = left * (sizes[i] - 1) / sizes[i]
            load[i] += weight / sum(weights) * sent * (2 if kind is REDUCE else 1)
            if kind is not CollectiveKind.ALL_TO_ALL:
                left -= sent
    time_s = max(n_bytes / b for n_bytes, b in zip(load, bandwidth, strict=True))
    assert time_s >= best.time_s * (1 - 1e-7)
    assert time_s >= best.aggregate_bound_s * (1 - 1e-12)


@given(st.sampled_from([REDUCE, CollectiveKind.ALL_GATHER]), _cases(max_dims=2))
def test_two_dimensions_against_a_fine_grid(kind, case) -> None:
    sizes, bandwidth = case
    if len(sizes) < 2:
        return
    passes = 2 if kind is REDUCE else 1
    g1, g2 = sizes
    out = np.array([1e6 * (g1 - 1) / g1, 1e6 * (g2 - 1) / (g1 * g2)]) * passes
    swapped = np.array([1e6 * (g1 - 1) / (g1 * g2), 1e6 * (g2 - 1) / g2]) * passes
    shares = np.linspace(0, 1, 100_001)[:, None]
    times = ((shares * out + (1 - shares) * swapped) / bandwidth).max(axis=1)
    best = _schedule(kind, sizes, bandwidth)
    assert best.time_s <= times.min() * (1 + 1e-9)
    slope = abs((out - swapped) / bandwidth).max() * 1e-5
    assert best.time_s >= times.min() - slope


def test_two_dimensions_by_hand() -> None:
    """All-reduce of 1e6 over 4 x 8 at (3, 1): 2e6 * 31/32 bytes over 4 = 484,375 s.

    Sent in order 1-2: 1.5e6 and 437,500; in order 2-1: 187,500 and 1.75e6. The balance has
    dim1 at 1,453,125 bytes: a share of (1,453,125 - 187,500)/1,312,500 = 27/28 in order 1-2.
    """
    best = _schedule(REDUCE, [4, 8], [3.0, 1.0])
    assert best.time_s == pytest.approx(484_375, rel=1e-12)
    assert best.aggregate_bound_s == pytest.approx(484_375, rel=1e-12)
    assert best.hierarchical_time_s == pytest.approx(500_000)
    assert best.gain == pytest.approx(32 / 31)
    assert [share.order for share in best.split] == [(0, 1), (1, 0)]
    assert best.split[0].fraction == pytest.approx(27 / 28)


def test_a_dimension_too_slow_to_share_by_hand() -> None:
    """Dim2 at 0.01: even visited last it sends 437,500 bytes; that binds, all goes 1-2."""
    best = _schedule(REDUCE, [4, 8], [3.0, 0.01])
    assert best.time_s == pytest.approx(437_500 / 0.01)
    assert best.split[0].order == (0, 1)
    assert best.split[0].fraction == pytest.approx(1)
    assert best.aggregate_bound_s == pytest.approx(1_937_500 / 3.01)


def test_the_fixed_order_is_c4s_ideal() -> None:
    sizes, bandwidth = [4, 1, 8], np.array([3.0, 1.0, 2.0])
    group = Group(tuple(sizes), (1, 1, 1))
    collective = Collective(REDUCE, 1e6, "dp")
    best = balanced_schedule(collective, group, bandwidth, _network(sizes))
    ideal = traffic_bytes(collective, group) / bandwidth
    assert best.hierarchical_time_s == ideal.max()
    assert {i for share in best.split for i in share.order} == {0, 2}


def test_in_network_reduction_shifts_the_split() -> None:
    """4 x 8, dim2 reduces: 1e6/4 after dim1 (1.75e6 in sum), 1e6 before it (1,187,500 in sum)."""
    best = _schedule(REDUCE, [4, 8], [3.0, 1.0], (1,))
    assert best.hierarchical_time_s == pytest.approx(500_000)
    assert best.aggregate_bound_s == pytest.approx(1_187_500 / 4)
    grid = [
        max((x * 1.5e6 + (1 - x) * 187_500) / 3, x * 0.25e6 + (1 - x) * 1e6)
        for x in np.linspace(0, 1, 10_001)
    ]
    assert best.time_s == pytest.approx(min(grid), rel=1e-4)


def test_too_many_dimensions_and_no_bandwidth_are_refused() -> None:
    assert _schedule(REDUCE, [2] * MAX_DIMS, [1.0] * MAX_DIMS).time_s > 0
    with pytest.raises(SpecError, match="got a group over 7 dimensions, expected at most 6"):
        _schedule(REDUCE, [2] * 7, [1.0] * 7)
    with pytest.raises(SpecError, match="got 0 GB/s for dim2"):
        _schedule(REDUCE, [2, 2], [1.0, 0.0])
    assert _schedule(REDUCE, [1, 1], [0.0, 0.0]).gain == 1
