"""ECMP: each switch hashes a flow's header and takes one of the equal paths."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from libra_planner.fabric.clos import Choice, Clos, Flows, Hops, Indices
from libra_planner.fabric.failures import LiveLinks, Mask
from libra_planner.routing.headers import (
    Headers,
    choice,
    drawn_source_ports,
    flow_hash,
    host_address,
    queue_pair_source_port,
    rocev2_headers,
)
from libra_planner.routing.policy import Policy

QUEUE_PAIRS = 2**24
"""Numbers of queue pairs."""

_PORTS, _FIRST_PAIRS, _FREE_PAIRS, _SWITCHES = range(4)


def _stream(seed: int, purpose: int) -> np.random.Generator:
    """A stream of its own for each kind of draw: what one needs does not move the others."""
    return np.random.default_rng([seed, 0x45434D50, purpose])


def drawn_headers(flows: Flows, seed: int) -> Headers:
    """Headers of the flows, with all that is not given drawn.

    Every address numbers its queue pairs from a start of its own; where a flow says which of
    them it is, its source port is Linux's function of the two ends' numbers. Other flows
    draw source port and queue pair freely, no port twice between two addresses. What a flow
    draws does not depend on the flows after it.
    """
    local, remote = _queue_pairs(flows, seed)
    ports = np.zeros(flows.n_flows, dtype=np.int64)
    if (flows.pair >= 0).any():
        ports = queue_pair_source_port(local, remote).astype(np.int64)
    if (flows.pair < 0).any():
        drawn = drawn_source_ports(flows.src_address, flows.dst_address, _stream(seed, _PORTS))
        ports = np.where(flows.pair < 0, drawn, ports)
    ports = np.where(flows.src_port < 0, ports, flows.src_port)
    addresses = host_address(flows.src_address), host_address(flows.dst_address)
    return rocev2_headers(*addresses, src_port=ports, queue_pair=remote)


def _queue_pairs(flows: Flows, seed: int) -> tuple[Indices, Indices]:
    """Numbers of each flow's queue pair at its sender and at its receiver."""
    n_addresses = 1 + max(flows.src_address.max(initial=0), flows.dst_address.max(initial=0))
    first = _stream(seed, _FIRST_PAIRS).integers(QUEUE_PAIRS, size=n_addresses)
    free = _stream(seed, _FREE_PAIRS).integers(QUEUE_PAIRS, size=flows.n_flows)
    local = np.where(flows.pair < 0, free, first[flows.src_address] + 2 * flows.pair)
    remote = np.where(flows.pair < 0, free, first[flows.dst_address] + 2 * flows.pair + 1)
    return local % QUEUE_PAIRS, remote % QUEUE_PAIRS


@dataclass(frozen=True)
class Ecmp:
    """ECMP on one fabric, for many seeds.

    Parameters
    ----------
    fabric, flows, policy : what is routed, and the hash.
    where : :func:`~libra_planner.fabric.clos.hops` of the flows.
    """

    fabric: Clos
    flows: Flows
    policy: Policy
    where: Hops

    def choice(self, seed: int) -> Choice:
        """The path of every flow; the seed draws source ports and the switches' hash seeds."""
        fabric, where = self.fabric, self.where
        none = np.full(self.flows.n_flows, -1, dtype=np.int64)
        if not where.leaves_leaf.any():
            return Choice(none, none, none, none)
        switch = _Hashing(fabric, self.policy, drawn_headers(self.flows, seed), seed)
        live = None if not fabric.failed.size else LiveLinks(fabric)
        at_leaf = switch.hashes("leaf", where.src_leaf)
        uplink = _pick(at_leaf, fabric.n_uplinks, live.uplinks(where) if live else None)
        spine = uplink // fabric.n_parallel
        found = Choice(np.where(where.leaves_leaf, uplink, -1), none, none, none)
        if fabric.n_cores:
            found = self._over_cores(found, spine, switch, live)
        if fabric.n_parallel == 1:
            return replace(found, spine_down=np.where(where.leaves_leaf, 0, -1))
        last = switch.hashes("spine", where.dst_pod * fabric.n_spines + spine)
        down = live.spine_down[where.dst_leaf, spine] if live else None
        return replace(
            found,
            spine_down=np.where(where.leaves_leaf, _pick(last, fabric.n_parallel, down), -1),
        )

    def _over_cores(
        self, found: Choice, spine: Indices, switch: _Hashing, live: LiveLinks | None
    ) -> Choice:
        fabric, where = self.fabric, self.where
        at_spine = switch.hashes("spine", where.src_pod * fabric.n_spines + spine)
        up = live.core_links(where, spine) if live else None
        core_link = _pick(at_spine, fabric.n_core_links, up)
        core = core_link // fabric.core_parallel
        plane = where.src_pod // fabric.n_pods
        at_core = switch.hashes("core", (plane * fabric.n_spines + spine) * fabric.n_cores + core)
        down = live.core_down[where.dst_pod, spine, core] if live else None
        core_down = _pick(at_core, fabric.core_parallel, down)
        return replace(
            found,
            core_link=np.where(where.leaves_pod, core_link, -1),
            core_down=np.where(where.leaves_pod, core_down, -1),
        )


class _Hashing:
    """The hash of every flow at a switch, which has a seed of its own unless it is shared."""

    def __init__(self, fabric: Clos, policy: Policy, headers: Headers, seed: int) -> None:
        self.policy, self.headers = policy, headers
        rng = _stream(seed, _SWITCHES)
        shared = rng.integers(2**32, size=1, dtype=np.uint32)
        self.seeds = {
            tier: shared if policy.shared_seed else rng.integers(2**32, size=n, dtype=np.uint32)
            for tier, n in fabric.n_switches.items()
        }

    def hashes(self, tier: str, switch: Indices) -> NDArray[np.uint32]:
        seeds = self.seeds[tier]
        return flow_hash(
            self.headers,
            function=self.policy.hash,
            seed=seeds[0] if self.policy.shared_seed else seeds[switch],
            with_queue_pair=self.policy.enhanced,
        )


def _pick(hashes: NDArray[np.uint32], n_choices: int, live: Mask | None) -> Indices:
    """The link that each hash takes of ``n_choices``, or of those that are live."""
    if live is None:
        return choice(hashes, n_choices).astype(np.int64)
    position = choice(hashes, np.maximum(live.sum(axis=1), 1)).astype(np.int64)
    order = np.argsort(~live, axis=1, kind="stable")
    return np.take_along_axis(order, position[:, None], axis=1)[:, 0]
