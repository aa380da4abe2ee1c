"""Building blocks of dimensions: each is one class, and what is registered can be written.

What a block has to say for itself is C2, C4 and C6.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from libra_planner.errors import Fault, SpecError
from libra_planner.registry import Registry


class CollectiveKind(StrEnum):
    """Communication pattern of a group of NPUs (C3)."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"


class Algorithm(StrEnum):
    """How the NPUs of one dimension exchange a vector of M bytes in a group of g.

    ``ring``: g - 1 steps of M/g to a neighbour, an all-to-all g (g - 1)/2 steps since
    its messages pass through the NPUs between. ``direct``: all peers at once, 1 step of
    M (g - 1)/g. ``direct1``: one peer after another, g - 1 steps of M/g.
    ``halving_doubling``: M/2, M/4 ... M/g, for g a power of two.
    """

    RING = "ring"
    DIRECT = "direct"
    DIRECT1 = "direct1"
    HALVING_DOUBLING = "halving_doubling"


@dataclass(frozen=True)
class Span:
    """The part of a dimension that a group spans.

    Parameters
    ----------
    size : NPUs of the group there, 2 or more.
    stride : distance between its neighbours, in NPUs of the dimension.
    whole : NPUs of the dimension.
    """

    size: int
    stride: int
    whole: int

    @property
    def is_partial(self) -> bool:
        """Whether the group leaves NPUs of the dimension out."""
        return self.size < self.whole


class Block(ABC):
    """How the NPUs of a dimension are joined; a frozen dataclass, so that equal ones are equal.

    All that planning, checking and pricing ask about a kind of dimension is answered here: a
    subclass that leaves a question open cannot be made. Attributes of the class:

    notation, long_name : such as RI and Ring; the first begins what a dimension is written as.
    about : what it is, in a word or two.
    price_parts : of its tier's prices, which it pays (C7).
    algorithms, algorithm_fix : that can run, and why no others do.
    """

    notation: ClassVar[str]
    long_name: ClassVar[str]
    about: ClassVar[str]
    price_parts: ClassVar[tuple[str, ...]] = ("link",)
    algorithms: ClassVar[tuple[Algorithm, ...]] = tuple(Algorithm)
    algorithm_fix: ClassVar[str] = ""
    is_switched: ClassVar[bool] = False
    """Whether its NPUs meet at switches, which have ports and may reduce; else links are direct."""
    groups_have_own_links: ClassVar[bool] = False
    """Whether every pair of NPUs has a link of its own, so that other groups use other links."""

    @classmethod
    def of_text(cls, text: str) -> tuple[Block, int]:
        """The block and its NPUs, from what stands in the brackets of the notation.

        Raises
        ------
        SpecError
            For what is not a size, here a whole number of at least 2.
        """
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 12 or int(digits) < 2:
            fix = "leave a dimension of one NPU out" if digits == "1" else "write e.g. RI(4)"
            raise SpecError(Fault("", "expected a whole size of at least 2", fix))
        return cls(), int(digits)

    def text(self, size: int) -> str:
        """What stands in the brackets of the notation."""
        return str(size)

    @abstractmethod
    def n_links_per_npu(self, size: int) -> int:
        """Links an NPU sends into (C2)."""

    @abstractmethod
    def n_cut_links(self, size: int) -> int:
        """Links from one half of a group to the other, one direction."""

    @abstractmethod
    def n_hops(self, stride: int) -> int:
        """Latency hops to a peer ``stride`` NPUs on (C4)."""

    @abstractmethod
    def default_algorithm(self, kind: CollectiveKind, size: int) -> Algorithm:
        """What a collective in groups of ``size`` runs where no algorithm is named (C4)."""

    @abstractmethod
    def part_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        """Time of a group over that at full B_d, when it has its own links only (C6)."""

    def send_slowdown(self, span: Span) -> float:
        """Time of all ranks' sends to the next one over that at full B_d, on their own links."""
        del span
        return 1.0

    @abstractmethod
    def visit_factor(self, kind: CollectiveKind, algorithm: Algorithm, span: Span) -> float:
        """Time of a visit's messages over that at full B_d (C4).

        Links that the group (:meth:`part_slowdown`) or the algorithm leaves unused.
        """


class DirectBlock(Block):
    """A block of links from NPU to NPU."""

    @abstractmethod
    def link_layers(self, size: int) -> dict[str, int]:
        """Links that leave an NPU, by the name of their layer."""

    @abstractmethod
    def peer(self, size: int, position: int, way: int) -> int:
        """Position of the NPU that a link of the NPU at a position leads to.

        ``way`` counts the links of an NPU over its layers, in order.
        """

    @abstractmethod
    def link_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        """Time on its busiest link over that of C3 at full B_d, with hops counted (C4, C6)."""


_PAIR = 2


