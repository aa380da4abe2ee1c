"""Two-level max-min fairness of collectives (C11), and the policy that makes it large.

The goal, all collectives with the worst first, is that of "Routing for Large ML Models"
(arXiv 2503.05324), which calls it 2-layered max-min fairness. What stands for the rate of a
collective whose flows differ in size, and the search, are this project's own;
``docs/routing.md`` defines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from libra_planner.errors import SpecError
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices
from libra_planner.routing import assignment, loads
from libra_planner.routing.policy import POLICIES, Policy, PolicyKind
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import Routing, single_paths

_SAME = 1e-9
"""Rates this close, relative to each other, are equal."""


def collective_rates_Bps(flows: Flows, rate_Bps: Array) -> Array:
    """Rate of every collective, which is that of its slowest flow (C11).

    r_c = min over the flows f of collective c of x_f b_c / b_f, where x_f is the flow's max-min
    rate with all flows active, b_f its bytes and b_c the most bytes of a flow of c. With flows of
    one size this is the least rate; else a flow of half the size needs half the rate.

    Parameters
    ----------
    flows : with their collectives.
    rate_Bps : x, shape (n_flows,).

    Returns
    -------
    Array, shape (n_collectives,), in order of the collectives' numbers: infinite for one that
    sends nothing.

    Examples
    --------
    The small flow of collective 4 is in nobody's way at 2 bytes/s; the large one has 3.

    >>> flows = Flows(*np.array([[0, 1, 2], [3, 4, 5]]), np.array([9.0, 3.0, 1.0]),
    ...     collective=np.array([4, 4, 8]))
    >>> collective_rates_Bps(flows, np.array([3.0, 2.0, 5.0]))
    array([3., 5.])
    """
    group = loads.groups(flows, per_collective=True)
    n_groups = int(group.max(initial=-1)) + 1
    most_bytes, slowest_Bps = np.zeros(n_groups), np.full(n_groups, np.inf)
    np.maximum.at(most_bytes, group, flows.size_bytes)
    sends = flows.size_bytes > 0
    scaled_Bps = rate_Bps[sends] * (most_bytes[group[sends]] / flows.size_bytes[sends])
    np.minimum.at(slowest_Bps, group[sends], scaled_Bps)
    return slowest_Bps


def collective_times_s(flows: Flows, finish_s: Array) -> Array:
    """When the last flow of every collective ends, s, shape (n_collectives,).

    Parameters
    ----------
    flows : with their collectives.
    finish_s : of each flow in the fluid model (C11), shape (n_flows,).

    Examples
    --------
    >>> flows = Flows(*np.array([[0, 1, 2], [3, 4, 5]]), np.ones(3), collective=np.array([1, 1, 0]))
    >>> collective_times_s(flows, np.array([3.0, 2.0, 5.0]))
    array([5., 3.])
    """
    group = loads.groups(flows, per_collective=True)
    last_s = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(last_s, group, finish_s)
    return last_s


def is_fairer(rates: Array, than: Array) -> bool:
    """Whether sorted rates are larger at the first place where they differ: the worst first.

    Parameters
    ----------
    rates, than : of the same collectives, any order, shape (n_collectives,). Relative
        differences up to 1e-9 are none.

    Examples
    --------
    >>> is_fairer(np.array([5.0, 2.0]), np.array([2.0, 4.0]))
    True
    """
    mine, other = np.sort(rates), np.sort(than)
    with np.errstate(invalid="ignore"):
        differs = np.flatnonzero(np.abs(mine - other) > _SAME * np.minimum(mine, other))
    return bool(differs.size and mine[differs[0]] > other[differs[0]])


_N_TRIES, _N_DRAWS = 200, 10
_MOST_FILLED, _MOST_DRAWN = 4_000_000, 20_000
"""Flows of all tries, and of all draws of a policy, up to which there are as many as that."""


def two_level_max_min(
    fabric: Clos,
    flows: Flows,
    *,
    where: Hops | None = None,
    seed: int = 0,
    time_limit_s: float = 10.0,
    n_tries: int = _N_TRIES,
) -> Choice:
    """Paths that raise the rate of the slowest collective, then of the next, and so on.

    All other policies that give each flow one path are asked first, those that draw with ten
    seeds from ``seed`` on (fewer where flows are very many); the best of them in the sorted
    :func:`collective_rates_Bps`, compared from the lowest up, is improved by moves off the link
    that limits the slowest collective it can, until none helps. So no other policy is better
    with these seeds. A local optimum: no bound is proven.

    Parameters
    ----------
    where : :func:`~libra_planner.fabric.clos.hops` of the flows, if they are known already.
    seed : the first of the policies that draw.
    time_limit_s : of ``ilp``.
    n_tries : moves tried at most, fewer where flows are very many; each computes the rates of
        all flows.

    Returns
    -------
    Choice : int64, shape (n_flows,) each; -1 for flows inside a leaf (a pod).

    Raises
    ------
    SpecError
        As :func:`~libra_planner.routing.assignment.greedy`.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> collective = np.array([0, 1])
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2), collective=collective)
    >>> sorted(two_level_max_min(fabric, flows).uplink.tolist())
    [0, 1]
    """
    where = where or clos.hops(fabric, flows)
    best = _state(fabric, flows, assignment.greedy(fabric, flows, where=where))
    if not where.leaves_leaf.any():
        return best.choice
    for choice in _others(fabric, flows, where, seed, time_limit_s):
        tried = _state(fabric, flows, choice)
        best = tried if is_fairer(tried.rates, best.rates) else best
    n_tries = min(n_tries, max(10, _MOST_FILLED // max(flows.n_flows, 1)))
    better: _State | None = best
    while better is not None and n_tries > 0:
        best, better = better, None
        for choice in _moves(fabric, flows, best):
            n_tries -= 1
            tried = _state(fabric, flows, choice)
            if is_fairer(tried.rates, best.rates):
                better = tried
            if better is not None or n_tries <= 0:
                break
    return (better or best).choice


def _others(
    fabric: Clos, flows: Flows, where: Hops, seed: int, time_limit_s: float
) -> Iterator[Choice]:
    """What the other policies choose, but for those that cannot choose here."""
    n_draws = min(_N_DRAWS, max(1, _MOST_DRAWN // max(flows.n_flows, 1)))
    for kind in filter(_gives_paths, POLICIES.values()):
        policy = Policy(kind.name, time_limit_s=time_limit_s)
        known = vars(policy) | {"policy": policy, "where": where}
        for one in range(seed, seed + (n_draws if kind.is_drawn else 1)):
            with suppress(SpecError):
                found = kind.found(fabric, flows, known | {"seed": one})
                if not isinstance(found, Routing):
                    yield found if isinstance(found, Choice) else found[0]


def _gives_paths(kind: PolicyKind) -> bool:
    """Whether a policy is another one that gives whole flows their paths."""
    return kind.keeps_flows_whole and kind.name != "two_level_max_min"


@dataclass(frozen=True)
class _State:
    """A choice, the links and rate of every flow, and the rate of every collective."""

    choice: Choice
    links: Indices
    rate_Bps: Array
    rates: Array


def _state(fabric: Clos, flows: Flows, choice: Choice) -> _State:
    links = clos.links_of(fabric, flows, choice)
    rate_Bps = max_min_rates(single_paths(links), fabric.capacity_Bps)
    return _State(choice, links, rate_Bps, collective_rates_Bps(flows, rate_Bps))


def _moves(fabric: Clos, flows: Flows, state: _State) -> Iterator[Choice]:
    """Choices with one flow moved off a limiting link, the slowest collective's first."""
    group = loads.groups(flows, per_collective=True)
    pace = np.full(flows.n_flows, np.inf)
    np.divide(state.rate_Bps, flows.size_bytes, out=pace, where=flows.size_bytes > 0)
    slowest_first = np.lexsort((pace, group))
    worst_flow = slowest_first[np.unique(group[slowest_first], return_index=True)[1]]
    for collective in np.argsort(state.rates, kind="stable"):
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
    from libra_planner.routing.kernels.assignment import place

    where, counts = clos.hops(fabric, flows), loads.link_counts(fabric, flows, state.choice)
    load = loads.no_load(fabric) + counts
    load[state.links[f][state.links[f] >= 0]] -= 1
    load[link] = loads.DEAD
    links = clos.links_between(fabric, state.choice, where)
    links[f] = -1
    shape = (fabric.n_spines, fabric.n_parallel, fabric.n_cores, fabric.core_parallel)
    fixed = (shape, where.first, np.array([f]), where.src_leaf)
    if place(load, *fixed, links, np.zeros_like(links)) < 0:
        yield clos.choice_of(fabric, links, where)
