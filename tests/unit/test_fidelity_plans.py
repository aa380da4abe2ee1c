"""Plans with pipelined collectives, in-network reduction and balanced schedules."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.fabric.blocks import Algorithm
from libra_planner.fabric.topology import parse_topology
from libra_planner.problem import fastest_alternative
from libra_planner.step.collectives.algorithms import AUTO_CHUNKS, Network, flow_shop, visits
from libra_planner.workload.operations import Collective, CollectiveKind, Group

TABLE = """\
kind: table
source: test
operations:
  - {layer: a, phase: forward, compute_ms: 3, count: 5, collective: {kind: all-reduce, size_bytes: 4e8}}
  - {layer: a, phase: input_grad, collective: {kind: all-gather, full_bytes: 1e8, group: dp}}
  - {layer: b, phase: forward, collective: {kind: all-to-all, size_bytes: 2e8, group: dp}}
  - {layer: a, phase: weight_grad, compute_ms: 1, collective: {kind: reduce-scatter, size_bytes: 3e8}}
"""
PLAN = """\
workload: ./w.yaml
fabric:
  topology: RI(4)_FC(8)_SW(4)_SW(8)
  tiers: [chiplet, package, pod, pod]
  latency_ns: [100, 200, 300, 400]
parallelism: {tp: 16, dp: 64}
cost_model: ./p.yaml
fidelity: pipelined
chunks: 8
constraints:
  - total == 500 GB/s
