"""Paths through a folded Clos fabric, from the choice made at each switch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.flow import Flows


@dataclass(frozen=True)
class Hops:
    """Which switches decide about each flow, shape (n_flows,) each.

    Parameters
    ----------
    src_leaf, dst_leaf, src_pod, dst_pod : indices over all pods.
    leaves_leaf : whether a flow goes up to a spine.
    leaves_pod : whether it goes on up to a core.
    """

    src_leaf: Indices
    dst_leaf: Indices
    src_pod: Indices
    dst_pod: Indices
    leaves_leaf: NDArray[np.bool_]
    leaves_pod: NDArray[np.bool_]


def hops(fabric: Clos, flows: Flows) -> Hops:
    """Where the flows turn around.

    Raises
    ------
    SpecError
        For hosts that the fabric does not have, or that it does not join.
    """
    for name, host in (("src", flows.src), ("dst", flows.dst)):
        wrong = np.flatnonzero((host < 0) | (host >= fabric.n_hosts))
        if wrong.size:
            got = f"got {name} {host[wrong[0]]} of flow {wrong[0]}"
            raise SpecError(Fault(got, f"expected a host of 0 .. {fabric.n_hosts - 1}"))
    leaf = fabric.leaf_of(flows.src), fabric.leaf_of(flows.dst)
    pod = fabric.pod_of(flows.src), fabric.pod_of(flows.dst)
    leaves_leaf, leaves_pod = leaf[0] != leaf[1], pod[0] != pod[1]
    apart = (leaves_leaf & (fabric.n_spines == 0)) | (leaves_pod & (fabric.n_cores == 0))
    apart |= fabric.plane_of(flows.src) != fabric.plane_of(flows.dst)
    if apart.any():
        i = int(np.argmax(apart))
        got = f"flow {i} goes from host {flows.src[i]} to host {flows.dst[i]}"
        raise SpecError(Fault(got, "expected hosts that the fabric joins"))
    return Hops(*leaf, *pod, leaves_leaf, leaves_pod)


@dataclass(frozen=True)
class Choice:
    """What the switches of each flow's path choose, shape (n_flows,) each; -1 for no choice.

    Parameters
    ----------
    uplink : at the leaf, of its ``n_uplinks``: spine * n_parallel + parallel link.
    core_link : at the spine, of its ``n_core_links``: core * core_parallel + parallel link.
    core_down : at the core, of the ``core_parallel`` links to the other pod's spine.
    spine_down : at the last spine, of the ``n_parallel`` links to the leaf.
    """

    uplink: Indices
    core_link: Indices
    core_down: Indices
    spine_down: Indices


def links_of(fabric: Clos, flows: Flows, choice: Choice, where: Hops | None = None) -> Indices:
    """Links that each flow crosses, in order, shape (n_flows, n_layers); -1 where it turns earlier.

    Parameters
    ----------
    choice : for flows that leave their leaf (their pod), within range.
    where : :func:`hops` of the flows, if they are known already.
    """
    where = hops(fabric, flows) if where is None else where
    links = np.full((flows.n_flows, len(fabric.layers)), -1, dtype=np.int64)
    column = {layer.name: i for i, layer in enumerate(fabric.layers)}

    def put(name: str, mask: NDArray[np.bool_], index: Indices) -> None:
        start = fabric.layer(name).start
        links[mask, column[name]] = start + index[mask]

    everyone = np.ones(flows.n_flows, dtype=np.bool_)
    put("host_up", everyone, flows.src)
    put("host_down", everyone, flows.dst)
    if fabric.n_spines:
        spine = choice.uplink // fabric.n_parallel
        down = (where.dst_leaf * fabric.n_spines + spine) * fabric.n_parallel + choice.spine_down
        put("leaf_up", where.leaves_leaf, where.src_leaf * fabric.n_uplinks + choice.uplink)
        put("spine_down", where.leaves_leaf, down)
    if fabric.n_cores:
        core = choice.core_link // fabric.core_parallel
        up = (where.src_pod * fabric.n_spines + spine) * fabric.n_core_links + choice.core_link
        down = (where.dst_pod * fabric.n_spines + spine) * fabric.n_cores + core
        put("spine_up", where.leaves_pod, up)
        put("core_down", where.leaves_pod, down * fabric.core_parallel + choice.core_down)
    return links
