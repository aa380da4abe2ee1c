"""The search against plain loops: times, memory, groups and the best of small spaces."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.errors import Infeasible, SpecError
from libra_planner.evaluation import OBJECTIVES
from libra_planner.fabric.topology import Topology, parse_topology
from libra_planner.inputs.plans import open_plan
from libra_planner.optimizer.optimize import optimize
from libra_planner.problem import Prices, Problem, Rule, StepTimeLimit
from libra_planner.search.best import Search, SearchResult
from libra_planner.search.fabrics import GivenFabric, PlannedFabrics
from libra_planner.search.figures import Figures
from libra_planner.search.frontier import POINTS, strategy_frontier
from libra_planner.search.placement import is_placeable, placed
from libra_planner.search.plans import plan_search
from libra_planner.search.pricing import Lines
from libra_planner.search.space import Choices, Space, divisors, strategy_space
from libra_planner.step.collectives.algorithms import Network, plain_network
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.measured import ETHERNET
from libra_planner.step.collectives.models import Balanced, CollectiveModel, Ideal, Pipelined
from libra_planner.step.expression import Constant, TimeExpression
from libra_planner.step.model_step import TrainedModel
from libra_planner.step.pipeline import is_schedulable
from libra_planner.step.training import Step, plain_step
from libra_planner.workload.kernels import Kernels
from libra_planner.workload.memory.npu import memory
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import OverlapFractions, Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from libra_planner.workload.volumes import Formats, Habits
from tests.conftest import random_cases

GPU = Kernels({"bf16": 9e14, "fp8": 1.8e15}, 3e12, n_cores=132)
DENSE = Transformer(
    "dense",
    6,
    2048,
    Attention(16, 4, 128, 128),
    FeedForward(8192, is_gated=True),
    2048,
    vocabulary=32768,
)
MODELS = {
    "dense": DENSE,
    "tied": replace(DENSE, is_tied=True, n_layers=7),
    "experts": replace(DENSE, experts=Experts(16, 2, 2048, 2048), n_dense_layers=2),
    "mtp": replace(DENSE, experts=Experts(8, 2, 2048), n_mtp=1),
}
FABRICS = ["SW(16)", "SW(4)_SW(4)", "SW(2)_[SW(4)_SW(2)]", "SW(4)_SW(6)"]
DEGREES = ("tp", "cp", "dp", "pp", "ep", "etp")
LAWS = {
    "ideal": Ideal(),
    "calibrated": Calibrated("H100", domain=0, port=1),
    "ethernet": Calibrated("A100", ETHERNET, domain=0, port=1),
}


def _trained(model: Transformer) -> TrainedModel:
    habits = Habits(one_copy_per_node=model.n_mtp == 0, experts_on_at_most=1 + model.n_mtp)
    return TrainedModel(model, Strategy(), GPU, Formats(), habits)


def _search(
    model: Transformer, topology: str, law: CollectiveModel, space: Space, **more: object
) -> Search:
    network = plain_network(parse_topology(topology))
    figures = Figures(space, _trained(model), Lines(network, law))
    n_dims = network.topology.n_dims
    fabric = GivenFabric(network, law, np.array([4e11, 5e10, 2e10][:n_dims]))
    return Search(space, figures, **({"fabrics": fabric} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("topology", FABRICS[1:])
@pytest.mark.parametrize("name", list(MODELS))
def test_arrays_are_the_nodes_of_each_strategy(name: str, topology: str, law: str) -> None:
    """Step times by arrays, tables of layers or not, are those of the time expression to 1e-12."""
    model = MODELS[name]
    overlap = OverlapFractions(tp=0.5, ep=0.25, dp=0.75, p2p=True)
    common = Strategy(overlap=overlap, dtype="fp8" if name == "tied" else "bf16")
    choices = Choices(etp=(1, 2))
    space = strategy_space(model, parse_topology(topology), [24, 48], common, choices)
    search = _search(model, topology, LAWS[law], space)
    rng = np.random.default_rng(7)
    bandwidth = rng.uniform(1e9, 1e12, len(search.fabrics.whole.upper))
    rows = rng.integers(0, space.n, 25)
    several = search.figures.step_time_s(rows, bandwidth)
    everything = search.figures.step_time_s(np.arange(space.n), bandwidth)[rows]
    needed = search.figures.memory_bytes(rows)
    for i, time_s, same_s, n_bytes in zip(rows, several, everything, needed, strict=True):
        strategy = space.strategy(int(i))
        expression = search.training(strategy).step_time(LAWS[law])
        expected = float(expression.seconds(bandwidth))
        assert time_s == pytest.approx(expected, rel=1e-12)
        assert same_s == pytest.approx(expected, rel=1e-12)
        assert expression.least_s == pytest.approx(
            float(search.figures.step_time_s(np.array([i]), np.full(len(bandwidth), np.inf))[0]),
            rel=1e-12,
        )
        assert n_bytes == pytest.approx(float(memory(model, strategy).total_bytes), rel=1e-12)


@given(
    topology=st.sampled_from([*FABRICS, "SW(3)_SW(4)_SW(2)", "RI(4)_FC(2)_SW(6)"]),
    seed=st.integers(0, 2**31),
)
@random_cases(25)
def test_groups_by_arithmetic_are_those_of_placement(topology: str, seed: int) -> None:
    """Sizes and strides of every axis; and whatever placement refuses cannot be placed."""
    fabric, rng = parse_topology(topology), np.random.default_rng(seed)
    options = divisors(fabric.n_npus)
    degrees = {axis: rng.choice(options, 40) for axis in ("tp", "cp", "dp", "ep", "etp")}
    degrees["pp"] = np.maximum(fabric.n_npus // (degrees["tp"] * degrees["cp"] * degrees["dp"]), 1)
    many = Strategy(**degrees)
    fine = is_placeable(fabric, many)
    for i in range(40):
        one = {axis: int(degrees[axis][i]) for axis in DEGREES}
        assert fine[i] == _is_placed(fabric, one), one
    kept = Strategy(**{axis: degrees[axis][fine] for axis in DEGREES})
    found = placed(fabric, kept)
    for row, i in enumerate(np.flatnonzero(fine)):
        expected = placed_groups(fabric, {axis: int(degrees[axis][i]) for axis in DEGREES})
        for axis, group in expected.items():
            assert found[axis].groups[found[axis].which[row]] == group, (axis, i)


def _is_placed(fabric: Topology, degrees: dict[str, int]) -> bool:
    try:
        placed_groups(fabric, degrees)
    except SpecError:
        return False
    return True


@pytest.mark.parametrize("name", list(MODELS))
def test_the_space_is_that_of_plain_loops(name: str) -> None:
    """Every combination that divides, once."""
    model, topology = MODELS[name], parse_topology("SW(4)_SW(6)")
    space = strategy_space(model, topology, [12, 8])
    found = set()
    for i in range(space.n):
        one = space.strategy(i)
        degrees = (one.tp, one.cp, one.dp, one.pp, one.ep)
        batch = (one.global_batch, one.microbatch, one.interleave)
        found.add((*degrees, *batch, int(one.recompute), one.zero))
        assert one.sequence_parallel == (one.tp > 1)
        assert one.n_npus == topology.n_npus
    assert len(found) == space.n
    assert found == set(_plain_loops(model, topology, (12, 8)))


def _is_possible(model: Transformer, one: Strategy) -> bool:
    """Whether it runs: chunks hold a layer, the embedding or the logits."""
    return bool(is_schedulable(one)) and one.pp * one.interleave <= model.n_layers + 2


def _plain_loops(
    model: Transformer, topology: Topology, batches: tuple[int, ...]
) -> list[tuple[int, ...]]:
    some = [d for d in range(1, 25) if 24 % d == 0]
    n_experts = model.experts.n if model.experts else 1
    found = []
    for tp, cp, pp, batch in product(some, some, some, batches):
        if 24 % (tp * cp * pp) or model.attention.n_heads % tp or pp > model.n_layers:
            continue
        dp = 24 // (tp * cp * pp)
        if (cp > 1 and model.sequence_tokens % (2 * cp)) or batch % dp:
            continue
        for ep in (d for d in range(1, n_experts + 1) if n_experts % d == 0):
            degrees = {"tp": tp, "cp": cp, "dp": dp, "pp": pp, "ep": ep}
            if not _is_placed(topology, degrees):
                continue
            for size in (b for b in range(1, batch // dp + 1) if batch // dp % b == 0):
                for v in range(1, model.n_layers + 1):
                    one = Strategy(**degrees, global_batch=batch, microbatch=size, interleave=v)
                    if -(-model.n_layers // pp) % v or not _is_possible(model, one):
                        continue
                    shared = dp * cp > 1 or (model.experts and tp * dp * cp > ep)
                    zeros = range(4) if shared else range(1)
                    for recompute, zero in product(Recompute, zeros):
                        row = (tp, cp, dp, pp, ep, batch, size, v, int(recompute), zero)
                        found.append(row)
    return found


def _adds_up(found: SearchResult) -> bool:
    parts = found.n_not_fitting + found.n_cut + found.n_solved + found.n_unproven
    return parts == found.n_candidates


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("name", ["dense", "experts"])
def test_the_best_on_a_given_fabric_is_that_of_a_plain_loop(name: str, law: str) -> None:
    """All strategies that fit, one by one by the time expression: the same five are best.

    The best of each set of degrees and batch counts.
    """
    model = MODELS[name]
    choices = Choices(zero=(1,), recompute=(0, 2), cp=(1,), microbatch=(1, 2), ep=(1, 4))
    space = strategy_space(model, parse_topology("SW(4)_SW(4)"), [16, 32], choices=choices)
    search = _search(model, "SW(4)_SW(4)", LAWS[law], space, n_best=5)
    room = float(np.median(search.figures.memory_bytes(np.arange(space.n))))
    search = replace(search, npu_memory_bytes=room)
    found = search.run()
    assert found.is_certified
    assert _adds_up(found)
    values, n_fitting = {}, 0
    bandwidth = search.fabrics.whole.upper
    for i in range(space.n):
        strategy = space.strategy(i)
        if float(memory(model, strategy).total_bytes) <= room:
            n_fitting += 1
            time_s = float(search.training(strategy).step_time(LAWS[law]).seconds(bandwidth))
            _take_least(values, strategy, time_s / float(search.tokens[i]))
    assert found.n_not_fitting == space.n - n_fitting > 0
    best = [one.objective_per_token for one in found.best]
    assert best == pytest.approx(sorted(values.values())[:5], rel=1e-9)
    assert found.n_solved < n_fitting


def _take_least(values: dict[tuple[int, ...], float], one: Strategy, value: float) -> None:
    """Keep the best of each set of degrees and global batch."""
    key = one.tp, one.cp, one.dp, one.pp, one.ep, one.global_batch
    values[key] = min(values.get(key, np.inf), value)


def _planned(objective: str, law: CollectiveModel, network: Network, limit_s: float) -> Problem:
    """12 GPUs' worth of prices; at most 600 GB/s in all."""
    step = Step(plain_step(TimeExpression(Constant(1.0), 2)).members, "m", model=law)
    limits = (StepTimeLimit("step_time", limit_s),) if np.isfinite(limit_s) else ()
    rules = (Rule("total <= 600 GB/s", (1.0, 1.0), "<=", 6e11),)
    prices = Prices((3e-8, 2e-7), fixed_usd=4e5)
    return Problem(network, step, prices, rules, limits, objective)


