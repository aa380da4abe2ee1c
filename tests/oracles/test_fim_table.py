"""ECMP on whole fabrics against the figures of uniform hashing, and FlowTracer's finding (C10).

The table is that of the reference set: exact means, and spreads of 4,000 trials. FlowTracer
(arXiv 2410.17078, abstract) reports 30 % less imbalance with static routing on 16 nodes of
400 Gbit/s; its leaf, spine and flow counts are not published, those here are assumed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from libra_planner.check.report import flow_report, seed_reports
from libra_planner.fabric.clos import Clos, Flows
from libra_planner.fabric.realization import preset_fabric
from libra_planner.inputs.fabrics import load_fabric
from libra_planner.inputs.flow_tables import read_flows
from libra_planner.routing.loads import fim_percent, max_over_mean
from libra_planner.routing.policy import Policy
from libra_planner.routing.routes import Router
from tests.checked_plans import checked, loaded, operation
from tests.fim_reference import TABLE, expected_fim_percent


def within(sample: NDArray[np.float64], mean: float, n_errors: float = 3.0) -> bool:
    """Whether the mean of a sample is that expected within standard errors."""
    return abs(sample.mean() - mean) <= n_errors * sample.std(ddof=1) / np.sqrt(len(sample))


def both_ways(n_flows: int, n_spines: int) -> tuple[Clos, Flows]:
    """Flows from leaf 0 to leaf 1, each between hosts of its own."""
    fabric = Clos(n_flows, 2, n_spines, host_Bps=1.0, uplink_Bps=1.0)
    src = np.arange(n_flows)
    return fabric, Flows(src, src + n_flows, np.ones(n_flows))


@pytest.mark.parametrize(
    ("n", "k", "mean", "sd", "peak"), [row for row in TABLE if not np.isnan(row[3])]
)
def test_murmur_on_a_fabric_meets_the_table(n, k, mean, sd, peak) -> None:
    fabric, flows = both_ways(n, k)
    router = Router(fabric, flows, Policy())
    n_seeds = 800
    for layer, start in (("leaf_up", 0), ("spine_down", k)):
        links = fabric.layer(layer).links
        counts = np.array(
            [router.counts(seed)[links][start : start + k] for seed in range(n_seeds)]
        )
        fim = fim_percent(counts)
        assert within(fim, mean)
        assert within(fim, float(expected_fim_percent(n, k)))
        assert fim.std(ddof=1) == pytest.approx(sd, rel=0.12)
        assert max_over_mean(counts).mean() == pytest.approx(peak, rel=0.03)


# FlowTracer -----------------------------------------------------------------------------------


def flowtracer(policy: str) -> tuple[Clos, Flows]:
    """Every host sends to one of the next leaf with 8 queue pairs: 32 flows on 8 uplinks."""
    fabric = preset_fabric("flowtracer-16x400G")
    src = np.repeat(np.arange(16), 8)
    via = np.tile(np.arange(8), 16) if policy == "pinned" else np.full(128, -1)
    pair = np.tile(np.arange(8), 16)
    return fabric, Flows(src, (src + 4) % 16, np.full(128, 1e9), pair=pair, via=via)


def test_static_routing_leaves_no_imbalance_in_flowtracers_setting() -> None:
    fabric, flows = flowtracer("ecmp")
    assert (fabric.total_leaves, fabric.n_spines, fabric.hosts_per_leaf) == (4, 8, 4)
    ecmp = seed_reports(fabric, flows, Policy(), seeds=range(1500), with_rates=False)
    assert [layer.n_flows for layer in ecmp.first.layers] == [128] * 4
    assert within(ecmp.fim_percent, 36.54)
    for name in ("pinned", "greedy", "edge_coloring"):
        static = flow_report(*flowtracer(name), Policy(name))
        assert static.fim_percent == 0.0
        assert ecmp.fim_percent.mean() - static.fim_percent > 30
        assert static.slowdown == pytest.approx(1.0)


def test_imbalance_costs_flowtracers_hosts_time_only_beyond_their_own_eight_flows() -> None:
    """4 hosts under 8 uplinks: a link may carry 8 flows, twice its share, at the hosts' pace."""
    found = seed_reports(*flowtracer("ecmp"), Policy(), seeds=range(60))
    fullest = found.layer_max_flows[1:-1].max(axis=0)
    np.testing.assert_allclose(found.slowdown, np.maximum(1, fullest / 8), rtol=1e-9)
    assert found.slowdown.min() == pytest.approx(1)
    assert found.slowdown.max() > 1.2


def test_imbalance_costs_time_where_uplinks_are_as_many_as_hosts() -> None:
    """The two examples: every flow above the mean of 8 delays the last one on the second."""
    folder = Path(__file__).parents[2] / "examples" / "flows"
    means = []
    for name in ("flowtracer_fabric", "flowtracer_fabric_1to1"):
        fabric = load_fabric(str(folder / f"{name}.yaml"))
        flows = read_flows(folder / "flowtracer_flows.csv", fabric).flows
        found = seed_reports(fabric, flows, Policy(), seeds=range(60))
        fullest = found.layer_max_flows[1:-1].max(axis=0)
        np.testing.assert_allclose(found.slowdown, np.maximum(1, fullest / 8), rtol=1e-9)
        assert flow_report(fabric, flows, Policy("greedy")).slowdown == pytest.approx(1)
        means.append(found.slowdown.mean())
    assert fabric.n_uplinks == fabric.hosts_per_leaf
    assert means[0] < 1.1 < 1.5 < means[1]


