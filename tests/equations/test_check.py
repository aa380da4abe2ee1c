"""Step times on real links worked by hand, and against slow sums of their parts (C5, C6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

import libra_planner as lp
from libra_planner.check.links import LinkCheck
from libra_planner.check.traffic import Members
from libra_planner.fabric.blocks import FULLY_CONNECTED, RING, SWITCH, DirectBlock
from libra_planner.fabric.realization import Direct
from libra_planner.fabric.topology import parse_topology
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import finish_times_s
from libra_planner.routing.routes import single_paths
from libra_planner.step.collectives.algorithms import real_link_slowdown, traffic_bytes, visits
from libra_planner.workload.operations import Collective, CollectiveKind, Group
from tests.checked_plans import checked, loaded, operation
from tests.direct_paths import NEXT, PREVIOUS, SHORTER, direct_links_of

KINDS = [kind.value for kind in CollectiveKind]
SPRAY, ECMP = Policy("spray"), Policy("ecmp")

# By hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["ecmp", "spray", "greedy"])
@pytest.mark.parametrize("placement", ["contiguous", "random"])
def test_one_switch_delivers_all_its_bandwidth(kind, policy, placement, tmp_path) -> None:
    steps = [operation("weight_grad", kind, 4e8, compute_ms=3, count=5)]
    problem = loaded(tmp_path, "SW(16)", steps, realization={"placement": placement})
    report = checked(problem, 50).report(Policy(policy), seeds=range(3))
    np.testing.assert_allclose(report.effective_step_time_s, report.ideal_step_time_s, rtol=1e-12)
    assert report.spray_step_time_s == pytest.approx(report.ideal_step_time_s, rel=1e-12)
    assert report.dimensions[0].efficiency == pytest.approx([1.0] * 3)
    assert np.isnan(report.fim_percent).all()  # One switch has no links between switches.


@pytest.mark.parametrize("algorithm", ["ring", "direct", "direct1", "halving_doubling"])
def test_one_switch_delivers_it_to_every_algorithm(algorithm, tmp_path) -> None:
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    pipelined = {"fidelity": "pipelined", "chunks": 4, "algorithms": [algorithm]}
    problem = loaded(tmp_path, "SW(16)", steps, latency_ns=300, **pipelined)
    report = checked(problem, 50).report(ECMP)
    assert report.effective_step_time_s[0] == pytest.approx(report.ideal_step_time_s, rel=1e-12)


@pytest.mark.parametrize(("ratio", "factor"), [(1, 1.0), (2, 2.0), (4, 4.0)])
def test_oversubscription_slows_what_all_crosses_it(ratio, factor, tmp_path) -> None:
    """Ring neighbours on different leaves: 4 flows of B on 4 / ratio uplinks of B, 8 hosts."""
    steps = [operation("weight_grad", "all-reduce", 8e8, compute_ms=10)]
    realization = {
        "switch_radix": 8,
        "oversubscription": ratio,
        "leaves": 2,
        "placement": "rail",
        "port_speed": "50 GB/s",
    }
    keys = {"fidelity": "pipelined", "chunks": 1, "algorithms": ["ring"], "latency_ns": 0}
    problem = loaded(tmp_path, "SW(8)", steps, realization=realization, **keys)
    report = checked(problem, 50).report(SPRAY)
    # 2 m (g - 1) / g = 1.4e9 bytes at 50 GB/s are 28 ms.
    assert report.ideal_step_time_s == pytest.approx(0.010 + 0.028)
    assert report.effective_step_time_s == pytest.approx([0.010 + 0.028 * factor])
    assert report.dimensions[0].efficiency == pytest.approx([1 / factor])
    near = realization | {"placement": "contiguous"}
    problem = loaded(tmp_path, "SW(8)", steps, realization=near, **keys)
    # Neighbours on one leaf but for one pair each way: nothing is in the way up to 4:1.
    assert checked(problem, 50).report(SPRAY).slowdown == pytest.approx([1.0])


def test_halving_doubling_loses_in_the_rounds_that_cross_leaves(tmp_path) -> None:
    """2:1 and 2 leaves of 4: rounds of 1/2 and 1/4 stay inside, 1/8 crosses: (6 + 2) / 7."""
    steps = [operation("weight_grad", "all-reduce", 8e8)]
    realization = {"switch_radix": 8, "oversubscription": 2, "leaves": 2}
    halving = {"algorithms": ["halving_doubling"]}
    problem = loaded(tmp_path, "SW(8)", steps, realization=realization, **halving)
    report = checked(problem, 50).report(SPRAY)
    assert report.slowdown == pytest.approx([8 / 7])
    [(phase, users)] = report.phases
    assert [one.time_s / one.ideal_s for one in phase.rounds] == pytest.approx([1, 1, 1])
    assert [one.share for one in phase.rounds] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert (phase.time_factor, phase.slowdown) == pytest.approx((8 / 7, 1))
    assert phase.group_rate_Bps == pytest.approx([50e9 * 7 / 8])
    assert [one.count for one in users] == [1]


def test_whole_ports_give_what_the_design_did_not_ask_for(tmp_path) -> None:
    """37 GB/s on ports of 50: the links carry 50, and the step is shorter than the plan's."""
    steps = [operation("weight_grad", "all-reduce", 1.6e9)]
    problem = loaded(tmp_path, "SW(16)", steps, realization={"port_speed": "400 Gbps"})
    report = checked(problem, 37).report(SPRAY)
    assert report.dimensions[0].bandwidth_Bps == 50e9
    assert report.ideal_step_time_s == pytest.approx(3e9 / 37e9)
    assert report.effective_step_time_s == pytest.approx([3e9 / 50e9])
    assert report.dimensions[0].efficiency == pytest.approx([1.0])  # Of the whole links.
    # Three ports for 120 GB/s, and every NIC has a third.
    report = checked(problem, 120).report(ECMP)
    assert report.dimensions[0].bandwidth_Bps == 150e9
    assert report.effective_step_time_s == pytest.approx([3e9 / 150e9])


