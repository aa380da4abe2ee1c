"""Memory of an NPU by hand: Korthikanti's table 2, ZeRO, stages, libraries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from libra_planner.plan.workloads import load_transformer
from libra_planner.reading.bundled import resolve
from libra_planner.search.space import Choices
from libra_planner.step.memory_use import MemoryUse
from libra_planner.workload.defaults import LIBRARIES, library_named
from libra_planner.workload.memory import npu as memory_module
from libra_planner.workload.memory.habits import (
    FSDP_MEMORY,
    INTERNEVO_MEMORY,
    MEGATRON_MEMORY,
    NEMO_MEMORY,
    MemoryHabits,
)
from libra_planner.workload.memory.npu import CONTEXT_BYTES, FRAGMENTED_FRACTION, RANGES, memory
from libra_planner.workload.memory.stages import (
    first_dense_layers,
    microbatches_in_flight,
    most_layers,
)
from libra_planner.workload.operations import ModelStates
from libra_planner.workload.strategy import PipelineSchedule, Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from tests.pipelines import chunk_layers


def _gpt(n_layers: int, hidden: int, n_heads: int, vocabulary: int = 0) -> Transformer:
    width = hidden // n_heads
    attention = Attention(n_heads, n_heads, width, width, has_bias=True)
    feed_forward = FeedForward(4 * hidden, has_bias=True)
    return Transformer(
        "gpt", n_layers, hidden, attention, feed_forward, 2048, vocabulary, has_norm_bias=True
    )


# Korthikanti et al., arXiv 2205.05198, table 3: layers, hidden, heads, b, p, v; t = 8, s = 2048.
PAPER = {
    "22B": (48, 6144, 64, 4, 1, 1),
    "175B": (96, 12288, 96, 1, 8, 3),
    "530B": (105, 20480, 128, 1, 35, 3),
    "1T": (128, 25600, 160, 1, 64, 1),
}


@pytest.mark.parametrize("size", PAPER)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("recompute", Recompute)
def test_activations_of_korthikanti_table_2(
    size: str, parallel: bool, recompute: Recompute
) -> None:
    n_layers, h, a, b, p, v = PAPER[size]
    s, t = 2048, 8
    scores = 0 if recompute is Recompute.SELECTIVE else 5 * a * s / h
    per_layer = (34 + scores) / t if parallel else 10 + 24 / t + scores / t
    if recompute is Recompute.FULL:
        per_layer = 2 / t if parallel else 2
    more = 1 + (p - 1) / (p * v) if v > 1 else 1
    strategy = Strategy(
        tp=t,
        pp=p,
        interleave=v,
        microbatch=b,
        global_batch=b * 8 * p,
        recompute=recompute,
        sequence_parallel=parallel,
        flash_attention=False,
    )
    found = memory(_gpt(n_layers, h, a), strategy)
    assert found.stage == 0
    assert found.activations_bytes == pytest.approx(s * b * h * n_layers * more * per_layer)


def test_activations_of_a_layer_of_gpt3_in_numbers() -> None:
    """Section 4: a layer of GPT-3 (s 2048, b 1, h 12288, a 96) has 34 + 80 bytes per s b h."""
    one = Strategy(flash_attention=False)
    sbh = 2048 * 12288
    assert memory(_gpt(1, 12288, 96), one).activations_bytes == (34 + 80) * sbh == 2868903936
    assert memory(_gpt(1, 12288, 96), Strategy()).activations_bytes == 34 * sbh


def test_selective_recomputation_of_mla_drops_what_is_expanded() -> None:
    """Queries and keys 192, values 128 of 128 heads, and 1,536 + 512 normed: in bf16."""
    model = load_transformer(resolve("workloads", "deepseek-v3", None))
    kept, less = (
        memory(model, Strategy(ep=64, dp=64, pp=1, recompute=x)).activations_bytes
        for x in (Recompute.NONE, Recompute.SELECTIVE)
    )
    n_numbers = 128 * (192 + 192 + 128) + 1536 + 512
    n_layers = model.n_layers + model.n_mtp
    assert float(kept - less) == pytest.approx(2 * n_numbers * 4096 * n_layers)


def test_recomputation_that_frees_nothing_is_said_and_not_searched() -> None:
    llama, deepseek = (
        load_transformer(resolve("workloads", "llama3-8b", None)),
        load_transformer(resolve("workloads", "deepseek-v3", None)),
    )
    for model, flash, n in ((llama, True, 2), (llama, False, 3), (deepseek, True, 3)):
        strategy = Strategy(flash_attention=flash, recompute=Recompute.SELECTIVE)
        choices = Choices().that_save(model, strategy, MEGATRON_MEMORY)
        assert len(choices.recompute) == n
        (*notes,) = MemoryUse(model, strategy).notes
        assert len(notes) == 3 - n
    assert "frees no memory" in MemoryUse(llama, Strategy(recompute=Recompute.SELECTIVE)).notes[0]


def test_flash_attention_drops_what_selective_recomputation_drops() -> None:
    gpt = _gpt(4, 12288, 96)
    flash = memory(gpt, Strategy(tp=8))
    selective = memory(gpt, Strategy(tp=8, flash_attention=False, recompute=Recompute.SELECTIVE))
    assert flash.activations_bytes == selective.activations_bytes
    # One layer's matrix comes back while it is computed again.
    assert selective.transient_bytes - flash.transient_bytes == 5 * 96 * 2048**2 / 8


def test_ends_of_the_paper_without_a_pipeline() -> None:
    """Section 4.3: s b h for the embedding's mask, 4 s b h and 4 s b v for norm and logits, over t."""
    gpt, t = _gpt(48, 6144, 64, vocabulary=51200), 8
    strategy = Strategy(tp=t, sequence_parallel=True, microbatch=4, global_batch=4)
    fp32_logits = replace(MEGATRON_MEMORY, logits_bytes=4)
    found = memory(gpt, strategy, habits=fp32_logits)
    sb = 2048 * 4
    layers = sb * 6144 * 48 * 34 / t
    assert found.activations_bytes == pytest.approx(layers + sb * 6144 / t + 4 * sb * 6144 / t)
    assert found.transient_bytes == pytest.approx(4 * sb * 51200 / t)


