"""calibrate --runs: constants of steps, fitted to training runs; train and plans that use them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.fits import Array, Values, told_constants
from libra_planner.inputs.training.planned import planned_run
from libra_planner.inputs.training.rows import TrainingRun, parse_run, read_training_file
from libra_planner.plan.problem import load_plan
from libra_planner.plan.systems import System, load_system
from libra_planner.step.collectives.measured import PUBLISHED, PUBLISHED_BANDS
from libra_planner.step.model_training import ModelTraining
from libra_planner.studies.step_calibration import read_measured_steps, runs_npu
from libra_planner.workload.clock import STEP_CONSTANTS, StepConstants, slowdown
from libra_planner.workload.kernels import KernelConstants
from tests.unit.test_whole_steps import PLAN

PUBLISHED_RUNS = Path(__file__).parents[1] / "oracles" / "measured_training.csv"
OURS = replace(STEP_CONSTANTS, free_flops_per_joule=0.35e12, stolen_fraction=0.35, imbalance=1.5)
KERNELS = KernelConstants(gemm_fraction=0.55)
HELD = System("ours", "h100-sxm", "2026-11-23", PUBLISHED, PUBLISHED_BANDS)
Rows = list[Mapping[str, str]]


def predicted_s(run: TrainingRun, system: System) -> float:
    """Of one step, by the way that train takes."""
    return planned_run(run, system=system).step_time_s


def made_runs(system: System, n: int) -> Rows:
    """Every fourth published configuration of H100, timed by a system's law and noise of 1 %."""
    noise, rows = np.random.default_rng(5), Rows()
    with PUBLISHED_RUNS.open() as file:
        configurations = [row for row in csv.DictReader(file) if row["gpu_type"] == "H100"]
    for row in configurations[:: max(1, len(configurations) // n)]:
        try:
            time_s = predicted_s(parse_run(row), system) * np.exp(noise.normal(0, 0.01))
        except SpecError:
            continue
        rows.append({**row, "seconds_per_iteration": repr(float(time_s))})
    return rows


def write_runs(path: Path, rows: Rows) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Runs of a cluster with OURS, and where its system file goes."""
    folder = tmp_path_factory.mktemp("runs")
    rows = made_runs(replace(HELD, steps=OURS), 24)
    return write_runs(folder / "runs.csv", rows), folder / "ours.yaml"


def test_constants_of_made_runs_are_found(fitted: tuple[Path, Path], run) -> None:
    path, out = fitted
    result = run("calibrate", "--runs", path, "-o", out, "--as-of", "2026-11-23", "--json")
    assert result.code == 0, result.err
    found = result.payload["steps"]
    told = {name: one for name, one in found["constants"].items() if one["fitted"]}
    assert {"stolen_fraction", "imbalance"} <= told.keys()
    for name in ("stolen_fraction", "imbalance"):
        assert told[name]["value"] == pytest.approx(getattr(OURS, name), rel=0.1), name
    ours = StepConstants(**{name: one["value"] for name, one in found["constants"].items()})
    assert slowdown(989.4e12, 700, ours) == pytest.approx(slowdown(989.4e12, 700, OURS), rel=0.02)
    total = found["errors"][0]
    assert total["after"] < total["held_out"] < 0.04 < total["before"]
    assert {"dense bf16", "dense fp8"} <= found["bands"].keys()
    assert all(band == 0.09 for band in found["bands"].values())
    assert result.payload["constants"] is result.payload["kernels"] is None
    system = load_system(str(out))
    assert (system.npu, system.kernels, system.constants) == ("h100-sxm", None, PUBLISHED)
    for name, one in found["constants"].items():
        assert getattr(system.steps, name) == one["value"]
        assert one["fitted"] or one["value"] == getattr(STEP_CONSTANTS, name)
    assert system.step_bands == found["bands"]


def test_train_takes_the_constants_and_bands_of_a_file(
    fitted: tuple[Path, Path], tmp_path: Path, run
) -> None:
    path, out = fitted
    if not out.exists():
        run("calibrate", "--runs", path, "-o", out, "--as-of", "2026-11-23")
    asked = ("train", "--model", "llama3-70b", "--npu", "H100", "--gpus", "64", "--tp", "4",
             "--pp", "4", "--global-batch", "128")  # fmt: skip
    ours, usual = run(*asked, "--system", out, "--json").payload, run(*asked, "--json").payload
    assert (ours["system"], usual["system"]) == ("ours (2026-11-23)", None)
    assert ours["step_time_s"] > 1.03 * usual["step_time_s"]
    assert ours["step_time_high_s"] / ours["step_time_s"] == pytest.approx(1 / (1 - 0.09))
    assert usual["step_time_high_s"] / usual["step_time_s"] == pytest.approx(1 / (1 - 0.19))
    assert ours["band"] == "H100 dense bf16 of ours (2026-11-23)"
    assert "Constants of ours (2026-11-23): steps" in run(*asked, "--system", out).out
    table = list(csv.DictReader(run("train", "--csv", path, "--system", out).out.splitlines()))
    errors = [
        float(row["predicted_step_time_s"]) / float(row["seconds_per_iteration"]) - 1
        for row in table
    ]
    assert np.mean(np.abs(errors)) < 0.03
    other = run(*asked[:4], "A100-80GB", *asked[5:], "--system", out)
    assert other.code == 2
    assert "--npu: got a100-sxm-80gb, expected h100-sxm, whose constants ours" in other.err
    mixed = tmp_path / "mixed.csv"
    mixed.write_text(path.read_text().replace("H100", "A100", 1))
    [first, *_] = run("train", "--csv", mixed, "--system", out, "--json").payload["cases"]
    assert "expected h100-sxm" in first["message"]


def test_runs_are_predicted_with_kernels_and_collectives_of_the_system(tmp_path: Path) -> None:
    """What stays of the errors under the own kernels is the noise; under published ones, more."""
    system = replace(HELD, kernels=KERNELS, constants=replace(PUBLISHED, nic_fraction=0.7))
    path = str(write_runs(tmp_path / "runs.csv", made_runs(system, 12)))
    npu, file = runs_npu(path, None)
    own, notes = read_measured_steps(path, file, npu, system)
    usual, _ = read_measured_steps(path, file, npu, None)
    assert not notes
    assert max(abs(one.error()) for one in own) < 0.08
    assert np.mean([abs(one.error()) for one in usual]) > 0.08


def test_both_are_fitted_in_one_go(tmp_path: Path, run) -> None:
    kernels = PUBLISHED_RUNS.with_name("measured_kernels.csv")
    path = write_runs(tmp_path / "runs.csv", made_runs(HELD, 12))
    out = tmp_path / "s.yaml"
    result = run("calibrate", "--kernels", kernels, "--npu", "h100-sxm", "--runs", path, "-o", out)
    assert result.code == 0, result.err
    assert "Kernels: 145" in result.out
    assert "Steps: " in result.out
    assert "steps are predicted with the constants above, before and after" in result.out
    system = load_system(str(out))
    assert system.kernels is not None
    assert system.steps is not None
    assert "steps:" in out.read_text()


def test_a_constant_of_nearly_nothing_is_no_better_known_than_measurements_tell() -> None:
    """Standard error 0.02 / sqrt(100) of the time, over slope times 0.1: 2 %, and 200 %."""
    noise = np.random.default_rng(2).normal(0, 0.02, 200)

    def unsure(slope: float) -> Values:
        def misses(values: Values) -> Array:
            of_x, of_y = slope * values["x"], np.log(values["y"])
            return noise + np.repeat([of_x, of_y], 100)

        return told_constants(misses, {"x": 0.1, "y": 1.0}, {"x": (0, 0.5), "y": (0.5, 2)}).unsure

    assert unsure(1.0)["x"] == pytest.approx(0.02, rel=0.3)
    assert unsure(0.01).keys() == {"y"}


HEADER = "model,gpu_type,gpus,tp,pp,global_batch,seq"
ROW = "llama3-8b,H100,8,1,1,128,8192"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (f"{HEADER}\n{ROW}\n", (), "got no column seconds_per_iteration or tokens_per_s_per_gpu"),
        (f"{HEADER},seconds_per_iteration\n{ROW}\n", (), "got 7 cells, expected 8"),
        (f"{HEADER},seconds_per_iteration\n{ROW},9\n", (), "got 1 measurements, expected 6"),
        (f"{HEADER},seconds_per_iteration\n{ROW},9\n", ("--npu", "b200-sxm"), "expected runs of"),
        (
            f"{HEADER},seconds_per_iteration\n{ROW},9\n{ROW.replace('H100', 'B200')},9\n",
            (),
            "got h100-sxm, b200-sxm, expected runs of one NPU; write e.g. --npu",
        ),
        (f"{HEADER},seconds_per_iteration\n" + f"{ROW},slow\n" * 6, (), "got no run"),
        (
            f"{HEADER},seconds_per_iteration\n{ROW},nan\n{ROW},0\n",
            (),
            "got no row of h100-sxm whose step and time are known, expected six or more; "
            "line 2: got no measured time",
        ),
        (
            f"{HEADER},seconds_per_iteration\n{ROW.replace('llama3-8b', 'mine')},9\n",
            (),
            "line 2: model: got mine without layers, hidden, heads",
        ),
    ],
)
def test_what_is_no_measured_run_is_refused_and_nothing_is_written(
    text: str, options: tuple[str, ...], words: str, tmp_path: Path, run
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    result = run("calibrate", "--runs", path, *options, "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert words in result.err
    assert not (tmp_path / "s.yaml").exists()


def test_a_system_is_not_written_over_its_measurements(tmp_path: Path, run) -> None:
    path, link = tmp_path / "runs.csv", tmp_path / "s.yaml"
    path.write_text(f"{HEADER},seconds_per_iteration\n{ROW},9\n")
    link.hardlink_to(path)
    for output in (path, link):
        result = run("calibrate", "--runs", path, "-o", output)
        assert result.code == 2
        assert f"--output: got {output}, which holds measurements" in result.err
    assert path.read_text().endswith(",9\n")


def test_rows_that_do_not_count_are_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"{ROW},9", f"{ROW},slow", f"{ROW},", f"{ROW.replace('H100', 'B200')},9"]
    path.write_text("\n".join((f"{HEADER},seconds_per_iteration", *rows)) + "\n")
    file = read_training_file(path)
    kept, notes = read_measured_steps(str(path), file, "h100-sxm", None)
    assert len(kept) == 1
    assert notes[0] == f"left out: 1 rows of other NPUs in {path}"
    assert notes[1].startswith("left out: 2 rows whose step or time is not known")
    assert "such as line 3" in notes[1]


SYSTEM = """\
kind: system
name: ours
npu: h100-sxm
source: our runs
as_of: 2026-11-23
kernels: {gemm_fraction: 0.55}
steps: {stolen_fraction: 0.3}
error: {steps: {before: 0.2, after: 0.05, n: 100}, step_bands: {dense bf16: 0.1}}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("stolen_fraction", "stolen_share", "s.yaml:7:9: steps.stolen_share: got 'stolen_share'"),
        ("0.3}", "0.7}", "got 0.7, expected 0 to 0.5, which is physical"),
        ("error:", "steps_published: {stolen_fraction: 0.1}\nerror:", "got stolen_fraction twice"),
        ("dense bf16: 0.1", "dense bf16: 1", "error.step_bands"),
    ],
)
def test_wrong_constants_of_steps_are_refused(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SYSTEM.replace(old, new))
    with pytest.raises(SpecError, match=r".*") as caught:
        load_system(str(path))
    assert words in str(caught.value)


