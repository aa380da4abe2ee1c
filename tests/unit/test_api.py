"""The Python API: slips that would give silently wrong numbers are refused."""

from __future__ import annotations

import ast
import json
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import libra_planner as lp
import libra_planner.search.best  # The folder must not hide the function.
from libra_planner.cli.arguments.commands import COMMANDS
from libra_planner.cli.arguments.sweeps import SWEEP_ACTIONS
from libra_planner.sweeps.figures.answer import Answer
from libra_planner.sweeps.spec import load_sweep
from libra_planner.views.renderers.notebook import text


def test_gigabytes_where_bytes_are_meant(plan) -> None:
    problem = lp.load_plan(plan())
    with pytest.raises(lp.SpecError, match="expected bytes/s; multiply GB/s by 1e9"):
        lp.evaluate(problem, np.array([300, 100, 75, 25]))
    with pytest.raises(
        lp.SpecError, match=r"at most 3e\+11 GB/s.* bandwidth_GBps=\[300, 100, 75, 25\]"
    ):
        lp.evaluate(problem, bandwidth_GBps=[300e9, 100e9, 75e9, 25e9])
    with pytest.raises(
        lp.SpecError, match=r"^evaluate: got bandwidth_GBps=.*, -50 at place 1, exp"
    ):
        lp.evaluate(problem, bandwidth_GBps=[900, -50, 25, 25])
    assert lp.evaluate(problem, [300e9, 100e9, 75e9, 25e9]).step_time_s == pytest.approx(
        0.725217, abs=1e-6
    )


@pytest.mark.parametrize("vector", [[1e9], [1e9, 1e9, 1e9, -1e9], [1e9, 1e9, 1e9, float("nan")]])
def test_vectors_that_are_none(vector: list[float], plan) -> None:
    with pytest.raises(lp.SpecError):
        lp.evaluate(lp.load_plan(plan()), vector)


def test_one_setting_or_several(plan) -> None:
    path, rule = plan(), "constraints.0=total == 100 GB/s"
    assert lp.load_plan(path, rule).rules == lp.load_plan(path, [rule]).rules
    by_dict = {"constraints": ["total == 100 GB/s"], "parallelism.tp": 8, "parallelism.dp": 512}
    given = lp.load_plan(path, by_dict)
    assert given.rules[0].text == "total == 100 GB/s"
    assert given.settings[0] == "TP 8 x DP 512"


def test_settings_name_what_the_figures_rest_on(plan) -> None:
    npu = "npu={peak_TFLOPps: 312, efficiency_fraction: 0.5}"
    problem = lp.load_plan(plan(), [npu])
    assert problem.settings == (
        "TP 16 x DP 256",
        "8,192 sequences per step",
        "compute at 50% of 312 TFLOP/s per NPU",
        "loop no_overlap",
        "prices libra-ispass24 (2024-05, published)",
    )
    assert any("2 layers" in note for note in problem.text.notes)


def test_real_links_are_slower_than_the_model_for_partial_groups_only(plan) -> None:
    partial = lp.load_plan(plan())
    vector = np.array([300e9, 100e9, 75e9, 25e9])
    evaluation = lp.evaluate(partial, vector)
    # TP on 4 of FC(8) has 3 of 7 links, DP on 2 of FC(8) 1 of 7; rings and switch are whole.
    tp = max(1207959552 / 300e9, 7 / 3 * 301989888 / 100e9) * 9
    dp = max(7 * 452984832 / 100e9, 339738624 / 75e9, 109707264 / 25e9)
    assert evaluation.real_link_step_time_s == pytest.approx(partial.compute_s + tp + dp, rel=1e-9)
    whole = lp.load_plan(plan(), ["parallelism={tp: 32, dp: 128}"])
    assert lp.evaluate(whole, vector).real_link_step_time_s is None


def test_groups_that_leave_npus_idle_are_noted(plan) -> None:
    groups = "parallelism={forward: [4,4,1,1], input_grad: [4,4,1,1], weight_grad: [1,2,4,16]}"
    problem = lp.load_plan(plan(), groups)
    assert any("2,048 NPUs of work on 4,096 NPUs" in note for note in problem.text.notes)
    assert not any("NPUs of work" in note for note in lp.load_plan(plan()).text.notes)


PLAN = "01_gpt3_4d"


