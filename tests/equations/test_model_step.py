"""The step of a whole model: FLOPs, stages, the pipeline, what hides (C17, C18)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from libra_planner.fabric.topology import parse_topology
from libra_planner.plan.workloads import load_transformer
from libra_planner.reading.bundled import resolve
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.collectives.models import Ideal
from libra_planner.step.model_step import TrainedModel
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.pipeline import StageLayers, stage_layers
from libra_planner.workload.clock import STEP_CONSTANTS
from libra_planner.workload.kernels import KernelConstants, Kernels
from libra_planner.workload.operations import Workload
from libra_planner.workload.operators import Operators
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import OverlapFractions, Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from libra_planner.workload.volumes import Habits

PEAK = 1e15
WHOLE = KernelConstants(
    launch_s=0.0,
    group_s=0.0,
    memory_fraction=1.0,
    gemm_fraction=1.0,
    gemm_8bit_fraction=1.0,
    burst_gain=1.0,
    idle_fraction=0.0,
    prologue_depth=0.0,
    attention_fraction=1.0,
    attention_8bit_fraction=1.0,
    attention_backward_fraction=1.0,
    attention_backward_8bit_fraction=1.0,
    attention_block_s=0.0,
)
"""Kernels that do nothing but multiply."""
PERFECT = Kernels({"bf16": PEAK}, 1e30, n_cores=1, constants=WHOLE)

DENSE = Transformer(
    "dense",
    8,
    4096,
    Attention(32, 8, 128, 128),
    FeedForward(16384, is_gated=True),
    4096,
    vocabulary=32768,
)
MOE = replace(DENSE, experts=Experts(16, 2, 4096), n_dense_layers=2)
LATENT = replace(
    DENSE, attention=Attention(32, 32, 192, 128, q_rank=1536, kv_rank=512, rope_dim=64)
)


WINDOWS = replace(DENSE, attention=replace(DENSE.attention, window_tokens=512), n_window_layers=4)
TURNS = replace(MOE, n_dense_layers=4, is_interleaved=True)


def _training(
    model: Transformer, strategy: Strategy, topology: str, kernels: Kernels = PERFECT
) -> ModelTraining:
    fabric = parse_topology(topology)
    degrees = {axis: int(getattr(strategy, axis)) for axis in ("tp", "cp", "dp", "pp", "ep", "etp")}
    groups = placed_groups(fabric, degrees)
    trained = TrainedModel(model, strategy, kernels)
    return ModelTraining(Workload(model.name, ()), trained, groups, plain_network(fabric))


def _seconds(training: ModelTraining, *bandwidth: float) -> float:
    return float(training.step_time(Ideal()).seconds(np.array(bandwidth)))


@pytest.mark.parametrize(
    "model", [DENSE, MOE, LATENT, WINDOWS], ids=["dense", "experts", "latent", "windows"]
)
def test_compute_is_six_n_and_attention(model: Transformer) -> None:
    """Kernels at their peak take the FLOPs of C18, attention of causal models half of the matrix.

    Backward attention computes its scores again: 2.5 times forward, where C18 counts 2 times.
    """
    operators = Operators(model, Strategy(), PERFECT)
    layers = [(model.n_layers - model.n_expert_layers, operators.layer(has_experts=False))]
    if model.experts:
        layers.append((model.n_expert_layers, operators.layer(has_experts=True)))
    layers.append((1, operators.logits()))
    attention_s = sum(n * float(one.forward.attention_s) for n, one in layers)
    compute_s = sum(n * float(one.forward.total_s + one.backward.total_s) for n, one in layers)
    n_flops = model.flops_per_token("causal") * model.sequence_tokens
    assert (compute_s - 0.5 * attention_s) * PEAK == pytest.approx(n_flops, rel=2e-3)


@pytest.mark.parametrize("tp", [1, 2, 8])
@pytest.mark.parametrize("cp", [1, 4])
def test_ranks_share_the_compute_of_a_layer(tp: int, cp: int) -> None:
    one = Operators(DENSE, Strategy(), PERFECT).layer(has_experts=False)
    split = Operators(DENSE, Strategy(tp=tp, cp=cp, sequence_parallel=True), PERFECT)
    shared = split.layer(has_experts=False)
    for whole, part in ((one.forward, shared.forward), (one.backward, shared.backward)):
        assert tp * cp * float(part.total_s) == pytest.approx(float(whole.total_s), rel=1e-6)


def test_full_recomputation_is_one_more_forward_pass() -> None:
    plain = Operators(DENSE, Strategy(), PERFECT).layer(has_experts=False)
    again = Operators(DENSE, Strategy(recompute=Recompute.FULL), PERFECT).layer(has_experts=False)
    assert float(again.backward.total_s) == pytest.approx(
        float(plain.backward.total_s + plain.forward.total_s)
    )


def test_the_bubble_of_equal_stages_is_p_minus_1_over_v_m() -> None:
    """Without embedding and logits all stages are equal."""
    model = replace(DENSE, vocabulary=0)
    strategy = Strategy(pp=4, global_batch=16, overlap=OverlapFractions(p2p=True))
    for interleave, bubble in ((1, 3 / 16), (2, 3 / 32)):
        training = _training(model, replace(strategy, interleave=interleave), "SW(4)")
        parts = training.split_s(Ideal(), np.array([1e30]))
        assert parts["bubble_s"] / parts["compute_s"] == pytest.approx(bubble)


def test_a_send_longer_than_a_forward_pass_is_exposed_by_hand() -> None:
    """Sends of 1.5 forward passes fit in the sum of a microbatch, yet half of one waits."""
    model = replace(DENSE, vocabulary=0)
    strategy = Strategy(pp=4, interleave=2, global_batch=16, overlap=OverlapFractions(p2p=True))
    training = _training(model, strategy, "SW(4)")
    layer = training.trained.operators.layer(has_experts=False)
    forward_s, backward_s = (
        2 * (x.linear_s + x.attention_s) for x in (layer.forward, layer.backward)
    )
    assert 2 < backward_s / forward_s < 2.5
    optimizer_s = float(training.parts(Ideal()).optimizer_s)
    sent_bytes = 2 * model.sequence_tokens * model.hidden * 2  # Of both chunks, one direction.
    for share, exposed in ((0.9, 0.0), (1.5, 0.5)):
        sent_s = share * forward_s
        each_s = forward_s + backward_s + exposed * forward_s
        # 16 - 1/2 microbatches; while it fills and empties, p/v without anything hidden.
        by_hand_s = 15.5 * each_s + 2 * (forward_s + backward_s + 2 * sent_s) + optimizer_s
        assert _seconds(training, sent_bytes / sent_s) == pytest.approx(by_hand_s, rel=1e-9)


def test_data_parallel_by_hand() -> None:
    """2 k P e_g bytes after the last microbatch, or beside it."""
    model, n = DENSE, 4
    exposed = Strategy(dp=n, global_batch=n)
    n_bytes = 2 * (n - 1) / n * model.n_parameters * 4
    base_s = _seconds(_training(model, exposed, "SW(4)"), 1e30)
    assert _seconds(_training(model, exposed, "SW(4)"), 1e9) == pytest.approx(
        base_s + n_bytes / 1e9, rel=1e-3
    )
    hidden = replace(exposed, overlap=OverlapFractions(dp=1.0))
    optimizer_s = float(_training(model, hidden, "SW(4)").parts(Ideal()).optimizer_s)
    assert _seconds(_training(model, hidden, "SW(4)"), 1e9) == pytest.approx(
        n_bytes / 1e9 + optimizer_s, rel=1e-3
    )
    assert _seconds(_training(model, hidden, "SW(4)"), 1e16) == pytest.approx(base_s, rel=1e-3)


def test_gradients_that_are_reduced_in_every_microbatch_hide_behind_all() -> None:
    """ZeRO 2 with m = 8 sends (8 e_g + e_w)/(e_g + e_w) of ZeRO 1's, beside eight times the work."""
    m, slow = 8, 1e9
    one = Strategy(dp=4, global_batch=4 * m, zero=1, overlap=OverlapFractions(dp=1.0))
    once = _training(DENSE, replace(one, global_batch=4), "SW(4)")
    each = _training(DENSE, replace(one, zero=2), "SW(4)")
    assert _seconds(each, slow) / _seconds(once, slow) == pytest.approx((m * 4 + 2) / (4 + 2))
    base_s, bandwidth = _seconds(each, 1e30), _seconds(each, slow) * slow
    assert base_s <= _seconds(each, bandwidth / (0.9 * base_s)) < 1.1 * base_s  # It slows compute.
    late = replace(each, trained=replace(each.trained, habits=Habits(reduces_once=True)))
    bandwidth = _seconds(once, slow) * slow
    expected = base_s * (m - 1) / m + 0.9 * base_s  # Only the last microbatch hides it.
    assert _seconds(late, bandwidth / (0.9 * base_s)) == pytest.approx(expected, rel=2e-2)


