"""Names of models in tables of published runs."""

from __future__ import annotations

import pytest

from libra_planner.plan.architectures.names import bundled_model
from libra_planner.reading import bundled
from libra_planner.workload.transformer import Transformer

# As Narayanan, Korthikanti, MegaScale, Megatron-Bridge, dgxc-benchmarking, torchtitan and InternEvo
# write them.
NAMES = {
    "GPT-3.6B": "gpt-3.6b",
    "GPT-529.6B": "mt-nlg-530b",
    "MT-NLG-530B": "mt-nlg-530b",
    "GPT-1008.0B": "msft-1t",
    "GPT-3-175B": "gpt3",
    "GPT-3 175B": "gpt3",
    "GPT-175B": "gpt3",
    "PaLM-540B": "palm-540b",
    "LLAMA3.1_405B": "llama3-405b",
    "Llama-3.1-70B": "llama3-70b",
    "Llama3-70B": "llama3-70b",
    "meta-llama/Llama-3.1-8B": "llama3-8b",
    "GPT OSS 120B": "gpt-oss-120b",
    "Qwen3_235B_a22B (tokendrop)": "qwen3-235b-a22b",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "DeepSeekV3 (dropless)": "deepseek-v3",
    "DeepSeek-V3 671B": "deepseek-v3",
    "Nemotron-4 15B": "nemotron4-15b",
    "Nemotron-4 340B": "nemotron4-340b",
    "Grok-1 314B": "grok1-314b",
    "Llama-4 Maverick 400B": "llama4-maverick",
    "Mixtral 8x22B": "mixtral-8x22b",
    "InternLM-20B": "internlm-20b",
    "Llama2-7B": "llama2-7b",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_published_runs(name: str) -> None:
    found = bundled_model(name)
    assert (found.bundled_name, found.n_layers, found.reason) == (NAMES[name], None, "")
    assert found.transformer is not None


def test_every_bundled_transformer_is_found_by_its_own_name() -> None:
    for name in bundled.names("workloads"):
        found = bundled_model(name)
        assert found.bundled_name == name or found.reason


def test_proxies_have_the_layers_that_their_name_says() -> None:
    proxy = bundled_model("Grok-1 proxy (16 layers)")
    assert proxy.transformer is not None
    assert (proxy.n_layers, proxy.transformer.n_layers) == (16, 16)
    assert proxy.transformer.n_expert_layers == 16
    assert bundled_model("Llama-3.1-405B (126 layers)").n_layers is None
    assert "does not say how many layers" in bundled_model("Grok-1 proxy").reason


def _shape(name: str) -> Transformer:
    found = bundled_model(name).transformer
    assert found is not None
    return found


def test_dense_layers_and_windows_stay_in_proportion() -> None:
    assert _shape("Llama-4 Maverick 400B (8 layers)").n_dense_layers == 4
    assert _shape("GPT OSS 120B (8 layers)").n_window_layers == 4
    assert _shape("DeepSeekV3 (8 layers)").n_dense_layers == 3


def test_further_predicted_tokens_are_a_remark_that_counts() -> None:
    assert _shape("DeepSeekV3 (w/ MTP)").n_mtp == 1
    assert _shape("DeepSeekV3 (w/o MTP)").n_mtp == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Nemotron-H 56B (hybrid Mamba)", "hybrid with Mamba layers: not modelled"),
        ("Nemotron_3_Super", "hybrid with Mamba layers: not modelled"),
        ("Nemotron_3_Nano", "hybrid with Mamba layers: not modelled"),
        ("Llama3-70B LoRA", "LoRA trains a part of the parameters: not modelled"),
        ("MaxText 32B dense", "its shape is not published beside its figures"),
        ("gpt3-libra", "no bundled model is called 'gpt3-libra'"),
        ("Chinchilla", "no bundled model is called 'Chinchilla'"),
    ],
)
def test_what_is_not_modelled_says_why(name: str, reason: str) -> None:
    found = bundled_model(name)
    assert found.transformer is None
    assert reason in found.reason