@pytest.mark.parametrize(
    ("objective", "law", "limit_s", "pp"),
    [
        ("performance", "ideal", np.inf, (1, 2)),
        ("performance_per_cost", "ideal", 0.3, (1, 2)),
        ("performance", "calibrated", np.inf, (1,)),
        ("performance_per_cost", "calibrated", np.inf, (1,)),
    ],
)
def test_the_best_of_all_fabrics_is_that_of_a_plain_loop(
    objective: str, law: str, limit_s: float, pp: tuple[int, ...]
) -> None:
    """Every strategy optimised by ``optimize`` alone: the same best, and the same objective."""
    model, network = MODELS["experts"], plain_network(parse_topology("SW(2)_SW(4)"))
    choices = Choices(zero=(1,), recompute=(0,), cp=(1,), pp=pp, microbatch=(1,), ep=(4,))
    space = strategy_space(model, network.topology, [16], choices=choices)
    problem = _planned(objective, LAWS[law], network, limit_s)
    fabrics = PlannedFabrics(problem)
    search = _search(model, "SW(2)_SW(4)", LAWS[law], space, fabrics=fabrics, n_best=3)
    found = search.run()
    assert found.is_certified
    assert _adds_up(found)
    values: dict[tuple[int, ...], float] = {}
    for i in range(space.n):
        one = fabrics.with_training(search.training(space.strategy(i)))
        try:
            value = optimize(one).objective / float(search.tokens[i])
            _take_least(values, space.strategy(i), value)
        except Infeasible:
            continue
    best = [one.objective_per_token for one in found.best]
    assert best == pytest.approx(sorted(values.values())[: len(best)], rel=2e-6)
    assert len(best) == min(3, len(values))


