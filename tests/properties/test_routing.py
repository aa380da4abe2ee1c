"""Every policy on random fabrics, against paths and links that are found the slow way."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from libra_planner.check.report import flow_report, seed_reports
from libra_planner.errors import Disconnected, SpecError
from libra_planner.fabric.clos import Clos, Flows
from libra_planner.routing.ecmp import HASHES
from libra_planner.routing.policy import POLICIES, Policy
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import Router, Routing, with_vias
from tests import plain_clos
from tests.assignments import flows_on
from tests.flows_reference import worst_violation

SETTINGS = [
    *(Policy("ecmp", hash=name) for name in HASHES),
    Policy("ecmp", shared_seed=True, enhanced=True),
    *(Policy(name, time_limit_s=1.0) for name in POLICIES if name not in ("ecmp", "pinned")),
    Policy("greedy", per_collective=True),
    Policy("edge_coloring", per_collective=True),
]


def pinned_at_random(fabric: Clos, flows: Flows, seed: int) -> Flows:
    """The flows with any spine, or core, for each."""
    draw = np.random.default_rng(seed).integers(0, 10**6, flows.n_flows)
    pod = flows.src // (fabric.hosts_per_leaf * fabric.n_leaves)
    far = pod != flows.dst // (fabric.hosts_per_leaf * fabric.n_leaves)
    n_vias = np.where(far, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    via = np.where(n_vias > 0, draw % np.maximum(n_vias, 1), -1)
    return Flows(flows.src, flows.dst, flows.size_bytes, collective=flows.collective, via=via)


@st.composite
def cases(draw: st.DrawFn, n_failed: int, max_flows: int = 40) -> tuple[Clos, Flows]:
    """A fabric and flows that it joins."""
    fabric = draw(plain_clos.fabrics(n_failed=n_failed))
    return fabric, plain_clos.joined_flows(fabric, draw(flows_on(fabric, max_flows=max_flows)))


def check_conservation(fabric: Clos, flows: Flows, routing: Routing) -> None:
    """What comes into a switch leaves it, hosts send and get their own, failed links are idle."""
    balance: Counter[plain_clos.Node] = Counter()
    for (tail, head), count in zip(plain_clos.links(fabric), routing.counts, strict=True):
        balance[head] += count
        balance[tail] -= count
    expected = Counter(("host", int(host)) for host in flows.dst)
    expected.subtract(("host", int(host)) for host in flows.src)
    for node in balance:
        assert balance[node] == pytest.approx(expected[node], abs=1e-9)
    assert not routing.counts[fabric.failed].any()
    assert routing.counts.min(initial=0) >= 0


def check_paths(fabric: Clos, flows: Flows, routing: Routing) -> None:
    """Every flow's links are one of its equal paths; the counts and routes are made of them."""
    assert routing.links is not None
    graph, ends = plain_clos.link_graph(fabric), plain_clos.links(fabric)
    counts = np.zeros(fabric.n_links)
    for f in range(flows.n_flows):
        src, dst = int(flows.src[f]), int(flows.dst[f])
        path = tuple(int(x) for x in routing.links[f] if x >= 0)
        assert (ends[path[0]][0], ends[path[-1]][1]) == (("host", src), ("host", dst))
        assert all(ends[a][1] == ends[b][0] for a, b in pairwise(path))
        assert len(path) == plain_clos.usual_hops(fabric, src, dst)
        assert nx.is_path(graph, path)  # Working links only.
        assert path == tuple(routing.routes.of(f).tolist())
        counts[list(path)] += 1
    np.testing.assert_array_equal(routing.counts, counts)


def check_rates(flows: Flows, routing: Routing) -> None:
    """No link over its capacity, and every flow has a bottleneck."""
    rates = max_min_rates(routing.routes, routing.capacity_Bps)
    assert np.all(rates > 0)
    assert worst_violation(routing.routes, routing.capacity_Bps, rates) < 1e-9


