"""What a building block of dimensions has to say for itself (C2, C4, C6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from libra_planner.errors import Fault, SpecError


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
