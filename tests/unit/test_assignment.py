"""Routing policies on cases whose answers are known, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, by_tier, links_of
from libra_planner.routing import integer as ilp
from libra_planner.routing.assignment import (
    annealing,
    edge_coloring,
    greedy,
)
from libra_planner.routing.fairness import (
    collective_rates_Bps,
    collective_times_s,
    is_fairer,
    two_level_max_min,
)
from libra_planner.routing.integer import min_max_ilp
from libra_planner.routing.loads import Bound, busiest_s, imbalance, link_counts
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import single_paths
from tests.assignments import check_paths
from tests.leaf_spine_cases import CASES, Case

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=BY_NAME)
def test_greedy_reference(case: Case) -> None:
    """The rule counts flows, whatever their sizes."""
    assert greedy(case.fabric, case.flows, count_flows=True).uplink.tolist() == case.via


@pytest.mark.parametrize("case", CASES, ids=BY_NAME)
def test_coloring_reaches_the_known_optimum(case: Case) -> None:
    fabric, flows = case.fabric, case.flows
    choice = edge_coloring(fabric, flows, count_flows=True)
    counts = link_counts(fabric, flows, choice)
    for name, fim_percent in zip(("leaf_up", "spine_down"), case.fim_percent, strict=True):
        n = counts[fabric.layer(name).links]
        assert 100 * np.abs(n - n.mean()).mean() / n.mean() == pytest.approx(fim_percent, rel=1e-9)
    most, fim_percent = imbalance(fabric, flows, choice)
    assert most == case.max_link_flows
    assert fim_percent == pytest.approx(sum(case.fim_percent), rel=1e-9)


@pytest.mark.parametrize("case", CASES, ids=BY_NAME)
def test_ilp_reference(case: Case) -> None:
    """Flows on the busiest link where all have one size; its seconds, where they have several."""
    choice, bound = min_max_ilp(case.fabric, case.flows)
    assert bound.optimal
    assert bound.gap_fraction == 0
    if np.unique(case.flows.size_bytes).size == 1:
        assert bound == Bound(case.max_link_flows, case.max_link_flows)
        assert imbalance(case.fabric, case.flows, choice)[0] == case.max_link_flows
    else:
        other_s = busiest_s(case.fabric, case.flows, edge_coloring(case.fabric, case.flows))
        assert bound.objective == busiest_s(case.fabric, case.flows, choice) <= other_s


def test_ilp_solves_what_no_bound_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself reaches the optimum when it is not told of a better start."""
    case = BY_NAME["b4_perm_8x8"]  # Greedy has 2 flows on a link, the optimum is 1.
    monkeypatch.setattr(ilp, "edge_coloring", greedy)
    choice, bound = min_max_ilp(case.fabric, case.flows)
    assert bound == Bound(1, 1)
    check_paths(case.fabric, case.flows, choice)


def test_ilp_without_time_returns_the_best_known_and_the_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = BY_NAME["b4_perm_8x8"]
    out_of_time = optimize.OptimizeResult(x=None, status=1, mip_dual_bound=None)
    monkeypatch.setattr(ilp, "edge_coloring", greedy)
    monkeypatch.setattr(optimize, "milp", lambda *_, **__: out_of_time)
    choice, bound = min_max_ilp(case.fabric, case.flows, time_limit_s=1e-3)
    assert choice.uplink.tolist() == case.via
    assert bound == Bound(2, 1)
    assert bound.gap_fraction == 0.5
    assert not bound.optimal


