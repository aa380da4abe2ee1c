"""Scale-up domains: parts that join NPUs at one speed, such as NVLink switches (C14)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from libra_planner.errors import Fault
from libra_planner.fabric.blocks import FULLY_CONNECTED, RING, SWITCH, Block
from libra_planner.fabric.topology import LARGEST_SCALE_UP, SCALE_UP, Realization, Topology

SWITCHED, MESH, TORUS = "switch", "fully_connected", "torus"
"""How a part joins its NPUs."""

_BLOCKS: dict[str, Block] = {SWITCHED: SWITCH, MESH: FULLY_CONNECTED, TORUS: RING}


@lru_cache(maxsize=64)
def _n_joined(block: Block, n_most: int, topology: Topology) -> int:
    """Innermost dimensions of a kind, as many as may be joined; 1 at least."""
    innermost = topology.dimensions[:n_most]
    return max(1, sum(1 for _ in takewhile(lambda one: one.block == block, innermost)))


@dataclass(frozen=True)
class ScaleUpDomain:
    """A part that joins NPUs; the innermost dimensions of a fabric are its links.

    Parameters
    ----------
    name : of the part, such as nvlink4-8.
    joined_by : ``switch``, ``fully_connected`` or ``torus``.
    n_npus : most NPUs of one domain.
    npu_Bps : of one NPU over all its links, one direction, byte/s.
    server : name of the server whose price holds it; empty where it is paid for by the price book.
    power_w : of one domain, beside the server's.
    n_axes : dimensions of a torus, among which an NPU's links are divided equally.
    multiple_of : of which the size of every ring of a torus is a multiple.
    n_npus_sold : NPUs that are sold together; those of one whole domain by default.

    Examples
    --------
    >>> from libra_planner.fabric.topology import parse_topology
    >>> nvlink = ScaleUpDomain("nvlink4-8", SWITCHED, 8, 450e9, "server-8npu")
    >>> fabric = parse_topology("SW(8)_SW(32)")
    >>> nvlink.fault(fabric), nvlink.bandwidth_Bps(fabric), nvlink.n_domains(fabric)
    (None, (450000000000.0,), 32)
    >>> nvlink.fault(parse_topology("SW(16)_SW(32)")).got
    'got 16 NPUs in nvlink4-8, a domain of 8'
    """

    name: str
    joined_by: str
    n_npus: int
    npu_Bps: float
    server: str = ""
    power_w: float = 0.0
    n_axes: int = 1
    multiple_of: int = 1
    n_npus_sold: int = 0

    def n_dims(self, topology: Topology) -> int:
        """Dimensions of a fabric that it is: the innermost, of a torus all innermost rings."""
        return _n_joined(self._block, self.n_axes, topology)

    @property
    def _block(self) -> Block:
        return _BLOCKS[self.joined_by]

    def _joins(self, topology: Topology, dim: int) -> bool:
        return topology.dimensions[dim].block == self._block

    def dims(self, topology: Topology) -> range:
        """Indices of these dimensions."""
        return range(self.n_dims(topology))

    def included_dims(self, topology: Topology) -> Sequence[int]:
        """Those of them that the price of a server holds: all, or none (C22)."""
        return self.dims(topology) if self.server else ()

    def realized(self, topology: Topology, others: Realization) -> Realization:
        """How all dimensions are built: its own switches are parts of so many NPUs."""
        own = self.dims(topology)
        part = replace(SCALE_UP, switch_radix=self.n_npus)
        switches = (
            part if dim in own and one is not None else one
            for dim, one in enumerate(others.switches)
        )
        return replace(others, switches=tuple(switches))

    def n_inside(self, topology: Topology) -> int:
        """NPUs of a fabric's group that stands in one domain."""
        return math.prod(topology.sizes[: self.n_dims(topology)])

    def fault(self, topology: Topology) -> Fault | None:
        """Why a fabric cannot stand on it; ``None`` where it can."""
        return next(self._faults(topology), None)

    def _faults(self, topology: Topology) -> Iterator[Fault]:
        first, block, n_dims = topology.dimensions[0], self._block, self.n_dims(topology)
        n_inside, is_torus = self.n_inside(topology), self.joined_by == TORUS
        size = f"{block.notation}({self.multiple_of if is_torus else self.n_npus})"
        if not self._joins(topology, 0):
            expected = f"expected a {block.about}: {self.name} joins its NPUs so"
            yield Fault(f"got {first} innermost", expected, f"write {size}_...")
        elif topology.stacks and topology.stacks[0].start < n_dims:
            expected = f"expected {self.name} before the brackets, which hold what NICs reach"
            yield Fault(f"got {first} in brackets", expected, f"write {size}_[...]")
        if n_inside > self.n_npus:
            got = f"got {n_inside:,} NPUs in {self.name}, a domain of {self.n_npus:,}"
            is_small = self.n_npus < LARGEST_SCALE_UP
            larger = ", or name nvl72 with NPUs that come in it" if is_small else ""
            fix = "write smaller rings" if is_torus else f"write {size}_...{larger}"
            yield Fault(got, f"expected at most {self.n_npus:,}", fix)
        for one in topology.dimensions[:n_dims]:
            if one.size % self.multiple_of:
                got = f"got {one} of {self.name}, which is a line, without a link around it"
                expected = f"expected a multiple of {self.multiple_of}"
                yield Fault(got, expected, f"write {size}")

    def bandwidth_Bps(self, topology: Topology) -> tuple[float, ...]:
        """What one NPU injects into each of its dimensions (C2), byte/s.

        A part of a fully connected domain of N has (n - 1)/(N - 1) of an NPU's links, an axis of
        a torus an equal share of them; behind a switch a part has all.
        """
        if self.joined_by == MESH:
            return (self.npu_Bps * (topology.sizes[0] - 1) / (self.n_npus - 1),)
        return (self.npu_Bps / self.n_axes,) * self.n_dims(topology)

    def n_domains(self, topology: Topology) -> int:
        """Units to buy: each holds as many whole groups as fit."""
        n_inside, n_sold = self.n_inside(topology), self.n_npus_sold or self.n_npus
        n_groups = topology.n_npus // n_inside
        if n_inside > n_sold:
            return n_groups * -(-n_inside // n_sold)
        return -(-n_groups // (n_sold // n_inside))

    def n_npus_bought(self, topology: Topology) -> int:
        """NPUs that are paid for: those of all units, used or not (C13).

        >>> from libra_planner.fabric.topology import parse_topology
        >>> rack = ScaleUpDomain("nvl72", SWITCHED, 72, 900e9)
        >>> [rack.n_npus_bought(parse_topology(x)) for x in ("SW(64)_SW(16)", "SW(8)_SW(18)")]
        [1152, 144]
        """
        return self.n_domains(topology) * (self.n_npus_sold or self.n_npus)