def test_a_plan_comes_from_a_path_a_name_or_a_dict() -> None:
    path = lp.example(PLAN)
    by_name, by_path = lp.load_plan(PLAN), lp.load_plan(str(path))
    given = yaml.safe_load(path.read_text())
    by_dict = lp.load_plan(given)
    given["constraints"].clear()  # What the caller does with it later is not the plan's.
    assert by_name.optimize().objective == by_path.optimize().objective
    assert by_name.optimize().objective == by_dict.optimize().objective
    assert lp.load_plan(dict(by_dict.source)).topology == by_name.topology


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lp.optimize("a.yaml"), r"write lp.optimize\(lp.load_plan\('a.yaml'\)\)"),
        (lambda: lp.evaluate("a.yaml", [1e9]), "expected a plan"),
        (lambda: lp.pareto({}), "got a dict, expected a plan"),
        (lambda: lp.batch_optimize("a.yaml"), "got the path 'a.yaml', expected a plan"),
        (
            lambda: lp.batch_optimize([lp.load_plan(PLAN), "a.yaml"]),
            r"'a.yaml' at place 1 of the list, expected a plan; write lp.load_plan\('a.yaml'\) in",
        ),
        (lambda: lp.check_jobs("a.yaml"), "expected a list of plans"),
        (lambda: lp.sweep(lp.load_plan(PLAN), "run"), "got a plan, expected a sweep"),
        (lambda: lp.link_check("a.yaml", [1e9]), "expected a plan"),
        (lambda: lp.search("a.yaml"), "expected a plan"),
        (lambda: lp.load_plan(lp.load_plan(PLAN)), "a plan that is loaded"),
        (lambda: lp.load_plan(PLAN).check(sedes=2), "did you mean seeds?"),
        (lambda: lp.train("llama3-8b", npu="h100-sxm", globalbatch=2), "did you mean global_batch"),
        (lambda: lp.network(hosts=4, nic="400Gbps", wirings="x"), "did you mean wiring"),
        (lambda: lp.calibrate("x.yaml", ncl=["a"]), "did you mean nccl"),
        (lambda: lp.kernel("gemm", npu="h100-sxm", mm=2), "did you mean m"),
    ],
)
def test_slips_of_kind_say_what_to_write(call, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lp.load_plan("01_gpt3_4x"), "did you mean 01_gpt3_4d"),
        (lambda: lp.load_plan({"workload": object()}), "plan: workload: got an object"),
        (lambda: lp.load_plan(PLAN).evaluate([300, 100, 75, 25]), "or write bandwidth_GBps="),
        (lambda: lp.load_plan("13_tapers"), r"bundled sweep, .*; lp.sweep\(FILE, DIRECTORY\) runs"),
        (lambda: lp.sweep("01_gpt3_4d", "run"), "bundled plan, .*; lp.load_plan reads it"),
        (lambda: lp.load_plan(PLAN).evaluate("300,100,75,25"), r"text, .*=\[300, 100, 75, 25\]"),
        (lambda: lp.load_plan(PLAN).evaluate("300,100"), r"which is text, .*=\[100, 100, 100, 100"),
        (lambda: lp.load_plan(PLAN).evaluate(["300", "100", "75", "25"]), r"=\[300, 100, 75, 25\]"),
        (lambda: lp.load_plan(PLAN).evaluate(), r"write bandwidth_GBps=\[100, 100, 100, 100\]"),
        (lambda: lp.pareto(lp.load_plan("06_catalogue")), r"with settings=\['fabric.link_options"),
        (lambda: lp.load_plan("07_check").check(fail_spines=10**4), "fail_links, fail_spines"),
        (lambda: lp.load_plan(PLAN).optimize().to_frame("x"), "expected a key that holds a table"),
        (lp.search, "got no model, npu, gpus, global_batch"),
    ],
)
def test_faults_speak_python(call, said: str) -> None:
    with pytest.raises(lp.SpecError, match=said) as caught:
        call()
    assert "--" not in str(caught.value)


