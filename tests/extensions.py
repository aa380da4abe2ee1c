"""What a module outside the package adds: a block and a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric import blocks
from libra_planner.fabric.blocks import Algorithm, CollectiveKind, DirectBlock, Span
from libra_planner.fabric.clos import Choice, Clos, Flows, Hops
from libra_planner.routing import policy
from libra_planner.routing.policy import PolicyKind


@dataclass(frozen=True)
class Torus2D(DirectBlock):
    """Rows and columns of rings: four links per NPU; collectives run one ring through all NPUs."""

    rows: int = 4
    columns: int = 4

    notation = "TO"
    long_name = "Torus2D"
    about = "torus"
    algorithms = (Algorithm.RING,)

    @classmethod
    def of_text(cls, text: str) -> tuple[Self, int]:
        rows, _, columns = text.partition("x")
        if not (rows.isdigit() and columns.isdigit() and min(int(rows), int(columns)) > 1):
            raise SpecError(Fault("", "expected rows x columns, both of at least 2"))
        return cls(int(rows), int(columns)), int(rows) * int(columns)

    def text(self, size: int) -> str:
        return f"{self.rows}x{self.columns}"

    def n_links_per_npu(self, size: int) -> int:
        return 4

    def n_cut_links(self, size: int) -> int:
        return 2 * min(self.rows, self.columns)

    def n_hops(self, stride: int) -> int:
        return 1

    def default_algorithm(self, kind: CollectiveKind, size: int) -> Algorithm:
        return Algorithm.RING

    def part_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        return 2.0  # The ring through all NPUs has two of the four links.

    def visit_factor(self, kind: CollectiveKind, algorithm: Algorithm, span: Span) -> float:
        return 2.0

    def link_layers(self, size: int) -> dict[str, int]:
        return {"along_rows": 2, "along_columns": 2}

    def peer(self, size: int, position: int, way: int) -> int:
        row, column = divmod(position, self.columns)
        step = -1 if way % 2 else 1
        if way < 2:
            return row * self.columns + (column + step) % self.columns
        return (row + step) % self.rows * self.columns + column

    def link_slowdown(self, kind: CollectiveKind, span: Span) -> float:
        return 2.0


def first_spine(fabric: Clos, flows: Flows, *, where: Hops) -> Choice:
    """Every flow over the first link up and down: the worst there is."""
    inside = np.where(where.leaves_leaf, 0, -1)
    between = np.where(where.leaves_pod, 0, -1)
    return Choice(inside, between, between, inside)


FIRST_SPINE = PolicyKind("first_spine", f"{__name__}:first_spine", knows_all_flows=False)


def add() -> None:
    """Register both."""
    blocks.register(Torus2D)
    policy.register(FIRST_SPINE)


def remove() -> None:
    """Take both out again."""
    blocks.BLOCKS.remove(Torus2D.notation)
    policy.POLICIES.remove(FIRST_SPINE.name)
