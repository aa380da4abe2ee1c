"""Direct links between NPUs: rings and fully connected groups (C2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.clos import Array, Indices, Layer
from libra_planner.fabric.topology import Block


@dataclass(frozen=True)
class Direct:
    """All groups of a ring or fully connected dimension.

    Hosts are the NPUs of the cluster, innermost dimension fastest. A ring NPU has a link of
    B/2 to the next and one to the previous NPU of its group, in a ring of 2 both to the
    same; a fully connected one has n - 1 links of B/(n - 1). Link ``i`` of the layer
    ``ring_next`` leaves NPU i; of ``direct``, links i(n-1) .. i(n-1)+n-2 leave NPU i, to the
    NPUs 1, 2 .. positions on.

    Parameters
    ----------
    block : ring or fully connected.
    size : NPUs of a group, n.
    n_hosts : NPUs of the cluster.
    n_inner : NPUs of all inner dimensions together; neighbours lie so many numbers apart.
    bandwidth_Bps : B, what one NPU injects, byte/s.
    failed : links that are down.

    Raises
    ------
    SpecError
        For a switch, a bandwidth that is not positive, or sizes that do not divide.

    Examples
    --------
    >>> ring = Direct(Block.RING, 4, n_hosts=8, n_inner=2, bandwidth_Bps=100e9)
    >>> [(layer.name, layer.n_links) for layer in ring.layers], ring.link_name(2)
    ([('ring_next', 8), ('ring_previous', 8)], 'NPU 2 -> NPU 4')
    """

    block: Block
    size: int
    n_hosts: int
    n_inner: int = 1
    bandwidth_Bps: float = 0.0
    failed: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64), compare=False)

    def __post_init__(self) -> None:
        if self.block is Block.SWITCH:
            raise SpecError(Fault("got a switch", "expected a ring or a fully connected dimension"))
        if not (np.isfinite(self.bandwidth_Bps) and self.bandwidth_Bps > 0):
            got = f"got {self.bandwidth_Bps:g}"
            raise SpecError(Fault(got, "expected a bandwidth above 0", path="bandwidth_Bps"))
        least = min(self.size - 1, self.n_inner, self.n_hosts)
        if least < 1 or self.n_hosts % (self.size * self.n_inner):
            got = f"got {self.n_hosts} NPUs in groups of {self.size}, {self.n_inner} apart"
            raise SpecError(Fault(got, "expected whole groups of 2 or more"))

    @property
    def n_links_per_npu(self) -> int:
        """Links that leave an NPU (C2)."""
        return 2 if self.block is Block.RING else self.size - 1

    @property
    def link_Bps(self) -> float:
        """Bandwidth of one link, one direction (C2)."""
        return self.bandwidth_Bps / self.n_links_per_npu

    @property
    def n_links(self) -> int:
        """Directed links of all groups."""
        return self.n_hosts * self.n_links_per_npu

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """One layer per direction of a ring, one of a fully connected dimension.

        They count as host links: they offer no choice of path (C10).
        """
        n = self.n_hosts
        if self.block is Block.RING:
            return (Layer("ring_next", 0, n, 1, True), Layer("ring_previous", n, n, 1, True))
        return (Layer("direct", 0, self.n_links, 1, True),)

    def layer(self, name: str) -> Layer:
        """The layer of a name."""
        return next(layer for layer in self.layers if layer.name == name)

    @cached_property
    def capacity_Bps(self) -> Array:
        """Bandwidth of each link, shape (n_links,); 0 for failed ones."""
        capacity = np.full(self.n_links, self.link_Bps)
        capacity[self.failed] = 0.0
        return capacity

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Which links work, shape (n_links,)."""
        alive = np.ones(self.n_links, dtype=np.bool_)
        alive[self.failed] = False
        return alive

    def link_name(self, link: int) -> str:
        """Name of a link, such as ``NPU 2 -> NPU 4``."""
        if self.block is Block.RING:
            direction, source = divmod(link, self.n_hosts)
            step = -1 if direction else 1
        else:
            source, way = divmod(link, self.size - 1)
            step = way + 1
        position = source // self.n_inner % self.size
        target = source + ((position + step) % self.size - position) * self.n_inner
        return f"NPU {source} -> NPU {target}"
