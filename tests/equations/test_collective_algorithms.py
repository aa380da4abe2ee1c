"""Algorithms of collectives worked by hand: steps, bytes, hops, partial groups, refusals (C3 to C6)."""

from __future__ import annotations

import pytest

from libra_planner.errors import SpecError
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import (
    Network,
    Visit,
    flow_shop,
    traffic_bytes,
    visits,
)
from libra_planner.workload.operations import Collective, CollectiveKind, Group


def _visits(
    kind: str,
    fabric: str,
    *,
    algorithms: tuple[str | None, ...] | None = None,
    sizes: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
    in_network: frozenset[int] = frozenset(),
    size_bytes: float = 64.0,
) -> list[tuple[int, int, float, int]]:
    """(dim, steps, bytes, hops) of each visit of a 64-byte collective."""
    topology = parse_topology(fabric)
    n_dims = topology.n_dims
    chosen = tuple(Algorithm(name) if name else None for name in algorithms or (None,) * n_dims)
    network = Network(topology, (0.0,) * n_dims, chosen, in_network)
    group = Group(sizes or topology.sizes, strides or (1,) * n_dims)
    stops = visits(Collective(CollectiveKind(kind), size_bytes, "dp"), group, network)
    return [(stop.dim, stop.n_steps, stop.n_bytes, stop.n_hops) for stop in stops]


def test_reduce_scatter_goes_out_and_all_gather_comes_back() -> None:
    """64 B over RI(4): 3 steps of 16; the 16 left over SW(8): 8, 4, 2, two hops each."""
    assert _visits("reduce-scatter", "RI(4)_SW(8)") == [(0, 3, 48, 1), (1, 3, 14, 2)]
    assert _visits("all-gather", "RI(4)_SW(8)") == [(1, 3, 14, 2), (0, 3, 48, 1)]
    assert _visits("all-reduce", "RI(4)_SW(8)") == [(0, 3, 48, 1), (1, 6, 28, 2), (0, 3, 48, 1)]


def test_all_to_all_keeps_its_size() -> None:
    """On RI(4) 4 * 3 / 2 = 6 steps of 16 (twice C3's 48), on FC(8) 56 at once, on SW(2) 32."""
    expected = [(0, 6, 96, 1), (1, 1, 56, 1), (2, 1, 32, 2)]
    assert _visits("all-to-all", "RI(4)_FC(8)_SW(2)") == expected


def test_all_to_all_on_an_odd_ring() -> None:
    """5 * 4 / 2 = 10 steps of 13: n/2 times C3's 52."""
    assert _visits("all-to-all", "RI(5)", size_bytes=65.0) == [(0, 10, 130, 1)]


@pytest.mark.parametrize(
    ("algorithm", "steps", "n_bytes"),
    [("ring", 7, 56), ("direct", 1, 56), ("direct1", 7, 56), ("halving_doubling", 3, 56)],
)
def test_a_switch_runs_them_all_at_full_bandwidth(algorithm: str, steps: int, n_bytes: int) -> None:
    assert _visits("reduce-scatter", "SW(8)", algorithms=(algorithm,)) == [(0, steps, n_bytes, 2)]


@pytest.mark.parametrize(
    ("algorithm", "steps"), [("ring", 7), ("direct1", 7), ("halving_doubling", 3)]
)
def test_one_link_at_a_time_of_seven(algorithm: str, steps: int) -> None:
    """Fully connected: whoever talks to one peer at a time has B/7."""
    assert _visits("reduce-scatter", "FC(8)", algorithms=(algorithm,)) == [(0, steps, 7 * 56, 1)]


def test_a_switch_of_six_falls_back_to_ring() -> None:
    assert _visits("all-reduce", "SW(6)", size_bytes=60.0) == [(0, 10, 100, 2)]
    assert _visits("all-to-all", "SW(6)", size_bytes=60.0) == [(0, 5, 50, 2)]


def test_bytes_of_the_visits_are_those_of_c3() -> None:
    topology = parse_topology("RI(3)_FC(4)_SW(8)_SW(5)")
    group = Group(topology.sizes, (1,) * 4)
    for kind in ("all-reduce", "reduce-scatter", "all-gather"):
        total = [0.0] * 4
        for dim, _, n_bytes, _ in _visits(kind, str(topology)):
            total[dim] += n_bytes
        ideal = traffic_bytes(Collective(CollectiveKind(kind), 64.0, "dp"), group)
        assert total == pytest.approx(ideal.tolist(), rel=1e-14)


