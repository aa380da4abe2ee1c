"""C10: the Flow Imbalance Metric by hand, its closed forms, and hashing against them."""

from __future__ import annotations

from fractions import Fraction
from math import comb, nan

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.routing.ecmp import HASHES, choice, flow_hash, rocev2_headers
from libra_planner.routing.loads import (
    distribution,
    fim_floor_percent,
    fim_percent,
    max_over_mean,
    overall_fim_percent,
)
from tests.fim_reference import (
    TABLE,
    best_integer_fim_percent,
    expected_fim_percent,
    worst_fim_percent,
)

N_SETS = 10_000
N_SETS_OF_TABLE = 4_000


@pytest.mark.parametrize(
    ("counts", "fim", "peak"),
    [
        ([8, 0, 0, 0], 150, 4),  # (3 + 1 + 1 + 1) / 4
        ([2, 2, 2, 2], 0, 1),
        ([3, 1], 50, 1.5),
        ([2, 1, 1, 0], 50, 2),
        ([1, 0, 0, 0, 0], 160, 5),
        ([0.5, 0.5, 0.5, 2.5], 75, 2.5),  # ideal 1: (1/2 + 1/2 + 1/2 + 3/2) / 4
        ([7], 0, 1),
    ],
)
def test_fim_by_hand(counts, fim, peak) -> None:
    assert fim_percent(counts) == pytest.approx(fim, abs=1e-12)
    assert max_over_mean(counts) == pytest.approx(peak)


def test_fim_weighted_by_capacity_by_hand() -> None:
    """Capacities 2, 1, 1 and 8 flows: ideals 4, 2, 2; 6, 2, 0 deviates by 1/2, 0 and 1."""
    assert fim_percent([6, 2, 0], [200, 100, 100]) == pytest.approx(50)
    assert max_over_mean([6, 2, 0], [200, 100, 100]) == pytest.approx(1.5)
    assert fim_percent([4, 2, 2], [2, 1, 1]) == pytest.approx(0, abs=1e-12)


def test_failed_links_are_left_out_and_idle_links_are_not() -> None:
    assert fim_percent([4, 0, 0, 0], [1, 1, 0, 0]) == pytest.approx(100)
    assert fim_percent([4, 0, 0, 0]) == pytest.approx(150)
    assert fim_percent([[2, 2, 0], [2, 0, 2]], [[1, 1, 0], [1, 0, 1]]).tolist() == [0, 0]
    assert max_over_mean([4, 2, 0, 0], [1, 1, 0, 0]) == pytest.approx(4 / 3)


def test_a_layer_without_flows_has_no_fim() -> None:
    assert np.isnan(fim_percent([0, 0, 0]))
    assert np.isnan(max_over_mean([0, 0, 0]))
    assert np.isnan(fim_percent([0, 0], [0, 0]))
    assert np.isnan(max_over_mean([0, 0], [0, 0]))
    assert np.isnan(fim_floor_percent([0, 0], [2, 2]))
    assert np.isnan(expected_fim_percent(0, 4))
    assert np.isnan(best_integer_fim_percent(0, 4))
    assert np.isnan(overall_fim_percent([[0, 0], [0]]))
    many = fim_percent([[8, 0, 0, 0], [0, 0, 0, 0]])
    assert many[0] == 150
    assert np.isnan(many[1])


def test_overall_fim_by_hand() -> None:
    """(3 + 1 + 1 + 1) over four links and (1/2 + 1/2) over two: 7 / 6; the idle layer is left out."""
    assert overall_fim_percent([[8, 0, 0, 0], [3, 1], [0, 0, 0]]) == pytest.approx(700 / 6)
    by_capacity = overall_fim_percent([[6, 2, 0], [3, 1]], [[2, 1, 1], None])
    assert by_capacity == pytest.approx(100 * (1.5 + 1) / 5)
    seeds = overall_fim_percent([[[4, 0], [2, 2]], [[0, 0], [0, 2]]])
    assert seeds.tolist() == [100, 50]


def test_worst_and_best_fim_are_those_of_their_counts() -> None:
    assert worst_fim_percent(4) == fim_percent([9, 0, 0, 0]) == 150
    assert best_integer_fim_percent(6, 4) == pytest.approx(float(fim_percent([2, 2, 1, 1])))
    assert best_integer_fim_percent(6, 4) == pytest.approx(200 * 2 * 2 / (4 * 6))
    assert best_integer_fim_percent(1, 5) == worst_fim_percent(5)


def test_floor_by_hand() -> None:
    """Groups of 1 and 3 links with 3 and 3 flows: ideal 1.5, counts 3 | 1 1 1.

    (1.5 + 3 * 0.5) / 1.5 / 4 links = 50 %. Two leaves of 8 links with 10 and 4: ideal 7/8, counts
    2 2 1 1 1 1 1 1 | 1 1 1 1 0 0 0 0: (2 * 9/8 + 6/8 + 4/8 + 4 * 7/8) / (7/8) / 16 = 50 %.
    """
    assert fim_floor_percent([3, 3], [1, 3]) == pytest.approx(50)
    assert fim_floor_percent([10, 4], [8, 8]) == pytest.approx(50)
    assert fim_floor_percent([10], [4]) == pytest.approx(float(best_integer_fim_percent(10, 4)))


def test_floor_with_capacities_by_hand() -> None:
    """Capacities 3 and 1, five flows: ideals 3.75 and 1.25; 4 and 1 deviate by 1/15 and 1/5."""
    assert fim_floor_percent([5], [2], capacity=[3, 1]) == pytest.approx(100 * (1 / 15 + 1 / 5) / 2)
    assert fim_floor_percent([4, 4], [2, 2], capacity=[1, 1, 1, 0]) == pytest.approx(
        float(fim_percent([2, 2, 4]))
    )