def test_tensor_parallel_by_hand() -> None:
    """Four all-reduces of b s h e a layer, and those of embedding, logits and loss."""
    model, strategy = DENSE, Strategy(tp=8, global_batch=1)
    size = model.sequence_tokens * model.hidden * 2
    small = 3 * model.sequence_tokens * 4
    n_bytes = 2 * 7 / 8 * ((4 * model.n_layers + 2) * size + small)
    training = _training(model, strategy, "SW(8)")
    slow_s, fast_s = _seconds(training, 1e9), _seconds(training, 1e30)
    assert slow_s - fast_s == pytest.approx(n_bytes / 1e9)


def test_parts_add_up_to_the_step() -> None:
    strategy = Strategy(tp=2, cp=2, dp=4, pp=2, ep=4, global_batch=32, sequence_parallel=True)
    training = _training(MOE, strategy, "SW(8)_SW(4)")
    bandwidth = np.array([100e9, 10e9])
    parts = training.split_s(Ideal(), bandwidth)
    assert sum(parts.values()) == pytest.approx(_seconds(training, *bandwidth))
    assert all(value >= -1e-12 for value in parts.values())


@pytest.mark.parametrize("pp", [1, 2, 3, 8])
def test_layers_that_take_turns_are_spread_over_the_stages(pp: int) -> None:
    kinds = stage_layers(TURNS, Strategy(pp=pp))
    assert sum(float(one.n * one.n_dense) for one in kinds) == pytest.approx(4)
    assert sum(float(one.n * one.n_experts) for one in kinds) == pytest.approx(4)
    assert sum(int(one.n * one.has_logits) for one in kinds) == 1


