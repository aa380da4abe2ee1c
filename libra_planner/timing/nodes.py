"""The nodes of a time expression, and when two of them are multiples of one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Constant:
    """A time that no bandwidth changes, seconds."""

    seconds: float


@dataclass(frozen=True)
class Transfer:
    """``n_bytes / sum_i coefficients_i * B_i`` seconds.

    ``coefficients`` is the linear form, shape (n_dims,), non-negative and not all zero.
    """

    n_bytes: float
    coefficients: tuple[float, ...]


@dataclass(frozen=True)
class Sum:
    """Terms one after the other."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Maximum:
    """Terms at the same time: the longest counts."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Scaled:
    """``factor`` (0 or more) times a term."""

    factor: float
    term: Node


@dataclass(frozen=True)
class Labelled:
    """A term with the name of the operation class it belongs to."""

    label: str
    term: Node


Node: TypeAlias = Constant | Transfer | Sum | Maximum | Scaled | Labelled
ZERO = Constant(0.0)


def leaf(node: Node) -> tuple[float, object]:
    """Size and key of a leaf: of two with one key the larger always takes longer."""
    if isinstance(node, Constant):
        return node.seconds, Constant
    return (node.n_bytes, node.coefficients) if isinstance(node, Transfer) else (0.0, node)


def size_and_shape(node: Node) -> tuple[float, object]:
    """Size and shape of a node, so that terms that differ only in size merge.

    Collectives over one group have proportional traffic, and so may have whole layers. The
    size adds up seconds and bytes alike: any measure will do. Shares are compared to 13 digits.
    """
    parts = list(_parts(1.0, node))
    total = sum(size for size, _ in parts) or 1.0  # A label may stand on nothing.
    return total, tuple((f"{size / total:.13g}", key) for size, key in parts)


def _parts(factor: float, node: Node) -> Iterable[tuple[float, object]]:
    """A tree as a flat list: sizes of the leaves, and what stands between them."""
    if isinstance(node, Constant | Transfer):
        size, key = leaf(node)
        yield factor * size, key
    elif isinstance(node, Scaled):
        yield from _parts(factor * node.factor, node.term)
    elif isinstance(node, Labelled):
        yield 0.0, node.label
        yield from _parts(factor, node.term)
    else:
        yield 0.0, (type(node), len(node.terms))
        for term in node.terms:
            yield from _parts(factor, term)
