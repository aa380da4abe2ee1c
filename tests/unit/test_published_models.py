"""Bundled models against the figures that their authors publish (C18, C21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from libra_planner.errors import SpecError
from libra_planner.plan.models import NpuSpec
from libra_planner.plan.workloads import PlanSettings, load_transformer, load_workload
from libra_planner.reading import bundled
from libra_planner.workload.operations import Phase
from libra_planner.workload.transformer import Transformer

NPU = NpuSpec(peak_TFLOPps=100.0, efficiency_fraction=0.5)

# Parameters: the papers and model cards, or files of weights that they name.
PUBLISHED = {
    "gpt3": 175e9,  # arXiv 2005.14165, Table 2.1
    "turing-nlg": 17.2e9,  # arXiv 1910.02054, section 10.5
    "gpt-18.4b": 18.4e9,  # this and the next: arXiv 2104.04473, Table 1
    "gpt-39.1b": 39.1e9,
    "gpt-76.1b": 76.1e9,
    "gpt-145.6b": 145.6e9,
    "gpt-310.1b": 310.1e9,
    "mt-nlg-530b": 529.6e9,
    "msft-1t": 1008.0e9,
    "gpt-22b": 22e9,  # arXiv 2205.05198, Table 3
    "llama2-7b": 6.74e9,  # AMD-AGI/Primus, primus_pipeline.md
    "llama3-8b": 8.03e9,  # this and the next: Megatron-Bridge's provider defaults
    "llama3-70b": 70.6e9,
    "llama3-405b": 405e9,  # arXiv 2407.21783
    "palm-540b": 540.35e9,  # arXiv 2204.02311, Table 1
    "nemotron4-15b": 3.2e9 + 12.5e9,  # arXiv 2402.16819, section 2
    "nemotron4-340b": 340e9,  # its model card
    "grok1-314b": 314e9,  # github.com/xai-org/grok-1
    "mixtral-8x7b": 46.7e9,  # mistral.ai/news/mixtral-of-experts
    "mixtral-8x22b": 141e9,  # mistral.ai/news/mixtral-8x22b
    "deepseek-v3": 671e9,  # arXiv 2412.19437
    "qwen3-30b-a3b": 30.5e9,  # this and the next: their model cards
    "qwen3-235b-a22b": 235e9,
    "qwen3-14b": 14.8e9,
    "qwen3-32b": 32.8e9,
    "llama4-maverick": 400e9,  # huggingface.co/blog/llama4-release
    "gpt-oss-120b": 116.8e9,  # its model card
    "internlm-20b": 20e9,  # huggingface.co/internlm/internlm-20b
    "vit-b16": 86_567_656,  # this and the next: torchvision
    "vit-l16": 304.3e6,
    "vit-h14": 632e6,  # arXiv 2010.11929, Table 1
}

# Parameters of one token, where they are published; with or without the token embedding.
ACTIVE = {
    "mixtral-8x7b": (12.9e9, True),
    "mixtral-8x22b": (39e9, True),
    "deepseek-v3": (36.6e9, False),  # README_WEIGHTS.md: with the 0.9B of the output head
    "qwen3-235b-a22b": (22e9, True),
    "gpt-oss-120b": (5.13e9, False),  # its model card
    "llama4-maverick": (17e9, True),
}


def _model(name: str) -> Transformer:
    return load_transformer(bundled.resolve("workloads", name, None))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones_within_one_percent(name: str) -> None:
    assert _model(name).n_parameters == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize(
    ("name", "digits"), [("gpt-1.7b", 1.7), ("gpt-3.6b", 3.6), ("gpt-7.5b", 7.5)]
)
def test_small_models_of_a_table_round_to_it(name: str, digits: float) -> None:
    """arXiv 2104.04473, Table 1, prints one digit behind the point."""
    assert abs(_model(name).n_parameters / 1e9 - digits) <= 0.05


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_are_the_published_ones(name: str) -> None:
    published, has_embedding = ACTIVE[name]
    model = _model(name)
    own = model.n_active_parameters - (0 if has_embedding else model.n_embedding_parameters)
    assert own == pytest.approx(published, rel=0.012)


def test_files_of_weights_agree_to_the_last_parameter() -> None:
    assert _model("llama3-8b").n_parameters == 8_030_261_248
    assert _model("llama2-7b").n_parameters == 6_738_415_616
    assert _model("vit-b16").n_parameters == 86_567_656


def test_every_bundled_model_is_a_whole_step() -> None:
    for name in bundled.names("workloads"):
        is_transformer = name not in ("resnet50", "resnet50-libra", "dlrm-mlperf")
        assert not is_transformer or _model(name).has_logits != name.endswith("-libra")


DENSE = ("llama3-70b", "llama2-7b", "palm-540b", "nemotron4-340b", "qwen3-32b", "internlm-7b")


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_step_has_the_flops_of_its_tokens(name: str) -> None:
    """6 N + 12 L s a d, and the norms' share, over the NPUs."""
    model, tp, dp, batch = _model(name), 2, 4, 8
    path = bundled.resolve("workloads", name, None)
    workload = load_workload(path, PlanSettings(tp, dp, batch, NPU))
    tokens = batch * model.sequence_tokens
    flops = tokens * model.flops_per_token("full") / (tp * dp)
    norms = model.n_layers * 3 * 2 * tokens / dp * model.hidden
    assert workload.compute_s == pytest.approx((flops + norms) / 50e12, rel=1e-12)


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_step_exchanges_its_matrices_and_embeddings(name: str) -> None:
    model, tp = _model(name), 2
    path = bundled.resolve("workloads", name, None)
    workload = load_workload(path, PlanSettings(tp, 4, 8, NPU))
    sizes = dict.fromkeys(Phase, 0.0)
    for phase, collective, count in workload.collectives:
        sizes[phase] += collective.size_bytes * count
    n_lookups = 0 if model.is_tied else model.vocabulary * model.hidden
    exchanged = model.n_multiplying_parameters + n_lookups
    assert sizes[Phase.WEIGHT_GRAD] == pytest.approx(2 * exchanged / tp, rel=1e-12)
    activation = 2 * model.sequence_tokens * model.hidden * 2
    per_layer = 1 if model.is_parallel else 2
    assert sizes[Phase.FORWARD] == (per_layer * model.n_layers + 1) * activation
    assert sizes[Phase.INPUT_GRAD] == sizes[Phase.FORWARD]


