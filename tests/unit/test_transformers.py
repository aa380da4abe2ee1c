"""Parameters and FLOPs of transformers against published figures (C18)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from libra_planner.workload.transformer import (
    Attention,
    Experts,
    FeedForward,
    LayerParameters,
    Transformer,
)

GPT3 = Transformer(
    "gpt3",
    n_layers=96,
    hidden=12288,
    attention=Attention(96, 96, 128, 128, has_bias=True),
    ffn=FeedForward(49152, has_bias=True),
    sequence_tokens=2048,
    vocabulary=51200,
    is_tied=True,
    n_positions=2048,
    has_norm_bias=True,
)
DEEPSEEK_V3 = Transformer(
    "deepseek-v3",
    n_layers=61,
    hidden=7168,
    attention=Attention(128, 128, 192, 128, q_rank=1536, kv_rank=512, rope_dim=64),
    ffn=FeedForward(18432, is_gated=True),
    sequence_tokens=4096,
    vocabulary=129280,
    experts=Experts(256, 8, 2048, shared_width=2048),
    n_dense_layers=3,
    has_final_norm=True,
)
VIT_B = Transformer(
    "vit-b",
    n_layers=12,
    hidden=768,
    attention=Attention(12, 12, 64, 64, is_causal=False, has_bias=True),
    ffn=FeedForward(3072, has_bias=True),
    sequence_tokens=197,
    n_positions=197,
    has_norm_bias=True,
    has_final_norm=True,
    patch_values=16 * 16 * 3,
    n_classes=1000,
)


def test_gpt_is_equations_2_and_3_of_narayanan() -> None:
    """SC'21 (arXiv 2104.04473), 72 instead of 96: without recomputation."""
    n_layers, h, s, vocabulary = 96, 12288, 2048, 51200
    inside = 1 + 13 / (12 * h) + (vocabulary + s) / (12 * n_layers * h)
    assert GPT3.n_parameters == pytest.approx(12 * n_layers * h**2 * inside, rel=1e-15)
    flops = 72 * n_layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * n_layers * h))
    assert GPT3.flops_per_token() == pytest.approx(flops, rel=1e-15)
    assert GPT3.n_multiplying_parameters == 12 * n_layers * h**2 + vocabulary * h


def test_a_mask_hides_half_of_the_scores() -> None:
    scores = 12 * 96 * 2048 * 12288
    assert GPT3.flops_per_token("full") - GPT3.flops_per_token("causal") == scores / 2


def test_deepseek_v3_is_671_billion_parameters_of_which_37_active() -> None:
    """arXiv 2412.19437: 671B in all, 37B for each token; by hand in the parts of a layer."""
    h, expert = 7168, 3 * 7168 * 2048
    mla = h * 1536 + 1536 * 128 * 192 + h * (512 + 64) + 512 * 128 * (128 + 128) + 128 * 128 * h
    assert DEEPSEEK_V3.expert_layer_parameters == LayerParameters(
        n_attention=mla + 1536 + 512,
        n_norms=2 * h,
        n_router=256 * h,
        n_routed=256 * expert,
        n_shared=expert,
        n_multiplying=mla + 256 * h + 9 * expert,
        n_idle=248 * expert,
    )
    dense = DEEPSEEK_V3.dense_layer_parameters
    assert dense.n_dense == dense.n_total == mla + 2048 + 2 * h + 3 * h * 18432
    assert DEEPSEEK_V3.n_parameters == pytest.approx(671e9, rel=1e-3)
    assert DEEPSEEK_V3.n_active_parameters == pytest.approx(37e9, rel=0.02)
    n = 3 * (mla + 3 * h * 18432) + 58 * (mla + 256 * h + 9 * expert) + 129280 * h
    assert DEEPSEEK_V3.n_multiplying_parameters == n
    scores = 6 * 61 * 4096 * 128 * (192 + 128)
    assert DEEPSEEK_V3.flops_per_token() == 6 * n + scores


def test_a_module_for_further_tokens_is_a_layer_a_projection_and_the_logits_again() -> None:
    """It shares embedding and logits with the model (arXiv 2412.19437, section 2.2)."""
    with_mtp = replace(DEEPSEEK_V3, n_mtp=1)
    layer, h = DEEPSEEK_V3.expert_layer_parameters, 7168
    added = with_mtp.n_parameters - DEEPSEEK_V3.n_parameters
    assert added == layer.n_total + 2 * h * h + 3 * h
    added = with_mtp.n_multiplying_parameters - DEEPSEEK_V3.n_multiplying_parameters
    assert added == layer.n_multiplying + 2 * h * h + 129280 * h
    added = with_mtp.n_active_parameters - DEEPSEEK_V3.n_active_parameters
    assert added == layer.n_total - layer.n_idle + 2 * h * h + 3 * h


def test_vision_transformers_are_as_torchvision_prints_them() -> None:
    """vit_b_16: 86,567,656 parameters and 17.56 G multiply-accumulates forward."""
    assert VIT_B.n_parameters == 86_567_656
    forward = VIT_B.flops_per_token() * 197 / 6
    assert forward == pytest.approx(17.56e9, rel=1e-3)
    assert VIT_B.flops_per_token("causal") == VIT_B.flops_per_token()


@pytest.mark.parametrize(("n", "window"), [(7, 3), (16, 16), (12, 5), (5, 9)])
def test_windows_against_a_count_of_the_mask(n: int, window: int) -> None:
    """Row i of the scores shows min(i, w) of them; the closed form counts half of the diagonal."""
    attention = Attention(1, 1, 1, 1, window_tokens=window)
    rows = [min(i + 0.5, window) if i + 1 <= window else window for i in range(n)]
    assert attention.seen_tokens(n, "causal", True) == pytest.approx(sum(rows) / n)
    assert attention.seen_tokens(n, "full", True) == min(n, window)
    assert attention.seen_tokens(n, "causal") == n / 2
