"""Switches: every NPU has one link, or several NICs, into a network of switches."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.fabric.blocks.base import Algorithm, Block, CollectiveKind, Span


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
