"""Several workloads on one fabric (C8): hand-worked times, plans, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.evaluation import evaluated
from libra_planner.fabric.topology import parse_topology
from libra_planner.problem import Prices, Problem
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.expression import (
    Constant,
    Labelled,
    Scaled,
    TimeExpression,
    add,
    maximum,
    transfers,
)
from libra_planner.step.training import Member, Step, relative_time, weighted_time
from tests.problems import collectives

EXAMPLE = Path(__file__).parents[2] / "examples" / "03_group.yaml"
VECTOR = "300,100,75,25"
BANDWIDTH = np.array([300e9, 100e9, 75e9, 25e9])

GROUP = """\
workloads:
  - workload: gpt3-libra
    parallelism: {tp: 16, dp: 256}
  - workload: turing-nlg-libra
    parallelism: {tp: 1, dp: 4096}
fabric:
  topology: RI(4)_FC(8)_RI(4)_SW(32)
  tiers: [chiplet, package, node, pod]
cost_model: libra-ispass24
constraints:
  - total == 500 GB/s
"""
ALONE = {
    "gpt3-libra": "{tp: 16, dp: 256}",
    "turing-nlg-libra": "{tp: 1, dp: 4096}",
    "msft-1t-libra": "{tp: 128, dp: 32}",
}


def _time(compute_s: float, label: str, *n_bytes: float) -> TimeExpression:
    tree = add([Constant(compute_s), Labelled(label, transfers(n_bytes))])
    return TimeExpression(tree, len(n_bytes))


# At 10 and 5 bytes/s: 1 + max(2, 4) = 5 s, and 3 + max(0, 2) = 5 s, later 3 + 2 = 5 s.
FIRST = _time(1.0, "dp all-reduce", 20.0, 20.0)
SECOND = _time(3.0, "tp all-reduce", 0.0, 10.0)
PAIR = (Member("a", 0.25, FIRST), Member("b", 0.75, SECOND))
AT = np.array([10.0, 5.0])


def test_weighted_time_by_hand() -> None:
    group = weighted_time(PAIR)
    assert float(group.seconds(AT)) == pytest.approx(0.25 * 5 + 0.75 * 5, rel=1e-15)
    # At 2 and 10 bytes/s: 1 + 10 = 11 s and 3 + 1 = 4 s.
    assert float(group.seconds(np.array([2.0, 10.0]))) == pytest.approx(0.25 * 11 + 0.75 * 4)
    assert group.least_s == pytest.approx(0.25 * 1 + 0.75 * 3)


def test_relative_times_by_hand() -> None:
    fast = np.array([2.0, 10.0])  # 11 s and 4 s
    relative = relative_time(PAIR, (5.5, 3.2), "relative")
    assert float(relative.seconds(fast)) == pytest.approx(0.25 * 2 + 0.75 * 1.25, rel=1e-15)
    worst = relative_time(PAIR, (5.5, 3.2), "worst_case")
    assert float(worst.seconds(fast)) == pytest.approx(2.0, rel=1e-15)
    assert float(relative_time(PAIR, (11.0, 2.0), "worst_case").seconds(fast)) == 2.0
    for kind in ("relative", "worst_case"):
        assert float(relative_time(PAIR, (11.0, 4.0), kind).seconds(fast)) == pytest.approx(1.0)


@pytest.mark.parametrize("optima", [(1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, np.nan), (1.0, np.inf)])
@pytest.mark.parametrize("kind", ["relative", "worst_case"])
def test_optima_that_are_none(optima: tuple[float, ...], kind: str) -> None:
    with pytest.raises(lp.SpecError, match=r"optima"):
        relative_time(PAIR, optima, kind)


def test_group_objectives_that_are_none() -> None:
    with pytest.raises(lp.SpecError, match=r"got 'worst', .*did you mean worst_case"):
        relative_time(PAIR, (1.0, 1.0), "worst")


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.0, 0.0), (1.5, -0.5), (np.nan, 1.0)])
def test_weights_that_are_none(weights: tuple[float, float]) -> None:
    members = [Member("a", weights[0], FIRST), Member("b", weights[1], SECOND)]
    with pytest.raises(lp.SpecError, match="expected positive ones that sum to 1"):
        weighted_time(members)


@given(st.data())
def test_group_times_equal_their_sums(data: st.DataObject) -> None:
    """The trees against the members' own times, one after the other."""
    steps = data.draw(st.lists(collectives(max_dims=3), min_size=1, max_size=4))
    n_dims = steps[0].bytes_by_dim.shape[1]
    steps = [step for step in steps if step.bytes_by_dim.shape[1] == n_dims]
    raw = data.draw(st.lists(st.floats(0.1, 10), min_size=len(steps), max_size=len(steps)))
    optima = data.draw(st.lists(st.floats(0.1, 10), min_size=len(steps), max_size=len(steps)))
    weights = [weight / sum(raw) for weight in raw]
    members = [
        Member(str(i), weight, step.expression())
        for i, (weight, step) in enumerate(zip(weights, steps, strict=True))
    ]
    bandwidth = np.array(
        data.draw(st.lists(st.floats(1e8, 1e12), min_size=n_dims, max_size=n_dims))
    )
    seconds = [step.seconds(bandwidth) for step in steps]
    mean = sum(w * t for w, t in zip(weights, seconds, strict=True))
    assert float(weighted_time(members).seconds(bandwidth)) == pytest.approx(mean, rel=1e-12)
    ratios = [t / best for t, best in zip(seconds, optima, strict=True)]
    relative = relative_time(members, optima, "relative")
    expected = sum(w * r for w, r in zip(weights, ratios, strict=True))
    assert float(relative.seconds(bandwidth)) == pytest.approx(expected, rel=1e-12)
    worst = relative_time(members, optima, "worst_case")
    assert float(worst.seconds(bandwidth)) == pytest.approx(max(ratios), rel=1e-12)