def test_an_interrupt_keeps_what_is_proven() -> None:
    """Ctrl-C after the first bounds: nothing is claimed of the rest."""
    model = MODELS["dense"]
    space = strategy_space(model, parse_topology("SW(4)_SW(4)"), [16])
    search = _search(model, "SW(4)_SW(4)", Ideal(), space, n_best=40)

    def stop(what: str, done: int, total: int) -> None:
        del done, total
        if what.startswith("fabrics optimised"):
            raise KeyboardInterrupt

    found = search.run(stop)
    assert found.was_stopped
    assert not found.is_certified
    assert _adds_up(found)
    assert found.n_unproven > 0
    assert 0 < len(found.best) <= found.n_solved


def test_a_search_that_may_solve_few_says_how_many_are_unproven() -> None:
    """The limit of strategies to optimise is a limit of what is proven."""
    space = strategy_space(DENSE, parse_topology("SW(4)_SW(4)"), [16])
    found = _search(DENSE, "SW(4)_SW(4)", Ideal(), space, n_best=50, n_most=5).run()
    assert found.n_unproven > 0
    assert not found.is_certified
    assert _adds_up(found)


@pytest.mark.parametrize("law", [Pipelined(4), Balanced(), Calibrated("H100", domain=0, side=1)])
def test_other_models_of_collectives_are_refused(law: CollectiveModel) -> None:
    """What arrays cannot say is not searched."""
    with pytest.raises(SpecError, match="expected fidelity ideal or calibrated"):
        Lines(plain_network(parse_topology("SW(4)_SW(4)")), law)