@pytest.mark.parametrize("policy", SETTINGS, ids=str)
@settings(max_examples=12)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_every_policy_conserves_flows(policy: Policy, data: st.DataObject, seed: int) -> None:
    few = 10 if policy.name in ("ilp", "two_level_max_min") else 40
    fabric, flows = data.draw(cases(n_failed=4, max_flows=few))
    routing = Router(fabric, flows, policy).routing(seed)
    check_conservation(fabric, flows, routing)
    check_rates(flows, routing)
    if policy.name != "spray":
        check_paths(fabric, flows, routing)


def _pinned_or_refused(fabric: Clos, flows: Flows) -> Routing | None:
    try:
        return Router(fabric, flows, Policy("pinned")).routing(seed=0)
    except SpecError as error:
        failed = [fabric.link_name(int(link)) for link in fabric.failed]
        named = re.search(r"pinned to (.*), which failed", str(error))
    assert named
    assert named[1] in failed
    return None


@settings(max_examples=60)
@given(cases(n_failed=2), st.integers(0, 1000))
def test_pinned_flows_take_the_spine_or_core_they_name(case, seed: int) -> None:
    fabric, free = case
    flows = pinned_at_random(fabric, free, seed)
    routing = _pinned_or_refused(fabric, flows)
    if routing is None:
        return
    check_conservation(fabric, flows, routing)
    check_paths(fabric, flows, routing)
    check_rates(flows, routing)
    ends = plain_clos.links(fabric)
    for f in range(flows.n_flows):
        tops = [ends[x][1] for x in routing.routes.of(f)]
        if len(tops) == 4:
            assert tops[1][-1] == flows.via[f]
        if len(tops) == 6:
            assert tops[2][2] * fabric.n_cores + tops[2][3] == flows.via[f]


@settings(max_examples=40)
@given(cases(n_failed=0), st.integers(0, 1000))
def test_pinned_flows_take_parallel_links_in_turn(case, seed: int) -> None:
    fabric, free = case
    flows = pinned_at_random(fabric, free, seed)
    routing = Router(fabric, flows, Policy("pinned")).routing(seed=0)
    bundles: dict[plain_clos.Link, list[float]] = {}
    for link, count in zip(plain_clos.links(fabric), routing.counts, strict=True):
        bundles.setdefault(link, []).append(count)
    assert all(max(counts) - min(counts) <= 1 for counts in bundles.values())


@settings(max_examples=40)
@given(cases(n_failed=4, max_flows=25), st.integers(0, 99), st.sampled_from(["ecmp", "greedy"]))
def test_no_layer_is_better_than_its_floor(case, seed: int, name: str) -> None:
    fabric, flows = case
    assume(flows.n_flows)
    report = flow_report(fabric, flows, Policy(name), seed=seed)
    for layer in report.layers:
        if layer.n_flows:
            assert layer.fim_percent >= layer.fim_floor_percent - 1e-9
    if not np.isnan(report.fim_percent):
        assert report.fim_percent >= report.fim_floor_percent - 1e-9


@settings(max_examples=25)
@given(data=st.data(), function=st.sampled_from(["murmur", "crc32"]))
def test_ecmp_spreads_over_exactly_the_live_equal_paths(data: st.DataObject, function: str) -> None:
    """6,000 flows of one pair: each path is taken, as often as even splitting says."""
    fabric = data.draw(plain_clos.fabrics(n_failed=8))
    one = plain_clos.joined_flows(fabric, data.draw(flows_on(fabric, max_flows=3)))
    assume(one.n_flows)
    n = 6_000
    flows = Flows(np.repeat(one.src[:1], n), np.repeat(one.dst[:1], n), np.ones(n))
    routing = Router(fabric, flows, Policy("ecmp", hash=function)).routing(seed=5)
    graph = plain_clos.link_graph(fabric)
    paths = plain_clos.equal_paths(fabric, graph, int(one.src[0]), int(one.dst[0]))
    assert routing.links is not None
    found = {tuple(x for x in row if x >= 0) for row in np.unique(routing.links, axis=0).tolist()}
    if function == "crc32":
        # Linear hashes of one pair's ports fill a coset: they may miss paths, never add one.
        assert found <= set(paths)
        return
    assert found == set(paths)
    shares = plain_clos.even_shares(paths)
    expected = np.array([float(shares.get(link, 0)) for link in range(fabric.n_links)])
    deviation = np.abs(routing.counts / n - expected)
    assert np.all(deviation <= 6 * np.sqrt(expected * (1 - expected) / n) + 1e-12)


