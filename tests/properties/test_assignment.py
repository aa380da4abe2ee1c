"""Routing policies against slow twins and what is proven of them, on random fabrics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from libra_planner.errors import SpecError
from libra_planner.fabric.clos import (
    Choice,
    Clos,
    Flows,
    by_tier,
    hops,
    links_of,
    spine_failures,
    with_failed,
)
from libra_planner.routing.assignment import (
    annealing,
    edge_coloring,
    greedy,
)
from libra_planner.routing.ecmp import ecmp
from libra_planner.routing.fairness import collective_rates_Bps, is_fairer, two_level_max_min
from libra_planner.routing.integer import min_max_ilp
from libra_planner.routing.loads import (
    are_alike,
    busiest_s,
    imbalance,
    link_counts,
    rank,
    weights_of,
)
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import single_paths
from tests.assignments import (
    check_paths,
    fabrics,
    flows_on,
    least_maximum,
    paths,
    plain_greedy,
    rows,
)
from tests.conftest import random_cases

SIZES = st.sampled_from([(1.0,), (1.0, 2.0, 5.0), (3.0, 3.5, 4.0, 7.5), (0.0, 1.0, 1e3)])
SPEEDS = st.sampled_from([1e9, 2.5e9])
POLICIES = {
    "greedy": greedy,
    "edge_coloring": edge_coloring,
    "min_max_ilp": lambda fabric, flows: min_max_ilp(fabric, flows, time_limit_s=1.0)[0],
    "annealing": lambda fabric, flows: annealing(fabric, flows, seed=3, n_sweeps=5),
    "two_level_max_min": lambda fabric, flows: two_level_max_min(
        fabric, flows, n_tries=5, time_limit_s=1.0
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
@random_cases(12)
@given(st.data())
def test_every_flow_has_one_working_path(policy: str, data: st.DataObject) -> None:
    fabric = data.draw(fabrics(n_failed=3))
    flows = data.draw(flows_on(fabric))
    try:
        choice = POLICIES[policy](fabric, flows)
    except SpecError as error:
        lost = int(str(error).split()[5])
        assert not paths(fabric, flows.src[lost], flows.dst[lost])
        return
    check_paths(fabric, flows, choice)
    assert rows(choice) == rows(POLICIES[policy](fabric, flows))


@random_cases(15)
@given(st.data(), st.booleans())
def test_greedy_is_the_plain_rule(data: st.DataObject, per_collective: bool) -> None:
    fabric = data.draw(fabrics(n_failed=2))
    flows = data.draw(flows_on(fabric, max_flows=25))
    assume(_is_joined(fabric, flows))
    found = rows(greedy(fabric, flows, per_collective=per_collective, count_flows=True))
    assert found == plain_greedy(fabric, flows, per_collective=per_collective)


@random_cases(15)
@given(st.data(), st.booleans())
def test_greedy_by_bytes_is_the_better_of_both_plain_rules(
    data: st.DataObject, per_collective: bool
) -> None:
    fabric = data.draw(fabrics(n_failed=2, core_Bps=SPEEDS))
    flows = data.draw(flows_on(fabric, max_flows=25, sizes=data.draw(SIZES)))
    assume(_is_joined(fabric, flows) and not are_alike(fabric, flows))
    options = {"per_collective": per_collective}
    both = [
        plain_greedy(fabric, flows, **options),
        plain_greedy(fabric, flows, **options, weights=weights_of(fabric, flows)),
    ]
    choices = [Choice(*np.array(one).reshape(-1, 4).T) for one in both]
    numbers = flows.collective if per_collective else np.zeros(flows.n_flows)
    loads = [max_of_groups(fabric, flows, numbers, one) for one in choices]
    found = greedy(fabric, flows, **options)
    assert rows(found) == both[int(loads[1] < loads[0])]
    if not per_collective:
        assert busiest_s(fabric, flows, found) == pytest.approx(min(loads))


def max_of_groups(fabric: Clos, flows: Flows, numbers: np.ndarray, choice: Choice) -> float:
    """Seconds of the busiest link, each group of flows by itself."""
    found = [0.0]
    for one in np.unique(numbers):
        keep = numbers == one
        some = Flows(flows.src[keep], flows.dst[keep], flows.size_bytes[keep])
        found.append(busiest_s(fabric, some, Choice(*(x[keep] for x in choice))))
    return max(found)


def _is_joined(fabric: Clos, flows: Flows) -> bool:
    return all(paths(fabric, *ends) for ends in zip(flows.src, flows.dst, strict=True))


def _check_even(counts: np.ndarray) -> None:
    """Floor or ceil of the mean in every row: no two links of a switch differ by two flows."""
    flat = counts.reshape(counts.shape[0], -1)
    if flat.size:
        assert np.all(flat.max(axis=1) - flat.min(axis=1) <= 1)


@random_cases(50)
@given(st.data(), st.booleans())
def test_coloring_divides_evenly(data: st.DataObject, per_collective: bool) -> None:
    fabric = data.draw(fabrics())
    flows = data.draw(flows_on(fabric, max_flows=200))
    choice = edge_coloring(fabric, flows, per_collective=per_collective, count_flows=True)
    for chosen in np.unique(flows.collective) if per_collective else [None]:
        keep = np.ones(flows.n_flows, bool) if chosen is None else flows.collective == chosen
        some = Flows(flows.src[keep], flows.dst[keep], flows.size_bytes[keep])
        part = Choice(*(x[keep] for x in choice))
        tiers = by_tier(fabric, link_counts(fabric, some, part))
        _check_even(tiers.leaf_up)
        _check_even(tiers.spine_down)
        if not _mixes(fabric, some):
            _check_even(tiers.spine_up)
            _check_even(tiers.core_down)


def _mixes(fabric: Clos, flows: Flows) -> bool:
    """Whether a leaf has flows of both kinds, inside its pod and out of it."""
    where = hops(fabric, flows)
    crossing = where.leaves_leaf
    kinds = zip(where.leaves_pod[crossing], strict=True)
    up = {(leaf, *k) for leaf, k in zip(where.src_leaf[crossing], kinds, strict=True)}
    kinds = zip(where.leaves_pod[crossing], strict=True)
    down = {(leaf, *k) for leaf, k in zip(where.dst_leaf[crossing], kinds, strict=True)}
    return any(
        max(Counter(leaf for leaf, _ in ends).values(), default=0) > 1 for ends in (up, down)
    )


@random_cases(25)
@given(st.data(), st.booleans())
def test_coloring_divides_evenly_over_the_spines_that_are_left(
    data: st.DataObject, per_collective: bool
) -> None:
    whole = data.draw(fabrics())
    assume(not whole.n_cores)
    spines = np.arange(whole.total_pods * whole.n_spines).reshape(whole.total_pods, -1)
    down = [data.draw(st.sets(st.sampled_from(sorted(row[1:])))) if len(row) > 1 else set()
            for row in spines.tolist()]  # fmt: skip
    lost = sorted(set().union(*down))
    fabric = with_failed(whole, spine_failures(whole)[lost])
    flows = data.draw(flows_on(fabric, max_flows=100))
    choice = edge_coloring(fabric, flows, per_collective=per_collective, count_flows=True)
    check_paths(fabric, flows, choice)
    alive = by_tier(fabric, fabric.alive.astype(np.int64))
    for chosen in np.unique(flows.collective) if per_collective else [None]:
        keep = np.ones(flows.n_flows, bool) if chosen is None else flows.collective == chosen
        some = Flows(flows.src[keep], flows.dst[keep], flows.size_bytes[keep])
        part = Choice(*(x[keep] for x in choice))
        tiers = by_tier(fabric, link_counts(fabric, some, part))
        for counts, lives in zip(tiers, alive, strict=True):
            for leaf, live in zip(counts, lives, strict=True):
                _check_even(leaf[live > 0].reshape(1, -1))


@random_cases(15)
@given(st.data())
def test_coloring_on_other_failures_is_not_worse_than_greedy(data: st.DataObject) -> None:
    fabric = data.draw(fabrics(n_failed=4))
    flows = data.draw(flows_on(fabric, max_flows=100))
    assume(fabric.failed.size and _is_joined(fabric, flows))
    found, other = (
        imbalance(fabric, flows, f(fabric, flows, count_flows=True))
        for f in (edge_coloring, greedy)
    )
    assert found[0] <= other[0]


@random_cases(15)
@given(st.integers(1, 40), st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_coloring_takes_any_number_of_colors(n_spines: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fabric = Clos(hosts_per_leaf=4, n_leaves=6, n_spines=n_spines, host_Bps=1e9, uplink_Bps=1e9)
    src, dst = rng.integers(0, 24, n), rng.integers(0, 24, n) ** 2 % 24  # Uneven destinations.
    flows = Flows(src, dst, rng.random(n))
    choice = edge_coloring(fabric, flows, count_flows=True)
    counts = by_tier(fabric, link_counts(fabric, flows, choice))
    _check_even(counts.leaf_up)
    _check_even(counts.spine_down)


@random_cases(15)
@given(st.data(), st.integers(0, 1000))
def test_annealing_is_not_worse_than_greedy(data: st.DataObject, seed: int) -> None:
    """In flows on the busiest link where they are alike, in its seconds where they are not."""
    fabric = data.draw(fabrics(n_failed=1, core_Bps=SPEEDS))
    flows = data.draw(flows_on(fabric, sizes=data.draw(SIZES)))
    assume(_is_joined(fabric, flows))
    found = annealing(fabric, flows, seed=seed, n_sweeps=10)
    assert rank(fabric, flows, found) <= rank(fabric, flows, greedy(fabric, flows))
    if are_alike(fabric, flows):
        assert imbalance(fabric, flows, found) <= imbalance(fabric, flows, greedy(fabric, flows))


@random_cases(10)
@given(st.data())
def test_no_policy_that_sees_bytes_is_worse_than_greedy(data: st.DataObject) -> None:
    """The busiest link by bytes over its speed, with failures, whatever the solver finds."""
    fabric = data.draw(fabrics(n_failed=3, core_Bps=SPEEDS))
    flows = data.draw(flows_on(fabric, max_flows=30, sizes=data.draw(SIZES)))
    assume(_is_joined(fabric, flows) and not are_alike(fabric, flows))
    choice, bound = min_max_ilp(fabric, flows, time_limit_s=0.1)
    found_s = busiest_s(fabric, flows, choice)
    assert bound.objective == found_s
    assert bound.dual_bound <= found_s
    greedy_s = busiest_s(fabric, flows, greedy(fabric, flows))
    for other in (greedy(fabric, flows, count_flows=True), edge_coloring(fabric, flows)):
        assert found_s <= busiest_s(fabric, flows, other) * (1 + 1e-12)
    assert greedy_s <= busiest_s(fabric, flows, greedy(fabric, flows, count_flows=True))
    assert busiest_s(fabric, flows, edge_coloring(fabric, flows)) <= greedy_s
    check_paths(fabric, flows, edge_coloring(fabric, flows))


@random_cases(25)
@given(st.data())
def test_ilp_finds_the_least_bytes_on_the_busiest_link(data: st.DataObject) -> None:
    fabric = data.draw(fabrics(n_failed=4, core_Bps=SPEEDS))
    flows = data.draw(flows_on(fabric, max_flows=5, sizes=data.draw(SIZES)))
    assume(_is_joined(fabric, flows) and not are_alike(fabric, flows))
    n_paths = [len(paths(fabric, *ends)) for ends in zip(flows.src, flows.dst, strict=True)]
    assume(np.prod(n_paths) <= 3000)
    choice, bound = min_max_ilp(fabric, flows)
    least_s = least_maximum(fabric, flows, by_bytes=True)
    assert bound.optimal
    assert bound.objective == busiest_s(fabric, flows, choice) == pytest.approx(least_s, rel=1e-9)
    check_paths(fabric, flows, choice)


@random_cases(25)
@given(st.data())
def test_ilp_finds_the_least_maximum(data: st.DataObject) -> None:
    fabric = data.draw(fabrics(n_failed=4))
    flows = data.draw(flows_on(fabric, max_flows=5, sizes=(2.0,)))
    assume(_is_joined(fabric, flows))
    n_paths = [len(paths(fabric, *ends)) for ends in zip(flows.src, flows.dst, strict=True)]
    assume(np.prod(n_paths) <= 3000)
    choice, bound = min_max_ilp(fabric, flows)
    assert bound.optimal
    assert bound.objective == imbalance(fabric, flows, choice)[0] == least_maximum(fabric, flows)


def plain_rates(flows: Flows, rate_Bps: np.ndarray) -> list[float]:
    """The rate of each collective, one after the other."""
    found = []
    for one in sorted(set(flows.collective.tolist())):
        mine = [f for f in range(flows.n_flows) if flows.collective[f] == one]
        largest = max(flows.size_bytes[f] for f in mine)
        of_flows = [
            rate_Bps[f] * largest / flows.size_bytes[f] for f in mine if flows.size_bytes[f] > 0
        ]
        found.append(min(of_flows, default=np.inf))
    return found


@random_cases(10)
@given(st.data(), st.integers(0, 3))
def test_two_levels_are_not_worse_than_any_other_policy(data: st.DataObject, seed: int) -> None:
    """With failures, several collectives and sizes, and three tiers."""
    fabric = data.draw(fabrics(n_failed=2, core_Bps=SPEEDS))
    flows = data.draw(flows_on(fabric, max_flows=40, sizes=data.draw(SIZES)))
    assume(_is_joined(fabric, flows))

    def rates(choice: Choice) -> np.ndarray:
        routes = single_paths(links_of(fabric, flows, choice))
        rate_Bps = max_min_rates(routes, fabric.capacity_Bps)
        found = collective_rates_Bps(flows, rate_Bps)
        assert found == pytest.approx(plain_rates(flows, rate_Bps))
        return found

    options = {"seed": seed, "time_limit_s": 5.0, "n_tries": 10}
    choice = two_level_max_min(fabric, flows, **options)
    check_paths(fabric, flows, choice)
    found, where = rates(choice), hops(fabric, flows)
    others = [greedy(fabric, flows), edge_coloring(fabric, flows)]
    others += [min_max_ilp(fabric, flows, time_limit_s=5.0)[0]]
    others += [annealing(fabric, flows, seed=seed + i) for i in range(2)]
    others += [ecmp(fabric, flows, policy=Policy(), where=where, seed=seed + i) for i in range(5)]
    for other in others:
        assert not is_fairer(rates(other), found)
    assert np.all(found > 0)