def test_bottlenecks_say_whose_they_are() -> None:
    nested = TimeExpression(
        maximum([Scaled(2.0, Labelled("tp", transfers([3.0, 0.0]))), Constant(0.1)]), 2
    )
    members = (Member("a", 0.25, FIRST), Member("b", 0.5, SECOND), Member("c", 0.25, nested))
    topology = parse_topology("SW(2)_SW(2)", ["x", "y"])
    step = Step(members, "a + b", is_group=True)
    problem = Problem(plain_network(topology), step, Prices((1.0, 1.0)))
    evaluation = evaluated(problem, AT)
    shares = {(share.label, share.dims): share.seconds for share in evaluation.shares}
    assert shares == {
        ("compute", ()): pytest.approx(0.25 * (1 + 0.1) + 0.5 * 3),
        ("a: dp all-reduce", (1,)): pytest.approx(0.25 * 4),
        ("b: tp all-reduce", (1,)): pytest.approx(0.5 * 2),
        ("c: tp", (0,)): pytest.approx(0.25 * (0.6 - 0.1)),  # beside 0.1 s of compute
    }
    assert sum(share.seconds for share in evaluation.shares) == pytest.approx(
        evaluation.step_time_s
    )


def _with_optima(kind: str, objective: str, optima: tuple[float, ...]) -> Problem:
    topology = parse_topology("SW(2)_SW(2)", ["x", "y"])
    return Problem(
        plain_network(topology),
        Step(PAIR, "a + b", is_group=True),
        Prices((1.0, 1.0)),
        objective=objective,
        group_objective=kind,
        own_optima_s=optima,
    )


def test_objective_values_of_groups() -> None:
    """5 s and 5 s at a cost of 15 $."""
    cases = {
        ("weighted", "performance", ()): 5.0,
        ("weighted", "performance_per_cost", ()): 75.0,
        ("relative", "performance", ()): None,
        ("worst_case", "performance_per_cost", ()): None,
        ("relative", "performance", (4.0, 2.0)): 0.25 * 1.25 + 0.75 * 2.5,
        ("worst_case", "performance", (4.0, 2.0)): 2.5,
        ("worst_case", "performance_per_cost", (4.0, 2.0)): 37.5,
    }
    for (kind, objective, optima), expected in cases.items():
        evaluation = evaluated(_with_optima(kind, objective, optima), AT)
        assert evaluation.objective == (expected if expected is None else pytest.approx(expected))
        assert evaluation.step_time_s == pytest.approx(5.0)
        assert [m.own_optimum_s for m in evaluation.members] == list(optima or (None, None))


def _evaluate(run, path: Path, *settings: str) -> dict:
    arguments = [part for setting in settings for part in ("--set", setting)]
    result = run("evaluate", path, "--bandwidth", VECTOR, "--json", *arguments)
    assert result.code == 0, result.err
    return result.payload


@pytest.fixture
def alone(plan, run) -> dict[str, dict]:
    """Each workload of the example in a plan of its own."""
    return {
        name: _evaluate(run, plan(("gpt3-libra", name), ("{tp: 16, dp: 256}", degrees)))
        for name, degrees in ALONE.items()
    }


