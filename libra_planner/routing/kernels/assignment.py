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

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libra_planner.routing.kernels import kept, part
from libra_planner.routing.loads import DEAD

Ints = NDArray[np.int64]
Shape = tuple[int, int, int, int]
"""Spines of a pod, parallel links to each, cores of a spine, parallel links to each."""


@part
def _least(load: Ints, start: int, n: int) -> int:
    """Of n links from a first one the least loaded, the lowest of equal ones."""
    best = start
    for link in range(start + 1, start + n):
        if load[link] < load[best]:
            best = link
    return best


@part
def _pick_core(
    load: Ints, shape: Shape, first: Ints, links: Ints, step: int, spine: int, least: int
) -> int:
    """Least load over the spine's cores if it is below ``least``, and the path in ``links``."""
    n_cores, parallel = shape[2:]
    for core in range(spine * n_cores, (spine + 1) * n_cores):
        i = _least(load, first[1] + core * parallel, parallel)
        j = _least(load, first[2] + core * parallel, parallel)
        if max(load[i], load[j]) + step < least:
            least, links[1], links[2] = max(load[i], load[j]) + step, i, j
    return least


@part
def _pick_path(load: Ints, shape: Shape, first: Ints, links: Ints, step: Ints) -> int:
    """Load of the path whose most loaded link has the least, with the flow; it is in ``links``."""
    n_spines, parallel = shape[:2]
    best = 2 * DEAD
    for spine in range(n_spines):
        i = _least(load, first[0] + spine * parallel, parallel)
        j = _least(load, first[3] + spine * parallel, parallel)
        cost = max(load[i], load[j]) + step[0]
        if cost >= best:
            continue
        if first[1] >= 0:
            core_cost = _pick_core(load, shape, first, links, step[1], spine, best)
            if core_cost >= best:
                continue
            cost = max(cost, core_cost)
        best, links[0], links[3] = cost, i, j
    return best


@part
def _add(load: Ints, links: Ints, step: Ints, sign: int) -> None:
    """Add a flow to its links (sign 1) or take it away (-1)."""
    for i in range(4):
        if links[i] >= 0:
            load[links[i]] += sign * step[i]


@kept
def place(
    load: Ints, shape: Shape, first: Ints, order: Ints, group: Ints, links: Ints, weights: Ints
) -> int:
    """Give every flow in ``order`` that has none a path of least load.

    Row f of ``first``, ``links`` and ``weights`` is of flow f: where its links begin in each
    layer between switches, the one it takes, and what it adds to the load. The load starts
    again at each new group. The flows of a group that have a path come first.

    Returns
    -------
    The first flow without a path, or -1.
    """
    begin = 0
    for i in range(order.shape[0]):
        f = order[i]
        if group[f] != group[order[begin]]:
            for j in order[begin:i]:
                _add(load, links[j], weights[j], -1)
            begin = i
        if links[f, 0] < 0 and _pick_path(load, shape, first[f], links[f], weights[f]) >= DEAD:
            return int(f)
        _add(load, links[f], weights[f], 1)
    return -1


@part
def _best_move(
    load: Ints, shape: Shape, first: Ints, some: Ints, links: Ints, weights: Ints, path: Ints
) -> tuple[int, int]:
    """The flow of some whose move leaves the least on its old and new links, and that load.

    Its path is in ``path``; -1 if no move leaves less than the flow's busiest link has.
    """
    best, least = -1, DEAD
    found = np.full(4, -1)
    for f in some:
        most = 0
        for i in range(4):
            if links[f, i] >= 0:
                most = max(most, load[links[f, i]])
        _add(load, links[f], weights[f], -1)
        found[:] = links[f]
        cost = _pick_path(load, shape, first[f], found, weights[f])
        for i in range(4):
            if links[f, i] >= 0:
                cost = max(cost, load[links[f, i]])
        _add(load, links[f], weights[f], 1)
        if cost < most and cost < least:
            best, least = f, cost
            path[:] = found
    return best, least


