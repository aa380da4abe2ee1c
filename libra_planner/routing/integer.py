"""The least possible load of the busiest link, by integer programming (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices, hops, links_of
from libra_planner.routing.assignment import annealing, edge_coloring, greedy
from libra_planner.routing.loads import (
    Bound,
    are_alike,
    busiest_s,
    by_tier,
    choice_of,
    imbalance,
    no_picks,
    rank,
    ranks,
)


def min_max_bytes(
    fabric: Clos, flows: Flows, *, time_limit_s: float, most_variables: int
) -> tuple[Choice, Bound]:
    """Paths whose busiest link between switches takes the least time for its bytes.

    The best of :func:`greedy`, :func:`edge_coloring` and :func:`annealing` by bytes is never made
    worse. An integer program looks for a better one in x[flows of one size between two leaves,
    path]: minimise T, where each link's bytes take T at most at its speed.

    Parameters
    ----------
    time_limit_s : of the integer program; once it is over, the best choice known is returned.
    most_variables : largest program that is tried; a larger one leaves the bound of switches.

    Returns
    -------
    Choice, Bound : int64, shape (n_flows,) each, -1 for no choice; and what is proven, in seconds.

    Raises
    ------
    SpecError
        As :func:`greedy`.

    Examples
    --------
    Two uplinks, flows of 3, 2 and 2: the large one by itself. Counting, any pair would do.

    >>> fabric = Clos(hosts_per_leaf=3, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.arange(3), np.arange(3, 6), np.array([3.0, 2.0, 2.0]))
    >>> choice, bound = min_max_bytes(fabric, flows, time_limit_s=10.0, most_variables=100)
    >>> bound.objective, bound.optimal
    (4.0, True)
    """
    where = hops(fabric, flows)
    known = [greedy(fabric, flows), edge_coloring(fabric, flows), annealing(fabric, flows, seed=0)]
    best = min(known, key=lambda choice: rank(fabric, flows, choice))
    most_s, least_s = busiest_s(fabric, flows, best), _least_possible_s(fabric, flows, where)
    bound = Bound(most_s, min(least_s, most_s))
    program = None if bound.optimal else _program(fabric, flows, where, most_variables)
    if program is None:
        return best, bound
    solution = _solved(program, bound, time_limit_s)
    if solution.x is not None:
        found = _chosen(flows, program, np.rint(solution.x[:-1]).astype(np.int64))
        best = min(best, found, key=lambda choice: busiest_s(fabric, flows, choice))
    most_s = busiest_s(fabric, flows, best)
    return best, Bound(most_s, min(most_s, _proven_s(solution, bound)))


def _least_possible_s(fabric: Clos, flows: Flows, where: Hops) -> float:
    """Least time of the busiest link of the busiest switch, each switch seen by itself."""
    capacity_Bps = fabric.capacity_Bps
    layers = {layer.name: layer for layer in fabric.layers}
    least_s = 0.0
    for name, of_switch, used in (
        ("leaf_up", where.src_leaf, where.leaves_leaf),
        ("spine_down", where.dst_leaf, where.leaves_leaf),
        ("spine_up", where.src_pod, where.leaves_pod),
        ("core_down", where.dst_pod, where.leaves_pod),
    ):
        if used.any():
            layer = layers[name]
            n_switches = fabric.total_leaves if name in _AT_LEAVES else fabric.total_pods
            of_each = capacity_Bps[layer.links].reshape(n_switches, -1)
            for switch in np.unique(of_switch[used]):
                sizes = flows.size_bytes[used & (of_switch == switch)]
                links_Bps = of_each[switch][of_each[switch] > 0]
                least_s = max(least_s, _least_shared_s(sizes, links_Bps))
    return least_s


_AT_LEAVES = ("leaf_up", "spine_down")


def _least_shared_s(size_bytes: Array, links_Bps: Array) -> float:
    """Least time in which equal links can take flows, none of which is divided.

    The mean, and for every k the k + 1 smallest of the k n + 1 largest flows, as some of n links
    has to take k + 1 of these.

    >>> _least_shared_s(np.array([3.0, 2.0, 2.0]), np.ones(2))
    4.0
    """
    n, ordered = links_Bps.size, np.sort(size_bytes)[::-1]
    mean_s = float(ordered.sum() / links_Bps.sum())
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    k = np.arange((ordered.size - 1) // n + 1)
    shared = total[k * n + 1] - total[k * n - k]
    return max(mean_s, float(shared.max() / links_Bps.max()))


@dataclass(frozen=True)
class _Program:
    """Variables are paths of flows of one size between two leaves.

    Parameters
    ----------
    kind : such flows, numbered, of each variable.
    picks : the path of each variable, shape (n_variables, 4).
    links : that it takes, shape (n_variables, n_layers), -1 for none; host links are left out.
    busy_s : time that one such flow takes on each of them.
    demand : flows of each kind.
    kind_of_flow : -1 for flows inside a leaf.
    """

    kind: Indices
    picks: Indices
    links: Indices
    busy_s: Array
    demand: Indices
    kind_of_flow: Indices


def _program(fabric: Clos, flows: Flows, where: Hops, most_variables: int) -> _Program | None:
    """The program, unless it would have too many variables."""
    crossing = np.flatnonzero(where.leaves_leaf)
    leaves = np.stack([where.src_leaf[crossing], where.dst_leaf[crossing]], axis=1)
    keys = np.column_stack([leaves, flows.size_bytes[crossing]])
    _, first, own, demand = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    one = crossing[first]
    near, far = _all_paths(fabric, inter=False), _all_paths(fabric, inter=True)
    n_paths = np.where(where.leaves_pod[one], len(far), len(near))
    if n_paths.sum() > most_variables:
        return None
    kind = np.repeat(np.arange(one.size), n_paths)
    picks = np.concatenate([far if where.leaves_pod[f] else near for f in one])
    flow = one[kind]
    taken = Flows(flows.src[flow], flows.dst[flow], flows.size_bytes[flow])
    links = links_of(fabric, taken, choice_of(picks))
    links[:, [0, -1]] = -1
    works = np.all((links < 0) | fabric.alive[links], axis=1)
    kind, picks, links = kind[works], picks[works], links[works]
    speed_Bps = np.where(links < 0, np.inf, fabric.capacity_Bps[links])
    busy_s = flows.size_bytes[one[kind]][:, None] / speed_Bps
    kind_of_flow = np.full(flows.n_flows, -1, dtype=np.int64)
    kind_of_flow[crossing] = own.ravel()
    return _Program(kind, picks, links, busy_s, demand, kind_of_flow)


def _all_paths(fabric: Clos, *, inter: bool) -> Indices:
    """All picks of a flow that stays in its pod, or leaves it; failed links included."""
    none = np.array([-1])
    core, down = np.arange(fabric.n_cores * fabric.core_parallel), np.arange(fabric.core_parallel)
    axes = [
        np.arange(fabric.n_spines * fabric.n_parallel),
        core if inter else none,
        down if inter else none,
        np.arange(fabric.n_parallel),
    ]
    return np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)


def _solved(program: _Program, bound: Bound, time_limit_s: float) -> optimize.OptimizeResult:
    """HiGHS' result; the last variable is T, in units of the best that is known."""
    n, unit_s = program.kind.size, bound.objective
    variable, column = np.nonzero(program.links >= 0)
    _, row = np.unique(program.links[variable, column], return_inverse=True)
    n_links = int(row.max()) + 1
    rows = np.r_[row, np.arange(n_links)]
    columns = np.r_[variable, np.full(n_links, n)]
    values = np.r_[program.busy_s[variable, column] / unit_s, -np.ones(n_links)]
    of_link = sparse.csr_array((values, (rows, columns)), shape=(n_links, n + 1))
    of_kind = sparse.csr_array(
        (np.ones(n), (program.kind, np.arange(n))), shape=(program.demand.size, n + 1)
    )
    most = np.r_[program.demand[program.kind].astype(np.float64), 1.0]
    return optimize.milp(
        np.r_[np.zeros(n), 1.0],
        integrality=np.r_[np.ones(n), 0.0],
        bounds=optimize.Bounds(np.r_[np.zeros(n), bound.dual_bound / unit_s], most),
        constraints=[
            optimize.LinearConstraint(of_kind, program.demand, program.demand),
            optimize.LinearConstraint(of_link, -np.inf, 0.0),
        ],
        options={"time_limit": time_limit_s, "mip_rel_gap": 1e-7},
    )


