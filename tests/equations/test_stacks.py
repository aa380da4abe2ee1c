"""Stacks worked out by hand: schedules, contention, prices, tapers (C13)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from libra_planner.costs.prices import PriceBook, TierPrice, network_price_usd_per_Bps
from libra_planner.errors import SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.step import expression as tree
from libra_planner.step import layers
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.collectives.balanced import aggregate_bound_s, balanced_schedule
from libra_planner.step.collectives.models import Ideal, Slowdown, SlowedIdeal
from libra_planner.step.collectives.schedules import Schedule, Schedules
from libra_planner.workload.operations import Collective, CollectiveKind, Group

PODS = parse_topology("SW(2)_[SW(4)_SW(2)]")
WHOLE = Group((2, 4, 2), (1, 1, 1))
"""16 NPUs: nodes of 2, leaf groups of 4 nodes, 2 pods."""

REDUCE, EXCHANGE = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_TO_ALL


def _loads(kind: CollectiveKind, group: Group, **schedules: Schedule) -> list[float]:
    network = replace(plain_network(PODS), schedules=Schedules(**schedules))
    return network.loads(Collective(kind, 16.0, "dp"), group).tolist()


def test_a_hierarchical_all_reduce() -> None:
    """Reduce-scatter of 16 bytes: 8 in a node, 6 of the 8 that are left over the NIC to the 3
    others of the leaf group, 1 of 2 to the other pod. As much again back: 16, 12, 2. The pod's 2
    leave through the NIC, too: 2m (1/2 - 1/16) = 14."""
    assert _loads(REDUCE, WHOLE) == [16, 14, 2]


def test_a_ring() -> None:
    """30 bytes of every rank go to the next one. Every second rank's goes to another node, every
    eighth's to another pod."""
    assert _loads(REDUCE, WHOLE, all_reduce=Schedule.RING) == [15, 15, 3.75]
    half = [7.5, 7.5, 1.875]
    assert _loads(CollectiveKind.REDUCE_SCATTER, WHOLE, all_reduce=Schedule.RING) == half


def test_a_direct_all_to_all() -> None:
    """One byte to each of 15: 1 in the node, 14 over the NIC, 8 of them to the other pod."""
    assert _loads(EXCHANGE, WHOLE, pxn=False) == [1, 14, 8]


def test_a_hierarchical_all_to_all_passes_the_nic_once_per_tier() -> None:
    """8 in the node, then 12 to the leaf group and 8 to the other pod, all over one NIC."""
    assert _loads(EXCHANGE, WHOLE, all_to_all=Schedule.HIERARCHICAL) == [8, 20, 8]


def test_pxn_charges_the_scale_up_domain() -> None:
    """To each of 8 receivers on the other rail a byte goes through the node first: 8 in all."""
    assert _loads(EXCHANGE, WHOLE) == _loads(EXCHANGE, WHOLE, pxn=True) == [8, 14, 8]


def test_a_tree_sends_every_vector_once() -> None:
    """8 bytes up the NIC; a leaf sends the sum of 4 nodes up: 8 for 4 NPUs of a rail."""
    network = replace(plain_network(PODS), in_network=frozenset({1, 2}))
    assert network.loads(Collective(REDUCE, 16.0, "dp"), WHOLE).tolist() == [16, 8, 2]


def test_a_group_beyond_the_inner_tier_uses_the_nic() -> None:
    """Two NPUs, one in each pod: all they send passes NIC and uplinks."""
    apart = Group((1, 1, 2), (1, 1, 1))
    assert _loads(REDUCE, apart) == [0, 16, 16]
    assert _loads(REDUCE, apart, all_reduce=Schedule.RING) == [0, 16, 16]
    assert _loads(EXCHANGE, apart) == [0, 8, 8]


def test_parts_of_tiers() -> None:
    """2 of a leaf group's 4 nodes, both NPUs: 2 * 16 (1/2 - 1/4) leave by the NIC, nothing beyond."""
    assert _loads(REDUCE, Group((2, 2, 1), (1, 2, 1))) == [16, 8, 0]


def test_the_slowest_tier_counts() -> None:
    time = Ideal().time(Collective(REDUCE, 16.0, "dp"), WHOLE, plain_network(PODS))
    seconds = tree.TimeExpression(time, 3).seconds
    assert float(seconds(np.array([16.0, 7.0, 0.5]))) == 4  # 16/16, 14/7, 2/0.5
    assert float(seconds(np.array([16.0, 3.5, 2.0]))) == 4  # 14/3.5