def test_in_network_reduction() -> None:
    """SW(8) after RI(4) moves 64/4 in one message; in the middle, half out and half back."""
    inside = frozenset({1})
    assert _visits("all-reduce", "RI(4)_SW(8)", in_network=inside)[1] == (1, 1, 16, 2)
    middle = _visits("all-reduce", "RI(4)_SW(8)_SW(2)", in_network=inside)
    assert middle == [(0, 3, 48, 1), (1, 1, 8, 2), (2, 2, 2, 2), (1, 1, 8, 2), (0, 3, 48, 1)]
    assert _visits("reduce-scatter", "RI(4)_SW(8)", in_network=inside)[1] == (1, 3, 14, 2)
    group = Group((4, 8, 2), (1, 1, 1))
    reduce = Collective(CollectiveKind.ALL_REDUCE, 64.0, "dp")
    assert traffic_bytes(reduce, group, inside).tolist() == [96, 16, 2]


def test_partial_groups_have_their_own_links() -> None:
    """4 of FC(8) have 3 of 7 links; 2 neighbours of RI(8) a line (half); every 4th goes 4 hops."""
    part = _visits("reduce-scatter", "FC(8)", sizes=(4,))
    assert part == [(0, 1, pytest.approx(48 * 7 / 3), 1)]
    assert _visits("reduce-scatter", "RI(8)", sizes=(2,)) == [(0, 1, 2 * 32, 1)]
    assert _visits("reduce-scatter", "RI(8)", sizes=(2,), strides=(4,)) == [(0, 1, 4 * 32, 4)]


def test_all_to_all_on_part_of_a_ring_counts_hops_once() -> None:
    """4 neighbours of RI(8), B/2: the middle link carries 2 * 2 messages of 16 = 64 B, 128 at B."""
    (visit,) = _visits("all-to-all", "RI(8)", sizes=(4,))
    assert visit == (0, 6, pytest.approx(128), 1)


def test_a_shard_is_gathered_to_the_full_vector() -> None:
    topology = parse_topology("RI(4)")
    network = Network(topology, (0.0,), (None,))
    group = Group((4,), (1,))
    shard = Collective(CollectiveKind.ALL_GATHER, 16.0, "tp", is_shard=True)
    assert visits(shard, group, network) == (Visit(0, (16.0,), (3,), 1),)


def test_ring_all_reduce_with_latency() -> None:
    """14 steps of 1e6 B at 1e9 B/s and 500 ns: 14 * (1 ms + 500 ns)."""
    topology = parse_topology("RI(8)")
    reduce = Collective(CollectiveKind.ALL_REDUCE, 8e6, "dp")
    run = flow_shop(reduce, Group((8,), (1,)), Network(topology, (5e-7,), (None,)), [1e9])
    assert run.time_s == pytest.approx(14 * (1e-3 + 5e-7), rel=1e-14)
    assert run.busy_s == pytest.approx((run.time_s,))


@pytest.mark.parametrize(
    ("kind", "fabric", "algorithm", "message"),
    [
        ("all-reduce", "RI(4)", "direct", r"algorithms.0: got direct on RI\(4\), expected ring"),
        ("all-reduce", "RI(4)", "halving_doubling", r"got halving_doubling on RI\(4\)"),
        ("all-to-all", "SW(4)", "halving_doubling", r"for an all-to-all on SW\(4\), .* direct1"),
        ("all-reduce", "SW(6)", "halving_doubling", r"for a group of 6 on SW\(6\), .*power of two"),
    ],
)
def test_what_makes_no_sense_is_refused(
    kind: str, fabric: str, algorithm: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        _visits(kind, fabric, algorithms=(algorithm,))


def test_all_refusals_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        _visits("all-reduce", "RI(4)_SW(6)", algorithms=("direct", "halving_doubling"))
    assert [fault.path for fault in caught.value.faults] == ["algorithms.0", "algorithms.1"]