def test_an_optimum_says_what_the_command_prints(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    best = lp.load_plan("02_performance_per_cost").optimize()
    shown = run("optimize", lp.example("02_performance_per_cost"))
    assert [line.rstrip() for line in shown.out.splitlines()] == text(
        best.blocks(), 200
    ).splitlines()
    told = run("optimize", lp.example("02_performance_per_cost"), "--json").payload
    own = json.loads(json.dumps(best.to_dict()))
    assert own == {name: told[name] for name in own}
    assert (best.step_time_s, best.cost_usd) == (told["step_time_s"], told["cost_usd"])


def _written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[object]:
    plan = lp.load_plan(PLAN)
    step = lp.train("llama3-8b", npu="h100-sxm", gpus=16, tp=2, dp=8, global_batch=64)
    found = lp.search(model="llama3-8b", npu="h100-sxm", gpus=16, global_batch=64, n_best=2)
    checked = plan.check(bandwidth_GBps=[300, 100, 75, 25])
    folder = tmp_path_factory.mktemp("results")
    swept = lp.sweep("10_budgets", folder / "run")
    saved = plan.optimize().save(folder / "a.json")
    written = lp.report([saved, plan], folder / "report", formats="md")
    routed = lp.flows("flowtracer_fabric", "flowtracer_flows", "greedy")
    sent = lp.collective("RI(4)_SW(8)", "all-reduce", 2**26, [100e9, 50e9])
    others = [
        lp.network(hosts=64, nic="400Gbps"),
        lp.kernel("gemm", npu="h100-sxm", m=64, n=64, k=64),
        lp.system_collective("h100-sxm", "all-reduce", 2**20),
        lp.compared_flows(
            "flowtracer_fabric",
            _written(folder, "f.csv", "flow_id,src,dst,bytes\n1,0,9,1e6\n2,1,8,1e6\n"),
            seed=0,
        ),
        lp.train_table(
            _written(folder, "r.csv", "model,gpu_type,gpus,global_batch\nllama3-8b,H100,16,64\n")
        ),
        lp.sweep_plan("10_budgets"),
    ]
    whole = [plan, plan.optimize(), checked, plan.pareto(3), plan.optimize().shadow_prices, *others]
    return [*whole, step, found, swept, written, routed, sent]


def test_results_are_short_in_words_and_whole_in_tables(results) -> None:
    import matplotlib.pyplot as plt

    for one in results:
        assert len(repr(one)) < 250
        assert "\n" not in repr(one)
        assert one._repr_html_().startswith("<div>")
        assert "[bold]" not in one._repr_html_()
        assert len(one.to_frame())
        assert str(one)
        assert repr(pickle.loads(pickle.dumps(one))) == repr(one)
        if hasattr(one, "plot"):
            assert one.plot().get_ylabel() or one.plot().get_xlabel()
    plt.close("all")


def test_bars_of_times_say_how_long_and_how_much_longer(results) -> None:
    """From zero on bars look equal."""
    checked = next(one for one in results if hasattr(one, "spray_step_time_s"))
    texts = [text.get_text() for text in checked.plot().texts]
    times = [checked.ideal_step_time_s, checked.spray_step_time_s, checked.mean_step_time_s]
    assert texts[0] == f"{1000 * times[0]:.3f} ms"
    assert texts[2] == f"{1000 * times[2]:.3f} ms\n{100 * (times[2] / times[0] - 1):+.2f}%"


@pytest.mark.parametrize("asked", [{"x": "bugdet"}, {"x": "budget", "y": "nonsense"}])
def test_words_of_a_figure_are_checked(results, asked) -> None:
    swept = next(one for one in results if isinstance(one, lp.SweepResults))
    with pytest.raises(lp.SpecError, match=rf"^(x, )?y: got '{[*asked.values()][-1]}', expected "):
        swept.plot(**asked)


def test_a_sweep_is_a_dict_as_well_as_a_file(tmp_path) -> None:
    given = {"base": PLAN, "axes": {"budget": [300, 400]}}
    given["set"] = {"constraints": ["total == {budget} GB/s"]}
    assert lp.sweep_plan(given).n_designs == 2
    times = lp.sweep(given, tmp_path / "run").to_frame()["step_time_s"].tolist()
    rules = [{"constraints": [f"total == {budget} GB/s"]} for budget in (300, 400)]
    assert times == pytest.approx([lp.load_plan(PLAN, one).optimize().step_time_s for one in rules])
    with pytest.raises(lp.SpecError, match=r"^sweep: axes\.budget\.to: got nothing"):
        lp.sweep(given | {"axes": {"budget": {"from": 1}}}, tmp_path / "other")


def test_a_sweep_that_is_stopped_says_what_it_keeps(tmp_path) -> None:
    """A sweep that no file says has the name of its directory."""
    swept = {
        "base": "0e_rails_2to1",
        "axes": {"nic": [25, 50]},
        "set": {"constraints": ["leaf == {nic} GB/s", "taper(spine) == 2"]},
        "designs_per_part": 1,
    }

    def stop(progress) -> None:
        if progress.n_parts_done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"1 of 2 parts are kept in .*; call lp.sweep with"):
        lp.sweep(swept, tmp_path / "own", watch=stop)
    assert lp.sweep(swept, tmp_path / "own").name == "own"


