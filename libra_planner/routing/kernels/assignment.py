"""Compiled loops of the greedy policy and of annealing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.routing.kernels.compilation import kept, part
from libra_planner.routing.loads import DEAD, Ends, Tiers

Ints = NDArray[np.int64]
Arrays = tuple[Ints, ...]


@part
def _add(load: Tiers, ends: Ends, picks: Ints, f: int, step: Ints, sign: int) -> None:
    """Add ``sign`` times the step of a flow, at leaves and at cores, to every link of flow f."""
    n_parallel, core_parallel = load.leaf_up.shape[2], load.spine_up.shape[3]
    spine, parallel = divmod(picks[f, 0], n_parallel)
    load.leaf_up[ends.src_leaf[f], spine, parallel] += sign * step[0]
    load.spine_down[ends.dst_leaf[f], spine, picks[f, 3]] += sign * step[0]
    if ends.leaves_pod[f]:
        core, parallel = divmod(picks[f, 1], core_parallel)
        load.spine_up[ends.src_pod[f], spine, core, parallel] += sign * step[1]
        load.core_down[ends.dst_pod[f], spine, core, picks[f, 2]] += sign * step[1]


@part
def _least(row: Ints) -> int:
    """Index of the least entry, the lowest of equal ones."""
    best = 0
    for i in range(1, row.shape[0]):
        if row[i] < row[best]:
            best = i
    return best


@part
def _pick_core(
    load: Tiers, ends: Ends, pick: Ints, f: int, step: int, spine: int, least: int
) -> int:
    """Least load over the spine's cores if it is below ``least``, and the links in ``pick``."""
    n_cores, core_parallel = load.spine_up.shape[2:]
    up, down = load.spine_up[ends.src_pod[f], spine], load.core_down[ends.dst_pod[f], spine]
    for core in range(n_cores):
        i, j = _least(up[core]), _least(down[core])
        if max(up[core, i], down[core, j]) + step < least:
            least = max(up[core, i], down[core, j]) + step
            pick[1], pick[2] = core * core_parallel + i, j
    return least


@part
def _pick_path(load: Tiers, ends: Ends, pick: Ints, f: int, step: Ints) -> int:
    """As :func:`path_cost`: of all paths, the one whose most loaded link has the least load.

    The flow's own step, at leaves and at cores, is counted.
    """
    n_spines, n_parallel = load.leaf_up.shape[1:]
    up, down = load.leaf_up[ends.src_leaf[f]], load.spine_down[ends.dst_leaf[f]]
    best = 2 * DEAD
    for spine in range(n_spines):
        i, j = _least(up[spine]), _least(down[spine])
        cost = max(up[spine, i], down[spine, j]) + step[0]
        if cost >= best:
            continue
        if ends.leaves_pod[f]:
            core_cost = _pick_core(load, ends, pick, f, step[1], spine, best)
            if core_cost >= best:
                continue
            cost = max(cost, core_cost)
        best = cost
        pick[0], pick[3] = spine * n_parallel + i, j
    return best


@kept
def path_cost(tiers: Arrays, hops: Arrays, pick: Ints, f: int) -> int:
    """Load of the least loaded path of flow f, whose links are put into ``pick``."""
    return _pick_path(Tiers(*tiers), Ends(*hops), pick, f, np.zeros(2, dtype=np.int64))