def test_zero_shards_optimizer_gradients_and_weights_in_turn() -> None:
    gpt = _gpt(1, 1024, 16)
    n = 12 * 1024**2 + 13 * 1024
    zero = memory(gpt, Strategy(dp=2, cp=2, zero=np.arange(4), global_batch=2))
    assert zero.weights_bytes.tolist() == [2 * n, 2 * n, 2 * n, n / 2]
    assert zero.gradients_bytes.tolist() == [4 * n, 4 * n, n, n]
    assert zero.optimizer_bytes.tolist() == [12 * n, 3 * n, 3 * n, 3 * n]
    # Three gathered bf16 layers of weights and gradients in turn: 2 + 2, and 4 of a gradient.
    assert np.diff(zero.communication_bytes).tolist() == [0, 0, 8 * n]


def test_zero_3_gathers_from_other_ranks_only() -> None:
    """dp cp = 1: nobody has a part of the dense layers; edp 4 have a quarter of an expert each."""
    gpt = _gpt(2, 1024, 16)
    alone = memory(gpt, Strategy(tp=2, pp=2, zero=np.array([0, 3]), global_batch=2))
    assert np.diff(alone.communication_bytes).tolist() == [0]
    attention, ffn = Attention(8, 8, 128, 128), FeedForward(4096, is_gated=True)
    moe = Transformer("moe", 1, 1024, attention, ffn, 4096, experts=Experts(8, 2, 512))
    many = Strategy(tp=8, ep=2, zero=np.array([0, 3]), sequence_parallel=True)
    four = 4 * 3 * 1024 * 512  # Experts of a rank, gathered twice in bf16 and once in fp32.
    assert np.diff(memory(moe, many).communication_bytes).tolist() == [8 * four]