@pytest.mark.parametrize(
    ("topology", "parallelism", "factors"),
    [
        # TP has 4 of FC(8), 3 of 7 links; DP the other 2, 1 of 7.
        ("FC(8)_SW(4)", {"tp": 4, "dp": 8}, (7 / 3, 7)),
        # TP is a line of 4 in RI(8) with B/2; DP pairs, 4 apart, close the ring and share it.
        ("RI(8)_SW(4)", {"tp": 4, "dp": 8}, (2, 4)),
    ],
)
def test_partial_groups_have_their_own_links_only(topology, parallelism, factors, tmp_path) -> None:
    steps = [
        operation("forward", "all-reduce", 4e8, group="tp"),
        operation("weight_grad", "reduce-scatter", 4e8, group="dp"),
    ]
    problem = loaded(tmp_path, topology, steps, parallelism=parallelism)
    report = checked(problem, 10, 1000).report(SPRAY)
    # TP: 2 m 3/4 on dim1; DP: m/2 on dim1, which is slowest by far.
    tp, dp = 6e8 / 10e9, 2e8 / 10e9
    assert report.ideal_step_time_s == pytest.approx(tp + dp)
    assert report.effective_step_time_s == pytest.approx([tp * factors[0] + dp * factors[1]])


@pytest.mark.parametrize(("stride", "placement"), [(1, "rail"), (2, "contiguous")])
def test_in_network_trees_of_all_groups_fit_a_full_fabric(stride, placement, tmp_path) -> None:
    """2 groups on each of 8 planes of 4 leaves: 2 trees on the 4 uplinks of a leaf."""
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    problem = loaded(
        tmp_path,
        "FC(8)_SW(16)",
        steps,
        parallelism={"forward": [1, stride], "input_grad": [1, 1], "weight_grad": [1, 8]},
        realization={"switch_radix": 8, "placement": placement},
        fidelity="pipelined",
        chunks=1,
        latency_ns=0,
        in_network_reduction=["pod"],
    )
    [one] = problem.step.communications
    assert one.group.strides[1] == stride
    for policy in (SPRAY, Policy("greedy")):
        report = checked(problem, 100, 50).report(policy)
        assert report.slowdown == pytest.approx([1.0])
    drawn = checked(problem, 100, 50).report(ECMP, seeds=range(8))
    assert set(drawn.slowdown.round(9)) <= {1.0, 2.0}
    assert drawn.slowdown.max() == pytest.approx(2.0)
    assert drawn.spray_step_time_s == pytest.approx(drawn.ideal_step_time_s)