@kept
def place(tiers: Arrays, hops: Arrays, order: Ints, group: Ints, picks: Ints, weights: Ints) -> int:
    """Give every flow in ``order`` that has none a path of least load.

    Row f of ``weights`` is what flow f adds to a link at leaves, and at cores. The load starts
    again at each new group. The flows of a group that have a path come first.

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
                _add(load, ends, picks, order[j], weights[order[j]], -1)
            first = i
        if picks[f, 0] < 0 and _pick_path(load, ends, picks[f], f, weights[f]) >= DEAD:
            return int(f)
        _add(load, ends, picks, f, weights[f], 1)
    return -1


class _Walk(NamedTuple):
    """Where the annealing is.

    Parameters
    ----------
    load, ends, picks, weights : as for the greedy policy.
    top : the largest load of a working link, and the number of links that have it.
    found : loads of a flow's links, two at leaves, two at cores, -1 for none.
    """

    load: Tiers
    ends: Ends
    picks: Ints
    weights: Ints
    top: Ints
    found: Ints


@part
def _look(w: _Walk, f: int) -> bool:
    """Put the loads of the links of flow f into ``found``; whether none would be above the top."""
    spine, parallel = divmod(w.picks[f, 0], w.load.leaf_up.shape[2])
    w.found[:] = -1
    w.found[0] = w.load.leaf_up[w.ends.src_leaf[f], spine, parallel]
    w.found[1] = w.load.spine_down[w.ends.dst_leaf[f], spine, w.picks[f, 3]]
    if w.ends.leaves_pod[f]:
        core, parallel = divmod(w.picks[f, 1], w.load.spine_up.shape[3])
        w.found[2] = w.load.spine_up[w.ends.src_pod[f], spine, core, parallel]
        w.found[3] = w.load.core_down[w.ends.dst_pod[f], spine, core, w.picks[f, 2]]
    for i in range(4):
        if w.found[i] + w.weights[f, i // 2] > w.top[0] and w.found[i] >= 0:
            return False
    return True


@part
def _shift(w: _Walk, f: int, sign: int) -> float:
    """Add flow f to its links (sign 1) or take it away (-1); change of the sum of squares."""
    _look(w, f)
    _add(w.load, w.ends, w.picks, f, w.weights[f], sign)
    change = 0.0
    for i in range(4):
        n, step = w.found[i], sign * w.weights[f, i // 2]
        if n >= 0:
            w.top[1] += int(n + step == w.top[0]) - int(n == w.top[0])
            change += float(2 * n + step) * step
    return change


@part
def _scan(loads: Ints, top: Ints) -> None:
    """Take links into account in the top: the largest load, and how many have it."""
    for n in loads:
        if top[0] < n < DEAD:
            top[0], top[1] = n, 1
        elif n == top[0]:
            top[1] += 1


@part
def _find_top(w: _Walk) -> None:
    """Look for the top among all links."""
    w.top[:] = 0
    _scan(w.load.leaf_up.ravel(), w.top)
    _scan(w.load.spine_down.ravel(), w.top)
    _scan(w.load.spine_up.ravel(), w.top)
    _scan(w.load.core_down.ravel(), w.top)


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
def _try(w: _Walk, f: int, temperature: float, rng: np.random.Generator) -> float:
    """Move flow f, or leave it where it is; change of the sum of squares."""
    old = w.picks[f].copy()
    change = _shift(w, f, -1)
    _draw_path(w, f, rng)
    if _look(w, f):  # So never more than the top, and never over a failed link.
        change += _shift(w, f, 1)
        if change <= 0 or rng.random() < np.exp(-change / temperature):
            return change
        _shift(w, f, -1)
    w.picks[f] = old
    _shift(w, f, 1)
    return 0.0


@kept
def sweep(
    tiers: Arrays,
    hops: Arrays,
    picks: Ints,
    weights: Ints,
    movable: Ints,
    temperature: float,
    rng: np.random.Generator,
) -> float:
    """Try as many random moves as there are flows; change of the sum of squared loads."""
    top, found = np.zeros(2, dtype=np.int64), np.empty(4, dtype=np.int64)
    w = _Walk(Tiers(*tiers), Ends(*hops), picks, weights, top, found)
    change = 0.0
    for _ in range(movable.shape[0]):
        if top[1] == 0:
            _find_top(w)
        f = movable[int(rng.random() * movable.shape[0])]
        change += _try(w, f, temperature, rng)
    return change
