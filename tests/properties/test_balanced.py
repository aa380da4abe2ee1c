"""Balanced schedules as an expression in bandwidth: against linear programs, grids and splits."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from libra_planner.errors import Infeasible
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.optimizer.optimize import batch_optimize, optimize
from libra_planner.problem import Problem, Rule
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.collectives.balanced import balanced_schedule, balanced_time
from libra_planner.step.collectives.models import Balanced, Ideal, Slowdown, SlowedIdeal
from libra_planner.step.expression import Constant, TimeExpression, add
from libra_planner.step.layers import LOOPS, Load, LoopLayer, Quantity
from libra_planner.workload.operations import Collective, CollectiveKind, Group, Phase
from tests.conftest import random_cases
from tests.problems import plan_of
from tests.random_plans import _limits, _rule, _rules

SEEDS = st.integers(0, 2**32 - 1)
REDUCE = CollectiveKind.ALL_REDUCE


def _topology(rng: np.random.Generator, n_dims: int, stacked: bool) -> Topology:
    """Switches of up to 16; the last two or more of them a stack where asked for."""
    parts = [f"SW({size})" for size in rng.integers(2, 17, n_dims)]
    if stacked and n_dims > 1:
        start = int(rng.integers(0, n_dims - 1))
        parts[start], parts[-1] = f"[{parts[start]}", f"{parts[-1]}]"
    return parse_topology("_".join(parts))


def _group(rng: np.random.Generator, topology: Topology) -> Group:
    used = rng.random(topology.n_dims) < 0.8
    used[rng.integers(topology.n_dims)] = True
    sizes = tuple(size if use else 1 for size, use in zip(topology.sizes, used, strict=True))
    return Group(sizes, (1,) * topology.n_dims)


def _in_network(rng: np.random.Generator, topology: Topology) -> frozenset[int]:
    ports = [port for port in set(topology.ports) if rng.random() < 0.3]
    return frozenset(i for i, port in enumerate(topology.ports) if port in ports)


def _collective(rng: np.random.Generator) -> Collective:
    kinds = [kind for kind in CollectiveKind if kind is not CollectiveKind.ALL_TO_ALL]
    return Collective(kinds[rng.integers(len(kinds))], 10.0 ** rng.uniform(3, 10), "dp")


def _bandwidth(rng: np.random.Generator, n_dims: int) -> np.ndarray:
    return 10.0 ** rng.uniform(-1.5, 1.5, n_dims)


def _orders_bytes(collective, group, network, factors) -> np.ndarray:
    """What crosses each dimension in every order of the networks, one message after the other.

    A tier of a tree slows those inside it, one of a hierarchy only itself.
    """
    topology, reduces = network.topology, collective.kind is REDUCE
    found = []
    for order in permutations(sorted(set(topology.ports))):
        own, left = np.zeros(topology.n_dims), collective.size_bytes
        for port in order:
            tiers = [i for i in range(topology.n_dims) if topology.ports[i] == port]
            tree = reduces and port in network.in_network
            last = max((i for i in tiers if group.sizes[i] > 1), default=-1)
            crossing = np.zeros(topology.n_dims)
            for i in tiers:
                if tree:
                    crossing[i] = left if i <= last else 0.0
                else:
                    sent = (2 if reduces else 1) * left * (group.sizes[i] - 1) / group.sizes[i]
                    own[i] += sent
                left /= group.sizes[i]
            for i, beyond in zip(tiers, [*tiers[1:], None], strict=True):
                own[i] += crossing[i] - (crossing[beyond] if beyond else 0.0)
        trees = [reduces and port in network.in_network for port in topology.ports]
        alone = factors * own + topology.loads(own) - own
        found.append(np.where(trees, topology.loads(factors * own), alone))
    return np.array(found)


def _least_s(loads: np.ndarray, bandwidth: np.ndarray) -> float:
    """min over shares of the longest busy time, by HiGHS."""
    busy = loads / bandwidth
    unit = busy.max()
    n_orders, n_dims = busy.shape
    result = linprog(
        np.append(np.zeros(n_orders), 1.0),
        np.hstack([busy.T / unit, -np.ones((n_dims, 1))]),
        np.zeros(n_dims),
        np.append(np.ones(n_orders), 0.0)[None],
        np.ones(1),
    )
    return float(result.fun) * unit


@random_cases(100)
@given(SEEDS, st.integers(1, 5), st.booleans(), st.booleans())
def test_the_expression_is_the_value_of_the_linear_program(seed, n_dims, stacked, slow) -> None:
    """Any sizes, kinds, stacks, in-network reduction and slow links, at any bandwidth."""
    rng = np.random.default_rng(seed)
    topology = _topology(rng, n_dims, stacked)
    network = replace(plain_network(topology), in_network=_in_network(rng, topology))
    group, collective = _group(rng, topology), _collective(rng)
    factors = rng.uniform(1, 4, n_dims) if slow else np.ones(n_dims)
    slowdown = Slowdown(((collective, group),), (tuple(factors),), ((None,) * n_dims,))
    sent = SlowedIdeal(slowdown=slowdown).traffic(collective, group, network)
    time = TimeExpression(balanced_time(collective, group, network, sent), n_dims)
    loads = _orders_bytes(collective, group, network, factors)
    for _ in range(3):
        bandwidth = _bandwidth(rng, n_dims)
        expected = _least_s(loads[:, sent > 0], bandwidth[sent > 0])
        assert float(time.seconds(bandwidth)) == pytest.approx(expected, rel=1e-7)
    if not slow:
        best = balanced_schedule(collective, group, bandwidth, network)
        assert best.time_s == pytest.approx(expected, rel=1e-7)
        assert best.time_s >= best.aggregate_bound_s * (1 - 1e-12)
        busy = np.array(best.traffic_bytes)[sent > 0] / bandwidth[sent > 0]
        assert busy.max() == pytest.approx(best.time_s, rel=1e-9)


@random_cases(40)
@given(SEEDS, st.integers(2, 5))
def test_convex_never_slower_and_above_the_aggregate_bound(seed, n_dims) -> None:
    rng = np.random.default_rng(seed)
    topology = _topology(rng, n_dims, stacked=bool(rng.integers(2)))
    network = replace(plain_network(topology), in_network=_in_network(rng, topology))
    case = _collective(rng), _group(rng, topology), network
    time, fixed = (TimeExpression(model.time(*case), n_dims) for model in (Balanced(), Ideal()))
    vectors = np.array([_bandwidth(rng, n_dims) for _ in range(2)])
    middle = float(time.seconds(vectors.mean(axis=0)))
    assert middle <= time.seconds(vectors).mean() * (1 + 1e-12)
    assert (time.seconds(vectors) <= fixed.seconds(vectors) * (1 + 1e-12)).all()


def test_two_dimensions_against_a_grid_of_bandwidths_and_splits() -> None:
    """All-reduce of 1 GB over 4 x 8, 100 GB/s in total, at most 40 of them on dim1.

    Order 1-2 sends 1.5 and 0.4375 GB, order 2-1 0.1875 and 1.75 GB: at (40, 60) both together
    take 1.9375/100 s; in order 1-2 alone dim1 takes 1.5/40 s.
    """
    topology = parse_topology("SW(4)_SW(8)")
    case = Collective(REDUCE, 1e9, "dp"), Group((4, 8), (1, 1)), plain_network(topology)
    rules = (Rule("total", (1.0, 1.0), "==", 100e9), Rule("cap", (1.0, 0.0), "<=", 40e9))
    designs = {}
    for model in (Ideal(), Balanced()):
        time = TimeExpression(model.time(*case), 2)
        designs[model] = optimize(plan_of("plan", "two", topology, time, np.ones(2), rules))
    b1, x = np.linspace(0.5, 40, 80)[:, None] * 1e9, np.linspace(0, 1, 2001)
    dim1, dim2 = 1.5e9 * x + 0.1875e9 * (1 - x), 0.4375e9 * x + 1.75e9 * (1 - x)
    grid_s = np.maximum(dim1 / b1, dim2 / (100e9 - b1)).min()
    assert designs[Balanced()].objective == pytest.approx(1.9375 / 100, rel=1e-12)
    assert designs[Balanced()].objective == pytest.approx(grid_s, rel=1e-3)
    assert designs[Balanced()].objective <= grid_s * (1 + 1e-12)
    assert designs[Ideal()].objective == pytest.approx(1.5 / 40, rel=1e-12)


def random_pair(seed: int, objective: str, n_dims: int) -> tuple[Problem, Problem]:
    """One plan in the fixed order and with balanced schedules."""
    rng = np.random.default_rng([seed, len(objective)])
    topology = _topology(rng, n_dims, stacked=bool(rng.integers(2)))
    network = replace(plain_network(topology), in_network=_in_network(rng, topology))
    parts = [(_collective(rng), _group(rng, topology), network) for _ in range(3)]
    compute = Constant(float(rng.choice([0.0, 0.01, 1.0])))
    within = rng.dirichlet(np.full(n_dims, 1.5)) * 10.0 ** rng.uniform(10, 12)
    times = [
        TimeExpression(add([compute, *(model.time(*part) for part in parts)]), n_dims)
        for model in (Ideal(), Balanced())
    ]
    price = 10.0 ** rng.uniform(-6.5, -4.5, n_dims)
    rules = (*_rules(rng, within), _rule("floor", np.eye(n_dims)[0], ">=", within[0] / 10))
    limits = _limits(rng, objective, float(times[0].seconds(within)))
    fixed, balanced = (
        plan_of("plan", "pair", topology, time, price, rules, limits, objective=objective)
        for time in times
    )
    return fixed, balanced


@random_cases(6)
@given(SEEDS, st.sampled_from(["performance", "performance_per_cost", "cost"]), st.integers(2, 6))
def test_the_optimum_is_proven_and_never_worse_than_the_fixed_orders(seed, objective, n) -> None:
    fixed, balanced = random_pair(seed, objective, n)
    try:
        before = optimize(fixed)
    except Infeasible:
        return
    after = optimize(balanced)
    assert after.optimality_gap <= 1e-6
    assert after.max_violation <= 1e-9
    assert after.objective <= before.objective * (1 + 1e-9)
    batch = batch_optimize([balanced])
    assert batch.objective[0] == pytest.approx(after.objective, rel=1e-9)


TP, DP = (Quantity(Phase.INPUT_GRAD, "tp"), Quantity(Phase.WEIGHT_GRAD, "dp"))


@random_cases(60)
@given(SEEDS, st.integers(1, 4), st.sampled_from(["tp_dp_overlap", "async_dp"]))
def test_overlapping_collectives_have_a_split_that_takes_the_time_claimed(seed, n, loop) -> None:
    """One split of either collective for its own time, and for what both send together.

    In the claimed time T the side with compute c has T - c to send its bytes.
    """
    rng = np.random.default_rng(seed)
    topology = _topology(rng, n, stacked=False)
    network, bandwidth = plain_network(topology), _bandwidth(rng, n)
    pairs = {key: (_collective(rng), _group(rng, topology)) for key in (TP, DP)}
    loads = {
        key: Load(
            key.activity,
            Balanced().time(*pair, network),
            tuple(Balanced().traffic(*pair, network)),
            Ideal().time(*pair, network),
        )
        for key, pair in pairs.items()
    }
    alone = [float(TimeExpression(load.time, n).seconds(bandwidth)) for load in loads.values()]
    side, phase = (DP, Phase.WEIGHT_GRAD) if loop == "tp_dp_overlap" else (TP, Phase.INPUT_GRAD)
    compute_s = float(rng.choice([0.0, rng.uniform(0, 2) * max(alone)]))
    loads[Quantity(phase, "compute")] = Load("compute", Constant(compute_s), (0.0,) * n)
    overlap = LOOPS[loop].terms[-1]
    claimed_s, fixed_s = (
        float(TimeExpression(LoopLayer(these, n).time(overlap), n).seconds(bandwidth))
        for these in (loads, {key: load.while_competing for key, load in loads.items()})
    )
    assert claimed_s <= fixed_s * (1 + 1e-12)
    window = {key: claimed_s - (compute_s if key is side else 0.0) for key in (TP, DP)}
    assert _has_split(pairs, network, bandwidth, window, claimed_s)


def _has_split(pairs, network, bandwidth, window, together_s) -> bool:
    """Whether shares of orders keep every window, and the sum of all bytes together_s."""
    ones = np.ones(len(bandwidth))
    loads = {key: _orders_bytes(*pair, network, ones) / bandwidth for key, pair in pairs.items()}
    blocks = list(loads.values())
    own = [
        np.hstack([block.T * (block is other) for other in blocks]) / max(window[key], 1e-300)
        for key, block in loads.items()
    ]
    rows = np.vstack([*own, np.hstack([block.T for block in blocks]) / together_s])
    whole = np.vstack(
        [
            np.concatenate([np.full(len(other), float(block is other)) for other in blocks])
            for block in blocks
        ]
    )
    limits = np.full(len(rows), 1 + 1e-6)
    return linprog(np.zeros(rows.shape[1]), rows, limits, whole, np.ones(2)).status == 0


def test_a_side_that_only_communicates_balances_around_the_other() -> None:
    """4 x 4 at 1 byte/s each: TP sends 12 and 3 bytes, DP 12 bytes over dim1 beside 1 s of compute.

    In the fixed order dim1 carries 24 bytes. TP has 12 bytes less room there: it can put 12 of
    its own on dim2 and 3 on dim1, so 15 s; all 27 bytes over both dimensions take 13.5 s at least.
    """
    network = plain_network(parse_topology("SW(4)_SW(4)"))
    scatter = CollectiveKind.REDUCE_SCATTER
    pairs = {
        TP: (Collective(scatter, 16.0, "tp"), Group((4, 4), (1, 1))),
        DP: (Collective(scatter, 16.0, "dp"), Group((4, 1), (1, 1))),
    }
    loads = {Quantity(Phase.WEIGHT_GRAD, "compute"): Load("compute", Constant(1.0), (0.0, 0.0))}
    for key, pair in pairs.items():
        parts = [model.time(*pair, network) for model in (Balanced(), Ideal())]
        sent = tuple(Balanced().traffic(*pair, network))
        loads[key] = Load(key.activity, parts[0], sent, parts[1])
    times = [
        float(TimeExpression(LoopLayer(these, 2).time(LOOPS["tp_dp_overlap"].terms[-1]), 2).seconds(np.ones(2)))
        for these in (loads, {key: load.while_competing for key, load in loads.items()})
    ]  # fmt: skip
    assert times == [15.0, 24.0]


def test_every_set_of_networks_once() -> None:
    """63 transfers for six dimensions; a stack counts once, over one of its tiers."""
    collective = Collective(REDUCE, 1e9, "dp")
    for notation, n in (("_".join(["SW(2)"] * 6), 63), ("SW(4)_[SW(4)_SW(2)]", 5)):
        topology = parse_topology(notation)
        group = Group(topology.sizes, (1,) * topology.n_dims)
        time = Balanced().time(collective, group, plain_network(topology))
        assert len(time.terms) == n
        forms = [leaf.coefficients for leaf in time.terms]
        assert len(set(forms)) == n
        assert all(max(form) == 1.0 for form in forms)
        used = [{topology.ports[i] for i, c in enumerate(form) if c} for form in forms]
        assert all(
            len(ports) == sum(c > 0 for c in form) for ports, form in zip(used, forms, strict=True)
        )
