"""What ECMP has to hash, against slow counts and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from libra_planner.check.report import flow_report
from libra_planner.fabric.clos import Clos, Flows, hops
from libra_planner.routing.ecmp import drawn_headers
from libra_planner.routing.entropy import header_entropy, uniform_fim_percent
from libra_planner.routing.policy import Policy
from tests.assignments import fabrics, flows_on
from tests.fim_reference import TABLE, expected_fim_percent


@pytest.mark.parametrize(("n_flows", "n_links", "mean"), [row[:3] for row in TABLE])
def test_the_published_table(n_flows: int, n_links: int, mean: float) -> None:
    found = uniform_fim_percent([n_flows], [n_flows], [n_links])
    assert found == pytest.approx(mean, abs=0.005)
    assert found == pytest.approx(float(expected_fim_percent(n_flows, n_links)), rel=1e-9)
    # Twice as many flows under as many headers are as uneven.
    assert uniform_fim_percent([2 * n_flows], [n_flows], [n_links]) == pytest.approx(found)


def test_one_uplink_by_hand() -> None:
    """Leaves of 3 and 1 flows with one link each: the ideal is 2, so that both are off by half."""
    assert uniform_fim_percent([3, 1], [3, 1], [1, 1]) == pytest.approx(50.0)


@settings(deadline=None, max_examples=40)
@given(st.data(), st.booleans(), st.booleans())
def test_headers_are_counted_one_by_one(data: st.DataObject, shared: bool, enhanced: bool) -> None:
    fabric = data.draw(fabrics())
    flows = data.draw(flows_on(fabric))
    if shared:
        flows = replace(flows, src_port=np.full(flows.n_flows, 50_000))
    policy = Policy(enhanced=enhanced)
    found, where = header_entropy(fabric, flows, policy, seed=1), hops(fabric, flows)
    assert (found is None) == (not where.leaves_leaf.any())
    assume(found is not None)
    headers, seen, pairs = drawn_headers(flows, 1), set(), set()
    for f in np.flatnonzero(where.leaves_leaf):
        pairs.add((headers.src_ip[f], headers.dst_ip[f]))
        queue_pair = headers.queue_pair[f] if enhanced else 0
        seen.add((headers.src_ip[f], headers.dst_ip[f], headers.src_port[f], queue_pair))
    assert (found.n_headers, found.n_address_pairs) == (len(seen), len(pairs))
    assert found.n_flows == where.leaves_leaf.sum()
    if len(seen) == found.n_flows:
        assert found.effective_fim_percent == pytest.approx(found.expected_fim_percent)
    assert header_entropy(fabric, flows, Policy("greedy"), seed=1) is None


@pytest.mark.parametrize("shared", [False, True])
def test_the_mean_over_many_draws(shared: bool) -> None:
    """48 flows of a leaf on 8 uplinks, or 6 headers of 8 flows each; the other leaf sends 8."""
    fabric = Clos(hosts_per_leaf=8, n_leaves=2, n_spines=8, host_Bps=1.0, uplink_Bps=1.0)
    src, dst = np.r_[np.arange(48) % 6, 8 + np.arange(8)], np.r_[np.full(48, 8), np.zeros(8)]
    flows = Flows(src, dst.astype(np.int64), np.ones(56))
    if shared:
        flows = replace(flows, src_port=np.full(56, 50_000))
    found = header_entropy(fabric, flows, Policy(), seed=0)
    assert (found.n_headers, found.flows_per_uplink) == (14 if shared else 56, 3.5)
    fims = [
        flow_report(fabric, flows, Policy(), seed=seed, with_rates=False).layers[1].fim_percent
        for seed in range(600)
    ]
    error = np.std(fims) / len(fims) ** 0.5
    assert found.effective_fim_percent == pytest.approx(np.mean(fims), abs=4 * error)
    assert found.fim_percent_of(4) < found.expected_fim_percent
