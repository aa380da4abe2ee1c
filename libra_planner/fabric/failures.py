"""Links and spines that are down: drawn at random, one at a time, and who they cut off.

Switches withdraw what leads nowhere: a leaf hashes over the uplinks from which some path
to the other leaf remains, and so on upwards. Masks are ``None`` where nothing failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from libra_planner.errors import Disconnected, Fault, SpecError
from libra_planner.fabric.clos import Clos, Hops, Indices, Mask, Tiers, by_tier


@dataclass(frozen=True)
class LiveLinks:
    """What works of a fabric.

    Parameters
    ----------
    fabric : the fabric, its failed links marked.
    """

    fabric: Clos

    @cached_property
    def tiers(self) -> Tiers:
        """Which links work, by tier and direction."""
        return by_tier(self.fabric, self.fabric.alive)

    def uplinks(self, where: Hops) -> Mask:
        """Uplinks of its leaf that lead to each flow's other leaf, shape (n_flows, n_uplinks)."""
        reaches = np.any(self.tiers.spine_down, axis=2)[where.dst_leaf]
        if where.leaves_pod.any():
            reaches = reaches & (self._pods_joined(where) | ~where.leaves_pod[:, None])
        live: Mask = self.tiers.leaf_up[where.src_leaf] & reaches[:, :, None]
        return live.reshape(len(live), self.fabric.n_uplinks)

    def _pods_joined(self, where: Hops) -> Mask:
        """Spine positions that some core joins to each flow's other pod, (n_flows, n_spines)."""
        if not self.fabric.n_cores:
            return np.zeros((len(where.src_pod), self.fabric.n_spines), dtype=np.bool_)
        n_pods = self.fabric.total_pods
        pairs, which = np.unique(where.src_pod * n_pods + where.dst_pod, return_inverse=True)
        up, down = np.any(self.tiers.spine_up, axis=3), np.any(self.tiers.core_down, axis=3)
        joined: Mask = np.any(up[pairs // n_pods] & down[pairs % n_pods], axis=2)
        return joined[which]

    def core_links(self, where: Hops, spine: Indices) -> Mask:
        """Core links of each flow's spine that lead to the other pod, (n_flows, n_core_links)."""
        down = np.any(self.tiers.core_down, axis=3)[where.dst_pod, spine]
        live: Mask = self.tiers.spine_up[where.src_pod, spine] & down[:, :, None]
        return live.reshape(len(live), self.fabric.n_core_links)


_SHOWN = 5
_BETWEEN_SWITCHES = ("leaf_up", "spine_up")


def cable_failures(fabric: Clos) -> Indices:
    """Both links of every cable between switches, shape (n_cables, 2).

    >>> cable_failures(Clos(1, 2, 1, host_Bps=1.0, uplink_Bps=1.0)).tolist()
    [[2, 4], [3, 5]]
    """
    up = [layer for layer in fabric.layers if layer.name in _BETWEEN_SWITCHES]
    links = [np.arange(layer.start, layer.start + layer.n_links) for layer in up]
    cables = np.concatenate([*links, np.zeros(0, dtype=np.int64)])
    return np.stack([cables, fabric.reverse(cables)], axis=1)


def spine_failures(fabric: Clos) -> Indices:
    """All links of every spine, shape (n_spines of all pods, links of a spine)."""
    n_spines = fabric.total_pods * fabric.n_spines
    if not n_spines:
        return np.zeros((0, 0), dtype=np.int64)
    shape = (fabric.total_pods, fabric.n_leaves, fabric.n_spines, fabric.n_parallel)
    leaf_up = fabric.layer("leaf_up").start + np.arange(np.prod(shape)).reshape(shape)
    up = leaf_up.transpose(0, 2, 1, 3).reshape(n_spines, -1)
    if fabric.n_cores:
        n_up = n_spines * fabric.n_core_links
        cores = fabric.layer("spine_up").start + np.arange(n_up).reshape(n_spines, -1)
        up = np.concatenate([up, cores], axis=1)
    return np.concatenate([up, fabric.reverse(up)], axis=1)


def single_failures(fabric: Clos) -> Iterator[tuple[str, Indices]]:
    """Every N-1 case: a name, and the links that are down; first cables, then spines.

    Equal switches are not merged: which of them fails matters as soon as flows have paths.

    >>> names = [name for name, _ in single_failures(Clos(1, 2, 1, 1.0, 1.0))]
    >>> names[0], names[-1]
    ('leaf 0 - spine 0', 'spine 0')
    """
    for links in cable_failures(fabric):
        yield fabric.link_name(int(links[0])).replace(" -> ", " - "), links
    for spine, links in enumerate(spine_failures(fabric)):
        yield f"spine {spine}", links


def with_failed(fabric: Clos, links: Indices) -> Clos:
    """The fabric with these links down too."""
    failed = np.union1d(fabric.failed, np.asarray(links, dtype=np.int64).ravel())
    return replace(fabric, failed=failed)


def fail(fabric: Clos, *, n_links: int = 0, n_spines: int = 0, seed: int = 0) -> Clos:
    """The fabric with cables and spines down, drawn without replacement.

    With one seed the failures of smaller counts are among those of larger ones.

    Parameters
    ----------
    n_links : cables between switches, both directions each, none of them at a failed spine.
    n_spines : spines, with all their links.
    seed : of the draw (C12).

    Raises
    ------
    SpecError
        For more failures than there are cables or spines.

    Examples
    --------
    >>> fabric = Clos(4, 4, 8, host_Bps=50e9, uplink_Bps=50e9)
    >>> fail(fabric, n_links=2, n_spines=1, seed=1).failed.size
    12
    """
    spines_seed, cables_seed = np.random.SeedSequence(seed).spawn(2)
    spines, cables = spine_failures(fabric), cable_failures(fabric)
    _check_count("spines", n_spines, len(spines))
    order = np.random.default_rng(spines_seed).permutation(len(spines))
    down = with_failed(fabric, spines[order[:n_spines]])
    order = np.random.default_rng(cables_seed).permutation(len(cables))
    order = order[down.alive[cables[order, 0]]]
    _check_count("links", n_links, len(order))
    return with_failed(down, cables[order[:n_links]])


def _check_count(what: str, wanted: int, there_are: int) -> None:
    if not 0 <= wanted <= there_are:
        cables = "cables between switches" if what == "links" else what
        expected = f"expected 0 to {there_are}, the {cables} that work"
        fix = "" if there_are else "a dimension of one switch has none: give it by dimension"
        raise SpecError(Fault(f"got {wanted} failed {what}", expected, fix, "failed_links"))


def disconnected(fabric: Clos, src: Indices, dst: Indices) -> Mask:
    """Which pairs of hosts no working path joins, shape (n_pairs,).

    A path goes up to the lowest tier that joins its ends, and down again.
    """
    src, dst = np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64)
    alive = fabric.alive
    up, down = fabric.layer("host_up"), fabric.layer("host_down")
    joined = alive[up.start + src] & alive[down.start + dst]
    joined &= fabric.plane_of(src) == fabric.plane_of(dst)
    leaves = np.stack([fabric.leaf_of(src), fabric.leaf_of(dst)], axis=1)
    apart = joined & (leaves[:, 0] != leaves[:, 1])
    pairs, which = np.unique(leaves[apart], axis=0, return_inverse=True)
    joined[apart] = _leaves_joined(fabric, pairs)[which.ravel()]
    return ~joined


def _leaves_joined(fabric: Clos, pairs: Indices) -> Mask:
    """Which pairs of different leaves of one plane some uplink joins, shape (n_pairs,)."""
    if not (fabric.n_spines and len(pairs)):
        return np.zeros(len(pairs), dtype=np.bool_)
    src, dst = pairs.T
    src_pod, dst_pod = src // fabric.n_leaves, dst // fabric.n_leaves
    where = Hops(src, dst, src_pod, dst_pod, src != dst, src_pod != dst_pod)
    return np.asarray(LiveLinks(fabric).uplinks(where).any(axis=1))


def require_connected(
    fabric: Clos,
    src: Indices,
    dst: Indices,
    *,
    name: str = "host",
    number_of: Indices | None = None,
) -> None:
    """Name the pairs of hosts that no working path joins.

    Parameters
    ----------
    fabric, src, dst : links, and hosts at the ends of each pair, shape (n_pairs,).
    name, number_of : what is at the hosts, such as NPU, and its number by host; the hosts
        themselves by default.

    Raises
    ------
    SpecError
        With the number of such pairs and the first of them.
    """
    cut = np.flatnonzero(disconnected(fabric, src, dst))
    if not cut.size:
        return
    ends = np.stack([np.asarray(src)[cut], np.asarray(dst)[cut]], axis=1)
    pairs = np.unique(ends if number_of is None else number_of[ends], axis=0)
    shown = ", ".join(f"{name} {a} -> {name} {b}" for a, b in pairs[:_SHOWN])
    more = ", ..." if len(pairs) > _SHOWN else ""
    n_pairs = "1 pair" if len(pairs) == 1 else f"{len(pairs):,} pairs"
    got = f"got {n_pairs} of {name}s that no path joins: {shown}{more}"
    raise Disconnected(Fault(got, "expected a fabric that joins them", "repair links or spines"))