@part
def _on_link(mine: Ints, links: Ints, link: int, found: Ints) -> Ints:
    """Those of the flows ``mine`` that take a link; ``found`` has room for all."""
    n = 0
    for f in mine:
        row = links[f]
        if row[0] == link or row[1] == link or row[2] == link or row[3] == link:
            found[n] = f
            n += 1
    return found[:n]


@kept
def relieve(
    load: Ints, shape: Shape, first: Ints, mine: Ints, links: Ints, weights: Ints, n_steps: int
) -> None:
    """Move flows off the most loaded link, as long as that lowers its load, in some steps.

    ``load`` is that of the flows ``mine``, which all have paths; other arrays as for
    :func:`place`.
    """
    path, room = np.full(4, -1), np.empty_like(mine)
    for _ in range(n_steps):
        top = -1
        for j in range(load.shape[0]):
            if load[j] < DEAD and (top < 0 or load[j] > load[top]):
                top = j
        some = _on_link(mine, links, top, room)
        f, cost = _best_move(load, shape, first, some, links, weights, path)
        if f < 0 or cost >= load[top]:
            return
        _add(load, links[f], weights[f], -1)
        links[f] = path
        _add(load, links[f], weights[f], 1)


# Where the annealing is.
#
# load, shape, first, links, weights : as for the greedy policy.
# top : the largest load of a working link, and the number of links that have it.
_Walk = namedtuple("_Walk", "load shape first links weights top")


@part
def _fits(w: _Walk, f: int) -> bool:
    """Whether flow f would leave no link of its own above the top."""
    for i in range(4):
        link = w.links[f, i]
        if link >= 0 and w.load[link] + w.weights[f, i] > w.top[0]:
            return False
    return True


@part
def _shift(w: _Walk, f: int, sign: int) -> float:
    """Add flow f to its links (sign 1) or take it away (-1); change of the sum of squares."""
    change = 0.0
    for i in (0, 3, 1, 2):
        link = w.links[f, i]
        if link >= 0:
            n, step = w.load[link], sign * w.weights[f, i]
            w.top[1] += int(n + step == w.top[0]) - int(n == w.top[0])
            w.load[link] += step
            change += float(2 * n + step) * step
    return change


@part
def _find_top(w: _Walk) -> None:
    """Look for the top among all links."""
    w.top[:] = 0
    for n in w.load:
        if w.top[0] < n < DEAD:
            w.top[0], w.top[1] = n, 1
        elif n == w.top[0]:
            w.top[1] += 1


@part
def _draw_path(w: _Walk, f: int, rng: np.random.Generator) -> None:
    """Draw any path for flow f."""
    n_spines, n_parallel, n_cores, core_parallel = w.shape
    first, links = w.first[f], w.links[f]
    up = int(rng.random() * n_spines * n_parallel)
    spine = up // n_parallel
    links[0] = first[0] + up
    links[3] = first[3] + spine * n_parallel + int(rng.random() * n_parallel)
    if first[1] >= 0:
        up = spine * n_cores * core_parallel + int(rng.random() * n_cores * core_parallel)
        links[1] = first[1] + up
        links[2] = first[2] + up // core_parallel * core_parallel
        links[2] += int(rng.random() * core_parallel)


@part
def _try(w: _Walk, f: int, temperature: float, rng: np.random.Generator) -> float:
    """Move flow f, or leave it where it is; change of the sum of squares."""
    old = w.links[f].copy()
    change = _shift(w, f, -1)
    _draw_path(w, f, rng)
    if _fits(w, f):  # So never more than the top, and never over a failed link.
        change += _shift(w, f, 1)
        if change <= 0 or rng.random() < np.exp(-change / temperature):
            return change
        _shift(w, f, -1)
    w.links[f] = old
    _shift(w, f, 1)
    return 0.0


