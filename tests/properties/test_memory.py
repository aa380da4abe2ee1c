"""Memory in closed form, over arrays, against a slow twin that lists tensors and runs events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.workload.memory.habits import (
    FSDP_MEMORY,
    INTERNEVO_MEMORY,
    MEGATRON_MEMORY,
    NEMO_MEMORY,
    MemoryHabits,
)
from libra_planner.workload.memory.npu import memory
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer
from tests import memory_twin
from tests.conftest import random_cases

ATTENTIONS = [
    Attention(16, 16, 64, 64, has_bias=True),
    Attention(16, 4, 64, 64),
    Attention(16, 2, 128, 128, has_qk_norm=True),
    Attention(16, 16, 96, 64, q_rank=384, kv_rank=128, rope_dim=32),
]
FEED_FORWARDS = [FeedForward(4096, has_bias=True), FeedForward(2752, is_gated=True)]
EXPERTS = [Experts(16, 2, 512), Experts(32, 4, 256, shared_width=512, is_gated=False)]


@st.composite
def models(draw: st.DrawFn, n_layers: int) -> Transformer:
    """Any shape of that many layers."""
    experts = draw(st.sampled_from([None, *EXPERTS]))
    return Transformer(
        "random",
        n_layers,
        1024,
        draw(st.sampled_from(ATTENTIONS)),
        draw(st.sampled_from(FEED_FORWARDS)),
        draw(st.sampled_from([512, 4096])),
        vocabulary=draw(st.sampled_from([0, 1000, 50000])),
        experts=experts,
        n_dense_layers=draw(st.integers(0, min(3, n_layers))) if experts else 0,
        is_tied=draw(st.booleans()),
        has_norm_bias=draw(st.booleans()),
        is_parallel=draw(st.booleans()) and experts is None,
        n_mtp=draw(st.integers(0, 1)),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Transformer, Strategy, MemoryHabits]:
    """A model with a strategy that divides it; chunks in turns hold equal layers."""
    pp = draw(st.sampled_from([1, 2, 3, 4]))
    interleave = draw(st.sampled_from([1, 1, 2, 3])) if pp > 1 else 1
    a_chunk = draw(st.integers(1, 3))
    n_layers = pp * interleave * a_chunk
    if interleave == 1:
        n_layers += draw(st.integers(0, pp - 1))
    model = draw(models(n_layers))
    if interleave > 1:
        model = replace(model, n_dense_layers=0)
    tp, cp, dp = (draw(st.sampled_from([1, 2, 4])) for _ in range(3))
    ep = draw(st.sampled_from([one for one in (1, 2, 4) if tp * cp * dp % one == 0]))
    etp = draw(st.sampled_from([one for one in (1, 2) if tp * cp * dp % (ep * one) == 0]))
    microbatch = draw(st.sampled_from([1, 2]))
    n_microbatches = pp * draw(st.integers(1, 4)) if interleave > 1 else draw(st.integers(1, 9))
    strategy = Strategy(
        tp=tp,
        cp=cp,
        dp=dp,
        pp=pp,
        ep=ep,
        etp=etp,
        microbatch=microbatch,
        global_batch=dp * microbatch * n_microbatches,
        interleave=interleave,
        zero=draw(st.integers(0, 3)),
        recompute=draw(st.sampled_from(list(Recompute))),
        sequence_parallel=draw(st.booleans()) and tp > 1,
        flash_attention=draw(st.booleans()),
        dtype=draw(st.sampled_from(["bf16", "fp8"])),
    )
    return (
        model,
        strategy,
        draw(st.sampled_from([MEGATRON_MEMORY, NEMO_MEMORY, FSDP_MEMORY, INTERNEVO_MEMORY])),
    )


@given(cases())
@random_cases(100)
def test_the_closed_form_is_the_twin(case: tuple[Transformer, Strategy, MemoryHabits]) -> None:
    model, strategy, habits = case
    found = memory(model, strategy, habits=habits)
    total, _ = memory_twin.fullest(model, strategy, habits)
    assert found.total_bytes == pytest.approx(total, rel=1e-12)
    of_stage = memory_twin.stage_bytes(model, strategy, habits, found.stage)
    assert found.total_bytes == pytest.approx(of_stage, rel=1e-12)


@given(st.integers(0, 2**32 - 1))
@random_cases(20)
def test_many_strategies_at_once_are_each_one_alone(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    n, model = 40, Transformer(
        "moe", 27, 1024, ATTENTIONS[3], FEED_FORWARDS[1], 4096, vocabulary=32000,
        experts=EXPERTS[1], n_dense_layers=2,
    )  # fmt: skip
    columns = {name: drawn.choice([1, 2, 4], n) for name in ("tp", "cp", "dp", "pp", "microbatch")}
    columns |= {"zero": drawn.integers(0, 4, n), "recompute": drawn.integers(0, 3, n)}
    columns |= {"sequence_parallel": drawn.random(n) < 0.5}
    found = memory(model, Strategy(**columns, global_batch=512), habits=INTERNEVO_MEMORY)
    for i in range(n):
        one = Strategy(**{name: column[i] for name, column in columns.items()}, global_batch=512)
        alone = memory(model, one, habits=INTERNEVO_MEMORY)
        assert found.total_bytes[i] == pytest.approx(alone.total_bytes, rel=1e-12)
        assert found.stage[i] == alone.stage
        assert found.activations_bytes[i] == pytest.approx(alone.activations_bytes, rel=1e-12)


def test_degrees_of_experts_alone_may_be_many() -> None:
    model = Transformer("moe", 4, 1024, ATTENTIONS[1], FEED_FORWARDS[1], 4096, experts=EXPERTS[0])
    found = memory(model, Strategy(dp=8, ep=np.array([1, 2, 4, 8]), global_batch=8))
    assert found.total_bytes.shape == (4,)
    assert np.all(np.diff(found.total_bytes) < 0)


def test_every_field_that_is_many_gives_as_many() -> None:
    model = Transformer("gpt", 4, 1024, ATTENTIONS[0], FEED_FORWARDS[0], 4096, vocabulary=50000)
    for name in ("global_batch", "microbatch", "interleave", "zero", "recompute", "etp", "cp"):
        many = Strategy(**{"pp": 2, "global_batch": 64, name: np.array([1, 2])})
        assert memory(model, many, habits=MEGATRON_MEMORY).total_bytes.shape == (2,), name


def test_experts_over_more_ranks_than_a_stage_has_stop_no_search() -> None:
    """Such a strategy is refused elsewhere; the others of the array keep their memory."""
    model = Transformer("moe", 4, 1024, ATTENTIONS[1], FEED_FORWARDS[1], 4096, experts=EXPERTS[0])
    found = memory(model, Strategy(dp=2, ep=np.array([2, 8]), zero=1, global_batch=8))
    alone = memory(model, Strategy(dp=2, ep=2, zero=1, global_batch=8))
    assert found.total_bytes[0] == alone.total_bytes