# Slow sums ----------------------------------------------------------------------------------------


def factor(check: LinkCheck, run, collective: Collective, group: Group, dim: int) -> float:
    """What a collective's time in a dimension is multiplied with, phase by phase."""
    if check.problem.topology.dimensions[dim].block != SWITCH:
        if check.problem.step.model.n_chunks is not None:
            return 1.0
        return float(real_link_slowdown(collective, group, check.problem.topology)[dim])
    found = [
        report.time_factor
        for key, report in run.items()
        if key[0] == dim
        and any((x.collective, x.group) == (collective, group) for x in check.users(key))
    ]
    assert len(found) == 1
    return found[0]


def collective_s(check: LinkCheck, run, bandwidth, collective: Collective, group: Group) -> float:
    """The slowest dimension counts, each with its own factor (C4)."""
    times = [0.0]
    for dim, n_bytes in enumerate(traffic_bytes(collective, group, check.network.in_network)):
        if n_bytes:
            times.append(n_bytes * factor(check, run, collective, group, dim) / bandwidth[dim])
    return max(times)


OVERSUBSCRIBED = {"switch_radix": 8, "oversubscription": 2, "placement": "random"}


@pytest.mark.parametrize("policy", [SPRAY, ECMP, Policy("greedy")], ids=lambda p: p.name)
def test_the_step_is_the_sum_of_its_slowed_collectives(policy, tmp_path) -> None:
    steps = [
        operation("forward", "all-reduce", 4e8, group="tp", compute_ms=2, count=3),
        operation("forward", "all-to-all", 2e8, group="dp"),
        operation("input_grad", "all-gather", 3e8, group="dp", compute_ms=1),
        operation("weight_grad", "reduce-scatter", 9e8, group="dp", count=2),
    ]
    degrees = {"tp": 16, "dp": 8}
    # Both switches of several leaves: the inner one has no NIC, so its wiring is named.
    links = OVERSUBSCRIBED | {"switch_radix": 4, "node": {"wiring": "rail"}}
    problem = loaded(tmp_path, "RI(4)_SW(8)_SW(4)", steps, parallelism=degrees, realization=links)
    bandwidth = np.array([60e9, 40e9, 20e9])
    check = checked(problem, 60, 40, 20).with_schedule(policy, [4, 9])
    report = check.report(policy, seeds=[4, 9])
    for i, seed in enumerate((4, 9)):
        [run] = check.runs(policy, [seed])
        parts = [
            one.count * collective_s(check, run, bandwidth, one.collective, one.group)
            for one in problem.step.communications
        ]
        assert len(parts) == 4
        effective = report.effective_step_time_s[i]
        assert effective == pytest.approx(3 * 0.002 + 0.001 + sum(parts), rel=1e-12)
    assert (report.effective_step_time_s > report.ideal_step_time_s).all()


