"""Stacks: loads by formula against every message counted where it passes, on random fabrics."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.collectives.models import Ideal
from libra_planner.step.collectives.schedules import Schedule, Schedules
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.port_loads import bytes_by_port, loads_by_counting, tree_loads_by_counting

MOST_NPUS = 96


@st.composite
def stacked_topologies(draw: st.DrawFn) -> Topology:
    """One to four switches of 2 to 6, some of them in brackets."""
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))
    while prod(sizes) > MOST_NPUS:
        sizes = sizes[:-1]
    parts = [f"SW({size})" for size in sizes]
    start = draw(st.integers(0, len(parts) - 1))
    stop = draw(st.integers(start + 1, len(parts)))
    parts[start] = f"[{parts[start]}"
    parts[stop - 1] += "]"
    return parse_topology("_".join(parts))


@st.composite
def groups(draw: st.DrawFn, topology: Topology) -> Group:
    """Groups that take all, a part or nothing of a dimension, neighbours or in strides."""
    sizes, strides = [], []
    for whole in topology.sizes:
        size = draw(st.sampled_from([n for n in range(1, whole + 1) if whole % n == 0]))
        others = whole // size
        strides.append(draw(st.sampled_from([n for n in range(1, others + 1) if others % n == 0])))
        sizes.append(size)
    return Group(tuple(sizes), tuple(strides))


SCHEDULES = {
    CollectiveKind.ALL_TO_ALL: (Schedule.HIERARCHICAL, Schedule.DIRECT),
    CollectiveKind.ALL_REDUCE: (Schedule.HIERARCHICAL, Schedule.RING),
    CollectiveKind.REDUCE_SCATTER: (Schedule.HIERARCHICAL, Schedule.RING),
    CollectiveKind.ALL_GATHER: (Schedule.HIERARCHICAL, Schedule.RING),
}


@given(st.data(), stacked_topologies(), st.sampled_from(CollectiveKind))
def test_loads_are_what_every_message_adds_up_to(data, topology, kind) -> None:
    group = data.draw(groups(topology))
    schedule = data.draw(st.sampled_from(SCHEDULES[kind]))
    collective = Collective(kind, 960.0, "dp", is_shard=kind is CollectiveKind.ALL_GATHER)
    schedules = (
        Schedules(all_to_all=schedule, pxn=data.draw(st.sampled_from([None, False])))
        if kind is CollectiveKind.ALL_TO_ALL
        else Schedules(all_reduce=schedule)
    )
    network = replace(plain_network(topology), schedules=schedules)
    counted = loads_by_counting(topology, collective, group, schedule)
    if (
        kind is CollectiveKind.ALL_TO_ALL and network.has_pxn
    ):  # Inside the stack every message goes to the receiver's rail first.
        inside = topology.stacks[0].start
        turns = loads_by_counting(topology, collective, group, Schedule.HIERARCHICAL)
        counted = [*turns[:inside], *counted[inside:]]
    assert network.loads(collective, group) == pytest.approx(counted, rel=1e-12)
    assert Ideal().traffic(collective, group, network) == pytest.approx(counted, rel=1e-12)


@given(st.data(), stacked_topologies(), st.sampled_from(CollectiveKind))
def test_ports_and_uplinks_are_loaded_alike_but_for_rings(data, topology, kind) -> None:
    group = data.draw(groups(topology))
    schedule = SCHEDULES[kind][0 if kind is not CollectiveKind.ALL_TO_ALL else 1]
    for sent in bytes_by_port(topology, Collective(kind, 960.0, "dp"), group, schedule):
        assert len(set(np.round(list(sent.n_bytes.values()), 6))) <= 1


@given(st.data(), stacked_topologies())
def test_one_ring_leaves_by_one_port_of_a_unit(data, topology) -> None:
    """One ring: the busiest NIC carries 2m (n - 1)/n, as much as all of its unit (C13)."""
    group = data.draw(groups(topology))
    collective = Collective(CollectiveKind.ALL_REDUCE, 960.0, "dp")
    n = group.n_npus
    for sent in bytes_by_port(topology, collective, group, Schedule.RING):
        if sent.dim in topology.ports and sent.n_bytes:
            assert max(sent.n_bytes.values()) == pytest.approx(2 * 960 * (n - 1) / n)


@given(st.data(), stacked_topologies())
def test_trees_of_switches_send_every_vector_once(data, topology) -> None:
    group = data.draw(groups(topology))
    for tiers in topology.stacks:
        network = replace(plain_network(topology), in_network=frozenset(tiers))
        reduce = Collective(CollectiveKind.ALL_REDUCE, 960.0, "dp")
        found = network.loads(reduce, group)[tiers.start : tiers.stop]
        counted = tree_loads_by_counting(topology, 960.0, group, tiers)
        assert found == pytest.approx(counted, rel=1e-12)


@given(st.data(), stacked_topologies(), st.sampled_from(CollectiveKind))
def test_without_brackets_nothing_changes(data, topology, kind) -> None:
    """The same bytes stay in a dimension's own groups; a stack only adds what passes through."""
    group = data.draw(groups(topology))
    apart = parse_topology(str(topology).replace("[", "").replace("]", ""))
    collective, plain = Collective(kind, 960.0, "dp"), plain_network(apart)
    stacked = replace(
        plain_network(topology), schedules=Schedules(all_to_all=Schedule.HIERARCHICAL)
    )
    own = plain.own_bytes(collective, group)
    assert (stacked.own_bytes(collective, group) == own).all()
    assert (plain.loads(collective, group) == own).all()


PLAN = """\
workload: turing-nlg-libra
fabric:
  topology: {topology}
  tiers: [{tiers}]
parallelism: {{tp: {tp}, dp: {dp}}}
cost_model: clos-2026
"""


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("schedule", [Schedule.HIERARCHICAL, Schedule.RING])
def test_a_step_is_what_its_messages_take(tp: int, schedule: Schedule, tmp_path: Path) -> None:
    """Every collective waits for the slowest port or bundle of uplinks, parts of tiers included."""
    topology = "SW(4)_[SW(4)_SW(2)_SW(2)]"
    path = tmp_path / "plan.yaml"
    path.write_text(
        PLAN.format(topology=topology, tiers="node, leaf, spine, core", tp=tp, dp=64 // tp)
    )
    problem = lp.load_plan(path, f"schedules.all_reduce={schedule}")
    (training,) = problem.step.trainings
    bandwidth = np.array([450e9, 50e9, 17e9, 3e9])
    seconds = 0.0
    for one in training.workload.operations:
        seconds += one.count * one.compute_s
        if one.collective is not None:
            group = training.communicators.group(one.phase, one.collective.group)
            sent = loads_by_counting(problem.topology, one.collective, group, schedule)
            seconds += one.count * (sent / bandwidth).max()
    assert float(problem.step_time.seconds(bandwidth)) == pytest.approx(seconds, rel=1e-12)
