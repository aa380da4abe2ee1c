"""Flows onto links, under any policy.

See ``docs/routing.md`` for what each policy optimises and what is proven of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import Disconnected, Fault, SpecError
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices, hops, links_of
from libra_planner.fabric.failures import require_connected
from libra_planner.routing.assignment import (
    annealing,
    collective_speeds,
    edge_coloring,
    greedy,
    two_level_max_min,
)
from libra_planner.routing.ecmp import Ecmp
from libra_planner.routing.integer import min_max_ilp
from libra_planner.routing.loads import Bound, ranks
from libra_planner.routing.policy import Policy
from libra_planner.routing.routes import Routes, single_paths, sprayed

__all__ = [
    "Bound",
    "annealing",
    "collective_speeds",
    "edge_coloring",
    "greedy",
    "min_max_ilp",
    "two_level_max_min",
]


@dataclass(frozen=True)
class Routing:
    """Where flows go.

    Parameters
    ----------
    routes : of each flow over channels: links, or for sprayed packets bundles of links.
    capacity_Bps : of each channel.
    counts : flows on each link of the fabric, shape (n_links,); shares of sprayed ones.
    links : shape (n_flows, n_layers), -1 where a flow turns earlier; ``None`` when sprayed.
    gap : of ``ilp``: how far the largest load may be from the least possible, relative.
    """

    routes: Routes
    capacity_Bps: Array
    counts: Array
    links: Indices | None
    gap: float | None = None


@dataclass(frozen=True)
class Router:
    """Routes flows over a fabric, again and again for other seeds.

    Parameters
    ----------
    fabric, flows, policy : what is routed and how.

    Raises
    ------
    SpecError
        For hosts that do not exist or that nothing joins.

    Examples
    --------
    Two flows that leave their leaf over two spines, coloured so that they do not meet:

    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.array([8.0, 8.0]))
    >>> routing = Router(fabric, flows, Policy("greedy")).routing(seed=0)
    >>> routing.counts[fabric.layer("leaf_up").links]
    array([1., 1., 0., 0.])
    """

    fabric: Clos
    flows: Flows
    policy: Policy

    def __post_init__(self) -> None:
        object.__setattr__(self, "_where", hops(self.fabric, self.flows))
        if self.fabric.failed.size:
            require_connected(self.fabric, self.flows.src, self.flows.dst)

    @property
    def where(self) -> Hops:
        """Where the flows turn around."""
        found: Hops = self.__dict__["_where"]
        return found

    def routing(self, seed: int) -> Routing:
        """The flows' paths for one seed."""
        if self.policy.name == "spray":
            spread = sprayed(self.fabric, self.flows, self.where)
            return Routing(spread.routes, spread.capacity_Bps, spread.counts, None)
        chosen, gap = self._choice(seed)
        links = links_of(self.fabric, self.flows, chosen, self.where)
        routes = single_paths(links)
        counts = np.bincount(links[links >= 0], minlength=self.fabric.n_links).astype(np.float64)
        return Routing(routes, self.fabric.capacity_Bps, counts, links, gap)

    def counts(self, seed: int) -> Array:
        """Flows on each link for one seed, without more than that."""
        if self.policy.name == "spray":
            return self.routing(seed).counts
        links = links_of(self.fabric, self.flows, self._choice(seed)[0], self.where)
        return np.bincount(links[links >= 0], minlength=self.fabric.n_links).astype(np.float64)

    def sprayed(self) -> Routing:
        """The ideal: the same flows, sprayed."""
        return Router(self.fabric, self.flows, Policy("spray")).routing(seed=0)

    def _choice(self, seed: int) -> tuple[Choice, float | None]:
        fabric, flows, policy = self.fabric, self.flows, self.policy
        if not self.where.leaves_leaf.any():
            none = np.full(flows.n_flows, -1, dtype=np.int64)
            return Choice(none, none, none, none), None
        if policy.name == "ecmp":
            return Ecmp(fabric, flows, policy, self.where).choice(seed), None
        if policy.name == "pinned":
            return pinned(fabric, flows, self.where), None
        return _assigned(fabric, flows, policy, seed)