def test_ilp_proves_a_bound_that_switch_degrees_do_not_give() -> None:
    """By hand: leaf 0 reaches spine 0 only, leaf 2 spine 0 only, so spine 0 takes 0 -> 2 and
    0 -> 1; leaf 1 has two uplinks, but what goes to leaf 2 must use spine 0 as well.
    """
    whole = Clos(hosts_per_leaf=4, n_leaves=3, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    up, down = whole.layer("leaf_up").start, whole.layer("spine_down").start
    failed = np.array([up + 1, down + 5])  # leaf 0 -> spine 1, spine 1 -> leaf 2
    fabric = Clos(
        hosts_per_leaf=4, n_leaves=3, n_spines=2, host_Bps=1e9, uplink_Bps=1e9, failed=failed
    )
    flows = Flows(np.array([4, 5, 6, 7]), np.array([8, 9, 8, 9]), np.ones(4))
    choice, bound = min_max_ilp(fabric, flows)
    assert bound == Bound(4, 4)
    assert choice.uplink.tolist() == [0] * 4


@pytest.mark.parametrize("seed", range(3))
def test_no_policy_by_bytes_is_worse_than_greedy_on_a_large_fabric(seed: int) -> None:
    """64 leaves x 32 spines, 40 failed links: the optimum by counts took 1.6x greedy's time."""
    whole = {
        "hosts_per_leaf": 32,
        "n_leaves": 64,
        "n_spines": 32,
        "host_Bps": 50e9,
        "uplink_Bps": 50e9,
    }
    rng, fabric = np.random.default_rng(seed), Clos(**whole)
    between = np.arange(fabric.layers[1].start, fabric.layers[-1].start)
    fabric = Clos(**whole, failed=np.sort(rng.choice(between, 40, replace=False)))
    src = rng.integers(0, fabric.n_hosts, 2000)
    dst = (src + rng.integers(1, fabric.n_hosts, 2000)) % fabric.n_hosts
    flows = Flows(src, dst, rng.choice([1e9, 2e9, 8e9, 20e9], 2000))
    least_s = 20e9 / 50e9  # Of the largest flow alone: nothing can be faster.
    assert busiest_s(fabric, flows, greedy(fabric, flows, count_flows=True)) > least_s
    assert busiest_s(fabric, flows, edge_coloring(fabric, flows, count_flows=True)) > least_s
    _, bound = min_max_ilp(fabric, flows, time_limit_s=2.0)
    assert bound == Bound(least_s, least_s)
    assert busiest_s(fabric, flows, greedy(fabric, flows)) == least_s
    assert busiest_s(fabric, flows, edge_coloring(fabric, flows)) == least_s
    assert busiest_s(fabric, flows, annealing(fabric, flows, seed=1)) == least_s


def test_ilp_by_bytes_without_time_says_what_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand: 5 flows of 3 and 2 of 4 on 3 uplinks, 23 in all; 8 is the least, 7.67 the mean."""
    fabric = Clos(hosts_per_leaf=7, n_leaves=2, n_spines=3, host_Bps=1.0, uplink_Bps=1.0)
    flows = Flows(np.arange(7), np.arange(7, 14), np.array([3.0] * 5 + [4.0] * 2))
    choice, bound = min_max_ilp(fabric, flows)
    assert bound.optimal
    assert bound.objective == busiest_s(fabric, flows, choice) == 9.0
    out_of_time = optimize.OptimizeResult(x=None, status=1, mip_dual_bound=None)
    monkeypatch.setattr(optimize, "milp", lambda *_, **__: out_of_time)
    _, bound = min_max_ilp(fabric, flows)
    assert bound.objective == 9.0
    assert 23 / 3 <= bound.dual_bound <= 9.0


def test_ilp_refuses_large_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME["b4_perm_8x8"]
    monkeypatch.setattr(ilp, "edge_coloring", greedy)
    monkeypatch.setattr(ilp, "MAX_VARIABLES", 100)
    with pytest.raises(SpecError, match=r"got an integer program of 280 .* 100; use edge_coloring"):
        min_max_ilp(case.fabric, case.flows)


def vars_of(fabric: Clos) -> dict[str, object]:
    """Fields of a fabric."""
    return {name: getattr(fabric, name) for name in Clos.__dataclass_fields__}


THREE_TIERS = {
    "hosts_per_leaf": 4,
    "n_leaves": 2,
    "n_spines": 2,
    "n_pods": 2,
    "n_cores": 2,
    "core_parallel": 2,
    "host_Bps": 1e9,
    "uplink_Bps": 1e9,
    "core_Bps": 1e9,
}


def test_three_tiers_by_hand() -> None:
    """Pod 0's eight hosts send to pod 1: each of its eight core links and their twins get one."""
    fabric = Clos(**THREE_TIERS)
    flows = Flows(np.arange(8), np.arange(8, 16), np.ones(8))
    for policy in (greedy, edge_coloring):
        choice = policy(fabric, flows)
        check_paths(fabric, flows, choice)
        tiers = by_tier(fabric, link_counts(fabric, flows, choice))
        assert tiers.leaf_up[:2].ravel().tolist() == [2] * 4
        assert tiers.spine_up[0].ravel().tolist() == [1] * 8
        assert tiers.core_down[1].ravel().tolist() == [1] * 8
        assert tiers.spine_down[2:].ravel().tolist() == [2] * 4


@pytest.mark.parametrize("policy", [greedy, edge_coloring])
def test_collectives_by_themselves(policy: object) -> None:
    """Two collectives of one flow each share spine 0 if each is placed by itself."""
    fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=np.array([4, 9]))
    together = policy(fabric, flows)  # type: ignore[operator]
    assert sorted(together.uplink.tolist()) == [0, 1]
    alone = policy(fabric, flows, per_collective=True)  # type: ignore[operator]
    assert alone.uplink.tolist() == [0, 0]


