"""Compiled loops of the greedy policy, of annealing and of edge colouring.

Every element (a flow) lies in one set of each level at each of its two sides. Pair the elements
of every set of level 0, then those left over (at most one of a set) in the sets of level 1, and
so on. If the two of a pair always go to different halves, any set that is a union of whole sets
of the level below is halved to within one element. Both sides' pairs together form paths and
cycles whose edges come from the two sides in turn; such cycles are even, so walking along them
with labels 0, 1, 0, ... separates every pair.

Halving again and again gives 2^j colours. For another share p/m, every element begins with a
weight of p/m in binary digits; from the last digit up, the elements with a 1 there are halved,
and one half loses this amount while the other half gains it, until all weights are 0 or 1. A
set's sum changes by its one unpaired element only, in all by less than 1 (N. Alon, A simple
algorithm for edge-coloring bipartite multigraphs, 2003, has the idea). As the digits end, a set
may still miss by one more; then any two of the final colours are put together and halved, until
no set has two more elements of one than of another. Each such step lowers the sum over sets and
colours of squared counts, so this ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.clos import Hops, Tiers
from libra_planner.routing.kernels import kept, part
from libra_planner.routing.loads import DEAD

Ints = NDArray[np.int64]
Arrays = tuple[NDArray[Any], ...]


@part
def _add(load: Tiers, ends: Hops, picks: Ints, f: int, step: Ints, sign: int) -> None:
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
    load: Tiers, ends: Hops, pick: Ints, f: int, step: int, spine: int, least: int
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
def _pick_path(load: Tiers, ends: Hops, pick: Ints, f: int, step: Ints) -> int:
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
    return _pick_path(Tiers(*tiers), Hops(*hops), pick, f, np.zeros(2, dtype=np.int64))


@kept
def place(tiers: Arrays, hops: Arrays, order: Ints, group: Ints, picks: Ints, weights: Ints) -> int:
    """Give every flow in ``order`` that has none a path of least load.

    Row f of ``weights`` is what flow f adds to a link at leaves, and at cores. The load starts
    again at each new group. The flows of a group that have a path come first.

    Returns
    -------
    The first flow without a path, or -1.
    """
    load, ends = Tiers(*tiers), Hops(*hops)
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
    ends: Hops
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
    w = _Walk(Tiers(*tiers), Hops(*hops), picks, weights, top, found)
    change = 0.0
    for _ in range(movable.shape[0]):
        if top[1] == 0:
            _find_top(w)
        f = movable[int(rng.random() * movable.shape[0])]
        change += _try(w, f, temperature, rng)
    return change


_N_BITS = 16
"""Binary digits of a share."""


class _Work(NamedTuple):
    """Arrays of a colouring.

    Parameters
    ----------
    sets : set of each element, shape (2 sides, n_levels, n_elements).
    waiting : element of a set that has no pair yet, or -1, shape (n_sets,).
    tally : label 1 less label 0 in a set of the last level, shape (2, n_sets).
    partner : the other of a pair, or -1, shape (2, n_elements).
    label : half of each element, -1 for none, shape (n_elements,).
    walk : elements of a path or cycle, shape (n_elements,).
    weight : binary digits of a share, shape (n_elements,).
    some : elements to be halved, shape (n_elements,).
    """

    sets: Ints
    waiting: Ints
    tally: Ints
    partner: Ints
    label: Ints
    walk: Ints
    weight: Ints
    some: Ints


@part
def _pair(w: _Work, members: Ints) -> None:
    """Pair the members within their sets, level by level."""
    for e in members:
        w.partner[0, e] = w.partner[1, e] = w.label[e] = -1
    for side in range(2):
        for level in range(w.sets.shape[1]):
            set_of = w.sets[side, level]
            for e in members:
                if w.partner[side, e] < 0:
                    other = w.waiting[set_of[e]]
                    w.waiting[set_of[e]] = e if other < 0 else -1
                    if other >= 0:
                        w.partner[side, e], w.partner[side, other] = other, e
            for e in members:
                w.waiting[set_of[e]] = -1


@part
def _follow(w: _Work, e: int, side: int, n: int) -> int:
    """Label what pairs join to e, starting with a side's pair; the length of the walk."""
    label, found = w.label[e], w.partner[side, e]
    while found >= 0 and w.label[found] < 0:
        label = 1 - label
        w.label[found], w.walk[n] = label, found
        n, side = n + 1, 1 - side
        found = w.partner[side, found]
    return n


@part
def _settle(w: _Work, n: int) -> None:
    """Turn the labels of a walk where this evens out the sets of the last level."""
    source, target = w.sets[0, -1], w.sets[1, -1]
    score = 0
    for e in w.walk[:n]:
        score += (2 * w.label[e] - 1) * (w.tally[0, source[e]] + w.tally[1, target[e]])
    for e in w.walk[:n]:
        if score > 0:
            w.label[e] = 1 - w.label[e]
        w.tally[0, source[e]] += 2 * w.label[e] - 1
        w.tally[1, target[e]] += 2 * w.label[e] - 1


