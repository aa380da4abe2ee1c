"""The nodes of a time expression, and when two of them are multiples of one another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from libra_planner.frozen import Frozen

_Parts: TypeAlias = list[tuple[float, object]]
"""A tree as a flat list: sizes of the leaves, and what stands between them."""


class _Sized(Frozen, ABC):
    """What every node has."""

    @cached_property
    def size_and_shape(self) -> tuple[float, object]:
        """Size and shape, so that terms that differ only in size merge.

        Collectives over one group have proportional traffic, and so may have whole layers. The
        size adds up seconds and bytes alike: any measure will do. Shares are compared to 13
        digits.
        """
        parts: _Parts = []
        self.add_parts(parts, 1.0)
        total = sum(size for size, _ in parts) or 1.0  # A label may stand on nothing.
        return total, tuple([(f"{size / total:.13g}", key) for size, key in parts])

    @abstractmethod
    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append ``factor`` times the node's tree, as a flat list."""


@dataclass(frozen=True)
class Constant(_Sized):
    """A time that no bandwidth changes, seconds."""

    seconds: float

    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append the time."""
        parts.append((factor * self.seconds, Constant))


@dataclass(frozen=True)
class Transfer(_Sized):
    """``n_bytes / sum_i coefficients_i * B_i`` seconds.

    ``coefficients`` is the linear form, shape (n_dims,), non-negative and not all zero.
    """

    n_bytes: float
    coefficients: tuple[float, ...]

    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append the bytes."""
        parts.append((factor * self.n_bytes, self.coefficients))


class _Several(_Sized):
    """A node of several terms."""

    terms: tuple[Node, ...]

    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append the kind and number of terms, then each of them."""
        parts.append((0.0, (type(self), len(self.terms))))
        for term in self.terms:
            term.add_parts(parts, factor)


@dataclass(frozen=True)
class Sum(_Several):
    """Terms one after the other."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Maximum(_Several):
    """Terms at the same time: the longest counts."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Scaled(_Sized):
    """``factor`` (0 or more) times a term."""

    factor: float
    term: Node

    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append the term, scaled."""
        self.term.add_parts(parts, factor * self.factor)


@dataclass(frozen=True)
class Labelled(_Sized):
    """A term with the name of the operation class it belongs to."""

    label: str
    term: Node

    def add_parts(self, parts: _Parts, factor: float) -> None:
        """Append the label and the term."""
        parts.append((0.0, self.label))
        self.term.add_parts(parts, factor)


Node: TypeAlias = Constant | Transfer | Sum | Maximum | Scaled | Labelled
ZERO = Constant(0.0)


def leaf(node: Node) -> tuple[float, object]:
    """Size and key of a leaf: of two with one key the larger always takes longer."""
    if isinstance(node, Constant):
        return node.seconds, Constant
    return (node.n_bytes, node.coefficients) if isinstance(node, Transfer) else (0.0, node)
