"""The least possible load of the busiest link, by integer programming (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, sparse

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric import clos
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices
from libra_planner.routing.assignment import annealing, edge_coloring, greedy
from libra_planner.routing.loads import Bound, are_alike, rank, ranks

MAX_VARIABLES = 300_000
"""Largest program that is tried."""


def min_max_ilp(fabric: Clos, flows: Flows, *, time_limit_s: float = 10.0) -> tuple[Choice, Bound]:
    """Paths whose busiest link between switches has the least load.

    The load is the number of flows; with flows of several sizes, or links of several speeds, it
    is the time that a link takes for its bytes at its speed. The best of :func:`greedy`,
    :func:`edge_coloring` and, by bytes, :func:`annealing` is never made worse; it is optimal if
    it meets the bound of the busiest switch, seen by itself. If it does not, an integer program
    is solved in x[flows of one size between two leaves, path]: minimise T, where the x of such
    flows add up to their number, and no link's load is above T. Flows that are alike divide
    evenly over parallel links, so that n of these which work are one link that may have n T.

    Parameters
    ----------
    time_limit_s : of the integer program; once it is over, the best choice known is returned.

    Returns
    -------
    Choice, Bound : int64, shape (n_flows,) each, -1 for no choice; and what is proven of it, in
        flows or in seconds.

    Raises
    ------
    SpecError
        For hosts that the fabric does not have or join, a flow whose paths have all failed, or
        with flows that are alike a program of more than :data:`MAX_VARIABLES` variables; by
        bytes the bound of switches is left then.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=3, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.array([0, 1, 0]), np.array([3, 4, 1]), np.ones(3))
    >>> choice, bound = min_max_ilp(fabric, flows)
    >>> bound, bound.optimal
    (Bound(objective=1, dual_bound=1), True)

    Two uplinks, flows of 3, 2 and 2: the large one by itself. Counting, any pair would do.

    >>> flows = Flows(np.arange(3), np.arange(3, 6), np.array([3.0, 2.0, 2.0]))
    >>> choice, bound = min_max_ilp(fabric, flows)
    >>> bound.objective, bound.optimal
    (4.0, True)
    """
    alike, where = are_alike(fabric, flows), clos.hops(fabric, flows)
    known = [greedy(fabric, flows), edge_coloring(fabric, flows)]
    known += [] if alike else [annealing(fabric, flows, seed=0)]
    best = min(known, key=lambda choice: rank(fabric, flows, choice))
    most, least = rank(fabric, flows, best)[0], _least_possible(fabric, flows, where)
    bound = Bound(most, min(least, most))
    if bound.optimal:
        return best, bound
    program = _program(fabric, flows, where)
    if program is None:
        return best, bound
    solution = _solved(program, bound, time_limit_s)
    if solution.x is not None:
        found = _chosen(fabric, flows, program, np.rint(solution.x[:-1]).astype(np.int64))
        best = min(best, found, key=lambda choice: rank(fabric, flows, choice)[0])
    most = rank(fabric, flows, best)[0]
    return best, Bound(most, min(most, _proven(solution, bound, counts=alike)))


def _least_possible(fabric: Clos, flows: Flows, where: Hops) -> float:
    """Least load of the busiest link of the busiest switch, each switch seen by itself."""
    alike = are_alike(fabric, flows)
    weight = np.ones(flows.n_flows) if alike else flows.size_bytes
    speed = fabric.alive.astype(np.float64) if alike else fabric.capacity_Bps
    least = 0.0
    owners = (where.src_leaf, where.src_pod, where.dst_pod, where.dst_leaf)
    for layer in fabric.layers[1:-1]:
        of_switch = owners[clos.BETWEEN.index(layer.name)]
        used = where.leaves_leaf if layer.tier == 1 else where.leaves_pod
        of_each = speed[layer.links].reshape(layer.n_owners, -1)
        for switch in np.unique(of_switch[used]):
            working = of_each[switch][of_each[switch] > 0]
            shared = _least_shared(weight[used & (of_switch == switch)], working)
            least = max(least, shared)
    return round(least) if alike else least


def _least_shared(weight: Array, speed: Array) -> float:
    """Least load with which equal links can take flows, none of which is divided.

    The mean, and for every k the k + 1 smallest of the k n + 1 largest flows, as some of n links
    has to take k + 1 of these.

    >>> _least_shared(np.array([3.0, 2.0, 2.0]), np.ones(2))
    4.0
    """
    n, ordered = speed.size, np.sort(weight)[::-1]
    mean = float(ordered.sum() / speed.sum())
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    k = np.arange((ordered.size - 1) // n + 1)
    shared = total[k * n + 1] - total[k * n - k]
    return max(mean, float(shared.max() / speed.max()))


@dataclass(frozen=True)
class _Program:
    """Variables are paths of flows of one kind: of one size, between two leaves.

    Parameters
    ----------
    fabric : whose paths they are: with flows that are alike parallel links are one.
    kind : of each variable.
    picks : the path of each variable, shape (n_variables, 4).
    links : between switches that it takes, shape (n_variables, 4), -1 for none.
    load : that one such flow adds to each of them.
    room : load that each link of the fabric takes for each unit of T.
    demand : flows of each kind.
    in_order : flows that leave their leaf, by kind.
    counts : whether loads are numbers of flows.
    """

    fabric: Clos
    kind: Indices
    picks: Indices
    links: Indices
    load: Array
    room: Array
    demand: Indices
    in_order: Indices
    counts: bool


def _program(fabric: Clos, flows: Flows, where: Hops) -> _Program | None:
    """The program; ``None`` for too many variables by bytes."""
    counts, crossing = are_alike(fabric, flows), np.flatnonzero(where.leaves_leaf)
    n_working = np.ones(fabric.n_links)
    if counts:
        fabric, n_working = _bundled(fabric)
    sizes = np.zeros(crossing.size) if counts else flows.size_bytes[crossing]
    keys = np.column_stack([where.src_leaf[crossing], where.dst_leaf[crossing], sizes])
    _, first, own, demand = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    one = crossing[first]
    near, far = _all_paths(fabric, inter=False), _all_paths(fabric, inter=True)
    n_paths = np.where(where.leaves_pod[one], len(far), len(near))
    if n_paths.sum() > MAX_VARIABLES:
        if not counts:
            return None
        got = f"got an integer program of {n_paths.sum()} variables"
        raise SpecError(Fault(got, f"expected at most {MAX_VARIABLES}", "use edge_coloring"))
    kind = np.repeat(np.arange(one.size), n_paths)
    picks = np.concatenate([far if where.leaves_pod[f] else near for f in one])
    flow = one[kind]
    taken = Flows(flows.src[flow], flows.dst[flow], flows.size_bytes[flow])
    links = clos.links_between(fabric, Choice(*picks.T), clos.hops(fabric, taken))
    works = np.all((links < 0) | fabric.alive[links], axis=1)
    kind, picks, links = kind[works], picks[works], links[works]
    load = np.ones(links.shape)
    if not counts:
        speed_Bps = np.where(links < 0, np.inf, fabric.capacity_Bps[links])
        load = flows.size_bytes[one[kind]][:, None] / speed_Bps
    in_order = crossing[np.argsort(own.ravel(), kind="stable")]
    return _Program(fabric, kind, picks, links, load, n_working, demand, in_order, counts)


def _bundled(fabric: Clos) -> tuple[Clos, Array]:
    """The fabric with parallel links as one, and how many of them work, shape (n_links,)."""
    one = replace(fabric, n_parallel=1, core_parallel=1, failed=np.zeros(0, dtype=np.int64))
    pairs = zip(fabric.layers, one.layers, strict=True)
    working = [fabric.alive[all_.links].reshape(own.n_links, -1).sum(axis=1) for all_, own in pairs]
    n_working = np.concatenate(working).astype(np.float64)
    return replace(one, failed=np.flatnonzero(n_working == 0)), n_working


def _all_paths(fabric: Clos, *, inter: bool) -> Indices:
    """All picks of a flow that stays in its pod, or leaves it; failed links included."""
    numbers = (fabric.n_uplinks, fabric.n_core_links, fabric.core_parallel, fabric.n_parallel)
    axes = [np.arange(n) for n in numbers]
    if not inter:
        axes[1] = axes[2] = np.array([-1])
    return np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)


def _solved(program: _Program, bound: Bound, time_limit_s: float) -> optimize.OptimizeResult:
    """HiGHS' result; the last variable is T, in flows, or in units of the best that is known.

    Of whole numbers of flows only less than the best known is asked for.
    """
    n, counts = program.kind.size, program.counts
    unit, most = (1.0, bound.objective - 1) if counts else (bound.objective, 1.0)
    variable, column = np.nonzero(program.links >= 0)
    used, row = np.unique(program.links[variable, column], return_inverse=True)
    rows = np.r_[row, np.arange(used.size)]
    columns = np.r_[variable, np.full(used.size, n)]
    values = np.r_[program.load[variable, column] / unit, -program.room[used]]
    of_link = sparse.csr_array((values, (rows, columns)), shape=(used.size, n + 1))
    of_kind = sparse.csr_array(
        (np.ones(n), (program.kind, np.arange(n))), shape=(program.demand.size, n + 1)
    )
    demand = program.demand[program.kind].astype(np.float64)
    upper = np.r_[np.full(n, np.inf) if counts else demand, most]
    return optimize.milp(
        np.r_[np.zeros(n), 1.0],
        integrality=np.r_[np.ones(n), float(counts)],
        bounds=optimize.Bounds(np.r_[np.zeros(n), bound.dual_bound / unit], upper),
        constraints=[
            optimize.LinearConstraint(of_kind, program.demand, program.demand),
            optimize.LinearConstraint(of_link, -np.inf, 0.0),
        ],
        options={"time_limit": time_limit_s} | ({} if counts else {"mip_rel_gap": 1e-7}),
    )


def _proven(solution: optimize.OptimizeResult, bound: Bound, *, counts: bool) -> float:
    """Lower bound after the integer program; infeasible means that nothing beats the known."""
    dual = solution.mip_dual_bound
    if solution.status == 2:
        return bound.objective
    if dual is None or not np.isfinite(dual):
        return bound.dual_bound
    proven = int(np.ceil(dual - 1e-6)) if counts else float(dual) * bound.objective
    return max(bound.dual_bound, proven)


def _chosen(fabric: Clos, flows: Flows, program: _Program, n_flows: Indices) -> Choice:
    """Flows of each kind dealt to its paths in order, then to parallel links in turn."""
    picks = np.full((flows.n_flows, 4), -1)
    picks[program.in_order] = program.picks[np.repeat(np.arange(n_flows.size), n_flows)]
    choice = Choice(*picks.T)
    if not program.counts:
        return choice
    links = clos.links_between(program.fabric, choice, clos.hops(program.fabric, flows))
    for all_, own in zip(fabric.layers[1:-1], program.fabric.layers[1:-1], strict=True):
        i = clos.BETWEEN.index(all_.name)
        used = links[:, i] >= 0
        bundle = links[used, i] - own.start
        alive = fabric.alive[all_.links].reshape(own.n_links, -1)
        working_first = np.argsort(~alive, axis=1, kind="stable")
        turn = working_first[bundle, ranks(bundle) % alive.sum(axis=1)[bundle]]
        picks[used, i] = picks[used, i] * alive.shape[1] + turn
    return choice
