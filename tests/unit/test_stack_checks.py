"""Checks of stacks: routed flows cost what the model says, and tiers share what they are."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from libra_planner.check.degraded import drawn_failures, every_single_failure, shared_fabric
from libra_planner.check.exposed import Exposed
from libra_planner.check.hotspots import hotspot, traced_flow
from libra_planner.check.links import LinkCheck, link_check
from libra_planner.check.traffic import Members, neighbours, placed_npus
from libra_planner.errors import SpecError
from libra_planner.evaluation import evaluate
from libra_planner.fabric.blocks import FullyConnected, Ring, Span, Switch
from libra_planner.fabric.cluster import ClusterOrder, cluster_network
from libra_planner.fabric.parts import network_parts
from libra_planner.fabric.topology import Topology, TrafficSettings, parse_topology
from libra_planner.inputs.parts import load_parts
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from libra_planner.procurement.bill import Bill, with_one_stock
from libra_planner.procurement.cluster import cluster_bill
from libra_planner.procurement.lines import Book, FabricShop, purchase
from libra_planner.routing.policy import Policy
from libra_planner.step.critical_path import critical_path
from libra_planner.step.expression import (
    Constant,
    Labelled,
    Maximum,
    TimeExpression,
    add,
    transfers,
)
from libra_planner.step.model_step import step_exchanges
from libra_planner.step.model_training import ModelTraining
from libra_planner.views.check import CheckedPlan, check_notes
from libra_planner.views.phases import overlap_lines, send_notes
from libra_planner.views.plan import result_notes
from libra_planner.workload.operations import Group, Send
from libra_planner.workload.placement import placed_groups
from tests.checked_plans import checked, loaded, operation

TIERS = ["node", "leaf", "spine", "core"]
SPRAY, ECMP = Policy("spray"), Policy("ecmp")


def _problem(folder: Path, topology: str, kind: str = "all-reduce", **keys: object) -> Problem:
    n_dims = topology.count("_") + 1
    steps = [operation("weight_grad", kind, 1e9, group="dp")]
    others = {"tiers": TIERS[:n_dims], "cost_model": "clos-2026", **keys}
    return loaded(folder, topology, steps, **others)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    inner=st.sampled_from([2, 4]),
    sizes=st.lists(st.sampled_from([2, 4, 8]), min_size=2, max_size=3),
    tapers=st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4])),
    kind=st.sampled_from(["all-reduce", "reduce-scatter", "all-gather", "all-to-all"]),
    schedule=st.sampled_from(["hierarchical", "ring", "direct", "in-network"]),
    wiring=st.sampled_from(["rail_optimized", "rail_only", "top_of_rack"]),
    tp=st.sampled_from([1, 2, 4, 8]),
)
def test_sprayed_whole_links_take_the_time_of_the_model(
    tmp_path: Path,
    inner: int,
    sizes: list[int],
    tapers: tuple[int, int],
    kind: str,
    schedule: str,
    wiring: str,
    tp: int,
) -> None:
    keys: dict[str, object] = {}
    exchanges = kind == "all-to-all"
    if schedule == "in-network":
        keys["in_network_reduction"] = TIERS[1 : 1 + len(sizes)]
    elif schedule == "ring" and not exchanges:
        keys["schedules"] = {"all_reduce": "ring"}
    elif exchanges:
        assume(schedule != "ring")
        keys["schedules"] = {"all_to_all": schedule}
    stack = "_".join(f"SW({n})" for n in sizes)
    n_npus = inner * math.prod(sizes)
    assume(tp < n_npus)
    keys["parallelism"] = {"tp": tp, "dp": n_npus // tp}
    links = {"wiring": wiring, "switch_radix": 512, "port_speed": "50 GB/s"}
    problem = _problem(tmp_path, f"SW({inner})_[{stack}]", kind, realization=links, **keys)
    bandwidth = [450, 50, 50 / tapers[0], 50 / tapers[0] / tapers[1]][: 1 + len(sizes)]
    try:
        links = checked(problem, *bandwidth)
    except SpecError:
        reject()
    realised = links.design.bandwidth_Bps
    assume(np.allclose(realised, np.array(bandwidth) * 1e9, rtol=1e-12))
    report = links.report(SPRAY)
    assert report.effective_step_time_s[0] == pytest.approx(report.ideal_step_time_s, rel=1e-9)


def test_a_ring_over_a_stack_by_hand(tmp_path: Path) -> None:
    # 2 x [4 x 2]: a ring of 16; every second rank sends to another node, one in 8 to another leaf.
    problem = _problem(tmp_path, "SW(2)_[SW(4)_SW(2)]", schedules={"all_reduce": "ring"})
    links = checked(problem, 450, 50, 12.5)
    report = links.report(SPRAY)
    [node, stack] = report.keys
    assert (node[0], stack[0], stack[1].sizes) == (0, 1, (1, 4, 2))
    # 1e9 * 2 * 15/16 bytes, half of them over the NIC, an eighth over 12.5 GB/s: 18.75 ms.
    assert links.phase_bytes(stack, links.users(stack)[0]) == pytest.approx(0.9375e9)
    assert report.effective_step_time_s[0] == pytest.approx(0.9375 / 50)
    # At 40 times less beyond the leaves these are the bottleneck: 1.875e9 / 8 over 1.25 GB/s.
    thin = checked(problem, 450, 50, 1.25).report(SPRAY)
    bandwidth = thin.design.bandwidth_Bps[2]
    assert bandwidth == pytest.approx(12.5e9)  # one whole link of 50 GB/s for 4 NPUs
    assert thin.effective_step_time_s[0] == pytest.approx(0.9375 / 50)


def test_a_direct_exchange_crosses_rails_over_the_spines(tmp_path: Path) -> None:
    # 2 x [4 x 2], 1/16 GB to each of 15. 14 leave the node: 3 stay on the leaf, 3 go to its rail's
    # neighbour over the spines, 8 to the other leaves: 11/16 GB per NPU over uplinks of 25 GB/s.
    notation = "SW(2)_[SW(4)_SW(2)]"
    problem = _problem(tmp_path, notation, "all-to-all", schedules={"pxn": False})
    links = checked(problem, 450, 50, 25)
    report = links.report(SPRAY)
    assert report.effective_step_time_s[0] == pytest.approx(11 / 16 / 25)
    # The model counts what leaves the leaf group: 8/16 over 25 GB/s.
    assert report.ideal_step_time_s == pytest.approx(8 / 16 / 25)
    assert [phase.group_size for phase, _ in report.phases] == [2, 16]
    [flows] = [flows for _, _, flows in links.phase(report.keys[1]).flows(0)]
    assert flows.n_flows == 16 * 14
    pairs = set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))
    assert len(pairs) == 16 * 14
    notes = list(check_notes(CheckedPlan(links, report, optimized=False)))
    assert any("cross rails over the links" in note for note in notes)
    # Through the scale-up domain first, 14 go over the NIC, 8 of them over the uplinks.
    through = _problem(tmp_path, notation, "all-to-all")
    fast = checked(through, 450, 50, 25).report(SPRAY)
    assert fast.effective_step_time_s[0] == pytest.approx(8 / 16 / 25)
    apart = {"realization": {"wiring": "rail_only"}, "schedules": {"pxn": False}}
    rails = _problem(tmp_path, notation, "all-to-all", **apart)
    with pytest.raises(SpecError, match=r"across rails in dim2, wiring rail.*remove pxn: false"):
        checked(rails, 450, 50, 25).report(SPRAY)


def test_phases_of_a_hierarchy_meet_on_the_shared_links(tmp_path: Path) -> None:
    problem = _problem(tmp_path, "SW(2)_[SW(4)_SW(2)_SW(2)]")
    links = checked(problem, 450, 50, 50, 25)
    report = links.report(SPRAY)
    assert [key[0] for key in report.keys] == [0, 1, 2, 3]
    assert len({id(links.phase(key).fabric) for key in report.keys[1:]}) == 1
    assert [round(phase.ideal_factor, 9) for phase, _ in report.phases] == [1.0] * 4
    hot = hotspot(links, links.report(ECMP, seeds=[0]), always=True)
    assert hot is not None
    assert traced_flow(links, links.report(ECMP, seeds=[0]), "0-16") is not None


@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
)
def test_members_of_several_tiers_are_counted_one_by_one(
    sizes: list[int], repeats: list[int]
) -> None:
    n_tiers = len(sizes)
    whole = [n * m for n, m in zip(sizes, repeats, strict=False)]
    topology = parse_topology("SW(2)_[" + "_".join(f"SW({n})" for n in [*whole, 2]) + "]")
    strides = tuple(repeats[:n_tiers])
    group = Group((1, *sizes, 1), (1, *strides, 1))
    members = Members(topology, 1, group)
    assert members.size == math.prod(sizes)
    ranks, instances = members.rank, members.instance
    for npu in range(topology.n_npus):
        left, rank, inside, first, step = npu // 2, 0, 1, npu % 2, 2
        for n, stride, total in zip(sizes, strides, whole, strict=True):
            place = left % total
            digit = place // stride % n
            rank, inside = rank + digit * inside, inside * n
            first += (place - digit * stride) * step
            left, step = left // total, step * total
        first += left * step
        assert ranks[npu] == rank
        assert members.peers(np.zeros(topology.n_npus, dtype=int))[npu] == first
        assert instances[npu] == instances[first]
    assert np.bincount(instances).tolist() == [members.size] * (topology.n_npus // members.size)


def test_placements_move_positions_over_the_whole_stack(tmp_path: Path) -> None:
    problem = _problem(tmp_path, "SW(2)_[SW(2)_SW(3)]")
    links = checked(problem, 450, 50, 50)
    for dim in (1, 2):
        built = links.design.dimensions[dim]
        found = placed_npus(problem.topology, dim, built, "rail", 0)
        # Positions of leaves in turn: 0, 2, 4, then 1, 3, 5; two NPUs each.
        assert found.tolist() == [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]
    random = [placed_npus(problem.topology, dim, built, "random", 3).tolist() for dim in (1, 2)]
    assert random[0] == random[1]
    assert sorted(random[0]) == list(range(12))


def test_failures_hit_the_network_of_a_stack_once(tmp_path: Path) -> None:
    problem = _problem(
        tmp_path, "SW(2)_[SW(4)_SW(4)]", realization={"port_speed": "50 GB/s", "switch_radix": 16}
    )
    links = checked(problem, 450, 50, 12.5)
    clos = links.design.dimensions[1].clos
    n_cables = clos.total_leaves * clos.n_uplinks
    study = every_single_failure(links, ECMP)
    assert len(study.cases) == n_cables + clos.n_switches["spine"]
    assert all(case.name.startswith("dim3: ") for case in study.cases)
    slower = drawn_failures(links, SPRAY, n_links=1, seeds=[0, 1])
    assert (slower.step_time_s > slower.whole_step_time_s).all()


def test_more_taper_is_never_faster(tmp_path: Path) -> None:
    """A tier that waits for its uplinks lets the NIC serve other tiers: 14/16 GB over 50 GB/s, or
    what hashing makes of the 2/16 GB over the uplinks, whichever is longer."""
    problem = _problem(tmp_path, "SW(2)_[SW(4)_SW(2)]")
    times = []
    for up in (50, 25, 12.5):
        links = checked(problem, 450, 50, up)
        report = links.report(ECMP, seeds=[0, 1, 2])
        factor = max(phase.time_factor for phase, _ in report.phases)
        uplinks = 2 / 16 * factor / up
        assert report.effective_step_time_s[0] == pytest.approx(max(14 / 16 / 50, uplinks))
        sprayed = [phase for phase, _ in links.report(SPRAY).phases]
        assert [phase.worst_rate_Bps for phase in sprayed] == pytest.approx([450e9, 50e9, up * 1e9])
        times.append(report.effective_step_time_s.mean())
    assert times == sorted(times)


def test_jobs_share_a_stack(tmp_path: Path) -> None:
    first = _problem(tmp_path, "SW(2)_[SW(4)_SW(2)]")
    bandwidth = np.array([450e9, 50e9, 25e9])
    shared = shared_fabric([first, first], [bandwidth] * 2, traffic=TrafficSettings())
    assert str(shared.design.topology) == "SW(2)_[SW(4)_SW(4)]"
    npus = [check.npu_at for check in shared.checks]
    assert np.concatenate(npus).tolist() == list(range(32))
    alone, beside = shared.reports(SPRAY, seeds=[0])[0].alone, shared.reports(SPRAY, seeds=[0])[0]
    assert alone.ideal_step_time_s == pytest.approx(alone.effective_step_time_s[0])
    assert beside.slowdown[0] >= 1
    other = bandwidth * [1, 2, 1]
    with pytest.raises(SpecError, match="expected one bandwidth in the shared dim2"):
        shared_fabric([first, first], [bandwidth, other], traffic=TrafficSettings())


def _bought(folder: Path, topology: str, bandwidth: list[float], **links: object) -> Bill:
    """The network's lines of a report's bill."""
    problem = _problem(folder, topology, realization={"port_speed": "400 Gbps", **links})
    catalogue = load_parts()
    bought = purchase(problem, np.array(bandwidth) * 1e9, catalogue.parts)
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(problem.prices.parts))
    return Bill(with_one_stock([line for line in shop.lines(bought) if line.part.unit_usd]))


@pytest.mark.parametrize(
    ("topology", "bandwidth", "links", "order"),
    [
        (
            "SW(8)_[SW(32)_SW(8)]",
            [450, 50, 25],
            {},
            ClusterOrder(256, tapers=(2.0,), most_hosts_per_leaf=32),
        ),
        (
            "SW(8)_[SW(16)_SW(8)]",
            [450, 50, 50],
            {"wiring": "rail_only", "planes": 2},
            ClusterOrder(128, wiring="rail_only", n_planes=2, most_hosts_per_leaf=16),
        ),
        (
            "SW(8)_[SW(4)_SW(16)]",
            [450, 50, 50],
            {"wiring": "top_of_rack", "port_up": "800 Gbps"},
            ClusterOrder(64, wiring="top_of_rack", uplink_Bps=100e9),
        ),
    ],
)
def test_a_stack_is_bought_as_the_same_cluster_without_a_plan(
    topology: str,
    bandwidth: list[float],
    links: dict[str, object],
    order: ClusterOrder,
    tmp_path: Path,
) -> None:
    whole = _bought(tmp_path, topology, bandwidth, **links)
    catalogue = load_parts()
    shop = FabricShop(catalogue.parts, catalogue.assumptions, Book(()))
    network = cluster_network(order)
    alone = cluster_bill(network, shop)
    assert whole.n_bought_by_part() == alone.n_bought_by_part()
    assert whole.total_usd == alone.total_usd
    assert whole.power_w == pytest.approx(alone.power_w)
    by_dim = whole.usd_by(lambda line: line.dimension)
    assert set(by_dim) == {"dim2", "dim3"}


@pytest.mark.parametrize(
    ("links", "text"),
    [
        ({"oversubscription": 2}, r"oversubscription for the stack of dim2.*taper\(spine\)"),
        ({"spine": {"switch_radix": 128}}, "spine, a further tier of the network of dim2.*leaf"),
        ({"leaf": {"leaves": 4}}, "leaf: got leaves for the stack of dim2"),
        ({"preset": "routing-64x32"}, "got spines for the stack of dim2"),
        ({"port_speed": "400 Gbps", "port": "600 Gbps"}, "multiple of the NIC's 400 Gbit/s"),
    ],
)
def test_what_a_stack_decides_itself_is_refused(
    links: dict[str, object], text: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=text):
        checked(_problem(tmp_path, "SW(2)_[SW(4)_SW(2)]", realization=links), 450, 50, 50)


def test_keys_of_the_innermost_tier_are_the_network_s(tmp_path: Path) -> None:
    topology = "SW(2)_[SW(4)_SW(2)]"
    keys = {"switch_radix": 32, "leaf": {"wiring": "rail_only", "planes": 2}}
    whole = checked(_problem(tmp_path, topology, realization=keys), 450, 50, 50).design
    assert whole.dimensions[1].settings is whole.dimensions[2].settings
    assert whole.dimensions[1].settings.wiring == "rail"
    assert whole.dimensions[1].clos.n_planes == 4
    usual = checked(_problem(tmp_path, topology, realization={"switch_radix": 32}), 450, 50, 50)
    assert usual.design.dimensions[1].settings.wiring == "rail_optimized"


def test_an_unstacked_switch_takes_planes_and_breakout(tmp_path: Path) -> None:
    # 64 NICs of 400G as two of 200G each, two of them on a port of 400G: 8 leaves of 8 hosts a plane.
    keys = {"port_speed": "400 Gbps", "planes": 2, "port": "400 Gbps", "switch_radix": 8}
    problem = _problem(tmp_path, "SW(2)_SW(32)", realization={"wiring": "rail_optimized", **keys})
    built = checked(problem, 450, 50).design.dimensions[1]
    assert (built.n_nics, built.n_ports, built.bandwidth_Bps) == (1, 2, 50e9)
    assert (built.clos.n_planes, built.clos.host_Bps, built.clos.uplink_Bps) == (2, 25e9, 50e9)
    assert (built.clos.hosts_per_leaf, built.clos.n_switches) == (8, {"leaf": 16, "spine": 8})
    parts = network_parts(checked(problem, 450, 50).design, 1)
    assert {cable.joins: cable.n_cables for cable in parts.cables} == {
        "host-leaf": 64,
        "leaf-spine": 64,
    }
    assert (parts.n_nics, parts.n_ports_used, parts.n_ports_free) == (64, 16 * 8 + 64, 0)


WHOLE = """\
workload: llama3-8b
parallelism: {tp: 8, pp: 4, dp: 1}
global_batch: 4
npu: h100-sxm
fabric:
  topology: SW(8)_[SW(2)_SW(2)]
  tiers: [node, leaf, spine]
  scale_up: nvlink4-8