def test_a_plan_of_flowtracers_setting_finds_the_same(tmp_path) -> None:
    """A ring that crosses leaves at every hop, 8 queue pairs each: 36.5 % hashed, 0 % dealt."""
    problem = loaded(
        tmp_path,
        "SW(16)",
        [operation("weight_grad", "all-reduce", 4e8)],
        realization={"preset": "flowtracer-16x400G", "placement": "rail", "queue_pairs": 8},
        fidelity="pipelined",
        chunks=1,
        latency_ns=0,
        algorithms=["ring"],
    )
    check = checked(problem, 50)
    ecmp = check.report(Policy(), seeds=range(300))
    assert within(ecmp.fim_percent, 36.54)
    static = check.report(Policy("pinned"))
    assert static.fim_percent[0] == 0.0
    assert static.effective_step_time_s == pytest.approx([static.ideal_step_time_s])
    assert ecmp.effective_step_time_s.mean() > 1.02 * static.effective_step_time_s[0]


def test_the_mean_over_seeds_is_that_of_the_closed_form_on_every_layer() -> None:
    """All layers of three tiers: leaves of 16 flows on 8 links, pods of 64 on 4 x 4 core links."""
    fabric = Clos(16, 4, 8, 1.0, 1.0, n_pods=2, n_cores=4, core_Bps=1.0)
    src = np.arange(fabric.n_hosts)
    flows = Flows(src, (src + fabric.n_hosts // 2) % fabric.n_hosts, np.ones(src.size))
    found = seed_reports(fabric, flows, Policy(), seeds=range(600), with_rates=False)
    names = [layer.name for layer in found.first.layers]
    for name in ("leaf_up", "spine_down"):
        expected = float(expected_fim_percent(16, 8))
        assert within(found.layer_fim_percent[names.index(name)], expected)
    # A core link is one of 8 x 4 to each of the 64 flows of its pod.
    for name in ("spine_up", "core_down"):
        expected = float(expected_fim_percent(64, 32))
        assert within(found.layer_fim_percent[names.index(name)], expected)


# Polarization, entropy, linear hashes -----------------------------------------------------------


def three_tiers(n_flows: int) -> tuple[Clos, Flows]:
    fabric = Clos(16, 2, 8, 1.0, 1.0, n_pods=2, n_cores=8, core_Bps=1.0)
    rng = np.random.default_rng(3)
    half = fabric.n_hosts // 2
    src = rng.integers(0, half, n_flows)
    return fabric, Flows(src, half + rng.integers(0, half, n_flows), np.ones(n_flows))


@pytest.mark.parametrize("function", ["murmur", "crc32", "xor"])
def test_a_shared_seed_polarizes(function: str) -> None:
    """A spine gets the flows of one remainder of 8, and hashes them to one of its 8 cores."""
    fabric, flows = three_tiers(4000)
    for shared in (True, False):
        policy = Policy("ecmp", hash=function, shared_seed=shared)
        routing = Router(fabric, flows, policy).routing(seed=1)
        used = routing.counts[fabric.layer("spine_up").links].reshape(2, 8, 8)[0] > 0
        if shared:
            np.testing.assert_array_equal(used, np.eye(8, dtype=bool))
        elif function == "murmur":
            assert used.all()
        else:  # A seed only shifts a linear hash: still one core for each spine and leaf.
            assert (used.sum(axis=1) <= 2).all()


def test_enhanced_hashing_spreads_the_queue_pairs_of_one_source_port() -> None:
    """64 queue pairs of two hosts with one source port: one path, or all 8."""
    fabric = Clos(1, 2, 8, 1.0, 1.0)
    same = np.zeros(64, dtype=np.int64)
    pair = np.arange(64)
    flows = Flows(same, same + 1, np.ones(64), pair=pair, src_port=same + 50_000)
    up = fabric.layer("leaf_up").links
    for enhanced, n_links in ((False, 1), (True, 8)):
        policy = Policy("ecmp", enhanced=enhanced)
        counts = Router(fabric, flows, policy).counts(seed=2)[up]
        assert np.count_nonzero(counts) == n_links


@pytest.mark.parametrize("function", ["crc32", "crc16", "xor"])
@pytest.mark.parametrize("shared", [True, False])
def test_seeds_alone_do_not_change_what_linear_hashes_make_of_fixed_ports(function, shared) -> None:
    """A seed shifts all hashes of a leaf by one constant, which renames its uplinks (C10)."""
    fabric, free = both_ways(64, 16)
    ports = np.random.default_rng(4).integers(49152, 65536, 64)
    flows = Flows(free.src, free.dst, free.size_bytes, src_port=ports)
    linear, mixer = (
        seed_reports(
            fabric,
            flows,
            Policy("ecmp", hash=name, shared_seed=shared),
            seeds=range(50),
            with_rates=False,
        )
        for name in (function, "murmur")
    )
    assert np.ptp(linear.fim_percent) < 1e-9
    assert np.ptp(linear.layer_max_flows[1]) == 0
    assert np.ptp(mixer.fim_percent) > 1


def test_free_ports_are_drawn_again_for_every_seed() -> None:
    fabric, flows = both_ways(64, 16)
    policy = Policy("ecmp", hash="crc32")
    found = seed_reports(fabric, flows, policy, seeds=range(400), with_rates=False)
    assert np.ptp(found.fim_percent) > 5
