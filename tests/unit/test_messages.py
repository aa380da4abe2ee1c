"""Messages as flows: bytes over NICs and queue pairs, placement, addresses and their entropy."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libra_planner.check.report import seed_reports
from libra_planner.check.traffic import (
    Members,
    Round,
    message_flows,
    placed_npus,
    rounds,
)
from libra_planner.fabric.blocks import SWITCH, Algorithm
from libra_planner.fabric.clos import Clos, Flows
from libra_planner.fabric.realization import RealizedDimension, realize
from libra_planner.fabric.topology import (
    PLACEMENTS,
    WIRINGS,
    Realization,
    SwitchSettings,
    Topology,
    TrafficSettings,
    parse_topology,
)
from libra_planner.routing.ecmp import drawn_headers, queue_pair_source_port
from libra_planner.routing.policy import Policy
from libra_planner.workload.operations import Group

ALGORITHMS = (Algorithm.RING, Algorithm.DIRECT, Algorithm.DIRECT1)


def built(notation: str, **settings) -> tuple[Topology, RealizedDimension]:
    """The outermost dimension at 100 GB/s per NPU."""
    topology = parse_topology(notation)
    switch = SwitchSettings(**settings)
    switches = tuple(switch if d.block == SWITCH else None for d in topology.dimensions)
    design = realize(topology, [100e9] * topology.n_dims, Realization(switches))
    return topology, design.dimensions[-1]


def sent_flows(
    topology: Topology,
    dimension: RealizedDimension,
    settings: TrafficSettings,
    algorithm: Algorithm = Algorithm.RING,
    size: int | None = None,
) -> tuple[Round, Flows]:
    """First round of groups of neighbours in the outermost dimension, 1,200 bytes per NPU."""
    sizes = [1] * topology.n_dims
    sizes[-1] = size or topology.sizes[-1]
    members = Members(topology, topology.n_dims - 1, Group(tuple(sizes), (1,) * topology.n_dims))
    sent = next(rounds(members, algorithm))
    npu_at = placed_npus(topology, topology.n_dims - 1, dimension, settings.placement, seed=1)
    options = {"npu_at": npu_at, "settings": settings, "size_bytes": 1200.0}
    return sent, message_flows(dimension, members, sent, **options)


@settings(max_examples=60)
@given(
    notation=st.sampled_from(["SW(6)", "FC(2)_SW(8)", "RI(3)_SW(4)"]),
    speed=st.sampled_from([None, 100e9, 50e9, 30e9]),
    wiring=st.sampled_from(WIRINGS),
    algorithm=st.sampled_from(ALGORITHMS),
    placement=st.sampled_from(PLACEMENTS),
    n_queue_pairs=st.integers(1, 9),
)
def test_nics_and_queue_pairs_share_bytes_exactly(
    notation, speed, wiring, algorithm, placement, n_queue_pairs
) -> None:
    topology, dimension = built(notation, port_speed_Bps=speed, wiring=wiring, switch_radix=8)
    traffic = TrafficSettings(placement, n_queue_pairs)
    sent, flows = sent_flows(topology, dimension, traffic, algorithm)
    n_nics = dimension.n_nics
    npu_of_port = {int(p): npu for npu, row in enumerate(dimension.port_of_npu) for p in row}
    nic_of_port = {int(p): nic for row in dimension.port_of_npu for nic, p in enumerate(row)}
    npu_at = placed_npus(topology, topology.n_dims - 1, dimension, placement, seed=1)
    by_message: dict[tuple[int, int], list[int]] = defaultdict(list)
    for f, ends in enumerate(zip(flows.src.tolist(), flows.dst.tolist(), strict=True)):
        assert nic_of_port[ends[0]] == nic_of_port[ends[1]]  # From a NIC to its like: a rail.
        by_message[npu_of_port[ends[0]], npu_of_port[ends[1]]].append(f)
    expected = {(int(npu_at[a]), int(npu_at[b])) for a, b in zip(sent.src, sent.dst, strict=True)}
    assert set(by_message) == expected
    for own in by_message.values():
        assert len(own) == -(-n_queue_pairs // n_nics) * n_nics >= n_queue_pairs
        assert flows.size_bytes[own].sum() == pytest.approx(1200 * sent.share, rel=1e-12)
        assert len(set(flows.size_bytes[own].tolist())) == 1
        per_nic = Counter(nic_of_port[int(flows.src[f])] for f in own)
        assert set(per_nic.values()) == {len(own) // n_nics}
        assert len({int(flows.collective[f]) for f in own}) == 1


# Placement --------------------------------------------------------------------------------------


@given(
    notation=st.sampled_from(["SW(16)", "FC(2)_SW(12)", "SW(3)_RI(2)_SW(8)"]),
    wiring=st.sampled_from(WIRINGS),
    placement=st.sampled_from(PLACEMENTS),
    seed=st.integers(0, 50),
)
def test_a_placement_is_a_permutation_of_positions(notation, wiring, placement, seed) -> None:
    topology, dimension = built(notation, wiring=wiring, switch_radix=8)
    dim = topology.n_dims - 1
    at = placed_npus(topology, dim, dimension, placement, seed)
    n_inner = topology.n_npus // topology.sizes[-1]
    assert sorted(at.tolist()) == list(range(topology.n_npus))
    # All NPUs of a position move to one position; inner coordinates stay.
    np.testing.assert_array_equal(at % n_inner, np.arange(topology.n_npus) % n_inner)
    moved = (at // n_inner).reshape(-1, n_inner)
    assert (moved == moved[:, :1]).all()
    again = placed_npus(topology, dim, dimension, placement, seed)
    np.testing.assert_array_equal(at, again)
    if placement == "contiguous":
        np.testing.assert_array_equal(at, np.arange(topology.n_npus))


def test_rail_placement_takes_the_leaves_in_turn() -> None:
    topology, dimension = built("SW(12)", switch_radix=8)
    assert isinstance(dimension.fabric, Clos)
    at = placed_npus(topology, 0, dimension, "rail", seed=0)
    leaf = dimension.fabric.leaf_of(dimension.port_of_npu[at, 0])
    assert leaf.tolist() == [0, 1, 2] * 4
    # Within a leaf they keep their order.
    assert all((np.diff(at[leaf == i]) > 0).all() for i in range(3))


def test_another_seed_places_at_random_otherwise() -> None:
    topology, dimension = built("SW(16)", switch_radix=8)
    first, other = (placed_npus(topology, 0, dimension, "random", seed) for seed in (1, 2))
    assert first.tolist() != other.tolist()


# Addresses, queue pairs, entropy ------------------------------------------------------------------


@settings(max_examples=60)
@given(
    algorithm=st.sampled_from(ALGORITHMS),
    per_address=st.sampled_from([1, 2, 4, 8]),
    n_queue_pairs=st.integers(1, 4),
    speed=st.sampled_from([100e9, 50e9]),
)
def test_every_flow_between_two_addresses_has_a_queue_pair_of_its_own(
    algorithm, per_address, n_queue_pairs, speed
) -> None:
    topology, dimension = built("FC(2)_SW(16)", port_speed_Bps=speed)
    settings = TrafficSettings("contiguous", n_queue_pairs, per_address)
    _, flows = sent_flows(topology, dimension, settings, algorithm)
    connections = list(zip(flows.src_address, flows.dst_address, flows.pair, strict=True))
    assert len(set(connections)) == flows.n_flows
    n_addresses = topology.n_npus // per_address * dimension.n_nics
    assert len(set(flows.src_address.tolist()) | set(flows.dst_address.tolist())) == n_addresses


def test_one_address_per_host_removes_entropy() -> None:
    """Ring over 16 nodes of 8 NPUs: 128 pairs of addresses, or 16 that only ports tell apart.

    Ports of queue pairs make up for it on average; with one port for all, 8 flows go together.
    """
    topology, dimension = built("FC(8)_SW(16)", wiring="top_of_rack", switch_radix=16)
    assert isinstance(dimension.fabric, Clos)
    n_pairs, free_fim, fixed_fim = [], [], []
    for per_address in (1, 8):
        settings = TrafficSettings(npus_per_address=per_address)
        _, flows = sent_flows(topology, dimension, settings)
        n_pairs.append(len(set(zip(flows.src_address, flows.dst_address, strict=True))))
        fixed = replace(flows, src_port=np.full(flows.n_flows, 50_000))
        free_fim.append(_mean_fim_percent(dimension.fabric, flows))
        fixed_fim.append(_mean_fim_percent(dimension.fabric, fixed))
    assert n_pairs == [128, 16]
    eight_on_eight, one_on_eight = 68.72, 175.0
    assert free_fim == pytest.approx([eight_on_eight] * 2, abs=2)
    assert fixed_fim == pytest.approx([eight_on_eight, one_on_eight], abs=2)


def _mean_fim_percent(fabric: Clos, flows: Flows) -> float:
    found = seed_reports(fabric, flows, Policy(), seeds=range(200), with_rates=False)
    return float(found.fim_percent.mean())


def test_source_ports_follow_from_queue_pairs_by_the_linux_rule() -> None:
    """Numbers count up in twos from a draw per address: both ends of each pair give its port."""
    flows = Flows(np.array([0, 0, 2]), np.array([1, 1, 0]), np.ones(3), pair=np.array([0, 1, 0]))
    first = np.random.default_rng([7, 0x45434D50, 1]).integers(2**24, size=3)
    headers = drawn_headers(flows, 7)
    expected = [
        queue_pair_source_port((first[a] + 2 * p) % 2**24, (first[b] + 2 * p + 1) % 2**24)
        for a, b, p in ((0, 1, 0), (0, 1, 1), (2, 0, 0))
    ]
    assert headers.src_port.tolist() == [int(port) for port in expected]
    assert headers.queue_pair.tolist() == [
        int(first[b] + 2 * p + 1) % 2**24 for b, p in ((1, 0), (1, 1), (0, 0))
    ]


def test_given_ports_stay_and_only_free_ones_are_drawn() -> None:
    flows = Flows(np.zeros(4, int), np.ones(4, int), np.ones(4), src_port=np.array([5, -1, -1, 7]))
    first, second = (drawn_headers(flows, seed).src_port for seed in (1, 2))
    assert (first[0], first[3]) == (second[0], second[3]) == (5, 7)
    assert (first[1:3] != second[1:3]).all()


def test_what_a_flow_draws_does_not_depend_on_the_flows_after_it() -> None:
    rng = np.random.default_rng(3)
    ends = rng.integers(50, size=(2, 400))
    pair = np.where(np.arange(400) % 3, np.arange(400), -1)
    every = Flows(*ends, np.ones(400), pair=pair)
    some = Flows(*ends[:, :100], np.ones(100), pair=pair[:100])
    whole, part = (drawn_headers(flows, 11) for flows in (every, some))
    for name in ("src_ip", "dst_ip", "src_port", "queue_pair"):
        assert (getattr(whole, name)[:100] == getattr(part, name)).mean() > 0.99
