"""Spraying against explicit splitting over all paths, switch by switch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from libra_planner.check.report import flow_report
from libra_planner.errors import SpecError
from libra_planner.fabric.clos import Clos, Flows
from libra_planner.routing import routes as spray
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import finish_times_s, max_min_rates
from libra_planner.routing.routes import Router, Routes
from tests import plain_clos
from tests.assignments import flows_on


def plain_spray(fabric: Clos, flows: Flows) -> Routes:
    """Every flow on all its paths, which networkx finds."""
    graph = plain_clos.link_graph(fabric)
    start, link, fraction = [0], [], []
    for src, dst in zip(flows.src.tolist(), flows.dst.tolist(), strict=True):
        shares = plain_clos.even_shares(plain_clos.equal_paths(fabric, graph, src, dst))
        link += shares.keys()
        fraction += shares.values()
        start.append(len(link))
    return Routes(np.array(start), np.array(link, dtype=np.int64), np.array(fraction, dtype=float))


@settings(max_examples=80)
@given(data=st.data(), n_failed=st.sampled_from([0, 0, 6]))
def test_spray_splits_every_flow_over_all_its_paths(data: st.DataObject, n_failed: int) -> None:
    fabric = data.draw(plain_clos.fabrics(n_failed=n_failed))
    flows = plain_clos.joined_flows(fabric, data.draw(flows_on(fabric, max_flows=25)))
    found = Router(fabric, flows, Policy("spray")).routing(seed=0)
    plain = plain_spray(fabric, flows)
    np.testing.assert_allclose(found.counts, plain.counts(fabric.n_links), rtol=1e-9, atol=1e-12)
    rates = max_min_rates(plain, fabric.capacity_Bps)
    np.testing.assert_allclose(max_min_rates(found.routes, found.capacity_Bps), rates, rtol=1e-9)
    ends = finish_times_s(plain, fabric.capacity_Bps, flows.size_bytes)
    again = finish_times_s(found.routes, found.capacity_Bps, flows.size_bytes)
    np.testing.assert_allclose(again, ends, rtol=1e-9)


@settings(max_examples=60)
@given(data=st.data())
def test_bundles_and_links_one_by_one_are_the_same(data: st.DataObject) -> None:
    """A failed link that no flow needs turns bundles into single links, and nothing else."""
    fabric = data.draw(plain_clos.fabrics())
    flows = data.draw(flows_on(fabric, max_flows=25))
    by_bundle = spray.spray(fabric, flows, Router(fabric, flows, Policy("spray")).where)
    by_link = spray._over_live_links(fabric, flows, Router(fabric, flows, Policy("spray")).where)
    np.testing.assert_allclose(by_bundle.counts, by_link.counts, rtol=1e-9, atol=1e-12)
    rates = [max_min_rates(one.routes, one.capacity_Bps) for one in (by_bundle, by_link)]
    np.testing.assert_allclose(*rates, rtol=1e-9)


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 99))
def test_equal_flows_are_never_faster_than_sprayed_ones(data: st.DataObject, seed: int) -> None:
    """The fullest link of a bundle has at least the bundle's mean."""
    fabric = data.draw(plain_clos.fabrics())
    drawn = data.draw(flows_on(fabric, max_flows=30))
    assume(drawn.n_flows)
    flows = Flows(drawn.src, drawn.dst, np.full(drawn.n_flows, 7e6), collective=drawn.collective)
    for name in ("ecmp", "greedy", "edge_coloring"):
        assert flow_report(fabric, flows, Policy(name), seed=seed).slowdown >= 1 - 1e-9
    assert flow_report(fabric, flows, Policy("spray")).slowdown == pytest.approx(1.0, rel=1e-12)


def test_a_failed_spine_by_hand() -> None:
    """Two leaves of 4 hosts, 4 spines: one lost, 4 flows have 3 links, 4/3 of the time."""
    fabric = Clos(4, 2, 4, host_Bps=1.0, uplink_Bps=1.0)
    start = fabric.layer("leaf_up").start
    broken = Clos(4, 2, 4, host_Bps=1.0, uplink_Bps=1.0, failed=np.array([start + 2]))
    flows = Flows(np.arange(4), np.arange(4, 8), np.full(4, 12.0))
    whole, less = (flow_report(f, flows, Policy("spray")) for f in (fabric, broken))
    assert (whole.makespan_s, less.makespan_s) == pytest.approx((12.0, 16.0))
    by_layer = {layer.name: layer for layer in less.layers}
    assert by_layer["leaf_up"].n_links == 7
    np.testing.assert_allclose(less.counts[start : start + 4], [4 / 3, 4 / 3, 0, 4 / 3])
    # Leaf 1 works, but a packet for it never climbs to a spine it cannot come down from.
    down = fabric.layer("spine_down").start + 4
    np.testing.assert_allclose(less.counts[down : down + 4], [4 / 3, 4 / 3, 0, 4 / 3])


def test_spraying_too_many_flows_over_failures_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(spray, "_MOST_HOPS", 39)
    fabric = Clos(4, 2, 4, host_Bps=1.0, uplink_Bps=1.0, failed=np.array([9]))
    flows = Flows(np.arange(4), np.arange(4, 8), np.ones(4))
    with pytest.raises(SpecError, match="got 4 flows over 10 links each with failed links"):
        Router(fabric, flows, Policy("spray")).routing(0)
    monkeypatch.setattr(spray, "_MOST_HOPS", 40)
    assert Router(fabric, flows, Policy("spray")).counts(0).sum() == pytest.approx(16)


@pytest.mark.parametrize("name", ["spray", "ecmp"])
def test_no_flows_over_failures(name: str) -> None:
    fabric = Clos(4, 2, 4, 1.0, 1.0, n_cores=2, core_Bps=1.0, failed=np.array([9]))
    nothing = np.zeros(0, dtype=np.int64)
    report = flow_report(fabric, Flows(nothing, nothing, np.zeros(0)), Policy(name))
    assert not report.counts.any()
    assert (report.makespan_s, report.ideal_makespan_s) == (0, 0)
    assert np.isnan(report.fim_percent)


@pytest.mark.parametrize("n_cores", [0, 1])
def test_shares_add_up_to_a_whole_flow_in_spite_of_rounding(n_cores: int) -> None:
    """20 times 1/20 is over 1 in floats; where one link is left down, it carries the flow once."""
    tiers = {"n_parallel": 21, "core_parallel": 21, "core_Bps": 1.0, "n_pods": 1 + n_cores}
    whole = Clos(1, 2, 1, 1.0, 1.0, n_cores=n_cores, **tiers)
    up = [layer.start for layer in whole.layers[1:-1] if layer.name.endswith("_up")]
    ends = [layer.start + layer.n_links for layer in whole.layers[1:-1] if "_down" in layer.name]
    failed = np.array(up + [x for end in ends for x in range(end - 21, end - 1)])
    fabric = replace(whole, failed=failed)
    flows = Flows(np.array([0]), np.array([fabric.n_hosts - 1]), np.ones(1))
    report = flow_report(fabric, flows, Policy("spray"))
    assert report.finish_s == pytest.approx([1.0])
    assert report.counts[np.array(ends) - 1].tolist() == [1.0] * len(ends)
    assert [layer.n_flows for layer in report.layers] == [1] * len(report.layers)