@dataclass(frozen=True)
class Ring(DirectBlock):
    """A ring; in one of 2 both links lead to the same NPU."""

    notation = "RI"
    long_name = "Ring"
    about = "ring"
    algorithms = (Algorithm.RING,)
    algorithm_fix = "other algorithms skip neighbours, whose links they share"

    def n_links_per_npu(self, size: int) -> int:
        return 2

    def n_cut_links(self, size: int) -> int:
        return 2

    def n_hops(self, stride: int) -> int:
        return stride

    def default_algorithm(self, kind: CollectiveKind, size: int) -> Algorithm:
        return Algorithm.RING

    def part_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        """Slowdown of a part of a ring.

        ``stride`` groups interleave and share every link. If they close around the ring they
        have both directions (B), else they are a line (B/2). An all-to-all also travels:
        the busiest link carries floor(g^2/4) m/g, against m (g-1)/g of C3.
        """
        if not span.is_partial:
            return 1.0
        closes = span.stride > 1 and span.size * span.stride == span.whole
        shared = span.stride if closes else 2 * span.stride
        return shared * (_busiest(span) if kind is CollectiveKind.ALL_TO_ALL else 1.0)

    def visit_factor(self, kind: CollectiveKind, algorithm: Algorithm, span: Span) -> float:
        slowdown = self.part_slowdown(kind, span)
        if kind is not CollectiveKind.ALL_TO_ALL:
            return slowdown
        # The slowdown of a part of a ring counts hops already, against C3's bytes.
        return max(1.0, slowdown / (span.size / 2))

    def link_layers(self, size: int) -> dict[str, int]:
        return {"ring_next": 1, "ring_previous": 1}

    def peer(self, size: int, position: int, way: int) -> int:
        return (position + (-1 if way else 1)) % size

    def link_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        """As :meth:`part_slowdown`; an all-to-all around the whole ring goes the shorter ways."""
        if kind is CollectiveKind.ALL_TO_ALL and not span.is_partial:
            return _busiest(span)
        return self.part_slowdown(kind, span)

    def send_slowdown(self, span: Span) -> float:
        """One direction of two, which the sends of ``stride`` ranks share; both in a ring of 2."""
        return 2.0 * span.stride if span.whole > _PAIR else 1.0


def _busiest(span: Span) -> float:
    """What the busiest link of an all-to-all carries, over what C3 counts."""
    return span.size**2 // 4 / (span.size - 1)


@dataclass(frozen=True)
class FullyConnected(DirectBlock):
    """All NPUs of a group joined to one another."""

    notation = "FC"
    long_name = "FullyConnected"
    about = "fully connected"
    groups_have_own_links = True

    def n_links_per_npu(self, size: int) -> int:
        return size - 1

    def n_cut_links(self, size: int) -> int:
        return size // 2 * -(-size // 2)

    def n_hops(self, stride: int) -> int:
        return 1

    def default_algorithm(self, kind: CollectiveKind, size: int) -> Algorithm:
        return Algorithm.DIRECT

    def part_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        """A group of g has links of B (g-1)/(n-1) among its own."""
        return (span.whole - 1) / (span.size - 1) if span.is_partial else 1.0

    def visit_factor(self, kind: CollectiveKind, algorithm: Algorithm, span: Span) -> float:
        """One link at a time, unless all peers are sent to at once."""
        if algorithm is not Algorithm.DIRECT:
            return float(self.n_links_per_npu(span.whole))
        return self.part_slowdown(kind, span)

    def send_slowdown(self, span: Span) -> float:
        """One link of an NPU's."""
        return float(self.n_links_per_npu(span.whole))

    def link_layers(self, size: int) -> dict[str, int]:
        return {"direct": size - 1}

    def peer(self, size: int, position: int, way: int) -> int:
        return (position + way + 1) % size

    def link_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        return self.part_slowdown(kind, span)


@dataclass(frozen=True)
class Switch(Block):
    """All NPUs of a group on one switch, or on leaves and spines that act as one."""

    notation = "SW"
    long_name = "Switch"
    about = "switch"
    price_parts = ("link", "switch", "nic")
    is_switched = True

    def n_links_per_npu(self, size: int) -> int:
        return 1

    def n_cut_links(self, size: int) -> int:
        return size // 2

    def n_hops(self, stride: int) -> int:
        return 2

    def default_algorithm(self, kind: CollectiveKind, size: int) -> Algorithm:
        """Halving-doubling, ring where it is no power of two; direct1 for an all-to-all."""
        if kind is CollectiveKind.ALL_TO_ALL:
            return Algorithm.DIRECT1
        return Algorithm.RING if size & (size - 1) else Algorithm.HALVING_DOUBLING

    def part_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        return 1.0

    def visit_factor(self, kind: CollectiveKind, algorithm: Algorithm, span: Span) -> float:
        return 1.0


BLOCKS: Registry[type[Block]] = Registry("building block", str.casefold)
"""Kinds of dimensions by their notation."""

RING, FULLY_CONNECTED, SWITCH = Ring(), FullyConnected(), Switch()


def register(block: type[Block]) -> type[Block]:
    """Let topologies name a block; a decorator for its class.

    Raises
    ------
    TypeError
        For a class that leaves a question of :class:`Block` open.
    ValueError
        For a notation or a long name that another block has.
    """
    missing = sorted(block.__abstractmethods__)
    missing += [x for x in ("notation", "long_name", "about") if not hasattr(block, x)]
    if missing:
        raise TypeError(f"block {block.__name__} does not define {', '.join(missing)}")
    BLOCKS.add(block, block.notation, block.long_name)
    return block


for _block in (Ring, FullyConnected, Switch):
    register(_block)
