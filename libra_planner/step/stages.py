"""Kinds of stages of a pipeline: how many there are, and what layers they hold (C17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from libra_planner.workload.strategy import Strategy
from libra_planner.workload.transformer import Transformer


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
