"""ECMP with one failure after another: only flows near a failure hash again (C10)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from libra_planner.fabric import clos
from libra_planner.fabric.clos import Clos, Flows, Hops, Indices, Mask
from libra_planner.routing.ecmp import Headers, drawn_headers, hashed_choice
from libra_planner.routing.policy import Policy
from libra_planner.routing.routes import Router


@dataclass(frozen=True)
class Rehashed:
    """The same flows under ECMP, whatever fails.

    A switch hashes a flow over the links that lead to its other leaf. So a failure moves only flows
    that leave or reach a leaf, or a pod, whose links failed.

    Parameters
    ----------
    fabric : with nothing broken.
    flows, policy, seed : what is routed, and how.

    Examples
    --------
    >>> from libra_planner.fabric.clos import cable_failures, with_failed
    >>> fabric = Clos(hosts_per_leaf=2, n_leaves=2, n_spines=2, host_Bps=1.0, uplink_Bps=1.0)
    >>> flows = Flows(np.array([0, 1]), np.array([2, 3]), np.ones(2))
    >>> broken = with_failed(fabric, cable_failures(fabric)[0])
    >>> found = Rehashed(fabric, flows, Policy("ecmp"), 0).links(broken)
    >>> bool((found == Router(broken, flows, Policy("ecmp")).routing(0).links).all())
    True
    """

    fabric: Clos
    flows: Flows
    policy: Policy
    seed: int

    @cached_property
    def _where(self) -> Hops:
        return clos.hops(self.fabric, self.flows)

    @cached_property
    def _headers(self) -> Headers:
        return drawn_headers(self.flows, self.seed)

    @cached_property
    def _whole(self) -> Indices:
        routing = Router(self.fabric, self.flows, self.policy).routing(self.seed)
        return np.zeros(0, np.int64) if routing.links is None else routing.links

    def links(self, broken: Clos) -> Indices:
        """Links of every flow, shape (n_flows, n_layers), -1 where it turns earlier.

        Parameters
        ----------
        broken : the fabric with links that failed.

        Raises
        ------
        Disconnected
            For flows that no path joins any more.
        """
        near = np.flatnonzero(self._near(broken))
        found = self._whole.copy()
        if not near.size:
            return found
        flows = _some(self.flows, near)
        clos.require_connected(broken, flows.src, flows.dst)
        columns: list[Any] = [one[near] for one in self._where]
        where, headers = Hops(*columns), _some(self._headers, near)
        choice = hashed_choice(broken, headers, self.policy, where, self.seed)
        found[near] = clos.links_of(broken, flows, choice, where)
        return found

    def _near(self, broken: Clos) -> Mask:
        """Flows whose choices a failure may change, shape (n_flows,)."""
        where, near = self._where, np.zeros(self.flows.n_flows, dtype=np.bool_)
        for layer in broken.layers[1:-1]:
            failed = broken.failed[(broken.failed >= layer.start)] - layer.start
            owners = failed[failed < layer.n_links] // (layer.n_links // layer.n_owners)
            ends, crosses = (where.src_leaf, where.dst_leaf), where.leaves_leaf
            if layer.tier > 1:
                ends, crosses = (where.src_pod, where.dst_pod), where.leaves_pod
            if owners.size:
                hit = np.zeros(layer.n_owners, dtype=np.bool_)
                hit[owners] = True
                near |= crosses & (hit[ends[0]] | hit[ends[1]])
        return near


def _some(columns: Flows | Headers, which: Indices) -> Any:
    """Some entries of columns."""
    return replace(
        columns, **{one.name: getattr(columns, one.name)[which] for one in fields(columns)}
    )
