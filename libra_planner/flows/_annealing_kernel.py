"""Compiled loop of simulated annealing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.flows._compile import compiled
from libra_planner.flows._greedy_kernel import add
from libra_planner.flows.loads import DEAD, Ends, Tiers

Ints = NDArray[np.int64]


class Walk(NamedTuple):
    """Where the annealing is.

    Parameters
    ----------
    load, ends, picks : as for the greedy policy.
    n_links_at : working links by load, shape (n_flows + 2,).
    found : loads of a flow's links, shape (4,).
    """

    load: Tiers
    ends: Ends
    picks: Ints
    n_links_at: Ints
    found: Ints


@compiled
def _look(w: Walk, f: int) -> int:
    """Put the loads of the links of flow f into ``found``, -1 for none; the largest of them."""
    spine, parallel = divmod(w.picks[f, 0], w.load.leaf_up.shape[2])
    w.found[:] = -1
    w.found[0] = w.load.leaf_up[w.ends.src_leaf[f], spine, parallel]
    w.found[1] = w.load.spine_down[w.ends.dst_leaf[f], spine, w.picks[f, 3]]
    if w.ends.leaves_pod[f]:
        core, parallel = divmod(w.picks[f, 1], w.load.spine_up.shape[3])
        w.found[2] = w.load.spine_up[w.ends.src_pod[f], spine, core, parallel]
        w.found[3] = w.load.core_down[w.ends.dst_pod[f], spine, core, w.picks[f, 2]]
    return int(w.found.max())


@compiled
def _shift(w: Walk, f: int, step: int) -> int:
    """Add flow f to its links (step 1) or take it away (-1); change of the sum of squares."""
    _look(w, f)
    add(w.load, w.ends, w.picks, f, step)
    change = 0
    for n in w.found:
        if n >= 0:
            w.n_links_at[n] -= 1
            w.n_links_at[n + step] += 1
            change += 2 * n * step + 1
    return change


@compiled
def _draw_path(w: Walk, f: int, rng: np.random.Generator) -> None:
    """Draw any path for flow f."""
    n_spines, n_parallel = w.load.leaf_up.shape[1:]
    n_cores, core_parallel = w.load.spine_up.shape[2:]
    w.picks[f, 0] = int(rng.random() * n_spines * n_parallel)
    w.picks[f, 3] = int(rng.random() * n_parallel)
    if w.ends.leaves_pod[f]:
        w.picks[f, 1] = int(rng.random() * n_cores * core_parallel)
        w.picks[f, 2] = int(rng.random() * core_parallel)


@compiled
def _try(w: Walk, f: int, most: int, temperature: float, rng: np.random.Generator) -> int:
    """Move flow f, or leave it where it is; change of the sum of squares."""
    old = w.picks[f].copy()
    change = _shift(w, f, -1)
    _draw_path(w, f, rng)
    is_open = _look(w, f) < most  # So never more than ``most``, and never over a failed link.
    if is_open:
        change += _shift(w, f, 1)
        if change <= 0 or rng.random() < np.exp(-change / temperature):
            return change
        _shift(w, f, -1)
    w.picks[f] = old
    _shift(w, f, 1)
    return 0


@compiled
def _count_links(w: Walk) -> int:
    """Count the links by load; the largest load."""
    most = 0
    for tier in (w.load.leaf_up, w.load.spine_down):
        for n in tier.ravel():
            if n < DEAD:
                w.n_links_at[n] += 1
                most = max(most, int(n))
    for tier in (w.load.spine_up, w.load.core_down):
        for n in tier.ravel():
            if n < DEAD:
                w.n_links_at[n] += 1
                most = max(most, int(n))
    return int(most)


@compiled
def anneal(
    w: Walk, movable: Ints, temperatures: NDArray[np.float64], rng: np.random.Generator
) -> Ints:
    """Best picks seen: least maximum, then least sum of squared loads.

    Each sweep tries as many random moves as there are flows; the maximum never rises.
    """
    for f in movable:
        add(w.load, w.ends, w.picks, f, 1)
    most = _count_links(w)
    best, change, least = w.picks.copy(), 0, 0
    for temperature in temperatures:
        was = most
        for _ in range(movable.shape[0]):
            f = movable[int(rng.random() * movable.shape[0])]
            change += _try(w, f, most, temperature, rng)
            while most and not w.n_links_at[most]:
                most -= 1
        if most < was or change < least:
            best[:], least = w.picks, change
    return best