def test_overlapping_sides_are_slowed_each_by_itself_and_compete(tmp_path) -> None:
    """C5's tp_dp_overlap with contention, on a switch that both sides share."""
    steps = [
        operation("input_grad", "all-reduce", 4e8, group="tp", compute_ms=1),
        operation("weight_grad", "all-reduce", 9e8, group="dp", compute_ms=2),
    ]
    realization = OVERSUBSCRIBED | {"leaves": 4, "placement": "contiguous"}
    problem = loaded(
        tmp_path,
        "SW(16)",
        steps,
        parallelism={"tp": 4, "dp": 4},
        realization=realization,
        training_loop="tp_dp_overlap",
    )
    check, bandwidth = checked(problem, 50).with_schedule(ECMP, [2]), [50e9]
    report = check.report(ECMP, seeds=[2])
    [run] = check.runs(ECMP, [2])
    tp, dp = (
        collective_s(check, run, bandwidth, one.collective, one.group)
        for one in problem.step.communications
    )
    # TP of 4 stays in its leaf; DP of neighbours 4 apart crosses with every byte.
    assert tp == pytest.approx(6e8 / 50e9)
    assert dp >= 2 * 13.5e8 / 50e9 * (1 - 1e-12)
    expected = 0.001 + max(tp, 0.002 + dp, tp + dp)
    assert report.effective_step_time_s == pytest.approx([expected], rel=1e-12)


@pytest.mark.parametrize("in_network", [[], ["pod"]])
def test_the_pipelined_model_slows_bytes_and_not_latency(in_network, tmp_path) -> None:
    """sum of t_v and (k - 1) times the busiest dimension's, with slowed bytes (C4)."""
    steps = [operation("weight_grad", "all-reduce", 9e8, compute_ms=1)]
    problem = loaded(
        tmp_path,
        "FC(4)_SW(16)",
        steps,
        realization=OVERSUBSCRIBED | {"wiring": "top_of_rack"},
        fidelity="pipelined",
        chunks=8,
        latency_ns=[200, 500],
        in_network_reduction=in_network,
        algorithms=["direct", "halving_doubling"],
    )
    check, bandwidth = checked(problem, 90, 30).with_schedule(ECMP, [3]), np.array([90e9, 30e9])
    report = check.report(ECMP, seeds=[3])
    [run] = check.runs(ECMP, [3])
    [one] = problem.step.communications
    by_dim, total = [0.0, 0.0], 0.0
    for visit in visits(one.collective, one.group, check.network):
        slowed_bytes = visit.n_bytes * factor(check, run, one.collective, one.group, visit.dim)
        latency_s = visit.n_steps * visit.n_hops * [200e-9, 500e-9][visit.dim]
        time_s = slowed_bytes / 8 / bandwidth[visit.dim] + latency_s
        total, by_dim[visit.dim] = total + time_s, by_dim[visit.dim] + time_s
    expected = 0.001 + total + 7 * max(by_dim)
    assert report.effective_step_time_s == pytest.approx([expected], rel=1e-12)
    assert report.slowdown[0] > 1.05


def test_a_group_of_workloads_is_the_weighted_mean_of_its_slowed_steps(tmp_path) -> None:
    first = [operation("weight_grad", "all-reduce", 4e8, compute_ms=1)]
    table = tmp_path / "second.yaml"
    table.write_text(
        "kind: table\nsource: test\noperations:\n"
        "  - {layer: b, phase: weight_grad, collective: {kind: all-to-all, size_bytes: 6e8}}\n"
    )
    workloads = [
        {"workload": "./w.yaml", "name": "one", "weight": 3, "parallelism": {"tp": 1, "dp": 16}},
        {"workload": "./second.yaml", "name": "two", "parallelism": {"tp": 4, "dp": 4}},
    ]
    problem = loaded_group(tmp_path, first, workloads)
    check, bandwidth = checked(problem, 50).with_schedule(ECMP, [5]), [50e9]
    report = check.report(ECMP, seeds=[5])
    [run] = check.runs(ECMP, [5])
    one, two = (
        collective_s(check, run, bandwidth, x.collective, x.group)
        for x in problem.step.communications
    )
    assert report.effective_step_time_s == pytest.approx([(3 * (0.001 + one) + two) / 4])


def loaded_group(folder, operations, workloads):
    """A plan of several workloads: the first in the table that ``loaded`` writes."""
    loaded(folder, "SW(16)", operations, realization=OVERSUBSCRIBED)
    path = folder / "plan.yaml"
    plan = yaml.safe_load(path.read_text())
    del plan["workload"], plan["parallelism"]
    path.write_text(yaml.safe_dump(plan | {"workloads": workloads}))
    return lp.load_plan(path)