@part
def _halve(w: _Work, members: Ints) -> None:
    """Label the members 0 or 1 so that every set is halved."""
    _pair(w, members)
    for e in members:
        if w.label[e] < 0:
            w.label[e], w.walk[0] = 0, e
            n = _follow(w, e, 0, 1)
            _settle(w, _follow(w, e, 1, n))
    for e in members:
        w.tally[0, w.sets[0, -1, e]] = w.tally[1, w.sets[1, -1, e]] = 0


@part
def _part(w: _Work, members: Ints) -> int:
    """Move the members of label 0 to the front, in order; how many they are."""
    n_zeros = n_ones = 0
    for e in members:
        if w.label[e]:
            w.walk[n_ones] = e
            n_ones += 1
        else:
            members[n_zeros] = e
            n_zeros += 1
    for i in range(n_ones):
        members[n_zeros + i] = w.walk[i]
    return n_zeros


@part
def _share(w: _Work, members: Ints, n_first: int, n_colors: int) -> None:
    """Label a share of n_first / n_colors of every set 0, to within one or rarely two elements."""
    if 2 * n_first == n_colors:
        _halve(w, members)
        return
    for e in members:
        w.weight[e] = (n_first << _N_BITS) // n_colors
    for bit in range(_N_BITS):
        n = 0
        for e in members:
            if w.weight[e] >> bit & 1:
                w.some[n] = e
                n += 1
        _halve(w, w.some[:n])
        for e in w.some[:n]:
            w.weight[e] += (1 - 2 * w.label[e]) << bit
    for e in members:
        w.label[e] = 0 if w.weight[e] else 1


@part
def _count(w: _Work, e: int, color: int, step: int, counts: Ints) -> None:
    for side in range(2):
        for level in range(counts.shape[1]):
            counts[side, level, w.sets[side, level, e], color] += step


@part
def _halve_pair(w: _Work, a: int, b: int, color: Ints, counts: Ints) -> None:
    """Divide the elements of two colours anew."""
    n = 0
    for e in range(color.shape[0]):
        if color[e] == a or color[e] == b:
            w.some[n] = e
            n += 1
    _halve(w, w.some[:n])
    for e in w.some[:n]:
        _count(w, e, color[e], -1, counts)
        color[e] = b if w.label[e] else a
        _count(w, e, color[e], 1, counts)


@part
def _extremes(of_set: Ints) -> tuple[int, int]:
    """Colours of which a set has least and most."""
    a = b = 0
    for i in range(of_set.shape[0]):
        a = i if of_set[i] < of_set[a] else a
        b = i if of_set[i] > of_set[b] else b
    return a, b


@part
def _even_out(w: _Work, color: Ints, counts: Ints) -> None:
    """Halve pairs of colours until no set has two more elements of one than of another."""
    for e in range(color.shape[0]):
        _count(w, e, color[e], 1, counts)
    is_even = False
    while not is_even:
        is_even = True
        for side in range(2):
            for level in range(counts.shape[1]):
                for s in range(counts.shape[2]):
                    of_set = counts[side, level, s]
                    a, b = _extremes(of_set)
                    if of_set[b] - of_set[a] > 1:
                        is_even = False
                        _halve_pair(w, a, b, color, counts)


@part
def _push(todo: Ints, i: int, start: int, end: int, first: int, n_colors: int) -> None:
    todo[i, 0], todo[i, 1], todo[i, 2], todo[i, 3] = start, end, first, n_colors


@kept
def color_evenly(sets: Ints, waiting: Ints, members: Ints, n_colors: int, n_exact: int) -> Ints:
    """Colour of each element: every set of the first n_exact levels gets floor or ceil of each.

    Parameters
    ----------
    sets : number of the set of each element, from 0, shape (2 sides, n_levels, n_elements).
    waiting : -1 for each set, shape (n_sets,).
    members : all elements, in the order in which they are paired; overwritten.
    n_exact : levels whose sets are unions of sets of the level below, 1 or more.
    """
    n, n_sets = members.shape[0], waiting.shape[0]
    tally, rows = np.zeros((2, n_sets), dtype=np.int64), np.empty((6, n), dtype=np.int64)
    w = _Work(sets, waiting, tally, rows[:2], rows[2], rows[3], rows[4], rows[5])
    color = np.zeros(n, dtype=np.int64)
    todo, n_todo = np.zeros((64, 4), dtype=np.int64), 1  # Halves of halves: never 64 deep.
    todo[0, 1], todo[0, 3] = n, n_colors
    while n_todo:
        n_todo -= 1
        start, end, first, n_left = todo[n_todo]
        if n_left == 1:
            for e in members[start:end]:
                color[e] = first
        elif end > start:
            n_first = n_left // 2
            _share(w, members[start:end], n_first, n_left)
            cut = start + _part(w, members[start:end])
            _push(todo, n_todo, start, cut, first, n_first)
            _push(todo, n_todo + 1, cut, end, first + n_first, n_left - n_first)
            n_todo += 2
    if n_colors & (n_colors - 1):  # Shares other than halves may miss by one more.
        _even_out(w, color, np.zeros((2, n_exact, n_sets, n_colors), dtype=np.int64))
    return color
