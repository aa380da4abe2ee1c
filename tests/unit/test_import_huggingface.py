"""``import huggingface``: shapes whose parameters are published, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from libra_planner.plan.architectures.transformers import transformer
from libra_planner.plan.workloads import transformer_spec
from libra_planner.reading import bundled


def _config(family: str, numbers: str, **others: Any) -> dict[str, Any]:
    keys = "num_hidden_layers hidden_size num_attention_heads num_key_value_heads vocab_size"
    named = dict(zip(keys.split(), map(int, numbers.split()), strict=True))
    return {"model_type": family, **named, "max_position_embeddings": 131072, **others}


def _deepseek(numbers: str, q_rank: int | None, **others: Any) -> dict[str, Any]:
    mla = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    return _config("deepseek_v3", numbers, q_lora_rank=q_rank, moe_layer_freq=1, **mla, **others)


V3 = _deepseek(
    "61 7168 128 128 129280", 1536, intermediate_size=18432, moe_intermediate_size=2048,
    n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=3,
    num_nextn_predict_layers=1,
)  # fmt: skip
V2_LITE = _deepseek(
    "27 2048 16 16 102400", None, intermediate_size=10944, moe_intermediate_size=1408,
    n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6, first_k_dense_replace=1,
)  # fmt: skip
LLAMA_8B = _config("llama", "32 4096 32 8 128256", intermediate_size=14336)
MIXTRAL = _config(
    "mixtral", "32 4096 32 8 32000", intermediate_size=14336, num_local_experts=8,
    num_experts_per_tok=2, sliding_window=None,
)  # fmt: skip
QWEN_MOE = _config(
    "qwen3_moe", "94 4096 64 4 151936", head_dim=128, intermediate_size=12288, num_experts=128,
    num_experts_per_tok=8, moe_intermediate_size=1536, decoder_sparse_step=1, mlp_only_layers=[],
)  # fmt: skip
GPT_OSS = _config(
    "gpt_oss", "36 2880 64 8 201088", head_dim=64, intermediate_size=2880, num_local_experts=128,
    num_experts_per_tok=4, sliding_window=128,
    layer_types=["sliding_attention", "full_attention"] * 18,
)  # fmt: skip
BUNDLED = {
    "llama3-8b": LLAMA_8B,
    "llama3-70b": _config("llama", "80 8192 64 8 128256", intermediate_size=28672),
    "llama3-405b": _config("llama", "126 16384 128 8 128256", intermediate_size=53248),
    "mixtral-8x7b": MIXTRAL,
    "qwen3-8b": _config("qwen3", "36 4096 32 8 151936", intermediate_size=12288, head_dim=128),
    "qwen3-235b-a22b": QWEN_MOE,
    "deepseek-v3": V3,
    "gpt-oss-120b": GPT_OSS,
}


@pytest.fixture
def imported(tmp_path: Path, run):
    """What is written of a config."""

    def made(config: Any, *flags: str):
        (tmp_path / "config.json").write_text(json.dumps(config, indent="\t"))
        own = tmp_path / "own.yaml"
        return run("import", "huggingface", tmp_path / "config.json", "-o", own, *flags), own

    return made


@pytest.mark.parametrize("name", BUNDLED)
def test_a_config_is_the_shape_of_the_bundled_model(name: str, imported) -> None:
    result, own = imported(BUNDLED[name], "--sequence-tokens", "8192")
    assert result.code == 0, result.err
    known = transformer_spec(bundled.resolve("workloads", name, None)).architecture
    shape = transformer("", transformer_spec(own).architecture)
    assert shape == transformer("", known.model_copy(update={"sequence_tokens": 8192}))
    assert f"{shape.n_parameters:,} parameters" in result.err


@pytest.mark.parametrize(
    ("config", "n_parameters"),
    [
        (LLAMA_8B, 8_030_261_248),
        (MIXTRAL, 46_702_792_704),
        (V2_LITE, 15_706_484_224),
        # Qwen 2.5 7B has 7,615,616,512: here 28 biases of 3,584 more, which an assumption tells.
        (
            _config("qwen2", "28 3584 28 4 152064", intermediate_size=18944),
            7_615_616_512 + 28 * 3584,
        ),
        # Mistral 7B v0.3, and Llama 2 7B of the time before the heads of keys had a key.
        (
            _config("mistral", "32 4096 32 8 32768", intermediate_size=14336, sliding_window=None),
            7_248_023_552,
        ),
        (
            {
                key: value
                for key, value in _config(
                    "llama", "32 4096 32 32 32000", intermediate_size=11008
                ).items()
                if key != "num_key_value_heads"
            },
            6_738_415_616,
        ),
    ],
)
def test_parameters_are_those_that_the_authors_files_hold(config, n_parameters, imported) -> None:
    result, own = imported(config)
    assert result.code == 0, result.err
    assert transformer("", transformer_spec(own).architecture).n_parameters == n_parameters


def test_sequences_are_said_and_the_file_runs(imported, run) -> None:
    result, own = imported(V3)
    assert "sequences of 4,096 tokens; --sequence-tokens N sets others" in result.err
    spec = transformer_spec(own)
    assert any("takes up to 131,072" in one for one in spec.assumptions)
    assert any("'n_mtp: 1' adds them" in one for one in spec.assumptions)
    flags = ["--npu", "h100-sxm", "--gpus", "2048", "--ep", "64", "--pp", "16"]
    timed = run("train", "--model", own, *flags, "--global-batch", "15360", "--json")
    same = run("train", "--model", "deepseek-v3", *flags, "--global-batch", "15360", "--json")
    assert timed.code == 0, timed.err
    assert timed.payload["step_time_s"] == same.payload["step_time_s"]


def test_windows_are_those_of_the_layers_that_have_them(imported) -> None:
    windowed = {"use_sliding_window": True, "sliding_window": 2048, "max_window_layers": 21}
    base = _config("qwen2", "28 3584 28 4 152064", intermediate_size=18944)
    for config, window, layers in (
        ({**base, **windowed}, 2048, 7),
        ({**base, **windowed, "use_sliding_window": False}, None, None),
        (_config("mistral", "32 4096 32 8 32768", intermediate_size=14336), 4096, None),
    ):
        _, own = imported(config)
        shape = transformer_spec(own).architecture
        assert (shape.window, shape.window_layers) == (window, layers)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model_type": "gemma3"}, "model_type: got 'gemma3', expected one of llama, mistral"),
        ({"model_type": "gemma3"}, "gpt_oss; write a workload by hand: libra-planner init"),
        ({"model_type": "lama"}, "did you mean llama?"),
        ({"hidden_size": "4096"}, "hidden_size: got '4096', expected a whole number"),
        ({"num_key_value_heads": 5}, "got kv_heads 5 for 32 heads"),
        ({"text_config": {}}, "save what 'text_config' holds"),
        ({"mlp_bias": True}, "mlp_bias: got true, expected false"),
        ({"tie_word_embeddings": "no"}, "expected true or false"),
    ],
)
def test_what_no_workload_can_say_is_refused(change, told: str, imported) -> None:
    result, own = imported({**LLAMA_8B, **change})
    assert result.code == 2
    assert told in result.err
    assert "config.json" in result.err
    assert not own.exists()


def test_layers_that_alternate_and_keys_that_are_missing_are_refused(imported) -> None:
    result, _ = imported({**QWEN_MOE, "decoder_sparse_step": 2, "num_experts": None})
    assert result.code == 2
    assert "decoder_sparse_step: got 2, expected 1" in result.err
    assert "num_experts: got nothing" in result.err
    lacking = {key: value for key, value in V3.items() if key != "first_k_dense_replace"}
    result, _ = imported(lacking)
    assert "first_k_dense_replace: got nothing, expected a whole number" in result.err
    assert imported([1, 2])[0].code == 2


def test_a_list_of_kinds_has_one_for_each_layer(imported) -> None:
    result, own = imported({**GPT_OSS, "layer_types": ["sliding_attention", "full_attention"]})
    assert "layer_types: got 2 kinds, expected a list with a kind for each of 36" in result.err
    assert not own.exists()


def test_a_config_in_the_place_of_a_workload_names_the_import(tmp_path: Path, run) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_8B))
    result = run("train", "--model", config, "--npu", "h100-sxm", "--gpus", "16")
    assert result.code == 2
    assert "libra-planner import huggingface CONFIG -o own.yaml" in result.err
    result = run("import", "huggingface", config, "-o", config)
    assert result.code == 2
    assert json.loads(config.read_text()) == LLAMA_8B