def _assigned(fabric: Clos, flows: Flows, policy: Policy, seed: int) -> tuple[Choice, float | None]:
    """Paths that a policy gives with all flows in view, and the gap that it proves."""

    if policy.name == "ilp":
        chosen, bound = min_max_ilp(fabric, flows, time_limit_s=policy.time_limit_s)
        return chosen, bound.gap_fraction
    if policy.name == "annealing":
        return annealing(fabric, flows, seed=seed), None
    if policy.name == "two_level_max_min":
        return two_level_max_min(fabric, flows), None
    balanced = greedy if policy.name == "greedy" else edge_coloring
    return balanced(fabric, flows, per_collective=policy.per_collective), None


def pinned(fabric: Clos, flows: Flows, where: Hops) -> Choice:
    """Each flow over the spine it names, or the core where it leaves its pod.

    ``via`` is a spine of the pod, 0 .. n_spines - 1, or between pods the core among those of
    the plane, spine * n_cores + core. Parallel links are taken in turn by the flows of a
    pair of switches.

    Raises
    ------
    SpecError
        For a flow between leaves without ``via``, with one that is out of range, or over a
        link that failed.
    """
    n_vias = np.where(where.leaves_pod, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    wrong = where.leaves_leaf & ((flows.via < 0) | (flows.via >= n_vias))
    if wrong.any():
        i = int(np.argmax(wrong))
        got = (
            f"got via {flows.via[i]} for flow {i}"
            if flows.via[i] >= 0
            else f"got no via (flow {i})"
        )
        raise SpecError(Fault(got, f"expected 0 .. {n_vias[i] - 1} for a flow between leaves"))
    n_cores = max(fabric.n_cores, 1)
    spine = np.where(where.leaves_pod, flows.via // n_cores, flows.via)
    core = flows.via % n_cores
    none = np.full(flows.n_flows, -1, dtype=np.int64)
    up_bundle = where.src_leaf * fabric.n_spines + spine
    down_bundle = where.dst_leaf * fabric.n_spines + spine
    inside, between = where.leaves_leaf, where.leaves_pod
    turn = _turns(up_bundle, inside) % fabric.n_parallel
    down_turn = _turns(down_bundle, inside) % fabric.n_parallel
    chosen = Choice(
        uplink=np.where(inside, spine * fabric.n_parallel + turn, -1),
        core_link=none,
        core_down=none,
        spine_down=np.where(inside, down_turn, -1),
    )
    if fabric.n_cores:
        up = (where.src_pod * fabric.n_spines + spine) * n_cores + core
        down = (where.dst_pod * fabric.n_spines + spine) * n_cores + core
        core_turn = _turns(up, between) % fabric.core_parallel
        chosen = replace(
            chosen,
            core_link=np.where(between, core * fabric.core_parallel + core_turn, -1),
            core_down=np.where(between, _turns(down, between) % fabric.core_parallel, -1),
        )
    _check_live(fabric, flows, chosen, where)
    return chosen


def dealt(fabric: Clos, flows: Flows) -> Flows:
    """The flows with ``via`` dealt in order by every leaf to its spines (to the cores).

    FlowTracer's static comparison: paths are fixed beforehand, without a look at the load.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=4, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> dealt(fabric, Flows(np.arange(4), np.array([4, 1, 5, 6]), np.ones(4))).via
    array([ 0, -1,  1,  0])
    """
    where = hops(fabric, flows)
    n_vias = np.where(where.leaves_pod, fabric.n_spines * fabric.n_cores, fabric.n_spines)
    # One after the other over the spines first, so that both layers of links are used alike.
    turn = _turns(where.src_leaf, where.leaves_leaf)
    spine, core = turn % max(fabric.n_spines, 1), turn // max(fabric.n_spines, 1)
    n_cores = max(fabric.n_cores, 1)
    far = (spine * n_cores + (core + where.src_leaf) % n_cores) % np.maximum(n_vias, 1)
    via = np.where(where.leaves_pod, far, spine)
    return replace(flows, via=np.where(where.leaves_leaf, via, -1))


def _turns(bundle: Indices, used: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Indices:
    """How many flows before each one use the same bundle."""
    return ranks(np.where(used, bundle, -1))


def _check_live(fabric: Clos, flows: Flows, chosen: Choice, where: Hops) -> None:
    if not fabric.failed.size:
        return
    links = links_of(fabric, flows, chosen, where)
    dead = (links >= 0) & ~fabric.alive[links]
    if dead.any():
        i, layer = (int(x[0]) for x in np.nonzero(dead))
        got = f"got a path pinned to {fabric.link_name(int(links[i, layer]))}, which failed"
        fix = "pin it elsewhere"
        raise Disconnected(Fault(got, "expected links that work", fix, path=f"flow {i}"))