"""
PRICES = """\
kind: price_book
source: test
as_of: "2026"
unit: USD per GB/s
tiers: {chiplet: {link: 2}, package: {link: 4}, pod: {link: 7.8, switch: 18, nic: 31.6}}
"""
BANDWIDTH = np.array([250e9, 120e9, 80e9, 50e9])
FABRIC = parse_topology("RI(4)_FC(8)_SW(4)_SW(8)")
LATENCY_S = (1e-7, 2e-7, 3e-7, 4e-7)
TP, DP = Group((4, 4, 1, 1), (1, 1, 1, 1)), Group((1, 2, 4, 8), (1, 4, 1, 1))
WORK = [  # what TABLE says: collective, group, executions
    (Collective(CollectiveKind.ALL_REDUCE, 4e8, "tp"), TP, 5),
    (Collective(CollectiveKind.ALL_GATHER, 1e8, "dp"), DP, 1),
    (Collective(CollectiveKind.ALL_TO_ALL, 2e8, "dp"), DP, 1),
    (Collective(CollectiveKind.REDUCE_SCATTER, 3e8, "dp"), DP, 1),
]
COMPUTE_S = 5 * 3e-3 + 1e-3


@pytest.fixture
def write(plan, tmp_path):
    def call(*replacements: tuple[str, str], text: str = PLAN):
        (tmp_path / "w.yaml").write_text(TABLE)
        (tmp_path / "p.yaml").write_text(PRICES)
        return plan(*replacements, text=text)

    return call


def _network(latency_s: tuple[float, ...] = LATENCY_S, **more) -> Network:
    return Network(FABRIC, latency_s, more.pop("algorithms", (None,) * 4), **more)


def _model_s(network: Network, n_chunks: int) -> float:
    """The convex model, visit by visit."""
    total = COMPUTE_S
    for collective, group, count in WORK:
        by_dim = [0.0] * 4
        for stop in visits(collective, group, network):
            sent = stop.n_bytes / n_chunks / BANDWIDTH[stop.dim]
            by_dim[stop.dim] += sent + stop.n_steps * stop.n_hops * network.latency_s[stop.dim]
        total += count * (sum(by_dim) + (n_chunks - 1) * max(by_dim))
    return total


def _exact_s(network: Network, n_chunks: int) -> float:
    return COMPUTE_S + sum(
        count * flow_shop(collective, group, network, BANDWIDTH.tolist(), n_chunks=n_chunks).time_s
        for collective, group, count in WORK
    )


def test_model_and_exact_time_against_a_plain_sum(write, run) -> None:
    payload = run("evaluate", write(), "--bandwidth", "250,120,80,50", "--json").payload
    assert payload["step_time_s"] == pytest.approx(_model_s(_network(), 8), rel=1e-12)
    assert payload["exact_step_time_s"] == pytest.approx(_exact_s(_network(), 8), rel=1e-12)
    assert payload["model_gap"] == payload["exact_step_time_s"] / payload["step_time_s"]
    assert payload["chunks"] == 8
    assert payload["compute_time_s"] == pytest.approx(COMPUTE_S)
    assert payload["real_link_step_time_s"] is None
    assert payload["balanced"] is None
    shares = sum(item["time_s"] for item in payload["bottlenecks"])
    assert shares == pytest.approx(payload["communication_time_s"])


def test_text_says_what_was_modelled(write, run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = run("evaluate", write(), "--bandwidth", "250,120,80,50").out
    assert "8 chunks, latency 100/200/300/400 ns" in out
    assert re.search(
        r"By the exact flow shop of its chunks the step takes [\d.]+ ms, [01]\.\d{4}x", out
    )
    assert re.search(r"4 shorter ones +[\d.]+ us", out)  # Latencies, each below 0.05 %.


def test_ideal_is_the_default_and_has_none_of_it(plan, run) -> None:
    payload = run("evaluate", plan(), "--bandwidth", "300,100,75,25", "--json").payload
    keys = ("chunks", "exact_step_time_s", "model_gap", "balanced")
    assert [payload[key] for key in keys] == [None] * 4
    assert lp.load_plan(plan()).alternatives == ()


def test_keys_that_ideal_does_not_use_are_named(write, run) -> None:
    result = run(
        "evaluate", write(("pipelined", "ideal")), "--bandwidth", "250,120,80,50", "--json"
    )
    assert "fidelity ideal does not use chunks, fabric.latency_ns" in result.payload["notes"]


def test_many_chunks_without_latency_approach_ideal(plan, run) -> None:
    """TP 32 fills its dimensions, so that real links change nothing."""
    path = plan(("{tp: 16, dp: 256}", "{tp: 32, dp: 128}"))
    flags = ("evaluate", path, "--bandwidth", "300,100,75,25", "--json")
    ideal = run(*flags).payload["step_time_s"]
    many = run(*flags, "--set", "fidelity=pipelined", "--set", "chunks=65536").payload
    assert many["step_time_s"] == pytest.approx(ideal, rel=1e-5)
    assert many["step_time_s"] > ideal


def test_auto_takes_the_best_number_of_chunks_at_the_vector(write, run) -> None:
    flags = ("--bandwidth", "250,120,80,50", "--json")
    best = run("evaluate", write(("chunks: 8", "chunks: auto")), *flags).payload
    times = {n: _model_s(_network(), n) for n in AUTO_CHUNKS}
    assert best["chunks"] == min(times, key=times.get)
    assert best["step_time_s"] == pytest.approx(min(times.values()), rel=1e-12)
    assert run("evaluate", write(("chunks: 8\n", "")), *flags).payload["chunks"] == best["chunks"]


def test_alternatives_are_every_number_of_chunks_the_best_at_equal_bandwidth_first(write) -> None:
    problem = lp.load_plan(write(("chunks: 8", "chunks: auto")))
    assert sorted(one.step.model.n_chunks for one in problem.alternatives) == list(AUTO_CHUNKS)
    equal = np.full(4, 125e9)
    times = [float(one.step_time.seconds(equal)) for one in problem.alternatives]
    assert times == sorted(times)
    assert problem.step.model.n_chunks == problem.alternatives[0].step.model.n_chunks
    assert float(problem.step_time.seconds(equal)) == times[0]
    starving = np.array([2e9, 2e9, 480e9, 16e9])
    best = fastest_alternative(problem, starving)
    assert lp.evaluate(problem, starving).step_time_s == float(best.step_time.seconds(starving))
    assert all(not one.alternatives for one in problem.alternatives)


def test_without_latency_auto_is_the_most_chunks(write) -> None:
    text = re.sub(r"  latency_ns.*\n", "", PLAN).replace("chunks: 8", "chunks: auto")
    problem = lp.load_plan(write(text=text))
    assert (problem.step.model.n_chunks, problem.alternatives) == (AUTO_CHUNKS[-1], ())


def test_one_latency_for_all_dimensions(write, run) -> None:
    path = write(("[100, 200, 300, 400]", "250.5"))
    payload = run("evaluate", path, "--bandwidth", "250,120,80,50", "--json").payload
    assert payload["step_time_s"] == pytest.approx(
        _model_s(_network((250.5e-9,) * 4), 8), rel=1e-12
    )


def test_algorithms_and_what_all_to_alls_make_of_them(write, run) -> None:
    """Halving-doubling has no all-to-all: there the usual direct1 runs."""
    path = write(("chunks: 8", "chunks: 8\nalgorithms: [default, ring, halving_doubling, ring]"))
    payload = run("evaluate", path, "--bandwidth", "250,120,80,50", "--json").payload
    named = (None, Algorithm.RING, Algorithm.HALVING_DOUBLING, Algorithm.RING)
    exchanging = (None, Algorithm.RING, None, Algorithm.RING)
    exact = COMPUTE_S
    for collective, group, count in WORK:
        all_to_all = collective.kind is CollectiveKind.ALL_TO_ALL
        network = _network(algorithms=exchanging if all_to_all else named)
        exact += (
            count * flow_shop(collective, group, network, BANDWIDTH.tolist(), n_chunks=8).time_s
        )
    assert payload["exact_step_time_s"] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", ["dim3", "dim4"])
def test_in_network_reduction_is_for_either_fidelity(name: str, write, run) -> None:
    text = PLAN.replace("group: dp", "group: tp") + f"in_network_reduction: [{name}]\n"
    table_kinds = ("reduce-scatter", "all-reduce")
    path = write(text=text)
    (path.parent / "w.yaml").write_text(TABLE.replace(*table_kinds))
    inside = frozenset({int(name[3]) - 1})
    reduce = Collective(CollectiveKind.ALL_REDUCE, 3e8, "dp")
    flags = ("evaluate", path, "--bandwidth", "250,120,80,50", "--json")
    plain = run(*flags, "--set", "in_network_reduction=[]").payload
    reduced = run(*flags).payload
    runs = [
        flow_shop(reduce, DP, _network(in_network=dims), BANDWIDTH.tolist(), n_chunks=8).time_s
        for dims in (frozenset(), inside)
    ]
    difference = plain["exact_step_time_s"] - reduced["exact_step_time_s"]
    assert difference == pytest.approx(runs[0] - runs[1], rel=1e-9)
    ideal = run(*flags, "--set", "fidelity=ideal").payload
    times = [(2 * 3e8 * (g - 1) / n, b) for g, n, b in ((2, 2, 120e9), (4, 8, 80e9), (8, 64, 50e9))]
    times[int(name[3]) - 2] = (
        3e8 / {"dim3": 2, "dim4": 8}[name],
        {"dim3": 80e9, "dim4": 50e9}[name],
    )
    weight_grad = next(
        item["time_s"] for item in ideal["bottlenecks"] if item["operation"].startswith("weight")
    )
    assert weight_grad == pytest.approx(max(n / b for n, b in times))
    assert f"in-network reduction on {name}" in ideal["settings"]


def _balanced_s(collective: Collective, group: Group) -> tuple[float, float]:
    """Closed form over subsets (tests/properties/test_scheduling.py) and aggregate bound."""
    from itertools import combinations

    used = [i for i in range(4) if group.sizes[i] > 1]
    m, n = collective.size_bytes, group.n_npus
    if collective.kind is CollectiveKind.ALL_TO_ALL:
        sent = {i: m * (group.sizes[i] - 1) / group.sizes[i] for i in used}
        total = sum(sent.values()) / sum(BANDWIDTH[i] for i in used)
        return max(sent[i] / BANDWIDTH[i] for i in used), total
    passes = 2 if collective.kind is CollectiveKind.ALL_REDUCE else 1
    times = [
        passes * m / n * (prod(group.sizes[i] for i in part) - 1) / sum(BANDWIDTH[i] for i in part)
        for size in range(1, len(used) + 1)
        for part in combinations(used, size)
    ]
    return max(times), passes * m * (n - 1) / n / sum(BANDWIDTH[i] for i in used)


def test_balanced_scheduler_against_closed_forms(write, run) -> None:
    text = PLAN.replace("fidelity: pipelined\nchunks: 8", "scheduler: balanced")
    payload = run("evaluate", write(text=text), "--bandwidth", "250,120,80,50", "--json").payload
    both = [(count, *_balanced_s(collective, group)) for collective, group, count in WORK]
    balanced, bound = (COMPUTE_S + sum(n * pair[i] for n, *pair in both) for i in (0, 1))
    fixed = payload["balanced"]["fixed_order_step_time_s"]
    flags = ("--bandwidth", "250,120,80,50", "--json")
    hierarchical = write(text=text.replace("balanced", "hierarchical"))
    assert fixed == run("evaluate", hierarchical, *flags).payload["step_time_s"]
    assert payload["step_time_s"] == pytest.approx(balanced, rel=1e-12)
    assert payload["balanced"] == {
        "step_time_s": payload["step_time_s"],
        "gain": pytest.approx(fixed / balanced, rel=1e-12),
        "fixed_order_step_time_s": fixed,
        "aggregate_bound_s": pytest.approx(bound, rel=1e-9),
    }
    assert payload["balanced"]["gain"] > 1
    out = run("evaluate", write(text=text), "--bandwidth", "250,120,80,50").out
    gain = f"{payload['balanced']['gain']:.4f}x as fast as in the fixed order"
    assert f"Collectives balance over orders of their dimensions: {gain}" in " ".join(out.split())


def test_balanced_plans_are_optimised_and_say_what_it_gains(plan, run) -> None:
    """Chiplets of at most 100 GB/s: what the fixed order loses there, the package sends.

    Without that rule the fixed order already loads both evenly, and nothing is gained.
    """
    capped = 'constraints=["total == 500 GB/s", "dim1 <= 100 GB/s"]'
    flags = ("optimize", plan(), "--set", "scheduler=balanced")
    best = run(*flags, "--set", capped, "--json").payload
    fixed = run("optimize", plan(), "--set", capped, "--json").payload
    found = best["balanced"]["fixed_order_optimum"]
    assert found["step_time_s"] == fixed["step_time_s"]
    assert found["bandwidth_GBps"] == fixed["bandwidth_GBps"]
    assert found["gain"] == pytest.approx(fixed["step_time_s"] / best["step_time_s"], rel=1e-12)
    assert found["gain"] == pytest.approx(1.10106, rel=1e-5)
    assert best["balanced"]["step_time_s"] == best["step_time_s"]
    assert best["optimality_gap"] <= 1e-6
    text = " ".join(run(*flags, "--set", capped).out.split())
    assert "The best design of the fixed order under these rules takes 795.421 ms" in text
    assert "1.1011x this step time" in text
    free = run(*flags, "--json").payload
    assert free["step_time_s"] == pytest.approx(best["step_time_s"], rel=1e-9)
    assert free["balanced"]["fixed_order_optimum"]["gain"] == pytest.approx(1, rel=1e-9)


def test_checked_links_are_compared_with_the_balanced_time(plan, run) -> None:
    """At one vector a balanced plan is faster than the fixed order, on its links as by its model."""
    flags = ("check", plan(), "--bandwidth", "100,200,100,100", "--json")
    fixed, balanced = (
        run(*flags, "--set", f"scheduler={name}").payload for name in ("hierarchical", "balanced")
    )
    for key in ("ideal_step_time_s", "spray_step_time_s", "effective_step_time_s"):
        assert balanced[key] < fixed[key]
    assert balanced["slowdown"] >= 1
    assert any("chunks take the best orders on these links" in one for one in balanced["notes"])
    assert fixed["notes"] == [one for one in balanced["notes"] if "best orders" not in one]


def test_sweeps_over_the_scheduler_find_what_optimize_finds(plan) -> None:
    rules = ('constraints=["total == 500 GB/s", "dim1 <= 100 GB/s"]',)
    plans = [lp.load_plan(plan(), (*rules, f"scheduler={s}")) for s in ("hierarchical", "balanced")]
    found = lp.batch_optimize(plans)
    assert found.n_resolved == 0
    for problem, objective in zip(plans, found.objective, strict=True):
        assert objective == pytest.approx(lp.optimize(problem).objective, rel=1e-9)
    assert found.objective[0] / found.objective[1] == pytest.approx(1.10106, rel=1e-5)


def test_what_the_fixed_order_cannot_meet_is_said(plan, run) -> None:
    rules = 'constraints=["total == 500 GB/s", "dim1 <= 100 GB/s", "step_time <= 760 ms"]'
    flags = ("optimize", plan(), "--set", "scheduler=balanced", "--set", rules)
    assert run(*flags, "--json").payload["balanced"]["fixed_order_optimum"] is None
    assert "No design of the fixed order meets these rules" in run(*flags).out


def test_groups_of_workloads_take_the_weighted_mean(plan, tmp_path, run) -> None:
    entries = "\n".join(
        f"  - {{workload: {name}, parallelism: {degrees}, weight: {weight}}}"
        for name, degrees, weight in (
            ("gpt3-libra", "{tp: 32, dp: 128}", 3),
            ("turing-nlg-libra", "{tp: 1, dp: 4096}", 1),
        )
    )
    text = f"""\
