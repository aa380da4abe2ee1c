"""Closed forms worked by hand: traffic (C3), optimal splits, cost (C7)."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from libra_planner.costs.prices import PriceBook, TierPrice, network_price_usd_per_Bps
from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Rule
from libra_planner.step.collectives.algorithms import real_link_slowdown, traffic_bytes
from libra_planner.step.expression import Constant, TimeExpression, add, transfers
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.problems import plan_of

FABRIC = parse_topology("RI(4)_FC(8)_RI(4)_SW(32)")


def _traffic(kind: str, size: float, sizes: tuple[int, ...], *, shard: bool = False) -> list[float]:
    group = Group(sizes, (1,) * len(sizes))
    return traffic_bytes(Collective(CollectiveKind(kind), size, "tp", shard), group).tolist()


def test_all_reduce_by_hand() -> None:
    """m = 64 over 4 x 2: reduce-scatter sends 48 of 64, then 8 of 16; all-gather the same back."""
    assert _traffic("all-reduce", 64, (4, 2, 1)) == [96, 16, 0]


def test_reduce_scatter_by_hand() -> None:
    assert _traffic("reduce-scatter", 64, (4, 1, 2)) == [48, 0, 8]


def test_all_gather_from_a_shard_by_hand() -> None:
    """Shard 8 over 4 x 2: the last dimension first sends 8, then 3 times what 2 hold (16)."""
    assert _traffic("all-gather", 8, (4, 2), shard=True) == [48, 8]
    assert _traffic("all-gather", 64, (4, 2)) == [48, 8]


def test_all_to_all_by_hand() -> None:
    """Each NPU sends (g - 1)/g of its 64 bytes away in each dimension; nothing shrinks."""
    assert _traffic("all-to-all", 64, (4, 2, 1)) == [48, 32, 0]


def test_gpt3_all_reduce_over_part_of_a_dimension() -> None:
    """GPT-3's 805,306,368 B over TP 16 = 4 x 4 of RI(4)_FC(8)."""
    assert _traffic("all-reduce", 805306368, (4, 4, 1, 1)) == [1207959552, 301989888, 0, 0]


def _split(bytes_by_dim: list[list[float]], budget: float, compute_s: float) -> tuple:
    terms = [Constant(compute_s), *map(transfers, bytes_by_dim)]
    n_dims = len(bytes_by_dim[0])
    topology = parse_topology("_".join(["SW(4)"] * n_dims))
    rule = Rule("total == X", (1.0,) * n_dims, "==", budget)
    expression = TimeExpression(add(terms), n_dims)
    design = optimize(plan_of("p", "w", topology, expression, np.ones(n_dims), (rule,)))
    return design.objective, design.bandwidth_bytes_per_s


def test_one_pattern_gets_bandwidth_in_proportion_to_its_traffic() -> None:
    traffic = [96e9, 16e9, 4e9, 0.25e9]
    seconds, bandwidth = _split([traffic], 500e9, 0.25)
    expected = np.array(traffic) / sum(traffic) * 500e9
    assert np.allclose(bandwidth, expected, rtol=1e-9)
    assert seconds == pytest.approx(0.25 + sum(traffic) / 500e9, rel=1e-12)


def test_two_disjoint_groups_under_one_budget() -> None:
    """T = compute + (sum over groups of sqrt(group traffic))^2 / X."""
    tensor, data = [96e9, 16e9], [4e9, 0.25e9]
    seconds, bandwidth = _split([[*tensor, 0, 0], [0, 0, *data]], 500e9, 0.5)
    root = sqrt(sum(tensor)) + sqrt(sum(data))
    assert seconds == pytest.approx(0.5 + root**2 / 500e9, rel=1e-12)
    share = sqrt(sum(tensor)) / root
    assert bandwidth[:2].sum() == pytest.approx(share * 500e9, rel=1e-9)
    assert bandwidth[0] / bandwidth[1] == pytest.approx(6, rel=1e-9)


def test_three_disjoint_groups_under_one_budget() -> None:
    traffic = [[9e9, 0, 0], [0, 4e9, 0], [0, 0, 1e9]]
    seconds, bandwidth = _split(traffic, 60e9, 0.0)
    assert seconds == pytest.approx(36e9 / 60e9, rel=1e-12)
    assert np.allclose(bandwidth, [30e9, 20e9, 10e9], rtol=1e-8)


def test_cost_counts_links_nics_and_switches() -> None:
    """C7 on 1,024 NPUs: $2 links inside, (7.8 + 18 + 31.6) $ per GB/s at the switch."""
    book = PriceBook("b", {"chiplet": TierPrice(2.0), "pod": TierPrice(7.8, 18.0, 31.6)})
    fabric = parse_topology("FC(32)_SW(32)", ["chiplet", "pod"])
    price = network_price_usd_per_Bps(fabric, book)
    assert np.allclose(price * 1e9, [2048.0, 1024 * 57.4])


def test_links_of_a_dimension() -> None:
    """C2: a ring NPU has two links of B/2, a fully connected one n - 1 of B/(n - 1)."""
    links = [(d.n_links_per_npu, d.link_bandwidth_bytes_per_s(84.0)) for d in FABRIC.dimensions]
    assert links == [(2, 42.0), (7, 12.0), (2, 42.0), (1, 84.0)]


@pytest.mark.parametrize(
    ("kind", "sizes", "strides", "expected"),
    [
        # 4 of FC(8) have 3 of 7 links; half of RI(4) is a line with one link each way.
        ("all-reduce", (2, 4, 1, 8), (1, 1, 1, 1), [2, 7 / 3, 1, 1]),
        # Two groups of 2 interleaved around RI(4) close the ring and share its links.
        ("all-reduce", (1, 1, 2, 1), (1, 1, 2, 1), [1, 1, 2, 1]),
        # Whole dimensions lose nothing.
        ("all-reduce", (4, 8, 4, 32), (1, 1, 1, 1), [1, 1, 1, 1]),
    ],
)
def test_partial_groups_on_real_links(kind, sizes, strides, expected) -> None:
    collective = Collective(CollectiveKind(kind), 1.0, "tp")
    factors = real_link_slowdown(collective, Group(sizes, strides), FABRIC)
    assert np.allclose(factors, expected)


def test_all_to_all_on_part_of_a_ring_counts_the_busiest_link() -> None:
    """4 of RI(8): the middle link carries 2 x 2 pairs of m/4 at B/2, against 3m/4 at B."""
    ring = parse_topology("RI(8)")
    collective = Collective(CollectiveKind.ALL_TO_ALL, 1.0, "tp")
    factor = real_link_slowdown(collective, Group((4,), (1,)), ring)[0]
    assert factor * (3 / 4) == pytest.approx((4 / 4) / (1 / 2))