def test_the_larger_flow_chooses_first() -> None:
    """Of equal ones the first; by bytes the last, small one then finds an empty spine too."""
    fabric = Clos(hosts_per_leaf=3, n_leaves=2, n_spines=3, host_Bps=1e9, uplink_Bps=1e9)
    flows = Flows(np.arange(3), np.arange(3, 6), np.array([1.0, 3.0, 2.0]))
    assert greedy(fabric, flows).uplink.tolist() == [2, 0, 1]


def test_failed_links_are_avoided_or_named() -> None:
    whole = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    up = whole.layer("leaf_up").start
    flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2))
    one, both = (Clos(**{**vars_of(whole), "failed": up + np.arange(n)}) for n in (1, 2))
    for policy in (greedy, edge_coloring):
        assert policy(one, flows).uplink.tolist() == [1, 1]
        with pytest.raises(SpecError, match="got no path for flow 0 from host 0 to host 2"):
            policy(both, flows)


def test_no_flows_and_no_spines() -> None:
    none = Flows(*(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))
    inside = Flows(np.array([0]), np.array([1]), np.ones(1))
    leaf = Clos(hosts_per_leaf=4, host_Bps=1e9)
    for flows in (none, inside):
        for policy in (greedy, edge_coloring, two_level_max_min):
            assert policy(leaf, flows).uplink.tolist() == [-1] * flows.n_flows
        assert annealing(leaf, flows, seed=1).uplink.tolist() == [-1] * flows.n_flows
        assert min_max_ilp(leaf, flows)[1] == Bound(0, 0)


def test_annealing_depends_on_the_seed_only() -> None:
    case = BY_NAME["d1_oversub4_perm"]
    found = [annealing(case.fabric, case.flows, seed=s, n_sweeps=20).uplink for s in (1, 1, 2)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_annealing_improves_greedy() -> None:
    case = BY_NAME["d1_oversub4_perm"]
    start = imbalance(case.fabric, case.flows, greedy(case.fabric, case.flows))
    assert imbalance(case.fabric, case.flows, annealing(case.fabric, case.flows, seed=1)) < start


def rates_of(fabric: Clos, flows: Flows, choice: Choice) -> Array:
    """Rates of the collectives over a choice of paths."""
    routes = single_paths(links_of(fabric, flows, choice))
    return collective_rates_Bps(flows, max_min_rates(routes, fabric.capacity_Bps))


def test_rates_of_collectives_by_hand() -> None:
    """One uplink of 2 GB/s between leaves, hosts of 4 GB/s.

    Collective 0 sends 2 flows, collective 1 one, which share the uplink: 2/3 GB/s each. The flow
    of 1 GB needs a third of the rate of the one of 3 GB, so that the large one is the slowest.
    Collective 2 is inside a leaf, where two flows share a host's 4 GB/s. Collective 3 sends nothing.
    """
    fabric = Clos(hosts_per_leaf=4, n_leaves=2, n_spines=1, host_Bps=4e9, uplink_Bps=2e9)
    flows = Flows(
        np.array([0, 1, 2, 4, 4, 6]),
        np.array([5, 6, 7, 5, 6, 7]),
        np.array([1e9, 3e9, 1e9, 1e9, 1e9, 0.0]),
        collective=np.array([0, 0, 1, 2, 2, 3]),
    )
    found = rates_of(fabric, flows, greedy(fabric, flows))
    assert found == pytest.approx([2e9 / 3, 2e9 / 3, 2e9, np.inf])
    assert is_fairer(found, found * 0.9)
    assert not is_fairer(found, found)
    # The worst first: a better best one is worth nothing.
    assert is_fairer(np.array([2.0, 1.0, 9.0]), np.array([1.0, 99.0, 1.5]))
    times_s = collective_times_s(flows, np.array([1.5, 3.0, 1.5, 0.5, 0.5, 0.0]))
    assert times_s.tolist() == [3.0, 1.5, 0.5, 0.0]


def test_two_levels_help_the_worst_collective() -> None:
    """The others do not look at rates: the search starts from the best of them, and gains."""
    fabric = Clos(hosts_per_leaf=8, n_leaves=8, n_spines=4, host_Bps=50e9, uplink_Bps=50e9)
    rng = np.random.default_rng(7)
    src = rng.integers(0, 64, 200)
    flows = Flows(
        src,
        (src + rng.integers(1, 64, 200)) % 64,
        rng.choice([1e9, 2e9, 8e9], 200),
        collective=rng.integers(0, 10, 200),
    )
    others = [greedy(fabric, flows), edge_coloring(fabric, flows), min_max_ilp(fabric, flows)[0]]
    others += [annealing(fabric, flows, seed=seed) for seed in range(10)]
    found = rates_of(fabric, flows, two_level_max_min(fabric, flows))
    for choice in others:
        assert is_fairer(found, rates_of(fabric, flows, choice))
