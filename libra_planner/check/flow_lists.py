"""Lists of flows, and what came of routing one over a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from libra_planner.check.report import FlowReport, SeedReports
from libra_planner.fabric.clos import Clos, Flows, Indices


@dataclass(frozen=True)
class FlowList:
    """The flows of a file, in its order.

    Parameters
    ----------
    flows : hosts, sizes and, where given, spines, source ports and collectives.
    ids : name of each flow, as the file has it.
    collectives : names that the numbers ``flows.collective`` mean; empty without the column.
    lines : line of the file that each flow is on, shape (n_flows,).
    """

    flows: Flows
    ids: Sequence[str] = field(repr=False)
    collectives: tuple[str, ...]
    lines: Indices = field(repr=False)


@dataclass(frozen=True)
class RoutedList:
    """A flow list on a fabric, and what came of it.

    Parameters
    ----------
    fabric, flows, report : the fabric that ``report`` is about, failures included.
    seeds : reports of many seeds, of which ``report`` is the first; ``None`` for a single one.
    statistics : whether a number of seeds was asked for: figures are then their statistics,
        and otherwise their mean.
    draws : where failures are drawn for every seed, the report of each.
    is_drawn : whether another seed routes in another way, or lets other links fail.
    disconnected_seeds : seeds left out, whose failures cut hosts off.
    """

    fabric: Clos
    flows: FlowList = field(repr=False)
    report: FlowReport
    seeds: SeedReports | None = None
    statistics: bool = False
    draws: tuple[FlowReport, ...] = field(default=(), repr=False)
    disconnected_seeds: tuple[int, ...] = ()
    is_drawn: bool = True

    @property
    def n_routings(self) -> int:
        """Routings that were made: one for all seeds where nothing is drawn."""
        return 1 if self.seeds is None or not self.is_drawn else len(self.seeds.seeds)

    @property
    def ideal_makespan_s(self) -> float:
        """Makespan with every packet sprayed; the mean where seeds draw failures."""
        return float(np.mean([one.ideal_makespan_s for one in self.draws or (self.report,)]))

    @property
    def floor_percent(self) -> float:
        """The least mean FIM of whole flows; it depends on the seed where that draws failures."""
        return float(np.mean([one.fim_floor_percent for one in self.draws or (self.report,)]))