def test_results_of_a_sweep_say_how_many_have_which_status(tmp_path) -> None:
    given = {"base": PLAN, "axes": {"budget": [300, -5]}, "designs_per_part": 1}
    given["set"] = {"constraints": ["total == {budget} GB/s"]}
    found = lp.sweep(given, tmp_path / "run")
    assert repr(found) == "<SweepResults: 2 designs over budget: 1 infeasible, 1 optimal>"
    assert repr(replace(found, where=("row == 9",))).endswith("where row == 9>")
    assert "1 infeasible, 1 optimal; the best of each objective" in " ".join(str(found).split())
    next((tmp_path / "run").rglob("*.parquet")).unlink()
    part = lp.sweep_results(tmp_path / "run")
    assert re.fullmatch(r"<SweepResults: 2 .*: 1 (optimal|infeasible), 1 missing>", repr(part))


def test_rows_of_a_sweep_have_the_band_of_published_runs(tmp_path) -> None:
    given = {"base": "0d_llama3_70b", "axes": {"fidelity": ["calibrated", "ideal"]}}
    measured, ideal = lp.sweep(given, tmp_path / "run").to_frame().to_dict("records")
    plan = lp.load_plan("0d_llama3_70b", "fidelity=calibrated")
    band_s = plan.step.band_around_s(measured["step_time_s"])
    assert (measured["step_time_low_s"], measured["step_time_high_s"]) == pytest.approx(band_s)
    assert plan.optimize().step_time_band_s == pytest.approx(band_s, rel=1e-5)
    assert np.isnan(ideal["step_time_low_s"])


def test_the_table_of_a_step_adds_up_without_noise() -> None:
    """A step without a pipeline waits for nothing, exactly."""
    step = lp.train("llama3-8b", npu="h100-sxm", gpus=16, tp=2, global_batch=64)
    parts = step.to_frame().set_index("name")["value"]
    assert parts["total"] == step.step_time_s
    assert parts.drop("total").sum() == pytest.approx(step.step_time_s, rel=1e-12)
    assert parts["bubble_s"] == parts["uneven_stages_s"] == 0


def test_pandas_reads_the_directory_of_a_sweep(tmp_path) -> None:
    swept = lp.sweep("10_budgets", tmp_path / "run1")
    read = pd.read_parquet(tmp_path / "run1")
    ours = lp.sweep_results(tmp_path / "run1").to_frame()
    numbers = read.select_dtypes("number").columns
    assert len(numbers) > 8
    pd.testing.assert_frame_equal(read[numbers], ours[numbers], check_dtype=False)
    assert len(swept.to_frame("pareto")) < len(ours)


def test_a_report_takes_plans_that_are_no_files(tmp_path: Path) -> None:
    """It saves them beside its page, which names them; nothing stays of one that fails."""
    value = yaml.safe_load(lp.example(PLAN).read_text(encoding="utf-8"))
    of_dict = lp.load_plan(value)
    changed = lp.load_plan(PLAN, "constraints.0=total == 100 GB/s")
    written = lp.report([PLAN, of_dict, changed], tmp_path / "r", formats="md")
    a, b, c = (one.evaluation.step_time_s for one in written.comparison.candidates)
    assert a == b == of_dict.optimize().step_time_s
    assert c == changed.optimize().step_time_s != a
    assert lp.load_plan(tmp_path / "r" / "design-3.yaml").to_dict() == changed.to_dict()
    with pytest.raises(lp.PlannerError):
        lp.report([changed, "nothing"], tmp_path / "s")
    assert [*tmp_path.glob("s/*")] == []


def test_what_a_report_refuses() -> None:
    with pytest.raises(TypeError, match="expected a list"):
        lp.report(PLAN, "nowhere")
    with pytest.raises(TypeError, match="sweep: got a plan, expected a sweep"):
        lp.sweep(lp.load_plan(PLAN), "nowhere")