def test_a_ring_all_to_all_on_a_switch_carries_its_hops(tmp_path) -> None:
    """C3 counts m (g - 1) / g; passed from neighbour to neighbour it is g / 2 times as much."""
    steps = [operation("weight_grad", "all-to-all", 8e8)]
    for chunks in ({}, {"fidelity": "pipelined", "chunks": 1, "latency_ns": 0}):
        problem = loaded(tmp_path, "SW(8)", steps, **chunks, algorithms=["ring"])
        report = checked(problem, 50).report(SPRAY)
        ideal = 7e8 / 50e9
        assert report.effective_step_time_s == pytest.approx([ideal * 4])
        assert report.ideal_step_time_s == pytest.approx(ideal * (4 if chunks else 1))


# Algorithms ---------------------------------------------------------------------------------------


def step_s(
    folder, algorithm, policy=ECMP, *, kind="all-reduce", realization, selection="library", **keys
) -> float:
    """Mean step time of one collective on SW(32) that a plan names the algorithm of."""
    steps = [operation("weight_grad", kind, 9e8, compute_ms=1)]
    named = {} if algorithm is None else {"algorithms": [algorithm]}
    problem = loaded(folder, "SW(32)", steps, realization=realization, **named, **keys)
    report = checked(problem, 50, selection=selection).report(policy, seeds=range(3))
    return float(report.effective_step_time_s.mean())


PIPELINED = {"fidelity": "pipelined", "chunks": 2, "latency_ns": 0}


@pytest.mark.parametrize("keys", [{}, PIPELINED], ids=["ideal", "pipelined"])
@pytest.mark.parametrize("kind", ["all-reduce", "reduce-scatter", "all-gather"])
@pytest.mark.parametrize(
    ("placement", "fastest"), [("contiguous", "ring"), ("rail", "halving_doubling")]
)
def test_the_faster_of_two_algorithms_runs(placement, fastest, kind, keys, tmp_path) -> None:
    """Rings of neighbours stay on their leaves; dealt out over the leaves they all cross."""
    # On two leaves a ring then crosses with every flow, halving-doubling in its first round.
    links = {"switch_radix": 32, "leaves": 2, "oversubscription": 2, "placement": placement}
    named = {
        one: step_s(tmp_path, one, kind=kind, realization=links, **keys)
        for one in ("ring", "halving_doubling")
    }
    assert min(named, key=named.__getitem__) == fastest
    assert max(named.values()) > 1.01 * min(named.values())
    fast = {"selection": "fastest", **keys}
    assert step_s(tmp_path, None, kind=kind, realization=links, **fast) == named[fastest]
    # Without being asked for the fastest, what NCCL runs.
    assert step_s(tmp_path, None, kind=kind, realization=links, **keys) == named["ring"]


def test_latency_counts_where_the_model_has_it(tmp_path) -> None:
    """31 steps of a ring or 5 of halving-doubling: with a ms each the fewer are faster."""
    links = {"switch_radix": 8}
    slow = {"fidelity": "pipelined", "chunks": 1, "latency_ns": 1e6}
    assert step_s(tmp_path, None, realization=links) == step_s(tmp_path, "ring", realization=links)
    found, halving = (
        step_s(tmp_path, one, realization=links, selection="fastest", **slow)
        for one in (None, "halving_doubling")
    )
    assert found == halving
    assert step_s(tmp_path, "ring", realization=links, **slow) > found + 0.020


@pytest.mark.parametrize("keys", [{}, PIPELINED | {"latency_ns": 500}], ids=["ideal", "pipelined"])
def test_all_to_alls_go_to_all_peers_at_once(keys, tmp_path) -> None:
    links = {"switch_radix": 8}
    found, direct, one_by_one = (
        step_s(tmp_path, one, kind="all-to-all", realization=links, **keys)
        for one in (None, "direct", "direct1")
    )
    assert found == direct
    assert one_by_one > 1.5 * direct