cost_model: clos-2026
constraints: [leaf == 50 GB/s, taper(spine) == 2]
"""


def _whole(tmp_path: Path, *settings: str) -> LinkCheck:
    """At 450, 50 and 25 GB/s."""
    path = tmp_path / "whole.yaml"
    path.write_text(WHOLE)
    return link_check(load_plan(path, settings), np.array([450e9, 50e9, 25e9]))


@pytest.mark.parametrize(("interleave", "n_stages"), [(1, 4), (2, 4)])
def test_sends_between_stages_by_hand(tmp_path: Path, interleave: int, n_stages: int) -> None:
    """Four stages on two leaves: one of the two nodes of a leaf sends to the other leaf.

    It has both nodes' shares of the uplinks, 50 GB/s: half the time that the model takes at 25.
    A stage sends M/tp both ways, v times; 3 + 1/v of 4 microbatches and 1/v of all stages wait.
    """
    one = _whole(tmp_path, f"parallelism.interleave={interleave}", "overlap={p2p: false}")
    report = one.report(Policy("pinned"))
    (phase,) = (x for x in report.phases if "send" in x[1][0].label)
    assert [(sent.name, sent.n_flows) for sent in phase[0].rounds] == [
        ("to the next stage", 8 * (4 if interleave > 1 else 3)),
        ("to the stage before", 8 * (4 if interleave > 1 else 3)),
    ]
    assert phase[0].time_factor == pytest.approx(0.5, rel=1e-12)
    sent_s = 2 * interleave * (8192 * 4096 * 2 / 8) / 25e9
    waits = (4 - 1 / interleave) + n_stages / interleave
    saved_s = report.ideal_step_time_s - report.spray_step_time_s
    assert saved_s == pytest.approx(waits * sent_s / 2, rel=1e-6)
    assert report.effective_step_time_s[0] == pytest.approx(report.spray_step_time_s, rel=1e-12)


def test_sends_that_wait_for_uplinks_leave_the_nic_to_others(tmp_path: Path) -> None:
    """Gradients inside leaves and sends between them: thinner uplinks never make a step shorter."""
    path, times = tmp_path / "shared.yaml", []
    degrees = "{tp: 8, pp: 2, dp: 16, interleave: 4}"
    path.write_text(
        WHOLE.replace("{tp: 8, pp: 4, dp: 1}", degrees).replace("batch: 4", "batch: 128")
    )
    plan = load_plan(
        path, ["fabric.topology=SW(8)_[SW(16)_SW(2)]", "constraints=[leaf <= 10 GB/s]"]
    )
    for up in (10, 5, 2.5):
        links = link_check(plan, np.array([450e9, 10e9, up * 1e9]))
        found = links.report(ECMP, seeds=[0, 1, 2])
        assert any(one.slowdown > 1.5 for one, _ in found.phases)
        times.append(found.effective_step_time_s.mean())
    assert times == sorted(times)


AXES = "parallelism={tp: 8, cp: 2, pp: 2, dp: 2}"


@pytest.mark.parametrize(
    ("ways", "more"),
    [
        ("ring", ()),
        ("all-gather", ()),
        ("all-to-all", ()),
        ("ring", ("training_loop=tp_dp_overlap",)),
        ("ring", ("fidelity=calibrated",)),
    ],
)
def test_all_bytes_of_a_whole_step_are_routed(
    tmp_path: Path, ways: str, more: tuple[str, ...]
) -> None:
    """By axis what the model sends; sprayed, where all ranks send across, in the model's time."""
    settings = (AXES, f"exchanges={{cp: {ways}}}", "fabric.topology=SW(8)_[SW(2)_SW(4)]")
    one = _whole(tmp_path, *settings, *more, "overlap={p2p: false}")
    (training,) = one.problem.step.trainings
    assert isinstance(training, ModelTraining)
    modelled: dict[str, float] = {}
    for _, exchange in step_exchanges(training.trained):
        n_ranks = training.groups[exchange.axis].n_npus
        axis = "dp" if exchange.axis == "dp_cp" else exchange.axis
        modelled[axis] = modelled.get(axis, 0.0) + float(exchange.sent_bytes(n_ranks))
    routed: dict[str, float] = {}
    for user in (*one.problem.step.communications, *one.problem.step.sends):
        axis = user.axis if isinstance(user, Send) else user.collective.group
        routed[axis] = routed.get(axis, 0.0) + user.count * float(one.bytes_of(user).sum())
    assert routed == pytest.approx(modelled, rel=1e-12)
    served = [user for users in one.stages.values() for user in users]
    assert {*one.problem.step.communications, *one.problem.step.sends} == set(served)
    for key in one.with_schedule(Policy("spray")).keys:
        phase, most = one.phase(key), 0.0  # Of the ends of a pipeline one direction is missing.
        for _, _, flows in phase.flows(0):
            most += np.bincount(phase.built.npu_of_port[flows.src], flows.size_bytes).max()
        assert most == pytest.approx(phase.built.n_ports)
    report = one.report(Policy("spray"))
    assert report.spray_step_time_s == pytest.approx(report.ideal_step_time_s, rel=1e-9)