def test_an_image_model_multiplies_its_classes_once_per_image() -> None:
    model = _model("vit-b16")
    path = bundled.resolve("workloads", "vit-b16", None)
    workload = load_workload(path, PlanSettings(1, 4, 8, NPU))
    norms = model.n_layers * 3 * 2 * 2 * 197 * model.hidden
    flops = 2 * 197 * model.flops_per_token("full")
    assert workload.compute_s == pytest.approx((flops + norms) / 50e12, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("mixtral-8x7b", "experts"),
        ("deepseek-v3", "experts and latent attention"),
        ("gpt-oss-120b", "experts and attention windows"),
    ],
)
def test_degrees_of_tp_and_dp_do_not_say_how_experts_are_run(name: str, part: str) -> None:
    path = bundled.resolve("workloads", name, None)
    with pytest.raises(SpecError, match=f"got {name} with {part}, expected a dense transformer"):
        load_workload(path, PlanSettings(8, 8, 64, NPU))


def test_heads_of_keys_that_tp_does_not_divide_are_said() -> None:
    path = bundled.resolve("workloads", "llama3-70b", None)
    [note] = load_workload(path, PlanSettings(16, 8, 64, NPU)).notes
    assert "tp 16 does not divide the 8 key/value heads" in note
    assert not load_workload(path, PlanSettings(8, 8, 64, NPU)).notes


