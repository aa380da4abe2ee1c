"""Rounds of collectives and reduction trees against loops and figures worked by hand."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libra_planner.check import traffic
from libra_planner.check.traffic import Members, Round, rounds
from libra_planner.errors import SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.clos import Clos
from libra_planner.fabric.topology import parse_topology
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import reduction_trees
from libra_planner.step.collectives.algorithms import plain_network, traffic_bytes, visits
from libra_planner.workload.operations import Collective, CollectiveKind, Group

Coordinates = tuple[int, ...]


@st.composite
def members(draw: st.DrawFn, sizes: st.SearchStrategy[int] | None = None) -> Members:
    """Groups along one of up to three dimensions, perhaps a part of it, perhaps strided."""
    n_dims = draw(st.integers(1, 3))
    dim = draw(st.integers(0, n_dims - 1))
    size = draw(st.integers(2, 6) if sizes is None else sizes)
    stride, n_groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    shape = [draw(st.integers(2, 3)) for _ in range(n_dims)]
    shape[dim] = size * stride * n_groups
    topology = parse_topology("_".join(f"SW({n})" for n in shape))
    group_sizes, strides = [1] * n_dims, [1] * n_dims
    group_sizes[dim], strides[dim] = size, stride
    return Members(topology, dim, Group(tuple(group_sizes), tuple(strides)))


def groups(one: Members) -> list[list[int]]:
    """NPUs of every group by rank: those alike in all but the dimension, a stride apart there."""
    shape = one.topology.sizes
    size, stride = one.group.sizes[one.dim], one.group.strides[one.dim]
    found: dict[tuple[Coordinates, int, int], dict[int, int]] = defaultdict(dict)
    for npu, backwards in enumerate(itertools.product(*(range(n) for n in reversed(shape)))):
        at = list(reversed(backwards))  # The innermost dimension counts fastest.
        position = at.pop(one.dim)
        block, inside = divmod(position, size * stride)
        rank, offset = divmod(inside, stride)
        found[tuple(at), block, offset][rank] = npu
    return [[by_rank[r] for r in range(size)] for by_rank in found.values()]


def plain_rounds(one: Members, algorithm: Algorithm) -> list[Counter[tuple[int, int]]]:
    """Messages of every round as pairs of NPUs, group by group and rank by rank."""
    size = one.group.sizes[one.dim]
    steps: list[Counter[tuple[int, int]]] = []
    if algorithm is Algorithm.RING:
        offsets = [[lambda r: (r + 1) % size]]
    elif algorithm is Algorithm.DIRECT:
        offsets = [[lambda r, k=k: (r + k) % size for k in range(1, size)]]
    elif algorithm is Algorithm.DIRECT1:
        offsets = [[lambda r, k=k: (r + k) % size] for k in range(1, size)]
    else:
        distances = [2**j for j in range(8) if 2**j < size]
        offsets = [[lambda r, d=d: r - d if r // d % 2 else r + d] for d in distances]
    for peers in offsets:
        steps.append(
            Counter(
                (npus[r], npus[peer(r)])
                for npus in groups(one)
                for r in range(size)
                for peer in peers
            )
        )
    return steps


def pairs_of(sent: Round) -> Counter[tuple[int, int]]:
    return Counter(zip(sent.src.tolist(), sent.dst.tolist(), strict=True))


@given(members())
def test_members_are_those_of_the_loops(one: Members) -> None:
    expected = {npu: (g, r) for g, npus in enumerate(groups(one)) for r, npu in enumerate(npus)}
    assert len(expected) == one.topology.n_npus
    by_instance: dict[int, set[int]] = defaultdict(set)
    for npu, (instance, rank) in enumerate(zip(one.instance, one.rank, strict=True)):
        assert rank == expected[npu][1]
        by_instance[int(instance)].add(npu)
    assert sorted(map(sorted, by_instance.values())) == sorted(map(sorted, groups(one)))
    assert sorted(by_instance) == list(range(len(by_instance)))  # Numbered without gaps.


@pytest.mark.parametrize("algorithm", Algorithm)
@given(data=st.data())
def test_rounds_are_those_of_the_loops(algorithm: Algorithm, data: st.DataObject) -> None:
    powers = st.sampled_from([2, 4, 8]) if algorithm is Algorithm.HALVING_DOUBLING else None
    one = data.draw(members(powers))
    found = list(rounds(one, algorithm))
    assert [pairs_of(sent) for sent in found] == plain_rounds(one, algorithm)
    # Every NPU sends exactly its share, and receives as much.
    for end in ("src", "dst"):
        total = np.zeros(one.topology.n_npus)
        for sent in found:
            np.add.at(total, getattr(sent, end), sent.share)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    assert all(len(sent.src) == len(sent.dst) for sent in found)


@given(members())
def test_every_pair_meets_once_in_all_pairs(one: Members) -> None:
    expected = Counter((a, b) for npus in groups(one) for a in npus for b in npus if a != b)
    [at_once] = rounds(one, Algorithm.DIRECT)
    assert pairs_of(at_once) == expected
    in_turn = sum((pairs_of(sent) for sent in rounds(one, Algorithm.DIRECT1)), Counter())
    assert in_turn == expected


@pytest.mark.parametrize("kind", CollectiveKind)
@settings(max_examples=30)
@given(data=st.data())
def test_the_rounds_carry_the_bytes_of_the_collective(kind: CollectiveKind, data) -> None:
    """C3's bytes are the messages of the pipelined model, in the shares of the rounds (C4)."""
    one = data.draw(members(st.sampled_from([2, 4, 8])))
    collective = Collective(kind, 1e6, "dp")
    sent_bytes = traffic_bytes(collective, one.group)[one.dim]
    network = plain_network(one.topology)
    [visit] = visits(collective, one.group, network)
    assert visit.n_bytes == pytest.approx(sent_bytes)
    if kind is CollectiveKind.ALL_TO_ALL:
        found = list(rounds(one, Algorithm.DIRECT1))
    else:
        found = list(rounds(one, Algorithm.HALVING_DOUBLING))
        steps = zip(visit.message_bytes, visit.repeats, strict=True)
        by_step = [n_bytes * n for n_bytes, n in steps]
        np.testing.assert_allclose([sent.share * sent_bytes for sent in found], by_step)
    total = sum(sent.share * len(sent.src) for sent in found) * sent_bytes
    assert total == pytest.approx(one.topology.n_npus * sent_bytes)


