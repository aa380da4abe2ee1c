"""Stages of a pipeline: their layers, and microbatches that wait in them (C17, C19)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.workload.strategy import Count, PipelineSchedule, Strategy
from libra_planner.workload.transformer import Transformer

Numbers = NDArray[Any]


def most_layers(n_layers: int, n_parts: Count) -> Numbers:
    """Layers of the part that has most of them, a stage or a chunk of one.

    Libraries differ in which stages have a layer more than others; memory counts every stage as
    one of these.

    Parameters
    ----------
    n_layers : of the model.
    n_parts : stages, or the chunks of all stages.

    Examples
    --------
    >>> most_layers(126, np.array([1, 8, 9])).tolist()
    [126, 16, 14]
    """
    return np.asarray(-(-n_layers // np.asarray(n_parts)))


def has_equal_chunks(n_layers: int, pp: Count, interleave: Count) -> NDArray[np.bool_]:
    """Whether the chunks of a stage divide the layers of its fullest one (C17).

    Megatron-LM builds equal chunks and nothing else: before it refused others, 80 layers at pp 16
    with 2 chunks trained 64 of them (https://github.com/NVIDIA/Megatron-LM/issues/468). Stages
    that have a layer less than the fullest one have it missing in one of their chunks.

    Parameters
    ----------
    n_layers : of the model.
    pp, interleave : stages, and chunks of each.

    Examples
    --------
    >>> has_equal_chunks(80, 4, np.array([1, 3, 5])).tolist(), bool(has_equal_chunks(126, 16, 8))
    ([True, False, True], True)
    """
    return np.asarray(most_layers(n_layers, pp) % interleave == 0)


def first_dense_layers(model: Transformer, strategy: Strategy, stage: Count) -> Numbers:
    """Layers of a stage that have no experts: a model's first ones, over the first chunks.

    Where layers with and without experts take turns, every stage has its share of both.

    Parameters
    ----------
    model : its shape.
    strategy : its pp and interleave.
    stage : from 0; one, or shape (..., n).

    Examples
    --------
    DeepSeek-V3's 3 dense layers of 61:

    >>> from libra_planner.workload.transformer import Attention, Experts, FeedForward
    >>> deepseek = Transformer("deepseek-v3", 61, 7168, Attention(128, 128, 192, 128),
    ...     FeedForward(18432), 4096, experts=Experts(256, 8, 2048), n_dense_layers=3)
    >>> first_dense_layers(deepseek, Strategy(pp=61), np.arange(5)).tolist()
    [1, 1, 1, 0, 0]
    """
    most = most_layers(model.n_layers, strategy.pp)
    if model.experts is None:
        return np.asarray(most + 0 * stage)
    if model.is_interleaved:
        return np.asarray(model.n_dense_layers / model.n_layers * most + 0 * stage)
    chunk = most_layers(model.n_layers, strategy.pp * strategy.interleave)
    return np.asarray(np.clip(model.n_dense_layers - stage * chunk, 0, chunk))


def microbatches_in_flight(strategy: Strategy, stage: Count) -> Numbers:
    """Microbatches of a whole stage whose activations it keeps at once, at most.

    1F1B: min(m, p - i) at stage i. Interleaved: the forward chunks before the first backward one,
    ((v - 1) p + 2 (p - i - 1) + 1)/v, p (1 + (p - 1)/(p v)) at the first stage (Korthikanti et
    al., arXiv 2205.05198, section 4.2.3). Zero bubble: p with H1, 2p - 1 with H2 (arXiv
    2401.10241, section 2.3), as if weight gradients needed all that input gradients need.

    Parameters
    ----------
    strategy : degrees, batch and schedule.
    stage : from 0; one, or shape (..., n).

    Examples
    --------
    >>> microbatches_in_flight(Strategy(pp=4, global_batch=8), np.arange(4)).tolist()
    [4.0, 3.0, 2.0, 1.0]
    >>> float(microbatches_in_flight(Strategy(pp=4, global_batch=8, interleave=2), 0))
    5.5
    """
    pp, interleave = np.asarray(strategy.pp), np.asarray(strategy.interleave)
    if strategy.schedule is PipelineSchedule.ONE_F_ONE_B:
        chunks = (interleave - 1) * pp + 2 * (pp - stage) - 1
        waiting = np.where(interleave > 1, chunks / interleave, pp - stage)
    else:
        is_h2 = strategy.schedule is PipelineSchedule.ZERO_BUBBLE_H2
        waiting = (2 * pp - 1 if is_h2 else pp) + 0.0 * np.asarray(stage)
    return np.minimum(np.maximum(strategy.n_microbatches, 1), waiting)


def first_chunk_in_flight(strategy: Strategy) -> Numbers:
    """Microbatches of the first chunk of layers that wait at once: 2p where chunks take turns.

    Parameters
    ----------
    strategy : degrees, batch and schedule.
    """
    pp, interleave = np.asarray(strategy.pp), np.asarray(strategy.interleave)
    of_stage = microbatches_in_flight(strategy, 0)
    n_microbatches = np.maximum(strategy.n_microbatches, 1)
    return np.where(interleave > 1, np.minimum(n_microbatches, 2 * pp), of_stage)
