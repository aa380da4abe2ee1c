"""Flows onto links, under any policy.

See ``docs/routing.md`` for what each policy optimises and what is proven of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from libra_planner.errors import Disconnected, Fault, SpecError
from libra_planner.fabric.clos import Array, Choice, Clos, Flows, Hops, Indices, hops, links_of
from libra_planner.fabric.failures import require_connected
from libra_planner.routing.loads import ranks
from libra_planner.routing.policy import Policy
from libra_planner.routing.routes import Routing, single_paths


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
        found, gap = self._found(seed)
        if isinstance(found, Routing):
            return found
        links = links_of(self.fabric, self.flows, found, self.where)
        counts = _counts(links, self.fabric)
        return Routing(single_paths(links), self.fabric.capacity_Bps, counts, links, gap)

    def counts(self, seed: int) -> Array:
        """Flows on each link for one seed, without more than that."""
        found, _ = self._found(seed)
        if isinstance(found, Routing):
            return found.counts
        return _counts(links_of(self.fabric, self.flows, found, self.where), self.fabric)

    def sprayed(self) -> Routing:
        """The ideal: the same flows, sprayed."""
        return Router(self.fabric, self.flows, Policy("spray")).routing(seed=0)

    def _found(self, seed: int) -> tuple[Choice | Routing, float | None]:
        """Paths, or packets over all of them, and the gap that the policy proves."""
        kind = self.policy.kind
        if kind.keeps_flows_whole and not self.where.leaves_leaf.any():
            none = np.full(self.flows.n_flows, -1, dtype=np.int64)
            return Choice(none, none, none, none), None
        known = vars(self.policy) | {"policy": self.policy, "where": self.where, "seed": seed}
        found = kind.found(self.fabric, self.flows, known)
        chosen, bound = (found, None) if isinstance(found, Choice | Routing) else found
        return chosen, bound and bound.gap_fraction


def _counts(links: Indices, fabric: Clos) -> Array:
    """Flows on each link of a fabric, from the links of each flow."""
    return np.bincount(links[links >= 0], minlength=fabric.n_links).astype(np.float64)


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
        chosen = chosen._replace(
            core_link=np.where(between, core * fabric.core_parallel + core_turn, -1),
            core_down=np.where(between, _turns(down, between) % fabric.core_parallel, -1),
        )
    _check_live(fabric, flows, chosen, where)
    return chosen


def with_vias(fabric: Clos, flows: Flows) -> Flows:
    """The flows with ``via`` dealt in order by every leaf to its spines (to the cores).

    FlowTracer's static comparison: paths are fixed beforehand, without a look at the load.

    Examples
    --------
    >>> fabric = Clos(hosts_per_leaf=4, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> with_vias(fabric, Flows(np.arange(4), np.array([4, 1, 5, 6]), np.ones(4))).via
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