def test_a_choice_says_what_else_could_run(tmp_path) -> None:
    steps = [operation("weight_grad", "all-reduce", 9e8, compute_ms=1)]
    problem = loaded(tmp_path, "SW(32)", steps, realization={"switch_radix": 8})
    report = checked(problem, 50, selection="fastest").report(ECMP, seeds=range(3))
    [choice] = report.choices
    assert (choice.algorithm, list(choice.others)) == ("ring", ["halving_doubling"])
    assert choice.time_s == pytest.approx(report.effective_step_time_s.mean() - 0.001)
    slower = step_s(tmp_path, "halving_doubling", realization={"switch_radix": 8})
    assert choice.others["halving_doubling"] == pytest.approx(slower - 0.001)


def test_failures_change_no_algorithm(tmp_path) -> None:
    """What is broken is compared with the same collectives on whole links."""
    steps = [operation("weight_grad", "all-reduce", 9e8, compute_ms=1)]
    links = {"switch_radix": 8, "oversubscription": 2, "placement": "rail"}
    problem = loaded(tmp_path, "SW(32)", steps, realization=links)
    check = checked(problem, 50, selection="fastest")
    report = check.report(SPRAY)
    assert [one.algorithm for one in report.choices] == ["halving_doubling"]
    kept = replace(check.with_schedule(SPRAY), design=checked(problem, 60).design).report(SPRAY)
    assert [one.algorithm for one in kept.choices] == ["halving_doubling"]
    assert kept.choices[0].others == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_comparison_changes_no_figure_and_has_all_times(kind, tmp_path) -> None:
    """Each time is that of the plan that names the algorithm."""
    links = {"switch_radix": 8, "oversubscription": 2}
    steps = [operation("weight_grad", kind, 9e8, compute_ms=1)]
    problem = loaded(tmp_path, "SW(32)", steps, realization=links)
    plain = checked(problem, 50).report(ECMP, seeds=range(3))
    report = checked(problem, 50, selection="compare").report(ECMP, seeds=range(3))
    np.testing.assert_array_equal(report.effective_step_time_s, plain.effective_step_time_s)
    [choice], [usual] = report.choices, plain.choices
    assert (choice.algorithm, choice.stage.reason) == (usual.algorithm, "library")
    assert choice.algorithm == ("direct" if kind == "all-to-all" else "ring")
    halving = ["halving_doubling"] * (kind != "all-to-all")
    assert {choice.algorithm, *choice.others} == {"ring", "direct", "direct1", *halving}
    for name, time_s in choice.others.items():
        named = step_s(tmp_path, name, kind=kind, realization=links)
        assert named == pytest.approx(time_s + 0.001)


def test_only_what_runs_decides_how_many_routings_there_are(tmp_path) -> None:
    """Nor do reduction and exchange of one group take each other's algorithm."""
    steps = [operation("weight_grad", kind, 9e8) for kind in ("all-reduce", "all-to-all")]
    problem = loaded(tmp_path, "SW(32)", steps, realization={"switch_radix": 8})
    plain, compared = (checked(problem, 50, selection=one) for one in ("library", "compare"))
    assert plain.n_drawn_flows(ECMP) == compared.n_drawn_flows(ECMP) == 32 + 32 * 31
    found = [one.report(ECMP, seeds=[1]) for one in (plain, compared)]
    kinds = [[[one.collective.kind for one in users] for _, users in x.phases] for x in found]
    assert kinds[0] == kinds[1] == [["all-reduce"], ["all-to-all"]]


# Direct links -------------------------------------------------------------------------------------