def test_what_overlaps_adds_up_on_the_tiers_that_it_crosses() -> None:
    """TP in nodes and leaf groups, DP between pods: they meet at the NIC alone."""
    network = plain_network(PODS)
    inside, between = Group((2, 4, 1), (1, 1, 1)), Group((1, 1, 2), (1, 1, 1))
    tp, dp = layers.NAMES["input_grad.tp"], layers.NAMES["weight_grad.dp"]
    loads = {}
    for key, group in ((tp, inside), (dp, between)):
        sent = Ideal().traffic(Collective(REDUCE, 16.0, "dp"), group, network)
        loads[key] = layers.Load(str(key), tree.transfers(sent), tuple(sent))
    layer = layers.LoopLayer(loads, 3)
    seconds = tree.TimeExpression(layer.time(layers.Overlap((tp, dp))), 3).seconds
    # TP 16, 12, 0; DP 0, 16, 16; together 28 over the NIC.
    assert float(seconds(np.array([16.0, 4.0, 16.0]))) == 7
    assert float(seconds(np.array([16.0, 28.0, 2.0]))) == 8


def test_a_slowed_tier_sends_its_own_bytes_for_longer() -> None:
    """Twice as long for what the leaf groups exchange: 24 of their own and 2 of the pods'."""
    reduce = Collective(REDUCE, 16.0, "dp")
    slowdown = Slowdown(((reduce, WHOLE),), ((1.0, 2.0, 1.0),), ((None,) * 3,))
    found = SlowedIdeal(slowdown=slowdown).traffic(reduce, WHOLE, plain_network(PODS))
    assert found.tolist() == [16, 26, 2]


def test_others_wait_at_the_farthest_tier_for_what_goes_over_all_at_once() -> None:
    """A ring and a send three times as long: NICs serve others while flows wait for uplinks."""
    reduce, apart = Collective(REDUCE, 16.0, "dp"), Group((1, 1, 2), (1, 1, 1))
    several = ((reduce, WHOLE),), ((1.0, 3.0, 3.0),), ((None,) * 3,), (apart,), ((1.0, 3.0, 3.0),)
    ring = replace(plain_network(PODS), schedules=Schedules(all_reduce=Schedule.RING))
    slowed = SlowedIdeal(slowdown=Slowdown(*several))
    assert slowed.traffic(reduce, WHOLE, ring).tolist() == [15, 45, 11.25]
    assert slowed.occupied(reduce, WHOLE, ring).tolist() == [15, 15, 11.25]
    assert slowed.send_traffic(8.0, apart, ring).tolist() == [0, 24, 24]
    assert slowed.send_occupied(8.0, apart, ring).tolist() == [0, 8, 24]


def test_orders_of_tiers() -> None:
    """Pods first: 8 bytes of the reduce-scatter cross NIC and uplinks, then 6, 1 in the node."""
    network, group = plain_network(parse_topology("[SW(4)_SW(2)]")), Group((4, 2), (1, 1))
    scatter = Collective(CollectiveKind.REDUCE_SCATTER, 16.0, "dp")
    # In order 12 + 2 and 2; pods first 6 + 8 and 8. Both are 14 over the NIC.
    best = balanced_schedule(scatter, group, np.array([1.0, 1.0]), network)
    assert (best.time_s, best.gain) == (14, 1)
    assert aggregate_bound_s(scatter, group, np.array([1.0, 1.0]), network) == 8


PRICES = {
    "node": TierPrice(4.0, 13.0, 0.0),
    "leaf": TierPrice(5.0, 20.0, 30.0),
    "spine": TierPrice(6.0, 22.0),
}


def test_a_further_tier_costs_a_link_and_two_ports() -> None:
    fabric = parse_topology("SW(2)_[SW(4)_SW(2)]", ["node", "leaf", "spine"])
    found = network_price_usd_per_Bps(fabric, PriceBook("b", PRICES)) * 1e9
    assert found == pytest.approx([16 * 17, 16 * 55, 16 * (6 + 2 * 22)])


def test_a_stack_is_what_nics_share() -> None:
    fabric = parse_topology("[SW(2)_SW(4)]", ["node", "spine"])
    with pytest.raises(SpecError, match=r"nic: 0 for tier 'node', the innermost of a stack"):
        network_price_usd_per_Bps(fabric, PriceBook("b", PRICES))
