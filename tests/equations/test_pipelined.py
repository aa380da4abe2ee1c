"""The convex pipelined model (C4): by hand, its limits, and against the exact flow shop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import (
    Network,
    flow_shop,
    plain_network,
    real_link_slowdown,
    traffic_bytes,
)
from libra_planner.step.collectives.models import Pipelined
from libra_planner.step.critical_path import COMPUTE, critical_path
from libra_planner.step.expression import Maximum, Sum, TimeExpression
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Communicators,
    Group,
    Operation,
    Phase,
    Workload,
)
from tests.workloads import step_time

REDUCE = CollectiveKind.ALL_REDUCE


def _expression(
    kind: CollectiveKind, network: Network, n_chunks: int, size: float
) -> TimeExpression:
    group = Group(network.topology.sizes, (1,) * network.topology.n_dims)
    node = Pipelined(n_chunks).time(Collective(kind, size, "dp"), group, network)
    return TimeExpression(node, network.topology.n_dims)


def test_all_reduce_by_hand() -> None:
    """64 B over RI(4)_SW(2), 4 chunks, 1 s a hop, B = (8, 2) bytes/s.

    A chunk of 16 B: dim1 12 B in 3 steps (1.5 + 3 s) twice, dim2 4 B in 2 steps of two hops
    (2 + 4 s): 15 s; dim1 is busier (9 s against 6): 15 + 3 * 9 = 42 s.
    """
    network = Network(parse_topology("RI(4)_SW(2)"), (1.0, 1.0), (None, None))
    step = _expression(REDUCE, network, 4, 64.0)
    assert step.seconds(np.array([8.0, 2.0])) == pytest.approx(42.0, rel=1e-15)
    assert step.least_s == pytest.approx(10 + 3 * 6)
    assert step.seconds(np.array([0.0, 2.0])) == np.inf


@pytest.mark.parametrize("kind", [REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER])
def test_many_chunks_without_latency_are_ideal(kind: CollectiveKind) -> None:
    network = plain_network(parse_topology("RI(4)_FC(8)_SW(6)_SW(32)"))
    bandwidth = np.array([100.0, 20.0, 3.0, 7.0])
    group = Group(network.topology.sizes, (1,) * 4)
    ideal = (traffic_bytes(Collective(kind, 1e6, "dp"), group) / bandwidth).max()
    model = _expression(kind, network, 10**9, 1e6).seconds(bandwidth)
    assert model == pytest.approx(ideal, rel=1e-7)
    few = [float(_expression(kind, network, k, 1e6).seconds(bandwidth)) for k in (1, 2, 4, 64)]
    assert few == sorted(few, reverse=True)
    assert few[-1] > ideal


@given(
    kind=st.sampled_from(CollectiveKind),
    latency_s=st.sampled_from([0.0, 5e-7]),
    n_chunks=st.integers(1, 70),
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=5),
    data=st.data(),
)
def test_exact_where_no_dimension_is_met_twice(
    kind: CollectiveKind, latency_s: float, n_chunks: int, sizes: list[int], data: st.DataObject
) -> None:
    """Equal to the flow shop for one-way collectives; an all-reduce has bounds only."""
    blocks = data.draw(
        st.lists(st.sampled_from(["RI", "FC", "SW"]), min_size=len(sizes), max_size=len(sizes))
    )
    topology = parse_topology("_".join(f"{b}({n})" for b, n in zip(blocks, sizes, strict=True)))
    network = Network(topology, (latency_s,) * len(sizes), (None,) * len(sizes))
    bandwidth = data.draw(st.lists(st.floats(1e9, 1e12), min_size=len(sizes), max_size=len(sizes)))
    group = Group(topology.sizes, (1,) * len(sizes))
    exact = flow_shop(Collective(kind, 1e7, "dp"), group, network, bandwidth, n_chunks=n_chunks)
    model = float(_expression(kind, network, n_chunks, 1e7).seconds(np.array(bandwidth)))
    if kind is not REDUCE or n_chunks == 1 or len(sizes) == 1:
        assert exact.time_s == pytest.approx(model, rel=1e-12)
    else:
        # Both terms of the model are bounds on the exact time, so it is at most twice that.
        assert exact.time_s >= 0.5 * model
        if len(sizes) == 2:  # A middle dimension may starve; two dimensions have none.
            assert exact.time_s <= model * (1 + 1e-12)


def test_partial_groups_have_their_own_links() -> None:
    """2 of RI(4) and 4 of FC(8) with many chunks: the ideal times by C6's slowdowns."""
    topology = parse_topology("RI(4)_FC(8)")
    group = Group((2, 4), (1, 1))
    for kind in (REDUCE, CollectiveKind.ALL_GATHER):
        collective = Collective(kind, 1e6, "tp")
        slow = traffic_bytes(collective, group) * real_link_slowdown(collective, group, topology)
        node = Pipelined(10**9).time(collective, group, plain_network(topology))
        for bandwidth in (np.array([1.0, 100.0]), np.array([100.0, 1.0])):
            seconds = TimeExpression(node, 2).seconds(bandwidth)
            assert seconds == pytest.approx((slow / bandwidth).max(), rel=1e-7)


def test_in_network_reduction_halves_the_outermost_switch() -> None:
    topology = parse_topology("SW(1024)")
    plain = _expression(REDUCE, plain_network(topology), 8, 1e6)
    reduced = _expression(REDUCE, Network(topology, (0.0,), (None,), frozenset({0})), 8, 1e6)
    ratio = plain.seconds(np.array([1.0])) / reduced.seconds(np.array([1.0]))
    assert ratio == pytest.approx(2 * 1023 / 1024)


def _workload(sizes: list[float]) -> tuple[Workload, Communicators]:
    operations = tuple(
        Operation(f"layer{i}", Phase.WEIGHT_GRAD, 1.0, Collective(REDUCE, size, "dp"))
        for i, size in enumerate(sizes)
    )
    groups = {(Phase.WEIGHT_GRAD, "dp"): Group((4, 8), (1, 1))}
    return Workload("w", operations), Communicators(groups)


def test_collectives_of_one_group_merge_into_two_transfers_and_a_maximum() -> None:
    """100 sizes, no latency: a solver sees one term per dimension and one maximum."""
    workload, communicators = _workload([1e6 * (i + 1) for i in range(100)])
    network = plain_network(parse_topology("RI(4)_SW(8)"))
    merged = step_time(workload, communicators, 2, model=Pipelined(4), network=network).merged
    assert isinstance(merged, Sum)
    assert [type(term).__name__ for term in merged.terms].count("Transfer") == 2
    assert sum(isinstance(term, Maximum) for term in merged.terms) == 1
    assert len(merged.terms) == 4


def test_latency_is_communication_not_compute() -> None:
    workload, communicators = _workload([1e6])
    network = Network(parse_topology("RI(4)_SW(8)"), (1e-3, 1e-3), (None, Algorithm.RING))
    step = step_time(workload, communicators, 2, model=Pipelined(1), network=network)
    assert step.compute_s == 1.0
    assert step.least_s == pytest.approx(1.0 + 6e-3 + 14 * 2e-3)
    shares = critical_path(step, np.array([1e9, 1e9]))
    assert {(share.label, share.dims) for share in shares} == {
        (COMPUTE, ()),
        ("weight grad DP all-reduce", ()),
        ("weight grad DP all-reduce", (0,)),
        ("weight grad DP all-reduce", (1,)),
    }
    total = sum(share.seconds for share in shares)
    assert total == pytest.approx(float(step.seconds(np.array([1e9, 1e9]))))