def _trained(tmp_path: Path, text: str, *settings: str) -> ModelTraining:
    (tmp_path / "plan.yaml").write_text(text)
    (training,) = load_plan(tmp_path / "plan.yaml", settings).step.trainings
    assert isinstance(training, ModelTraining)
    return training


def test_a_plan_of_a_whole_model_takes_kernels_and_steps(tmp_path: Path, run) -> None:
    (tmp_path / "s.yaml").write_text(SYSTEM)
    text = f"{PLAN}fidelity: calibrated\nsystem: ./s.yaml\n"
    own = _trained(tmp_path, text).trained
    usual = _trained(tmp_path, text, "system=h100-sxm").trained
    assert own.constants == replace(STEP_CONSTANTS, stolen_fraction=0.3)
    assert own.kernels.constants.gemm_fraction == 0.55
    assert usual.constants == STEP_CONSTANTS
    assert usual.kernels.constants.gemm_fraction != 0.55
    arguments = ("evaluate", tmp_path / "plan.yaml", "--bandwidth", "450,50,25")
    ours = run(*arguments)
    assert "kernels and steps with the constants of ours (2026-11-23)" in " ".join(ours.out.split())
    slower, faster = (
        run(*arguments, "--json", "--set", f"system={name}").payload["step_time_s"]
        for name in ("./s.yaml", "h100-sxm")
    )
    assert slower > 1.05 * faster
    high_s = run(*arguments, "--json").payload["step_time_high_s"]
    assert high_s == pytest.approx(slower / (1 - 0.1))
    assert "as runs of H100 dense bf16 of ours (2026-11-23) are off" in ours.out


def test_a_plan_on_another_npu_says_that_its_kernels_stay(tmp_path: Path, run) -> None:
    (tmp_path / "s.yaml").write_text(SYSTEM)
    text = f"{PLAN}fidelity: calibrated\nsystem: ./s.yaml\n".replace("npu: h100", "npu: h200")
    other = _trained(tmp_path, text).trained
    assert other.constants == STEP_CONSTANTS
    assert other.kernels.constants.gemm_fraction != 0.55
    said = run("evaluate", tmp_path / "plan.yaml", "--bandwidth", "450,50,25").out
    words = "kernels and steps of ours (2026-11-23) are of h100-sxm: those of h200-sxm stay"
    assert words in " ".join(said.split())
