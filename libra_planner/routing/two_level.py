"""Network-wide fairness on two levels: the worst collective first, then the others.

The goal is that of "Routing for Large ML Models" (arXiv 2503.05324). The exact measure and the
search below are this project's own; ``docs/routing.md`` defines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Indices, hops, links_of
from libra_planner.routing.coloring import edge_coloring
from libra_planner.routing.greedy import greedy
from libra_planner.routing.loads import (
    DEAD,
    by_tier,
    choice_of,
    ends_of,
    groups,
    link_counts,
    no_load,
    picks_of,
)
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.trees import single_paths

_SAME = 1e-9
"""Rates this close, relative to each other, are equal."""


def collective_speeds(fabric: Clos, flows: Flows, choice: Choice) -> Array:
    """Speed of every collective over its speed alone in a fabric that never blocks.

    The time of a collective is the largest bytes / rate of its flows, at the max-min rates of
    all flows (C11); alone, it is the same with its own flows and host links only. The
    ratio of the two is in order of the collectives' numbers; 1 for one that sends nothing or
    has a failed host link, which no routing helps. It can be above 1: others may hold back a flow
    that alone would compete with the slowest one.

    Returns
    -------
    Array, shape (n_collectives,).

    Examples
    --------
    Two collectives share the only uplink:

    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=1, host_Bps=1e9, uplink_Bps=1e9)
    >>> collective = np.array([0, 1])
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=collective)
    >>> collective_speeds(fabric, flows, greedy(fabric, flows))
    array([0.5, 0.5])
    """
    rate_Bps = max_min_rates(single_paths(links_of(fabric, flows, choice)), fabric.capacity_Bps)
    return _speeds(flows, rate_Bps, _alone_s(fabric, flows))


def two_level_max_min(fabric: Clos, flows: Flows, *, n_tries: int = 200) -> Choice:
    """Paths that raise the speed of the slowest collective, then of the next, and so on.

    The better of :func:`greedy` and :func:`edge_coloring` in the sorted
    :func:`collective_speeds`, compared from the lowest up, is improved by moves off the
    link that limits the slowest collective it can, until none helps. A local optimum: no bound
    is proven. Nothing is drawn, so the result is always the same.

    Parameters
    ----------
    n_tries : moves tried at most; each computes the rates of all flows.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        As :func:`greedy`.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> collective = np.array([0, 1])
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=collective)
    >>> collective_speeds(fabric, flows, two_level_max_min(fabric, flows))
    array([1., 1.])
    """
    alone_s = _alone_s(fabric, flows)
    starts = (greedy(fabric, flows), edge_coloring(fabric, flows))
    best, other = (_state(fabric, flows, choice, alone_s) for choice in starts)
    if _is_better(other.speed, best.speed):
        best = other
    better: _State | None = best
    while better is not None and n_tries > 0:
        best, better = better, None
        for choice in _moves(fabric, flows, best):
            n_tries -= 1
            tried = _state(fabric, flows, choice, alone_s)
            if _is_better(tried.speed, best.speed):
                better = tried
            if better is not None or n_tries <= 0:
                break
    return (better or best).choice


@dataclass(frozen=True)
class _State:
    """A choice, the links and rate of every flow, and the speed of every collective."""

    choice: Choice
    links: Indices
    rate_Bps: Array
    speed: Array


def _state(fabric: Clos, flows: Flows, choice: Choice, alone_s: Array) -> _State:
    links = links_of(fabric, flows, choice)
    rate_Bps = max_min_rates(single_paths(links), fabric.capacity_Bps)
    return _State(choice, links, rate_Bps, _speeds(flows, rate_Bps, alone_s))


def _is_better(speed: Array, than: Array) -> bool:
    """Whether the sorted speeds are larger at the first place where they differ."""
    mine, other = np.sort(speed), np.sort(than)
    differs = np.flatnonzero(np.abs(mine - other) > _SAME * other)
    return bool(differs.size and mine[differs[0]] > other[differs[0]])


def _alone_s(fabric: Clos, flows: Flows) -> Array:
    """Time of every collective alone, its host links the only limit."""
    group = groups(flows, per_collective=True)
    ends = np.stack([flows.src, fabric.layers[-1].start + flows.dst], axis=1)
    own, link = np.unique(group[:, None] * fabric.n_links + ends, return_inverse=True)
    capacity_Bps = fabric.capacity_Bps[own % fabric.n_links]
    return _slowest_s(flows, max_min_rates(single_paths(link.reshape(ends.shape)), capacity_Bps))


def _flow_s(flows: Flows, rate_Bps: Array) -> Array:
    """Time of each flow at its rate; 0 without bytes."""
    time_s = np.where(flows.size_bytes > 0, np.inf, 0.0)
    return np.divide(flows.size_bytes, rate_Bps, out=time_s, where=rate_Bps > 0)


def _slowest_s(flows: Flows, rate_Bps: Array) -> Array:
    """Time of the slowest flow of every collective."""
    group = groups(flows, per_collective=True)
    slowest_s = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(slowest_s, group, _flow_s(flows, rate_Bps))
    return slowest_s


def _speeds(flows: Flows, rate_Bps: Array, alone_s: Array) -> Array:
    time_s = _slowest_s(flows, rate_Bps)
    counts = (time_s > 0) & np.isfinite(alone_s)
    return np.divide(alone_s, time_s, out=np.ones_like(time_s), where=counts)


def _moves(fabric: Clos, flows: Flows, state: _State) -> Iterator[Choice]:
    """Choices with one flow moved off a limiting link, the slowest collective's first."""
    time_s, group = _flow_s(flows, state.rate_Bps), groups(flows, per_collective=True)
    slowest_first = np.lexsort((-time_s, group))
    worst_flow = slowest_first[np.unique(group[slowest_first], return_index=True)[1]]
    for collective in np.argsort(state.speed, kind="stable"):
        f = worst_flow[collective]
        for link in _limits(fabric, state, f):
            on_link = np.flatnonzero(np.any(state.links == link, axis=1))
            for g in on_link[np.argsort(on_link != f, kind="stable")]:
                yield from _moved(fabric, flows, state, int(g), int(link))


def _limits(fabric: Clos, state: _State, f: int) -> Indices:
    """Links between switches that are full and give flow f as much as any other flow."""
    used = state.links >= 0
    of_hop = np.broadcast_to(state.rate_Bps[:, None], used.shape)
    load_Bps = np.bincount(state.links[used], of_hop[used], minlength=fabric.n_links)
    most_Bps = np.zeros(fabric.n_links)
    np.maximum.at(most_Bps, state.links[used], of_hop[used])
    path: Indices = state.links[f, 1:-1]
    links = path[path >= 0]
    is_full = load_Bps[links] >= fabric.capacity_Bps[links] * (1 - _SAME)
    limits: Indices = links[is_full & (state.rate_Bps[f] >= most_Bps[links] * (1 - _SAME))]
    return limits


def _moved(fabric: Clos, flows: Flows, state: _State, f: int, link: int) -> Iterator[Choice]:
    """The choice with flow f on the greedy path without a link, if there is one."""
    from libra_planner.routing.kernels.assignment import path_cost

    load = no_load(fabric) + link_counts(fabric, flows, state.choice)
    load[state.links[f][state.links[f] >= 0]] -= 1
    load[link] = DEAD
    picks, ends = picks_of(state.choice), ends_of(hops(fabric, flows))
    if path_cost(tuple(by_tier(fabric, load)), tuple(ends), picks[f], f) < DEAD:
        yield choice_of(picks)
