"""Full-size models: parameter counts, compute and traffic against independent formulas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from libra_planner.errors import SpecError
from libra_planner.plan.models import NpuSpec
from libra_planner.plan.workloads import PlanSettings, load_transformer, load_workload
from libra_planner.workload.operations import Phase
from libra_planner.workload.transformer import Transformer
from tests.conftest import Outcome

BUNDLED = Path(__file__).parents[2] / "workloads"
NPU = NpuSpec(peak_TFLOPps=100.0, efficiency_fraction=0.5)


def _architecture(name: str) -> Transformer:
    return load_transformer(BUNDLED / f"{name}.yaml")


@pytest.mark.parametrize(
    ("name", "published"), [("gpt3", 175e9), ("turing-nlg", 17.2e9), ("msft-1t", 1e12)]
)
def test_parameter_counts_within_one_percent_of_the_published(name: str, published: float) -> None:
    assert _architecture(name).n_parameters == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("name", ["gpt3", "turing-nlg", "msft-1t"])
def test_compute_is_narayanans_flop_count(name: str) -> None:
    """FLOPs of a step without recomputation: 72 B s L h^2 (1 + s/6h + V/12hL), (SC'21, eq. 3)."""
    a = _architecture(name)
    tp, dp, batch = 2, 4, 8
    workload = load_workload(BUNDLED / f"{name}.yaml", PlanSettings(tp, dp, batch, NPU))
    tokens, s, h = batch * a.sequence_tokens, a.sequence_tokens, a.hidden
    flops = 72 * tokens * a.n_layers * h**2
    flops *= 1 + s / (6 * h) + a.vocabulary / (12 * h * a.n_layers)
    # The layer norm's tokens * h MACs per phase are not in the paper's count.
    norm = a.n_layers * 3 * 2 * batch / dp * a.sequence_tokens * h / 50e12
    assert workload.compute_s == pytest.approx(flops / (tp * dp) / 50e12 + norm, rel=1e-12)


@pytest.mark.parametrize("name", ["gpt3", "turing-nlg", "msft-1t"])
def test_traffic_is_megatrons(name: str) -> None:
    """Per layer 2 activation all-reduces each way; gradients of all weights over DP."""
    a = _architecture(name)
    workload = load_workload(BUNDLED / f"{name}.yaml", PlanSettings(2, 4, 8, NPU))
    activation = 2 * a.sequence_tokens * a.hidden * 2
    totals = dict.fromkeys(Phase, 0.0)
    for operation in workload.operations:
        if operation.collective:
            totals[operation.phase] += operation.collective.size_bytes * operation.count
    assert totals[Phase.FORWARD] == (2 * a.n_layers + 1) * activation
    assert totals[Phase.INPUT_GRAD] == (2 * a.n_layers + 1) * activation
    weights = 12 * a.n_layers * a.hidden**2 + a.vocabulary * a.hidden
    assert totals[Phase.WEIGHT_GRAD] == weights / 2 * 2


def test_changing_degrees_keeps_the_global_batch_and_its_compute() -> None:
    """C6: the same work, split otherwise."""
    path = BUNDLED / "gpt3.yaml"
    times = {
        (tp, dp): load_workload(path, PlanSettings(tp, dp, 64, NPU)).compute_s * tp * dp
        for tp, dp in [(1, 8), (8, 1), (4, 16)]
    }
    norms = 96 * 3 * 64 * 2048 * 12288 / 25e12  # charged whole to every member of a TP group
    exact = {key: total - norms * key[0] for key, total in times.items()}
    assert len({f"{value:.9g}" for value in exact.values()}) == 1


def test_global_batch_must_split_over_the_replicas() -> None:
    with pytest.raises(SpecError, match="got 100 sequences, expected a multiple of the 64 data"):
        load_workload(BUNDLED / "gpt3.yaml", PlanSettings(1, 64, 100))


def test_full_models_need_a_global_batch() -> None:
    with pytest.raises(SpecError, match="global_batch: got nothing, expected a value for gpt3"):
        load_workload(BUNDLED / "gpt3.yaml", PlanSettings(1, 64))


def test_global_batch_overrides_libras_own_batch() -> None:
    path = BUNDLED / "gpt3-libra.yaml"
    own = load_workload(path, PlanSettings(16, 256))
    same = load_workload(path, PlanSettings(16, 256, 8192))
    half = load_workload(path, PlanSettings(16, 256, 4096))
    assert own.operations == same.operations
    assert half.compute_s == pytest.approx(own.compute_s / 2, rel=1e-4)
    assert (own.n_sequences, half.n_sequences) == (8192, 4096)


SMALL = """\
kind: transformer
source: own
architecture: {n_layers: 2, hidden: 4096, n_heads: 32, sequence_tokens: 4096}
compute: {macs_per_s: 1e14}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{macs_per_s: 1e14}", "{npu: h100-sxm}"),
        ("sequence_tokens: 4096}", "sequence_tokens: 4096, experts: 8}"),
    ],
)
def test_maps_that_are_proposed_for_a_workload_file_are_valid(
    tmp_path: Path, old: str, new: str
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_transformer(path)
    (fault,) = caught.value.faults
    key, _, value = re.search(r"'(\w+): (\{.*\})'", fault.fix).group().strip("'").partition(": ")
    text = re.sub(rf"\b{key}: (?!\{{macs)[^,}}\n]*", f"{key}: {value}", SMALL.replace(old, new))
    path.write_text(text if key in text else f"{text}{key}: {value}\n")
    assert load_transformer(path).n_layers == 2


def test_all_that_a_table_does_not_take_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    row = "{layer: a, phase: forward, compute_ms: 1}"
    path.write_text(f"kind: table\nsource: own\noperations: [{row}]\n")
    with pytest.raises(SpecError) as caught:
        load_workload(path, PlanSettings(1, 4, 8, NPU))
    assert [fault.fix for fault in caught.value.faults] == ["remove global_batch", "remove npu"]
    assert load_workload(path, PlanSettings(1, 4)).operations


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("n_layers: 32", "n_layer: 32", r"architecture\.n_layer: .* did you mean n_layers\?"),
        ("kv_heads: 8", "kv_heads: 5", "got kv_heads 5 for 32 heads, expected a divisor"),
        ("hidden: 4096", "hidden: 4k", "architecture.hidden: got '4k', expected a whole number"),
        ("  vocabulary: 128256", "  widht: 1", "architecture.widht: got the unknown key 'widht'"),
        (
            "  # experts:",
            "  experts: {n: 8, topk: 200, width: 64}  #",
            "got topk 200 of 8 experts, expected at most 8",
        ),
    ],
)
@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("parallelism=auto",),
        ("parallelism={tp: 8, dp: 8}",),
        ("parallelism={tp: 8, dp: 8, pp: 1}", "npu={name: h100-sxm, efficiency_fraction: 0.4}"),
    ],
)
def test_a_fault_of_an_own_model_is_told_whatever_the_plan_says(
    tmp_path: Path,
    run: Callable[..., Outcome],
    old: str,
    new: str,
    told: str,
    settings: tuple[str, ...],
) -> None:
    plan, own = tmp_path / "plan.yaml", tmp_path / "own.yaml"
    asked = "--model", "llama3-8b", "--npu", "h100-sxm", "--npus", "64", "--nic", "400Gbps"
    assert run("init", *asked, "--workload", own, "-o", plan).code == 0
    text = own.read_text()
    assert old in text
    own.write_text(text.replace(old, new, 1))
    given = [part for one in settings for part in ("--set", one)]
    for command in ("optimize", "search", "check", "pareto", "report"):
        found = run(command, plan, *given, *(("-o", tmp_path / "r") if command == "report" else ()))
        assert found.code == 2
        assert re.search(rf"^{own}:\d+:\d+: .*{told}", found.err, re.M), found.err
        assert "no whole transformer" not in found.err