def test_states_are_those_of_plans_with_tp_and_dp() -> None:
    gpt = _gpt(96, 12288, 96, vocabulary=50257)
    n = 96 * (12 * 12288**2 + 13 * 12288) + 50257 * 12288
    gpt = replace(gpt, is_tied=True)
    for zero in range(4):
        found = memory(gpt, Strategy(dp=16, zero=zero, global_batch=16))
        assert found.states_bytes == pytest.approx(ModelStates(n, 2, dp=16).zero_bytes(zero))


def test_experts_are_split_over_ep_and_sharded_over_edp() -> None:
    """Two of 8 experts on a rank; dp 8: the rest over 8 ranks, an expert over edp 2."""
    attention, ffn = Attention(8, 8, 128, 128), FeedForward(4096, is_gated=True)
    experts = Experts(8, 2, 512)
    moe = Transformer("moe", 1, 1024, attention, ffn, 4096, experts=experts)
    found = memory(moe, Strategy(dp=8, ep=4, zero=1, global_batch=8))
    rest = 4 * 1024**2 + 2 * 1024 + 8 * 1024
    two = 2 * 3 * 1024 * 512
    assert found.weights_bytes == 2 * (rest + two)
    assert found.optimizer_bytes == 12 * (rest / 8 + two / 2)


def test_copies_of_tokens_at_experts() -> None:
    """Per token: norm 2h, input 2h, q k v 6h, out 2h; norm 2h, router 2h, 8 n; 2 copies of 2h + 2h
    at their experts' ends, 2 x (4 + 2) w between."""
    attention, ffn = Attention(8, 8, 128, 128), FeedForward(4096)
    moe = Transformer("moe", 1, 1024, attention, ffn, 4096, experts=Experts(8, 2, 512))
    per_token = 16 * 1024 + 8 * 8 + 2 * 4 * 1024 + 2 * 6 * 512
    found = memory(moe, Strategy(ep=4, dp=4, global_batch=4))
    assert found.activations_bytes == 4096 * per_token


def test_grouped_heads_and_gates_of_llama() -> None:
    """Llama 3 8B per token and layer: 2h x (1 + 1 + 1 + 1/4 + 1/4 + 1 + 1 + 1) + 6 x 14336."""
    attention = Attention(32, 8, 128, 128)
    llama = Transformer("l", 1, 4096, attention, FeedForward(14336, is_gated=True), 8192)
    found = memory(llama, Strategy())
    assert found.activations_bytes == 8192 * (13 * 4096 + 6 * 14336)
    # tp 16: half of the 8 heads of keys would be less than a head; norms are not split.
    found = memory(llama, Strategy(tp=16))
    split = (2 * 4096 + 2 * 4096 + 6 * 14336) / 16 + 2 * 2 * 1024 / 8
    assert found.activations_bytes == 8192 * (8 * 4096 + split)


def test_latent_attention_of_deepseek() -> None:
    """Per token, DeepSeek-V3: 4h, 2 (1536 + 512 + 64) + 2 (1536 + 512), heads 2 x 128 (192 + 192 +
    128), out 2 x 128 x 128, then 4h and 6 w."""
    attention = Attention(128, 128, 192, 128, q_rank=1536, kv_rank=512, rope_dim=64)
    deepseek = Transformer("d", 1, 7168, attention, FeedForward(18432, is_gated=True), 4096)
    heads = 2 * 128 * (192 + 192 + 128) + 2 * 128 * 128
    per_token = 8 * 7168 + 2 * 2112 + 2 * 2048 + heads + 6 * 18432
    assert memory(deepseek, Strategy()).activations_bytes == 4096 * per_token