def test_a_plan_that_is_saved_is_the_same_anywhere(tmp_path: Path) -> None:
    """Files that it names, quotes too, are found from another folder."""
    (tmp_path / "q.csv").write_text(
        "item,price,unit,seller,date\nswitch-64x400g,41000,each,S,2026-11-02\n"
    )
    value = yaml.safe_load(lp.example("0e_rails_2to1").read_text(encoding="utf-8"))
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(value | {"quotes": "q.csv"}))
    (tmp_path / "there").mkdir()
    plan = lp.load_plan(tmp_path / "plan.yaml")
    again = lp.load_plan(plan.save(tmp_path / "there" / "plan.yaml"))
    assert again.prices.quotes == plan.prices.quotes != ()
    with pytest.raises(lp.SpecError, match="expected a name ending in"):
        plan.save(tmp_path / "plan.json")
    with pytest.raises(lp.SpecError, match="objective were changed after it was read"):
        replace(plan, objective="cost").save(tmp_path / "other.yaml")


def test_a_search_refuses_a_plan_that_is_not_its_file() -> None:
    plan = lp.load_plan("0d_llama3_70b")
    with pytest.raises(lp.SpecError, match="objective were changed after it was read"):
        replace(plan, objective="performance").search()


def test_the_page_of_python_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    _, _, rows = page.partition("## Every command")
    named = [row.split(" | ")[0] for row in rows.splitlines() if row.startswith("| `")]
    commands = re.findall(r"`([a-z]+)(?: ([a-z]+))?", " ".join(named))
    assert {first for first, _ in commands} == {*COMMANDS}
    assert {second for first, second in commands if first == "sweep"} == {*SWEEP_ACTIONS}
    functions = {*re.findall(r"lp\.(\w+)", rows)}
    assert functions <= {*lp.__all__}
    assert all(hasattr(lp.load_plan(PLAN), name) for name in re.findall(r"plan\.(\w+)\(", rows))


def test_the_page_of_python_says_what_has_a_picture() -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if "have `plot()`" in line]
    named = {*re.findall(r"`([A-Z]\w+)`", line)}
    assert named == {name for name in lp.__all__ if hasattr(getattr(lp, name), "plot")}


JOB = """\
workload: ./mine.yaml
parallelism: {tp: 1, dp: 4}
fabric:
  topology: SW(4)
  tiers: [pod]
  realization: {switch_radix: 8, leaves: 2, oversubscription: 2, port_speed: 50 GB/s}
cost_model: libra-ispass24
constraints: [pod == 50 GB/s]
"""
WORK = """\
kind: table
source: by hand
operations:
- {layer: all, phase: weight_grad, compute_ms: 10, collective: {kind: all-reduce, size_bytes: 4.0e8}}
"""


def test_jobs_in_python_say_what_the_command_prints(tmp_path, run) -> None:
    (tmp_path / "mine.yaml").write_text(WORK)
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for path in paths:
        path.write_text(JOB)
    jobs = lp.check_jobs(paths, "spray", placement="contiguous")
    assert repr(jobs) == "<Jobs: 2 jobs by spray; slowed down 1.000x at most>"
    told = run("check", *paths, "--policy", "spray", "--placement", "contiguous", "--json")
    assert json.loads(json.dumps(jobs.to_dict())) == told.payload
    assert len(jobs.to_frame()) == 2
    with pytest.raises(TypeError, match="did you mean placement"):
        lp.check_jobs(paths, placment="rail")


NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "llama3_70b.ipynb"


def test_the_notebook_shows_what_its_cells_give() -> None:
    import matplotlib.pyplot as plt

    names: dict[str, object] = {}
    n_compared = 0
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        *lines, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(lines, []), "notebook", "exec"), names)
        is_shown = isinstance(last, ast.Expr)
        kind = "eval" if is_shown else "exec"
        tree = ast.Expression(last.value) if is_shown else ast.Module([last], [])
        value = eval(compile(tree, "notebook", kind), names)
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                assert "".join(output["data"]["text/plain"]) == repr(value)
                if shown := getattr(value, "_repr_html_", None):
                    assert "".join(output["data"]["text/html"]) == shown()
                n_compared += 1
    plt.close("all")
    assert n_compared > 5