workloads:
{entries}
fabric: {{topology: RI(4)_FC(8)_RI(4)_SW(32), tiers: [chiplet, package, node, pod], latency_ns: 500}}
cost_model: libra-ispass24
fidelity: pipelined
chunks: auto
"""
    flags = ("--bandwidth", "300,100,75,25", "--json")
    both = run("evaluate", plan(text=text), *flags).payload
    assert both["model_gap"] == pytest.approx(both["exact_step_time_s"] / both["step_time_s"])
    alone = []
    for name, degrees in (
        ("gpt3-libra", "{tp: 32, dp: 128}"),
        ("turing-nlg-libra", "{tp: 1, dp: 4096}"),
    ):
        one = text.replace(f"workloads:\n{entries}", f"workload: {name}\nparallelism: {degrees}")
        chunks = f"chunks={both['chunks']}"
        alone.append(
            run("evaluate", plan(text=one, name="o.yaml"), *flags, "--set", chunks).payload
        )
    for key in ("step_time_s", "exact_step_time_s"):
        mean = 0.75 * alone[0][key] + 0.25 * alone[1][key]
        assert both[key] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("chunks", ["1", "8"])
def test_optimize_certifies_the_model_and_reports_the_gap(chunks: str, write, run) -> None:
    path = write(("chunks: 8", f"chunks: {chunks}"))
    result = run("optimize", path, "--json")
    assert result.code == 0, result.err
    best = result.payload
    assert best["optimality_gap"] <= 1e-6
    assert best["model_gap"] == best["exact_step_time_s"] / best["step_time_s"]
    other = run("evaluate", path, "--bandwidth", "250,120,80,50", "--json").payload
    assert best["step_time_s"] <= other["step_time_s"]
    if chunks == "1":
        assert best["model_gap"] == pytest.approx(1, rel=1e-12)


FAULTS = [
    (("chunks: 8", "chunks: 0"), r":9:9: chunks: got 0, expected a whole number from 1 to 65,536, or"),
    (("chunks: 8", "chunks: 2.5"), r"chunks: got 2.5, expected a whole"),
    (("chunks: 8", "chunks: true"), r"chunks: got true, expected a whole"),
    (("chunks: 8", "chunks: many"), r"chunks: got 'many', expected a whole"),
    (("chunks: 8", "chunks: [4, 8]"), r"chunks: got a list, expected a whole"),
    (("chunks: 8", "chunks: 100000"), r"chunks: got 100000, expected a whole"),
    (
        ("pipelined", "exact"),
        r":8:11: fidelity: got 'exact', expected 'ideal', 'pipelined' or 'calibrated'",
    ),
    (("[100, 200, 300, 400]", "500 ns"), r":5:15: fabric.latency_ns: got '500 ns', expected ns"),
    (("[100, 200, 300, 400]", "-1"), r"fabric.latency_ns: got -1, expected ns from 0 to 1e\+12"),
    (("[100, 200, 300, 400]", ".nan"), r"fabric.latency_ns: got nan"),
    (("[100, 200, 300, 400]", "[1, x, 3, 4]"), r"fabric.latency_ns: got 'x'"),
    (("[100, 200, 300, 400]", "[1, 2]"), r":5:15: fabric.latency_ns: got 2 latencies, expected 4"),
    (("[100, 200, 300, 400]", "[]"), r"fabric.latency_ns: got 0 latencies, expected 4"),
    (("chunks: 8", "algorithms: [ring]"), r":9:13: algorithms: got 1 algorithms, expected 4"),
    (("chunks: 8", "algorithms: [rign, ring, ring, ring]"), r":9:14: algorithms.0: got 'rign', .*ring\?"),
    (("chunks: 8", "algorithms: [direct, ring, ring, ring]"), r":9:14: algorithms.0: got direct on RI\(4\)"),
    (("chunks: 8", "in_network_reduction: [dim2]"), r"in_network_reduction.0: got dim2, which is FC\(8\)"),
    (("chunks: 8", "in_network_reduction: [pod]"), r"got 'pod', the tier of 2 dim.*write dim3 or dim4"),
    (("chunks: 8", "in_network_reduction: [dim33]"), r"got 'dim33', .*did you mean dim3"),
    (("chunks: 8", "in_network_reduction: [dim3, dim3]"), r"in_network_reduction.1: got dim3 twice"),
    (("chunks: 8", "in_network_reduction: dim3"), r"in_network_reduction: got 'dim3', expected a list"),
    (("chunks: 8", "scheduler: balanced"), r"scheduler: got balanced with fidelity: pipelined"),
    (("chunks: 8", "scheduler: themis"), r"scheduler: got 'themis', expected 'hierarchical' or"),
    (("chunks: 8", "latency_ns: 5"), r"latency_ns: got the unknown key 'latency_ns'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "pattern"), FAULTS)
def test_faults(change: tuple[str, str], pattern: str, write, run) -> None:
    path = write(change)
    result = run("evaluate", path, "--bandwidth", "250,120,80,50")
    assert (result.code, result.out) == (2, "")
    lines = result.err.splitlines()
    assert any(line.startswith(str(path)) and re.search(pattern, line) for line in lines), (
        result.err
    )


def test_groups_that_are_no_power_of_two(plan, tmp_path, run) -> None:
    """Only a group's size tells: the place is still the algorithm's."""
    text = PLAN.replace("SW(8)", "SW(6)").replace("dp: 64", "dp: 48")
    text = text.replace("chunks: 8", "algorithms: [ring, direct, ring, halving_doubling]")
    (tmp_path / "w.yaml").write_text(TABLE)
    (tmp_path / "p.yaml").write_text(PRICES)
    path = plan(text=text)
    result = run("evaluate", path, "--bandwidth", "250,120,80,50")
    assert result.err.startswith(
        f"{path}:9:34: algorithms.3: got halving_doubling for a group of 6 on SW(6), expected a power"
    )
    assert (
        run("evaluate", path, "--bandwidth", "250,120,80,50", "--set", "algorithms.3=default").code
        == 0
    )


def test_too_many_dimensions_to_balance(plan, run) -> None:
    text = """\
