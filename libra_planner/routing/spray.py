"""Spraying: every flow's packets over all equal paths, the ideal that other policies chase."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Clos, Flows, Hops, Indices
from libra_planner.fabric.failures import LiveLinks
from libra_planner.routing.trees import Routes, single_paths

_MOST_HOPS = 100_000_000
"""Flow and link pairs held at once: about 2 GB."""


@dataclass(frozen=True)
class Sprayed:
    """Sprayed flows.

    Parameters
    ----------
    routes : over channels: single links, or bundles of equal links that all packets of a
        flow use alike.
    capacity_Bps : of each channel.
    counts : flows on each link of the fabric, shape (n_links,); fractions count.
    """

    routes: Routes
    capacity_Bps: Array
    counts: Array


def sprayed(fabric: Clos, flows: Flows, where: Hops) -> Sprayed:
    """Flows spread evenly over the paths that are left.

    Without failures all uplinks of a leaf carry the same, so that they are one channel of
    their summed bandwidth, and so are all links between a pod's spines and the cores.

    Raises
    ------
    SpecError
        For a fabric with failures and so many flows that their paths do not fit in memory.
    """
    if fabric.failed.size:
        return _over_live_links(fabric, flows, where)
    return _over_bundles(fabric, flows, where)


def _over_bundles(fabric: Clos, flows: Flows, where: Hops) -> Sprayed:
    """Channels are layer by layer; one per host, per leaf or per pod."""
    sizes = {"host": 1, "leaf": fabric.n_uplinks, "spine": fabric.n_spines * fabric.n_core_links}
    tier = {"spine_down": "leaf", "core_down": "spine"}
    source = {"host_up": flows.src, "leaf_up": where.src_leaf, "spine_up": where.src_pod}
    target = {"host_down": flows.dst, "spine_down": where.dst_leaf, "core_down": where.dst_pod}
    used = {"leaf": where.leaves_leaf, "spine": where.leaves_pod}
    columns, capacity, bundle, start = [], [], [], 0
    for layer in fabric.layers:
        name = tier.get(layer.name, layer.name.split("_")[0])
        end = (source | target)[layer.name]
        columns.append(np.where(used.get(name, True), start + end, -1))
        n = layer.n_links // sizes[name]
        capacity.append(fabric.capacity_Bps[layer.links].reshape(n, -1).sum(axis=1))
        bundle.append(np.full(n, sizes[name]))
        start += n
    routes = single_paths(np.stack(columns, axis=1))
    n_links = np.concatenate(bundle)
    counts = np.repeat(routes.counts(start) / n_links, n_links)
    return Sprayed(routes, np.concatenate(capacity), counts)


def _over_live_links(fabric: Clos, flows: Flows, where: Hops) -> Sprayed:
    """Every link that is left, in the shares that even splitting at each switch gives."""
    width = 2 + 2 * fabric.n_uplinks + 2 * fabric.n_spines * fabric.n_core_links
    if flows.n_flows * width > _MOST_HOPS:
        got = f"got {flows.n_flows:,} flows over {width} links each with failed links"
        fix = "use fewer flows, or another policy"
        raise SpecError(Fault(got, f"expected at most {_MOST_HOPS:,} pairs to spray", fix))
    parts = [_host_links(fabric, flows)]
    if fabric.n_spines:
        parts += _between_switches(fabric, where)
    flow, link, fraction = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(flow, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(flow, minlength=flows.n_flows))))
    routes = Routes(start.astype(np.int64), link[order], fraction[order])
    return Sprayed(routes, fabric.capacity_Bps, routes.counts(fabric.n_links))


_Part = tuple[Indices, Indices, Array]


def _host_links(fabric: Clos, flows: Flows) -> _Part:
    every = np.arange(flows.n_flows)
    up, down = fabric.layer("host_up").start, fabric.layer("host_down").start
    links = np.concatenate((up + flows.src, down + flows.dst))
    return np.concatenate((every, every)), links, np.ones(2 * flows.n_flows)


def _between_switches(fabric: Clos, where: Hops) -> list[_Part]:
    """Shares of the links of each switch layer."""
    live = LiveLinks(fabric)
    uplinks = live.uplinks(where) & where.leaves_leaf[:, None]
    by_spine = uplinks.reshape(-1, fabric.n_spines, fabric.n_parallel)
    share = _split(uplinks, 1)
    # Whole numbers are added, not shares: n times 1/n can be over 1.
    at_spine = _split(by_spine.sum(axis=2), 1)
    down_share = at_spine[:, :, None] * _split(live.spine_down[where.dst_leaf], 2)
    parts = [
        _part(share, fabric.layer("leaf_up").start + where.src_leaf * fabric.n_uplinks),
        _part(down_share, fabric.layer("spine_down").start + where.dst_leaf * fabric.n_uplinks),
    ]
    if not fabric.n_cores:
        return parts
    to_core = at_spine * where.leaves_pod[:, None]
    up, back = live.spine_up[where.src_pod], live.core_down[where.dst_pod]
    up = up & back.any(axis=3, keepdims=True)
    up_share = to_core[:, :, None, None] * _split(up, 2, 3)
    at_core = to_core[:, :, None] * _split(up.sum(axis=3), 2)
    back_share = at_core[:, :, :, None] * _split(back, 3)
    n_per_pod = fabric.n_spines * fabric.n_core_links
    return [
        *parts,
        _part(up_share, fabric.layer("spine_up").start + where.src_pod * n_per_pod),
        _part(back_share, fabric.layer("core_down").start + where.dst_pod * n_per_pod),
    ]


def _split(links: NDArray[np.generic], *axes: int) -> Array:
    """Parts of a whole along some axes, as the numbers of links are; 0 where there is none."""
    numbers = links.astype(np.float64)
    whole = np.maximum(numbers.sum(axis=axes, keepdims=True), 1)
    return np.asarray(numbers / whole)


def _part(share: Array, first_link: Indices) -> _Part:
    """The pairs of flow and link with a share, from shares by flow and link of its group."""
    flat = share.reshape(len(share), math.prod(share.shape[1:]))
    flow, offset = np.nonzero(flat)
    return flow, first_link[flow] + offset, flat[flow, offset]