def _proven_s(solution: optimize.OptimizeResult, bound: Bound) -> float:
    """Lower bound after the integer program; infeasible means that nothing beats the known."""
    if solution.status == 2:
        return bound.objective
    dual = solution.mip_dual_bound
    if dual is None or not np.isfinite(dual):
        return bound.dual_bound
    return max(bound.dual_bound, float(dual) * bound.objective)


def _chosen(flows: Flows, program: _Program, n_flows: Indices) -> Choice:
    """Flows of each kind dealt to its paths in order."""
    picks, crossing = no_picks(flows), np.flatnonzero(program.kind_of_flow >= 0)
    in_order = crossing[np.argsort(program.kind_of_flow[crossing], kind="stable")]
    picks[in_order] = program.picks[np.repeat(np.arange(n_flows.size), n_flows)]
    return choice_of(picks)


MAX_VARIABLES = 300_000
"""Largest program that is tried."""


def min_max_ilp(fabric: Clos, flows: Flows, *, time_limit_s: float = 10.0) -> tuple[Choice, Bound]:
    """Paths whose busiest link between switches has the least load.

    With flows of several sizes, or links of several speeds, it is the time of
    :func:`min_max_bytes`; with flows that are alike the number of flows, which is said here. The
    better of :func:`greedy` and :func:`edge_coloring` is optimal if it meets the bound
    max over switches of ceil(flows / working links). If it does not, an integer program is
    solved in x[pair of leaves, path of switches]: minimise T, where the x of a pair add up to
    its flows, and those over n working parallel links to n T at most.

    Parameters
    ----------
    time_limit_s : of the integer program; once it is over, the best choice known is returned.

    Returns
    -------
    Choice, Bound : int64, shape (n_flows,) each, -1 for no choice; and what is proven of it.

    Raises
    ------
    SpecError
        For hosts that the fabric does not have or join, a flow whose paths have all failed, or
        with flows that are alike a program of more than :data:`MAX_VARIABLES` variables.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1e9, uplink_Bps=1e9)
    >>> flows = Flows(np.array([0, 1, 0]), np.array([2, 3, 1]), np.ones(3))
    >>> choice, bound = min_max_ilp(fabric, flows)
    >>> bound, bound.optimal
    (Bound(objective=1, dual_bound=1), True)
    """
    if not are_alike(fabric, flows):
        return min_max_bytes(fabric, flows, time_limit_s=time_limit_s, most_variables=MAX_VARIABLES)
    where = hops(fabric, flows)
    known = [greedy(fabric, flows), edge_coloring(fabric, flows)]
    best = min(known, key=lambda choice: imbalance(fabric, flows, choice))
    most, least = imbalance(fabric, flows, best)[0], _least_possible(fabric, where)
    if most <= least:
        return best, Bound(most, most)
    program = _path_program(fabric, where)
    solution = _solved_paths(program, least, most - 1, time_limit_s)
    if solution.x is not None:
        better = _spread(fabric, where, program, np.rint(solution.x[:-1]).astype(np.int64))
        best, most = better, imbalance(fabric, flows, better)[0]
    return best, Bound(most, _proven(solution, least, most))


