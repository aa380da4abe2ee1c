"""Compiled loop of the greedy policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from libra_planner.flows._compile import compiled
from libra_planner.flows.loads import DEAD, Ends, Tiers

Ints = NDArray[np.int64]


@compiled
def add(load: Tiers, ends: Ends, picks: Ints, f: int, step: int) -> None:
    """Add ``step`` to the load of every link that flow f takes."""
    n_parallel, core_parallel = load.leaf_up.shape[2], load.spine_up.shape[3]
    spine, parallel = divmod(picks[f, 0], n_parallel)
    load.leaf_up[ends.src_leaf[f], spine, parallel] += step
    load.spine_down[ends.dst_leaf[f], spine, picks[f, 3]] += step
    if ends.leaves_pod[f]:
        core, parallel = divmod(picks[f, 1], core_parallel)
        load.spine_up[ends.src_pod[f], spine, core, parallel] += step
        load.core_down[ends.dst_pod[f], spine, core, picks[f, 2]] += step


@compiled
def _least(row: Ints) -> int:
    """Index of the least entry, the lowest of equal ones."""
    best = 0
    for i in range(1, row.shape[0]):
        if row[i] < row[best]:
            best = i
    return best


@compiled
def _pick_core(load: Tiers, ends: Ends, pick: Ints, f: int, spine: int, least: int) -> int:
    """Least load over the spine's cores if it is below ``least``, and the links in ``pick``."""
    n_cores, core_parallel = load.spine_up.shape[2:]
    up, down = load.spine_up[ends.src_pod[f], spine], load.core_down[ends.dst_pod[f], spine]
    for core in range(n_cores):
        i, j = _least(up[core]), _least(down[core])
        if max(up[core, i], down[core, j]) < least:
            least = max(up[core, i], down[core, j])
            pick[1], pick[2] = core * core_parallel + i, j
    return least


@compiled
def pick_path(load: Tiers, ends: Ends, pick: Ints, f: int) -> int:
    """Load of the path of flow f whose most loaded link has least, and its links in ``pick``."""
    n_spines, n_parallel = load.leaf_up.shape[1:]
    up, down = load.leaf_up[ends.src_leaf[f]], load.spine_down[ends.dst_leaf[f]]
    best = 2 * DEAD
    for spine in range(n_spines):
        i, j = _least(up[spine]), _least(down[spine])
        cost = max(up[spine, i], down[spine, j])
        if cost >= best:
            continue
        if ends.leaves_pod[f]:
            core_cost = _pick_core(load, ends, pick, f, spine, best)
            if core_cost >= best:
                continue
            cost = max(cost, core_cost)
        best = cost
        pick[0], pick[3] = spine * n_parallel + i, j
    return best


@compiled
def place(load: Tiers, ends: Ends, order: Ints, group: Ints, picks: Ints) -> int:
    """Give every flow in ``order`` that has none a path of least load.

    The load starts again at each new group. The flows of a group that have a path come first.

    Returns
    -------
    The first flow without a path, or -1.
    """
    first = 0
    for i in range(order.shape[0]):
        f = order[i]
        if group[f] != group[order[first]]:
            for j in range(first, i):
                add(load, ends, picks, order[j], -1)
            first = i
        if picks[f, 0] < 0 and pick_path(load, ends, picks[f], f) >= DEAD:
            return int(f)
        add(load, ends, picks, f, 1)
    return -1