def test_the_frontier_is_that_of_plain_loops() -> None:
    """At the cost of every point no strategy is faster; the first is the cheapest in time."""
    model, network = MODELS["experts"], plain_network(parse_topology("SW(2)_SW(4)"))
    choices = Choices(zero=(1,), recompute=(0,), cp=(1,), pp=(1,), microbatch=(1,), ep=(4,))
    space = strategy_space(model, network.topology, [16], choices=choices)
    problem = _planned("performance", LAWS["ideal"], network, 0.3)
    fabrics = PlannedFabrics(problem)
    search = _search(model, "SW(2)_SW(4)", LAWS["ideal"], space, fabrics=fabrics)
    found = strategy_frontier(search, problem, 4)
    ones = [fabrics.with_training(search.training(space.strategy(i))) for i in range(space.n)]
    assert found.total.is_certified
    assert _adds_up(found.total)
    assert len(found.points) == 4
    for point in found.points:
        usd = point.optimum.cost_usd - problem.fixed_cost_usd
        cap = Rule("cap", problem.prices.usd_per_Bps, "<=", usd * (1 + 1e-8), cost_factor=1.0)
        times = [_optimum(replace(one, rules=(*one.rules, cap))) for one in ones]
        assert point.optimum.step_time_s == pytest.approx(min(times), rel=2e-6)
    least = min(_optimum(replace(one, objective="cost")) for one in ones)
    assert found.points[0].optimum.cost_usd == pytest.approx(least, rel=2e-6)
    fastest = min(map(_optimum, ones))
    assert found.points[-1].optimum.step_time_s == pytest.approx(fastest, rel=2e-6)