workload: gpt3-libra
fabric: {topology: SW(4)_SW(4)_SW(4)_SW(4)_SW(2)_SW(2)_SW(4), tiers: [pod, pod, pod, pod, pod, pod, pod]}
parallelism: {tp: 16, dp: 256}
cost_model: libra-ispass24
scheduler: balanced
"""
    result = run("evaluate", plan(text=text), "--bandwidth", "1,1,1,1,1,1,1")
    assert "scheduler: got balanced for 7 dimensions, expected at most 6; remove it" in result.err


OVERLAP = """\
kind: table
source: test
operations:
  - {layer: a, phase: input_grad, collective: {kind: all-reduce, size_bytes: 4e8, group: tp}}
  - {layer: a, phase: weight_grad, collective: {kind: all-reduce, size_bytes: 3e8, group: dp}}
"""


@pytest.mark.parametrize("fidelity", ["fidelity: pipelined\nchunks: 8", "scheduler: balanced"])
def test_overlapped_collectives_share_dimensions_under_any_model(fidelity: str, write, run) -> None:
    """TP takes 4 and DP 2 of SW(8): 150 MB and 300 MB over dim2 at 120 GB/s are 3.75 ms.

    In the fixed order. Visiting dim2 last TP sends as much there: balancing gains nothing.
    """
    text = PLAN.replace("FC(8)", "SW(8)").replace("package", "pod")
    text = text.replace(
        "fidelity: pipelined\nchunks: 8", f"{fidelity}\ntraining_loop: tp_dp_overlap"
    )
    path = write(text=text)
    (path.parent / "w.yaml").write_text(OVERLAP)
    flags = ("evaluate", path, "--bandwidth", "250,120,80,50", "--json")
    both, alone = (run(*flags, "--set", f"contention={word}").payload for word in ("true", "false"))
    shared = (2 * 4e8 * 3 / 16 + 2 * 3e8 / 2) / 120e9
    assert both["step_time_s"] == pytest.approx(shared, rel=1e-12)
    assert alone["step_time_s"] < shared
    if "pipelined" in fidelity:
        assert both["exact_step_time_s"] == pytest.approx(shared, rel=1e-12)
        assert alone["exact_step_time_s"] < shared
    else:
        assert both["balanced"]["gain"] == pytest.approx(1, rel=1e-12)
        assert alone["balanced"]["gain"] > 1
        assert both["balanced"]["aggregate_bound_s"] <= alone["balanced"]["step_time_s"]
