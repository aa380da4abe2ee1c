"""Rates and finish times against exact arithmetic on random fabrics, and what must hold always."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from libra_planner.routing import kernels as _compile
from libra_planner.routing import rates
from libra_planner.routing.kernels import rates as _rates_kernel
from libra_planner.routing.rates import finish_times_s, max_min_rates
from libra_planner.routing.routes import Routes, single_paths
from tests.flows_reference import (
    paths_of,
    plain_finish_times,
    plain_max_min,
    worst_violation,
)

# Few distinct values make ties; the wide ones rates that differ by 1e6 and more.
CAPACITIES = st.one_of(
    st.sampled_from([1.0, 2.0, 3.0]),
    st.sampled_from([0.0, 1.0, 12.5e9, 12.5e3]),
    st.floats(1e3, 1e12),
)
SIZES = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0]), st.integers(0, 10**12).map(float), st.just(1e9)
)
FRACTIONS = st.sampled_from([1.0, 1 / 2, 1 / 3, 1 / 7, 0.3, 1e-3])


def routes_of(paths: list[list[tuple[int, float]]]) -> Routes:
    start = np.cumsum([0, *map(len, paths)])
    hops = [hop for path in paths for hop in path]
    link, fraction = ([hop[i] for hop in hops] for i in (0, 1))
    return Routes(start, np.array(link, dtype=np.int64), np.array(fraction, dtype=np.float64))


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Routes, NDArray[np.float64]]:
    """Any links and routes: shared, idle, dead, crossed twice; flows without hops; no flows."""
    n_links = draw(st.integers(1, 8))
    fractions = draw(st.sampled_from([st.just(1.0), FRACTIONS]))
    hop = st.tuples(st.integers(0, n_links - 1), fractions)
    paths = draw(st.lists(st.lists(hop, max_size=4), max_size=12))
    capacity = draw(st.lists(CAPACITIES, min_size=n_links, max_size=n_links))
    return routes_of(paths), np.array(capacity)


def exactly(values: NDArray[np.float64]) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


def same(found: NDArray[np.float64], expected: list[Any]) -> None:
    np.testing.assert_allclose(found, np.array([float(x) for x in expected]), rtol=1e-9, atol=0)


@given(fabrics())
def test_rates_are_those_of_exact_arithmetic(fabric: tuple[Routes, NDArray[np.float64]]) -> None:
    routes, capacity = fabric
    found = max_min_rates(routes, capacity)
    same(found, plain_max_min(paths_of(routes, Fraction), exactly(capacity)))
    assert worst_violation(routes, capacity, np.where(np.isinf(found), 0, found)) < 1e-9


@given(fabrics(), st.data())
def test_ends_are_those_of_exact_arithmetic(
    fabric: tuple[Routes, NDArray[np.float64]], data: st.DataObject
) -> None:
    routes, capacity = fabric
    sizes = st.one_of(
        st.lists(SIZES, min_size=routes.n_flows, max_size=routes.n_flows),
        SIZES.map(lambda size: [size] * routes.n_flows),
    )
    size_bytes = np.array(data.draw(sizes))
    found = finish_times_s(routes, capacity, size_bytes)
    exact = paths_of(routes, Fraction), exactly(capacity), exactly(size_bytes)
    same(found, plain_finish_times(*exact))


def leaf_spine(seed: int, n_flows: int, n_leaves: int, n_hosts: int) -> tuple[Routes, Any]:
    """Flows between random hosts over random spines, as many as leaves; host links of 2."""
    rng = np.random.default_rng(seed)
    n_up = n_leaves * n_leaves
    src, dst = rng.integers(0, n_leaves * n_hosts, (2, n_flows))
    spine = rng.integers(0, n_leaves, n_flows)
    first = 2 * n_leaves * n_hosts
    up = first + src // n_hosts * n_leaves + spine
    down = first + n_up + dst // n_hosts + spine * n_leaves
    outside = src // n_hosts != dst // n_hosts
    links = [src, np.where(outside, up, -1), np.where(outside, down, -1), dst + first // 2]
    routes = single_paths(np.stack(links, axis=1))
    return routes, np.repeat([2.0, 1.0], [first, 2 * n_up])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_leaf_spine_with_more_flows_than_a_block(seed: int, is_mixed: bool) -> None:
    n_flows = _rates_kernel._BLOCK + 44
    routes, capacity = leaf_spine(seed, n_flows, 6, 4)
    rng = np.random.default_rng(seed)
    size_bytes = rng.uniform(1, 100, n_flows) if is_mixed else np.ones(n_flows)
    plain = paths_of(routes), capacity.tolist(), size_bytes.tolist()
    same(max_min_rates(routes, capacity), plain_max_min(*plain[:2]))
    same(finish_times_s(routes, capacity, size_bytes), plain_finish_times(*plain))


@given(st.integers(2, 20), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_shortest_paths_on_random_graphs(n_nodes: int, n_flows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.random_labeled_tree(n_nodes, seed=seed % 2**31)
    graph.add_edges_from(rng.integers(0, n_nodes, (n_nodes, 2)).tolist())
    link = {edge: i for i, edge in enumerate(graph.to_directed().edges)}
    capacity = rng.choice([1.0, 2.5, 10.0, 1e6], len(link))
    ends = rng.integers(0, n_nodes, (n_flows, 2)).tolist()
    nodes = [nx.shortest_path(graph, src, dst) for src, dst in ends]
    routes = routes_of([[(link[hop], 1.0) for hop in pairwise(path)] for path in nodes])
    found = max_min_rates(routes, capacity)
    assert all(np.isinf(found) == [src == dst for src, dst in ends])
    assert worst_violation(routes, capacity, np.where(np.isinf(found), 0, found)) < 1e-9


def test_the_certificate_can_fail() -> None:
    routes, capacity = single_paths([[0, -1], [0, 1]]), np.array([10.0, 4.0])
    assert worst_violation(routes, capacity, [6.0, 4.0]) == 0
    assert worst_violation(routes, capacity, [6.1, 4.0]) > 0.009  # over capacity
    assert worst_violation(routes, capacity, [5.9, 4.0]) > 0.009  # not full
    assert worst_violation(routes, capacity, [7.0, 3.0]) > 0.09  # not fair


def test_the_order_of_flows_does_not_matter() -> None:
    routes, capacity = leaf_spine(5, 600, 8, 4)
    size_bytes = np.random.default_rng(5).uniform(1, 100, 600)
    order = np.random.default_rng(6).permutation(600)
    paths = paths_of(routes)
    shuffled = routes_of([list(paths[f]) for f in order])
    same(max_min_rates(shuffled, capacity), list(max_min_rates(routes, capacity)[order]))
    ends = finish_times_s(routes, capacity, size_bytes)
    same(finish_times_s(shuffled, capacity, size_bytes[order]), list(ends[order]))


@pytest.mark.parametrize("seed", range(3))
def test_ends_that_differ_by_rounding_are_one_event(seed: int) -> None:
    routes, capacity = leaf_spine(seed, 2000, 8, 8)
    ends = np.unique(finish_times_s(routes, capacity / 3, np.full(2000, 0.1)))
    assert len(ends) > 20
    assert np.min(np.diff(ends) / ends[1:]) > 0.9e-12


def test_progress_is_told_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MAX_WORK", 1)
    calls: list[tuple[int, int]] = []
    routes = single_paths([[0], [0], [1], [-1]])
    finish_times_s(
        routes, [1.0, 0.0], [1.0, 2.0, 1.0, 1.0], progress=lambda *call: calls.append(call)
    )
    assert calls[:2] == [(2, 4), (3, 4)]  # The third cannot end, the fourth has no way to go.
    assert calls[-1] == (3, 4)


def test_an_interrupt_leaves_from_progress() -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish_times_s(single_paths([[0]]), [1.0], [1.0], progress=stop)


def test_inputs_are_left_alone() -> None:
    routes, capacity, sizes = single_paths([[0], [0]]), np.array([10.0]), np.array([1.0, 2.0])
    for array in (routes.start, routes.link, routes.fraction, capacity, sizes):
        array.setflags(write=False)
    finish_times_s(routes, capacity, sizes)
    assert (capacity, *sizes) == (10.0, 1.0, 2.0)


ROUTES = single_paths([[0], [1]])
RATES_FAULTS = [
    ([[1.0], [1.0]], r"shape \(2, 1\)"),
    ([1.0], "got link 1, expected less than 1"),
    ([1.0, -1.0], "capacities"),
    ([1.0, float("nan")], "capacities"),
    ([1.0, float("inf")], "capacities"),
]


@pytest.mark.parametrize(("capacity", "message"), RATES_FAULTS)
def test_capacities_that_do_not_fit(capacity: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        max_min_rates(ROUTES, capacity)
    with pytest.raises(ValueError, match=message):
        finish_times_s(ROUTES, capacity, [1.0, 1.0])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [([1.0], r"shape \(1,\)"), ([1.0, -1.0], "sizes"), ([1.0, float("nan")], "sizes")],
)
def test_sizes_that_do_not_fit(sizes: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finish_times_s(ROUTES, [1.0, 1.0], sizes)


@pytest.mark.parametrize(
    ("start", "link", "fraction", "message"),
    [
        ([], [], [], "begins with 0"),
        ([1, 2], [0, 0], [1.0, 1.0], "begins with 0"),
        ([0, 2, 1], [0], [1.0], "rise"),
        ([0, 1], [0, 0], [1.0, 1.0], "rise"),
        ([0, 1], [0], [1.0, 1.0], "shape"),
        ([0, 1], [-1], [1.0], "got link -1"),
        ([0, 1], [0], [0.0], "fractions"),
        ([0, 1], [0], [1.5], "fractions"),
        ([0, 1], [0], [float("nan")], "fractions"),
    ],
)
def test_routes_that_do_not_fit(
    start: list[int], link: list[int], fraction: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Routes(np.array(start), np.array(link), np.array(fraction))


def test_tables_of_links_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="expected integers"):
        single_paths([0, 1])
    with pytest.raises(ValueError, match="expected integers"):
        single_paths([[0.0]])
    with pytest.raises(ValueError, match="got link -2"):
        single_paths([[-2]])


@given(fabrics())
def test_counts_are_sums_of_fractions(fabric: tuple[Routes, NDArray[np.float64]]) -> None:
    routes, capacity = fabric
    expected = np.zeros(len(capacity))
    for flow, path in enumerate(paths_of(routes)):
        assert routes.of(flow).tolist() == [j for j, _ in path]
        for j, fraction in path:
            expected[j] += fraction
    assert routes.counts(len(capacity)).dtype == np.float64
    np.testing.assert_allclose(routes.counts(len(capacity)), expected, rtol=1e-14)


def test_counts_of_fewer_links_than_are_used() -> None:
    with pytest.raises(ValueError, match="got link 1"):
        ROUTES.counts(1)


def test_without_a_folder_for_machine_code_rates_compile_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def njit(**options: object) -> Any:
        calls.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function")
        return lambda function: function

    monkeypatch.setattr(_compile.numba, "njit", njit)
    assert _compile.kept(max).__wrapped__ is max
    assert [call.get("cache") for call in calls] == [True, None]


def test_machine_code_on_disk_is_indexed_by_plain_types() -> None:
    """With a class of ours in it, an index written before that class moved cannot be read."""
    finish_times_s(ROUTES, [1.0, 1.0], [1.0, 1.0])
    for kept in (_rates_kernel.start, _rates_kernel.follow):
        function = kept.__wrapped__  # What keeps interrupts is around it.
        assert len(function.signatures) == 1
        assert "Tuple((Array(" in str(function.signatures)
        assert "State" not in str(function.signatures)