def test_an_interrupt_keeps_the_points_that_are_proven() -> None:
    """Ctrl-C after the second point, the first below the fastest."""
    network = plain_network(parse_topology("SW(2)_SW(4)"))
    choices = Choices(zero=(1,), recompute=(0,), cp=(1,), pp=(1,), microbatch=(1,))
    space = strategy_space(DENSE, network.topology, [16], choices=choices)
    problem = _planned("performance", LAWS["ideal"], network, np.inf)
    fabrics = PlannedFabrics(problem)
    search = _search(DENSE, "SW(2)_SW(4)", LAWS["ideal"], space, fabrics=fabrics)

    def stop(what: str, done: int, total: int) -> None:
        if what == POINTS and done == 3 < total:
            raise KeyboardInterrupt

    found = strategy_frontier(search, problem, 5, stop)
    assert found.was_stopped
    assert len(found.points) == 2


def _optimum(problem: Problem) -> float:
    try:
        return optimize(problem).objective
    except Infeasible:
        return np.inf


BILL_PLAN = """
workload: llama3-8b
global_batch: 16
npu: h100-sxm
fabric:
  topology: SW(8)_[SW(2)_SW(2)]
  tiers: [node, leaf, spine]
  scale_up: nvlink4-8
  bill_options: {nics: [1 x 200 Gbps, 1 x 400 Gbps, 2 x 400 Gbps], tapers: {spine: [1, 2]}, switch_radix: [64]}
parallelism: {tp: 8, dp: 4}
cost_model: clos-2026
prices: bill
constraints: [leaf >= 30 GB/s]
"""


@pytest.mark.parametrize("objective", ["performance", "performance_per_cost"])
def test_options_of_a_bill_are_those_of_a_plain_loop(objective: str, tmp_path: Path) -> None:
    """Every strategy on every option, one by one: the same three best, and the same frontier."""
    (tmp_path / "plan.yaml").write_text(BILL_PLAN + f"objective: {objective}\n")
    problem = open_plan(tmp_path / "plan.yaml").problem
    choices = Choices(zero=(1,), recompute=(0,), cp=(1, 2), microbatch=(1, 2), interleave=(1,))
    search = plan_search(problem, choices=choices, n_best=3)
    bills = problem.prices.bills
    assert bills is not None
    allowed = np.flatnonzero(bills.bandwidth_Bps[:, 1] >= 30e9)
    assert 1 < len(allowed) < len(bills.options)
    values: dict[tuple[int, ...], float] = {}
    times = np.full(len(bills.options), np.inf)
    for i in range(search.space.n):
        strategy = search.space.strategy(i)
        if search.figures.memory_bytes(np.array([i]))[0] > search.npu_memory_bytes:
            continue
        expression = search.training(strategy).step_time(problem.step.model)
        for row in allowed:
            time_s = float(expression.seconds(bills.bandwidth_Bps[row]))
            times[row] = min(times[row], time_s)
            value = OBJECTIVES[objective](time_s, bills.usd[row]) / search.tokens[i]
            _take_least(values, strategy, value)
    found = search.run()
    assert found.is_certified
    best = [one.objective_per_token for one in found.best]
    assert best == pytest.approx(sorted(values.values())[:3], rel=1e-9)
    frontier = strategy_frontier(search, problem)
    assert frontier.total.is_certified
    points = [(one.optimum.cost_usd, one.optimum.step_time_s) for one in frontier.points]
    expected, least_s = {}, np.inf
    for row in sorted(allowed, key=lambda i: (bills.usd[i], times[i])):
        if times[row] < least_s * (1 - 1e-9):
            expected[bills.usd[row]] = least_s = times[row]
    assert len(expected) > 1
    assert points == [(usd, pytest.approx(s, rel=1e-9)) for usd, s in expected.items()]