def test_inputs_of_fp8_multiplies_take_a_byte() -> None:
    attention = Attention(32, 8, 128, 128)
    llama = Transformer("l", 1, 4096, attention, FeedForward(14336, is_gated=True), 8192)
    wide = memory(llama, Strategy()).activations_bytes
    fp8 = memory(llama, Strategy(dtype="fp8"))
    assert wide - fp8.activations_bytes == 8192 * (4096 + 4096 + 4096 + 14336)
    n = llama.dense_layer_parameters.n_total
    assert fp8.weights_bytes == (2 + 2) * n
    assert memory(llama, Strategy(dtype="fp8"), habits=FSDP_MEMORY).activations_bytes == wide


def test_recomputation_by_operator_keeps_every_second_multiply() -> None:
    """Llama 3 8B, PyTorch: input, queries, values, attention, gate, down: 2 (4 1/4 h + w)."""
    attention = Attention(32, 8, 128, 128)
    llama = Transformer("l", 1, 4096, attention, FeedForward(14336, is_gated=True), 8192)
    found = memory(llama, Strategy(recompute=Recompute.SELECTIVE), habits=FSDP_MEMORY)
    assert found.activations_bytes == 8192 * 2 * (4 * 4096 + 1024 + 14336)


def test_a_full_layer_is_worked_on_again() -> None:
    attention = Attention(32, 8, 128, 128)
    llama = Transformer("l", 2, 4096, attention, FeedForward(14336, is_gated=True), 8192)
    found = memory(llama, Strategy(recompute=Recompute.FULL))
    assert found.activations_bytes == 8192 * 2 * 2 * 4096
    again = 11 * 4096 + 6 * 14336
    gradients = 2 * 4096 + 6 * 14336
    assert found.transient_bytes == 8192 * (again + gradients)


def test_the_optimizers_step_may_be_the_peak() -> None:
    gpt = _gpt(2, 1024, 16)
    found = memory(gpt, Strategy(recompute=Recompute.FULL), habits=INTERNEVO_MEMORY)
    step = 12 * 2 * (12 * 1024**2 + 13 * 1024)
    assert found.activations_bytes + found.transient_bytes == step


def test_fully_sharded_pipelines_of_torch_keep_a_stage_gathered() -> None:
    gpt = _gpt(4, 1024, 16)
    found = memory(gpt, Strategy(dp=4, pp=2, zero=3, global_batch=16), habits=FSDP_MEMORY)
    n = 2 * (12 * 1024**2 + 13 * 1024)
    assert found.communication_bytes == (2 + 4) * n + 2 * 2 * 2048 * 1024


def test_the_reserve_is_two_constants_in_their_ranges() -> None:
    for name, (low, high) in RANGES.items():
        assert low <= getattr(memory_module, name) <= high
    found = memory(_gpt(2, 1024, 16), Strategy())
    running = found.activations_bytes + found.transient_bytes
    assert found.reserve_bytes == CONTEXT_BYTES + FRAGMENTED_FRACTION * running
    parts = found.states_bytes + running + found.communication_bytes + found.reserve_bytes
    assert found.total_bytes == parts
    assert found.fits(found.total_bytes)
    assert not found.fits(found.total_bytes - 1)


def test_logits_can_make_the_last_stage_the_fullest() -> None:
    small = _gpt(4, 1024, 16, vocabulary=200000)
    found = memory(small, Strategy(pp=4, global_batch=8, microbatch=4, recompute=Recompute.FULL))
    assert found.stage == 3
    assert found.transient_bytes == 8 * 4 * 2048 * 200000