@pytest.mark.parametrize("pp", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("n_dense", [0, 1, 3, 8])
def test_stages_hold_every_layer_once(pp: int, n_dense: int) -> None:
    model = replace(MOE, n_dense_layers=n_dense)
    kinds = stage_layers(model, Strategy(pp=pp))
    assert sum(int(one.n) for one in kinds) == pp
    assert sum(int(one.n * one.n_dense) for one in kinds) == n_dense
    assert sum(int(one.n * (one.n_dense + one.n_experts)) for one in kinds) == model.n_layers
    assert sum(int(one.n * one.has_embedding) for one in kinds) == 1
    assert sum(int(one.n * one.has_logits) for one in kinds) == 1
    sizes = {int(x.n_dense + x.n_experts) for x in kinds if x.n}
    assert max(sizes) - min(sizes) <= 1


def _held(kinds: tuple[StageLayers, ...], at: int) -> Counter[tuple[int, int]]:
    """Stages by their layers, of one of several strategies."""
    found: Counter[tuple[int, int]] = Counter()
    for kind in kinds:
        n, *layers = (
            int(np.atleast_1d(part)[min(at, np.size(part) - 1)])
            for part in (kind.n, kind.n_dense, kind.n_experts)
        )
        found[layers[0], layers[1]] += n
    return +found


def test_arrays_of_strategies_are_the_strategies_one_by_one() -> None:
    tp, pp = np.array([1, 2, 8, 4]), np.array([1, 2, 4, 8])
    split = tp > 1
    stages = stage_layers(MOE, Strategy(pp=pp))
    layers = Operators(DENSE, Strategy(tp=tp, sequence_parallel=split), PERFECT)
    times_s = layers.layer(has_experts=False).backward.total_s
    for i, (degree, n_stages) in enumerate(zip(tp.tolist(), pp.tolist(), strict=True)):
        assert _held(stages, i) == _held(stage_layers(MOE, Strategy(pp=n_stages)), 0)
        alone = Operators(DENSE, Strategy(tp=degree, sequence_parallel=degree > 1), PERFECT)
        alone_s = alone.layer(has_experts=False).backward.total_s
        assert float(times_s[i]) == pytest.approx(float(alone_s))


def _with(training: ModelTraining, **changes: object) -> ModelTraining:
    return replace(training, trained=replace(training.trained, **changes))


def _experts_seconds(habits: Habits, imbalance: float = 1.0) -> float:
    """Of a step of one layer with experts on 2 nodes of 4, all compute free."""
    model = replace(MOE, n_dense_layers=0, vocabulary=0).with_layers(1)
    free = replace(PERFECT, peak_flops={"bf16": 1e40}, memory_Bps=1e40)
    strategy = Strategy(dp=8, ep=8, global_batch=8)
    training = _training(model, strategy, "SW(4)_SW(2)", free)
    constants = replace(STEP_CONSTANTS, imbalance=imbalance, stolen_fraction=0.0)
    found = _with(training, habits=habits, constants=constants)
    return sum(
        seconds
        for name, seconds in found.split_s(Ideal(), np.array([1e12, 1e9])).items()
        if name == "exposed_ep_s"
    )


def test_one_copy_of_a_token_per_node_by_hand() -> None:
    """2 experts of a token on 2 nodes: each copy crosses with 1/2; deduplicated 3/2 copies do.

    4 all-to-alls of 4096 tokens x 4096 x 2 bytes a copy, half of which leaves the node.
    """
    copy_bytes = 4096 * 4096 * 2
    every = _experts_seconds(Habits())
    once = _experts_seconds(Habits(one_copy_per_node=True))
    limited = _experts_seconds(Habits(experts_on_at_most=1))
    assert every == pytest.approx(4 * 2 * copy_bytes / 2 / 1e9, rel=1e-6)
    assert once == pytest.approx(4 * 1.5 * copy_bytes / 2 / 1e9, rel=1e-6)
    assert limited == pytest.approx(4 * 1.0 * copy_bytes / 2 / 1e9, rel=1e-6)


def test_the_busiest_rank_of_experts_sets_the_time_of_all() -> None:
    even, uneven = _experts_seconds(Habits()), _experts_seconds(Habits(), imbalance=1.25)
    assert uneven == pytest.approx(1.25 * even, rel=1e-6)


def test_hidden_communication_slows_the_compute_beside_it() -> None:
    """All of tp hides; compute loses a tenth of its time."""
    strategy = Strategy(tp=4, overlap=OverlapFractions(tp=1.0))
    training = _training(replace(DENSE, vocabulary=0), strategy, "SW(4)")
    none, some = (
        _with(training, constants=replace(STEP_CONSTANTS, stolen_fraction=x)) for x in (0.0, 0.1)
    )
    n_all_reduces = 4 * DENSE.n_layers
    size = 4096 * 4096 * 2
    sent_s = n_all_reduces * 2 * size * 3 / 4 / 1e13
    assert _seconds(some, 1e13) - _seconds(none, 1e13) == pytest.approx(0.1 * sent_s, rel=1e-6)


def test_recomputation_by_operator_repeats_half_of_the_multiplies() -> None:
    plain = Operators(DENSE, Strategy(), PERFECT)
    forward = plain.layer(has_experts=False).forward
    strategy = Strategy(recompute=Recompute.SELECTIVE)
    by_operator = Operators(DENSE, strategy, PERFECT, recomputes_by_operator=True)
    more = by_operator.layer(has_experts=False).backward
    without = plain.layer(has_experts=False).backward
    assert float(more.linear_s) == pytest.approx(float(without.linear_s + forward.linear_s / 2))
    assert float(more.attention_s) == pytest.approx(float(without.attention_s))


def test_selective_recomputation_of_mla_repeats_its_up_projections() -> None:
    """128 heads: queries 1536 x 192, keys and values 512 x (128 + 128), 2 FLOP each."""
    model = load_transformer(resolve("workloads", "deepseek-v3", None))
    plain, some = (
        Operators(model, Strategy(recompute=x), PERFECT).layer(has_experts=True).backward
        for x in (Recompute.NONE, Recompute.SELECTIVE)
    )
    n_flops = 2 * 4096 * 128 * (1536 * 192 + 512 * 256)
    assert float(some.linear_s - plain.linear_s) * PEAK == pytest.approx(n_flops, rel=1e-6)
    assert float(some.attention_s) == float(plain.attention_s)


def test_gradients_of_weights_are_read_added_to_and_written() -> None:
    """A multiply of few tokens is bound by its gradient: 8 bytes a weight in fp32."""
    slow = replace(PERFECT, memory_Bps=1e9)
    few = replace(DENSE, sequence_tokens=1)
    whole, half = (Operators(few, Strategy(), slow, gradient_bytes=x) for x in (4, 2))
    weights = DENSE.dense_layer_parameters.n_dense - DENSE.dense_layer_parameters.n_norms
    times = [one.layer(has_experts=False).weight_grad.linear_s for one in (whole, half)]
    assert float(times[0] - times[1]) == pytest.approx(4 * weights / 1e9, rel=1e-3)