def test_sends_on_links_from_npu_to_npu() -> None:
    """One link of n - 1, one direction of a ring; a switch has one link for all."""
    spans = [Span(4, 1, 8), Span(2, 4, 8), Span(2, 1, 2)]
    found = [[block().send_slowdown(span) for span in spans] for block in (Ring, FullyConnected)]
    assert found == [[2.0, 8.0, 1.0], [7.0, 7.0, 1.0]]
    assert Switch().send_slowdown(spans[0]) == 1.0


def _plain_neighbours(topology: Topology, dim: int, group: Group, step: int) -> list[tuple]:
    """One NPU after the other, by its coordinates."""
    ports, found = topology.ports, []
    members: dict[tuple, list[tuple]] = {}
    for place in itertools.product(*(range(size) for size in reversed(topology.sizes))):
        at = place[::-1]
        parts = zip(at, group.sizes, group.strides, strict=True)
        others = tuple((x % s, x // (s * n)) for x, n, s in parts)
        members.setdefault(others, []).append(at)  # Inner coordinates are fastest: by rank.
    for ranks in members.values():
        for i, at in enumerate(ranks):
            there = ranks[(i + step) % len(ranks)]
            to = tuple(
                y if p == ports[dim] else x for x, y, p in zip(at, there, ports, strict=True)
            )
            if to != at:
                found.append((at, to))
    return sorted(found)


@pytest.mark.parametrize("notation", ["SW(4)_SW(6)", "SW(4)_[SW(3)_SW(4)]", "[SW(2)_SW(4)_SW(3)]"])
@pytest.mark.parametrize(("inner", "pp"), [(1, 4), (2, 4), (2, 8), (4, 3), (8, 2), (1, 24)])
def test_neighbours_are_those_of_the_coordinates(notation: str, inner: int, pp: int) -> None:
    topology = parse_topology(notation)
    rest = topology.n_npus // inner // pp
    try:
        groups = placed_groups(
            topology, {"tp": inner, "pp": pp, "dp": rest}, ["tp", "cp", "pp", "dp"]
        )
    except SpecError:
        return
    for dim, size in enumerate(groups["pp"].sizes):
        for step in (1, -1) if size > 1 else ():
            src, dst = neighbours(topology, dim, groups["pp"], step, around=True)
            places = [
                [tuple(int(x) for x in np.unravel_index(n, topology.sizes, "F")) for n in ends]
                for ends in (src.tolist(), dst.tolist())
            ]
            expected = _plain_neighbours(topology, dim, groups["pp"], step)
            assert sorted(zip(*places, strict=True)) == expected


def test_sends_get_no_more_than_the_links_have(tmp_path: Path) -> None:
    """Half of the NPUs send at once, at twice their share: the links give what they have."""
    one = _whole(tmp_path)
    inner, outer = one.report(SPRAY).dimensions[-2:]
    assert outer.ideal_efficiency > 1
    assert outer.sprayed_Bps == outer.bandwidth_Bps
    # What routing costs is taken off in full: 1.5 in place of 2 times the share is 3/4.
    twice = replace(outer, ideal_efficiency=2.0)
    assert twice.got_Bps(np.array([2.0, 1.5])) == pytest.approx(
        outer.bandwidth_Bps * np.array([1.0, 0.75])
    )
    half = replace(inner, ideal_efficiency=0.5)
    assert half.sprayed_Bps == half.bandwidth_Bps / 2
    assert half.got_Bps(np.array([0.4])) == pytest.approx([0.4 * half.bandwidth_Bps])


def test_own_links_of_a_plan_are_those_of_its_check(tmp_path: Path) -> None:
    """CP of 2 in a mesh of 8 sends over one of 7 links, and TP of 4 has 3 of 7: one figure."""
    plan = {
        "workload": "llama3-70b",
        "parallelism": {"tp": 4, "cp": 2, "pp": 4, "dp": 4, "interleave": 5},
        "global_batch": 64,
        "npu": "mi300x",
        "cost_model": "clos-2026",
        "fabric": {"topology": "FC(8)_[SW(8)_SW(2)]", "tiers": TIERS[:3], "scale_up": "xgmi-8"},
    }
    path = tmp_path / "mesh.yaml"
    path.write_text(yaml.safe_dump(plan))
    problem, at = load_plan(path), np.array([448e9, 50e9, 50e9])
    checked_s = link_check(problem, at).report(SPRAY).spray_step_time_s
    found = evaluate(problem, at)
    assert found.step_time_s < checked_s == pytest.approx(found.own_links_step_time_s, rel=1e-12)
    said = next(note for note in result_notes(problem, found) if "own links" in note)
    assert "of a dimension, and some sends take one link or direction of an NPU's in" in said


def test_a_line_says_why_an_operation_changes_that_no_link_slows() -> None:
    """DP of 5 s beside work of 2 s and sends of 2 s adds 1 s, and 2 s once sends take 1 s.

    TP of 2 s after work of 3 s adds 1.5 s beside sends of 6 s, and 6/7 s beside those of 9 s.
    """
    sends, gradients = Exposed("PP send", 2.0, 1.0), Exposed("DP reduce-scatter", 1.0, 2.0)
    said = " ".join(overlap_lines([gradients, sends]))
    assert "where one takes longer on the links, others beside it add less to the step;" in said
    assert said.endswith("where one takes less, they add more")
    tp_s = [_tp_beside_sends_s(sends_s) for sends_s in (6.0, 9.0)]
    assert tp_s == pytest.approx([1.5, 6 / 7])
    assert not list(overlap_lines([gradients]))
    assert not list(overlap_lines([sends]))


def _tp_beside_sends_s(sends_s: float) -> float:
    """What TP of 2 s after work of 3 s adds beside sends."""
    tp, sends = Labelled("TP", transfers([2.0])), Labelled("PP send", transfers([sends_s]))
    step = TimeExpression(Maximum((add([Constant(3.0), tp]), sends)), 1)
    return sum(x.seconds for x in critical_path(step, np.ones(1)) if x.label == "TP")


def test_a_note_says_what_links_make_of_sends(tmp_path: Path) -> None:
    """Half of the model's time on shared uplinks; three links in place of one in a mesh."""
    one = _whole(tmp_path)
    sends = one.problem.step.sends
    (shared,) = send_notes(one.problem.topology, sends, one.report(SPRAY))
    assert shared.startswith("dim2 and dim3: sprayed, the sends of pp take 50% of the model's")
    mesh = parse_topology("SW(8)_FC(4)")
    in_mesh = [replace(send, group=Group((1, 4), (1, 1))) for send in sends]
    report = replace(one.report(SPRAY), keys=(), phases=())
    (slower,) = send_notes(mesh, in_mesh, report)
    assert slower == "dim2: a send of pp takes one link or direction of an NPU's, 3 times the " + (
        "model's time"
    )