SHAPE = "n_layers: 4, hidden: 60, n_heads: 4, sequence_tokens: 8, vocabulary: 10"


def _file(folder: Path, keys: str) -> Path:
    path = folder / "own.yaml"
    compute = "compute: {macs_per_s: 1.0e+12}"
    architecture = f"architecture: {{{SHAPE}, {keys}}}"
    path.write_text(f"kind: transformer\nsource: us\n{architecture}\n{compute}\n")
    return path


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("ffn_multiple: 3.33", "which is 199.8, expected a whole width \\(write ffn: 200\\)"),
        ("ffn: 200, ffn_multiple: 3", "got ffn and ffn_multiple, expected one of them"),
        ("kv_heads: 3", "got kv_heads 3 for 4 heads, expected a divisor of n_heads"),
        ("experts: {n: 4, topk: 5, width: 8}", "got topk 5 of 4 experts, expected at most 4"),
        ("n_dense_layers: 1", "expected them only with experts"),
        ("experts: {n: 4, topk: 2, width: 8}, n_dense_layers: 4", "expected fewer"),
        ("window_layers: 2", "got window_layers without window, expected both"),
        ("window: 4, window_layers: 5", "got 5 window_layers of 4 layers, expected at most 4"),
        ("patch_values: 12, classes: 3", "got vocabulary and patch_values, expected one"),
        ("classes: 3", "got one of patch_values and classes, expected both or none"),
        (
            "kv_heads: 2, mla: {kv_rank: 8, nope_dim: 4, rope_dim: 2, v_dim: 4}",
            "got mla and kv_heads, expected mla alone",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_their_place(
    tmp_path: Path, keys: str, message: str
) -> None:
    path = _file(tmp_path, keys)
    with pytest.raises(SpecError, match=message) as caught:
        load_transformer(path)
    assert f"{path}:3:" in str(caught.value)


@pytest.mark.parametrize(("multiple", "width"), [("3.5", 210), ("2.05", 123), ("0.5", 30)])
def test_a_fraction_of_the_width_is_a_width(tmp_path: Path, multiple: str, width: int) -> None:
    """2.05 x 60 is 122.99999999999999 in binary."""
    assert load_transformer(_file(tmp_path, f"ffn_multiple: {multiple}")).ffn.width == width


def test_a_width_that_heads_do_not_divide_needs_their_width(tmp_path: Path) -> None:
    path = _file(tmp_path, "kv_heads: 4")
    path.write_text(path.read_text().replace("n_heads: 4", "n_heads: 8"))
    with pytest.raises(SpecError, match="got 8 heads for a width of 60, expected a divisor"):
        load_transformer(path)
    path.write_text(path.read_text().replace("kv_heads: 4", "head_dim: 16"))
    assert load_transformer(path).attention.q_width == 128


def test_a_table_of_operations_has_no_shape() -> None:
    path = bundled.resolve("workloads", "resnet50-libra", None)
    with pytest.raises(SpecError, match=r"got kind 'table' .* expected a transformer"):
        load_transformer(path)


def test_the_list_of_models_fits_80_columns_and_json_has_every_digit(run) -> None:
    payload = run("list", "workloads", "--json").payload
    assert payload["workloads"]["gpt3"].endswith("workloads/gpt3.yaml")
    llama = payload["models"]["llama3-70b"]
    assert (llama["n_parameters"], llama["n_layers"]) == (70_553_706_496, 80)
    assert llama["training_flops"] == _model("llama3-70b").flops_per_token()
    assert payload["models"]["resnet50"]["training_flops"] == 6 * 4_089_184_256
    assert "resnet50-libra" not in payload["models"]
    lines = run("list", "workloads").out.splitlines()
    assert any(line.split()[:4] == ["deepseek-v3", "671.03", "37.55", "61"] for line in lines)
    names = [line.split()[0] for line in lines]
    assert names.index("gpt-18.4b") < names.index("gpt-145.6b")
    assert max(len(line.rstrip()) for line in lines) <= 88
