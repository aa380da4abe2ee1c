"""What one rank exchanges, worked out by hand (C16), and where groups stand (C15)."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.fabric.blocks import CollectiveKind
from libra_planner.fabric.topology import parse_topology
from libra_planner.workload.operations import Phase, communicators_from_degrees
from libra_planner.workload.placement import placed_groups
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from libra_planner.workload.volumes import (
    DP_CP,
    SEND_RECV,
    Exchange,
    Formats,
    Habits,
    embedding_exchanges,
    gradient_exchanges,
    layer_exchanges,
    logits_exchanges,
    pipeline_exchanges,
    tied_gradient_exchange,
)

GPT3 = Transformer(
    "GPT-3", 96, 12288, Attention(96, 96, 128, 128), FeedForward(49152), 2048, 51200, is_tied=True
)
LLAMA3 = Transformer(
    "Llama-3-405B", 126, 16384, Attention(128, 8, 128, 128), FeedForward(53248, True), 8192, 128256
)
DEEPSEEK_V3 = Transformer(
    "DeepSeek-V3",
    61,
    7168,
    Attention(128, 128, 192, 128, q_rank=1536, kv_rank=512, rope_dim=64),
    FeedForward(18432, True),
    4096,
    129280,
    Experts(256, 8, 2048, 2048),
    n_dense_layers=3,
)

M = 50331648
"""2048 tokens of 12288 numbers of 2 bytes, one sequence of GPT-3."""

REDUCE, GATHER = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER
SCATTER, EXCHANGE = CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL


def _rows(found: tuple[Exchange, ...]) -> list[tuple[str, str, float, int]]:
    return [(x.axis, str(x.kind), float(x.size_bytes), int(x.count)) for x in found]


def test_a_layer_of_gpt3() -> None:
    """Two all-reduces of M forward and two backward; four with the forward pass run again."""
    layer = layer_exchanges(GPT3, Strategy(tp=8))
    assert _rows(layer.forward) == _rows(layer.backward) == [("tp", "all-reduce", M, 2)]
    again = layer_exchanges(GPT3, Strategy(tp=8, recompute=Recompute.FULL))
    assert _rows(again.forward) == [("tp", "all-reduce", M, 2)]
    assert _rows(again.backward) == [("tp", "all-reduce", M, 4)]


def test_sequence_parallelism_gathers_two_more_inputs() -> None:
    layer = layer_exchanges(GPT3, Strategy(tp=8, sequence_parallel=True))
    pairs = [("tp", "all-gather", M, 2), ("tp", "reduce-scatter", M, 2)]
    assert _rows(layer.forward) == pairs
    assert _rows(layer.backward) == [*pairs, ("tp", "all-gather", M, 2)]
    assert [x.hides for x in layer.backward] == [False, False, True]
    plain = layer_exchanges(GPT3, Strategy(tp=8))
    sent = sum(x.sent_bytes(8) for x in layer.forward)
    assert sent == plain.forward[0].sent_bytes(8) == 2 * 2 * M * 7 / 8


def test_nothing_is_exchanged_without_ranks() -> None:
    for found in (layer_exchanges(GPT3, Strategy()), embedding_exchanges(GPT3, Strategy())):
        assert found.forward == found.backward == ()
    assert gradient_exchanges(Strategy(), 1e9) == ()


def test_parallel_layers_add_up_before_they_are_exchanged() -> None:
    """Attention and feed-forward part of PaLM share one all-reduce."""
    palm = Transformer(
        "PaLM",
        118,
        18432,
        Attention(48, 1, 384, 384),
        FeedForward(73728, True),
        2048,
        is_parallel=True,
    )
    assert _rows(layer_exchanges(palm, Strategy(tp=12)).forward) == [
        ("tp", "all-reduce", 2048 * 18432 * 2, 1)
    ]


def test_context_parallelism_of_llama3() -> None:
    """131,072 tokens over 16 ranks: 8,192 of each, of 8 heads of keys and values one per rank of
    tp: 8192 x (128 + 128) x 2 bytes = 4 MiB in each of 15 rounds, twice that back."""
    long = Transformer(
        "Llama-3-405B", 126, 16384, LLAMA3.attention, LLAMA3.ffn, 131072, LLAMA3.vocabulary
    )
    strategy = Strategy(tp=8, cp=16)
    layer = layer_exchanges(long, strategy)
    assert _rows(layer.forward)[1:] == [("cp", SEND_RECV, 4 * 2**20, 15)]
    assert _rows(layer.backward)[1:] == [("cp", SEND_RECV, 8 * 2**20, 15)]
    whole = 2 * 131072 * (8 * 128) * 2
    assert layer.forward[1].sent_bytes(16) == whole * 15 / (16 * 8)
    gathered = layer_exchanges(long, strategy, habits=Habits(cp="all-gather"))
    assert _rows(gathered.forward)[1:] == [("cp", "all-gather", 64 * 2**20, 1)]
    assert _rows(gathered.backward)[1:] == [
        ("cp", "all-gather", 64 * 2**20, 1),
        ("cp", "reduce-scatter", 64 * 2**20, 1),
    ]
    heads = layer_exchanges(long, strategy, habits=Habits(cp="all-to-all"))
    queries = 8192 * 16 * 128 * 2
    assert _rows(heads.forward)[1:] == [
        ("cp", "all-to-all", queries + 4 * 2**20, 1),
        ("cp", "all-to-all", queries, 1),
    ]


def test_more_ranks_than_heads_of_keys_hold_copies() -> None:
    """Of 8 heads of keys each of 16 ranks holds one."""
    [_, ring] = layer_exchanges(LLAMA3, Strategy(tp=16, cp=2)).forward
    assert ring.size_bytes == 4096 * 256 * 2


def test_attention_that_is_run_again_exchanges_again() -> None:
    selective = Strategy(cp=4, recompute=Recompute.SELECTIVE, flash_attention=False)
    assert len(layer_exchanges(LLAMA3, selective).backward) == 2
    fused = Strategy(cp=4, recompute=Recompute.SELECTIVE, flash_attention=True)
    assert len(layer_exchanges(LLAMA3, fused).backward) == 1


def test_all_to_all_of_deepseek_v3() -> None:
    """4,096 tokens x 8 experts x 7,168 numbers: 234,881,024 bytes out in fp8, twice that back in
    bf16, forward and backward; to 4 nodes at most goes half of each over the NICs."""
    formats = Formats(dispatch_bytes=1, combine_bytes=2)
    strategy = Strategy(dp=128, pp=16, ep=64)
    layer = layer_exchanges(
        DEEPSEEK_V3,
        strategy,
        has_experts=True,
        formats=formats,
        habits=Habits(experts_on_at_most=4),
    )
    out = 4096 * 8 * 7168
    rows = [("ep", "all-to-all", out, 1), ("ep", "all-to-all", 2 * out, 1)]
    assert out == 234_881_024
    assert _rows(layer.forward) == _rows(layer.backward) == rows
    assert [float(x.far_bytes) for x in layer.forward] == [out / 2, out]
    assert layer.forward[0].sent_bytes(64) == out * 63 / 64
    assert layer_exchanges(DEEPSEEK_V3, strategy, formats=formats).forward == ()


def test_experts_with_tensor_parallelism() -> None:
    """tp 4 with sequence parallelism: every rank sends its quarter of the tokens. Attention and the
    shared expert are exchanged over tp; over etp 2 all tokens of both ranks are gathered."""
    strategy = Strategy(tp=4, dp=4, ep=4, etp=2, sequence_parallel=True)
    quarter = 4096 / 4 * 8 * 7168 * 2
    size = 4096 * 7168 * 2
    assert _rows(layer_exchanges(DEEPSEEK_V3, strategy, has_experts=True).forward) == [
        ("tp", "all-gather", size, 2),
        ("tp", "reduce-scatter", size, 2),
        ("ep", "all-to-all", quarter, 1),
        ("etp", "all-gather", 2 * quarter, 1),
        ("ep", "all-to-all", quarter, 1),
        ("etp", "reduce-scatter", 2 * quarter, 1),
    ]


def test_sends_between_stages() -> None:
    """v chunks of a stage go on, but for the last one's last and, backward, the first one's first."""
    strategy = Strategy(tp=8, pp=4, interleave=3)
    whole = pipeline_exchanges(GPT3, strategy)
    assert _rows(whole.forward) == _rows(whole.backward) == [("pp", SEND_RECV, M, 3)]
    counts = [
        [int(side[0].count) for side in (found.forward, found.backward)]
        for found in (pipeline_exchanges(GPT3, strategy, stage) for stage in range(4))
    ]
    assert counts == [[3, 2], [3, 3], [3, 3], [2, 3]]
    assert pipeline_exchanges(GPT3, Strategy(pp=2), 1).forward == ()
    split = pipeline_exchanges(GPT3, Strategy(tp=8, pp=4, sequence_parallel=True))
    assert _rows(split.forward) == [("pp", SEND_RECV, M / 8, 1)]
    scattered = pipeline_exchanges(GPT3, Strategy(tp=8, pp=4), habits=Habits(scatter_gather=True))
    assert _rows(scattered.forward) == [("pp", SEND_RECV, M / 8, 1), ("tp", "all-gather", M, 1)]
    first = pipeline_exchanges(
        GPT3, Strategy(tp=8, pp=4), stage=0, habits=Habits(scatter_gather=True)
    )
    assert [x.axis for x in first.forward] == ["pp"]  # sends, and gets nothing
    assert [x.axis for x in first.backward] == ["tp"]  # gets, and sends nothing


def test_embedding_and_logits() -> None:
    plain, split = Strategy(tp=8), Strategy(tp=8, sequence_parallel=True)
    assert _rows(embedding_exchanges(GPT3, plain).forward) == [("tp", "all-reduce", M, 1)]
    assert embedding_exchanges(GPT3, plain).backward == ()
    assert _rows(embedding_exchanges(GPT3, split).forward) == [("tp", "reduce-scatter", M, 1)]
    assert _rows(embedding_exchanges(GPT3, split).backward) == [("tp", "all-gather", M, 1)]
    assert _rows(logits_exchanges(GPT3, plain).forward) == [("tp", "all-reduce", 2048 * 4, 3)]
    assert _rows(logits_exchanges(GPT3, plain).backward) == [("tp", "all-reduce", M, 1)]
    assert _rows(logits_exchanges(GPT3, split).forward)[0] == ("tp", "all-gather", M, 1)
    assert _rows(logits_exchanges(GPT3, split).backward) == [
        ("tp", "reduce-scatter", M, 1),
        ("tp", "all-gather", M, 1),
    ]


def test_tied_embeddings_meet_once_per_step() -> None:
    strategy = Strategy(tp=8, pp=4)
    assert _rows(tied_gradient_exchange(GPT3, strategy)) == [
        ("pp", SEND_RECV, 51200 * 12288 / 8 * 4, 1)
    ]
    assert tied_gradient_exchange(GPT3, Strategy(tp=8)) == ()
    assert tied_gradient_exchange(LLAMA3, strategy) == ()


@pytest.mark.parametrize(
    ("zero", "m", "once", "reshards", "multiple"),
    [
        (0, 1, False, True, 2),
        (1, 1, False, True, 2),
        (2, 1, False, True, 2),
        (3, 1, False, True, 3),
        (0, 8, False, True, 2),
        (1, 8, False, True, 2),
        (2, 8, False, True, 9),
        (2, 8, True, True, 2),
        (3, 8, False, True, 24),
        (3, 8, False, False, 16),
        (3, 8, True, True, 17),
    ],
)
def test_zero_by_hand(zero: int, m: int, once: bool, reshards: bool, multiple: float) -> None:
    """Rajbhandari's 2, 2 and 3 psi at one microbatch with equal bytes; at 8, ZeRO 2 reduces 8
    times, ZeRO 3 gathers 16 times and reduces 8 times. 4 ranks send 3/4 of each."""
    psi = 1000
    strategy = Strategy(dp=4, global_batch=4 * m, zero=zero)
    found = gradient_exchanges(
        strategy,
        psi,
        formats=Formats(gradient_bytes=2, weight_bytes=2),
        habits=Habits(reduces_once=once, reshards=reshards),
    )
    assert {x.axis for x in found} == {DP_CP}
    assert sum(x.sent_bytes(4) for x in found) == multiple * psi * 2 * 3 / 4


def test_megatron_reduces_gradients_in_fp32() -> None:
    found = gradient_exchanges(Strategy(dp=2, cp=2, global_batch=2, zero=1), 100)
    assert _rows(found) == [("dp_cp", "reduce-scatter", 400, 1), ("dp_cp", "all-gather", 200, 1)]


def test_experts_are_exchanged_over_those_that_hold_them() -> None:
    strategy = Strategy(tp=2, cp=2, dp=4, ep=4, global_batch=4)
    found = gradient_exchanges(strategy, 100, 1000)
    assert _rows(found) == [("dp_cp", "all-reduce", 400, 1), ("edp", "all-reduce", 4000, 1)]
    assert strategy.edp == 4


def test_arrays_of_strategies_are_each_as_alone() -> None:
    tp, cp, split = np.array([1, 4, 8]), np.array([2, 1, 2]), np.array([False, True, False])
    recompute = np.array([0, 2, 2])
    many = layer_exchanges(
        LLAMA3, Strategy(tp=tp, cp=cp, sequence_parallel=split, recompute=recompute)
    )

    def totals(found: tuple[Exchange, ...], tp: object, cp: object) -> dict[str, object]:
        sizes: dict[str, object] = {}
        for x in found:
            key = f"{x.axis} {x.kind}"
            sizes[key] = sizes.get(key, 0.0) + x.sent_bytes({"tp": tp, "cp": cp}[x.axis])
        return sizes

    whole = totals(many.backward, tp, cp)
    for i in range(3):
        alone = layer_exchanges(
            LLAMA3,
            Strategy(
                tp=int(tp[i]),
                cp=int(cp[i]),
                sequence_parallel=bool(split[i]),
                recompute=int(recompute[i]),
            ),
        )
        own = totals(alone.backward, int(tp[i]), int(cp[i]))
        assert {key: value[i] for key, value in whole.items() if value[i]} == own


CLUSTER = parse_topology("SW(8)_[SW(16)_SW(8)]")


def test_groups_of_tp_and_dp_alone_are_those_of_c6() -> None:
    fabric = parse_topology("RI(4)_FC(8)_RI(4)_SW(32)")
    for tp in (1, 2, 4, 16, 32, 128, 4096):
        degrees = {"tp": tp, "dp": 4096 // tp}
        old, new = communicators_from_degrees(fabric, degrees), placed_groups(fabric, degrees)
        for axis in degrees:
            assert new[axis] == old.group(Phase.FORWARD, axis)


def test_expert_groups_are_neighbours_of_a_stage() -> None:
    """tp 4 and ep 16: two neighbouring nodes; edp leads to every second node of the stage."""
    groups = placed_groups(CLUSTER, {"tp": 4, "dp": 32, "pp": 8, "ep": 16})
    assert groups["ep"].sizes == (8, 2, 1)
    assert (groups["edp"].sizes, groups["edp"].strides) == ((1, 8, 1), (8, 2, 1))
    etp = placed_groups(CLUSTER, {"tp": 4, "dp": 32, "pp": 8, "ep": 16, "etp": 4})
    assert etp["etp"] == etp["tp"]
    assert (etp["ep"].sizes, etp["ep"].strides) == ((2, 8, 1), (4, 1, 1))
    assert etp["edp"].sizes == (1, 2, 1)


def test_cp_and_dp_together() -> None:
    groups = placed_groups(CLUSTER, {"tp": 2, "cp": 8, "dp": 8, "pp": 8})
    assert (groups["cp"].sizes, groups["dp"].sizes) == ((4, 2, 1), (1, 8, 1))
    assert (groups[DP_CP].sizes, groups[DP_CP].strides) == ((4, 16, 1), (2, 1, 1))


def test_orders_of_axes() -> None:
    """With pp inside dp a stage is every eighth node."""
    order = ("tp", "cp", "pp", "dp")
    groups = placed_groups(CLUSTER, {"tp": 8, "pp": 16, "dp": 8, "ep": 64}, order)
    assert groups["pp"].sizes == (1, 16, 1)
    assert groups["dp"].sizes == (1, 1, 8)
    assert groups["ep"].sizes == (8, 1, 8)


@pytest.mark.parametrize(
    ("degrees", "order", "message"),
    [
        ({"tp": 8, "dp": 64}, ("tp", "cp", "dp", "pp"), "tp 8 x cp 1 x dp 64 x pp 1 = 512 NPUs"),
        ({"tp": 3, "dp": 1024}, ("tp", "cp", "dp", "pp"), "3072 NPUs"),
        ({"tp": 16, "dp": 64, "ep": 3}, ("tp", "cp", "dp", "pp"), "expected a divisor of tp x cp x dp = 1024"),
        ({"tp": 8, "dp": 128}, ("tp", "dp"), "expected each of tp, cp, dp and pp once"),
        ({"tp": 2, "pp": 2, "dp": 256, "ep": 4}, ("tp", "pp", "cp", "dp"), "put pp last"),
        ({"tp": 2, "cp": 2, "dp": 256}, ("cp", "tp", "dp", "pp"), "dp_cp at unequal distances"),
    ],
)  # fmt: skip
def test_what_cannot_be_placed_is_refused(
    degrees: dict[str, int], order: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        placed_groups(CLUSTER, degrees, order)


def test_examples_of_the_docs_run() -> None:
    page = Path(__file__).parents[2] / "docs" / "parallelism.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0
