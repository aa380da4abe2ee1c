"""Multi-dimensional topologies: dimensions, their notation and their links (C2)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from libra_planner.errors import Fault, SpecError, unknown_name

MAX_NPUS = 10**9
"""Largest fabric accepted; beyond it a size is taken to be a slip of the keyboard."""


class Block(Enum):
    """Building block of a dimension; the value is the short notation."""

    RING = "RI"
    FULLY_CONNECTED = "FC"
    SWITCH = "SW"


_BLOCKS = {block.value.casefold(): block for block in Block} | {
    block.name.replace("_", "").casefold(): block for block in Block
}
_BLOCK_NAMES = ("RI", "FC", "SW", "Ring", "FullyConnected", "Switch")
_DIMENSION = re.compile(r"([A-Za-z]+)\(([^()]*)\)")


@dataclass(frozen=True)
class Dimension:
    """One dimension of a fabric.

    Parameters
    ----------
    block : how its NPUs are joined.
    size : NPUs per group of this dimension, 2 or more.
    tier : name of the price tier (chiplet, package, node, pod or the user's own).

    Examples
    --------
    >>> ring = Dimension(Block.RING, 16, "package")
    >>> ring.n_links_per_npu, ring.link_bandwidth_bytes_per_s(100e9)
    (2, 50000000000.0)
    """

    block: Block
    size: int
    tier: str = ""

    @property
    def n_links_per_npu(self) -> int:
        """Links an NPU sends into: ring 2, fully connected n - 1, switch 1 (C2)."""
        fully_connected = self.size - 1
        return {Block.RING: 2, Block.FULLY_CONNECTED: fully_connected, Block.SWITCH: 1}[self.block]

    def link_bandwidth_bytes_per_s(self, bandwidth_bytes_per_s: float) -> float:
        """Bandwidth of one link when the NPU injects ``bandwidth_bytes_per_s`` (C2)."""
        return bandwidth_bytes_per_s / self.n_links_per_npu

    def __str__(self) -> str:
        return f"{self.block.value}({self.size})"


@dataclass(frozen=True)
class Topology:
    """Dimensions from the innermost (dim1) outwards.

    Examples
    --------
    >>> fabric = parse_topology("RI(4)_FC(8)_Switch(32)", ["package", "node", "pod"])
    >>> str(fabric), fabric.n_npus, fabric.sizes
    ('RI(4)_FC(8)_SW(32)', 1024, (4, 8, 32))
    """

    dimensions: tuple[Dimension, ...]

    @property
    def n_dims(self) -> int:
        """Number of dimensions D."""
        return len(self.dimensions)

    @property
    def n_npus(self) -> int:
        """NPUs of the whole fabric, the product of the sizes."""
        return math.prod(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """NPUs per group, by dimension."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def tiers(self) -> tuple[str, ...]:
        """Price tier, by dimension."""
        return tuple(dimension.tier for dimension in self.dimensions)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """``dim1`` ... ``dimD``, the names rules and reports use."""
        return tuple(f"dim{i}" for i in range(1, self.n_dims + 1))

    def __str__(self) -> str:
        return "_".join(str(dimension) for dimension in self.dimensions)


def parse_topology(notation: str, tiers: list[str] | tuple[str, ...] = ()) -> Topology:
    """Topology from its notation, short or long names, any number of dimensions.

    Parameters
    ----------
    notation : such as ``RI(16)_FC(8)_SW(32)`` or ``Ring(16)_Switch(8)``.
    tiers : one price tier per dimension; empty for a topology without prices.

    Raises
    ------
    UnknownName
        For a block that does not exist.
    SpecError
        For a size that is not a whole number of at least 2, text that is not the
        notation, a wrong number of tiers, or more than a billion NPUs.
    """
    dimensions = tuple(_parse_dimension(part) for part in notation.split("_"))
    if math.prod(size for _, size in dimensions) > MAX_NPUS:
        raise SpecError(Fault(f"got {notation!r}", f"expected at most {MAX_NPUS:,} NPUs"))
    if tiers and len(tiers) != len(dimensions):
        got = f"got {len(tiers)} tiers for {len(dimensions)} dimensions"
        fix = f"name the price tier of each dimension of {notation}, innermost first"
        raise SpecError(Fault(got, f"expected {len(dimensions)}", fix, path="fabric.tiers"))
    names = tiers or ("",) * len(dimensions)
    pairs = zip(dimensions, names, strict=True)
    return Topology(tuple(Dimension(block, size, tier) for (block, size), tier in pairs))


def _parse_dimension(text: str) -> tuple[Block, int]:
    match = _DIMENSION.fullmatch(text.strip())
    if match is None:
        fix = "write dimensions as NAME(SIZE) joined by _, innermost first"
        raise SpecError(Fault(f"got {text!r}", "expected a dimension such as RI(4)", fix))
    name, size = match.groups()
    if name.casefold() not in _BLOCKS:
        raise unknown_name("building block", name, _BLOCK_NAMES)
    return _BLOCKS[name.casefold()], _parse_size(text, size)


def _parse_size(text: str, size: str) -> int:
    digits = size.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 12 or int(digits) < 2:
        fix = "leave a dimension of one NPU out" if digits == "1" else "write e.g. RI(4)"
        raise SpecError(Fault(f"got {text!r}", "expected a whole size of at least 2", fix))
    return int(digits)
