"""The least imbalance against brute force over all whole splits, and limits of FIM."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.routing.loads import (
    _weighted_floor_percent,
    fim_floor_percent,
    fim_percent,
    max_over_mean,
    overall_fim_percent,
)
from tests.fim_reference import best_integer_fim_percent, worst_fim_percent

SMALL_GROUPS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=3)
LARGE_GROUPS = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 40)), min_size=1, max_size=9)
COUNTS = st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any)


def _splits(n_flows: int, n_links: int) -> Iterator[tuple[int, ...]]:
    """All ways to put whole flows on links."""
    if n_links == 1:
        yield (n_flows,)
        return
    for first in range(n_flows + 1):
        yield from ((first, *rest) for rest in _splits(n_flows - first, n_links - 1))


def _brute_force(groups: list[tuple[int, int]], capacity: list[float] | None) -> float:
    splits = itertools.product(*(list(_splits(*group)) for group in groups))
    counts = np.array([sum(split, ()) for split in splits])
    return float(fim_percent(counts, capacity).min())


@given(SMALL_GROUPS.filter(lambda groups: sum(demand for demand, _ in groups) > 0))
def test_the_floor_is_the_least_of_all_splits(groups) -> None:
    demand, n_links = zip(*groups, strict=True)
    floor = fim_floor_percent(demand, n_links)
    assert floor == pytest.approx(_brute_force(groups, None), abs=1e-9)


@given(SMALL_GROUPS.filter(lambda groups: sum(demand for demand, _ in groups) > 0), st.data())
def test_the_floor_with_capacities_is_the_least_of_all_splits(groups, data) -> None:
    demand, n_links = zip(*groups, strict=True)
    sizes = st.sampled_from([1.0, 2.0, 3.0, 0.7, 10.0])
    capacity = [data.draw(sizes) for _ in range(sum(n_links))]
    floor = fim_floor_percent(demand, n_links, capacity=capacity)
    assert floor == pytest.approx(_brute_force(groups, capacity), abs=1e-9)


@given(LARGE_GROUPS.filter(lambda groups: sum(demand for demand, _ in groups) > 0))
def test_the_closed_form_equals_the_placing_of_single_flows(groups) -> None:
    demand, n_links = (np.array(column) for column in zip(*groups, strict=True))
    group = np.repeat(np.arange(demand.size), n_links)
    share = np.full(group.size, 1 / group.size)
    placed = _weighted_floor_percent(demand, group, share)
    assert fim_floor_percent(demand, n_links) == pytest.approx(placed, abs=1e-9)


@given(LARGE_GROUPS, st.data())
def test_failed_links_leave_the_floor_of_the_others(groups, data) -> None:
    """With links of capacity 0 anywhere in the groups, as if those had never been there."""
    demand, n_links = zip(*groups, strict=True)
    n_failed = [data.draw(st.integers(0, 2)) for _ in groups]
    capacity = [c for k, f in zip(n_links, n_failed, strict=True) for c in [0.0] * f + [400.0] * k]
    wired = np.add(n_links, n_failed)
    with_failures = fim_floor_percent(demand, wired, capacity=capacity)
    assert np.array_equal(with_failures, fim_floor_percent(demand, n_links), equal_nan=True)


@given(COUNTS)
def test_fim_lies_between_the_best_split_and_one_link(counts) -> None:
    n, k = sum(counts), len(counts)
    fim = float(fim_percent(counts))
    assert best_integer_fim_percent(n, k) - 1e-9 <= fim <= worst_fim_percent(k) + 1e-9
    assert fim_floor_percent([n], [k]) == pytest.approx(float(best_integer_fim_percent(n, k)))


@given(COUNTS, st.randoms(use_true_random=False), st.sampled_from([1.0, 3.0, 12.5e9]))
def test_fim_does_not_depend_on_the_order_or_on_equal_capacities(counts, random, unit) -> None:
    fim = fim_percent(counts)
    shuffled = random.sample(counts, len(counts))
    assert fim_percent(shuffled) == fim
    assert fim_percent(counts, [unit] * len(counts)) == pytest.approx(float(fim))
    peak = max_over_mean(counts, [unit] * len(counts))
    assert peak == pytest.approx(max(counts) / np.mean(counts))


@given(COUNTS, st.lists(st.floats(0.5, 8), min_size=12, max_size=12))
def test_fim_equals_the_sum_written_out(counts, sizes) -> None:
    capacity = sizes[: len(counts)]
    ideals = [sum(counts) * c / sum(capacity) for c in capacity]
    terms = [abs(n - ideal) / ideal for n, ideal in zip(counts, ideals, strict=True)]
    assert fim_percent(counts, capacity) == pytest.approx(100 * np.mean(terms), abs=1e-9)
    assert overall_fim_percent([counts], [capacity]) == pytest.approx(
        100 * np.mean(terms), abs=1e-9
    )