def test_sweeps_work_in_a_kernel_without_widgets(tmp_path: Path) -> None:
    """DuckDB refuses to change its progress bar there."""
    import nbclient
    import nbformat

    run = f"lp.sweep('13_tapers', {str(tmp_path / 'run')!r})"
    code = f"import libra_planner as lp\n{run}.top(1).rows[0][:3]"
    cells = [
        nbformat.v4.new_code_cell(text) for text in (code, "print(lp.load_plan('01_gpt3_4d'))")
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    assert notebook.cells[0].outputs[-1]["data"]["text/plain"] == "(8, 100, 1)"
    (printed,) = notebook.cells[1].outputs  # One stream, not an output for each line.
    assert printed["name"] == "stdout"
    assert printed["text"] == f"{lp.load_plan('01_gpt3_4d')}\n"


def test_what_callers_of_collectives_give() -> None:
    given = ("RI(4)_SW(8)", "all-reduce")
    by_text = lp.collective(*given, "64MiB", [100e9, 50e9])
    assert by_text.time_s == lp.collective(*given, 2**26, [100e9, 50e9]).time_s
    for vector, said in (([100, 50], "multiply GB/s by 1e9"), ([100e9], "write a list of them")):
        with pytest.raises(lp.SpecError, match=said):
            lp.collective(*given, 2**26, vector)
    with pytest.raises(TypeError, match=re.escape("load_plan(..., {'objective': 'cost'})")):
        lp.load_plan("01_gpt3_4d").optimize(objective="cost")


def test_faults_of_a_dict_name_its_own_keys_once() -> None:
    rules = {"set": {"constraints": ["leaff == {nic} GB/s"]}}
    with pytest.raises(lp.SpecError, match=r"^sweep: constraints\.0: got the name 'leaff'"):
        lp.sweep_plan({"base": "0e_rails_2to1", "axes": {"nic": [25, 50]}} | rules)
    with pytest.raises(lp.SpecError, match=r"^sweep: axes.nic: got the axis 'nic', which the plan"):
        lp.sweep_plan({"base": "0e_rails_2to1", "axes": {"nic": [25, 50]}})
    with pytest.raises(
        lp.SpecError, match=r"^0e_rails_2to1: settings: fabric.topologi: got the unknown key"
    ):
        lp.load_plan("0e_rails_2to1", {"fabric.topologi": "SW(8)"})


def _budgets(values: object) -> list[float]:
    where = np.array(["budget >= 200"])
    rules = {"set": {"constraints": ("total == {budget} GB/s",)}, "where": where}
    found = load_sweep({"base": "01_gpt3_4d", "axes": {"budget": values}} | rules)
    return [value for axis in found.axes for value in axis.values]


@pytest.mark.parametrize(
    "values",
    [
        range(100, 301, 100),
        np.linspace(100, 300, 3),
        (np.int64(100), np.float32(200), 300),
        pd.Series([100, 200, 300]),
    ],
)
def test_lists_of_a_dict_may_be_ranges_and_arrays(values: object) -> None:
    assert _budgets(values) == [100, 200, 300]


def test_what_is_no_list_of_a_dict_is_refused() -> None:
    said = r"^sweep: axes.budget: got a set, .* a list or a map; write list\(...\) of it"
    with pytest.raises(lp.SpecError, match=said):
        _budgets({100, 200})
    with pytest.raises(
        lp.SpecError, match=r"^sweep: axes.budget: got 1,000,000,000 values, .*at mo"
    ):
        _budgets(range(10**9))
    for settings in (np.array(["objective=cost"]), pd.Series(["objective=cost"])):
        assert lp.load_plan("01_gpt3_4d", settings).objective == "cost"
    rules = {"constraints": np.array(["total == 100 GB/s"])}
    assert lp.load_plan("01_gpt3_4d", rules).rules[0].text == "total == 100 GB/s"


def test_an_index_of_a_list_that_a_plan_lacks_says_what_to_write(run) -> None:
    rule = "total >= 100 GB/s"
    fix = f'expected the list; write constraints=["{rule}"]'
    with pytest.raises(lp.SpecError) as caught:
        lp.load_plan("0b_bill", {"constraints.0": rule})
    assert (
        f"settings: constraints.0: got an index of a list that the plan does not have, {fix}"
        in (str(caught.value))
    )
    assert fix in run("optimize", "0b_bill", "--set", f"constraints.0={rule}").err
    assert "got a map" in run("optimize", "0b_bill", "--set", "constraints={}").err


def test_a_plan_without_an_optimum_says_it_in_words_of_python() -> None:
    plan = lp.load_plan("01_gpt3_4d", "constraints=[]")
    for ask in (plan.optimize, plan.check, lambda: lp.batch_optimize([plan]).design(0)):
        with pytest.raises(lp.IllPosed, match="yaml: settings: constraints: got no rule") as caught:
            ask()
        assert "--set" not in str(caught.value)


def test_an_answer_of_a_sweep_shows_itself() -> None:
    answer = Answer(("row", "nic"), ((0, "<b>"), (1, "x")))
    assert repr(answer).splitlines()[0] == "<Answer: 2 rows of 2 columns>"
    assert "&lt;b&gt;" in answer._repr_html_()


def test_a_batch_is_a_list_of_its_optima() -> None:
    rules = [["total == 500 GB/s"], ["total == 500 GB/s", "dim1 >= 600 GB/s"]]
    plans = [lp.load_plan(PLAN, {"constraints": one}) for one in (*rules, rules[0])]
    fabric = {"topology": "SW(16)_SW(256)", "tiers": ["node", "pod"]}
    degrees = {"tp": 16, "dp": 256}
    own = {"workload": "gpt3-libra", "fabric": fabric, "parallelism": degrees}
    small = lp.load_plan({**own, "cost_model": "libra-ispass24", "constraints": rules[0]})
    batch = lp.batch_optimize([*plans, small])
    assert [row.status for row in batch] == batch.status.tolist()
    assert len(batch) == len(list(batch)) == 4
    assert len(batch[3].bandwidth_bytes_per_s) == 2
    assert batch[-1] is batch[3]
    alone = batch.design(2)
    assert isinstance(alone, lp.Optimum)
    assert (batch[2].step_time_s, batch[2].cost_usd) == pytest.approx(
        (alone.step_time_s, alone.cost_usd), rel=1e-6
    )
    part = batch[1:3]
    assert isinstance(part, lp.Batch)
    assert (part.status.tolist(), part[1].step_time_s) == (
        ["infeasible", "optimal"],
        batch[2].step_time_s,
    )
    assert (batch[1].step_time_s, batch[1].bandwidth_GBps) == (None, [])
    assert "'total == 500 GB/s' and 'dim1 >= 600 GB/s'" in " ".join(str(batch[1]).split())
    assert batch.to_dict()["designs"][1]["bandwidth_GBps"] == [None] * 4
    with pytest.raises(lp.Infeasible, match="dim1"):
        part.design(0)
    with pytest.raises(IndexError, match="expected a row from 0 to 1"):
        part.design(2)
    with pytest.raises(IndexError, match="index: got 50, expected a row from 0 to 3"):
        batch[50]
    assert repr(pickle.loads(pickle.dumps(part))) == repr(part)
    for one in (batch, batch[0], batch[1]):
        assert one._repr_html_().startswith("<div>")


def test_a_frame_of_a_batch_has_one_set_of_columns_and_says_why() -> None:
    good, bad = (
        lp.load_plan(PLAN, {"constraints": ["total == 300 GB/s", *more]})
        for more in ([], ["dim1 >= 400 GB/s"])
    )
    open_ended = lp.load_plan(PLAN, {"constraints": []})
    frames = [
        lp.batch_optimize(plans).to_frame()
        for plans in ([good, bad], [bad, good], [bad, bad], [open_ended])
    ]
    names = [name for name in frames[0] if name.startswith("bandwidth")]
    assert names == [f"bandwidth_GBps_dim{i}" for i in range(1, 5)]
    assert [list(frame) for frame in frames] == [list(frames[0])] * 4
    assert frames[2][names].values.tolist() == [[None] * 4] * 2
    told = frames[0]["message"].tolist()
    assert told[0] == ""
    assert "'total == 300 GB/s' and 'dim1 >= 400 GB/s'" in told[1]
    assert frames[1]["message"].tolist() == told[::-1]
    assert "got no rule that bounds the bandwidth" in frames[3]["message"][0]
    row = lp.batch_optimize(bad)[0]
    assert row.message == told[1]
    assert list(row.to_frame()) == list(frames[0])


def test_rows_of_a_batch_have_the_work_of_their_designs() -> None:
    batch = lp.batch_optimize([lp.load_plan("0d_llama3_70b"), lp.load_plan(PLAN)])
    alone = batch.design(0)
    assert (batch[0].tokens_per_s, batch[0].mfu) == pytest.approx((alone.tokens_per_s, alone.mfu))
    assert (batch[1].tokens_per_s, batch[1].mfu) == (None, None)  # Of a part of a step.
    assert batch.to_frame()["mfu"].round(3).iloc[0] == round(alone.mfu, 3)


def test_rows_of_results_are_counted_and_looped_over(results) -> None:
    found = next(one for one in results if isinstance(one, lp.Found))
    assert [one["step_time_s"] for one in found] == [x["step_time_s"] for x in found.best]
    assert (len(found), found[-1], found[:1]) == (2, found.best[1], found.best[:1])
    swept = next(one for one in results if isinstance(one, lp.SweepResults))
    answer = swept.sql("SELECT row, budget FROM designs ORDER BY row LIMIT 3")
    assert [row for row, _ in answer] == [0, 1, 2]
    assert (len(answer), answer[0]) == (3, answer.rows[0])
    assert answer._repr_html_().startswith("<table")
    assert not swept.sql("SELECT row FROM designs WHERE budget < 0").rows


def test_results_and_plans_are_taken_where_paths_are(tmp_path: Path) -> None:
    plan = lp.load_plan(PLAN)
    vector = plan.evaluate(bandwidth_GBps=[300, 100, 75, 25])
    written = lp.report([plan.optimize(), vector], tmp_path / "r", formats="md")
    times = [one.evaluation.step_time_s for one in written.comparison.candidates]
    assert times == pytest.approx([plan.optimize().step_time_s, vector.step_time_s])
    with pytest.raises(TypeError, match="expected designs: a plan, a result, a path"):
        lp.report([3], tmp_path / "s")
    axes = {"axes": {"b": [100, 200]}, "set": {"constraints": ["total == {b} GB/s"]}}
    assert lp.sweep_plan({"base": plan, **axes}).n_designs == 2


def test_counts_of_nothing_are_refused_at_once() -> None:
    plan = lp.load_plan("0e_rails_2to1")
    with pytest.raises(lp.SpecError, match="n_best: got 0, expected a whole number from 1"):
        plan.search(n_best=0)
    with pytest.raises(lp.SpecError, match="seeds: got 0, expected a whole number from 1"):
        plan.check(seeds=0)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("06_catalogue", [], "a catalogue sells whole options"),
        ("0c_calibrated", [], "calibrated collectives have none yet"),
        ("03_group", ["group_objective=relative"], "every workload's own optimum"),
    ],
)
def test_an_optimum_without_shadow_prices_says_why(name, settings, reason) -> None:
    best = lp.load_plan(name, settings).optimize()
    worth = best.shadow_prices
    assert not worth
    assert reason in repr(worth)
    assert reason in str(worth)
    assert reason in best._repr_html_().replace("&#x27;", "'")
    assert best.to_dict()["shadow_prices"] is None
    assert worth.to_frame().empty


