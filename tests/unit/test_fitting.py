"""What would make a strategy fit an NPU's memory."""

from __future__ import annotations

import numpy as np
import pytest

from libra_planner.workload.memory.fitting import what_would_fit
from libra_planner.workload.memory.npu import memory
from libra_planner.workload.strategy import Recompute, Strategy
from libra_planner.workload.transformer import Attention, FeedForward, Transformer

GIB = 2**30
LLAMA_8B = Transformer(
    "8b", 32, 4096, Attention(32, 8, 128, 128), FeedForward(14336, is_gated=True), 8192, 128256
)
LLAMA_405B = Transformer(
    "405b", 126, 16384, Attention(128, 8, 128, 128), FeedForward(53248, is_gated=True), 8192, 128256
)


def test_what_fits_needs_nothing() -> None:
    assert what_would_fit(LLAMA_8B, Strategy(), 400 * GIB) == ()


def test_every_suggestion_fits_keeps_the_npus_and_goes_no_farther_than_it_must() -> None:
    start = Strategy(dp=8, microbatch=4, global_batch=64)
    found = what_would_fit(LLAMA_8B, start, 200 * GIB)
    changes = [one.changes for one in found]
    assert changes == [
        ("recompute: full",),
        ("microbatch: 1",),
        ("tp: 2, dp: 4, sequence_parallel: true",),
        ("pp: 4, dp: 2",),
        ("cp: 4, dp: 2",),
    ]
    for one in found:
        assert one.strategy.n_npus == 8
        assert one.memory == memory(LLAMA_8B, one.strategy)
        assert one.memory.fits(200 * GIB)


def test_directions_are_gone_in_turn_where_none_is_enough() -> None:
    start = Strategy(tp=2, dp=512, microbatch=2, global_batch=1024)
    [found] = what_would_fit(LLAMA_405B, start, 30 * GIB)
    assert found.changes == (
        "sequence_parallel: true",
        "recompute: full",
        "zero: 3",
        "microbatch: 1",
        "tp: 4, dp: 256, sequence_parallel: true",
    )
    assert found.memory.fits(30 * GIB)
    assert found.strategy.recompute is Recompute.FULL


def test_there_may_be_no_way() -> None:
    assert what_would_fit(LLAMA_405B, Strategy(), 80 * GIB) == ()


@pytest.mark.parametrize("gib", np.arange(20, 140, 20))
def test_a_larger_npu_never_has_fewer_ways(gib: int) -> None:
    start = Strategy(dp=8, global_batch=64)
    smaller = what_would_fit(LLAMA_8B, start, gib * GIB)
    larger = what_would_fit(LLAMA_8B, start, (gib + 10) * GIB)
    fits = memory(LLAMA_8B, start).fits((gib + 10) * GIB)
    assert fits or len(larger) >= len(smaller)
