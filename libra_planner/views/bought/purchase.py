"""What an optimum buys, by what its plan chooses from: JSON of ``optimize``, and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from libra_planner.optimizer.catalogue import CatalogueDesign
from libra_planner.optimizer.design import Design
from libra_planner.problem import Problem
from libra_planner.procurement.ranges import BillStudy
from libra_planner.views.bought.options import bill_blocks, bill_payload
from libra_planner.views.bought.speeds import catalogue_lines, catalogue_payload
from libra_planner.views.cells import Block, escape


def purchase_payload(problem: Problem, bought: Design | BillStudy) -> dict[str, Any]:
    """The key ``catalogue`` or ``bill``; nothing for a design of any bandwidths."""
    if isinstance(bought, BillStudy):
        return bill_payload(problem, bought)
    return catalogue_payload(problem, bought) if isinstance(bought, CatalogueDesign) else {}


def purchase_blocks(problem: Problem, bought: Design | BillStudy) -> Iterator[Block]:
    """The same for people."""
    if isinstance(bought, BillStudy):
        yield from ("", *bill_blocks(problem, bought))
    elif isinstance(bought, CatalogueDesign):
        yield from ("", *map(escape, catalogue_lines(problem, bought)))
