"""Compiled loops of the greedy policy and of annealing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.flows._compile import kept, part
from libra_planner.flows.loads import DEAD, Ends, Tiers

Ints = NDArray[np.int64]
Arrays = tuple[Ints, ...]


@part
def _add(load: Tiers, ends: Ends, picks: Ints, f: int, step: int) -> None:
    """Add ``step`` to the load of every link that flow f takes."""
    n_parallel, core_parallel = load.leaf_up.shape[2], load.spine_up.shape[3]
    spine, parallel = divmod(picks[f, 0], n_parallel)
    load.leaf_up[ends.src_leaf[f], spine, parallel] += step
    load.spine_down[ends.dst_leaf[f], spine, picks[f, 3]] += step
    if ends.leaves_pod[f]:
        core, parallel = divmod(picks[f, 1], core_parallel)
        load.spine_up[ends.src_pod[f], spine, core, parallel] += step
        load.core_down[ends.dst_pod[f], spine, core, picks[f, 2]] += step


@part
def _least(row: Ints) -> int:
    """Index of the least entry, the lowest of equal ones."""
    best = 0
    for i in range(1, row.shape[0]):
        if row[i] < row[best]:
            best = i
    return best


@part
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


@part
def _pick_path(load: Tiers, ends: Ends, pick: Ints, f: int) -> int:
    """As :func:`path_cost`: of all paths, the one whose most loaded link has the least load."""
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


@kept
def path_cost(tiers: Arrays, hops: Arrays, pick: Ints, f: int) -> int:
    """Load of the least loaded path of flow f, whose links are put into ``pick``."""
    return _pick_path(Tiers(*tiers), Ends(*hops), pick, f)


@kept
def place(tiers: Arrays, hops: Arrays, order: Ints, group: Ints, picks: Ints) -> int:
    """Give every flow in ``order`` that has none a path of least load.

    The load starts again at each new group. The flows of a group that have a path come first.

    Returns
    -------
    The first flow without a path, or -1.
    """
    load, ends = Tiers(*tiers), Ends(*hops)
    first = 0
    for i in range(order.shape[0]):
        f = order[i]
        if group[f] != group[order[first]]:
            for j in range(first, i):
                _add(load, ends, picks, order[j], -1)
            first = i
        if picks[f, 0] < 0 and _pick_path(load, ends, picks[f], f) >= DEAD:
            return int(f)
        _add(load, ends, picks, f, 1)
    return -1


class _Walk(NamedTuple):
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


@part
def _look(w: _Walk, f: int) -> int:
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


@part
def _shift(w: _Walk, f: int, step: int) -> int:
    """Add flow f to its links (step 1) or take it away (-1); change of the sum of squares."""
    _look(w, f)
    _add(w.load, w.ends, w.picks, f, step)
    change = 0
    for n in w.found:
        if n >= 0:
            w.n_links_at[n] -= 1
            w.n_links_at[n + step] += 1
            change += 2 * n * step + 1
    return change


@part
def _draw_path(w: _Walk, f: int, rng: np.random.Generator) -> None:
    """Draw any path for flow f."""
    n_spines, n_parallel = w.load.leaf_up.shape[1:]
    n_cores, core_parallel = w.load.spine_up.shape[2:]
    w.picks[f, 0] = int(rng.random() * n_spines * n_parallel)
    w.picks[f, 3] = int(rng.random() * n_parallel)
    if w.ends.leaves_pod[f]:
        w.picks[f, 1] = int(rng.random() * n_cores * core_parallel)
        w.picks[f, 2] = int(rng.random() * core_parallel)


@part
def _try(w: _Walk, f: int, most: int, temperature: float, rng: np.random.Generator) -> int:
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


@kept
def sweep(
    tiers: Arrays,
    hops: Arrays,
    picks: Ints,
    n_links_at: Ints,
    movable: Ints,
    temperature: float,
    rng: np.random.Generator,
) -> int:
    """Try as many random moves as there are flows; change of the sum of squared loads."""
    w = _Walk(Tiers(*tiers), Ends(*hops), picks, n_links_at, np.empty(4, dtype=np.int64))
    change, most = 0, n_links_at.shape[0] - 1
    for _ in range(movable.shape[0]):
        while most and not n_links_at[most]:
            most -= 1
        f = movable[int(rng.random() * movable.shape[0])]
        change += _try(w, f, most, temperature, rng)
    return change
