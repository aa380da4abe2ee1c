"""What the optima of a sweep cost in whole parts: the bill of ``report``, to the cent (C22)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from libra_planner.inputs.parts import Catalogue, load_parts, plan_npu
from libra_planner.plan.training import plan_spec
from libra_planner.problem import Problem
from libra_planner.procurement import lines
from libra_planner.procurement.bill import Bill, Line, Part
from libra_planner.procurement.lines import Book, FabricShop
from libra_planner.procurement.scale_up import server_with
from libra_planner.step.expression import Array
from libra_planner.sweeps.spec import Chunk
from libra_planner.sweeps.template import PlanTemplate

_OF_NPU = ("fixed_cost", "npu", "workloads")
"""Keys of a plan that say which NPU is bought."""


@dataclass
class Bills:
    """Bills of designs of one sweep at the bundled parts catalogue, and what they share.

    Parameters
    ----------
    template : the sweep's plan with placeholders.
    """

    template: PlanTemplate
    _npus: dict[str, Part | None] = field(default_factory=dict)
    _sides: dict[tuple[str, int], tuple[Line, ...]] = field(default_factory=dict)

    @cached_property
    def _catalogue(self) -> Catalogue:
        return load_parts()

    def bill(self, chunk: Chunk, row: int, problem: Problem, bandwidth_Bps: Array) -> Bill:
        """The bill of a design, as a report has it.

        Parameters
        ----------
        chunk, row : which design of the sweep.
        problem : its plan; rules do not matter.
        bandwidth_Bps : per NPU, shape (n_dims,), byte/s.

        Raises
        ------
        SpecError
            For a design that cannot be built.
        """
        parts, assumed = self._catalogue.parts, self._catalogue.assumptions
        server = server_with(problem.scale_up, parts, assumed.server)
        book, quotes = Book(problem.prices.parts), problem.prices.quotes
        shop = FabricShop(parts, replace(assumed, server=server), book, quotes)
        bought = lines.purchase(problem, bandwidth_Bps, parts)
        key = server.name, shop.n_servers(bought)
        if key not in self._sides:
            self._sides[key] = lines.side_lines(bought, shop)
        npu = self._npu(chunk, row)
        return lines.system_bill(bought, shop, npu, self._sides[key])[0]

    def _npu(self, chunk: Chunk, row: int) -> Part | None:
        """The NPU that a design's plan buys."""
        axes = self.template.axes_of(lambda key, _: key[0] in _OF_NPU)
        key = repr(chunk.values(row, axes))
        if key not in self._npus:
            spec = plan_spec(self.template.filled(chunk.values(row)))
            spare_fraction = self._catalogue.assumptions.npu.spare_fraction
            self._npus[key] = plan_npu(spec, self.template.beside, spare_fraction)
        return self._npus[key]