@pytest.mark.parametrize("weights", [(1, 1, 1), (5, 3, 2), (0.5, 0.25, 0.25)])
def test_a_group_is_the_weighted_sum_of_its_workloads(weights, alone, run) -> None:
    settings = [f"workloads.{i}.weight={weight}" for i, weight in enumerate(weights)]
    payload = _evaluate(run, EXAMPLE, *settings)
    shares = [weight / sum(weights) for weight in weights]
    singles = list(alone.values())
    for key in ("step_time_s", "compute_time_s", "communication_time_s", "real_link_step_time_s"):
        if key == "real_link_step_time_s":  # None where no group is partial: its time is T.
            values = [single[key] or single["step_time_s"] for single in singles]
        else:
            values = [single[key] for single in singles]
        mean = sum(share * value for share, value in zip(shares, values, strict=True))
        assert payload[key] == pytest.approx(mean, rel=1e-12), key
    assert payload["objective"] == payload["step_time_s"]
    assert payload["cost_usd"] == singles[0]["cost_usd"]
    assert payload["workload"] == "gpt3-libra + turing-nlg-libra + msft-1t-libra"
    for member, share, name in zip(payload["workloads"], shares, ALONE, strict=True):
        assert member["name"] == name
        assert member["weight"] == pytest.approx(share, rel=1e-15)
        for key in ("step_time_s", "compute_time_s", "communication_time_s", "speedup_vs_equal"):
            assert member[key] == pytest.approx(alone[name][key], rel=1e-12)
    weighed = any("divided by their sum" in note for note in payload["notes"])
    assert weighed == (sum(weights) != 1)


def test_equal_weights_that_nobody_wrote_need_no_note(run) -> None:
    assert not any("their sum" in note for note in _evaluate(run, EXAMPLE)["notes"])


def test_plans_with_one_workload_have_no_group(alone) -> None:
    assert not {"workloads", "group_objective"} & alone["gpt3-libra"].keys()


def test_a_group_of_one_is_that_workload(alone, plan, run) -> None:
    second = GROUP[GROUP.index("  - workload: turing") : GROUP.index("fabric")]
    payload = _evaluate(run, plan((second, ""), text=GROUP))
    assert payload["step_time_s"] == pytest.approx(alone["gpt3-libra"]["step_time_s"], rel=1e-15)


@pytest.mark.parametrize("kind", ["relative", "worst_case"])
def test_relative_objectives_have_no_value_without_an_optimizer(kind: str, alone, run) -> None:
    payload = _evaluate(run, EXAMPLE, f"group_objective={kind}")
    assert payload["objective"] is None
    assert any(kind in note and "only optimize finds" in note for note in payload["notes"])
    times = [member["step_time_s"] for member in payload["workloads"]]
    assert times == pytest.approx([single["step_time_s"] for single in alone.values()])
    out = run("evaluate", EXAMPLE, "--bandwidth", VECTOR, "--set", f"group_objective={kind}").out
    assert f"Objective {kind}: not known without optimize" in out


def test_terminal_shows_each_workload(run) -> None:
    out = run("evaluate", EXAMPLE, "--bandwidth", VECTOR).out
    assert re.search(r"turing-nlg-libra +0\.333 +331\.496 ms +327\.149 ms +4\.347 ms", out)
    assert "Weighted mean step time 426.833 ms" in out
    assert "msft-1t-libra: weight grad DP all-reduce" in out
    assert "turing-nlg-libra (TP 1 x DP 4096, 131,072 sequences per step)" in out


def test_names_and_settings_of_each_workload(plan) -> None:
    twice = GROUP.replace("turing-nlg-libra\n", "gpt3-libra\n    name: wide\n    weight: 3\n")
    problem = lp.load_plan(plan(text=twice), "workloads.1.global_batch=8192")
    assert [(m.name, m.weight) for m in problem.members] == [("gpt3-libra", 0.25), ("wide", 0.75)]
    assert problem.workload_name == "gpt3-libra + wide"
    assert problem.settings[1] == "wide (TP 1 x DP 4096, 8,192 sequences per step)"
    assert any(note.startswith("wide: ") for note in problem.text.notes)
    assert problem.members[0].real_link_step_time is not None
    assert problem.members[1].real_link_step_time is None


