"""ResNet-50 and DLRM: figures of their authors, and every collective by hand (C18)."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import yaml

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.plan.models import NpuSpec
from libra_planner.plan.workloads import PlanSettings, load_transformer, load_workload
from libra_planner.reading import bundled
from libra_planner.workload.operations import CollectiveKind, Covers, Phase, Workload
from libra_planner.workload.recommendation import Dlrm

NPU = NpuSpec(peak_TFLOPps=100.0, efficiency_fraction=0.5)
MACS_PER_S = 25e12

# Widths and rows as MLPerf trains it: mlcommons, recommendation/dlrm.
BOTTOM, TOP = (13, 512, 256, 128), (479, 1024, 1024, 512, 256, 1)
N_TABLES = 26


def _workload(name: str, settings: PlanSettings) -> Workload:
    return load_workload(bundled.resolve("workloads", name, None), settings)


def test_resnet_50_is_torchvisions() -> None:
    """25,557,032 parameters and 4.09 G multiply-accumulates of an image forward."""
    workload = _workload("resnet50", PlanSettings(1, 32, 1024, NPU))
    assert workload.memory is not None
    assert workload.memory.n_parameters == 25_557_032
    forward = [one for one in workload.operations if one.phase is Phase.FORWARD]
    forward_s = sum(one.compute_s * one.count for one in forward)
    assert forward_s * MACS_PER_S / 32 == pytest.approx(4.089e9, rel=1e-3)
    assert workload.compute_s == pytest.approx(3 * forward_s, rel=1e-12)
    assert sum(one.count for one in forward) == 53 + 1


def test_resnet_50_all_reduces_all_of_its_parameters() -> None:
    workload = _workload("resnet50", PlanSettings(1, 32, 1024, NPU))
    sizes = [(one.size_bytes * count, one.group) for _, one, count in workload.collectives]
    assert sum(size for size, _ in sizes) == 25_557_032 * 2
    assert {group for _, group in sizes} == {"dp"}
    assert (workload.covers, workload.n_sequences) == (Covers.STEP, 1024)


def test_dlrm_has_the_parameters_of_its_tables() -> None:
    """ "100 GB of embedding memory": Desai and Shrivastava (NeurIPS'22), of the same model."""
    workload = _workload("dlrm-mlperf", PlanSettings(1, 8, 2048, NPU))
    assert any("take 96.1 GB in fp32" in note for note in workload.notes)


def test_dlrm_multiplies_its_matrices_and_pairs() -> None:
    matrices = sum(a * b for widths in (BOTTOM, TOP) for a, b in itertools.pairwise(widths))
    pairs = N_TABLES * (N_TABLES + 1) // 2 * 128
    dlrm = Dlrm(13, BOTTOM[1:], TOP[1:], (1,) * N_TABLES)
    assert dlrm.macs_per_sample == matrices + pairs == 2_365_184 + 44_928
    workload = _workload("dlrm-mlperf", PlanSettings(1, 8, 2048, NPU))
    lookups_s = 256 * N_TABLES * 128 * 4 / 2039e9
    expected_s = 3 * 256 * (matrices + pairs) / MACS_PER_S + 3 * lookups_s
    assert workload.compute_s == pytest.approx(expected_s, rel=1e-12)


def test_dlrm_sends_every_vector_to_the_rank_of_its_sample_and_back() -> None:
    """A rank has 26 / 8 tables and sends their 128 values for 2,048 samples, at 2 bytes."""
    workload = _workload("dlrm-mlperf", PlanSettings(1, 8, 2048, NPU))
    found = {
        phase: one
        for phase, one, _ in workload.collectives
        if one.kind is CollectiveKind.ALL_TO_ALL
    }
    assert set(found) == {Phase.FORWARD, Phase.INPUT_GRAD}
    assert {one.size_bytes for one in found.values()} == {2048 * 26 / 8 * 128 * 2}
    reduced = sum(
        one.size_bytes * count
        for phase, one, count in workload.collectives
        if phase is Phase.WEIGHT_GRAD
    )
    biases = sum(BOTTOM[1:]) + sum(TOP[1:])
    assert reduced == 2 * (2_365_184 + biases)


@pytest.mark.parametrize("name", ["resnet50", "dlrm-mlperf"])
def test_networks_without_tensor_parallelism_refuse_it(name: str) -> None:
    with pytest.raises(SpecError, match=f"got tp 4, expected 1: {name} is trained with data"):
        _workload(name, PlanSettings(4, 8, 2048, NPU))


@pytest.mark.parametrize(("name", "unit"), [("resnet50", "images"), ("dlrm-mlperf", "samples")])
def test_batches_are_in_their_own_words(name: str, unit: str) -> None:
    with pytest.raises(SpecError, match=f"got 100 {unit}, expected a multiple of the 8"):
        _workload(name, PlanSettings(1, 8, 100, NPU))
    with pytest.raises(SpecError, match=rf"{unit} per step"):
        _workload(name, PlanSettings(1, 8, None, NPU))


GROUPS = """\
workload: dlrm-mlperf
fabric: {topology: FC(8)_SW(128), tiers: [node, pod]}
parallelism: {forward: [1, 1], input_grad: [1, 1], weight_grad: [8, 128]}
global_batch: 65536
cost_model: libra-ispass24
constraints: [total == 500 GB/s]
"""


def test_dlrm_refuses_groups_in_which_its_all_to_alls_would_vanish(run, plan) -> None:
    result = run("optimize", plan(text=GROUPS))
    assert result.code == 2
    assert "got group sizes per phase, expected degrees: dlrm-mlperf exchanges" in result.err
    images = GROUPS.replace("dlrm-mlperf", "resnet50")
    assert run("optimize", plan(text=images)).code == 0
    degrees = GROUPS.replace(
        "{forward: [1, 1], input_grad: [1, 1], weight_grad: [8, 128]}", "{dp: 1024}"
    )
    assert run("optimize", plan(text=degrees)).code == 0


def test_groups_of_channels_divide_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    layer = "{name: a, kernel: 3, inputs: 8, outputs: 6, size: 4, groups: 4}"
    compute = "compute: {macs_per_s: 1.0e+12}"
    path.write_text(f"kind: cnn\nsource: us\nlayers:\n  - {layer}\n{compute}\n")
    with pytest.raises(SpecError, match="got 4 groups of 8 inputs and 6 outputs, expected a div"):
        load_workload(path, PlanSettings(1, 8, 16))
    path.write_text(path.read_text().replace("outputs: 6", "outputs: 8"))
    workload = load_workload(path, PlanSettings(1, 8, 16))
    assert workload.memory is not None
    assert workload.memory.n_parameters == 9 * 8 * 8 // 4 + 2 * 8


def test_a_transformer_needs_no_rate_where_the_plan_has_an_npu(tmp_path: Path) -> None:
    """The rate of the plan, or the kernels of its NPU; without both the fix runs as it stands."""
    shape = "{n_layers: 32, hidden: 4096, n_heads: 32, sequence_tokens: 4096, vocabulary: 128256}"
    path = tmp_path / "own.yaml"
    path.write_text(f"kind: transformer\nsource: our own\narchitecture: {shape}\n")
    assert load_workload(path, PlanSettings(4, 8, 16, NPU)).compute_s > 0
    whole = {"workload": str(path), "parallelism": {"tp": 4, "cp": 2, "pp": 4, "dp": 64}}
    assert lp.load_plan("0e_rails_2to1", whole).optimize().step_time_s > 0
    part = {"workload": str(path), "parallelism": {"tp": 16, "dp": 256}, "global_batch": 1024}
    with pytest.raises(SpecError, match=r"npu: got nothing, .*; add e.g. 'npu: \{") as told:
        lp.load_plan("01_gpt3_4d", part)
    fix = yaml.safe_load(re.findall("add e.g. '(.*)'", str(told.value))[0])
    assert lp.load_plan("01_gpt3_4d", part | fix).optimize().step_time_s > 0


def test_the_files_of_the_documentation_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in blocks] == ["own-moe.yaml", "own-cnn.yaml", "own-dlrm.yaml"]
    paths = [tmp_path / name for name, _ in blocks]
    for path, (_, text) in zip(paths, blocks, strict=True):
        path.write_text(text, encoding="utf-8")
    assert load_transformer(paths[0]).n_expert_layers == 31
    for path in paths[1:]:
        assert load_workload(path, PlanSettings(1, 8)).covers is Covers.STEP


def test_the_documentation_lists_every_bundled_model() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    families = ("gpt", "llama2", "llama3", "qwen3", "internlm", "mixtral", "vit")
    for name in bundled.names("workloads"):
        family = name.split("-")[0]
        shown = f"`{name}`" in page or name.endswith("-libra")
        assert shown or (family in families and f"`{family}-" in page), name