def test_too_many_messages_at_once_are_refused(monkeypatch) -> None:
    one = Members(parse_topology("SW(8)"), 0, Group((8,), (1,)))
    monkeypatch.setattr(traffic, "MOST_MESSAGES", 55)
    with pytest.raises(SpecError, match=r"got 56 messages at once: all pairs in groups of 8"):
        list(rounds(one, Algorithm.DIRECT))
    monkeypatch.setattr(traffic, "MOST_MESSAGES", 56)
    [sent] = rounds(one, Algorithm.DIRECT)
    assert len(sent.src) == 56


# Trees ------------------------------------------------------------------------------------------


def names(fabric: Clos, links) -> set[str]:
    return {fabric.link_name(int(link)) for link in links}


def test_a_tree_on_two_leaves_by_hand() -> None:
    """Four hosts up, two leaves up to the root's spine, and all of it down: 12 links."""
    fabric = Clos(2, 2, 2, 1.0, 1.0)
    trees = reduction_trees(fabric, np.arange(4), np.zeros(4, dtype=int), np.array([1]))
    hosts = {f"host {h} -> leaf {h // 2}" for h in range(4)}
    leaves = {f"leaf {leaf} -> spine 1" for leaf in range(2)}
    up = hosts | leaves
    down = {" -> ".join(reversed(name.split(" -> "))) for name in up}
    assert names(fabric, trees.routes.of(0)) == up | down
    assert len(trees.routes.of(0)) == 12


def test_a_tree_inside_a_leaf_turns_there() -> None:
    fabric = Clos(2, 2, 2, 1.0, 1.0)
    trees = reduction_trees(fabric, np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1]))
    assert [len(trees.routes.of(g)) for g in range(2)] == [4, 4]
    assert trees.counts.tolist() == [1] * 4 + [0] * 8 + [1] * 4


def test_a_tree_over_pods_by_hand() -> None:
    """2 pods of 2 leaves of 2 hosts: 8 + 4 + 2 links up to one core, as many down."""
    fabric = Clos(2, 2, 2, 1.0, 1.0, n_pods=2, n_cores=2, core_Bps=1.0)
    # The second tree stays in pod 0, on its leaf 0 and 1.
    host = np.concatenate([np.arange(8), np.arange(4)])
    group = np.repeat([0, 1], [8, 4])
    trees = reduction_trees(fabric, host, group, np.array([3, 0]))
    tall, low = (names(fabric, trees.routes.of(g)) for g in range(2))
    assert (len(tall), len(low)) == (28, 12)
    assert {"spine 1 -> core 3", "spine 3 -> core 3", "core 3 -> spine 1"} <= tall
    assert {name for name in low if "spine" in name and " -> spine" in name} == {
        "leaf 0 -> spine 0",
        "leaf 1 -> spine 0",
    }
    rates = max_min_rates(trees.routes, fabric.capacity_Bps)
    np.testing.assert_allclose(rates, 0.5)  # Both need the host links of pod 0.


def test_trees_refuse_failures() -> None:
    fabric = Clos(2, 2, 2, 1.0, 1.0, failed=np.array([4]))
    with pytest.raises(SpecError, match="in-network reduction on failed links"):
        reduction_trees(fabric, np.arange(4), np.zeros(4, dtype=int), np.array([1]))