def test_a_group_with_flows_and_no_working_link_is_named() -> None:
    with pytest.raises(SpecError, match="group 1 has 5 flows and no link that works"):
        fim_floor_percent([1, 5], [1, 2], capacity=[1, 0, 0])


# The closed form


@pytest.mark.parametrize(("n", "k", "mean", "sd", "peak"), TABLE)
def test_expected_fim_meets_the_table_to_its_digits(n, k, mean, sd, peak) -> None:
    assert round(float(expected_fim_percent(n, k)), 2) == mean


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (1, 5), (2, 3), (7, 7), (13, 4), (30, 6)])
def test_expected_fim_is_the_sum_over_all_loads_of_a_link(n, k) -> None:
    p, ideal = Fraction(1, k), Fraction(n, k)
    loads = (comb(n, x) * p**x * (1 - p) ** (n - x) * abs(x - ideal) for x in range(n + 1))
    assert expected_fim_percent(n, k) == pytest.approx(float(100 * sum(loads) / ideal), abs=1e-12)


def test_expected_fim_of_a_million_flows_meets_the_normal_limit() -> None:
    """sqrt(2/pi) of the relative sd sqrt((1-p)/(n p)); the next term is of order 1/(n p)."""
    limit = 100 * np.sqrt(2 / np.pi * (1 - 1 / 64) / (1e6 / 64))
    assert expected_fim_percent(1_000_000, 64) == pytest.approx(limit, rel=1e-4)


def test_expected_fim_broadcasts() -> None:
    assert expected_fim_percent([[16], [32]], [4, 8]).shape == (2, 2)


# Hashing of distinct random tuples


@pytest.fixture(scope="module")
def counts() -> dict[tuple[str, int, int], np.ndarray]:
    """Flows per link, shape (N_SETS, k), by hash function and row of the table.

    A row of n flows takes the first n of 1,024 random tuples per set. Of 2^80 tuples no two among
    10 million are equal (chance 4e-11).
    """
    rng = np.random.default_rng(2410)
    blocks = [_counts_of_block(rng, 500) for _ in range(N_SETS // 500)]
    return {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}


def _counts_of_block(
    rng: np.random.Generator, n_sets: int
) -> dict[tuple[str, int, int], np.ndarray]:
    words = rng.integers(0, 2**32, (3, n_sets, 1024), np.uint32)
    headers = rocev2_headers(words[0], words[1], src_port=words[2] >> 16)
    seeds = rng.integers(0, 2**32, (n_sets, 1), np.uint32)
    found = {}
    for function in HASHES:
        hashes = flow_hash(headers, function=function, seed=seeds)
        for n, k, *_ in TABLE:
            link = choice(hashes[:, :n], k) + k * np.arange(n_sets)[:, None]
            found[function, n, k] = np.bincount(link.ravel(), minlength=n_sets * k).reshape(-1, k)
    return found


@pytest.mark.parametrize("function", HASHES)
@pytest.mark.parametrize(("n", "k", "mean", "sd", "peak"), TABLE)
def test_each_hash_meets_the_table(counts, function, n, k, mean, sd, peak) -> None:
    """The mean within three standard errors; sd and peak also with the table's own error."""
    drawn = counts[function, n, k]
    assert np.all(drawn.sum(axis=1) == n)
    fim = distribution(fim_percent(drawn))
    assert abs(fim.mean - expected_fim_percent(n, k)) < 3 * fim.sd / np.sqrt(N_SETS)
    if not np.isnan(sd):
        # The error of an sd of m near-normal samples is sd / sqrt(2m), more with heavy tails.
        error = 1.3 * sd * np.sqrt(1 / (2 * N_SETS) + 1 / (2 * N_SETS_OF_TABLE))
        assert abs(fim.sd - sd) < 3 * error + 0.05
    top = distribution(max_over_mean(drawn))
    error = top.sd * np.sqrt(1 / N_SETS + 1 / N_SETS_OF_TABLE)
    assert abs(top.mean - peak) < 3 * error + (0.0005 if n == 1000 else 0.005)


# Statistics over seeds


def test_distribution_by_hand() -> None:
    """1, 2, 4, 5: mean 3, sd sqrt(10/3), p5 = 1 + 0.15, p95 = 4 + 0.85."""
    figures = distribution([5, nan, 1, 4, 2], n_bins=4)
    assert (figures.mean, figures.p50) == (3, 3)
    assert figures.sd == pytest.approx(np.sqrt(10 / 3))
    assert (figures.p5, figures.p95) == (pytest.approx(1.15), pytest.approx(4.85))
    assert figures.counts.tolist() == [1, 1, 0, 2]
    assert figures.edges.tolist() == [1, 2, 3, 4, 5]


def test_distribution_of_one_sample_and_of_none() -> None:
    one = distribution([7.25])
    assert (one.mean, one.sd, one.p5, one.p95) == (7.25, 0, 7.25, 7.25)
    assert one.counts.sum() == 1
    none = distribution([nan, nan])
    assert np.isnan([none.mean, none.sd, none.p5, none.p50, none.p95]).all()
    assert none.counts.size == 0


@pytest.mark.parametrize("value", [0.1, 0.0, 36.54, 1e-9, 3e17])
def test_equal_samples_have_no_spread_at_all(value) -> None:
    figures = distribution(np.full(49, value))
    assert figures.mean == figures.p5 == figures.p95 == value
    assert figures.sd == 0
    assert figures.counts.sum() == 49


def test_samples_that_differ_by_rounding_still_have_a_histogram() -> None:
    figures = distribution([1.0, np.nextafter(1.0, 2.0), 1.0])
    assert figures.counts.sum() == 3
    assert np.all(np.diff(figures.edges) > 0)
