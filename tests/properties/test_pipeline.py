"""Closed forms of pipelines (C17) against simulated schedules: exact where they say so."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libra_planner.step.algebra import Numbers
from libra_planner.step.pipeline import Stage, pipeline_time
from libra_planner.workload.strategy import PipelineSchedule
from tests.pipelines import (
    Chunk,
    chunk_layers,
    interleaved,
    longest_span_s,
    makespan_s,
    makespan_with_sends_s,
    one_f_one_b,
    zero_bubble,
)

ONE, H1, H2 = PipelineSchedule

TIMES = st.floats(0.1, 5.0)
FEW = settings(max_examples=200)


def _closed_s(chunks: list[list[Chunk]], m: int, schedule: PipelineSchedule = ONE) -> float:
    stages = [
        Stage(
            *(sum(getattr(x, name) for x in stage) for name in ("forward", "backward", "weights"))
        )
        for stage in chunks
    ]
    return float(pipeline_time(Numbers(), stages, m, len(chunks[0]), schedule))


def _simulated_s(chunks: list[list[Chunk]], m: int, schedule: PipelineSchedule = ONE) -> float:
    p, v = len(chunks), len(chunks[0])
    if schedule is not ONE:
        fill = 1 if schedule is H1 else 2
        return longest_span_s([zero_bubble(p, m, fill, s) for s in range(p)], chunks)
    if v > 1:
        return makespan_s([interleaved(p, m, v, s) for s in range(p)], chunks)
    return makespan_s([one_f_one_b(p, m, s) for s in range(p)], chunks)


@given(p=st.integers(1, 8), m=st.integers(1, 20), f=TIMES, b=TIMES, w=TIMES)
@FEW
def test_1f1b_is_exact_for_equal_stages(p: int, m: int, f: float, b: float, w: float) -> None:
    chunks = [[Chunk(f, b, w)]] * p
    assert _closed_s(chunks, m) == pytest.approx(_simulated_s(chunks, m), rel=1e-12)


@given(
    p=st.integers(2, 6), v=st.integers(2, 5), rounds=st.integers(1, 4), f=TIMES, b=TIMES, w=TIMES
)
@FEW
def test_interleaved_is_exact_for_equal_stages(
    p: int, v: int, rounds: int, f: float, b: float, w: float
) -> None:
    chunks = [[Chunk(f, b, w)] * v] * p
    closed = _closed_s(chunks, p * rounds)
    assert closed == pytest.approx(_simulated_s(chunks, p * rounds), rel=1e-12)


@given(
    schedule=st.sampled_from((H1, H2)),
    p=st.integers(1, 8),
    m=st.integers(1, 24),
    f=TIMES,
    b=TIMES,
    share=st.floats(0.0, 1.0),
)
@FEW
def test_zero_bubble_is_exact_for_equal_stages(
    schedule: PipelineSchedule, p: int, m: int, f: float, b: float, share: float
) -> None:
    """Where gradients of weights take no longer than either other pass, of few microbatches too."""
    chunks = [[Chunk(f, b, share * min(f, b))]] * p
    closed = _closed_s(chunks, m, schedule)
    assert closed == pytest.approx(_simulated_s(chunks, m, schedule), rel=1e-12)


@given(
    sizes=st.lists(st.floats(0.5, 1.5), min_size=1, max_size=8),
    v=st.integers(1, 4),
    rounds=st.integers(1, 4),
    extra=st.integers(0, 7),
    backward=st.floats(0.5, 3.0),
)
@FEW
def test_unequal_stages_take_no_longer_than_the_closed_form(
    sizes: list[float], v: int, rounds: int, extra: int, backward: float
) -> None:
    """Where stages differ by a factor and each has equal chunks. Of interleaved stages one of which
    takes 60 times another's time, simulated times 1 % above the closed form are known."""
    m = len(sizes) * rounds + (extra if v == 1 else 0)
    v = v if len(sizes) > 1 else 1
    chunks = [[Chunk(x, backward * x, 0.0)] * v for x in sizes]
    assert _simulated_s(chunks, m) <= _closed_s(chunks, m) * (1 + 1e-12)


@given(
    sizes=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=8),
    m=st.integers(1, 24),
    backward=st.floats(0.5, 3.0),
)
@FEW
def test_1f1b_of_any_sizes_takes_no_longer(sizes: list[float], m: int, backward: float) -> None:
    chunks = [[Chunk(x, backward * x, 0.0)] for x in sizes]
    assert _simulated_s(chunks, m) <= _closed_s(chunks, m) * (1 + 1e-12)


