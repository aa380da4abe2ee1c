"""Which links of a fabric with failures can still carry a flow to where it goes.

Switches withdraw what leads nowhere: a leaf hashes over the uplinks from which some path
to the other leaf remains, and so on upwards. Masks are ``None`` where nothing failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from libra_planner.flows.fabric import Clos, Indices
from libra_planner.flows.paths import Hops

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LiveLinks:
    """What works of a fabric.

    Parameters
    ----------
    fabric : the fabric, its failed links marked.
    """

    fabric: Clos

    def _layer(self, name: str, *shape: int) -> Mask:
        return self.fabric.alive[self.fabric.layer(name).links].reshape(shape)

    @cached_property
    def leaf_up(self) -> Mask:
        """Shape (leaves, spines, parallel)."""
        f = self.fabric
        return self._layer("leaf_up", f.total_leaves, f.n_spines, f.n_parallel)

    @cached_property
    def spine_down(self) -> Mask:
        """Shape (leaves, spines, parallel)."""
        f = self.fabric
        return self._layer("spine_down", f.total_leaves, f.n_spines, f.n_parallel)

    @cached_property
    def spine_up(self) -> Mask:
        """Shape (pods, spines, cores, parallel)."""
        f = self.fabric
        return self._layer("spine_up", f.total_pods, f.n_spines, f.n_cores, f.core_parallel)

    @cached_property
    def core_down(self) -> Mask:
        """Shape (pods, spines, cores, parallel)."""
        f = self.fabric
        return self._layer("core_down", f.total_pods, f.n_spines, f.n_cores, f.core_parallel)

    def uplinks(self, where: Hops) -> Mask:
        """Uplinks of its leaf that lead to each flow's other leaf, shape (n_flows, n_uplinks)."""
        reaches = np.any(self.spine_down, axis=2)[where.dst_leaf]
        if where.leaves_pod.any():
            reaches = reaches & (self._pods_joined(where) | ~where.leaves_pod[:, None])
        live: Mask = self.leaf_up[where.src_leaf] & reaches[:, :, None]
        return live.reshape(len(live), self.fabric.n_uplinks)

    def _pods_joined(self, where: Hops) -> Mask:
        """Spine positions that some core joins to each flow's other pod, (n_flows, n_spines)."""
        if not self.fabric.n_cores:
            return np.zeros((len(where.src_pod), self.fabric.n_spines), dtype=np.bool_)
        n_pods = self.fabric.total_pods
        pairs, which = np.unique(where.src_pod * n_pods + where.dst_pod, return_inverse=True)
        up, down = np.any(self.spine_up, axis=3), np.any(self.core_down, axis=3)
        joined: Mask = np.any(up[pairs // n_pods] & down[pairs % n_pods], axis=2)
        return joined[which]

    def core_links(self, where: Hops, spine: Indices) -> Mask:
        """Core links of each flow's spine that lead to the other pod, (n_flows, n_core_links)."""
        down = np.any(self.core_down, axis=3)[where.dst_pod, spine]
        live: Mask = self.spine_up[where.src_pod, spine] & down[:, :, None]
        return live.reshape(len(live), self.fabric.n_core_links)
