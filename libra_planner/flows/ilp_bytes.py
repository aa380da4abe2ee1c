"""The least possible time of the busiest link, by integer programming over single links (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from libra_planner.flows.annealing import annealing
from libra_planner.flows.bound import Bound
from libra_planner.flows.coloring import edge_coloring
from libra_planner.flows.fabric import Array, Clos, Indices
from libra_planner.flows.flow import Flows
from libra_planner.flows.greedy import greedy
from libra_planner.flows.loads import busiest_s, choice_of, no_picks, rank
from libra_planner.flows.paths import Choice, Hops, hops, links_of


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