@given(sizes=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=8), extra=st.integers(0, 12))
@FEW
def test_zero_bubble_h2_is_exact_for_stages_of_any_size(sizes: list[float], extra: int) -> None:
    """Of passes that take equally long, from 2p - 1 microbatches on, as many as H2 holds."""
    chunks, m = [[Chunk(x, x, x)] for x in sizes], 2 * len(sizes) - 1 + extra
    assert _closed_s(chunks, m, H2) == pytest.approx(_simulated_s(chunks, m, H2), rel=1e-12)


@given(
    p=st.integers(2, 8), v=st.integers(1, 5), rounds=st.integers(1, 4), logits=st.floats(0.0, 1.5)
)
@FEW
def test_logits_on_top_of_equal_layers_are_exact_with_chunks(
    p: int, v: int, rounds: int, logits: float
) -> None:
    """Up to one and a half layers of logits on the last chunk: exact if each chunk is a layer or
    more and there are several; without chunks an upper bound."""
    chunks = [[Chunk(1.0, 1.0, 1.0)] * v for _ in range(p)]
    chunks[-1][-1] = Chunk(1 + logits, 1 + logits, 1 + logits)
    closed, simulated = _closed_s(chunks, p * rounds), _simulated_s(chunks, p * rounds)
    if v > 1:
        assert closed == pytest.approx(simulated, rel=1e-12)
    assert closed >= simulated * (1 - 1e-12)


GAPS = {
    "1F1B, own shares of forward and backward": (-0.03, 0.35),
    "1F1B, layers and logits": (0.0, 0.35),
    "interleaved, uneven chunks": (-0.40, 0.20),
    "zb-h1, layers and logits": (-0.06, 0.30),
    "zb-h2, layers and logits": (-0.14, 0.30),
}
"""Least and largest gap of the closed form of stages that are not equal, over what is simulated."""


def _cases(name: str, n: int) -> Iterator[tuple[list[list[Chunk]], int, PipelineSchedule]]:
    random.seed(1)
    for _ in range(n):
        p, v, rounds = random.choice((2, 4, 8)), 1, random.randint(1, 6)
        if name.startswith("interleaved"):
            v = random.randint(2, 6)
        layout = chunk_layers(random.randint(p * v, 5 * p * v), p, v)
        sizes = [[float(n_layers) for n_layers in row] for row in layout]
        sizes[-1][-1] += random.uniform(0.0, 1.5)
        if "own shares" in name:
            chunks = [[Chunk(random.random() + 0.5, random.random() + 0.5, 0.5)] for _ in range(p)]
        else:
            chunks = [[Chunk(x, x, x) for x in row] for row in sizes]
        schedule = {"zb-h1": H1, "zb-h2": H2}.get(name.split(",", maxsplit=1)[0], ONE)
        yield chunks, p * rounds, schedule


@pytest.mark.parametrize("name", GAPS)
def test_gaps_of_unequal_stages(name: str) -> None:
    """Printed with ``-s``; docs/parallelism.md has them."""
    gaps = [_closed_s(*case) / _simulated_s(*case) - 1 for case in _cases(name, 300)]
    least, most = GAPS[name]
    mean = sum(gaps) / len(gaps)
    print(f"\n{name}: {min(gaps):+.1%} to {max(gaps):+.1%}, mean {mean:+.1%}")
    assert least - 1e-12 <= min(gaps)
    assert max(gaps) <= most


SENDS = st.floats(0.0, 4.0)


@given(p=st.integers(2, 6), v=st.integers(2, 5), f=TIMES, b=TIMES, sent=SENDS, back=SENDS)
@settings(max_examples=60)
def test_a_microbatch_waits_for_its_sends_one_by_one(
    p: int, v: int, f: float, b: float, sent: float, back: float
) -> None:
    """Of a stage in the middle; with two stages each end sends less, and it is a bound (C17)."""
    chunks = [[Chunk(f, b, 0.0)] * v] * p

    def whole_s(m: int) -> float:
        orders = [interleaved(p, m, v, s) for s in range(p)]
        return makespan_with_sends_s(orders, chunks, sent, back)

    each = (whole_s(12 * p) - whole_s(6 * p)) / (6 * p)
    formula = v * max(f + b, sent + back, f + sent, b + back)
    if p > 2:
        assert each == pytest.approx(formula, rel=1e-9)
    else:
        assert each <= formula * (1 + 1e-9)