def _least_possible(fabric: Clos, where: Hops) -> int:
    """Largest over switches of ceil(flows / working links)."""
    crossing, inter = where.leaves_leaf, where.leaves_pod
    up, core_up, core_down, down = by_tier(fabric, fabric.alive.astype(np.int64))
    least = 0
    for of_switch, links in (
        (where.src_leaf[crossing], up),
        (where.dst_leaf[crossing], down),
        (where.src_pod[inter], core_up),
        (where.dst_pod[inter], core_down),
    ):
        n_flows = np.bincount(of_switch, minlength=links.shape[0])
        n_links = links.reshape(links.shape[0], -1).sum(axis=1) if links.size else n_flows
        shares = -(-n_flows // np.maximum(n_links, 1))
        least = max(least, int(shares.max(initial=0)))
    return least


@dataclass(frozen=True)
class _PathProgram:
    """Variables are paths of pairs of leaves; columns of ``spine``, ``core``, ``bundle``.

    ``bundle`` numbers the parallel links that a path takes, over the tiers, -1 for none,
    shape (n_variables, 4); ``n_alive`` the working ones of each bundle.
    """

    pair: Indices
    spine: Indices
    core: Indices
    bundle: Indices
    n_alive: Indices
    demand: Indices
    flow_pair: Indices


def _path_program(fabric: Clos, where: Hops) -> _PathProgram:
    crossing = np.flatnonzero(where.leaves_leaf)
    ends = where.src_leaf[crossing] * fabric.total_leaves + where.dst_leaf[crossing]
    pairs, flow_pair, demand = np.unique(ends, return_inverse=True, return_counts=True)
    source, target = np.divmod(pairs, fabric.total_leaves)
    inter = source // fabric.n_leaves != target // fabric.n_leaves
    _require_few(fabric, int(inter.sum()), int((~inter).sum()))
    n_paths = np.where(inter, fabric.n_spines * max(fabric.n_cores, 1), fabric.n_spines)
    pair = np.repeat(np.arange(pairs.size), n_paths)
    path = np.arange(pair.size) - np.repeat(np.cumsum(n_paths) - n_paths, n_paths)
    spine = np.where(inter[pair], path // max(fabric.n_cores, 1), path)
    core = np.where(inter[pair], path % max(fabric.n_cores, 1), -1)
    alive = by_tier(fabric, fabric.alive.astype(np.int64))
    bundle = _bundles(fabric, source[pair], target[pair], spine, core)
    n_alive = np.concatenate([x.sum(axis=-1).ravel() for x in alive])
    works = np.all((bundle < 0) | (n_alive[bundle] > 0), axis=1)
    return _PathProgram(
        pair[works], spine[works], core[works], bundle[works], n_alive, demand, flow_pair
    )


def _require_few(fabric: Clos, n_inter: int, n_intra: int) -> None:
    n = fabric.n_spines * (n_intra + n_inter * fabric.n_cores)
    if n > MAX_VARIABLES:
        got = f"got an integer program of {n} variables"
        raise SpecError(Fault(got, f"expected at most {MAX_VARIABLES}", "use edge_coloring"))


def _bundles(
    fabric: Clos, source: Indices, target: Indices, spine: Indices, core: Indices
) -> Indices:
    """Bundles of parallel links of each path, numbered over the tiers, in order of a Tiers."""
    of_leaf = fabric.total_leaves * fabric.n_spines
    of_pod = fabric.total_pods * fabric.n_spines * fabric.n_cores
    core_up, core_down = (
        (leaf // fabric.n_leaves * fabric.n_spines + spine) * fabric.n_cores + core
        for leaf in (source, target)
    )
    up, down = (leaf * fabric.n_spines + spine for leaf in (source, target))
    columns = [up, of_leaf + core_up, of_leaf + of_pod + core_down, of_leaf + 2 * of_pod + down]
    bundle = np.stack(columns, axis=1)
    bundle[core < 0, 1:3] = -1
    return bundle


def _solved_paths(
    program: _PathProgram, least: int, most: int, time_limit_s: float
) -> optimize.OptimizeResult:
    """HiGHS' result for T between least and most; the last variable is T."""
    n, n_bundles = program.pair.size, program.n_alive.size
    of_pair = sparse.csr_array(
        (np.ones(n), (program.pair, np.arange(n))), shape=(program.demand.size, n + 1)
    )
    variable, column = np.nonzero(program.bundle >= 0)
    row = np.r_[program.bundle[variable, column], np.arange(n_bundles)]
    column = np.r_[variable, np.full(n_bundles, n)]
    values = np.r_[np.ones(variable.size), -program.n_alive]
    of_bundle = sparse.csr_array((values, (row, column)), shape=(n_bundles, n + 1))
    return optimize.milp(
        np.r_[np.zeros(n), 1.0],
        integrality=np.ones(n + 1),
        bounds=optimize.Bounds(np.r_[np.zeros(n), least], np.r_[np.full(n, np.inf), most]),
        constraints=[
            optimize.LinearConstraint(of_pair, program.demand, program.demand),
            optimize.LinearConstraint(of_bundle, -np.inf, 0.0),
        ],
        options={"time_limit": time_limit_s},
    )


def _proven(solution: optimize.OptimizeResult, least: int, most: int) -> int:
    """Lower bound after the integer program; infeasible means that nothing beats the known."""
    if solution.status == 2:
        return most
    dual = solution.mip_dual_bound
    if dual is None or not np.isfinite(dual):
        return least
    return min(most, max(least, int(np.ceil(dual - 1e-6))))


def _spread(fabric: Clos, where: Hops, program: _PathProgram, n_flows: Indices) -> Choice:
    """Flows of each pair dealt to its paths, then to the working parallel links in turn."""
    crossing = np.flatnonzero(where.leaves_leaf)
    variable = np.empty(crossing.size, dtype=np.int64)
    in_order = np.argsort(program.flow_pair, kind="stable")
    variable[in_order] = np.repeat(np.arange(n_flows.size), n_flows)
    bundle, start, links = program.bundle[variable], 0, []
    for column, tier in enumerate(by_tier(fabric, fabric.alive.astype(np.int64))):
        n_bundles = tier.size // tier.shape[-1]
        alive = tier.reshape(n_bundles, tier.shape[-1])
        links.append(_dealt(bundle[:, column], start, alive))
        start += n_bundles
    spine, core = program.spine[variable], program.core[variable]
    uplink, core_link = spine * fabric.n_parallel + links[0], core * fabric.core_parallel + links[1]
    picks = np.full((where.src_leaf.size, 4), -1, dtype=np.int64)
    picks[crossing] = np.stack([uplink, core_link, links[2], links[3]], axis=1)
    picks[~where.leaves_pod, 1:3] = -1
    return choice_of(picks)


def _dealt(bundle: Indices, start: int, alive: Indices) -> Indices:
    """Working link of its bundle for each flow, in turn, or -1; ``alive`` by bundle and link."""
    link = np.full(bundle.size, -1, dtype=np.int64)
    used = np.flatnonzero(bundle >= 0)
    own = bundle[used] - start
    working_first = np.argsort(-alive, axis=1, kind="stable")
    link[used] = working_first[own, ranks(own) % alive.sum(axis=1)[own]]
    return link