def test_what_ranks_a_sweep_and_formats_are_named(tmp_path: Path) -> None:
    with pytest.raises(lp.SpecError, match=r"by: got 'bil'.*did you mean bill"):
        lp.sweep_results(tmp_path, by="bil")
    plan = lp.load_plan("01_gpt3_4d")
    assert repr(lp.batch_optimize(plan)) == "<Batch: 1 design: 1 optimal>"
    with pytest.raises(lp.SpecError, match="got 'htm'"):
        lp.report([plan], tmp_path / "r", formats=["htm", "csv"])


def test_workers_do_not_run_the_script_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import libra_planner as lp\n"
        "print('ran')\n"
        "print(lp.sweep('13_tapers', 'run', n_workers=2).n_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["ran", "12"]), done.stderr


def test_what_functions_give_has_a_name_for_annotations() -> None:
    functions = [
        one
        for name in lp.__all__
        if callable(one := getattr(lp, name)) and not isinstance(one, type)
    ]
    methods = [one for name, one in vars(lp.Plan).items() if callable(one) and name[0] != "_"]
    given = {one.__annotations__.get("return", "") for one in (*functions, *methods)}
    named = {name for text in given for name in re.findall(r"\b[A-Z]\w*", text)}
    assert {"Optimum", "SweepResults", "StrategyFrontier", "RoutedOptimum"} <= named
    assert named - {*lp.__all__} == {"Any", "Block", "Iterator", "Path"}
    assert all(isinstance(getattr(lp, name), type) for name in named & {*lp.__all__})
