"""Strategies beside the best one: that may beat it on links, or that need less memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from libra_planner.search.best import Candidate, Search
from libra_planner.search.plans import LEAST_BYTES_PER_S
from libra_planner.search.space import Index, Space
from libra_planner.step.expression import Array
from libra_planner.workload.strategy import Strategy


class Rival(NamedTuple):
    """A strategy that may be better on links than the best one in the model.

    Parameters
    ----------
    strategy : itself.
    step_time_s : its step in the model, at the bandwidth of the best one.
    """

    strategy: Strategy
    step_time_s: float


def rivals(
    search: Search, best: Candidate, efficiency: Array, on_links_s: float
) -> tuple[Rival, ...]:
    """Strategies whose step in the model is shorter than that of the best one on its links.

    At one bandwidth no other is better there, unless its links deliver more than the model grants.
    One of each degrees and number of chunks: in turns the shortest step with what the best one's
    links deliver, and the shortest in the model; at first those of other stages, chunks or experts.

    Parameters
    ----------
    search, best : the search and its best strategy with its bandwidth, at which all are compared.
    efficiency : share of the bandwidth that the best one gets on its links, shape (n_dims,).
    on_links_s : its step there.
    """
    space, everyone = search.space, np.arange(search.space.n)
    at_Bps = np.maximum(best.optimum.bandwidth_bytes_per_s, LEAST_BYTES_PER_S)
    model_s = search.figures.step_time_s(everyone, at_Bps)
    rows = np.flatnonzero(model_s < on_links_s)
    rows = rows[search.figures.memory_bytes(rows) <= search.npu_memory_bytes]
    derated_s = search.figures.step_time_s(rows, at_Bps * efficiency)
    orders = [rows[np.argsort(by, kind="stable")] for by in (derated_s, model_s[rows])]
    found = _distinct(space, np.stack(orders, axis=1).ravel(), best.index)
    return tuple(Rival(space.strategy(i), float(model_s[i])) for i in found)


def fastest_within(search: Search, best: Candidate, most_bytes: float) -> Rival | None:
    """The strategy with no more memory whose step is shortest; ``None`` where none has so little.

    Parameters
    ----------
    search, best : the search and its best strategy, at whose bandwidth all are compared.
    most_bytes : of an NPU.
    """
    return _fastest(search, best, np.arange(search.space.n), most_bytes)


def fastest_with_zero(search: Search, best: Candidate, zero: int) -> Rival | None:
    """The strategy with one stage of ZeRO whose step is shortest; ``None`` where none fits.

    Parameters
    ----------
    search, best : the search and its best strategy, at whose bandwidth all are compared.
    zero : the stage.
    """
    rows = np.flatnonzero(search.space.columns["zero"] == zero)
    return _fastest(search, best, rows, search.npu_memory_bytes)


def _fastest(search: Search, best: Candidate, rows: Index, most_bytes: float) -> Rival | None:
    """The strategy of the shortest step, per token, among those with no more memory."""
    most_bytes = min(most_bytes, search.npu_memory_bytes)
    rows = rows[search.figures.memory_bytes(rows) <= most_bytes]
    if not len(rows):
        return None
    at_Bps = np.maximum(best.optimum.bandwidth_bytes_per_s, LEAST_BYTES_PER_S)
    times_s = search.figures.step_time_s(rows, at_Bps)
    first = int(np.argmin(times_s / search.tokens[rows]))
    return Rival(search.space.strategy(int(rows[first])), float(times_s[first]))


def _distinct(space: Space, ranked: Index, best: int) -> list[int]:
    """The first of each degrees and number of chunks, without the best one's own.

    Those that differ in stages, chunks or experts from all before come first: tp and cp, which
    stay inside nodes, change little of what the links carry.
    """
    rows = np.concatenate([[best], ranked])
    chunks = space.columns["interleave"][rows]
    degrees = [np.asarray(getattr(space.shapes, axis))[space.shape[rows]] for axis in ("pp", "ep")]
    coarse = _firsts(np.stack([*degrees, chunks], axis=1))
    fine = _firsts(np.stack([space.kind_of(rows), chunks], axis=1))
    order = dict.fromkeys([*coarse, *fine])
    return [int(rows[i]) for i in order if i]


def _firsts(keys: Index) -> list[int]:
    """Where each row of keys stands first, in order."""
    _, first = np.unique(keys, axis=0, return_index=True)
    return sorted(first.tolist())