def test_step_time_rules_bound_the_weighted_mean(plan, run) -> None:
    path = plan(("total == 500 GB/s", "step_time <= 500 ms"), text=GROUP)
    payload = _evaluate(run, path)
    assert payload["violated"][0]["by"] == pytest.approx(payload["step_time_s"] - 0.5)


def test_the_optimum_of_a_weighted_group(run) -> None:
    """No split that favours one workload beats the group's own."""
    best = run("optimize", EXAMPLE, "--json").payload
    assert best["optimality_gap"] <= 1e-6
    rng = np.random.default_rng(0)
    problem = lp.load_plan(EXAMPLE)
    designs = rng.dirichlet(np.ones(4), size=2000) * 500e9
    assert problem.step_time.seconds(designs).min() >= best["step_time_s"]
    assert problem.step_time.seconds(designs).min() <= best["step_time_s"] * 1.05


FAULTS = {
    "no workloads": ("workloads: []", r":1:12: workloads: got a list, expected at least 1"),
    "nothing": ("workloads:", r":1:1\d?: workloads: got nothing, expected a list"),
    "a map": ("workloads: {workload: gpt3}", r"workloads: got a map, expected a list"),
    "a name": ("workloads: [gpt3-libra]", r":1:13: workloads.0: got 'gpt3-libra', expected a map"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_groups_that_are_none(name: str, plan, run) -> None:
    text, pattern = FAULTS[name]
    path = plan((GROUP[: GROUP.index("fabric")], text + "\n"), text=GROUP)
    result = run("evaluate", path, "--bandwidth", VECTOR)
    assert result.code == 2
    assert re.search(pattern, result.err), result.err


ENTRY_FAULTS = {
    "weight 0": (("dp: 256}", "dp: 256}\n    weight: 0"), r":4:13: workloads.0.weight: got 0, "),
    "negative weight": (("4096}", "4096}\n    weight: -1"), r":6:13: workloads.1.weight: got -1, "),
    "NaN weight": (("4096}", "4096}\n    weight: .nan"), r"workloads.1.weight: got nan"),
    "infinite weight": (("4096}", "4096}\n    weight: .inf"), r"workloads.1.weight: got inf"),
    "text weight": (("4096}", "4096}\n    weight: '2'"), r"workloads.1.weight: got '2', .*quotes"),
    "true weight": (("4096}", "4096}\n    weight: true"), r"workloads.1.weight: got true"),
    "tiny weight": (
        ("4096}", "4096}\n    weight: 1e-300"),
        r"workloads.1.weight: .*at least 1e-06",
    ),
    "degrees": (
        ("dp: 4096", "dp: 4095"),
        r":5:18: workloads.1.parallelism: got tp 1 x dp 4095 = 4095 NPUs, expected the 4096",
    ),
    "a degree": (("dp: 4096", "dp: 0"), r":5:30: workloads.1.parallelism.dp: got 0, expected at"),
    "unplaceable": (
        ("{tp: 1, dp: 4096}", "{tp: 3, dp: 4096}"),
        r":5:18: workloads.1.parallelism: got tp 3 x dp 4096 = 12288",
    ),
    "pp": (
        ("dp: 4096", "dp: 4096, pp: 2"),
        r"workloads.1.parallelism.pp: got pp, expected it with an NPU whose kernels are known",
    ),
    "groups": (
        (
            "{tp: 1, dp: 4096}",
            "{forward: [1,1,1,5], input_grad: [1,1,1,1], weight_grad: [4,8,4,32]}",
        ),
        r":5:35: workloads.1.parallelism.forward.3: got a group of 5",
    ),
    "unknown workload": (
        ("turing-nlg", "turing"),
        r":4:15: workloads.1.workload: got 'turing-libra'",
    ),
    "no workload": (
        ("  - workload: turing-nlg-libra\n    par", "  - par"),
        r":4:5: workloads.1.workload: got nothing, expected this key",
    ),
    "no parallelism": (
        ("\n    parallelism: {tp: 1, dp: 4096}", ""),
        r":4:5: workloads.1.parallelism: got nothing, expected this key",
    ),
    "unknown key": (
        ("dp: 4096}", "dp: 4096}\n    wieght: 2"),
        r":6:5: workloads.1.wieght: got the unknown key 'wieght', .*did you mean weight\?",
    ),
    "batch": (
        ("dp: 4096}", "dp: 4096}\n    global_batch: 100"),
        r":6:19: workloads.1.global_batch: got 100 sequences.*4096 data-parallel",
    ),
    "batch of a table": (
        ("turing-nlg-libra", "resnet50-libra\n    global_batch: 4096"),
        r":5:19: workloads.1.global_batch: got a value, expected none",
    ),
    "npu": (
        ("dp: 4096}", "dp: 4096}\n    npu: {peak_TFLOPps: -1, efficiency_fraction: 2}"),
        r"workloads.1.npu.peak_TFLOPps: got -1, [\s\S]*workloads.1.npu.efficiency_fraction: got 2",
    ),
    "one name twice": (
        ("turing-nlg-libra", "gpt3-libra"),
        r":4:15: workloads.1.workload: got 'gpt3-libra' twice, .*add e.g. 'name: gpt3-libra-2'",
    ),
    "a given name twice": (
        ("turing-nlg-libra", "turing-nlg-libra\n    name: gpt3-libra"),
        r":5:11: workloads.1.name: got 'gpt3-libra' twice",
    ),
    "both": (
        ("fabric:", "workload: gpt3\nfabric:"),
        r":6:1: workload: got workload beside workloads, .*; move it into each entry",
    ),
    "both, otherwise": (
        ("fabric:", "parallelism: {tp: 1, dp: 4096}\nglobal_batch: 4096\nfabric:"),
        r":6:1: parallelism: got parallelism beside[\s\S]*:7:1: global_batch: got global_batch b",
    ),
    "unknown objective": (
        ("fabric:", "group_objective: worst\nfabric:"),
        r":6:18: group_objective: got 'worst', expected 'weighted', 'relative' or 'worst_case'",
    ),
    "unequal weights of the worst case": (
        ("dp: 4096}", "dp: 4096}\n    weight: 2\ngroup_objective: worst_case"),
        r":6:13: workloads.1.weight: got 2, unlike the first workload's 1, .*; remove the weights",
    ),
    "relative cost": (
        ("fabric:", "objective: cost\ngroup_objective: relative\nfabric:"),
        r":7:18: group_objective: got relative with the objective cost",
    ),
    "relative step time": (
        ("total == 500 GB/s", "step_time <= 1 s\ngroup_objective: relative"),
        r":11:5: constraints.0: got a step_time bound in 'step_time <= 1 s' with group_objective rel",
    ),
    "worst-case step time": (
        ("total == 500 GB/s", "step_time <= 1 s\ngroup_objective: worst_case"),
        r"constraints.0: .*; remove it, or write group_objective: weighted",
    ),
}


@pytest.mark.parametrize("name", ENTRY_FAULTS)
def test_faults_point_into_the_entry(name: str, plan, run) -> None:
    replacement, pattern = ENTRY_FAULTS[name]
    path = plan(replacement, text=GROUP)
    result = run("evaluate", path, "--bandwidth", VECTOR)
    assert result.code == 2, result.err
    assert result.out == ""
    for line in result.err.splitlines():
        assert line.startswith(f"{path}:"), line
    assert re.search(pattern, result.err), result.err


def test_faults_of_all_entries_at_once(plan, run) -> None:
    path = plan(
        ("dp: 256}", "dp: 255}"), ("dp: 4096", "dp: 4095"), ("500 GB/s", "500"), text=GROUP
    )  # fmt: skip
    lines = run("optimize", path).err.splitlines()
    places = [line.removeprefix(f"{path}:").split(": ")[1] for line in lines]
    assert sorted(places) == [
        "constraints.0", "workloads.0.parallelism", "workloads.1.parallelism",
    ]  # fmt: skip


def test_keys_of_groups_alone_do_not_pass(plan, run) -> None:
    result = run("optimize", plan(("constraints:", "group_objective: relative\nconstraints:")))
    assert result.code == 2
    assert "group_objective: got the unknown key" in result.err


def test_settings_reach_into_an_entry(run) -> None:
    result = run(
        "evaluate", EXAMPLE, "--bandwidth", VECTOR, "--set", "workloads.1.parallelism.dp=2"
    )
    assert result.code == 2
    assert result.err.startswith(f"{EXAMPLE}:5:")
    assert "workloads.1.parallelism: got tp 1 x dp 2 = 2 NPUs" in result.err


def test_the_schema_takes_either_shape(run) -> None:
    schema = run("schema", "plan").payload
    assert {"workload", "workloads", "group_objective"} <= schema["properties"].keys()
    assert json.dumps(schema["oneOf"][0]) == '{"required": ["workload", "parallelism"]}'
    assert schema["oneOf"][1]["required"] == ["workloads"]
    assert {"MemberSpec", "FixedCostParts", "FabricSpec"} <= schema["$defs"].keys()
