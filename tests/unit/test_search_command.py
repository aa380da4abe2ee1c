"""``libra-planner search``: the page's example, JSON, and bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from libra_planner import example, load_plan, sweep
from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.inputs.plans import open_plan, strategy_words
from libra_planner.optimizer.optimize import optimize
from libra_planner.search.plans import plan_search
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.store import RunDirectory
from libra_planner.sweeps.template import design_plan
from libra_planner.units import format_time, format_usd
from libra_planner.views.bought.thin import thin_notes
from libra_planner.views.bought.whole_ports import port_notes
from libra_planner.views.sweeps.remarks import remarks

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
SMALL = ["search", "--model", "llama3-8b", "--npu", "h100-sxm", "--gpus", "16"]


def _words(text: str) -> list[list[str]]:
    """Words by line, figures without their digits: they follow constants that are fitted."""
    return [re.sub(r"[\d,.]+", "#", line).split() for line in text.strip().splitlines()]


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _, command, _, shown, *_ = PAGE.read_text().split("```")
    assert main(command.split()[1:]) == 0
    assert _words(capsys.readouterr().out) == _words(shown)


def test_json_has_the_best_and_what_became_of_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--global-batch", "32,64", "--top", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = ("n_not_fitting", "n_cut", "n_solved", "n_unproven")
    assert found["n_candidates"] == sum(found[name] for name in parts) > 1000
    assert found["n_unproven"] == 0
    assert found["certified"]
    assert len(found["best"]) == 3
    rates = [one["tokens_per_s"] for one in found["best"]]
    for one, rate in zip(found["best"], rates, strict=True):
        assert one["tie_with_best"] == (rates[0] <= rate * (1 + found["tie_fraction"]))
        assert one["step_time_low_s"] < one["step_time_s"] < one["step_time_high_s"]
    assert rates == sorted(rates, reverse=True)
    for one in found["best"]:
        assert one["tp"] * one["cp"] * one["pp"] * one["dp"] == 16
        assert one["memory_GB"] <= found["npu_memory_GB"]


def test_train_says_the_same_of_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--global-batch", "64", "--top", "1", "--json"]) == 0
    (best,) = json.loads(capsys.readouterr().out)["best"]
    names = ("tp", "cp", "pp", "dp", "ep", "interleave", "microbatch", "zero", "recompute")
    flags = [part for name in names for part in (f"--{name}", str(best[name]))]
    assert main(["train", *SMALL[1:], "--global-batch", "64", *flags, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    for name in ("step_time_s", "tokens_per_s", "mfu", "memory_GB"):
        assert trained[name] == pytest.approx(best[name], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (SMALL, 2, "got no --global-batch"),
        ([*SMALL, "--global-batch", "x"], 2, "--global-batch: got 'x'"),
        ([*SMALL, "--global-batch", "0"], 2, "expected from 1 to"),
        ([*SMALL, "--global-batch", "8", "--fabric", "q"], 2, "--fabric: got the fabric 'q'"),
        ([*SMALL, "--global-batch", "8", "--library", "q"], 2, "--library: got"),
        ([*SMALL[:-1], "1", "--global-batch", "8"], 2, "--gpus: got 1 NPU"),
        ([*SMALL, "--global-batch", "8", "--set", "x=y"], 2, "--set: got no plan"),
        ([*SMALL, "--global-batch", "8", "--taper", ""], 2, "--taper: got '', expected a value"),
        (
            ["search", "--model", "llama3-405b", *SMALL[3:], "--global-batch", "8"],
            3,
            "none of 1,730 strategies is left: all need more memory than an NPU, or a rule on it, "
            "allows (464.948 GB at least, of 85.500 GB); take more NPUs",
        ),
    ],
)
def test_bad_input(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert message in capsys.readouterr().err


def test_a_plan_has_its_best_strategy_with_the_best_fabric() -> None:
    """The example's own strategy is one of the space: the best is no worse, and certified."""
    problem = load_plan(example("0d_llama3_70b"))
    found = plan_search(problem).run(None)
    (best,) = found.best
    assert found.is_certified
    assert best.objective_per_token * 1024 * 8192 == pytest.approx(best.optimum.objective)
    assert best.optimum.objective <= optimize(problem).objective * (1 + 1e-6)
    assert best.optimum.lower_bound >= best.optimum.objective * (1 - 1e-6)


