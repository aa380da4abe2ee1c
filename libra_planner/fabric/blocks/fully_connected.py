"""Fully connected groups: every NPU has a link to every other one."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.fabric.blocks.base import Algorithm, CollectiveKind, DirectBlock, Span


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

    def link_layers(self, size: int) -> dict[str, int]:
        return {"direct": size - 1}

    def peer(self, size: int, position: int, way: int) -> int:
        return (position + way + 1) % size

    def link_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        return self.part_slowdown(kind, span)