@settings(max_examples=40)
@given(plain_clos.fabrics(n_failed=30), st.data())
def test_hosts_without_a_path_are_named(fabric: Clos, data: st.DataObject) -> None:
    """The router refuses exactly the flows for which networkx finds no path."""
    flows = data.draw(flows_on(fabric, max_flows=1))
    assume(flows.n_flows)
    graph = plain_clos.link_graph(fabric)
    src, dst = int(flows.src[0]), int(flows.dst[0])
    if plain_clos.equal_paths(fabric, graph, src, dst):
        Router(fabric, flows, Policy("ecmp"))
        return
    with pytest.raises(Disconnected, match=f"host {src} -> host {dst}"):
        Router(fabric, flows, Policy("ecmp"))


@settings(max_examples=20)
@given(cases(n_failed=3), st.integers(0, 50), st.sampled_from(["ecmp", "annealing", "spray"]))
def test_a_seed_gives_the_same_routing_again(case, seed: int, name: str) -> None:
    fabric, flows = case
    first, again = (Router(fabric, flows, Policy(name)).routing(seed) for _ in range(2))
    np.testing.assert_array_equal(first.counts, again.counts)
    np.testing.assert_array_equal(first.routes.link, again.routes.link)
    router = Router(fabric, flows, Policy(name))
    np.testing.assert_array_equal(router.counts(seed), first.counts)


@settings(max_examples=15)
@given(cases(n_failed=3, max_flows=25), st.sampled_from(["ecmp", "greedy", "spray", "annealing"]))
def test_many_seeds_are_the_reports_of_each(case, name: str) -> None:
    fabric, flows = case
    policy, seeds = Policy(name), [3, 8, 5]
    for with_rates in (True, False):
        found = seed_reports(fabric, flows, policy, seeds=seeds, with_rates=with_rates)
        for i, seed in enumerate(seeds):
            one = flow_report(fabric, flows, policy, seed=seed, with_rates=with_rates)
            row = [one.fim_percent, one.makespan_s, one.slowdown]
            for layer in one.layers:
                row += [layer.fim_percent, layer.max_over_mean, layer.max_flows]
            by_layer = [found.layer_fim_percent, found.layer_max_over_mean, found.layer_max_flows]
            again = [found.fim_percent[i], found.makespan_s[i], found.slowdown[i]]
            again += [figure[at, i] for at in range(len(one.layers)) for figure in by_layer]
            np.testing.assert_array_equal(again, row)


@settings(max_examples=40)
@given(cases(n_failed=0))
def test_static_dealing_takes_spines_and_cores_in_turn(case) -> None:
    """Every leaf deals its flows evenly over its uplinks, in the order of the list."""
    fabric, flows = case
    routing = Router(fabric, with_vias(fabric, flows), Policy("pinned")).routing(seed=0)
    check_conservation(fabric, flows, routing)
    check_paths(fabric, flows, routing)
    if not fabric.n_spines:
        return
    up = routing.counts[fabric.layer("leaf_up").links].reshape(fabric.total_leaves, -1)
    assert (np.ptp(up, axis=1) <= 1).all()
    again = Router(fabric, with_vias(fabric, flows), Policy("pinned")).routing(seed=7)
    np.testing.assert_array_equal(routing.counts, again.counts)