def simulated_slowdown(
    kind: str, block: DirectBlock, size: int, group: int, stride: int, *, both_ways: bool = False
) -> float:
    """Time of all groups' flows on single links over that of C3's bytes at all of B.

    ``both_ways``: half of each ring message goes to the next rank, half to the previous one.
    """
    fabric = Direct(block, size, n_hosts=size, bandwidth_Bps=1.0)
    members = Members(parse_topology(f"{block.notation}({size})"), 0, Group((group,), (stride,)))
    neighbours = block == RING and kind != "all-to-all"
    steps = [1, -1][: 1 + both_ways] if neighbours else list(range(1, group))
    ways = [NEXT, PREVIOUS] if both_ways else [SHORTER] * len(steps)
    src = np.concatenate([members.npus for _ in steps])
    dst = np.concatenate([members.peers((members.rank + step) % group) for step in steps])
    links = direct_links_of(fabric, src, dst, np.repeat(ways, size))
    size_bytes = np.full(len(src), 1 / len(steps))
    return float(finish_times_s(single_paths(links), fabric.capacity_Bps, size_bytes).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "group", "stride"), [(8, 4, 1), (8, 2, 1), (8, 4, 2), (12, 3, 4)])
def test_partial_groups_of_connected_npus_take_what_their_links_take(kind, size, group, stride):
    """All pairs at once, which halves too in direct reduce-scatter and all-gather."""
    topology = parse_topology(f"FC({size})")
    collective = Collective(CollectiveKind(kind), 1.0, "dp")
    expected = real_link_slowdown(collective, Group((group,), (stride,)), topology)[0]
    found = simulated_slowdown(kind, FULLY_CONNECTED, size, group, stride)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("size", "group", "stride"), [(8, 4, 1), (8, 2, 1), (9, 3, 1), (16, 4, 2)])
def test_lines_in_a_ring_take_what_their_links_take(size, group, stride) -> None:
    """Neighbours of a line: the last NPU's bytes go back over the links the other way."""
    topology = parse_topology(f"RI({size})")
    for kind in ("all-reduce", "all-to-all"):
        collective = Collective(CollectiveKind(kind), 1.0, "dp")
        expected = real_link_slowdown(collective, Group((group,), (stride,)), topology)[0]
        assert simulated_slowdown(kind, RING, size, group, stride) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("size", "group", "stride"), [(8, 4, 2), (12, 4, 3), (9, 3, 3), (16, 4, 4)]
)
def test_groups_around_a_ring_take_what_their_links_take(size, group, stride) -> None:
    """Strided groups close the ring: half of every message goes each way, over shared links.

    An all-to-all of them goes the shorter way.
    """
    topology = parse_topology(f"RI({size})")
    both = {"all-reduce": True, "all-to-all": False}
    for kind, both_ways in both.items():
        collective = Collective(CollectiveKind(kind), 1.0, "dp")
        expected = real_link_slowdown(collective, Group((group,), (stride,)), topology)[0]
        found = simulated_slowdown(kind, RING, size, group, stride, both_ways=both_ways)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("size", [3, 4, 5, 8, 16])
def test_an_all_to_all_of_a_whole_ring_is_where_models_differ(size, tmp_path) -> None:
    """C3 counts no hops; the check's links take floor(n^2/4)/(n - 1) of it by shortest ways.

    The pipelined model passes all messages on in one direction at all of B, n/2 (C4).
    """
    links = simulated_slowdown("all-to-all", RING, size, size, 1)
    assert links == pytest.approx(size**2 // 4 / (size - 1))
    steps = [operation("weight_grad", "all-to-all", 1e8)]
    ideal = loaded(tmp_path, f"RI({size})_SW(4)", steps)
    report = checked(ideal, 1, 1000).report(SPRAY)
    assert report.slowdown == pytest.approx([links])
    keys = {"fidelity": "pipelined", "chunks": 1, "latency_ns": 0}
    pipelined = loaded(tmp_path, f"RI({size})_SW(4)", steps, **keys)
    ratio = checked(pipelined, 1, 1e9).report(SPRAY).ideal_step_time_s / report.ideal_step_time_s
    assert ratio == pytest.approx(size / 2, rel=1e-6)
    assert links <= ratio or size == 3
