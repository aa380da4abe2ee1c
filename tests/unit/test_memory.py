"""What weights, gradients and optimizer states need on an NPU (C19), in every result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import libra_planner as lp
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import manifest_of, run_sweep
from libra_planner.sweeps.spec import load_sweep
from libra_planner.sweeps.store import RunDirectory
from libra_planner.tui.screens.design import headline
from libra_planner.views.renderers.text import markdown
from libra_planner.views.report.compose import report
from libra_planner.workload.operations import ModelStates, Workload
from tests.comparisons import compared_by

GPT3 = """\
workload: gpt3
fabric: {topology: FC(8)_SW(128), tiers: [node, pod]}
parallelism: {tp: 8, dp: 128}
global_batch: 1024
npu: {name: a100-sxm-80gb, efficiency_fraction: 0.5}
cost_model: libra-ispass24
constraints: [total == 500 GB/s]
"""
RATE = "npu: {name: a100-sxm-80gb, efficiency_fraction: 0.5}"

# GPT-3 by hand, Narayanan et al. (SC'21), equation 2: 96 layers of 12 h^2 + 13 h, h = 12,288, and
# an embedding of (50,257 + 2,048) h; 1/8 of it on each NPU.
N_PARAMETERS = (96 * (12 * 12288**2 + 13 * 12288) + (50257 + 2048) * 12288) / 8


def test_gpt3_at_tp_8_by_hand(run, plan) -> None:
    memory = run("evaluate", plan(text=GPT3), "--bandwidth", "450,50", "--json").payload["memory"]
    assert memory["weights_bytes"] == 2 * N_PARAMETERS == pytest.approx(43.651e9, rel=1e-5)
    assert memory["gradients_bytes"] == 4 * N_PARAMETERS == pytest.approx(87.302e9, rel=1e-5)
    assert memory["optimizer_bytes"] == 12 * N_PARAMETERS == pytest.approx(261.906e9, rel=1e-5)
    assert memory["total_bytes"] == 18 * N_PARAMETERS
    assert memory["sharded_bytes"] == pytest.approx(18 * N_PARAMETERS / 128, rel=1e-12)
    assert memory["npu_memory_bytes"] == pytest.approx(80 * 2**30, rel=1e-4)
    assert (memory["fits"], memory["fits_sharded"], memory["zero_stage"]) == (False, True, 2)


@pytest.mark.parametrize("tp", [8, 16, 32, 64])
def test_the_stages_that_the_codesign_example_names(tp) -> None:
    states = ModelStates(8 * N_PARAMETERS / tp, 2, 1024 // tp, 85.5e9)
    assert states.zero_stage == {8: 2, 16: 1, 32: 1, 64: 0}[tp]


def test_weights_in_fp32_are_their_own_copy() -> None:
    states = ModelStates(1.0, weight_bytes=4, dp=4)
    assert (states.weights_bytes, states.gradients_bytes, states.optimizer_bytes) == (4, 4, 8)
    assert [states.zero_bytes(stage) for stage in range(4)] == [16, 8 + 2, 4 + 3, 4]
    assert states.fits is states.zero_stage is None


NEEDS_ZERO = (
    "WARNING: the model needs ZeRO: 392.860 GB exceed the 85.900 GB of the NPU; with ZeRO 2 over DP "
    "128 it needs 46.379 GB. The step time is without ZeRO\n"
)
VERDICTS = {
    RATE: NEEDS_ZERO,
    "npu: {memory: 3 GB}": "WARNING: the model does not fit: 3.069 GB exceed the 3.000 GB of the "
    "NPU even if all is sharded over DP 128 (ZeRO 3); use more NPUs",
    "npu: {memory: 400 GB}": "The model fits the 400.000 GB of the NPU without ZeRO; activations "
    "have 7.140 GB\n",
    "": "the NPU's memory is not known; name an NPU of the catalogue or write npu.memory",
    "fixed_cost: {npu: a100-sxm-80gb}": NEEDS_ZERO,
}


@pytest.mark.parametrize("npu", VERDICTS)
def test_evaluate_says_whether_the_model_fits(npu, run, plan) -> None:
    printed = run("evaluate", plan((RATE, npu), text=GPT3), "--bandwidth", "450,50").out
    assert "= 392.860 GB; 3.069 GB if all is sharded over DP 128; activations are not" in printed
    assert VERDICTS[npu] in printed


@pytest.mark.parametrize("command", [["optimize"], ["check", "--seed", "0"], ["pareto"]])
def test_other_commands_say_the_same(command, run, plan) -> None:
    path = plan((RATE, "npu: {memory: 80 GiB}"), text=GPT3)
    assert NEEDS_ZERO.split(":")[1] in run(*command, path).out
    memory = run(*command, path, "--json").payload["memory"]
    assert (memory["total_bytes"], memory["npu_memory_bytes"]) == (18 * N_PARAMETERS, 80 * 2**30)


def test_jobs_on_one_fabric_have_their_own(run, plan) -> None:
    small = [("SW(128)", "SW(4)"), ("dp: 128", "dp: 4"), ("global_batch: 1024", "global_batch: 4")]
    paths = plan(*small, text=GPT3, name="a.yaml"), plan(*small, text=GPT3, name="b.yaml")
    arguments = ("check", *paths, "--policy", "spray", "--bandwidth", "450,50")
    jobs = run(*arguments, "--json").payload["jobs"]
    assert [job["memory"]["total_bytes"] for job in jobs] == [18 * N_PARAMETERS] * 2
    assert [job["memory"]["zero_stage"] for job in jobs] == [None, None]
    assert "b.yaml: WARNING: the model does not fit: 98.215 GB exceed" in run(*arguments).out


def test_the_cockpit_and_reports_warn(plan) -> None:
    path = plan(text=GPT3)
    problem = lp.load_plan(path)
    table = headline(problem, lp.evaluate(problem, [450e9, 50e9]))
    cells = [str(cell) for column in table.columns for cell in column.cells]
    assert "392.860 GB of 85.900 GB per NPU: needs ZeRO 2" in cells
    text = markdown(report(compared_by(f"{path}@450,50"), ()))
    assert "Design A: the model needs ZeRO: 392.860 GB exceed the 85.900 GB" in text
    assert "| Memory of the NPU, GB | 85.9 |" in text


@pytest.mark.parametrize("workload", ["gpt3-libra", "resnet50-libra"])
def test_part_of_a_model_has_no_memory(workload, run, plan) -> None:
    changes = [
        ("workload: gpt3\n", f"workload: {workload}\n"),
        (RATE, ""),
        ("global_batch: 1024", ""),
    ]
    path = plan(*changes, text=GPT3)
    result = run("evaluate", path, "--bandwidth", "450,50", "--json").payload
    assert result["memory"] is None
    assert "Memory" not in run("evaluate", path, "--bandwidth", "450,50").out
    unused = run("evaluate", path, "--bandwidth", "450,50", "--set", "npu.memory=80 GB").out
    assert f"npu.memory is not used: {workload} does not say what its model needs" in unused


def test_workloads_of_a_group_have_their_own(run, plan) -> None:
    entries = "workloads:\n" + "".join(
        f"  - {{workload: gpt3, name: tp{tp}, parallelism: {{tp: {tp}, dp: {1024 // tp}}}, "
        f"global_batch: 1024, npu: {{memory: 80 GB}}}}\n"
        for tp in (8, 64)
    )
    rest = GPT3[GPT3.index("fabric") :].replace("parallelism: {tp: 8, dp: 128}\n", "")
    path = plan(("global_batch: 1024\n", ""), (RATE, ""), text=entries + rest)
    result = run("evaluate", path, "--bandwidth", "450,50", "--json").payload
    assert result["memory"] is None
    assert [one["memory"]["fits"] for one in result["workloads"]] == [False, True]
    printed = run("evaluate", path, "--bandwidth", "450,50").out
    assert "WARNING: the model of tp8 needs ZeRO" in printed
    assert "The model of tp64 fits the 80.000 GB" in printed


@pytest.mark.parametrize(
    ("memory", "fault"),
    [
        ("80", "npu.memory: got 80 without a unit, expected an amount of memory with its unit"),
        ("80 GB/s", "npu.memory: got a bandwidth, '80 GB/s', expected an amount of memory"),
        ("80 Gb", "npu.memory: got the unit 'Gb' in '80 Gb', expected a unit of memory"),
        ("-1 GB", "npu.memory: got '-1 GB', expected an amount of memory"),
        ("0 GB", "npu.memory: got '0 GB', expected 1 kB to 1000 TB"),
    ],
)
def test_faults_of_an_amount_of_memory(memory, fault, run, plan) -> None:
    path = plan((RATE, f"npu: {{memory: {memory}}}"), text=GPT3)
    outcome = run("evaluate", path, "--bandwidth", "450,50")
    assert (outcome.code, fault in outcome.err) == (2, True)


def _sweep(tmp_path: Path, columns: list[str] | None = None) -> Path:
    base = yaml.safe_load(GPT3) | {"parallelism": {"tp": "{tp}", "dp": "{1024 / tp}"}}
    spec = {"base": base, "axes": {"tp": [8, 64]}} | ({"columns": columns} if columns else {})
    path = tmp_path / "sweep.yaml"
    path.write_text(json.dumps(spec))
    return path


def test_rows_of_a_sweep_can_be_filtered_by_memory(tmp_path) -> None:
    run_sweep(load_sweep(_sweep(tmp_path)), tmp_path / "run")
    results = Results.at(tmp_path / "run")
    found = results.sql("SELECT memory_bytes, sharded_memory_bytes FROM designs ORDER BY row").rows
    total = 18 * N_PARAMETERS * 8
    assert found == ((total / 8, total / 1024), (total / 64, total / 1024))
    assert results.columns[-2:] == ["memory_bytes", "sharded_memory_bytes"]
    assert results.top(1).columns[-2:] == ("memory_bytes", "sharded_memory_bytes")


def test_directories_that_were_begun_without_memory_are_finished(tmp_path) -> None:
    known = ["objective_value", "lower_bound", "optimality_gap", "step_time_s"]
    known += ["seconds_per_sequence", "cost_usd", "bandwidth", "unique", "resolved", "message"]
    earlier = load_sweep(_sweep(tmp_path, known))
    directory = RunDirectory(tmp_path / "run")
    directory.check(manifest_of(earlier))
    directory.claim(manifest_of(earlier))
    assert run_sweep(load_sweep(_sweep(tmp_path)), directory.path).n_solved == 2
    results = Results.at(directory.path)
    assert "memory_bytes" not in results.columns
    assert len(results.top(1).rows) == 1


def test_a_workload_without_a_vocabulary_is_part_of_a_model(tmp_path, plan) -> None:
    text = (Path(lp.__file__).parents[1] / "workloads" / "gpt3.yaml").read_text()
    (tmp_path / "own.yaml").write_text(text.replace(", vocabulary: 50257", ""))
    problem = lp.load_plan(plan(("workload: gpt3", "workload: ./own.yaml"), text=GPT3))
    assert problem.step.memory is None
    assert Workload("bare", ()).memory is None