def test_tied_tables_lie_on_both_ends_of_a_pipeline() -> None:
    tied = replace(_gpt(2, 1024, 16, vocabulary=50000), is_tied=True)
    layer, table = 12 * 1024**2 + 13 * 1024, 50000 * 1024
    assert memory(tied, Strategy()).weights_bytes == 2 * (2 * layer + table)
    assert memory(tied, Strategy(pp=2, global_batch=4)).weights_bytes == 2 * (layer + table)
    apart = replace(tied, is_tied=False)
    assert memory(apart, Strategy()).weights_bytes == 2 * (2 * layer + 2 * table)


@pytest.mark.parametrize("n_layers", [61, 80, 94, 126])
@pytest.mark.parametrize(("pp", "interleave"), [(1, 1), (4, 1), (7, 1), (8, 2), (4, 5), (16, 8)])
def test_stages_have_as_many_layers_as_any_of_the_pipelines_time(
    n_layers: int, pp: int, interleave: int
) -> None:
    """No stage has more; where layers do not divide, it may be one more than any has."""
    most = max(sum(chunks) for chunks in chunk_layers(n_layers, pp, interleave))
    assert most == most_layers(n_layers, pp)


def test_layers_with_and_without_experts_in_turns_are_a_share_of_every_stage() -> None:
    moe = Transformer(
        "moe", 8, 64, Attention(4, 4, 16, 16), FeedForward(64), 64, experts=Experts(4, 1, 64),
        n_dense_layers=4, is_interleaved=True,
    )  # fmt: skip
    assert first_dense_layers(moe, Strategy(pp=4), np.arange(4)).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (PipelineSchedule.ONE_F_ONE_B, [4, 3, 2, 1]),
        (PipelineSchedule.ZERO_BUBBLE_H1, [4, 4, 4, 4]),
        (PipelineSchedule.ZERO_BUBBLE_H2, [7, 7, 7, 7]),
    ],
)
def test_microbatches_in_flight(schedule: PipelineSchedule, expected: list[int]) -> None:
    many = Strategy(pp=4, global_batch=16, schedule=schedule)
    assert microbatches_in_flight(many, np.arange(4)).tolist() == expected
    few = replace(many, global_batch=2)
    assert microbatches_in_flight(few, np.arange(4)).tolist() == np.minimum(expected, 2).tolist()


def test_microbatches_in_flight_of_chunks_in_turns() -> None:
    """p 4, v 2: (4 + 2 x 3 + 1)/2 at the first stage, 5/2 at the last one."""
    strategy = Strategy(pp=4, interleave=2, global_batch=16)
    assert microbatches_in_flight(strategy, np.arange(4)).tolist() == [5.5, 4.5, 3.5, 2.5]


def test_recipes_differ_in_their_gradients_alone() -> None:
    gpt = _gpt(2, 1024, 16)
    a, b = memory(gpt, Strategy()), memory(gpt, Strategy(), habits=NEMO_MEMORY)
    assert a.gradients_bytes == 2 * b.gradients_bytes
    assert a.total_bytes - b.total_bytes == b.gradients_bytes


def test_a_library_of_ones_own() -> None:
    adafactor = MemoryHabits(optimizer_bytes=4)
    gpt = _gpt(2, 1024, 16)
    assert 3 * memory(gpt, Strategy(), habits=adafactor).optimizer_bytes == (
        memory(gpt, Strategy()).optimizer_bytes
    )


def test_every_library_says_what_it_keeps() -> None:
    """Bytes per parameter: 18 of Megatron, 16 of the others."""
    found = {
        name: one.memory.weights_bytes + one.memory.gradients_bytes + one.memory.optimizer_bytes
        for name, one in LIBRARIES.items()
    }
    sixteen = {"deepspeed", "nemo", "fsdp", "internevo"}
    assert found == {name: 16 if name in sixteen else 18 for name in LIBRARIES}


def test_descriptions_of_runs_name_their_library() -> None:
    assert library_named("3D FSDP+TP+PP+AsyncTP").name == "fsdp"
    assert library_named("NeMo/Megatron").name == "nemo"
    assert library_named("TP+PP").name == "megatron-2021"
