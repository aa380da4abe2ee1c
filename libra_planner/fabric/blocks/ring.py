"""Rings: every NPU has a link to the next one and one to the previous one."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.fabric.blocks.base import Algorithm, CollectiveKind, DirectBlock, Span


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


def _busiest(span: Span) -> float:
    """What the busiest link of an all-to-all carries, over what C3 counts."""
    return span.size**2 // 4 / (span.size - 1)