def test_search_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(example("0d_llama3_70b"))
    assert main(["search", plan, "--top", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["certified"]
    assert len(found["best"][0]["bandwidth_GBps"]) == 3
    assert found["best"][0]["tie_with_best"] is None
    assert main(["search", plan, "--npu", "h100-sxm"]) == 2
    assert "beside a plan" in capsys.readouterr().err


def test_a_plan_without_a_whole_step_is_refused() -> None:
    with pytest.raises(SpecError, match="expected the step of a whole model"):
        plan_search(load_plan(example("01_gpt3_4d")))


AUTO = """
workload: llama3-8b
parallelism: auto
global_batch: 32
npu: h100-sxm
fabric: {topology: "SW(8)_[SW(2)_SW(2)]", tiers: [node, leaf, spine]}
cost_model: clos-2026
objective: performance_per_cost
fixed_cost: {npu: h100-sxm, per_npu: 12 k$}
constraints: [12.5 GB/s <= leaf <= 50 GB/s, node <= 450 GB/s, taper(spine) >= 1, MEMORY]
""".replace("MEMORY", "memory <= 76 GB")
COUNTS = ("n_not_fitting", "n_cut", "n_solved", "n_unproven")


@pytest.fixture
def auto(tmp_path: Path) -> str:
    """A plan that leaves its parallelism open."""
    path = tmp_path / "auto.yaml"
    path.write_text(AUTO)
    return str(path)


Printed = Callable[..., dict[str, Any]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a command prints as JSON."""

    def run(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert main([*arguments, "--json"]) == code
        return dict(json.loads(capsys.readouterr().out))

    return run


def test_an_open_plan_is_the_plan_of_its_best_strategy(auto: str, printed: Printed) -> None:
    """``optimize`` finds what ``search`` ranks first, and says how to write it."""
    found, ranked = printed("optimize", auto), printed("search", auto)["best"]
    counts = found["search"]
    assert counts["certified"]
    assert counts["n_candidates"] == sum(counts[name] for name in COUNTS) > 1000
    assert found["objective"] == pytest.approx(ranked[0]["objective"], rel=1e-9)
    (written,) = found["set"]
    again = printed("optimize", auto, "--set", written)
    assert "search" not in again
    for name in ("step_time_s", "cost_usd", "bandwidth_GBps", "memory"):
        assert again[name] == found[name]
    assert load_plan(auto).step.time == load_plan(auto, written).step.time


def test_an_optimum_names_what_compares_other_strategies(auto: str, run) -> None:
    links = "On links another strategy may be better: optimize PLAN --routing ecmp checks the "
    ranked = (
        "Others may be nearly as good, and the best of many is often one whose error flatters it: "
        "search PLAN ranks them"
    )
    text = run("optimize", auto).out
    assert f"{links}likely ones there\n{ranked}\n" in text
    (given,) = run("optimize", auto, "--json").payload["set"]
    assert ranked not in run("optimize", auto, "--set", given).out


def test_an_optimum_of_zero_3_names_the_best_of_zero_1(auto: str, run) -> None:
    """What is said beside it is what a search of ZeRO 1 alone finds on the same network."""
    text = AUTO.replace("llama3-8b", "llama3-70b").replace("SW(2)_SW(2)", "SW(4)_SW(2)")
    rules = "leaf == 50 GB/s, node == 450 GB/s, taper(spine) == 1"
    text = re.sub(r"constraints: .*", f"constraints: [{rules}]", text) + "fidelity: calibrated\n"
    Path(auto).write_text(text.replace("global_batch: 32", "global_batch: 512"))
    of_1, of_3 = (open_plan(auto, [f"parallelism={{zero: {n}, rest: auto}}"]) for n in (1, 3))
    alone, fixed = of_1.searched().found, of_3.searched().found
    [first] = alone.best
    said = " ".join(run("optimize", auto).out.split())
    assert "zero: 3," in said
    more = first.optimum.step_time_s / fixed.best[0].optimum.step_time_s - 1
    time = f"{format_time(first.optimum.step_time_s)} ({more:+.1%})"
    assert f" With ZeRO 1 the best takes {time} at this bandwidth: parallelism: {{tp: " in said
    assert f": parallelism: {strategy_words(first.strategy)} " in said
    assert said.index(" tokens/s") < said.index("With ZeRO 1") < said.index("Memory per NPU")
    assert of_1.zero_1_words(alone) == of_3.zero_1_words(fixed) == ""


def test_a_spine_and_a_memory_that_may_not_do_are_marked(auto: str, run) -> None:
    """A spine thinner than 4:1 that nobody fixed, and memory within 7 % of the 85.5 GB of an NPU.

    81.7 GB are 3.8 short of it, and 7 % of them 5.7; 79.9 GB or less are certain.
    """
    text = AUTO.replace("llama3-8b", "llama3-70b").replace("SW(2)_SW(2)", "SW(4)_SW(2)")
    rules = "leaf == 50 GB/s, node == 450 GB/s"
    text = re.sub(r"constraints: .*", f"constraints: [{rules}, taper(spine) >= 1]", text)
    text = text.replace("performance_per_cost", "performance")
    text = text.replace("parallelism: auto", "parallelism: {zero: 3, rest: auto}")
    Path(auto).write_text(text.replace("global_batch: 32", "global_batch: 64"))
    found = run("search", auto, "--top", "3", "--json").payload
    best = found["best"]
    thin = [one["bandwidth_GBps"][2] < one["bandwidth_GBps"][1] / 4 for one in best]
    doubt = [one["memory_GB"] > 85.5 / 1.07 for one in best]
    said = [any("placement only" in x for x in one["notes"]) for one in found["best"]]
    assert (said, thin[0]) == ([*thin], True)
    assert [not one["memory_is_certain"] for one in found["best"]] == [*doubt]
    shown = run("search", auto, "--top", "3").out
    assert (shown.count(" !  "), shown.count(" ? ")) == (sum(thin), sum(doubt))
    assert "\n! a tier thinner than 4:1 to the one inside" in shown
    room = "? fits the 85.500 GB of an NPU by less than the 7% that such figures are off"
    assert (f"\n{room}" in shown) == any(doubt)
    own = run("optimize", auto, "--json").payload
    assert own["memory_is_certain"] == found["best"][0]["memory_is_certain"]
    [note] = [x for x in own["notes"] if "placement only" in x]
    assert note in found["notes"]
    assert note.startswith(f"spine of {own['bandwidth_GBps'][2]:.2f}")
    problem = open_plan(auto, own["set"]).problem
    vectors = [[450e9, 50e9, x] for x in (12.5e9, 12.4e9)]
    assert [bool([*thin_notes(problem, one)]) for one in vectors] == [False, True]
    for more in ("taper(spine) == 8", "spine == 2 GB/s"):
        fixed = open_plan(auto, [*own["set"], f"constraints=[{rules}, {more}]"]).problem
        assert not [*thin_notes(fixed, [450e9, 50e9, 2e9])]


def test_a_best_that_may_not_fit_names_the_fastest_that_does(auto: str, run) -> None:
    """``memory: certain`` searches among such alone; the line says what that finds."""
    text = AUTO.replace("llama3-8b", "llama3-70b").replace("SW(2)_SW(2)", "SW(4)_SW(2)")
    rules = "leaf == 50 GB/s, node == 450 GB/s, taper(spine) == 1"
    text = re.sub(r"constraints: .*", f"constraints: [{rules}]", text)
    text = text.replace("parallelism: auto", "parallelism: {zero: 3, rest: auto}")
    Path(auto).write_text(text.replace("global_batch: 32", "global_batch: 64"))
    certain = "--set", "memory=certain"
    [first] = run("search", auto, "--top", "1", "--json").payload["best"]
    sure = run("search", auto, "--top", "1", "--json", *certain).payload["best"][0]
    assert (first["memory_is_certain"], sure["memory_is_certain"]) == (False, True)
    assert sure["step_time_s"] > first["step_time_s"]
    more = sure["step_time_s"] / first["step_time_s"] - 1
    line = f"The fastest that fits by 7% or more takes {format_time(sure['step_time_s'])} ({more:+.1%}) at"
    for command in ("search", "optimize"):
        said = " ".join(run(command, auto).out.split())
        assert line in said
        assert f"{certain[0]} {certain[1]} searches among such alone" in said
        assert "The fastest that fits by" not in run(command, auto, *certain).out
    written = run("optimize", auto, "--json").payload["set"]
    refused = run("optimize", auto, "--set", written[0], *certain)
    assert refused.code == 3
    assert "above the 79.907 GB that certainly fit 85.500 GB ('memory: certain')" in refused.err


def test_fixed_degrees_leave_the_rest_to_the_search(auto: str, printed: Printed) -> None:
    """The best with some degrees is the first with them of all that are ranked."""
    ranked = printed("search", auto, "--top", "6")["best"]
    for fixed in ({"tp": 2}, {"dp": 8, "tp": 2}):
        best = next(one for one in ranked if fixed.items() <= one.items())
        rest = json.dumps(fixed | {"rest": "auto"})
        found = printed("optimize", auto, "--set", f"parallelism={rest}")
        assert found["objective"] == pytest.approx(best["objective"], rel=1e-9)
        assert found["search"]["certified"]
    dotted = {"parallelism.dp": 8, "parallelism.tp": 2}
    assert load_plan(auto, dotted).step.time == load_plan(auto, found["set"][-1]).step.time
    wrong = {"tp=3": "got {rest: auto, tp: 3}, expected degrees that divide 32 NPUs",
             "order=[dp]": "got the unknown key 'order'"}  # fmt: skip
    for setting, said in wrong.items():
        with pytest.raises(SpecError, match=re.escape(said)):
            load_plan(auto, f"parallelism.{setting}")


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("library=megatron-2021", "overlap={p2p: true}"),
        ("overlap={p2p: false, tp: 1}", "workload=qwen3-30b-a3b", "global_batch=64"),
        ("library=megatron-2021", "workload=qwen3-30b-a3b", "fidelity=calibrated"),
    ],
)
def test_strategies_of_a_search_are_plans_of_their_own(
    auto: str, settings: tuple[str, ...]
) -> None:
    """Any of the space takes the time, and the memory, of the plan that says its degrees."""
    opened = open_plan(auto, [*settings, "memory=ignore"])
    with pytest.raises(SpecError, match="a search takes what fits"):
        opened.search()
    search = open_plan(auto, settings).search()
    rng = np.random.default_rng(len(settings))
    for i in rng.integers(0, search.space.n, 12):
        strategy = search.space.strategy(int(i))
        degrees = f"parallelism={json.dumps(strategy.degrees)}"
        rules = "constraints=[12.5 GB/s <= leaf <= 50 GB/s, node <= 450 GB/s, taper(spine) >= 1]"
        plan = load_plan(auto, [*settings, degrees, rules, "memory=ignore"])
        mine, own = search.training(strategy), plan.step.trainings[0]
        at = np.array([4e11, 4e10, 2e10])
        assert mine.step_time(plan.step.model).seconds(at) == pytest.approx(
            own.step_time(plan.step.model).seconds(at), rel=1e-12
        )
        memory_bytes = search.figures.memory_bytes(np.array([i]))[0]
        assert memory_bytes == pytest.approx(plan.step.memory.total_bytes, rel=1e-12)


def test_a_given_design_has_the_strategy_that_is_best_for_it(auto: str, printed: Printed) -> None:
    """At slow links another one than at the optimum's; ``check`` has the same."""
    at = ["--bandwidth", "450,12.5,1"]
    slow, best = printed("evaluate", auto, *at), printed("optimize", auto)
    others = printed("evaluate", auto, *at, "--set", *best["set"])
    assert slow["set"] != best["set"]
    assert slow["step_time_s"] < others["step_time_s"]
    assert slow["search"]["certified"]
    checked = printed("check", auto, *at)
    assert checked["ideal_step_time_s"] == pytest.approx(slow["step_time_s"], rel=1e-12)
    assert checked["search"] == slow["search"]


def test_a_report_names_the_best_strategies(auto: str, tmp_path: Path, printed: Printed) -> None:
    """Its first row is what ``optimize`` finds; five are proven."""
    best, folder = printed("optimize", auto), tmp_path / "report"
    (design,) = printed("report", auto, "-o", str(folder), "--formats", "csv")["designs"]
    assert design["search"]["certified"]
    assert design["step_time_s"] == pytest.approx(best["step_time_s"], rel=1e-9)
    rows = list(csv.DictReader((folder / "report-strategies.csv").read_text().splitlines()))
    assert len(rows) == 5
    degrees = dict(re.findall(r"(\w+): (\w+)", best["set"][0]))
    assert {name: rows[0][name] for name in ("tp", "cp", "pp", "dp", "zero")}.items() <= (
        degrees.items()
    )


def test_the_frontier_of_an_open_plan_is_that_of_its_search(auto: str, printed: Printed) -> None:
    """No design of one strategy is both cheaper and faster than a point."""
    points = printed("pareto", auto, "--points", "4")["points"]
    again = printed("search", auto, "--pareto", "--points", "4")
    assert points == again["points"]
    shown = next((one for one in points if one["is_best_per_cost"]), points[-1])
    base = open_plan(auto).base
    assert again["notes"] == list(port_notes(base, [1e9 * x for x in shown["bandwidth_GBps"]]))
    written = printed("optimize", auto)["set"][0]
    for one in printed("pareto", auto, "--points", "5", "--set", written)["points"]:
        affords = [point for point in points if one["cost_usd"] <= point["cost_usd"]]
        assert all(point["step_time_s"] <= one["step_time_s"] * (1 + 1e-6) for point in affords)


def test_a_batch_that_leaves_little_data_parallelism_is_said(auto: str, printed: Printed) -> None:
    words = "allow dp 1 only on"
    for command in ("optimize", "search"):
        odd = printed(command, auto, "--set", "global_batch=1001")["notes"]
        assert [words in note for note in odd].count(True) == 1
        usual = printed(command, auto, "--set", "global_batch=1024")["notes"]
        assert not any(words in note for note in usual)
    given = printed("optimize", auto, "--set", "global_batch=1001", "--set", "parallelism.dp=1")
    assert not any(words in note for note in given["notes"])


def test_a_rule_on_memory_holds_in_a_search(auto: str, printed: Printed) -> None:
    """The limit leaves fewer strategies than the memory of an NPU, 85.5 GB."""
    rules = "constraints=[12.5 GB/s <= leaf <= 50 GB/s, node <= 450 GB/s, taper(spine) >= 1{}]"
    fitting = []
    for limit_GB in (85.5, 50):
        text = rules.format("" if limit_GB == 85.5 else f", memory <= {limit_GB} GB")
        found = printed("search", auto, "--set", text, "--top", "3")
        assert all(one["memory_GB"] <= limit_GB for one in found["best"])
        fitting.append(found["n_candidates"] - found["n_not_fitting"])
    assert fitting[0] > fitting[1] > 0
    printed("optimize", auto, "--set", rules.format(", memory <= 50 GB"))


def test_every_design_of_a_sweep_has_its_own_best_strategy(
    auto: str, tmp_path: Path, printed: Printed
) -> None:
    """Each is what ``optimize`` finds for its plan; rules on memory hold for all."""
    rules = ["12 GB/s <= leaf <= {nic} GB/s", "node <= 450 GB/s", "taper(spine) >= 1"]
    spec = {
        "base": auto,
        "axes": {
            "nic": [12.5, 50],
            "limit": [45],
            "parallelism": ["auto", {"dp": 32}, {"tp": 4, "rest": "auto"}, {"tp": 8, "dp": 4}],
        },
        "set": {"constraints": [*rules, "memory <= {limit} GB"]},
    }
    file, run = tmp_path / "sweep.yaml", tmp_path / "run"
    file.write_text(json.dumps(spec))
    rows = sweep(file, run).sql("SELECT * FROM designs ORDER BY row").dicts()
    statuses = {(row["parallelism"], row["status"]) for row in rows}
    partial, fixed = '{"rest": "auto", "tp": 4}', '{"dp": 4, "tp": 8}'
    assert statuses == {
        ("auto", "optimal"), ('{"dp": 32}', "infeasible"), (partial, "optimal"), (fixed, "optimal")
    }  # fmt: skip
    given = [row for row in rows if row["parallelism"] == fixed]
    assert [(row["tp"], row["pp"], row["dp"], row["zero"]) for row in given] == [(8, 1, 4, 1)] * 2
    assert {row["n_unproven"] for row in given} == {None}
    assert [row["tp"] for row in rows if row["parallelism"] == partial] == [4, 4]
    found = [row for row in rows if row["parallelism"] == "auto"]
    strategies = set()
    for row in found:
        plan = tmp_path / "row.yaml"
        plan.write_text(design_plan(RunDirectory(run), row["row"]))
        alone = printed("optimize", str(plan))
        for name in ("step_time_s", "cost_usd"):
            assert row[name] == pytest.approx(alone[name], rel=1e-9)
        degrees = dict(re.findall(r"(\w+): (\w+)", alone["set"][0]))
        names = ("tp", "cp", "pp", "dp", "ep", "interleave", "microbatch", "zero", "recompute")
        assert {name: str(row[name]) for name in names}.items() <= degrees.items()
        assert row["n_unproven"] == 0
        strategies.add(alone["set"][0])
    assert len(strategies) > 1
    told = [*remarks(Results.at(run))]
    assert {row.get("step_time_low_s") for row in rows} == {None}
    assert "Ties cannot be told: no measured class says how far off such times are" in told
    assert "are a tie" not in " ".join(told)


@pytest.mark.parametrize(
    ("setting", "code", "message"),
    [
        ("memory=ignore", 2, "memory: got ignore, expected nothing: a search takes what fits"),
        ("npu=null", 2, "npu: got nothing, expected the step of a whole model for a search"),
        ("global_batch=null", 2, "global_batch: got nothing"),
        ("fabric.topology=SW", 2, "fabric.topology: got 'SW'"),
        ("objective=cost", 2, "objective: got the objective cost"),
        (
            "constraints=[memory <= 5 GB, total <= 1 TB/s]",
            3,
            "all need more memory than an NPU, or a rule on it, allows",
        ),
    ],
)
def test_open_plans_that_cannot_be_searched(
    auto: str, setting: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", auto, "--set", setting]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("{zero: 1, rest: atuo}", "parallelism.rest: got 'atuo', expected 'auto'; write auto"),
        ("{tp: 0, rest: 1}", "parallelism.rest: got 1, expected 'auto'"),
        ("atuo", "parallelism: got 'atuo', expected degrees such as {tp: 8, dp: 64}, or auto; "
                 "did you mean auto?"),
        ("{zero: 1}", "parallelism.dp: got nothing, expected this key; add 'dp:', or 'rest: auto'"),
    ],
)  # fmt: skip
def test_misspelt_auto_is_told_as_such(auto: str, said: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)) as refused:
        load_plan(auto, f"parallelism={said}")
    assert "unknown key 'rest'" not in str(refused.value)
    assert "of a group" not in str(refused.value)


def test_open_plans_tell_all_faults_at_once(auto: str, run: Callable[..., Any]) -> None:
    wrong = {
        "parallelism": "{zero: 7, rest: auto}",
        "workload": "llama3-8",
        "fidelity": "calibratd",
        "fabric.topology": "SV(8)",
        "constraints": "[totl == 5 GB/s]",
    }
    flags = [part for key, value in wrong.items() for part in ("--set", f"{key}={value}")]
    said = run("optimize", auto, *flags).err
    for words in ("got 7", "'llama3-8'", "'calibratd'", "'SV'"):
        assert words in said
    del wrong["fidelity"], wrong["workload"]
    flags = [part for key, value in wrong.items() for part in ("--set", f"{key}={value}")]
    said = run("optimize", auto, *flags).err
    assert "got 7" in said
    assert "'SV'" in said


def test_open_parallelism_in_a_group_is_refused(tmp_path: Path) -> None:
    entry = "{workload: llama3-8b, parallelism: auto, global_batch: 32, npu: h100-sxm}"
    rest = AUTO.split("npu: h100-sxm\n", 1)[1]
    path = tmp_path / "group.yaml"
    path.write_text(f"workloads: [{entry}, {entry}]\n{rest}")
    with pytest.raises(SpecError, match="auto is for plans of one workload"):
        load_plan(path)


def test_frontier_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["workload=llama3-8b", "global_batch=16", "npu=h100-sxm"]
    settings += ["fabric.topology=SW(8)_[SW(2)_SW(2)]", "parallelism={tp: 8, dp: 4}"]
    flags = [part for one in settings for part in ("--set", one)]
    plan = ["search", str(example("0b_bill")), *flags, "--pareto"]
    assert main([*plan, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = ("n_not_fitting", "n_cut", "n_solved", "n_unproven")
    assert found["certified"]
    assert found["n_candidates"] == sum(found[name] for name in parts)
    assert found["n_candidates"] == found["n_strategies"] * found["n_searches"]
    points = found["points"]
    assert len(points) > 2
    for before, after in pairwise(points):
        assert before["cost_usd"] < after["cost_usd"]
        assert before["step_time_s"] > after["step_time_s"]
    for one in points:
        assert one["cost_usd"] > one["network_cost_usd"] > 0
        assert one["tokens_per_s"] == pytest.approx(16 * 8192 / one["step_time_s"])
        assert 0.2 < one["mfu"] < 0.7
    least = min(points, key=lambda one: one["cost_usd"] * one["seconds_per_token"])
    assert [one for one in points if one["is_best_per_cost"]] == [least]
    assert main([*plan, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    speeds = [float(row["dim2_GBps"]) for row in rows]
    assert speeds == [one["bandwidth_GBps"][1] for one in points]
    assert main(plan) == 0
    assert format_time(least["step_time_s"]) in capsys.readouterr().out.split("*")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SMALL, "--global-batch", "8", "--pareto"], "--pareto: got no plan, expected one with"),
        (["search", "0d_llama3_70b", "--pareto", "--top", "3"], "--top: got --pareto too"),
        (["search", "0d_llama3_70b", "--points", "3"], "--points: got no --pareto"),
        (["search", "0d_llama3_70b", "--csv"], "--csv: got no --pareto"),
        (["search", "0d_llama3_70b", "--pareto", "--csv", "--json"], "--csv: got --json too"),
    ],
)
def test_flags_that_say_nothing_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_chunks_are_those_that_plans_take(run) -> None:
    """80 layers, embedding and logits are 82 chunks at most: 32 stages of 3 are too many."""
    words = ("--model", "llama3-70b", "--npu", "h100-sxm", "--gpus", "256", "--global-batch")
    rows = run("search", *words, "256", "--top", "100", "--json").payload["best"]
    assert max(one["pp"] * one["interleave"] for one in rows) <= 82


def test_rules_that_no_strategy_meets_are_infeasible(plan, run) -> None:
    path = plan(text=example("0e_rails_2to1").read_text())
    rules = "constraints=[step_time <= 1 ms, leaf == 50 GB/s, taper(spine) == 2]"
    result = run("search", path, "--set", rules)
    assert result.code == 3, result.err
    assert result.out == ""
    assert " take longer than the 1.000 ms of the rules on every network (" in result.err
    counts = [
        int(re.search(f"([0-9,]+) {word}", result.err)[1].replace(",", ""))
        for word in ("strategies", "need more memory", "take longer")
    ]
    assert counts[0] == counts[1] + counts[2]
    printed = run("search", path, "--set", rules, "--json")
    assert (printed.code, printed.payload["best"]) == (3, [])
    result = run("search", path, "--pareto", "--set", "npu={name: h100-sxm, memory: 3 GB}")
    assert result.code == 3, result.err
    assert "all need more memory than an NPU, or a rule on it, allows (" in result.err
    assert "at least, of 3.000 GB); take more NPUs, or larger ones" in result.err


@pytest.mark.parametrize(
    ("fixed", "batch", "fix"),
    [
        ("{tp: 3, rest: auto}", 32, "the 8 NPUs of dim1 are no multiple of 3; write tp 2 or 4"),
        ("{microbatch: 7, rest: auto}", 32, "write microbatch 4 or 8"),
        ("{dp: 32, rest: auto}", 16, "write dp 16"),
        ("{dp: 16, microbatch: 8, rest: auto}", 32, "write dp 4"),
        ("{dp: 32, microbatch: 16, pp: 1, rest: auto}", 24, "leave out dp and microbatch"),
    ],
)
def test_degrees_that_leave_no_strategy_have_one_message(
    auto: str, run, fixed: str, batch: int, fix: str
) -> None:
    """The same in all commands; and what it proposes is searched."""
    settings = ("--set", f"parallelism={fixed}", "--set", f"global_batch={batch}")
    said = [run(command, auto, *settings) for command in ("search", "optimize", "pareto")]
    assert [(one.code, one.out) for one in said] == [(2, "")] * 3
    assert said[0].err == said[1].err == said[2].err
    assert fix in said[0].err
    if found := re.search(r"write (\w+) (\d+)", said[0].err):
        mended = ("--set", f"parallelism.{found[1]}={found[2]}")
        assert run("search", auto, *settings, *mended, "--json").payload["best"]


def test_where_fixed_degrees_need_too_much_memory_others_are_named(auto: str, run) -> None:
    fixed = ("--set", "parallelism={tp: 1, pp: 1, zero: 0, microbatch: 1, rest: auto}")
    small = ("--set", "npu={name: h100-sxm, memory: 30 GB}")
    result = run("search", auto, *fixed, *small)
    assert result.code == 3
    assert "; others fit: write parallelism: auto" in result.err
    assert run("search", auto, *small, "--set", "parallelism=auto", "--json").payload["best"]


def test_a_narrow_table_of_strategies_loses_what_all_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speed and cost stay, and what went is said once."""
    plan = str(example("0e_rails_2to1"))
    assert main(["search", plan, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["search", plan]) == 0
    lines = capsys.readouterr().out.splitlines()
    heading = next(line for line in lines if "tp" in line)
    assert {"tokens/s", "MFU", "cost"} <= set(heading.split())
    assert "ep" not in heading.split()
    rest = " ".join(lines[lines.index(heading) :])
    assert "ep (1 in all)" in rest
    assert "batch (1,024 in all)" in rest
    assert format_usd(best[0]["cost_usd"]) in rest
    assert f"{best[0]['tokens_per_s']:,.0f}  {best[0]['mfu']:.1%}" in rest


def test_a_checked_sweep_takes_the_best_strategy_on_links(tmp_path: Path, printed: Printed) -> None:
    """That of ``optimize --routing``; the row's plan has it, and ``check`` its figures."""
    base, rules = "0e_rails_2to1", ["leaf == 25 GB/s", "taper(spine) == 4"]
    fixed = {"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 5}
    spec = {
        "base": base,
        "axes": {"parallelism": ["auto", fixed]},
        "set": {"constraints": rules, "fabric.realization": {"port_speed": "200 Gbps"}},
        "check": {"policy": "ecmp", "seeds": 1},
    }
    file, run = tmp_path / "sweep.yaml", tmp_path / "run"
    file.write_text(json.dumps(spec))
    found, given = sweep(file, run).sql("SELECT * FROM designs ORDER BY row").dicts()
    assert (given["n_on_links"], given["pp"]) == (None, 4)
    told = " ".join(remarks(Results.at(run)))
    assert "Strategies within 14% of each other are a tie" in told
    plan = tmp_path / "row.yaml"
    plan.write_text(design_plan(RunDirectory(run), 0))
    checked = printed("check", str(plan), "--seeds", "1")
    assert checked["effective_step_time_s"] == found["effective_step_time_s"]
    settings = {"parallelism": "auto", "constraints": f"[{', '.join(rules)}]"}
    settings["fabric.realization"] = "{port_speed: 200 Gbps}"
    words = [word for key, one in settings.items() for word in ("--set", f"{key}={one}")]
    alone = printed("optimize", base, *words, "--routing", "ecmp", "--seeds", "1")
    ranked = alone["strategies_on_links"]["ranked"]
    best, blind = ranked[0], next(one for one in ranked if one["best_in_model"])
    assert found["n_on_links"] == len(ranked) > 1
    assert found["effective_step_time_s"] == pytest.approx(best["effective_step_time_s"])
    slower_s = blind["effective_step_time_s"]
    assert found["model_effective_step_time_s"] == pytest.approx(slower_s)
    assert slower_s > 1.2 * found["effective_step_time_s"]  # What the model alone would take.
    assert {name: best[name] for name in ("tp", "cp", "pp", "dp", "interleave")} == {
        name: found[name] for name in ("tp", "cp", "pp", "dp", "interleave")
    }