@kept
def sweep(
    arrays: tuple[Any, ...], movable: Ints, temperature: float, rng: np.random.Generator
) -> float:
    """Try as many random moves as there are flows; change of the sum of squared loads.

    ``arrays`` are load, shape, first, links and weights, as for :func:`place`, and two zeros.
    """
    w = _Walk(*arrays)
    change = 0.0
    for _ in range(movable.shape[0]):
        if w.top[1] == 0:
            _find_top(w)
        f = movable[int(rng.random() * movable.shape[0])]
        change += _try(w, f, temperature, rng)
    return change


_N_BITS = 16
"""Binary digits of a share."""


# Arrays of a colouring.
#
# sets : set of each element, shape (2 sides, n_levels, n_elements).
# waiting : element of a set that has no pair yet, or -1, shape (n_sets,).
# tally : label 1 less label 0 in a set of the last level, shape (2, n_sets).
# partner : the other of a pair, or -1, shape (2, n_elements).
# label : half of each element, -1 for none, shape (n_elements,).
# walk : elements of a path or cycle, shape (n_elements,).
# weight : binary digits of a share, shape (n_elements,).
_Work = namedtuple("_Work", "sets waiting tally partner label walk weight")


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
def _share(w: _Work, members: Ints, n_first: int, n_colors: int) -> None:
    """Label a share of n_first / n_colors of every set 0, to within one or rarely two elements."""
    if 2 * n_first == n_colors:
        _halve(w, members)
        return
    for e in members:
        w.weight[e] = (n_first << _N_BITS) // n_colors
    for bit in range(_N_BITS):
        some = members[w.weight[members] >> bit & 1 == 1]
        _halve(w, some)
        for e in some:
            w.weight[e] += (1 - 2 * w.label[e]) << bit
    for e in members:
        w.label[e] = 0 if w.weight[e] else 1


@part
def _count(w: _Work, e: Any, color: int, step: int, counts: Ints) -> None:
    for side in range(2):
        for level in range(counts.shape[1]):
            counts[side, level, w.sets[side, level, e], color] += step


@part
def _halve_pair(w: _Work, a: int, b: int, color: Ints, counts: Ints) -> None:
    """Divide the elements of two colours anew."""
    some = np.flatnonzero((color == a) | (color == b)).astype(np.int64)
    _halve(w, some)
    for e in some:
        _count(w, e, color[e], -1, counts)
        color[e] = b if w.label[e] else a
        _count(w, e, color[e], 1, counts)


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
                    a, b = of_set.argmin(), of_set.argmax()
                    if of_set[b] - of_set[a] > 1:
                        is_even = False
                        _halve_pair(w, a, b, color, counts)


@kept
def color_evenly(sets: Ints, n_colors: int, n_exact: int) -> Ints:
    """Colour of each element: every set of the first n_exact levels gets floor or ceil of each.

    Parameters
    ----------
    sets : number of the set of each element, from 0, shape (2 sides, n_levels, n_elements).
    n_exact : levels whose sets are unions of sets of the level below, 1 or more.
    """
    n, n_sets = sets.shape[2], sets.max() + 1
    tally, rows = np.zeros((3, n_sets), dtype=np.int64), np.empty((5, n), dtype=np.int64)
    w = _Work(sets, tally[2] - 1, tally[:2], rows[:2], rows[2], rows[3], rows[4])
    color = np.zeros(n, dtype=np.int64)
    todo = [(np.arange(n), 0, n_colors)]
    while todo:
        some, least, n_left = todo.pop()
        if n_left == 1:
            color[some] = least
        elif some.size:
            n_first = n_left // 2
            _share(w, some, n_first, n_left)
            is_later = w.label[some] == 1
            todo.append((some[~is_later], least, n_first))
            todo.append((some[is_later], least + n_first, n_left - n_first))
    if n_colors & (n_colors - 1):  # Shares other than halves may miss by one more.
        _even_out(w, color, np.zeros((2, n_exact, n_sets, n_colors), dtype=np.int64))
    return color
