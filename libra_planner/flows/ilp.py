"""The least possible maximum of flows on a link, by integer programming (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from libra_planner.errors import Fault, SpecError
from libra_planner.flows.bound import Bound
from libra_planner.flows.coloring import edge_coloring
from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.greedy import greedy
from libra_planner.flows.ilp_bytes import min_max_bytes
from libra_planner.flows.loads import are_alike, by_tier, choice_of, imbalance, ranks
from libra_planner.flows.paths import Choice, Hops, hops

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
    program = _program(fabric, where)
    solution = _solved(program, least, most - 1, time_limit_s)
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
class _Program:
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


def _program(fabric: Clos, where: Hops) -> _Program:
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
    return _Program(
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


def _solved(
    program: _Program, least: int, most: int, time_limit_s: float
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


def _spread(fabric: Clos, where: Hops, program: _Program, n_flows: Indices) -> Choice:
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
