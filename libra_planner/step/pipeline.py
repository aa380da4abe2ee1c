"""Stages of a pipeline, their layers, and the time of a step over them (C17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError, nearest_multiples
from libra_planner.step.algebra import Algebra, Time
from libra_planner.workload.strategy import Count, PipelineSchedule, Strategy
from libra_planner.workload.transformer import Transformer

ZERO_BUBBLE_FILL = {PipelineSchedule.ZERO_BUBBLE_H1: 1, PipelineSchedule.ZERO_BUBBLE_H2: 2}
"""Weight gradients of a microbatch that fill what a stage waits for the next one."""


@dataclass(frozen=True)
class Stage(Generic[Time]):
    """What one microbatch takes on one stage, all its chunks together.

    Parameters
    ----------
    forward : with what it exchanges and, unless that overlaps, sends and receives.
    backward : of the input's gradients, the same; all of the backward pass but ``weights``.
    weights : of the weights' gradients.
    n : stages of this kind, which stand once; 0 for one that a candidate does not have.
    """

    forward: Time
    backward: Time
    weights: Time
    n: Count = 1


def is_schedulable(strategy: Strategy) -> NDArray[np.bool_]:
    """Whether the schedule of each strategy can run: see :func:`refuse_unschedulable`, shape (n,).

    Examples
    --------
    >>> many = Strategy(pp=4, interleave=np.array([1, 2]), global_batch=6)
    >>> is_schedulable(many).tolist()
    [True, False]
    """
    v, p, m = (np.asarray(x) for x in (strategy.interleave, strategy.pp, strategy.n_microbatches))
    if strategy.schedule in ZERO_BUBBLE_FILL:
        return np.asarray(v == 1)
    return np.asarray((v == 1) | ((p > 1) & (m % p == 0)))


def batch_fault(global_batch: int, dp: int, microbatch: int, n_stages: int = 1) -> Fault | None:
    """What is wrong with sequences that replicas and microbatches do not divide, if anything.

    Parameters
    ----------
    n_stages : that have to divide the microbatches, too: those of an interleaved schedule.

    Examples
    --------
    >>> str(batch_fault(1000, 64, 1, n_stages=4)).partition("; ")[2]
    'write 768 or 1024'
    """
    if global_batch >= dp * microbatch and global_batch % (dp * microbatch) == 0:
        return None
    expected = f"expected a multiple of dp {dp} x microbatch {microbatch}"
    if n_stages > 1:
        expected += f" x pp {n_stages}, as the schedule is interleaved"
    fix = f"write {nearest_multiples(global_batch, dp * microbatch * n_stages)}"
    return Fault(f"got {global_batch} sequences", expected, fix, "global_batch")


def refuse_unschedulable(strategy: Strategy) -> None:
    """Refuse one strategy whose schedule cannot run (C17).

    Raises
    ------
    SpecError
        For chunks with zero bubble or with one stage, and for microbatches of an interleaved
        schedule that the number of stages does not divide.
    """
    if np.all(is_schedulable(strategy)):
        return
    v, p, m = strategy.interleave, strategy.pp, strategy.n_microbatches
    path = "parallelism.interleave"
    if strategy.schedule in ZERO_BUBBLE_FILL:
        expected = f"expected 1 with the schedule {strategy.schedule.value}"
        fault = Fault(f"got {v} chunks of a stage", expected, "write interleave: 1", path)
    elif p == 1:
        fix = "write interleave: 1, or more stages"
        fault = Fault(f"got {v} chunks of a stage with pp 1", "expected 1", fix, path)
    else:
        expected = f"expected a multiple of the {p} stages with interleave {v}"
        one = strategy
        batches = nearest_multiples(int(one.global_batch), int(one.dp * one.microbatch * p))
        fix = f"write a global batch of {batches}, or interleave: 1"
        fault = Fault(f"got {m} microbatches", expected, fix, path)
    raise SpecError(fault)


@dataclass(frozen=True)
class StageLayers:
    """What a kind of stage holds, shape () or (n,) each.

    Parameters
    ----------
    n : stages of the kind; 0 where a strategy has none.
    n_dense, n_experts : layers of a stage without and with experts.
    has_embedding, has_logits : 1 where it is the first, the last.
    """

    n: Any
    n_dense: Any
    n_experts: Any
    has_embedding: Any = 0
    has_logits: Any = 0


def stage_layers(model: Transformer, strategy: Strategy) -> tuple[StageLayers, ...]:
    """First, middle and last stages, layers spread evenly (C17).

    What does not divide goes to the middle stages, since the first and the last do more. Layers
    without experts are the first ones.

    Examples
    --------
    Llama 3 405B on 16 stages: 7 layers, 14 stages of 8, 7 layers.

    >>> from libra_planner.workload.transformer import Attention, FeedForward
    >>> llama = Transformer("l", 126, 16384, Attention(128, 8, 128, 128), FeedForward(53248), 8192)
    >>> [(int(x.n), int(x.n_dense)) for x in stage_layers(llama, Strategy(pp=16)) if x.n]
    [(1, 7), (14, 8), (1, 7)]
    """
    n_stages = np.asarray(strategy.pp)
    least, left = model.n_layers // n_stages, model.n_layers % n_stages
    n_middle = np.maximum(n_stages - 2, 0)
    n_more = np.minimum(left, n_middle)
    ends = left - n_more
    first, last = least + (ends > 1), least + (ends > 0)
    only = n_stages == 1
    first, last = np.where(only, model.n_layers, first), np.where(only, 0, last)
    if model.is_interleaved:
        return _spread(
            model, ((1, first), (n_more, least + 1), (n_middle - n_more, least), (1 - only, last))
        )
    n_dense = model.n_layers - model.n_expert_layers
    in_first = np.minimum(first, n_dense)
    beyond = n_dense - in_first
    counts = ((n_more, least + 1), (n_middle - n_more, least))
    found = [StageLayers(1, in_first, first - in_first, 1, only * 1)]
    for n, size in counts:
        full = np.minimum(n, beyond // np.maximum(size, 1))
        part = np.where(full < n, np.minimum(beyond - full * size, size), 0)
        has_part = ((part > 0) & (n > full)) * 1
        found.append(StageLayers(full, size, 0 * size))
        found.append(StageLayers(has_part, part, size - part))
        found.append(StageLayers(n - full - has_part, 0 * size, size))
        beyond = beyond - full * size - part
    in_last = np.minimum(beyond, last)
    found.append(StageLayers(1 - only, in_last, last - in_last, 0, 1))
    return tuple(one for one in found if np.any(np.asarray(one.n) > 0))


def _spread(model: Transformer, kinds: Sequence[tuple[Any, Any]]) -> tuple[StageLayers, ...]:
    """Stages by their number and layers, each with its share of both kinds of layers."""
    share = model.n_expert_layers / model.n_layers
    found = []
    for i, (n, size) in enumerate(kinds):
        is_last = (i == len(kinds) - 1) * 1
        dense, experts = size * (1 - share), size * share
        found.append(StageLayers(n, dense, experts, (i == 0) * 1, is_last))
    only = np.asarray(kinds[-1][0]) == 0
    found[0] = replace(found[0], has_logits=only * 1)
    return tuple(one for one in found if np.any(np.asarray(one.n) > 0))


def second_stage(stages: Sequence[StageLayers]) -> tuple[Any, Any]:
    """Layers without and with experts of the second kind of stages, or of the only one."""
    n_dense, n_experts = stages[0].n_dense, stages[0].n_experts
    for one in reversed(stages[1:]):
        is_there = np.asarray(one.n) > 0
        n_dense = np.where(is_there, one.n_dense, n_dense)
        n_experts = np.where(is_there, one.n_experts, n_experts)
    return n_dense, n_experts


def pipeline_time(
    algebra: Algebra[Time],
    stages: Sequence[Stage[Time]],
    n_microbatches: Count,
    interleave: Count = 1,
    schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B,
) -> Time:
    """Time of all microbatches, without the exchange of gradients and the optimizer.

    F, B and W are a stage's times for one microbatch (W: gradients of weights), of p stages with v
    chunks and m microbatches. 1F1B and interleaved (arXiv 2104.04473) take

        (m - 1/v) max(F + B + W) + (1/v) sum(F + B + W).

    Zero bubble (arXiv 2401.10241) takes, with j = 1 (H1) or 2 (H2) and equal stages,
    (m + p - 1)(F + B) + (m - j (p - 1)) W: a bubble of (p - 1)(F + B - j W). That is
    from a stage's first to its last pass; its next step begins when its own ends.

    1F1B and interleaved are exact for equal stages, an upper bound where stages differ by a factor
    of a few and each has equal chunks. Zero bubble is exact for equal stages where W is at most F
    and B. For others ``docs/parallelism.md`` says how large the gap is.

    Parameters
    ----------
    interleave : chunks of a stage; 1 with zero bubble.

    Examples
    --------
    Four equal stages, 8 microbatches: a bubble of 3/8, of 3/16 with 2 chunks.

    >>> from libra_planner.step.algebra import Numbers
    >>> stages = [Stage(1.0, 1.0, 1.0, n=4)]
    >>> [float(pipeline_time(Numbers(), stages, 8, chunks)) for chunks in (1, 2)]
    [33.0, 28.5]
    >>> h1, h2 = PipelineSchedule.ZERO_BUBBLE_H1, PipelineSchedule.ZERO_BUBBLE_H2
    >>> [float(pipeline_time(Numbers(), stages, 8, schedule=one)) for one in (h1, h2)]
    [27.0, 24.0]
    """
    passes = [_present(algebra, (x.forward, x.backward, x.weights), x.n) for x in stages]
    if schedule in ZERO_BUBBLE_FILL:
        fill = ZERO_BUBBLE_FILL[schedule]
        return _zero_bubble(algebra, stages, passes, n_microbatches, fill)
    once = algebra.total(
        algebra.times(stage.n, one) for stage, one in zip(stages, passes, strict=True)
    )
    return in_order_time(algebra, algebra.longest(passes), once, n_microbatches, interleave)


def in_order_time(
    algebra: Algebra[Time], busiest: Time, once: Time, n_microbatches: Count, interleave: Count = 1
) -> Time:
    """1F1B and interleaved: (m - 1/v) of the busiest stage, and 1/v of one pass through all.

    Parameters
    ----------
    busiest : one microbatch on the stage that takes longest, F + B + W.
    once : one microbatch on all stages, one after the other.

    Examples
    --------
    >>> from libra_planner.step.algebra import Numbers
    >>> float(in_order_time(Numbers(), 3.0, 12.0, 8, 2))
    28.5
    """
    last = 1 / np.asarray(interleave)
    steady = algebra.times(n_microbatches - last, busiest)
    return algebra.total([steady, algebra.times(last, once)])


def _zero_bubble(
    algebra: Algebra[Time],
    stages: Sequence[Stage[Time]],
    passes: Sequence[Time],
    n_microbatches: Count,
    fill: int,
) -> Time:
    """Without a negative term: (m + p - 1)(F + B) + (m - j (p - 1)) W, at least m (F + B + W)."""
    m, n_stages = np.asarray(n_microbatches), sum(np.asarray(stage.n) for stage in stages)
    n_whole = np.maximum(m - fill * (n_stages - 1), 1)
    waits = np.minimum(n_stages - 1, 1)  # One stage has nothing to wait for.
    thin = [_present(algebra, (stage.forward, stage.backward), stage.n) for stage in stages]
    weights = [_present(algebra, (stage.weights,), stage.n) for stage in stages]
    filled = [
        algebra.times(waits * (n_whole - 1), algebra.longest(passes)),
        algebra.times(waits * (m - n_whole), algebra.longest(thin)),
        *(algebra.times(waits * stage.n, one) for stage, one in zip(stages, thin, strict=True)),
        algebra.times(waits, algebra.longest(weights)),
    ]
    return algebra.longest([algebra.total(filled), algebra.times(m, algebra.longest(passes))])


def _present(algebra: Algebra[Time], terms: Sequence[Time], n: Count) -> Time:
    """Sum of terms of a kind of stage; nothing where there is none."""
    return algebra.times(np.minimum(n, 1), algebra.total(terms))
